/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Texts that are rendered when somebody looks them up: status/ (but for what a publication has as blobs), bad/, layers/
 * and history/. A path is resolved by one table; what it leads to is the engine's state at this moment.
 */
#include <inttypes.h>
#include <limits.h>

#include <lkg/base.h>
#include <lkg/documents.h>

#include "publisher.h"

/* What is looked up: which component, and the rest of the path. */
struct lookup {
        const struct lkg_snapshot *in;
        const struct lkg_component *c;
        struct lkg_publisher *p;
        const char *name; /* below <directory>/<component>; "" = that directory */
        const char *file; /* below history/<component>/<name>; NULL = none */
        bool listing;     /* of the names, instead of a file */
        struct lkg_buf *buf;
};

static void put_name(struct lkg_buf *buf, char type, const char *name)
{
        lkg_buf_putc(buf, type);
        lkg_buf_append(buf, name, strlen(name) + 1);
}

/* ---- status/ and bad/: their names are in the publication ---- */

static int answer_status(const struct lookup *q, struct lkg_rendered *ret)
{
        const struct lkg_status_context x = lkg_status_context(q->in, q->c->index, q->p);

        for (size_t i = 0; i < lkg_n_status_files; i++) {
                const struct lkg_status_file *f = &lkg_status_files[i];

                if (strcmp(f->name, q->name) != 0 || f->blob || (f->exists && !f->exists(&x)))
                        continue;
                f->render(&x, q->buf);
                return 0;
        }
        return -ENOENT;
}

static int answer_bad(const struct lookup *q, struct lkg_rendered *ret)
{
        const struct lkg_bad *bad = q->c->dynamic ? lkg_bad_named(&q->c->dynamic->bad, q->name) : NULL;

        if (!bad)
                return -ENOENT;
        lkg_bad_format(bad, q->buf);
        ret->mtime_ns = (int64_t)bad->time_ns;
        return 0;
}

/* ---- layers/ ---- */

#define DOC_SUFFIX     ".yaml"
#define MERGED_SUFFIX  ".merged.yaml"
#define LAYER_NAME_MAX 200 /* and a suffix */

/* NULL: there are no layers to show. */
static const struct lkg_candidate *shown_layers(const struct lkg_component *c)
{
        return c->candidate && c->candidate->state != LKG_CANDIDATE_NAME_TAKEN ? c->candidate : NULL;
}

/* `NNNN-<role>-<name>` and @suffix, slashes replaced, and cut where it is too long for a name. */
static void layer_name(const struct lkg_candidate *candidate, size_t i, const char *suffix,
                       char ret[static NAME_MAX + 1])
{
        const struct lkg_layer_info *layer = &candidate->layers[i];

        (void)snprintf(ret, NAME_MAX + 1, "%04zu-%s-%s", i, lkg_layer_role_name(layer->role), layer->name);
        ret[LAYER_NAME_MAX] = '\0';
        for (char *p = ret; *p; p++)
                if (*p == '/')
                        *p = '-';
        (void)strcat(ret, suffix);
}

static int list_layers(const struct lookup *q)
{
        const struct lkg_candidate *candidate = shown_layers(q->c);
        char name[NAME_MAX + 1];

        for (size_t i = 0; candidate && i < candidate->n_layers; i++) {
                if (candidate->layers[i].whole) {
                        layer_name(candidate, i, MERGED_SUFFIX, name);
                        put_name(q->buf, 'f', name);
                }
                if (candidate->layers[i].doc) {
                        layer_name(candidate, i, DOC_SUFFIX, name);
                        put_name(q->buf, 'f', name);
                }
        }
        return 0;
}

static int put_masked(const struct lkg_value *value, struct lkg_buf *buf)
{
        LKG_CLEANUP(lkg_value_unrefp) struct lkg_value *masked = value ? lkg_mask_secrets(value) : NULL;

        if (!value)
                return -ENOENT;
        lkg_render(masked, LKG_FORMAT_YAML, buf);
        return 0;
}

static int answer_layers(const struct lookup *q, struct lkg_rendered *ret)
{
        const struct lkg_candidate *candidate = shown_layers(q->c);
        LKG_CLEANUP(lkg_value_unrefp) struct lkg_value *merged = NULL;
        unsigned long long i = strtoull(q->name, NULL, 10);
        char name[NAME_MAX + 1];

        if (q->listing)
                return list_layers(q);
        if (!candidate || i >= candidate->n_layers)
                return -ENOENT;
        layer_name(candidate, i, DOC_SUFFIX, name);
        if (strcmp(q->name, name) == 0)
                return put_masked(candidate->layers[i].doc, q->buf);
        layer_name(candidate, i, MERGED_SUFFIX, name);
        if (strcmp(q->name, name) != 0 || !candidate->layers[i].whole)
                return -ENOENT;
        merged = lkg_candidate_merged(candidate, i);
        return put_masked(merged, q->buf);
}

/* ---- history/ ---- */

static int list_history(const struct lookup *q)
{
        const struct lkg_history *history = &q->c->history;
        char number[24];

        for (size_t i = 0; i < history->n_entries; i++) {
                (void)snprintf(number, sizeof(number), "%" PRIu64, history->entries[i].number);
                put_name(q->buf, 'd', number);
        }
        return 0;
}

static int answer_generation(const struct lookup *q, struct lkg_generation *g, struct lkg_rendered *ret)
{
        const struct {
                const char *name;
                const struct lkg_text *text;
        } files[] = { { q->c->config->file, lkg_generation_shown(g) },
                      { "origin", &g->origin },
                      { "meta.json", &g->meta } };

        for (size_t i = 0; i < LKG_ARRAY_SIZE(files); i++) {
                if (q->listing)
                        put_name(q->buf, 'f', files[i].name);
                if (q->listing || strcmp(files[i].name, q->file) != 0)
                        continue;
                lkg_buf_append(q->buf, files[i].text->data, files[i].text->size);
                return 0;
        }
        return q->listing ? 0 : -ENOENT;
}

static int answer_history(const struct lookup *q, struct lkg_rendered *ret)
{
        LKG_CLEANUP(lkg_generation_unrefp) struct lkg_generation *g = NULL;
        const struct lkg_history_entry *entry;
        char number[24];
        int r;

        if (!*q->name)
                return list_history(q);
        entry = lkg_history_find(&q->c->history, strtoull(q->name, NULL, 10));
        if (!entry)
                return -ENOENT;
        (void)snprintf(number, sizeof(number), "%" PRIu64, entry->number);
        if (strcmp(q->name, number) != 0)
                return -ENOENT;
        ret->mtime_ns = (int64_t)entry->time_ns;
        ret->is_dir = !q->file && !q->listing;
        if (ret->is_dir)
                return 0;
        r = lkg_history_get(&q->c->history, entry->number, &g, NULL);
        if (r < 0)
                return r;
        lkg_generation_describe(g);
        return answer_generation(q, g, ret);
}

/* ---- look-ups ---- */

static const struct {
        const char *dir;
        bool listed; /* its names are asked for; else they are in the publication */
        int (*answer)(const struct lookup *q, struct lkg_rendered *ret);
} rows[] = {
        { "status", false, answer_status },
        { "bad", false, answer_bad },
        { "layers", true, answer_layers },
        { "history", true, answer_history },
};

/* Cuts @path, which is relative to the virtual directory. */
static int answer_path(struct lookup *q, char *path, struct lkg_rendered *ret)
{
        char *dir = strsep(&path, "/"), *component = strsep(&path, "/"), *name = strsep(&path, "/");
        size_t i = 0;

        q->name = name ? name : "";
        q->file = path;
        while (i < LKG_ARRAY_SIZE(rows) && strcmp(rows[i].dir, dir) != 0)
                i++;
        for (size_t k = 0; component && k < q->in->n_components; k++)
                if (strcmp(q->in->components[k].component->config->name, component) == 0)
                        q->c = q->in->components[k].component;
        if (i == LKG_ARRAY_SIZE(rows) || !q->c || (q->listing && !rows[i].listed) ||
            (!*q->name && !q->listing) || (q->file && strcmp(dir, "history") != 0))
                return -ENOENT;
        ret->mtime_ns = (int64_t)q->p->shown[q->c->index].changed_ns;
        return rows[i].answer(q, ret);
}

static int answer(struct lkg_publisher *p, const struct lkg_snapshot *in, const char *path,
                  struct lkg_buf *buf, struct lkg_rendered *ret)
{
        const char *top = in->config->virtual_dir;
        size_t n_top = strlen(top), size = strlen(path);
        struct lookup q = { .in = in, .p = p, .listing = size > 0 && path[size - 1] == '/', .buf = buf };
        LKG_CLEANUP(lkg_freep) char *copy = NULL;

        if (n_top > 0 && (size - q.listing <= n_top || strncmp(path, top, n_top) != 0 || path[n_top] != '/'))
                return -ENOENT;
        copy = lkg_must(strndup(path, size - q.listing));
        return answer_path(&q, copy + (n_top > 0 ? n_top + 1 : 0), ret);
}

static struct lkg_answered *find_answered(struct lkg_publisher *p, const char *path, uint64_t state)
{
        uint64_t now = lkg_boottime_ns();

        for (size_t i = 0; i < LKG_ANSWERED_MAX; i++) {
                struct lkg_answered *a = &p->answered[i];

                if (a->path && a->state == state && now < a->until_ns && strcmp(a->path, path) == 0)
                        return a;
        }
        return NULL;
}

static void forget_answer(struct lkg_publisher *p, struct lkg_answered *answered)
{
        free(answered->path);
        lkg_blob_unref(&p->blobs, answered->blob);
        *answered = (struct lkg_answered){ 0 };
}

static int remember(struct lkg_publisher *p, struct lkg_answered *now, struct lkg_buf *buf,
                    struct lkg_error *err)
{
        struct lkg_answered *a = &p->answered[p->next_answered];
        int r = lkg_blob_put(&p->blobs, /* sha256= */ NULL, buf->data ? buf->data : "", buf->size,
                             &now->blob, err);

        if (r < 0)
                return r;
        now->rendered.size = buf->size;
        memcpy(now->rendered.sha256, now->blob->sha256, LKG_SHA256_HEX);
        forget_answer(p, a);
        *a = *now;
        p->next_answered = (p->next_answered + 1) % LKG_ANSWERED_MAX;
        return 0;
}

int lkg_publisher_render(struct lkg_publisher *p, const struct lkg_snapshot *in, const char *path,
                         uint64_t state, struct lkg_rendered *ret, struct lkg_error *err)
{
        LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf buf = LKG_BUF_INIT;
        struct lkg_answered *known = find_answered(p, path, state), now = { 0 };
        uint64_t began_ns = lkg_boottime_ns(), keep_ns;
        int r;

        if (known) {
                *ret = known->rendered;
                return 0;
        }
        r = answer(p, in, path, &buf, &now.rendered);
        if (r >= 0 && lkg_buf_failed(&buf))
                r = -EBADMSG; /* a text that is no JSON */
        if (r < 0)
                return lkg_error_set(err, r, NULL, "render %s", path);
        keep_ns = 20 * (lkg_boottime_ns() - began_ns);
        now.state = state;
        now.until_ns = lkg_boottime_ns() + lkg_later(keep_ns, LKG_RENDERED_NS);
        if (!now.rendered.is_dir) {
                now.path = lkg_must(strdup(path));
                r = remember(p, &now, &buf, err);
        }
        if (r < 0)
                free(now.path);
        else
                *ret = now.rendered;
        return r < 0 ? r : 0;
}
