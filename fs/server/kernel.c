/* SPDX-License-Identifier: Apache-2.0 */
/* Messages to the kernel without libfuse: recorded replies, and names that it must forget. <linux/fuse.h>. And what it has cached. */
#include <limits.h>
#include <sys/sysmacros.h>

#include "file-server.h"

void lkg_kernel_send_raw(const void *data, size_t size)
{
        const struct fuse_out_header *out = data;

        /* ENOENT: already answered (by a predecessor), or the notification found nothing. Both are fine. */
        if (write(server.device, data, size) < 0 && errno != ENOENT && errno != ENODEV && errno != EINTR)
                lkg_log_debug("reply %llu: %m", (unsigned long long)out->unique);
        if (out->unique != 0)
                atomic_fetch_add_explicit(&server.shm->served, 1, memory_order_relaxed);
}

static int invalidate(uint64_t node)
{
        struct {
                struct fuse_out_header header;
                struct fuse_notify_inval_inode_out inval;
        } message = {
                .header = { .len = sizeof(message), .error = FUSE_NOTIFY_INVAL_INODE },
                .inval = { .ino = node, .off = -1 },
        };

        return write(server.device, &message, sizeof(message)) < 0 ? -errno : 0;
}

void lkg_kernel_invalidate_attributes(uint64_t node)
{
        (void)invalidate(node);
}

void lkg_kernel_forget_name(uint64_t parent, const char *name)
{
        struct {
                struct fuse_out_header header;
                struct fuse_notify_inval_entry_out inval;
                char name[NAME_MAX + 1];
        } message = { .header.error = FUSE_NOTIFY_INVAL_ENTRY, .inval.parent = parent };
        size_t size = strnlen(name, NAME_MAX);

        memcpy(message.name, name, size);
        message.inval.namelen = (uint32_t)size;
        message.header.len = (uint32_t)(offsetof(typeof(message), name) + size + 1);
        /* ENOENT: the kernel no longer knows it */
        (void)!write(server.device, &message, message.header.len);
}

bool lkg_kernel_knows(uint64_t node)
{
        return invalidate(node) != -ENOENT;
}

int lkg_source_stat(int dirfd, const char *name, int flags, struct stat *ret)
{
        struct statx x;

        if (statx(dirfd, name, flags | AT_STATX_DONT_SYNC | AT_NO_AUTOMOUNT, STATX_BASIC_STATS, &x) < 0)
                return -errno;
        *ret = (struct stat){
                .st_dev = makedev(x.stx_dev_major, x.stx_dev_minor),
                .st_ino = x.stx_ino,
                .st_mode = x.stx_mode,
                .st_nlink = x.stx_nlink,
                .st_uid = x.stx_uid,
                .st_gid = x.stx_gid,
                .st_rdev = makedev(x.stx_rdev_major, x.stx_rdev_minor),
                .st_size = (off_t)x.stx_size,
                .st_blksize = (blksize_t)x.stx_blksize,
                .st_blocks = (blkcnt_t)x.stx_blocks,
                .st_atim = { .tv_sec = x.stx_atime.tv_sec, .tv_nsec = x.stx_atime.tv_nsec },
                .st_mtim = { .tv_sec = x.stx_mtime.tv_sec, .tv_nsec = x.stx_mtime.tv_nsec },
                .st_ctim = { .tv_sec = x.stx_ctime.tv_sec, .tv_nsec = x.stx_ctime.tv_nsec },
        };
        return 0;
}

/* The server of this process. */
struct lkg_server server = {
        .device = -EBADF,
        .shared_fd = -EBADF,
        .source = -EBADF,
        .runtime = -EBADF,
        .blobs = -EBADF,
        .pinned = -EBADF,
        .listen = -EBADF,
        .supervisor = -EBADF,
        .engine = -EBADF,
        .publication_lock = PTHREAD_MUTEX_INITIALIZER,
        .parked_lock = PTHREAD_MUTEX_INITIALIZER,
        .nodes_lock = PTHREAD_MUTEX_INITIALIZER,
        .files_lock = PTHREAD_MUTEX_INITIALIZER,
        .kept_lock = PTHREAD_MUTEX_INITIALIZER,
};
