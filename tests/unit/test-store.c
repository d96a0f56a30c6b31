/* SPDX-License-Identifier: Apache-2.0 */
/* The store of dynamic configuration: what is saved can be read back, and who may use it when. */
#include "unit.h"
#include "store-place.h"

/* ---- the directory ---- */

TEST_WITH(test_fresh, setup, teardown)
{
        struct place *p = *state;
        struct lkg_store_component c;
        struct lkg_pointers pointers;
        struct lkg_startups startups;
        struct lkg_bad_list bad;
        struct lkg_store store;
        struct stat st;
        char *text;

        open_both(p, &store, &c);
        text = get(p, "format");
        assert_string_equal(text, "lkgfs-state 1\n");
        free(text);
        assert_int_equal(fstatat(p->fd, "checkpoints", &st, 0), 0);
        assert_int_equal(st.st_mode & 07777, 0700);
        assert_string_equal(c.release, "");
        assert_int_equal(lkg_store_load_pointers(&c, &pointers, &p->report), 0);
        assert_true(lkg_config_source_is_local(&pointers.assigned));
        assert_true(lkg_config_source_is_local(&pointers.active));
        assert_int_equal(pointers.good.generation, 0);
        assert_string_equal(pointers.rollback.reason, "");
        assert_int_equal(lkg_store_load_startups(&c, &startups, &p->report), 0);
        assert_int_equal(startups.n_items, 0);
        assert_int_equal(lkg_store_load_bad(&c, &bad, &p->report), 0);
        assert_int_equal(bad.n_items, 0);
        assert_int_equal(take_findings(p), 0);
        close_both(&store, &c);
}

TEST_WITH(test_everything_comes_back, setup, teardown)
{
        struct place *p = *state;
        struct lkg_buf first = LKG_BUF_INIT, second = LKG_BUF_INIT;

        assert_int_equal(sample_fill(p->fd), 0);
        assert_int_equal(dump_state(p->fd, &first, &p->report), 0);
        assert_non_null(strstr(first.data, "checkpoint 0: whole 1"));
        assert_non_null(strstr(first.data, "checkpoint 1: whole 1"));
        assert_non_null(strstr(first.data, "checkpoint 2: none 0"));
        assert_non_null(strstr(first.data, "good 17 1767323045123456784 "));
        assert_non_null(
                strstr(first.data, "rollback 'current failed trial period' 1767323045123456798 3 18"));
        assert_non_null(
                strstr(first.data, "trial 1 600000000000 10 2 4711 123456 1767323045123456789 42000000007"));
        assert_non_null(strstr(first.data, "  1767323046123456789 101 5001 0 1"));
        assert_non_null(strstr(first.data, "release 'v1.36.3'"));
        assert_non_null(strstr(first.data, "document 0 \"kind: KubeletConfiguration"));
        assert_int_equal(dump_state(p->fd, &second, &p->report), 0);
        assert_string_equal(first.data, second.data);
        assert_int_equal(take_findings(p), 0);
        lkg_buf_deinit(&first);
        lkg_buf_deinit(&second);
}

TEST_WITH(test_records_are_readable, setup, teardown)
{
        struct place *p = *state;
        char *text;

        assert_int_equal(sample_fill(p->fd), 0);
        text = get(p, "dynamic/kubelet/trial.json");
        assert_string_equal(text,
                            "{\n"
                            "  \"schemaVersion\": 1,\n"
                            "  \"source\": {\"namespace\":\"kube-system\",\"name\":\"kubelet-config-0\","
                            "\"uid\":\"11111111-aaaa-4bbb-8ccc-000000000001\",\"resourceVersion\":\"100\","
                            "\"key\":\"kubelet\",\"sha256\":"
                            "\"a5c7d14233e1b487af71d59c1ab7e4032ffbe70607803d85a5b4bd6e365bd568\"},\n"
                            "  \"state\": \"running\",\n"
                            "  \"durationNs\": 600000000000,\n"
                            "  \"threshold\": 10,\n"
                            "  \"stableForNs\": 60000000000,\n"
                            "  \"priorStarts\": 2,\n"
                            "  \"lastPid\": 4711,\n"
                            "  \"lastStartTime\": 123456,\n"
                            "  \"goodNs\": 42000000007,\n"
                            "  \"stableNs\": 5000000003,\n"
                            "  \"calmNs\": 5000000005,\n"
                            "  \"awayNs\": 6000000004,\n"
                            "  \"extended\": true,\n"
                            "  \"judged\": [\"node\",\"http\"],\n"
                            "  \"bad\": [\"http\"],\n"
                            "  \"started\": \"2026-01-02T03:04:05.123456789Z\"\n"
                            "}\n");
        free(text);
        text = get(p, "dynamic/kubelet/releases/v1.36.3/startups.json");
        assert_string_equal(text, "{\n"
                                  "  \"schemaVersion\": 1,\n"
                                  "  \"boot\": \"" SAMPLE_BOOT "\",\n"
                                  "  \"starts\": [\n"
                                  "    {\"time\": \"2026-01-02T03:04:05.123456789Z\", \"pid\": 100, "
                                  "\"startTime\": 5000, \"counted\": true, \"local\": false},\n"
                                  "    {\"time\": \"2026-01-02T03:04:06.123456789Z\", \"pid\": 101, "
                                  "\"startTime\": 5001, \"counted\": false, \"local\": true},\n"
                                  "    {\"time\": \"2026-01-02T03:04:07.123456789Z\", \"pid\": 102, "
                                  "\"startTime\": 5002, \"counted\": true, \"local\": false}\n"
                                  "  ]\n"
                                  "}\n");
        free(text);
}

TEST_WITH(test_second_daemon_is_refused, setup, teardown)
{
        struct place *p = *state;
        struct lkg_store store, other;
        char pid[32];

        assert_int_equal(lkg_store_open(p->fd, &store, &p->report, &p->err), 0);
        assert_int_equal(lkg_store_open(p->fd, &other, &p->report, &p->err), -EBUSY);
        (void)snprintf(pid, sizeof(pid), "(pid %d)", (int)getpid());
        assert_non_null(strstr(p->err.message, pid));
        lkg_store_close(&store);
        assert_int_equal(lkg_store_open(p->fd, &store, &p->report, &p->err), 0);
        lkg_store_close(&store);
        put(p, "store.lock", "not a pid");
        assert_int_equal(lkg_store_open(p->fd, &store, &p->report, &p->err), 0);
        lkg_store_close(&store);
}

TEST_WITH(test_newer_format_is_not_touched, setup, teardown)
{
        static const char *const newer[] = { "lkgfs-state 2\n", "lkgfs-state 2", "lkgfs-state 10 beta\n",
                                             "lkgfs-state 99999999999999999999999\n" };
        struct place *p = *state;
        struct lkg_store store;

        for (size_t i = 0; i < LKG_ARRAY_SIZE(newer); i++) {
                char *text;

                put(p, "format", newer[i]);
                assert_int_equal(lkg_store_open(p->fd, &store, &p->report, &p->err), -EPROTO);
                text = get(p, "format");
                assert_string_equal(text, newer[i]);
                free(text);
                assert_false(exists(p, "store.lock"));
                assert_false(exists(p, "checkpoints"));
        }
        assert_int_equal(take_findings(p), 0);
}

TEST_WITH(test_directory_without_format, setup, teardown)
{
        struct place *p = *state;
        struct lkg_store store;
        char *text;

        assert_int_equal(mkdirat(p->fd, "components", 0700), 0);
        assert_int_equal(mkdirat(p->fd, "history", 0700), 0);
        put(p, "generation-next", "65\n");
        put(p, "components/kubelet.json", "{}");
        put(p, "components/.kubelet.json.77" LKG_TMP_SUFFIX, "{");
        assert_int_equal(lkg_store_open(p->fd, &store, &p->report, &p->err), 0);
        lkg_store_close(&store);
        text = get(p, "format");
        assert_string_equal(text, "lkgfs-state 1\n");
        free(text);
        assert_true(exists(p, "components/kubelet.json"));
        assert_false(exists(p, "components/.kubelet.json.77" LKG_TMP_SUFFIX));
        assert_int_equal(take_findings(p), 0);
}

TEST_WITH(test_damaged_format_is_written_anew, setup, teardown)
{
        static const char *const damaged[] = {
                "",     "lkgfs-", "lkgfs-state ", "lkgfs-state 0\n", "lkgfs-state -1", "lkgfs-state 1x\n",
                "hello"
        };
        struct place *p = *state;

        for (size_t i = 0; i < LKG_ARRAY_SIZE(damaged); i++) {
                struct lkg_store store;
                char *text;

                put(p, "format", damaged[i]);
                assert_int_equal(lkg_store_open(p->fd, &store, &p->report, &p->err), 0);
                lkg_store_close(&store);
                text = get(p, "format");
                assert_string_equal(text, "lkgfs-state 1\n");
                free(text);
                text = get(p, "format.damaged");
                assert_string_equal(text, damaged[i]);
                free(text);
                assert_string_equal(p->report.findings[0].file, "format");
                assert_int_equal(take_findings(p), 1);
        }
}

TEST_WITH(test_something_else_stands_in_a_directory_s_place, setup, teardown)
{
        struct place *p = *state;
        struct lkg_store_component c;
        struct lkg_store store;

        put(p, "checkpoints", "a file");
        assert_int_equal(symlinkat("/etc", p->fd, "dynamic"), 0);
        open_both(p, &store, &c);
        close_both(&store, &c);
        assert_int_equal(take_findings(p), 2);
        assert_true(exists(p, "checkpoints.damaged"));
        assert_true(exists(p, "dynamic.damaged"));
        assert_true(exists(p, "dynamic/kubelet/documents"));
}

TEST_WITH(test_sweep, setup, teardown)
{
        static const char *const left[] = {
                ".format.1" LKG_TMP_SUFFIX,
                "checkpoints/11111111-aaaa-4bbb-8ccc-000000000001/100/.configmap.json.1" LKG_TMP_SUFFIX,
                "dynamic/kubelet/.pointers.json.123" LKG_TMP_SUFFIX,
                "dynamic/kubelet/documents/.abc.1" LKG_TMP_SUFFIX,
                "dynamic/kubelet/releases/v1.36.3/.startups.json.9" LKG_TMP_SUFFIX,
                "dynamic/kubelet/releases/v1.36.3/bad/.x@1.9" LKG_TMP_SUFFIX,
        };
        struct place *p = *state;
        struct lkg_buf before = LKG_BUF_INIT, after = LKG_BUF_INIT;

        assert_int_equal(sample_fill(p->fd), 0);
        assert_int_equal(dump_state(p->fd, &before, &p->report), 0);
        for (size_t i = 0; i < LKG_ARRAY_SIZE(left); i++)
                put(p, left[i], "{");
        assert_int_equal(mkdirat(p->fd, "dynamic/kubelet/releases/v1.36.3/.bad" LKG_TMP_SUFFIX, 0700), 0);
        put(p, "dynamic/kubelet/releases/v1.36.3/.bad" LKG_TMP_SUFFIX "/u@1", "{}");
        assert_int_equal(dump_state(p->fd, &after, &p->report), 0);
        assert_string_equal(before.data, after.data);
        for (size_t i = 0; i < LKG_ARRAY_SIZE(left); i++)
                assert_false(exists(p, left[i]));
        assert_false(exists(p, "dynamic/kubelet/releases/v1.36.3/.bad" LKG_TMP_SUFFIX));
        assert_int_equal(take_findings(p), 0);
        lkg_buf_deinit(&before);
        lkg_buf_deinit(&after);
}

TEST_WITH(test_component_name_is_checked, setup, teardown)
{
        static const char *const names[] = { "", ".", "..", "a/b", "../x" };
        struct place *p = *state;
        struct lkg_store_component c;
        struct lkg_store store;

        assert_int_equal(lkg_store_open(p->fd, &store, &p->report, &p->err), 0);
        for (size_t i = 0; i < LKG_ARRAY_SIZE(names); i++)
                assert_int_equal(lkg_store_component_open(&store, names[i], &c, &p->report, &p->err),
                                 -EINVAL);
        lkg_store_close(&store);
}

/* ---- checkpoints ---- */

TEST_WITH(test_checkpoint_is_checked, setup, teardown)
{
        struct place *p = *state;
        struct lkg_configmap configmap;
        struct lkg_config_source source;
        struct lkg_store store;

        assert_int_equal(lkg_store_open(p->fd, &store, &p->report, &p->err), 0);
        assert_int_equal(sample_configmap(0, &configmap), 0);
        assert_int_equal(sample_source(0, &source), 0);
        assert_false(lkg_store_has_checkpoint(&store, &source));
        assert_int_equal(lkg_store_save_checkpoint(&store, &configmap, &p->err), 0);
        assert_true(lkg_store_has_checkpoint(&store, &source));
        lkg_configmap_deinit(&configmap);

        source.sha256[3] = source.sha256[3] == '0' ? '1' : '0';
        assert_int_equal(lkg_store_load_checkpoint(&store, &source, &configmap, &p->err), -EBADMSG);
        source.sha256[0] = '\0'; /* unknown: any content is accepted */
        assert_true(lkg_store_has_checkpoint(&store, &source));
        (void)snprintf(source.name, sizeof(source.name), "another");
        assert_int_equal(lkg_store_load_checkpoint(&store, &source, &configmap, &p->err), -EBADMSG);
        assert_int_equal(sample_source(1, &source), 0);
        assert_int_equal(lkg_store_load_checkpoint(&store, &source, &configmap, &p->err), -ENOENT);
        source.version[0] = '\0';
        assert_int_equal(lkg_store_load_checkpoint(&store, &source, &configmap, &p->err), -EINVAL);
        source.uid[0] = '\0';
        assert_int_equal(lkg_store_load_checkpoint(&store, &source, &configmap, &p->err), -EINVAL);
        (void)snprintf(source.uid, sizeof(source.uid), "..");
        assert_false(lkg_store_has_checkpoint(&store, &source));
        lkg_store_close(&store);
}

#define OBJECT_0 "checkpoints/11111111-aaaa-4bbb-8ccc-000000000001/100/configmap.json"

TEST_WITH(test_damaged_checkpoint_is_replaced, setup, teardown)
{
        struct place *p = *state;
        struct lkg_configmap configmap;
        struct lkg_config_source source;
        struct lkg_store store;
        struct stat first, second;
        char *text;

        assert_int_equal(lkg_store_open(p->fd, &store, &p->report, &p->err), 0);
        assert_int_equal(sample_configmap(0, &configmap), 0);
        assert_int_equal(sample_source(0, &source), 0);
        assert_int_equal(lkg_store_save_checkpoint(&store, &configmap, &p->err), 0);
        assert_int_equal(fstatat(p->fd, OBJECT_0, &first, 0), 0);
        assert_int_equal(first.st_mode & 07777, 0600);
        assert_int_equal(lkg_store_save_checkpoint(&store, &configmap, &p->err), 0);
        assert_int_equal(fstatat(p->fd, OBJECT_0, &second, 0), 0);
        assert_int_equal(first.st_ino, second.st_ino); /* an equal one is not rewritten */

        put(p, OBJECT_0, "{\"kind\":");
        assert_false(lkg_store_has_checkpoint(&store, &source));
        assert_int_equal(lkg_store_save_checkpoint(&store, &configmap, &p->err), 0);
        assert_true(lkg_store_has_checkpoint(&store, &source));
        text = get(p, OBJECT_0 ".damaged");
        assert_string_equal(text, "{\"kind\":");
        free(text);
        lkg_configmap_deinit(&configmap);
        lkg_store_close(&store);
}

TEST_WITH(test_collect_keeps_what_is_needed, setup, teardown)
{
        struct place *p = *state;
        struct lkg_config_source sources[SAMPLE_OBJECTS];
        struct lkg_store store;

        assert_int_equal(lkg_store_open(p->fd, &store, &p->report, &p->err), 0);
        for (unsigned i = 0; i < SAMPLE_OBJECTS; i++) {
                struct lkg_configmap configmap;

                assert_int_equal(sample_configmap(i, &configmap), 0);
                assert_int_equal(sample_source(i, &sources[i]), 0);
                assert_int_equal(lkg_store_save_checkpoint(&store, &configmap, &p->err), 0);
                lkg_configmap_deinit(&configmap);
        }
        put(p, "checkpoints/33333333-aaaa-4bbb-8ccc-000000000003/103/mine", "not ours");
        put(p, "checkpoints/README", "not ours");
        assert_int_equal(lkg_store_collect(&store, sources, SAMPLE_OBJECTS, &p->err), 0);
        assert_int_equal(lkg_store_collect(&store, &sources[1], 1, &p->err), 2);
        assert_false(lkg_store_has_checkpoint(&store, &sources[0]));
        assert_true(lkg_store_has_checkpoint(&store, &sources[1]));
        assert_false(exists(p, "checkpoints/22222222-aaaa-4bbb-8ccc-000000000002"));
        assert_true(exists(p, "checkpoints/33333333-aaaa-4bbb-8ccc-000000000003/103/mine"));
        assert_true(exists(p, "checkpoints/README"));
        assert_int_equal(lkg_store_collect(&store, NULL, 0, &p->err), 1);
        assert_false(exists(p, "checkpoints/11111111-aaaa-4bbb-8ccc-000000000001"));
        lkg_store_close(&store);
}

/* ---- pointers, documents ---- */

TEST_WITH(test_local_pointers, setup, teardown)
{
        struct place *p = *state;
        struct lkg_pointers none = { .assigned_ns = 5 }, back;
        struct lkg_store_component c;
        struct lkg_store store;
        char *text;

        open_both(p, &store, &c);
        assert_int_equal(lkg_store_save_pointers(&c, &none, &p->err), 0);
        text = get(p, "dynamic/kubelet/pointers.json");
        assert_string_equal(text, "{\n"
                                  "  \"schemaVersion\": 1,\n"
                                  "  \"assigned\": null,\n"
                                  "  \"assignedTime\": \"1970-01-01T00:00:00.000000005Z\",\n"
                                  "  \"active\": null,\n"
                                  "  \"lastKnownGood\": {\n"
                                  "    \"source\": null,\n"
                                  "    \"generation\": 0,\n"
                                  "    \"time\": \"1970-01-01T00:00:00Z\",\n"
                                  "    \"document\": \"\"\n"
                                  "  },\n"
                                  "  \"rollback\": null\n"
                                  "}\n");
        free(text);
        assert_int_equal(lkg_store_load_pointers(&c, &back, &p->report), 0);
        assert_memory_equal(&none, &back, sizeof(back));
        assert_int_equal(take_findings(p), 0);
        close_both(&store, &c);
}

TEST_WITH(test_documents, setup, teardown)
{
        struct place *p = *state;
        char a[LKG_SHA256_HEX], b[LKG_SHA256_HEX], d[LKG_SHA256_HEX], path[128], *text;
        struct lkg_store_component c;
        struct lkg_store store;
        size_t size;

        open_both(p, &store, &c);
        assert_int_equal(lkg_store_save_document(&c, "a: 1\n", 5, NULL, a, &p->err), 0);
        assert_int_equal(lkg_store_save_document(&c, "b: 1\n", 5, a, b, &p->err), 0);
        assert_int_equal(lkg_store_load_document(&c, a, &text, &size, &p->err),
                         0); /* kept: referenced until now */
        assert_int_equal(size, 5);
        assert_string_equal(text, "a: 1\n");
        free(text);
        assert_int_equal(lkg_store_save_document(&c, "", 0, b, d, &p->err), 0);
        assert_int_equal(lkg_store_load_document(&c, a, &text, &size, &p->err), -ENOENT);
        assert_int_equal(lkg_store_load_document(&c, d, &text, &size, &p->err), 0);
        assert_int_equal(size, 0);
        free(text);
        (void)snprintf(path, sizeof(path), "dynamic/kubelet/documents/%s", b);
        put(p, path, "b: 2\n");
        assert_int_equal(lkg_store_load_document(&c, b, &text, &size, &p->err), -EBADMSG);
        assert_int_equal(lkg_store_save_document(&c, "b: 1\n", 5, d, b, &p->err), 0);
        assert_int_equal(lkg_store_load_document(&c, b, &text, &size, &p->err), 0);
        free(text);
        assert_int_equal(lkg_store_load_document(&c, "", &text, &size, &p->err), -ENOENT);
        assert_int_equal(lkg_store_load_document(&c, "../pointers.json", &text, &size, &p->err), -ENOENT);
        close_both(&store, &c);
}

TEST_WITH(test_the_node_that_referred_is_remembered, setup, teardown)
{
        struct place *p = *state;
        struct lkg_pointers pointers = { .assigned_ns = 5, .node_uid = "u-1" }, back;
        struct lkg_store_component c;
        struct lkg_store store;
        const char *wrong =
                "{\"schemaVersion\":1,\"assigned\":null,\"assignedTime\":\"1970-01-01T00:00:05Z\","
                "\"nodeUid\":\"../x\",\"active\":null,\"lastKnownGood\":null,\"rollback\":null}";

        open_both(p, &store, &c);
        assert_int_equal(lkg_store_save_pointers(&c, &pointers, &p->err), 0);
        assert_int_equal(lkg_store_load_pointers(&c, &back, &p->report), 0);
        assert_memory_equal(&pointers, &back, sizeof(back));
        assert_int_equal(take_findings(p), 0);
        put(p, "dynamic/kubelet/pointers.json", wrong);
        assert_int_equal(lkg_store_load_pointers(&c, &back, &p->report), 0);
        assert_string_equal(back.node_uid, "");
        assert_int_equal(take_findings(p), 1);
        close_both(&store, &c);
}

TEST_WITH(test_trial_of_another_source, setup, teardown)
{
        struct place *p = *state;
        struct lkg_trial trial = sample_trial(), back;
        struct lkg_config_source mine, other, local = { .uid = "" };
        struct lkg_store_component c;
        struct lkg_store store;

        assert_int_equal(sample_source(0, &mine), 0);
        assert_int_equal(sample_source(1, &other), 0);
        open_both(p, &store, &c);
        assert_int_equal(lkg_store_load_trial(&c, &mine, &back, &p->report), 0);
        assert_int_equal(back.state, LKG_TRIAL_IDLE);
        trial.running_since_ns = 1000 * LKG_NSEC_PER_SEC;
        trial.rules.duration_ns = INT64_MAX; /* the longest possible duration */
        assert_int_equal(lkg_store_save_trial(&c, &mine, &trial, 1008 * LKG_NSEC_PER_SEC, &p->err), 0);
        assert_int_equal(lkg_store_load_trial(&c, &mine, &back, &p->report), 0);
        assert_int_equal(back.state, LKG_TRIAL_RUNNING);
        assert_int_equal(back.good_ns, 50 * LKG_NSEC_PER_SEC + 7);
        assert_int_equal(back.running_since_ns, 0);
        assert_int_equal(back.last_pid, 4711);
        assert_int_equal(back.last_start_time, 123456);
        assert_true(back.rules.duration_ns == INT64_MAX);
        assert_int_equal(lkg_store_load_trial(&c, &other, &back, &p->report), 0);
        assert_int_equal(back.state, LKG_TRIAL_IDLE);
        assert_int_equal(lkg_store_load_trial(&c, &local, &back, &p->report), 0);
        assert_int_equal(back.state, LKG_TRIAL_IDLE);
        assert_int_equal(take_findings(p), 0);
        close_both(&store, &c);
}

/* ---- releases ---- */

TEST_WITH(test_release, setup, teardown)
{
        static const struct {
                const char *text, *name;
        } rows[] = {
                { "v1.36.3", "v1.36.3" },
                { "Kubernetes v1.36.4\n", "Kubernetes-v1.36.4-" },
                { "../../etc", "-.-..-etc" },
                { "..", "-." },
                { "", "unknown" },
        };
        struct place *p = *state;
        struct lkg_store_component c;
        struct lkg_store store;

        open_both(p, &store, &c);
        for (size_t i = 0; i < LKG_ARRAY_SIZE(rows); i++) {
                char path[256];

                assert_int_equal(lkg_store_set_release(&c, rows[i].text, &p->err), 1);
                if (strncmp(c.release, rows[i].name, strlen(rows[i].name)) != 0)
                        fail_msg("%s became %s", rows[i].text, c.release);
                (void)snprintf(path, sizeof(path), "dynamic/kubelet/releases/%s/bad", c.release);
                assert_true(exists(p, path));
                assert_int_equal(lkg_store_set_release(&c, rows[i].text, &p->err), 0);
        }
        close_both(&store, &c);
        assert_int_equal(take_findings(p), 0);
}

/* Rule: docs/specification.md 4.12. */
TEST_WITH(test_another_release_judges_afresh, setup, teardown)
{
        struct place *p = *state;
        const struct lkg_bad bad = sample_bad(1);
        struct lkg_bad_list list = { .items = NULL };
        struct lkg_startups startups = sample_startups(2);
        struct lkg_store_component c;
        struct lkg_store store;

        open_both(p, &store, &c);
        assert_int_equal(lkg_store_set_release(&c, "v1.36.3", &p->err), 1);
        assert_int_equal(lkg_store_mark_bad(&c, &list, &bad, &p->err), 0);
        assert_int_equal(lkg_store_save_startups(&c, &startups, &p->err), 0);
        lkg_bad_list_deinit(&list);
        assert_int_equal(lkg_store_set_release(&c, "v1.36.4", &p->err), 1);
        assert_int_equal(lkg_store_load_bad(&c, &list, &p->report), 0);
        assert_int_equal(list.n_items, 0);
        lkg_bad_list_deinit(&list);
        assert_int_equal(lkg_store_load_startups(&c, &startups, &p->report), 0);
        assert_int_equal(startups.n_items, 0);
        close_both(&store, &c);

        open_both(p, &store, &c);
        assert_string_equal(c.release, "v1.36.4");
        assert_int_equal(lkg_store_set_release(&c, "v1.36.3", &p->err), 1);
        assert_int_equal(lkg_store_load_bad(&c, &list, &p->report), 0);
        assert_int_equal(list.n_items, 1);
        lkg_bad_list_deinit(&list);
        assert_int_equal(take_findings(p), 0);
        close_both(&store, &c);
}

static void set_time(struct place *p, const char *release, time_t seconds)
{
        const struct timespec times[2] = { { seconds, 0 }, { seconds, 0 } };
        char path[256];

        (void)snprintf(path, sizeof(path), "dynamic/kubelet/releases/%s", release);
        assert_int_equal(utimensat(p->fd, path, times, 0), 0);
}

TEST_WITH(test_releases_used_long_ago_go, setup, teardown)
{
        struct place *p = *state;
        const struct lkg_bad bad = sample_bad(1);
        struct lkg_store_component c;
        struct lkg_store store;

        open_both(p, &store, &c);
        assert_int_equal(unlinkat(p->fd, "dynamic/kubelet/releases/unknown/bad", AT_REMOVEDIR), 0);
        assert_int_equal(unlinkat(p->fd, "dynamic/kubelet/releases/unknown", AT_REMOVEDIR), 0);
        for (int i = 0; i < 7; i++) {
                struct lkg_bad_list list = { .items = NULL };
                char name[16];

                (void)snprintf(name, sizeof(name), "v1.%d", i);
                assert_int_equal(lkg_store_set_release(&c, name, &p->err), 1);
                assert_int_equal(lkg_store_mark_bad(&c, &list, &bad, &p->err), 0);
                lkg_bad_list_deinit(&list);
                set_time(p, name, i == 0 ? 2000 : 1000 + i); /* v1.0 was used later than those after it */
        }
        assert_true(exists(p, "dynamic/kubelet/releases/v1.0/bad"));
        assert_false(exists(p, "dynamic/kubelet/releases/v1.1"));
        assert_false(exists(p, "dynamic/kubelet/releases/v1.2"));
        assert_true(exists(p, "dynamic/kubelet/releases/v1.3"));
        assert_true(exists(p, "dynamic/kubelet/releases/v1.6"));
        close_both(&store, &c);

        put(p, "dynamic/kubelet/release", "../../v1.6");
        open_both(p, &store, &c);
        assert_string_equal(c.release, "v1.0"); /* the name is lost: the last one used */
        assert_string_equal(p->report.findings[0].file, "dynamic/kubelet/release");
        assert_int_equal(take_findings(p), 1);
        close_both(&store, &c);
}
