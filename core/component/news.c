/* SPDX-License-Identifier: Apache-2.0 */
/* What a step of the lifecycle means to people: a line of the log, a figure of the metrics, an Event. */
#include <inttypes.h>

#include <lkg/component.h>
#include <lkg/log.h>

/* One piece of news. */
struct telling {
        struct lkg_component *c;
        const struct lkg_event *event;
        const struct lkg_step *step;
        struct lkg_log_fields fields;
        struct lkg_component_news *news;
};

static void say(const struct telling *t, bool warning, const char *reason,
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
        say(t, true, "ConfigRejected", &mark->source, mark->reason);
        t->c->dirty |= LKG_DIRTY_MARKS;
}

static void tell_rolled_back(const struct telling *t)
{
        const struct lkg_pointers *p = &t->step->next.pointers;

        lkg_log(LOG_WARNING, &t->fields, "rolling back to the last known good: %s", p->rollback.reason);
        say(t, true, "ConfigRolledBack", &p->rollback.from, p->rollback.reason);
        t->c->n_rollbacks[lkg_rollback_of(t->step->cause)]++;
        t->c->dirty |= LKG_DIRTY_MARKS;
        if (t->event->kind == LKG_EVENT_START)
                t->c->answers_start = true; /* it will read what is served then: no restart is needed */
}

static void tell_promoted(const struct telling *t)
{
        const struct lkg_good *good = &t->step->next.pointers.good;

        lkg_log(LOG_NOTICE, &t->fields, "generation %" PRIu64 " is the last known good", good->generation);
        say(t, false, "ConfigPromoted", &good->source, "");
}

static void tell_extended(const struct telling *t)
{
        char what[LKG_HEALTH_WORDS_MAX];

        (void)lkg_trial_say_unhealthy(&t->step->next.trial, t->event->reason, what);
        lkg_log(LOG_WARNING, &t->fields, "the trial goes on beyond its duration, not healthy: %s", what);
        say(t, true, "ConfigTrialExtended", lkg_tried_source(&t->step->next.pointers), what);
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
