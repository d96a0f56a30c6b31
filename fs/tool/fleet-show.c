/* SPDX-License-Identifier: Apache-2.0 */
/* A rollout as a table, and as a value. */
#include "fleet.h"

#define WAITING_SHOWN 20u

/* ---- the head ---- */

/* What follows the name of the state. */
static const char *words_of_state(const struct lkg_fleet *fleet)
{
        switch (lkg_fleet_state(fleet)) {
        case LKG_FLEET_NO_SLOTS:
                return ": there is no annotation " LKG_ANNOTATION_IN_TRIAL;
        case LKG_FLEET_UNCLEAR:
                return lkg_tool_format(": %s", fleet->rollout.words);
        case LKG_FLEET_NOT_HERE:
                return lkg_tool_format(": no slot is in namespace %s; %s", fleet->slot_namespace,
                                       lkg_fleet_not_here(fleet));
        case LKG_FLEET_TOO_MANY:
                return lkg_tool_format(
                        ": there are more than %u slots of this ConfigMap, so no node takes one; delete "
                        "those of earlier contents in namespace %s",
                        LKG_SLOTS_KNOWN_MAX, fleet->slot_namespace);
        case LKG_FLEET_STOPPED:
                return ": " LKG_ANNOTATION_HALT " is \"true\", until --resume";
        case LKG_FLEET_HALTED:
                return ": until another content, or --forgive NODE";
        case LKG_FLEET_RUNNING:
                break;
        case LKG_FLEET_NOT_BEGUN:
                return ": no node has taken a slot";
        case LKG_FLEET_QUIET:
                return fleet->knows_nodes ? ": nothing is on trial, and no node says that it waits"
                                          : ": nothing is on trial; whether a node waits is not known";
        }
        return NULL;
}

static void put_head(const struct lkg_fleet *fleet, struct lkg_buf *buf)
{
        static const char text[] =
                "ConfigMap  {{configMap}}, key {{key}}, resourceVersion {{resourceVersion}}\n"
                "{{?maxInTrial}}slots      in namespace {{slotNamespace}}\n{{/}}"
                "state      {{state}}{{words}}\n"
                "{{#percent}}percent    {{.}}\n{{/}}"
                "{{?maxInTrial}}in trial   {{inTrial}} of {{maxInTrial}} at a time\n{{/}}"
                "{{?counted}}done       {{done}}\nfailed     {{failed}}, halts with {{halting}}\n{{/}}"
                "waiting    {{?knowsNodes}}{{waiting}} of {{nodes}} nodes that refer to it{{/}}"
                "{{!knowsNodes}}not known: {{nodesTrouble}}{{/}}\n"
                "{{#ignored}}ignored    {{.}} objects in {{slotNamespace}} that are no slots\n{{/}}";
        const struct lkg_rollout *rollout = &fleet->rollout;
        const struct lkg_slot_counts *counts = &fleet->counts;
        struct lkg_value *map = lkg_fleet_map(fleet);

        lkg_tool_map_string(map, "words", words_of_state(fleet));
        if (rollout->has_percent && rollout->percent_milli < 100000)
                lkg_tool_map_string(map, "percent",
                                    lkg_tool_format("%u.%03u", rollout->percent_milli / 1000,
                                                    rollout->percent_milli % 1000));
        lkg_tool_bools(map, "knowsNodes", fleet->knows_nodes, "counted",
                       rollout->limits.max_in_trial ||
                               counts->n_done + counts->n_failed + counts->n_held > 0,
                       NULL);
        lkg_tool_map_number(map, "halting", lkg_fleet_halting(fleet));
        lkg_tool_map_number(map, "ignored", fleet->slots.n_no_slots);
        lkg_tool_fill(text, map, /* html= */ false, buf);
}

/* ---- the rows ---- */

static struct lkg_value *new_row(struct lkg_value *rows, const char *node, const char *state,
                                 const char *why)
{
        struct lkg_value *row =
                lkg_tool_texts(lkg_tool_map(), "node", node, "state", state, "why", why, NULL);

        lkg_tool_append(rows, row);
        return row;
}

static void add_slots(const struct lkg_fleet *fleet, enum lkg_rollout_slot_state state, uint64_t now_ns,
                      struct lkg_value *rows)
{
        bool failed = state == LKG_SLOT_FAILED;

        for (size_t i = 0; i < fleet->slots.ledger.n_items; i++) {
                const struct lkg_rollout_slot *slot = &fleet->slots.ledger.items[i];
                uint64_t since_ns = failed ? slot->renewed_ns : slot->since_ns;
                char age[LKG_AGE_MAX];
                struct lkg_value *row;

                if (slot->state != state || strcmp(slot->hash, fleet->id.hash) != 0)
                        continue;
                row = new_row(rows, slot->node, failed ? "failed" : "in trial",
                              failed        ? slot->reason
                              : slot->asked ? "silent; it has been asked whether it is still there"
                                            : "");
                lkg_tool_map_string(row, "slot", lkg_tool_format("%u", slot->index));
                if (since_ns &&
                    since_ns <= now_ns) /* else it is not known, or the node's clock is ahead of ours */
                        lkg_tool_map_string(row, "for",
                                            lkg_tool_age((now_ns - since_ns) / LKG_NSEC_PER_SEC, age));
        }
}

static void add_waiting(const struct lkg_fleet *fleet, struct lkg_value *rows)
{
        size_t n = 0;

        for (size_t i = 0; i < fleet->n_nodes && n < WAITING_SHOWN; i++)
                if (fleet->nodes[i].waits) {
                        (void)new_row(rows, fleet->nodes[i].name, "waiting", fleet->nodes[i].words);
                        n++;
                }
}

void lkg_fleet_show(const struct lkg_fleet *fleet, uint64_t now_ns, const char *trouble, struct lkg_buf *buf)
{
        static const struct lkg_column columns[] = { { "NODE", "node", 0, 40 },
                                                     { "SLOT", "slot" },
                                                     { "STATE", "state", 8 },
                                                     { "FOR", "for", 7 },
                                                     { "WHY", "why" } };
        struct lkg_value *rows = lkg_tool_list();
        char time[21];

        put_head(fleet, buf);
        if (*trouble) { /* since when, so that nobody takes the figures of an hour ago for those of now */
                lkg_format_rfc3339(fleet->looked_ns, time);
                lkg_buf_printf(buf, "this is old, of %s: %s\n", time, lkg_tool_clean(trouble));
        }
        add_slots(fleet, LKG_SLOT_FAILED, now_ns, rows);
        add_slots(fleet, LKG_SLOT_HELD, now_ns, rows);
        add_waiting(fleet, rows);
        if (fleet->counts.n_failed + fleet->counts.n_held + fleet->n_waiting == 0)
                return;
        lkg_buf_putc(buf, '\n');
        lkg_tool_put_table(rows, columns, LKG_ARRAY_SIZE(columns), buf);
        if (fleet->n_waiting > WAITING_SHOWN)
                lkg_buf_printf(buf, "and %zu more that wait\n", fleet->n_waiting - WAITING_SHOWN);
}

/* ---- as a value ---- */

/* NULL = there is none */
static const char *time_of(uint64_t wall_ns)
{
        char text[21];

        lkg_format_rfc3339(wall_ns, text);
        return wall_ns ? lkg_tool_cut(text, strlen(text)) : NULL;
}

static struct lkg_value *map_slot(const struct lkg_rollout_slot *slot)
{
        struct lkg_value *map = lkg_tool_texts(lkg_tool_map(), "state", lkg_slot_state_name(slot->state),
                                               "node", *slot->node ? slot->node : NULL, "since",
                                               time_of(slot->since_ns), "renewed", time_of(slot->renewed_ns),
                                               "reason", *slot->reason ? slot->reason : NULL, NULL);

        lkg_tool_map_number(map, "slot", slot->index);
        lkg_tool_map_number(map, "successes", slot->successes);
        return map;
}

static void map_lists(const struct lkg_fleet *fleet, struct lkg_value *ret)
{
        struct lkg_value *slots = lkg_tool_map_list(ret, "slots"),
                         *waiting = fleet->knows_nodes ? lkg_tool_map_list(ret, "waitingNodes") : NULL;

        for (size_t i = 0; i < fleet->slots.ledger.n_items; i++)
                if (strcmp(fleet->slots.ledger.items[i].hash, fleet->id.hash) == 0)
                        lkg_tool_append(slots, map_slot(&fleet->slots.ledger.items[i]));
        for (size_t i = 0; waiting && i < fleet->n_nodes; i++)
                if (fleet->nodes[i].waits)
                        lkg_tool_append(waiting, lkg_tool_texts(lkg_tool_map(), "node", fleet->nodes[i].name,
                                                                "reason", fleet->nodes[i].words, NULL));
}

struct lkg_value *lkg_fleet_map(const struct lkg_fleet *fleet)
{
        const struct lkg_rollout *rollout = &fleet->rollout;
        enum lkg_fleet_state state = lkg_fleet_state(fleet);
        struct lkg_value *ret = lkg_tool_texts(
                lkg_tool_document(), "key", fleet->id.key, "uid", fleet->id.uid, "resourceVersion",
                fleet->id.version, "sha256", fleet->id.sha256, "state", lkg_fleet_state_name(state),
                "slotsTrouble", state == LKG_FLEET_NOT_HERE ? lkg_fleet_not_here(fleet) : NULL,
                "slotNamespace", fleet->slot_namespace, "nodesTrouble",
                fleet->knows_nodes ? NULL : fleet->nodes_trouble, NULL);

        lkg_tool_map_string(ret, "configMap", lkg_tool_format("%s/%s", fleet->id.ns, fleet->id.name));
        lkg_tool_map_bool(ret, "halted", lkg_fleet_is_halted(fleet));
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
        }
        map_lists(fleet, ret);
        return ret;
}
