/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Threads that wait for the source directory, so that no worker has to. They are started when a request is
 * held and end after a second without work.
 *
 * They also close files that the kernel has closed: no caller waits for that, and on a dead network file
 * system it may never finish, so it takes no slot. The record of the file stays until then
 * (LKG_FILE_CLOSING), which bounds their number and tells a successor that the kernel has had its answer.
 */
#include <errno.h>
#include <time.h>

#include "held-requests.h"

#define IDLE_S 1

static pthread_cond_t work = PTHREAD_COND_INITIALIZER;
static struct crew crew; /* held_lock */

/* Lock held, but released meanwhile. Return: whether there was one. */
static bool run_closing(void)
{
        struct closing *one = closing_next();

        if (!one)
                return false;
        (void)pthread_mutex_unlock(&held_lock);
        source_closed(one->fh);
        (void)pthread_mutex_lock(&held_lock);
        closing_end(one);
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
                request_handle(slot, header->len);
        task.may_block = false;
        held_end(slot);
        slot_free(slot);
}

/* Lock held, but released meanwhile. Return: whether there was one. */
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
                rested = true; /* out of memory: try again later */
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
                c->n_signalled--; /* it does not matter which helper wakes up: it looks for work now */
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
        /* from the mark on, the record belongs to a helper */
        uint64_t node = file ? file->node : header->nodeid;

        if (!one)
                return false;
        *one = (struct closing){ .fh = in->fh,
                                 .dev = request_device(header),
                                 .owner = request_owner(header) };
        if (!file_mark_closing(in->fh)) {
                free(one);
                return false;
        }
        request_reply_code(header->unique, 0);
        if (node != header->nodeid)
                kernel_invalidate_attributes(header->nodeid); /* it counted our bytes as the size */
        (void)pthread_mutex_lock(&held_lock);
        closing_add(one);
        helpers_wake();
        (void)pthread_mutex_unlock(&held_lock);
        return true;
}
