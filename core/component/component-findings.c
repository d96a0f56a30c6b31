/* SPDX-License-Identifier: Apache-2.0 */
/* All findings about a component, in the order in which they are shown. */
#include <lkg/component.h>

/*
 * Errors in the local layers that a remote configuration hides: what would be wrong after a rollback. An
 * error that a drop-in has over both bases is already reported.
 */
static void add_local_errors(const struct lkg_component *c, struct lkg_component_reports *reports)
{
        const struct lkg_candidate *local = c->base ? lkg_component_local(c) : NULL;
        struct lkg_report *errors = &reports->local;

        for (size_t i = 0; local && i < local->report.n_findings; i++) {
                const struct lkg_finding *f = &local->report.findings[i];

                if (f->code == LKG_BASE_MISSING)
                        lkg_report_add(
                                errors, LKG_WARNING, f->code, &(struct lkg_where){ .file = f->file },
                                "the base does not exist; a remote configuration stands in its place, but a "
                                "reset to local would be refused: put it back, or write base: \"\" for this "
                                "component if there is to be none");
                else if (f->severity == LKG_ERROR && !f->incomplete &&
                         !(c->candidate && lkg_report_has(&c->candidate->report, f)))
                        lkg_report_add_copy(errors, f);
        }
        reports->items[reports->n_items++] = errors;
}

/*
 * If the base is our own fallback copy, the stack has none and reports that as LKG_NO_BASE. The correct
 * finding is in c->findings.
 */
static void copy_without_base(const struct lkg_report *report, struct lkg_report *copy)
{
        for (size_t i = 0; i < report->n_findings; i++)
                if (report->findings[i].code != LKG_NO_BASE)
                        lkg_report_add_copy(copy, &report->findings[i]);
        copy->n_dropped = report->n_dropped;
}

static void add(struct lkg_component_reports *reports, const struct lkg_report *report)
{
        if (report)
                reports->items[reports->n_items++] = report;
}

/* The reports that follow those of the layers. */
static void add_others(const struct lkg_component *c, const struct lkg_report *node,
                       struct lkg_component_reports *reports)
{
        add(reports, &c->remote_findings);
        add(reports, c->api_findings);
        add(reports, &c->findings);
        add(reports, &c->fallback_findings);
        add(reports, &c->facts_findings);
        add(reports, node);
}

void lkg_component_reports(const struct lkg_component *c, const struct lkg_report *node,
                           struct lkg_component_reports *ret)
{
        *ret = (struct lkg_component_reports){ .n_items = 0 };
        if (c->candidate && c->base_is_fallback) {
                copy_without_base(&c->candidate->report, &ret->layers);
                add(ret, &ret->layers);
        } else if (c->candidate) {
                add(ret, &c->candidate->report);
        }
        add_local_errors(c, ret);
        add_others(c, node, ret);
}

void lkg_component_reports_deinit(struct lkg_component_reports *reports)
{
        lkg_report_deinit(&reports->layers);
        lkg_report_deinit(&reports->local);
}

void lkg_component_count_findings(const struct lkg_component *c, const struct lkg_report *node,
                                  size_t ret[static _LKG_SEVERITY_MAX])
{
        struct lkg_component_reports reports = { .n_items = 0 };

        add(&reports, c->candidate ? &c->candidate->report : NULL);
        add_local_errors(c, &reports);
        add_others(c, node, &reports);
        for (int s = 0; s < _LKG_SEVERITY_MAX; s++) {
                ret[s] = 0;
                for (size_t i = 0; i < reports.n_items; i++)
                        ret[s] += reports.items[i]->n_severity[s];
        }
        lkg_component_reports_deinit(&reports);
}
