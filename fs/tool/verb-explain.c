/* SPDX-License-Identifier: Apache-2.0 */
/* lkgfs explain: explains finding codes, fields, flags and feature gates. lkgfs schema: kinds as JSON Schema. */
#include "tool.h"

#include <ctype.h>

/* "LKG1001", "lkg1001" or "1001"; 0 = none of these. */
static unsigned parse_code(const char *text)
{
        unsigned long code;
        char *end;

        if (strncasecmp(text, "LKG", 3) == 0)
                text += 3;
        if (*text < '0' || *text > '9' || strlen(text) > 6)
                return 0;
        code = strtoul(text, &end, 10);
        return *end ? 0 : (unsigned)code;
}

/* ---- codes ---- */

#define COLUMNS 80

/* Add @text, wrapped at spaces. */
static void append_wrapped(struct lkg_buf *buf, const char *text)
{
        size_t column = 0;

        while (*text) {
                size_t size = strcspn(text, " ");

                if (column > 0 && column + 1 + size > COLUMNS) {
                        lkg_buf_printf(buf, "\n");
                        column = 0;
                }
                lkg_buf_printf(buf, "%s%.*s", column ? " " : "", (int)size, text);
                column += size + (column > 0);
                text += size;
                text += strspn(text, " ");
        }
        lkg_buf_printf(buf, "\n");
}

static struct lkg_value *map_kind(const struct lkg_finding_kind *kind)
{
        return lkg_tool_texts(lkg_tool_map(), "code", lkg_tool_format("LKG%04u", kind->code), "severity",
                              lkg_severity_name(kind->severity), "title", kind->title, "paragraph",
                              kind->paragraph, "advice", kind->advice, NULL);
}

static void put_kind(const struct lkg_finding_kind *kind, bool whole, struct lkg_buf *buf)
{
        if (!whole) {
                lkg_buf_printf(buf, "LKG%04u  %-7s  %s\n", kind->code, lkg_severity_name(kind->severity),
                               kind->title);
                return;
        }
        lkg_buf_printf(buf, "LKG%04u (%s): %s\n\n", kind->code, lkg_severity_name(kind->severity),
                       kind->title);
        append_wrapped(buf, kind->paragraph);
        lkg_buf_puts(buf, "\nWhat to do:\n");
        append_wrapped(buf, kind->advice);
}

/* @wanted: 0 = all */
static int print_codes(const struct lkg_tool *tool, unsigned wanted)
{
        LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf buf = LKG_BUF_INIT;
        struct lkg_value *list = lkg_tool_list();

        for (size_t i = 0; i < lkg_n_finding_kinds; i++) {
                if (wanted && lkg_finding_kinds[i].code != wanted)
                        continue;
                lkg_tool_append(list, map_kind(&lkg_finding_kinds[i]));
                put_kind(&lkg_finding_kinds[i], wanted, &buf);
        }
        return lkg_tool_structured(tool) ? lkg_tool_print_listed(tool, NULL, "codes", list, LKG_TOOL_OK)
                                         : lkg_tool_print(&buf, LKG_TOOL_OK);
}

/* ---- what a word may mean ---- */

#define EXPLAINED_MAX 32

struct explained_list {
        struct lkg_explained items[EXPLAINED_MAX];
        size_t n_items; /* number found; beyond EXPLAINED_MAX they are only counted */
        bool ambiguous; /* the word is the end of several paths of one kind */
};

static bool kind_wanted(const struct lkg_kind *kind, const char *name)
{
        return !name || strcasecmp(kind->kind, name) == 0 || strcasecmp(kind->component, name) == 0;
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

/* Rows of one path are adjacent: only the first one is offered. */
static bool first_row(const struct lkg_field *fields, size_t i)
{
        return i == 0 || strcmp(fields[i - 1].path, fields[i].path) != 0;
}

/*
 * Calls @found with everything that @word may name: the fields and flags of each @kind (a kind or a component, NULL = all), then the
 * gates; with hyphens before the word it is a flag.
 */
static void each_name(const char *word, const char *kind, void *userdata,
                      void (*found)(void *userdata, const struct lkg_explained *item, const char *name))
{
        bool flags_only = *word == '-';

        for (size_t k = 0; k < lkg_n_kinds; k++) {
                const struct lkg_kind *one = &lkg_kinds[k];
                struct lkg_explained item = { LKG_EXPLAINED_FIELD, one, .flag = NULL };

                for (size_t i = 0; !flags_only && kind_wanted(one, kind) && i < *one->n_fields; i++) {
                        item.field = &one->fields[i];
                        if (first_row(one->fields, i))
                                found(userdata, &item, item.field->path);
                }
                for (size_t i = 0; kind_wanted(one, kind) && i < *one->n_flags; i++) {
                        item = (struct lkg_explained){ LKG_EXPLAINED_FLAG, one, .flag = &one->flags[i] };
                        found(userdata, &item, item.flag->name);
                }
        }
        for (size_t i = 0; !flags_only && i < lkg_n_gates; i++) {
                const struct lkg_explained item = { LKG_EXPLAINED_GATE, .gate = &lkg_gates[i] };

                found(userdata, &item, item.gate->name);
        }
}

/*
 * In order of preference: a whole path, flag or gate as it is written; the same in another case; a map and one of its keys
 * (`systemReserved.cpu`; a gate after `featureGates.` is also the gate); the end of a path (`cacheTTL`). List indexes, brackets and
 * the hyphens before a flag are ignored.
 */
enum how { EXACT, FOLDED, KEY, END };

struct finding {
        const char *word;
        enum how how;
        const char *gate; /* the word is a key of featureGates */
        struct explained_list *list;
};

static void add(struct finding *f, const struct lkg_explained *item, const char *key)
{
        struct explained_list *list = f->list;

        if (f->how == END && list->n_items > 0 && list->n_items <= EXPLAINED_MAX)
                list->ambiguous |= list->items[list->n_items - 1].kind == item->kind;
        if (list->n_items < EXPLAINED_MAX) {
                list->items[list->n_items] = *item;
                list->items[list->n_items].key = key;
        }
        list->n_items++;
}

static bool same_name(const struct finding *f, const char *name)
{
        return f->how == EXACT ? strcmp(f->word, name) == 0
                               : f->how == FOLDED && strcasecmp(f->word, name) == 0;
}

/* `evictionHard.memory.available` with the path `evictionHard`: the key, else NULL. */
static const char *key_of(const char *word, const struct lkg_field *field)
{
        if (!strstr(field->type, "map["))
                return NULL;
        for (const char *end = word + 1; *word && (end = strpbrk(end, "./")); end++)
                if (end[1] && same_path(lkg_tool_cut(word, (size_t)(end - word)), field->path, true))
                        return end + 1;
        return NULL;
}

static void match_field(struct finding *f, const struct lkg_explained *item, const char *path)
{
        static const char gates[] = "featureGates";
        const char *key = f->how == KEY ? key_of(f->word, item->field) : NULL;
        bool of_gates = strcmp(path, gates) == 0;

        if (key || (f->how == END ? same_end(f->word, path)
                                  : f->how <= FOLDED && same_path(f->word, path, f->how == FOLDED)))
                add(f, item, key);
        if (key && of_gates)
                f->gate = key;
        /* `AllAlpha` alone, which is no gate itself */
        for (size_t i = 0; of_gates && i < lkg_n_map_keys; i++) {
                key = lkg_map_keys[i].key;
                if (lkg_map_key_find(gates, key) == &lkg_map_keys[i] && same_name(f, key))
                        add(f, item, key);
        }
}

static void match(void *userdata, const struct lkg_explained *item, const char *name)
{
        struct finding *f = userdata;
        bool same = f->gate ? strcmp(f->gate, name) == 0 : same_name(f, name);

        if (item->what == LKG_EXPLAINED_FIELD)
                match_field(f, item, name);
        else if (item->what == LKG_EXPLAINED_FLAG
                         ? f->how <= FOLDED && same_flag(f->word, name, f->how == FOLDED)
                         : same)
                add(f, item, NULL);
}

static void find_all(const char *word, const char *kind, struct explained_list *ret)
{
        struct finding f = { .word = word, .list = ret };

        *ret = (struct explained_list){ 0 };
        for (; f.how <= END && ret->n_items == 0; f.how++)
                each_name(word, kind, &f, match);
}

struct near {
        const char *part;
        struct lkg_nearest nearest; /* by its spelling */
        const char *names[6];       /* some that contain the part */
        size_t n;
};

static void offer_name(struct near *near, const char *name)
{
        lkg_nearest_offer(&near->nearest, name);
        if (near->n == LKG_ARRAY_SIZE(near->names) || !strcasestr(name, near->part))
                return;
        for (size_t i = 0; i < near->n; i++)
                if (strcasestr(near->names[i], name) || strcasestr(name, near->names[i]))
                        return;
        near->names[near->n++] = name;
}

/* A field with and without its parents. */
static void offer(void *userdata, const struct lkg_explained *item, const char *name)
{
        const char *dot = item->what == LKG_EXPLAINED_FIELD ? strrchr(name, '.') : NULL;

        offer_name(userdata, name);
        if (dot)
                offer_name(userdata, dot + 1);
}

/* The name that was probably meant by its spelling, else some that contain @word. */
static void find_nearest(const char *word, const char *kind, struct near *ret)
{
        *ret = (struct near){ .part = word + strspn(word, "-") };
        if (strlen(ret->part) < 3)
                return; /* a short word is similar to everything */
        lkg_nearest_init(&ret->nearest, ret->part);
        each_name(word, kind, ret, offer);
        if (lkg_nearest_best(&ret->nearest)) {
                ret->names[0] = lkg_nearest_best(&ret->nearest);
                ret->n = 1;
        }
}

/* ---- names ---- */

static size_t n_shown(const struct explained_list *list)
{
        return list->n_items < EXPLAINED_MAX ? list->n_items : EXPLAINED_MAX;
}

static int print_names(const struct lkg_tool *tool, const struct explained_list *list)
{
        static const char *const keys[] = { [LKG_EXPLAINED_FIELD] = "fields",
                                            [LKG_EXPLAINED_FLAG] = "flags",
                                            [LKG_EXPLAINED_GATE] = "gates" };
        unsigned release = tool->options.release ? tool->options.release : LKG_RELEASE_MAX;
        struct lkg_value *map = lkg_tool_document();
        LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf buf = LKG_BUF_INIT;

        for (size_t what = 0; what < LKG_ARRAY_SIZE(keys); what++)
                (void)lkg_tool_map_list(map, keys[what]);
        for (size_t i = 0; i < n_shown(list); i++) {
                lkg_buf_puts(&buf, i ? "\n" : "");
                lkg_tool_append(lkg_map_get(map, keys[list->items[i].what]),
                                lkg_explain_show(&list->items[i], release, &buf));
        }
        return lkg_tool_structured(tool) ? lkg_tool_print_map(tool, map, LKG_TOOL_OK)
                                         : lkg_tool_print(&buf, LKG_TOOL_OK);
}

/* `enabled` is the end of several paths. */
static int refuse_ambiguous(const struct lkg_tool *tool, const struct explained_list *list)
{
        LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf buf = LKG_BUF_INIT;

        for (size_t i = 0; i < n_shown(list); i++)
                lkg_buf_printf(&buf, "%s%s", i ? ", " : "", list->items[i].field->path);

        return lkg_tool_fail(tool, LKG_TOOL_USAGE, "\"%.60s\" may be one of: %s", tool->words[0],
                             lkg_buf_text(&buf));
}

static int refuse_unknown(const struct lkg_tool *tool)
{
        LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf buf = LKG_BUF_INIT;
        struct near near;

        find_nearest(tool->words[0], tool->options.kind, &near);
        for (size_t i = 0; i < near.n; i++)
                lkg_buf_printf(&buf, "%s`%s`",
                               i == 0           ? ", did you mean "
                               : i + 1 < near.n ? ", "
                                                : " or ",
                               near.names[i]);
        lkg_buf_puts(&buf, near.n ? "?" : "; `lkgfs explain` lists the codes");

        return lkg_tool_fail(tool, LKG_TOOL_USAGE,
                             "\"%.60s\" is not a field, flag, feature gate or finding code%s",
                             tool->words[0], lkg_buf_text(&buf));
}

int lkg_verb_explain(const struct lkg_tool *tool)
{
        const char *kind = tool->options.kind;
        struct explained_list list;
        bool known = false;
        unsigned code;

        for (size_t i = 0; i < lkg_n_kinds; i++)
                known |= kind_wanted(&lkg_kinds[i], kind);
        if (!known)
                return lkg_tool_fail(tool, LKG_TOOL_USAGE, "there are no tables for kind \"%.60s\"", kind);
        if (tool->n_words == 0)
                return print_codes(tool, 0);
        code = parse_code(tool->words[0]);
        if (code && lkg_finding_kind(code))
                return print_codes(tool, code);
        find_all(tool->words[0], kind, &list);
        if (list.n_items == 0)
                return refuse_unknown(tool);
        if (list.ambiguous)
                return refuse_ambiguous(tool, &list);
        return print_names(tool, &list);
}

/* ---- schema: the kinds with tables as JSON Schema, for editors; without a word, their list ---- */

static int list_kinds(void)
{
        LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf buf = LKG_BUF_INIT;
        char first[LKG_RELEASE_TEXT_MAX], last[LKG_RELEASE_TEXT_MAX];

        for (size_t i = 0; i < lkg_n_kinds; i++)
                lkg_buf_printf(&buf, "%-24s %-32s %s to %s\n", lkg_kinds[i].kind, lkg_kinds[i].api_version,
                               lkg_release_text(LKG_RELEASE_MIN, first),
                               lkg_release_text(LKG_RELEASE_MAX, last));
        lkg_buf_printf(&buf, "%-24s %s\n", LKG_CONFIG_KIND, LKG_CONFIG_API_VERSION);
        return lkg_tool_print(&buf, LKG_TOOL_OK);
}

static int print_schema(const struct lkg_tool *tool, struct lkg_json *json)
{
        LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf buf = LKG_BUF_INIT;
        int r = lkg_json_write_line(json, &buf);

        if (r < 0)
                return lkg_tool_fail(tool, LKG_TOOL_FAILED, "%s", strerror(-r));
        return lkg_tool_print(&buf, LKG_TOOL_OK);
}

static int print_kind(const struct lkg_tool *tool, const struct lkg_kind *kind)
{
        LKG_CLEANUP(lkg_json_deinit) struct lkg_json json = LKG_JSON_INIT;
        const struct lkg_schema *schema;
        int r = lkg_schema_get(kind->kind, kind->api_version, tool->options.release, &schema);

        if (r < 0)
                return lkg_tool_fail(tool, LKG_TOOL_FAILED, "%s: %s", kind->kind, strerror(-r));
        lkg_schema_json(schema, &json);
        return print_schema(tool, &json);
}

static int print_configuration(const struct lkg_tool *tool)
{
        LKG_CLEANUP(lkg_json_deinit) struct lkg_json json = LKG_JSON_INIT;

        if (tool->options.release)
                return lkg_tool_fail(tool, LKG_TOOL_USAGE,
                                     "--release: %s does not depend on a release of Kubernetes",
                                     LKG_CONFIG_KIND);
        lkg_config_json(&json);
        return print_schema(tool, &json);
}

int lkg_verb_schema(const struct lkg_tool *tool)
{
        const char *word = tool->n_words > 0 ? tool->words[0] : NULL;

        if (!word)
                return list_kinds();
        if (strcasecmp(word, LKG_CONFIG_KIND) == 0 || strcasecmp(word, "lkgfs") == 0)
                return print_configuration(tool);
        for (size_t i = 0; i < lkg_n_kinds; i++)
                if (kind_wanted(&lkg_kinds[i], word))
                        return print_kind(tool, &lkg_kinds[i]);
        return lkg_tool_fail(tool, LKG_TOOL_USAGE,
                             "there is no schema for kind \"%.60s\"; `lkgfs schema` lists them", word);
}
