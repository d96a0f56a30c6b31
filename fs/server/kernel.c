/* SPDX-License-Identifier: Apache-2.0 */
/* Messages to the kernel without libfuse: recorded replies, and names that it must forget. <linux/fuse.h>. */
#include <sys/uio.h>

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
        size_t size = strlen(name);
        struct fuse_notify_inval_entry_out inval = { .parent = parent, .namelen = (uint32_t)size };
        struct fuse_out_header header = { .len = (uint32_t)(sizeof(header) + sizeof(inval) + size + 1),
                                          .error = FUSE_NOTIFY_INVAL_ENTRY };
        const struct iovec iov[] = { { &header, sizeof(header) },
                                     { &inval, sizeof(inval) },
                                     { (void *)name, size + 1 } };

        (void)!writev(server.device, iov, LKG_ARRAY_SIZE(iov)); /* ENOENT: the kernel no longer knows it */
}

bool lkg_kernel_knows(uint64_t node)
{
        return invalidate(node) != -ENOENT;
}

/* ---- globals ---- */

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
