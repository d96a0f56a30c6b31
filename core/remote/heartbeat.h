/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Decides when to write the node's condition: immediately on a change, but at most once a second; again
 * about every LKG_HEARTBEAT_NS; after a failure with back-off. Pure: the clock (CLOCK_BOOTTIME) and random
 * numbers are arguments. Nothing is due before the first change.
 */
#pragma once

#include <lkg/process.h>

#define LKG_HEARTBEAT_NS       (300 * LKG_NSEC_PER_SEC)
#define LKG_HEARTBEAT_PERCENT  20u
#define LKG_HEARTBEAT_PAUSE_NS LKG_NSEC_PER_SEC /* between two that were caused by changes */

/* Zero means nothing to write yet. */
struct lkg_heartbeat {
        bool any;     /* there is something to say */
        bool sending; /* one is under way */
        bool changed; /* since it was sent */
        bool failed;  /* the last one: the next waits for the back-off */
        uint64_t begun_ns, due_ns;
        struct lkg_backoff backoff;
};

/** lkg_heartbeat_changed() - the condition has changed. */
void lkg_heartbeat_changed(struct lkg_heartbeat *heartbeat, uint64_t now_ns);
/** lkg_heartbeat_begin() - may it be sent now? If so, it counts as in flight until lkg_heartbeat_end(). */
bool lkg_heartbeat_begin(struct lkg_heartbeat *heartbeat, uint64_t now_ns);
void lkg_heartbeat_end(struct lkg_heartbeat *heartbeat, bool success, uint64_t retry_after_ns,
                       uint32_t random, uint64_t now_ns);
/** lkg_heartbeat_kick() - the obstacle may be gone: try now. */
void lkg_heartbeat_kick(struct lkg_heartbeat *heartbeat, uint64_t now_ns);
/** lkg_heartbeat_due() - return when to call lkg_heartbeat_begin() again; UINT64_MAX = no time. */
uint64_t lkg_heartbeat_due(const struct lkg_heartbeat *heartbeat);
