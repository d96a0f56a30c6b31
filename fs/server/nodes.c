/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Node ids: index in the shared table, and the incarnation of that index in the upper half. The root is 1.
 *
 * A source node is one inode of the source directory, found by (dev, ino); it is reached through an O_PATH
 * descriptor of this process, which is reopened after a restart from the file handle, or by name from its
 * parent, or from the descriptor that the supervisor keeps. A content node is one path with one content: it
 * never changes, so the kernel may cache everything about it forever, and its bytes are kept by a hard link
 * `pinned/<node id>`.
 *
 * nlookup is at least the kernel's count: it is raised before a reply is sent and never lowered twice. A node whose
 * count leaked (a server died between the two) is found by nodes_prune().
 *
 * Users that may create files in the source could create as many as there are nodes, so nodes of inodes that
 * root does not own are limited for each owner (quota.h); when an owner has used most of the share, the
 * kernel is told to forget some (content.c). A file that is about to be created gets its node first.
 *
 * A node made in bad/ has neither inode nor content; simultaneous opens of the same name share it.
 */
#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/resource.h>

#include <lkg/base.h>
#include <lkg/file.h>

#include "quota.h"
#include "file-server.h"

#define BUCKETS     16384u
#define WINDOW_MIN  1024u
#define CHUNK       256u
#define N_CHUNKS    (LKG_NODES / CHUNK)
#define NODE_OWNERS 16384u
#define WAY_MAX     2048u /* directories: more do not fit into PATH_MAX */
#define OWN_BATCH   64u   /* when there are this many of our own, forget some */
#define PRUNE_AFTER (10 * LKG_NSEC_PER_SEC)
/* start of virtual inode numbers: no local file system goes that far */
#define VIRTUAL_INO (UINT64_C(1) << 48)

static uint32_t buckets[BUCKETS];  /* index + 1 of the first node; rebuilt at start */
static _Atomic int fds[LKG_NODES]; /* O_PATH descriptors of source nodes, stored as fd + 1 */
static uint32_t free_hint = ROOT_INDEX + 1;
static uint32_t window = WINDOW_MIN;  /* records below this index are used in turn */
static uint16_t chunk_used[N_CHUNKS]; /* number of used nodes in each chunk, without the root */
static bool chunk_touched[N_CHUNKS];  /* the chunk has memory */
static uint32_t *contents;            /* indices of listed nodes, for retire, prune and wake */
static size_t n_contents, contents_allocated;
static uint32_t place_of[LKG_NODES]; /* position of a node in that list */
static struct quota_cell cells[NODE_OWNERS];
static struct quota quota = { .size = LKG_NODES, .n_cells = NODE_OWNERS, .cells = cells };

static uint32_t bucket(uint64_t seed, const void *data, size_t size)
{
        uint64_t h = lkg_hash(seed, data, size);

        return (uint32_t)((h ^ (h >> 29)) % BUCKETS);
}

static uint32_t bucket_of(const struct lkg_node *node)
{
        if (atomic_load(&node->kind) == LKG_NODE_SOURCE) {
                uint64_t key[2] = { node->dev, node->ino };

                return bucket(1, key, sizeof(key));
        }
        return bucket(2, node->name, strlen(node->name));
}

static void chain_add(struct lkg_node *node)
{
        uint32_t b = bucket_of(node);

        node->hash_next = buckets[b];
        buckets[b] = node_index(node) + 1;
}

static void chain_remove(struct lkg_node *node)
{
        uint32_t *p = &buckets[bucket_of(node)];

        while (*p != 0) {
                struct lkg_node *other = node_at(*p - 1);

                if (other == node) {
                        *p = node->hash_next;
                        return;
                }
                p = &other->hash_next;
        }
}

uint64_t node_id(const struct lkg_node *node)
{
        return (uint64_t)node_index(node) | (uint64_t)node->incarnation << 32;
}

struct lkg_node *node_get(uint64_t id)
{
        uint32_t index = (uint32_t)id;
        struct lkg_node *node;

        if (index < ROOT_INDEX || index >= LKG_NODES)
                return NULL;
        node = node_at(index);
        if (atomic_load_explicit(&node->kind, memory_order_acquire) == LKG_NODE_FREE ||
            node->incarnation != (uint32_t)(id >> 32))
                return NULL;
        return node;
}

/* Lock held. Return: the index of a free record, 0 = none among the next @n_tries. */
static uint32_t find_free(uint32_t n_tries)
{
        for (uint32_t n = 0; n < n_tries; n++) {
                uint32_t index = free_hint < window ? free_hint : ROOT_INDEX + 1;

                free_hint = index + 1 < window ? index + 1 : ROOT_INDEX + 1;
                if (atomic_load(&node_at(index)->kind) == LKG_NODE_FREE)
                        return index;
        }
        return 0;
}

/* Lock held, as for all changes of chunks. */
static void count_node(uint32_t index, int by)
{
        chunk_used[index / CHUNK] = (uint16_t)(chunk_used[index / CHUNK] + by);
        chunk_touched[index / CHUNK] = true;
}

/* ---- owners ---- */

static uint32_t owner_of(const struct lkg_node *node, uint32_t kind)
{
        return quota_owner(kind == LKG_NODE_SOURCE ? node->uid : 0);
}

/*
 * A source node needs a descriptor: if the limit of descriptors is lower than the number of nodes, it
 * applies instead.
 */
static void size_quota(void)
{
        struct rlimit limit;
        rlim_t most = LKG_NODES;

        if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY)
                most = limit.rlim_cur > 2 * LKG_FILES ? limit.rlim_cur - LKG_FILES : limit.rlim_cur / 2;
        quota.size = most < LKG_NODES ? (uint32_t)most : LKG_NODES;
}

/*
 * Lock held. Index 0 is not used, and the root always exists. Nodes of files that root owns are limited by
 * the table only.
 */
static bool admits(uid_t uid)
{
        return quota.n_users + quota.n_root < LKG_NODES - 2 &&
               (task.replay || quota_ask(&quota, quota_owner(uid)));
}

/**
 * node_reserve() - reserve a node for what this request is about to create for @uid; then call
 * node_unreserve(), used or not.
 * Return: 0; -ENFILE.
 */
int node_reserve(uid_t uid)
{
        bool yes;

        (void)pthread_mutex_lock(&server.nodes_lock);
        yes = admits(uid);
        if (yes) {
                task.reserved_node = quota_owner(uid);
                quota_add(&quota, task.reserved_node);
        }
        (void)pthread_mutex_unlock(&server.nodes_lock);
        return yes ? 0 : -ENFILE;
}

/* Lock held. Return: was one reserved? */
static bool take_reserved(void)
{
        if (task.reserved_node == 0)
                return false;
        quota_remove(&quota, task.reserved_node);
        task.reserved_node = 0;
        return true;
}

void node_unreserve(void)
{
        (void)pthread_mutex_lock(&server.nodes_lock);
        (void)take_reserved();
        (void)pthread_mutex_unlock(&server.nodes_lock);
}

/*
 * Lock held. Return a zeroed record with a fresh incarnation for an inode of @uid; its kind is still FREE.
 *
 * Records are reused, but not soon, and only as many are used as needed: each touched page of the table
 * stays in memory, and every generation needs new nodes. The window grows when it is crowded.
 */
static struct lkg_node *allocate(uid_t uid)
{
        struct lkg_node *node;
        uint32_t index, incarnation;

        if (!take_reserved() && !admits(uid))
                return NULL;
        while (!(index = find_free(window < LKG_NODES ? window / 4 : window))) {
                if (window == LKG_NODES)
                        return NULL;
                free_hint = window;
                window = 2 * window < LKG_NODES ? 2 * window : LKG_NODES;
        }
        node = node_at(index);
        incarnation = atomic_load(&server.shm->incarnation_base);
        incarnation = (node->incarnation > incarnation ? node->incarnation : incarnation) + 1;
        memset(node, 0, sizeof(*node));
        node->incarnation = incarnation ? incarnation : 1;
        if (incarnation > atomic_load(&server.shm->incarnation_max))
                atomic_store(&server.shm->incarnation_max, incarnation);
        node->uid = uid;
        quota_add(&quota, quota_owner(uid));
        if (atomic_load(&server.shm->n_nodes) <= index)
                atomic_store(&server.shm->n_nodes, index + 1);
        count_node(index, 1);
        if (quota_is_nearly_used(&quota, quota_owner(uid)))
                server.hooks->nodes_crowded(quota_owner(uid));
        return node;
}

/*
 * Finds files that are not open, from @cursor on, once through the table; not directories, which may carry
 * mounts.
 */
size_t nodes_of_owner(uint32_t owner, uint32_t *cursor, struct lkg_name *names, size_t max)
{
        uint32_t n_nodes = atomic_load(&server.shm->n_nodes);
        size_t n = 0;

        (void)pthread_mutex_lock(&server.nodes_lock);
        for (; n < max && (*cursor = node_next(*cursor)) < n_nodes; ++*cursor) {
                const struct lkg_node *node = node_at(*cursor);

                if (atomic_load(&node->kind) != LKG_NODE_SOURCE || quota_owner(node->uid) != owner ||
                    S_ISDIR(node->mode) || atomic_load(&node->n_open) > 0)
                        continue;
                names[n].parent = node->parent;
                memcpy(names[n++].name, node->name, sizeof(node->name));
        }
        (void)pthread_mutex_unlock(&server.nodes_lock);
        return n;
}

static bool ask_quota(bool (*is)(const struct quota *q, uint32_t owner), uint32_t owner)
{
        bool yes;

        (void)pthread_mutex_lock(&server.nodes_lock);
        yes = is(&quota, owner);
        (void)pthread_mutex_unlock(&server.nodes_lock);
        return yes;
}

bool nodes_are_many(uint32_t owner)
{
        return ask_quota(quota_is_half_used, owner);
}

bool nodes_are_nearly_used(uint32_t owner)
{
        return ask_quota(quota_is_nearly_used, owner);
}

/* Lock held. Chunks only manage memory: an empty one above the window is released. */
static bool is_spare(uint32_t chunk)
{
        return chunk < N_CHUNKS && chunk * CHUNK >= window && chunk_used[chunk] == 0;
}

/* Lock held. A page that is shared with a spare neighbour is released, too. */
static void give_back(uint32_t chunk)
{
        const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE) - 1;
        uintptr_t begin = (uintptr_t)node_at(chunk * CHUNK),
                  end = (uintptr_t)(node_at(chunk * CHUNK) + CHUNK);

        begin = (is_spare(chunk - 1) ? begin : begin + page) & ~page;
        end = (is_spare(chunk + 1) ? end + page : end) & ~page;
        atomic_store(&server.shm->incarnation_base, atomic_load(&server.shm->incarnation_max));
        (void)madvise((void *)begin, end - begin, MADV_REMOVE);
        chunk_touched[chunk] = false;
}

/*
 * Lock held, a record of @chunk was freed. After a storm of lookups few records are in use: new ones are
 * taken from the lower part again, and empty memory above it is returned to the system. The window grows
 * when it is crowded and halves when only an eighth of it is used; this hysteresis keeps it stable. A record
 * in released memory has lost its incarnation: the next one starts above all earlier ones. Nothing may read
 * it before, because that would bring its page back.
 */
static void shrink(uint32_t chunk)
{
        uint32_t had = window;

        while (window > WINDOW_MIN && quota.n_users + quota.n_root < window / 8)
                window = window / 2;
        if (window == had) {
                if (is_spare(chunk) && chunk_touched[chunk])
                        give_back(chunk);
                return;
        }
        for (uint32_t i = window / CHUNK; i < N_CHUNKS; i++)
                if (is_spare(i) && chunk_touched[i])
                        give_back(i);
}

/** node_next() - the first index from @i on, below n_nodes, in a chunk that is in use; n_nodes: none. */
uint32_t node_next(uint32_t i)
{
        uint32_t n = atomic_load(&server.shm->n_nodes);

        while (i < n && chunk_used[i / CHUNK] == 0)
                i = (i / CHUNK + 1) * CHUNK;
        return i < n ? i : n;
}

static void pin_name(const struct lkg_node *node, char buf[static 32])
{
        (void)snprintf(buf, 32, "%llx", (unsigned long long)node_id(node));
}

ssize_t node_read_content(const struct lkg_node *node, char *buf, size_t size, off_t off)
{
        LKG_CLEANUP(lkg_closep) int fd = -EBADF;
        char name[32];
        ssize_t n;

        if (off < 0 || (uint64_t)off >= node->size)
                return 0;
        if (size > node->size - (uint64_t)off)
                size = node->size - (uint64_t)off; /* others may follow, see below */
        pin_name(node, name);
        fd = openat(server.pinned, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
        if (fd < 0)
                return -EIO;
        n = pread(fd, buf, size, (off_t)node->ino + off); /* an earlier build had many files in one blob */
        return n < 0 ? -errno : n;
}

static int write_pin(const char *name, const char *bytes, size_t size)
{
        LKG_CLEANUP(lkg_closep)
        int fd = openat(server.pinned, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
        int r = fd < 0 ? -errno : lkg_write_all(fd, bytes, size);

        if (fd >= 0 && r < 0)
                (void)unlinkat(server.pinned, name, 0);
        return r;
}

/*
 * A link takes no space, so it also works when the runtime directory is full.
 * @bytes: of a file that we generate; NULL = the engine has written them.
 * Return: 0; -EAGAIN: the publication was replaced and its blob is gone; another -errno.
 */
static int pin(const struct lkg_node *node, const struct lkg_entry *entry, const char *bytes)
{
        char name[32];

        pin_name(node, name);
        (void)lkg_clear_name(server.pinned, name);
        if (bytes)
                return write_pin(name, bytes, node->size);
        if (linkat(server.blobs, entry->sha256, server.pinned, name, 0) < 0)
                return errno == ENOENT ? -EAGAIN : -errno;
        return 0;
}

/* Lock held. The node must be in the list. */
static void content_list_remove(uint32_t index)
{
        uint32_t last = contents[--n_contents];

        contents[place_of[index]] = last;
        place_of[last] = place_of[index];
}

static int content_list_add(const struct lkg_node *node)
{
        if (LKG_RESERVE(contents, n_contents, contents_allocated) < 0)
                return -ENOMEM;
        place_of[node_index(node)] = (uint32_t)n_contents;
        contents[n_contents++] = node_index(node);
        return 0;
}

/* Nodes that are visited when a publication is loaded, to be retired or pruned. */
static bool is_listed(uint32_t kind)
{
        return kind == LKG_NODE_CONTENT || kind == LKG_NODE_BAD_MADE;
}

/*
 * Lock held, the node is of @kind. The record is freed before its pin is removed: if we are killed in
 * between, the successor sweeps the pin; in the other order a node without its bytes would be left.
 * Return: its descriptor, which must be closed without the lock, because closing the last one of a removed
 * file waits for the disk; < 0: none.
 */
static int release_as(struct lkg_node *node, uint32_t kind)
{
        char name[32];
        int fd;

        chain_remove(node);
        quota_remove(&quota, owner_of(node, kind));
        pin_name(node, name);
        fd = atomic_exchange(&fds[node_index(node)], 0) - 1;
        atomic_store_explicit(&node->kind, LKG_NODE_FREE, memory_order_release);
        count_node(node_index(node), -1);
        shrink(node_index(node) / CHUNK);
        if (!is_listed(kind))
                return fd;
        if (kind == LKG_NODE_CONTENT)
                (void)unlinkat(server.pinned, name, 0);
        content_list_remove(node_index(node));
        return fd;
}

/* Lock held. */
static int release_node(struct lkg_node *node)
{
        return release_as(node, atomic_load(&node->kind));
}

void node_keep(struct lkg_node *node)
{
        int fd = node_fd(node);

        if (fd >= 0 && kept_keep(node_id(node), node->uid, fd))
                node->kept = 1;
}

void node_unkeep(struct lkg_node *node)
{
        node->kept = 0;
        kept_drop(node_id(node));
}

bool node_owner(uint64_t id, uint32_t *ret_uid)
{
        const struct lkg_node *node = node_get(id);

        if (node)
                *ret_uid = node->uid;
        return node;
}

void node_forget(struct lkg_node *node, uint64_t n)
{
        uint64_t had, left;
        int fd = -EBADF;

        if (node_index(node) == ROOT_INDEX)
                return;
        (void)pthread_mutex_lock(&server.nodes_lock);
        had = atomic_load(&node->nlookup);
        do /* others increment it without the lock */
                left = had > n ? had - n : 0;
        while (!atomic_compare_exchange_weak(&node->nlookup, &had, left));
        if (left == 0) {
                bool is_dir = atomic_load(&node->kind) == LKG_NODE_SOURCE && S_ISDIR(node->mode);

                if (node->kept)
                        node_unkeep(node);
                fd = release_node(node);
                if (is_dir)
                        server.hooks->directory_gone(node_index(node));
        }
        (void)pthread_mutex_unlock(&server.nodes_lock);
        lkg_close(fd);
}

static void sweep_pins(void);

int nodes_init(void)
{
        struct lkg_node *root = node_at(ROOT_INDEX);
        struct stat st;
        uint32_t n;

        if (atomic_load(&root->kind) == LKG_NODE_FREE) {
                root->incarnation = 0;
                atomic_store(&root->nlookup, 1);
                atomic_store(&root->kind, LKG_NODE_ROOT);
                atomic_store(&server.shm->n_nodes, ROOT_INDEX + 1);
        }
        if (source_stat(server.source, "", AT_EMPTY_PATH, &st) == 0)
                server.source_dev = st.st_dev;
        size_quota();
        quota_reset(&quota);
        memset(chunk_used, 0, sizeof(chunk_used));
        n_contents = 0;
        n = atomic_load(&server.shm->n_nodes);
        for (uint32_t i = ROOT_INDEX + 1; i < n; i++) {
                struct lkg_node *node = node_at(i);
                uint32_t kind = atomic_load(&node->kind);

                if (kind == LKG_NODE_FREE || !inherit_node(node))
                        continue;
                chain_remove(node); /* in unit tests the next server runs in the same process */
                chain_add(node);
                quota_add(&quota, owner_of(node, kind));
                count_node(i, 1);
                if (is_listed(kind) && content_list_add(node) < 0)
                        return -ENOMEM;
        }
        for (uint32_t i = window / CHUNK; i * CHUNK < n; i++) /* reading it has brought the memory back */
                if (is_spare(i))
                        give_back(i);
        sweep_pins();
        return 0;
}

/* --- source nodes --- */

static void remember_handle(struct lkg_node *node, int fd)
{
        union {
                struct file_handle handle;
                char bytes[sizeof(struct file_handle) + LKG_HANDLE_MAX];
        } u;
        int mount_id;

        u.handle.handle_bytes = LKG_HANDLE_MAX;
        if (name_to_handle_at(fd, "", &u.handle, &mount_id, AT_EMPTY_PATH) < 0)
                return; /* this file system has no handles: found again by name */
        memcpy(node->handle, u.handle.f_handle, u.handle.handle_bytes);
        node->handle_type = u.handle.handle_type;
        node->handle_size = u.handle.handle_bytes;
}

static bool same_handle(const struct lkg_node *node, const struct lkg_node *now)
{
        return node->handle_size == 0 ||
               (now->handle_size == node->handle_size && now->handle_type == node->handle_type &&
                memcmp(now->handle, node->handle, now->handle_size) == 0);
}

static void copy_handle(struct lkg_node *node, const struct lkg_node *from)
{
        memcpy(node->handle, from->handle, from->handle_size);
        node->handle_type = from->handle_type;
        node->handle_size = from->handle_size;
}

static int open_by_handle(const struct lkg_node *node)
{
        union {
                struct file_handle handle;
                char bytes[sizeof(struct file_handle) + LKG_HANDLE_MAX];
        } u;

        if (node->handle_size == 0)
                return -ESTALE;
        u.handle.handle_bytes = node->handle_size;
        u.handle.handle_type = node->handle_type;
        memcpy(u.handle.f_handle, node->handle, node->handle_size);
        return open_by_handle_at(server.source, &u.handle, O_PATH | O_CLOEXEC | O_NOFOLLOW);
}

static bool is_inode(int fd, const struct lkg_node *node)
{
        struct stat st;

        return fstat(fd, &st) == 0 && st.st_dev == node->dev && st.st_ino == node->ino;
}

/* Without its directory: by its handle, or from the supervisor. -ESTALE: neither is possible. */
static int open_alone(const struct lkg_node *node)
{
        int fd = open_by_handle(node);

        if (fd >= 0 && is_inode(fd, node))
                return fd;
        lkg_close(fd);
        return node->kept ? kept_fd(node_id(node)) : -ESTALE;
}

static int open_in(int dir, const struct lkg_node *node)
{
        LKG_CLEANUP(lkg_closep) int fd = -EBADF;
        char name[LKG_NODE_NAME];

        memcpy(name, node->name, sizeof(name));
        fd = openat(dir, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
        if (fd < 0)
                return errno == ENOENT ? -ESTALE : -errno;
        return is_inode(fd, node) ? LKG_STEAL_FD(fd) : -ESTALE;
}

/* The descriptor, if there is one; -EBADF: none; -ESTALE: it cannot be opened again. */
static int present_fd(const struct lkg_node *node)
{
        uint32_t kind = atomic_load(&node->kind);
        int fd = atomic_load(&fds[node_index(node)]) - 1;

        if (kind == LKG_NODE_ROOT)
                return server.source;
        if (kind != LKG_NODE_SOURCE)
                return -ESTALE;
        return fd < 0 ? -EBADF : fd;
}

static int publish_fd(const struct lkg_node *node, int fd)
{
        int none = 0;

        if (atomic_compare_exchange_strong(&fds[node_index(node)], &none, fd + 1))
                return fd;
        (void)close(fd); /* another thread was faster */
        return none - 1;
}

/*
 * After a restart a node's descriptor is reopened on demand. On a file system without handles this walks the
 * names from the nearest directory with a descriptor down to the node, without recursion: the depth is
 * unlimited and the stack is small. Not part of node_fd(), which every request calls, because its stack
 * frame is four pages.
 */
static __attribute__((noinline)) int open_again(const struct lkg_node *node)
{
        const struct lkg_node *way[WAY_MAX], *at = node;
        size_t n = 0;
        int fd;

        while ((fd = present_fd(at)) == -EBADF) {
                fd = open_alone(at);
                if (fd >= 0)
                        fd = publish_fd(at, fd);
                if (fd >= 0)
                        break;
                if (n == WAY_MAX)
                        return -ENAMETOOLONG;
                way[n++] = at;
                at = node_get(at->parent);
                if (!at)
                        return -ESTALE;
        }
        while (fd >= 0 && n > 0) {
                at = way[--n];
                fd = open_in(fd, at);
                if (fd >= 0)
                        fd = publish_fd(at, fd);
        }
        return fd;
}

int node_fd(struct lkg_node *node)
{
        int fd = present_fd(node);

        return fd == -EBADF ? open_again(node) : fd;
}

/* Lock held. */
static struct lkg_node *find_source(uint64_t dev, uint64_t ino)
{
        struct lkg_node key = { .kind = LKG_NODE_SOURCE, .dev = dev, .ino = ino };

        for (uint32_t i = buckets[bucket_of(&key)]; i != 0; i = node_at(i - 1)->hash_next) {
                struct lkg_node *node = node_at(i - 1);

                if (atomic_load(&node->kind) == LKG_NODE_SOURCE && node->dev == dev && node->ino == ino)
                        return node;
        }
        return NULL;
}

struct lkg_node *node_find_source(uint64_t dev, uint64_t ino)
{
        struct lkg_node *node;

        (void)pthread_mutex_lock(&server.nodes_lock);
        node = find_source(dev, ino);
        (void)pthread_mutex_unlock(&server.nodes_lock);
        return node;
}

static void set_name(struct lkg_node *node, uint64_t parent, const char *name)
{
        node->parent = parent;
        (void)snprintf(node->name, sizeof(node->name), "%s", name);
}

/*
 * The number of a removed inode may be reused. That cannot happen while we hold a descriptor; after a
 * restart the file handle, which contains the inode's generation, shows whether it did.
 */
static bool still_same(struct lkg_node *node, const struct lkg_node *now)
{
        return atomic_load(&fds[node_index(node)]) != 0 || same_handle(node, now);
}

/**
 * node_source() - the node of the inode behind @fd, with one more lookup counted.
 * @fd: O_PATH descriptor or *fd < 0; taken over when the node keeps it
 * Return: 0; -ENOENT: the node is not known and @fd is missing; -ENFILE: table full.
 */
int node_source(uint64_t parent, const char *name, int *fd, const struct stat *st, struct lkg_node **ret)
{
        struct lkg_node *node, now = { 0 };

        if (*fd >= 0)
                remember_handle(&now, *fd);
        (void)pthread_mutex_lock(&server.nodes_lock);
        node = find_source(st->st_dev, st->st_ino);
        if (node && *fd < 0 && atomic_load(&fds[node_index(node)]) == 0)
                node = NULL;
        if (!node && *fd < 0) {
                (void)pthread_mutex_unlock(&server.nodes_lock);
                return -ENOENT;
        }
        if (node && !still_same(node, &now)) {
                chain_remove(node);
                node->dev = node->ino = 0; /* its inode is gone: lookups no longer find it */
                chain_add(node);
                node = NULL;
        }
        if (!node) {
                node = allocate(st->st_uid);
                if (!node) {
                        (void)pthread_mutex_unlock(&server.nodes_lock);
                        return -ENFILE;
                }
                node->dev = st->st_dev;
                node->ino = st->st_ino;
                node->mode = st->st_mode;
                copy_handle(node, &now);
                set_name(node, parent, name);
                atomic_store(&node->nlookup, 1);
                atomic_store(&fds[node_index(node)], LKG_STEAL_FD(*fd) + 1);
                atomic_store_explicit(&node->kind, LKG_NODE_SOURCE, memory_order_release);
                chain_add(node);
        } else {
                atomic_fetch_add(&node->nlookup, 1);
                if (node->parent != parent || strcmp(node->name, name) != 0)
                        set_name(node, parent, name);
                if (*fd >= 0 && atomic_load(&fds[node_index(node)]) == 0)
                        atomic_store(&fds[node_index(node)], LKG_STEAL_FD(*fd) + 1);
        }
        (void)pthread_mutex_unlock(&server.nodes_lock);
        *ret = node;
        return 0;
}

void node_moved(struct lkg_node *node, uint64_t parent, const char *name)
{
        (void)pthread_mutex_lock(&server.nodes_lock);
        set_name(node, parent, name);
        (void)pthread_mutex_unlock(&server.nodes_lock);
}

struct lkg_node *node_find_child(uint64_t parent, const char *name)
{
        uint32_t n = atomic_load(&server.shm->n_nodes);
        struct lkg_node *found = NULL;

        (void)pthread_mutex_lock(&server.nodes_lock);
        for (uint32_t i = ROOT_INDEX + 1; (i = node_next(i)) < n && !found; i++) {
                struct lkg_node *node = node_at(i);

                if (atomic_load(&node->kind) == LKG_NODE_SOURCE && node->parent == parent &&
                    strcmp(node->name, name) == 0 && atomic_load(&node->nlookup) > 0)
                        found = node;
        }
        if (found)
                atomic_fetch_add(&found->nlookup, 1);
        (void)pthread_mutex_unlock(&server.nodes_lock);
        return found;
}

/* A node without an inode: the notifier removes it, so that watchers see a removal behind the mount. */
struct lkg_node *node_placeholder(uint64_t parent, const char *name, bool is_dir)
{
        struct lkg_node *node;

        (void)pthread_mutex_lock(&server.nodes_lock);
        node = allocate(0);
        if (node) {
                node->mode = is_dir ? S_IFDIR | 0700 : S_IFREG | 0600;
                set_name(node, parent, name);
                atomic_store(&node->nlookup, 1);
                atomic_store_explicit(&node->kind, LKG_NODE_SOURCE, memory_order_release);
                chain_add(node);
        }
        (void)pthread_mutex_unlock(&server.nodes_lock);
        return node;
}

static int join(char *buf, size_t size, const char *head, const char *tail)
{
        int n = snprintf(buf, size, "%s%s%s", head, *head ? "/" : "", tail);

        return n < 0 || (size_t)n >= size ? -ENAMETOOLONG : 0;
}

int node_path(const struct lkg_node *node, char *buf, size_t size)
{
        const char *names[128];
        size_t n = 0;

        if (node_index(node) == ROOT_INDEX) {
                *buf = '\0';
                return 0;
        }
        if (atomic_load(&node->kind) != LKG_NODE_SOURCE)
                return join(buf, size, "", node->name);
        while (node_index(node) != ROOT_INDEX) {
                if (n == LKG_ARRAY_SIZE(names))
                        return -ENAMETOOLONG;
                names[n++] = node->name;
                node = node_get(node->parent);
                if (!node)
                        return -ESTALE;
        }
        *buf = '\0';
        while (n > 0) {
                size_t used = strlen(buf);
                int k = snprintf(buf + used, size - used, "%s%s", used ? "/" : "", names[--n]);

                if (k < 0 || (size_t)k >= size - used)
                        return -ENAMETOOLONG;
        }
        return 0;
}

int node_child_path(const struct lkg_node *dir, const char *name, char *buf, size_t size)
{
        char head[PATH_MAX];
        int r = node_path(dir, head, sizeof(head));

        return r < 0 ? r : join(buf, size, head, name);
}

/* --- virtual nodes --- */

/* A text that is rendered again is the same file, with its time, while it is the same text. */
static bool same_content(const struct lkg_node *node, const struct lkg_entry *entry)
{
        return node->size == entry->size &&
               (node->mtime_ns == entry->mtime_ns || entry->flags & LKG_ENTRY_ANSWERED) &&
               node->mode == entry->mode && node->uid == entry->uid && node->gid == entry->gid &&
               node->generation == entry->generation && node->flags == entry->flags &&
               strcmp(node->sha256, entry->sha256) == 0;
}

/* Lock held. */
static struct lkg_node *find_virtual(enum lkg_node_kind kind, const char *path,
                                     const struct lkg_entry *entry)
{
        for (uint32_t i = buckets[bucket(2, path, strlen(path))]; i != 0; i = node_at(i - 1)->hash_next) {
                struct lkg_node *node = node_at(i - 1);

                if (atomic_load(&node->kind) == kind && strcmp(node->name, path) == 0 &&
                    (kind != LKG_NODE_CONTENT || (entry && same_content(node, entry))))
                        return node;
        }
        return NULL;
}

static void fill_virtual(struct lkg_node *node, const char *path, const struct lkg_entry *entry)
{
        (void)snprintf(node->name, sizeof(node->name), "%s", path);
        node->st_ino = VIRTUAL_INO + atomic_fetch_add(&server.shm->inodes, 1) + 1;
        if (!entry)
                return;
        node->mode = entry->mode;
        node->uid = entry->uid;
        node->gid = entry->gid;
        node->mtime_ns = entry->mtime_ns;
        node->size = entry->size;
        node->flags = entry->flags;
        node->component = entry->component;
        node->generation = entry->generation;
        memcpy(node->sha256, entry->sha256, sizeof(node->sha256));
}

/*
 * Lock held. An opener counts itself and then looks up the node again (content.c), so the count is checked
 * only after the node can no longer be found.
 */
static void forget_unless_open(struct lkg_node *node)
{
        atomic_store(&node->kind, LKG_NODE_FREE);
        if (content_is_open(node))
                atomic_store(&node->kind, LKG_NODE_CONTENT);
        else
                (void)release_as(node, LKG_NODE_CONTENT);
}

/* Lock held. The kernel may still know it: every request about it is answered with ESTALE from now on. */
static void forget_surplus(void)
{
        LKG_CLEANUP(lkg_freep) uint32_t *surplus = NULL;
        size_t n = content_surplus(contents, n_contents, &surplus);

        for (size_t i = 0; i < n; i++)
                forget_unless_open(node_at(surplus[i]));
}

/*
 * Lock held. Content that no publication names (outage.c, view-files.c) replaces the earlier one of this path.
 * Return: the newest time that one of this path had.
 */
static int64_t retire_own(const char *path)
{
        static unsigned made;
        uint64_t now = lkg_boottime_ns();
        int64_t newest = INT64_MIN;

        for (uint32_t i = buckets[bucket(2, path, strlen(path))]; i != 0; i = node_at(i - 1)->hash_next) {
                struct lkg_node *node = node_at(i - 1);

                if (atomic_load(&node->kind) != LKG_NODE_CONTENT || strcmp(node->name, path) != 0)
                        continue;
                newest = node->mtime_ns > newest ? node->mtime_ns : newest;
                if (node->retired_ns == 0)
                        node->retired_ns = now;
        }
        if (++made % OWN_BATCH == 0)
                forget_surplus();
        return newest;
}

static int get_virtual(enum lkg_node_kind kind, const char *path, const struct lkg_entry *entry,
                       const char *bytes, struct lkg_node **ret)
{
        struct lkg_node *node;
        int r = 0;

        if (strlen(path) >= LKG_NODE_NAME)
                return -ENAMETOOLONG;
        (void)pthread_mutex_lock(&server.nodes_lock);
        node = find_virtual(kind, path, entry);
        if (node) {
                atomic_fetch_add(&node->nlookup, 1);
                if (kind == LKG_NODE_CONTENT && entry->flags & LKG_ENTRY_ANSWERED && node->retired_ns != 0) {
                        (void)retire_own(path);
                        node->retired_ns = 0;
                }
                if (kind != LKG_NODE_CONTENT && entry) { /* a directory or control file may have changed */
                        node->mode = entry->mode;
                        node->uid = entry->uid;
                        node->gid = entry->gid;
                        node->mtime_ns = entry->mtime_ns;
                }
        } else if (!(node = allocate(0))) {
                r = -ENFILE;
        } else {
                fill_virtual(node, path, entry);
                content_reset(node);
                if (kind == LKG_NODE_CONTENT && entry)
                        r = pin(node, entry, bytes);
                if (r == 0 && is_listed(kind))
                        r = content_list_add(node);
                if (r == 0) {
                        atomic_store(&node->nlookup, 1);
                        if (bytes || (kind == LKG_NODE_CONTENT && entry->flags & LKG_ENTRY_ANSWERED)) {
                                /* of another text with the same size, rsync and make see the time */
                                if (retire_own(path) >= node->mtime_ns)
                                        node->mtime_ns = (int64_t)lkg_realtime_ns();
                        }
                        atomic_store_explicit(&node->kind, kind, memory_order_release);
                        chain_add(node);
                } else {
                        quota_remove(&quota, quota_owner(0));
                        count_node(node_index(node), -1);
                }
        }
        (void)pthread_mutex_unlock(&server.nodes_lock);
        if (r == 0)
                *ret = node;
        return r;
}

/**
 * node_virtual() - the node of a published entry, with one more lookup counted.
 * Return: 0; -EAGAIN: the publication was replaced and its blob is gone, look again; -ENFILE; another -errno.
 */
int node_virtual(enum lkg_node_kind kind, const char *path, const struct lkg_entry *entry,
                 struct lkg_node **ret)
{
        return get_virtual(kind, path, entry, NULL, ret);
}

int node_own(const char *path, const struct lkg_entry *entry, const char *bytes, struct lkg_node **ret)
{
        return get_virtual(LKG_NODE_CONTENT, path, entry, bytes, ret);
}

struct lkg_node *node_last(const char *path)
{
        struct lkg_node *found = NULL;

        (void)pthread_mutex_lock(&server.nodes_lock);
        for (uint32_t i = buckets[bucket(2, path, strlen(path))]; i != 0 && !found;
             i = node_at(i - 1)->hash_next) {
                struct lkg_node *node = node_at(i - 1);

                if (atomic_load(&node->kind) == LKG_NODE_CONTENT && node->flags & LKG_ENTRY_ANSWERED &&
                    node->retired_ns == 0 && strcmp(node->name, path) == 0)
                        found = node;
        }
        if (found)
                atomic_fetch_add(&found->nlookup, 1);
        (void)pthread_mutex_unlock(&server.nodes_lock);
        return found;
}

/* Content that the new publication no longer shows is old from now on, and so is each answer from before it. */
void nodes_retire(const struct lkg_publication *publication)
{
        uint64_t now = lkg_boottime_ns();

        (void)pthread_mutex_lock(&server.nodes_lock);
        for (size_t i = 0; i < n_contents; i++) {
                struct lkg_node *node = node_at(contents[i]);
                const struct lkg_entry *entry = lkg_publication_find(publication, node->name);
                bool current = entry && entry->type == LKG_ENTRY_FILE && same_content(node, entry);

                if (current)
                        node->retired_ns = 0;
                else if (node->retired_ns == 0)
                        node->retired_ns = now;
        }
        forget_surplus();
        (void)pthread_mutex_unlock(&server.nodes_lock);
}

/* Old nodes whose lookup count leaked: the kernel does not know them, so it will never forget them. */
void nodes_prune(void)
{
        uint64_t now = lkg_boottime_ns();

        (void)pthread_mutex_lock(&server.nodes_lock);
        for (size_t i = 0; i < n_contents;) {
                struct lkg_node *node = node_at(contents[i]);

                if (node->retired_ns != 0 && now - node->retired_ns > PRUNE_AFTER &&
                    !kernel_knows(node_id(node)))
                        (void)release_node(node); /* also leaves the list; content has no descriptor */
                else
                        i++;
        }
        (void)pthread_mutex_unlock(&server.nodes_lock);
}

/* Lock held. The kernel still knows it: it is watched, open, or bind-mounted. */
static bool is_old_view(const struct lkg_node *node)
{
        return atomic_load(&node->kind) == LKG_NODE_CONTENT && (node->flags & LKG_ENTRY_VIEW) &&
               node->retired_ns != 0 && atomic_load(&node->nlookup) > 0;
}

size_t nodes_old_views(uint64_t *ids, size_t max)
{
        size_t n = 0;

        (void)pthread_mutex_lock(&server.nodes_lock);
        for (size_t i = 0; i < n_contents && n < max; i++)
                if (is_old_view(node_at(contents[i])))
                        ids[n++] = node_id(node_at(contents[i]));
        (void)pthread_mutex_unlock(&server.nodes_lock);
        return n;
}

struct lkg_node *node_old_view(uint64_t id)
{
        struct lkg_node *node;

        (void)pthread_mutex_lock(&server.nodes_lock);
        node = node_get(id);
        if (node && is_old_view(node))
                atomic_fetch_add(&node->nlookup, 1);
        else
                node = NULL;
        (void)pthread_mutex_unlock(&server.nodes_lock);
        return node;
}

void node_attributes(const struct lkg_node *node, struct stat *ret)
{
        uint32_t kind = atomic_load(&node->kind);
        struct timespec t = { .tv_sec = node->mtime_ns / (int64_t)LKG_NSEC_PER_SEC,
                              .tv_nsec = node->mtime_ns % (int64_t)LKG_NSEC_PER_SEC };

        memset(ret, 0, sizeof(*ret));
        ret->st_ino = node->st_ino;
        ret->st_mode =
                (mode_t)node->mode | (is_listed(kind) || kind == LKG_NODE_CONTROL ? S_IFREG : S_IFDIR);
        ret->st_nlink = S_ISDIR(ret->st_mode) ? 2 : 1;
        ret->st_uid = node->uid;
        ret->st_gid = node->gid;
        ret->st_size = (off_t)node->size;
        ret->st_blksize = 4096;
        ret->st_blocks = (blkcnt_t)((node->size + 511) / 512);
        ret->st_atim = ret->st_mtim = ret->st_ctim = t;
}

/* Pins of nodes that a dead server was about to create or drop. */
static void sweep_pins(void)
{
        LKG_CLEANUP(lkg_closep) int fd = openat(server.pinned, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        DIR *dir = fd < 0 ? NULL : fdopendir(fd);
        const struct dirent *d;

        if (!dir)
                return;
        fd = -EBADF; /* closed with the stream */
        while ((d = readdir(dir))) {
                const struct lkg_node *node;
                char *end;
                uint64_t id = strtoull(d->d_name, &end, 16);

                if (d->d_name[0] == '.' || *end)
                        continue;
                node = node_get(id);
                if (!node || atomic_load(&node->kind) != LKG_NODE_CONTENT)
                        (void)unlinkat(server.pinned, d->d_name, 0);
        }
        (void)closedir(dir);
}
