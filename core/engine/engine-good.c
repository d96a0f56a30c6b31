/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The last known good for a rollback: merged with today's local layers or, if that is impossible or not wanted, the stored
 * document; and merging the layers over another base.
 */
#include <inttypes.h>

#include <lkg/log.h>

#include "engine-internal.h"
#include <lkg/track.h>

static const struct lkg_touched everything = { .everything = true };

/* ---- another base ---- */

/* The layers have no earlier content to use while one of them is being written, so every file counts as it is. */
int lkg_engine_refresh_anew(struct lkg_engine *e, struct lkg_component *c, struct lkg_error *err)
{
        const struct lkg_component_env env = lkg_engine_env(e);
        bool before = e->settled.new_stacks;
        int r;

        e->settled.new_stacks = true;
        r = lkg_component_refresh(c, &env, &everything, err);
        e->settled.new_stacks = before;
        if (r < 0)
                lkg_component_set_fault(c, "failed to read the layers: %s", strerror(-r));
        return r;
}

/* A track that is not open yet, looked at for the first time. */
int lkg_engine_open_track(struct lkg_engine *e, struct lkg_component *c, struct lkg_track *track,
                          struct lkg_remote_base *base, struct lkg_error *err)
{
        const struct lkg_component_env env = lkg_engine_env(e);
        bool before = e->settled.new_stacks;
        int r = lkg_track_open(track, c, &env, base, err);

        e->settled.new_stacks = true;
        if (r >= 0)
                r = lkg_track_refresh(track, &everything, err);
        e->settled.new_stacks = before;
        return r;
}

/* What was tried is what is followed: nothing is read or judged again. */
void lkg_engine_follow_tried(struct lkg_component *c)
{
        const struct lkg_log_fields fields = lkg_engine_fields(c);
        const struct lkg_config_source *source;
        int r = lkg_component_follow(c, &c->tried);

        if (r < 0)
                lkg_component_set_fault(c, "failed to read the layers: %s", strerror(-r));
        source = lkg_component_source(c);
        lkg_log(LOG_NOTICE, &fields, "following ConfigMap %s/%s, UID %s, resourceVersion %s", source->ns,
                source->name, source->uid, source->version);
}

/* ---- bases from checkpoints ---- */

/* The default minimum limits the ConfigMap's own setting; it does not override a setting of the administrator. */
struct lkg_trial_settings lkg_engine_trial_settings(const struct lkg_engine *e)
{
        struct lkg_trial_settings settings = {
                .duration_ns = e->config->trial.duration_ns,
                .threshold = (unsigned)e->config->trial.crash_loop_threshold,
                .min_duration_ns = e->config->trial.min_duration_ns,
                .max_duration_ns = e->config->trial.max_duration_ns,
        };

        if (e->config->trial.min_duration_set)
                return settings;
        if (settings.min_duration_ns > settings.duration_ns)
                settings.min_duration_ns = settings.duration_ns;
        if (settings.max_duration_ns && settings.min_duration_ns > settings.max_duration_ns)
                settings.min_duration_ns = settings.max_duration_ns;
        return settings;
}

static int refuse(struct lkg_report *report, const char *file, const char *why)
{
        const struct lkg_where where = { .file = file };

        lkg_report_add(report, LKG_ERROR, 2030, &where, "%s", why);
        return -EINVAL;
}

/*
 * Its payload is decoded here for the first time, under the name that its layer will have. Return: 0; -EINVAL, -ENOMEM.
 */
static int admit_payload(struct lkg_engine *e, const struct lkg_component *c,
                         const struct lkg_config_source *source, const struct lkg_configmap *configmap,
                         struct lkg_report *report, struct lkg_error *err)
{
        const struct lkg_admission admission = lkg_component_admission(c);
        LKG_CLEANUP(lkg_freep) char *file = lkg_remote_base_file(source);
        LKG_CLEANUP(lkg_freep) char *why = NULL;
        const char *text = NULL;
        size_t size = 0;
        int r;

        if (!file)
                return -ENOMEM;
        if (lkg_configmap_payload(configmap, source->key, &text, &size, NULL) < 0)
                return 0; /* its user reports the mistake */
        r = lkg_admit_text(&admission, LKG_ADMIT_LAYER, file, text, size, &why);
        if (r != -EKEYREJECTED)
                return r;
        lkg_engine_refused_source(e, source, err);
        return refuse(report, file, why);
}

int lkg_engine_load_base(struct lkg_engine *e, const struct lkg_component *c,
                         const struct lkg_config_source *source, struct lkg_remote_base **ret,
                         struct lkg_report *report, struct lkg_error *err)
{
        struct lkg_trial_settings settings = lkg_engine_trial_settings(e);
        struct lkg_remote_base *base = NULL;
        struct lkg_configmap configmap = { 0 };
        int r = lkg_store_load_checkpoint(&e->store, source, &configmap, err);

        if (r == -EKEYREJECTED) {
                (void)refuse(report, NULL, err->message);
                lkg_engine_refused_source(e, source, err);
                return -EINVAL;
        }
        if (r < 0)
                return r;
        r = admit_payload(e, c, source, &configmap, report, err);
        if (r < 0) {
                lkg_configmap_deinit(&configmap);
                return r == -EINVAL ? r : lkg_error_set(err, r, NULL, "checkpoint");
        }
        r = lkg_remote_base_new(&configmap, source, &settings, &base, report);
        if (r < 0)
                return lkg_error_set(err, r, NULL, "checkpoint");
        if (!base->text || report->n_severity[LKG_ERROR] > 0) {
                lkg_remote_base_free(base);
                return lkg_error_set(err, -EINVAL, NULL, "checkpoint");
        }
        *ret = base;
        return 0;
}

/* ---- the last known good ---- */

/* Serve the stored document instead of a merge, byte for byte. */
static int serve_stored(struct lkg_component *c, struct lkg_error *err)
{
        LKG_CLEANUP(lkg_generation_unrefp) struct lkg_generation *g = NULL;
        int r = lkg_component_stored_good(c, &g, err);

        if (r >= 0)
                r = lkg_history_add(&c->history, g);
        if (r >= 0)
                lkg_component_serve_again(c, g);
        return r;
}

int lkg_engine_serve_stored(struct lkg_component *c)
{
        struct lkg_error err = { 0 };

        return serve_stored(c, &err);
}

/* Layers over the last known good. Return: 0; negative: its checkpoint cannot be used, nothing has changed. */
static int set_good_base(struct lkg_engine *e, struct lkg_component *c, struct lkg_error *err)
{
        LKG_CLEANUP(lkg_report_deinit) struct lkg_report ignored = LKG_REPORT_INIT;
        const struct lkg_config_source *source = &c->dynamic->pointers.good.source;
        struct lkg_remote_base *base = NULL;
        int r = lkg_config_source_is_local(source)
                        ? 0
                        : lkg_engine_load_base(e, c, source, &base, &ignored, err);

        if (r >= 0)
                lkg_component_set_base(c, base);
        return r;
}

/* Nothing of the last known good can be used. */
static void go_local(struct lkg_engine *e, struct lkg_component *c, const char *why)
{
        const struct lkg_log_fields fields = lkg_engine_fields(c);
        struct lkg_error err = { 0 };

        lkg_log(LOG_ERR, &fields,
                "the last known good cannot be used, going on with the local configuration: %s", why);
        c->dynamic->good_failed = true;
        if (!c->base)
                return;
        lkg_component_set_base(c, NULL);
        (void)lkg_engine_refresh_anew(e, c, &err);
}

/*
 * The last known good cannot be merged any more, because its checkpoint is lost: its stored document is served, and its layers
 * are invalid until the object is read again. Without a stored document the local configuration is used.
 */
void lkg_engine_follow_missing(struct lkg_engine *e, struct lkg_component *c, const char *why)
{
        struct lkg_remote_base *base = NULL;
        struct lkg_error err = { 0 };
        char fault[LKG_REASON_MAX];

        (void)snprintf(fault, sizeof(fault),
                       "the checkpoint is lost; what was served last, or its stored document, serves until "
                       "the object is read again: %.250s",
                       why);
        if (serve_stored(c, &err) >= 0)
                base = lkg_remote_base_missing(&c->dynamic->pointers.good.source, fault);
        if (base)
                lkg_component_set_base(c, base);
        else
                go_local(e, c, err.message);
}

void lkg_engine_serve_stored_or_local(struct lkg_engine *e, struct lkg_component *c)
{
        struct lkg_error err = { 0 };

        if (serve_stored(c, &err) < 0)
                go_local(e, c, err.message);
}

/* The next layer over the base, from @at on; NULL = none. */
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

void lkg_engine_merge_good(struct lkg_engine *e, struct lkg_component *c, bool same_base,
                           struct lkg_engine_merge *ret)
{
        LKG_CLEANUP(lkg_candidate_unrefp) struct lkg_candidate *failed = lkg_candidate_ref(c->candidate);
        struct lkg_error err = { 0 };

        *ret = (struct lkg_engine_merge){ .usable = true };
        c->dynamic->good_failed = c->explained = false;
        if (!same_base && set_good_base(e, c, &err) < 0) {
                ret->usable = false;
                (void)snprintf(ret->fault, sizeof(ret->fault), "%.500s", err.message);
                return;
        }
        ret->valid = lkg_engine_refresh_anew(e, c, &err) >= 0 && c->candidate &&
                     c->candidate->state == LKG_CANDIDATE_VALID;
        /* A layer that has changed meanwhile had no part in the failure: the layers are tried again with it. */
        if (c->rendered.data && has_same_local_layers(failed, c->candidate))
                (void)lkg_sha256_hex(c->rendered.data, c->rendered.size, ret->sha256);
}

/* Open while the last known good is another source than the one that is followed. */
int lkg_engine_look_at_good(struct lkg_engine *e, struct lkg_component *c, const struct lkg_touched *touched,
                            struct lkg_error *err)
{
        LKG_CLEANUP(lkg_report_deinit) struct lkg_report ignored = LKG_REPORT_INIT;
        const struct lkg_config_source *source = &c->dynamic->pointers.good.source;
        struct lkg_remote_base *base = NULL;
        int r;

        if (c->good.stack && (!c->good.base || !lkg_config_source_equal(&c->good.base->source, source)))
                lkg_track_close(&c->good);
        if (lkg_config_source_equal(lkg_component_source(c), source) || lkg_config_source_is_local(source))
                return 0; /* c->candidate or c->local is it */
        if (c->good.stack) {
                r = lkg_track_refresh(&c->good, touched, err);
        } else {
                r = lkg_engine_load_base(e, c, source, &base, &ignored, err);
                if (r >= 0)
                        r = lkg_engine_open_track(e, c, &c->good, base, err);
        }
        if (r > 0)
                c->dirty |= LKG_DIRTY_DYNAMIC;
        return r;
}

int lkg_engine_look_at_local(struct lkg_engine *e, struct lkg_component *c,
                             const struct lkg_touched *touched, struct lkg_error *err)
{
        int r;

        if (!c->base)
                return 0;
        r = c->local.stack ? lkg_track_refresh(&c->local, touched, err)
                           : lkg_engine_open_track(e, c, &c->local, NULL, err);
        if (r > 0) {
                c->explained = false;
                c->dirty |= LKG_DIRTY_CONDITION | LKG_DIRTY_FINDINGS;
        }
        return r;
}

void lkg_engine_try_anew(struct lkg_component *c)
{
        if (*c->untried)
                c->dirty |= LKG_DIRTY_CONDITION;
        *c->untried = '\0';
        c->try_at_ns = c->try_pause_ns = 0;
}
