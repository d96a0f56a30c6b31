/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Values that pass the kubelet's validation and fail at its start: cmd/kubelet/app (server.go, auth.go), pkg/kubelet
 * (eviction, cm, logs, sysctl, kubelet.go) and component-base cli/flag of 1.33 to 1.37. The kubelet exits a moment after it has accepted the
 * configuration, so these are warnings. What depends on the host is in rules-host.c.
 */
#include "rules.h"

#include <lkg/documents.h>

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

        if (lkg_rule_word(signals, signal.data, signal.size))
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
        if (!lkg_rule_word("cpu, memory, ephemeral-storage, pid", resource.data, resource.size))
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

static int parse_ip(const char *text, size_t size, char *reason)
{
        struct lkg_ip ip;

        return lkg_ip_parse(text, size, &ip, reason);
}

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

static const struct lkg_value_rule table[] = {
        { "address", LKG_RULE_PARSE, .parse = parse_ip, .flags = LKG_RULE_LATER },
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
        { "tlsMinVersion", LKG_RULE_ENTRY, "unknown version; want VersionTLS12 or VersionTLS13 (or 10, 11)",
          .words = "VersionTLS10, VersionTLS11, VersionTLS12, VersionTLS13", .flags = LKG_RULE_EMPTY_OK },
        { "containerLogMaxSize", LKG_RULE_ENTRY, .entry = check_log_size },
        { "authorization.mode", LKG_RULE_ENTRY, "unknown mode; want Webhook or AlwaysAllow",
          .words = "AlwaysAllow, Webhook" },
        { "cpuManagerPolicy", LKG_RULE_ENTRY, "unknown policy; want none or static",
          .words = "none, static" },
        { "memoryManagerPolicy", LKG_RULE_ENTRY, "unknown policy; want None or Static",
          .words = "None, Static" },
};

static bool is_curve(int64_t id)
{
        /* P-256, P-384, P-521, X25519; with ML-KEM: P-256, X25519, P-384. Go 1.26 */
        static const int64_t ids[] = { 23, 24, 25, 29, 4587, 4588, 4589 };

        for (size_t i = 0; i < LKG_ARRAY_SIZE(ids); i++)
                if (ids[i] == id)
                        return true;
        return false;
}

static void check_curves(const struct lkg_rules *rules)
{
        static const char field[] = "tlsCurvePreferences";
        const struct lkg_value *list = lkg_rule_items(rules, field);
        char path[LKG_RULE_PATH_MAX];

        lkg_rule_begin(rules);
        for (size_t i = 0; list && i < lkg_value_size(list); i++) {
                const struct lkg_value *item = lkg_list_get(list, i);

                if (!is_curve(lkg_value_int(item)))
                        lkg_breach(rules, LKG_F_REFUSED_LATER, lkg_rule_item_path(field, i, NULL, path),
                                   item,
                                   "is not a key exchange that the component knows; want one such as 29 "
                                   "(X25519)");
        }
}

/* ---- more than one value ---- */

static void check_soft_eviction(const struct lkg_rules *rules)
{
        const struct lkg_value *soft = lkg_rule_items(rules, "evictionSoft"), *periods;
        char path[LKG_RULE_PATH_MAX];

        lkg_rule_begin(rules);
        periods = lkg_rule_get(rules, "evictionSoftGracePeriod");
        for (size_t i = 0; soft && i < lkg_value_size(soft); i++) {
                const char *signal;
                size_t size;
                const struct lkg_value *value = lkg_map_at(soft, i, &signal, &size);

                if (is_off(lkg_text_of(value)) || (periods && lkg_map_get(periods, signal)))
                        continue;
                lkg_breach(rules, LKG_F_REFUSED_LATER, lkg_rule_key_path("evictionSoft", signal, size, path),
                           value, "has no grace period; add the signal to evictionSoftGracePeriod");
        }
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
        const struct lkg_value *reserved, *eviction;
        bool memory;

        lkg_rule_begin(rules);
        if (lkg_span_is(lkg_rule_text(rules, "cpuManagerPolicy"), "static") &&
            lkg_rule_text(rules, "reservedSystemCPUs").size == 0 &&
            !reserves(rules, "systemReserved", "cpu") && !reserves(rules, "kubeReserved", "cpu"))
                lkg_breach(rules, LKG_F_REFUSED_LATER, "cpuManagerPolicy",
                           lkg_rule_get(rules, "cpuManagerPolicy"),
                           "needs CPUs that no container gets; set reservedSystemCPUs, or cpu in "
                           "systemReserved or kubeReserved");
        lkg_rule_begin(rules);
        reserved = lkg_rule_get(rules, "reservedMemory");
        eviction = lkg_rule_get(rules, "evictionHard");
        memory = eviction && lkg_map_get(eviction, "memory.available");
        if (lkg_span_is(lkg_rule_text(rules, "memoryManagerPolicy"), "Static") &&
            (!reserved || lkg_value_size(reserved) == 0) && memory)
                lkg_breach(rules, LKG_F_REFUSED_LATER, "memoryManagerPolicy",
                           lkg_rule_get(rules, "memoryManagerPolicy"),
                           "needs reservedMemory, in sum as much memory as kubeReserved, systemReserved and "
                           "evictionHard name");
}

static void check_swap(const struct lkg_rules *rules)
{
        static const char path[] = "memorySwap.swapBehavior";

        lkg_rule_begin(rules);
        if (rules->host->cgroup == 1 && lkg_rule_gate(rules, "NodeSwap") &&
            lkg_span_is(lkg_rule_text(rules, path), "LimitedSwap"))
                lkg_breach(rules, LKG_F_REFUSED_LATER, path, lkg_rule_get(rules, path),
                           "needs cgroup v2, and this host has cgroup v1; want NoSwap");
}

/* Zero stands for the default. syncFrequency: NewMainKubelet() refuses it; fileCheckFrequency: the ticker of static pods panics. */
static void check_periods(const struct lkg_rules *rules)
{
        static const char *const paths[] = { "syncFrequency", "fileCheckFrequency" };

        for (size_t i = 0; i < LKG_ARRAY_SIZE(paths); i++) {
                const struct lkg_value *value;

                lkg_rule_begin(rules);
                value = lkg_rule_get(rules, paths[i]);
                if (value && lkg_value_duration(value) < 0)
                        lkg_breach(rules, LKG_F_REFUSED_LATER, paths[i], value,
                                   "is negative, and the kubelet ends at its start; want a time such as 1m");
        }
}

/* ---- options of the CPU and topology managers ---- */

struct option {
        const char *name;
        unsigned alpha_until, beta_until; /* the last release as such; 0 = never */
        bool number;                      /* of NUMA nodes, at least 8; else true or false */
};

struct manager {
        const char *policy, *off; /* the field, and the value that means no manager */
        const char *options;
        const char *alpha_gate, *beta_gate;
        const struct option *rows;
        size_t n_rows;
};

#define EVER LKG_RELEASE_MAX

static const char across_cores[] = "distribute-cpus-across-cores",
                  across_numa[] = "distribute-cpus-across-numa", full_cpus[] = "full-pcpus-only",
                  uncore[] = "prefer-align-cpus-by-uncorecache";

static const struct option cpu_options[] = {
        { full_cpus, 0, 0, false },
        { across_numa, 0, EVER, false },
        { "align-by-socket", EVER, EVER, false },
        { across_cores, EVER, EVER, false },
        { "strict-cpu-reservation", 0, 134, false },
        { uncore, 133, 135, false },
};

static const struct option topology_options[] = {
        { "prefer-closest-numa-nodes", 0, 0, false },
        { "max-allowable-numa-nodes", 0, 134, true },
};

static const struct manager managers[] = {
        { "cpuManagerPolicy", "none", "cpuManagerPolicyOptions", "CPUManagerPolicyAlphaOptions",
          "CPUManagerPolicyBetaOptions", cpu_options, LKG_ARRAY_SIZE(cpu_options) },
        { "topologyManagerPolicy", "none", "topologyManagerPolicyOptions",
          "TopologyManagerPolicyAlphaOptions", "TopologyManagerPolicyBetaOptions", topology_options,
          LKG_ARRAY_SIZE(topology_options) },
};

static const struct option *find_option(const struct manager *manager, const char *name)
{
        for (size_t i = 0; i < manager->n_rows; i++)
                if (strcmp(manager->rows[i].name, name) == 0)
                        return &manager->rows[i];
        return NULL;
}

static void check_option(const struct lkg_rules *rules, const struct manager *manager, const char *name,
                         size_t size, const struct lkg_value *value)
{
        const struct option *option = find_option(manager, name);
        unsigned release = lkg_schema_release(rules->schema);
        struct lkg_span text = lkg_text_of(value);
        const char *gate = NULL;
        char path[LKG_RULE_PATH_MAX];
        int64_t n = 0;
        bool on;

        lkg_rule_begin(rules);
        (void)lkg_rule_text(rules, manager->policy);
        (void)lkg_rule_key_path(manager->options, name, size, path);
        if (!option) {
                lkg_breach(rules, LKG_F_REFUSED_LATER, path, value,
                           "belongs to no option of this release; remove it");
                return;
        }
        if (release <= option->beta_until)
                gate = release <= option->alpha_until ? manager->alpha_gate : manager->beta_gate;
        if (gate && !lkg_rule_gate(rules, gate))
                lkg_breach_gate(rules, LKG_F_REFUSED_LATER, path, value, gate,
                                "turn it on, or remove the option");
        if (option->number && (lkg_int_parse(text.data, text.size, 10, 64, &n, NULL) < 0 || n < 8))
                lkg_breach(rules, LKG_F_REFUSED_LATER, path, value,
                           "is not right; want a number, 8 or more");
        if (!option->number && lkg_bool_parse(text.data, text.size, &on, NULL) < 0)
                lkg_breach(rules, LKG_F_REFUSED_LATER, path, value,
                           "is not right; want \"true\" or \"false\"");
}

static void report_idle_options(const struct lkg_rules *rules, const struct manager *manager,
                                const struct lkg_value *options)
{
        struct lkg_operand left = { manager->options, options, "cannot go with" },
                           right = { manager->policy, lkg_rule_get(rules, manager->policy),
                                     "cannot go with" };

        lkg_breach_between(rules, LKG_F_REFUSED_LATER, &left, &right,
                           "remove the options, or want the policy static");
}

static void check_options(const struct lkg_rules *rules, const struct manager *manager)
{
        const struct lkg_value *options = lkg_rule_items(rules, manager->options);
        size_t n = options ? lkg_value_size(options) : 0;
        struct lkg_span policy;

        lkg_rule_begin(rules);
        policy = lkg_rule_text(rules, manager->policy);
        if (lkg_span_is(policy, manager->off)) {
                /* the topology manager ignores them then */
                if (n > 0 && manager == &managers[0])
                        report_idle_options(rules, manager, options);
                return;
        }
        for (size_t i = 0; i < n; i++) {
                const char *name;
                size_t size;
                const struct lkg_value *value = lkg_map_at(options, i, &name, &size);

                check_option(rules, manager, name, size, value);
        }
}

static const struct lkg_value *option_that_is_on(const struct lkg_value *options, const char *name)
{
        const struct lkg_value *value = lkg_map_get(options, name);
        struct lkg_span text = lkg_text_of(value);
        bool on = false;

        return value && lkg_bool_parse(text.data, text.size, &on, NULL) == 0 && on ? value : NULL;
}

static void check_exclusive_options(const struct lkg_rules *rules)
{
        static const char *const pairs[][2] = { { full_cpus, across_cores },
                                                { across_numa, across_cores },
                                                { uncore, across_cores },
                                                { uncore, across_numa } };
        const struct manager *manager = &managers[0];
        const struct lkg_value *options;

        lkg_rule_begin(rules);
        options = lkg_rule_items(rules, manager->options);
        if (!options || lkg_span_is(lkg_rule_text(rules, manager->policy), manager->off))
                return;
        for (size_t i = 0; i < LKG_ARRAY_SIZE(pairs); i++) {
                const struct lkg_value *a = option_that_is_on(options, pairs[i][0]),
                                       *b = option_that_is_on(options, pairs[i][1]);
                char path_a[LKG_RULE_PATH_MAX], path_b[LKG_RULE_PATH_MAX];
                struct lkg_operand left, right;

                if (!a || !b)
                        continue;
                (void)lkg_rule_key_path(manager->options, pairs[i][0], strlen(pairs[i][0]), path_a);
                (void)lkg_rule_key_path(manager->options, pairs[i][1], strlen(pairs[i][1]), path_b);
                left = (struct lkg_operand){ path_a, a, "cannot go with" };
                right = (struct lkg_operand){ path_b, b, "cannot go with" };
                lkg_breach_between(rules, LKG_F_REFUSED_LATER, &left, &right, "keep one of them");
        }
}

/* ---- mistakes that do not stop the component ---- */

/* Return a text for a message: for a field that may contain credentials, without them. */
static const char *quote_field(const char *path, struct lkg_span text, char quoted[static 5 * 64 + 8])
{
        LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf masked = LKG_BUF_INIT;

        if (lkg_name_secrecy(path, strlen(path)) == LKG_PUBLIC)
                return LKG_QUOTE(text);
        (void)lkg_mask_url(text.data, text.size, &masked);
        return lkg_quote(lkg_buf_text(&masked), masked.size, quoted);
}

static void advise(const struct lkg_rules *rules, const char *path, const struct lkg_value *value,
                   const char *consequence, const char *reason)
{
        struct lkg_span text = lkg_text_of(value);
        char quoted[5 * 64 + 8];

        lkg_report_add(rules->report, LKG_WARNING, LKG_F_BAD_FORMAT, LKG_AT(value),
                       "%s: %s is not right, and %s: %s", path, quote_field(path, text, quoted), consequence,
                       reason);
}

static void check_ignored(const struct lkg_rules *rules)
{
        const struct lkg_value *servers = lkg_rule_items(rules, "clusterDNS"),
                               *url = lkg_rule_items(rules, "staticPodURL");
        char reason[LKG_REFUSAL_MAX], path[64];
        struct lkg_span text = lkg_text_of(url);
        struct lkg_ip ip;

        for (size_t i = 0; servers && i < lkg_value_size(servers); i++) {
                const struct lkg_value *item = lkg_list_get(servers, i);
                struct lkg_span server = lkg_text_of(item);

                (void)snprintf(path, sizeof(path), "clusterDNS[%zu]", i);
                if (lkg_ip_parse(server.data, server.size, &ip, reason) < 0)
                        advise(rules, path, item, "the component leaves it out", lkg_reason(server, reason));
        }
        if (text.size > 0 && lkg_url_parse(text.data, text.size, NULL, reason) < 0)
                advise(rules, "staticPodURL", url, "the component cannot fetch it", reason);
}

/* newCgroupCommon (pkg/kubelet/cm) and NodeAllocatableRoot check only whether it is `systemd`. */
static void check_cgroup_driver(const struct lkg_rules *rules)
{
        const struct lkg_value *value = lkg_rule_get(rules, "cgroupDriver");
        struct lkg_span text = lkg_text_of(value);

        if (text.size == 0 || lkg_span_is(text, "systemd") || lkg_span_is(text, "cgroupfs"))
                return;
        lkg_report_add(
                rules->report, LKG_WARNING, LKG_F_WORD_UNKNOWN, LKG_AT(value),
                "cgroupDriver: %s is not a driver, and the component takes it for cgroupfs unless the "
                "container runtime names another; want systemd or cgroupfs",
                LKG_QUOTE(text));
}

void lkg_rules_later(const struct lkg_rules *rules)
{
        if (!lkg_schema_is_kubelet(rules->schema))
                return;
        lkg_rules_apply(rules, table, LKG_ARRAY_SIZE(table));
        check_static_policies(rules);
        check_curves(rules);
        check_soft_eviction(rules);
        check_swap(rules);
        check_periods(rules);
        for (size_t i = 0; i < LKG_ARRAY_SIZE(managers); i++)
                check_options(rules, &managers[i]);
        check_exclusive_options(rules);
        check_ignored(rules);
        check_cgroup_driver(rules);
}
