/* SPDX-License-Identifier: Apache-2.0 */
/* Rebuilds a generation from the blobs of the publication that shows it. */
#include <inttypes.h>
#include <limits.h>
#include <stdarg.h>

#include <lkg/publish.h>

struct predecessor {
        const struct lkg_publisher *publisher;
        const struct lkg_publication *publication;
        const struct lkg_component *component;
};

/* Reads one file, by its path below the virtual directory. */
LKG_PRINTF(3, 4)
static int read_published(const struct predecessor *from, struct lkg_text *ret, const char *fmt, ...)
{
        char path[2 * PATH_MAX];
        size_t n = (size_t)snprintf(path, sizeof(path), "%s", from->component->top);
        const struct lkg_entry *entry;
        va_list ap;

        va_start(ap, fmt);
        (void)vsnprintf(path + n, sizeof(path) - n, fmt, ap);
        va_end(ap);
        entry = lkg_publication_find(from->publication, path);
        if (!entry || entry->type != LKG_ENTRY_FILE)
                return -ENOENT;
        return lkg_publisher_read(from->publisher, entry, &ret->data, &ret->size);
}

/* Parses status/<c>/active: `init`, `default`, or an id and an object. */
static void set_source(struct lkg_generation *g, char *word)
{
        char *object = strchr(word, ' ');

        word[strcspn(word, "\n")] = '\0';
        g->has_base = strcmp(word, "init") == 0;
        if (!object)
                return;
        *object++ = '\0';
        (void)snprintf(g->source, sizeof(g->source), "%s", word);
        (void)snprintf(g->object, sizeof(g->object), "%s", object);
}

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
        LKG_CLEANUP(lkg_generation_unrefp) struct lkg_generation *g = lkg_generation_alloc();
        const struct predecessor from = { publisher, publication, c };
        const char *name = c->config->name;
        struct lkg_text word = { 0 };
        int r;

        if (!g)
                return -ENOMEM;
        g->number = view->generation;
        g->time_ns = (uint64_t)view->mtime_ns;
        memcpy(g->sha256, view->sha256, LKG_SHA256_HEX);
        r = lkg_publisher_read(publisher, view, &g->document.data, &g->document.size);
        if (r >= 0)
                r = read_published(&from, &g->origin, "status/%s/origin", name);
        if (r >= 0)
                r = read_published(&from, &g->meta, "history/%s/%" PRIu64 "/meta.json", name, g->number);
        if (r >= 0) /* equals the document unless that contains secrets */
                r = read_published(&from, &g->shown, "history/%s/%" PRIu64 "/%s", name, g->number,
                                   c->config->file);
        if (r >= 0)
                r = read_published(&from, &word, "status/%s/active", name);
        if (r < 0)
                return r;
        set_source(g, word.data);
        free(word.data);
        if (c->dynamic)
                set_source_sha256(g, c->dynamic);
        *ret = LKG_STEAL(g);
        return 0;
}
