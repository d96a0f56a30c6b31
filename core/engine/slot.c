/* SPDX-License-Identifier: Apache-2.0 */
/* One file of the view, as the next publication shows it. */
#include "slot.h"

void lkg_slot_clear(struct lkg_publisher *p, struct lkg_file_slot *slot)
{
        slot->blob = lkg_blob_unref(&p->blobs, slot->blob);
        slot->mtime_ns = 0;
}

/* New content for a slot; the same content keeps its time. */
int lkg_slot_fill(struct lkg_publisher *p, struct lkg_file_slot *slot, const void *data, size_t size,
                  uint64_t mtime_ns, struct lkg_error *err)
{
        struct lkg_blob *blob;
        int r = lkg_blob_put(&p->blobs, data, size, &blob, err);

        if (r < 0)
                return r;
        if (blob != slot->blob)
                slot->mtime_ns = mtime_ns;
        lkg_blob_unref(&p->blobs, slot->blob);
        slot->blob = blob;
        return 0;
}

int lkg_slot_fill_buf(struct lkg_publisher *p, struct lkg_file_slot *slot, struct lkg_buf *buf,
                      uint64_t mtime_ns, struct lkg_error *err)
{
        int r = lkg_buf_failed(buf)
                        ? lkg_error_set(err, -ENOMEM, NULL, "render")
                        : lkg_slot_fill(p, slot, buf->data ? buf->data : "", buf->size, mtime_ns, err);

        lkg_buf_deinit(buf);
        return r;
}

/* ---- one component ---- */
