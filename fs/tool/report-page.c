/* SPDX-License-Identifier: Apache-2.0 */
/* The page of a report: its head, and what is read at three in the morning: what is wrong and what to do about it, findings, what is served. */
#include "report.h"

#include <openssl/evp.h>

/* As a badge with a sign: not by colour alone. */
static void put_badge(struct lkg_buf *buf, const char *severity)
{
        static const struct {
                const char *name, *sign;
        } signs[] = {
                { "error", "✕" }, { "warning", "!" }, { "note", "i" }, { "good", "✓" }, { "unknown", "?" },
        };

        for (size_t i = 0; i < LKG_ARRAY_SIZE(signs); i++)
                if (strcmp(signs[i].name, severity) == 0)
                        lkg_html(buf,
                                 "<span class=\"badge %s\"><span aria-hidden=\"true\">%s</span> %s</span>",
                                 severity, signs[i].sign, severity);
}

/* ---- problems ---- */

struct problems {
        struct lkg_buf items;
        size_t n[_LKG_SEVERITY_MAX];
};

static void put_problem(struct problems *problems, enum lkg_severity severity, const char *component,
                        const char *text, const char *advice)
{
        struct lkg_buf *buf = &problems->items;

        problems->n[severity]++;
        lkg_buf_puts(buf, "<li><div>");
        put_badge(buf, lkg_severity_name(severity));
        lkg_buf_puts(buf, "</div><div><p>");
        if (*component)
                lkg_html(buf, "<strong>%s</strong>: ", component);
        lkg_html(buf, "%-s</p>", text);
        if (*advice)
                lkg_html(buf, "<p class=\"do\"><span aria-hidden=\"true\">→ </span>%-s</p>", advice);
        lkg_buf_puts(buf, "</div></li>\n");
}

/* What `lkgfs status` advises for a component; "" = nothing. */
static const char *next_of(const struct lkg_value *status, const char *component)
{
        const struct lkg_value *list;
        size_t n = lkg_tool_items(status, "components", &list);

        for (size_t i = 0; i < n; i++)
                if (strcmp(lkg_tool_word(lkg_list_get(list, i), "name"), component) == 0)
                        return lkg_tool_word(lkg_list_get(list, i), "next");
        return "";
}

/* Those of one severity. If the doctor's advice is to look into the status, that of the status is given. */
static void put_doctor(const struct lkg_parts *parts, enum lkg_severity severity, struct problems *problems)
{
        LKG_CLEANUP(lkg_value_unrefp) struct lkg_value *doctor = lkg_parts_json(parts, "doctor.json");
        LKG_CLEANUP(lkg_value_unrefp) struct lkg_value *status = lkg_parts_json(parts, "status.json");
        const struct lkg_value *list;
        size_t n = lkg_tool_items(doctor, "problems", &list);

        for (size_t i = 0; i < n; i++) {
                const struct lkg_value *item = lkg_list_get(list, i);
                const char *component = lkg_tool_word(item, "component"),
                           *advice = lkg_tool_word(item, "advice"), *next = next_of(status, component);

                if (lkg_tool_severity(lkg_tool_word(item, "severity")) == severity)
                        put_problem(problems, severity, component, lkg_tool_word(item, "text"),
                                    *next && strcmp(advice, "see `lkgfs status`") == 0 ? next : advice);
        }
}

/* Return: is there a process @name among the lines (environment/processes)? Those that are stopped are problems. */
static bool put_named(const char *text, const char *name, struct problems *problems)
{
        bool found = false;
        const char *line;
        size_t size;

        while (lkg_tool_next_line(&text, &line, &size)) {
                LKG_CLEANUP(lkg_freep) char *copy = lkg_tool_own(strndup(line, size));
                char *rest = copy, *columns[5] = { NULL }, said[160];

                for (size_t i = 0; i < LKG_ARRAY_SIZE(columns) && rest; i++)
                        columns[i] = strsep(&rest, "\t");
                if (!columns[4] || strcmp(columns[0], name) != 0)
                        continue;
                found = true;
                (void)snprintf(said, sizeof(said), "%s (pid %s) does not run: it is in state %s", name,
                               columns[1], columns[4]);
                if (*columns[4] && strchr("TtDZX", *columns[4]))
                        put_problem(problems, LKG_ERROR, "", said, "`systemctl status lkgfs`");
        }
        return found;
}

/* What the doctor cannot say: it reads the view as well. If it cannot be asked: who of us is not there, or does not run. */
static void put_unanswered(const struct lkg_parts *parts, struct problems *problems)
{
        static const char *const names[] = { "lkgfsd", "lkgfs-fs", "lkgfs-engine", "lkgfs-notify" };
        const struct lkg_part *begun = NULL, *doctor = lkg_parts_find(parts, "doctor.json");
        LKG_CLEANUP(lkg_freep) char *text = NULL;

        for (const struct lkg_part *part = NULL; (part = lkg_parts_next(parts, part, "")) && !begun;)
                if (part->error == -EINPROGRESS)
                        begun = part;
        if (!begun) {
                if (!doctor || doctor->error < 0)
                        put_problem(problems, LKG_ERROR, "", "`lkgfs doctor` gave no answer",
                                    "run it by hand");
                return;
        }
        text = strcmp(begun->name, "view") == 0
                       ? lkg_tool_format("the mounted view does not answer")
                       : lkg_tool_format("the mounted view does not answer: `%s` could not be read in time",
                                         begun->name);
        put_problem(problems, LKG_ERROR, "", text,
                    "`journalctl -u lkgfs` shows why; lkgfsd adopts the mount when it is started again");
        for (size_t i = 0; i < LKG_ARRAY_SIZE(names); i++) {
                char said[64];

                (void)snprintf(said, sizeof(said), "no process %s runs", names[i]);
                if (!put_named(lkg_parts_text(parts, "environment/processes"), names[i], problems))
                        put_problem(problems, LKG_ERROR, "", said, "`systemctl status lkgfs`");
        }
}

static void find_problems(const struct lkg_parts *parts, struct problems *problems)
{
        put_unanswered(parts, problems);
        for (int s = 0; s < _LKG_SEVERITY_MAX; s++)
                put_doctor(parts, (enum lkg_severity)s, problems);
        (void)lkg_tool_text(&problems->items);
}

static void put_problems(const struct problems *problems, struct lkg_buf *buf)
{
        bool any = problems->items.size;

        lkg_html_section(buf, "problems", "What is wrong", NULL);
        lkg_buf_puts(buf, any ? "<ul class=\"items\">\n" : "<p>No problem was found.</p>\n");
        lkg_buf_puts(buf, problems->items.data);
        lkg_buf_puts(buf, any ? "</ul>\n</section>\n" : "</section>\n");
}

/* ---- findings ---- */

static void put_finding(const struct lkg_finding *f, struct lkg_buf *buf)
{
        char place[48] = "", code[16];

        (void)snprintf(code, sizeof(code), "LKG%04u", f->code);
        if (f->line)
                (void)snprintf(place, sizeof(place), ":%u:%u", f->line, f->column ? f->column : 1);
        lkg_buf_puts(buf, "<li><div>");
        put_badge(buf, lkg_severity_name(f->severity));
        lkg_html(buf, "</div><div><p>%-s <span class=\"soft\">%s</span></p>", f->text, code);
        if (f->file)
                lkg_html(buf, "<p class=\"where\">%s%s</p>", f->file, place);
        lkg_buf_puts(buf, "</div></li>\n");
}

static void put_items(const struct lkg_report *report, int from, int to, struct lkg_buf *buf)
{
        lkg_buf_puts(buf, "<ul class=\"items\">\n");
        for (int s = from; s <= to; s++)
                for (size_t i = 0; i < report->n_findings; i++)
                        if ((int)report->findings[i].severity == s)
                                put_finding(&report->findings[i], buf);
        lkg_buf_puts(buf, "</ul>\n");
}

/* @map: with a list of findings. */
static void put_findings_of(const char *name, const struct lkg_value *map, struct lkg_buf *buf)
{
        LKG_CLEANUP(lkg_report_deinit) struct lkg_report report = LKG_REPORT_INIT;
        bool known = lkg_tool_findings_take(map, &report);
        const size_t *n = report.n_severity;

        lkg_html(buf, "<h3>%s</h3>", name);
        if (!known)
                lkg_buf_puts(buf, "<p>They could not be read.</p>\n");
        else if (n[LKG_ERROR] + n[LKG_WARNING] + n[LKG_NOTE] == 0)
                lkg_buf_puts(buf, "<p>None.</p>\n");
        if (n[LKG_ERROR] + n[LKG_WARNING])
                put_items(&report, LKG_ERROR, LKG_WARNING, buf);
        if (n[LKG_NOTE]) {
                lkg_html(buf, "<details><summary>%zu note%s</summary>\n", n[LKG_NOTE],
                         n[LKG_NOTE] == 1 ? "" : "s");
                put_items(&report, LKG_NOTE, LKG_NOTE, buf);
                lkg_buf_puts(buf, "</details>\n");
        }
        if (report.n_dropped)
                lkg_html(buf, "<p>%zu more are not listed.</p>\n", report.n_dropped);
}

static void put_findings(const struct lkg_parts *parts, struct lkg_buf *buf)
{
        LKG_CLEANUP(lkg_value_unrefp) struct lkg_value *check = lkg_parts_json(parts, "judged/check.json");
        const struct lkg_value *list;
        size_t n = lkg_tool_items(check, "judged", &list);
        char component[256];

        lkg_html_section(buf, "findings", "Findings in the documents", NULL);
        for (size_t i = 0; lkg_parts_under(parts, "status/", i, component); i++) {
                LKG_CLEANUP(lkg_value_unrefp)
                struct lkg_value *map = lkg_parts_json(parts, "status/%s/findings.json", component);

                put_findings_of(component, map, buf);
        }
        if (n)
                lkg_buf_puts(
                        buf,
                        "<p>There is no view to read, so the layers of this node were judged anew.</p>\n");
        for (size_t i = 0; i < n; i++) {
                const struct lkg_value *item = lkg_list_get(list, i);
                const char *name = lkg_tool_word(item, "component");

                put_findings_of(*name ? name : lkg_tool_word(item, "configuration"), item, buf);
        }
        lkg_buf_puts(buf, "</section>\n");
}

/* ---- what is served ---- */

static void put_row(struct lkg_buf *buf, const char *term, const char *text)
{
        if (*text)
                lkg_html(buf, "<dt>%s</dt><dd>%-s</dd>\n", term, text);
}

static void put_condition(const char *text, struct lkg_buf *buf)
{
        bool good = strncmp(text, "True ", 5) == 0, bad = strncmp(text, "False ", 6) == 0;

        lkg_buf_puts(buf, "<p>");
        put_badge(buf, good ? "good" : bad ? "error" : "unknown");
        lkg_html(buf, " %-s</p>\n", *text ? text : "Unknown: no condition can be read");
}

/* Lines `key=value` in one sentence: those that have a value. */
static void put_pairs(struct lkg_buf *buf, const char *term, const char *text)
{
        LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf all = LKG_BUF_INIT;
        const char *line;
        size_t size;

        while (lkg_tool_next_line(&text, &line, &size)) {
                size_t key = strcspn(line, "=");

                if (key + 1 < size)
                        lkg_buf_printf(&all, "%s%.*s %.*s", all.size ? ", " : "", (int)key, line,
                                       (int)(size - key - 1), line + key + 1);
        }
        put_row(buf, term, lkg_tool_text(&all));
}

static void put_component(const struct lkg_parts *parts, const char *component, const char *next,
                          struct lkg_buf *buf)
{
        static const struct {
                const char *term, *file; /* the first line of the file */
        } rows[] = {
                { "generation", "generation" },
                { "SHA-256", "sha256" },
                { "assigned", "assigned" },
                { "active", "active" },
                { "last known good", "last-known-good" },
                { "error", "error" },
                { "last refused command", "last-error" },
        }, pairs[] = { { "hold", "hold" }, { "trial", "trial" }, { "process", "process" }, { "API server", "remote" } };
        const struct lkg_part *generation = lkg_parts_find(parts, "status/%s/generation", component);
        char since[21] = "", line[1024];

        if (generation && generation->modified_s)
                lkg_format_rfc3339(generation->modified_s * LKG_NSEC_PER_SEC, since);
        lkg_html(buf, "<h3>%s</h3>", component);
        put_condition(lkg_parts_text(parts, "status/%s/condition", component), buf);
        lkg_buf_puts(buf, "<dl>\n");
        put_row(buf, "next", next);
        for (size_t i = 0; i < LKG_ARRAY_SIZE(rows); i++) {
                const char *text = lkg_parts_text(parts, "status/%s/%s", component, rows[i].file);

                (void)snprintf(line, sizeof(line), "%.*s", (int)strcspn(text, "\n"), text);
                put_row(buf, rows[i].term, line);
                if (i == 0)
                        put_row(buf, "served since", since);
        }
        for (size_t i = 0; i < LKG_ARRAY_SIZE(pairs); i++)
                put_pairs(buf, pairs[i].term,
                          lkg_parts_text(parts, "status/%s/%s", component, pairs[i].file));
        lkg_buf_puts(buf, "</dl>\n");
}

static void put_components(const struct lkg_parts *parts, struct lkg_buf *buf)
{
        LKG_CLEANUP(lkg_value_unrefp) struct lkg_value *status = lkg_parts_json(parts, "status.json");
        const struct lkg_part *view = lkg_parts_find(parts, "view");
        char component[256];

        lkg_html_section(buf, "served", "What is served", NULL);
        for (size_t i = 0; lkg_parts_under(parts, "status/", i, component); i++)
                put_component(parts, component, next_of(status, component), buf);
        if (!lkg_parts_next(parts, NULL, "status/"))
                lkg_html(buf, "<p>No view could be read%s%-s.</p>\n", view && *view->data ? ": " : "",
                         view ? view->data : "");
        lkg_buf_puts(buf, "</section>\n");
}

/* ---- the page ---- */

/*
 * The policy allows the one style that the page has, by its digest, and nothing else: even if text got into the page unescaped,
 * it could load, run and send nothing.
 */
static void put_policy(struct lkg_buf *buf)
{
        unsigned char digest[LKG_SHA256_BYTES], text[4 * LKG_SHA256_BYTES / 3 + 4];

        (void)lkg_tool_need(lkg_sha256(lkg_html_style, strlen(lkg_html_style), digest));
        (void)EVP_EncodeBlock(text, digest, sizeof(digest));
        lkg_buf_printf(
                buf,
                "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src "
                "'sha256-%s'; base-uri 'none'; form-action 'none'\">\n",
                (const char *)text);
}

static void put_head(const char *host, struct lkg_buf *buf)
{
        lkg_buf_puts(buf, "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n");
        put_policy(buf);
        lkg_html(buf,
                 "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
                 "<meta name=\"color-scheme\" content=\"light dark\">\n"
                 "<meta name=\"referrer\" content=\"no-referrer\">\n"
                 "<meta name=\"robots\" content=\"noindex\">\n"
                 "<title>lkgfs on %s</title>\n<style>",
                 host);
        lkg_buf_puts(buf, lkg_html_style);
        lkg_html(buf, "</style>\n</head>\n<body>\n<header>\n<h1>lkgfs on %s</h1>\n<p class=\"lead\">", host);
}

static void put_contents(struct lkg_buf *buf)
{
        static const struct {
                const char *id, *title;
        } contents[] = {
                { "problems", "Problems" }, { "findings", "Findings" },   { "served", "Served" },
                { "timeline", "Timeline" }, { "changes", "Differences" }, { "bad", "Marked bad" },
                { "layers", "Layers" },     { "processes", "Processes" }, { "environment", "Environment" },
                { "log", "Log" },           { "unread", "Not read" },
        };

        lkg_buf_puts(buf, "<nav aria-label=\"Sections\"><ul>\n");
        for (size_t i = 0; i < LKG_ARRAY_SIZE(contents); i++)
                lkg_html(buf, "<li><a href=\"#%s\">%s</a></li>\n", contents[i].id, contents[i].title);
        lkg_buf_puts(buf, "</ul></nav>\n</header>\n<main>\n");
}

static void put_verdict(const size_t *n, struct lkg_buf *buf)
{
        size_t all = n[LKG_ERROR] + n[LKG_WARNING];

        lkg_buf_puts(buf, "<p class=\"verdict\">");
        if (all == 0) {
                put_badge(buf, "good");
                lkg_buf_puts(buf, "<span>No problem was found.</span>");
        } else {
                lkg_html(buf, "<span>%zu problem%s:</span> ", all, all == 1 ? "" : "s");
        }
        for (int s = LKG_ERROR; s <= LKG_WARNING; s++) {
                if (!n[s])
                        continue;
                put_badge(buf, lkg_severity_name((enum lkg_severity)s));
                lkg_html(buf, "<span>%zu</span>\n", n[s]);
        }
        lkg_buf_puts(buf, "</p>\n");
}

/* What is wrong first, what one looks up last. */
void lkg_report_page(const struct lkg_parts *parts, struct lkg_buf *ret)
{
        LKG_CLEANUP(lkg_value_unrefp)
        struct lkg_value *system = lkg_tool_pairs(lkg_parts_text(parts, "environment/system"));
        const struct lkg_part *view = lkg_parts_find(parts, "view");
        const char *host = lkg_tool_word(system, "host");
        struct problems problems = { .items = LKG_BUF_INIT };

        find_problems(parts, &problems);
        put_head(*host ? host : "this node", ret);
        lkg_html_time(ret, lkg_tool_word(system, "time"));
        lkg_html(ret, " UTC, %s", lkg_tool_word(system, "tool"));
        if (view && view->error == 0)
                lkg_html(ret, ", view on %s", view->data);
        lkg_buf_puts(ret, "</p>\n");
        put_verdict(problems.n, ret);
        put_contents(ret);
        put_problems(&problems, ret);
        lkg_buf_deinit(&problems.items);
        put_findings(parts, ret);
        put_components(parts, ret);
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
                          "before you hand this page to somebody else.</p></footer>\n</body>\n</html>\n");
}
