/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The trial of a configuration: the pure part. State, facts and a time in, the next state and a verdict out;
 * no clock, no file, no allocation. Times are CLOCK_BOOTTIME in ns unless they are called wall.
 *
 * Starts are counted from the moment the source became assigned; the verdict of a start looks at the starts
 * *before* it (docs/specification.md 4.9, 4.10: threshold 0 condemns at the second start, 10 at the twelfth). The clock runs
 * while the component lives on the configuration under trial; where nobody can tell whether it lives, it
 * runs always.
 */
#pragma once

#include <lkg/base.h>

#define LKG_TRIAL_THRESHOLD_MAX 10u
#define LKG_TRIAL_SAVE_NS       (30 * LKG_NSEC_PER_SEC) /* a power cut may cost so much of the clock */

/*
 * Where a candidate says its own rules (docs/specification.md 4.8): fields of the document, annotations of the object.
 */
#define LKG_TRIAL_FIELD_DURATION  "configTrialDuration"
#define LKG_TRIAL_FIELD_THRESHOLD "crashLoopThreshold"
#define LKG_TRIAL_NOTE_DURATION   "lkgfs.io/trial-duration"
#define LKG_TRIAL_NOTE_THRESHOLD  "lkgfs.io/crash-loop-threshold"

struct lkg_trial_rules {
        uint64_t duration_ns; /* 0 = no trial */
        unsigned threshold;   /* 0 to LKG_TRIAL_THRESHOLD_MAX */
};

/* Where the rules come from; the first that has a value wins, then it is clamped. */
struct lkg_trial_settings {
        uint64_t duration_ns; /* our configuration */
        unsigned threshold;
        uint64_t min_duration_ns,
                max_duration_ns; /* clamps; 0 = none. The minimum lifts 0, too; the maximum comes last */
};

/**
 * lkg_trial_rules_make() - the rules of one candidate.
 * @own_duration, @own_threshold: text of configTrialDuration and crashLoopThreshold in the candidate (of a
 *                                number its JSON text), NULL = not there
 * @noted_duration, @noted_threshold: of the object's annotations
 * @why: which of the four is wrong and what would be right, when the result is negative
 *
 * All four are judged, even one that another overrides: its author meant something by it. Durations are
 * Go's, not negative.
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
/** lkg_trial_state_parse() - Return: 0 or -EINVAL. */
int lkg_trial_state_parse(const char *name, enum lkg_trial_state *ret);

struct lkg_trial {
        enum lkg_trial_state state;
        struct lkg_trial_rules rules;
        unsigned prior; /* counted starts so far */
        int last_pid; /* the newest start that was judged: if reported again after a crash, it is the same one */
        uint64_t last_start_time;  /* 0 = none, or not known */
        uint64_t started_wall_ns;  /* when it began */
        uint64_t good_ns;          /* the clock, up to running_since_ns */
        uint64_t running_since_ns; /* 0 = stopped */
};

/**
 * lkg_trial_begin() - a new trial; a duration of 0 has PASSED at once. @watched: the clock waits for a
 * process.
 */
struct lkg_trial lkg_trial_begin(struct lkg_trial_rules rules, bool watched, uint64_t now_ns,
                                 uint64_t wall_ns);

/**
 * lkg_trial_resume() - as read from disk. running_since_ns is ignored, because it is of another boot or another
 * process: the clock of a watched component is stopped until lkg_trial_alive(), and time without a
 * daemon does not count.
 */
struct lkg_trial lkg_trial_resume(struct lkg_trial trial, bool watched, uint64_t now_ns);

enum lkg_trial_verdict { LKG_TRIAL_GO_ON, LKG_TRIAL_PROMOTE, LKG_TRIAL_CONDEMN };
struct lkg_trial_step {
        struct lkg_trial next;
        enum lkg_trial_verdict verdict;
};

/**
 * lkg_trial_start() - the component starts.
 * @counts: as lkg_start_counts() said; a start that does not count never condemns and is never prior to
 * another
 *
 * CONDEMN when more than threshold counted starts came before. PROMOTE when the clock had passed the
 * duration and lkg_trial_tick() was not called since: this start is not in the trial any more.
 */
struct lkg_trial_step lkg_trial_start(struct lkg_trial trial, bool counts, uint64_t now_ns);

/**
 * lkg_trial_alive() - a process that runs on the configuration under trial lives, or the last of them has
 * ended.
 */
struct lkg_trial lkg_trial_alive(struct lkg_trial trial, bool alive, uint64_t now_ns);

/** lkg_trial_tick() - time passed: PROMOTE once the clock is past the duration while it runs. */
struct lkg_trial_step lkg_trial_tick(struct lkg_trial trial, uint64_t now_ns);

/** lkg_trial_due() - when lkg_trial_tick() would promote if nothing happens; UINT64_MAX = never. */
uint64_t lkg_trial_due(const struct lkg_trial *trial);
uint64_t lkg_trial_elapsed(const struct lkg_trial *trial, uint64_t now_ns);

/* ---- which starts count ---- */

struct lkg_start_facts {
        bool first_after_boot; /* the last start was on another boot */
        bool asked_for;        /* lkgfs asked for this restart */
        bool own_event;        /* the process before ended by itself right after our change event */
        bool manager_knows;    /* the following comes from systemd */
        bool automatic;        /* systemd restarted it because it had failed */
};

/**
 * lkg_start_counts() - is this start evidence against a configuration?
 * @ret_why: in words why not, for startups and log; NULL when it counts
 */
bool lkg_start_counts(const struct lkg_start_facts *facts, const char **ret_why);
