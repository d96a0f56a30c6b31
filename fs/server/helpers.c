/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Threads that wait for the source directory, so that no worker has to. They come when something is held and go after a
 * second without work.
 *
 * They also close what the kernel has closed: nobody waits for that, and a file on a dead network file system may never be
 * closed, so it takes no slot. The record of the file stays until it is over (LKG_FILE_CLOSING), which bounds how many there can
 * be, and tells a successor that the kernel has had its answer.
 */
#include <errno.h>
#include <time.h>

#include "held.h"

#define IDLE_S 1

struct closing {
        struct closing *next;
        uint64_t fh, dev;
        uint32_t owner;
};
static struct closing *closings, **last_closing = &closings; /* that wait, the oldest first; held_lock */
static struct closing *running;                              /* as many as helpers at most; held_lock */
static pthread_cond_t work = PTHREAD_COND_INITIALIZER;
static struct crew crew; /* held_lock */

/* ---- closings; lock held ---- */

size_t closings_of_device(uint64_t dev)
{
        size_t n = 0;

        for (const struct closing *one = running; one; one = one->next)
                n += one->dev == dev;
        return n;
}

bool closing_waits(void)
{
        return closings;
}

/* Taken out. Many in a row are one user's of one file system: who must wait is not asked about again. */
static struct closing *next_closing(void)
{
        const struct closing *refused = NULL;

        for (struct closing **p = &closings; *p; p = &(*p)->next) {
                struct closing *one = *p;

                if (refused && refused->owner == one->owner && refused->dev == one->dev)
                        continue;
                refused = one;
                if (!held_may_run(one->owner, one->dev))
                        continue;
                *p = one->next;
                if (last_closing == &one->next)
                        last_closing = p;
                return one;
        }
        return NULL;
}

/* Lock held, and let go meanwhile. Return: whether there was one. */
static bool run_closing(void)
{
        struct closing *one = next_closing(), **p = &running;

        if (!one)
                return false;
        one->next = running;
        running = one;
        held_count_run(one->owner, 1);
        (void)pthread_mutex_unlock(&held_lock);
        source_closed(one->fh);
        (void)pthread_mutex_lock(&held_lock);
        held_count_run(one->owner, -1);
        while (*p != one)
                p = &(*p)->next;
        *p = one->next;
        free(one);
        return true;
}

/* ---- threads ---- */

static void run(struct lkg_slot *slot, bool replay)
{
        const struct fuse_in_header *header = (const void *)slot->buf;

        task.may_block = true;
        if (replay)
                replay_slot(slot);
        else
                worker_handle(slot, header->len);
        task.may_block = false;
        held_end(slot);
        slot_free(slot);
}

/* Lock held, and let go meanwhile. Return: whether there was one. */
static bool run_held(void)
{
        struct held *h = held_next();
        struct lkg_slot *slot = h ? h->slot : NULL;

        if (!h)
                return false;
        (void)pthread_mutex_unlock(&held_lock);
        run(slot, h->replay);
        (void)pthread_mutex_lock(&held_lock);
        return true;
}

static void *helper_main(void *arg)
{
        bool rested = false;
        struct timespec until;

        (void)arg;
        if (thread_init("helper") < 0)
                rested = true; /* out of memory: not now */
        (void)pthread_mutex_lock(&held_lock);
        while (!rested) {
                if (run_held() || run_closing())
                        continue;
                (void)clock_gettime(CLOCK_REALTIME, &until);
                until.tv_sec += IDLE_S;
                crew.n_idle++;
                rested = pthread_cond_timedwait(&work, &held_lock, &until) == ETIMEDOUT;
                crew_woken(&crew);
                if (rested && (run_held() || run_closing()))
                        rested = false;
        }
        rested = --crew.n == 0;
        (void)pthread_mutex_unlock(&held_lock);
        if (rested)
                slots_cool();
        thread_end();
        return NULL;
}

enum crew_wake crew_wake(struct crew *c, unsigned most)
{
        if (c->n_idle > 0) {
                c->n_idle--;
                c->n_signalled++;
                return CREW_SIGNAL;
        }
        return c->n < most ? CREW_START : CREW_NOTHING;
}

void crew_woken(struct crew *c)
{
        if (c->n_signalled > 0)
                c->n_signalled--; /* whoever comes first: it looks for work now */
        else
                c->n_idle--;
}

void helpers_wake(void)
{
        enum crew_wake how = crew_wake(&crew, HELPERS_MAX);

        if (how == CREW_SIGNAL)
                (void)pthread_cond_signal(&work);
        else if (how == CREW_START && thread_start(helper_main, NULL) == 0)
                crew.n++;
}

bool helper_close_later(const struct fuse_in_header *header)
{
        const struct fuse_release_in *in = (const void *)(header + 1);
        struct closing *one = malloc(sizeof(*one));
        const struct lkg_file *file = file_get(in->fh);
        uint64_t node = file ? file->node : header->nodeid; /* the record is a helper's from the mark on */

        if (!one)
                return false;
        *one = (struct closing){ .fh = in->fh,
                                 .dev = request_device(header),
                                 .owner = request_owner(header) };
        if (!file_mark_closing(in->fh)) {
                free(one);
                return false;
        }
        worker_reply_code(header->unique, 0);
        if (node != header->nodeid)
                kernel_invalidate_attributes(header->nodeid); /* the kernel counted our bytes as its size */
        (void)pthread_mutex_lock(&held_lock);
        *last_closing = one;
        last_closing = &one->next;
        helpers_wake();
        (void)pthread_mutex_unlock(&held_lock);
        return true;
}
