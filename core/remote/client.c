/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A call waits in a list until the loop's next turn, and until the rate limit lets it pass (pump()). Then
 * http.c runs it and reports its end exactly once. Owners may cancel any call from any callback, so no code
 * here uses a call after a callback.
 */
#include <sys/queue.h>

#include <lkg/process.h>
#include <lkg/limits.h>

#include "api.h"

#define WATCH_GRACE_S 30u /* a server that does not end a watch as it was asked to */
/* limits of a reply without a byte: more than a minute, the time between two bookmarks */
#define DOUBT_IDLES       3u
#define LOOK_BUSY_NS      (10 * LKG_NSEC_PER_SEC)
#define LOOK_IDLE_NS      (45 * LKG_NSEC_PER_SEC)
#define LOOK_ACCURACY_NS  (4 * LKG_NSEC_PER_SEC) /* wake up together with something else where it can be */
#define OTHER_REPLIES_MAX (1u << 20)
#define OBJECTS_AT_ONCE   3u
#define EXEC_PLUGIN       7003u /* the finding about one */

struct lkg_call {
        struct lkg_client *client;
        struct lkg_request request;   /* of its texts only the body's hold, which are its own */
        struct lkg_resource resource; /* texts of its own */
        const struct lkg_api_verb *verb;
        char *path, *fault; /* fault: why there is no path */
        uint64_t deadline_ns;

        struct lkg_http_transfer *transfer; /* NULL = waiting */
        uint64_t serial;                    /* of the identity it was sent as */
        bool repeated;                      /* after a 401 */
        TAILQ_ENTRY(lkg_call) link;
};

/* client-go's defaults: 10 at once, 5 a second. */
static const struct lkg_bucket_rate request_rate = { .burst = 10, .interval_ns = LKG_NSEC_PER_SEC / 5 };

struct lkg_client {
        struct lkg_client_options options; /* with the limits that hold; the event loop is referenced */
        struct lkg_http *http;

        sd_event_source *pump, *look; /* next turn of the loop or next token; next look at the credential */
        struct lkg_bucket bucket;
        TAILQ_HEAD(lkg_calls, lkg_call) calls;
        bool asked;            /* a caller has been given an identity, or the answer that there is none */
        uint64_t serial;       /* of that identity, 0 = none */
        bool identity_unknown; /* on_identity is due */
        struct lkg_client_counters counters;
};

/* ---- calls ---- */

static struct lkg_call *call_free(struct lkg_call *call)
{
        if (!call)
                return NULL;
        lkg_resource_deinit(&call->resource);
        free(call->path);
        free(call->fault);
        free((char *)(uintptr_t)call->request.content_type);
        free((char *)(uintptr_t)call->request.body);
        free(call);
        return NULL;
}

static void end_call(struct lkg_call *call, const struct lkg_api_answer *answer)
{
        TAILQ_REMOVE(&call->client->calls, call, link);
        call->client->counters.n_answers[answer->status]++;
        call->request.done(answer, call->request.userdata);
        (void)call_free(call);
}

/* End a call that could not be sent. */
static void end_unsent(struct lkg_call *call, const char *why)
{
        struct lkg_api_answer answer = { .status = LKG_API_UNREACHABLE };
        char what[160];

        lkg_api_describe(&call->resource, what, sizeof(what));
        (void)snprintf(answer.words, sizeof(answer.words), "%s %s: %s", call->verb->name, what, why);
        end_call(call, &answer);
}

/* ---- the credential ---- */

/* Check the credential's files. If the identity has changed, pump() calls on_identity. */
static void look_at_credential(struct lkg_client *client)
{
        const struct lkg_identity *identity;
        uint64_t serial;

        (void)lkg_credential_refresh(client->options.credential, lkg_realtime_ns());
        identity = lkg_credential_identity(client->options.credential);
        serial = identity ? identity->serial : 0;
        if (client->asked && serial != client->serial) {
                client->identity_unknown = true;
                lkg_remote_arm(client->pump, 0);
        }
        client->asked = true;
        client->serial = serial;
}

static void look_again_later(struct lkg_client *client)
{
        lkg_remote_arm(client->look,
                       lkg_boottime_ns() + (TAILQ_EMPTY(&client->calls) ? LOOK_IDLE_NS : LOOK_BUSY_NS));
}

static int on_look(sd_event_source *source, uint64_t usec, void *userdata)
{
        struct lkg_client *client = userdata;

        look_at_credential(client);
        look_again_later(client);
        return 0;
}

static void no_credential(const struct lkg_client *client, char *buf, size_t size)
{
        const struct lkg_report *report = lkg_credential_findings(client->options.credential);

        (void)snprintf(buf, size, "there is no credential for the API server");
        for (size_t i = 0; i < report->n_findings; i++) {
                const struct lkg_finding *f = &report->findings[i];

                if (f->severity == LKG_ERROR) {
                        (void)snprintf(buf, size, "there is no usable credential: %s", f->text);
                        return;
                }
                if (f->code == EXEC_PLUGIN) /* a note: it runs */
                        (void)snprintf(buf, size, "there is no credential yet: %s", f->text);
        }
}

/* ---- sending and what comes back ---- */

static void on_open(void *userdata)
{
        struct lkg_call *call = userdata;

        if (call->request.open)
                call->request.open(call->request.userdata);
}

static int on_data(const char *data, size_t size, void *userdata)
{
        struct lkg_call *call = userdata;

        return call->request.data(data, size, call->request.userdata);
}

/*
 * 401: has the credential been rotated meanwhile?
 * Return: true if @call is sent again.
 */
static bool try_once_more(struct lkg_call *call)
{
        struct lkg_client *client = call->client;

        lkg_credential_rejected(client->options.credential);
        look_at_credential(client);
        if (call->repeated || client->serial == 0 || client->serial == call->serial)
                return false;
        call->repeated = true;
        TAILQ_REMOVE(&client->calls, call, link);
        TAILQ_INSERT_HEAD(&client->calls, call, link);
        lkg_remote_arm(client->pump, 0);
        return true;
}

/* The message names the option, so that the administrator can raise it. */
static void name_limit(const struct lkg_client *client, struct lkg_api_answer *answer)
{
        size_t n = strlen(answer->words);

        (void)snprintf(answer->words + n, sizeof(answer->words) - n, "; remote.maxBytes is %zu",
                       client->options.max_bytes);
}

static void on_end(const struct lkg_http_result *result, void *userdata)
{
        struct lkg_call *call = userdata;
        const struct lkg_api_question question = { call->verb->name, &call->resource, call->request.data,
                                                   call->client->options.admission };
        LKG_CLEANUP(lkg_value_unrefp) struct lkg_value *object = NULL;
        struct lkg_api_answer answer;

        call->transfer = NULL;
        if (result->error == 0 && result->status == 401 && try_once_more(call))
                return;
        object = lkg_api_judge(&question, result, &answer);
        if (answer.status == LKG_API_TOO_LARGE)
                name_limit(call->client, &answer);
        end_call(call, &answer);
}

static void send_call(struct lkg_call *call)
{
        struct lkg_client *client = call->client;
        struct lkg_identity *identity = lkg_credential_identity(client->options.credential);
        const struct lkg_http_request request = {
                .method = call->verb->method,
                .path = call->path,
                .content_type = call->request.content_type,
                .body = call->request.body,
                .size = call->request.size,
                .max_bytes = client->options.max_bytes,
                .deadline_ns = call->deadline_ns,
                .idle_ns = call->request.data ? 0 : client->options.idle_ns,
                .on_data = call->request.data ? on_data : NULL,
                .on_open = call->request.data ? on_open : NULL,
                .on_end = on_end,
                .userdata = call,
        };
        struct lkg_error error = { 0 };
        char why[400];

        if (call->fault) {
                end_unsent(call, call->fault);
                return;
        }
        if (!identity) {
                no_credential(client, why, sizeof(why));
                end_unsent(call, why);
                return;
        }
        call->serial = identity->serial;
        if (lkg_http_start(client->http, identity, &request, &call->transfer, &error) < 0)
                end_unsent(call, error.message);
}

static struct lkg_call *first_waiting(const struct lkg_client *client)
{
        struct lkg_call *call = TAILQ_FIRST(&client->calls);

        while (call && call->transfer)
                call = TAILQ_NEXT(call, link);
        return call;
}

/* Return: false if the next call has to wait for the rate limit. */
static bool may_send(struct lkg_client *client)
{
        uint64_t now = lkg_boottime_ns(), wait = lkg_bucket_take(&client->bucket, &request_rate, now);

        if (wait > 0)
                lkg_remote_arm(client->pump, now + wait);
        return wait == 0;
}

static int on_pump(sd_event_source *source, uint64_t usec, void *userdata)
{
        struct lkg_client *client = userdata;
        struct lkg_call *call;

        if (first_waiting(client))
                look_at_credential(client);
        if (client->identity_unknown) {
                client->identity_unknown = false;
                if (client->options.on_identity)
                        client->options.on_identity(client->options.userdata);
        }
        while ((call = first_waiting(client)) && may_send(client))
                send_call(call);
        look_again_later(client);
        return 0;
}

/* ---- the client ---- */

struct lkg_client *lkg_client_new(const struct lkg_client_options *options)
{
        struct lkg_client *client = lkg_must(calloc(1, sizeof(*client)));
        struct lkg_client_options *own = &client->options;
        struct lkg_http_options http = { .event = options->event,
                                         .user_agent = options->user_agent,
                                         .connect_ns = options->connect_ns };

        TAILQ_INIT(&client->calls);
        *own = *options;
        (void)sd_event_ref(own->event);
        if (own->max_bytes > LKG_DOC_BYTES_MAX) /* the decoder has a limit, too */
                own->max_bytes = LKG_DOC_BYTES_MAX;
        own->request_ns = own->request_ns ? own->request_ns : LKG_CLIENT_REQUEST_NS;
        own->idle_ns = own->idle_ns ? own->idle_ns : LKG_CLIENT_IDLE_NS;
        http.max_bytes = OBJECTS_AT_ONCE * own->max_bytes + OTHER_REPLIES_MAX;
        http.doubt_ns = DOUBT_IDLES * own->idle_ns;
        client->pump = lkg_remote_timer(own->event, LKG_NSEC_PER_MSEC, on_pump, client);
        client->look = lkg_remote_timer(own->event, LOOK_ACCURACY_NS, on_look, client);
        client->http = lkg_http_new(&http);
        lkg_remote_arm(client->pump, 0); /* from then on the credential is looked at */
        return client;
}

struct lkg_client *lkg_client_free(struct lkg_client *client)
{
        if (!client)
                return NULL;
        for (struct lkg_call *call; (call = TAILQ_FIRST(&client->calls));)
                (void)lkg_call_cancel(call);
        (void)lkg_http_free(client->http);
        sd_event_source_disable_unref(client->pump);
        sd_event_source_disable_unref(client->look);
        sd_event_unref(client->options.event);
        free(client);
        return NULL;
}

void lkg_client_counters(const struct lkg_client *client, struct lkg_client_counters *ret)
{
        const struct lkg_http_counters *http = lkg_http_counters(client->http);

        *ret = client->counters;
        ret->received_bytes = http->received_bytes;
        ret->sent_bytes = http->sent_bytes;
        ret->n_connections = http->n_connections;
}

/* ---- asking ---- */

const char *lkg_list_token(const struct lkg_value *list)
{
        const struct lkg_value *metadata = lkg_map_get_map(list, "metadata");
        const char *token = metadata ? lkg_map_get_string(metadata, "continue") : NULL;

        return token && *token ? token : NULL;
}

struct lkg_call *lkg_client_send(struct lkg_client *client, const struct lkg_request *request)
{
        LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf path = LKG_BUF_INIT;
        struct lkg_call *call = lkg_must(calloc(1, sizeof(*call)));
        struct lkg_error err = { 0 };

        call->client = client;
        call->request = *request;
        call->request.content_type = lkg_copy(request->content_type);
        call->request.body = request->content_type
                                     ? lkg_must(lkg_span_dup(lkg_span(request->body, request->size)))
                                     : NULL;
        lkg_resource_copy(request->resource, &call->resource);
        call->verb = lkg_api_verb(request->verb);
        if (lkg_api_path(request, &path, &err) < 0)
                call->fault = lkg_copy(err.message);
        call->path = lkg_buf_steal(&path, NULL);
        call->deadline_ns = request->data ? (request->seconds + (uint64_t)WATCH_GRACE_S) * LKG_NSEC_PER_SEC
                                          : client->options.request_ns;
        TAILQ_INSERT_TAIL(&client->calls, call, link);
        lkg_remote_arm(client->pump, 0);
        return call;
}

struct lkg_call *lkg_call_cancel(struct lkg_call *call)
{
        if (!call)
                return NULL;
        TAILQ_REMOVE(&call->client->calls, call, link);
        (void)lkg_http_cancel(call->transfer);
        return call_free(call);
}

struct lkg_call *lkg_call_abandon(struct lkg_call *call)
{
        if (call)
                lkg_http_distrust(call->transfer);
        return lkg_call_cancel(call);
}
