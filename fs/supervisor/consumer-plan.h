/* SPDX-License-Identifier: Apache-2.0 */
/*
 * When a component is restarted: the plan of one component, without any I/O. The caller passes in the time
 * (CLOCK_BOOTTIME, ns).
 *
 * A request becomes the plan; another one while it is planned changes it: the newest generation wins, the
 * earlier time is kept. There is a minimum interval between two restarts and a limit per hour. A restart
 * that fails is planned again, LKG_PLAN_RETRIES_MAX times; a new request starts a new count. A failed
 * restart also counts towards the limits: it may have happened.
 */
#pragma once

#include <lkg/text.h>

#define LKG_PLAN_RETRIES_MAX 3u
#define LKG_PLAN_ASKED_MAX   3600u /* restarts per hour: the largest value that the configuration accepts */
#define LKG_PLAN_HOUR_NS     (3600 * LKG_NSEC_PER_SEC)
#define LKG_PLAN_NEVER       UINT64_MAX

struct lkg_plan_limits {
        uint64_t min_interval_ns;
        uint32_t max_per_hour; /* 0 means 1 */
};

struct lkg_plan {
        uint64_t generation;    /* that is to be read by a restart; 0 = none is planned */
        uint64_t not_before_ns; /* not earlier than this, and within the limits */
        uint64_t n_retries;     /* how often it has been tried so far */
        /*
         * Of the restart that was requested and whose result is not known yet; 0 = none. It stays planned meanwhile, with one try more:
         * so it is repeated unless it succeeds, also by a successor.
         */
        uint64_t running_generation;

        size_t n_asked; /* oldest first; only those that still matter for a limit */
        uint64_t asked_ns[LKG_PLAN_ASKED_MAX];
};

/** lkg_plan_request() - plan a restart. @delay_ns: the jitter of a remote change, else 0. */
void lkg_plan_request(struct lkg_plan *plan, uint64_t generation, uint64_t delay_ns, uint64_t now_ns);
/** lkg_plan_withdraw() - a planned restart is no longer needed; a running one is not repeated if it fails. */
void lkg_plan_withdraw(struct lkg_plan *plan);
/** lkg_plan_due() - when to restart it, maybe in the past; LKG_PLAN_NEVER if nothing is planned or one is running. */
uint64_t lkg_plan_due(const struct lkg_plan *plan, const struct lkg_plan_limits *limits);
/** lkg_plan_begin() - the planned restart is requested now. Return: its generation. */
uint64_t lkg_plan_begin(struct lkg_plan *plan, uint64_t now_ns);
/** lkg_plan_end() - the running restart has finished or failed, or nobody knows. Return: whether one is planned. */
bool lkg_plan_end(struct lkg_plan *plan, bool done);

/** lkg_plan_jitter_ns() - always the same for the same two names, spread evenly over [0, @jitter_ms). */
uint64_t lkg_plan_jitter_ns(const char *node, const char *component, uint32_t jitter_ms);

/** lkg_plan_format() - write `key=value` lines; the times are valid for @boot_id only. Failure is sticky in @buf. */
void lkg_plan_format(const struct lkg_plan *plan, const char *boot_id, struct lkg_buf *buf);
/**
 * lkg_plan_parse() - read what lkg_plan_format() wrote; @ret is empty if that was in another boot, because
 * the component has been started since and has read the current file.
 *
 * A time later than @now_ns plus @jitter_ns is impossible and is reduced to that; unknown lines are skipped.
 * @ret is always written.
 */
void lkg_plan_parse(const char *text, const char *boot_id, uint64_t now_ns, uint64_t jitter_ns,
                    struct lkg_plan *ret);

#define LKG_RESTARTS_LINES_MAX 20u
/** lkg_restarts_append() - the last lines of @old (may be NULL) and @line, at most LKG_RESTARTS_LINES_MAX, to @buf. */
void lkg_restarts_append(const char *old, const char *line, struct lkg_buf *buf);
