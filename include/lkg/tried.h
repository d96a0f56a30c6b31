/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Judges the assigned configuration before it is followed: over today's local layers, in a track of its own.
 * The lifecycle decides what follows from the verdict.
 */
#pragma once

#include <lkg/bases.h>

enum lkg_tried { LKG_TRIED_GOOD, LKG_TRIED_BAD, LKG_TRIED_WAIT };

/** lkg_component_local() - the candidate of the local layers, whatever base is followed; NULL = not looked at yet. */
struct lkg_candidate *lkg_component_local(const struct lkg_component *c);

/**
 * lkg_component_check_guard() - may the remote base of @candidate set these fields? @report: those that it
 * may not set. Return: 0 or -errno.
 */
int lkg_component_check_guard(const struct lkg_component *c, const struct lkg_candidate *candidate,
                              struct lkg_report *report);

/**
 * lkg_component_open_assigned() - read, merge and judge the assigned configuration with today's local
 * layers.
 * @track: opened, unless the result is 1
 *
 * c->remote_findings are replaced by those of this attempt.
 * Return: 0; 1: not usable as a configuration, @err as from lkg_component_load_base(); negative: a fault.
 */
int lkg_component_open_assigned(struct lkg_component *c, const struct lkg_component_env *env,
                                struct lkg_track *track, struct lkg_error *err);

/**
 * lkg_component_blame() - is the assigned configuration at fault?
 * @track: as lkg_component_open_assigned() leaves it
 * @ret_syntax: set if it is a syntax error
 *
 * Errors in the remote document itself, or that occur only together with it, are its fault. If the local
 * layers are also invalid without it, such errors prove nothing.
 */
enum lkg_tried lkg_component_blame(const struct lkg_component *c, const struct lkg_track *track,
                                   bool *ret_syntax);

/** lkg_component_keep_findings() - the findings of a tried configuration that will not be served. */
void lkg_component_keep_findings(struct lkg_component *c, const struct lkg_candidate *candidate);
/** lkg_component_say_not_used() - add a finding: @id is assigned but not used, because of @reason. */
void lkg_component_say_not_used(struct lkg_component *c, const char *id, const char *reason);
/** lkg_component_say_switched_off() - a note if a remote configuration is assigned: it is not used. */
void lkg_component_say_switched_off(struct lkg_component *c);

/**
 * lkg_component_explain_assigned() - the assigned configuration is @bad: find its findings again. They are
 * only in memory, so a later engine needs this, and one that knows only from its content that it is bad. The
 * verdict stays.
 */
void lkg_component_explain_assigned(struct lkg_component *c, const struct lkg_component_env *env,
                                    const struct lkg_bad *bad);

/** lkg_component_try_anew() - another source was assigned, or a sync was requested: try it now. */
void lkg_component_try_anew(struct lkg_component *c);
/**
 * lkg_component_set_desired() - record what the reference means now. @waiting: why the rollout holds it
 * back; "" = it does not
 */
void lkg_component_set_desired(struct lkg_component *c, enum lkg_desired_state state, const char *fault,
                               const char *waiting);
/**
 * lkg_component_forgive() - content of @source may be used again: remove the bad mark that was made because
 * of it. "" = none, nothing to do
 */
void lkg_component_forgive(struct lkg_component *c, const char *source);
