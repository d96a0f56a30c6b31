/* SPDX-License-Identifier: Apache-2.0 */
/* How long the component has run with the configuration on trial, and whether it is healthy. */
#include "engine-internal.h"

/* ---- does the component run the configuration on trial? ---- */

/* Its open() is not answered yet, so the generation that it will read is unknown. */
static bool waits_for_us(const struct lkg_engine *e, const struct lkg_component *c,
                         const struct lkg_tracked *t)
{
        for (size_t i = 0; i < e->n_starting; i++)
                if (e->starting[i].component == c->index && e->starting[i].pid == t->pid &&
                    e->starting[i].start_time == t->start_time)
                        return true;
        return false;
}

void lkg_engine_update_alive(struct lkg_engine *e, struct lkg_component *c)
{
        const struct lkg_dynamic *d = c->dynamic;
        struct lkg_event event = { .kind = LKG_EVENT_ALIVE };
        struct lkg_error err = { 0 };

        if (!d || !d->watched || !c->facts || d->trial.state != LKG_TRIAL_RUNNING)
                return;
        event.away = true;
        for (size_t i = 0; i < c->facts->n_processes; i++) {
                event.away = event.away && c->facts->processes[i].pidfd < 0;
                event.alive =
                        event.alive || (!waits_for_us(e, c, &c->facts->processes[i]) &&
                                        lkg_component_runs_tried(c, e->config, &c->facts->processes[i]));
        }
        (void)lkg_engine_step(e, c, &event, &err);
}

void lkg_engine_on_health(void *userdata)
{
        struct lkg_engine *e = userdata;

        if (e->started)
                e->hooks->cycle(e, /* look= */ false);
}

/* ---- the clock ---- */

void lkg_engine_tick_trial(struct lkg_engine *e, struct lkg_component *c)
{
        struct lkg_event event = { .kind = LKG_EVENT_TRIAL_DUE };
        struct lkg_error err = { 0 };

        if (lkg_health_update(e->probes, e->places, e->config, c))
                (void)lkg_engine_step(e, c, &(struct lkg_event){ .kind = LKG_EVENT_HEALTH }, &err);
        event.reason = lkg_component_unhealthy(c);
        if (!c->dynamic || c->dynamic->trial.state != LKG_TRIAL_RUNNING)
                return;
        c->trial_failed_ns = lkg_engine_step(e, c, &event, &err) < 0 ? lkg_boottime_ns() : 0;
}
