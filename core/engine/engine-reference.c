/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The result of the reference, and its immediate consequence: a new assignment, back to the local configuration, or nothing
 * because it is unclear. Rules: docs/specification.md 4.2, 4.4.
 *
 * There may be several places. They are asked in the order of remote.references, and the first that says anything counts, even
 * if that is unknown or cannot be understood: later places are meant for the case that the earlier ones say nothing.
 */
#include <lkg/log.h>

#include "engine-api.h"
#include "engine-internal.h"
#include <lkg/track.h>

/* @waiting: why the rollout holds back the desired configuration; "" = it does not */
static void set_wanted(struct lkg_component *c, enum lkg_desired_state state, const char *fault,
                       const char *waiting)
{
        struct lkg_dynamic *d = c->dynamic;

        if (d->desired == state && strcmp(d->desired_fault, fault) == 0 && strcmp(d->waiting, waiting) == 0)
                return;
        d->desired = state;
        (void)snprintf(d->desired_fault, sizeof(d->desired_fault), "%.500s", fault);
        (void)snprintf(d->waiting, sizeof(d->waiting), "%.255s", waiting);
        c->dirty |= LKG_DIRTY_DYNAMIC | LKG_DIRTY_CONDITION;
}

static void set_desired(struct lkg_component *c, enum lkg_desired_state state, const char *fault)
{
        set_wanted(c, state, fault, "");
}

/* The next look tries again. */
static void again(struct lkg_engine *e, struct lkg_component *c, const char *words,
                  const struct lkg_error *err)
{
        const struct lkg_log_fields fields = lkg_engine_fields(c);
        bool told =
                c->dynamic->desired == LKG_DESIRED_UNKNOWN && strcmp(c->dynamic->desired_fault, words) == 0;

        e->remote_file.known = false;
        e->reference_pending = true;
        if (c->api)
                c->api->news = true;
        e->retry_at_ns = lkg_boottime_ns() + LKG_RETRY_MAX_NS;
        set_desired(c, LKG_DESIRED_UNKNOWN, words);
        if (!told) /* a full disk stays full for long */
                lkg_log(LOG_ERR, &fields, "%s: %s", words, err->message);
}

/*
 * A new assignment ends the pin of a rollback, but no other hold. The pointers name the assigned configuration, and the pin
 * names the assignment that it was made for. So writing the pointers ends the pin, in one step, also for an engine that finds
 * both later.
 */
static void unpin(struct lkg_engine *e, struct lkg_component *c)
{
        if (c->state.hold.mode != LKG_HOLD_ROLLBACK)
                return;
        c->state.hold.mode = LKG_HOLD_FREE;
        c->state.hold.generation = 0;
        c->state.held_by = (struct lkg_held_by){ 0 };
        *c->state.pinned_for = '\0';
        c->state_changed = true;
        c->dirty |= LKG_DIRTY_CONDITION;
        (void)lkg_engine_save_state(e, c);
}

void lkg_engine_check_pin(struct lkg_engine *e, struct lkg_component *c)
{
        const struct lkg_pointers *p = &c->dynamic->pointers;
        char assigned[LKG_SOURCE_ID_MAX + 1];

        lkg_engine_say_assigned(c, assigned);
        if (c->state.hold.mode != LKG_HOLD_ROLLBACK || strcmp(c->state.pinned_for, assigned) == 0)
                return;
        if (*c->state.pinned_for &&
            p->assigned_ns) { /* 0: the pointers are lost, and say nothing about a pin */
                unpin(e, c);
                return;
        }
        (void)strcpy(c->state.pinned_for, assigned);
        c->state_changed = true;
}

void lkg_engine_say_assigned(const struct lkg_component *c, char ret[static LKG_SOURCE_ID_MAX + 1])
{
        if (!c->dynamic || lkg_config_source_is_local(&c->dynamic->pointers.assigned))
                (void)strcpy(ret, "local");
        else
                lkg_config_source_id(&c->dynamic->pointers.assigned, ret);
}

static void load_again(struct lkg_engine *e, struct lkg_component *c)
{
        LKG_CLEANUP(lkg_report_deinit) struct lkg_report ignored = LKG_REPORT_INIT;
        struct lkg_remote_base *base = NULL;
        struct lkg_error err = { 0 };

        if (lkg_engine_load_base(e, c, &c->base->source, &base, &ignored, &err) < 0)
                return;
        lkg_component_set_base(c, base);
        (void)lkg_engine_refresh_anew(e, c, &err);
}

/* It is recorded, and may be bad at once: a new version of bad content is bad, too. */
static void tell_assigned(struct lkg_engine *e, const struct lkg_component *c,
                          const struct lkg_config_source *source)
{
        const struct lkg_log_fields fields = lkg_engine_fields(c);
        const struct lkg_bad *bad = lkg_dynamic_is_bad(c->dynamic, source);

        lkg_log(LOG_NOTICE, &fields, "assigned: ConfigMap %s/%s, UID %s, resourceVersion %s, key %s",
                source->ns, source->name, source->uid, source->version, source->key);
        lkg_engine_event(e, c, false, "ConfigAssigned", source, "");
        if (bad)
                lkg_engine_event(e, c, true, "ConfigRejected", source, bad->reason);
}

/* @node_uid: the Node that has the reference; NULL = none */
static void assign(struct lkg_engine *e, struct lkg_component *c, const struct lkg_configmap *configmap,
                   const struct lkg_config_source *source, const char *node_uid)
{
        struct lkg_dynamic *d = c->dynamic;
        bool known = lkg_config_source_equal(&d->pointers.assigned, source);
        struct lkg_error err = { 0 };
        char words[LKG_REASON_MAX];
        int r = 0;

        if (known && strcmp(d->pointers.assigned.sha256, source->sha256) != 0) {
                (void)snprintf(
                        words, sizeof(words),
                        "ConfigMap %.100s/%.100s has another content and the same resourceVersion %.100s%s",
                        source->ns, source->name, source->version,
                        e->place == LKG_PLACE_FILE
                                ? "; remove metadata.resourceVersion from the file, or change it"
                                : "");
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
        r = lkg_dynamic_assign(d, source, node_uid, lkg_realtime_ns(), &err);
        if (r < 0) {
                (void)snprintf(words, sizeof(words),
                               "failed to set current config checkpoint to object with UID %s", source->uid);
                again(e, c, words, &err);
                return;
        }
        unpin(e, c);
        tell_assigned(e, c, source);
        if (c->base && lkg_config_source_same_content(&c->base->source, source))
                c->base->source = *source;
        c->waited = lkg_candidate_unref(c->waited);
        lkg_engine_try_anew(c);
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
        if (lkg_dynamic_reset(c->dynamic, lkg_realtime_ns(), &err) < 0) {
                again(e, c, "failed to reset to local (default or init) config", &err);
                return;
        }
        unpin(e, c);
        lkg_log(LOG_NOTICE, &fields, "reset to the local configuration");
        lkg_engine_event(e, c, false, "ConfigAssigned", &c->dynamic->pointers.assigned, "");
        lkg_engine_try_anew(c);
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
                .admission = &e->admission,
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
                assign(e, c, &configmap, &source, NULL);
                lkg_configmap_deinit(&configmap);
                break;
        }
}

/* ---- from the API server ---- */

/* Ask the places once more, in @wait_ns at the latest. */
static void ask_again(struct lkg_engine *e, uint64_t wait_ns)
{
        uint64_t at_ns = lkg_boottime_ns() + wait_ns;

        e->reference_pending = true;
        if (e->retry_at_ns > at_ns)
                e->retry_at_ns = at_ns;
}

/* Another Node with the same name has the same reference now: from now on its removal there counts. */
static void note_node(struct lkg_engine *e, struct lkg_component *c, const struct lkg_config_source *source,
                      const char *node_uid)
{
        const struct lkg_config_source *assigned = &c->dynamic->pointers.assigned;
        const struct lkg_log_fields fields = lkg_engine_fields(c);
        struct lkg_error err = { 0 };

        if (!node_uid || strcmp(assigned->uid, source->uid) != 0 ||
            strcmp(assigned->key, source->key) != 0 ||
            lkg_dynamic_note_node(c->dynamic, node_uid, &err) >= 0)
                return;
        lkg_log(LOG_ERR, &fields, "cannot note which Node refers to the configuration, trying again: %s",
                err.message);
        ask_again(e, LKG_RETRY_MAX_NS);
}

/*
 * A new content may be held back; a new version of the followed configuration is recorded, whatever its annotations say.
 * Only for objects of the API server: a file is this node's own.
 */
static bool is_held_back(struct lkg_component *c, const struct lkg_configmap *configmap,
                         const struct lkg_config_source *source)
{
        const struct lkg_config_source *assigned = &c->dynamic->pointers.assigned;
        const struct lkg_rollout *rollout = lkg_api_rollout(c->api, configmap);

        if (lkg_config_source_equal(assigned, source) || lkg_config_source_same_content(assigned, source))
                return false;
        if (!rollout)
                set_wanted(c, LKG_DESIRED_REMOTE, "", "waiting for the rollout: the Node was not read yet");
        else if (rollout->state == LKG_ROLLOUT_UNCLEAR)
                set_desired(c, LKG_DESIRED_UNKNOWN, rollout->words);
        else if (rollout->state != LKG_ROLLOUT_GO)
                set_wanted(c, LKG_DESIRED_REMOTE, "", rollout->words);
        return !rollout || rollout->state != LKG_ROLLOUT_GO;
}

/*
 * Every assignment is flushed to disk. A ConfigMap that changes all the time must not keep this node busy: a
 * hundred versions are taken as they come, after that ten per second, and of the others only the last one counts.
 */
static bool is_time(struct lkg_engine *e, struct lkg_component *c)
{
        static const struct lkg_bucket_rate rate = { .burst = 100, .interval_ns = LKG_NSEC_PER_SEC / 10 };
        uint64_t wait_ns = lkg_bucket_take(&c->api->pace, &rate, lkg_boottime_ns());

        if (wait_ns > 0)
                ask_again(e, wait_ns);
        return wait_ns == 0;
}

static void follow_configmap(struct lkg_engine *e, struct lkg_component *c,
                             const struct lkg_reference *reference, const char *node_uid)
{
        const struct lkg_dynamic *d = c->dynamic;
        const struct lkg_configmap *configmap;
        struct lkg_config_source source;
        struct lkg_error err = { 0 };
        char fault[LKG_REASON_MAX];
        bool known;

        if (lkg_api_follow(c->api, reference, &err) < 0) {
                lkg_log_error("cannot follow a ConfigMap, trying again: %s", err.message);
                ask_again(e, LKG_RETRY_MAX_NS);
        }
        configmap = lkg_api_configmap(c->api, lkg_boottime_ns(), fault);
        if (!configmap) {
                set_desired(c, LKG_DESIRED_UNKNOWN, fault);
                return;
        }
        if (lkg_configmap_resolve(configmap, reference, &source, &err) < 0) {
                set_desired(c, LKG_DESIRED_UNKNOWN, err.message);
                return;
        }
        note_node(e, c, &source, node_uid);
        if (is_held_back(c, configmap, &source))
                return;
        known = lkg_config_source_equal(&d->pointers.assigned, &source);
        /* The same answer again needs no look at the checkpoint. */
        if (known && d->desired == LKG_DESIRED_REMOTE && !*d->waiting && !c->api->news)
                return;
        if (!known && !is_time(e, c))
                return;
        c->api->news = false;
        assign(e, c, configmap, &source, node_uid);
}

/* Every place was looked at, and none of them has anything. */
static void follow_nothing(struct lkg_engine *e, struct lkg_component *c)
{
        const struct lkg_pointers *p = &c->dynamic->pointers;
        char words[LKG_REASON_MAX];

        if (lkg_config_source_is_local(&p->assigned) || strcmp(p->node_uid, c->api->node_says.uid) == 0) {
                reset(e, c);
                return;
        }
        (void)snprintf(words, sizeof(words),
                       "node %.253s does not say, and it is not the node that did (UID %.100s)",
                       c->api->node_name, *p->node_uid ? p->node_uid : "unknown");
        set_desired(c, LKG_DESIRED_UNKNOWN, words);
}

/* ---- the chain ---- */

static enum lkg_object_place parse_place(const char *word)
{
        for (int place = LKG_PLACE_NODE_ANNOTATION; place < _LKG_PLACE_MAX; place++)
                if (strcmp(word, lkg_place_name((enum lkg_object_place)place)) == 0)
                        return (enum lkg_object_place)place;
        return LKG_PLACE_NONE;
}

static void say_static(const struct lkg_config *config, struct lkg_saying *ret)
{
        struct lkg_error err = { 0 };

        *ret = (struct lkg_saying){ .says = LKG_SAYS_REFERENCE };
        if (lkg_reference_from_parts(config->remote.fixed.ns, config->remote.fixed.name,
                                     config->remote.fixed.key, config->remote.fixed.uid, &ret->reference,
                                     &err) >= 0)
                return;
        ret->says = LKG_SAYS_INVALID;
        (void)snprintf(ret->fault, sizeof(ret->fault), "%.500s", err.message);
}

static bool is_allowed(const struct lkg_config *config, const struct lkg_reference *reference)
{
        return lkg_reference_allowed((const char *const *)config->remote.allowed_sources.items,
                                     config->remote.allowed_sources.n_items, reference->ns, reference->name);
}

/* What @place says; the file speaks for itself. */
static void ask(struct lkg_engine *e, struct lkg_component *c, enum lkg_object_place place,
                struct lkg_saying *ret)
{
        if (place == LKG_PLACE_STATIC)
                say_static(e->config, ret);
        else
                lkg_api_node_says(c->api, place, lkg_boottime_ns(), ret);
        if (ret->says != LKG_SAYS_REFERENCE || is_allowed(e->config, &ret->reference))
                return;
        ret->says = LKG_SAYS_INVALID;
        (void)snprintf(ret->fault, sizeof(ret->fault),
                       "ConfigMap %.63s/%.253s is not one of remote.allowedSources", ret->reference.ns,
                       ret->reference.name);
}

/* The first place with a result. Return: NONE: no place has one, or (@ret_any false) there is no place. */
static enum lkg_object_place find_place(struct lkg_engine *e, struct lkg_component *c,
                                        struct lkg_saying *ret, bool *ret_any)
{
        *ret_any = false;
        for (size_t i = 0; i < e->config->remote.references.n_items; i++) {
                enum lkg_object_place place = parse_place(e->config->remote.references.items[i]);

                if (!lkg_api_in_use(e, place))
                        continue;
                *ret_any = true;
                if (place == LKG_PLACE_FILE)
                        return place;
                ask(e, c, place, ret);
                if (ret->says != LKG_SAYS_NOTHING)
                        return place;
        }
        return LKG_PLACE_NONE;
}

static void follow_saying(struct lkg_engine *e, struct lkg_component *c, const struct lkg_saying *saying)
{
        const char *node_uid = e->place == LKG_PLACE_STATIC ? NULL : c->api->node_says.uid;
        struct lkg_error err = { 0 };

        switch (saying->says) {
        case LKG_SAYS_REFERENCE:
                follow_configmap(e, c, &saying->reference, node_uid);
                return;
        case LKG_SAYS_UNKNOWN: /* the object stays followed, because it may be named again, unless it is not allowed any more */
                if (c->api->has_reference && !is_allowed(e->config, &c->api->reference))
                        (void)lkg_api_follow(c->api, NULL, &err);
                set_desired(c, LKG_DESIRED_UNKNOWN, saying->fault);
                return;
        case LKG_SAYS_INVALID:
                (void)lkg_api_follow(c->api, NULL, &err);
                set_desired(c, LKG_DESIRED_UNKNOWN, saying->fault);
                return;
        case LKG_SAYS_NOTHING:
        case LKG_SAYS_LOCAL:
                (void)lkg_api_follow(c->api, NULL, &err);
                if (saying->says == LKG_SAYS_LOCAL)
                        reset(e, c);
                else
                        follow_nothing(e, c);
                return;
        }
}

void lkg_engine_follow_reference(struct lkg_engine *e, struct lkg_component *c)
{
        struct lkg_saying saying = { .says = LKG_SAYS_NOTHING };
        enum lkg_object_place before = e->place;
        struct lkg_error err = { 0 };
        bool any;

        if (!e->reference_pending || !lkg_engine_is_remote(e, c))
                return;
        e->reference_pending = false;
        e->place = find_place(e, c, &saying, &any);
        if (e->place == LKG_PLACE_FILE || !any) {
                if (c->api)
                        (void)lkg_api_follow(c->api, NULL, &err);
                if (!any)
                        set_desired(c, LKG_DESIRED_UNKNOWN, "no reference yet");
                else if (before != LKG_PLACE_FILE)
                        e->remote_file.known = false; /* it may have changed unnoticed */
                return;
        }
        follow_saying(e, c, &saying);
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
        lkg_engine_follow_reference(e, c);
        if (e->place == LKG_PLACE_FILE && e->remote_file.path &&
            (!e->remote_file.known || concerns(&e->remote_file.way, touched)))
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
