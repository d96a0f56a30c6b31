/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Values that pass the kubelet's validation and fail at its start: cmd/kubelet/app (server.go, auth.go), pkg/kubelet
 * (eviction, cm, logs, sysctl, kubelet.go) and component-base cli/flag of 1.33 to 1.37. The kubelet exits a moment after it has accepted the
 * configuration, so these are warnings. What depends on the host is in rules-host.c.
 */
#include "rules.h"

#include <lkg/documents.h>
#include <lkg/tree.h>

#include "values/values.h"

/* ---- eviction ---- */

static bool ends_in_percent(struct lkg_span text)
{
        return text.size > 0 && text.data[text.size - 1] == '%';
}

/* Cut all percent signs at the end of the number. */
static struct lkg_span without_percent(struct lkg_span text)
{
        while (ends_in_percent(text))
                text.size--;
        return text;
}

static int check_signal(struct lkg_span signal, char *reason)
{
        static const char signals[] =
                "memory.available, nodefs.available, nodefs.inodesFree, imagefs.available, "
                "imagefs.inodesFree, containerfs.available, containerfs.inodesFree, "
                "allocatableMemory.available, pid.available";

        if (lkg_rule_word(signals, signal))
                return 0;
        return lkg_refuse(reason,
                          "unknown eviction signal; want memory.available, pid.available, or available or "
                          "inodesFree of nodefs, imagefs, containerfs");
}

/* The component computes with float, not double. */
static int percentage(struct lkg_span value, float *ret, char *reason)
{
        struct lkg_span number = without_percent(value);
        double n;

        if (lkg_float_parse(number.data, number.size, 32, &n, NULL) < 0)
                return lkg_refuse(reason, "not a percentage; want one such as 10%%");
        *ret = (float)n / 100;
        return 0;
}

/* Check for a quantity whose sign is at least @min_sign: -1, 0 or 1. */
static int check_quantity(struct lkg_span value, int min_sign, char *reason)
{
        LKG_CLEANUP(lkg_quantity_deinit) struct lkg_quantity quantity = LKG_QUANTITY_INIT;
        int r = lkg_quantity_parse(value.data, value.size, &quantity, reason);

        if (r < 0 || lkg_quantity_sign(&quantity) >= min_sign)
                return r;
        return lkg_refuse(reason, min_sign > 0 ? "must be greater than zero" : "must not be negative");
}

/* Is an eviction threshold switched off? */
static bool is_off(struct lkg_span value)
{
        return lkg_span_is(value, "0%") || lkg_span_is(value, "100%");
}

int lkg_startup_amount(struct lkg_span value, double capacity, double *ret)
{
        LKG_CLEANUP(lkg_quantity_deinit) struct lkg_quantity quantity = LKG_QUANTITY_INIT;
        float part = 0;
        int r;

        *ret = 0;
        if (is_off(value))
                return 0;
        if (ends_in_percent(value)) {
                r = capacity > 0 ? percentage(value, &part, NULL) : -EINVAL;
                *ret = (double)(int64_t)(capacity * (double)part);
                return r;
        }
        r = lkg_quantity_parse(value.data, value.size, &quantity, NULL);
        if (r == 0)
                *ret = lkg_quantity_double(&quantity);
        return r;
}

static int check_threshold(struct lkg_span signal, struct lkg_span value, char *reason)
{
        float part = 0;
        int r = check_signal(signal, reason);

        if (r < 0 || is_off(value))
                return r;
        if (!ends_in_percent(value))
                return check_quantity(value, 1, reason);
        r = percentage(value, &part, reason);
        if (r == 0 && (part < 0 || part > 1))
                r = lkg_refuse(reason, "not between 0%% and 100%%");
        return r;
}

static int check_reclaim(struct lkg_span signal, struct lkg_span value, char *reason)
{
        float part = 0;
        int r = check_signal(signal, reason);

        if (r < 0)
                return r;
        if (!ends_in_percent(value))
                return check_quantity(value, 0, reason);
        r = percentage(value, &part, reason);
        if (r == 0 && part <= 0)
                r = lkg_refuse(reason, "must be greater than 0%%");
        return r;
}

static int check_grace_period(struct lkg_span signal, struct lkg_span value, char *reason)
{
        int64_t ns = 0;
        int r = check_signal(signal, reason);

        if (r == 0)
                r = lkg_duration_parse(value.data, value.size, &ns, reason);
        if (r == 0 && ns < 0)
                r = lkg_refuse(reason, "must not be negative");
        return r;
}

/* ---- resources ---- */

static int check_reserved(struct lkg_span resource, struct lkg_span value, char *reason)
{
        if (!lkg_rule_word("cpu, memory, ephemeral-storage, pid", resource))
                return lkg_refuse(reason, "cannot be reserved; want cpu, memory, ephemeral-storage or pid");
        return check_quantity(value, 0, reason);
}

static int check_qos(struct lkg_span resource, struct lkg_span value, char *reason)
{
        struct lkg_span number = without_percent(value);
        int64_t n;

        if (!lkg_span_is(resource, "memory"))
                return lkg_refuse(reason, "cannot be reserved; want memory");
        if (ends_in_percent(value) && lkg_int_parse(number.data, number.size, 10, 64, &n, NULL) == 0 &&
            n >= 0 && n <= 100)
                return 0;
        return lkg_refuse(reason, "not a whole percentage between 0%% and 100%%");
}

static int check_log_size(struct lkg_span key, struct lkg_span value, char *reason)
{
        LKG_CLEANUP(lkg_quantity_deinit) struct lkg_quantity quantity = LKG_QUANTITY_INIT;
        int r = lkg_quantity_parse(value.data, value.size, &quantity, reason);
        int64_t bytes;

        (void)key;
        if (r < 0 || lkg_quantity_int64(&quantity, &bytes))
                return r;
        return lkg_refuse(reason, "not a whole number of bytes; want one such as 10Mi");
}

/* ---- single values ---- */

/* Go 1.26, crypto/tls, secure and insecure ones; the last two names are kept by component-base. */
static const char cipher_suites[] = "TLS_AES_128_GCM_SHA256, "
                                    "TLS_AES_256_GCM_SHA384, "
                                    "TLS_CHACHA20_POLY1305_SHA256, "
                                    "TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA, "
                                    "TLS_ECDHE_ECDSA_WITH_AES_256_CBC_SHA, "
                                    "TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA, "
                                    "TLS_ECDHE_RSA_WITH_AES_256_CBC_SHA, "
                                    "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256, "
                                    "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384, "
                                    "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256, "
                                    "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384, "
                                    "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256, "
                                    "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256, "
                                    "TLS_RSA_WITH_RC4_128_SHA, "
                                    "TLS_RSA_WITH_3DES_EDE_CBC_SHA, "
                                    "TLS_RSA_WITH_AES_128_CBC_SHA, "
                                    "TLS_RSA_WITH_AES_256_CBC_SHA, "
                                    "TLS_RSA_WITH_AES_128_CBC_SHA256, "
                                    "TLS_RSA_WITH_AES_128_GCM_SHA256, "
                                    "TLS_RSA_WITH_AES_256_GCM_SHA384, "
                                    "TLS_ECDHE_ECDSA_WITH_RC4_128_SHA, "
                                    "TLS_ECDHE_RSA_WITH_RC4_128_SHA, "
                                    "TLS_ECDHE_RSA_WITH_3DES_EDE_CBC_SHA, "
                                    "TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA256, "
                                    "TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA256, "
                                    "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305, "
                                    "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305";

static const char negative[] = "a negative one ends the kubelet at its start; want a time such as 1m";

static const struct lkg_value_rule table[] = {
        { "address", LKG_RULE_PARSE, .parse = lkg_ip_check, .flags = LKG_RULE_LATER },
        { "allowedUnsafeSysctls", LKG_RULE_PARSE, .parse = lkg_sysctl_pattern_136,
          .flags = LKG_RULE_LATER | LKG_RULE_EMPTY_OK, .until = 136 },
        { "allowedUnsafeSysctls", LKG_RULE_PARSE, .parse = lkg_sysctl_pattern,
          .flags = LKG_RULE_LATER | LKG_RULE_EMPTY_OK, .since = 137 },
        { "configMapAndSecretChangeDetectionStrategy", LKG_RULE_WORD, .words = "Get, Cache, Watch",
          .flags = LKG_RULE_LATER },
        { "topologyManagerPolicyOptions", LKG_RULE_UNSET, "turn the gate on, or remove the options",
          .gate = "TopologyManagerPolicyOptions", .flags = LKG_RULE_LATER | LKG_RULE_GATE_OFF },
        { "evictionHard", LKG_RULE_ENTRY, .entry = check_threshold },
        { "evictionSoft", LKG_RULE_ENTRY, .entry = check_threshold },
        { "evictionSoftGracePeriod", LKG_RULE_ENTRY, .entry = check_grace_period },
        { "evictionMinimumReclaim", LKG_RULE_ENTRY, .entry = check_reclaim },
        { "systemReserved", LKG_RULE_ENTRY, .entry = check_reserved },
        { "kubeReserved", LKG_RULE_ENTRY, .entry = check_reserved },
        { "qosReserved", LKG_RULE_ENTRY, .entry = check_qos },
        { "tlsCipherSuites", LKG_RULE_ENTRY,
          "unknown cipher suite; want one such as TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256",
          .words = cipher_suites },
        /* P-256, P-384, P-521, X25519; with ML-KEM: P-256, X25519, P-384. Go 1.26 */
        { "tlsCurvePreferences", LKG_RULE_ENTRY, "unknown key exchange; want one such as 29 (X25519)",
          .words = "23, 24, 25, 29, 4587, 4588, 4589" },
        { "tlsMinVersion", LKG_RULE_ENTRY, "unknown version; want VersionTLS12 or VersionTLS13 (or 10, 11)",
          .words = "VersionTLS10, VersionTLS11, VersionTLS12, VersionTLS13", .flags = LKG_RULE_EMPTY_OK },
        { "containerLogMaxSize", LKG_RULE_ENTRY, .entry = check_log_size },
        { "authorization.mode", LKG_RULE_ENTRY, "unknown mode; want Webhook or AlwaysAllow",
          .words = "AlwaysAllow, Webhook" },
        { "cpuManagerPolicy", LKG_RULE_ENTRY, "unknown policy; want none or static",
          .words = "none, static" },
        { "memoryManagerPolicy", LKG_RULE_ENTRY, "unknown policy; want None or Static",
          .words = "None, Static" },
        /* zero stands for the default; NewMainKubelet() refuses a negative one */
        { "syncFrequency", LKG_RULE_DURATION, negative, .max = INT64_MAX, .flags = LKG_RULE_LATER },
        /* with which the ticker of static pods panics */
        { "fileCheckFrequency", LKG_RULE_DURATION, negative, .max = INT64_MAX, .flags = LKG_RULE_LATER },
};

/* ---- more than one value ---- */

static void check_soft_eviction(const struct lkg_rules *rules)
{
        const struct lkg_value *soft = lkg_rule_each(rules, "evictionSoft"),
                               *periods = lkg_rule_get(rules, "evictionSoftGracePeriod");

        for (struct lkg_member m = { 0 }; lkg_value_next(soft, &m);)
                if (!is_off(lkg_text_of(m.value)) && !(periods && lkg_map_find(periods, m.key)))
                        lkg_breach(rules, LKG_F_REFUSED_LATER, LKG_KEY_PATH("evictionSoft", m.key), m.value,
                                   "has no grace period; add the signal to evictionSoftGracePeriod");
}

/* Does the map @path reserve some of @resource? */
static bool reserves(const struct lkg_rules *rules, const char *path, const char *resource)
{
        LKG_CLEANUP(lkg_quantity_deinit) struct lkg_quantity quantity = LKG_QUANTITY_INIT;
        const struct lkg_value *map = lkg_rule_get(rules, path);
        struct lkg_span text = lkg_text_of(map ? lkg_map_get(map, resource) : NULL);

        return text.size && lkg_quantity_parse(text.data, text.size, &quantity, NULL) == 0 &&
               !lkg_quantity_is_zero(&quantity);
}

static void check_static_policies(const struct lkg_rules *rules)
{
        static const char cpu[] = "cpuManagerPolicy", memory[] = "memoryManagerPolicy";
        const struct lkg_value *value = lkg_rule_about(rules, cpu), *reserved, *eviction;

        if (lkg_span_is(lkg_text_of(value), "static") &&
            lkg_rule_text(rules, "reservedSystemCPUs").size == 0 &&
            !reserves(rules, "systemReserved", "cpu") && !reserves(rules, "kubeReserved", "cpu"))
                lkg_breach(rules, LKG_F_REFUSED_LATER, cpu, value,
                           "needs CPUs that no container gets; set reservedSystemCPUs, or cpu in "
                           "systemReserved or kubeReserved");
        value = lkg_rule_about(rules, memory);
        reserved = lkg_rule_get(rules, "reservedMemory");
        eviction = lkg_rule_get(rules, "evictionHard");
        if (lkg_span_is(lkg_text_of(value), "Static") && (!reserved || lkg_value_size(reserved) == 0) &&
            eviction && lkg_map_get(eviction, "memory.available"))
                lkg_breach(rules, LKG_F_REFUSED_LATER, memory, value,
                           "needs reservedMemory, in sum as much memory as kubeReserved, systemReserved and "
                           "evictionHard name");
}

static void check_swap(const struct lkg_rules *rules)
{
        static const char path[] = "memorySwap.swapBehavior";
        const struct lkg_value *value = lkg_rule_about(rules, path);

        if (rules->host->cgroup == 1 && lkg_rule_gate(rules, "NodeSwap") &&
            lkg_span_is(lkg_text_of(value), "LimitedSwap"))
                lkg_breach(rules, LKG_F_REFUSED_LATER, path, value,
                           "needs cgroup v2, and this host has cgroup v1; want NoSwap");
}

/* ---- options of the CPU and topology managers ---- */

#define EVER LKG_RELEASE_MAX

static const char across_cores[] = "distribute-cpus-across-cores",
                  across_numa[] = "distribute-cpus-across-numa", full_cpus[] = "full-pcpus-only",
                  uncore[] = "prefer-align-cpus-by-uncorecache";

struct manager {
        const char *policy, *options;
        const char *alpha_gate, *beta_gate;
        struct option {
                const char *name;                 /* NULL = no more */
                unsigned alpha_until, beta_until; /* the last release as such; 0 = never */
                bool number;                      /* of NUMA nodes, at least 8; else true or false */
        } known[8];
};

static const struct manager cpu_manager = {
        "cpuManagerPolicy",
        "cpuManagerPolicyOptions",
        "CPUManagerPolicyAlphaOptions",
        "CPUManagerPolicyBetaOptions",
        { { full_cpus },
          { across_numa, 0, EVER },
          { "align-by-socket", EVER, EVER },
          { across_cores, EVER, EVER },
          { "strict-cpu-reservation", 0, 134 },
          { uncore, 133, 135 } },
};

static const struct manager topology_manager = {
        "topologyManagerPolicy",
        "topologyManagerPolicyOptions",
        "TopologyManagerPolicyAlphaOptions",
        "TopologyManagerPolicyBetaOptions",
        { { "prefer-closest-numa-nodes" }, { "max-allowable-numa-nodes", 0, 134, true } },
};

static void check_option(const struct lkg_rules *rules, const struct manager *manager,
                         const struct lkg_member *m)
{
        const char *path = LKG_KEY_PATH(manager->options, m->key), *gate = NULL;
        const struct option *option = manager->known;
        unsigned release = rules->release;
        struct lkg_span text = lkg_text_of(m->value);
        int64_t n = 0;
        bool on;

        (void)lkg_rule_about(rules, manager->policy);
        while (option->name && !lkg_span_is(m->key, option->name))
                option++;
        if (!option->name) {
                lkg_breach(rules, LKG_F_REFUSED_LATER, path, m->value,
                           "belongs to no option of this release; remove it");
                return;
        }
        if (release <= option->beta_until)
                gate = release <= option->alpha_until ? manager->alpha_gate : manager->beta_gate;
        if (gate && !lkg_rule_gate(rules, gate))
                lkg_breach_gate(rules, LKG_F_REFUSED_LATER, path, m->value, gate,
                                "turn it on, or remove the option");
        if (option->number && (lkg_int_parse(text.data, text.size, 10, 64, &n, NULL) < 0 || n < 8))
                lkg_breach(rules, LKG_F_REFUSED_LATER, path, m->value,
                           "is not right; want a number, 8 or more");
        if (!option->number && lkg_bool_parse(text.data, text.size, &on, NULL) < 0)
                lkg_breach(rules, LKG_F_REFUSED_LATER, path, m->value,
                           "is not right; want \"true\" or \"false\"");
}

/* Without a manager (the policy none) the topology manager ignores its options. */
static void check_options(const struct lkg_rules *rules, const struct manager *manager)
{
        const struct lkg_value *options = lkg_rule_each(rules, manager->options);
        bool off = lkg_span_is(lkg_rule_text(rules, manager->policy), "none");

        if (off && manager == &cpu_manager && options && lkg_value_size(options) > 0)
                lkg_breach_pair(rules, LKG_F_REFUSED_LATER, manager->options, "cannot go with",
                                manager->policy, "cannot go with",
                                "remove the options, or want the policy static");
        for (struct lkg_member m = { 0 }; !off && lkg_value_next(options, &m);)
                check_option(rules, manager, &m);
}

/* The option @name as one of two that cannot go together; without a value if it is not on. */
static struct lkg_operand option_that_is_on(const struct lkg_value *options, const char *name)
{
        const struct lkg_value *value = lkg_map_get(options, name);
        struct lkg_span text = lkg_text_of(value);
        bool on = false;

        (void)lkg_bool_parse(text.data, text.size, &on, NULL);
        return (struct lkg_operand){ name, on ? value : NULL, "cannot go with" };
}

static void check_exclusive_options(const struct lkg_rules *rules)
{
        static const char *const pairs[][2] = { { full_cpus, across_cores },
                                                { across_numa, across_cores },
                                                { uncore, across_cores },
                                                { uncore, across_numa } };
        const struct lkg_value *options = lkg_rule_each(rules, cpu_manager.options);

        if (!options || lkg_span_is(lkg_rule_text(rules, cpu_manager.policy), "none"))
                return;
        for (size_t i = 0; i < LKG_ARRAY_SIZE(pairs); i++) {
                struct lkg_operand a = option_that_is_on(options, pairs[i][0]),
                                   b = option_that_is_on(options, pairs[i][1]);

                a.path = LKG_KEY_PATH(cpu_manager.options, lkg_span(a.path, strlen(a.path)));
                b.path = LKG_KEY_PATH(cpu_manager.options, lkg_span(b.path, strlen(b.path)));
                if (a.value && b.value)
                        lkg_breach_between(rules, LKG_F_REFUSED_LATER, &a, &b, "keep one of them");
        }
}

/* ---- mistakes that do not stop the component ---- */

/* Of a field that may contain credentials, without them. */
static void advise(const struct lkg_rules *rules, const char *path, const struct lkg_value *value,
                   const char *consequence, const char *reason)
{
        LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf masked = LKG_BUF_INIT;
        struct lkg_span text = lkg_text_of(value), shown = text;

        if (lkg_name_secrecy(path, strlen(path)) != LKG_PUBLIC) {
                (void)lkg_mask_url(text.data, text.size, &masked);
                shown = lkg_span(lkg_buf_text(&masked), masked.size);
        }
        lkg_report_add(rules->report, LKG_WARNING, LKG_F_BAD_FORMAT, LKG_AT(value),
                       "%s: %s is not right, and %s: %s", path, LKG_QUOTE(shown), consequence, reason);
}

static void check_ignored(const struct lkg_rules *rules)
{
        const struct lkg_value *url = lkg_object_get(rules->object, "staticPodURL");
        char reason[LKG_REFUSAL_MAX];
        struct lkg_span text = lkg_text_of(url);
        struct lkg_ip ip;

        for (struct lkg_member m = { 0 }; lkg_value_next(lkg_object_get(rules->object, "clusterDNS"), &m);) {
                struct lkg_span server = lkg_text_of(m.value);

                if (lkg_ip_parse(server.data, server.size, &ip, reason) < 0)
                        advise(rules, LKG_ITEM_PATH("clusterDNS", m.i, NULL), m.value,
                               "the component leaves it out", lkg_reason(server, reason));
        }
        if (text.size > 0 && lkg_url_parse(text.data, text.size, NULL, reason) < 0)
                advise(rules, "staticPodURL", url, "the component cannot fetch it", reason);
}

/* newCgroupCommon (pkg/kubelet/cm) and NodeAllocatableRoot check only whether it is `systemd`. */
static void check_cgroup_driver(const struct lkg_rules *rules)
{
        const struct lkg_value *value = lkg_object_get(rules->object, "cgroupDriver");

        if (lkg_text_of(value).size > 0 && !lkg_rule_word("systemd, cgroupfs", lkg_text_of(value)))
                lkg_report_add(
                        rules->report, LKG_WARNING, LKG_F_WORD_UNKNOWN, LKG_AT(value),
                        "cgroupDriver: %s is not a driver, and the component takes it for cgroupfs unless "
                        "the container runtime names another; want systemd or cgroupfs",
                        LKG_QUOTE(lkg_text_of(value)));
}

void lkg_rules_later(const struct lkg_rules *rules)
{
        if (!rules->kubelet)
                return;
        lkg_rules_apply(rules, table, LKG_ARRAY_SIZE(table));
        check_static_policies(rules);
        check_soft_eviction(rules);
        check_swap(rules);
        check_options(rules, &cpu_manager);
        check_options(rules, &topology_manager);
        check_exclusive_options(rules);
        check_ignored(rules);
        check_cgroup_driver(rules);
}
