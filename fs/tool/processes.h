/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which processes of lkgfs run, as the file server tells in metrics.prom: none of them can tell its own end. Shared by the verbs
 * status, doctor, gate and npd. A daemon that does not tell it leaves everything unknown, and then nothing is missing.
 */
#pragma once

#include "tool.h"

#define LKG_PROCESSES_MAX 8
#define LKG_PROC_NAMES    15u /* bytes of a name in /proc/PID/comm */

struct lkg_process_told {
        char name[32]; /* as `ps` shows it */
        bool up;
};

struct lkg_processes {
        struct lkg_process_told items[LKG_PROCESSES_MAX];
        size_t n;
        bool no_user; /* the engine runs as root, because the one that it is to run as does not exist */
        bool engine_silent; /* it has not answered for a second: the condition says since when */
};

/** lkg_processes_parse() - lkgfs_process_up, lkgfs_engine_up and lkgfs_engine_user_missing of a metrics file. */
void lkg_processes_parse(const char *metrics, struct lkg_processes *ret);
/**
 * lkg_processes_read() - of status/<component>/metrics.prom.
 *
 * One that is missing is looked for once more a moment later: it may just be restarting.
 */
void lkg_processes_read(const struct lkg_view *view, const char *component, struct lkg_processes *ret);
/**
 * lkg_process_missing() - it does not run. Never the engine, which is replaced at once; engine_silent reports it.
 */
bool lkg_process_missing(const struct lkg_process_told *process);
/** lkg_processes_missing() - of all of them; "lkgfsd, lkgfs-notify" into @buf. Return: how many. */
size_t lkg_processes_missing(const struct lkg_processes *processes, struct lkg_buf *buf);
/** lkg_process_loss() - what goes on no more without it, and what to do about it. */
const char *lkg_process_loss(const char *name, const char **ret_advice);

/** lkg_process_named() - a process of root with the name of a component (only a hint). Return: 0 = none. */
unsigned long lkg_process_named(const char *name);
