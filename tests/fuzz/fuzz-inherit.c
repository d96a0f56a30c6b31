/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any bytes in the shared memory that a file server left to its successor: the successor starts, and
 * whatever it does with a remaining node, file, reply or message, it never accesses memory outside of it.
 *
 * A step of the input: which table, which record of it, where in the record (two bytes), how many bytes; then the bytes.
 * Rule: docs/specification.md 6.8.
 */
#include <limits.h>

#include "fuzz-place.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define RECORDS 16u /* records of a table that are overwritten */
#define DEEP    12u

static const struct table {
        size_t at, size, n;
} tables[] = {
#define TABLE(member, n)                                                                            \
        {                                                                                           \
                offsetof(struct lkg_shared, member), sizeof(((struct lkg_shared *)NULL)->member), n \
        }
        TABLE(nodes[0], RECORDS),
        TABLE(files[0], RECORDS),
        TABLE(parked[0], RECORDS),
        TABLE(pollers[0], RECORDS),
        TABLE(slots[0], 2),
        TABLE(notify.relay[0], RECORDS),
        TABLE(notify.view_names[0], RECORDS),
        TABLE(blame.items[0], RECORDS),
        TABLE(openers[0], RECORDS),
        TABLE(touched.nodes, 1),
        TABLE(touched.files, 1),
        TABLE(blame.n_items, 1),
        TABLE(notify.n_view_names, 1),
        TABLE(touched.slots, 1),
        TABLE(notify.relay_head, 1),
        TABLE(notify.relay_tail, 1),
        TABLE(init.request_size, 1),
        TABLE(init.reply_size, 1),
        TABLE(init.request, 1),
        TABLE(blame.suspect, 1),
        TABLE(blame.crashed, 1),
        TABLE(counters, 1),
        TABLE(publication, 1),
        TABLE(incarnation, 1),
        TABLE(health, 1),
        TABLE(touched.parked, 1),
#undef TABLE
};

struct step {
        uint8_t table, record, offset[2], size;
};

static char *saved[LKG_ARRAY_SIZE(tables)]; /* contents left by a well-behaved server */

static uint64_t look_up(uint64_t dir, const char *name)
{
        struct fuse_entry_param entry = { 0 };

        FUZZ_CHECK(lkg_source_lookup(lkg_node_get(dir), name, &entry) == 0);
        return entry.ino;
}

static void open_file(uint64_t node, int flags)
{
        const struct fuse_ctx ctx = { .uid = 0 };
        uint32_t index;

        FUZZ_CHECK(lkg_file_reserve(&ctx, &index) == 0);
        (void)lkg_file_fill(index, lkg_node_get(node), flags, -EBADF);
}

/* One request in progress, and one that waits for the engine. */
static void leave_requests(void)
{
        struct lkg_slot *slot = &server.shm->slots[0];
        struct fuse_in_header *header = (void *)slot->buf;
        struct lkg_parked *parked = &server.shm->parked[0];

        *header = (struct fuse_in_header){
                .len = sizeof(*header), .opcode = FUSE_STATFS, .unique = 7, .nodeid = FUSE_ROOT_ID
        };
        atomic_store(&slot->reply_size, sizeof(struct fuse_out_header));
        atomic_store(&slot->state, LKG_SLOT_BUSY);
        atomic_store(&server.shm->touched.slots, 1);
        atomic_store(&server.shm->touched.parked, RECORDS);
        lkg_message_init(&parked->message, LKG_MSG_COMMAND);
        lkg_link_text(&parked->message, "on", 2);
        parked->reply_size = sizeof(struct fuse_out_header);
        atomic_store(&parked->state, LKG_PARKED_WAITING);
}

/* Everything that a restarted server looks at, made as a real server makes it. */
static void live_once(void)
{
        static const char *const files[] = { "kubelet.conf", "status", "control", "control/hold" };
        struct lkg_node *node;
        uint64_t dir = FUSE_ROOT_ID;

        for (size_t i = 0; i < DEEP; i++) {
                char path[8 + 2 * DEEP + 1] = "source";

                for (size_t n = 0; n <= i; n++)
                        memcpy(path + 6 + 2 * n, "/z", 3);
                fuzz_put(path, NULL);
                dir = look_up(dir, "z");
        }
        for (size_t i = 0; i < LKG_ARRAY_SIZE(files); i++) {
                const struct lkg_entry *entry =
                        lkg_publication_find(server.publication->publication, files[i]);

                FUZZ_CHECK(entry && lkg_node_virtual(entry->type == LKG_ENTRY_CONTROL ? LKG_NODE_CONTROL
                                                     : entry->type == LKG_ENTRY_DIR   ? LKG_NODE_VDIR
                                                                                      : LKG_NODE_CONTENT,
                                                     files[i], entry, NULL, &node) == 0);
        }
        open_file(look_up(FUSE_ROOT_ID, "a"), O_RDWR | O_APPEND);
        open_file(look_up(look_up(FUSE_ROOT_ID, "d"), "b"), O_RDONLY);
        leave_requests();
}

static void save(void)
{
        for (size_t i = 0; i < LKG_ARRAY_SIZE(tables); i++) {
                size_t size = tables[i].size * tables[i].n;

                saved[i] = malloc(size);
                FUZZ_CHECK(saved[i]);
                memcpy(saved[i], (const char *)server.shm + tables[i].at, size);
        }
}

static void restore(void)
{
        for (size_t i = 0; i < LKG_ARRAY_SIZE(tables); i++)
                memcpy((char *)server.shm + tables[i].at, saved[i], tables[i].size * tables[i].n);
}

static void begin(void)
{
        struct lkg_error err = { 0 };
        int pair[2];

        lkg_log_init("fuzz", LOG_EMERG);
        fuzz_make_place();
        (void)atexit(fuzz_remove_place);
        FUZZ_CHECK(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) == 0);
        server.device = pair[0];
        fuzz.kernel = pair[1];
        fuzz_open_place();
        fuzz_handshake();
        lkg_nodes_init();
        FUZZ_CHECK(lkg_publication_load(&err) == 0);
        live_once();
        save();
}

/* All servers of this target are one process: close what the last one had open. */
static void end(void)
{
        for (uint32_t i = 0; i < LKG_FILES && i < atomic_load(&server.shm->touched.files); i++) {
                const struct lkg_file *file = &server.shm->files[i];

                if (atomic_load(&file->used) == LKG_FILE_OPEN)
                        lkg_file_close((uint64_t)i | (uint64_t)file->incarnation << 32);
        }
        for (uint32_t i = lkg_nodes_next(ROOT_INDEX + 1); i < atomic_load(&server.shm->touched.nodes);
             i = lkg_nodes_next(i + 1))
                if (atomic_load(&lkg_node_at(i)->kind) != LKG_NODE_FREE)
                        lkg_node_forget(lkg_node_at(i), UINT64_MAX);
}

static void scribble(const uint8_t *data, size_t size)
{
        size_t at = 0;

        while (size - at >= sizeof(struct step)) {
                struct step step;
                const struct table *table;
                size_t offset, n;

                memcpy(&step, data + at, sizeof(step));
                at += sizeof(step);
                table = &tables[step.table % LKG_ARRAY_SIZE(tables)];
                offset = (step.offset[0] + 256u * step.offset[1]) % table->size;
                n = step.size < size - at ? step.size : size - at;
                n = n < table->size - offset ? n : table->size - offset;
                memcpy((char *)server.shm + table->at + step.record % table->n * table->size + offset,
                       data + at, n);
                at += n;
        }
}

/* ---- what a successor does ---- */

static void use_nodes(void)
{
        char path[PATH_MAX];
        struct stat st;

        for (uint32_t i = ROOT_INDEX; i < atomic_load(&server.shm->touched.nodes);
             i = lkg_nodes_next(i + 1)) {
                struct lkg_node *node = lkg_node_get(lkg_node_id(lkg_node_at(i)));

                if (!node)
                        continue;
                (void)lkg_node_fd(node);
                if (lkg_node_path(node, path, sizeof(path)) == 0)
                        FUZZ_CHECK(strlen(path) < sizeof(path) && !strstr(path, ".."));
                (void)lkg_node_read_content(node, path, sizeof(path), 0);
                (void)lkg_node_find_child(lkg_node_id(node), "a");
                lkg_node_attributes(node, &st);
        }
}

static void use_files(void)
{
        for (uint32_t i = 0; i < atomic_load(&server.shm->touched.files); i++) {
                const struct lkg_file *file = &server.shm->files[i];

                if (atomic_load(&file->used) == LKG_FILE_OPEN)
                        (void)lkg_file_fd((uint64_t)i | (uint64_t)file->incarnation << 32);
        }
}

static void send_what_is_owed(void)
{
        char out[LKG_REPLY_MAX];

        for (size_t i = 0; i < lkg_shared_slots(server.shm); i++)
                if (atomic_load(&server.shm->slots[i].state) != LKG_SLOT_FREE)
                        lkg_kernel_send_raw(server.shm->slots[i].reply,
                                            atomic_load(&server.shm->slots[i].reply_size));
        for (size_t i = 0; i < lkg_shared_parked(server.shm); i++) {
                const struct lkg_parked *parked = &server.shm->parked[i];

                if (atomic_load(&parked->state) == LKG_PARKED_FREE)
                        continue;
                lkg_kernel_send_raw(parked->reply, parked->reply_size);
                FUZZ_CHECK(lkg_message_send(server.device, &parked->message) != -EMSGSIZE);
                FUZZ_CHECK(strlen(parked->message.text) <= LKG_MESSAGE_TEXT_MAX);
        }
        while (recv(fuzz.kernel, out, sizeof(out), MSG_DONTWAIT) > 0)
                ;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        if (fuzz.dir < 0) {
                begin();
                end();
        }
        restore();
        scribble(data, size);
        lkg_inherit(server.shm);
        lkg_nodes_init();
        lkg_files_recount();
        lkg_view_recount_pollers();
        lkg_nodes_retire(server.publication->publication);
        lkg_nodes_prune();
        lkg_replay_clean();
        use_nodes();
        use_files();
        send_what_is_owed();
        end();
        return 0;
}
