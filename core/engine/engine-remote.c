/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which configuration a component follows: reference -> checkpoint -> assigned -> tried -> active, and back to the last
 * known good. Each step is durable before the next; the publication that shows it comes last (engine.c). What fails is
 * tried again by a later look and leaves everything as it was.
 *
 * architecture.md, "Dynamic configuration", has the flow.
 */

#include <lkg/log.h>

#include "engine-internal.h"
#include <lkg/track.h>

#define BUSY_TRIES       20u /* 100 ms each */
#define TRY_PAUSE_MAX_NS (60 * LKG_NSEC_PER_SEC)

static const struct lkg_touched everything = { .everything = true };

/* ---- begin ---- */

void lkg_engine_lock(int state_fd, struct lkg_engine_lock *ret)
{
        const struct timespec moment = { .tv_nsec = 100 * (long)LKG_NSEC_PER_MSEC };
        struct lkg_store_lock lock = { .fd = -EBADF };

        *ret = (struct lkg_engine_lock){ 0 };
        ret->result = lkg_store_lock(state_fd, &lock, &ret->err);
        for (unsigned i = 0; ret->result == -EBUSY && i < BUSY_TRIES; i++) {
                (void)nanosleep(&moment, NULL);
                ret->result = lkg_store_lock(state_fd, &lock, &ret->err);
        }
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
        return lkg_store_open_locked(e->options.state_fd, &taken, &e->store, &e->report, err);
}

int lkg_engine_open_store(struct lkg_engine *e, struct lkg_error *err)
{
        int r = open_store(e, err);

        e->store.admission = &e->admission;
        if (r >= 0)
                return 0;
        e->store.lock_fd = -EBADF;
        if (r == -EBUSY || r == -ENOMEM)
                return r;
        if (r == -EPROTO) { /* its content stays as it is; the node is still served */
                lkg_report_add(&e->report, LKG_ERROR, 6010, NULL,
                               "%s; remote configuration, bad list and trial are off until the next start",
                               err->message);
                lkg_log_error("dynamic configuration is off: %s", err->message);
                return 0;
        }
        lkg_report_add(
                &e->report, LKG_WARNING, 6013, NULL,
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

/* Layers over the store's active configuration; one that cannot be loaded is not bad, but cannot be served. */
static void restore(struct lkg_engine *e, struct lkg_component *c)
{
        const struct lkg_log_fields fields = { .component = c->config->name };
        LKG_CLEANUP(lkg_report_deinit) struct lkg_report ignored = LKG_REPORT_INIT;
        struct lkg_remote_base *base = NULL;
        struct lkg_dynamic *d = c->dynamic;
        struct lkg_error err = { 0 };
        char reason[LKG_REASON_MAX], fault[LKG_REASON_MAX];
        struct lkg_event event = { .kind = LKG_EVENT_LOST, .reason = reason, .fault = fault };

        if (!lkg_engine_is_remote(e, c)) {
                if (!lkg_config_source_is_local(&d->pointers.assigned))
                        lkg_report_add(
                                &c->remote_findings, LKG_NOTE, 6007, NULL,
                                "a remote configuration is assigned (ConfigMap %s/%s) and not used, because "
                                "remote configuration is off",
                                d->pointers.assigned.ns, d->pointers.assigned.name);
                return;
        }
        d->desired = LKG_DESIRED_UNKNOWN;
        (void)snprintf(d->desired_fault, sizeof(d->desired_fault), "no reference yet");
        if (lkg_config_source_is_local(&d->pointers.active))
                return;
        if (lkg_component_load_base(c, lkg_engine_env(e), &d->pointers.active, &base, &ignored, &err) >= 0) {
                lkg_component_set_base(c, base);
                c->guard_unchecked = true;
                return;
        }
        lkg_log(LOG_ERR, &fields, "the checkpoint of what was active cannot be used: %s", err.message);
        say_uid(reason, sizeof(reason), err.code == -EKEYREJECTED ? err.message : "failed to load current",
                &d->pointers.active);
        event.known = err.code == -EKEYREJECTED;
        (void)snprintf(fault, sizeof(fault), "%.500s", err.message);
        (void)lkg_engine_step(e, c, &event, &err);
}

/* Is a record lost, by the findings from @first on? */
static bool is_damaged(const struct lkg_report *report, size_t first)
{
        for (size_t i = first; i < report->n_findings; i++)
                if (report->findings[i].code == 4005)
                        return true;
        return false;
}

int lkg_engine_open_dynamic(struct lkg_engine *e, struct lkg_error *err)
{
        bool fresh = !e->started &&
                     lkg_publisher_is_fresh(
                             e->publisher); /* the death of an engine is not a start of the component */

        for (size_t i = 0; i < e->n_components && e->store.lock_fd >= 0; i++) {
                struct lkg_component *c = &e->components[i];
                size_t before = e->report.n_findings;
                bool opened = !c->dynamic;
                int r = c->dynamic ? 0
                                   : lkg_dynamic_open(&e->store, e->config, c->config, &c->dynamic,
                                                      &e->report, err);

                if (r == -ENOMEM)
                        return r;
                if (r < 0) {
                        lkg_report_add(&e->report, LKG_WARNING, 6013, NULL,
                                       "component %s has no memory for remote configuration: %s",
                                       c->config->name, err->message);
                        continue;
                }
                if (opened && lkg_engine_is_remote(e, c) && is_damaged(&e->report, before))
                        lkg_component_set_lost(
                                c, "what was remembered of remote configuration, its record is damaged");
                lkg_engine_check_pin(e, c);
                lkg_engine_learn_version(e, c);
                if (!c->base)
                        restore(e, c);
        }
        return lkg_engine_open_places(e, fresh, err);
}

int lkg_engine_reload_dynamic(struct lkg_engine *e, struct lkg_error *err)
{
        for (size_t i = 0; i < e->n_components; i++) {
                struct lkg_component *c = &e->components[i];

                if (!c->dynamic)
                        continue;
                lkg_dynamic_configure(c->dynamic, e->config, c->config);
                lkg_report_deinit(&c->remote_findings); /* found again by the rules of today */
                c->explained = false;
                if (!lkg_engine_is_remote(e, c)) { /* switched off, or another component's now */
                        lkg_component_set_base(c, NULL);
                        lkg_track_close(&c->good);
                        c->dynamic->desired = LKG_DESIRED_NONE;
                        *c->dynamic->desired_fault = '\0';
                } else if (!c->base) {
                        restore(e, c);
                }
        }
        return lkg_engine_open_dynamic(e, err);
}

/* ---- the component's version ---- */

void lkg_engine_learn_version(struct lkg_engine *e, struct lkg_component *c)
{
        const struct lkg_log_fields fields = lkg_component_log_fields(c);
        unsigned release = lkg_component_release(c);
        struct lkg_error err = { 0 };
        char words[64], guess[16];
        int r;

        if (!c->dynamic)
                return;
        (void)snprintf(guess, sizeof(guess), "%u.%u", release / 100, release % 100);
        (void)snprintf(words, sizeof(words), "%s", guess);
        if (c->facts && *c->facts->version)
                (void)snprintf(words, sizeof(words), "%.63s", c->facts->version);
        else if (*c->dynamic->store.release)
                return; /* not known in this moment: the one before most likely */
        r = lkg_dynamic_set_release(c->dynamic, words, guess, &e->report, &err);
        if (r < 0)
                lkg_log(LOG_ERR, &fields, "cannot begin the bad list of %s: %s", words, err.message);
        if (r <= 0)
                return;
        lkg_log(LOG_INFO, &fields, "bad list and startups of %s count", c->dynamic->store.release);
        c->waited = lkg_candidate_unref(c->waited);
        c->dirty |= LKG_DIRTY_BAD | LKG_DIRTY_DYNAMIC | LKG_DIRTY_CONDITION;
}

/* ---- what is local ---- */

static const struct lkg_candidate *local_candidate(const struct lkg_component *c)
{
        return c->base ? c->local.candidate : c->candidate;
}

/* The document of the base file, for pinned fields. */
static const struct lkg_value *local_base(const struct lkg_component *c)
{
        const struct lkg_candidate *local = local_candidate(c);

        return local && local->n_layers > 0 && local->layers[0].role == LKG_LAYER_BASE ? local->layers[0].doc
                                                                                       : NULL;
}

/* ---- trying what is assigned ---- */

static int check_guard(const struct lkg_component *c, const struct lkg_candidate *tried,
                       struct lkg_report *report)
{
        const struct lkg_config_component *k = c->config;
        const struct lkg_guard guard = {
                .hardened = k->guard.profile == LKG_GUARD_HARDENED,
                .deny = (const char *const *)k->guard.deny.items,
                .n_deny = k->guard.deny.n_items,
                .pinned = (const char *const *)k->guard.pinned.items,
                .n_pinned = k->guard.pinned.n_items,
        };
        const struct lkg_value *remote =
                tried && tried->n_layers > 0 && tried->layers[0].role == LKG_LAYER_REMOTE
                        ? tried->layers[0].doc
                        : NULL;

        return remote ? lkg_guard_check(&guard, remote, local_base(c), report) : 0;
}

static bool is_base_broken(const struct lkg_candidate *local)
{
        return local && local->n_layers > 0 && local->layers[0].role == LKG_LAYER_BASE &&
               !local->layers[0].doc;
}

enum tried { TRIED_GOOD, TRIED_BAD, TRIED_WAIT };

/*
 * Whose fault is it? Errors in the remote document itself, or that occur only together with it, are the remote document's. If the
 * local layers are also wrong without it, that proves nothing.
 */
static enum tried blame(const struct lkg_component *c, const struct lkg_track *track, bool *ret_syntax)
{
        const struct lkg_candidate *local = local_candidate(c);

        if (c->config->guard.pinned.n_items && is_base_broken(local))
                return TRIED_WAIT; /* the value to compare with is not known */
        if (c->remote_findings.n_severity[LKG_ERROR] > 0)
                return TRIED_BAD;
        if (lkg_track_valid(track))
                return TRIED_GOOD;
        if (track->candidate &&
            lkg_component_errors_in(&track->candidate->report, track->base->file, ret_syntax) > 0)
                return TRIED_BAD;
        if (local && local->state == LKG_CANDIDATE_INVALID && lkg_component_local_errors(c) > 0)
                return TRIED_WAIT;
        /* A local layer that has become invalid with the current configuration is not better with the next one. */
        return c->base && c->candidate && c->candidate->state == LKG_CANDIDATE_INVALID ? TRIED_WAIT
                                                                                       : TRIED_BAD;
}

static void say_not_used(struct lkg_component *c, const char *id, const char *reason)
{
        const struct lkg_where where = { .file = id };

        lkg_report_add(&c->remote_findings, LKG_WARNING, 6008, &where,
                       "is assigned and not used: %s; remove %sbad/%s/%s to try it again", reason, c->top,
                       c->config->name, id);
        c->dirty |= LKG_DIRTY_FINDINGS;
}

static void condemn_assigned(struct lkg_engine *e, struct lkg_component *c, enum lkg_bad_cause cause,
                             const char *words)
{
        const struct lkg_config_source *assigned = &c->dynamic->pointers.assigned;
        char reason[LKG_REASON_MAX], id[LKG_SOURCE_ID_MAX + 1];
        const struct lkg_event event = { .kind = LKG_EVENT_TRIED_BAD, .cause = cause, .reason = reason };
        struct lkg_error err = { 0 };

        say_uid(reason, sizeof(reason), words, assigned);
        lkg_config_source_id(assigned, id);
        say_not_used(c, id, reason);
        (void)lkg_engine_step(e, c, &event, &err);
}

/*
 * The findings of a tried configuration that will not be served. Findings of the local layers themselves, or found without one of
 * them, are shown with those layers, as long as they are true.
 */
static void keep_findings(struct lkg_component *c, const struct lkg_candidate *candidate)
{
        const struct lkg_candidate *local = local_candidate(c);

        for (size_t i = 0; candidate && i < candidate->report.n_findings; i++) {
                const struct lkg_finding *f = &candidate->report.findings[i];

                if (!f->incomplete && !(local && lkg_report_has(&local->report, f)))
                        lkg_report_add_copy(&c->remote_findings, f);
        }
        if (candidate)
                lkg_report_count_unlisted(&c->remote_findings, &candidate->report);
        c->dirty |= LKG_DIRTY_FINDINGS;
}

void lkg_engine_try_anew(struct lkg_component *c)
{
        if (*c->untried)
                c->dirty |= LKG_DIRTY_CONDITION;
        *c->untried = '\0';
        c->try_at_ns = c->try_pause_ns = 0;
}

static void retry_by(struct lkg_engine *e, uint64_t at_ns)
{
        if (e->retry_at_ns > at_ns)
                e->retry_at_ns = at_ns;
}

/* @track: the assigned configuration with today's local layers. Return: 0; 1: not a configuration at all; negative: a fault. */
static int open_assigned(struct lkg_engine *e, struct lkg_component *c, struct lkg_track *track,
                         struct lkg_error *err)
{
        struct lkg_remote_base *base = NULL;
        int r;

        lkg_report_deinit(&c->remote_findings);
        c->explained = true;
        c->dirty |= LKG_DIRTY_FINDINGS;
        r = lkg_component_load_base(c, lkg_engine_env(e), &c->dynamic->pointers.assigned, &base,
                                    &c->remote_findings, err);
        if (r == -EINVAL)
                return 1;
        if (r >= 0)
                r = lkg_component_open_track(c, lkg_engine_env(e), track, base, err);
        if (r < 0)
                return r;
        r = check_guard(c, track->candidate, &c->remote_findings);
        return r < 0 ? lkg_error_set(err, r, NULL, "guard") : 0;
}

/* An attempt may be dear (a document that takes all our memory), so each pause is twice the one before. */
static void try_later(struct lkg_engine *e, struct lkg_component *c, const struct lkg_error *why)
{
        const struct lkg_log_fields fields = lkg_component_log_fields(c);

        if (why->code == -ENOMEM)
                lkg_engine_out_of_memory(e);
        if (strcmp(c->untried, why->message) != 0) {
                lkg_log(LOG_ERR, &fields, "cannot try what is assigned, trying again: %s", why->message);
                (void)snprintf(c->untried, sizeof(c->untried), "%.500s", why->message);
                c->dirty |= LKG_DIRTY_CONDITION;
        }
        c->try_pause_ns = c->try_pause_ns == 0                     ? LKG_RETRY_MIN_NS
                          : 2 * c->try_pause_ns < TRY_PAUSE_MAX_NS ? 2 * c->try_pause_ns
                                                                   : TRY_PAUSE_MAX_NS;
        c->try_at_ns = lkg_boottime_ns() + c->try_pause_ns;
        retry_by(e, c->try_at_ns);
}

static void try_assigned(struct lkg_engine *e, struct lkg_component *c)
{
        const struct lkg_event good = { .kind = LKG_EVENT_TRIED_GOOD };
        struct lkg_error err = { 0 };
        bool syntax = false;
        int r = open_assigned(e, c, &c->tried, &err);

        if (r < 0) {
                try_later(e, c, &err);
                lkg_track_close(&c->tried);
                return;
        }
        lkg_engine_try_anew(c);
        if (r > 0) {
                condemn_assigned(e, c, LKG_BAD_LOAD,
                                 err.code == -EKEYREJECTED ? err.message : "failed to load current");
                return;
        }
        switch (blame(c, &c->tried, &syntax)) {
        case TRIED_GOOD:
                if (lkg_engine_step(e, c, &good, &err) < 0)
                        try_later(e, c, &err);
                break;
        case TRIED_BAD:
                keep_findings(c, c->tried.candidate);
                condemn_assigned(e, c, syntax ? LKG_BAD_PARSE : LKG_BAD_INVALID,
                                 syntax ? "failed to parse current" : "failed to validate current");
                break;
        case TRIED_WAIT:
                lkg_candidate_unref(c->waited);
                c->waited = lkg_candidate_ref((struct lkg_candidate *)local_candidate(c));
                break;
        }
        lkg_track_close(&c->tried);
}

/* Our own configuration forbids it now, or did all along and was read by an lkgfs that knew no guard. */
static void condemn_active(struct lkg_engine *e, struct lkg_component *c, const struct lkg_report *forbidden)
{
        char reason[LKG_REASON_MAX];
        const struct lkg_event event = { .kind = LKG_EVENT_FORBIDDEN, .reason = reason };
        struct lkg_error err = { 0 };

        say_uid(reason, sizeof(reason), "failed to validate current", &c->dynamic->pointers.active);
        lkg_report_append(&c->remote_findings, forbidden);
        if (lkg_engine_step(e, c, &event, &err) < 0)
                c->guard_unchecked = true;
}

/*
 * The findings of a refused configuration are in memory only. A later engine, or one that knows it as bad by its content
 * alone, finds them again; the verdict stays.
 */
static void explain_assigned(struct lkg_engine *e, struct lkg_component *c, const struct lkg_bad *bad)
{
        const struct lkg_log_fields fields = lkg_component_log_fields(c);
        struct lkg_track track = { 0 };
        struct lkg_error err = { 0 };
        bool syntax = false;
        int r;

        lkg_engine_try_anew(c);
        if (c->explained)
                return;
        r = open_assigned(e, c, &track, &err);
        if (r == 0 && blame(c, &track, &syntax) == TRIED_BAD)
                keep_findings(c, track.candidate);
        if (r < 0)
                lkg_log(LOG_WARNING, &fields, "cannot find again what is wrong with what is assigned: %s",
                        err.message);
        lkg_track_close(&track);
        say_not_used(c, bad->id, bad->reason);
        c->explained = true;
}

/* ---- steps before a publication ---- */

void lkg_engine_settle_remote(struct lkg_engine *e, struct lkg_component *c)
{
        const struct lkg_event settle = { .kind = LKG_EVENT_SETTLE };
        struct lkg_dynamic *d = c->dynamic;
        const struct lkg_bad *bad;
        struct lkg_error err = { 0 };

        if (!lkg_engine_is_remote(e, c)) {
                lkg_engine_try_anew(c);
                if (d)
                        (void)lkg_engine_step(e, c, &settle, &err);
                return;
        }
        /* Judged by local layers, so those first. */
        if (c->base && !c->local.candidate)
                (void)lkg_component_look_at_local(c, lkg_engine_env(e), &everything, &err);
        if (c->guard_unchecked && c->base && local_candidate(c) && c->candidate) {
                LKG_CLEANUP(lkg_report_deinit) struct lkg_report forbidden = LKG_REPORT_INIT;

                c->guard_unchecked = false;
                if (check_guard(c, c->candidate, &forbidden) >= 0 && forbidden.n_severity[LKG_ERROR] > 0)
                        condemn_active(e, c, &forbidden);
        }
        (void)lkg_engine_step(e, c, &settle, &err);
        if (!lkg_config_source_is_local(&d->pointers.assigned) &&
            !lkg_config_source_equal(&d->pointers.assigned, &d->pointers.active)) {
                bad = lkg_dynamic_is_bad(d, &d->pointers.assigned);
                if (bad)
                        explain_assigned(e, c, bad);
                else if (lkg_boottime_ns() < c->try_at_ns)
                        retry_by(e, c->try_at_ns);
                else if (!c->waited || c->waited != local_candidate(c))
                        try_assigned(e, c);
        }
        if (!c->good.stack) /* it may be another file now; the open one was checked already */
                (void)lkg_component_look_at_good(c, lkg_engine_env(e), &everything, &err);
}

static int default_rules(const struct lkg_engine *e, struct lkg_trial_rules *ret)
{
        struct lkg_trial_settings settings = lkg_trial_settings_of(e->config);
        char ignored[256];

        return lkg_trial_rules_make(&settings, NULL, NULL, NULL, NULL, ret, ignored);
}

/* With trial.scope all: what do the layers come to? */
static void note_layers(struct lkg_engine *e, struct lkg_component *c)
{
        char sha256[LKG_SHA256_HEX] = "";
        struct lkg_event event = { .kind = LKG_EVENT_LAYERS, .sha256 = sha256 };
        struct lkg_error err = { 0 };

        if (!c->candidate || c->candidate->state != LKG_CANDIDATE_VALID ||
            (!c->same &&
             (!c->rendered.data || lkg_sha256_hex(c->rendered.data, c->rendered.size, sha256) < 0)))
                return;
        if (c->verdict == LKG_AVOID)
                event.mark = lkg_dynamic_bad_document(c->dynamic, sha256);
        (void)lkg_engine_step(e, c, &event, &err);
}

void lkg_engine_finish_avoiding(struct lkg_engine *e, struct lkg_component *c)
{
        const struct lkg_event event = { .kind = LKG_EVENT_RESUMED };
        struct lkg_error err = { 0 };

        if (c->dynamic)
                (void)lkg_engine_step(e, c, &event, &err);
}

void lkg_engine_prepare_remote(struct lkg_engine *e, struct lkg_component *c)
{
        struct lkg_event event = { .kind = LKG_EVENT_SERVED };
        struct lkg_error err = { 0 };

        if (!c->dynamic)
                return;
        if (c->dynamic->scope_all)
                note_layers(e, c);
        if (c->base)
                event.rules = c->base->rules;
        else if (default_rules(e, &event.rules) < 0)
                return;
        (void)lkg_engine_step(e, c, &event, &err);
        lkg_engine_update_alive(e, c);
}

void lkg_engine_collect(struct lkg_engine *e)
{
        struct lkg_config_source *keep = calloc(e->n_components * (4 + LKG_HISTORY_MAX) + 1, sizeof(*keep));
        struct lkg_error err = { 0 };
        size_t n = 0;

        if (!keep || e->store.lock_fd < 0) {
                free(keep);
                return;
        }
        for (size_t i = 0; i < e->n_components; i++) {
                const struct lkg_component *c = &e->components[i];

                if (!c->dynamic) { /* its needs are unknown */
                        free(keep);
                        return;
                }
                keep[n++] = c->dynamic->pointers.assigned;
                keep[n++] = c->dynamic->pointers.active;
                keep[n++] = c->dynamic->pointers.good.source;
                for (size_t k = 0; k < c->history.n_entries && k < LKG_HISTORY_MAX; k++)
                        if (lkg_config_source_parse_id(c->history.entries[k].source, &keep[n]) >= 0)
                                n++;
        }
        if (lkg_store_collect(&e->store, keep, n, &err) < 0)
                lkg_log_warning("cannot remove old checkpoints: %s", err.message);
        free(keep);
}
