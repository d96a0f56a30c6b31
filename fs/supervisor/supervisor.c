/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The life of a view, as one state machine over events: lkg_phase in supervisor.h.
 *
 *     start ─> ENGINE ─published─> SERVER ─ready─> (attach) RUNNING
 *                                     ^                       │ │
 *                                     └─────── aborted ───────┘ │
 *       END <─ DRAIN <─ UNMOUNT <─ told to stop, or unmounted ──┘
 *
 * An adopted view starts in RUNNING. A failure before the view was ever served ends everything and leaves nothing behind;
 * after that, only a stop or an unmount ends it.
 */
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/epoll.h>
#include <sys/mount.h>

#include <systemd/sd-daemon.h>

#include <lkg/base.h>
#include <lkg/publication.h>

#include "consumer.h"
#include "facts-collect.h"
#include "supervisor.h"

#define ENGINE_LIMIT_NS  (30 * LKG_NSEC_PER_SEC)
#define SERVER_LIMIT_NS  (10 * LKG_NSEC_PER_SEC)
#define UNMOUNT_LIMIT_NS (10 * LKG_NSEC_PER_SEC)
#define DRAIN_LIMIT_NS   (2 * LKG_NSEC_PER_SEC)
#define ENGINE_END_NS    (2 * LKG_NSEC_PER_SEC)
#define SERVER_END_NS    (1 * LKG_NSEC_PER_SEC)
#define COPIES_END_NS    (10 * LKG_NSEC_PER_SEC)
#define END_LIMIT_NS     (3 * LKG_NSEC_PER_SEC) /* an unkillable process waits for a dead file system */

static void enter(struct lkg_supervisor *s, enum lkg_phase phase, uint64_t limit_ns);
static void child_gone(struct lkg_supervisor *s);
static void stop(struct lkg_supervisor *s, const char *why);

/* What runs programs, which may be in the view. */
static void end_programs(struct lkg_supervisor *s)
{
        lkg_facts_cancel(s);
        lkg_errands_cancel(s);
        s->consumer = lkg_consumer_free(s->consumer);
}

/* All that waits for something, except children and the last copies. */
static void end_waiting(struct lkg_supervisor *s)
{
        lkg_timer_stop(&s->timers.phase);
        lkg_timer_stop(&s->timers.remount);
        s->watchdog.mounts = sd_event_source_disable_unref(s->watchdog.mounts);
        lkg_heartbeat_disarm(s);
        lkg_watchdog_deinit(s);
        lkg_helper_cancel(&s->jobs.unmounting);
        lkg_helper_cancel(&s->jobs.dentries);
        end_programs(s);
}

static void end_children(struct lkg_supervisor *s)
{
        struct lkg_child *server = &s->children[LKG_CHILD_SERVER];

        if (s->phase == LKG_PHASE_END)
                return;
        s->phase = LKG_PHASE_END;
        end_waiting(s);
        if (s->connection.attached) /* a start that failed after it had replaced a dead view */
                (void)umount2(s->mount_point, MNT_DETACH | UMOUNT_NOFOLLOW);
        s->connection.attached = false;
        lkg_engine_send(s, LKG_MSG_STOP);
        if (server->channel >= 0)
                (void)lkg_handover_send(server->channel, LKG_HANDOVER_STOP, 0, NULL, 0);
        lkg_child_end(&s->children[LKG_CHILD_NOTIFIER], SIGKILL, 0);
        lkg_child_end(&s->children[LKG_CHILD_ENGINE], 0, ENGINE_END_NS);
        lkg_child_end(server, 0, SERVER_END_NS);
        enter(s, LKG_PHASE_END, END_LIMIT_NS);
        child_gone(s);
}

/* SIGKILL takes effect when the kernel releases the process: no need to wait for that. */
static void give_up_children(struct lkg_supervisor *s)
{
        for (size_t i = 0; i < _LKG_CHILD_KIND_MAX; i++) {
                struct lkg_child *child = &s->children[i];

                if (!lkg_child_running(child))
                        continue;
                lkg_child_log(child, LOG_WARNING, "(pid %d) waits in the kernel and cannot be ended yet",
                              (int)child->pid);
                lkg_child_abandon(child, 0);
        }
        /* A copy has its own limit; beyond that it waits for a dead source directory. */
        if (lkg_fallback_busy(s) && !s->jobs.copies_late)
                enter(s, LKG_PHASE_END, COPIES_END_NS);
        else
                lkg_fallback_cancel(s);
        s->jobs.copies_late = true;
        child_gone(s);
}

static void child_gone(struct lkg_supervisor *s)
{
        for (size_t i = 0; i < _LKG_CHILD_KIND_MAX; i++)
                if (lkg_child_running(&s->children[i]))
                        return;
        if (lkg_fallback_busy(s))
                return; /* wait for the last copies, for a limited time */
        (void)sd_event_exit(s->event, s->end.code);
}

static void fail(struct lkg_supervisor *s, int exit_code, const char *fmt, ...)
{
        va_list ap;

        if (s->phase != LKG_PHASE_END && s->end.code == 0) {
                s->end.code = exit_code;
                va_start(ap, fmt);
                (void)vsnprintf(s->end.reason.message, sizeof(s->end.reason.message), fmt, ap);
                va_end(ap);
        }
        end_children(s);
}

static void on_phase_limit(void *userdata);

static void enter(struct lkg_supervisor *s, enum lkg_phase phase, uint64_t limit_ns)
{
        s->phase = phase;
        lkg_timer_stop(&s->timers.phase);
        if (limit_ns > 0)
                (void)lkg_timer_set(&s->timers.phase, s->event, limit_ns, 0, on_phase_limit, s);
}

/* The mount exists and its users wait: do not give up. */
static void replace_slow_server(struct lkg_supervisor *s)
{
        struct lkg_child *server = &s->children[LKG_CHILD_SERVER];

        lkg_child_log(server, LOG_ERR, "did not get ready within %u s: replaced",
                      (unsigned)(SERVER_LIMIT_NS / LKG_NSEC_PER_SEC));
        if (lkg_child_running(server))
                lkg_child_abandon(server, SERVER_END_NS);
        enter(s, LKG_PHASE_SERVER, SERVER_LIMIT_NS);
        lkg_child_start(s, LKG_CHILD_SERVER);
}

/*
 * Files that are still open now fail with ENOTCONN, as documented. A container would not get over it: what is mounted in it cannot be
 * mounted again. So the file server stays for it, passes through, and ends with the last such mount.
 */
static void drained(struct lkg_supervisor *s)
{
        if (lkg_mounts_elsewhere(s->end.minor)) {
                lkg_log_notice("containers have mounts of the view: the file server stays until the last of "
                               "them has ended");
                (void)unlinkat(s->dirs.runtime, LKG_HANDOVER_SOCKET,
                               0); /* a later lkgfsd makes another view */
                lkg_child_forget(&s->children[LKG_CHILD_SERVER]);
        }
        end_children(s);
}

static void on_phase_limit(void *userdata)
{
        struct lkg_supervisor *s = userdata;

        if (s->phase == LKG_PHASE_ENGINE)
                fail(s, EX_SOFTWARE, "the engine did not publish anything within %u s.",
                     (unsigned)(ENGINE_LIMIT_NS / LKG_NSEC_PER_SEC));
        else if (s->phase == LKG_PHASE_SERVER && !s->announced)
                fail(s, EX_SOFTWARE, "the file server did not get ready within %u s.",
                     (unsigned)(SERVER_LIMIT_NS / LKG_NSEC_PER_SEC));
        else if (s->phase == LKG_PHASE_SERVER)
                replace_slow_server(s);
        else if (s->phase == LKG_PHASE_DRAIN)
                drained(s);
        else if (s->phase == LKG_PHASE_END)
                give_up_children(s);
}

static void engine_ready(struct lkg_supervisor *s)
{
        if (s->phase != LKG_PHASE_ENGINE)
                return;
        enter(s, LKG_PHASE_SERVER, SERVER_LIMIT_NS);
        lkg_server_let_serve(s);
}

static void announce(struct lkg_supervisor *s)
{
        enter(s, LKG_PHASE_RUNNING, 0);
        s->remounting = false;
        lkg_heartbeat_arm(s);
        lkg_child_start(s, LKG_CHILD_ENGINE);
        lkg_child_start(s, LKG_CHILD_NOTIFIER);
        lkg_connection_lift_limit(s);
        lkg_notify_store(s);
        lkg_notify_ready(s);
        lkg_log_notice("serving %s (source directory %s)%s", s->mount_point, s->source.path,
                       s->adopted && !s->announced ? ", taken over from an earlier lkgfsd" : "");
        if (!s->announced)
                lkg_background_report(s, 0, "");
        s->announced = true;
        lkg_facts_refresh(s);
        lkg_consumer_enable(s->consumer);
}

static void mount_later(struct lkg_supervisor *s);

static void attach(struct lkg_supervisor *s)
{
        struct lkg_error err = { 0 };
        int r;

        if (s->announced && s->stale_id != 0 && lkg_mounts_has(s->stale_id) == 0) {
                /* It was `umount -f`: it aborts first and unmounts afterwards. */
                stop(s, "the view was unmounted");
                return;
        }
        r = lkg_attach(s, &err);
        if (r != 0 && !s->announced) {
                fail(s, r, "%s", err.message);
                return;
        }
        if (r != 0) {
                lkg_log_error("%s", err.message);
                mount_later(s);
                return;
        }
        if (s->replacing) {
                (void)lkg_recorded_end(s, LKG_CHILD_ENGINE); /* two would delete each other's publications */
                s->replacing = s->hands_off = false;
        }
        s->connection.mount_fd = lkg_close(s->connection.mount_fd); /* it would keep the view busy */
        announce(s);
}

/* The first copies exist before anybody sees the view; they have a time limit of their own. */
static void server_ready(struct lkg_supervisor *s)
{
        if (s->phase != LKG_PHASE_SERVER)
                return;
        if (!s->announced && lkg_fallback_busy(s))
                lkg_timer_stop(&s->timers.phase);
        else
                attach(s);
}

static void copies_done(struct lkg_supervisor *s)
{
        if (s->phase == LKG_PHASE_END)
                child_gone(s);
        else if (s->phase != LKG_PHASE_SERVER || s->announced)
                return;
        else if (lkg_child_ready(&s->children[LKG_CHILD_SERVER]))
                attach(s);
        else /* it may have ended while it waited for them: its successor attaches when it is ready */
                enter(s, LKG_PHASE_SERVER, SERVER_LIMIT_NS);
}

/* What must continue although the connection is new. */
static void carry_over(struct lkg_shared *to, const struct lkg_shared *from)
{
        to->counters = from->counters;
        to->health = from->health;
        memcpy(to->ends, from->ends, sizeof(to->ends));
        for (size_t i = 0; i < LKG_OPENERS; i++) /* they continue, and open the file of the new mount */
                if (atomic_load(&from->openers[i].used)) {
                        to->openers[i] = from->openers[i];
                        atomic_store(&to->openers[i].used, 1);
                }
        to->engine.start_time = from->engine.start_time;
        atomic_store(&to->engine.pid, atomic_load(&from->engine.pid));
}

static void mount_anew(void *userdata)
{
        struct lkg_supervisor *s = userdata;
        struct lkg_connection next;
        struct lkg_error err = { 0 };
        int r;

        r = lkg_connection_open(s, &next, &err);
        if (r == 0)
                r = lkg_connection_handshake(&next, &err);
        if (r != 0) {
                lkg_connection_close(&next);
                lkg_log_error("mount %s again: %s", s->mount_point, err.message);
                mount_later(s);
                return;
        }
        carry_over(next.shared, s->connection.shared);
        lkg_connection_close(&s->connection);
        s->connection = next;
        enter(s, LKG_PHASE_SERVER, SERVER_LIMIT_NS);
        lkg_child_start(s, LKG_CHILD_SERVER);
}

static void mount_later(struct lkg_supervisor *s)
{
        uint64_t pause_ns = lkg_restart_pause_ns(&s->timers.n_remounts, &lkg_restart_mount, true);

        enter(s, LKG_PHASE_SERVER, 0);
        (void)lkg_timer_set(&s->timers.remount, s->event, pause_ns, 0, mount_anew, s);
}

static void remount(struct lkg_supervisor *s)
{
        lkg_log_error("the connection of %s was aborted (umount -f, or the sysfs file abort): mounting "
                      "anew; open files of the old view are lost",
                      s->mount_point);
        lkg_notify_status("Connection aborted, mounting %s again", s->mount_point);
        lkg_heartbeat_disarm(s);
        if (lkg_child_running(&s->children[LKG_CHILD_SERVER]))
                lkg_child_abandon(&s->children[LKG_CHILD_SERVER], 0);
        s->connection.view_fd = lkg_close(s->connection.view_fd);
        s->connection.mount_fd = lkg_close(s->connection.mount_fd);
        lkg_child_end(&s->children[LKG_CHILD_NOTIFIER], SIGKILL, 0);
        /*
         * Detaching the dead view also removes what hides the view from the engine: it needs a new
         * namespace.
         */
        s->remounting = true;
        lkg_engine_send(s, LKG_MSG_STOP);
        lkg_child_end(&s->children[LKG_CHILD_ENGINE], 0, ENGINE_END_NS);
        if (s->connection.attached) {
                s->stale_id = s->connection.mount_id;
                s->connection.attached = false;
        }
        mount_later(s);
}

static void drain(struct lkg_supervisor *s)
{
        s->connection.attached = false;
        lkg_heartbeat_disarm(s);
        s->watchdog.mounts = sd_event_source_disable_unref(s->watchdog.mounts);
        s->connection.view_fd = lkg_close(s->connection.view_fd);
        lkg_child_end(&s->children[LKG_CHILD_NOTIFIER], SIGKILL, 0);
        /* The file server ends with the connection, that is, with the last user of the view. */
        enter(s, LKG_PHASE_DRAIN, DRAIN_LIMIT_NS);
        if (lkg_connection_dead(&s->connection) || !lkg_child_running(&s->children[LKG_CHILD_SERVER]))
                end_children(s);
}

static void unmounted(void *userdata, int status)
{
        struct lkg_supervisor *s = userdata;

        if (status < 0) /* the helper hangs in a request: detaching sends none */
                (void)umount2(s->mount_point, MNT_DETACH | UMOUNT_NOFOLLOW);
        if (status == 1)
                lkg_log_notice("%s is still in use: detached; its users get an error in %u s at the latest",
                               s->mount_point, (unsigned)(DRAIN_LIMIT_NS / LKG_NSEC_PER_SEC));
        drain(s);
}

static void stop(struct lkg_supervisor *s, const char *why)
{
        const struct lkg_helper_work work = { .run = lkg_unmount,
                                              .done = unmounted,
                                              .userdata = s,
                                              .limit_ns = UNMOUNT_LIMIT_NS,
                                              .flags = LKG_JOB_OUTLIVES_US,
                                              .impatient = true };
        struct statx view;

        if (s->phase >= LKG_PHASE_UNMOUNT)
                return;
        lkg_log_notice("stopping: %s", why);
        (void)sd_notify(0, "STOPPING=1\nSTATUS=Unmounting");
        lkg_timer_stop(&s->timers.remount);
        if (!s->connection.attached && s->stale_id != 0 && lkg_mounts_has(s->stale_id) == 1) {
                (void)umount2(s->mount_point,
                              MNT_DETACH | UMOUNT_NOFOLLOW); /* ours, aborted, not yet replaced */
                s->stale_id = 0;
        }
        if (!s->connection.attached) {
                if (!s->announced)
                        (void)snprintf(s->end.reason.message, sizeof(s->end.reason.message),
                                       "stopped before the view was served: %s.", why);
                end_children(s);
                return;
        }
        end_programs(s);
        if (statx(s->connection.view_fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, 0, &view) == 0)
                s->end.minor = view.stx_dev_minor;
        s->connection.view_fd = lkg_close(s->connection.view_fd);
        s->connection.mount_fd = lkg_close(s->connection.mount_fd);
        lkg_child_end(&s->children[LKG_CHILD_NOTIFIER], SIGKILL, 0);
        if (!lkg_still_mounted(s)) {
                drain(s);
                return;
        }
        enter(s, LKG_PHASE_UNMOUNT, 0);
        if (lkg_helper_start(&s->jobs.unmounting, s->event, &work) < 0)
                unmounted(s, -1);
}

/*
 * The first half of `systemctl restart`, for which the unit names this signal (RestartKillSignal=, systemd.kill(5)). The view stays: if base
 * and merged file share a name, a reader would get the plain base. The file server goes on, the connection is also in the descriptor store,
 * and the next supervisor takes over (adopt.c).
 */
static void leave(struct lkg_supervisor *s)
{
        if (s->phase != LKG_PHASE_RUNNING) {
                stop(s, "SIGQUIT");
                return;
        }
        lkg_log_notice("restarting: %s stays mounted and is served on; the next lkgfsd takes it over",
                       s->mount_point);
        (void)sd_notify(0, "STOPPING=1\nSTATUS=Restarting, the view stays mounted");
        s->hands_off = true;
        (void)sd_event_exit(s->event, 0);
}

static void connection_lost(struct lkg_supervisor *s)
{
        switch (s->phase) {
        case LKG_PHASE_ENGINE:
        case LKG_PHASE_SERVER:
                if (!s->announced)
                        fail(s, EX_UNAVAILABLE,
                             "the FUSE connection was aborted while the view was being started.");
                else if (!lkg_timer_is_set(&s->timers.remount))
                        remount(s);
                return;
        case LKG_PHASE_RUNNING:
                if (lkg_still_mounted(s))
                        remount(s);
                else
                        stop(s, "the view was unmounted");
                return;
        case LKG_PHASE_UNMOUNT:
                return; /* requested; the helper reports when it is done */
        case LKG_PHASE_DRAIN:
                end_children(s);
                return;
        case LKG_PHASE_END:
                return;
        }
}

static int on_mounts(sd_event_source *source, int fd, uint32_t revents, void *userdata)
{
        struct lkg_supervisor *s = userdata;

        if (s->phase != LKG_PHASE_RUNNING)
                return 0;
        if (lkg_still_mounted(s))
                lkg_engine_check_mounts(s);
        else
                stop(s, "the view was unmounted");
        return 0;
}

static int on_signal(sd_event_source *source, const struct signalfd_siginfo *info, void *userdata)
{
        struct lkg_supervisor *s = userdata;

        if (info->ssi_signo == SIGHUP && s->phase == LKG_PHASE_RUNNING)
                lkg_reload(s);
        else if (info->ssi_signo == SIGQUIT)
                leave(s);
        else if (info->ssi_signo == SIGTERM)
                stop(s, "SIGTERM");
        else if (info->ssi_signo == SIGINT)
                stop(s, "SIGINT");
        return 0;
}

static int prepare_loop(struct lkg_supervisor *s, struct lkg_error *err)
{
        static const int signals[] = { SIGTERM, SIGINT, SIGHUP, SIGQUIT };
        int fd, r = sd_event_new(&s->event);

        for (size_t i = 0; r >= 0 && i < LKG_ARRAY_SIZE(signals); i++)
                r = sd_event_add_signal(s->event, NULL, signals[i] | SD_EVENT_SIGNAL_PROCMASK, on_signal, s);
        if (r >= 0)
                r = lkg_watchdog_init(s);
        if (r < 0)
                return lkg_fail(err, EX_OSERR, -r, "event loop");
        fd = open("/proc/self/mountinfo", O_RDONLY | O_CLOEXEC);
        fd = fd < 0 ? -errno : lkg_lift_fd(fd);
        if (fd < 0)
                return lkg_fail(err, EX_OSERR, -fd, "open /proc/self/mountinfo");
        r = sd_event_add_io(s->event, &s->watchdog.mounts, fd, EPOLLPRI, on_mounts, s);
        if (r < 0) {
                lkg_close(fd);
                return lkg_fail(err, EX_OSERR, -r, "watch /proc/self/mountinfo");
        }
        (void)sd_event_source_set_io_fd_own(s->watchdog.mounts, 1);
        return 0;
}

/*
 * A dead view is replaced before the engine starts: callers wait from now on instead of failing, and
 * unmounting it later would propagate and remove what hides the view from the engine (engine-child.c).
 */
static int replace_dead_view(struct lkg_supervisor *s, struct lkg_error *err)
{
        int r = lkg_connection_handshake(&s->connection, err);

        if (r == 0 && s->source.over)
                r = lkg_source_uncover(s, err);
        return r == 0 && s->phase != LKG_PHASE_END ? lkg_attach(s, err) : r;
}

static int start_fresh(struct lkg_supervisor *s, struct lkg_error *err)
{
        int r = lkg_preflight_occupied(s, err);
        bool stale = s->stale_id != 0;

        if (r != 0)
                return r;
        /* Children of an lkgfsd whose connection is gone: nothing else would end them. */
        if (lkg_recorded_end(s, LKG_CHILD_ENGINE) + lkg_recorded_end(s, LKG_CHILD_NOTIFIER) > 0)
                lkg_log_notice("ended processes that an earlier lkgfsd had left running");
        if (!stale || !s->source.over)
                r = lkg_source_open(s, err);
        if (s->phase == LKG_PHASE_END)
                return r;
        if (r == 0)
                r = lkg_listen_open(s, err);
        if (r == 0)
                r = lkg_connection_open(s, &s->connection, err);
        if (r == 0 && stale)
                r = replace_dead_view(s, err);
        if (r != 0 || s->phase == LKG_PHASE_END)
                return r;
        enter(s, LKG_PHASE_ENGINE, ENGINE_LIMIT_NS);
        lkg_child_start(s, LKG_CHILD_ENGINE);
        if (!stale)
                r = lkg_connection_handshake(&s->connection, err); /* while the engine reads its layers */
        if (r == 0)
                lkg_child_start(s, LKG_CHILD_SERVER); /* it is loaded meanwhile, too */
        return r;
}

static void start_adopted(struct lkg_supervisor *s)
{
        struct lkg_child *server = &s->children[LKG_CHILD_SERVER];

        s->phase = LKG_PHASE_RUNNING;
        lkg_child_start(s, LKG_CHILD_SERVER);
        lkg_log_notice("taking over %s; file server %s", s->mount_point,
                       server->adopted ? "goes on" : "started");
        announce(s);
}

/*
 * A view that our file server cannot take over: another memory layout, another FUSE_INIT. A new view is made
 * beside it, over the same source directory and with the existing publication, and replaces the old one in
 * one step (lkg_attach). The old file server continues to serve open files of the old view, and ends with
 * the last of them.
 */
static int start_replacing(struct lkg_supervisor *s, struct lkg_error *err)
{
        char aside[64];
        int r;

        lkg_log_notice("the view on %s is of another build: replaced by a new one", s->mount_point);
        (void)lkg_recorded_end(s, LKG_CHILD_NOTIFIER);
        /* Its file names are node ids of the old memory; the old file server has the directory open. */
        (void)snprintf(aside, sizeof(aside), LKG_PUBLICATION_PINNED ".%d", (int)getpid());
        if (renameat(s->dirs.runtime, LKG_PUBLICATION_PINNED, s->dirs.runtime, aside) < 0 && errno != ENOENT)
                return lkg_fail(err, EX_IOERR, errno, "rename " LKG_PUBLICATION_PINNED);
        r = lkg_connection_open(s, &s->connection, err);
        if (r == 0)
                r = lkg_connection_handshake(&s->connection, err);
        if (r != 0)
                return r;
        s->remounting = true; /* the engine waits: its namespace must be made after the old view is gone */
        enter(s, LKG_PHASE_SERVER, SERVER_LIMIT_NS);
        lkg_child_start(s, LKG_CHILD_SERVER);
        return 0;
}

static int start(struct lkg_supervisor *s, struct lkg_error *err)
{
        int r = lkg_preflight(s, err);

        if (r != 0 || s->options->fake)
                return r;
        r = lkg_background_redirect(s, err);
        if (r == 0)
                r = prepare_loop(s, err);
        if (r == 0 && !(s->consumer = lkg_consumer_new(s->event, s->dirs.runtime, s->settings)))
                r = lkg_fail(err, EX_OSERR, ENOMEM, "prepare restarts of components");
        if (r == 0)
                r = lkg_adopt(s, err);
        if (r != 0)
                return r;
        if (s->replacing)
                return start_replacing(s, err);
        s->hands_off = false;
        if (!s->adopted)
                return start_fresh(s, err);
        start_adopted(s);
        return 0;
}

const struct lkg_life lkg_life = {
        .fail = fail,
        .engine_ready = engine_ready,
        .copies_done = copies_done,
        .server_ready = server_ready,
        .connection_lost = connection_lost,
        .stop = stop,
        .child_gone = child_gone,
};

static void init(struct lkg_supervisor *s, const struct lkg_options *options, int ready_fd)
{
        static const struct lkg_child_row *const rows[_LKG_CHILD_KIND_MAX] = {
                [LKG_CHILD_ENGINE] = &lkg_engine_row,
                [LKG_CHILD_SERVER] = &lkg_server_row,
                [LKG_CHILD_NOTIFIER] = &lkg_notifier_row,
        };

        s->life = &lkg_life;
        s->options = options;
        s->hands_off = true;
        s->background.ready_fd = ready_fd;
        s->background.log_fd = s->dirs.state_lock = s->dirs.runtime_lock = s->dirs.state = s->dirs.runtime =
                s->dirs.records = s->source.fd = s->dirs.listen = -EBADF;
        for (size_t i = 0; i < _LKG_CHILD_KIND_MAX; i++)
                s->dirs.programs[i] = -EBADF;
        lkg_connection_init(&s->connection);
        for (size_t i = 0; i < _LKG_CHILD_KIND_MAX; i++)
                s->children[i] = (struct lkg_child){
                        .supervisor = s,
                        .row = rows[i],
                        .kind = (enum lkg_child_kind)i,
                        .pidfd = -EBADF,
                        .channel = -EBADF,
                };
}

static void deinit(struct lkg_supervisor *s)
{
        lkg_helper_cancel(&s->jobs.reload);
        lkg_fallback_cancel(s);
        end_waiting(s);
        for (size_t i = 0; i < _LKG_CHILD_KIND_MAX; i++)
                lkg_child_forget(&s->children[i]);
        s->event = sd_event_unref(s->event);
        lkg_connection_close(&s->connection);
        lkg_close(s->dirs.listen);
        lkg_close(s->source.fd);
        if (s->children_namespace > 0)
                lkg_close(s->children_namespace);
        s->engine.judging = lkg_judging_close(s->engine.judging);
        lkg_close(s->dirs.records);
        lkg_close(s->dirs.runtime);
        lkg_close(s->dirs.state);
        lkg_close(s->dirs.runtime_lock);
        lkg_close(s->dirs.state_lock);
        lkg_settings_free(s->settings);
        for (size_t i = 0; i < _LKG_CHILD_KIND_MAX; i++) {
                free(s->programs[i]);
                lkg_close(s->dirs.programs[i]);
        }
        free(s->dirs.private_path);
        free(s->config);
        free(s->mount_point);
}

/*
 * Undo a start that failed: nothing of it may remain, and nothing of a view that another process still
 * serves may be removed.
 */
static void undo(struct lkg_supervisor *s)
{
        if (s->adopted)
                return;
        if (s->connection.attached && s->connection.mount_fd >= 0)
                (void)umount2(s->mount_point, MNT_DETACH | UMOUNT_NOFOLLOW);
        for (size_t i = 0; i < _LKG_CHILD_KIND_MAX; i++)
                if (lkg_child_running(&s->children[i]) && !s->children[i].adopted)
                        lkg_child_abandon(&s->children[i], SERVER_END_NS);
}

int lkg_supervisor_run(const struct lkg_options *options, int ready_fd)
{
        struct lkg_supervisor *s = calloc(1, sizeof(*s));
        bool told;
        int code;

        if (!s) {
                lkg_log_error("out of memory");
                return EX_OSERR;
        }
        init(s, options, ready_fd);
        code = start(s, &s->end.reason);
        if (code != 0) {
                s->end.code = code;
                undo(s);
        } else if (s->event) {
                code = sd_event_loop(s->event);
                if (code < 0) {
                        (void)snprintf(s->end.reason.message, sizeof(s->end.reason.message),
                                       "event loop: %s", strerror(-code));
                        s->end.code = code = EX_OSERR;
                }
        }
        /* Reported once, where it is seen: by the process that waits for us, or here. */
        told = s->background.ready_fd >= 0 && !s->background.redirected;
        if (code != 0 && !told)
                lkg_log_error("%s", s->end.reason.message);
        if (!s->hands_off) {
                lkg_notify_unstore();
                lkg_background_cleanup(s);
                lkg_preflight_cleanup(s);
        }
        deinit(s);
        /* Last: a waiting lkgfsd may try again at once. */
        lkg_background_report(s, code != 0 ? code : EX_UNAVAILABLE, s->end.reason.message);
        lkg_close(s->background.log_fd);
        free(s);
        return code;
}
