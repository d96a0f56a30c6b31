/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The kubelet's validation: pkg/kubelet/apis/config/validation (1.33 to 1.37), with component-base's tracing
 * and metrics rules. Feature gates themselves are checked where they are set (gates.c).
 */
#include <stdlib.h>

#include "rules.h"
#include "values/values.h"

#define MSEC   INT64_C(1000000)
#define SEC    INT64_C(1000000000)
#define NO_MAX INT64_MAX
#define NO_MIN INT64_MIN

static const char not_negative[] = "it must not be negative";
static const char percent[] = "want 0 to 100";
static const char port[] = "want a port, 1 to 65535";
static const char port_or_off[] = "want a port, 1 to 65535, or 0 for none";
static const char bit[] = "want a bit, 0 to 31";
static const char turn_on[] = "turn the gate on, or remove the line";

static int parse_cpus(const char *text, size_t size, char *reason)
{
        int64_t highest;

        return lkg_cpuset_parse(text, size, &highest, reason);
}

const struct lkg_value_rule lkg_kubelet_rules[] = {
        { "nodeLeaseDurationSeconds", LKG_RULE_NUMBER, "it must be at least 1", .min = 1, .max = NO_MAX },
        { "eventBurst", LKG_RULE_NUMBER, not_negative, .max = NO_MAX },
        { "eventRecordQPS", LKG_RULE_NUMBER, not_negative, .max = NO_MAX },
        { "healthzPort", LKG_RULE_NUMBER, port_or_off, .max = 65535 },
        { "cpuCFSQuotaPeriod", LKG_RULE_DURATION, "turn the gate on, or leave the default of 100ms",
          .min = 100 * MSEC, .max = 100 * MSEC, .gate = "CustomCPUCFSQuotaPeriod",
          .flags = LKG_RULE_GATE_OFF },
        { "cpuCFSQuotaPeriod", LKG_RULE_DURATION, "want 1ms to 1s", .min = MSEC, .max = SEC,
          .gate = "CustomCPUCFSQuotaPeriod" },
        { "imageGCHighThresholdPercent", LKG_RULE_NUMBER, percent, .max = 100 },
        { "imageGCLowThresholdPercent", LKG_RULE_NUMBER, percent, .max = 100 },
        { "imageMaximumGCAge", LKG_RULE_DURATION, turn_on, .gate = "ImageMaximumGCAge",
          .flags = LKG_RULE_GATE_OFF },
        { "defaultPodSysctls", LKG_RULE_UNSET, turn_on, .gate = "DefaultPodSysctls",
          .flags = LKG_RULE_GATE_OFF, .since = 137 },
        { "imageMinimumGCAge", LKG_RULE_DURATION, not_negative, .max = NO_MAX, .since = 136 },
        { "imageMaximumGCAge", LKG_RULE_DURATION, not_negative, .max = NO_MAX },
        { "iptablesDropBit", LKG_RULE_NUMBER, bit, .max = 31 },
        { "iptablesMasqueradeBit", LKG_RULE_NUMBER, bit, .max = 31 },
        { "kubeAPIBurst", LKG_RULE_NUMBER, not_negative, .max = NO_MAX },
        { "kubeAPIQPS", LKG_RULE_NUMBER, not_negative, .max = NO_MAX },
        { "nodeStatusMaxImages", LKG_RULE_NUMBER, "want -1 for all, or more", .min = -1, .max = NO_MAX },
        { "maxOpenFiles", LKG_RULE_NUMBER, not_negative, .max = NO_MAX },
        { "maxPods", LKG_RULE_NUMBER, not_negative, .max = NO_MAX },
        { "oomScoreAdj", LKG_RULE_NUMBER, "want -1000 to 1000", .min = -1000, .max = 1000 },
        { "podsPerCore", LKG_RULE_NUMBER, not_negative, .max = NO_MAX },
        { "port", LKG_RULE_NUMBER, port, .min = 1, .max = 65535 },
        { "readOnlyPort", LKG_RULE_NUMBER, port_or_off, .max = 65535 },
        { "registryBurst", LKG_RULE_NUMBER, not_negative, .max = NO_MAX },
        { "registryPullQPS", LKG_RULE_NUMBER, not_negative, .max = NO_MAX },
        { "maxParallelImagePulls", LKG_RULE_NUMBER, "it must be at least 1", .min = 1, .max = NO_MAX },
        { "serverTLSBootstrap", LKG_RULE_UNSET, turn_on, .gate = "RotateKubeletServerCertificate",
          .flags = LKG_RULE_GATE_OFF },
        { "runOnce", LKG_RULE_UNSET, "the mode is gone; remove the line" },
        { "topologyManagerPolicy", LKG_RULE_WORD,
          .words = "none, best-effort, restricted, single-numa-node" },
        { "topologyManagerScope", LKG_RULE_WORD, .words = "container, pod" },
        { "shutdownGracePeriod", LKG_RULE_DURATION, "want 0s, or 1s or more", .min = SEC, .max = NO_MAX,
          .gate = "GracefulNodeShutdown", .flags = LKG_RULE_ZERO_OK },
        { "shutdownGracePeriodCriticalPods", LKG_RULE_DURATION, "want 0s, or 1s or more", .min = SEC,
          .max = NO_MAX, .gate = "GracefulNodeShutdown", .flags = LKG_RULE_ZERO_OK },
        { "shutdownGracePeriod", LKG_RULE_DURATION, turn_on, .min = NO_MIN, .gate = "GracefulNodeShutdown",
          .flags = LKG_RULE_GATE_OFF },
        { "shutdownGracePeriodCriticalPods", LKG_RULE_DURATION, turn_on, .min = NO_MIN,
          .gate = "GracefulNodeShutdown", .flags = LKG_RULE_GATE_OFF },
        { "shutdownGracePeriodByPodPriority", LKG_RULE_UNSET, turn_on,
          .gate = "GracefulNodeShutdownBasedOnPodPriority", .flags = LKG_RULE_GATE_OFF },
        { "memorySwap.swapBehavior", LKG_RULE_WORD, .words = "NoSwap, LimitedSwap", .gate = "NodeSwap",
          .flags = LKG_RULE_EMPTY_OK },
        { "memorySwap.swapBehavior", LKG_RULE_UNSET, turn_on, .gate = "NodeSwap",
          .flags = LKG_RULE_GATE_OFF },
        { "crashLoopBackOff.maxContainerRestartPeriod", LKG_RULE_SET, "want 1s to 5m0s",
          .gate = "KubeletCrashLoopBackOffMax", .flags = LKG_RULE_NIL },
        /* the component compares whole milliseconds */
        { "crashLoopBackOff.maxContainerRestartPeriod", LKG_RULE_DURATION, "want 1s to 5m0s", .min = SEC,
          .max = 300 * SEC + MSEC - 1, .gate = "KubeletCrashLoopBackOffMax" },
        { "crashLoopBackOff.maxContainerRestartPeriod", LKG_RULE_UNSET, turn_on,
          .gate = "KubeletCrashLoopBackOffMax", .flags = LKG_RULE_GATE_OFF | LKG_RULE_NIL },
        { "hairpinMode", LKG_RULE_WORD, .words = "none, hairpin-veth, promiscuous-bridge" },
        { "imagePullCredentialsVerificationPolicy", LKG_RULE_WORD,
          .words = "NeverVerify, NeverVerifyPreloadedImages, NeverVerifyAllowlistedImages, AlwaysVerify",
          .gate = "KubeletEnsureSecretPulledImages" },
        { "imagePullCredentialsVerificationPolicy", LKG_RULE_UNSET, turn_on,
          .gate = "KubeletEnsureSecretPulledImages", .flags = LKG_RULE_GATE_OFF },
        { "preloadedImagesVerificationAllowlist", LKG_RULE_UNSET, turn_on,
          .gate = "KubeletEnsureSecretPulledImages", .flags = LKG_RULE_GATE_OFF },
        { "reservedSystemCPUs", LKG_RULE_PARSE, .parse = parse_cpus, .flags = LKG_RULE_EMPTY_OK },
        { "tracing", LKG_RULE_UNSET, turn_on, .gate = "KubeletTracing",
          .flags = LKG_RULE_GATE_OFF | LKG_RULE_NIL, .until = 133 },
        { "tracing.samplingRatePerMillion", LKG_RULE_NUMBER, "want 0 to 1000000", .max = 1000000 },
        { "tracing.endpoint", LKG_RULE_PARSE, .parse = lkg_url_trace_endpoint },
        { "containerRuntimeEndpoint", LKG_RULE_SET, "want the socket of the container runtime" },
        { "enableSystemLogQuery", LKG_RULE_UNSET, turn_on, .gate = "NodeLogQuery",
          .flags = LKG_RULE_GATE_OFF },
        { "containerLogMaxWorkers", LKG_RULE_NUMBER, "it must be at least 1", .min = 1, .max = NO_MAX },
        { "containerLogMonitorInterval", LKG_RULE_DURATION, "it must be at least 3s", .min = 3 * SEC,
          .max = NO_MAX },
        { "containerLogMaxFiles", LKG_RULE_NUMBER, "it must be at least 2", .min = 2, .max = NO_MAX },
        { "podLogsDir", LKG_RULE_SET, "want an absolute path such as /var/log/pods" },
};
const size_t lkg_n_kubelet_rules = LKG_ARRAY_SIZE(lkg_kubelet_rules);

/* ---- two fields ---- */

/* Make @path with its value one side of a rule between two fields. */
static struct lkg_operand operand(const struct lkg_rules *rules, const char *path, const char *says)
{
        return (struct lkg_operand){ path, lkg_rule_get(rules, path), says };
}

static void between(const struct lkg_rules *rules, const char *a, const char *a_says, const char *b,
                    const char *b_says, const char *want)
{
        struct lkg_operand left = operand(rules, a, a_says), right = operand(rules, b, b_says);

        lkg_breach_between(rules, LKG_F_CONTRADICTION, &left, &right, want);
}

static void check_images(const struct lkg_rules *rules)
{
        int64_t minimum, maximum;

        lkg_rule_begin(rules);
        if (lkg_rule_int(rules, "imageGCLowThresholdPercent") >=
            lkg_rule_int(rules, "imageGCHighThresholdPercent"))
                between(rules, "imageGCLowThresholdPercent", "must be less than",
                        "imageGCHighThresholdPercent", "must be greater than", NULL);
        lkg_rule_begin(rules);
        minimum = lkg_rule_duration(rules, "imageMinimumGCAge");
        maximum = lkg_rule_duration(rules, "imageMaximumGCAge");
        if (maximum > 0 && maximum <= minimum)
                between(rules, "imageMaximumGCAge", "must be greater than", "imageMinimumGCAge",
                        "must be less than", NULL);
        lkg_rule_begin(rules);
        if (lkg_rule_bool(rules, "serializeImagePulls") && lkg_rule_int(rules, "maxParallelImagePulls") > 1)
                between(rules, "maxParallelImagePulls", "cannot go with", "serializeImagePulls",
                        "cannot go with", "set serializeImagePulls to false for more than one at a time");
}

static void check_shutdown(const struct lkg_rules *rules)
{
        static const char whole[] = "shutdownGracePeriod", critical[] = "shutdownGracePeriodCriticalPods",
                          by_priority[] = "shutdownGracePeriodByPodPriority";
        const struct lkg_value *list;
        int64_t whole_ns, critical_ns;

        lkg_rule_begin(rules);
        whole_ns = lkg_rule_duration(rules, whole);
        critical_ns = lkg_rule_duration(rules, critical);
        if (lkg_rule_gate(rules, "GracefulNodeShutdown") && critical_ns > whole_ns)
                between(rules, critical, "must not be more than", whole, "must not be less than", NULL);
        list = lkg_rule_get(rules, by_priority);
        if (!lkg_rule_gate(rules, "GracefulNodeShutdownBasedOnPodPriority") || !list ||
            lkg_value_size(list) == 0)
                return;
        if (whole_ns > 0)
                between(rules, by_priority, "cannot go with", whole, "cannot go with", "keep one of them");
        else if (critical_ns > 0)
                between(rules, by_priority, "cannot go with", critical, "cannot go with",
                        "keep one of them");
}

static void check_cgroups(const struct lkg_rules *rules)
{
        static const char *const cgroups[] = { "systemReservedCgroup", "kubeReservedCgroup" };
        lkg_rule_begin(rules);
        if (lkg_rule_text(rules, "systemCgroups").size > 0 && lkg_rule_text(rules, "cgroupRoot").size == 0)
                between(rules, "systemCgroups", "needs", "cgroupRoot", "must be set for",
                        "set cgroupRoot, / for example");
        for (size_t i = 0; i < LKG_ARRAY_SIZE(cgroups); i++) {
                lkg_rule_begin(rules);
                if (lkg_rule_text(rules, "reservedSystemCPUs").size > 0 &&
                    lkg_rule_text(rules, cgroups[i]).size > 0)
                        between(rules, "reservedSystemCPUs", "cannot go with", cgroups[i], "cannot go with",
                                "keep one of them");
        }
}

static void check_logs(const struct lkg_rules *rules)
{
        lkg_rule_begin(rules);
        if (lkg_rule_bool(rules, "enableSystemLogQuery") && !lkg_rule_bool(rules, "enableSystemLogHandler"))
                between(rules, "enableSystemLogQuery", "needs", "enableSystemLogHandler", "must be true for",
                        "turn both on or both off");
}

/* ---- enforceNodeAllocatable ---- */

enum enforcement { PODS, SYSTEM, SYSTEM_COMPRESSIBLE, KUBE, KUBE_COMPRESSIBLE, NONE, N_ENFORCEMENTS };

static const char enforce[] = "enforceNodeAllocatable";
static const char *const enforcements[] = { "pods",
                                            "system-reserved",
                                            "system-reserved-compressible",
                                            "kube-reserved",
                                            "kube-reserved-compressible",
                                            "none" };

static enum enforcement enforcement_of(const struct lkg_value *item)
{
        const char *text;
        size_t size;

        if (!item || lkg_value_type(item) != LKG_STRING)
                return N_ENFORCEMENTS;
        text = lkg_value_text(item, &size);
        for (size_t i = 0; i < N_ENFORCEMENTS; i++)
                if (strlen(enforcements[i]) == size && memcmp(enforcements[i], text, size) == 0)
                        return (enum enforcement)i;
        return N_ENFORCEMENTS;
}

static void check_enforcement(const struct lkg_rules *rules, const char *path, const struct lkg_value *item,
                              enum enforcement what, bool alone)
{
        static const char *const cgroups[] = {
                [SYSTEM] = "systemReservedCgroup",
                [SYSTEM_COMPRESSIBLE] = "systemReservedCgroup",
                [KUBE] = "kubeReservedCgroup",
                [KUBE_COMPRESSIBLE] = "kubeReservedCgroup",
                [NONE] = NULL,
        };
        struct lkg_operand entry = { path, item, "needs" }, other;

        if (what == NONE) {
                if (!alone)
                        lkg_breach(rules, LKG_F_CONTRADICTION, path, item,
                                   "must be the only entry; remove it or the others");
                return;
        }
        lkg_rule_begin(rules);
        if (cgroups[what] && lkg_rule_text(rules, cgroups[what]).size == 0) {
                other = operand(rules, cgroups[what], "must be set for");
                lkg_breach_between(rules, LKG_F_REQUIRED, &entry, &other,
                                   "name the cgroup, or remove the entry");
        }
        lkg_rule_begin(rules);
        if (!lkg_rule_bool(rules, "cgroupsPerQOS")) {
                other = operand(rules, "cgroupsPerQOS", "must be true for");
                lkg_breach_between(rules, LKG_F_CONTRADICTION, &entry, &other,
                                   "set cgroupsPerQOS to true, or enforceNodeAllocatable to [none]");
        }
}

static void check_enforce(const struct lkg_rules *rules)
{
        static const enum enforcement pairs[][2] = { { SYSTEM, SYSTEM_COMPRESSIBLE },
                                                     { KUBE, KUBE_COMPRESSIBLE } };
        const struct lkg_value *list = lkg_rule_items(rules, enforce), *seen[N_ENFORCEMENTS] = { NULL };
        size_t n = list ? lkg_value_size(list) : 0;
        char path[LKG_RULE_PATH_MAX];

        for (size_t i = 0; i < n; i++) {
                const struct lkg_value *item = lkg_list_get(list, i);
                enum enforcement what = enforcement_of(item);

                (void)snprintf(path, sizeof(path), "%s[%zu]", enforce, i);
                lkg_rule_begin(rules);
                if (what == N_ENFORCEMENTS)
                        lkg_breach(rules, LKG_F_NOT_ONE_OF, path, item,
                                   "is not known; want pods, system-reserved, system-reserved-compressible, "
                                   "kube-reserved, kube-reserved-compressible or none");
                else if (seen[what])
                        lkg_breach(rules, LKG_F_DUPLICATE, path, item, "stands there twice; remove one");
                else
                        check_enforcement(rules, path, item, what, n == 1);
                if (what != N_ENFORCEMENTS)
                        seen[what] = item;
        }
        for (size_t i = 0; i < LKG_ARRAY_SIZE(pairs); i++) {
                struct lkg_operand one = { enforce, seen[pairs[i][0]], "cannot go with" },
                                   other = { enforce, seen[pairs[i][1]], "cannot go with" };

                if (one.value && other.value)
                        lkg_breach_between(rules, LKG_F_CONTRADICTION, &one, &other, "keep one of them");
        }
}

/* ---- reservedMemory ---- */

struct reservation {
        int64_t node;
        const char *key;
        size_t size, index;
        const struct lkg_value *value;
};

static int compare_reservations(const void *one, const void *two)
{
        const struct reservation *a = one, *b = two;
        int r = memcmp(a->key, b->key, a->size < b->size ? a->size : b->size);

        if (a->node != b->node)
                return a->node < b->node ? -1 : 1;
        if (r != 0)
                return r;
        if (a->size != b->size)
                return a->size < b->size ? -1 : 1;
        return a->index < b->index ? -1 : a->index > b->index;
}

/* Path of one limit: `reservedMemory[1].limits.memory`. */
static void reservation_path(const struct reservation *one, char buf[static LKG_RULE_PATH_MAX])
{
        char path[64];

        (void)snprintf(path, sizeof(path), "reservedMemory[%zu].limits", one->index);
        (void)lkg_rule_key_path(path, one->key, one->size, buf);
}

static void check_reservation(const struct lkg_rules *rules, const struct reservation *one)
{
        LKG_CLEANUP(lkg_quantity_deinit) struct lkg_quantity quantity = LKG_QUANTITY_INIT;
        char path[LKG_RULE_PATH_MAX];
        struct lkg_span text = lkg_text_of(one->value);

        reservation_path(one, path);
        if (!lkg_name_is_memory(lkg_span(one->key, one->size)))
                lkg_breach(rules, LKG_F_NOT_ONE_OF, path, one->value,
                           "is of a kind that cannot be reserved; want memory or hugepages-SIZE");
        if ((text.size == 0 || lkg_quantity_parse(text.data, text.size, &quantity, NULL) == 0) &&
            lkg_quantity_is_zero(&quantity))
                lkg_breach(rules, LKG_F_OUT_OF_RANGE, path, one->value,
                           "must not be zero; reserve something, or remove the line");
}

static void check_duplicates(const struct lkg_rules *rules, struct reservation *all, size_t n)
{
        if (n > 1)
                qsort(all, n, sizeof(*all), compare_reservations);
        for (size_t i = 1; i < n; i++) {
                const struct reservation *before = &all[i - 1], *one = &all[i];
                char path[LKG_RULE_PATH_MAX], path_before[LKG_RULE_PATH_MAX];

                if (one->node != before->node || one->size != before->size ||
                    memcmp(one->key, before->key, one->size) != 0)
                        continue;
                reservation_path(one, path);
                reservation_path(before, path_before);
                lkg_breach(rules, LKG_F_DUPLICATE, path, one->value,
                           "is the second one for NUMA node %lld; %s is there already", (long long)one->node,
                           path_before);
        }
}

static void check_reserved_memory(const struct lkg_rules *rules)
{
        const struct lkg_value *list = lkg_rule_items(rules, "reservedMemory");
        LKG_CLEANUP(lkg_freep) struct reservation *all = NULL;
        size_t n_items = list ? lkg_value_size(list) : 0, n = 0;

        for (size_t i = 0; i < n_items; i++) {
                const struct lkg_value *limits = lkg_object_get(lkg_list_get(list, i), "limits");

                n += limits ? lkg_value_size(limits) : 0;
        }
        lkg_rule_begin(rules);
        if (n == 0)
                return;
        all = lkg_must(calloc(n, sizeof(*all)));
        n = 0;
        for (size_t i = 0; i < n_items; i++) {
                const struct lkg_value *item = lkg_list_get(list, i),
                                       *limits = lkg_object_get(item, "limits");
                size_t size = limits ? lkg_value_size(limits) : 0;

                for (size_t k = 0; k < size; k++) {
                        struct reservation *one = &all[n++];

                        one->node = lkg_object_int(item, "numaNode");
                        one->index = i;
                        one->value = lkg_map_at(limits, k, &one->key, &one->size);
                        check_reservation(rules, one);
                }
        }
        check_duplicates(rules, all, n);
}

/* ---- the rest ---- */

static void check_taint(const struct lkg_rules *rules, const struct lkg_value *taint, size_t i)
{
        static const struct {
                const char *member;
                int (*parse)(const char *text, size_t size, char *reason);
        } pieces[] = { { "key", lkg_name_qualified }, { "value", lkg_name_label_value } };
        const struct lkg_value *effect = lkg_map_get(taint, "effect"),
                               *time = lkg_map_get(taint, "timeAdded");
        static const char list[] = "registerWithTaints";
        struct lkg_span text = lkg_text_of(effect);
        char path[LKG_RULE_PATH_MAX];

        if (lkg_text_of(lkg_map_get(taint, "key")).size == 0)
                lkg_breach_missing(rules, lkg_rule_item_path(list, i, "key", path), taint,
                                   "one such as example.com/dedicated");
        for (size_t k = 0; k < LKG_ARRAY_SIZE(pieces); k++) {
                const struct lkg_value *piece = lkg_map_get(taint, pieces[k].member);

                if (lkg_text_of(piece).size > 0)
                        lkg_rule_parse_item(rules, LKG_F_BAD_FORMAT, list, i, pieces[k].member, piece,
                                            pieces[k].parse);
        }
        if (text.size > 0 && !lkg_rule_word("NoSchedule, PreferNoSchedule, NoExecute", text.data, text.size))
                lkg_breach(rules, LKG_F_NOT_ONE_OF, lkg_rule_item_path(list, i, "effect", path), effect,
                           "is not known; want one of NoSchedule, PreferNoSchedule, NoExecute");
        if (time)
                lkg_breach(rules, LKG_F_CONTRADICTION, lkg_rule_item_path(list, i, "timeAdded", path), time,
                           "is not allowed here; remove the line");
}

static void check_taints(const struct lkg_rules *rules)
{
        const struct lkg_value *list = lkg_rule_items(rules, "registerWithTaints");

        lkg_rule_begin(rules);
        for (size_t i = 0; list && i < lkg_value_size(list); i++)
                check_taint(rules, lkg_list_get(list, i), i);
}

static void check_allowlist(const struct lkg_rules *rules)
{
        static const char policy[] = "imagePullCredentialsVerificationPolicy",
                          allowlist[] = "preloadedImagesVerificationAllowlist";
        const struct lkg_value_rule patterns = { allowlist, LKG_RULE_PARSE,
                                                 .parse = lkg_schema_release(rules->schema) < 136
                                                                  ? lkg_image_pattern_full
                                                                  : lkg_image_pattern };
        const struct lkg_value *list;

        lkg_rule_begin(rules);
        list = lkg_rule_get(rules, allowlist);
        if (!lkg_rule_gate(rules, "KubeletEnsureSecretPulledImages") || !list || lkg_value_size(list) == 0)
                return;
        if (!lkg_span_is(lkg_rule_text(rules, policy), "NeverVerifyAllowlistedImages"))
                between(rules, allowlist, "cannot go with", policy, "cannot go with",
                        "the list needs NeverVerifyAllowlistedImages");
        lkg_rules_apply(rules, &patterns, 1);
}

/* Two keys mean one sysctl if one of them has slashes where the other one has dots. */
static void check_sysctl(const struct lkg_rules *rules, const struct lkg_value *map, struct lkg_span key,
                         const struct lkg_value *value)
{
        char reason[LKG_REFUSAL_MAX] = "", path[LKG_RULE_PATH_MAX], name[256];

        (void)lkg_rule_key_path("defaultPodSysctls", key.data, key.size, path);
        if (lkg_sysctl_name(key.data, key.size, reason) < 0) {
                lkg_breach(rules, LKG_F_BAD_FORMAT, path, value, "has a key that is %s", reason);
                return;
        }
        (void)snprintf(name, sizeof(name), "%.*s", (int)key.size, key.data);
        lkg_sysctl_normalise(name);
        if (memcmp(name, key.data, key.size) != 0 && lkg_map_get(map, name))
                lkg_breach(rules, LKG_F_DUPLICATE, path, value,
                           "is set a second time, as %s; remove one of them", name);
}

static void check_sysctls(const struct lkg_rules *rules)
{
        const struct lkg_value *map = lkg_rule_items(rules, "defaultPodSysctls");
        size_t n = map ? lkg_value_size(map) : 0;

        lkg_rule_begin(rules);
        if (n == 0 || !lkg_rule_gate(rules, "DefaultPodSysctls"))
                return; /* a row says that it needs the gate */
        for (size_t i = 0; i < n; i++) {
                struct lkg_span key;
                const struct lkg_value *value = lkg_map_at(map, i, &key.data, &key.size);

                check_sysctl(rules, map, key, value);
        }
}

static void check_memory(const struct lkg_rules *rules)
{
        static const char factor[] = "memoryThrottlingFactor", policy[] = "memoryReservationPolicy";
        const double once_default = 0.9; /* up to 1.36, so many documents have it */
        const bool newer = lkg_schema_release(rules->schema) >= 137;
        const struct lkg_value *value, *chosen;
        struct lkg_span word;

        lkg_rule_begin(rules);
        value = lkg_rule_get(rules, factor);
        if (newer && value && lkg_object_float(rules->object, factor) != once_default &&
            !lkg_rule_gate(rules, "MemoryQoS"))
                lkg_breach_gate(rules, LKG_F_NEEDS_GATE, factor, value, "MemoryQoS", turn_on);
        if (!newer && !value && lkg_rule_gate(rules, "MemoryQoS"))
                lkg_breach(rules, LKG_F_REQUIRED, factor, NULL,
                           "is empty and must not be while the feature gate MemoryQoS is on");
        if (value &&
            !(lkg_object_float(rules->object, factor) > 0 && lkg_object_float(rules->object, factor) <= 1))
                lkg_breach(rules, LKG_F_OUT_OF_RANGE, factor, value,
                           "is out of range; want more than 0, at most 1.0");
        if (lkg_schema_release(rules->schema) < 136)
                return;
        lkg_rule_begin(rules);
        chosen = lkg_rule_get(rules, policy);
        word = lkg_text_of(chosen);
        if (!lkg_rule_word("None, TieredReservation", word.data, word.size))
                lkg_breach(rules, LKG_F_NOT_ONE_OF, policy, chosen,
                           "is not known; want one of None, TieredReservation");
        else if (lkg_span_is(word, "TieredReservation") && !lkg_rule_gate(rules, "MemoryQoS"))
                lkg_breach_gate(rules, LKG_F_NEEDS_GATE, policy, chosen, "MemoryQoS", turn_on);
}

/* utilfs.IsPathClean: filepath.Clean leaves the path unchanged. */
static bool is_clean(struct lkg_span path)
{
        struct lkg_span rest = path, part;

        if (lkg_span_is(path, "/"))
                return true;
        if (path.size > 0 && *path.data == '/')
                rest = lkg_span(path.data + 1, path.size - 1);
        while (lkg_span_next(&rest, '/', &part))
                if (part.size == 0 || lkg_span_is(part, ".") || lkg_span_is(part, ".."))
                        return false;
        return true;
}

static void check_pod_logs(const struct lkg_rules *rules)
{
        static const char path[] = "podLogsDir";
        const struct lkg_value *value;
        struct lkg_span text;

        lkg_rule_begin(rules);
        value = lkg_rule_get(rules, path);
        text = lkg_text_of(value);
        if (text.size == 0)
                return;
        if (*text.data != '/') /* it may be clean or not */
                lkg_breach(rules, LKG_F_BAD_FORMAT, path, value, "is relative; want an absolute path");
        else if (!is_clean(text))
                lkg_breach(rules, LKG_F_BAD_FORMAT, path, value,
                           "is not in its normal form; write it without //, ., .. and a final slash");
        for (size_t i = 0; i < text.size; i++) {
                if ((unsigned char)text.data[i] < 0x80)
                        continue;
                lkg_breach(rules, LKG_F_BAD_FORMAT, path, value,
                           "has characters beyond ASCII; the name becomes part of metrics");
                break;
        }
}

/* validation_linux.go, where the first violation hides the others. */
static void check_os(const struct lkg_rules *rules)
{
        static const char ids[] = "userNamespaces.idsPerPod", oom[] = "singleProcessOOMKill";
        const struct lkg_value *count, *kill;
        int64_t n;

        lkg_rule_begin(rules);
        if (rules->host->cgroup == 1 && lkg_rule_bool(rules, "failCgroupV1"))
                lkg_breach(
                        rules, LKG_F_HOST, "failCgroupV1", lkg_rule_get(rules, "failCgroupV1"),
                        "does not fit this host, which has cgroup v1; move it to cgroup v2, or set false");
        lkg_rule_begin(rules);
        kill = lkg_rule_get(rules, oom);
        if (rules->host->cgroup == 1 && kill && !lkg_rule_bool(rules, oom))
                lkg_breach(rules, LKG_F_HOST, oom, kill,
                           "does not fit this host, which has cgroup v1; set true, or remove the line");
        lkg_rule_begin(rules);
        count = lkg_rule_get(rules, ids);
        n = lkg_value_int(count);
        if (count && (n < 65536 || n % 65536 != 0 || n > UINT32_MAX))
                lkg_breach(rules, LKG_F_OUT_OF_RANGE, ids, count,
                           "is out of range; want a multiple of 65536, at most 4294967295");
}

void lkg_rules_kubelet(const struct lkg_rules *rules)
{
        lkg_rules_apply(rules, lkg_kubelet_rules, lkg_n_kubelet_rules);
        check_taints(rules);
        check_reserved_memory(rules);
        check_allowlist(rules);
        check_sysctls(rules);
        lkg_rules_logging(rules);
        check_images(rules);
        check_shutdown(rules);
        check_cgroups(rules);
        check_enforce(rules);
        check_logs(rules);
        check_memory(rules);
        check_pod_logs(rules);
        check_os(rules);
        lkg_rule_hidden_metrics(rules);
}
