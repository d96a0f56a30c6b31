/* SPDX-License-Identifier: Apache-2.0 */
/* See outbox.h. Source of the bodies: core/v1 NodeCondition and Event. */
#include "outbox.h"

#include <inttypes.h>

#define COMPONENT   "lkgfs"
#define NAME_DIGITS 16u

/* ---- the condition ---- */

/* Wait a moment after the last write, because changes come in bursts. */
static uint64_t soon(const struct lkg_heartbeat *heartbeat, uint64_t now_ns)
{
        uint64_t after = heartbeat->begun_ns ? heartbeat->begun_ns + LKG_HEARTBEAT_PAUSE_NS : 0;

        return after > now_ns ? after : now_ns;
}

void lkg_heartbeat_changed(struct lkg_heartbeat *heartbeat, uint64_t now_ns)
{
        uint64_t when = soon(heartbeat, now_ns);

        heartbeat->changed = true;
        if (!heartbeat->any || (!heartbeat->failed && when < heartbeat->due_ns))
                heartbeat->due_ns = when;
        heartbeat->any = true;
}

bool lkg_heartbeat_begin(struct lkg_heartbeat *heartbeat, uint64_t now_ns)
{
        if (lkg_heartbeat_due(heartbeat) > now_ns)
                return false;
        heartbeat->sending = true;
        heartbeat->changed = false;
        heartbeat->begun_ns = now_ns;
        return true;
}

void lkg_heartbeat_end(struct lkg_heartbeat *heartbeat, bool success, uint64_t retry_after_ns,
                       uint32_t random, uint64_t now_ns)
{
        heartbeat->sending = false;
        heartbeat->failed = !success;
        if (!success) {
                heartbeat->due_ns =
                        now_ns + lkg_backoff_failed(&heartbeat->backoff, retry_after_ns, random, now_ns);
                return;
        }
        lkg_backoff_succeeded(&heartbeat->backoff, now_ns);
        heartbeat->due_ns = heartbeat->changed
                                    ? soon(heartbeat, now_ns)
                                    : now_ns + lkg_jitter(LKG_HEARTBEAT_NS, LKG_HEARTBEAT_PERCENT, random);
}

void lkg_heartbeat_kick(struct lkg_heartbeat *heartbeat, uint64_t now_ns)
{
        heartbeat->failed = false;
        heartbeat->backoff = (struct lkg_backoff){ 0 };
        if (heartbeat->any)
                lkg_heartbeat_changed(heartbeat, now_ns);
}

uint64_t lkg_heartbeat_due(const struct lkg_heartbeat *heartbeat)
{
        return heartbeat->any && !heartbeat->sending ? heartbeat->due_ns : UINT64_MAX;
}

bool lkg_condition_figures_differ(const struct lkg_node_condition *a, const struct lkg_node_condition *b)
{
        size_t n = strcspn(a->reason, "0123456789");

        return a->figures && b->figures && a->transition_ns == b->transition_ns &&
               strcmp(a->status, b->status) == 0 && strcmp(a->message, b->message) == 0 && a->reason[n] &&
               strncmp(a->reason, b->reason, n) == 0 && strcspn(b->reason, "0123456789") == n &&
               b->reason[n];
}

static void put_condition(struct lkg_json *json, const struct lkg_node_condition *condition,
                          uint64_t wall_ns)
{
        lkg_json_map(json, NULL, LKG_JSON_AROUND);
        lkg_json_text(json, "type", condition->pods ? "StaticPodsOK" : "ConfigOK");
        lkg_json_text(json, "status", condition->status);
        lkg_json_foreign(json, "reason", condition->reason);
        lkg_json_foreign(json, "message", condition->message);
        lkg_json_time(json, "lastHeartbeatTime", wall_ns);
        lkg_json_time(json, "lastTransitionTime", condition->transition_ns);
        lkg_json_end(json);
}

void lkg_condition_body(const struct lkg_node_condition *conditions, size_t n, uint64_t wall_ns,
                        struct lkg_buf *buf)
{
        LKG_CLEANUP(lkg_json_deinit) struct lkg_json json = LKG_JSON_INIT;

        lkg_json_map(&json, NULL, LKG_JSON_TIGHT);
        lkg_json_map(&json, "status", LKG_JSON_AROUND);
        lkg_json_list(&json, "conditions", LKG_JSON_AROUND);
        for (size_t i = 0; i < n; i++)
                put_condition(&json, &conditions[i], wall_ns);
        for (unsigned i = 0; i < 3; i++)
                lkg_json_end(&json);
        (void)lkg_json_write(&json, buf);
}

/* ---- events ---- */

static struct lkg_node_event *find_event(struct lkg_outbox *outbox, const struct lkg_node_event *event)
{
        for (struct lkg_node_event *e = outbox->events; e < outbox->events + LKG_OUTBOX_EVENTS; e++)
                if ((e->told || e->waits) && e->warning == event->warning &&
                    strcmp(e->reason, event->reason) == 0 && strcmp(e->message, event->message) == 0)
                        return e;
        return NULL;
}

size_t lkg_outbox_waiting(const struct lkg_outbox *outbox)
{
        size_t n = 0;

        for (size_t i = 0; i < LKG_OUTBOX_EVENTS; i++)
                n += outbox->events[i].waits > 0;
        return n;
}

/* An event in flight is never dropped. */
static struct lkg_node_event *oldest(struct lkg_outbox *outbox)
{
        struct lkg_node_event *found = NULL;

        for (struct lkg_node_event *e = outbox->events; e < outbox->events + LKG_OUTBOX_EVENTS; e++)
                if (e->waits && e != outbox->sending && (!found || e->waits < found->waits))
                        found = e;
        return found;
}

/* There are more places than events may wait. */
static struct lkg_node_event *place(struct lkg_outbox *outbox)
{
        struct lkg_node_event *found = NULL;

        for (struct lkg_node_event *e = outbox->events; e < outbox->events + LKG_OUTBOX_EVENTS; e++)
                if (!e->waits && (!found || (e->told ? e->used : 0) < (found->told ? found->used : 0)))
                        found = e;
        return found;
}

/* The event rate limits of client-go. */
static const struct lkg_bucket_rate rate = { LKG_OUTBOX_BURST, LKG_OUTBOX_INTERVAL_NS };

static void queue(struct lkg_outbox *outbox, struct lkg_node_event *event)
{
        if (lkg_outbox_waiting(outbox) == LKG_OUTBOX_WAITING)
                oldest(outbox)->waits = 0;
        event->waits = ++outbox->n_used;
}

void lkg_outbox_add(struct lkg_outbox *outbox, bool warning, const char *reason, const char *message,
                    uint64_t now_ns, uint64_t wall_ns)
{
        struct lkg_node_event event = { .warning = warning, .first_wall_ns = wall_ns }, *same;
        bool token;

        lkg_text_copy(event.reason, sizeof(event.reason), reason);
        lkg_text_copy(event.message, sizeof(event.message), message);
        same = find_event(outbox, &event);
        token = (same && same->waits && same != outbox->sending) ||
                lkg_bucket_take(&outbox->bucket, &rate, now_ns) == 0;
        if (!same && token) {
                same = place(outbox);
                *same = event;
        }
        if (!same)
                return;
        same->count++;
        same->last_wall_ns = wall_ns;
        if (same == outbox->sending)
                outbox->again |= token;
        else if (token && !same->waits)
                queue(outbox, same);
}

/*
 * The name must leave room for the digits, and the cut node name must not end with a character that is
 * invalid at the end of a label.
 */
static void make_name(char name[static LKG_EVENT_NAME_MAX + 1], const char *node, uint64_t random)
{
        size_t n = strnlen(node, LKG_EVENT_NAME_MAX - 1 - NAME_DIGITS);

        while (n > 0 && (node[n - 1] == '.' || node[n - 1] == '-'))
                n--;
        (void)snprintf(name, LKG_EVENT_NAME_MAX + 1, "%.*s.%016" PRIx64, (int)n, node, random);
}

const struct lkg_node_event *lkg_outbox_next(struct lkg_outbox *outbox, const char *node, uint64_t random)
{
        struct lkg_node_event *event = outbox->sending ? NULL : oldest(outbox);

        if (!event)
                return NULL;
        if (!event->name[0])
                make_name(event->name, node, random);
        outbox->sending = event;
        outbox->n_sending = event->count;
        outbox->again = false;
        return event;
}

void lkg_outbox_end(struct lkg_outbox *outbox, enum lkg_outbox_result result)
{
        struct lkg_node_event *event = LKG_STEAL(outbox->sending);

        if (!event)
                return;
        switch (result) {
        case LKG_OUTBOX_SENT:
                event->told = outbox->n_sending;
                event->used = ++outbox->n_used;
                event->waits = outbox->again ? event->used : 0;
                break;
        case LKG_OUTBOX_FORGOTTEN:
                event->told = 0;
                event->name[0] = '\0';
                break;
        case LKG_OUTBOX_REFUSED:
                event->waits = 0;
                break;
        case LKG_OUTBOX_FAILED:
                break;
        }
}

void lkg_outbox_renew(struct lkg_outbox *outbox)
{
        outbox->sending = NULL;
        for (struct lkg_node_event *e = outbox->events; e < outbox->events + LKG_OUTBOX_EVENTS; e++) {
                e->count -= e->told;
                e->first_wall_ns = e->told ? e->last_wall_ns : e->first_wall_ns;
                e->told = 0;
                e->name[0] = '\0';
        }
}

static void put_involved(struct lkg_json *json, const struct lkg_event_node *node)
{
        lkg_json_map(json, "involvedObject", LKG_JSON_AROUND);
        lkg_json_text(json, "kind", "Node");
        lkg_json_text(json, "apiVersion", "v1");
        lkg_json_foreign(json, "name", node->name);
        lkg_json_foreign(json, "uid", node->uid);
        lkg_json_end(json);
}

static void put_new(struct lkg_json *json, const struct lkg_node_event *event,
                    const struct lkg_event_node *node)
{
        lkg_json_text(json, "apiVersion", "v1");
        lkg_json_text(json, "kind", "Event");
        lkg_json_map(json, "metadata", LKG_JSON_AROUND);
        lkg_json_foreign(json, "name", event->name);
        lkg_json_text(json, "namespace", "default");
        lkg_json_end(json);
        put_involved(json, node);
        lkg_json_foreign(json, "reason", event->reason);
        lkg_json_foreign(json, "message", event->message);
        lkg_json_text(json, "type", event->warning ? "Warning" : "Normal");
        lkg_json_map(json, "source", LKG_JSON_AROUND);
        lkg_json_text(json, "component", COMPONENT);
        lkg_json_foreign(json, "host", node->host);
        lkg_json_end(json);
        lkg_json_time(json, "firstTimestamp", event->first_wall_ns);
        lkg_json_text(json, "reportingComponent", COMPONENT);
        lkg_json_foreign(json, "reportingInstance", node->host);
}

void lkg_event_body(const struct lkg_node_event *event, const struct lkg_event_node *node,
                    struct lkg_buf *buf)
{
        LKG_CLEANUP(lkg_json_deinit) struct lkg_json json = LKG_JSON_INIT;

        lkg_json_map(&json, NULL, LKG_JSON_TIGHT);
        if (event->told == 0)
                put_new(&json, event, node);
        lkg_json_time(&json, "lastTimestamp", event->last_wall_ns);
        lkg_json_u64(&json, "count", event->count);
        lkg_json_end(&json);
        (void)lkg_json_write(&json, buf);
}
