/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lkgfs patch: one patch on one document, as the libraries upstream uses apply it. Like those it does not
 * compare kind and apiVersion: that is a rule of layers, not of patches.
 */
#include "tool.h"

#include <lkg/merge.h>
#include <lkg/render.h>

/* As for a layer, see core/base/findings.c: the top level of a document is not what a merge needs. */
#define CODE_NOT_A_MAP 2002

struct type {
        const char *name;
        int (*apply)(const struct lkg_value *target, const struct lkg_value *patch,
                     struct lkg_report *report, struct lkg_value **ret);
};

static bool is_container(const struct lkg_value *value)
{
        enum lkg_type type = lkg_value_type(value);

        return type == LKG_MAP || type == LKG_LIST;
}

static void refuse(struct lkg_report *report, const struct lkg_value *value, const char *what,
                   const char *want)
{
        const struct lkg_source *source = lkg_value_source(value);
        struct lkg_where where = { source ? source->file : NULL, lkg_value_line(value),
                                   lkg_value_column(value) };

        lkg_report_add(report, LKG_ERROR, CODE_NOT_A_MAP, &where, "the %s is a %s, want %s", what,
                       lkg_type_name(lkg_value_type(value)), want);
}

static int apply_merge(const struct lkg_value *target, const struct lkg_value *patch,
                       struct lkg_report *report, struct lkg_value **ret)
{
        if (!is_container(patch)) {
                refuse(report, patch, "patch", "a map or a list");
                return -EBADMSG;
        }
        return lkg_merge_json(target, patch, ret);
}

static int apply_strategic(const struct lkg_value *target, const struct lkg_value *patch,
                           struct lkg_report *report, struct lkg_value **ret)
{
        if (lkg_value_type(target) != LKG_MAP) {
                refuse(report, target, "target", "a map");
                return -EBADMSG;
        }
        if (lkg_value_type(patch) != LKG_MAP) {
                refuse(report, patch, "patch", "a map");
                return -EBADMSG;
        }
        return lkg_merge_strategic(target, patch, report, ret);
}

static const struct type types[] = {
        { "merge", apply_merge },
        { "strategic", apply_strategic },
};

static const struct type *find_type(const char *name)
{
        for (size_t i = 0; name && i < LKG_ARRAY_SIZE(types); i++)
                if (strcmp(types[i].name, name) == 0)
                        return &types[i];
        return NULL;
}

static int apply(const struct lkg_tool *tool, const struct type *type, struct lkg_report *report,
                 enum lkg_format *ret_format, struct lkg_value **ret)
{
        LKG_CLEANUP(lkg_value_unrefp) struct lkg_value *target = NULL;
        LKG_CLEANUP(lkg_value_unrefp) struct lkg_value *patch = NULL;
        int r;

        r = lkg_tool_read_doc(tool, tool->words[0], false, 0, report, ret_format, &target);
        if (r != LKG_TOOL_FAILED) {
                int s = lkg_tool_read_doc(tool, tool->words[1], false, 0, report, NULL, &patch);

                r = s > r ? s : r;
        }
        if (r != LKG_TOOL_OK)
                return r;
        r = type->apply(target, patch, report, ret);
        if (r == -EBADMSG)
                return LKG_TOOL_DIFFERENT;
        return r < 0 ? lkg_tool_fail(tool, LKG_TOOL_FAILED, "%s", strerror(-r)) : LKG_TOOL_OK;
}

int lkg_verb_patch(const struct lkg_tool *tool)
{
        LKG_CLEANUP(lkg_report_deinit) struct lkg_report report = LKG_REPORT_INIT;
        LKG_CLEANUP(lkg_value_unrefp) struct lkg_value *doc = NULL;
        LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf buf = LKG_BUF_INIT;
        const struct type *type = find_type(tool->options.type);
        enum lkg_format format = LKG_FORMAT_YAML;
        int r;

        if (!tool->options.type)
                return lkg_tool_fail(tool, LKG_TOOL_USAGE, "which patch? --type merge or --type strategic");
        if (!type)
                return lkg_tool_fail(tool, LKG_TOOL_USAGE,
                                     "--type \"%.60s\" is not known, want merge or strategic",
                                     tool->options.type);
        if (strcmp(tool->words[0], "-") == 0 && strcmp(tool->words[1], "-") == 0)
                return lkg_tool_fail(tool, LKG_TOOL_USAGE,
                                     "only one of the documents can be standard input");
        r = apply(tool, type, &report, &format, &doc);
        lkg_tool_print_findings(tool, STDERR_FILENO, &report);
        if (r != LKG_TOOL_OK)
                return r;
        lkg_render(doc, lkg_tool_render_format(tool, format), &buf);
        return lkg_tool_print(&buf, LKG_TOOL_OK);
}
