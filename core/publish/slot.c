/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One file of the view, as the next publication shows it: a separate blob, or a part of the pack of that
 * publication.
 */
#include <lkg/base.h>

#include "publisher.h"

void lkg_slot_clear(struct lkg_publisher *p, struct lkg_file_slot *slot)
{
        slot->blob = lkg_blob_unref(&p->blobs, slot->blob);
        slot->mtime_ns = 0;
}

/* Sets new content of a slot; equal content keeps its time. */
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

/* ---- parts of a pack ---- */

static int add_part(struct lkg_pack *pack, const struct lkg_pending_part *part)
{
        if (LKG_RESERVE(pack->parts, pack->n_parts, pack->n_allocated) < 0)
                return -ENOMEM;
        pack->parts[pack->n_parts++] = *part;
        return 0;
}

static int fill_part(struct lkg_publisher *p, struct lkg_part_slot *slot, const struct lkg_buf *buf,
                     uint64_t mtime_ns)
{
        struct lkg_pending_part part = { slot, { .file = { .mtime_ns = mtime_ns }, .size = buf->size } };
        int r = lkg_buf_failed(buf) ? -ENOMEM : lkg_sha256_hex(buf->data, buf->size, part.now.sha256);

        if (r < 0)
                return r;
        if (slot->file.blob && strcmp(slot->sha256, part.now.sha256) == 0)
                return 0;
        part.now.offset = p->pack.bytes.size;
        lkg_buf_append(&p->pack.bytes, buf->data, buf->size);
        return lkg_buf_failed(&p->pack.bytes) ? -ENOMEM : add_part(&p->pack, &part);
}

int lkg_part_fill(struct lkg_publisher *p, struct lkg_part_slot *slot, struct lkg_buf *buf,
                  uint64_t mtime_ns, struct lkg_error *err)
{
        int r;

        if (buf->size > LKG_PART_BYTES_MAX) {
                slot->sha256[0] = '\0';
                return lkg_slot_fill_buf(p, &slot->file, buf, mtime_ns, err);
        }
        r = fill_part(p, slot, buf, mtime_ns);
        lkg_buf_deinit(buf);
        return r < 0 ? lkg_error_set(err, r, NULL, "render") : 0;
}

void lkg_pack_drop(struct lkg_publisher *p)
{
        lkg_buf_deinit(&p->pack.bytes);
        p->pack.n_parts = 0;
}

/* Named by the digests of its parts, which are already known. */
static int write_pack(struct lkg_publisher *p, struct lkg_blob **ret, struct lkg_error *err)
{
        LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf digests = LKG_BUF_INIT;
        char name[LKG_SHA256_HEX];
        int r;

        for (size_t i = 0; i < p->pack.n_parts; i++)
                lkg_buf_puts(&digests, p->pack.parts[i].now.sha256);
        r = lkg_buf_failed(&digests) ? -ENOMEM : lkg_sha256_hex(digests.data, digests.size, name);
        if (r < 0)
                return lkg_error_set(err, r, NULL, "pack");
        return lkg_blob_put_as(&p->blobs, name, p->pack.bytes.data, p->pack.bytes.size, ret, err);
}

int lkg_pack_finish(struct lkg_publisher *p, struct lkg_error *err)
{
        struct lkg_blob *blob;
        int r = p->pack.n_parts > 0 ? write_pack(p, &blob, err) : 0;

        for (size_t i = 0; r >= 0 && i < p->pack.n_parts; i++) {
                struct lkg_pending_part *part = &p->pack.parts[i];

                lkg_blob_unref(&p->blobs, part->slot->file.blob);
                *part->slot = part->now;
                part->slot->file.blob = lkg_blob_ref(blob);
        }
        if (r >= 0 && p->pack.n_parts > 0)
                lkg_blob_unref(&p->blobs, blob);
        lkg_pack_drop(p);
        return r < 0 ? r : 0;
}
