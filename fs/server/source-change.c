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
        node = lkg_node_find_source(st.st_dev, st.st_ino);
        if (node && atomic_load(&node->n_open) > 0)
                lkg_node_keep(node);
}

/* A name that a request changes. */
struct changed_name {
        struct lkg_node *dir;
        const char *name; /* in the source directory */
        int fd;           /* of @dir */
        char buf[LKG_NODE_NAME];
};

/* Return: 0; -errno: nothing has begun. */
static int begin(struct changed_name *at, struct lkg_node *dir, const char *name)
{
        at->dir = dir;
        at->name = lkg_source_real_name(dir, name, at->buf, sizeof(at->buf));
        at->fd = lkg_node_fd(dir);
        if (at->fd < 0)
                return at->fd;
        lkg_relay_begin(lkg_node_id(dir), at->name);
        return 0;
}

static void end(const struct changed_name *at)
{
        lkg_relay_end(lkg_node_id(at->dir), at->name);
}

/* The reply waits for the engine's judgement if the name belongs to a layer. Return: 0. */
static int judge(const struct changed_name *at)
{
        char path[PATH_MAX];

        if (lkg_node_child_path(at->dir, at->name, path, sizeof(path)) == 0)
                lkg_source_park(path, path);
        return 0;
}

/* The end of every operation that created the name without opening it; @r: its result. */
static int reply_made(fuse_req_t req, const struct changed_name *at, int r)
{
        struct fuse_entry_param entry;

        if (r == 0)
                r = lkg_source_lookup(at->dir, at->name, &entry);
        end(at);
        if (r < 0)
                return r;
        (void)judge(at);
        return lkg_source_reply_entry(req, &entry);
}

/*
 * Only a new file: one that appeared behind the mount since the kernel's lookup was not checked for the
 * caller's permission. ESTALE makes the kernel look again and open what it then finds.
 */
static int open_new(fuse_req_t req, const struct changed_name *at, mode_t mode, int flags)
{
        struct caller caller;
        int fd;

        intend(at->fd, at->name);
        lkg_caller_enter(fuse_req_ctx(req), &caller);
        fd = openat(at->fd, at->name, flags | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);
        if (fd < 0)
                fd = -errno;
        lkg_caller_leave(&caller);
        if (fd < 0 && made_before(-fd)) {
                /* Only the file that we created: O_CREAT would recreate a removed name, without a mode. */
                fd = openat(at->fd, at->name,
                            (flags & ~(O_CREAT | O_EXCL)) | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
                if (fd < 0)
                        fd = -errno;
        } else if (fd == -EEXIST && !(flags & O_EXCL)) {
                fd = -ESTALE;
        }
        return fd;
}

static int create(fuse_req_t req, const struct changed_name *at, mode_t mode, uint32_t record,
                  struct fuse_entry_param *ret, struct fuse_file_info *fi)
{
        LKG_CLEANUP(lkg_closep) int fd = -EBADF;
        char path[FD_PATH_MAX];
        struct lkg_node *node;
        int pathfd, r;

        /* O_DIRECT would need aligned memory, which a request is not. */
        fd = open_new(req, at, mode, fi->flags & ~(O_DIRECT | O_NOATIME));
        end(at);
        if (fd < 0)
                return fd;
        pathfd = open(lkg_fd_path(fd, path), O_PATH | O_CLOEXEC);
        r = pathfd < 0 ? -errno : lkg_source_adopt(at->dir, at->name, pathfd, ret);
        if (r < 0)
                return r;
        node = lkg_node_get(ret->ino);
        fi->fh = lkg_file_fill(record, node, fi->flags, LKG_STEAL_FD(fd));
        lkg_file_opened_by(fi->fh, fuse_req_ctx(req)->pid);
        atomic_fetch_or(&node->dirty, LKG_DIRTY_TRUNCATED);
        return 0;
}

int lkg_source_create(fuse_req_t req, struct lkg_node *dir, const char *name, mode_t mode,
                      struct fuse_file_info *fi)
{
        struct fuse_entry_param entry;
        struct changed_name at;
        uint32_t record;
        int r = lkg_file_reserve(fuse_req_ctx(req), &record);

        if (r < 0)
                return r;
        r = lkg_node_reserve(fuse_req_ctx(req)->uid);
        if (r == 0)
                r = begin(&at, dir, name);
        if (r == 0)
                r = create(req, &at, mode, record, &entry, fi);
        lkg_node_unreserve();
        if (r < 0) {
                lkg_file_give_back(record);
                return r;
        }
        fuse_reply_create(req, &entry, fi);
        if (task.lost) {
                lkg_file_close(fi->fh);
                lkg_source_unless_lost(&entry);
        }
        return REPLIED;
}

static int make(const struct changed_name *at, mode_t mode, dev_t rdev, const char *link)
{
        int r;

        if (link)
                r = symlinkat(link, at->fd, at->name);
        else if (S_ISDIR(mode))
                r = mkdirat(at->fd, at->name, mode);
        else
                r = mknodat(at->fd, at->name, mode, rdev);
        return r < 0 ? -errno : 0;
}

/* mkdir, mknod and symlink (@link not NULL). */
int lkg_source_make(fuse_req_t req, struct lkg_node *dir, const char *name, mode_t mode, dev_t rdev,
                    const char *link)
{
        struct caller caller;
        struct changed_name at;
        int r = lkg_node_reserve(fuse_req_ctx(req)->uid);

        if (r < 0)
                return r;
        r = begin(&at, dir, name);
        if (r == 0) {
                intend(at.fd, at.name);
                lkg_caller_enter(fuse_req_ctx(req), &caller);
                r = make(&at, mode, rdev, link);
                lkg_caller_leave(&caller);
                r = reply_made(req, &at, r < 0 && made_before(-r) ? 0 : r);
        }
        lkg_node_unreserve();
        return r;
}

int lkg_source_link(fuse_req_t req, struct lkg_node *node, struct lkg_node *dir, const char *name)
{
        char path[FD_PATH_MAX];
        struct changed_name at;
        int fd = lkg_node_fd(node), r = fd < 0 ? fd : begin(&at, dir, name);

        if (r < 0)
                return r;
        intend(at.fd, at.name);
        if (linkat(AT_FDCWD, lkg_fd_path(fd, path), at.fd, at.name, AT_SYMLINK_FOLLOW) < 0 &&
            !made_before(errno))
                r = -errno;
        return reply_made(req, &at, r);
}

int lkg_source_unlink(struct lkg_node *dir, const char *name, int flags)
{
        struct changed_name at;
        int r = begin(&at, dir, name);

        if (r < 0)
                return r;
        intend(at.fd, at.name);
        if (!flags)
                keep_if_open(at.fd, at.name);
        if (unlinkat(at.fd, at.name, flags) < 0 && !removed_before(errno))
                r = -errno;
        end(&at);
        return r < 0 ? r : judge(&at);
}

static void moved(const struct changed_name *at)
{
        struct lkg_node *node;
        struct stat st;

        if (fstatat(at->fd, at->name, &st, AT_SYMLINK_NOFOLLOW) < 0)
                return;
        node = lkg_node_find_source(st.st_dev, st.st_ino);
        if (node)
                lkg_node_moved(node, lkg_node_id(at->dir), at->name);
}

/*
 * The first attempt moved it: the old name is gone and its file has the new one. EXCHANGE keeps both names, so only the inodes show
 * whether it was done.
 */
static bool moved_before(const struct changed_name *to, bool old_is_gone)
{
        const struct lkg_intent *intent = &task.slot->intent;
        struct stat st;

        return task.replay && old_is_gone && intent->valid && intent->existed &&
               fstatat(to->fd, to->name, &st, AT_SYMLINK_NOFOLLOW) == 0 && st.st_dev == intent->dev &&
               st.st_ino == intent->ino;
}

/* The engine is told the new name: nothing says that the old one is complete, as another file may come there at once. */
static int judge_renamed(const struct changed_name *from, const struct changed_name *to)
{
        LKG_CLEANUP(lkg_publication_putp) struct publication_ref *ref = lkg_publication_get();
        char old[PATH_MAX], new[PATH_MAX];

        if (lkg_node_child_path(to->dir, to->name, new, sizeof(new)) == 0 &&
            lkg_node_child_path(from->dir, from->name, old, sizeof(old)) == 0)
                lkg_source_park(lkg_publication_commits(ref->publication, new) ? new : old, new);
        return 0;
}

int lkg_source_rename(struct lkg_node *dir, const char *name, struct lkg_node *newdir, const char *newname,
                      unsigned flags)
{
        struct changed_name from, to;
        bool exchange = flags & RENAME_EXCHANGE;
        int r = lkg_node_fd(newdir);

        if (r >= 0)
                r = begin(&from, dir, name);
        if (r >= 0)
                r = begin(&to, newdir, newname);
        if (r < 0)
                return r;
        intend(from.fd, from.name);
        if (!exchange)
                keep_if_open(to.fd, to.name);
        if (!moved_before(&to, exchange) && renameat2(from.fd, from.name, to.fd, to.name, flags) < 0 &&
            !moved_before(&to, errno == ENOENT))
                r = -errno;
        end(&from);
        end(&to);
        if (r < 0)
                return r;
        moved(&to);
        if (exchange)
                moved(&from);
        return judge_renamed(&from, &to);
}
