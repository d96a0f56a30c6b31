/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Slots and threads. A worker reads a request straight into its slot of the shared memory, handles it, and frees the
 * slot: whatever kills this process in between, the request is still there for the next one.
 *
 * One worker at a time, the leader, reads the device; the others sleep. Waking a second thread costs as much as a whole
 * request, so the leader handles what is usually quick itself. It hands over first when it is about to change
 * something (which may wait for a disk), and a tick deposes a leader that is stuck in anything else; so a dead disk
 * stops the requests that need it, not the others. The tick runs only while there is traffic.
 *
 * A replayed request is served alone and in order of age, with its id noted as suspect: if it kills the server three
 * times it is answered EIO (crash-survival.md 8.2). FORGETs are not replayed: counting one twice would free a node the
 * kernel still uses, dropping one only leaks a node.
 */
#include <linux/futex.h>
#include <sched.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>

#include "server.h"

#define STACK_BYTES (256u * 1024)
#define TICK_NS \
        (4 * LKG_NSEC_PER_MSEC) /* how long others wait behind a leader that is stuck: once or twice this */
#define NOBODY (-1)

/* The length goes first: without it the request is over, whatever else the slot still says. */
static void finish_request(struct lkg_slot *slot)
{
        ((volatile struct fuse_in_header *)(void *)slot->buf)->len = 0;
        atomic_thread_fence(memory_order_release);
        slot->intent.valid = 0;
        atomic_store_explicit(&slot->made_file, 0, memory_order_relaxed);
        atomic_store_explicit(&slot->reply_size, 0, memory_order_relaxed);
}

static void free_slot(struct lkg_slot *slot)
{
        finish_request(slot);
        atomic_store_explicit(&slot->state, LKG_SLOT_FREE, memory_order_release);
}

static int own_reply_buffer(void)
{
        task.buf = mmap(NULL, LKG_MAX_WRITE, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
        if (task.buf == MAP_FAILED) {
                task.buf = NULL;
                return -errno;
        }
        memset(task.buf, 1, LKG_MAX_WRITE);
        return 0;
}

/* The umask is per "file system context": each thread gets its own, so that a create can take the caller's. */
static int thread_init(const char *name)
{
        (void)prctl(PR_SET_NAME, name);
        if (unshare(CLONE_FS) < 0)
                return -errno;
        return own_reply_buffer();
}

/* A reply without a body. */
static void reply_code(uint64_t unique, int error)
{
        struct fuse_out_header out = { .len = sizeof(out), .error = error, .unique = unique };

        session_send_raw(&out, sizeof(out));
}

static void handle(struct lkg_slot *slot, size_t size)
{
        struct fuse_in_header *header = (void *)slot->buf;
        struct fuse_buf buf = { .size = size, .mem = slot->buf };

        task.slot = slot;
        task.park = NULL;
        if (header->opcode == FUSE_INTERRUPT)
                reply_code(header->unique,
                           -ENOSYS); /* switches them off for good: nothing here is interruptible */
        else if (header->opcode == FUSE_RELEASE &&
                 ((const struct fuse_release_in *)task_argument())->fh == 0)
                reply_code(header->unique,
                           0); /* content: nothing was opened; a third of all requests for it */
        else
                fuse_session_process_buf(server.session, &buf);
        task.slot = NULL;
}

static struct lkg_slot *take_slot(void)
{
        for (size_t i = 0; i < LKG_SLOTS; i++) {
                struct lkg_slot *slot = &server.shm->slots[i];
                uint32_t state = LKG_SLOT_FREE;

                if (atomic_compare_exchange_strong(&slot->state, &state, LKG_SLOT_READING)) {
                        atomic_store(&slot->owner, server.epoch);
                        (void)madvise(slot->buf, LKG_SLOT_BUF, MADV_POPULATE_WRITE);
                        return slot;
                }
        }
        return NULL;
}

/* --- the leader --- */

static _Atomic int leader = NOBODY;     /* number of the worker that reads the device; a futex */
static _Atomic uint64_t leader_busy_ns; /* since when it handles a request; 0 = it reads */
static _Atomic bool ticking;
static int tick = -EBADF;

static void lead(int me)
{
        for (;;) {
                int now = NOBODY;

                if (atomic_load(&leader) == me || atomic_compare_exchange_strong(&leader, &now, me))
                        return;
                (void)syscall(SYS_futex, &leader, FUTEX_WAIT_PRIVATE, now, NULL, NULL, 0);
        }
}

/* @who leads no longer, if it did; somebody else does. */
static void depose(int who)
{
        if (!atomic_compare_exchange_strong(&leader, &who, NOBODY))
                return;
        (void)syscall(SYS_futex, &leader, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

static void arm_tick(void)
{
        const struct itimerspec when = { .it_value.tv_nsec = TICK_NS };

        (void)timerfd_settime(tick, 0, &when, NULL);
}

static void watch_leader(uint64_t now_ns)
{
        atomic_store(&leader_busy_ns, now_ns); /* ordered before the look at `ticking`: see on_tick() */
        if (!atomic_load(&ticking) && !atomic_exchange(&ticking, true))
                arm_tick();
}

static int on_tick(sd_event_source *source, int fd, uint32_t revents, void *userdata)
{
        static uint64_t served_before;
        uint64_t expirations, served = atomic_load(&server.shm->served), since;
        int who = atomic_load(&leader);

        (void)source;
        (void)revents;
        (void)userdata;
        (void)!read(fd, &expirations, sizeof(expirations));
        since = atomic_load(&leader_busy_ns);
        if (who != NOBODY && since != 0 && lkg_boottime_ns() - since >= TICK_NS)
                depose(who);
        if (served == served_before && atomic_load(&leader_busy_ns) == 0) {
                atomic_store(&ticking, false);
                if (atomic_load(&leader_busy_ns) == 0 || atomic_exchange(&ticking, true))
                        return 0; /* quiet; or the leader has armed it again itself */
        }
        served_before = served;
        arm_tick();
        return 0;
}

/* What changes something may wait for the disk, or for a lock on it. */
static bool may_take_long(const struct fuse_in_header *header)
{
        switch (header->opcode) {
        case FUSE_LOOKUP:
        case FUSE_FORGET:
        case FUSE_BATCH_FORGET:
        case FUSE_INTERRUPT:
        case FUSE_GETATTR:
        case FUSE_READLINK:
        case FUSE_OPEN:
        case FUSE_READ:
        case FUSE_RELEASE:
        case FUSE_OPENDIR:
        case FUSE_READDIR:
        case FUSE_RELEASEDIR:
        case FUSE_GETXATTR:
        case FUSE_LISTXATTR:
        case FUSE_STATFS:
        case FUSE_POLL:
        case FUSE_IOCTL:
        case FUSE_LSEEK:
                return false;
        default:
                return true;
        }
}

struct worker {
        int number;
        struct lkg_slot *slot;
};
static struct worker workers[LKG_WORKERS];

static void *worker_main(void *arg)
{
        const struct worker *me = arg;
        struct lkg_slot *slot = me->slot;
        struct fuse_in_header *header = (void *)slot->buf;

        if (thread_init("worker") < 0) {
                free_slot(slot);
                return NULL;
        }
        for (;;) {
                uint64_t now;
                ssize_t n;

                finish_request(slot);
                atomic_store_explicit(&slot->state, LKG_SLOT_READING, memory_order_release);
                lead(me->number);
                atomic_store_explicit(&leader_busy_ns, 0, memory_order_relaxed);
                n = read(server.device, slot->buf, LKG_SLOT_BUF);
                if (n < 0 && errno == ENODEV)
                        break;
                if (n < (ssize_t)sizeof(*header))
                        continue; /* EINTR, EAGAIN, ENOENT (interrupted while queued) */
                now = lkg_boottime_ns();
                atomic_store_explicit(&slot->since_ns, now, memory_order_relaxed);
                atomic_store_explicit(&slot->state, LKG_SLOT_BUSY, memory_order_release);
                if (may_take_long(header))
                        depose(me->number);
                else
                        watch_leader(now);
                handle(slot, (size_t)n);
        }
        free_slot(slot);
        depose(me->number);
        (void)eventfd_write(server.gone, 1);
        return NULL;
}

/* --- what a dead server left --- */

static uint32_t *blame_of(uint64_t unique)
{
        static uint32_t none;
        uint32_t n = atomic_load(&server.shm->n_blamed);

        for (uint32_t i = 0; i < LKG_BLAMED && i < n; i++)
                if (atomic_load(&server.shm->blamed[i].unique) == unique)
                        return (uint32_t *)&server.shm->blamed[i].deaths;
        return &none;
}

/* The predecessor died while it replayed this request: one more death on its account. */
static void judge_suspect(void)
{
        uint64_t unique = atomic_exchange(&server.shm->suspect, 0);
        uint32_t n, *deaths;

        if (unique == 0 || atomic_load(&server.shm->crashed) == 0)
                return;
        deaths = blame_of(unique);
        if (*deaths > 0) {
                ++*deaths;
                return;
        }
        n = atomic_fetch_add(&server.shm->n_blamed, 1) % LKG_BLAMED;
        atomic_store(&server.shm->blamed[n].deaths, 1);
        atomic_store(&server.shm->blamed[n].unique, unique);
}

static bool left_over(const struct lkg_slot *slot)
{
        return atomic_load(&slot->state) != LKG_SLOT_FREE && atomic_load(&slot->owner) != server.epoch;
}

static bool worth_replaying(const struct fuse_in_header *header)
{
        return header->len >= sizeof(*header) && header->len <= LKG_SLOT_BUF &&
               header->opcode != FUSE_FORGET && header->opcode != FUSE_BATCH_FORGET &&
               header->opcode != FUSE_INTERRUPT;
}

static void replay(struct lkg_slot *slot)
{
        const struct fuse_in_header *header = (const void *)slot->buf;
        uint64_t file = atomic_load(&slot->made_file);

        if (!worth_replaying(header) || engine_is_parked(header->unique)) {
                free_slot(slot);
                return;
        }
        atomic_fetch_add(&server.shm->replayed, 1);
        if (atomic_load(&slot->reply_size) != 0) {
                session_send_raw(slot->reply, atomic_load(&slot->reply_size));
                free_slot(slot);
                return;
        }
        if (*blame_of(header->unique) >= LKG_BLAME_LIMIT) {
                lkg_log_error(
                        "request %llu (opcode %u, node %llu) ended the file server %u times: answered EIO",
                        (unsigned long long)header->unique, header->opcode,
                        (unsigned long long)header->nodeid, LKG_BLAME_LIMIT);
                atomic_fetch_add(&server.shm->poisoned, 1);
                reply_code(header->unique, -EIO);
                free_slot(slot);
                return;
        }
        if (file != 0)
                file_close(file); /* opened, never told */
        atomic_store(&slot->made_file, 0);
        atomic_store(&slot->since_ns, lkg_boottime_ns());
        atomic_store(&server.shm->suspect, header->unique);
        task.replay = true;
        handle(slot, header->len);
        task.replay = false;
        atomic_store(&server.shm->suspect, 0);
        free_slot(slot);
}

static int start_thread(void *(*main)(void *), void *arg)
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

/* As many workers as there are free slots, up to LKG_WORKERS. */
static unsigned start_workers(void)
{
        static unsigned n_workers; /* main thread first, then the replayer alone */

        while (n_workers < LKG_WORKERS) {
                struct lkg_slot *slot = take_slot();

                if (!slot)
                        break; /* the rest holds requests of dead servers: more when the replayer has freed one */
                workers[n_workers] = (struct worker){ .number = (int)n_workers, .slot = slot };
                if (start_thread(worker_main, &workers[n_workers]) < 0) {
                        free_slot(slot);
                        break;
                }
                n_workers++;
        }
        return n_workers;
}

static void *replayer_main(void *arg)
{
        (void)arg;
        if (thread_init("replayer") < 0)
                return NULL;
        for (;;) {
                struct lkg_slot *oldest = NULL;

                for (size_t i = 0; i < LKG_SLOTS; i++) {
                        struct lkg_slot *slot = &server.shm->slots[i];

                        if (left_over(slot) &&
                            (!oldest || atomic_load(&slot->since_ns) < atomic_load(&oldest->since_ns)))
                                oldest = slot;
                }
                if (!oldest)
                        break;
                replay(oldest);
                (void)start_workers();
        }
        (void)munmap(task.buf, LKG_MAX_WRITE);
        return NULL;
}

/*
 * What a dead server left and nobody has to serve: before the engine is asked again, because an answer would free the
 * parked record that says so.
 */
void workers_clean(void)
{
        for (size_t i = 0; i < LKG_SLOTS; i++) {
                struct lkg_slot *slot = &server.shm->slots[i];
                const struct fuse_in_header *header = (const void *)slot->buf;

                if (left_over(slot) && (!worth_replaying(header) || engine_is_parked(header->unique)))
                        free_slot(slot);
        }
}

int workers_start(struct lkg_error *err)
{
        bool replay_some = false;

        tick = timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK);
        if (tick < 0 || sd_event_add_io(server.event, NULL, tick, EPOLLIN, on_tick, NULL) < 0)
                return lkg_error_set(err, -errno, NULL, "timer");
        judge_suspect();
        for (size_t i = 0; i < LKG_SLOTS; i++)
                replay_some = replay_some || left_over(&server.shm->slots[i]);
        if (start_workers() == 0 && !replay_some)
                return lkg_error_set(err, -EAGAIN, NULL, "start a worker");
        if (replay_some && start_thread(replayer_main, NULL) < 0)
                return lkg_error_set(err, -EAGAIN, NULL, "start the replay of unanswered requests");
        return 0;
}
