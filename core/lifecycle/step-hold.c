/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Hold, try and rollback by an operator (docs/specification.md 4.6, 4.7). All changes of a command are in one record, so they
 * are stored completely or not at all. A command of several durable steps records there what is left to do.
 */
#include "stepping.h"

/* ---- whose hold, and for which assignment ---- */

/* A hold or try that continues keeps its original author. */
static void note_holder(const struct lkg_stepping *s)
{
        const struct lkg_hold *before = &s->l->record.hold, *hold = &s->next->record.hold;
        struct lkg_component_state *record = &s->next->record;
        const struct lkg_held_by *by = s->event->by;

        if (hold->try_phase == LKG_TRY_NONE)
                record->tried_by = (struct lkg_held_by){ 0 };
        else if (by && before->try_phase == LKG_TRY_NONE)
                record->tried_by = *by;
        if (hold->mode == LKG_HOLD_FREE)
                record->held_by = (struct lkg_held_by){ 0 };
        else if (by && (hold->mode != before->mode || hold->generation != before->generation))
                record->held_by = *by;
}

/* Remember what was assigned when a rollback pinned a generation: a new assignment ends the pin. */
static void note_pin(const struct lkg_stepping *s)
{
        struct lkg_component_state *record = &s->next->record;

        if (record->hold.mode == LKG_HOLD_ROLLBACK)
                lkg_lifecycle_say_assigned(&s->next->pointers, record->pinned_for);
        else
                *record->pinned_for = '\0';
}

static struct lkg_unfinished plan(const struct lkg_stepping *s, enum lkg_unfinished_kind kind)
{
        struct lkg_unfinished plan = { .kind = kind };

        if (!lkg_may_abandon(s->l, s->facts))
                return plan;
        lkg_config_source_id(&s->l->pointers.active, plan.source);
        memcpy(plan.source_sha256, s->l->pointers.active.sha256, sizeof(plan.source_sha256));
        return plan;
}

/* ---- commands ---- */

void lkg_on_hold(struct lkg_stepping *s)
{
        const struct lkg_event *event = s->event;
        struct lkg_component_state *record = &s->next->record;
        struct lkg_hold_step step = lkg_hold_command(s->l->record.hold, event->command, event->argument,
                                                     event->known, s->facts->active);
        uint64_t needed = step.next.generation ? step.next.generation : step.next.try_previous;
        struct lkg_unfinished todo = { 0 };

        if (step.result < 0) {
                lkg_refuse_step(s, step.result, step.why);
                return;
        }
        if (event->command == LKG_CMD_ROLLBACK && event->other)
                todo = plan(s, LKG_UNFINISHED_ABANDON);
        if (!*todo.source)
                todo = (struct lkg_unfinished){ 0 };
        record->hold = step.next;
        if (needed && s->facts->active == needed)
                record->last_good = needed; /* durable now: the next engine starts with it anyway */
        note_holder(s);
        note_pin(s);
        record->unfinished = todo;
        record->ticket = event->ticket;
        if (todo.kind)
                lkg_then_try(s, LKG_EFFECT_KEEP_RECORD);
        if (needed) /* a generation must be in the history before the record names it */
                lkg_then(s, LKG_EFFECT_KEEP_GENERATION)->generation = needed;
        (void)lkg_then(s, LKG_EFFECT_SAVE_RECORD);
        (void)lkg_then(s, LKG_EFFECT_ADOPT);
        if (todo.kind)
                lkg_then_next(s, LKG_EVENT_FINISH);
}

/* It gets its number when it is published, so it can only be pinned afterwards. The plan makes one command of both steps. */
void lkg_on_rollback_good(struct lkg_stepping *s)
{
        struct lkg_component_state *record = &s->next->record;

        if (!s->event->servable) {
                lkg_refuse_step(s, -EBUSY, "there is no last known good that could be served");
                return;
        }
        record->unfinished = plan(s, LKG_UNFINISHED_GOOD);
        record->unfinished.held = record->hold.generation;
        record->unfinished.by = *s->event->by;
        record->ticket = s->event->ticket;
        lkg_then_try(s, LKG_EFFECT_KEEP_RECORD);
        (void)lkg_then(s, LKG_EFFECT_SAVE_RECORD);
        (void)lkg_then(s, LKG_EFFECT_ADOPT);
        lkg_then_next(s, LKG_EVENT_FINISH);
}

/* Is the source that the command abandons still active? */
static bool must_abandon(const struct lkg_stepping *s)
{
        const struct lkg_unfinished *plan = &s->l->record.unfinished;
        struct lkg_config_source source;

        lkg_config_source_recorded(plan->source, plan->source_sha256, &source);
        return lkg_may_abandon(s->l, s->facts) && lkg_config_source_matches(&s->l->pointers.active, &source);
}

static void abandon(struct lkg_stepping *s)
{
        const struct lkg_config_source *active = &s->l->pointers.active;
        char reason[LKG_REASON_MAX];

        (void)snprintf(reason, sizeof(reason), "operator request (UID: %s)", active->uid);
        if (!lkg_bad_find(s->facts->bad, active))
                lkg_then_mark(s, active, LKG_BAD_OPERATOR, reason);
        lkg_then_roll_back(s, LKG_BAD_OPERATOR, reason);
}

static void pin_good(struct lkg_stepping *s)
{
        struct lkg_hold *hold = &s->next->record.hold;
        struct lkg_effect *effect;
        enum lkg_hold_mode mode = hold->mode == LKG_HOLD_ON ? LKG_HOLD_ON : LKG_HOLD_ROLLBACK;

        if (hold->mode != LKG_HOLD_FREE) { /* otherwise the current pin would stay */
                *hold = (struct lkg_hold){ 0 };
                (void)lkg_then(s, LKG_EFFECT_ADOPT);
        }
        effect = lkg_then(s, LKG_EFFECT_SERVE_GOOD);
        effect->mode = mode;
        effect->same = s->facts->scope_all || s->facts->stores_good;
}

/* What it was to serve has gone since. The command is refused if it is repeated, and a mark would be the half of it. */
static void drop_plan(struct lkg_stepping *s)
{
        s->next->record.ticket = 0;
        lkg_on_finished(s);
}

void lkg_on_finish(struct lkg_stepping *s)
{
        enum lkg_unfinished_kind kind = s->l->record.unfinished.kind;

        if (kind == LKG_UNFINISHED_NONE)
                return;
        if (kind == LKG_UNFINISHED_GOOD && !s->event->servable) {
                drop_plan(s);
        } else if (must_abandon(s)) {
                abandon(s);
                lkg_then_next(s, LKG_EVENT_FINISH); /* by then it is no longer active */
        } else if (kind == LKG_UNFINISHED_GOOD) {
                pin_good(s);
        } else {
                lkg_then_next(s, LKG_EVENT_FINISHED);
        }
}

void lkg_on_pinned(struct lkg_stepping *s)
{
        struct lkg_component_state *record = &s->next->record;

        record->hold = (struct lkg_hold){ .mode = s->event->mode, .generation = s->facts->active };
        record->held_by = record->unfinished.by;
        note_pin(s);
        (void)lkg_then(s, LKG_EFFECT_ADOPT);
        lkg_then(s, LKG_EFFECT_KEEP_GENERATION)->generation = s->facts->active;
        lkg_then_next(s, LKG_EVENT_FINISHED);
}

/* The plan is no longer needed. If that cannot be stored, carrying out the plan on disk again gives the same result. */
void lkg_on_finished(struct lkg_stepping *s)
{
        s->next->record.unfinished = (struct lkg_unfinished){ 0 };
        (void)lkg_then(s, LKG_EFFECT_ADOPT);
        lkg_then_try(s, LKG_EFFECT_SAVE_RECORD);
        lkg_then_try(s, LKG_EFFECT_FORGET_RECORD);
}

/* ---- a try ---- */

/* Durable before the tried generation is visible: otherwise it would stay for ever after a restart. */
void lkg_on_publishing(struct lkg_stepping *s)
{
        const struct lkg_hold next = lkg_hold_published(s->l->record.hold, s->facts->active, s->now_ns);

        if (next.try_phase == s->l->record.hold.try_phase)
                return;
        s->next->record.hold = next;
        lkg_then(s, LKG_EFFECT_KEEP_GENERATION)->generation = next.try_previous;
        (void)lkg_then(s, LKG_EFFECT_SAVE_RECORD);
        (void)lkg_then(s, LKG_EFFECT_ADOPT);
}

void lkg_on_unpublished(struct lkg_stepping *s)
{
        if (s->l->record.hold.try_phase == s->event->hold->try_phase)
                return;
        s->next->record.hold = *s->event->hold;
        (void)lkg_then(s, LKG_EFFECT_ADOPT);
}

/* If this cannot be stored, the old record expires again at the next start, with the same result. */
void lkg_on_try_due(struct lkg_stepping *s)
{
        struct lkg_component_state *record = &s->next->record;
        const struct lkg_hold next = lkg_hold_tick(record->hold, s->now_ns);

        if (next.mode == record->hold.mode && next.try_phase == record->hold.try_phase)
                return;
        record->hold = next;
        record->held_by = record->tried_by;
        if (!record->tried_by.time_ns) /* started by an earlier version */
                record->held_by = (struct lkg_held_by){ .program = "try" };
        record->held_by.time_ns = s->event->wall_ns;
        record->tried_by = (struct lkg_held_by){ 0 };
        lkg_then_tell(s, LKG_NEWS_TRY_EXPIRED);
        (void)lkg_then(s, LKG_EFFECT_ADOPT);
        lkg_then_try(s, LKG_EFFECT_SAVE_RECORD);
}

/* ---- a pin ends without a command ---- */

/* The hold was acknowledged, so its loss is shown until the next command. */
void lkg_on_hold_lost(struct lkg_stepping *s)
{
        struct lkg_component_state *record = &s->next->record;

        record->hold = (struct lkg_hold){ 0 };
        record->held_by = (struct lkg_held_by){ 0 };
        (void)snprintf(record->lost, sizeof(record->lost), "%s", s->event->reason);
        (void)lkg_then(s, LKG_EFFECT_ADOPT);
        lkg_then_try(s, LKG_EFFECT_SAVE_RECORD);
}

void lkg_on_pin(struct lkg_stepping *s)
{
        struct lkg_component_state *record = &s->next->record;
        char assigned[LKG_SOURCE_ID_MAX + 1];
        bool ended;

        lkg_lifecycle_say_assigned(&s->l->pointers, assigned);
        if (record->hold.mode != LKG_HOLD_ROLLBACK || strcmp(record->pinned_for, assigned) == 0)
                return;
        /* 0: the pointers are lost and say nothing about the pin */
        ended = *record->pinned_for && s->l->pointers.assigned_ns;
        if (ended)
                (void)lkg_end_pin(s->next);
        else
                (void)strcpy(record->pinned_for, assigned);
        (void)lkg_then(s, LKG_EFFECT_ADOPT);
        if (ended)
                lkg_then_try(s, LKG_EFFECT_SAVE_RECORD);
}
