/* SPDX-License-Identifier: Apache-2.0 */
/* A rollout as a table, and as a value. */
#include "fleet.h"

#define WAITING_SHOWN 20u
#define NAME_WIDTH    40

/* ---- the head ---- */

static void put_state(const struct lkg_fleet *fleet, struct lkg_buf *buf)
{
        enum lkg_fleet_state state = lkg_fleet_state(fleet);

        lkg_buf_printf(buf, "state      %s", lkg_fleet_state_name(state));
        switch (state) {
        case LKG_FLEET_NO_SLOTS:
                lkg_buf_puts(buf, ": there is no annotation " LKG_ANNOTATION_IN_TRIAL);
                break;
        case LKG_FLEET_UNCLEAR:
                lkg_buf_puts(buf, ": ");
                lkg_tool_put_clean(buf, fleet->rollout.words);
                break;
        case LKG_FLEET_NOT_HERE:
                lkg_buf_printf(buf, ": no slot is in namespace %s; %s", fleet->slot_namespace,
                               lkg_fleet_not_here(fleet));
                break;
        case LKG_FLEET_TOO_MANY:
                lkg_buf_printf(
                        buf,
                        ": there are more than %u slots of this ConfigMap, so no node takes one; delete "
                        "those of earlier contents in namespace %s",
                        LKG_SLOTS_KNOWN_MAX, fleet->slot_namespace);
                break;
        case LKG_FLEET_STOPPED:
                lkg_buf_puts(buf, ": " LKG_ANNOTATION_HALT " is \"true\", until --resume");
                break;
        case LKG_FLEET_HALTED:
                lkg_buf_puts(buf, ": until another content, or --forgive NODE");
                break;
        case LKG_FLEET_RUNNING:
                break;
        case LKG_FLEET_NOT_BEGUN:
                lkg_buf_puts(buf, ": no node has taken a slot");
                break;
        case LKG_FLEET_QUIET:
                lkg_buf_puts(buf, fleet->knows_nodes
                                          ? ": nothing is on trial, and no node says that it waits"
                                          : ": nothing is on trial; whether a node waits is not known");
                break;
        }
        lkg_buf_putc(buf, '\n');
}

static void put_nodes_line(const struct lkg_fleet *fleet, struct lkg_buf *buf)
{
        lkg_buf_puts(buf, "waiting    ");
        if (fleet->knows_nodes) {
                lkg_buf_printf(buf, "%zu of %zu nodes that refer to it\n", fleet->n_waiting, fleet->n_nodes);
                return;
        }
        lkg_buf_puts(buf, "not known: ");
        lkg_tool_put_clean(buf, fleet->nodes_trouble);
        lkg_buf_putc(buf, '\n');
}

static void put_head(const struct lkg_fleet *fleet, struct lkg_buf *buf)
{
        const struct lkg_rollout *rollout = &fleet->rollout;
        const struct lkg_slot_counts *counts = &fleet->counts;

        lkg_buf_printf(buf, "ConfigMap  %s/%s, key %s, resourceVersion %s\n", fleet->id.ns, fleet->id.name,
                       fleet->id.key, fleet->id.version);
        if (rollout->limits.max_in_trial)
                lkg_buf_printf(buf, "slots      in namespace %s\n", fleet->slot_namespace);
        put_state(fleet, buf);
        if (rollout->has_percent && rollout->percent_milli < 100000)
                lkg_buf_printf(buf, "percent    %u.%03u\n", rollout->percent_milli / 1000,
                               rollout->percent_milli % 1000);
        if (rollout->limits.max_in_trial)
                lkg_buf_printf(buf, "in trial   %u of %u at a time\n", counts->n_held,
                               rollout->limits.max_in_trial);
        if (rollout->limits.max_in_trial || counts->n_done + counts->n_failed + counts->n_held > 0)
                lkg_buf_printf(buf, "done       %u\nfailed     %u, halts with %u\n", counts->n_done,
                               counts->n_failed, lkg_fleet_halting(fleet));
        put_nodes_line(fleet, buf);
        if (fleet->n_no_slots > 0)
                lkg_buf_printf(buf, "ignored    %u objects in %s that are no slots\n", fleet->n_no_slots,
                               fleet->slot_namespace);
}

/* ---- the rows ---- */

struct row {
        const char *node, *state, *why;
        int slot;          /* -1 = none */
        uint64_t since_ns; /* 0 = not known */
};

static struct row row_of_slot(const struct lkg_rollout_slot *slot)
{
        bool failed = slot->state == LKG_SLOT_FAILED;

        return (struct row){ .node = slot->node,
                             .state = failed ? "failed" : "in trial",
                             .why = failed        ? slot->reason
                                    : slot->asked ? "silent; it has been asked whether it is still there"
                                                  : "",
                             .slot = (int)slot->index,
                             .since_ns = failed ? slot->renewed_ns : slot->since_ns };
}

/* "3 min"; "-" = not known, or the node's clock is ahead of ours. */
static const char *age_of(uint64_t since_ns, uint64_t now_ns, char ret[static LKG_AGE_MAX])
{
        return since_ns && since_ns <= now_ns ? lkg_tool_age((now_ns - since_ns) / LKG_NSEC_PER_SEC, ret)
                                              : "-";
}

static void put_row(const struct row *row, int width, uint64_t now_ns, struct lkg_buf *buf)
{
        char age[LKG_AGE_MAX], slot[16] = "-";
        size_t before;
        if (row->slot >= 0)
                (void)snprintf(slot, sizeof(slot), "%d", row->slot);
        lkg_buf_printf(buf, "%-*s  %-4s  %-8s  %-7s  ", width, row->node, slot, row->state,
                       age_of(row->since_ns, now_ns, age));
        before = buf->size;
        lkg_tool_put_clean(buf, row->why);
        if (buf->size == before) /* no blanks at the end of a line */
                while (!lkg_buf_failed(buf) && buf->size > 0 && buf->data[buf->size - 1] == ' ')
                        buf->size--;
        lkg_buf_putc(buf, '\n');
}

static bool is_shown(const struct lkg_fleet *fleet, const struct lkg_rollout_slot *slot,
                     enum lkg_rollout_slot_state state)
{
        return slot->state == state && strcmp(slot->hash, fleet->id.hash) == 0;
}

static int width_of(const struct lkg_fleet *fleet)
{
        size_t width = strlen("NODE"), n;

        for (size_t i = 0; i < fleet->ledger.n_items; i++)
                if ((n = strlen(fleet->ledger.items[i].node)) > width)
                        width = n;
        for (size_t i = 0; i < fleet->n_nodes; i++)
                if (fleet->nodes[i].waits && (n = strlen(fleet->nodes[i].name)) > width)
                        width = n;
        return width > NAME_WIDTH ? NAME_WIDTH : (int)width;
}

static void put_slots(const struct lkg_fleet *fleet, enum lkg_rollout_slot_state state, int width,
                      uint64_t now_ns, struct lkg_buf *buf)
{
        for (size_t i = 0; i < fleet->ledger.n_items; i++) {
                struct row row;

                if (!is_shown(fleet, &fleet->ledger.items[i], state))
                        continue;
                row = row_of_slot(&fleet->ledger.items[i]);
                put_row(&row, width, now_ns, buf);
        }
}

static void put_waiting(const struct lkg_fleet *fleet, int width, uint64_t now_ns, struct lkg_buf *buf)
{
        size_t n = 0;

        for (size_t i = 0; i < fleet->n_nodes && n < WAITING_SHOWN; i++) {
                const struct lkg_fleet_node *node = &fleet->nodes[i];
                const struct row row = {
                        .node = node->name, .state = "waiting", .why = node->words, .slot = -1
                };

                if (!node->waits)
                        continue;
                put_row(&row, width, now_ns, buf);
                n++;
        }
        if (fleet->n_waiting > n)
                lkg_buf_printf(buf, "and %zu more that wait\n", fleet->n_waiting - n);
}

/* Since when, so that nobody takes the figures of an hour ago for those of now. */
static void put_trouble(const struct lkg_fleet *fleet, const char *trouble, struct lkg_buf *buf)
{
        char time[21];

        lkg_format_rfc3339(fleet->looked_ns, time);
        lkg_buf_printf(buf, "this is old, of %s: ", time);
        lkg_tool_put_clean(buf, trouble);
        lkg_buf_putc(buf, '\n');
}

void lkg_fleet_show(const struct lkg_fleet *fleet, uint64_t now_ns, const char *trouble, struct lkg_buf *buf)
{
        int width = width_of(fleet);

        put_head(fleet, buf);
        if (*trouble)
                put_trouble(fleet, trouble, buf);
        if (fleet->counts.n_failed + fleet->counts.n_held + fleet->n_waiting == 0)
                return;
        lkg_buf_printf(buf, "\n%-*s  SLOT  STATE     FOR      WHY\n", width, "NODE");
        put_slots(fleet, LKG_SLOT_FAILED, width, now_ns, buf);
        put_slots(fleet, LKG_SLOT_HELD, width, now_ns, buf);
        put_waiting(fleet, width, now_ns, buf);
}

/* ---- as a value ---- */

static void map_time(struct lkg_value *map, const char *name, uint64_t wall_ns)
{
        char text[21];

        if (!wall_ns)
                return;
        lkg_format_rfc3339(wall_ns, text);
        lkg_tool_map_string(map, name, text);
}

static struct lkg_value *map_slot(const struct lkg_rollout_slot *slot)
{
        struct lkg_value *map = lkg_tool_map();

        lkg_tool_map_number(map, "slot", slot->index);
        lkg_tool_map_string(map, "state", lkg_slot_state_name(slot->state));
        lkg_tool_map_string(map, "node", *slot->node ? slot->node : NULL);
        map_time(map, "since", slot->since_ns);
        map_time(map, "renewed", slot->renewed_ns);
        lkg_tool_map_number(map, "successes", slot->successes);
        lkg_tool_map_string(map, "reason", *slot->reason ? slot->reason : NULL);
        return map;
}

static void map_slots(const struct lkg_fleet *fleet, struct lkg_value *ret)
{
        struct lkg_value *list = lkg_tool_list();

        for (size_t i = 0; i < fleet->ledger.n_items; i++)
                if (strcmp(fleet->ledger.items[i].hash, fleet->id.hash) == 0)
                        lkg_tool_append(list, map_slot(&fleet->ledger.items[i]));
        lkg_tool_map_value(ret, "slots", list);
}

static void map_waiting(const struct lkg_fleet *fleet, struct lkg_value *ret)
{
        struct lkg_value *list = lkg_tool_list();

        for (size_t i = 0; i < fleet->n_nodes; i++) {
                struct lkg_value *map;

                if (!fleet->nodes[i].waits)
                        continue;
                map = lkg_tool_map();
                lkg_tool_map_string(map, "node", fleet->nodes[i].name);
                lkg_tool_map_string(map, "reason", fleet->nodes[i].words);
                lkg_tool_append(list, map);
        }
        lkg_tool_map_value(ret, "waitingNodes", list);
}

struct lkg_value *lkg_fleet_map(const struct lkg_fleet *fleet)
{
        struct lkg_value *ret = lkg_tool_document();
        const struct lkg_rollout *rollout = &fleet->rollout;
        enum lkg_fleet_state state = lkg_fleet_state(fleet);
        char name[2 * LKG_IDENTIFIER_MAX + 2];

        (void)snprintf(name, sizeof(name), "%s/%s", fleet->id.ns, fleet->id.name);
        lkg_tool_map_string(ret, "configMap", name);
        lkg_tool_map_string(ret, "key", fleet->id.key);
        lkg_tool_map_string(ret, "uid", fleet->id.uid);
        lkg_tool_map_string(ret, "resourceVersion", fleet->id.version);
        lkg_tool_map_string(ret, "sha256", fleet->id.sha256);
        lkg_tool_map_string(ret, "state", lkg_fleet_state_name(state));
        if (state == LKG_FLEET_NOT_HERE)
                lkg_tool_map_string(ret, "slotsTrouble", lkg_fleet_not_here(fleet));
        lkg_tool_map_bool(ret, "halted", lkg_fleet_is_halted(fleet));
        lkg_tool_map_string(ret, "slotNamespace", fleet->slot_namespace);
        if (rollout->limits.max_in_trial) {
                lkg_tool_map_number(ret, "maxInTrial", rollout->limits.max_in_trial);
                lkg_tool_map_number(ret, "maxFailures", lkg_fleet_halting(fleet));
        }
        lkg_tool_map_number(ret, "inTrial", fleet->counts.n_held);
        lkg_tool_map_number(ret, "done", fleet->counts.n_done);
        lkg_tool_map_number(ret, "failed", fleet->counts.n_failed);
        if (fleet->knows_nodes) {
                lkg_tool_map_number(ret, "waiting", fleet->n_waiting);
                lkg_tool_map_number(ret, "nodes", fleet->n_nodes);
        } else {
                lkg_tool_map_string(ret, "nodesTrouble", fleet->nodes_trouble);
        }
        map_slots(fleet, ret);
        if (fleet->knows_nodes)
                map_waiting(fleet, ret);
        return ret;
}
