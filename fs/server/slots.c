/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Slots in the shared memory: a request is read into one and stays there until it is answered. The pages are
 * touched before a request is read into them (a SIGKILL during the kernel's copy would fail that request),
 * and released when they are unlikely to be used soon: otherwise a storm of waiting requests would leave 33
 * MiB in use.
 */
#include "held-requests.h"

#define WARM_MAX 8u /* free slots that keep their memory, until slots_cool() */

static _Atomic uint8_t taken[ALL_SLOTS];   /* by this server, or not free when it started */
static _Atomic uint8_t warm[ALL_SLOTS];    /* free, and with all of its memory */
static _Atomic uint8_t trimmed[ALL_SLOTS]; /* part of its memory has been released */
static _Atomic uint32_t n_warm;

size_t slot_number(const struct lkg_slot *slot)
{
        if (slot >= server.shm->slots && slot < server.shm->slots + LKG_SLOTS)
                return (size_t)(slot - server.shm->slots);
        return LKG_SLOTS + (size_t)(slot - server.shm->more_slots);
}

struct lkg_slot *slot_at(size_t number)
{
        return lkg_shared_slot(server.shm, number);
}

/* Clear the length first: without it the request is finished, whatever else the slot contains. */
void slot_finish(struct lkg_slot *slot)
{
        ((volatile struct fuse_in_header *)(void *)slot->buf)->len = 0;
        atomic_thread_fence(memory_order_release);
        slot->intent.valid = 0;
        atomic_store_explicit(&slot->made_file, 0, memory_order_relaxed);
        atomic_store_explicit(&slot->reply_size, 0, memory_order_relaxed);
        task_reset_claim(slot_number(slot));
}

void slot_trim(struct lkg_slot *slot)
{
        const uint32_t page = 4096, len = ((const struct fuse_in_header *)(const void *)slot->buf)->len;
        uint32_t used = (len + page - 1) / page * page;

        if (used >= LKG_SLOT_BUF)
                return;
        atomic_store(&trimmed[slot_number(slot)], 1);
        (void)madvise(slot->buf + used, LKG_SLOT_BUF - used, MADV_REMOVE);
}

void slot_free(struct lkg_slot *slot)
{
        size_t n = slot_number(slot);

        slot_finish(slot);
        if (atomic_exchange(&trimmed[n], 0) == 0 && atomic_load(&n_warm) < WARM_MAX) {
                atomic_store(&warm[n], 1);
                atomic_fetch_add(&n_warm, 1);
        } else {
                (void)madvise(slot->buf, LKG_SLOT_BUF, MADV_REMOVE);
        }
        atomic_store_explicit(&slot->state, LKG_SLOT_FREE, memory_order_release);
        atomic_store(&taken[n], 0);
}

/* After a storm: free slots keep no memory. */
void slots_cool(void)
{
        for (size_t i = 0; i < ALL_SLOTS; i++) {
                uint8_t none = 0;

                if (!atomic_load(&warm[i]) || !atomic_compare_exchange_strong(&taken[i], &none, 1))
                        continue;
                if (atomic_exchange(&warm[i], 0)) {
                        atomic_fetch_sub(&n_warm, 1);
                        (void)madvise(slot_at(i)->buf, LKG_SLOT_BUF, MADV_REMOVE);
                }
                atomic_store(&taken[i], 0);
        }
}

/* An untouched slot has no memory, and reading it would allocate some: so the mark is raised only here. */
static void raise_mark(size_t n)
{
        uint32_t more = n < LKG_SLOTS ? 0 : (uint32_t)(n - LKG_SLOTS + 1),
                 had = atomic_load(&server.shm->n_more_slots);

        while (had < more && !atomic_compare_exchange_weak(&server.shm->n_more_slots, &had, more))
                ;
}

struct lkg_slot *slot_take(void)
{
        for (size_t i = 0; i < ALL_SLOTS; i++) {
                struct lkg_slot *slot = slot_at(i);
                uint32_t state = LKG_SLOT_FREE;
                uint8_t none = 0;

                if (!atomic_compare_exchange_strong(&taken[i], &none, 1))
                        continue;
                if (!atomic_compare_exchange_strong(&slot->state, &state, LKG_SLOT_READING))
                        continue; /* a dead server's: free once it was replayed */
                atomic_store(&slot->owner, server.epoch);
                raise_mark(i);
                if (atomic_exchange(&warm[i], 0))
                        atomic_fetch_sub(&n_warm, 1);
                else
                        (void)madvise(slot->buf, LKG_SLOT_BUF, MADV_POPULATE_WRITE);
                return slot;
        }
        return NULL;
}

void slots_init(void)
{
        size_t n = lkg_shared_slots(server.shm);

        for (size_t i = 0; i < n; i++)
                atomic_store(&taken[i], atomic_load(&slot_at(i)->state) != LKG_SLOT_FREE);
}

/* ---- answers ---- */

/* What one thread is doing, and whether the request in a slot has been answered. */

__thread struct lkg_task task;

/*
 * A held request may be answered by the thread that handles it, or on behalf of a caller that is being killed (interrupt.c):
 * the first of the two answers it.
 */
static _Atomic uint8_t answered[ALL_SLOTS], interrupted[ALL_SLOTS];

bool task_claim(size_t slot_number)
{
        return atomic_exchange(&answered[slot_number], 1) == 0;
}

void task_reset_claim(size_t slot_number)
{
        atomic_store_explicit(&answered[slot_number], 0, memory_order_relaxed);
        atomic_store_explicit(&interrupted[slot_number], 0, memory_order_relaxed);
}

void task_mark_interrupted(size_t slot_number)
{
        atomic_store(&interrupted[slot_number], 1);
}

bool task_was_interrupted(size_t slot_number)
{
        return atomic_load(&interrupted[slot_number]) != 0;
}
