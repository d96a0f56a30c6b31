/* SPDX-License-Identifier: Apache-2.0 */
/*
 * SIGHUP: reads the configuration again. Settings of the mount itself wait for the next mount, with a message; the others apply
 * with the next publication. Components that stay keep what they serve; a configuration with errors changes nothing.
 */
#include "engine-internal.h"

#include <lkg/base.h>

static void free_components(struct lkg_component *components, size_t n)
{
        for (size_t i = 0; i < n; i++)
                lkg_component_deinit(&components[i]);
        free(components);
}

static int apply_config(struct lkg_engine *e, struct lkg_config *next, struct lkg_error *err)
{
        struct lkg_component *old = e->components;
        struct lkg_config *old_config = e->config;
        size_t n_old = e->n_components;
        struct lkg_error ignored = { 0 };
        int r;

        e->config = next;
        e->components = NULL;
        e->n_components = 0;
        r = lkg_engine_new_components(e, err);
        if (r >= 0)
                r = lkg_engine_build_rules(e, err);
        if (r < 0) { /* out of memory, or the state directory is gone: continue as before */
                free_components(e->components, e->n_components);
                e->components = old;
                e->n_components = n_old;
                e->config = old_config;
                lkg_config_free(next);
                return r;
        }
        for (size_t i = 0; i < e->n_components; i++) {
                struct lkg_component *from = lkg_component_find(old, n_old, e->components[i].config->name);

                if (from)
                        lkg_component_keep(&e->components[i], from);
                else
                        lkg_component_recover_last_good(&e->components[i]);
        }
        lkg_publisher_reset(e->publisher);
        lkg_places_set_config(e->places, next);
        free_components(old, n_old);
        lkg_config_free(old_config);
        if (lkg_engine_reload_dynamic(e, &ignored) < 0)
                lkg_log_error("dynamic configuration is off: %s", ignored.message);
        lkg_engine_unwatch_facts(e); /* e->facts is indexed by component */
        if (lkg_engine_open_facts(e, &ignored) < 0 || lkg_engine_watch_facts(e) < 0)
                lkg_log_error("cannot watch what is known about the components: %s", ignored.message);
        return 0;
}

void lkg_engine_reload(struct lkg_engine *e)
{
        struct lkg_config *next = NULL;
        struct lkg_report report = LKG_REPORT_INIT;
        struct lkg_error err = { 0 };
        int r = lkg_engine_load_config(e, &next, &report);

        lkg_report_deinit(&e->reload_report);
        if (r < 0) {
                lkg_report_add(&e->reload_report, LKG_ERROR, 4011, NULL,
                               "the configuration was not reloaded, the one before stays in force");
                lkg_report_append(&e->reload_report, &report);
                lkg_log_error("the configuration was not reloaded: %zu findings", report.n_findings);
        } else {
                lkg_engine_persist(e); /* new components read their history from disk */
                lkg_config_keep_mount(e->config, next, &e->reload_report);
                lkg_report_deinit(&e->report);
                lkg_report_append(&e->report, &report);
                r = apply_config(e, next, &err);
                if (r < 0)
                        lkg_log_error("the configuration was not reloaded: %s", err.message);
                else
                        lkg_log_notice("the configuration was reloaded");
        }
        for (size_t i = 0; i < e->reload_report.n_findings; i++)
                lkg_log_notice("%s", e->reload_report.findings[i].text);
        lkg_report_deinit(&report);
        lkg_engine_mark_findings(e);
        e->settled.new_stacks = r >= 0;
        lkg_watch_touch(&e->watch, NULL);
        lkg_engine_cycle(e, /* look= */ true);
        e->settled.new_stacks = false;
}

/* ---- engine-config ---- */

/* Applies the configuration at a start and at a reload. */

int lkg_engine_load_config(const struct lkg_engine *e, struct lkg_config **ret, struct lkg_report *report)
{
        const struct lkg_config_options options = {
                .path = e->config_path,
                .vendor_dir = e->vendor_dir,
                .trust_any_owner = e->options.trust_any_owner,
        };

        return lkg_config_load(&options, ret, report);
}

int lkg_engine_new_components(struct lkg_engine *e, struct lkg_error *err)
{
        e->components = calloc(e->config->n_components, sizeof(*e->components));
        if (!e->components)
                return lkg_error_set(err, -ENOMEM, NULL, "components");
        for (size_t i = 0; i < e->config->n_components; i++) {
                int r = lkg_component_init(&e->components[i], lkg_engine_env(e), (unsigned)i, &e->report,
                                           err);

                if (r < 0)
                        return r;
                e->n_components++;
        }
        return 0;
}

int lkg_engine_build_rules(struct lkg_engine *e, struct lkg_error *err)
{
        struct lkg_manifest_rules rules;
        size_t before = e->report.n_findings;
        int r = lkg_rules_build(e->config, e->options.source_fd, e->source_path, &rules, &e->report);

        if (r < 0)
                return lkg_error_set(err, r, NULL, "rules");
        lkg_rules_deinit(&e->rules);
        e->rules = rules;
        for (size_t i = before; i < e->report.n_findings; i++)
                lkg_log_warning("%s: %s", e->source_path, e->report.findings[i].text);
        return 0;
}
