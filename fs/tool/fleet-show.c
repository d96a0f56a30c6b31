/* SPDX-License-Identifier: Apache-2.0 */
/* A rollout as a table, and as a value. */
#include "fleet.h"

#define WAITING_SHOWN 20u

/* ---- the head ---- */

/* What follows the name of the state. Caller frees. */
static char *words_of_state(const struct lkg_fleet *fleet)
{
        switch (lkg_fleet_state(fleet)) {
        case LKG_FLEET_NO_SLOTS:
                return lkg_tool_format(": there is no annotation " LKG_ANNOTATION_IN_TRIAL);
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
                return lkg_tool_format(": " LKG_ANNOTATION_HALT " is \"true\", until --resume");
        case LKG_FLEET_HALTED:
                return lkg_tool_format(": until another content, or --forgive NODE");
        case LKG_FLEET_RUNNING:
                break;
        case LKG_FLEET_NOT_BEGUN:
                return lkg_tool_format(": no node has taken a slot");
        case LKG_FLEET_QUIET:
                return lkg_tool_format(fleet->knows_nodes
                                               ? ": nothing is on trial, and no node says that it waits"
                                               : ": nothing is on trial; whether a node waits is not known");
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
        LKG_CLEANUP(lkg_value_unrefp) struct lkg_value *map = lkg_fleet_map(fleet);
        LKG_CLEANUP(lkg_freep) char *words = words_of_state(fleet);

        lkg_tool_map_string(map, "words", words);
        if (rollout->has_percent && rollout->percent_milli < 100000)
                lkg_tool_map_text(map, "percent", "%u.%03u", rollout->percent_milli / 1000,
                                  rollout->percent_milli % 1000);
        lkg_tool_map_bool(map, "counted",
                          rollout->limits.max_in_trial ||
                                  counts->n_done + counts->n_failed + counts->n_held > 0);
        lkg_tool_map_number(map, "halting", lkg_fleet_halting(fleet));
        lkg_tool_map_bool(map, "knowsNodes", fleet->knows_nodes);
        lkg_tool_map_number(map, "ignored", fleet->n_no_slots);
        lkg_tool_fill(text, map, /* html= */ false, buf);
}

/* ---- the rows ---- */

/* "3 min"; "-" = not known, or the node's clock is ahead of ours. */
static const char *age_of(uint64_t since_ns, uint64_t now_ns, char ret[static LKG_AGE_MAX])
{
        return since_ns && since_ns <= now_ns ? lkg_tool_age((now_ns - since_ns) / LKG_NSEC_PER_SEC, ret)
                                              : "-";
}

static struct lkg_value *new_row(struct lkg_value *rows, const char *node, const char *state,
                                 const char *why)
{
        struct lkg_value *row = lkg_tool_map();

        lkg_tool_map_string(row, "node", node);
        lkg_tool_map_string(row, "state", state);
        lkg_tool_map_string(row, "why", why);
        lkg_tool_append(rows, row);
        return row;
}

static void add_slots(const struct lkg_fleet *fleet, enum lkg_rollout_slot_state state, uint64_t now_ns,
                      struct lkg_value *rows)
{
        bool failed = state == LKG_SLOT_FAILED;

        for (size_t i = 0; i < fleet->ledger.n_items; i++) {
                const struct lkg_rollout_slot *slot = &fleet->ledger.items[i];
                char age[LKG_AGE_MAX];
                struct lkg_value *row;

                if (slot->state != state || strcmp(slot->hash, fleet->id.hash) != 0)
                        continue;
                row = new_row(rows, slot->node, failed ? "failed" : "in trial",
                              failed        ? slot->reason
                              : slot->asked ? "silent; it has been asked whether it is still there"
                                            : "");
                lkg_tool_map_text(row, "slot", "%u", slot->index);
                lkg_tool_map_string(row, "for",
                                    age_of(failed ? slot->renewed_ns : slot->since_ns, now_ns, age));
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
        static const struct lkg_column columns[] = { { "NODE", "node", 0, 40 },
                                                     { "SLOT", "slot" },
                                                     { "STATE", "state", 8 },
                                                     { "FOR", "for", 7 },
                                                     { "WHY", "why" } };
        LKG_CLEANUP(lkg_value_unrefp) struct lkg_value *rows = lkg_tool_list();

        put_head(fleet, buf);
        if (*trouble)
                put_trouble(fleet, trouble, buf);
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

        lkg_tool_map_text(ret, "configMap", "%s/%s", fleet->id.ns, fleet->id.name);
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
