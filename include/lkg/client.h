/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A client of one API server: it sends requests with the current credential and interprets the answers.
 * After a 401 the credential's files are read again; if the credential has changed, the request is repeated
 * once.
 *
 * At most 5 requests per second on average, 10 in a burst (client-go's limits); further requests wait. The
 * credential's files are checked before each request, every 10 s while a request is in flight, and every 45
 * s otherwise.
 *
 * Callbacks run from the event loop, never from within the call that starts the request. One thread.
 */
#pragma once

#include <lkg/admission.h>
#include <lkg/http.h>

#define LKG_CLIENT_REQUEST_NS (60 * LKG_NSEC_PER_SEC) /* for a whole GET, POST or PATCH */
#define LKG_CLIENT_IDLE_NS    (30 * LKG_NSEC_PER_SEC) /* for the time without a byte */

/* One object. */
struct lkg_resource {
        const char *group_version; /* "v1", or "authentication.k8s.io/v1" */
        const char *plural;        /* "configmaps" */
        const char *kind;          /* "ConfigMap": the kind that a reply must have */
        const char *ns;            /* NULL = cluster-scoped */
        const char *name;          /* NULL for a POST */
        const char *subresource;   /* "status", or NULL */
};

enum lkg_api_status {
        LKG_API_OK,
        LKG_API_UNREACHABLE,  /* no complete answer: network, TLS, timeout, a limit; no credential */
        LKG_API_UNAUTHORIZED, /* 401 */
        LKG_API_FORBIDDEN,    /* 403 */
        LKG_API_NOT_FOUND,    /* 404 with a Status; a 404 from a proxy is INVALID */
        LKG_API_CONFLICT,     /* 409 */
        LKG_API_GONE,         /* 410, or an Expired in a stream */
        LKG_API_TOO_LARGE,    /* over our limit: the object is ignored */
        LKG_API_BUSY,         /* 429, 5xx */
        LKG_API_INVALID,      /* not JSON, another kind, another object, a redirect, any other status */
        _LKG_API_STATUS_MAX
};
const char *lkg_api_status_name(enum lkg_api_status status); /* "ok", "unreachable", ...: for metrics */

#define LKG_API_WORDS_MAX 512

/* An answer. Texts are valid only during the call. */
struct lkg_api_answer {
        enum lkg_api_status status;
        unsigned http_status; /* 0 = none received */
        bool cut;             /* UNREACHABLE: the answer had begun when the connection broke */
        uint64_t retry_after_ns;
        char words
                [LKG_API_WORDS_MAX]; /* not OK: a sentence. 403: verb, resource, name and the server's message */
        char flow_schema[64];        /* the server's priority level; "" = not given. For logs of 429 */
        const struct lkg_value *object; /* OK: the decoded reply */
        const char *text;               /* OK: its bytes */
        size_t size;
};

typedef void lkg_client_fn(const struct lkg_api_answer *answer, void *userdata);

struct lkg_client_options {
        sd_event *event;
        struct lkg_credential *credential; /* borrowed */
        const char *user_agent;
        size_t max_bytes; /* remote.maxBytes: limit of one object */
        const struct lkg_admission
                *admission; /* called before a reply is decoded; borrowed, NULL = no check */
        /*
         * 0 = the limits above, and LKG_HTTP_CONNECT_NS. A watch has no limit of silence here: a server need
         * not send anything on it, and the reader of the stream knows whether this server does.
         */
        uint64_t request_ns, idle_ns, connect_ns;
        /* The credential has changed: watches must be started again. May be NULL. */
        void (*on_identity)(void *userdata);
        void *userdata;
};

struct lkg_client;
struct lkg_call; /* a request in flight */

int lkg_client_new(const struct lkg_client_options *options, struct lkg_client **ret, struct lkg_error *err);
/** lkg_client_free() - cancel every call. Not from a callback. */
struct lkg_client *lkg_client_free(struct lkg_client *client);

/**
 * lkg_client_get() - read the newest state (a consistent read).
 *
 * If the request cannot be sent (no credential, no connection, ...), @done is called later with that answer.
 * Return: 0; on failure @done is not called: -EINVAL: a name that no object can have; -ENOMEM.
 */
int lkg_client_get(struct lkg_client *client, const struct lkg_resource *resource, lkg_client_fn *done,
                   void *userdata, struct lkg_call **ret, struct lkg_error *err);

/* Which objects of a collection, and how many at a time. All zero = all of them at once. */
struct lkg_selection {
        const char *label, *value; /* with this label; label NULL = whatever their labels */
        unsigned limit;            /* 0 = no limit */
        const char *token;         /* metadata.continue of the part before; NULL = the first part */
};

/**
 * lkg_client_list() - like lkg_client_get(): objects of a collection (@resource->kind: "...List").
 * GONE: the token is too old, begin again. All parts show the state of the first one.
 * Source: Kubernetes API concepts, "Retrieving large results sets in chunks".
 */
int lkg_client_list(struct lkg_client *client, const struct lkg_resource *resource,
                    const struct lkg_selection *selection, lkg_client_fn *done, void *userdata,
                    struct lkg_call **ret, struct lkg_error *err);

/** lkg_list_token() - metadata.continue of the answer to a list; NULL = that was the last part. Borrowed from @list. */
const char *lkg_list_token(const struct lkg_value *list);

/** lkg_client_send() - POST (@resource->name NULL), PUT or PATCH with a body. @verb: "create", "update" or "patch". */
int lkg_client_send(struct lkg_client *client, const struct lkg_resource *resource, const char *verb,
                    const char *content_type, const char *body, size_t size, lkg_client_fn *done,
                    void *userdata, struct lkg_call **ret, struct lkg_error *err);

struct lkg_watch_handlers {
        void (*open)(void *userdata); /* the server has accepted */
        int (*data)(const char *data, size_t size,
                    void *userdata); /* bytes of the stream; a negative result ends it */
        /* OK: the server ended it as announced; otherwise the error. No object */
        lkg_client_fn *end;
        void *userdata;
};
/**
 * lkg_client_watch() - follow one object: fieldSelector metadata.name=..., allowWatchBookmarks, timeoutSeconds.
 * @version: resourceVersion to start after; NULL = the current state comes first, as an ADDED event; "" =
 *           changes from now on, without the current state (sendInitialEvents=false; API servers of about
 *           1.32 and later)
 * @seconds: after which the server ends it; we end it 30 s later
 *
 * If handlers->data returns -EFBIG, the watch ends with LKG_API_TOO_LARGE; for -EBADMSG with
 * LKG_API_INVALID; for another negative number with LKG_API_UNREACHABLE.
 */
int lkg_client_watch(struct lkg_client *client, const struct lkg_resource *resource, const char *version,
                     unsigned seconds, const struct lkg_watch_handlers *handlers, struct lkg_call **ret,
                     struct lkg_error *err);

/** lkg_client_watch_list() - like lkg_client_watch(): the objects of lkg_client_list(), from @version of the list on. */
int lkg_client_watch_list(struct lkg_client *client, const struct lkg_resource *resource, const char *label,
                          const char *value, const char *version, unsigned seconds,
                          const struct lkg_watch_handlers *handlers, struct lkg_call **ret,
                          struct lkg_error *err);

/**
 * lkg_call_cancel() - no callback is called any more. NULL is fine; returns NULL. From any callback except
 * its own end.
 */
struct lkg_call *lkg_call_cancel(struct lkg_call *call);
/** lkg_call_abandon() - the same, because its connection is dead: requests from now on get another one. */
struct lkg_call *lkg_call_abandon(struct lkg_call *call);

/** lkg_client_set_max_bytes() - after a reload; applies to requests from now on. */
void lkg_client_set_max_bytes(struct lkg_client *client, size_t max_bytes);

struct lkg_client_counters {
        uint64_t n_answers[_LKG_API_STATUS_MAX];
        uint64_t received_bytes, sent_bytes, n_connections;
};
void lkg_client_counters(const struct lkg_client *client, struct lkg_client_counters *ret);
