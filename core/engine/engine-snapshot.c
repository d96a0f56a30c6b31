/* SPDX-License-Identifier: Apache-2.0 */
/* What the engine knows at one moment, for the publisher (<lkg/publish.h>). */
#include "engine-internal.h"

void lkg_engine_take_snapshot(struct lkg_engine *e, struct lkg_engine_snapshot *ret)
{
        for (size_t i = 0; i < e->n_components; i++) {
                const struct lkg_component *c = &e->components[i];

                if (c->api_findings) {
                        lkg_places_status(e->places, &ret->remote[i]);
                        ret->remote[i].restart_ns = lkg_component_planned_restart(c);
                }
                ret->components[i] = (struct lkg_snapshot_component){
                        .component = c,
                        .remote = c->api_findings ? &ret->remote[i] : NULL,
                        .changed = c->dirty,
                };
        }
        ret->snapshot = (struct lkg_snapshot){
                .config = e->config,
                .components = ret->components,
                .n_components = e->n_components,
                .rules = &e->rules,
                .findings = &e->shown,
                .now_ns = lkg_realtime_ns(),
        };
}

void lkg_engine_note_published(struct lkg_engine *e, const struct lkg_engine_snapshot *snapshot)
{
        for (size_t i = 0; i < e->n_components; i++)
                e->components[i].dirty = snapshot->components[i].changed;
}
