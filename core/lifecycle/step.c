/* SPDX-License-Identifier: Apache-2.0 */
/* lkg_step(): the handler of each event, and what follows from a failed effect. */
#include "stepping.h"

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

static void failed_tried_bad(struct lkg_stepping *s)
{
        lkg_set_mark(s, &s->l->pointers.assigned, s->event->cause, s->event->reason);
        lkg_then_tell(s, LKG_NEWS_REJECTED); /* it is not used, even without the mark */
        (void)lkg_then(s, LKG_EFFECT_RETRY);
}

static void retry(struct lkg_stepping *s)
{
        (void)lkg_then(s, LKG_EFFECT_RETRY);
}

/* ---- one step ---- */

static void failed(struct lkg_stepping *s);

/*
 * What each event does, and what follows if one of its effects fails; NULL: nothing has changed, and whoever raised it gets the error or
 * raises it again, or all that it stores is optional.
 */
static const struct {
        void (*step)(struct lkg_stepping *s);
        void (*failed)(struct lkg_stepping *s);
} rows[_LKG_EVENT_MAX] = {
        [LKG_EVENT_ASSIGNED] = { lkg_on_assigned, NULL },
        [LKG_EVENT_NODE] = { lkg_on_node, NULL },
        [LKG_EVENT_RESET] = { lkg_on_reset, NULL },
        [LKG_EVENT_TRIED_GOOD] = { lkg_on_tried_good, NULL },
        [LKG_EVENT_TRIED_BAD] = { lkg_on_tried_bad, failed_tried_bad },
        [LKG_EVENT_FORBIDDEN] = { lkg_on_forbidden, retry },
        [LKG_EVENT_LOST] = { lkg_on_lost, retry },
        [LKG_EVENT_SETTLE] = { lkg_on_settle, retry },
        [LKG_EVENT_RESUMED] = { lkg_on_resumed, retry },
        [LKG_EVENT_LAYERS] = { lkg_on_layers, retry },
        [LKG_EVENT_SERVED] = { lkg_on_served, retry },
        [LKG_EVENT_BEGIN] = { lkg_on_begin, retry },
        [LKG_EVENT_PASSED] = { lkg_on_passed, retry },
        [LKG_EVENT_MERGED] = { lkg_on_merged, NULL },
        [LKG_EVENT_FINISH] = { lkg_on_finish, failed_finish },
        [LKG_EVENT_PINNED] = { lkg_on_pinned, failed_finish },
        [LKG_EVENT_FINISHED] = { lkg_on_finished, NULL },
        [LKG_EVENT_PUBLISHING] = { lkg_on_publishing, NULL },
        [LKG_EVENT_UNPUBLISHED] = { lkg_on_unpublished, NULL },
        [LKG_EVENT_HOLD_LOST] = { lkg_on_hold_lost, NULL },
        [LKG_EVENT_PIN] = { lkg_on_pin, NULL },
        [LKG_EVENT_START] = { lkg_on_start, lkg_on_start_failed },
        [LKG_EVENT_ALIVE] = { lkg_on_alive, NULL },
        [LKG_EVENT_HEALTH] = { lkg_on_health, NULL },
        [LKG_EVENT_TRY_DUE] = { lkg_on_try_due, NULL },
        [LKG_EVENT_TRIAL_DUE] = { lkg_on_trial_due, retry },
        [LKG_EVENT_HOLD] = { lkg_on_hold, failed_command },
        [LKG_EVENT_ROLLBACK_GOOD] = { lkg_on_rollback_good, failed_command },
        [LKG_EVENT_PROMOTE] = { lkg_on_promote, retry },
        [LKG_EVENT_MARK] = { lkg_on_mark, failed_mark },
        [LKG_EVENT_FORGIVEN] = { lkg_on_forgiven, NULL },
        [LKG_EVENT_FAILED] = { failed, NULL },
};

static void failed(struct lkg_stepping *s)
{
        if (rows[s->event->of].failed)
                rows[s->event->of].failed(s);
}

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
        rows[event->kind].step(&s);
}
