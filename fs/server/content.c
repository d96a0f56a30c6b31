/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Old content: newer content has replaced it, but it is still in use. It costs a node and memory, and each
 * publication makes more of it, so each user has a share (quota.h).
 *
 * A file that is open keeps its content, so the limit applies to open(): it fails with ENFILE when the
 * user's share of old content is used up. The share is a number and bytes; users that have the same content
 * open share its cost. Opens by root are only counted; opens by users have a record (files.c) with their
 * owner, which survives a restart of the server. Content that is looked up but not open: surplus.c.
 */
#include <fcntl.h>

#include "quota.h"
#include "file-server.h"
#include "requests.h"

#define PRICE   65536u     /* cost of one old content, divided among the users that have it open */
#define SEVERAL UINT32_MAX /* instead of lkg_quota_owner(): users, not one */

/* ---- who refers to it ---- */

/* Root in a container is distinguished from the host's root only if root refers to many. */
static uint32_t owner_of(const struct fuse_ctx *ctx)
{
        return ctx->uid == 0 && lkg_content_is_crowded() ? lkg_caller_owner(ctx) : lkg_quota_owner(ctx->uid);
}

void lkg_content_looked(const struct fuse_ctx *ctx, struct lkg_node *node)
{
        uint32_t before = atomic_load_explicit(&node->looker, memory_order_relaxed), now;

        if (!lkg_node_is_content(node) || before == QUOTA_HOST_ROOT || lkg_caller_is_notifier())
                return;
        now = owner_of(ctx);
        if (now == before)
                return;
        if (now != QUOTA_HOST_ROOT && before != 0)
                now = SEVERAL;
        atomic_store_explicit(&node->looker, now, memory_order_relaxed);
}

/* ---- who has it open ---- */

struct bill {
        uint64_t number, bytes; /* the number in units of 1/PRICE */
};

static void charge(struct bill *bill, const struct lkg_node *node)
{
        uint32_t n = atomic_load(&node->n_open) + atomic_load(&node->n_counted);

        bill->number += PRICE / (n ? n : 1);
        bill->bytes += node->size / (n ? n : 1);
}

static bool is_within(const struct bill *bill, unsigned part)
{
        return bill->number < (uint64_t)OLD_MAX * PRICE / part && bill->bytes < OLD_BYTES / part;
}

/* May the user open one more? Open content that is still current costs nothing. */
static bool may_open(uint32_t owner)
{
        struct bill own = { 0 }, all = { 0 };
        uint32_t n = atomic_load(&server.shm->touched.files);

        for (uint32_t i = 0; i < n && i < LKG_FILES; i++) {
                const struct lkg_file *file = &server.shm->files[i];
                const struct lkg_node *node =
                        atomic_load(&file->used) == LKG_FILE_OPEN ? lkg_node_get(file->node) : NULL;

                if (!node || !lkg_node_is_content(node) || node->retired_ns == 0)
                        continue;
                charge(&all, node);
                if (file->owner == owner)
                        charge(&own, node);
        }
        return is_within(&own, 8) && is_within(&all, 2);
}

static void uncount(struct lkg_node *node)
{
        uint32_t n = atomic_load(&node->n_counted);

        while (n > 0 && !atomic_compare_exchange_weak(&node->n_counted, &n, n - 1))
                ;
}

/*
 * Count first, then look it up again: the code that forgets a node first makes it impossible to find and
 * then checks the count.
 */
static int count_open(struct lkg_node *node, uint64_t id)
{
        atomic_fetch_add(&node->n_counted, 1);
        if (lkg_node_get(id) == node)
                return 0;
        uncount(node);
        return -ESTALE;
}

int lkg_content_open(const struct fuse_ctx *ctx, struct lkg_node *node, bool trusted, uint64_t *ret_fh)
{
        uint64_t id = lkg_node_id(node);
        uint32_t owner, record;
        int r;

        if (!lkg_node_is_content(node))
                return 0;
        owner = trusted ? QUOTA_HOST_ROOT : owner_of(ctx);
        if (owner == QUOTA_HOST_ROOT)
                return count_open(node, id);
        if (!task.replay && !may_open(owner))
                return -ENFILE;
        r = lkg_file_reserve_for(owner, &record);
        if (r < 0)
                return r;
        *ret_fh = lkg_file_fill(record, node, O_RDONLY, -EBADF);
        if (lkg_node_get(id) == node)
                return 0;
        lkg_file_close(*ret_fh);
        return -ESTALE;
}

void lkg_content_closed(uint64_t id)
{
        struct lkg_node *node = lkg_node_get(id);

        if (node && lkg_node_is_content(node))
                uncount(node);
}

/* ---- reclaim ---- */

/*
 * The kernel caches names until it needs memory, and each costs a node and a descriptor here. So a user who
 * looks at more files than their share of nodes (nodes.c) would be refused although most nodes are unused.
 * When three quarters of the share are used, the kernel is told to forget names of that user, in the order
 * of the table, which is roughly their age, until half is used. It keeps those that are open, watched or a
 * working directory.
 *
 * The name of a directory is never dropped this way: mounts on it would be detached. If files are not
 * enough, the supervisor makes the kernel drop all unused names instead (fs/supervisor/server-child.c), but not
 * while something hangs, because that writes dirty pages.
 *
 * For that the kernel locks the directory, so it may have to wait for a reply to another caller there: a
 * separate thread does it, and no request waits for it.
 */

#define BATCH 32

static pthread_mutex_t reclaim_lock = PTHREAD_MUTEX_INITIALIZER; /* protects: wanted, runs. A leaf. */
static uint32_t wanted; /* the last owner that needed it; one that is refused asks again */
static bool runs;

static void go_through(uint32_t owner)
{
        static struct lkg_name names[BATCH];
        uint32_t cursor = FUSE_ROOT_ID + 1;
        size_t n;

        while (lkg_nodes_ask(owner, lkg_quota_is_half_used) &&
               (n = lkg_nodes_of_owner(owner, &cursor, names, BATCH)) > 0)
                for (size_t i = 0; i < n; i++)
                        lkg_kernel_forget_name(names[i].parent, names[i].name);
        if (lkg_nodes_ask(owner, lkg_quota_is_nearly_used) && !lkg_held_any())
                lkg_kept_forget_names();
}

static void *reclaimer_main(void *arg)
{
        uint32_t owner;

        (void)pthread_setname_np(pthread_self(), "reclaimer");
        for (;;) {
                (void)pthread_mutex_lock(&reclaim_lock);
                owner = wanted;
                wanted = 0;
                runs = owner != 0;
                (void)pthread_mutex_unlock(&reclaim_lock);
                if (owner == 0)
                        return NULL;
                go_through(owner);
        }
}

void lkg_reclaim(uint32_t owner)
{
        if (!server.session)
                return; /* nothing was dropped */
        LKG_LOCKED(&reclaim_lock);
        wanted = owner;
        if (!runs)
                runs = lkg_thread_start(reclaimer_main, NULL) == 0;
}
