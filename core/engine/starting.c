/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Learns about the components while they run: a process starts or ends, or the supervisor writes a fact. Then the layers are
 * judged again with the new facts; a candidate that becomes invalid is refused like any other, and the served document stays.
 *
 * The supervisor is told when a process starts or ends, because the executable or the unit may have changed.
 */
#include <sys/epoll.h>
#include <sys/inotify.h>

#include "engine-internal.h"

#include <lkg/base.h>

/* Judge with the current facts about @c and publish the result. */
static void learn(struct lkg_engine *e, struct lkg_component *c)
{
        bool changed = lkg_component_learn(c);

        if (changed)
                lkg_watch_touch(&e->watch, NULL);
        if (e->started)
                e->hooks->cycle(e, /* look= */ changed);
}

static void tell_supervisor(struct lkg_engine *e, const struct lkg_component *c)
{
        struct lkg_message m;

        if (!e->server.supervisor)
                return;
        lkg_message_init(&m, LKG_MSG_STARTED);
        m.component = c->index;
        lkg_peer_send(e->server.supervisor, &m);
}

/* ---- processes ---- */

static struct lkg_component *owner_of(struct lkg_engine *e, const sd_event_source *gone)
{
        for (size_t i = 0; i < e->n_components; i++) {
                const struct lkg_facts *facts = e->components[i].facts;

                for (size_t k = 0; facts && k < facts->n_processes; k++)
                        if (facts->processes[k].gone == gone)
                                return &e->components[i];
        }
        return NULL;
}

static int on_process_gone(sd_event_source *source, int fd, uint32_t revents, void *userdata)
{
        struct lkg_engine *e = userdata;
        struct lkg_component *c = owner_of(e, source);

        (void)fd;
        (void)revents;
        if (!c)
                return sd_event_source_set_enabled(source, SD_EVENT_OFF);
        lkg_component_note_ends(c);
        lkg_facts_gone(c->facts);
        lkg_engine_update_alive(e, c);
        tell_supervisor(e, c);
        learn(e, c);
        return 0;
}

static int watch_process(struct lkg_engine *e, struct lkg_tracked *t)
{
        if (t->pidfd < 0 || t->gone)
                return 0;
        return sd_event_add_io(e->event, &t->gone, t->pidfd, EPOLLIN, on_process_gone, e);
}

/* A recognised process opened its file. Return: true: it was not known before. */
static bool note_start(struct lkg_engine *e, const struct lkg_message *m)
{
        struct lkg_component *c = &e->components[m->component];
        const struct lkg_log_fields fields = lkg_component_log_fields(c);
        struct lkg_tracked *process = NULL;
        int r;

        if (!c->facts)
                return false;
        lkg_component_note_ends(c); /* before the previous process is dropped */
        r = lkg_facts_started(c->facts, m->pid, m->start_time, m->number, &process);
        if (r == 0) /* a known process, which may read a newer document now */
                return false;
        if (r > 0)
                r = watch_process(e, process);
        if (r < 0)
                lkg_log(LOG_WARNING, &fields, "cannot follow process %d: %s", m->pid, strerror(-r));
        tell_supervisor(e, c);
        return true;
}

/* ---- the supervisor's files ---- */

static void show(struct lkg_engine *e)
{
        if (e->started)
                e->hooks->cycle(e, /* look= */ false);
}

static int on_facts(sd_event_source *source, const struct inotify_event *event, void *userdata)
{
        struct lkg_engine *e = userdata;

        if (event->len > 0 && strcmp(event->name, LKG_FACT_START) == 0) {
                lkg_engine_resolve_starts(e);
                show(e);
                return 0;
        }
        if (event->len > 0 &&
            (strcmp(event->name, LKG_FACT_RESTARTS) == 0 || strcmp(event->name, LKG_FACT_END) == 0)) {
                show(e);
                return 0;
        }
        if (event->len > 0 && strcmp(event->name, LKG_FACT_PLAN) == 0) {
                for (size_t i = 0; i < e->n_components; i++)
                        if (e->sources.facts[i] == source && e->components[i].findings.api)
                                /* status/<c>/remote shows when the restart is due */
                                lkg_places_kick(e->places);
                return 0;
        }
        if (event->len > 0 && strcmp(event->name, LKG_FACT_VERSION) != 0 &&
            strcmp(event->name, LKG_FACT_EXEC_START) != 0)
                return 0; /* written by us, or read when it is needed */
        for (size_t i = 0; i < e->n_components; i++) {
                struct lkg_component *c = &e->components[i];

                if (e->sources.facts[i] != source || !c->facts)
                        continue;
                lkg_facts_load(c->facts);
                lkg_component_learn_version(c, &e->reports.setup);
                learn(e, c);
        }
        return 0;
}

int lkg_engine_open_facts(struct lkg_engine *e, struct lkg_error *err)
{
        for (size_t i = 0; i < e->n_components; i++) {
                struct lkg_component *c = &e->components[i];
                int r = 0;

                if (!c->facts)
                        r = lkg_facts_open(e->options.runtime_fd, e->state.fd, c->config->name, &c->facts,
                                           err);
                if (r < 0)
                        return r;
                (void)lkg_component_learn(c);
        }
        return 0;
}

int lkg_engine_watch_facts(struct lkg_engine *e)
{
        int r = 0;

        for (size_t i = 0; r >= 0 && i < e->n_components; i++) {
                struct lkg_facts *facts = e->components[i].facts;

                if (!facts || e->sources.facts[i])
                        continue;
                r = sd_event_add_inotify_fd(e->event, &e->sources.facts[i], facts->dirfd,
                                            IN_MOVED_TO | IN_DELETE, on_facts, e);
                /* A write between reading the files and adding the watch causes no event. The callers read the layers next. */
                lkg_facts_load(facts);
                (void)lkg_component_learn(&e->components[i]);
                for (size_t k = 0; r >= 0 && k < facts->n_processes; k++)
                        r = watch_process(e, &facts->processes[k]);
        }
        return r < 0 ? r : 0;
}

void lkg_engine_unwatch_facts(struct lkg_engine *e)
{
        for (size_t i = 0; i < LKG_ARRAY_SIZE(e->sources.facts); i++)
                e->sources.facts[i] = sd_event_source_disable_unref(e->sources.facts[i]);
}

/* ---- restarts ---- */

/*
 * The component runs with an older document: asks the supervisor to restart it, if that is configured. Not for a document with the
 * same meaning, and not while a starting process is about to read the new one.
 */

void lkg_engine_consume(struct lkg_engine *e, struct lkg_component *c)
{
        const struct lkg_generation *before = c->previous;
        struct lkg_message m;

        if (c->config->restart.policy == LKG_SETTINGS_RESTART_NEVER || !c->active || !e->server.supervisor ||
            c->process.answers_start || !e->started || !lkg_component_runs_older(c))
                return;
        lkg_message_init(&m, LKG_MSG_RESTART);
        m.component = c->index;
        m.number = c->active->number;
        /* The change reaches all nodes at once, so they must not all restart at once. A rollback heals, so it is not delayed. */
        m.result =
                c->base && !*c->dynamic->pointers.rollback.reason &&
                !lkg_config_records_match(c->active->source, c->active->source_sha256,
                                          before ? before->source : "", before ? before->source_sha256 : "");
        lkg_peer_send(e->server.supervisor, &m);
}

/* A starting process reads the served document, so a planned restart is not needed. */
static void forget_restart(struct lkg_engine *e, const struct lkg_component *c)
{
        struct lkg_message m;

        if (c->config->restart.policy == LKG_SETTINGS_RESTART_NEVER || !e->server.supervisor)
                return;
        lkg_message_init(&m, LKG_MSG_RESTART); /* generation 0: no longer needed */
        m.component = c->index;
        lkg_peer_send(e->server.supervisor, &m);
}

/* ---- starts ---- */

/*
 * A component starts: record it, ask for the reason if the service manager knows it, check the trial, switch, answer. The open()
 * waits for the answer, so everything here is bounded; the command line is judged afterwards.
 */

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
                c->counts.starts++;
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
        c->process.answers_start = false;
        if (is_new)
                forget_restart(e, c);
        if (!s->generation || !c->active || c->active->number == s->generation)
                return 0;
        /*
         * The kernel repeats an open of an old generation and gets the current one. The file server's message about that may come
         * after the process has ended; for an older generation, as after a rollback to a stored document, there is none.
         */
        if (c->facts && lkg_facts_reads(c->facts, s->pid, s->start_time, c->active->number)) {
                lkg_engine_update_alive(e, c);
                e->hooks->cycle(e, /* look= */ false);
        }
        return -ESTALE;
}

/* Reported twice (by a file server and its successor) while the service manager is being asked: both get the answer. */
static bool is_asked_for(const struct lkg_engine *e, const struct lkg_starting *s)
{
        for (size_t i = 0; i < e->starts.n; i++)
                if (e->starts.items[i].pid == s->pid && e->starts.items[i].start_time == s->start_time)
                        return e->starts.n < LKG_STARTING_MAX;
        return false;
}

static bool must_ask(const struct lkg_engine *e, const struct lkg_component *c)
{
        return c->dynamic && c->dynamic->trial.state == LKG_TRIAL_RUNNING && *c->config->match.unit &&
               e->server.supervisor && e->starts.n < LKG_STARTING_MAX;
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
        is_new = note_start(e, m); /* also asks the supervisor */
        if ((is_new && must_ask(e, c)) || is_asked_for(e, &s)) {
                e->starts.items[e->starts.n++] = s;
                return;
        }
        lkg_server_done(peer, m->ticket, finish(e, &s), lkg_publisher_number(e->publisher));
        if (is_new)
                learn(e, c);
}

void lkg_engine_resolve_starts(struct lkg_engine *e)
{
        uint64_t now = lkg_boottime_ns();

        for (size_t i = 0; i < e->starts.n;) {
                const struct lkg_starting s = e->starts.items[i];
                struct lkg_component *c = &e->components[s.component];
                bool automatic;
                int r;

                if (s.deadline_ns > now && !lkg_component_manager_says(c, s.pid, s.start_time, &automatic)) {
                        i++;
                        continue;
                }
                e->starts.items[i] = e->starts.items[--e->starts.n];
                r = finish(e, &s);
                if (s.peer)
                        lkg_server_done(s.peer, s.ticket, r, lkg_publisher_number(e->publisher));
                learn(e, c);
        }
}

void lkg_engine_forget_peer_starts(struct lkg_engine *e, const struct lkg_peer *peer)
{
        for (size_t i = 0; i < e->starts.n; i++)
                if (e->starts.items[i].peer == peer)
                        /* its successor asks again; the start still counts */
                        e->starts.items[i].peer = NULL;
}

uint64_t lkg_engine_starts_deadline(const struct lkg_engine *e)
{
        uint64_t first = LKG_NEVER;

        for (size_t i = 0; i < e->starts.n; i++)
                if (e->starts.items[i].deadline_ns < first)
                        first = e->starts.items[i].deadline_ns;
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
