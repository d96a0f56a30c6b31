/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Checks the shared memory that a predecessor left. A compromised predecessor may have written anything; its
 * successor must not crash, loop forever, or accept a path as a name. Invalid records are freed: the kernel
 * asks again for an unknown node or file.
 */
#include <fcntl.h>

#include <lkg/file.h>

#include "file-server.h"

/* Flags of open(2) to repeat; O_CREAT or O_TMPFILE must not be repeated, and there is no mode. */
#define OPEN_AGAIN (O_ACCMODE | O_APPEND | O_NONBLOCK | O_DSYNC | O_SYNC)

static void bound(_Atomic uint32_t *n, uint32_t max)
{
        if (atomic_load(n) > max)
                atomic_store(n, max);
}

static bool terminated(const char *text, size_t size)
{
        return memchr(text, '\0', size) != NULL;
}

/* ---- nodes ---- */

bool lkg_inherit_node(struct lkg_node *node)
{
        uint32_t kind = atomic_load(&node->kind);
        bool sound = kind > LKG_NODE_ROOT && kind < _LKG_NODE_KIND_MAX && node->incarnation != 0 &&
                     terminated(node->name, sizeof(node->name)) &&
                     terminated(node->sha256, sizeof(node->sha256));

        if (sound && kind == LKG_NODE_SOURCE)
                sound = lkg_bare_name_ok(node->name) && node->handle_size <= sizeof(node->handle);
        if (!sound || atomic_load(&node->nlookup) == 0) /* a server died while it was forgetting the node */
                atomic_store(&node->kind, LKG_NODE_FREE);
        return atomic_load(&node->kind) != LKG_NODE_FREE;
}

static void mend_root(struct lkg_shared *shm)
{
        struct lkg_node *root = &shm->nodes[ROOT_INDEX];

        bound(&shm->touched.nodes, LKG_NODES);
        if (atomic_load(&root->kind) != LKG_NODE_ROOT || root->incarnation != 0)
                atomic_store(&root->kind, LKG_NODE_FREE); /* lkg_nodes_init() creates it again */
}

/* ---- files ---- */

static void mend_files(struct lkg_shared *shm)
{
        bound(&shm->touched.files, LKG_FILES);
        for (uint32_t i = 0; i < atomic_load(&shm->touched.files); i++) {
                struct lkg_file *file = &shm->files[i];

                if (atomic_load(&file->used) > LKG_FILE_CLOSING)
                        atomic_store(&file->used, LKG_FILE_FREE);
                else if (atomic_load(&file->used) != LKG_FILE_FREE)
                        file->flags &= OPEN_AGAIN;
        }
}

/* ---- requests and replies ---- */

static void mend_slots(struct lkg_shared *shm)
{
        for (size_t i = 0; i < lkg_shared_slots(shm); i++) {
                struct lkg_slot *slot = &shm->slots[i];

                if (atomic_load(&slot->state) > LKG_SLOT_HELD)
                        atomic_store(&slot->state, LKG_SLOT_FREE);
                if (atomic_load(&slot->state) != LKG_SLOT_FREE)
                        bound(&slot->reply_size, sizeof(slot->reply));
        }
}

static void mend_parked(struct lkg_shared *shm)
{
        for (size_t i = 0; i < lkg_shared_parked(shm); i++) {
                struct lkg_parked *parked = &shm->parked[i];
                uint32_t state = atomic_load(&parked->state);

                if (state == LKG_PARKED_FREE)
                        continue;
                if (state > LKG_PARKED_OWED || parked->reply_size > sizeof(parked->reply) ||
                    !lkg_message_is_sound(&parked->message))
                        atomic_store(&parked->state, LKG_PARKED_FREE);
                else
                        parked->message.text[parked->message.text_size] = '\0';
        }
}

/* ---- the notifier's work ---- */

static void mend_relay(struct lkg_shared *shm)
{
        uint32_t head = atomic_load(&shm->notify.relay_head), tail = atomic_load(&shm->notify.relay_tail);

        bound(&shm->notify.n_view_names, LKG_VIEW_NAMES);
        if (head - tail > LKG_RELAY_JOBS)
                atomic_store(&shm->notify.relay_head, tail);
}

void lkg_inherit(struct lkg_shared *shm)
{
        mend_root(shm);
        mend_files(shm);
        mend_slots(shm);
        mend_parked(shm);
        mend_relay(shm);
}
