/* SPDX-License-Identifier: Apache-2.0 */
/* lkgfs explain: explains finding codes, fields, flags and feature gates. lkgfs schema: kinds as JSON Schema. */
#include "tool.h"

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

/* ---- codes ---- */

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

static struct lkg_value *map_kind(const struct lkg_finding_kind *kind)
{
        struct lkg_value *map = lkg_tool_map();

        lkg_tool_map_text(map, "code", "LKG%04u", kind->code);
        lkg_tool_map_string(map, "severity", lkg_severity_name(kind->severity));
        lkg_tool_map_string(map, "title", kind->title);
        lkg_tool_map_string(map, "paragraph", kind->paragraph);
        lkg_tool_map_string(map, "advice", kind->advice);
        return map;
}

static void put_kind(const struct lkg_finding_kind *kind, bool whole, struct lkg_buf *buf)
{
        if (!whole) {
                lkg_buf_printf(buf, "LKG%04u  %-7s  %s\n", kind->code, lkg_severity_name(kind->severity),
                               kind->title);
                return;
        }
        lkg_buf_printf(buf, "LKG%04u (%s): %s\n\n", kind->code, lkg_severity_name(kind->severity),
                       kind->title);
        append_wrapped(buf, kind->paragraph);
        lkg_buf_puts(buf, "\nWhat to do:\n");
        append_wrapped(buf, kind->advice);
}

/* @wanted: 0 = all */
static int print_codes(const struct lkg_tool *tool, unsigned wanted)
{
        LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf buf = LKG_BUF_INIT;
        LKG_CLEANUP(lkg_value_unrefp) struct lkg_value *list = lkg_tool_list();

        for (size_t i = 0; i < lkg_n_finding_kinds; i++) {
                if (wanted && lkg_finding_kinds[i].code != wanted)
                        continue;
                lkg_tool_append(list, map_kind(&lkg_finding_kinds[i]));
                put_kind(&lkg_finding_kinds[i], wanted, &buf);
        }
        return lkg_tool_structured(tool) ? lkg_tool_print_listed(tool, NULL, "codes", list, LKG_TOOL_OK)
                                         : lkg_tool_print(&buf, LKG_TOOL_OK);
}

/* ---- names ---- */

static size_t n_shown(const struct lkg_explained_list *list)
{
        return list->n_items < LKG_EXPLAINED_MAX ? list->n_items : LKG_EXPLAINED_MAX;
}

static int print_names(const struct lkg_tool *tool, const struct lkg_explained_list *list)
{
        static const char *const keys[] = { [LKG_EXPLAINED_FIELD] = "fields",
                                            [LKG_EXPLAINED_FLAG] = "flags",
                                            [LKG_EXPLAINED_GATE] = "gates" };
        unsigned release = tool->options.release ? tool->options.release : LKG_RELEASE_MAX;
        LKG_CLEANUP(lkg_value_unrefp) struct lkg_value *map = lkg_tool_document();
        LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf buf = LKG_BUF_INIT;

        for (size_t what = 0; what < LKG_ARRAY_SIZE(keys); what++)
                lkg_tool_map_value(map, keys[what], lkg_tool_list());
        for (size_t i = 0; i < n_shown(list); i++) {
                lkg_buf_puts(&buf, i ? "\n" : "");
                lkg_tool_append(lkg_map_get(map, keys[list->items[i].what]),
                                lkg_explain_show(&list->items[i], release, &buf));
        }
        return lkg_tool_structured(tool) ? lkg_tool_print_map(tool, LKG_STEAL(map), LKG_TOOL_OK)
                                         : lkg_tool_print(&buf, LKG_TOOL_OK);
}

/* `enabled` is the end of several paths. */
static int refuse_ambiguous(const struct lkg_tool *tool, const struct lkg_explained_list *list)
{
        LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf buf = LKG_BUF_INIT;

        for (size_t i = 0; i < n_shown(list); i++)
                lkg_buf_printf(&buf, "%s%s", i ? ", " : "", list->items[i].field->path);

        return lkg_tool_fail(tool, LKG_TOOL_USAGE, "\"%.60s\" may be one of: %s", tool->words[0],
                             lkg_tool_text(&buf));
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

        return lkg_tool_fail(tool, LKG_TOOL_USAGE,
                             "\"%.60s\" is not a field, flag, feature gate or finding code%s",
                             tool->words[0], lkg_tool_text(&buf));
}

int lkg_verb_explain(const struct lkg_tool *tool)
{
        const char *kind = tool->options.kind;
        struct lkg_explained_list list;
        unsigned code;

        if (kind && !lkg_explain_kind_known(kind))
                return lkg_tool_fail(tool, LKG_TOOL_USAGE, "there are no tables for kind \"%.60s\"", kind);
        if (tool->n_words == 0)
                return print_codes(tool, 0);
        code = parse_code(tool->words[0]);
        if (code && lkg_finding_kind(code))
                return print_codes(tool, code);
        lkg_explain_find(tool->words[0], kind, &list);
        if (list.n_items == 0)
                return refuse_unknown(tool);
        if (list.ambiguous)
                return refuse_ambiguous(tool, &list);
        return print_names(tool, &list);
}

/* ---- schema: the kinds with tables as JSON Schema, for editors; without a word, their list ---- */

static int list_kinds(void)
{
        LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf buf = LKG_BUF_INIT;
        char first[LKG_RELEASE_TEXT_MAX], last[LKG_RELEASE_TEXT_MAX];

        for (size_t i = 0; i < lkg_n_kinds; i++)
                lkg_buf_printf(&buf, "%-24s %-32s %s to %s\n", lkg_kinds[i].kind, lkg_kinds[i].api_version,
                               lkg_release_text(LKG_RELEASE_MIN, first),
                               lkg_release_text(LKG_RELEASE_MAX, last));
        lkg_buf_printf(&buf, "%-24s %s\n", LKG_CONFIG_KIND, LKG_CONFIG_API_VERSION);
        return lkg_tool_print(&buf, LKG_TOOL_OK);
}

static int print_schema(const struct lkg_tool *tool, struct lkg_json *json)
{
        LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf buf = LKG_BUF_INIT;
        int r = lkg_json_write_line(json, &buf);

        if (r < 0)
                return lkg_tool_fail(tool, LKG_TOOL_FAILED, "%s", strerror(-r));
        return lkg_tool_print(&buf, LKG_TOOL_OK);
}

static int print_kind(const struct lkg_tool *tool, const struct lkg_kind *kind)
{
        LKG_CLEANUP(lkg_json_deinit) struct lkg_json json = LKG_JSON_INIT;
        const struct lkg_schema *schema;
        int r = lkg_schema_get(kind->kind, kind->api_version, tool->options.release, &schema);

        if (r < 0)
                return lkg_tool_fail(tool, LKG_TOOL_FAILED, "%s: %s", kind->kind, strerror(-r));
        lkg_schema_json(schema, &json);
        return print_schema(tool, &json);
}

static int print_configuration(const struct lkg_tool *tool)
{
        LKG_CLEANUP(lkg_json_deinit) struct lkg_json json = LKG_JSON_INIT;

        if (tool->options.release)
                return lkg_tool_fail(tool, LKG_TOOL_USAGE,
                                     "--release: %s does not depend on a release of Kubernetes",
                                     LKG_CONFIG_KIND);
        lkg_config_json(&json);
        return print_schema(tool, &json);
}

int lkg_verb_schema(const struct lkg_tool *tool)
{
        const char *word = tool->n_words > 0 ? tool->words[0] : NULL;

        if (!word)
                return list_kinds();
        if (strcasecmp(word, LKG_CONFIG_KIND) == 0 || strcasecmp(word, "lkgfs") == 0)
                return print_configuration(tool);
        for (size_t i = 0; i < lkg_n_kinds; i++)
                if (strcasecmp(word, lkg_kinds[i].kind) == 0 ||
                    strcasecmp(word, lkg_kinds[i].component) == 0)
                        return print_kind(tool, &lkg_kinds[i]);
        return lkg_tool_fail(tool, LKG_TOOL_USAGE,
                             "there is no schema for kind \"%.60s\"; `lkgfs schema` lists them", word);
}
