/* SPDX-License-Identifier: Apache-2.0 */
/*
 * When a child is started again, when a file server counts as hung, how many log lines a death may cause.
 * Time is simulated. Rule: docs/specification.md 7.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "fs/supervisor/restart.h"

#define MSEC LKG_NSEC_PER_MSEC
#define SEC  LKG_NSEC_PER_SEC

static void test_a_useful_child_comes_back_at_once(void **state)
{
        struct lkg_restart restart = { 0 };

        (void)state;
        for (int i = 0; i < 1000; i++)
                assert_int_equal(lkg_restart_pause_ns(&restart, &lkg_restart_server, false), 0);
}

static void test_early_deaths_wait_longer_and_longer(void **state)
{
        struct lkg_restart restart = { 0 };
        const uint64_t want[] = { 0,         0,          0,          10 * MSEC,  20 * MSEC, 40 * MSEC,
                                  80 * MSEC, 160 * MSEC, 320 * MSEC, 640 * MSEC, 1 * SEC,   1 * SEC };

        (void)state;
        for (size_t i = 0; i < LKG_ARRAY_SIZE(want); i++)
                assert_int_equal(lkg_restart_pause_ns(&restart, &lkg_restart_server, true), want[i]);
        assert_int_equal(lkg_restart_pause_ns(&restart, &lkg_restart_server, false), 0);
        assert_int_equal(lkg_restart_pause_ns(&restart, &lkg_restart_server, true), 0);
}

static void test_first_engine_death_is_answered_at_once(void **state)
{
        struct lkg_restart restart = { 0 };

        (void)state;
        assert_int_equal(lkg_restart_pause_ns(&restart, &lkg_restart_engine, true), 0);
        assert_int_equal(lkg_restart_pause_ns(&restart, &lkg_restart_engine, true), 50 * MSEC);
        for (int i = 0; i < 100; i++)
                assert_true(lkg_restart_pause_ns(&restart, &lkg_restart_engine, true) <= 1 * SEC);
}

static void test_a_refusal_never_ends_the_tries(void **state)
{
        struct lkg_restart restart = { 0 };

        (void)state;
        assert_int_equal(lkg_restart_pause_ns(&restart, &lkg_restart_refused, true), 100 * MSEC);
        for (int i = 0; i < 100; i++)
                (void)lkg_restart_pause_ns(&restart, &lkg_restart_refused, true);
        assert_int_equal(lkg_restart_pause_ns(&restart, &lkg_restart_refused, true), 5 * SEC);
        restart.n_early = UINT32_MAX;
        assert_int_equal(lkg_restart_pause_ns(&restart, &lkg_restart_refused, true), 5 * SEC);
        assert_int_equal(restart.n_early, UINT32_MAX);
}

static void test_fatal_engine_is_tried_every_ten_seconds(void **state)
{
        struct lkg_restart restart = { 0 };

        (void)state;
        for (int i = 0; i < 5; i++)
                assert_int_equal(lkg_restart_pause_ns(&restart, &lkg_restart_fatal, true), 10 * SEC);
}

struct beat {
        uint64_t served;
        bool waiting, busy;
        uint64_t age_ns;
        enum lkg_heartbeat_verdict want;
};

static void run_beats(const struct beat *beats, size_t n)
{
        struct lkg_server_heartbeat heartbeat;

        lkg_heartbeat_start(&heartbeat, 100);
        for (size_t i = 0; i < n; i++)
                assert_int_equal(lkg_heartbeat_tick(&heartbeat, beats[i].served, beats[i].waiting,
                                                    beats[i].busy, beats[i].age_ns),
                                 beats[i].want);
}

static void test_no_work_ends_the_watching(void **state)
{
        const struct beat beats[] = {
                { 105, false, false, 0, LKG_HEARTBEAT_WATCH },
                { 105, false, false, 0, LKG_HEARTBEAT_IDLE },
        };

        (void)state;
        run_beats(beats, LKG_ARRAY_SIZE(beats));
}

static void test_unread_requests_for_two_seconds_are_a_hang(void **state)
{
        const struct beat beats[] = {
                { 100, true, false, 0, LKG_HEARTBEAT_WATCH },
                { 100, true, false, 0, LKG_HEARTBEAT_WATCH },
                { 100, true, false, 0, LKG_HEARTBEAT_WATCH },
                { 100, true, false, 0, LKG_HEARTBEAT_HUNG },
        };

        (void)state;
        assert_int_equal(LKG_ARRAY_SIZE(beats) * LKG_HEARTBEAT_TICK_NS, LKG_HEARTBEAT_HUNG_NS);
        run_beats(beats, LKG_ARRAY_SIZE(beats));
}

static void test_a_request_in_hand_for_two_seconds_is_a_hang(void **state)
{
        const struct beat beats[] = {
                { 100, false, true, 500 * MSEC, LKG_HEARTBEAT_WATCH },
                { 100, false, true, 1000 * MSEC, LKG_HEARTBEAT_WATCH },
                { 100, false, true, 1500 * MSEC, LKG_HEARTBEAT_WATCH },
                { 100, false, true, 1999 * MSEC, LKG_HEARTBEAT_WATCH },
                { 100, false, true, 2500 * MSEC, LKG_HEARTBEAT_HUNG },
        };

        (void)state;
        run_beats(beats, LKG_ARRAY_SIZE(beats));
}

static void test_slow_work_beside_progress_is_no_hang(void **state)
{
        struct lkg_server_heartbeat heartbeat;

        (void)state;
        lkg_heartbeat_start(&heartbeat, 0);
        for (uint64_t i = 1; i < 100; i++)
                assert_int_equal(lkg_heartbeat_tick(&heartbeat, i, true, true, i * SEC),
                                 LKG_HEARTBEAT_WATCH);
}

static void test_a_sleep_of_the_machine_is_no_hang(void **state)
{
        /*
         * CLOCK_BOOTTIME jumped: the request looks an hour old, but only one tick has passed since it was
         * seen.
         */
        const struct beat beats[] = {
                { 100, false, true, 3600 * SEC, LKG_HEARTBEAT_WATCH },
                { 101, false, false, 0, LKG_HEARTBEAT_WATCH },
                { 101, false, false, 0, LKG_HEARTBEAT_IDLE },
        };

        (void)state;
        run_beats(beats, LKG_ARRAY_SIZE(beats));
}

static void test_lines_per_second(void **state)
{
        struct lkg_log_limit limit = { 0 };
        unsigned n_dropped = 99, n_passed = 0;

        (void)state;
        for (unsigned i = 0; i < 500; i++)
                n_passed += lkg_log_limit_pass(&limit, 10 * SEC + i * MSEC, &n_dropped);
        assert_int_equal(n_passed, LKG_LOG_BURST);
        assert_int_equal(n_dropped, 0);
        assert_true(lkg_log_limit_pass(&limit, 11 * SEC, &n_dropped));
        assert_int_equal(n_dropped, 500 - LKG_LOG_BURST);
        assert_true(lkg_log_limit_pass(&limit, 11 * SEC + MSEC, &n_dropped));
        assert_int_equal(n_dropped, 0);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_a_useful_child_comes_back_at_once),
                cmocka_unit_test(test_early_deaths_wait_longer_and_longer),
                cmocka_unit_test(test_first_engine_death_is_answered_at_once),
                cmocka_unit_test(test_a_refusal_never_ends_the_tries),
                cmocka_unit_test(test_fatal_engine_is_tried_every_ten_seconds),
                cmocka_unit_test(test_no_work_ends_the_watching),
                cmocka_unit_test(test_unread_requests_for_two_seconds_are_a_hang),
                cmocka_unit_test(test_a_request_in_hand_for_two_seconds_is_a_hang),
                cmocka_unit_test(test_slow_work_beside_progress_is_no_hang),
                cmocka_unit_test(test_a_sleep_of_the_machine_is_no_hang),
                cmocka_unit_test(test_lines_per_second),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
