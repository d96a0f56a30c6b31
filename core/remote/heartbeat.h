/* SPDX-License-Identifier: Apache-2.0 */
/*
 * When the node's condition is written: at once when it changes, though at most once a second; again every LKG_HEARTBEAT_NS,
 * more or less; after a failure with back-off. Pure: clock and dice are arguments (CLOCK_BOOTTIME). Nothing is due before the
 * first change.
 */
#pragma once

#include <lkg/backoff.h>

#define LKG_HEARTBEAT_NS       (300 * LKG_NSEC_PER_SEC)
#define LKG_HEARTBEAT_PERCENT  20u
#define LKG_HEARTBEAT_PAUSE_NS LKG_NSEC_PER_SEC /* between two that were caused by changes */

/* Zero is one that has nothing to say yet. */
struct lkg_heartbeat {
        bool any;     /* there is something to say */
        bool sending; /* one is under way */
        bool changed; /* since it was sent */
        bool failed;  /* the last one: the next waits for the back-off */
        uint64_t begun_ns, due_ns;
        struct lkg_backoff backoff;
};

/** lkg_heartbeat_changed() - the condition is another one now. */
void lkg_heartbeat_changed(struct lkg_heartbeat *heartbeat, uint64_t now_ns);
/** lkg_heartbeat_begin() - may it be sent now? Then it counts as under way until lkg_heartbeat_end(). */
bool lkg_heartbeat_begin(struct lkg_heartbeat *heartbeat, uint64_t now_ns);
void lkg_heartbeat_end(struct lkg_heartbeat *heartbeat, bool success, uint64_t retry_after_ns,
                       uint32_t random, uint64_t now_ns);
/** lkg_heartbeat_kick() - the obstacle may be gone: try now. */
void lkg_heartbeat_kick(struct lkg_heartbeat *heartbeat, uint64_t now_ns);
/** lkg_heartbeat_due() - when to ask lkg_heartbeat_begin() again; UINT64_MAX = not because of time. */
uint64_t lkg_heartbeat_due(const struct lkg_heartbeat *heartbeat);
