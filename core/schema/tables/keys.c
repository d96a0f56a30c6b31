/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Keys of maps whose keys have a meaning: eviction signals, resources, options of policies. Only for display
 * (`lkgfs explain`); rules-later.c decides what is allowed. Feature gates have a table
 * of their own, except the two names that stand for a whole stage.
 */
#include <lkg/schema.h>

static const char *const thresholds[] = { "evictionHard", "evictionSoft", "evictionSoftGracePeriod",
                                          "evictionMinimumReclaim", NULL };
static const char *const reservations[] = { "systemReserved", "kubeReserved", NULL };
static const char *const cpu_options[] = { "cpuManagerPolicyOptions", NULL };
static const char *const topology_options[] = { "topologyManagerPolicyOptions", NULL };
static const char *const qos[] = { "qosReserved", NULL };
static const char *const gates[] = { "featureGates", NULL };
static const char *const limits[] = { "reservedMemory[].limits", NULL };

const struct lkg_map_key lkg_map_keys[] = {
        { thresholds, "memory.available", "signal: available memory of the node" },
        { thresholds, "nodefs.available", "signal: free space where the kubelet keeps volumes and logs" },
        { thresholds, "nodefs.inodesFree", "signal: free inodes there" },
        { thresholds, "imagefs.available", "signal: free space where the runtime keeps images" },
        { thresholds, "imagefs.inodesFree", "signal: free inodes there" },
        { thresholds, "containerfs.available",
          "signal: free space where the runtime keeps the writable layers of containers" },
        { thresholds, "containerfs.inodesFree", "signal: free inodes there" },
        { thresholds, "allocatableMemory.available",
          "signal: memory left for pods; set by the kubelet itself" },
        { thresholds, "pid.available", "signal: free process ids" },
        { reservations, "cpu", "resource: processors, such as 500m or 2" },
        { reservations, "memory", "resource: bytes of memory, such as 512Mi" },
        { reservations, "ephemeral-storage", "resource: bytes on the node's own disk, such as 1Gi" },
        { reservations, "pid", "resource: a number of process ids, such as 1000" },
        { cpu_options, "full-pcpus-only", "option of the policy static: whole cores only" },
        { cpu_options, "distribute-cpus-across-numa",
          "option of the policy static: spread evenly across NUMA nodes if one is not enough" },
        { cpu_options, "align-by-socket",
          "option of the policy static: align to a socket, not to a NUMA node" },
        { cpu_options, "distribute-cpus-across-cores", "option of the policy static: spread across cores" },
        { cpu_options, "strict-cpu-reservation",
          "option of the policy static: exclude all pods from reservedSystemCPUs" },
        { cpu_options, "prefer-align-cpus-by-uncorecache",
          "option of the policy static: CPUs that share a last-level cache, if possible" },
        { topology_options, "prefer-closest-numa-nodes", "option: prefer NUMA nodes close to each other" },
        { topology_options, "max-allowable-numa-nodes", "option: allow more than 8 NUMA nodes" },
        { qos, "memory", "resource: the share of requested memory to reserve, such as 50%" },
        { gates, "AllAlpha",
          "every alpha gate of the release that is not set individually; off by default" },
        { gates, "AllBeta", "every beta gate of the release that is not set individually" },
        { limits, "memory", "resource: bytes of the NUMA node's memory, such as 1Gi" },
};
const size_t lkg_n_map_keys = LKG_ARRAY_SIZE(lkg_map_keys);

const struct lkg_map_key *lkg_map_key_find(const char *field, const char *key)
{
        for (size_t i = 0; i < lkg_n_map_keys; i++)
                for (size_t k = 0; lkg_map_keys[i].fields[k]; k++)
                        if (strcmp(lkg_map_keys[i].fields[k], field) == 0 &&
                            strcmp(lkg_map_keys[i].key, key) == 0)
                                return &lkg_map_keys[i];
        return NULL;
}
