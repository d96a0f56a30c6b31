/* SPDX-License-Identifier: Apache-2.0 */
/* What is wrong with a component: the findings that are shown, those about the served document, and layers that are refused. */
#include <limits.h>
#include <sysexits.h>

#include <lkg/component.h>
#include <lkg/documents.h>

/* ---- all findings, in the order in which they are shown ---- */

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
 * finding is in c->findings.engine.
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
        add(reports, &c->assigned.findings);
        add(reports, c->findings.api);
        add(reports, &c->findings.engine);
        add(reports, &c->findings.fallback);
        add(reports, &c->findings.facts);
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

/* ---- differences between the files on disk and the pinned generation ---- */

#define DIFFERENCES_MAX 10

struct difference {
        struct lkg_buf names;
        size_t n;
};

static int add_name(const char *pointer, const struct lkg_value *a, const struct lkg_value *b,
                    void *userdata)
{
        struct difference *d = userdata;

        (void)a;
        (void)b;
        if (d->n++ >= DIFFERENCES_MAX)
                return 0;
        if (d->n > 1)
                lkg_buf_puts(&d->names, ", ");
        lkg_pointer_text(pointer, &d->names);
        return 0;
}

/* Names fields only: a value may be a secret. */
static void note_difference(const struct lkg_component *c, const char *holder, struct lkg_report *report)
{
        LKG_CLEANUP(lkg_value_unrefp) struct lkg_value *served = NULL;
        struct difference d = { .names = LKG_BUF_INIT };

        if (lkg_decode_own(c->active->document.data, c->active->document.size, 0, NULL, &served) >= 0)
                (void)lkg_value_compare(c->candidate->doc, served, add_name, &d);
        lkg_report_add(
                report, LKG_WARNING, 4006, NULL,
                "the try was not committed in time: the files on disk differ from generation %llu, which is "
                "held%s, in %s%s; repair them, then write off to %scontrol/%s/hold",
                (unsigned long long)c->active->number, holder, d.names.data ? d.names.data : "some fields",
                d.n > DIFFERENCES_MAX ? ", ..." : "", c->names.top, c->config->name);
        lkg_buf_deinit(&d.names);
}

static void note_hold(const struct lkg_component *c, struct lkg_report *report)
{
        const struct lkg_hold *hold = &c->state.hold;
        bool waits = lkg_component_verdict(c) == LKG_WAIT;
        char holder[LKG_HOLDER_MAX];

        lkg_condition_holder(&c->state.held_by, hold->mode, holder);
        if (hold->mode == LKG_HOLD_TRY_EXPIRED && waits && c->active && c->candidate && c->candidate->doc)
                note_difference(c, holder, report);
        else
                lkg_report_add(report, waits ? LKG_WARNING : LKG_NOTE, waits ? 4018 : 4019, NULL,
                               "held%s at generation %llu (%s)%s; nothing newer is served before off is "
                               "written to %scontrol/%s/hold%s",
                               holder, (unsigned long long)hold->generation, lkg_hold_mode_name(hold->mode),
                               waits ? ", and a newer one waits" : "", c->names.top, c->config->name,
                               hold->mode == LKG_HOLD_ROLLBACK && c->dynamic
                                       ? ", or another configuration is assigned"
                                       : "");
}

static void note_try(const struct lkg_component *c, struct lkg_report *report)
{
        const struct lkg_hold *hold = &c->state.hold;
        char until[21];

        if (hold->try_phase == LKG_TRY_ARMED) {
                lkg_report_add(
                        report, LKG_NOTE, 4015, NULL,
                        "a try of %llu s is armed: the next change is taken back unless now is written to "
                        "%scontrol/%s/commit in time",
                        (unsigned long long)(hold->try_duration_ns / LKG_NSEC_PER_SEC), c->names.top,
                        c->config->name);
                return;
        }
        lkg_format_rfc3339(lkg_component_try_deadline(c), until);
        lkg_report_add(report, LKG_NOTE, 4020, NULL,
                       "on try until %s, then back to generation %llu unless now is written to "
                       "%scontrol/%s/commit",
                       until, (unsigned long long)hold->try_previous, c->names.top, c->config->name);
}

/* Appends `/etc/kubernetes/kubelet.conf (base)`, for example; nothing if @path is not configured. */
static void put_place(struct lkg_buf *buf, const struct lkg_component *c, const char *path,
                      const char *suffix, const char *what)
{
        if (!*path)
                return;
        lkg_buf_printf(buf, "%s%s%s%s%s (%s)", buf->size ? ", " : "",
                       *path == '/' ? "" : c->env->source_path, *path == '/' ? "" : "/", path, suffix, what);
}

static void note_no_layer(const struct lkg_component *c, struct lkg_report *report)
{
        LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf places = LKG_BUF_INIT;

        put_place(&places, c, c->config->base, "", "base");
        put_place(&places, c, c->config->dropin_dir, "/*.conf", "drop-ins");
        put_place(&places, c, c->config->instance, "", "instance");
        lkg_report_add(report, LKG_WARNING, 4021, NULL, "no layer found, so %s is not served; looked for %s",
                       c->config->file, lkg_buf_text(&places));
}

/*
 * Our own fallback copy is in place of a base that never existed; the stack does not see it and reports
 * nothing about it.
 */
static void note_no_base(const struct lkg_component *c, struct lkg_report *report)
{
        if (!c->base_is_fallback || c->base || !c->candidate || c->candidate->n_layers == 0 ||
            c->candidate->has_base || *lkg_component_wanted_base(c))
                return;
        lkg_report_add(
                report, LKG_WARNING, LKG_NO_BASE, NULL,
                "%s has no base file (%s is only lkgfs' own copy of what is served); the other layers "
                "are merged alone",
                c->config->name, c->config->base);
}

void lkg_component_note(struct lkg_component *c)
{
        struct lkg_report report = LKG_REPORT_INIT;
        const char *waiting = lkg_component_waiting(c);

        if (*c->state.lost)
                lkg_report_add(&report, LKG_WARNING, 4022, NULL,
                               "could not be kept: %s; give the command again if it is still wanted, any "
                               "command or change ends this message",
                               c->state.lost);
        if (c->state.hold.mode != LKG_HOLD_FREE)
                note_hold(c, &report);
        if (c->state.hold.try_phase != LKG_TRY_NONE)
                note_try(c, &report);
        if (waiting)
                lkg_report_add(&report, LKG_NOTE, 6009, NULL,
                               "%s; what was assigned before stays until the fleet's operator lets it go on",
                               waiting);
        if (c->candidate && c->candidate->state == LKG_CANDIDATE_NONE && !c->active)
                note_no_layer(c, &report);
        note_no_base(c, &report);
        lkg_report_deinit(&c->findings.engine);
        c->findings.engine = report;
}

/* ---- layers that are not served ---- */

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

int lkg_component_check_first(const struct lkg_component *c, struct lkg_error *err)
{
        const char *source_path = c->env->source_path, *mount_point = c->env->mount_point;
        const struct lkg_candidate *wrong;
        const struct lkg_finding *f;
        struct lkg_where where;
        char place[PATH_MAX];

        if (!c->candidate) {
                (void)lkg_error_set(err, -EIO, NULL, "component %s: %s.", c->config->name,
                                    c->faults.text ? c->faults.text : "the layers cannot be looked at");
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
