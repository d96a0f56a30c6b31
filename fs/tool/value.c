/* SPDX-License-Identifier: Apache-2.0 */
/* Structured output is a value tree, too: one renderer makes both its JSON and its YAML. */
#include <limits.h>

#include "tool.h"

#include <lkg/documents.h>

#define SCHEMA_VERSION 1

void lkg_tool_map_value(struct lkg_tool_map *map, const char *key, struct lkg_value *value)
{
        if (!value || !map->value) {
                lkg_value_unref(value);
                map->failed = true;
                return;
        }
        if (lkg_map_set(map->value, key, strlen(key), value) < 0)
                map->failed = true;
}

void lkg_tool_map_init(struct lkg_tool_map *map, bool schema_version)
{
        *map = (struct lkg_tool_map){ .value = lkg_value_new_map(NULL, 0, 0) };
        map->failed = !map->value;
        if (schema_version)
                lkg_tool_map_number(map, "schemaVersion", SCHEMA_VERSION);
}

void lkg_tool_map_deinit(struct lkg_tool_map *map)
{
        map->value = lkg_value_unref(map->value);
}

void lkg_tool_map_string(struct lkg_tool_map *map, const char *key, const char *text)
{
        LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf buf = LKG_BUF_INIT;

        if (!text)
                return;
        lkg_buf_append(&buf, "", 0);
        lkg_buf_utf8(&buf, text, strlen(text)); /* a file may have any name */
        lkg_tool_map_value(map, key,
                           lkg_buf_failed(&buf) ? NULL
                                                : lkg_value_new_string(buf.data, buf.size, NULL, 0, 0));
}

void lkg_tool_map_number(struct lkg_tool_map *map, const char *key, uint64_t number)
{
        char text[24];

        (void)snprintf(text, sizeof(text), "%llu", (unsigned long long)number);
        lkg_tool_map_value(map, key, lkg_value_new_number(text, NULL, 0, 0));
}

void lkg_tool_map_bool(struct lkg_tool_map *map, const char *key, bool b)
{
        lkg_tool_map_value(map, key, lkg_value_new_bool(b, NULL, 0, 0));
}

void lkg_tool_list_take(struct lkg_value *list, struct lkg_tool_map *item, bool *failed)
{
        struct lkg_value *value = LKG_STEAL(item->value);

        if (!list || !value || item->failed) {
                lkg_value_unref(value);
                *failed = true;
                return;
        }
        if (lkg_list_append(list, value) < 0)
                *failed = true;
}

int lkg_tool_print_map(const struct lkg_tool *tool, struct lkg_tool_map *map, int status)
{
        int r = map->failed ? lkg_tool_fail(tool, LKG_TOOL_FAILED, "%s", strerror(ENOMEM))
                            : lkg_tool_print_value(map->value, tool->options.format, status);

        lkg_tool_map_deinit(map);
        return r;
}

struct lkg_value *lkg_tool_findings_value(const struct lkg_report *report,
                                          const char *(*class_of)(const struct lkg_finding *finding))
{
        LKG_CLEANUP(lkg_value_unrefp) struct lkg_value *list = lkg_value_new_list(NULL, 0, 0);
        bool failed = !list;

        for (size_t i = 0; i < report->n_findings && !failed; i++) {
                const struct lkg_finding *f = &report->findings[i];
                struct lkg_tool_map item;
                char code[16];

                (void)snprintf(code, sizeof(code), "LKG%04u", f->code);
                lkg_tool_map_init(&item, false);
                lkg_tool_map_string(&item, "severity", lkg_severity_name(f->severity));
                lkg_tool_map_string(&item, "code", code);
                if (class_of)
                        lkg_tool_map_string(&item, "class", class_of(f));
                lkg_tool_map_string(&item, "text", f->text);
                lkg_tool_map_string(&item, "file", f->file);
                if (f->file && f->line) {
                        lkg_tool_map_number(&item, "line", f->line);
                        lkg_tool_map_number(&item, "column", f->column ? f->column : 1);
                }
                lkg_tool_list_take(list, &item, &failed);
        }
        return failed ? NULL : LKG_STEAL(list);
}

/*
 * The severity in the line of a finding: after its position, or at the start.
 * Return: false = not a finding.
 */
static bool find_severity(const char *line, size_t size, enum lkg_severity *ret, const char **ret_at)
{
        const char *first = NULL;

        for (unsigned s = 0; s < _LKG_SEVERITY_MAX; s++) {
                const char *name = lkg_severity_name((enum lkg_severity)s);
                size_t n = strlen(name);

                for (const char *at = line; at + n + 2 <= line + size; at++)
                        if (memcmp(at, name, n) == 0 && memcmp(at + n, ": ", 2) == 0 &&
                            (at == line || (at >= line + 2 && memcmp(at - 2, ": ", 2) == 0))) {
                                if (!first || at < first) {
                                        first = at;
                                        *ret = (enum lkg_severity)s;
                                }
                                break;
                        }
        }
        *ret_at = first;
        return first;
}

/* The number after the last colon of @place, which is cut off; 0 = none, and nothing is cut. */
static unsigned take_number(char *place)
{
        char *colon = strrchr(place, ':'), *end;
        unsigned long n;

        if (!colon || colon[1] < '1' || colon[1] > '9')
                return 0;
        n = strtoul(colon + 1, &end, 10);
        if (*end || n > UINT_MAX)
                return 0;
        *colon = '\0';
        return (unsigned)n;
}

static void parse_line(const char *line, size_t size, struct lkg_report *ret)
{
        LKG_CLEANUP(lkg_freep) char *place = NULL;
        LKG_CLEANUP(lkg_freep) char *text = NULL;
        struct lkg_where where = { 0 };
        enum lkg_severity severity;
        unsigned code = 0;
        const char *at;
        char *tail;

        if (!find_severity(line, size, &severity, &at))
                return;
        place = strndup(line, at > line ? (size_t)(at - line) - 2 : 0);
        at += strlen(lkg_severity_name(severity)) + 2;
        text = strndup(at, (size_t)(line + size - at));
        if (!place || !text)
                return;
        tail = strrchr(text, '[');
        if (tail && sscanf(tail, "[LKG%4u]", &code) == 1 && tail > text)
                tail[-1] = '\0';
        where.column = take_number(place);
        where.line = where.column ? take_number(place) : 0;
        if (where.column && !where.line) { /* only a line */
                where.line = where.column;
                where.column = 0;
        }
        where.file = *place ? place : NULL;
        lkg_report_add(ret, severity, code, &where, "%s", text);
}

void lkg_tool_findings_parse(const char *text, struct lkg_report *ret)
{
        while (text && *text) {
                size_t size = strcspn(text, "\n");

                parse_line(text, size, ret);
                text += size + (text[size] != '\0');
        }
}

static unsigned number_of(const struct lkg_value *item, const char *key)
{
        uint64_t n = lkg_record_number(item, key, 0);

        return n > UINT_MAX ? 0 : (unsigned)n;
}

static void take_finding(const struct lkg_value *item, struct lkg_report *ret)
{
        const char *severity = lkg_map_get_string(item, "severity"),
                   *code = lkg_map_get_string(item, "code");
        const char *text = lkg_map_get_string(item, "text");
        const struct lkg_where where = { lkg_map_get_string(item, "file"), number_of(item, "line"),
                                         number_of(item, "column") };
        unsigned number = 0;

        for (unsigned s = 0; severity && code && text && s < _LKG_SEVERITY_MAX; s++) {
                if (strcmp(severity, lkg_severity_name((enum lkg_severity)s)) != 0)
                        continue;
                (void)sscanf(code, "LKG%4u", &number);
                lkg_report_add(ret, (enum lkg_severity)s, number, &where, "%s", text);
        }
}

bool lkg_tool_findings_take(const struct lkg_value *map, struct lkg_report *ret)
{
        const struct lkg_value *list = map ? lkg_map_get(map, "findings") : NULL;

        if (!list || lkg_value_type(list) != LKG_LIST)
                return false;
        for (size_t i = 0; i < lkg_value_size(list); i++) {
                const struct lkg_value *item = lkg_list_get(list, i);

                if (lkg_value_type(item) == LKG_MAP)
                        take_finding(item, ret);
        }
        ret->n_dropped += lkg_record_number(map, "notListed", 0);
        return true;
}
