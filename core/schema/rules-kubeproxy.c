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
        { "bindAddress", LKG_RULE_PARSE, .parse = lkg_ip_check },
        { "healthzBindAddress", LKG_RULE_PARSE, .parse = lkg_host_port_check, .flags = LKG_RULE_EMPTY_OK },
        { "metricsBindAddress", LKG_RULE_PARSE, .parse = lkg_host_port_check },
        { "detectLocalMode", LKG_RULE_WORD,
          .words = "ClusterCIDR, NodeCIDR, BridgeInterface, InterfaceNamePrefix",
          .flags = LKG_RULE_EMPTY_OK },
        { "detectLocal.bridgeInterface", LKG_RULE_SET, "detectLocalMode BridgeInterface needs its name",
          .when = "detectLocalMode", .is = "BridgeInterface" },
        { "detectLocal.interfaceNamePrefix", LKG_RULE_SET, "detectLocalMode InterfaceNamePrefix needs it",
          .when = "detectLocalMode", .is = "InterfaceNamePrefix" },
        { "mode", LKG_RULE_NOT, "turn it on, or use the mode nftables or iptables", .words = "ipvs",
          .gate = "KubeProxyIPVS", .flags = LKG_RULE_GATE_OFF, .since = 137 },
};
const size_t lkg_n_kubeproxy_rules = LKG_ARRAY_SIZE(lkg_kubeproxy_rules);

/* The section of the mode; an unknown mode uses the section of iptables. */
static void check_periods(const struct lkg_rules *rules)
{
        static const char *const paths[][2] = { { "iptables.syncPeriod", "iptables.minSyncPeriod" },
                                                { "ipvs.syncPeriod", "ipvs.minSyncPeriod" },
                                                { "nftables.syncPeriod", "nftables.minSyncPeriod" } };
        /* of the section, only what is named */
        struct lkg_span mode = lkg_text_of(lkg_rule_about(rules, "mode"));
        const char *const *section = paths[lkg_span_is(mode, "ipvs")       ? 1
                                           : lkg_span_is(mode, "nftables") ? 2
                                                                           : 0];
        const struct lkg_operand period = { section[0], lkg_object_get(rules->object, section[0]),
                                            "must not be less than" },
                                 minimum = { section[1], lkg_object_get(rules->object, section[1]),
                                             "must not be more than" };
        int64_t period_ns = lkg_value_duration(period.value), minimum_ns = lkg_value_duration(minimum.value);

        if (period_ns <= 0)
                lkg_breach(rules, LKG_F_OUT_OF_RANGE, period.path, period.value,
                           "is out of range; it must be greater than 0");
        if (minimum_ns < 0)
                lkg_breach(rules, LKG_F_OUT_OF_RANGE, minimum.path, minimum.value, "is out of range; %s",
                           not_negative);
        if (minimum_ns > period_ns)
                lkg_breach_between(rules, LKG_F_OUT_OF_RANGE, &minimum, &period, NULL);
}

static const char node_ports[] = "nodePortAddresses";

/* Up to 1.36: `primary` alone, and nothing behind it is checked. Return: go on? */
static bool check_node_port_136(const struct lkg_rules *rules, const struct lkg_member *m, bool alone)
{
        bool primary = lkg_span_is(lkg_text_of(m->value), "primary");

        if (!primary)
                lkg_rule_parse_item(rules, LKG_F_BAD_FORMAT, node_ports, m->i, NULL, m->value, parse_cidr);
        else if (!alone)
                lkg_breach(rules, LKG_F_CONTRADICTION, LKG_ITEM_PATH(node_ports, m->i, NULL), m->value,
                           "must be the only entry; remove it or the CIDRs");
        return !primary;
}

static int parse_cidr_or_word(const char *text, size_t size, char *reason)
{
        if (!memchr(text, '/', size))
                return lkg_refuse(reason, "not a CIDR and not one of primary, localhost, all");
        return parse_cidr(text, size, reason);
}

/* @seen: a bit for each word that an earlier item was */
static void check_node_port(const struct lkg_rules *rules, const struct lkg_member *m, unsigned *seen)
{
        static const char *const words[] = { "primary", "localhost", "all" };

        for (size_t k = 0; k < LKG_ARRAY_SIZE(words); k++) {
                if (!lkg_span_is(lkg_text_of(m->value), words[k]))
                        continue;
                if (*seen & 1u << k)
                        lkg_breach(rules, LKG_F_DUPLICATE, LKG_ITEM_PATH(node_ports, m->i, NULL), m->value,
                                   "is there twice; remove one of them");
                *seen |= 1u << k;
                return;
        }
        lkg_rule_parse_item(rules, LKG_F_BAD_FORMAT, node_ports, m->i, NULL, m->value, parse_cidr_or_word);
}

static void check_node_ports(const struct lkg_rules *rules)
{
        const struct lkg_value *list = lkg_rule_each(rules, node_ports);
        bool newer = rules->release >= 137, more = true;
        unsigned seen = 0;

        for (struct lkg_member m = { 0 }; more && lkg_value_next(list, &m);)
                if (newer)
                        check_node_port(rules, &m, &seen);
                else
                        more = check_node_port_136(rules, &m, lkg_value_size(list) == 1);
}

static void check_cluster_cidrs(const struct lkg_rules *rules)
{
        static const char path[] = "clusterCIDR";
        const struct lkg_value *value = lkg_rule_about(rules, path);
        struct lkg_span rest = lkg_text_of(value), part;
        struct lkg_cidr cidrs[2];
        char reason[LKG_REFUSAL_MAX];
        bool sound = true;
        size_t n = 0;

        if (!lkg_span_is(lkg_rule_text(rules, "detectLocalMode"), "ClusterCIDR") || rest.size == 0)
                return;
        if (lkg_span_count(rest, ',') > 1) {
                lkg_breach(rules, LKG_F_BAD_FORMAT, path, value,
                           "has more than two; want one CIDR, or one of each IP family");
                return;
        }
        for (; lkg_span_next(&rest, ',', &part); n++) {
                if (lkg_cidr_parse(part.data, part.size, &cidrs[n], reason) == 0)
                        continue;
                sound = false;
                lkg_breach(rules, LKG_F_BAD_FORMAT, path, value, "is not right: %s: %s", LKG_PIECE(part),
                           reason);
        }
        if (sound && n == 2 && !lkg_cidr_dual_stack(&cidrs[0], &cidrs[1]))
                lkg_breach(rules, LKG_F_CONTRADICTION, path, value,
                           "has two of one IP family; want one CIDR, or one of each family");
}

void lkg_rules_kubeproxy(const struct lkg_rules *rules)
{
        lkg_rules_apply(rules, lkg_kubeproxy_rules, lkg_n_kubeproxy_rules);
        check_node_ports(rules);
        lkg_rules_logging(rules);
        check_periods(rules);
        check_cluster_cidrs(rules);
        lkg_rule_hidden_metrics(rules);
}
