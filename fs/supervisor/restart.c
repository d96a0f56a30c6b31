/* SPDX-License-Identifier: Apache-2.0 */
#include "restart.h"

#define MSEC LKG_NSEC_PER_MSEC
#define SEC  LKG_NSEC_PER_SEC

const struct lkg_restart_pace lkg_restart_server = { .n_free = 3, .first_ns = 10 * MSEC, .max_ns = 1 * SEC };
const struct lkg_restart_pace lkg_restart_refused = { .n_free = 0,
                                                      .first_ns = 100 * MSEC,
                                                      .max_ns = 5 * SEC };
const struct lkg_restart_pace lkg_restart_engine = { .n_free = 1, .first_ns = 50 * MSEC, .max_ns = 1 * SEC };
const struct lkg_restart_pace lkg_restart_fatal = { .n_free = 0, .first_ns = 10 * SEC, .max_ns = 10 * SEC };
const struct lkg_restart_pace lkg_restart_notifier = { .n_free = 1,
                                                       .first_ns = 50 * MSEC,
                                                       .max_ns = 1 * SEC };
const struct lkg_restart_pace lkg_restart_mount = { .n_free = 2, .first_ns = 100 * MSEC, .max_ns = 5 * SEC };

uint64_t lkg_restart_pause_ns(struct lkg_restart *restart, const struct lkg_restart_pace *policy, bool early)
{
        uint64_t pause = policy->first_ns;

        if (!early) {
                restart->n_early = 0;
                return 0;
        }
        if (restart->n_early < UINT32_MAX)
                restart->n_early++;
        if (restart->n_early <= policy->n_free)
                return 0;
        for (unsigned i = policy->n_free + 1; i < restart->n_early && pause < policy->max_ns; i++)
                pause *= 2;
        return pause < policy->max_ns ? pause : policy->max_ns;
}

void lkg_heartbeat_start(struct lkg_server_heartbeat *heartbeat, uint64_t served)
{
        *heartbeat = (struct lkg_server_heartbeat){ .served = served };
}

enum lkg_heartbeat_verdict lkg_heartbeat_tick(struct lkg_server_heartbeat *heartbeat, uint64_t served,
                                              bool waiting, bool busy, uint64_t busy_age_ns)
{
        if (served != heartbeat->served) {
                lkg_heartbeat_start(heartbeat, served);
                return LKG_HEARTBEAT_WATCH;
        }
        if (!waiting && !busy)
                return LKG_HEARTBEAT_IDLE;
        heartbeat->n_still++;
        if (heartbeat->n_still * LKG_HEARTBEAT_TICK_NS < LKG_HEARTBEAT_HUNG_NS)
                return LKG_HEARTBEAT_WATCH;
        if (waiting || busy_age_ns >= LKG_HEARTBEAT_HUNG_NS)
                return LKG_HEARTBEAT_HUNG;
        return LKG_HEARTBEAT_WATCH;
}

bool lkg_log_limit_pass(struct lkg_log_limit *limit, uint64_t now_ns, unsigned *ret_dropped)
{
        if (now_ns - limit->window_ns >= LKG_NSEC_PER_SEC) {
                limit->window_ns = now_ns;
                limit->n = 0;
        }
        if (limit->n >= LKG_LOG_BURST) {
                limit->n_dropped++;
                return false;
        }
        limit->n++;
        *ret_dropped = limit->n_dropped;
        limit->n_dropped = 0;
        return true;
}
