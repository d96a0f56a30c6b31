/* SPDX-License-Identifier: Apache-2.0 */
/* The page of a report: its head, and the order of its sections: what is wrong first, what one looks up last. */
#include "report-page.h"

static const struct {
        const char *id, *title;
} contents[] = {
        { "problems", "Problems" }, { "findings", "Findings" },   { "served", "Served" },
        { "timeline", "Timeline" }, { "changes", "Differences" }, { "bad", "Marked bad" },
        { "layers", "Layers" },     { "processes", "Processes" }, { "environment", "Environment" },
        { "log", "Log" },           { "unread", "Not read" },
};

static void put_contents(struct lkg_buf *buf)
{
        lkg_buf_puts(buf, "<nav aria-label=\"Sections\"><ul>\n");
        for (size_t i = 0; i < LKG_ARRAY_SIZE(contents); i++)
                lkg_buf_printf(buf, "<li><a href=\"#%s\">%s</a></li>\n", contents[i].id, contents[i].title);
        lkg_buf_puts(buf, "</ul></nav>\n");
}

static void put_count(struct lkg_buf *buf, size_t n, const char *severity)
{
        if (!n)
                return;
        lkg_html_severity(buf, severity);
        lkg_buf_printf(buf, "<span>%zu</span>\n", n);
}

static void put_verdict(const struct lkg_report_counts *counts, struct lkg_buf *buf)
{
        const size_t *n = counts->n;

        lkg_buf_puts(buf, "<p class=\"verdict\">");
        if (n[LKG_ERROR] + n[LKG_WARNING] == 0) {
                lkg_html_severity(buf, "good");
                lkg_buf_puts(buf, "<span>No problem was found.</span>");
        } else {
                lkg_buf_printf(buf, "<span>%zu problem%s:</span> ", n[LKG_ERROR] + n[LKG_WARNING],
                               n[LKG_ERROR] + n[LKG_WARNING] == 1 ? "" : "s");
                put_count(buf, n[LKG_ERROR], "error");
                put_count(buf, n[LKG_WARNING], "warning");
        }
        lkg_buf_puts(buf, "</p>\n");
}

static void put_header(const struct lkg_parts *parts, const char *host, struct lkg_buf *buf)
{
        const char *system = lkg_parts_text(parts, "environment/system");
        const struct lkg_part *view = lkg_parts_find(parts, "view");
        char time[256], tool[256];

        (void)lkg_report_fact(system, "time", time);
        (void)lkg_report_fact(system, "tool", tool);
        lkg_buf_puts(buf, "<header>\n<h1>lkgfs on ");
        lkg_html_text(buf, host);
        lkg_buf_puts(buf, "</h1>\n<p class=\"lead\">");
        lkg_html_time(buf, time);
        lkg_buf_puts(buf, " UTC, ");
        lkg_html_text(buf, tool);
        if (view && view->error == 0) {
                lkg_buf_puts(buf, ", view on ");
                lkg_html_text(buf, view->data);
        }
        lkg_buf_puts(buf, "</p>\n");
}

int lkg_report_page(const struct lkg_parts *parts, struct lkg_buf *ret)
{
        LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf problems = LKG_BUF_INIT;
        struct lkg_report_counts counts = lkg_report_problems(parts, &problems);
        char host[256], title[300];

        if (!lkg_report_fact(lkg_parts_text(parts, "environment/system"), "host", host))
                (void)snprintf(host, sizeof(host), "this node");
        (void)snprintf(title, sizeof(title), "lkgfs on %s", host);
        lkg_html_begin(ret, title);
        put_header(parts, host, ret);
        put_verdict(&counts, ret);
        put_contents(ret);
        lkg_buf_puts(ret, "</header>\n<main>\n");
        if (problems.size)
                lkg_buf_append(ret, problems.data, problems.size);
        lkg_report_findings(parts, ret);
        lkg_report_components(parts, ret);
        lkg_report_timeline(parts, ret);
        lkg_report_changes(parts, ret);
        lkg_report_bad(parts, ret);
        lkg_report_origins(parts, ret);
        lkg_report_processes(parts, ret);
        lkg_report_environment(parts, ret);
        lkg_report_log(parts, ret);
        lkg_report_unread(parts, ret);
        lkg_buf_puts(ret, "</main>\n<footer><p>Values of fields that hold credentials are masked. The "
                          "documents are not: read them "
                          "before you hand this page to somebody else.</p></footer>\n");
        lkg_html_end(ret);
        return lkg_buf_failed(ret) || problems.failed ? -ENOMEM : 0;
}
