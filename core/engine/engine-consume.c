/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The component runs with an older document: asks the supervisor to restart it, if that is configured. Not for a document with the
 * same meaning, and not while a starting process is about to read the new one.
 */
#include "engine-internal.h"

void lkg_engine_consume(struct lkg_engine *e, struct lkg_component *c)
{
        const struct lkg_generation *before = c->previous;
        struct lkg_message m;

        if (c->config->restart.policy == LKG_RESTART_NEVER || !c->active || !e->server.supervisor ||
            c->answers_start || !e->started || !lkg_component_runs_older(c))
                return;
        lkg_message_init(&m, LKG_MSG_RESTART);
        m.component = c->index;
        m.number = c->active->number;
        /* The change reaches all nodes at once, so they must not all restart at once. A rollback heals, so it is not delayed. */
        m.result =
                c->base && !*c->dynamic->pointers.rollback.reason &&
                !lkg_config_records_match(c->active->source, c->active->source_sha256,
                                          before ? before->source : "", before ? before->source_sha256 : "");
        lkg_peer_send(e->server.supervisor, &m);
}

void lkg_engine_consumed(struct lkg_engine *e, const struct lkg_component *c)
{
        struct lkg_message m;

        if (c->config->restart.policy == LKG_RESTART_NEVER || !e->server.supervisor)
                return;
        lkg_message_init(&m, LKG_MSG_RESTART); /* generation 0: no longer needed */
        m.component = c->index;
        lkg_peer_send(e->server.supervisor, &m);
}
