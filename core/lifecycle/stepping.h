/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the parts of lkg_step(): the step being built. */
#pragma once

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <lkg/lifecycle.h>

struct lkg_stepping {
        const struct lkg_lifecycle *l;
        const struct lkg_lifecycle_facts *facts;
        const struct lkg_event *event;
        uint64_t now_ns;
        struct lkg_lifecycle *next; /* of @step */
        struct lkg_step *step;
};

/** lkg_then() - append an effect. The caller may set its members. */
struct lkg_effect *lkg_then(struct lkg_stepping *s, enum lkg_effect_kind kind);
/** lkg_then_try() - append an effect whose failure does not end the list. */
void lkg_then_try(struct lkg_stepping *s, enum lkg_effect_kind kind);
/** lkg_then_point() - the next pointers are durable, then they count. */
void lkg_then_point(struct lkg_stepping *s);
void lkg_then_next(struct lkg_stepping *s, enum lkg_event_kind kind);
void lkg_then_tell(struct lkg_stepping *s, enum lkg_news news);
/** lkg_refuse_step() - refuse the event. */
void lkg_refuse_step(struct lkg_stepping *s, int result, const char *why);

/** lkg_set_mark() - set the mark of this step, without an effect. */
void lkg_set_mark(struct lkg_stepping *s, const struct lkg_config_source *source, enum lkg_bad_cause cause,
                  const char *reason);
/** lkg_then_mark() - mark @source bad. */
void lkg_then_mark(struct lkg_stepping *s, const struct lkg_config_source *source, enum lkg_bad_cause cause,
                   const char *reason);
/** lkg_drop_bad_good() - if the last known good is marked bad, the local configuration replaces it. Return: whether it was. */
bool lkg_drop_bad_good(struct lkg_stepping *s);
/**
 * lkg_leave_bad_document() - scope_all: roll back if the served document is marked bad.
 * @again: even if the last rollback had the same reason. Only for an engine that starts: otherwise rollbacks would repeat
 *         without end if nothing else can be served.
 * Return: whether it rolled back.
 */
bool lkg_leave_bad_document(struct lkg_stepping *s, bool again);
/** lkg_then_roll_back() - roll back to the last known good of s->next, because of @reason. */
void lkg_then_roll_back(struct lkg_stepping *s, enum lkg_bad_cause cause, const char *reason);
/** lkg_fall_back() - update pointers and trial for a rollback. @generation: the abandoned one */
void lkg_fall_back(struct lkg_stepping *s, const char *reason, uint64_t generation, uint64_t time_ns);
/** lkg_take_mark_back() - FAILED: remove the mark that the event made. If it stays, the next round abandons the source. */
void lkg_take_mark_back(struct lkg_stepping *s);
/** lkg_end_pin() - end the pin of a rollback, and no other hold. Return: whether there was one. */
bool lkg_end_pin(struct lkg_lifecycle *next);

/** lkg_may_abandon() - would a rollback abandon a remote configuration? */
bool lkg_may_abandon(const struct lkg_lifecycle *l, const struct lkg_lifecycle_facts *facts);
/** lkg_is_other_trial() - scope_all: is the document on trial not the served one? */
bool lkg_is_other_trial(const struct lkg_lifecycle *l, const struct lkg_lifecycle_facts *facts);

/* Handlers of events, grouped by file. */
void lkg_on_assigned(struct lkg_stepping *s);
void lkg_on_node(struct lkg_stepping *s);
void lkg_on_reset(struct lkg_stepping *s);
void lkg_on_tried_good(struct lkg_stepping *s);
void lkg_on_tried_bad(struct lkg_stepping *s);
void lkg_on_forbidden(struct lkg_stepping *s);
void lkg_on_lost(struct lkg_stepping *s);
void lkg_on_settle(struct lkg_stepping *s);
void lkg_on_merged(struct lkg_stepping *s);
void lkg_on_mark(struct lkg_stepping *s);
void lkg_on_forgiven(struct lkg_stepping *s);

void lkg_on_resumed(struct lkg_stepping *s);
void lkg_on_layers(struct lkg_stepping *s);
void lkg_on_served(struct lkg_stepping *s);
void lkg_on_begin(struct lkg_stepping *s);
void lkg_on_passed(struct lkg_stepping *s);
void lkg_on_promote(struct lkg_stepping *s);
void lkg_on_start(struct lkg_stepping *s);
void lkg_on_start_failed(struct lkg_stepping *s);
void lkg_on_alive(struct lkg_stepping *s);
void lkg_on_health(struct lkg_stepping *s);
void lkg_on_trial_due(struct lkg_stepping *s);

void lkg_on_hold(struct lkg_stepping *s);
void lkg_on_rollback_good(struct lkg_stepping *s);
void lkg_on_finish(struct lkg_stepping *s);
void lkg_on_pinned(struct lkg_stepping *s);
void lkg_on_finished(struct lkg_stepping *s);
void lkg_on_publishing(struct lkg_stepping *s);
void lkg_on_unpublished(struct lkg_stepping *s);
void lkg_on_hold_lost(struct lkg_stepping *s);
void lkg_on_pin(struct lkg_stepping *s);
void lkg_on_try_due(struct lkg_stepping *s);
