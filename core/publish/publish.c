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

static void clear(struct lkg_publisher *p, struct lkg_file_slot *slot)
{
        slot->blob = lkg_blob_unref(&p->blobs, slot->blob);
        slot->mtime_ns = 0;
}

/* Sets the content of a slot. @sha256: NULL = to be computed; @dated: @mtime_ns counts, even if the content is the same */
static int fill(struct lkg_publisher *p, struct lkg_file_slot *slot, const char *sha256, const void *data,
                size_t size, uint64_t mtime_ns, bool dated, struct lkg_error *err)
{
        struct lkg_blob *blob;
        int r = lkg_blob_put(&p->blobs, sha256, data ? data : "", size, &blob, err);

        if (r < 0)
                return r;
        if (blob != slot->blob || dated)
                slot->mtime_ns = mtime_ns;
        lkg_blob_unref(&p->blobs, slot->blob);
        slot->blob = blob;
        return 0;
}

static int fill_document(struct lkg_publisher *p, struct lkg_file_slot *slot, const struct lkg_generation *g,
                         uint64_t mtime_ns, struct lkg_error *err)
{
        if (g)
                return fill(p, slot, g->sha256, g->document.data, g->document.size, mtime_ns, g->number != 0,
                            err);
        clear(p, slot);
        return 0;
}

/* lkg/: what a rollback would serve now; usually the served document. */
static int fill_good(struct lkg_publisher *p, const struct lkg_snapshot *in, const struct lkg_component *c,
                     struct lkg_file_slot *slot, struct lkg_error *err)
{
        LKG_CLEANUP(lkg_generation_unrefp) struct lkg_generation *good = lkg_component_good_generation(c);

        if (good)
                return fill_document(p, slot, good, in->now_ns, err);
        return fill_document(p, slot, c->active, c->active ? c->active->time_ns : 0, err);
}

static int fill_status(struct lkg_publisher *p, const struct lkg_snapshot *in, size_t i,
                       struct lkg_error *err)
{
        const struct lkg_component *c = in->components[i].component;
        const struct lkg_status_context x = lkg_status_context(in, i, p);
        struct lkg_file_slot *slots = p->shown[i].status;
        int r = 0;

        for (size_t k = 0; r >= 0 && k < lkg_n_status_files; k++) {
                const struct lkg_status_file *f = &lkg_status_files[k];
                bool dated = f->flags & LKG_ENTRY_POLL && !slots[k].blob && c->active;
                LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf buf = LKG_BUF_INIT;

                if (!f->blob)
                        continue;
                f->render(&x, &buf);
                if (lkg_buf_failed(&buf)) /* a text that is no JSON */
                        return lkg_error_set(err, -EBADMSG, NULL, "render %s", f->name);
                r = fill(p, &slots[k], /* sha256= */ NULL, buf.data, buf.size,
                         dated ? served_since(c) : in->now_ns, /* dated= */ false, err);
        }
        return r;
}

/* As long as no set is known to be good, what is served is in lkg/. */
static int fill_pods(struct lkg_publisher *p, const struct lkg_component *c, struct lkg_shown *shown,
                     struct lkg_error *err)
{
        const struct lkg_value *good = lkg_pods_good(c);
        int r;

        if (!c->active || !c->pods->texts) /* what cannot be read again does not take the pods away */
                return 0;
        r = lkg_pod_files_fill(p, &shown->pods, c->pods->texts, c->active->sha256, c->active, err);
        if (r >= 0 && good)
                r = lkg_pod_files_fill(p, &shown->good_pods, good, c->pods->good_sha256, c->active, err);
        return r;
}

static int fill_component(struct lkg_publisher *p, const struct lkg_snapshot *in, size_t i,
                          struct lkg_error *err)
{
        const struct lkg_component *c = in->components[i].component;
        struct lkg_shown *shown = &p->shown[i];
        int r;

        if (c->pods) {
                r = fill_pods(p, c, shown, err);
                return r < 0 ? r : fill_status(p, in, i, err);
        }
        r = fill_document(p, &shown->document, c->active, c->active ? c->active->time_ns : 0, err);

        if (r >= 0)
                r = fill_good(p, in, c, &shown->good_document, err);
        return r < 0 ? r : fill_status(p, in, i, err);
}

/* ---- the manifest ---- */

struct builder {
        const struct lkg_snapshot *in;
        struct lkg_entry *entries;
        size_t n, n_allocated;
        uint64_t dirs_ns;
};

static void add(struct builder *b, struct lkg_entry entry, const char *fmt, ...) LKG_PRINTF(3, 4);
static void add(struct builder *b, struct lkg_entry entry, const char *fmt, ...)
{
        const char *top = entry.flags & LKG_ENTRY_VIEW ? "" : b->in->config->virtual_dir;
        char path[2 * PATH_MAX];
        size_t n = *top ? (size_t)snprintf(path, sizeof(path), "%s/", top) : 0;
        va_list ap;

        va_start(ap, fmt);
        (void)vsnprintf(path + n, sizeof(path) - n, fmt, ap);
        va_end(ap);
        entry.path = lkg_must(strdup(path));
        (void)lkg_need(LKG_RESERVE(b->entries, b->n, b->n_allocated));
        b->entries[b->n++] = entry;
}

/* Mode and owner of a document of @c, or of a fact about it. */
static struct lkg_entry entry_of(const struct builder *b, const struct lkg_component *c, bool document)
{
        return (struct lkg_entry){
                .type = LKG_ENTRY_RENDERED,
                .mode = document ? c->config->mode : b->in->config->status_mode,
                .uid = document ? c->config->uid : 0,
                .gid = document ? c->config->gid : 0,
                .component = c->index,
        };
}

/* With the content of a slot. */
static struct lkg_entry with(struct lkg_entry entry, const struct lkg_file_slot *slot, unsigned flags,
                             uint64_t generation)
{
        entry.type = LKG_ENTRY_FILE;
        entry.mtime_ns = (int64_t)slot->mtime_ns;
        entry.size = slot->blob->size;
        entry.flags = flags;
        entry.generation = generation;
        memcpy(entry.sha256, slot->blob->sha256, LKG_SHA256_HEX);
        return entry;
}

static void add_pods(struct builder *b, const struct lkg_component *c, const struct lkg_shown *shown)
{
        const struct lkg_entry entry = entry_of(b, c, /* document= */ true);
        const struct lkg_pod_files *good = shown->good_pods.items ? &shown->good_pods : &shown->pods;

        for (size_t i = 0; i < good->n; i++)
                add(b, with(entry, &good->items[i].slot, 0, 0), "lkg/%s/%s", c->config->file,
                    good->items[i].name);
        for (size_t i = 0; i < shown->pods.n; i++)
                add(b,
                    with(entry, &shown->pods.items[i].slot, LKG_ENTRY_VIEW, shown->pods.items[i].generation),
                    "%s/%s", c->config->file, shown->pods.items[i].name);
}

/* Their directories are there as soon as a kubelet may look. */
static void add_pods_dirs(struct builder *b, const struct lkg_component *c, const struct lkg_shown *shown)
{
        struct lkg_entry dir = entry_of(b, c, /* document= */ true);

        dir.type = LKG_ENTRY_DIR;
        dir.mode = dir.mode | (dir.mode >> 2 & 0111); /* who may read the files may search it */
        dir.mtime_ns = (int64_t)shown->changed_ns;
        dir.component = UINT_MAX;
        add(b, dir, "lkg/%s", c->config->file);
        dir.flags = LKG_ENTRY_VIEW;
        add(b, dir, "%s", c->config->file);
}

static void add_documents(struct builder *b, const struct lkg_component *c, const struct lkg_shown *shown)
{
        bool through = c->config->base_writes == LKG_BASE_WRITES_THROUGH;
        struct lkg_entry entry = entry_of(b, c, /* document= */ true);

        if (c->pods) {
                add_pods(b, c, shown);
                return;
        }
        if (shown->good_document.blob)
                add(b, with(entry, &shown->good_document, 0, 0), "lkg/%s", c->config->file);
        if (!c->active || !shown->document.blob)
                return;
        entry = with(entry, &shown->document, LKG_ENTRY_VIEW | (through ? LKG_ENTRY_THROUGH : 0),
                     c->active->number);
        add(b, entry, "%s", c->config->file);
        for (size_t i = 0; i < c->config->aliases.n_items; i++)
                add(b, entry, "%s", c->config->aliases.items[i]);
}

static void add_status(struct builder *b, const struct lkg_component *c, const struct lkg_shown *shown)
{
        uint64_t generation = c->active ? c->active->number : 0;
        const struct lkg_status_context x = lkg_status_context(b->in, c->index, NULL);

        for (size_t i = 0; i < lkg_n_status_files; i++) {
                const struct lkg_status_file *f = &lkg_status_files[i];
                struct lkg_entry entry = entry_of(b, c, f->document);

                if (f->exists && !f->exists(&x))
                        continue;
                if (f->blob)
                        entry = with(entry, &shown->status[i], f->flags, generation);
                add(b, entry, "status/%s/%s", c->config->name, f->name);
        }
}

/* Marks and commands. */
static void add_rest(struct builder *b, const struct lkg_component *c)
{
        const struct lkg_bad_list *list = c->dynamic ? &c->dynamic->bad : NULL;
        struct lkg_entry mark = { .type = LKG_ENTRY_RENDERED, .mode = 0644, .component = c->index };
        struct lkg_entry secret =
                entry_of(b, c, /* document= */ true); /* no field says what is secret in a pod */
        struct lkg_entry control = { .type = LKG_ENTRY_CONTROL, .mode = 0200, .component = c->index };

        for (size_t i = 0; list && i < list->n_items; i++)
                add(b, c->pods ? secret : mark, "bad/%s/%s", c->config->name, list->items[i].id);
        for (size_t i = 0; i < lkg_n_commands; i++) {
                control.command = lkg_commands[i].name;
                add(b, control, "control/%s/%s", c->config->name, control.command);
        }
}

static const struct {
        const char *name;
        uint32_t mode;
        enum lkg_entry_type type; /* of the component's directory in it */
} dirs[] = {
        { "bad", 0755, LKG_ENTRY_BAD },       { "control", 0700, LKG_ENTRY_DIR },
        { "history", 0700, LKG_ENTRY_ASKED }, { "layers", 0700, LKG_ENTRY_ASKED },
        { "lkg", 0755, LKG_ENTRY_FILE },      { "status", 0755, LKG_ENTRY_DIR },
};

/* Their time is that of the last change of anything in them that a publication shows. */
static void add_dirs(struct builder *b, const struct lkg_component *c, const struct lkg_shown *shown)
{
        for (size_t i = 0; i < LKG_ARRAY_SIZE(dirs); i++) {
                /* mode and owner are those of the files in it */
                bool asked = dirs[i].type == LKG_ENTRY_ASKED;
                struct lkg_entry dir = entry_of(b, c, asked);

                dir.type = dirs[i].type;
                dir.mtime_ns = (int64_t)shown->changed_ns;
                if (!asked)
                        dir.mode = dirs[i].mode;
                if (dir.type == LKG_ENTRY_DIR)
                        dir.component = UINT_MAX;
                if (dir.type != LKG_ENTRY_FILE) /* lkg/ has files, and no directories */
                        add(b, dir, "%s/%s", dirs[i].name, c->config->name);
        }
}

static void add_tops(struct builder *b)
{
        struct lkg_entry dir = { .type = LKG_ENTRY_DIR,
                                 .mtime_ns = (int64_t)b->dirs_ns,
                                 .component = UINT_MAX };

        for (size_t i = 0; i < LKG_ARRAY_SIZE(dirs); i++) {
                dir.mode = dirs[i].mode;
                add(b, dir, "%s", dirs[i].name);
        }
        dir.mode = 0755;
        dir.flags = LKG_ENTRY_VIEW; /* not below itself */
        if (*b->in->config->virtual_dir)
                add(b, dir, "%s", b->in->config->virtual_dir);
}

static int compare(const void *a, const void *b)
{
        return strcmp(((const struct lkg_entry *)a)->path, ((const struct lkg_entry *)b)->path);
}

static void free_builder(struct builder *b)
{
        for (size_t i = 0; i < b->n; i++)
                free((char *)b->entries[i].path);
        free(b->entries);
}

static void format_manifest(const struct lkg_publisher *p, struct builder *b, struct lkg_buf *buf)
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

/* Takes over @blobs and their references. */
static void keep(struct lkg_publisher *p, uint64_t number, struct lkg_blob **blobs, size_t n)
{
        (void)lkg_need(LKG_GROW(p->kept, p->n_kept));
        p->kept[p->n_kept++] = (struct lkg_kept_blobs){ number, blobs, n };
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

static void build(struct lkg_publisher *p, struct builder *b)
{
        const struct lkg_snapshot *in = b->in;

        for (size_t i = 0; i < in->n_components; i++) {
                const struct lkg_component *c = in->components[i].component;
                struct lkg_shown *shown = &p->shown[i];
                uint64_t hash;

                add_rest(b, c);
                add_documents(b, c, shown);
                add_status(b, c, shown);
                hash = hash_component(b, (unsigned)i);
                if (hash != shown->hash || shown->changed_ns == 0)
                        shown->changed_ns = in->now_ns;
                shown->hash = hash;
                add_dirs(b, c, shown);
                if (c->pods)
                        add_pods_dirs(b, c, shown);
                if (shown->changed_ns > b->dirs_ns)
                        b->dirs_ns = shown->changed_ns;
        }
        add_tops(b);
        qsort(b->entries, b->n, sizeof(*b->entries), compare);
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

/* A reference to each blob that the manifest names. */
static void keep_blobs(struct lkg_publisher *p, const struct builder *b)
{
        struct lkg_blob **blobs = lkg_must(calloc(b->n, sizeof(struct lkg_blob *)));
        size_t n = 0;

        for (size_t i = 0; i < b->n; i++)
                if (b->entries[i].type == LKG_ENTRY_FILE)
                        blobs[n++] = lkg_blob_ref(lkg_blob_find(&p->blobs, b->entries[i].sha256));
        keep(p, p->number + 1, blobs, n);
}

static int make_current(struct lkg_publisher *p, struct builder *b, const struct lkg_buf *manifest,
                        struct lkg_error *err)
{
        int r;

        /* The references first: the current manifest must never name a blob that could be removed. */
        keep_blobs(p, b);
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
        format_manifest(p, b, &manifest);
        lkg_buf_putc(&manifest, '\0');
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
        if (r < 0)
                return r;
        build(p, &b);
        r = publish(p, &b, err);
        free_builder(&b);
        return r;
}

/* ---- begin and end ---- */

static struct lkg_publication *read_previous(struct lkg_publisher *p)
{
        LKG_CLEANUP(lkg_closep) int fd = lkg_open_plain(p->runtime_fd, LKG_PUBLICATION_CURRENT);
        LKG_CLEANUP(lkg_freep) char *text = NULL;
        struct lkg_publication *previous = NULL;
        size_t size;

        p->fresh = fd == -ENOENT;
        if (p->fresh)
                return NULL;
        if (fd >= 0 && lkg_read_file(fd, LKG_MANIFEST_BYTES_MAX, &text, &size, NULL) >= 0)
                (void)lkg_need(lkg_publication_parse(text, size, &previous, NULL));
        /* unreadable: surely more than were ever published */
        p->number = previous ? previous->number : lkg_boottime_ns() / 1000;
        return previous;
}

int lkg_publisher_open(int runtime_fd, struct lkg_publisher **ret, struct lkg_publication **ret_previous,
                       struct lkg_error *err)
{
        struct lkg_publisher *p = lkg_must(calloc(1, sizeof(*p)));
        struct lkg_blob **all;
        size_t n;
        int r;

        p->runtime_fd = runtime_fd;
        p->blobs.dirfd = -EBADF;
        r = lkg_blobs_open(runtime_fd, &p->blobs, &all, &n, err);
        if (r < 0) {
                lkg_publisher_free(p);
                return lkg_error_set(err, r, NULL, "take over the runtime directory");
        }
        *ret = p;
        *ret_previous = read_previous(p);
        keep(p, p->number, all, n); /* a reader may be loading the predecessor's publication */
        return 0;
}

/* ---- a generation, from what an engine before this one has published ---- */

/* The publication has no digest of that configuration; what it shows is named by the pointers. */
static void set_source_sha256(struct lkg_generation *g, const struct lkg_dynamic *d)
{
        const struct lkg_config_source *names[] = { &d->pointers.active, &d->pointers.assigned,
                                                    &d->pointers.rollback.from };
        char id[LKG_SOURCE_ID_MAX + 1];

        for (size_t i = 0; i < LKG_ARRAY_SIZE(names) && !*g->source_sha256; i++) {
                lkg_config_source_id(names[i], id);
                if (strcmp(id, g->source) == 0)
                        memcpy(g->source_sha256, names[i]->sha256, sizeof(g->source_sha256));
        }
}

int lkg_publisher_recover(const struct lkg_publisher *publisher, const struct lkg_publication *publication,
                          const struct lkg_component *c, const struct lkg_entry *view,
                          struct lkg_generation **ret)
{
        const struct lkg_publication_component *shown;
        LKG_CLEANUP(lkg_generation_unrefp) struct lkg_generation *g = lkg_generation_alloc();
        int r;

        if (view->component >= publication->n_components)
                return -EBADMSG;
        shown = &publication->components[view->component];
        g->number = view->generation;
        g->time_ns = (uint64_t)view->mtime_ns;
        g->has_base = !shown->source || strcmp(shown->source, lkg_local_word(true)) == 0;
        memcpy(g->sha256, view->sha256, LKG_SHA256_HEX);
        if (shown->source && *shown->object) {
                (void)snprintf(g->source, sizeof(g->source), "%s", shown->source);
                (void)snprintf(g->object, sizeof(g->object), "%s", shown->object);
                if (c->dynamic)
                        set_source_sha256(g, c->dynamic);
        }
        r = lkg_publication_read(publisher->blobs.dirfd, view, LKG_FALLBACK_BYTES_MAX, &g->document.data,
                                 &g->document.size);
        if (r >= 0)
                r = lkg_generation_describe_document(g);
        if (r < 0)
                return r;
        *ret = LKG_STEAL(g);
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

void lkg_publisher_reset(struct lkg_publisher *p)
{
        for (size_t i = 0; i < LKG_COMPONENTS_MAX; i++) {
                struct lkg_shown *shown = &p->shown[i];

                clear(p, &shown->document);
                clear(p, &shown->good_document);
                lkg_pod_files_clear(p, &shown->pods);
                lkg_pod_files_clear(p, &shown->good_pods);
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
        for (size_t i = 0; i < LKG_COMPONENTS_MAX; i++) {
                lkg_pod_files_free(&p->shown[i].pods);
                lkg_pod_files_free(&p->shown[i].good_pods);
        }
        lkg_buf_deinit(&p->manifest);
        lkg_blobs_deinit(&p->blobs);
        free(p);
        return NULL;
}
