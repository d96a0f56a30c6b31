/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Judging what is assigned before it is followed: over today's local layers, in a track of its own. What follows from the verdict
 * is the lifecycle's.
 */
#pragma once

#include <lkg/bases.h>

enum lkg_tried { LKG_TRIED_GOOD, LKG_TRIED_BAD, LKG_TRIED_WAIT };

/** lkg_component_local() - the candidate of the local layers, whatever base is followed; NULL = not looked at yet. */
struct lkg_candidate *lkg_component_local(const struct lkg_component *c);

/** lkg_component_check_guard() - may the remote base of @candidate set what it sets? @report: what it may not. Return: 0 or -errno. */
int lkg_component_check_guard(const struct lkg_component *c, const struct lkg_candidate *candidate,
                              struct lkg_report *report);

/**
 * lkg_component_open_assigned() - the assigned configuration with today's local layers.
 * @track: opened, unless it is not a configuration
 *
 * c->remote_findings are those of this attempt. Return: 0; 1: not a configuration at all, @err as lkg_component_load_base() has it;
 * negative: a fault.
 */
int lkg_component_open_assigned(struct lkg_component *c, const struct lkg_component_env *env,
                                struct lkg_track *track, struct lkg_error *err);

/**
 * lkg_component_blame() - whose fault is it?
 * @track:      as lkg_component_open_assigned() has it
 * @ret_syntax: set when it is a syntax error
 *
 * Errors in the remote document itself, or that occur only together with it, are the remote document's. If the local layers are
 * also wrong without it, that proves nothing.
 */
enum lkg_tried lkg_component_blame(const struct lkg_component *c, const struct lkg_track *track,
                                   bool *ret_syntax);

/** lkg_component_keep_findings() - the findings of a tried configuration that will not be served. */
void lkg_component_keep_findings(struct lkg_component *c, const struct lkg_candidate *candidate);
/** lkg_component_say_not_used() - a finding: @id is assigned and not used, for this @reason. */
void lkg_component_say_not_used(struct lkg_component *c, const char *id, const char *reason);

/**
 * lkg_component_explain_assigned() - what is assigned is @bad: find its findings again, which are in memory only. A later engine,
 * or one that knows it as bad by its content alone, does that; the verdict stays.
 */
void lkg_component_explain_assigned(struct lkg_component *c, const struct lkg_component_env *env,
                                    const struct lkg_bad *bad);

/** lkg_component_try_anew() - another source is assigned, or a sync was asked for: try it now. */
void lkg_component_try_anew(struct lkg_component *c);
/** lkg_component_set_desired() - what the reference means now. @waiting: why the rollout holds it back; "" = it does not */
void lkg_component_set_desired(struct lkg_component *c, enum lkg_desired_state state, const char *fault,
                               const char *waiting);
/** lkg_component_forgive() - content of @source may be used again: a mark that was made because of it is removed. "" = of none */
void lkg_component_forgive(struct lkg_component *c, const char *source);
