/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The event sources of the engine, and the work that is done while no caller waits: history, state files, fallback copies.
 */
#include <fcntl.h>
#include <malloc.h>
#include <sys/stat.h>

#include "engine-internal.h"

#include <lkg/base.h>
#include <lkg/publication.h>

/* ---- fallback copies ---- */

/*
 * Fallback copies (<lkg/publication.h>): the source directory is read-only for the engine, so it asks lkgfsd to write them; a copy
 * that cannot be written is a finding.
 */

/* To update the copies of @c, or to remove the one under the view's name. */
static void ask_fallback(const struct lkg_engine *e, const struct lkg_component *c)
{
        struct lkg_message m;

        if (!e->server.supervisor)
                return;
        lkg_message_init(&m, LKG_MSG_FALLBACK);
        /* By name: during a reload, lkgfsd may number the components differently. */
        m.text_size = (uint32_t)snprintf(m.text, sizeof(m.text), "%s %s", c->config->name,
                                         c->active ? c->active->sha256 : "");
        lkg_peer_send(e->server.supervisor, &m);
}

void lkg_engine_ask_first_fallback(const struct lkg_engine *e)
{
        struct stat st;

        if (e->started || fstatat(e->options.source_fd, LKG_FALLBACK_DIR, &st, AT_SYMLINK_NOFOLLOW) == 0)
                return;
        for (size_t i = 0; i < e->n_components; i++)
                if (e->components[i].active)
                        ask_fallback(e, &e->components[i]);
}

void lkg_engine_fallback_answered(struct lkg_engine *e, const struct lkg_message *m)
{
        const struct lkg_where where = { .file = LKG_FALLBACK_DIR };
        struct lkg_component *c = lkg_component_find(e->components, e->n_components, m->text);

        if (!c || (m->result == 0 && c->findings.fallback.n_findings == 0))
                return;
        lkg_report_deinit(&c->findings.fallback);
        if (m->result < 0)
                lkg_report_add(&c->findings.fallback, LKG_WARNING, 4002, &where,
                               "the fallback copy of %s cannot be written: %s", c->config->file,
                               strerror(-m->result));
        if (e->started)
                e->hooks->cycle(e, /* look= */ false);
}

/* ---- deferred work ---- */

static void persist_component(struct lkg_engine *e, struct lkg_component *c)
{
        const struct lkg_log_fields fields = lkg_component_log_fields(c);
        struct lkg_error err = { 0 };

        if (lkg_history_write(&c->history, c->active ? c->active->number : 0, &err) < 0)
                lkg_log(LOG_WARNING, &fields,
                        "cannot write the history, trying again at the next change: %s", err.message);
        else if (c->active && lkg_history_find(&c->history, c->active->number) &&
                 c->state.last_good != c->active->number) {
                c->state.last_good = c->active->number;
                c->due.record = true;
        }
        if (c->due.record)
                (void)lkg_engine_save_record(e, c, &c->state);
        if (!c->due.fallback)
                return;
        c->due.fallback = false;
        ask_fallback(e, c);
}

void lkg_engine_persist(struct lkg_engine *e)
{
        struct lkg_error err = { 0 };

        e->clock.persist_at_ns = LKG_NEVER;
        for (size_t i = 0; i < e->n_components; i++)
                persist_component(e, &e->components[i]);
        lkg_components_collect(e->components, e->n_components, &e->store);
        if (lkg_poison_persist(&e->poison, &err) < 0)
                lkg_log_warning("cannot record which content was validated without a crash: %s",
                                err.message);
        if (lkg_state_reserve_ahead(&e->state, &err) < 0)
                lkg_log_warning("cannot reserve generation numbers: %s", err.message);
}

/* ---- events ---- */

/* Sets the timer to what is due next. */
static void arm(struct lkg_engine *e)
{
        uint64_t at = lkg_earlier(lkg_earlier(e->clock.persist_at_ns, e->clock.retry_at_ns),
                                  lkg_earlier(e->clock.poll_at_ns, e->clock.orphan_at_ns));
        uint64_t before;

        at = lkg_earlier(at, lkg_watch_deadline(&e->watch));
        for (size_t i = 0; i < e->n_components; i++)
                at = lkg_earlier(at, lkg_earlier(lkg_hold_deadline(&e->components[i].state.hold),
                                                 lkg_component_trial_deadline(&e->components[i])));
        at = lkg_earlier(at, lkg_earlier(lkg_engine_starts_deadline(e), lkg_engine_containers_due(e)));
        if (at == LKG_NEVER) {
                (void)sd_event_source_set_enabled(e->sources.timer, SD_EVENT_OFF);
                return;
        }
        /* Setting it again would let it wait behind other events that have come since it has passed. */
        if (sd_event_source_get_enabled(e->sources.timer, NULL) > 0 &&
            sd_event_source_get_time(e->sources.timer, &before) >= 0 && before == at / 1000 + 1)
                return;
        (void)sd_event_source_set_time(e->sources.timer, at / 1000 + 1);
        (void)sd_event_source_set_enabled(e->sources.timer, SD_EVENT_ONESHOT);
}

static bool due(uint64_t *at_ns, uint64_t now_ns)
{
        if (*at_ns > now_ns)
                return false;
        *at_ns = LKG_NEVER;
        return true;
}

static int on_timer(sd_event_source *source, uint64_t usec, void *userdata)
{
        struct lkg_engine *e = userdata;
        uint64_t now = lkg_boottime_ns();
        bool look, persist, drained;

        (void)source;
        (void)usec;
        drained = lkg_watch_drain(&e->watch, now); /* a writer may have just closed its file */
        look = due(&e->clock.retry_at_ns, now);
        look = due(&e->clock.poll_at_ns, now) || look;
        persist = due(&e->clock.persist_at_ns, now);
        /* After a burst, look at everything: that finds changes that inotify does not report (mmap, another hard link). */
        if (look || persist)
                lkg_watch_touch(&e->watch, NULL);
        look = lkg_watch_tick(&e->watch, now) || drained || look || persist;
        if (due(&e->clock.orphan_at_ns, now)) {
                lkg_log_notice("no supervisor and no file server for 30 s, exiting");
                lkg_engine_stop(e);
                return sd_event_exit(e->event, 0);
        }
        lkg_engine_resolve_starts(e);
        lkg_engine_turn(e, look);
        if (persist) {
                (void)malloc_trim(0); /* a burst fragments the heap; an idle engine should be small */
                lkg_engine_persist(e);
                lkg_engine_turn(e, /* look= */ false); /* a failed write is a finding */
        }
        return 0;
}

static int on_inotify(sd_event_source *source, int fd, uint32_t revents, void *userdata)
{
        struct lkg_engine *e = userdata;

        (void)source;
        (void)fd;
        (void)revents;
        if (lkg_watch_drain(&e->watch, lkg_boottime_ns()))
                lkg_engine_cycle(e, /* look= */ true);
        return 0;
}

/* Before the loop waits: all work since the last wait is finished, and whatever came of it may be due at another time. */
static int on_prepare(sd_event_source *source, void *userdata)
{
        struct lkg_engine *e = userdata;

        (void)source;
        lkg_poison_done(&e->poison);
        arm(e);
        return 0;
}

int lkg_engine_add_sources(struct lkg_engine *e)
{
        int r = sd_event_add_io(e->event, &e->sources.inotify, e->watch.fd, EPOLLIN, on_inotify, e);

        if (r >= 0)
                r = sd_event_add_time(e->event, &e->sources.timer, CLOCK_BOOTTIME, 0, 1000, on_timer, e);
        if (r >= 0)
                r = sd_event_source_set_enabled(e->sources.timer, SD_EVENT_OFF);
        if (r >= 0)
                r = sd_event_source_set_prepare(e->sources.inotify, on_prepare);
        return r;
}

void lkg_engine_stop(struct lkg_engine *e)
{
        /* lkgfs may be about to be removed, and a base that was there before may be gone by now. */
        for (size_t i = 0; i < e->n_components; i++)
                e->components[i].due.fallback = true;
        lkg_engine_persist(e);
}
