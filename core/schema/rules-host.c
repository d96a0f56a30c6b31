/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Values that this host cannot bear: the kubelet ends at its start. Rule: Kubernetes 1.33 to 1.37, pkg/kubelet/cm
 * (validateNodeAllocatable, NewContainerManager, memorymanager, topologymanager), cmd/kubelet/app (getReservedCPUs).
 *
 * A fact that is unknown is zero or empty, and no rule says anything about it. What the hardware lacks is refused
 * (LKG_F_HOST_LACKS); what a command can change before the component starts is a warning (LKG_F_HOST_STATE), because it
 * may be changed by then.
 *
 * Tried with kubelet 1.36.3 and containerd 1.6: "Resource \"memory\" has a reservation of ... but capacity of" (memory, cpu,
 * ephemeral-storage), "reserved-cpus: 0-5 is not a subset of online-cpus: 0-1", "references a NUMA node 3 that does not
 * exist on this machine", "the total amount ... is not equal to the value ... determined by Node Allocatable feature"; too
 * many reserved processes did not stop it. Only read: swap, topology manager, protectKernelDefaults.
 */
#include "rules.h"

#include <inttypes.h>

#include "values/values.h"

/* Sums of decimal fractions are not exact: nothing is refused for a rounding error. */
#define MORE_THAN(a, b) ((a) > (b) * (1 + 1e-12))

/* ---- lists of numbers ---- */

/* The next range of a list such as `0-3,8`. Return: false at its end, or if it is no such list. */
static bool next_range(struct lkg_span *list, int64_t *ret_low, int64_t *ret_high)
{
        struct lkg_span item, low, high;

        if (list->size == 0 || !lkg_span_next(list, ',', &item))
                return false;
        if (!lkg_span_cut(item, '-', &low, &high))
                high = low;
        return lkg_int_parse(low.data, low.size, 10, 64, ret_low, NULL) == 0 &&
               lkg_int_parse(high.data, high.size, 10, 64, ret_high, NULL) == 0;
}

/* The kernel's ranges neither touch nor overlap, so a range that is in the list is in one of them. */
static bool is_in(struct lkg_span list, int64_t first, int64_t last)
{
        int64_t low, high;

        while (next_range(&list, &low, &high))
                if (low <= first && last <= high)
                        return true;
        return false;
}

static bool is_subset(struct lkg_span list, struct lkg_span of)
{
        int64_t low, high;

        while (next_range(&list, &low, &high))
                if (!is_in(of, low, high))
                        return false;
        return true;
}

static double count(struct lkg_span list)
{
        int64_t low, high;
        double n = 0;

        while (next_range(&list, &low, &high))
                n += (double)(high - low + 1);
        return n;
}

static struct lkg_span span_of(const char *text)
{
        return lkg_span(text, strlen(text));
}

/* ---- what is kept back from the pods ---- */

struct resource {
        const char *name, *signal; /* of a hard eviction threshold; NULL = none */
        bool bytes;
};

static const struct resource cpu = { "cpu", NULL, false }, memory = { "memory", "memory.available", true },
                             storage = { "ephemeral-storage", "nodefs.available", true };

/* A sum, and its largest part, which is named. */
struct sum {
        double amount, largest;
        const struct lkg_value *value;
        char path[LKG_RULE_PATH_MAX];
        bool unknown; /* a part of it cannot be read: another finding says so */
};

static void add_part(const struct lkg_rules *rules, struct sum *sum, const char *map, const char *key,
                     double capacity)
{
        const struct lkg_value *parts = lkg_object_get(rules->object, map);
        const struct lkg_value *value = parts ? lkg_map_get(parts, key) : NULL;
        double amount = 0;

        sum->unknown |= value && lkg_startup_amount(lkg_text_of(value), capacity, &amount) < 0;
        sum->amount += amount;
        if (amount <= sum->largest)
                return;
        sum->largest = amount;
        sum->value = value;
        (void)lkg_rule_key_path(map, span_of(key), sum->path);
}

/* GetNodeAllocatableReservation(). @capacity: 0 = unknown; a threshold in percent makes the sum unknown then */
static struct sum add_up(const struct lkg_rules *rules, const struct resource *resource, double capacity)
{
        struct sum sum = { 0 };

        add_part(rules, &sum, "systemReserved", resource->name, 0);
        add_part(rules, &sum, "kubeReserved", resource->name, 0);
        if (resource->signal && !rules->no_eviction)
                add_part(rules, &sum, "evictionHard", resource->signal, capacity);
        return sum;
}

static const char *amount_text(const struct resource *resource, double amount, char buf[static 64])
{
        if (!resource->bytes)
                (void)snprintf(buf, 64, "%.10g", amount);
        else
                (void)snprintf(buf, 64, "%.0fMi", amount / (1 << 20));
        return buf;
}

/* The host is asked now: memory and CPUs come and go, swap is switched on. */
static struct lkg_host ask(const struct lkg_rules *rules, enum lkg_host_fact fact)
{
        struct lkg_host host = *rules->host;

        if (host.look)
                host.look(&host, fact);
        return host;
}

/* validateNodeAllocatable() */
static void check_allocatable(const struct lkg_rules *rules, const struct resource *resource,
                              double capacity)
{
        const struct sum sum = add_up(rules, resource, capacity);
        char wanted[64], has[64];

        if (capacity <= 0 || sum.unknown || !sum.value || !MORE_THAN(sum.amount, capacity))
                return;
        lkg_breach(rules, LKG_F_HOST_LACKS, sum.path, sum.value,
                   "is more than this host has: systemReserved, kubeReserved and evictionHard come to %s of "
                   "%s, "
                   "and the host has %s; the component ends at its start",
                   amount_text(resource, sum.amount, wanted), resource->name,
                   amount_text(resource, capacity, has));
}

/* reservedSystemCPUs replaces the cpu of systemReserved and kubeReserved. */
static void check_cpus(const struct lkg_rules *rules)
{
        static const char field[] = "reservedSystemCPUs";
        const struct lkg_span reserved = lkg_object_text(rules->object, field);
        struct lkg_span online;
        struct lkg_host host;

        if (!add_up(rules, &cpu, 0).value && reserved.size == 0)
                return;
        host = ask(rules, LKG_HOST_CPUS);
        online = span_of(host.cpus);
        if (online.size == 0)
                return;
        if (reserved.size == 0)
                check_allocatable(rules, &cpu, count(online));
        else if (!is_subset(reserved, online))
                lkg_breach(rules, LKG_F_HOST_LACKS, field, lkg_object_get(rules->object, field),
                           "names CPUs that are not online on this host; want some of %s", host.cpus);
}

/* Too many reserved processes do not stop the component; its pods may start none. */
static void check_pids(const struct lkg_rules *rules)
{
        static const struct resource pid = { "pid", NULL, false };
        struct sum sum = add_up(rules, &pid, 0);
        double pids;

        if (sum.unknown || !sum.value)
                return;
        pids = ask(rules, LKG_HOST_PIDS).pids;
        if (pids <= 0 || sum.amount < pids)
                return;
        lkg_breach(
                rules, LKG_F_HOST_STATE, sum.path, sum.value,
                "leaves no process to the pods: this host allows %.0f (kernel.pid_max, kernel.threads-max)",
                pids);
}

/* ---- NUMA nodes ---- */

/* getTotalMemoryTypeReserved() */
static void add_reserved_memory(const struct lkg_rules *rules, const struct lkg_value *list, double *ret,
                                bool *unknown)
{
        const struct lkg_host host = ask(rules, LKG_HOST_NUMA_NODES);
        struct lkg_span nodes = span_of(host.numa_nodes);

        for (struct lkg_member m = { 0 }; lkg_value_next(list, &m);) {
                const struct lkg_value *node = lkg_map_get(m.value, "numaNode"),
                                       *value = lkg_object_get(m.value, "limits.memory");
                int64_t n = lkg_value_int(node);
                double amount = 0;

                if (nodes.size > 0 && !is_in(nodes, n, n))
                        lkg_breach(rules, LKG_F_HOST_LACKS, LKG_ITEM_PATH("reservedMemory", m.i, "numaNode"),
                                   node, "is not a NUMA node of this host; want one of %s", host.numa_nodes);
                *unknown |= value && lkg_startup_amount(lkg_text_of(value), 0, &amount) < 0;
                *ret += amount;
        }
}

/* validateReservedMemory(); without a list, rules-later.c speaks. */
static void check_memory_manager(const struct lkg_rules *rules)
{
        static const char field[] = "reservedMemory";
        const struct lkg_value *list = lkg_object_get(rules->object, field);
        char listed[64], wanted[64];
        bool unknown = false;
        double amount = 0, has;
        struct sum sum;

        if (!lkg_span_is(lkg_object_text(rules->object, "memoryManagerPolicy"), "Static") || !list ||
            lkg_value_size(list) == 0)
                return;
        has = ask(rules, LKG_HOST_MEMORY).memory;
        if (has <= 0)
                return;
        add_reserved_memory(rules, list, &amount, &unknown);
        sum = add_up(rules, &memory, has);
        if (unknown || sum.unknown || (amount - sum.amount < 1 && sum.amount - amount < 1))
                return;
        lkg_breach(rules, LKG_F_HOST_LACKS, field, list,
                   "must come to as much memory as systemReserved, kubeReserved and evictionHard on this "
                   "host, which "
                   "is %s (%.0f bytes); it is %s (%.0f bytes)",
                   amount_text(&memory, sum.amount, wanted), sum.amount,
                   amount_text(&memory, amount, listed), amount);
}

/* topologymanager.NewManager() */
static void check_topology_manager(const struct lkg_rules *rules)
{
        static const char field[] = "topologyManagerPolicy";
        struct lkg_span most =
                lkg_object_text(rules->object, "topologyManagerPolicyOptions.max-allowable-numa-nodes");
        struct lkg_host host;
        struct lkg_span nodes;
        int64_t max = 8;

        if (lkg_span_is(lkg_object_text(rules->object, field), "none") ||
            (most.size > 0 && lkg_int_parse(most.data, most.size, 10, 64, &max, NULL) < 0))
                return;
        host = ask(rules, LKG_HOST_NUMA_NODES);
        nodes = span_of(host.numa_nodes);
        if (count(nodes) > (double)max)
                lkg_breach(rules, LKG_F_HOST_LACKS, field, lkg_object_get(rules->object, field),
                           "works with %" PRId64
                           " NUMA nodes at most, and this host has %.0f; want none, or raise "
                           "max-allowable-numa-nodes",
                           max, count(nodes));
}

/* ---- the state of the host ---- */

/* Without a line of a layer it is no demand of the document, and swap may be off when the component starts. */
static void check_swap_of_host(const struct lkg_rules *rules)
{
        static const char field[] = "failSwapOn";
        const struct lkg_value *value = lkg_object_get(rules->object, field);

        if (lkg_object_bool(rules->object, field) && ask(rules, LKG_HOST_SWAP).swap)
                lkg_breach(rules, lkg_where_of(value).file ? LKG_F_HOST_LACKS : LKG_F_HOST_STATE, field,
                           value,
                           "does not go with swap, which is on on this host, and the component ends at its "
                           "start; "
                           "set false, or switch swap off (swapoff -a, and its lines in /etc/fstab)");
}

/* setupKernelTunables() */
static void check_kernel_defaults(const struct lkg_rules *rules)
{
        static const char field[] = "protectKernelDefaults";

        struct lkg_host host;

        if (!lkg_object_bool(rules->object, field))
                return;
        host = ask(rules, LKG_HOST_KERNEL);
        if (*host.kernel)
                lkg_breach(rules, LKG_F_HOST_STATE, field, lkg_object_get(rules->object, field),
                           "ends the component at its start on this host, where %s; set it with sysctl",
                           host.kernel);
}

void lkg_rules_host(const struct lkg_rules *rules)
{
        if (!rules->kubelet)
                return;
        check_cpus(rules);
        check_allocatable(rules, &memory, ask(rules, LKG_HOST_MEMORY).memory);
        if (!rules->other_root && lkg_object_bool(rules->object, "localStorageCapacityIsolation"))
                check_allocatable(rules, &storage, ask(rules, LKG_HOST_STORAGE).storage);
        check_pids(rules);
        check_memory_manager(rules);
        check_topology_manager(rules);
        check_swap_of_host(rules);
        check_kernel_defaults(rules);
}
