/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which processes are ours.
 *
 * Each child is recorded in runtimeDir itself, where only root can write. This tells the next lkgfsd, with the connection or without,
 * which process to take over or to end. Nothing else does: what children can write (shared memory, the private directory) must
 * not decide which process is killed, and a name may be that of a helper of another lkgfs on this node.
 */
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <sys/pidfd.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <lkg/base.h>
#include <lkg/file.h>

#include "supervisor.h"

#define END_LIMIT_NS (1 * LKG_NSEC_PER_SEC)

static const char *const record_names[_LKG_CHILD_KIND_MAX] = {
        [LKG_CHILD_ENGINE] = "engine.pid",
        [LKG_CHILD_SERVER] = "server.pid",
        [LKG_CHILD_NOTIFIER] = "notifier.pid",
};

void lkg_recorded_note(const struct lkg_supervisor *s, enum lkg_child_kind kind)
{
        LKG_CLEANUP(lkg_closep)
        int fd = openat(s->dirs.records, record_names[kind], O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC,
                        0600);
        int pid = (int)getpid();

        /* In place and always as long: a full file system has room for it. */
        if (fd < 0 || dprintf(fd, "%10d %20" PRIu64 "\n", pid, lkg_process_start_time(pid)) < 0)
                (void)dprintf(STDERR_FILENO, "record in %s: %s\n", record_names[kind], strerror(errno));
}

void lkg_recorded_forget(const struct lkg_supervisor *s)
{
        for (size_t i = 0; i < _LKG_CHILD_KIND_MAX; i++)
                (void)unlinkat(s->dirs.records, record_names[i], 0);
}

/* Its name in comm, which only the process itself can set. */
static bool is_called(int pid, const char *prefix)
{
        char path[64], name[32] = "";
        LKG_CLEANUP(lkg_closep) int fd = -EBADF;

        (void)snprintf(path, sizeof(path), "/proc/%d/comm", pid);
        fd = open(path, O_RDONLY | O_CLOEXEC);
        return fd >= 0 && read(fd, name, sizeof(name) - 1) > 0 && strncmp(name, prefix, strlen(prefix)) == 0;
}

/*
 * Does its program have the name of one of ours? Enough for a process that holds our lock according to the kernel.
 *
 * A process that waits for a dead file system before execve() still runs lkgfsd's program, but has its own
 * name (children.c).
 */
static bool runs_helper(int pid)
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

/* A descriptor of it: from now on its pid cannot be reused unnoticed. -ESRCH: it has ended. */
static int hold(int pid, uint64_t start_time)
{
        LKG_CLEANUP(lkg_closep) int pidfd = pid > 0 ? pidfd_open(pid, 0) : -EBADF;

        return pidfd >= 0 && lkg_process_start_time(pid) == start_time ? LKG_STEAL_FD(pidfd) : -ESRCH;
}

/* SIGTERM, then SIGKILL. Return: false: there is no such process. */
static bool end(int pidfd)
{
        static const int signals[] = { SIGTERM, SIGKILL };
        bool ended = pidfd < 0;

        for (size_t i = 0; !ended && i < LKG_ARRAY_SIZE(signals); i++) {
                (void)pidfd_send_signal(pidfd, signals[i], NULL, 0);
                ended = lkg_wait_pidfd(pidfd, END_LIMIT_NS);
        }
        return pidfd >= 0;
}

/* 0.1.0 recorded them in the private directory, which is the engine's now: only a file that root made counts. */
static int open_record(const struct lkg_supervisor *s, enum lkg_child_kind kind)
{
        int fd = lkg_open_plain(s->dirs.records, record_names[kind]);
        struct stat st;

        if (fd != -ENOENT)
                return fd;
        fd = lkg_open_plain(s->dirs.runtime, record_names[kind]);
        if (fd >= 0 && (fstat(fd, &st) < 0 || st.st_uid != 0 || st.st_nlink != 1)) {
                lkg_close(fd);
                fd = -ENOENT;
        }
        return fd;
}

int lkg_recorded_hold(const struct lkg_supervisor *s, enum lkg_child_kind kind, int *ret_pid)
{
        LKG_CLEANUP(lkg_closep) int fd = open_record(s, kind);
        LKG_CLEANUP(lkg_closep) int pidfd = -EBADF;
        uint64_t start_time;
        char text[64] = "";
        int pid = 0;

        if (fd < 0 || read(fd, text, sizeof(text) - 1) <= 0 ||
            sscanf(text, "%d %" SCNu64, &pid, &start_time) != 2)
                return -ESRCH;
        pidfd = hold(pid, start_time);
        if (pidfd < 0 || !runs_helper(pid))
                return -ESRCH;
        *ret_pid = pid;
        return lkg_lift_fd(LKG_STEAL_FD(pidfd));
}

int lkg_recorded_end(const struct lkg_supervisor *s, enum lkg_child_kind kind)
{
        int pid;
        LKG_CLEANUP(lkg_closep) int pidfd = lkg_recorded_hold(s, kind, &pid);

        return end(pidfd);
}

bool lkg_end_unrecorded(int pid)
{
        LKG_CLEANUP(lkg_closep) int pidfd = hold(pid, lkg_process_start_time(pid));

        return pidfd >= 0 && runs_helper(pid) && end(pidfd);
}
