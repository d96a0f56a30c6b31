/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Does the engine answer? Question and answer, as the file server's counter is looked at (restart.h), without any I/O: time
 * is a number that the caller passes in.
 */
#pragma once

#include <lkg/base.h>

#define LKG_ALIVE_TICK_NS   (500 * LKG_NSEC_PER_MSEC)
#define LKG_ALIVE_SILENT_NS (1 * LKG_NSEC_PER_SEC) /* how long it may be silent before that is reported */

enum lkg_alive_verdict {
        LKG_ALIVE_ASK,    /* nothing is asked: ask now */
        LKG_ALIVE_WAIT,   /* asked, and it is too early to say anything */
        LKG_ALIVE_WORKS,  /* asked, and it is in the middle of work that goes on */
        LKG_ALIVE_SILENT, /* no answer for LKG_ALIVE_SILENT_NS */
        LKG_ALIVE_HUNG,   /* no answer for the whole limit: must be replaced */
};

struct lkg_alive {
        bool asked;
        uint64_t ticket;             /* of the question */
        uint64_t last_ns, waited_ns; /* the last look, and how long the answer has been waited for */
        uint64_t asked_wall_ns;      /* when it was asked, for people */
        uint64_t asked_ns;           /* the same, the caller's clock */
};

/** lkg_alive_asked() - a question was sent at @now_ns. Return: its ticket. */
uint64_t lkg_alive_asked(struct lkg_alive *alive, uint64_t now_ns, uint64_t wall_ns);
/** lkg_alive_answered() - Return: whether @ticket is the question that waits. Another one is of an engine before. */
bool lkg_alive_answered(struct lkg_alive *alive, uint64_t ticket);
/** lkg_alive_forget() - the process that was asked has ended. */
void lkg_alive_forget(struct lkg_alive *alive);
/**
 * lkg_alive_tick() - one check.
 * @limit_ns: how long a process that does not work may be silent
 * @works:    it is doing work that it has noted, and that makes progress
 *
 * One check counts as two ticks at most: the checking process may have been stopped itself, and the answer may have come long ago.
 * Time does not count while it works.
 */
enum lkg_alive_verdict lkg_alive_tick(struct lkg_alive *alive, uint64_t now_ns, uint64_t limit_ns,
                                      bool works);

/* One that is not asked anything, but has work, and whose work leaves a trace: the notifier. */
struct lkg_progress {
        uint64_t seen;               /* the trace at the last look that found another one */
        uint64_t last_ns, waited_ns; /* the last look, and how long nothing has moved */
};

enum lkg_progress_verdict {
        LKG_PROGRESS_NONE,  /* nothing to do, and it could do it: no further look is needed */
        LKG_PROGRESS_WATCH, /* look again in a tick */
        LKG_PROGRESS_STUCK, /* must be replaced */
};

/**
 * lkg_progress_look() - one look.
 * @has_work: something waits for it
 * @stopped:  by a signal or a debugger, so it would do nothing if there were something
 * @trace:    differs from the one before when it has done something
 *
 * As with lkg_alive_tick(), a look counts as two ticks at most.
 */
enum lkg_progress_verdict lkg_progress_look(struct lkg_progress *progress, bool has_work, bool stopped,
                                            uint64_t trace, uint64_t now_ns, uint64_t limit_ns);
