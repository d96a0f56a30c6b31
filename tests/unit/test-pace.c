/* SPDX-License-Identifier: Apache-2.0 */
/*
 * When a child is started again, when it counts as silent and when as hung.
 * Time is simulated. Rules: docs/specification.md 2.14, 7.
 */
#include "unit.h"
#include "fs/supervisor/pace.h"

#define MSEC  LKG_NSEC_PER_MSEC
#define SEC   LKG_NSEC_PER_SEC
#define TICK  LKG_ALIVE_TICK_NS
#define LIMIT (3 * SEC)

TEST(test_work_that_leaves_no_trace_is_stuck)
{
        struct lkg_progress p = { .seen = 5 };
        uint64_t now = SEC, trace = 5;

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

TEST(test_one_that_is_stopped_is_stuck_without_work)
{
        struct lkg_progress p = { .seen = 1 };
        uint64_t now = SEC;

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

TEST(test_whoever_was_stopped_itself_blames_nobody)
{
        struct lkg_progress p = { .last_ns = SEC };

        assert_int_equal(lkg_progress_look(&p, true, false, 0, 3600 * SEC, LIMIT), LKG_PROGRESS_WATCH);
        assert_int_equal(p.waited_ns, 2 * TICK);
        assert_true(p.waited_ns >= LKG_ALIVE_SILENT_NS);
        assert_int_equal(lkg_progress_look(&p, true, false, 0, 7200 * SEC, LIMIT), LKG_PROGRESS_WATCH);
        assert_int_equal(lkg_progress_look(&p, true, false, 0, 9999 * SEC, LIMIT), LKG_PROGRESS_STUCK);
}

TEST(test_a_useful_child_comes_back_at_once)
{
        unsigned n_early = 0;

        for (int i = 0; i < 1000; i++)
                assert_int_equal(lkg_restart_pause_ns(&n_early, &lkg_restart_server, false), 0);
}

TEST(test_early_deaths_wait_longer_and_longer)
{
        unsigned n_early = 0;
        const uint64_t want[] = { 0,         0,          0,          10 * MSEC,  20 * MSEC, 40 * MSEC,
                                  80 * MSEC, 160 * MSEC, 320 * MSEC, 640 * MSEC, 1 * SEC,   1 * SEC };

        for (size_t i = 0; i < LKG_ARRAY_SIZE(want); i++)
                assert_int_equal(lkg_restart_pause_ns(&n_early, &lkg_restart_server, true), want[i]);
        assert_int_equal(lkg_restart_pause_ns(&n_early, &lkg_restart_server, false), 0);
        assert_int_equal(lkg_restart_pause_ns(&n_early, &lkg_restart_server, true), 0);
}

TEST(test_first_engine_death_is_answered_at_once)
{
        unsigned n_early = 0;

        assert_int_equal(lkg_restart_pause_ns(&n_early, &lkg_restart_engine, true), 0);
        assert_int_equal(lkg_restart_pause_ns(&n_early, &lkg_restart_engine, true), 50 * MSEC);
        for (int i = 0; i < 100; i++)
                assert_true(lkg_restart_pause_ns(&n_early, &lkg_restart_engine, true) <= 1 * SEC);
}

TEST(test_a_refusal_never_ends_the_tries)
{
        unsigned n_early = 0;

        assert_int_equal(lkg_restart_pause_ns(&n_early, &lkg_restart_refused, true), 100 * MSEC);
        for (int i = 0; i < 100; i++)
                (void)lkg_restart_pause_ns(&n_early, &lkg_restart_refused, true);
        assert_int_equal(lkg_restart_pause_ns(&n_early, &lkg_restart_refused, true), 5 * SEC);
        n_early = UINT32_MAX;
        assert_int_equal(lkg_restart_pause_ns(&n_early, &lkg_restart_refused, true), 5 * SEC);
        assert_int_equal(n_early, UINT32_MAX);
}

TEST(test_fatal_engine_is_tried_every_ten_seconds)
{
        unsigned n_early = 0;

        for (int i = 0; i < 5; i++)
                assert_int_equal(lkg_restart_pause_ns(&n_early, &lkg_restart_fatal, true), 10 * SEC);
}

struct beat {
        uint64_t served;
        bool waiting, busy;
        uint64_t age_ns;
        enum lkg_progress_verdict want;
};

/* One check per tick. */
static void run_beats(const struct beat *beats, size_t n)
{
        struct lkg_progress progress = { .seen = 100, .last_ns = SEC };

        for (size_t i = 0; i < n; i++)
                assert_int_equal(lkg_heartbeat_look(&progress, beats[i].served, beats[i].waiting,
                                                    beats[i].busy, beats[i].age_ns, SEC + (i + 1) * TICK),
                                 beats[i].want);
}

TEST(test_no_work_ends_the_watching)
{
        const struct beat beats[] = {
                { 105, false, false, 0, LKG_PROGRESS_WATCH },
                { 105, false, false, 0, LKG_PROGRESS_NONE },
        };

        run_beats(beats, LKG_ARRAY_SIZE(beats));
}

TEST(test_unread_requests_for_two_seconds_are_a_hang)
{
        const struct beat beats[] = {
                { 100, true, false, 0, LKG_PROGRESS_WATCH },
                { 100, true, false, 0, LKG_PROGRESS_WATCH },
                { 100, true, false, 0, LKG_PROGRESS_WATCH },
                { 100, true, false, 0, LKG_PROGRESS_STUCK },
        };

        assert_int_equal(LKG_ARRAY_SIZE(beats) * TICK, LKG_HEARTBEAT_HUNG_NS);
        run_beats(beats, LKG_ARRAY_SIZE(beats));
}

TEST(test_a_request_in_hand_for_two_seconds_is_a_hang)
{
        const struct beat beats[] = {
                { 100, false, true, 500 * MSEC, LKG_PROGRESS_WATCH },
                { 100, false, true, 1000 * MSEC, LKG_PROGRESS_WATCH },
                { 100, false, true, 1500 * MSEC, LKG_PROGRESS_WATCH },
                { 100, false, true, 1999 * MSEC, LKG_PROGRESS_WATCH },
                { 100, false, true, 2500 * MSEC, LKG_PROGRESS_STUCK },
        };

        run_beats(beats, LKG_ARRAY_SIZE(beats));
}

TEST(test_slow_work_beside_progress_is_no_hang)
{
        struct lkg_progress progress = { 0 };

        for (uint64_t i = 1; i < 100; i++)
                assert_int_equal(lkg_heartbeat_look(&progress, i, true, true, i * SEC, i * TICK),
                                 LKG_PROGRESS_WATCH);
}

TEST(test_a_sleep_of_the_machine_is_no_hang)
{
        struct lkg_progress progress = { .seen = 100, .last_ns = SEC };

        /* CLOCK_BOOTTIME jumped: the request looks an hour old, but a check counts as two ticks at most. */
        assert_int_equal(lkg_heartbeat_look(&progress, 100, false, true, 3600 * SEC, 3601 * SEC),
                         LKG_PROGRESS_WATCH);
        assert_int_equal(lkg_heartbeat_look(&progress, 101, false, false, 0, 3602 * SEC),
                         LKG_PROGRESS_WATCH);
        assert_int_equal(lkg_heartbeat_look(&progress, 101, false, false, 0, 3603 * SEC), LKG_PROGRESS_NONE);
}
