/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How long to wait before the next try, as client-go's reflector waits: 800 ms, twice as long each time, 30 s at most, each
 * with up to as much again at random, from the beginning after two minutes of health; and how often to ask at all, as
 * client-go's default rate limiter has it. Pure: clock and dice are arguments.
 */
#pragma once

#include <lkg/base.h>

#define LKG_BACKOFF_FIRST_NS   (800 * LKG_NSEC_PER_MSEC)
#define LKG_BACKOFF_MAX_NS     (30 * LKG_NSEC_PER_SEC)
#define LKG_BACKOFF_HEALTHY_NS (120 * LKG_NSEC_PER_SEC)
#define LKG_RETRY_AFTER_MAX_NS (600 * LKG_NSEC_PER_SEC) /* a server that asks for more gets this */

/* Zero is a fresh one. */
struct lkg_backoff {
        uint64_t
                first_ns; /* 0 = LKG_BACKOFF_FIRST_NS; else all of them are as many times shorter or longer */
        unsigned n_failures;
        uint64_t healthy_ns; /* CLOCK_BOOTTIME since when it works; 0 = it does not */
};

/** lkg_backoff_succeeded() - it works. Failures are forgotten when it has worked for LKG_BACKOFF_HEALTHY_NS. */
void lkg_backoff_succeeded(struct lkg_backoff *backoff, uint64_t now_ns);

/**
 * lkg_backoff_failed() - how long to wait now.
 * @retry_after_ns: the server's Retry-After, a lower bound; 0 = none
 * @random:         uniform 32 bits
 * Return: nanoseconds, at least LKG_BACKOFF_FIRST_NS, or first_ns.
 */
uint64_t lkg_backoff_failed(struct lkg_backoff *backoff, uint64_t retry_after_ns, uint32_t random,
                            uint64_t now_ns);

/** lkg_jitter() - @ns, more or less by up to @percent (at most 100) at random. */
uint64_t lkg_jitter(uint64_t ns, unsigned percent, uint32_t random);

/** lkg_random() - 32 uniform bits from the kernel. */
uint32_t lkg_random(void);

/* A token bucket, as the time at which it would be full again. Zero is a full one. */
struct lkg_bucket {
        uint64_t full_ns;
};

/* How many tokens it holds, and how long one takes to come back. */
struct lkg_bucket_rate {
        unsigned burst;
        uint64_t interval_ns;
};

/**
 * lkg_bucket_take() - one token; always with the same @rate.
 * Return: 0: taken; else nanoseconds to wait before asking again, nothing is taken.
 */
uint64_t lkg_bucket_take(struct lkg_bucket *bucket, const struct lkg_bucket_rate *rate, uint64_t now_ns);
