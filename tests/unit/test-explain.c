/* SPDX-License-Identifier: Apache-2.0 */
/* lkgfs explain: which field, flag or gate a word means, and what is printed about it. */

#include <fs/tool/tool.h>

#include "unit.h"

static struct lkg_explained_list list;

static const struct lkg_explained *only(const char *word, const char *kind)
{
        lkg_explain_find(word, kind, &list);
        if (list.n_items != 1)
                fail_msg("\"%s\" is %zu things", word, list.n_items);
        assert_false(list.ambiguous);
        return &list.items[0];
}

static void assert_field(const char *word, const char *path)
{
        const struct lkg_explained *item = only(word, "kubelet");

        assert_int_equal(item->what, LKG_EXPLAINED_FIELD);
        assert_string_equal(item->field->path, path);
}

TEST(test_a_field_by_its_path)
{
        assert_field("authentication.webhook.cacheTTL", "authentication.webhook.cacheTTL");
        assert_field("AUTHENTICATION.webhook.cachettl", "authentication.webhook.cacheTTL");
        assert_field("/authentication/webhook/cacheTTL", "authentication.webhook.cacheTTL");
        assert_field(".maxPods", "maxPods");
        assert_field("cacheTTL", "authentication.webhook.cacheTTL");
        assert_field("webhook.cachettl", "authentication.webhook.cacheTTL");
        assert_field("registerWithTaints[3].effect", "registerWithTaints[].effect");
        assert_field("registerWithTaints.effect", "registerWithTaints[].effect");
        assert_field("tracing", "tracing");
}

TEST(test_the_end_of_several_paths_is_ambiguous)
{
        lkg_explain_find("enabled", "KubeletConfiguration", &list);
        assert_true(list.ambiguous);
        assert_int_equal(list.n_items, 2);
}

TEST(test_a_field_of_two_kinds_is_both)
{
        lkg_explain_find("logging.format", NULL, &list);
        assert_int_equal(list.n_items, 2);
        assert_false(list.ambiguous);
        assert_string_equal(only("logging.format", "kubeproxyconfiguration")->kind->component, "kube-proxy");
        assert_true(lkg_explain_kind_known("kube-proxy"));
        assert_false(lkg_explain_kind_known("KubeSchedulerConfiguration"));
}

TEST(test_a_flag)
{
        static const char *const words[] = { "--max-pods", "max-pods", "max_pods", "--max-pods=5",
                                             "--Max-Pods" };

        for (size_t i = 0; i < LKG_ARRAY_SIZE(words); i++) {
                const struct lkg_explained *item = only(words[i], NULL);

                assert_int_equal(item->what, LKG_EXPLAINED_FLAG);
                assert_string_equal(item->flag->field, "maxPods");
        }
        /* A field and a flag with the same name: the hyphens decide. */
        assert_int_equal(only("--port", "kubelet")->what, LKG_EXPLAINED_FLAG);
        lkg_explain_find("port", "kubelet", &list);
        assert_int_equal(list.n_items, 2);
}

/* Upstream has a gate ImageMaximumGCAge and a field imageMaximumGCAge. */
TEST(test_the_case_as_written_decides)
{
        assert_int_equal(only("ImageMaximumGCAge", NULL)->what, LKG_EXPLAINED_GATE);
        assert_int_equal(only("imageMaximumGCAge", NULL)->what, LKG_EXPLAINED_FIELD);
        lkg_explain_find("imagemaximumgcage", NULL, &list);
        assert_int_equal(list.n_items, 2);
}

TEST(test_an_unknown_word_has_a_neighbour)
{
        lkg_explain_find("maxPosd", NULL, &list);
        assert_int_equal(list.n_items, 0);
        static const struct {
                const char *word, *want;
        } rows[] = {
                { "maxPosd", "maxPods " },
                { "GracefulNodeShutdwn", "GracefulNodeShutdown " },
                { "--max-pod", "max-pods " },
                { "eviction",
                  "evictionHard evictionSoft evictionPressureTransitionPeriod evictionMaxPodGracePeriod "
                  "evictionMinimumReclaim mergeDefaultEvictionSettings " },
                { "--seccomp", "seccomp-default " },
                { "nothinglikethis", "" },
                { "", "" },
        };

        for (size_t i = 0; i < LKG_ARRAY_SIZE(rows); i++) {
                struct lkg_explain_near near;
                char names[256] = "";

                lkg_explain_nearest(rows[i].word, NULL, &near);
                for (size_t k = 0; k < near.n; k++) {
                        strcat(names, near.names[k]);
                        strcat(names, " ");
                }
                assert_string_equal(names, rows[i].want);
        }
        lkg_explain_find("", NULL, &list);
        assert_int_equal(list.n_items, 0);
        lkg_explain_find("--", NULL, &list);
        assert_int_equal(list.n_items, 0);
}

static void assert_says(const char *word, unsigned release, const char *want)
{
        struct lkg_buf buf = LKG_BUF_INIT;

        lkg_value_unref(lkg_explain_show(only(word, "kubelet"), release, &buf));
        assert_false(lkg_buf_failed(&buf));
        if (!strstr(buf.data, want))
                fail_msg("\"%s\" is not in:\n%s", want, buf.data);
        lkg_buf_deinit(&buf);
}

TEST(test_what_people_read)
{
        assert_says("maxPods", 136, "  type        int32\n  default     110\n");
        assert_says("maxPods", 136, "  flag        --max-pods\n");
        assert_says("syncFrequency", 136, "  default     1m0s\n  sameAsUnset 0s\n");
        assert_says("healthzPort", 136, "  type        int32 (may be unset)\n");
        assert_says("failCgroupV1", 134, "  default     false\n");
        assert_says("failCgroupV1", 136, "  otherwise   1.33 to 1.34: bool, default false\n");
        assert_says("memoryReservationPolicy", 135, "  release     1.35 does not have it\n");
        assert_says("staticPodURLHeader", 136, "  secret      its values are never shown\n");
        assert_says("tlsCertFile", 136, "relative to its directory");
        assert_says("authentication", 136, "  parts       x509, webhook, anonymous\n");
        assert_says("registerWithTaints", 136, "  parts       key, value, effect, timeAdded\n");
        assert_says("--max-pods", 136, "  effect      wins over the document\n");
        assert_says("NodeSwap", 136, "  releases    1.33 beta on, 1.34 GA on locked\n");
        assert_says("NodeSwap", 133, "  stage       beta\n");
        assert_says("SeccompDefault", 136, "  releases    1.29 dropped\n");
        assert_says("GracefulNodeShutdownBasedOnPodPriority", 136, "  needs       GracefulNodeShutdown\n");
}

static void assert_key(const char *word, const char *path, const char *says)
{
        const struct lkg_explained *item;
        struct lkg_buf buf = LKG_BUF_INIT;

        lkg_explain_find(word, "kubelet", &list);
        assert_true(list.n_items > 0 && !list.ambiguous);
        item = &list.items[0];
        assert_int_equal(item->what, LKG_EXPLAINED_FIELD);
        assert_string_equal(item->field->path, path);
        lkg_value_unref(lkg_explain_show(item, LKG_RELEASE_MAX, &buf));
        if (!strstr(buf.data, says))
                fail_msg("%s:\n%s", word, buf.data);
        lkg_buf_deinit(&buf);
}

TEST(test_a_key_of_a_map)
{
        assert_key("evictionHard.memory.available", "evictionHard",
                   "  key         memory.available\n  means       signal: ");
        assert_key("/evictionSoft/nodefs.available", "evictionSoft", "  means       signal: free space");
        assert_key("systemReserved.cpu", "systemReserved", "  key         cpu\n  means       resource: ");
        assert_key("kubereserved.pid", "kubeReserved", "  means       resource: ");
        assert_key("kubeReserved.mem", "kubeReserved",
                   "  key         mem\n  knownKeys   cpu, memory, ephemeral-storage, pid\n");
        assert_key("cpuManagerPolicyOptions.full-pcpus-only", "cpuManagerPolicyOptions", "whole cores");
        assert_key("reservedMemory[0].limits.memory", "reservedMemory[].limits", "NUMA node's memory");
        assert_key("staticPodURLHeader.Authorization", "staticPodURLHeader",
                   "  key         Authorization\n");
        assert_key("featureGates.NodeSwap", "featureGates", "  key         NodeSwap\n");
        assert_int_equal(list.n_items, 2);
        assert_int_equal(list.items[1].what, LKG_EXPLAINED_GATE);
        assert_string_equal(list.items[1].gate->name, "NodeSwap");
        lkg_explain_find("featureGates.NodeSwap", NULL, &list);
        assert_int_equal(list.n_items, 3); /* two maps and one gate */
        lkg_explain_find("maxPods.x", "kubelet", &list);
        assert_int_equal(list.n_items, 0);
        lkg_explain_find("evictionHard.", "kubelet", &list);
        assert_int_equal(list.n_items, 0);
}

/* Nothing in the tables breaks either form. */
/* AllAlpha and AllBeta are settings of featureGates, but no gates. */
TEST(test_names_that_stand_for_many_gates)
{
        LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf buf = LKG_BUF_INIT;
        static const char *const words[] = { "AllAlpha", "allalpha", "featureGates.AllAlpha" };

        for (size_t i = 0; i < LKG_ARRAY_SIZE(words); i++) {
                assert_string_equal(only(words[i], "kubelet")->field->path, "featureGates");
                assert_string_equal(only(words[i], "kubelet")->key, "AllAlpha");
        }
        lkg_value_unref(lkg_explain_show(only("AllAlpha", "kubelet"), 136, &buf));
        assert_non_null(strstr(buf.data, "every alpha gate"));
}

TEST(test_every_name_can_be_explained)
{
        for (size_t k = 0; k < lkg_n_kinds; k++)
                for (size_t i = 0; i < *lkg_kinds[k].n_fields; i++) {
                        struct lkg_buf buf = LKG_BUF_INIT;

                        lkg_explain_find(lkg_kinds[k].fields[i].path, lkg_kinds[k].kind, &list);
                        assert_true(list.n_items >= 1 && !list.ambiguous);
                        lkg_value_unref(lkg_explain_show(&list.items[0], LKG_RELEASE_MAX, &buf));
                        lkg_value_unref(lkg_explain_show(&list.items[0], LKG_RELEASE_MIN, &buf));
                        assert_false(lkg_buf_failed(&buf));
                        lkg_buf_deinit(&buf);
                }
}
