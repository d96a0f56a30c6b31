/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of operations: each calls the pass-through or the view. What is called returns REPLIED when it has
 * replied, 0 for success without a body, or -errno. An unknown node id is ESTALE (lkg_ops_refuse()), a change
 * of a file of the view EPERM (like an immutable file), any change by a caller of another mount namespace EROFS; everything
 * else is decided there.
 */
#include <fcntl.h>
#include <linux/fs.h>
#include <sys/statvfs.h>

#include "requests.h"

static void finish(fuse_req_t req, int r)
{
        if (r <= 0)
                fuse_reply_err(req, -r);
}

static bool is_bad_directory(const struct lkg_node *dir)
{
        return atomic_load(&dir->kind) == LKG_NODE_BAD;
}

/* Will it be refused, or not, as a command? A write to a file that takes them; a name made in bad/, or removed from it. */
static bool is_command(const struct fuse_in_header *header, const struct lkg_node *node)
{
        switch (header->opcode) {
        case FUSE_OPEN:
        case FUSE_SETATTR:
                return lkg_view_takes_commands(node, true);
        case FUSE_CREATE:
        case FUSE_UNLINK:
                return is_bad_directory(node);
        case FUSE_MKNOD:
                return is_bad_directory(node) && S_ISREG(((const struct fuse_mknod_in *)(header + 1))->mode);
        }
        return false;
}

/* Who has opened it before goes on with that. */
static bool is_gone(const struct fuse_in_header *header)
{
        return header->opcode != FUSE_READDIR && header->opcode != FUSE_GETATTR &&
               lkg_view_is_gone(task.node);
}

/*
 * Callers in another mount namespace may read but not change (EROFS): a read-only mount in a container would
 * not cover a submount of ours or a propagated mount. A file that was opened for writing before stays
 * writable, as on any file system. Commands have their own rule (lkg_caller_may_command()).
 */
int lkg_ops_refuse(const struct fuse_in_header *header)
{
        const struct fuse_ctx ctx = { .uid = header->uid, .gid = header->gid, .pid = (pid_t)header->pid };

        task.node = lkg_node_get(header->nodeid);
        if (!lkg_request_is(header, REQUEST_ANY_NODE) && (!task.node || is_gone(header)))
                return -ESTALE;
        if (lkg_request_is(header, REQUEST_OTHERS) && lkg_caller_is_notifier())
                return -ESTALE;
        return !lkg_request_changes(header) || is_command(header, task.node) || lkg_caller_may_change(&ctx)
                       ? 0
                       : -EROFS;
}

/* A file opened through a view file for writing belongs to the base (baseWrites: through). */
static struct lkg_node *behind(const struct fuse_file_info *fi)
{
        const struct lkg_file *file;

        if (lkg_node_is_source(task.node) || !fi || !lkg_handle_is_file(fi->fh))
                return task.node;
        file = lkg_file_get(fi->fh);
        return file ? lkg_node_get(file->node) : task.node;
}

/*
 * Records who uses the content; and that the open of a view file that follows can be sent back here: only
 * root's matters (start.c).
 */
static void note_look(const struct fuse_ctx *ctx, fuse_ino_t ino)
{
        struct lkg_node *node = lkg_node_get(ino);

        if (!node)
                return;
        lkg_content_looked(ctx, node);
        if (ctx->uid == 0 && (node->flags & LKG_ENTRY_VIEW))
                lkg_opener_looked(ctx->pid, node);
}

static int lookup(fuse_req_t req, struct lkg_node *dir, const char *name, struct fuse_entry_param *ret)
{
        const struct fuse_ctx *ctx = fuse_req_ctx(req);
        int r;

        if (atomic_load(&dir->kind) == LKG_NODE_SOURCE)
                return lkg_source_lookup(dir, name, ret);
        if (strcmp(name, LKG_DOOR_DIR) == 0 && !lkg_caller_is_notifier())
                return -ENOENT;
        r = lkg_view_lookup(dir, name, ret);
        if (r == 0)
                note_look(ctx, ret->ino);
        if (r == -ENOENT && lkg_node_is_source(dir) && !lkg_publication_owns(dir, name))
                r = lkg_source_lookup(dir, name, ret);
        return r;
}

static void op_lookup(fuse_req_t req, fuse_ino_t parent, const char *name)
{
        struct fuse_entry_param entry;
        int r = lkg_relay_lookup(req, task.node, name);

        if (r == 0) {
                r = lookup(req, task.node, name, &entry);
                if (r == 0)
                        r = lkg_source_reply_entry(req, &entry);
        }
        finish(req, r);
}

static void op_forget(fuse_req_t req, fuse_ino_t ino, uint64_t nlookup)
{
        struct lkg_node *node = lkg_node_get(ino);

        if (node)
                lkg_node_forget(node, nlookup);
        fuse_reply_none(req);
}

static void op_forget_multi(fuse_req_t req, size_t count, struct fuse_forget_data *forgets)
{
        for (size_t i = 0; i < count; i++) {
                struct lkg_node *node = lkg_node_get(forgets[i].ino);

                if (node)
                        lkg_node_forget(node, forgets[i].nlookup);
        }
        fuse_reply_none(req);
}

static void op_getattr(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
        finish(req, lkg_node_is_source(task.node) ? lkg_source_getattr(req, task.node)
                                                  : lkg_view_getattr(req, task.node));
}

/* truncate() of a view file whose writes go to the base. Return: 0: it is none. */
static int truncate_through(fuse_req_t req, struct stat *attr, int valid, struct fuse_file_info *fi)
{
        struct lkg_node *base = behind(fi);
        bool borrowed = base && base != task.node;
        int r;

        if (!(valid & FUSE_SET_ATTR_SIZE) || atomic_load(&task.node->kind) != LKG_NODE_CONTENT)
                return 0;
        if (!borrowed)
                base = lkg_view_through(task.node);
        if (!base)
                return 0;
        r = lkg_source_setattr(req, base, attr, FUSE_SET_ATTR_SIZE, fi);
        if (!borrowed)
                lkg_node_forget(base, 1);
        return r;
}

/* The notifier only touches: nothing is done. */
static void op_setattr(fuse_req_t req, fuse_ino_t ino, struct stat *attr, int valid,
                       struct fuse_file_info *fi)
{
        bool notifiers = lkg_caller_is_notifier();
        int r = 0;

        if (lkg_node_is_source(task.node))
                r = notifiers ? lkg_source_getattr(req, task.node)
                              : lkg_source_setattr(req, task.node, attr, valid, fi);
        else if (!notifiers)
                r = truncate_through(req, attr, valid, fi);
        finish(req, r == 0 ? lkg_view_setattr(req, task.node, valid) : r);
}

static void op_readlink(fuse_req_t req, fuse_ino_t ino)
{
        finish(req, lkg_node_is_source(task.node) ? lkg_source_readlink(req, task.node) : -EINVAL);
}

static int make(fuse_req_t req, const char *name, mode_t mode, dev_t rdev, const char *link)
{
        struct lkg_node *dir = task.node;

        if (S_ISREG(mode) && is_bad_directory(dir))
                return lkg_bad_make(req, dir, name);
        if (lkg_caller_is_notifier())
                return lkg_relay_make(req, dir, name);
        return lkg_publication_owns(dir, name) ? -EPERM : lkg_source_make(req, dir, name, mode, rdev, link);
}

static void op_mknod(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode, dev_t rdev)
{
        finish(req, make(req, name, mode, rdev, NULL));
}

static void op_mkdir(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode)
{
        finish(req, make(req, name, mode | S_IFDIR, 0, NULL));
}

static void op_symlink(fuse_req_t req, const char *link, fuse_ino_t parent, const char *name)
{
        finish(req, make(req, name, S_IFLNK, 0, link));
}

static int remove_name(fuse_req_t req, const char *name, int flags)
{
        struct lkg_node *dir = task.node;

        if (!flags && is_bad_directory(dir))
                return lkg_bad_unlink(req, dir, name);
        if (lkg_caller_is_notifier())
                return lkg_relay_remove(dir, name);
        return lkg_publication_owns(dir, name) ? -EPERM : lkg_source_unlink(dir, name, flags);
}

static void op_unlink(fuse_req_t req, fuse_ino_t parent, const char *name)
{
        finish(req, remove_name(req, name, 0));
}

static void op_rmdir(fuse_req_t req, fuse_ino_t parent, const char *name)
{
        finish(req, remove_name(req, name, AT_REMOVEDIR));
}

/* `rename(tmp, view file)` where writes go to the base: it replaces the base. Return: its name; NULL: it is something else. */
static const struct lkg_rule *base_behind(const struct lkg_publication *publication,
                                          const struct lkg_node *newdir, const char *newname)
{
        const struct lkg_entry *entry = lkg_publication_find(publication, newname);

        return entry && entry->flags & LKG_ENTRY_THROUGH && atomic_load(&newdir->kind) == LKG_NODE_ROOT
                       ? lkg_publication_rule_of(publication, LKG_RULE_FILE, entry->component)
                       : NULL;
}

static void op_rename(fuse_req_t req, fuse_ino_t parent, const char *name, fuse_ino_t newparent,
                      const char *newname, unsigned int flags)
{
        LKG_CLEANUP(lkg_publication_putp) struct publication_ref *ref = lkg_publication_get();
        struct lkg_node *dir = task.node, *newdir = lkg_node_get(newparent);
        const struct lkg_rule *base =
                newdir && flags == 0 ? base_behind(ref->publication, newdir, newname) : NULL;

        if (!newdir)
                finish(req, -ESTALE);
        else if (lkg_publication_owns(dir, name) || (!base && lkg_publication_owns(newdir, newname)))
                finish(req, -EPERM);
        else
                finish(req, lkg_source_rename(dir, name, newdir, base ? base->text : newname, flags));
}

static void op_link(fuse_req_t req, fuse_ino_t ino, fuse_ino_t newparent, const char *newname)
{
        struct lkg_node *node = lkg_node_get(ino), *dir = task.node;

        finish(req, !node ? -ESTALE
                    : !lkg_node_is_source(node) || lkg_publication_owns(dir, newname)
                            ? -EPERM
                            : lkg_source_link(req, node, dir, newname));
}

static void op_create(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode,
                      struct fuse_file_info *fi)
{
        struct lkg_node *dir = task.node;

        finish(req, is_bad_directory(dir)             ? lkg_bad_create(req, dir, name, fi)
                    : lkg_publication_owns(dir, name) ? -EPERM
                                                      : lkg_source_create(req, dir, name, mode, fi));
}

static void op_open(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
        bool writes = (fi->flags & (O_ACCMODE | O_TRUNC)) != O_RDONLY;

        if (!lkg_node_is_source(task.node))
                finish(req, lkg_view_file_open(req, task.node, fi));
        else if (writes && lkg_caller_is_notifier())
                finish(req, lkg_relay_open(req, fi));
        else
                finish(req, lkg_source_open_file(req, task.node, fi));
}

static void op_read(fuse_req_t req, fuse_ino_t ino, size_t size, off_t off, struct fuse_file_info *fi)
{
        struct lkg_node *base = behind(fi);

        finish(req, !base || lkg_node_is_source(base) ? lkg_source_read(req, size, off, fi)
                                                      : lkg_view_file_read(req, task.node, size, off));
}

static void op_write(fuse_req_t req, fuse_ino_t ino, const char *data, size_t size, off_t off,
                     struct fuse_file_info *fi)
{
        struct lkg_node *base = behind(fi);

        if (atomic_load(&task.node->kind) == LKG_NODE_CONTROL)
                finish(req, lkg_view_file_write(req, task.node, data, size));
        else if (!lkg_node_is_source(task.node) && !lkg_handle_is_file(fi->fh))
                finish(req, lkg_bad_write(req, task.node, data, size));
        else if (base && lkg_node_is_source(base))
                finish(req, lkg_source_write(req, base, data, size, off, fi));
        else
                finish(req, -EPERM);
}

/* A file of the source that is open, perhaps through a view file; NULL: flush and fsync have nothing to do. */
static struct lkg_node *written(const struct fuse_file_info *fi)
{
        struct lkg_node *node = behind(fi);

        return node && lkg_node_is_source(node) && lkg_handle_is_file(fi->fh) ? node : NULL;
}

static void op_flush(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
        struct lkg_node *base = written(fi);

        finish(req, base ? lkg_source_flush(base, fuse_req_ctx(req)->pid, fi) : 0);
}

static void op_fsync(fuse_req_t req, fuse_ino_t ino, int datasync, struct fuse_file_info *fi)
{
        struct lkg_node *base = written(fi);

        finish(req, base ? lkg_source_fsync(base, datasync, fi) : 0);
}

static void op_release(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
        struct lkg_node *base = task.node ? behind(fi) : NULL;
        bool through = task.node && lkg_handle_is_file(fi->fh) && (!base || lkg_node_is_source(base));

        if (through) {
                lkg_source_closed(fi->fh);
        } else {
                lkg_view_closed(fi->fh);
                if (!lkg_handle_is_file(fi->fh))
                        lkg_content_closed(ino);
                /* content; or a node that was forgotten before its files, which a real kernel does not do */
                lkg_file_close(fi->fh);
        }
        finish(req, 0);
        if (through && base != task.node)
                /* the kernel used the size of our reply as its size */
                lkg_kernel_invalidate_attributes(ino);
}

static void op_opendir(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
        fi->fh = lkg_handle_new(); /* evaluated at read(); an open alone allocates nothing */
        fuse_reply_open(req, fi);
}

static void op_readdir(fuse_req_t req, fuse_ino_t ino, size_t size, off_t off, struct fuse_file_info *fi)
{
        finish(req, lkg_listing_read(req, task.node, size, off, fi->fh));
}

static void op_releasedir(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
        lkg_listing_close(fi->fh);
        finish(req, 0);
}

static void op_fsyncdir(fuse_req_t req, fuse_ino_t ino, int datasync, struct fuse_file_info *fi)
{
        LKG_CLEANUP(lkg_closep) int fd = -EBADF;
        int r = 0;

        if (lkg_node_is_source(task.node))
                fd = lkg_source_open_node(task.node, O_RDONLY | O_DIRECTORY);
        if (fd >= 0 && (datasync ? fdatasync(fd) : fsync(fd)) < 0)
                r = -errno;
        finish(req, r);
}

static void op_statfs(fuse_req_t req, fuse_ino_t ino)
{
        struct statvfs st;
        int fd = task.node && lkg_node_is_source(task.node) ? lkg_node_fd(task.node) : server.source;

        if (fstatvfs(fd >= 0 ? fd : server.source, &st) < 0)
                finish(req, -errno);
        else
                fuse_reply_statfs(req, &st);
}

static void op_setxattr(fuse_req_t req, fuse_ino_t ino, const char *name, const char *value, size_t size,
                        int flags)
{
        finish(req, lkg_xattr_set(task.node, name, value, size, flags));
}

static void op_getxattr(fuse_req_t req, fuse_ino_t ino, const char *name, size_t size)
{
        finish(req, lkg_xattr_get(req, task.node, name, size));
}

static void op_listxattr(fuse_req_t req, fuse_ino_t ino, size_t size)
{
        finish(req, lkg_xattr_list(req, task.node, size));
}

static void op_removexattr(fuse_req_t req, fuse_ino_t ino, const char *name)
{
        finish(req, lkg_xattr_remove(task.node, name));
}

/* `lsattr` shows the immutable flag on files of the view. */
static void op_ioctl(fuse_req_t req, fuse_ino_t ino, unsigned int cmd, void *arg, struct fuse_file_info *fi,
                     unsigned flags, const void *in, size_t in_size, size_t out_size)
{
        const struct lkg_node *node = task.node;
        int immutable = FS_IMMUTABLE_FL;

        if (flags & FUSE_IOCTL_UNRESTRICTED)
                finish(req, -ENOTTY);
        else if (lkg_node_is_source(node))
                finish(req, lkg_source_ioctl(req, task.node, cmd, fi));
        else if (cmd == FS_IOC_GETFLAGS && atomic_load(&node->kind) == LKG_NODE_CONTENT &&
                 !lkg_publication_holds_bad(node))
                fuse_reply_ioctl(req, 0, &immutable, sizeof(immutable));
        else
                finish(req, cmd == FS_IOC_SETFLAGS ? -EPERM : -ENOTTY);
}

static void op_poll(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi, struct fuse_pollhandle *ph)
{
        if (ph)
                fuse_pollhandle_destroy(ph); /* frees only its memory: we keep the kernel's handle */
        lkg_view_poll(req, task.node);
}

static void op_fallocate(fuse_req_t req, fuse_ino_t ino, int mode, off_t off, off_t length,
                         struct fuse_file_info *fi)
{
        struct lkg_node *base = behind(fi);
        struct caller caller;
        int r = base ? lkg_file_fd(fi->fh) : -ESTALE;

        if (r >= 0) {
                lkg_caller_enter(fuse_req_ctx(req), &caller);
                r = fallocate(r, mode, off, length) < 0 ? -errno : 0;
                lkg_caller_leave(&caller);
        }
        if (r == 0)
                atomic_fetch_or(&base->dirty, LKG_DIRTY_WROTE);
        finish(req, r);
}

static void op_copy_file_range(fuse_req_t req, fuse_ino_t in, off_t in_off, struct fuse_file_info *in_fi,
                               fuse_ino_t out, off_t out_off, struct fuse_file_info *out_fi, size_t size,
                               int flags)
{
        const struct lkg_file *file = lkg_file_get(out_fi->fh);
        struct lkg_node *base = file ? lkg_node_get(file->node) : NULL;
        int from = lkg_file_fd(in_fi->fh), to = lkg_file_fd(out_fi->fh), error;
        struct caller caller;
        ssize_t n;

        if (!base || from < 0 || to < 0) {
                /* EXDEV: the caller reads and writes instead */
                finish(req, lkg_node_get(out) ? -EXDEV : -ESTALE);
                return;
        }
        lkg_caller_enter(fuse_req_ctx(req), &caller);
        n = copy_file_range(from, &in_off, to, &out_off, size, (unsigned)flags);
        error = errno;
        lkg_caller_leave(&caller);
        if (n < 0) {
                finish(req, -error);
                return;
        }
        atomic_fetch_or(&base->dirty, LKG_DIRTY_WROTE);
        fuse_reply_write(req, (size_t)n);
}

static void op_lseek(fuse_req_t req, fuse_ino_t ino, off_t off, int whence, struct fuse_file_info *fi)
{
        const struct lkg_node *node = task.node, *base = behind(fi);
        bool content = base && !lkg_node_is_source(base); /* has no holes */
        int fd = content ? -ESTALE : lkg_file_fd(fi->fh);
        off_t at = fd;

        if (content && (off < 0 || (uint64_t)off >= node->size))
                at = -ENXIO;
        else if (content)
                at = whence == SEEK_DATA ? off : (off_t)node->size;
        else if (fd >= 0 && (at = lseek(fd, off, whence)) < 0)
                at = -errno;
        if (at < 0)
                finish(req, (int)at);
        else
                fuse_reply_lseek(req, at);
}

const struct fuse_lowlevel_ops lkg_fuse_ops = {
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
