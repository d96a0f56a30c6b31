/* SPDX-License-Identifier: Apache-2.0 */
/* Layers that are not served: what is logged about them, and whether a component may start without them. */
#include <limits.h>
#include <sysexits.h>

#include <lkg/component.h>

void lkg_component_log_refusal(const struct lkg_component *c, const struct lkg_candidate *candidate)
{
        const struct lkg_log_fields fields = lkg_component_log_fields(c);
        const size_t n_errors = candidate->report.n_severity[LKG_ERROR];
        const struct lkg_finding *f = lkg_report_first_error(&candidate->report);
        struct lkg_where where;
        char place[PATH_MAX];

        if (!f)
                return;
        where = (struct lkg_where){ f->file, f->line, f->column };
        (void)lkg_where_text(&where, place, sizeof(place));
        lkg_log(LOG_WARNING, &fields, "refused, %zu error%s, the first: %s%s [LKG%04u]", n_errors,
                n_errors == 1 ? "" : "s", place, f->text, f->code);
}

static void log_all_findings(const struct lkg_component *c, const struct lkg_candidate *wrong)
{
        LKG_CLEANUP(lkg_report_deinit) struct lkg_report report = LKG_REPORT_INIT;
        LKG_CLEANUP(lkg_freep) char *text = NULL;
        const struct lkg_log_fields fields = { .component = c->config->name };
        char *rest, *line;

        lkg_report_append(&report, &wrong->report);
        lkg_report_arrange(&report, false);
        rest = text = lkg_report_format(&report, NULL);
        while (rest && (line = strsep(&rest, "\n")))
                if (*line)
                        lkg_log(LOG_ERR, &fields, "%s", line);
}

/*
 * The candidate that keeps a component from being served; with localPolicy strict, also the local one that
 * a remote one would hide.
 */
static const struct lkg_candidate *find_wrong(const struct lkg_component *c)
{
        const struct lkg_candidate *local = c->base ? lkg_component_local(c) : NULL;
        bool strict = c->config->local_policy != LKG_LOCAL_LKG;

        /* A lost checkpoint is not a mistake in the local layers: what is served stays. */
        if (c->candidate->state == LKG_CANDIDATE_INVALID && !(c->active && c->base && c->base->fault))
                return strict || !c->active ? c->candidate : NULL;
        return strict && local && local->state == LKG_CANDIDATE_INVALID && lkg_component_local_errors(c) > 0
                       ? local
                       : NULL;
}

int lkg_component_check_first(const struct lkg_component *c, const char *source_path,
                              const char *mount_point, struct lkg_error *err)
{
        const struct lkg_candidate *wrong;
        const struct lkg_finding *f;
        struct lkg_where where;
        char place[PATH_MAX];

        if (!c->candidate) {
                (void)lkg_error_set(err, -EIO, NULL, "component %s: %s.", c->config->name,
                                    c->fault ? c->fault : "the layers cannot be looked at");
                return c->active && c->config->local_policy == LKG_LOCAL_LKG ? 0 : EX_IOERR;
        }
        if (c->candidate->state == LKG_CANDIDATE_NAME_TAKEN) {
                (void)lkg_error_set(
                        err, -EINVAL, NULL,
                        "%s/%s is a kubeconfig, and component %s would have to hide it; write into the "
                        "configuration:\ncomponents:\n  - name: %s\n    file: %s-config.yaml\n    base: "
                        "/var/lib/%s/config.yaml\n    dropInDir: %s.conf.d\nand start the component with "
                        "--config=%s/%s-config.yaml.",
                        source_path, c->config->file, c->config->name, c->config->name, c->config->name,
                        c->config->name, c->config->name, mount_point ? mount_point : source_path,
                        c->config->name);
                log_all_findings(c, c->candidate);
                return EX_CONFIG;
        }
        wrong = find_wrong(c);
        if (!wrong)
                return 0;
        log_all_findings(c, wrong);
        f = lkg_report_first_error(&wrong->report);
        where = f ? (struct lkg_where){ f->file, f->line, f->column } : (struct lkg_where){ 0 };
        (void)lkg_where_text(&where, place, sizeof(place));
        (void)lkg_error_set(err, -EINVAL, NULL, "component %s: %zu error%s and %s: %s%s.", c->config->name,
                            wrong->report.n_severity[LKG_ERROR],
                            wrong->report.n_severity[LKG_ERROR] == 1 ? "" : "s",
                            c->active ? "localPolicy is strict" : "no last-known-good to serve instead",
                            place, f ? f->text : "");
        return EX_CONFIG;
}
