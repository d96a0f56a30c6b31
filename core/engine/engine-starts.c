/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A component starts: record it, ask for the reason if the service manager knows it, check the trial, switch, answer. The open()
 * waits for the answer, so everything here is bounded; the command line is judged afterwards.
 */
#include <lkg/base.h>

#include "engine-internal.h"

#define MANAGER_NS (1 * LKG_NSEC_PER_SEC) /* for the service manager's answer; an open() is waiting */

/* ---- a start ---- */

/*
 * Checks the trial, switches if this start is one too many, and records it. Return: 0; -errno: the important part is not durable.
 */
static int decide_start(struct lkg_engine *e, struct lkg_component *c, int pid, uint64_t start_time,
                        bool by_command)
{
        const struct lkg_log_fields fields = lkg_component_log_fields(c);
        const struct lkg_start_facts facts = lkg_component_start_facts(c, pid, start_time);
        struct lkg_startup startup = { .time_ns = lkg_realtime_ns(), .pid = pid, .start_time = start_time };
        const struct lkg_event event = { .kind = LKG_EVENT_START,
                                         .startup = &startup,
                                         .by_command = by_command };
        const char *why = NULL;
        struct lkg_error err = { 0 };
        int r;

        startup.counted = lkg_start_counts(&facts, &why);
        lkg_log(LOG_INFO, &fields, "%s started (pid %d)%s%s", c->config->name, pid,
                why ? ", not counted: " : "", why ? why : "");
        r = lkg_engine_step(e, c, &event, &err);
        if (r >= 0 || !by_command) /* it is a start, whatever the disk says */
                c->n_starts++;
        return r;
}

/* A file that was written a moment ago is looked at once more when it counts (2.5). The open() waits for this. */
void lkg_engine_look_before_start(struct lkg_engine *e)
{
        const struct timespec moment = { .tv_nsec = LKG_RECENT_NS };

        lkg_watch_touch(&e->watch, NULL);
        e->hooks->cycle(e, /* look= */ true);
        if (!e->settled.recent)
                return;
        (void)nanosleep(&moment, NULL);
        lkg_watch_touch(&e->watch, NULL);
        e->hooks->cycle(e, /* look= */ true);
}

/* "Have I seen this process?" - is its start on record? */
static bool is_first(const struct lkg_component *c, const struct lkg_starting *s)
{
        return c->dynamic &&
               !lkg_startups_knows(&c->dynamic->startups, c->dynamic->boot, s->pid, s->start_time);
}

static int finish(struct lkg_engine *e, const struct lkg_starting *s)
{
        struct lkg_component *c = &e->components[s->component];
        bool is_new = is_first(c, s);

        if (is_new)
                (void)decide_start(e, c, s->pid, s->start_time, /* by_command= */ false);
        lkg_engine_update_alive(e, c);
        e->hooks->cycle(e, /* look= */ false);
        c->answers_start = false;
        if (is_new)
                lkg_engine_consumed(e, c);
        if (!s->generation || !c->active || c->active->number == s->generation)
                return 0;
        /*
         * The kernel repeats an open of an old generation and gets the current one. The file server's message about that may come
         * after the process has ended; for an older generation, as after a rollback to a stored document, there is none.
         */
        if (c->facts && lkg_facts_reads(c->facts, s->pid, s->start_time, c->active->number)) {
                c->dirty |= LKG_DIRTY_DYNAMIC;
                lkg_engine_update_alive(e, c);
                e->hooks->cycle(e, /* look= */ false);
        }
        return -ESTALE;
}

/* Reported twice (by a file server and its successor) while the service manager is being asked: both get the answer. */
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
        if (is_first(c, &s))
                lkg_engine_look_before_start(e);
        is_new = lkg_engine_started(e, m); /* also asks the supervisor */
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

                if (s.deadline_ns > now && !lkg_component_manager_says(c, s.pid, s.start_time, &automatic)) {
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
                        e->starting[i].peer = NULL; /* its successor asks again; the start still counts */
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

        if (!c->dynamic || (pid && !start_time))
                return -EINVAL;
        if (lkg_startups_knows(&c->dynamic->startups, c->dynamic->boot, pid, start_time))
                return 0;
        return decide_start(e, c, pid, start_time, /* by_command= */ true);
}
