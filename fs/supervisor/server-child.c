/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The file server: the one child that must be running again within milliseconds, because every caller of the
 * view waits for it meanwhile. So its start allocates almost nothing, and the
 * descriptors of files that are unlinked but open, which a server loses when it dies, are held here and
 * passed to each successor.
 */
#include <fcntl.h>
#include <poll.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include <lkg/base.h>

#include "supervisor.h"

/* its FUSE_INIT reply differs from the one this connection was made with */
#define EXIT_OTHER_BUILD EX_NOPERM
#define CHANNEL_BUFFER   (2 << 20) /* room for all kept descriptors before the server reads the first */

/* What is kept for @node; 0: a free place. */
static struct lkg_kept *kept_of(struct lkg_connection *connection, uint64_t node)
{
        for (struct lkg_kept *kept = connection->kept; kept < connection->kept + LKG_KEPT; kept++)
                if (kept->node == node)
                        return kept;
        return NULL;
}

void lkg_kept_add(struct lkg_supervisor *s, uint64_t node, int fd)
{
        struct lkg_kept *place = node == 0 ? NULL : kept_of(&s->connection, node);

        if (node != 0 && !place)
                place = kept_of(&s->connection, 0);
        fd = lkg_lift_fd(fd);
        if (!place || fd < 0) {
                lkg_log_warning(
                        "a deleted but open file cannot be kept over a restart of the file server: %s",
                        fd < 0 ? strerror(-fd) : "too many of them");
                lkg_close(fd);
                return;
        }
        if (place->node != 0)
                lkg_close(place->fd);
        *place = (struct lkg_kept){ .node = node, .fd = fd };
}

void lkg_kept_drop(struct lkg_connection *connection, uint64_t node)
{
        for (struct lkg_kept *kept = connection->kept; kept < connection->kept + LKG_KEPT; kept++) {
                if (kept->node == 0 || (node != 0 && kept->node != node))
                        continue;
                lkg_close(kept->fd);
                *kept = (struct lkg_kept){ 0 };
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

                if (s->connection.kept[i].node != 0)
                        r = lkg_handover_send(channel, LKG_HANDOVER_KEEP, s->connection.kept[i].node,
                                              &s->connection.kept[i].fd, 1);
                if (r < 0)
                        return r;
        }
        return 0;
}

/* From now on it may serve: there is a publication. */
static int let_serve(struct lkg_supervisor *s, int channel)
{
        if (lkg_runtime_mend(s))
                lkg_engine_publish_anew(s);
        send_link(s, channel);
        return lkg_handover_send(channel, LKG_HANDOVER_END, 0, NULL, 0);
}

void lkg_server_let_serve(struct lkg_supervisor *s)
{
        struct lkg_child *server = &s->children[LKG_CHILD_SERVER];

        if (!lkg_child_running(server))
                lkg_child_start(s, LKG_CHILD_SERVER);
        else if (let_serve(s, server->channel) < 0)
                lkg_child_end(server, SIGKILL, 0); /* and start another */
}

/* What it answers is counted from now on. */
static void watch_anew(struct lkg_supervisor *s)
{
        s->watchdog.server = (struct lkg_progress){ .seen = atomic_load(&s->connection.shared->served),
                                                    .last_ns = lkg_boottime_ns() };
}

static int prepare(struct lkg_supervisor *s, struct lkg_child *child, int channel, const char **more)
{
        int size = CHANNEL_BUFFER, r;

        if (lkg_connection_dead(&s->connection)) {
                s->life->connection_lost(s);
                return 1;
        }
        (void)setsockopt(channel, SOL_SOCKET, SO_SNDBUFFORCE, &size, sizeof(size));
        r = queue_kept(s, channel);
        if (r >= 0 && s->phase != LKG_PHASE_ENGINE) /* else it waits for the first publication */
                r = let_serve(s, channel);
        if (r < 0)
                return r;
        (void)fcntl(channel, F_SETFL, O_NONBLOCK); /* from now on it may be a server that does not read */
        if (s->options->verbose)
                more[0] = "--verbose";
        watch_anew(s);
        return 0;
}

/* ---- names that the kernel is asked to forget ---- */

/*
 * The kernel caches unused names, and the file server has a node for each. A user whose share of nodes is
 * used up by directories would be refused from then on: files can be forgotten one by one
 * (fs/server/content.c), but invalidating the name of a directory detaches every mount on it, in any
 * namespace. Reconfiguring the file system with the same options drops all unused names and affects no
 * mount.
 *
 * The names of all users have to be looked up again afterwards, so it is done every few seconds at most: the helper ends so much
 * later. It also writes dirty pages, which may hang on a dead disk.
 *
 * Source: fs/super.c, reconfigure_super(); fs/dcache.c, shrink_dcache_sb() and d_invalidate().
 */

#define LIMIT_NS (10 * LKG_NSEC_PER_SEC)
#define PAUSE_MS 2000

/* Without the view while it waits: that would keep it from ending. */
static int reconfigure(void *userdata)
{
        int fs = fspick(LKG_HELPER_FIRST_FD, "", FSPICK_EMPTY_PATH | FSPICK_CLOEXEC);
        int r = fs < 0 || fsconfig(fs, FSCONFIG_CMD_RECONFIGURE, NULL, NULL, 0) < 0 ? EX_OSERR : 0;

        lkg_close(fs);
        lkg_close(LKG_HELPER_FIRST_FD);
        (void)poll(NULL, 0, PAUSE_MS);
        return r;
}

static void on_dropped(void *userdata, int status)
{
        if (status != 0)
                lkg_log_debug("unused names of the view were not dropped (%d)", status);
}

static void drop_dentries(void *userdata)
{
        struct lkg_supervisor *s = userdata;
        const struct lkg_helper_work work = { .run = reconfigure,
                                              .done = on_dropped,
                                              .again = drop_dentries,
                                              .userdata = s,
                                              .fds = { s->connection.view_fd },
                                              .n_fds = 1,
                                              .limit_ns = LIMIT_NS };

        if (s->connection.view_fd >= 0)
                (void)lkg_helper_start(&s->jobs.dentries, s->event, &work);
}

/* ---- the child ---- */

static bool input(struct lkg_supervisor *s, struct lkg_child *child)
{
        struct lkg_handover message;
        int fd, r = lkg_channel_take(child->channel, &message, &fd);

        if (r <= 0)
                return r == -EBADMSG;
        if (message.type == LKG_HANDOVER_KEEP && fd >= 0)
                lkg_kept_add(s, message.node, LKG_STEAL_FD(fd));
        else if (message.type == LKG_HANDOVER_DROP && message.node != 0)
                lkg_kept_drop(&s->connection, message.node);
        else if (message.type == LKG_HANDOVER_FORGET)
                drop_dentries(s);
        else if (message.type == LKG_HANDOVER_LINK)
                send_link(s, child->channel);
        lkg_close(fd);
        if (message.type == LKG_HANDOVER_READY && !child->ready) {
                child->ready = true;
                child->n_early = 0;
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
        atomic_store(&s->connection.shared->blame.crashed, end->code != 0 && !killed && !refused);
        if (refused) {
                lkg_child_log(child, LOG_ERR,
                              "speaks another FUSE dialect than the one this view was mounted with (was it "
                              "updated?); unmount and mount again to use it");
                policy = &lkg_restart_refused;
        }
        lkg_child_start_later(child,
                              lkg_restart_pause_ns(&child->n_early, policy, refused || !child->ready));
}

/* ---- does it answer ---- */

/*
 * Does the file server still answer? Without requests nothing is checked: the device is polled once for the
 * next request, which starts two checks per second of the answer counter. The device is not polled while
 * there is traffic, because each request would wake the poller.
 *
 * A server that is stopped, or whose threads all hang, leaves requests unread or unanswered while the
 * counter does not change for two seconds. It is killed, and a successor is started without waiting for its
 * end: a thread stuck in the kernel can delay that forever, and the successor takes over its requests.
 */

static bool request_waits(const struct lkg_supervisor *s)
{
        struct pollfd p = { .fd = s->connection.device, .events = POLLIN };

        return poll(&p, 1, 0) > 0 && (p.revents & POLLIN);
}

/*
 * The oldest request that the server is handling.
 * Return: whether there is one. Requests that wait for the source directory (LKG_SLOT_HELD) do not count:
 * another server would wait for it, too.
 */
static bool oldest_busy(const struct lkg_supervisor *s, uint64_t *ret_age_ns)
{
        uint64_t now_ns = lkg_boottime_ns();
        bool busy = false;

        *ret_age_ns = 0;
        for (size_t i = 0; i < lkg_shared_slots(s->connection.shared); i++) {
                const struct lkg_slot *slot = &s->connection.shared->slots[i];
                const struct fuse_in_header *header = (const void *)slot->buf;
                uint32_t state = atomic_load(&slot->state);
                uint64_t since_ns = atomic_load(&slot->since_ns), age_ns;

                if (state == LKG_SLOT_BUSY)
                        age_ns = now_ns > since_ns ? now_ns - since_ns : 0;
                else if (state == LKG_SLOT_READING && *(const volatile uint32_t *)&header->len != 0)
                        age_ns = LKG_HEARTBEAT_HUNG_NS; /* handed out, not started: two ticks decide */
                else
                        continue;
                busy = true;
                *ret_age_ns = age_ns > *ret_age_ns ? age_ns : *ret_age_ns;
        }
        return busy;
}

static bool look(struct lkg_supervisor *s, struct lkg_child *server, bool busy)
{
        uint64_t served, age_ns;
        bool handles;

        if (!s->watchdog.traffic)
                return false;
        served = atomic_load(&s->connection.shared->served);
        handles = oldest_busy(s, &age_ns);
        if (lkg_connection_dead(&s->connection)) {
                s->life->connection_lost(s);
                return false;
        }
        switch (lkg_heartbeat_look(&s->watchdog.server, served, request_waits(s), handles, age_ns,
                                   lkg_boottime_ns())) {
        case LKG_PROGRESS_NONE:
                lkg_heartbeat_arm(s);
                return false;
        case LKG_PROGRESS_STUCK:
                if (lkg_child_running(server)) /* between two starts there is none */
                        lkg_child_replace(server, "has answered nothing for 2 s while requests wait");
                break;
        case LKG_PROGRESS_WATCH:
                break;
        }
        return true;
}

static int on_request(sd_event_source *source, int fd, uint32_t revents, void *userdata)
{
        struct lkg_supervisor *s = userdata;

        if (revents & (EPOLLERR | EPOLLHUP)) {
                s->life->connection_lost(s);
                return 0;
        }
        s->watchdog.traffic = true;
        watch_anew(s);
        lkg_watchdog_wake(s);
        return 0;
}

void lkg_heartbeat_arm(struct lkg_supervisor *s)
{
        int r = 0;

        s->watchdog.traffic = false;
        if (!s->watchdog.device)
                r = sd_event_add_io(s->event, &s->watchdog.device, s->connection.device, EPOLLIN, on_request,
                                    s);
        if (r >= 0)
                r = sd_event_source_set_enabled(s->watchdog.device, SD_EVENT_ONESHOT);
        if (r < 0)
                lkg_log_error("the heartbeat of the file server cannot be watched: %s", strerror(-r));
}

void lkg_heartbeat_disarm(struct lkg_supervisor *s)
{
        s->watchdog.traffic = false;
        s->watchdog.device = sd_event_source_disable_unref(s->watchdog.device);
}

const struct lkg_child_row lkg_server_row = {
        .name = "file server",
        .program = "lkgfs-fs",
        /* adopt.c knows these numbers */
        .fds = { { "--device-fd", offsetof(struct lkg_supervisor, connection.device) },
                 { "--shared-fd", offsetof(struct lkg_supervisor, connection.shared_fd) },
                 { "--source-fd", offsetof(struct lkg_supervisor, source.fd) },
                 { "--runtime-fd", offsetof(struct lkg_supervisor, dirs.runtime) },
                 { "--listen-fd", offsetof(struct lkg_supervisor, dirs.listen) },
                 { "--supervisor-fd", LKG_CHILD_CHANNEL } },
        .prepare = prepare,
        .look = look,
        .died = died,
        .input = input,
};
