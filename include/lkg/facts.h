/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Facts about the component itself: its release and its command line.
 *
 * Two sources. The supervisor writes the facts that need a program or the service manager (the engine may
 * use neither) below `facts/<component>/` of the runtime directory:
 *
 *     version      line 1: the output of `EXE --version`, "" = nothing usable; line 2: which file was run
 *                  (`refused`: it was not run, because users other than root can replace it)
 *     exec-start   the words of the unit's ExecStart after the first, each ended by a NUL
 *
 * The engine itself reads /proc/PID/cmdline of a recognised process and stores it as `process` ("PID
 * START-TIME GENERATION" and the words, each ended by a NUL), so that its successor knows it, too. Any of
 * this may contain credentials: only root can read the directory, and messages contain nothing of a command
 * line except the names of flags.
 *
 * That directory is removed when lkgfsd stops, but components continue to run. So the state directory has
 * `components/NAME.process`: which process has read which generation in which boot, without its command
 * line.
 *
 * The command line in use is that of the newest running process; else the unit's, if it was written after
 * the last process started; else that of the last process; else it is unknown.
 */
#pragma once

#include <systemd/sd-event.h>

#include <lkg/config.h>
#include <lkg/fact.h>

#define LKG_FACTS_PROCESSES_MAX 4u

/* A command line without its first word. */
struct lkg_line {
        bool known;
        struct lkg_strings words;
        uint64_t time_ns; /* wall time at which it was written */
};

/* A recognised process. */
struct lkg_tracked {
        int pid, pidfd; /* pid 0 = free slot; pidfd -EBADF = it has ended */
        uint64_t start_time;
        sd_event_source *gone; /* of the engine's loop */
        uint64_t generation;   /* the newest one that it opened; 0 = unknown */
        bool end_noted;        /* the consequences of its end have been considered */
        struct lkg_line line;
};

struct lkg_facts {
        int dirfd;    /* facts/<component> */
        int state_fd; /* borrowed; -EBADF = nothing is stored beyond the runtime directory */
        char *component;
        char version[128]; /* as printed, without the line break; "" = unknown */
        unsigned release;  /* of it: 136 is 1.36; 0 = unknown */
        struct lkg_line unit;
        /* Oldest first; ended processes are dropped, except the last. */
        struct lkg_tracked processes[LKG_FACTS_PROCESSES_MAX];
        size_t n_processes;
};

/**
 * lkg_facts_open() - create the directory of @component below @runtime_fd, and read the files there and in
 * the state directory.
 * @state_fd: borrowed for its lifetime; -EBADF = none
 *
 * Return: 0 or -errno.
 */
int lkg_facts_open(int runtime_fd, int state_fd, const char *component, struct lkg_facts **ret,
                   struct lkg_error *err);
struct lkg_facts *lkg_facts_free(struct lkg_facts *facts); /* also removes the event sources */

/**
 * lkg_facts_load() - read the supervisor's files again; unreadable ones are unknown.
 * Return: 0 or -ENOMEM.
 */
int lkg_facts_load(struct lkg_facts *facts);

/**
 * lkg_facts_started() - a recognised process opened the file: read its command line.
 * @generation: the one that it opens; 0 = unknown
 * @ret: the process, to be watched by its pidfd; borrowed until the next call
 *
 * Return: 1; 0: it is already known, or has ended; -errno.
 */
int lkg_facts_started(struct lkg_facts *facts, int pid, uint64_t start_time, uint64_t generation,
                      struct lkg_tracked **ret);

/**
 * lkg_facts_reads() - a known process reads this generation, which may be an older one.
 * Return: true if that is new.
 */
bool lkg_facts_reads(struct lkg_facts *facts, int pid, uint64_t start_time, uint64_t generation);

/**
 * lkg_facts_ended() - has the process of @t ended? Asks the kernel, because the event may not have been
 * delivered yet.
 */
bool lkg_facts_ended(const struct lkg_tracked *t);

/** lkg_facts_gone() - drop processes that have ended or are of another boot, except the last one. */
void lkg_facts_gone(struct lkg_facts *facts);

/**
 * lkg_facts_line() - the command line in use (see above); NULL = unknown. @ret_running: whether a process
 * with it is running; may be NULL
 */
const struct lkg_line *lkg_facts_line(const struct lkg_facts *facts, bool *ret_running);

/** lkg_facts_release() - `Kubernetes v1.36.3` -> 136; 0 = not the version of a component. */
unsigned lkg_facts_release(const char *text);
