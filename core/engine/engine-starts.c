/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A component starts: remember it, ask why where somebody knows, look at the trial, switch, answer. The opener waits for the
 * answer, so everything here is bounded; what its command line means is looked at afterwards.
 *
 * Whether a start counts is decided by facts, in this order of trust: our own request for a restart (the supervisor's file
 * `restarted`), how the process before it ended, the boot id, and the service manager's word (its file `start`).
 */
#include <fcntl.h>
#include <inttypes.h>

#include <lkg/file.h>
#include <lkg/log.h>

#include "engine-internal.h"

#define MANAGER_NS   (1 * LKG_NSEC_PER_SEC) /* for the manager's word; the caller's open() is waiting */
#define OWN_EVENT_NS (2 * LKG_NSEC_PER_SEC) /* a watcher ends itself at once */

/* ---- facts ---- */

/* Did we ask for this start? Then nothing started since we did. */
static bool was_asked_for(const struct lkg_component *c)
{
        const struct lkg_startups *starts = &c->dynamic->startups;
        uint64_t now = lkg_boottime_ns(), wall = lkg_realtime_ns();
        LKG_CLEANUP(lkg_freep) char *text = NULL;
        struct lkg_fact_restarted last;

        if (!c->facts || lkg_fact_read(c->facts->dirfd, LKG_FACT_RESTARTED, &text, NULL) < 0 ||
            !lkg_fact_restarted_parse(text, &last) ||
            strncmp(last.result, "failed", strlen("failed")) == 0 ||
            strcmp(last.boot, c->dynamic->boot) != 0 || last.asked_ns > now)
                return false;
        return starts->n_items == 0 ||
               starts->items[starts->n_items - 1].time_ns < wall - (now - last.asked_ns);
}

/* The service manager's word about this very process. Return: true when it has one. */
static bool manager_says(const struct lkg_component *c, int pid, uint64_t start_time, bool *ret_automatic)
{
        LKG_CLEANUP(lkg_freep) char *text = NULL;
        struct lkg_fact_start start;

        if (!c->facts || lkg_fact_read(c->facts->dirfd, LKG_FACT_START, &text, NULL) < 0 ||
            !lkg_fact_start_parse(text, &start) || start.pid != pid || start.start_time != start_time)
                return false;
        *ret_automatic = start.why == LKG_START_AUTOMATIC;
        return true;
}

/* ---- how the process before it ended ---- */

/* kube-proxy ends itself when its file changes; what crashes then did not. */
static bool take_own_event(struct lkg_component *c)
{
        bool own = c->own_event && !lkg_was_killed(c->ended_fd);

        c->own_event = false;
        c->ended_fd = lkg_close(c->ended_fd);
        return own;
}

/* ---- a start ---- */

/* The configuration on trial: a remote one or, where every generation is on trial, this document. @id: of the mark */
static int condemn_active(struct lkg_component *c, char reason[static LKG_REASON_MAX],
                          char id[static LKG_SOURCE_ID_MAX + 1], struct lkg_error *err)
{
        struct lkg_dynamic *d = c->dynamic;
        struct lkg_config_source source = d->pointers.active;

        if (!lkg_config_source_is_local(&source) &&
            !lkg_config_source_equal(&source, &d->pointers.good.source)) {
                (void)snprintf(reason, LKG_REASON_MAX,
                               "current failed trial period due to crash loop (UID: %s)", source.uid);
        } else {
                source = lkg_dynamic_document_source(c->active->sha256);
                memcpy(source.sha256, c->active->sha256, sizeof(source.sha256));
                (void)snprintf(reason, LKG_REASON_MAX,
                               "current failed trial period due to crash loop (local@%.12s)",
                               c->active->sha256);
        }
        lkg_config_source_id(&source, id);
        return lkg_dynamic_condemn(d, &source, NULL, LKG_BAD_CRASHED, reason, lkg_realtime_ns(), err);
}

/* When it cannot be noted as a whole everything is as it was, and the next start tries again. */
static int crash_loop(struct lkg_engine *e, struct lkg_component *c)
{
        const struct lkg_log_fields fields = lkg_engine_fields(c);
        struct lkg_error err = { 0 };
        char reason[LKG_REASON_MAX], id[LKG_SOURCE_ID_MAX + 1];
        int r = condemn_active(c, reason, id, &err);

        c->answers_start = true; /* the starting process reads the served document: no restart is needed */
        if (r >= 0) {
                r = lkg_engine_roll_back(e, c, LKG_BAD_CRASHED, reason, &err);
                if (r < 0 && lkg_dynamic_forgive(c->dynamic, id, /* exactly= */ true, NULL) < 0)
                        r = 0; /* the mark stays, so the next round leaves it */
        }
        if (r < 0)
                lkg_log(LOG_ERR, &fields, "the component crash-loops, and that cannot be noted: %s",
                        err.message);
        return r;
}

static void count_on_good(struct lkg_engine *e, struct lkg_component *c)
{
        struct lkg_dynamic *d = c->dynamic;
        struct lkg_pointers next = d->pointers;
        struct lkg_error err = { 0 };

        /* As long after the rollback as the trial was to last: later ones have other causes. */
        if (!*d->pointers.rollback.reason ||
            lkg_realtime_ns() - d->pointers.rollback.time_ns > d->trial.rules.duration_ns)
                return;
        next.rollback.starts_since++;
        if (lkg_store_save_pointers(&d->store, &next, &err) < 0)
                e->retry_at_ns = lkg_boottime_ns() + LKG_RETRY_MAX_NS;
        else
                d->pointers = next;
        c->dirty |= LKG_DIRTY_CONDITION;
}

/*
 * Applies this start to the trial, durably: counted, over, or condemned. The trial knows the newest start that it has
 * judged, so one that is reported again, because an engine died before it was recorded, is judged
 * exactly once.
 * Return: 1; 0: nothing depends on it; -errno: only memory knows.
 */
static int judge_start(struct lkg_engine *e, struct lkg_component *c, const struct lkg_startup *startup)
{
        const struct lkg_log_fields fields = lkg_engine_fields(c);
        struct lkg_dynamic *d = c->dynamic;
        struct lkg_trial_step step;
        struct lkg_error err = { 0 };
        int r;

        if (!lkg_engine_on_trial(c))
                return 0;
        step = lkg_trial_start(d->trial, startup->counted, lkg_boottime_ns());
        if (step.verdict == LKG_TRIAL_CONDEMN) { /* one that cannot be noted leaves the trial as it was */
                r = crash_loop(e, c);
                return r < 0 ? r : 1;
        }
        d->trial = step.next;
        d->trial.last_pid = startup->pid;
        d->trial.last_start_time = startup->start_time;
        r = lkg_dynamic_save_trial(d, lkg_boottime_ns(), &err);
        if (r < 0)
                lkg_log(LOG_ERR, &fields, "cannot save the trial: %s", err.message);
        return r < 0 ? r : 1;
}

static bool is_judged(const struct lkg_trial *trial, const struct lkg_startup *startup)
{
        return startup->start_time && trial->last_start_time == startup->start_time &&
               trial->last_pid == startup->pid;
}

/* On something that is not under suspicion. */
static bool starts_on_good(const struct lkg_component *c)
{
        const struct lkg_pointers *p = &c->dynamic->pointers;

        if (c->dynamic->scope_all)
                return c->active && lkg_dynamic_is_good_document(c->dynamic, c->active->sha256);
        return lkg_config_source_is_local(&p->active) || *p->rollback.reason;
}

/* Look at the trial, switch when it is one too many, record it. Return: 0; -errno: what matters of it is not durable. */
static int decide_start(struct lkg_engine *e, struct lkg_component *c, int pid, uint64_t start_time)
{
        const struct lkg_log_fields fields = lkg_engine_fields(c);
        struct lkg_dynamic *d = c->dynamic;
        struct lkg_start_facts facts = {
                .first_after_boot = *d->startups.boot && strcmp(d->startups.boot, d->boot) != 0,
                .asked_for = was_asked_for(c),
                .own_event = take_own_event(c),
        };
        struct lkg_startup startup = {
                .time_ns = lkg_realtime_ns(),
                .pid = pid,
                .start_time = start_time,
                .local = starts_on_good(c),
        };
        const char *why = NULL;
        struct lkg_error err = { 0 };
        int r = 0, k;

        facts.manager_knows = pid && manager_says(c, pid, start_time, &facts.automatic);
        startup.counted = lkg_start_counts(&facts, &why);
        c->n_starts++;
        c->dirty |= LKG_DIRTY_DYNAMIC;
        lkg_log(LOG_INFO, &fields, "%s started (pid %d)%s%s", c->config->name, pid,
                why ? ", not counted: " : "", why ? why : "");
        if (!is_judged(&d->trial, &startup)) {
                r = judge_start(e, c, &startup);
                if (startup.counted && startup.local)
                        count_on_good(e, c);
        }
        k = lkg_dynamic_note_start(d, &startup, &err);
        if (k < 0)
                lkg_log(LOG_ERR, &fields, "cannot note a start: %s", err.message);
        if (r > 0)
                return 0; /* the trial knows it */
        return r < 0 ? r : k;
}

static int finish(struct lkg_engine *e, const struct lkg_starting *s)
{
        struct lkg_component *c = &e->components[s->component];
        bool is_new = c->dynamic &&
                      !lkg_startups_knows(&c->dynamic->startups, c->dynamic->boot, s->pid, s->start_time);

        if (is_new)
                (void)decide_start(e, c, s->pid, s->start_time); /* it is one, whatever the disk says */
        lkg_engine_update_alive(e, c);
        e->hooks->cycle(e, /* look= */ false);
        c->answers_start = false;
        if (is_new)
                lkg_engine_consumed(e, c);
        if (!s->generation || !c->active || c->active->number == s->generation)
                return 0;
        /*
         * An open of an old generation is repeated by the kernel, and gets the current one. The file server's word about
         * that may come after the process has ended, and for an older generation, as after a rollback to a stored
 * document, there is none.
         */
        if (c->facts && lkg_facts_reads(c->facts, s->pid, s->start_time, c->active->number)) {
                c->dirty |= LKG_DIRTY_DYNAMIC;
                lkg_engine_update_alive(e, c);
                e->hooks->cycle(e, /* look= */ false);
        }
        return -ESTALE;
}

/* Asked about twice (by a file server and its successor) while the manager's word is waited for: both get the answer. */
static bool is_asked_for(const struct lkg_engine *e, const struct lkg_starting *s)
{
        for (size_t i = 0; i < e->n_starting; i++)
                if (e->starting[i].pid == s->pid && e->starting[i].start_time == s->start_time)
                        return e->n_starting < LKG_STARTING_MAX;
        return false;
}

static bool must_ask(const struct lkg_engine *e, const struct lkg_component *c)
{
        return c->dynamic && c->dynamic->trial.state == LKG_TRIAL_RUNNING && *c->config->match.unit &&
               e->server.supervisor && e->n_starting < LKG_STARTING_MAX;
}

void lkg_engine_start_seen(struct lkg_engine *e, struct lkg_peer *peer, const struct lkg_message *m)
{
        const struct lkg_starting s = {
                .peer = peer,
                .ticket = m->ticket,
                .component = m->component,
                .pid = m->pid,
                .start_time = m->start_time,
                .generation = m->number,
                .deadline_ns = lkg_boottime_ns() + MANAGER_NS,
        };
        struct lkg_component *c = m->component < e->n_components ? &e->components[m->component] : NULL;
        bool is_new;

        if (!c) {
                lkg_server_done(peer, m->ticket, -EINVAL, lkg_publisher_number(e->publisher));
                return;
        }
        is_new = lkg_engine_started(e, m); /* asks the supervisor, too */
        if ((is_new && must_ask(e, c)) || is_asked_for(e, &s)) {
                e->starting[e->n_starting++] = s;
                e->hooks->arm(e);
                return;
        }
        lkg_server_done(peer, m->ticket, finish(e, &s), lkg_publisher_number(e->publisher));
        if (is_new)
                lkg_engine_learn(e, c);
}

void lkg_engine_resolve_starts(struct lkg_engine *e)
{
        uint64_t now = lkg_boottime_ns();

        for (size_t i = 0; i < e->n_starting;) {
                const struct lkg_starting s = e->starting[i];
                struct lkg_component *c = &e->components[s.component];
                bool automatic;
                int r;

                if (s.deadline_ns > now && !manager_says(c, s.pid, s.start_time, &automatic)) {
                        i++;
                        continue;
                }
                e->starting[i] = e->starting[--e->n_starting];
                r = finish(e, &s);
                if (s.peer)
                        lkg_server_done(s.peer, s.ticket, r, lkg_publisher_number(e->publisher));
                lkg_engine_learn(e, c);
        }
}

void lkg_engine_forget_peer_starts(struct lkg_engine *e, const struct lkg_peer *peer)
{
        for (size_t i = 0; i < e->n_starting; i++)
                if (e->starting[i].peer == peer)
                        e->starting[i].peer =
                                NULL; /* its successor asks again; the start is one all the same */
}

uint64_t lkg_engine_starts_deadline(const struct lkg_engine *e)
{
        uint64_t first = LKG_NEVER;

        for (size_t i = 0; i < e->n_starting; i++)
                if (e->starting[i].deadline_ns < first)
                        first = e->starting[i].deadline_ns;
        return first;
}

int lkg_engine_start_reported(struct lkg_engine *e, struct lkg_component *c, int pid, uint64_t ticket)
{
        uint64_t start_time = pid ? lkg_process_start_time(pid) : ticket;
        struct lkg_startups starts;
        struct lkg_trial trial;
        int r;

        if (!c->dynamic || (pid && !start_time))
                return -EINVAL;
        if (lkg_startups_knows(&c->dynamic->startups, c->dynamic->boot, pid, start_time))
                return 0;
        starts = c->dynamic->startups;
        trial = c->dynamic->trial;
        r = decide_start(e, c, pid, start_time);
        if (r < 0) { /* refused, so it must be reported again */
                c->dynamic->startups = starts;
                c->dynamic->trial = trial;
                c->n_starts--;
        }
        return r;
}
