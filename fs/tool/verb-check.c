/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lkgfs check: prints every finding, on standard output because findings are its product. Errors and
 * warnings give exit status 1; notes alone do not stop a pipeline.
 */
#include "tool.h"

static const char *state_name(const struct lkg_candidate *candidate)
{
        switch (candidate->state) {
        case LKG_CANDIDATE_NONE:
                return "none";
        case LKG_CANDIDATE_VALID:
                return "valid";
        case LKG_CANDIDATE_INVALID:
                return "invalid";
        case LKG_CANDIDATE_NAME_TAKEN:
                return "name taken";
        }
        return "invalid";
}

static int print_structured(const struct lkg_tool *tool, const struct lkg_candidate *candidate, int status)
{
        struct lkg_tool_map map;

        lkg_tool_map_init(&map, true);
        lkg_tool_map_string(&map, "state", state_name(candidate));
        lkg_tool_map_number(&map, "layers", candidate->n_layers);
        lkg_tool_map_number(&map, "errors", candidate->report.n_severity[LKG_ERROR]);
        lkg_tool_map_number(&map, "warnings", candidate->report.n_severity[LKG_WARNING]);
        lkg_tool_map_number(&map, "notes", candidate->report.n_severity[LKG_NOTE]);
        lkg_tool_map_number(&map, "notListed", candidate->report.n_dropped);
        lkg_tool_map_value(&map, "findings", lkg_tool_findings_value(&candidate->report));
        return lkg_tool_print_map(tool, &map, status);
}

int lkg_verb_check(const struct lkg_tool *tool)
{
        LKG_CLEANUP(lkg_tool_sources_deinit) struct lkg_tool_sources sources = { .dirfd = -EBADF };
        const struct lkg_candidate *candidate;
        int r, status;

        r = lkg_tool_sources_load(tool, &sources);
        if (r != LKG_TOOL_OK)
                return r;
        candidate = sources.candidate;
        status = candidate->state == LKG_CANDIDATE_VALID && !candidate->report.n_severity[LKG_ERROR] &&
                                 !candidate->report.n_severity[LKG_WARNING]
                         ? LKG_TOOL_OK
                         : LKG_TOOL_DIFFERENT;
        if (tool->options.format == LKG_TOOL_JSON || tool->options.format == LKG_TOOL_YAML)
                return print_structured(tool, candidate, status);
        lkg_tool_print_findings(tool, STDOUT_FILENO, &candidate->report);
        if (candidate->state == LKG_CANDIDATE_NONE)
                return lkg_tool_no_document(tool);
        return status;
}
