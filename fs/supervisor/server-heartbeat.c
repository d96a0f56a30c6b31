/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Does the file server still answer? Without requests there is no timer: the device is polled once for the
 * next request, which starts two checks per second of the answer counter. The device is not polled while
 * there is traffic, because each request would wake the poller.
 *
 * A server that is stopped, or whose threads all hang, leaves requests unread or unanswered while the
 * counter does not change for two seconds. It is killed, and a successor is started without waiting for its
 * end: a thread stuck in the kernel can delay that forever, and the successor takes over its requests.
 */
#include <poll.h>

#include <lkg/base.h>

#include "supervisor.h"

#define KILL_GRACE_NS (50 * LKG_NSEC_PER_MSEC) /* far more than a killed process needs normally */

static bool request_waits(const struct lkg_supervisor *s)
{
        struct pollfd p = { .fd = s->connection.device, .events = POLLIN };

        return poll(&p, 1, 0) > 0 && (p.revents & POLLIN);
}

/*
 * The oldest request that the server is handling.
 * Return: whether there is one. Requests that wait for the source directory (LKG_SLOT_HELD) do not count:
 * another server would wait for it, too.
 */
static bool oldest_busy(const struct lkg_supervisor *s, uint64_t *ret_age_ns)
{
        uint64_t now_ns = lkg_boottime_ns();
        bool busy = false;

        *ret_age_ns = 0;
        for (size_t i = 0; i < lkg_shared_slots(s->connection.shared); i++) {
                const struct lkg_slot *slot = lkg_shared_slot(s->connection.shared, i);
                const struct fuse_in_header *header = (const void *)slot->buf;
                uint32_t state = atomic_load(&slot->state);
                uint64_t since_ns = atomic_load(&slot->since_ns), age_ns;

                if (state == LKG_SLOT_BUSY)
                        age_ns = now_ns > since_ns ? now_ns - since_ns : 0;
                else if (state == LKG_SLOT_READING && *(const volatile uint32_t *)&header->len != 0)
                        age_ns = LKG_HEARTBEAT_HUNG_NS; /* handed out, not started: two ticks decide */
                else
                        continue;
                busy = true;
                *ret_age_ns = age_ns > *ret_age_ns ? age_ns : *ret_age_ns;
        }
        return busy;
}

static void replace_hung(struct lkg_supervisor *s)
{
        struct lkg_child *server = &s->children[LKG_CHILD_SERVER];

        lkg_child_log(server, LOG_ERR,
                      "(pid %d) has answered nothing for %u s while requests wait: killed and replaced",
                      (int)server->pid, (unsigned)(LKG_HEARTBEAT_HUNG_NS / LKG_NSEC_PER_SEC));
        atomic_store(&s->connection.shared->crashed, 0);
        lkg_child_abandon(server, KILL_GRACE_NS);
        lkg_child_start(s, LKG_CHILD_SERVER);
}

static void tick_later(struct lkg_supervisor *s);

static void on_tick(void *userdata)
{
        struct lkg_supervisor *s = userdata;
        uint64_t served = atomic_load(&s->connection.shared->served), age_ns;
        bool busy = oldest_busy(s, &age_ns);

        if (lkg_connection_dead(&s->connection)) {
                s->life->connection_lost(s);
                return;
        }
        switch (lkg_heartbeat_tick(&s->heartbeat, served, request_waits(s), busy, age_ns)) {
        case LKG_HEARTBEAT_IDLE:
                lkg_heartbeat_arm(s);
                return;
        case LKG_HEARTBEAT_HUNG:
                if (lkg_child_running(&s->children[LKG_CHILD_SERVER])) /* between two starts there is none */
                        replace_hung(s);
                break;
        case LKG_HEARTBEAT_WATCH:
                break;
        }
        tick_later(s);
}

static void tick_later(struct lkg_supervisor *s)
{
        if (lkg_timer_set(&s->heartbeat_timer, s->event, LKG_HEARTBEAT_TICK_NS, 50 * LKG_NSEC_PER_MSEC,
                          on_tick, s) < 0)
                lkg_log_error("no timer for the heartbeat of the file server: out of memory");
}

static int on_request(sd_event_source *source, int fd, uint32_t revents, void *userdata)
{
        struct lkg_supervisor *s = userdata;

        (void)source;
        (void)fd;
        if (revents & (EPOLLERR | EPOLLHUP)) {
                s->life->connection_lost(s);
                return 0;
        }
        lkg_heartbeat_start(&s->heartbeat, atomic_load(&s->connection.shared->served));
        tick_later(s);
        lkg_watchdog_wake(s);
        return 0;
}

void lkg_heartbeat_arm(struct lkg_supervisor *s)
{
        int r = 0;

        lkg_timer_stop(&s->heartbeat_timer);
        if (!s->device_source)
                r = sd_event_add_io(s->event, &s->device_source, s->connection.device, EPOLLIN, on_request,
                                    s);
        if (r >= 0)
                r = sd_event_source_set_enabled(s->device_source, SD_EVENT_ONESHOT);
        if (r < 0)
                lkg_log_error("the heartbeat of the file server cannot be watched: %s", strerror(-r));
}

void lkg_heartbeat_disarm(struct lkg_supervisor *s)
{
        lkg_timer_stop(&s->heartbeat_timer);
        s->device_source = sd_event_source_disable_unref(s->device_source);
}
