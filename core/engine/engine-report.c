/* SPDX-License-Identifier: Apache-2.0 */
/* What the cluster is told about the component that follows a reference: condition and Events. */
#include "engine-internal.h"

void lkg_engine_event(struct lkg_engine *e, const struct lkg_component *c, bool warning, const char *reason,
                      const struct lkg_config_source *source, const char *words)
{
        char message[LKG_EVENT_TEXT_MAX];

        if (!c->api_findings || !e->config->remote.events)
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
                .figures = *c->slot_words != '\0',
        };

        if (!c->api_findings)
                return;
        tell_activated(e, c);
        lkg_places_published(e->places, &condition);
}
