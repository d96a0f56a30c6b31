/* SPDX-License-Identifier: Apache-2.0 */
/* A rollout as an operator sees it: what ConfigMap, slots and Nodes say, and the table of it. No API server. */
#include <sys/stat.h>

#include <lkg/documents.h>

#include "unit.h"
#include "fs/tool/fleet.h"

#define S   LKG_NSEC_PER_SEC
#define NOW (UINT64_C(1790000000) * S)

struct fixture {
        struct lkg_fleet fleet;
        struct lkg_error err;
        struct lkg_buf text;
};

static struct lkg_value *decode(const char *text)
{
        LKG_CLEANUP(lkg_report_deinit) struct lkg_report report = LKG_REPORT_INIT;
        struct lkg_value *value = NULL;

        assert_int_equal(lkg_decode_json(text, strlen(text), LKG_DECODE_STRICT, NULL, &report, &value), 0);
        return value;
}

static int set_up(void **state)
{
        struct fixture *f = calloc(1, sizeof(*f));

        if (!f)
                return -1;
        f->fleet.slot_namespace = "lkgfs-rollout";
        assert_int_equal(
                lkg_reference_from_text("kube-system/node-config", 23, &f->fleet.reference, &f->err), 0);
        *state = f;
        return 0;
}

static int tear_down(void **state)
{
        struct fixture *f = *state;

        lkg_fleet_deinit(&f->fleet);
        lkg_buf_deinit(&f->text);
        free(f);
        return 0;
}

static int take_configmap(struct fixture *f, const char *annotations)
{
        LKG_CLEANUP(lkg_value_unrefp) struct lkg_value *object = NULL;
        LKG_CLEANUP(lkg_freep) char *text = NULL;

        assert_true(
                asprintf(&text,
                         "{\"apiVersion\": \"v1\", \"kind\": \"ConfigMap\", \"metadata\": {\"namespace\": "
                         "\"kube-system\", \"name\": \"node-config\", \"uid\": \"5d1f\", "
                         "\"resourceVersion\": \"9\", \"annotations\": {%s}}, \"data\": {\"kubelet\": "
                         "\"maxPods: 13\\n\"}}",
                         annotations) > 0);
        object = decode(text);
        return lkg_fleet_take_configmap(&f->fleet, object, &f->err);
}

/* One slot of the rollout, as a node writes it. */
static void put_slot(struct fixture *f, struct lkg_buf *list, unsigned index,
                     enum lkg_rollout_slot_state state, const char *node, unsigned successes,
                     const char *reason)
{
        LKG_CLEANUP(lkg_json_deinit) struct lkg_json json = LKG_JSON_INIT;
        struct lkg_rollout_slot slot = { .index = index,
                                         .state = state,
                                         .successes = successes,
                                         .since_ns = NOW - 180 * S,
                                         .renewed_ns = NOW - 60 * S,
                                         .patience_ns = 900 * S };

        (void)strcpy(slot.uid, f->fleet.id.uid);
        (void)strcpy(slot.key, f->fleet.id.key);
        (void)strcpy(slot.hash, f->fleet.id.hash);
        (void)strcpy(slot.sha256, f->fleet.id.sha256);
        (void)strcpy(slot.version, "7");
        (void)strcpy(slot.node, node);
        (void)strcpy(slot.reason, reason);
        lkg_slot_write(LKG_SLOT_CONFIGMAP, &slot, &f->fleet.id, "lkgfs-rollout", &json);
        lkg_buf_puts(list, list->size ? "," : "{\"items\": [");
        assert_int_equal(lkg_json_write(&json, list), 0);
}

static void take_slots(struct fixture *f, struct lkg_buf *list)
{
        LKG_CLEANUP(lkg_value_unrefp) struct lkg_value *value = NULL;

        lkg_buf_puts(list, list->size ? "]}" : "{\"items\": []}");
        lkg_buf_putc(list, '\0');
        value = decode(list->data);
        lkg_fleet_take_slots(&f->fleet, value);
        lkg_buf_deinit(list);
}

static void put_node(struct lkg_buf *list, const char *name, const char *refers, const char *reason)
{
        lkg_buf_printf(
                list,
                "%s{\"metadata\": {\"name\": \"%s\", \"uid\": \"u-%s\", \"resourceVersion\": \"3\", "
                "\"annotations\": {\"lkgfs.io/config-source\": \"%s\"}}, \"status\": {\"conditions\": "
                "[{\"type\": \"Ready\", \"status\": \"True\", \"reason\": \"KubeletReady\"}, "
                "{\"type\": \"ConfigOK\", \"status\": \"True\", \"reason\": \"%s\"}]}}",
                list->size ? "," : "{\"items\": [", name, name, refers, reason);
}

static void take_nodes(struct fixture *f, struct lkg_buf *list)
{
        LKG_CLEANUP(lkg_value_unrefp) struct lkg_value *value = NULL;

        lkg_buf_puts(list, "]}");
        lkg_buf_putc(list, '\0');
        value = decode(list->data);
        lkg_fleet_begin_nodes(&f->fleet);
        lkg_fleet_take_nodes(&f->fleet, value);
        f->fleet.knows_nodes = true;
        lkg_fleet_settle(&f->fleet);
        lkg_buf_deinit(list);
}

static const char *shown_with(struct fixture *f, const char *trouble)
{
        lkg_buf_deinit(&f->text);
        f->text = (struct lkg_buf)LKG_BUF_INIT;
        lkg_fleet_show(&f->fleet, NOW, trouble, &f->text);
        lkg_buf_putc(&f->text, '\0');
        assert_false(lkg_buf_failed(&f->text));
        return f->text.data;
}

static const char *shown(struct fixture *f)
{
        return shown_with(f, "");
}

#define LIMITS "\"lkgfs.io/rollout-max-in-trial\": \"5\""

TEST_WITH(test_the_table, set_up, tear_down)
{
        struct fixture *f = *state;
        struct lkg_buf list = LKG_BUF_INIT;

        assert_int_equal(take_configmap(f, LIMITS ", \"lkgfs.io/rollout-max-failures\": \"2\""), 0);
        put_slot(f, &list, 0, LKG_SLOT_FREE, "", 41, "");
        put_slot(f, &list, 1, LKG_SLOT_HELD, "worker-1", 0, "");
        put_slot(f, &list, 2, LKG_SLOT_FAILED, "worker-22", 3, "current failed trial period");
        take_slots(f, &list);
        put_node(&list, "worker-1", "kube-system/node-config", "waiting for a rollout slot: x");
        put_node(&list, "worker-3", "kube-system/node-config",
                 "waiting for a rollout slot (1 of 5 in trial)");
        put_node(&list, "worker-4", "kube-system/node-config", "all checks passed");
        put_node(&list, "worker-5", "kube-system/another", "waiting for a rollout slot");
        take_nodes(f, &list);
        assert_int_equal(lkg_fleet_state(&f->fleet), LKG_FLEET_RUNNING);
        assert_string_equal(
                shown(f),
                "ConfigMap  kube-system/node-config, key kubelet, resourceVersion 9\n"
                "slots      in namespace lkgfs-rollout\n"
                "state      running\n"
                "in trial   1 of 5 at a time\n"
                "done       44\n"
                "failed     1, halts with 2\n"
                "waiting    1 of 3 nodes that refer to it\n"
                "\n"
                "NODE       SLOT  STATE     FOR      WHY\n"
                "worker-22  2     failed    60 s     current failed trial period\n"
                "worker-1   1     in trial  3 min\n"
                "worker-3   -     waiting   -        waiting for a rollout slot (1 of 5 in trial)\n");
}

TEST_WITH(test_its_states, set_up, tear_down)
{
        struct fixture *f = *state;
        struct lkg_buf list = LKG_BUF_INIT;

        assert_int_equal(take_configmap(f, ""), 0);
        assert_int_equal(lkg_fleet_state(&f->fleet), LKG_FLEET_NO_SLOTS);
        assert_int_equal(take_configmap(f, LIMITS), 0);
        assert_int_equal(lkg_fleet_state(&f->fleet), LKG_FLEET_NOT_BEGUN);
        assert_false(lkg_fleet_is_halted(&f->fleet));
        assert_int_equal(take_configmap(f, "\"lkgfs.io/rollout-max-in-trial\": \"many\""), 0);
        assert_int_equal(lkg_fleet_state(&f->fleet), LKG_FLEET_UNCLEAR);
        assert_int_equal(take_configmap(f, LIMITS ", \"lkgfs.io/halt\": \"true\""), 0);
        assert_int_equal(lkg_fleet_state(&f->fleet), LKG_FLEET_STOPPED);
        assert_true(lkg_fleet_is_halted(&f->fleet));
        assert_int_equal(take_configmap(f, LIMITS), 0);
        put_slot(f, &list, 0, LKG_SLOT_FREE, "", 41, "");
        take_slots(f, &list);
        assert_int_equal(lkg_fleet_state(&f->fleet), LKG_FLEET_QUIET);
        put_slot(f, &list, 0, LKG_SLOT_FAILED, "a", 0, "why");
        take_slots(f, &list);
        assert_int_equal(lkg_fleet_state(&f->fleet), LKG_FLEET_HALTED);
        assert_non_null(strstr(shown(f), "state      halted: until another content, or --forgive NODE\n"));
        assert_non_null(lkg_fleet_find(&f->fleet, "a", LKG_SLOT_FAILED));
        assert_null(lkg_fleet_find(&f->fleet, "a", LKG_SLOT_HELD));
        for (unsigned i = 0; i <= LKG_SLOTS_KNOWN_MAX;
             i++) { /* of five contents; the nodes take none then */
                (void)snprintf(f->fleet.id.sha256, sizeof(f->fleet.id.sha256), "%u", i / LKG_SLOTS_MAX);
                lkg_rollout_id_seal(&f->fleet.id);
                put_slot(f, &list, i % LKG_SLOTS_MAX, LKG_SLOT_FREE, "", 1, "");
        }
        take_slots(f, &list);
        assert_int_equal(lkg_fleet_state(&f->fleet), LKG_FLEET_TOO_MANY);
        assert_true(lkg_fleet_is_halted(&f->fleet));
        assert_non_null(
                strstr(shown(f), "state      unclear: there are more than 4000 slots of this ConfigMap"));
}

/* The content decides: what failed with another one is not shown, and does not halt this one. */
TEST_WITH(test_another_content, set_up, tear_down)
{
        struct fixture *f = *state;
        struct lkg_buf list = LKG_BUF_INIT;
        struct lkg_rollout_id id;

        assert_int_equal(take_configmap(f, LIMITS), 0);
        id = f->fleet.id;
        (void)strcpy(f->fleet.id.sha256, "00");
        lkg_rollout_id_seal(&f->fleet.id);
        put_slot(f, &list, 0, LKG_SLOT_FAILED, "worker-1", 0, "why");
        f->fleet.id = id;
        take_slots(f, &list);
        assert_int_equal(lkg_fleet_state(&f->fleet), LKG_FLEET_NOT_BEGUN);
        assert_null(strstr(shown(f), "worker-1"));
}

/* Slots in another namespace, or the wrong option: the nodes know better. */
TEST_WITH(test_slots_that_are_not_here, set_up, tear_down)
{
        static const char *const quiet[] = {
                "waiting for a rollout slot (0 of 5 in trial, 0 done, 0 failed)", /* before the first node goes */
                "waiting for a rollout slot: a permission is missing",
                "rollout halted", /* lkgfs.io/halt */
                "all checks passed",
        };
        static const char *const telling[] = {
                "waiting for a rollout slot (1 of 5 in trial, 0 done, 0 failed): using current",
                "waiting for a rollout slot (0 of 5 in trial, 7 done, 0 failed)",
                "rollout halted: 1 failed, node a: current failed trial period",
        };
        struct fixture *f = *state;
        struct lkg_buf list = LKG_BUF_INIT;

        assert_int_equal(take_configmap(f, LIMITS), 0);
        for (size_t i = 0; i < LKG_ARRAY_SIZE(quiet); i++) {
                put_node(&list, "a", "kube-system/node-config", quiet[i]);
                take_nodes(f, &list);
                assert_int_equal(lkg_fleet_state(&f->fleet), LKG_FLEET_NOT_BEGUN);
        }
        for (size_t i = 0; i < LKG_ARRAY_SIZE(telling); i++) {
                put_node(&list, "a", "kube-system/node-config", telling[i]);
                take_nodes(f, &list);
                assert_int_equal(lkg_fleet_state(&f->fleet), LKG_FLEET_NOT_HERE);
        }
        assert_false(lkg_fleet_is_halted(&f->fleet));
        assert_non_null(strstr(shown(f),
                               "state      unclear: no slot is in namespace lkgfs-rollout; the nodes "
                               "say otherwise: are the slots in another namespace "
                               "(--rollout-namespace)?\n"));
        assert_int_equal(take_configmap(f, LIMITS ", \"lkgfs.io/halt\": \"true\""), 0);
        assert_int_equal(lkg_fleet_state(&f->fleet), LKG_FLEET_STOPPED);
        /* what the node says may be about the content before this one, whose slots are here */
        assert_int_equal(take_configmap(f, LIMITS), 0);
        f->fleet.slots.n_no_slots = 1;
        assert_int_equal(lkg_fleet_state(&f->fleet), LKG_FLEET_NOT_BEGUN);
}

TEST_WITH(test_no_such_namespace, set_up, tear_down)
{
        struct fixture *f = *state;
        struct lkg_value *map;

        assert_int_equal(take_configmap(f, LIMITS), 0);
        f->fleet.lacks_slot_namespace = true;
        assert_non_null(strstr(shown(f),
                               "state      unclear: no slot is in namespace lkgfs-rollout; there is no such "
                               "namespace; are the slots in another one (--rollout-namespace)?\n"));
        map = lkg_fleet_map(&f->fleet);
        assert_string_equal(lkg_map_get_string(map, "state"), "unclear");
        assert_non_null(strstr(lkg_map_get_string(map, "slotsTrouble"), "there is no such namespace"));
        assert_int_equal(take_configmap(f, ""), 0); /* nobody needs it */
        assert_int_equal(lkg_fleet_state(&f->fleet), LKG_FLEET_NO_SLOTS);
}

TEST_WITH(test_old_figures, set_up, tear_down)
{
        struct fixture *f = *state;

        assert_int_equal(take_configmap(f, LIMITS), 0);
        f->fleet.looked_ns = NOW - 3600 * S;
        assert_null(strstr(shown(f), "this is old"));
        assert_non_null(strstr(shown_with(f, "connect: Connection refused"),
                               "\nthis is old, of 2026-09-21T13:13:20Z: connect: Connection refused\n"));
}

/* Whoever may not list Nodes sees the rest, and is told. */
TEST_WITH(test_without_the_nodes, set_up, tear_down)
{
        struct fixture *f = *state;
        struct lkg_buf list = LKG_BUF_INIT;

        assert_int_equal(take_configmap(f, LIMITS), 0);
        put_slot(f, &list, 0, LKG_SLOT_FREE, "", 41, "");
        take_slots(f, &list);
        (void)strcpy(f->fleet.nodes_trouble, "list nodes is forbidden (403)");
        assert_non_null(strstr(shown(f), "waiting    not known: list nodes is forbidden (403)\n"));
        assert_non_null(strstr(shown(f), "whether a node waits is not known\n"));
}

/* Other nodes wrote what is shown: it cannot move the cursor, and what is no slot is counted. */
TEST_WITH(test_hostile_objects, set_up, tear_down)
{
        struct fixture *f = *state;
        LKG_CLEANUP(lkg_value_unrefp) struct lkg_value *object = NULL;
        struct lkg_buf list = LKG_BUF_INIT;

        assert_int_equal(take_configmap(f, LIMITS), 0);
        put_slot(f, &list, 0, LKG_SLOT_FAILED, "worker-1", 0,
                 "a\xc2\x9b"
                 "2Jb");
        lkg_buf_puts(&list, ", {\"metadata\": {\"name\": \"x\"}, \"data\": {}}, 5");
        take_slots(f, &list);
        assert_int_equal(f->fleet.slots.n_no_slots, 2);
        assert_null(strstr(shown(f), "\xc2\x9b"));
        assert_non_null(strstr(shown(f), "ignored    2 objects in lkgfs-rollout that are no slots\n"));
        put_node(&list, "worker-3", "kube-system/node-config", "waiting for a rollout slot");
        lkg_buf_puts(&list, ", {}, null, {\"metadata\": {\"name\": 5}}");
        take_nodes(f, &list);
        assert_int_equal(f->fleet.n_nodes, 1);
        object = decode("{\"kind\": \"ConfigMap\"}");
        assert_int_equal(lkg_fleet_take_configmap(&f->fleet, object, &f->err), -EINVAL);
}

TEST_WITH(test_many_wait, set_up, tear_down)
{
        struct fixture *f = *state;
        struct lkg_buf list = LKG_BUF_INIT;
        char name[16];

        assert_int_equal(take_configmap(f, LIMITS), 0);
        for (unsigned i = 0; i < 1000; i++) {
                (void)snprintf(name, sizeof(name), "n%u", i);
                put_node(&list, name, "kube-system/node-config", "waiting for the rollout: bucket 43.210");
        }
        take_nodes(f, &list);
        assert_non_null(strstr(shown(f), "waiting    1000 of 1000 nodes that refer to it\n"));
        assert_non_null(strstr(shown(f), "\nand 980 more that wait\n"));
}

TEST_WITH(test_as_a_value, set_up, tear_down)
{
        struct fixture *f = *state;
        struct lkg_buf list = LKG_BUF_INIT;
        struct lkg_value *map;
        const struct lkg_value *slots, *slot;

        assert_int_equal(take_configmap(f, LIMITS), 0);
        put_slot(f, &list, 0, LKG_SLOT_FAILED, "worker-1", 0, "why");
        take_slots(f, &list);
        map = lkg_fleet_map(&f->fleet);
        assert_string_equal(lkg_map_get_string(map, "state"), "halted");
        assert_string_equal(lkg_map_get_string(map, "configMap"), "kube-system/node-config");
        assert_string_equal(lkg_map_get_string(map, "slotNamespace"), "lkgfs-rollout");
        assert_null(lkg_map_get(map, "slotsTrouble"));
        assert_null(lkg_map_get(map, "waiting")); /* nobody knows */
        slots = lkg_map_get(map, "slots");
        assert_int_equal(lkg_value_size(slots), 1);
        slot = lkg_list_get(slots, 0);
        assert_string_equal(lkg_map_get_string(slot, "node"), "worker-1");
        assert_string_equal(lkg_map_get_string(slot, "reason"), "why");
}
