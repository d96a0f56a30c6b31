/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Decisions of the supervisor without any I/O: how long to wait before a child is started again, whether a
 * file server hangs, whether a message may still be logged. The caller passes in the time.
 */
#pragma once

#include <lkg/base.h>

/* How fast one kind of child is started again. */
struct lkg_restart_pace {
        unsigned n_free;           /* this many early deaths in a row cause no pause */
        uint64_t first_ns, max_ns; /* the pause after them, doubled with each further one */
};

/* Deaths of one child before it was of any use. */
struct lkg_restart {
        unsigned n_early;
};

extern const struct lkg_restart_pace lkg_restart_server;  /* callers wait for it: pauses stay short */
extern const struct lkg_restart_pace lkg_restart_refused; /* file server of another build (exit 77) */
extern const struct lkg_restart_pace lkg_restart_engine;
extern const struct lkg_restart_pace lkg_restart_fatal; /* an engine that sent FATAL while running */
extern const struct lkg_restart_pace lkg_restart_notifier;
extern const struct lkg_restart_pace lkg_restart_mount; /* an aborted connection is mounted again */

/**
 * lkg_restart_pause_ns() - a child died: how long until the next start.
 * @early: it died before it was of any use; false forgets all earlier deaths
 *
 * Return: nanoseconds, 0 = at once.
 */
uint64_t lkg_restart_pause_ns(struct lkg_restart *restart, const struct lkg_restart_pace *policy,
                              bool early);

#define LKG_HEARTBEAT_TICK_NS (500 * LKG_NSEC_PER_MSEC)
/* docs/specification.md 7: a request older than 2 s without a heartbeat */
#define LKG_HEARTBEAT_HUNG_NS (2 * LKG_NSEC_PER_SEC)

enum lkg_heartbeat_verdict {
        LKG_HEARTBEAT_IDLE,  /* nothing to do and nothing done: stop checking until the next request */
        LKG_HEARTBEAT_WATCH, /* check again in one tick */
        LKG_HEARTBEAT_HUNG,  /* requests wait and none was answered for LKG_HEARTBEAT_HUNG_NS */
};

struct lkg_server_heartbeat {
        uint64_t served;  /* counter at the last tick */
        unsigned n_still; /* ticks in a row without progress */
};

/** lkg_heartbeat_start() - start watching: @served is the current counter. */
void lkg_heartbeat_start(struct lkg_server_heartbeat *heartbeat, uint64_t served);
/**
 * lkg_heartbeat_tick() - one tick (LKG_HEARTBEAT_TICK_NS) has passed.
 * @served:      requests answered or parked so far
 * @waiting:     the kernel has an unread request
 * @busy:        some request was read and not answered
 * @busy_age_ns: age of the oldest such request
 *
 * A slow request while others are served is not a hang.
 */
enum lkg_heartbeat_verdict lkg_heartbeat_tick(struct lkg_server_heartbeat *heartbeat, uint64_t served,
                                              bool waiting, bool busy, uint64_t busy_age_ns);

/* At most LKG_LOG_BURST lines per second, then only a count. */
#define LKG_LOG_BURST 10u

struct lkg_log_limit {
        uint64_t window_ns; /* start of the current second */
        unsigned n, n_dropped;
};

/**
 * lkg_log_limit_pass() - may one more line be logged at @now_ns?
 * @ret_dropped: lines dropped in earlier seconds, to be logged with this one; set if true is returned
 */
bool lkg_log_limit_pass(struct lkg_log_limit *limit, uint64_t now_ns, unsigned *ret_dropped);
