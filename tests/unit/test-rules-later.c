/* SPDX-License-Identifier: Apache-2.0 */
/* Configurations that the kubelet accepts but does not start with. */
#include "rules-helpers.h"

static const struct expectation values[] = {
        { "", NULL },
        { "evictionHard: {memory.available: 5%, nodefs.available: 1Gi, imagefs.available: 0%}", NULL },
        { "evictionHard: {memory.free: 5%}", "evictionHard.memory.free", LKG_F_REFUSED_LATER },
        { "evictionHard: {memory.available: 101%}", "evictionHard.memory.available", LKG_F_REFUSED_LATER },
        { "evictionHard: {memory.available: \"0\"}", "evictionHard.memory.available", LKG_F_REFUSED_LATER },
        { "evictionMinimumReclaim: {memory.available: \"-1\"}", "evictionMinimumReclaim.memory.available",
          LKG_F_REFUSED_LATER },
        { "evictionSoft: {memory.available: 5%}\nevictionSoftGracePeriod: {memory.available: 1m}", NULL },
        { "evictionSoft: {memory.available: 5%}", "evictionSoft.memory.available", LKG_F_REFUSED_LATER },
        { "evictionSoft: {memory.available: 0%}", NULL },
        { "evictionSoftGracePeriod: {memory.available: soon}", "evictionSoftGracePeriod.memory.available",
          LKG_F_REFUSED_LATER },
        { "systemReserved: {cpu: 100m, memory: 1Gi, ephemeral-storage: 1Gi, pid: \"100\"}", NULL },
        { "systemReserved: {gpu: \"1\"}", "systemReserved.gpu", LKG_F_REFUSED_LATER },
        { "kubeReserved: {cpu: -1m}", "kubeReserved.cpu", LKG_F_REFUSED_LATER },
        { "kubeReserved: {\"a b\": \"1\"}", "kubeReserved.\"a b\"", LKG_F_REFUSED_LATER },
        { "qosReserved: {memory: 50%}", NULL },
        { "qosReserved: {memory: 101%}", "qosReserved.memory", LKG_F_REFUSED_LATER },
        { "tlsCipherSuites: [TLS_AES_128_GCM_SHA256, X]", "tlsCipherSuites[1]", LKG_F_REFUSED_LATER },
        { "tlsMinVersion: TLS12", "tlsMinVersion", LKG_F_REFUSED_LATER },
        { "tlsCurvePreferences: [29, 1]", "tlsCurvePreferences[1]", LKG_F_REFUSED_LATER },
        { "containerLogMaxSize: 10MB", "containerLogMaxSize", LKG_F_REFUSED_LATER },
        { "authorization: {mode: AlwaysDeny}", "authorization.mode", LKG_F_REFUSED_LATER },
        { "cpuManagerPolicy: dynamic", "cpuManagerPolicy", LKG_F_REFUSED_LATER },
        { "memoryManagerPolicy: static", "memoryManagerPolicy", LKG_F_REFUSED_LATER },
        { "configMapAndSecretChangeDetectionStrategy: Cache", NULL },
        { "configMapAndSecretChangeDetectionStrategy: cache", "configMapAndSecretChangeDetectionStrategy",
          LKG_F_REFUSED_LATER },
        { "address: \"::\"", NULL },
        { "address: localhost", "address", LKG_F_REFUSED_LATER },
        { "memorySwap: {swapBehavior: LimitedSwap}", NULL },
        { "memorySwap: {swapBehavior: LimitedSwap}", "memorySwap.swapBehavior", LKG_F_REFUSED_LATER,
          .cgroup = 1 },
        { "allowedUnsafeSysctls: [net.ipv4.*, kernel.msg*, kernel/shmmax, fs.mqueue.a, net/core/a.b]",
          NULL },
        { "allowedUnsafeSysctls: [vm.swappiness]", "allowedUnsafeSysctls[0]", LKG_F_REFUSED_LATER },
        { "syncFrequency: 0s", NULL },
        { "syncFrequency: -1s", "syncFrequency", LKG_F_REFUSED_LATER },
        { "fileCheckFrequency: -1ms", "fileCheckFrequency", LKG_F_REFUSED_LATER },
        { "allowedUnsafeSysctls: [\"net.*.x\"]", "allowedUnsafeSysctls[0]", LKG_F_REFUSED_LATER },
        { "allowedUnsafeSysctls: [net..x]", "allowedUnsafeSysctls[0]", LKG_F_REFUSED_LATER },
        { "allowedUnsafeSysctls: [\"*\"]", "allowedUnsafeSysctls[0]", LKG_F_REFUSED_LATER },
};

#define STATIC   "cpuManagerPolicy: static\nreservedSystemCPUs: \"0\"\ncpuManagerPolicyOptions: "
#define TOPOLOGY "topologyManagerPolicy: restricted\ntopologyManagerPolicyOptions: "

static const struct expectation managers[] = {
        { "cpuManagerPolicy: static\nreservedSystemCPUs: \"0\"", NULL },
        { "cpuManagerPolicy: static\nkubeReserved: {cpu: 1m}", NULL },
        { "cpuManagerPolicy: static\nkubeReserved: {cpu: \"0\"}", "cpuManagerPolicy", LKG_F_REFUSED_LATER },
        { "memoryManagerPolicy: Static\nreservedMemory: [{numaNode: 0, limits: {memory: 100Mi}}]", NULL },
        { "cpuManagerPolicyOptions: {full-pcpus-only: \"true\"}", "cpuManagerPolicyOptions",
          LKG_F_REFUSED_LATER },
        { STATIC "{full-pcpus-only: \"true\"}", NULL },
        { STATIC "{full-pcpus-only: \"yes\"}", "cpuManagerPolicyOptions.full-pcpus-only",
          LKG_F_REFUSED_LATER },
        { STATIC "{full-pcpus: \"true\"}", "cpuManagerPolicyOptions.full-pcpus", LKG_F_REFUSED_LATER },
        { STATIC "{align-by-socket: \"true\"}", "cpuManagerPolicyOptions.align-by-socket",
          LKG_F_REFUSED_LATER },
        { "featureGates: {CPUManagerPolicyAlphaOptions: true}\n" STATIC "{align-by-socket: \"true\"}",
          NULL },
        { STATIC "{prefer-align-cpus-by-uncorecache: \"true\"}", NULL },
        { STATIC "{prefer-align-cpus-by-uncorecache: \"true\"}",
          "cpuManagerPolicyOptions.prefer-align-cpus-by-uncorecache", LKG_F_REFUSED_LATER, .release = 133 },
        { STATIC "{prefer-align-cpus-by-uncorecache: \"true\", distribute-cpus-across-numa: \"true\"}",
          "cpuManagerPolicyOptions.distribute-cpus-across-numa", LKG_F_REFUSED_LATER },
        { TOPOLOGY "{max-allowable-numa-nodes: \"8\", prefer-closest-numa-nodes: \"true\"}", NULL },
        { TOPOLOGY "{max-allowable-numa-nodes: \"7\"}",
          "topologyManagerPolicyOptions.max-allowable-numa-nodes", LKG_F_REFUSED_LATER },
        { "topologyManagerPolicyOptions: {x: z}", NULL }, /* not checked with the policy none */
};

static const struct expectation ignored[] = {
        { "clusterDNS: [10.96.0.10, \"fd00::a\"]", NULL },
        { "clusterDNS: [10.96.0.10, dns.local]", "clusterDNS[1]", LKG_F_BAD_FORMAT },
        { "cgroupDriver: systemd", NULL },
        { "cgroupDriver: cgroupfs", NULL },
        { "cgroupDriver: \"\"", NULL },
        { "cgroupDriver: Systemd", "cgroupDriver", LKG_F_WORD_UNKNOWN },
        { "cgroupDriver: system", "cgroupDriver", LKG_F_WORD_UNKNOWN },
        { "staticPodURL: https://h/pods", NULL },
        { "staticPodURL: \"https://h:x/pods\"", "staticPodURL", LKG_F_BAD_FORMAT },
};

TEST(test_values)
{
        for (size_t i = 0; i < LKG_ARRAY_SIZE(values); i++)
                check_row(&values[i], KUBELET, true);
}

TEST(test_managers)
{
        for (size_t i = 0; i < LKG_ARRAY_SIZE(managers); i++)
                check_row(&managers[i], KUBELET, true);
}

TEST(test_ignored)
{
        for (size_t i = 0; i < LKG_ARRAY_SIZE(ignored); i++)
                check_row(&ignored[i], KUBELET, true);
}

/* The default of evictionHard reserves memory, and the static policy needs to know it per NUMA node. */
TEST(test_static_memory_needs_reservations)
{
        static const struct expectation bare = { "memoryManagerPolicy: Static", "memoryManagerPolicy",
                                                 LKG_F_REFUSED_LATER };
        static const struct expectation none = { "memoryManagerPolicy: Static\nevictionHard: {}", NULL };

        check_row(&bare, KUBELET, true);
        check_row(&none, KUBELET, true);
}

TEST(test_nothing_about_kube_proxy)
{
        struct trial t = { .base = PROXY "bindAddress: x\n", .later = true };

        assert_int_equal(judged(&t)->n_findings, 0);
}

/* ---- the host ---- */

#define GI (1024.0 * 1024 * 1024)

static const struct lkg_host small = {
        .cpus = "0-1,3", .numa_nodes = "0", .memory = 24 * GI, .storage = 100 * GI, .pids = 1000
};
static const struct lkg_host swapping = { .swap = true, .kernel = "kernel/panic is 0, not 10" };
static const struct lkg_host nine_nodes = { .numa_nodes = "0-8" }, unknown = { 0 };

static const struct {
        const struct lkg_host *host;
        const char *yaml, *field; /* NULL = no finding */
        unsigned code;
} hosts[] = {
        { &small, "systemReserved: {memory: 900Gi}", "systemReserved.memory", LKG_F_HOST_LACKS },
        { &unknown, "systemReserved: {memory: 900Gi, cpu: \"64\", ephemeral-storage: 9Ti, pid: \"9999\"}",
          NULL },
        { &small, "systemReserved: {memory: 23Gi}\nkubeReserved: {memory: 900Mi}", NULL },
        { &small, "systemReserved: {memory: 23Gi}\nkubeReserved: {memory: 925Mi}", "systemReserved.memory",
          LKG_F_HOST_LACKS },
        { &small, "evictionHard: {memory.available: 90%}\nkubeReserved: {memory: 3Gi}",
          "evictionHard.memory.available", LKG_F_HOST_LACKS },
        { &small, "evictionHard: {memory.available: 0%}\nkubeReserved: {memory: 24Gi}", NULL },
        { &small, "kubeReserved: {memory: \"1e400\"}", "kubeReserved.memory", LKG_F_HOST_LACKS },
        { &small, "kubeReserved: {cpu: 2900m}\nsystemReserved: {cpu: 100m}", NULL },
        { &small, "kubeReserved: {cpu: 2900m}\nsystemReserved: {cpu: 101m}", "kubeReserved.cpu",
          LKG_F_HOST_LACKS },
        { &small, "kubeReserved: {cpu: \"64\"}\nreservedSystemCPUs: \"0,3\"", NULL },
        { &small, "reservedSystemCPUs: 1-3", "reservedSystemCPUs", LKG_F_HOST_LACKS },
        { &unknown, "reservedSystemCPUs: 0-511", NULL },
        { &small, "systemReserved: {ephemeral-storage: 91Gi}", "systemReserved.ephemeral-storage",
          LKG_F_HOST_LACKS },
        { &small, "systemReserved: {ephemeral-storage: 91Gi}\nlocalStorageCapacityIsolation: false", NULL },
        { &small, "systemReserved: {pid: \"1000\"}", "systemReserved.pid", LKG_F_HOST_STATE },
        { &small, "systemReserved: {pid: \"999\"}", NULL },
        { &small,
          "memoryManagerPolicy: Static\nsystemReserved: {memory: 924Mi}\nreservedMemory: [{numaNode: 0, "
          "limits: "
          "{memory: 1Gi}}]",
          NULL },
        { &small,
          "memoryManagerPolicy: Static\nsystemReserved: {memory: 924Mi}\nreservedMemory: [{numaNode: 1, "
          "limits: "
          "{memory: 1Gi}}]",
          "reservedMemory[0].numaNode", LKG_F_HOST_LACKS },
        { &small,
          "memoryManagerPolicy: Static\nsystemReserved: {memory: 924Mi}\nreservedMemory: [{numaNode: 0, "
          "limits: "
          "{memory: 2Gi}}]",
          "reservedMemory", LKG_F_HOST_LACKS },
        { &small, "reservedMemory: [{numaNode: 1, limits: {memory: 2Gi}}]", NULL },
        { &nine_nodes, "topologyManagerPolicy: restricted", "topologyManagerPolicy", LKG_F_HOST_LACKS },
        { &nine_nodes,
          "topologyManagerPolicy: restricted\ntopologyManagerPolicyOptions: {max-allowable-numa-nodes: "
          "\"9\"}",
          NULL },
        { &swapping, "maxPods: 5", "failSwapOn", LKG_F_HOST_STATE },
        { &swapping, "failSwapOn: true", "failSwapOn", LKG_F_HOST_LACKS },
        { &swapping, "failSwapOn: false", NULL },
        { &swapping, "failSwapOn: false\nprotectKernelDefaults: true", "protectKernelDefaults",
          LKG_F_HOST_STATE },
};

TEST(test_host)
{
        for (size_t i = 0; i < LKG_ARRAY_SIZE(hosts); i++) {
                char text[512];
                struct trial t = { .base = text, .on = hosts[i].host };
                const struct lkg_report *report;

                (void)snprintf(text, sizeof(text), KUBELET "%s\n", hosts[i].yaml);
                report = judged(&t);
                if (report->n_findings != (hosts[i].field ? 1 : 0))
                        fail_msg("%s\n%s", hosts[i].yaml, said(&t));
                if (!hosts[i].field)
                        continue;
                if (strncmp(report->findings[0].text, hosts[i].field, strlen(hosts[i].field)) != 0)
                        fail_msg("%s: %s", hosts[i].yaml, report->findings[0].text);
                assert_int_equal(report->findings[0].code, hosts[i].code);
                assert_int_equal(report->findings[0].severity,
                                 hosts[i].code == LKG_F_HOST_LACKS ? LKG_ERROR : LKG_WARNING);
        }
}

TEST(test_host_is_read)
{
        struct lkg_host host = { 0 };

        for (enum lkg_host_fact fact = 0; fact <= LKG_HOST_KERNEL; fact++)
                lkg_host_look(&host, fact, "/nowhere");
        assert_true(host.memory == 0 && host.storage == 0 && host.pids == 0 && !host.swap);
        assert_true(!*host.cpus && !*host.numa_nodes && !*host.kernel);
        lkg_host_look(&host, LKG_HOST_MEMORY, "");
        lkg_host_look(&host, LKG_HOST_CPUS, "");
        assert_true(host.memory > 0 && host.memory < 1e18);
        assert_true(*host.cpus && !strchr(host.cpus, '\n'));
}

TEST(test_reasons)
{
        static const struct {
                const char *yaml, *says; /* NULL: the kubelet starts */
        } rows[] = {
                { "evictionHard: {memory.available: \"100Mi\"}", NULL },
                { "evictionHard: {nodefs.inodesFree: \"5%\"}", NULL },
                { "evictionHard: {allocatableMemory.available: \"1\"}", NULL },
                { "evictionHard: {pid.available: \"0%\"}", NULL },
                { "evictionHard: {memory.available: \"100%\"}", NULL },
                { "evictionHard: {memory.available: \"10.5%%\"}", NULL },
                { "evictionHard: {memory.available: \"NaN%\"}", NULL },
                { "evictionHard: {memory: \"1\"}", "unknown eviction signal" },
                { "evictionHard: {memory.available: \"0\"}", "greater than zero" },
                { "evictionHard: {memory.available: \"-1\"}", "greater than zero" },
                { "evictionHard: {memory.available: \"101%\"}", "between 0% and 100%" },
                { "evictionHard: {memory.available: \"-1%\"}", "between 0% and 100%" },
                { "evictionHard: {memory.available: \"x%\"}", "percentage" },
                { "evictionHard: {memory.available: \"10 %\"}", "percentage" },
                { "evictionSoft: {memory.available: \"1K\"}\nevictionSoftGracePeriod: {memory.available: "
                  "1m}",
                  "suffix" },
                { "evictionSoftGracePeriod: {memory.available: \"1m30s\"}", NULL },
                { "evictionSoftGracePeriod: {memory.available: \"0\"}", NULL },
                { "evictionSoftGracePeriod: {memory.available: \"-1s\"}", "negative" },
                { "evictionSoftGracePeriod: {memory.available: \"90\"}", "unit" },
                { "evictionSoftGracePeriod: {x: \"90s\"}", "unknown eviction signal" },
                { "evictionMinimumReclaim: {imagefs.available: \"0\"}", NULL },
                { "evictionMinimumReclaim: {imagefs.available: \"150%\"}", NULL },
                { "evictionMinimumReclaim: {imagefs.available: \"-1\"}", "negative" },
                { "evictionMinimumReclaim: {imagefs.available: \"0%\"}", "greater than 0%" },
                { "systemReserved: {cpu: \"200m\"}", NULL },
                { "systemReserved: {pid: \"0\"}", NULL },
                { "kubeReserved: {ephemeral-storage: \"1Gi\"}", NULL },
                { "kubeReserved: {hugepages-2Mi: \"1Gi\"}", "cannot be reserved" },
                { "kubeReserved: {memory: \"-1\"}", "negative" },
                { "kubeReserved: {memory: \"1KiB\"}", "not a quantity" },
                { "qosReserved: {memory: \"50%\"}", NULL },
                { "qosReserved: {memory: \"50\"}", "percentage" },
                { "qosReserved: {memory: \"50.5%\"}", "percentage" },
                { "qosReserved: {memory: \"101%\"}", "percentage" },
                { "qosReserved: {cpu: \"50%\"}", "cannot be reserved" },
                { "containerLogMaxSize: \"10Mi\"", NULL },
                { "containerLogMaxSize: \"-1\"", NULL },
                { "containerLogMaxSize: \"1.5Gi\"", "whole number" },
                { "containerLogMaxSize: \"10MB\"", "not a quantity" },
                { "tlsCipherSuites: [TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256]", NULL },
                { "tlsCipherSuites: [TLS_RSA_WITH_RC4_128_SHA]", NULL },
                { "tlsCipherSuites: [TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305]", NULL },
                { "tlsCipherSuites: [ECDHE-RSA-AES128-GCM-SHA256]", "unknown cipher suite" },
                { "tlsMinVersion: \"\"", NULL },
                { "tlsMinVersion: \"VersionTLS13\"", NULL },
                { "tlsMinVersion: \"1.2\"", "unknown version" },
                { "authorization: {mode: Webhook}", NULL },
                { "authorization: {mode: RBAC}", "unknown mode" },
                { "cpuManagerPolicy: \"static\"\nreservedSystemCPUs: \"0\"", NULL },
                { "cpuManagerPolicy: \"Static\"", "unknown policy" },
                { "memoryManagerPolicy: \"Static\"\nreservedMemory: [{numaNode: 0, limits: {memory: "
                  "100Mi}}]",
                  NULL },
                { "memoryManagerPolicy: \"static\"", "unknown policy" },
                { "tlsCurvePreferences: [29, 4588]", NULL },
                { "tlsCurvePreferences: [30]", "not a key exchange" },
                { "tlsCurvePreferences: [-29]", "not a key exchange" },
                { "evictionSoft: {memory.available: 100%}", NULL },
                { "evictionSoft: {memory.available: 00%}", "no grace period" },
        };

        for (size_t i = 0; i < LKG_ARRAY_SIZE(rows); i++) {
                LKG_CLEANUP(lkg_freep) char *base = NULL;
                const char *text;

                assert_true(asprintf(&base, "%s%s\n", KUBELET, rows[i].yaml) > 0);
                text = said(&(struct trial){ .base = base, .later = true });
                if (rows[i].says ? !strstr(text, rows[i].says) : *text)
                        fail_msg("%s: %s", rows[i].yaml, text);
        }
}
