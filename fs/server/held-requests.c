/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Held requests (held-requests.h): one entry per slot, and shares. One user gets an eighth of the slots and
 * of the threads, all users together half, and one file system that is mounted below the source directory a
 * quarter; the rest is for the host's root. A user with no thread left waits for their own requests; one
 * with no slot left gets EBUSY before anything is done.
 */
#include "held-requests.h"
#include "quota.h"

pthread_mutex_t held_lock = PTHREAD_MUTEX_INITIALIZER;
struct held held[ALL_SLOTS];
static _Atomic uint32_t n_held;
static uint64_t orders;
static struct quota_cell slot_cells[ALL_SLOTS], run_cells[ALL_SLOTS];
static struct quota slot_quota = { .size = HELD_MAX, .n_cells = ALL_SLOTS, .cells = slot_cells };
static struct quota run_quota = { .size = HELPERS_MAX, .n_cells = ALL_SLOTS, .cells = run_cells };
static struct closing *closings, **last_closing = &closings; /* waiting, the oldest first; held_lock */
/* at most as many as there are helpers; held_lock */
static struct closing *closing_now;
static struct held *replaying; /* the request that is being replayed; NULL: none */
static uint64_t replaying_ns;

bool held_any(void)
{
        return atomic_load(&n_held) != 0;
}

/* Lock held. */
static size_t count_of_device(uint64_t dev, bool running)
{
        size_t n = 0;

        for (size_t i = 0; i < ALL_SLOTS; i++)
                n += held[i].slot && held[i].dev == dev && (held[i].running || !running);
        return n;
}

/* Lock held. */
static size_t closings_of_device(uint64_t dev)
{
        size_t n = 0;

        for (const struct closing *one = closing_now; one; one = one->next)
                n += one->dev == dev;
        return n;
}

/* Texts of the engine: users share a quarter of the threads and slots for them, root is not bound by that. */
static bool is_roots(uint32_t owner, uint64_t dev)
{
        return dev == ENGINE_DEVICE && owner == QUOTA_HOST_ROOT;
}

bool held_may_run(uint32_t owner, uint64_t dev)
{
        return quota_ask(&run_quota, owner) &&
               (dev == server.source_dev || is_roots(owner, dev) ||
                count_of_device(dev, true) + closings_of_device(dev) < RUN_OF_FS);
}

void held_count_run(uint32_t owner, int by)
{
        if (by > 0)
                quota_add(&run_quota, owner);
        else
                quota_remove(&run_quota, owner);
}

/*
 * No request waits for its user's share while it holds a lock that others need. On a file system that is
 * mounted below, that file system hangs for all anyway.
 */
static bool would_lock_others_out(const struct fuse_in_header *header, uint64_t dev)
{
        return (dev == server.source_dev || dev == ENGINE_DEVICE) && request_locks(header);
}

/* Lock held. @notifiers: it has other work, so it counts as interrupted from the start. */
static struct held *place(struct lkg_slot *slot, bool notifiers, uint32_t owner, uint64_t dev)
{
        struct held *h = &held[slot_number(slot)];

        *h = (struct held){ .slot = slot,
                            .interrupted = notifiers || task_was_interrupted(slot_number(slot)),
                            .owner = owner,
                            .dev = dev,
                            .locks_root = request_locks_root((const void *)slot->buf),
                            .locks_others_out = would_lock_others_out((const void *)slot->buf, dev),
                            .order = ++orders };
        quota_add(&slot_quota, owner);
        atomic_fetch_add(&n_held, dev != ENGINE_DEVICE);
        atomic_store_explicit(&slot->state, LKG_SLOT_HELD, memory_order_release);
        if (h->interrupted || h->locks_root || h->locks_others_out)
                server.hooks->held_waits();
        return h;
}

/* Lock held. */
static void run(struct held *h, pthread_t thread)
{
        h->running = true;
        h->thread = thread;
        held_count_run(h->owner, 1);
}

/* Lock held. */
static bool has_room(uint32_t owner, uint64_t dev)
{
        return slot_quota.n_users + slot_quota.n_root < HELD_MAX && quota_ask(&slot_quota, owner) &&
               (dev == server.source_dev || is_roots(owner, dev) ||
                count_of_device(dev, false) < HELD_OF_FS);
}

/*
 * Lock held. Has a file system that is mounted below not answered for a second? The notifier does not wait for
 * it again: its other work would wait, too. The source directory's own does not count: a lease delays one file.
 */
static bool is_silent(uint64_t dev)
{
        uint64_t now_ns = lkg_boottime_ns();

        for (size_t i = 0; i < ALL_SLOTS && dev != server.source_dev; i++)
                if (held[i].slot && held[i].running && held[i].dev == dev &&
                    now_ns - atomic_load(&held[i].slot->since_ns) >= PATIENT_NS)
                        return true;
        return false;
}

int held_add(struct lkg_slot *slot, bool replay)
{
        const struct fuse_in_header *header = (const void *)slot->buf;
        bool notifiers = is_notifier((int)header->pid);
        uint32_t owner = request_owner(header);
        uint64_t dev = request_device(header);
        struct held *h;
        int r = 0;

        (void)pthread_mutex_lock(&held_lock);
        if (!replay && notifiers && is_silent(dev)) {
                r = -EBUSY;
        } else if (replay || (has_room(owner, dev) &&
                              (held_may_run(owner, dev) || !would_lock_others_out(header, dev)))) {
                h = place(slot, notifiers, owner, dev);
                h->replay = replay;
                if (!replay && !held_may_run(owner, dev))
                        slot_trim(slot);
                server.hooks->held_work();
        } else {
                r = -EBUSY;
        }
        (void)pthread_mutex_unlock(&held_lock);
        return r;
}

void held_adopt(struct lkg_slot *slot, bool notifiers, pthread_t thread)
{
        const struct fuse_in_header *header = (const void *)slot->buf;

        run(place(slot, notifiers, request_owner(header), request_device(header)), thread);
}

/* Lock held. */
static bool any_waits(void)
{
        for (size_t i = 0; i < ALL_SLOTS; i++)
                if (held[i].slot && !held[i].running)
                        return true;
        return closings != NULL;
}

void held_end(struct lkg_slot *slot)
{
        struct held *h = &held[slot_number(slot)];

        (void)pthread_mutex_lock(&held_lock);
        if (replaying == h)
                replaying = NULL;
        quota_remove(&slot_quota, h->owner);
        if (h->running)
                held_count_run(h->owner, -1);
        h->slot = NULL;
        atomic_fetch_sub(&n_held, h->dev != ENGINE_DEVICE);
        if (any_waits())
                server.hooks->held_work(); /* a share is free now */
        (void)pthread_mutex_unlock(&held_lock);
}

struct held *held_next(void)
{
        struct held *first = NULL;

        for (size_t i = 0; i < ALL_SLOTS; i++) {
                struct held *h = &held[i];

                if (!h->slot || h->running || (first && first->order < h->order) ||
                    (h->replay && replaying) || !held_may_run(h->owner, h->dev))
                        continue;
                first = h;
        }
        if (!first)
                return NULL;
        run(first, pthread_self());
        if (first->replay) {
                replaying = first;
                replaying_ns = lkg_boottime_ns();
                server.hooks->held_replays();
        }
        return first;
}

/* A replayed request that waits this long has not killed the server: the next one may start. */
void held_replay_waits(uint64_t now_ns)
{
        (void)pthread_mutex_lock(&held_lock);
        if (replaying && now_ns - replaying_ns >= WAIT_NS) {
                replaying = NULL;
                atomic_store(&server.shm->suspect, 0);
                server.hooks->held_work();
        }
        (void)pthread_mutex_unlock(&held_lock);
}

/* ---- closings ---- */

/*
 * Takes one out. Many in a row are often of one user and one file system: one that must wait is not checked
 * again.
 */
static struct closing *take_closing(void)
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

struct closing *closing_next(void)
{
        struct closing *one = take_closing();

        if (!one)
                return NULL;
        one->next = closing_now;
        closing_now = one;
        held_count_run(one->owner, 1);
        return one;
}

void closing_add(struct closing *one)
{
        *last_closing = one;
        last_closing = &one->next;
}

void closing_end(struct closing *one)
{
        struct closing **p = &closing_now;

        held_count_run(one->owner, -1);
        while (*p != one)
                p = &(*p)->next;
        *p = one->next;
        free(one);
}
