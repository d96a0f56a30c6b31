/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A forked process of ours that may wait for others (programs, the service manager), and that holds nothing
 * anybody else waits for: not the device, no lock, no connection. The loop only sees its end, which comes
 * after a limit at the latest. Unlike a task (task.c), which works on the view, there can be many.
 */
#pragma once

#include <sys/types.h>

#include <systemd/sd-event.h>

#include <lkg/base.h>

#define LKG_HELPER_FDS_MAX  2u
#define LKG_HELPER_FIRST_FD 3

struct lkg_helper {
        pid_t pid; /* 0 = none runs */
        int pidfd;
        sd_event_source *exit_source, *timer;
        void (*done)(void *userdata, int status);
        void *userdata;
};

#define LKG_HELPER_INIT         \
        {                       \
                .pidfd = -EBADF \
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
};

/**
 * lkg_helper_start() - leads a process group of its own, which ends with it at the limit; ends when we are
 * killed. Return: 0; -EBUSY: it runs already; another -errno. Then nothing is called.
 */
int lkg_helper_start(struct lkg_helper *helper, sd_event *event, const struct lkg_helper_work *work);
/**
 * lkg_helper_cancel() - kill it and its process group; done is not called. At most 1 s, for one stuck in the
 * kernel.
 */
void lkg_helper_cancel(struct lkg_helper *helper);
/** lkg_helper_running() */
bool lkg_helper_running(const struct lkg_helper *helper);
