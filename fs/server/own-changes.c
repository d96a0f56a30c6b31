/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Changes behind the mount. inotify on a FUSE file system shows only what happens through it, so a process
 * that writes to the source directory directly (an older bind, another mount namespace) would be invisible
 * to watchers of the view. The file server watches the source directories that the kernel knows
 * (source-watch.c), and has the notifier cause the same events (relay.c).
 *
 * Own changes must not be relayed: lkg_relay_begin()/lkg_relay_end() around each of them record the file that was there afterwards; an
 * event that finds exactly that file is about our own change.
 */
#include <fcntl.h>
#include <linux/futex.h>
#include <sys/inotify.h>
#include <sys/syscall.h>

#include "quota.h"
#include "file-server.h"

#define OWN_SLOTS 512u
#define BEGUN_NS  (2 * LKG_NSEC_PER_SEC)

struct identity {
        uint64_t ino, size;
        int64_t mtime_ns, ctime_ns;
};

static pthread_mutex_t relay_lock = PTHREAD_MUTEX_INITIALIZER; /* protects: own, enqueueing. A leaf. */
static struct own {
        uint64_t dir;
        uint64_t name;     /* hash */
        uint64_t begun_ns; /* not 0: in progress since then */
        struct identity identity;
} own[OWN_SLOTS];
/* owner of the directory: lkg_quota_owner(); 0 = a predecessor's */
static uint32_t job_owners[LKG_RELAY_JOBS];

void lkg_notifier_ring(void)
{
        atomic_fetch_add(&server.shm->notify.bell, 1);
        (void)syscall(SYS_futex, &server.shm->notify.bell, FUTEX_WAKE, 1, NULL, NULL, 0);
}

/* --- our own changes --- */

static uint64_t hash_name(const char *name)
{
        return lkg_hash(0, name, strlen(name));
}

/* All zero: there is no file. */
static void identify(uint64_t dir, const char *name, struct identity *ret, mode_t *ret_mode,
                     bool *ret_writer)
{
        struct lkg_node *node = lkg_node_get(dir), *file;
        int fd = node ? lkg_node_fd(node) : -EBADF;
        struct stat st;

        memset(ret, 0, sizeof(*ret));
        *ret_mode = 0;
        *ret_writer = false;
        if (fd < 0 || lkg_source_stat(fd, name, AT_SYMLINK_NOFOLLOW, &st) < 0)
                return;
        ret->ino = st.st_ino;
        ret->size = S_ISDIR(st.st_mode) ? 0 : (uint64_t)st.st_size;
        ret->mtime_ns = S_ISDIR(st.st_mode) ? 0 : lkg_timespec_ns(&st.st_mtim);
        ret->ctime_ns = S_ISDIR(st.st_mode) ? 0 : lkg_timespec_ns(&st.st_ctim);
        *ret_mode = st.st_mode;
        file = lkg_node_find_source(st.st_dev, st.st_ino);
        *ret_writer = file && atomic_load(&file->n_writers) > 0;
}

/* Lock held. */
static struct own *own_of(uint64_t dir, uint64_t name)
{
        return &own[(name ^ dir * UINT64_C(0x9e3779b97f4a7c15)) % OWN_SLOTS];
}

void lkg_relay_begin(uint64_t dir, const char *name)
{
        const struct own begun = { .dir = dir, .name = hash_name(name), .begun_ns = lkg_boottime_ns() };
        LKG_LOCKED(&relay_lock);

        *own_of(dir, begun.name) = begun;
}

static void note_end(uint64_t dir, const char *name)
{
        struct own ended = { .dir = dir, .name = hash_name(name) };
        mode_t mode;
        bool writer;

        identify(dir, name, &ended.identity, &mode, &writer);
        LKG_LOCKED(&relay_lock);
        *own_of(dir, ended.name) = ended;
}

void lkg_relay_end(uint64_t dir, const char *name)
{
        note_end(dir, name);
        /* the kernel has dropped the root directory's attributes with this change */
        if (dir == FUSE_ROOT_ID) {
                atomic_store(&server.shm->notify.root_changed, 1);
                lkg_notifier_ring();
        }
}

static bool is_own(uint64_t dir, const char *name, const struct identity *now)
{
        uint64_t hash = hash_name(name);
        LKG_LOCKED(&relay_lock);
        const struct own *one = own_of(dir, hash);

        if (one->dir != dir || one->name != hash)
                return false;
        return one->begun_ns != 0 ? lkg_boottime_ns() - one->begun_ns < BEGUN_NS
                                  : memcmp(&one->identity, now, sizeof(*now)) == 0;
}

/* --- changes behind the mount --- */

/* Lock held. Jobs about directories of users get half of the ring, those of one user an eighth. */
static bool has_room_for(const struct lkg_node *dir, uint32_t head, uint32_t tail)
{
        uint32_t owner = lkg_quota_owner(dir->uid), n_users = 0, n_own = 0;

        for (uint32_t i = tail; i != head; i++) {
                uint32_t other = job_owners[i % LKG_RELAY_JOBS];

                n_users += other > QUOTA_HOST_ROOT;
                n_own += other == owner;
        }
        return head - tail < LKG_RELAY_JOBS &&
               (owner == QUOTA_HOST_ROOT || (n_users < LKG_RELAY_JOBS / 2 && n_own < LKG_RELAY_JOBS / 8));
}

/* Watchers that fall too far behind get an overflow event. */
static void enqueue(enum lkg_relay_op op, mode_t type, uint64_t dir, const char *name)
{
        struct lkg_shared *shm = server.shm;
        struct lkg_node *node = lkg_node_get(dir);
        struct lkg_relay_job *job;
        uint32_t head;

        if (!node)
                return;
        LKG_LOCKED(&relay_lock);
        head = atomic_load(&shm->notify.relay_head);
        job = &shm->notify.relay[head % LKG_RELAY_JOBS];
        if (has_room_for(node, head, atomic_load(&shm->notify.relay_tail)) &&
            lkg_node_path(node, job->path, sizeof(job->path)) == 0) {
                job->op = op;
                job->type = type & S_IFMT;
                job->dir = dir;
                (void)snprintf(job->name, sizeof(job->name), "%s", name);
                job_owners[head % LKG_RELAY_JOBS] = lkg_quota_owner(node->uid);
                atomic_store_explicit(&shm->notify.relay_head, head + 1, memory_order_release);
        }
}

void lkg_relay_event(uint64_t dir, uint32_t mask, const char *name)
{
        struct identity now;
        bool writer, there;
        mode_t mode;

        if (dir == FUSE_ROOT_ID && lkg_publication_owns(lkg_node_get(dir), name))
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

void lkg_relay_ring(void)
{
        if (atomic_load(&server.shm->notify.relay_head) != atomic_load(&server.shm->notify.relay_tail))
                lkg_notifier_ring();
}
