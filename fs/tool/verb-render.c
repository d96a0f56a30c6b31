/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lkgfs render: prints the merged document as it would be served, without the comment line; or the effective
 * one. In YAML the effective document is for people, with a mark after each value and with masked secrets,
 * as in status/; in JSON it is for programs, and complete. The merged document is complete in both formats.
 */
#include "tool.h"

/* -o, else that of the input. */
static enum lkg_format format_of(const struct lkg_tool *tool, enum lkg_format input)
{
        return tool->options.format == LKG_TOOL_JSON   ? LKG_FORMAT_JSON
               : tool->options.format == LKG_TOOL_YAML ? LKG_FORMAT_YAML
                                                       : input;
}

/* JSON keeps a number that does not fit into a float64, but YAML readers would read it as a string: then only a message is printed. */
static bool no_yaml_says(const struct lkg_value *doc)
{
        LKG_CLEANUP(lkg_report_deinit) struct lkg_report ignored = LKG_REPORT_INIT;
        LKG_CLEANUP(lkg_value_unrefp) struct lkg_value *back = NULL;
        LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf json = LKG_BUF_INIT;

        lkg_render_json_compact(doc, &json);
        (void)lkg_buf_text(&json);
        /* Larger than a document may be: aliases expanded it, and only YAML has them. */
        return json.size <= LKG_DOC_BYTES_MAX &&
               lkg_decode(json.data, json.size, LKG_FORMAT_JSON, LKG_DECODE_UNTYPED, NULL, &ignored,
                          &back) == -EBADMSG;
}

static int print_doc(const struct lkg_tool *tool, const struct lkg_value *doc, enum lkg_format input)
{
        LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf buf = LKG_BUF_INIT;
        enum lkg_format format = format_of(tool, input);

        if (format == LKG_FORMAT_YAML && no_yaml_says(doc))
                return lkg_tool_fail(
                        tool, LKG_TOOL_FAILED,
                        "the document has a number beyond 1.8e308, which no YAML can say; use -o json");
        lkg_render(doc, format, &buf);
        return lkg_tool_print(&buf, LKG_TOOL_OK);
}

static int print_effective(const struct lkg_tool *tool, const struct lkg_value *effective,
                           enum lkg_format input)
{
        LKG_CLEANUP(lkg_value_unrefp) struct lkg_value *masked = lkg_must(lkg_mask_secrets(effective));
        LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf buf = LKG_BUF_INIT;

        if (format_of(tool, input) == LKG_FORMAT_YAML)
                lkg_effective_render(masked, &buf);
        else
                lkg_render(effective, LKG_FORMAT_JSON, &buf);
        return lkg_tool_print(&buf, LKG_TOOL_OK);
}

int lkg_verb_render(const struct lkg_tool *tool)
{
        struct lkg_tool_sources *sources;
        const struct lkg_candidate *candidate;
        int r;

        r = lkg_tool_sources_load(tool, &sources);
        if (r != LKG_TOOL_OK)
                return r;
        candidate = sources->candidate;
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
        return tool->options.effective ? print_effective(tool, candidate->effective, candidate->format)
                                       : print_doc(tool, candidate->doc, candidate->format);
}

/* ---- one document ---- */

/* lkgfs convert: one document as sigs.k8s.io/yaml (or Go's JSON decoder) reads it, in canonical form. */

int lkg_verb_convert(const struct lkg_tool *tool)
{
        LKG_CLEANUP(lkg_report_deinit) struct lkg_report report = LKG_REPORT_INIT;
        struct lkg_value *doc = NULL;
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
                (void)lkg_need(lkg_schema_get(kind, NULL, 0, &schema));
        if (schema)
                type = lkg_schema_merge_type(schema);
        return lkg_merge_strategic_typed(target, patch, schema ? &type : NULL, report, ret);
}

/* A merge patch keeps the text of numbers, a strategic one decodes them as Go does without a type. */
static int apply(const struct lkg_tool *tool, bool strategic, struct lkg_report *report,
                 enum lkg_format *ret_format, struct lkg_value **ret)
{
        struct lkg_value *target = NULL;
        struct lkg_value *patch = NULL;
        unsigned flags = strategic ? LKG_DECODE_UNTYPED : 0;
        int r = lkg_tool_read_doc(tool, tool->words[0], false, flags, report, ret_format, &target), s;

        if (r == LKG_TOOL_FAILED)
                return r;
        s = lkg_tool_read_doc(tool, tool->words[1], false, flags, report, NULL, &patch);
        if (r != LKG_TOOL_OK || s != LKG_TOOL_OK)
                return s > r ? s : r;
        r = strategic ? apply_strategic(tool, target, patch, report, ret)
                      : lkg_merge_json_patch(target, patch, report, ret);
        (void)lkg_tool_own(*ret);
        if (r == -EBADMSG)
                return LKG_TOOL_DIFFERENT;
        return r < 0 ? lkg_tool_fail(tool, LKG_TOOL_FAILED, "%s", strerror(-r)) : LKG_TOOL_OK;
}

int lkg_verb_patch(const struct lkg_tool *tool)
{
        LKG_CLEANUP(lkg_report_deinit) struct lkg_report report = LKG_REPORT_INIT;
        struct lkg_value *doc = NULL;
        const char *type = tool->options.document.type;
        bool strategic = type && strcmp(type, "strategic") == 0;
        enum lkg_format format = LKG_FORMAT_YAML;
        int r;

        if (!type)
                return lkg_tool_fail(tool, LKG_TOOL_USAGE, "which patch? --type merge or --type strategic");
        if (!strategic && strcmp(type, "merge") != 0)
                return lkg_tool_fail(tool, LKG_TOOL_USAGE,
                                     "--type \"%.60s\" is not known, want merge or strategic", type);
        if (strcmp(tool->words[0], "-") == 0 && strcmp(tool->words[1], "-") == 0)
                return lkg_tool_fail(tool, LKG_TOOL_USAGE,
                                     "only one of the documents can be standard input");
        r = apply(tool, strategic, &report, &format, &doc);
        lkg_tool_print_findings(tool, STDERR_FILENO, &report);
        if (r != LKG_TOOL_OK)
                return r;
        return print_doc(tool, doc, format);
}
