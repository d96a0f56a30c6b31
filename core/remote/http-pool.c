/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A multi handle on the event loop: curl names descriptors and timeouts, and the loop notifies curl about
 * them.
 */
#include <sys/epoll.h>

#include "http-internal.h"

#define IDLE_CONNECTIONS_MAX 4L
#define ACCURACY_USEC        1000u

static void act(struct lkg_http_pool *pool, curl_socket_t fd, int mask)
{
        int n_running;

        /* Only lack of memory or a failed callback of ours: this handle is unusable from now on. */
        if (!pool->broken && lkg_curl.multi_socket_action(pool->multi, fd, mask, &n_running) != CURLM_OK)
                pool->broken = true;
        pool->worked(pool);
}

static int on_io(sd_event_source *source, int fd, uint32_t revents, void *userdata)
{
        int mask = 0;

        (void)source;
        if (revents & (EPOLLIN | EPOLLRDHUP | EPOLLHUP))
                mask |= CURL_CSELECT_IN;
        if (revents & EPOLLOUT)
                mask |= CURL_CSELECT_OUT;
        if (revents & EPOLLERR)
                mask |= CURL_CSELECT_ERR;
        act(userdata, fd, mask);
        return 0;
}

static int on_time(sd_event_source *source, uint64_t usec, void *userdata)
{
        (void)source;
        (void)usec;
        act(userdata, CURL_SOCKET_TIMEOUT, 0);
        return 0;
}

/* CURLMOPT_SOCKETFUNCTION; @known is the event source of @fd once there is one. */
static int want_io(CURL *easy, curl_socket_t fd, int what, void *userdata, void *known)
{
        struct lkg_http_pool *pool = userdata;
        sd_event_source *source = known;
        uint32_t events = (what & CURL_POLL_IN ? EPOLLIN : 0u) | (what & CURL_POLL_OUT ? EPOLLOUT : 0u);

        (void)easy;
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

        (void)multi;
        if (timeout_ms < 0)
                return sd_event_source_set_enabled(pool->timer, SD_EVENT_OFF) < 0 ? -1 : 0;
        /* Not the loop's cached time, which may be as old as the longest callback of this turn. */
        if (sd_event_source_set_time(pool->timer, lkg_boottime_ns() / 1000 + (uint64_t)timeout_ms * 1000) <
                    0 ||
            sd_event_source_set_enabled(pool->timer, SD_EVENT_ONESHOT) < 0)
                return -1;
        return 0;
}

static int configure(struct lkg_http_pool *pool)
{
        CURLM *m = pool->multi;

        return lkg_curl.multi_setopt(m, CURLMOPT_SOCKETFUNCTION, want_io) == CURLM_OK &&
                               lkg_curl.multi_setopt(m, CURLMOPT_SOCKETDATA, pool) == CURLM_OK &&
                               lkg_curl.multi_setopt(m, CURLMOPT_TIMERFUNCTION, want_time) == CURLM_OK &&
                               lkg_curl.multi_setopt(m, CURLMOPT_TIMERDATA, pool) == CURLM_OK &&
                               lkg_curl.multi_setopt(m, CURLMOPT_PIPELINING, CURLPIPE_MULTIPLEX) ==
                                       CURLM_OK &&
                               lkg_curl.multi_setopt(m, CURLMOPT_MAXCONNECTS, IDLE_CONNECTIONS_MAX) ==
                                       CURLM_OK
                       ? 0
                       : -EINVAL;
}

int lkg_http_pool_new(struct lkg_http *http, uint64_t serial, void (*worked)(struct lkg_http_pool *pool),
                      struct lkg_http_pool **ret, struct lkg_error *err)
{
        struct lkg_http_pool *pool = calloc(1, sizeof(*pool));
        int r;

        if (!pool)
                return lkg_error_set(err, -ENOMEM, NULL, "connections to the API server");
        pool->http = http;
        pool->serial = serial;
        pool->worked = worked;
        r = sd_event_add_time(http->event, &pool->timer, CLOCK_BOOTTIME, 0, ACCURACY_USEC, on_time, pool);
        if (r >= 0)
                r = sd_event_source_set_priority(pool->timer, LKG_REMOTE_PRIORITY);
        if (r >= 0)
                r = sd_event_source_set_enabled(pool->timer, SD_EVENT_OFF);
        pool->multi = r >= 0 ? lkg_curl.multi_init() : NULL;
        if (r >= 0)
                r = pool->multi ? configure(pool) : -ENOMEM;
        if (r < 0) {
                (void)lkg_http_pool_free(pool);
                return lkg_error_set(err, r, NULL, "connections to the API server");
        }
        *ret = pool;
        return 0;
}

struct lkg_http_pool *lkg_http_pool_free(struct lkg_http_pool *pool)
{
        if (!pool)
                return NULL;
        if (pool->multi)
                (void)lkg_curl.multi_cleanup(
                        pool->multi); /* takes back its descriptors, so the timer goes after it */
        sd_event_source_disable_unref(pool->timer);
        free(pool);
        return NULL;
}
