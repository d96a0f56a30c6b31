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
        { "memoryReservationPolicy", LKG_RULE_WORD, .words = "None, TieredReservation", .since = 136 },
        { "memoryReservationPolicy", LKG_RULE_NOT, turn_on, .words = "TieredReservation",
          .gate = "MemoryQoS", .flags = LKG_RULE_GATE_OFF, .since = 136 },
        { "preloadedImagesVerificationAllowlist", LKG_RULE_PARSE, .parse = lkg_image_pattern_full,
          .gate = "KubeletEnsureSecretPulledImages", .flags = LKG_RULE_EMPTY_OK, .until = 135 },
        { "preloadedImagesVerificationAllowlist", LKG_RULE_PARSE, .parse = lkg_image_pattern,
          .gate = "KubeletEnsureSecretPulledImages", .flags = LKG_RULE_EMPTY_OK, .since = 136 },
};
const size_t lkg_n_kubelet_rules = LKG_ARRAY_SIZE(lkg_kubelet_rules);

/* ---- two fields ---- */

static void between(const struct lkg_rules *rules, const char *a, const char *a_says, const char *b,
                    const char *b_says, const char *want)
{
        lkg_breach_pair(rules, LKG_F_CONTRADICTION, a, a_says, b, b_says, want);
}

/* Two fields of which only one may be there. */
static void exclusive(const struct lkg_rules *rules, const char *a, const char *b, const char *want)
{
        between(rules, a, "cannot go with", b, "cannot go with", want);
}

static void check_images(const struct lkg_rules *rules)
{
        int64_t minimum, maximum;

        if (lkg_value_int(lkg_rule_about(rules, "imageGCLowThresholdPercent")) >=
            lkg_rule_int(rules, "imageGCHighThresholdPercent"))
                between(rules, "imageGCLowThresholdPercent", "must be less than",
                        "imageGCHighThresholdPercent", "must be greater than", NULL);
        minimum = lkg_value_duration(lkg_rule_about(rules, "imageMinimumGCAge"));
        maximum = lkg_rule_duration(rules, "imageMaximumGCAge");
        if (maximum > 0 && maximum <= minimum)
                between(rules, "imageMaximumGCAge", "must be greater than", "imageMinimumGCAge",
                        "must be less than", NULL);
        lkg_rule_begin(rules);
        if (lkg_rule_bool(rules, "serializeImagePulls") && lkg_rule_int(rules, "maxParallelImagePulls") > 1)
                exclusive(rules, "maxParallelImagePulls", "serializeImagePulls",
                          "set serializeImagePulls to false for more than one at a time");
}

static void check_shutdown(const struct lkg_rules *rules)
{
        static const char whole[] = "shutdownGracePeriod", critical[] = "shutdownGracePeriodCriticalPods",
                          by_priority[] = "shutdownGracePeriodByPodPriority";
        int64_t whole_ns = lkg_value_duration(lkg_rule_about(rules, whole)),
                critical_ns = lkg_rule_duration(rules, critical);
        const struct lkg_value *list;

        if (lkg_rule_gate(rules, "GracefulNodeShutdown") && critical_ns > whole_ns)
                between(rules, critical, "must not be more than", whole, "must not be less than", NULL);
        list = lkg_rule_get(rules, by_priority);
        if (!lkg_rule_gate(rules, "GracefulNodeShutdownBasedOnPodPriority") || !list ||
            lkg_value_size(list) == 0)
                return;
        if (whole_ns > 0)
                exclusive(rules, by_priority, whole, "keep one of them");
        else if (critical_ns > 0)
                exclusive(rules, by_priority, critical, "keep one of them");
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
                        exclusive(rules, "reservedSystemCPUs", cgroups[i], "keep one of them");
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

static const char enforce[] = "enforceNodeAllocatable";

static const struct enforcement {
        const char *name;
        const char *cgroup;  /* the field that it needs */
        const char *without; /* another one that cannot stand before it */
} enforcements[] = {
        { "pods" },
        { "system-reserved", "systemReservedCgroup" },
        { "system-reserved-compressible", "systemReservedCgroup", "system-reserved" },
        { "kube-reserved", "kubeReservedCgroup" },
        { "kube-reserved-compressible", "kubeReservedCgroup", "kube-reserved" },
        { "none" },
};

/* The last item of the list before @end that is @text. */
static const struct lkg_value *item_before(const struct lkg_value *list, size_t end, struct lkg_span text)
{
        const struct lkg_value *found = NULL;

        for (struct lkg_member m = { 0 }; m.n < end && lkg_value_next(list, &m);)
                if (lkg_span_equal(lkg_text_of(m.value), text))
                        found = m.value;
        return found;
}

static void check_enforcement(const struct lkg_rules *rules, const char *path, const struct lkg_value *item,
                              const struct enforcement *what, bool alone)
{
        struct lkg_operand entry = { path, item, "needs" }, other;

        if (strcmp(what->name, "none") == 0) {
                if (!alone)
                        lkg_breach(rules, LKG_F_CONTRADICTION, path, item,
                                   "must be the only entry; remove it or the others");
                return;
        }
        lkg_rule_begin(rules);
        if (what->cgroup && lkg_rule_text(rules, what->cgroup).size == 0) {
                other = (struct lkg_operand){ what->cgroup, lkg_rule_get(rules, what->cgroup),
                                              "must be set for" };
                lkg_breach_between(rules, LKG_F_REQUIRED, &entry, &other,
                                   "name the cgroup, or remove the entry");
        }
        other = (struct lkg_operand){ "cgroupsPerQOS", lkg_rule_about(rules, "cgroupsPerQOS"),
                                      "must be true for" };
        if (!lkg_rule_bool(rules, other.path))
                lkg_breach_between(rules, LKG_F_CONTRADICTION, &entry, &other,
                                   "set cgroupsPerQOS to true, or enforceNodeAllocatable to [none]");
}

static const struct enforcement *enforcement_of(const struct lkg_value *item)
{
        for (size_t i = 0; i < LKG_ARRAY_SIZE(enforcements); i++)
                if (lkg_span_is(lkg_text_of(item), enforcements[i].name))
                        return &enforcements[i];
        return NULL;
}

static void check_enforce(const struct lkg_rules *rules)
{
        const struct lkg_value *list = lkg_object_get(rules->object, enforce);
        size_t n = list ? lkg_value_size(list) : 0;

        for (struct lkg_member m = { 0 }; lkg_value_next(list, &m);) {
                const struct enforcement *what = enforcement_of(m.value);
                const char *path = LKG_ITEM_PATH(enforce, m.i, NULL);

                lkg_rule_begin(rules);
                if (!what)
                        lkg_breach(rules, LKG_F_NOT_ONE_OF, path, m.value,
                                   "is not known; want pods, system-reserved, system-reserved-compressible, "
                                   "kube-reserved, kube-reserved-compressible or none");
                else if (item_before(list, m.i, lkg_text_of(m.value)))
                        lkg_breach(rules, LKG_F_DUPLICATE, path, m.value, "stands there twice; remove one");
                else
                        check_enforcement(rules, path, m.value, what, n == 1);
        }
        for (size_t i = 0; i < LKG_ARRAY_SIZE(enforcements); i++) {
                const struct enforcement *what = &enforcements[i];
                const char *names[] = { what->without ? what->without : "", what->name };
                struct lkg_operand sides[2];

                for (size_t k = 0; k < 2; k++)
                        sides[k] = (struct lkg_operand){
                                enforce, item_before(list, n, lkg_span(names[k], strlen(names[k]))),
                                "cannot go with"
                        };
                if (what->without && sides[0].value && sides[1].value)
                        lkg_breach_between(rules, LKG_F_CONTRADICTION, &sides[0], &sides[1],
                                           "keep one of them");
        }
}

/* ---- reservedMemory ---- */

static const char reserved_memory[] = "reservedMemory";

struct reservation {
        int64_t node;
        size_t index;
        struct lkg_span key;
        const struct lkg_value *value;
};

static int compare_reservations(const void *one, const void *two)
{
        const struct reservation *a = one, *b = two;
        size_t n = a->key.size < b->key.size ? a->key.size : b->key.size;
        int r = memcmp(a->key.data, b->key.data, n);

        if (a->node != b->node)
                return a->node < b->node ? -1 : 1;
        if (r != 0)
                return r;
        if (a->key.size != b->key.size)
                return a->key.size < b->key.size ? -1 : 1;
        return a->index < b->index ? -1 : a->index > b->index;
}

/* Path of one limit: `reservedMemory[1].limits.memory`. */
#define LIMIT_PATH(one) LKG_KEY_PATH(LKG_ITEM_PATH(reserved_memory, (one)->index, "limits"), (one)->key)

static void check_reservation(const struct lkg_rules *rules, const struct reservation *one)
{
        LKG_CLEANUP(lkg_quantity_deinit) struct lkg_quantity quantity = LKG_QUANTITY_INIT;
        const char *path = LIMIT_PATH(one);
        struct lkg_span text = lkg_text_of(one->value);

        if (!lkg_name_is_memory(one->key))
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
        for (size_t i = 1; i < n; i++)
                if (all[i].node == all[i - 1].node && lkg_span_equal(all[i].key, all[i - 1].key))
                        lkg_breach(rules, LKG_F_DUPLICATE, LIMIT_PATH(&all[i]), all[i].value,
                                   "is the second one for NUMA node %lld; %s is there already",
                                   (long long)all[i].node, LIMIT_PATH(&all[i - 1]));
}

static void check_reserved_memory(const struct lkg_rules *rules)
{
        const struct lkg_value *list = lkg_rule_each(rules, reserved_memory);
        LKG_CLEANUP(lkg_freep) struct reservation *all = NULL;
        size_t n = 0, allocated = 0;

        for (struct lkg_member item = { 0 }; lkg_value_next(list, &item);)
                for (struct lkg_member m = { 0 };
                     lkg_value_next(lkg_object_get(item.value, "limits"), &m);) {
                        lkg_need(LKG_RESERVE(all, n, allocated));
                        all[n] = (struct reservation){ lkg_object_int(item.value, "numaNode"), item.i, m.key,
                                                       m.value };
                        check_reservation(rules, &all[n++]);
                }
        check_duplicates(rules, all, n);
}

/* ---- the rest ---- */

static void check_taint(const struct lkg_rules *rules, const struct lkg_value *taint, size_t i)
{
        static const char list[] = "registerWithTaints",
                          effects[] = "NoSchedule, PreferNoSchedule, NoExecute";
        static const struct {
                const char *member;
                int (*parse)(const char *text, size_t size, char *reason);
        } pieces[] = { { "key", lkg_name_qualified }, { "value", lkg_name_label_value } };
        const struct lkg_value *effect = lkg_map_get(taint, "effect"),
                               *time = lkg_map_get(taint, "timeAdded");

        if (lkg_text_of(lkg_map_get(taint, "key")).size == 0)
                lkg_breach_missing(rules, LKG_ITEM_PATH(list, i, "key"), taint,
                                   "one such as example.com/dedicated");
        for (size_t k = 0; k < LKG_ARRAY_SIZE(pieces); k++) {
                const struct lkg_value *piece = lkg_map_get(taint, pieces[k].member);

                if (lkg_text_of(piece).size > 0)
                        lkg_rule_parse_item(rules, LKG_F_BAD_FORMAT, list, i, pieces[k].member, piece,
                                            pieces[k].parse);
        }
        if (lkg_text_of(effect).size > 0 && !lkg_rule_word(effects, lkg_text_of(effect)))
                lkg_breach(rules, LKG_F_NOT_ONE_OF, LKG_ITEM_PATH(list, i, "effect"), effect,
                           "is not known; want one of %s", effects);
        if (time)
                lkg_breach(rules, LKG_F_CONTRADICTION, LKG_ITEM_PATH(list, i, "timeAdded"), time,
                           "is not allowed here; remove the line");
}

static void check_taints(const struct lkg_rules *rules)
{
        const struct lkg_value *list = lkg_rule_each(rules, "registerWithTaints");

        for (struct lkg_member m = { 0 }; lkg_value_next(list, &m);)
                check_taint(rules, m.value, m.i);
}

static void check_allowlist(const struct lkg_rules *rules)
{
        static const char policy[] = "imagePullCredentialsVerificationPolicy",
                          allowlist[] = "preloadedImagesVerificationAllowlist";
        const struct lkg_value *list = lkg_rule_about(rules, allowlist);

        if (lkg_rule_gate(rules, "KubeletEnsureSecretPulledImages") && list && lkg_value_size(list) > 0 &&
            !lkg_rule_is(rules, policy, "NeverVerifyAllowlistedImages"))
                exclusive(rules, allowlist, policy, "the list needs NeverVerifyAllowlistedImages");
}

/* Two keys mean one sysctl if one of them has slashes where the other one has dots. */
static void check_sysctl(const struct lkg_rules *rules, const struct lkg_value *map,
                         const struct lkg_member *m)
{
        const char *path = LKG_KEY_PATH("defaultPodSysctls", m->key);
        char reason[LKG_REFUSAL_MAX] = "", name[256];

        if (lkg_sysctl_name(m->key.data, m->key.size, reason) < 0) {
                lkg_breach(rules, LKG_F_BAD_FORMAT, path, m->value, "has a key that is %s", reason);
                return;
        }
        (void)snprintf(name, sizeof(name), "%.*s", (int)m->key.size, m->key.data);
        lkg_sysctl_normalise(name);
        if (!lkg_span_is(m->key, name) && lkg_map_get(map, name))
                lkg_breach(rules, LKG_F_DUPLICATE, path, m->value,
                           "is set a second time, as %s; remove one of them", name);
}

static void check_sysctls(const struct lkg_rules *rules)
{
        const struct lkg_value *map = lkg_rule_each(rules, "defaultPodSysctls");

        if (!map || !lkg_rule_gate(rules, "DefaultPodSysctls"))
                return; /* a row says that it needs the gate */
        for (struct lkg_member m = { 0 }; lkg_value_next(map, &m);)
                check_sysctl(rules, map, &m);
}

static void check_memory(const struct lkg_rules *rules)
{
        static const char factor[] = "memoryThrottlingFactor";
        const double once = 0.9; /* the default up to 1.36, so many documents have it */
        const unsigned release = rules->release;
        const struct lkg_value *value = lkg_rule_about(rules, factor);
        const double n = lkg_object_float(rules->object, factor);

        if (release >= 137 && value && n != once && !lkg_rule_gate(rules, "MemoryQoS"))
                lkg_breach_gate(rules, LKG_F_NEEDS_GATE, factor, value, "MemoryQoS", turn_on);
        if (release < 137 && !value && lkg_rule_gate(rules, "MemoryQoS"))
                lkg_breach(rules, LKG_F_REQUIRED, factor, NULL,
                           "is empty and must not be while the feature gate MemoryQoS is on");
        if (value && !(n > 0 && n <= 1))
                lkg_breach(rules, LKG_F_OUT_OF_RANGE, factor, value,
                           "is out of range; want more than 0, at most 1.0");
}

static void check_pod_logs(const struct lkg_rules *rules)
{
        static const char path[] = "podLogsDir";
        const struct lkg_value *value = lkg_rule_about(rules, path);
        struct lkg_span text = lkg_text_of(value);
        bool ascii = true;

        if (text.size == 0)
                return;
        if (*text.data != '/') /* it may be clean or not */
                lkg_breach(rules, LKG_F_BAD_FORMAT, path, value, "is relative; want an absolute path");
        else if (!lkg_span_is(text, "/") && !lkg_path_is_clean(text)) /* utilfs.IsPathClean */
                lkg_breach(rules, LKG_F_BAD_FORMAT, path, value,
                           "is not in its normal form; write it without //, ., .. and a final slash");
        for (size_t i = 0; i < text.size; i++)
                ascii &= (unsigned char)text.data[i] < 0x80;
        if (!ascii)
                lkg_breach(rules, LKG_F_BAD_FORMAT, path, value,
                           "has characters beyond ASCII; the name becomes part of metrics");
}

/* validation_linux.go, where the first violation hides the others. */
static void check_os(const struct lkg_rules *rules)
{
        static const char ids[] = "userNamespaces.idsPerPod", oom[] = "singleProcessOOMKill",
                          fail[] = "failCgroupV1";
        const struct lkg_value *value = lkg_rule_about(rules, fail);
        int64_t n;

        if (rules->host->cgroup == 1 && lkg_rule_bool(rules, fail))
                lkg_breach(
                        rules, LKG_F_HOST, fail, value,
                        "does not fit this host, which has cgroup v1; move it to cgroup v2, or set false");
        value = lkg_rule_about(rules, oom);
        if (rules->host->cgroup == 1 && value && !lkg_rule_bool(rules, oom))
                lkg_breach(rules, LKG_F_HOST, oom, value,
                           "does not fit this host, which has cgroup v1; set true, or remove the line");
        value = lkg_rule_about(rules, ids);
        n = lkg_value_int(value);
        if (value && (n < 65536 || n % 65536 != 0 || n > UINT32_MAX))
                lkg_breach(rules, LKG_F_OUT_OF_RANGE, ids, value,
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
