/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Records in shared memory about processes that open a component's file: a successor must neither ask the engine about the same
 * process again nor refuse it twice.
 *
 * A name is looked up right before each open by path (its entry is never cached), by the same thread; an
 * open without a lookup came through a descriptor, a bind mount of the file or a file handle, where another
 * lookup leads to the same inode. So the last node of each thread's lookups is remembered, and only an open
 * of exactly that node may be refused with ESTALE. (A thread that looks the name up without opening it and
 * then opens it through a descriptor is treated like an open by path; the kernel repeats any open once, so
 * it gets the file of its descriptor.)
 *
 * Records are dropped by age. A process whose record is gone counts as new: the engine knows it by its start time.
 */
#include "file-server.h"

#define INCARNATION_BITS 24u
#define INDEX_BITS       18u /* the other bits of 64 are for the thread: PID_MAX_LIMIT is 2^22 */

_Static_assert(LKG_NODES <= 1u << INDEX_BITS, "a node does not fit beside its thread");

static pthread_mutex_t openers_lock = PTHREAD_MUTEX_INITIALIZER; /* protects: shm->openers. A leaf. */

/* --- the last lookup of each thread --- */

/* Thread and node in one word, so that a SIGKILL cannot separate them. */
static uint64_t looked_word(int tid, const struct lkg_node *node)
{
        return (uint64_t)(unsigned)tid << (INDEX_BITS + INCARNATION_BITS) |
               (uint64_t)lkg_node_index(node) << INCARNATION_BITS |
               (node->incarnation & ((1u << INCARNATION_BITS) - 1));
}

void lkg_opener_looked(int tid, const struct lkg_node *node)
{
        atomic_store_explicit(&server.shm->looked[(unsigned)tid % LKG_LOOKED], looked_word(tid, node),
                              memory_order_relaxed);
}

bool lkg_opener_came_by_name(int tid, const struct lkg_node *node)
{
        return atomic_load_explicit(&server.shm->looked[(unsigned)tid % LKG_LOOKED], memory_order_relaxed) ==
               looked_word(tid, node);
}

/* --- processes --- */

/* Lock held. */
static struct lkg_opener *find_opener(const struct lkg_message *started)
{
        for (size_t i = 0; i < LKG_OPENERS; i++) {
                struct lkg_opener *opener = &server.shm->openers[i];

                if (atomic_load(&opener->used) && opener->pid == started->pid &&
                    opener->start_time == started->start_time && opener->component == started->component)
                        return opener;
        }
        return NULL;
}

/* Lock held. The record of this process; a new one if there is none. */
static struct lkg_opener *find_or_add(const struct lkg_message *started)
{
        struct lkg_opener *opener = find_opener(started), *oldest = &server.shm->openers[0];

        for (size_t i = 0; !opener && i < LKG_OPENERS; i++) {
                struct lkg_opener *one = &server.shm->openers[i];

                if (!atomic_load(&one->used)) {
                        oldest = one;
                        break;
                }
                if (one->last_ns < oldest->last_ns)
                        oldest = one;
        }
        if (!opener) {
                opener = oldest;
                atomic_store(&opener->used, 0);
                opener->component = started->component;
                opener->pid = started->pid;
                opener->start_time = started->start_time;
                opener->generation = 0;
                opener->stale_ticket = 0;
        }
        opener->last_ns = lkg_boottime_ns();
        atomic_store_explicit(&opener->used, 1, memory_order_release);
        return opener;
}

/* "Have I seen this process?" - has the engine been told of its open? Outlives this file server. */
bool lkg_opener_known(const struct lkg_message *started, uint64_t *ret_generation)
{
        LKG_LOCKED(&openers_lock);
        struct lkg_opener *opener = find_opener(started);

        if (opener) {
                opener->last_ns = lkg_boottime_ns();
                *ret_generation = opener->generation;
        }
        return opener != NULL;
}

void lkg_opener_told(const struct lkg_message *started)
{
        LKG_LOCKED(&openers_lock);
        struct lkg_opener *opener = find_or_add(started);

        if (started->number > opener->generation)
                opener->generation = started->number;
}

bool lkg_opener_refuse(const struct lkg_message *started)
{
        struct lkg_opener *opener;
        bool yes;
        LKG_LOCKED(&openers_lock);

        opener = find_or_add(started);
        /*
         * The same question again: a server was killed before or after it sent the answer, which cannot be
         * distinguished.
         */
        yes = opener->stale_ticket == 0 || opener->stale_ticket == started->ticket;
        if (yes)
                opener->stale_ticket = started->ticket;
        return yes;
}
