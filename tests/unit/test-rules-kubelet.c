/* SPDX-License-Identifier: Apache-2.0 */
/* The kubelet's validation: every rule fires beyond its boundary and is silent at it. */
#include "rules-helpers.h"

static const struct expectation numbers[] = {
        { "nodeLeaseDurationSeconds: 1", NULL },
        { "nodeLeaseDurationSeconds: -1", "nodeLeaseDurationSeconds", LKG_F_OUT_OF_RANGE },
        { "eventBurst: -1", "eventBurst", LKG_F_OUT_OF_RANGE },
        { "eventRecordQPS: 0", NULL },
        { "eventRecordQPS: -1", "eventRecordQPS", LKG_F_OUT_OF_RANGE },
        { "healthzPort: 0", NULL },
        { "healthzPort: 65535", NULL },
        { "healthzPort: 65536", "healthzPort", LKG_F_OUT_OF_RANGE },
        { "healthzPort: -1", "healthzPort", LKG_F_OUT_OF_RANGE },
        { "imageGCHighThresholdPercent: 100", NULL },
        { "imageGCHighThresholdPercent: 101", "imageGCHighThresholdPercent", LKG_F_OUT_OF_RANGE },
        { "imageGCLowThresholdPercent: 0", NULL },
        { "imageGCLowThresholdPercent: -1", "imageGCLowThresholdPercent", LKG_F_OUT_OF_RANGE },
        { "iptablesDropBit: 31", NULL },
        { "iptablesDropBit: 32", "iptablesDropBit", LKG_F_OUT_OF_RANGE },
        { "iptablesMasqueradeBit: 0", NULL },
        { "iptablesMasqueradeBit: -1", "iptablesMasqueradeBit", LKG_F_OUT_OF_RANGE },
        { "kubeAPIBurst: -1", "kubeAPIBurst", LKG_F_OUT_OF_RANGE },
        { "kubeAPIQPS: 0", NULL },
        { "kubeAPIQPS: -1", "kubeAPIQPS", LKG_F_OUT_OF_RANGE },
        { "nodeStatusMaxImages: -1", NULL },
        { "nodeStatusMaxImages: -2", "nodeStatusMaxImages", LKG_F_OUT_OF_RANGE },
        { "maxOpenFiles: -1", "maxOpenFiles", LKG_F_OUT_OF_RANGE },
        { "maxPods: 2147483647", NULL },
        { "maxPods: -1", "maxPods", LKG_F_OUT_OF_RANGE },
        { "oomScoreAdj: -1000", NULL },
        { "oomScoreAdj: 1000", NULL },
        { "oomScoreAdj: -1001", "oomScoreAdj", LKG_F_OUT_OF_RANGE },
        { "oomScoreAdj: 1001", "oomScoreAdj", LKG_F_OUT_OF_RANGE },
        { "podsPerCore: -1", "podsPerCore", LKG_F_OUT_OF_RANGE },
        { "port: 1", NULL },
        { "port: 65535", NULL },
        { "port: -1", "port", LKG_F_OUT_OF_RANGE },
        { "port: 65536", "port", LKG_F_OUT_OF_RANGE },
        { "port: 65536", "port", LKG_F_OUT_OF_RANGE, .release = 133 },
        { "readOnlyPort: 10255", NULL },
        { "readOnlyPort: 65536", "readOnlyPort", LKG_F_OUT_OF_RANGE },
        { "registryBurst: -1", "registryBurst", LKG_F_OUT_OF_RANGE },
        { "registryPullQPS: 0", NULL },
        { "registryPullQPS: -1", "registryPullQPS", LKG_F_OUT_OF_RANGE },
        { "maxParallelImagePulls: 1", NULL },
        { "maxParallelImagePulls: 0", "maxParallelImagePulls", LKG_F_OUT_OF_RANGE },
        { "containerLogMaxWorkers: 1", NULL },
        { "containerLogMaxWorkers: 0", "containerLogMaxWorkers", LKG_F_OUT_OF_RANGE },
        { "containerLogMaxFiles: 2", NULL },
        { "containerLogMaxFiles: 1", "containerLogMaxFiles", LKG_F_OUT_OF_RANGE },
        { "tracing: {samplingRatePerMillion: 1000000}", NULL },
        { "tracing: {samplingRatePerMillion: 1000001}", "tracing.samplingRatePerMillion",
          LKG_F_OUT_OF_RANGE },
        { "tracing: {samplingRatePerMillion: -1}", "tracing.samplingRatePerMillion", LKG_F_OUT_OF_RANGE },
        { "memoryThrottlingFactor: 1.0", NULL },
        { "featureGates: {MemoryQoS: false}\nmemoryThrottlingFactor: 0.8", "memoryThrottlingFactor",
          LKG_F_NEEDS_GATE },
        { "featureGates: {MemoryQoS: false}\nmemoryThrottlingFactor: 0.90", NULL },
        { "featureGates: {MemoryQoS: false}\nmemoryThrottlingFactor: 0.8", NULL, .release = 136 },
        { "featureGates: {MemoryQoS: true}", NULL },
        { "memoryThrottlingFactor: 0.0000001", NULL },
        { "memoryThrottlingFactor: 0", "memoryThrottlingFactor", LKG_F_OUT_OF_RANGE },
        { "memoryThrottlingFactor: 1.1", "memoryThrottlingFactor", LKG_F_OUT_OF_RANGE },
        { "userNamespaces: {idsPerPod: 65536}", NULL },
        { "userNamespaces: {idsPerPod: 4294901760}", NULL },
        { "userNamespaces: {idsPerPod: 0}", "userNamespaces.idsPerPod", LKG_F_OUT_OF_RANGE },
        { "userNamespaces: {idsPerPod: 65537}", "userNamespaces.idsPerPod", LKG_F_OUT_OF_RANGE },
        { "userNamespaces: {idsPerPod: 4294967296}", "userNamespaces.idsPerPod", LKG_F_OUT_OF_RANGE },
        { "userNamespaces: {}", NULL },
};

#define NO_QUOTA "featureGates: {CustomCPUCFSQuotaPeriod: false}\n"
#define NO_SHUTDOWN                                                                                   \
        "featureGates: {GracefulNodeShutdown: false, GracefulNodeShutdownBasedOnPodPriority: false, " \
        "WindowsGracefulNodeShutdown: false}\n"
#define BY_PRIORITY "shutdownGracePeriodByPodPriority: [{priority: 1, shutdownGracePeriodSeconds: 3}]\n"
#define CRASH       "crashLoopBackOff: {maxContainerRestartPeriod: "

static const struct expectation durations[] = {
        { "cpuCFSQuotaPeriod: 1s", NULL },
        { "cpuCFSQuotaPeriod: 1ms", NULL },
        { "cpuCFSQuotaPeriod: 1000000001ns", "cpuCFSQuotaPeriod", LKG_F_OUT_OF_RANGE },
        { "cpuCFSQuotaPeriod: 999us", "cpuCFSQuotaPeriod", LKG_F_OUT_OF_RANGE },
        { NO_QUOTA "cpuCFSQuotaPeriod: 100ms", NULL },
        { NO_QUOTA "cpuCFSQuotaPeriod: 200ms", "cpuCFSQuotaPeriod", LKG_F_NEEDS_GATE },
        { "imageMinimumGCAge: -1ns", "imageMinimumGCAge", LKG_F_OUT_OF_RANGE },
        { "imageMinimumGCAge: -1ns", NULL, .release = 135 },
        { "imageMaximumGCAge: -1ns", "imageMaximumGCAge", LKG_F_OUT_OF_RANGE },
        { "imageMaximumGCAge: 2m1ns", NULL },
        { "imageMaximumGCAge: 2m", "imageMaximumGCAge", LKG_F_CONTRADICTION },
        { "featureGates: {ImageMaximumGCAge: false}\nimageMaximumGCAge: 1h", "imageMaximumGCAge",
          LKG_F_NEEDS_GATE, .release = 133 },
        { "featureGates: {ImageMaximumGCAge: false}", NULL, .release = 133 },
        { "shutdownGracePeriod: 1s\nshutdownGracePeriodCriticalPods: 1s", NULL },
        { "shutdownGracePeriod: 999ms", "shutdownGracePeriod", LKG_F_OUT_OF_RANGE },
        { "shutdownGracePeriod: 2s\nshutdownGracePeriodCriticalPods: 999ms",
          "shutdownGracePeriodCriticalPods", LKG_F_OUT_OF_RANGE },
        { "shutdownGracePeriod: 1s\nshutdownGracePeriodCriticalPods: 2s", "shutdownGracePeriodCriticalPods",
          LKG_F_CONTRADICTION },
        { NO_SHUTDOWN "shutdownGracePeriod: 2s", "shutdownGracePeriod", LKG_F_NEEDS_GATE },
        { NO_SHUTDOWN "shutdownGracePeriod: -2s", NULL },
        { BY_PRIORITY, NULL },
        { "shutdownGracePeriod: 2s\n" BY_PRIORITY, "shutdownGracePeriodByPodPriority", LKG_F_CONTRADICTION },
        { NO_SHUTDOWN BY_PRIORITY, "shutdownGracePeriodByPodPriority", LKG_F_NEEDS_GATE },
        { CRASH "1s}", NULL },
        { CRASH "300.0009s}", NULL },
        { CRASH "300.001s}", "crashLoopBackOff.maxContainerRestartPeriod", LKG_F_OUT_OF_RANGE },
        { CRASH "999ms}", "crashLoopBackOff.maxContainerRestartPeriod", LKG_F_OUT_OF_RANGE },
        { "featureGates: {KubeletCrashLoopBackOffMax: false}\n" CRASH "5s}",
          "crashLoopBackOff.maxContainerRestartPeriod", LKG_F_NEEDS_GATE },
        { "containerLogMonitorInterval: 3s", NULL },
        { "containerLogMonitorInterval: 2999999999ns", "containerLogMonitorInterval", LKG_F_OUT_OF_RANGE },
};

#define LIST     "preloadedImagesVerificationAllowlist: "
#define ALLOWED  "imagePullCredentialsVerificationPolicy: NeverVerifyAllowlistedImages\n" LIST
#define NO_PULLS "featureGates: {KubeletEnsureSecretPulledImages: false}\n"

static const struct expectation words[] = {
        { "topologyManagerPolicy: single-numa-node", NULL },
        { "topologyManagerPolicy: x", "topologyManagerPolicy", LKG_F_NOT_ONE_OF },
        { "topologyManagerPolicy: \"none, restricted\"", "topologyManagerPolicy", LKG_F_NOT_ONE_OF },
        { "topologyManagerScope: pod", NULL },
        { "topologyManagerScope: Pod", "topologyManagerScope", LKG_F_NOT_ONE_OF },
        { "hairpinMode: none", NULL },
        { "hairpinMode: hairpin", "hairpinMode", LKG_F_NOT_ONE_OF },
        { "memorySwap: {swapBehavior: LimitedSwap}", NULL },
        { "memorySwap: {swapBehavior: \"\"}", NULL },
        { "memorySwap: {swapBehavior: UnlimitedSwap}", "memorySwap.swapBehavior", LKG_F_NOT_ONE_OF },
        { "imagePullCredentialsVerificationPolicy: AlwaysVerify", NULL },
        { "imagePullCredentialsVerificationPolicy: Verify", "imagePullCredentialsVerificationPolicy",
          LKG_F_NOT_ONE_OF },
        { NO_PULLS "imagePullCredentialsVerificationPolicy: AlwaysVerify",
          "imagePullCredentialsVerificationPolicy", LKG_F_NEEDS_GATE },
        { ALLOWED "[quay.io/*, docker.io/library/app]", NULL },
        { ALLOWED "[quay.io/*, b*]", "preloadedImagesVerificationAllowlist[1]", LKG_F_BAD_FORMAT },
        { LIST "[quay.io/*]", "preloadedImagesVerificationAllowlist", LKG_F_CONTRADICTION },
        { NO_PULLS LIST "[quay.io/*]", "preloadedImagesVerificationAllowlist", LKG_F_NEEDS_GATE },
        { "memoryReservationPolicy: None", NULL },
        { "memoryReservationPolicy: none", "memoryReservationPolicy", LKG_F_NOT_ONE_OF },
        { "memoryReservationPolicy: none", NULL, .release = 135 },
        { "memoryReservationPolicy: TieredReservation", "memoryReservationPolicy", LKG_F_NEEDS_GATE,
          .release = 136 },
        { "memoryReservationPolicy: TieredReservation", NULL },
        { "featureGates: {MemoryQoS: true}\nmemoryReservationPolicy: TieredReservation", NULL },
        { "showHiddenMetricsForVersion: \"1.35\"", NULL, .release = 136 },
        { "showHiddenMetricsForVersion: \"1.35\"", "showHiddenMetricsForVersion", LKG_F_NOT_ONE_OF,
          .release = 135 },
        { "showHiddenMetricsForVersion: \"1.36\"", "showHiddenMetricsForVersion", LKG_F_NOT_ONE_OF,
          .release = 136 },
        { "runOnce: false", NULL },
        { "runOnce: true", "runOnce", LKG_F_CONTRADICTION },
        { "serverTLSBootstrap: true", NULL },
        { "featureGates: {RotateKubeletServerCertificate: false}\nserverTLSBootstrap: true",
          "serverTLSBootstrap", LKG_F_NEEDS_GATE },
        { "tracing: {}\nfeatureGates: {KubeletTracing: false}", "tracing", LKG_F_NEEDS_GATE,
          .release = 133 },
        { "enableSystemLogQuery: true", NULL },
        { "", NULL, .release = 133 }, /* a gate that is off, and its field at the default */
        { "crashLoopBackOff: {maxContainerRestartPeriod: 0s}", "crashLoopBackOff.maxContainerRestartPeriod",
          LKG_F_OUT_OF_RANGE },
        { "featureGates: {KubeletCrashLoopBackOffMax: false}\ncrashLoopBackOff: {maxContainerRestartPeriod: "
          "0s}",
          "crashLoopBackOff.maxContainerRestartPeriod", LKG_F_NEEDS_GATE },
        { "enableSystemLogQuery: true", "enableSystemLogQuery", LKG_F_NEEDS_GATE, .release = 133 },
        { "enableSystemLogQuery: true\nenableSystemLogHandler: false", "enableSystemLogHandler",
          LKG_F_CONTRADICTION },
        { "containerRuntimeEndpoint: unix:///run/crio/crio.sock", NULL },
};

static const struct expectation formats[] = {
        { "reservedSystemCPUs: 0-3,8", NULL },
        { "reservedSystemCPUs: 3-0", "reservedSystemCPUs", LKG_F_BAD_FORMAT },
        { "reservedSystemCPUs: \"1\"\nkubeReservedCgroup: /k", "kubeReservedCgroup", LKG_F_CONTRADICTION },
        { "systemCgroups: /s\ncgroupRoot: /", NULL },
        { "systemCgroups: /s", "systemCgroups", LKG_F_CONTRADICTION },
        { "tracing: {endpoint: \"localhost:4317\"}", NULL },
        { "tracing: {endpoint: \"http://x\"}", "tracing.endpoint", LKG_F_BAD_FORMAT },
        { "podLogsDir: /var/log/my-pods", NULL },
        { "podLogsDir: var/log", "podLogsDir", LKG_F_BAD_FORMAT },
        { "podLogsDir: /var/log/", "podLogsDir", LKG_F_BAD_FORMAT },
        { "podLogsDir: /var//log", "podLogsDir", LKG_F_BAD_FORMAT },
        { "podLogsDir: /var/../log", "podLogsDir", LKG_F_BAD_FORMAT },
        { "podLogsDir: /var/..log", NULL },
        { "podLogsDir: /", NULL },
        { "podLogsDir: /b\xc3\xbc", "podLogsDir", LKG_F_BAD_FORMAT },
        { "failCgroupV1: true", NULL },
        { "failCgroupV1: true", "failCgroupV1", LKG_F_HOST, .cgroup = 1 },
        { "failCgroupV1: false", NULL, .cgroup = 1 },
        { "failCgroupV1: false\nsingleProcessOOMKill: true", NULL, .cgroup = 1 },
        { "failCgroupV1: false\nsingleProcessOOMKill: false", "singleProcessOOMKill", LKG_F_HOST,
          .cgroup = 1 },
        { "singleProcessOOMKill: false", NULL },
};

#define ENFORCE "enforceNodeAllocatable: "

static const struct expectation lists[] = {
        { ENFORCE "[pods]", NULL },
        { ENFORCE "[none]\ncgroupsPerQOS: false", NULL },
        { ENFORCE "[pods, none]", "enforceNodeAllocatable[1]", LKG_F_CONTRADICTION },
        { ENFORCE "[pods, pods]", "enforceNodeAllocatable[1]", LKG_F_DUPLICATE },
        { ENFORCE "[Pods]", "enforceNodeAllocatable[0]", LKG_F_NOT_ONE_OF },
        { ENFORCE "[system-reserved]\nsystemReservedCgroup: /s", NULL },
        { ENFORCE "[system-reserved]", "enforceNodeAllocatable[0]", LKG_F_REQUIRED },
        { ENFORCE "[kube-reserved-compressible]", "enforceNodeAllocatable[0]", LKG_F_REQUIRED },
        { ENFORCE "[kube-reserved, kube-reserved-compressible]\nkubeReservedCgroup: /k",
          "enforceNodeAllocatable", LKG_F_CONTRADICTION },
        { ENFORCE "[system-reserved-compressible, system-reserved]\nsystemReservedCgroup: /s",
          "enforceNodeAllocatable", LKG_F_CONTRADICTION },
        { "cgroupsPerQOS: false", "cgroupsPerQOS", LKG_F_CONTRADICTION },
        { "registerWithTaints: [{key: a/b, value: c, effect: NoExecute}, {key: a}]", NULL },
        { "registerWithTaints: [{key: a, effect: x}]", "registerWithTaints[0].effect", LKG_F_NOT_ONE_OF },
        { "registerWithTaints: [{key: a b, effect: NoExecute}]", "registerWithTaints[0].key",
          LKG_F_BAD_FORMAT },
        { "registerWithTaints: [{key: a, value: a b}]", "registerWithTaints[0].value", LKG_F_BAD_FORMAT },
        { "registerWithTaints: [{value: a}]", "registerWithTaints[0].key", LKG_F_REQUIRED },
        { "registerWithTaints: [{key: a, timeAdded: 2026-01-02T03:04:05Z}]",
          "registerWithTaints[0].timeAdded", LKG_F_CONTRADICTION },
        { "reservedMemory: [{numaNode: 0, limits: {memory: 1Gi, hugepages-2Mi: 1}}, {numaNode: 1, limits: "
          "{memory: 1Gi}}]",
          NULL },
        { "reservedMemory: [{numaNode: 0, limits: {memory: 0}}]", "reservedMemory[0].limits.memory",
          LKG_F_OUT_OF_RANGE },
        { "reservedMemory: [{numaNode: 0, limits: {cpu: 1}}]", "reservedMemory[0].limits.cpu",
          LKG_F_NOT_ONE_OF },
        { "reservedMemory: [{numaNode: 0, limits: {memory: 1}}, {numaNode: 1}, {numaNode: 0, limits: "
          "{memory: "
          "2}}]",
          "reservedMemory[2].limits.memory", LKG_F_DUPLICATE },
};

#define EACH(rows)                                                \
        do {                                                      \
                for (size_t i = 0; i < LKG_ARRAY_SIZE(rows); i++) \
                        check_row(&(rows)[i], KUBELET, false);    \
        } while (0)

TEST(test_numbers)
{
        EACH(numbers);
}

TEST(test_durations)
{
        EACH(durations);
}

#define SYSCTLS "featureGates: {DefaultPodSysctls: true}\ndefaultPodSysctls: "

static const struct expectation sysctls[] = {
        { SYSCTLS "{net.ipv4.ip_forward: \"1\", kernel.domainname: x, user.max_user_namespaces: \"5\"}",
          NULL },
        { SYSCTLS "{net.ipv4.conf.eth0/100.rp_filter: \"1\", kernel.shm_rmid_forced: \"\"}", NULL },
        { SYSCTLS "{}", NULL },
        { "defaultPodSysctls: {}", NULL },
        { "defaultPodSysctls: {net.core.somaxconn: \"1\"}", "defaultPodSysctls", LKG_F_NEEDS_GATE },
        { SYSCTLS "{fs.file-max: \"1\"}", "defaultPodSysctls.fs.file-max", LKG_F_BAD_FORMAT },
        { SYSCTLS "{\"\": \"1\"}", "defaultPodSysctls.\"\"", LKG_F_BAD_FORMAT },
        { SYSCTLS "{net..x: \"1\"}", "defaultPodSysctls.net..x", LKG_F_BAD_FORMAT },
        { SYSCTLS "{net.x_: \"1\"}", "defaultPodSysctls.net.x_", LKG_F_BAD_FORMAT },
        { SYSCTLS "{\"net.ipv4.*\": \"1\"}", "defaultPodSysctls.\"net.ipv4.*\"", LKG_F_BAD_FORMAT },
        { SYSCTLS "{net.ipv4.ip_forward: \"1\", net/ipv4/ip_forward: \"0\"}",
          "defaultPodSysctls.net/ipv4/ip_forward", LKG_F_DUPLICATE },
        { SYSCTLS "{net.conf.a/b: \"1\", net/conf/a.b: \"0\"}", "defaultPodSysctls.net/conf/a.b",
          LKG_F_DUPLICATE },
};

TEST(test_sysctls)
{
        for (size_t i = 0; i < LKG_ARRAY_SIZE(sysctls); i++)
                check_row(&sysctls[i], KUBELET, false);
}

TEST(test_words)
{
        EACH(words);
}

TEST(test_formats)
{
        EACH(formats);
}

TEST(test_lists)
{
        EACH(lists);
}

TEST(test_pulls_need_serialize_off)
{
        static const struct expectation rows[] = {
                { "maxParallelImagePulls: 2\nserializeImagePulls: false", NULL },
                { "maxParallelImagePulls: 1\nserializeImagePulls: true", NULL },
                { "maxParallelImagePulls: 2\nserializeImagePulls: true", "serializeImagePulls",
                  LKG_F_CONTRADICTION },
        };

        EACH(rows);
}

TEST(test_all_breaches_at_once)
{
        struct trial t = { .base = KUBELET
                           "maxPods: -1\nport: 0x20000\nhairpinMode: x\nlogging: {format: z}\n"
                           "registerWithTaints: [{key: a b, value: c d, effect: e}]\n" };

        assert_string_equal(
                said(&t),
                "base.yaml:3:10: error: maxPods: -1 is out of range; it must not be negative "
                "[LKG5030]\n"
                "base.yaml:4:7: error: port: 131072 is out of range; want a port, 1 to 65535 "
                "[LKG5030]\n"
                "base.yaml:5:14: error: hairpinMode: \"x\" is not known; want one of none, "
                "hairpin-veth, promiscuous-bridge [LKG5031]\n"
                "base.yaml:7:28: error: registerWithTaints[0].key: \"a b\" is not right: the name must "
                "be letters, digits, -, _ and points, with a letter or digit at both ends [LKG5035]\n"
                "base.yaml:7:40: error: registerWithTaints[0].value: \"c d\" is not right: the value "
                "must be letters, digits, -, _ and points, with a letter or digit at both ends "
                "[LKG5035]\n"
                "base.yaml:7:53: error: registerWithTaints[0].effect: \"e\" is not known; want one of "
                "NoSchedule, PreferNoSchedule, NoExecute [LKG5031]\n"
                "base.yaml:6:19: error: logging.format: \"z\" is not known; want one of text, json "
                "[LKG5031]\n");
}
