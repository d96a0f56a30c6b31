/* SPDX-License-Identifier: Apache-2.0 */
/*
 * HTTPS requests on the event loop: libcurl's multi interface driven by sd-event, without threads and
 * without blocking. TLS 1.2 or later, HTTP/2 if the server supports it, connections are kept open.
 * Independent of Kubernetes, except that every reply is JSON. A redirect is an answer; it is never followed.
 *
 * Memory is bounded: all replies together have at most max_bytes of the options (decompressed), one reply at most
 * max_bytes of its request, one header 256 KiB. Time is bounded: see struct lkg_http_request.
 *
 * One thread, that of the loop. The process must ignore SIGPIPE.
 */
#pragma once

#include <systemd/sd-event.h>

#include <lkg/credential.h>

#define LKG_HTTP_CONNECT_NS (10 * LKG_NSEC_PER_SEC) /* for name resolution, TCP, proxy and TLS together */

/*
 * Priority of every event source of the network: a server that sends endlessly (or one object of some MiB
 * after another) delays local work by at most one iteration of the loop.
 */
#define LKG_REMOTE_PRIORITY (SD_EVENT_PRIORITY_NORMAL + 10)

struct lkg_http_options {
        sd_event *event;
        const char *user_agent;
        size_t max_bytes;
        uint64_t connect_ns; /* 0 = LKG_HTTP_CONNECT_NS */
        bool plain; /* servers with http://, too; and never a proxy: a health endpoint of this machine */
        uint64_t doubt_ns; /* how long a stream may be silent if another one of its connections hangs */
};

/* How a request ended. */
struct lkg_http_result {
        /*
         * 0: a complete reply was received. -ETIMEDOUT; -EFBIG: over max_bytes of the request, or a header
         * over its limit; -ENOBUFS: over the limit of all replies; -ECONNREFUSED, -EHOSTUNREACH (also: no
         * such name), ...: no connection; -ECONNRESET: it broke; -EPROTO: TLS or a certificate; -EBADMSG:
         * not HTTP, or invalid compression; the result of on_data; -ENOMEM; -EIO.
         */
        int error;
        char words[256];         /* of an error, for people; names the server, never a credential */
        unsigned status;         /* HTTP status, 0 = none received */
        uint64_t retry_after_ns; /* 0 = not given by the server */
        char flow_schema[64];    /* X-Kubernetes-PF-FlowSchema-UID */
        const char *body;        /* NUL-terminated; NULL for a stream */
        size_t size;
};

struct lkg_http_request {
        const char *method;       /* "GET", "POST", "PATCH" */
        const char *path;         /* "/api/v1/...?..."; comes after the identity's server */
        const char *content_type; /* NULL = no body */
        const char *body;
        size_t size;
        size_t max_bytes;     /* limit of the reply; for a stream, of a reply with a status other than 200 */
        uint64_t deadline_ns; /* after the start; LKG_HTTP_CONNECT_NS of it for connecting */
        uint64_t idle_ns;     /* longest time without a byte, including the first one; 0 = no limit */
        /*
         * A stream: called for each piece as it arrives, at most 16 KiB; the status is 200. A negative
         * result ends the request with that error. Replies with another status have a body instead. NULL =
         * not a stream.
         */
        int (*on_data)(const char *data, size_t size, void *userdata);
        void (*on_open)(void *userdata); /* stream: status 200 was received; may be NULL */
        /*
         * Called once, in all cases except after lkg_http_cancel(). May start another request and cancel
         * others.
         */
        void (*on_end)(const struct lkg_http_result *result, void *userdata);
        void *userdata;
};

struct lkg_http_transfer; /* one request in flight */
struct lkg_http;

struct lkg_http_counters {
        uint64_t n_requests, n_connections, received_bytes, sent_bytes;
};

int lkg_http_new(const struct lkg_http_options *options, struct lkg_http **ret, struct lkg_error *err);
/** lkg_http_free() - cancel all requests in flight. Not from a callback of a request. */
struct lkg_http *lkg_http_free(struct lkg_http *http);

/** lkg_http_set_max_bytes() - limit of all replies together; data that has already arrived is kept. */
void lkg_http_set_max_bytes(struct lkg_http *http, size_t max_bytes);

/**
 * lkg_http_start() - send @request as @identity. Texts are copied. May be called from any callback; no callback runs before it
 * returns.
 *
 * An identity with another serial than that of the previous request gets new connections, so a rotated
 * certificate never uses an old connection. So does the first request after one that timed out. Requests in
 * flight continue.
 *
 * Return: 0; on failure nothing is called: -ENOMEM; -EINVAL: curl refuses it (an invalid URL), or a
 * credential contains a control character.
 */
int lkg_http_start(struct lkg_http *http, struct lkg_identity *identity,
                   const struct lkg_http_request *request, struct lkg_http_transfer **ret,
                   struct lkg_error *err);
/**
 * lkg_http_cancel() - end it without calling anything. NULL is fine; returns NULL. From any callback,
 * including its own on_data and on_open, but not its own on_end (it has ended).
 */
struct lkg_http_transfer *lkg_http_cancel(struct lkg_http_transfer *transfer);
/**
 * lkg_http_distrust() - @transfer hangs. From now on no request uses its connection, and other streams of
 * the same connections may be silent for at most doubt_ns. NULL is fine.
 */
void lkg_http_distrust(struct lkg_http_transfer *transfer);

/**
 * lkg_http_counters() - since creation, including requests in flight. Bytes are counted after decryption and
 * before decompression, as far as curl counts them.
 */
const struct lkg_http_counters *lkg_http_counters(struct lkg_http *http);
