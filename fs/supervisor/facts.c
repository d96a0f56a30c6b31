/* SPDX-License-Identifier: Apache-2.0 */
/* The supervisor's side of the facts: one process that asks, its end, its time limit. See facts.h. */
#include <fcntl.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "facts.h"
#include "supervisor.h"

#define LIMIT_NS       (30 * LKG_NSEC_PER_SEC)
#define CANCEL_NS      (1 * LKG_NSEC_PER_SEC)
#define RUNTIME_FD     3
#define OOM_SCORE_FILE "/proc/self/oom_score_adj"

/* In the forked process: nothing that anybody else waits for may stay open here, above all not the device. */
static void ask(const struct lkg_supervisor *s)
{
        int oom = open(OOM_SCORE_FILE, O_WRONLY | O_CLOEXEC);
        sigset_t none;

        if (oom >= 0 && write(oom, "0", 1) < 0)
                oom = lkg_close(oom); /* it inherits our protection: no reason not to go on */
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
        if (setpgid(0, 0) < 0 || dup2(s->runtime_fd, RUNTIME_FD) < 0)
                _exit(1);
        closefrom(RUNTIME_FD + 1);
        (void)fcntl(RUNTIME_FD, F_SETFD, FD_CLOEXEC);
        (void)signal(SIGPIPE, SIG_DFL);
        (void)sigemptyset(&none);
        (void)sigprocmask(SIG_SETMASK, &none, NULL);
        lkg_facts_collect(RUNTIME_FD, s->settings->components, s->settings->n_components);
        _exit(0);
}

static void forget(struct lkg_facts_task *task)
{
        task->exit_source = sd_event_source_disable_unref(task->exit_source);
        task->timer = sd_event_source_disable_unref(task->timer);
        task->pidfd = lkg_close(task->pidfd);
        task->pid = 0;
}

static int on_end(sd_event_source *source, int fd, uint32_t revents, void *userdata)
{
        struct lkg_supervisor *s = userdata;
        bool again = s->facts.again;

        (void)source;
        (void)fd;
        (void)revents;
        (void)waitpid(s->facts.pid, NULL, WNOHANG);
        forget(&s->facts);
        s->facts.again = false;
        if (again)
                lkg_facts_refresh(s);
        return 0;
}

/* Its programs with it. What sticks in the kernel is waited for by the loop, not here. */
static int on_limit(sd_event_source *source, uint64_t usec, void *userdata)
{
        struct lkg_supervisor *s = userdata;

        (void)source;
        (void)usec;
        (void)kill(-s->facts.pid, SIGKILL);
        (void)kill(s->facts.pid, SIGKILL);
        s->facts.timer = sd_event_source_disable_unref(s->facts.timer);
        return 0;
}

static int watch(struct lkg_supervisor *s)
{
        struct lkg_facts_task *task = &s->facts;
        int r;

        task->pidfd = pidfd_open(task->pid, 0);
        r = task->pidfd < 0 ? -errno : 0;
        if (r == 0)
                task->pidfd = lkg_lift_fd(task->pidfd);
        r = task->pidfd < 0 ? task->pidfd : 0;
        if (r == 0)
                r = sd_event_add_io(s->event, &task->exit_source, task->pidfd, EPOLLIN, on_end, s);
        if (r >= 0)
                r = sd_event_add_time_relative(s->event, &task->timer, CLOCK_MONOTONIC, LIMIT_NS / 1000, 0,
                                               on_limit, s);
        return r;
}

void lkg_facts_refresh(struct lkg_supervisor *s)
{
        struct lkg_facts_task *task = &s->facts;

        if (s->phase > LKG_PHASE_RUNNING || s->settings->n_components == 0)
                return;
        if (task->pid > 0) {
                task->again = true;
                return;
        }
        task->pid = fork();
        if (task->pid == 0)
                ask(s);
        if (task->pid < 0) {
                task->pid = 0; /* no memory: the next start of a component asks again */
                return;
        }
        if (watch(s) < 0)
                lkg_facts_cancel(s);
}

void lkg_facts_cancel(struct lkg_supervisor *s)
{
        struct lkg_facts_task *task = &s->facts;

        task->again = false;
        if (task->pid <= 0)
                return;
        (void)kill(-task->pid, SIGKILL);
        (void)kill(task->pid, SIGKILL);
        if (task->pidfd >= 0 && lkg_wait_pidfd(task->pidfd, CANCEL_NS))
                (void)waitpid(task->pid, NULL, WNOHANG);
        forget(task);
}
