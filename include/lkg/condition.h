/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The condition ConfigOK in words: a pure function of the engine's state.
 *
 * The texts for the local configuration are those of the proposal; those of lkgfs follow its style. A
 * condition is world-readable: it contains no value, no path and no finding of a document, only counts and
 * where to look.
 */
#pragma once

#include <lkg/decide.h>

enum lkg_condition_status { LKG_CONDITION_UNKNOWN, LKG_CONDITION_FALSE, LKG_CONDITION_TRUE };
const char *lkg_condition_status_name(enum lkg_condition_status status); /* "Unknown", "False", "True" */

struct lkg_condition {
        enum lkg_condition_status status;
        char reason[256], message[512];
        /* a try is running or a rollout waits: @reason remains true if the engine falls silent */
        bool pending;
        uint64_t transition_ns; /* wall time at which status last changed */
};

/* Additions of dynamic configuration; all zero = none. */
struct lkg_condition_remote {
        const char *assigned, *active; /* uid; "" = local */
        const char *followed;          /* uid of the base of the layers; during a hold not the active one */
        bool followed_lost;            /* its checkpoint is lost: the disk is to blame, not the author */
        bool followed_unread;          /* ... or cannot be read at the moment */
        /* NULL = unknown: included if the uids alone would be the same. */
        const char *assigned_version, *active_version;
        bool any; /* something is assigned, or the reference is unclear */
        bool active_is_assigned, active_is_good;
        bool went_back; /* trial.scope all: the last known good document of the same configuration is served */
        const char *desired_fault; /* why the reference cannot be determined; NULL = it can */
        const char *waiting;   /* why the rollout holds back the desired configuration; NULL = it does not */
        const char *bad;       /* why assigned is not used; NULL = it is */
        bool marked;           /* marked by hand: @bad is the user's text */
        bool good_failed;      /* the last known good could not be used either */
        bool restart_needed;   /* it runs with what was not healthy, and nobody restarts it */
        bool exonerated;       /* the component crash-loops on the last known good, too */
        bool local_has_base;   /* of the local layers, while a remote configuration hides them */
        size_t n_local_errors; /* of the local layers, while a remote configuration hides them */
        bool waits;            /* assigned cannot be tried while the local layers are invalid */
        const char *untried;   /* why assigned could not be tried; NULL = nothing prevents that */
};

struct lkg_condition_facts {
        struct lkg_condition_remote remote;
        const char *component, *file;
        const char *top, *status_path; /* as in struct lkg_component */
        const struct lkg_hold *hold;
        const struct lkg_held_by *held_by; /* NULL = unknown */
        enum lkg_candidate_state state;
        enum lkg_verdict verdict;
        size_t n_errors;
        size_t n_all_errors;     /* errors in findings; if fewer than the relevant ones: unknown */
        size_t n_remote_errors;  /* of them, those in the remote document itself */
        bool candidate_has_base; /* of the candidate */
        uint64_t active;         /* 0 = nothing served */
        bool active_has_base;
        bool last_good;    /* active was loaded from disk because there was no valid candidate */
        const char *lost;  /* what could not be saved; NULL = nothing */
        const char *fault; /* the layers could not be read, or publishing failed; NULL = none */
        bool not_ready;    /* no candidate has been judged yet */
        uint64_t try_deadline_wall_ns;
};

#define LKG_HOLDER_MAX 160

/**
 * lkg_condition_holder() - ` since T by uid U (pid P, PROGRAM)`, ` since T`, or "" if unknown.
 * @mode: for an expired try, @by is its author: ` since T, after a try by uid ...`
 */
void lkg_condition_holder(const struct lkg_held_by *by, enum lkg_hold_mode mode,
                          char ret[static LKG_HOLDER_MAX]);

/**
 * lkg_condition_update() - bring @condition up to date.
 * @now_ns: wall time; becomes transition_ns if the status changes (or was never set)
 *
 * Return: true: the visible text has changed.
 */
bool lkg_condition_update(struct lkg_condition *condition, const struct lkg_condition_facts *facts,
                          uint64_t now_ns);
