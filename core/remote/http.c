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

#include <sys/epoll.h>

#include "http-internal.h"

#define IDLE_CONNECTIONS_MAX 4L

/* ---- event sources ---- */

sd_event_source *lkg_remote_timer(sd_event *event, uint64_t accuracy_ns, sd_event_time_handler_t fn,
                                  void *userdata)
{
        sd_event_source *source = NULL;

        if (sd_event_add_time(event, &source, CLOCK_BOOTTIME, 0, accuracy_ns / 1000, fn, userdata) < 0 ||
            sd_event_source_set_priority(source, LKG_REMOTE_PRIORITY) < 0 ||
            sd_event_source_set_enabled(source, SD_EVENT_OFF) < 0)
                lkg_no_memory();
        return source;
}

/* None of these calls can fail for a source of this loop, before the loop ends. */
void lkg_remote_arm(sd_event_source *timer, uint64_t at_ns)
{
        if (timer && at_ns != UINT64_MAX)
                (void)sd_event_source_set_time(timer, at_ns / 1000 + 1);
        if (timer)
                (void)sd_event_source_set_enabled(timer,
                                                  at_ns == UINT64_MAX ? SD_EVENT_OFF : SD_EVENT_ONESHOT);
}

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
        for (struct lkg_http_transfer *t = TAILQ_FIRST(&http->transfers); t; t = TAILQ_NEXT(t, link))
                if (t->phase == LKG_HTTP_RUNNING)
                        count(t->easy, &http->counters);
        return &http->counters;
}

/* ---- one transfer ---- */

static void unlink_transfer(struct lkg_http_transfer *t)
{
        TAILQ_REMOVE(&t->http->transfers, t, link);
        if (--t->pool->n_transfers == 0)
                lkg_remote_arm(t->http->settle, 0); /* perhaps its pool goes too */
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
        free(t);
        return NULL;
}

static void transfer_freep(struct lkg_http_transfer **t)
{
        *t = transfer_free(*t);
}

/* Its result says how it ended. */
static void finish(struct lkg_http_transfer *t)
{
        detach(t);
        unlink_transfer(t);
        if (!t->request.on_data || t->result.status != 200) {
                t->result.body = t->body.data ? t->body.data : "";
                t->result.size = t->body.size;
        }
        t->request.on_end(&t->result, t->request.userdata);
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
        for (struct lkg_http_transfer *other = TAILQ_FIRST(&t->http->transfers); other;
             other = TAILQ_NEXT(other, link)) {
                if (other == t || other->pool != t->pool || !other->request.on_data || other->cancelled)
                        continue;
                if (other->request.idle_ns == 0 || other->request.idle_ns > t->http->doubt_ns)
                        other->request.idle_ns = t->http->doubt_ns;
                lkg_remote_arm(other->timer, due_ns(other));
        }
}

/* The timer is not moved with each byte: if it fires too early, it is set again. */
static int on_time(sd_event_source *source, uint64_t usec, void *userdata)
{
        struct lkg_http_transfer *t = userdata;
        uint64_t now = lkg_boottime_ns(), due = due_ns(t);

        if (now < due) {
                lkg_remote_arm(source, due);
                return 0;
        }
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

        if (code != CURLE_OK && t->result.error == 0) { /* otherwise a callback of ours has stopped it */
                (void)lkg_curl.easy_getinfo(t->easy, CURLINFO_OS_ERRNO, &os_error);
                (void)lkg_curl.easy_getinfo(t->easy, CURLINFO_SSL_VERIFYRESULT, &failure.verify);
                (void)lkg_curl.easy_getinfo(t->easy, CURLINFO_PROXY_SSL_VERIFYRESULT, &failure.proxy_verify);
                (void)lkg_curl.easy_getinfo(t->easy, CURLINFO_HTTP_CONNECTCODE, &failure.proxy_status);
                failure.os_error = (int)os_error;
                t->result.error = lkg_http_explain(&failure, t->result.words);
        }
        finish(t);
}

static void break_pool(struct lkg_http_pool *pool)
{
        struct lkg_http_transfer *next;

        pool_forget(pool);
        for (struct lkg_http_transfer *t = TAILQ_FIRST(&pool->http->transfers); t; t = next) {
                next = TAILQ_NEXT(t, link);
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

/* ---- connections: curl names descriptors and timeouts, and the loop notifies curl about them ---- */

static void act(struct lkg_http_pool *pool, curl_socket_t fd, int mask)
{
        int n_running;

        /* Only lack of memory or a failed callback of ours: this handle is unusable from now on. */
        if (!pool->broken && lkg_curl.multi_socket_action(pool->multi, fd, mask, &n_running) != CURLM_OK)
                pool->broken = true;
        look_for_ends(pool);
}

static int on_io(sd_event_source *source, int fd, uint32_t revents, void *userdata)
{
        int mask = 0;

        if (revents & (EPOLLIN | EPOLLRDHUP | EPOLLHUP))
                mask |= CURL_CSELECT_IN;
        if (revents & EPOLLOUT)
                mask |= CURL_CSELECT_OUT;
        if (revents & EPOLLERR)
                mask |= CURL_CSELECT_ERR;
        act(userdata, fd, mask);
        return 0;
}

static int on_pool_time(sd_event_source *source, uint64_t usec, void *userdata)
{
        act(userdata, CURL_SOCKET_TIMEOUT, 0);
        return 0;
}

/* CURLMOPT_SOCKETFUNCTION; @known is the event source of @fd once there is one. */
static int want_io(CURL *easy, curl_socket_t fd, int what, void *userdata, void *known)
{
        struct lkg_http_pool *pool = userdata;
        sd_event_source *source = known;
        uint32_t events = (what & CURL_POLL_IN ? EPOLLIN : 0u) | (what & CURL_POLL_OUT ? EPOLLOUT : 0u);

        if (what == CURL_POLL_REMOVE) {
                sd_event_source_disable_unref(source);
                (void)lkg_curl.multi_assign(pool->multi, fd, NULL);
                return 0;
        }
        if (source)
                return sd_event_source_set_io_events(source, events) < 0 ? -1 : 0;
        if (sd_event_add_io(pool->http->event, &source, fd, events, on_io, pool) < 0)
                return -1;
        if (sd_event_source_set_priority(source, LKG_REMOTE_PRIORITY) < 0 ||
            lkg_curl.multi_assign(pool->multi, fd, source) != CURLM_OK) {
                sd_event_source_disable_unref(source);
                return -1;
        }
        return 0;
}

/* CURLMOPT_TIMERFUNCTION: must not act immediately, because curl calls it in the middle of its work. */
static int want_time(CURLM *multi, long timeout_ms, void *userdata)
{
        struct lkg_http_pool *pool = userdata;

        /* Not the loop's cached time, which may be as old as the longest callback of this turn. */
        lkg_remote_arm(pool->timer, timeout_ms < 0
                                            ? UINT64_MAX
                                            : lkg_boottime_ns() + (uint64_t)timeout_ms * LKG_NSEC_PER_MSEC);
        return 0;
}

static void configure(struct lkg_http_pool *pool)
{
        CURLM *m = pool->multi;

        (void)lkg_curl.multi_setopt(m, CURLMOPT_SOCKETFUNCTION, want_io);
        (void)lkg_curl.multi_setopt(m, CURLMOPT_SOCKETDATA, pool);
        (void)lkg_curl.multi_setopt(m, CURLMOPT_TIMERFUNCTION, want_time);
        (void)lkg_curl.multi_setopt(m, CURLMOPT_TIMERDATA, pool);
        (void)lkg_curl.multi_setopt(m, CURLMOPT_PIPELINING, CURLPIPE_MULTIPLEX);
        (void)lkg_curl.multi_setopt(m, CURLMOPT_MAXCONNECTS, IDLE_CONNECTIONS_MAX);
}

static void pool_free(struct lkg_http_pool *pool)
{
        /* takes back its descriptors, so the timer goes after it */
        (void)lkg_curl.multi_cleanup(pool->multi);
        sd_event_source_disable_unref(pool->timer);
        free(pool);
}

static struct lkg_http_pool *pool_new(struct lkg_http *http, uint64_t serial)
{
        struct lkg_http_pool *pool = lkg_must(calloc(1, sizeof(*pool)));

        pool->http = http;
        pool->serial = serial;
        pool->timer = lkg_remote_timer(http->event, LKG_NSEC_PER_MSEC, on_pool_time, pool);
        pool->multi = lkg_must(lkg_curl.multi_init());
        configure(pool);
        return pool;
}

/* ---- the next turn of the loop ---- */

static void launch(struct lkg_http_transfer *t)
{
        if (t->pool->broken || lkg_curl.multi_add_handle(t->pool->multi, t->easy) != CURLM_OK) {
                (void)lkg_http_stop(t, -ENOMEM, "not enough memory for a request to the API server");
                finish(t);
                return;
        }
        t->phase = LKG_HTTP_RUNNING;
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
                pool_free(pool);
        }
}

static int settle(sd_event_source *source, uint64_t usec, void *userdata)
{
        struct lkg_http *http = userdata;
        struct lkg_http_transfer *next;

        /*
         * An owner called by finish() may append transfers and mark others, but removes none from the list.
         */
        for (struct lkg_http_transfer *t = TAILQ_FIRST(&http->transfers); t; t = next) {
                next = TAILQ_NEXT(t, link);
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

struct lkg_http *lkg_http_new(const struct lkg_http_options *options)
{
        struct lkg_http *http = lkg_must(calloc(1, sizeof(*http)));

        TAILQ_INIT(&http->transfers);
        http->event = sd_event_ref(options->event);
        http->max_bytes = options->max_bytes;
        http->connect_ns = options->connect_ns ? options->connect_ns : LKG_HTTP_CONNECT_NS;
        http->doubt_ns = options->doubt_ns;
        http->plain = options->plain;
        http->unix_path = options->unix_path;
        http->user_agent = lkg_copy(options->user_agent);
        http->settle = lkg_remote_timer(http->event, 0, settle, http);
        return http;
}

struct lkg_http *lkg_http_free(struct lkg_http *http)
{
        if (!http)
                return NULL;
        for (struct lkg_http_transfer *t; (t = TAILQ_FIRST(&http->transfers));) {
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

/* Choose the connections for requests of @identity. */
static void choose_pool(struct lkg_http *http, const struct lkg_identity *identity)
{
        struct lkg_http_pool *pool;

        if (http->current && http->current->serial == identity->serial && !http->current->broken)
                return;
        pool = pool_new(http, identity->serial);
        pool->next = http->pools;
        http->pools = http->current = pool;
        lkg_remote_arm(http->settle, 0); /* the one before may be unused */
}

int lkg_http_start(struct lkg_http *http, struct lkg_identity *identity,
                   const struct lkg_http_request *request, struct lkg_http_transfer **ret,
                   struct lkg_error *err)
{
        LKG_CLEANUP(transfer_freep) struct lkg_http_transfer *t = NULL;
        int r = lkg_curl_load(err);

        if (r < 0)
                return r;
        t = lkg_must(calloc(1, sizeof(*t)));
        t->http = http;
        t->identity = lkg_identity_ref(identity);
        t->request = *request;
        t->result.grpc_status = -1;
        r = lkg_http_prepare(t, err);
        t->request.path = t->request.content_type = t->request.body = NULL; /* curl has copies */
        t->request.headers = NULL;
        if (r < 0)
                return r;
        choose_pool(http, identity);
        t->started_ns = t->progress_ns = lkg_boottime_ns();
        t->timer = lkg_remote_timer(http->event, LKG_NSEC_PER_MSEC, on_time, t);
        lkg_remote_arm(t->timer, due_ns(t));
        t->pool = http->current;
        TAILQ_INSERT_TAIL(&http->transfers, t, link);
        t->pool->n_transfers++;
        lkg_remote_arm(http->settle, 0);
        *ret = LKG_STEAL(t);
        return 0;
}

struct lkg_http_transfer *lkg_http_cancel(struct lkg_http_transfer *t)
{
        if (!t)
                return NULL;
        t->cancelled = true;
        lkg_remote_arm(t->timer, UINT64_MAX);
        lkg_remote_arm(t->http->settle, 0);
        return NULL;
}
