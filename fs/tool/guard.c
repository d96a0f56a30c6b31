/* SPDX-License-Identifier: Apache-2.0 */
/*
 * On a broken node a call into the mount may wait for ever: the kernel holds the caller until somebody
 * answers, and only SIGKILL ends that. So a verb that touches the mount runs in a child; the parent waits
 * for a bounded time.
 */
#include "tool.h"

#include <poll.h>
#include <signal.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/wait.h>

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

static int wait_child(const struct lkg_tool *tool, pid_t pid, int pidfd)
{
        uint64_t deadline_ns = lkg_boottime_ns() + tool->verb->limit_s * LKG_NSEC_PER_SEC;
        struct pollfd poll_fd = { .fd = pidfd, .events = POLLIN };

        for (;;) {
                uint64_t now_ns = lkg_boottime_ns();
                int timeout_ms =
                        now_ns < deadline_ns ? (int)((deadline_ns - now_ns) / LKG_NSEC_PER_MSEC) + 1 : 0;
                int r = poll(&poll_fd, 1, timeout_ms);

                if (r > 0)
                        return status_of(tool, pid);
                if (r < 0 && errno == EINTR)
                        continue;
                break;
        }
        (void)kill(pid, SIGKILL);
        return lkg_tool_fail(tool, LKG_TOOL_FAILED,
                             "the mount has not answered for %u s: is lkgfsd running? "
                             "(journalctl -u lkgfs; lkgfsd adopts the mount when it is started again)",
                             tool->verb->limit_s);
}

int lkg_tool_guard(const struct lkg_tool *tool)
{
        LKG_CLEANUP(lkg_closep) int pidfd = -EBADF;
        pid_t parent = getpid(), pid = fork();

        if (pid < 0)
                return lkg_tool_fail(tool, LKG_TOOL_FAILED, "fork: %s", strerror(errno));
        if (pid == 0) {
                /* Whoever kills the tool means the verb too. */
                if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || getppid() != parent)
                        _exit(LKG_TOOL_FAILED);
                _exit(tool->verb->run(tool));
        }
        pidfd = pidfd_open(pid, 0);
        if (pidfd < 0)
                return status_of(tool, pid); /* no bound, but no failure either */
        return wait_child(tool, pid, pidfd);
}
