/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lkgfs-notify: performs harmless operations on files of the view, so that the kernel wakes their watchers.
 *
 * A separate process without the device: it may wait for the file server (every call here does), and it can
 * be killed at any time; its successor continues from the shared memory. It has one thread, which the file
 * server recognises by its pid: its requests change nothing in the source directory.
 *
 * Announcing a publication (docs/specification.md 2.6): for every inode of an older generation that is still in use, and then
 * for each view file, open it for writing, set the modification time (IN_MODIFY) and close it (IN_CLOSE_WRITE). The
 * names of the old inodes are made to fail, so that the kernel can forget them.
 *
 * Usage, by lkgfsd only: lkgfs-notify --root-fd N --shared-fd N --supervisor-fd N
 */
#include <fcntl.h>
#include <getopt.h>
#include <linux/capability.h>
#include <linux/futex.h>
#include <linux/openat2.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sysexits.h>

#include <lkg/file.h>
#include <lkg/process.h>
#include <lkg/base.h>
#include <lkg/shared.h>

#define DOOR ".lv"

static struct lkg_notify *notify;
static int root = -EBADF, shared = -EBADF, supervisor = -EBADF;

/*
 * The supervisor ended: its successor starts its own notifier. The kernel then sends SIGIO, which kills the
 * process even in a call that waits for the file server. There is no second thread for this: the file server
 * would not recognise it, and it could do everything that root may.
 */
static int end_with_supervisor(void)
{
        struct pollfd now = { .fd = supervisor, .events = POLLIN };

        if (fcntl(supervisor, F_SETOWN, getpid()) < 0 ||
            fcntl(supervisor, F_SETFL, O_NONBLOCK | O_ASYNC) < 0)
                return -errno;
        return poll(&now, 1, 0) > 0 ? -ECONNRESET : 0; /* it has already ended; it never sends anything */
}

/*
 * It maps only its own pages of the shared memory: the others hold data that callers wrote, and their
 * rights.
 * Return: 0 or -errno.
 */
static int map_ours(void)
{
        struct lkg_shared *shm = lkg_shared_map(shared);

        if (!shm)
                return -errno;
        notify = mmap(NULL, LKG_NOTIFY_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, shared,
                      (off_t)offsetof(struct lkg_shared, notify));
        if (notify == MAP_FAILED)
                return -errno;
        shm->notifier.start_time = lkg_process_start_time(getpid());
        atomic_store(&shm->notifier.pid, getpid());
        (void)munmap(shm, sizeof(*shm));
        shared = lkg_close(shared);
        return 0;
}

/*
 * MODIFY, then CLOSE_WRITE, for the inode and for its directory. O_NONBLOCK: do not wait, whatever the file
 * has become; what cannot be opened (a symlink, a FIFO) is only modified.
 */
static void touch(int dir, const char *name)
{
        const struct timespec times[2] = { { .tv_nsec = UTIME_OMIT }, { .tv_nsec = UTIME_NOW } };
        int fd;

        atomic_fetch_add(&notify->steps, 1);
        fd = openat(dir, name, O_WRONLY | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC);
        if (fd < 0)
                (void)utimensat(dir, name, times, AT_SYMLINK_NOFOLLOW);
        else
                (void)futimens(fd, times);
        lkg_close(fd);
}

/* A failing lookup makes the kernel drop the name, and with it its hold on the inode. */
static void let_go(int dir, const char *name)
{
        struct stat st;

        atomic_fetch_add(&notify->steps, 1);
        atomic_store(&notify->lv_closing, 1);
        (void)fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW);
        atomic_store(&notify->lv_closing, 0);
}

/* The inodes of older generations that are still in use. */
static void touch_doors(void)
{
        LKG_CLEANUP(lkg_dir_closep) DIR *dir = lkg_dir_open(root, DOOR);
        const struct dirent *d;

        while (dir && (d = lkg_dir_next(dir, NULL))) {
                touch(dirfd(dir), d->d_name);
                let_go(dirfd(dir), d->d_name);
        }
}

/* Only below the view's root: a name on the path may have become a symlink. */
static int open_inside(const char *path)
{
        struct open_how how = {
                .flags = O_PATH | O_DIRECTORY | O_CLOEXEC,
                .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_XDEV,
        };

        return (int)syscall(SYS_openat2, root, *path ? path : ".", &how, sizeof(how));
}

/* A compromised file server can change this memory at any time. */
static bool take_name(const char *from, char *name, size_t size)
{
        memcpy(name, from, size);
        name[size - 1] = '\0';
        return lkg_bare_name_ok(name);
}

/* A file of the view, or of a directory of it. */
static void touch_view(const char *from, size_t size)
{
        char path[sizeof(notify->view_names[0])];
        char *slash;
        int dir = root;

        memcpy(path, from, size);
        path[size - 1] = '\0';
        slash = strrchr(path, '/');
        if (slash) {
                *slash = '\0';
                dir = open_inside(path);
        }
        if (dir >= 0 && lkg_bare_name_ok(slash ? slash + 1 : path))
                touch(dir, slash ? slash + 1 : path);
        if (dir != root && dir >= 0)
                (void)close(dir);
}

static void announce(uint64_t publication)
{
        uint32_t n = atomic_load(&notify->n_view_names);

        atomic_store(&notify->lv_closing, 0); /* a predecessor may have ended in between */
        touch_doors();
        for (uint32_t i = 0; i < n && i < LKG_VIEW_NAMES; i++)
                touch_view(notify->view_names[i], sizeof(notify->view_names[i]));
        atomic_store(&notify->wake_done, publication);
}

static int make(int dir, const char *name, uint32_t type)
{
        if (S_ISDIR(type))
                return mkdirat(dir, name, 0700);
        if (S_ISLNK(type))
                return symlinkat("relayed", dir, name);
        return mknodat(dir, name, (type & S_IFMT) | 0600, 0);
}

static void carry_out(const struct lkg_relay_job *job)
{
        char path[sizeof(job->path)], name[sizeof(job->name)];
        uint32_t type = job->type;
        int dir;

        memcpy(path, job->path, sizeof(path));
        path[sizeof(path) - 1] = '\0';
        dir = take_name(job->name, name, sizeof(name)) ? open_inside(path) : -EINVAL;
        if (dir < 0)
                return; /* the directory is gone, and its watchers with it */
        switch ((enum lkg_relay_op)job->op) {
        case LKG_RELAY_NONE:
                break;
        case LKG_RELAY_CREATED:
                (void)make(dir, name, type);
                break;
        case LKG_RELAY_MODIFIED:
                touch(dir, name);
                break;
        case LKG_RELAY_REMOVED:
                (void)unlinkat(dir, name, S_ISDIR(type) ? AT_REMOVEDIR : 0);
                break;
        }
        lkg_close(dir);
}

static bool relay_one(void)
{
        uint32_t tail = atomic_load(&notify->relay_tail);

        if (tail == atomic_load_explicit(&notify->relay_head, memory_order_acquire))
                return false;
        atomic_store(&notify->relay_done, 0);
        atomic_store(&notify->relay_active, 1);
        carry_out(&notify->relay[tail % LKG_RELAY_JOBS]);
        atomic_store(&notify->relay_active, 0);
        atomic_store(&notify->relay_tail, tail + 1);
        return true;
}

static bool work(void)
{
        uint64_t wanted = atomic_load(&notify->wake_wanted);
        bool busy = false;

        if (wanted != atomic_load(&notify->wake_done)) {
                announce(wanted);
                busy = true;
        }
        if (atomic_exchange(&notify->root_changed, 0)) {
                struct stat st;

                (void)fstatat(root, "", &st, AT_EMPTY_PATH);
                busy = true;
        }
        return relay_one() || busy;
}

/*
 * As root it touches files of other users through the view, and nothing else. Landlock limits it to the view
 * (except for timestamps); it also runs on a kernel without Landlock.
 */
static int confine(struct lkg_error *err)
{
        static const int capabilities[] = { CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH, CAP_FOWNER, -1 };
        static const int allowed[] = { SYS_utimensat, SYS_mkdirat, SYS_mknodat, SYS_symlinkat,
                                       SYS_unlinkat };
        /* One thread: requests of a second one would look like those of any root process. */
        static const struct lkg_syscall_argument arguments[] = {
                { SYS_clone, 0, true, false, 0, { 0 }, EPERM }
        };
        const struct lkg_syscall_policy policy = {
                .arguments = arguments,
                .n_arguments = LKG_ARRAY_SIZE(arguments),
                .allowed = allowed,
                .n_allowed = LKG_ARRAY_SIZE(allowed),
        };

        if (!LKG_SANITIZED && lkg_landlock_enter(&root, 1, true, err) < 0)
                lkg_log_warning("%s", err->message);
        return lkg_confine(capabilities, &policy, err);
}

int main(int argc, char **argv)
{
        static const struct option options[] = {
                { "root-fd", required_argument, NULL, 'r' },
                { "shared-fd", required_argument, NULL, 'm' },
                { "supervisor-fd", required_argument, NULL, 'p' },
                { 0 },
        };
        struct lkg_error err = { 0 };
        int c, r;

        while ((c = getopt_long(argc, argv, "", options, NULL)) >= 0) {
                int *fd = c == 'r' ? &root : c == 'm' ? &shared : c == 'p' ? &supervisor : NULL;

                if (fd)
                        *fd = (int)strtol(optarg, NULL, 10);
        }
        lkg_log_init("lkgfs-notify", LOG_INFO);
        lkg_log_for_supervisor(NULL);
        (void)prctl(PR_SET_NAME, "lkgfs-notify");
        (void)prctl(PR_SET_DUMPABLE, 0);
        if (root < 0 || shared < 0 || supervisor < 0) {
                (void)fprintf(stderr, "lkgfs-notify: started by lkgfsd, see lkgfsd(8)\n");
                return EX_USAGE;
        }
        r = map_ours();
        if (r < 0) {
                lkg_log_error("map the shared memory: %s", strerror(-r));
                return EX_SOFTWARE;
        }
        if (end_with_supervisor() < 0)
                return EX_OK;
        if (confine(&err) < 0) {
                lkg_log_error("%s", err.message);
                return EX_OSERR;
        }
        for (;;) {
                uint32_t bell = atomic_load(&notify->bell);

                if (!work())
                        (void)syscall(SYS_futex, &notify->bell, FUTEX_WAIT, bell, NULL, NULL, 0);
        }
}
