/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lkgfs check --release B on a node where release A of the component runs, and --release A..B: what the upgrade stops, changes
 * without a word, and leaves deprecated. A class of findings is all that is added to what `check` is otherwise.
 */
#include "tool.h"

#include <lkg/facts.h>
#include <lkg/schema.h>

unsigned lkg_tool_upgrade_from(const struct lkg_tool *tool, const struct lkg_tool_sources *then)
{
        unsigned from = tool->options.runs ? tool->options.runs : then->facts ? then->facts->release : 0;

        return tool->options.release && from != tool->options.release ? from : 0;
}

/* ---- what only the later release says ---- */

/* Equal but for the release that they name. */
static bool same_text(const char *a, const char *b, const char *from, const char *to)
{
        while (*a && *b) {
                if (strncmp(a, from, strlen(from)) == 0 && strncmp(b, to, strlen(to)) == 0) {
                        a += strlen(from);
                        b += strlen(to);
                } else if (*a++ != *b++) {
                        return false;
                }
        }
        return *a == *b;
}

static bool is_said(const struct lkg_report *report, const struct lkg_finding *finding, const char *from,
                    const char *to)
{
        for (size_t i = 0; i < report->n_findings; i++) {
                const struct lkg_finding *f = &report->findings[i];

                if (strcmp(f->file ? f->file : "", finding->file ? finding->file : "") == 0 &&
                    f->code == finding->code && f->severity == finding->severity &&
                    f->line == finding->line && f->column == finding->column &&
                    same_text(f->text, finding->text, from, to))
                        return true;
        }
        return false;
}

/* Standard input was read a second time as a file of ours. */
static void name_stdin(const struct lkg_tool_sources *then, struct lkg_report *report)
{
        size_t n = then->directory ? strlen(then->directory) : 0;

        for (size_t i = 0; n > 0 && i < report->n_findings; i++) {
                char *file = report->findings[i].file;

                if (file && strncmp(file, then->directory, n) == 0 && file[n] == '/')
                        memmove(file, file + n + 1, strlen(file + n + 1) + 1);
        }
}

static void keep_new(struct lkg_candidate *then, const struct lkg_candidate *now, unsigned from, unsigned to)
{
        LKG_CLEANUP(lkg_report_deinit) struct lkg_report all = then->report;
        char from_text[LKG_RELEASE_TEXT_MAX], to_text[LKG_RELEASE_TEXT_MAX];

        (void)lkg_release_text(from, from_text);
        (void)lkg_release_text(to, to_text);
        then->report = (struct lkg_report)LKG_REPORT_INIT;
        for (size_t i = 0; i < all.n_findings; i++)
                if (!is_said(&now->report, &all.findings[i], from_text, to_text))
                        lkg_report_add_copy(&then->report, &all.findings[i]);
        lkg_report_count_unlisted(&then->report, &all);
}

int lkg_tool_add_upgrade(const struct lkg_tool *tool, const struct lkg_tool_sources *now,
                         struct lkg_tool_sources *then)
{
        LKG_CLEANUP(lkg_report_deinit) struct lkg_report changes = LKG_REPORT_INIT;
        char text[LKG_RELEASE_TEXT_MAX];
        unsigned from = lkg_tool_upgrade_from(tool, then);

        then->upgraded_from = from;
        then->changes = lkg_value_new_list(NULL, 0, 0);
        if (now->candidate->state != LKG_CANDIDATE_VALID) {
                if (now->candidate->state == LKG_CANDIDATE_INVALID)
                        lkg_tool_note(tool, "the layers are not valid for %s, so what changes is not listed",
                                      lkg_release_text(from, text));
                return LKG_TOOL_OK;
        }
        if (!then->changes || lkg_judge_upgrade(then->judge, now->candidate, &changes, then->changes) < 0)
                return lkg_tool_fail(tool, LKG_TOOL_FAILED, "%s", strerror(ENOMEM));
        name_stdin(then, &now->candidate->report);
        name_stdin(then, &changes);
        if (tool->options.runs)
                keep_new(then->candidate, now->candidate, from, tool->options.release);
        lkg_report_append(&then->candidate->report, &changes);
        return LKG_TOOL_OK;
}

/* ---- classes ---- */

static const struct {
        const char *name, *heading;
} classes[] = {
        { "stops", "stops the component" },
        { "changes", "changes without a word" },
        { "deprecated", "deprecated" },
        { "other", "also" },
};

const char *lkg_tool_upgrade_class(const struct lkg_finding *finding)
{
        if (finding->severity == LKG_ERROR)
                return classes[0].name;
        switch (finding->code) {
        case 5003: /* a field without effect */
        case 5005:
        case 5070:
        case 5071:
        case 5072:
                return classes[1].name;
        case 5006:
        case 5018:
        case 5073:
                return classes[2].name;
        default:
                return classes[3].name;
        }
}

void lkg_tool_print_upgrade(const struct lkg_tool *tool, const struct lkg_report *report)
{
        LKG_CLEANUP(lkg_report_deinit) struct lkg_report arranged = LKG_REPORT_INIT;
        struct lkg_tool whole = *tool; /* only what an upgrade does not concern is shortened */

        whole.options.all = true;
        lkg_tool_arrange(&whole, report, &arranged);
        for (size_t i = 0; i < LKG_ARRAY_SIZE(classes); i++) {
                LKG_CLEANUP(lkg_report_deinit) struct lkg_report part = LKG_REPORT_INIT;

                for (size_t k = 0; k < arranged.n_findings; k++)
                        if (lkg_tool_upgrade_class(&arranged.findings[k]) == classes[i].name)
                                lkg_report_add_copy(&part, &arranged.findings[k]);
                if (i + 1 == LKG_ARRAY_SIZE(classes))
                        part.n_dropped = arranged.n_dropped;
                if (part.n_findings == 0 && part.n_dropped == 0)
                        continue;
                (void)dprintf(STDOUT_FILENO, "%s:\n", classes[i].heading);
                lkg_tool_print_findings(i + 1 == LKG_ARRAY_SIZE(classes) ? tool : &whole, STDOUT_FILENO,
                                        &part);
        }
}
