/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The last known good for a rollback: merged with today's local layers or, if that is impossible or not
 * wanted, the stored document.
 */
#include <lkg/base.h>

#include <lkg/component.h>

int lkg_component_serve_stored(struct lkg_component *c, struct lkg_error *err)
{
        LKG_CLEANUP(lkg_generation_unrefp) struct lkg_generation *g = NULL;
        int r = lkg_component_stored_good(c, &g, err);

        if (r >= 0)
                r = lkg_history_add(&c->history, g);
        if (r >= 0)
                lkg_component_serve_again(c, g);
        return r;
}

/*
 * Puts the layers over the last known good. Return: 0; negative: its checkpoint cannot be used, nothing has
 * changed.
 */
static int set_good_base(struct lkg_component *c, const struct lkg_component_env *env, struct lkg_error *err)
{
        LKG_CLEANUP(lkg_report_deinit) struct lkg_report ignored = LKG_REPORT_INIT;
        const struct lkg_config_source *source = &c->dynamic->pointers.good.source;
        struct lkg_remote_base *base = NULL;
        int r = lkg_config_source_is_local(source)
                        ? 0
                        : lkg_component_load_base(c, env, source, &base, &ignored, err);

        if (r >= 0)
                lkg_component_follow(c, base);
        return r;
}

/* Nothing of the last known good can be used, so follows the local configuration. */
static void go_local(struct lkg_component *c, const char *why)
{
        const struct lkg_log_fields fields = lkg_component_log_fields(c);

        lkg_log(LOG_ERR, &fields,
                "the last known good cannot be used, going on with the local configuration: %s", why);
        c->dynamic->good_failed = true;
        if (c->base)
                lkg_component_follow(c, NULL);
}

/* Then what is served has the local layers of its time, which the stored document may not have. */
static bool serves_good_source(const struct lkg_component *c)
{
        struct lkg_config_source made_of;

        if (!c->active)
                return false;
        lkg_config_source_recorded(c->active->source, c->active->source_sha256, &made_of);
        return lkg_config_source_matches(&made_of, &c->dynamic->pointers.good.source);
}

/*
 * The last known good cannot be merged any more because its checkpoint is lost: serves its stored document;
 * its layers are invalid until the object is read again. Without a stored document, follows the local
 * configuration.
 */
void lkg_component_follow_missing(struct lkg_component *c, const char *why)
{
        struct lkg_remote_base *base = NULL;
        struct lkg_error err = { 0 };
        char fault[LKG_REASON_MAX];

        (void)snprintf(fault, sizeof(fault),
                       "the checkpoint is lost; what was served last, or its stored document, serves until "
                       "the object is read again: %.250s",
                       why);
        if (serves_good_source(c) || lkg_component_serve_stored(c, &err) >= 0)
                base = lkg_remote_base_missing(&c->dynamic->pointers.good.source, fault);
        if (base)
                lkg_component_follow(c, base);
        else
                go_local(c, err.message);
}

void lkg_component_serve_stored_or_local(struct lkg_component *c)
{
        struct lkg_error err = { 0 };

        if (lkg_component_serve_stored(c, &err) < 0)
                go_local(c, err.message);
}

/* The next layer above the base, starting at @at; NULL = none. */
static const struct lkg_layer_info *next_local(const struct lkg_candidate *candidate, size_t *at)
{
        while (*at < candidate->n_layers) {
                const struct lkg_layer_info *layer = &candidate->layers[(*at)++];

                if (layer->role != LKG_LAYER_BASE && layer->role != LKG_LAYER_REMOTE)
                        return layer;
        }
        return NULL;
}

static bool has_same_local_layers(const struct lkg_candidate *a, const struct lkg_candidate *b)
{
        const struct lkg_layer_info *x, *y;
        size_t i = 0, k = 0;

        if (!a || !b)
                return a == b;
        do {
                x = next_local(a, &i);
                y = next_local(b, &k);
                if (!x != !y || (x && (strcmp(x->file, y->file) != 0 || !x->doc != !y->doc ||
                                       (x->doc && !lkg_value_equal(x->doc, y->doc)))))
                        return false;
        } while (x);
        return true;
}

void lkg_component_merge_good(struct lkg_component *c, const struct lkg_component_env *env, bool same_base,
                              struct lkg_good_merge *ret)
{
        LKG_CLEANUP(lkg_candidate_unrefp) struct lkg_candidate *failed = lkg_candidate_ref(c->candidate);
        struct lkg_error err = { 0 };

        *ret = (struct lkg_good_merge){ .usable = true };
        c->dynamic->good_failed = false;
        c->tried_with = lkg_candidate_unref(c->tried_with);
        if (!same_base && set_good_base(c, env, &err) < 0) {
                ret->usable = false;
                (void)snprintf(ret->fault, sizeof(ret->fault), "%.500s", err.message);
                return;
        }
        ret->valid = c->candidate && c->candidate->state == LKG_CANDIDATE_VALID;
        /*
         * Local layers that have changed since then did not take part in the failure, so they are tried
         * again.
         */
        if (ret->valid && has_same_local_layers(failed, c->candidate))
                memcpy(ret->sha256, c->candidate->sha256, sizeof(ret->sha256));
}

/* Another remote source than the followed one; otherwise the layers are merged over it already. */
int lkg_component_load_good(struct lkg_component *c, const struct lkg_component_env *env,
                            struct lkg_error *err)
{
        LKG_CLEANUP(lkg_report_deinit) struct lkg_report ignored = LKG_REPORT_INIT;
        const struct lkg_config_source *source = &c->dynamic->pointers.good.source;

        if (c->good && lkg_config_source_equal(&c->good->source, source))
                return 0;
        lkg_remote_base_free(c->good);
        c->good = NULL;
        if (lkg_config_source_equal(lkg_component_source(c), source) || lkg_config_source_is_local(source))
                return 0;
        return lkg_component_load_base(c, env, source, &c->good, &ignored, err);
}
