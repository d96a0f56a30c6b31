/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Advice: problems that the component does not report. A case is a base, perhaps a drop-in over it, and the
 * findings.
 */
#include "config-helpers.h"

#include "core/schema/judge.h"
#include "tests/lib/candidate.h"

#define HEADER "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n"
#define PROXY  "apiVersion: kubeproxy.config.k8s.io/v1alpha1\nkind: KubeProxyConfiguration\n"

static bool no_file(const char *path, void *userdata)
{
        (void)userdata;
        return strcmp(path, "/there") == 0;
}

/* All findings of @base and @dropin (NULL = none) at @release. */
static const char *said(unsigned release, const char *base, const char *dropin)
{
        static char *kept;
        struct lkg_judge_config config = { .release = release,
                                           .host = { .cgroup = 2, .stated = true, .exists = no_file },
                                           .lint = true,
                                           .lint_all = true };
        struct lkg_report report = LKG_REPORT_INIT;
        struct made_layer layers[2] = { 0 };
        struct lkg_candidate candidate;
        struct lkg_judge *judge = NULL;
        size_t n = 0;

        if (base)
                assert_int_equal(
                        layer_decode(LKG_LAYER_BASE, "b", base, strlen(base), &report, &layers[n++]), 0);
        if (dropin)
                assert_int_equal(layer_decode(LKG_LAYER_DROPIN, "1.conf", dropin, strlen(dropin), &report,
                                              &layers[n++]),
                                 0);
        judge = lkg_judge_new(&config);
        assert_int_equal(candidate_build(layers, n, &candidate), 0);
        lkg_judge_candidate(&candidate, judge);
        free(kept);
        kept = lkg_report_format(&candidate.report, NULL);
        assert_non_null(kept);
        candidate_free(&candidate);
        lkg_judge_free(judge);
        for (size_t i = 0; i < n; i++)
                layer_free(&layers[i]);
        lkg_report_deinit(&report);
        return kept;
}

#define assert_said(text, part)                                         \
        do {                                                            \
                const char *all = (text);                               \
                if (!strstr(all, (part)))                               \
                        fail_msg("\"%s\" is not in:\n%s", (part), all); \
        } while (0)

TEST(test_nothing_is_said_of_a_good_document)
{
        assert_string_equal(said(0, HEADER "maxPods: 50\nclusterDNS: [10.0.0.10]\n", HEADER "maxPods: 60\n"),
                            "");
}

TEST(test_unknown_field_and_the_nearest)
{
        assert_string_equal(said(0, HEADER "maxPodz: 5\n", NULL),
                            "/e/b:3:10: warning: \"maxPodz\" is not a field of KubeletConfiguration in 1.37 "
                            "and is ignored by the "
                            "component; did you mean maxPods? [LKG5003]\n");
        assert_said(
                said(0, HEADER "authentication: {webhok: {}}\n", NULL),
                "authentication: \"webhok\" is not a field of KubeletConfiguration in 1.37 and is ignored "
                "by the component; "
                "did you mean webhook?");
        assert_said(said(0, HEADER "registerWithTaints: [{key: a, effect: NoSchedule, valu: x}]\n", NULL),
                    "\"valu\"");
        assert_said(said(0, HEADER, HEADER "qqqqqqq: 5\n"), "/e/d/1.conf:3:10: warning: \"qqqqqqq\"");
}

/* The same mistake has no effect in a base and takes effect in a drop-in. */
TEST(test_wrong_case)
{
        assert_said(said(0, HEADER "maxpods: 5\n", NULL),
                    "\"maxpods\" is ignored by the component; write maxPods [LKG5004]");
        assert_said(said(0, HEADER, HEADER "maxpods: 5\n"),
                    "\"maxpods\" is taken for maxPods here, but not in a base");
}

TEST(test_field_of_a_later_release)
{
        assert_said(
                said(133, HEADER "userNamespaces: {idsPerPod: 65536}\ntlsCurvePreferences: [29]\n", NULL),
                "[LKG5005]");
        assert_said(said(133, HEADER "tlsCurvePreferences: [29]\n", NULL),
                    "tlsCurvePreferences comes with 1.");
}

TEST(test_deprecated_field)
{
        size_t n = 0;

        for (size_t i = 0; i < lkg_n_kubelet_fields; i++) {
                const struct lkg_field *field = &lkg_kubelet_fields[i];
                char text[256];

                if (!field->deprecated || strchr(field->path, '.') || field->until)
                        continue;
                (void)snprintf(text, sizeof(text), HEADER "%s: null\n", field->path);
                assert_said(said(0, text, NULL), "[LKG5006]");
                n++;
        }
        assert_true(n > 0);
}

TEST(test_value_equal_to_the_default)
{
        assert_string_equal(
                said(0, HEADER "maxPods: 110\n", NULL),
                "/e/b:3:10: note: maxPods: 110 is the default; the line could be left out [LKG5007]\n");
        assert_said(said(0, HEADER "syncFrequency: 60s\n", NULL), "syncFrequency: \"1m0s\" is the default");
}

TEST(test_layer_that_takes_an_earlier_value_back)
{
        assert_string_equal(said(0, HEADER "maxPods: 50\n", HEADER "maxPods: 110\n"),
                            "/e/d/1.conf:3:10: note: maxPods: 110, the default, takes back what an earlier "
                            "layer set (/e/b:3:10) "
                            "[LKG5008]\n");
        assert_said(
                said(0, HEADER "maxPods: 50\n", HEADER "maxPods: null\n"),
                "/e/d/1.conf:3:10: note: maxPods: null takes away what an earlier layer set (/e/b:3:10); "
                "the default counts");
}

/* Without the line, the gate would be as in the earlier layer, or as AllBeta sets it. */
TEST(test_gate_set_back_to_its_default)
{
        assert_said(said(0, HEADER "featureGates: {CBORServingAndStorage: true}\n",
                         HEADER "featureGates: {CBORServingAndStorage: false}\n"),
                    "/e/d/1.conf:3:39: note: featureGates: CBORServingAndStorage: false, the default, takes "
                    "back what an "
                    "earlier layer set (/e/b:3:39) [LKG5008]");
        assert_said(said(0, HEADER "featureGates: {CBORServingAndStorage: false}\n",
                         HEADER "featureGates: {CBORServingAndStorage: false}\n"),
                    "/e/d/1.conf:3:39: note: featureGates: CBORServingAndStorage is false by default");
        assert_null(strstr(said(0, HEADER "featureGates: {AllBeta: false, APIServerIdentity: true}\n", NULL),
                           "[LKG5007]"));
        assert_null(strstr(said(0, HEADER "featureGates: {AllAlpha: true}\n",
                                HEADER "featureGates: {CBORServingAndStorage: false}\n"),
                           "[LKG5007]"));
        assert_said(said(0, HEADER "featureGates: {AllAlpha: true, APIServerIdentity: true}\n", NULL),
                    "[LKG5007]");
}

/*
 * The kubelet then starts from the defaults of its flags: without `false`, access would be open to everyone.
 */
TEST(test_default_without_a_base)
{
        assert_null(strstr(said(0, NULL, HEADER "authentication: {anonymous: {enabled: false}}\n"),
                           "[LKG5007]"));
        assert_said(said(0, NULL, HEADER "maxPods: 110\n"), "110 is the default");
        /* what hardening guides want to see is never too much */
        assert_null(strstr(said(0, HEADER "readOnlyPort: 0\nauthorization: {mode: Webhook}\n",
                                HEADER "authentication: {anonymous: {enabled: false}}\n"),
                           "[LKG5007]"));
}

/* The component adds the default thresholds while it loads the base, and never again. */
TEST(test_null_eviction_over_the_base)
{
        assert_said(said(0, HEADER "evictionHard: {memory.available: 1Gi}\n", HEADER "evictionHard: null\n"),
                    "/e/d/1.conf:3:15: warning: evictionHard: null over the base leaves no threshold at "
                    "all, not "
                    "the defaults, which the component adds to the base alone; an earlier layer set some "
                    "(/e/b:3:15); name what to keep [LKG5008]");
        assert_said(said(0, HEADER, HEADER "evictionHard: null\n"),
                    "adds to the base alone; name what to keep");
        assert_null(strstr(said(0, HEADER "evictionHard: null\n", NULL), "[LKG5008]"));
}

/* A value that Go cannot distinguish from an absent one silently removes an earlier value. */
TEST(test_empty_value_over_an_earlier_one)
{
        assert_string_equal(
                said(0, HEADER "clusterDNS: [10.0.0.1]\n", HEADER "clusterDNS: []\n"),
                "/e/d/1.conf:3:13: note: clusterDNS: [] is as good as none and takes away what an "
                "earlier layer set (/e/b:3:13) [LKG5008]\n");
        assert_said(said(0, HEADER "maxPods: 50\n", HEADER "maxPods: 0\n"),
                    "maxPods: 0 is as good as none and takes away what an earlier layer set (/e/b:3:10); "
                    "the default "
                    "counts");
        assert_said(said(0, HEADER "syncFrequency: 5m\n", HEADER "syncFrequency: 0s\n"), "[LKG5008]");
        assert_said(said(0, HEADER "rotateCertificates: true\n", HEADER "rotateCertificates: false\n"),
                    "[LKG5008]");
        assert_string_equal(said(0, HEADER "maxPods: 0\n", HEADER "maxPods: 0\n"), "");
        assert_string_equal(said(0, HEADER "syncFrequency: 0s\nclusterDNS: []\n", NULL), "");
        /* 0 is a separate value */
        assert_null(
                strstr(said(0, HEADER "registryPullQPS: 7\n", HEADER "registryPullQPS: 0\n"), "[LKG5008]"));
}

TEST(test_eviction_defaults_in_a_drop_in)
{
        assert_said(said(0, HEADER "evictionHard: {memory.available: 1Gi}\n",
                         HEADER "mergeDefaultEvictionSettings: true\n"),
                    "[LKG5009]");
        assert_null(strstr(said(0, HEADER "mergeDefaultEvictionSettings: true\n", NULL), "[LKG5009]"));
        assert_null(strstr(said(0, HEADER, HEADER "mergeDefaultEvictionSettings: false\n"), "[LKG5009]"));
}

TEST(test_relative_path_in_a_drop_in)
{
        assert_said(said(0, HEADER, HEADER "staticPodPath: m\n"),
                    "/e/d/1.conf:3:16: warning: staticPodPath: \"m\" is relative");
        assert_said(said(0, HEADER, HEADER "staticPodPatH: m\n"), "[LKG5010]");
        assert_null(strstr(said(0, HEADER "staticPodPath: m\n", NULL), "[LKG5010]"));
        assert_null(strstr(said(0, HEADER, HEADER "staticPodPath: /m\n"), "[LKG5010]"));
}

TEST(test_two_fields_want_one_port)
{
        assert_said(said(0, HEADER "readOnlyPort: 10250\n", NULL), "both want port 10250");
        assert_said(said(0, HEADER "healthzPort: 10255\nreadOnlyPort: 10255\n", NULL),
                    "both want port 10255");
        assert_said(said(0, PROXY "healthzBindAddress: 0.0.0.0:10249\n", NULL), "both want port 10249");
        assert_null(strstr(said(0, HEADER "healthzPort: 0\nreadOnlyPort: 0\n", NULL), "[LKG5011]"));
        assert_said(
                said(0, HEADER "healthzPort: 10255\n", HEADER "readOnlyPort: 10255\n"),
                "/e/d/1.conf:3:15: warning: healthzPort (/e/b:3:14) and readOnlyPort both want port 10255");
}

/* Two sockets on one port are fine if their addresses do not overlap. */
TEST(test_one_port_on_two_addresses)
{
        static const char *const fine[] = {
                HEADER "address: 10.0.0.1\nhealthzPort: 10250\n",
                HEADER "address: 0.0.0.0\nhealthzPort: 10250\nhealthzBindAddress: \"::1\"\n",
                HEADER "enableServer: false\nhealthzPort: 10250\n",
                PROXY "healthzBindAddress: 10.0.0.1:10249\n",
                PROXY "healthzBindAddress: \"[fd00::1]:10249\"\n",
        };
        static const char *const wrong[] = {
                HEADER "address: 127.0.0.1\nhealthzPort: 10250\n",
                HEADER "address: \"::\"\nhealthzPort: 10250\n",
                HEADER "address: 10.0.0.1\nhealthzPort: 10250\nhealthzBindAddress: 0.0.0.0\n",
                HEADER "address: 10.0.0.1\nreadOnlyPort: 10250\n",
                PROXY "healthzBindAddress: \"[::]:10249\"\n",
                PROXY "healthzBindAddress: 127.0.0.1:10249\n",
        };

        for (size_t i = 0; i < LKG_ARRAY_SIZE(fine); i++)
                assert_null(strstr(said(0, fine[i], NULL), "[LKG5011]"));
        for (size_t i = 0; i < LKG_ARRAY_SIZE(wrong); i++)
                assert_said(said(0, wrong[i], NULL), "[LKG5011]");
}

TEST(test_file_that_is_not_there)
{
        assert_string_equal(
                said(0, HEADER "staticPodPath: /gone\n", NULL),
                "/e/b:3:16: note: staticPodPath: \"/gone\" does not exist on this node (yet?) [LKG5012]\n");
        assert_string_equal(said(0, HEADER "staticPodPath: /there\n", NULL), "");
}

TEST(test_gates_on_their_way_out)
{
        assert_said(said(0, HEADER "featureGates: {AllowServiceExternalIPs: true}\n", NULL), "[LKG5018]");
        assert_said(said(0, HEADER, HEADER "featureGates: {APIServerIdentity: true}\n"),
                    "is true by default");
}

TEST(test_no_base)
{
        assert_said(said(0, NULL, HEADER),
                    "without a base the kubelet starts from the defaults of its flags");
        assert_null(strstr(said(0, HEADER, HEADER), "[LKG5023]"));
        assert_null(strstr(said(0, NULL, PROXY), "[LKG5023]"));
}

/* Advice never refuses. */
TEST(test_advice_is_no_error)
{
        const char *text =
                said(0, HEADER "maxPodz: 5\nmaxpods: 6\nreadOnlyPort: 10250\nstaticPodPath: /gone\n",
                     HEADER "volumePluginDir: x\nmergeDefaultEvictionSettings: true\nMAXPODS: 110\n");

        assert_said(text, "warning: ");
        assert_null(strstr(text, "error: "));
}
