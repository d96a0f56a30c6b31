/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Connections of file servers, and the one of the supervisor: messages in, answers out, without ever blocking.
 *
 * Several file servers may be connected for a while (a successor was started before the old one was gone); each is
 * served until it closes. Answers that do not fit into a socket wait in memory, at most LKG_QUEUE_MAX of them; a peer
 * that reads none of so many is closed (it will come back, and ask again).
 */
#pragma once

#include <systemd/sd-event.h>

#include <lkg/control.h>
#include <lkg/error.h>
#include <lkg/limits.h>

#define LKG_QUEUE_MAX   4096u
#define LKG_BATCH_MAX   LKG_MESSAGES_AT_ONCE
#define LKG_TICKETS_MAX 256u

struct lkg_peer {
        struct lkg_peers *server; /* borrowed */
        int fd;
        sd_event_source *io;
        bool is_supervisor;
        uint64_t loaded; /* newest publication it serves; 0 = not said yet */
        struct lkg_message *queue;
        size_t n_queue, n_allocated;
};

/* What the engine does with messages. @peer stays valid until @gone was called for it. */
struct lkg_server_ops {
        void (*message)(struct lkg_peer *peer, const struct lkg_message *message, void *userdata);
        void (*batch_done)(struct lkg_peer *peer, void *userdata); /* nothing more to read for now */
        void (*came)(struct lkg_peer *peer, void *userdata);
        void (*gone)(struct lkg_peer *peer, void *userdata); /* before it is freed */
};

/* The result of a ticket that was carried out: a repeated question gets the first answer. */
struct lkg_ticket {
        uint64_t ticket, number;
        int32_t result;
};

struct lkg_peers {
        sd_event *event; /* borrowed */
        const struct lkg_server_ops *ops;
        void *userdata;
        sd_event_source *listen;
        struct lkg_peer **peers; /* file servers, oldest first */
        size_t n_peers;
        struct lkg_peer *supervisor;
        struct lkg_ticket tickets[LKG_TICKETS_MAX];
        size_t next_ticket;
};

/** lkg_server_init() - @listen_fd and @supervisor_fd may be -EBADF (tests, --check); both stay the caller's. */
int lkg_server_init(struct lkg_peers *server, sd_event *event, int listen_fd, int supervisor_fd,
                    const struct lkg_server_ops *ops, void *userdata, struct lkg_error *err);
void lkg_server_deinit(struct lkg_peers *server);

/** lkg_peer_send() - now, or when the peer has room. */
void lkg_peer_send(struct lkg_peer *peer, const struct lkg_message *message);

/** lkg_server_done() - answer @ticket and remember the answer. */
void lkg_server_done(struct lkg_peer *peer, uint64_t ticket, int result, uint64_t number);

/** lkg_server_remember() - a ticket that an engine before us answered. */
void lkg_server_remember(struct lkg_peers *server, uint64_t ticket, int result, uint64_t number);

/** lkg_server_repeat() - answer a ticket that was answered before. Return: false when it was not. */
bool lkg_server_repeat(struct lkg_peer *peer, uint64_t ticket);

/** lkg_server_published() - tell every file server and the supervisor. */
void lkg_server_published(struct lkg_peers *server, uint64_t number);

/** lkg_server_fatal() - tell the supervisor not to start us again. */
void lkg_server_fatal(struct lkg_peers *server, int code, const char *reason);

/** lkg_server_loaded() - oldest publication some file server may still be loading; UINT64_MAX = none is connected. */
uint64_t lkg_server_loaded(const struct lkg_peers *server);
