/* SPDX-License-Identifier: Apache-2.0 */
/* Directories of the store: create, remove; put foreign files aside. */
#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>

#include <lkg/file.h>
#include <lkg/base.h>

#include "store-internal.h"

static int empty_dir(DIR *dir, unsigned depth)
{
        const struct dirent *entry;
        int r = 0;

        while ((entry = lkg_dir_next(dir, &r))) {
                if (unlinkat(dirfd(dir), entry->d_name, 0) == 0 || errno == ENOENT)
                        continue;
                if (errno != EISDIR || depth == 0)
                        return -errno;
                r = lkg_store_remove_dir(dirfd(dir), entry->d_name, depth - 1);
                if (r < 0)
                        return r;
        }
        return r;
}

int lkg_store_remove_dir(int parent, const char *name, unsigned depth)
{
        LKG_CLEANUP(lkg_dir_closep) DIR *dir = lkg_dir_open(parent, name);
        int r = dir ? empty_dir(dir, depth) : -errno;

        if (r < 0)
                return r;
        return unlinkat(parent, name, AT_REMOVEDIR) < 0 ? -errno : 0;
}

void lkg_store_put_aside(int parent, const char *name)
{
        char aside[NAME_MAX + 1];
        struct stat st, old;
        int n = snprintf(aside, sizeof(aside), "%s" LKG_STORE_ASIDE, name);

        if (n < 0 || (size_t)n >= sizeof(aside) || fstatat(parent, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
                return;
        if (fstatat(parent, aside, &old, AT_SYMLINK_NOFOLLOW) == 0) {
                if (old.st_ino == st.st_ino && old.st_dev == st.st_dev)
                        return;
                if (unlinkat(parent, aside, 0) < 0)
                        (void)unlinkat(parent, aside, AT_REMOVEDIR);
        }
        if (S_ISREG(st.st_mode) ? linkat(parent, name, parent, aside, 0) < 0
                                : renameat(parent, name, parent, aside) < 0)
                lkg_log_debug("%s is not kept as %s: %s", name, aside, strerror(errno));
}

/* Opens @name of @parent, whose path is the first @n_above bytes of @path; makes it if needed. */
static int open_or_make(int parent, const char *path, size_t n_above, const char *name,
                        struct lkg_report *report, struct lkg_error *err)
{
        const int flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
        int fd = openat(parent, name, flags);

        if (fd < 0 && (errno == ENOTDIR || errno == ELOOP)) {
                char file[LKG_STORE_PATH];
                const struct lkg_where where = { .file = file };

                (void)snprintf(file, sizeof(file), "%.*s%s", (int)n_above, path, name);
                if (report)
                        lkg_report_add(report, LKG_WARNING, 6011, &where,
                                       "stands where a directory of lkgfs belongs, put aside as "
                                       "%s" LKG_STORE_ASIDE,
                                       name);
                lkg_store_put_aside(parent, name);
                (void)unlinkat(parent, name, 0); /* of a file the name stays */
                errno = ENOENT;
        }
        if (fd < 0 && errno == ENOENT) {
                if (mkdirat(parent, name, 0700) < 0 && errno != EEXIST)
                        return lkg_error_set(err, -errno, NULL, "create directory %.*s%s", (int)n_above,
                                             path, name);
                fd = openat(parent, name, flags);
        }
        return fd < 0 ? lkg_error_set(err, -errno, NULL, "open directory %.*s%s", (int)n_above, path, name)
                      : fd;
}

int lkg_store_make_path(int top, const char *path, struct lkg_report *report, struct lkg_error *err)
{
        LKG_CLEANUP(lkg_closep) int parent = -EBADF;
        char name[NAME_MAX + 1];

        for (size_t at = 0, n; path[at]; at += n + (path[at + n] == '/')) {
                int above = parent < 0 ? top : parent, fd, r;

                n = strcspn(path + at, "/");
                (void)snprintf(name, sizeof(name), "%.*s", (int)n, path + at);
                fd = open_or_make(above, path, at, name, report, err);
                if (fd < 0)
                        return fd;
                /* Always: a process killed between mkdir and flush left a directory that is not durable. */
                r = lkg_sync_dir(above);
                lkg_close(parent);
                parent = fd;
                if (r < 0)
                        return lkg_error_set(err, r, NULL, "fsync the directory of %.*s", (int)(at + n),
                                             path);
        }
        return LKG_STEAL_FD(parent);
}
