/* SPDX-License-Identifier: Apache-2.0 */
#include "rules.h"
#include "values/values.h"

#include <stdarg.h>

#include <lkg/limits.h>

#define SHOWN_MAX (LKG_SHOWN_MAX + 16) /* with ` (default)` */
#define TEXT_MAX  2048

static const char flag_layer[] = "flag ";

/* ---- reading ---- */

void lkg_rule_begin(const struct lkg_rules *rules)
{
        if (rules->doubt)
                *rules->doubt = false;
}

static bool is_unread(const struct lkg_rules *rules, const char *path, enum lkg_unread_extent extent)
{
        return lkg_object_unread(rules->object, rules->unread, path, extent);
}

const struct lkg_value *lkg_rule_get(const struct lkg_rules *rules, const char *path)
{
        if (is_unread(rules, path, LKG_UNREAD_PARTS))
                *rules->doubt = true;
        return lkg_object_get(rules->object, path);
}

const struct lkg_value *lkg_rule_about(const struct lkg_rules *rules, const char *path)
{
        lkg_rule_begin(rules);
        return lkg_rule_get(rules, path);
}

const struct lkg_value *lkg_rule_each(const struct lkg_rules *rules, const char *path)
{
        lkg_rule_begin(rules);
        return lkg_object_get(rules->object, path);
}

bool lkg_rule_bool(const struct lkg_rules *rules, const char *path)
{
        (void)lkg_rule_get(rules, path);
        return lkg_object_bool(rules->object, path);
}

int64_t lkg_rule_int(const struct lkg_rules *rules, const char *path)
{
        return lkg_value_int(lkg_rule_get(rules, path));
}

int64_t lkg_rule_duration(const struct lkg_rules *rules, const char *path)
{
        return lkg_value_duration(lkg_rule_get(rules, path));
}

struct lkg_span lkg_rule_text(const struct lkg_rules *rules, const char *path)
{
        return lkg_text_of(lkg_rule_get(rules, path));
}

bool lkg_rule_is(const struct lkg_rules *rules, const char *path, const char *words)
{
        return lkg_rule_word(words, lkg_rule_text(rules, path));
}

static size_t size_of(const struct lkg_value *value)
{
        return !value ? 0 : lkg_value_size(value) + lkg_text_of(value).size;
}

size_t lkg_rule_size(const struct lkg_rules *rules, const char *path)
{
        return size_of(lkg_rule_get(rules, path));
}

const struct lkg_rules *lkg_rule_around(const struct lkg_rules *rules, const char *what)
{
        for (rules = rules->up;
             rules && strcmp(rules->node->go, what) != 0 && strcmp(rules->name, what) != 0;)
                rules = rules->up;
        return rules;
}

bool lkg_rule_gate(const struct lkg_rules *rules, const char *name)
{
        if (lkg_gate_unread(rules->object, rules->unread, name))
                *rules->doubt = true;
        return lkg_gates_enabled(rules->gates, name);
}

/* Is what a finding would be about, or depends on, a value that could not be read? */
static bool in_doubt(const struct lkg_rules *rules, const char *path)
{
        return (rules->doubt && *rules->doubt) || is_unread(rules, path, LKG_UNREAD_ITSELF);
}

/* ---- messages ---- */

static const char *layer_of(const struct lkg_value *value)
{
        const struct lkg_source *source = value ? lkg_value_source(value) : NULL;

        return source ? source->layer : "default";
}

static bool is_default(const struct lkg_value *value)
{
        return value && strcmp(layer_of(value), "default") == 0;
}

/* Fields below a secret one are not shown either. */
static bool is_secret(const struct lkg_rules *rules, const char *path)
{
        const struct lkg_schema_node *node = NULL;
        char name[LKG_RULE_PATH_MAX];

        for (size_t i = 0; path[i] && i + 1 < sizeof(name); i++) {
                name[i] = path[i];
                name[i + 1] = '\0';
                if (path[i + 1] != '\0' && path[i + 1] != '.' && path[i + 1] != '[')
                        continue;
                node = lkg_node_find(rules->node, name);
                if (!node)
                        return false;
                if (node->field && (node->field->flags & LKG_FIELD_SECRET))
                        return true;
        }
        return false;
}

/* Return a value for a message. */
static const char *show(const struct lkg_rules *rules, const char *path, const struct lkg_value *value,
                        char buf[static SHOWN_MAX])
{
        const char *note = is_default(value) ? " (default)" : "", *text;
        bool list = value && lkg_value_type(value) == LKG_LIST;

        if (!value)
                return "(unset)";
        if (is_secret(rules, path))
                return "a value that is not shown";
        text = lkg_value_shown(value, (char[LKG_SHOWN_MAX]){ 0 });
        if (text)
                (void)snprintf(buf, SHOWN_MAX, "%s%s", text, note);
        else
                (void)snprintf(buf, SHOWN_MAX, "(%zu %s)%s", lkg_value_size(value),
                               list ? "items" : "members", note);
        return buf;
}

const char *lkg_flag_note(const struct lkg_value *value, char buf[static LKG_FLAG_NOTE_MAX])
{
        const char *layer = layer_of(value);

        if (!value || strncmp(layer, flag_layer, strlen(flag_layer)) != 0)
                return "";
        (void)snprintf(buf, LKG_FLAG_NOTE_MAX, " (%s)", layer + strlen(flag_layer));
        return buf;
}

/*
 * A running component has accepted the values of its command line, and unknown facts about the host are not
 * the document's fault.
 */
static bool is_warning(const struct lkg_rules *rules, unsigned code, const struct lkg_value *value)
{
        if (code == LKG_F_HOST_STATE)
                return true;
        if (code == LKG_F_REFUSED_LATER || code == LKG_F_HOST_LACKS)
                return !rules->startup_refuses ||
                       strncmp(layer_of(value), flag_layer, strlen(flag_layer)) == 0;
        return code == LKG_F_HOST && !rules->host->stated;
}

/* What is missing within a document is reported at the struct that should have it. */
static void say_breach(const struct lkg_rules *rules, unsigned code, const struct lkg_value *value,
                       const char *text)
{
        bool warning = is_warning(rules, code, value);

        lkg_report_add(rules->report, warning ? LKG_WARNING : LKG_ERROR, code,
                       LKG_AT(value || !rules->at ? value : rules->object), "%s%s",
                       rules->at ? rules->at : "", text);
}

void lkg_breach(const struct lkg_rules *rules, unsigned code, const char *path,
                const struct lkg_value *value, const char *fmt, ...)
{
        char text[TEXT_MAX], rest[TEXT_MAX / 2], shown[SHOWN_MAX];
        va_list ap;

        if (in_doubt(rules, path))
                return;
        va_start(ap, fmt);
        (void)vsnprintf(rest, sizeof(rest), fmt, ap);
        va_end(ap);
        (void)snprintf(text, sizeof(text), "%s%s: %s %s", path, LKG_FLAG_NOTE(value),
                       show(rules, path, value, shown), rest);
        say_breach(rules, code, value, text);
}

void lkg_breach_missing(const struct lkg_rules *rules, const char *path, const struct lkg_value *at,
                        const char *want)
{
        char text[TEXT_MAX];

        if (in_doubt(rules, path))
                return;
        (void)snprintf(text, sizeof(text), "%s%s: missing or empty; want %s", path, LKG_FLAG_NOTE(at), want);
        say_breach(rules, LKG_F_REQUIRED, at, text);
}

void lkg_breach_gate(const struct lkg_rules *rules, unsigned code, const char *path,
                     const struct lkg_value *value, const char *gate, const char *want)
{
        const struct lkg_value *gates = lkg_object_get(rules->object, "featureGates");
        const struct lkg_value *off = gates ? lkg_map_get(gates, gate) : NULL;

        lkg_breach(rules, code, path, value, "needs the feature gate %s, which is off%s%s; %s", gate,
                   LKG_FLAG_NOTE(off), LKG_ASIDE(off), want);
}

/* The order of layers. Two drop-ins: see later_file(). */
static int rank(const struct lkg_value *value)
{
        static const char *const roles[] = { "default", "base",     "remote", "patch",
                                             "drop-in", "instance", "flag" };
        const char *layer = layer_of(value);

        if (!value)
                return -1;
        for (size_t i = 0; i < LKG_ARRAY_SIZE(roles); i++)
                if (strncmp(layer, roles[i], strlen(roles[i])) == 0)
                        return (int)i;
        return 0;
}

/* Files of one directory tree in walk order: a name ends before any byte that could follow. */
static int compare_files(const char *a, const char *b)
{
        while (*a && *a == *b) {
                a++;
                b++;
        }
        if (*a == *b)
                return 0;
        if (!*a || !*b)
                return *a ? 1 : -1;
        if (*a == '/' || *b == '/')
                return *a == '/' ? -1 : 1;
        return (unsigned char)*a < (unsigned char)*b ? -1 : 1;
}

static bool is_later(const struct lkg_value *a, const struct lkg_value *b)
{
        struct lkg_where at_a = lkg_where_of(a), at_b = lkg_where_of(b);
        int files;

        if (rank(a) != rank(b))
                return rank(a) > rank(b);
        files = compare_files(at_a.file ? at_a.file : "", at_b.file ? at_b.file : "");
        if (files != 0)
                return files > 0;
        return at_a.line != at_b.line ? at_a.line > at_b.line : at_a.column >= at_b.column;
}

void lkg_breach_between(const struct lkg_rules *rules, unsigned code, const struct lkg_operand *a,
                        const struct lkg_operand *b, const char *want)
{
        const struct lkg_operand *main = is_later(a->value, b->value) ? a : b, *other = main == a ? b : a;
        char text[TEXT_MAX], shown_main[SHOWN_MAX], shown_other[SHOWN_MAX];

        if (in_doubt(rules, a->path) || in_doubt(rules, b->path))
                return;
        (void)snprintf(text, sizeof(text), "%s%s: %s %s %s%s %s%s%s%s", main->path,
                       LKG_FLAG_NOTE(main->value), show(rules, main->path, main->value, shown_main),
                       main->says, other->path, LKG_FLAG_NOTE(other->value),
                       show(rules, other->path, other->value, shown_other), LKG_ASIDE(other->value),
                       want ? "; " : "", want ? want : "");
        say_breach(rules, code, main->value, text);
}

void lkg_breach_pair(const struct lkg_rules *rules, unsigned code, const char *a, const char *a_says,
                     const char *b, const char *b_says, const char *want)
{
        const struct lkg_operand left = { a, lkg_rule_get(rules, a), a_says },
                                 right = { b, lkg_rule_get(rules, b), b_says };

        lkg_breach_between(rules, code, &left, &right, want);
}

const char *lkg_rule_key_path(const char *path, struct lkg_span key, char buf[static LKG_RULE_PATH_MAX])
{
        static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./";
        bool simple = key.size > 0 && key.size <= LKG_QUOTE_MAX && strspn(key.data, plain) == key.size;

        (void)snprintf(buf, LKG_RULE_PATH_MAX, "%s.%s", path, simple ? key.data : LKG_QUOTE(key));
        return buf;
}

/* ---- rows ---- */

bool lkg_rule_word(const char *words, struct lkg_span text)
{
        for (const char *word = words; *word; word += strspn(word, ", ")) {
                size_t n = strcspn(word, ",");

                if (n == text.size && memcmp(word, text.data, n) == 0)
                        return true;
                word += n;
        }
        return false;
}

static bool is_empty(const struct lkg_value *value)
{
        return !value || (lkg_value_int(value) == 0 && lkg_text_of(value).size == 0 &&
                          !lkg_value_bool(value) && lkg_value_size(value) == 0);
}

static bool is_unset(const struct lkg_value_rule *row, const struct lkg_value *value)
{
        return row->flags & LKG_RULE_NIL ? !value : is_empty(value);
}

const char *lkg_rule_item_path(const char *list, size_t i, const char *member,
                               char buf[static LKG_RULE_PATH_MAX])
{
        (void)snprintf(buf, LKG_RULE_PATH_MAX, "%s[%zu]%s%s", list, i, member ? "." : "",
                       member ? member : "");
        return buf;
}

static void parse_value(const struct lkg_rules *rules, unsigned code, const char *path,
                        const struct lkg_value *value,
                        int (*parse)(const char *text, size_t size, char *reason))
{
        struct lkg_span text = lkg_text_of(value);
        char reason[LKG_REFUSAL_MAX] = "";

        if (parse(text.data, text.size, reason) < 0)
                lkg_breach(rules, code, path, value, "is not right: %s", lkg_reason(text, reason));
}

void lkg_rule_parse_item(const struct lkg_rules *rules, unsigned code, const char *list, size_t i,
                         const char *member, const struct lkg_value *value,
                         int (*parse)(const char *text, size_t size, char *reason))
{
        struct lkg_span text = lkg_text_of(value);
        char path[LKG_RULE_PATH_MAX];

        if (parse(text.data, text.size, NULL) < 0)
                parse_value(rules, code, lkg_rule_item_path(list, i, member, path), value, parse);
}

static bool has_word(const struct lkg_value *value, const char *words)
{
        bool found = false;

        if (value && lkg_value_type(value) == LKG_BOOL)
                return lkg_rule_word(words, is_empty(value) ? lkg_span("false", 5) : lkg_span("true", 4));
        for (struct lkg_member m = { 0 }; lkg_value_next(value, &m);)
                found |= lkg_rule_word(words, lkg_text_of(m.value));
        return found || lkg_rule_word(words, lkg_text_of(value));
}

static bool is_met(const struct lkg_value *value, const char *is)
{
        bool negated = is && *is == '!',
             met = value && (lkg_value_type(value) == LKG_MAP || !is_empty(value));

        if (is && is[negated])
                met = has_word(value, is + negated);
        return met != negated;
}

static bool concerns(const struct lkg_rules *rules, const struct lkg_value_rule *row)
{
        unsigned release = rules->release;

        if (row->since > release || (row->until && row->until < release))
                return false;
        if (row->gate && lkg_rule_gate(rules, row->gate) == !!(row->flags & LKG_RULE_GATE_OFF))
                return false;
        if (row->around && !(rules = lkg_rule_around(rules, row->around)))
                return false;
        return !row->when || is_met(lkg_rule_get(rules, row->when), row->is);
}

/* Report the violated rule of a row. @path: of @value, which may be an item; @reason: of a parser, else "" */
static void report_row(const struct lkg_rules *rules, const struct lkg_value_rule *row, const char *path,
                       const struct lkg_value *value, const char *reason)
{
        static const struct {
                unsigned code;
                const char *says;
        } kinds[] = {
                [LKG_RULE_NUMBER] = { LKG_F_OUT_OF_RANGE, "is out of range; " },
                [LKG_RULE_DURATION] = { LKG_F_OUT_OF_RANGE, "is out of range; " },
                [LKG_RULE_COUNT] = { LKG_F_OUT_OF_RANGE, "" },
                [LKG_RULE_WORD] = { LKG_F_NOT_ONE_OF, "is not known; want one of " },
                [LKG_RULE_MATCH] = { LKG_F_BAD_FORMAT, "is not right: " },
                [LKG_RULE_NOT] = { LKG_F_CONTRADICTION, "" },
                [LKG_RULE_SET] = { LKG_F_REQUIRED, "is empty and must not be; " },
                [LKG_RULE_UNSET] = { LKG_F_CONTRADICTION, "is not allowed; " },
                [LKG_RULE_PARSE] = { LKG_F_BAD_FORMAT, "is not right: " },
                [LKG_RULE_ENTRY] = { LKG_F_REFUSED_LATER, "is refused when the component starts: " },
        };
        bool word = row->kind == LKG_RULE_WORD, alone = row->kind == LKG_RULE_UNSET && row->when;
        unsigned code = row->flags & LKG_RULE_LATER    ? LKG_F_REFUSED_LATER
                        : row->flags & LKG_RULE_STATIC ? LKG_F_STATIC_POD
                                                       : kinds[row->kind].code;

        if (row->gate && row->flags & LKG_RULE_GATE_OFF && !*reason && !alone)
                lkg_breach_gate(rules, row->flags & LKG_RULE_LATER ? code : LKG_F_NEEDS_GATE, path, value,
                                row->gate, row->want);
        else
                lkg_breach(rules, code, path, value, "%s%s%s",
                           alone ? "cannot go with " : kinds[row->kind].says,
                           *reason ? lkg_reason(lkg_text_of(value), reason)
                           : word  ? row->words
                                   : row->want,
                           alone                                    ? "; remove one of them"
                           : word && row->flags & LKG_RULE_EMPTY_OK ? ", or nothing"
                                                                    : "");
}

static void apply_one_of(const struct lkg_rules *rules, const struct lkg_value_rule *row)
{
        LKG_CLEANUP(lkg_freep) char *names = lkg_copy(row->words);
        char *rest = NULL, *first = strtok_r(names, ", ", &rest);
        size_t n = 0;

        for (char *name = first; name; name = strtok_r(NULL, ", ", &rest))
                if (lkg_rule_get(rules, name) && n++ > 0)
                        lkg_breach_at(rules, LKG_F_CONTRADICTION, name, "is one too many; keep one of %s",
                                      row->words);
        if (n == 0 && !(row->flags & LKG_RULE_EMPTY_OK))
                lkg_breach(rules, LKG_F_REQUIRED, first, NULL,
                           "is missing, and so are others; want one of %s", row->words);
}

void lkg_rule_once(const struct lkg_rules *rules, const struct lkg_rules *around, struct lkg_span key,
                   const char *path, const struct lkg_value *value)
{
        const struct lkg_value *earlier = lkg_map_find(around->seen, key);

        if (earlier)
                lkg_breach(rules, LKG_F_DUPLICATE, path, value, "stands there twice%s; change or remove one",
                           LKG_ASIDE(earlier));
        else
                (void)lkg_map_set(around->seen, key.data, key.size,
                                  lkg_value_ref((struct lkg_value *)value));
}

static void apply_once(const struct lkg_rules *rules, const struct lkg_value_rule *row,
                       const struct lkg_value *value)
{
        LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf key = LKG_BUF_INIT;
        struct lkg_span text = lkg_text_of(value);

        if (text.size == 0)
                return;
        lkg_buf_printf(&key, "%s %s ", rules->node->go,
                       row->words ? lkg_rule_text(rules, row->words).data : "");
        lkg_buf_append(&key, text.data, text.size);
        lkg_rule_once(rules, lkg_rule_around(rules, row->around), lkg_span(lkg_buf_text(&key), key.size),
                      row->path, value);
}

static bool is_within(const struct lkg_value_rule *row, int64_t n)
{
        return (n >= row->min && n <= row->max) || (n == 0 && (row->flags & LKG_RULE_ZERO_OK));
}

static bool is_word(const struct lkg_value_rule *row, const struct lkg_value *value)
{
        struct lkg_span text = lkg_text_of(value);

        if (value && lkg_value_type(value) == LKG_NUMBER)
                text.data = lkg_value_text(value, &text.size);
        return text.size == 0 ? !!(row->flags & LKG_RULE_EMPTY_OK) : lkg_rule_word(row->words, text);
}

/* An absent field counts as zero, unless the release does not have it or it can be nil. */
static bool concerns_absent(const struct lkg_rules *rules, const struct lkg_value_rule *row)
{
        const struct lkg_schema_node *node = lkg_node_find(rules->node, row->path);

        return node && (!node->pointer || row->kind == LKG_RULE_SET);
}

/* @m: what stands at the path, or one of its items; @reason: gets that of a parser */
static bool holds(const struct lkg_value_rule *row, const struct lkg_member *m, char *reason)
{
        struct lkg_span text = lkg_text_of(m->value);

        switch (row->kind) {
        case LKG_RULE_NUMBER:
                return text.size > 0 || is_within(row, lkg_value_int(m->value));
        case LKG_RULE_DURATION:
                return is_within(row, lkg_value_duration(m->value));
        case LKG_RULE_COUNT:
                return is_within(row, (int64_t)size_of(m->value));
        case LKG_RULE_WORD:
                return is_word(row, m->value);
        case LKG_RULE_MATCH:
                return lkg_text_matches(row->words, text);
        case LKG_RULE_NOT:
                return !lkg_rule_word(row->words, text);
        case LKG_RULE_SET:
                return !is_unset(row, m->value);
        case LKG_RULE_UNSET:
                return is_unset(row, m->value);
        case LKG_RULE_PARSE:
                return (m->value && lkg_value_type(m->value) == LKG_NUMBER) ||
                       row->parse(text.data, text.size, reason) == 0;
        case LKG_RULE_ENTRY:
                return row->entry               ? row->entry(m->key, text, reason) == 0
                       : is_word(row, m->value) ? true
                                                : lkg_refuse(reason, "%s", row->want) == 0;
        case LKG_RULE_ONE_OF:
        case LKG_RULE_ONCE:
        case LKG_RULE_CHECK:
                break;
        }
        return true;
}

static void judge_value(const struct lkg_rules *rules, const struct lkg_value_rule *row,
                        const struct lkg_value *around, const struct lkg_member *m)
{
        char reason[LKG_REFUSAL_MAX] = "";

        if (!holds(row, m, reason))
                report_row(rules, row,
                           m->key.data          ? LKG_KEY_PATH(row->path, m->key)
                           : m->value == around ? row->path
                                                : LKG_ITEM_PATH(row->path, m->i, NULL),
                           m->value, reason);
}

static void apply_row(const struct lkg_rules *rules, const struct lkg_value_rule *row)
{
        bool parsed =
                row->kind == LKG_RULE_PARSE || row->kind == LKG_RULE_ENTRY || row->kind == LKG_RULE_MATCH;
        bool by_item = parsed || row->kind == LKG_RULE_NUMBER || row->kind == LKG_RULE_NOT;
        const struct lkg_value *value =
                parsed ? lkg_object_get(rules->object, row->path) : lkg_rule_get(rules, row->path);
        enum lkg_type type = value ? lkg_value_type(value) : LKG_NULL;

        if (row->kind == LKG_RULE_ONE_OF)
                apply_one_of(rules, row);
        else if (row->kind == LKG_RULE_CHECK)
                row->check(rules, row->path);
        else if (row->kind == LKG_RULE_ONCE)
                apply_once(rules, row, value);
        else if (by_item && (type == LKG_LIST || type == LKG_MAP))
                for (struct lkg_member m = { 0 }; lkg_value_next(value, &m);)
                        judge_value(rules, row, value, &m);
        else if ((value || (row->kind != LKG_RULE_ENTRY && concerns_absent(rules, row))) &&
                 !(parsed && row->flags & LKG_RULE_EMPTY_OK && is_empty(value)))
                judge_value(rules, row, value, &(struct lkg_member){ .value = (struct lkg_value *)value });
}

void lkg_rules_apply(const struct lkg_rules *rules, const struct lkg_value_rule *rows, size_t n_rows)
{
        for (size_t i = 0; i < n_rows; i++) {
                lkg_rule_begin(rules);
                if (concerns(rules, &rows[i]))
                        apply_row(rules, &rows[i]);
        }
}

/* ---- of both kinds: component-base, ValidateShowHiddenMetricsVersionForKubeletBackwardCompatOnly ---- */

void lkg_rule_hidden_metrics(const struct lkg_rules *rules)
{
        static const char path[] = "showHiddenMetricsForVersion";
        const struct lkg_value *value = lkg_rule_about(rules, path);
        const char *want = LKG_RELEASE_TEXT(rules->release - 1);

        if (lkg_text_of(value).size > 0 && !lkg_span_is(lkg_text_of(value), want))
                lkg_breach(rules, LKG_F_NOT_ONE_OF, path, value,
                           "is not right: only the minor version before the component's is allowed; want %s "
                           "or nothing",
                           want);
}
