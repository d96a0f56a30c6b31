/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A piece of work in a forked process: it may hang, print endlessly, crash, or leave processes behind, and
 * costs its caller no more than a limit of time and of bytes.
 *
 * The rules, forevery job:
 *  - It leads a process group, unless a flag says otherwise. At the limit the group gets SIGKILL, and so
 *    does the process itself, which may not have created the group yet.
 *  - It ends when its parent does (PR_SET_PDEATHSIG), unless LKG_JOB_OUTLIVES_US is set.
 *  - It ends with its process, not with its output: a process that it left behind may hold a pipe forever.
 *  - SIGKILL does not end a process that sleeps in the kernel (state D: a dead network file system, a FUSE
 *    server that has read the request). A caller waits at most LKG_JOB_GRACE_NS for a killed process. A
 *    caller with a loop keeps the pidfd in it and reaps the process when it ends; a caller without one exits
 *    soon, and init reaps it.
 */
#pragma once

#include <sys/types.h>

#include <lkg/base.h>

#define LKG_JOB_FIRST_FD 3
#define LKG_JOB_GRACE_NS (1 * LKG_NSEC_PER_SEC)

enum lkg_job_flags {
        LKG_JOB_KEEPS_STDIO =
                1, /* our 0, 1 and 2; else /dev/null, pipes for collected output, and the root directory */
        LKG_JOB_KEEPS_FDS = 2,   /* all our descriptors; otherwise only @fds */
        LKG_JOB_OUTLIVES_US = 4, /* it continues without us, in our process group */
        LKG_JOB_IN_GROUP = 8,    /* in our process group: it gets the terminal's signals, too */
};

struct lkg_job_spec {
        /* in the new process: returns its exit status, unless it executes a program */
        int (*run)(void *userdata);
        void *userdata;
        unsigned flags;
        const int *fds; /* it gets them as LKG_JOB_FIRST_FD, ...; each has a higher number here */
        size_t n_fds;
};

/* The part of its output that is stored. */
struct lkg_job_output {
        char *data; /* the caller's @max bytes; NULL: discard */
        size_t max, size;
        bool cut;     /* there was more */
        bool bounded; /* more than @max ends the job: -EFBIG */
        int fd;       /* private */
};

struct lkg_job {
        pid_t pid; /* 0 = none */
        int pidfd;
        bool leads; /* it leads a process group */
};

#define LKG_JOB_INIT            \
        {                       \
                .pidfd = -EBADF \
        }

/**
 * lkg_job_start() - fork.
 * @out: standard output; NULL or without data: /dev/null. @err: the same for standard error; may be @out. Both NULL with
 *       LKG_JOB_KEEPS_STDIO.
 * Return: 0; -errno.
 */
int lkg_job_start(struct lkg_job *job, const struct lkg_job_spec *spec, struct lkg_job_output *out,
                  struct lkg_job_output *err);
/** lkg_job_kill() - kill it and its group. The caller still has to reap it. */
void lkg_job_kill(const struct lkg_job *job);
/**
 * lkg_job_cancel() - kill it, and wait for it as described above.
 * Return: whether it has ended; if not, @job still refers to it.
 */
bool lkg_job_cancel(struct lkg_job *job);
/** lkg_job_ended() - can it be reaped? */
bool lkg_job_ended(const struct lkg_job *job);
/**
 * lkg_job_reap() -
 * Return: its exit status; -1: it was killed by a signal, or has already been reaped; -EAGAIN.
 */
int lkg_job_reap(struct lkg_job *job);

/**
 * lkg_job_run() - start it, and wait for its end, at most @limit_ns.
 * @ret_status: as from waitpid(2)
 * Return: 0; -ETIMEDOUT and -EFBIG: it was killed; another -errno: it could not be started.
 */
int lkg_job_run(const struct lkg_job_spec *spec, uint64_t limit_ns, struct lkg_job_output *out,
                struct lkg_job_output *err, int *ret_status);
