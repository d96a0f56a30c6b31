/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Old content that is not open.
 *
 * A process that only refers to it (O_PATH, a watch, a bind mount of the file) has not read anything yet.
 * The kernel does not report the end of such a reference, and also keeps unused nodes. So when there are too
 * many of these nodes, the oldest are forgotten: opening one then fails with ESTALE. Such a node belongs to
 * the user that looked it up; to no user if several did; to root if root did.
 */
#include "quota.h"
#include "file-server.h"

#define OF_ROOT_MAX 16384u /* looked up but not opened by root */
#define CROWDED     1024u  /* from then on, host root and container root are counted separately */

static _Atomic uint32_t n_of_root; /* at the last look */

bool lkg_content_is_crowded(void)
{
        return atomic_load_explicit(&n_of_root, memory_order_relaxed) >= CROWDED;
}

bool lkg_content_is_open(const struct lkg_node *node)
{
        return atomic_load(&node->n_open) > 0 || atomic_load(&node->n_counted) > 0;
}

struct old {
        uint64_t retired_ns;
        uint32_t index;
};

static int newest_first(const void *a, const void *b)
{
        const struct old *x = a, *y = b;

        if (x->retired_ns != y->retired_ns)
                return x->retired_ns < y->retired_ns ? 1 : -1;
        return x->index < y->index ? 1 : x->index > y->index ? -1 : 0;
}

static int collect(const uint64_t *nodes, struct old **ret, size_t *ret_n)
{
        LKG_CLEANUP(lkg_freep) struct old *old = NULL;
        uint32_t n_nodes = atomic_load(&server.shm->touched.nodes);
        size_t n = 0, n_allocated = 0;

        for (uint32_t i = lkg_records_next(nodes, 0, n_nodes); i < n_nodes;
             i = lkg_records_next(nodes, i + 1, n_nodes)) {
                const struct lkg_node *node = lkg_node_at(i);

                if (!lkg_node_is_content(node) || node->retired_ns == 0 || lkg_content_is_open(node))
                        continue;
                if (LKG_RESERVE(old, n, n_allocated) < 0)
                        return -ENOMEM;
                old[n++] = (struct old){ node->retired_ns, i };
        }
        if (n > 0)
                qsort(old, n, sizeof(*old), newest_first);
        *ret = LKG_STEAL(old);
        *ret_n = n;
        return 0;
}

size_t lkg_content_surplus(const uint64_t *nodes, uint32_t **ret)
{
        static struct quota_cell cells[2 * OLD_MAX];
        static struct quota quota = { .size = OLD_MAX, .n_cells = 2 * OLD_MAX, .cells = cells };
        LKG_CLEANUP(lkg_freep) struct old *old = NULL;
        LKG_CLEANUP(lkg_freep) uint32_t *surplus = NULL;
        uint64_t bytes[2] = { 0, 0 };
        size_t found = 0, count = 0;

        if (collect(nodes, &old, &found) < 0 || !(surplus = reallocarray(NULL, found + 1, sizeof(*surplus))))
                return 0; /* try again the next time */
        lkg_quota_reset(&quota);
        for (size_t i = 0; i < found; i++) {
                const struct lkg_node *node = lkg_node_at(old[i].index);
                uint32_t looker = atomic_load(&node->looker);
                bool of_root = looker == QUOTA_HOST_ROOT;
                bool stays = of_root ? quota.n_root < OF_ROOT_MAX : lkg_quota_ask(&quota, looker);

                bytes[of_root] += node->size;
                if (stays && bytes[of_root] <= OLD_BYTES / 2)
                        lkg_quota_add(&quota, looker);
                else
                        surplus[count++] = old[i].index;
        }
        atomic_store(&n_of_root, quota.n_root);
        *ret = LKG_STEAL(surplus);
        return count;
}
