/* SPDX-License-Identifier: Apache-2.0 */
/* A component as the lifecycle sees it: the state before a step, and the state after it. */
#include <lkg/component.h>

/* The reference configures the kubelet of a node; if no component has that name, the first component. */
bool lkg_component_is_remote(const struct lkg_component *c, const struct lkg_config *config)
{
        unsigned chosen = 0;

        if (!config->remote.enabled || !c->dynamic)
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

void lkg_component_take_lifecycle(const struct lkg_component *c, const struct lkg_config *config,
                                  struct lkg_lifecycle *ret, struct lkg_lifecycle_facts *ret_facts)
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
                .remote = lkg_component_is_remote(c, config),
                .scope_all = d && d->scope_all,
                .watched = d && d->watched,
                .serves_active = d && serves_active(c),
                .active = c->active ? c->active->number : 0,
                .sha256 = c->active ? c->active->sha256 : "",
                .trial_saved_ns = d ? d->trial_saved_ns : 0,
        };
        memcpy(ret_facts->health, c->health, sizeof(ret_facts->health));
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
                c->state_changed = !saved_record;
        c->state = next->record;
        if (!d)
                return;
        if (!lkg_config_source_equal(&now->pointers.active, &next->pointers.active))
                d->good_failed = false;
        d->pointers = next->pointers;
        d->trial = next->trial;
        d->document = next->document;
}

enum lkg_rollback lkg_rollback_of(enum lkg_bad_cause cause)
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

bool lkg_component_runs_tried(const struct lkg_component *c, const struct lkg_config *config,
                              const struct lkg_tracked *t)
{
        struct lkg_lifecycle_facts facts;
        struct lkg_lifecycle l;
        const struct lkg_history_entry *entry = lkg_history_find(&c->history, t->generation);
        struct lkg_config_source made_of;

        if (!c->active || t->pidfd < 0)
                return false;
        if (t->generation == c->active->number) {
                lkg_component_take_lifecycle(c, config, &l, &facts);
                return lkg_lifecycle_serves_tried(
                        &l, &facts); /* an operator may have pinned another generation */
        }
        if (c->dynamic->scope_all || !entry)
                return false;
        lkg_config_source_recorded(entry->source, entry->source_sha256, &made_of);
        return lkg_config_source_matches(&made_of, &c->dynamic->pointers.active);
}

static bool is_on_trial(const struct lkg_component *c, const struct lkg_config *config)
{
        struct lkg_lifecycle_facts facts;
        struct lkg_lifecycle l;

        lkg_component_take_lifecycle(c, config, &l, &facts);
        return lkg_lifecycle_on_trial(&l, &facts);
}

uint64_t lkg_component_trial_deadline(const struct lkg_component *c, const struct lkg_config *config)
{
        const struct lkg_dynamic *d = c->dynamic;
        uint64_t due, save, first;

        if (!d || d->trial.state != LKG_TRIAL_RUNNING)
                return UINT64_MAX;
        due = is_on_trial(c, config) ? lkg_trial_due(&d->trial) : UINT64_MAX;
        save = d->trial.running_since_ns || d->trial.away_since_ns ? d->trial_saved_ns + LKG_TRIAL_SAVE_NS
                                                                   : UINT64_MAX;
        first = due < save ? due : save;
        return first <= c->trial_failed_ns ? UINT64_MAX : first;
}

const char *lkg_component_unhealthy(const struct lkg_component *c)
{
        enum lkg_check bad;

        if (!c->dynamic || lkg_trial_health(&c->dynamic->trial, &bad) != LKG_HEALTH_BAD)
                return NULL;
        if (c->health[bad] == LKG_HEALTH_BAD)
                return c->health_words[bad];
        return *c->health_last_bad[bad] ? c->health_last_bad[bad] : "a check was bad when it was last asked";
}

/* ---- Events ---- */

void lkg_component_event_text(const struct lkg_component *c, const struct lkg_config_source *source,
                              const char *words, char ret[static LKG_EVENT_TEXT_MAX])
{
        const char *colon = *words ? ": " : "";

        if (lkg_config_source_is_local(source))
                (void)snprintf(ret, LKG_EVENT_TEXT_MAX, "%s: local configuration%s%.400s", c->config->name,
                               colon, words);
        else
                (void)snprintf(ret, LKG_EVENT_TEXT_MAX,
                               "%s: ConfigMap %.63s/%.253s, UID %.64s, resourceVersion %.64s%s%.400s",
                               c->config->name, source->ns, source->name, source->uid, source->version,
                               colon, words);
}
