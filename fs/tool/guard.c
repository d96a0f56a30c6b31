/* SPDX-License-Identifier: Apache-2.0 */
/*
 * On a broken node a call into the mount may wait for ever: the kernel holds the caller until somebody
 * answers. SIGKILL ends that, but not when a server that hangs has already taken the request (fs/fuse/dev.c,
 * request_wait_answer: then the kernel waits it out). So a verb that touches the mount runs in a child; the
 * parent waits for a bounded time and passes on the child's output. The child holds no pipe of the
 * caller's: `x=$(lkgfs status)` ends when the parent does, even if the child cannot.
 */
#include "tool.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include <lkg/file.h>

#define N_OUTPUTS 2

/* The child's standard output or standard error. */
struct output {
        int to;                /* our own descriptor */
        int read_fd, write_fd; /* -EBADF: the child uses ours */
        int error;             /* -errno of passing on, e.g. a full disk */
};

static void outputs_close(struct output (*outputs)[N_OUTPUTS])
{
        for (size_t i = 0; i < N_OUTPUTS; i++) {
                lkg_closep(&(*outputs)[i].read_fd);
                lkg_closep(&(*outputs)[i].write_fd);
        }
}

/* A terminal is passed to the child: no reader waits for its end, and colour and width depend on it. */
static int outputs_open(struct output (*outputs)[N_OUTPUTS])
{
        for (size_t i = 0; i < N_OUTPUTS; i++) {
                int fds[2];

                if (isatty((*outputs)[i].to))
                        continue;
                if (pipe2(fds, O_CLOEXEC) < 0)
                        return -errno;
                (*outputs)[i].read_fd = fds[0];
                (*outputs)[i].write_fd = fds[1];
        }
        return 0;
}

static int status_of(const struct lkg_tool *tool, pid_t pid)
{
        int status;

        while (waitpid(pid, &status, 0) < 0)
                if (errno != EINTR)
                        return lkg_tool_fail(tool, LKG_TOOL_FAILED, "wait for the child: %s",
                                             strerror(errno));
        if (WIFEXITED(status))
                return WEXITSTATUS(status);
        return lkg_tool_fail(tool, LKG_TOOL_FAILED, "ended by signal %d", WTERMSIG(status));
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

/* Return: true when the child has ended and everything it printed was passed on; false at the deadline. */
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

/* The verb, in the child. A kill of the tool must end the verb too. */
static int run_verb(const struct lkg_tool *tool, pid_t parent, const struct output outputs[N_OUTPUTS])
{
        if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || getppid() != parent)
                return LKG_TOOL_FAILED;
        for (size_t i = 0; i < N_OUTPUTS; i++)
                if (outputs[i].write_fd >= 0 && dup2(outputs[i].write_fd, outputs[i].to) < 0)
                        return LKG_TOOL_FAILED;
        return tool->verb->run(tool);
}

int lkg_tool_guard(const struct lkg_tool *tool)
{
        LKG_CLEANUP(outputs_close)
        struct output outputs[N_OUTPUTS] = { { STDOUT_FILENO, -EBADF, -EBADF, 0 },
                                             { STDERR_FILENO, -EBADF, -EBADF, 0 } };
        LKG_CLEANUP(lkg_closep) int pidfd = -EBADF;
        pid_t parent = getpid(), pid;
        int r = outputs_open(&outputs);

        if (r < 0)
                return lkg_tool_fail(tool, LKG_TOOL_FAILED, "pipe: %s", strerror(-r));
        pid = fork();
        if (pid < 0)
                return lkg_tool_fail(tool, LKG_TOOL_FAILED, "fork: %s", strerror(errno));
        if (pid == 0)
                _exit(run_verb(tool, parent, outputs));
        for (size_t i = 0; i < N_OUTPUTS; i++)
                lkg_closep(&outputs[i].write_fd);
        pidfd = pidfd_open(pid, 0);
        if (pidfd < 0) {
                (void)kill(pid, SIGKILL);
                return lkg_tool_fail(tool, LKG_TOOL_FAILED, "pidfd_open: %s", strerror(errno));
        }
        if (wait_child(tool->verb->limit_s * LKG_NSEC_PER_SEC, pidfd, outputs)) {
                r = status_of(tool, pid);
                for (size_t i = 0; i < N_OUTPUTS; i++)
                        if (outputs[i].error < 0)
                                r = lkg_tool_fail(tool, LKG_TOOL_FAILED, "write the output: %s",
                                                  strerror(-outputs[i].error));
                return r;
        }
        (void)kill(pid, SIGKILL);
        (void)lkg_tool_fail(tool, LKG_TOOL_FAILED,
                            "the mount has not answered for %u s: is lkgfsd running? "
                            "(journalctl -u lkgfs; lkgfsd adopts the mount when it is started again)",
                            tool->verb->limit_s);
        return tool->verb->silent ? tool->verb->silent(tool) : LKG_TOOL_FAILED;
}
