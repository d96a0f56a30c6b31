/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Slots in the shared memory, and the threads that handle what is in them. A request is read into a slot and stays there until it is
 * answered. The pages are touched before a request is read into them (a SIGKILL during the kernel's copy would fail that request), and
 * released when the slot is freed, except for those of the first slots, which are the next to be taken: otherwise a storm of
 * waiting requests would leave 33 MiB in use.
 */
#include <sched.h>
#include <sys/prctl.h>
#include <time.h>

#include "requests.h"

#define WARM_SLOTS  (LKG_WORKERS + 2u) /* those of the workers, and two of helpers */
#define STACK_BYTES (256u * 1024)

__thread struct lkg_task task;
_Atomic uint32_t lkg_n_held;

/*
 * A held request may be answered by the thread that handles it, or on behalf of a caller that is being killed (interrupt.c):
 * the first of the two answers it.
 */
static _Atomic bool answered[LKG_SLOTS], interrupted[LKG_SLOTS];

size_t lkg_slot_number(const struct lkg_slot *slot)
{
        return (size_t)(slot - server.shm->slots);
}

bool lkg_slot_claim(const struct lkg_slot *slot)
{
        return !atomic_exchange(&answered[lkg_slot_number(slot)], true);
}

void lkg_slot_mark_interrupted(const struct lkg_slot *slot)
{
        atomic_store(&interrupted[lkg_slot_number(slot)], true);
}

bool lkg_slot_was_interrupted(const struct lkg_slot *slot)
{
        return atomic_load(&interrupted[lkg_slot_number(slot)]);
}

/* Clear the length first: without it the request is finished, whatever else the slot contains. */
void lkg_slot_finish(struct lkg_slot *slot)
{
        ((volatile struct fuse_in_header *)(void *)slot->buf)->len = 0;
        atomic_thread_fence(memory_order_release);
        slot->intent.valid = 0;
        atomic_store_explicit(&slot->made_file, 0, memory_order_relaxed);
        atomic_store_explicit(&slot->reply_size, 0, memory_order_relaxed);
        atomic_store_explicit(&answered[lkg_slot_number(slot)], false, memory_order_relaxed);
        atomic_store_explicit(&interrupted[lkg_slot_number(slot)], false, memory_order_relaxed);
}

void lkg_slot_trim(struct lkg_slot *slot)
{
        const uint32_t page = 4096, used = (lkg_slot_header(slot)->len + page - 1) / page * page;

        if (used < LKG_SLOT_BUF)
                (void)madvise(slot->buf + used, LKG_SLOT_BUF - used, MADV_REMOVE);
}

void lkg_slot_free(struct lkg_slot *slot)
{
        lkg_slot_finish(slot);
        if (lkg_slot_number(slot) >= WARM_SLOTS)
                (void)madvise(slot->buf, LKG_SLOT_BUF, MADV_REMOVE);
        atomic_store_explicit(&slot->state, LKG_SLOT_FREE, memory_order_release);
}

/* An untouched slot has no memory, and reading it would allocate some: nobody looks above the mark. */
struct lkg_slot *lkg_slot_take(void)
{
        for (uint32_t i = 0; i < LKG_SLOTS; i++) {
                struct lkg_slot *slot = &server.shm->slots[i];
                uint32_t state = LKG_SLOT_FREE, n = atomic_load(&server.shm->touched.slots);

                while (n <= i && !atomic_compare_exchange_weak(&server.shm->touched.slots, &n, i + 1))
                        ;
                if (!atomic_compare_exchange_strong(&slot->state, &state, LKG_SLOT_READING))
                        continue; /* perhaps a dead server's: free once it was replayed */
                atomic_store(&slot->owner, server.epoch);
                (void)madvise(slot->buf, LKG_SLOT_BUF, MADV_POPULATE_WRITE);
                return slot;
        }
        return NULL;
}

/* ---- threads ---- */

/* The umask is per "file system context": each thread gets its own, so that a create can take the caller's. */
int lkg_thread_init(const char *name)
{
        (void)prctl(PR_SET_NAME, name);
        if (unshare(CLONE_FS) < 0)
                return -errno;
        /* Not touched now: what of it is sent to the kernel has been written before. */
        task.buf = mmap(NULL, LKG_MAX_WRITE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (task.buf == MAP_FAILED) {
                task.buf = NULL;
                return -errno;
        }
        return 0;
}

/* libc keeps the stacks of finished threads, including their touched pages. */
static void trim_stack(void)
{
        const uintptr_t page = 4096, here = (uintptr_t)__builtin_frame_address(0);
        pthread_attr_t attr;
        void *stack = NULL;
        size_t size = 0;

        if (pthread_getattr_np(pthread_self(), &attr) != 0)
                return;
        (void)pthread_attr_getstack(&attr, &stack, &size);
        (void)pthread_attr_destroy(&attr);
        if (stack && here - 2 * page > (uintptr_t)stack)
                (void)madvise(stack, ((here - 2 * page) & ~(page - 1)) - (uintptr_t)stack, MADV_DONTNEED);
}

uint64_t lkg_monotonic_ns(void)
{
        struct timespec now;

        (void)clock_gettime(CLOCK_MONOTONIC, &now);
        return (uint64_t)lkg_timespec_ns(&now);
}

bool lkg_cond_wait(pthread_cond_t *cond, pthread_mutex_t *lock, uint64_t until_ns)
{
        const struct timespec until = { .tv_sec = (time_t)(until_ns / LKG_NSEC_PER_SEC),
                                        .tv_nsec = (long)(until_ns % LKG_NSEC_PER_SEC) };

        return pthread_cond_clockwait(cond, lock, CLOCK_MONOTONIC, &until) == 0;
}

void lkg_thread_end(void)
{
        if (task.buf)
                (void)munmap(task.buf, LKG_MAX_WRITE);
        task.buf = NULL;
        trim_stack();
}

int lkg_thread_start(void *(*main)(void *), void *arg)
{
        pthread_attr_t attr;
        pthread_t thread;
        int r;

        (void)pthread_attr_init(&attr);
        (void)pthread_attr_setstacksize(&attr, STACK_BYTES);
        (void)pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
        r = pthread_create(&thread, &attr, main, arg);
        (void)pthread_attr_destroy(&attr);
        return -r;
}
