/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Workers. A worker reads a request straight into its slot of the shared memory, handles it, and frees the
 * slot: if this process is killed in between, the request is still there for its successor.
 *
 * One worker at a time, the leader, reads the device; the others sleep. Waking a second thread costs as much
 * as a whole request, so the leader handles what is usually fast itself. It hands over first if it is about
 * to change something (which may wait for a disk); a request that needs the source directory goes to a
 * helper (held.c) if no other worker is free to continue reading, and whenever a request has waited
 * recently. A tick finds workers that are stuck nevertheless: their request is held from then on, and
 * another worker takes over. So a dead disk blocks only the requests that need it, and the second request
 * that waits for it does not even block the leader. The tick runs only while there is traffic.
 */
#include <linux/futex.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>

#include "requests.h"

#define TICK_NS     WAIT_NS /* how long others wait behind a leader that is stuck: once or twice this */
#define WARY_NS     LKG_NSEC_PER_SEC
#define WORKERS_MAX (LKG_WORKERS + HELPERS_MAX)
#define NOBODY      (-1)
#define ADOPTED     UINT64_MAX

static struct worker {
        int number;
        struct lkg_slot *slot;
        pthread_t thread;
        int tid;
        _Atomic uint64_t busy_ns; /* start of the current request; 0 = none; ADOPTED: it is held now */
        bool used;                /* workers_lock */
} workers[WORKERS_MAX];
/* protects: used, n_workers, n_adopted. Before lkg_held_lock. */
static pthread_mutex_t workers_lock = PTHREAD_MUTEX_INITIALIZER;
static unsigned n_workers, n_adopted;
static _Atomic unsigned n_waiting;     /* workers that are ready to lead */
static _Atomic uint64_t wary_until_ns; /* CLOCK_BOOTTIME */

/* --- the leader --- */

static _Atomic int leader = NOBODY; /* number of the worker that reads the device; a futex */
static _Atomic bool ticking;
static int tick = -EBADF;

static void lead(int me)
{
        int now = NOBODY;

        if (atomic_load(&leader) == me || atomic_compare_exchange_strong(&leader, &now, me))
                return;
        atomic_fetch_add(&n_waiting, 1);
        for (;;) {
                (void)syscall(SYS_futex, &leader, FUTEX_WAIT_PRIVATE, now, NULL, NULL, 0);
                now = NOBODY;
                if (atomic_compare_exchange_strong(&leader, &now, me))
                        break;
        }
        atomic_fetch_sub(&n_waiting, 1);
}

/* @who is no longer the leader, if it was; another worker is. */
static void depose(int who)
{
        if (!atomic_compare_exchange_strong(&leader, &who, NOBODY))
                return;
        (void)syscall(SYS_futex, &leader, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

static void arm_tick(uint64_t in_ns)
{
        const struct itimerspec when = { .it_value.tv_nsec = (long)in_ns };

        (void)timerfd_settime(tick, 0, &when, NULL);
}

void lkg_worker_watch(void)
{
        if (!atomic_load(&ticking) && !atomic_exchange(&ticking, true))
                arm_tick(TICK_NS);
}

/* --- who is stuck --- */

/* A thread that waits for a CPU is not stuck. */
static bool sleeps(const struct worker *worker)
{
        char path[64], stat[512];
        const char *p;

        (void)snprintf(path, sizeof(path), "task/%d/stat", worker->tid);
        if (lkg_caller_read_proc(getpid(), path, stat, sizeof(stat)) <= 0)
                return true;
        p = strrchr(stat, ')');
        return !p || p[1] != ' ' || p[2] != 'R';
}

/*
 * In the loop. The worker waits for the source directory: its request is held from now on, and others are
 * careful. The request cannot finish meanwhile unnoticed: the first to take its `busy_ns` decides how it
 * ends.
 */
static void adopt(struct worker *worker, uint64_t since_ns)
{
        const struct fuse_in_header *header = lkg_slot_header(worker->slot);
        bool adopted, notifiers;

        if (!sleeps(worker) || lkg_request_kind(header) == REQUEST_VIEW)
                return;
        notifiers = lkg_is_notifier((int)header->pid);
        (void)pthread_mutex_lock(&workers_lock);
        (void)pthread_mutex_lock(&lkg_held_lock);
        adopted = atomic_compare_exchange_strong(&worker->busy_ns, &since_ns, ADOPTED);
        if (adopted) {
                lkg_held_adopt(worker->slot, notifiers, worker->thread);
                n_adopted++;
        }
        (void)pthread_mutex_unlock(&lkg_held_lock);
        (void)pthread_mutex_unlock(&workers_lock);
        if (!adopted)
                return;
        atomic_store(&wary_until_ns, lkg_boottime_ns() + WARY_NS);
        lkg_workers_start_more();
}

/* Return: whether any request is being handled. */
static bool look_at_workers(uint64_t now_ns)
{
        bool busy = false;

        for (unsigned i = 0; i < WORKERS_MAX; i++) {
                struct worker *worker = &workers[i];
                uint64_t since_ns = atomic_load(&worker->busy_ns);

                if (since_ns == 0 || since_ns == ADOPTED)
                        continue;
                busy = true;
                if (now_ns < since_ns + TICK_NS) /* it may have begun since the tick did */
                        continue;
                adopt(worker, since_ns);
                depose(worker->number);
        }
        return busy;
}

/* Return: when to look at what is held again; UINT64_MAX: not at all. */
static uint64_t look_at_held(uint64_t now_ns)
{
        bool replays = lkg_held_tick(now_ns);
        uint64_t next_ns = lkg_interrupts_look(now_ns);

        return replays ? now_ns + TICK_NS : next_ns;
}

static int on_tick(sd_event_source *source, int fd, uint32_t revents, void *userdata)
{
        static uint64_t served_before;
        uint64_t expirations, served = atomic_load(&server.shm->served), now_ns = lkg_boottime_ns(), next_ns;
        bool busy;

        (void)!read(fd, &expirations, sizeof(expirations));
        (void)look_at_held(now_ns);
        busy = look_at_workers(now_ns);
        if (served == served_before && !busy) {
                atomic_store(&ticking,
                             false); /* ordered before the checks: see serve(), lkg_worker_watch() */
                next_ns = look_at_held(now_ns);
                if (!look_at_workers(now_ns)) { /* quiet */
                        if (next_ns != UINT64_MAX && !atomic_load(&ticking))
                                arm_tick(next_ns > now_ns ? next_ns - now_ns : TICK_NS);
                        return 0;
                }
                if (atomic_exchange(&ticking, true))
                        return 0; /* a worker has armed it again */
        }
        served_before = served;
        arm_tick(TICK_NS);
        return 0;
}

/* --- a request --- */

/* Return: whether the request may be handled here, even if it may have to wait. */
static bool here(struct worker *me, const struct fuse_in_header *header, uint64_t now_ns)
{
        bool careful = now_ns < atomic_load_explicit(&wary_until_ns, memory_order_relaxed) || lkg_held_any();
        bool is_long = lkg_request_is_long(header), others = is_long && atomic_load(&n_waiting) > 0;

        /* without others no worker would read meanwhile */
        if ((careful || (is_long && !others)) && lkg_request_kind(header) != REQUEST_VIEW)
                return false;
        if (others)
                depose(me->number);
        return true;
}

/*
 * Gives the request to a helper, with its slot: this worker takes another slot. If it cannot be held, it is
 * refused before anything is done.
 */
static void hold(struct worker *me)
{
        const struct fuse_in_header *header = lkg_slot_header(me->slot);
        struct lkg_slot *fresh;

        if (header->opcode == FUSE_RELEASE && lkg_held_close(header))
                return;
        fresh = lkg_slot_take();
        if (fresh && lkg_held_add(me->slot, false) == 0) {
                me->slot = fresh;
                return;
        }
        if (fresh)
                lkg_slot_free(fresh);
        if (header->opcode == FUSE_RELEASE)
                lkg_request_handle(me->slot, header->len); /* out of memory: it cannot be refused */
        else
                lkg_request_reply_code(header->unique, -EBUSY);
}

/* Return: false: this worker has been replaced meanwhile and is superfluous. */
static bool end(struct worker *me)
{
        bool stays;

        if (atomic_exchange(&me->busy_ns, 0) != ADOPTED)
                return true;
        lkg_held_end(me->slot);
        LKG_LOCKED(&workers_lock);
        n_adopted--;
        stays = n_workers - n_adopted <= LKG_WORKERS;
        if (!stays)
                n_workers--;
        return stays;
}

/* Return: see end(). */
static bool serve(struct worker *me, size_t size)
{
        const struct fuse_in_header *header = lkg_slot_header(me->slot);
        uint64_t now_ns = lkg_boottime_ns();
        bool stays;

        if (!lkg_request_is_sound(header, size)) {
                if (lkg_request_has_reply(header))
                        lkg_request_reply_code(header->unique, -EIO);
                return true;
        }
        if (header->opcode == FUSE_INTERRUPT) {
                lkg_interrupt_request(header);
                return true;
        }
        atomic_store_explicit(&me->slot->since_ns, now_ns, memory_order_relaxed);
        atomic_store_explicit(&me->slot->state, LKG_SLOT_BUSY, memory_order_release);
        if (!here(me, header, now_ns)) {
                hold(me);
                return true;
        }
        atomic_store(&me->busy_ns, now_ns); /* ordered before the check of `ticking`: see on_tick() */
        lkg_worker_watch();
        lkg_request_handle(me->slot, size);
        stays = end(me);
        if (task.again)
                hold(me);
        return stays;
}

static void *worker_main(void *arg)
{
        struct worker *me = arg;
        bool gone = false, stays = true;

        me->thread = pthread_self();
        me->tid = (int)gettid();
        if (lkg_thread_init("worker") < 0) {
                stays = false;
                (void)pthread_mutex_lock(&workers_lock);
                n_workers--;
                (void)pthread_mutex_unlock(&workers_lock);
        }
        while (stays && !gone) {
                ssize_t n;

                lkg_slot_finish(me->slot);
                atomic_store_explicit(&me->slot->state, LKG_SLOT_READING, memory_order_release);
                lead(me->number);
                n = read(server.device, me->slot->buf, LKG_SLOT_BUF);
                gone = n < 0 && errno == ENODEV;
                if (n >= (ssize_t)sizeof(struct fuse_in_header))
                        stays = serve(me, (size_t)n);
                /* else EINTR, EAGAIN, ENOENT (interrupted while queued) */
        }
        lkg_slot_free(me->slot);
        depose(me->number);
        if (gone)
                (void)eventfd_write(server.gone, 1);
        lkg_thread_end();
        LKG_LOCKED(&workers_lock);
        me->used = false;
        return NULL;
}

/* Lock held. */
static struct worker *unused(void)
{
        for (unsigned i = 0; i < WORKERS_MAX; i++)
                if (!workers[i].used)
                        return &workers[i];
        return NULL;
}

void lkg_workers_start_more(void)
{
        LKG_LOCKED(&workers_lock);

        while (n_workers - n_adopted < LKG_WORKERS) {
                struct worker *worker = unused();
                struct lkg_slot *slot = worker ? lkg_slot_take() : NULL;

                if (!slot)
                        break; /* the others hold requests of dead servers; helpers free them */
                worker->number = (int)(worker - workers);
                worker->slot = slot;
                if (lkg_thread_start(worker_main, worker) < 0) {
                        lkg_slot_free(slot);
                        break;
                }
                worker->used = true;
                n_workers++;
        }
}

int lkg_workers_start(struct lkg_error *err)
{
        bool replays;

        lkg_interrupts_init();
        tick = timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK);
        if (tick < 0 || sd_event_add_io(server.event, NULL, tick, EPOLLIN, on_tick, NULL) < 0)
                return lkg_error_set(err, -errno, NULL, "timer");
        replays = lkg_replay_start();
        lkg_workers_start_more();
        return n_workers == 0 && !replays ? lkg_error_set(err, -EAGAIN, NULL, "start a worker") : 0;
}
