/* SPDX-License-Identifier: Apache-2.0 */
/*
 * SARIF 2.1.0: one log with one run. The rules are the kinds of finding that occur; a result names file, line and column. What
 * could not be read is a notification of the run, which then was not successful.
 */
#include "annotations.h"

#include <ctype.h>

#include "lkg-config.h"

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
        lkg_sarif_uri(lkg_annotations_path(a, path), &uri);
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

void lkg_sarif_add(struct lkg_annotations *a, const char *place, const struct lkg_report *report)
{
        for (size_t i = 0; i < report->n_findings && !a->no_memory; i++)
                add_result(a, place, &report->findings[i]);
}

void lkg_sarif_fail(struct lkg_annotations *a, const char *place, const char *message)
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

int lkg_sarif_print(struct lkg_annotations *a, int status)
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
