/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sets up the process that becomes an engine: its own mount namespace in which the view does not exist, with
 * its directories as separate mounts.
 */
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>

#include "engine-user.h"
#include "supervisor.h"

static int complain(const char *what)
{
        (void)dprintf(STDERR_FILENO, "namespace without the view: %s: %s\n", what, strerror(errno));
        return EX_OSERR;
}

/*
 * Two engines at once would delete each other's publications, so a successor must know every engine that
 * runs. A supervisor that is killed between fork and record could not record it: so the child records
 * itself, and dies with its parent until it has.
 */
static int record_self(const struct lkg_engine_setup *setup)
{
        struct lkg_process *process = &setup->shared->engine;

        if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) < 0)
                return complain("prctl");
        if (getppid() != setup->parent)
                return EX_UNAVAILABLE;
        process->start_time = lkg_process_start_time((int)getpid());
        atomic_store(&process->pid, (int)getpid());
        lkg_recorded_note(setup->supervisor, LKG_CHILD_ENGINE, (int)getpid(), process->start_time);
        return prctl(PR_SET_PDEATHSIG, 0, 0, 0, 0) < 0 ? complain("prctl") : 0;
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
        static const struct {
                int fd;
                bool writable;
        } directories[] = { { LKG_ENGINE_SOURCE_FD, false },
                            { LKG_ENGINE_RUNTIME_FD, true },
                            { LKG_ENGINE_STATE_FD, true } };
        int r = 0;

        for (size_t i = 0; r == 0 && i < LKG_ARRAY_SIZE(directories); i++) {
                int fd = directories[i].fd;

                r = give_directory(open_tree(fd, "", AT_EMPTY_PATH | OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC),
                                   fd, 0, directories[i].writable);
        }
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

/* They run in the child, one after the other. @userdata: struct lkg_engine_setup. */
int lkg_engine_begin(const void *userdata)
{
        int r = record_self(userdata);

        if (r != 0)
                return r;
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
                int r = lkg_engine_hand_over(directories[i].fd, account, whole);

                if (r < 0)
                        (void)dprintf(STDERR_FILENO, "hand the %s directory to user %u: %s\n",
                                      directories[i].name, (unsigned)account->uid, strerror(-r));
        }
}

int lkg_engine_prepare(const void *userdata)
{
        const struct lkg_engine_setup *setup = userdata;
        int r;

        hand_over(&setup->account, setup->hand_over_all);
        r = lkg_hide_view(setup->mount_point);

        if (r == 0)
                r = give_mounts_of_source(setup->source_path);
        return r != 0 ? r : make_read_only();
}
