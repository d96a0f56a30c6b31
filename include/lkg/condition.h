/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The condition ConfigOK in words: a pure function of the engine's state.
 *
 * Spellings for the local configuration are the proposal's; those of lkgfs are added in its style. A condition is world-readable:
 * it names no value, no path and no finding of a document, only counts and where to look.
 */
#pragma once

#include <lkg/decide.h>

enum lkg_condition_status { LKG_CONDITION_UNKNOWN, LKG_CONDITION_FALSE, LKG_CONDITION_TRUE };
const char *lkg_condition_status_name(enum lkg_condition_status status); /* "Unknown", "False", "True" */

struct lkg_condition {
        enum lkg_condition_status status;
        char reason[256], message[512];
        bool pending; /* a try runs or a rollout waits: @reason stays true when the engine falls silent */
        uint64_t transition_ns; /* wall time at which status last changed */
};

/* Additions of dynamic configuration; all zero = none. */
struct lkg_condition_remote {
        const char *assigned, *active; /* uid; "" = local */
        const char *
                followed; /* uid of the base that the layers are merged over; not the active one while that is held */
        bool followed_lost; /* its checkpoint is: the disk is to blame, not its author */
        /* NULL = not known: named where the uids alone would be the same. */
        const char *assigned_version, *active_version;
        bool any; /* something is assigned, or the reference is unclear */
        bool active_is_assigned, active_is_good;
        bool went_back; /* trial.scope all: the last known good document of the same configuration is served */
        const char *desired_fault; /* the reference cannot be determined; NULL = it can */
        const char *waiting;   /* why the rollout holds back the desired configuration; NULL = it does not */
        const char *bad;       /* why assigned is not used; NULL = it is */
        bool marked;           /* by hand: @bad is what somebody wrote */
        bool good_failed;      /* the last known good could not be used either */
        bool exonerated;       /* the component crash-loops on the last known good, too */
        bool local_has_base;   /* of the local layers, while a remote configuration hides them */
        size_t n_local_errors; /* of the local layers, while a remote configuration hides them */
        bool waits;            /* assigned cannot be tried while the local layers are invalid */
        const char *untried;   /* assigned could not be tried: why; NULL = nothing keeps it from that */
};

struct lkg_condition_facts {
        struct lkg_condition_remote remote;
        const char *component, *file;
        const char *top, *status_path; /* as struct lkg_component has them */
        const struct lkg_hold *hold;
        const struct lkg_held_by *held_by; /* NULL = not known */
        enum lkg_candidate_state state;
        enum lkg_verdict verdict;
        size_t n_errors;
        size_t n_all_errors;     /* that findings has; fewer than those that are meant = not known */
        size_t n_remote_errors;  /* of them, those in the remote document itself */
        bool candidate_has_base; /* of the candidate */
        uint64_t active;         /* 0 = nothing served */
        bool active_has_base;
        bool last_good;   /* active was loaded from disk because there was no valid candidate */
        const char *lost; /* what could not be kept; NULL = nothing */
        const char
                *fault; /* the layers could not be looked at, or nothing could be published; NULL = none */
        bool not_ready; /* no candidate was looked at yet */
        uint64_t try_deadline_wall_ns;
};

#define LKG_HOLDER_MAX 160

/**
 * lkg_condition_holder() - ` since T by uid U (pid P, PROGRAM)`, ` since T`, or "" if unknown.
 * @mode: of a try that ran out, @by is who had begun it: ` since T, after a try by uid ...`
 */
void lkg_condition_holder(const struct lkg_held_by *by, enum lkg_hold_mode mode,
                          char ret[static LKG_HOLDER_MAX]);

/**
 * lkg_condition_update() - bring @condition up to date.
 * @now_ns: wall time; becomes transition_ns when the status changes (or was never set)
 *
 * Return: true when visible text has changed.
 */
bool lkg_condition_update(struct lkg_condition *condition, const struct lkg_condition_facts *facts,
                          uint64_t now_ns);
