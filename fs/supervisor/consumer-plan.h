/* SPDX-License-Identifier: Apache-2.0 */
/*
 * When a component is restarted: the plan of one component, without any I/O. Time is a number
 * (CLOCK_BOOTTIME, ns) that the caller passes in.
 *
 * A request becomes the plan; a further one while it is planned changes it: the newest generation wins, the earlier time
 * stays. There is a minimal interval between two restarts and a limit per hour. A restart that fails is planned again,
 * LKG_PLAN_RETRIES_MAX times; a new request starts a new count. A failed restart counts for the limits too: it may have
 * happened.
 */
#pragma once

#include <lkg/buf.h>

#define LKG_PLAN_RETRIES_MAX 3u
#define LKG_PLAN_ASKED_MAX   3600u /* restarts in an hour: the largest value that the configuration takes */
#define LKG_PLAN_HOUR_NS     (3600 * LKG_NSEC_PER_SEC)
#define LKG_PLAN_NEVER       UINT64_MAX

struct lkg_plan_limits {
        uint64_t min_interval_ns;
        uint32_t max_per_hour; /* 0 is taken as 1 */
};

struct lkg_plan {
        bool wanted;            /* a restart is planned ... */
        uint64_t generation;    /* ... so that this one is read */
        uint64_t not_before_ns; /* ... not earlier than that, and not against the limits */
        unsigned n_retries;     /* how often it has failed already */

        bool running;                /* one was asked for and its result is not known yet ... */
        uint64_t running_generation; /* ... for this generation */
        unsigned running_retries;    /* ... after this many failures; UINT_MAX: not repeated */

        size_t n_asked; /* oldest first; only those that a limit may still need */
        uint64_t asked_ns[LKG_PLAN_ASKED_MAX];
};

/** lkg_plan_request() - restart it. @delay_ns: the jitter of a remote change, else 0. */
void lkg_plan_request(struct lkg_plan *plan, uint64_t generation, uint64_t delay_ns, uint64_t now_ns);
/**
 * lkg_plan_withdraw() - a planned restart is not needed any more; a running one is not repeated if it fails.
 */
void lkg_plan_withdraw(struct lkg_plan *plan);
/**
 * lkg_plan_due() - when to restart it, LKG_PLAN_NEVER when nothing is planned or one is running. May lie in
 * the past.
 */
uint64_t lkg_plan_due(const struct lkg_plan *plan, const struct lkg_plan_limits *limits);
/** lkg_plan_begin() - the planned restart is asked for now. Return: its generation. */
uint64_t lkg_plan_begin(struct lkg_plan *plan, uint64_t now_ns);
/** lkg_plan_end() - the running one was done, or failed. Return: whether it is planned again. */
bool lkg_plan_end(struct lkg_plan *plan, bool done);
/**
 * lkg_plan_interrupted() - the process that knew the result of the running one is gone: as if it had failed.
 */
bool lkg_plan_interrupted(struct lkg_plan *plan);

/**
 * lkg_plan_jitter_ns() - how long this node waits before it restarts @component for a remote change.
 *
 * Always the same for the same two names, spread evenly over [0, @jitter_ms). Return: ns.
 */
uint64_t lkg_plan_jitter_ns(const char *node, const char *component, uint32_t jitter_ms);

/** lkg_plan_format() - as `key=value` lines; the times hold for @boot_id only. Failure is sticky in @buf. */
void lkg_plan_format(const struct lkg_plan *plan, const char *boot_id, struct lkg_buf *buf);
/**
 * lkg_plan_parse() - what lkg_plan_format() wrote; @ret is empty when it was on another boot, because then
 * the component has started since and has read what there is.
 *
 * A time that lies after @now_ns plus @jitter_ns cannot be true and is cut to that; lines that are not
 * understood are skipped. @ret is written in any case.
 */
void lkg_plan_parse(const char *text, const char *boot_id, uint64_t now_ns, uint64_t jitter_ns,
                    struct lkg_plan *ret);

#define LKG_RESTARTS_LINES_MAX 20u
/**
 * lkg_restarts_append() - the last lines of @old (may be NULL) and @line, at most LKG_RESTARTS_LINES_MAX,
 * into @buf.
 */
void lkg_restarts_append(const char *old, const char *line, struct lkg_buf *buf);
