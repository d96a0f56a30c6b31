/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any bytes as a sequence of requests of a misbehaving kernel, for a whole file server. Every request that
 * needs an answer gets exactly one, with a valid length and error; nothing outside the source directory is
 * read or changed; and after the kernel has forgotten every node, the shared tables are as empty as before.
 *
 * A step of the input: opcode, flags, node, handle, caller, length of the arguments (two bytes), the error
 * in `len`; then the arguments. Nodes and handles are indexes of those that earlier answers returned.
 */
#include "fuzz-server.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define STEPS_MAX 64u
#define KNOWN_MAX 64u
#define PATIENCE  20000 /* ms */

enum {
        WITH_HANDLE = 1, /* the arguments begin with a handle */
        WITH_NODE = 2,   /* the arguments begin with a node */
        WITH_NUL = 4,    /* the arguments end with a NUL */
        WITH_TARGET = 8, /* a second node and handle, as in COPY_FILE_RANGE */
        AT_ONCE = 16,    /* the next request does not wait for the answer */
        LONG = 32,       /* 256 times as many zeros follow */
        NO_UNIQUE = 64,
};

struct step {
        uint8_t opcode, flags, node, handle, who, length[2];
        int8_t wrong_by;
};

static struct known {
        uint64_t node, n_lookups;
} nodes[KNOWN_MAX];
static uint64_t handles[KNOWN_MAX], handle_nodes[KNOWN_MAX];
static size_t n_nodes, n_handles, n_pending;
static struct {
        uint64_t unique, node;
        uint32_t opcode;
} pending[STEPS_MAX];
static uint64_t last_unique = 1;
static bool changed;
static char message[LKG_MAX_WRITE + 16384] __attribute__((aligned(8)));

/* ---- what is known ---- */

static uint64_t node_of(uint8_t ref)
{
        static const uint64_t odd[] = { 0, UINT64_MAX, 2, UINT64_C(1) << 32 | 1, LKG_NODES, LKG_NODES - 1 };

        if (ref >= 0xf0)
                return odd[(ref & 15u) % LKG_ARRAY_SIZE(odd)];
        return n_nodes > 0 && ref > 0 ? nodes[(ref - 1u) % n_nodes].node : FUSE_ROOT_ID;
}

static uint64_t handle_of(uint8_t ref)
{
        static const uint64_t odd[] = { 0, UINT64_MAX, LKG_FILES, LKG_HANDLE_LOOSE, UINT64_C(1) << 32, 1 };

        if (ref >= 0xf0)
                return odd[(ref & 15u) % LKG_ARRAY_SIZE(odd)];
        return n_handles > 0 ? handles[ref % n_handles] : 0;
}

static void learn_node(uint64_t node)
{
        FUZZ_CHECK(node != 0 && lkg_node_get(node));
        for (size_t i = 0; i < n_nodes; i++)
                if (nodes[i].node == node) {
                        nodes[i].n_lookups++;
                        return;
                }
        FUZZ_CHECK(n_nodes < KNOWN_MAX);
        nodes[n_nodes++] = (struct known){ node, 1 };
}

static void learn_handle(uint64_t handle, uint64_t node)
{
        FUZZ_CHECK(n_handles < KNOWN_MAX);
        handles[n_handles] = handle;
        handle_nodes[n_handles++] = node;
}

/* ---- answers ---- */

static bool makes_node(uint32_t opcode)
{
        return opcode == FUSE_LOOKUP || opcode == FUSE_MKNOD || opcode == FUSE_MKDIR ||
               opcode == FUSE_SYMLINK || opcode == FUSE_LINK || opcode == FUSE_CREATE;
}

static void take_body(uint32_t opcode, uint64_t node, const char *body, size_t size)
{
        const struct fuse_entry_out *entry = (const void *)body;
        const struct fuse_open_out *open = (const void *)body;

        if (makes_node(opcode)) {
                FUZZ_CHECK(size == sizeof(*entry) + (opcode == FUSE_CREATE ? sizeof(*open) : 0));
                learn_node(entry->nodeid);
                node = entry->nodeid;
                open = (const void *)(entry + 1);
        }
        if (opcode == FUSE_OPEN || opcode == FUSE_OPENDIR || opcode == FUSE_CREATE) {
                FUZZ_CHECK(opcode == FUSE_CREATE || size == sizeof(*open));
                learn_handle(open->fh, node);
        }
        FUZZ_CHECK(!memmem(body, size, FUZZ_OUTSIDE, strlen(FUZZ_OUTSIDE)));
        changed |= !(opcode == FUSE_LOOKUP || opcode == FUSE_GETATTR);
}

static void take_answer(size_t size)
{
        const struct fuse_out_header *out = (const void *)message;

        FUZZ_CHECK(size >= sizeof(*out) && out->len == size);
        if (out->unique == 0)
                return; /* a notification */
        FUZZ_CHECK(out->error <= 0 && out->error > -4096);
        for (size_t i = 0; i < n_pending; i++) {
                if (pending[i].unique != out->unique)
                        continue;
                FUZZ_CHECK(out->error == 0 || size == sizeof(*out));
                if (out->error == 0)
                        take_body(pending[i].opcode, pending[i].node, message + sizeof(*out),
                                  size - sizeof(*out));
                pending[i] = pending[--n_pending];
                return;
        }
        FUZZ_CHECK(!"an answer that nobody waits for");
}

/* Return: false if none arrives in this time. */
static bool read_answer(int patience)
{
        struct pollfd p = { .fd = fuzz.kernel, .events = POLLIN };
        ssize_t n;

        if (poll(&p, 1, patience) <= 0)
                return false;
        n = recv(fuzz.kernel, message, sizeof(message), MSG_DONTWAIT);
        FUZZ_CHECK(n > 0);
        take_answer((size_t)n);
        return true;
}

static void read_answers(void)
{
        while (n_pending > 0)
                if (!read_answer(PATIENCE)) {
                        (void)fprintf(stderr, "opcode %u is not answered\n", pending[0].opcode);
                        abort();
                }
        while (read_answer(0))
                ;
}

/* ---- requests ---- */

static void send_request(const struct step *step, uint64_t node, const void *arguments, size_t size)
{
        static char request[LKG_SLOT_BUF] __attribute__((aligned(8)));
        struct fuse_in_header *header = (void *)request;

        *header = (struct fuse_in_header){
                .len = (uint32_t)((ssize_t)(sizeof(*header) + size) + step->wrong_by),
                .opcode = step->opcode < 128 ? step->opcode : (uint32_t)step->opcode << 8,
                .unique = step->flags & NO_UNIQUE ? 0 : ++last_unique,
                .nodeid = node,
                .uid = step->who & 15u ? 1000u + (step->who & 15u) : 0,
                .pid = step->who & 0x80u   ? 0
                       : step->who & 0x40u ? (uint32_t)fuzz.notifier
                                           : (uint32_t)getpid(),
        };
        if (size > 0)
                memcpy(header + 1, arguments, size);
        if (lkg_request_has_reply(header)) {
                FUZZ_CHECK(n_pending < STEPS_MAX);
                pending[n_pending].unique = header->unique;
                pending[n_pending].node = node;
                pending[n_pending++].opcode = header->opcode;
        }
        FUZZ_CHECK(send(fuzz.kernel, request, sizeof(*header) + size, 0) > 0);
}

/* Return: how many bytes of the input were used. */
static size_t run_step(const uint8_t *data, size_t left)
{
        static char arguments[LKG_SLOT_BUF];
        struct step step;
        size_t n, size;
        uint64_t word;

        memcpy(&step, data, sizeof(step));
        size = step.length[0] + 256u * (step.length[1] & 15u);
        if (size > left - sizeof(step))
                size = left - sizeof(step);
        memcpy(arguments, data + sizeof(step), size);
        n = size;
        if (step.flags & WITH_NUL)
                arguments[n++] = '\0';
        if (step.flags & LONG) {
                size_t more = 256 * size < LKG_MAX_WRITE ? 256 * size : LKG_MAX_WRITE;

                memset(arguments + n, 0, more);
                n += more;
        }
        if ((step.flags & (WITH_HANDLE | WITH_NODE)) && n >= sizeof(word)) {
                word = step.flags & WITH_HANDLE ? handle_of(step.handle) : node_of(step.handle);
                memcpy(arguments, &word, sizeof(word));
        }
        if ((step.flags & WITH_TARGET) && n >= 32) {
                word = node_of(step.node);
                memcpy(arguments + 16, &word, sizeof(word));
                word = handle_of((uint8_t)(step.handle + 1u));
                memcpy(arguments + 24, &word, sizeof(word));
        }
        send_request(&step, node_of(step.node), arguments, n);
        if (!(step.flags & AT_ONCE))
                read_answers();
        return sizeof(step) + size;
}

/* ---- afterwards ---- */

static void forget_all(void)
{
        for (size_t i = 0; i < n_handles; i++) {
                const struct fuse_release_in in = { .fh = handles[i] };
                const struct step step = { .opcode = handles[i] & LKG_HANDLE_LOOSE ? FUSE_RELEASEDIR
                                                                                   : FUSE_RELEASE };

                send_request(&step, handle_nodes[i], &in, sizeof(in));
                read_answers();
        }
        for (size_t i = 0; i < n_nodes; i++) {
                const struct fuse_forget_in in = { .nlookup = nodes[i].n_lookups };
                const struct step step = { .opcode = FUSE_FORGET };

                send_request(&step, nodes[i].node, &in, sizeof(in));
        }
        n_nodes = n_handles = 0;
}

static size_t count_left(void)
{
        size_t n = 0;

        for (uint32_t i = 0; i < LKG_FILES; i++)
                n += atomic_load(&server.shm->files[i].used) != LKG_FILE_FREE;
        for (uint32_t i = lkg_nodes_next(2); i < atomic_load(&server.shm->touched.nodes);
             i = lkg_nodes_next(i + 1))
                n += atomic_load(&lkg_node_at(i)->kind) != LKG_NODE_FREE;
        for (size_t i = 0; i < LKG_PARKED; i++)
                n += atomic_load(&server.shm->parked[i].state) != LKG_PARKED_FREE;
        for (size_t i = 0; i < lkg_shared_slots(server.shm); i++)
                n += atomic_load(&server.shm->slots[i].state) >= LKG_SLOT_BUSY;
        return n;
}

/* Print the leftover resources for the report. */
static void tell_left(void)
{
        for (uint32_t i = 0; i < LKG_FILES; i++)
                if (atomic_load(&server.shm->files[i].used) != LKG_FILE_FREE)
                        (void)fprintf(stderr, "file %u: %u\n", i, atomic_load(&server.shm->files[i].used));
        for (uint32_t i = lkg_nodes_next(2); i < atomic_load(&server.shm->touched.nodes);
             i = lkg_nodes_next(i + 1))
                if (atomic_load(&lkg_node_at(i)->kind) != LKG_NODE_FREE)
                        (void)fprintf(stderr, "node %u: kind %u, %llu lookups, '%s'\n", i,
                                      atomic_load(&lkg_node_at(i)->kind),
                                      (unsigned long long)atomic_load(&lkg_node_at(i)->nlookup),
                                      lkg_node_at(i)->name);
        for (size_t i = 0; i < lkg_shared_slots(server.shm); i++)
                if (atomic_load(&server.shm->slots[i].state) >= LKG_SLOT_BUSY)
                        (void)fprintf(stderr, "slot %zu: opcode %u\n", i,
                                      ((const struct fuse_in_header *)(const void *)server.shm->slots[i].buf)
                                              ->opcode);
        abort();
}

static void check_tables(void)
{
        uint64_t until_ns = lkg_boottime_ns() + PATIENCE * LKG_NSEC_PER_MSEC;

        for (int i = 0; count_left() > 0; i++) {
                if (lkg_boottime_ns() > until_ns)
                        tell_left();
                (void)usleep(i < 50 ? 50 : 1000); /* a closed or forgotten node is not answered */
        }
}

static void check_outside(void)
{
        char text[sizeof(FUZZ_OUTSIDE) + 1] = "";
        int fd = openat(fuzz.dir, "outside/secret", O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
        struct stat st, dir;

        FUZZ_CHECK(fd >= 0 && fstat(fd, &st) == 0 && fstatat(fuzz.dir, "outside", &dir, 0) == 0);
        FUZZ_CHECK(st.st_nlink == 1 && (st.st_mode & 07777) == 0644 && dir.st_nlink == 2);
        FUZZ_CHECK(read(fd, text, sizeof(text) - 1) == (ssize_t)strlen(FUZZ_OUTSIDE) &&
                   strcmp(text, FUZZ_OUTSIDE) == 0);
        (void)close(fd);
}

/*
 * The fuzzing engine cannot save the input when a thread of the server dies: that thread may not write
 * elsewhere.
 */
static void keep_input(const uint8_t *data, size_t size)
{
        static int fd = -EBADF;

        if (fd < 0)
                fd = openat(fuzz.dir, "last-input", O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
        FUZZ_CHECK(fd >= 0 && ftruncate(fd, 0) == 0 && pwrite(fd, data, size, 0) == (ssize_t)size);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        size_t at = 0;

        if (fuzz.dir < 0)
                fuzz_server_start();
        keep_input(data, size);
        changed = false;
        for (unsigned n = 0; n < STEPS_MAX / 2 && size - at >= sizeof(struct step); n++)
                at += run_step(data + at, size - at);
        read_answers();
        forget_all();
        check_tables();
        read_answers();
        check_outside();
        if (changed) {
                fuzz_empty_source();
                fuzz_fill_source();
        }
        return 0;
}
