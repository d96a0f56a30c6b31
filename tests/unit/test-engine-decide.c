/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The pure part of the engine: verdicts, hold and try, control file commands, the condition: rows/decide.rows.
 * Rule: docs/specification.md 2.10, 4.6, 4.7.
 */
#include <inttypes.h>

#include <lkg/component.h>
#include <lkg/lifecycle.h>
#include <lkg/text.h>

#include "rows.h"

static const char *const verdicts[] = { "keep", "publish", "refuse", "avoid", "wait", "withdraw" };

static size_t index_of(const char *const *words, size_t n, const char *word)
{
        for (size_t i = 0; i < n; i++)
                if (strcmp(words[i], word) == 0)
                        return i;
        fail_msg("what is '%s'?", word);
        return 0;
}

/* `free`, `held@4`, `back@2`, `expired@3`: at a generation; `armed@5`: a try of so many nanoseconds; `trying@3`: it goes back to that. */
static struct lkg_hold hold_of(const char *text)
{
        static const enum lkg_hold_mode modes[] = { LKG_HOLD_FREE, LKG_HOLD_ON, LKG_HOLD_ROLLBACK,
                                                    LKG_HOLD_TRY_EXPIRED };
        const char *at = strchr(text, '@');
        uint64_t number = at ? strtoull(at + 1, NULL, 10) : 0;

        if (*text == 'a')
                return (struct lkg_hold){ .try_phase = LKG_TRY_ARMED, .try_duration_ns = number };
        if (*text == 't')
                return (struct lkg_hold){ .try_phase = LKG_TRY_RUNNING, .try_previous = number };
        return (struct lkg_hold){ .mode = modes[strchr("fhbe", *text) - "fhbe"], .generation = number };
}

static void say_hold(const struct lkg_hold *hold, struct lkg_buf *ret)
{
        static const char *const modes[] = { "free", "held", "back", "expired" };

        if (hold->try_phase == LKG_TRY_ARMED)
                lkg_buf_printf(ret, "armed@%" PRIu64, hold->try_duration_ns);
        else if (hold->mode == LKG_HOLD_FREE)
                lkg_buf_puts(ret, "free");
        else
                lkg_buf_printf(ret, "%s@%" PRIu64, modes[hold->mode], hold->generation);
        if (hold->try_phase != LKG_TRY_ARMED && (hold->try_phase != LKG_TRY_NONE || hold->try_duration_ns))
                lkg_buf_puts(ret, ", with a try");
}

static enum lkg_candidate_state state_of(const char *word)
{
        static const char *const states[] = { "none", "valid", "invalid", "taken" };

        return (enum lkg_candidate_state)index_of(states, LKG_ARRAY_SIZE(states), word);
}

static void say_verdict(const struct question *q, struct lkg_buf *ret)
{
        struct lkg_hold hold = hold_of(q->parts[0]);

        lkg_buf_puts(ret, verdicts[lkg_decide(&hold, state_of(q->parts[1]), *q->parts[2] == 's',
                                              *q->parts[4] == 'b', strtoull(q->parts[3], NULL, 10))]);
}

static void say_next_hold(const struct question *q, struct lkg_buf *ret)
{
        static const char *const commands[] = { "on", "off", "rollback", "try", "commit" };
        struct lkg_hold_step step = lkg_hold_command(
                hold_of(q->parts[0]),
                (enum lkg_hold_command)index_of(commands, LKG_ARRAY_SIZE(commands), q->parts[1]),
                strtoull(q->parts[2], NULL, 10), *q->parts[3] == 'k', strtoull(q->parts[4], NULL, 10));

        assert_true((step.result < 0) == (step.why != NULL));
        if (step.result < 0)
                lkg_buf_printf(ret, "%s: %s, and still ", strerrorname_np(-step.result), step.why);
        say_hold(&step.next, ret);
}

static void say_command(const struct question *q, struct lkg_buf *ret)
{
        static const char *const actions[] = { "hold",   "sync",    "rollback_good", "promote",
                                               "forget", "forgive", "condemn",       "startup" };
        static const char *const holds[] = { "hold_on", "hold_off", "rollback", "try", "commit" };
        const char *text = strchr(q->text, '+') + 3;
        struct lkg_command_call call;
        char why[256];
        int r = lkg_command_parse(q->parts[0], text, q->size - (size_t)(text - q->text), &call, why);

        if (r < 0)
                lkg_buf_printf(ret, "%s: %s", strerrorname_np(-r), why);
        else if (r == 0)
                lkg_buf_puts(ret, "nothing");
        else
                lkg_buf_printf(ret, "%s %s %" PRIu64, actions[call.action],
                               call.action == LKG_DO_HOLD ? holds[call.hold] : "-", call.argument);
}

/* ---- the condition ---- */

/* Members of the facts, as rows name them. */
#define FACT(member, kind)                                                  \
        {                                                                   \
#member, kind, offsetof(struct lkg_condition_facts, member) \
        }
static const struct {
        const char *name;
        enum { BOOL, SIZE, NS, TEXT } kind;
        size_t offset;
} members[] = {
        FACT(n_errors, SIZE),
        FACT(n_all_errors, SIZE),
        FACT(n_remote_errors, SIZE),
        FACT(candidate_has_base, BOOL),
        FACT(active, NS),
        FACT(active_has_base, BOOL),
        FACT(last_good, BOOL),
        FACT(fault, TEXT),
        FACT(not_ready, BOOL),
        FACT(try_deadline_wall_ns, NS),
        FACT(remote.assigned, TEXT),
        FACT(remote.active, TEXT),
        FACT(remote.followed, TEXT),
        FACT(remote.followed_lost, BOOL),
        FACT(remote.assigned_version, TEXT),
        FACT(remote.active_version, TEXT),
        FACT(remote.any, BOOL),
        FACT(remote.active_is_assigned, BOOL),
        FACT(remote.active_is_good, BOOL),
        FACT(remote.waiting, TEXT),
        FACT(remote.bad, TEXT),
        FACT(remote.local_has_base, BOOL),
        FACT(remote.n_local_errors, SIZE),
        FACT(remote.waits, BOOL),
};

static void set_member(struct lkg_condition_facts *facts, const char *text)
{
        size_t i = 0, size = strcspn(text, "=");
        const char *value = text[size] ? text + size + 1 : "";
        char *place;

        while (strncmp(members[i].name, text, size) != 0 || members[i].name[size])
                assert_true(++i < LKG_ARRAY_SIZE(members));
        place = (char *)facts + members[i].offset;
        switch (members[i].kind) {
        case BOOL:
                *(bool *)place = true;
                break;
        case SIZE:
                *(size_t *)place = strtoul(value, NULL, 10);
                break;
        case NS:
                *(uint64_t *)place = strtoull(value, NULL, 10);
                break;
        case TEXT:
                *(const char **)place = value;
                break;
        }
}

static void say_condition(const struct question *q, struct lkg_buf *ret)
{
        static const struct lkg_held_by root = { .time_ns = UINT64_C(2000000000),
                                                 .pid = 7,
                                                 .program = "bash" };
        const struct lkg_hold hold = hold_of(q->parts[0]);
        struct lkg_condition_facts facts = { .component = "c",
                                             .top = "",
                                             .status_path = "status/c",
                                             .file = "f",
                                             .hold = &hold,
                                             .state = state_of(q->parts[1]) };
        struct lkg_condition c = { 0 };

        for (size_t i = 2; i < q->n_parts; i++)
                if (strcmp(q->parts[i], "held_by") == 0)
                        facts.held_by = &root;
                else if (strncmp(q->parts[i], "verdict=", 8) == 0)
                        facts.verdict = (enum lkg_verdict)index_of(verdicts, LKG_ARRAY_SIZE(verdicts),
                                                                   q->parts[i] + 8);
                else
                        set_member(&facts, q->parts[i]);
        assert_true(lkg_condition_update(&c, &facts, 5));
        assert_int_equal(c.transition_ns, 5);
        lkg_buf_printf(ret, "%s %s: %s", lkg_condition_status_name(c.status), c.reason, c.message);
}

static const struct operation operations[] = { { "decide", say_verdict, 5 },
                                               { "command", say_next_hold, 5 },
                                               { "word", say_command, 0 },
                                               { "condition", say_condition, 0 },
                                               { 0 } };

ROWS(decide, operations)

/* ---- what no row can say ---- */

#define FREE                          \
        {                             \
                .mode = LKG_HOLD_FREE \
        }

/* Rule: docs/specification.md 4.7. */
TEST(test_life_of_a_try)
{
        struct lkg_hold hold = { .try_phase = LKG_TRY_ARMED, .try_duration_ns = 100 }, after;

        assert_true(lkg_hold_deadline(&hold) == UINT64_MAX); /* the time runs from when it is active */
        after = lkg_hold_tick(hold, 1000000);
        assert_int_equal(after.try_phase, LKG_TRY_ARMED);
        hold = lkg_hold_published(hold, 7, 1000);
        assert_int_equal(hold.try_phase, LKG_TRY_RUNNING);
        assert_int_equal(hold.try_previous, 7);
        assert_true(lkg_hold_deadline(&hold) == 1100);
        after = lkg_hold_published(hold, 8, 1050); /* a second edit: still back to 7 */
        assert_int_equal(after.try_previous, 7);
        assert_true(lkg_hold_deadline(&after) == 1100);
        after = lkg_hold_tick(hold, 1099);
        assert_int_equal(after.try_phase, LKG_TRY_RUNNING);
        after = lkg_hold_tick(hold, 1100);
        assert_int_equal(after.mode, LKG_HOLD_TRY_EXPIRED);
        assert_int_equal(after.generation, 7);
        assert_int_equal(after.try_phase, LKG_TRY_NONE);
        assert_true(lkg_hold_deadline(&after) == UINT64_MAX);
        hold = (struct lkg_hold)FREE;
        after = lkg_hold_published(hold, 7, 1000);
        assert_int_equal(after.try_phase, LKG_TRY_NONE);
}

/* Text from others is cut to fit, never within a character. */
TEST(test_condition_words_stay_utf8)
{
        static const struct lkg_hold free_hold = FREE;
        char fault[400];

        for (size_t before = 0; before < 4; before++) {
                struct lkg_condition_facts facts = { .component = "c",
                                                     .file = "f",
                                                     .hold = &free_hold,
                                                     .state = LKG_CANDIDATE_VALID,
                                                     .active = 1 };
                struct lkg_condition c = { 0 };
                size_t n = 0;

                memset(fault, 'x', before);
                fault[before] = '\0';
                while (n + 5 < sizeof(fault) - before)
                        n = (size_t)(stpcpy(fault + before + n, "\xf0\x9f\x98\x80") - (fault + before));
                facts.remote.desired_fault = fault;
                assert_true(lkg_condition_update(&c, &facts, 5));
                assert_int_equal(c.status, LKG_CONDITION_UNKNOWN);
                for (size_t i = 0, k; c.reason[i]; i += k) {
                        k = lkg_utf8_length(c.reason + i, strlen(c.reason + i));
                        assert_int_not_equal(k, 0);
                }
        }
}

/* Rule: docs/specification.md 2.10. */
TEST(test_transition_time_changes_with_the_status_alone)
{
        static const struct lkg_hold free_hold = FREE, held = { .mode = LKG_HOLD_ON, .generation = 1 };
        struct lkg_condition_facts facts = {
                .component = "c", .file = "f", .hold = &free_hold, .state = LKG_CANDIDATE_VALID, .active = 1
        };
        struct lkg_condition c = { 0 };

        assert_true(lkg_condition_update(&c, &facts, 10));
        assert_false(lkg_condition_update(&c, &facts, 20));
        facts.hold = &held;
        assert_true(lkg_condition_update(&c, &facts, 30));
        assert_int_equal(c.transition_ns, 10);
        facts.state = LKG_CANDIDATE_INVALID;
        assert_true(lkg_condition_update(&c, &facts, 40));
        assert_int_equal(c.transition_ns, 40);
}
