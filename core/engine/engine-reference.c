/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the reference says, and what follows from that at once: a new assignment, back to the local configuration, or nothing
 * because it is unclear.
 */
#include <lkg/log.h>

#include "engine-internal.h"
#include "track.h"

static void set_desired(struct lkg_component *c, enum lkg_desired_state state, const char *fault)
{
        struct lkg_dynamic *d = c->dynamic;

        if (d->desired == state && strcmp(d->desired_fault, fault) == 0)
                return;
        d->desired = state;
        (void)snprintf(d->desired_fault, sizeof(d->desired_fault), "%.500s", fault);
        c->dirty |= LKG_DIRTY_DYNAMIC | LKG_DIRTY_CONDITION;
}

/* The look after this one tries once more. */
static void again(struct lkg_engine *e, struct lkg_component *c, const char *words,
                  const struct lkg_error *err)
{
        const struct lkg_log_fields fields = lkg_engine_fields(c);

        e->remote_file.known = false;
        e->retry_at_ns = lkg_boottime_ns() + LKG_RETRY_MAX_NS;
        set_desired(c, LKG_DESIRED_UNKNOWN, words);
        lkg_log(LOG_ERR, &fields, "%s: %s", words, err->message);
}

/* A new assignment ends a rollback's pin, but no other hold. */
static int unpin(struct lkg_engine *e, struct lkg_component *c)
{
        if (c->state.hold.mode != LKG_HOLD_ROLLBACK)
                return 0;
        c->state.hold.mode = LKG_HOLD_FREE;
        c->state.hold.generation = 0;
        c->dirty |= LKG_DIRTY_CONDITION;
        return lkg_engine_save_state(e, c);
}

static void load_again(struct lkg_engine *e, struct lkg_component *c)
{
        LKG_CLEANUP(lkg_report_deinit) struct lkg_report ignored = LKG_REPORT_INIT;
        struct lkg_remote_base *base = NULL;
        struct lkg_error err = { 0 };

        if (lkg_engine_load_base(e, &c->base->source, &base, &ignored, &err) < 0)
                return;
        lkg_component_set_base(c, base);
        (void)lkg_engine_refresh_anew(e, c, &err);
}

static void assign(struct lkg_engine *e, struct lkg_component *c, const struct lkg_configmap *configmap,
                   const struct lkg_config_source *source)
{
        const struct lkg_log_fields fields = lkg_engine_fields(c);
        struct lkg_dynamic *d = c->dynamic;
        bool known = lkg_config_source_equal(&d->pointers.assigned, source);
        struct lkg_error err = { 0 };
        char words[LKG_REASON_MAX];
        int r = 0;

        if (known && strcmp(d->pointers.assigned.sha256, source->sha256) != 0) {
                (void)snprintf(
                        words, sizeof(words),
                        "ConfigMap %.100s/%.100s has another content and the same resourceVersion %.100s; "
                        "remove metadata.resourceVersion from the file, or change it",
                        source->ns, source->name, source->version);
                set_desired(c, LKG_DESIRED_UNKNOWN, words);
                return;
        }

        if (!known || !lkg_store_has_checkpoint(&e->store, source))
                r = lkg_store_save_checkpoint(&e->store, configmap, &err);
        if (r < 0) {
                (void)snprintf(words, sizeof(words),
                               "failed to save config checkpoint for object with UID %s", source->uid);
                again(e, c, words, &err);
                return;
        }
        set_desired(c, LKG_DESIRED_REMOTE, "");
        if (known && c->base && c->base->fault && lkg_config_source_equal(&c->base->source, source))
                load_again(e, c); /* its checkpoint had been lost, and has come back */
        if (known)
                return;
        /* The pin first: after a crash in between the reference comes again, and nothing but it would end the pin. */
        r = unpin(e, c);
        if (r >= 0)
                r = lkg_dynamic_assign(d, source, NULL, lkg_realtime_ns(), &err);
        if (r < 0) {
                (void)snprintf(words, sizeof(words),
                               "failed to set current config checkpoint to object with UID %s", source->uid);
                again(e, c, words, &err);
                return;
        }
        lkg_log(LOG_NOTICE, &fields, "assigned: ConfigMap %s/%s, UID %s, resourceVersion %s, key %s",
                source->ns, source->name, source->uid, source->version, source->key);
        if (c->base && lkg_config_source_same_content(&c->base->source, source))
                c->base->source = *source;
        c->waited = lkg_candidate_unref(c->waited);
        lkg_report_deinit(&c->remote_findings);
        c->explained = false;
        c->dirty |= LKG_DIRTY_DYNAMIC | LKG_DIRTY_CONDITION | LKG_DIRTY_BAD | LKG_DIRTY_FINDINGS;
}

static void reset(struct lkg_engine *e, struct lkg_component *c)
{
        const struct lkg_log_fields fields = lkg_engine_fields(c);
        const struct lkg_pointers *p = &c->dynamic->pointers;
        struct lkg_error err = { 0 };

        set_desired(c, LKG_DESIRED_LOCAL, "");
        if (lkg_config_source_is_local(&p->assigned) && lkg_config_source_is_local(&p->active) &&
            lkg_config_source_is_local(&p->good.source))
                return;
        if (unpin(e, c) < 0 || lkg_dynamic_reset(c->dynamic, lkg_realtime_ns(), &err) < 0) {
                again(e, c, "failed to reset to local (default or init) config", &err);
                return;
        }
        lkg_log(LOG_NOTICE, &fields, "reset to the local configuration");
        lkg_track_close(&c->good);
        lkg_report_deinit(&c->remote_findings);
        c->dirty |= LKG_DIRTY_FINDINGS;
        lkg_component_set_base(c, NULL);
        (void)lkg_engine_refresh_anew(e, c, &err);
}

static bool vouched_or_settled(const char *path, void *userdata)
{
        const struct lkg_component_env env = lkg_engine_env(userdata);

        return env.unsettled(path, env.userdata);
}

static void look_at_file(struct lkg_engine *e, struct lkg_component *c)
{
        const struct lkg_remote_file_options options = {
                .max_bytes = e->config->remote.max_bytes,
                .allowed = (const char *const *)e->config->remote.allowed_sources.items,
                .n_allowed = e->config->remote.allowed_sources.n_items,
                .careful = !lkg_config_source_is_local(&c->dynamic->pointers.assigned),
                .unsettled = vouched_or_settled,
                .userdata = e,
        };
        struct lkg_configmap configmap = { 0 };
        struct lkg_config_source source;
        enum lkg_remote_file_says says;
        struct lkg_error err = { 0 };
        int r = lkg_remote_file_look(&e->remote_file, &options, &says, &configmap, &source, &err);

        if (r == 0 && e->remote_file.blank_ns && e->retry_at_ns > e->remote_file.blank_ns + LKG_BLANK_NS)
                e->retry_at_ns = e->remote_file.blank_ns + LKG_BLANK_NS;
        if (r <= 0)
                return;
        switch (says) {
        case LKG_FILE_SAYS_NOTHING:
                set_desired(c, LKG_DESIRED_UNKNOWN, "no reference yet");
                break;
        case LKG_FILE_SAYS_UNCLEAR:
                set_desired(c, LKG_DESIRED_UNKNOWN, err.message);
                break;
        case LKG_FILE_SAYS_LOCAL:
                reset(e, c);
                break;
        case LKG_FILE_SAYS_CONFIGMAP:
                assign(e, c, &configmap, &source);
                lkg_configmap_deinit(&configmap);
                break;
        }
}

static bool concerns(const struct lkg_way *way, const struct lkg_touched *touched)
{
        if (touched->everything)
                return true;
        for (size_t i = 0; i < touched->n_paths; i++)
                for (size_t k = 0; k < way->n; k++) {
                        size_t n = strlen(way->items[k].path);

                        if (strncmp(touched->paths[i], way->items[k].path, n) == 0)
                                return true;
                }
        return false;
}

void lkg_engine_look_remote(struct lkg_engine *e, struct lkg_component *c, const struct lkg_touched *touched)
{
        const struct lkg_log_fields fields = lkg_engine_fields(c);
        struct lkg_error err = { 0 };

        if (!lkg_engine_is_remote(e, c))
                return;
        if (lkg_engine_look_at_local(e, c, touched, &err) < 0 ||
            lkg_engine_look_at_good(e, c, touched, &err) < 0)
                lkg_log(LOG_DEBUG, &fields, "cannot look at what a rollback would serve: %s", err.message);
        if (e->remote_file.path && (!e->remote_file.known || concerns(&e->remote_file.way, touched)))
                look_at_file(e, c);
        if (c->base && c->local.candidate && c->local.candidate->state == LKG_CANDIDATE_NAME_TAKEN &&
            c->candidate != c->local.candidate)
                (void)lkg_component_take_candidate(c, lkg_candidate_ref(c->local.candidate));
}

void lkg_engine_watch_remote(struct lkg_engine *e)
{
        for (size_t i = 0; i < e->remote_file.way.n; i++)
                if (lkg_watch_add(&e->watch, &e->remote_file.way.items[i]) < 0)
                        e->watch.poll = true;
        for (size_t i = 0; i < e->n_components; i++) {
                const struct lkg_stack_watch *wanted;
                size_t n = e->components[i].local.stack
                                   ? lkg_stack_watches(e->components[i].local.stack, &wanted)
                                   : 0;

                for (size_t k = 0; k < n; k++)
                        if (lkg_watch_add(&e->watch, &wanted[k]) < 0)
                                e->watch.poll = true;
        }
}
