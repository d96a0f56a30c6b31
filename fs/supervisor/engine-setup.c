/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sets up the process that becomes an engine: its own mount namespace in which the view does not exist, with
 * its directories as separate mounts; and the user that it runs as, to whom the directories belong.
 */
#include <fcntl.h>
#include <limits.h>
#include <linux/capability.h>
#include <linux/openat2.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/xattr.h>

#include <lkg/base.h>
#include <lkg/file.h>
#include <lkg/process.h>
#include <lkg/publication.h>

#include "supervisor.h"

static int complain(const char *what)
{
        (void)dprintf(STDERR_FILENO, "namespace without the view: %s: %s\n", what, strerror(errno));
        return EX_OSERR;
}

int lkg_hide_view(const char *mount_point)
{
        struct mount_attr private = { .propagation = MS_PRIVATE };
        LKG_CLEANUP(lkg_closep) int tree = -EBADF;
        int r;

        if (unshare(CLONE_NEWNS) < 0)
                return complain("unshare");
        if (mount(NULL, "/", NULL, MS_REC | MS_SLAVE, NULL) < 0)
                return complain("make / a slave");
        r = lkg_mounts_detach_views();
        if (r < 0) {
                errno = -r;
                return complain("detach the view");
        }
        /*
         * The directory at the mount point is bind-mounted on itself, privately: a view that the host
         * attaches later propagates beneath it and stays invisible.
         */
        tree = open_tree(AT_FDCWD, mount_point,
                         OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_RECURSIVE | AT_NO_AUTOMOUNT);
        if (tree < 0)
                return complain("open_tree");
        if (mount_setattr(tree, "", AT_EMPTY_PATH | AT_RECURSIVE, &private, sizeof(private)) < 0)
                return complain("mount_setattr");
        if (move_mount(tree, "", AT_FDCWD, mount_point, MOVE_MOUNT_F_EMPTY_PATH) < 0)
                return complain("move_mount");
        return 0;
}

/*
 * Paths are read-only for it: even without capabilities it may still own every file of root. And no devices:
 * a disk is root's, too, and can be written through a read-only mount.
 */
static int make_read_only(void)
{
        struct mount_attr read_only = { .attr_set =
                                                MOUNT_ATTR_RDONLY | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOSUID };

        if (mount_setattr(AT_FDCWD, "/", AT_RECURSIVE, &read_only, sizeof(read_only)) < 0)
                return complain("make everything read-only");
        return 0;
}

/*
 * The directories that the engine gets as descriptors are detached mounts: `..` does not leave them, while
 * an openat() relative to the host's directory would leave this namespace. All are noexec.
 * @tree: from open_tree(2), taken over; negative: errno has the reason. @flags: AT_RECURSIVE or 0.
 */
static int give_directory(int tree, int fd, unsigned flags, bool writable)
{
        struct mount_attr attr = {
                .attr_set = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC |
                            (writable ? 0 : MOUNT_ATTR_RDONLY),
        };
        LKG_CLEANUP(lkg_closep) int detached = tree, directory = -EBADF;

        if (detached < 0)
                return complain("open_tree");
        if (mount_setattr(detached, "", AT_EMPTY_PATH | flags, &attr, sizeof(attr)) < 0)
                return complain("mount_setattr");
        directory = writable ? openat(detached, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC) : dup(detached);
        if (directory < 0 || dup2(directory, fd) < 0)
                return complain("open a detached directory");
        return 0;
}

/* Before we leave the host's namespace: its mounts can be cloned only there. */
static int give_directories(void)
{
        int r = 0;

        for (int fd = LKG_ENGINE_SOURCE_FD; r == 0 && fd <= LKG_ENGINE_STATE_FD; fd++)
                r = give_directory(open_tree(fd, "", AT_EMPTY_PATH | OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC),
                                   fd, 0,
                                   /* writable= */ fd != LKG_ENGINE_SOURCE_FD);
        return r;
}

/*
 * Opens the source again with the mounts below it (a volume with drop-ins), now that the view is not among
 * them. Skipped if the path leads to another directory by now.
 */
static int give_mounts_of_source(const char *source_path)
{
        LKG_CLEANUP(lkg_closep)
        int tree = open_tree(AT_FDCWD, source_path,
                             OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_RECURSIVE | AT_NO_AUTOMOUNT);
        struct stat now, then;

        if (tree < 0 || fstat(tree, &now) < 0 || fstat(LKG_ENGINE_SOURCE_FD, &then) < 0 ||
            now.st_dev != then.st_dev || now.st_ino != then.st_ino)
                return 0;
        return give_directory(LKG_STEAL_FD(tree), LKG_ENGINE_SOURCE_FD, AT_RECURSIVE, /* writable= */ false);
}

/* ---- the user that it runs as: docs/decisions/026 ---- */

#define DEPTH_MAX   16u
#define ENTRIES_MAX (1u << 20)
#define ID_TEXT     16
/*
 * The user that the directory was handed over to. Only a process with CAP_SYS_ADMIN can write this
 * attribute; the owner cannot.
 */
#define OWNER_ATTRIBUTE "trusted.lkgfs.engine"

bool lkg_may_change_user(void)
{
        static const int needed[] = { CAP_SETUID, CAP_SETGID, CAP_CHOWN, CAP_DAC_READ_SEARCH };

        for (size_t i = 0; i < LKG_ARRAY_SIZE(needed); i++)
                if (!lkg_has_capability(needed[i]))
                        return false;
        return true;
}

bool lkg_asks_elsewhere(int directory)
{
        struct lkg_mount mount;

        return lkg_mounts_of(directory, &mount) == 1 && lkg_mount_asks_elsewhere(&mount);
}

/* ---- the owner of a directory ---- */

bool lkg_engine_owns(int fd, uid_t owner, const struct lkg_settings *settings)
{
        char text[ID_TEXT] = "", before[ID_TEXT];

        if (owner == 0 || !settings || owner == settings->engine_uid)
                return owner == 0 || settings;
        (void)snprintf(before, sizeof(before), "%u", (unsigned)owner);
        return fgetxattr(fd, OWNER_ATTRIBUTE, text, sizeof(text) - 1) > 0 && strcmp(text, before) == 0;
}

/* A file system without such attributes: then the next start accepts only root and the current user as owners. */
static void note_owner(int top, const struct lkg_account *account)
{
        char text[ID_TEXT];
        int n = snprintf(text, sizeof(text), "%u", (unsigned)account->uid);

        if (account->uid == 0)
                (void)fremovexattr(top, OWNER_ATTRIBUTE);
        else
                (void)fsetxattr(top, OWNER_ATTRIBUTE, text, (size_t)n, 0);
}

/* ---- handing over ---- */

struct owner_walk {
        const struct lkg_account *account;
        uid_t before; /* owner of the top directory */
        bool whole;
        unsigned n_left;
        int r; /* the first failure */
};

static void failed(struct owner_walk *w, int r)
{
        if (w->r == 0 && r != -EROFS && r != -ENOENT)
                w->r = r;
}

static bool stays_ours(const char *name)
{
        size_t size = strlen(name);

        /* Including temporary files of records that are being written. */
        return lkg_is_tmp_name(name) || strcmp(name, "lock") == 0 ||
               (size > 4 && strcmp(name + size - 4, ".pid") == 0) ||
               strncmp(name, LKG_PUBLICATION_PINNED, strlen(LKG_PUBLICATION_PINNED)) == 0;
}

/*
 * If the file has another name elsewhere (a hard link), the hand-over would give that file away, too. The
 * engine's own files can only be linked where the engine writes.
 */
static bool may_hand_over(const struct owner_walk *w, const struct stat *st)
{
        return S_ISDIR(st->st_mode) ||
               (S_ISREG(st->st_mode) && (st->st_nlink == 1 || (st->st_uid != 0 && st->st_uid == w->before)));
}

static void give(struct owner_walk *w, int fd, const struct stat *st)
{
        if (st->st_uid == w->account->uid && st->st_gid == w->account->gid)
                return;
        if (fchownat(fd, "", w->account->uid, w->account->gid, AT_EMPTY_PATH) < 0)
                failed(w, -errno);
}

static void walk_directory(struct owner_walk *w, int dirfd, unsigned depth);

static void walk_entry(struct owner_walk *w, int dirfd, const char *name, unsigned depth)
{
        struct open_how how = {
                .flags = O_PATH | O_NOFOLLOW | O_CLOEXEC,
                .resolve = RESOLVE_BENEATH | RESOLVE_NO_XDEV | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS,
        };
        LKG_CLEANUP(lkg_closep) int fd = (int)syscall(SYS_openat2, dirfd, name, &how, sizeof(how));
        struct stat st;

        if (fd < 0 && errno != ELOOP && errno != EXDEV) /* a symlink or another mount: not ours */
                failed(w, -errno);
        if (fd < 0 || fstat(fd, &st) < 0 || !may_hand_over(w, &st))
                return;
        if (S_ISDIR(st.st_mode) && w->whole)
                walk_directory(w, fd, depth + 1);
        give(w, fd, &st);
}

/* @dirfd may be an O_PATH descriptor. */
static void walk_directory(struct owner_walk *w, int dirfd, unsigned depth)
{
        LKG_CLEANUP(lkg_dir_closep) DIR *dir = depth < DEPTH_MAX ? lkg_dir_open(dirfd, ".") : NULL;
        const struct dirent *entry;

        if (!dir) {
                failed(w, depth < DEPTH_MAX ? -errno : -ELOOP);
                return;
        }
        while (w->n_left > 0 && (entry = lkg_dir_next(dir, NULL))) {
                if (depth == 0 && stays_ours(entry->d_name))
                        continue;
                w->n_left--;
                walk_entry(w, dirfd, entry->d_name, depth);
        }
}

/* ---- all ---- */

int lkg_engine_begin(const struct lkg_supervisor *s)
{
        /* otherwise it inherits our OOM protection; a failure does not matter */
        (void)lkg_set_oom_score("0");
        return give_directories();
}

/* In this process, because a disk may be slow. The engine reports later what could not be handed over. */
static void hand_over(const struct lkg_account *account, bool whole)
{
        static const struct {
                int fd;
                const char *name;
        } directories[] = { { LKG_ENGINE_RUNTIME_FD, "runtime" }, { LKG_ENGINE_STATE_FD, "state" } };

        for (size_t i = 0; i < LKG_ARRAY_SIZE(directories); i++) {
                struct owner_walk w = { .account = account, .whole = whole, .n_left = ENTRIES_MAX };
                int top = directories[i].fd;
                struct stat st;

                if (fstat(top, &st) == 0) {
                        w.before = st.st_uid;
                        walk_directory(&w, top, 0);
                        give(&w, top, &st); /* last: shows that the hand-over is complete */
                        note_owner(top, account);
                } else {
                        failed(&w, -errno);
                }
                if (w.r < 0)
                        (void)dprintf(STDERR_FILENO, "hand the %s directory to user %u: %s\n",
                                      directories[i].name, (unsigned)account->uid, strerror(-w.r));
        }
}

int lkg_engine_setup(const struct lkg_supervisor *s)
{
        int r;

        hand_over(&s->engine.account, !s->engine.handed_over);
        r = lkg_hide_view(s->mount_point);
        if (r == 0)
                r = give_mounts_of_source(s->source.path);
        return r != 0 ? r : make_read_only();
}
