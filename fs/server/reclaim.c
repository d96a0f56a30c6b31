/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The kernel keeps what it was told of until it needs memory, and so do we: a node and a descriptor for each file. So a user who looks
 * at more of his files than his share of nodes (nodes.c) would be refused although nobody uses the others. When he has three
 * quarters of it, the kernel is told to forget names of his, in the order of the table, which is about that of their age, until
 * he is at a half; what somebody has open, watches or stands in, it keeps.
 *
 * The name of a directory is never taken back like that: whatever somebody has mounted there would go with it. The supervisor
 * has the kernel drop all names that nobody uses instead, when files were not enough (fs/supervisor/dentries.c); not
 * while something hangs, because pages that are dirty are written then.
 *
 * The kernel locks the directory for that, so it may take until a reply that somebody waits for there: a thread of its own does it,
 * and no request waits for it.
 */
#include "held.h"

#define BATCH 32

static pthread_mutex_t reclaim_lock = PTHREAD_MUTEX_INITIALIZER; /* protects: wanted, runs. A leaf. */
static uint32_t wanted; /* owner; the last one who asked: who is refused asks again */
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
                return; /* nobody was told of anything */
        (void)pthread_mutex_lock(&reclaim_lock);
        wanted = owner;
        if (!runs)
                runs = thread_start(reclaimer_main, NULL) == 0;
        (void)pthread_mutex_unlock(&reclaim_lock);
}
