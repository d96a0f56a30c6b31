/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The trial. Arithmetic saturates: an overflowing duration never ends, and a clock that seems to go backwards adds nothing.
 */

#include <lkg/text.h>
#include <lkg/base.h>
#include <lkg/limits.h>
#include <lkg/trial.h>

#define WHY_MAX 256

/* ---- rules ---- */

/* A text and the name of its origin. */
struct wording {
        const char *what; /* field or annotation */
        const char *text; /* NULL = not there */
};

static int refuse_rule(const struct wording *w, const char *reason, char *why)
{
        char quoted[5 * LKG_QUOTE_MAX + 8];

        (void)snprintf(why, WHY_MAX, "%s %.90s: %.100s", w->what,
                       lkg_quote(w->text, strlen(w->text), quoted), reason);
        return -EINVAL;
}

static int read_duration(const struct wording *w, uint64_t *ret_ns, char *why)
{
        char reason[LKG_REFUSAL_MAX];
        int64_t ns;

        if (lkg_duration_parse(w->text, strlen(w->text), &ns, reason) < 0)
                return refuse_rule(w, reason, why);
        if (ns < 0)
                return refuse_rule(w, "is negative; want 0s (no trial) or longer", why);
        *ret_ns = (uint64_t)ns;
        return 0;
}

static int read_threshold(const struct wording *w, unsigned *ret, char *why)
{
        size_t n = strlen(w->text);
        unsigned value = 0;

        for (size_t i = 0; i < n; i++) {
                if (n > 2 || w->text[i] < '0' || w->text[i] > '9' || (n > 1 && w->text[0] == '0'))
                        n = 0; /* not a number, or too large */
                else
                        value = 10 * value + (unsigned)(w->text[i] - '0');
        }
        if (n == 0 || value > LKG_TRIAL_THRESHOLD_MAX)
                return refuse_rule(w, "want a whole number from 0 to 10", why);
        *ret = value;
        return 0;
}

static uint64_t clamp(uint64_t ns, const struct lkg_trial_settings *settings)
{
        if (ns < settings->min_duration_ns)
                ns = settings->min_duration_ns;
        if (settings->max_duration_ns && ns > settings->max_duration_ns)
                ns = settings->max_duration_ns;
        return ns;
}

int lkg_trial_rules_make(const struct lkg_trial_settings *settings, const char *own_duration,
                         const char *own_threshold, const char *noted_duration, const char *noted_threshold,
                         struct lkg_trial_rules *ret, char why[static WHY_MAX])
{
        /* Later ones override. Every text is checked, even one that has no effect. */
        const struct wording durations[] = { { "annotation " LKG_TRIAL_NOTE_DURATION, noted_duration },
                                             { LKG_TRIAL_FIELD_DURATION, own_duration } };
        const struct wording thresholds[] = { { "annotation " LKG_TRIAL_NOTE_THRESHOLD, noted_threshold },
                                              { LKG_TRIAL_FIELD_THRESHOLD, own_threshold } };
        struct lkg_trial_rules rules = { .duration_ns = settings->duration_ns,
                                         .threshold = settings->threshold };

        for (size_t i = 0; i < LKG_ARRAY_SIZE(durations); i++) {
                int r = durations[i].text ? read_duration(&durations[i], &rules.duration_ns, why) : 0;

                if (r == 0 && thresholds[i].text)
                        r = read_threshold(&thresholds[i], &rules.threshold, why);
                if (r < 0)
                        return r;
        }
        rules.duration_ns = clamp(rules.duration_ns, settings);
        *ret = rules;
        return 0;
}

/* ---- states ---- */

const char *const lkg_trial_state_names[_LKG_TRIAL_STATE_MAX + 1] = {
        [LKG_TRIAL_IDLE] = "idle",
        [LKG_TRIAL_RUNNING] = "running",
        [LKG_TRIAL_PASSED] = "passed",
        [LKG_TRIAL_FAILED] = "failed",
};

const char *lkg_trial_state_name(enum lkg_trial_state state)
{
        return lkg_trial_state_names[state];
}

const char *const lkg_check_names[_LKG_CHECK_MAX + 1] = {
        [LKG_CHECK_NODE] = "node",
        [LKG_CHECK_HTTP] = "http",
};

const char *lkg_check_name(enum lkg_check check)
{
        return lkg_check_names[check];
}

const char *lkg_health_name(enum lkg_health_state health)
{
        static const char *const names[] = {
                [LKG_HEALTH_OFF] = "off",
                [LKG_HEALTH_UNKNOWN] = "unknown",
                [LKG_HEALTH_GOOD] = "good",
                [LKG_HEALTH_BAD] = "bad",
        };

        return names[health];
}

/* ---- the clock ---- */

/* 0 means that the clock is stopped, so a clock that starts at 0 starts one nanosecond late. */
static uint64_t since(uint64_t now_ns)
{
        return now_ns ? now_ns : 1;
}

/* A clock that shows @ns and runs since @since_ns; 0 = it is stopped. */
static uint64_t read_clock(uint64_t ns, uint64_t since_ns, uint64_t now_ns)
{
        return !since_ns || now_ns < since_ns ? ns : lkg_after(ns, now_ns - since_ns);
}

uint64_t lkg_trial_elapsed(const struct lkg_trial *trial, uint64_t now_ns)
{
        return read_clock(trial->good_ns, trial->running_since_ns, now_ns);
}

uint64_t lkg_trial_stable(const struct lkg_trial *trial, uint64_t now_ns)
{
        return read_clock(trial->stable_ns, trial->stable_since_ns, now_ns);
}

uint64_t lkg_trial_calm(const struct lkg_trial *trial, uint64_t now_ns)
{
        return read_clock(trial->calm_ns, trial->calm_since_ns, now_ns);
}

uint64_t lkg_trial_absence(const struct lkg_trial *trial, uint64_t now_ns)
{
        return read_clock(trial->away_ns, trial->away_since_ns, now_ns);
}

/* Another life, or one that is not healthy any more, begins anew. */
static void forget_life(struct lkg_trial *trial)
{
        trial->stable_ns = trial->stable_since_ns = trial->calm_ns = trial->calm_since_ns = 0;
}

static struct lkg_trial stop_clock(struct lkg_trial trial, uint64_t now_ns)
{
        trial.good_ns = lkg_trial_elapsed(&trial, now_ns);
        trial.running_since_ns = 0;
        forget_life(&trial);
        return trial;
}

uint64_t lkg_trial_stable_for(uint64_t wanted_ns, uint64_t duration_ns)
{
        return wanted_ns < duration_ns / 2 ? wanted_ns : duration_ns / 2;
}

static bool is_unanswered(const struct lkg_trial *trial)
{
        for (unsigned i = 0; i < _LKG_CHECK_MAX; i++)
                if (trial->judged[i] && trial->seen[i] == LKG_HEALTH_UNKNOWN)
                        return true;
        return false;
}

enum lkg_health_state lkg_trial_health(const struct lkg_trial *trial, enum lkg_check *ret_bad)
{
        enum lkg_health_state worst = LKG_HEALTH_OFF;

        for (unsigned i = 0; i < _LKG_CHECK_MAX; i++) {
                if (!trial->judged[i])
                        continue;
                if (trial->bad[i]) {
                        if (ret_bad)
                                *ret_bad = (enum lkg_check)i;
                        return LKG_HEALTH_BAD;
                }
                if (worst != LKG_HEALTH_UNKNOWN)
                        worst = trial->seen[i];
        }
        return worst;
}

const char *lkg_trial_say_unhealthy(const struct lkg_trial *trial, const char *bad,
                                    char ret[static LKG_HEALTH_WORDS_MAX])
{
        char stable_for[LKG_DURATION_MAX];

        (void)lkg_duration_format((int64_t)trial->rules.stable_for_ns, stable_for);
        if (trial->away_since_ns)
                (void)snprintf(ret, LKG_HEALTH_WORDS_MAX, "it does not run");
        else if (bad)
                (void)snprintf(ret, LKG_HEALTH_WORDS_MAX, "%s", bad);
        else
                (void)snprintf(ret, LKG_HEALTH_WORDS_MAX,
                               "it has not lived healthily for %s without a break", stable_for);
        return ret;
}

static void run_clock(uint64_t *ns, uint64_t *since_ns, bool runs, uint64_t now_ns)
{
        if (runs == (*since_ns != 0))
                return;
        *ns = read_clock(*ns, *since_ns, now_ns);
        *since_ns = runs ? since(now_ns) : 0;
}

/* A bad check ends what was stable, one that does not answer only stops it. */
static struct lkg_trial watch_stability(struct lkg_trial trial, uint64_t now_ns)
{
        enum lkg_health_state health = lkg_trial_health(&trial, NULL);
        bool calm = trial.running_since_ns && health != LKG_HEALTH_BAD;

        if (health == LKG_HEALTH_BAD)
                forget_life(&trial);
        run_clock(&trial.stable_ns, &trial.stable_since_ns, calm && health != LKG_HEALTH_UNKNOWN, now_ns);
        run_clock(&trial.calm_ns, &trial.calm_since_ns, calm, now_ns);
        return trial;
}

/*
 * The trial lasts until the clock exceeds the duration (dynamic-configuration proposal: "does not
 * exceed").
 */
static bool is_over(const struct lkg_trial *trial, uint64_t now_ns)
{
        return lkg_trial_elapsed(trial, now_ns) > trial->rules.duration_ns;
}

static bool is_stable(const struct lkg_trial *trial, uint64_t now_ns)
{
        return lkg_trial_stable(trial, now_ns) >= trial->rules.stable_for_ns;
}

static uint64_t extended_ns(const struct lkg_trial *trial)
{
        return lkg_after(trial->rules.duration_ns, trial->rules.duration_ns);
}

/* When the clock, which runs, exceeds @ns. */
static uint64_t exceeds_at(const struct lkg_trial *trial, uint64_t ns)
{
        if (trial->good_ns > ns)
                return trial->running_since_ns;
        return lkg_after(trial->running_since_ns, lkg_after(ns - trial->good_ns, 1));
}

static uint64_t stable_at(const struct lkg_trial *trial)
{
        if (trial->stable_ns >= trial->rules.stable_for_ns)
                return 0;
        return trial->stable_since_ns
                       ? lkg_after(trial->stable_since_ns, trial->rules.stable_for_ns - trial->stable_ns)
                       : UINT64_MAX;
}

/* Right after a restart a check has just not been asked yet; that must not decide. */
static bool waits_for_answer(const struct lkg_trial *trial, uint64_t now_ns)
{
        return trial->resumed_ns && now_ns < lkg_after(trial->resumed_ns, LKG_TRIAL_ASK_NS) &&
               is_unanswered(trial);
}

/* When a component that is away has been so for too long. */
static uint64_t given_up_at(const struct lkg_trial *trial)
{
        uint64_t limit = lkg_after(trial->rules.duration_ns, LKG_TRIAL_ABSENT_NS);

        if (!trial->away_since_ns)
                return UINT64_MAX;
        return lkg_after(trial->away_since_ns, limit > trial->away_ns ? limit - trial->away_ns : 0);
}

uint64_t lkg_trial_due(const struct lkg_trial *trial)
{
        uint64_t over, last;

        if (trial->state != LKG_TRIAL_RUNNING)
                return UINT64_MAX;
        if (!trial->running_since_ns)
                return given_up_at(trial);
        over = exceeds_at(trial, trial->rules.duration_ns);
        if (!trial->extended)
                return over;
        last = exceeds_at(trial, extended_ns(trial));
        if (waits_for_answer(trial, last))
                last = lkg_after(trial->resumed_ns, LKG_TRIAL_ASK_NS);
        return lkg_earlier(stable_at(trial), last);
}

/* ---- steps ---- */

struct lkg_trial lkg_trial_begin(struct lkg_trial_rules rules, bool watched, uint64_t now_ns,
                                 uint64_t wall_ns)
{
        bool needed = rules.duration_ns > 0;
        const struct lkg_trial trial = {
                .state = needed ? LKG_TRIAL_RUNNING : LKG_TRIAL_PASSED,
                .rules = rules,
                .started_wall_ns = wall_ns,
                .running_since_ns = needed && !watched ? since(now_ns) : 0,
        };

        return watch_stability(trial, now_ns);
}

/* The process may be the one that was there before, so what was stable stays; but nothing is known of it now. */
struct lkg_trial lkg_trial_resume(struct lkg_trial trial, bool watched, uint64_t now_ns)
{
        trial.running_since_ns = trial.state == LKG_TRIAL_RUNNING && !watched ? since(now_ns) : 0;
        trial.stable_since_ns = trial.calm_since_ns = trial.away_since_ns = 0;
        trial.resumed_ns = since(now_ns);
        for (unsigned i = 0; i < _LKG_CHECK_MAX; i++)
                trial.seen[i] = trial.judged[i] ? LKG_HEALTH_UNKNOWN : LKG_HEALTH_OFF;
        return watch_stability(trial, now_ns);
}

struct lkg_trial lkg_trial_see(struct lkg_trial trial,
                               const enum lkg_health_state seen[static _LKG_CHECK_MAX], uint64_t now_ns)
{
        if (trial.state != LKG_TRIAL_RUNNING)
                return trial;
        for (unsigned i = 0; i < _LKG_CHECK_MAX; i++) {
                trial.seen[i] = seen[i];
                if (seen[i] == LKG_HEALTH_UNKNOWN)
                        continue;
                if (seen[i] != LKG_HEALTH_BAD)
                        trial.judged[i] = seen[i] == LKG_HEALTH_GOOD;
                trial.bad[i] = trial.judged[i] && seen[i] == LKG_HEALTH_BAD;
        }
        return watch_stability(trial, now_ns);
}

static struct lkg_trial_step finish(struct lkg_trial trial, enum lkg_trial_state state,
                                    enum lkg_trial_verdict verdict, uint64_t now_ns)
{
        trial = stop_clock(trial, now_ns);
        trial.away_ns = trial.away_since_ns = 0;
        trial.state = state;
        return (struct lkg_trial_step){ trial, verdict };
}

struct lkg_trial_step lkg_trial_start(struct lkg_trial trial, bool counts, uint64_t now_ns)
{
        if (trial.state != LKG_TRIAL_RUNNING)
                return (struct lkg_trial_step){ trial, LKG_TRIAL_GO_ON };
        trial.away_ns = trial.away_since_ns = 0;
        /* It was over before this start, but lkg_trial_tick() was not called since. */
        if (is_over(&trial, now_ns) && is_stable(&trial, now_ns))
                return finish(trial, LKG_TRIAL_PASSED, LKG_TRIAL_PROMOTE, now_ns);
        forget_life(&trial);
        trial = watch_stability(trial, now_ns);
        if (!counts)
                return (struct lkg_trial_step){ trial, LKG_TRIAL_GO_ON };
        if (trial.prior > trial.rules.threshold)
                return finish(trial, LKG_TRIAL_FAILED, LKG_TRIAL_CONDEMN, now_ns);
        trial.prior++;
        return (struct lkg_trial_step){ trial, LKG_TRIAL_GO_ON };
}

struct lkg_trial lkg_trial_alive(struct lkg_trial trial, bool alive, uint64_t now_ns)
{
        if (trial.state != LKG_TRIAL_RUNNING || alive == (trial.running_since_ns != 0))
                return trial;
        if (!alive)
                return stop_clock(trial, now_ns);
        trial.running_since_ns = since(now_ns);
        return watch_stability(trial, now_ns);
}

struct lkg_trial lkg_trial_away(struct lkg_trial trial, bool away, bool on_trial, uint64_t now_ns)
{
        bool runs = away && on_trial && trial.state == LKG_TRIAL_RUNNING && !trial.running_since_ns &&
                    trial.prior > 0 && trial.good_ns > 0;

        if (away && runs == (trial.away_since_ns != 0))
                return trial;
        trial.away_ns = away ? lkg_trial_absence(&trial, now_ns) : 0;
        trial.away_since_ns = runs ? since(now_ns) : 0;
        return trial;
}

struct lkg_trial_step lkg_trial_tick(struct lkg_trial trial, uint64_t now_ns)
{
        bool passed;

        if (trial.state == LKG_TRIAL_RUNNING && trial.away_since_ns && now_ns >= given_up_at(&trial))
                return finish(trial, LKG_TRIAL_FAILED, LKG_TRIAL_REJECT, now_ns);
        if (trial.state != LKG_TRIAL_RUNNING || !trial.running_since_ns || !is_over(&trial, now_ns))
                return (struct lkg_trial_step){ trial, LKG_TRIAL_GO_ON };
        passed = is_stable(&trial, now_ns);
        if (!passed && !trial.extended) {
                trial.extended = true;
                return (struct lkg_trial_step){ trial, LKG_TRIAL_EXTEND };
        }
        if (!passed &&
            (lkg_trial_elapsed(&trial, now_ns) <= extended_ns(&trial) || waits_for_answer(&trial, now_ns)))
                return (struct lkg_trial_step){ trial, LKG_TRIAL_GO_ON };
        /* What does not answer is excused, not what was bad before, and not a life that is too short. */
        if (passed || (lkg_trial_health(&trial, NULL) == LKG_HEALTH_UNKNOWN &&
                       lkg_trial_calm(&trial, now_ns) >= trial.rules.stable_for_ns))
                return finish(trial, LKG_TRIAL_PASSED, LKG_TRIAL_PROMOTE, now_ns);
        return finish(trial, LKG_TRIAL_FAILED, LKG_TRIAL_REJECT, now_ns);
}

/* ---- which starts count ---- */

bool lkg_start_counts(const struct lkg_start_facts *facts, const char **ret_why)
{
        const struct {
                bool holds;
                const char *why;
        } excuses[] = {
                { facts->asked_for, "lkgfs asked for this restart" },
                { facts->own_event, "it ended itself when lkgfs told it of a change" },
                { facts->first_after_boot, "first start after boot" },
                { facts->manager_knows && !facts->automatic,
                  "the service manager started it, and not because it had failed" },
        };

        *ret_why = NULL;
        for (size_t i = 0; i < LKG_ARRAY_SIZE(excuses); i++) {
                if (!excuses[i].holds)
                        continue;
                *ret_why = excuses[i].why;
                return false;
        }
        return true;
}
