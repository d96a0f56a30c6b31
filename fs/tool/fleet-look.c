/* SPDX-License-Identifier: Apache-2.0 */
/* What ConfigMap, slots and Nodes say about a rollout, as a table, and as a value. All but lkg_fleet_look() is pure. */
#include <lkg/lifecycle.h>
#include <lkg/objects.h>

#include "fleet.h"

#define WAITING_SHOWN 20u
#define NODES_PART    100u /* a Node may have 30 KiB, most of it images */

static const char *const state_names[] = {
        [LKG_FLEET_NO_SLOTS] = "no slots", [LKG_FLEET_UNCLEAR] = "unclear",
        [LKG_FLEET_STOPPED] = "stopped",   [LKG_FLEET_HALTED] = "halted",
        [LKG_FLEET_RUNNING] = "running",   [LKG_FLEET_NOT_BEGUN] = "not begun",
        [LKG_FLEET_QUIET] = "quiet",       [LKG_FLEET_NOT_HERE] = "unclear",
        [LKG_FLEET_TOO_MANY] = "unclear",
};

void lkg_fleet_deinit(struct lkg_fleet *fleet)
{
        lkg_ledger_deinit(&fleet->slots.ledger);
        free(fleet->nodes);
}

/* ---- the ConfigMap ---- */

struct lkg_resource lkg_fleet_configmap(const struct lkg_reference *reference)
{
        return (struct lkg_resource){ .group_version = "v1",
                                      .plural = "configmaps",
                                      .kind = "ConfigMap",
                                      .ns = reference->ns,
                                      .name = reference->name };
}

static void copy(char *ret, size_t size, const char *text)
{
        (void)snprintf(ret, size, "%.*s", (int)size - 1, text);
}

int lkg_fleet_take_configmap(struct lkg_fleet *fleet, const struct lkg_value *object, struct lkg_error *err)
{
        LKG_CLEANUP(lkg_configmap_deinit) struct lkg_configmap configmap = { 0 };
        struct lkg_config_source source;
        const char *text;
        size_t size;
        int r = lkg_configmap_from_value(object, &configmap, err);

        if (r == 0)
                r = lkg_configmap_resolve(&configmap, &fleet->reference, &source, err);
        if (r == 0) /* without a content there is no rollout */
                r = lkg_configmap_payload(&configmap, fleet->reference.key, &text, &size, err);
        if (r < 0)
                return r;
        lkg_rollout_id_of(&source, &fleet->id);
        lkg_rollout_decide(&configmap, "", &fleet->rollout);
        lkg_ledger_count(&fleet->slots.ledger, fleet->id.hash, &fleet->counts);
        return 0;
}

/* ---- the slots ---- */

void lkg_fleet_take_slots(struct lkg_fleet *fleet, const struct lkg_value *list)
{
        const struct lkg_value *items;
        size_t n = lkg_tool_items(list, "items", &items);

        for (size_t i = 0; i < n; i++) {
                const struct lkg_value *item = lkg_list_get(items, i);
                struct lkg_rollout_slot slot;
                struct lkg_error wrong = { 0 };

                if (lkg_value_type(item) != LKG_MAP ||
                    lkg_slot_read(fleet->slots.kind, item, &slot, &wrong) < 0)
                        fleet->slots.n_no_slots++;
                else
                        lkg_ledger_put(&fleet->slots.ledger, &slot, /* list_version= */ NULL, 0);
        }
        lkg_ledger_count(&fleet->slots.ledger, fleet->id.hash, &fleet->counts);
}

const struct lkg_rollout_slot *lkg_fleet_find(const struct lkg_fleet *fleet, const char *node,
                                              enum lkg_rollout_slot_state state)
{
        for (size_t i = 0; i < fleet->slots.ledger.n_items; i++) {
                const struct lkg_rollout_slot *slot = &fleet->slots.ledger.items[i];

                if (slot->state == state && strcmp(slot->hash, fleet->id.hash) == 0 &&
                    strcmp(slot->node, node) == 0)
                        return slot;
        }
        return NULL;
}

/* ---- the Nodes ---- */

void lkg_fleet_begin_nodes(struct lkg_fleet *fleet)
{
        fleet->n_nodes = fleet->n_waiting = 0;
        fleet->knows_nodes = false;
        *fleet->nodes_trouble = '\0';
}

static bool refers(const struct lkg_fleet *fleet, const struct lkg_value *object, const char *name)
{
        struct lkg_node_object node;
        struct lkg_error err = { 0 };
        const struct lkg_saying *says;

        if (lkg_node_read(object, name, &node, &err) < 0)
                return false;
        says = node.annotation.says == LKG_SAYS_NOTHING ? &node.spec : &node.annotation;
        return says->says == LKG_SAYS_REFERENCE && strcmp(says->reference.ns, fleet->reference.ns) == 0 &&
               strcmp(says->reference.name, fleet->reference.name) == 0 &&
               strcmp(says->reference.key, fleet->reference.key) == 0;
}

/* The reason of ConfigOK; "" = it has none. */
static const char *config_ok(const struct lkg_value *object)
{
        const struct lkg_value *conditions;
        size_t n = lkg_tool_items(lkg_map_get(object, "status"), "conditions", &conditions);

        for (size_t i = 0; i < n; i++) {
                const struct lkg_value *one = lkg_list_get(conditions, i);

                if (strcmp(lkg_tool_word(one, "type"), "ConfigOK") == 0)
                        return lkg_tool_word(one, "reason");
        }
        return "";
}

/* docs/dynamic-configuration.md, "Conditions" */
static bool says_it_waits(const char *reason)
{
        static const char *const starts[] = { "waiting for a rollout slot", "waiting for the rollout",
                                              "rollout halted", "rollout unclear" };

        for (size_t i = 0; i < LKG_ARRAY_SIZE(starts); i++)
                if (strncmp(reason, starts[i], strlen(starts[i])) == 0)
                        return true;
        return false;
}

void lkg_fleet_take_nodes(struct lkg_fleet *fleet, const struct lkg_value *list)
{
        const struct lkg_value *items;
        size_t n = lkg_tool_items(list, "items", &items);

        for (size_t i = 0; i < n; i++) {
                const struct lkg_value *item = lkg_list_get(items, i);
                const char *name = lkg_tool_word(lkg_map_get(item, "metadata"), "name");
                struct lkg_fleet_node *node;

                if (!*name || !refers(fleet, item, name))
                        continue;
                (void)lkg_need(LKG_RESERVE(fleet->nodes, fleet->n_nodes, fleet->n_allocated));
                node = &fleet->nodes[fleet->n_nodes++];
                copy(node->name, sizeof(node->name), name);
                copy(node->words, sizeof(node->words), config_ok(item));
                node->waits = says_it_waits(node->words);
        }
}

/* Whoever has a slot meanwhile does not wait, whatever its condition says, which is older. */
void lkg_fleet_settle(struct lkg_fleet *fleet)
{
        fleet->n_waiting = 0;
        for (size_t i = 0; i < fleet->n_nodes; i++) {
                struct lkg_fleet_node *node = &fleet->nodes[i];

                node->waits = says_it_waits(node->words) &&
                              !lkg_fleet_find(fleet, node->name, LKG_SLOT_HELD) &&
                              !lkg_fleet_find(fleet, node->name, LKG_SLOT_FAILED);
                fleet->n_waiting += node->waits;
        }
}

/* ---- the whole ---- */

static bool has_begun(const struct lkg_fleet *fleet)
{
        for (size_t i = 0; i < fleet->slots.ledger.n_items; i++)
                if (strcmp(fleet->slots.ledger.items[i].hash, fleet->id.hash) == 0)
                        return true;
        return false;
}

bool lkg_fleet_has_slots(const struct lkg_fleet *fleet)
{
        return fleet->slots.ledger.n_items + fleet->slots.n_no_slots > 0;
}

/* Does the node's condition count slots? "waiting for a rollout slot (0 of 5 in trial, 0 done, 0 failed)" is true before the first. */
static bool speaks_of_slots(const char *words)
{
        unsigned held, max, done, failed;

        if (sscanf(words, "rollout halted: %u failed", &failed) == 1)
                return failed > 0;
        return sscanf(words, "waiting for a rollout slot (%u of %u in trial, %u done, %u failed", &held,
                      &max, &done, &failed) == 4 &&
               held + done + failed > 0;
}

/*
 * Without a slot the rollout has not begun, unless there is reason to doubt that this is where the slots are. Those of an earlier
 * content are reason enough to believe it: a node says for some time yet what it knew of that one.
 */
static bool is_elsewhere(const struct lkg_fleet *fleet)
{
        if (lkg_fleet_has_slots(fleet))
                return false;
        if (fleet->lacks_slot_namespace)
                return true;
        for (size_t i = 0; i < fleet->n_nodes; i++)
                if (speaks_of_slots(fleet->nodes[i].words))
                        return true;
        return false;
}

/* In LKG_FLEET_NOT_HERE: why, and what to do. */
static const char *not_here(const struct lkg_fleet *fleet)
{
        return fleet->lacks_slot_namespace
                       ? "there is no such namespace; are the slots in another one (--rollout-namespace)?"
                       : "the nodes say otherwise: are the slots in another namespace "
                         "(--rollout-namespace)?";
}

unsigned lkg_fleet_halting(const struct lkg_fleet *fleet)
{
        return lkg_slots_halting(fleet->rollout.limits.max_in_trial, fleet->rollout.limits.max_failures);
}

enum lkg_fleet_state lkg_fleet_state(const struct lkg_fleet *fleet)
{
        if (fleet->rollout.state == LKG_ROLLOUT_UNCLEAR)
                return LKG_FLEET_UNCLEAR;
        if (fleet->rollout.halt)
                return LKG_FLEET_STOPPED;
        if (!fleet->rollout.limits.max_in_trial)
                return LKG_FLEET_NO_SLOTS;
        if (is_elsewhere(fleet))
                return LKG_FLEET_NOT_HERE;
        if (fleet->slots.ledger.too_many)
                return LKG_FLEET_TOO_MANY;
        if (fleet->counts.n_failed >= lkg_fleet_halting(fleet))
                return LKG_FLEET_HALTED;
        if (fleet->counts.n_held > 0 || (fleet->n_waiting > 0 && has_begun(fleet)))
                return LKG_FLEET_RUNNING;
        return has_begun(fleet) ? LKG_FLEET_QUIET : LKG_FLEET_NOT_BEGUN;
}

bool lkg_fleet_is_halted(const struct lkg_fleet *fleet)
{
        enum lkg_fleet_state state = lkg_fleet_state(fleet);

        return state == LKG_FLEET_HALTED || state == LKG_FLEET_STOPPED || state == LKG_FLEET_UNCLEAR ||
               state == LKG_FLEET_TOO_MANY;
}

bool lkg_fleet_take_answer(struct lkg_fleet_api *api, struct lkg_fleet *fleet)
{
        struct lkg_error err = { 0 };

        if (lkg_fleet_take_configmap(fleet, api->object, &err) == 0)
                return true;
        (void)snprintf(api->words, sizeof(api->words), "%.500s", err.message);
        return false;
}

/* Takes each part with @take. Return: were all answers OK? */
static bool list_all(struct lkg_fleet_api *api, struct lkg_fleet *fleet, struct lkg_request request,
                     void (*take)(struct lkg_fleet *, const struct lkg_value *))
{
        const char *token = NULL;

        do {
                const char *next;

                request.token = token;
                if (!lkg_fleet_ask(api, request))
                        return false;
                take(fleet, api->object);
                next = lkg_list_token(api->object);
                token = next ? lkg_tool_cut(next, strlen(next)) : NULL;
        } while (token);
        return true;
}

static bool list_slots(struct lkg_fleet_api *api, struct lkg_fleet *fleet, enum lkg_slot_kind kind)
{
        const struct lkg_slot_format *format = lkg_slot_format(kind);
        const struct lkg_resource resource = { .group_version = format->group_version,
                                               .plural = format->plural,
                                               .kind = format->list_kind,
                                               .ns = fleet->slot_namespace };
        const struct lkg_request request = { .verb = "list",
                                             .resource = &resource,
                                             .label = LKG_SLOT_LABEL_OBJECT,
                                             .value = fleet->id.uid,
                                             .limit = LKG_SLOTS_PART };

        fleet->slots = (struct lkg_fleet_slots){ .kind = kind };
        return list_all(api, fleet, request, lkg_fleet_take_slots);
}

static void choose(struct lkg_fleet *fleet, struct lkg_fleet_slots *other)
{
        lkg_ledger_deinit(&fleet->slots.ledger);
        fleet->slots = *other;
        lkg_ledger_count(&fleet->slots.ledger, fleet->id.hash, &fleet->counts);
}

/*
 * The nodes know whether their slots are ConfigMaps or Leases (remote.rolloutObjects); here it shows in what is there: those of the
 * content that the ConfigMap has now. A fleet that has changed from one kind to the other has left slots of the former behind.
 */
static bool find_slots(struct lkg_fleet_api *api, struct lkg_fleet *fleet)
{
        enum lkg_slot_kind first = fleet->slots.kind,
                           other = first == LKG_SLOT_LEASE ? LKG_SLOT_CONFIGMAP : LKG_SLOT_LEASE;
        bool ok = list_slots(api, fleet, first), any = ok && fleet->slots.ledger.n_items > 0;
        struct lkg_fleet_slots found = fleet->slots;
        char words[LKG_API_WORDS_MAX];

        if (ok && has_begun(fleet))
                return true;
        copy(words, sizeof(words), api->words);
        if (list_slots(api, fleet, other) && (has_begun(fleet) || (!any && lkg_fleet_has_slots(fleet)))) {
                lkg_ledger_deinit(&found.ledger);
                return true;
        }
        choose(fleet, &found);
        copy(api->words, sizeof(api->words), words);
        return ok;
}

/* A list in a namespace that does not exist is empty, and no error. Whoever may not get namespaces is not told. */
static void look_for_namespace(struct lkg_fleet_api *api, struct lkg_fleet *fleet)
{
        const struct lkg_resource resource = { .group_version = "v1",
                                               .plural = "namespaces",
                                               .kind = "Namespace",
                                               .name = fleet->slot_namespace };

        fleet->lacks_slot_namespace = !lkg_fleet_has_slots(fleet) && !lkg_fleet_get(api, &resource) &&
                                      api->status == LKG_API_NOT_FOUND;
}

/* What was known stays where there is no answer. */
bool lkg_fleet_look_at_slots(struct lkg_fleet_api *api, struct lkg_fleet *fleet)
{
        struct lkg_fleet_slots before = fleet->slots;

        if (!find_slots(api, fleet)) {
                choose(fleet, &before);
                return false;
        }
        lkg_ledger_deinit(&before.ledger);
        look_for_namespace(api, fleet);
        return true;
}

static void look_at_nodes(struct lkg_fleet_api *api, struct lkg_fleet *fleet)
{
        static const struct lkg_resource resource = { .group_version = "v1",
                                                      .plural = "nodes",
                                                      .kind = "NodeList" };
        const struct lkg_request request = { .verb = "list", .resource = &resource, .limit = NODES_PART };

        lkg_fleet_begin_nodes(fleet);
        fleet->knows_nodes = list_all(api, fleet, request, lkg_fleet_take_nodes);
        if (fleet->knows_nodes)
                return;
        lkg_fleet_begin_nodes(fleet); /* half of them would be said to be all */
        copy(fleet->nodes_trouble, sizeof(fleet->nodes_trouble), api->words);
}

bool lkg_fleet_look(struct lkg_fleet_api *api, struct lkg_fleet *fleet, bool nodes)
{
        const struct lkg_resource resource = lkg_fleet_configmap(&fleet->reference);

        if (!lkg_fleet_get(api, &resource) || !lkg_fleet_take_answer(api, fleet) ||
            !lkg_fleet_look_at_slots(api, fleet))
                return false;
        if (nodes)
                look_at_nodes(api, fleet);
        lkg_fleet_settle(fleet);
        fleet->looked_ns = lkg_realtime_ns();
        return true;
}

/* ---- as a table ---- */

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
                                       not_here(fleet));
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
                /* else it is not known, or the node's clock is ahead of ours */
                if (since_ns && since_ns <= now_ns)
                        lkg_tool_map_string(row, "for",
                                            lkg_tool_age((now_ns - since_ns) / LKG_NSEC_PER_SEC, age));
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
        for (size_t i = 0, n = 0; i < fleet->n_nodes && n < WAITING_SHOWN; i++)
                if (fleet->nodes[i].waits) {
                        (void)new_row(rows, fleet->nodes[i].name, "waiting", fleet->nodes[i].words);
                        n++;
                }
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
                fleet->id.version, "sha256", fleet->id.sha256, "state", state_names[state], "slotsTrouble",
                state == LKG_FLEET_NOT_HERE ? not_here(fleet) : NULL, "slotNamespace", fleet->slot_namespace,
                "nodesTrouble", fleet->knows_nodes ? NULL : fleet->nodes_trouble, NULL);

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
