/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requests that a dead server left. They are replayed one at a time, the oldest first, with the id noted as
 * suspect: a request that kills the server three times is answered EIO (docs/specification.md 6.8). A
 * request that needs the source directory is held (held-requests.c), so that others need not wait for it.
 * FORGETs are not replayed: counting one twice would free a node that the kernel still uses; dropping one
 * only leaks a node.
 */
#include "held-requests.h"

static uint32_t *blame_of(uint64_t unique)
{
        static uint32_t none;
        uint32_t n = atomic_load(&server.shm->n_blamed);

        for (uint32_t i = 0; i < LKG_BLAMED && i < n; i++)
                if (atomic_load(&server.shm->blamed[i].unique) == unique)
                        return (uint32_t *)&server.shm->blamed[i].deaths;
        return &none;
}

/* The predecessor died while it replayed this request: count one more death. */
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
               request_is_sound(header, header->len) && header->opcode != FUSE_FORGET &&
               header->opcode != FUSE_BATCH_FORGET && header->opcode != FUSE_INTERRUPT;
}

/* It needs at most an answer. */
static bool is_over(struct lkg_slot *slot)
{
        const struct fuse_in_header *header = (const void *)slot->buf;

        if (!worth_replaying(header) || engine_is_parked(header->unique))
                return true;
        atomic_fetch_add(&server.shm->replayed, 1);
        if (atomic_load(&slot->reply_size) != 0) {
                kernel_send_raw(slot->reply, atomic_load(&slot->reply_size));
                return true;
        }
        if (*blame_of(header->unique) < LKG_BLAME_LIMIT)
                return false;
        lkg_log_error("request %llu (opcode %u, node %llu) ended the file server %u times: answered EIO",
                      (unsigned long long)header->unique, header->opcode, (unsigned long long)header->nodeid,
                      LKG_BLAME_LIMIT);
        atomic_fetch_add(&server.shm->poisoned, 1);
        request_reply_code(header->unique, -EIO);
        return true;
}

void replay_slot(struct lkg_slot *slot)
{
        const struct fuse_in_header *header = (const void *)slot->buf;
        uint64_t file = atomic_exchange(&slot->made_file, 0), unique = header->unique;

        atomic_store(&server.shm->suspect, unique);
        if (file != 0)
                file_close(file); /* opened, but the caller has no answer */
        task.replay = true;
        request_handle(slot, header->len);
        task.replay = false;
        (void)atomic_compare_exchange_strong(&server.shm->suspect, &unique, 0);
}

static void serve(struct lkg_slot *slot)
{
        const struct fuse_in_header *header = (const void *)slot->buf;

        if (is_over(slot)) {
                slot_free(slot);
                return;
        }
        atomic_store(&slot->since_ns, lkg_boottime_ns());
        atomic_store(&slot->owner, server.epoch);
        if (request_kind(header) != REQUEST_VIEW) {
                (void)held_add(slot, true);
                return;
        }
        atomic_store(&slot->state, LKG_SLOT_BUSY);
        replay_slot(slot);
        if (task.again)
                (void)held_add(slot, true);
        else
                slot_free(slot);
}

static struct lkg_slot *oldest(void)
{
        struct lkg_slot *found = NULL;

        for (size_t i = 0; i < lkg_shared_slots(server.shm); i++) {
                struct lkg_slot *slot = slot_at(i);

                if (left_over(slot) &&
                    (!found || atomic_load(&slot->since_ns) < atomic_load(&found->since_ns)))
                        found = slot;
        }
        return found;
}

static unsigned (*freed)(void); /* called when a slot is free again */

static void *replayer_main(void *arg)
{
        struct lkg_slot *slot;

        (void)arg;
        if (thread_init("replayer") < 0)
                return NULL;
        while ((slot = oldest())) {
                serve(slot);
                (void)freed();
        }
        thread_end();
        return NULL;
}

/*
 * Finishes requests that need no replay. Call it before the engine is asked again, because the engine's
 * answer would free the parked record that shows it.
 */
void workers_clean(void)
{
        slots_init();
        for (size_t i = 0; i < lkg_shared_slots(server.shm); i++) {
                struct lkg_slot *slot = slot_at(i);
                const struct fuse_in_header *header = (const void *)slot->buf;

                if (left_over(slot) && (!worth_replaying(header) || engine_is_parked(header->unique)))
                        slot_free(slot);
        }
}

bool replay_needed(void)
{
        judge_suspect();
        return oldest() != NULL;
}

int replay_start(unsigned (*when_freed)(void))
{
        freed = when_freed;
        return thread_start(replayer_main, NULL);
}
