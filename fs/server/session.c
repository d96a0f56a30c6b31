/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libfuse and the device. libfuse only decodes requests and encodes replies: we read the device ourselves (into the
 * journal) and every reply passes send_reply(), which keeps it in the journal where that matters, or parks it.
 *
 * The connection was negotiated by the supervisor (lkg_init_answer()); a server that would answer differently exits 77,
 * because a connection cannot be negotiated twice.
 * Source: libfuse lib/fuse_lowlevel.c (process_buf, fuse_send_msg), 3.10 to 3.18; <linux/fuse.h>.
 */
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "requests.h"

static void keep_reply(const struct iovec *iov, int count, char *to)
{
        for (int i = 0; i < count; i++) {
                memcpy(to, iov[i].iov_base, iov[i].iov_len);
                to += iov[i].iov_len;
        }
}

static ssize_t send_reply(const struct iovec *iov, int count)
{
        const struct fuse_out_header *out = iov[0].iov_base;
        size_t total = 0;
        ssize_t n;

        for (int i = 0; i < count; i++)
                total += iov[i].iov_len;
        if (task.swallow || (out->unique != 0 && task.again)) {
                task.swallow = false;
                return (ssize_t)total; /* not an answer, or not yet */
        }
        if (out->unique != 0 && task.slot && !lkg_slot_claim(task.slot)) {
                task.lost = true;
                return (ssize_t)total;
        }
        if (out->unique != 0 && task.park && total <= LKG_REPLY_MAX) {
                keep_reply(iov, count, task.park->reply);
                task.park->reply_size = (uint32_t)total;
                task.park->unique = out->unique;
                return (ssize_t)total;
        }
        if (out->unique != 0 && task.slot && total <= LKG_REPLY_MAX) {
                keep_reply(iov, count, task.slot->reply);
                atomic_store_explicit(&task.slot->reply_size, (uint32_t)total, memory_order_release);
        }
        n = syscall(SYS_writev, server.device, iov, count);
        if (out->unique != 0)
                atomic_fetch_add_explicit(&server.shm->served, 1, memory_order_relaxed);
        return n;
}

/*
 * libfuse answers by writev(2), and a program's own writev() comes before that of libc. What it has for this, fuse_session_custom_io(), is
 * not in libfuse before 3.14, and not in Debian's 3.18.3. replay_init() sees whether it works.
 */
__attribute__((visibility("default"))) ssize_t writev(int fd, const struct iovec *iov, int count)
{
        return server.session && fd == server.device ? send_reply(iov, count)
                                                     : syscall(SYS_writev, fd, iov, count);
}

static int new_session(struct lkg_error *err)
{
        char name[] = "lkgfs-fs";
        char *argv[] = { name, NULL };
        struct fuse_args args = FUSE_ARGS_INIT(1, argv);
        char device[sizeof("/dev/fd/") + 11];

        server.session = fuse_session_new(&args, &lkg_fuse_ops, sizeof(lkg_fuse_ops), NULL);
        fuse_opt_free_args(&args); /* libfuse has made them its own */
        if (!server.session)
                return lkg_error_set(err, -ENOMEM, NULL, "libfuse session");
        (void)snprintf(device, sizeof(device), "/dev/fd/%d", server.device);
        if (fuse_session_mount(server.session, device) != 0)
                return lkg_error_set(err, -EINVAL, NULL, "libfuse with %s", device);
        return 0;
}

/* libfuse has to see it, too; what it would answer is dropped. Return: 0; -ENOTSUP: its answers do not come by writev(). */
static int replay_init(const void *request, size_t size)
{
        char copy[LKG_INIT_MAX];
        struct fuse_buf buf = { .size = size, .mem = copy };

        memcpy(copy, request, size);
        task.swallow = true;
        fuse_session_process_buf(server.session, &buf);
        return task.swallow ? -ENOTSUP : 0;
}

int lkg_session_open(struct lkg_error *err)
{
        const struct lkg_shared *shm = server.shm;
        unsigned char ours[LKG_INIT_MAX];
        uint32_t size = lkg_init_answer(shm->init.request, shm->init.request_size, ours);
        int r;

        if (size == 0)
                return lkg_error_set(err, -EPROTO, NULL,
                                     "the shared memory is not what a supervisor leaves.");
        if (size != shm->init.reply_size || memcmp(ours, shm->init.reply, size) != 0)
                return lkg_error_set(
                        err, -EPROTO, NULL,
                        "the mount was made by another build of lkgfs-fs: unmount and mount again");
        r = new_session(err);
        if (r < 0)
                return r;
        r = replay_init(shm->init.request, shm->init.request_size);
        if (r < 0)
                return lkg_error_set(err, r, NULL, "libfuse %s answers in another way than by writev()",
                                     fuse_pkgversion());
        server.maps_directly = lkg_init_maps_directly(ours);
        return 0;
}

/* ---- one request ---- */

/* Handles one request, in any thread: through libfuse, except for requests that are faster without it. */

/* A reply without a body. */
void lkg_request_reply_code(uint64_t unique, int error)
{
        struct fuse_out_header out = { .len = sizeof(out), .error = error, .unique = unique };

        lkg_kernel_send_raw(&out, sizeof(out));
}

void lkg_request_handle(struct lkg_slot *slot, size_t size)
{
        struct fuse_in_header *header = (void *)slot->buf;
        struct fuse_buf buf = { .size = size, .mem = slot->buf };
        int r;

        task.slot = slot;
        task.park = NULL;
        task.again = task.lost = false;
        task.notifiers = lkg_is_notifier((int)header->pid);
        if (header->opcode == FUSE_RELEASE &&
            ((const struct fuse_release_in *)lkg_task_argument())->fh == 0) {
                lkg_content_closed(header->nodeid); /* opened by root; a third of all its requests */
                lkg_request_reply_code(header->unique, 0);
        } else if ((r = lkg_ops_refuse(header)) < 0) {
                lkg_request_reply_code(header->unique, r);
        } else {
                fuse_session_process_buf(server.session, &buf);
        }
        if (task.park)
                lkg_link_submit(task.park); /* it has the reply */
        task.slot = NULL;
}
