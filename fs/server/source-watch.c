/* SPDX-License-Identifier: Apache-2.0 */
/*
 * inotify on the source directories that the kernel knows. More than one thread, because a directory of a
 * file system that is mounted below the source directory may never answer: one for the source directory's
 * own file system (home), and one for each of the others, up to seven; any further ones share the last
 * thread, where they delay each other. A thread whose file system has no watches left is reused.
 *
 * All of root's programs share one limit of watches (fs.inotify.max_user_watches): lkgfs uses at most 4,096,
 * of which directories of one user get an eighth and those of all users half. When a share or the machine's
 * limit is used up, the watch that was requested longest ago is removed: changes behind the mount are then
 * not reported there until the directory is looked up again.
 */
#include <limits.h>
#include <linux/magic.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/vfs.h>

#include "quota.h"
#include "file-server.h"

#define WATCHES_MAX 4096u
#define WISHES_MAX  64u /* for each thread; further ones are dropped */
#define START_MS    100 /* time to restore a predecessor's watches before anything is served */
#define WATCH_MASK \
        (IN_CREATE | IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO | IN_CLOSE_WRITE | IN_ONLYDIR | IN_EXCL_UNLINK)

enum { HOME, FIRST_AWAY, SHARED = 8, N_SIDES };

static struct side {
        int inotify, wished;         /* valid while it runs */
        bool running, busy;          /* busy: it may be waiting for its file system */
        uint64_t dev;                /* 0 = unused; not set for SHARED */
        uint64_t wishes[WISHES_MAX]; /* directories that it has to watch */
        size_t n_wishes, n_watches;
} sides[N_SIDES];

static struct watch {
        uint64_t node, wanted;
        uint32_t owner;
        int wd, side;
} watches[WATCHES_MAX];
static size_t n_watches;
static uint64_t wants;
static uint16_t watch_of[LKG_NODES]; /* index + 1 */
static struct quota_cell cells[WATCHES_MAX];
static struct quota quota = { .size = WATCHES_MAX, .n_cells = WATCHES_MAX, .cells = cells };
static pthread_mutex_t watch_lock = PTHREAD_MUTEX_INITIALIZER; /* protects: everything here. A leaf. */
static pthread_cond_t began = PTHREAD_COND_INITIALIZER;
static bool has_begun;

/* ---- the table; lock held ---- */

static void drop(size_t i)
{
        struct watch *watch = &watches[i];

        (void)inotify_rm_watch(sides[watch->side].inotify, watch->wd);
        sides[watch->side].n_watches--;
        lkg_quota_remove(&quota, watch->owner);
        watch_of[(uint32_t)watch->node] = 0;
        *watch = watches[--n_watches];
        if (i < n_watches)
                watch_of[(uint32_t)watch->node] = (uint16_t)(i + 1);
}

/* Requested longest ago by @owner; root takes one of a user first. n_watches: there is none. */
static size_t victim(uint32_t owner)
{
        size_t found = n_watches;

        for (size_t i = 0; i < n_watches; i++) {
                bool fits = owner == QUOTA_HOST_ROOT ? watches[i].owner != owner : watches[i].owner == owner;

                if (fits && (found == n_watches || watches[i].wanted < watches[found].wanted))
                        found = i;
        }
        return found;
}

static bool make_room(uint32_t owner)
{
        size_t i;

        if (n_watches < WATCHES_MAX && lkg_quota_ask(&quota, owner))
                return true;
        i = victim(owner);
        if (i == n_watches)
                return false;
        drop(i);
        return true;
}

static bool is_watched(uint64_t node)
{
        size_t i = watch_of[(uint32_t)node];

        if (i == 0 || watches[i - 1].node != node)
                return false;
        watches[i - 1].wanted = ++wants;
        return true;
}

/*
 * A directory has one watch per inotify instance, whichever node requests it: another node of the same
 * directory takes over its watch, and a node that was forgotten meanwhile gets none. (When something is
 * mounted on a known directory, the kernel looks it up, forgets that node at once because it expected
 * another one, and looks it up again.)
 */
static void add(const struct lkg_node *dir, uint64_t node, uint32_t owner, int wd, int side)
{
        size_t before = watch_of[(uint32_t)node], i = 0;

        if (before > 0 && (watches[before - 1].wd != wd || watches[before - 1].side != side))
                drop(before - 1); /* it was requested twice, and a thread became free in between */
        while (i < n_watches && (watches[i].wd != wd || watches[i].side != side))
                i++;
        if (lkg_node_get(node) != dir || (i == n_watches && !make_room(owner))) {
                if (i == n_watches)
                        (void)inotify_rm_watch(sides[side].inotify, wd);
                return;
        }
        if (i < n_watches) {
                lkg_quota_remove(&quota, watches[i].owner);
                watch_of[(uint32_t)watches[i].node] = 0;
        } else {
                i = n_watches++;
                sides[side].n_watches++;
        }
        watches[i] =
                (struct watch){ .node = node, .wanted = ++wants, .owner = owner, .wd = wd, .side = side };
        watch_of[(uint32_t)node] = (uint16_t)(i + 1);
        lkg_quota_add(&quota, owner);
}

static uint64_t watched_node(int side, int wd)
{
        LKG_LOCKED(&watch_lock);

        for (size_t i = 0; i < n_watches; i++)
                if (watches[i].wd == wd && watches[i].side == side)
                        return watches[i].node;
        return 0;
}

/* ---- watching; may wait for the file system ---- */

static void say_full(void)
{
        static _Atomic bool said;

        if (!atomic_exchange(&said, true))
                lkg_log_warning("no inotify watch is left (fs.inotify.max_user_watches): changes behind the "
                                "mount are not reported in every directory");
}

static void watch(struct lkg_node *dir, int side)
{
        uint64_t id = lkg_node_id(dir);
        uint32_t owner = lkg_quota_owner(dir->uid);
        int fd = lkg_node_fd(dir), wd;
        char path[FD_PATH_MAX];

        if (fd < 0)
                return;
        (void)lkg_fd_path(fd, path);
        wd = inotify_add_watch(sides[side].inotify, path, WATCH_MASK);
        if (wd < 0 && errno == ENOSPC) {
                say_full();
                (void)pthread_mutex_lock(&watch_lock);
                if (victim(owner) < n_watches)
                        drop(victim(owner));
                (void)pthread_mutex_unlock(&watch_lock);
                wd = inotify_add_watch(sides[side].inotify, path, WATCH_MASK);
        }
        if (wd < 0)
                return;
        LKG_LOCKED(&watch_lock);
        add(dir, id, owner, wd, side);
}

static int start_side(int side);

/* Lock held. The thread of that file system, a free one, or the shared one. */
static int side_of(uint64_t dev)
{
        int unused = SHARED;

        for (int i = FIRST_AWAY; i < SHARED; i++) {
                const struct side *side = &sides[i];

                if (side->dev == dev)
                        return i;
                if (unused == SHARED && !side->busy && side->n_watches == 0 && side->n_wishes == 0)
                        unused = i;
        }
        if (unused != SHARED)
                sides[unused].dev = dev;
        return unused;
}

/* Lock held. */
static void wish(const struct lkg_node *dir)
{
        struct side *side = &sides[side_of(dir->dev)];

        if (start_side((int)(side - sides)) < 0)
                return;
        if (side->n_wishes < WISHES_MAX)
                side->wishes[side->n_wishes++] = lkg_node_id(dir);
        (void)eventfd_write(side->wished, 1);
}

void lkg_watch_directory(struct lkg_node *dir)
{
        bool away = atomic_load(&dir->kind) == LKG_NODE_SOURCE && dir->dev != server.source_dev, known;

        (void)pthread_mutex_lock(&watch_lock);
        known = !sides[HOME].running || is_watched(lkg_node_id(dir));
        if (!known && away)
                wish(dir);
        (void)pthread_mutex_unlock(&watch_lock);
        if (!known && !away)
                watch(dir, HOME);
}

void lkg_watch_drop(uint32_t index)
{
        LKG_LOCKED(&watch_lock);

        if (watch_of[index] > 0)
                drop(watch_of[index] - 1u);
}

/* ---- threads ---- */

static void read_events(int side)
{
        char buf[16384] __attribute__((aligned(__alignof__(struct inotify_event))));
        ssize_t n;

        while ((n = read(sides[side].inotify, buf, sizeof(buf))) > 0) {
                for (char *p = buf; p < buf + n;) {
                        const struct inotify_event *event = (const void *)p;
                        uint64_t dir = event->len ? watched_node(side, event->wd) : 0;

                        if (dir != 0)
                                lkg_relay_event(dir, event->mask, event->name);
                        p += sizeof(*event) + event->len;
                }
        }
        lkg_relay_ring();
}

static void grant_wishes(int number)
{
        struct side *side = &sides[number];
        struct lkg_node *dir;
        uint64_t node;
        eventfd_t n;

        (void)eventfd_read(side->wished, &n);
        for (;;) {
                (void)pthread_mutex_lock(&watch_lock);
                node = side->n_wishes > 0 ? side->wishes[--side->n_wishes] : 0;
                (void)pthread_mutex_unlock(&watch_lock);
                if (node == 0)
                        return;
                dir = lkg_node_get(node);
                if (dir)
                        watch(dir, number);
        }
}

static void be_busy(int side, bool busy)
{
        LKG_LOCKED(&watch_lock);

        sides[side].busy = busy;
}

/*
 * Does the source directory's file system depend on nothing remote? The list is incomplete: other file
 * systems are asked.
 */
static bool is_local(void)
{
        static const uint32_t local[] = { EXT4_SUPER_MAGIC, XFS_SUPER_MAGIC,  BTRFS_SUPER_MAGIC,
                                          TMPFS_MAGIC,      F2FS_SUPER_MAGIC, RAMFS_MAGIC };
        struct statfs st;

        if (fstatfs(server.source, &st) < 0)
                return false;
        for (size_t i = 0; i < LKG_ARRAY_SIZE(local); i++)
                if ((uint32_t)st.f_type == local[i])
                        return true;
        return false;
}

/* Watch the directories that a predecessor watched, or should have watched. */
static void begin(void)
{
        uint32_t n = atomic_load(&server.shm->touched.nodes);

        lkg_watch_directory(lkg_node_at(FUSE_ROOT_ID));
        for (uint32_t i = FUSE_ROOT_ID + 1; (i = lkg_nodes_next(i)) < n; i++) {
                struct lkg_node *node = lkg_node_at(i);

                if (atomic_load(&node->kind) == LKG_NODE_SOURCE && S_ISDIR(node->mode))
                        lkg_watch_directory(node);
        }
        atomic_store(&server.source_is_local, is_local());
        LKG_LOCKED(&watch_lock);
        has_begun = true;
        (void)pthread_cond_signal(&began);
}

static void *side_main(void *arg)
{
        int side = (int)(intptr_t)arg;
        struct pollfd polls[2] = { { .fd = sides[side].inotify, .events = POLLIN },
                                   { .fd = sides[side].wished, .events = POLLIN } };

        (void)pthread_setname_np(pthread_self(), side == HOME ? "watch" : "watch-away");
        if (side == HOME)
                begin();
        for (;;) {
                if (poll(polls, 2, -1) < 0 && errno != EINTR)
                        return NULL;
                be_busy(side, true);
                if (polls[1].revents)
                        grant_wishes(side);
                read_events(side);
                be_busy(side, false);
        }
}

static int open_side(struct side *side)
{
        LKG_CLEANUP(lkg_closep) int inotify = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
        LKG_CLEANUP(lkg_closep) int wished = inotify < 0 ? -EBADF : eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);

        if (wished < 0)
                return -errno;
        side->inotify = LKG_STEAL_FD(inotify);
        side->wished = LKG_STEAL_FD(wished);
        return 0;
}

static void close_side(struct side *side)
{
        side->inotify = lkg_close(side->inotify);
        side->wished = lkg_close(side->wished);
}

/* Lock held. */
static int start_side(int side)
{
        int r;

        if (sides[side].running)
                return 0;
        r = open_side(&sides[side]);
        if (r < 0)
                return r;
        r = lkg_thread_start(side_main, (void *)(intptr_t)side);
        sides[side].running = r == 0;
        if (r != 0)
                close_side(&sides[side]);
        return r;
}

/* A source directory that does not answer delays only its own watches: the wait for it is short. */
int lkg_watch_init(struct lkg_error *err)
{
        uint64_t until_ns = lkg_monotonic_ns() + START_MS * LKG_NSEC_PER_MSEC;
        int r;

        (void)pthread_mutex_lock(&watch_lock);
        r = start_side(HOME);
        (void)pthread_mutex_unlock(&watch_lock);
        if (r < 0)
                return lkg_error_set(err, r, NULL, "inotify");
        LKG_LOCKED(&watch_lock);
        while (!has_begun && lkg_cond_wait(&began, &watch_lock, until_ns))
                ;
        return 0;
}
