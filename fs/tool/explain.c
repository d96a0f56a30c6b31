/* SPDX-License-Identifier: Apache-2.0 */
/* lkgfs explain: the table of finding codes in words. */
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

static struct lkg_value *kind_value(const struct lkg_finding_kind *kind, bool *failed)
{
        struct lkg_tool_map map;
        char code[16];

        (void)snprintf(code, sizeof(code), "LKG%04u", kind->code);
        lkg_tool_map_init(&map, false);
        lkg_tool_map_string(&map, "code", code);
        lkg_tool_map_string(&map, "severity", lkg_severity_name(kind->severity));
        lkg_tool_map_string(&map, "title", kind->title);
        lkg_tool_map_string(&map, "advice", kind->advice);
        *failed |= map.failed;
        return map.value;
}

static int print_structured(const struct lkg_tool *tool, unsigned wanted)
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

static int print_text(unsigned wanted)
{
        LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf buf = LKG_BUF_INIT;

        for (size_t i = 0; i < lkg_n_finding_kinds; i++) {
                const struct lkg_finding_kind *kind = &lkg_finding_kinds[i];

                if (!wanted)
                        lkg_buf_printf(&buf, "LKG%04u  %-7s  %s\n", kind->code,
                                       lkg_severity_name(kind->severity), kind->title);
                else if (kind->code == wanted)
                        lkg_buf_printf(&buf, "LKG%04u (%s): %s\n\n%s\n", kind->code,
                                       lkg_severity_name(kind->severity), kind->title, kind->advice);
        }
        return lkg_tool_print(&buf, LKG_TOOL_OK);
}

int lkg_verb_explain(const struct lkg_tool *tool)
{
        unsigned wanted = 0;
        bool known = false;

        if (tool->n_words > 0) {
                wanted = parse_code(tool->words[0]);
                for (size_t i = 0; wanted && i < lkg_n_finding_kinds; i++)
                        known |= lkg_finding_kinds[i].code == wanted;
                if (!known)
                        return lkg_tool_fail(tool, LKG_TOOL_DIFFERENT,
                                             "\"%.60s\" is no finding code; `lkgfs explain` lists them",
                                             tool->words[0]);
        }
        if (tool->options.format == LKG_TOOL_JSON || tool->options.format == LKG_TOOL_YAML)
                return print_structured(tool, wanted);
        return print_text(wanted);
}
