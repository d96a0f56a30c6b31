/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lkgfs render: the merged document, what the component would be served, without the comment line; or the effective
 * one, in YAML with a mark behind each value. Secrets are printed as they are: they stand in the caller's own files.
 */
#include "tool.h"

#include <lkg/render.h>
#include <lkg/schema.h>

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
                return lkg_tool_fail(tool, LKG_TOOL_DIFFERENT,
                                     "there is no document: no base and no drop-in");
        if (candidate->state != LKG_CANDIDATE_VALID)
                return LKG_TOOL_DIFFERENT;
        if (tool->options.effective && !candidate->effective)
                return lkg_tool_fail(
                        tool, LKG_TOOL_DIFFERENT,
                        "--effective needs the field tables of a kind, and there are none for this "
                        "one (KubeletConfiguration and KubeProxyConfiguration have them)");
        format = lkg_tool_render_format(tool, candidate->format);
        if (tool->options.effective && format == LKG_FORMAT_YAML)
                lkg_effective_render(candidate->effective, &buf);
        else
                lkg_render(tool->options.effective ? candidate->effective : candidate->doc, format, &buf);
        return lkg_tool_print(&buf, LKG_TOOL_OK);
}
