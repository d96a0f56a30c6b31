/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The three children: watched through a pidfd, started again after a pause, ended within a time limit. A
 * child is identified by pid and start time, never by the pid alone.
 */
#include <inttypes.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/pidfd.h>
#include <sys/wait.h>

#include <lkg/file.h>
#include <lkg/base.h>

#include "supervisor.h"

#define CHANNEL_ROUNDS 16 /* times LKG_MESSAGES_AT_ONCE: more than a socket can hold */

const char *const lkg_child_names[_LKG_CHILD_KIND_MAX] = {
        [LKG_CHILD_ENGINE] = "engine",
        [LKG_CHILD_SERVER] = "file server",
        [LKG_CHILD_NOTIFIER] = "notifier",
};

bool lkg_child_running(const struct lkg_child *child)
{
        return child->pid > 0;
}

void lkg_child_log(struct lkg_child *child, int priority, const char *fmt, ...)
{
        char text[512];
        unsigned n_dropped = 0;
        va_list ap;

        if (!lkg_log_limit_pass(&child->log_limit, lkg_boottime_ns(), &n_dropped))
                return;
        va_start(ap, fmt);
        (void)vsnprintf(text, sizeof(text), fmt, ap);
        va_end(ap);
        if (n_dropped > 0)
                lkg_log(priority, NULL, "%s %s (%u more lines about it left out)",
                        lkg_child_names[child->kind], text, n_dropped);
        else
                lkg_log(priority, NULL, "%s %s", lkg_child_names[child->kind], text);
}

/* Forgets the process; restart counters and log limits are kept. */
static void reset(struct lkg_child *child)
{
        lkg_said_end(&child->said);
        child->exit_source = sd_event_source_disable_unref(child->exit_source);
        child->channel_source = sd_event_source_disable_unref(child->channel_source);
        lkg_timer_stop(&child->timer);
        child->pidfd = lkg_close(child->pidfd);
        child->channel = lkg_close(child->channel);
        child->pid = 0;
        child->adopted = child->ready = child->fatal = child->ending = false;
}

static struct lkg_process *shared_record(struct lkg_child *child)
{
        struct lkg_shared *shared = child->supervisor->connection.shared;

        if (!shared || child->kind == LKG_CHILD_SERVER)
                return NULL; /* the file server writes its own record */
        return child->kind == LKG_CHILD_ENGINE ? &shared->engine : &shared->notifier;
}

static void record(struct lkg_child *child)
{
        struct lkg_process *process = shared_record(child);
        uint64_t start_time = lkg_process_start_time((int)child->pid);

        lkg_recorded_note(child->supervisor, child->kind, (int)child->pid, start_time);
        if (!process)
                return;
        process->start_time = start_time;
        atomic_store(&process->pid, (int)child->pid);
        atomic_fetch_add(child->kind == LKG_CHILD_ENGINE
                                 ? &child->supervisor->connection.shared->engine_starts
                                 : &child->supervisor->connection.shared->notifier_starts,
                         1);
}

/* Return: CLD_* and its value; 0 if we cannot wait for the process. */
static int reap(const struct lkg_child *child, int *ret_status)
{
        siginfo_t info = { 0 };

        *ret_status = 0;
        if (child->adopted || waitid(P_PID, (id_t)child->pid, &info, WEXITED | WNOHANG) < 0 ||
            info.si_pid == 0)
                return 0;
        *ret_status = info.si_status;
        return info.si_code;
}

static void log_death(struct lkg_child *child, const struct lkg_child_end *end)
{
        double seconds = (double)end->lived_ns / (double)LKG_NSEC_PER_SEC;
        int priority =
                child->ending || child->supervisor->phase >= LKG_PHASE_UNMOUNT ? LOG_DEBUG : LOG_WARNING;

        if (end->code == CLD_EXITED)
                lkg_child_log(child, priority, "(pid %d) exited with code %d after %.3f s", (int)child->pid,
                              end->status, seconds);
        else if (end->code != 0)
                lkg_child_log(child, priority, "(pid %d) was killed by signal %d (%s) after %.3f s",
                              (int)child->pid, end->status, strsignal(end->status), seconds);
        else
                lkg_child_log(child, priority, "(pid %d), started by an earlier lkgfsd, is gone",
                              (int)child->pid);
}

bool lkg_child_hear(struct lkg_child *child)
{
        unsigned n = 0;

        while (n < LKG_MESSAGES_AT_ONCE && child->channel >= 0 &&
               child->ops->input(child->supervisor, child))
                n++;
        return n == LKG_MESSAGES_AT_ONCE;
}

void lkg_child_hear_out(struct lkg_child *child)
{
        unsigned n = 0;

        while (n < CHANNEL_ROUNDS && lkg_child_hear(child))
                n++;
        lkg_said_hear(&child->said);
}

static void note_end(struct lkg_child *child, const struct lkg_child_end *end)
{
        struct lkg_shared *shared = child->supervisor->connection.shared;

        _Static_assert((int)LKG_CHILD_ENGINE == (int)LKG_ENDS_ENGINE &&
                               (int)LKG_CHILD_SERVER == (int)LKG_ENDS_SERVER &&
                               (int)LKG_CHILD_NOTIFIER == (int)LKG_ENDS_NOTIFIER,
                       "one order");
        if (shared && !child->ending && child->supervisor->phase < LKG_PHASE_UNMOUNT)
                lkg_ends_note(&shared->ends[child->kind], end->code, end->status, lkg_boottime_ns());
}

static int on_exit_of_child(sd_event_source *source, int fd, uint32_t revents, void *userdata)
{
        struct lkg_child *child = userdata;
        struct lkg_supervisor *s = child->supervisor;
        struct lkg_process *process = shared_record(child);
        struct lkg_child_end end = { .adopted = child->adopted };

        (void)source;
        (void)fd;
        (void)revents;
        /* Its last messages are still in the socket: a FATAL, or descriptors to be kept. */
        lkg_child_hear_out(child);
        lkg_said_end(&child->said);
        end.ready = child->ready;
        end.fatal = child->fatal;
        end.lived_ns = lkg_boottime_ns() - child->started_ns;
        end.code = reap(child, &end.status);
        log_death(child, &end);
        note_end(child, &end);
        if (process)
                atomic_store(&process->pid, 0);
        reset(child);
        if (s->phase == LKG_PHASE_END)
                s->life->child_gone(s);
        else
                child->ops->died(s, child, &end);
        return 0;
}

static int on_channel(sd_event_source *source, int fd, uint32_t revents, void *userdata)
{
        struct lkg_child *child = userdata;

        (void)fd;
        if (lkg_child_hear(child))
                return 0; /* the rest is read at the next event, after other events */
        /* At the end of the stream there are no more messages; the pidfd reports the rest. */
        if (source == child->channel_source && (revents & (EPOLLHUP | EPOLLERR)))
                child->channel_source = sd_event_source_disable_unref(child->channel_source);
        return 0;
}

/* Takes over @pidfd and @channel; kills the process on failure. */
static int watch(struct lkg_child *child, pid_t pid, int pidfd, int channel)
{
        sd_event *event = child->supervisor->event;
        int r;

        lkg_timer_stop(&child->timer);
        child->pid = pid;
        child->pidfd = pidfd;
        child->channel = channel;
        child->started_ns = lkg_boottime_ns();
        r = sd_event_add_io(event, &child->exit_source, pidfd, EPOLLIN, on_exit_of_child, child);
        if (r >= 0 && channel >= 0)
                r = sd_event_add_io(event, &child->channel_source, channel, EPOLLIN, on_channel, child);
        if (r >= 0) /* a message that arrived before the end is handled first */
                r = sd_event_source_set_priority(child->exit_source, SD_EVENT_PRIORITY_NORMAL + 1);
        if (r < 0) {
                (void)pidfd_send_signal(pidfd, SIGKILL, NULL, 0);
                reset(child);
                return r;
        }
        record(child);
        return 0;
}

/* The name of its program, as in the log. */
static const char *program_of(const struct lkg_child *child)
{
        static const char *const programs[_LKG_CHILD_KIND_MAX] = {
                [LKG_CHILD_ENGINE] = "lkgfs-engine",
                [LKG_CHILD_SERVER] = "lkgfs-fs",
                [LKG_CHILD_NOTIFIER] = "lkgfs-notify",
        };

        return programs[child->kind];
}

int lkg_child_spawn(struct lkg_child *child, struct lkg_spawn *spawn, int *channel)
{
        LKG_CLEANUP(lkg_closep) int ours = -EBADF;
        LKG_CLEANUP(lkg_closep) int theirs = -EBADF;
        int pidfd = -EBADF, r;
        pid_t pid = 0;

        r = lkg_said_pipe(&ours, &theirs);
        if (r < 0)
                return r;
        spawn->output_fd = theirs;
        r = lkg_spawn(spawn, &pid, &pidfd);
        if (r < 0)
                return r;
        r = watch(child, pid, pidfd, LKG_STEAL_FD(*channel));
        if (r < 0)
                return r;
        r = lkg_said_watch(&child->said, child->supervisor->event, program_of(child), LKG_STEAL_FD(ours));
        if (r < 0) /* it is running, but its channel is gone */
                lkg_child_log(child, LOG_WARNING, "is not listened to: %s", strerror(-r));
        return 0;
}

static void on_pause_over(void *userdata)
{
        struct lkg_child *child = userdata;

        lkg_child_start(child->supervisor, child->kind);
}

void lkg_child_start_later(struct lkg_child *child, uint64_t pause_ns)
{
        struct lkg_supervisor *s = child->supervisor;

        lkg_timer_stop(&child->timer);
        if (pause_ns == 0) {
                lkg_child_start(s, child->kind);
                return;
        }
        lkg_child_log(child, LOG_NOTICE, "is started again in %u ms",
                      (unsigned)(pause_ns / LKG_NSEC_PER_MSEC));
        if (lkg_timer_set(&child->timer, s->event, pause_ns, 0, on_pause_over, child) < 0)
                lkg_child_start(s, child->kind);
}

void lkg_child_start(struct lkg_supervisor *s, enum lkg_child_kind kind)
{
        struct lkg_child *child = &s->children[kind];
        int r;

        if (lkg_child_running(child) || s->phase == LKG_PHASE_END)
                return;
        if (s->phase >= LKG_PHASE_UNMOUNT && kind != LKG_CHILD_SERVER)
                return; /* only callers that are still waiting matter now */
        if (s->remounting && kind == LKG_CHILD_ENGINE)
                return; /* will be started when the new view is attached */
        r = child->ops->start(s, child);
        if (r < 0) {
                lkg_child_log(child, LOG_ERR, "cannot be started: %s", strerror(-r));
                lkg_child_start_later(child,
                                      1 * LKG_NSEC_PER_SEC); /* out of memory or processes: keep trying */
                return;
        }
        if (lkg_child_running(child))
                lkg_child_log(child, LOG_INFO, "started (pid %d)", (int)child->pid);
}

static void on_end_limit(void *userdata)
{
        struct lkg_child *child = userdata;

        lkg_child_log(child, LOG_WARNING, "(pid %d) did not end in time, killed", (int)child->pid);
        (void)pidfd_send_signal(child->pidfd, SIGKILL, NULL, 0);
}

void lkg_child_end(struct lkg_child *child, int signal, uint64_t limit_ns)
{
        lkg_timer_stop(&child->timer);
        if (!lkg_child_running(child))
                return;
        child->ending = true;
        if (signal != 0)
                (void)pidfd_send_signal(child->pidfd, signal, NULL, 0);
        if (signal == SIGKILL)
                return;
        if (lkg_timer_set(&child->timer, child->supervisor->event, limit_ns, 0, on_end_limit, child) < 0)
                (void)pidfd_send_signal(child->pidfd, SIGKILL, NULL, 0);
}

static int on_abandoned_end(sd_event_source *source, int fd, uint32_t revents, void *userdata)
{
        struct lkg_child *child = userdata;
        siginfo_t info = { 0 };

        (void)revents;
        /* an adopted process is not ours to reap */
        (void)waitid(P_PIDFD, (id_t)fd, &info, WEXITED | WNOHANG);
        sd_event_source_disable_unref(source);
        lkg_close(fd);
        child->n_abandoned--;
        if (child->held) {
                child->held = false;
                lkg_child_start(child->supervisor, child->kind);
        }
        return 0;
}

void lkg_child_abandon(struct lkg_child *child, uint64_t grace_ns)
{
        int pidfd = LKG_STEAL_FD(child->pidfd);
        sd_event_source *source = NULL;

        (void)pidfd_send_signal(pidfd, SIGKILL, NULL, 0);
        /* starting a successor is easier when this process is really gone */
        (void)lkg_wait_pidfd(pidfd, grace_ns);
        reset(child); /* first: the loop must watch each descriptor for one purpose only */
        if (sd_event_add_io(child->supervisor->event, &source, pidfd, EPOLLIN, on_abandoned_end, child) < 0)
                lkg_close(pidfd);
        else
                child->n_abandoned++;
}

int lkg_child_adopt(struct lkg_child *child, const struct lkg_process *process, int channel)
{
        int pid = atomic_load(&process->pid);
        int pidfd, said, r;

        if (pid <= 0)
                return -ESRCH;
        pidfd = pidfd_open(pid, 0);
        pidfd = pidfd < 0 ? -errno : lkg_lift_fd(pidfd);
        if (pidfd < 0)
                return pidfd;
        /* After pidfd_open(): from now on the pid cannot be reused unnoticed. */
        if (lkg_process_start_time(pid) != process->start_time ||
            !lkg_is_ours(child->supervisor, process, child->supervisor->connection.shared_fd)) {
                lkg_close(pidfd);
                return -ESRCH;
        }
        said = lkg_said_of(pid);
        if (said >= 0 && lkg_process_start_time(pid) != process->start_time)
                said = lkg_close(said);
        child->adopted = true;
        child->pid = pid;
        child->pidfd = pidfd;
        child->channel = channel;
        child->started_ns = lkg_boottime_ns();
        r = sd_event_add_io(child->supervisor->event, &child->exit_source, pidfd, EPOLLIN, on_exit_of_child,
                            child);
        if (r >= 0 && channel >= 0)
                r = sd_event_add_io(child->supervisor->event, &child->channel_source, channel, EPOLLIN,
                                    on_channel, child);
        if (r < 0) {
                child->channel = -EBADF; /* the caller keeps it */
                reset(child);
                lkg_close(said);
        } else if (said >= 0) {
                (void)lkg_said_watch(&child->said, child->supervisor->event, program_of(child), said);
        }
        return r;
}

void lkg_child_deinit(struct lkg_child *child)
{
        reset(child);
}
