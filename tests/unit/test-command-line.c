/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A component's command line on top of its document: pflag's grammar, every type of flag, what is never
 * shown. Rule: docs/specification.md 3.5.
 */
#include "schema-helpers.h"

#include "core/schema/command-line.h"

#define WORDS(...) ((const char *const[]){ __VA_ARGS__ })

static bool observed;          /* how parsed() treats the words */
static unsigned release, runs; /* of the component; 0 = the latest */

/* The result of applying @words to @text, a typed document: JSON, or the findings. */
static const char *parsed(const char *kind, const char *text, const char *const *words, size_t n)
{
        static char *kept;
        struct lkg_command_line line = { words, n, observed, runs };
        struct lkg_report report = LKG_REPORT_INIT;
        const struct lkg_schema *schema = NULL;
        struct lkg_value *object = flow(text, 0);
        const char *ret;
        int r;

        assert_int_equal(lkg_schema_get(kind, NULL, release, &schema), 0);
        r = lkg_flags_apply(schema, &line, object, NULL, &report);
        assert_int_equal(r, report.n_severity[LKG_ERROR] > 0 ? -EBADMSG : 0);
        free(kept);
        kept = lkg_report_format(&report, NULL);
        ret = r == 0 && !*kept ? json(object) : kept;
        lkg_value_unref(object);
        lkg_report_deinit(&report);
        return ret;
}

#define KUBELET(text, ...) \
        parsed("KubeletConfiguration", text, WORDS(__VA_ARGS__), sizeof(WORDS(__VA_ARGS__)) / sizeof(char *))
#define PROXY(text, ...)                                           \
        parsed("KubeProxyConfiguration", text, WORDS(__VA_ARGS__), \
               sizeof(WORDS(__VA_ARGS__)) / sizeof(char *))

TEST(test_ways_to_write_a_flag)
{
        assert_string_equal(KUBELET("{}", "--max-pods=5"), "{\"maxPods\":5}");
        assert_string_equal(KUBELET("{}", "--max-pods", "5"), "{\"maxPods\":5}");
        assert_string_equal(KUBELET("{}", "--max_pods=5"), "{\"maxPods\":5}");
        assert_string_equal(KUBELET("{}", "--max-pods=5", "--max-pods=6"), "{\"maxPods\":6}");
        assert_string_equal(KUBELET("{}", "-v2"), "{\"logging\":{\"verbosity\":2}}");
        assert_string_equal(KUBELET("{}", "-v=2"), "{\"logging\":{\"verbosity\":2}}");
        assert_string_equal(KUBELET("{}", "-v", "2"), "{\"logging\":{\"verbosity\":2}}");
        assert_string_equal(KUBELET("{}", "--v=2"), "{\"logging\":{\"verbosity\":2}}");
        assert_string_equal(KUBELET("{}", "--max-pods=5", "--"), "{\"maxPods\":5}");
}

TEST(test_grammar_errors)
{
        assert_string_equal(
                KUBELET("{}", "--max-pod=5"),
                "error: no flag \"max-pod\" in 1.37, and the component does not start with it; did you mean "
                "--max-pods? [LKG5020]\n");
        assert_string_equal(KUBELET("{}", "--max-pods"), "error: --max-pods needs a value [LKG5020]\n");
        assert_string_equal(KUBELET("{}", "five"),
                            "error: word 1 of the command line is not a flag, and the "
                            "component takes no other words [LKG5020]\n");
        assert_non_null(strstr(KUBELET("{}", "---max-pods=5"), "is not a flag"));
        assert_non_null(strstr(KUBELET("{}", "--=5"), "is not a flag"));
        assert_non_null(strstr(KUBELET("{}", "-x"), "no flag \"x\""));
        assert_non_null(strstr(KUBELET("{}", "-max-pods=5"), "no flag \"m\""));
        assert_non_null(strstr(KUBELET("{}", "-v"), "--v needs a value"));
}

/* Both components refuse any other word, including flags after `--`. */
TEST(test_words_behind_two_hyphens_are_refused)
{
        assert_non_null(strstr(KUBELET("{}", "--max-pods=5", "--", "--max-pods=6"), "word 3 of"));
        assert_non_null(strstr(PROXY("{}", "--", "foo"), "word 2 of"));
        assert_non_null(strstr(KUBELET("{}", "--", "--"), "word 2 of"));
}

/* A misplaced word may be the value of a flag, and so a credential. */
TEST(test_stray_words_are_never_shown)
{
        static const char *const lines[][3] = {
                { "hunter2", "--max-pods=5", "-" },   { "--tokn", "hunter2", "hunter2" },
                { "--tokn=hunter2", "hunter2", "x" }, { "--", "hunter2", "--hunter2" },
                { "---hunter2", "--=hunter2", "x" },  { "--max-pods", "5", "hunter2" },
                { "-xhunter2", "-x=hunter2", "x" },   { "--fail-swap-on", "hunter2", "-v=1" },
        };

        for (size_t i = 0; i < LKG_ARRAY_SIZE(lines); i++) {
                for (size_t k = 0; k < 2; k++) {
                        observed = k > 0;
                        assert_null(strstr(parsed("KubeletConfiguration", "{}", lines[i], 3), "hunter2"));
                        assert_non_null(
                                strstr(parsed("KubeletConfiguration", "{}", lines[i], 3), "LKG5020"));
                }
        }
        observed = false;
        /* the value of an unknown flag is not a second mistake */
        assert_string_equal(KUBELET("{}", "--zzz", "hunter2"),
                            "error: no flag \"zzz\" in 1.37, and the component does not start with it "
                            "[LKG5020]\n");
}

/* A running process's command line is no reason to refuse a document: wrong flags are ignored. */
TEST(test_an_observed_line_only_warns)
{
        static const char *const words[] = {
                "server", "--data-dir", "/x", "--max-pods=x", "--feature-gates=Nonsense=true,NodeSwap=true",
                "--v=2",
        };
        struct lkg_command_line line = { words, LKG_ARRAY_SIZE(words), true };
        struct lkg_report report = LKG_REPORT_INIT;
        const struct lkg_schema *schema = NULL;
        struct lkg_value *object = flow("{maxPods: 5}", 0);

        assert_int_equal(lkg_schema_get("KubeletConfiguration", NULL, 0, &schema), 0);
        assert_int_equal(lkg_flags_apply(schema, &line, object, NULL, &report), 0);
        assert_string_equal(
                json(object),
                "{\"featureGates\":{\"NodeSwap\":true},\"logging\":{\"verbosity\":2},\"maxPods\":5}");
        assert_int_equal(report.n_severity[LKG_ERROR], 0);
        assert_int_equal(report.n_severity[LKG_WARNING], 4);
        lkg_value_unref(object);
        lkg_report_deinit(&report);
}

TEST(test_bool)
{
        assert_string_equal(KUBELET("{}", "--fail-swap-on"), "{\"failSwapOn\":true}");
        assert_string_equal(KUBELET("{}", "--fail-swap-on=F"), "{\"failSwapOn\":false}");
        assert_string_equal(KUBELET("{protectKernelDefaults: true}", "--protect-kernel-defaults=0"), "{}");
        assert_non_null(strstr(KUBELET("{}", "--fail-swap-on=yes"), "--fail-swap-on: \"yes\""));
        /* the next word is not its value */
        assert_non_null(strstr(KUBELET("{}", "--fail-swap-on", "false"),
                               "word 2 of the command line is not a flag"));
}

TEST(test_integers)
{
        assert_string_equal(KUBELET("{}", "--max-pods=0x10"), "{\"maxPods\":16}");
        assert_string_equal(KUBELET("{}", "--max-pods=010"), "{\"maxPods\":8}");
        assert_string_equal(KUBELET("{maxPods: 5}", "--max-pods=0"), "{}");
        assert_non_null(strstr(KUBELET("{}", "--max-pods=2147483648"), "--max-pods: \"2147483648\""));
        assert_string_equal(KUBELET("{}", "--max-open-files=2147483648"), "{\"maxOpenFiles\":2147483648}");
        assert_non_null(strstr(KUBELET("{}", "--v=-1"), "--v: \"-1\""));
        assert_non_null(strstr(KUBELET("{}", "--v=0x1"), "--v: \"0x1\""));
}

TEST(test_durations_and_quantities)
{
        assert_string_equal(KUBELET("{}", "--sync-frequency=90s"), "{\"syncFrequency\":\"1m30s\"}");
        assert_string_equal(KUBELET("{syncFrequency: 1s}", "--sync-frequency=0"), "{}");
        assert_non_null(strstr(KUBELET("{}", "--sync-frequency=90"), "--sync-frequency: \"90\""));
        assert_string_equal(KUBELET("{}", "--log-text-info-buffer-size=1.5Gi"),
                            "{\"logging\":{\"options\":{\"text\":{\"infoBufferSize\":\"1.5Gi\"}}}}");
        assert_non_null(strstr(KUBELET("{}", "--log-text-info-buffer-size=x"),
                               "--log-text-info-buffer-size: \"x\""));
}

TEST(test_addresses)
{
        assert_string_equal(KUBELET("{address: '::'}", "--address=10.0.0.1"), "{\"address\":\"10.0.0.1\"}");
        assert_string_equal(KUBELET("{address: '::'}", "--address="), "{\"address\":\"::\"}");
        assert_non_null(strstr(KUBELET("{}", "--address=x"), "--address: \"x\""));
}

/* Upstream's setters drop the field if they get an empty value, and cannot set it again. */
TEST(test_value_after_an_empty_one_is_refused)
{
        assert_non_null(strstr(KUBELET("{}", "--address=", "--address=10.0.0.1"), "after an empty one"));
        assert_string_equal(KUBELET("{}", "--address=10.0.0.1", "--address=", "--address="),
                            "{\"address\":\"10.0.0.1\"}");
        assert_non_null(
                strstr(KUBELET("{}", "--reserved-memory=", "--reserved-memory="), "after an empty one"));
        assert_non_null(strstr(KUBELET("{}", "--reserved-memory=", "--reserved-memory=0:memory=1Gi"),
                               "after an empty one"));
}

TEST(test_lists_and_maps_replace_the_documents)
{
        assert_string_equal(KUBELET("{clusterDNS: [a]}", "--cluster-dns=b,c", "--cluster-dns=d"),
                            "{\"clusterDNS\":[\"b\",\"c\",\"d\"]}");
        assert_string_equal(KUBELET("{systemReserved: {cpu: 1}}", "--system-reserved=memory=1Gi",
                                    "--system-reserved=pid=5"),
                            "{\"systemReserved\":{\"memory\":\"1Gi\",\"pid\":\"5\"}}");
        assert_string_equal(KUBELET("{evictionHard: {a: b}}", "--eviction-hard=memory.available<1Gi"),
                            "{\"evictionHard\":{\"memory.available\":\"1Gi\"}}");
        assert_non_null(strstr(KUBELET("{}", "--eviction-hard=memory.available=1Gi"), "--eviction-hard"));
        assert_non_null(strstr(KUBELET("{}", "--system-reserved=cpu"), "--system-reserved: \"cpu\""));
}

/* Each row: one use of a flag with several values, and what it makes of a document without the field. */
TEST(test_texts_with_several_values)
{
        static const struct {
                const char *word, *want; /* NULL: refused */
        } rows[] = {
                { "--cluster-dns=", "{\"clusterDNS\":[]}" },
                { "--cluster-dns=a,", "{\"clusterDNS\":[\"a\",\"\"]}" },
                { "--cluster-dns=,", "{\"clusterDNS\":[\"\",\"\"]}" },
                { "--cluster-dns= a ,b", "{\"clusterDNS\":[\" a \",\"b\"]}" },
                { "--cluster-dns=\"a,b\",c", "{\"clusterDNS\":[\"a,b\",\"c\"]}" },
                { "--cluster-dns=\"a\"\"b\"", "{\"clusterDNS\":[\"a\\\"b\"]}" },
                { "--cluster-dns=\"\"", "{\"clusterDNS\":[\"\"]}" },
                { "--cluster-dns=a\nb", "{\"clusterDNS\":[\"a\"]}" },
                { "--cluster-dns=\r\n\na\r\nb", "{\"clusterDNS\":[\"a\"]}" },
                { "--cluster-dns=\"a\r\nb\",c", "{\"clusterDNS\":[\"a\\nb\",\"c\"]}" },
                { "--cluster-dns=a\r", "{\"clusterDNS\":[\"a\"]}" },
                { "--cluster-dns=\"a\"\r\n", "{\"clusterDNS\":[\"a\"]}" },
                { "--cluster-dns=\n", NULL },
                { "--cluster-dns=\r", NULL },
                { "--cluster-dns=a\"b", NULL },
                { "--cluster-dns=\"a\"b", NULL },
                { "--cluster-dns=\"a", NULL },
                { "--cluster-dns=\"a\n", NULL },
                { "--system-reserved=,,", "{\"systemReserved\":{}}" },
                { "--system-reserved= a = b ,\302\240c=", "{\"systemReserved\":{\"a\":\"b\",\"c\":\"\"}}" },
                { "--system-reserved=a=b=c", "{\"systemReserved\":{\"a\":\"b=c\"}}" },
                { "--system-reserved==", "{\"systemReserved\":{\"\":\"\"}}" },
                { "--system-reserved=a=b,a=c", "{\"systemReserved\":{\"a\":\"c\"}}" },
                { "--system-reserved=a=b,c", NULL },
                { "--system-reserved= ", NULL },
                { "--cpu-manager-policy-options=a=b,c=d",
                  "{\"cpuManagerPolicyOptions\":{\"a\":\"b,c=d\"}}" },
                { "--cpu-manager-policy-options=", NULL },
                { "--cpu-manager-policy-options=a", NULL },
                { "--feature-gates=A=true, B = F", "{\"featureGates\":{\"A\":true,\"B\":false}}" },
                { "--feature-gates=", "{\"featureGates\":{}}" },
                { "--feature-gates=A", NULL },
                { "--feature-gates=A=yes", NULL },
                { "--vmodule=", "{\"logging\":{\"vmodule\":[]}}" },
                { "--vmodule= a=1,b*=2147483647,", "{\"logging\":{\"vmodule\":[{\"filePattern\":\" "
                                                   "a\",\"verbosity\":1},{\"filePattern\":\"b*\","
                                                   "\"verbosity\":2147483647}]}}" },
                { "--vmodule=a=2147483648", NULL },
                { "--vmodule=a=-1", NULL },
                { "--vmodule=a= 1", NULL },
                { "--vmodule=a=", NULL },
                { "--vmodule==1", NULL },
                { "--vmodule=a=1=2", NULL },
                { "--reserved-memory=0:memory=1Gi,hugepages-2Mi=1024Mi;1:memory=01",
                  "{\"reservedMemory\":[{\"limits\":{\"hugepages-2Mi\":\"1Gi\",\"memory\":\"1Gi\"}},{"
                  "\"limits\":{"
                  "\"memory\":\"01\"},\"numaNode\":1}]}" },
                { "--reserved-memory=0:memory=1;0:memory=2,memory=3",
                  "{\"reservedMemory\":[{\"limits\":{\"memory\":\"1\"}},{\"limits\":{\"memory\":\"3\"}}]}" },
                { "--reserved-memory=4294967297:hugepages-=1", /* 32 bits of the number are kept */
                  "{\"reservedMemory\":[{\"limits\":{\"hugepages-\":\"1\"},\"numaNode\":1}]}" },
                { "--reserved-memory=0:", NULL },
                { "--reserved-memory=0", NULL },
                { "--reserved-memory=0:memory", NULL },
                { "--reserved-memory=0:memory=1;", NULL },
                { "--reserved-memory=0:memory=1=2", NULL },
                { "--reserved-memory=0:1:memory=1", NULL },
                { "--reserved-memory=x:memory=1", NULL },
                { "--reserved-memory=0:memory= 1", NULL },
                { "--reserved-memory=0:memory=1234567890123456789012Gx", NULL },
                { "--register-with-taints=", "{\"registerWithTaints\":[]}" },
                { "--register-with-taints=a=:NoSchedule",
                  "{\"registerWithTaints\":[{\"effect\":\"NoSchedule\",\"key\":\"a\"}]}" },
                { "--register-with-taints=a=b:NoSchedule,a=b:PreferNoSchedule",
                  "{\"registerWithTaints\":[{\"effect\":\"NoSchedule\",\"key\":\"a\",\"value\":\"b\"},"
                  "{\"effect\":\"PreferNoSchedule\",\"key\":\"a\",\"value\":\"b\"}]}" },
                { "--register-with-taints=ab:NoSchedule,a:NoSchedule",
                  "{\"registerWithTaints\":[{\"effect\":\"NoSchedule\",\"key\":\"ab\"},{\"effect\":"
                  "\"NoSchedule\",\"key\":\"a\"}]}" },
                { "--register-with-taints=a:NoSchedule-,b-,a:NoSchedule", /* keys that end in - are left out */
                  "{\"registerWithTaints\":[{\"effect\":\"NoSchedule\",\"key\":\"a\"}]}" },
                { "--register-with-taints=a=b:NoSchedule,a=c:NoSchedule", NULL },
                { "--register-with-taints=a:NoSchedule,a=c:NoSchedule", NULL },
                { "--register-with-taints=a", NULL },
                { "--register-with-taints=a=b", NULL },
                { "--register-with-taints=a:", NULL },
                { "--register-with-taints=a:noSchedule", NULL },
                { "--register-with-taints=a=b c:NoSchedule", NULL },
                { "--register-with-taints=a:b:NoSchedule", NULL },
                { "--register-with-taints=a=b=c:NoSchedule", NULL },
                { "--register-with-taints=a:NoSchedule,", NULL },
                { "--register-with-taints=-", NULL },
        };

        for (size_t i = 0; i < LKG_ARRAY_SIZE(rows); i++) {
                if (rows[i].want)
                        assert_string_equal(KUBELET("{}", rows[i].word), rows[i].want);
                else
                        assert_non_null(strstr(KUBELET("{}", rows[i].word), "LKG5020"));
        }
        assert_non_null(
                strstr(KUBELET("{}", "--system-reserved= "), "\" \" is not a pair; want name=value"));
        assert_non_null(
                strstr(KUBELET("{}", "--feature-gates=PodLifecycleSleepActionAllowZero=x"),
                       "the value of \"PodLifecycleSleepActionAllowZero\" is not a boolean; want true or "
                       "false"));
        assert_non_null(strstr(KUBELET("{}", "--register-with-taints=a:x"), "unknown effect \"x\""));
        assert_non_null(strstr(KUBELET("{}", "--register-with-taints=:NoExecute"), "wrong key: empty"));
}

TEST(test_feature_gates_are_per_key)
{
        assert_string_equal(KUBELET("{featureGates: {A: true, B: true}}", "--feature-gates=B=false,C=true"),
                            "{\"featureGates\":{\"A\":true,\"B\":false,\"C\":true}}");
        assert_non_null(strstr(KUBELET("{}", "--feature-gates=A=maybe"), "--feature-gates"));
}

TEST(test_taints_and_reservations)
{
        assert_string_equal(
                KUBELET("{}", "--register-with-taints=a=b:NoSchedule,c:NoExecute"),
                "{\"registerWithTaints\":[{\"effect\":\"NoSchedule\",\"key\":\"a\",\"value\":\"b\"},"
                "{\"effect\":\"NoExecute\",\"key\":\"c\"}]}");
        assert_non_null(strstr(KUBELET("{}", "--register-with-taints=a=b:x"), "--register-with-taints"));
        assert_string_equal(
                KUBELET("{}", "--reserved-memory=0:memory=1Gi,hugepages-2Mi=4Mi;1:memory=2Gi"),
                "{\"reservedMemory\":[{\"limits\":{\"hugepages-2Mi\":\"4Mi\",\"memory\":\"1Gi\"}},"
                "{\"limits\":{\"memory\":\"2Gi\"},\"numaNode\":1}]}");
        assert_non_null(strstr(KUBELET("{}", "--reserved-memory=0:cpu=1"), "--reserved-memory"));
}

/* The kubelet appends these to what its document has. */
/*
 * component-base, TimeOrMetaDuration: the form that the document used is kept, even after a zero in between.
 */
TEST(test_flush_frequency_stays_an_integer)
{
        static const char integer[] = "{logging: {flushFrequency: -5}}";

        assert_string_equal(KUBELET(integer, "--log_flush_frequency=720h"),
                            "{\"logging\":{\"flushFrequency\":2592000000000000}}");
        assert_string_equal(KUBELET(integer, "--log-flush-frequency=0s", "--log_flush_frequency=8s"),
                            "{\"logging\":{\"flushFrequency\":8000000000}}");
        assert_string_equal(KUBELET("{logging: {flushFrequency: 5s}}", "--log-flush-frequency=720h"),
                            "{\"logging\":{\"flushFrequency\":\"720h0m0s\"}}");
        assert_string_equal(KUBELET("{}", "--log-flush-frequency=8s"),
                            "{\"logging\":{\"flushFrequency\":\"8s\"}}");
        assert_string_equal(KUBELET("{}", "--log-flush-frequency=0"),
                            "{\"logging\":{\"flushFrequency\":\"0s\"}}");
        assert_string_equal(KUBELET("{logging: {flushFrequency: 5s}}", "--log-flush-frequency=0h"),
                            "{\"logging\":{\"flushFrequency\":\"0s\"}}");
        assert_string_equal(KUBELET("{}", "--log-flush-frequency=0s", "--log-flush-frequency=8s"),
                            "{\"logging\":{\"flushFrequency\":\"8s\"}}");
        assert_string_equal(KUBELET(integer, "--log-flush-frequency=0s"), "{\"logging\":{}}");
        assert_string_equal(KUBELET("{syncFrequency: 5s}", "--sync-frequency=8s"),
                            "{\"syncFrequency\":\"8s\"}");
}

/* kube-proxy reads its document after its flags, so the document's values come last. */
TEST(test_vmodule_of_kube_proxy_comes_first)
{
        assert_string_equal(
                PROXY("{logging: {vmodule: [{filePattern: a, verbosity: 1}]}}", "--vmodule=b=2",
                      "--vmodule=c=3"),
                "{\"logging\":{\"vmodule\":[{\"filePattern\":\"b\",\"verbosity\":2},{\"filePattern\":\"c\","
                "\"verbosity\":3},{\"filePattern\":\"a\",\"verbosity\":1}]}}");
        assert_string_equal(PROXY("{logging: {vmodule: [{filePattern: a, verbosity: 1}]}}", "--v=0"),
                            "{\"logging\":{\"vmodule\":[{\"filePattern\":\"a\",\"verbosity\":1}]}}");
}

TEST(test_vmodule_adds_up)
{
        assert_string_equal(
                KUBELET("{logging: {vmodule: [{filePattern: a, verbosity: 1}]}}", "--vmodule=b=2"),
                "{\"logging\":{\"vmodule\":[{\"filePattern\":\"a\",\"verbosity\":1},{\"filePattern\":\"b\","
                "\"verbosity\":2}]}}");
        assert_non_null(strstr(KUBELET("{}", "--vmodule=b"), "--vmodule"));
}

TEST(test_node_labels)
{
        assert_string_equal(
                KUBELET("{}", "--node-labels=a=b, c = d,e,node.kubernetes.io/x=y,kubernetes.io/os=linux,,"),
                "{}");
        assert_non_null(strstr(KUBELET("{}", "--node-labels=kubernetes.io/x=y"), "may not set"));
        assert_non_null(strstr(KUBELET("{}", "--node-labels=x.k8s.io/y=z"), "may not set"));
        assert_string_equal(KUBELET("{}", "--node-labels=x-k8s.io/y=z"), "{}");
        assert_non_null(strstr(KUBELET("{}", "--node-labels=node-role.kubernetes.io/control-plane="),
                               "\"node-role.kubernetes.io/control-plane\" is a label"));
        assert_non_null(strstr(KUBELET("{}", "--node-labels=A b=c"), "label \"A b\""));
        assert_non_null(strstr(KUBELET("{}", "--node-labels=a=-x"), "label \"a\""));
}

TEST(test_headers_and_their_values_are_not_shown)
{
        assert_string_equal(KUBELET("{}", "--manifest-url-header=A:b,A:c"),
                            "{\"staticPodURLHeader\":{\"A\":[\"b\",\"c\"]}}");
        assert_string_equal(KUBELET("{}", "--manifest-url-header=s3cret"),
                            "error: --manifest-url-header: the value (not shown) is wrong [LKG5020]\n");
        assert_null(strstr(KUBELET("{}", "--address=http://u:s3cret@h/"), "s3cret"));
}

TEST(test_every_wrong_word_is_named)
{
        const char *text = KUBELET("{}", "--nope", "--max-pods=x", "--port=y");

        assert_non_null(strstr(text, "\"nope\""));
        assert_non_null(strstr(text, "--max-pods"));
        assert_non_null(strstr(text, "--port"));
}

TEST(test_values_say_which_flag)
{
        static const char *const words[] = { "--max-pods=5" };
        struct lkg_command_line line = { words, 1 };
        struct lkg_report report = LKG_REPORT_INIT;
        const struct lkg_schema *schema = NULL;
        struct lkg_value *object = flow("{maxPods: 7}", 0);
        const struct lkg_value *value;

        assert_int_equal(lkg_schema_get("KubeletConfiguration", NULL, 0, &schema), 0);
        assert_int_equal(lkg_flags_apply(schema, &line, object, NULL, &report), 0);
        value = lkg_map_get(object, "maxPods");
        assert_string_equal(lkg_value_source(value)->layer, "flag --max-pods");
        assert_string_equal(json(lkg_value_shadowed(value)), "7");
        lkg_value_unref(object);
        lkg_report_deinit(&report);
}

/* A removed flag is an unknown flag: the component does not start with it after the upgrade. */
TEST(test_flags_that_a_release_dropped)
{
        static const struct {
                const char *word;
                unsigned last;
        } rows[] = {
                { "--cloud-config=/x", 133 },
                { "--register-schedulable=false", 133 },
                { "--register-schedulable", 133 },
                { "--pod-infra-container-image=x", 134 },
        };

        for (size_t i = 0; i < LKG_ARRAY_SIZE(rows); i++)
                for (release = LKG_RELEASE_MIN; release <= LKG_RELEASE_MAX; release++)
                        assert_int_equal(strstr(KUBELET("{}", rows[i].word), "no flag") != NULL,
                                         release > rows[i].last);
        release = 0;
}

/* The line of a node that runs another release: what ends with the upgrade is an error, what nobody knows is not. */
TEST(test_flags_that_an_upgrade_takes_away)
{
        observed = true;
        release = 137;
        runs = 136;
        assert_non_null(
                strstr(KUBELET("{}", "--containerd=/x"), "error: no flag \"containerd\" in 1.37 any more"));
        assert_non_null(strstr(KUBELET("{}", "--storage_driver_db", "x"), "error: no flag"));
        assert_non_null(
                strstr(KUBELET("{}", "--feature-gates=SidecarContainers=true"), "error: --feature-gates:"));
        assert_non_null(strstr(KUBELET("{}", "--server=https://x"), "warning: no flag \"server\""));
        assert_non_null(strstr(KUBELET("{}", "--pod-infra-container-image=x"), "warning: no flag"));
        assert_non_null(strstr(KUBELET("{}", "--feature-gates=Nope=true"), "warning: --feature-gates:"));
        assert_non_null(
                strstr(KUBELET("{}", "--maximum-dead-containers=3"), "note: --maximum-dead-containers"));
        assert_non_null(strstr(KUBELET("{}", "--feature-gates=PodCertificateRequest=true"),
                               "note: --feature-gates:"));
        /* the next word is the value of a flag that was one, whatever it looks like */
        assert_null(strstr(KUBELET("{}", "--storage-driver-password", "--hunter2"), "hunter2"));
        assert_non_null(strstr(KUBELET("{}", "--enable-load-reader", "--hunter2"), "hunter2"));
        runs = 134;
        assert_non_null(strstr(KUBELET("{}", "--pod-infra-container-image=x"), "error: no flag"));
        release = 135;
        assert_non_null(
                strstr(KUBELET("{}", "--containerd=/x"), "note: --containerd is deprecated in 1.35"));
        runs = 0;
        assert_string_equal(KUBELET("{}", "--containerd=/x", "--maximum-dead-containers=3"), "{}");
        release = 0;
        observed = false;
}

TEST(test_kube_proxy_has_flags_of_its_own)
{
        assert_string_equal(PROXY("{}", "--hostname-override=a"), "{\"hostnameOverride\":\"a\"}");
        assert_string_equal(PROXY("{mode: iptables}", "--proxy-mode=ipvs"),
                            "{\"mode\":\"iptables\"}"); /* as upstream does */
        assert_non_null(strstr(PROXY("{}", "--conntrack-min=x"), "--conntrack-min"));
        assert_non_null(strstr(PROXY("{}", "--max-pods=5"), "no flag \"max-pods\""));
}
