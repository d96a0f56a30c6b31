/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the parts of the engine. These functions call none of the parts. */
#include <lkg/base.h>

#include "engine-internal.h"

const struct lkg_component_env *lkg_engine_env(struct lkg_engine *e)
{
        e->env = (struct lkg_component_env){
                .config = e->config,
                .state = &e->state,
                .poison = &e->poison,
                .source_fd = e->options.source_fd,
                .source_path = e->source_path,
                .settled = &e->settled,
                .store = &e->store,
        };
        return &e->env;
}

void lkg_engine_mark_findings(struct lkg_engine *e)
{
        lkg_report_deinit(&e->shown);
        lkg_report_append(&e->shown, &e->report);
        lkg_report_append(&e->shown, &e->reload_report);
        for (size_t i = 0; i < e->n_components; i++)
                e->components[i].dirty |= LKG_DIRTY_FINDINGS;
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
                c->state_changed = false;
        return r;
}

void lkg_engine_retry_by(struct lkg_engine *e, uint64_t at_ns)
{
        if (e->retry_at_ns > at_ns)
                e->retry_at_ns = at_ns;
}
