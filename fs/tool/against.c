/* SPDX-License-Identifier: Apache-2.0 */
/* lkgfs check --against FILE: what a change from FILE to what is judged needs, as findings. */
#include "tool.h"

#include <lkg/objects.h>
#include <lkg/documents.h>
#include <lkg/schema.h>

/* The value that is new; a field that is left out has no place. */
static struct lkg_where where_of(const struct lkg_candidate *candidate, const char *pointer)
{
        const struct lkg_value *value = lkg_value_get_pointer(candidate->doc, pointer);

        return value ? lkg_where_of(value) : (struct lkg_where){ .file = NULL };
}

static void add_change(struct lkg_candidate *candidate, const char *against,
                       const struct lkg_field_change *change, const char *name)
{
        const struct lkg_where where = where_of(candidate, change->pointer);

        if (change->change_class > LKG_CHANGE_RESTART)
                lkg_report_add(&candidate->report, LKG_WARNING, 5060, &where,
                               "%s: differs from %s, and a restart is not enough: %s", name, against,
                               change->field->change);
        else
                lkg_report_add(&candidate->report, LKG_NOTE, 5061, &where,
                               "%s: differs from %s, a restart is needed", name, against);
}

static int add_changes(struct lkg_candidate *candidate, const char *against, const struct lkg_value *before)
{
        struct lkg_field_changes changes;
        int r = lkg_schema_changes(candidate->schema, before, candidate->doc, candidate->has_base, &changes);

        for (size_t i = 0; r == 0 && i < changes.n_items; i++) {
                LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf name = LKG_BUF_INIT;

                if (changes.items[i].field)
                        lkg_buf_puts(&name, changes.items[i].field->path);
                else
                        r = lkg_pointer_text(changes.items[i].pointer, &name);
                if (r == 0 && lkg_buf_failed(&name))
                        r = -ENOMEM;
                if (r == 0)
                        add_change(candidate, against, &changes.items[i], name.data);
        }
        lkg_field_changes_deinit(&changes);
        return r;
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
        if (r == LKG_TOOL_OK && base && lkg_decode_yaml(base->text, base->size, 0, NULL, report, ret) < 0)
                r = LKG_TOOL_DIFFERENT;
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
        LKG_CLEANUP(lkg_value_unrefp) struct lkg_value *value = NULL;
        int r = lkg_tool_read_doc(tool, path, /* as_yaml= */ true, 0, report, NULL, &value);
        const char *kind = r == LKG_TOOL_OK && is_map(value) ? lkg_map_get_string(value, "kind") : NULL;

        if (kind && strcmp(kind, "ConfigMap") == 0 && !lkg_tool_is_stdin(path))
                return read_configmap(tool, path, report, ret);
        *ret = LKG_STEAL(value);
        return r;
}

int lkg_tool_judge_against(const struct lkg_tool *tool, struct lkg_candidate *candidate)
{
        LKG_CLEANUP(lkg_report_deinit) struct lkg_report report = LKG_REPORT_INIT;
        LKG_CLEANUP(lkg_value_unrefp) struct lkg_value *before = NULL;
        const char *path = tool->options.against;
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
        return add_changes(candidate, path, before) < 0
                       ? lkg_tool_fail(tool, LKG_TOOL_FAILED, "%s", strerror(ENOMEM))
                       : LKG_TOOL_OK;
}
