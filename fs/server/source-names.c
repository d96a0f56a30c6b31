/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The pass-through: names and attributes. The kernel has checked permissions (default_permissions) before it asks, so
 * this runs as root on the real directory; only creating operations take the caller's ids (source-change.c).
 */
#include <fcntl.h>
#include <limits.h>

#include "file-server.h"

static double attr_timeout(const struct stat *st)
{
        return S_ISDIR(st->st_mode) ? DIRECTORY_S : 0; /* a change behind the mount counts at once */
}

/*
 * Attributes; cached ones if the file is on another file system than the source directory: that file system
 * may be dead, and a lookup must not wait for it while the kernel holds the directory's lock. A caller that
 * needs exact ones asks again (no attr_timeout). On the same file system they are read as usual.
 */
static int look(int dirfd, const char *name, int flags, const struct lkg_node *dir, struct stat *ret)
{
        uint64_t dev = atomic_load(&dir->kind) == LKG_NODE_ROOT ? server.source_dev : dir->dev;
        int r = lkg_source_stat(dirfd, name, flags, ret);

        if (r < 0 || ret->st_dev != dev ||
            (dev == server.source_dev && atomic_load(&server.source_is_local)))
                return r;
        return fstatat(dirfd, name, ret, flags) < 0 ? -errno : 0;
}

/* A file name is looked up at every use, so that a change behind the mount is seen at once. */
static void fill_entry(struct lkg_node *node, const struct lkg_node *dir, const struct stat *st,
                       struct fuse_entry_param *ret)
{
        memset(ret, 0, sizeof(*ret));
        ret->ino = lkg_node_id(node);
        ret->attr = *st;
        ret->attr_timeout = attr_timeout(st);
        ret->entry_timeout = S_ISDIR(st->st_mode) ? DIRECTORY_S : 0;
        if (st->st_dev != (atomic_load(&dir->kind) == LKG_NODE_ROOT ? server.source_dev : dir->dev))
                ret->attr_timeout = 0; /* look(): of another file system */
        if (S_ISDIR(st->st_mode))
                lkg_watch_directory(node);
}

/* `kubelet.conf.base` is `kubelet.conf` of the source directory. */
const char *lkg_source_real_name(const struct lkg_node *dir, const char *name, char *buf, size_t size)
{
        LKG_CLEANUP(lkg_publication_putp) struct publication_ref *ref = NULL;
        const struct lkg_rule *rule;

        if (atomic_load(&dir->kind) != LKG_NODE_ROOT)
                return name;
        ref = lkg_publication_get();
        rule = lkg_publication_rule(ref->publication, LKG_RULE_ALIAS, name);
        if (!rule)
                return name;
        (void)snprintf(buf, size, "%s", rule->target);
        return buf;
}

/** lkg_source_adopt() - the entry of the inode behind @fd (O_PATH, taken over), which is @name in @dir. */
int lkg_source_adopt(struct lkg_node *dir, const char *name, int fd, struct fuse_entry_param *ret)
{
        LKG_CLEANUP(lkg_closep) int owned = fd;
        struct lkg_node *node;
        struct stat st;
        int r;

        r = look(owned, "", AT_EMPTY_PATH, dir, &st);
        if (r < 0)
                return r;
        r = lkg_node_source(lkg_node_id(dir), name, &owned, &st, &node);
        if (r < 0)
                return r;
        fill_entry(node, dir, &st, ret);
        return 0;
}

void lkg_source_unless_lost(const struct fuse_entry_param *entry)
{
        struct lkg_node *node = task.lost ? lkg_node_get(entry->ino) : NULL;

        if (node)
                lkg_node_forget(node, 1);
}

int lkg_source_reply_entry(fuse_req_t req, const struct fuse_entry_param *entry)
{
        fuse_reply_entry(req, entry);
        lkg_source_unless_lost(entry);
        return REPLIED;
}

int lkg_source_lookup(struct lkg_node *dir, const char *name, struct fuse_entry_param *ret)
{
        char buf[PATH_MAX];
        const char *real = lkg_source_real_name(dir, name, buf, sizeof(buf));
        int dirfd = lkg_node_fd(dir), none = -EBADF, fd, r;
        struct lkg_node *node;
        struct stat st;

        if (dirfd < 0)
                return dirfd;
        r = look(dirfd, real, AT_SYMLINK_NOFOLLOW, dir, &st);
        if (r < 0)
                return r;
        r = lkg_node_source(lkg_node_id(dir), real, &none, &st, &node);
        if (r == 0) {
                fill_entry(node, dir, &st, ret);
                return 0;
        }
        if (r != -ENOENT)
                return r;
        fd = openat(dirfd, real, O_PATH | O_NOFOLLOW | O_CLOEXEC);
        if (fd < 0)
                return -errno;
        return lkg_source_adopt(dir, real, fd, ret);
}

int lkg_source_attributes(struct lkg_node *node, struct stat *ret)
{
        int fd = lkg_node_fd(node);

        if (fd < 0)
                return fd;
        /* on the path to every file of the view: never waits */
        if (atomic_load(&node->kind) == LKG_NODE_ROOT)
                return lkg_source_stat(fd, "", AT_EMPTY_PATH, ret);
        return fstatat(fd, "", ret, AT_EMPTY_PATH | AT_SYMLINK_NOFOLLOW) < 0 ? -errno : 0;
}

int lkg_source_getattr(fuse_req_t req, struct lkg_node *node)
{
        struct stat st;
        int r = lkg_source_attributes(node, &st);

        if (r < 0)
                return r;
        fuse_reply_attr(req, &st, atomic_load(&node->kind) == LKG_NODE_ROOT ? FOREVER_S : attr_timeout(&st));
        return REPLIED;
}

static int set_times(int fd, const struct stat *attr, int valid)
{
        struct timespec times[2] = { { .tv_nsec = UTIME_OMIT }, { .tv_nsec = UTIME_OMIT } };

        if (valid & FUSE_SET_ATTR_ATIME_NOW)
                times[0].tv_nsec = UTIME_NOW;
        else if (valid & FUSE_SET_ATTR_ATIME)
                times[0] = attr->st_atim;
        if (valid & FUSE_SET_ATTR_MTIME_NOW)
                times[1].tv_nsec = UTIME_NOW;
        else if (valid & FUSE_SET_ATTR_MTIME)
                times[1] = attr->st_mtim;
        return utimensat(fd, "", times, AT_EMPTY_PATH) < 0 ? -errno : 0;
}

/* As the caller: a truncation by root keeps the set-id bits. */
static int set_size(fuse_req_t req, const char *path, off_t size, const struct fuse_file_info *fi)
{
        int fd = fi && lkg_handle_is_file(fi->fh) ? lkg_file_fd(fi->fh) : AT_FDCWD, r;
        struct caller caller;

        if (fd < 0 && fd != AT_FDCWD)
                return fd;
        lkg_caller_enter(fuse_req_ctx(req), &caller);
        r = (fd == AT_FDCWD ? truncate(path, size) : ftruncate(fd, size)) < 0 ? -errno : 0;
        lkg_caller_leave(&caller);
        return r;
}

static int set_attributes(fuse_req_t req, struct lkg_node *node, const struct stat *attr, int valid,
                          const struct fuse_file_info *fi)
{
        int fd = lkg_node_fd(node), r = 0;
        char path[FD_PATH_MAX];

        if (fd < 0)
                return fd;
        (void)lkg_fd_path(fd, path);
        if (valid & FUSE_SET_ATTR_SIZE)
                r = set_size(req, path, attr->st_size, fi);
        if (r == 0 && (valid & (FUSE_SET_ATTR_UID | FUSE_SET_ATTR_GID)) &&
            fchownat(fd, "", valid & FUSE_SET_ATTR_UID ? attr->st_uid : (uid_t)-1,
                     valid & FUSE_SET_ATTR_GID ? attr->st_gid : (gid_t)-1,
                     AT_EMPTY_PATH | AT_SYMLINK_NOFOLLOW) < 0)
                r = -errno;
        /* After the owner: chown clears set-id bits, and an earlier view's kernel sends the final mode. */
        if (r == 0 && (valid & FUSE_SET_ATTR_MODE) && chmod(path, attr->st_mode & 07777) < 0)
                r = -errno;
        if (r == 0 && (valid & (FUSE_SET_ATTR_ATIME | FUSE_SET_ATTR_MTIME | FUSE_SET_ATTR_ATIME_NOW |
                                FUSE_SET_ATTR_MTIME_NOW)))
                r = set_times(fd, attr, valid);
        return r;
}

void lkg_source_park(const char *path, const char *said)
{
        LKG_CLEANUP(lkg_publication_putp) struct publication_ref *ref = lkg_publication_get();
        struct lkg_parked *parked =
                lkg_publication_commits(ref->publication, path) ? lkg_link_park(LKG_MSG_CHANGED) : NULL;

        if (parked)
                lkg_link_text(&parked->message, said, strlen(said));
}

int lkg_source_setattr(fuse_req_t req, struct lkg_node *node, struct stat *attr, int valid,
                       struct fuse_file_info *fi)
{
        char path[PATH_MAX];
        int r;

        lkg_relay_begin(node->parent, node->name);
        r = set_attributes(req, node, attr, valid, fi);
        lkg_relay_end(node->parent, node->name);
        if (r < 0)
                return r;
        if (valid & FUSE_SET_ATTR_SIZE) {
                if (fi && lkg_handle_is_file(fi->fh))
                        atomic_fetch_or(&node->dirty,
                                        LKG_DIRTY_WROTE); /* the file is open: reported at close */
                else if (lkg_node_path(node, path, sizeof(path)) == 0)
                        lkg_source_park(path, path);
        }
        return lkg_source_getattr(req, node);
}

int lkg_source_readlink(fuse_req_t req, struct lkg_node *node)
{
        int fd = lkg_node_fd(node);
        ssize_t n;

        if (fd < 0)
                return fd;
        n = readlinkat(fd, "", task.buf, PATH_MAX);
        if (n < 0)
                return -errno;
        task.buf[n] = '\0';
        fuse_reply_readlink(req, task.buf);
        return REPLIED;
}
