/* SPDX-License-Identifier: Apache-2.0 */
/* A rollout as an operator sees it, in steps: what ConfigMap, slots and Nodes say, and the table of it: rows/rollout.rows. No API server. */
#include <sys/stat.h>

#include <lkg/documents.h>

#include "fs/tool/fleet.h"
#include "rows.h"

#define S   LKG_NSEC_PER_SEC
#define NOW (UINT64_C(1790000000) * S)

static struct lkg_fleet fleet;
static struct lkg_buf list = LKG_BUF_INIT; /* of slots, or of Nodes */

static struct lkg_value *decode(const char *text)
{
        LKG_CLEANUP(lkg_report_deinit) struct lkg_report report = LKG_REPORT_INIT;
        struct lkg_value *value = NULL;

        assert_int_equal(lkg_decode_json(text, strlen(text), LKG_DECODE_STRICT, NULL, &report, &value), 0);
        return value;
}

static int end(void **state)
{
        lkg_fleet_deinit(&fleet);
        lkg_buf_deinit(&list);
        return 0;
}

STEP(steps, 0)
{
        struct lkg_error err = { 0 };

        (void)end(NULL);
        fleet = (struct lkg_fleet){ .slot_namespace = "lkgfs-rollout" };
        assert_int_equal(lkg_reference_from_text("kube-system/node-config", 23, &fleet.reference, &err), 0);
}

/* Its annotations. */
STEP(configmap, 1)
{
        LKG_CLEANUP(lkg_value_unrefp) struct lkg_value *object = NULL;
        struct lkg_error err = { 0 };
        char text[1024];

        (void)snprintf(text, sizeof(text),
                       "{\"apiVersion\": \"v1\", \"kind\": \"ConfigMap\", \"metadata\": {\"namespace\": "
                       "\"kube-system\", \"name\": \"node-config\", \"uid\": \"5d1f\", "
                       "\"resourceVersion\": \"9\", \"annotations\": {%s}}, \"data\": {\"kubelet\": "
                       "\"maxPods: 13\\n\"}}",
                       q->parts[0]);
        object = decode(text);
        assert_int_equal(lkg_fleet_take_configmap(&fleet, object, &err), 0);
}

/* Which content the slots are of that follow. */
STEP(content, 1)
{
        (void)snprintf(fleet.id.sha256, sizeof(fleet.id.sha256), "%s", q->parts[0]);
        lkg_rollout_id_seal(&fleet.id);
}

/* One slot of the rollout, as a node writes it. */
static void put_slot(unsigned index, enum lkg_rollout_slot_state state, const char *node, unsigned successes,
                     const char *reason)
{
        LKG_CLEANUP(lkg_json_deinit) struct lkg_json json = LKG_JSON_INIT;
        struct lkg_rollout_slot slot = { .index = index,
                                         .state = state,
                                         .successes = successes,
                                         .since_ns = NOW - 180 * S,
                                         .renewed_ns = NOW - 60 * S,
                                         .patience_ns = 900 * S,
                                         .version = "7" };

        memcpy(slot.uid, fleet.id.uid, sizeof(slot.uid));
        memcpy(slot.key, fleet.id.key, sizeof(slot.key));
        memcpy(slot.hash, fleet.id.hash, sizeof(slot.hash));
        memcpy(slot.sha256, fleet.id.sha256, sizeof(slot.sha256));
        (void)snprintf(slot.node, sizeof(slot.node), "%s", node);
        (void)snprintf(slot.reason, sizeof(slot.reason), "%s", reason);
        lkg_slot_write(LKG_SLOT_CONFIGMAP, &slot, &fleet.id, "lkgfs-rollout", &json);
        lkg_buf_puts(&list, list.size ? "," : "{\"items\": [");
        assert_int_equal(lkg_json_write(&json, &list), 0);
}

/* INDEX STATE NODE SUCCESSES REASON; `-` is no node */
STEP(slot, 5)
{
        put_slot((unsigned)strtoul(q->parts[0], NULL, 10),
                 rows_named(lkg_slot_state_name, LKG_SLOT_FAILED + 1, q->parts[1]),
                 *q->parts[2] == '-' ? "" : q->parts[2], (unsigned)strtoul(q->parts[3], NULL, 10),
                 q->parts[4]);
}

static struct lkg_value *take_list(void)
{
        struct lkg_value *value;

        lkg_buf_puts(&list, list.size ? "]}" : "{\"items\": []}");
        lkg_buf_puts(&list, "");
        value = decode(list.data);
        lkg_buf_deinit(&list);
        return value;
}

/* What else the list has. */
STEP(slots, 1)
{
        LKG_CLEANUP(lkg_value_unrefp) struct lkg_value *value = NULL;

        lkg_buf_puts(&list, q->parts[0]);
        value = take_list();
        lkg_fleet_take_slots(&fleet, value);
        lkg_buf_printf(ret, "%s%s", lkg_fleet_is_halted(&fleet) ? "halted" : "not halted",
                       lkg_fleet_find(&fleet, "worker-1", LKG_SLOT_FAILED) ? ", worker-1 failed" : "");
}

static void put_node(const char *name, const char *refers, const char *reason)
{
        lkg_buf_printf(
                &list,
                "%s{\"metadata\": {\"name\": \"%s\", \"uid\": \"u-%s\", \"resourceVersion\": \"3\", "
                "\"annotations\": {\"lkgfs.io/config-source\": \"%s\"}}, \"status\": {\"conditions\": "
                "[{\"type\": \"Ready\", \"status\": \"True\", \"reason\": \"KubeletReady\"}, "
                "{\"type\": \"ConfigOK\", \"status\": \"True\", \"reason\": \"%s\"}]}}",
                list.size ? "," : "{\"items\": [", name, name, refers, reason);
}

/* NAME, what it refers to, and what its condition says. */
STEP(node, 3)
{
        put_node(q->parts[0], q->parts[1], q->parts[2]);
}

STEP(nodes, 1)
{
        LKG_CLEANUP(lkg_value_unrefp) struct lkg_value *value = NULL;

        lkg_buf_puts(&list, q->parts[0]);
        value = take_list();
        lkg_fleet_begin_nodes(&fleet);
        lkg_fleet_take_nodes(&fleet, value);
        fleet.knows_nodes = true;
        lkg_fleet_settle(&fleet);
        lkg_buf_printf(ret, "%u", (unsigned)fleet.n_nodes);
}

/* What else is known: there is no such namespace; an object there is no slot; why Nodes are not known; the figures are of an hour ago. */
STEP(known, 2)
{
        if (strcmp(q->parts[0], "no_namespace") == 0)
                fleet.lacks_slot_namespace = true;
        else if (strcmp(q->parts[0], "no_slot") == 0)
                fleet.slots.n_no_slots = 1;
        else if (strcmp(q->parts[0], "nodes_trouble") == 0)
                (void)snprintf(fleet.nodes_trouble, sizeof(fleet.nodes_trouble), "%s", q->parts[1]);
        else
                fleet.looked_ns = NOW - 3600 * S;
}

/* The table, after a try that failed with these words. */
STEP(show, 1)
{
        lkg_fleet_show(&fleet, NOW, q->parts[0], ret);
}

/* The state in it. */
STEP(state, 0)
{
        LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf text = LKG_BUF_INIT;
        const char *line;

        lkg_fleet_show(&fleet, NOW, "", &text);
        lkg_buf_puts(&text, "");
        line = strstr(text.data, "\nstate ");
        assert_non_null(line);
        line += strlen("\nstate      ");
        lkg_buf_printf(ret, "%.*s", (int)strcspn(line, "\n"), line);
}

/* The same as a value. */
STEP(value, 0)
{
        struct lkg_value *map = lkg_fleet_map(&fleet);

        lkg_render_json_compact(map, ret);
}

ROWS_WITH(rollout, rows_steps, NULL, end)

/* ---- what no row can say ---- */

/* Of five contents; the nodes take none then. */
TEST_WITH(test_too_many_slots, NULL, end)
{
        LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf text = LKG_BUF_INIT;
        LKG_CLEANUP(lkg_value_unrefp) struct lkg_value *value = NULL;
        struct question q = { .parts = { "\"lkgfs.io/rollout-max-in-trial\": \"5\"" } };

        step_steps(NULL, NULL);
        step_configmap(&q, NULL);
        for (unsigned i = 0; i <= LKG_SLOTS_KNOWN_MAX; i++) {
                (void)snprintf(fleet.id.sha256, sizeof(fleet.id.sha256), "%u", i / LKG_SLOTS_MAX);
                lkg_rollout_id_seal(&fleet.id);
                put_slot(i % LKG_SLOTS_MAX, LKG_SLOT_FREE, "", 1, "");
        }
        value = take_list();
        lkg_fleet_take_slots(&fleet, value);
        assert_int_equal(lkg_fleet_state(&fleet), LKG_FLEET_TOO_MANY);
        assert_true(lkg_fleet_is_halted(&fleet));
        step_state(&q, &text);
        lkg_buf_puts(&text, "");
        assert_non_null(strstr(text.data, "unclear: there are more than 4000 slots of this ConfigMap"));
}

TEST_WITH(test_what_is_no_configmap, NULL, end)
{
        LKG_CLEANUP(lkg_value_unrefp) struct lkg_value *object = decode("{\"kind\": \"ConfigMap\"}");
        struct lkg_error err = { 0 };

        step_steps(NULL, NULL);
        assert_int_equal(lkg_fleet_take_configmap(&fleet, object, &err), -EINVAL);
}

TEST_WITH(test_many_wait, NULL, end)
{
        LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf text = LKG_BUF_INIT;
        struct question q = { .parts = { "\"lkgfs.io/rollout-max-in-trial\": \"5\"" } };
        char name[16];

        step_steps(NULL, NULL);
        step_configmap(&q, NULL);
        for (unsigned i = 0; i < 1000; i++) {
                (void)snprintf(name, sizeof(name), "n%u", i);
                put_node(name, "kube-system/node-config", "waiting for the rollout: bucket 43.210");
        }
        q.parts[0] = "";
        step_nodes(&q, &text);
        lkg_buf_reset(&text);
        lkg_fleet_show(&fleet, NOW, "", &text);
        lkg_buf_puts(&text, "");
        assert_non_null(strstr(text.data, "waiting    1000 of 1000 nodes that refer to it\n"));
        assert_non_null(strstr(text.data, "\nand 980 more that wait\n"));
}
