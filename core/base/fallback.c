/* SPDX-License-Identifier: Apache-2.0 */
/* Fallback copies: see <lkg/publication.h>. */
#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>
#include <sys/xattr.h>

#include <lkg/publication.h>
#include <lkg/file.h>
#include <lkg/limits.h>

#define TMP_SUFFIX ".lkgfs-new"

/*
 * The path of a name below a directory descriptor (even O_PATH), for system calls that take no descriptor.
 */
static int inside(int dirfd, const char *name, char ret[static PATH_MAX])
{
        return snprintf(ret, PATH_MAX, "/proc/self/fd/%d/%s", dirfd, name) < PATH_MAX ? 0 : -ENAMETOOLONG;
}

static bool is_marked(int dirfd, const char *name)
{
        char path[PATH_MAX];

        return inside(dirfd, name, path) == 0 && lgetxattr(path, LKG_FALLBACK_XATTR, NULL, 0) >= 0;
}

/* From the start of the file, whatever its offset. */
static int digest(int fd, char ret[static LKG_SHA256_HEX])
{
        LKG_CLEANUP(lkg_closep) int again = -EBADF;
        LKG_CLEANUP(lkg_freep) char *data = NULL;
        char path[PATH_MAX];
        size_t size;
        int r;

        (void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
        again = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
        if (again < 0)
                return -errno;
        r = lkg_read_file(again, LKG_FALLBACK_BYTES_MAX, &data, &size, NULL);
        return r < 0 ? r : lkg_sha256_hex(data, size, ret);
}

bool lkg_fallback_is_copy(int fd)
{
        char noted[LKG_SHA256_HEX + 8], actual[LKG_SHA256_HEX];
        ssize_t n = fgetxattr(fd, LKG_FALLBACK_XATTR, noted, sizeof(noted));

        if (n < 0 && errno != ERANGE)
                return false;
        if (n != LKG_SHA256_HEX - 1 || digest(fd, actual) < 0)
                return true; /* if in doubt it is ours: a merged document must not be merged again */
        return memcmp(noted, actual, LKG_SHA256_HEX - 1) == 0;
}

bool lkg_fallback_is_ours(int source_fd, const char *name)
{
        LKG_CLEANUP(lkg_closep) int fd = -EBADF;
        struct stat st;

        if (!is_marked(source_fd, name))
                return false;
        fd = openat(source_fd, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
        if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
                return true;
        return lkg_fallback_is_copy(fd);
}

/* ---- writing ---- */

static int read_blob(int runtime_fd, const char *sha256, char **ret, size_t *ret_size)
{
        LKG_CLEANUP(lkg_closep) int dir = lkg_open_plain_directory(runtime_fd, LKG_PUBLICATION_BLOBS);

        return dir < 0 ? dir : lkg_publication_read_blob(dir, sha256, LKG_FALLBACK_BYTES_MAX, ret, ret_size);
}

struct copy {
        const struct lkg_fallback_file *file;
        const char *sha256, *data;
        size_t size;
};

/* Return: 0; 1: the mark could not be set; -errno. */
static int fill(int fd, const struct copy *copy)
{
        int r = lkg_write_all(fd, copy->data, copy->size);

        if (r < 0)
                return r;
        if (fchown(fd, copy->file->uid, copy->file->gid) < 0 || fchmod(fd, copy->file->mode) < 0)
                return -errno;
        return fsetxattr(fd, LKG_FALLBACK_XATTR, copy->sha256, LKG_SHA256_HEX - 1, 0) < 0 ? 1 : 0;
}

static bool up_to_date(int dirfd, const struct copy *copy)
{
        char noted[LKG_SHA256_HEX + 8], path[PATH_MAX];
        struct stat st;

        if (fstatat(dirfd, copy->file->name, &st, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISREG(st.st_mode) ||
            (uint64_t)st.st_size != copy->size || (st.st_mode & 07777) != copy->file->mode ||
            inside(dirfd, copy->file->name, path) < 0)
                return false;
        return lgetxattr(path, LKG_FALLBACK_XATTR, noted, sizeof(noted)) == LKG_SHA256_HEX - 1 &&
               memcmp(noted, copy->sha256, LKG_SHA256_HEX - 1) == 0;
}

/* @marked_only: without the mark the file could be used as a base, so then write none. */
static int write_copy(int dirfd, const struct copy *copy, bool marked_only)
{
        LKG_CLEANUP(lkg_closep) int fd = -EBADF;
        const char *name = copy->file->name;
        char tmp[NAME_MAX + 1];
        int r;

        if (up_to_date(dirfd, copy))
                return 0;
        if (snprintf(tmp, sizeof(tmp), ".%.200s%s", name, TMP_SUFFIX) >= (int)sizeof(tmp))
                return -ENAMETOOLONG;
        fd = lkg_create_anew(dirfd, tmp, 0600);
        if (fd < 0)
                return fd;
        r = fill(fd, copy);
        if (r == 1 && marked_only) {
                (void)unlinkat(dirfd, tmp, 0);
                return 0;
        }
        if (r >= 0 && renameat(dirfd, tmp, dirfd, name) < 0)
                r = -errno;
        if (r < 0)
                (void)unlinkat(dirfd, tmp, 0);
        return r < 0 ? r : 0;
}

/*
 * Under the view's name: only if there is no file, or one of our copies. A copy that was edited loses the
 * mark.
 */
static int write_in_view(int source_fd, const struct copy *copy)
{
        const char *name = copy->file->name;
        char path[PATH_MAX];
        struct stat st;

        if ((fstatat(source_fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0 && errno == ENOENT) ||
            lkg_fallback_is_ours(source_fd, name))
                return write_copy(source_fd, copy, /* marked_only= */ true);
        if (!is_marked(source_fd, name))
                return 0;
        return inside(source_fd, name, path) < 0 || lremovexattr(path, LKG_FALLBACK_XATTR) < 0 ? -errno : 0;
}

static int open_directory(int at, const char *name, mode_t mode)
{
        int fd;

        if (mkdirat(at, name, mode) < 0 && errno != EEXIST)
                return -errno;
        fd = openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        return fd < 0 ? -errno : fd;
}

/* @dir: where the copy always is; @view: where it is under the view's name, -EBADF = nowhere */
static int write_both(int dir, int view, int runtime_fd, const struct lkg_fallback_file *file,
                      const char *sha256)
{
        LKG_CLEANUP(lkg_freep) char *data = NULL;
        struct copy copy = { .file = file, .sha256 = sha256 };
        int r = read_blob(runtime_fd, sha256, &data, &copy.size);

        if (r < 0)
                return r;
        copy.data = data;
        r = write_copy(dir, &copy, /* marked_only= */ false);
        return r < 0 || view < 0 ? r : write_in_view(view, &copy);
}

int lkg_fallback_write(int source_fd, int runtime_fd, const struct lkg_fallback_file *file,
                       const char *sha256)
{
        LKG_CLEANUP(lkg_closep) int dir = open_directory(source_fd, LKG_FALLBACK_DIR, 0755);

        return dir < 0 ? dir : write_both(dir, source_fd, runtime_fd, file, sha256);
}

/* ---- static pods ---- */

static int load_publication(int runtime_fd, struct lkg_publication **ret)
{
        LKG_CLEANUP(lkg_closep) int fd = lkg_open_plain(runtime_fd, LKG_PUBLICATION_CURRENT);
        LKG_CLEANUP(lkg_freep) char *text = NULL;
        size_t size;
        int r = fd < 0 ? fd : lkg_read_file(fd, LKG_MANIFEST_BYTES_MAX, &text, &size, NULL);

        return r < 0 ? r : lkg_publication_parse(text, size, ret, NULL);
}

/* Under the view's name: a directory of our own, or none. */
static int open_in_view(int source_fd, const char *name, mode_t mode)
{
        char path[PATH_MAX];
        struct stat st;

        if (fstatat(source_fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0)
                return is_marked(source_fd, name) ? open_directory(source_fd, name, mode) : -EBADF;
        if (mkdirat(source_fd, name, mode) < 0)
                return -errno;
        if (inside(source_fd, name, path) < 0 || lsetxattr(path, LKG_FALLBACK_XATTR, "pods", 4, 0) < 0) {
                (void)unlinkat(source_fd, name, AT_REMOVEDIR);
                return -EBADF;
        }
        return open_directory(source_fd, name, mode);
}

/* Removes copies of pods that are not served any more. */
static int remove_others(int dirfd, const struct lkg_publication *publication, const char *dir,
                         bool only_ours)
{
        LKG_CLEANUP(lkg_dir_closep) DIR *list = lkg_dir_open(dirfd, ".");
        const struct dirent *entry;
        char path[PATH_MAX];
        int r = 0;

        if (!list)
                return -errno;
        while ((entry = lkg_dir_next(list, &r))) {
                (void)snprintf(path, sizeof(path), "%s/%s", dir, entry->d_name);
                if (lkg_publication_find(publication, path) ||
                    (only_ours && !lkg_fallback_is_ours(dirfd, entry->d_name)))
                        continue;
                if (unlinkat(dirfd, entry->d_name, 0) < 0 && errno != ENOENT)
                        return -errno;
        }
        return r;
}

int lkg_fallback_write_pods(int source_fd, int runtime_fd, const struct lkg_fallback_file *dir)
{
        LKG_CLEANUP(lkg_closep) int top = -EBADF, copies = -EBADF, view = -EBADF;
        struct lkg_publication *publication = NULL;
        mode_t mode = dir->mode | (dir->mode >> 2 & 0111);
        int r = load_publication(runtime_fd, &publication);

        if (r < 0)
                return r;
        if ((top = open_directory(source_fd, LKG_FALLBACK_DIR, 0755)) < 0)
                r = top;
        else if ((copies = open_directory(top, dir->name, mode)) < 0)
                r = copies;
        else
                view = open_in_view(source_fd, dir->name, mode);
        for (size_t i = 0; r >= 0 && i < publication->n_entries; i++) {
                const struct lkg_entry *entry = &publication->entries[i];
                const char *name = lkg_entry_name_in(entry, dir->name);
                const struct lkg_fallback_file file = { name, dir->uid, dir->gid, dir->mode };

                if (name)
                        r = write_both(copies, view, runtime_fd, &file, entry->sha256);
        }
        if (r >= 0)
                r = remove_others(copies, publication, dir->name, /* only_ours= */ false);
        if (r >= 0 && view >= 0)
                r = remove_others(view, publication, dir->name, /* only_ours= */ true);
        lkg_publication_free(publication);
        return r;
}

bool lkg_fallback_is_ours_dir(int source_fd, const char *name)
{
        return is_marked(source_fd, name);
}

int lkg_fallback_withdraw(int source_fd, const char *name)
{
        if (!lkg_fallback_is_ours(source_fd, name))
                return 0;
        return unlinkat(source_fd, name, 0) < 0 && errno != ENOENT ? -errno : 0;
}
