/* SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "supervisor.h"

#define CANCEL_NS      (1 * LKG_NSEC_PER_SEC)
#define OOM_SCORE_FILE "/proc/self/oom_score_adj"

/* In the forked process. The descriptors of @work are all above those they get: lkg_lift_fd(). */
static void be_helper(const struct lkg_helper_work *work, pid_t parent)
{
        int oom = open(OOM_SCORE_FILE, O_WRONLY | O_CLOEXEC);
        sigset_t none;

        if (oom >= 0 && write(oom, "0", 1) < 0)
                oom = lkg_close(oom); /* it inherits our protection: no reason not to go on */
        lkg_close(oom);
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
        if (getppid() != parent || setpgid(0, 0) < 0)
                _exit(1);
        for (size_t i = 0; i < work->n_fds; i++)
                if (dup3(work->fds[i], LKG_HELPER_FIRST_FD + (int)i, O_CLOEXEC) < 0)
                        _exit(1);
        closefrom(LKG_HELPER_FIRST_FD + (int)work->n_fds);
        (void)signal(SIGPIPE, SIG_DFL);
        (void)sigemptyset(&none);
        (void)sigprocmask(SIG_SETMASK, &none, NULL);
        _exit(work->run(work->userdata));
}

static void forget(struct lkg_helper *helper)
{
        helper->exit_source = sd_event_source_disable_unref(helper->exit_source);
        helper->timer = sd_event_source_disable_unref(helper->timer);
        helper->pidfd = lkg_close(helper->pidfd);
        helper->pid = 0;
}

static int on_end(sd_event_source *source, int fd, uint32_t revents, void *userdata)
{
        struct lkg_helper *helper = userdata;
        siginfo_t info = { 0 };

        (void)source;
        (void)fd;
        (void)revents;
        if (waitid(P_PID, (id_t)helper->pid, &info, WEXITED | WNOHANG) < 0)
                info.si_code = 0; /* somebody else has reaped it */
        else if (info.si_pid == 0)
                return 0;
        forget(helper);
        helper->done(helper->userdata, info.si_code == CLD_EXITED ? info.si_status : -1);
        return 0;
}

/* Its programs with it. What sticks in the kernel is waited for by the loop, not here. */
static int on_limit(sd_event_source *source, uint64_t usec, void *userdata)
{
        struct lkg_helper *helper = userdata;

        (void)source;
        (void)usec;
        (void)kill(-helper->pid, SIGKILL);
        (void)kill(helper->pid, SIGKILL);
        helper->timer = sd_event_source_disable_unref(helper->timer);
        return 0;
}

static int watch(struct lkg_helper *helper, sd_event *event, uint64_t limit_ns)
{
        int r;

        helper->pidfd = pidfd_open(helper->pid, 0);
        r = helper->pidfd < 0 ? -errno : 0;
        if (r == 0)
                helper->pidfd = lkg_lift_fd(helper->pidfd);
        r = helper->pidfd < 0 ? helper->pidfd : 0;
        if (r == 0)
                r = sd_event_add_io(event, &helper->exit_source, helper->pidfd, EPOLLIN, on_end, helper);
        if (r >= 0)
                r = sd_event_add_time_relative(event, &helper->timer, CLOCK_MONOTONIC, limit_ns / 1000, 0,
                                               on_limit, helper);
        return r < 0 ? r : 0;
}

int lkg_helper_start(struct lkg_helper *helper, sd_event *event, const struct lkg_helper_work *work)
{
        pid_t self = getpid();
        int r;

        if (helper->pid > 0)
                return -EBUSY;
        helper->done = work->done;
        helper->userdata = work->userdata;
        helper->pid = fork();
        if (helper->pid == 0)
                be_helper(work, self);
        if (helper->pid < 0) {
                helper->pid = 0;
                return -errno;
        }
        r = watch(helper, event, work->limit_ns);
        if (r < 0)
                lkg_helper_cancel(helper);
        return r;
}

void lkg_helper_cancel(struct lkg_helper *helper)
{
        if (helper->pid <= 0)
                return;
        (void)kill(-helper->pid, SIGKILL);
        (void)kill(helper->pid, SIGKILL);
        if (helper->pidfd >= 0 && lkg_wait_pidfd(helper->pidfd, CANCEL_NS))
                (void)waitpid(helper->pid, NULL, WNOHANG);
        forget(helper);
}

bool lkg_helper_running(const struct lkg_helper *helper)
{
        return helper->pid > 0;
}
