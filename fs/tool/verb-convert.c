/* SPDX-License-Identifier: Apache-2.0 */
/* lkgfs convert: one document as sigs.k8s.io/yaml (or Go's JSON decoder) reads it, in canonical form. */
#include "tool.h"

#include <lkg/documents.h>

int lkg_verb_convert(const struct lkg_tool *tool)
{
        LKG_CLEANUP(lkg_report_deinit) struct lkg_report report = LKG_REPORT_INIT;
        LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf buf = LKG_BUF_INIT;
        LKG_CLEANUP(lkg_value_unrefp) struct lkg_value *doc = NULL;
        enum lkg_format format = LKG_FORMAT_YAML;
        int r;

        r = lkg_tool_read_doc(tool, tool->words[0], true, tool->options.strict ? LKG_DECODE_STRICT : 0,
                              &report, &format, &doc);
        lkg_tool_print_findings(tool, STDERR_FILENO, &report);
        if (r != LKG_TOOL_OK)
                return r;
        r = lkg_tool_render(tool, doc, lkg_tool_render_format(tool, format), &buf);
        return r == LKG_TOOL_OK ? lkg_tool_print(&buf, LKG_TOOL_OK) : r;
}
