/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One forked piece of ourselves at a time that may send requests through the view and so may block: when the
 * file server dies meanwhile, the loop is free to start the next one, and the task goes on.
 */
#include <signal.h>
#include <sys/pidfd.h>
#include <sys/wait.h>

#include "supervisor.h"

static void finish(struct lkg_supervisor *s, int status)
{
        struct lkg_task task = s->task;

        s->task = (struct lkg_task){ .pidfd = -EBADF };
        sd_event_source_disable_unref(task.exit_source);
        sd_event_source_disable_unref(task.timer);
        lkg_close(task.pidfd);
        if (task.done)
                task.done(s, status);
}

static int on_exit_of_task(sd_event_source *source, int fd, uint32_t revents, void *userdata)
{
        struct lkg_supervisor *s = userdata;
        siginfo_t info = { 0 };

        (void)source;
        (void)fd;
        (void)revents;
        if (waitid(P_PID, (id_t)s->task.pid, &info, WEXITED | WNOHANG) < 0 || info.si_pid == 0)
                return 0;
        finish(s, info.si_code == CLD_EXITED ? info.si_status : -1);
        return 0;
}

static int on_limit(sd_event_source *source, uint64_t usec, void *userdata)
{
        struct lkg_supervisor *s = userdata;

        (void)source;
        (void)usec;
        (void)kill(s->task.pid, SIGKILL);
        finish(s, -1); /* if it sticks in the kernel, init reaps it after us */
        return 0;
}

int lkg_task_start(struct lkg_supervisor *s, int (*fn)(struct lkg_supervisor *s),
                   void (*done)(struct lkg_supervisor *s, int status), uint64_t limit_ns)
{
        struct lkg_task *task = &s->task;
        int r;

        *task = (struct lkg_task){ .supervisor = s, .pidfd = -EBADF };
        task->pid = fork();
        if (task->pid == 0) {
                sigset_t none;

                /* A task that hangs must hold neither our locks nor anybody's connection to us. */
                lkg_close(s->state_lock);
                lkg_close(s->runtime_lock);
                (void)sigemptyset(&none);
                (void)sigprocmask(SIG_SETMASK, &none, NULL);
                _exit(fn(s));
        }
        if (task->pid < 0)
                return -errno;
        task->pidfd = pidfd_open(task->pid, 0);
        r = task->pidfd < 0 ? -errno : 0;
        if (r >= 0)
                r = sd_event_add_io(s->event, &task->exit_source, task->pidfd, EPOLLIN, on_exit_of_task, s);
        if (r >= 0)
                r = sd_event_add_time_relative(s->event, &task->timer, CLOCK_MONOTONIC, limit_ns / 1000, 0,
                                               on_limit, s);
        if (r < 0) {
                lkg_task_cancel(s);
                return r;
        }
        task->done = done;
        return 0;
}

void lkg_task_cancel(struct lkg_supervisor *s)
{
        if (s->task.pid <= 0)
                return;
        s->task.done = NULL;
        (void)kill(s->task.pid, SIGKILL);
        finish(s, -1);
}
