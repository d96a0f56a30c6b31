/* SPDX-License-Identifier: Apache-2.0 */
/* Ending processes that a predecessor left, and waiting for the end of any. */
#include <fcntl.h>
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

/* Whether it calls itself so, which nobody else can make it do. */
static bool is_called(int pid, const char *prefix)
{
        char path[64], name[32] = "";
        LKG_CLEANUP(lkg_closep) int fd = -EBADF;

        (void)snprintf(path, sizeof(path), "/proc/%d/comm", pid);
        fd = open(path, O_RDONLY | O_CLOEXEC);
        return fd >= 0 && read(fd, name, sizeof(name) - 1) > 0 && strncmp(name, prefix, strlen(prefix)) == 0;
}

/* One that waits for a dead file system before it is executed has lkgfsd's program still, but its own name (spawn.c). */
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
        if (!name)
                return false;
        return strncmp(name, "/lkgfs-", strlen("/lkgfs-")) == 0 ||
               (strncmp(name, "/lkgfsd", strlen("/lkgfsd")) == 0 && is_called(pid, "lkgfs-"));
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
