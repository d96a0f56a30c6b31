/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What another release of the component makes of the same layers without a word: values that nobody set and whose default is another
 * one, values that were set and mean something else, gates with another default.
 */
#include <lkg/kinds.h>
#include <lkg/render.h>
#include <lkg/tree.h>

#include "findings-codes.h"
#include "judge.h"

#define VALUE_MAX 120 /* bytes of a value in a message */

struct upgrade {
        const struct lkg_schema *from, *to;
        char from_text[LKG_RELEASE_TEXT_MAX], to_text[LKG_RELEASE_TEXT_MAX];
        struct lkg_report *report;
};

static bool is_unset(const struct lkg_value *value)
{
        const struct lkg_source *source = value ? lkg_value_source(value) : NULL;

        return !source || strcmp(source->layer, "default") == 0;
}

static void put_value(const struct lkg_value *value, char ret[static VALUE_MAX])
{
        LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf buf = LKG_BUF_INIT;

        if (value)
                lkg_render_json_compact(value, &buf);
        else
                lkg_buf_puts(&buf, "none");
        lkg_buf_putc(&buf, '\0');
        (void)snprintf(ret, VALUE_MAX, "%s", lkg_buf_failed(&buf) ? "" : buf.data);
}

/* A default that differs; what a layer set differs only if it is read in another way, and then a rule says so. */
static int report_default(const char *pointer, const struct lkg_value *before, const struct lkg_value *after,
                          void *userdata)
{
        const struct upgrade *u = userdata;
        LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf name = LKG_BUF_INIT;
        char was[VALUE_MAX], is[VALUE_MAX];
        int r;

        if (!is_unset(before) || !is_unset(after))
                return 0;
        r = lkg_pointer_text(pointer + 1, &name);
        lkg_buf_putc(&name, '\0');
        if (r < 0 || lkg_buf_failed(&name))
                return -ENOMEM;
        for (char *c = name.data; *c; c++)
                *c = *c == '/' ? '.' : *c;
        put_value(before, was);
        put_value(after, is);
        lkg_report_add(u->report, LKG_NOTE, LKG_F_DEFAULT_CHANGES, NULL,
                       "%s: no layer sets it, and its default is %s in %s, %s in %s", name.data, was,
                       u->from_text, is, u->to_text);
        return 0;
}

/* A field has another row from a release on because it changed. */
static void report_rules(const struct upgrade *u, const struct lkg_kind *kind,
                         const struct lkg_value *object)
{
        unsigned from = lkg_schema_release(u->from), to = lkg_schema_release(u->to);

        for (size_t i = 0; i < *kind->n_fields; i++) {
                for (size_t k = 0; k < *kind->n_fields; k++) {
                        const struct lkg_field *was = &kind->fields[i], *is = &kind->fields[k];
                        const struct lkg_value *value;
                        struct lkg_where where;

                        if (i == k || strcmp(was->path, is->path) != 0 || !lkg_field_in(was, from) ||
                            !lkg_field_in(is, to) || lkg_field_in(was, to) || !was->rule || !is->rule ||
                            strcmp(was->rule, is->rule) == 0)
                                continue;
                        value = lkg_object_get(object, is->path);
                        if (is_unset(value))
                                continue;
                        where = lkg_where_of(value);
                        lkg_report_add(u->report, LKG_NOTE, LKG_F_MEANING_CHANGES, &where,
                                       "%s: its values are read by another rule: \"%s\" in %s, \"%s\" in %s",
                                       is->path, was->rule, u->from_text, is->rule, u->to_text);
                }
        }
}

/* One line, because most of the gates are of other components. */
static int report_gates(const struct upgrade *u, const struct lkg_value *object)
{
        LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf names = LKG_BUF_INIT;
        const struct lkg_value *map = lkg_object_get(object, "featureGates");
        unsigned from = lkg_schema_release(u->from), to = lkg_schema_release(u->to);

        for (size_t i = 0; i < lkg_n_gates; i++) {
                const struct lkg_gate *was, *is;

                if (i > 0 && strcmp(lkg_gates[i].name, lkg_gates[i - 1].name) == 0)
                        continue;
                was = lkg_gate_at(lkg_gates[i].name, from);
                is = lkg_gate_at(lkg_gates[i].name, to);
                if (!was || !is || was->stage == LKG_GATE_REMOVED || is->stage == LKG_GATE_REMOVED ||
                    was->def == is->def || (map && lkg_map_get(map, was->name)))
                        continue;
                lkg_buf_printf(&names, "%s%s %s", names.size ? ", " : "", is->name, is->def ? "on" : "off");
        }
        lkg_buf_putc(&names, '\0');
        if (lkg_buf_failed(&names))
                return -ENOMEM;
        if (*names.data)
                lkg_report_add(
                        u->report, LKG_NOTE, LKG_F_GATES_CHANGE, NULL,
                        "featureGates: no layer sets them, and their default changes from %s to %s: %s",
                        u->from_text, u->to_text, names.data);
        return 0;
}

int lkg_judge_upgrade(const struct lkg_judge *judge, const struct lkg_candidate *now,
                      struct lkg_report *report)
{
        LKG_CLEANUP(lkg_value_unrefp) struct lkg_value *then = NULL;
        struct upgrade u = { .from = now->schema, .report = report };
        const struct lkg_kind *kind = NULL;
        int r;

        if (!now->schema || !now->doc || !now->effective)
                return 0;
        for (size_t i = 0; i < lkg_n_kinds; i++)
                if (strcmp(lkg_kinds[i].kind, lkg_schema_kind(now->schema)) == 0)
                        kind = &lkg_kinds[i];
        r = lkg_schema_get(kind->kind, NULL, judge->config.release, &u.to);
        if (r == 0)
                r = lkg_judge_document(judge, now->doc, &then);
        if (r < 0 || !then)
                return r;
        (void)lkg_release_text(lkg_schema_release(u.from), u.from_text);
        (void)lkg_release_text(lkg_schema_release(u.to), u.to_text);
        r = lkg_value_compare(now->effective, then, report_default, &u);
        if (r < 0)
                return r;
        report_rules(&u, kind, now->effective);
        return report_gates(&u, now->effective);
}
