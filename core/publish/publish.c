/* SPDX-License-Identifier: Apache-2.0 */
/* What is a blob in a publication, the manifest, and removal of old blobs: see <lkg/publish.h>. */
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>

#include <lkg/base.h>
#include <lkg/component.h>
#include <lkg/file.h>

#include "publisher.h"

/* ---- what is a blob ---- */

/* Wall time. For a generation that a rollback has pinned, the time of the rollback. */
static uint64_t served_since(const struct lkg_component *c)
{
        const struct lkg_hold *hold = &c->state.hold;
        uint64_t pinned_ns = hold->mode == LKG_HOLD_ROLLBACK && hold->generation == c->active->number
                                     ? c->state.held_by.time_ns
                                     : 0;

        return pinned_ns > c->active->time_ns ? pinned_ns : c->active->time_ns;
}

/* Sets new content of a slot; equal content keeps its time. */
static int fill(struct lkg_publisher *p, struct lkg_file_slot *slot, struct lkg_buf *buf, uint64_t mtime_ns,
                struct lkg_error *err)
{
        struct lkg_blob *blob;
        int r = lkg_buf_failed(buf)
                        ? lkg_error_set(err, -ENOMEM, NULL, "render")
                        : lkg_blob_put(&p->blobs, buf->data ? buf->data : "", buf->size, &blob, err);

        lkg_buf_deinit(buf);
        if (r < 0)
                return r;
        if (blob != slot->blob)
                slot->mtime_ns = mtime_ns;
        lkg_blob_unref(&p->blobs, slot->blob);
        slot->blob = blob;
        return 0;
}

static void clear(struct lkg_publisher *p, struct lkg_file_slot *slot)
{
        slot->blob = lkg_blob_unref(&p->blobs, slot->blob);
        slot->mtime_ns = 0;
}

/* Its digest is known. */
static int fill_document(struct lkg_publisher *p, struct lkg_file_slot *slot, const struct lkg_generation *g,
                         uint64_t mtime_ns, struct lkg_error *err)
{
        struct lkg_blob *blob;
        int r;

        if (!g) {
                clear(p, slot);
                return 0;
        }
        r = lkg_blob_put_as(&p->blobs, g->sha256, g->document.data, g->document.size, &blob, err);
        if (r < 0)
                return r;
        if (blob != slot->blob || g->number != 0)
                slot->mtime_ns = mtime_ns;
        lkg_blob_unref(&p->blobs, slot->blob);
        slot->blob = blob;
        return 0;
}

/* lkg/: what a rollback would serve now; usually the served document. */
static int fill_good(struct lkg_publisher *p, const struct lkg_snapshot *in, const struct lkg_component *c,
                     struct lkg_file_slot *slot, struct lkg_error *err)
{
        LKG_CLEANUP(lkg_generation_unrefp) struct lkg_generation *good = NULL;
        int r = lkg_component_good_generation(c, &good);

        if (r < 0)
                return lkg_error_set(err, r, NULL, "last known good");
        if (good)
                return fill_document(p, slot, good, in->now_ns, err);
        return fill_document(p, slot, c->active, c->active ? c->active->time_ns : 0, err);
}

static int fill_status(struct lkg_publisher *p, const struct lkg_snapshot *in, size_t i,
                       struct lkg_error *err)
{
        const struct lkg_component *c = in->components[i].component;
        const struct lkg_status_context x = lkg_status_context(in, i, p->number + 1);
        struct lkg_file_slot *slots = p->shown[i].status;
        int r = 0;

        for (size_t k = 0; r >= 0 && k < lkg_n_status_files; k++) {
                const struct lkg_status_file *f = &lkg_status_files[k];
                bool dated = f->flags & LKG_ENTRY_POLL && !slots[k].blob && c->active;
                struct lkg_buf buf = LKG_BUF_INIT;

                if (!f->blob)
                        continue;
                f->render(&x, &buf);
                r = fill(p, &slots[k], &buf, dated ? served_since(c) : in->now_ns, err);
        }
        return r;
}

static int fill_component(struct lkg_publisher *p, const struct lkg_snapshot *in, size_t i,
                          struct lkg_error *err)
{
        const struct lkg_component *c = in->components[i].component;
        struct lkg_shown *shown = &p->shown[i];
        int r = fill_document(p, &shown->document, c->active, c->active ? c->active->time_ns : 0, err);

        if (r >= 0)
                r = fill_good(p, in, c, &shown->good_document, err);
        return r < 0 ? r : fill_status(p, in, i, err);
}

/* ---- the manifest ---- */

struct builder {
        const struct lkg_snapshot *in;
        struct lkg_entry *entries;
        struct lkg_blob **blobs; /* with the same index; borrowed; NULL for directories and control files */
        size_t n, n_allocated;
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
                size_t more = b->n_allocated ? 2 * b->n_allocated : 128;

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

static void add_rendered(struct builder *b, const struct lkg_component *c, bool document, const char *dir,
                         const char *name)
{
        const struct lkg_entry entry = {
                .type = LKG_ENTRY_RENDERED,
                .mode = document ? c->config->mode : b->in->config->status_mode,
                .uid = document ? c->config->uid : 0,
                .gid = document ? c->config->gid : 0,
                .component = c->index,
        };

        add_entry(b, entry, NULL, "%s/%s/%s", dir, c->config->name, name);
}

static void add_status(struct builder *b, const struct lkg_component *c, const struct lkg_shown *shown)
{
        uint64_t generation = c->active ? c->active->number : 0;
        const struct lkg_status_context x = lkg_status_context(b->in, c->index, 0);

        for (size_t i = 0; i < lkg_n_status_files; i++) {
                const struct lkg_status_file *f = &lkg_status_files[i];
                const struct lkg_file_slot *slot = &shown->status[i];
                struct lkg_entry entry;

                if (!f->blob) {
                        if (!f->exists || f->exists(&x))
                                add_rendered(b, c, f->document, "status", f->name);
                        continue;
                }
                entry = f->document ? document_entry(c, slot, generation)
                                    : file_entry(c, slot, b->in->config->status_mode, 0, 0, f->flags,
                                                 generation);
                entry.flags = f->flags;
                add_entry(b, entry, slot->blob, "status/%s/%s", c->config->name, f->name);
        }
}

static void add_bad(struct builder *b, const struct lkg_component *c, const struct lkg_shown *shown)
{
        const struct lkg_bad_list *list = c->dynamic ? &c->dynamic->bad : NULL;

        (void)shown;
        for (size_t i = 0; list && i < list->n_items; i++) {
                const struct lkg_entry entry = { .type = LKG_ENTRY_RENDERED,
                                                 .mode = 0644,
                                                 .component = c->index };

                add_entry(b, entry, NULL, "bad/%s/%s", c->config->name, list->items[i].id);
        }
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

/* Their time is that of the last change of anything in them that a publication shows. */
static void add_dirs(struct builder *b, const struct lkg_component *c, const struct lkg_shown *shown)
{
        static const struct {
                const char *name;
                enum lkg_entry_type type;
                uint32_t mode;
        } dirs[] = { { "bad", LKG_ENTRY_BAD, 0755 },
                     { "control", LKG_ENTRY_DIR, 0700 },
                     { "history", LKG_ENTRY_ASKED, 0 },
                     { "layers", LKG_ENTRY_ASKED, 0 },
                     { "status", LKG_ENTRY_DIR, 0755 } };

        for (size_t i = 0; i < LKG_ARRAY_SIZE(dirs); i++) {
                struct lkg_entry dir = { .type = dirs[i].type,
                                         .mode = dirs[i].mode,
                                         .mtime_ns = (int64_t)shown->changed_ns,
                                         .component = c->index };

                if (dir.type == LKG_ENTRY_DIR)
                        dir.component = UINT_MAX;
                if (dir.type == LKG_ENTRY_ASKED) { /* of the files in it */
                        dir.mode = c->config->mode;
                        dir.uid = c->config->uid;
                        dir.gid = c->config->gid;
                }
                add_entry(b, dir, NULL, "%s/%s", dirs[i].name, c->config->name);
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

static int sort_entries(struct builder *b)
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

                components[i] = (struct lkg_publication_component){
                        .name = c->config->name, .generation = c->active ? c->active->number : 0
                };
                if (c->active) {
                        components[i].source =
                                *c->active->source ? c->active->source : lkg_local_word(c->active->has_base);
                        components[i].object = c->active->object;
                }
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

/* What the publication shows of component @index, but for times: another number, and something has changed. */
static uint64_t hash_component(const struct builder *b, unsigned index)
{
        uint64_t h = 0;

        for (size_t i = 0; i < b->n; i++) {
                const struct lkg_entry *e = &b->entries[i];

                if (e->component != index)
                        continue;
                h = lkg_hash(h, e->path, strlen(e->path));
                h = lkg_hash(h, e->sha256, sizeof(e->sha256));
                h = lkg_hash(h, &e->generation, sizeof(e->generation));
        }
        return h;
}

static int build(struct lkg_publisher *p, struct builder *b, struct lkg_error *err)
{
        static void (*const parts[])(struct builder * b, const struct lkg_component *c,
                                     const struct lkg_shown *shown) = { add_bad, add_control, add_good,
                                                                        add_status, add_view };
        const struct lkg_snapshot *in = b->in;

        for (size_t i = 0; i < in->n_components; i++) {
                const struct lkg_component *c = in->components[i].component;
                struct lkg_shown *shown = &p->shown[i];
                uint64_t hash;

                for (size_t k = 0; k < LKG_ARRAY_SIZE(parts); k++)
                        parts[k](b, c, shown);
                hash = hash_component(b, (unsigned)i);
                if (hash != shown->hash || shown->changed_ns == 0)
                        shown->changed_ns = in->now_ns;
                shown->hash = hash;
                add_dirs(b, c, shown);
                if (shown->changed_ns > b->dirs_ns)
                        b->dirs_ns = shown->changed_ns;
        }
        add_tops(b);
        if (b->no_memory || sort_entries(b) < 0)
                return lkg_error_set(err, -ENOMEM, NULL, "publication %" PRIu64, p->number + 1);
        return 0;
}

/* The manifest but for its first two lines, which say its format and number. */
static const char *content_of(const struct lkg_buf *manifest)
{
        const char *line = strchr(manifest->data, '\n');

        line = line ? strchr(line + 1, '\n') : NULL;
        return line ? line : "";
}

static int write_manifest(struct lkg_publisher *p, const struct builder *b, const struct lkg_buf *manifest,
                          struct lkg_error *err)
{
        if (manifest->size > LKG_MANIFEST_BYTES_MAX || b->n > LKG_MANIFEST_ENTRIES_MAX)
                return lkg_error_set(err, -EFBIG, NULL, "the manifest has %zu entries and %zu bytes.", b->n,
                                     manifest->size);
        return lkg_write_file_atomic(p->runtime_fd, LKG_PUBLICATION_CURRENT, manifest->data,
                                     manifest->size - 1, 0600, /* durable= */ false, err);
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

static int make_current(struct lkg_publisher *p, struct builder *b, const struct lkg_buf *manifest,
                        struct lkg_error *err)
{
        struct lkg_blob **blobs;
        size_t n;
        /* The references first: the current manifest must never name a blob that could be removed. */
        int r = collect_blobs(b, &blobs, &n);

        if (r >= 0)
                r = keep(p, p->number + 1, blobs, n);
        if (r < 0)
                return lkg_error_set(err, r, NULL, "publication %" PRIu64, p->number + 1);
        r = write_manifest(p, b, manifest, err);
        if (r < 0)
                drop_kept(p, p->n_kept - 1);
        return r;
}

static int publish(struct lkg_publisher *p, struct builder *b, struct lkg_error *err)
{
        LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf manifest = LKG_BUF_INIT;
        struct lkg_buf before = p->manifest;
        int r;

        lkg_buf_expect(&manifest, p->manifest.size + 256);
        r = format_manifest(p, b, &manifest);
        lkg_buf_putc(&manifest, '\0');
        if (r < 0 || lkg_buf_failed(&manifest))
                return lkg_error_set(err, -ENOMEM, NULL, "manifest");
        if (p->manifest.size > 0 && strcmp(content_of(&manifest), content_of(&p->manifest)) == 0)
                return 0;
        r = make_current(p, b, &manifest, err);
        if (r < 0)
                return r;
        p->number++;
        p->manifest = manifest;
        manifest = before; /* to be freed */
        while (p->n_kept > LKG_PUBLICATIONS_KEPT)
                drop_kept(p, 0);
        return 1;
}

int lkg_publish(struct lkg_publisher *p, const struct lkg_snapshot *in, struct lkg_error *err)
{
        struct builder b = { .in = in };
        int r = 0;

        for (size_t i = 0; r >= 0 && i < in->n_components; i++)
                r = fill_component(p, in, i, err);
        if (r >= 0)
                r = build(p, &b, err);
        if (r >= 0)
                r = publish(p, &b, err);
        free_builder(&b);
        return r;
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

void lkg_publisher_reset(struct lkg_publisher *p)
{
        for (size_t i = 0; i < LKG_COMPONENTS_MAX; i++) {
                struct lkg_shown *shown = &p->shown[i];

                clear(p, &shown->document);
                clear(p, &shown->good_document);
                for (size_t k = 0; k < LKG_STATUS_FILES_MAX; k++)
                        clear(p, &shown->status[k]);
                *shown = (struct lkg_shown){ 0 };
        }
}

struct lkg_publisher *lkg_publisher_free(struct lkg_publisher *p)
{
        if (!p)
                return NULL;
        for (size_t i = 0; i < p->n_kept; i++)
                free(p->kept[i].blobs);
        free(p->kept);
        for (size_t i = 0; i < LKG_ANSWERED_MAX; i++)
                free(p->answered[i].path);
        lkg_buf_deinit(&p->manifest);
        lkg_blobs_deinit(&p->blobs);
        free(p);
        return NULL;
}
