/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A job (lkg/job.h) of the loop: it may wait for others (programs, the service manager, the view), and the loop only sees its
 * end, which comes within a time limit.
 *
 * By default it holds nothing that others wait for: not the device, no lock, no connection.
 */
#pragma once

#include <sys/types.h>

#include <systemd/sd-event.h>

#include <lkg/job.h>

#define LKG_HELPER_FDS_MAX  2u
#define LKG_HELPER_FIRST_FD LKG_JOB_FIRST_FD

struct lkg_helper {
        struct lkg_job job;
        bool impatient;
        sd_event *event; /* borrowed */
        sd_event_source *exit_source, *timer;
        void (*done)(void *userdata, int status);
        void *userdata;
};

#define LKG_HELPER_INIT              \
        {                            \
                .job = LKG_JOB_INIT, \
        }

struct lkg_helper_work {
        int (*run)(void *userdata); /* in the new process; its exit status */
        /*
         * @status: exit status, or -1: it was killed, by its limit or by somebody. In the loop; may start
         * the next one.
         */
        void (*done)(void *userdata, int status);
        void *userdata;
        /* Borrowed. It has them as LKG_HELPER_FIRST_FD, ... and no others but 0, 1, 2. */
        int fds[LKG_HELPER_FDS_MAX];
        size_t n_fds;
        uint64_t limit_ns;
        unsigned flags; /* enum lkg_job_flags; it always keeps our 0, 1 and 2 */
        /*
         * @done is called at the limit, even if it has not ended. Otherwise only after its end, which may never come.
         */
        bool impatient;
};

/**
 * lkg_helper_start() - leads a process group of its own, which ends with it at the limit; ends when we are
 * killed. Return: 0; -EBUSY: it runs already; another -errno. Then nothing is called.
 */
int lkg_helper_start(struct lkg_helper *helper, sd_event *event, const struct lkg_helper_work *work);
/**
 * lkg_helper_cancel() - kill it and its process group; done is not called. Waits LKG_JOB_GRACE_NS at most, not at all for one
 * that is impatient; what does not end then is reaped by the loop whenever it does.
 */
void lkg_helper_cancel(struct lkg_helper *helper);
/** lkg_helper_running() */
bool lkg_helper_running(const struct lkg_helper *helper);
