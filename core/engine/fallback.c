/* SPDX-License-Identifier: Apache-2.0 */
/* Copies for the day lkgfs is gone: see fallback.h. */
#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>
#include <sys/xattr.h>

#include <lkg/file.h>

#include "fallback.h"

#define TMP_SUFFIX ".lkgfs-new"

/* getxattr on a path below a directory descriptor; an O_PATH descriptor of the directory will do. */
static ssize_t get_attribute(int dirfd, const char *name, char *value, size_t size)
{
        char path[PATH_MAX];

        if (snprintf(path, sizeof(path), "/proc/self/fd/%d/%s", dirfd, name) >= (int)sizeof(path))
                return -1;
        return lgetxattr(path, LKG_FALLBACK_XATTR, value, size);
}

bool lkg_fallback_is_ours(int source_fd, const char *name)
{
        return get_attribute(source_fd, name, NULL, 0) >= 0;
}

static int read_copy(int dirfd, const char *name, char **ret, size_t *ret_size)
{
        LKG_CLEANUP(lkg_closep)
        int fd = openat(dirfd, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
        struct stat st;

        if (fd < 0)
                return -errno;
        if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
                return -EINVAL;
        return lkg_read_file(fd, 16u << 20, ret, ret_size, NULL);
}

static bool untouched(int dirfd, const char *name)
{
        LKG_CLEANUP(lkg_freep) char *data = NULL;
        char noted[LKG_SHA256_HEX + 8], actual[LKG_SHA256_HEX];
        ssize_t n = get_attribute(dirfd, name, noted, sizeof(noted));
        size_t size;

        if (n != LKG_SHA256_HEX - 1 || read_copy(dirfd, name, &data, &size) < 0 ||
            lkg_sha256_hex(data, size, actual) < 0)
                return true; /* when in doubt it is ours: a merged document as a base would be merged twice */
        return memcmp(noted, actual, LKG_SHA256_HEX - 1) == 0;
}

bool lkg_fallback_claim(int source_fd, const char *name, struct lkg_report *report)
{
        const struct lkg_where where = { .file = name };
        char path[PATH_MAX];

        if (!lkg_fallback_is_ours(source_fd, name))
                return false;
        if (untouched(source_fd, name))
                return true;
        if (snprintf(path, sizeof(path), "/proc/self/fd/%d/%s", source_fd, name) >= (int)sizeof(path) ||
            lremovexattr(path, LKG_FALLBACK_XATTR) < 0) {
                lkg_report_add(report, LKG_WARNING, 4014, &where,
                               "is a fallback copy that somebody has edited, and its mark cannot be "
                               "removed; it is not "
                               "read as a base (setfattr -x %s would make it one)",
                               LKG_FALLBACK_XATTR);
                return true;
        }
        return false;
}

/* Return: 0; 1 when the mark could not be set; -errno. */
static int fill(int fd, const struct lkg_config_component *c, const struct lkg_generation *g)
{
        size_t done = 0;

        while (done < g->document.size) {
                ssize_t n = write(fd, g->document.data + done, g->document.size - done);

                if (n < 0 && errno == EINTR)
                        continue;
                if (n < 0)
                        return -errno;
                done += (size_t)n;
        }
        /* Without capabilities only root's own files stay; then the owner may read at least what root may. */
        if ((c->uid != 0 || c->gid != 0) && fchown(fd, c->uid, c->gid) < 0 && errno != EPERM)
                return -errno;
        if (fchmod(fd, c->mode) < 0)
                return -errno;
        return fsetxattr(fd, LKG_FALLBACK_XATTR, g->sha256, LKG_SHA256_HEX - 1, 0) < 0 ? 1 : 0;
}

static bool up_to_date(int dirfd, const char *name, const struct lkg_config_component *c,
                       const struct lkg_generation *g)
{
        char noted[LKG_SHA256_HEX + 8];
        struct stat st;

        if (fstatat(dirfd, name, &st, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISREG(st.st_mode) ||
            (uint64_t)st.st_size != g->document.size || (st.st_mode & 07777) != c->mode)
                return false;
        return get_attribute(dirfd, name, noted, sizeof(noted)) == LKG_SHA256_HEX - 1 &&
               memcmp(noted, g->sha256, LKG_SHA256_HEX - 1) == 0;
}

/*
 * Not synced: it matters after a death of ours, and a power cut ends with our next start.
 * @marked_only: without the mark the file could be taken for a base, so rather write none
 */
static int write_copy(int dirfd, const char *name, const struct lkg_config_component *c,
                      const struct lkg_generation *g, bool marked_only)
{
        LKG_CLEANUP(lkg_closep) int fd = -EBADF;
        char tmp[NAME_MAX + 1];
        int r;

        if (up_to_date(dirfd, name, c, g))
                return 0;
        if (snprintf(tmp, sizeof(tmp), ".%.200s%s", name, TMP_SUFFIX) >= (int)sizeof(tmp))
                return -ENAMETOOLONG;
        (void)unlinkat(dirfd, tmp, 0);
        fd = openat(dirfd, tmp, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
        if (fd < 0)
                return -errno;
        r = fill(fd, c, g);
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

void lkg_fallback_write(int source_fd, const struct lkg_config_component *c, const struct lkg_generation *g,
                        struct lkg_report *report)
{
        LKG_CLEANUP(lkg_closep) int dir = -EBADF;
        const struct lkg_where where = { .file = LKG_FALLBACK_DIR };
        struct stat st;
        int r = 0;

        if (mkdirat(source_fd, LKG_FALLBACK_DIR, 0755) < 0 && errno != EEXIST)
                r = -errno;
        if (r >= 0) {
                dir = openat(source_fd, LKG_FALLBACK_DIR, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
                r = dir < 0 ? -errno : write_copy(dir, c->file, c, g, /* marked_only= */ false);
        }
        if (r >= 0 && ((fstatat(source_fd, c->file, &st, AT_SYMLINK_NOFOLLOW) < 0 && errno == ENOENT) ||
                       lkg_fallback_claim(source_fd, c->file, report)))
                r = write_copy(source_fd, c->file, c, g, /* marked_only= */ true);
        if (r < 0)
                lkg_report_add(report, LKG_WARNING, 4002, &where,
                               "the fallback copy of %s cannot be written: %s", c->file, strerror(-r));
}

void lkg_fallback_withdraw(int source_fd, const struct lkg_config_component *c)
{
        if (lkg_fallback_is_ours(source_fd, c->file) && untouched(source_fd, c->file))
                (void)unlinkat(source_fd, c->file, 0);
}
