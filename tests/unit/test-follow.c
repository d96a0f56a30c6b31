/* SPDX-License-Identifier: Apache-2.0 */
/* Following one object: what is requested after each answer and event, and what is accepted. */
#include "follow-lines.h"

/* ---- the normal case ---- */

TEST(test_reads_then_watches_from_there)
{
        static const struct line lines[] = {
                WATCHING,
                { MODIFIED, 1000, OBJECT("101"), .todo = TELL },
                { MODIFIED, 1001, OBJECT("105"), .todo = TELL },
                { ENDED, 310000, .status = LKG_API_OK, .todo = WATCH, .position = "105" },
                { OPEN, 310010, .todo = 0 },
                { END },
        };
        struct lkg_follow f = run(lines);

        assert_int_equal(lkg_follow_mode(&f), LKG_INFORMER_WATCH);
        assert_int_equal(f.success_wall_ns, WALL + 310000 * MS);
}

TEST(test_the_first_read_is_due_at_once)
{
        struct lkg_follow f;

        lkg_follow_begin(&f, POLL, START);
        assert_int_equal(lkg_follow_due(&f), START);
        assert_int_equal(lkg_follow_mode(&f), LKG_INFORMER_STARTING);
}

TEST(test_a_watch_takes_300_to_600_seconds)
{
        static const struct line lines[] = { FIRST_READ, { END } };
        struct lkg_follow least = run_random(lines, 0), most = run_random(lines, UINT32_MAX);

        assert_int_equal(least.seconds, 300);
        assert_int_equal(most.seconds, 599);
}

TEST(test_a_bookmark_moves_the_position_alone)
{
        static const struct line lines[] = {
                WATCHING,
                { BOOKMARK, 60000, .version = "900", .todo = 0 },
                { ENDED, 310000, .status = LKG_API_OK, .todo = WATCH, .position = "900" },
                { OPEN, 310010, .todo = 0 },
                { MODIFIED, 320000, OBJECT("901"), .todo = TELL },
                { END },
        };
        static const struct line one[] = { WATCHING,
                                           { BOOKMARK, 60000, .version = "900", .todo = 0 },
                                           { END } };
        struct lkg_follow f = run(one);

        assert_int_equal(f.success_wall_ns, WALL + 60 * S); /* an ordinary success */
        (void)run(lines);
}

TEST(test_an_object_comes_and_goes)
{
        static const struct line lines[] = {
                BEGIN,
                { NONE, 10, .todo = TELL_NONE | WATCH }, /* no version: what comes meanwhile is first */
                { OPEN, 20, .todo = 0 },                 /* nothing could be missed: no further read */
                { ADDED, 30, OBJECT("200"), .todo = TELL },
                { DELETED, 40, OBJECT("201"), .todo = TELL_NONE },
                { DELETED, 50, OBJECT("201"), .todo = 0 },
                { ENDED, 310000, .status = LKG_API_OK, .todo = WATCH, .position = "201" },
                { OPEN, 310010, .todo = 0 },
                { ADDED, 320000, OTHER("300"), .todo = TELL },
                { END },
        };

        (void)run(lines);
}

TEST(test_the_same_state_is_told_once)
{
        static const struct line lines[] = {
                WATCHING,
                { ADDED, 30, OBJECT("100"), .todo = 0 },
                { MODIFIED, 40, OBJECT("101"), .todo = TELL },
                { MODIFIED, 50, OBJECT("101"), .todo = 0 },
                { END },
        };

        (void)run(lines);
}

TEST(test_another_uid_is_another_object)
{
        static const struct line lines[] = {
                WATCHING,
                { MODIFIED, 30, OTHER("100"), .todo = TELL }, /* the same version, even so */
                { MODIFIED, 40, OTHER("100"), .todo = 0 },
                { ADDED, 50, OBJECT("102"), .todo = TELL },
                { END },
        };

        (void)run(lines);
}

TEST(test_a_read_confirms)
{
        static const struct line lines[] = {
                WATCHING,
                { FETCH, 1000, .todo = GET },
                { GOT, 1010, OBJECT("100"), .todo = TELL },
                { FETCH, 2000, .todo = GET },
                { FETCH, 2001, .todo = 0 },                       /* one at a time, ... */
                { GOT, 2010, OBJECT("101"), .todo = TELL | GET }, /* ... and the second one follows */
                { GOT, 2020, OBJECT("101"), .todo = TELL },
                { MODIFIED, 2030, OBJECT("101"), .todo = 0 },
                { END },
        };

        (void)run(lines);
}

/* ---- versions too old ---- */

TEST(test_gone_leads_to_a_read_and_a_watch_from_now)
{
        static const struct line lines[] = {
                WATCHING,
                { BROKEN, 30, .status = LKG_API_GONE, .todo = END_WATCH | GET },
                { GOT, 40, OBJECT("100"), .todo = TELL | WATCH },
                { OPEN, 50, .todo = GET }, /* otherwise a deletion in between would be missed */
                { ADDED, 51, OBJECT("100"), .todo = 0 },
                { GOT, 60, OBJECT("100"), .todo = TELL },
                { BOOKMARK, 60000, .version = "555", .todo = 0 },
                { ENDED, 310000, .status = LKG_API_OK, .todo = WATCH, .position = "555" },
                { END },
        };
        static const struct line as_answer[] = {
                FIRST_READ,
                { ENDED, 30, .status = LKG_API_GONE, .http_status = 410, .todo = GET },
                { GOT, 40, OBJECT("100"), .todo = TELL | WATCH },
                { END },
        };
        struct lkg_follow f = run(lines);

        assert_int_equal(f.n_failures, 0);
        f = run(as_answer);
        assert_int_equal(f.n_failures, 0);
}

TEST(test_a_deletion_between_read_and_watch_is_found)
{
        static const struct line lines[] = {
                WATCHING,
                { BROKEN, 30, .status = LKG_API_GONE, .todo = END_WATCH | GET },
                { GOT, 40, OBJECT("100"), .todo = TELL | WATCH },
                { OPEN, 50, .todo = GET },
                { NONE, 60, .todo = TELL_NONE },
                { END },
        };

        (void)run(lines);
}

TEST(test_gone_again_is_a_failure)
{
        static const struct line lines[] = {
                WATCHING,
                { BROKEN, 30, .status = LKG_API_GONE, .todo = END_WATCH | GET },
                { GOT, 40, OBJECT("100"), .todo = TELL | WATCH },
                { OPEN, 50, .todo = GET },
                { GOT, 60, OBJECT("100"), .todo = TELL },
                { BROKEN, 70, .status = LKG_API_GONE, .todo = END_WATCH, .due_ms = 870 },
                { TICK, 870, .todo = GET },
                { GOT, 880, OBJECT("100"), .todo = TELL | WATCH },
                { ENDED, 890, .status = LKG_API_GONE, .http_status = 410, .due_ms = 2490 },
                { END },
        };

        (void)run(lines);
}

/* An API server in front of an old etcd cannot give the current state. */
TEST(test_a_server_that_cannot_give_the_state_of_now)
{
        static const struct line absent[] = {
                BEGIN,
                { NONE, 10, .todo = TELL_NONE | WATCH },
                { OPEN, 20, .todo = 0 },
                { BROKEN, 30, .status = LKG_API_BUSY, .todo = END_WATCH | WATCH, .position = "" },
                { OPEN, 40, .todo = GET }, /* this one does not report earlier changes */
                { NONE, 50, .todo = TELL_NONE },
                { ADDED, 60, OBJECT("200"), .todo = TELL },
                { ENDED, 310000, .status = LKG_API_OK, .todo = WATCH, .position = "200" },
                { END },
        };
        static const struct line present[] = {
                WATCHING,
                { BROKEN, 30, .status = LKG_API_GONE, .todo = END_WATCH | GET },
                { GOT, 40, OBJECT("100"), .todo = TELL | WATCH },
                { OPEN, 50, .todo = GET },
                { BROKEN, 60, .status = LKG_API_BUSY, .todo = END_WATCH },
                { GOT, 70, OBJECT("100"), .todo = TELL | WATCH, .position = "" },
                { OPEN, 80, .todo = GET },
                { GOT, 90, OBJECT("100"), .todo = TELL },
                { END },
        };
        /* If it cannot start without one either, it fails, and the next request is the usual one. */
        static const struct line neither[] = {
                BEGIN,
                { NONE, 10, .todo = TELL_NONE | WATCH },
                { OPEN, 20, .todo = 0 },
                { BROKEN, 30, .status = LKG_API_BUSY, .todo = END_WATCH | WATCH, .position = "" },
                { ENDED, 40, .status = LKG_API_INVALID, .http_status = 422, .due_ms = 840 },
                { TICK, 840, .todo = GET },
                { NONE, 850, .todo = TELL_NONE | WATCH },
                { END },
        };
        struct lkg_follow f = run(absent);

        assert_int_equal(f.n_failures, 0);
        f = run(present);
        assert_int_equal(f.n_failures, 0);
        assert_int_equal(lkg_follow_mode(&f), LKG_INFORMER_WATCH);
        (void)run(neither);
}

TEST(test_an_error_of_a_watch_that_worked_is_a_failure)
{
        static const struct line lines[] = {
                BEGIN,
                { NONE, 10, .todo = TELL_NONE | WATCH },
                { OPEN, 20, .todo = 0 },
                { ADDED, 30, OBJECT("200"), .todo = TELL },
                { BROKEN, 40, .status = LKG_API_BUSY, .todo = END_WATCH, .due_ms = 840 },
                { END },
        };

        (void)run(lines);
}

/* ---- what is not accepted ---- */

TEST(test_an_older_event_leads_to_one_read)
{
        static const struct line lines[] = {
                WATCHING,
                { MODIFIED, 30, OBJECT("110"), .todo = TELL },
                { MODIFIED, 40, OBJECT("109"), .todo = GET },
                { MODIFIED, 41, OBJECT("108"), .todo = 0 },
                { GOT, 50, OBJECT("110"), .todo = TELL,
                  .due_ms = 840 }, /* not as often as the server suggests */
                { MODIFIED, 60, OBJECT("111"), .todo = TELL },
                { TICK, 840, .todo = GET },
                { END },
        };

        (void)run(lines);
}

TEST(test_what_the_read_says_counts_also_when_it_is_older)
{
        static const struct line lines[] = {
                WATCHING,
                { BOOKMARK, 30, .version = "500", .todo = 0 },
                { MODIFIED, 40, OBJECT("60"), .todo = GET },
                { GOT, 50, OBJECT("60"), .todo = TELL },
                { MODIFIED, 60, OBJECT("61"), .todo = TELL },
                { ENDED, 310000, .status = LKG_API_OK, .todo = WATCH, .position = "61" },
                { END },
        };
        static const struct line read_alone[] = {
                WATCHING,
                { FETCH, 30, .todo = GET },
                { GOT, 40, OBJECT("60"), .todo = TELL },
                { ENDED, 310000, .status = LKG_API_OK, .todo = WATCH }, /* the position is of a lost time */
                { OPEN, 310010, .todo = GET },
                { END },
        };
        static const struct line other_object[] = {
                WATCHING,
                { ADDED, 40, OTHER("60"), .todo = GET },
                { GOT, 50, OTHER("60"), .todo = TELL },
                { END },
        };

        (void)run(lines);
        (void)run(read_alone);
        (void)run(other_object);
}

TEST(test_an_older_bookmark_begins_anew)
{
        static const struct line lines[] = {
                WATCHING,
                { BOOKMARK, 30, .version = "99", .todo = END_WATCH | GET },
                { GOT, 40, OBJECT("98"), .todo = TELL | WATCH },
                { OPEN, 50, .todo = GET },
                { END },
        };

        (void)run(lines);
}

TEST(test_deletions_that_do_not_fit_lead_to_a_read)
{
        static const struct line older[] = { WATCHING, { DELETED, 30, OBJECT("99"), .todo = GET }, { END } };
        static const struct line other[] = { WATCHING, { DELETED, 30, OTHER("101"), .todo = GET }, { END } };
        static const struct line same_version[] = { WATCHING,
                                                    { DELETED, 30, OBJECT("100"), .todo = TELL_NONE },
                                                    { END } };

        (void)run(older);
        (void)run(other);
        (void)run(same_version);
}

TEST(test_nobody_comes_back_from_a_deletion)
{
        static const struct line lines[] = {
                WATCHING,
                { DELETED, 30, OBJECT("101"), .todo = TELL_NONE },
                { MODIFIED, 40, OBJECT("102"), .todo = GET },
                { NONE, 50, .todo = TELL_NONE },
                { ADDED, 60, OTHER("99"), .due_ms = 840 },
                { ADDED, 70, OTHER("103"), .todo = TELL },
                { END },
        };

        (void)run(lines);
}

TEST(test_versions_that_are_no_numbers_are_only_equal_or_not)
{
        static const struct line lines[] = {
                BEGIN,
                { GOT, 10, OBJECT("b-7"), .todo = TELL | WATCH, .position = "b-7" },
                { OPEN, 20, .todo = 0 },
                { MODIFIED, 30, OBJECT("a-6"), .todo = TELL },
                { MODIFIED, 40, OBJECT("a-6"), .todo = 0 },
                { MODIFIED, 50, OBJECT("12"), .todo = TELL },
                { END },
        };

        (void)run(lines);
}

TEST(test_a_watch_that_catches_up_with_a_read_tells_nothing)
{
        static const struct line lines[] = {
                WATCHING,
                { FETCH, 30, .todo = GET },
                { GOT, 40, OBJECT("120"), .todo = TELL },
                { MODIFIED, 50, OBJECT("110"), .todo = 0 },
                { MODIFIED, 60, OBJECT("120"), .todo = 0 },
                { MODIFIED, 70, OBJECT("121"), .todo = TELL },
                { MODIFIED, 80, OBJECT("115"), .todo = GET },
                { END },
        };

        (void)run(lines);
}

TEST(test_a_read_that_the_watch_has_overtaken_is_repeated_once)
{
        static const struct line lines[] = {
                WATCHING,
                { FETCH, 30, .todo = GET },
                { MODIFIED, 40, OBJECT("101"), .todo = TELL },
                { GOT, 50, OBJECT("100"), .todo = GET },
                { MODIFIED, 60, OBJECT("102"), .todo = TELL },
                { GOT, 70, OBJECT("101"), .todo = 0 },
                { FETCH, 80, .todo = GET },
                { DELETED, 90, OBJECT("103"), .todo = TELL_NONE },
                { GOT, 100, OBJECT("102"), .todo = GET },
                { NONE, 110, .todo = TELL_NONE },
                { FETCH, 120, .todo = GET },
                { ADDED, 130, OTHER("104"), .todo = TELL },
                { NONE, 140, .todo = GET },
                { GOT, 150, OTHER("104"), .todo = TELL },
                { END },
        };

        (void)run(lines);
}
