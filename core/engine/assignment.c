/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Acts on the answer of the places (<lkg/places.h>): a new assignment, back to the local configuration, or nothing because the
 * answer is unclear. Rules: docs/specification.md 4.2, 4.4.
 */
#include <lkg/base.h>

#include "engine-internal.h"

/* Makes the next look try again. */
static void again(struct lkg_engine *e, struct lkg_component *c, const char *words,
                  const struct lkg_error *err)
{
        const struct lkg_log_fields fields = lkg_component_log_fields(c);
        bool told =
                c->dynamic->desired == LKG_DESIRED_UNKNOWN && strcmp(c->dynamic->desired_fault, words) == 0;

        lkg_places_again(e->places);
        e->clock.retry_at_ns = lkg_boottime_ns() + LKG_RETRY_MAX_NS;
        lkg_component_set_desired(c, LKG_DESIRED_UNKNOWN, words, "");
        if (!told) /* log it once: a full disk stays full for a long time */
                lkg_log(LOG_ERR, &fields, "%s: %s", words, err->message);
}

/* Reports a recorded assignment. It may be bad at once: a new version of bad content is bad, too. */
static void tell_assigned(struct lkg_engine *e, const struct lkg_component *c,
                          const struct lkg_config_source *source)
{
        const struct lkg_log_fields fields = lkg_component_log_fields(c);
        const struct lkg_bad *bad = lkg_bad_find(&c->dynamic->bad, source);

        lkg_log(LOG_NOTICE, &fields, "assigned: ConfigMap %s/%s, UID %s, resourceVersion %s, key %s",
                source->ns, source->name, source->uid, source->version, source->key);
        lkg_engine_event(e, c, false, "ConfigAssigned", source, "");
        if (bad)
                lkg_engine_event(e, c, true, "ConfigRejected", source, bad->reason);
}

/* Limits that come while the content is on trial: its holder takes a slot. Limits that go change nothing for it. */
static void take_limits(struct lkg_remote_base *base, const struct lkg_configmap *configmap)
{
        const struct lkg_rollout_limits limits = lkg_rollout_limits_of(configmap);

        if (limits.max_in_trial)
                base->limits = limits;
}

static void assign(struct lkg_engine *e, struct lkg_component *c, const struct lkg_places_answer *answer)
{
        const struct lkg_config_source *source = &answer->source;
        struct lkg_dynamic *d = c->dynamic;
        const struct lkg_event event = { .kind = LKG_EVENT_ASSIGNED,
                                         .source = source,
                                         .node_uid = answer->node_uid };
        bool known = lkg_config_source_equal(&d->pointers.assigned, source);
        struct lkg_error err = { 0 };
        char words[LKG_REASON_MAX];
        int r = 0;

        if (known && strcmp(d->pointers.assigned.sha256, source->sha256) != 0) {
                (void)snprintf(
                        words, sizeof(words),
                        "ConfigMap %.100s/%.100s has another content and the same resourceVersion %.100s%s",
                        source->ns, source->name, source->version,
                        answer->place == LKG_PLACE_FILE
                                ? "; remove metadata.resourceVersion from the file, or change it"
                                : "");
                lkg_component_set_desired(c, LKG_DESIRED_UNKNOWN, words, "");
                return;
        }

        if (!known || !lkg_store_has_checkpoint(&e->store, source))
                r = lkg_store_save_checkpoint(&e->store, answer->configmap, &err);
        if (r < 0) {
                (void)snprintf(words, sizeof(words),
                               "failed to save config checkpoint for object with UID %s", source->uid);
                again(e, c, words, &err);
                return;
        }
        lkg_component_set_desired(c, LKG_DESIRED_REMOTE, "", "");
        if (known && c->base && c->base->fault && lkg_config_source_equal(&c->base->source, source))
                (void)lkg_component_restore_base(c, source, &err); /* it was lost, and is there again */
        if (known)
                return;
        r = lkg_engine_step(e, c, &event, &err);
        if (r < 0) {
                (void)snprintf(words, sizeof(words),
                               "failed to set current config checkpoint to object with UID %s", source->uid);
                again(e, c, words, &err);
                return;
        }
        tell_assigned(e, c, source);
        if (c->base && lkg_config_source_same_content(&c->base->source, source)) {
                c->base->source = *source;
                take_limits(c->base, answer->configmap);
        }
        c->slots.needed = false;
        lkg_component_try_anew(c);
        lkg_component_note_tried(c, false);
        lkg_report_deinit(&c->assigned.findings);
}

static void reset(struct lkg_engine *e, struct lkg_component *c)
{
        const struct lkg_log_fields fields = lkg_component_log_fields(c);
        const struct lkg_pointers *p = &c->dynamic->pointers;
        const struct lkg_event event = { .kind = LKG_EVENT_RESET };
        struct lkg_error err = { 0 };

        lkg_component_set_desired(c, LKG_DESIRED_LOCAL, "", "");
        if (lkg_config_source_is_local(&p->assigned) && lkg_config_source_is_local(&p->active) &&
            lkg_config_source_is_local(&p->good.source))
                return;
        if (lkg_engine_step(e, c, &event, &err) < 0) {
                again(e, c, "failed to reset to local (default or init) config", &err);
                return;
        }
        lkg_log(LOG_NOTICE, &fields, "reset to the local configuration");
        lkg_engine_event(e, c, false, "ConfigAssigned", &c->dynamic->pointers.assigned, "");
        lkg_component_try_anew(c);
        lkg_report_deinit(&c->assigned.findings);
        lkg_component_follow(c, NULL);
}

/* Another Node with the same name now has the same reference: from now on, removing it there counts. */
static void note_node(struct lkg_engine *e, struct lkg_component *c, const struct lkg_config_source *source,
                      const char *node_uid)
{
        const struct lkg_config_source *assigned = &c->dynamic->pointers.assigned;
        const struct lkg_event event = { .kind = LKG_EVENT_NODE, .node_uid = node_uid };
        const struct lkg_log_fields fields = lkg_component_log_fields(c);
        struct lkg_error err = { 0 };

        if (strcmp(assigned->uid, source->uid) != 0 || strcmp(assigned->key, source->key) != 0 ||
            lkg_engine_step(e, c, &event, &err) >= 0)
                return;
        lkg_log(LOG_ERR, &fields, "cannot note which Node refers to the configuration, trying again: %s",
                err.message);
        lkg_places_ask(e->places);
        lkg_engine_retry_by(e, lkg_boottime_ns() + LKG_RETRY_MAX_NS);
}

/* @touched: NULL = do not look at files now */
static void follow(struct lkg_engine *e, struct lkg_component *c, const struct lkg_touched *touched)
{
        const struct lkg_dynamic *d = c->dynamic;
        const struct lkg_places_known known = {
                .assigned = &d->pointers.assigned,
                .node_uid = d->pointers.node_uid,
                .carried_out = d->desired == LKG_DESIRED_REMOTE && !*d->waiting,
                .waits_for_slot = lkg_component_waits_for_slot(c),
        };
        struct lkg_places_answer answer;

        lkg_places_desired(e->places, &known, touched, &answer);
        lkg_engine_retry_by(e, answer.again_at_ns);
        if (answer.node_uid)
                note_node(e, c, &answer.source, answer.node_uid);
        switch (answer.says) {
        case LKG_PLACES_UNCHANGED:
                break;
        case LKG_PLACES_UNKNOWN:
                lkg_component_set_desired(c, LKG_DESIRED_UNKNOWN, answer.words, "");
                break;
        case LKG_PLACES_LOCAL:
                reset(e, c);
                break;
        case LKG_PLACES_CONFIGMAP:
                assign(e, c, &answer);
                break;
        case LKG_PLACES_WAITING:
                lkg_component_set_desired(c, LKG_DESIRED_REMOTE, "", answer.words);
                break;
        }
        lkg_places_answer_deinit(&answer);
}

void lkg_engine_look_remote(struct lkg_engine *e, struct lkg_component *c, const struct lkg_touched *touched)
{
        if (lkg_component_is_remote(c))
                follow(e, c, touched);
}

/* ---- lifetime of the places ---- */

static int run_exec(void *userdata)
{
        struct lkg_engine *e = userdata;
        struct lkg_message m;

        if (!e->server.supervisor)
                return -EAGAIN; /* we are still starting */
        lkg_message_init(&m, LKG_MSG_CREDENTIAL);
        lkg_peer_send(e->server.supervisor, &m);
        return 0;
}

static struct lkg_component *follower(struct lkg_engine *e)
{
        for (size_t i = 0; i < e->n_components; i++)
                if (e->components[i].findings.api)
                        return &e->components[i];
        return NULL;
}

static bool turn(void *userdata)
{
        struct lkg_engine *e = userdata;
        struct lkg_component *c = follower(e);

        if (!c)
                return false;
        if (lkg_component_is_remote(c))
                follow(e, c, NULL);
        lkg_places_update_findings(e->places);
        e->hooks->cycle(e, /* look= */ lkg_places_looks_at_file(e->places));
        return true;
}

static enum lkg_slot_outcome slot_outcome(const char *uid, const char *sha256,
                                          char reason[static LKG_SLOT_REASON_MAX], void *userdata)
{
        const struct lkg_component *c = follower(userdata);

        return c && c->dynamic ? lkg_lifecycle_slot_outcome(&c->dynamic->pointers, &c->dynamic->bad, uid,
                                                            sha256, reason)
                               : LKG_OUTCOME_OVER;
}

static void rollout_halted(const struct lkg_config_source *source, const char *words, void *userdata)
{
        struct lkg_component *c = follower(userdata);

        if (c && c->dynamic)
                lkg_engine_event(userdata, c, true, "RolloutHalted", source, words);
}

static bool vouched_or_settled(const char *path, const char *sha256, void *userdata)
{
        struct lkg_engine *e = userdata;

        return lkg_is_unsettled(path, sha256, &e->settled);
}

void lkg_engine_new_places(struct lkg_engine *e)
{
        const struct lkg_places_options options = {
                .event = e->event,
                .admission = &e->admission,
                .source_path = e->paths.source,
                .mount_point = e->paths.mount_point,
                .source_fd = e->options.source_fd,
                .runtime_fd = e->options.runtime_fd,
                .run_exec = run_exec,
                .turn = turn,
                .unsettled = vouched_or_settled,
                .slot_outcome = slot_outcome,
                .rollout_halted = rollout_halted,
                .userdata = e,
        };

        e->places = lkg_places_new(&options, e->env.config);
}

void lkg_engine_open_places(struct lkg_engine *e, bool fresh)
{
        const struct lkg_report *findings;

        lkg_places_open(e->places, /* wanted= */ e->store.lock_fd >= 0, fresh);
        findings = lkg_places_findings(e->places);
        for (size_t i = 0; i < e->n_components; i++)
                e->components[i].findings.api = lkg_component_is_remote(&e->components[i]) ? findings : NULL;
        if (e->started)
                lkg_places_run(e->places);
}
