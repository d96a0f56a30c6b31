/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files: open files of other users without trusting them, and write our own files atomically.
 *
 * Trust (docs/specification.md 3.1): a path without symlinks needs no check, because the owner of the
 * directory decides. If it contains a symlink, the final file and every directory of the path must be owned
 * by root and not writable by others, because the author of the link chooses what root reads.
 */
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <linux/openat2.h>
#include <poll.h>
#include <sys/syscall.h>

#include <lkg/file.h>

#define LINKS_MAX 40  /* as the kernel's MAXSYMLINKS */
#define DEPTH_MAX 128 /* directories of a path within bounds: LKG_WALK_DEPTH_MAX plus links */

static int open_resolved(int dirfd, const char *path, int flags, uint64_t resolve)
{
        struct open_how how = {
                .flags = (uint64_t)(flags | O_CLOEXEC),
                .resolve = RESOLVE_NO_MAGICLINKS | resolve,
        };
        long fd = syscall(SYS_openat2, dirfd, path, &how, sizeof(how));

        return fd < 0 ? -errno : (int)fd;
}

const char *lkg_path_below(const char *path, const char *top)
{
        size_t n = strlen(top);

        if (*path != '/')
                return path;
        while (n > 0 && top[n - 1] == '/')
                n--;
        if (strncmp(path, top, n) != 0 || path[n] != '/')
                return NULL;
        path += n + strspn(path + n, "/");
        return *path ? path : NULL;
}

bool lkg_path_exists(int dirfd, const char *path)
{
        return faccessat(dirfd, path, F_OK, AT_EACCESS) == 0;
}

static bool root_alone; /* set before threads start */

void lkg_trust_root_alone(void)
{
        root_alone = true;
}

bool lkg_is_trusted_user(uid_t uid)
{
        return uid == 0 || (!root_alone && uid == geteuid());
}

static bool trusted_owner(const struct stat *st, bool directory)
{
        if (!lkg_is_trusted_user(st->st_uid))
                return false;
        if (!(st->st_mode & (S_IWGRP | S_IWOTH)))
                return true;
        /* In a sticky directory other users cannot replace root's entries (/tmp itself). */
        return directory && (st->st_mode & S_ISVTX);
}

/* Reports its real name: @path may go through links. */
static int untrusted_directory(struct lkg_error *err, const char *path, int dir, const struct stat *st)
{
        char proc[64], name[PATH_MAX];
        ssize_t n;

        (void)snprintf(proc, sizeof(proc), "/proc/self/fd/%d", dir);
        n = readlink(proc, name, sizeof(name) - 1);
        name[n < 0 ? 0 : n] = '\0';
        return lkg_error_set(err, -EPERM, NULL,
                             "%s: the way leads through a directory that is not owned by root or is "
                             "writable by others: %s (user %u, mode %04o).",
                             path, n < 0 ? "it" : name, (unsigned)st->st_uid, (unsigned)st->st_mode & 07777);
}

static int untrusted(struct lkg_error *err, const char *path, const char *what, bool strict)
{
        if (strict)
                return lkg_error_set(
                        err, -EPERM, NULL,
                        "%s: the way leads through %s that is not owned by root or is writable by others.",
                        path, what);
        return lkg_error_set(err, -ELOOP, NULL,
                             "%s: a symlink leads through %s that is not owned by root or is writable by "
                             "others; use a plain file, or give the whole way to root.",
                             path, what);
}

/*
 * The state of a walk through a path with symlinks: the current directory and the rest of the path. Within
 * bounds, `..` returns to the directory that we came from, even if directories are renamed meanwhile, and
 * never leaves the root.
 */
struct path_walk {
        int dir;                         /* O_PATH */
        bool strict;                     /* check owners even without a link */
        const struct lkg_bounds *bounds; /* NULL = anywhere */
        int above[DEPTH_MAX];            /* within bounds: the directories that lead to dir, O_PATH */
        unsigned depth;
        char rest[PATH_MAX];
        unsigned n_links;
};

static void walk_end(struct path_walk *w)
{
        lkg_close(w->dir);
        while (w->depth > 0)
                lkg_close(w->above[--w->depth]);
}

static int walk_check_dir(struct path_walk *w, const char *path, struct lkg_error *err)
{
        struct stat st;

        if (fstat(w->dir, &st) < 0)
                return lkg_error_set(err, -errno, NULL, "%s", path);
        if (trusted_owner(&st, true))
                return 0;
        return w->strict ? untrusted_directory(err, path, w->dir, &st)
                         : untrusted(err, path, "a directory", false);
}

/* Takes over @fd. */
static int walk_enter(struct path_walk *w, int fd, const char *path, struct lkg_error *err)
{
        if (w->bounds && w->depth == DEPTH_MAX) {
                lkg_close(fd);
                return lkg_error_set(err, -ELOOP, NULL, "%s: the way is deeper than %u directories.", path,
                                     DEPTH_MAX);
        }
        if (w->bounds)
                w->above[w->depth++] = w->dir;
        else
                lkg_close(w->dir);
        w->dir = fd;
        return 0;
}

static int leads_outside(const struct path_walk *w, const char *path, struct lkg_error *err)
{
        return lkg_error_set(err, -EXDEV, NULL,
                             "%s: a symlink leads out of %s; use a plain file or a link that stays beneath "
                             "it, or set layerLinks: host.",
                             path, w->bounds->path);
}

/* Within bounds: go where `..` or the start of an absolute path leads. */
static int walk_back(struct path_walk *w, bool to_root, const char *path, struct lkg_error *err)
{
        if (w->depth == 0 && !to_root)
                return leads_outside(w, path, err);
        while (w->depth > 0) {
                lkg_close(w->dir);
                w->dir = w->above[--w->depth];
                if (!to_root)
                        break;
        }
        return 0;
}

/* An absolute target: continue with the text after the directory where it starts. */
static int walk_from_root(struct path_walk *w, const char **target, const char *path, struct lkg_error *err)
{
        int root;

        if (w->bounds) {
                *target = lkg_path_below(*target, w->bounds->path);
                return *target ? walk_back(w, true, path, err) : leads_outside(w, path, err);
        }
        root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
        return root < 0 ? lkg_error_set(err, -errno, NULL, "%s", path) : walk_enter(w, root, path, err);
}

static int walk_follow(struct path_walk *w, int link, const char *path, struct lkg_error *err)
{
        char text[PATH_MAX], next[PATH_MAX];
        ssize_t n = readlinkat(link, "", text, sizeof(text) - 1);
        const char *target = text;
        int k, r;

        if (n < 0)
                return lkg_error_set(err, -errno, NULL, "%s", path);
        text[n] = '\0';
        if (++w->n_links > LINKS_MAX)
                return lkg_error_set(err, -ELOOP, NULL, "%s: too many symlinks.", path);
        r = *target == '/' ? walk_from_root(w, &target, path, err) : 0;
        if (r < 0)
                return r;
        k = snprintf(next, sizeof(next), "%s%s%s", target, *w->rest ? "/" : "", w->rest);
        if (k < 0 || (size_t)k >= sizeof(next))
                return lkg_error_set(err, -ENAMETOOLONG, NULL, "%s", path);
        memcpy(w->rest, next, (size_t)k + 1);
        return 0;
}

/*
 * Handle one component.
 * Return: 1: it was the last one, and @ret_fd is an O_PATH descriptor of it; 0: continue.
 */
static int walk_step(struct path_walk *w, const char *path, int *ret_fd, struct lkg_error *err)
{
        char name[NAME_MAX + 1];
        size_t skip = strspn(w->rest, "/"), n = strcspn(w->rest + skip, "/");
        bool last;
        struct stat st;
        int fd, r;

        if (n > NAME_MAX)
                return lkg_error_set(err, -ENAMETOOLONG, NULL, "%s", path);
        memcpy(name, w->rest + skip, n);
        name[n] = '\0';
        last = w->rest[skip + n + strspn(w->rest + skip + n, "/")] == '\0';
        memmove(w->rest, w->rest + skip + n, strlen(w->rest + skip + n) + 1);
        if (w->bounds && strcmp(name, "..") == 0) {
                r = walk_back(w, false, path, err);
                if (r < 0 || !last)
                        return r;
                name[0] = '\0';
                n = 0;
        }
        fd = openat(w->dir, n ? name : ".", O_PATH | O_NOFOLLOW | O_CLOEXEC);
        if (fd < 0 || fstat(fd, &st) < 0) {
                r = -errno;
                lkg_close(fd);
                return lkg_error_set(err, r, NULL, "%s", path);
        }
        if (S_ISLNK(st.st_mode)) {
                r = trusted_owner(&(struct stat){ .st_uid = st.st_uid }, false)
                            ? walk_follow(w, fd, path, err)
                            : untrusted(err, path, "a link", w->strict);

                lkg_close(fd);
                return r;
        }
        if (last) {
                *ret_fd = fd;
                return 1;
        }
        if (!S_ISDIR(st.st_mode)) {
                lkg_close(fd);
                return lkg_error_set(err, -ENOTDIR, NULL, "%s", path);
        }
        if (w->bounds && (n == 0 || strcmp(name, ".") == 0)) { /* the current directory */
                lkg_close(fd);
                return 0;
        }
        r = walk_enter(w, fd, path, err);
        return r < 0 ? r : walk_check_dir(w, path, err);
}

/*
 * The slow way, only for paths with symlinks and for security-relevant ones: checks every step, except the
 * owner of the last component. @path: for messages.
 * Return: O_PATH descriptor of the last component; -errno.
 */
static int walk_to(int dirfd, const char *path, const char *way, bool strict,
                   const struct lkg_bounds *bounds, struct lkg_error *err)
{
        struct path_walk w = { .dir = -EBADF, .strict = strict, .bounds = bounds };
        int r, fd = -EBADF;

        if (strlen(way) >= sizeof(w.rest))
                return lkg_error_set(err, -ENAMETOOLONG, NULL, "%s", path);
        strcpy(w.rest, way);
        w.dir = way[0] == '/' ? open("/", O_PATH | O_DIRECTORY | O_CLOEXEC)
                              : openat(bounds ? bounds->root : dirfd, ".", O_PATH | O_DIRECTORY | O_CLOEXEC);
        if (w.dir < 0)
                return lkg_error_set(err, -errno, NULL, "%s", path);
        r = walk_check_dir(&w, path, err);
        while (r == 0)
                r = walk_step(&w, path, &fd, err);
        walk_end(&w);
        return r < 0 ? r : fd;
}

/* The same for a file, whose owner is checked, too. Return: O_PATH descriptor; -errno. */
static int walk_to_file(int dirfd, const char *path, const char *way, bool strict,
                        const struct lkg_bounds *bounds, struct lkg_error *err)
{
        LKG_CLEANUP(lkg_closep) int fd = walk_to(dirfd, path, way, strict, bounds, err);
        struct stat st;

        if (fd < 0 || (fstat(fd, &st) == 0 && trusted_owner(&st, false)))
                return LKG_STEAL_FD(fd);
        return strict ? lkg_error_set(err, -EPERM, NULL, "%s is not owned by root or is writable by others.",
                                      path)
                      : untrusted(err, path, "to a file", strict);
}

static const char *file_type(mode_t mode)
{
        switch (mode & S_IFMT) {
        case S_IFDIR:
                return "a directory";
        case S_IFIFO:
                return "a FIFO";
        case S_IFSOCK:
                return "a socket";
        case S_IFCHR:
        case S_IFBLK:
                return "a device";
        case S_IFLNK:
                return "a symlink";
        default:
                return "not a file";
        }
}

/*
 * Opens the file of the O_PATH descriptor @fd, which is taken over: nobody can put another one in its place any more. Opening a
 * device or a FIFO for reading may have side effects.
 */
static int open_regular(int fd, const char *path, struct stat *ret_st, struct lkg_error *err)
{
        LKG_CLEANUP(lkg_closep) int owned = fd;
        char proc[64];
        struct stat st;

        if (fstat(owned, &st) < 0)
                return lkg_error_set(err, -errno, NULL, "%s", path);
        if (!S_ISREG(st.st_mode))
                return lkg_error_set(err, -EINVAL, NULL, "%s is %s; a regular file is wanted.", path,
                                     file_type(st.st_mode));
        (void)snprintf(proc, sizeof(proc), "/proc/self/fd/%d", owned);
        fd = open(proc, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
        if (fd < 0)
                return lkg_error_set(err, -errno, NULL, "%s", path);
        if (ret_st)
                *ret_st = st;
        return fd;
}

int lkg_open_beneath(const struct lkg_bounds *bounds, int dirfd, const char *path, const char *way,
                     struct stat *ret_st, struct lkg_error *err)
{
        int fd = open_resolved(dirfd, path, O_PATH, RESOLVE_NO_SYMLINKS);

        if (fd == -ELOOP)
                fd = walk_to_file(dirfd, path, way, /* strict= */ false, bounds, err);
        else if (fd < 0)
                return lkg_error_set(err, fd, NULL, "%s", path);
        return fd < 0 ? fd : open_regular(fd, path, ret_st, err);
}

int lkg_open_trusted(int dirfd, const char *path, struct stat *ret_st, struct lkg_error *err)
{
        return lkg_open_beneath(NULL, dirfd, path, path, ret_st, err);
}

int lkg_open_directory(const struct lkg_bounds *bounds, const char *way, bool follow)
{
        return open_resolved(bounds->root, way, O_PATH | O_DIRECTORY | (follow ? 0 : O_NOFOLLOW),
                             RESOLVE_BENEATH);
}

int lkg_open_plain(int dirfd, const char *name)
{
        LKG_CLEANUP(lkg_closep)
        int fd = openat(dirfd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
        struct stat st;

        if (fd < 0 || fstat(fd, &st) < 0)
                return -errno;
        return S_ISREG(st.st_mode) ? LKG_STEAL_FD(fd) : -EINVAL;
}

int lkg_open_plain_directory(int dirfd, const char *name)
{
        int fd = openat(dirfd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

        return fd < 0 ? -errno : fd;
}

int lkg_open_owned(const char *path, struct stat *ret_st, struct lkg_error *err)
{
        int fd;

        if (path[0] != '/')
                return lkg_error_set(err, -EINVAL, NULL, "%s is not an absolute path.", path);
        fd = walk_to_file(AT_FDCWD, path, path, /* strict= */ true, NULL, err);
        return fd < 0 ? fd : open_regular(fd, path, ret_st, err);
}

/* @path without its last component. Return: new memory; NULL: out of memory. */
static char *without_last_part(const char *path, size_t *ret_last)
{
        size_t n = strlen(path);

        while (n > 1 && path[n - 1] == '/')
                n--;
        while (n > 1 && path[n - 1] != '/')
                n--;
        *ret_last = n;
        return strndup(path, n);
}

int lkg_make_owned_way(const char *path, mode_t mode, struct lkg_error *err)
{
        LKG_CLEANUP(lkg_closep) int fd = -EBADF;
        LKG_CLEANUP(lkg_closep) int parent = -EBADF;
        LKG_CLEANUP(lkg_freep) char *above = NULL;
        size_t last;
        int copy;

        if (path[0] != '/')
                return lkg_error_set(err, -EINVAL, NULL, "%s is not an absolute path.", path);
        fd = walk_to(AT_FDCWD, path, path, /* strict= */ true, NULL, err);
        if (fd == -ENOENT && path[strspn(path, "/")]) {
                above = without_last_part(path, &last);
                if (!above)
                        return lkg_error_set(err, lkg_lack(), NULL, "%s", path);
                parent = lkg_make_owned_way(above, mode, err);
                if (parent < 0)
                        return parent;
                if (mkdirat(parent, path + last, mode) < 0 && errno != EEXIST)
                        return lkg_error_set(err, -errno, NULL, "create directory %s", path);
                fd = walk_to(AT_FDCWD, path, path, /* strict= */ true, NULL, err);
        }
        if (fd < 0)
                return fd;
        copy = openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        return copy < 0 ? lkg_error_set(err, -errno, NULL, "open directory %s", path) : copy;
}

int lkg_judge_program(const char *path, struct stat *ret_st, struct lkg_error *err)
{
        LKG_CLEANUP(lkg_closep) int fd = -EBADF;
        struct stat st;

        fd = lkg_open_owned(path, &st, err);
        if (fd < 0)
                return fd;
        if (!(st.st_mode & 0111))
                return lkg_error_set(err, -EACCES, NULL, "%s is not executable.", path);
        if (ret_st)
                *ret_st = st;
        return 0;
}

int lkg_read_file(int fd, size_t max, char **ret, size_t *ret_size, struct lkg_error *err)
{
        LKG_CLEANUP(lkg_freep) char *data = NULL;
        size_t size = 0, allocated = 0;
        struct stat st;

        if (fstat(fd, &st) < 0)
                return lkg_error_set(err, -errno, NULL, "fstat");
        if (st.st_size > 0 && (uint64_t)st.st_size > max)
                return lkg_error_set(err, -EFBIG, NULL, "the file has %lld bytes, the limit is %zu.",
                                     (long long)st.st_size, max);
        while (true) {
                ssize_t n;

                if (allocated - size < 2) {
                        size_t want =
                                allocated ? 2 * allocated : (size_t)(st.st_size > 0 ? st.st_size : 0) + 512;
                        char *grown = realloc(data, want);

                        if (!grown)
                                return lkg_error_set(err, lkg_lack(), NULL, "read");
                        data = grown;
                        allocated = want;
                }
                n = read(fd, data + size, allocated - size - 1);
                if (n < 0 && errno == EINTR)
                        continue;
                if (n < 0)
                        return lkg_error_set(err, -errno, NULL, "read");
                size += (size_t)n;
                if (size > max)
                        return lkg_error_set(err, -EFBIG, NULL, "the file has more than %zu bytes.", max);
                if (n == 0)
                        break;
        }
        data[size] = '\0';
        *ret = LKG_STEAL(data);
        if (ret_size)
                *ret_size = size;
        return 0;
}

bool lkg_wait_readable(int fd, uint64_t deadline_ns)
{
        uint64_t now_ns;

        while ((now_ns = lkg_boottime_ns()) <= deadline_ns) {
                struct pollfd p = { .fd = fd, .events = POLLIN };
                int r = poll(&p, 1,
                             (int)((deadline_ns - now_ns + LKG_NSEC_PER_MSEC - 1) / LKG_NSEC_PER_MSEC));

                if (r > 0)
                        return true;
                if (r < 0 && errno != EINTR)
                        return false;
        }
        return false;
}

int lkg_write_all(int fd, const void *bytes, size_t size)
{
        const char *data = bytes;

        while (size > 0) {
                ssize_t n = write(fd, data, size);

                if (n < 0 && errno == EINTR)
                        continue;
                if (n < 0)
                        return -errno;
                data += n;
                size -= (size_t)n;
        }
        return 0;
}

int lkg_sync_dir(int dirfd)
{
        /* The caller's descriptor may be O_PATH, which cannot be fsynced. */
        LKG_CLEANUP(lkg_closep) int fd = openat(dirfd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

        if (fd < 0 || fsync(fd) < 0)
                return -errno;
        return 0;
}

bool lkg_is_tmp_name(const char *name)
{
        size_t size = strlen(name), suffix = strlen(LKG_TMP_SUFFIX);

        return name[0] == '.' && size > suffix && strcmp(name + size - suffix, LKG_TMP_SUFFIX) == 0;
}

bool lkg_is_dropin_name(const char *name)
{
        size_t n = strlen(name);

        return name[0] != '.' && n > 5 && strcmp(name + n - 5, ".conf") == 0;
}

int lkg_create_anew(int dirfd, const char *name, mode_t mode)
{
        const int flags = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;
        int fd = openat(dirfd, name, flags, mode);

        if (fd < 0 && errno == EEXIST && lkg_clear_name(dirfd, name) == 0)
                fd = openat(dirfd, name, flags, mode);
        return fd < 0 ? -errno : fd;
}

int lkg_write_new(int dirfd, const char *name, const void *data, size_t size, bool durable,
                  struct lkg_error *err)
{
        LKG_CLEANUP(lkg_closep) int fd = lkg_create_anew(dirfd, name, 0600);
        int r = fd < 0 ? fd : lkg_write_all(fd, data, size);

        if (r >= 0 && durable && fsync(fd) < 0)
                r = -errno;
        if (fd >= 0 && r < 0)
                (void)unlinkat(dirfd, name, 0);
        return r < 0 ? lkg_error_set(err, r, NULL, "write %s", name) : 0;
}

/*
 * On the descriptor, before there is a name that others know. A umask may have cleared some bits; a change of the owner clears set-id bits.
 * The engine may not call fchmod(2), but does not need it for its files.
 */
static int set_attributes(int fd, const struct lkg_new_file *as)
{
        struct stat st;

        if (as->owned && fchown(fd, as->uid, as->gid) < 0)
                return -errno;
        if (fstat(fd, &st) < 0)
                return -errno;
        return (st.st_mode & 07777) == as->mode || fchmod(fd, as->mode) == 0 ? 0 : -errno;
}

int lkg_write_file_as(int dirfd, const char *name, const void *data, size_t size,
                      const struct lkg_new_file *as, struct lkg_error *err)
{
        LKG_CLEANUP(lkg_closep) int fd = -EBADF;
        char tmp[PATH_MAX];
        const char *base = strrchr(name, '/');
        int dir_length = base ? (int)(base - name) + 1 : 0;
        int r;

        base = base ? base + 1 : name;
        r = snprintf(tmp, sizeof(tmp), "%.*s.%.200s.%d" LKG_TMP_SUFFIX, dir_length, name, base,
                     (int)getpid());
        if (r < 0 || (size_t)r >= sizeof(tmp))
                return lkg_error_set(err, -ENAMETOOLONG, NULL, "%s", name);
        fd = lkg_create_anew(dirfd, tmp, as->mode & 0700); /* a predecessor may have had the same pid */
        if (fd < 0)
                return lkg_error_set(err, fd, NULL, "create %s", tmp);
        r = lkg_write_all(fd, data, size);
        if (r >= 0)
                r = set_attributes(fd, as);
        if (r >= 0 && as->durable && fsync(fd) < 0)
                r = -errno;
        if (r >= 0 && renameat2(dirfd, tmp, dirfd, name, as->only_new ? RENAME_NOREPLACE : 0) < 0)
                r = -errno;
        if (r < 0) {
                (void)unlinkat(dirfd, tmp, 0);
                return lkg_error_set(err, r, NULL, "write %s", name);
        }
        if (as->durable) {
                LKG_CLEANUP(lkg_closep) int parent = -EBADF;

                if (dir_length > 0) {
                        tmp[dir_length] = '\0';
                        parent = openat(dirfd, tmp, O_PATH | O_DIRECTORY | O_CLOEXEC);
                }
                r = lkg_sync_dir(parent >= 0 ? parent : dirfd);
                if (r < 0)
                        return lkg_error_set(err, r, NULL, "fsync the directory of %s", name);
        }
        return 0;
}

int lkg_write_file_atomic(int dirfd, const char *name, const void *data, size_t size, mode_t mode,
                          bool durable, struct lkg_error *err)
{
        const struct lkg_new_file as = { .mode = mode, .durable = durable };

        return lkg_write_file_as(dirfd, name, data, size, &as, err);
}

DIR *lkg_dir_open(int dirfd, const char *name)
{
        int fd = lkg_open_plain_directory(dirfd, name);
        DIR *dir = fd < 0 ? NULL : fdopendir(fd);

        if (!dir)
                (void)lkg_close(fd);
        return dir;
}

const struct dirent *lkg_dir_next(DIR *dir, int *ret_error)
{
        const struct dirent *entry;

        do {
                errno = 0;
                entry = readdir(dir);
        } while (entry && (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0));
        if (ret_error)
                *ret_error = entry ? 0 : -errno;
        return entry;
}

int lkg_mkdir_p(int dirfd, const char *path, mode_t mode, struct lkg_error *err)
{
        char part[PATH_MAX];
        size_t length = strlen(path);

        if (length >= sizeof(part))
                return lkg_error_set(err, -ENAMETOOLONG, NULL, "%s", path);
        for (size_t i = 1; i <= length; i++) {
                if (path[i] != '/' && path[i] != '\0')
                        continue;
                memcpy(part, path, i);
                part[i] = '\0';
                if (mkdirat(dirfd, part, mode) < 0 && errno != EEXIST)
                        return lkg_error_set(err, -errno, NULL, "create directory %s", part);
        }
        return 0;
}

bool lkg_bare_name_ok(const char *name)
{
        return *name && strlen(name) <= NAME_MAX && !strchr(name, '/') && strcmp(name, ".") != 0 &&
               strcmp(name, "..") != 0;
}

void lkg_file_id_from_stat(const struct stat *st, struct lkg_file_id *ret)
{
        *ret = (struct lkg_file_id){
                .dev = st->st_dev,
                .ino = st->st_ino,
                .size = (uint64_t)st->st_size,
                .mtime_ns = lkg_timespec_ns(&st->st_mtim),
                .ctime_ns = lkg_timespec_ns(&st->st_ctim),
        };
}

int lkg_put_aside(int dirfd, const char *name)
{
        char aside[96];

        (void)snprintf(aside, sizeof(aside), ".%.32s.%" PRIu64 ".aside", name, lkg_boottime_ns());
        return renameat(dirfd, name, dirfd, aside) < 0 ? -errno : 0;
}

int lkg_clear_name(int dirfd, const char *name)
{
        if (unlinkat(dirfd, name, 0) == 0 || errno == ENOENT)
                return 0;
        return errno == EISDIR ? lkg_put_aside(dirfd, name) : -errno;
}

bool lkg_file_id_equal(const struct lkg_file_id *a, const struct lkg_file_id *b)
{
        /*
         * Timestamps have the granularity of a clock tick: a second write of the same size within one tick
         * keeps all five numbers. A cache by identity must read the file again while it is younger than that
         * (core/layers/stack.c).
         */
        return a->dev == b->dev && a->ino == b->ino && a->size == b->size && a->mtime_ns == b->mtime_ns &&
               a->ctime_ns == b->ctime_ns;
}
