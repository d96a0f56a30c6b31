/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The file server: the one child that must be running again within milliseconds, because every caller of the
 * view waits for it meanwhile. So its start allocates almost nothing and uses vfork (posix_spawn), and the
 * descriptors of files that are unlinked but open, which a server loses when it dies, are held here and
 * passed to each successor.
 */
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include <lkg/base.h>

#include "supervisor.h"

/* its FUSE_INIT reply differs from the one this connection was made with */
#define EXIT_OTHER_BUILD EX_NOPERM
#define CHANNEL_BUFFER   (2 << 20) /* room for all kept descriptors before the server reads the first */

void lkg_kept_add(struct lkg_supervisor *s, uint64_t node, int fd)
{
        struct lkg_kept *slot = NULL;

        for (size_t i = 0; i < LKG_KEPT; i++) {
                if (s->kept[i].node == node && node != 0) {
                        slot = &s->kept[i];
                        break;
                }
                if (!slot && s->kept[i].node == 0)
                        slot = &s->kept[i];
        }
        fd = lkg_lift_fd(fd);
        if (!slot || node == 0 || fd < 0) {
                lkg_log_warning(
                        "a deleted but open file cannot be kept over a restart of the file server: %s",
                        fd < 0 ? strerror(-fd) : "too many of them");
                lkg_close(fd);
                return;
        }
        if (slot->node != 0)
                lkg_close(slot->fd);
        *slot = (struct lkg_kept){ .node = node, .fd = fd };
}

static void drop(struct lkg_supervisor *s, uint64_t node)
{
        for (size_t i = 0; i < LKG_KEPT; i++) {
                if (s->kept[i].node != node || node == 0)
                        continue;
                lkg_close(s->kept[i].fd);
                s->kept[i] = (struct lkg_kept){ .fd = -EBADF };
        }
}

void lkg_kept_clear(struct lkg_supervisor *s)
{
        for (size_t i = 0; i < LKG_KEPT; i++) {
                if (s->kept[i].node != 0)
                        lkg_close(s->kept[i].fd);
                s->kept[i] = (struct lkg_kept){ .fd = -EBADF };
        }
}

/* On failure it asks again: the engine's queue or the channel is full. */
static void send_link(const struct lkg_supervisor *s, int channel)
{
        LKG_CLEANUP(lkg_closep) int fd = lkg_private_connect(s, LKG_ENGINE_SOCKET);

        if (fd < 0 || lkg_handover_send(channel, LKG_HANDOVER_LINK, 0, &fd, 1) < 0)
                lkg_log_debug("the file server gets no connection to the engine yet");
}

static int queue_kept(const struct lkg_supervisor *s, int channel)
{
        for (size_t i = 0; i < LKG_KEPT; i++) {
                int r = 0;

                if (s->kept[i].node != 0)
                        r = lkg_handover_send(channel, LKG_HANDOVER_KEEP, s->kept[i].node, &s->kept[i].fd,
                                              1);
                if (r < 0)
                        return r;
        }
        send_link(s, channel);
        return lkg_handover_send(channel, LKG_HANDOVER_END, 0, NULL, 0);
}

static int start(struct lkg_supervisor *s, struct lkg_child *child)
{
        const char *argv[] = { s->programs.server,
                               "--device-fd",
                               "3",
                               "--shared-fd",
                               "4",
                               "--source-fd",
                               "5",
                               "--runtime-fd",
                               "6",
                               "--listen-fd",
                               "7",
                               "--supervisor-fd",
                               "8",
                               s->options->verbose ? "--verbose" : NULL,
                               NULL };
        struct lkg_spawn spawn = { .argv = argv, .n_fds = 6, .namespace_fd = s->children_namespace };
        LKG_CLEANUP(lkg_closep) int ours = -EBADF;
        LKG_CLEANUP(lkg_closep) int theirs = -EBADF;
        int size = CHANNEL_BUFFER, r;

        if (lkg_connection_dead(&s->connection)) {
                s->life->connection_lost(s);
                return 0;
        }
        if (lkg_runtime_mend(s))
                lkg_engine_publish_anew(s);
        r = lkg_channel_pair(&ours, &theirs);
        if (r < 0)
                return r;
        (void)setsockopt(ours, SOL_SOCKET, SO_SNDBUFFORCE, &size, sizeof(size));
        r = queue_kept(s, ours);
        if (r < 0)
                return r;
        (void)fcntl(ours, F_SETFL, O_NONBLOCK); /* from now on it may be a server that does not read */
        spawn.fds[0] = s->connection.device;
        spawn.fds[1] = s->connection.shared_fd;
        spawn.fds[2] = s->source_fd;
        spawn.fds[3] = s->runtime_fd;
        spawn.fds[4] = s->listen_fd;
        spawn.fds[5] = theirs;
        r = lkg_child_spawn(child, &spawn, &ours);
        if (r == 0)
                lkg_heartbeat_start(&s->heartbeat, atomic_load(&s->connection.shared->served));
        return r;
}

static bool input(struct lkg_supervisor *s, struct lkg_child *child)
{
        int fds[LKG_HANDOVER_FDS_MAX];
        struct lkg_handover message;
        int r = lkg_handover_recv(child->channel, MSG_DONTWAIT, &message, fds);

        if (r <= 0)
                return r == -EBADMSG;
        if (message.type == LKG_HANDOVER_KEEP && fds[0] >= 0)
                lkg_kept_add(s, message.node, LKG_STEAL_FD(fds[0]));
        else if (message.type == LKG_HANDOVER_DROP)
                drop(s, message.node);
        else if (message.type == LKG_HANDOVER_FORGET)
                lkg_dentries_drop(s);
        else if (message.type == LKG_HANDOVER_LINK)
                send_link(s, child->channel);
        for (size_t i = 0; i < LKG_HANDOVER_FDS_MAX; i++)
                lkg_close(fds[i]);
        if (message.type == LKG_HANDOVER_READY && !child->ready) {
                child->ready = true;
                child->restart.n_early = 0;
                if (atomic_load(&s->connection.shared->publication) == 0)
                        lkg_engine_publish_anew(s);
                s->life->server_ready(s);
        }
        return true;
}

static void died(struct lkg_supervisor *s, struct lkg_child *child, const struct lkg_child_end *end)
{
        const struct lkg_restart_pace *policy = &lkg_restart_server;
        bool killed = (end->code == CLD_KILLED || end->code == CLD_DUMPED) && end->status == SIGKILL;
        bool refused = end->code == CLD_EXITED && end->status == EXIT_OTHER_BUILD;

        if (lkg_connection_dead(&s->connection)) {
                s->life->connection_lost(s); /* it ended because the connection was lost */
                return;
        }
        atomic_store(&s->connection.shared->crashed, end->code != 0 && !killed && !refused);
        if (refused) {
                lkg_child_log(child, LOG_ERR,
                              "speaks another FUSE dialect than the one this view was mounted with (was it "
                              "updated?); "
                              "unmount and mount again to use it");
                policy = &lkg_restart_refused;
        }
        lkg_child_start_later(child, lkg_restart_pause_ns(&child->restart, policy, refused || !end->ready));
}

const struct lkg_child_ops lkg_server_ops = { .start = start, .died = died, .input = input };
