/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Learns about the components while they run: a process starts or ends, or the supervisor writes a fact. Then the layers are
 * judged again with the new facts; a candidate that becomes invalid is refused like any other, and the served document stays.
 *
 * The supervisor is told when a process starts or ends, because the executable or the unit may have changed.
 */
#include <sys/epoll.h>
#include <sys/inotify.h>

#include <lkg/base.h>

#include "engine-internal.h"

void lkg_engine_learn(struct lkg_engine *e, struct lkg_component *c)
{
        const struct lkg_log_fields fields = lkg_component_log_fields(c);
        int r = lkg_component_learn(c);

        c->dirty |= LKG_DIRTY_EFFECTIVE; /* it also says whether the process runs */
        if (r < 0)
                lkg_log(LOG_ERR, &fields, "cannot judge by the component's command line: %s", strerror(-r));
        if (r > 0)
                lkg_watch_touch(&e->watch, NULL);
        if (e->started)
                e->hooks->cycle(e, /* look= */ r > 0);
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
        c->dirty |=
                LKG_DIRTY_DYNAMIC | LKG_DIRTY_CONDITION; /* the running process, and what it differs in */
        lkg_engine_update_alive(e, c);
        tell_supervisor(e, c);
        lkg_engine_learn(e, c);
        return 0;
}

static int watch_process(struct lkg_engine *e, struct lkg_tracked *t)
{
        if (t->pidfd < 0 || t->gone)
                return 0;
        return sd_event_add_io(e->event, &t->gone, t->pidfd, EPOLLIN, on_process_gone, e);
}

bool lkg_engine_started(struct lkg_engine *e, const struct lkg_message *m)
{
        struct lkg_component *c = &e->components[m->component];
        const struct lkg_log_fields fields = lkg_component_log_fields(c);
        struct lkg_tracked *process = NULL;
        int r;

        if (!c->facts)
                return false;
        lkg_component_note_ends(c); /* before the previous process is dropped */
        r = lkg_facts_started(c->facts, m->pid, m->start_time, m->number, &process);
        if (r > 0)
                r = watch_process(e, process) < 0 ? -ENOMEM : 1;
        if (r < 0)
                lkg_log(LOG_WARNING, &fields, "cannot read the command line of process %d: %s", m->pid,
                        strerror(-r));
        if (r == 0) { /* a known process may read a newer document now, and so differ in other fields */
                c->dirty |= LKG_DIRTY_DYNAMIC;
                return false;
        }
        c->dirty |= LKG_DIRTY_DYNAMIC | LKG_DIRTY_CONDITION;
        tell_supervisor(e, c);
        return true;
}

/* ---- the supervisor's files ---- */

/* status/<c>/restarts shows a file of lkgfsd unchanged; status/<c>/process names the unit's main process. */
static void mark_shown(struct lkg_engine *e, const sd_event_source *source)
{
        for (size_t i = 0; i < e->n_components; i++)
                if (e->facts[i] == source)
                        e->components[i].dirty |= LKG_DIRTY_DYNAMIC;
        if (e->started)
                e->hooks->cycle(e, /* look= */ false);
}

static int on_facts(sd_event_source *source, const struct inotify_event *event, void *userdata)
{
        struct lkg_engine *e = userdata;
        const struct lkg_log_fields *none = NULL;

        if (event->len > 0 && strcmp(event->name, LKG_FACT_START) == 0) {
                e->hooks->resolve_starts(e);
                mark_shown(e, source);
                return 0;
        }
        if (event->len > 0 &&
            (strcmp(event->name, LKG_FACT_RESTARTS) == 0 || strcmp(event->name, LKG_FACT_END) == 0)) {
                mark_shown(e, source);
                return 0;
        }
        if (event->len > 0 && strcmp(event->name, LKG_FACT_PLAN) == 0) {
                for (size_t i = 0; i < e->n_components; i++)
                        if (e->facts[i] == source && e->components[i].api_findings)
                                lkg_places_kick(
                                        e->places); /* status/<c>/remote shows when the restart is due */
                return 0;
        }
        if (event->len > 0 && strcmp(event->name, LKG_FACT_VERSION) != 0 &&
            strcmp(event->name, LKG_FACT_EXEC_START) != 0)
                return 0; /* written by us, or read when it is needed */
        for (size_t i = 0; i < e->n_components; i++) {
                struct lkg_component *c = &e->components[i];

                if (e->facts[i] != source || !c->facts)
                        continue;
                if (lkg_facts_load(c->facts) < 0)
                        lkg_log(LOG_ERR, none, "cannot read what is known about %s: out of memory",
                                c->config->name);
                lkg_component_learn_version(c, &e->report);
                lkg_engine_learn(e, c);
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
                if (r == 0 && (r = lkg_component_learn(c)) < 0)
                        (void)lkg_error_set(err, r, NULL, "component %s", c->config->name);
                if (r < 0)
                        return r;
        }
        return 0;
}

int lkg_engine_watch_facts(struct lkg_engine *e)
{
        int r = 0;

        for (size_t i = 0; r >= 0 && i < e->n_components; i++) {
                struct lkg_facts *facts = e->components[i].facts;

                if (!facts || e->facts[i])
                        continue;
                r = sd_event_add_inotify_fd(e->event, &e->facts[i], facts->dirfd, IN_MOVED_TO | IN_DELETE,
                                            on_facts, e);
                /* A write between reading the files and adding the watch causes no event. The callers read the layers next. */
                if (r >= 0)
                        r = lkg_facts_load(facts);
                if (r >= 0)
                        r = lkg_component_learn(&e->components[i]);
                if (r > 0)
                        e->components[i].dirty |= LKG_DIRTY_EFFECTIVE;
                for (size_t k = 0; r >= 0 && k < facts->n_processes; k++)
                        r = watch_process(e, &facts->processes[k]);
        }
        return r < 0 ? r : 0;
}

void lkg_engine_unwatch_facts(struct lkg_engine *e)
{
        for (size_t i = 0; i < LKG_ARRAY_SIZE(e->facts); i++)
                e->facts[i] = sd_event_source_disable_unref(e->facts[i]);
}
