/* SPDX-License-Identifier: Apache-2.0 */
/* Facts about the process of a component, and judging on a machine where no engine runs. */
#pragma once

#include <systemd/sd-event.h>

#include <lkg/config.h>
#include <lkg/messages.h>
#include <lkg/objects.h>
#include <lkg/schema.h>
#include <lkg/stack.h>

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

/** lkg_facts_load() - read the supervisor's files again; unreadable ones are unknown. */
void lkg_facts_load(struct lkg_facts *facts);

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

/* ---- offline ---- */

/*
 * The layers of one component of this node, merged and judged as the engine would do it, without an engine:
 * `lkgfsd -f`, and the tool's verbs that judge this node.
 *
 * Nothing is written. What an engine has stored (the checkpoint that is followed, the component's version and command line) is
 * used if its directories are given; the caller opens them read-only.
 */

/* What to judge. Everything is borrowed. */
struct lkg_offline_place {
        const struct lkg_config *config;
        const struct lkg_config_component *component;
        int source_fd;
        const char *source_path;
        int runtime_fd, state_fd; /* -EBADF: what they hold is not known */
        /* Instead of what is known about the component: */
        unsigned release; /* 0 = nothing */
        unsigned runs;    /* the release that runs, if @release is a planned one: 0 = what is known */
        const char *const *flags;
        size_t n_flags; /* 0 = nothing */
        bool lint_all;  /* also say what could be left out */
};

struct lkg_offline {
        struct lkg_stack *stack;
        struct lkg_judge *judge;
        struct lkg_remote_base *remote; /* NULL = the base is a file, or missing */
        struct lkg_candidate *candidate;
        /* of the component that runs here; the judge borrows its command line. NULL = unknown */
        struct lkg_facts *facts;
};

/**
 * lkg_offline_judge() - read, merge and judge the layers once.
 * @ret:    caller releases with lkg_offline_deinit()
 * @report: findings that are not of the candidate: damage of stored state, fields that the guard forbids
 *
 * Return: 0, whatever the verdict is; -errno.
 */
int lkg_offline_judge(const struct lkg_offline_place *place, struct lkg_offline *ret,
                      struct lkg_report *report, struct lkg_error *err);
void lkg_offline_deinit(struct lkg_offline *offline);

/**
 * lkg_offline_check() - judge every component, up to the first one that could not be served.
 * @print: gets the findings of each
 *
 * Return: 0; 1: one could not be served; -errno.
 */
int lkg_offline_check(const struct lkg_config *config, int source_fd, const char *source_path,
                      void (*print)(const struct lkg_report *report), struct lkg_error *err);
