/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What another release of the component makes of the same layers without a word: values that nobody set and whose default is another
 * one, values that were set and mean something else or begin to count, gates.
 */
#include <lkg/schema.h>
#include <lkg/documents.h>
#include <lkg/tree.h>

#include "findings-codes.h"
#include "gates.h"
#include "judge.h"

#define VALUE_MAX 120 /* bytes of a value in a message */

struct upgrade {
        const struct lkg_kind *kind;
        const struct lkg_schema *from, *to;
        char from_text[LKG_RELEASE_TEXT_MAX], to_text[LKG_RELEASE_TEXT_MAX];
        struct lkg_report *report;
        struct lkg_value *changes;
};

/* ---- the list ---- */

static struct lkg_value *or_null(const struct lkg_value *value)
{
        return value ? lkg_value_ref((struct lkg_value *)(uintptr_t)value) : lkg_value_new_null(NULL, 0, 0);
}

/* Takes over @now and @then. */
static void list_change(const struct upgrade *u, const char *what, const char *name, struct lkg_value *now,
                        struct lkg_value *then)
{
        struct lkg_value *map = lkg_value_new_map(NULL, 0, 0);

        (void)lkg_map_set(map, what, strlen(what), lkg_value_new_string(name, strlen(name), NULL, 0, 0));
        (void)lkg_map_set(map, "now", strlen("now"), now);
        (void)lkg_map_set(map, "then", strlen("then"), then);
        lkg_list_append(u->changes, map);
}

/* ---- fields ---- */

static bool is_unset(const struct lkg_value *value)
{
        const struct lkg_source *source = value ? lkg_value_source(value) : NULL;

        return !source || strcmp(source->layer, "default") == 0;
}

/* `is 0.9`, `is unset`, `there is no such field` */
static void put_value(const struct lkg_schema *schema, const char *pointer, const struct lkg_value *value,
                      char ret[static VALUE_MAX])
{
        LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf buf = LKG_BUF_INIT;

        lkg_buf_puts(&buf, value                               ? "it is "
                           : lkg_schema_field(schema, pointer) ? "it is unset"
                                                               : "there is no such field");
        if (value)
                lkg_render_json_compact(value, &buf);
        (void)snprintf(ret, VALUE_MAX, "%s", lkg_buf_text(&buf));
}

/* @value is set, and only the later release has the field. */
static void report_begins(const struct upgrade *u, const char *pointer, const char *name,
                          const struct lkg_value *value)
{
        if (!lkg_schema_field(u->from, pointer) && lkg_schema_field(u->to, pointer))
                lkg_report_add(u->report, LKG_NOTE, LKG_F_MEANING_CHANGES, LKG_AT(value),
                               "%s: without effect in %s, which does not have it, and counts in %s", name,
                               u->from_text, u->to_text);
}

static int report_value(const char *pointer, const struct lkg_value *before, const struct lkg_value *after,
                        void *userdata)
{
        const struct upgrade *u = userdata;
        LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf name = LKG_BUF_INIT;
        char was[VALUE_MAX], is[VALUE_MAX];

        lkg_pointer_text(pointer + 1, &name);
        (void)lkg_buf_text(&name);
        for (char *c = name.data; *c; c++)
                *c = *c == '/' ? '.' : *c;
        if (!is_unset(before) || !is_unset(after)) {
                if (!before)
                        report_begins(u, pointer, name.data, after);
                return 0;
        }
        put_value(u->from, pointer, before, was);
        put_value(u->to, pointer, after, is);
        lkg_report_add(u->report, LKG_NOTE, LKG_F_DEFAULT_CHANGES, NULL,
                       "%s: no layer sets it; in %s %s, in %s %s", name.data, u->from_text, was, u->to_text,
                       is);
        list_change(u, "field", name.data, or_null(before), or_null(after));
        return 0;
}

/* A row that begins with a release may say which value means something else from there on. */
static void report_meanings(const struct upgrade *u, const struct lkg_value *object)
{
        const struct lkg_kind *kind = u->kind;
        unsigned from = lkg_schema_release(u->from), to = lkg_schema_release(u->to);

        for (size_t i = 0; i < *kind->n_fields; i++) {
                const struct lkg_field *row = &kind->fields[i];
                const struct lkg_value *value = row->news ? lkg_object_get(object, row->path) : NULL;
                LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf text = LKG_BUF_INIT;
                struct lkg_where where;

                if (!value || is_unset(value) || lkg_field_in(row, from) == lkg_field_in(row, to))
                        continue;
                lkg_render_json_compact(value, &text);
                where = lkg_where_of(value);
                if (strcmp(lkg_buf_text(&text), row->news) == 0)
                        lkg_report_add(u->report, LKG_NOTE, LKG_F_MEANING_CHANGES, &where,
                                       "%s: %s means something else from %s on; %s: %s", row->path,
                                       text.data, u->to_text, u->to_text, row->rule);
        }
}

/* ---- gates ---- */

static bool belongs_to_field(const struct upgrade *u, const char *gate)
{
        const struct lkg_kind *kind = u->kind;

        for (size_t i = 0; i < *kind->n_fields; i++)
                if (kind->fields[i].gate && strcmp(kind->fields[i].gate, gate) == 0 &&
                    lkg_field_in(&kind->fields[i], lkg_schema_release(u->to)))
                        return true;
        return false;
}

/* The gates of a document, in a release that may not know all of them. */
static struct lkg_gates gates_of(const struct lkg_schema *schema, const struct lkg_value *object)
{
        LKG_CLEANUP(lkg_report_deinit) struct lkg_report ignored = LKG_REPORT_INIT;
        struct lkg_gates gates = { .release = lkg_schema_release(schema) };

        (void)lkg_gates_apply(&gates, object, NULL, &ignored);
        return gates;
}

/* One line for those that no field of the kind depends on: most of them are of other components. */
static void report_gates(const struct upgrade *u, const struct lkg_value *object)
{
        LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf others = LKG_BUF_INIT;
        const struct lkg_gates now = gates_of(u->from, object), then = gates_of(u->to, object);

        for (size_t i = 0; i < lkg_n_gates; i++) {
                const char *name = lkg_gates[i].name;
                const struct lkg_gate_state *row = lkg_gate_in(&lkg_gates[i], lkg_schema_release(u->to));
                bool was = lkg_gates_enabled(&now, name), is = lkg_gates_enabled(&then, name);

                if (!row || row->stage == LKG_GATE_REMOVED || was == is)
                        continue;
                if (belongs_to_field(u, name))
                        lkg_report_add(u->report, LKG_NOTE, LKG_F_GATES_CHANGE, NULL,
                                       "featureGates: no layer sets %s, which is %s in %s and %s in %s",
                                       name, was ? "on" : "off", u->from_text, is ? "on" : "off",
                                       u->to_text);
                else
                        lkg_buf_printf(&others, "%s%s %s", others.size ? ", " : "", name, is ? "on" : "off");
                list_change(u, "gate", name, lkg_value_new_bool(was, NULL, 0, 0),
                            lkg_value_new_bool(is, NULL, 0, 0));
        }
        if (others.size == 0)
                return;
        lkg_report_add(
                u->report, LKG_NOTE, LKG_F_GATES_CHANGE, NULL,
                "featureGates: of those that no field here depends on, and many of which are of other "
                "components, change from %s to %s: %s",
                u->from_text, u->to_text, lkg_buf_text(&others));
}

void lkg_judge_upgrade(const struct lkg_judge *judge, const struct lkg_candidate *now,
                       struct lkg_report *report, struct lkg_value *changes)
{
        LKG_CLEANUP(lkg_value_unrefp) struct lkg_value *then = NULL;
        struct upgrade u = { .from = now->schema, .report = report, .changes = changes };

        if (!now->schema || !now->doc || !now->effective)
                return;
        for (size_t i = 0; i < lkg_n_kinds; i++)
                if (strcmp(lkg_kinds[i].kind, lkg_schema_kind(now->schema)) == 0)
                        u.kind = &lkg_kinds[i];
        (void)lkg_schema_get(u.kind->kind, NULL, judge->config.release, &u.to);
        then = lkg_judge_document(judge, now->doc);
        if (!then)
                return;
        (void)lkg_release_text(lkg_schema_release(u.from), u.from_text);
        (void)lkg_release_text(lkg_schema_release(u.to), u.to_text);
        (void)lkg_value_compare(now->effective, then, report_value, &u);
        report_meanings(&u, now->effective);
        report_gates(&u, now->effective);
}
