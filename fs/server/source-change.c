/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The pass-through: creating, removing and renaming.
 *
 * Each operation first records an intent in its slot: the file that had the name. If this server is killed
 * after the system call and before the reply, the successor repeats the call, and the intent distinguishes
 * the effect of the first call (EEXIST for a file that it created, ENOENT for one that it removed) from
 * another process's change.
 */
#include <fcntl.h>
#include <limits.h>
#include <linux/fs.h>

#include "file-server.h"

/* The file at (dirfd, name) now; in a replay, the one before the first attempt. */
static void intend(int dirfd, const char *name)
{
        struct lkg_intent *intent = &task.slot->intent;
        struct stat st;

        if (task.replay && intent->valid)
                return;
        intent->valid = 0;
        intent->existed = fstatat(dirfd, name, &st, AT_SYMLINK_NOFOLLOW) == 0;
        intent->dev = intent->existed ? st.st_dev : 0;
        intent->ino = intent->existed ? st.st_ino : 0;
        atomic_thread_fence(memory_order_release);
        intent->valid = 1;
}

/* The first attempt created it, and the server died before its reply. */
static bool made_before(int error)
{
        return task.replay && error == EEXIST && task.slot->intent.valid && !task.slot->intent.existed;
}

static bool removed_before(int error)
{
        return task.replay && error == ENOENT && task.slot->intent.valid && task.slot->intent.existed;
}

/* An open file that loses a name may lose its last one: then its descriptor must outlive us. */
static void keep_if_open(int dirfd, const char *name)
{
        struct stat st;
        struct lkg_node *node;

        if (fstatat(dirfd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
                return;
        node = node_find_source(st.st_dev, st.st_ino);
        if (node && atomic_load(&node->n_open) > 0)
                node_keep(node);
}

/* Reply with @entry once the engine has judged the change, if it is one of a layer. */
static void reply_entry(fuse_req_t req, struct lkg_node *dir, const char *real,
                        const struct fuse_entry_param *entry)
{
        char path[PATH_MAX];
        struct lkg_parked *parked =
                node_child_path(dir, real, path, sizeof(path)) == 0 ? source_park(path) : NULL;

        fuse_reply_entry(req, entry);
        source_unless_lost(entry);
        if (parked)
                engine_submit(parked);
}

/* The end of every operation that created the name @real without opening it; @r: its result. */
static void reply_made(fuse_req_t req, struct lkg_node *dir, const char *name, const char *real, int r)
{
        struct fuse_entry_param entry;

        if (r == 0)
                r = source_lookup(dir, name, &entry);
        relay_end(node_id(dir), real);
        if (r < 0)
                fuse_reply_err(req, -r);
        else
                reply_entry(req, dir, real, &entry);
}

/*
 * Only a new file: one that appeared behind the mount since the kernel's lookup was not checked for the
 * caller's permission. ESTALE makes the kernel look again and open what it then finds.
 */
static int open_new(fuse_req_t req, int dirfd, const char *real, mode_t mode, int flags)
{
        struct caller caller;
        int fd;

        intend(dirfd, real);
        caller_enter(fuse_req_ctx(req), &caller);
        fd = openat(dirfd, real, flags | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);
        if (fd < 0)
                fd = -errno;
        caller_leave(&caller);
        if (fd < 0 && made_before(-fd)) {
                /* Only the file that we created: O_CREAT would recreate a removed name, without a mode. */
                fd = openat(dirfd, real,
                            (flags & ~(O_CREAT | O_EXCL)) | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
                if (fd < 0)
                        fd = -errno;
        } else if (fd == -EEXIST && !(flags & O_EXCL)) {
                fd = -ESTALE;
        }
        return fd;
}

static int create(fuse_req_t req, struct lkg_node *dir, const char *real, mode_t mode, uint32_t record,
                  struct fuse_entry_param *ret, struct fuse_file_info *fi)
{
        LKG_CLEANUP(lkg_closep) int fd = -EBADF;
        int dirfd = node_fd(dir), pathfd, r;
        char path[FD_PATH_MAX];
        struct lkg_node *node;

        if (dirfd < 0)
                return dirfd;
        relay_begin(node_id(dir), real);
        /* O_DIRECT would need aligned memory, which a request is not. */
        fd = open_new(req, dirfd, real, mode, fi->flags & ~(O_DIRECT | O_NOATIME));
        relay_end(node_id(dir), real);
        if (fd < 0)
                return fd;
        (void)fd_path(fd, path);
        pathfd = open(path, O_PATH | O_CLOEXEC);
        r = pathfd < 0 ? -errno : source_adopt(dir, real, pathfd, ret);
        if (r < 0)
                return r;
        node = node_get(ret->ino);
        fi->fh = file_fill(record, node, fi->flags, LKG_STEAL_FD(fd));
        atomic_fetch_or(&node->dirty, LKG_DIRTY_TRUNCATED);
        return 0;
}

void source_create(fuse_req_t req, struct lkg_node *dir, const char *name, mode_t mode,
                   struct fuse_file_info *fi)
{
        char buf[PATH_MAX];
        const char *real = source_real_name(dir, name, buf, sizeof(buf));
        struct fuse_entry_param entry;
        uint32_t record;
        int r = file_reserve(fuse_req_ctx(req), &record);

        if (r == 0) {
                r = node_reserve(fuse_req_ctx(req)->uid);
                if (r == 0)
                        r = create(req, dir, real, mode, record, &entry, fi);
                node_unreserve();
                if (r < 0)
                        file_give_back(record);
        }
        if (r < 0)
                fuse_reply_err(req, -r);
        else
                fuse_reply_create(req, &entry, fi);
        if (r == 0 && task.lost) {
                file_close(fi->fh);
                source_unless_lost(&entry);
        }
}

static int make(int dirfd, const char *real, mode_t mode, dev_t rdev, const char *link)
{
        int r;

        if (link)
                r = symlinkat(link, dirfd, real);
        else if (S_ISDIR(mode))
                r = mkdirat(dirfd, real, mode);
        else
                r = mknodat(dirfd, real, mode, rdev);
        return r < 0 ? -errno : 0;
}

/* mkdir, mknod and symlink (@link not NULL). */
void source_make(fuse_req_t req, struct lkg_node *dir, const char *name, mode_t mode, dev_t rdev,
                 const char *link)
{
        char buf[PATH_MAX];
        const char *real = source_real_name(dir, name, buf, sizeof(buf));
        struct caller caller;
        int dirfd = node_fd(dir), r = dirfd < 0 ? dirfd : node_reserve(fuse_req_ctx(req)->uid);

        if (r < 0) {
                fuse_reply_err(req, -r);
                return;
        }
        relay_begin(node_id(dir), real);
        intend(dirfd, real);
        caller_enter(fuse_req_ctx(req), &caller);
        r = make(dirfd, real, mode, rdev, link);
        caller_leave(&caller);
        if (r < 0 && made_before(-r))
                r = 0;
        reply_made(req, dir, name, real, r);
        node_unreserve();
}

void source_link(fuse_req_t req, struct lkg_node *node, struct lkg_node *dir, const char *name)
{
        char buf[PATH_MAX], path[FD_PATH_MAX];
        const char *real = source_real_name(dir, name, buf, sizeof(buf));
        int dirfd = node_fd(dir), fd = node_fd(node), r = 0;

        if (dirfd < 0 || fd < 0) {
                fuse_reply_err(req, dirfd < 0 ? -dirfd : -fd);
                return;
        }
        relay_begin(node_id(dir), real);
        intend(dirfd, real);
        (void)fd_path(fd, path);
        if (linkat(AT_FDCWD, path, dirfd, real, AT_SYMLINK_FOLLOW) < 0 && !made_before(errno))
                r = -errno;
        reply_made(req, dir, name, real, r);
}

void source_unlink(fuse_req_t req, struct lkg_node *dir, const char *name, int flags)
{
        char buf[PATH_MAX], path[PATH_MAX];
        const char *real = source_real_name(dir, name, buf, sizeof(buf));
        int dirfd = node_fd(dir), r = 0;

        if (dirfd < 0) {
                fuse_reply_err(req, -dirfd);
                return;
        }
        relay_begin(node_id(dir), real);
        intend(dirfd, real);
        if (!flags)
                keep_if_open(dirfd, real);
        if (unlinkat(dirfd, real, flags) < 0 && !removed_before(errno))
                r = -errno;
        relay_end(node_id(dir), real);
        if (r < 0)
                fuse_reply_err(req, -r);
        else if (node_child_path(dir, real, path, sizeof(path)) == 0)
                source_reply(req, path);
        else
                fuse_reply_err(req, 0);
}

static void moved(int dirfd, struct lkg_node *dir, const char *real)
{
        struct lkg_node *node;
        struct stat st;

        if (fstatat(dirfd, real, &st, AT_SYMLINK_NOFOLLOW) < 0)
                return;
        node = node_find_source(st.st_dev, st.st_ino);
        if (node)
                node_moved(node, node_id(dir), real);
}

/* The first attempt moved it: the old name is gone and its file has the new one. */
static bool moved_before(int error, int newfd, const char *newreal)
{
        const struct lkg_intent *intent = &task.slot->intent;
        struct stat st;

        return removed_before(error) && fstatat(newfd, newreal, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
               st.st_dev == intent->dev && st.st_ino == intent->ino;
}

/* EXCHANGE keeps both names, so only the inodes show whether it was done. */
static bool exchanged_before(int newfd, const char *newreal, unsigned flags)
{
        const struct lkg_intent *intent = &task.slot->intent;
        struct stat st;

        return task.replay && (flags & RENAME_EXCHANGE) && intent->valid && intent->existed &&
               fstatat(newfd, newreal, &st, AT_SYMLINK_NOFOLLOW) == 0 && st.st_dev == intent->dev &&
               st.st_ino == intent->ino;
}

static void reply_renamed(fuse_req_t req, struct lkg_node *dir, const char *real, struct lkg_node *newdir,
                          const char *newreal)
{
        LKG_CLEANUP(publication_putp) struct publication_ref *ref = publication_get();
        char from[PATH_MAX], to[PATH_MAX];

        if (node_child_path(newdir, newreal, to, sizeof(to)) < 0 ||
            node_child_path(dir, real, from, sizeof(from)) < 0)
                fuse_reply_err(req, 0);
        else
                source_reply(req, publication_commits(ref->publication, to) ? to : from);
}

void source_rename(fuse_req_t req, struct lkg_node *dir, const char *name, struct lkg_node *newdir,
                   const char *newname, unsigned flags)
{
        char buf[PATH_MAX], newbuf[PATH_MAX];
        const char *real = source_real_name(dir, name, buf, sizeof(buf));
        const char *newreal = source_real_name(newdir, newname, newbuf, sizeof(newbuf));
        int dirfd = node_fd(dir), newfd = node_fd(newdir), r = 0;

        if (dirfd < 0 || newfd < 0) {
                fuse_reply_err(req, dirfd < 0 ? -dirfd : -newfd);
                return;
        }
        relay_begin(node_id(dir), real);
        relay_begin(node_id(newdir), newreal);
        intend(dirfd, real);
        if (!(flags & RENAME_EXCHANGE))
                keep_if_open(newfd, newreal);
        if (!exchanged_before(newfd, newreal, flags) && renameat2(dirfd, real, newfd, newreal, flags) < 0 &&
            !moved_before(errno, newfd, newreal))
                r = -errno;
        relay_end(node_id(dir), real);
        relay_end(node_id(newdir), newreal);
        if (r < 0) {
                fuse_reply_err(req, -r);
                return;
        }
        moved(newfd, newdir, newreal);
        if (flags & RENAME_EXCHANGE)
                moved(dirfd, dir, real);
        reply_renamed(req, dir, real, newdir, newreal);
}
