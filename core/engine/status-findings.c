/* SPDX-License-Identifier: Apache-2.0 */
/*
 * status/<component>/findings and findings.json: the same findings, for people and for programs. A line of text cannot be taken
 * apart again: a file name may hold whatever separates its parts.
 */
#include <lkg/json-out.h>

#include "engine-internal.h"
#include "status.h"

/* @to: a buffer for lines, a list for objects. */
typedef void put_fn(const struct lkg_report *report, void *to);

static void put_text(const struct lkg_report *report, void *to)
{
        LKG_CLEANUP(lkg_freep) char *text = NULL;
        struct lkg_buf *buf = to;
        size_t size;

        text = lkg_report_format(report, &size);
        if (text)
                lkg_buf_append(buf, text, size);
        else
                buf->failed = true;
}

static void put_json(const struct lkg_report *report, void *to)
{
        struct lkg_json *json = to;

        for (size_t i = 0; i < report->n_findings; i++) {
                const struct lkg_finding *f = &report->findings[i];
                char code[16];

                (void)snprintf(code, sizeof(code), "LKG%04u", f->code);
                lkg_json_map(json, NULL, LKG_JSON_AROUND);
                lkg_json_text(json, "severity", lkg_severity_name(f->severity));
                lkg_json_text(json, "code", code);
                lkg_json_foreign(json, "text", f->text);
                if (f->file)
                        lkg_json_foreign(json, "file", f->file);
                if (f->file && f->line) {
                        lkg_json_u64(json, "line", f->line);
                        lkg_json_u64(json, "column", f->column ? f->column : 1);
                }
                lkg_json_end(json);
        }
}

/*
 * Of the local layers that a remote configuration hides: what would be wrong after a rollback. What is wrong with a drop-in is
 * the same over both bases, and was said.
 */
static void local_errors(const struct lkg_component *c, struct lkg_report *errors)
{
        const struct lkg_report *report = &c->local.candidate->report;

        for (size_t i = 0; i < report->n_findings; i++) {
                const struct lkg_finding *f = &report->findings[i];

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
}

static void put_local(const struct lkg_component *c, put_fn *put, void *to)
{
        LKG_CLEANUP(lkg_report_deinit) struct lkg_report errors = LKG_REPORT_INIT;

        local_errors(c, &errors);
        put(&errors, to);
}

static void put_layers_cut(const struct lkg_component *c, put_fn *put, void *to)
{
        LKG_CLEANUP(lkg_report_deinit) struct lkg_report report = LKG_REPORT_INIT;

        if (!c->layers_cut)
                return;
        lkg_report_add(&report, LKG_NOTE, 4010, NULL,
                       "layers/%s does not show every layer: too many, or too large", c->config->name);
        put(&report, to);
}

/*
 * The stack of a component whose base is our own copy has none, and takes that for what is wanted. What is true of it stands in
 * c->findings.
 */
static void put_candidate(const struct lkg_component *c, put_fn *put, void *to)
{
        LKG_CLEANUP(lkg_report_deinit) struct lkg_report copy = LKG_REPORT_INIT;
        const struct lkg_report *report = &c->candidate->report;

        if (!c->base_is_fallback) {
                put(report, to);
                return;
        }
        for (size_t i = 0; i < report->n_findings; i++)
                if (report->findings[i].code != LKG_NO_BASE)
                        lkg_report_add_copy(&copy, &report->findings[i]);
        copy.n_dropped = report->n_dropped;
        put(&copy, to);
}

/* Those that stand behind the layers' own. */
#define OTHERS_MAX 6

static size_t others(const struct lkg_component *c, const struct lkg_report *node,
                     const struct lkg_report *ret[static OTHERS_MAX])
{
        const struct lkg_report *reports[OTHERS_MAX] = {
                &c->remote_findings, c->api ? &c->api->findings : NULL,
                &c->findings,        &c->fallback_findings,
                &c->facts_findings,  node,
        };
        size_t n = 0;

        for (size_t i = 0; i < OTHERS_MAX; i++)
                if (reports[i])
                        ret[n++] = reports[i];
        return n;
}

void lkg_status_count_findings(const struct lkg_component *c, const struct lkg_report *node,
                               size_t ret[static _LKG_SEVERITY_MAX])
{
        LKG_CLEANUP(lkg_report_deinit) struct lkg_report local = LKG_REPORT_INIT;
        const struct lkg_report *reports[OTHERS_MAX];
        size_t n = others(c, node, reports);

        if (c->base && c->local.candidate)
                local_errors(c, &local);
        for (int s = 0; s < _LKG_SEVERITY_MAX; s++) {
                ret[s] = local.n_severity[s] + (c->candidate ? c->candidate->report.n_severity[s] : 0);
                for (size_t i = 0; i < n; i++)
                        ret[s] += reports[i]->n_severity[s];
        }
}

/* Return: how many were only counted. */
static size_t put_all(const struct lkg_status_context *x, put_fn *put, void *to)
{
        const struct lkg_component *c = x->component;
        const struct lkg_report *reports[OTHERS_MAX];
        size_t n_dropped = 0, n = others(c, x->findings, reports);

        if (c->candidate) {
                put_candidate(c, put, to);
                n_dropped = c->candidate->report.n_dropped;
        }
        if (c->base && c->local.candidate)
                put_local(c, put, to);
        for (size_t i = 0; i < n; i++) {
                put(reports[i], to);
                n_dropped += reports[i]->n_dropped;
        }
        put_layers_cut(c, put, to);
        return n_dropped;
}

void lkg_status_render_findings(const struct lkg_status_context *x, struct lkg_buf *buf)
{
        (void)put_all(x, put_text, buf);
}

void lkg_status_render_findings_json(const struct lkg_status_context *x, struct lkg_buf *buf)
{
        LKG_CLEANUP(lkg_json_deinit) struct lkg_json json = LKG_JSON_INIT;
        size_t n_dropped;

        lkg_json_map(&json, NULL, LKG_JSON_TIGHT);
        lkg_json_u64(&json, "schemaVersion", 1);
        lkg_json_u64(&json, "notListed", 0); /* stands here, and is known behind the list */
        lkg_json_list(&json, "findings", LKG_JSON_LINES);
        n_dropped = put_all(x, put_json, &json);
        lkg_json_end(&json);
        lkg_json_u64(&json, "notListed", n_dropped);
        lkg_json_end(&json);
        (void)lkg_json_write_line(&json, buf);
}
