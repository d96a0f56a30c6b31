/* SPDX-License-Identifier: Apache-2.0 */
/* Ends processes that a predecessor left, and waits for the end of any process. */
#include <fcntl.h>
#include <signal.h>
#include <sys/pidfd.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <lkg/file.h>

#include "supervisor.h"

#define END_RECORDED_NS (1 * LKG_NSEC_PER_SEC)

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
 * A process that waits for a dead file system before execve() still runs lkgfsd's program, but has its own
 * name (jobs.c).
 */
bool lkg_runs_helper(int pid)
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

/* Identify the file without a request that a dead file system could leave unanswered. */
static bool identify(int fd, struct statx *ret)
{
        return fd >= 0 &&
               statx(fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC | AT_NO_AUTOMOUNT, STATX_INO, ret) == 0;
}

static bool same_file(const struct statx *a, const struct statx *b)
{
        return a->stx_ino == b->stx_ino && a->stx_dev_major == b->stx_dev_major &&
               a->stx_dev_minor == b->stx_dev_minor;
}

/* Only at the descriptor numbers that it was started with; those that it opens itself are higher. */
static bool has_ours(const struct lkg_supervisor *s, int pid, int shared_fd)
{
        const int ours[] = { s->runtime_fd, s->state_fd, shared_fd };
        struct statx theirs, mine;
        char path[64];

        for (int number = 3; number < 3 + LKG_SPAWN_FDS_MAX; number++) {
                LKG_CLEANUP(lkg_closep) int fd = -EBADF;

                (void)snprintf(path, sizeof(path), "/proc/%d/fd/%d", pid, number);
                fd = open(path, O_PATH | O_CLOEXEC);
                if (!identify(fd, &theirs))
                        continue;
                for (size_t i = 0; i < LKG_ARRAY_SIZE(ours); i++)
                        if (identify(ours[i], &mine) && same_file(&theirs, &mine))
                                return true;
        }
        return false;
}

bool lkg_is_ours(const struct lkg_supervisor *s, const struct lkg_process *process, int shared_fd)
{
        int pid = atomic_load(&process->pid);

        return lkg_runs_helper(pid) && (lkg_recorded_has(s, process) || has_ours(s, pid, shared_fd));
}

int lkg_process_end(const struct lkg_process *process, bool (*is_wanted)(const struct lkg_process *, void *),
                    void *userdata, uint64_t limit_ns)
{
        int pid = atomic_load(&process->pid);
        LKG_CLEANUP(lkg_closep) int pidfd = pid > 0 ? pidfd_open(pid, 0) : -EBADF;

        if (pidfd < 0 || lkg_process_start_time(pid) != process->start_time || !is_wanted(process, userdata))
                return 0;
        (void)pidfd_send_signal(pidfd, SIGTERM, NULL, 0);
        if (lkg_wait_pidfd(pidfd, limit_ns))
                return 1;
        (void)pidfd_send_signal(pidfd, SIGKILL, NULL, 0);
        (void)lkg_wait_pidfd(pidfd, limit_ns);
        return 1;
}

struct owner {
        const struct lkg_supervisor *s;
        int shared_fd;
};

static bool is_owned(const struct lkg_process *process, void *userdata)
{
        const struct owner *owner = userdata;

        return lkg_is_ours(owner->s, process, owner->shared_fd);
}

int lkg_ours_end(const struct lkg_supervisor *s, const struct lkg_process *process, int shared_fd,
                 uint64_t limit_ns)
{
        struct owner owner = { s, shared_fd };

        return lkg_process_end(process, is_owned, &owner, limit_ns);
}

int lkg_child_end_recorded(struct lkg_supervisor *s, enum lkg_child_kind kind)
{
        const int directories[] = { s->records_fd, s->runtime_fd };
        int n = 0;

        for (size_t i = 0; i < LKG_ARRAY_SIZE(directories); i++) {
                struct lkg_process process = { 0 };

                if (lkg_recorded_read(directories[i], kind, &process))
                        n += lkg_ours_end(s, &process, -EBADF, END_RECORDED_NS);
        }
        return n > 0;
}
