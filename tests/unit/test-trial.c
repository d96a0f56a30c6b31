/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The trial: what is marked bad at which start, what its clock counts, and which rules a candidate has.
 * Rule: docs/specification.md 4.10.
 */

#include <lkg/trial.h>

#include "unit.h"

#define S      LKG_NSEC_PER_SEC
#define M      (60 * S)
#define BOOTED (5 * M) /* any CLOCK_BOOTTIME to start from */

/* ---- a script of events ---- */

enum event { END, BEGIN, BEGIN_UNWATCHED, RESUME, RESUME_UNWATCHED, START, UNCOUNTED, ALIVE, DEAD, TICK };

struct line {
        enum event event;
        uint64_t at_ns; /* relative to BOOTED */
        /* afterwards */
        enum lkg_trial_verdict verdict;
        enum lkg_trial_state state;
        unsigned prior;
        uint64_t elapsed_ns;
};

static struct lkg_trial_step play(struct lkg_trial trial, struct lkg_trial_rules rules,
                                  const struct line *line)
{
        uint64_t now = BOOTED + line->at_ns;
        struct lkg_trial_step step = { trial, LKG_TRIAL_GO_ON };

        switch (line->event) {
        case BEGIN:
        case BEGIN_UNWATCHED:
                step.next = lkg_trial_begin(rules, line->event == BEGIN, now, 1234 * S);
                break;
        case RESUME:
        case RESUME_UNWATCHED:
                /* like a store: the elapsed time, and another clock */
                step.next.good_ns = lkg_trial_elapsed(&trial, now);
                step.next.running_since_ns = 77777 * M;
                step.next = lkg_trial_resume(step.next, line->event == RESUME, now);
                break;
        case START:
        case UNCOUNTED:
                return lkg_trial_start(trial, line->event == START, now);
        case ALIVE:
        case DEAD:
                step.next = lkg_trial_alive(trial, line->event == ALIVE, now);
                break;
        case TICK:
                return lkg_trial_tick(trial, now);
        case END:
                break;
        }
        return step;
}

struct script {
        const char *name;
        unsigned threshold;
        struct line lines[14];
};

static void run(const struct script *script)
{
        const struct lkg_trial_rules rules = { 10 * M, script->threshold };
        const struct line *lines = script->lines;
        struct lkg_trial trial = { .state = LKG_TRIAL_IDLE };

        for (size_t i = 0; lines[i].event != END; i++) {
                struct lkg_trial_step step = play(trial, rules, &lines[i]);
                uint64_t elapsed = lkg_trial_elapsed(&step.next, BOOTED + lines[i].at_ns);

                if (step.verdict != lines[i].verdict || step.next.state != lines[i].state ||
                    step.next.prior != lines[i].prior || elapsed != lines[i].elapsed_ns)
                        fail_msg("%s, line %zu: verdict %d, state %s, prior %u, elapsed %llu ns",
                                 script->name, i, step.verdict, lkg_trial_state_name(step.next.state),
                                 step.next.prior, (unsigned long long)elapsed);
                trial = step.next;
        }
}

#define RUNNING  LKG_TRIAL_GO_ON, LKG_TRIAL_RUNNING
#define PROMOTED LKG_TRIAL_PROMOTE, LKG_TRIAL_PASSED
#define PASSED   LKG_TRIAL_GO_ON, LKG_TRIAL_PASSED
#define FAILED   LKG_TRIAL_CONDEMN, LKG_TRIAL_FAILED

static const struct lkg_trial_rules usual = { 10 * M, 10 };

/* ---- starts ---- */

/* Rule: docs/specification.md 4.9. */
TEST(test_start_that_condemns)
{
        static const struct {
                unsigned threshold, condemned; /* which start, counting from 1 */
        } rows[] = { { 0, 2 }, { 1, 3 }, { 2, 4 }, { 9, 11 }, { 10, 12 } };

        for (size_t i = 0; i < LKG_ARRAY_SIZE(rows); i++) {
                struct lkg_trial trial = lkg_trial_begin(
                        (struct lkg_trial_rules){ 10 * M, rows[i].threshold }, true, BOOTED, S);

                for (unsigned k = 1; k <= rows[i].condemned; k++) {
                        struct lkg_trial_step step = lkg_trial_start(trial, true, BOOTED + k * S);

                        assert_int_equal(step.verdict,
                                         k == rows[i].condemned ? LKG_TRIAL_CONDEMN : LKG_TRIAL_GO_ON);
                        assert_int_equal(step.next.prior, k == rows[i].condemned ? k - 1 : k);
                        trial = step.next;
                }
                assert_int_equal(trial.state, LKG_TRIAL_FAILED);
                /* once */
                assert_int_equal(lkg_trial_start(trial, true, BOOTED + M).verdict, LKG_TRIAL_GO_ON);
        }
}

TEST(test_crash_loop_with_minute_long_gaps)
{
        /* Alive for one second each minute: after half an hour of wall time the trial has not advanced. */
        struct lkg_trial trial = lkg_trial_begin(usual, true, BOOTED, S);

        for (unsigned k = 1; k <= 11; k++) {
                uint64_t at = BOOTED + k * 3 * M;
                struct lkg_trial_step step = lkg_trial_start(trial, true, at);

                assert_int_equal(step.verdict, LKG_TRIAL_GO_ON);
                trial = lkg_trial_alive(step.next, true, at);
                assert_int_equal(lkg_trial_tick(trial, at).verdict, LKG_TRIAL_GO_ON);
                trial = lkg_trial_alive(trial, false, at + S);
                assert_int_equal(lkg_trial_elapsed(&trial, at + 2 * M), k * S);
        }
        assert_int_equal(lkg_trial_start(trial, true, BOOTED + 36 * M).verdict, LKG_TRIAL_CONDEMN);
}

/* ---- the clock ---- */

static const struct script scripts[] = {
        { "uncounted starts neither condemn nor count",
          0,
          {
                  { BEGIN, 0, RUNNING, 0, 0 },
                  { UNCOUNTED, 1 * S, RUNNING, 0, 0 },
                  { START, 2 * S, RUNNING, 1, 0 },
                  { UNCOUNTED, 3 * S, RUNNING, 1, 0 },
                  { UNCOUNTED, 4 * S, RUNNING, 1, 0 },
                  { START, 5 * S, FAILED, 1, 0 },
                  { UNCOUNTED, 6 * S, LKG_TRIAL_GO_ON, LKG_TRIAL_FAILED, 1, 0 },
          } },
        { "promotion needs more than the duration",
          10,
          {
                  { BEGIN, 0, RUNNING, 0, 0 },
                  { START, 1 * M, RUNNING, 1, 0 },
                  { ALIVE, 1 * M, RUNNING, 1, 0 },
                  { TICK, 2 * M, RUNNING, 1, 1 * M },
                  { TICK, 11 * M, RUNNING, 1, 10 * M },
                  { TICK, 11 * M + 1, PROMOTED, 1, 10 * M + 1 },
                  { TICK, 12 * M, PASSED, 1, 10 * M + 1 },
                  { START, 13 * M, PASSED, 1, 10 * M + 1 },
          } },
        { "clock stands still while dead",
          10,
          {
                  { BEGIN, 0, RUNNING, 0, 0 },
                  { TICK, 60 * M, RUNNING, 0, 0 },
                  { START, 60 * M, RUNNING, 1, 0 },
                  { ALIVE, 60 * M, RUNNING, 1, 0 },
                  { ALIVE, 61 * M, RUNNING, 1, 1 * M }, /* a second process */
                  { DEAD, 64 * M, RUNNING, 1, 4 * M },
                  { DEAD, 65 * M, RUNNING, 1, 4 * M },
                  { TICK, 90 * M, RUNNING, 1, 4 * M },
                  { START, 90 * M, RUNNING, 2, 4 * M },
                  { ALIVE, 90 * M, RUNNING, 2, 4 * M },
                  { TICK, 96 * M, RUNNING, 2, 10 * M },
                  { TICK, 96 * M + 1, PROMOTED, 2, 10 * M + 1 },
          } },
        { "dead component is not promoted by a tick",
          10,
          {
                  { BEGIN, 0, RUNNING, 0, 0 },
                  { ALIVE, 0, RUNNING, 0, 0 },
                  { DEAD, 11 * M, RUNNING, 0, 11 * M },
                  { TICK, 12 * M, RUNNING, 0, 11 * M },
                  { ALIVE, 13 * M, RUNNING, 0, 11 * M },
                  { TICK, 13 * M, PROMOTED, 0, 11 * M },
          } },
        { "unwatched component counts elapsed time",
          10,
          {
                  { BEGIN_UNWATCHED, 0, RUNNING, 0, 0 },
                  { START, 3 * M, RUNNING, 1, 3 * M },
                  { RESUME_UNWATCHED, 5 * M, RUNNING, 1, 5 * M },
                  { TICK, 10 * M, RUNNING, 1, 10 * M },
                  { TICK, 10 * M + 1, PROMOTED, 1, 10 * M + 1 },
          } },
        { "daemon restart in the middle",
          10,
          {
                  { BEGIN, 0, RUNNING, 0, 0 },
                  { START, 0, RUNNING, 1, 0 },
                  { ALIVE, 0, RUNNING, 1, 0 },
                  { RESUME, 4 * M, RUNNING, 1, 4 * M },
                  { TICK, 30 * M, RUNNING, 1, 4 * M },
                  { ALIVE, 30 * M, RUNNING, 1, 4 * M }, /* the same process, found again */
                  { TICK, 36 * M + 1, PROMOTED, 1, 10 * M + 1 },
                  { RESUME, 37 * M, PASSED, 1, 10 * M + 1 },
                  { RESUME_UNWATCHED, 38 * M, PASSED, 1, 10 * M + 1 },
          } },
        { "a start after the duration promotes",
          0,
          {
                  { BEGIN, 0, RUNNING, 0, 0 },
                  { START, 0, RUNNING, 1, 0 },
                  { ALIVE, 0, RUNNING, 1, 0 },
                  { DEAD, 10 * M + 1, RUNNING, 1, 10 * M + 1 },
                  { START, 10 * M + 2, PROMOTED, 1, 10 * M + 1 },
          } },
        { "so does one that does not count",
          0,
          {
                  { BEGIN, 0, RUNNING, 0, 0 },
                  { ALIVE, 0, RUNNING, 0, 0 },
                  { UNCOUNTED, 11 * M, PROMOTED, 0, 11 * M },
          } },
        { "not one at its end",
          0,
          {
                  { BEGIN, 0, RUNNING, 0, 0 },
                  { START, 0, RUNNING, 1, 0 },
                  { ALIVE, 0, RUNNING, 1, 0 },
                  { START, 10 * M, FAILED, 1, 10 * M },
          } },
};

TEST(test_scripts)
{
        for (size_t i = 0; i < LKG_ARRAY_SIZE(scripts); i++)
                run(&scripts[i]);
}

TEST(test_resume_after_reboot)
{
        struct lkg_trial trial = lkg_trial_begin(usual, true, 1000 * M, 7 * S);

        trial = lkg_trial_start(trial, true, 1000 * M).next;
        trial = lkg_trial_alive(trial, true, 1000 * M);
        trial.good_ns = lkg_trial_elapsed(&trial, 1006 * M); /* the saved value */
        /* boot time starts over */
        trial = lkg_trial_resume(trial, true, 1 * S);
        assert_int_equal(lkg_trial_elapsed(&trial, 2 * S), 6 * M);
        assert_int_equal(trial.prior, 1);
        assert_int_equal(trial.started_wall_ns, 7 * S);
        trial = lkg_trial_alive(trial, true, 2 * S);
        assert_int_equal(lkg_trial_due(&trial), 2 * S + 4 * M + 1);
        assert_int_equal(lkg_trial_tick(trial, 2 * S + 4 * M).verdict, LKG_TRIAL_GO_ON);
        assert_int_equal(lkg_trial_tick(trial, 2 * S + 4 * M + 1).verdict, LKG_TRIAL_PROMOTE);
}

TEST(test_no_trial)
{
        struct lkg_trial trial = lkg_trial_begin((struct lkg_trial_rules){ 0, 0 }, false, BOOTED, S);

        assert_int_equal(trial.state, LKG_TRIAL_PASSED);
        assert_int_equal(lkg_trial_due(&trial), UINT64_MAX);
        for (unsigned k = 0; k < 20; k++) {
                struct lkg_trial_step step = lkg_trial_start(trial, true, BOOTED + k);

                assert_int_equal(step.verdict, LKG_TRIAL_GO_ON);
                trial = step.next;
        }
        assert_int_equal(trial.state, LKG_TRIAL_PASSED);
        assert_int_equal(trial.prior, 0);
}

TEST(test_idle_does_nothing)
{
        struct lkg_trial idle = { .state = LKG_TRIAL_IDLE };

        assert_int_equal(lkg_trial_start(idle, true, BOOTED).verdict, LKG_TRIAL_GO_ON);
        assert_int_equal(lkg_trial_start(idle, true, BOOTED).next.prior, 0);
        assert_int_equal(lkg_trial_tick(idle, UINT64_MAX).verdict, LKG_TRIAL_GO_ON);
        assert_int_equal(lkg_trial_alive(idle, true, BOOTED).running_since_ns, 0);
        assert_int_equal(lkg_trial_resume(idle, false, BOOTED).running_since_ns, 0);
        assert_int_equal(lkg_trial_due(&idle), UINT64_MAX);
}

TEST(test_due_is_when_a_tick_promotes)
{
        static const uint64_t durations[] = { 1, S, 10 * M, INT64_MAX };
        static const uint64_t before[] = { 0, 1, M };

        for (size_t i = 0; i < LKG_ARRAY_SIZE(durations); i++) {
                for (size_t k = 0; k < LKG_ARRAY_SIZE(before); k++) {
                        struct lkg_trial trial = lkg_trial_begin((struct lkg_trial_rules){ durations[i], 0 },
                                                                 false, BOOTED, S);
                        uint64_t due;

                        trial.good_ns = before[k];
                        due = lkg_trial_due(&trial);
                        assert_int_equal(lkg_trial_tick(trial, due).verdict, LKG_TRIAL_PROMOTE);
                        if (due > BOOTED)
                                assert_int_equal(lkg_trial_tick(trial, due - 1).verdict, LKG_TRIAL_GO_ON);
                }
        }
}

TEST(test_huge_durations_do_not_wrap)
{
        struct lkg_trial trial =
                lkg_trial_begin((struct lkg_trial_rules){ UINT64_MAX, 10 }, false, BOOTED, S);

        assert_int_equal(lkg_trial_due(&trial), UINT64_MAX);
        assert_int_equal(lkg_trial_tick(trial, UINT64_MAX).verdict, LKG_TRIAL_GO_ON);
        trial.good_ns = UINT64_MAX - 1;
        assert_int_equal(lkg_trial_elapsed(&trial, UINT64_MAX), UINT64_MAX);
        assert_int_equal(lkg_trial_tick(trial, UINT64_MAX).verdict, LKG_TRIAL_GO_ON);
}

TEST(test_time_that_seems_to_go_back_adds_nothing)
{
        struct lkg_trial trial = lkg_trial_begin(usual, false, BOOTED, S);

        assert_int_equal(lkg_trial_elapsed(&trial, BOOTED - 1), 0);
        trial.running_since_ns = BOOTED;
        assert_int_equal(lkg_trial_alive(trial, false, BOOTED - M).good_ns, 0);
        assert_int_equal(lkg_trial_tick(trial, 0).verdict, LKG_TRIAL_GO_ON);
}

TEST(test_clock_that_starts_at_zero_runs)
{
        struct lkg_trial trial = lkg_trial_begin(usual, false, 0, S);

        assert_int_equal(lkg_trial_tick(trial, 10 * M + 2).verdict, LKG_TRIAL_PROMOTE);
}

/* ---- rules ---- */

/* Rule: docs/specification.md 4.8. */
TEST(test_rules)
{
        static const struct {
                const char *own_d, *own_t, *noted_d, *noted_t;
                uint64_t min, max;
                uint64_t duration;
                unsigned threshold;
        } rows[] = {
                { NULL, NULL, NULL, NULL, 0, 0, 10 * M, 5 },
                { "1m", NULL, NULL, NULL, 0, 0, M, 5 },
                { NULL, "0", NULL, NULL, 0, 0, 10 * M, 0 },
                { NULL, NULL, "2m", "1", 0, 0, 2 * M, 1 },
                { "1m", "10", "2m", "1", 0, 0, M, 10 },
                { "1m", NULL, "2m", "1", 0, 0, M, 1 },
                { "0s", NULL, NULL, NULL, 0, 0, 0, 5 },
                { "0", NULL, NULL, NULL, 0, 0, 0, 5 },
                { "-0s", NULL, NULL, NULL, 0, 0, 0, 5 },
                { "0s", NULL, NULL, NULL, 3 * M, 0, 3 * M, 5 },
                { "1m", NULL, NULL, NULL, 3 * M, 0, 3 * M, 5 },
                { "1h", NULL, NULL, NULL, 3 * M, 30 * M, 30 * M, 5 },
                { "5m", NULL, NULL, NULL, 3 * M, 30 * M, 5 * M, 5 },
                { NULL, NULL, "1h", NULL, 0, 30 * M, 30 * M, 5 },
                { NULL, NULL, NULL, NULL, 0, 4 * M, 4 * M, 5 },
                { "2562047h47m16.854775807s", NULL, NULL, NULL, 0, 0, INT64_MAX, 5 },
                { "1h0.5s", NULL, NULL, NULL, 0, 0, 60 * M + S / 2, 5 },
        };

        for (size_t i = 0; i < LKG_ARRAY_SIZE(rows); i++) {
                const struct lkg_trial_settings settings = { 10 * M, 5, rows[i].min, rows[i].max };
                struct lkg_trial_rules rules = { 0 };
                char why[256] = "";

                if (lkg_trial_rules_make(&settings, rows[i].own_d, rows[i].own_t, rows[i].noted_d,
                                         rows[i].noted_t, &rules, why) < 0)
                        fail_msg("row %zu: %s", i, why);
                assert_int_equal(rules.duration_ns, rows[i].duration);
                assert_int_equal(rules.threshold, rows[i].threshold);
        }
}

/* Rule: docs/specification.md 4.8. */
TEST(test_rules_that_make_a_candidate_bad)
{
        static const struct {
                const char *own_d, *own_t, *noted_d, *noted_t, *want;
        } rows[] = {
                { "-1s", NULL, NULL, NULL,
                  "configTrialDuration \"-1s\": is negative; want 0s (no trial) or longer" },
                { "10", NULL, NULL, NULL,
                  "configTrialDuration \"10\": a number without a unit; want numbers with units, such as "
                  "30s, 5m or "
                  "1h30m" },
                { "", NULL, NULL, NULL,
                  "configTrialDuration \"\": empty; want numbers with units, such as 30s, 5m or 1h30m" },
                { "9999999h", NULL, NULL, NULL,
                  "configTrialDuration \"9999999h\": too long for a duration; at most "
                  "2562047h47m16.854775807s" },
                { NULL, "11", NULL, NULL, "crashLoopThreshold \"11\": want a whole number from 0 to 10" },
                { NULL, "-1", NULL, NULL, "crashLoopThreshold \"-1\": want a whole number from 0 to 10" },
                { NULL, "1.5", NULL, NULL, "crashLoopThreshold \"1.5\": want a whole number from 0 to 10" },
                { NULL, "", NULL, NULL, "crashLoopThreshold \"\": want a whole number from 0 to 10" },
                { NULL, "03", NULL, NULL, "crashLoopThreshold \"03\": want a whole number from 0 to 10" },
                { NULL, "4294967296", NULL, NULL,
                  "crashLoopThreshold \"4294967296\": want a whole number from 0 to 10" },
                { NULL, NULL, "soon", NULL,
                  "annotation lkgfs.io/trial-duration \"soon\": no number before \"soon\"; want numbers "
                  "with units, such "
                  "as 30s, 5m or 1h30m" },
                { NULL, NULL, NULL, "x",
                  "annotation lkgfs.io/crash-loop-threshold \"x\": want a whole number from 0 to 10" },
                { "1m", "1", NULL, "99",
                  "annotation lkgfs.io/crash-loop-threshold \"99\": want a whole number from 0 to 10" },
        };
        const struct lkg_trial_settings settings = { 10 * M, 5, M, 30 * M };

        for (size_t i = 0; i < LKG_ARRAY_SIZE(rows); i++) {
                struct lkg_trial_rules rules = { 7, 7 };
                char why[256] = "";

                assert_int_equal(lkg_trial_rules_make(&settings, rows[i].own_d, rows[i].own_t,
                                                      rows[i].noted_d, rows[i].noted_t, &rules, why),
                                 -EINVAL);
                assert_string_equal(why, rows[i].want);
                assert_int_equal(rules.duration_ns, 7);
        }
}

TEST(test_long_values_are_cut)
{
        const struct lkg_trial_settings settings = { 10 * M, 5, 0, 0 };
        struct lkg_trial_rules rules;
        char text[1000], why[256];

        memset(text, '\1', sizeof(text) - 1);
        text[sizeof(text) - 1] = '\0';
        assert_int_equal(lkg_trial_rules_make(&settings, text, NULL, NULL, NULL, &rules, why), -EINVAL);
        assert_true(strlen(why) < sizeof(why));
        assert_int_equal(lkg_trial_rules_make(&settings, NULL, text, NULL, NULL, &rules, why), -EINVAL);
        assert_non_null(strstr(why, "want a whole number"));
}

/* ---- which starts count ---- */

/* Rule: docs/specification.md 4.9. */
TEST(test_which_starts_count)
{
        for (unsigned bits = 0; bits < 32; bits++) {
                const struct lkg_start_facts facts = {
                        .first_after_boot = bits & 1,
                        .asked_for = bits & 2,
                        .own_event = bits & 4,
                        .manager_knows = bits & 8,
                        .automatic = bits & 16,
                };
                /* Nothing excuses it, and systemd reports a failure or nothing at all. */
                bool want = (bits & 7) == 0 && ((bits & 8) == 0 || (bits & 16));
                const char *why = "unset";

                assert_int_equal(lkg_start_counts(&facts, &why), want);
                assert_int_equal(why == NULL, want);
        }
}

/* ---- health ---- */

#define MINUTE_STABLE                                                      \
        {                                                                  \
                .duration_ns = 10 * M, .threshold = 10, .stable_for_ns = M \
        }
#define OFF     LKG_HEALTH_OFF
#define UNKNOWN LKG_HEALTH_UNKNOWN
#define GOOD    LKG_HEALTH_GOOD
#define BAD     LKG_HEALTH_BAD
#define NANO    1u /* the clock has to exceed the duration */

/*
 * What the two checks say before the change, and from some moments on; the process lives from the beginning. The cases are those
 * of docs/dynamic-configuration.md.
 */
static const struct story {
        const char *name;
        enum lkg_health_state before[_LKG_CHECK_MAX];
        struct {
                uint64_t at_ns;
                enum lkg_health_state seen[_LKG_CHECK_MAX];
        } then[3];
        uint64_t ends_ns;
        enum lkg_trial_verdict verdict;
} stories[] = {
        { "good", { GOOD, GOOD }, { { 1, { GOOD, GOOD } } }, 10 * M + NANO, LKG_TRIAL_PROMOTE },
        { "nobody asks", { OFF, OFF }, { { 1, { OFF, OFF } } }, 10 * M + NANO, LKG_TRIAL_PROMOTE },
        { "bad from then on", { GOOD, OFF }, { { M, { BAD, OFF } } }, 20 * M + NANO, LKG_TRIAL_REJECT },
        { "the endpoint alone is bad",
          { GOOD, GOOD },
          { { 9 * M, { GOOD, BAD } } },
          20 * M + NANO,
          LKG_TRIAL_REJECT },
        { "bad at the deadline, then good",
          { GOOD, OFF },
          { { 9 * M, { BAD, OFF } }, { 12 * M, { GOOD, OFF } } },
          13 * M,
          LKG_TRIAL_PROMOTE },
        { "good for half a minute at the deadline",
          { GOOD, OFF },
          { { M, { BAD, OFF } }, { 9 * M + 30 * S, { GOOD, OFF } } },
          10 * M + 30 * S,
          LKG_TRIAL_PROMOTE },
        { "up and down",
          { GOOD, OFF },
          { { 9 * M, { BAD, OFF } }, { 19 * M, { GOOD, OFF } }, { 19 * M + 50 * S, { BAD, OFF } } },
          20 * M + NANO,
          LKG_TRIAL_REJECT },
        { "never was Ready", { BAD, OFF }, { { 1, { BAD, OFF } } }, 10 * M + NANO, LKG_TRIAL_PROMOTE },
        { "the probe never worked",
          { GOOD, BAD },
          { { 1, { GOOD, BAD } } },
          10 * M + NANO,
          LKG_TRIAL_PROMOTE },
        { "was not Ready, became so, is not again",
          { BAD, OFF },
          { { M, { GOOD, OFF } }, { 2 * M, { BAD, OFF } } },
          20 * M + NANO,
          LKG_TRIAL_REJECT },
        { "the API server was away before",
          { UNKNOWN, OFF },
          { { 1, { UNKNOWN, OFF } } },
          10 * M + NANO,
          LKG_TRIAL_PROMOTE },
        { "the API server goes away after five good minutes",
          { GOOD, OFF },
          { { 5 * M, { UNKNOWN, OFF } } },
          10 * M + NANO,
          LKG_TRIAL_PROMOTE },
        { "the API server goes away after 30 s",
          { GOOD, OFF },
          { { 30 * S, { UNKNOWN, OFF } } },
          20 * M + NANO,
          LKG_TRIAL_PROMOTE },
        { "the API server goes away while the Node is not Ready",
          { GOOD, OFF },
          { { M, { BAD, OFF } }, { 5 * M, { UNKNOWN, OFF } } },
          20 * M + NANO,
          LKG_TRIAL_REJECT },
        { "for a moment, at the second deadline",
          { GOOD, OFF },
          { { M, { BAD, OFF } }, { 20 * M, { UNKNOWN, OFF } } },
          20 * M + NANO,
          LKG_TRIAL_REJECT },
        { "the API server is away, and comes back with a Node that is Ready",
          { GOOD, OFF },
          { { M, { BAD, OFF } }, { 5 * M, { UNKNOWN, OFF } }, { 15 * M, { GOOD, OFF } } },
          16 * M,
          LKG_TRIAL_PROMOTE },
        { "the API server is away, and the endpoint goes up and down",
          { GOOD, GOOD },
          { { 1, { UNKNOWN, GOOD } }, { 9 * M, { UNKNOWN, BAD } }, { 19 * M + 30 * S, { UNKNOWN, GOOD } } },
          20 * M + NANO,
          LKG_TRIAL_REJECT },
        { "a reload no longer asks",
          { GOOD, OFF },
          { { M, { BAD, OFF } }, { 15 * M, { OFF, OFF } } },
          16 * M,
          LKG_TRIAL_PROMOTE },
};

static void play_story(const struct story *story)
{
        struct lkg_trial trial = lkg_trial_begin((struct lkg_trial_rules)MINUTE_STABLE, true, BOOTED, S);
        enum lkg_trial_verdict verdict = LKG_TRIAL_GO_ON;
        uint64_t due = 0;
        size_t n = 0;

        trial = lkg_trial_alive(lkg_trial_see(trial, story->before, BOOTED), true, BOOTED);
        while (verdict == LKG_TRIAL_GO_ON) {
                due = lkg_trial_due(&trial);
                if (n < LKG_ARRAY_SIZE(story->then) && story->then[n].at_ns &&
                    BOOTED + story->then[n].at_ns <= due) {
                        trial = lkg_trial_see(trial, story->then[n].seen, BOOTED + story->then[n].at_ns);
                        n++;
                        continue;
                }
                if (lkg_trial_tick(trial, due - 1).verdict != LKG_TRIAL_GO_ON)
                        fail_msg("%s: decided before it was due", story->name);
                verdict = lkg_trial_tick(trial, due).verdict;
                if (verdict == LKG_TRIAL_GO_ON)
                        fail_msg("%s: due, and undecided", story->name);
                if (verdict == LKG_TRIAL_EXTEND) {
                        assert_int_equal(due - BOOTED, 10 * M + NANO);
                        trial = lkg_trial_tick(trial, due).next;
                        verdict = LKG_TRIAL_GO_ON;
                }
        }
        if (verdict != story->verdict || due - BOOTED != story->ends_ns)
                fail_msg("%s: verdict %d after %llu s", story->name, (int)verdict,
                         (unsigned long long)((due - BOOTED) / S));
}

TEST(test_health_stories)
{
        for (size_t i = 0; i < LKG_ARRAY_SIZE(stories); i++)
                play_story(&stories[i]);
}

/* Eleven lives of 55 s are no proof that it can live for a minute. */
TEST(test_short_lives_do_not_pass)
{
        struct lkg_trial trial = lkg_trial_begin((struct lkg_trial_rules)MINUTE_STABLE, true, BOOTED, S);
        enum lkg_trial_verdict verdict = LKG_TRIAL_GO_ON;
        uint64_t now = BOOTED;
        unsigned lives = 0;

        while (verdict == LKG_TRIAL_GO_ON) {
                trial = lkg_trial_start(trial, false, now).next;
                trial = lkg_trial_alive(trial, true, now);
                lives++;
                for (unsigned s = 0; s < 55 && verdict == LKG_TRIAL_GO_ON; s++) {
                        const struct lkg_trial_step step = lkg_trial_tick(trial, now += S);

                        trial = step.next;
                        verdict = step.verdict == LKG_TRIAL_EXTEND ? LKG_TRIAL_GO_ON : step.verdict;
                }
                trial = lkg_trial_alive(trial, false, now);
        }
        assert_int_equal(verdict, LKG_TRIAL_REJECT);
        assert_int_equal(lives, 22); /* 1,200 s of clock */
}

/* Also without an end before it: two processes may overlap. */
TEST(test_a_start_begins_another_life)
{
        struct lkg_trial trial = lkg_trial_begin((struct lkg_trial_rules)MINUTE_STABLE, true, BOOTED, S);

        trial = lkg_trial_alive(trial, true, BOOTED);
        trial = lkg_trial_start(trial, true, BOOTED + 9 * M + 50 * S).next;
        assert_int_equal(lkg_trial_due(&trial), BOOTED + 10 * M + NANO);
        assert_int_equal(lkg_trial_tick(trial, BOOTED + 10 * M + NANO).verdict, LKG_TRIAL_EXTEND);
        trial = lkg_trial_tick(trial, BOOTED + 10 * M + NANO).next;
        assert_true(trial.extended);
        assert_int_equal(lkg_trial_due(&trial), BOOTED + 10 * M + 50 * S);
        assert_int_equal(lkg_trial_tick(trial, BOOTED + 10 * M + 50 * S).verdict, LKG_TRIAL_PROMOTE);
}

/* Nor are they while the API server is away. */
TEST(test_short_lives_do_not_pass_while_nothing_answers)
{
        static const enum lkg_health_state good[_LKG_CHECK_MAX] = { GOOD, OFF },
                                           unknown[_LKG_CHECK_MAX] = { UNKNOWN, OFF };
        struct lkg_trial trial = lkg_trial_begin((struct lkg_trial_rules)MINUTE_STABLE, true, BOOTED, S);
        uint64_t at = BOOTED + 20 * M + NANO;

        trial = lkg_trial_alive(lkg_trial_see(trial, good, BOOTED), true, BOOTED);
        trial = lkg_trial_see(trial, unknown, BOOTED + S);
        trial = lkg_trial_tick(trial, BOOTED + 10 * M + NANO).next;
        assert_int_equal(lkg_trial_tick(lkg_trial_start(trial, false, at - 59 * S).next, at).verdict,
                         LKG_TRIAL_REJECT);
        assert_int_equal(lkg_trial_tick(lkg_trial_start(trial, false, at - 60 * S).next, at).verdict,
                         LKG_TRIAL_PROMOTE);
}

/* What was judged and what was stable is stored; until the checks answer, nothing becomes more stable. */
TEST(test_health_survives_the_engine)
{
        static const enum lkg_health_state good[_LKG_CHECK_MAX] = { GOOD, OFF },
                                           bad[_LKG_CHECK_MAX] = { BAD, OFF };
        struct lkg_trial trial = lkg_trial_begin((struct lkg_trial_rules)MINUTE_STABLE, true, BOOTED, S);

        trial = lkg_trial_alive(lkg_trial_see(trial, good, BOOTED), true, BOOTED);
        trial.stable_ns = lkg_trial_stable(&trial, BOOTED + 40 * S);
        trial.good_ns = lkg_trial_elapsed(&trial, BOOTED + 40 * S);
        trial = lkg_trial_resume(trial, true, BOOTED + M);
        assert_true(trial.judged[LKG_CHECK_NODE]);
        assert_int_equal(lkg_trial_health(&trial, NULL), LKG_HEALTH_UNKNOWN);
        trial = lkg_trial_alive(trial, true, BOOTED + M);
        assert_int_equal(lkg_trial_stable(&trial, BOOTED + 2 * M), 40 * S);
        trial = lkg_trial_see(trial, good, BOOTED + 2 * M);
        assert_int_equal(lkg_trial_stable(&trial, BOOTED + 3 * M), 100 * S);
        trial = lkg_trial_see(trial, bad, BOOTED + 3 * M);
        assert_int_equal(lkg_trial_stable(&trial, BOOTED + 4 * M), 0);
}

/* An engine that dies at the end of the extension: until it has asked, nothing is decided. */
TEST(test_a_restart_does_not_decide)
{
        static const enum lkg_health_state good[_LKG_CHECK_MAX] = { GOOD, OFF },
                                           bad[_LKG_CHECK_MAX] = { BAD, OFF };
        struct lkg_trial trial = lkg_trial_begin((struct lkg_trial_rules)MINUTE_STABLE, true, BOOTED, S);

        trial = lkg_trial_alive(lkg_trial_see(trial, good, BOOTED), true, BOOTED);
        trial = lkg_trial_see(trial, bad, BOOTED + M);
        trial.extended = true;
        trial.good_ns = 20 * M;
        trial = lkg_trial_alive(lkg_trial_resume(trial, true, BOOTED + 21 * M), true, BOOTED + 21 * M);
        assert_int_equal(lkg_trial_tick(trial, BOOTED + 21 * M + S).verdict, LKG_TRIAL_GO_ON);
        assert_int_equal(lkg_trial_due(&trial), BOOTED + 22 * M);
        assert_int_equal(lkg_trial_tick(trial, BOOTED + 22 * M).verdict,
                         LKG_TRIAL_REJECT); /* as it was before */
        trial = lkg_trial_see(trial, bad, BOOTED + 21 * M + 2 * S);
        assert_int_equal(lkg_trial_due(&trial), BOOTED + 21 * M + NANO);
        assert_int_equal(lkg_trial_tick(trial, BOOTED + 21 * M + 2 * S).verdict, LKG_TRIAL_REJECT);
}

/* ---- a component that does not run any more ---- */

/* A trial of 10 minutes whose component has crashed after a minute, and is away since BOOTED + 1 minute. */
static struct lkg_trial gone(bool counted)
{
        struct lkg_trial trial = lkg_trial_begin((struct lkg_trial_rules)MINUTE_STABLE, true, BOOTED, S);

        trial = lkg_trial_start(trial, counted, BOOTED).next;
        trial = lkg_trial_alive(trial, true, BOOTED);
        trial = lkg_trial_alive(trial, false, BOOTED + M);
        return lkg_trial_away(trial, true, true, BOOTED + M);
}

TEST(test_a_component_that_stays_away_has_failed)
{
        struct lkg_trial trial = gone(true);
        char words[LKG_HEALTH_WORDS_MAX];

        assert_int_equal(lkg_trial_due(&trial), BOOTED + 16 * M);
        assert_int_equal(lkg_trial_tick(trial, BOOTED + 16 * M - NANO).verdict, LKG_TRIAL_GO_ON);
        assert_int_equal(lkg_trial_tick(trial, BOOTED + 16 * M).verdict, LKG_TRIAL_REJECT);
        assert_int_equal(lkg_trial_tick(trial, BOOTED + 16 * M).next.state, LKG_TRIAL_FAILED);
        assert_string_equal(lkg_trial_say_unhealthy(&trial, "the Node is not Ready", words),
                            "it does not run");
}

/* Nothing was tried: nobody has started it, or it was stopped and started by somebody. */
TEST(test_what_was_not_tried_does_not_fail)
{
        struct lkg_trial trial = gone(false),
                         never = lkg_trial_begin((struct lkg_trial_rules)MINUTE_STABLE, true, BOOTED, S);

        assert_int_equal(lkg_trial_due(&trial), UINT64_MAX);
        assert_int_equal(lkg_trial_tick(trial, BOOTED + 1000 * M).verdict, LKG_TRIAL_GO_ON);
        never = lkg_trial_away(never, true, true, BOOTED);
        assert_int_equal(lkg_trial_due(&never), UINT64_MAX);
        never = lkg_trial_start(never, true, BOOTED).next; /* reported, but its process is not known */
        never = lkg_trial_away(never, true, true, BOOTED);
        assert_int_equal(lkg_trial_due(&never), UINT64_MAX);
        assert_int_equal(lkg_trial_tick(never, UINT64_MAX).verdict, LKG_TRIAL_GO_ON);
}

TEST(test_a_life_ends_an_absence)
{
        struct lkg_trial trial = gone(true), other;

        other = lkg_trial_away(trial, false, true, BOOTED + 15 * M); /* a process with something else */
        assert_int_equal(lkg_trial_due(&other), UINT64_MAX);
        other = lkg_trial_away(other, true, true, BOOTED + 20 * M);
        assert_int_equal(lkg_trial_due(&other), BOOTED + 35 * M);
        other = lkg_trial_start(trial, false, BOOTED + 15 * M).next;
        assert_int_equal(lkg_trial_absence(&other, BOOTED + 15 * M), 0);
        other = lkg_trial_away(other, true, true, BOOTED + 20 * M);
        assert_int_equal(lkg_trial_due(&other), BOOTED + 35 * M);
}

/* While it is held back, or without an engine, the absence does not become longer, nor is it forgotten. */
TEST(test_an_absence_survives)
{
        struct lkg_trial trial = gone(true);

        trial = lkg_trial_away(trial, true, false, BOOTED + 6 * M);
        assert_int_equal(lkg_trial_due(&trial), UINT64_MAX);
        trial = lkg_trial_away(trial, true, true, BOOTED + 60 * M);
        assert_int_equal(lkg_trial_due(&trial), BOOTED + 70 * M);
        trial.away_ns = lkg_trial_absence(&trial, BOOTED + 64 * M); /* as the store writes it */
        assert_int_equal(trial.away_ns, 9 * M);
        trial = lkg_trial_resume(trial, true, 7 * S); /* after a reboot */
        assert_int_equal(lkg_trial_due(&trial), UINT64_MAX);
        trial = lkg_trial_away(trial, true, false, 8 * S); /* nothing is served yet */
        trial = lkg_trial_away(trial, true, true, 9 * S);
        assert_int_equal(lkg_trial_due(&trial), 9 * S + 6 * M);
}

TEST(test_stable_for_is_at_most_half)
{
        assert_int_equal(lkg_trial_stable_for(M, 10 * M), M);
        assert_int_equal(lkg_trial_stable_for(M, M), 30 * S);
        assert_int_equal(lkg_trial_stable_for(M, 0), 0);
        assert_int_equal(lkg_trial_stable_for(0, 10 * M), 0);
}
