/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The trial: what is marked bad at which start, what its clock counts, what health decides, and which rules a candidate has: rows/trial.rows.
 * Rule: docs/specification.md 4.10.
 */

#include <lkg/text.h>
#include <lkg/trial.h>

#include "rows.h"

#define S      LKG_NSEC_PER_SEC
#define M      (60 * S)
#define BOOTED (5 * M) /* any CLOCK_BOOTTIME to start from; after `reboot`, another one */

#define MINUTE_STABLE                                                      \
        {                                                                  \
                .duration_ns = 10 * M, .threshold = 10, .stable_for_ns = M \
        }

static const struct lkg_trial_rules usual = { 10 * M, 10 };

/* ---- a trial, step by step ---- */

static struct lkg_trial current;
static uint64_t booted;

static uint64_t duration(const char *text)
{
        uint64_t ns = 0;

        if (lkg_duration_parse_plain(text, &ns) < 0)
                fail_msg("no duration: %s", text);
        return ns;
}

static void put_duration(const char *name, uint64_t ns, struct lkg_buf *ret)
{
        char buf[LKG_DURATION_MAX];

        (void)lkg_duration_format((int64_t)ns, buf);
        lkg_buf_printf(ret, ", %s %s", name, buf);
}

static const char *const verdicts[] = { [LKG_TRIAL_GO_ON] = "goes on",
                                        [LKG_TRIAL_CONDEMN] = "condemned",
                                        [LKG_TRIAL_PROMOTE] = "promoted",
                                        [LKG_TRIAL_EXTEND] = "extended",
                                        [LKG_TRIAL_REJECT] = "rejected" };

/* What is known now; at the moment that is due, and not before, a tick decides. */
static void put_trial(uint64_t now, struct lkg_buf *ret)
{
        static const char *const health[] = { [LKG_HEALTH_OFF] = "",
                                              [LKG_HEALTH_UNKNOWN] = ", health unknown",
                                              [LKG_HEALTH_GOOD] = ", healthy",
                                              [LKG_HEALTH_BAD] = ", not healthy" };
        uint64_t due = lkg_trial_due(&current), absence = lkg_trial_absence(&current, now);

        lkg_buf_printf(ret, "%s, prior %u", lkg_trial_state_name(current.state), current.prior);
        put_duration("elapsed", lkg_trial_elapsed(&current, now), ret);
        if (current.rules.stable_for_ns)
                put_duration("stable", lkg_trial_stable(&current, now), ret);
        if (absence)
                put_duration("away", absence, ret);
        lkg_buf_puts(ret, health[lkg_trial_health(&current, NULL)]);
        if (due == UINT64_MAX)
                return;
        put_duration("due at", due - booted, ret);
        if (due <= now)
                return;
        assert_int_not_equal(lkg_trial_tick(current, due).verdict, LKG_TRIAL_GO_ON);
        assert_int_equal(lkg_trial_tick(current, due - 1).verdict, LKG_TRIAL_GO_ON);
}

static enum lkg_health_state health_of(const char *word)
{
        return strcmp(word, "good") == 0      ? LKG_HEALTH_GOOD
               : strcmp(word, "bad") == 0     ? LKG_HEALTH_BAD
               : strcmp(word, "unknown") == 0 ? LKG_HEALTH_UNKNOWN
                                              : LKG_HEALTH_OFF;
}

/* As a store keeps it, and another engine reads it. */
static void store(uint64_t now)
{
        current.good_ns = lkg_trial_elapsed(&current, now);
        current.stable_ns = lkg_trial_stable(&current, now);
        current.away_ns = lkg_trial_absence(&current, now);
        current.running_since_ns = 77777 * M;
}

static enum lkg_trial_verdict happen(const struct question *q, const char *const *words, size_t n,
                                     uint64_t now)
{
        const struct lkg_trial_rules rules = { .duration_ns = duration(rows_arg(q, "duration", "10m")),
                                               .threshold = (unsigned)strtoul(rows_arg(q, "threshold", "10"),
                                                                              NULL, 10),
                                               .stable_for_ns = duration(rows_arg(q, "stable", "0")) };
        struct lkg_trial_step step = { current, LKG_TRIAL_GO_ON };
        bool watched = n < 3 || strcmp(words[2], "unwatched") != 0;

        if (strcmp(words[0], "begin") == 0)
                step.next = lkg_trial_begin(rules, watched, now, 7 * S);
        else if (strcmp(words[0], "resume") == 0)
                step.next = lkg_trial_resume(current, watched, now);
        else if (strcmp(words[0], "start") == 0)
                step = lkg_trial_start(current, n < 3, now);
        else if (strcmp(words[0], "alive") == 0 || strcmp(words[0], "dead") == 0)
                step.next = lkg_trial_alive(current, *words[0] == 'a', now);
        else if (strcmp(words[0], "away") == 0)
                step.next = lkg_trial_away(current, strcmp(words[2], "yes") == 0,
                                           strcmp(words[3], "yes") == 0, now);
        else if (strcmp(words[0], "see") == 0)
                step.next = lkg_trial_see(
                        current, (const enum lkg_health_state[]){ health_of(words[2]), health_of(words[3]) },
                        now);
        else if (strcmp(words[0], "tick") == 0)
                step = lkg_trial_tick(current, now);
        else
                fail_msg("nothing called %s happens", words[0]);
        current = step.next;
        return step.verdict;
}

/*
 * EVENT TIME [WORD...]; a time counts from the beginning. `decide`: time passes until something is decided. With `auto` what is due before
 * an event is decided first.
 */
static void say_trial(const struct question *q, struct lkg_buf *ret)
{
        LKG_CLEANUP(lkg_freep) char *text = strdup(q->text);
        const char *words[ROWS_PARTS_MAX];
        size_t n = rows_split(text, " ", words);
        bool decide = strcmp(words[0], "decide") == 0;
        uint64_t now, due;

        if (q->begins) {
                current = (struct lkg_trial){ .state = LKG_TRIAL_IDLE };
                booted = BOOTED;
        }
        if (strcmp(words[0], "reboot") == 0) {
                booted = S;
                return;
        }
        now = decide ? UINT64_MAX : booted + duration(words[1]);
        while ((decide || rows_has(q, "auto")) && (due = lkg_trial_due(&current)) < now) {
                const struct lkg_trial_step step = lkg_trial_tick(current, due);

                current = step.next;
                lkg_buf_puts(ret, verdicts[step.verdict]);
                put_duration("at", due - booted, ret);
                lkg_buf_puts(ret, "; ");
        }
        if (decide)
                return;
        if (strcmp(words[0], "store") == 0) { /* its clocks go on in another engine */
                store(now);
                return;
        }
        lkg_buf_printf(ret, "%s, ", verdicts[happen(q, words, n, now)]);
        put_trial(now, ret);
}

/* Rule: docs/specification.md 4.8. Duration and threshold of the ConfigMap, and of its annotations; `-` is none. */
static void say_rules(const struct question *q, struct lkg_buf *ret)
{
        const struct lkg_trial_settings settings = { 10 * M, 5, duration(rows_arg(q, "min", "0")),
                                                     duration(rows_arg(q, "max", "0")) };
        struct lkg_trial_rules rules = { 7, 7 };
        const char *words[4];
        char why[256] = "";

        for (size_t i = 0; i < 4; i++)
                words[i] = i < q->n_parts && strcmp(q->parts[i], "-") != 0 ? q->parts[i] : NULL;
        if (lkg_trial_rules_make(&settings, words[0], words[1], words[2], words[3], &rules, why) < 0) {
                assert_int_equal(rules.duration_ns, 7);
                lkg_buf_puts(ret, why);
                return;
        }
        lkg_buf_printf(ret, "threshold %u", rules.threshold);
        put_duration("duration", rules.duration_ns, ret);
}

static const struct operation operations[] = { { "trial", say_trial }, { "rules", say_rules }, { 0 } };

ROWS(trial, operations)

/* ---- what no row can say ---- */

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

TEST(test_stable_for_is_at_most_half)
{
        assert_int_equal(lkg_trial_stable_for(M, 10 * M), M);
        assert_int_equal(lkg_trial_stable_for(M, M), 30 * S);
        assert_int_equal(lkg_trial_stable_for(M, 0), 0);
        assert_int_equal(lkg_trial_stable_for(0, 10 * M), 0);
}
