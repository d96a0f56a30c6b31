/* SPDX-License-Identifier: Apache-2.0 */
/*
 * status/<component>/findings and findings.json: the same findings, for people and for programs. A line of
 * text cannot be parsed reliably: a file name may contain the separators.
 */
#include <lkg/json-out.h>

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

static void put_layers_cut(const struct lkg_status_context *x, put_fn *put, void *to)
{
        LKG_CLEANUP(lkg_report_deinit) struct lkg_report report = LKG_REPORT_INIT;

        if (!x->layers_cut)
                return;
        lkg_report_add(&report, LKG_NOTE, 4010, NULL,
                       "layers/%s does not show every layer: too many, or too large",
                       x->component->config->name);
        put(&report, to);
}

/* Return: how many were only counted. */
static size_t put_all(const struct lkg_status_context *x, put_fn *put, void *to)
{
        struct lkg_component_reports reports;
        size_t n_dropped = 0;

        lkg_component_reports(x->component, x->findings, &reports);
        for (size_t i = 0; i < reports.n_items; i++) {
                put(reports.items[i], to);
                n_dropped += reports.items[i]->n_dropped;
        }
        lkg_component_reports_deinit(&reports);
        put_layers_cut(x, put, to);
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
        lkg_json_u64(&json, "notListed", 0); /* placed here, but known only after the list */
        lkg_json_list(&json, "findings", LKG_JSON_LINES);
        n_dropped = put_all(x, put_json, &json);
        lkg_json_end(&json);
        lkg_json_u64(&json, "notListed", n_dropped);
        lkg_json_end(&json);
        (void)lkg_json_write_line(&json, buf);
}
