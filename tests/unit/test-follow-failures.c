/* SPDX-License-Identifier: Apache-2.0 */
/* Following one object that cannot be read or watched: when and how it is tried again. */
#include "follow-lines.h"

/* ---- failures ---- */

TEST(test_failed_reads_back_off)
{
        static const struct line lines[] = {
                BEGIN,
                { FAILED, 10, .status = LKG_API_UNREACHABLE, .due_ms = 810 },
                { TICK, 809, .todo = 0 },
                { TICK, 810, .todo = GET },
                { FAILED, 820, .status = LKG_API_FORBIDDEN, .due_ms = 2420 },
                { TICK, 2420, .todo = GET },
                { FAILED, 2430, .status = LKG_API_BUSY, .retry_after_s = 7, .due_ms = 9430 },
                { TICK, 9430, .todo = GET },
                { END },
        };
        struct lkg_follow f = run(lines);

        assert_int_equal(lkg_follow_mode(&f), LKG_INFORMER_DOWN);
        assert_int_equal(f.status, LKG_API_BUSY);
        assert_int_equal(f.failing_since_ns, START + 10 * MS);
        assert_int_equal(f.success_wall_ns, 0);
        (void)put(&f, &(struct line){ GOT, 9440, OBJECT("1") }, 0);
        assert_int_equal(f.status, LKG_API_OK);
        assert_int_equal(f.failing_since_ns, 0);
        assert_int_equal(lkg_follow_mode(&f), LKG_INFORMER_STARTING);
}

TEST(test_a_failed_read_leaves_the_watch_alone)
{
        static const struct line lines[] = {
                WATCHING,
                { FETCH, 30, .todo = GET },
                { FAILED, 40, .status = LKG_API_BUSY, .due_ms = 840 },
                { MODIFIED, 50, OBJECT("101"), .todo = TELL },
                { TICK, 840, .todo = GET },
                { END },
        };
        struct lkg_follow f = run(lines);

        assert_int_equal(lkg_follow_mode(&f), LKG_INFORMER_WATCH);
}

TEST(test_a_watch_that_could_not_begin_begins_again_without_a_read)
{
        static const struct line refused[] = {
                FIRST_READ,
                { ENDED, 30, .status = LKG_API_UNREACHABLE, .due_ms = 830 },
                { TICK, 830, .todo = WATCH, .position = "100" },
                { END },
        };
        static const struct line busy[] = {
                FIRST_READ,
                { ENDED, 30, .status = LKG_API_BUSY, .http_status = 429, .retry_after_s = 5,
                  .due_ms = 5030 },
                { TICK, 5029, .todo = 0 },
                { TICK, 5030, .todo = WATCH, .position = "100" },
                { END },
        };

        (void)run(refused);
        (void)run(busy);
}

TEST(test_a_watch_that_fails_otherwise_begins_with_a_read)
{
        static const struct line broken_off[] = {
                WATCHING,
                { ENDED, 5000, .status = LKG_API_UNREACHABLE, .http_status = 200, .due_ms = 5800 },
                { TICK, 5800, .todo = GET },
                { GOT, 5810, OBJECT("100"), .todo = TELL | WATCH, .position = "100" },
                { END },
        };
        static const struct line server_error[] = {
                FIRST_READ,
                { ENDED, 30, .status = LKG_API_BUSY, .http_status = 500, .due_ms = 830 },
                { TICK, 830, .todo = GET },
                { END },
        };
        static const struct line nonsense[] = {
                WATCHING,
                { BROKEN, 30, .status = LKG_API_INVALID, .todo = END_WATCH, .due_ms = 830 },
                { TICK, 830, .todo = GET },
                { END },
        };

        (void)run(broken_off);
        (void)run(server_error);
        (void)run(nonsense);
}

TEST(test_a_watch_without_an_event_in_a_second_has_failed)
{
        static const struct line empty[] = {
                WATCHING,
                { ENDED, 1019, .status = LKG_API_OK, .due_ms = 1819 },
                { TICK, 1819, .todo = GET },
                { END },
        };
        static const struct line with_event[] = {
                WATCHING,
                { MODIFIED, 30, OBJECT("101"), .todo = TELL },
                { ENDED, 40, .status = LKG_API_OK, .due_ms = 1020 }, /* no busy loop either */
                { TICK, 1020, .todo = WATCH, .position = "101" },
                { END },
        };
        static const struct line a_second[] = {
                WATCHING, { ENDED, 1020, .status = LKG_API_OK, .todo = WATCH, .position = "100" }, { END }
        };
        static const struct line never_opened[] = { FIRST_READ,
                                                    { ENDED, 5000, .status = LKG_API_OK, .due_ms = 5800 },
                                                    { END } };
        struct lkg_follow f = run(empty);

        assert_int_equal(f.n_failures, 1);
        f = run(with_event);
        assert_int_equal(f.n_failures, 0);
        (void)run(a_second);
        (void)run(never_opened);
}

TEST(test_a_silent_watch_is_noticed)
{
        static const struct line lines[] = { WATCHING, { END } };
        static const struct line no_answer[] = { FIRST_READ, { END } };
        struct lkg_follow f = run(lines);

        (void)lkg_follow_bookmark(&f, "999", (struct lkg_moment){ .now_ns = START + 60 * S });
        lkg_follow_bytes(&f, false, true, START + 60 * S);
        assert_int_equal(lkg_follow_due(&f), START + 210 * S);
        assert_false(lkg_follow_silent(&f, START + 210 * S - 1));
        assert_true(lkg_follow_silent(&f, START + 210 * S));
        lkg_follow_bytes(&f, false, true, START + 100 * S);
        assert_int_equal(lkg_follow_due(&f), START + 250 * S);
        f = run(no_answer);
        assert_true(lkg_follow_silent(&f, START + 10 * MS + 150 * S));
}

/*
 * An API server sends bookmarks only after an object of the kind has changed since the position, which may
 * take days.
 */
TEST(test_a_watch_without_bookmarks_may_be_silent)
{
        static const struct line lines[] = { WATCHING, { END } };
        struct lkg_follow f = run(lines);

        assert_int_equal(lkg_follow_due(&f), UINT64_MAX);
        assert_false(lkg_follow_silent(&f, START + 3600 * S));
        lkg_follow_bytes(&f, true, true, START + 100 * S); /* but it does not stop within an event */
        assert_int_equal(lkg_follow_due(&f), START + 130 * S);
        assert_true(lkg_follow_silent(&f, START + 130 * S));
}

TEST(test_a_watch_that_ends_as_announced_has_told_everything)
{
        static const struct line lines[] = { WATCHING, { END } };
        struct lkg_follow f = run(lines);

        (void)lkg_follow_ended(&f, LKG_API_OK, 200, 0, (struct lkg_moment){ START + 400 * S, 77 * S, 0 });
        assert_int_equal(f.success_wall_ns, 77 * S);
        assert_int_equal(f.n_failures, 0);
}

TEST(test_a_quiet_connection_may_be_cut_off)
{
        static const struct line lines[] = { WATCHING, { END } };
        struct lkg_follow f = run(lines);
        struct lkg_moment at = { START + 20 * MS + 10 * S, 0, 0 };

        assert_int_equal(lkg_follow_cut(&f, at), LKG_FOLLOW_WATCH);
        assert_string_equal(lkg_follow_position(&f), "100");
        assert_int_equal(lkg_follow_mode(&f), LKG_INFORMER_WATCH);
        assert_int_equal(f.n_failures, 0);
        f = run(lines); /* but not one that has just sent something */
        at.now_ns--;
        assert_int_equal(lkg_follow_cut(&f, at), 0);
        assert_int_equal(f.n_failures, 1);
        assert_int_equal(lkg_follow_mode(&f), LKG_INFORMER_DOWN);
}

TEST(test_half_an_event_is_noticed)
{
        static const struct line lines[] = { WATCHING, { END } };
        struct lkg_follow f = run(lines);

        lkg_follow_bytes(&f, true, true, START + 10 * S);
        for (unsigned i = 1; i < 30; i++) { /* one byte per second is no progress */
                lkg_follow_bytes(&f, true, false, START + (10 + i) * S);
                assert_false(lkg_follow_silent(&f, START + (10 + i) * S));
        }
        assert_int_equal(lkg_follow_due(&f), START + 40 * S);
        assert_true(lkg_follow_silent(&f, START + 40 * S));
        lkg_follow_bytes(&f, true, true, START + 39 * S); /* the end of it, and the next one */
        assert_false(lkg_follow_silent(&f, START + 68 * S));
        lkg_follow_bytes(&f, false, true, START + 69 * S);
        assert_int_equal(lkg_follow_due(&f), UINT64_MAX);
}

/* ---- where watching is forbidden ---- */

TEST(test_polls_where_watching_is_forbidden)
{
        static const struct line lines[] = {
                FIRST_READ,
                { ENDED, 20, .status = LKG_API_FORBIDDEN, .http_status = 403,
                  .due_ms = 45020 }, /* 60 s - 25 % */
                { TICK, 45020, .todo = GET },
                { GOT, 45030, OBJECT("100"), .todo = TELL, .due_ms = 90030 },
                { FETCH, 50000, .todo = GET },
                { NONE, 50010, .todo = TELL_NONE, .due_ms = 95010 },
                { TICK, 95010, .todo = GET },
                { FAILED, 95020, .status = LKG_API_BUSY, .due_ms = 95820 },
                { TICK, 95820, .todo = GET },
                { GOT, 95830, OTHER("200"), .todo = TELL, .due_ms = 140830 },
                { END },
        };
        struct lkg_follow f = run(lines);

        assert_int_equal(lkg_follow_mode(&f), LKG_INFORMER_POLL);
        f = run_random(
                (const struct line[]){ FIRST_READ, { ENDED, 20, .status = LKG_API_FORBIDDEN }, { END } },
                UINT32_MAX);
        assert_in_range(lkg_follow_due(&f), START + 75019 * MS, START + 75020 * MS);
}

TEST(test_tries_to_watch_again_at_every_tenth_poll)
{
        static const struct line lines[] = { FIRST_READ,
                                             { ENDED, 0, .status = LKG_API_FORBIDDEN, .http_status = 403 },
                                             { END } };
        struct lkg_follow f = run(lines);
        uint64_t at_ms = 0;

        for (unsigned round = 0; round < 2; round++) {
                for (unsigned i = 1; i <= 10; i++) {
                        const struct line got = { GOT, at_ms += 45000, OBJECT("100") };

                        assert_int_equal(put(&f, &(struct line){ TICK, at_ms }, 0), GET);
                        assert_int_equal(put(&f, &got, 0), i < 10 ? TELL : TELL | WATCH);
                }
                assert_int_equal(
                        put(&f,
                            &(struct line){ ENDED, at_ms, .status = LKG_API_FORBIDDEN, .http_status = 403 },
                            0),
                        0);
                assert_int_equal(lkg_follow_mode(&f), LKG_INFORMER_POLL);
        }
        for (unsigned i = 1; i <= 10; i++) {
                const struct line got = { GOT, at_ms += 45000, OBJECT("100") };

                (void)put(&f, &(struct line){ TICK, at_ms }, 0);
                (void)put(&f, &got, 0);
        }
        (void)put(&f, &(struct line){ OPEN, at_ms }, 0);
        assert_int_equal(lkg_follow_mode(&f), LKG_INFORMER_WATCH);
        assert_int_equal(next_request(&f), NEVER);
}

TEST(test_an_attempt_to_watch_that_fails_goes_on_polling)
{
        static const struct line lines[] = { FIRST_READ,
                                             { ENDED, 0, .status = LKG_API_FORBIDDEN, .http_status = 403 },
                                             { END } };
        struct lkg_follow f = run(lines);
        uint64_t at_ms = 0;

        for (unsigned i = 1; i <= 10; i++) {
                const struct line got = { GOT, at_ms += 45000, OBJECT("100") };

                (void)put(&f, &(struct line){ TICK, at_ms }, 0);
                (void)put(&f, &got, 0);
        }
        assert_int_equal(put(&f, &(struct line){ ENDED, at_ms, .status = LKG_API_UNREACHABLE }, 0), 0);
        assert_int_equal(put(&f, &(struct line){ TICK, at_ms + 800 }, 0), GET);
        assert_int_equal(put(&f, &(struct line){ GOT, at_ms + 810, OBJECT("100") }, 0), TELL);
        assert_int_equal(lkg_follow_mode(&f), LKG_INFORMER_POLL);
}

/* ---- other servers ---- */

TEST(test_another_identity_begins_anew)
{
        static const struct line watching[] = {
                WATCHING,
                { ANEW, 1000, .todo = END_GET | END_WATCH | GET },
                { GOT, 1010, OBJECT("100"), .todo = TELL | WATCH, .position = "100" },
                { END },
        };
        static const struct line polling[] = {
                FIRST_READ,
                { ENDED, 20, .status = LKG_API_FORBIDDEN, .http_status = 403 },
                { ANEW, 1000, .todo = END_GET | END_WATCH | GET },
                { GOT, 1010, OBJECT("100"), .todo = TELL | WATCH, .position = "100" },
                { END },
        };
        static const struct line reading[] = {
                BEGIN,
                { FAILED, 10, .status = LKG_API_UNAUTHORIZED },
                { ANEW, 20, .todo = END_GET | END_WATCH | GET },
                { FAILED, 30, .status = LKG_API_UNAUTHORIZED, .due_ms = 830 },
                { END },
        };

        (void)run(watching);
        (void)run(polling);
        (void)run(reading);
}

TEST(test_a_pause_between_two_watches_is_not_told)
{
        static const struct line lines[] = {
                WATCHING, { ENDED, 310000, .status = LKG_API_OK, .todo = WATCH, .position = "100" }, { END }
        };
        struct lkg_follow f = run(lines);

        assert_int_equal(lkg_follow_mode(&f), LKG_INFORMER_WATCH);
        (void)put(&f, &(struct line){ ENDED, 310010, .status = LKG_API_UNREACHABLE }, 0);
        assert_int_equal(lkg_follow_mode(&f), LKG_INFORMER_DOWN);
}
