/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Checks before anything is changed, each with its own message and exit code; then the directories, and the
 * locks that give one lkgfsd exclusive use of a mount point and a state directory.
 */
#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/capability.h>
#include <poll.h>
#include <sched.h>
#include <sys/file.h>
#include <sys/pidfd.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/utsname.h>
#include <sys/wait.h>

#include <lkg-config.h>
#include <lkg/base.h>
#include <lkg/file.h>
#include <lkg/messages.h>
#include <lkg/process.h>

#include "supervisor.h"

#define PROBE_LIMIT_NS (2 * LKG_NSEC_PER_SEC)
#define CLEANUP_DEPTH  4u /* private/, blobs/ or pinned/, fan-out directories */

/*
 * The kernel can be configured to abort a connection because of a single slow request; then all users lose
 * the view.
 */
static void warn_of_timeouts(void)
{
        static const char *const files[] = { "/proc/sys/fs/fuse/default_request_timeout",
                                             "/proc/sys/fs/fuse/max_request_timeout" };

        for (size_t i = 0; i < LKG_ARRAY_SIZE(files); i++) {
                LKG_CLEANUP(lkg_closep) int fd = open(files[i], O_RDONLY | O_CLOEXEC);
                char text[32] = "";

                if (fd >= 0 && read(fd, text, sizeof(text) - 1) > 0 && strtoul(text, NULL, 10) != 0)
                        lkg_log_warning("%s is %lu: one request that takes longer makes the kernel abort "
                                        "the whole view; set it to 0",
                                        files[i], strtoul(text, NULL, 10));
        }
}

/*
 * Needed for mounting, managing children, and acting for callers (our file server); programs that we run get
 * no more.
 */
static const int kept_capabilities[] = {
        /* mounts, and a namespace for them */
        CAP_SYS_ADMIN, CAP_SYS_CHROOT,
        /* facts about starts of components; ending our own processes */
        CAP_SYS_PTRACE, CAP_KILL,
        /* more descriptors, a protected OOM score */
        CAP_SYS_RESOURCE,
        /* children that drop privileges */
        CAP_SETPCAP, CAP_SETUID, CAP_SETGID,
        /* the file server's (fs/server/confine.c) */
        CAP_CHOWN, CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH, CAP_FOWNER, CAP_FSETID, CAP_MKNOD, CAP_SETFCAP, -1
};

static int check_privilege(struct lkg_error *err)
{
        struct utsname name;
        unsigned major = 0, minor = 0;

        if (geteuid() != 0)
                return lkg_fail(err, EX_NOPERM, 0,
                                "lkgfsd mounts a file system for everybody: run it as root.");
        if (!lkg_has_capability(CAP_SYS_ADMIN))
                return lkg_fail(err, EX_NOPERM, 0,
                                "lkgfsd needs the capability CAP_SYS_ADMIN in this container or unit.");
        if (uname(&name) < 0)
                return lkg_fail(err, EX_OSERR, errno, "uname");
        if (sscanf(name.release, "%u.%u", &major, &minor) == 2 && (major < 5 || (major == 5 && minor < 15)))
                return lkg_fail(err, EX_UNAVAILABLE, 0,
                                "Linux %s is too old: lkgfs needs 5.15 or later (openat2, move_mount, "
                                "mount_setattr, pidfd_open).",
                                name.release);
        if (lkg_capabilities_keep(kept_capabilities, err) < 0)
                return EX_OSERR;
        warn_of_timeouts();
        return 0;
}

/* realpath(3) for what may be a dead mount: its parent works, and a mount point is never a symlink. */
static char *resolve_mount_point(const char *given)
{
        char *path = realpath(given, NULL), *parent = NULL;
        LKG_CLEANUP(lkg_freep) char *copy = NULL;
        char *slash, *joined = NULL;

        if (path || (errno != ENOTCONN && errno != ECONNABORTED))
                return path;
        copy = strdup(given);
        if (!copy)
                return NULL;
        for (size_t n = strlen(copy); n > 1 && copy[n - 1] == '/'; n--)
                copy[n - 1] = '\0';
        slash = strrchr(copy, '/');
        if (slash)
                *slash = '\0';
        parent = realpath(!slash ? "." : slash == copy ? "/" : copy, NULL);
        if (!parent)
                return NULL;
        if (asprintf(&joined, "%s/%s", strcmp(parent, "/") == 0 ? "" : parent, slash ? slash + 1 : copy) < 0)
                joined = NULL;
        free(parent);
        return joined;
}

static int choose_mount_point(struct lkg_supervisor *s, struct lkg_error *err)
{
        const char *given = s->options->mount_point;
        struct statx stx;

        s->mount_point = resolve_mount_point(given);
        if (!s->mount_point && errno == ENOENT)
                return lkg_fail(err, EX_USAGE, 0,
                                "mount point %s does not exist; create the directory first.", given);
        if (!s->mount_point && errno == ENOTDIR)
                return lkg_fail(err, EX_USAGE, 0, "mount point %s: a part of the path is not a directory.",
                                given);
        if (!s->mount_point)
                return lkg_fail(err, EX_USAGE, errno, "mount point %s", given);
        if (strlen(s->mount_point) >= sizeof(((struct lkg_shared *)NULL)->mount_point))
                return lkg_fail(err, EX_USAGE, ENAMETOOLONG, "mount point %s", given);
        if (strcmp(s->mount_point, "/") == 0)
                return lkg_fail(err, EX_USAGE, 0, "the root directory cannot be the mount point.");
        /* DONT_SYNC: do not send a request to a file server that is gone. */
        if (statx(AT_FDCWD, s->mount_point, AT_STATX_DONT_SYNC | AT_NO_AUTOMOUNT, STATX_TYPE, &stx) < 0) {
                if (errno != ENOTCONN && errno != ECONNABORTED)
                        return lkg_fail(err, EX_USAGE, errno, "mount point %s", given);
        } else if (!S_ISDIR(stx.stx_mode)) {
                return lkg_fail(err, EX_USAGE, 0, "mount point %s is not a directory.", given);
        }
        return 0;
}

/* Slashes at the end say nothing. */
static bool is_in(const char *path, const char *dir)
{
        size_t n = strlen(dir);

        while (n > 0 && dir[n - 1] == '/')
                n--;
        return strncmp(path, dir, n) == 0 && (path[n] == '/' || path[n] == '\0');
}

/* Directories that must not contain each other. */
static int check_directories(const struct lkg_supervisor *s, struct lkg_error *err)
{
        const struct lkg_settings *settings = s->settings;
        const struct {
                const char *name, *path;
        } dirs[] = { { "stateDir", settings->state_dir }, { "runtimeDir", settings->runtime_dir } };

        for (size_t i = 0; i < LKG_ARRAY_SIZE(dirs); i++) {
                if (dirs[i].path[0] != '/')
                        return lkg_fail(err, EX_CONFIG, 0, "%s '%s' is not an absolute path.", dirs[i].name,
                                        dirs[i].path);
                if (is_in(dirs[i].path, s->mount_point))
                        return lkg_fail(err, EX_CONFIG, 0,
                                        "%s %s is below the mount point %s and would be hidden by the view; "
                                        "choose a directory outside.",
                                        dirs[i].name, dirs[i].path, s->mount_point);
        }
        if (s->source.over)
                return 0;
        if (is_in(s->mount_point, s->source.path))
                return lkg_fail(err, EX_CONFIG, 0,
                                "the mount point %s lies below sourceDir %s, so the view would contain "
                                "itself; mount outside of it, or over %s.",
                                s->mount_point, s->source.path, s->source.path);
        if (is_in(s->source.path, s->mount_point))
                return lkg_fail(err, EX_CONFIG, 0,
                                "sourceDir %s is below the mount point %s and would be hidden by the view.",
                                s->source.path, s->mount_point);
        return 0;
}

static int resolve_source(struct lkg_supervisor *s, struct lkg_error *err)
{
        char *path;

        s->source.over = !*s->settings->source_dir;
        s->source.path = s->mount_point;
        if (s->source.over)
                return 0;
        path = realpath(s->settings->source_dir, NULL);
        if (!path && (errno == ENOENT || errno == ENOTDIR))
                return lkg_fail(err, EX_CONFIG, 0, "sourceDir %s is not an existing directory.",
                                s->settings->source_dir);
        if (!path)
                return lkg_fail(err, EX_IOERR, errno, "sourceDir %s", s->settings->source_dir);
        s->source.over = strcmp(path, s->mount_point) == 0;
        free(s->settings->source_dir);
        s->settings->source_dir = path;
        s->source.path = s->source.over ? s->mount_point : path;
        return 0;
}

static int read_settings(struct lkg_supervisor *s, struct lkg_error *err)
{
        int r = lkg_settings_read(s, err);

        if (r == 0)
                r = resolve_source(s, err);
        return r != 0 ? r : check_directories(s, err);
}

/* The first entry that belongs neither to root nor to the engine. Return: 1 with @name; 0: none; -errno. */
static int foreign_entry(int fd, const struct lkg_settings *settings, char name[static NAME_MAX + 1])
{
        int copy = openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC), r = 0;
        DIR *dir = copy < 0 ? NULL : fdopendir(copy);
        const struct dirent *entry;
        struct stat st;

        if (!dir) {
                r = -errno;
                lkg_close(copy);
                return r;
        }
        while (r == 0 && (entry = readdir(dir))) {
                if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0 ||
                    fstatat(fd, entry->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0 ||
                    lkg_engine_owns(fd, st.st_uid, settings))
                        continue;
                (void)snprintf(name, NAME_MAX + 1, "%s", entry->d_name);
                r = 1;
        }
        (void)closedir(dir);
        return r;
}

/*
 * The files in our directories determine the configuration of root's daemons. Permissions that are too wide
 * are repaired, unless another user already has files there; an owner other than root and the engine is
 * refused.
 * @settings: NULL: the engine is not allowed either
 */
static int keep_to_us(int fd, const struct lkg_settings *settings, const char *path, mode_t mode,
                      struct lkg_error *err)
{
        char name[NAME_MAX + 1];
        struct stat st;
        int r;

        if (fstat(fd, &st) < 0)
                return lkg_fail(err, EX_IOERR, errno, "%s", path);
        if (!lkg_engine_owns(fd, st.st_uid, settings))
                return lkg_fail(
                        err, EX_NOPERM, 0,
                        "%s belongs to user %u, and must be root's%s; chown it when what is in it is yours",
                        path, (unsigned)st.st_uid, settings ? " (or engineUser's)" : "");
        if ((st.st_mode & 0777 & ~mode) == 0)
                return 0;
        r = st.st_mode & 022 ? foreign_entry(fd, settings, name) : 0;
        if (r < 0)
                return lkg_fail(err, EX_IOERR, -r, "%s", path);
        if (r > 0)
                return lkg_fail(err, EX_NOPERM, 0,
                                "others may write to %s (mode %04o), and have: %s is not root's; look at "
                                "what is in it, remove it or chown it, then chmod %04o",
                                path, (unsigned)st.st_mode & 07777, name, (unsigned)mode);
        if (fchmod(fd, st.st_mode & mode) < 0)
                return lkg_fail(err, EX_IOERR, errno, "chmod %04o %s", (unsigned)mode, path);
        lkg_log_warning("%s had mode %04o, which gives access to others; it has %04o now", path,
                        (unsigned)st.st_mode & 07777, (unsigned)(st.st_mode & mode));
        return 0;
}

/*
 * The directories of the path must be root's, too: a user who may write to one of them could put a symlink
 * there, and the next start would hand over another tree to the engine. In a sticky directory only the owner
 * could, and that is root or the engine (keep_to_us()).
 */
static int open_directory(const struct lkg_settings *settings, const char *what, const char *path,
                          mode_t mode, int *ret, struct lkg_error *err)
{
        int fd, r;

        fd = lkg_make_owned_way(path, mode, err);
        if (fd == -EPERM)
                return lkg_fail(err, EX_NOPERM, 0,
                                "%s Give it to root and chmod go-w it, or choose another %s.", err->message,
                                what);
        if (fd < 0)
                return EX_IOERR;
        fd = lkg_lift_fd(fd);
        if (fd < 0)
                return lkg_fail(err, EX_IOERR, -fd, "open directory %s", path);
        r = keep_to_us(fd, settings, path, mode, err);
        if (r != 0) {
                lkg_close(fd);
                return r;
        }
        *ret = fd;
        return 0;
}

/* Durable files need a durable directory name. On a busy disk this takes some milliseconds. */
static void sync_name(int fd)
{
        LKG_CLEANUP(lkg_closep) int parent = openat(fd, "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

        if (parent >= 0)
                (void)fsync(parent);
}

/* ---- locks ---- */

/* One lkgfsd per state directory and per runtime directory: a lock in each, held as long as it lives. */

#define LOCK_TRIES      100u
#define LOCK_PAUSE_MS   20
#define LOCKS_BYTES_MAX (16u << 20) /* of /proc/locks */

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
        int pid = lock_owner(fd, text);
        LKG_CLEANUP(lkg_closep) int pidfd = pid > 0 ? pidfd_open(pid, 0) : -EBADF;

        if (n_tries > LOCK_TRIES || pid == 0 || (pidfd >= 0 && !lkg_wait_pidfd(pidfd, 0)))
                return false;
        if (n_tries < LOCK_TRIES) {
                (void)poll(NULL, 0, LOCK_PAUSE_MS);
                return true;
        }
        return lkg_end_unrecorded(lock_holder(fd));
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

/*
 * Lock the file `lock` of @dirfd, or report its holder.
 * @what: "state directory", for a message
 * @ret:  the descriptor that holds it; unchanged if the file system is read-only and there is no such file
 */
static int take_lock(const struct lkg_supervisor *s, int dirfd, const char *dir, const char *what, int *ret,
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

/* ---- directories ---- */

static int lock_directories(struct lkg_supervisor *s, struct lkg_error *err)
{
        const struct lkg_settings *settings = s->settings;
        bool made_state = access(settings->state_dir, F_OK) < 0;
        int r;

        s->dirs.made_runtime = access(settings->runtime_dir, F_OK) < 0;
        if (asprintf(&s->dirs.private_path, "%s/" LKG_PRIVATE_DIR, settings->runtime_dir) < 0) {
                s->dirs.private_path = NULL;
                return lkg_fail(err, EX_OSERR, ENOMEM, "runtime directory");
        }
        r = open_directory(settings, "stateDir", settings->state_dir, 0700, &s->dirs.state, err);
        if (r == 0 && made_state)
                sync_name(s->dirs.state);
        if (r == 0)
                r = open_directory(NULL, "runtimeDir", settings->runtime_dir, 0755, &s->dirs.records, err);
        if (r == 0)
                r = open_directory(settings, "runtimeDir", s->dirs.private_path, 0700, &s->dirs.runtime,
                                   err);
        if (r == 0)
                r = take_lock(s, s->dirs.state, settings->state_dir, "state directory", &s->dirs.state_lock,
                              err);
        if (r == 0)
                r = take_lock(s, s->dirs.runtime, s->dirs.private_path, "runtime directory",
                              &s->dirs.runtime_lock, err);
        return r;
}

/*
 * In the new process. FORCE_SYNC: cached attributes of the root directory do not show whether the server
 * runs.
 */
static int ask_root(void *userdata)
{
        struct statx stx;

        return statx(AT_FDCWD, userdata, AT_STATX_FORCE_SYNC, STATX_BASIC_STATS, &stx) < 0 ? errno & 0xff
                                                                                           : 0;
}

/*
 * Asks the file system at the mount point for an answer, in a process that may hang.
 * Return: errno, 0, ETIMEDOUT.
 */
static int probe(const char *path)
{
        const struct lkg_job_spec spec = { .run = ask_root, .userdata = (void *)(uintptr_t)path };
        int status = 0, r = lkg_job_run(&spec, PROBE_LIMIT_NS, NULL, NULL, &status);

        if (r < 0)
                return -r;
        return WIFEXITED(status) ? WEXITSTATUS(status) : EINTR;
}

int lkg_preflight_occupied(struct lkg_supervisor *s, struct lkg_error *err)
{
        struct lkg_mount mount;
        int r = lkg_mounts_top(s->mount_point, &mount);
        int answer;

        if (r < 0)
                return lkg_fail(err, EX_OSERR, -r, "read /proc/self/mountinfo");
        if (r == 0 || !lkg_mount_is_fuse(&mount))
                return 0;
        answer = probe(s->mount_point);
        if (!lkg_mount_is_lkgfs(&mount))
                return lkg_fail(err, EX_UNAVAILABLE, 0,
                                "mount point %s is busy: %s (type %s) is mounted there%s; unmount it first.",
                                s->mount_point, mount.source, mount.type,
                                answer == ENOTCONN ? " and its server is gone" : "");
        if (answer == ETIMEDOUT)
                return lkg_fail(err, EX_UNAVAILABLE, 0,
                                "mount point %s is busy: a lkgfs view is mounted there, and its file server "
                                "does not answer; unmount it with `umount -l %s`.",
                                s->mount_point, s->mount_point);
        if (answer != ENOTCONN && answer != ECONNABORTED)
                return lkg_fail(
                        err, EX_UNAVAILABLE, 0,
                        "mount point %s is busy: a lkgfs view is already served there by another lkgfsd.",
                        s->mount_point);
        s->stale_id = mount.id;
        return 0;
}

/*
 * Empties the private runtime directory, without following links; the depth is bounded because the tree is known.
 */
static void empty_directory(int dirfd, unsigned depth)
{
        int fd = openat(dirfd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
        struct dirent *entry;

        if (!dir) {
                lkg_close(fd);
                return;
        }
        while ((entry = readdir(dir))) {
                int child;

                if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
                        continue;
                if (unlinkat(dirfd, entry->d_name, 0) == 0 || (errno != EISDIR && errno != EPERM))
                        continue;
                child = openat(dirfd, entry->d_name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
                if (child >= 0 && depth > 0)
                        empty_directory(child, depth - 1);
                lkg_close(child);
                (void)unlinkat(dirfd, entry->d_name, AT_REMOVEDIR);
        }
        (void)closedir(dir);
}

void lkg_preflight_cleanup(struct lkg_supervisor *s)
{
        if (s->dirs.runtime_lock < 0)
                return; /* not ours */
        empty_directory(s->dirs.runtime, CLEANUP_DEPTH);
        (void)rmdir(s->dirs.private_path);
        lkg_recorded_forget(s);
        if (s->dirs.made_runtime)
                (void)rmdir(s->settings->runtime_dir); /* must fail if there are files of others */
}

/* ---- programs ---- */

/*
 * Where the helper programs are. An installed lkgfsd uses only the libexec directory that it was built for.
 * An lkgfsd that was started from its build folder (.../fs/supervisor/lkgfsd) uses the helpers in that
 * folder, if they belong to the same user: a user who can replace them could have replaced lkgfsd as well.
 */

static int own_directory(char dir[static PATH_MAX], struct stat *ret_st, struct lkg_error *err)
{
        ssize_t n = readlink("/proc/self/exe", dir, PATH_MAX - 1);
        char *slash;

        if (n < 0)
                return lkg_fail(err, EX_UNAVAILABLE, errno, "/proc is needed: readlink /proc/self/exe");
        dir[n] = '\0';
        if (stat("/proc/self/exe", ret_st) < 0)
                return lkg_fail(err, EX_UNAVAILABLE, errno, "stat /proc/self/exe");
        slash = strrchr(dir, '/');
        if (slash)
                *slash = '\0';
        return 0;
}

static bool trusted_sibling(const char *path, const struct stat *self)
{
        struct stat st;

        return stat(path, &st) == 0 && S_ISREG(st.st_mode) &&
               (st.st_uid == 0 || st.st_uid == self->st_uid) && !(st.st_mode & S_IWOTH);
}

static int find_programs(struct lkg_supervisor *s, struct lkg_error *err)
{
        static const struct {
                const char *folder, *name;
        } programs[] = { [LKG_CHILD_ENGINE] = { "core/engine", "lkgfs-engine" },
                         [LKG_CHILD_SERVER] = { "fs/server", "lkgfs-fs" },
                         [LKG_CHILD_NOTIFIER] = { "fs/notifier", "lkgfs-notify" } };
        static const char tail[] = "/fs/supervisor";
        char dir[PATH_MAX], *top;
        struct stat self;
        int r = own_directory(dir, &self, err);

        if (r != 0)
                return r;
        top = strcmp(dir, LKG_SBINDIR) != 0 && strlen(dir) >= sizeof(tail) ? dir + strlen(dir) - strlen(tail)
                                                                           : NULL;
        if (top && strcmp(top, tail) == 0)
                *top = '\0'; /* the build folder */
        else
                top = NULL;
        for (size_t i = 0; i < LKG_ARRAY_SIZE(programs); i++) {
                char **path = &s->programs[i];

                if (top && asprintf(path, "%s/%s/%s", dir, programs[i].folder, programs[i].name) < 0)
                        *path = NULL;
                if (*path && trusted_sibling(*path, &self))
                        continue;
                free(*path);
                if (asprintf(path, "%s/%s", LKG_LIBEXECDIR, programs[i].name) < 0)
                        *path = NULL;
                if (!*path || access(*path, X_OK) < 0)
                        return lkg_fail(err, EX_UNAVAILABLE, errno, "the program %s belongs to lkgfsd: %s",
                                        programs[i].name, *path ? *path : "");
        }
        return 0;
}

/* ---- all ---- */

/* Only the default configuration file may be missing, not one that was named. */
static int choose_config(struct lkg_supervisor *s, const char *path, struct lkg_error *err)
{
        LKG_CLEANUP(lkg_freep) char *cwd = path[0] != '/' ? getcwd(NULL, 0) : NULL;

        if (path[0] != '/' && !cwd)
                return lkg_fail(err, EX_IOERR, errno, "current directory");
        if (asprintf(&s->config, "%s%s%s", cwd ? cwd : "", cwd ? "/" : "", path) < 0) {
                s->config = NULL;
                return lkg_fail(err, EX_OSERR, ENOMEM, "path of the configuration");
        }
        if (strcmp(s->config, LKG_CONFIG_DEFAULT) != 0 && access(s->config, F_OK) < 0)
                return lkg_fail(err, EX_CONFIG, errno, "configuration file %s", s->config);
        return 0;
}

/*
 * A service manager that sandboxes us gives us a mount namespace from which no mount propagates. So we alone
 * leave it for the named one, before anything else; our children are started in the namespace that we came
 * from.
 */
static int change_namespace(struct lkg_supervisor *s, const char *path, struct lkg_error *err)
{
        LKG_CLEANUP(lkg_closep) int ours = open("/proc/self/ns/mnt", O_RDONLY | O_CLOEXEC);
        LKG_CLEANUP(lkg_closep) int there = open(path, O_RDONLY | O_CLOEXEC);
        int lifted;

        if (ours < 0 || there < 0)
                return lkg_fail(err, EX_UNAVAILABLE, errno, "mount namespace %s", path);
        if (setns(there, CLONE_NEWNS) < 0)
                return lkg_fail(err, EX_NOPERM, errno, "enter the mount namespace %s", path);
        lifted = lkg_lift_fd(LKG_STEAL_FD(ours));
        if (lifted < 0)
                return lkg_fail(err, EX_OSERR, -lifted, "our own mount namespace");
        s->children_namespace = lifted;
        return 0;
}

int lkg_preflight(struct lkg_supervisor *s, struct lkg_error *err)
{
        int r = check_privilege(err);

        if (r == 0 && s->options->mount_namespace)
                r = change_namespace(s, s->options->mount_namespace, err);
        if (r == 0 && s->options->config)
                r = choose_config(s, s->options->config, err);
        if (r == 0)
                r = choose_mount_point(s, err);
        if (r == 0 && chdir("/") < 0)
                r = lkg_fail(err, EX_OSERR, errno, "chdir /");
        if (r == 0)
                r = find_programs(s, err);
        if (r == 0)
                r = read_settings(s, err);
        if (r != 0)
                return r;
        return s->options->fake ? lkg_preflight_occupied(s, err) : lock_directories(s, err);
}
