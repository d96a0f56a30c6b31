/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requests that a dead server left. They are held (held.c) and replayed one at a time, the oldest first, with the id noted as
 * suspect: a request that kills the server three times is answered EIO (docs/specification.md 6.8).
 * FORGETs are not replayed: counting one twice would free a node that the kernel still uses; dropping one
 * only leaks a node.
 */
#include "requests.h"

static uint32_t *blame_of(uint64_t unique)
{
        static uint32_t none;
        uint32_t n = atomic_load(&server.shm->blame.n_items);

        for (uint32_t i = 0; i < LKG_BLAMED && i < n; i++)
                if (atomic_load(&server.shm->blame.items[i].unique) == unique)
                        return (uint32_t *)&server.shm->blame.items[i].deaths;
        return &none;
}

/* The predecessor died while it replayed this request: count one more death. */
static void judge_suspect(void)
{
        uint64_t unique = atomic_exchange(&server.shm->blame.suspect, 0);
        uint32_t n, *deaths;

        if (unique == 0 || atomic_load(&server.shm->blame.crashed) == 0)
                return;
        deaths = blame_of(unique);
        if (*deaths > 0) {
                ++*deaths;
                return;
        }
        n = atomic_fetch_add(&server.shm->blame.n_items, 1) % LKG_BLAMED;
        atomic_store(&server.shm->blame.items[n].deaths, 1);
        atomic_store(&server.shm->blame.items[n].unique, unique);
}

static bool left_over(const struct lkg_slot *slot)
{
        return atomic_load(&slot->state) != LKG_SLOT_FREE && atomic_load(&slot->owner) != server.epoch;
}

static bool worth_replaying(const struct fuse_in_header *header)
{
        return header->len >= sizeof(*header) && header->len <= LKG_SLOT_BUF &&
               lkg_request_is_sound(header, header->len) && header->opcode != FUSE_FORGET &&
               header->opcode != FUSE_BATCH_FORGET && header->opcode != FUSE_INTERRUPT;
}

/* It needs at most an answer. */
static bool is_over(struct lkg_slot *slot)
{
        const struct fuse_in_header *header = lkg_slot_header(slot);

        if (!worth_replaying(header) || lkg_link_is_parked(header->unique))
                return true;
        if (atomic_load(&slot->reply_size) != 0) {
                lkg_kernel_send_raw(slot->reply, atomic_load(&slot->reply_size));
                return true;
        }
        if (*blame_of(header->unique) < LKG_BLAME_LIMIT)
                return false;
        lkg_log_error("request %llu (opcode %u, node %llu) ended the file server %u times: answered EIO",
                      (unsigned long long)header->unique, header->opcode, (unsigned long long)header->nodeid,
                      LKG_BLAME_LIMIT);
        lkg_request_reply_code(header->unique, -EIO);
        return true;
}

void lkg_replay_slot(struct lkg_slot *slot)
{
        const struct fuse_in_header *header = lkg_slot_header(slot);
        uint64_t file = atomic_exchange(&slot->made_file, 0), unique = header->unique;

        atomic_store(&server.shm->blame.suspect, unique);
        if (file != 0)
                lkg_file_close(file); /* opened, but the caller has no answer */
        task.replay = true;
        if (lkg_request_kind(header) == REQUEST_VIEW)
                atomic_store(&slot->state, LKG_SLOT_BUSY); /* that it waits is a sign of a hung server */
        lkg_request_handle(slot, header->len);
        task.replay = false;
        (void)atomic_compare_exchange_strong(&server.shm->blame.suspect, &unique, 0);
}

static struct lkg_slot *oldest(void)
{
        struct lkg_slot *found = NULL;

        for (size_t i = 0; i < lkg_shared_slots(server.shm); i++) {
                struct lkg_slot *slot = &server.shm->slots[i];

                if (left_over(slot) &&
                    (!found || atomic_load(&slot->since_ns) < atomic_load(&found->since_ns)))
                        found = slot;
        }
        return found;
}

/*
 * Finishes requests that need no replay. Call it before the engine is asked again, because the engine's
 * answer would free the parked record that shows it.
 */
void lkg_replay_clean(void)
{
        judge_suspect();
        for (size_t i = 0; i < lkg_shared_slots(server.shm); i++) {
                struct lkg_slot *slot = &server.shm->slots[i];
                const struct fuse_in_header *header = lkg_slot_header(slot);

                if (left_over(slot) && (!worth_replaying(header) || lkg_link_is_parked(header->unique)))
                        lkg_slot_free(slot);
        }
}

/** lkg_replay_start() - Return: whether there is anything to replay. */
bool lkg_replay_start(void)
{
        struct lkg_slot *slot;
        bool any = false;

        while ((slot = oldest())) {
                if (is_over(slot)) {
                        lkg_slot_free(slot);
                        continue;
                }
                atomic_store(&slot->since_ns, lkg_boottime_ns());
                atomic_store(&slot->owner, server.epoch);
                (void)lkg_held_add(slot, true);
                any = true;
        }
        return any;
}
