/* SPDX-License-Identifier: Apache-2.0 */
#include "heartbeat.h"

/* Wait a moment after the last write, because changes come in bursts. */
static uint64_t soon(const struct lkg_heartbeat *heartbeat, uint64_t now_ns)
{
        uint64_t after = heartbeat->begun_ns ? heartbeat->begun_ns + LKG_HEARTBEAT_PAUSE_NS : 0;

        return after > now_ns ? after : now_ns;
}

void lkg_heartbeat_changed(struct lkg_heartbeat *heartbeat, uint64_t now_ns)
{
        uint64_t when = soon(heartbeat, now_ns);

        heartbeat->changed = true;
        if (!heartbeat->any || (!heartbeat->failed && when < heartbeat->due_ns))
                heartbeat->due_ns = when;
        heartbeat->any = true;
}

bool lkg_heartbeat_begin(struct lkg_heartbeat *heartbeat, uint64_t now_ns)
{
        if (lkg_heartbeat_due(heartbeat) > now_ns)
                return false;
        heartbeat->sending = true;
        heartbeat->changed = false;
        heartbeat->begun_ns = now_ns;
        return true;
}

void lkg_heartbeat_end(struct lkg_heartbeat *heartbeat, bool success, uint64_t retry_after_ns,
                       uint32_t random, uint64_t now_ns)
{
        heartbeat->sending = false;
        heartbeat->failed = !success;
        if (!success) {
                heartbeat->due_ns =
                        now_ns + lkg_backoff_failed(&heartbeat->backoff, retry_after_ns, random, now_ns);
                return;
        }
        lkg_backoff_succeeded(&heartbeat->backoff, now_ns);
        heartbeat->due_ns = heartbeat->changed
                                    ? soon(heartbeat, now_ns)
                                    : now_ns + lkg_jitter(LKG_HEARTBEAT_NS, LKG_HEARTBEAT_PERCENT, random);
}

void lkg_heartbeat_kick(struct lkg_heartbeat *heartbeat, uint64_t now_ns)
{
        heartbeat->failed = false;
        heartbeat->backoff = (struct lkg_backoff){ 0 };
        if (heartbeat->any)
                lkg_heartbeat_changed(heartbeat, now_ns);
}

uint64_t lkg_heartbeat_due(const struct lkg_heartbeat *heartbeat)
{
        return heartbeat->any && !heartbeat->sending ? heartbeat->due_ns : UINT64_MAX;
}
