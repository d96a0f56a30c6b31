/* SPDX-License-Identifier: Apache-2.0 */
/*
 * HTTPS requests on the event loop: libcurl's multi interface driven by sd-event, no thread of ours, nothing blocks. TLS 1.2 or
 * later, HTTP/2 where the server has it, connections kept. Knows no Kubernetes, except that every reply is JSON. Redirects are
 * answers like any other and never followed.
 *
 * Memory is bounded: what has arrived of all replies together (decompressed) is at most max_bytes of the options, one reply at
 * most max_bytes of its request, one header 256 KiB. Time is bounded: see struct lkg_http_request.
 *
 * One thread, the loop's. The process ignores SIGPIPE.
 */
#pragma once

#include <systemd/sd-event.h>

#include "credential.h"

#define LKG_HTTP_CONNECT_NS (10 * LKG_NSEC_PER_SEC) /* names, TCP, proxy and TLS together */

/*
 * Of every source of the loop that is there because of the network: a server that talks without end (or one object of some MiB
 * after the other) makes nobody on this machine wait for more than one of its turns.
 */
#define LKG_REMOTE_PRIORITY (SD_EVENT_PRIORITY_NORMAL + 10)

struct lkg_http_options {
        sd_event *event;
        const char *user_agent;
        size_t max_bytes;
        uint64_t connect_ns; /* 0 = LKG_HTTP_CONNECT_NS */
        uint64_t
                doubt_ns; /* how long a stream may say nothing when another transfer of its connections hangs */
};

/* How a request ended. */
struct lkg_http_result {
        /*
         * 0: a whole reply came. -ETIMEDOUT; -EFBIG: over max_bytes of the request, or a header over its limit; -ENOBUFS: over that of
         * all together; -ECONNREFUSED, -EHOSTUNREACH (also: no such name), ...: no connection; -ECONNRESET: it broke; -EPROTO: TLS
         * or a certificate; -EBADMSG: no HTTP, or compressed in a broken way; what on_data returned; -ENOMEM; -EIO.
         */
        int error;
        char words[256];         /* of an error, for people; names server, never a credential */
        unsigned status;         /* HTTP status, 0 = none came */
        uint64_t retry_after_ns; /* 0 = the server did not say */
        char flow_schema[64];    /* X-Kubernetes-PF-FlowSchema-UID */
        const char *body;        /* NUL-terminated; NULL of a stream */
        size_t size;
};

struct lkg_http_request {
        const char *method;       /* "GET", "POST", "PATCH" */
        const char *path;         /* "/api/v1/...?..."; comes after the identity's server */
        const char *content_type; /* NULL = no body */
        const char *body;
        size_t size;
        size_t max_bytes;     /* of the reply; of a stream's reply with another status than 200 */
        uint64_t deadline_ns; /* after the start; connecting has LKG_HTTP_CONNECT_NS of it */
        uint64_t idle_ns; /* so long without one byte, the first one included, ends it; 0 = no such limit */
        /* A stream: each piece as it comes, at most 16 KiB; the status is 200. Negative ends the request with that error. Replies
         * of another status have a body instead. NULL = no stream. */
        int (*on_data)(const char *data, size_t size, void *userdata);
        void (*on_open)(void *userdata); /* stream: status 200 has come; may be NULL */
        /* Once, whatever happens, except after lkg_http_cancel(). May start another request, may cancel others. */
        void (*on_end)(const struct lkg_http_result *result, void *userdata);
        void *userdata;
};

struct lkg_http_transfer; /* one request that is under way */
struct lkg_http;

struct lkg_http_counters {
        uint64_t n_requests, n_connections, received_bytes, sent_bytes;
};

int lkg_http_new(const struct lkg_http_options *options, struct lkg_http **ret, struct lkg_error *err);
/** lkg_http_free() - cancels what is under way. Not from a callback of a request. */
struct lkg_http *lkg_http_free(struct lkg_http *http);

/** lkg_http_set_max_bytes() - of all replies together; what has arrived already stays. */
void lkg_http_set_max_bytes(struct lkg_http *http, size_t max_bytes);

/**
 * lkg_http_start() - send @request as @identity. Texts are copied. From any callback; nothing is called before it returns.
 *
 * Another identity (serial) than that of the request before begins with connections of its own: a rotated certificate is never
 * mixed up with an old connection. So does the first request after one that ran out of time. What is under way goes on.
 *
 * Return: 0; -ENOMEM; -EINVAL: curl does not take it (a broken URL), or a credential has a control character. Then nothing is
 * called.
 */
int lkg_http_start(struct lkg_http *http, struct lkg_identity *identity,
                   const struct lkg_http_request *request, struct lkg_http_transfer **ret,
                   struct lkg_error *err);
/**
 * lkg_http_cancel() - end it without calling anything. NULL is fine; returns NULL. From any callback, also from its own on_data and
 * on_open; not from its own on_end (it has ended).
 */
struct lkg_http_transfer *lkg_http_cancel(struct lkg_http_transfer *transfer);
/**
 * lkg_http_distrust() - @transfer hangs. No request from now on uses its connection, and what is a stream of the same connections may
 * not be silent for longer than doubt_ns from now on. NULL is fine.
 */
void lkg_http_distrust(struct lkg_http_transfer *transfer);

/**
 * lkg_http_counters() - since it was made, what is under way included. Bytes are those of HTTP below compression and above TLS,
 * as far as curl counts them.
 */
const struct lkg_http_counters *lkg_http_counters(struct lkg_http *http);
