/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Open files of the source, and those of the view that users have open (content.c). A file handle is an
 * index of the shared table plus an incarnation, so a successor understands it and reopens its descriptor.
 * quota.h limits each user's part of the table. A record is reserved before anything that cannot be undone,
 * so a refused call has changed nothing.
 */
#include <fcntl.h>

#include "quota.h"
#include "file-server.h"

/* The state of each record in this process; the record itself is in the shared memory. */
static struct {
        _Atomic int fd; /* stored as fd + 1 */
        bool reserved;
} local[LKG_FILES];
static uint32_t hint;
#define WINDOW_MIN 1024u
static struct quota_cell cells[LKG_FILES];
static struct quota quota = { .size = LKG_FILES, .n_cells = LKG_FILES, .cells = cells };

/*
 * Watchers of the source directory, including our engine, take "closed after writing" to mean "finished". So
 * while another writer has the file open through the mount, the descriptor of a writer that closed it stays
 * open: the event comes with the last close. A stripe orders that last close and the next writer's open; it
 * protects n_writers, late and closing. At most LATE_MAX per file: a writer that holds it open and reopens
 * it again and again gets no more of our descriptors.
 */
#define STRIPES  64u
#define LATE_MAX 64u
struct late {
        struct late *next;
        uint64_t node;
        int fd;
};
struct closing { /* on the stack of the closing thread */
        struct closing *next;
        uint64_t node;
};
static struct stripe {
        pthread_mutex_t lock;
        pthread_cond_t closed;
        struct late *late;
        struct closing *closing;
} stripes[STRIPES];

static size_t stripe_of(const struct lkg_node *node)
{
        return node_index(node) % STRIPES;
}

static void lock_writers(const struct lkg_node *node)
{
        (void)pthread_mutex_lock(&stripes[stripe_of(node)].lock);
}

static void unlock_writers(const struct lkg_node *node)
{
        (void)pthread_mutex_unlock(&stripes[stripe_of(node)].lock);
}

void files_init(void)
{
        for (size_t i = 0; i < STRIPES; i++) {
                (void)pthread_mutex_init(&stripes[i].lock, NULL);
                (void)pthread_cond_init(&stripes[i].closed, NULL);
        }
}

/* Stripe locked. */
static bool is_being_closed(const struct stripe *stripe, uint64_t node)
{
        for (const struct closing *one = stripe->closing; one; one = one->next)
                if (one->node == node)
                        return true;
        return false;
}

void file_announce_writer(struct lkg_node *node, int by)
{
        struct stripe *stripe = &stripes[stripe_of(node)];

        lock_writers(node);
        while (by > 0 && is_being_closed(stripe, node_id(node)))
                (void)pthread_cond_wait(&stripe->closed, &stripe->lock);
        atomic_fetch_add(&node->n_writers, (uint32_t)by);
        unlock_writers(node);
}

/* Stripe locked. Take out what waits for the last writer of @node. */
static struct late *take_late(struct stripe *stripe, uint64_t node)
{
        struct late *taken = NULL;

        for (struct late **p = &stripe->late; *p;) {
                struct late *one = *p;

                if (one->node != node) {
                        p = &one->next;
                        continue;
                }
                *p = one->next;
                one->next = taken;
                taken = one;
        }
        return taken;
}

/* Stripe locked. */
static bool may_be_late(const struct stripe *stripe, uint64_t node)
{
        size_t n = 0;

        for (const struct late *one = stripe->late; one; one = one->next)
                n += one->node == node;
        return n < LATE_MAX;
}

/*
 * Closing may hang on a dead network file system, so no lock is held meanwhile: only writers of this file
 * wait.
 */
static void close_all(struct lkg_node *node, int fd, struct late *taken)
{
        struct stripe *stripe = &stripes[stripe_of(node)];
        struct closing own = { .node = node_id(node) }, **p;

        own.next = stripe->closing;
        stripe->closing = &own;
        unlock_writers(node);
        lkg_close(fd);
        while (taken) {
                struct late *one = taken;

                taken = one->next;
                (void)close(one->fd);
                free(one);
        }
        lock_writers(node);
        for (p = &stripe->closing; *p != &own;)
                p = &(*p)->next;
        *p = own.next;
        (void)pthread_cond_broadcast(&stripe->closed);
}

/* One writer less; @fd is closed now, or with the last writer. */
static void close_writer(struct lkg_node *node, int fd)
{
        struct stripe *stripe = &stripes[stripe_of(node)];
        struct late *one;

        lock_writers(node);
        if (atomic_fetch_sub(&node->n_writers, 1) == 1) {
                close_all(node, fd, take_late(stripe, node_id(node)));
        } else if (fd >= 0 && may_be_late(stripe, node_id(node)) && (one = malloc(sizeof(*one)))) {
                *one = (struct late){ .next = stripe->late, .node = node_id(node), .fd = fd };
                stripe->late = one;
                fd = -EBADF;
        } else {
                close_all(node, fd, NULL);
        }
        unlock_writers(node);
}

static struct lkg_file *record(uint64_t fh, uint32_t *ret_index)
{
        uint32_t index = (uint32_t)fh;
        struct lkg_file *file;

        if (fh == 0 || index >= LKG_FILES)
                return NULL;
        file = &server.shm->files[index];
        if (atomic_load_explicit(&file->used, memory_order_acquire) == 0 ||
            file->incarnation != (uint32_t)(fh >> 32))
                return NULL;
        *ret_index = index;
        return file;
}

static bool is_writer(const struct lkg_file *file)
{
        return (file->flags & O_ACCMODE) != O_RDONLY;
}

static void count_open(struct lkg_node *node, const struct lkg_file *file)
{
        atomic_fetch_add(&node->n_open, 1);
        if (is_writer(file))
                file_announce_writer(node, 1);
}

/**
 * handle_new() - a handle without a record: it only distinguishes open files and directories, in any server.
 */
uint64_t handle_new(void)
{
        static _Atomic uint64_t last;
        uint64_t number = ((uint64_t)server.epoch << 40) + atomic_fetch_add(&last, 1);

        return (number >> 31) << 32 | LKG_HANDLE_LOOSE | (number & (LKG_HANDLE_LOOSE - 1));
}

/*
 * Lock held. LKG_FILES: none. Records are used in turn, but only twice as many as are open: touched pages of
 * the table stay in memory.
 */
static uint32_t find_free(void)
{
        uint32_t limit = 2 * (quota.n_users + quota.n_root);

        limit = limit < WINDOW_MIN ? WINDOW_MIN : limit > LKG_FILES ? LKG_FILES : limit;
        for (uint32_t n = 0; n < LKG_FILES; n++) {
                uint32_t index = hint < limit ? hint : 0;

                hint = index + 1;
                if (!local[index].reserved && atomic_load(&server.shm->files[index].used) == 0)
                        return index;
        }
        return LKG_FILES;
}

/**
 * file_reserve_for() - reserve a record for @owner, before anything is done; then call file_fill() or
 * file_give_back().
 *
 * A replayed request may have been carried out already: it gets its record regardless of the quota.
 * Return: 0; -ENFILE: the caller's share or the table is used up.
 */
int file_reserve_for(uint32_t owner, uint32_t *ret_index)
{
        uint32_t index = LKG_FILES;

        (void)pthread_mutex_lock(&server.files_lock);
        if (task.replay || quota_ask(&quota, owner))
                index = find_free();
        if (index < LKG_FILES) {
                local[index].reserved = true;
                atomic_store(&server.shm->file_owner[index], owner);
                quota_add(&quota, owner);
        }
        (void)pthread_mutex_unlock(&server.files_lock);
        *ret_index = index;
        return index < LKG_FILES ? 0 : -ENFILE;
}

int file_reserve(const struct fuse_ctx *ctx, uint32_t *ret_index)
{
        return file_reserve_for(caller_share(ctx, &quota), ret_index);
}

void file_give_back(uint32_t index)
{
        (void)pthread_mutex_lock(&server.files_lock);
        local[index].reserved = false;
        quota_remove(&quota, atomic_load(&server.shm->file_owner[index]));
        (void)pthread_mutex_unlock(&server.files_lock);
}

/** file_fill() - the handle of a reserved record for @fd, which is taken over; -EBADF: opened on demand. */
uint64_t file_fill(uint32_t index, struct lkg_node *node, int flags, int fd)
{
        struct lkg_file *file = &server.shm->files[index];
        uint64_t fh;

        file->flags = (uint32_t)flags & ~(uint32_t)LKG_OPEN_ONCE;
        count_open(node, file); /* may wait for a writer that is closing; the record is still ours alone */
        (void)pthread_mutex_lock(&server.files_lock);
        local[index].reserved = false;
        file->incarnation = file->incarnation + 1 ? file->incarnation + 1 : 1;
        file->node = node_id(node);
        fh = (uint64_t)index | (uint64_t)file->incarnation << 32;
        if (task.slot)
                atomic_store(&task.slot->made_file, fh);
        if (atomic_load(&server.shm->n_files) <= index)
                atomic_store(&server.shm->n_files, index + 1);
        atomic_store(&local[index].fd, fd < 0 ? 0 : fd + 1);
        atomic_fetch_add(&node->nlookup, 1); /* an open file holds its node */
        atomic_store_explicit(&file->used, LKG_FILE_OPEN, memory_order_release);
        (void)pthread_mutex_unlock(&server.files_lock);
        return fh;
}

struct lkg_file *file_get(uint64_t fh)
{
        uint32_t index;

        return record(fh, &index);
}

int file_fd(uint64_t fh)
{
        uint32_t index;
        struct lkg_file *file = record(fh, &index);
        struct lkg_node *node;
        char path[FD_PATH_MAX];
        int fd, none = 0;

        if (!file)
                return -EBADF;
        fd = atomic_load(&local[index].fd) - 1;
        if (fd >= 0)
                return fd;
        node = node_get(file->node);
        if (!node)
                return -ESTALE;
        fd = node_fd(node);
        if (fd < 0)
                return fd;
        (void)fd_path(fd, path);
        fd = source_open_path(path, (int)file->flags);
        if (fd < 0)
                return fd;
        if (!atomic_compare_exchange_strong(&local[index].fd, &none, fd + 1)) {
                (void)close(fd);
                fd = none - 1;
        }
        return fd;
}

bool file_mark_closing(uint64_t fh)
{
        uint32_t index;
        struct lkg_file *file = record(fh, &index);
        uint32_t open = LKG_FILE_OPEN;

        return file && atomic_compare_exchange_strong(&file->used, &open, LKG_FILE_CLOSING);
}

uint32_t file_owner(uint64_t fh)
{
        uint32_t index;

        return record(fh, &index) ? atomic_load(&server.shm->file_owner[index]) : 0;
}

uid_t file_opener(uint64_t fh)
{
        uint32_t owner = file_owner(fh);

        return owner == 0 ? 0 : owner - 1;
}

void file_close(uint64_t fh)
{
        uint32_t index;
        struct lkg_file *file;
        struct lkg_node *node;
        bool writer;
        int fd;

        (void)pthread_mutex_lock(&server.files_lock);
        file = record(fh, &index);
        if (!file) {
                (void)pthread_mutex_unlock(&server.files_lock);
                return;
        }
        node = node_get(file->node);
        writer = is_writer(file);
        fd = atomic_exchange(&local[index].fd, 0) - 1;
        atomic_store_explicit(&file->used, 0, memory_order_release);
        quota_remove(&quota, atomic_load(&server.shm->file_owner[index]));
        (void)pthread_mutex_unlock(&server.files_lock);
        if (!node) {
                lkg_close(fd);
                return;
        }
        atomic_fetch_sub(&node->n_open, 1);
        if (writer)
                close_writer(node, fd);
        else
                lkg_close(fd);
        if (node->kept && atomic_load(&node->n_open) == 0)
                node_unkeep(node);
        node_forget(node, 1);
}

/*
 * Its close was answered, and the kernel has closed what the dead server had open. It has not been counted
 * here yet.
 */
static void drop_answered(uint32_t index)
{
        struct lkg_file *file = &server.shm->files[index];
        struct lkg_node *node = node_get(file->node);

        atomic_store_explicit(&file->used, LKG_FILE_FREE, memory_order_release);
        if (node)
                node_forget(node, 1);
}

/*
 * A server that died between updating the table and the counters left them inconsistent: the table is right.
 */
void files_recount(void)
{
        uint32_t n_nodes = atomic_load(&server.shm->n_nodes), n_files = atomic_load(&server.shm->n_files);

        for (uint32_t i = 1; (i = node_next(i)) < n_nodes; i++) {
                atomic_store(&node_at(i)->n_open, 0);
                atomic_store(&node_at(i)->n_writers, 0);
        }
        quota_reset(&quota);
        for (uint32_t i = 0; i < n_files; i++) {
                const struct lkg_file *file = &server.shm->files[i];
                struct lkg_node *node;

                if (atomic_load(&file->used) == LKG_FILE_FREE)
                        continue;
                if (atomic_load(&file->used) == LKG_FILE_CLOSING) {
                        drop_answered(i);
                        continue;
                }
                quota_add(&quota, atomic_load(&server.shm->file_owner[i]));
                node = node_get(file->node);
                if (node)
                        count_open(node, file);
        }
}
