/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Helpers: jobs (lkg/process.h) of the loop. A helper may wait for others (programs, the service manager, the view); the loop only
 * sees its end, within a time limit. By default it holds nothing that others wait for: neither the device, nor a lock, nor a
 * connection. And what every part of lkgfsd needs.
 */
#pragma once

#include <sys/types.h>

#include <systemd/sd-event.h>

#include <lkg/base.h>
#include <lkg/messages.h>
#include <lkg/process.h>

/* Every descriptor that we keep has this number or a higher one: children have theirs at 3, 4, 5 ... */
#define LKG_FD_BASE 32

/** lkg_fail() - fill @err like printf, with the error text of @errnum if it is not 0. Return: @exit_code. */
int lkg_fail(struct lkg_error *err, int exit_code, int errnum, const char *fmt, ...) LKG_PRINTF(4, 5);
/** lkg_lift_fd() - move @fd to LKG_FD_BASE or above, close-on-exec. Return: the new number; -errno; a negative @fd. */
int lkg_lift_fd(int fd);
/** lkg_channel_pair() - both ends of a channel to a process, lifted. Return: 0; -errno: none are open. */
int lkg_channel_pair(int *ret_ours, int *ret_theirs);
/**
 * lkg_channel_take() - one message of a file server; @ret_fd: its descriptor, which the caller owns; -EBADF: none.
 * Return: as of lkg_handover_recv()
 */
int lkg_channel_take(int channel, struct lkg_handover *ret, int *ret_fd);
/** lkg_set_oom_score() - set it for this process, see proc(5). Return: 0 or -errno. */
int lkg_set_oom_score(const char *score);
/** lkg_wait_pidfd() - wait at most @limit_ns for the end of the process of @pidfd. Return: has it ended? */
bool lkg_wait_pidfd(int pidfd, uint64_t limit_ns);

/* ---- timers ---- */

/* Fires once. All zero is one that is not set. */
struct lkg_timer {
        sd_event_source *source;
        void (*fire)(void *userdata);
        void *userdata;
};

/** lkg_timer_set() - in place of what it was set to. @slack_ns: how much later is as good. Return: 0 or -errno (logged). */
int lkg_timer_set(struct lkg_timer *timer, sd_event *event, uint64_t in_ns, uint64_t slack_ns,
                  void (*fire)(void *userdata), void *userdata);
void lkg_timer_stop(struct lkg_timer *timer);
bool lkg_timer_is_set(const struct lkg_timer *timer);

/* ---- helpers ---- */

#define LKG_HELPER_FDS_MAX  2u
#define LKG_HELPER_FIRST_FD LKG_JOB_FIRST_FD

struct lkg_helper_work {
        int (*run)(void *userdata); /* runs in the new process; returns its exit status */
        /* @status: exit status; -1: it was killed. Called in the loop; may start the next one. May be NULL. */
        void (*done)(void *userdata, int status);
        void *userdata;
        /* Borrowed. The helper gets them as LKG_HELPER_FIRST_FD, ...; otherwise it has only 0, 1, 2. */
        int fds[LKG_HELPER_FDS_MAX];
        size_t n_fds;
        /*
         * Name or path of what becomes a program, or parses; borrowed. Its standard input is empty, its output is kept
         * in memory (lkg_helper_answer()), its standard error is logged after its end. NULL: it has our 0, 1 and 2.
         */
        const char *program;
        uint64_t limit_ns;
        unsigned flags; /* enum lkg_job_flags */
        /* @done is called at the limit in any case. Otherwise only after its end, which may never come. */
        bool impatient;
        /* Called after @done if it was to be started while it ran; NULL: that is refused. */
        void (*again)(void *userdata);
};

/* All zero: it is not running. */
struct lkg_helper {
        struct lkg_job job;
        struct lkg_helper_work work; /* program NULL: it has no output of its own */
        sd_event *event;             /* borrowed */
        sd_event_source *exit_source;
        struct lkg_timer limit;
        int answer_fd, said_fd; /* of a program */
        bool wanted;            /* `again` */
        int status;             /* of the last one, as @done gets it */
};

/**
 * lkg_helper_start() - in its own process group, which is killed with it at the limit; it ends when we are killed.
 * Return: 0; -EBUSY: it is running, and no `again`; another -errno: nothing is called.
 */
int lkg_helper_start(struct lkg_helper *helper, sd_event *event, const struct lkg_helper_work *work);
/**
 * lkg_helper_answer() - in or after @done: what it has printed, at most @max bytes and a NUL; caller frees. Only once.
 * Return: 0; -EFBIG: there was more; another -errno.
 */
int lkg_helper_answer(struct lkg_helper *helper, size_t max, char **ret, size_t *ret_size);
/**
 * lkg_helper_run() - start it, and wait here; @done is not called.
 * Return: its exit status; -ETIMEDOUT; -ECHILD: it was killed; another -errno, also of lkg_helper_answer().
 */
int lkg_helper_run(const struct lkg_helper_work *work, size_t max, char **ret, size_t *ret_size);
/**
 * lkg_helper_cancel() - kill it and its group; done is not called. Waits at most LKG_JOB_GRACE_NS, not at all for an
 * impatient one; after that the loop reaps it (without a loop: init, soon).
 */
void lkg_helper_cancel(struct lkg_helper *helper);
bool lkg_helper_running(const struct lkg_helper *helper);
