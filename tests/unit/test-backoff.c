/* SPDX-License-Identifier: Apache-2.0 */
/* Back-off: the numbers of client-go's reflector and rate limiter. Rule: docs/specification.md 5. */

#include <lkg/process.h>

#include "unit.h"

#define S    LKG_NSEC_PER_SEC
#define MS   LKG_NSEC_PER_MSEC
#define NOW  (1000 * S)
#define MOST UINT32_MAX

TEST(test_doubles_up_to_its_maximum)
{
        static const uint64_t want_ms[] = { 800, 1600, 3200, 6400, 12800, 25600, 30000, 30000, 30000 };
        struct lkg_backoff backoff = { 0 };

        for (size_t i = 0; i < LKG_ARRAY_SIZE(want_ms); i++)
                assert_int_equal(lkg_backoff_failed(&backoff, 0, 0, NOW), want_ms[i] * MS);
        for (unsigned i = 0; i < 1000; i++)
                assert_int_equal(lkg_backoff_failed(&backoff, 0, 0, NOW), LKG_BACKOFF_MAX_NS);
}

TEST(test_jitter_adds_up_to_as_much_again)
{
        struct lkg_backoff backoff = { 0 };
        uint64_t ns = lkg_backoff_failed(&backoff, 0, MOST, NOW);

        assert_in_range(ns, 1600 * MS - 10, 1600 * MS);
        ns = lkg_backoff_failed(&backoff, 0, MOST / 2, NOW);
        assert_in_range(ns, 2400 * MS - 10, 2400 * MS);
}

TEST(test_two_minutes_of_health_forget_failures)
{
        struct lkg_backoff backoff = { 0 };

        for (unsigned i = 0; i < 5; i++)
                (void)lkg_backoff_failed(&backoff, 0, 0, NOW);
        lkg_backoff_succeeded(&backoff, NOW);
        assert_int_equal(lkg_backoff_failed(&backoff, 0, 0, NOW + 119 * S), 25600 * MS);
        lkg_backoff_succeeded(&backoff, NOW + 200 * S);
        lkg_backoff_succeeded(&backoff, NOW + 300 * S); /* still since 200 */
        assert_int_equal(lkg_backoff_failed(&backoff, 0, 0, NOW + 320 * S), 800 * MS);
}

TEST(test_health_counts_to_the_failure_not_to_the_last_success)
{
        struct lkg_backoff backoff = { 0 };

        for (unsigned i = 0; i < 5; i++)
                (void)lkg_backoff_failed(&backoff, 0, 0, NOW);
        lkg_backoff_succeeded(&backoff, NOW); /* a watch opens and stays open */
        assert_int_equal(lkg_backoff_failed(&backoff, 0, 0, NOW + 3600 * S), 800 * MS);
}

TEST(test_retry_after_is_a_lower_bound_with_a_limit)
{
        struct lkg_backoff backoff = { 0 };
        uint64_t ns;

        assert_int_equal(lkg_backoff_failed(&backoff, 5 * S, 0, NOW), 5 * S);
        assert_int_equal(lkg_backoff_failed(&backoff, 1 * S, 0, NOW), 1600 * MS);
        assert_int_equal(lkg_backoff_failed(&backoff, 86400 * S, 0, NOW), LKG_RETRY_AFTER_MAX_NS);
        ns = lkg_backoff_failed(&backoff, 60 * S, MOST, NOW); /* all nodes were told 60 s: spread out */
        assert_in_range(ns, 66 * S, 66400 * MS);
}

TEST(test_jitter_stays_within_its_percentage)
{
        assert_int_equal(lkg_jitter(60 * S, 25, 0), 45 * S);
        assert_in_range(lkg_jitter(60 * S, 25, MOST), 75 * S - 10, 75 * S);
        assert_in_range(lkg_jitter(60 * S, 25, MOST / 2), 60 * S - 10, 60 * S);
        assert_int_equal(lkg_jitter(60 * S, 0, MOST), 60 * S);
        assert_int_equal(lkg_jitter(60 * S, 200, 0), 0);
        assert_int_equal(lkg_jitter(0, 25, MOST), 0);
}

static const struct lkg_bucket_rate rate = { .burst = 10, .interval_ns = 200 * MS };

TEST(test_bucket_allows_a_burst_and_then_a_rate)
{
        struct lkg_bucket bucket = { 0 };
        uint64_t now = NOW, wait;

        for (unsigned i = 0; i < 10; i++)
                assert_int_equal(lkg_bucket_take(&bucket, &rate, now), 0);
        wait = lkg_bucket_take(&bucket, &rate, now);
        assert_int_equal(wait, 200 * MS);
        assert_int_equal(lkg_bucket_take(&bucket, &rate, now + wait - 1), 1); /* asking takes no token */
        for (unsigned i = 0; i < 50; i++) {
                now += 200 * MS;
                assert_int_equal(lkg_bucket_take(&bucket, &rate, now), 0);
                assert_true(lkg_bucket_take(&bucket, &rate, now) > 0);
        }
}

TEST(test_bucket_fills_up_to_the_burst_only)
{
        struct lkg_bucket bucket = { 0 };

        for (unsigned i = 0; i < 10; i++)
                assert_int_equal(lkg_bucket_take(&bucket, &rate, NOW), 0);
        for (unsigned i = 0; i < 10; i++)
                assert_int_equal(lkg_bucket_take(&bucket, &rate, NOW + 3600 * S), 0);
        assert_true(lkg_bucket_take(&bucket, &rate, NOW + 3600 * S) > 0);
}
