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

static _Atomic int fds[LKG_FILES]; /* of each record, in this process; stored as fd + 1 */
static uint64_t used[LKG_FILES / 64];
static struct records records = { .used = used, .n = LKG_FILES };
static struct quota_cell cells[LKG_FILES];
static struct quota quota = { .size = LKG_FILES, .n_cells = LKG_FILES, .cells = cells };

/*
 * Watchers of the source directory, including our engine, take "closed after writing" to mean "finished". So
 * while another writer has the file open through the mount, the descriptor of a writer that closed it stays
 * open: the event comes with the last close, and the next writer's open comes after it. At most LATE_MAX per file: a writer that
 * holds it open and reopens it again and again gets no more of our descriptors.
 */
#define LATE_MAX 64u
struct late {
        struct late *next;
        uint64_t node;
        int fd; /* -EBADF: it is on the stack of a thread that is closing */
};
/* protects: n_writers, late, closing. A leaf. */
static pthread_mutex_t writers_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t writer_closed = PTHREAD_COND_INITIALIZER;
static struct late *late, *closing;

/* Lock held. */
static size_t count_late(const struct late *list, uint64_t node)
{
        size_t n = 0;

        for (; list; list = list->next)
                n += list->node == node;
        return n;
}

void lkg_file_announce_writer(struct lkg_node *node, int by)
{
        LKG_LOCKED(&writers_lock);

        while (by > 0 && count_late(closing, lkg_node_id(node)) > 0)
                (void)pthread_cond_wait(&writer_closed, &writers_lock);
        atomic_fetch_add(&node->n_writers, (uint32_t)by);
}

/* Lock held. Take out what waits for the last writer of @node. */
static struct late *take_late(uint64_t node)
{
        struct late *taken = NULL;

        for (struct late **p = &late; *p;) {
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

/*
 * Lock held. Closing may hang on a dead network file system, so the lock is released meanwhile: only writers of this file
 * wait.
 */
static void close_all(const struct lkg_node *node, int fd, struct late *taken)
{
        struct late own = { .next = closing, .node = lkg_node_id(node), .fd = -EBADF }, **p;

        closing = &own;
        (void)pthread_mutex_unlock(&writers_lock);
        lkg_close(fd);
        while (taken) {
                struct late *one = taken;

                taken = one->next;
                (void)close(one->fd);
                free(one);
        }
        (void)pthread_mutex_lock(&writers_lock);
        for (p = &closing; *p != &own;)
                p = &(*p)->next;
        *p = own.next;
        (void)pthread_cond_broadcast(&writer_closed);
}

/* One writer less; @fd is closed now, or with the last writer. */
static void close_writer(struct lkg_node *node, int fd)
{
        struct late *one;
        LKG_LOCKED(&writers_lock);

        if (atomic_fetch_sub(&node->n_writers, 1) == 1) {
                close_all(node, fd, take_late(lkg_node_id(node)));
        } else if (fd >= 0 && count_late(late, lkg_node_id(node)) < LATE_MAX &&
                   (one = malloc(sizeof(*one)))) {
                *one = (struct late){ .next = late, .node = lkg_node_id(node), .fd = fd };
                late = one;
        } else {
                close_all(node, fd, NULL);
        }
}

/* The processes that opened them to write; of no use to a successor, who takes each close for one of the opener. */
static int openers[LKG_FILES];

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
                lkg_file_announce_writer(node, 1);
}

/**
 * lkg_handle_new() - a handle without a record: it only distinguishes open files and directories, in any server.
 */
uint64_t lkg_handle_new(void)
{
        static _Atomic uint64_t last;
        uint64_t number = ((uint64_t)server.epoch << 40) + atomic_fetch_add(&last, 1);

        return (number >> 31) << 32 | LKG_HANDLE_LOOSE | (number & (LKG_HANDLE_LOOSE - 1));
}

/**
 * lkg_file_reserve_for() - reserve a record for @owner, before anything is done; then call lkg_file_fill() or
 * lkg_file_give_back().
 *
 * A replayed request may have been carried out already: it gets its record regardless of the quota.
 * Return: 0; -ENFILE: the caller's share or the table is used up.
 */
int lkg_file_reserve_for(uint32_t owner, uint32_t *ret_index)
{
        uint32_t index = LKG_FILES;
        LKG_LOCKED(&server.files_lock);

        if (task.replay || lkg_quota_ask(&quota, owner))
                index = lkg_records_take(&records);
        if (index < LKG_FILES) {
                server.shm->files[index].owner = owner;
                openers[index] = 0;
                lkg_quota_add(&quota, owner);
        }
        *ret_index = index;
        return index < LKG_FILES ? 0 : -ENFILE;
}

int lkg_file_reserve(const struct fuse_ctx *ctx, uint32_t *ret_index)
{
        return lkg_file_reserve_for(lkg_caller_share(ctx, &quota), ret_index);
}

void lkg_file_opened_by(uint64_t fh, int tid)
{
        uint32_t index;

        if (record(fh, &index))
                openers[index] = lkg_caller_process(tid);
}

bool lkg_file_is_inherited(uint64_t fh, int tid)
{
        uint32_t index;
        int opener = record(fh, &index) ? openers[index] : 0;

        return opener != 0 && opener != tid && lkg_caller_process(opener) == opener &&
               lkg_caller_process(tid) != opener;
}

void lkg_file_give_back(uint32_t index)
{
        LKG_LOCKED(&server.files_lock);

        lkg_records_give(&records, index);
        lkg_quota_remove(&quota, server.shm->files[index].owner);
}

/** lkg_file_fill() - the handle of a reserved record for @fd, which is taken over; -EBADF: opened on demand. */
uint64_t lkg_file_fill(uint32_t index, struct lkg_node *node, int flags, int fd)
{
        struct lkg_file *file = &server.shm->files[index];
        uint64_t fh;

        file->flags = (uint32_t)flags & ~(uint32_t)LKG_OPEN_ONCE;
        count_open(node, file); /* may wait for a writer that is closing; the record is still ours alone */
        LKG_LOCKED(&server.files_lock);
        file->incarnation = lkg_incarnation_new();
        file->node = lkg_node_id(node);
        fh = (uint64_t)index | (uint64_t)file->incarnation << 32;
        if (task.slot)
                atomic_store(&task.slot->made_file, fh);
        if (atomic_load(&server.shm->touched.files) <= index)
                atomic_store(&server.shm->touched.files, index + 1);
        atomic_store(&fds[index], fd < 0 ? 0 : fd + 1);
        atomic_fetch_add(&node->nlookup, 1); /* an open file holds its node */
        atomic_store_explicit(&file->used, LKG_FILE_OPEN, memory_order_release);
        return fh;
}

struct lkg_file *lkg_file_get(uint64_t fh)
{
        uint32_t index;

        return record(fh, &index);
}

/* O_NONBLOCK is only for open(): reads must wait, on any file system. */
static int become_blocking(int fd, int flags)
{
        if (!(flags & O_NONBLOCK))
                (void)fcntl(fd, F_SETFL, flags & O_APPEND);
        return fd;
}

int lkg_source_open_path(const char *path, int flags)
{
        int fd = open(path, flags | O_NONBLOCK | O_CLOEXEC | O_NOCTTY);

        if (fd >= 0)
                return become_blocking(fd, flags);
        if (errno != EWOULDBLOCK || (flags & O_NONBLOCK))
                return -errno;
        if (!task.may_block) {
                task.again = true;
                return -EAGAIN;
        }
        fd = open(path, flags | O_CLOEXEC | O_NOCTTY);
        return fd < 0 ? -errno : fd;
}

int lkg_file_fd(uint64_t fh)
{
        uint32_t index;
        struct lkg_file *file = record(fh, &index);
        struct lkg_node *node;
        char path[FD_PATH_MAX];
        int fd, none = 0;

        if (!file)
                return -EBADF;
        fd = atomic_load(&fds[index]) - 1;
        if (fd >= 0)
                return fd;
        node = lkg_node_get(file->node);
        if (!node)
                return -ESTALE;
        fd = lkg_node_fd(node);
        if (fd >= 0)
                fd = lkg_source_open_path(lkg_fd_path(fd, path), (int)file->flags);
        if (fd < 0)
                return fd;
        if (!atomic_compare_exchange_strong(&fds[index], &none, fd + 1)) {
                (void)close(fd);
                fd = none - 1;
        }
        return fd;
}

bool lkg_file_mark_closing(uint64_t fh)
{
        uint32_t index;
        struct lkg_file *file = record(fh, &index);
        uint32_t open = LKG_FILE_OPEN;

        return file && atomic_compare_exchange_strong(&file->used, &open, LKG_FILE_CLOSING);
}

uint32_t lkg_file_owner(uint64_t fh)
{
        uint32_t index;

        return record(fh, &index) ? server.shm->files[index].owner : 0;
}

uid_t lkg_file_opener(uint64_t fh)
{
        uint32_t owner = lkg_file_owner(fh);

        return owner == 0 ? 0 : owner - 1;
}

void lkg_file_close(uint64_t fh)
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
        node = lkg_node_get(file->node);
        writer = is_writer(file);
        fd = atomic_exchange(&fds[index], 0) - 1;
        atomic_store_explicit(&file->used, 0, memory_order_release);
        lkg_records_give(&records, index);
        lkg_quota_remove(&quota, file->owner);
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
                lkg_node_unkeep(node);
        lkg_node_forget(node, 1);
}

/*
 * Its close was answered, and the kernel has closed what the dead server had open. It has not been counted
 * here yet.
 */
static void drop_answered(uint32_t index)
{
        struct lkg_file *file = &server.shm->files[index];
        struct lkg_node *node = lkg_node_get(file->node);

        atomic_store_explicit(&file->used, LKG_FILE_FREE, memory_order_release);
        if (node)
                lkg_node_forget(node, 1);
}

/*
 * A server that died between updating the table and the counters left them inconsistent: the table is right.
 */
void lkg_files_recount(void)
{
        uint32_t n_nodes = atomic_load(&server.shm->touched.nodes),
                 n_files = atomic_load(&server.shm->touched.files);

        for (uint32_t i = lkg_nodes_next(1); i < n_nodes; i = lkg_nodes_next(i + 1)) {
                atomic_store(&lkg_node_at(i)->n_open, 0);
                atomic_store(&lkg_node_at(i)->n_writers, 0);
        }
        lkg_quota_reset(&quota);
        memset(used, 0, sizeof(used));
        records.n_used = 0;
        for (uint32_t i = 0; i < n_files; i++) {
                const struct lkg_file *file = &server.shm->files[i];
                struct lkg_node *node;

                if (atomic_load(&file->used) == LKG_FILE_FREE)
                        continue;
                if (atomic_load(&file->used) == LKG_FILE_CLOSING) {
                        drop_answered(i);
                        continue;
                }
                lkg_quota_add(&quota, file->owner);
                lkg_records_mark(&records, i);
                node = lkg_node_get(file->node);
                if (node)
                        count_open(node, file);
        }
}
