/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The component runs with an older document: ask the supervisor to restart it, if it is configured. Never for a document with
 * the same meaning, and never while the starting process is about to read the new one.
 */
#include "engine-internal.h"

void lkg_engine_consume(struct lkg_engine *e, struct lkg_component *c)
{
        struct lkg_message m;

        if (c->config->restart.policy == LKG_RESTART_NEVER || !c->active || !e->server.supervisor ||
            c->answers_start || !e->started || !lkg_component_runs_older(c))
                return;
        lkg_message_init(&m, LKG_MSG_RESTART);
        m.component = c->index;
        m.number = c->active->number;
        /* A change that reaches every node at once: the nodes must not restart at once. */
        m.result = c->base && strcmp(c->active->source, c->previous ? c->previous->source : "") != 0;
        lkg_peer_send(e->server.supervisor, &m);
}

void lkg_engine_consumed(struct lkg_engine *e, const struct lkg_component *c)
{
        struct lkg_message m;

        if (c->config->restart.policy == LKG_RESTART_NEVER || !e->server.supervisor)
                return;
        lkg_message_init(&m, LKG_MSG_RESTART); /* of generation 0: no longer needed */
        m.component = c->index;
        lkg_peer_send(e->server.supervisor, &m);
}
