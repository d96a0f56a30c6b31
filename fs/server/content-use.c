/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Old content that is not open.
 *
 * A process that only refers to it (O_PATH, a watch, a bind mount of the file) has not read anything yet.
 * The kernel does not report the end of such a reference, and also keeps unused nodes. So when there are too
 * many of these nodes, the oldest are forgotten: opening one then fails with ESTALE. Such a node belongs to
 * the user that looked it up; to no user if several did; to root if root did.
 */
#include "content-use.h"
#include "quota.h"

#define OF_ROOT_MAX 16384u /* looked up but not opened by root */
#define CROWDED     1024u  /* from then on, host root and container root are counted separately */

static _Atomic uint32_t n_of_root; /* at the last look */

void content_reset(const struct lkg_node *node)
{
        atomic_store(&use_of(node)->n_open, 0);
        atomic_store(&use_of(node)->looker, NO_ONE);
}

bool content_is_crowded(void)
{
        return atomic_load_explicit(&n_of_root, memory_order_relaxed) >= CROWDED;
}

bool content_is_open(const struct lkg_node *node)
{
        return atomic_load(&node->n_open) > 0 || atomic_load(&use_of(node)->n_open) > 0;
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

static size_t collect(const uint32_t *contents, size_t n, struct old *ret)
{
        size_t found = 0;

        for (size_t i = 0; i < n; i++) {
                const struct lkg_node *node = node_at(contents[i]);

                if (is_content(node) && node->retired_ns != 0 && !content_is_open(node))
                        ret[found++] = (struct old){ node->retired_ns, contents[i] };
        }
        qsort(ret, found, sizeof(*ret), newest_first);
        return found;
}

/* Nodes of an earlier build: it did not record who looked them up. */
static uint32_t looker_of(const struct lkg_node *node)
{
        uint32_t looker = atomic_load(&use_of(node)->looker);

        return looker == 0 ? QUOTA_HOST_ROOT : looker;
}

size_t content_surplus(const uint32_t *contents, size_t n, uint32_t **ret)
{
        static struct quota_cell cells[2 * OLD_MAX];
        static struct quota quota = { .size = OLD_MAX, .n_cells = 2 * OLD_MAX, .cells = cells };
        LKG_CLEANUP(lkg_freep) struct old *old = reallocarray(NULL, n ? n : 1, sizeof(*old));
        LKG_CLEANUP(lkg_freep) uint32_t *surplus = reallocarray(NULL, n ? n : 1, sizeof(*surplus));
        uint64_t bytes[2] = { 0, 0 };
        size_t found, count = 0;

        if (!old || !surplus)
                return 0; /* try again the next time */
        quota_reset(&quota);
        found = collect(contents, n, old);
        for (size_t i = 0; i < found; i++) {
                const struct lkg_node *node = node_at(old[i].index);
                uint32_t looker = looker_of(node);
                bool of_root = looker == QUOTA_HOST_ROOT;
                bool stays = of_root ? quota.n_root < OF_ROOT_MAX : quota_ask(&quota, looker);

                bytes[of_root] += node->size;
                if (stays && bytes[of_root] <= OLD_BYTES / 2)
                        quota_add(&quota, looker);
                else
                        surplus[count++] = old[i].index;
        }
        atomic_store(&n_of_root, quota.n_root);
        *ret = LKG_STEAL(surplus);
        return count;
}
