/* SPDX-License-Identifier: Apache-2.0 */
/* What one thread is doing, and whether the request in a slot has been answered. */
#include "held-requests.h"

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
