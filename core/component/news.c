/* SPDX-License-Identifier: Apache-2.0 */
/* What a step of the lifecycle means to people: a line of the log, a figure of the metrics, an Event. */
#include <inttypes.h>

#include <lkg/component.h>
#include <lkg/base.h>
#include <lkg/schema.h>

#define ROOM_KEPT 112 /* of the words: lkg_component_event_text() shows 400 bytes of them */

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
        lkg_buf_putc(&buf, '\0');
        if (lkg_buf_failed(&buf) || !*buf.data)
                (void)snprintf(ret, LKG_REASON_MAX, "%s", reason);
        else
                (void)snprintf(ret, LKG_REASON_MAX, "%s; %s", reason, buf.data);
}

static void tell_rolled_back(const struct telling *t)
{
        const struct lkg_pointers *p = &t->step->next.pointers;
        char words[LKG_REASON_MAX];

        say_why(t, words);
        lkg_log(LOG_WARNING, &t->fields, "rolling back to the last known good: %s", words);
        say(t, true, "ConfigRolledBack", &p->rollback.from, words);
        t->c->n_rollbacks[lkg_rollback_of(t->step->cause)]++;
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
