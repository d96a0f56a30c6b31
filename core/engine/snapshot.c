/* SPDX-License-Identifier: Apache-2.0 */
/* What the cluster is told about the component that follows a reference: condition and Events. */
#include "engine-internal.h"

#include <lkg/base.h>

void lkg_engine_event(struct lkg_engine *e, const struct lkg_component *c, bool warning, const char *reason,
                      const struct lkg_config_source *source, const char *words)
{
        char message[LKG_EVENT_TEXT_MAX];

        if ((!c->findings.api && !c->pods) || !e->env.config->remote.events)
                return;
        lkg_component_event_text(c, source, words, message);
        lkg_places_event(e->places, warning, reason, message);
}

/* The assigned configuration is served. Only the engine that serves it first reports that, not one that finds it at its start. */
static void tell_activated(struct lkg_engine *e, const struct lkg_component *c)
{
        struct lkg_config_source shown;
        char id[LKG_SOURCE_ID_MAX + 1];

        if (!c->active)
                return;
        lkg_config_source_id(lkg_component_shown(c, &shown), id);
        if (lkg_places_note_served(e->places, id) &&
            lkg_config_source_equal(&shown, &c->dynamic->pointers.assigned))
                lkg_engine_event(e, c, false, "ConfigActivated", &shown, "");
}

void lkg_engine_report(struct lkg_engine *e, const struct lkg_component *c)
{
        const struct lkg_node_condition condition = {
                .status = lkg_condition_status_name(c->condition.status),
                .reason = c->condition.reason,
                .message = c->condition.message,
                .transition_ns = c->condition.transition_ns,
                .figures = *c->slots.words != '\0',
                .pods = c->pods != NULL,
        };

        if (!c->findings.api && !c->pods)
                return;
        if (c->findings.api)
                tell_activated(e, c);
        lkg_places_published(e->places, &condition);
}

/* ---- engine-parts ---- */

/* Shared by the parts of the engine. These functions call none of the parts. */

struct lkg_component *lkg_engine_kubelet(const struct lkg_engine *e)
{
        for (size_t i = 0; i < e->n_components; i++) {
                const struct lkg_candidate *candidate = e->components[i].candidate;

                if (candidate && candidate->schema && lkg_schema_is_kubelet(candidate->schema))
                        return &e->components[i];
        }
        return NULL;
}

void lkg_engine_mark_findings(struct lkg_engine *e)
{
        lkg_report_deinit(&e->reports.shown);
        lkg_report_append(&e->reports.shown, &e->reports.setup);
        lkg_report_append(&e->reports.shown, &e->reports.reload);
}

int lkg_engine_save_record(struct lkg_engine *e, struct lkg_component *c,
                           const struct lkg_component_state *record)
{
        const struct lkg_log_fields fields = lkg_component_log_fields(c);
        struct lkg_error err = { 0 };
        int r = lkg_state_save_component(&e->state, c->config->name, record, /* durable= */ true, &err);

        if (r < 0)
                lkg_log(LOG_ERR, &fields, "cannot save the state: %s", err.message);
        else
                c->due.record = false;
        return r;
}

void lkg_engine_retry_by(struct lkg_engine *e, uint64_t at_ns)
{
        if (e->clock.retry_at_ns > at_ns)
                e->clock.retry_at_ns = at_ns;
}

/* When it has been quiet for a while, but at most LKG_PERSIST_MAX_NS after the first event of a burst. */
void lkg_engine_persist_soon(struct lkg_engine *e)
{
        uint64_t now = lkg_boottime_ns();

        if (e->clock.persist_at_ns == LKG_NEVER)
                e->clock.persist_last_ns = now + LKG_PERSIST_MAX_NS;
        e->clock.persist_at_ns = lkg_earlier(now + LKG_PERSIST_NS, e->clock.persist_last_ns);
}

/* A refused change is still a success: status/ says why. */
void lkg_engine_answer_looked_at(struct lkg_engine *e)
{
        if (!e->batch.is_looked_at)
                return;
        for (size_t i = 0; i < e->batch.n; i++)
                lkg_server_done(e->batch.items[i].peer, e->batch.items[i].ticket, 0,
                                lkg_publisher_number(e->publisher));
        e->batch.n = 0;
}

/* ---- engine-snapshot ---- */

/* What the engine knows at one moment, for the publisher (<lkg/publish.h>). */

void lkg_engine_take_snapshot(struct lkg_engine *e, struct lkg_engine_snapshot *ret)
{
        for (size_t i = 0; i < e->n_components; i++) {
                const struct lkg_component *c = &e->components[i];

                if (c->findings.api) {
                        lkg_places_status(e->places, &ret->remote[i]);
                        ret->remote[i].restart_ns = lkg_component_planned_restart(c);
                }
                ret->components[i] = (struct lkg_snapshot_component){
                        .component = c,
                        .remote = c->findings.api ? &ret->remote[i] : NULL,
                };
        }
        ret->snapshot = (struct lkg_snapshot){
                .config = e->env.config,
                .components = ret->components,
                .n_components = e->n_components,
                .rules = &e->rules,
                .findings = &e->reports.shown,
                .now_ns = lkg_realtime_ns(),
        };
}
