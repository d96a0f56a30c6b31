/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Following one object: what is requested after each answer and event, what is accepted, and when what failed is tried again: rows/follow.rows.
 * A step is what happens and after how many milliseconds; then it says what is to be done, and what is known now.
 */
#include <lkg/text.h>

#include "core/remote/follow.h"
#include "rows.h"

#define S     LKG_NSEC_PER_SEC
#define MS    LKG_NSEC_PER_MSEC
#define POLL  (60 * S)
#define START (500 * S) /* any CLOCK_BOOTTIME to start from */
#define WALL  (9000000 * S)

static struct lkg_follow follow;
static uint32_t dice;

STEP(steps, 0)
{
        dice = 0;
        lkg_follow_begin(&follow, POLL, START);
}

STEP(random, 1)
{
        dice = (uint32_t)strtoul(q->parts[0], NULL, 10);
}

static struct lkg_moment at(const struct question *q)
{
        uint64_t ns = strtoull(q->parts[0], NULL, 10) * MS;

        return (struct lkg_moment){ START + ns, WALL + ns, dice };
}

/* UID/VERSION */
static const struct lkg_object_id *object(const struct question *q)
{
        static struct lkg_object_id id;

        (void)sscanf(q->parts[1], "%15[^/]/%63s", id.uid, id.version);
        return *q->parts[1] ? &id : NULL;
}

static void put_ms(struct lkg_buf *ret, const char *what, uint64_t ns, uint64_t from)
{
        lkg_buf_printf(ret, ", %s %llu", what, (unsigned long long)((ns - from) / MS));
}

/* For requests only: how long a watch may be silent is said apart. */
static uint64_t next_request(void)
{
        struct lkg_follow copy = follow;

        copy.byte_ns = UINT64_MAX - LKG_WATCH_IDLE_NS;
        copy.half_ns = 0;
        return lkg_follow_due(&copy);
}

static void say(struct lkg_buf *ret, unsigned todo)
{
        static const char *const words[] = { "tell", "tell none", "end get", "end watch", "get", "watch" };
        const char *position = lkg_follow_position(&follow);
        uint64_t request = next_request(), due = lkg_follow_due(&follow);

        for (size_t i = 0; i < LKG_ARRAY_SIZE(words); i++)
                if (todo & 1u << i)
                        lkg_buf_printf(ret, "%s%s", todo & ((1u << i) - 1) ? ", " : "", words[i]);
        if (todo & LKG_FOLLOW_WATCH && position)
                lkg_buf_printf(ret, " from '%s' for %u s", position, follow.seconds);
        else if (todo & LKG_FOLLOW_WATCH)
                lkg_buf_printf(ret, " from now for %u s", follow.seconds);
        lkg_buf_printf(ret, "%s: %s", todo ? "" : "nothing",
                       lkg_informer_mode_name(lkg_follow_mode(&follow)));
        if (follow.status != LKG_API_OK)
                lkg_buf_printf(ret, ", %s", lkg_api_status_name(follow.status));
        if (follow.n_failures)
                lkg_buf_printf(ret, ", %llu failures", (unsigned long long)follow.n_failures);
        if (follow.failing_since_ns)
                put_ms(ret, "failing since", follow.failing_since_ns, START);
        if (follow.success_wall_ns)
                put_ms(ret, "success", follow.success_wall_ns, WALL);
        if (request != UINT64_MAX)
                put_ms(ret, "next", request, START);
        if (due != request)
                put_ms(ret, "silent", due, START);
}

STEP(tick, 1)
{
        say(ret, lkg_follow_tick(&follow, at(q)));
}

STEP(got, 2)
{
        say(ret, lkg_follow_got(&follow, object(q), at(q)));
}

/* Status, and Retry-After in seconds. */
STEP(failed, 3)
{
        say(ret,
            lkg_follow_not_got(&follow, rows_named(lkg_api_status_name, _LKG_API_STATUS_MAX, q->parts[1]),
                               strtoull(q->parts[2], NULL, 10) * S, at(q)));
}

STEP(open, 1)
{
        say(ret, lkg_follow_opened(&follow, at(q)));
}

static void event(const struct question *q, enum lkg_event_type type, struct lkg_buf *ret)
{
        lkg_follow_bytes(&follow, false, false, at(q).now_ns);
        say(ret, lkg_follow_event(&follow, type, object(q), at(q)));
}

STEP(added, 2)
{
        event(q, LKG_EVENT_ADDED, ret);
}

STEP(modified, 2)
{
        event(q, LKG_EVENT_MODIFIED, ret);
}

STEP(deleted, 2)
{
        event(q, LKG_EVENT_DELETED, ret);
}

STEP(bookmark, 2)
{
        lkg_follow_bytes(&follow, false, false, at(q).now_ns);
        say(ret, lkg_follow_bookmark(&follow, q->parts[1], at(q)));
}

STEP(broken, 2)
{
        say(ret, lkg_follow_broken(
                         &follow, rows_named(lkg_api_status_name, _LKG_API_STATUS_MAX, q->parts[1]), at(q)));
}

/* Status, HTTP status, Retry-After in seconds. */
STEP(ended, 4)
{
        say(ret, lkg_follow_ended(&follow, rows_named(lkg_api_status_name, _LKG_API_STATUS_MAX, q->parts[1]),
                                  (unsigned)strtoul(q->parts[2], NULL, 10),
                                  strtoull(q->parts[3], NULL, 10) * S, at(q)));
}

STEP(cut, 1)
{
        say(ret, lkg_follow_cut(&follow, at(q)));
}

STEP(fetch, 1)
{
        say(ret, lkg_follow_fetch(&follow, false, at(q)));
}

STEP(anew, 1)
{
        say(ret, lkg_follow_fetch(&follow, true, at(q)));
}

/* `whole`: the end of an event; `half`: an event has begun; `same`: it has not ended. */
STEP(bytes, 2)
{
        lkg_follow_bytes(&follow, *q->parts[1] != 'w', *q->parts[1] != 's', at(q).now_ns);
        say(ret, 0);
}

/* Nothing is heard until then. */
STEP(wait, 1)
{
        lkg_buf_puts(ret, lkg_follow_silent(&follow, at(q).now_ns) ? "silent; " : "");
        say(ret, 0);
}

ROWS(follow, rows_steps)
