/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fallback copies (<lkg/publication.h>): the source directory is read-only for the engine, so it asks lkgfsd to write them; a copy
 * that cannot be written is a finding.
 */
#include <fcntl.h>
#include <sys/stat.h>

#include <lkg/publication.h>

#include "engine-internal.h"

void lkg_engine_ask_fallback(const struct lkg_engine *e, const struct lkg_component *c)
{
        struct lkg_message m;

        if (!e->server.supervisor)
                return;
        lkg_message_init(&m, LKG_MSG_FALLBACK);
        /* By name: during a reload, lkgfsd may number the components differently. */
        m.text_size = (uint32_t)snprintf(m.text, sizeof(m.text), "%s %s", c->config->name,
                                         c->active ? c->active->sha256 : "");
        lkg_peer_send(e->server.supervisor, &m);
}

void lkg_engine_ask_first_fallback(const struct lkg_engine *e)
{
        struct stat st;

        if (e->started || fstatat(e->options.source_fd, LKG_FALLBACK_DIR, &st, AT_SYMLINK_NOFOLLOW) == 0)
                return;
        for (size_t i = 0; i < e->n_components; i++)
                if (e->components[i].active)
                        lkg_engine_ask_fallback(e, &e->components[i]);
}

void lkg_engine_fallback_answered(struct lkg_engine *e, const struct lkg_message *m)
{
        const struct lkg_where where = { .file = LKG_FALLBACK_DIR };
        struct lkg_component *c = lkg_component_find(e->components, e->n_components, m->text);

        if (!c || (m->result == 0 && c->fallback_findings.n_findings == 0))
                return;
        lkg_report_deinit(&c->fallback_findings);
        if (m->result < 0)
                lkg_report_add(&c->fallback_findings, LKG_WARNING, 4002, &where,
                               "the fallback copy of %s cannot be written: %s", c->config->file,
                               strerror(-m->result));
        c->dirty |= LKG_DIRTY_FINDINGS;
        if (e->started)
                e->hooks->cycle(e, /* look= */ false);
}
