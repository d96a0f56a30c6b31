/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lkgfs render: prints the merged document as it would be served, without the comment line; or the effective
 * one. In YAML the effective document is for people, with a mark after each value and with masked secrets,
 * as in status/; in JSON it is for programs, and complete. The merged document is complete in both formats.
 */
#include "tool.h"

#include <lkg/documents.h>
#include <lkg/schema.h>

static int render_effective(const struct lkg_value *effective, enum lkg_format format, struct lkg_buf *buf)
{
        LKG_CLEANUP(lkg_value_unrefp) struct lkg_value *masked = NULL;

        if (format != LKG_FORMAT_YAML) {
                lkg_render(effective, format, buf);
                return 0;
        }
        masked = lkg_mask_secrets(effective);
        if (!masked)
                return -ENOMEM;
        lkg_effective_render(masked, buf);
        return 0;
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
        else if (render_effective(candidate->effective, format, &buf) < 0)
                r = lkg_tool_fail(tool, LKG_TOOL_FAILED, "%s", strerror(ENOMEM));
        return r == LKG_TOOL_OK ? lkg_tool_print(&buf, LKG_TOOL_OK) : r;
}
