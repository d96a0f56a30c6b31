/* SPDX-License-Identifier: Apache-2.0 */
/* The pure part of the engine as tables: verdicts, hold and try, control file commands, the condition. */
#include <inttypes.h>

#include <lkg/text.h>
#include <lkg/lifecycle.h>

#include <lkg/component.h>

#include "unit.h"

#define FREE                          \
        {                             \
                .mode = LKG_HOLD_FREE \
        }
#define HELD(n)                                        \
        {                                              \
                .mode = LKG_HOLD_ON, .generation = (n) \
        }
#define BACK(n)                                              \
        {                                                    \
                .mode = LKG_HOLD_ROLLBACK, .generation = (n) \
        }
#define LATE(n)                                                 \
        {                                                       \
                .mode = LKG_HOLD_TRY_EXPIRED, .generation = (n) \
        }
#define ARMED(d)                                                   \
        {                                                          \
                .try_phase = LKG_TRY_ARMED, .try_duration_ns = (d) \
        }

/* Rule: docs/specification.md 4.6. */
TEST(test_verdicts)
{
        static const struct {
                struct lkg_hold hold;
                enum lkg_candidate_state candidate;
                bool same;
                uint64_t active;
                enum lkg_verdict want;
                bool bad;
        } rows[] = {
                { FREE, LKG_CANDIDATE_VALID, false, 3, LKG_AVOID, .bad = true },
                { FREE, LKG_CANDIDATE_VALID, true, 3, LKG_KEEP, .bad = true },     /* it is the only one */
                { FREE, LKG_CANDIDATE_VALID, false, 0, LKG_PUBLISH, .bad = true }, /* better than nothing */
                { HELD(3), LKG_CANDIDATE_VALID, false, 3, LKG_AVOID, .bad = true },
                { FREE, LKG_CANDIDATE_INVALID, false, 3, LKG_REFUSE, .bad = true },
                { FREE, LKG_CANDIDATE_VALID, false, 0, LKG_PUBLISH },
                { FREE, LKG_CANDIDATE_VALID, false, 3, LKG_PUBLISH },
                { FREE, LKG_CANDIDATE_VALID, true, 3, LKG_KEEP },
                { FREE, LKG_CANDIDATE_VALID, true, 0,
                  LKG_PUBLISH }, /* the same as nothing is different from nothing */
                { FREE, LKG_CANDIDATE_INVALID, false, 3, LKG_REFUSE },
                { FREE, LKG_CANDIDATE_INVALID, false, 0, LKG_REFUSE },
                { FREE, LKG_CANDIDATE_NONE, false, 3, LKG_WITHDRAW },
                { FREE, LKG_CANDIDATE_NONE, false, 0, LKG_KEEP },
                { FREE, LKG_CANDIDATE_NAME_TAKEN, false, 3, LKG_WITHDRAW },
                { FREE, LKG_CANDIDATE_NAME_TAKEN, false, 0, LKG_KEEP },
                { HELD(3), LKG_CANDIDATE_VALID, false, 3, LKG_WAIT },
                { HELD(3), LKG_CANDIDATE_VALID, true, 3, LKG_KEEP },
                { HELD(3), LKG_CANDIDATE_INVALID, false, 3, LKG_REFUSE },
                { HELD(3), LKG_CANDIDATE_NONE, false, 3, LKG_WAIT },
                { HELD(3), LKG_CANDIDATE_NAME_TAKEN, false, 3,
                  LKG_WITHDRAW }, /* a kubeconfig is never hidden */
                { HELD(0), LKG_CANDIDATE_VALID, false, 0, LKG_WAIT },
                { BACK(1), LKG_CANDIDATE_VALID, false, 1, LKG_WAIT },
                { LATE(1), LKG_CANDIDATE_VALID, false, 1, LKG_WAIT },
                { ARMED(9), LKG_CANDIDATE_VALID, false, 1, LKG_PUBLISH },
        };

        for (size_t i = 0; i < LKG_ARRAY_SIZE(rows); i++) {
                enum lkg_verdict got = lkg_decide(&rows[i].hold, rows[i].candidate, rows[i].same,
                                                  rows[i].bad, rows[i].active);

                if (got != rows[i].want)
                        fail_msg("row %zu: %d, want %d", i, got, rows[i].want);
        }
}

/* Rule: docs/specification.md 4.7. */
TEST(test_hold_commands)
{
        static const struct {
                struct lkg_hold hold;
                enum lkg_hold_command command;
                uint64_t argument;
                bool known;
                uint64_t active;
                int want;
                struct lkg_hold next; /* if want is 0 */
        } rows[] = {
                { FREE, LKG_CMD_HOLD_ON, 0, false, 4, 0, HELD(4) },
                { HELD(4), LKG_CMD_HOLD_ON, 0, false, 4, 0, HELD(4) },
                { BACK(2), LKG_CMD_HOLD_ON, 0, false, 2, 0, HELD(2) },
                { LATE(2), LKG_CMD_HOLD_ON, 0, false, 2, 0, LATE(2) },
                { HELD(4), LKG_CMD_HOLD_OFF, 0, false, 4, 0, FREE },
                { BACK(2), LKG_CMD_HOLD_OFF, 0, false, 2, 0, FREE },
                { LATE(2), LKG_CMD_HOLD_OFF, 0, false, 2, 0, FREE },
                { FREE, LKG_CMD_HOLD_OFF, 0, false, 2, 0, FREE },
                { FREE, LKG_CMD_ROLLBACK, 2, true, 4, 0, BACK(2) },
                { HELD(4), LKG_CMD_ROLLBACK, 2, true, 4, 0, HELD(2) },
                { BACK(2), LKG_CMD_ROLLBACK, 3, true, 2, 0, BACK(3) },
                { FREE, LKG_CMD_ROLLBACK, 9, false, 4, -EINVAL, FREE },
                { ARMED(5), LKG_CMD_ROLLBACK, 2, true, 4, 0, BACK(2) }, /* the try is over */
                { FREE, LKG_CMD_TRY, 5, false, 4, 0, ARMED(5) },
                { FREE, LKG_CMD_TRY, 0, false, 4, -EINVAL, FREE },
                { FREE, LKG_CMD_TRY, 5, false, 0, -EBUSY, FREE },
                { HELD(4), LKG_CMD_TRY, 5, false, 4, -EBUSY, FREE },
                { ARMED(5), LKG_CMD_TRY, 5, false, 4, -EBUSY, FREE },
                { FREE, LKG_CMD_COMMIT, 0, false, 4, -EINVAL, FREE },
                { ARMED(5), LKG_CMD_COMMIT, 0, false, 4, 0, FREE },
        };

        for (size_t i = 0; i < LKG_ARRAY_SIZE(rows); i++) {
                struct lkg_hold_step step = lkg_hold_command(rows[i].hold, rows[i].command, rows[i].argument,
                                                             rows[i].known, rows[i].active);
                const struct lkg_hold *want = step.result < 0 ? &rows[i].hold : &rows[i].next;

                if (step.result != rows[i].want || step.next.mode != want->mode ||
                    step.next.generation != want->generation || step.next.try_phase != want->try_phase ||
                    step.next.try_duration_ns != want->try_duration_ns)
                        fail_msg("row %zu: %d, mode %d, generation %" PRIu64, i, step.result, step.next.mode,
                                 step.next.generation);
                assert_true((step.result < 0) == (step.why != NULL));
        }
}

/* Rule: docs/specification.md 4.7. */
TEST(test_life_of_a_try)
{
        struct lkg_hold hold = ARMED(100), after;

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

TEST(test_words_of_control_files)
{
        static const struct {
                const char *name, *text;
                int want;
                enum lkg_command_action action;
                int hold;
                uint64_t argument;
        } rows[] = {
                { "hold", "on", 1, LKG_DO_HOLD, LKG_CMD_HOLD_ON, 0 },
                { "hold", "off\n", 1, LKG_DO_HOLD, LKG_CMD_HOLD_OFF, 0 },
                { "hold", "", 0, 0, 0, 0 },
                { "hold", "\n", 0, 0, 0, 0 },
                { "hold", "On", -EINVAL, 0, 0, 0 },
                { "hold", "on ", -EINVAL, 0, 0, 0 },
                { "hold", "on\non\n", -EINVAL, 0, 0, 0 },
                { "hold", "on\n\n", -EINVAL, 0, 0, 0 },
                { "rollback", "12\n", 1, LKG_DO_HOLD, LKG_CMD_ROLLBACK, 12 },
                { "rollback", "012", -EINVAL, 0, 0, 0 },
                { "rollback", "0", -EINVAL, 0, 0, 0 },
                { "rollback", "-1", -EINVAL, 0, 0, 0 },
                { "rollback", "18446744073709551616", -EINVAL, 0, 0, 0 },
                { "rollback", "lkg", 1, LKG_DO_ROLLBACK_GOOD, 0, 0 },
                { "rollback", "LKG", -EINVAL, 0, 0, 0 },
                { "try", "5m\n", 1, LKG_DO_HOLD, LKG_CMD_TRY, UINT64_C(300000000000) },
                { "try", "5", -EINVAL, 0, 0, 0 },
                { "sync", "now", 1, LKG_DO_SYNC, 0, 0 },
                { "sync", "later", -EINVAL, 0, 0, 0 },
                { "commit", "now\n", 1, LKG_DO_HOLD, LKG_CMD_COMMIT, 0 },
                { "commit", "yes", -EINVAL, 0, 0, 0 },
                { "promote", "now", 1, LKG_DO_PROMOTE, 0, 0 },
                { "promote", "yes", -EINVAL, 0, 0, 0 },
                { "startup", "now", 1, LKG_DO_STARTUP, 0, 0 },
                { "startup", "4711\n", 1, LKG_DO_STARTUP, 0, 4711 },
                { "startup", "0", -EINVAL, 0, 0, 0 },
                { "startup", "-1", -EINVAL, 0, 0, 0 },
                { "startup", "4294967296", -EINVAL, 0, 0, 0 },
                { "forget", "all", 1, LKG_DO_FORGET, 0, 0 },
                { "forget", "8f1c@12:cfg\n", 1, LKG_DO_FORGET, 0, 0 },
                { "forget", "../x", -EINVAL, 0, 0, 0 },
                { "forgive", "8f1c", 1, LKG_DO_FORGIVE, 0, 0 },
                { "forgive", "all", 1, LKG_DO_FORGIVE, 0, 0 }, /* a name like any other */
                { "nosuch", "now", -EINVAL, 0, 0, 0 },
        };
        char why[256], longest[300];
        struct lkg_command_call call;

        for (size_t i = 0; i < LKG_ARRAY_SIZE(rows); i++) {
                int r = lkg_command_parse(rows[i].name, rows[i].text, strlen(rows[i].text), &call, why);

                if (r != rows[i].want)
                        fail_msg("%s %s: %d", rows[i].name, rows[i].text, r);
                if (r < 0)
                        assert_memory_equal(why, rows[i].name, strlen(rows[i].name));
                if (r != 1)
                        continue;
                assert_int_equal(call.action, rows[i].action);
                assert_int_equal(call.hold, rows[i].hold);
                assert_true(call.argument == rows[i].argument);
        }
        memset(longest, '1', sizeof(longest));
        assert_int_equal(lkg_command_parse("rollback", longest, sizeof(longest), &call, why), -EINVAL);
        assert_string_equal(why, "rollback: too long; want lkg, or a generation number from history");
        assert_int_equal(lkg_command_parse("hold", "on\0x", 4, &call, why), -EINVAL);
        assert_int_equal(lkg_command_parse("hold", "\x1b[2J", 4, &call, why), -EINVAL);
        assert_string_equal(why, "hold: \"\\x1b[2J\" is not understood; want on or off");
}

/* Rule: docs/specification.md 2.10. */
TEST(test_condition_words)
{
        static const struct lkg_hold free_hold = FREE, held = HELD(4), late = LATE(3),
                                     trying = { .try_phase = LKG_TRY_RUNNING, .try_previous = 3 };
        static const struct lkg_held_by root = { .time_ns = UINT64_C(2000000000),
                                                 .pid = 7,
                                                 .program = "bash" };
        static const struct {
                struct lkg_condition_facts facts;
                const char *want;
        } rows[] = {
                { { .hold = &free_hold, .state = LKG_CANDIDATE_VALID, .active = 4, .active_has_base = true },
                  "True current is set to the local default, and an init config was provided: using current "
                  "(init)" },
                { { .hold = &free_hold, .state = LKG_CANDIDATE_VALID, .active = 4 },
                  "True current is set to the local default, and no init config was provided: using current "
                  "(default)" },
                { { .hold = &free_hold,
                    .state = LKG_CANDIDATE_INVALID,
                    .verdict = LKG_REFUSE,
                    .n_errors = 2,
                    .active = 4,
                    .active_has_base = true,
                    .candidate_has_base = true },
                  "False failed to validate current (init), 2 errors, see status/c/findings: using current "
                  "(init)" },
                { { .hold = &free_hold,
                    .state = LKG_CANDIDATE_INVALID,
                    .n_errors = 1,
                    .active = 4,
                    .last_good = true },
                  "False failed to validate current (default), 1 error, see status/c/findings: using "
                  "last-known-good "
                  "(default), generation 4" },
                { { .hold = &free_hold,
                    .state = LKG_CANDIDATE_INVALID,
                    .n_errors = 2,
                    .n_all_errors = 2,
                    .active = 4 },
                  "False failed to validate current (default), 2 errors, see status/c/findings: using "
                  "current (default)" },
                { { .hold = &free_hold,
                    .state = LKG_CANDIDATE_INVALID,
                    .n_errors = 1,
                    .n_all_errors = 3,
                    .active = 4 },
                  "False failed to validate current (default), 1 of the 3 errors in status/c/findings: "
                  "using "
                  "current (default)" },
                { { .hold = &free_hold,
                    .state = LKG_CANDIDATE_VALID,
                    .n_all_errors = 2,
                    .remote = { .assigned = "u",
                                .active = "u",
                                .followed = "u",
                                .any = true,
                                .active_is_assigned = true,
                                .n_local_errors = 1 },
                    .active = 4 },
                  "False failed to validate local (default), 1 of the 2 errors in status/c/findings: using "
                  "current (UID: u)" },
                { { .hold = &late,
                    .state = LKG_CANDIDATE_VALID,
                    .remote = { .assigned = "u",
                                .active = "v",
                                .followed = "v",
                                .any = true,
                                .active_is_good = true,
                                .n_local_errors = 1,
                                .bad = "failed to parse current (UID: u)" },
                    .active = 4 },
                  "False failed to parse current (UID: u): using last-known-good (UID: v); failed to "
                  "validate "
                  "local (default), 1 error, see status/c/findings; held at generation 3 (try expired): "
                  "`echo off > control/c/hold`" },
                { { .hold = &free_hold,
                    .state = LKG_CANDIDATE_INVALID,
                    .remote = { .assigned = "u",
                                .active = "v",
                                .followed = "v",
                                .any = true,
                                .active_is_good = true,
                                .bad = "failed to parse current (UID: u)" },
                    .n_errors = 2,
                    .active = 4 },
                  "False failed to parse current (UID: u): using last-known-good (UID: v); failed to "
                  "validate "
                  "local (default) with last-known-good (UID: v), 2 errors, see status/c/findings" },
                { { .hold = &free_hold,
                    .state = LKG_CANDIDATE_INVALID,
                    .remote = { .assigned = "u",
                                .active = "",
                                .followed = "",
                                .any = true,
                                .active_is_good = true,
                                .bad = "failed to parse current (UID: u)" },
                    .n_errors = 1,
                    .active = 4 },
                  "False failed to parse current (UID: u): using last-known-good (default); failed to "
                  "validate local (default), 1 error, see status/c/findings" },
                { { .hold = &late,
                    .state = LKG_CANDIDATE_VALID,
                    .remote = { .assigned = "u",
                                .active = "u",
                                .followed = "u",
                                .any = true,
                                .active_is_assigned = true,
                                .n_local_errors = 1 },
                    .active = 4 },
                  "False try expired, held at generation 3: using current (UID: u); failed to validate "
                  "local "
                  "(default), 1 error, see status/c/findings; held: `echo off > control/c/hold`" },
                { { .hold = &free_hold, .state = LKG_CANDIDATE_INVALID, .n_errors = 1 },
                  "False failed to validate current (default), 1 error, see status/c/findings: f is not "
                  "served" },
                { { .hold = &free_hold, .state = LKG_CANDIDATE_NONE },
                  "Unknown no layer found: f is not served" },
                { { .hold = &held, .state = LKG_CANDIDATE_VALID, .active = 4 },
                  "True held at generation 4 (hold): using current (default); held: `echo off > "
                  "control/c/hold`" },
                { { .hold = &held,
                    .held_by = &root,
                    .state = LKG_CANDIDATE_VALID,
                    .verdict = LKG_WAIT,
                    .active = 4 },
                  "True held at generation 4 (hold): using current (default); a newer one waits for hold "
                  "off; held since 1970-01-01T00:00:02Z by uid 0 (pid 7, bash): `echo off > "
                  "control/c/hold`" },
                { { .hold = &late, .state = LKG_CANDIDATE_VALID, .verdict = LKG_WAIT, .active = 3 },
                  "False try expired, held at generation 3: using current (default); held: `echo off > "
                  "control/c/hold`" },
                { { .hold = &trying,
                    .state = LKG_CANDIDATE_VALID,
                    .active = 4,
                    .try_deadline_wall_ns = UINT64_C(1000000000) },
                  "True on try until 1970-01-01T00:00:01Z, then back to generation 3 unless committed: "
                  "using current "
                  "(default); `echo now > control/c/commit` keeps it" },
                { { .hold = &held,
                    .held_by = &root,
                    .state = LKG_CANDIDATE_VALID,
                    .remote = { .assigned = "", .active = "", .followed = "", .waiting = "rollout halted" },
                    .active = 4 },
                  "True held at generation 4 (hold): using current (default); held since "
                  "1970-01-01T00:00:02Z by "
                  "uid 0 (pid 7, bash): `echo off > control/c/hold`; rollout halted" },
                { { .hold = &free_hold,
                    .state = LKG_CANDIDATE_INVALID,
                    .remote = { .assigned = "", .active = "", .followed = "", .waiting = "rollout halted" },
                    .n_errors = 1,
                    .active = 4 },
                  "False failed to validate current (default), 1 error, see status/c/findings: using "
                  "current "
                  "(default); rollout halted" },
                { { .hold = &free_hold,
                    .state = LKG_CANDIDATE_VALID,
                    .remote = { .assigned = "", .active = "", .followed = "", .waiting = "rollout halted" },
                    .active = 4 },
                  "True rollout halted: using current (default)" },
                { { .hold = &held,
                    .held_by = &root,
                    .state = LKG_CANDIDATE_INVALID,
                    .n_errors = 1,
                    .active = 4 },
                  "False failed to validate current (default), 1 error, see status/c/findings: using "
                  "current "
                  "(default); held since 1970-01-01T00:00:02Z by uid 0 (pid 7, bash) at generation 4 "
                  "(hold): "
                  "`echo off > control/c/hold`" },
                { { .hold = &free_hold,
                    .state = LKG_CANDIDATE_VALID,
                    .active = 4,
                    .fault = "failed to publish: x" },
                  "Unknown failed to publish: x: using current (default)" },
                { { .hold = &free_hold, .active = 4, .not_ready = true, .last_good = true },
                  "Unknown engine not ready: using last-known-good (default), generation 4" },
                { { .hold = &free_hold, .state = LKG_CANDIDATE_NAME_TAKEN },
                  "False name taken: f is a kubeconfig and is passed through; choose another name (file: "
                  "c-config.yaml)" },
        };

        for (size_t i = 0; i < LKG_ARRAY_SIZE(rows); i++) {
                struct lkg_condition_facts facts = rows[i].facts;
                struct lkg_condition c = { 0 };
                char line[900];

                facts.component = "c";
                facts.top = "";
                facts.status_path = "status/c";
                facts.file = "f";
                assert_true(lkg_condition_update(&c, &facts, 5));
                (void)snprintf(line, sizeof(line), "%s %s: %s", lkg_condition_status_name(c.status),
                               c.reason, c.message);
                assert_string_equal(line, rows[i].want);
                assert_int_equal(c.transition_ns, 5);
        }
}

/* Two versions of one ConfigMap: the uid alone is ambiguous. */
TEST(test_condition_names_versions)
{
        static const struct lkg_hold free_hold = FREE;
        static const struct {
                const char *assigned, *assigned_version, *active, *active_version, *bad;
                enum lkg_candidate_state state;
                const char *want;
        } rows[] = {
                { "u", "8", "u", "7", "failed to validate current (UID: u)", LKG_CANDIDATE_VALID,
                  "False failed to validate current (UID: u): "
                  "using last-known-good (UID: u), resourceVersion 7 instead of 8" },
                { "u", "8", "u", "7", "current failed trial period due to crash loop (UID: u)",
                  LKG_CANDIDATE_VALID,
                  "False current failed trial period due to crash loop (UID: u): "
                  "using last-known-good (UID: u), resourceVersion 7 instead of 8" },
                { "u", "8", "u", "7", NULL, LKG_CANDIDATE_INVALID,
                  "False failed to validate current (UID: u), 1 error, see "
                  "status/c/findings: "
                  "using last-known-good (UID: u), resourceVersion 7 instead of 8" },
                { "u", "8", "u", "8", NULL, LKG_CANDIDATE_VALID,
                  "True all checks passed: using last-known-good (UID: u)" },
                { "u", "8", "v", "7", "failed to validate current (UID: u)", LKG_CANDIDATE_VALID,
                  "False failed to validate current (UID: u): using last-known-good (UID: v)" },
                { "u", "8", "", "", "failed to validate current (UID: u)", LKG_CANDIDATE_VALID,
                  "False failed to validate current (UID: u): using last-known-good (default)" },
        };

        for (size_t i = 0; i < LKG_ARRAY_SIZE(rows); i++) {
                struct lkg_condition_facts facts = { .component = "c",
                                                     .file = "f",
                                                     .top = "",
                                                     .status_path = "status/c",
                                                     .hold = &free_hold,
                                                     .state = rows[i].state,
                                                     .n_errors = 1,
                                                     .n_remote_errors = 1,
                                                     .active = 1 };
                struct lkg_condition c = { 0 };
                char line[900];

                facts.remote = (struct lkg_condition_remote){ .any = true,
                                                              .assigned = rows[i].assigned,
                                                              .assigned_version = rows[i].assigned_version,
                                                              .active = rows[i].active,
                                                              .active_version = rows[i].active_version,
                                                              .followed = rows[i].assigned,
                                                              .bad = rows[i].bad,
                                                              .active_is_good = true };
                assert_true(lkg_condition_update(&c, &facts, 5));
                (void)snprintf(line, sizeof(line), "%s %s: %s", lkg_condition_status_name(c.status),
                               c.reason, c.message);
                assert_string_equal(line, rows[i].want);
        }
}

/* Which layer caused the mistake, while a ConfigMap is followed. */
TEST(test_condition_blames)
{
        static const struct lkg_hold free_hold = FREE;
        static const struct {
                size_t errors, of_remote, of_local;
                bool waits;
                const char *want;
        } rows[] = {
                { 2, 2, 0, false, "failed to validate current (UID: u), 2 errors, see status/c/findings" },
                { 2, 1, 0, false,
                  "failed to validate local (init) with current (UID: u), 2 errors, see status/c/findings" },
                { 1, 0, 0, true,
                  "failed to validate local (init) with current (UID: u), 1 error, see status/c/findings; "
                  "what "
                  "is assigned waits for it" },
                { 2, 1, 1, false, "failed to validate local (init), 1 error, see status/c/findings" },
                { 1, 0, 3, true,
                  "failed to validate local (init), 3 errors, see status/c/findings; what is assigned waits "
                  "for it" },
                { 1, 1, 3, false, "failed to validate current (UID: u), 1 error, see status/c/findings" },
        };

        for (size_t i = 0; i < LKG_ARRAY_SIZE(rows); i++) {
                const struct lkg_condition_facts facts = { .component = "c",
                                                           .file = "f",
                                                           .top = "",
                                                           .status_path = "status/c",
                                                           .hold = &free_hold,
                                                           .state = LKG_CANDIDATE_INVALID,
                                                           .n_errors = rows[i].errors,
                                                           .n_remote_errors = rows[i].of_remote,
                                                           .remote = { .any = true,
                                                                       .assigned = "u",
                                                                       .active = "u",
                                                                       .followed = "u",
                                                                       .local_has_base = true,
                                                                       .n_local_errors = rows[i].of_local,
                                                                       .waits = rows[i].waits },
                                                           .active = 1 };
                struct lkg_condition_facts lost = facts;
                struct lkg_condition c = { 0 };

                assert_true(lkg_condition_update(&c, &facts, 5));
                assert_string_equal(c.reason, rows[i].want);
                assert_int_equal(c.status, LKG_CONDITION_FALSE);
                if (rows[i].of_local)
                        continue;
                lost.remote.followed_lost = true;
                assert_true(lkg_condition_update(&c, &lost, 5));
                assert_string_equal(c.reason, "checkpoint of current (UID: u) lost, see status/c/findings");
        }
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
        static const struct lkg_hold free_hold = FREE, held = HELD(1);
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
