/* SPDX-License-Identifier: Apache-2.0 */
/* kube-proxy's validation, including the conversion of the document before it. */
#include "rules-helpers.h"

static const struct expectation fields[] = {
        { "bindAddress: 0.0.0.0", NULL },
        { "bindAddress: \"::\"", NULL },
        { "bindAddress: 010.001.1.1", NULL }, /* leading zeros are decimal */
        { "bindAddress: 10.10.12.11:2000", "bindAddress", LKG_F_BAD_FORMAT },
        { "healthzBindAddress: 1.2.3.4", NULL }, /* the port is added first */
        { "healthzBindAddress: \"[::1]:80\"", NULL },
        { "healthzBindAddress: 1.2.3.4:0", "healthzBindAddress", LKG_F_BAD_FORMAT },
        { "healthzBindAddress: localhost:80", "healthzBindAddress", LKG_F_BAD_FORMAT },
        { "metricsBindAddress: 1.2.3.4:65535", NULL },
        { "metricsBindAddress: 1.2.3.4:65536", "metricsBindAddress", LKG_F_BAD_FORMAT },
        { "metricsBindAddress: abc", "metricsBindAddress", LKG_F_BAD_FORMAT },
        { "clientConnection: {burst: -1}", "clientConnection.burst", LKG_F_OUT_OF_RANGE },
        { "configSyncPeriod: 1ns", NULL },
        { "configSyncPeriod: -1ns", "configSyncPeriod", LKG_F_OUT_OF_RANGE },
        { "oomScoreAdj: -1000", NULL },
        { "oomScoreAdj: -1001", "oomScoreAdj", LKG_F_OUT_OF_RANGE },
        { "conntrack: {maxPerCore: 0, min: 0}", NULL },
        { "conntrack: {maxPerCore: -1}", "conntrack.maxPerCore", LKG_F_OUT_OF_RANGE },
        { "conntrack: {min: -1}", "conntrack.min", LKG_F_OUT_OF_RANGE },
        { "conntrack: {tcpEstablishedTimeout: 0s, tcpCloseWaitTimeout: 0s}", NULL },
        { "conntrack: {tcpEstablishedTimeout: -1s}", "conntrack.tcpEstablishedTimeout", LKG_F_OUT_OF_RANGE },
        { "conntrack: {tcpCloseWaitTimeout: -1s}", "conntrack.tcpCloseWaitTimeout", LKG_F_OUT_OF_RANGE },
        { "conntrack: {udpTimeout: -1s}", "conntrack.udpTimeout", LKG_F_OUT_OF_RANGE },
        { "conntrack: {udpStreamTimeout: -1s}", "conntrack.udpStreamTimeout", LKG_F_OUT_OF_RANGE },
        { "showHiddenMetricsForVersion: abc", "showHiddenMetricsForVersion", LKG_F_NOT_ONE_OF },
        { "portRange: nonsense", NULL }, /* not used any more, so not validated */
};

static const struct expectation modes[] = {
        { "mode: \"\"", NULL },
        { "mode: nftables", NULL },
        { "mode: kernelspace", "mode", LKG_F_NOT_ONE_OF },
        { "mode: IPVS", "mode", LKG_F_NOT_ONE_OF },
        { "iptables: {masqueradeBit: 31}", NULL },
        { "mode: ipvs\niptables: {masqueradeBit: 32}", "iptables.masqueradeBit", LKG_F_OUT_OF_RANGE },
        { "mode: nftables\nnftables: {masqueradeBit: -1}", "nftables.masqueradeBit", LKG_F_OUT_OF_RANGE },
        { "nftables: {masqueradeBit: -1}", NULL },
        { "mode: ipvs\nipvs: {tcpTimeout: -1s}", "ipvs.tcpTimeout", LKG_F_OUT_OF_RANGE },
        { "mode: ipvs\nipvs: {tcpFinTimeout: -1s}", "ipvs.tcpFinTimeout", LKG_F_OUT_OF_RANGE },
        { "mode: ipvs\nipvs: {udpTimeout: -1s}", "ipvs.udpTimeout", LKG_F_OUT_OF_RANGE },
        { "ipvs: {tcpTimeout: -1s, excludeCIDRs: [x]}", NULL },
        { "mode: ipvs\nipvs: {excludeCIDRs: [10.0.0.0/8, \"fd00::/8\"]}", NULL },
        { "mode: ipvs\nipvs: {excludeCIDRs: [10.0.0.0/8, x]}", "ipvs.excludeCIDRs[1]", LKG_F_BAD_FORMAT },
        /* only one period is used: that of the active mode's section */
        { "iptables: {syncPeriod: -1s, minSyncPeriod: -2s}\nmode: nftables", NULL },
        { "mode: nftables\nnftables: {syncPeriod: 1s, minSyncPeriod: 1s}", NULL },
        { "mode: nftables\nnftables: {syncPeriod: 1s, minSyncPeriod: 2s}", "nftables.minSyncPeriod",
          LKG_F_OUT_OF_RANGE },
        { "mode: ipvs\nipvs: {minSyncPeriod: -1s}", "ipvs.minSyncPeriod", LKG_F_OUT_OF_RANGE },
        { "iptables: {syncPeriod: -2s, minSyncPeriod: -3s}\nmode: ipvs", NULL },
};

static const struct expectation local[] = {
        { "nodePortAddresses: [primary]", NULL },
        { "nodePortAddresses: [10.0.0.0/8, \"fd00::/8\"]", NULL },
        { "nodePortAddresses: [10.0.0.0/8, primary]", "nodePortAddresses[1]", LKG_F_CONTRADICTION,
          .release = 136 },
        { "nodePortAddresses: [primary, x]", "nodePortAddresses[0]", LKG_F_CONTRADICTION, .release = 136 },
        { "nodePortAddresses: [all]", "nodePortAddresses[0]", LKG_F_BAD_FORMAT, .release = 136 },
        { "nodePortAddresses: [primary, all, localhost, 10.0.0.0/8, 10.0.0.0/8]", NULL },
        { "nodePortAddresses: [localhost, all, localhost]", "nodePortAddresses[2]", LKG_F_DUPLICATE },
        { "nodePortAddresses: [primary, x]", "nodePortAddresses[1]", LKG_F_BAD_FORMAT },
        { "nodePortAddresses: [10.0.0.0/33]", "nodePortAddresses[0]", LKG_F_BAD_FORMAT },
        { "mode: ipvs", NULL },
        { "mode: ipvs\nfeatureGates: {KubeProxyIPVS: false}", "mode", LKG_F_NEEDS_GATE },
        { "mode: userspace\nfeatureGates: {KubeProxyIPVS: false}", "mode", LKG_F_NOT_ONE_OF },
        { "nodePortAddresses: [10.0.0.1]", "nodePortAddresses[0]", LKG_F_BAD_FORMAT },
        { "detectLocalMode: NodeCIDR", NULL },
        { "detectLocalMode: clusterCIDR", "detectLocalMode", LKG_F_NOT_ONE_OF },
        { "detectLocalMode: BridgeInterface\ndetectLocal: {bridgeInterface: br0}", NULL },
        { "detectLocalMode: BridgeInterface", "detectLocal.bridgeInterface", LKG_F_REQUIRED },
        { "detectLocalMode: InterfaceNamePrefix\ndetectLocal: {interfaceNamePrefix: v}", NULL },
        { "detectLocalMode: InterfaceNamePrefix", "detectLocal.interfaceNamePrefix", LKG_F_REQUIRED },
        { "clusterCIDR: 10.0.0.0/8", NULL },
        { "clusterCIDR: \"10.0.0.0/8,fd00::/48\"", NULL },
        { "clusterCIDR: \"10.0.0.0/8,11.0.0.0/8\"", "clusterCIDR", LKG_F_CONTRADICTION },
        { "clusterCIDR: \"10.0.0.0/8,\"", "clusterCIDR", LKG_F_BAD_FORMAT },
        { "clusterCIDR: \"10.0.0.0/8,fd00::/48,11.0.0.0/8\"", "clusterCIDR", LKG_F_BAD_FORMAT },
        { "clusterCIDR: \"5\"", "clusterCIDR", LKG_F_BAD_FORMAT },
        { "clusterCIDR: nonsense\ndetectLocalMode: NodeCIDR", NULL },
};

TEST(test_fields)
{
        for (size_t i = 0; i < LKG_ARRAY_SIZE(fields); i++)
                check_row(&fields[i], PROXY, false);
}

TEST(test_modes)
{
        for (size_t i = 0; i < LKG_ARRAY_SIZE(modes); i++)
                check_row(&modes[i], PROXY, false);
}

TEST(test_local_traffic)
{
        for (size_t i = 0; i < LKG_ARRAY_SIZE(local); i++)
                check_row(&local[i], PROXY, false);
}

TEST(test_period_and_its_minimum)
{
        struct trial t = { .base = PROXY "iptables: {syncPeriod: 5s}\n",
                           .dropin = PROXY "iptables: {minSyncPeriod: 6s}\n" };

        assert_string_equal(said(&t),
                            "d/10-x.conf:3:27: error: iptables.minSyncPeriod: \"6s\" must not be more than "
                            "iptables.syncPeriod \"5s\" (base.yaml:3:24) [LKG5030]\n");
        t = (struct trial){ .base = PROXY "iptables: {syncPeriod: -5s, minSyncPeriod: 2s}\n" };
        assert_int_equal(judged(&t)->n_findings, 2); /* negative, and below its minimum */
}
