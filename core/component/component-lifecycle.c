/* SPDX-License-Identifier: Apache-2.0 */
/* A component as the lifecycle and the rollout see it: before a step and after it, what it tells people, which slot is wanted. */
#include <inttypes.h>

#include <lkg/base.h>
#include <lkg/component.h>
#include <lkg/schema.h>

/* The reference configures the kubelet of a node; if no component has that name, the first component. */
bool lkg_component_is_remote(const struct lkg_component *c)
{
        const struct lkg_config *config = c->env->config;
        unsigned chosen = 0;

        if (!config->remote.enabled || !c->dynamic || c->pods)
                return false;
        for (unsigned i = 0; i < config->n_components; i++)
                if (strcmp(config->components[i].name, "kubelet") == 0)
                        chosen = i;
        return c->index == chosen;
}

/* Is the followed source served, rather than a held generation? */
static bool serves_active(const struct lkg_component *c)
{
        struct lkg_config_source made_of;

        if (!c->active)
                return false;
        lkg_config_source_recorded(c->active->source, c->active->source_sha256, &made_of);
        return lkg_config_source_matches(&made_of, &c->dynamic->pointers.active) ||
               lkg_component_serves_candidate(c);
}

void lkg_component_take_lifecycle(const struct lkg_component *c, struct lkg_lifecycle *ret,
                                  struct lkg_lifecycle_facts *ret_facts)
{
        static const struct lkg_bad_list none;
        const struct lkg_dynamic *d = c->dynamic;

        memset(ret, 0, sizeof(*ret));
        ret->record = c->state;
        if (d) {
                ret->pointers = d->pointers;
                ret->trial = d->trial;
                ret->document = d->document;
        }
        *ret_facts = (struct lkg_lifecycle_facts){
                .bad = d ? &d->bad : &none,
                .remote = lkg_component_is_remote(c),
                .scope_all = d && d->scope_all,
                .stores_good = d && d->stores_good,
                .watched = d && d->watched,
                .serves_active = d && serves_active(c),
                .active = c->active ? c->active->number : 0,
                .sha256 = c->active ? c->active->sha256 : "",
                .trial_saved_ns = d ? d->trial_saved_ns : 0,
        };
        memcpy(ret_facts->health, c->health.state, sizeof(ret_facts->health));
}

static bool is_same_hold(const struct lkg_hold *a, const struct lkg_hold *b)
{
        return a->mode == b->mode && a->generation == b->generation && a->try_phase == b->try_phase &&
               a->try_duration_ns == b->try_duration_ns && a->try_previous == b->try_previous &&
               a->try_deadline_ns == b->try_deadline_ns;
}

static bool is_same_record(const struct lkg_component_state *a, const struct lkg_component_state *b)
{
        return is_same_hold(&a->hold, &b->hold) && a->held_by.time_ns == b->held_by.time_ns &&
               a->tried_by.time_ns == b->tried_by.time_ns && strcmp(a->pinned_for, b->pinned_for) == 0 &&
               a->unfinished.kind == b->unfinished.kind && strcmp(a->lost, b->lost) == 0 &&
               a->last_good == b->last_good && a->ticket == b->ticket;
}

void lkg_component_adopt(struct lkg_component *c, const struct lkg_lifecycle *now,
                         const struct lkg_lifecycle *next, bool saved_record)
{
        struct lkg_dynamic *d = c->dynamic;

        if (!is_same_record(&now->record, &next->record))
                c->due.record = !saved_record;
        c->state = next->record;
        if (!d)
                return;
        if (!lkg_config_source_equal(&now->pointers.active, &next->pointers.active))
                d->good_failed = false;
        d->pointers = next->pointers;
        d->trial = next->trial;
        d->document = next->document;
}

static enum lkg_rollback rollback_of(enum lkg_bad_cause cause)
{
        static const enum lkg_rollback kinds[_LKG_BAD_CAUSE_MAX] = {
                [LKG_BAD_MARKED] = LKG_ROLLBACK_CONDEMNED,    [LKG_BAD_LOAD] = LKG_ROLLBACK_INVALID,
                [LKG_BAD_PARSE] = LKG_ROLLBACK_INVALID,       [LKG_BAD_INVALID] = LKG_ROLLBACK_INVALID,
                [LKG_BAD_CRASHED] = LKG_ROLLBACK_CRASH_LOOP,  [LKG_BAD_OPERATOR] = LKG_ROLLBACK_OPERATOR,
                [LKG_BAD_UNHEALTHY] = LKG_ROLLBACK_UNHEALTHY,
        };

        return kinds[cause];
}

/* ---- the trial's clock ---- */

bool lkg_component_runs_tried(const struct lkg_component *c, const struct lkg_tracked *t)
{
        struct lkg_lifecycle_facts facts;
        struct lkg_lifecycle l;
        const struct lkg_history_entry *entry = lkg_history_find(&c->history, t->generation);
        struct lkg_config_source made_of;

        if (!c->active || t->pidfd < 0)
                return false;
        if (t->generation == c->active->number) {
                lkg_component_take_lifecycle(c, &l, &facts);
                /* an operator may have pinned another generation */
                return lkg_lifecycle_serves_tried(&l, &facts);
        }
        if (c->dynamic->scope_all || !entry)
                return false;
        lkg_config_source_recorded(entry->source, entry->source_sha256, &made_of);
        return lkg_config_source_matches(&made_of, &c->dynamic->pointers.active);
}

static bool is_on_trial(const struct lkg_component *c)
{
        struct lkg_lifecycle_facts facts;
        struct lkg_lifecycle l;

        lkg_component_take_lifecycle(c, &l, &facts);
        return lkg_lifecycle_on_trial(&l, &facts);
}

uint64_t lkg_component_trial_deadline(const struct lkg_component *c)
{
        const struct lkg_dynamic *d = c->dynamic;
        uint64_t due, save, first;

        if (c->pods)
                return lkg_pods_deadline(c);
        if (!d || d->trial.state != LKG_TRIAL_RUNNING)
                return UINT64_MAX;
        due = is_on_trial(c) ? lkg_trial_due(&d->trial) : UINT64_MAX;
        save = d->trial.running_since_ns || d->trial.away_since_ns ? d->trial_saved_ns + LKG_TRIAL_SAVE_NS
                                                                   : UINT64_MAX;
        first = lkg_earlier(due, save);
        return first <= c->due.trial_failed_ns ? UINT64_MAX : first;
}

const char *lkg_component_unhealthy(const struct lkg_component *c)
{
        enum lkg_check bad;

        if (!c->dynamic || lkg_trial_health(&c->dynamic->trial, &bad) != LKG_HEALTH_BAD)
                return NULL;
        if (c->health.state[bad] == LKG_HEALTH_BAD)
                return c->health.words[bad];
        return *c->health.last_bad[bad] ? c->health.last_bad[bad] : "a check was bad when it was last asked";
}

/* ---- Events ---- */

void lkg_component_event_text(const struct lkg_component *c, const struct lkg_config_source *source,
                              const char *words, char ret[static LKG_EVENT_TEXT_MAX])
{
        const char *colon = *words ? ": " : "";

        if (c->pods)
                (void)snprintf(ret, LKG_EVENT_TEXT_MAX, "%s: %.500s", c->config->name, words);
        else if (lkg_config_source_is_local(source))
                (void)snprintf(ret, LKG_EVENT_TEXT_MAX, "%s: local configuration%s%.400s", c->config->name,
                               colon, words);
        else
                (void)snprintf(ret, LKG_EVENT_TEXT_MAX,
                               "%s: ConfigMap %.63s/%.253s, UID %.64s, resourceVersion %.64s%s%.400s",
                               c->config->name, source->ns, source->name, source->uid, source->version,
                               colon, words);
}

/* ---- news ---- */

#define ROOM_KEPT 112 /* of the words: lkg_component_event_text() shows 400 bytes of them */

/* One piece of news. */
struct telling {
        struct lkg_component *c;
        const struct lkg_event *event;
        const struct lkg_step *step;
        struct lkg_log_fields fields;
        struct lkg_component_news *news;
};

static void say_event(const struct telling *t, bool warning, const char *reason,
                      const struct lkg_config_source *source, const char *words)
{
        t->news->warning = warning;
        t->news->reason = reason;
        t->news->source = source;
        (void)snprintf(t->news->words, sizeof(t->news->words), "%s", words);
}

static void tell_rejected(const struct telling *t)
{
        const struct lkg_bad *mark = &t->step->mark;

        lkg_log(LOG_WARNING, &t->fields, "%s: ConfigMap %s/%s%s, see findings", mark->reason,
                mark->source.ns, mark->source.name,
                t->event->kind == LKG_EVENT_FORBIDDEN ? ", the guard forbids it" : "");
        say_event(t, true, "ConfigRejected", &mark->source, mark->reason);
}

/* The mark that this rollback follows from, of this step or, after a crash, of an earlier one; NULL = none. */
static const struct lkg_bad *mark_of(const struct telling *t)
{
        const struct lkg_bad_list *list = &t->c->dynamic->bad;

        if (*t->step->mark.id)
                return lkg_bad_named(list, t->step->mark.id);
        for (size_t i = 0; i < list->n_items; i++)
                if (strcmp(list->items[i].reason, t->step->next.pointers.rollback.reason) == 0)
                        return &list->items[i];
        return NULL;
}

/* The reason and the names of the suspects, without values: an Event may be read by people who may not read the node's files. */
static void say_why(const struct telling *t, char ret[static LKG_REASON_MAX])
{
        const char *reason = t->step->next.pointers.rollback.reason;
        const struct lkg_bad *mark = mark_of(t);
        LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf buf = LKG_BUF_INIT;
        size_t size = strlen(reason);

        if (mark && size + ROOM_KEPT < LKG_REASON_MAX)
                lkg_suspects_say(mark->suspects, LKG_REASON_MAX - size - ROOM_KEPT, &buf);
        (void)snprintf(ret, LKG_REASON_MAX, "%s%s%s", reason, buf.size ? "; " : "", lkg_buf_text(&buf));
}

static void tell_rolled_back(const struct telling *t)
{
        const struct lkg_pointers *p = &t->step->next.pointers;
        char words[LKG_REASON_MAX];

        say_why(t, words);
        lkg_log(LOG_WARNING, &t->fields, "rolling back to the last known good: %s", words);
        say_event(t, true, "ConfigRolledBack", &p->rollback.from, words);
        t->c->counts.rollbacks[rollback_of(t->step->cause)]++;
        if (t->event->kind == LKG_EVENT_START)
                /* it will read what is served then: no restart is needed */
                t->c->process.answers_start = true;
}

static void tell_promoted(const struct telling *t)
{
        const struct lkg_good *good = &t->step->next.pointers.good;

        lkg_log(LOG_NOTICE, &t->fields, "generation %" PRIu64 " is the last known good", good->generation);
        say_event(t, false, "ConfigPromoted", &good->source, "");
}

static void tell_extended(const struct telling *t)
{
        char what[LKG_HEALTH_WORDS_MAX];

        (void)lkg_trial_say_unhealthy(&t->step->next.trial, t->event->reason, what);
        lkg_log(LOG_WARNING, &t->fields, "the trial goes on beyond its duration, not healthy: %s", what);
        say_event(t, true, "ConfigTrialExtended", lkg_tried_source(&t->step->next.pointers), what);
}

static void tell_try_expired(const struct telling *t)
{
        lkg_log(LOG_WARNING, &t->fields,
                "the try was not committed in time, going back to generation %" PRIu64,
                t->step->next.record.hold.generation);
}

void lkg_component_tell(struct lkg_component *c, enum lkg_news kind, const struct lkg_event *event,
                        const struct lkg_step *step, struct lkg_component_news *ret)
{
        static void (*const tellers[_LKG_NEWS_MAX])(const struct telling *t) = {
                [LKG_NEWS_REJECTED] = tell_rejected,       [LKG_NEWS_ROLLED_BACK] = tell_rolled_back,
                [LKG_NEWS_PROMOTED] = tell_promoted,       [LKG_NEWS_EXTENDED] = tell_extended,
                [LKG_NEWS_TRY_EXPIRED] = tell_try_expired,
        };
        const struct telling t = { c, event, step, lkg_component_log_fields(c), ret };

        *ret = (struct lkg_component_news){ .reason = NULL };
        tellers[kind](&t);
}

/* ---- slots ---- */

#define OWED_NS (3600 * LKG_NSEC_PER_SEC)

static bool knows_limits(const struct lkg_component *c)
{
        return c->slots.limits.max_in_trial &&
               lkg_config_source_equal(&c->slots.of, &c->dynamic->pointers.assigned);
}

/* What is the last known good already has no trial, so nobody has to know of it. */
bool lkg_component_needs_slot(const struct lkg_component *c)
{
        const struct lkg_pointers *p = &c->dynamic->pointers;

        return knows_limits(c) && !lkg_config_source_same_content(&p->assigned, &p->good.source);
}

bool lkg_component_waits_for_slot(const struct lkg_component *c)
{
        const struct lkg_pointers *p = &c->dynamic->pointers;

        return lkg_component_needs_slot(c) && !lkg_config_source_equal(&p->assigned, &p->active);
}

static bool is_of_api(const struct lkg_config_source *source)
{
        return *source->uid && strcmp(source->uid, LKG_UID_LOCAL) != 0 && *source->sha256;
}

/*
 * What has failed its trial a short time ago. An engine that died right after the rollback has still to note that in its slot, and
 * what was on trial need not be assigned any more. After that time others have noted that the holder vanished.
 */
static const struct lkg_config_source *failed_lately(const struct lkg_component *c, uint64_t wall_ns)
{
        const struct lkg_bad *found = NULL;

        for (size_t i = 0; i < c->dynamic->bad.n_items; i++) {
                const struct lkg_bad *mark = &c->dynamic->bad.items[i];

                if (lkg_bad_failed_trial(mark->cause) && is_of_api(&mark->source) &&
                    mark->time_ns <= wall_ns && wall_ns - mark->time_ns < OWED_NS &&
                    (!found || mark->time_ns > found->time_ns))
                        found = mark;
        }
        return found ? &found->source : NULL;
}

void lkg_component_slot_wish(const struct lkg_component *c, const struct lkg_config_source *newest,
                             uint64_t wall_ns, struct lkg_slot_wish *ret)
{
        static const struct lkg_rollout_limits none;
        const struct lkg_config_source *source = NULL;
        const struct lkg_rollout_limits *limits = &c->slots.limits;

        *ret = (struct lkg_slot_wish){ .any = false };
        if (!c->dynamic)
                return;
        ret->duration_ns = c->slots.duration_ns;
        if (knows_limits(c)) {
                source = &c->dynamic->pointers.assigned;
        } else if (c->base && c->base->limits.max_in_trial) { /* a new engine, in the middle of a trial */
                source = &c->base->source;
                limits = &c->base->limits;
                ret->duration_ns = c->base->rules.duration_ns;
        } else {
                source = failed_lately(c, wall_ns);
                limits = &none;
        }
        if (!source || !*source->sha256)
                return;
        /* nothing is tried while it is held */
        ret->any = c->slots.needed && c->state.hold.mode == LKG_HOLD_FREE;
        ret->newest = lkg_config_source_same_content(source, newest);
        ret->max_in_trial = limits->max_in_trial;
        ret->max_failures = limits->max_failures;
        ret->fleet = limits->fleet;
        lkg_rollout_id_of(source, &ret->id);
}

void lkg_component_say_slot(struct lkg_component *c, const char *words)
{
        if (strcmp(c->slots.words, words) == 0)
                return;
        (void)snprintf(c->slots.words, sizeof(c->slots.words), "%s", words);
}
