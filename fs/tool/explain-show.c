/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The facts about a field, a flag or a feature gate, for people and for programs. The code states each fact once; it becomes a line
 * of text and a member of a map.
 */
#include "tool.h"

struct sink {
        struct lkg_buf *buf;   /* for people */
        struct lkg_value *map; /* for programs */
};

static void tell(struct sink *sink, const char *key, const char *text)
{
        if (text)
                lkg_buf_printf(sink->buf, "  %-11s %s\n", key, text);
}

static void fact(struct sink *sink, const char *key, const char *text)
{
        tell(sink, key, text);
        lkg_tool_map_string(sink->map, key, text);
}

/* A property that people only hear of if it is true, in the words of @text. */
static void fact_if(struct sink *sink, const char *key, bool is, const char *text)
{
        lkg_tool_map_bool(sink->map, key, is);
        tell(sink, key, is ? text : NULL);
}

static void fact_release(struct sink *sink, const char *key, unsigned release)
{
        char text[LKG_RELEASE_TEXT_MAX];

        if (release)
                fact(sink, key, lkg_release_text(release, text));
}

/* A list of strings, or one line; an empty one is none. */
static void fact_words(struct sink *sink, const char *key, struct lkg_value *list)
{
        LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf line = LKG_BUF_INIT;

        if (!lkg_value_size(list))
                return;
        for (size_t i = 0; i < lkg_value_size(list); i++)
                lkg_buf_printf(&line, "%s%s", i ? ", " : "", lkg_value_text(lkg_list_get(list, i), NULL));
        lkg_tool_map_value(sink->map, key, list);
        tell(sink, key, lkg_buf_text(&line));
}

static void add_word(struct lkg_value *list, const char *word)
{
        lkg_tool_append(list, lkg_tool_string(word));
}

/* ---- fields ---- */

/* JSON text as people read it: a string without its quotes. */
static const char *default_text(const char *json)
{
        size_t size = strlen(json);

        return size >= 2 && json[0] == '"' ? lkg_tool_cut(json + 1, size - 2) : json;
}

static void fact_default(struct sink *sink, const struct lkg_field *field)
{
        if (!field->def)
                return;
        tell(sink, "default", default_text(field->def));
        lkg_tool_map_value(sink->map, "default", lkg_tool_decode(field->def));
}

/* `1.33 to 1.34: default false`, for the rows of @rows that are not @shown. */
static void fact_changes(struct sink *sink, const struct lkg_field *rows, const struct lkg_field *end,
                         const struct lkg_field *shown)
{
        char text[LKG_RELEASE_TEXT_MAX];
        struct lkg_value *list = lkg_tool_list();

        for (const struct lkg_field *row = rows; row < end && strcmp(row->path, rows->path) == 0; row++) {
                LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf buf = LKG_BUF_INIT;
                unsigned since = row->since ? row->since : LKG_RELEASE_MIN;
                unsigned until = row->until ? row->until : LKG_RELEASE_MAX;

                if (row == shown)
                        continue;
                lkg_buf_puts(&buf, lkg_release_text(since, text));
                if (until > since)
                        lkg_buf_printf(&buf, " to %s", lkg_release_text(until, text));
                lkg_buf_printf(&buf, ": %s, default %s", row->type + (*row->type == '*'),
                               default_text(row->def ? row->def : "none"));
                if (row->rule && shown && shown->rule && strcmp(row->rule, shown->rule) != 0)
                        lkg_buf_printf(&buf, ", %s", row->rule);
                add_word(list, lkg_buf_text(&buf));
        }
        fact_words(sink, "otherwise", list);
}

/* Direct members of a struct, or of the structs in a list. */
static void fact_parts(struct sink *sink, const struct lkg_kind *kind, const char *path, unsigned release)
{
        struct lkg_value *list = lkg_tool_list();
        size_t size = strlen(path);

        for (size_t i = 0; i < *kind->n_fields; i++) {
                const char *rest = kind->fields[i].path;

                if (strncmp(rest, path, size) != 0 || !lkg_field_in(&kind->fields[i], release))
                        continue;
                rest += size;
                if (strncmp(rest, "[]", 2) == 0)
                        rest += 2;
                if (*rest == '.' && !strchr(rest + 1, '.'))
                        add_word(list, rest + 1);
        }
        fact_words(sink, "parts", list);
}

static const struct lkg_field *last_row(const struct lkg_kind *kind, const struct lkg_field *first)
{
        const struct lkg_field *end = kind->fields + *kind->n_fields, *row = first;

        while (row + 1 < end && strcmp(row[1].path, first->path) == 0)
                row++;
        return row;
}

/* The row of @release, NULL if it does not have the field. */
static const struct lkg_field *row_for(const struct lkg_kind *kind, const struct lkg_field *first,
                                       unsigned release)
{
        const struct lkg_field *last = last_row(kind, first);

        for (const struct lkg_field *row = first; row <= last; row++)
                if (lkg_field_in(row, release))
                        return row;
        return NULL;
}

/* Programs get the Go type; for people the star is explained. */
static void fact_type(struct sink *sink, const char *type)
{
        bool star = *type == '*';

        lkg_tool_map_string(sink->map, "type", type);
        if (strcmp(type, "flush") == 0)
                type = "duration, or a number";
        tell(sink, "type", star ? lkg_tool_format("%s (may be unset)", type + 1) : type);
}

/* For a type without a star, the empty value equals a missing one: it becomes the default. */
static void fact_empty(struct sink *sink, const struct lkg_field *field)
{
        const char *empty = NULL;

        if (strcmp(field->type, "string") == 0)
                empty = "\"\"";
        else if (strcmp(field->type, "duration") == 0 || strcmp(field->type, "flush") == 0)
                empty = "0s";
        else if (strncmp(field->type, "int", 3) == 0 || strncmp(field->type, "uint", 4) == 0 ||
                 strncmp(field->type, "float", 5) == 0)
                empty = "0";
        if (field->def && empty)
                fact(sink, "sameAsUnset", empty);
}

/* The rule of the profile hardened for the field, or for the key in question. */
static void fact_hardened(struct sink *sink, const char *path, const char *key, const char *guard)
{
        size_t size = strlen(path);

        for (size_t i = 0; key && i < lkg_n_guarded_keys; i++)
                if (strncmp(lkg_guarded_keys[i].path, path, size) == 0 &&
                    lkg_guarded_keys[i].path[size] == '.' &&
                    strcmp(lkg_guarded_keys[i].path + size + 1, key) == 0)
                        guard = lkg_guarded_keys[i].guard;
        if (strcmp(guard, LKG_GUARD_NOTHING) != 0)
                fact(sink, "hardened", guard);
}

/* Programs get the class and the words apart. */
static void fact_change(struct sink *sink, const struct lkg_field *field)
{
        const char *name = lkg_change_class_name(lkg_change_class_of(field)),
                   *words = field->change ? strchr(field->change, ':') : NULL;

        tell(sink, "change", field->change ? field->change : name);
        lkg_tool_texts(sink->map, "changeClass", name, "changeNeeds", words ? words + 2 : NULL, NULL);
}

static void fact_danger(struct sink *sink, const struct lkg_field *field)
{
        static const char *const words[] = {
                [LKG_DANGER_HARMLESS] = "harmless: a wrong value stops nothing and no pod",
                [LKG_DANGER_PODS] = "pods: a wrong value can evict, restart, refuse or break pods",
                [LKG_DANGER_STOPS] = "stops: a wrong value can stop the component or the node",
        };

        tell(sink, "danger", words[field->danger]);
        lkg_tool_map_string(sink->map, "danger", lkg_danger_name(field->danger));
}

static void fact_span(struct sink *sink, const struct lkg_kind *kind, const struct lkg_field *first)
{
        char text[LKG_RELEASE_TEXT_MAX];

        if (first->since)
                fact_release(sink, "since", first->since);
        else
                fact(sink, "since",
                     lkg_tool_format("%s or earlier", lkg_release_text(LKG_RELEASE_MIN, text)));
        fact_release(sink, "until", last_row(kind, first)->until);
}

/* The key of a map in question. */
static void fact_key(struct sink *sink, const struct lkg_explained *item)
{
        const char *path = item->field->path;
        const struct lkg_map_key *key = item->key ? lkg_map_key_find(path, item->key) : NULL;
        struct lkg_value *list;

        if (!item->key)
                return;
        fact(sink, "key", item->key);
        fact(sink, "means", key ? key->doc : NULL);
        list = lkg_tool_list();
        for (size_t i = 0; !key && strcmp(path, "featureGates") != 0 && i < lkg_n_map_keys; i++)
                if (lkg_map_key_find(path, lkg_map_keys[i].key) == &lkg_map_keys[i])
                        add_word(list, lkg_map_keys[i].key);
        fact_words(sink, "knownKeys", list);
}

static void show_field(struct sink *sink, const struct lkg_explained *item, unsigned release)
{
        const struct lkg_field *row = row_for(item->kind, item->field, release);
        bool known = row != NULL;
        char text[LKG_RELEASE_TEXT_MAX];

        if (!known)
                row = item->field;
        fact_key(sink, item);
        fact_type(sink, row->type);
        fact_default(sink, row);
        fact_empty(sink, row);
        fact(sink, "rule", row->rule);
        fact(sink, "unit", row->unit);
        fact(sink, "flag", row->flag ? lkg_tool_format("--%s", row->flag) : NULL);
        fact(sink, "gate", row->gate);
        fact_span(sink, item->kind, item->field);
        fact_if(sink, "inRelease", known, NULL);
        if (!known)
                lkg_buf_printf(sink->buf, "  %-11s %s does not have it\n", "release",
                               lkg_release_text(release, text));
        fact_changes(sink, item->field, item->kind->fields + *item->kind->n_fields, row);
        fact(sink, "deprecated", row->deprecated);
        fact_if(sink, "path", row->flags & LKG_FIELD_PATH,
                row->flags & LKG_FIELD_RESOLVED
                        ? "names a file or directory; in the base, relative to its directory"
                        : "names a file or directory");
        fact_if(sink, "secret", row->flags & LKG_FIELD_SECRET, "its values are never shown");
        fact_hardened(sink, row->path, item->key, row->guard);
        fact_change(sink, row);
        fact_danger(sink, row);
        fact_parts(sink, item->kind, row->path, release);
}

/* ---- flags ---- */

/* The field whose row names @flag, although the flag does not reach it under a document. */
static const struct lkg_field *field_of_flag(const struct lkg_kind *kind, const struct lkg_flag *flag)
{
        for (size_t i = 0; i < *kind->n_fields; i++) {
                const struct lkg_field *field = &kind->fields[i];

                if (flag->field ? strcmp(field->path, flag->field) == 0
                                : field->flag && strcmp(field->flag, flag->name) == 0)
                        return field;
        }
        return NULL;
}

static void show_flag(struct sink *sink, const struct lkg_explained *item)
{
        const struct lkg_flag *flag = item->flag;
        const struct lkg_field *field = field_of_flag(item->kind, flag);
        char letter[3] = { '-', flag->shorthand, '\0' };

        fact(sink, "type", flag->type);
        fact(sink, "short", flag->shorthand ? letter : NULL);
        fact(sink, "field", field ? field->path : NULL);
        fact(sink, "effect",
             flag->field ? "wins over the document"
             : field     ? "none of its own on the document"
                         : "no field of the document");
        fact(sink, "doc", field ? field->doc : NULL);
        fact(sink, "rule", field ? field->rule : NULL);
        fact_release(sink, "since", flag->since);
        fact_release(sink, "until", flag->until);
        fact_if(sink, "secret", flag->secret, "its value is never shown");
}

/* ---- gates ---- */

static const char *gate_text(const struct lkg_gate_state *gate)
{
        char text[LKG_RELEASE_TEXT_MAX], dropped[LKG_GATE_DROPPED_MAX];
        const char *stage = lkg_gate_stage_name(gate->stage);

        if (gate->stage == LKG_GATE_REMOVED && gate->before)
                return lkg_tool_format("dropped %s", lkg_gate_dropped(gate, dropped));
        (void)lkg_release_text(gate->since, text);
        return gate->stage == LKG_GATE_REMOVED
                       ? lkg_tool_format("%s %s", text, stage)
                       : lkg_tool_format("%s %s %s%s", text, stage, gate->def ? "on" : "off",
                                         gate->locked ? " locked" : "");
}

static void show_gate(struct sink *sink, const struct lkg_explained *item, unsigned release)
{
        const struct lkg_gate_state *now = lkg_gate_in(item->gate, release);
        struct lkg_value *history = lkg_tool_list(), *needs = lkg_tool_list(), *fields = lkg_tool_list();

        for (size_t i = 0; i < LKG_GATE_STATES_MAX && item->gate->states[i].since; i++)
                add_word(history, gate_text(&item->gate->states[i]));
        for (size_t i = 0; i < lkg_n_gate_needs; i++)
                if (lkg_gate_needs[i].since <= release &&
                    strcmp(lkg_gate_needs[i].name, item->gate->name) == 0)
                        add_word(needs, lkg_gate_needs[i].needs);
        for (size_t k = 0; k < lkg_n_kinds; k++)
                for (size_t i = 0; i < *lkg_kinds[k].n_fields; i++) {
                        const struct lkg_field *field = &lkg_kinds[k].fields[i];

                        if (field->gate && strcmp(field->gate, item->gate->name) == 0 &&
                            lkg_field_in(field, release))
                                add_word(fields, field->path);
                }
        fact(sink, "stage", now ? lkg_gate_stage_name(now->stage) : "not known yet");
        if (now && now->stage != LKG_GATE_REMOVED) {
                fact(sink, "default", now->def ? "on" : "off");
                fact_if(sink, "locked", now->locked, "only the default may be set");
        }
        fact_words(sink, "releases", history);
        fact_words(sink, "needs", needs);
        fact_words(sink, "fields", fields);
        fact_hardened(sink, "featureGates", item->gate->name, LKG_GUARD_NOTHING);
}

struct lkg_value *lkg_explain_show(const struct lkg_explained *item, unsigned release, struct lkg_buf *buf)
{
        char text[LKG_RELEASE_TEXT_MAX];
        struct sink sink = { buf, lkg_tool_map() };

        (void)lkg_release_text(release, text);
        switch (item->what) {
        case LKG_EXPLAINED_FIELD:
                lkg_buf_printf(buf, "%s (%s): %s\n", item->field->path, item->kind->kind, item->field->doc);
                lkg_tool_texts(sink.map, "kind", item->kind->kind, "field", item->field->path, "doc",
                               item->field->doc, NULL);
                show_field(&sink, item, release);
                break;
        case LKG_EXPLAINED_FLAG:
                lkg_buf_printf(buf, "--%s (flag of %s)\n", item->flag->name, item->kind->component);
                lkg_tool_texts(sink.map, "component", item->kind->component, "flag", item->flag->name, NULL);
                show_flag(&sink, item);
                break;
        case LKG_EXPLAINED_GATE:
                lkg_buf_printf(buf, "%s (feature gate, in %s)\n", item->gate->name, text);
                lkg_tool_texts(sink.map, "gate", item->gate->name, "release", text, NULL);
                show_gate(&sink, item, release);
                break;
        }
        return sink.map;
}
