/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lkgfs-notify: does harmless operations on files of the view, so that the kernel wakes their watchers.
 *
 * A separate process without the device: it may wait for the file server (every call here does), and it can be killed at any
 * time; its successor goes on from the shared memory. One thread touches the view: the file server knows it by its process id.
 *
 * Announcing a publication (docs/specification.md 2.6): for every inode of an older generation that is still in use, and then
 * for each view file, set the modification time (IN_MODIFY) and open it for writing and close it (IN_CLOSE_WRITE). Afterwards
 * the names of the old inodes are made to fail, so that the kernel can forget them.
 *
 * Usage, by lkgfsd only: lkgfs-notify --root-fd N --shared-fd N --supervisor-fd N
 */
#include <dirent.h>
#include <fcntl.h>
#include <getopt.h>
#include <linux/capability.h>
#include <linux/futex.h>
#include <linux/openat2.h>
#include <poll.h>
#include <pthread.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sysexits.h>

#include <lkg/file.h>
#include <lkg/landlock.h>
#include <lkg/log.h>
#include <lkg/privilege.h>
#include <lkg/shared.h>
#include <lkg/syscalls.h>

#define DOOR ".lv"

static struct lkg_shared *shm;
static int root = -EBADF, shared = -EBADF, supervisor = -EBADF;

/* The supervisor ended: its successor starts its own notifier. */
static void *wait_for_end(void *arg)
{
        struct pollfd fd = { .fd = supervisor, .events = POLLIN };

        for (;;) {
                char c;

                (void)poll(&fd, 1, -1);
                if ((fd.revents & (POLLHUP | POLLERR | POLLNVAL)) ||
                    ((fd.revents & POLLIN) && read(supervisor, &c, 1) == 0))
                        _exit(EX_OK);
        }
        return arg;
}

/* MODIFY, then CLOSE_WRITE, for the inode and for its directory. O_NONBLOCK: whatever it is by now, do not wait. */
static void touch(int dir, const char *name)
{
        const struct timespec times[2] = { { .tv_nsec = UTIME_OMIT }, { .tv_nsec = UTIME_NOW } };
        int fd;

        atomic_fetch_add(&shm->notifier_steps, 1);
        (void)utimensat(dir, name, times, AT_SYMLINK_NOFOLLOW);
        fd = openat(dir, name, O_WRONLY | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC);
        lkg_close(fd);
}

static void for_each_door(int dir, void (*what)(int dir, const char *name))
{
        int fd = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        DIR *stream = fd < 0 ? NULL : fdopendir(fd);
        const struct dirent *d;

        if (!stream) {
                lkg_close(fd);
                return;
        }
        while ((d = readdir(stream)))
                if (d->d_name[0] != '.')
                        what(dir, d->d_name);
        (void)closedir(stream);
}

/* A failing lookup makes the kernel drop the name, and with it its hold on the inode. */
static void look(int dir, const char *name)
{
        struct stat st;

        atomic_fetch_add(&shm->notifier_steps, 1);
        (void)fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW);
}

/* A file server that was taken over can change this memory at any time. */
static bool take_name(const char *from, char *name, size_t size)
{
        memcpy(name, from, size);
        name[size - 1] = '\0';
        return lkg_bare_name_ok(name);
}

static void announce(uint64_t publication)
{
        int door = openat(root, DOOR, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        uint32_t n = atomic_load(&shm->n_view_names);

        atomic_store(&shm->lv_closing, 0);
        if (door >= 0)
                for_each_door(door, touch);
        for (uint32_t i = 0; i < n && i < LKG_VIEW_NAMES; i++) {
                char name[sizeof(shm->view_names[i])];

                if (take_name(shm->view_names[i], name, sizeof(name)))
                        touch(root, name);
        }
        if (door >= 0) {
                atomic_store(&shm->lv_closing, 1);
                for_each_door(door, look);
                atomic_store(&shm->lv_closing, 0);
                lkg_close(door);
        }
        atomic_store(&shm->wake_done, publication);
}

static int make(int dir, const char *name, uint32_t type)
{
        if (S_ISDIR(type))
                return mkdirat(dir, name, 0700);
        if (S_ISLNK(type))
                return symlinkat("relayed", dir, name);
        return mknodat(dir, name, (type & S_IFMT) | 0600, 0);
}

/* Below the view's root and nowhere else: a name on the way may have become a link by now. */
static int open_inside(const char *path)
{
        struct open_how how = {
                .flags = O_PATH | O_DIRECTORY | O_CLOEXEC,
                .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_XDEV,
        };

        return (int)syscall(SYS_openat2, root, *path ? path : ".", &how, sizeof(how));
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
                return; /* the directory is gone: it has no watchers any more */
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
        uint32_t tail = atomic_load(&shm->relay_tail);

        if (tail == atomic_load_explicit(&shm->relay_head, memory_order_acquire))
                return false;
        atomic_store(&shm->relay_done, 0);
        atomic_store(&shm->relay_active, 1);
        carry_out(&shm->relay[tail % LKG_RELAY_JOBS]);
        atomic_store(&shm->relay_active, 0);
        atomic_store(&shm->relay_tail, tail + 1);
        return true;
}

static bool work(void)
{
        uint64_t wanted = atomic_load(&shm->wake_wanted);
        bool busy = false;

        if (wanted != atomic_load(&shm->wake_done)) {
                announce(wanted);
                busy = true;
        }
        if (atomic_exchange(&shm->root_changed, 0)) {
                struct stat st;

                (void)fstatat(root, "", &st, AT_EMPTY_PATH);
                busy = true;
        }
        return relay_one() || busy;
}

/*
 * As root it touches files of others through the view, and nothing else. Landlock limits it to the view (except for times); without
 * Landlock in the kernel it runs all the same.
 */
static int confine(struct lkg_error *err)
{
        static const int capabilities[] = { CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH, CAP_FOWNER, -1 };
        static const int allowed[] = { SYS_utimensat, SYS_mkdirat, SYS_mknodat, SYS_symlinkat,
                                       SYS_unlinkat };
        const struct lkg_syscall_policy policy = {
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
        pthread_t thread;
        int c;

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
        shm = lkg_shared_map(shared);
        if (!shm) {
                lkg_log_error("map the shared memory: %m");
                return EX_SOFTWARE;
        }
        shm->notifier.start_time = lkg_process_start_time(getpid());
        atomic_store(&shm->notifier.pid, getpid());
        if (confine(&err) < 0) {
                lkg_log_error("%s", err.message);
                return EX_OSERR;
        }
        if (pthread_create(&thread, NULL, wait_for_end, NULL) != 0)
                return EX_OSERR;
        for (;;) {
                uint32_t bell = atomic_load(&shm->bell);

                if (!work())
                        (void)syscall(SYS_futex, &shm->bell, FUTEX_WAIT, bell, NULL, NULL, 0);
        }
}
