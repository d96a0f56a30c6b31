/* SPDX-License-Identifier: Apache-2.0 */
#include "reporter-body.h"

#define COMPONENT "lkgfs"

/* `"name":"text"`; @before: what stands in front of it. */
static void member(struct lkg_buf *buf, const char *before, const char *name, const char *text)
{
        lkg_buf_puts(buf, before);
        lkg_buf_json_string(buf, name, strlen(name));
        lkg_buf_putc(buf, ':');
        lkg_buf_json_string(buf, text, strlen(text));
}

static void moment(struct lkg_buf *buf, const char *name, uint64_t wall_ns)
{
        char text[21];

        lkg_format_rfc3339(wall_ns, text);
        member(buf, ",", name, text);
}

void lkg_body_condition(const struct lkg_node_condition *condition, uint64_t wall_ns, struct lkg_buf *buf)
{
        member(buf, "{\"status\":{\"conditions\":[{", "type", "ConfigOK");
        member(buf, ",", "status", condition->status);
        member(buf, ",", "reason", condition->reason);
        member(buf, ",", "message", condition->message);
        moment(buf, "lastHeartbeatTime", wall_ns);
        moment(buf, "lastTransitionTime", condition->transition_ns);
        lkg_buf_puts(buf, "}]}}");
}

void lkg_body_event(const struct lkg_node_event *event, const struct lkg_body_node *node,
                    struct lkg_buf *buf)
{
        member(buf, "{", "apiVersion", "v1");
        member(buf, ",", "kind", "Event");
        member(buf, ",\"metadata\":{", "name", event->name);
        member(buf, ",", "namespace", "default");
        member(buf, "},\"involvedObject\":{", "kind", "Node");
        member(buf, ",", "apiVersion", "v1");
        member(buf, ",", "name", node->name);
        member(buf, ",", "uid", node->uid);
        member(buf, "},", "reason", event->reason);
        member(buf, ",", "message", event->message);
        member(buf, ",", "type", event->warning ? "Warning" : "Normal");
        member(buf, ",\"source\":{", "component", COMPONENT);
        member(buf, ",", "host", node->host);
        lkg_buf_putc(buf, '}');
        moment(buf, "firstTimestamp", event->first_wall_ns);
        moment(buf, "lastTimestamp", event->last_wall_ns);
        lkg_buf_puts(buf, ",\"count\":");
        lkg_buf_u64(buf, event->count);
        member(buf, ",", "reportingComponent", COMPONENT);
        member(buf, ",", "reportingInstance", node->host);
        lkg_buf_putc(buf, '}');
}

void lkg_body_count(const struct lkg_node_event *event, struct lkg_buf *buf)
{
        lkg_buf_puts(buf, "{\"count\":");
        lkg_buf_u64(buf, event->count);
        moment(buf, "lastTimestamp", event->last_wall_ns);
        lkg_buf_putc(buf, '}');
}
