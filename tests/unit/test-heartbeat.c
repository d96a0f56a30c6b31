/* SPDX-License-Identifier: Apache-2.0 */
/* When the node's condition is written. Rule: docs/specification.md 5. */
#include "unit.h"
#include "core/remote/outbox.h"

#define S     LKG_NSEC_PER_SEC
#define MS    LKG_NSEC_PER_MSEC
#define NOW   (1000 * S)
#define NEVER UINT64_MAX

TEST(test_nothing_to_say)
{
        struct lkg_heartbeat h = { 0 };

        assert_int_equal(lkg_heartbeat_due(&h), NEVER);
        lkg_heartbeat_kick(&h, NOW);
        assert_int_equal(lkg_heartbeat_due(&h), NEVER);
        assert_false(lkg_heartbeat_begin(&h, NOW));
}

TEST(test_a_change_at_once_and_again_after_five_minutes)
{
        struct lkg_heartbeat h = { 0 };

        lkg_heartbeat_changed(&h, NOW);
        assert_int_equal(lkg_heartbeat_due(&h), NOW);
        assert_true(lkg_heartbeat_begin(&h, NOW));
        assert_false(lkg_heartbeat_begin(&h, NOW)); /* one at a time */
        assert_int_equal(lkg_heartbeat_due(&h), NEVER);
        lkg_heartbeat_end(&h, true, 0, 0, NOW + 10 * MS);
        assert_int_equal(lkg_heartbeat_due(&h), NOW + 10 * MS + 240 * S); /* 5 min - 20 % */
        assert_false(lkg_heartbeat_begin(&h, NOW + 240 * S));
        assert_true(lkg_heartbeat_begin(&h, NOW + 241 * S));
        lkg_heartbeat_end(&h, true, 0, UINT32_MAX, NOW + 241 * S);
        assert_in_range(lkg_heartbeat_due(&h), NOW + 241 * S + 359999 * MS, NOW + 241 * S + 360 * S);
}

TEST(test_changes_at_most_once_a_second)
{
        struct lkg_heartbeat h = { 0 };

        lkg_heartbeat_changed(&h, NOW);
        (void)lkg_heartbeat_begin(&h, NOW);
        lkg_heartbeat_changed(&h, NOW + 1 * MS); /* while it is in flight */
        lkg_heartbeat_end(&h, true, 0, 0, NOW + 10 * MS);
        assert_int_equal(lkg_heartbeat_due(&h), NOW + 1 * S);
        lkg_heartbeat_changed(&h, NOW + 500 * MS);
        assert_int_equal(lkg_heartbeat_due(&h), NOW + 1 * S);
        assert_true(lkg_heartbeat_begin(&h, NOW + 1 * S));
        lkg_heartbeat_end(&h, true, 0, 0, NOW + 1010 * MS);
        lkg_heartbeat_changed(&h, NOW + 1020 * MS); /* afterwards */
        assert_int_equal(lkg_heartbeat_due(&h), NOW + 2 * S);
        lkg_heartbeat_changed(&h, NOW + 10 * S);
        assert_int_equal(lkg_heartbeat_due(&h), NOW + 2 * S);
}

TEST(test_failures_back_off_whatever_changes)
{
        struct lkg_heartbeat h = { 0 };

        lkg_heartbeat_changed(&h, NOW);
        (void)lkg_heartbeat_begin(&h, NOW);
        lkg_heartbeat_end(&h, false, 0, 0, NOW + 10 * MS);
        assert_int_equal(lkg_heartbeat_due(&h), NOW + 810 * MS);
        lkg_heartbeat_changed(&h, NOW + 20 * MS);
        assert_int_equal(lkg_heartbeat_due(&h), NOW + 810 * MS);
        (void)lkg_heartbeat_begin(&h, NOW + 810 * MS);
        lkg_heartbeat_end(&h, false, 9 * S, 0, NOW + 820 * MS);
        lkg_heartbeat_changed(&h, NOW + 5 * S);
        assert_int_equal(lkg_heartbeat_due(&h), NOW + 9820 * MS);
        lkg_heartbeat_kick(&h, NOW + 6 * S);
        assert_int_equal(lkg_heartbeat_due(&h), NOW + 6 * S);
        (void)lkg_heartbeat_begin(&h, NOW + 6 * S);
        lkg_heartbeat_end(&h, false, 0, 0, NOW + 6 * S); /* from the start */
        assert_int_equal(lkg_heartbeat_due(&h), NOW + 6800 * MS);
}
