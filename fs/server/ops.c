/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of operations: each finds the node and calls the pass-through or the view. An unknown node id is ESTALE, a change
 * of a file of the view EPERM (like an immutable file), any change by a caller of another mount namespace EROFS; everything
 * else is decided there.
 */
#include <fcntl.h>
#include <linux/fs.h>
#include <sys/statvfs.h>

#include "file-server.h"

/* Return the node, or reply ESTALE. */
static struct lkg_node *resolve(fuse_req_t req, fuse_ino_t ino)
{
        struct lkg_node *node = node_get(ino);

        if (!node)
                fuse_reply_err(req, ESTALE);
        return node;
}

/*
 * Callers in another mount namespace may read but not change (EROFS): a read-only mount in a container would
 * not cover a submount of ours or a propagated mount. A file that was opened for writing before stays
 * writable, as on any file system.
 */
static bool refuse_foreign(fuse_req_t req)
{
        if (caller_may_change(fuse_req_ctx(req)))
                return false;
        fuse_reply_err(req, EROFS);
        return true;
}

/* A file opened through a view file for writing belongs to the base (baseWrites: through). */
static struct lkg_node *behind(struct lkg_node *node, const struct fuse_file_info *fi)
{
        const struct lkg_file *file;

        if (node_is_source(node) || !fi || !handle_is_file(fi->fh))
                return node;
        file = file_get(fi->fh);
        return file ? node_get(file->node) : node;
}

/*
 * Records who uses the content; and that the open of a view file that follows can be sent back here: only
 * root's matters (start.c).
 */
static void note_look(const struct fuse_ctx *ctx, fuse_ino_t ino)
{
        const struct lkg_node *node = node_get(ino);

        if (!node)
                return;
        content_looked(ctx, node);
        if (ctx->uid == 0 && (node->flags & LKG_ENTRY_VIEW))
                opener_looked(ctx->pid, node);
}

static void op_lookup(fuse_req_t req, fuse_ino_t parent, const char *name)
{
        struct lkg_node *dir = resolve(req, parent);
        struct fuse_entry_param entry;
        int r;

        if (!dir)
                return;
        if (relay_lookup(req, dir, name))
                return;
        if (node_is_source(dir) && atomic_load(&dir->kind) != LKG_NODE_ROOT) {
                r = source_lookup(dir, name, &entry);
        } else if (strcmp(name, LKG_DOOR_DIR) == 0 && !caller_is_notifier(fuse_req_ctx(req))) {
                r = -ENOENT;
        } else {
                r = view_lookup(dir, name, &entry);
                if (r == 0)
                        note_look(fuse_req_ctx(req), entry.ino);
                if (r == -ENOENT && node_is_source(dir) && !publication_owns(dir, name))
                        r = source_lookup(dir, name, &entry);
        }
        if (r < 0) {
                fuse_reply_err(req, -r);
                return;
        }
        fuse_reply_entry(req, &entry);
        source_unless_lost(&entry);
}

static void op_forget(fuse_req_t req, fuse_ino_t ino, uint64_t nlookup)
{
        struct lkg_node *node = node_get(ino);

        if (node)
                node_forget(node, nlookup);
        fuse_reply_none(req);
}

static void op_forget_multi(fuse_req_t req, size_t count, struct fuse_forget_data *forgets)
{
        for (size_t i = 0; i < count; i++) {
                struct lkg_node *node = node_get(forgets[i].ino);

                if (node)
                        node_forget(node, forgets[i].nlookup);
        }
        fuse_reply_none(req);
}

static void op_getattr(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
        struct lkg_node *node = resolve(req, ino);
        struct stat st;

        (void)fi;
        if (!node)
                return;
        if (node_is_source(node)) {
                source_getattr(req, node);
                return;
        }
        node_attributes(node, &st);
        fuse_reply_attr(req, &st, atomic_load(&node->kind) == LKG_NODE_CONTENT ? FOREVER_S : DIRECTORY_S);
}

/* truncate() of a view file whose writes go to the base. */
static bool truncate_through(fuse_req_t req, struct lkg_node *node, struct stat *attr, int valid,
                             struct fuse_file_info *fi)
{
        struct lkg_node *base = behind(node, fi);
        bool borrowed = base && base != node;

        if (!(valid & FUSE_SET_ATTR_SIZE) || atomic_load(&node->kind) != LKG_NODE_CONTENT)
                return false;
        if (!borrowed)
                base = view_through(node);
        if (!base)
                return false;
        source_setattr(req, base, attr, FUSE_SET_ATTR_SIZE, fi);
        if (!borrowed)
                node_forget(base, 1);
        return true;
}

static void op_setattr(fuse_req_t req, fuse_ino_t ino, struct stat *attr, int valid,
                       struct fuse_file_info *fi)
{
        struct lkg_node *node = resolve(req, ino);

        if (!node)
                return;
        if (relay_touch(req, node) || (!view_takes_commands(node, true) && refuse_foreign(req)))
                return;
        if (node_is_source(node))
                source_setattr(req, node, attr, valid, fi);
        else if (caller_is_notifier(fuse_req_ctx(req)) || !truncate_through(req, node, attr, valid, fi))
                view_setattr(req, node, valid);
}

static void op_readlink(fuse_req_t req, fuse_ino_t ino)
{
        struct lkg_node *node = resolve(req, ino);

        if (!node)
                return;
        if (node_is_source(node))
                source_readlink(req, node);
        else
                fuse_reply_err(req, EINVAL);
}

/* The directory in which @name may be made, removed or replaced, or a reply of ESTALE or EPERM. */
static struct lkg_node *changeable(fuse_req_t req, fuse_ino_t parent, const char *name)
{
        struct lkg_node *dir = resolve(req, parent);

        if (!dir || refuse_foreign(req))
                return NULL;
        if (!relay_matches(req, dir, name) && relay_refuse(req))
                return NULL;
        if (publication_owns(dir, name)) {
                fuse_reply_err(req, EPERM);
                return NULL;
        }
        return dir;
}

/* Return the directory if it is one of those below bad/. */
static struct lkg_node *bad_directory(fuse_ino_t ino)
{
        struct lkg_node *dir = node_get(ino);

        return dir && atomic_load(&dir->kind) == LKG_NODE_BAD ? dir : NULL;
}

static void op_mknod(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode, dev_t rdev)
{
        struct lkg_node *dir = S_ISREG(mode) ? bad_directory(parent) : NULL;

        if (dir) {
                bad_make(req, dir, name);
                return;
        }
        dir = changeable(req, parent, name);
        if (dir && !relay_make(req, dir, name))
                source_make(req, dir, name, mode, rdev, NULL);
}

static void op_mkdir(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode)
{
        struct lkg_node *dir = changeable(req, parent, name);

        if (dir && !relay_make(req, dir, name))
                source_make(req, dir, name, mode | S_IFDIR, 0, NULL);
}

static void op_symlink(fuse_req_t req, const char *link, fuse_ino_t parent, const char *name)
{
        struct lkg_node *dir = changeable(req, parent, name);

        if (dir && !relay_make(req, dir, name))
                source_make(req, dir, name, S_IFLNK, 0, link);
}

static void op_unlink(fuse_req_t req, fuse_ino_t parent, const char *name)
{
        struct lkg_node *dir = bad_directory(parent);

        if (dir) {
                bad_unlink(req, dir, name);
                return;
        }
        dir = changeable(req, parent, name);
        if (dir && !relay_remove(req, dir, name))
                source_unlink(req, dir, name, 0);
}

static void op_rmdir(fuse_req_t req, fuse_ino_t parent, const char *name)
{
        struct lkg_node *dir = changeable(req, parent, name);

        if (dir && !relay_remove(req, dir, name))
                source_unlink(req, dir, name, AT_REMOVEDIR);
}

/* `rename(tmp, view file)` where writes go to the base: it replaces the base. */
static bool rename_through(fuse_req_t req, fuse_ino_t parent, const char *name, fuse_ino_t newparent,
                           const char *newname, unsigned flags)
{
        LKG_CLEANUP(publication_putp) struct publication_ref *ref = publication_get();
        const struct lkg_entry *entry = lkg_publication_find(ref->publication, newname);
        struct lkg_node *dir = node_get(parent), *newdir = node_get(newparent);

        if (newparent != FUSE_ROOT_ID || !dir || !newdir || flags != 0 || !entry ||
            !(entry->flags & LKG_ENTRY_THROUGH) || publication_owns(dir, name))
                return false;
        for (size_t i = 0; i < ref->publication->n_rules; i++) {
                const struct lkg_rule *rule = &ref->publication->rules[i];

                if (rule->type == LKG_RULE_FILE && rule->component == entry->component) {
                        source_rename(req, dir, name, newdir, rule->text, flags);
                        return true;
                }
        }
        return false;
}

static void op_rename(fuse_req_t req, fuse_ino_t parent, const char *name, fuse_ino_t newparent,
                      const char *newname, unsigned int flags)
{
        struct lkg_node *dir, *newdir;

        if (refuse_foreign(req) || relay_refuse(req) ||
            rename_through(req, parent, name, newparent, newname, flags))
                return;
        dir = changeable(req, parent, name);
        if (!dir)
                return;
        newdir = changeable(req, newparent, newname);
        if (newdir)
                source_rename(req, dir, name, newdir, newname, flags);
}

static void op_link(fuse_req_t req, fuse_ino_t ino, fuse_ino_t newparent, const char *newname)
{
        struct lkg_node *node = resolve(req, ino), *dir;

        if (!node || relay_refuse(req))
                return;
        dir = changeable(req, newparent, newname);
        if (!dir)
                return;
        if (node_is_source(node))
                source_link(req, node, dir, newname);
        else
                fuse_reply_err(req, EPERM);
}

static void op_create(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode,
                      struct fuse_file_info *fi)
{
        struct lkg_node *dir = bad_directory(parent);

        if (dir) {
                bad_create(req, dir, name, fi);
                return;
        }
        if (relay_refuse(req))
                return;
        dir = changeable(req, parent, name);
        if (dir)
                source_create(req, dir, name, mode, fi);
}

static void op_open(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
        struct lkg_node *node = resolve(req, ino);

        if (!node)
                return;
        if ((fi->flags & (O_ACCMODE | O_TRUNC)) != O_RDONLY && !view_takes_commands(node, true) &&
            refuse_foreign(req))
                return;
        if (!node_is_source(node))
                view_open(req, node, fi);
        else if (!relay_open(req, node, fi))
                source_open(req, node, fi);
}

static void op_read(fuse_req_t req, fuse_ino_t ino, size_t size, off_t off, struct fuse_file_info *fi)
{
        struct lkg_node *node = resolve(req, ino), *base;

        if (!node)
                return;
        base = behind(node, fi);
        if (!base || node_is_source(base))
                source_read(req, size, off, fi);
        else
                view_read(req, node, size, off);
}

static void op_write(fuse_req_t req, fuse_ino_t ino, const char *data, size_t size, off_t off,
                     struct fuse_file_info *fi)
{
        struct lkg_node *node = resolve(req, ino);

        if (!node)
                return;
        if (atomic_load(&node->kind) == LKG_NODE_CONTROL) {
                view_write(req, node, data, size);
                return;
        }
        if (!node_is_source(node) && !handle_is_file(fi->fh)) {
                bad_write(req, node, data, size);
                return;
        }
        node = behind(node, fi);
        if (node && node_is_source(node))
                source_write(req, node, data, size, off, fi);
        else
                fuse_reply_err(req, EPERM);
}

static void op_flush(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
        struct lkg_node *node = resolve(req, ino);

        if (!node)
                return;
        node = behind(node, fi);
        if (node && node_is_source(node) && handle_is_file(fi->fh))
                source_flush(req, node, fi);
        else
                fuse_reply_err(req, 0);
}

static void op_fsync(fuse_req_t req, fuse_ino_t ino, int datasync, struct fuse_file_info *fi)
{
        struct lkg_node *node = resolve(req, ino);

        if (!node)
                return;
        node = behind(node, fi);
        if (node && node_is_source(node) && handle_is_file(fi->fh))
                source_fsync(req, node, datasync, fi);
        else
                fuse_reply_err(req, 0);
}

static void op_release(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
        struct lkg_node *node = node_get(ino), *base;

        base = node ? behind(node, fi) : NULL;
        if (!node || !handle_is_file(fi->fh) || (base && !node_is_source(base))) {
                view_closed(fi->fh);
                if (!handle_is_file(fi->fh))
                        content_closed(ino);
                /* content; or a node that was forgotten before its files, which a real kernel does not do */
                file_close(fi->fh);
                fuse_reply_err(req, 0);
                return;
        }
        source_release(req, base ? base : node, fi);
        if (base != node)
                kernel_invalidate_attributes(ino); /* the kernel used the size of our reply as its size */
}

static void op_opendir(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
        struct lkg_node *node = resolve(req, ino);

        if (!node)
                return;
        fi->fh = handle_new(); /* evaluated at read(); an open alone allocates nothing */
        fuse_reply_open(req, fi);
}

static void op_readdir(fuse_req_t req, fuse_ino_t ino, size_t size, off_t off, struct fuse_file_info *fi)
{
        struct lkg_node *node = resolve(req, ino);

        if (node)
                listing_read(req, node, size, off, fi->fh);
}

static void op_releasedir(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
        (void)ino;
        listing_close(fi->fh);
        fuse_reply_err(req, 0);
}

static void op_fsyncdir(fuse_req_t req, fuse_ino_t ino, int datasync, struct fuse_file_info *fi)
{
        struct lkg_node *node = resolve(req, ino);
        LKG_CLEANUP(lkg_closep) int fd = -EBADF;

        (void)fi;
        if (!node)
                return;
        if (node_is_source(node))
                fd = source_open_node(node, O_RDONLY | O_DIRECTORY);
        if (fd >= 0 && (datasync ? fdatasync(fd) : fsync(fd)) < 0)
                fuse_reply_err(req, errno);
        else
                fuse_reply_err(req, 0);
}

static void op_statfs(fuse_req_t req, fuse_ino_t ino)
{
        struct lkg_node *node = node_get(ino);
        struct statvfs st;
        int fd = node && node_is_source(node) ? node_fd(node) : server.source;

        if (fstatvfs(fd >= 0 ? fd : server.source, &st) < 0)
                fuse_reply_err(req, errno);
        else
                fuse_reply_statfs(req, &st);
}

static void op_setxattr(fuse_req_t req, fuse_ino_t ino, const char *name, const char *value, size_t size,
                        int flags)
{
        struct lkg_node *node = resolve(req, ino);

        if (!node || refuse_foreign(req) || relay_refuse(req))
                return;
        xattr_set(req, node, name, value, size, flags);
}

static void op_getxattr(fuse_req_t req, fuse_ino_t ino, const char *name, size_t size)
{
        struct lkg_node *node = resolve(req, ino);

        if (node)
                xattr_get(req, node, name, size);
}

static void op_listxattr(fuse_req_t req, fuse_ino_t ino, size_t size)
{
        struct lkg_node *node = resolve(req, ino);

        if (node)
                xattr_list(req, node, size);
}

static void op_removexattr(fuse_req_t req, fuse_ino_t ino, const char *name)
{
        struct lkg_node *node = resolve(req, ino);

        if (!node || refuse_foreign(req) || relay_refuse(req))
                return;
        xattr_remove(req, node, name);
}

/* `lsattr` shows the immutable flag on files of the view. */
static void op_ioctl(fuse_req_t req, fuse_ino_t ino, unsigned int cmd, void *arg, struct fuse_file_info *fi,
                     unsigned flags, const void *in, size_t in_size, size_t out_size)
{
        struct lkg_node *node = resolve(req, ino);
        int immutable = FS_IMMUTABLE_FL;

        (void)arg;
        (void)in;
        (void)in_size;
        (void)out_size;
        if (!node)
                return;
        if (flags & FUSE_IOCTL_UNRESTRICTED)
                fuse_reply_err(req, ENOTTY);
        else if (node_is_source(node))
                source_ioctl(req, node, cmd, fi);
        else if (cmd == FS_IOC_GETFLAGS && atomic_load(&node->kind) == LKG_NODE_CONTENT &&
                 !publication_holds_bad(node))
                fuse_reply_ioctl(req, 0, &immutable, sizeof(immutable));
        else if (cmd == FS_IOC_SETFLAGS)
                fuse_reply_err(req, EPERM);
        else
                fuse_reply_err(req, ENOTTY);
}

static void op_poll(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi, struct fuse_pollhandle *ph)
{
        if (ph)
                fuse_pollhandle_destroy(ph); /* frees only its memory: we keep the kernel's handle */
        view_poll(req, node_get(ino), fi);
}

static void op_fallocate(fuse_req_t req, fuse_ino_t ino, int mode, off_t off, off_t length,
                         struct fuse_file_info *fi)
{
        struct lkg_node *node = resolve(req, ino);
        struct caller caller;
        int fd, r;

        if (!node)
                return;
        node = behind(node, fi);
        fd = node ? file_fd(fi->fh) : -ESTALE;
        if (fd < 0) {
                fuse_reply_err(req, -fd);
                return;
        }
        caller_enter(fuse_req_ctx(req), &caller);
        r = fallocate(fd, mode, off, length) < 0 ? -errno : 0;
        caller_leave(&caller);
        if (r < 0) {
                fuse_reply_err(req, -r);
                return;
        }
        atomic_fetch_or(&node->dirty, LKG_DIRTY_WROTE);
        fuse_reply_err(req, 0);
}

static void op_copy_file_range(fuse_req_t req, fuse_ino_t in, off_t in_off, struct fuse_file_info *in_fi,
                               fuse_ino_t out, off_t out_off, struct fuse_file_info *out_fi, size_t size,
                               int flags)
{
        struct lkg_node *node = resolve(req, out);
        int from = file_fd(in_fi->fh), to = file_fd(out_fi->fh), error;
        struct caller caller;
        ssize_t n;

        (void)in;
        if (!node)
                return;
        node = behind(node, out_fi);
        if (!node || from < 0 || to < 0) {
                fuse_reply_err(req, EXDEV); /* the caller reads and writes instead */
                return;
        }
        caller_enter(fuse_req_ctx(req), &caller);
        n = copy_file_range(from, &in_off, to, &out_off, size, (unsigned)flags);
        error = errno;
        caller_leave(&caller);
        if (n < 0) {
                fuse_reply_err(req, error);
                return;
        }
        atomic_fetch_or(&node->dirty, LKG_DIRTY_WROTE);
        fuse_reply_write(req, (size_t)n);
}

static void op_lseek(fuse_req_t req, fuse_ino_t ino, off_t off, int whence, struct fuse_file_info *fi)
{
        struct lkg_node *node = resolve(req, ino), *base;
        off_t at;
        int fd;

        if (!node)
                return;
        base = behind(node, fi);
        if (base && !node_is_source(base)) { /* content has no holes */
                if (off < 0 || (uint64_t)off >= node->size)
                        fuse_reply_err(req, ENXIO);
                else
                        fuse_reply_lseek(req, whence == SEEK_DATA ? off : (off_t)node->size);
                return;
        }
        fd = file_fd(fi->fh);
        at = fd < 0 ? fd : lseek(fd, off, whence);
        if (fd < 0)
                fuse_reply_err(req, -fd);
        else if (at < 0)
                fuse_reply_err(req, errno);
        else
                fuse_reply_lseek(req, at);
}

const struct fuse_lowlevel_ops server_ops = {
        .lookup = op_lookup,
        .forget = op_forget,
        .forget_multi = op_forget_multi,
        .getattr = op_getattr,
        .setattr = op_setattr,
        .readlink = op_readlink,
        .mknod = op_mknod,
        .mkdir = op_mkdir,
        .symlink = op_symlink,
        .unlink = op_unlink,
        .rmdir = op_rmdir,
        .rename = op_rename,
        .link = op_link,
        .create = op_create,
        .open = op_open,
        .read = op_read,
        .write = op_write,
        .flush = op_flush,
        .fsync = op_fsync,
        .release = op_release,
        .opendir = op_opendir,
        .readdir = op_readdir,
        .releasedir = op_releasedir,
        .fsyncdir = op_fsyncdir,
        .statfs = op_statfs,
        .setxattr = op_setxattr,
        .getxattr = op_getxattr,
        .listxattr = op_listxattr,
        .removexattr = op_removexattr,
        .ioctl = op_ioctl,
        .poll = op_poll,
        .fallocate = op_fallocate,
        .copy_file_range = op_copy_file_range,
        .lseek = op_lseek,
};
