/* SPDX-License-Identifier: Apache-2.0 */
/* Rebuilds a generation from the blobs of the publication that shows it. */
#include <inttypes.h>
#include <limits.h>
#include <stdarg.h>

#include <lkg/publish.h>

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
        const struct lkg_publication_component *shown = &publication->components[view->component];
        LKG_CLEANUP(lkg_generation_unrefp) struct lkg_generation *g = NULL;
        struct lkg_text document = { 0 };
        int r = lkg_publisher_read(publisher, view, &document.data, &document.size);

        if (r >= 0)
                r = lkg_generation_stored(NULL, view->generation, (uint64_t)view->mtime_ns, document, &g);
        if (r < 0)
                return r;
        if (shown->source && !*shown->object)
                g->has_base = strcmp(shown->source, lkg_local_word(true)) == 0;
        if (shown->source && *shown->object) {
                (void)snprintf(g->source, sizeof(g->source), "%s", shown->source);
                (void)snprintf(g->object, sizeof(g->object), "%s", shown->object);
                if (c->dynamic)
                        set_source_sha256(g, c->dynamic);
        }
        *ret = LKG_STEAL(g);
        return 0;
}
