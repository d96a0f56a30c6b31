/* SPDX-License-Identifier: Apache-2.0 */
/* Applies the configuration at a start and at a reload. */

#include <lkg/base.h>

#include "engine-internal.h"

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
