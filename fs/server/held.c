/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Held requests (requests.h), and the helpers: threads that wait for the source directory, so that no worker has to. They are
 * started when there is something to wait for and end after a second without work.
 *
 * One user gets an eighth of the slots and of the threads, all users together half, and one file system that is mounted below the
 * source directory a quarter; the rest is for the host's root. A user with no thread left waits for their own requests; one
 * with no slot left gets EBUSY before anything is done.
 *
 * Helpers also close files that the kernel has closed: no caller waits for that, and on a dead network file
 * system it may never finish, so it takes no slot. The record of the file stays until then
 * (LKG_FILE_CLOSING), which bounds their number and tells a successor that the kernel has had its answer.
 */
#include <errno.h>
#include <time.h>

#include "requests.h"
#include "quota.h"

#define IDLE_S 1

pthread_mutex_t lkg_held_lock = PTHREAD_MUTEX_INITIALIZER;
struct held_job *lkg_held_jobs;
static struct held_job **last = &lkg_held_jobs, requests[LKG_SLOTS];
static pthread_cond_t work = PTHREAD_COND_INITIALIZER;
static unsigned n_helpers;
static struct quota_cell slot_cells[LKG_SLOTS], run_cells[LKG_SLOTS];
static struct quota slot_quota = { .size = HELD_MAX, .n_cells = LKG_SLOTS, .cells = slot_cells };
static struct quota run_quota = { .size = HELPERS_MAX, .n_cells = LKG_SLOTS, .cells = run_cells };
static const struct held_job *replaying; /* the request that is being replayed; NULL: none */
static uint64_t replaying_ns;

/* ---- shares; lock held ---- */

/* Texts of the engine: users share a quarter of the threads and slots for them, root is not bound by that. */
static bool is_unbound(uint32_t owner, uint64_t dev)
{
        return dev == server.source_dev || (dev == ENGINE_DEVICE && owner == QUOTA_HOST_ROOT);
}

static size_t n_of_fs(uint64_t dev, bool running)
{
        size_t n = 0;

        for (const struct held_job *job = lkg_held_jobs; job; job = job->next)
                n += job->dev == dev && (running ? job->running : job->slot != NULL);
        return n;
}

bool lkg_held_may_run(const struct held_job *job)
{
        return lkg_quota_ask(&run_quota, job->owner) &&
               (is_unbound(job->owner, job->dev) || n_of_fs(job->dev, true) < RUN_OF_FS);
}

static bool has_room(const struct held_job *job)
{
        return slot_quota.n_users + slot_quota.n_root < HELD_MAX && lkg_quota_ask(&slot_quota, job->owner) &&
               (is_unbound(job->owner, job->dev) || n_of_fs(job->dev, false) < HELD_OF_FS);
}

/*
 * Has a file system that is mounted below not answered for a second? The notifier does not wait for
 * it again: its other work would wait, too. The source directory's own does not count: a lease delays one file.
 */
static bool is_silent(uint64_t dev)
{
        uint64_t now_ns = lkg_boottime_ns();

        for (const struct held_job *job = lkg_held_jobs; job && dev != server.source_dev; job = job->next)
                if (job->slot && job->running && job->dev == dev &&
                    now_ns - atomic_load(&job->slot->since_ns) >= PATIENT_NS)
                        return true;
        return false;
}

/* ---- jobs; lock held ---- */

static bool may_start(const struct held_job *job)
{
        return !job->running && !(job->replay && replaying) && lkg_held_may_run(job);
}

/*
 * The next one after @before (NULL: the first) that may run now. Many closings in a row are often of one user and one file
 * system: one that must wait is not checked again.
 */
static struct held_job *next_job(const struct held_job *before)
{
        const struct held_job *refused = NULL;

        for (struct held_job *job = before ? before->next : lkg_held_jobs; job; job = job->next) {
                if (job->running || (refused && refused->owner == job->owner && refused->dev == job->dev))
                        continue;
                if (may_start(job))
                        return job;
                if (!job->replay)
                        refused = job;
        }
        return NULL;
}

void lkg_held_run(struct held_job *job)
{
        job->running = true;
        job->thread = pthread_self();
        lkg_quota_add(&run_quota, job->owner);
}

static void *helper_main(void *arg);

/* A helper for each job that may run now: one that was woken for another job may not have run yet. */
static void wake_helpers(void)
{
        unsigned n = 0;

        for (const struct held_job *job = lkg_held_jobs; job; job = job->next)
                n += job->running && !job->of_worker;
        for (const struct held_job *job = NULL; n <= n_helpers && (job = next_job(job));)
                n++;
        if (n > n_helpers && n_helpers < HELPERS_MAX && lkg_thread_start(helper_main, NULL) == 0)
                n_helpers++;
        (void)pthread_cond_signal(&work);
}

static void append(struct held_job *job)
{
        job->next = NULL;
        *last = job;
        last = &job->next;
}

static void take_out(struct held_job *job)
{
        struct held_job **p = &lkg_held_jobs;

        while (*p != job)
                p = &(*p)->next;
        *p = job->next;
        if (last == &job->next)
                last = p;
        if (job->running)
                lkg_quota_remove(&run_quota, job->owner);
        if (lkg_held_jobs)
                wake_helpers(); /* a share is free now */
}

/* ---- requests ---- */

/*
 * No request waits for its user's share while it holds a lock that others need. On a file system that is
 * mounted below, that file system hangs for all anyway.
 */
static struct held_job describe(struct lkg_slot *slot, bool notifiers)
{
        const struct fuse_in_header *header = lkg_slot_header(slot);
        uint64_t dev = lkg_request_device(header);
        /* the ACL of the root: mostly of a call that locks nothing there, and of any call */
        bool is_on_each_path = header->opcode == FUSE_GETXATTR && header->nodeid == FUSE_ROOT_ID;

        return (struct held_job){ .slot = slot,
                                  /* it has other work, so it does not wait for long */
                                  .interrupted = notifiers,
                                  .owner = lkg_request_owner(header),
                                  .dev = dev,
                                  .locks_root = lkg_request_locks_root(header),
                                  .locks_others_out =
                                          (dev == server.source_dev || dev == ENGINE_DEVICE) &&
                                          lkg_request_is(header, REQUEST_LOCKS_DIR | REQUEST_LOCKS_FILE) &&
                                          !is_on_each_path };
}

/* Lock held. */
static struct held_job *place(const struct held_job *described)
{
        struct held_job *job = &requests[lkg_slot_number(described->slot)];

        *job = *described;
        job->interrupted = job->interrupted || lkg_slot_was_interrupted(job->slot);
        lkg_quota_add(&slot_quota, job->owner);
        atomic_fetch_add(&lkg_n_held, job->dev != ENGINE_DEVICE);
        atomic_store_explicit(&job->slot->state, LKG_SLOT_HELD, memory_order_release);
        append(job);
        if (job->interrupted || job->locks_root || job->locks_others_out)
                server.hooks->watch();
        return job;
}

int lkg_held_add(struct lkg_slot *slot, bool replay)
{
        bool notifiers = lkg_is_notifier((int)lkg_slot_header(slot)->pid), taken;
        struct held_job job = describe(slot, notifiers);

        job.replay = replay;
        LKG_LOCKED(&lkg_held_lock);
        taken = replay || (!(notifiers && is_silent(job.dev)) && has_room(&job) &&
                           (lkg_held_may_run(&job) || !job.locks_others_out));
        if (taken) {
                (void)place(&job);
                if (!replay && !lkg_held_may_run(&job))
                        lkg_slot_trim(slot);
                wake_helpers();
        }
        return taken ? 0 : -EBUSY;
}

void lkg_held_adopt(struct lkg_slot *slot, bool notifiers, pthread_t thread)
{
        const struct held_job described = describe(slot, notifiers);
        struct held_job *job = place(&described);

        lkg_held_run(job);
        job->of_worker = true;
        job->thread = thread;
}

void lkg_held_end(struct lkg_slot *slot)
{
        struct held_job *job = &requests[lkg_slot_number(slot)];
        LKG_LOCKED(&lkg_held_lock);

        if (replaying == job)
                replaying = NULL;
        lkg_quota_remove(&slot_quota, job->owner);
        atomic_fetch_sub(&lkg_n_held, job->dev != ENGINE_DEVICE);
        take_out(job);
}

/* A replayed request that waits this long has not killed the server: the next one may start. */
bool lkg_held_tick(uint64_t now_ns)
{
        bool replays;
        LKG_LOCKED(&lkg_held_lock);

        if (replaying && now_ns >= replaying_ns + WAIT_NS) {
                replaying = NULL;
                atomic_store(&server.shm->blame.suspect, 0);
                wake_helpers();
        }
        replays = replaying != NULL;
        return replays;
}

bool lkg_held_close(const struct fuse_in_header *header)
{
        const struct fuse_release_in *in = (const void *)(header + 1);
        struct held_job *job = malloc(sizeof(*job));
        const struct lkg_file *file = lkg_file_get(in->fh);
        /* from the mark on, the record belongs to a helper */
        uint64_t node = file ? file->node : header->nodeid;

        if (!job)
                return false;
        *job = (struct held_job){ .fh = in->fh,
                                  .dev = lkg_request_device(header),
                                  .owner = lkg_request_owner(header) };
        if (!lkg_file_mark_closing(in->fh)) {
                free(job);
                return false;
        }
        lkg_request_reply_code(header->unique, 0);
        if (node != header->nodeid)
                lkg_kernel_invalidate_attributes(header->nodeid); /* it counted our bytes as the size */
        LKG_LOCKED(&lkg_held_lock);
        append(job);
        wake_helpers();
        return true;
}

/* ---- helpers ---- */

static void run_request(const struct held_job *job)
{
        struct lkg_slot *slot = job->slot;

        task.may_block = true;
        if (job->replay)
                lkg_replay_slot(slot);
        else
                lkg_request_handle(slot, lkg_slot_header(slot)->len);
        task.may_block = false;
        lkg_held_end(slot);
        lkg_slot_free(slot);
        server.hooks->slot_freed();
}

static void run_closing(struct held_job *job)
{
        lkg_source_closed(job->fh);
        (void)pthread_mutex_lock(&lkg_held_lock);
        take_out(job);
        (void)pthread_mutex_unlock(&lkg_held_lock);
        free(job);
}

/* Lock held, but released meanwhile. Return: whether there was one. */
static bool run_one(void)
{
        struct held_job *job = next_job(NULL);

        if (!job)
                return false;
        lkg_held_run(job);
        if (job->replay) {
                replaying = job;
                replaying_ns = lkg_boottime_ns();
                server.hooks->watch();
        }
        (void)pthread_mutex_unlock(&lkg_held_lock);
        if (job->slot)
                run_request(job);
        else
                run_closing(job);
        (void)pthread_mutex_lock(&lkg_held_lock);
        return true;
}

static void *helper_main(void *arg)
{
        bool rested = lkg_thread_init("helper") < 0; /* out of memory: try again later */
        struct timespec until;

        (void)pthread_mutex_lock(&lkg_held_lock);
        while (!rested) {
                if (run_one())
                        continue;
                (void)clock_gettime(CLOCK_REALTIME, &until);
                until.tv_sec += IDLE_S;
                rested = pthread_cond_timedwait(&work, &lkg_held_lock, &until) == ETIMEDOUT && !run_one();
        }
        n_helpers--;
        (void)pthread_mutex_unlock(&lkg_held_lock);
        lkg_thread_end();
        return NULL;
}
