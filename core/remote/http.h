/* SPDX-License-Identifier: Apache-2.0 */
/*
 * HTTPS requests on the event loop: libcurl's multi interface driven by sd-event, no thread of ours, nothing blocks. TLS 1.2 or
 * later, HTTP/2 where the server has it, connections kept. Knows no Kubernetes. Redirects are answers like any other and never followed.
 *
 * Memory is bounded: what has arrived of all replies together (decompressed) is at most max_bytes of the options, one reply at
 * most max_bytes of its request. Time is bounded: see struct lkg_http_request.
 */
#pragma once

#include <systemd/sd-event.h>

#include "credential.h"

struct lkg_http_options {
        sd_event *event;
        const char *user_agent;
        size_t max_bytes;
};

/* How a request ended. */
struct lkg_http_result {
        int error; /* 0: a whole reply came; -ETIMEDOUT, -EFBIG (limit), -ECONNRESET, -EPROTO (TLS, certificate), -ECANCELED, ... */
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
        size_t max_bytes;     /* of the reply; of one part that is not used yet, with on_data */
        uint64_t deadline_ns; /* after the start; connecting has 10 s of it */
        uint64_t idle_ns;     /* without one byte after the header; 0 = no such limit. For streams */
        /* A stream: each piece as it comes; the status is 200. Negative ends the request with that error. Replies of another
         * status have a body instead. NULL = no stream. */
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
/** lkg_http_free() - cancels what is under way. */
struct lkg_http *lkg_http_free(struct lkg_http *http);

/**
 * lkg_http_start() - send @request as @identity. Texts are copied.
 *
 * Another identity (serial) than that of the request before closes idle connections: a rotated certificate is never mixed up
 * with an old connection. Return: 0; -ENOMEM; -EINVAL: curl does not take it (a broken URL). Then nothing is called.
 */
int lkg_http_start(struct lkg_http *http, struct lkg_identity *identity,
                   const struct lkg_http_request *request, struct lkg_http_transfer **ret,
                   struct lkg_error *err);
/** lkg_http_cancel() - end it without calling anything. NULL is fine; returns NULL. Not from its own on_end (it has ended). */
struct lkg_http_transfer *lkg_http_cancel(struct lkg_http_transfer *transfer);

/** lkg_http_counters() - since it was made; bytes are those on the wire below TLS, as far as curl counts them. */
const struct lkg_http_counters *lkg_http_counters(const struct lkg_http *http);
