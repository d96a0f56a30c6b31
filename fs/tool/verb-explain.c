/* SPDX-License-Identifier: Apache-2.0 */
/* lkgfs explain: explains finding codes, fields, flags and feature gates. */
#include "explain.h"

/* "LKG1001", "lkg1001" or "1001"; 0 = none of these. */
static unsigned parse_code(const char *text)
{
        unsigned long code;
        char *end;

        if (strncasecmp(text, "LKG", 3) == 0)
                text += 3;
        if (*text < '0' || *text > '9' || strlen(text) > 6)
                return 0;
        code = strtoul(text, &end, 10);
        return *end ? 0 : (unsigned)code;
}

static bool structured(const struct lkg_tool *tool)
{
        return tool->options.format == LKG_TOOL_JSON || tool->options.format == LKG_TOOL_YAML;
}

/* ---- codes ---- */

static struct lkg_value *kind_value(const struct lkg_finding_kind *kind, bool *failed)
{
        struct lkg_tool_map map;
        char code[16];

        (void)snprintf(code, sizeof(code), "LKG%04u", kind->code);
        lkg_tool_map_init(&map, false);
        lkg_tool_map_string(&map, "code", code);
        lkg_tool_map_string(&map, "severity", lkg_severity_name(kind->severity));
        lkg_tool_map_string(&map, "title", kind->title);
        lkg_tool_map_string(&map, "paragraph", kind->paragraph);
        lkg_tool_map_string(&map, "advice", kind->advice);
        *failed |= map.failed;
        return map.value;
}

static int print_codes_structured(const struct lkg_tool *tool, unsigned wanted)
{
        struct lkg_value *list = lkg_value_new_list(NULL, 0, 0);
        struct lkg_tool_map map;

        lkg_tool_map_init(&map, true);
        for (size_t i = 0; list && i < lkg_n_finding_kinds; i++) {
                struct lkg_tool_map item = { 0 };

                if (wanted && lkg_finding_kinds[i].code != wanted)
                        continue;
                item.value = kind_value(&lkg_finding_kinds[i], &item.failed);
                lkg_tool_list_take(list, &item, &map.failed);
        }
        lkg_tool_map_value(&map, "codes", list);
        return lkg_tool_print_map(tool, &map, LKG_TOOL_OK);
}

#define COLUMNS 80

/* Add @text, wrapped at spaces. */
static void append_wrapped(struct lkg_buf *buf, const char *text)
{
        size_t column = 0;

        while (*text) {
                size_t size = strcspn(text, " ");

                if (column > 0 && column + 1 + size > COLUMNS) {
                        lkg_buf_printf(buf, "\n");
                        column = 0;
                }
                lkg_buf_printf(buf, "%s%.*s", column ? " " : "", (int)size, text);
                column += size + (column > 0);
                text += size;
                text += strspn(text, " ");
        }
        lkg_buf_printf(buf, "\n");
}

static int print_codes_text(unsigned wanted)
{
        LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf buf = LKG_BUF_INIT;

        for (size_t i = 0; i < lkg_n_finding_kinds; i++) {
                const struct lkg_finding_kind *kind = &lkg_finding_kinds[i];

                if (!wanted) {
                        lkg_buf_printf(&buf, "LKG%04u  %-7s  %s\n", kind->code,
                                       lkg_severity_name(kind->severity), kind->title);
                } else if (kind->code == wanted) {
                        lkg_buf_printf(&buf, "LKG%04u (%s): %s\n\n", kind->code,
                                       lkg_severity_name(kind->severity), kind->title);
                        append_wrapped(&buf, kind->paragraph);
                        lkg_buf_printf(&buf, "\nWhat to do:\n");
                        append_wrapped(&buf, kind->advice);
                }
        }
        return lkg_tool_print(&buf, LKG_TOOL_OK);
}

static int print_codes(const struct lkg_tool *tool, unsigned wanted)
{
        return structured(tool) ? print_codes_structured(tool, wanted) : print_codes_text(wanted);
}

static bool code_known(unsigned code)
{
        for (size_t i = 0; i < lkg_n_finding_kinds; i++)
                if (lkg_finding_kinds[i].code == code)
                        return true;
        return false;
}

/* ---- names ---- */

static unsigned release_of(const struct lkg_tool *tool)
{
        return tool->options.release ? tool->options.release : LKG_RELEASE_MAX;
}

static size_t n_shown(const struct lkg_explained_list *list)
{
        return list->n_items < LKG_EXPLAINED_MAX ? list->n_items : LKG_EXPLAINED_MAX;
}

static int print_names_structured(const struct lkg_tool *tool, const struct lkg_explained_list *list)
{
        static const char *const keys[] = { [LKG_EXPLAINED_FIELD] = "fields",
                                            [LKG_EXPLAINED_FLAG] = "flags",
                                            [LKG_EXPLAINED_GATE] = "gates" };
        struct lkg_tool_map map;

        lkg_tool_map_init(&map, true);
        for (size_t what = 0; what < LKG_ARRAY_SIZE(keys); what++) {
                struct lkg_value *values = lkg_value_new_list(NULL, 0, 0);

                for (size_t i = 0; values && i < n_shown(list); i++) {
                        struct lkg_tool_map item;

                        if (list->items[i].what != what)
                                continue;
                        lkg_explain_value(&list->items[i], release_of(tool), &item);
                        lkg_tool_list_take(values, &item, &map.failed);
                }
                lkg_tool_map_value(&map, keys[what], values);
        }
        return lkg_tool_print_map(tool, &map, LKG_TOOL_OK);
}

static int print_names(const struct lkg_tool *tool, const struct lkg_explained_list *list)
{
        LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf buf = LKG_BUF_INIT;

        if (structured(tool))
                return print_names_structured(tool, list);
        for (size_t i = 0; i < n_shown(list); i++) {
                if (i > 0)
                        lkg_buf_printf(&buf, "\n");
                lkg_explain_text(&list->items[i], release_of(tool), &buf);
        }
        return lkg_tool_print(&buf, LKG_TOOL_OK);
}

/* `enabled` is the end of several paths. */
static int refuse_ambiguous(const struct lkg_tool *tool, const struct lkg_explained_list *list)
{
        LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf buf = LKG_BUF_INIT;

        for (size_t i = 0; i < n_shown(list); i++)
                lkg_buf_printf(&buf, "%s%s", i ? ", " : "", list->items[i].field->path);
        if (lkg_buf_failed(&buf))
                return lkg_tool_fail(tool, LKG_TOOL_FAILED, "%s", strerror(ENOMEM));
        return lkg_tool_fail(tool, LKG_TOOL_USAGE, "\"%.60s\" may be one of: %s", tool->words[0], buf.data);
}

static int refuse_unknown(const struct lkg_tool *tool)
{
        LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf buf = LKG_BUF_INIT;
        struct lkg_explain_near near;

        lkg_explain_nearest(tool->words[0], tool->options.kind, &near);
        for (size_t i = 0; i < near.n; i++)
                lkg_buf_printf(&buf, "%s`%s`",
                               i == 0           ? ", did you mean "
                               : i + 1 < near.n ? ", "
                                                : " or ",
                               near.names[i]);
        lkg_buf_puts(&buf, near.n ? "?" : "; `lkgfs explain` lists the codes");
        if (lkg_buf_failed(&buf))
                return lkg_tool_fail(tool, LKG_TOOL_FAILED, "%s", strerror(ENOMEM));
        return lkg_tool_fail(tool, LKG_TOOL_USAGE,
                             "\"%.60s\" is no field, flag, feature gate or finding code%s", tool->words[0],
                             buf.data);
}

int lkg_verb_explain(const struct lkg_tool *tool)
{
        const char *kind = tool->options.kind;
        struct lkg_explained_list list;
        unsigned code;

        if (lkg_tool_check_release(tool) != LKG_TOOL_OK)
                return LKG_TOOL_USAGE;
        if (kind && !lkg_explain_kind_known(kind))
                return lkg_tool_fail(tool, LKG_TOOL_USAGE, "there are no tables for kind \"%.60s\"", kind);
        if (tool->n_words == 0)
                return print_codes(tool, 0);
        code = parse_code(tool->words[0]);
        if (code && code_known(code))
                return print_codes(tool, code);
        lkg_explain_find(tool->words[0], kind, &list);
        if (list.n_items == 0)
                return refuse_unknown(tool);
        if (list.ambiguous)
                return refuse_ambiguous(tool, &list);
        return print_names(tool, &list);
}
