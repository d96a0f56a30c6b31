/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A FUSE connection before it is visible: the device, a superblock that is mounted nowhere yet, the shared
 * memory, and the handshake. The supervisor answers FUSE_INIT itself, because a file server that is killed during
 * the handshake could not be replaced: the kernel sends FUSE_INIT only once.
 */
#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/sysmacros.h>

#include <lkg/base.h>
#include <lkg/publication.h>

#include "supervisor.h"

#define INIT_LIMIT_NS    (5 * LKG_NSEC_PER_SEC)
#define INIT_READ_BUFFER FUSE_MIN_READ_BUFFER /* smaller buffers fail with EINVAL */

static int open_device(struct lkg_connection *c, struct lkg_error *err)
{
        int fd = open("/dev/fuse", O_RDWR | O_CLOEXEC);

        if (fd < 0 && (errno == ENOENT || errno == ENXIO || errno == ENODEV))
                return lkg_fail(err, EX_UNAVAILABLE, errno,
                                "/dev/fuse is missing: load the kernel module with `modprobe fuse`");
        if (fd < 0 && (errno == EPERM || errno == EACCES))
                return lkg_fail(err, EX_NOPERM, errno,
                                "/dev/fuse may not be opened (a container needs it in its device list)");
        fd = fd < 0 ? -errno : lkg_lift_fd(fd);
        if (fd < 0)
                return lkg_fail(err, EX_UNAVAILABLE, -fd, "open /dev/fuse");
        c->device = fd;
        return 0;
}

int lkg_shared_claim(const struct lkg_supervisor *s, struct lkg_shared *shared, struct lkg_error *err)
{
        ino_t mount_namespace = lkg_process_namespace((int)getpid(), "mnt");

        if (mount_namespace == 0)
                return lkg_fail(err, EX_OSERR, errno, "our own mount namespace, /proc/self/ns/mnt");
        atomic_store(&shared->foreign_writes, s->settings->foreign_writes);
        atomic_store(&shared->mount_namespace, mount_namespace);
        shared->supervisor.start_time = lkg_process_start_time((int)getpid());
        atomic_store(&shared->supervisor.pid, (int)getpid());
        return 0;
}

static int open_shared(struct lkg_supervisor *s, struct lkg_connection *c, struct lkg_error *err)
{
        int fd = memfd_create("lkgfs", MFD_CLOEXEC | MFD_ALLOW_SEALING);
        void *p;

        fd = fd < 0 ? -errno : lkg_lift_fd(fd);
        if (fd < 0)
                return lkg_fail(err, EX_OSERR, -fd, "shared memory");
        c->shared_fd = fd;
        /* A compromised file server must not kill the others by truncating the memory. */
        if (ftruncate(fd, sizeof(*c->shared)) < 0 ||
            fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) < 0)
                return lkg_fail(err, EX_OSERR, errno, "shared memory");
        p = mmap(NULL, sizeof(*c->shared), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        if (p == MAP_FAILED)
                return lkg_fail(err, EX_OSERR, errno, "shared memory");
        c->shared = p;
        (void)snprintf(c->shared->mount_point, sizeof(c->shared->mount_point), "%s", s->mount_point);
        c->shared->magic = LKG_SHARED_MAGIC;
        return lkg_shared_claim(s, c->shared, err);
}

/* Explains the common reasons why the mount calls fail. */
static int mount_failed(const char *call, struct lkg_error *err)
{
        if (errno == ENOSYS)
                return lkg_fail(err, EX_UNAVAILABLE, 0,
                                "this kernel has no %s(2); lkgfs needs Linux 5.15 or later.", call);
        if (errno == ENODEV)
                return lkg_fail(err, EX_UNAVAILABLE, 0,
                                "this kernel does not know the file system type fuse; load it with "
                                "`modprobe fuse`.");
        if (errno == EPERM || errno == EACCES)
                return lkg_fail(err, EX_NOPERM, errno, "%s: mounting is not permitted here", call);
        return lkg_fail(err, EX_UNAVAILABLE, errno, "%s", call);
}

/*
 * The kernel asks for the attributes of the root directory before the first access, but ignores the answer
 * if they were invalidated meanwhile, as each publication does. Then the mode that the file system was
 * mounted with applies; without permissions in it, a user would be refused once, right after the start.
 * Owner and group are 0 until then, so the group gets the permissions of others.
 *
 * Source: fs/fuse/dir.c, fuse_permission(); fs/fuse/inode.c, fuse_change_attributes().
 */
static uint32_t root_mode(const struct lkg_supervisor *s)
{
        struct statx x;

        if (s->source.fd < 0 ||
            statx(s->source.fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_MODE, &x) < 0)
                return S_IFDIR;
        return S_IFDIR | (x.stx_mode & (S_IRWXU | S_IRWXO | S_ISVTX)) | (x.stx_mode & S_IRWXO) << 3;
}

static int make_superblock(const struct lkg_supervisor *s, struct lkg_connection *c, struct lkg_error *err)
{
        LKG_CLEANUP(lkg_closep) int fs = fsopen("fuse", FSOPEN_CLOEXEC);
        char number[16], mode[16];
        const struct {
                const char *key, *value;
        } options[] = {
                { "source", "lkgfs" },   { "subtype", "lkgfs" },
                { "fd", number },        { "rootmode", mode },
                { "user_id", "0" },      { "group_id", "0" },
                { "allow_other", NULL }, { "default_permissions", NULL },
        };
        int fd;

        if (fs < 0)
                return mount_failed("fsopen", err);
        (void)snprintf(number, sizeof(number), "%d", c->device);
        (void)snprintf(mode, sizeof(mode), "%o", root_mode(s));
        for (size_t i = 0; i < LKG_ARRAY_SIZE(options); i++)
                if (fsconfig(fs, options[i].value ? FSCONFIG_SET_STRING : FSCONFIG_SET_FLAG, options[i].key,
                             options[i].value, 0) < 0)
                        return mount_failed("fsconfig", err);
        if (fsconfig(fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0)
                return mount_failed("fsconfig", err);
        fd = fsmount(fs, FSMOUNT_CLOEXEC, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV);
        if (fd < 0)
                return mount_failed("fsmount", err);
        fd = lkg_lift_fd(fd);
        if (fd < 0)
                return lkg_fail(err, EX_OSERR, -fd, "fsmount");
        c->mount_fd = fd;
        return 0;
}

static int read_init(struct lkg_connection *c, struct lkg_error *err)
{
        _Alignas(8) char buf[INIT_READ_BUFFER];
        const struct fuse_in_header *header = (const void *)buf;
        struct pollfd p = { .fd = c->device, .events = POLLIN };
        ssize_t n;
        int r;

        do
                r = poll(&p, 1, INIT_LIMIT_NS / LKG_NSEC_PER_MSEC);
        while (r < 0 && errno == EINTR);
        if (r <= 0)
                return lkg_fail(err, EX_UNAVAILABLE, r < 0 ? errno : ETIMEDOUT, "wait for FUSE_INIT");
        n = read(c->device, buf, sizeof(buf));
        if (n < 0)
                return lkg_fail(err, EX_UNAVAILABLE, errno, "read FUSE_INIT");
        if ((size_t)n < sizeof(*header) || header->opcode != FUSE_INIT || header->len != (uint32_t)n ||
            (size_t)n > sizeof(c->shared->init.request))
                return lkg_fail(err, EX_SOFTWARE, 0,
                                "the kernel's first request is not a FUSE_INIT we know.");
        memcpy(c->shared->init.request, buf, (size_t)n);
        c->shared->init.request_size = (uint32_t)n;
        return 0;
}

int lkg_connection_open(struct lkg_supervisor *s, struct lkg_connection *ret, struct lkg_error *err)
{
        int r;

        lkg_connection_init(ret);
        r = open_device(ret, err);
        if (r == 0)
                r = open_shared(s, ret, err);
        if (r == 0)
                r = make_superblock(s, ret, err);
        if (r != 0)
                lkg_connection_close(ret);
        return r;
}

int lkg_connection_handshake(struct lkg_connection *c, struct lkg_error *err)
{
        struct lkg_shared *shared = c->shared;
        int r = read_init(c, err);
        ssize_t n;

        if (r != 0)
                return r;
        shared->init.reply_size =
                lkg_init_answer(shared->init.request, shared->init.request_size, shared->init.reply);
        if (shared->init.reply_size == 0)
                return lkg_fail(err, EX_SOFTWARE, 0, "this kernel's FUSE protocol is not one we know.");
        n = write(c->device, shared->init.reply, shared->init.reply_size);
        if (n != (ssize_t)shared->init.reply_size)
                return lkg_fail(err, EX_SOFTWARE, n < 0 ? errno : 0,
                                "the kernel refuses our answer to FUSE_INIT");
        return 0;
}

void lkg_connection_init(struct lkg_connection *c)
{
        *c = (struct lkg_connection){
                .device = -EBADF, .shared_fd = -EBADF, .mount_fd = -EBADF, .view_fd = -EBADF
        };
}

void lkg_connection_close(struct lkg_connection *c)
{
        if (c->shared)
                (void)munmap(c->shared, sizeof(*c->shared));
        lkg_kept_drop(c, 0);
        lkg_close(c->view_fd);
        lkg_close(c->mount_fd);
        lkg_close(c->shared_fd);
        lkg_close(c->device);
        lkg_connection_init(c);
}

bool lkg_connection_dead(const struct lkg_connection *c)
{
        struct pollfd p = { .fd = c->device, .events = 0 };

        return poll(&p, 1, 0) > 0 && (p.revents & (POLLERR | POLLHUP | POLLNVAL));
}

/* ---- background requests ---- */

/*
 * For the kernel, page reads and closes are background requests, and it sends no more of them while
 * max_background of FUSE_INIT (32) are unanswered: 32 reads of a dead file system below the source directory
 * would block those of the view. The file server itself limits waiting requests (fs/server/requests.h),
 * so the kernel's limit is lifted.
 *
 * This is not done in the answer to FUSE_INIT, which must not change: a build takes over a connection of an
 * earlier build only if it would answer the same. The control file system is used without being mounted
 * anywhere.
 */

static int open_control(void)
{
        LKG_CLEANUP(lkg_closep) int context = fsopen("fusectl", FSOPEN_CLOEXEC);

        if (context < 0 || fsconfig(context, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0)
                return -errno;
        context = lkg_lift_fd(LKG_STEAL_FD(context));
        if (context < 0)
                return context;
        return lkg_lift_fd(fsmount(context, FSMOUNT_CLOEXEC, 0));
}

static int set_limit(int control, unsigned number, const char *name)
{
        static const char most[] = "65535";
        LKG_CLEANUP(lkg_closep) int fd = -EBADF;
        char path[64];

        (void)snprintf(path, sizeof(path), "%u/%s", number, name);
        fd = openat(control, path, O_WRONLY | O_CLOEXEC);
        return fd < 0 || write(fd, most, sizeof(most) - 1) < 0 ? -errno : 0;
}

/* Repeating this is harmless: an adopted connection may be one of an earlier build. */
void lkg_connection_lift_limit(struct lkg_supervisor *s)
{
        LKG_CLEANUP(lkg_closep) int control = open_control();
        struct statx x;
        int r = control;

        if (r >= 0) /* the number of a connection is that of its device; reading it needs no request */
                r = statx(s->connection.view_fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, 0, &x) < 0 ? -errno
                                                                                                    : 0;
        if (r >= 0)
                r = set_limit(control, makedev(x.stx_dev_major, x.stx_dev_minor), "max_background");
        if (r >= 0)
                r = set_limit(control, makedev(x.stx_dev_major, x.stx_dev_minor), "congestion_threshold");
        if (r < 0)
                lkg_log_notice("the limit of requests in the background stays: %s; a dead file system below "
                               "the source directory can delay reads of the view",
                               strerror(-r));
}
