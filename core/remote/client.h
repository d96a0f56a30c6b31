/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One API server: requests on resources, with the credential as it is now, and what the server's answer means. 401 makes the
 * credential look again and is tried once more if it has become another one.
 */
#pragma once

#include "http.h"

/* One object. */
struct lkg_resource {
        const char *group_version; /* "v1", or "authentication.k8s.io/v1" */
        const char *plural;        /* "configmaps" */
        const char *kind;          /* "ConfigMap": what a reply must be */
        const char *ns;            /* NULL = cluster-scoped */
        const char *name;          /* NULL of a POST */
        const char *subresource;   /* "status", or NULL */
};

enum lkg_api_status {
        LKG_API_OK,
        LKG_API_UNREACHABLE,  /* no or half an answer: network, TLS, time, a limit */
        LKG_API_UNAUTHORIZED, /* 401 */
        LKG_API_FORBIDDEN,    /* 403 */
        LKG_API_NOT_FOUND,    /* 404 */
        LKG_API_CONFLICT,     /* 409 */
        LKG_API_GONE,         /* 410, or an Expired in a stream */
        LKG_API_TOO_LARGE,    /* over our limit: the object is not believed */
        LKG_API_BUSY,         /* 429, 5xx */
        LKG_API_INVALID,      /* no JSON, another kind, another object, a redirect, any other status */
        _LKG_API_STATUS_MAX
};
const char *lkg_api_status_name(enum lkg_api_status status); /* "ok", "unreachable", ...: for metrics */

/* An answer. Texts live during the call only. */
struct lkg_api_answer {
        enum lkg_api_status status;
        unsigned http_status; /* 0 = none came */
        uint64_t retry_after_ns;
        char words
                [512]; /* not OK: one sentence for people. 403: verb, resource, name and what the server said */
        const struct lkg_value *object; /* OK: the decoded reply */
        const char *text;               /* OK: its bytes */
        size_t size;
};

typedef void lkg_client_fn(const struct lkg_api_answer *answer, void *userdata);

struct lkg_client_options {
        sd_event *event;
        struct lkg_credential *credential; /* borrowed */
        const char *user_agent;
        size_t max_bytes; /* remote.maxBytes: of one object */
        /* The credential was read again and is another one: whoever watches begins anew. May be NULL. */
        void (*on_identity)(void *userdata);
        void *userdata;
};

struct lkg_client;
struct lkg_call; /* a request under way */

int lkg_client_new(const struct lkg_client_options *options, struct lkg_client **ret, struct lkg_error *err);
struct lkg_client *lkg_client_free(struct lkg_client *client);

/** lkg_client_get() - the newest state (a consistent read). Return: 0 or -errno; then @done is not called. */
int lkg_client_get(struct lkg_client *client, const struct lkg_resource *resource, lkg_client_fn *done,
                   void *userdata, struct lkg_call **ret, struct lkg_error *err);

/** lkg_client_send() - POST (@resource->name NULL) or PATCH with a body. @verb: "create" or "patch". */
int lkg_client_send(struct lkg_client *client, const struct lkg_resource *resource, const char *verb,
                    const char *content_type, const char *body, size_t size, lkg_client_fn *done,
                    void *userdata, struct lkg_call **ret, struct lkg_error *err);

struct lkg_watch_handlers {
        void (*open)(void *userdata); /* the server has accepted */
        int (*data)(const char *data, size_t size,
                    void *userdata); /* bytes of the stream; negative ends it */
        lkg_client_fn *end;          /* OK: the server ended it as announced; an answer else. No object */
        void *userdata;
};
/**
 * lkg_client_watch() - follow one object: fieldSelector metadata.name=..., allowWatchBookmarks, timeoutSeconds.
 * @version: resourceVersion to begin after; NULL = the state of now comes first, as an ADDED event
 * @seconds: after which the server ends it; we do 30 s later
 */
int lkg_client_watch(struct lkg_client *client, const struct lkg_resource *resource, const char *version,
                     unsigned seconds, const struct lkg_watch_handlers *handlers, struct lkg_call **ret,
                     struct lkg_error *err);

/** lkg_call_cancel() - nothing is called any more. NULL is fine; returns NULL. Not from its own end. */
struct lkg_call *lkg_call_cancel(struct lkg_call *call);

/** lkg_client_set_max_bytes() - after a reload. */
void lkg_client_set_max_bytes(struct lkg_client *client, size_t max_bytes);

struct lkg_client_counters {
        uint64_t n_answers[_LKG_API_STATUS_MAX];
        uint64_t received_bytes, sent_bytes, n_connections;
};
void lkg_client_counters(const struct lkg_client *client, struct lkg_client_counters *ret);
