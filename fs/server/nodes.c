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
 * count leaked (a server died between the two) is found by lkg_nodes_prune().
 *
 * Users that may create files in the source could create as many as there are nodes, so nodes of inodes that
 * root does not own are limited for each owner (quota.h); when an owner has used most of the share, the
 * kernel is told to forget some (content.c). A file that is about to be created gets its node first.
 *
 * A node made in bad/ has neither inode nor content; simultaneous opens of the same name share it.
 */
#include <fcntl.h>
#include <limits.h>
#include <sys/resource.h>

#include <lkg/base.h>
#include <lkg/file.h>

#include "quota.h"
#include "file-server.h"

#define BUCKETS     16384u
#define NODE_OWNERS 16384u
#define WAY_MAX     2048u /* directories: more do not fit into PATH_MAX */
#define OWN_BATCH   64u   /* when there are this many of our own, forget some */
#define PRUNE_AFTER (10 * LKG_NSEC_PER_SEC)
/* start of virtual inode numbers: no local file system goes that far */
#define VIRTUAL_INO (UINT64_C(1) << 48)

static uint32_t buckets[BUCKETS];  /* index + 1 of the first node; rebuilt at start */
static _Atomic int fds[LKG_NODES]; /* O_PATH descriptors of source nodes, stored as fd + 1 */
static uint64_t used[LKG_NODES / 64],
        listed[LKG_NODES / 64]; /* listed: visited by each publication, see is_listed() */
static struct records records = { .used = used, .n = LKG_NODES, .next = ROOT_INDEX + 1 };
static bool touched[LKG_NODES / 64]; /* these 64 nodes have memory */
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

/* The first node of a bucket, or the one after the node whose `hash_next` is @next. */
static struct lkg_node *chained(uint32_t next)
{
        return next != 0 ? lkg_node_at(next - 1) : NULL;
}

static struct lkg_node *first_of_path(const char *path)
{
        return chained(buckets[bucket(2, path, strlen(path))]);
}

static void chain_add(struct lkg_node *node)
{
        uint32_t b = bucket_of(node);

        node->hash_next = buckets[b];
        buckets[b] = lkg_node_index(node) + 1;
}

static void chain_remove(struct lkg_node *node)
{
        uint32_t *p = &buckets[bucket_of(node)];

        while (*p != 0) {
                struct lkg_node *other = lkg_node_at(*p - 1);

                if (other == node) {
                        *p = node->hash_next;
                        return;
                }
                p = &other->hash_next;
        }
}

uint64_t lkg_node_id(const struct lkg_node *node)
{
        return (uint64_t)lkg_node_index(node) | (uint64_t)node->incarnation << 32;
}

struct lkg_node *lkg_node_get(uint64_t id)
{
        uint32_t index = (uint32_t)id;
        struct lkg_node *node;

        if (index < ROOT_INDEX || index >= LKG_NODES)
                return NULL;
        node = lkg_node_at(index);
        if (atomic_load_explicit(&node->kind, memory_order_acquire) == LKG_NODE_FREE ||
            node->incarnation != (uint32_t)(id >> 32))
                return NULL;
        return node;
}

/* ---- owners ---- */

static uint32_t owner_of(const struct lkg_node *node, uint32_t kind)
{
        return lkg_quota_owner(kind == LKG_NODE_SOURCE ? node->uid : 0);
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
               (task.replay || lkg_quota_ask(&quota, lkg_quota_owner(uid)));
}

/**
 * lkg_node_reserve() - reserve a node for what this request is about to create for @uid; then call
 * lkg_node_unreserve(), used or not.
 * Return: 0; -ENFILE.
 */
int lkg_node_reserve(uid_t uid)
{
        LKG_LOCKED(&server.nodes_lock);

        if (!admits(uid))
                return -ENFILE;
        task.reserved_node = lkg_quota_owner(uid);
        lkg_quota_add(&quota, task.reserved_node);
        return 0;
}

/* Lock held. Return: was one reserved? */
static bool take_reserved(void)
{
        if (task.reserved_node == 0)
                return false;
        lkg_quota_remove(&quota, task.reserved_node);
        task.reserved_node = 0;
        return true;
}

void lkg_node_unreserve(void)
{
        LKG_LOCKED(&server.nodes_lock);

        (void)take_reserved();
}

/* Lock held. Return a zeroed record for an inode of @uid; its kind is still FREE. NULL: none for this user. */
static struct lkg_node *allocate(uid_t uid)
{
        struct lkg_node *node;
        uint32_t index;

        if (!take_reserved() && !admits(uid))
                return NULL;
        index = lkg_records_take(&records);
        if (index == LKG_NODES)
                return NULL;
        node = lkg_node_at(index);
        memset(node, 0, sizeof(*node));
        node->incarnation = lkg_incarnation_new();
        node->uid = uid;
        lkg_quota_add(&quota, lkg_quota_owner(uid));
        touched[index / 64] = true;
        if (atomic_load(&server.shm->touched.nodes) <= index)
                atomic_store(&server.shm->touched.nodes, index + 1);
        if (lkg_quota_is_nearly_used(&quota, lkg_quota_owner(uid)))
                server.hooks->nodes_crowded(lkg_quota_owner(uid));
        return node;
}

/*
 * Finds files that are not open, from @cursor on, once through the table; not directories, which may carry
 * mounts.
 */
size_t lkg_nodes_of_owner(uint32_t owner, uint32_t *cursor, struct lkg_name *names, size_t max)
{
        uint32_t n_nodes = atomic_load(&server.shm->touched.nodes);
        size_t n = 0;
        LKG_LOCKED(&server.nodes_lock);

        for (; n < max && (*cursor = lkg_nodes_next(*cursor)) < n_nodes; ++*cursor) {
                const struct lkg_node *node = lkg_node_at(*cursor);

                if (atomic_load(&node->kind) != LKG_NODE_SOURCE || lkg_quota_owner(node->uid) != owner ||
                    S_ISDIR(node->mode) || atomic_load(&node->n_open) > 0)
                        continue;
                names[n].parent = node->parent;
                memcpy(names[n++].name, node->name, sizeof(node->name));
        }
        return n;
}

bool lkg_nodes_ask(uint32_t owner, bool (*is)(const struct quota *q, uint32_t owner))
{
        LKG_LOCKED(&server.nodes_lock);

        return is(&quota, owner);
}

/* Lock held. Are these 64 nodes above those that are taken next, and unused, with memory? */
static bool is_spare(uint32_t word)
{
        return word < LKG_NODES / 64 && word * 64 >= lkg_records_limit(&records) && used[word] == 0 &&
               touched[word];
}

/*
 * Lock held. After a storm of lookups few records are in use: new ones are taken from the lower part again, and empty memory above it
 * is returned to the system. Nothing may read it, because that would bring its page back.
 */
static void give_back(void)
{
        const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE) - 1;

        for (uint32_t first = 0; first < LKG_NODES / 64; first++) {
                uint32_t end = first;
                uintptr_t from, to;

                while (is_spare(end))
                        touched[end++] = false;
                from = ((uintptr_t)lkg_node_at(first * 64) + page) & ~page;
                to = (uintptr_t)(server.shm->nodes + (size_t)end * 64) & ~page;
                if (from < to)
                        (void)madvise((void *)from, to - from, MADV_REMOVE);
                first = end;
        }
}

/** lkg_nodes_next() - the first index from @i on that is in use; n_nodes: none. */
uint32_t lkg_nodes_next(uint32_t i)
{
        return lkg_records_next(used, i, atomic_load(&server.shm->touched.nodes));
}

static void pin_name(const struct lkg_node *node, char buf[static 32])
{
        (void)snprintf(buf, 32, "%llx", (unsigned long long)lkg_node_id(node));
}

ssize_t lkg_node_read_content(const struct lkg_node *node, char *buf, size_t size, off_t off)
{
        LKG_CLEANUP(lkg_closep) int fd = -EBADF;
        char name[32];
        ssize_t n;

        if (off < 0 || (uint64_t)off >= node->size)
                return 0;
        if (size > node->size - (uint64_t)off)
                size = node->size - (uint64_t)off;
        pin_name(node, name);
        fd = openat(server.pinned, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
        if (fd < 0)
                return -EIO;
        n = pread(fd, buf, size, off);
        return n < 0 ? -errno : n;
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
        if (bytes)
                return lkg_write_new(server.pinned, name, bytes, node->size, /* durable= */ false, NULL);
        (void)lkg_clear_name(server.pinned, name);
        if (linkat(server.blobs, entry->sha256, server.pinned, name, 0) < 0)
                return errno == ENOENT ? -EAGAIN : -errno;
        return 0;
}

/* Nodes that are visited when a publication is loaded, to be retired or pruned. */
static bool is_listed(uint32_t kind)
{
        return kind == LKG_NODE_CONTENT || kind == LKG_NODE_BAD_MADE;
}

/* Lock held. NULL: no more. */
static struct lkg_node *next_listed(const struct lkg_node *before)
{
        uint32_t n = atomic_load(&server.shm->touched.nodes);
        uint32_t i = lkg_records_next(listed, before ? lkg_node_index(before) + 1 : 0, n);

        return i < n ? lkg_node_at(i) : NULL;
}

/* Lock held. The record is complete, and found from now on. */
static void publish(struct lkg_node *node, enum lkg_node_kind kind)
{
        atomic_store(&node->nlookup, 1);
        atomic_store_explicit(&node->kind, kind, memory_order_release);
        chain_add(node);
        if (is_listed(kind))
                listed[lkg_node_index(node) / 64] |= UINT64_C(1) << lkg_node_index(node) % 64;
}

/*
 * Lock held, the node is of @kind. The record is freed before its pin is removed: if we are killed in
 * between, the successor sweeps the pin; in the other order a node without its bytes would be left.
 * Return: its descriptor, which must be closed without the lock, because closing the last one of a removed
 * file waits for the disk; < 0: none.
 */
static int release_as(struct lkg_node *node, uint32_t kind)
{
        uint32_t index = lkg_node_index(node);
        char name[32];
        int fd;

        chain_remove(node);
        lkg_quota_remove(&quota, owner_of(node, kind));
        pin_name(node, name);
        fd = atomic_exchange(&fds[index], 0) - 1;
        listed[index / 64] &= ~(UINT64_C(1) << index % 64);
        atomic_store_explicit(&node->kind, LKG_NODE_FREE, memory_order_release);
        lkg_records_give(&records, index);
        if (used[index / 64] == 0)
                give_back();
        if (kind == LKG_NODE_CONTENT)
                (void)unlinkat(server.pinned, name, 0);
        return fd;
}

/* Lock held. */
static int release_node(struct lkg_node *node)
{
        return release_as(node, atomic_load(&node->kind));
}

void lkg_node_keep(struct lkg_node *node)
{
        int fd = lkg_node_fd(node);

        if (fd >= 0 && lkg_kept_keep(lkg_node_id(node), node->uid, fd))
                node->kept = 1;
}

void lkg_node_unkeep(struct lkg_node *node)
{
        node->kept = 0;
        lkg_kept_let_go(lkg_node_id(node));
}

bool lkg_node_owner(uint64_t id, uint32_t *ret_uid)
{
        const struct lkg_node *node = lkg_node_get(id);

        if (node)
                *ret_uid = node->uid;
        return node;
}

void lkg_node_forget(struct lkg_node *node, uint64_t n)
{
        LKG_CLEANUP(lkg_closep) int fd = -EBADF; /* without the lock: see release_as() */
        uint64_t had, left;
        bool is_dir;

        if (lkg_node_index(node) == ROOT_INDEX)
                return;
        LKG_LOCKED(&server.nodes_lock);
        had = atomic_load(&node->nlookup);
        do /* others increment it without the lock */
                left = had > n ? had - n : 0;
        while (!atomic_compare_exchange_weak(&node->nlookup, &had, left));
        if (left > 0)
                return;
        is_dir = atomic_load(&node->kind) == LKG_NODE_SOURCE && S_ISDIR(node->mode);
        if (node->kept)
                lkg_node_unkeep(node);
        fd = release_node(node);
        if (is_dir)
                server.hooks->directory_gone(lkg_node_index(node));
}

static void sweep_pins(void);

void lkg_nodes_init(void)
{
        struct lkg_node *root = lkg_node_at(ROOT_INDEX);
        struct stat st;
        uint32_t n;

        if (atomic_load(&root->kind) == LKG_NODE_FREE) {
                root->incarnation = 0;
                atomic_store(&root->nlookup, 1);
                atomic_store(&root->kind, LKG_NODE_ROOT);
                atomic_store(&server.shm->touched.nodes, ROOT_INDEX + 1);
        }
        if (lkg_source_stat(server.source, "", AT_EMPTY_PATH, &st) == 0)
                server.source_dev = st.st_dev;
        size_quota();
        lkg_quota_reset(&quota);
        memset(used, 0, sizeof(used));
        memset(listed, 0, sizeof(listed));
        records.n_used = 0;
        used[0] = 1 | 1 << ROOT_INDEX;
        n = atomic_load(&server.shm->touched.nodes);
        memset(touched, 1,
               n / 64 + 1 < sizeof(touched) ? n / 64 + 1 : sizeof(touched)); /* reading it brings it back */
        for (uint32_t i = ROOT_INDEX + 1; i < n; i++) {
                struct lkg_node *node = lkg_node_at(i);
                uint32_t kind = atomic_load(&node->kind);

                if (kind == LKG_NODE_FREE || !lkg_inherit_node(node))
                        continue;
                chain_remove(node); /* in unit tests the next server runs in the same process */
                chain_add(node);
                lkg_quota_add(&quota, owner_of(node, kind));
                lkg_records_mark(&records, i);
                if (is_listed(kind))
                        listed[i / 64] |= UINT64_C(1) << i % 64;
        }
        give_back();
        sweep_pins();
}

/* --- source nodes --- */

/* Room for a file handle as the kernel takes it. */
union handle {
        struct file_handle head;
        char bytes[sizeof(struct file_handle) + LKG_HANDLE_MAX];
};

/* Without one, on a file system that has none, the node is found again by its name. */
static void remember_handle(struct lkg_node *node, int fd)
{
        union handle u = { .head.handle_bytes = LKG_HANDLE_MAX };
        int mount_id;

        if (name_to_handle_at(fd, "", &u.head, &mount_id, AT_EMPTY_PATH) < 0)
                return;
        memcpy(node->handle, u.head.f_handle, u.head.handle_bytes);
        node->handle_type = u.head.handle_type;
        node->handle_size = u.head.handle_bytes;
}

static bool same_handle(const struct lkg_node *node, const struct lkg_node *now)
{
        return node->handle_size == 0 ||
               (now->handle_size == node->handle_size && now->handle_type == node->handle_type &&
                memcmp(now->handle, node->handle, now->handle_size) == 0);
}

static int open_by_handle(const struct lkg_node *node)
{
        union handle u = { .head.handle_bytes = node->handle_size, .head.handle_type = node->handle_type };

        if (node->handle_size == 0)
                return -ESTALE;
        memcpy(u.head.f_handle, node->handle, node->handle_size);
        return open_by_handle_at(server.source, &u.head, O_PATH | O_CLOEXEC | O_NOFOLLOW);
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
        return node->kept ? lkg_kept_fd(lkg_node_id(node)) : -ESTALE;
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
        int fd = atomic_load(&fds[lkg_node_index(node)]) - 1;

        if (kind == LKG_NODE_ROOT)
                return server.source;
        if (kind != LKG_NODE_SOURCE)
                return -ESTALE;
        return fd < 0 ? -EBADF : fd;
}

static int publish_fd(const struct lkg_node *node, int fd)
{
        int none = 0;

        if (atomic_compare_exchange_strong(&fds[lkg_node_index(node)], &none, fd + 1))
                return fd;
        (void)close(fd); /* another thread was faster */
        return none - 1;
}

/*
 * After a restart a node's descriptor is reopened on demand. On a file system without handles this walks the
 * names from the nearest directory with a descriptor down to the node, without recursion: the depth is
 * unlimited and the stack is small. Not part of lkg_node_fd(), which every request calls, because its stack
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
                at = lkg_node_get(at->parent);
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

int lkg_node_fd(struct lkg_node *node)
{
        int fd = present_fd(node);

        return fd == -EBADF ? open_again(node) : fd;
}

/* Lock held. */
static struct lkg_node *find_source(uint64_t dev, uint64_t ino)
{
        struct lkg_node key = { .kind = LKG_NODE_SOURCE, .dev = dev, .ino = ino };

        for (struct lkg_node *node = chained(buckets[bucket_of(&key)]); node;
             node = chained(node->hash_next))
                if (atomic_load(&node->kind) == LKG_NODE_SOURCE && node->dev == dev && node->ino == ino)
                        return node;
        return NULL;
}

struct lkg_node *lkg_node_find_source(uint64_t dev, uint64_t ino)
{
        LKG_LOCKED(&server.nodes_lock);

        return find_source(dev, ino);
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
        return atomic_load(&fds[lkg_node_index(node)]) != 0 || same_handle(node, now);
}

/**
 * lkg_node_source() - the node of the inode behind @fd, with one more lookup counted.
 * @fd: O_PATH descriptor or *fd < 0; taken over when the node keeps it
 * Return: 0; -ENOENT: the node is not known and @fd is missing; -ENFILE: table full.
 */
int lkg_node_source(uint64_t parent, const char *name, int *fd, const struct stat *st, struct lkg_node **ret)
{
        struct lkg_node *node, now = { 0 };

        if (*fd >= 0)
                remember_handle(&now, *fd);
        LKG_LOCKED(&server.nodes_lock);
        node = find_source(st->st_dev, st->st_ino);
        if (*fd < 0 && (!node || atomic_load(&fds[lkg_node_index(node)]) == 0))
                return -ENOENT;
        if (node && !still_same(node, &now)) {
                chain_remove(node);
                node->dev = node->ino = 0; /* its inode is gone: lookups no longer find it */
                chain_add(node);
                node = NULL;
        }
        if (!node) {
                node = allocate(st->st_uid);
                if (!node)
                        return -ENFILE;
                node->dev = st->st_dev;
                node->ino = st->st_ino;
                node->mode = st->st_mode;
                memcpy(node->handle, now.handle, sizeof(node->handle));
                node->handle_type = now.handle_type;
                node->handle_size = now.handle_size;
                set_name(node, parent, name);
                atomic_store(&fds[lkg_node_index(node)], LKG_STEAL_FD(*fd) + 1);
                publish(node, LKG_NODE_SOURCE);
        } else {
                atomic_fetch_add(&node->nlookup, 1);
                if (node->parent != parent || strcmp(node->name, name) != 0)
                        set_name(node, parent, name);
                if (*fd >= 0 && atomic_load(&fds[lkg_node_index(node)]) == 0)
                        atomic_store(&fds[lkg_node_index(node)], LKG_STEAL_FD(*fd) + 1);
        }
        *ret = node;
        return 0;
}

void lkg_node_moved(struct lkg_node *node, uint64_t parent, const char *name)
{
        LKG_LOCKED(&server.nodes_lock);

        set_name(node, parent, name);
}

struct lkg_node *lkg_node_find_child(uint64_t parent, const char *name)
{
        uint32_t n = atomic_load(&server.shm->touched.nodes);
        LKG_LOCKED(&server.nodes_lock);

        for (uint32_t i = lkg_nodes_next(ROOT_INDEX + 1); i < n; i = lkg_nodes_next(i + 1)) {
                struct lkg_node *node = lkg_node_at(i);

                if (atomic_load(&node->kind) != LKG_NODE_SOURCE || node->parent != parent ||
                    strcmp(node->name, name) != 0 || atomic_load(&node->nlookup) == 0)
                        continue;
                atomic_fetch_add(&node->nlookup, 1);
                return node;
        }
        return NULL;
}

/* A node without an inode: the notifier removes it, so that watchers see a removal behind the mount. */
struct lkg_node *lkg_node_placeholder(uint64_t parent, const char *name, bool is_dir)
{
        LKG_LOCKED(&server.nodes_lock);
        struct lkg_node *node = allocate(0);

        if (node) {
                node->mode = is_dir ? S_IFDIR | 0700 : S_IFREG | 0600;
                set_name(node, parent, name);
                publish(node, LKG_NODE_SOURCE);
        }
        return node;
}

static int join(char *buf, size_t size, const char *head, const char *tail)
{
        int n = snprintf(buf, size, "%s%s%s", head, *head ? "/" : "", tail);

        return n < 0 || (size_t)n >= size ? -ENAMETOOLONG : 0;
}

int lkg_node_path(const struct lkg_node *node, char *buf, size_t size)
{
        const char *names[128];
        size_t n = 0;

        if (lkg_node_index(node) == ROOT_INDEX) {
                *buf = '\0';
                return 0;
        }
        if (atomic_load(&node->kind) != LKG_NODE_SOURCE)
                return join(buf, size, "", node->name);
        while (lkg_node_index(node) != ROOT_INDEX) {
                if (n == LKG_ARRAY_SIZE(names))
                        return -ENAMETOOLONG;
                names[n++] = node->name;
                node = lkg_node_get(node->parent);
                if (!node)
                        return -ESTALE;
        }
        *buf = '\0';
        while (n > 0) {
                size_t filled = strlen(buf);
                int k = snprintf(buf + filled, size - filled, "%s%s", filled ? "/" : "", names[--n]);

                if (k < 0 || (size_t)k >= size - filled)
                        return -ENAMETOOLONG;
        }
        return 0;
}

int lkg_node_child_path(const struct lkg_node *dir, const char *name, char *buf, size_t size)
{
        char head[PATH_MAX];
        int r = lkg_node_path(dir, head, sizeof(head));

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
        for (struct lkg_node *node = first_of_path(path); node; node = chained(node->hash_next))
                if (atomic_load(&node->kind) == kind && strcmp(node->name, path) == 0 &&
                    (kind != LKG_NODE_CONTENT || same_content(node, entry)))
                        return node;
        return NULL;
}

static void fill_virtual(struct lkg_node *node, const char *path, const struct lkg_entry *entry)
{
        (void)snprintf(node->name, sizeof(node->name), "%s", path);
        node->st_ino = VIRTUAL_INO + atomic_fetch_add(&server.shm->counters.inodes, 1) + 1;
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
        if (lkg_content_is_open(node))
                atomic_store(&node->kind, LKG_NODE_CONTENT);
        else
                (void)release_as(node, LKG_NODE_CONTENT);
}

/* Lock held. The kernel may still know it: every request about it is answered with ESTALE from now on. */
static void forget_surplus(void)
{
        LKG_CLEANUP(lkg_freep) uint32_t *surplus = NULL;
        size_t n = lkg_content_surplus(listed, &surplus);

        for (size_t i = 0; i < n; i++)
                forget_unless_open(lkg_node_at(surplus[i]));
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

        for (struct lkg_node *node = first_of_path(path); node; node = chained(node->hash_next)) {
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

/* Lock held. It was found again. */
static void look_again(struct lkg_node *node, const char *path, const struct lkg_entry *entry)
{
        bool content = atomic_load(&node->kind) == LKG_NODE_CONTENT;

        atomic_fetch_add(&node->nlookup, 1);
        if (content && entry->flags & LKG_ENTRY_ANSWERED && node->retired_ns != 0) {
                (void)retire_own(path);
                node->retired_ns = 0;
        }
        if (!content && entry) { /* a directory or control file may have changed */
                node->mode = entry->mode;
                node->uid = entry->uid;
                node->gid = entry->gid;
                node->mtime_ns = entry->mtime_ns;
        }
}

/* Lock held. Return: 0; -ENFILE; as pin(). */
static int make_virtual(enum lkg_node_kind kind, const char *path, const struct lkg_entry *entry,
                        const char *bytes, struct lkg_node **ret)
{
        struct lkg_node *node = allocate(0);
        int r;

        if (!node)
                return -ENFILE;
        fill_virtual(node, path, entry);
        r = kind == LKG_NODE_CONTENT ? pin(node, entry, bytes) : 0;
        if (r < 0) {
                lkg_quota_remove(&quota, lkg_quota_owner(0));
                lkg_records_give(&records, lkg_node_index(node));
                return r;
        }
        /* of another text with the same size, rsync and make see the time */
        if ((bytes || (kind == LKG_NODE_CONTENT && entry->flags & LKG_ENTRY_ANSWERED)) &&
            retire_own(path) >= node->mtime_ns)
                node->mtime_ns = (int64_t)lkg_realtime_ns();
        publish(node, kind);
        *ret = node;
        return 0;
}

/**
 * lkg_node_virtual() - the node of a published entry, or (@bytes) of a file whose content we generate; with one more lookup counted.
 * @entry: NULL only for a directory
 * Return: 0; -EAGAIN: the publication was replaced and its blob is gone, look again; -ENFILE; another -errno.
 */
int lkg_node_virtual(enum lkg_node_kind kind, const char *path, const struct lkg_entry *entry,
                     const char *bytes, struct lkg_node **ret)
{
        struct lkg_node *node;

        if (strlen(path) >= LKG_NODE_NAME)
                return -ENAMETOOLONG;
        LKG_LOCKED(&server.nodes_lock);
        node = find_virtual(kind, path, entry);
        if (!node)
                return make_virtual(kind, path, entry, bytes, ret);
        look_again(node, path, entry);
        *ret = node;
        return 0;
}

struct lkg_node *lkg_node_last(const char *path)
{
        LKG_LOCKED(&server.nodes_lock);
        struct lkg_node *node = first_of_path(path);

        while (node && !(atomic_load(&node->kind) == LKG_NODE_CONTENT && node->flags & LKG_ENTRY_ANSWERED &&
                         node->retired_ns == 0 && strcmp(node->name, path) == 0))
                node = chained(node->hash_next);
        if (node)
                atomic_fetch_add(&node->nlookup, 1);
        return node;
}

/* Content that the new publication no longer shows is old from now on, and so is each answer from before it. */
void lkg_nodes_retire(const struct lkg_publication *publication)
{
        uint64_t now = lkg_boottime_ns();
        LKG_LOCKED(&server.nodes_lock);

        for (struct lkg_node *node = next_listed(NULL); node; node = next_listed(node)) {
                const struct lkg_entry *entry = lkg_publication_find(publication, node->name);
                bool current = entry && entry->type == LKG_ENTRY_FILE && same_content(node, entry);

                if (current)
                        node->retired_ns = 0;
                else if (node->retired_ns == 0)
                        node->retired_ns = now;
        }
        forget_surplus();
}

/* Old nodes whose lookup count leaked: the kernel does not know them, so it will never forget them. */
void lkg_nodes_prune(void)
{
        uint64_t now = lkg_boottime_ns();
        LKG_LOCKED(&server.nodes_lock);

        for (struct lkg_node *node = next_listed(NULL); node; node = next_listed(node))
                if (node->retired_ns != 0 && now - node->retired_ns > PRUNE_AFTER &&
                    !lkg_kernel_knows(lkg_node_id(node)))
                        (void)release_node(node); /* content has no descriptor */
}

/* Lock held. The kernel still knows it: it is watched, open, or bind-mounted. */
static bool is_old_view(const struct lkg_node *node)
{
        return atomic_load(&node->kind) == LKG_NODE_CONTENT && (node->flags & LKG_ENTRY_VIEW) &&
               node->retired_ns != 0 && atomic_load(&node->nlookup) > 0;
}

size_t lkg_nodes_old_views(uint64_t *ids, size_t max)
{
        size_t n = 0;
        LKG_LOCKED(&server.nodes_lock);

        for (struct lkg_node *node = next_listed(NULL); node && n < max; node = next_listed(node))
                if (is_old_view(node))
                        ids[n++] = lkg_node_id(node);
        return n;
}

struct lkg_node *lkg_node_old_view(uint64_t id)
{
        LKG_LOCKED(&server.nodes_lock);
        struct lkg_node *node = lkg_node_get(id);

        if (!node || !is_old_view(node))
                return NULL;
        atomic_fetch_add(&node->nlookup, 1);
        return node;
}

void lkg_node_attributes(const struct lkg_node *node, struct stat *ret)
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
        LKG_CLEANUP(lkg_dir_closep) DIR *dir = lkg_dir_open(server.pinned, ".");
        const struct dirent *d;

        while (dir && (d = lkg_dir_next(dir, NULL))) {
                const struct lkg_node *node;
                char *end;
                uint64_t id = strtoull(d->d_name, &end, 16);

                if (d->d_name[0] == '.' || *end)
                        continue;
                node = lkg_node_get(id);
                if (!node || atomic_load(&node->kind) != LKG_NODE_CONTENT)
                        (void)unlinkat(server.pinned, d->d_name, 0);
        }
}
