/* SPDX-License-Identifier: Apache-2.0 */
/* The client of the API server: requests, informers, watches, events. */
#pragma once

#include <lkg/admission.h>
#include <lkg/documents.h>
#include <lkg/http.h>
#include <lkg/process.h>
#include <lkg/text.h>

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
        /* not OK: a sentence. 403: verb, resource, name and the server's message */
        char words[LKG_API_WORDS_MAX];
        const struct lkg_value *object; /* OK: the decoded reply */
};

typedef void lkg_client_fn(const struct lkg_api_answer *answer, void *userdata);

struct lkg_client_options {
        sd_event *event;
        struct lkg_credential *credential; /* borrowed */
        const char *user_agent;
        size_t max_bytes; /* remote.maxBytes: limit of one object */
        /* called before a reply is decoded; borrowed, NULL = no check */
        const struct lkg_admission *admission;
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

struct lkg_client *lkg_client_new(const struct lkg_client_options *options);
/** lkg_client_free() - cancel every call. Not from a callback. */
struct lkg_client *lkg_client_free(struct lkg_client *client);

/* Everything is copied. */
struct lkg_request {
        const char *verb; /* get (a consistent read), list, watch, create, update or patch */
        /* of a list: kind "...List"; of a list and a create: without name */
        const struct lkg_resource *resource;
        /* list, watch: the objects with this label, NULL = whatever their labels */
        const char *label, *value;
        /*
         * list: how many at a time (0 = all), and metadata.continue of the part before (NULL = the first part). GONE: the token is
         * too old, begin again. All parts show the state of the first one.
         * Source: Kubernetes API concepts, "Retrieving large results sets in chunks".
         */
        unsigned limit;
        const char *token;
        /*
         * watch, of one object if the resource has a name: resourceVersion to start after; NULL = the current state comes first,
         * as an ADDED event; "" = changes from now on (sendInitialEvents=false; API servers of about 1.32 and later). The server
         * ends it after so many seconds; we end it 30 s later.
         */
        const char *version;
        unsigned seconds;
        /* create, update, patch */
        const char *content_type, *body;
        size_t size;

        void (*open)(void *userdata); /* watch: the server has accepted; may be NULL */
        /*
         * watch: bytes of the stream. A negative result ends it: -EFBIG with LKG_API_TOO_LARGE, -EBADMSG with LKG_API_INVALID,
         * another with LKG_API_UNREACHABLE.
         */
        int (*data)(const char *data, size_t size, void *userdata);
        /* OK of a watch: the server ended it as announced; no object */
        lkg_client_fn *done;
        void *userdata;
};

/**
 * lkg_client_send() - @done is called in any case, and later: also if the request cannot be sent (a name that no object can have, no
 * credential, no connection, ...).
 */
struct lkg_call *lkg_client_send(struct lkg_client *client, const struct lkg_request *request);

/** lkg_list_token() - metadata.continue of the answer to a list; NULL = that was the last part. Borrowed from @list. */
const char *lkg_list_token(const struct lkg_value *list);

/**
 * lkg_call_cancel() - no callback is called any more. NULL is fine; returns NULL. From any callback except
 * its own end.
 */
struct lkg_call *lkg_call_cancel(struct lkg_call *call);
/** lkg_call_abandon() - the same, because its connection is dead: requests from now on get another one. */
struct lkg_call *lkg_call_abandon(struct lkg_call *call);

struct lkg_client_counters {
        uint64_t n_answers[_LKG_API_STATUS_MAX];
        uint64_t received_bytes, sent_bytes, n_connections;
};
void lkg_client_counters(const struct lkg_client *client, struct lkg_client_counters *ret);

/* ---- informer ---- */

/*
 * Follows one object: GET, then WATCH from there, repeated forever; only GET if watching is forbidden.
 * Modelled on client-go's reflector, for one name instead of a list. Reports each state that is newer than
 * the previous one.
 *
 * Rules: a watch without a version starts with the current state. 410 and an Expired event lead to a GET and
 * such a watch, and once that is open, to another GET (nothing else would report a deletion in between). An
 * event that is older than the known state (versions are compared as numbers if both are) is not used; the
 * object is read once more, and the result of that read counts, even if it is older (a restored etcd). If
 * watching is refused (403): polling every poll_interval +-25 %, and a new attempt to watch every tenth
 * time. A watch without a byte for 150 s (bookmarks arrive every minute) or with an incomplete event for 30
 * s is ended. A watch that ends within 1 s without an event counts as failed.
 */

enum lkg_informer_mode {
        LKG_INFORMER_STARTING, /* no watch has been open yet */
        LKG_INFORMER_WATCH,    /* the watch is open */
        LKG_INFORMER_POLL,     /* watching is forbidden */
        LKG_INFORMER_DOWN,     /* the last attempt failed */
};
const char *lkg_informer_mode_name(enum lkg_informer_mode mode); /* "starting", "watch", "poll", "down" */

struct lkg_informer_ops {
        /*
         * A state: @object (with metadata.uid and resourceVersion, kind and name are checked), or NULL: the object does not
         * exist (404, DELETED). Also called when a GET confirms the known state.
         */
        void (*state)(const struct lkg_value *object, void *userdata);
        /* Mode or last error has changed: see lkg_informer_look(). */
        void (*changed)(void *userdata);
};

struct lkg_informer;

struct lkg_informer_options {
        sd_event *event;
        struct lkg_client *client;
        struct lkg_resource resource; /* texts are copied */
        uint64_t poll_interval_ns;
        size_t max_bytes;
        /* called before an event is decoded; borrowed, NULL = no check */
        const struct lkg_admission *admission;
        /*
         * For tests; 0 = the defaults above: a watch without a byte, an incomplete event, the first wait
         * after a failure.
         */
        uint64_t idle_ns, half_ns, quiet_ns, backoff_ns;
        const struct lkg_informer_ops *ops; /* static */
        void *userdata;
};

/** lkg_informer_new() - starts at once; its first answer comes from the loop. */
struct lkg_informer *lkg_informer_new(const struct lkg_informer_options *options);
/**
 * lkg_informer_free() - no callback is called any more. From any callback, including its own state() and
 * changed().
 */
struct lkg_informer *lkg_informer_free(struct lkg_informer *informer);

/**
 * lkg_informer_fetch() - read the object now, from the loop (control/sync); a watch continues. @anew: end it
 * and start again (another identity). From any callback.
 */
void lkg_informer_fetch(struct lkg_informer *informer, bool anew);

struct lkg_informer_look {
        enum lkg_informer_mode mode;
        enum lkg_api_status status; /* of the last answer */
        const char *words;          /* why that is not OK; "". Kept until the next success */
        const char *refusal;        /* mode POLL: a message about the missing permission to watch; "" */
        /* wall time of the last answer that confirmed the state, or bookmark; 0 = none yet */
        uint64_t success_ns;
        uint64_t failing_since_ns; /* CLOCK_BOOTTIME since when there have been only failures; 0 = none */
};
/** lkg_informer_look() - how it fares. Texts are valid until the loop runs. */
struct lkg_informer_look lkg_informer_look(const struct lkg_informer *informer);

/* ---- watch-stream ---- */

/*
 * Splits the bytes of a watch into events: one JSON document per line, {"type": ..., "object": ...}. Pure;
 * bounded memory.
 * Source: Kubernetes API concepts, "Efficient detection of changes"; apimachinery pkg/watch.
 */

enum lkg_event_type {
        LKG_EVENT_ADDED,
        LKG_EVENT_MODIFIED,
        LKG_EVENT_DELETED,
        LKG_EVENT_BOOKMARK,
        LKG_EVENT_ERROR
};

struct lkg_watch_event {
        enum lkg_event_type type;
        const struct lkg_value *object; /* a map */
};

#define LKG_WATCH_IDLE_NS  (150 * LKG_NSEC_PER_SEC) /* bookmarks come every minute, once one has come */
#define LKG_WATCH_SHORT_NS LKG_NSEC_PER_SEC         /* one that ends earlier is suspicious */
/* balancers end connections that are quiet for longer, mostly 30 s to some minutes */
#define LKG_WATCH_QUIET_NS (10 * LKG_NSEC_PER_SEC)
/** lkg_watch_seconds() - for how long it is asked for: uniform in [300,600), as client-go's reflector does. */
static inline unsigned lkg_watch_seconds(uint32_t random)
{
        return 300u + (unsigned)((UINT64_C(300) * random) >> 32);
}

struct lkg_watch_stream {
        struct lkg_buf line;
        size_t max_bytes; /* of one line */
        /* asked before a line is decoded; borrowed, NULL = no check */
        const struct lkg_admission *admission;
        const char *what; /* as it is asked about; NULL = "a watch" */
};

void lkg_watch_stream_init(struct lkg_watch_stream *stream, size_t max_bytes);
void lkg_watch_stream_deinit(struct lkg_watch_stream *stream);

/** lkg_watch_stream_is_partial() - has a line begun and not ended? */
bool lkg_watch_stream_is_partial(const struct lkg_watch_stream *stream);

/**
 * lkg_watch_stream_feed() - call @fn for each complete event; it returns a negative value to stop.
 *
 * An unknown type is skipped (a later release may have more), and so is an empty line.
 * Return: 0; the result of @fn; -EFBIG: a line over max_bytes; -EBADMSG: no JSON, no map, no object, not
 * admitted. The stream is unusable after a negative result.
 */
int lkg_watch_stream_feed(struct lkg_watch_stream *stream, const char *data, size_t size,
                          int (*fn)(const struct lkg_watch_event *event, void *userdata), void *userdata,
                          struct lkg_error *err);

/* ---- reporter ---- */

/*
 * Reports to the cluster: the conditions ConfigOK and StaticPodsOK in the node's status, and Events about the node. Only with
 * a credential that is certainly the node's own (system:node:<name>), so an identity that could write other
 * nodes is never used. A failed request is repeated with back-off and affects nothing else.
 *
 * Condition: strategic merge patch of nodes/<name>/status with nothing but these conditions; on change,
 * and every 5 min +-20 %; if only the figures of a rollout have changed, then with the next of these. Events: core/v1 in namespace default, as client-go's correlator would send them: a
 * repeated Event is a PATCH of its count; at most 25, then one every 5 min. Reasons: docs/specification.md
 * 5.
 */

/* As in status/<c>/condition.json. */
struct lkg_node_condition {
        const char *status; /* "True", "False", "Unknown" */
        const char *reason, *message;
        uint64_t transition_ns; /* wall time */
        /*
         * The reason has figures that other nodes change. A change of these alone waits for the next regular write: each slot of a
         * rollout that is taken would otherwise be a write by every node that waits for one.
         */
        bool figures;
        bool pods; /* the condition StaticPodsOK; else ConfigOK */
};

struct lkg_reporter_options {
        sd_event *event;
        struct lkg_client *client;
        const struct lkg_credential *credential;
        const char *node_name, *host;
        bool condition, events;          /* remote.condition, remote.events */
        void (*changed)(void *userdata); /* lkg_reporter_words() has changed; may not free the reporter */
        void *userdata;
};

struct lkg_reporter;

/** lkg_reporter_new() - nothing is sent before the loop runs; the functions below only queue. Texts are copied. */
struct lkg_reporter *lkg_reporter_new(const struct lkg_reporter_options *options);
struct lkg_reporter *lkg_reporter_free(struct lkg_reporter *reporter);

/**
 * lkg_reporter_set_node() - uid of the Node, for events; "" = unknown: events wait (at most 16, the oldest
 * are dropped). A Node with another uid has neither condition nor events: both are written again. At most
 * 253 bytes.
 */
void lkg_reporter_set_node(struct lkg_reporter *reporter, const char *uid);
/**
 * lkg_reporter_set_condition() - the condition of the node's status; nothing is sent if it has not changed.
 */
void lkg_reporter_set_condition(struct lkg_reporter *reporter, const struct lkg_node_condition *condition);
/** lkg_reporter_event() - @reason is CamelCase; @message is cut at 1024 bytes, never within a character. */
void lkg_reporter_event(struct lkg_reporter *reporter, bool warning, const char *reason,
                        const char *message);
/**
 * lkg_reporter_kick() - the identity has changed: try at once. Call it from on_identity of the client:
 * requests that the new identity may not send are withdrawn before they are sent.
 */
void lkg_reporter_kick(struct lkg_reporter *reporter);
/**
 * lkg_reporter_words() - why nothing can be written ("" = it can, or has not been tried). For status and
 * findings.
 */
const char *lkg_reporter_words(const struct lkg_reporter *reporter);
