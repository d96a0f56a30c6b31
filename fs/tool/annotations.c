/* SPDX-License-Identifier: Apache-2.0 */
/* What the two formats have in common: a start, and when to print. */
#include "annotations.h"

bool lkg_annotations_wanted(const struct lkg_tool *tool)
{
        return tool->options.format == LKG_TOOL_SARIF || tool->options.format == LKG_TOOL_GITHUB;
}

void lkg_annotations_init(struct lkg_annotations *a, const struct lkg_tool *tool)
{
        LKG_CLEANUP(lkg_freep) char *cwd = getcwd(NULL, 0);

        *a = (struct lkg_annotations){ .tool = tool };
        if (cwd && asprintf(&a->directory, "%s%s", cwd, strcmp(cwd, "/") == 0 ? "" : "/") < 0)
                a->directory = NULL;
        if (tool->options.format != LKG_TOOL_SARIF)
                return;
        a->rules = lkg_value_new_list(NULL, 0, 0);
        a->results = lkg_value_new_list(NULL, 0, 0);
        a->failures = lkg_value_new_list(NULL, 0, 0);
        a->rule_of = calloc(lkg_n_finding_kinds, sizeof(*a->rule_of));
        a->no_memory = !a->rules || !a->results || !a->failures || !a->rule_of;
}

void lkg_annotations_deinit(struct lkg_annotations *a)
{
        free(a->directory);
        free(a->rule_of);
        lkg_value_unref(a->rules);
        lkg_value_unref(a->results);
        lkg_value_unref(a->failures);
        lkg_buf_deinit(&a->lines);
}

void lkg_annotations_add(struct lkg_annotations *a, const char *place, const struct lkg_report *report)
{
        LKG_CLEANUP(lkg_report_deinit) struct lkg_report arranged = LKG_REPORT_INIT;
        char message[96];

        lkg_tool_arrange(a->tool, report, &arranged);
        if (a->tool->options.format == LKG_TOOL_SARIF)
                lkg_sarif_add(a, place, &arranged);
        else
                lkg_workflow_add(a, place, &arranged);
        if (!report->n_dropped)
                return;
        (void)snprintf(message, sizeof(message), "%zu more findings are not listed", report->n_dropped);
        lkg_annotations_fail(a, place, message);
}

void lkg_annotations_fail(struct lkg_annotations *a, const char *place, const char *message)
{
        if (a->tool->options.format == LKG_TOOL_SARIF)
                lkg_sarif_fail(a, place, message);
        else
                lkg_workflow_fail(a, place, message);
}

int lkg_annotations_print(struct lkg_annotations *a, int status)
{
        if (a->no_memory || lkg_buf_failed(&a->lines))
                return lkg_tool_fail(a->tool, LKG_TOOL_FAILED, "%s", strerror(ENOMEM));
        return a->tool->options.format == LKG_TOOL_SARIF ? lkg_sarif_print(a, status)
                                                         : lkg_tool_print(&a->lines, status);
}
