/* SPDX-License-Identifier: Apache-2.0 */
/* lkgfs render: the merged document, what the component would be served, without the comment line. */
#include "tool.h"

#include <lkg/render.h>

int lkg_verb_render(const struct lkg_tool *tool)
{
        LKG_CLEANUP(lkg_tool_sources_deinit) struct lkg_tool_sources sources = { .dirfd = -EBADF };
        LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf buf = LKG_BUF_INIT;
        const struct lkg_candidate *candidate;
        int r;

        r = lkg_tool_sources_load(tool, &sources);
        if (r != LKG_TOOL_OK)
                return r;
        candidate = sources.candidate;
        lkg_tool_print_findings(tool, STDERR_FILENO, &candidate->report);
        if (candidate->state == LKG_CANDIDATE_NONE)
                return lkg_tool_fail(tool, LKG_TOOL_DIFFERENT,
                                     "there is no document: no base and no drop-in");
        if (!candidate->doc)
                return LKG_TOOL_DIFFERENT;
        lkg_render(candidate->doc, lkg_tool_render_format(tool, candidate->format), &buf);
        return lkg_tool_print(&buf, LKG_TOOL_OK);
}
