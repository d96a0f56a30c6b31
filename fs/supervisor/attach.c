/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Mounts of the view and the source directory.
 *
 * Order matters. The source directory is opened before anything covers it. A superblock is attached only when a file server
 * answers, so no caller waits for a half-started view. Nothing here sends a request through the view except
 * lkg_unmount(), which runs in a helper.
 */
#include <fcntl.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <systemd/sd-daemon.h>

#include <lkg/base.h>
#include <lkg/file.h>

#include "supervisor.h"

#ifndef MOVE_MOUNT_BENEATH
#define MOVE_MOUNT_BENEATH 0x00000200 /* Linux 6.5 */
#endif

#define LISTEN_BACKLOG 8
#define STACKED_MAX    16 /* dead views stacked on each other */

/*
 * Uses the name below a descriptor, because a path may be longer than a socket address.
 * Return: a socket; -errno.
 */
static int socket_for(const struct lkg_supervisor *s, const char *name, struct sockaddr_un *ret_address)
{
        int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

        *ret_address = (struct sockaddr_un){ .sun_family = AF_UNIX };
        (void)snprintf(ret_address->sun_path, sizeof(ret_address->sun_path), "/proc/self/fd/%d/%s",
                       s->dirs.runtime, name);
        return fd < 0 ? -errno : lkg_lift_fd(fd);
}

int lkg_listen_open(struct lkg_supervisor *s, struct lkg_error *err)
{
        struct sockaddr_un address;
        int fd = socket_for(s, LKG_ENGINE_SOCKET, &address), r;
        mode_t mask;

        if (fd < 0)
                return lkg_fail(err, EX_OSERR, -fd, "socket");
        (void)unlinkat(s->dirs.runtime, LKG_ENGINE_SOCKET, 0);
        mask = umask(0177);
        r = bind(fd, (struct sockaddr *)&address, sizeof(address)) < 0 || listen(fd, LISTEN_BACKLOG) < 0
                    ? -errno
                    : 0;
        (void)umask(mask);
        if (r < 0) {
                lkg_close(fd);
                return lkg_fail(err, EX_IOERR, -r, "listen on %s/%s", s->dirs.private_path,
                                LKG_ENGINE_SOCKET);
        }
        s->dirs.listen = fd;
        return 0;
}

int lkg_private_connect(const struct lkg_supervisor *s, const char *name)
{
        struct sockaddr_un address;
        int fd = socket_for(s, name, &address), r;

        if (fd < 0)
                return fd;
        if (connect(fd, (struct sockaddr *)&address, sizeof(address)) == 0)
                return fd;
        r = -errno;
        lkg_close(fd);
        return r;
}

/*
 * A path that ends in our mount point is not followed further: it may have been replaced by a symlink
 * meanwhile.
 */
static int move(int mount_fd, const char *path, unsigned flags)
{
        return move_mount(mount_fd, "", AT_FDCWD, path, MOVE_MOUNT_F_EMPTY_PATH | flags) < 0 ? -errno : 0;
}

static void detach_stale(const struct lkg_supervisor *s)
{
        uint64_t id = 0;

        /* Only what we know to be dead: the view may have been unmounted a moment ago. */
        if (lkg_mounts_id_of(AT_FDCWD, s->mount_point, &id) < 0 || id != s->stale_id)
                return;
        if (umount2(s->mount_point, MNT_DETACH | UMOUNT_NOFOLLOW) < 0)
                lkg_log_warning("the dead view on %s cannot be detached: %s", s->mount_point,
                                strerror(errno));
}

/*
 * The dead view stays on top until the new one is beneath it, so that the underlying directory is never
 * visible. Kernels before 6.5, and some propagation trees, do not allow that: then it is unmounted first. A
 * working view (of another build, being replaced) is covered instead and unmounted together with ours
 * (uncover).
 */
static int replace_stale(const struct lkg_supervisor *s)
{
        int r = move(s->connection.mount_fd, s->mount_point, MOVE_MOUNT_BENEATH);

        if (r < 0 && s->replacing)
                return move(s->connection.mount_fd, s->mount_point, 0);
        detach_stale(s);
        return r < 0 ? move(s->connection.mount_fd, s->mount_point, 0) : 0;
}

/*
 * The directory under a dead view can be opened only after the view is unmounted. The caller attaches the
 * new view right afterwards: in between, the underlying directory is visible for some microseconds.
 */
int lkg_source_uncover(struct lkg_supervisor *s, struct lkg_error *err)
{
        int r = 0;

        for (int i = 0; r == 0 && s->stale_id != 0 && i < STACKED_MAX; i++) {
                lkg_log_notice("a dead view is mounted on %s, taking its place", s->mount_point);
                detach_stale(s);
                s->stale_id = 0;
                r = lkg_preflight_occupied(s, err); /* there may be another one below */
        }
        return r != 0 ? r : lkg_source_open(s, err);
}

int lkg_view_clone(struct lkg_supervisor *s, int mount_fd, struct lkg_error *err)
{
        int fd;

        if (mount_fd >= 0)
                fd = open_tree(mount_fd, "", OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_EMPTY_PATH);
        else
                fd = open_tree(AT_FDCWD, s->mount_point,
                               OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_NO_AUTOMOUNT);
        fd = fd < 0 ? -errno : lkg_lift_fd(fd);
        if (fd < 0)
                return lkg_fail(err, EX_UNAVAILABLE, -fd, "open_tree %s", s->mount_point);
        lkg_close(s->connection.view_fd);
        s->connection.view_fd = fd;
        return 0;
}

/*
 * What the source directory's mount forbids, the view forbids, too. Read from mountinfo and not with
 * statfs(2), which a dead file system does not answer. If the source directory is in no mount any more,
 * there are no flags to read.
 */
static int restrict_view(const struct lkg_supervisor *s)
{
        struct mount_attr attr = { 0 };
        struct lkg_mount source;
        int r = lkg_mounts_of(s->source.fd, &source);

        if (r <= 0) {
                lkg_log_warning("the mount of the source directory is not known: if it is noexec or "
                                "nosymfollow, the view is not");
                return 0;
        }
        attr.attr_set = lkg_mount_restrictions(&source);
        if (attr.attr_set == 0)
                return 0;
        return mount_setattr(s->connection.mount_fd, "", AT_EMPTY_PATH, &attr, sizeof(attr)) < 0 ? -errno
                                                                                                 : 0;
}

int lkg_attach(struct lkg_supervisor *s, struct lkg_error *err)
{
        struct lkg_connection *c = &s->connection;
        int r;

        if (c->attached)
                return 0;
        r = restrict_view(s);
        if (r < 0)
                return lkg_fail(err, EX_UNAVAILABLE, -r, "mount_setattr of the view on %s", s->mount_point);
        r = s->stale_id != 0 ? replace_stale(s) : move(c->mount_fd, s->mount_point, 0);
        if (r < 0)
                return lkg_fail(err, EX_UNAVAILABLE, -r, "mount on %s", s->mount_point);
        s->stale_id = 0;
        c->attached = true;
        r = lkg_mounts_id_of(c->mount_fd, "", &c->mount_id);
        if (r < 0)
                return lkg_fail(err, EX_UNAVAILABLE, -r, "identify the mount on %s", s->mount_point);
        return lkg_view_clone(s, c->mount_fd, err);
}

bool lkg_still_mounted(struct lkg_supervisor *s)
{
        uint64_t id = 0;

        /* The cheap check first: the mount table of a node is long and changes often. */
        if (lkg_mounts_id_of(AT_FDCWD, s->mount_point, &id) == 0 && id == s->connection.mount_id)
                return true;
        return lkg_mounts_has(s->connection.mount_id) != 0; /* cannot be read: assume that it is mounted */
}

/* Views of earlier builds that ours was mounted over. */
static void uncover(const struct lkg_supervisor *s)
{
        struct lkg_mount mount;

        for (int i = 0; i < STACKED_MAX; i++)
                if (lkg_mounts_top(s->mount_point, &mount) != 1 || !lkg_mount_is_lkgfs(&mount) ||
                    umount2(s->mount_point, MNT_DETACH | UMOUNT_NOFOLLOW) < 0)
                        return;
}

/*
 * A file server that waits for a dead file system cannot be killed and keeps the connection, so the users of
 * the view would wait forever: abort the connection, so that they get an error now.
 */
static int force_of(struct lkg_shared *shared)
{
        uint64_t now_ns = lkg_boottime_ns();

        for (size_t i = 0; i < lkg_shared_slots(shared); i++) {
                const struct lkg_slot *slot = &shared->slots[i];

                if (atomic_load(&slot->state) == LKG_SLOT_HELD &&
                    now_ns - atomic_load(&slot->since_ns) > LKG_NSEC_PER_SEC)
                        return MNT_FORCE;
        }
        return 0;
}

int lkg_unmount(void *userdata)
{
        struct lkg_supervisor *s = userdata;
        uint64_t id = 0;

        if (lkg_mounts_id_of(AT_FDCWD, s->mount_point, &id) == 0 && id != s->connection.mount_id) {
                if (lkg_mounts_has(s->connection.mount_id) == 0)
                        return 0;
                lkg_log_error("something else is mounted over the view on %s: unmount both by hand",
                              s->mount_point);
                return 2;
        }
        if (umount2(s->mount_point, UMOUNT_NOFOLLOW) == 0) {
                uncover(s);
                return 0;
        }
        if (errno == EBUSY &&
            umount2(s->mount_point, force_of(s->connection.shared) | MNT_DETACH | UMOUNT_NOFOLLOW) == 0) {
                uncover(s);
                return 1;
        }
        if (errno == EINVAL || errno == ENOENT)
                return 0; /* another process has unmounted it */
        lkg_log_error("unmount %s: %s", s->mount_point, strerror(errno));
        return 2;
}

/* ---- the source directory ---- */

/*
 * Opens the source directory at the start. It may be on a file system that does not answer (a network file
 * system without its server): an access waits in the kernel, where no signal ends it. So a separate process
 * does it, which can be left behind; it passes on what it has opened. lkgfsd reports what it waits for, can
 * be stopped, and continues when the answer arrives.
 */

#define FOR_EVER_NS (365 * 86400 * LKG_NSEC_PER_SEC) /* helpers have a limit; ours is SIGTERM */
#define TELL_NS     (3 * LKG_NSEC_PER_SEC)
#define TELL_AGAIN  60 /* repeat after this many times */
#define EXTEND_USEC "15000000"

/* In the helper: its exit status is an errno. Cached attributes of the directory do not show whether the file system works. */
static int open_source(void *userdata)
{
        const struct lkg_supervisor *s = userdata;
        int fd = open(s->source.path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        struct statx x;
        int r;

        if (fd < 0 || statx(fd, "", AT_EMPTY_PATH | AT_STATX_FORCE_SYNC, STATX_BASIC_STATS, &x) < 0)
                return errno & 0xff;
        r = lkg_handover_send(LKG_HELPER_FIRST_FD, LKG_HANDOVER_KEEP, 1, &fd, 1);
        return -r & 0xff;
}

/* The service manager would kill a start that takes too long, and start again, which waits for the same. */
static void tell(const struct lkg_supervisor *s, unsigned n)
{
        lkg_notify_status("Waiting for the source directory %s, which does not answer", s->source.path);
        (void)sd_notify(0, "EXTEND_TIMEOUT_USEC=" EXTEND_USEC);
        if (n % TELL_AGAIN == 0)
                lkg_log_warning("the source directory %s does not answer; lkgfs starts when it does",
                                s->source.path);
}

/* Return: 0, also if we are stopped meanwhile; -errno. */
static int run_until_done(struct lkg_supervisor *s, struct lkg_helper *helper)
{
        uint64_t told_ns = lkg_boottime_ns();
        unsigned n = 0;
        int r = 0;

        while (r >= 0 && lkg_helper_running(helper) && s->phase != LKG_PHASE_END) {
                r = sd_event_run(s->event, TELL_NS / 1000);
                if (lkg_helper_running(helper) && lkg_boottime_ns() - told_ns >= TELL_NS) {
                        tell(s, n++);
                        told_ns = lkg_boottime_ns();
                }
        }
        if (n > 0 && s->phase != LKG_PHASE_END)
                lkg_log_notice("the source directory %s answers", s->source.path);
        return r < 0 ? r : 0;
}

int lkg_source_open(struct lkg_supervisor *s, struct lkg_error *err)
{
        struct lkg_helper helper = { 0 };
        struct lkg_helper_work work = {
                .run = open_source, .userdata = s, .n_fds = 1, .limit_ns = FOR_EVER_NS
        };
        LKG_CLEANUP(lkg_closep) int ours = -EBADF;
        LKG_CLEANUP(lkg_closep) int theirs = -EBADF;
        struct lkg_handover message;
        int fd = -EBADF, r = lkg_channel_pair(&ours, &theirs);

        work.fds[0] = theirs;
        if (r >= 0)
                r = lkg_helper_start(&helper, s->event, &work);
        if (r >= 0)
                r = run_until_done(s, &helper);
        lkg_helper_cancel(&helper);
        if (r >= 0 && s->phase == LKG_PHASE_END)
                return 0;
        if (r >= 0 && helper.status != 0)
                r = helper.status > 0 ? -helper.status : -EIO;
        if (r >= 0)
                r = lkg_channel_take(ours, &message, &fd);
        if (r >= 0)
                r = fd < 0 ? -EBADMSG : lkg_lift_fd(fd);
        if (r < 0)
                return lkg_fail(err, EX_IOERR, -r, "open the source directory %s", s->source.path);
        s->source.fd = r;
        return 0;
}
