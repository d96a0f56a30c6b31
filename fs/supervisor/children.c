/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The three children: started from one description (struct lkg_child_row), watched through a pidfd, started again after a pause,
 * ended within a time limit. A child is identified by pid and start time, never by the pid alone. At the end of this file stands
 * the simplest of them, the notifier.
 */
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include <lkg/base.h>
#include <lkg/file.h>

#include "supervisor.h"

#define CHANNEL_ROUNDS 16                       /* times LKG_MESSAGES_AT_ONCE: more than a socket can hold */
#define KILL_GRACE_NS  (50 * LKG_NSEC_PER_MSEC) /* far more than a killed process needs normally */
#define QUIET_NS       (60 * LKG_NSEC_PER_SEC)  /* between two looks while nothing happens */
#define EARLY_NS       (1 * LKG_NSEC_PER_SEC)   /* a death so soon after the start */
#define MORE_MAX       8u                       /* further arguments of a child */

bool lkg_child_running(const struct lkg_child *child)
{
        return child->pid > 0;
}

bool lkg_child_ready(const struct lkg_child *child)
{
        return lkg_child_running(child) && child->ready;
}

bool lkg_child_early(const struct lkg_child *child)
{
        return !child->adopted && lkg_boottime_ns() - child->started_ns < EARLY_NS;
}

void lkg_child_log(struct lkg_child *child, int priority, const char *fmt, ...)
{
        static const struct lkg_bucket_rate rate = { .burst = 10, .interval_ns = LKG_NSEC_PER_SEC / 10 };
        char text[512], more[64] = "";
        va_list ap;

        if (lkg_bucket_take(&child->log_limit, &rate, lkg_boottime_ns()) != 0) {
                child->n_dropped++;
                return;
        }
        va_start(ap, fmt);
        (void)vsnprintf(text, sizeof(text), fmt, ap);
        va_end(ap);
        if (child->n_dropped > 0)
                (void)snprintf(more, sizeof(more), " (%u more lines about it left out)", child->n_dropped);
        child->n_dropped = 0;
        lkg_log(priority, NULL, "%s %s%s", child->row->name, text, more);
}

void lkg_child_forget(struct lkg_child *child)
{
        lkg_said_end(&child->said);
        child->exit_source = sd_event_source_disable_unref(child->exit_source);
        child->channel_source = sd_event_source_disable_unref(child->channel_source);
        lkg_timer_stop(&child->timer);
        child->pidfd = lkg_close(child->pidfd);
        child->channel = lkg_close(child->channel);
        child->pid = 0;
}

static struct lkg_process *shared_record(const struct lkg_child *child)
{
        struct lkg_shared *shared = child->supervisor->connection.shared;

        if (!shared || child->kind == LKG_CHILD_SERVER)
                return NULL; /* the file server writes its own record */
        return child->kind == LKG_CHILD_ENGINE ? &shared->engine : &shared->notifier;
}

/* What a new process knows. */
struct newborn {
        const struct lkg_child *child;
        pid_t parent;
        const char *argv[2 * LKG_CHILD_FDS_MAX + MORE_MAX];
        char numbers[LKG_CHILD_FDS_MAX][4];
        int fds[LKG_CHILD_FDS_MAX], output; /* all of them are LKG_FD_BASE or above */
        size_t n_fds;
};

/*
 * A successor must know every child that runs: two engines would delete each other's publications, two file
 * servers take each other's requests. A supervisor that is killed between fork and record could not record it: so the child
 * records itself, and dies with its parent until it has.
 */
static int record_itself(const struct newborn *newborn)
{
        const struct lkg_child *child = newborn->child;
        struct lkg_process *process = shared_record(child);

        if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) < 0 || getppid() != newborn->parent)
                return EX_UNAVAILABLE;
        if (process) {
                process->start_time = lkg_process_start_time((int)getpid());
                atomic_store(&process->pid, (int)getpid());
        }
        lkg_recorded_note(child->supervisor, child->kind);
        return prctl(PR_SET_PDEATHSIG, 0, 0, 0, 0) < 0 ? EX_OSERR : 0;
}

/* Signals that we or our parent ignore are not ignored there. */
static void reset_signals(void)
{
        struct sigaction action = { .sa_handler = SIG_DFL };

        for (int i = 1; i < NSIG; i++)
                (void)sigaction(i, &action, NULL);
}

static int place_descriptors(const struct newborn *newborn)
{
        int null = open("/dev/null", O_RDONLY | O_CLOEXEC);

        if (dup2(null, STDIN_FILENO) < 0 || dup2(newborn->output, STDOUT_FILENO) < 0 ||
            dup2(newborn->output, STDERR_FILENO) < 0)
                return EX_OSERR;
        for (size_t i = 0; i < newborn->n_fds; i++)
                if (dup2(newborn->fds[i], 3 + (int)i) < 0)
                        return EX_OSERR;
        return 0;
}

/* In the new process. What fails here is its exit code, and a line of its output. */
static int become(void *userdata)
{
        const struct newborn *newborn = userdata;
        const struct lkg_child *child = newborn->child;
        const struct lkg_supervisor *s = child->supervisor;
        int directory, r;

        /* Setup may take for ever, and then a successor of lkgfsd has to tell it from its parent and end it. */
        (void)prctl(PR_SET_NAME, child->row->program, 0, 0, 0);
        reset_signals();
        r = place_descriptors(newborn);
        if (r == 0)
                r = record_itself(newborn);
        if (r == 0 && child->row->begin)
                r = child->row->begin(s);
        if (r != 0)
                return r;
        if (s->children_namespace > 0 && setns(s->children_namespace, CLONE_NEWNS) < 0) {
                (void)dprintf(STDERR_FILENO, "mount namespace of %s: %s\n", newborn->argv[0],
                              strerror(errno));
                return EX_UNAVAILABLE;
        }
        directory = 3 + (int)newborn->n_fds;
        if (dup3(s->dirs.programs[child->kind], directory, O_CLOEXEC) < 0)
                return EX_OSERR;
        closefrom(directory + 1); /* before anything that takes time: our locks are among them */
        r = child->row->setup ? child->row->setup(s) : 0;
        if (r != 0)
                return r;
        (void)execve(newborn->argv[0], (char *const *)(uintptr_t)newborn->argv, environ);
        if (errno == ENOENT)
                (void)execveat(directory, child->row->program, (char *const *)(uintptr_t)newborn->argv,
                               environ, 0);
        (void)dprintf(STDERR_FILENO, "execute %s: %s\n", newborn->argv[0], strerror(errno));
        return EX_UNAVAILABLE;
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
        double seconds = (double)(lkg_boottime_ns() - child->started_ns) / (double)LKG_NSEC_PER_SEC;
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
               child->row->input(child->supervisor, child))
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

        if (shared && !child->ending && child->supervisor->phase < LKG_PHASE_UNMOUNT)
                lkg_ends_note(&shared->ends[child->kind], end->code, end->status, lkg_boottime_ns());
}

static int on_exit_of_child(sd_event_source *source, int fd, uint32_t revents, void *userdata)
{
        struct lkg_child *child = userdata;
        struct lkg_supervisor *s = child->supervisor;
        struct lkg_process *process = shared_record(child);
        struct lkg_child_end end = { 0 };

        /* Its last messages are still in the socket: a FATAL, or descriptors to be kept. */
        lkg_child_hear_out(child);
        lkg_said_end(&child->said);
        end.code = reap(child, &end.status);
        log_death(child, &end);
        note_end(child, &end);
        if (process)
                atomic_store(&process->pid, 0);
        lkg_child_forget(child);
        if (s->phase == LKG_PHASE_END)
                s->life->child_gone(s);
        else
                child->row->died(s, child, &end);
        return 0;
}

static int on_channel(sd_event_source *source, int fd, uint32_t revents, void *userdata)
{
        struct lkg_child *child = userdata;

        if (lkg_child_hear(child))
                return 0; /* the rest is read at the next event, after other events */
        /* At the end of the stream there are no more messages; the pidfd reports the rest. */
        if (source == child->channel_source && (revents & (EPOLLHUP | EPOLLERR)))
                child->channel_source = sd_event_source_disable_unref(child->channel_source);
        return 0;
}

/* Watches what @child has: its end, its messages and, unless @output is negative, its output, which is taken over. */
static int watch(struct lkg_child *child, int output)
{
        sd_event *event = child->supervisor->event;
        int r = sd_event_add_io(event, &child->exit_source, child->pidfd, EPOLLIN, on_exit_of_child, child);

        child->started_ns = lkg_boottime_ns();
        child->ready = child->fatal = child->ending = false;
        if (r >= 0 && child->channel >= 0)
                r = sd_event_add_io(event, &child->channel_source, child->channel, EPOLLIN, on_channel,
                                    child);
        if (r >= 0) /* a message that arrived before the end is handled first */
                r = sd_event_source_set_priority(child->exit_source, SD_EVENT_PRIORITY_NORMAL + 1);
        if (r < 0 || output < 0) {
                lkg_close(output);
                return r < 0 ? r : 0;
        }
        r = lkg_said_watch(&child->said, event, child->row->program, output);
        if (r < 0) /* it is running, but its output is gone */
                lkg_child_log(child, LOG_WARNING, "is not listened to: %s", strerror(-r));
        return 0;
}

/* Takes over the ends of channel and output when it is started. */
static int spawn(struct lkg_child *child, struct newborn *newborn, int *channel, int *output)
{
        const struct lkg_job_spec spec = { .run = become,
                                           .userdata = newborn,
                                           .flags = LKG_JOB_KEEPS_STDIO | LKG_JOB_KEEPS_FDS |
                                                    LKG_JOB_OUTLIVES_US };
        struct lkg_job job = LKG_JOB_INIT;
        int r = lkg_job_start(&job, &spec, NULL, NULL);

        if (r < 0)
                return r;
        lkg_timer_stop(&child->timer);
        child->adopted = false;
        child->pid = job.pid;
        child->pidfd = lkg_lift_fd(job.pidfd);
        child->channel = LKG_STEAL_FD(*channel);
        r = child->pidfd < 0 ? child->pidfd : watch(child, LKG_STEAL_FD(*output));
        if (r < 0) {
                lkg_job_kill(&job);
                (void)waitpid(job.pid, NULL, 0);
                lkg_child_forget(child);
        }
        return r;
}

/* Descriptors and arguments as its description says. Return: 0; 1: it is not to be started now; -errno. */
static int start(struct lkg_supervisor *s, struct lkg_child *child)
{
        const struct lkg_child_row *row = child->row;
        struct newborn newborn = { .child = child,
                                   .parent = getpid(),
                                   .argv = { s->programs[child->kind] } };
        LKG_CLEANUP(lkg_closep) int channel = -EBADF, their_channel = -EBADF;
        LKG_CLEANUP(lkg_closep) int output = -EBADF, their_output = -EBADF;
        size_t n = 1;
        int r = lkg_channel_pair(&channel, &their_channel);

        if (r >= 0)
                r = lkg_said_pipe(&output, &their_output);
        for (size_t i = 0; r >= 0 && row->fds[i].option; i++) {
                int fd = row->fds[i].fd == LKG_CHILD_CHANNEL
                                 ? their_channel
                                 : *(const int *)(const void *)((const char *)s + row->fds[i].fd);

                (void)snprintf(newborn.numbers[i], sizeof(newborn.numbers[i]), "%zu", 3 + i);
                newborn.argv[n++] = row->fds[i].option;
                newborn.argv[n++] = newborn.numbers[i];
                newborn.fds[newborn.n_fds++] = fd;
        }
        if (r >= 0)
                r = row->prepare(s, child, channel, newborn.argv + n);
        newborn.output = their_output;
        if (r == 0)
                r = spawn(child, &newborn, &channel, &output);
        if (r == 0 && row->started)
                row->started(s);
        return r;
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
        r = start(s, child);
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
        lkg_child_forget(child); /* first: the loop must watch each descriptor for one purpose only */
        if (sd_event_add_io(child->supervisor->event, &source, pidfd, EPOLLIN, on_abandoned_end, child) < 0)
                lkg_close(pidfd);
        else
                child->n_abandoned++;
}

void lkg_child_replace(struct lkg_child *child, const char *why)
{
        const struct lkg_child_end end = { .code = CLD_KILLED, .status = SIGKILL };

        lkg_child_log(child, LOG_ERR, "(pid %d) %s: killed and replaced", (int)child->pid, why);
        lkg_child_abandon(child, KILL_GRACE_NS);
        child->row->died(child->supervisor, child, &end);
}

int lkg_child_adopt(struct lkg_child *child, int channel)
{
        int pid, output, r, pidfd = lkg_recorded_hold(child->supervisor, child->kind, &pid);

        if (pidfd < 0)
                return pidfd;
        output = lkg_said_of(pid);
        if (output >= 0 && lkg_wait_pidfd(pidfd, 0)) /* it may have been another process */
                output = lkg_close(output);
        child->adopted = true;
        child->pid = pid;
        child->pidfd = pidfd;
        child->channel = channel;
        r = watch(child, output);
        if (r < 0) {
                child->channel = -EBADF; /* the caller keeps it */
                lkg_child_forget(child);
        }
        return r;
}

/* ---- do they work ---- */

static void on_look(void *userdata);

static void look_in(struct lkg_supervisor *s, uint64_t pause_ns)
{
        s->watchdog.quiet = pause_ns == QUIET_NS;
        (void)lkg_timer_set(&s->watchdog.timer, s->event, pause_ns, pause_ns / 10, on_look, s);
}

static void on_look(void *userdata)
{
        struct lkg_supervisor *s = userdata;
        bool busy = s->watchdog.quiet || s->watchdog.woken;

        s->watchdog.woken = false;
        for (size_t i = _LKG_CHILD_KIND_MAX; i-- > 0 && s->phase < LKG_PHASE_DRAIN;) /* the engine last */
                busy = s->children[i].row->look(s, &s->children[i], busy) || busy;
        if (s->phase < LKG_PHASE_DRAIN)
                look_in(s, busy ? LKG_ALIVE_TICK_NS : QUIET_NS);
}

void lkg_watchdog_wake(struct lkg_supervisor *s)
{
        s->watchdog.woken = true;
        if (s->phase < LKG_PHASE_DRAIN && (s->watchdog.quiet || !lkg_timer_is_set(&s->watchdog.timer)))
                look_in(s, LKG_ALIVE_TICK_NS);
}

/* ---- messages to the engine ---- */

int lkg_engine_tell(struct lkg_supervisor *s, const struct lkg_message *message)
{
        struct lkg_child *child = &s->children[LKG_CHILD_ENGINE];
        int r;

        if (child->channel < 0)
                return -ENOTCONN;
        r = lkg_message_send(child->channel, message);
        if (r < 0 && r != -EPIPE && r != -ECONNRESET) /* those: it has just ended */
                lkg_child_log(child, LOG_WARNING, "does not take messages: %s", strerror(-r));
        return r;
}

void lkg_engine_send(struct lkg_supervisor *s, uint32_t type)
{
        struct lkg_message message;

        lkg_message_init(&message, type);
        (void)lkg_engine_tell(s, &message);
}

/* ---- the notifier ---- */

/*
 * It touches changed files through the view. It gets a detached clone of the view, so that it
 * neither keeps the mount busy nor sees mounts on top of it, and has no access to the device. Killing it
 * loses nothing.
 */

/*
 * Each step of its work is one call through the view, which a hung file server delays until it is replaced
 * (LKG_HEARTBEAT_HUNG_NS). So this is longer.
 */
#define STUCK_NS (5 * LKG_NSEC_PER_SEC)
/*
 * A user who keeps a directory of the view locked (a listing into memory of a file system that does not
 * answer) blocks everyone who changes it, and SIGKILL does not end that wait. The next notifier would be
 * blocked, too.
 */
#define ABANDONED_MAX 4u

/* Return: whether another one may be started; if not, one is started when an earlier one has ended. */
static bool may_start(struct lkg_child *child)
{
        if (child->n_abandoned < ABANDONED_MAX)
                return true;
        if (!child->held)
                lkg_child_log(child, LOG_ERR,
                              "is not started: %u that were killed wait in the kernel; nobody wakes "
                              "watchers until one of them has ended",
                              child->n_abandoned);
        child->held = true;
        return false;
}

static int prepare(struct lkg_supervisor *s, struct lkg_child *child, int channel, const char **more)
{
        if (s->connection.view_fd < 0)
                return 1; /* being mounted or unmounted: started when there is a view again */
        return may_start(child) ? 0 : 1;
}

static void died(struct lkg_supervisor *s, struct lkg_child *child, const struct lkg_child_end *end)
{
        bool early = lkg_child_early(child);

        if (s->connection.view_fd >= 0)
                lkg_child_start_later(child,
                                      lkg_restart_pause_ns(&child->n_early, &lkg_restart_engine, early));
}

/* It sends nothing; the socket only tells it when we are gone. */
static bool input(struct lkg_supervisor *s, struct lkg_child *child)
{
        char byte;

        return recv(child->channel, &byte, sizeof(byte), MSG_DONTWAIT) > 0;
}

static bool look(struct lkg_supervisor *s, struct lkg_child *child, bool busy)
{
        struct lkg_shared *shared = s->connection.shared;
        struct lkg_progress *progress = &s->watchdog.notifier;
        enum lkg_progress_verdict verdict;
        bool has_work, stopped;
        uint64_t trace;

        if (!lkg_child_running(child) || child->ending || !shared || s->phase >= LKG_PHASE_UNMOUNT) {
                *progress = (struct lkg_progress){ 0 };
                return false;
        }
        has_work = atomic_load(&shared->notify.wake_wanted) != atomic_load(&shared->notify.wake_done) ||
                   atomic_load(&shared->notify.relay_head) != atomic_load(&shared->notify.relay_tail);
        trace = atomic_load(&shared->notify.wake_done) + atomic_load(&shared->notify.relay_tail) +
                atomic_load(&shared->notify.steps);
        stopped = lkg_process_running((int)child->pid, 0) == 0;
        verdict = lkg_progress_look(progress, has_work, stopped, trace, lkg_boottime_ns(), STUCK_NS);
        if (verdict == LKG_PROGRESS_STUCK) {
                lkg_child_replace(child, stopped ? "was stopped for 5 s" : "has done nothing for 5 s");
                *progress = (struct lkg_progress){ 0 };
        }
        return verdict != LKG_PROGRESS_NONE;
}

const struct lkg_child_row lkg_notifier_row = {
        .name = "notifier",
        .program = "lkgfs-notify",
        .fds = { { "--root-fd", offsetof(struct lkg_supervisor, connection.view_fd) },
                 { "--shared-fd", offsetof(struct lkg_supervisor, connection.shared_fd) },
                 { "--supervisor-fd", LKG_CHILD_CHANNEL } },
        .prepare = prepare,
        .look = look,
        .died = died,
        .input = input,
};
