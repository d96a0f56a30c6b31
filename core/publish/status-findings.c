/* SPDX-License-Identifier: Apache-2.0 */
/*
 * status/<component>/findings and findings.json: the same findings, for people and for programs. A line of
 * text cannot be parsed reliably: a file name may contain the separators.
 */
#include <lkg/text.h>

#include "status.h"

/* All of them, as they are shown: every note only to programs, which `lkgfs status --all` is one of. */
static void arrange(const struct lkg_status_context *x, bool all, struct lkg_report *ret)
{
        struct lkg_component_reports reports;

        lkg_component_reports(x->component, x->findings, &reports);
        for (size_t i = 0; i < reports.n_items; i++)
                lkg_report_append(ret, reports.items[i]);
        lkg_component_reports_deinit(&reports);
        lkg_report_arrange(ret, all);
}

void lkg_status_render_findings(const struct lkg_status_context *x, struct lkg_buf *buf)
{
        LKG_CLEANUP(lkg_report_deinit) struct lkg_report report = LKG_REPORT_INIT;
        LKG_CLEANUP(lkg_freep) char *text = NULL;
        size_t size;

        arrange(x, false, &report);
        text = lkg_report_format(&report, &size);
        if (text)
                lkg_buf_append(buf, text, size);
        else
                buf->failed = true;
}

static void put_json(const struct lkg_finding *f, struct lkg_json *json)
{
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

void lkg_status_render_findings_json(const struct lkg_status_context *x, struct lkg_buf *buf)
{
        LKG_CLEANUP(lkg_report_deinit) struct lkg_report report = LKG_REPORT_INIT;
        LKG_CLEANUP(lkg_json_deinit) struct lkg_json json = LKG_JSON_INIT;

        arrange(x, true, &report);
        lkg_json_map(&json, NULL, LKG_JSON_TIGHT);
        lkg_json_u64(&json, "schemaVersion", 1);
        lkg_json_u64(&json, "notListed", report.n_dropped);
        lkg_json_list(&json, "findings", LKG_JSON_LINES);
        for (size_t i = 0; i < report.n_findings; i++)
                put_json(&report.findings[i], &json);
        lkg_json_end(&json);
        lkg_json_end(&json);
        (void)lkg_json_write_line(&json, buf);
}
