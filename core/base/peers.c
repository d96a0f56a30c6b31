/* SPDX-License-Identifier: Apache-2.0 */
/* The engine's sockets: see <lkg/process.h>. */
#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <lkg/base.h>

#include <lkg/process.h>

static struct lkg_peer *free_peer(struct lkg_peer *peer, bool close_fd)
{
        if (!peer)
                return NULL;
        sd_event_source_disable_unref(peer->io);
        if (close_fd)
                lkg_close(peer->fd);
        free(peer->queue);
        free(peer);
        return NULL;
}

static void drop_peer(struct lkg_peer *peer)
{
        struct lkg_peers *s = peer->server;

        if (peer == s->supervisor) {
                s->supervisor = NULL;
                s->ops->gone(peer, s->userdata);
                free_peer(peer, /* close_fd= */ false);
                return;
        }
        for (size_t i = 0; i < s->n_peers; i++) {
                if (s->peers[i] != peer)
                        continue;
                memmove(s->peers + i, s->peers + i + 1, (s->n_peers - i - 1) * sizeof(struct lkg_peer *));
                s->n_peers--;
                break;
        }
        s->ops->gone(peer, s->userdata);
        free_peer(peer, /* close_fd= */ true);
}

/* ---- sending ---- */

static void want_out(struct lkg_peer *peer)
{
        (void)sd_event_source_set_io_events(peer->io, peer->n_queue ? EPOLLIN | EPOLLOUT : EPOLLIN);
}

/* Return: 0; -errno: the connection is broken. */
static int flush(struct lkg_peer *peer)
{
        size_t n = 0;
        int r = 0;

        while (n < peer->n_queue && (r = lkg_message_send(peer->fd, &peer->queue[n])) >= 0)
                n++;
        memmove(peer->queue, peer->queue + n, (peer->n_queue - n) * sizeof(*peer->queue));
        peer->n_queue -= n;
        want_out(peer);
        return r == -EAGAIN ? 0 : r;
}

static int enqueue(struct lkg_peer *peer, const struct lkg_message *message)
{
        if (peer->n_queue == LKG_QUEUE_MAX)
                return -ENOBUFS;
        if (LKG_RESERVE(peer->queue, peer->n_queue, peer->n_allocated) < 0)
                return -ENOMEM;
        peer->queue[peer->n_queue++] = *message;
        want_out(peer);
        return 0;
}

void lkg_peer_send(struct lkg_peer *peer, const struct lkg_message *message)
{
        int r = peer->n_queue ? -EAGAIN : lkg_message_send(peer->fd, message);

        if (r == -EAGAIN)
                r = enqueue(peer, message);
        /*
         * Do not free the peer here: the caller may be handling its messages. The next read sees the
         * shutdown.
         */
        if (r < 0)
                (void)shutdown(peer->fd, SHUT_RDWR);
}

static void send_done(struct lkg_peer *peer, const struct lkg_ticket *t)
{
        struct lkg_message message;

        lkg_message_init(&message, LKG_MSG_DONE);
        message.ticket = t->ticket;
        message.number = t->number;
        message.result = t->result;
        lkg_peer_send(peer, &message);
}

void lkg_server_remember(struct lkg_peers *s, uint64_t ticket, int result, uint64_t number)
{
        s->tickets[s->next_ticket] = (struct lkg_ticket){ ticket, number, result };
        s->next_ticket = (s->next_ticket + 1) % LKG_TICKETS_MAX;
}

void lkg_server_done(struct lkg_peer *peer, uint64_t ticket, int result, uint64_t number)
{
        const struct lkg_ticket t = { ticket, number, result };

        lkg_server_remember(peer->server, ticket, result, number);
        send_done(peer, &t);
}

bool lkg_server_repeat(struct lkg_peer *peer, uint64_t ticket)
{
        const struct lkg_peers *s = peer->server;

        for (size_t i = 0; ticket && i < LKG_TICKETS_MAX; i++)
                if (s->tickets[i].ticket == ticket) {
                        send_done(peer, &s->tickets[i]);
                        return true;
                }
        return false;
}

void lkg_server_published(struct lkg_peers *s, uint64_t number)
{
        struct lkg_message message;

        lkg_message_init(&message, LKG_MSG_PUBLISHED);
        message.number = number;
        for (size_t i = 0; i < s->n_peers; i++)
                lkg_peer_send(s->peers[i], &message);
        if (s->supervisor)
                lkg_peer_send(s->supervisor, &message);
}

void lkg_server_fatal(struct lkg_peers *s, int code, const char *reason)
{
        struct lkg_message message;

        if (!s->supervisor)
                return;
        lkg_message_init(&message, LKG_MSG_FATAL);
        message.result = code;
        (void)snprintf(message.text, LKG_CONTROL_TEXT_MAX, "%s", reason);
        message.text_size = (uint32_t)strlen(message.text);
        lkg_peer_send(s->supervisor, &message);
}

uint64_t lkg_server_loaded(const struct lkg_peers *s)
{
        uint64_t oldest = UINT64_MAX;

        for (size_t i = 0; i < s->n_peers; i++)
                if (s->peers[i]->loaded < oldest)
                        oldest = s->peers[i]->loaded;
        return oldest;
}

/* ---- receiving ---- */

/* Return: 1: a message was handled; 0: no more messages; -errno: the peer is gone. */
static int receive_one(struct lkg_peer *peer)
{
        struct lkg_message message;
        int r = lkg_message_recv(peer->fd, &message);

        if (r == -EAGAIN)
                return 0;
        if (r <= 0) /* the connection has ended, or the peer is of another build */
                return r < 0 ? r : -ECONNRESET;
        peer->server->ops->message(peer, &message, peer->server->userdata);
        return 1;
}

static int on_io(sd_event_source *source, int fd, uint32_t revents, void *userdata)
{
        struct lkg_peer *peer = userdata;
        struct lkg_peers *s = peer->server;
        int r = 1;

        if (revents & EPOLLOUT)
                r = flush(peer) < 0 ? -EPIPE : 1;
        for (unsigned i = 0; r > 0 && i < LKG_BATCH_MAX; i++)
                r = receive_one(peer);
        s->ops->batch_done(peer, s->userdata);
        if (r < 0)
                drop_peer(peer);
        return 0;
}

static int new_peer(struct lkg_peers *s, int fd, bool is_supervisor, struct lkg_peer **ret)
{
        struct lkg_peer *peer = calloc(1, sizeof(*peer));
        int r;

        if (!peer)
                return -ENOMEM;
        *peer = (struct lkg_peer){ .server = s, .fd = fd, .is_supervisor = is_supervisor };
        r = sd_event_add_io(s->event, &peer->io, fd, EPOLLIN, on_io, peer);
        if (r < 0) {
                free(peer);
                return r;
        }
        *ret = peer;
        return 0;
}

static int on_accept(sd_event_source *source, int fd, uint32_t revents, void *userdata)
{
        struct lkg_peers *s = userdata;
        struct lkg_peer *peer;
        int client = accept4(fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

        if (client < 0)
                return 0; /* the client is gone, or we are out of descriptors: the next event tries again */
        if (LKG_GROW(s->peers, s->n_peers) < 0 || new_peer(s, client, false, &peer) < 0) {
                lkg_close(client);
                return 0;
        }
        s->peers[s->n_peers++] = peer;
        s->ops->came(peer, s->userdata);
        return 0;
}

int lkg_server_init(struct lkg_peers *server, sd_event *event, int listen_fd, int supervisor_fd,
                    const struct lkg_server_ops *ops, void *userdata, struct lkg_error *err)
{
        int r = 0;

        *server = (struct lkg_peers){ .event = event, .ops = ops, .userdata = userdata };
        if (listen_fd >= 0) {
                int flags = fcntl(listen_fd, F_GETFL);

                /* The supervisor shares this socket but never accepts, so O_NONBLOCK does no harm. */
                if (flags < 0 || fcntl(listen_fd, F_SETFL, flags | O_NONBLOCK) < 0)
                        r = -errno;
                else
                        r = sd_event_add_io(event, &server->listen, listen_fd, EPOLLIN, on_accept, server);
        }
        if (r >= 0 && supervisor_fd >= 0)
                r = new_peer(server, supervisor_fd, true, &server->supervisor);
        if (r < 0) {
                lkg_server_deinit(server);
                return lkg_error_set(err, r, NULL, "event loop");
        }
        return 0;
}

void lkg_server_deinit(struct lkg_peers *server)
{
        for (size_t i = 0; i < server->n_peers; i++)
                free_peer(server->peers[i], /* close_fd= */ true);
        free(server->peers);
        free_peer(server->supervisor, /* close_fd= */ false);
        sd_event_source_disable_unref(server->listen);
        *server = (struct lkg_peers){ 0 };
}
