/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lkgfs render: prints the merged document as it would be served, without the comment line; or the effective
 * one. In YAML the effective document is for people, with a mark after each value and with masked secrets,
 * as in status/; in JSON it is for programs, and complete. The merged document is complete in both formats.
 */
#include "tool.h"

static void render_effective(const struct lkg_value *effective, enum lkg_format format, struct lkg_buf *buf)
{
        LKG_CLEANUP(lkg_value_unrefp) struct lkg_value *masked = NULL;

        if (format != LKG_FORMAT_YAML) {
                lkg_render(effective, format, buf);
                return;
        }
        masked = lkg_tool_own(lkg_mask_secrets(effective));
        lkg_effective_render(masked, buf);
}

int lkg_verb_render(const struct lkg_tool *tool)
{
        LKG_CLEANUP(lkg_tool_sources_deinit) struct lkg_tool_sources sources = { .dirfd = -EBADF };
        LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf buf = LKG_BUF_INIT;
        const struct lkg_candidate *candidate;
        enum lkg_format format;
        int r;

        r = lkg_tool_sources_load(tool, &sources);
        if (r != LKG_TOOL_OK)
                return r;
        candidate = sources.candidate;
        lkg_tool_print_findings(tool, STDERR_FILENO, &candidate->report);
        if (candidate->state == LKG_CANDIDATE_NONE)
                return lkg_tool_no_document(tool);
        if (candidate->state != LKG_CANDIDATE_VALID)
                return LKG_TOOL_DIFFERENT;
        if (tool->options.effective && !candidate->effective)
                return lkg_tool_fail(
                        tool, LKG_TOOL_DIFFERENT,
                        "--effective needs the field tables of a kind, and there are none for this "
                        "one (KubeletConfiguration and KubeProxyConfiguration have them)");
        format = lkg_tool_render_format(tool, candidate->format);
        if (!tool->options.effective)
                r = lkg_tool_render(tool, candidate->doc, format, &buf);
        else
                render_effective(candidate->effective, format, &buf);
        return r == LKG_TOOL_OK ? lkg_tool_print(&buf, LKG_TOOL_OK) : r;
}

/* ---- one document ---- */

static int print_doc(const struct lkg_tool *tool, const struct lkg_value *doc, enum lkg_format format)
{
        LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf buf = LKG_BUF_INIT;
        int r = lkg_tool_render(tool, doc, lkg_tool_render_format(tool, format), &buf);

        return r == LKG_TOOL_OK ? lkg_tool_print(&buf, LKG_TOOL_OK) : r;
}

/* lkgfs convert: one document as sigs.k8s.io/yaml (or Go's JSON decoder) reads it, in canonical form. */

int lkg_verb_convert(const struct lkg_tool *tool)
{
        LKG_CLEANUP(lkg_report_deinit) struct lkg_report report = LKG_REPORT_INIT;
        LKG_CLEANUP(lkg_value_unrefp) struct lkg_value *doc = NULL;
        enum lkg_format format = LKG_FORMAT_YAML;
        int r;

        r = lkg_tool_read_doc(tool, tool->words[0], true,
                              tool->options.document.strict ? LKG_DECODE_STRICT : 0, &report, &format, &doc);
        lkg_tool_print_findings(tool, STDERR_FILENO, &report);
        if (r != LKG_TOOL_OK)
                return r;
        return print_doc(tool, doc, format);
}

/* ---- verb-patch ---- */

/*
 * lkgfs patch: applies one patch to one document, as the libraries that upstream uses do. Like these, it
 * does not compare kind and apiVersion: that is a rule for layers, not for patches.
 */

struct type {
        const char *name;
        unsigned decode_flags;
        int (*apply)(const struct lkg_tool *tool, const struct lkg_value *target,
                     const struct lkg_value *patch, struct lkg_report *report, struct lkg_value **ret);
};

static int apply_merge(const struct lkg_tool *tool, const struct lkg_value *target,
                       const struct lkg_value *patch, struct lkg_report *report, struct lkg_value **ret)
{
        (void)tool;
        return lkg_merge_json_patch(target, patch, report, ret);
}

/* The kind is that of --kind, else that of the target; a kind without a table has no types. */
static int apply_strategic(const struct lkg_tool *tool, const struct lkg_value *target,
                           const struct lkg_value *patch, struct lkg_report *report, struct lkg_value **ret)
{
        const char *kind = tool->options.kind;
        const struct lkg_schema *schema = NULL;
        struct lkg_merge_type type;

        if (!kind && lkg_value_type(target) == LKG_MAP)
                kind = lkg_map_get_string(target, "kind");
        if (kind)
                (void)lkg_tool_need(lkg_schema_get(kind, NULL, 0, &schema));
        if (schema)
                type = lkg_schema_merge_type(schema);
        return lkg_merge_strategic_typed(target, patch, schema ? &type : NULL, report, ret);
}

/* A merge patch keeps the text of numbers, a strategic one decodes them as Go does without a type. */
static const struct type types[] = {
        { "merge", 0, apply_merge },
        { "strategic", LKG_DECODE_UNTYPED, apply_strategic },
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

        r = lkg_tool_read_doc(tool, tool->words[0], false, type->decode_flags, report, ret_format, &target);
        if (r != LKG_TOOL_FAILED) {
                int s = lkg_tool_read_doc(tool, tool->words[1], false, type->decode_flags, report, NULL,
                                          &patch);

                r = s > r ? s : r;
        }
        if (r != LKG_TOOL_OK)
                return r;
        r = type->apply(tool, target, patch, report, ret);
        if (r == -EBADMSG)
                return LKG_TOOL_DIFFERENT;
        return r < 0 ? lkg_tool_fail(tool, LKG_TOOL_FAILED, "%s", strerror(-r)) : LKG_TOOL_OK;
}

int lkg_verb_patch(const struct lkg_tool *tool)
{
        LKG_CLEANUP(lkg_report_deinit) struct lkg_report report = LKG_REPORT_INIT;
        LKG_CLEANUP(lkg_value_unrefp) struct lkg_value *doc = NULL;
        const struct type *type = find_type(tool->options.document.type);
        enum lkg_format format = LKG_FORMAT_YAML;
        int r;

        if (!tool->options.document.type)
                return lkg_tool_fail(tool, LKG_TOOL_USAGE, "which patch? --type merge or --type strategic");
        if (!type)
                return lkg_tool_fail(tool, LKG_TOOL_USAGE,
                                     "--type \"%.60s\" is not known, want merge or strategic",
                                     tool->options.document.type);
        if (strcmp(tool->words[0], "-") == 0 && strcmp(tool->words[1], "-") == 0)
                return lkg_tool_fail(tool, LKG_TOOL_USAGE,
                                     "only one of the documents can be standard input");
        r = apply(tool, type, &report, &format, &doc);
        lkg_tool_print_findings(tool, STDERR_FILENO, &report);
        if (r != LKG_TOOL_OK)
                return r;
        return print_doc(tool, doc, format);
}
