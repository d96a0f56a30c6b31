/* SPDX-License-Identifier: Apache-2.0 */
/* Handles one request, in any thread: through libfuse, except for requests that are faster without it. */
#include "held-requests.h"

/* A reply without a body. */
void request_reply_code(uint64_t unique, int error)
{
        struct fuse_out_header out = { .len = sizeof(out), .error = error, .unique = unique };

        kernel_send_raw(&out, sizeof(out));
}

void request_handle(struct lkg_slot *slot, size_t size)
{
        struct fuse_in_header *header = (void *)slot->buf;
        struct fuse_buf buf = { .size = size, .mem = slot->buf };

        task.slot = slot;
        task.park = NULL;
        task.again = task.lost = false;
        if (header->opcode == FUSE_INTERRUPT) {
                interrupt_request(header);
        } else if (header->opcode == FUSE_RELEASE &&
                   ((const struct fuse_release_in *)task_argument())->fh == 0) {
                content_closed(header->nodeid); /* opened by root; a third of all its requests */
                request_reply_code(header->unique, 0);
        } else {
                fuse_session_process_buf(server.session, &buf);
        }
        task.slot = NULL;
}
