/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Transfers from start to end. Three kinds of code run here:
 *
 *   callers     start and cancel, from anywhere, also from inside a callback of curl: they only mark and queue
 *   settle()    the loop's next turn: gives queued transfers to curl, frees cancelled ones and unused pools
 *   finish()    ends one transfer and calls its owner; from pool_worked(), on_time() and settle(), never inside curl
 *
 * So curl's rule (no handle is added, removed or freed inside its callbacks) holds regardless of what owners
 * do in their callbacks. Only settle() and finish() take a transfer out of the list.
 */
#include <inttypes.h>

#include "http-internal.h"

static void pool_forget(struct lkg_http_pool *pool)
{
        if (pool->http->current == pool)
                pool->http->current = NULL;
}

/* ---- counting ---- */

static void count(CURL *easy, struct lkg_http_counters *counters)
{
        curl_off_t down = 0, up = 0;
        long header = 0, request = 0, connections = 0;

        (void)lkg_curl.easy_getinfo(easy, CURLINFO_SIZE_DOWNLOAD_T, &down);
        (void)lkg_curl.easy_getinfo(easy, CURLINFO_SIZE_UPLOAD_T, &up);
        (void)lkg_curl.easy_getinfo(easy, CURLINFO_HEADER_SIZE, &header);
        (void)lkg_curl.easy_getinfo(easy, CURLINFO_REQUEST_SIZE, &request);
        (void)lkg_curl.easy_getinfo(easy, CURLINFO_NUM_CONNECTS, &connections);
        counters->received_bytes += (uint64_t)down + (uint64_t)header;
        counters->sent_bytes += (uint64_t)up + (uint64_t)request;
        counters->n_connections += (uint64_t)connections;
}

const struct lkg_http_counters *lkg_http_counters(struct lkg_http *http)
{
        http->counters = http->ended;
        for (struct lkg_http_transfer *t = http->first; t; t = t->next)
                if (t->phase == LKG_HTTP_RUNNING)
                        count(t->easy, &http->counters);
        return &http->counters;
}

/* ---- one transfer ---- */

static void link_transfer(struct lkg_http_transfer *t)
{
        struct lkg_http *http = t->http;

        t->previous = http->last;
        *(http->last ? &http->last->next : &http->first) = t;
        http->last = t;
        t->pool->n_transfers++;
}

static void unlink_transfer(struct lkg_http_transfer *t)
{
        struct lkg_http *http = t->http;

        *(t->previous ? &t->previous->next : &http->first) = t->next;
        *(t->next ? &t->next->previous : &http->last) = t->previous;
        t->previous = t->next = NULL;
        if (--t->pool->n_transfers == 0)
                lkg_http_settle_soon(http); /* perhaps its pool goes too */
}

/* Detach it from curl; the reply stays until it is freed. Not inside curl. */
static void detach(struct lkg_http_transfer *t)
{
        sd_event_source_disable_unref(t->timer);
        t->timer = NULL;
        if (t->phase != LKG_HTTP_RUNNING)
                return;
        count(t->easy, &t->http->ended);
        (void)lkg_curl.multi_remove_handle(t->pool->multi, t->easy);
        t->phase = LKG_HTTP_ENDED;
}

/* Free a transfer that is in no list. */
static struct lkg_http_transfer *transfer_free(struct lkg_http_transfer *t)
{
        if (!t)
                return NULL;
        detach(t);
        lkg_http_unprepare(t);
        t->http->buffered_bytes -= t->body.size;
        lkg_buf_deinit(&t->body);
        (void)lkg_identity_unref(t->identity);
        free(t->path);
        free(t->content_type);
        free(t->data);
        free(t);
        return NULL;
}

static void transfer_freep(struct lkg_http_transfer **t)
{
        *t = transfer_free(*t);
}

/* The transfer's error and words say how it ended. */
static void finish(struct lkg_http_transfer *t)
{
        struct lkg_http_result result = {
                .error = t->error,
                .status = t->status,
                .retry_after_ns = t->retry_after_ns,
        };

        detach(t);
        unlink_transfer(t);
        memcpy(result.words, t->words, sizeof(result.words));
        memcpy(result.flow_schema, t->flow_schema, sizeof(result.flow_schema));
        if (!t->request.on_data || t->status != 200) {
                result.body = t->body.data ? t->body.data : "";
                result.size = t->body.size;
        }
        t->request.on_end(&result, t->request.userdata);
        (void)transfer_free(t);
}

static uint64_t due_ns(const struct lkg_http_transfer *t)
{
        uint64_t deadline = t->started_ns + t->request.deadline_ns;
        uint64_t idle = t->progress_ns + t->request.idle_ns;

        return t->request.idle_ns > 0 && idle < deadline ? idle : deadline;
}

/*
 * A connection may look alive although no data gets through. With HTTP/2 further requests on it would hang
 * as well, and open requests already hang. Bookmarks of a watch are a minute apart, so this does not end a
 * healthy one.
 */
void lkg_http_distrust(struct lkg_http_transfer *t)
{
        if (!t)
                return;
        pool_forget(t->pool);
        for (struct lkg_http_transfer *other = t->http->first; other; other = other->next) {
                if (other == t || other->pool != t->pool || !other->request.on_data || other->cancelled)
                        continue;
                if (other->request.idle_ns == 0 || other->request.idle_ns > t->http->doubt_ns)
                        other->request.idle_ns = t->http->doubt_ns;
                /* Cannot fail for a source of this loop; otherwise the stream ends at its timeout. */
                (void)sd_event_source_set_time(other->timer, due_ns(other) / 1000 + 1);
        }
}

/* The timer is not moved with each byte: if it fires too early, it is set again. */
static int on_time(sd_event_source *source, uint64_t usec, void *userdata)
{
        struct lkg_http_transfer *t = userdata;
        uint64_t now = lkg_boottime_ns(), due = due_ns(t);

        (void)usec;
        if (now < due && sd_event_source_set_time(source, due / 1000 + 1) >= 0 &&
            sd_event_source_set_enabled(source, SD_EVENT_ONESHOT) >= 0)
                return 0;
        if (due < t->started_ns + t->request.deadline_ns)
                (void)lkg_http_stop(t, -ETIMEDOUT, "%s: no byte for %" PRIu64 " s", t->peer,
                                    t->request.idle_ns / LKG_NSEC_PER_SEC);
        else
                (void)lkg_http_stop(t, -ETIMEDOUT, "%s: no complete answer within %" PRIu64 " s", t->peer,
                                    t->request.deadline_ns / LKG_NSEC_PER_SEC);
        lkg_http_distrust(t);
        finish(t);
        return 0;
}

/* As libcurl reads it for https; NO_PROXY is ignored. */
static bool environment_has_proxy(void)
{
        static const char *const names[] = { "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY" };

        for (size_t i = 0; i < LKG_ARRAY_SIZE(names); i++) {
                const char *value = getenv(names[i]);

                if (value && *value)
                        return true;
        }
        return false;
}

/* curl has finished @t. */
static void complete(struct lkg_http_transfer *t, CURLcode code)
{
        struct lkg_http_failure failure = {
                .code = code,
                .detail = t->curl_words,
                .peer = t->peer,
                .host = t->host,
                .proxy = t->identity->proxy_url,
                .environment_proxy = !t->identity->proxy_url && environment_has_proxy(),
                .has_ca = t->identity->ca,
                .connect_ns = t->http->connect_ns,
        };
        long os_error = 0;

        if (code != CURLE_OK && t->error == 0) { /* otherwise a callback of ours has stopped it */
                (void)lkg_curl.easy_getinfo(t->easy, CURLINFO_OS_ERRNO, &os_error);
                (void)lkg_curl.easy_getinfo(t->easy, CURLINFO_SSL_VERIFYRESULT, &failure.verify);
                (void)lkg_curl.easy_getinfo(t->easy, CURLINFO_PROXY_SSL_VERIFYRESULT, &failure.proxy_verify);
                (void)lkg_curl.easy_getinfo(t->easy, CURLINFO_HTTP_CONNECTCODE, &failure.proxy_status);
                failure.os_error = (int)os_error;
                t->error = lkg_http_explain(&failure, t->words);
        }
        finish(t);
}

static void break_pool(struct lkg_http_pool *pool)
{
        struct lkg_http_transfer *next;

        pool_forget(pool);
        for (struct lkg_http_transfer *t = pool->http->first; t; t = next) {
                next = t->next;
                if (t->pool != pool || t->cancelled)
                        continue;
                (void)lkg_http_stop(t, -ENOMEM, "not enough memory for connections to the API server");
                finish(t);
        }
}

/* curl has done something: some transfers may be complete. Not inside a callback of curl. */
static void look_for_ends(struct lkg_http_pool *pool)
{
        CURLMsg *message;
        int n_left;

        while (!pool->broken && (message = lkg_curl.multi_info_read(pool->multi, &n_left))) {
                struct lkg_http_transfer *t = NULL;

                (void)lkg_curl.easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, (char **)&t);
                if (t && message->msg == CURLMSG_DONE && !t->cancelled)
                        complete(t, message->data.result);
        }
        if (pool->broken)
                break_pool(pool);
}

/* ---- the next turn of the loop ---- */

void lkg_http_settle_soon(struct lkg_http *http)
{
        /* Cannot fail for a source of this loop, before the loop ends. */
        (void)sd_event_source_set_enabled(http->settle, SD_EVENT_ONESHOT);
}

static void launch(struct lkg_http_transfer *t)
{
        if (t->pool->broken || lkg_curl.multi_add_handle(t->pool->multi, t->easy) != CURLM_OK) {
                (void)lkg_http_stop(t, -ENOMEM, "not enough memory for a request to the API server");
                finish(t);
                return;
        }
        t->phase = LKG_HTTP_RUNNING;
        t->http->ended.n_requests++;
}

static void free_unused_pools(struct lkg_http *http)
{
        for (struct lkg_http_pool **at = &http->pools; *at;) {
                struct lkg_http_pool *pool = *at;

                if (pool == http->current || pool->n_transfers > 0) {
                        at = &pool->next;
                        continue;
                }
                *at = pool->next;
                (void)lkg_http_pool_free(pool);
        }
}

static int settle(sd_event_source *source, void *userdata)
{
        struct lkg_http *http = userdata;
        struct lkg_http_transfer *next;

        (void)source;
        /*
         * An owner called by finish() may append transfers and mark others, but removes none from the list.
         */
        for (struct lkg_http_transfer *t = http->first; t; t = next) {
                next = t->next;
                if (t->cancelled) {
                        detach(t);
                        unlink_transfer(t);
                        (void)transfer_free(t);
                } else if (t->phase == LKG_HTTP_QUEUED) {
                        launch(t);
                }
        }
        free_unused_pools(http);
        return 0;
}

/* ---- interface ---- */

int lkg_http_new(const struct lkg_http_options *options, struct lkg_http **ret, struct lkg_error *err)
{
        struct lkg_http *http = calloc(1, sizeof(*http));
        int r;

        if (!http)
                return lkg_error_set(err, -ENOMEM, NULL, "API client");
        http->event = sd_event_ref(options->event);
        http->max_bytes = options->max_bytes;
        http->connect_ns = options->connect_ns ? options->connect_ns : LKG_HTTP_CONNECT_NS;
        http->doubt_ns = options->doubt_ns;
        http->plain = options->plain;
        http->user_agent = strdup(options->user_agent);
        r = http->user_agent ? sd_event_add_defer(http->event, &http->settle, settle, http) : -ENOMEM;
        if (r >= 0)
                r = sd_event_source_set_priority(http->settle, LKG_REMOTE_PRIORITY);
        if (r >= 0)
                r = sd_event_source_set_enabled(http->settle, SD_EVENT_OFF);
        if (r < 0) {
                (void)lkg_http_free(http);
                return lkg_error_set(err, r, NULL, "API client");
        }
        *ret = http;
        return 0;
}

struct lkg_http *lkg_http_free(struct lkg_http *http)
{
        if (!http)
                return NULL;
        for (struct lkg_http_transfer *t; (t = http->first);) {
                detach(t);
                unlink_transfer(t);
                (void)transfer_free(t);
        }
        http->current = NULL;
        free_unused_pools(http);
        sd_event_source_disable_unref(http->settle);
        sd_event_unref(http->event);
        free(http->user_agent);
        free(http);
        return NULL;
}

void lkg_http_set_max_bytes(struct lkg_http *http, size_t max_bytes)
{
        http->max_bytes = max_bytes;
}

/* Choose the connections for requests of @identity. */
static int choose_pool(struct lkg_http *http, const struct lkg_identity *identity, struct lkg_error *err)
{
        struct lkg_http_pool *pool;
        int r;

        if (http->current && http->current->serial == identity->serial && !http->current->broken)
                return 0;
        r = lkg_http_pool_new(http, identity->serial, look_for_ends, &pool, err);
        if (r < 0)
                return r;
        pool->next = http->pools;
        http->pools = http->current = pool;
        lkg_http_settle_soon(http); /* the one before may be unused */
        return 0;
}

static int copy_request(struct lkg_http_transfer *t, const struct lkg_http_request *request)
{
        t->request = *request;
        t->path = strdup(request->path);
        if (request->content_type) {
                t->content_type = strdup(request->content_type);
                t->data = malloc(request->size + 1);
                if (t->data && request->size > 0)
                        memcpy(t->data, request->body, request->size);
        }
        t->request.path = t->path;
        t->request.content_type = t->content_type;
        t->request.body = t->data;
        return t->path && (!request->content_type || (t->content_type && t->data)) ? 0 : -ENOMEM;
}

int lkg_http_start(struct lkg_http *http, struct lkg_identity *identity,
                   const struct lkg_http_request *request, struct lkg_http_transfer **ret,
                   struct lkg_error *err)
{
        LKG_CLEANUP(transfer_freep) struct lkg_http_transfer *t = NULL;
        int r = lkg_curl_load(err);

        if (r < 0)
                return r;
        t = calloc(1, sizeof(*t));
        if (!t)
                return lkg_error_set(err, -ENOMEM, NULL, "request to the API server");
        t->http = http;
        t->identity = lkg_identity_ref(identity);
        r = copy_request(t, request);
        if (r < 0)
                return lkg_error_set(err, r, NULL, "request to the API server");
        r = lkg_http_prepare(t, err);
        if (r >= 0)
                r = choose_pool(http, identity, err);
        if (r < 0)
                return r;
        t->started_ns = t->progress_ns = lkg_boottime_ns();
        r = sd_event_add_time(http->event, &t->timer, CLOCK_BOOTTIME, due_ns(t) / 1000 + 1,
                              LKG_NSEC_PER_MSEC / 1000, on_time, t);
        if (r >= 0)
                r = sd_event_source_set_priority(t->timer, LKG_REMOTE_PRIORITY);
        if (r < 0)
                return lkg_error_set(err, r, NULL, "request to the API server");
        t->pool = http->current;
        link_transfer(t);
        lkg_http_settle_soon(http);
        *ret = LKG_STEAL(t);
        return 0;
}

struct lkg_http_transfer *lkg_http_cancel(struct lkg_http_transfer *t)
{
        if (!t)
                return NULL;
        t->cancelled = true;
        if (t->timer)
                (void)sd_event_source_set_enabled(t->timer, SD_EVENT_OFF);
        lkg_http_settle_soon(t->http);
        return NULL;
}
