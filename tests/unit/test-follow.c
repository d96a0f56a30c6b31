/* SPDX-License-Identifier: Apache-2.0 */
/* Following one object: what is asked next after each answer and event, and what is believed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "core/remote/follow.h"

#define S     LKG_NSEC_PER_SEC
#define MS    LKG_NSEC_PER_MSEC
#define POLL  (60 * S)
#define NEVER UINT64_MAX
#define START (500 * S) /* some CLOCK_BOOTTIME to begin at */
#define WALL  (9000000 * S)

enum input {
        END,
        TICK,
        GOT,
        NONE,
        FAILED,
        OPEN,
        ADDED,
        MODIFIED,
        DELETED,
        BOOKMARK,
        BROKEN,
        ENDED,
        FETCH,
        ANEW
};

/* One input, and what must come of it. */
struct line {
        enum input input;
        uint64_t at_ms;
        const char *uid, *version; /* or status, HTTP status and Retry-After in seconds */
        enum lkg_api_status status;
        unsigned http_status, retry_after_s;
        unsigned todo;
        const char *position; /* of a watch that begins now; NULL = without */
        uint64_t due_ms;      /* of the next GET or watch; 0 = does not matter here */
};

#define TELL      LKG_FOLLOW_TELL
#define TELL_NONE LKG_FOLLOW_TELL_NONE
#define GET       LKG_FOLLOW_GET
#define WATCH     LKG_FOLLOW_WATCH
#define END_GET   LKG_FOLLOW_END_GET
#define END_WATCH LKG_FOLLOW_END_WATCH
#define OBJECT(v) .uid = "a", .version = (v)
#define OTHER(v)  .uid = "b", .version = (v)
#define BEGIN                        \
        {                            \
                TICK, 0, .todo = GET \
        }
#define FIRST_READ                                                              \
        BEGIN,                                                                  \
        {                                                                       \
                GOT, 10, OBJECT("100"), .todo = TELL | WATCH, .position = "100" \
        }
#define WATCHING                    \
        FIRST_READ,                 \
        {                           \
                OPEN, 20, .todo = 0 \
        }

static unsigned put(struct lkg_follow *f, const struct line *line, uint32_t random)
{
        const struct lkg_moment at = { START + line->at_ms * MS, WALL + line->at_ms * MS, random };
        static const enum lkg_event_type types[] = {
                [ADDED] = LKG_EVENT_ADDED,
                [MODIFIED] = LKG_EVENT_MODIFIED,
                [DELETED] = LKG_EVENT_DELETED,
        };
        struct lkg_object_id id = { 0 };

        if (line->uid)
                (void)stpcpy(id.uid, line->uid);
        if (line->version)
                (void)stpcpy(id.version, line->version);
        switch (line->input) {
        case TICK:
                return lkg_follow_tick(f, at);
        case GOT:
                return lkg_follow_got(f, &id, at);
        case NONE:
                return lkg_follow_got(f, NULL, at);
        case FAILED:
                return lkg_follow_not_got(f, line->status, line->retry_after_s * S, at);
        case OPEN:
                return lkg_follow_opened(f, at);
        case ADDED:
        case MODIFIED:
        case DELETED:
                lkg_follow_bytes(f, false, false, at.now_ns);
                return lkg_follow_event(f, types[line->input], &id, at);
        case BOOKMARK:
                lkg_follow_bytes(f, false, false, at.now_ns);
                return lkg_follow_bookmark(f, line->version, at);
        case BROKEN:
                return lkg_follow_broken(f, line->status, at);
        case ENDED:
                return lkg_follow_ended(f, line->status, line->http_status, line->retry_after_s * S, at);
        case FETCH:
        case ANEW:
                return lkg_follow_fetch(f, line->input == ANEW, at);
        case END:
                break;
        }
        return 0;
}

/* Of requests only: how long a watch may be silent has a test of its own. */
static uint64_t next_request(const struct lkg_follow *f)
{
        struct lkg_follow copy = *f;

        copy.byte_ns = NEVER - LKG_FOLLOW_IDLE_NS;
        copy.half_ns = 0;
        return lkg_follow_due(&copy);
}

static void check(const struct lkg_follow *f, const struct line *line, size_t i, unsigned todo)
{
        const char *position = lkg_follow_position(f);

        if (todo != line->todo)
                fail_msg("line %zu: to do %#x, want %#x", i, todo, line->todo);
        if (todo & WATCH &&
            (!position != !line->position || (position && strcmp(position, line->position) != 0)))
                fail_msg("line %zu: watch from %s, want %s", i, position ? position : "now",
                         line->position ? line->position : "now");
        if (line->due_ms && next_request(f) != START + line->due_ms * MS)
                fail_msg("line %zu: due after %llu ms, want %llu", i,
                         (unsigned long long)((next_request(f) - START) / MS),
                         (unsigned long long)line->due_ms);
}

static struct lkg_follow run_random(const struct line *lines, uint32_t random)
{
        struct lkg_follow f;

        lkg_follow_begin(&f, POLL, START);
        for (size_t i = 0; lines[i].input != END; i++)
                check(&f, &lines[i], i, put(&f, &lines[i], random));
        return f;
}

static struct lkg_follow run(const struct line *lines)
{
        return run_random(lines, 0);
}

/* ---- the usual life ---- */

static void test_reads_then_watches_from_there(void **state)
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

        (void)state;
        assert_int_equal(lkg_follow_mode(&f), LKG_INFORMER_WATCH);
        assert_int_equal(f.success_wall_ns, WALL + 1001 * MS);
}

static void test_the_first_read_is_due_at_once(void **state)
{
        struct lkg_follow f;

        (void)state;
        lkg_follow_begin(&f, POLL, START);
        assert_int_equal(lkg_follow_due(&f), START);
        assert_int_equal(lkg_follow_mode(&f), LKG_INFORMER_STARTING);
}

static void test_a_watch_takes_300_to_600_seconds(void **state)
{
        static const struct line lines[] = { FIRST_READ, { END } };
        struct lkg_follow least = run_random(lines, 0), most = run_random(lines, UINT32_MAX);

        (void)state;
        assert_int_equal(least.seconds, 300);
        assert_int_equal(most.seconds, 599);
}

static void test_a_bookmark_moves_the_position_alone(void **state)
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

        (void)state;
        assert_int_equal(f.success_wall_ns, WALL + 60 * S); /* a success like any other */
        (void)run(lines);
}

static void test_an_object_comes_and_goes(void **state)
{
        static const struct line lines[] = {
                BEGIN,
                { NONE, 10, .todo = TELL_NONE | WATCH }, /* no version: what is made meanwhile comes first */
                { OPEN, 20, .todo = 0 },                 /* and nothing could be missed: no further read */
                { ADDED, 30, OBJECT("200"), .todo = TELL },
                { DELETED, 40, OBJECT("201"), .todo = TELL_NONE },
                { DELETED, 50, OBJECT("201"), .todo = 0 },
                { ENDED, 310000, .status = LKG_API_OK, .todo = WATCH, .position = "201" },
                { OPEN, 310010, .todo = 0 },
                { ADDED, 320000, OTHER("300"), .todo = TELL },
                { END },
        };

        (void)state;
        (void)run(lines);
}

static void test_the_same_state_is_told_once(void **state)
{
        static const struct line lines[] = {
                WATCHING,
                { ADDED, 30, OBJECT("100"), .todo = 0 },
                { MODIFIED, 40, OBJECT("101"), .todo = TELL },
                { MODIFIED, 50, OBJECT("101"), .todo = 0 },
                { END },
        };

        (void)state;
        (void)run(lines);
}

static void test_another_uid_is_another_object(void **state)
{
        static const struct line lines[] = {
                WATCHING,
                { MODIFIED, 30, OTHER("100"), .todo = TELL }, /* the same version, even so */
                { MODIFIED, 40, OTHER("100"), .todo = 0 },
                { ADDED, 50, OBJECT("102"), .todo = TELL },
                { END },
        };

        (void)state;
        (void)run(lines);
}

static void test_a_read_confirms(void **state)
{
        static const struct line lines[] = {
                WATCHING,
                { FETCH, 1000, .todo = GET },
                { GOT, 1010, OBJECT("100"), .todo = TELL },
                { FETCH, 2000, .todo = GET },
                { FETCH, 2001, .todo = 0 },                       /* one at a time, ... */
                { GOT, 2010, OBJECT("101"), .todo = TELL | GET }, /* ... and the second one comes after */
                { GOT, 2020, OBJECT("101"), .todo = TELL },
                { MODIFIED, 2030, OBJECT("101"), .todo = 0 },
                { END },
        };

        (void)state;
        (void)run(lines);
}

/* ---- versions too old ---- */

static void test_gone_leads_to_a_read_and_a_watch_from_now(void **state)
{
        static const struct line lines[] = {
                WATCHING,
                { BROKEN, 30, .status = LKG_API_GONE, .todo = END_WATCH | GET },
                { GOT, 40, OBJECT("100"), .todo = TELL | WATCH },
                { OPEN, 50, .todo = GET }, /* nothing else would tell of a deletion in between */
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

        (void)state;
        assert_int_equal(f.n_failures, 0);
        f = run(as_answer);
        assert_int_equal(f.n_failures, 0);
}

static void test_a_deletion_between_read_and_watch_is_found(void **state)
{
        static const struct line lines[] = {
                WATCHING,
                { BROKEN, 30, .status = LKG_API_GONE, .todo = END_WATCH | GET },
                { GOT, 40, OBJECT("100"), .todo = TELL | WATCH },
                { OPEN, 50, .todo = GET },
                { NONE, 60, .todo = TELL_NONE },
                { END },
        };

        (void)state;
        (void)run(lines);
}

static void test_gone_again_is_a_failure(void **state)
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

        (void)state;
        (void)run(lines);
}

/* An API server in front of an old etcd. */
static void test_a_server_that_cannot_give_the_state_of_now(void **state)
{
        static const struct line absent[] = {
                BEGIN,
                { NONE, 10, .todo = TELL_NONE | WATCH },
                { OPEN, 20, .todo = 0 },
                { BROKEN, 30, .status = LKG_API_BUSY, .todo = END_WATCH | WATCH, .position = "" },
                { OPEN, 40, .todo = GET }, /* what came before is not told by this one */
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
        /* Neither can it begin without: then it fails, and the next time it is asked as usual. */
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

        (void)state;
        assert_int_equal(f.n_failures, 0);
        f = run(present);
        assert_int_equal(f.n_failures, 0);
        assert_int_equal(lkg_follow_mode(&f), LKG_INFORMER_WATCH);
        (void)run(neither);
}

static void test_an_error_of_a_watch_that_worked_is_a_failure(void **state)
{
        static const struct line lines[] = {
                BEGIN,
                { NONE, 10, .todo = TELL_NONE | WATCH },
                { OPEN, 20, .todo = 0 },
                { ADDED, 30, OBJECT("200"), .todo = TELL },
                { BROKEN, 40, .status = LKG_API_BUSY, .todo = END_WATCH, .due_ms = 840 },
                { END },
        };

        (void)state;
        (void)run(lines);
}

/* ---- what is not believed ---- */

static void test_an_older_event_leads_to_one_read(void **state)
{
        static const struct line lines[] = {
                WATCHING,
                { MODIFIED, 30, OBJECT("110"), .todo = TELL },
                { MODIFIED, 40, OBJECT("109"), .todo = GET },
                { MODIFIED, 41, OBJECT("108"), .todo = 0 },
                { GOT, 50, OBJECT("110"), .todo = TELL,
                  .due_ms = 840 }, /* not as often as the server likes */
                { MODIFIED, 60, OBJECT("111"), .todo = TELL },
                { TICK, 840, .todo = GET },
                { END },
        };

        (void)state;
        (void)run(lines);
}

static void test_what_the_read_says_counts_also_when_it_is_older(void **state)
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

        (void)state;
        (void)run(lines);
        (void)run(read_alone);
        (void)run(other_object);
}

static void test_an_older_bookmark_begins_anew(void **state)
{
        static const struct line lines[] = {
                WATCHING,
                { BOOKMARK, 30, .version = "99", .todo = END_WATCH | GET },
                { GOT, 40, OBJECT("98"), .todo = TELL | WATCH },
                { OPEN, 50, .todo = GET },
                { END },
        };

        (void)state;
        (void)run(lines);
}

static void test_deletions_that_do_not_fit_lead_to_a_read(void **state)
{
        static const struct line older[] = { WATCHING, { DELETED, 30, OBJECT("99"), .todo = GET }, { END } };
        static const struct line other[] = { WATCHING, { DELETED, 30, OTHER("101"), .todo = GET }, { END } };
        static const struct line same_version[] = { WATCHING,
                                                    { DELETED, 30, OBJECT("100"), .todo = TELL_NONE },
                                                    { END } };

        (void)state;
        (void)run(older);
        (void)run(other);
        (void)run(same_version);
}

static void test_nobody_comes_back_from_a_deletion(void **state)
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

        (void)state;
        (void)run(lines);
}

static void test_versions_that_are_no_numbers_are_only_equal_or_not(void **state)
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

        (void)state;
        (void)run(lines);
}

static void test_a_watch_that_catches_up_with_a_read_tells_nothing(void **state)
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

        (void)state;
        (void)run(lines);
}

static void test_a_read_that_the_watch_has_overtaken_is_repeated_once(void **state)
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

        (void)state;
        (void)run(lines);
}

/* ---- failures ---- */

static void test_failed_reads_back_off(void **state)
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

        (void)state;
        assert_int_equal(lkg_follow_mode(&f), LKG_INFORMER_DOWN);
        assert_int_equal(f.status, LKG_API_BUSY);
        assert_int_equal(f.failing_since_ns, START + 10 * MS);
        assert_int_equal(f.success_wall_ns, 0);
        (void)put(&f, &(struct line){ GOT, 9440, OBJECT("1") }, 0);
        assert_int_equal(f.status, LKG_API_OK);
        assert_int_equal(f.failing_since_ns, 0);
        assert_int_equal(lkg_follow_mode(&f), LKG_INFORMER_STARTING);
}

static void test_a_failed_read_leaves_the_watch_alone(void **state)
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

        (void)state;
        assert_int_equal(lkg_follow_mode(&f), LKG_INFORMER_WATCH);
}

static void test_a_watch_that_could_not_begin_begins_again_without_a_read(void **state)
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

        (void)state;
        (void)run(refused);
        (void)run(busy);
}

static void test_a_watch_that_fails_otherwise_begins_with_a_read(void **state)
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

        (void)state;
        (void)run(broken_off);
        (void)run(server_error);
        (void)run(nonsense);
}

static void test_a_watch_without_an_event_in_a_second_has_failed(void **state)
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
                { ENDED, 40, .status = LKG_API_OK, .due_ms = 1020 }, /* not in a circle either */
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

        (void)state;
        assert_int_equal(f.n_failures, 1);
        f = run(with_event);
        assert_int_equal(f.n_failures, 0);
        (void)run(a_second);
        (void)run(never_opened);
}

static void test_a_silent_watch_is_noticed(void **state)
{
        static const struct line lines[] = { WATCHING, { END } };
        static const struct line no_answer[] = { FIRST_READ, { END } };
        struct lkg_follow f = run(lines);

        (void)state;
        assert_int_equal(lkg_follow_due(&f), START + 20 * MS + 150 * S);
        assert_false(lkg_follow_silent(&f, START + 20 * MS + 150 * S - 1));
        assert_true(lkg_follow_silent(&f, START + 20 * MS + 150 * S));
        lkg_follow_bytes(&f, false, true, START + 100 * S);
        assert_int_equal(lkg_follow_due(&f), START + 250 * S);
        f = run(no_answer);
        assert_true(lkg_follow_silent(&f, START + 10 * MS + 150 * S));
}

static void test_half_an_event_is_noticed(void **state)
{
        static const struct line lines[] = { WATCHING, { END } };
        struct lkg_follow f = run(lines);

        (void)state;
        lkg_follow_bytes(&f, true, true, START + 10 * S);
        for (unsigned i = 1; i < 30; i++) { /* one byte a second is no progress */
                lkg_follow_bytes(&f, true, false, START + (10 + i) * S);
                assert_false(lkg_follow_silent(&f, START + (10 + i) * S));
        }
        assert_int_equal(lkg_follow_due(&f), START + 40 * S);
        assert_true(lkg_follow_silent(&f, START + 40 * S));
        lkg_follow_bytes(&f, true, true, START + 39 * S); /* the end of it, and the next one */
        assert_false(lkg_follow_silent(&f, START + 68 * S));
        lkg_follow_bytes(&f, false, true, START + 69 * S);
        assert_int_equal(lkg_follow_due(&f), START + 219 * S);
}

/* ---- where watching is forbidden ---- */

static void test_polls_where_watching_is_forbidden(void **state)
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

        (void)state;
        assert_int_equal(lkg_follow_mode(&f), LKG_INFORMER_POLL);
        f = run_random(
                (const struct line[]){ FIRST_READ, { ENDED, 20, .status = LKG_API_FORBIDDEN }, { END } },
                UINT32_MAX);
        assert_in_range(lkg_follow_due(&f), START + 75019 * MS, START + 75020 * MS);
}

static void test_tries_to_watch_again_at_every_tenth_poll(void **state)
{
        static const struct line lines[] = { FIRST_READ,
                                             { ENDED, 0, .status = LKG_API_FORBIDDEN, .http_status = 403 },
                                             { END } };
        struct lkg_follow f = run(lines);
        uint64_t at_ms = 0;

        (void)state;
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

static void test_an_attempt_to_watch_that_fails_goes_on_polling(void **state)
{
        static const struct line lines[] = { FIRST_READ,
                                             { ENDED, 0, .status = LKG_API_FORBIDDEN, .http_status = 403 },
                                             { END } };
        struct lkg_follow f = run(lines);
        uint64_t at_ms = 0;

        (void)state;
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

/* ---- somebody else ---- */

static void test_another_identity_begins_anew(void **state)
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

        (void)state;
        (void)run(watching);
        (void)run(polling);
        (void)run(reading);
}

static void test_a_pause_between_two_watches_is_not_told(void **state)
{
        static const struct line lines[] = {
                WATCHING, { ENDED, 310000, .status = LKG_API_OK, .todo = WATCH, .position = "100" }, { END }
        };
        struct lkg_follow f = run(lines);

        (void)state;
        assert_int_equal(lkg_follow_mode(&f), LKG_INFORMER_WATCH);
        (void)put(&f, &(struct line){ ENDED, 310010, .status = LKG_API_UNREACHABLE }, 0);
        assert_int_equal(lkg_follow_mode(&f), LKG_INFORMER_DOWN);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_reads_then_watches_from_there),
                cmocka_unit_test(test_the_first_read_is_due_at_once),
                cmocka_unit_test(test_a_watch_takes_300_to_600_seconds),
                cmocka_unit_test(test_a_bookmark_moves_the_position_alone),
                cmocka_unit_test(test_an_object_comes_and_goes),
                cmocka_unit_test(test_the_same_state_is_told_once),
                cmocka_unit_test(test_another_uid_is_another_object),
                cmocka_unit_test(test_a_read_confirms),
                cmocka_unit_test(test_gone_leads_to_a_read_and_a_watch_from_now),
                cmocka_unit_test(test_a_deletion_between_read_and_watch_is_found),
                cmocka_unit_test(test_gone_again_is_a_failure),
                cmocka_unit_test(test_a_server_that_cannot_give_the_state_of_now),
                cmocka_unit_test(test_an_error_of_a_watch_that_worked_is_a_failure),
                cmocka_unit_test(test_an_older_event_leads_to_one_read),
                cmocka_unit_test(test_what_the_read_says_counts_also_when_it_is_older),
                cmocka_unit_test(test_an_older_bookmark_begins_anew),
                cmocka_unit_test(test_deletions_that_do_not_fit_lead_to_a_read),
                cmocka_unit_test(test_nobody_comes_back_from_a_deletion),
                cmocka_unit_test(test_versions_that_are_no_numbers_are_only_equal_or_not),
                cmocka_unit_test(test_a_watch_that_catches_up_with_a_read_tells_nothing),
                cmocka_unit_test(test_a_read_that_the_watch_has_overtaken_is_repeated_once),
                cmocka_unit_test(test_failed_reads_back_off),
                cmocka_unit_test(test_a_failed_read_leaves_the_watch_alone),
                cmocka_unit_test(test_a_watch_that_could_not_begin_begins_again_without_a_read),
                cmocka_unit_test(test_a_watch_that_fails_otherwise_begins_with_a_read),
                cmocka_unit_test(test_a_watch_without_an_event_in_a_second_has_failed),
                cmocka_unit_test(test_a_silent_watch_is_noticed),
                cmocka_unit_test(test_half_an_event_is_noticed),
                cmocka_unit_test(test_polls_where_watching_is_forbidden),
                cmocka_unit_test(test_tries_to_watch_again_at_every_tenth_poll),
                cmocka_unit_test(test_an_attempt_to_watch_that_fails_goes_on_polling),
                cmocka_unit_test(test_another_identity_begins_anew),
                cmocka_unit_test(test_a_pause_between_two_watches_is_not_told),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
