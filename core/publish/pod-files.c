/* SPDX-License-Identifier: Apache-2.0 */
/* Static pods in a publication: a file for each text of a set. */
#include "publisher.h"

#include <lkg/documents.h>

void lkg_pod_files_free(struct lkg_pod_files *files)
{
        for (size_t i = 0; i < files->n; i++)
                free(files->items[i].name);
        free(files->items);
        *files = (struct lkg_pod_files){ 0 };
}

void lkg_pod_files_clear(struct lkg_publisher *p, struct lkg_pod_files *files)
{
        for (size_t i = 0; i < files->n; i++)
                lkg_blob_unref(&p->blobs, files->items[i].slot.blob);
        lkg_pod_files_free(files);
}

static const struct lkg_pod_file *find(const struct lkg_pod_files *files, const char *name)
{
        for (size_t i = 0; i < files->n; i++)
                if (strcmp(files->items[i].name, name) == 0)
                        return &files->items[i];
        return NULL;
}

/* A file with the same content is the same file: its time and generation stay. */
static int add(struct lkg_publisher *p, struct lkg_pod_files *files, const struct lkg_pod_files *before,
               const struct lkg_member *m, const struct lkg_generation *g, struct lkg_error *err)
{
        struct lkg_pod_file *file = &files->items[files->n];
        const struct lkg_pod_file *was = find(before, m->key.data);
        size_t size;
        const char *text = lkg_value_text(m->value, &size);
        int r = lkg_blob_put(&p->blobs, /* sha256= */ NULL, text, size, &file->slot.blob, err);

        if (r < 0)
                return r;
        file->name = lkg_copy(m->key.data);
        file->slot.mtime_ns = was && was->slot.blob == file->slot.blob ? was->slot.mtime_ns : g->time_ns;
        file->generation = was && was->slot.blob == file->slot.blob ? was->generation : g->number;
        files->n++;
        return 0;
}

int lkg_pod_files_fill(struct lkg_publisher *p, struct lkg_pod_files *files, const struct lkg_value *texts,
                       const char *sha256, const struct lkg_generation *g, struct lkg_error *err)
{
        struct lkg_pod_files next = { 0 };
        int r = 0;

        if (strcmp(files->of, sha256) == 0)
                return 0;
        next.items = lkg_must(calloc(texts ? lkg_value_size(texts) + 1 : 1, sizeof(*next.items)));
        (void)snprintf(next.of, sizeof(next.of), "%s", sha256);
        for (struct lkg_member m = { 0 }; r >= 0 && texts && lkg_value_next(texts, &m);)
                r = add(p, &next, files, &m, g, err);
        if (r < 0) {
                lkg_pod_files_clear(p, &next);
                return r;
        }
        lkg_pod_files_clear(p, files);
        *files = next;
        return 0;
}

/* ---- status/<c>/pods: of a document only what it is called ---- */

static uint64_t wall_time(uint64_t boot_ns)
{
        return lkg_realtime_ns() - (lkg_boottime_ns() - boot_ns);
}

void lkg_status_render_pods(const struct lkg_status_context *x, struct lkg_buf *buf)
{
        const struct lkg_pods *pods = x->component->pods;

        for (size_t i = 0; i < pods->n_items; i++) {
                const struct lkg_pod *pod = &pods->items[i];
                char since[21] = "-";

                if (pod->trial.since_ns)
                        lkg_format_rfc3339(wall_time(pod->trial.since_ns), since);
                lkg_buf_printf(buf, "%s\t%.12s\t%s\t%s\t", pod->file, pod->sha256,
                               lkg_pod_state_names[pod->trial.state], since);
                lkg_buf_shown(buf, pod->words, strlen(pod->words));
                lkg_buf_putc(buf, '\n');
        }
}

/* ---- what an engine before this one has published ---- */

static const char *name_in(const struct lkg_entry *entry, const struct lkg_component *c)
{
        size_t n = strlen(c->config->file);

        return entry->flags & LKG_ENTRY_VIEW && strncmp(entry->path, c->config->file, n) == 0 &&
                               entry->path[n] == '/'
                       ? entry->path + n + 1
                       : NULL;
}

static int take_file(struct lkg_publisher *p, const struct lkg_entry *entry, const char *name,
                     struct lkg_pod_files *files, struct lkg_value *texts)
{
        struct lkg_blob *blob = lkg_blob_find(&p->blobs, entry->sha256);
        struct lkg_value *text;
        char *data;
        size_t size;
        int r = blob ? lkg_publication_read(p->blobs.dirfd, entry, LKG_DOC_BYTES_MAX, &data, &size)
                     : -ENOENT;

        if (r < 0)
                return r;
        text = lkg_value_new_string(data, size, NULL, 0, 0);
        free(data);
        (void)lkg_map_set(texts, name, strlen(name), text);
        lkg_need(LKG_GROW(files->items, files->n));
        files->items[files->n++] = (struct lkg_pod_file){
                .name = lkg_copy(name),
                .slot = { lkg_blob_ref(blob), (uint64_t)entry->mtime_ns },
                .generation = entry->generation,
        };
        return 0;
}

int lkg_publisher_recover_pods(struct lkg_publisher *p, const struct lkg_publication *publication,
                               const struct lkg_component *c, struct lkg_generation **ret)
{
        struct lkg_pod_files *files = &p->shown[c->index].pods;
        struct lkg_value *texts = lkg_value_new_map(NULL, 0, 0);
        LKG_CLEANUP(lkg_value_unrefp) struct lkg_value *set = lkg_pods_set_of(texts);
        LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf buf = LKG_BUF_INIT;
        struct lkg_text document;
        uint64_t number = 0, time_ns = 0;
        int r = 0;

        for (size_t i = 0; i < publication->n_components; i++)
                if (strcmp(publication->components[i].name, c->config->name) == 0)
                        number = publication->components[i].generation;
        for (size_t i = 0; r >= 0 && number && i < publication->n_entries; i++) {
                const struct lkg_entry *entry = &publication->entries[i];
                const char *name = name_in(entry, c);

                if (!name)
                        continue;
                r = take_file(p, entry, name, files, texts);
                time_ns = lkg_later(time_ns, (uint64_t)entry->mtime_ns);
        }
        if (r < 0 || !number)
                return r < 0 ? r : -ENOENT;
        lkg_document_render(set, LKG_FORMAT_YAML, c->names.hint, &buf);
        (void)lkg_buf_text(&buf);
        document.data = lkg_buf_steal(&buf, &document.size);
        return lkg_generation_stored(NULL, number, time_ns, document, ret);
}
