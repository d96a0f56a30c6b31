/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Slots and threads. A worker reads a request straight into its slot of the shared memory, handles it, and frees the
 * slot: whatever kills this process in between, the request is still there for the next one.
 *
 * A replayed request is served alone and in order of age, with its id noted as suspect: if it kills the server three
 * times it is answered EIO (crash-survival.md 8.2). FORGETs are not replayed: counting one twice would free a node the
 * kernel still uses, dropping one only leaks a node.
 */
#include <sched.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>

#include "server.h"

#define STACK_BYTES (256u * 1024)

/* The length goes first: without it the request is over, whatever else the slot still says. */
static void finish_request(struct lkg_slot *slot)
{
        ((volatile struct fuse_in_header *)(void *)slot->buf)->len = 0;
        atomic_thread_fence(memory_order_release);
        slot->intent.valid = 0;
        atomic_store(&slot->made_file, 0);
        atomic_store(&slot->reply_size, 0);
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

static void refuse(uint64_t unique, int error)
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
                refuse(header->unique,
                       -ENOSYS); /* switches them off for this connection: nothing here is interruptible */
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

static void *worker_main(void *arg)
{
        struct lkg_slot *slot = arg;
        struct fuse_in_header *header = (void *)slot->buf;

        if (thread_init("worker") < 0) {
                free_slot(slot);
                return NULL;
        }
        for (;;) {
                ssize_t n;

                finish_request(slot);
                atomic_store_explicit(&slot->state, LKG_SLOT_READING, memory_order_release);
                n = read(server.device, slot->buf, LKG_SLOT_BUF);
                if (n < 0 && errno == ENODEV)
                        break;
                if (n < (ssize_t)sizeof(*header))
                        continue; /* EINTR, EAGAIN, ENOENT (interrupted while queued) */
                atomic_store(&slot->since_ns, lkg_boottime_ns());
                atomic_store_explicit(&slot->state, LKG_SLOT_BUSY, memory_order_release);
                handle(slot, (size_t)n);
        }
        free_slot(slot);
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
                refuse(header->unique, -EIO);
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
        }
        (void)munmap(task.buf, LKG_MAX_WRITE);
        return NULL;
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

int workers_start(struct lkg_error *err)
{
        size_t n = 0;

        judge_suspect();
        for (size_t i = 0; i < LKG_WORKERS; i++) {
                struct lkg_slot *slot = take_slot();

                if (!slot)
                        break; /* the rest still holds requests of dead servers: the replayer frees them */
                if (start_thread(worker_main, slot) < 0) {
                        free_slot(slot);
                        break;
                }
                n++;
        }
        if (n == 0)
                return lkg_error_set(err, -EAGAIN, NULL, "no free request slot, no worker");
        for (size_t i = 0; i < LKG_SLOTS; i++) {
                if (!left_over(&server.shm->slots[i]))
                        continue;
                if (start_thread(replayer_main, NULL) < 0)
                        return lkg_error_set(err, -EAGAIN, NULL, "start the replay of unanswered requests");
                break;
        }
        return 0;
}
