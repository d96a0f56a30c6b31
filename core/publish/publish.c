/* SPDX-License-Identifier: Apache-2.0 */
/* Rendering, blobs, manifest, and removal of old blobs: see <lkg/publish.h>. */
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>

#include <lkg/base.h>
#include <lkg/component.h>
#include <lkg/file.h>

#include "publisher.h"

#define INSERTIONS_MAX 64 /* entries out of order before all are sorted */

/* ---- slots ---- */

/* Wall time. For a generation that a rollback has pinned, the time of the rollback. */
static uint64_t served_since(const struct lkg_component *c)
{
        const struct lkg_hold *hold = &c->state.hold;
        uint64_t pinned_ns = hold->mode == LKG_HOLD_ROLLBACK && hold->generation == c->active->number
                                     ? c->state.held_by.time_ns
                                     : 0;

        return pinned_ns > c->active->time_ns ? pinned_ns : c->active->time_ns;
}

static int render_status(struct lkg_publisher *p, const struct lkg_snapshot *in, size_t index,
                         struct lkg_error *err)
{
        const struct lkg_snapshot_component *now = &in->components[index];
        const struct lkg_component *c = now->component;
        struct lkg_shown *shown = &p->shown[index];
        const struct lkg_status_context x = {
                .config = in->config,
                .component = c,
                .remote = now->remote,
                .findings = in->findings,
                .publication = p->number + 1,
                .now_ns = in->now_ns,
                .good_has_base = shown->good_has_base,
                .layers_cut = shown->layers_cut,
        };
        unsigned changed = now->changed | LKG_DIRTY_EVER;

        for (size_t i = 0; i < lkg_n_status_files; i++) {
                const struct lkg_status_file *f = &lkg_status_files[i];
                struct lkg_part_slot *slot = &shown->status[i];
                struct lkg_buf buf = LKG_BUF_INIT;
                bool first = !slot->file.blob;
                int r;

                if (!(f->depends & changed) && (!first || f->optional))
                        continue;
                f->render(&x, &buf);
                if (f->optional && buf.size == 0 && !lkg_buf_failed(&buf)) {
                        lkg_slot_clear(p, &slot->file);
                        continue;
                }
                r = lkg_part_fill(p, slot, &buf,
                                  f->dated && first && c->active ? served_since(c) : in->now_ns, err);
                if (r < 0)
                        return r;
        }
        return 0;
}

/* lkg/: what a rollback would serve now; usually the served document. */
static int render_good(struct lkg_publisher *p, const struct lkg_snapshot *in, const struct lkg_component *c,
                       struct lkg_shown *shown, struct lkg_error *err)
{
        LKG_CLEANUP(lkg_generation_unrefp) struct lkg_generation *good = NULL;
        const struct lkg_generation *served;
        int r = lkg_component_good_generation(c, &good);

        if (r < 0)
                return lkg_error_set(err, r, NULL, "last known good");
        served = good ? good : c->active;
        shown->good_has_base = good ? good->has_base : lkg_component_served_has_base(c);
        if (!served) {
                lkg_slot_clear(p, &shown->good_document);
                return 0;
        }
        r = lkg_slot_fill(p, &shown->good_document, served->document.data, served->document.size, in->now_ns,
                          err);
        if (r >= 0 && !good)
                shown->good_document.mtime_ns = served->time_ns;
        return r;
}

static void clear_bad(struct lkg_publisher *p, struct lkg_shown *shown)
{
        for (size_t i = 0; i < shown->n_bad; i++) {
                lkg_slot_clear(p, &shown->bad[i].slot);
                free(shown->bad[i].id);
        }
        free(shown->bad);
        shown->bad = NULL;
        shown->n_bad = 0;
}

static int render_bad(struct lkg_publisher *p, const struct lkg_component *c, struct lkg_shown *shown,
                      struct lkg_error *err)
{
        const struct lkg_bad_list *list = c->dynamic ? &c->dynamic->bad : NULL;
        size_t n = list ? list->n_items : 0;
        int r = 0;

        clear_bad(p, shown);
        shown->bad = calloc(n + 1, sizeof(*shown->bad));
        if (!shown->bad)
                return lkg_error_set(err, -ENOMEM, NULL, "bad list");
        for (size_t i = 0; r >= 0 && i < n; i++) {
                struct lkg_buf buf = LKG_BUF_INIT;
                struct lkg_bad_slot *slot = &shown->bad[shown->n_bad];

                lkg_bad_format(&list->items[i], &buf);
                r = lkg_slot_fill_buf(p, &slot->slot, &buf, list->items[i].time_ns, err);
                slot->id = r < 0 ? NULL : strdup(list->items[i].id);
                if (r >= 0 && !slot->id)
                        r = lkg_error_set(err, -ENOMEM, NULL, "bad list");
                shown->n_bad++;
        }
        return r;
}

static int render_document(struct lkg_publisher *p, const struct lkg_generation *active,
                           struct lkg_file_slot *slot, struct lkg_error *err)
{
        int r;

        if (!active) {
                lkg_slot_clear(p, slot);
                return 0;
        }
        r = lkg_slot_fill(p, slot, active->document.data, active->document.size, active->time_ns, err);
        if (r >= 0)
                slot->mtime_ns = active->time_ns;
        return r;
}

static int render_component(struct lkg_publisher *p, const struct lkg_snapshot *in, size_t i,
                            struct lkg_error *err)
{
        struct lkg_snapshot_component *now = &in->components[i];
        const struct lkg_component *c = now->component;
        struct lkg_shown *shown = &p->shown[i];
        int r = 0;

        if (now->changed & LKG_DIRTY_ACTIVE)
                r = render_document(p, c->active, &shown->document, err);
        if (r >= 0 && (now->changed & LKG_DIRTY_LAYERS)) /* the rest stays marked and follows later */
                r = lkg_publish_component_layers(
                        p, in, i, shown->status[0].file.blob ? LKG_LAYERS_AT_ONCE : LKG_LAYERS_AT_FIRST,
                        err);
        if (r >= 0 && (now->changed & LKG_DIRTY_HISTORY))
                r = lkg_publish_component_history(p, c, shown, err);
        if (r >= 0 && (now->changed & (LKG_DIRTY_ACTIVE | LKG_DIRTY_CANDIDATE | LKG_DIRTY_DYNAMIC)))
                r = render_good(p, in, c, shown, err);
        if (r >= 0 && (now->changed & LKG_DIRTY_BAD))
                r = render_bad(p, c, shown, err);
        if (r >= 0)
                r = render_status(p, in, i, err);
        if (r >= 0 && (now->changed & ~(unsigned)LKG_DIRTY_EVER || !shown->changed_ns))
                shown->changed_ns = in->now_ns;
        return r;
}

/* ---- the manifest ---- */

struct builder {
        const struct lkg_snapshot *in;
        struct lkg_entry *entries;
        struct lkg_blob **blobs; /* with the same index; borrowed; NULL for directories and control files */
        size_t n, n_allocated, n_expected;
        uint64_t dirs_ns;
        bool no_memory;
};

static void add_entry(struct builder *b, struct lkg_entry entry, struct lkg_blob *blob, const char *fmt, ...)
        LKG_PRINTF(4, 5);
static void add_entry(struct builder *b, struct lkg_entry entry, struct lkg_blob *blob, const char *fmt, ...)
{
        const char *top = b->in->config->virtual_dir;
        char path[2 * PATH_MAX], *copy;
        size_t n =
                entry.flags & LKG_ENTRY_VIEW || !*top ? 0 : (size_t)snprintf(path, sizeof(path), "%s/", top);
        va_list ap;

        va_start(ap, fmt);
        (void)vsnprintf(path + n, sizeof(path) - n, fmt, ap);
        va_end(ap);
        if (b->n == b->n_allocated) {
                size_t more = b->n_allocated ? 2 * b->n_allocated : b->n_expected + 64;

                if (LKG_RESIZE(b->entries, more) < 0 || LKG_RESIZE(b->blobs, more) < 0) {
                        b->no_memory = true;
                        return;
                }
                b->n_allocated = more;
        }
        copy = strdup(path);
        if (!copy) {
                b->no_memory = true;
                return;
        }
        entry.path = copy;
        b->entries[b->n] = entry;
        b->blobs[b->n++] = blob;
}

static void add_dir(struct builder *b, uint32_t mode, uint64_t mtime_ns, const char *first,
                    const char *second, const char *third)
{
        const struct lkg_entry entry = {
                .type = LKG_ENTRY_DIR, .mode = mode, .mtime_ns = (int64_t)mtime_ns, .component = UINT_MAX
        };

        add_entry(b, entry, NULL, "%s%s%s%s%s", first, second ? "/" : "", second ? second : "",
                  third ? "/" : "", third ? third : "");
}

static struct lkg_entry file_entry(const struct lkg_component *c, const struct lkg_file_slot *slot,
                                   uint32_t mode, uint32_t uid, uint32_t gid, unsigned flags,
                                   uint64_t generation)
{
        struct lkg_entry entry = {
                .type = LKG_ENTRY_FILE,
                .mode = mode,
                .uid = uid,
                .gid = gid,
                .mtime_ns = (int64_t)slot->mtime_ns,
                .size = slot->blob->size,
                .flags = flags,
                .component = c->index,
                .generation = generation,
        };

        memcpy(entry.sha256, slot->blob->sha256, LKG_SHA256_HEX);
        return entry;
}

static struct lkg_entry document_entry(const struct lkg_component *c, const struct lkg_file_slot *slot,
                                       uint64_t generation)
{
        return file_entry(c, slot, c->config->mode, c->config->uid, c->config->gid, 0, generation);
}

static void add_view(struct builder *b, const struct lkg_component *c, const struct lkg_shown *shown)
{
        unsigned flags =
                LKG_ENTRY_VIEW | (c->config->base_writes == LKG_BASE_WRITES_THROUGH ? LKG_ENTRY_THROUGH : 0);
        struct lkg_entry entry;

        if (!c->active || !shown->document.blob)
                return;
        entry = file_entry(c, &shown->document, c->config->mode, c->config->uid, c->config->gid, flags,
                           c->active->number);
        add_entry(b, entry, shown->document.blob, "%s", c->config->file);
        for (size_t i = 0; i < c->config->aliases.n_items; i++)
                add_entry(b, entry, shown->document.blob, "%s", c->config->aliases.items[i]);
}

static void be_part(struct lkg_entry *entry, const struct lkg_part_slot *slot)
{
        if (!*slot->sha256)
                return;
        entry->pack = slot->file.blob->sha256;
        entry->offset = slot->offset;
        entry->size = slot->size;
        memcpy(entry->sha256, slot->sha256, LKG_SHA256_HEX);
}

static void add_status(struct builder *b, const struct lkg_component *c, const struct lkg_shown *shown)
{
        uint64_t generation = c->active ? c->active->number : 0;

        add_dir(b, 0755, shown->changed_ns, "status", c->config->name, NULL);
        for (size_t i = 0; i < lkg_n_status_files; i++) {
                const struct lkg_status_file *f = &lkg_status_files[i];
                const struct lkg_part_slot *slot = &shown->status[i];
                struct lkg_entry entry;

                if (!slot->file.blob)
                        continue;
                entry = f->document ? document_entry(c, &slot->file, generation)
                                    : file_entry(c, &slot->file, b->in->config->status_mode, 0, 0, f->flags,
                                                 generation);
                entry.flags = f->flags;
                be_part(&entry, slot);
                add_entry(b, entry, slot->file.blob, "status/%s/%s", c->config->name, f->name);
        }
}

static void add_layers(struct builder *b, const struct lkg_component *c, const struct lkg_shown *shown)
{
        add_dir(b, 0700, shown->changed_ns, "layers", c->config->name, NULL);
        for (size_t i = 0; i < shown->n_layers; i++) {
                const struct lkg_layer_slot *slot = &shown->layers[i];

                if (slot->merged.blob && slot->name)
                        add_entry(b, document_entry(c, &slot->merged, 0), slot->merged.blob,
                                  "layers/%s/%s.merged.yaml", c->config->name, slot->name);
                if (slot->doc.blob && slot->name)
                        add_entry(b, document_entry(c, &slot->doc, 0), slot->doc.blob, "layers/%s/%s.yaml",
                                  c->config->name, slot->name);
        }
}

static void add_history(struct builder *b, const struct lkg_component *c, const struct lkg_shown *shown)
{
        add_dir(b, 0700, shown->changed_ns, "history", c->config->name, NULL);
        for (size_t i = 0; i < shown->n_past; i++) {
                const struct lkg_history_slot *slot = &shown->past[i];
                const char *name = c->config->name;
                char number[24];

                (void)snprintf(number, sizeof(number), "%" PRIu64, slot->number);
                add_dir(b, 0700, slot->document.mtime_ns, "history", name, number);
                add_entry(b, document_entry(c, &slot->document, slot->number), slot->document.blob,
                          "history/%s/%s/%s", name, number, c->config->file);
                add_entry(b, document_entry(c, &slot->origin, slot->number), slot->origin.blob,
                          "history/%s/%s/origin", name, number);
                add_entry(b, document_entry(c, &slot->meta, slot->number), slot->meta.blob,
                          "history/%s/%s/meta.json", name, number);
        }
}

static void add_bad(struct builder *b, const struct lkg_component *c, const struct lkg_shown *shown)
{
        const struct lkg_entry dir = { .type = LKG_ENTRY_BAD,
                                       .mode = 0755,
                                       .mtime_ns = (int64_t)shown->changed_ns,
                                       .component = c->index };

        add_entry(b, dir, NULL, "bad/%s", c->config->name);
        for (size_t i = 0; i < shown->n_bad; i++)
                add_entry(b, file_entry(c, &shown->bad[i].slot, 0644, 0, 0, 0, 0), shown->bad[i].slot.blob,
                          "bad/%s/%s", c->config->name, shown->bad[i].id);
}

static void add_good(struct builder *b, const struct lkg_component *c, const struct lkg_shown *shown)
{
        if (shown->good_document.blob)
                add_entry(b, document_entry(c, &shown->good_document, 0), shown->good_document.blob,
                          "lkg/%s", c->config->file);
}

static void add_control(struct builder *b, const struct lkg_component *c, const struct lkg_shown *shown)
{
        (void)shown;
        add_dir(b, 0700, b->dirs_ns, "control", c->config->name, NULL);
        for (size_t i = 0; i < lkg_n_commands; i++) {
                const struct lkg_entry entry = {
                        .type = LKG_ENTRY_CONTROL,
                        .mode = 0200,
                        .component = c->index,
                        .command = lkg_commands[i].name,
                };

                add_entry(b, entry, NULL, "control/%s/%s", c->config->name, lkg_commands[i].name);
        }
}

static void add_tops(struct builder *b)
{
        static const struct {
                const char *name;
                uint32_t mode;
        } tops[] = { { "bad", 0755 },    { "control", 0700 }, { "history", 0700 },
                     { "layers", 0700 }, { "lkg", 0755 },     { "status", 0755 } };
        const char *top = b->in->config->virtual_dir;

        for (size_t i = 0; i < LKG_ARRAY_SIZE(tops); i++)
                add_dir(b, tops[i].mode, b->dirs_ns, tops[i].name, NULL, NULL);
        if (*top) {
                const struct lkg_entry entry = { .type = LKG_ENTRY_DIR,
                                                 .mode = 0755,
                                                 .mtime_ns = (int64_t)b->dirs_ns,
                                                 .component = UINT_MAX,
                                                 .flags = LKG_ENTRY_VIEW }; /* not below itself */

                add_entry(b, entry, NULL, "%s", top);
        }
}

struct entry_blob {
        struct lkg_entry entry;
        struct lkg_blob *blob;
};

static int compare_pairs(const void *a, const void *b)
{
        return strcmp(((const struct entry_blob *)a)->entry.path,
                      ((const struct entry_blob *)b)->entry.path);
}

static int sort_all(struct builder *b)
{
        struct entry_blob *pairs = calloc(b->n ? b->n : 1, sizeof(*pairs));

        if (!pairs)
                return -ENOMEM;
        for (size_t i = 0; i < b->n; i++)
                pairs[i] = (struct entry_blob){ b->entries[i], b->blobs[i] };
        qsort(pairs, b->n, sizeof(*pairs), compare_pairs);
        for (size_t i = 0; i < b->n; i++) {
                b->entries[i] = pairs[i].entry;
                b->blobs[i] = pairs[i].blob;
        }
        free(pairs);
        return 0;
}

/* Moves entry @i to its position among the earlier ones, which are sorted. */
static void insert_entry(struct builder *b, size_t i)
{
        const struct lkg_entry entry = b->entries[i];
        struct lkg_blob *blob = b->blobs[i];
        size_t low = 0, high = i;

        while (low < high) {
                size_t middle = low + (high - low) / 2;

                if (strcmp(b->entries[middle].path, entry.path) < 0)
                        low = middle + 1;
                else
                        high = middle;
        }
        memmove(b->entries + low + 1, b->entries + low, (i - low) * sizeof(*b->entries));
        memmove(b->blobs + low + 1, b->blobs + low, (i - low) * sizeof(*b->blobs));
        b->entries[low] = entry;
        b->blobs[low] = blob;
}

/* They are almost sorted (build()), so a thousand layers cost a thousand comparisons. */
static int sort_entries(struct builder *b)
{
        unsigned n_inserted = 0;

        for (size_t i = 1; i < b->n; i++) {
                if (strcmp(b->entries[i - 1].path, b->entries[i].path) <= 0)
                        continue;
                if (++n_inserted > INSERTIONS_MAX)
                        return sort_all(b);
                insert_entry(b, i);
        }
        return 0;
}

static void free_builder(struct builder *b)
{
        for (size_t i = 0; i < b->n; i++)
                free((char *)b->entries[i].path);
        free(b->entries);
        free(b->blobs);
}

static int format_manifest(const struct lkg_publisher *p, struct builder *b, struct lkg_buf *buf)
{
        const struct lkg_snapshot *in = b->in;
        struct lkg_publication_component components[LKG_COMPONENTS_MAX];
        struct lkg_publication pub = {
                .number = p->number + 1,
                .timeout_ms = (uint32_t)(in->config->engine_timeout_ns / LKG_NSEC_PER_MSEC),
                .components = components,
                .n_components = in->n_components,
                .rules = in->rules->items,
                .n_rules = in->rules->n_items,
                .entries = b->entries,
                .n_entries = b->n,
        };

        for (size_t i = 0; i < in->n_components; i++) {
                const struct lkg_component *c = in->components[i].component;

                components[i] = (struct lkg_publication_component){ c->config->name,
                                                                    c->active ? c->active->number : 0 };
        }
        lkg_publication_format(&pub, buf);
        return lkg_buf_failed(buf) ? -ENOMEM : 0;
}

/* ---- which blobs are still needed ---- */

static void drop_kept(struct lkg_publisher *p, size_t i)
{
        for (size_t k = 0; k < p->kept[i].n_blobs; k++)
                lkg_blob_unref(&p->blobs, p->kept[i].blobs[k]);
        free(p->kept[i].blobs);
        memmove(p->kept + i, p->kept + i + 1, (p->n_kept - i - 1) * sizeof(*p->kept));
        p->n_kept--;
}

/* Takes over @blobs and their references, even on failure. */
static int keep(struct lkg_publisher *p, uint64_t number, struct lkg_blob **blobs, size_t n)
{
        if (LKG_GROW(p->kept, p->n_kept) < 0) {
                for (size_t i = 0; i < n; i++)
                        lkg_blob_unref(&p->blobs, blobs[i]);
                free(blobs);
                return -ENOMEM;
        }
        p->kept[p->n_kept++] = (struct lkg_kept_blobs){ number, blobs, n };
        return 0;
}

void lkg_publisher_loaded(struct lkg_publisher *p, uint64_t number)
{
        while (p->n_kept > 1 && p->kept[0].number < number)
                drop_kept(p, 0);
}

/* ---- one publication ---- */

/* The directories in the order of their names, the few names of the root last: see sort_entries(). */
static int build(struct lkg_publisher *p, struct builder *b, struct lkg_error *err)
{
        static void (*const parts[])(struct builder * b, const struct lkg_component *c,
                                     const struct lkg_shown *shown) = { add_bad,    add_control, add_history,
                                                                        add_layers, add_good,    add_status,
                                                                        add_view };
        const struct lkg_snapshot *in = b->in;

        for (size_t i = 0; i < in->n_components; i++)
                if (p->shown[i].changed_ns > b->dirs_ns)
                        b->dirs_ns = p->shown[i].changed_ns;
        for (size_t k = 0; k < LKG_ARRAY_SIZE(parts); k++)
                for (size_t i = 0; i < in->n_components; i++)
                        parts[k](b, in->components[i].component, &p->shown[i]);
        add_tops(b);
        if (b->no_memory || sort_entries(b) < 0)
                return lkg_error_set(err, -ENOMEM, NULL, "publication %" PRIu64, p->number + 1);
        return 0;
}

static int write_manifest(struct lkg_publisher *p, struct builder *b, struct lkg_error *err)
{
        struct lkg_buf buf = LKG_BUF_INIT;
        int r;

        lkg_buf_expect(&buf, p->n_bytes + p->n_bytes / 16 + 256);
        r = format_manifest(p, b, &buf);

        if (r < 0)
                r = lkg_error_set(err, r, NULL, "manifest");
        else if (buf.size > LKG_MANIFEST_BYTES_MAX || b->n > LKG_MANIFEST_ENTRIES_MAX)
                r = lkg_error_set(err, -EFBIG, NULL, "the manifest has %zu entries and %zu bytes.", b->n,
                                  buf.size);
        else
                r = lkg_write_file_atomic(p->runtime_fd, LKG_PUBLICATION_CURRENT, buf.data, buf.size, 0600,
                                          /* durable= */ false, err);
        p->n_bytes = buf.size;
        p->n_entries = b->n;
        lkg_buf_deinit(&buf);
        return r;
}

static int collect_blobs(struct builder *b, struct lkg_blob ***ret, size_t *ret_n)
{
        struct lkg_blob **blobs = calloc(b->n ? b->n : 1, sizeof(struct lkg_blob *));
        size_t n = 0;

        if (!blobs)
                return -ENOMEM;
        for (size_t i = 0; i < b->n; i++)
                if (b->blobs[i])
                        blobs[n++] = lkg_blob_ref(b->blobs[i]);
        *ret = blobs;
        *ret_n = n;
        return 0;
}

static int make_current(struct lkg_publisher *p, struct builder *b, struct lkg_error *err)
{
        struct lkg_blob **blobs;
        size_t n;
        int r = build(p, b, err);

        if (r < 0)
                return r;
        /* The references first: the current manifest must never name a blob that could be removed. */
        r = collect_blobs(b, &blobs, &n);
        if (r >= 0)
                r = keep(p, p->number + 1, blobs, n);
        if (r < 0)
                return lkg_error_set(err, r, NULL, "publication %" PRIu64, p->number + 1);
        r = write_manifest(p, b, err);
        if (r < 0)
                drop_kept(p, p->n_kept - 1);
        return r;
}

int lkg_publish(struct lkg_publisher *p, const struct lkg_snapshot *in, struct lkg_error *err)
{
        struct builder b = { .in = in, .n_expected = p->n_entries };
        int r = 0;

        for (size_t i = 0; r >= 0 && i < in->n_components; i++)
                r = render_component(p, in, i, err);
        if (r >= 0)
                r = lkg_pack_finish(p, err);
        if (r >= 0)
                r = make_current(p, &b, err);
        lkg_pack_drop(p);
        free_builder(&b);
        if (r < 0)
                return r;
        p->number++;
        for (size_t i = 0; i < in->n_components; i++)
                in->components[i].changed &= LKG_DIRTY_LAYERS;
        while (p->n_kept > LKG_PUBLICATIONS_KEPT)
                drop_kept(p, 0);
        return 0;
}

/* ---- begin and end ---- */

static int read_previous(struct lkg_publisher *p, struct lkg_publication **ret)
{
        LKG_CLEANUP(lkg_closep) int fd = lkg_open_plain(p->runtime_fd, LKG_PUBLICATION_CURRENT);
        LKG_CLEANUP(lkg_freep) char *text = NULL;
        size_t size;
        int r;

        p->fresh = fd == -ENOENT;
        if (p->fresh)
                return 0;
        r = fd < 0 ? fd : lkg_read_file(fd, LKG_MANIFEST_BYTES_MAX, &text, &size, NULL);
        if (r >= 0)
                r = lkg_publication_parse(text, size, ret, NULL);
        if (r == -ENOMEM)
                return r;
        if (r >= 0)
                p->number = (*ret)->number;
        else
                p->number = lkg_boottime_ns() / 1000; /* unreadable: surely more than were ever published */
        return 0;
}

int lkg_publisher_open(int runtime_fd, struct lkg_publisher **ret, struct lkg_publication **ret_previous,
                       struct lkg_error *err)
{
        struct lkg_publisher *p = calloc(1, sizeof(*p));
        struct lkg_publication *previous = NULL;
        struct lkg_blob **all = NULL;
        size_t n = 0;
        int r;

        if (!p)
                return lkg_error_set(err, -ENOMEM, NULL, "publisher");
        p->runtime_fd = runtime_fd;
        p->blobs.dirfd = -EBADF;
        r = lkg_blobs_open(runtime_fd, &p->blobs, err);
        if (r >= 0)
                r = read_previous(p, &previous);
        if (r >= 0)
                r = lkg_blobs_adopt_all(&p->blobs, &all, &n, err);
        /* A reader may be loading the predecessor's publication. */
        if (r >= 0)
                r = keep(p, p->number, all, n);
        if (r < 0) {
                lkg_publication_free(previous);
                lkg_publisher_free(p);
                return lkg_error_set(err, r, NULL, "take over the runtime directory");
        }
        *ret = p;
        *ret_previous = previous;
        return 0;
}

uint64_t lkg_publisher_number(const struct lkg_publisher *p)
{
        return p->number;
}

bool lkg_publisher_is_fresh(const struct lkg_publisher *p)
{
        return p->fresh;
}

int lkg_publisher_read(const struct lkg_publisher *p, const struct lkg_entry *entry, char **ret,
                       size_t *ret_size)
{
        return lkg_publication_read(p->blobs.dirfd, entry, LKG_FALLBACK_BYTES_MAX, ret, ret_size);
}

static void forget(struct lkg_shown *shown)
{
        for (size_t i = 0; i < shown->n_layers; i++) {
                lkg_value_unref(shown->layers[i].doc_value);
                free(shown->layers[i].name);
                free(shown->layers[i].layer);
        }
        for (size_t i = 0; i < shown->n_bad; i++)
                free(shown->bad[i].id);
        free(shown->bad);
        free(shown->layers);
        free(shown->past);
        *shown = (struct lkg_shown){ .n_bad = 0 };
}

static void give_back(struct lkg_publisher *p, struct lkg_shown *shown)
{
        lkg_slot_clear(p, &shown->document);
        lkg_slot_clear(p, &shown->good_document);
        clear_bad(p, shown);
        for (size_t i = 0; i < LKG_STATUS_FILES_MAX; i++)
                lkg_slot_clear(p, &shown->status[i].file);
        for (size_t i = 0; i < shown->n_layers; i++) {
                lkg_slot_clear(p, &shown->layers[i].doc);
                lkg_slot_clear(p, &shown->layers[i].merged);
        }
        for (size_t i = 0; i < shown->n_past; i++)
                lkg_history_slot_clear(p, &shown->past[i]);
        forget(shown);
}

void lkg_publisher_reset(struct lkg_publisher *p)
{
        for (size_t i = 0; i < LKG_COMPONENTS_MAX; i++)
                give_back(p, &p->shown[i]);
}

struct lkg_publisher *lkg_publisher_free(struct lkg_publisher *p)
{
        if (!p)
                return NULL;
        for (size_t i = 0; i < LKG_COMPONENTS_MAX; i++)
                forget(&p->shown[i]);
        for (size_t i = 0; i < p->n_kept; i++)
                free(p->kept[i].blobs);
        free(p->kept);
        lkg_pack_drop(p);
        free(p->pack.parts);
        lkg_blobs_deinit(&p->blobs);
        free(p);
        return NULL;
}
