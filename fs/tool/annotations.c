/* SPDX-License-Identifier: Apache-2.0 */
/* What the two formats have in common: a start, and when to print. */
#include <ctype.h>

#include "annotations.h"
#include "lkg-config.h"

/* ---- paths ---- */

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

/* ---- SARIF ---- */

/*
 * SARIF 2.1.0: one log with one run. The rules are the kinds of finding that occur; a result names file, line and column. What
 * could not be read is a notification of the run, which then was not successful.
 */

#define SCHEMA "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"

void lkg_sarif_uri(const char *path, struct lkg_buf *buf)
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

/* Takes @item over, as the member @key of @map. */
static void put_map(struct lkg_tool_map *map, const char *key, struct lkg_tool_map *item)
{
        map->failed |= item->failed;
        lkg_tool_map_value(map, key, item->value);
}

static void put_message(struct lkg_tool_map *map, const char *key, const char *text)
{
        struct lkg_tool_map message;

        lkg_tool_map_init(&message, false);
        lkg_tool_map_string(&message, "text", text);
        put_map(map, key, &message);
}

/* A list with one member; takes @item over. */
static void put_single(struct lkg_tool_map *map, const char *key, struct lkg_tool_map *item)
{
        struct lkg_value *list = lkg_value_new_list(NULL, 0, 0);

        lkg_tool_list_take(list, item, &map->failed);
        lkg_tool_map_value(map, key, list);
}

static void put_location(struct lkg_annotations *a, struct lkg_tool_map *map, const char *path,
                         unsigned line, unsigned column)
{
        LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf uri = LKG_BUF_INIT;
        struct lkg_tool_map artifact, region, physical, location;

        if (!path)
                return;
        lkg_sarif_uri(shown_path(a, path), &uri);
        lkg_buf_putc(&uri, '\0');
        map->failed |= lkg_buf_failed(&uri);
        lkg_tool_map_init(&artifact, false);
        lkg_tool_map_string(&artifact, "uri", uri.data ? uri.data : "");
        lkg_tool_map_init(&physical, false);
        put_map(&physical, "artifactLocation", &artifact);
        if (line) {
                lkg_tool_map_init(&region, false);
                lkg_tool_map_number(&region, "startLine", line);
                lkg_tool_map_number(&region, "startColumn", column ? column : 1);
                put_map(&physical, "region", &region);
        }
        lkg_tool_map_init(&location, false);
        put_map(&location, "physicalLocation", &physical);
        put_single(map, "locations", &location);
}

static void add_rule(struct lkg_annotations *a, const struct lkg_finding_kind *kind, const char *id)
{
        struct lkg_tool_map rule, configuration;

        lkg_tool_map_init(&configuration, false);
        lkg_tool_map_string(&configuration, "level", lkg_severity_name(kind->severity));
        lkg_tool_map_init(&rule, false);
        lkg_tool_map_string(&rule, "id", id);
        put_message(&rule, "shortDescription", kind->title);
        put_message(&rule, "fullDescription", kind->paragraph);
        put_message(&rule, "help", kind->advice);
        put_map(&rule, "defaultConfiguration", &configuration);
        lkg_tool_list_take(a->rules, &rule, &a->no_memory);
        a->n_rules++;
}

/* Return: the place of its rule, from 1; 0: no row is about this code. */
static size_t rule_of(struct lkg_annotations *a, unsigned code, const char *id)
{
        for (size_t i = 0; i < lkg_n_finding_kinds; i++) {
                if (lkg_finding_kinds[i].code != code)
                        continue;
                if (!a->rule_of[i]) {
                        add_rule(a, &lkg_finding_kinds[i], id);
                        a->rule_of[i] = a->n_rules;
                }
                return a->rule_of[i];
        }
        return 0;
}

static void add_result(struct lkg_annotations *a, const char *place, const struct lkg_finding *f)
{
        struct lkg_tool_map result;
        char id[16];
        size_t rule;

        (void)snprintf(id, sizeof(id), "LKG%04u", f->code);
        rule = rule_of(a, f->code, id);
        lkg_tool_map_init(&result, false);
        lkg_tool_map_string(&result, "ruleId", id);
        if (rule)
                lkg_tool_map_number(&result, "ruleIndex", rule - 1);
        lkg_tool_map_string(&result, "level", lkg_severity_name(f->severity));
        put_message(&result, "message", f->text);
        put_location(a, &result, f->file ? f->file : place, f->file ? f->line : 0, f->column);
        lkg_tool_list_take(a->results, &result, &a->no_memory);
}

static void add_sarif(struct lkg_annotations *a, const char *place, const struct lkg_report *report)
{
        for (size_t i = 0; i < report->n_findings && !a->no_memory; i++)
                add_result(a, place, &report->findings[i]);
}

static void fail_sarif(struct lkg_annotations *a, const char *place, const char *message)
{
        struct lkg_tool_map failure;

        lkg_tool_map_init(&failure, false);
        lkg_tool_map_string(&failure, "level", "error");
        put_message(&failure, "message", message);
        put_location(a, &failure, place, 0, 0);
        lkg_tool_list_take(a->failures, &failure, &a->no_memory);
}

static void put_tool(struct lkg_annotations *a, struct lkg_tool_map *run)
{
        struct lkg_tool_map driver, tool;

        lkg_tool_map_init(&driver, false);
        lkg_tool_map_string(&driver, "name", "lkgfs");
        lkg_tool_map_string(&driver, "version", LKG_VERSION);
        lkg_tool_map_value(&driver, "rules", LKG_STEAL(a->rules));
        lkg_tool_map_init(&tool, false);
        put_map(&tool, "driver", &driver);
        put_map(run, "tool", &tool);
}

static int print_sarif(struct lkg_annotations *a, int status)
{
        struct lkg_tool_map log, run, invocation;
        struct lkg_tool json = *a->tool;

        json.options.format = LKG_TOOL_JSON;
        lkg_tool_map_init(&run, false);
        put_tool(a, &run);
        lkg_tool_map_string(&run, "columnKind", "unicodeCodePoints");
        lkg_tool_map_init(&invocation, false);
        lkg_tool_map_bool(&invocation, "executionSuccessful", lkg_value_size(a->failures) == 0);
        lkg_tool_map_number(&invocation, "exitCode", (uint64_t)status);
        lkg_tool_map_value(&invocation, "toolExecutionNotifications", LKG_STEAL(a->failures));
        put_single(&run, "invocations", &invocation);
        lkg_tool_map_value(&run, "results", LKG_STEAL(a->results));
        lkg_tool_map_init(&log, false);
        lkg_tool_map_string(&log, "$schema", SCHEMA);
        lkg_tool_map_string(&log, "version", "2.1.0");
        put_single(&log, "runs", &run);
        return lkg_tool_print_map(&json, &log, status);
}

/* ---- workflow commands ---- */

/* Workflow commands of GitHub Actions, one line for each finding: `::error file=F,line=L,col=C,title=T::message`. */

/* In a property a colon or a comma would end it; in both, a line break would end the command. */
static void put_escaped(struct lkg_buf *buf, const char *text, bool property)
{
        LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf clean = LKG_BUF_INIT;

        lkg_buf_utf8(&clean, text, strlen(text));
        lkg_buf_putc(&clean, '\0');
        for (const char *p = clean.data; p && *p; p++) {
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

static const char *title_of(unsigned code)
{
        for (size_t i = 0; i < lkg_n_finding_kinds; i++)
                if (lkg_finding_kinds[i].code == code)
                        return lkg_finding_kinds[i].title;
        return "";
}

static void put_finding(struct lkg_annotations *a, const char *place, const struct lkg_finding *f)
{
        static const char *const commands[_LKG_SEVERITY_MAX] = {
                [LKG_ERROR] = "error",
                [LKG_WARNING] = "warning",
                [LKG_NOTE] = "notice",
        };
        const char *file = f->file ? f->file : place;

        lkg_buf_printf(&a->lines, "::%s ", commands[f->severity]);
        if (file)
                put_file(a, file);
        if (f->file && f->line)
                lkg_buf_printf(&a->lines, "line=%u,col=%u,", f->line, f->column ? f->column : 1);
        lkg_buf_printf(&a->lines, "title=LKG%04u ", f->code);
        put_escaped(&a->lines, title_of(f->code), true);
        lkg_buf_puts(&a->lines, "::");
        put_escaped(&a->lines, f->text, false);
        lkg_buf_putc(&a->lines, '\n');
}

static void add_workflow(struct lkg_annotations *a, const char *place, const struct lkg_report *report)
{
        for (size_t i = 0; i < report->n_findings; i++)
                put_finding(a, place, &report->findings[i]);
}

static void fail_workflow(struct lkg_annotations *a, const char *place, const char *message)
{
        lkg_buf_puts(&a->lines, "::error ");
        if (place)
                put_file(a, place);
        lkg_buf_puts(&a->lines, "title=lkgfs check::");
        put_escaped(&a->lines, message, false);
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
        if (cwd && asprintf(&a->directory, "%s%s", cwd, strcmp(cwd, "/") == 0 ? "" : "/") < 0)
                a->directory = NULL;
        if (tool->options.format != LKG_TOOL_SARIF)
                return;
        a->rules = lkg_value_new_list(NULL, 0, 0);
        a->results = lkg_value_new_list(NULL, 0, 0);
        a->failures = lkg_value_new_list(NULL, 0, 0);
        a->rule_of = calloc(lkg_n_finding_kinds, sizeof(*a->rule_of));
        a->no_memory = !a->rules || !a->results || !a->failures || !a->rule_of;
}

void lkg_annotations_deinit(struct lkg_annotations *a)
{
        free(a->directory);
        free(a->rule_of);
        lkg_value_unref(a->rules);
        lkg_value_unref(a->results);
        lkg_value_unref(a->failures);
        lkg_buf_deinit(&a->lines);
}

void lkg_annotations_add(struct lkg_annotations *a, const char *place, const struct lkg_report *report)
{
        LKG_CLEANUP(lkg_report_deinit) struct lkg_report arranged = LKG_REPORT_INIT;
        char message[96];

        lkg_tool_arrange(a->tool, report, &arranged);
        if (a->tool->options.format == LKG_TOOL_SARIF)
                add_sarif(a, place, &arranged);
        else
                add_workflow(a, place, &arranged);
        if (!report->n_dropped)
                return;
        (void)snprintf(message, sizeof(message), "%zu more findings are not listed", report->n_dropped);
        lkg_annotations_fail(a, place, message);
}

void lkg_annotations_fail(struct lkg_annotations *a, const char *place, const char *message)
{
        if (a->tool->options.format == LKG_TOOL_SARIF)
                fail_sarif(a, place, message);
        else
                fail_workflow(a, place, message);
}

int lkg_annotations_print(struct lkg_annotations *a, int status)
{
        if (a->no_memory || lkg_buf_failed(&a->lines))
                return lkg_tool_fail(a->tool, LKG_TOOL_FAILED, "%s", strerror(ENOMEM));
        return a->tool->options.format == LKG_TOOL_SARIF ? print_sarif(a, status)
                                                         : lkg_tool_print(&a->lines, status);
}
