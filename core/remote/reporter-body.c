/* SPDX-License-Identifier: Apache-2.0 */
#include "reporter-body.h"

#include <lkg/text.h>

#define COMPONENT "lkgfs"

bool lkg_body_figures_differ(const struct lkg_node_condition *a, const struct lkg_node_condition *b)
{
        size_t n = strcspn(a->reason, "0123456789");

        return a->figures && b->figures && a->transition_ns == b->transition_ns &&
               strcmp(a->status, b->status) == 0 && strcmp(a->message, b->message) == 0 && a->reason[n] &&
               b->reason[strcspn(b->reason, "0123456789")] && strncmp(a->reason, b->reason, n) == 0 &&
               strcspn(b->reason, "0123456789") == n;
}

void lkg_body_condition(const struct lkg_node_condition *condition, uint64_t wall_ns, struct lkg_buf *buf)
{
        LKG_CLEANUP(lkg_json_deinit) struct lkg_json json = LKG_JSON_INIT;

        lkg_json_map(&json, NULL, LKG_JSON_TIGHT);
        lkg_json_map(&json, "status", LKG_JSON_AROUND);
        lkg_json_list(&json, "conditions", LKG_JSON_AROUND);
        lkg_json_map(&json, NULL, LKG_JSON_AROUND);
        lkg_json_text(&json, "type", "ConfigOK");
        lkg_json_text(&json, "status", condition->status);
        lkg_json_foreign(&json, "reason", condition->reason);
        lkg_json_foreign(&json, "message", condition->message);
        lkg_json_time(&json, "lastHeartbeatTime", wall_ns);
        lkg_json_time(&json, "lastTransitionTime", condition->transition_ns);
        for (unsigned i = 0; i < 4; i++)
                lkg_json_end(&json);
        (void)lkg_json_write(&json, buf);
}

static void put_involved(struct lkg_json *json, const struct lkg_body_node *node)
{
        lkg_json_map(json, "involvedObject", LKG_JSON_AROUND);
        lkg_json_text(json, "kind", "Node");
        lkg_json_text(json, "apiVersion", "v1");
        lkg_json_foreign(json, "name", node->name);
        lkg_json_foreign(json, "uid", node->uid);
        lkg_json_end(json);
}

void lkg_body_event(const struct lkg_node_event *event, const struct lkg_body_node *node,
                    struct lkg_buf *buf)
{
        LKG_CLEANUP(lkg_json_deinit) struct lkg_json json = LKG_JSON_INIT;

        lkg_json_map(&json, NULL, LKG_JSON_TIGHT);
        lkg_json_text(&json, "apiVersion", "v1");
        lkg_json_text(&json, "kind", "Event");
        lkg_json_map(&json, "metadata", LKG_JSON_AROUND);
        lkg_json_foreign(&json, "name", event->name);
        lkg_json_text(&json, "namespace", "default");
        lkg_json_end(&json);
        put_involved(&json, node);
        lkg_json_foreign(&json, "reason", event->reason);
        lkg_json_foreign(&json, "message", event->message);
        lkg_json_text(&json, "type", event->warning ? "Warning" : "Normal");
        lkg_json_map(&json, "source", LKG_JSON_AROUND);
        lkg_json_text(&json, "component", COMPONENT);
        lkg_json_foreign(&json, "host", node->host);
        lkg_json_end(&json);
        lkg_json_time(&json, "firstTimestamp", event->first_wall_ns);
        lkg_json_time(&json, "lastTimestamp", event->last_wall_ns);
        lkg_json_u64(&json, "count", event->count);
        lkg_json_text(&json, "reportingComponent", COMPONENT);
        lkg_json_foreign(&json, "reportingInstance", node->host);
        lkg_json_end(&json);
        (void)lkg_json_write(&json, buf);
}

void lkg_body_count(const struct lkg_node_event *event, struct lkg_buf *buf)
{
        LKG_CLEANUP(lkg_json_deinit) struct lkg_json json = LKG_JSON_INIT;

        lkg_json_map(&json, NULL, LKG_JSON_TIGHT);
        lkg_json_u64(&json, "count", event->count);
        lkg_json_time(&json, "lastTimestamp", event->last_wall_ns);
        lkg_json_end(&json);
        (void)lkg_json_write(&json, buf);
}
