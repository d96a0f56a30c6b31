/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Checks before anything is changed, each with its own message and exit code; then the directories, and the
 * locks that give one lkgfsd exclusive use of a mount point and a state directory.
 */
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

static int check_privilege(struct lkg_supervisor *s, struct lkg_error *err)
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

/* realpath(3) for what may be a dead mount: without a request to its server. */
static char *resolve_mount_point(const char *given)
{
        LKG_CLEANUP(lkg_closep) int fd = open(given, O_PATH | O_CLOEXEC);
        char link[32], path[PATH_MAX];
        ssize_t n;

        if (fd < 0)
                return NULL;
        (void)snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
        n = readlink(link, path, sizeof(path));
        return n < 0 ? NULL : strndup(path, (size_t)n);
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
        /* Relative names have been resolved. */
        return chdir("/") < 0 ? lkg_fail(err, EX_OSERR, errno, "chdir /") : 0;
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
static int check_directories(struct lkg_supervisor *s, struct lkg_error *err)
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

/* The first entry that belongs neither to root nor to the engine. Return: 1 with @name; 0: none; -errno. */
static int foreign_entry(int fd, const struct lkg_settings *settings, char name[static NAME_MAX + 1])
{
        LKG_CLEANUP(lkg_dir_closep) DIR *dir = lkg_dir_open(fd, ".");
        const struct dirent *entry;
        struct stat st;

        if (!dir)
                return -errno;
        while ((entry = lkg_dir_next(dir, NULL))) {
                if (fstatat(fd, entry->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0 ||
                    lkg_engine_owns(fd, st.st_uid, settings))
                        continue;
                (void)snprintf(name, NAME_MAX + 1, "%s", entry->d_name);
                return 1;
        }
        return 0;
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

/* What its holder wrote. Return: the pid; 0 if there is none. */
static int lock_owner(int fd, char mount_point[static PATH_MAX])
{
        char text[PATH_MAX + 16] = "", *rest;
        long pid;

        if (pread(fd, text, sizeof(text) - 1, 0) <= 0)
                return 0;
        pid = strtol(text, &rest, 10);
        if (pid <= 0 || pid > INT_MAX || *rest != ' ')
                return 0;
        rest[strcspn(rest, "\n")] = '\0';
        (void)snprintf(mount_point, PATH_MAX, "%s", rest + 1);
        return (int)pid;
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
                unsigned device[2];
                unsigned long inode;
                int pid;

                if (sscanf(line, "%*d: FLOCK %*s %*s %d %x:%x:%lu", &pid, &device[0], &device[1], &inode) ==
                            4 &&
                    inode == st.st_ino && makedev(device[0], device[1]) == st.st_dev)
                        return pid > 0 ? pid : 0;
        }
        return 0;
}

/*
 * A helper may hold the lock of a dead lkgfsd: a child that was forked just before its death, for the short
 * time until execve(2); or a compromised one that took it.
 * Return: whether to try again.
 */
static bool owner_is_gone(int fd, int owner, unsigned n_tries)
{
        LKG_CLEANUP(lkg_closep) int pidfd = owner > 0 ? pidfd_open(owner, 0) : -EBADF;

        if (n_tries > LOCK_TRIES || owner == 0 || (pidfd >= 0 && !lkg_wait_pidfd(pidfd, 0)))
                return false;
        if (n_tries == LOCK_TRIES)
                return lkg_end_unrecorded(lock_holder(fd));
        (void)poll(NULL, 0, LOCK_PAUSE_MS);
        return true;
}

static int locked_by_other(int owner, const char *mount_point, const char *dir, const char *what,
                           struct lkg_error *err)
{
        if (owner > 0)
                return lkg_fail(
                        err, EX_UNAVAILABLE, 0,
                        "another lkgfsd (pid %d) already serves %s with this %s (%s/lock is locked).", owner,
                        mount_point, what, dir);
        return lkg_fail(err, EX_UNAVAILABLE, 0, "another lkgfsd already uses this %s (%s/lock is locked).",
                        what, dir);
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

/* The engine may write to both directories, and must not prevent the next start: what is not a file is put aside. */
static int open_lock_file(int dirfd, int flags)
{
        for (unsigned i = 0; i < 2; i++) {
                LKG_CLEANUP(lkg_closep)
                int fd = openat(dirfd, "lock", flags | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC, 0600);
                struct stat st;
                int r;

                if (fd < 0 && errno != ELOOP && errno != EISDIR && errno != ENXIO)
                        return -errno;
                if (fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode))
                        return lkg_lift_fd(LKG_STEAL_FD(fd));
                r = lkg_put_aside(dirfd, "lock");
                if (r < 0)
                        return r;
        }
        return -EAGAIN;
}

/*
 * Lock the file `lock` of @dirfd, or report its holder. A read-only file system can be locked, too: its state is used.
 * @what: "state directory", for a message
 * @ret:  the descriptor that holds it; unchanged if the file system is read-only and there is no such file
 */
static int take_lock(const struct lkg_supervisor *s, int dirfd, const char *dir, const char *what, int *ret,
                     struct lkg_error *err)
{
        LKG_CLEANUP(lkg_closep) int fd = -EBADF;
        char mount_point[PATH_MAX];
        bool read_only = false;

        for (unsigned n_tries = 0;; n_tries++) {
                int owner;

                fd = open_lock_file(dirfd, O_RDWR | O_CREAT);
                read_only = fd == -EROFS;
                if (read_only)
                        fd = open_lock_file(dirfd, O_RDONLY);
                if (fd == -ENOENT)
                        return 0; /* never used and not writable: two lkgfsd cannot interfere here */
                if (fd < 0)
                        return lkg_fail(err, EX_IOERR, -fd, "open %s/lock", dir);
                if (flock(fd, LOCK_EX | LOCK_NB) == 0) {
                        if (still_named(fd, dirfd, "lock"))
                                break;
                } else if (errno != EWOULDBLOCK) {
                        return lkg_fail(err, EX_IOERR, errno, "lock %s/lock", dir);
                } else {
                        owner = lock_owner(fd, mount_point);
                        if (!owner_is_gone(fd, owner, n_tries))
                                return locked_by_other(owner, mount_point, dir, what, err);
                }
                fd = lkg_close(fd);
        }
        /* For the error message of another lkgfsd only. */
        if (!read_only &&
            (ftruncate(fd, 0) < 0 || dprintf(fd, "%d %s\n", (int)getpid(), s->mount_point) < 0))
                return lkg_fail(err, EX_IOERR, errno, "write %s/lock", dir);
        *ret = LKG_STEAL_FD(fd);
        return 0;
}

/* ---- directories ---- */

static int lock_directories(struct lkg_supervisor *s, struct lkg_error *err)
{
        const struct lkg_settings *settings = s->settings;
        bool made_state = access(settings->state_dir, F_OK) < 0;
        int r = 0;

        s->dirs.made_runtime = access(settings->runtime_dir, F_OK) < 0;
        if (asprintf(&s->dirs.private_path, "%s/" LKG_PRIVATE_DIR, settings->runtime_dir) < 0) {
                s->dirs.private_path = NULL;
                return lkg_fail(err, EX_OSERR, ENOMEM, "runtime directory");
        }
        const struct {
                const char *setting, *path;
                const struct lkg_settings *owners; /* NULL: root only */
                mode_t mode;
                int *fd, *lock;
                const char *what;
        } rows[] = {
                { "stateDir", settings->state_dir, settings, 0700, &s->dirs.state, &s->dirs.state_lock,
                  "state directory" },
                { "runtimeDir", settings->runtime_dir, NULL, 0755, &s->dirs.records, NULL, NULL },
                { "runtimeDir", s->dirs.private_path, settings, 0700, &s->dirs.runtime,
                  &s->dirs.runtime_lock, "runtime directory" },
        };

        for (size_t i = 0; r == 0 && i < LKG_ARRAY_SIZE(rows); i++)
                r = open_directory(rows[i].owners, rows[i].setting, rows[i].path, rows[i].mode, rows[i].fd,
                                   err);
        if (r == 0 && made_state)
                sync_name(s->dirs.state);
        for (size_t i = 0; r == 0 && i < LKG_ARRAY_SIZE(rows); i++)
                if (rows[i].lock)
                        r = take_lock(s, *rows[i].fd, rows[i].path, rows[i].what, rows[i].lock, err);
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
        LKG_CLEANUP(lkg_dir_closep) DIR *dir = lkg_dir_open(dirfd, ".");
        const struct dirent *entry;

        while (dir && (entry = lkg_dir_next(dir, NULL))) {
                int child;

                if (unlinkat(dirfd, entry->d_name, 0) == 0 || (errno != EISDIR && errno != EPERM))
                        continue;
                child = openat(dirfd, entry->d_name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
                if (child >= 0 && depth > 0)
                        empty_directory(child, depth - 1);
                lkg_close(child);
                (void)unlinkat(dirfd, entry->d_name, AT_REMOVEDIR);
        }
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
        static const char self[] = "/proc/self/exe", folder[] = "/fs/supervisor";
        char exe[PATH_MAX] = "", *tail;
        struct stat st;

        if (readlink(self, exe, sizeof(exe) - 1) < 0)
                return lkg_fail(err, EX_UNAVAILABLE, errno, "/proc is needed: readlink %s", self);
        if (stat(self, &st) < 0)
                return lkg_fail(err, EX_UNAVAILABLE, errno, "stat %s", self);
        tail = strrchr(exe, '/');
        if (tail)
                *tail = '\0';
        tail = strlen(exe) > strlen(folder) ? exe + strlen(exe) - strlen(folder) : exe;
        if (strcmp(tail, folder) == 0)
                *tail = '\0'; /* the build folder */
        else
                *exe = '\0';
        for (size_t i = 0; i < LKG_ARRAY_SIZE(programs); i++) {
                char **path = &s->programs[i];

                if (*exe && asprintf(path, "%s/%s/%s", exe, programs[i].folder, programs[i].name) < 0)
                        *path = NULL;
                if (*path && trusted_sibling(*path, &st))
                        continue;
                free(*path);
                if (asprintf(path, "%s/%s", LKG_LIBEXECDIR, programs[i].name) < 0)
                        *path = NULL;
                if (!*path || access(*path, X_OK) < 0)
                        return lkg_fail(err, EX_UNAVAILABLE, errno, "the program %s belongs to lkgfsd: %s",
                                        programs[i].name, *path ? *path : "");
        }
        for (size_t i = 0; i < LKG_ARRAY_SIZE(programs); i++) {
                LKG_CLEANUP(lkg_freep) char *path = lkg_copy(s->programs[i]);

                *strrchr(path, '/') = '\0';
                s->dirs.programs[i] = lkg_lift_fd(open(path, O_PATH | O_DIRECTORY | O_CLOEXEC));
                if (s->dirs.programs[i] < 0)
                        return lkg_fail(err, EX_UNAVAILABLE, errno, "open '%s'", path);
        }
        return 0;
}

/* ---- all ---- */

/* Only the default configuration file may be missing, not one that was named. */
static int choose_config(struct lkg_supervisor *s, struct lkg_error *err)
{
        const char *path = s->options->config;
        LKG_CLEANUP(lkg_freep) char *cwd = path && path[0] != '/' ? getcwd(NULL, 0) : NULL;

        if (!path)
                return 0;
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
static int change_namespace(struct lkg_supervisor *s, struct lkg_error *err)
{
        const char *path = s->options->mount_namespace;
        LKG_CLEANUP(lkg_closep) int ours = path ? open("/proc/self/ns/mnt", O_RDONLY | O_CLOEXEC) : -EBADF;
        LKG_CLEANUP(lkg_closep) int there = path ? open(path, O_RDONLY | O_CLOEXEC) : -EBADF;
        int lifted;

        if (!path)
                return 0;
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
        static int (*const checks[])(struct lkg_supervisor * s, struct lkg_error * err) = {
                check_privilege,    change_namespace,  choose_config,  find_programs,
                choose_mount_point, lkg_settings_read, resolve_source, check_directories,
        };
        int r = 0;

        for (size_t i = 0; r == 0 && i < LKG_ARRAY_SIZE(checks); i++)
                r = checks[i](s, err);
        if (r != 0)
                return r;
        return s->options->fake ? lkg_preflight_occupied(s, err) : lock_directories(s, err);
}
