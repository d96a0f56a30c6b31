/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The pass-through: open files. Whether a close (FLUSH), fsync or writeback must be reported to the engine is recorded in the
 * node, not in the handle: a shell closes a duplicate before the first write, and writeback may use any handle
 * (docs/specification.md 2.4).
 */
#include <fcntl.h>
#include <limits.h>
#include <linux/fs.h>
#include <sys/ioctl.h>

#include "file-server.h"

int lkg_source_open_node(struct lkg_node *node, int flags)
{
        int fd = lkg_node_fd(node);
        char path[FD_PATH_MAX];

        return fd < 0 ? fd
                      : lkg_source_open_path(lkg_fd_path(fd, path), flags & ~(LKG_OPEN_ONCE & ~O_TRUNC));
}

/*
 * The kernel keeps no content of these files: what changes behind the mount, it would learn too late. Timestamps have the granularity of a
 * clock tick, and a store into a mapping may change none; and of two replies with attributes the one that arrives last counts, not the newer.
 * Before Linux 6.6 such a file cannot be mapped shared, so a writer's pages are kept there, and checked at each open.
 */
static int open_file(uint32_t record, struct lkg_node *node, struct fuse_file_info *fi)
{
        bool writes = (fi->flags & (O_ACCMODE | O_TRUNC)) != O_RDONLY; /* O_RDONLY | O_TRUNC truncates */
        int fd = lkg_source_open_node(node, fi->flags);

        if (fd < 0)
                return fd;
        fi->noflush = !writes;
        fi->direct_io = !writes || server.maps_directly;
        if (fi->flags & O_TRUNC) {
                atomic_fetch_or(&node->dirty, LKG_DIRTY_TRUNCATED);
                lkg_relay_end(node->parent, node->name);
        }
        fi->fh = lkg_file_fill(record, node, fi->flags, fd);
        return 0;
}

int lkg_source_open_file(fuse_req_t req, struct lkg_node *node, struct fuse_file_info *fi)
{
        struct caller caller = { 0 };
        uint32_t record;
        int r = lkg_file_reserve(fuse_req_ctx(req), &record);

        if (r < 0)
                return r;
        if (fi->flags & O_TRUNC) {
                lkg_relay_begin(node->parent, node->name);
                lkg_file_announce_writer(node, 1); /* before the truncation: see take_truncation() */
                lkg_caller_enter(fuse_req_ctx(req), &caller); /* a write by root keeps the set-id bits */
        }
        r = open_file(record, node, fi);
        lkg_caller_leave(&caller);
        if (r == 0 && !fi->noflush)
                lkg_file_opened_by(fi->fh, fuse_req_ctx(req)->pid);
        if (r < 0)
                lkg_file_give_back(record);
        if (fi->flags & O_TRUNC)
                lkg_file_announce_writer(node, -1);
        if (r < 0)
                return r;
        fuse_reply_open(req, fi);
        if (task.lost)
                lkg_file_close(fi->fh);
        return REPLIED;
}

int lkg_source_read(fuse_req_t req, size_t size, off_t off, struct fuse_file_info *fi)
{
        int fd = lkg_file_fd(fi->fh);
        ssize_t n;

        if (fd < 0)
                return fd;
        n = pread(fd, task.buf, size < LKG_MAX_WRITE ? size : LKG_MAX_WRITE, off);
        if (n < 0)
                return -errno;
        fuse_reply_buf(req, task.buf, (size_t)n);
        return REPLIED;
}

/* Repeating an append is the one write that does not have the same effect as the first. */
static ssize_t append(int fd, const char *data, size_t size)
{
        struct lkg_intent *intent = &task.slot->intent;
        struct stat st;

        if (fstat(fd, &st) < 0)
                return -errno;
        if (task.replay && intent->valid && (uint64_t)st.st_size >= intent->size + size)
                return (ssize_t)size;
        intent->size = (uint64_t)st.st_size;
        atomic_thread_fence(memory_order_release);
        intent->valid = 1;
        return write(fd, data, size);
}

/* A page of a mapping is written at its offset, even if the kernel chose a handle with O_APPEND. */
static ssize_t write_back(struct lkg_node *node, const char *data, size_t size, off_t off)
{
        LKG_CLEANUP(lkg_closep) int fd = lkg_source_open_node(node, O_WRONLY);

        if (fd < 0) {
                errno = -fd;
                return -1;
        }
        return pwrite(fd, data, size, off);
}

int lkg_source_write(fuse_req_t req, struct lkg_node *node, const char *data, size_t size, off_t off,
                     struct fuse_file_info *fi)
{
        const struct lkg_file *file = lkg_file_get(fi->fh);
        struct caller caller;
        char path[PATH_MAX];
        int fd = lkg_file_fd(fi->fh), error;
        ssize_t n;

        if (fd < 0)
                return fd;
        lkg_caller_enter(fuse_req_ctx(req),
                         &caller); /* blocks that are reserved for root are not available to others */
        if (file->flags & O_APPEND && fi->writepage)
                n = write_back(node, data, size, off);
        else if (file->flags & O_APPEND)
                n = append(fd, data, size);
        else
                n = pwrite(fd, data, size, off);
        error = errno;
        lkg_caller_leave(&caller);
        if (n < 0)
                return -error;
        if (!fi->writepage)
                atomic_fetch_or(&node->dirty, LKG_DIRTY_WROTE);
        else if (lkg_node_path(node, path, sizeof(path)) == 0)
                /* of a mapping, perhaps after its descriptor was closed: no request follows */
                lkg_source_park(path, path);
        fuse_reply_write(req, (size_t)n);
        return REPLIED;
}

/*
 * A written layer is judged before the reply. A reader cannot declare a writer's file complete, whatever it calls. A replayed request
 * commits again, because it is unknown whether it already had.
 */
static void commit(struct lkg_node *node, const struct fuse_file_info *fi)
{
        const struct lkg_file *file = lkg_file_get(fi->fh);
        char path[PATH_MAX];
        uint32_t dirty;

        if (!file || (file->flags & O_ACCMODE) == O_RDONLY)
                return;
        dirty = atomic_fetch_and(&node->dirty, ~(uint32_t)(LKG_DIRTY_WROTE | LKG_DIRTY_TRUNCATED));
        if (!(dirty & LKG_DIRTY_WROTE) && !task.replay) {
                atomic_fetch_or(&node->dirty,
                                dirty); /* only truncated so far: a shell flushes before it writes */
                return;
        }
        lkg_relay_end(node->parent, node->name);
        if (lkg_node_path(node, path, sizeof(path)) == 0)
                lkg_source_park(path, path);
}

/* @tid: who closes a descriptor. One that it inherited is not that of the writer, who goes on: `{ cat a; cat b; } > file`. */
int lkg_source_flush(struct lkg_node *node, int tid, struct fuse_file_info *fi)
{
        int fd = lkg_file_fd(fi->fh);

        /* close() of a duplicate reports the errors that a network file system reports at close. */
        if (fd >= 0 && (fd = fcntl(fd, F_DUPFD_CLOEXEC, 3)) >= 0 && close(fd) < 0)
                return -errno;
        if (!lkg_file_is_inherited(fi->fh, tid))
                commit(node, fi);
        return 0;
}

int lkg_source_fsync(struct lkg_node *node, int datasync, struct fuse_file_info *fi)
{
        int fd = lkg_file_fd(fi->fh);

        if (fd < 0)
                return fd;
        if ((datasync ? fdatasync(fd) : fsync(fd)) < 0)
                return -errno;
        commit(node, fi);
        return 0;
}

/*
 * Is there a truncation that only this close can report? Check the mark first, then the writers: a
 * truncating writer is counted before it sets the mark. The last thread that sets the mark again repeats the
 * check.
 */
static bool take_truncation(struct lkg_node *node)
{
        do {
                if (!(atomic_fetch_and(&node->dirty, ~(uint32_t)LKG_DIRTY_TRUNCATED) & LKG_DIRTY_TRUNCATED))
                        return false;
                if (atomic_load(&node->n_writers) == 0)
                        return true;
                atomic_fetch_or(&node->dirty, LKG_DIRTY_TRUNCATED);
        } while (atomic_load(&node->n_writers) == 0);
        return false;
}

/*
 * Asynchronous: another open, even another write, may have happened since the close. So "written" stays set
 * for the flush that will follow; only what no flush reports, a truncation without a write, is reported
 * here, and only by the last writer: a file that was truncated to be rewritten is not empty but unfinished.
 */
void lkg_source_closed(uint64_t fh)
{
        LKG_CLEANUP(lkg_publication_putp) struct publication_ref *ref = NULL;
        const struct lkg_file *file = lkg_file_get(fh);
        struct lkg_node *node = file ? lkg_node_get(file->node) : NULL;
        bool writer = file && (file->flags & O_ACCMODE) != O_RDONLY;
        uid_t uid = lkg_file_opener(fh); /* a release does not identify the caller */
        char path[PATH_MAX];

        if (!node) {
                lkg_file_close(fh);
                return;
        }
        if (writer)
                lkg_relay_end(node->parent, node->name);
        atomic_fetch_add(&node->nlookup, 1); /* the kernel may forget it as soon as the file is closed */
        lkg_file_close(fh);
        if (writer && take_truncation(node) && lkg_node_path(node, path, sizeof(path)) == 0) {
                ref = lkg_publication_get();
                if (lkg_publication_commits(ref->publication, path))
                        lkg_link_changed(path, uid);
        }
        lkg_node_forget(node, 1);
}

/* lsattr and similar; ioctls that change something are refused (documented: no chattr). */
int lkg_source_ioctl(fuse_req_t req, struct lkg_node *node, unsigned cmd, struct fuse_file_info *fi)
{
        LKG_CLEANUP(lkg_closep) int own = -EBADF;
        int fd = lkg_file_fd(fi->fh), flags = 0;

        if (fi->fh != 0 && !lkg_handle_is_file(fi->fh)) /* a directory */
                fd = own = lkg_source_open_node(node, O_RDONLY | O_DIRECTORY);
        if (cmd != FS_IOC_GETFLAGS || fd < 0)
                return -ENOTTY;
        if (ioctl(fd, FS_IOC_GETFLAGS, &flags) < 0)
                return -errno;
        fuse_reply_ioctl(req, 0, &flags, sizeof(flags));
        return REPLIED;
}
