/* SPDX-License-Identifier: Apache-2.0 */
#include "supervisor.h"

/* In the forked process. */
static int be_helper(void *userdata)
{
        const struct lkg_helper_work *work = userdata;

        if (!(work->flags & LKG_JOB_OUTLIVES_US))
                (void)lkg_set_oom_score("0"); /* else it inherits our OOM protection; may fail */
        return work->run(work->userdata);
}

static void forget(struct lkg_helper *helper)
{
        helper->exit_source = sd_event_source_disable_unref(helper->exit_source);
        helper->timer = sd_event_source_disable_unref(helper->timer);
}

/* A killed helper that may never end: only reap it. */
static void leave(struct lkg_helper *helper)
{
        forget(helper);
        lkg_reap_later(helper->event, helper->job.pid, helper->job.pidfd);
        helper->job = (struct lkg_job)LKG_JOB_INIT;
}

static int on_end(sd_event_source *source, int fd, uint32_t revents, void *userdata)
{
        struct lkg_helper *helper = userdata;
        int status;

        (void)source;
        (void)fd;
        (void)revents;
        if (!lkg_job_ended(&helper->job))
                return 0;
        forget(helper); /* first: the loop must not watch a descriptor number that is reused */
        status = lkg_job_reap(&helper->job);
        helper->done(helper->userdata, status);
        return 0;
}

/* Kills its programs, too. The loop, not this code, waits for a process that hangs in the kernel. */
static int on_limit(sd_event_source *source, uint64_t usec, void *userdata)
{
        struct lkg_helper *helper = userdata;

        (void)source;
        (void)usec;
        lkg_job_kill(&helper->job);
        helper->timer = sd_event_source_disable_unref(helper->timer);
        if (helper->impatient) {
                leave(helper);
                helper->done(helper->userdata, -1);
        }
        return 0;
}

static int watch(struct lkg_helper *helper, uint64_t limit_ns)
{
        int r;

        helper->job.pidfd = lkg_lift_fd(helper->job.pidfd);
        r = helper->job.pidfd < 0 ? helper->job.pidfd : 0;
        if (r == 0)
                r = sd_event_add_io(helper->event, &helper->exit_source, helper->job.pidfd, EPOLLIN, on_end,
                                    helper);
        if (r >= 0)
                r = sd_event_add_time_relative(helper->event, &helper->timer, CLOCK_MONOTONIC,
                                               limit_ns / 1000, 0, on_limit, helper);
        return r < 0 ? r : 0;
}

int lkg_helper_start(struct lkg_helper *helper, sd_event *event, const struct lkg_helper_work *work)
{
        const struct lkg_job_spec spec = { .run = be_helper,
                                           .userdata = (void *)(uintptr_t)work,
                                           .flags = work->flags | LKG_JOB_KEEPS_STDIO,
                                           .fds = work->fds,
                                           .n_fds = work->n_fds };
        int r;

        if (helper->job.pid > 0)
                return -EBUSY;
        helper->event = event;
        helper->impatient = work->impatient;
        helper->done = work->done;
        helper->userdata = work->userdata;
        r = lkg_job_start(&helper->job, &spec, NULL, NULL);
        if (r < 0)
                return r;
        r = watch(helper, work->limit_ns);
        if (r < 0)
                lkg_helper_cancel(helper);
        return r;
}

void lkg_helper_cancel(struct lkg_helper *helper)
{
        if (helper->job.pid <= 0)
                return;
        forget(helper);
        if (helper->impatient)
                lkg_job_kill(&helper->job);
        if (helper->impatient || !lkg_job_cancel(&helper->job))
                leave(helper);
}

bool lkg_helper_running(const struct lkg_helper *helper)
{
        return helper->job.pid > 0;
}
