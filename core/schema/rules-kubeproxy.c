/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kube-proxy's validation: pkg/proxy/apis/config/validation (from 1.33 to 1.37), on Linux.
 *
 * The component validates its internal type. Where that differs from the document, this file reads the
 * document like the conversion: one syncPeriod and minSyncPeriod, those of the active mode, and clusterCIDR
 * split at commas.
 */
#include "rules.h"
#include "values/values.h"

#define NO_MAX INT64_MAX

static const char not_negative[] = "it must not be negative";
static const char bit[] = "want a bit, 0 to 31";

static int parse_ip(const char *text, size_t size, char *reason)
{
        struct lkg_ip ip;

        return lkg_ip_parse(text, size, &ip, reason);
}

static int parse_cidr(const char *text, size_t size, char *reason)
{
        struct lkg_cidr cidr;

        return lkg_cidr_parse(text, size, &cidr, reason);
}

const struct lkg_value_rule lkg_kubeproxy_rules[] = {
        { "iptables.masqueradeBit", LKG_RULE_NUMBER, bit, .max = 31 },
        { "ipvs.tcpTimeout", LKG_RULE_DURATION, not_negative, .max = NO_MAX, .when = "mode", .is = "ipvs" },
        { "ipvs.tcpFinTimeout", LKG_RULE_DURATION, not_negative, .max = NO_MAX, .when = "mode",
          .is = "ipvs" },
        { "ipvs.udpTimeout", LKG_RULE_DURATION, not_negative, .max = NO_MAX, .when = "mode", .is = "ipvs" },
        { "ipvs.excludeCIDRs", LKG_RULE_PARSE, .parse = parse_cidr, .when = "mode", .is = "ipvs",
          .flags = LKG_RULE_EMPTY_OK },
        { "nftables.masqueradeBit", LKG_RULE_NUMBER, bit, .max = 31, .when = "mode", .is = "nftables" },
        { "conntrack.maxPerCore", LKG_RULE_NUMBER, not_negative, .max = NO_MAX },
        { "conntrack.min", LKG_RULE_NUMBER, not_negative, .max = NO_MAX },
        { "conntrack.tcpEstablishedTimeout", LKG_RULE_DURATION, not_negative, .max = NO_MAX },
        { "conntrack.tcpCloseWaitTimeout", LKG_RULE_DURATION, not_negative, .max = NO_MAX },
        { "conntrack.udpTimeout", LKG_RULE_DURATION, not_negative, .max = NO_MAX },
        { "conntrack.udpStreamTimeout", LKG_RULE_DURATION, not_negative, .max = NO_MAX },
        { "oomScoreAdj", LKG_RULE_NUMBER, "want -1000 to 1000", .min = -1000, .max = 1000 },
        { "mode", LKG_RULE_WORD, .words = "iptables, ipvs, nftables", .flags = LKG_RULE_EMPTY_OK },
        { "clientConnection.burst", LKG_RULE_NUMBER, not_negative, .max = NO_MAX },
        { "configSyncPeriod", LKG_RULE_DURATION, "it must be greater than 0", .min = 1, .max = NO_MAX },
        { "bindAddress", LKG_RULE_PARSE, .parse = parse_ip },
        { "healthzBindAddress", LKG_RULE_PARSE, .parse = lkg_host_port_check, .flags = LKG_RULE_EMPTY_OK },
        { "metricsBindAddress", LKG_RULE_PARSE, .parse = lkg_host_port_check },
        { "detectLocalMode", LKG_RULE_WORD,
          .words = "ClusterCIDR, NodeCIDR, BridgeInterface, InterfaceNamePrefix",
          .flags = LKG_RULE_EMPTY_OK },
        { "detectLocal.bridgeInterface", LKG_RULE_SET, "detectLocalMode BridgeInterface needs its name",
          .when = "detectLocalMode", .is = "BridgeInterface" },
        { "detectLocal.interfaceNamePrefix", LKG_RULE_SET, "detectLocalMode InterfaceNamePrefix needs it",
          .when = "detectLocalMode", .is = "InterfaceNamePrefix" },
};
const size_t lkg_n_kubeproxy_rules = LKG_ARRAY_SIZE(lkg_kubeproxy_rules);

/* The section of the mode; an unknown mode uses the section of iptables. */
static void check_periods(const struct lkg_rules *rules)
{
        static const char *const paths[][2] = { { "iptables.syncPeriod", "iptables.minSyncPeriod" },
                                                { "ipvs.syncPeriod", "ipvs.minSyncPeriod" },
                                                { "nftables.syncPeriod", "nftables.minSyncPeriod" } };
        struct lkg_span mode = lkg_object_text(rules->object, "mode");
        const char *const *section = paths[lkg_span_is(mode, "ipvs")       ? 1
                                           : lkg_span_is(mode, "nftables") ? 2
                                                                           : 0];
        struct lkg_operand period = { section[0], lkg_object_get(rules->object, section[0]),
                                      "must not be less than" };
        struct lkg_operand minimum = { section[1], lkg_object_get(rules->object, section[1]),
                                       "must not be more than" };
        int64_t period_ns = lkg_value_duration(period.value), minimum_ns = lkg_value_duration(minimum.value);

        lkg_rule_begin(rules);
        (void)lkg_rule_get(rules, "mode"); /* the next three need it; of the section, only what they name */
        if (period_ns <= 0)
                lkg_breach(rules, LKG_F_OUT_OF_RANGE, period.path, period.value,
                           "is out of range; it must be greater than 0");
        if (minimum_ns < 0)
                lkg_breach(rules, LKG_F_OUT_OF_RANGE, minimum.path, minimum.value, "is out of range; %s",
                           not_negative);
        if (minimum_ns > period_ns)
                lkg_breach_between(rules, LKG_F_OUT_OF_RANGE, &minimum, &period, NULL);
}

/* Up to 1.36: `primary` alone, and nothing behind it is checked. Return: go on? */
static bool check_node_ports_136(const struct lkg_rules *rules, const struct lkg_value *list, size_t i)
{
        const struct lkg_value *item = lkg_list_get(list, i);
        char path[LKG_RULE_PATH_MAX];

        (void)lkg_rule_item_path("nodePortAddresses", i, NULL, path);
        if (!lkg_span_is(lkg_text_of(item), "primary")) {
                lkg_rule_parse(rules, LKG_F_BAD_FORMAT, path, item, parse_cidr);
                return true;
        }
        if (lkg_value_size(list) != 1)
                lkg_breach(rules, LKG_F_CONTRADICTION, path, item,
                           "must be the only entry; remove it or the CIDRs");
        return false;
}

static int parse_cidr_or_word(const char *text, size_t size, char *reason)
{
        if (!memchr(text, '/', size))
                return lkg_refuse(reason, "not a CIDR and not one of primary, localhost, all");
        return parse_cidr(text, size, reason);
}

/* @seen: a bit for each word that an earlier item was */
static void check_node_port(const struct lkg_rules *rules, const struct lkg_value *list, size_t i,
                            unsigned *seen)
{
        static const char *const words[] = { "primary", "localhost", "all" };
        const struct lkg_value *item = lkg_list_get(list, i);
        char path[LKG_RULE_PATH_MAX];

        (void)lkg_rule_item_path("nodePortAddresses", i, NULL, path);
        for (size_t k = 0; k < LKG_ARRAY_SIZE(words); k++) {
                if (!lkg_span_is(lkg_text_of(item), words[k]))
                        continue;
                if (*seen & 1u << k)
                        lkg_breach(rules, LKG_F_DUPLICATE, path, item, "is there twice; remove one of them");
                *seen |= 1u << k;
                return;
        }
        lkg_rule_parse(rules, LKG_F_BAD_FORMAT, path, item, parse_cidr_or_word);
}

static void check_node_ports(const struct lkg_rules *rules)
{
        const struct lkg_value *list = lkg_rule_items(rules, "nodePortAddresses");
        size_t n = list ? lkg_value_size(list) : 0;
        bool newer = lkg_schema_release(rules->schema) >= 137, more = true;
        unsigned seen = 0;

        lkg_rule_begin(rules);
        for (size_t i = 0; more && i < n; i++)
                if (newer)
                        check_node_port(rules, list, i, &seen);
                else
                        more = check_node_ports_136(rules, list, i);
}

static void check_ipvs(const struct lkg_rules *rules)
{
        static const char mode[] = "mode", gate[] = "KubeProxyIPVS";

        lkg_rule_begin(rules);
        if (lkg_schema_release(rules->schema) >= 137 && lkg_span_is(lkg_rule_text(rules, mode), "ipvs") &&
            !lkg_rule_gate(rules, gate))
                lkg_breach_gate(rules, LKG_F_NEEDS_GATE, mode, lkg_rule_get(rules, mode), gate,
                                "turn it on, or use the mode nftables or iptables");
}

/*
 * Check one of the CIDRs in clusterCIDR.
 * Return: whether it is valid.
 */
static bool check_cluster_cidr(const struct lkg_rules *rules, const struct lkg_value *value,
                               struct lkg_span part, struct lkg_cidr *ret)
{
        char reason[LKG_REFUSAL_MAX];

        if (lkg_cidr_parse(part.data, part.size, ret, reason) == 0)
                return true;
        lkg_breach(rules, LKG_F_BAD_FORMAT, "clusterCIDR", value, "is not right: %s: %s", LKG_PIECE(part),
                   reason);
        return false;
}

static void check_cluster_cidrs(const struct lkg_rules *rules)
{
        const struct lkg_value *value;
        struct lkg_cidr cidrs[2];
        struct lkg_span rest, part;
        size_t n = 0, size;
        bool sound = true;
        const char *text;

        lkg_rule_begin(rules);
        value = lkg_rule_get(rules, "clusterCIDR");
        if (!lkg_span_is(lkg_rule_text(rules, "detectLocalMode"), "ClusterCIDR") || !value ||
            lkg_value_type(value) != LKG_STRING)
                return;
        text = lkg_value_text(value, &size);
        if (size == 0)
                return;
        rest = lkg_span(text, size);
        if (lkg_span_count(rest, ',') > 1) {
                lkg_breach(rules, LKG_F_BAD_FORMAT, "clusterCIDR", value,
                           "has more than two; want one CIDR, or one of each IP family");
                return;
        }
        while (lkg_span_next(&rest, ',', &part)) {
                sound &= check_cluster_cidr(rules, value, part, &cidrs[n]);
                n++;
        }
        if (sound && n == 2 && !lkg_cidr_dual_stack(&cidrs[0], &cidrs[1]))
                lkg_breach(rules, LKG_F_CONTRADICTION, "clusterCIDR", value,
                           "has two of one IP family; want one CIDR, or one of each family");
}

void lkg_rules_kubeproxy(const struct lkg_rules *rules)
{
        lkg_rules_apply(rules, lkg_kubeproxy_rules, lkg_n_kubeproxy_rules);
        check_node_ports(rules);
        lkg_rules_logging(rules);
        check_periods(rules);
        check_ipvs(rules);
        check_cluster_cidrs(rules);
        lkg_rule_hidden_metrics(rules);
}
