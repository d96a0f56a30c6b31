/* SPDX-License-Identifier: Apache-2.0 */
/* lkg_step(): the handler of each event, and what follows from a failed effect. */
#include "step-parts.h"

/* ---- a failed effect ---- */

/* A mark that is older than the command stays, and the next round abandons its source. */
static void failed_mark(struct lkg_stepping *s)
{
        lkg_take_mark_back(s);
        if (s->event->known && s->event->failed != LKG_EFFECT_MARK_BAD)
                s->step->accepted = true;
}

/* Nothing is durable yet, except the copy of the record that is kept for this case. */
static void failed_command(struct lkg_stepping *s)
{
        if (s->event->failed == LKG_EFFECT_SAVE_RECORD || s->event->failed == LKG_EFFECT_KEEP_GENERATION)
                lkg_then_try(s, LKG_EFFECT_FORGET_RECORD);
}

/* The first steps of a command failed while its caller waits: undo all of them, unless the new configuration is already served. */
static void failed_finish(struct lkg_stepping *s)
{
        const struct lkg_event *event = s->event;
        bool for_ever = event->code == -EBUSY || event->code == -ENOENT; /* not a disk error */

        if (!event->by_command) { /* the plan stands, and with it the mark */
                (void)lkg_then(s, LKG_EFFECT_RETRY);
                return;
        }
        /* With its mark it is abandoned in any case, so the command counts. */
        if (event->of == LKG_EVENT_PINNED || event->failed == LKG_EFFECT_FORGIVE ||
            (event->failed == LKG_EFFECT_SERVE_GOOD && !for_ever)) {
                s->step->accepted = true;
                (void)lkg_then(s, LKG_EFFECT_RETRY);
                return;
        }
        if (event->marked_id)
                (void)lkg_then(s, LKG_EFFECT_FORGIVE);
        if (event->failed == LKG_EFFECT_RESTORE_RECORD) { /* write it anew, if there is space */
                s->next->record = *event->before;
                (void)lkg_then(s, LKG_EFFECT_SAVE_RECORD);
                (void)lkg_then(s, LKG_EFFECT_ADOPT);
        } else if (event->failed == LKG_EFFECT_SAVE_RECORD) { /* the plan on disk is carried out later */
                s->step->accepted = true;
                (void)lkg_then(s, LKG_EFFECT_RETRY);
        } else {
                s->next->record = *event->before;
                (void)lkg_then(s, LKG_EFFECT_RESTORE_RECORD);
                (void)lkg_then(s, LKG_EFFECT_ADOPT);
        }
}

static void failed(struct lkg_stepping *s)
{
        switch (s->event->of) {
        case LKG_EVENT_START:
                lkg_on_start_failed(s);
                break;
        case LKG_EVENT_MARK:
                failed_mark(s);
                break;
        case LKG_EVENT_HOLD:
        case LKG_EVENT_ROLLBACK_GOOD:
                failed_command(s);
                break;
        case LKG_EVENT_FINISH:
        case LKG_EVENT_PINNED:
                failed_finish(s);
                break;
        case LKG_EVENT_TRIED_BAD:
                lkg_set_mark(s, &s->l->pointers.assigned, s->event->cause, s->event->reason);
                lkg_then_tell(s, LKG_NEWS_REJECTED); /* it is not used, even without the mark */
                (void)lkg_then(s, LKG_EFFECT_RETRY);
                break;
        case LKG_EVENT_FORBIDDEN:
        case LKG_EVENT_LOST:
        case LKG_EVENT_SETTLE:
        case LKG_EVENT_RESUMED:
        case LKG_EVENT_LAYERS:
        case LKG_EVENT_SERVED:
        case LKG_EVENT_BEGIN:
        case LKG_EVENT_TRIAL_DUE:
        case LKG_EVENT_PASSED:
        case LKG_EVENT_PROMOTE:
                (void)lkg_then(s, LKG_EFFECT_RETRY);
                break;
        /* Nothing has changed, and whoever raised it gets the error or raises it again. */
        case LKG_EVENT_ASSIGNED:
        case LKG_EVENT_NODE:
        case LKG_EVENT_RESET:
        case LKG_EVENT_TRIED_GOOD:
        case LKG_EVENT_PUBLISHING:
                break;
        /* All that they store is optional, or they store nothing. */
        case LKG_EVENT_MERGED:
        case LKG_EVENT_FINISHED:
        case LKG_EVENT_UNPUBLISHED:
        case LKG_EVENT_HOLD_LOST:
        case LKG_EVENT_PIN:
        case LKG_EVENT_ALIVE:
        case LKG_EVENT_HEALTH:
        case LKG_EVENT_TRY_DUE:
        case LKG_EVENT_FORGIVEN:
        case LKG_EVENT_FAILED:
        case _LKG_EVENT_MAX:
                break;
        }
}

/* ---- one step ---- */

static void (*const steps[_LKG_EVENT_MAX])(struct lkg_stepping *s) = {
        [LKG_EVENT_ASSIGNED] = lkg_on_assigned,
        [LKG_EVENT_NODE] = lkg_on_node,
        [LKG_EVENT_RESET] = lkg_on_reset,
        [LKG_EVENT_TRIED_GOOD] = lkg_on_tried_good,
        [LKG_EVENT_TRIED_BAD] = lkg_on_tried_bad,
        [LKG_EVENT_FORBIDDEN] = lkg_on_forbidden,
        [LKG_EVENT_LOST] = lkg_on_lost,
        [LKG_EVENT_SETTLE] = lkg_on_settle,
        [LKG_EVENT_RESUMED] = lkg_on_resumed,
        [LKG_EVENT_LAYERS] = lkg_on_layers,
        [LKG_EVENT_SERVED] = lkg_on_served,
        [LKG_EVENT_BEGIN] = lkg_on_begin,
        [LKG_EVENT_PASSED] = lkg_on_passed,
        [LKG_EVENT_MERGED] = lkg_on_merged,
        [LKG_EVENT_FINISH] = lkg_on_finish,
        [LKG_EVENT_PINNED] = lkg_on_pinned,
        [LKG_EVENT_FINISHED] = lkg_on_finished,
        [LKG_EVENT_PUBLISHING] = lkg_on_publishing,
        [LKG_EVENT_UNPUBLISHED] = lkg_on_unpublished,
        [LKG_EVENT_HOLD_LOST] = lkg_on_hold_lost,
        [LKG_EVENT_PIN] = lkg_on_pin,
        [LKG_EVENT_START] = lkg_on_start,
        [LKG_EVENT_ALIVE] = lkg_on_alive,
        [LKG_EVENT_HEALTH] = lkg_on_health,
        [LKG_EVENT_TRY_DUE] = lkg_on_try_due,
        [LKG_EVENT_TRIAL_DUE] = lkg_on_trial_due,
        [LKG_EVENT_HOLD] = lkg_on_hold,
        [LKG_EVENT_ROLLBACK_GOOD] = lkg_on_rollback_good,
        [LKG_EVENT_PROMOTE] = lkg_on_promote,
        [LKG_EVENT_MARK] = lkg_on_mark,
        [LKG_EVENT_FORGIVEN] = lkg_on_forgiven,
        [LKG_EVENT_FAILED] = failed,
};

void lkg_step(const struct lkg_lifecycle *l, const struct lkg_lifecycle_facts *facts,
              const struct lkg_event *event, uint64_t now_ns, struct lkg_step *ret)
{
        struct lkg_stepping s = {
                .l = l, .facts = facts, .event = event, .now_ns = now_ns, .next = &ret->next, .step = ret
        };

        ret->next = *l;
        ret->result = 0;
        ret->why = NULL;
        ret->accepted = false;
        ret->cause = LKG_BAD_MARKED;
        ret->n_effects = 0;
        steps[event->kind](&s);
}
