/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Taking over from a dead supervisor. The descriptors come from the file server that still serves (its
 * socket in the private runtime directory), else from the service manager's store, else from the file
 * server's descriptor table with pidfd_getfd(2). The locks that we hold exclude any other lkgfsd.
 *
 * A running file server continues without noticing. Engine and notifier are ended and started again, because
 * only their parent has their channels.
 */
#include <fcntl.h>
#include <linux/capability.h>
#include <signal.h>
#include <sys/pidfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include <systemd/sd-daemon.h>

#include <lkg/base.h>
#include <lkg/file.h>
#include <lkg/process.h>

#include "supervisor.h"

#define PROGRAM_MAX     (64u << 20)
#define DYING_NS        (1 * LKG_NSEC_PER_SEC)
#define ANSWER_LIMIT_NS (2 * LKG_NSEC_PER_SEC)
#define END_LIMIT_NS    (1 * LKG_NSEC_PER_SEC)

enum { FD_DEVICE, FD_SHARED, FD_SOURCE, FD_LISTEN, N_FDS };
_Static_assert(N_FDS == LKG_HANDOVER_FDS_MAX, "FDS carries these, in this order");

/* The descriptor numbers in a file server that we started; see server-child.c. */
static const int numbers_in_server[N_FDS] = {
        [FD_DEVICE] = 3, [FD_SHARED] = 4, [FD_SOURCE] = 5, [FD_LISTEN] = 7
};

struct found {
        int fds[N_FDS];
        int channel; /* to the file server */
        int pid;     /* at its other end */
        bool living; /* a file server is serving, whether it hands over its descriptors or not */
};

static void found_deinit(struct found *found)
{
        for (int i = 0; i < N_FDS; i++)
                lkg_close(found->fds[i]);
        lkg_close(found->channel);
}

static bool all_there(const int fds[static N_FDS])
{
        for (int i = 0; i < N_FDS; i++)
                if (fds[i] < 0)
                        return false;
        return true;
}

static void take(int *where, int fd)
{
        fd = lkg_lift_fd(fd);
        if (fd < 0)
                return;
        lkg_close(*where);
        *where = fd;
}

static void from_store(struct found *found)
{
        char **given = NULL;
        int n = sd_listen_fds_with_names(/* unset_environment= */ 1, &given);

        for (int i = 0; i < n; i++) {
                int fd = SD_LISTEN_FDS_START + i;
                bool known = false;

                for (int k = 0; k < N_FDS && !known; k++) {
                        known = strcmp(given[i], lkg_kept_names[k]) == 0;
                        if (known)
                                take(&found->fds[k], fd);
                }
                if (!known)
                        lkg_close(fd);
                free(given[i]);
        }
        free(given);
}

/* Return: 0; -errno: there is none. */
static int connect_server(const struct lkg_supervisor *s, struct found *found)
{
        LKG_CLEANUP(lkg_closep) int fd = lkg_private_connect(s, LKG_HANDOVER_SOCKET);

        if (fd < 0)
                return fd;
        /*
         * We would mount the descriptors that it hands over and pass them on. The mount namespace is not
         * checked: a unit gets a new one at each start.
         */
        found->pid = lkg_peer_of_host(fd, CAP_SYS_PTRACE, 0);
        if (found->pid == -EPERM)
                lkg_log_error("%s in the runtime directory does not belong to a file server of this lkgfs: "
                              "ignored",
                              LKG_HANDOVER_SOCKET);
        if (found->pid < 0)
                return found->pid;
        found->channel = LKG_STEAL_FD(fd);
        return 0;
}

int lkg_adopt_receive(struct lkg_supervisor *s, int channel, int ret[static LKG_HANDOVER_FDS_MAX])
{
        uint64_t deadline_ns = lkg_boottime_ns() + ANSWER_LIMIT_NS;

        while (lkg_wait_readable(channel, deadline_ns)) {
                int fds[LKG_HANDOVER_FDS_MAX];
                struct lkg_handover message;
                int r = lkg_handover_recv(channel, MSG_DONTWAIT, &message, fds);

                if (r == 0)
                        return -ECONNRESET;
                if (r < 0 && r != -EAGAIN)
                        return r;
                if (r < 0)
                        continue;
                if (message.type == LKG_HANDOVER_FDS)
                        for (int i = 0; i < N_FDS; i++)
                                take(&ret[i], LKG_STEAL_FD(fds[i]));
                else if (message.type == LKG_HANDOVER_KEEP && message.node != 0 && fds[0] >= 0)
                        lkg_kept_add(s, message.node, LKG_STEAL_FD(fds[0]));
                for (size_t i = 0; i < LKG_HANDOVER_FDS_MAX; i++)
                        lkg_close(fds[i]);
                if (message.type == LKG_HANDOVER_END)
                        return all_there(ret) ? 0 : -EBADMSG;
        }
        return -ETIMEDOUT;
}

/* The last resort: a server that hangs has what we need, and its successor needs nothing more. */
static int fetch(struct found *found, int pidfd)
{
        for (int i = 0; i < N_FDS; i++) {
                int fd = (int)syscall(SYS_pidfd_getfd, pidfd, numbers_in_server[i], 0);

                if (fd < 0)
                        return -errno;
                take(&found->fds[i], fd);
        }
        return all_there(found->fds) ? 0 : -EBADMSG;
}

static int from_server(struct lkg_supervisor *s, struct found *found, struct lkg_error *err)
{
        LKG_CLEANUP(lkg_closep) int pidfd = -EBADF;
        int r;

        if (connect_server(s, found) < 0)
                return 0; /* no listener: there is no running file server */
        r = lkg_adopt_receive(s, found->channel, found->fds);
        found->living = r == 0;
        if (r == 0)
                return 0;
        lkg_log_warning("the running file server does not hand over (%s)", strerror(-r));
        found->channel = lkg_close(found->channel);
        pidfd = pidfd_open(found->pid, 0);
        r = all_there(found->fds) ? 0 : pidfd < 0 ? -ESRCH : fetch(found, pidfd);
        /* It may have closed our connection because it was killed a moment ago: then it will be gone very soon. */
        if (r < 0 && (pidfd < 0 || lkg_wait_pidfd(pidfd, DYING_NS)))
                return 0;
        if (r < 0)
                return lkg_fail(err, EX_UNAVAILABLE, -r,
                                "a file server without supervisor serves %s and does not hand over; "
                                "`umount -l %s` ends it",
                                s->mount_point, s->mount_point);
        found->living = true;
        return 0;
}

/* Discard the remains of a view that is no longer visible. */
static void discard(struct lkg_supervisor *s, struct lkg_shared *shared, const char *why)
{
        lkg_log_notice("left over by an earlier lkgfsd: %s; starting afresh", why);
        for (int kind = 0; kind < _LKG_CHILD_KIND_MAX; kind++)
                (void)lkg_recorded_end(s, (enum lkg_child_kind)kind);
        lkg_kept_drop(&s->connection, 0);
        (void)munmap(shared, sizeof(*shared));
}

/*
 * Replace the view of a running file server that ours cannot take over from, if it is mounted at our mount
 * point.
 */
static int replace_view(struct lkg_supervisor *s, struct found *found, struct lkg_error *err)
{
        struct lkg_mount mount;

        if (lkg_mounts_top(s->mount_point, &mount) != 1 || !lkg_mount_is_lkgfs(&mount))
                return lkg_fail(err, EX_UNAVAILABLE, 0,
                                "the runtime directory %s is used by a file server of another version of "
                                "lkgfs, and its view is not on %s; unmount it first.",
                                s->settings->runtime_dir, s->mount_point);
        s->replacing = true;
        s->stale_id = mount.id;
        s->source.fd = LKG_STEAL_FD(found->fds[FD_SOURCE]);
        s->dirs.listen = LKG_STEAL_FD(found->fds[FD_LISTEN]);
        lkg_kept_drop(&s->connection, 0);
        return 0;
}

/* Would our file server have answered FUSE_INIT like the one of @shared? If not, it cannot serve that connection. */
static bool agrees(const struct lkg_shared *shared)
{
        unsigned char ours[LKG_INIT_MAX];
        uint32_t size = lkg_init_answer(shared->init.request, shared->init.request_size, ours);

        return size > 0 && size == shared->init.reply_size && memcmp(ours, shared->init.reply, size) == 0;
}

/*
 * Is it ours, and usable?
 * Return: 0, with @ret_shared NULL if it is not usable; an exit code.
 */
static int judge(struct lkg_supervisor *s, struct found *found, struct lkg_shared **ret_shared,
                 uint64_t *ret_mount_id, struct lkg_error *err)
{
        struct lkg_mount mount;
        struct lkg_connection c = { .device = found->fds[FD_DEVICE] };
        struct lkg_shared *shared = lkg_shared_map(found->fds[FD_SHARED]);

        if (!shared && found->living)
                return replace_view(s, found, err);
        if (!shared) {
                lkg_log_notice("left over by another version of lkgfs: starting afresh");
                return 0;
        }
        if (strcmp(shared->mount_point, s->mount_point) != 0) {
                int r = lkg_fail(err, EX_UNAVAILABLE, 0,
                                 "the runtime directory %s belongs to a view on %.200s; give every mount "
                                 "point its own runtimeDir and stateDir.",
                                 s->settings->runtime_dir, shared->mount_point);

                (void)munmap(shared, sizeof(*shared));
                return r;
        }
        if (lkg_connection_dead(&c)) {
                discard(s, shared, "its connection was aborted");
        } else if (lkg_mounts_top(s->mount_point, &mount) != 1 || !lkg_mount_is_lkgfs(&mount)) {
                discard(s, shared, "its view is not mounted any more");
        } else if (!agrees(shared)) {
                (void)munmap(shared, sizeof(*shared));
                return replace_view(s, found, err);
        } else {
                *ret_shared = shared;
                *ret_mount_id = mount.id;
        }
        return 0;
}

int lkg_build_same(int pid, const char *path)
{
        char link[64];
        const char *const paths[] = { path, link };
        char *text[2] = { NULL, NULL };
        size_t size[2] = { 0, 0 };
        int r = 0;

        (void)snprintf(link, sizeof(link), "/proc/%d/exe", pid);
        for (size_t i = 0; r >= 0 && i < LKG_ARRAY_SIZE(paths); i++) {
                LKG_CLEANUP(lkg_closep) int fd = open(paths[i], O_RDONLY | O_CLOEXEC);

                r = fd < 0 ? -errno : lkg_read_file(fd, PROGRAM_MAX, &text[i], &size[i], NULL);
        }
        if (r >= 0)
                r = size[0] == size[1] && memcmp(text[0], text[1], size[0]) == 0;
        free(text[0]);
        free(text[1]);
        return r;
}

static void adopt_server(struct lkg_supervisor *s, struct found *found)
{
        struct lkg_child *server = &s->children[LKG_CHILD_SERVER];
        int peer = found->channel >= 0 ? found->pid : -1;

        if (lkg_child_adopt(server, found->channel) < 0) {
                if (peer > 0) /* not on record, and it serves our device: the next one must be alone */
                        lkg_end_unrecorded(peer);
                return;
        }
        found->channel = -EBADF;
        server->ready = true;
        /*
         * A server without a connection to us cannot store its descriptors with us, and one of another build must be replaced
         * after an update. Its successor starts at once and takes over, as after any SIGKILL.
         */
        if (peer == (int)server->pid && lkg_build_same(peer, s->programs[LKG_CHILD_SERVER]) != 0)
                return;
        if (peer == (int)server->pid)
                lkg_child_log(server, LOG_NOTICE, "(pid %d) is of another build: replaced", peer);
        lkg_child_abandon(server, END_LIMIT_NS);
}

static void adopt_children(struct lkg_supervisor *s, struct found *found)
{
        static const enum lkg_child_kind ended[] = { LKG_CHILD_ENGINE, LKG_CHILD_NOTIFIER };

        adopt_server(s, found);
        /* When the loop sees that these have ended, it starts the next ones. */
        for (size_t i = 0; i < LKG_ARRAY_SIZE(ended); i++)
                if (lkg_child_adopt(&s->children[ended[i]], -EBADF) == 0)
                        lkg_child_end(&s->children[ended[i]], SIGTERM, END_LIMIT_NS);
}

int lkg_adopt(struct lkg_supervisor *s, struct lkg_error *err)
{
        LKG_CLEANUP(found_deinit) struct found found = { .channel = -EBADF };
        struct lkg_shared *shared = NULL;
        uint64_t mount_id = 0;
        int r;

        for (int i = 0; i < N_FDS; i++)
                found.fds[i] = -EBADF;
        from_store(&found);
        r = from_server(s, &found, err);
        if (r != 0 || !all_there(found.fds))
                return r;
        r = judge(s, &found, &shared, &mount_id, err);
        if (r != 0 || !shared)
                return r;
        s->connection.device = LKG_STEAL_FD(found.fds[FD_DEVICE]);
        s->connection.shared_fd = LKG_STEAL_FD(found.fds[FD_SHARED]);
        s->connection.shared = shared;
        s->connection.mount_id = mount_id;
        s->connection.attached = true;
        s->source.fd = LKG_STEAL_FD(found.fds[FD_SOURCE]);
        s->dirs.listen = LKG_STEAL_FD(found.fds[FD_LISTEN]);
        r = lkg_shared_claim(s, shared, err);
        if (r == 0)
                r = lkg_view_clone(s, -EBADF, err);
        if (r != 0)
                return r;
        adopt_children(s, &found);
        s->adopted = true;
        return 0;
}
