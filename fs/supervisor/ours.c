/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is ours: the processes that we started, and the directories, which one lkgfsd has at a time.
 *
 * Each child is recorded in runtimeDir itself, where only root can write. This tells the next lkgfsd, with the connection or without,
 * which process to take over or to end. Nothing else does: what children can write (shared memory, the private directory) must
 * not decide which process is killed, and a name may be that of a helper of another lkgfs on this node.
 */
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/pidfd.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>

#include <lkg/base.h>
#include <lkg/file.h>

#include "supervisor.h"

#define END_RECORDED_NS (1 * LKG_NSEC_PER_SEC)

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

/* SIGTERM, then SIGKILL after @limit_ns. */
static void end(int pidfd, uint64_t limit_ns)
{
        static const int signals[] = { SIGTERM, SIGKILL };

        for (size_t i = 0; i < LKG_ARRAY_SIZE(signals); i++) {
                (void)pidfd_send_signal(pidfd, signals[i], NULL, 0);
                if (lkg_wait_pidfd(pidfd, limit_ns))
                        return;
        }
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

        if (pidfd < 0)
                return 0;
        end(pidfd, END_RECORDED_NS);
        return 1;
}

void lkg_end_unrecorded(int pid)
{
        LKG_CLEANUP(lkg_closep) int pidfd = pidfd_open(pid, 0);

        if (pidfd >= 0 && runs_helper(pid))
                end(pidfd, END_RECORDED_NS);
}

/* ---- locks ---- */

/* One lkgfsd per state directory and per runtime directory: a lock in each, held as long as it lives. */

#define LOCK_TRIES         100u
#define LOCK_PAUSE_MS      20
#define LOCK_HOLDER_END_NS (1 * LKG_NSEC_PER_SEC)
#define LOCKS_BYTES_MAX    (16u << 20) /* of /proc/locks */

/* The pid in the lock file. Return: 0 if there is none; @text is the mount point. */
static int lock_owner(int fd, char text[static PATH_MAX + 64])
{
        ssize_t n = pread(fd, text, PATH_MAX + 63, 0);
        char *end;
        int pid;

        text[n > 0 ? n : 0] = '\0';
        pid = (int)strtol(text, &end, 10);
        end += strspn(end, " ");
        end[strcspn(end, "\n")] = '\0';
        memmove(text, end, strlen(end) + 1);
        return pid > 0 && *text ? pid : 0;
}

/* The holder according to the kernel (proc_locks(5)). 0: none is visible. */
static int lock_holder(int fd)
{
        LKG_CLEANUP(lkg_freep) char *text = NULL;
        LKG_CLEANUP(lkg_closep) int locks = open("/proc/locks", O_RDONLY | O_CLOEXEC);
        char *rest, *line;
        struct stat st;

        if (locks < 0 || fstat(fd, &st) < 0 || lkg_read_file(locks, LOCKS_BYTES_MAX, &text, NULL, NULL) < 0)
                return 0;
        rest = text;
        while ((line = strsep(&rest, "\n"))) {
                unsigned major_number, minor_number;
                unsigned long inode;
                int pid;

                if (sscanf(line, "%*d: FLOCK %*s %*s %d %x:%x:%lu", &pid, &major_number, &minor_number,
                           &inode) == 4 &&
                    inode == st.st_ino && major_number == major(st.st_dev) &&
                    minor_number == minor(st.st_dev))
                        return pid > 0 ? pid : 0;
        }
        return 0;
}

/*
 * A helper may hold the lock of a dead lkgfsd: a child that was forked just before its death, for the short
 * time until execve(2); or a compromised one that took it.
 * Return: whether to try again.
 */
static bool owner_is_gone(int fd, unsigned n_tries)
{
        char text[PATH_MAX + 64];
        LKG_CLEANUP(lkg_closep) int holder = -EBADF;
        int pid = lock_owner(fd, text);
        LKG_CLEANUP(lkg_closep) int pidfd = pid > 0 ? pidfd_open(pid, 0) : -EBADF;

        if (n_tries > LOCK_TRIES || pid == 0 || (pidfd >= 0 && !lkg_wait_pidfd(pidfd, 0)))
                return false;
        if (n_tries < LOCK_TRIES) {
                (void)poll(NULL, 0, LOCK_PAUSE_MS);
                return true;
        }
        pid = lock_holder(fd);
        holder = hold(pid, lkg_process_start_time(pid));
        if (holder < 0 || !runs_helper(pid))
                return false;
        end(holder, LOCK_HOLDER_END_NS);
        return true;
}

static int locked_by_other(int fd, const char *path, const char *what, struct lkg_error *err)
{
        char mount_point[PATH_MAX + 64];
        int pid = lock_owner(fd, mount_point);

        if (pid > 0)
                return lkg_fail(err, EX_UNAVAILABLE, 0,
                                "another lkgfsd (pid %d) already serves %s with this %s (%s is locked).",
                                pid, mount_point, what, path);
        return lkg_fail(err, EX_UNAVAILABLE, 0, "another lkgfsd already uses this %s (%s is locked).", what,
                        path);
}

/*
 * A lock file may be removed by an lkgfsd that is just ending: the lock is valid only if the name still
 * refers to the locked file.
 */
static bool still_named(int fd, int dirfd, const char *name)
{
        struct stat a, b;

        return fstat(fd, &a) == 0 && fstatat(dirfd, name, &b, AT_SYMLINK_NOFOLLOW) == 0 &&
               a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

/* The engine may write to both directories, and must not prevent the next start. */
static int put_aside(int dirfd)
{
        int r = lkg_put_aside(dirfd, "lock");

        return r < 0 ? r : -EAGAIN;
}

static int open_lock_file(int dirfd, int flags)
{
        LKG_CLEANUP(lkg_closep)
        int fd = openat(dirfd, "lock", flags | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC, 0600);
        struct stat st;

        if (fd < 0)
                return errno == ELOOP || errno == EISDIR || errno == ENXIO ? put_aside(dirfd) : -errno;
        if (fstat(fd, &st) < 0)
                return -errno;
        return S_ISREG(st.st_mode) ? LKG_STEAL_FD(fd) : put_aside(dirfd);
}

/* A read-only file system can be locked, too: its stored state is still used. */
static int open_lock(int dirfd, bool *ret_read_only)
{
        int fd = open_lock_file(dirfd, O_RDWR | O_CREAT);

        if (fd == -EAGAIN)
                fd = open_lock_file(dirfd, O_RDWR | O_CREAT);
        *ret_read_only = fd == -EROFS;
        return *ret_read_only ? open_lock_file(dirfd, O_RDONLY) : fd;
}

int lkg_lock_take(const struct lkg_supervisor *s, int dirfd, const char *dir, const char *what, int *ret,
                  struct lkg_error *err)
{
        LKG_CLEANUP(lkg_freep) char *path = NULL;
        LKG_CLEANUP(lkg_closep) int fd = -EBADF;
        bool read_only = false;

        if (asprintf(&path, "%s/lock", dir) < 0)
                return lkg_fail(err, EX_OSERR, ENOMEM, "lock %s", dir);
        for (unsigned n_tries = 0;; n_tries++) {
                fd = open_lock(dirfd, &read_only);
                if (fd == -ENOENT)
                        return 0; /* never used and not writable: two lkgfsd cannot interfere here */
                fd = fd < 0 ? fd : lkg_lift_fd(fd);
                if (fd < 0)
                        return lkg_fail(err, EX_IOERR, -fd, "open %s", path);
                if (flock(fd, LOCK_EX | LOCK_NB) < 0) {
                        if (errno != EWOULDBLOCK)
                                return lkg_fail(err, EX_IOERR, errno, "lock %s", path);
                        if (!owner_is_gone(fd, n_tries))
                                return locked_by_other(fd, path, what, err);
                } else if (still_named(fd, dirfd, "lock"))
                        break;
                fd = lkg_close(fd);
        }
        /* For the error message of another lkgfsd only. */
        if (!read_only &&
            (ftruncate(fd, 0) < 0 || dprintf(fd, "%d %s\n", (int)getpid(), s->mount_point) < 0))
                return lkg_fail(err, EX_IOERR, errno, "write %s", path);
        *ret = LKG_STEAL_FD(fd);
        return 0;
}
