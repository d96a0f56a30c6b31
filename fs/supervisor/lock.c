/* SPDX-License-Identifier: Apache-2.0 */
/* One lkgfsd per state directory and per runtime directory: a lock in each, held as long as it lives. */
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <sys/file.h>
#include <sys/pidfd.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <lkg/file.h>

#include "supervisor.h"

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

static bool runs_helper(const struct lkg_process *process, void *userdata)
{
        (void)userdata;
        return lkg_runs_helper(atomic_load(&process->pid));
}

/*
 * A helper may hold the lock of a dead lkgfsd: a child that was forked just before its death, for the short
 * time until execve(2); or a compromised one that took it.
 * Return: whether to try again.
 */
static bool owner_is_gone(int fd, unsigned n_tries)
{
        char text[PATH_MAX + 64];
        struct lkg_process holder = { 0 };
        int pid = lock_owner(fd, text);
        LKG_CLEANUP(lkg_closep) int pidfd = pid > 0 ? pidfd_open(pid, 0) : -EBADF;

        if (n_tries > LOCK_TRIES || pid == 0 || (pidfd >= 0 && !lkg_wait_pidfd(pidfd, 0)))
                return false;
        if (n_tries < LOCK_TRIES) {
                (void)poll(NULL, 0, LOCK_PAUSE_MS);
                return true;
        }
        atomic_store(&holder.pid, lock_holder(fd));
        holder.start_time = lkg_process_start_time(atomic_load(&holder.pid));
        return lkg_process_end(&holder, runs_helper, NULL, LOCK_HOLDER_END_NS) == 1;
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
