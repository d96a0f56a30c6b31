/* SPDX-License-Identifier: Apache-2.0 */
/* What the parts of lkg_step() share: one step that is being put together. */
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

/** lkg_then() - one more effect. The caller may set its members. */
struct lkg_effect *lkg_then(struct lkg_stepping *s, enum lkg_effect_kind kind);
/** lkg_then_try() - the same for one that the list can go on without. */
void lkg_then_try(struct lkg_stepping *s, enum lkg_effect_kind kind);
void lkg_then_next(struct lkg_stepping *s, enum lkg_event_kind kind);
void lkg_then_tell(struct lkg_stepping *s, enum lkg_news news);
/** lkg_refuse_step() - the event is refused. */
void lkg_refuse_step(struct lkg_stepping *s, int result, const char *why);

/** lkg_set_mark() - the mark that this step is about. */
void lkg_set_mark(struct lkg_stepping *s, const struct lkg_config_source *source, enum lkg_bad_cause cause,
                  const char *reason);
/** lkg_then_mark() - @source becomes bad. */
void lkg_then_mark(struct lkg_stepping *s, const struct lkg_config_source *source, enum lkg_bad_cause cause,
                   const char *reason);
/** lkg_drop_bad_good() - a last known good that is marked itself: the local configuration is, from now on. Return: whether it was. */
bool lkg_drop_bad_good(struct lkg_stepping *s);
/**
 * lkg_leave_bad_document() - scope_all: roll back if what readers get is marked bad.
 * @again: also when that was done before for this reason. An engine that begins does; later ones would go round in circles
 *         where nothing else can be served.
 * Return: whether it was so.
 */
bool lkg_leave_bad_document(struct lkg_stepping *s, bool again);
/** lkg_then_roll_back() - to the last known good of s->next, because of @reason. */
void lkg_then_roll_back(struct lkg_stepping *s, enum lkg_bad_cause cause, const char *reason);
/** lkg_fall_back() - the pointers and the trial of a rollback. @generation: the one that is abandoned. */
void lkg_fall_back(struct lkg_stepping *s, const char *reason, uint64_t generation, uint64_t time_ns);
/** lkg_take_mark_back() - FAILED: all of it or nothing. If the mark stays, the next round leaves what it is about. */
void lkg_take_mark_back(struct lkg_stepping *s);
/** lkg_end_pin() - a new assignment ends the pin of a rollback, and no other hold. Return: whether there was one. */
bool lkg_end_pin(struct lkg_lifecycle *next);

bool lkg_is_good_document(const struct lkg_lifecycle *l, const char *sha256);
/** lkg_is_other_trial() - scope_all: the document on trial is another one than the served one. */
bool lkg_is_other_trial(const struct lkg_lifecycle *l, const struct lkg_lifecycle_facts *facts);

/* The events, by where they come from. */
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
