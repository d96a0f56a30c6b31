/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which configuration a component follows: reference -> checkpoint -> assigned -> tried -> active, and back to the last known
 * good. Each step is durable before the next; the publication that shows it comes last (engine.c). A step that fails changes
 * nothing and is tried again by a later look.
 *
 * architecture.md, "The life of a bad ConfigMap", describes the flow.
 */
#include <lkg/base.h>

#include "engine-internal.h"

#define BUSY_TRIES       20u
#define TRY_PAUSE_MAX_NS (60 * LKG_NSEC_PER_SEC)

/* ---- opening ---- */

void lkg_engine_lock(int state_fd, struct lkg_engine_lock *ret)
{
        struct lkg_store_lock lock = { .fd = -EBADF };

        *ret = (struct lkg_engine_lock){ 0 };
        ret->result = lkg_store_lock(state_fd, BUSY_TRIES, &lock, &ret->err);
        ret->fd = lock.fd;
        ret->read_only = lock.read_only;
}

static int open_store(struct lkg_engine *e, struct lkg_error *err)
{
        const struct lkg_engine_lock *lock = e->options.lock;
        struct lkg_store_lock taken;
        struct lkg_engine_lock own;

        if (!lock) {
                lkg_engine_lock(e->options.state_fd, &own);
                lock = &own;
        }
        if (lock->result < 0) {
                *err = lock->err;
                return lock->result;
        }
        taken = (struct lkg_store_lock){ .fd = lock->fd, .read_only = lock->read_only };
        return lkg_store_open_locked(e->options.state_fd, &taken, &e->store, &e->reports.setup, err);
}

int lkg_engine_open_store(struct lkg_engine *e, struct lkg_error *err)
{
        int r = open_store(e, err);

        e->store.admission = &e->admission;
        if (r >= 0)
                return 0;
        e->store.lock_fd = -EBADF;
        if (r == -EBUSY)
                return r;
        if (r == -EPROTO) { /* the store stays as it is; the node is still served */
                lkg_report_add(&e->reports.setup, LKG_ERROR, 6010, NULL,
                               "%s; remote configuration, bad list and trial are off until the next start",
                               err->message);
                lkg_log_error("dynamic configuration is off: %s", err->message);
                return 0;
        }
        lkg_report_add(
                &e->reports.setup, LKG_WARNING, 6013, NULL,
                "the state directory cannot be written: %s; remote configuration, bad list and trial are "
                "off until the next start",
                err->message);
        lkg_log_error("dynamic configuration is off: %s", err->message);
        return 0;
}

static void say_uid(char *buf, size_t size, const char *words, const struct lkg_config_source *source)
{
        (void)snprintf(buf, size, "%.240s (UID: %s)", words, source->uid);
}

/*
 * Puts the layers over the store's active configuration. If its checkpoint is lost, what follows is tried until it is recorded; if
 * the disk has an error, until it can be read. It is bad only if an engine died of it.
 */
static void load_active(struct lkg_engine *e, struct lkg_component *c)
{
        const struct lkg_log_fields fields = { .component = c->config->name };
        const struct lkg_config_source active = c->dynamic->pointers.active;
        struct lkg_error err = { 0 };
        char reason[LKG_REASON_MAX], fault[LKG_REASON_MAX];
        struct lkg_event event = { .kind = LKG_EVENT_LOST, .reason = reason, .fault = fault };
        int r = lkg_config_source_is_local(&active) ? 0 : lkg_component_restore_base(c, &active, &err);

        if (r >= 0) {
                c->loss.unloaded = c->loss.unread = false;
                return;
        }
        if (!c->loss.unloaded)
                lkg_log(LOG_ERR, &fields, "the checkpoint of what was active cannot be used: %s",
                        err.message);
        c->loss.unread = c->active && !lkg_checkpoint_is_lost(r);
        say_uid(reason, sizeof(reason), err.code == -EKEYREJECTED ? err.message : "failed to load current",
                &active);
        event.known = err.code == -EKEYREJECTED;
        (void)snprintf(fault, sizeof(fault), "%.500s", err.message);
        c->loss.unloaded = c->loss.unread || lkg_engine_step(e, c, &event, &err) < 0;
        if (!c->loss.unloaded)
                return;
        lkg_component_keep_without_base(c, fault);
        lkg_engine_retry_by(e, lkg_boottime_ns() + LKG_RETRY_MAX_NS);
}

static void restore(struct lkg_engine *e, struct lkg_component *c)
{
        struct lkg_dynamic *d = c->dynamic;

        if (lkg_component_is_remote(c)) {
                d->desired = LKG_DESIRED_UNKNOWN;
                (void)snprintf(d->desired_fault, sizeof(d->desired_fault), "no reference yet");
                load_active(e, c);
        } else {
                lkg_component_say_switched_off(c);
        }
}

void lkg_engine_restore_dynamic(struct lkg_engine *e)
{
        for (size_t i = 0; i < e->n_components; i++) {
                struct lkg_component *c = &e->components[i];

                lkg_component_learn_version(c, &e->reports.setup);
                if (c->dynamic && !c->base)
                        restore(e, c);
        }
}

void lkg_engine_open_dynamic(struct lkg_engine *e)
{
        struct lkg_error err = { 0 };
        /* an engine that died is not a start of the component */
        bool fresh = !e->started && lkg_publisher_is_fresh(e->publisher);

        for (size_t i = 0; i < e->n_components && e->store.lock_fd >= 0; i++) {
                struct lkg_component *c = &e->components[i];
                size_t before = e->reports.setup.n_findings;
                bool opened = !c->dynamic;
                int r = c->dynamic ? 0
                                   : lkg_dynamic_open(&e->store, e->env.config, c->config, &c->dynamic,
                                                      &e->reports.setup, &err);

                if (r < 0) {
                        lkg_report_add(&e->reports.setup, LKG_WARNING, 6013, NULL,
                                       "component %s has no memory for remote configuration: %s",
                                       c->config->name, err.message);
                        continue;
                }
                if (opened && lkg_component_is_remote(c) &&
                    lkg_report_has_code(&e->reports.setup, before, 4005))
                        lkg_component_set_lost(
                                c, "what was remembered of remote configuration, its record is damaged");
                lkg_engine_happened(e, c, LKG_EVENT_PIN);
        }
        lkg_engine_open_places(e, fresh);
}

void lkg_engine_reload_dynamic(struct lkg_engine *e)
{
        for (size_t i = 0; i < e->n_components; i++) {
                struct lkg_component *c = &e->components[i];

                if (!c->dynamic)
                        continue;
                lkg_dynamic_configure(c->dynamic, e->env.config, c->config);
                lkg_report_deinit(&c->assigned.findings); /* found again by the current rules */
                lkg_component_note_tried(c, false);
                /* switched off, or another component follows it now */
                if (!lkg_component_is_remote(c)) {
                        lkg_component_follow(c, NULL);
                        c->dynamic->desired = LKG_DESIRED_NONE;
                        *c->dynamic->desired_fault = '\0';
                }
        }
        lkg_engine_open_dynamic(e);
        lkg_engine_restore_dynamic(e);
}

/* ---- trying the assigned configuration ---- */

/* An attempt may be expensive (a document that takes all our memory), so each pause is twice as long as the last one. */
static void try_later(struct lkg_engine *e, struct lkg_component *c, const struct lkg_error *why)
{
        const struct lkg_log_fields fields = lkg_component_log_fields(c);

        if (strcmp(c->assigned.untried, why->message) != 0) {
                lkg_log(LOG_ERR, &fields, "cannot try what is assigned, trying again: %s", why->message);
                (void)snprintf(c->assigned.untried, sizeof(c->assigned.untried), "%.500s", why->message);
        }
        c->assigned.try_pause_ns = c->assigned.try_pause_ns == 0 ? LKG_RETRY_MIN_NS
                                   : 2 * c->assigned.try_pause_ns < TRY_PAUSE_MAX_NS
                                           ? 2 * c->assigned.try_pause_ns
                                           : TRY_PAUSE_MAX_NS;
        c->assigned.try_at_ns = lkg_boottime_ns() + c->assigned.try_pause_ns;
        lkg_engine_retry_by(e, c->assigned.try_at_ns);
}

/* Return: is it marked? Without a mark, every cycle would try it. */
static bool condemn_assigned(struct lkg_engine *e, struct lkg_component *c, enum lkg_bad_cause cause,
                             const char *words)
{
        const struct lkg_config_source *assigned = &c->dynamic->pointers.assigned;
        char reason[LKG_REASON_MAX], id[LKG_SOURCE_ID_MAX + 1];
        const struct lkg_event event = { .kind = LKG_EVENT_TRIED_BAD, .cause = cause, .reason = reason };
        struct lkg_error err = { 0 };

        say_uid(reason, sizeof(reason), words, assigned);
        lkg_config_source_id(assigned, id);
        lkg_component_say_not_used(c, id, reason);
        if (lkg_engine_step(e, c, &event, &err) >= 0)
                return true;
        try_later(e, c, &err);
        return false;
}

/* ---- slots of the rollout ---- */

/* Says which slot is wanted, kept or given back. Return: may this node switch to what it wants? */
static bool has_slot(struct lkg_engine *e, struct lkg_component *c)
{
        struct lkg_slot_wish wish;
        char words[256], held_back[256] = "";
        bool go_on, may = !c->slots.needed ||
                          lkg_places_may_switch(e->places, &c->dynamic->pointers.assigned, held_back);

        lkg_component_slot_wish(c, lkg_places_newest(e->places), lkg_realtime_ns(), &wish);
        wish.any = wish.any && may;
        go_on = lkg_rollout_lets_go(lkg_places_slot(e->places, &wish, words),
                                    e->env.config->remote.rollout_slots == LKG_SLOTS_PREFER);
        go_on = !c->slots.needed || (wish.any && go_on);
        if (!go_on && may && *c->dynamic->waiting) {
                (void)snprintf(held_back, sizeof(held_back), "%.130s; %.120s", words, c->dynamic->waiting);
                may = false;
        }
        lkg_component_say_slot(c, go_on ? "" : may ? words : held_back);
        return go_on;
}

/* Return: does it stay as it is until the local layers change? */
static bool judge_assigned(struct lkg_engine *e, struct lkg_component *c, const struct lkg_candidate *tried)
{
        const struct lkg_event good = { .kind = LKG_EVENT_TRIED_GOOD };
        struct lkg_error err = { 0 };
        bool syntax = false;

        switch (lkg_component_blame(c, tried, &syntax)) {
        case LKG_TRIED_GOOD:
                c->slots.needed = lkg_component_needs_slot(c);
                if (!has_slot(e, c))
                        break;
                c->slots.needed = false;
                if (lkg_engine_step(e, c, &good, &err) < 0)
                        try_later(e, c, &err);
                break;
        case LKG_TRIED_BAD:
                lkg_component_keep_findings(c, tried);
                return condemn_assigned(e, c, syntax ? LKG_BAD_PARSE : LKG_BAD_INVALID,
                                        syntax ? "failed to parse current" : "failed to validate current");
        case LKG_TRIED_WAIT:
                c->slots.needed = false; /* who cannot use a slot leaves it to others */
                return true;
        }
        return false;
}

static void try_assigned(struct lkg_engine *e, struct lkg_component *c)
{
        LKG_CLEANUP(lkg_candidate_unrefp) struct lkg_candidate *tried = NULL;
        struct lkg_error err = { 0 };
        bool done = false;
        int r = lkg_component_load_assigned(c, &tried, &err);

        if (r < 0)
                try_later(e, c, &err);
        else
                lkg_component_try_anew(c);
        if (r > 0)
                done = condemn_assigned(e, c, LKG_BAD_LOAD,
                                        err.code == -EKEYREJECTED ? err.message : "failed to load current");
        else if (r == 0)
                done = judge_assigned(e, c, tried);
        lkg_component_note_tried(c, done);
}

/* The lkgfs configuration forbids it now, or always did and an lkgfs without guards accepted it. */
static void condemn_active(struct lkg_engine *e, struct lkg_component *c, const struct lkg_report *forbidden)
{
        char reason[LKG_REASON_MAX];
        const struct lkg_event event = { .kind = LKG_EVENT_FORBIDDEN, .reason = reason };

        say_uid(reason, sizeof(reason), "failed to validate current", &c->dynamic->pointers.active);
        lkg_report_append(&c->assigned.findings, forbidden);
        if (lkg_engine_step(e, c, &event, NULL) < 0)
                c->due.guard = true;
}

/* ---- steps before a publication ---- */

void lkg_engine_settle_remote(struct lkg_engine *e, struct lkg_component *c)
{
        const struct lkg_log_fields fields = lkg_component_log_fields(c);
        struct lkg_dynamic *d = c->dynamic;
        const struct lkg_bad *bad;
        struct lkg_error err = { 0 };

        if (!lkg_component_is_remote(c)) {
                lkg_component_try_anew(c);
                if (d)
                        lkg_engine_happened(e, c, LKG_EVENT_SETTLE);
                return;
        }
        if (c->loss.unloaded)
                load_active(e, c);
        if (c->due.guard && c->base && lkg_component_local(c) && c->candidate) {
                LKG_CLEANUP(lkg_report_deinit) struct lkg_report forbidden = LKG_REPORT_INIT;

                c->due.guard = false;
                lkg_component_check_guard(c, c->candidate, &forbidden);
                if (forbidden.n_severity[LKG_ERROR] > 0)
                        condemn_active(e, c, &forbidden);
        }
        lkg_engine_happened(e, c, LKG_EVENT_SETTLE);
        if (!lkg_config_source_is_local(&d->pointers.assigned) &&
            !lkg_config_source_equal(&d->pointers.assigned, &d->pointers.active)) {
                bad = lkg_bad_find(&d->bad, &d->pointers.assigned);
                if (bad)
                        lkg_component_explain_assigned(c, bad);
                else if (lkg_boottime_ns() < c->assigned.try_at_ns)
                        lkg_engine_retry_by(e, c->assigned.try_at_ns);
                else if (!lkg_component_was_tried(c) && has_slot(e, c))
                        try_assigned(e, c);
                c->slots.needed = c->slots.needed && !bad;
        } else {
                c->slots.needed = false;
        }
        (void)has_slot(e, c);
        if (lkg_component_load_good(c, &err) < 0)
                lkg_log(LOG_DEBUG, &fields, "cannot look at what a rollback would serve: %s", err.message);
}

/* With trial.scope all: tells the lifecycle which document the layers produce. */
static void note_layers(struct lkg_engine *e, struct lkg_component *c)
{
        struct lkg_event event = { .kind = LKG_EVENT_LAYERS, .sha256 = "" };

        if (!c->candidate || c->candidate->state != LKG_CANDIDATE_VALID)
                return;
        if (!lkg_component_serves_candidate(c))
                event.sha256 = c->candidate->sha256;
        if (lkg_component_verdict(c) == LKG_AVOID)
                event.mark = lkg_dynamic_bad_document(c->dynamic, event.sha256);
        (void)lkg_engine_step(e, c, &event, NULL);
}

void lkg_engine_prepare_remote(struct lkg_engine *e, struct lkg_component *c)
{
        struct lkg_event event = { .kind = LKG_EVENT_SERVED };

        if (!c->dynamic)
                return;
        if (c->dynamic->scope_all)
                note_layers(e, c);
        if (lkg_component_trial_rules(c, &event.rules) < 0)
                return;
        (void)lkg_engine_step(e, c, &event, NULL);
        lkg_engine_update_alive(e, c);
}
