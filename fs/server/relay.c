/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Changes behind the mount. inotify on a FUSE file system shows only what happens through it, so a process that writes
 * to the source directory directly (an older bind, another mount namespace) would be invisible to watchers of the view.
 * We watch the source directories the kernel knows (watch.c), and have the notifier do harmless operations through the mount
 * that make the kernel emit the same events; those are recognised by the notifier's pid and touch nothing.
 *
 * What we did ourselves must not be relayed: relay_begin()/relay_end() around each own change remember what stood
 * there afterwards; an event that finds exactly that is ours.
 */
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <sys/inotify.h>
#include <sys/syscall.h>

#include "quota.h"
#include "server.h"

#define OWN_SLOTS 512u
#define BEGUN_NS  (2 * LKG_NSEC_PER_SEC)

struct identity {
        uint64_t ino, size;
        int64_t mtime_ns, ctime_ns;
};

static pthread_mutex_t relay_lock = PTHREAD_MUTEX_INITIALIZER; /* protects: own, enqueueing. A leaf. */
static struct {
        uint64_t dir;
        uint64_t name;     /* hash */
        uint64_t begun_ns; /* not 0: being changed since then */
        struct identity identity;
} own[OWN_SLOTS];
static uint32_t
        job_owners[LKG_RELAY_JOBS]; /* whose directory it is about: quota_owner(); 0 = a predecessor's */

static void ring(void)
{
        atomic_fetch_add(&server.shm->bell, 1);
        (void)syscall(SYS_futex, &server.shm->bell, FUTEX_WAKE, 1, NULL, NULL, 0);
}

/* A view file as it was announced last. Only the thread of the event loop announces. */
struct announced {
        char path[sizeof(((struct lkg_shared *)NULL)->view_names[0])], sha256[LKG_SHA256_HEX];
        uint64_t generation;
};
static struct announced announced[LKG_VIEW_NAMES];
static size_t n_announced;

static bool was_announced(const struct lkg_entry *entry)
{
        for (size_t i = 0; i < n_announced; i++)
                if (strcmp(announced[i].path, entry->path) == 0)
                        return announced[i].generation == entry->generation &&
                               strcmp(announced[i].sha256, entry->sha256) == 0;
        return false;
}

/* @n: names there are already. Return: how many there are now. */
static uint32_t want_name(uint32_t n, const char *path)
{
        for (uint32_t i = 0; i < n; i++)
                if (strcmp(server.shm->view_names[i], path) == 0)
                        return n;
        if (n == LKG_VIEW_NAMES)
                return n;
        (void)snprintf(server.shm->view_names[n], sizeof(server.shm->view_names[n]), "%s", path);
        return n + 1;
}

static void remember(const struct lkg_publication *publication)
{
        n_announced = 0;
        for (size_t i = 0; i < publication->n_entries && n_announced < LKG_VIEW_NAMES; i++) {
                const struct lkg_entry *entry = &publication->entries[i];
                struct announced *a = &announced[n_announced];

                if (!(entry->flags & LKG_ENTRY_VIEW))
                        continue;
                (void)snprintf(a->path, sizeof(a->path), "%s", entry->path);
                memcpy(a->sha256, entry->sha256, sizeof(a->sha256));
                a->generation = entry->generation;
                n_announced++;
        }
}

/*
 * Only who watches a file that is another one now is woken: a component may end itself for it, and most publications are about
 * status/ alone. Names that the notifier has not finished with stay wanted.
 */
void relay_announce(void)
{
        LKG_CLEANUP(publication_putp) struct publication_ref *ref = publication_get();
        uint32_t n = atomic_load(&server.shm->n_view_names), n_new = 0;

        if (n > LKG_VIEW_NAMES)
                n = LKG_VIEW_NAMES;
        if (atomic_load(&server.shm->wake_done) == atomic_load(&server.shm->wake_wanted))
                n = 0; /* the notifier has done all of them */
        for (size_t i = 0; i < ref->publication->n_entries; i++) {
                const struct lkg_entry *entry = &ref->publication->entries[i];

                if (!(entry->flags & LKG_ENTRY_VIEW) || was_announced(entry))
                        continue;
                n = want_name(n, entry->path);
                n_new++;
        }
        remember(ref->publication);
        atomic_store(&server.shm->root_changed, 1);
        if (n_new > 0) {
                atomic_store(&server.shm->n_view_names, n);
                atomic_store(&server.shm->wake_wanted, ref->publication->number);
        }
        ring();
}

/* --- our own changes --- */

static uint64_t hash_name(const char *name)
{
        return lkg_hash(0, name, strlen(name));
}

/* All zero: nothing stands there. */
static void identify(uint64_t dir, const char *name, struct identity *ret, mode_t *ret_mode,
                     bool *ret_writer)
{
        struct lkg_node *node = node_get(dir), *file;
        int fd = node ? node_fd(node) : -EBADF;
        struct stat st;

        memset(ret, 0, sizeof(*ret));
        *ret_mode = 0;
        *ret_writer = false;
        if (fd < 0 || source_stat(fd, name, AT_SYMLINK_NOFOLLOW, &st) < 0)
                return;
        ret->ino = st.st_ino;
        ret->size = S_ISDIR(st.st_mode) ? 0 : (uint64_t)st.st_size;
        ret->mtime_ns = S_ISDIR(st.st_mode) ? 0 : lkg_timespec_ns(&st.st_mtim);
        ret->ctime_ns = S_ISDIR(st.st_mode) ? 0 : lkg_timespec_ns(&st.st_ctim);
        *ret_mode = st.st_mode;
        file = node_find_source(st.st_dev, st.st_ino);
        *ret_writer = file && atomic_load(&file->n_writers) > 0;
}

static size_t own_slot(uint64_t dir, uint64_t name)
{
        return (size_t)((name ^ dir * UINT64_C(0x9e3779b97f4a7c15)) % OWN_SLOTS);
}

void relay_begin(uint64_t dir, const char *name)
{
        uint64_t hash = hash_name(name);
        size_t slot = own_slot(dir, hash);

        (void)pthread_mutex_lock(&relay_lock);
        own[slot].dir = dir;
        own[slot].name = hash;
        own[slot].begun_ns = lkg_boottime_ns();
        (void)pthread_mutex_unlock(&relay_lock);
}

void relay_end(uint64_t dir, const char *name)
{
        uint64_t hash = hash_name(name);
        size_t slot = own_slot(dir, hash);
        struct identity now;
        mode_t mode;
        bool writer;

        identify(dir, name, &now, &mode, &writer);
        (void)pthread_mutex_lock(&relay_lock);
        own[slot].dir = dir;
        own[slot].name = hash;
        own[slot].begun_ns = 0;
        own[slot].identity = now;
        (void)pthread_mutex_unlock(&relay_lock);
        if (dir == FUSE_ROOT_ID) { /* the kernel dropped the root's attributes with this change */
                atomic_store(&server.shm->root_changed, 1);
                ring();
        }
}

static bool is_own(uint64_t dir, const char *name, const struct identity *now)
{
        uint64_t hash = hash_name(name);
        size_t slot = own_slot(dir, hash);
        bool yes = false;

        (void)pthread_mutex_lock(&relay_lock);
        if (own[slot].dir == dir && own[slot].name == hash) {
                if (own[slot].begun_ns != 0)
                        yes = lkg_boottime_ns() - own[slot].begun_ns < BEGUN_NS;
                else
                        yes = memcmp(&own[slot].identity, now, sizeof(*now)) == 0;
        }
        (void)pthread_mutex_unlock(&relay_lock);
        return yes;
}

/* --- what happened behind the mount --- */

/* Lock held. Jobs about directories of users have a half of the ring, those of one user an eighth. */
static bool has_room_for(const struct lkg_node *dir, uint32_t head, uint32_t tail)
{
        uint32_t owner = quota_owner(dir->uid), n_users = 0, n_own = 0;

        for (uint32_t i = tail; i != head; i++) {
                uint32_t other = job_owners[i % LKG_RELAY_JOBS];

                n_users += other > QUOTA_HOST_ROOT;
                n_own += other == owner;
        }
        return head - tail < LKG_RELAY_JOBS &&
               (owner == QUOTA_HOST_ROOT || (n_users < LKG_RELAY_JOBS / 2 && n_own < LKG_RELAY_JOBS / 8));
}

/* Watchers that are so far behind that there is no room have an overflow of their own. */
static void enqueue(enum lkg_relay_op op, mode_t type, uint64_t dir, const char *name)
{
        struct lkg_shared *shm = server.shm;
        struct lkg_node *node = node_get(dir);
        struct lkg_relay_job *job;
        uint32_t head;

        if (!node)
                return;
        (void)pthread_mutex_lock(&relay_lock);
        head = atomic_load(&shm->relay_head);
        job = &shm->relay[head % LKG_RELAY_JOBS];
        if (has_room_for(node, head, atomic_load(&shm->relay_tail)) &&
            node_path(node, job->path, sizeof(job->path)) == 0) {
                job->op = op;
                job->type = type & S_IFMT;
                job->dir = dir;
                (void)snprintf(job->name, sizeof(job->name), "%s", name);
                job_owners[head % LKG_RELAY_JOBS] = quota_owner(node->uid);
                atomic_store_explicit(&shm->relay_head, head + 1, memory_order_release);
        }
        (void)pthread_mutex_unlock(&relay_lock);
}

void relay_event(uint64_t dir, uint32_t mask, const char *name)
{
        struct identity now;
        bool writer, there;
        mode_t mode;

        if (dir == FUSE_ROOT_ID && view_owns(node_get(dir), name))
                return;
        identify(dir, name, &now, &mode, &writer);
        there = now.ino != 0;
        if (writer || is_own(dir, name, &now))
                return;
        if (mask & (IN_DELETE | IN_MOVED_FROM)) {
                if (!there)
                        enqueue(LKG_RELAY_REMOVED, mask & IN_ISDIR ? S_IFDIR : S_IFREG, dir, name);
        } else if (there && (mask & (IN_CREATE | IN_MOVED_TO))) {
                enqueue(LKG_RELAY_CREATED, mode, dir, name);
                if ((mask & IN_MOVED_TO) && S_ISREG(mode))
                        enqueue(LKG_RELAY_MODIFIED, mode, dir, name);
        } else if (there && (mask & IN_CLOSE_WRITE) && S_ISREG(mode)) {
                enqueue(LKG_RELAY_MODIFIED, mode, dir, name);
        }
}

void relay_ring(void)
{
        if (atomic_load(&server.shm->relay_head) != atomic_load(&server.shm->relay_tail))
                ring();
}

/* --- what the notifier does through the mount --- */

static const struct lkg_relay_job *active(fuse_req_t req, const struct lkg_node *dir, const char *name)
{
        const struct lkg_relay_job *job;

        if (!caller_is_notifier(fuse_req_ctx(req)) || atomic_load(&server.shm->relay_active) == 0)
                return NULL;
        job = &server.shm->relay[atomic_load(&server.shm->relay_tail) % LKG_RELAY_JOBS];
        return job->dir == node_id(dir) && strcmp(job->name, name) == 0 ? job : NULL;
}

bool relay_matches(fuse_req_t req, const struct lkg_node *dir, const char *name)
{
        return active(req, dir, name) != NULL;
}

/*
 * Somebody may still have it open: the kernel takes the size for that of his file, so it must be the right one. A name it had,
 * so it has a link.
 */
static void describe_removed(struct lkg_node *node, struct fuse_entry_param *ret)
{
        memset(ret, 0, sizeof(*ret));
        ret->ino = node_id(node);
        if (source_attributes(node, &ret->attr) < 0)
                ret->attr = (struct stat){ .st_ino = node->ino, .st_mode = node->mode };
        if (ret->attr.st_nlink == 0)
                ret->attr.st_nlink = 1;
}

/* Nothing there before a creation, something there before a removal: else the kernel would not ask for either. */
bool relay_lookup(fuse_req_t req, struct lkg_node *dir, const char *name)
{
        const struct lkg_relay_job *job = active(req, dir, name);
        struct fuse_entry_param entry = { 0 };
        struct lkg_node *node;

        if (!job || atomic_load(&server.shm->relay_done))
                return false;
        if (job->op == LKG_RELAY_CREATED) {
                fuse_reply_err(req, ENOENT);
                return true;
        }
        if (job->op != LKG_RELAY_REMOVED || source_lookup(dir, name, &entry) == 0) {
                if (job->op != LKG_RELAY_REMOVED)
                        return false;
                fuse_reply_entry(req, &entry);
                return true;
        }
        node = node_find_child(node_id(dir), name);
        if (!node)
                node = node_placeholder(node_id(dir), name, S_ISDIR(job->type));
        if (!node) {
                fuse_reply_err(req, ENFILE);
                return true;
        }
        describe_removed(node, &entry);
        fuse_reply_entry(req, &entry);
        return true;
}

bool relay_make(fuse_req_t req, struct lkg_node *dir, const char *name)
{
        const struct lkg_relay_job *job = active(req, dir, name);
        struct fuse_entry_param entry;
        int r;

        if (!job)
                return false;
        atomic_store(&server.shm->relay_done, 1);
        r = source_lookup(dir, name, &entry);
        if (r < 0)
                fuse_reply_err(req, -r); /* gone again: its removal is the next job */
        else
                fuse_reply_entry(req, &entry);
        return true;
}

bool relay_remove(fuse_req_t req, struct lkg_node *dir, const char *name)
{
        if (!active(req, dir, name))
                return false;
        atomic_store(&server.shm->relay_done, 1);
        fuse_reply_err(req, 0);
        return true;
}

bool relay_touch(fuse_req_t req, struct lkg_node *node)
{
        uint32_t kind = atomic_load(&node->kind);

        if (!caller_is_notifier(fuse_req_ctx(req)) || (kind != LKG_NODE_SOURCE && kind != LKG_NODE_ROOT))
                return false;
        source_getattr(req, node);
        return true;
}

bool relay_open(fuse_req_t req, struct lkg_node *node, struct fuse_file_info *fi)
{
        (void)node;
        if (!caller_is_notifier(fuse_req_ctx(req)) || (fi->flags & O_ACCMODE) == O_RDONLY)
                return false;
        fi->fh = 0;
        fi->noflush = 1;
        fi->keep_cache = 1;
        fuse_reply_open(req, fi);
        return true;
}
