/* SPDX-License-Identifier: Apache-2.0 */
/* A sequence of events as a table: one input per line, with the expected result. */
#pragma once

#include "unit.h"
#include "core/remote/follow.h"

#define S     LKG_NSEC_PER_SEC
#define MS    LKG_NSEC_PER_MSEC
#define POLL  (60 * S)
#define NEVER UINT64_MAX
#define START (500 * S) /* any CLOCK_BOOTTIME to start from */
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

/* One input and its expected result. */
struct line {
        enum input input;
        uint64_t at_ms;
        const char *uid, *version; /* or status, HTTP status and Retry-After in seconds */
        enum lkg_api_status status;
        unsigned http_status, retry_after_s;
        unsigned todo;
        const char *position; /* of a watch that starts now; NULL = without */
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

static inline unsigned put(struct lkg_follow *f, const struct line *line, uint32_t random)
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

/* For requests only: how long a watch may be silent has its own test. */
static inline uint64_t next_request(const struct lkg_follow *f)
{
        struct lkg_follow copy = *f;

        copy.byte_ns = NEVER - LKG_FOLLOW_IDLE_NS;
        copy.half_ns = 0;
        return lkg_follow_due(&copy);
}

static inline void check(const struct lkg_follow *f, const struct line *line, size_t i, unsigned todo)
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

static inline struct lkg_follow run_random(const struct line *lines, uint32_t random)
{
        struct lkg_follow f;

        lkg_follow_begin(&f, POLL, START);
        for (size_t i = 0; lines[i].input != END; i++)
                check(&f, &lines[i], i, put(&f, &lines[i], random));
        return f;
}

static inline struct lkg_follow run(const struct line *lines)
{
        return run_random(lines, 0);
}
