/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A job (lkg/process.h) of the loop: it may wait for others (programs, the service manager, the view); the loop
 * only sees its end, within a time limit.
 *
 * By default it holds nothing that others wait for: neither the device, nor a lock, nor a connection.
 */
#pragma once

#include <sys/types.h>

#include <systemd/sd-event.h>

#include <lkg/process.h>

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
        int (*run)(void *userdata); /* runs in the new process; returns its exit status */
        /*
         * @status: exit status, or -1: it was killed, by its limit or otherwise. Called in the loop; may
         * start the next one.
         */
        void (*done)(void *userdata, int status);
        void *userdata;
        /* Borrowed. The helper gets them as LKG_HELPER_FIRST_FD, ...; otherwise it has only 0, 1, 2. */
        int fds[LKG_HELPER_FDS_MAX];
        size_t n_fds;
        uint64_t limit_ns;
        unsigned flags; /* enum lkg_job_flags; it always keeps our 0, 1 and 2 */
        /*
         * @done is called at the limit, even if the helper has not ended. Otherwise only after its end,
         * which may never come.
         */
        bool impatient;
};

/**
 * lkg_helper_start() - start it in its own process group, which is killed with it at the limit; it ends when
 * we are killed.
 * Return: 0; -EBUSY: it is already running; another -errno: nothing is called.
 */
int lkg_helper_start(struct lkg_helper *helper, sd_event *event, const struct lkg_helper_work *work);
/**
 * lkg_helper_cancel() - kill it and its process group; done is not called. Waits at most LKG_JOB_GRACE_NS,
 * and not at all for an impatient one; if it has not ended then, the loop reaps it later.
 */
void lkg_helper_cancel(struct lkg_helper *helper);
bool lkg_helper_running(const struct lkg_helper *helper);
