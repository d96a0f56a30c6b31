/* SPDX-License-Identifier: Apache-2.0 */
/* lkgfs schema: the kinds with tables as JSON Schema, for editors; without a word, their list. */
#include "tool.h"

#include <lkg/schema.h>

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

        if (lkg_tool_check_release(tool) != LKG_TOOL_OK)
                return LKG_TOOL_USAGE;
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
