/* SPDX-License-Identifier: Apache-2.0 */
/* What the two formats have in common: a start, and when to print. */
#include <ctype.h>

#include "tool.h"
#include "lkg-config.h"

/* How annotations name a file: as the repository does that the working directory belongs to. */
static const char *shown_path(const struct lkg_annotations *a, const char *path)
{
        size_t n = a->directory ? strlen(a->directory) : 0;

        if (n > 0 && strncmp(path, a->directory, n) == 0 && path[n])
                return path + n;
        while (strncmp(path, "./", 2) == 0 && path[2] && path[2] != '/')
                path += 2;
        return path;
}

/*
 * SARIF 2.1.0: one log with one run. The rules are the kinds of finding that occur; a result names file, line and column. What
 * could not be read is a notification of the run, which then was not successful.
 */
#define SCHEMA "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"

/* As a URI reference: relative as it is, absolute with "file://". */
static void put_uri(const char *path, struct lkg_buf *buf)
{
        if (*path == '/')
                lkg_buf_puts(buf, "file://");
        for (const unsigned char *p = (const unsigned char *)path; *p; p++) {
                /* A colon is none in the first part of a relative reference, where it would end a scheme. */
                if (isalnum(*p) || strchr("/-._~!$&'()*+,;=@", *p))
                        lkg_buf_putc(buf, (char)*p);
                else
                        lkg_buf_printf(buf, "%%%02X", *p);
        }
}

static struct lkg_value *message(const char *text)
{
        return lkg_tool_map_of("text", lkg_tool_string(text), NULL);
}

/* A list with one member; NULL = none. */
static struct lkg_value *single(struct lkg_value *item)
{
        struct lkg_value *list = item ? lkg_tool_list() : NULL;

        if (item)
                lkg_tool_append(list, item);
        return list;
}

/* @path: NULL = there is no place */
static struct lkg_value *locations(const struct lkg_annotations *a, const char *path, unsigned line,
                                   unsigned column)
{
        LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf uri = LKG_BUF_INIT;
        struct lkg_value *region = NULL, *physical;

        if (!path)
                return NULL;
        put_uri(shown_path(a, path), &uri);
        if (line)
                region = lkg_tool_map_of("startLine", lkg_tool_number(line), "startColumn",
                                         lkg_tool_number(column ? column : 1), NULL);
        physical = lkg_tool_map_of("artifactLocation",
                                   lkg_tool_map_of("uri", lkg_tool_string(lkg_buf_text(&uri)), NULL),
                                   "region", region, NULL);
        return single(lkg_tool_map_of("physicalLocation", physical, NULL));
}

/* Return: the place of its rule, from 1; 0: no row is about this code. */
static size_t rule_of(struct lkg_annotations *a, unsigned code, const char *id)
{
        const struct lkg_finding_kind *kind = lkg_finding_kind(code);
        size_t *place = kind ? &a->rule_of[kind - lkg_finding_kinds] : NULL;
        struct lkg_value *level;

        if (!place || *place)
                return place ? *place : 0;
        level = lkg_tool_string(lkg_severity_name(kind->severity));
        lkg_tool_append(a->rules,
                        lkg_tool_map_of("id", lkg_tool_string(id), "shortDescription", message(kind->title),
                                        "fullDescription", message(kind->paragraph), "help",
                                        message(kind->advice), "defaultConfiguration",
                                        lkg_tool_map_of("level", level, NULL), NULL));
        return *place = lkg_value_size(a->rules);
}

static void add_result(struct lkg_annotations *a, const char *place, const struct lkg_finding *f)
{
        const char *path = f->file ? f->file : place, *id = lkg_tool_format("LKG%04u", f->code);
        size_t rule = rule_of(a, f->code, id);

        lkg_tool_append(a->results,
                        lkg_tool_map_of("ruleId", lkg_tool_string(id), "ruleIndex",
                                        rule ? lkg_tool_number(rule - 1) : NULL, "level",
                                        lkg_tool_string(lkg_severity_name(f->severity)), "message",
                                        message(f->text), "locations",
                                        locations(a, path, f->file ? f->line : 0, f->column), NULL));
}

static int print_sarif(struct lkg_annotations *a, int status)
{
        struct lkg_tool json = *a->tool;
        bool successful = lkg_value_size(a->failures) == 0;
        struct lkg_value *driver = lkg_tool_map_of("name", lkg_tool_string("lkgfs"), "version",
                                                   lkg_tool_string(LKG_VERSION), "rules", a->rules, NULL);
        struct lkg_value *invocation = lkg_tool_map_of("executionSuccessful", lkg_tool_bool(successful),
                                                       "exitCode", lkg_tool_number((uint64_t)status),
                                                       "toolExecutionNotifications", a->failures, NULL);
        struct lkg_value *run =
                lkg_tool_map_of("tool", lkg_tool_map_of("driver", driver, NULL), "columnKind",
                                lkg_tool_string("unicodeCodePoints"), "invocations", single(invocation),
                                "results", a->results, NULL);

        json.options.format = LKG_TOOL_JSON;
        return lkg_tool_print_map(&json,
                                  lkg_tool_map_of("$schema", lkg_tool_string(SCHEMA), "version",
                                                  lkg_tool_string("2.1.0"), "runs", single(run), NULL),
                                  status);
}

/* ---- workflow commands of GitHub Actions: `::error file=F,line=L,col=C,title=T::message` ---- */

/* In a property a colon or a comma would end it; in both, a line break would end the command. */
static void put_escaped(struct lkg_buf *buf, const char *text, bool property)
{
        LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf clean = LKG_BUF_INIT;

        lkg_buf_utf8(&clean, text, strlen(text));
        for (const char *p = lkg_buf_text(&clean); *p; p++) {
                if (*p == '%' || *p == '\r' || *p == '\n' || (property && (*p == ':' || *p == ',')))
                        lkg_buf_printf(buf, "%%%02X", (unsigned char)*p);
                else
                        lkg_buf_putc(buf, *p);
        }
}

static void put_file(struct lkg_annotations *a, const char *path)
{
        lkg_buf_puts(&a->lines, "file=");
        put_escaped(&a->lines, shown_path(a, path), true);
        lkg_buf_putc(&a->lines, ',');
}

static void put_finding(struct lkg_annotations *a, const char *place, const struct lkg_finding *f)
{
        static const char *const commands[_LKG_SEVERITY_MAX] = {
                [LKG_ERROR] = "error",
                [LKG_WARNING] = "warning",
                [LKG_NOTE] = "notice",
        };
        const char *file = f->file ? f->file : place;
        const struct lkg_finding_kind *kind = lkg_finding_kind(f->code);

        lkg_buf_printf(&a->lines, "::%s ", commands[f->severity]);
        if (file)
                put_file(a, file);
        if (f->file && f->line)
                lkg_buf_printf(&a->lines, "line=%u,col=%u,", f->line, f->column ? f->column : 1);
        lkg_buf_printf(&a->lines, "title=LKG%04u ", f->code);
        put_escaped(&a->lines, kind ? kind->title : "", true);
        lkg_buf_puts(&a->lines, "::");
        put_escaped(&a->lines, f->text, false);
        lkg_buf_putc(&a->lines, '\n');
}

/* ---- both ---- */

bool lkg_annotations_wanted(const struct lkg_tool *tool)
{
        return tool->options.format == LKG_TOOL_SARIF || tool->options.format == LKG_TOOL_GITHUB;
}

void lkg_annotations_init(struct lkg_annotations *a, const struct lkg_tool *tool)
{
        LKG_CLEANUP(lkg_freep) char *cwd = getcwd(NULL, 0);

        *a = (struct lkg_annotations){ .tool = tool };
        if (cwd)
                a->directory = lkg_tool_format("%s%s", cwd, strcmp(cwd, "/") == 0 ? "" : "/");
        if (tool->options.format != LKG_TOOL_SARIF)
                return;
        a->rules = lkg_tool_list();
        a->results = lkg_tool_list();
        a->failures = lkg_tool_list();
        a->rule_of = lkg_tool_keep(calloc(lkg_n_finding_kinds, sizeof(*a->rule_of)));
}

void lkg_annotations_add(struct lkg_annotations *a, const char *place, const struct lkg_report *report)
{
        LKG_CLEANUP(lkg_report_deinit) struct lkg_report arranged = LKG_REPORT_INIT;

        lkg_tool_arrange(a->tool, report, &arranged);
        for (size_t i = 0; i < arranged.n_findings; i++)
                if (a->tool->options.format == LKG_TOOL_SARIF)
                        add_result(a, place, &arranged.findings[i]);
                else
                        put_finding(a, place, &arranged.findings[i]);
        if (report->n_dropped)
                lkg_annotations_fail(a, place,
                                     lkg_tool_format("%zu more findings are not listed", report->n_dropped));
}

void lkg_annotations_fail(struct lkg_annotations *a, const char *place, const char *text)
{
        if (a->tool->options.format == LKG_TOOL_SARIF) {
                lkg_tool_append(a->failures,
                                lkg_tool_map_of("level", lkg_tool_string("error"), "message", message(text),
                                                "locations", locations(a, place, 0, 0), NULL));
                return;
        }
        lkg_buf_puts(&a->lines, "::error ");
        if (place)
                put_file(a, place);
        lkg_buf_puts(&a->lines, "title=lkgfs check::");
        put_escaped(&a->lines, text, false);
        lkg_buf_putc(&a->lines, '\n');
}

int lkg_annotations_print(struct lkg_annotations *a, int status)
{
        return a->tool->options.format == LKG_TOOL_SARIF
                       ? print_sarif(a, status)
                       : lkg_tool_print_text(lkg_tool_take(&a->lines), status);
}
