/* SPDX-License-Identifier: Apache-2.0 */
/* Which configuration is followed: assigned, tried, followed or marked bad, abandoned (docs/specification.md 4.4, 4.5, 4.12). */
#include "stepping.h"

static const struct lkg_bad *find_bad(const struct lkg_stepping *s, const struct lkg_config_source *source)
{
        return lkg_bad_find(s->facts->bad, source);
}

/* ---- the reference ---- */

static void set_node(struct lkg_pointers *pointers, const char *node_uid)
{
        if (node_uid)
                (void)snprintf(pointers->node_uid, sizeof(pointers->node_uid), "%s", node_uid);
}

/* The same bytes under another version: a pointer names the new one. */
static void rename_source(struct lkg_config_source *pointer, const struct lkg_config_source *new)
{
        if (lkg_config_source_same_content(pointer, new))
                *pointer = *new;
}

/* A new version with the bytes of a bad one is bad, too. */
static void mark_like_its_twin(struct lkg_stepping *s, const struct lkg_config_source *source)
{
        const struct lkg_bad *twin = lkg_bad_same_content(s->facts->bad, source);
        char reason[LKG_REASON_MAX];

        if (!twin || find_bad(s, source))
                return;
        if (snprintf(reason, sizeof(reason), "%s (same content as %s)", twin->reason, twin->id) < 0)
                return;
        lkg_then_mark(s, source, twin->cause, reason);
}

/*
 * What is followed, good or abandoned may be the same content under another version. Then only its name changes: a trial
 * continues, stored under the new version before the pointers name it.
 */
static void rename_all(struct lkg_stepping *s, const struct lkg_config_source *source)
{
        struct lkg_pointers *p = &s->next->pointers;

        rename_source(&p->active, source);
        rename_source(&p->good.source, source);
        rename_source(&p->rollback.from, source);
        if (lkg_config_source_same_content(lkg_lifecycle_tried(s->l, s->facts->scope_all), source))
                (void)lkg_then(s, LKG_EFFECT_SAVE_TRIAL);
}

/* The last known good is assigned, so if it is served because of a rollback, that is over. */
static void end_rollback(struct lkg_stepping *s)
{
        memset(&s->next->pointers.rollback, 0, sizeof(s->next->pointers.rollback));
        s->next->trial = (struct lkg_trial){ .state = LKG_TRIAL_IDLE };
}

void lkg_on_assigned(struct lkg_stepping *s)
{
        const struct lkg_config_source *source = s->event->source;
        const struct lkg_pointers *before = &s->l->pointers;
        struct lkg_pointers *p = &s->next->pointers;
        bool known = lkg_config_source_same_content(&before->assigned, source);

        mark_like_its_twin(s, source);
        set_node(p, s->event->node_uid);
        p->assigned = *source;
        if (!known)
                p->assigned_ns = s->event->wall_ns;
        if (!known && lkg_config_source_same_content(&before->good.source, source) &&
            lkg_config_source_equal(&before->active, &before->good.source))
                end_rollback(s);
        rename_all(s, source);
        lkg_then_point(s);
        /* Optional: the pin names the assignment that it was made for, so the new pointers already end it. */
        if (lkg_end_pin(s->next))
                lkg_then_try(s, LKG_EFFECT_SAVE_RECORD);
}

void lkg_on_node(struct lkg_stepping *s)
{
        if (strcmp(s->l->pointers.node_uid, s->event->node_uid) == 0)
                return;
        set_node(&s->next->pointers, s->event->node_uid);
        lkg_then_point(s);
}

void lkg_on_reset(struct lkg_stepping *s)
{
        const struct lkg_pointers *p = &s->l->pointers;

        if (lkg_config_source_is_local(&p->assigned) && lkg_config_source_is_local(&p->active) &&
            lkg_config_source_is_local(&p->good.source))
                return;
        s->next->pointers = (struct lkg_pointers){ .assigned_ns = s->event->wall_ns };
        s->next->trial = (struct lkg_trial){ .state = LKG_TRIAL_IDLE };
        lkg_then_point(s);
        if (lkg_end_pin(s->next))
                lkg_then_try(s, LKG_EFFECT_SAVE_RECORD);
}

/* ---- result of trying ---- */

void lkg_on_tried_good(struct lkg_stepping *s)
{
        struct lkg_pointers *p = &s->next->pointers;

        p->active = p->assigned;
        memset(&p->rollback, 0, sizeof(p->rollback));
        s->next->trial = (struct lkg_trial){ .state = LKG_TRIAL_IDLE };
        lkg_then_point(s);
        /* After the pointers: until they are written, the trial on disk is that of what is followed. */
        if (!s->facts->scope_all)
                lkg_then_try(s,
                             LKG_EFFECT_SAVE_TRIAL); /* with these pointers an earlier one does not count */
        (void)lkg_then(s, LKG_EFFECT_FOLLOW);
}

void lkg_on_tried_bad(struct lkg_stepping *s)
{
        lkg_then_mark(s, &s->l->pointers.assigned, s->event->cause, s->event->reason);
        lkg_then_tell(s, LKG_NEWS_REJECTED);
}

void lkg_on_forbidden(struct lkg_stepping *s)
{
        lkg_then_mark(s, &s->l->pointers.active, LKG_BAD_INVALID, s->event->reason);
        lkg_then_tell(s, LKG_NEWS_REJECTED);
}

void lkg_on_lost(struct lkg_stepping *s)
{
        const struct lkg_pointers *p = &s->l->pointers;

        if (lkg_config_source_equal(&p->active, &p->good.source)) {
                (void)lkg_then(s, LKG_EFFECT_FOLLOW_MISSING);
                return;
        }
        if (s->event->known) { /* it made an engine crash */
                lkg_then_mark(s, &p->active, LKG_BAD_LOAD, s->event->reason);
                s->step->effects[s->step->n_effects - 1].optional = true;
        }
        lkg_then_roll_back(s, LKG_BAD_LOAD, s->event->reason);
}

/* ---- abandoning a bad configuration ---- */

void lkg_on_settle(struct lkg_stepping *s)
{
        const struct lkg_pointers *p = &s->next->pointers;
        const struct lkg_bad *bad = find_bad(s, &p->active);
        bool dropped;

        if (lkg_leave_bad_document(s, /* again= */ false) || !s->facts->remote)
                return;
        dropped = lkg_drop_bad_good(s);
        if (bad && !lkg_config_source_equal(&p->active, &p->good.source)) {
                lkg_then_roll_back(s, bad->cause, bad->reason);
        } else if (dropped) {
                lkg_then_point(s);
        }
}

/* A valid merge is published by the commit. Otherwise serve the stored document until the result of the layers changes. */
void lkg_on_merged(struct lkg_stepping *s)
{
        char *passed_over = s->next->pointers.rollback.passed_over;

        if (s->event->merge == LKG_MERGE_IMPOSSIBLE) {
                (void)lkg_then(s, LKG_EFFECT_FOLLOW_MISSING);
                return;
        }
        if (s->event->merge == LKG_MERGE_VALID && !s->facts->scope_all)
                return;
        (void)lkg_then(s, LKG_EFFECT_SERVE_STORED);
        if (strcmp(passed_over, s->event->sha256) == 0)
                return;
        (void)snprintf(passed_over, LKG_SHA256_HEX, "%s", s->event->sha256);
        lkg_then_try(s, LKG_EFFECT_SAVE_POINTERS); /* optional: unknown means the same to the next engine */
        (void)lkg_then(s, LKG_EFFECT_ADOPT);
}

/* A mark is typed as an id. With the digest, a new version with the same content is bad, too. */
static void know_content(const struct lkg_stepping *s, struct lkg_config_source *source)
{
        const struct lkg_pointers *p = &s->l->pointers;
        const struct lkg_config_source *known[] = { &p->assigned, &p->active, &p->good.source,
                                                    &p->rollback.from };

        for (size_t i = 0; i < LKG_ARRAY_SIZE(known); i++)
                if (!lkg_config_source_is_local(known[i]) && lkg_config_source_equal(known[i], source))
                        *source = *known[i];
}

/* A manual mark. If it concerns the active source, the rollback is part of the same command. */
void lkg_on_mark(struct lkg_stepping *s)
{
        const struct lkg_bad_list one = { (struct lkg_bad *)s->event->mark, 1 };

        s->step->mark = *s->event->mark;
        know_content(s, &s->step->mark.source);
        (void)lkg_then(s, LKG_EFFECT_MARK_BAD);
        if (lkg_may_abandon(s->l, s->facts) && lkg_bad_find(&one, &s->l->pointers.active))
                lkg_then_roll_back(s, s->event->mark->cause, s->event->mark->reason);
}

void lkg_on_forgiven(struct lkg_stepping *s)
{
        char *passed_over = s->next->pointers.rollback.passed_over;

        if (!*passed_over)
                return;
        *passed_over = '\0';
        lkg_then_try(s, LKG_EFFECT_SAVE_POINTERS); /* the marks are gone, so it counts in any case */
        (void)lkg_then(s, LKG_EFFECT_ADOPT);
}
