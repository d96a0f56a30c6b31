/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What `check` adds about a change: from the document of --against to what is judged; and of an upgrade (--release B on a node where
 * release A of the component runs, or --release A..B), what it stops, changes without a word, and leaves deprecated.
 */
#include "tool.h"

#include <lkg/objects.h>

/* ---- --against ---- */

/* Its place is that of the new value; a field that is left out has none. */
static void add_change(struct lkg_candidate *candidate, const char *against,
                       const struct lkg_field_change *change)
{
        const char *name = lkg_tool_changed(change);
        const struct lkg_where where = lkg_where_of(lkg_value_get_pointer(candidate->doc, change->pointer));

        if (change->change_class > LKG_CHANGE_RESTART)
                lkg_report_add(&candidate->report, LKG_WARNING, 5060, &where,
                               "%s: differs from %s, and a restart is not enough: %s", name, against,
                               change->field->change);
        else
                lkg_report_add(&candidate->report, LKG_NOTE, 5061, &where,
                               "%s: differs from %s, a restart is needed", name, against);
}

static void add_changes(struct lkg_candidate *candidate, const char *against, const struct lkg_value *before)
{
        struct lkg_field_changes changes;

        lkg_schema_changes(candidate->schema, before, candidate->doc, candidate->has_base, &changes);
        for (size_t i = 0; i < changes.n_items; i++)
                add_change(candidate, against, &changes.items[i]);
        lkg_field_changes_deinit(&changes);
}

/* The document in a ConfigMap, under the key that a node would take. */
static int read_configmap(const struct lkg_tool *tool, const char *path, struct lkg_report *report,
                          struct lkg_value **ret)
{
        struct lkg_remote_base *base = NULL;
        struct lkg_tool named = *tool;
        int r;

        named.options.remote = path;
        r = lkg_tool_remote_load(&named, &base, report);
        *ret = NULL;
        if (r == LKG_TOOL_OK && base && lkg_decode_yaml(base->text, base->size, 0, NULL, report, ret) < 0)
                r = LKG_TOOL_DIFFERENT;
        (void)lkg_tool_own(*ret);
        (void)lkg_remote_base_free(base);
        return r;
}

static bool is_map(const struct lkg_value *value)
{
        return value && lkg_value_type(value) == LKG_MAP;
}

static int read_before(const struct lkg_tool *tool, const char *path, struct lkg_report *report,
                       struct lkg_value **ret)
{
        int r = lkg_tool_read_doc(tool, path, /* as_yaml= */ true, 0, report, NULL, ret);
        const char *kind = r == LKG_TOOL_OK && is_map(*ret) ? lkg_map_get_string(*ret, "kind") : NULL;

        if (kind && strcmp(kind, "ConfigMap") == 0 && !lkg_tool_is_stdin(path))
                return read_configmap(tool, path, report, ret);
        return r;
}

int lkg_tool_judge_against(const struct lkg_tool *tool, struct lkg_candidate *candidate)
{
        LKG_CLEANUP(lkg_report_deinit) struct lkg_report report = LKG_REPORT_INIT;
        struct lkg_value *before = NULL;
        const char *path = tool->options.checking.against;
        const char *kind, *own;
        int r;

        if (!path || candidate->state != LKG_CANDIDATE_VALID || !candidate->schema)
                return LKG_TOOL_OK;
        r = read_before(tool, path, &report, &before);
        if (r == LKG_TOOL_FAILED || r == LKG_TOOL_USAGE)
                return r;
        if (r != LKG_TOOL_OK || !is_map(before)) {
                lkg_tool_print_findings(tool, STDERR_FILENO, &report);
                return lkg_tool_fail(tool, LKG_TOOL_FAILED,
                                     "--against '%s': it cannot be read as a document", path);
        }
        kind = lkg_map_get_string(before, "kind");
        own = lkg_map_get_string(candidate->doc, "kind");
        if (!kind || !own || strcmp(kind, own) != 0)
                return lkg_tool_fail(tool, LKG_TOOL_FAILED, "--against '%s': its kind is %s; want %s", path,
                                     kind ? kind : "missing", own ? own : "one with a table");
        add_changes(candidate, path, before);
        return LKG_TOOL_OK;
}

/* ---- an upgrade ---- */

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

void lkg_tool_add_upgrade(const struct lkg_tool *tool, const struct lkg_tool_sources *now,
                          struct lkg_tool_sources *then)
{
        LKG_CLEANUP(lkg_report_deinit) struct lkg_report changes = LKG_REPORT_INIT;
        char text[LKG_RELEASE_TEXT_MAX];
        unsigned from = lkg_tool_upgrade_from(tool, then);

        then->upgraded_from = from;
        then->changes = lkg_tool_list();
        if (now->candidate->state != LKG_CANDIDATE_VALID) {
                if (now->candidate->state == LKG_CANDIDATE_INVALID)
                        lkg_tool_note(tool, "the layers are not valid for %s, so what changes is not listed",
                                      lkg_release_text(from, text));
                return;
        }
        lkg_judge_upgrade(then->judge, now->candidate, &changes, then->changes);
        if (tool->options.runs)
                keep_new(then->candidate, now->candidate, from, tool->options.release);
        lkg_report_append(&then->candidate->report, &changes);
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
