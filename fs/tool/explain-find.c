/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the field, flag or feature gate that a word refers to. */
#include "tool.h"

#include <ctype.h>

static bool kind_wanted(const struct lkg_kind *kind, const char *name)
{
        return !name || strcasecmp(kind->kind, name) == 0 || strcasecmp(kind->component, name) == 0;
}

bool lkg_explain_kind_known(const char *name)
{
        for (size_t i = 0; i < lkg_n_kinds; i++)
                if (kind_wanted(&lkg_kinds[i], name))
                        return true;
        return false;
}

/* `[]`, `[0]`, `{}`: not part of a name. */
static const char *skip_brackets(const char *p)
{
        while (*p == '[' || *p == '{') {
                p += strcspn(p, "]}");
                if (*p)
                        p++;
        }
        return p;
}

static bool same_char(char a, char b, bool fold)
{
        if (a == '/')
                a = '.';
        if (a == b)
                return true;
        return fold && tolower((unsigned char)a) == tolower((unsigned char)b);
}

/* Is @word this path, written with dots or slashes, with or without indexes? */
static bool same_path(const char *word, const char *path, bool fold)
{
        if (*word == '.' || *word == '/')
                word++;
        for (;; word++, path++) {
                word = skip_brackets(word);
                path = skip_brackets(path);
                if (!*word || !*path)
                        return !*word && !*path;
                if (!same_char(*word, *path, fold))
                        return false;
        }
}

/* Is @word the end of @path, starting at a dot? */
static bool same_end(const char *word, const char *path)
{
        for (const char *dot = strchr(path, '.'); dot; dot = strchr(dot + 1, '.'))
                if (same_path(word, dot + 1, true))
                        return true;
        return false;
}

/* Underscores count as hyphens, as in the components; a value may follow. */
static bool same_flag(const char *word, const char *name, bool fold)
{
        word += strspn(word, "-");
        for (; *name; word++, name++)
                if (!same_char(*word == '_' ? '-' : *word, *name, fold))
                        return false;
        return *word == '\0' || *word == '=';
}

static void add(struct lkg_explained_list *list, struct lkg_explained item)
{
        if (list->n_items < LKG_EXPLAINED_MAX)
                list->items[list->n_items] = item;
        list->n_items++;
}

enum how { EXACT, FOLDED, KEY, END };

/* Rows of one path are adjacent: only the first one is offered. */
static bool first_row(const struct lkg_field *fields, size_t i)
{
        return i == 0 || strcmp(fields[i - 1].path, fields[i].path) != 0;
}

static void find_gates(const char *word, enum how how, struct lkg_explained_list *list)
{
        for (size_t i = 0; how <= FOLDED && i < lkg_n_gates; i++) {
                if (how == EXACT ? strcmp(word, lkg_gates[i].name) == 0
                                 : strcasecmp(word, lkg_gates[i].name) == 0)
                        add(list,
                            (struct lkg_explained){ .what = LKG_EXPLAINED_GATE, .gate = &lkg_gates[i] });
        }
}

/* `evictionHard.memory.available` with the path `evictionHard`: the key, else NULL. */
static const char *key_of(const char *word, const struct lkg_field *field)
{
        LKG_CLEANUP(lkg_freep) char *head = NULL;

        if (!strstr(field->type, "map["))
                return NULL;
        for (const char *end = word + 1; *word && (end = strpbrk(end, "./")); end++) {
                free(head);
                head = strndup(word, (size_t)(end - word));
                if (head && end[1] && same_path(head, field->path, true))
                        return end + 1;
        }
        return NULL;
}

/* Return: the feature gate that the word also names, NULL = none. */
static const char *find_keys(const struct lkg_kind *kind, const char *word, struct lkg_explained_list *list)
{
        const char *gate = NULL;

        for (size_t i = 0; i < *kind->n_fields; i++) {
                const char *key = first_row(kind->fields, i) ? key_of(word, &kind->fields[i]) : NULL;

                if (!key)
                        continue;
                add(list, (struct lkg_explained){ .what = LKG_EXPLAINED_FIELD,
                                                  .kind = kind,
                                                  .field = &kind->fields[i],
                                                  .key = key });
                if (strcmp(kind->fields[i].path, "featureGates") == 0)
                        gate = key;
        }
        return gate;
}

static void find_fields(const struct lkg_kind *kind, const char *word, enum how how,
                        struct lkg_explained_list *list)
{
        size_t before = list->n_items;

        for (size_t i = 0; i < *kind->n_fields; i++) {
                const char *path = kind->fields[i].path;

                if (how != KEY && first_row(kind->fields, i) &&
                    (how == END ? same_end(word, path) : same_path(word, path, how == FOLDED)))
                        add(list, (struct lkg_explained){ .what = LKG_EXPLAINED_FIELD,
                                                          .kind = kind,
                                                          .field = &kind->fields[i] });
        }
        if (how == END && list->n_items > before + 1)
                list->ambiguous = true;
}

/* `AllAlpha` alone: a key of featureGates that is not a gate itself. */
static void find_gate_group(const struct lkg_kind *kind, const char *word, enum how how,
                            struct lkg_explained_list *list)
{
        static const char map[] = "featureGates";

        for (size_t k = 0; how <= FOLDED && k < lkg_n_map_keys; k++) {
                const char *key = lkg_map_keys[k].key;

                if (lkg_map_key_find(map, key) != &lkg_map_keys[k] ||
                    (how == EXACT ? strcmp(word, key) : strcasecmp(word, key)) != 0)
                        continue;
                for (size_t i = 0; i < *kind->n_fields; i++)
                        if (strcmp(kind->fields[i].path, map) == 0 && first_row(kind->fields, i))
                                add(list, (struct lkg_explained){ .what = LKG_EXPLAINED_FIELD,
                                                                  .kind = kind,
                                                                  .field = &kind->fields[i],
                                                                  .key = key });
        }
}

static void find_flags(const struct lkg_kind *kind, const char *word, enum how how,
                       struct lkg_explained_list *list)
{
        for (size_t i = 0; how <= FOLDED && i < *kind->n_flags; i++)
                if (same_flag(word, kind->flags[i].name, how == FOLDED))
                        add(list, (struct lkg_explained){ .what = LKG_EXPLAINED_FLAG,
                                                          .kind = kind,
                                                          .flag = &kind->flags[i] });
}

void lkg_explain_find(const char *word, const char *kind, struct lkg_explained_list *ret)
{
        bool flags_only = *word == '-';
        const char *gate = NULL, *named;

        *ret = (struct lkg_explained_list){ 0 };
        for (enum how how = EXACT; how <= END && ret->n_items == 0; how++) {
                for (size_t i = 0; i < lkg_n_kinds; i++) {
                        if (!kind_wanted(&lkg_kinds[i], kind))
                                continue;
                        if (!flags_only)
                                find_fields(&lkg_kinds[i], word, how, ret);
                        named = !flags_only && how == KEY ? find_keys(&lkg_kinds[i], word, ret) : NULL;
                        gate = named ? named : gate;
                        if (!flags_only)
                                find_gate_group(&lkg_kinds[i], word, how, ret);
                        find_flags(&lkg_kinds[i], word, how, ret);
                }
                if (gate)
                        find_gates(gate, EXACT, ret);
                else if (!flags_only)
                        find_gates(word, how, ret);
        }
}

struct seeking {
        const char *part;
        struct lkg_nearest nearest;    /* by its spelling */
        struct lkg_explain_near *near; /* some that contain the part */
};

static void offer(struct seeking *s, const char *name)
{
        struct lkg_explain_near *near = s->near;

        lkg_nearest_offer(&s->nearest, name);
        if (near->n == LKG_ARRAY_SIZE(near->names) || !strcasestr(name, s->part))
                return;
        for (size_t i = 0; i < near->n; i++)
                if (strcasestr(near->names[i], name) || strcasestr(name, near->names[i]))
                        return;
        near->names[near->n++] = name;
}

/* Of every name that may be explained: fields with and without their parents, flags, gates. */
void lkg_explain_nearest(const char *word, const char *kind, struct lkg_explain_near *ret)
{
        struct seeking s = { .part = word + strspn(word, "-"), .near = ret };
        bool flags_only = *word == '-';

        *ret = (struct lkg_explain_near){ 0 };
        if (strlen(s.part) < 3)
                return; /* a short word is similar to everything */
        lkg_nearest_init(&s.nearest, s.part);
        for (size_t i = 0; i < lkg_n_kinds; i++) {
                if (!kind_wanted(&lkg_kinds[i], kind))
                        continue;
                for (size_t j = 0; !flags_only && j < *lkg_kinds[i].n_fields; j++) {
                        const char *path = lkg_kinds[i].fields[j].path, *dot = strrchr(path, '.');

                        offer(&s, path);
                        if (dot)
                                offer(&s, dot + 1);
                }
                for (size_t j = 0; j < *lkg_kinds[i].n_flags; j++)
                        offer(&s, lkg_kinds[i].flags[j].name);
        }
        for (size_t i = 0; !flags_only && i < lkg_n_gates; i++)
                offer(&s, lkg_gates[i].name);
        if (lkg_nearest_best(&s.nearest))
                *ret = (struct lkg_explain_near){ .names = { lkg_nearest_best(&s.nearest) }, .n = 1 };
}
