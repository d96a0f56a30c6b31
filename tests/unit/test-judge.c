/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The judge as a stack calls it: which findings a candidate gets and where, what is cached between
 * candidates, what is served. No disk: candidates are made in memory. Rule: docs/specification.md 3.5.
 */
#include "config-helpers.h"

#include <lkg/limits.h>

#include "core/schema/judge.h"
#include "tests/lib/candidate.h"

#define HEADER     "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n"
#define PROXY      "apiVersion: kubeproxy.config.k8s.io/v1alpha1\nkind: KubeProxyConfiguration\n"

#define LAYERS_MAX 4

struct stack {
        struct made_layer layers[LAYERS_MAX];
        size_t n;
        struct lkg_judge *judge;
        struct lkg_candidate candidate;
        char *said;
};

static struct lkg_judge_config plain = { .host = { .cgroup = 2, .stated = true } };

static void put_layer(struct stack *s, size_t i, enum lkg_layer_role role, const char *name,
                      const char *text)
{
        struct lkg_report report = LKG_REPORT_INIT;

        layer_free(&s->layers[i]);
        assert_int_equal(layer_decode(role, name, text, strlen(text), &report, &s->layers[i]), 0);
        lkg_report_deinit(&report);
        if (i >= s->n)
                s->n = i + 1;
}

/* Base (NULL = none) and drop-ins 1.conf, 2.conf ... */
static void set_up(struct stack *s, const struct lkg_judge_config *config, const char *base,
                   const char *dropin)
{
        *s = (struct stack){ 0 };
        s->judge = lkg_judge_new(config);
        if (base)
                put_layer(s, 0, LKG_LAYER_BASE, "base.yaml", base);
        if (dropin)
                put_layer(s, s->n, LKG_LAYER_DROPIN, "1.conf", dropin);
}

static const char *judge(struct stack *s)
{
        candidate_free(&s->candidate);
        assert_int_equal(candidate_build(s->layers, s->n, &s->candidate), 0);
        lkg_judge_candidate(&s->candidate, s->judge);
        free(s->said);
        s->said = lkg_report_format(&s->candidate.report, NULL);
        assert_non_null(s->said);
        return s->said;
}

static void tear_down(struct stack *s)
{
        candidate_free(&s->candidate);
        lkg_judge_free(s->judge);
        for (size_t i = 0; i < s->n; i++)
                layer_free(&s->layers[i]);
        free(s->said);
}

/* One field of the effective document, as JSON. */
static const char *effective(const struct stack *s, const char *path)
{
        const struct lkg_value *value;

        assert_non_null(s->candidate.effective);
        value = lkg_value_get_pointer(s->candidate.effective, path);
        return value ? json(value) : "nothing";
}

static const char *served(const struct stack *s, const char *path)
{
        const struct lkg_value *value = lkg_value_get_pointer(s->candidate.doc, path);

        return value ? json(value) : "nothing";
}

TEST(test_defaults_layers_and_flags)
{
        static const char *const words[] = { "--max-pods=7" };
        struct lkg_judge_config config = plain;
        struct stack s;

        config.flags = words;
        config.n_flags = 1;
        set_up(&s, &config, HEADER "maxPods: 5\nport: 1\n", HEADER "maxPods: 6\n");
        assert_string_equal(judge(&s), "");
        assert_string_equal(effective(&s, "maxPods"), "7");
        assert_string_equal(effective(&s, "port"), "1");
        assert_string_equal(effective(&s, "syncFrequency"), "\"1m0s\"");
        assert_string_equal(served(&s, "maxPods"), "6");
        assert_string_equal(served(&s, "syncFrequency"), "nothing");
        tear_down(&s);
}

TEST(test_findings_stand_in_their_layer)
{
        struct stack s;

        set_up(&s, &plain, HEADER "maxPods: many\n", NULL);
        assert_string_equal(judge(&s), "/e/base.yaml:3:10: error: maxPods: \"many\" is a string where an "
                                       "integer is wanted [LKG5001]\n");
        tear_down(&s);
        set_up(&s, &plain, HEADER "maxPods: 5\n", HEADER "clusterDomain: x\nmaxPods: -5\n");
        assert_string_equal(judge(&s),
                            "/e/d/1.conf:4:10: error: maxPods: -5 is out of range; it must not be negative "
                            "[LKG5030]\n");
        tear_down(&s);
}

/* Findings that do not fit into the list are counted, and the count is reported. */
TEST(test_more_errors_than_are_listed_are_counted)
{
        struct lkg_buf text = LKG_BUF_INIT;
        struct stack s;

        lkg_buf_puts(&text, HEADER "evictionHard:\n");
        for (unsigned i = 0; i < LKG_FINDINGS_MAX + 7; i++)
                lkg_buf_printf(&text, "  r%u: [x]\n", i);
        assert_false(lkg_buf_failed(&text));
        set_up(&s, &plain, text.data, NULL);
        assert_non_null(
                strstr(judge(&s), "more findings are not listed, a list has at most 1000 [LKG4000]\n"));
        assert_int_equal(s.candidate.report.n_findings, LKG_FINDINGS_MAX);
        assert_true(s.candidate.report.n_severity[LKG_ERROR] >= LKG_FINDINGS_MAX + 7);
        tear_down(&s);
        lkg_buf_deinit(&text);
}

/* Advice about many layers: only as much as can be listed is kept, and errors are listed first. */
TEST(test_advice_is_counted_where_it_is_not_kept)
{
        struct lkg_judge_config config = plain;
        struct lkg_buf text = LKG_BUF_INIT;
        size_t n_kept = 0;
        struct stack s;

        config.lint = true;
        lkg_buf_puts(&text, HEADER);
        for (unsigned i = 0; i < 600; i++)
                lkg_buf_printf(&text, "unknown%u: 1\n", i);
        assert_false(lkg_buf_failed(&text));
        set_up(&s, &config, HEADER, text.data);
        put_layer(&s, 2, LKG_LAYER_DROPIN, "2.conf", text.data);
        put_layer(&s, 3, LKG_LAYER_INSTANCE, "instance", HEADER "maxPods: -5\n");
        (void)judge(&s);
        for (size_t i = 0; i < s.judge->n_layers; i++)
                n_kept += s.judge->layers[i].lint.n_findings;
        assert_int_equal(n_kept, LKG_FINDINGS_MAX);
        assert_int_equal(s.judge->layers[1].lint.n_findings, 600);
        assert_int_equal(s.candidate.report.n_severity[LKG_WARNING], 1200);
        assert_int_equal(s.candidate.report.n_findings, LKG_FINDINGS_MAX);
        assert_true(s.candidate.report.n_severity[LKG_ERROR] > 0);
        assert_non_null(strstr(s.said, "error: "));
        assert_non_null(strstr(s.said, "more findings are not listed, a list has at most 1000 [LKG4000]\n"));
        put_layer(&s, 1, LKG_LAYER_DROPIN, "1.conf",
                  HEADER "unknown: 1\n"); /* what was only counted before is listed now */
        (void)judge(&s);
        assert_int_equal(s.judge->layers[2].lint.n_findings, 600);
        tear_down(&s);
        lkg_buf_deinit(&text);
}

/*
 * Must be readable at three in the morning: no useless advice, nothing about values that were not written by
 * the user.
 */
TEST(test_mistakes_are_said_once_and_as_they_were_written)
{
        static const char *const cases[][2] = {
                { "maxPods: x", "maxPods: \"x\" is a string where an integer is wanted [" },
                { "maxPods: '110'",
                  "maxPods: \"110\" is a string where an integer is wanted; write it without quotes [" },
                { "imageGCHighThresholdPercent: 85%",
                  "where an integer is wanted; write the number alone [" },
                { "failSwapOn: 'off'", "failSwapOn: \"off\" is a string where true or false is wanted [" },
                { "failSwapOn: 'false'", "true or false is wanted; write it without quotes [" },
                { "maxPods: [1]", "maxPods: a list where an integer is wanted [" },
                { "featureGates: NodeSwap=true",
                  "is a string where a map is wanted; write it as a map, e.g. {name: value} [" },
                { "kubeReserved: {cpu: 1}",
                  "kubeReserved.cpu: 1 is a number where a string is wanted; put it in quotes [" },
                { "evictionHard: {memory.available: 100}", "put it in quotes [" },
                { "registerWithTaints: ['a=b:NoSchedule']", "registerWithTaints[0]: \"a=b:NoSchedule\" is a "
                                                            "string where a map of fields is wanted [" },
                { "registerWithTaints: [{effect: NoSchedule}]",
                  "registerWithTaints[0].key: missing or empty; want one such as " },
                { "logging: {vmodule: [{filePattern: '', verbosity: 3}]}",
                  "logging.vmodule[0].filePattern: missing or empty; want the name of a source file " },
                { "reservedSystemCPUs: '0-3,'", "a number is missing beside a comma or hyphen" },
        };
        struct lkg_judge_config config = plain;

        config.lint = true;
        for (size_t i = 0; i < LKG_ARRAY_SIZE(cases); i++) {
                LKG_CLEANUP(lkg_freep) char *text = NULL;
                struct stack s;

                assert_true(asprintf(&text, HEADER "%s\n", cases[i][0]) > 0);
                set_up(&s, &config, text, NULL);
                if (!strstr(judge(&s), cases[i][1]))
                        fail_msg("%s: %s", cases[i][0], s.said);
                if (strchr(s.said, '\n')[1] != '\0')
                        fail_msg("%s: more than one finding: %s", cases[i][0], s.said);
                tear_down(&s);
        }
}

/* A rule between fields of two layers names both places. */
TEST(test_both_places_are_named)
{
        struct stack s;

        set_up(&s, &plain, HEADER "imageGCLowThresholdPercent: 60\n",
               HEADER "imageGCHighThresholdPercent: 50\n");
        assert_string_equal(judge(&s),
                            "/e/d/1.conf:3:30: error: imageGCHighThresholdPercent: 50 must be greater than "
                            "imageGCLowThresholdPercent 60 (/e/base.yaml:3:29) [LKG5032]\n");
        tear_down(&s);
}

TEST(test_version_that_nobody_knows_is_refused)
{
        struct stack s;

        set_up(&s, &plain, "apiVersion: kubelet.config.k8s.io/v9\nkind: KubeletConfiguration\n", NULL);
        assert_string_equal(
                judge(&s),
                "/e/base.yaml:1:13: error: apiVersion: \"kubelet.config.k8s.io/v9\" is unknown for kind "
                "KubeletConfiguration; want kubelet.config.k8s.io/v1beta1 [LKG5031]\n");
        assert_null(s.candidate.schema);
        tear_down(&s);
        set_up(&s, &plain, "apiVersion: v1\nkind: Other\n", NULL);
        assert_string_equal(judge(&s), "");
        assert_null(s.candidate.effective);
        tear_down(&s);
}

/* An unknown kind in the component's API group is refused; other kinds are ignored. */
TEST(test_kind_that_nobody_knows_is_refused)
{
        struct stack s;

        set_up(&s, &plain,
               "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguraton\nmaxPods: -5\n", NULL);
        assert_string_equal(judge(&s),
                            "/e/base.yaml:2:7: error: kind: \"KubeletConfiguraton\" is unknown in "
                            "kubelet.config.k8s.io/v1beta1; want KubeletConfiguration [LKG5031]\n");
        tear_down(&s);
        set_up(&s, &plain, "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: CredentialProviderConfig\n",
               NULL);
        assert_string_equal(judge(&s), ""); /* of that group, but not the kubelet's configuration */
        tear_down(&s);
        set_up(&s, &plain, "apiVersion: example.org/v1\nkind: KubeletConfiguraton\n", NULL);
        assert_string_equal(judge(&s), "");
        tear_down(&s);
}

/* A component with a table reads one kind; other kinds are not its documents. */
TEST(test_kind_of_another_component_is_refused)
{
        struct lkg_judge_config config = plain;
        struct stack s;

        assert_null(lkg_schema_reader("kube-scheduler"));
        config.component = lkg_schema_reader("kubelet");
        set_up(&s, &config, "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n",
               NULL);
        assert_string_equal(judge(&s),
                            "/e/base.yaml:2:7: error: kind: \"KubeSchedulerConfiguration\" of "
                            "\"kubescheduler.config.k8s.io/v1\" is not read by kubelet; "
                            "want KubeletConfiguration "
                            "of kubelet.config.k8s.io/v1beta1 (if another program reads it, name "
                            "the component otherwise, "
                            "or set its kind and apiVersion); this looks like a configuration of "
                            "kube-scheduler: it belongs to the component that reads it [LKG5031]\n");
        tear_down(&s);
        set_up(&s, &config, "apiVersion: kubelet.config.k8s.io/v1\nkind: CredentialProviderConfig\n", NULL);
        assert_non_null(strstr(judge(&s), "is not read by kubelet"));
        tear_down(&s);
        set_up(&s, &config, HEADER "maxPods: 5\n", NULL);
        assert_string_equal(judge(&s), "");
        tear_down(&s);
        config.component = lkg_schema_reader("kube-proxy");
        set_up(&s, &config, HEADER "maxPods: 5\n", NULL);
        assert_non_null(strstr(judge(&s), "is not read by kube-proxy; want KubeProxyConfiguration"));
        tear_down(&s);
}

/* Rule: docs/specification.md 3.6. */
TEST(test_value_is_served_that_one_file_would_lack)
{
        struct stack s;

        set_up(&s, &plain, HEADER "nodeStatusUpdateFrequency: 20s\n",
               HEADER "nodeStatusUpdateFrequency: 10s\n");
        assert_non_null(strstr(judge(&s), "note: nodeStatusReportFrequency: "));
        assert_non_null(strstr(s.said, "[LKG5024]"));
        assert_string_equal(effective(&s, "nodeStatusReportFrequency"), "\"20s\"");
        assert_string_equal(served(&s, "nodeStatusReportFrequency"), "\"20s\"");
        tear_down(&s);
}

TEST(test_what_is_served_explicitly_is_said_without_secrets)
{
        struct stack s;

        set_up(&s, &plain, HEADER, HEADER "STATICPODURL: https://u:s3cret@h/x?token=s3cret\n");
        assert_non_null(strstr(judge(&s), "[LKG5024]"));
        assert_null(strstr(s.said, "s3cret"));
        assert_string_equal(served(&s, "staticPodURL"), "\"https://u:s3cret@h/x?token=s3cret\"");
        tear_down(&s);
}

/* An empty list in the base is lost if there are drop-ins. */
TEST(test_empty_list_is_lost_with_drop_ins)
{
        struct stack s;

        set_up(&s, &plain, HEADER "enforceNodeAllocatable: []\n", NULL);
        (void)judge(&s);
        assert_string_equal(served(&s, "enforceNodeAllocatable"), "[]");
        tear_down(&s);
        set_up(&s, &plain, HEADER "enforceNodeAllocatable: []\n", HEADER);
        (void)judge(&s);
        assert_string_equal(effective(&s, "enforceNodeAllocatable"), "[\"pods\"]");
        assert_string_equal(served(&s, "enforceNodeAllocatable"), "[\"pods\"]");
        tear_down(&s);
}

TEST(test_without_a_base_the_flags_defaults_count)
{
        struct stack s;

        set_up(&s, &plain, NULL, HEADER "maxPods: 5\n");
        (void)judge(&s);
        assert_string_equal(effective(&s, "readOnlyPort"), "10255");
        assert_string_equal(effective(&s, "authorization.mode"), "\"AlwaysAllow\"");
        assert_string_equal(effective(&s, "evictionHard"), "nothing");
        assert_string_equal(served(&s, "authorization.mode"), "\"AlwaysAllow\"");
        tear_down(&s);
}

/*
 * In one file the setting works wherever it was written: it is not served if it has no effect in its
 * drop-in.
 */
TEST(test_eviction_defaults_of_a_drop_in_have_no_effect)
{
        static const char *const layers[][2] = {
                { "evictionHard: {memory.available: 1Gi}\n", "mergeDefaultEvictionSettings: true\n" },
                { "mergeDefaultEvictionSettings: true\n",
                  "evictionHard: {memory.available: 1Gi, imagefs.available: null, imagefs.inodesFree: null, "
                  "nodefs.available: null, nodefs.inodesFree: null}\n" },
        };
        struct stack s;

        for (size_t i = 0; i < LKG_ARRAY_SIZE(layers); i++) {
                LKG_CLEANUP(lkg_freep) char *base = NULL;
                LKG_CLEANUP(lkg_freep) char *over = NULL;

                assert_true(asprintf(&base, HEADER "%s", layers[i][0]) > 0);
                assert_true(asprintf(&over, HEADER "%s", layers[i][1]) > 0);
                set_up(&s, &plain, base, over);
                assert_non_null(strstr(judge(&s), "mergeDefaultEvictionSettings: false is served"));
                assert_string_equal(effective(&s, "evictionHard"), "{\"memory.available\":\"1Gi\"}");
                assert_string_equal(served(&s, "mergeDefaultEvictionSettings"), "false");
                tear_down(&s);
        }
        /* It has no effect here, and nothing changes. */
        set_up(&s, &plain, HEADER, HEADER "mergeDefaultEvictionSettings: true\n");
        (void)judge(&s);
        assert_string_equal(served(&s, "mergeDefaultEvictionSettings"), "true");
        assert_string_equal(effective(&s, "mergeDefaultEvictionSettings"), "true");
        tear_down(&s);
        set_up(&s, &plain, NULL, HEADER "mergeDefaultEvictionSettings: true\n");
        (void)judge(&s);
        assert_int_equal(s.candidate.report.n_severity[LKG_ERROR], 0);
        assert_string_equal(effective(&s, "evictionHard"), "nothing");
        tear_down(&s);
}

TEST(test_relative_path_of_the_base_is_made_absolute)
{
        struct stack s;

        set_up(&s, &plain, HEADER "staticPodPath: m\nvolumePluginDir: ../v\n", NULL);
        (void)judge(&s);
        assert_string_equal(effective(&s, "staticPodPath"), "\"/e/m\"");
        assert_string_equal(served(&s, "staticPodPath"), "\"/e/m\"");
        assert_string_equal(effective(&s, "volumePluginDir"), "\"/v\"");
        tear_down(&s);
}

/* Layer of one field of the effective document. */
static const char *layer_of(const struct stack *s, const char *path)
{
        const struct lkg_value *value = lkg_object_get(s->candidate.effective, path);
        const struct lkg_source *source = value ? lkg_value_source(value) : NULL;

        return source ? source->layer : "default";
}

/* A typed document has no zero values, so each has to be looked up. */
TEST(test_zero_values_come_from_where_they_were_written)
{
        static const char *const words[] = { "--streaming-connection-idle-timeout=0",
                                             "--runtime-request-timeout=0", "--runtime-request-timeout=1s" };
        struct lkg_judge_config config = plain;
        struct stack s;

        config.flags = words;
        config.n_flags = 3;
        set_up(&s, &config, HEADER "imageMaximumGCAge: 0s\nlogging: {verbosity: 0}\n",
               HEADER "shutdownGracePeriod: 0s\n");
        assert_string_equal(judge(&s), "");
        assert_string_equal(layer_of(&s, "imageMaximumGCAge"), "base base.yaml");
        assert_string_equal(layer_of(&s, "logging.verbosity"), "base base.yaml");
        assert_string_equal(layer_of(&s, "shutdownGracePeriod"), "drop-in 1.conf");
        assert_string_equal(layer_of(&s, "shutdownGracePeriodCriticalPods"), "default");
        assert_string_equal(layer_of(&s, "streamingConnectionIdleTimeout"),
                            "flag --streaming-connection-idle-timeout");
        assert_string_equal(layer_of(&s, "runtimeRequestTimeout"), "flag --runtime-request-timeout");
        tear_down(&s);
        set_up(&s, &plain, HEADER, NULL);
        assert_string_equal(judge(&s), "");
        assert_string_equal(layer_of(&s, "imageMaximumGCAge"), "default");
        assert_string_equal(layer_of(&s, "logging.verbosity"), "default");
        tear_down(&s);
}

/* --vmodule adds to the list of the document. */
TEST(test_list_that_a_flag_adds_to_is_the_flags)
{
        static const char *const words[] = { "--vmodule=b=2" };
        struct lkg_judge_config config = plain;
        struct stack s;

        config.flags = words;
        config.n_flags = 1;
        set_up(&s, &config, HEADER "logging: {vmodule: [{filePattern: a, verbosity: 3}]}\n", NULL);
        assert_string_equal(judge(&s), "");
        assert_string_equal(
                effective(&s, "logging.vmodule"),
                "[{\"filePattern\":\"a\",\"verbosity\":3},{\"filePattern\":\"b\",\"verbosity\":2}]");
        assert_string_equal(layer_of(&s, "logging.vmodule"), "flag --vmodule");
        tear_down(&s);
}

/* A flag that removes a value does not change the document. */
TEST(test_flags_do_not_change_what_is_served)
{
        static const char *const words[] = { "--authentication-token-webhook-cache-ttl=0" };
        struct lkg_judge_config config = plain;
        struct stack s;

        config.flags = words;
        config.n_flags = 1;
        set_up(&s, &config, HEADER "authentication: {webhook: {cacheTTL: 5m}}\n", NULL);
        assert_string_equal(judge(&s), "");
        assert_string_equal(effective(&s, "authentication.webhook.cacheTTL"), "\"0s\"");
        assert_string_equal(served(&s, "authentication.webhook.cacheTTL"), "\"5m\"");
        tear_down(&s);
}

/* The same document judged twice: nothing from the first time is left in it. */
TEST(test_judging_does_not_change_the_layers)
{
        struct lkg_judge_config config = plain;
        struct stack s;
        char *first;

        config.lint = true;
        set_up(&s, &config,
               HEADER "featureGates: {LoggingAlphaOptions: true}\nlogging: {options: {text: {splitStream: "
                      "true}}}\n",
               NULL);
        first = strdup(judge(&s));
        assert_non_null(strstr(first, "[LKG5025]"));
        lkg_judge_configure(s.judge, &config);
        assert_string_equal(judge(&s), first);
        free(first);
        tear_down(&s);
}

static size_t count(const char *text, const char *word)
{
        size_t n = 0;

        while ((text = strstr(text, word))) {
                text++;
                n++;
        }
        return n;
}

/* No file can express it: the component rounds what it reads, but not what it merges. */
TEST(test_fraction_of_a_drop_in_is_served_with_a_note)
{
        struct stack s;

        set_up(&s, &plain, NULL, HEADER "reservedMemory: [{numaNode: 0, limits: {memory: 1n}}]\n");
        assert_int_equal(count(judge(&s), "[LKG5028]"), 1);
        assert_int_equal(s.candidate.report.n_severity[LKG_ERROR], 0);
        put_layer(&s, 0, LKG_LAYER_DROPIN, "1.conf",
                  HEADER "reservedMemory: [{numaNode: 0, limits: {memory: 1m}}]\n");
        assert_int_equal(count(judge(&s), "[LKG5028]"), 0);
        tear_down(&s);
}

/* 1e20 of a base becomes 100E when drop-ins are merged, which the component reads as 0. */
TEST(test_quantity_that_changes_by_merging_is_served_as_merged)
{
        struct stack s;

        set_up(&s, &plain,
               HEADER "logging: {options: {json: {infoBufferSize: \"100000000000000000000\"}}}\n", NULL);
        assert_non_null(strstr(judge(&s), "[LKG5033]"));
        put_layer(&s, 1, LKG_LAYER_DROPIN, "1.conf", HEADER "maxPods: 5\n");
        assert_null(strstr(judge(&s), "[LKG5033]"));
        assert_non_null(strstr(s.said, "\"100E\" is served explicitly"));
        put_layer(&s, 0, LKG_LAYER_BASE, "base.yaml",
                  HEADER "featureGates: {LoggingAlphaOptions: true}\n"
                         "logging: {options: {json: {infoBufferSize: 1024Mi}}}\n");
        assert_null(strstr(judge(&s), "is served explicitly"));
        tear_down(&s);
}

/* ---- caching ---- */

TEST(test_unchanged_layers_are_not_linted_again)
{
        struct lkg_judge_config config = plain;
        const struct lkg_finding *kept;
        struct stack s;

        config.lint = true;
        set_up(&s, &config, HEADER, HEADER "maxPodz: 5\n");
        put_layer(&s, 2, LKG_LAYER_DROPIN, "2.conf", HEADER "portt: 5\n");
        assert_non_null(strstr(judge(&s), "maxPodz"));
        kept = s.judge->layers[1].lint.findings;
        put_layer(&s, 2, LKG_LAYER_DROPIN, "2.conf", HEADER "portx: 5\n");
        assert_non_null(strstr(judge(&s), "portx"));
        assert_null(strstr(s.said, "portt"));
        assert_non_null(strstr(s.said, "maxPodz"));
        assert_ptr_equal(s.judge->layers[1].lint.findings, kept);
        tear_down(&s);
}

TEST(test_layer_that_goes_takes_its_findings_along)
{
        struct lkg_judge_config config = plain;
        struct stack s;

        config.lint = true;
        set_up(&s, &config, HEADER, HEADER "maxPodz: 5\n");
        assert_non_null(strstr(judge(&s), "maxPodz"));
        layer_free(&s.layers[1]);
        s.n = 1;
        assert_null(strstr(judge(&s), "maxPodz"));
        assert_int_equal(s.judge->n_layers, 1);
        tear_down(&s);
}

TEST(test_another_base_is_loaded)
{
        struct stack s;

        set_up(&s, &plain, HEADER "maxPods: 5\n", HEADER "port: 1\n");
        (void)judge(&s);
        assert_string_equal(effective(&s, "maxPods"), "5");
        put_layer(&s, 0, LKG_LAYER_BASE, "base.yaml", HEADER "maxPods: 6\n");
        (void)judge(&s);
        assert_string_equal(effective(&s, "maxPods"), "6");
        assert_string_equal(effective(&s, "port"), "1");
        put_layer(&s, 0, LKG_LAYER_BASE, "base.yaml", HEADER "maxPods: x\n");
        assert_non_null(strstr(judge(&s), "maxPods: \"x\""));
        put_layer(&s, 0, LKG_LAYER_BASE, "base.yaml", HEADER "maxPods: 8\n");
        assert_string_equal(judge(&s), "");
        assert_string_equal(effective(&s, "maxPods"), "8");
        tear_down(&s);
}

/* A layer that exists but could not be read. */
static void break_layer(struct stack *s, size_t i)
{
        s->layers[i].doc = lkg_value_unref(s->layers[i].doc);
}

/* A stack with some broken layers merges only the others; the result is not served. */
static const char *judge_broken(struct stack *s)
{
        struct lkg_value *running = NULL;
        bool broken = false;

        candidate_free(&s->candidate);
        s->candidate = (struct lkg_candidate){ .refs = 1, .state = LKG_CANDIDATE_INVALID };
        s->candidate.layers = calloc(s->n + 1, sizeof(*s->candidate.layers));
        assert_non_null(s->candidate.layers);
        for (size_t i = 0; i < s->n; i++) {
                broken = broken || !s->layers[i].doc;
                running = s->layers[i].doc ? s->layers[i].doc : running;
                s->candidate.layers[s->candidate.n_layers++] = (struct lkg_layer_info){
                        .role = s->layers[i].role,
                        .name = s->layers[i].name,
                        .file = s->layers[i].file,
                        .beside = s->layers[i].file,
                        .doc = lkg_value_ref(s->layers[i].doc),
                        .whole = !broken,
                        .type = running == s->layers[i].doc ? LKG_PATCH_BASE : LKG_PATCH_MERGE,
                        .left_out = !s->layers[i].doc,
                        .cookie = (unsigned)i + 1,
                };
                if (s->layers[i].role == LKG_LAYER_BASE)
                        s->candidate.base = lkg_value_ref(running);
        }
        s->candidate.merged = lkg_value_ref(running);
        lkg_judge_candidate(&s->candidate, s->judge);
        free(s->said);
        s->said = lkg_report_format(&s->candidate.report, NULL);
        assert_non_null(s->said);
        return s->said;
}

/*
 * A broken base, no base at all, a drop-in alone: the second is judged although the first had no base
 * either.
 */
TEST(test_broken_base_is_not_an_absent_one)
{
        static const char *const wrong[][2] = { { "maxPods: -5\n", "maxPods: -5 is out of range" },
                                                { "featureGates: {Nope: true}\n",
                                                  "no feature gate \"Nope\"" } };

        for (size_t i = 0; i < LKG_ARRAY_SIZE(wrong); i++) {
                LKG_CLEANUP(lkg_freep) char *text = NULL;
                struct stack s;

                assert_true(asprintf(&text, HEADER "%s", wrong[i][0]) > 0);
                set_up(&s, &plain, HEADER, text);
                break_layer(&s, 0);
                (void)judge_broken(&s);
                assert_null(s.candidate.effective);
                layer_free(&s.layers[0]);
                s.layers[0] = s.layers[1];
                s.layers[1] = (struct made_layer){ 0 };
                s.n = 1;
                assert_non_null(strstr(judge(&s), wrong[i][1]));
                tear_down(&s);
        }
}

/* An empty patch file is no broken base: layers above it are judged. */
TEST(test_patch_that_holds_nothing_hides_no_mistake)
{
        struct lkg_layer_info idle = {
                .role = LKG_LAYER_PATCH, .name = "p", .file = "p", .beside = "p", .idle = true
        };
        struct stack s;

        set_up(&s, &plain, NULL, HEADER "maxPods: -5\n");
        assert_int_equal(candidate_build(s.layers, s.n, &s.candidate), 0);
        s.candidate.layers[1] = s.candidate.layers[0]; /* there is room for one more */
        s.candidate.layers[0] = idle;
        s.candidate.n_layers = 2;
        lkg_judge_candidate(&s.candidate, s.judge);
        assert_int_equal(s.candidate.report.n_severity[LKG_ERROR], 1);
        assert_non_null(s.candidate.effective);
        tear_down(&s);
}

TEST(test_mistake_of_the_command_line_stays_said)
{
        static const char *const words[] = { "--feature-gates=Nope=true" };
        struct lkg_judge_config config = plain;
        struct stack s;

        config.flags = words;
        config.n_flags = 1;
        set_up(&s, &config, HEADER, NULL);
        assert_non_null(strstr(judge(&s), "Nope"));
        break_layer(&s, 0);
        s.n = 2;
        put_layer(&s, 1, LKG_LAYER_DROPIN, "1.conf", HEADER);
        assert_non_null(strstr(judge_broken(&s), "Nope")); /* the flags are as wrong as before */
        tear_down(&s);
}

/* `featureGates:` without a value or with a non-map, below a gate that a later layer sets. */
TEST(test_gates_over_what_is_no_map)
{
        static const char *const values[] = { "", "null", "[]", "[1]", "\"\"", "5", "text", "true", "{}" };
        static const struct {
                enum lkg_layer_role role;
                const char *name, *gate;
        } over[] = { { LKG_LAYER_DROPIN, "1.conf", "NodeSwap" },
                     { LKG_LAYER_INSTANCE, "instance", "RotateKubeletServerCertificate" },
                     { LKG_LAYER_DROPIN, "2.conf", "AllBeta" } };
        struct lkg_judge_config config = plain;

        config.lint = true;
        for (size_t i = 0; i < LKG_ARRAY_SIZE(values); i++) {
                for (size_t k = 0; k < LKG_ARRAY_SIZE(over); k++) {
                        bool fine = i < 2 || i + 1 == LKG_ARRAY_SIZE(values);
                        char base[256], text[256];
                        struct stack s;

                        (void)snprintf(base, sizeof(base), HEADER "featureGates: %s\n", values[i]);
                        (void)snprintf(text, sizeof(text), HEADER "featureGates: {%s: true}\n",
                                       over[k].gate);
                        set_up(&s, &config, base, NULL);
                        put_layer(&s, 1, over[k].role, over[k].name, text);
                        (void)judge(&s);
                        assert_int_equal(s.candidate.report.n_severity[LKG_ERROR] > 0, !fine);
                        tear_down(&s);
                        (void)snprintf(base, sizeof(base), PROXY "featureGates: %s\n", values[i]);
                        set_up(&s, &config, base, NULL);
                        put_layer(&s, 1, over[k].role, over[k].name,
                                  PROXY "featureGates: {ContextualLogging: true}\n");
                        (void)judge(&s);
                        tear_down(&s);
                }
        }
}

TEST(test_another_kind_is_learned)
{
        struct stack s;

        set_up(&s, &plain, HEADER, NULL);
        (void)judge(&s);
        put_layer(&s, 0, LKG_LAYER_BASE, "base.yaml", PROXY);
        assert_string_equal(judge(&s), "");
        assert_string_equal(effective(&s, "configSyncPeriod"), "\"15m0s\"");
        tear_down(&s);
}

TEST(test_another_release_is_judged_by)
{
        struct lkg_judge_config config = plain;
        struct stack s;

        set_up(&s, &config, HEADER "featureGates: {AllowServiceLBStatusOnNonLB: false}\n", NULL);
        assert_non_null(strstr(judge(&s), "[LKG5014]"));
        config.release = 134;
        lkg_judge_configure(s.judge, &config);
        assert_string_equal(judge(&s), "");
        tear_down(&s);
}

/* The effective document of a generation that was served before, without its layers. */
TEST(test_effective_document_of_a_served_one)
{
        struct lkg_value *value = NULL, *broken;
        struct stack s;

        set_up(&s, &plain, HEADER "maxPods: 5\n", NULL);
        (void)judge(&s);
        value = lkg_judge_document(s.judge, s.candidate.doc);
        assert_string_equal(json(value), json(s.candidate.effective));
        lkg_value_unref(value);
        broken = doc("apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\nmaxPods: x\n");
        value = NULL;
        value = lkg_judge_document(s.judge, broken);
        assert_null(value);
        lkg_value_unref(broken);
        tear_down(&s);
}

/* The text of a right value for @node, by its default or its class. */
static const char *right_value(const struct lkg_schema_node *node)
{
        static const char *const texts[] = { [LKG_CLASS_BOOL] = "true",       [LKG_CLASS_STRING] = "\"x\"",
                                             [LKG_CLASS_INT] = "1",           [LKG_CLASS_FLOAT] = "1",
                                             [LKG_CLASS_DURATION] = "\"1m\"", [LKG_CLASS_FLUSH] = "\"5s\"",
                                             [LKG_CLASS_QUANTITY] = "\"1\"",  [LKG_CLASS_LIST] = "[]",
                                             [LKG_CLASS_MAP] = "{}",          [LKG_CLASS_STRUCT] = "{}" };

        return node->def ? json(node->def) : texts[node->class];
}

/* `base` with the field in it, whatever stands around. */
static void write_with(const char *base, const char *path, const char *value, struct lkg_buf *buf)
{
        size_t depth = 0;

        lkg_buf_reset(buf);
        lkg_buf_puts(buf, base);
        for (const char *dot; (dot = strchr(path, '.')); path = dot + 1, depth++)
                lkg_buf_printf(buf, "%*s%.*s:\n", (int)depth, "", (int)(dot - path), path);
        lkg_buf_printf(buf, "%*s%s: %s\n", (int)depth, "", path, value);
}

/* Lines of @said that are not about @path itself and that @without does not have. */
static void no_more_than(const char *said, const char *without, const char *right, const char *path)
{
        path += strspn(path, " ");
        for (const char *line = said; *line; line += strcspn(line, "\n") + 1) {
                LKG_CLEANUP(lkg_freep) char *one = strndup(line, strcspn(line, "\n"));
                const char *text = strstr(one, ": error: ");

                text = text ? text : strstr(one, ": warning: ");
                if (!text || strstr(text, path) || (strstr(without, text) && strstr(right, text)))
                        continue;
                fail_msg("%s could not be read, and then: %s", path, one);
        }
}

static void spoil(struct lkg_judge_config *config, const char *base, const char *path, const char *bad,
                  const char *good)
{
        LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf text = LKG_BUF_INIT;
        LKG_CLEANUP(lkg_freep) char *without = NULL, *right = NULL;
        struct stack s;

        set_up(&s, config, base, NULL);
        without = strdup(judge(&s));
        write_with(base, path, good, &text);
        put_layer(&s, 0, LKG_LAYER_BASE, "base.yaml", text.data);
        right = strdup(judge(&s));
        write_with(base, path, bad, &text);
        put_layer(&s, 0, LKG_LAYER_BASE, "base.yaml", text.data);
        no_more_than(judge(&s), without, right, path);
        tear_down(&s);
}

static void spoil_all(struct lkg_judge_config *config, const char *base, const struct lkg_schema_node *node)
{
        for (size_t i = 0; i < node->n_members; i++) {
                const struct lkg_schema_node *member = node->members[i];
                bool text = member->class != LKG_CLASS_LIST && member->class != LKG_CLASS_MAP;

                if (strcmp(member->name, "kind") == 0 || strcmp(member->name, "apiVersion") == 0)
                        continue;
                if (!strstr(base, member->name))
                        spoil(config, base, member->field->path, text ? "[5]" : "5", right_value(member));
                if (member->class == LKG_CLASS_STRUCT)
                        spoil_all(config, base, member);
        }
}

/* No rule uses a field that could not be read, whatever else the document says. */
TEST(test_nothing_follows_from_what_could_not_be_read)
{
        static const char *const bases[] = {
                HEADER,
                PROXY,
                HEADER "shutdownGracePeriodCriticalPods: 10s\nimageGCHighThresholdPercent: 75\n"
                       "enforceNodeAllocatable: [pods, system-reserved, kube-reserved]\n"
                       "cpuManagerPolicy: static\nmemoryManagerPolicy: Static\nsystemCgroups: /s\n"
                       "evictionSoft: {memory.available: 5%}\nimageMaximumGCAge: 1m\nport: 10248\n"
                       "enableSystemLogQuery: true\nreservedSystemCPUs: 0-1\nmaxParallelImagePulls: 5\n",
                HEADER "imageGCLowThresholdPercent: 90\nsystemReservedCgroup: /x\n"
                       "shutdownGracePeriodByPodPriority: [{priority: 1, shutdownGracePeriodSeconds: 1}]\n"
                       "cpuManagerPolicyOptions: {full-pcpus-only: \"true\"}\nserializeImagePulls: true\n",
                PROXY "mode: ipvs\nclusterCIDR: 1\ndetectLocalMode: BridgeInterface\n",
        };
        struct lkg_judge_config config = plain;

        config.lint = true;
        for (size_t i = 0; i < LKG_ARRAY_SIZE(bases); i++) {
                const struct lkg_schema *schema = NULL;

                assert_int_equal(lkg_schema_get(strncmp(bases[i], PROXY, strlen(PROXY)) == 0
                                                        ? "KubeProxyConfiguration"
                                                        : "KubeletConfiguration",
                                                NULL, 0, &schema),
                                 0);
                spoil_all(&config, bases[i], lkg_schema_root(schema));
        }
}

/* The same for gates: every one that another needs, and every one that a field needs. */
TEST(test_nothing_follows_from_a_gate_that_could_not_be_read)
{
        struct lkg_judge_config config = plain;

        for (size_t i = 0; i < lkg_n_gate_needs; i++) {
                LKG_CLEANUP(lkg_freep) char *base = NULL, *path = NULL;

                if (!lkg_gate_settable(lkg_gate_needs[i].name, true, LKG_RELEASE_MAX) ||
                    !lkg_gate_settable(lkg_gate_needs[i].needs, true, LKG_RELEASE_MAX))
                        continue;
                assert_true(
                        asprintf(&base,
                                 HEADER
                                 "memoryReservationPolicy: TieredReservation\nfeatureGates:\n %s: true\n",
                                 lkg_gate_needs[i].name) > 0);
                assert_true(asprintf(&path, " %s", lkg_gate_needs[i].needs) > 0);
                spoil(&config, base, path, "\"true\"", "true");
        }
        spoil(&config, HEADER "memoryReservationPolicy: TieredReservation\n", "featureGates.MemoryQoS",
              "[1]", "true");
}

/* A component of a release without tables: what the nearest release knows is judged, and no gate refuses a document. */
TEST(test_releases_without_tables)
{
        static const struct {
                unsigned release;
                const char *gates;
                size_t n_errors, n_warnings;
        } rows[] = {
                { 138, "{FromTheFuture: true, SidecarContainers: true, NodeSwap: false}", 0, 3 },
                { 137, "{FromTheFuture: true, SidecarContainers: true, NodeSwap: false}", 3, 0 },
                { 132, "{APIListChunking: true}", 0, 1 },
                { 133, "{APIListChunking: true}", 1, 0 },
                { 138, "{UserNamespacesHostNetworkSupport: true, UserNamespacesSupport: false}", 0, 1 },
        };
        struct lkg_judge_config config = plain;
        struct stack s;

        for (size_t i = 0; i < LKG_ARRAY_SIZE(rows); i++) {
                char base[256];

                config.release = rows[i].release;
                (void)snprintf(base, sizeof(base), HEADER "featureGates: %s\n", rows[i].gates);
                set_up(&s, &config, base, NULL);
                (void)judge(&s);
                assert_int_equal(s.candidate.report.n_severity[LKG_ERROR], rows[i].n_errors);
                assert_int_equal(s.candidate.report.n_severity[LKG_WARNING], rows[i].n_warnings);
                tear_down(&s);
        }
        config.release = 138;
        set_up(&s, &config, HEADER "maxPods: -1\nfieldOfNext: 1\n", NULL);
        (void)judge(&s);
        assert_int_equal(s.candidate.report.n_severity[LKG_ERROR], 1); /* a rule that is known counts */
        tear_down(&s);
}

/* What could be read is judged as before: in its own layer, and where a later one says something right. */
TEST(test_a_later_layer_makes_up_for_what_could_not_be_read)
{
        struct stack s;

        set_up(&s, &plain, HEADER "shutdownGracePeriod: 30s,\n",
               HEADER "shutdownGracePeriod: 5s\nshutdownGracePeriodCriticalPods: 10s\nmaxPods: -1\n");
        assert_non_null(strstr(judge(&s), "shutdownGracePeriodCriticalPods: \"10s\" must not be more than"));
        assert_non_null(strstr(s.said, "maxPods: -1 is out of range"));
        tear_down(&s);
}
