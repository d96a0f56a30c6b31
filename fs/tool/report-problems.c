/* SPDX-License-Identifier: Apache-2.0 */
/* What is wrong, what to do about it, and what is served: the part of a report that is read at three in the morning. */
#include "report-page.h"

#include <lkg/documents.h>

/* ---- problems ---- */

static void put_problem(struct lkg_buf *buf, const char *severity, const char *component, const char *text,
                        const char *advice)
{
        lkg_buf_puts(buf, "<li><div>");
        lkg_html_severity(buf, severity);
        lkg_buf_puts(buf, "</div><div><p>");
        if (component && *component) {
                lkg_html_element(buf, "strong", NULL, component);
                lkg_buf_puts(buf, ": ");
        }
        lkg_html_prose(buf, text);
        lkg_buf_puts(buf, "</p>");
        if (advice && *advice) {
                lkg_buf_puts(buf, "<p class=\"do\"><span aria-hidden=\"true\">→ </span>");
                lkg_html_prose(buf, advice);
                lkg_buf_puts(buf, "</p>");
        }
        lkg_buf_puts(buf, "</div></li>\n");
}

/* The advice of `lkgfs status`, if that of the doctor is to look there. */
static const char *advice_for(const struct lkg_value *status, const char *component, const char *advice)
{
        const struct lkg_value *list = status ? lkg_map_get(status, "components") : NULL;

        if (!component || !advice || strcmp(advice, "see `lkgfs status`") != 0)
                return advice;
        for (size_t i = 0; list && i < lkg_value_size(list); i++) {
                const struct lkg_value *item = lkg_list_get(list, i);
                const char *name = lkg_map_get_string(item, "name"),
                           *next = lkg_map_get_string(item, "next");

                if (name && next && strcmp(name, component) == 0)
                        return next;
        }
        return advice;
}

static enum lkg_severity severity_of(const char *name)
{
        for (int i = 0; name && i < _LKG_SEVERITY_MAX; i++)
                if (strcmp(name, lkg_severity_name((enum lkg_severity)i)) == 0)
                        return (enum lkg_severity)i;
        return LKG_NOTE;
}

/* Those of one severity. */
static void put_doctor(const struct lkg_parts *parts, enum lkg_severity severity,
                       struct lkg_report_counts *counts, struct lkg_buf *buf)
{
        LKG_CLEANUP(lkg_value_unrefp) struct lkg_value *doctor = lkg_parts_json(parts, "doctor.json");
        LKG_CLEANUP(lkg_value_unrefp) struct lkg_value *status = lkg_parts_json(parts, "status.json");
        const struct lkg_value *list = doctor ? lkg_map_get(doctor, "problems") : NULL;

        for (size_t i = 0; list && i < lkg_value_size(list); i++) {
                const struct lkg_value *item = lkg_list_get(list, i);
                const char *name = lkg_map_get_string(item, "severity"),
                           *text = lkg_map_get_string(item, "text"),
                           *component = lkg_map_get_string(item, "component");

                if (!text || severity_of(name) != severity)
                        continue;
                counts->n[severity]++;
                put_problem(buf, lkg_severity_name(severity), component, text,
                            advice_for(status, component, lkg_map_get_string(item, "advice")));
        }
}

static void put_process(const char *text, struct lkg_report_counts *counts, struct lkg_buf *buf)
{
        counts->n[LKG_ERROR]++;
        put_problem(buf, "error", NULL, text, "`systemctl status lkgfs`");
}

/* Return: is there a process @name among the lines (environment/processes)? Those that are stopped are problems. */
static bool put_named(const char *text, const char *name, struct lkg_report_counts *counts,
                      struct lkg_buf *buf)
{
        bool found = false;
        char said[160];

        while (*text) {
                LKG_CLEANUP(lkg_freep) char *line = strndup(text, strcspn(text, "\n"));
                char *rest = line, *columns[5] = { NULL };

                text += strcspn(text, "\n");
                text += *text != '\0';
                for (size_t i = 0; i < LKG_ARRAY_SIZE(columns) && rest; i++)
                        columns[i] = strsep(&rest, "\t");
                if (!columns[4] || strcmp(columns[0], name) != 0)
                        continue;
                found = true;
                (void)snprintf(said, sizeof(said), "%s (pid %s) does not run: it is in state %s", name,
                               columns[1], columns[4]);
                if (*columns[4] && strchr("TtDZX", *columns[4]))
                        put_process(said, counts, buf);
        }
        return found;
}

/* If the doctor cannot be asked: who of us is not there, or does not run. */
static void put_processes(const struct lkg_parts *parts, struct lkg_report_counts *counts,
                          struct lkg_buf *buf)
{
        static const char *const names[] = { "lkgfsd", "lkgfs-fs", "lkgfs-engine", "lkgfs-notify" };
        const char *text = lkg_parts_text(parts, "environment/processes");

        for (size_t i = 0; i < LKG_ARRAY_SIZE(names); i++) {
                char said[64];

                if (put_named(text, names[i], counts, buf))
                        continue;
                (void)snprintf(said, sizeof(said), "no process %s runs", names[i]);
                put_process(said, counts, buf);
        }
}

/* What the doctor cannot say: it reads the view as well. */
static void put_unanswered(const struct lkg_parts *parts, struct lkg_report_counts *counts,
                           struct lkg_buf *buf)
{
        const struct lkg_part *begun = NULL, *doctor = lkg_parts_find(parts, "doctor.json");
        LKG_CLEANUP(lkg_freep) char *text = NULL;

        for (const struct lkg_part *part = NULL; (part = lkg_parts_next(parts, part, "")) && !begun;)
                if (part->error == -EINPROGRESS)
                        begun = part;
        if (begun && strcmp(begun->name, "view") == 0)
                text = strdup("the mounted view does not answer");
        else if (begun && asprintf(&text, "the mounted view does not answer: `%s` could not be read in time",
                                   begun->name) < 0)
                text = NULL;
        if (text) {
                counts->n[LKG_ERROR]++;
                put_problem(
                        buf, "error", NULL, text,
                        "`journalctl -u lkgfs` shows why; lkgfsd adopts the mount when it is started again");
        }
        if (begun)
                put_processes(parts, counts, buf);
        if ((!doctor || doctor->error < 0) && !begun) {
                counts->n[LKG_ERROR]++;
                put_problem(buf, "error", NULL, "`lkgfs doctor` gave no answer", "run it by hand");
        }
}

struct lkg_report_counts lkg_report_problems(const struct lkg_parts *parts, struct lkg_buf *buf)
{
        LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf items = LKG_BUF_INIT;
        struct lkg_report_counts counts = { 0 };

        put_unanswered(parts, &counts, &items);
        for (int s = 0; s < _LKG_SEVERITY_MAX; s++)
                put_doctor(parts, (enum lkg_severity)s, &counts, &items);
        lkg_html_section(buf, "problems", "What is wrong", NULL);
        if (items.size) {
                lkg_buf_puts(buf, "<ul class=\"items\">\n");
                lkg_buf_append(buf, items.data, items.size);
                lkg_buf_puts(buf, "</ul>\n");
        } else {
                lkg_buf_puts(buf, "<p>No problem was found.</p>\n");
        }
        buf->failed |= items.failed;
        lkg_buf_puts(buf, "</section>\n");
        return counts;
}

/* ---- findings ---- */

static void put_finding(const struct lkg_finding *f, struct lkg_buf *buf)
{
        char place[48] = "", code[16];

        (void)snprintf(code, sizeof(code), "LKG%04u", f->code);
        if (f->line)
                (void)snprintf(place, sizeof(place), ":%u:%u", f->line, f->column ? f->column : 1);
        lkg_buf_puts(buf, "<li><div>");
        lkg_html_severity(buf, lkg_severity_name(f->severity));
        lkg_buf_puts(buf, "</div><div><p>");
        lkg_html_prose(buf, f->text);
        lkg_buf_puts(buf, " ");
        lkg_html_element(buf, "span", "soft", code);
        lkg_buf_puts(buf, "</p>");
        if (f->file) {
                lkg_buf_puts(buf, "<p class=\"where\">");
                lkg_html_text(buf, f->file);
                lkg_html_text(buf, place);
                lkg_buf_puts(buf, "</p>");
        }
        lkg_buf_puts(buf, "</div></li>\n");
}

static void put_findings(const struct lkg_report *report, int from, int to, struct lkg_buf *buf)
{
        lkg_buf_puts(buf, "<ul class=\"items\">\n");
        for (int s = from; s <= to; s++)
                for (size_t i = 0; i < report->n_findings; i++)
                        if ((int)report->findings[i].severity == s)
                                put_finding(&report->findings[i], buf);
        lkg_buf_puts(buf, "</ul>\n");
}

static void put_report(const char *name, const struct lkg_report *report, struct lkg_buf *buf)
{
        const size_t *n = report->n_severity;

        lkg_html_element(buf, "h3", NULL, name);
        if (n[LKG_ERROR] + n[LKG_WARNING] + n[LKG_NOTE] == 0)
                lkg_buf_puts(buf, "<p>None.</p>\n");
        if (n[LKG_ERROR] + n[LKG_WARNING])
                put_findings(report, LKG_ERROR, LKG_WARNING, buf);
        if (n[LKG_NOTE]) {
                lkg_buf_printf(buf, "<details><summary>%zu note%s</summary>\n", n[LKG_NOTE],
                               n[LKG_NOTE] == 1 ? "" : "s");
                put_findings(report, LKG_NOTE, LKG_NOTE, buf);
                lkg_buf_puts(buf, "</details>\n");
        }
        if (report->n_dropped)
                lkg_buf_printf(buf, "<p>%zu more are not listed.</p>\n", report->n_dropped);
}

static void put_judged(const struct lkg_parts *parts, struct lkg_buf *buf)
{
        LKG_CLEANUP(lkg_value_unrefp) struct lkg_value *check = lkg_parts_json(parts, "judged/check.json");
        const struct lkg_value *list = check ? lkg_map_get(check, "judged") : NULL;

        if (list)
                lkg_buf_puts(
                        buf,
                        "<p>There is no view to read, so the layers of this node were judged anew.</p>\n");
        for (size_t i = 0; list && i < lkg_value_size(list); i++) {
                LKG_CLEANUP(lkg_report_deinit) struct lkg_report report = LKG_REPORT_INIT;
                const struct lkg_value *item = lkg_list_get(list, i);
                const char *name = lkg_map_get_string(item, "component");

                if (!lkg_tool_findings_take(item, &report))
                        continue;
                if (!name)
                        name = lkg_map_get_string(item, "configuration");
                put_report(name ? name : "?", &report, buf);
        }
}

void lkg_report_findings(const struct lkg_parts *parts, struct lkg_buf *buf)
{
        char component[256];

        lkg_html_section(buf, "findings", "Findings in the documents", NULL);
        for (size_t i = 0; lkg_parts_under(parts, "status/", i, component); i++) {
                LKG_CLEANUP(lkg_value_unrefp)
                struct lkg_value *map = lkg_parts_json(parts, "status/%s/findings.json", component);
                LKG_CLEANUP(lkg_report_deinit) struct lkg_report report = LKG_REPORT_INIT;

                if (map && lkg_tool_findings_take(map, &report)) {
                        put_report(component, &report, buf);
                        continue;
                }
                lkg_html_element(buf, "h3", NULL, component);
                lkg_buf_puts(buf, "<p>They could not be read.</p>\n");
        }
        put_judged(parts, buf);
        lkg_buf_puts(buf, "</section>\n");
}

/* ---- what is served ---- */

static void put_row(struct lkg_buf *buf, const char *term, const char *text)
{
        if (!text || !*text)
                return;
        lkg_html_element(buf, "dt", NULL, term);
        lkg_buf_puts(buf, "<dd>");
        lkg_html_prose(buf, text);
        lkg_buf_puts(buf, "</dd>\n");
}

/* The first line of a file of status/. */
static void put_status(struct lkg_buf *buf, const char *term, const struct lkg_parts *parts,
                       const char *component, const char *file)
{
        LKG_CLEANUP(lkg_freep) char *text = strdup(lkg_parts_text(parts, "status/%s/%s", component, file));

        if (!text) {
                buf->failed = true;
                return;
        }
        text[strcspn(text, "\n")] = '\0';
        put_row(buf, term, text);
}

static void put_condition(const struct lkg_parts *parts, const char *component, struct lkg_buf *buf)
{
        const char *text = lkg_parts_text(parts, "status/%s/condition", component);
        bool good = strncmp(text, "True ", 5) == 0, bad = strncmp(text, "False ", 6) == 0;

        lkg_buf_puts(buf, "<p>");
        lkg_html_severity(buf, good ? "good" : bad ? "error" : "unknown");
        lkg_buf_puts(buf, " ");
        lkg_html_prose(buf, *text ? text : "Unknown: no condition can be read");
        lkg_buf_puts(buf, "</p>\n");
}

/* Lines `key=value` in one sentence: those that have a value. */
static void put_pairs(struct lkg_buf *buf, const char *term, const char *text)
{
        LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf line = LKG_BUF_INIT;

        for (; *text; text += strcspn(text, "\n") + (text[strcspn(text, "\n")] != '\0')) {
                size_t n = strcspn(text, "\n"), key = strcspn(text, "=");

                if (key + 1 >= n)
                        continue;
                lkg_buf_printf(&line, "%s%.*s %.*s", line.size ? ", " : "", (int)key, text,
                               (int)(n - key - 1), text + key + 1);
        }
        lkg_buf_putc(&line, '\0');
        buf->failed |= line.failed;
        if (!lkg_buf_failed(&line))
                put_row(buf, term, line.data);
}

static void put_component(const struct lkg_parts *parts, const char *component, const char *next,
                          struct lkg_buf *buf)
{
        const struct lkg_part *generation = lkg_parts_find(parts, "status/%s/generation", component);
        char since[21];

        lkg_html_element(buf, "h3", NULL, component);
        put_condition(parts, component, buf);
        lkg_buf_puts(buf, "<dl>\n");
        put_row(buf, "next", next);
        put_status(buf, "generation", parts, component, "generation");
        if (generation && generation->modified_s) {
                lkg_format_rfc3339(generation->modified_s * LKG_NSEC_PER_SEC, since);
                put_row(buf, "served since", since);
        }
        put_status(buf, "SHA-256", parts, component, "sha256");
        put_status(buf, "assigned", parts, component, "assigned");
        put_status(buf, "active", parts, component, "active");
        put_status(buf, "last known good", parts, component, "last-known-good");
        put_status(buf, "error", parts, component, "error");
        put_status(buf, "last refused command", parts, component, "last-error");
        put_pairs(buf, "hold", lkg_parts_text(parts, "status/%s/hold", component));
        put_pairs(buf, "trial", lkg_parts_text(parts, "status/%s/trial", component));
        put_pairs(buf, "process", lkg_parts_text(parts, "status/%s/process", component));
        put_pairs(buf, "API server", lkg_parts_text(parts, "status/%s/remote", component));
        lkg_buf_puts(buf, "</dl>\n");
}

void lkg_report_components(const struct lkg_parts *parts, struct lkg_buf *buf)
{
        LKG_CLEANUP(lkg_value_unrefp) struct lkg_value *status = lkg_parts_json(parts, "status.json");
        const struct lkg_value *list = status ? lkg_map_get(status, "components") : NULL;
        char component[256];

        lkg_html_section(buf, "served", "What is served", NULL);
        for (size_t i = 0; lkg_parts_under(parts, "status/", i, component); i++) {
                const char *next = NULL;

                for (size_t k = 0; list && k < lkg_value_size(list); k++) {
                        const struct lkg_value *item = lkg_list_get(list, k);
                        const char *name = lkg_map_get_string(item, "name");

                        if (name && strcmp(name, component) == 0)
                                next = lkg_map_get_string(item, "next");
                }
                put_component(parts, component, next, buf);
        }
        if (!lkg_parts_next(parts, NULL, "status/")) {
                const struct lkg_part *view = lkg_parts_find(parts, "view");

                lkg_buf_puts(buf, "<p>No view could be read");
                if (view && *view->data) {
                        lkg_buf_puts(buf, ": ");
                        lkg_html_prose(buf, view->data);
                }
                lkg_buf_puts(buf, ".</p>\n");
        }
        lkg_buf_puts(buf, "</section>\n");
}
