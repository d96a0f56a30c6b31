/* SPDX-License-Identifier: Apache-2.0 */
/*
 * On a broken node a call into the mount may wait forever: the kernel holds the caller until there is an
 * answer. SIGKILL ends that, but not if a server that hangs has already read the request (fs/fuse/dev.c,
 * request_wait_answer: then the kernel waits for the answer). So a verb that touches the mount runs in a
 * child; the parent waits for a limited time and passes on the child's output. The child holds no pipe of
 * the caller: `x=$(lkgfs status)` ends when the parent does, even if the child cannot.
 */
#include "tool.h"

#include <fcntl.h>
#include <poll.h>

#include <lkg/file.h>
#include <lkg/process.h>

#define N_OUTPUTS 2

/* The child's standard output or standard error. */
struct output {
        int to;                /* our own descriptor */
        int read_fd, write_fd; /* -EBADF: the child uses ours */
        int error;             /* -errno of writing it, e.g. on a full disk */
};

/* A terminal is passed to the child: no reader waits for end of file, and colour and width depend on it. */
static int outputs_open(struct output outputs[N_OUTPUTS])
{
        for (size_t i = 0; i < N_OUTPUTS; i++) {
                int fds[2];

                if (isatty(outputs[i].to))
                        continue;
                if (pipe2(fds, O_CLOEXEC) < 0)
                        return -errno;
                outputs[i].read_fd = fds[0];
                outputs[i].write_fd = fds[1];
        }
        return 0;
}

/* One piece of the child's output. */
static void pass_on(struct output *output)
{
        char bytes[16384];
        ssize_t n = read(output->read_fd, bytes, sizeof(bytes));

        if (n < 0 && errno == EINTR)
                return;
        if (n > 0 && output->error == 0)
                output->error = lkg_write_all(output->to, bytes, (size_t)n);
        if (n <= 0)
                lkg_closep(&output->read_fd);
}

/* Return: true: the child has ended and all its output was passed on; false: the deadline has passed. */
static bool wait_child(uint64_t limit_ns, int pidfd, struct output outputs[N_OUTPUTS])
{
        uint64_t deadline_ns = lkg_boottime_ns() + limit_ns;

        for (;;) {
                struct pollfd polled[N_OUTPUTS + 1] = { { .fd = pidfd, .events = POLLIN } };
                uint64_t now_ns = lkg_boottime_ns();
                int timeout_ms =
                        now_ns < deadline_ns ? (int)((deadline_ns - now_ns) / LKG_NSEC_PER_MSEC) + 1 : 0;
                bool printed = false;
                int r;

                for (size_t i = 0; i < N_OUTPUTS; i++)
                        polled[i + 1] = (struct pollfd){ .fd = outputs[i].read_fd, .events = POLLIN };
                r = poll(polled, N_OUTPUTS + 1, timeout_ms);
                if (r < 0 && errno == EINTR)
                        continue;
                if (r <= 0)
                        return false;
                for (size_t i = 0; i < N_OUTPUTS; i++) {
                        if (!polled[i + 1].revents)
                                continue;
                        pass_on(&outputs[i]);
                        printed = true;
                }
                if (!printed)
                        return true;
        }
}

struct guarded {
        const struct lkg_tool *tool;
        struct output outputs[N_OUTPUTS];
};

static int run_verb(void *userdata)
{
        const struct guarded *guarded = userdata;

        for (size_t i = 0; i < N_OUTPUTS; i++)
                if (guarded->outputs[i].write_fd >= 0 &&
                    dup2(guarded->outputs[i].write_fd, guarded->outputs[i].to) < 0)
                        return LKG_TOOL_FAILED;
        return guarded->tool->verb->run(guarded->tool);
}

/* For a child that has ended. */
static int finish(const struct lkg_tool *tool, struct lkg_job *job, const struct output outputs[N_OUTPUTS])
{
        int status = lkg_job_reap(job);

        if (status < 0)
                status = lkg_tool_fail(tool, LKG_TOOL_FAILED, "ended by a signal");
        for (size_t i = 0; i < N_OUTPUTS; i++)
                if (outputs[i].error < 0)
                        status = lkg_tool_fail(tool, LKG_TOOL_FAILED, "write the output: %s",
                                               strerror(-outputs[i].error));
        return status;
}

static void guarded_deinit(struct guarded *guarded)
{
        for (size_t i = 0; i < N_OUTPUTS; i++) {
                lkg_closep(&guarded->outputs[i].read_fd);
                lkg_closep(&guarded->outputs[i].write_fd);
        }
}

int lkg_tool_guard(const struct lkg_tool *tool)
{
        LKG_CLEANUP(guarded_deinit)
        struct guarded guarded = {
                tool, { { STDOUT_FILENO, -EBADF, -EBADF, 0 }, { STDERR_FILENO, -EBADF, -EBADF, 0 } }
        };
        const struct lkg_job_spec spec = {
                .run = run_verb,
                .userdata = &guarded,
                .flags = LKG_JOB_KEEPS_STDIO | LKG_JOB_KEEPS_FDS | LKG_JOB_IN_GROUP,
        };
        struct lkg_job job = LKG_JOB_INIT;
        int r = outputs_open(guarded.outputs);

        if (r < 0)
                return lkg_tool_fail(tool, LKG_TOOL_FAILED, "pipe: %s", strerror(-r));
        r = lkg_job_start(&job, &spec, NULL, NULL);
        if (r < 0)
                return lkg_tool_fail(tool, LKG_TOOL_FAILED, "fork: %s", strerror(-r));
        for (size_t i = 0; i < N_OUTPUTS; i++)
                lkg_closep(&guarded.outputs[i].write_fd);
        if (wait_child(tool->verb->limit_s * LKG_NSEC_PER_SEC, job.pidfd, guarded.outputs))
                return finish(tool, &job, guarded.outputs);
        lkg_job_kill(&job); /* does not wait: we exit, and init reaps it */
        (void)lkg_tool_fail(tool, LKG_TOOL_FAILED,
                            "the mount has not answered for %u s: is lkgfsd running? "
                            "(journalctl -u lkgfs; lkgfsd adopts the mount when it is started again)",
                            tool->verb->limit_s);
        return tool->verb->silent ? tool->verb->silent(tool) : LKG_TOOL_FAILED;
}
