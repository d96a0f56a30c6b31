/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What must survive a restart or a reboot, in the private state directory (0700):
 *
 *     generation-next              decimal: the first generation number that was never handed out
 *     components/<component>.json  hold, try, condition, last good generation
 *     history/<component>/<n>/     one generation: see history.h
 *
 * Every file is replaced atomically. A file that cannot be read or understood is reported and treated as absent:
 * starting with less memory is better than not starting.
 */
#pragma once

#include <limits.h>

#include <lkg/condition.h>
#include <lkg/decide.h>
#include <lkg/error.h>
#include <lkg/source.h>

struct lkg_state {
        int fd;                  /* state directory; borrowed */
        uint64_t next, reserved; /* numbers next..reserved-1 may be handed out without touching the disk */
};

/** lkg_state_open() - create the directories, read generation-next. @report: what could not be read. */
int lkg_state_open(int fd, struct lkg_state *ret, struct lkg_report *report, struct lkg_error *err);

/**
 * lkg_state_next_generation() - a number that was never used. Reserves a block of 64 durably when none is left; a
 * crash leaves a gap.
 */
int lkg_state_next_generation(struct lkg_state *state, uint64_t *ret, struct lkg_error *err);

/** lkg_state_reserve_ahead() - when few numbers are left, get the next block now, while nobody waits. */
int lkg_state_reserve_ahead(struct lkg_state *state, struct lkg_error *err);

/** lkg_state_at_least() - numbers up to @used were seen in use: never hand them out again. */
void lkg_state_at_least(struct lkg_state *state, uint64_t used);

/* A command of several durable steps that has begun: noted before the first, gone after the last; else done at the next start. */
enum lkg_unfinished_kind {
        LKG_UNFINISHED_NONE,
        LKG_UNFINISHED_ABANDON, /* `rollback N`, pinned already: @source is to be marked bad and left */
        LKG_UNFINISHED_GOOD,    /* `rollback lkg`: the same, then what is served is to be pinned */
        _LKG_UNFINISHED_MAX
};

struct lkg_unfinished {
        enum lkg_unfinished_kind kind;
        char source[LKG_SOURCE_ID_MAX + 1]; /* "" = nothing is to be left */
        uint64_t held;                      /* GOOD: generation of the hold that it ends; 0 = none */
        struct lkg_held_by by;              /* GOOD: whose command it is */
};

#define LKG_LOST_MAX 160

struct lkg_component_state {
        struct lkg_hold hold;
        struct lkg_held_by held_by;
        struct lkg_held_by tried_by; /* who began the try that is armed or runs */
        char pinned_for[LKG_SOURCE_ID_MAX +
                        1]; /* what was assigned at a rollback: its pin ends with that; "" = not known */
        struct lkg_unfinished unfinished;
        char lost
                [LKG_LOST_MAX]; /* what of the above could not be kept, for people; until somebody does something */
        uint64_t last_good; /* generation served last; 0 = none yet */
        char base
                [PATH_MAX]; /* the local base that was part of what was served last, as configured; "" = none ever */
        enum lkg_condition_status status;
        uint64_t transition_ns; /* of the condition; 0 = never set */
        uint64_t
                ticket; /* of the last command carried out in this boot: asked again, it is not done twice */
};

/**
 * lkg_state_load_component() - read one component's state.
 * A try deadline of an earlier boot is converted through the wall clock; one of this boot is exact.
 * Return: 0, also when there is none; -ENOMEM. What cannot be understood goes to @report and to `lost` of @ret.
 */
int lkg_state_load_component(const struct lkg_state *state, const char *component,
                             struct lkg_component_state *ret, struct lkg_report *report);
/**
 * lkg_state_keep_component() - keep the record as it is under another name, so that lkg_state_restore_component() brings it
 * back without needing space. Kept until lkg_state_forget_kept(), or the next start.
 */
int lkg_state_keep_component(const struct lkg_state *state, const char *component);
int lkg_state_restore_component(const struct lkg_state *state, const char *component);
void lkg_state_forget_kept(const struct lkg_state *state, const char *component);
int lkg_state_save_component(const struct lkg_state *state, const char *component,
                             const struct lkg_component_state *value, bool durable, struct lkg_error *err);
