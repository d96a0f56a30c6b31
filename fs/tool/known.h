/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What status/<component>/ and bad/<component>/ say: the one model of them, for status, doctor, drift, gate and npd. It is read
 * once; a file that the caller may not read, or that this daemon does not provide, is missing.
 *
 * The processes are those of lkgfs, as the file server counts them (metrics.prom): no process can report its own end. With a daemon
 * that does not report them everything is unknown, and nothing counts as missing.
 */
#pragma once

#include "tool.h"

#define LKG_PROCESSES_MAX 8
#define LKG_PROC_NAMES    15u /* bytes of a name in /proc/PID/comm */

struct lkg_process_told {
        char name[32]; /* as `ps` shows it */
        bool up;
        unsigned n_ends; /* that nobody asked for, within the last minute */
        char reason[64]; /* of the last of them */
};

struct lkg_processes {
        struct lkg_process_told items[LKG_PROCESSES_MAX];
        size_t n;
        bool no_user;       /* the engine runs as root because its configured user does not exist */
        bool engine_silent; /* it has not answered for a second: the condition has the start time */
};

void lkg_processes_parse(const char *metrics, struct lkg_processes *ret);
/** lkg_processes_read() - a process that is missing is looked for again shortly afterwards: it may be restarting. */
void lkg_processes_read(const struct lkg_view *view, struct lkg_processes *ret);
/** lkg_process_missing() - does it not run? Never the engine, which is replaced at once: engine_silent reports it. */
bool lkg_process_missing(const struct lkg_process_told *process);
/** lkg_processes_missing() - "lkgfsd, lkgfs-notify"; NULL = none is. */
const char *lkg_processes_missing(const struct lkg_processes *processes);
/** lkg_processes_trouble() - a sentence about them: "lkgfsd does not run"; NULL = none is missing. */
const char *lkg_processes_trouble(const struct lkg_processes *processes);
/** lkg_process_ends() - "lkgfs-engine ended 600 times within a minute, ..."; NULL = it does not end again and again. */
const char *lkg_process_ends(const struct lkg_process_told *process);
#define LKG_ENDS_ADVICE                                                                                     \
        "journalctl -u lkgfs shows each end; SIGKILL comes from the kernel without memory (journalctl -k) " \
        "or another program"
/** lkg_tool_program() - the name of any process, as `ps` shows it; "" = it is not known. */
const char *lkg_tool_program(const char *pid);
/** lkg_process_loss() - what no longer works without it; @ret_advice: what to do about it. */
const char *lkg_process_loss(const char *name, const char **ret_advice);

struct lkg_known {
        struct lkg_value *texts; /* of the files that are one text, by their names */
        struct lkg_value *condition;
        struct lkg_value *hold, *trial, *process; /* their lines `key=value` */
        /* a list of {field, running, served}; the values are JSON, none = the field is missing */
        struct lkg_value *drift;
        int drift_error;           /* -errno of reading it */
        struct lkg_value *pods;    /* lkg_known_pods(); empty: the component has none */
        struct lkg_strings marks;  /* the names in bad/ */
        bool has_marks;            /* they could be listed */
        const char *assigned_mark; /* the one that is about the assigned configuration; NULL = none */
        struct lkg_report findings;
        bool findings_hidden; /* only root may read them */
        struct lkg_processes processes;
        char served_since[21]; /* "" = not known */
};

/** lkg_known_pods() - the lines of status/<component>/pods as a list of maps: file, sha256, state, since, why. */
struct lkg_value *lkg_known_pods(const char *text);
struct lkg_known *lkg_known_read(const struct lkg_view *view);

/** lkg_known_text() - the text of a file of status/; "" = it is empty or missing. */
const char *lkg_known_text(const struct lkg_known *known, const char *file);
/** lkg_known_unseen() - the process of the component, if it is not known what it has read; 0 = none. */
unsigned long lkg_known_unseen(const struct lkg_known *known);
/* Follows the component's name; takes one number. */
#define LKG_UNSEEN                                                                                          \
        "runs as process %lu, and what that has read is not known: it started while lkgfs did not run, or " \
        "was not seen"
/** lkg_known_drift() - "/maxPods runs with 110, served is 64"; long values are cut. */
const char *lkg_known_drift(const struct lkg_known *known, size_t i);

/** lkg_known_remote() - does the text name a ConfigMap, and not `init`, `default` or a local id? */
bool lkg_known_remote(const char *text);
/** lkg_known_dynamic() - is there anything besides the local configuration: a ConfigMap, a trial, a mark? */
bool lkg_known_dynamic(const struct lkg_known *known);
bool lkg_known_on_trial(const struct lkg_known *known);
/** lkg_known_trial_next() - one line of advice about a refused or tried configuration; NULL = none. */
const char *lkg_known_trial_next(const struct lkg_known *known, const char *component);

/** lkg_known_mode() - "hold", "rollback", "try-expired"; NULL = free. */
const char *lkg_known_mode(const struct lkg_known *known);
/** lkg_known_try() - "running", "armed", "none". */
const char *lkg_known_try(const struct lkg_known *known);
bool lkg_known_newer_waits(const struct lkg_known *known);
/** lkg_known_who() - " since T by uid U (pid P, PROGRAM)", as far as known. */
const char *lkg_known_who(const struct lkg_known *known);
/** lkg_known_hold_next() - the command that ends a hold or a try, one line of advice; NULL = none. */
const char *lkg_known_hold_next(const struct lkg_known *known, const char *component);
