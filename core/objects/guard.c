/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The guard: one walk over the remote document. Rules are compared with the names on the path, so nothing is
 * looked up by a name that the remote document chooses.
 */

#include <lkg/text.h>
#include <lkg/objects.h>
#include <lkg/schema.h>
#include <lkg/limits.h>
#include <lkg/documents.h>

#define FINDING_DENIED 6002u
#define FINDING_PINNED 6003u
#define RULE_NAME_MAX  253u /* bytes of a name in a rule; no field has a longer name */

struct check {
        const struct lkg_guard *guard;
        bool known_kind; /* the kind has tables: a field that is in none of them has no rule */
        const struct lkg_value *base;
        struct lkg_report *report;
        struct lkg_buf path; /* dotted, with [] for items */
        struct lkg_span names[LKG_GUARD_DEPTH_MAX + 1];
        size_t n_names; /* names from the root to the current field; list items have none */
        int n_findings;
};

/* ---- names ---- */

/* Is @key (with @prefix: its start) the name @part, ignoring case? */
static bool name_matches(const char *part, bool prefix, struct lkg_span key)
{
        size_t n = strlen(part);

        if (!prefix)
                return lkg_merge_key_folds(part, key.data, key.size);
        /* With case folding, a letter may match a character of up to three bytes. */
        for (size_t size = n; size <= key.size && size <= 3 * n; size++)
                if (lkg_merge_key_folds(part, key.data, size))
                        return true;
        return n == 0;
}

/*
 * How many names of the current path does @pattern match? 0 = it means another path, or a deeper one. List
 * items have no name, so `[]` is ignored.
 */
static size_t pattern_reach(const struct check *c, const char *pattern)
{
        struct lkg_span rest = lkg_span(pattern, strlen(pattern)), part;
        size_t i = 0;

        while (lkg_span_next(&rest, '.', &part)) {
                bool prefix = part.size > 0 && part.data[part.size - 1] == '*';
                char name[RULE_NAME_MAX + 1];

                if (part.size > 2 && memcmp(part.data + part.size - 2, "[]", 2) == 0)
                        part.size -= 2;
                part.size -= prefix;
                if (i == c->n_names || part.size >= sizeof(name))
                        return 0;
                memcpy(name, part.data, part.size);
                name[part.size] = '\0';
                if (!name_matches(name, prefix, c->names[i++]))
                        return 0;
        }
        return i;
}

static const char *first_match(const struct check *c, const char *const *patterns, size_t n)
{
        for (size_t i = 0; i < n; i++)
                if (pattern_reach(c, patterns[i]) == c->n_names)
                        return patterns[i];
        return NULL;
}

/* ---- the profile ---- */

/* Why @field forbids the current path; NULL = it does not. */
static const char *judge_field(const struct check *c, const struct lkg_field *field, bool *known)
{
        size_t reach = pattern_reach(c, field->path);

        if (reach == 0 || (reach < c->n_names && !strstr(field->type, "map[")))
                return NULL;
        *known = true; /* the field itself, or a key of its map */
        if (!field->guard)
                return "nobody has judged it";
        return strcmp(field->guard, LKG_GUARD_NOTHING) == 0 ? NULL : field->guard;
}

/*
 * Checks the tables of all kinds, so that a document cannot evade a rule by naming a kind that its component does not read. No
 * field has different rules in two kinds (a test checks that).
 */
static const char *match_profile(const struct check *c)
{
        bool known = false;

        for (size_t i = 0; i < lkg_n_guarded_keys; i++)
                if (pattern_reach(c, lkg_guarded_keys[i].path) == c->n_names)
                        return lkg_guarded_keys[i].guard;
        for (size_t k = 0; k < lkg_n_kinds; k++)
                for (size_t i = 0; i < *lkg_kinds[k].n_fields; i++) {
                        const char *why = judge_field(c, &lkg_kinds[k].fields[i], &known);

                        if (why)
                                return why;
                }
        return known || !c->known_kind ? NULL : "not in the tables of this lkgfs, so nobody has judged it";
}

/* ---- findings ---- */

/* The path, safe to show: names of unknown fields are foreign text. */
static const char *shown(const struct check *c, char quoted[static 5 * LKG_QUOTE_MAX + 8])
{
        for (size_t i = 0; i < c->path.size; i++) {
                char ch = c->path.data[i];

                if (c->path.size > LKG_QUOTE_MAX || !((ch >= 'a' && ch <= 'z') || (ch >= 'A' && ch <= 'Z') ||
                                                      (ch >= '0' && ch <= '9') || strchr("._-[]", ch)))
                        return lkg_quote(c->path.data, c->path.size, quoted);
        }
        return c->path.data ? c->path.data : "";
}

static void forbid(struct check *c, unsigned code, const struct lkg_value *value, const char *why,
                   const char *kind, const char *rule)
{
        const struct lkg_where where = lkg_where_of(value);
        char quoted[5 * LKG_QUOTE_MAX + 8];

        lkg_report_add(c->report, LKG_ERROR, code, &where, "%s: %s (%s%s%s)", shown(c, quoted), why, kind,
                       *rule ? ": " : "", rule);
        c->n_findings++;
}

/* ---- equality ---- */

static bool is_integer(struct lkg_span text)
{
        return memchr(text.data, '.', text.size) == NULL && memchr(text.data, 'e', text.size) == NULL &&
               memchr(text.data, 'E', text.size) == NULL;
}

static bool numbers_equal(const struct lkg_value *a, const struct lkg_value *b)
{
        struct lkg_span x, y;

        x.data = lkg_value_text(a, &x.size);
        y.data = lkg_value_text(b, &y.size);
        if (lkg_span_equal(x, y))
                return true;
        /* 1.50 equals 1.5. Integers are compared by their digits: large ones do not fit into a double. */
        return !(is_integer(x) && is_integer(y)) && strtod(x.data, NULL) == strtod(y.data, NULL);
}

/* Is it the same JSON, with numbers compared by value (below @depth, literally)? */
static bool json_equal(const struct lkg_value *a, const struct lkg_value *b, unsigned depth)
{
        enum lkg_type type = lkg_value_type(a);

        if (type != lkg_value_type(b))
                return false;
        if (type == LKG_NUMBER)
                return numbers_equal(a, b);
        if ((type != LKG_LIST && type != LKG_MAP) || depth == 0)
                return lkg_value_equal(a, b);
        if (lkg_value_size(a) != lkg_value_size(b))
                return false;
        for (size_t i = 0; i < lkg_value_size(a); i++) {
                struct lkg_span x = { "", 0 }, y = { "", 0 };
                const struct lkg_value *p =
                        type == LKG_MAP ? lkg_map_at(a, i, &x.data, &x.size) : lkg_list_get(a, i);
                const struct lkg_value *q =
                        type == LKG_MAP ? lkg_map_at(b, i, &y.data, &y.size) : lkg_list_get(b, i);

                if (!lkg_span_equal(x, y) || !json_equal(p, q, depth - 1))
                        return false;
        }
        return true;
}

/* ---- pinned ---- */

/* The member of @map that the component would read as @name; NULL = none, or not a map. */
static const struct lkg_value *find_member(const struct lkg_value *map, struct lkg_span name)
{
        const struct lkg_value *found = NULL;

        if (!map || lkg_value_type(map) != LKG_MAP)
                return NULL;
        for (size_t i = 0; i < lkg_value_size(map); i++) {
                struct lkg_span key;
                const struct lkg_value *value = lkg_map_at(map, i, &key.data, &key.size);

                if (lkg_span_equal(key, name))
                        return value;
                if (!found && lkg_merge_key_folds(key.data, name.data, name.size))
                        found = value;
        }
        return found;
}

static const struct lkg_value *find_in_base(const struct check *c)
{
        const struct lkg_value *value = c->base;

        for (size_t i = 0; i < c->n_names; i++)
                value = find_member(value, c->names[i]);
        return value;
}

static void push(struct check *c, struct lkg_span name)
{
        if (c->path.size > 0)
                lkg_buf_putc(&c->path, '.');
        lkg_buf_append(&c->path, name.data, name.size);
        c->names[c->n_names++] = name;
}

/* Shortens the path to @size bytes. */
static void pop(struct check *c, size_t size)
{
        c->path.size = size;
        if (c->path.data)
                c->path.data[size] = '\0';
}

static void check_pinned(struct check *c, const struct lkg_value *value, const struct lkg_value *base,
                         const char *rule, unsigned depth)
{
        size_t size = c->path.size;
        bool maps = lkg_value_type(value) == LKG_MAP && base && lkg_value_type(base) == LKG_MAP;

        if (!base) {
                forbid(c, FINDING_PINNED, value, "pinned to the value of the base, which does not set it",
                       "guard.pinned", rule);
                return;
        }
        if (!maps || depth == LKG_GUARD_DEPTH_MAX) {
                if (!json_equal(value, base, LKG_GUARD_DEPTH_MAX))
                        forbid(c, FINDING_PINNED, value,
                               "pinned to the value of the base, and the remote configuration has another "
                               "one",
                               "guard.pinned", rule);
                return;
        }
        for (size_t i = 0; i < lkg_value_size(value); i++) {
                struct lkg_span name;
                const struct lkg_value *member = lkg_map_at(value, i, &name.data, &name.size);

                push(c, name);
                check_pinned(c, member, find_member(base, name), rule, depth + 1);
                c->n_names--;
                pop(c, size);
        }
}

/* ---- the walk ---- */

/* Return: true if the current field and everything below it need no further check. */
static bool check_field(struct check *c, const struct lkg_value *value, unsigned depth)
{
        static const char why[] = "a remote configuration may not set this field here";
        const char *profile = c->guard->hardened ? match_profile(c) : NULL;
        const char *rule = first_match(c, c->guard->deny, c->guard->n_deny);

        if (rule) {
                forbid(c, FINDING_DENIED, value, why, "guard.deny", rule);
                return true;
        }
        if (profile) {
                forbid(c, FINDING_DENIED, value, why, "guard.profile hardened", profile);
                return true;
        }
        rule = first_match(c, c->guard->pinned, c->guard->n_pinned);
        if (rule)
                check_pinned(c, value, find_in_base(c), rule, depth);
        return rule;
}

static void walk(struct check *c, const struct lkg_value *value, unsigned depth)
{
        size_t size = c->path.size;
        enum lkg_type type = lkg_value_type(value);

        if (type != LKG_MAP && type != LKG_LIST)
                return;
        if (depth == LKG_GUARD_DEPTH_MAX) {
                forbid(c, FINDING_DENIED, value, "nested too deep to be judged", "guard",
                       "at most 64 levels");
                return;
        }
        for (size_t i = 0; i < lkg_value_size(value); i++) {
                struct lkg_span name = { "", 0 };
                const struct lkg_value *member = type == LKG_MAP
                                                         ? lkg_map_at(value, i, &name.data, &name.size)
                                                         : lkg_list_get(value, i);

                if (type == LKG_MAP) {
                        push(c, name);
                        if (!check_field(c, member, depth + 1))
                                walk(c, member, depth + 1);
                        c->n_names--;
                } else {
                        lkg_buf_puts(&c->path, "[]");
                        walk(c, member, depth + 1);
                }
                pop(c, size);
        }
}

/* A document without a kind counts as known. */
static bool is_known_kind(const struct lkg_value *remote)
{
        const struct lkg_value *kind = find_member(remote, lkg_span("kind", 4));
        size_t size = 0;
        const char *text = kind && lkg_value_type(kind) == LKG_STRING ? lkg_value_text(kind, &size) : NULL;

        for (size_t i = 0; text && i < lkg_n_kinds; i++)
                if (strcmp(lkg_kinds[i].kind, text) == 0)
                        return true;
        return !text;
}

int lkg_guard_check(const struct lkg_guard *guard, const struct lkg_value *remote,
                    const struct lkg_value *base, struct lkg_report *report)
{
        struct check c = {
                .guard = guard,
                .known_kind = is_known_kind(remote),
                .base = base,
                .report = report,
                .path = LKG_BUF_INIT,
        };

        if (!guard->hardened && guard->n_deny == 0 && guard->n_pinned == 0)
                return 0;
        walk(&c, remote, 0);
        lkg_buf_deinit(&c.path);
        return c.n_findings;
}
