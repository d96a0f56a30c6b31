/* SPDX-License-Identifier: Apache-2.0 */
#include "jobs.h"

#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <sysexits.h>

#include <lkg/file.h>

#include "said.h"

/* ---- what every part of lkgfsd needs ---- */

int lkg_fail(struct lkg_error *err, int exit_code, int errnum, const char *fmt, ...)
{
        char text[sizeof(err->message)];
        va_list ap;

        va_start(ap, fmt);
        (void)vsnprintf(text, sizeof(text), fmt, ap);
        va_end(ap);
        lkg_error_set(err, -errnum, NULL, "%s", text);
        return exit_code;
}

int lkg_lift_fd(int fd)
{
        int lifted;

        if (fd < 0)
                return fd;
        if (fd >= LKG_FD_BASE)
                return fcntl(fd, F_SETFD, FD_CLOEXEC) < 0 ? -errno : fd;
        lifted = fcntl(fd, F_DUPFD_CLOEXEC, LKG_FD_BASE);
        if (lifted < 0)
                lifted = -errno;
        lkg_close(fd);
        return lifted;
}

int lkg_channel_pair(int *ret_ours, int *ret_theirs)
{
        LKG_CLEANUP(lkg_closep) int ours = -EBADF;
        LKG_CLEANUP(lkg_closep) int theirs = -EBADF;
        int pair[2];

        if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
                return -errno;
        ours = lkg_lift_fd(pair[0]);
        theirs = lkg_lift_fd(pair[1]);
        if (ours < 0 || theirs < 0)
                return ours < 0 ? ours : theirs;
        *ret_ours = LKG_STEAL_FD(ours);
        *ret_theirs = LKG_STEAL_FD(theirs);
        return 0;
}

int lkg_channel_take(int channel, struct lkg_handover *ret, int *ret_fd)
{
        int fds[LKG_HANDOVER_FDS_MAX], r = lkg_handover_recv(channel, MSG_DONTWAIT, ret, fds);

        *ret_fd = -EBADF;
        if (r <= 0)
                return r;
        *ret_fd = LKG_STEAL_FD(fds[0]);
        for (size_t i = 0; i < LKG_HANDOVER_FDS_MAX; i++)
                lkg_close(fds[i]);
        return r;
}

int lkg_set_oom_score(const char *score)
{
        LKG_CLEANUP(lkg_closep) int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);

        return fd < 0 || write(fd, score, strlen(score)) < 0 ? -errno : 0;
}

bool lkg_wait_pidfd(int pidfd, uint64_t limit_ns)
{
        return lkg_wait_readable(pidfd, lkg_boottime_ns() + limit_ns);
}

/* ---- timers ---- */

void lkg_timer_stop(struct lkg_timer *timer)
{
        timer->source = sd_event_source_disable_unref(timer->source);
}

bool lkg_timer_is_set(const struct lkg_timer *timer)
{
        return timer->source;
}

static int on_time(sd_event_source *source, uint64_t usec, void *userdata)
{
        struct lkg_timer *timer = userdata;

        lkg_timer_stop(timer); /* first: it may be set again */
        timer->fire(timer->userdata);
        return 0;
}

int lkg_timer_set(struct lkg_timer *timer, sd_event *event, uint64_t in_ns, uint64_t slack_ns,
                  void (*fire)(void *userdata), void *userdata)
{
        int r;

        lkg_timer_stop(timer);
        timer->fire = fire;
        timer->userdata = userdata;
        r = sd_event_add_time_relative(event, &timer->source, CLOCK_MONOTONIC, in_ns / 1000, slack_ns / 1000,
                                       on_time, timer);
        if (r < 0)
                lkg_log_error("no timer: %s", strerror(-r));
        return r;
}

/* ---- helpers ---- */

static const char *name_of(const char *program)
{
        const char *slash = strrchr(program, '/');

        return slash ? slash + 1 : program;
}

/* What a new helper needs to know. */
struct begin {
        const struct lkg_helper_work *work;
        unsigned answer, said; /* its descriptors, if it is a program */
};

/* In the forked process. */
static int be_helper(void *userdata)
{
        const struct begin *begin = userdata;
        const struct lkg_helper_work *work = begin->work;
        int null;

        if (!(work->flags & LKG_JOB_OUTLIVES_US))
                (void)lkg_set_oom_score("0"); /* else it inherits our OOM protection; may fail */
        if (!work->program)
                return work->run(work->userdata);
        null = open("/dev/null", O_RDONLY | O_CLOEXEC);
        if (null < 0 || dup2(null, STDIN_FILENO) < 0 ||
            dup2(LKG_HELPER_FIRST_FD + (int)begin->answer, STDOUT_FILENO) < 0 ||
            dup2(LKG_HELPER_FIRST_FD + (int)begin->said, STDERR_FILENO) < 0)
                return EX_OSERR;
        return work->run(work->userdata);
}

static void log_said(struct lkg_helper *helper)
{
        if (!helper->work.program)
                return;
        lkg_said_all(name_of(helper->work.program), helper->said_fd);
        helper->said_fd = lkg_close(helper->said_fd);
}

static void forget_answer(struct lkg_helper *helper)
{
        if (!helper->work.program)
                return;
        log_said(helper);
        helper->answer_fd = lkg_close(helper->answer_fd);
        helper->work.program = NULL;
}

static void forget(struct lkg_helper *helper)
{
        helper->exit_source = sd_event_source_disable_unref(helper->exit_source);
        lkg_timer_stop(&helper->limit);
}

static int on_late_end(sd_event_source *source, int fd, uint32_t revents, void *userdata)
{
        pid_t pid = (pid_t)(intptr_t)userdata;

        (void)waitpid(pid, NULL, WNOHANG);
        sd_event_source_disable_unref(source);
        lkg_close(fd);
        return 0;
}

/* For a killed process that may hang in the kernel: the loop reaps it when it ends. Takes @pidfd. */
static void reap_later(sd_event *event, pid_t pid, int pidfd)
{
        sd_event_source *source = NULL;

        if (!event ||
            sd_event_add_io(event, &source, pidfd, EPOLLIN, on_late_end, (void *)(intptr_t)pid) < 0)
                lkg_close(pidfd);
}

/* A killed helper that may never end: only reap it. */
static void leave(struct lkg_helper *helper)
{
        forget(helper);
        reap_later(helper->event, helper->job.pid, helper->job.pidfd);
        helper->job = (struct lkg_job)LKG_JOB_INIT;
}

static void ended(struct lkg_helper *helper, int status)
{
        log_said(helper);
        helper->status = status;
        if (helper->work.done)
                helper->work.done(helper->work.userdata, status);
        if (!helper->wanted)
                return;
        helper->wanted = false;
        helper->work.again(helper->work.userdata);
}

static int on_end(sd_event_source *source, int fd, uint32_t revents, void *userdata)
{
        struct lkg_helper *helper = userdata;

        if (!lkg_job_ended(&helper->job))
                return 0;
        forget(helper); /* first: the loop must not watch a descriptor number that is reused */
        ended(helper, lkg_job_reap(&helper->job));
        return 0;
}

/* Kills its programs, too. The loop, not this code, waits for a process that hangs in the kernel. */
static void on_limit(void *userdata)
{
        struct lkg_helper *helper = userdata;

        lkg_job_kill(&helper->job);
        if (helper->work.impatient) {
                leave(helper);
                ended(helper, -1);
        }
}

static int begin(struct lkg_helper *helper, const struct lkg_helper_work *work)
{
        LKG_CLEANUP(lkg_closep) int said = -EBADF;
        struct begin begin = { .work = work };
        int fds[LKG_HELPER_FDS_MAX + 2], r = 0;
        struct lkg_job_spec spec = { .run = be_helper,
                                     .userdata = &begin,
                                     .flags = work->flags | LKG_JOB_KEEPS_STDIO,
                                     .fds = fds,
                                     .n_fds = work->n_fds };

        if (helper->job.pid > 0)
                return -EBUSY;
        forget_answer(helper);
        helper->work = *work;
        memcpy(fds, work->fds, sizeof(work->fds));
        if (work->program) {
                helper->said_fd = -EBADF;
                r = memfd_create("lkgfs-job", MFD_CLOEXEC);
                helper->answer_fd = r < 0 ? -errno : lkg_lift_fd(r);
                r = helper->answer_fd < 0 ? helper->answer_fd : lkg_said_pipe(&helper->said_fd, &said);
                fds[begin.answer = (unsigned)spec.n_fds++] = helper->answer_fd;
                fds[begin.said = (unsigned)spec.n_fds++] = said;
        }
        if (r >= 0)
                r = lkg_job_start(&helper->job, &spec, NULL, NULL);
        if (r < 0)
                forget_answer(helper);
        return r;
}

int lkg_helper_start(struct lkg_helper *helper, sd_event *event, const struct lkg_helper_work *work)
{
        int r;

        helper->wanted = helper->job.pid > 0 && work->again;
        if (helper->wanted)
                return 0;
        r = begin(helper, work);
        if (r < 0)
                return r;
        helper->event = event;
        helper->job.pidfd = lkg_lift_fd(helper->job.pidfd);
        r = helper->job.pidfd;
        if (r >= 0)
                r = sd_event_add_io(event, &helper->exit_source, helper->job.pidfd, EPOLLIN, on_end, helper);
        if (r >= 0)
                r = lkg_timer_set(&helper->limit, event, work->limit_ns, 0, on_limit, helper);
        if (r < 0)
                lkg_helper_cancel(helper);
        return r < 0 ? r : 0;
}

int lkg_helper_answer(struct lkg_helper *helper, size_t max, char **ret, size_t *ret_size)
{
        LKG_CLEANUP(lkg_closep) int fd = LKG_STEAL_FD(helper->answer_fd);

        if (lseek(fd, 0, SEEK_SET) < 0)
                return -errno;
        return lkg_read_file(fd, max, ret, ret_size, NULL);
}

int lkg_helper_run(const struct lkg_helper_work *work, size_t max, char **ret, size_t *ret_size)
{
        struct lkg_helper helper = { 0 };
        int r = begin(&helper, work), status = -1;

        if (r < 0)
                return r;
        if (lkg_wait_pidfd(helper.job.pidfd, work->limit_ns)) {
                status = lkg_job_reap(&helper.job);
                r = status < 0 ? -ECHILD : lkg_helper_answer(&helper, max, ret, ret_size);
        } else {
                r = -ETIMEDOUT;
        }
        lkg_helper_cancel(&helper);
        return r < 0 ? r : status;
}

void lkg_helper_cancel(struct lkg_helper *helper)
{
        if (helper->job.pid > 0) {
                forget(helper);
                if (helper->work.impatient)
                        lkg_job_kill(&helper->job);
                if (helper->work.impatient || !lkg_job_cancel(&helper->job))
                        leave(helper);
        }
        forget_answer(helper);
        helper->wanted = false;
}

bool lkg_helper_running(const struct lkg_helper *helper)
{
        return helper->job.pid > 0;
}
