/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Starts programs. A child gets exactly the descriptors it is given, at 3, 4, 5 ...; no others survive
 * execve.
 */
#pragma once

#include <sys/types.h>

#include <systemd/sd-event.h>

#include <lkg/base.h>
#include <lkg/process.h>

#define LKG_SPAWN_FDS_MAX 8

struct lkg_spawn {
        const char *const *argv;    /* argv[0] is the path */
        int fds[LKG_SPAWN_FDS_MAX]; /* become 3, 4, 5 ...; all of them are LKG_FD_BASE or above */
        size_t n_fds;
        int stdin_fd;             /* -EBADF: /dev/null */
        int stdout_fd, stderr_fd; /* separate ones, never ours: said.h */
        /* Both run in the child before execve and may be NULL; non-zero = exit code. */
        int (*before)(const void *userdata); /* still in our namespace; only with @namespace_fd or @setup */
        int (*setup)(const void *userdata);  /* in that of @namespace_fd */
        const void *userdata;
        int namespace_fd; /* the mount namespace it runs in; 0 = ours */
};

/**
 * lkg_spawn() - start a program.
 *
 * Without @setup and @namespace_fd it is posix_spawn(3), that is vfork: independent of our size, and a failed execve is
 * reported here.
 *
 * Return: 0: the caller must wait for @ret_pid and owns @ret_pidfd (>= LKG_FD_BASE, close-on-exec); -errno.
 */
int lkg_spawn(const struct lkg_spawn *spawn, pid_t *ret_pid, int *ret_pidfd);

/*
 * A program whose output is collected in memory, so that it never blocks on us. Its standard error is logged
 * after its end, up to the size of a pipe.
 */
struct lkg_run {
        struct lkg_job job;
        const char *program; /* borrowed, argv[0] */
        int output, said;
};

#define LKG_RUN_INIT                                                  \
        {                                                             \
                .job = LKG_JOB_INIT, .output = -EBADF, .said = -EBADF \
        }

/**
 * lkg_run_start() - start a program; @input may be NULL; else its @input_size bytes are the program's stdin.
 * Return: 0 or -errno.
 */
int lkg_run_start(struct lkg_run *run, const char *const *argv, const void *input, size_t input_size);
/**
 * lkg_run_finish() - the program has ended (its pidfd is readable): get its exit status and output.
 * @ret_output: heap, caller frees, NUL-terminated
 *
 * Return: exit status 0..255, or 128 + signal; -EFBIG: more output than @max; another -errno.
 */
int lkg_run_finish(struct lkg_run *run, size_t max, char **ret_output, size_t *ret_size);
/** lkg_run_wait() - wait at most @limit_ns, then kill it. Return: see lkg_run_finish(), or -ETIMEDOUT. */
int lkg_run_wait(struct lkg_run *run, uint64_t limit_ns, size_t max, char **ret_output, size_t *ret_size);
/**
 * lkg_run_cancel() - kill it. If it does not end within LKG_JOB_GRACE_NS, @event reaps it; NULL: init will,
 * soon.
 */
void lkg_run_cancel(struct lkg_run *run, sd_event *event);

/**
 * lkg_reap_later() - for a killed process that may hang in the kernel: the loop reaps it when it ends.
 * Takes @pidfd.
 */
void lkg_reap_later(sd_event *event, pid_t pid, int pidfd);
/**
 * lkg_wait_pidfd() - wait at most @limit_ns until the process of @pidfd has ended.
 * Return: true if it has.
 */
bool lkg_wait_pidfd(int pidfd, uint64_t limit_ns);
