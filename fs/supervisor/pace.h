/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Decisions of the supervisor without any I/O: how long to wait before a child is started again, whether it hangs, whether its
 * work takes too long. The caller passes in the time.
 */
#pragma once

#include <lkg/base.h>

/* ---- starts ---- */

/* How fast one kind of child is started again. */
struct lkg_restart_pace {
        unsigned n_free;           /* this many early deaths in a row cause no pause */
        uint64_t first_ns, max_ns; /* the pause after them, doubled with each further one */
};

extern const struct lkg_restart_pace lkg_restart_server;  /* callers wait for it: pauses stay short */
extern const struct lkg_restart_pace lkg_restart_refused; /* file server of another build (exit 77) */
extern const struct lkg_restart_pace lkg_restart_engine;  /* and notifier */
extern const struct lkg_restart_pace lkg_restart_fatal;   /* an engine that sent FATAL while running */
extern const struct lkg_restart_pace lkg_restart_mount;   /* an aborted connection is mounted again */

/**
 * lkg_restart_pause_ns() - a child died: how long until the next start, 0 = at once.
 * @n_early: deaths in a row before it was of any use; @early: this one; false forgets them
 */
uint64_t lkg_restart_pause_ns(unsigned *n_early, const struct lkg_restart_pace *pace, bool early);

/* ---- progress ---- */

#define LKG_ALIVE_TICK_NS (500 * LKG_NSEC_PER_MSEC)
/* how long the engine may be silent before that is reported */
#define LKG_ALIVE_SILENT_NS (1 * LKG_NSEC_PER_SEC)

/* A process whose work leaves a trace: requests answered, steps, the engine's CPU time until it answers. */
struct lkg_progress {
        uint64_t seen;               /* the trace at the last check that found a new one */
        uint64_t last_ns, waited_ns; /* time of the last check, and how long nothing has changed */
};

enum lkg_progress_verdict {
        LKG_PROGRESS_NONE, /* nothing done since the last check, nothing to do, able to work: no further check is needed */
        LKG_PROGRESS_WATCH, /* check again in a tick */
        LKG_PROGRESS_STUCK, /* must be replaced */
};

/**
 * lkg_progress_look() - one check.
 * @has_work: there is work for it
 * @stopped:  by a signal or a debugger, so it could not do any work
 * @trace:    differs from the previous one if it has done something
 *
 * A check counts as two ticks at most: the checking process may have been stopped itself.
 */
enum lkg_progress_verdict lkg_progress_look(struct lkg_progress *progress, bool has_work, bool stopped,
                                            uint64_t trace, uint64_t now_ns, uint64_t limit_ns);

/* docs/specification.md 7: a request older than 2 s without a heartbeat */
#define LKG_HEARTBEAT_HUNG_NS (2 * LKG_NSEC_PER_SEC)

/**
 * lkg_heartbeat_look() - one check of a file server.
 * @served:      requests answered or parked so far
 * @waiting:     the kernel has an unread request
 * @busy:        some request was read and not answered
 * @busy_age_ns: age of the oldest such request
 *
 * A slow request while others are served is not a hang.
 */
enum lkg_progress_verdict lkg_heartbeat_look(struct lkg_progress *progress, uint64_t served, bool waiting,
                                             bool busy, uint64_t busy_age_ns, uint64_t now_ns);

/* ---- work ---- */

/*
 * The limit of CPU time for one piece of work that the engine has noted (lkg/admission.h). A typical change takes a few
 * milliseconds. CPU time and not wall time: a busy machine proves nothing about a document. What is large may take
 * longer, so that a slow machine proves nothing either: a million fields, 17 MB noted three times, take about six seconds.
 */
#define LKG_WORK_CPU_NS         (5 * LKG_NSEC_PER_SEC)
#define LKG_WORK_CPU_NS_PER_MIB (LKG_NSEC_PER_SEC / 2)
#define LKG_WORK_CPU_NS_MAX     (60 * LKG_NSEC_PER_SEC)

enum lkg_work {
        LKG_WORK_NONE, /* no work */
        LKG_WORK_GOES_ON,
        LKG_WORK_TOO_LONG, /* more CPU time than lkg_work_limit_ns() */
};

struct lkg_work_watch {
        uint64_t since_ns;     /* start of the current piece of work; 0 = none */
        uint64_t first_cpu_ns; /* CPU time of the process when this piece of work was first seen */
};

/** lkg_work_limit_ns() - the CPU time that one piece of work on @bytes of content may take. */
uint64_t lkg_work_limit_ns(uint64_t bytes);

/**
 * lkg_work_look() - one check.
 * @since_ns: from the note, 0 = no work
 * @bytes:    from the note: its content so far
 * @cpu_ns:   CPU time that the process has used so far
 *
 * The checks need not be regular: time before the first one does not count.
 */
enum lkg_work lkg_work_look(struct lkg_work_watch *watch, uint64_t since_ns, uint64_t bytes,
                            uint64_t cpu_ns);
