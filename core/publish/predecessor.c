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
        const struct lkg_publication_component *shown;
        LKG_CLEANUP(lkg_generation_unrefp) struct lkg_generation *g = lkg_generation_alloc();
        int r;

        if (!g)
                return -ENOMEM;
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
        r = lkg_publisher_read(publisher, view, &g->document.data, &g->document.size);
        if (r >= 0)
                r = lkg_generation_describe_document(g);
        if (r < 0)
                return r;
        *ret = LKG_STEAL(g);
        return 0;
}
