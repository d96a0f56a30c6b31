/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The large parts of a publication: layers/ and history/. Each file is rendered once and kept while it is up
 * to date.
 */
#include <lkg/base.h>
#include <lkg/documents.h>

#include "publisher.h"

static void free_layer_slot(struct lkg_publisher *p, struct lkg_layer_slot *slot)
{
        lkg_slot_clear(p, &slot->doc);
        lkg_slot_clear(p, &slot->merged);
        lkg_value_unref(slot->doc_value);
        free(slot->name);
        free(slot->layer);
        *slot = (struct lkg_layer_slot){ 0 };
}

static size_t layers_wanted(const struct lkg_snapshot *in, const struct lkg_component *c)
{
        size_t n =
                c->candidate && c->candidate->state != LKG_CANDIDATE_NAME_TAKEN ? c->candidate->n_layers : 0;
        size_t most = (LKG_MANIFEST_ENTRIES_MAX / 2 - 2048) / in->n_components / 2;

        if (most > LKG_LAYERS_SHOWN_MAX)
                most = LKG_LAYERS_SHOWN_MAX;
        return n < most ? n : most;
}

static int resize_layers(struct lkg_publisher *p, struct lkg_shown *shown, size_t n)
{
        for (size_t i = n; i < shown->n_layers; i++)
                free_layer_slot(p, &shown->layers[i]);
        if (n <= shown->n_layers) {
                shown->n_layers = n;
                return 0;
        }
        if (LKG_RESIZE(shown->layers, n) < 0)
                return -ENOMEM;
        memset(shown->layers + shown->n_layers, 0, (n - shown->n_layers) * sizeof(*shown->layers));
        shown->n_layers = n;
        return 0;
}

/* One file of layers/; NULL: there is none. */
static int render_value(struct lkg_publisher *p, const struct lkg_value *value, struct lkg_file_slot *slot,
                        uint64_t mtime_ns, struct lkg_error *err)
{
        LKG_CLEANUP(lkg_value_unrefp) struct lkg_value *masked = NULL;
        struct lkg_buf buf = LKG_BUF_INIT;
        int r = 0;

        if (value) {
                masked = lkg_mask_secrets(value);
                if (!masked)
                        return lkg_error_set(err, -ENOMEM, NULL, "render a layer");
                lkg_render(masked, LKG_FORMAT_YAML, &buf);
                r = lkg_slot_fill_buf(p, slot, &buf, mtime_ns, err);
        } else {
                lkg_slot_clear(p, slot);
        }
        return r;
}

static int name_layer(struct lkg_layer_slot *slot, const struct lkg_layer_info *info, size_t i)
{
        char name[256], *copy, *layer;

        if (slot->name && slot->role == info->role && strcmp(slot->layer, info->name) == 0)
                return 0;
        lkg_layer_entry_name(info, i, name, sizeof(name));
        copy = strdup(name);
        layer = strdup(info->name);
        if (!copy || !layer) {
                free(copy);
                free(layer);
                return -ENOMEM;
        }
        free(slot->name);
        free(slot->layer);
        slot->name = copy;
        slot->layer = layer;
        slot->role = info->role;
        return 0;
}

/* Return: 1: the file was rendered; 0: it is up to date. */
static int render_doc(struct lkg_publisher *p, const struct lkg_value *doc, struct lkg_layer_slot *slot,
                      uint64_t mtime_ns, struct lkg_error *err)
{
        int r;

        if (doc == slot->doc_value)
                return 0;
        r = render_value(p, doc, &slot->doc, mtime_ns, err);
        if (r < 0)
                return r;
        lkg_value_unref(slot->doc_value);
        slot->doc_value = lkg_value_ref((struct lkg_value *)doc);
        return 1;
}

/* The same. */
static int render_merged(struct lkg_publisher *p, const struct lkg_candidate *candidate, size_t i,
                         struct lkg_layer_slot *slot, uint64_t mtime_ns, struct lkg_error *err)
{
        LKG_CLEANUP(lkg_value_unrefp) struct lkg_value *merged = NULL;
        int r;

        if (slot->merged_cookie == candidate->layers[i].cookie)
                return 0;
        r = lkg_candidate_merged(candidate, i, &merged);
        if (r < 0)
                return lkg_error_set(err, r, NULL, "merge a layer again");
        r = render_value(p, merged, &slot->merged, mtime_ns, err);
        slot->merged_cookie = r < 0 ? 0 : candidate->layers[i].cookie;
        return r < 0 ? r : 1;
}

/* Return: 1: there was a file to hide; 0. */
static int hide_merged(struct lkg_publisher *p, struct lkg_layer_slot *slot)
{
        bool was_shown = slot->merged.blob;

        lkg_slot_clear(p, &slot->merged);
        slot->merged_cookie = 0;
        return was_shown;
}

/* Return: how many of its two files were rendered. */
static int render_layer(struct lkg_publisher *p, const struct lkg_candidate *candidate, size_t i,
                        struct lkg_layer_slot *slot, bool with_merged, uint64_t mtime_ns,
                        struct lkg_error *err)
{
        const struct lkg_layer_info *info = &candidate->layers[i];
        int n = render_doc(p, info->doc, slot, mtime_ns, err);
        int r = n < 0                        ? n
                : with_merged && info->whole ? render_merged(p, candidate, i, slot, mtime_ns, err)
                                             : hide_merged(p, slot);

        return r < 0 ? r : n + r;
}

/* Return: 1: more to do; 0: done. */
int lkg_publish_component_layers(struct lkg_publisher *p, const struct lkg_snapshot *in, size_t index,
                                 size_t budget, struct lkg_error *err)
{
        struct lkg_snapshot_component *now = &in->components[index];
        const struct lkg_candidate *candidate = now->component->candidate;
        struct lkg_shown *shown = &p->shown[index];
        size_t n = layers_wanted(in, now->component), merged_bytes = 0, done = 0;
        bool cut = candidate && n < candidate->n_layers && candidate->state != LKG_CANDIDATE_NAME_TAKEN;
        int r = resize_layers(p, shown, n);

        if (r < 0)
                return lkg_error_set(err, r, NULL, "layers");
        for (size_t i = 0; i < n; i++) {
                struct lkg_layer_slot *slot = &shown->layers[i];
                bool with_merged = merged_bytes < LKG_LAYERS_MERGED_MAX;

                if (done >= budget)
                        return 1;
                r = name_layer(slot, &candidate->layers[i], i);
                if (r >= 0)
                        r = render_layer(p, candidate, i, slot, with_merged, in->now_ns, err);
                if (r < 0)
                        return r;
                done += (size_t)r;
                if (slot->merged.blob)
                        merged_bytes += slot->merged.blob->size;
                cut = cut || !with_merged;
        }
        if (done > 0)
                shown->changed_ns = in->now_ns;
        if (cut != shown->layers_cut) {
                shown->layers_cut = cut;
                now->changed |= LKG_DIRTY_FINDINGS;
        }
        now->changed &= ~(unsigned)LKG_DIRTY_LAYERS;
        return 0;
}

int lkg_publish_layers(struct lkg_publisher *p, const struct lkg_snapshot *in, size_t budget,
                       struct lkg_error *err)
{
        for (size_t i = 0; i < in->n_components; i++) {
                int r = in->components[i].changed & LKG_DIRTY_LAYERS
                                ? lkg_publish_component_layers(p, in, i, budget, err)
                                : 0;

                if (r != 0)
                        return r;
        }
        return 0;
}

const char *lkg_publisher_layer_sha256(const struct lkg_publisher *p, unsigned component, size_t i,
                                       const struct lkg_value *doc)
{
        const struct lkg_shown *shown = &p->shown[component];

        if (i >= shown->n_layers || shown->layers[i].doc_value != doc || !shown->layers[i].doc.blob)
                return NULL;
        return shown->layers[i].doc.blob->sha256;
}

/* ---- history ---- */

void lkg_history_slot_clear(struct lkg_publisher *p, struct lkg_history_slot *slot)
{
        lkg_slot_clear(p, &slot->document);
        lkg_slot_clear(p, &slot->origin);
        lkg_slot_clear(p, &slot->meta);
}

static int fill_past(struct lkg_publisher *p, const struct lkg_component *c,
                     const struct lkg_history_entry *entry, struct lkg_history_slot *slot,
                     struct lkg_error *err)
{
        LKG_CLEANUP(lkg_generation_unrefp) struct lkg_generation *g = NULL;
        const struct lkg_text *shown;
        int r = lkg_history_get(&c->history, entry->number, &g, err);

        if (r < 0)
                return r;
        shown = lkg_generation_shown(g);
        *slot = (struct lkg_history_slot){ .number = entry->number };
        r = lkg_slot_fill(p, &slot->document, shown->data, shown->size, g->time_ns, err);
        if (r >= 0)
                r = lkg_slot_fill(p, &slot->origin, g->origin.data, g->origin.size, g->time_ns, err);
        if (r >= 0)
                r = lkg_slot_fill(p, &slot->meta, g->meta.data, g->meta.size, g->time_ns, err);
        if (r < 0)
                lkg_history_slot_clear(p, slot);
        return r;
}

static bool move_past(struct lkg_shown *shown, uint64_t number, struct lkg_history_slot *to)
{
        for (size_t i = 0; i < shown->n_past; i++) {
                if (shown->past[i].number != number || !shown->past[i].document.blob)
                        continue;
                *to = shown->past[i];
                shown->past[i] = (struct lkg_history_slot){ 0 };
                return true;
        }
        return false;
}

/*
 * Records are immutable: rendered ones are reused, removed ones are released. After a failure the files
 * rendered so far are kept, and the next attempt continues from there.
 */
int lkg_publish_component_history(struct lkg_publisher *p, const struct lkg_component *c,
                                  struct lkg_shown *shown, struct lkg_error *err)
{
        struct lkg_history_slot *slots = calloc(c->history.n_entries + 1, sizeof(*slots));
        size_t n = 0;
        int r = 0;

        if (!slots)
                return lkg_error_set(err, -ENOMEM, NULL, "history");
        for (size_t i = 0; i < c->history.n_entries; i++) {
                const struct lkg_history_entry *entry = &c->history.entries[i];
                int k = 0;

                if (!move_past(shown, entry->number, &slots[n]))
                        k = r < 0 ? r : fill_past(p, c, entry, &slots[n], err);
                if (k >= 0)
                        n++;
                else if (k != -ENOENT && k != -EBADMSG) /* removed or damaged since the start: not shown */
                        r = k;
        }
        for (size_t i = 0; i < shown->n_past; i++)
                lkg_history_slot_clear(p, &shown->past[i]);
        free(shown->past);
        shown->past = slots;
        shown->n_past = n;
        return r;
}
