/* SPDX-License-Identifier: Apache-2.0 */
/* Queries of a state, and building blocks that several steps share. */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "stepping.h"

#include <lkg/lifecycle.h>

/* ---- queries ---- */

struct lkg_config_source lkg_document_source(const char *sha256)
{
        struct lkg_config_source source = { .uid = "local", .key = LKG_KEY_DEFAULT };

        (void)snprintf(source.version, sizeof(source.version), "%.12s", sha256);
        return source;
}

const struct lkg_config_source *lkg_tried_source(const struct lkg_pointers *p)
{
        return *p->rollback.reason ? &p->rollback.from : &p->active;
}

const struct lkg_config_source *lkg_lifecycle_tried(const struct lkg_lifecycle *l, bool scope_all)
{
        return scope_all ? &l->document : lkg_tried_source(&l->pointers);
}

bool lkg_is_good_document(const struct lkg_pointers *p, const char *sha256)
{
        return *sha256 && strcmp(p->good.sha256, sha256) == 0;
}

struct lkg_trial lkg_trial_believed(struct lkg_trial stored, const struct lkg_pointers *p, bool scope_all,
                                    const char *sha256)
{
        bool good = scope_all ? lkg_is_good_document(p, sha256)
                              : !lkg_config_source_is_local(&p->active) &&
                                        lkg_config_source_equal(&p->active, &p->good.source);

        /* It was abandoned, its mark was removed, and now it is tried again. */
        if (!scope_all && stored.state == LKG_TRIAL_FAILED && !*p->rollback.reason)
                return (struct lkg_trial){ .state = LKG_TRIAL_IDLE };
        if (stored.state != LKG_TRIAL_RUNNING)
                return stored;
        if (!scope_all && *p->rollback.reason)
                stored.state = LKG_TRIAL_FAILED;
        else if (good)
                stored.state = LKG_TRIAL_PASSED;
        return stored;
}

bool lkg_is_other_trial(const struct lkg_lifecycle *l, const struct lkg_lifecycle_facts *facts)
{
        return facts->scope_all && strncmp(l->document.version, facts->sha256, 12) != 0;
}

bool lkg_lifecycle_serves_tried(const struct lkg_lifecycle *l, const struct lkg_lifecycle_facts *facts)
{
        return (facts->scope_all || facts->remote) && facts->active && facts->serves_active &&
               !lkg_is_other_trial(l, facts);
}

bool lkg_lifecycle_on_trial(const struct lkg_lifecycle *l, const struct lkg_lifecycle_facts *facts)
{
        return l->trial.state == LKG_TRIAL_RUNNING && l->record.hold.mode == LKG_HOLD_FREE &&
               (facts->scope_all || !*l->pointers.rollback.reason) && lkg_lifecycle_serves_tried(l, facts);
}

bool lkg_may_abandon(const struct lkg_lifecycle *l, const struct lkg_lifecycle_facts *facts)
{
        const struct lkg_pointers *p = &l->pointers;

        return facts->remote && !lkg_config_source_is_local(&p->active) &&
               !lkg_config_source_equal(&p->active, &p->good.source);
}

void lkg_lifecycle_say_assigned(const struct lkg_pointers *p, char ret[static LKG_SOURCE_ID_MAX + 1])
{
        if (lkg_config_source_is_local(&p->assigned))
                (void)strcpy(ret, "local");
        else
                lkg_config_source_id(&p->assigned, ret);
}

/* ---- effects ---- */

struct lkg_effect *lkg_then(struct lkg_stepping *s, enum lkg_effect_kind kind)
{
        struct lkg_effect *effect = &s->step->effects[s->step->n_effects++];

        assert(s->step->n_effects <= LKG_EFFECTS_MAX);
        *effect = (struct lkg_effect){ .kind = kind };
        return effect;
}

void lkg_then_try(struct lkg_stepping *s, enum lkg_effect_kind kind)
{
        lkg_then(s, kind)->optional = true;
}

void lkg_then_point(struct lkg_stepping *s)
{
        (void)lkg_then(s, LKG_EFFECT_SAVE_POINTERS);
        (void)lkg_then(s, LKG_EFFECT_ADOPT);
}

void lkg_then_next(struct lkg_stepping *s, enum lkg_event_kind kind)
{
        lkg_then(s, LKG_EFFECT_NEXT)->next = kind;
}

void lkg_then_tell(struct lkg_stepping *s, enum lkg_news news)
{
        lkg_then(s, LKG_EFFECT_TELL)->news = news;
}

void lkg_refuse_step(struct lkg_stepping *s, int result, const char *why)
{
        s->step->result = result;
        s->step->why = why;
}

void lkg_set_mark(struct lkg_stepping *s, const struct lkg_config_source *source, enum lkg_bad_cause cause,
                  const char *reason)
{
        struct lkg_bad *mark = &s->step->mark;

        *mark = (struct lkg_bad){ .time_ns = s->event->wall_ns, .cause = cause, .source = *source };
        lkg_config_source_id(source, mark->id);
        (void)snprintf(mark->reason, sizeof(mark->reason), "%s", reason);
}

void lkg_then_mark(struct lkg_stepping *s, const struct lkg_config_source *source, enum lkg_bad_cause cause,
                   const char *reason)
{
        lkg_set_mark(s, source, cause, reason);
        (void)lkg_then(s, LKG_EFFECT_MARK_BAD);
}

/* ---- a rollback ---- */

/* Is it marked, by this step or before? */
static bool is_bad(const struct lkg_stepping *s, const struct lkg_config_source *source)
{
        const struct lkg_bad_list one = { &s->step->mark, 1 };

        for (size_t i = 0; i < s->step->n_effects; i++)
                if (s->step->effects[i].kind == LKG_EFFECT_MARK_BAD && lkg_bad_find(&one, source))
                        return true;
        return lkg_bad_find(s->facts->bad, source) != NULL;
}

bool lkg_drop_bad_good(struct lkg_stepping *s)
{
        struct lkg_good *good = &s->next->pointers.good;

        if (!is_bad(s, &good->source))
                return false;
        memset(good, 0, sizeof(*good));
        return true;
}

void lkg_fall_back(struct lkg_stepping *s, const char *reason, uint64_t generation, uint64_t time_ns)
{
        struct lkg_pointers *p = &s->next->pointers;
        struct lkg_trial *trial = &s->next->trial;

        (void)lkg_drop_bad_good(s);
        p->rollback.from = p->active;
        (void)snprintf(p->rollback.reason, sizeof(p->rollback.reason), "%s", reason);
        p->rollback.time_ns = time_ns;
        p->rollback.starts_since = 0;
        p->rollback.abandoned_generation = generation;
        (void)snprintf(p->rollback.passed_over, sizeof(p->rollback.passed_over), "%s",
                       s->facts->scope_all ? LKG_PASSED_OVER_UNKNOWN : "");
        p->active = p->good.source;
        lkg_then_point(s);
        if (trial->state != LKG_TRIAL_RUNNING && trial->state != LKG_TRIAL_FAILED)
                return;
        *trial = lkg_trial_alive(*trial, false, s->now_ns);
        trial->state = LKG_TRIAL_FAILED;
        lkg_then_try(s, LKG_EFFECT_SAVE_TRIAL); /* the pointers say so, too */
}

void lkg_then_roll_back(struct lkg_stepping *s, enum lkg_bad_cause cause, const char *reason)
{
        const struct lkg_pointers *p = &s->next->pointers;

        lkg_fall_back(s, reason, s->facts->active, s->event->wall_ns);
        s->step->cause = cause;
        lkg_then_tell(s, LKG_NEWS_ROLLED_BACK);
        lkg_then(s, LKG_EFFECT_MERGE_GOOD)->same = lkg_config_source_equal(&p->rollback.from, &p->active);
}

void lkg_take_mark_back(struct lkg_stepping *s)
{
        if (s->event->failed == LKG_EFFECT_FORGIVE) {
                s->step->accepted = true;
                (void)lkg_then(s, LKG_EFFECT_RETRY);
        } else if (s->event->marked_id) {
                (void)lkg_then(s, LKG_EFFECT_FORGIVE);
        }
}

bool lkg_end_pin(struct lkg_lifecycle *next)
{
        struct lkg_component_state *record = &next->record;

        if (record->hold.mode != LKG_HOLD_ROLLBACK)
                return false;
        record->hold.mode = LKG_HOLD_FREE;
        record->hold.generation = 0;
        record->held_by = (struct lkg_held_by){ 0 };
        *record->pinned_for = '\0';
        return true;
}

/* ---- marks ---- */

/* Look-ups in the bad list, which is sorted by id. */

static int compare(const void *id, const void *bad)
{
        return strcmp(id, ((const struct lkg_bad *)bad)->id);
}

const struct lkg_bad *lkg_bad_named(const struct lkg_bad_list *list, const char *id)
{
        return list->n_items ? bsearch(id, list->items, list->n_items, sizeof(*list->items), compare) : NULL;
}

const struct lkg_bad *lkg_bad_find(const struct lkg_bad_list *list, const struct lkg_config_source *source)
{
        char id[LKG_SOURCE_ID_MAX + 1];
        const struct lkg_bad *bad;

        if (lkg_config_source_is_local(source))
                return NULL;
        lkg_config_source_id(source, id);
        bad = lkg_bad_named(list, id);
        return bad ? bad : lkg_bad_named(list, source->uid);
}

bool lkg_bad_failed_trial(enum lkg_bad_cause cause)
{
        return cause == LKG_BAD_CRASHED || cause == LKG_BAD_UNHEALTHY;
}

const struct lkg_bad *lkg_bad_same_content(const struct lkg_bad_list *list,
                                           const struct lkg_config_source *source)
{
        for (size_t i = 0; i < list->n_items; i++)
                if (lkg_config_source_same_content(&list->items[i].source, source))
                        return &list->items[i];
        return NULL;
}
