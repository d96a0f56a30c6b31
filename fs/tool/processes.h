/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which processes of lkgfs are running, according to the file server's metrics.prom: no process can report
 * its own end. Shared by the verbs status, doctor, gate and npd. With a daemon that does not report it
 * everything is unknown, and nothing counts as missing.
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

#define LKG_ENDS_MANY 3u /* more ends within a minute are no accident */

/**
 * lkg_processes_parse() - read lkgfs_process_up, lkgfs_process_restarts_recent, lkgfs_engine_up and lkgfs_engine_user_missing from a
 * metrics file.
 */
void lkg_processes_parse(const char *metrics, struct lkg_processes *ret);
/**
 * lkg_processes_read() - read status/<component>/metrics.prom.
 *
 * If a process is missing, it is checked again shortly afterwards: it may be restarting.
 */
void lkg_processes_read(const struct lkg_view *view, const char *component, struct lkg_processes *ret);
/**
 * lkg_process_missing() - is it not running? Always false for the engine, which is replaced at once;
 * engine_silent reports it.
 */
bool lkg_process_missing(const struct lkg_process_told *process);
/** lkg_processes_missing() - add the missing ones to @buf: "lkgfsd, lkgfs-notify". Return: how many. */
size_t lkg_processes_missing(const struct lkg_processes *processes, struct lkg_buf *buf);
/** lkg_process_ends() - does it end again and again? Adds "lkgfs-engine ended 600 times within a minute, the last time: killed by SIGKILL" to @buf, if any. */
bool lkg_process_ends(const struct lkg_process_told *process, struct lkg_buf *buf);
#define LKG_ENDS_ADVICE                                                                                     \
        "journalctl -u lkgfs shows each end; SIGKILL comes from the kernel without memory (journalctl -k) " \
        "or another program"
/** lkg_process_loss() - what no longer works without it; @ret_advice: what to do about it. */
const char *lkg_process_loss(const char *name, const char **ret_advice);

/* status/<component>/process: the engine's answer to "which process is the component?"; nobody else looks. */
struct lkg_component_process {
        unsigned long pid;   /* 0 = none is known */
        uint64_t generation; /* that it has read; 0 = unknown */
};

/** lkg_component_process_read() - Return: 0; -errno of reading: no process. */
int lkg_component_process_read(const struct lkg_view *view, const char *component,
                               struct lkg_component_process *ret);

/* port-holder.c */
/** lkg_port_holder() - the process that listens on this TCP port. Return: its pid; 0: none, or it cannot be seen. */
unsigned long lkg_port_holder(unsigned port, char name[static LKG_PROC_NAMES + 1]);
