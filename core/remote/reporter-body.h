/* SPDX-License-Identifier: Apache-2.0 */
/* Bodies of requests to the API server, as JSON. Pure. Source: core/v1 NodeCondition and Event. */
#pragma once

#include <lkg/text.h>
#include <lkg/client.h>

#include "outbox.h"

/** lkg_body_figures_differ() - do two conditions differ in nothing but what follows the first digit of their reasons? */
bool lkg_body_figures_differ(const struct lkg_node_condition *a, const struct lkg_node_condition *b);
/** lkg_body_condition() - a strategic merge patch of nodes/<name>/status: one condition, the others stay. */
void lkg_body_condition(const struct lkg_node_condition *condition, uint64_t wall_ns, struct lkg_buf *buf);

/* The node that an Event is about, and the reporting host. */
struct lkg_body_node {
        const char *name, *uid, *host;
};
/** lkg_body_event() - a new Event about the node, in the namespace of cluster-scoped objects. */
void lkg_body_event(const struct lkg_node_event *event, const struct lkg_body_node *node,
                    struct lkg_buf *buf);
/** lkg_body_count() - a strategic merge patch of an Event: raise its count. */
void lkg_body_count(const struct lkg_node_event *event, struct lkg_buf *buf);
