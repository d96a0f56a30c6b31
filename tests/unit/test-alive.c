/* SPDX-License-Identifier: Apache-2.0 */
/* When an engine counts as silent, and when as hung. Time is simulated. Rule: docs/specification.md 2.14. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "fs/supervisor/alive.h"

#define SEC   LKG_NSEC_PER_SEC
#define TICK  LKG_ALIVE_TICK_NS
#define LIMIT (3 * SEC)

static void test_one_that_answers_is_asked_again(void **state)
{
        struct lkg_alive alive = { 0 };
        uint64_t now = SEC;

        (void)state;
        for (int i = 0; i < 100; i++, now += TICK) {
                uint64_t ticket;

                assert_int_equal(lkg_alive_tick(&alive, now, LIMIT, false), LKG_ALIVE_ASK);
                ticket = lkg_alive_asked(&alive, now, 7);
                assert_false(lkg_alive_answered(&alive, ticket - 1)); /* of an earlier engine */
                assert_true(lkg_alive_answered(&alive, ticket));
                assert_false(lkg_alive_answered(&alive, ticket));
        }
}

static void test_silence_is_told_and_ends(void **state)
{
        const enum lkg_alive_verdict want[] = { LKG_ALIVE_WAIT,   LKG_ALIVE_SILENT, LKG_ALIVE_SILENT,
                                                LKG_ALIVE_SILENT, LKG_ALIVE_SILENT, LKG_ALIVE_HUNG,
                                                LKG_ALIVE_HUNG };
        struct lkg_alive alive = { 0 };
        uint64_t now = SEC;

        (void)state;
        (void)lkg_alive_asked(&alive, now, 7);
        assert_int_equal(alive.asked_wall_ns, 7);
        for (size_t i = 0; i < LKG_ARRAY_SIZE(want); i++)
                assert_int_equal(lkg_alive_tick(&alive, now += TICK, LIMIT, false), want[i]);
        lkg_alive_forget(&alive); /* it was replaced */
        assert_int_equal(lkg_alive_tick(&alive, now += TICK, LIMIT, false), LKG_ALIVE_ASK);
}

static void test_work_stops_the_clock(void **state)
{
        struct lkg_alive alive = { 0 };
        uint64_t now = SEC;

        (void)state;
        (void)lkg_alive_asked(&alive, now, 0);
        for (int i = 0; i < 100; i++)
                assert_int_equal(lkg_alive_tick(&alive, now += TICK, LIMIT, true), LKG_ALIVE_WORKS);
        assert_int_equal(lkg_alive_tick(&alive, now += TICK, LIMIT, false), LKG_ALIVE_WAIT);
        for (int i = 0; i < 4; i++)
                assert_int_equal(lkg_alive_tick(&alive, now += TICK, LIMIT, false), LKG_ALIVE_SILENT);
        assert_int_equal(lkg_alive_tick(&alive, now += TICK, LIMIT, false), LKG_ALIVE_HUNG);
}

static void test_work_that_leaves_no_trace_is_stuck(void **state)
{
        struct lkg_progress p = { 0 };
        uint64_t now = SEC, trace = 5;

        (void)state;
        /* Nothing to do gives no reason to check again. */
        assert_int_equal(lkg_progress_look(&p, false, false, trace, now, LIMIT), LKG_PROGRESS_NONE);
        now += 3600 * SEC;
        /* As long as anything moves, it may take any time. */
        for (int i = 0; i < 100; i++, now += TICK)
                assert_int_equal(lkg_progress_look(&p, true, false, ++trace, now, LIMIT),
                                 LKG_PROGRESS_WATCH);
        now -= TICK;
        for (int i = 0; i < 5; i++)
                assert_int_equal(lkg_progress_look(&p, true, false, trace, now += TICK, LIMIT),
                                 LKG_PROGRESS_WATCH);
        assert_int_equal(lkg_progress_look(&p, true, false, trace, now += TICK, LIMIT), LKG_PROGRESS_STUCK);
}

static void test_one_that_is_stopped_is_stuck_without_work(void **state)
{
        struct lkg_progress p = { 0 };
        uint64_t now = SEC;

        (void)state;
        assert_int_equal(lkg_progress_look(&p, false, false, 1, now, LIMIT), LKG_PROGRESS_NONE);
        /* The first check after a long pause counts as two ticks. */
        assert_int_equal(lkg_progress_look(&p, false, true, 1, now += 60 * SEC, LIMIT), LKG_PROGRESS_WATCH);
        for (int i = 0; i < 3; i++)
                assert_int_equal(lkg_progress_look(&p, false, true, 1, now += TICK, LIMIT),
                                 LKG_PROGRESS_WATCH);
        /* It continues just in time. */
        assert_int_equal(lkg_progress_look(&p, false, false, 1, now += TICK, LIMIT), LKG_PROGRESS_NONE);
        for (int i = 0; i < 5; i++)
                assert_int_equal(lkg_progress_look(&p, false, true, 1, now += TICK, LIMIT),
                                 LKG_PROGRESS_WATCH);
        assert_int_equal(lkg_progress_look(&p, false, true, 1, now += TICK, LIMIT), LKG_PROGRESS_STUCK);
}

static void test_whoever_was_stopped_itself_blames_nobody(void **state)
{
        struct lkg_alive alive = { 0 };

        (void)state;
        (void)lkg_alive_asked(&alive, SEC, 0);
        assert_int_equal(lkg_alive_tick(&alive, 3600 * SEC, LIMIT, false), LKG_ALIVE_SILENT);
        assert_int_equal(alive.waited_ns, 2 * TICK);
        assert_int_equal(lkg_alive_tick(&alive, 7200 * SEC, LIMIT, false), LKG_ALIVE_SILENT);
        assert_int_equal(lkg_alive_tick(&alive, 9999 * SEC, LIMIT, false), LKG_ALIVE_HUNG);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_one_that_answers_is_asked_again),
                cmocka_unit_test(test_silence_is_told_and_ends),
                cmocka_unit_test(test_work_stops_the_clock),
                cmocka_unit_test(test_work_that_leaves_no_trace_is_stuck),
                cmocka_unit_test(test_one_that_is_stopped_is_stuck_without_work),
                cmocka_unit_test(test_whoever_was_stopped_itself_blames_nobody),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
