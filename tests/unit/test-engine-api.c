/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The engine with an API server that the test controls: where a reference can come from, ConfigMaps,
 * outages, rollout, reports.
 */
#include "core/reference/apiserver.h"
#include "engine-node.h"
#include "fake-remote.h"

#define CONFIG(rest)                                                               \
        "apiVersion: config.lkgfs.io/v1alpha1\nkind: LkgfsConfiguration\nremote: " \
        "{enabled: true, nodeName: n1" rest "}\n"

static const char *node_json(const char *uid, const char *annotation)
{
        static char text[1024];

        (void)snprintf(text, sizeof(text),
                       "{\"kind\":\"Node\",\"metadata\":{\"name\":\"n1\",\"uid\":\"%s\","
                       "\"resourceVersion\":\"5\"%s%s%s}}",
                       uid, annotation ? ",\"annotations\":{\"lkgfs.io/config-source\":\"" : "",
                       annotation ? annotation : "", annotation ? "\"}" : "");
        return text;
}

static const char *configmap_json(const char *name, const char *version, const char *annotations, int pods)
{
        static char text[2048];

        (void)snprintf(
                text, sizeof(text),
                "{\"kind\":\"ConfigMap\",\"apiVersion\":\"v1\",\"metadata\":{\"namespace\":"
                "\"kube-system\",\"name\":\"%s\",\"uid\":\"uid-%s\",\"resourceVersion\":\"%s\","
                "\"annotations\":{%s}},\"data\":{\"kubelet\":\"apiVersion: kubelet.config.k8s.io/v1beta1\\n"
                "kind: KubeletConfiguration\\nmaxPods: %d\\n\"}}",
                name, name, version, annotations, pods);
        return text;
}

/* Run until nothing is due now. */
static void settle(struct node *n)
{
        for (unsigned i = 0; sd_event_run(n->event, 0) > 0; i++)
                assert_in_range(i, 0, 100);
}

static void tell_node(struct node *n, const char *uid, const char *annotation)
{
        fake_tell("nodes", node_json(uid, annotation));
        settle(n);
}

static void tell_configmap(struct node *n, const char *version, const char *annotations, int pods)
{
        fake_tell("configmaps", configmap_json("cfg", version, annotations, pods));
        settle(n);
}

static void begin_with(struct node *n, const char *config)
{
        fake_reset();
        fake_credential(LKG_CREDENTIAL_NODE);
        put(n, "etc/config.yaml", config);
        start(n);
        settle(n);
}

/* A node that follows version 1 of kube-system/cfg by its annotation. */
static void follow(struct node *n, const char *config)
{
        begin_with(n, config);
        tell_node(n, "node-1", "kube-system/cfg");
        tell_configmap(n, "1", "", 41);
        assert_has(n, "kubelet.conf", "maxPods: 41\n");
        assert_has(n, "status/kubelet/condition", "True all checks passed: using current (UID: uid-cfg)\n");
}

static void restart(struct node *n)
{
        stop(n, true);
        fake_credential(LKG_CREDENTIAL_NODE);
        start(n);
        settle(n);
}

#define UNCLEAR "Unknown failed to sync, desired config unclear, cause: "

/* ---- the chain ---- */

TEST_WITH(test_annotation_is_followed, setup, teardown)
{
        struct node *n = *state;

        begin_with(n, CONFIG(""));
        assert_has(n, "status/kubelet/condition", UNCLEAR "failed to read Node n1: no answer yet: using ");
        assert_null(fake_find("configmaps"));
        tell_node(n, "node-1", "kube-system/cfg");
        assert_non_null(fake_find("configmaps"));
        assert_has(n, "status/kubelet/condition",
                   UNCLEAR "failed to download ConfigMap with name cfg from namespace kube-system: no "
                           "answer yet");
        tell_configmap(n, "1", "", 41);
        assert_has(n, "kubelet.conf", "maxPods: 41\n");
        assert_has(n, "status/kubelet/assigned", "uid-cfg@1 kube-system/cfg\n");
        assert_has(n, "status/kubelet/condition", "True all checks passed: using current (UID: uid-cfg)\n");
        tell_configmap(n, "2", "", 42);
        assert_has(n, "kubelet.conf", "maxPods: 42\n");
        check_blobs(n);
}

/* Nothing is read for it, and what was merged and judged for the trial is what is followed then. */
TEST_WITH(test_an_assignment_is_merged_once, setup, teardown)
{
        struct lkg_stack_stats before, after;
        struct node *n = *state;
        const struct lkg_component *c;

        follow(n, CONFIG(""));
        c = &n->engine->components[0];
        before = *lkg_stack_stats(c->stack);
        tell_configmap(n, "2", "", 42);
        assert_has(n, "kubelet.conf", "maxPods: 42\n");
        after = *lkg_stack_stats(c->stack);
        assert_int_equal(after.n_reads, before.n_reads);
        assert_int_equal(after.n_parses, before.n_parses + 1);
        assert_int_equal(after.n_merges, before.n_merges + c->candidate->n_layers);
        put_dropin(n, "90-later.conf", "maxPods: 43\n");
        assert_int_equal(changed(n, "kubelet.conf.d/90-later.conf"), 0);
        assert_has(n, "kubelet.conf", "maxPods: 43\n");
}

TEST_WITH(test_the_first_place_that_is_set_counts, setup, teardown)
{
        struct node *n = *state;

        begin_with(n, CONFIG(", static: {namespace: kube-system, name: fixed}"));
        tell_node(n, "node-1", "kube-system/cfg");
        assert_string_equal(fake_find("configmaps")->name, "cfg");
        tell_node(n, "node-1", NULL);
        assert_string_equal(fake_find("configmaps")->name, "fixed");
        assert_has(n, "status/kubelet/remote", "reference=static kube-system/fixed/kubelet\n");
        fake_tell("nodes", "{\"metadata\":{\"name\":\"n1\",\"uid\":\"node-1\"},\"spec\":{\"configSource\":"
                           "{\"configMap\":{\"namespace\":\"kube-system\",\"name\":\"old\","
                           "\"kubeletConfigKey\":\"k\"}}}}");
        settle(n);
        assert_string_equal(fake_find("configmaps")->name, "old");
        assert_has(n, "status/kubelet/remote", "reference=nodeSpec kube-system/old/k\n");
        /* A reference that is set but invalid does not make the engine ask the next place. */
        tell_node(n, "node-1", "nonsense");
        assert_null(fake_find("configmaps"));
        assert_has(n, "status/kubelet/condition",
                   UNCLEAR "invalid NodeConfigSource, \"nonsense\" is not a reference");
}

TEST_WITH(test_what_is_not_allowed_is_never_fetched, setup, teardown)
{
        struct node *n = *state;

        follow(n, CONFIG(""));
        tell_node(n, "node-1", "default/cfg");
        assert_null(fake_find("configmaps"));
        assert_has(n, "status/kubelet/condition",
                   UNCLEAR "ConfigMap default/cfg is not one of remote.allowedSources: using current");
        assert_has(n, "kubelet.conf", "maxPods: 41\n");
}

TEST_WITH(test_allowed_sources_narrowed_by_a_reload, setup, teardown)
{
        struct node *n = *state;

        follow(n, CONFIG(""));
        fake_fail("nodes", LKG_API_UNREACHABLE, "connection refused", 1000);
        settle(n);
        assert_non_null(fake_find("configmaps"));
        put(n, "etc/config.yaml", CONFIG(", allowedSources: [other/*]"));
        lkg_engine_reload(n->engine);
        settle(n);
        assert_null(fake_find("configmaps"));
        assert_has(n, "kubelet.conf", "maxPods: 41\n");
}

TEST_WITH(test_another_key_of_the_same_object, setup, teardown)
{
        struct node *n = *state;
        struct lkg_informer *before;

        follow(n, CONFIG(""));
        before = fake_find("configmaps");
        tell_node(n, "node-1", "kube-system/cfg/gpu");
        assert_ptr_equal(fake_find("configmaps"), before);
        assert_has(n, "status/kubelet/condition",
                   "False failed to load current (UID: uid-cfg): using previous");
        assert_has(n, "kubelet.conf", "maxPods: 41\n");
        tell_node(n, "node-1", "kube-system/cfg");
        assert_ptr_equal(fake_find("configmaps"), before);
        assert_has(n, "kubelet.conf", "maxPods: 41\n");
}

TEST_WITH(test_uid_that_does_not_match, setup, teardown)
{
        struct node *n = *state;

        follow(n, CONFIG(""));
        tell_node(n, "node-1",
                  "{\\\"configMap\\\":{\\\"namespace\\\":\\\"kube-system\\\",\\\"name\\\":\\\"cfg\\\","
                  "\\\"uid\\\":\\\"other\\\"}}");
        assert_has(n, "status/kubelet/condition",
                   UNCLEAR "invalid ObjectReference, UID \"other\" does not match UID of downloaded "
                           "ConfigMap \"uid-cfg\": using current");
}

/* A node without a credential that follows version 7 of a ConfigMap in a file. */
static void follow_file(struct node *n, const char *annotations)
{
        char config[512];

        fake_reset();
        (void)snprintf(config, sizeof(config), CONFIG(", file: %s/cm"), n->top);
        put(n, "etc/config.yaml", config);
        put(n, "cm", configmap_json("cfg", "7", annotations, 47));
        start(n);
        settle(n);
        assert_has(n, "kubelet.conf", "maxPods: 47\n");
}

TEST_WITH(test_file_without_a_credential, setup, teardown)
{
        struct node *n = *state;

        follow_file(n, "");
        assert_null(fake_find("nodes"));
        assert_false(has(n, "status/kubelet/remote", "="));
        assert_has(n, "status/kubelet/findings", "[LKG7009]");
        /* One appears: the places on the Node take precedence over the file. */
        fake_credential(LKG_CREDENTIAL_NODE);
        assert_int_equal(command(n, "sync", "now"), 0);
        settle(n);
        tell_node(n, "node-1", "kube-system/cfg");
        tell_configmap(n, "9", "", 49);
        assert_has(n, "kubelet.conf", "maxPods: 49\n");
        assert_false(has(n, "status/kubelet/findings", "[LKG7009]"));
        assert_has(n, "status/kubelet/remote", "reference=nodeAnnotation kube-system/cfg/kubelet\n");
        tell_node(n, "node-1", NULL);
        turn_until(n, "kubelet.conf", "maxPods: 47\n");
        assert_has(n, "status/kubelet/remote", "reference=file\n");
}

TEST_WITH(test_rollout_is_not_for_files, setup, teardown)
{
        follow_file(*state, "\"lkgfs.io/halt\":\"true\"");
}

TEST_WITH(test_static_without_a_credential, setup, teardown)
{
        struct node *n = *state;

        fake_reset();
        put(n, "etc/config.yaml", CONFIG(", static: {namespace: kube-system, name: fixed}"));
        start(n);
        settle(n);
        assert_has(n, "status/kubelet/condition",
                   UNCLEAR "no credential for the API server was found: using ");
}

TEST_WITH(test_a_reference_that_was_asked_before_there_is_a_client, setup, teardown)
{
        struct node *n = *state;

        fake_reset();
        fake_credential(LKG_CREDENTIAL_NODE);
        put(n, "etc/config.yaml",
            CONFIG(", references: [static], static: {namespace: kube-system, name: cfg}"));
        start(n);
        lkg_engine_cycle(n->engine, /* look= */ true); /* another process was first */
        assert_false(n->engine->places->pending);
        assert_null(fake_find("configmaps"));
        settle(n);
        assert_non_null(fake_find("configmaps"));
}

/* ---- reset ---- */

TEST_WITH(test_local_and_removal_reset, setup, teardown)
{
        struct node *n = *state;

        follow(n, CONFIG(""));
        tell_node(n, "node-1", "local");
        assert_has(n, "kubelet.conf", "maxPods: 100\n");
        assert_has(n, "status/kubelet/assigned", "init\n");
        assert_null(fake_find("configmaps"));
        tell_node(n, "node-1", "kube-system/cfg");
        tell_configmap(n, "1", "", 41);
        assert_has(n, "kubelet.conf", "maxPods: 41\n");
        restart(n); /* the place of the reset is remembered */
        tell_node(n, "node-1", NULL);
        assert_has(n, "kubelet.conf", "maxPods: 100\n");
        assert_has(n, "status/kubelet/condition", "True current is set to the local default");
}

TEST_WITH(test_a_node_made_anew_says_nothing, setup, teardown)
{
        struct node *n = *state;

        follow(n, CONFIG(""));
        tell_node(n, "node-2", NULL);
        assert_has(n, "kubelet.conf", "maxPods: 41\n");
        assert_has(n, "status/kubelet/condition",
                   UNCLEAR
                   "node n1 does not say, and it is not the node that did (UID node-1): using current");
        /* If the recreated Node has the same reference, it may also withdraw it. */
        tell_node(n, "node-2", "kube-system/cfg");
        tell_configmap(n, "1", "", 41);
        assert_has(n, "status/kubelet/condition", "True all checks passed");
        restart(n);
        tell_node(n, "node-2", NULL);
        assert_has(n, "kubelet.conf", "maxPods: 100\n");
}

TEST_WITH(test_a_node_that_is_gone_changes_nothing, setup, teardown)
{
        struct node *n = *state;

        follow(n, CONFIG(""));
        fake_tell("nodes", NULL);
        settle(n);
        assert_has(n, "kubelet.conf", "maxPods: 41\n");
        assert_has(n, "status/kubelet/condition",
                   UNCLEAR "failed to read Node n1: not found: using current (UID: uid-cfg)\n");
        assert_has(n, "status/kubelet/findings", "failed to read Node n1: not found");
        tell_node(n, "node-1", "kube-system/cfg");
        assert_has(n, "status/kubelet/condition", "True all checks passed");
        assert_false(has(n, "status/kubelet/findings", "not found"));
}

/* ---- ConfigMaps and outages ---- */

TEST_WITH(test_a_configmap_that_is_gone_is_not_bad, setup, teardown)
{
        struct node *n = *state;

        follow(n, CONFIG(""));
        fake_tell("configmaps", NULL);
        settle(n);
        assert_has(n, "kubelet.conf", "maxPods: 41\n");
        assert_has(n, "status/kubelet/condition",
                   UNCLEAR "failed to download ConfigMap with name cfg from namespace kube-system: not "
                           "found: using current (UID: uid-cfg)\n");
        assert_has(n, "status/kubelet/findings", "[LKG7010]");
        assert_has(n, "status/kubelet/metrics.prom", "lkgfs_bad_configs{component=\"kubelet\"} 0\n");
        tell_configmap(n, "2", "", 42);
        assert_has(n, "kubelet.conf", "maxPods: 42\n");
}

TEST_WITH(test_hostile_objects_are_not_believed, setup, teardown)
{
        struct node *n = *state;

        follow(n, CONFIG(""));
        fake_tell("configmaps", configmap_json("cfg", "../../x", "", 1));
        settle(n);
        assert_has(n, "kubelet.conf", "maxPods: 41\n");
        assert_has(n, "status/kubelet/condition",
                   UNCLEAR "failed to download ConfigMap with name cfg from namespace kube-system: "
                           "metadata.resourceVersion \"../../x\"");
        fake_fail("configmaps", LKG_API_TOO_LARGE, "the reply has more than 3145728 bytes", 0);
        settle(n);
        assert_has(n, "status/kubelet/condition", "kube-system: the reply has more than 3145728 bytes");
        assert_has(n, "status/kubelet/metrics.prom", "lkgfs_bad_configs{component=\"kubelet\"} 0\n");
}

TEST_WITH(test_forbidden_says_what_is_missing, setup, teardown)
{
        struct node *n = *state;

        follow(n, CONFIG(""));
        fake_fail("configmaps", LKG_API_FORBIDDEN, "get configmaps kube-system/cfg is forbidden: no", 1);
        settle(n);
        assert_has(n, "kubelet.conf", "maxPods: 41\n");
        assert_has(n, "status/kubelet/condition",
                   UNCLEAR "failed to download ConfigMap with name cfg from namespace kube-system: get "
                           "configmaps kube-system/cfg is forbidden: no: using current");
        assert_has(n, "status/kubelet/findings",
                   "get configmaps kube-system/cfg is forbidden: no [LKG7005]\n");
}

TEST_WITH(test_an_outage_is_unclear_after_a_while, setup, teardown)
{
        struct node *n = *state;

        follow(n, CONFIG(""));
        fake_fail("nodes", LKG_API_UNREACHABLE, "connection refused", 290);
        fake_fail("configmaps", LKG_API_UNREACHABLE, "connection refused", 290);
        settle(n);
        assert_has(n, "status/kubelet/condition", "True all checks passed");
        assert_has(n, "status/kubelet/findings",
                   "connection refused; what is assigned goes on serving [LKG7006]");
        assert_has(n, "status/kubelet/remote", "node_mode=down\n");
        assert_has(n, "status/kubelet/remote", "node_error=connection refused\n");
        fake_fail("configmaps", LKG_API_UNREACHABLE, "connection refused", 301);
        settle(n);
        assert_has(n, "status/kubelet/condition", UNCLEAR "API server not reached since 2");
        assert_has(n, "status/kubelet/condition", "Z: connection refused: using current (UID: uid-cfg)\n");
        assert_has(n, "kubelet.conf", "maxPods: 41\n");
        tell_configmap(n, "1", "", 41);
        tell_node(n, "node-1", "kube-system/cfg");
        assert_false(has(n, "status/kubelet/findings", "[LKG7006]"));
        assert_has(n, "status/kubelet/condition", "True all checks passed");
}

TEST_WITH(test_the_timer_tells_of_an_outage, setup, teardown)
{
        struct node *n = *state;
        struct lkg_apiserver *api;

        follow(n, CONFIG(""));
        fake_fail("nodes", LKG_API_UNREACHABLE, "connection refused", 299);
        settle(n);
        assert_has(n, "status/kubelet/condition", "True all checks passed");
        api = n->engine->places->apiserver;
        api->node.failing_ns -= 2 * LKG_NSEC_PER_SEC; /* time passes */
        fake_find("nodes")->failing_ns -= 2 * LKG_NSEC_PER_SEC;
        assert_int_equal(sd_event_source_set_time(api->timer, 0), 0);
        settle(n);
        assert_has(n, "status/kubelet/condition", UNCLEAR "API server not reached since ");
}

TEST_WITH(test_a_start_without_a_server, setup, teardown)
{
        struct node *n = *state;

        follow(n, CONFIG(""));
        restart(n);
        assert_has(n, "kubelet.conf", "maxPods: 41\n");
        fake_fail("nodes", LKG_API_UNREACHABLE, "connection refused", 0);
        settle(n);
        assert_has(n, "status/kubelet/condition", UNCLEAR "API server not reached since 2");
        assert_has(n, "kubelet.conf", "maxPods: 41\n");
        tell_node(n, "node-1", "kube-system/cfg");
        tell_configmap(n, "1", "", 41);
        assert_has(n, "status/kubelet/condition", "True all checks passed");
}

/* ---- rollout ---- */

#define HALT       "\"lkgfs.io/halt\":\"true\""
#define PERCENT(p) "\"lkgfs.io/rollout-percent\":\"" p "\""

TEST_WITH(test_rollout_holds_back_what_is_new, setup, teardown)
{
        struct node *n = *state;
        char want[128];
        unsigned bucket = lkg_rollout_bucket("", "node-1");

        follow(n, CONFIG(""));
        tell_configmap(n, "2", HALT, 42);
        assert_has(n, "kubelet.conf", "maxPods: 41\n");
        assert_has(n, "status/kubelet/assigned", "uid-cfg@1 ");
        assert_has(n, "status/kubelet/condition", "True rollout halted: using current (UID: uid-cfg)\n");
        assert_has(n, "status/kubelet/metrics.prom", "lkgfs_rollout_waiting{component=\"kubelet\"} 1\n");
        tell_configmap(n, "3", PERCENT("0"), 42);
        (void)snprintf(want, sizeof(want),
                       "True waiting for the rollout: bucket %u.%03u is not below rollout-percent 0: using",
                       bucket / 1000, bucket % 1000);
        assert_has(n, "status/kubelet/condition", want);
        (void)snprintf(want, sizeof(want), "rollout_bucket=%u.%03u\n", bucket / 1000, bucket % 1000);
        assert_has(n, "status/kubelet/remote", want);
        assert_has(n, "status/kubelet/remote", "rollout=waiting\nrollout_percent=0.000\n");
        tell_configmap(n, "4", PERCENT("ten"), 42);
        assert_has(n, "status/kubelet/condition",
                   UNCLEAR "rollout unclear: annotation lkgfs.io/rollout-percent is \"ten\"; want 0 to 100");
        assert_has(n, "status/kubelet/findings", "[LKG7007]");
        assert_has(n, "kubelet.conf", "maxPods: 41\n");
        tell_configmap(n, "5", PERCENT("100"), 42);
        assert_has(n, "kubelet.conf", "maxPods: 42\n");
        assert_has(n, "status/kubelet/condition", "True all checks passed");
        assert_false(has(n, "status/kubelet/findings", "[LKG7007]"));
        assert_has(n, "status/kubelet/metrics.prom", "lkgfs_rollout_waiting{component=\"kubelet\"} 0\n");
}

TEST_WITH(test_rollout_never_holds_back_what_is_followed, setup, teardown)
{
        struct node *n = *state;

        follow(n, CONFIG(""));
        tell_configmap(n, "2", HALT, 41);
        assert_has(n, "status/kubelet/assigned", "uid-cfg@2 ");
        assert_has(n, "status/kubelet/condition", "True all checks passed");
        restart(n);
        tell_node(n, "node-1", "kube-system/cfg");
        tell_configmap(n, "2", HALT, 41);
        assert_has(n, "status/kubelet/condition", "True all checks passed");
        tell_node(n, "node-1", "local"); /* nor a reset */
        assert_has(n, "kubelet.conf", "maxPods: 100\n");
}

TEST_WITH(test_of_a_flood_of_versions_the_last_counts, setup, teardown)
{
        struct node *n = *state;
        char version[16];

        follow(n, CONFIG(""));
        for (int i = 2; i < 152; i++) {
                (void)snprintf(version, sizeof(version), "%d", i);
                tell_configmap(n, version, "", 1000 + i);
        }
        turn_until(n, "status/kubelet/assigned", "uid-cfg@151 ");
        assert_has(n, "kubelet.conf", "maxPods: 1151\n");
}

TEST_WITH(test_rollout_waits_for_the_node, setup, teardown)
{
        struct node *n = *state;

        begin_with(n, CONFIG(", references: [static], static: {namespace: kube-system, name: cfg}"));
        tell_configmap(n, "1", PERCENT("99.999"), 41);
        assert_has(n, "status/kubelet/condition",
                   "True waiting for the rollout: the Node was not read yet: using current (init)\n");
        fake_fail("nodes", LKG_API_FORBIDDEN, "get nodes n1 is forbidden", 1);
        settle(n);
        assert_has(n, "kubelet.conf", "maxPods: 41\n"); /* by its name */
}

/* ---- the way back ---- */

TEST_WITH(test_the_cluster_hears_of_it, setup, teardown)
{
        struct node *n = *state;
        unsigned before;

        begin_with(n, CONFIG(""));
        assert_int_equal(fake.n_conditions, 0); /* Unknown for a moment at every start: no event for that */
        tell_node(n, "node-1", "kube-system/cfg");
        assert_string_equal(fake.node_uid, "node-1");
        tell_configmap(n, "1", "", 41);
        assert_string_equal(fake.condition, "True all checks passed: using current (UID: uid-cfg)");
        assert_true(fake_has_event("Normal ConfigAssigned kubelet: ConfigMap kube-system/cfg, UID uid-cfg, "
                                   "resourceVersion 1"));
        assert_true(fake_has_event("Normal ConfigActivated kubelet: ConfigMap kube-system/cfg, UID uid-cfg, "
                                   "resourceVersion 1"));
        before = fake.n_conditions;
        put_dropin(n, "10-a.conf", "registryBurst: 3\n");
        assert_int_equal(changed(n, "kubelet.conf.d/10-a.conf"), 0);
        assert_int_equal(fake.n_conditions, before);
        assert_int_equal(command(n, "promote", "now"), 0);
        assert_true(fake_has_event("Normal ConfigPromoted kubelet: ConfigMap kube-system/cfg"));
        tell_configmap(n, "2", "", -5);
        assert_true(fake_has_event("Warning ConfigRejected kubelet: ConfigMap kube-system/cfg, UID uid-cfg, "
                                   "resourceVersion 2: failed to validate current (UID: uid-cfg)"));
        assert_has(n, "status/kubelet/condition", "False failed to validate current (UID: uid-cfg)");
        tell_configmap(n, "3", "", 43);
        assert_int_equal(command(n, "rollback", "lkg"), 0);
        assert_true(
                fake_has_event("Warning ConfigRolledBack kubelet: ConfigMap kube-system/cfg, UID uid-cfg, "
                               "resourceVersion 3: operator request (UID: uid-cfg)"));
        assert_has(n, "status/kubelet/metrics.prom",
                   "lkgfs_rollbacks_total{component=\"kubelet\",reason=\"operator\"} 1\n");
        assert_has(n, "status/kubelet/metrics.prom",
                   "lkgfs_rollbacks_total{component=\"kubelet\",reason=\"crash_loop\"} 0\n");
        /* It names the suspects and where they are. No Event has a value. */
        assert_true(fake_has_event("operator request (UID: uid-cfg); suspects: maxPods (remote cfg:"));
        for (size_t i = 0; i < fake.n_events; i++)
                assert_true(!strstr(fake.events[i], "41") && !strstr(fake.events[i], "43"));
}

TEST_WITH(test_not_the_nodes_own_credential, setup, teardown)
{
        struct node *n = *state;

        follow(n, CONFIG(""));
        assert_false(has(n, "status/kubelet/findings", "[LKG7008]"));
        fake.is_node = false;
        fake.refreshed = true;
        assert_int_equal(command(n, "sync", "now"), 0);
        settle(n);
        assert_has(n, "status/kubelet/findings",
                   "note: the credential is not known to be that of node n1, so neither condition nor "
                   "events are "
                   "written [LKG7008]\n");
}

/* ---- the rest ---- */

TEST_WITH(test_status_and_metrics, setup, teardown)
{
        struct node *n = *state;

        fake_reset();
        fake.identity.expires_ns = UINT64_C(1767323045) * LKG_NSEC_PER_SEC;
        fake_credential(LKG_CREDENTIAL_NODE);
        fake.counters.n_answers[LKG_API_OK] = 2;
        fake.counters.received_bytes = 4711;
        put(n, "etc/config.yaml", CONFIG(""));
        start(n);
        settle(n);
        tell_node(n, "node-1", "kube-system/cfg");
        tell_configmap(n, "1", "", 41);
        assert_has(n, "status/kubelet/remote",
                   "server=https://api.example:6443\ncredential=node /etc/kubernetes/kubelet.conf\n"
                   "user=system:node:n1\ncredential_expires=2026-01-02T03:04:05Z\nnode=n1\nnode_uid=node-1\n"
                   "reference=nodeAnnotation kube-system/cfg/kubelet\nnode_mode=watch\nnode_last_success=2");
        assert_has(n, "status/kubelet/remote", "configmap_mode=watch\n");
        assert_has(n, "status/kubelet/remote", "rollout=go\n");
        assert_has(n, "status/kubelet/remote", "reported=True\n");
        fake.reporter_words = "patch nodes/status n1 is forbidden";
        n->engine->places->apiserver->reporter->options.changed(n->engine->places->apiserver);
        settle(n);
        assert_has(n, "status/kubelet/remote", "reported=no, patch nodes/status n1 is forbidden\n");
#define METRIC(text) assert_has(n, "status/kubelet/metrics.prom", text)
        METRIC("\nlkgfs_remote_up{component=\"kubelet\",object=\"node\"} 1\n");
        METRIC("\nlkgfs_remote_up{component=\"kubelet\",object=\"configmap\"} 1\n");
        METRIC("\nlkgfs_remote_watching{component=\"kubelet\",object=\"node\"} 1\n");
        METRIC("\nlkgfs_remote_requests_total{component=\"kubelet\",code=\"ok\"} 2\n");
        METRIC("\nlkgfs_remote_received_bytes_total{component=\"kubelet\"} 4711\n");
        METRIC("\nlkgfs_credential_expiration_timestamp_seconds{component=\"kubelet\"} 1767323045\n");
        METRIC("\nlkgfs_rollout_bucket_ratio{component=\"kubelet\"} 0.");
        METRIC("\nlkgfs_rollout_allowed_ratio{component=\"kubelet\"} 1.00000\n");
        METRIC("\nlkgfs_drift_fields{component=\"kubelet\"} 0\n");
        METRIC("\nlkgfs_trial_running{component=\"kubelet\"} 1\n");
}

/* A directory where the file should be: no rename(2) onto it succeeds. */
static void block(struct node *n, const char *file)
{
        char path[256];

        (void)snprintf(path, sizeof(path), "state/dynamic/kubelet/%s", file);
        assert_true(unlink(at(n, path)) == 0 || errno == ENOENT);
        assert_int_equal(mkdir(at(n, path), 0700), 0);
        (void)snprintf(path, sizeof(path), "state/dynamic/kubelet/%s/full", file);
        put(n, path, "");
}

/* What is due and cannot be stored is tried again after a while; the loop does not turn for nothing meanwhile. */
TEST_WITH(test_a_trial_that_cannot_be_stored_waits, setup, teardown)
{
        struct node *n = *state;
        struct lkg_component *c;

        follow(n, CONFIG(""));
        c = &n->engine->components[0];
        assert_int_equal(c->dynamic->trial.state, LKG_TRIAL_RUNNING);
        c->dynamic->trial.running_since_ns = lkg_boottime_ns();
        c->dynamic->watched = false; /* the clock runs without a process */
        block(n, "trial.json");
        c->dynamic->trial_saved_ns = 0;
        lkg_engine_cycle(n->engine, /* look= */ false);
        assert_true(lkg_component_trial_deadline(c, n->engine->config) > lkg_boottime_ns());
        block(n, "pointers.json");
        c->dynamic->trial.good_ns = c->dynamic->trial.stable_ns = UINT64_MAX / 2; /* the trial is over */
        lkg_engine_cycle(n->engine, /* look= */ false);
        assert_int_equal(c->dynamic->trial.state, LKG_TRIAL_RUNNING);
        assert_true(lkg_component_trial_deadline(c, n->engine->config) > lkg_boottime_ns());
        assert_true(n->engine->clock.retry_at_ns <= lkg_boottime_ns() + LKG_RETRY_MAX_NS);
        assert_int_equal(rmdir(at(n, "state/dynamic/kubelet/pointers.json")), -1);
        assert_int_equal(unlink(at(n, "state/dynamic/kubelet/pointers.json/full")), 0);
        assert_int_equal(rmdir(at(n, "state/dynamic/kubelet/pointers.json")), 0);
        lkg_engine_cycle(n->engine, /* look= */ true);
        assert_int_equal(c->dynamic->trial.state, LKG_TRIAL_PASSED);
        assert_has(n, "status/kubelet/last-known-good", "uid-cfg@1 kube-system/cfg\n");
}

TEST_WITH(test_a_planned_restart_is_shown, setup, teardown)
{
        struct node *n = *state;

        follow(n, CONFIG(""));
        assert_has(n, "status/kubelet/remote", "restart_planned=\n");
        put(n, "runtime/facts/kubelet/new",
            "boot_id=b\nplanned_generation=2\nnot_before_ns=99999999999999999\n");
        assert_int_equal(
                renameat(n->runtime_fd, "facts/kubelet/new", n->runtime_fd, "facts/kubelet/restart-plan"),
                0);
        turn_until(n, "status/kubelet/remote", "restart_planned=2");
}

static uint64_t publication(struct node *n)
{
        return lkg_publisher_number(n->engine->publisher);
}

/* They are rendered when somebody reads them, and are no reason for a publication. */
TEST_WITH(test_figures_alone_are_no_publication, setup, teardown)
{
        struct node *n = *state;
        uint64_t before;

        follow(n, CONFIG(""));
        settle(n);
        before = publication(n);
        fake.counters.n_answers[LKG_API_OK] = 9;
        fake_find("nodes")->success_ns += LKG_NSEC_PER_SEC;
        fake_tell("nodes",
                  node_json("node-1", "kube-system/cfg")); /* a heartbeat of the kubelet: irrelevant */
        settle(n);
        assert_int_equal(sd_event_source_set_time(n->engine->places->apiserver->timer, 0), 0);
        settle(n);
        assert_int_equal(publication(n), before);
        METRIC("\nlkgfs_remote_requests_total{component=\"kubelet\",code=\"ok\"} 9\n");
}

TEST_WITH(test_sync_asks_the_server, setup, teardown)
{
        struct node *n = *state;

        follow(n, CONFIG(""));
        assert_int_equal(command(n, "sync", "now"), 0);
        assert_int_equal(fake_find("nodes")->n_fetched, 1);
        assert_int_equal(fake_find("configmaps")->n_fetched, 1);
        assert_int_equal(fake_find("nodes")->n_anew, 0);
        assert_has(n, "status/kubelet/condition", "True all checks passed");
}

TEST_WITH(test_another_identity_begins_anew, setup, teardown)
{
        struct node *n = *state;

        follow(n, CONFIG(""));
        fake.identity.serial++;
        fake.client->options.on_identity(fake.client->options.userdata);
        settle(n);
        assert_int_equal(fake_find("nodes")->n_anew, 1);
        assert_int_equal(fake_find("configmaps")->n_anew, 1);
        assert_int_equal(fake.n_kicked, 1);
}

TEST_WITH(test_an_identity_is_met_once_whoever_sees_it_first, setup, teardown)
{
        struct node *n = *state;

        follow(n, CONFIG(""));
        fake_credential(LKG_CREDENTIAL_NODE); /* another credential, found by the check once a minute */
        assert_int_equal(sd_event_source_set_time(n->engine->places->apiserver->timer, 0), 0);
        settle(n);
        assert_int_equal(fake_find("nodes")->n_anew, 1);
        assert_int_equal(fake.n_kicked, 1);
        fake.client->options.on_identity(
                fake.client->options.userdata); /* the client's check before its next request */
        settle(n);
        assert_int_equal(fake_find("nodes")->n_anew, 1);
        assert_int_equal(fake_find("configmaps")->n_anew, 1);
        assert_int_equal(fake.n_kicked, 1);
}

TEST_WITH(test_reload_of_the_settings, setup, teardown)
{
        struct node *n = *state;
        struct lkg_informer *before;

        follow(n, CONFIG(""));
        before = fake_find("nodes");
        put(n, "etc/config.yaml", CONFIG(", allowedSources: [kube-system/cfg]"));
        lkg_engine_reload(n->engine);
        settle(n);
        assert_ptr_equal(fake_find("nodes"), before); /* unchanged since the client was created */
        assert_has(n, "status/kubelet/condition", "True all checks passed");
        put(n, "etc/config.yaml", CONFIG(", pollInterval: 5s"));
        lkg_engine_reload(n->engine);
        settle(n);
        assert_int_equal(fake_find("nodes")->options.poll_interval_ns, 5 * LKG_NSEC_PER_SEC);
        assert_has(n, "kubelet.conf", "maxPods: 41\n");
        put(n, "etc/config.yaml", "apiVersion: config.lkgfs.io/v1alpha1\nkind: LkgfsConfiguration\n");
        lkg_engine_reload(n->engine);
        settle(n);
        assert_null(fake_find("nodes"));
        assert_has(n, "kubelet.conf", "maxPods: 100\n");
        put(n, "etc/config.yaml", CONFIG(""));
        lkg_engine_reload(n->engine);
        settle(n);
        assert_has(n, "kubelet.conf", "maxPods: 41\n");
        assert_non_null(fake_find("nodes"));
}

TEST_WITH(test_exec_plugin, setup, teardown)
{
        struct node *n = *state;
        const struct lkg_credential_options *options;
        struct lkg_message m;
        bool asked = false;

        follow(n, CONFIG(""));
        options = &n->engine->places->apiserver->credential->options;
        assert_int_equal(options->run_exec(options->userdata), 0);
        while (lkg_message_recv(n->supervisor[0], &m) == 1)
                asked = asked || m.type == LKG_MSG_CREDENTIAL;
        assert_true(asked);
        put(n, "runtime/credential", "{\"kind\":\"ExecCredential\"}");
        lkg_message_init(&m, LKG_MSG_CREDENTIAL);
        assert_int_equal(lkg_message_send(n->supervisor[0], &m), 0);
        turn(n, 1000);
        settle(n);
        assert_string_equal(fake.exec_text, "{\"kind\":\"ExecCredential\"}");
        assert_int_equal(access(at(n, "runtime/credential"), F_OK), -1);
        m.result = -ETIMEDOUT;
        m.text_size = 9;
        memcpy(m.text, "too slow.", 9);
        assert_int_equal(lkg_message_send(n->supervisor[0], &m), 0);
        turn(n, 1000);
        settle(n);
        assert_string_equal(fake.exec_text, "");
        assert_string_equal(fake.exec_why, "too slow.");
}

TEST_WITH(test_name_of_the_node, setup, teardown)
{
        struct node *n = *state;

        fake_reset();
        fake_credential(LKG_CREDENTIAL_NODE);
        put(n, "etc/config.yaml",
            "apiVersion: config.lkgfs.io/v1alpha1\nkind: LkgfsConfiguration\nremote: {enabled: true, "
            "nodeName: "
            "Not_A_Name}\n");
        start(n);
        settle(n);
        assert_null(fake_find("nodes"));
        assert_has(n, "status/kubelet/condition", UNCLEAR "\"Not_A_Name\" is not the name of a Node: ");
}
