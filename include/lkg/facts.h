/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Facts about the component itself: its release and its command line.
 *
 * Two sources. The supervisor writes below `facts/<component>/` of the runtime directory the facts that need a program or the
 * service manager (the engine may use neither):
 *
 *     version      line 1: what `EXE --version` printed, "" = nothing usable; line 2: which file was asked
 *                  (`refused`: it was not run, because others than root could replace it)
 *     exec-start   the words of the unit's ExecStart behind the first, each ended by a NUL
 *
 * The engine itself reads /proc/PID/cmdline of a recognised process and keeps it as `process` ("PID START-TIME GENERATION" and
 * the words, each ended by a NUL), so that its successor knows it too. All of it may hold credentials: the directory is root's
 * alone, and nothing of a command line goes into a message except the names of flags.
 *
 * That directory ends with lkgfsd, and components go on without it. So the state directory has `components/NAME.process`: which
 * process has read which generation in which boot, and nothing of its command line.
 *
 * Which line counts: that of the newest process that runs; else the unit's when it was written after the last process
 * began; else that of the last process; else none is known.
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
        uint64_t time_ns; /* wall time at which it was written down */
};

/* A recognised process. */
struct lkg_tracked {
        int pid, pidfd; /* pid 0 = free slot; pidfd -EBADF = it is gone */
        uint64_t start_time;
        sd_event_source *gone; /* of the engine's loop */
        uint64_t generation;   /* newest that it opened; 0 = unknown */
        bool end_noted;        /* what its end means was looked at */
        struct lkg_line line;
};

struct lkg_facts {
        int dirfd;    /* facts/<component> */
        int state_fd; /* borrowed; -EBADF = nothing is kept beyond the runtime directory */
        char *component;
        char version[128]; /* as printed, without the line break; "" = not known */
        unsigned release;  /* of it: 136 is 1.36; 0 = unknown */
        struct lkg_line unit;
        /* Oldest first; those that are gone are forgotten, but for the last one. */
        struct lkg_tracked processes[LKG_FACTS_PROCESSES_MAX];
        size_t n_processes;
};

/**
 * lkg_facts_open() - make the directory of @component below @runtime_fd, read the files there and in the state directory.
 * @state_fd: kept, outlives it; -EBADF = none
 *
 * Return: 0 or -errno.
 */
int lkg_facts_open(int runtime_fd, int state_fd, const char *component, struct lkg_facts **ret,
                   struct lkg_error *err);
struct lkg_facts *lkg_facts_free(struct lkg_facts *facts); /* takes the event sources with it */

/** lkg_facts_load() - read the supervisor's files again; what cannot be read is not known. Return: 0 or -ENOMEM. */
int lkg_facts_load(struct lkg_facts *facts);

/**
 * lkg_facts_started() - a recognised process opened the file: read its command line.
 * @generation: which one it opens; 0 = not known
 * @ret: the process, to be watched through its pidfd; borrowed until the next call
 *
 * Return: 1; 0 when it is known already, or gone again; -errno.
 */
int lkg_facts_started(struct lkg_facts *facts, int pid, uint64_t start_time, uint64_t generation,
                      struct lkg_tracked **ret);

/** lkg_facts_reads() - a known process reads this generation, which may be an older one. Return: true when that is news. */
bool lkg_facts_reads(struct lkg_facts *facts, int pid, uint64_t start_time, uint64_t generation);

/** lkg_facts_ended() - has the process of @t ended? Asks the kernel; an event about it may still be under way. */
bool lkg_facts_ended(const struct lkg_tracked *t);

/** lkg_facts_gone() - drop the processes that have ended (or never were on this boot), but for the last one. */
void lkg_facts_gone(struct lkg_facts *facts);

/** lkg_facts_line() - the line that counts, NULL = not known. @ret_running: a process with it runs; may be NULL. */
const struct lkg_line *lkg_facts_line(const struct lkg_facts *facts, bool *ret_running);

/** lkg_facts_release() - `Kubernetes v1.36.3` -> 136; 0 = not the version of a component. */
unsigned lkg_facts_release(const char *text);
