/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The kernel caches names until it needs memory, and each costs a node and a descriptor here. So a user who
 * looks at more files than their share of nodes (nodes.c) would be refused although most nodes are unused.
 * When three quarters of the share are used, the kernel is told to forget names of that user, in the order
 * of the table, which is roughly their age, until half is used. It keeps those that are open, watched or a
 * working directory.
 *
 * The name of a directory is never dropped this way: mounts on it would be detached. If files are not
 * enough, the supervisor makes the kernel drop all unused names instead (fs/supervisor/dentries.c), but not
 * while something hangs, because that writes dirty pages.
 *
 * For that the kernel locks the directory, so it may have to wait for a reply to another caller there: a
 * separate thread does it, and no request waits for it.
 */
#include "held-requests.h"

#define BATCH 32

static pthread_mutex_t reclaim_lock = PTHREAD_MUTEX_INITIALIZER; /* protects: wanted, runs. A leaf. */
static uint32_t wanted; /* the last owner that needed it; one that is refused asks again */
static bool runs;

static void go_through(uint32_t owner)
{
        static struct lkg_name names[BATCH];
        uint32_t cursor = FUSE_ROOT_ID + 1;
        size_t n;

        while (nodes_are_many(owner) && (n = nodes_of_owner(owner, &cursor, names, BATCH)) > 0)
                for (size_t i = 0; i < n; i++)
                        kernel_forget_name(names[i].parent, names[i].name);
        if (nodes_are_nearly_used(owner) && !held_any())
                kept_forget_names();
}

static void *reclaimer_main(void *arg)
{
        uint32_t owner;

        (void)arg;
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

void reclaim(uint32_t owner)
{
        if (!server.session)
                return; /* nothing was dropped */
        (void)pthread_mutex_lock(&reclaim_lock);
        wanted = owner;
        if (!runs)
                runs = thread_start(reclaimer_main, NULL) == 0;
        (void)pthread_mutex_unlock(&reclaim_lock);
}
