/* SPDX-License-Identifier: Apache-2.0 */
#include <sys/random.h>

#include <lkg/process.h>

#define DOUBLINGS_MAX 6u /* 800 ms << 6 is over 30 s */

static uint64_t share(uint64_t ns, uint32_t random)
{
        return (uint64_t)((unsigned __int128)ns * random >> 32);
}

static bool has_been_healthy(const struct lkg_backoff *backoff, uint64_t now_ns)
{
        return backoff->healthy_ns > 0 && now_ns > backoff->healthy_ns &&
               now_ns - backoff->healthy_ns >= LKG_BACKOFF_HEALTHY_NS;
}

void lkg_backoff_succeeded(struct lkg_backoff *backoff, uint64_t now_ns)
{
        if (backoff->healthy_ns == 0)
                backoff->healthy_ns = now_ns;
        if (has_been_healthy(backoff, now_ns))
                backoff->n_failures = 0;
}

uint64_t lkg_backoff_failed(struct lkg_backoff *backoff, uint64_t retry_after_ns, uint32_t random,
                            uint64_t now_ns)
{
        const uint64_t first_ns = backoff->first_ns ? backoff->first_ns : LKG_BACKOFF_FIRST_NS;
        const uint64_t max_ns = first_ns * (LKG_BACKOFF_MAX_NS / LKG_NSEC_PER_MSEC) /
                                (LKG_BACKOFF_FIRST_NS / LKG_NSEC_PER_MSEC);
        uint64_t ns;

        /*
         * Health is checked here too: a watch that stays open for an hour reports it once, at the beginning.
         */
        if (has_been_healthy(backoff, now_ns))
                backoff->n_failures = 0;
        backoff->healthy_ns = 0;
        ns = first_ns << (backoff->n_failures < DOUBLINGS_MAX ? backoff->n_failures : DOUBLINGS_MAX);
        if (ns > max_ns)
                ns = max_ns;
        if (backoff->n_failures < DOUBLINGS_MAX)
                backoff->n_failures++;
        if (retry_after_ns > LKG_RETRY_AFTER_MAX_NS)
                retry_after_ns = LKG_RETRY_AFTER_MAX_NS;
        /* Many nodes may get the same Retry-After; they must not all retry at the same moment. */
        return (ns > retry_after_ns ? ns : retry_after_ns) + share(ns, random);
}

uint64_t lkg_jitter(uint64_t ns, unsigned percent, uint32_t random)
{
        uint64_t width = (uint64_t)((unsigned __int128)ns * (percent < 100 ? percent : 100) / 100);

        return ns - width + share(2 * width, random);
}

uint32_t lkg_random(void)
{
        uint32_t random;

        /*
         * Random bytes are missing only early in a boot, before the kernel's pool is filled; then the clock
         * spreads well enough.
         */
        if (getrandom(&random, sizeof(random), GRND_NONBLOCK) != (ssize_t)sizeof(random))
                random = (uint32_t)(lkg_boottime_ns() * UINT64_C(0x9e3779b97f4a7c15) >> 32);
        return random;
}

uint64_t lkg_bucket_take(struct lkg_bucket *bucket, const struct lkg_bucket_rate *rate, uint64_t now_ns)
{
        const uint64_t depth_ns = (rate->burst - 1) * rate->interval_ns;
        uint64_t full_ns = bucket->full_ns > now_ns ? bucket->full_ns : now_ns;

        if (full_ns - now_ns > depth_ns)
                return full_ns - now_ns - depth_ns;
        bucket->full_ns = full_ns + rate->interval_ns;
        return 0;
}
