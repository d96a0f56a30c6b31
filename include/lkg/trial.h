/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The trial of a configuration: the pure part. State, facts and a time in, the next state and a verdict out;
 * no clock, no file, no allocation. Times are CLOCK_BOOTTIME in ns unless named wall.
 *
 * Starts are counted from the beginning of the trial; the verdict of a start looks at the starts
 * *before* it (docs/specification.md 4.9, 4.10: threshold 0 marks it bad at the second start, 10 at the
 * twelfth). The clock runs while the component runs on the configuration under trial; if it is unknown
 * whether it runs, the clock always runs.
 */
#pragma once

#include <lkg/base.h>

#define LKG_TRIAL_THRESHOLD_MAX 10u
/* after a restart, until a check that does not answer counts as such */
#define LKG_TRIAL_ASK_NS (60 * LKG_NSEC_PER_SEC)
/* beyond its duration, until a component that has ended is given up */
#define LKG_TRIAL_ABSENT_NS (300 * LKG_NSEC_PER_SEC)
#define LKG_TRIAL_SAVE_NS   (30 * LKG_NSEC_PER_SEC) /* a power failure may lose this much of the clock */

/*
 * Where a candidate sets its own rules (docs/specification.md 4.8): fields of the document, annotations of
 * the object.
 */
#define LKG_TRIAL_FIELD_DURATION  "configTrialDuration"
#define LKG_TRIAL_FIELD_THRESHOLD "crashLoopThreshold"
#define LKG_TRIAL_NOTE_DURATION   "lkgfs.io/trial-duration"
#define LKG_TRIAL_NOTE_THRESHOLD  "lkgfs.io/crash-loop-threshold"

struct lkg_trial_rules {
        uint64_t duration_ns; /* 0 = no trial */
        unsigned threshold;   /* 0 to LKG_TRIAL_THRESHOLD_MAX */
        /* what the component must have lived healthily without a break; 0 = nothing */
        uint64_t stable_for_ns;
};

/** lkg_trial_stable_for() - trial.health.stableFor of a trial of this length: at most half of it. */
uint64_t lkg_trial_stable_for(uint64_t wanted_ns, uint64_t duration_ns);

/* Sources of the rules; the first one with a value is used, then it is clamped. */
struct lkg_trial_settings {
        uint64_t duration_ns; /* our configuration */
        unsigned threshold;
        uint64_t min_duration_ns,
                max_duration_ns; /* clamps; 0 = none. The minimum also applies to 0; the maximum is last */
};

/**
 * lkg_trial_rules_make() - the rules of one candidate.
 * @own_duration, @own_threshold: text of configTrialDuration and crashLoopThreshold in the candidate (for a
 *                                number its JSON text), NULL = not set
 * @noted_duration, @noted_threshold: of the object's annotations
 * @why: which of the four is wrong and what would be right, if the result is negative
 *
 * All four are checked, even one that another overrides: its author had an intention. Durations are Go's,
 * not negative.
 *
 * Return: 0; -EINVAL: the candidate is bad.
 */
int lkg_trial_rules_make(const struct lkg_trial_settings *settings, const char *own_duration,
                         const char *own_threshold, const char *noted_duration, const char *noted_threshold,
                         struct lkg_trial_rules *ret, char why[static 256]);

enum lkg_trial_state {
        LKG_TRIAL_IDLE,
        LKG_TRIAL_RUNNING,
        LKG_TRIAL_PASSED,
        LKG_TRIAL_FAILED,
        _LKG_TRIAL_STATE_MAX
};
const char *lkg_trial_state_name(enum lkg_trial_state state); /* "idle", "running", "passed", "failed" */
extern const char *const lkg_trial_state_names[_LKG_TRIAL_STATE_MAX + 1]; /* the last is NULL */

/* What tells whether a component that is alive also does its work (trial.health). */
enum lkg_check {
        LKG_CHECK_NODE, /* Ready of its Node */
        LKG_CHECK_HTTP, /* its health endpoint */
        _LKG_CHECK_MAX
};
const char *lkg_check_name(enum lkg_check check);             /* "node", "http" */
extern const char *const lkg_check_names[_LKG_CHECK_MAX + 1]; /* the last is NULL */

enum lkg_health_state {
        LKG_HEALTH_OFF, /* nobody asks */
        LKG_HEALTH_UNKNOWN,
        LKG_HEALTH_GOOD,
        LKG_HEALTH_BAD,
};
#define LKG_HEALTH_WORDS_MAX 128 /* why a check is not good: for conditions and Events, so no content */
const char *lkg_health_name(enum lkg_health_state health); /* "off", "unknown", "good", "bad" */

struct lkg_trial {
        enum lkg_trial_state state;
        struct lkg_trial_rules rules;
        unsigned prior; /* counted starts so far */
        /* the newest start that was judged: if it is reported again after a crash, it is the same start */
        int last_pid;
        uint64_t last_start_time;  /* 0 = none, or unknown */
        uint64_t started_wall_ns;  /* when it began */
        uint64_t good_ns;          /* the clock, up to running_since_ns */
        uint64_t running_since_ns; /* 0 = stopped */
        /*
         * A check is judged only if it was good before the change or has been good since: a Node that never was Ready says
         * nothing about this configuration.
         */
        bool judged[_LKG_CHECK_MAX];
        bool bad[_LKG_CHECK_MAX]; /* the newest answer that says anything was bad: it counts until there is another */
        enum lkg_health_state seen[_LKG_CHECK_MAX]; /* the newest answer; not stored */
        uint64_t stable_ns; /* of one life of the component, with all checks good, up to stable_since_ns */
        uint64_t stable_since_ns; /* 0 = stopped */
        uint64_t calm_ns;         /* the same, with no check bad: some may not answer */
        uint64_t calm_since_ns;
        uint64_t resumed_ns;    /* CLOCK_BOOTTIME at which this engine took it over; 0 = it began here */
        bool extended;          /* the duration was exceeded, and it was not stable */
        uint64_t away_ns;       /* for how long no process of the component has lived, up to away_since_ns */
        uint64_t away_since_ns; /* 0 = that clock is stopped */
};

/**
 * lkg_trial_begin() - start a trial; with a duration of 0 it has PASSED at once. @watched: the clock waits
 * for a process.
 */
struct lkg_trial lkg_trial_begin(struct lkg_trial_rules rules, bool watched, uint64_t now_ns,
                                 uint64_t wall_ns);

/**
 * lkg_trial_resume() - resume a trial read from disk. running_since_ns is ignored, because it belongs to
 * another boot or another process: the clock of a watched component is stopped until lkg_trial_alive(), and
 * time without a daemon does not count.
 */
struct lkg_trial lkg_trial_resume(struct lkg_trial trial, bool watched, uint64_t now_ns);

enum lkg_trial_verdict {
        LKG_TRIAL_GO_ON,
        LKG_TRIAL_PROMOTE,
        LKG_TRIAL_CONDEMN, /* crash loop */
        LKG_TRIAL_EXTEND,  /* over, and not stable: it goes on, at most for the duration once more */
        LKG_TRIAL_REJECT,  /* not healthy */
};
struct lkg_trial_step {
        struct lkg_trial next;
        enum lkg_trial_verdict verdict;
};

/**
 * lkg_trial_start() - the component starts.
 * @counts: from lkg_start_counts(); a start that does not count never condemns and is never prior to another
 *
 * CONDEMN if there were more than threshold counted starts before. PROMOTE if the clock had passed the
 * duration and lkg_trial_tick() was not called since: this start is no longer part of the trial.
 */
struct lkg_trial_step lkg_trial_start(struct lkg_trial trial, bool counts, uint64_t now_ns);

/**
 * lkg_trial_alive() - a process that uses the configuration under trial is running, or the last one has
 * ended.
 */
struct lkg_trial lkg_trial_alive(struct lkg_trial trial, bool alive, uint64_t now_ns);

/**
 * lkg_trial_away() - @away: no process of the component lives, whatever it would run with. @on_trial: a start would be one of this
 * trial; if not, that clock stands still.
 *
 * It counts only after a counted start and a life in this trial. Otherwise nothing was tried, as with a component that an
 * administrator has stopped, and the trial waits.
 */
struct lkg_trial lkg_trial_away(struct lkg_trial trial, bool away, bool on_trial, uint64_t now_ns);

/** lkg_trial_absence() - for how long has no process of the component lived, of what counts? */
uint64_t lkg_trial_absence(const struct lkg_trial *trial, uint64_t now_ns);

/** lkg_trial_see() - what the checks say now; right after lkg_trial_begin(): what they said before the change. */
struct lkg_trial lkg_trial_see(struct lkg_trial trial,
                               const enum lkg_health_state seen[static _LKG_CHECK_MAX], uint64_t now_ns);

/**
 * lkg_trial_health() - the judged checks together: BAD if one is, or was when it answered last, else UNKNOWN if one does not answer, else
 * GOOD; OFF: none is judged.
 * @ret_bad: the first bad one; may be NULL
 */
enum lkg_health_state lkg_trial_health(const struct lkg_trial *trial, enum lkg_check *ret_bad);

/**
 * lkg_trial_say_unhealthy() - what is not healthy, for people: that the component does not run; @bad, the words of the bad check; if
 * there is none at the moment, for how long the component did not live without a break. Return: @ret.
 */
const char *lkg_trial_say_unhealthy(const struct lkg_trial *trial, const char *bad,
                                    char ret[static LKG_HEALTH_WORDS_MAX]);

/** lkg_trial_stable() - for how long has the component lived without a break, with all checks good? */
uint64_t lkg_trial_stable(const struct lkg_trial *trial, uint64_t now_ns);
/** lkg_trial_calm() - the same with no check bad, so far as they answer. */
uint64_t lkg_trial_calm(const struct lkg_trial *trial, uint64_t now_ns);

/**
 * lkg_trial_tick() - time has passed. REJECT if the component has been away for longer than the duration and LKG_TRIAL_ABSENT_NS.
 * While the clock runs: PROMOTE once it exceeds the duration and the component is stable;
 * EXTEND once, if it is not. After twice the duration, and not within LKG_TRIAL_ASK_NS of lkg_trial_resume(): PROMOTE if a judged check does not answer at the moment and none is bad (the API server may be
 * away); else REJECT.
 */
struct lkg_trial_step lkg_trial_tick(struct lkg_trial trial, uint64_t now_ns);

/** lkg_trial_due() - when lkg_trial_tick() would decide if nothing happens; UINT64_MAX = never. */
uint64_t lkg_trial_due(const struct lkg_trial *trial);
uint64_t lkg_trial_elapsed(const struct lkg_trial *trial, uint64_t now_ns);

/* ---- which starts count ---- */

struct lkg_start_facts {
        bool first_after_boot; /* the last start was in another boot */
        bool asked_for;        /* lkgfs requested this restart */
        bool own_event;        /* the previous process exited by itself right after our change event */
        bool manager_knows;    /* the following comes from systemd */
        bool automatic;        /* systemd restarted it because it had failed */
};

/**
 * lkg_start_counts() - is this start evidence against a configuration?
 * @ret_why: why not, for startups and log; NULL if it counts
 */
bool lkg_start_counts(const struct lkg_start_facts *facts, const char **ret_why);
