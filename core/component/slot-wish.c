/* SPDX-License-Identifier: Apache-2.0 */
/* Which slot of which rollout a component wants, keeps or gives back (<lkg/slots.h>). */
#include <lkg/component.h>

#define OWED_NS (3600 * LKG_NSEC_PER_SEC)

static bool knows_limits(const struct lkg_component *c)
{
        return c->limits.max_in_trial &&
               lkg_config_source_equal(&c->limits_of, &c->dynamic->pointers.assigned);
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
        const struct lkg_rollout_limits *limits = &c->limits;

        *ret = (struct lkg_slot_wish){ .any = false };
        if (!c->dynamic)
                return;
        ret->duration_ns = c->limits_duration_ns;
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
        ret->any = c->slot_needed &&
                   c->state.hold.mode == LKG_HOLD_FREE; /* nothing is tried while it is held */
        ret->newest = lkg_config_source_same_content(source, newest);
        ret->max_in_trial = limits->max_in_trial;
        ret->max_failures = limits->max_failures;
        ret->fleet = limits->fleet;
        if (lkg_rollout_id_of(source, &ret->id) < 0)
                *ret->id.uid = '\0'; /* no memory: the next cycle tries again */
        ret->any = ret->any && *ret->id.uid;
}

void lkg_component_say_slot(struct lkg_component *c, const char *words)
{
        if (strcmp(c->slot_words, words) == 0)
                return;
        (void)snprintf(c->slot_words, sizeof(c->slot_words), "%s", words);
}
