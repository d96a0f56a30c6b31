/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which document a component may show: the pure part. State and facts in, the next state and a verdict out; no clock, no file,
 * no allocation. The engine makes the state durable before the publication that shows it.
 *
 * Hold, rollback and an expired try are one state machine: each freezes one generation, `hold off` ends it
 * (docs/specification.md 4.6, 4.7). While frozen, candidates are still loaded, judged and reported.
 */
#pragma once

#include <lkg/base.h>
#include <lkg/stack.h>

enum lkg_hold_mode {
        LKG_HOLD_FREE,        /* the view follows the layers */
        LKG_HOLD_ON,          /* `hold on` */
        LKG_HOLD_ROLLBACK,    /* `rollback N` */
        LKG_HOLD_TRY_EXPIRED, /* not committed in time: the generation before the try is served again */
        _LKG_HOLD_MODE_MAX
};
const char *lkg_hold_mode_name(enum lkg_hold_mode mode); /* "", "hold", "rollback", "try expired" */

enum lkg_try_phase {
        LKG_TRY_NONE,
        LKG_TRY_ARMED,   /* the next generation will be on try */
        LKG_TRY_RUNNING, /* it is active; deadline_ns applies */
        _LKG_TRY_PHASE_MAX
};

struct lkg_hold {
        enum lkg_hold_mode mode;
        uint64_t generation; /* frozen; 0 while free (or frozen while nothing was served) */
        enum lkg_try_phase try_phase;
        uint64_t try_duration_ns;
        uint64_t try_previous;    /* RUNNING: generation to go back to */
        uint64_t try_deadline_ns; /* RUNNING: CLOCK_BOOTTIME */
};

/* ---- a candidate ---- */

enum lkg_verdict {
        LKG_KEEP,     /* nothing to do: the same bytes, or nothing at all */
        LKG_PUBLISH,  /* the candidate becomes a generation */
        LKG_REFUSE,   /* invalid: the served one stays */
        LKG_AVOID,    /* valid, but known bad: the served one stays */
        LKG_WAIT,     /* valid and different, but frozen */
        LKG_WITHDRAW, /* the view name is no longer ours */
        _LKG_VERDICT_MAX
};

/**
 * lkg_decide() - judge a candidate.
 * @state:  of the candidate
 * @same:   its rendered bytes are those of the active generation
 * @bad:    this document is in the bad list
 * @active: number of the active generation, 0 = none
 */
enum lkg_verdict lkg_decide(const struct lkg_hold *hold, enum lkg_candidate_state state, bool same, bool bad,
                            uint64_t active);

/** lkg_hold_published() - a new generation became active while @previous was: an armed try begins to run. */
struct lkg_hold lkg_hold_published(struct lkg_hold hold, uint64_t previous, uint64_t now_ns);

/** lkg_hold_deadline() - when lkg_hold_tick() must be called, CLOCK_BOOTTIME; UINT64_MAX = never. */
uint64_t lkg_hold_deadline(const struct lkg_hold *hold);

/** lkg_hold_tick() - time passed: a try that is due freezes the generation before it. */
struct lkg_hold lkg_hold_tick(struct lkg_hold hold, uint64_t now_ns);

/* ---- commands of an operator ---- */

enum lkg_hold_command { LKG_CMD_HOLD_ON, LKG_CMD_HOLD_OFF, LKG_CMD_ROLLBACK, LKG_CMD_TRY, LKG_CMD_COMMIT };

/* The author of the hold, or of the try that expired. */
struct lkg_held_by {
        uint64_t time_ns; /* wall time; 0 = unknown: held by an earlier version */
        uint32_t uid;
        int32_t pid;
        char program[64]; /* without its directory; "try" = a try expired, and its author is unknown */
};

struct lkg_hold_step {
        struct lkg_hold next;
        int result;      /* 0, -EINVAL or -EBUSY; if not 0, next is unchanged */
        const char *why; /* a message, if result is not 0 */
};

/**
 * lkg_hold_command() - carry out one command.
 * @argument: ROLLBACK: generation number; TRY: duration in ns; otherwise unused
 * @known:    ROLLBACK: the generation is in history
 * @active:   number of the active generation, 0 = none
 */
struct lkg_hold_step lkg_hold_command(struct lkg_hold hold, enum lkg_hold_command command, uint64_t argument,
                                      bool known, uint64_t active);
