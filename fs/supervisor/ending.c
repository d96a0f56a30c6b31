/* SPDX-License-Identifier: Apache-2.0 */
/* Ending processes that a predecessor left, and waiting for the end of any. */
#include <poll.h>
#include <signal.h>
#include <sys/pidfd.h>

#include <lkg/file.h>

#include "supervisor.h"

bool lkg_wait_pidfd(int pidfd, uint64_t limit_ns)
{
        uint64_t deadline_ns = lkg_boottime_ns() + limit_ns, now_ns;

        while ((now_ns = lkg_boottime_ns()) <= deadline_ns) {
                struct pollfd p = { .fd = pidfd, .events = POLLIN };
                int r = poll(&p, 1,
                             (int)((deadline_ns - now_ns + LKG_NSEC_PER_MSEC - 1) / LKG_NSEC_PER_MSEC));

                if (r > 0)
                        return true;
                if (r < 0 && errno != EINTR)
                        return false;
        }
        return false;
}

bool lkg_is_helper(int pid)
{
        char path[64], exe[PATH_MAX];
        const char *name;
        ssize_t n;

        (void)snprintf(path, sizeof(path), "/proc/%d/exe", pid);
        n = readlink(path, exe, sizeof(exe) - 1);
        if (n < 0)
                return false;
        exe[n] = '\0';
        name = strrchr(exe, '/');
        return name && strncmp(name, "/lkgfs-", strlen("/lkgfs-")) == 0;
}

int lkg_process_end(const struct lkg_process *process, uint64_t limit_ns)
{
        int pid = atomic_load(&process->pid);
        LKG_CLEANUP(lkg_closep) int pidfd = pid > 0 ? pidfd_open(pid, 0) : -EBADF;

        if (pidfd < 0 || lkg_process_start_time(pid) != process->start_time || !lkg_is_helper(pid))
                return 0;
        (void)pidfd_send_signal(pidfd, SIGTERM, NULL, 0);
        if (lkg_wait_pidfd(pidfd, limit_ns))
                return 1;
        (void)pidfd_send_signal(pidfd, SIGKILL, NULL, 0);
        (void)lkg_wait_pidfd(pidfd, limit_ns);
        return 1;
}
