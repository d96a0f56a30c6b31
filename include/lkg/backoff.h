/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How long to wait before the next attempt, like client-go's reflector: 800 ms, doubled each time, at most
 * 30 s, each plus up to the same time at random, starting over after two minutes without a failure; and how
 * often to send requests at all, like client-go's default rate limiter. Pure: clock and random numbers are
 * arguments.
 */
#pragma once

#include <lkg/base.h>

#define LKG_BACKOFF_FIRST_NS   (800 * LKG_NSEC_PER_MSEC)
#define LKG_BACKOFF_MAX_NS     (30 * LKG_NSEC_PER_SEC)
#define LKG_BACKOFF_HEALTHY_NS (120 * LKG_NSEC_PER_SEC)
#define LKG_RETRY_AFTER_MAX_NS (600 * LKG_NSEC_PER_SEC) /* the limit for a server that asks for more */

/* All zero is the initial state. */
struct lkg_backoff {
        uint64_t first_ns; /* 0 = LKG_BACKOFF_FIRST_NS; otherwise all times are scaled in proportion */
        unsigned n_failures;
        uint64_t healthy_ns; /* CLOCK_BOOTTIME since when it has worked; 0 = it does not */
};

/** lkg_backoff_succeeded() - it works. Failures are forgotten after LKG_BACKOFF_HEALTHY_NS. */
void lkg_backoff_succeeded(struct lkg_backoff *backoff, uint64_t now_ns);

/**
 * lkg_backoff_failed() - how long to wait now.
 * @retry_after_ns: the server's Retry-After, a lower bound; 0 = none
 * @random:         uniform 32 bits
 * Return: nanoseconds, at least LKG_BACKOFF_FIRST_NS, or first_ns.
 */
uint64_t lkg_backoff_failed(struct lkg_backoff *backoff, uint64_t retry_after_ns, uint32_t random,
                            uint64_t now_ns);

/** lkg_jitter() - change @ns at random by up to @percent (at most 100). */
uint64_t lkg_jitter(uint64_t ns, unsigned percent, uint32_t random);

/** lkg_random() - 32 uniform bits from the kernel. */
uint32_t lkg_random(void);

/* A token bucket, stored as the time at which it will be full again. Zero is a full one. */
struct lkg_bucket {
        uint64_t full_ns;
};

/* How many tokens it holds, and how long it takes to refill one. */
struct lkg_bucket_rate {
        unsigned burst;
        uint64_t interval_ns;
};

/**
 * lkg_bucket_take() - take one token; always with the same @rate.
 * Return: 0: taken; otherwise the nanoseconds to wait before the next attempt, and nothing is taken.
 */
uint64_t lkg_bucket_take(struct lkg_bucket *bucket, const struct lkg_bucket_rate *rate, uint64_t now_ns);
