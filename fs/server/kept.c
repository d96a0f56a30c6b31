/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Descriptors that must outlive this process: one for each file that is open through the mount and has lost
 * its last name. It is sent to the supervisor before the name is removed, and comes back when a successor
 * starts.
 *
 * fs.sock is the other direction: a new supervisor that finds this process alive takes over everything that the dead one held.
 */
#include <fcntl.h>
#include <linux/capability.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sysexits.h>

#include <lkg/process.h>

#include "file-server.h"

static struct {
        uint64_t node;
        uint32_t uid;
        int fd;
} kept[LKG_KEPT];
static size_t n_kept;
static int listening = -EBADF;
static int first_link = -EBADF; /* the connection to the engine that arrived with the kept descriptors */

/* Lock held. Nothing is kept for a supervisor that is gone: its successor gets everything (hand_over()). */
static void tell(enum lkg_handover_type type, uint64_t node, const int *fd)
{
        if (server.supervisor >= 0)
                (void)lkg_handover_send(server.supervisor, type, node, fd, fd ? 1 : 0);
}

/* Lock held. */
static int find_kept(uint64_t node)
{
        for (size_t i = 0; i < n_kept; i++)
                if (kept[i].node == node)
                        return (int)i;
        return -1;
}

int lkg_kept_fd(uint64_t node)
{
        LKG_LOCKED(&server.kept_lock);
        int i = find_kept(node), fd = i < 0 ? -1 : fcntl(kept[i].fd, F_DUPFD_CLOEXEC, 3);

        return i < 0 ? -ESTALE : fd < 0 ? -errno : fd;
}

/* Lock held. Files of users get half of the table, those of one user an eighth: there is room for root's. */
static bool has_room_for(uint32_t uid)
{
        size_t n_users = 0, n_own = 0;

        for (size_t i = 0; i < n_kept; i++) {
                n_users += kept[i].uid != 0;
                n_own += kept[i].uid == uid;
        }
        return n_kept < LKG_KEPT && (uid == 0 || (n_users < LKG_KEPT / 2 && n_own < LKG_KEPT / 8));
}

/*
 * Lock held. Refusing the removal would be worse: a directory could not be emptied because a user has files
 * of it open.
 */
static void say_full(uint32_t uid)
{
        static uint64_t said_ns;

        if (said_ns != 0 && lkg_boottime_ns() - said_ns < 60 * LKG_NSEC_PER_SEC)
                return;
        said_ns = lkg_boottime_ns();
        lkg_log_notice("too many deleted but open files of uid %u: some will be gone when the file server "
                       "is restarted",
                       uid);
}

bool lkg_kept_keep(uint64_t node, uint32_t uid, int fd)
{
        bool there;

        LKG_LOCKED(&server.kept_lock);
        there = find_kept(node) >= 0;
        if (!there && !has_room_for(uid)) {
                say_full(uid);
        } else if (!there && (fd = fcntl(fd, F_DUPFD_CLOEXEC, 3)) >= 0) {
                kept[n_kept].node = node;
                kept[n_kept].uid = uid;
                kept[n_kept++].fd = fd;
                there = true;
                tell(LKG_HANDOVER_KEEP, node, &fd);
        }
        return there;
}

void lkg_kept_let_go(uint64_t node)
{
        LKG_LOCKED(&server.kept_lock);
        int i = find_kept(node);

        if (i < 0)
                return;
        (void)close(kept[i].fd);
        kept[i] = kept[--n_kept];
        tell(LKG_HANDOVER_DROP, node, NULL);
}

void lkg_kept_ready(void)
{
        tell(LKG_HANDOVER_READY, 0, NULL);
}

int lkg_kept_link(void)
{
        int fd = LKG_STEAL_FD(first_link);

        if (fd >= 0)
                return fd;
        LKG_LOCKED(&server.kept_lock);
        tell(LKG_HANDOVER_LINK, 0, NULL);
        return -EAGAIN;
}

void lkg_kept_forget_names(void)
{
        LKG_LOCKED(&server.kept_lock);

        tell(LKG_HANDOVER_FORGET, 0, NULL);
}

static int on_supervisor(sd_event_source *source, int fd, uint32_t revents, void *userdata);

/*
 * From here on a message that does not fit is dropped: a supervisor that hangs must not block a file
 * operation. The only effect is that this unlinked file does not survive a restart of the server.
 */
static int watch_supervisor(void)
{
        (void)fcntl(server.supervisor, F_SETFL, O_NONBLOCK);
        return sd_event_add_io(server.event, NULL, server.supervisor, EPOLLIN, on_supervisor, NULL);
}

static int on_supervisor(sd_event_source *source, int fd, uint32_t revents, void *userdata)
{
        struct lkg_handover message;
        LKG_CLEANUP(lkg_closep) int link = -EBADF;
        int fds[LKG_HANDOVER_FDS_MAX];
        int r = lkg_handover_recv(fd, MSG_DONTWAIT, &message, fds);

        if (r == -EAGAIN)
                return 0;
        if (r > 0 && message.type == LKG_HANDOVER_LINK)
                link = LKG_STEAL_FD(fds[0]);
        for (size_t i = 0; i < LKG_HANDOVER_FDS_MAX; i++)
                lkg_close(fds[i]);
        if (r > 0 && message.type == LKG_HANDOVER_STOP)
                return sd_event_exit(server.event, 0);
        if (link >= 0)
                server.hooks->engine_linked(LKG_STEAL_FD(link));
        if (r > 0)
                return 0;
        /* The supervisor is gone. Keep running; its successor will find us. */
        (void)pthread_mutex_lock(&server.kept_lock);
        if (server.supervisor == fd)
                server.supervisor = -EBADF;
        (void)pthread_mutex_unlock(&server.kept_lock);
        (void)sd_event_source_set_enabled(source, SD_EVENT_OFF);
        (void)close(fd);
        return 0;
}

/* Send everything that the dead supervisor held to the one that connected. */
static void hand_over(int fd)
{
        const int fds[] = { server.device, server.shared_fd, server.source, server.listen };
        const struct timeval limit = { .tv_sec = 2 };
        int r;

        (void)setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
        (void)pthread_mutex_lock(&server.kept_lock);
        r = lkg_handover_send(fd, LKG_HANDOVER_FDS, 0, fds, LKG_ARRAY_SIZE(fds));
        for (size_t i = 0; r == 0 && i < n_kept; i++)
                r = lkg_handover_send(fd, LKG_HANDOVER_KEEP, kept[i].node, &kept[i].fd, 1);
        if (r == 0)
                r = lkg_handover_send(fd, LKG_HANDOVER_END, 0, NULL, 0);
        if (r == 0)
                server.supervisor = fd; /* an old supervisor sees end of file once it is really gone */
        (void)pthread_mutex_unlock(&server.kept_lock);
        if (r < 0) {
                lkg_log_warning("hand over to a new supervisor: %s", strerror(-r));
                (void)close(fd);
                return;
        }
        lkg_log_notice("a new supervisor took over");
        (void)watch_supervisor();
}

static int on_connect(sd_event_source *source, int fd, uint32_t revents, void *userdata)
{
        int peer = accept4(fd, NULL, NULL, SOCK_CLOEXEC);

        if (peer < 0)
                return 0;
        /* This hands over the view itself. Only a supervisor may mount, so only a supervisor is answered. */
        if (lkg_peer_of_host(peer, CAP_SYS_ADMIN, atomic_load(&server.shm->mount_namespace)) < 0) {
                lkg_log_warning("%s: somebody who is not a supervisor was turned away", LKG_HANDOVER_SOCKET);
                (void)close(peer);
                return 0;
        }
        hand_over(peer);
        return 0;
}

/* The descriptors that the supervisor kept arrive before anything else; END when there is something to serve. */
static int take_kept(void)
{
        for (;;) {
                struct lkg_handover message;
                int fds[LKG_HANDOVER_FDS_MAX];
                int r = lkg_handover_recv(server.supervisor, 0, &message, fds);
                uint32_t uid;

                if (r <= 0)
                        return r < 0 ? r : -ECONNRESET;
                if (message.type == LKG_HANDOVER_END)
                        return 0;
                if (message.type == LKG_HANDOVER_STOP) /* there will be nothing */
                        _exit(EX_OK);
                if (message.type == LKG_HANDOVER_KEEP && fds[0] >= 0 && n_kept < LKG_KEPT &&
                    server.hooks->kept_owner(message.node, &uid)) {
                        kept[n_kept].node = message.node;
                        kept[n_kept].uid = uid;
                        kept[n_kept++].fd = LKG_STEAL_FD(fds[0]);
                }
                if (message.type == LKG_HANDOVER_LINK && fds[0] >= 0) {
                        lkg_close(first_link);
                        first_link = LKG_STEAL_FD(fds[0]);
                }
                for (size_t i = 0; i < LKG_HANDOVER_FDS_MAX; i++)
                        lkg_close(fds[i]);
        }
}

int lkg_kept_listen(struct lkg_error *err)
{
        struct sockaddr_un address = { .sun_family = AF_UNIX };
        LKG_CLEANUP(lkg_closep) int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

        if (fd < 0)
                return lkg_error_set(err, -errno, NULL, "socket");
        (void)snprintf(address.sun_path, sizeof(address.sun_path), "/proc/self/fd/%d/" LKG_HANDOVER_SOCKET,
                       server.runtime);
        (void)unlinkat(server.runtime, LKG_HANDOVER_SOCKET, 0); /* left by a dead predecessor */
        if (bind(fd, (struct sockaddr *)&address, sizeof(address)) < 0 ||
            fchmodat(server.runtime, LKG_HANDOVER_SOCKET, 0600, 0) < 0 || listen(fd, 4) < 0)
                return lkg_error_set(err, -errno, NULL, "listen on %s", LKG_HANDOVER_SOCKET);
        listening = LKG_STEAL_FD(fd);
        return 0;
}

int lkg_kept_init(struct lkg_error *err)
{
        int r = take_kept();

        if (r < 0)
                return lkg_error_set(err, r, NULL, "receive kept files from the supervisor");
        if (sd_event_add_io(server.event, NULL, listening, EPOLLIN, on_connect, NULL) < 0 ||
            watch_supervisor() < 0)
                return lkg_error_set(err, -ENOMEM, NULL, "watch the supervisor");
        return 0;
}
