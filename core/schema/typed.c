/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Decoding follows Go's encoding/json: null is "no value", a name that occurs twice (in two cases) is decoded
 * into the same field twice. Every misfit is reported, not only the first.
 *
 * Recursion is bounded by the depth of the type tree, not by the input.
 */
#include "typed.h"

#include <inttypes.h>
#include <stdarg.h>
#include <time.h>

#include <lkg/text.h>
#include <lkg/tree.h>

#include "findings-codes.h"
#include "values/values.h"

/* The current position, for messages: `registerWithTaints[0].key`. */
struct step {
        const struct step *up;
        const char *name; /* NULL = an index */
        size_t size, index;
};

struct decode {
        unsigned flags;
        struct lkg_report *report;
        struct lkg_value *unread; /* path -> value; NULL = not wanted */
        size_t n_misfits;
};

/* Is it below a field whose members are credentials? */
static bool is_below_secret(const struct step *step)
{
        for (const struct step *up = step->up; up; up = up->up)
                if (up->name && lkg_holds_secret_name(up->name, up->size))
                        return true;
        return false;
}

static void format_path(const struct step *step, struct lkg_buf *buf)
{
        if (!step)
                return;
        format_path(step->up, buf);
        if (!step->name) {
                lkg_buf_printf(buf, "[%zu]", step->index);
                return;
        }
        if (buf->size > 0)
                lkg_buf_putc(buf, '.');
        (void)lkg_mask_name(step->name, step->size, is_below_secret(step), buf);
}

static const char *shown(const struct lkg_schema_node *node, const struct lkg_value *value,
                         char buf[static 5 * 64 + 8])
{
        const char *text;
        size_t size;

        if (node->field->flags & LKG_FIELD_SECRET)
                return "<masked>";
        switch (lkg_value_type(value)) {
        case LKG_NULL:
                return "null";
        case LKG_BOOL:
                return lkg_value_bool(value) ? "true" : "false";
        case LKG_NUMBER:
        case LKG_STRING:
                text = lkg_value_text(value, &size);
                if (lkg_value_type(value) == LKG_STRING)
                        return lkg_quote(text, size, buf);
                (void)snprintf(buf, 5 * 64, "%.*s", (int)(size < 64 ? size : 64), text);
                return buf;
        case LKG_LIST:
                return "a list";
        case LKG_MAP:
                return "a map";
        case _LKG_TYPE_MAX:
                break;
        }
        return "";
}

/* Every rule asks for all of them: of a thousand wrong items, the list is enough. */
#define UNREAD_MAX 64

static void note_unread(struct decode *d, const char *path, const struct lkg_value *value)
{
        size_t size = d->n_misfits < UNREAD_MAX ? strlen(path) : strcspn(path, ".[");

        if (d->unread)
                (void)lkg_map_set(d->unread, path, size, lkg_value_ref((struct lkg_value *)value));
}

/* Return: NULL. */
LKG_PRINTF(6, 7)
static struct lkg_value *misfit(struct decode *d, const struct lkg_schema_node *node,
                                const struct lkg_value *value, const struct step *step, unsigned code,
                                const char *fmt, ...)
{
        LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf path = LKG_BUF_INIT;
        struct lkg_where where = lkg_where_of(value);
        char quoted[5 * 64 + 8], why[256];
        va_list ap;

        va_start(ap, fmt);
        (void)vsnprintf(why, sizeof(why), fmt, ap);
        va_end(ap);
        format_path(step, &path);
        lkg_report_add(d->report, LKG_ERROR, code, &where, "%s: %s %s",
                       path.size ? lkg_buf_text(&path) : "the document", shown(node, value, quoted), why);
        d->n_misfits++;
        note_unread(d, lkg_buf_text(&path), value);
        return NULL;
}

static const char *wanted(const struct lkg_schema_node *node)
{
        static const char *const words[] = {
                [LKG_CLASS_BOOL] = "true or false",
                [LKG_CLASS_STRING] = "a string",
                [LKG_CLASS_INT] = "an integer",
                [LKG_CLASS_FLOAT] = "a number",
                [LKG_CLASS_DURATION] = "a duration such as \"1m30s\"",
                [LKG_CLASS_FLUSH] = "a duration such as \"5s\" (or an integer of nanoseconds)",
                [LKG_CLASS_QUANTITY] = "a quantity such as \"512Mi\"",
                [LKG_CLASS_TIME] = "a time such as \"2026-01-31T12:00:00Z\"",
                [LKG_CLASS_STRUCT] = "a map of fields",
                [LKG_CLASS_LIST] = "a list",
                [LKG_CLASS_MAP] = "a map",
        };

        return words[node->class];
}

/* Quotes are the mistake only if the same text without them would be valid. */
static const char *string_hint(const struct lkg_schema_node *node, const struct lkg_value *value)
{
        size_t size, n = 0;
        const char *text = lkg_value_text(value, &size);

        if (node->class == LKG_CLASS_BOOL)
                return strcmp(text, "true") == 0 || strcmp(text, "false") == 0 ? "; write it without quotes"
                                                                               : "";
        if (*text == '-')
                n++;
        n += strspn(text + n, node->class == LKG_CLASS_FLOAT ? "0123456789.eE" : "0123456789");
        if (n == 0 || (n == 1 && *text == '-'))
                return "";
        return n == size ? "; write it without quotes" : "; write the number alone";
}

/* A hint for the most common mistakes. */
static const char *hint(const struct lkg_schema_node *node, const struct lkg_value *value)
{
        enum lkg_type type = lkg_value_type(value);

        if (node->class == LKG_CLASS_STRING && (type == LKG_BOOL || type == LKG_NUMBER))
                return "; put it in quotes";
        if (node->class == LKG_CLASS_DURATION && type == LKG_NUMBER)
                return "; write the unit and quotes, e.g. \"30s\"";
        if (type == LKG_STRING && (node->class == LKG_CLASS_INT || node->class == LKG_CLASS_FLOAT ||
                                   node->class == LKG_CLASS_BOOL))
                return string_hint(node, value);
        if (node->class == LKG_CLASS_LIST && (type == LKG_STRING || type == LKG_NUMBER))
                return "; write it as a list, e.g. [a, b]";
        if (node->class == LKG_CLASS_MAP && (type == LKG_STRING || type == LKG_LIST))
                return "; write it as a map, e.g. {name: value}";
        return "";
}

static struct lkg_value *wrong_type(struct decode *d, const struct lkg_schema_node *node,
                                    const struct lkg_value *value, const struct step *step)
{
        enum lkg_type type = lkg_value_type(value);

        if (type == LKG_LIST || type == LKG_MAP) /* which is shown as just that */
                return misfit(d, node, value, step, LKG_F_WRONG_TYPE, "where %s is wanted%s", wanted(node),
                              hint(node, value));
        return misfit(d, node, value, step, LKG_F_WRONG_TYPE, "is a %s where %s is wanted%s",
                      lkg_type_name(type), wanted(node), hint(node, value));
}

static struct lkg_value *wrong_value(struct decode *d, const struct lkg_schema_node *node,
                                     const struct lkg_value *value, const struct step *step, const char *why)
{
        enum lkg_type type = lkg_value_type(value);
        struct lkg_span text = { "", 0 };

        if (type == LKG_STRING || type == LKG_NUMBER)
                text.data = lkg_value_text(value, &text.size);
        return misfit(d, node, value, step, LKG_F_NOT_FITTING, "is not %s: %s", wanted(node),
                      lkg_reason(text, why));
}

/* Make a value with the same position and history, and another text, unless its text is already canonical. */
struct lkg_value *lkg_typed_canonical(const struct lkg_value *value, enum lkg_type type, const char *text)
{
        LKG_CLEANUP(lkg_value_unrefp) struct lkg_value *made = NULL;
        struct lkg_source *source = lkg_value_source_mut(value);
        unsigned line = lkg_value_line(value), column = lkg_value_column(value);
        size_t size, n = strlen(text);
        const char *was = lkg_value_text(value, &size);

        if (lkg_value_type(value) == type && size == n && memcmp(was, text, n) == 0)
                return lkg_value_ref((struct lkg_value *)value);
        made = type == LKG_STRING ? lkg_value_new_string(text, n, source, line, column)
                                  : lkg_value_new_number(text, source, line, column);
        return lkg_value_shadowed(value) ? lkg_value_over(made, lkg_value_shadowed(value)) : LKG_STEAL(made);
}

/* ---- scalars: the value in normal form, one reference; NULL: it is zero, or does not fit ---- */

static bool keeps_zero(const struct lkg_schema_node *node, bool item)
{
        return node->pointer || item;
}

static struct lkg_value *decode_bool(struct decode *d, const struct lkg_schema_node *node,
                                     const struct lkg_value *value, const struct step *step, bool item)
{
        if (lkg_value_type(value) != LKG_BOOL)
                return wrong_type(d, node, value, step);
        return lkg_value_bool(value) || keeps_zero(node, item) ? lkg_value_ref((struct lkg_value *)value)
                                                               : NULL;
}

static struct lkg_value *decode_string(struct decode *d, const struct lkg_schema_node *node,
                                       const struct lkg_value *value, const struct step *step, bool item)
{
        size_t size;

        if (lkg_value_type(value) != LKG_STRING)
                return wrong_type(d, node, value, step);
        (void)lkg_value_text(value, &size);
        return size > 0 || keeps_zero(node, item) ? lkg_value_ref((struct lkg_value *)value) : NULL;
}

/* Is the text an integer in canonical form: no sign but '-', no leading zero? */
static bool is_plain_int(const char *text)
{
        if (*text == '0')
                return text[1] == '\0';
        return *text != '+' && !(text[0] == '-' && text[1] == '0');
}

/* strconv.ParseInt on the number's text: 50.0 and 5e1 are not integers here. Return: 0, -EINVAL, -ERANGE. */
static int integer(const char *number, intmax_t *ret)
{
        char *end;

        errno = 0;
        *ret = strtoimax(number, &end, 10);
        return *end != '\0' ? -EINVAL : errno == ERANGE ? -ERANGE : 0;
}

static struct lkg_value *decoded_integer(const struct lkg_value *value, intmax_t n)
{
        char text[24];

        if (is_plain_int(lkg_value_text(value, NULL)))
                return lkg_value_ref((struct lkg_value *)value);
        (void)snprintf(text, sizeof(text), "%jd", n);
        return lkg_typed_canonical(value, LKG_NUMBER, text);
}

static struct lkg_value *decode_int(struct decode *d, const struct lkg_schema_node *node,
                                    const struct lkg_value *value, const struct step *step, bool item)
{
        const char *number = lkg_value_text(value, NULL);
        intmax_t n;
        int r;

        if (lkg_value_type(value) != LKG_NUMBER)
                return wrong_type(d, node, value, step);
        r = integer(number, &n);
        if (r == -EINVAL)
                return misfit(d, node, value, step, LKG_F_NOT_FITTING,
                              "is not an integer; write it without fraction and "
                              "exponent");
        if (r < 0 || n < node->min || n > node->max || (node->min == 0 && *number == '-'))
                return misfit(d, node, value, step, LKG_F_NOT_FITTING,
                              "does not fit %s; it must be from %" PRId64 " to %" PRId64, node->go,
                              node->min, node->max);
        return n != 0 || keeps_zero(node, item) ? decoded_integer(value, n) : NULL;
}

static struct lkg_value *decode_float(struct decode *d, const struct lkg_schema_node *node,
                                      const struct lkg_value *value, const struct step *step, bool item)
{
        char text[LKG_NUMBER_TEXT_MAX];
        const char *number = lkg_value_text(value, NULL);
        double n;

        if (lkg_value_type(value) != LKG_NUMBER)
                return wrong_type(d, node, value, step);
        n = node->single ? (double)strtof(number, NULL) : strtod(number, NULL);
        if (n > __DBL_MAX__ || n < -__DBL_MAX__ || (node->single && (n > __FLT_MAX__ || n < -__FLT_MAX__)))
                return misfit(d, node, value, step, LKG_F_NOT_FITTING, "does not fit %s", node->go);
        if (n == 0 && !keeps_zero(node, item))
                return NULL;
        if (node->single) { /* the shortest digits that give this float32 back */
                char digits[64];

                for (int precision = 1; precision < 10; precision++) {
                        (void)snprintf(digits, sizeof(digits), "%.*e", precision - 1, n);
                        if ((double)strtof(digits, NULL) == n)
                                break;
                }
                n = strtod(digits, NULL);
        }
        lkg_float_json(n, text);
        return lkg_typed_canonical(value, LKG_NUMBER, text);
}

static struct lkg_value *decode_duration(struct decode *d, const struct lkg_schema_node *node,
                                         const struct lkg_value *value, const struct step *step, bool item)
{
        char text[LKG_DURATION_MAX], why[LKG_REFUSAL_MAX];
        size_t size;
        const char *given = lkg_value_text(value, &size);
        int64_t ns;

        if (lkg_value_type(value) != LKG_STRING)
                return wrong_type(d, node, value, step);
        if (lkg_duration_parse(given, size, &ns, why) < 0)
                return wrong_value(d, node, value, step, why);
        if (ns == 0 && !keeps_zero(node, item))
                return NULL;
        (void)lkg_duration_format(ns, text);
        return lkg_typed_canonical(value, LKG_STRING, text);
}

static struct lkg_value *decode_flush(struct decode *d, const struct lkg_schema_node *node,
                                      const struct lkg_value *value, const struct step *step)
{
        intmax_t n;

        if (lkg_value_type(value) != LKG_NUMBER)
                return decode_duration(d, node, value, step, false);
        if (integer(lkg_value_text(value, NULL), &n) < 0)
                return wrong_value(d, node, value, step, "an integer of nanoseconds must fit 64 bits");
        return n == 0 ? NULL : decoded_integer(value, n);
}

/*
 * A quantity in a map is kept in printed form. A quantity in a field keeps its text until it is printed,
 * because printing changes some values (`1000E` prints as `1`), and rules apply to the value that was read.
 */
static struct lkg_value *decode_quantity(struct decode *d, const struct lkg_schema_node *node,
                                         const struct lkg_value *value, const struct step *step, bool item)
{
        LKG_CLEANUP(lkg_quantity_deinit) struct lkg_quantity quantity = { 0 };
        LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf text = LKG_BUF_INIT;
        char why[LKG_REFUSAL_MAX];
        struct lkg_span given;

        if (lkg_value_type(value) != LKG_STRING && lkg_value_type(value) != LKG_NUMBER)
                return wrong_type(d, node, value, step);
        given.data = lkg_value_text(value, &given.size);
        given = lkg_quantity_trim(given.data, given.size);
        if (lkg_quantity_parse(given.data, given.size, &quantity, why) < 0)
                return wrong_value(d, node, value, step, why);
        if (item && d->flags & LKG_TYPED_ROUND)
                lkg_quantity_round(&quantity, -3);
        if (item)
                lkg_quantity_text(&quantity, given, &text);
        else
                lkg_buf_append(&text, given.data, given.size);
        return lkg_typed_canonical(value, LKG_STRING, lkg_buf_text(&text));
}

/* metav1.Time: RFC 3339; the kubelet refuses any taint that has one, so only its form matters. */
static struct lkg_value *decode_time(struct decode *d, const struct lkg_schema_node *node,
                                     const struct lkg_value *value, const struct step *step)
{
        struct tm tm = { 0 };
        const char *rest;

        if (lkg_value_type(value) != LKG_STRING)
                return wrong_type(d, node, value, step);
        rest = strptime(lkg_value_text(value, NULL), "%Y-%m-%dT%H:%M:%S", &tm);
        if (!rest || (*rest != 'Z' && *rest != '+' && *rest != '-' && *rest != '.'))
                return wrong_value(d, node, value, step, "RFC 3339 wants date, T, time and zone");
        return lkg_value_ref((struct lkg_value *)value);
}

/* ---- collections ---- */

static struct lkg_value *decode_value(struct decode *d, const struct lkg_schema_node *node,
                                      const struct lkg_value *value, const struct lkg_value *before,
                                      bool item, const struct step *step);

struct lkg_value *lkg_typed_zero(const struct lkg_schema_node *node, const struct lkg_value *at)
{
        struct lkg_source *source = at ? lkg_value_source_mut(at) : NULL;
        unsigned line = at ? lkg_value_line(at) : 0, column = at ? lkg_value_column(at) : 0;

        switch (node->class) {
        case LKG_CLASS_BOOL:
                return lkg_value_new_bool(false, source, line, column);
        case LKG_CLASS_STRING:
                return lkg_value_new_string("", 0, source, line, column);
        case LKG_CLASS_INT:
        case LKG_CLASS_FLOAT:
        case LKG_CLASS_FLUSH:
                return lkg_value_new_number("0", source, line, column);
        case LKG_CLASS_DURATION:
                return lkg_value_new_string("0s", 2, source, line, column);
        case LKG_CLASS_QUANTITY:
                return lkg_value_new_string("0", 1, source, line, column);
        case LKG_CLASS_STRUCT:
                return lkg_value_new_map(source, line, column);
        case LKG_CLASS_TIME:
        case LKG_CLASS_LIST:
        case LKG_CLASS_MAP:
                break;
        }
        return lkg_value_new_null(source, line, column);
}

static bool is_nilable(const struct lkg_schema_node *node)
{
        return node->class == LKG_CLASS_LIST || node->class == LKG_CLASS_MAP;
}

/* @before: what an earlier spelling of the field set there; NULL = nothing. Go decodes into it. */
static struct lkg_value *decode_item(struct decode *d, const struct lkg_schema_node *node,
                                     const struct lkg_value *value, struct lkg_value *before,
                                     const struct step *step)
{
        struct lkg_value *made = decode_value(d, node, value, before, true, step);

        if (made)
                return made;
        return before && !is_nilable(node) ? lkg_value_ref(before) /* null leaves it unchanged */
                                           : lkg_typed_zero(node, value);
}

/*
 * Long lists of structs (taints) are decoded several times for each judgement. A list that decoding left
 * unchanged, without a finding, is stamped with the number of its type, and with one more bit if it is also
 * printed unchanged.
 */

bool lkg_typed_is_stamped(const struct lkg_schema_node *node, const struct lkg_value *list, uint16_t also)
{
        uint16_t want = (uint16_t)(node->number | also);

        return node->number != 0 && (lkg_list_stamp_get(list) & (LKG_NODE_NUMBER_MAX | also)) == want;
}

/* Would LKG_TYPED_ROUND make a difference for values of this type? */
static bool can_round(const struct lkg_schema_node *node)
{
        for (size_t m = 0; m < node->n_members; m++)
                if (can_round(node->members[m]))
                        return true;
        return node->item && (node->item->class == LKG_CLASS_QUANTITY || can_round(node->item));
}

/* A list or map that is being decoded. */
struct inside {
        struct decode *d;
        const struct lkg_schema_node *node; /* of its items; the struct itself */
        const struct lkg_value *before;     /* a list */
        struct step at;
};

static struct lkg_value *decode_next(const struct lkg_value *value, const char *key, size_t size,
                                     const struct lkg_value *member, void *userdata)
{
        struct inside *in = userdata;
        struct lkg_value *before = in->before ? lkg_list_get(in->before, in->at.index) : NULL, *made;

        (void)value;
        in->at.name = key;
        in->at.size = size;
        made = decode_item(in->d, in->node, member, before, &in->at);
        in->at.index++;
        return made;
}

static struct lkg_value *decode_list(struct decode *d, const struct lkg_schema_node *node,
                                     const struct lkg_value *value, const struct lkg_value *before,
                                     const struct step *step)
{
        struct inside in = { d, node->item, before, { .up = step } };
        size_t n_before = d->n_misfits;
        struct lkg_value *list;

        if (lkg_value_type(value) != LKG_LIST)
                return wrong_type(d, node, value, step);
        if (!before && lkg_typed_is_stamped(node, value, 0))
                return lkg_value_ref((struct lkg_value *)value);
        list = lkg_value_rewrite(value, decode_next, &in);
        /* A value that is normal with rounding is normal without it, but not the reverse. */
        if (!before && list == value && d->n_misfits == n_before &&
            (d->flags & LKG_TYPED_ROUND || !can_round(node)))
                lkg_list_stamp(value, node->number);
        return list;
}

static struct lkg_value *decode_map(struct decode *d, const struct lkg_schema_node *node,
                                    const struct lkg_value *value, const struct lkg_value *before,
                                    const struct step *step)
{
        struct inside in = { d, node->item, NULL, { .up = step } };
        struct lkg_value *map, *both;

        if (lkg_value_type(value) != LKG_MAP)
                return wrong_type(d, node, value, step);
        map = lkg_value_rewrite(value, decode_next, &in);
        if (!before || lkg_value_type(before) != LKG_MAP)
                return map;
        both = lkg_value_clone_shallow(before);
        for (size_t i = 0; i < lkg_value_size(map); i++) {
                const char *key;
                size_t size;
                struct lkg_value *item = lkg_map_at(map, i, &key, &size);

                (void)lkg_map_set(both, key, size, lkg_value_ref(item));
        }
        lkg_value_unref(map);
        return both;
}

/* A field of the document. NULL for its zero value; @before: the value set by an earlier spelling. */
static struct lkg_value *decode_member(struct decode *d, const struct lkg_schema_node *node,
                                       const struct lkg_value *value, const struct lkg_value *before,
                                       const struct step *step)
{
        bool nilable = node->pointer || is_nilable(node);

        /* null sets nil where that is possible; Duration's own decoder refuses it; elsewhere it has no effect */
        if (lkg_value_type(value) != LKG_NULL || (node->class == LKG_CLASS_DURATION && !nilable))
                return decode_value(d, node, value, before, false, step);
        /* these two have their own decoder, which treats it as no value */
        if (!before || nilable || node->class == LKG_CLASS_QUANTITY || node->class == LKG_CLASS_TIME)
                return NULL;
        return lkg_value_ref((struct lkg_value *)before);
}

/* Decode the field's value, after the earlier values with the same key. */
static struct lkg_value *decode_twice(struct decode *d, const struct lkg_schema_node *node,
                                      const struct lkg_value *value, const struct lkg_value *before,
                                      const struct step *step)
{
        const struct lkg_value *earlier = d->flags & LKG_TYPED_TWICE ? lkg_value_shadowed(value) : NULL;
        LKG_CLEANUP(lkg_value_unrefp) struct lkg_value *first = NULL;

        if (!earlier || lkg_value_source(earlier) != lkg_value_source(value))
                return decode_member(d, node, value, before, step);
        first = decode_twice(d, node, earlier, before, step);
        return decode_member(d, node, value, first, step);
}

static struct lkg_value *decode_exact(const struct lkg_value *value, const char *key, size_t size,
                                      const struct lkg_value *member, void *userdata)
{
        struct inside *in = userdata;
        const struct lkg_schema_node *field = lkg_node_member(in->node, key, size);

        (void)value;
        in->at.name = key;
        in->at.size = size;
        return field ? decode_twice(in->d, field, member, NULL, &in->at) : NULL;
}

/* Is one of the names that of a field in another case? */
static bool has_folded(const struct lkg_schema_node *node, const struct lkg_value *value)
{
        for (size_t i = 0; i < lkg_value_size(value); i++) {
                const struct lkg_schema_node *field;
                const char *key;
                size_t size;

                (void)lkg_map_at(value, i, &key, &size);
                field = lkg_node_member_folded(node, key, size);
                if (field && (field->name_size != size || memcmp(field->name, key, size) != 0))
                        return true;
        }
        return false;
}

/* A field may have a value already, of @before or under a name of another case: that is extended or replaced. */
static struct lkg_value *decode_folded(struct decode *d, const struct lkg_schema_node *node,
                                       const struct lkg_value *value, const struct lkg_value *before,
                                       const struct step *step)
{
        struct lkg_value *map = before ? lkg_value_clone_shallow(before)
                                       : lkg_value_new_map(lkg_value_source_mut(value),
                                                           lkg_value_line(value), lkg_value_column(value));

        for (size_t i = 0; i < lkg_value_size(value); i++) {
                struct step at = { .up = step };
                const struct lkg_value *member = lkg_map_at(value, i, &at.name, &at.size);
                const struct lkg_schema_node *field =
                        d->flags & LKG_TYPED_FOLD ? lkg_node_member_folded(node, at.name, at.size)
                                                  : lkg_node_member(node, at.name, at.size);
                struct lkg_value *made;

                if (!field)
                        continue;
                made = decode_twice(d, field, member, lkg_map_get(map, field->name), &at);
                if (made)
                        (void)lkg_map_set(map, field->name, field->name_size, made);
                else
                        (void)lkg_map_remove(map, field->name, field->name_size);
        }
        return map;
}

static struct lkg_value *decode_struct(struct decode *d, const struct lkg_schema_node *node,
                                       const struct lkg_value *value, const struct lkg_value *before,
                                       bool item, const struct step *step)
{
        struct inside in = { d, node, NULL, { .up = step } };
        struct lkg_value *map;

        if (lkg_value_type(value) != LKG_MAP)
                return wrong_type(d, node, value, step);
        map = before || (d->flags & LKG_TYPED_FOLD && has_folded(node, value))
                      ? decode_folded(d, node, value, before, step)
                      : lkg_value_rewrite(value, decode_exact, &in);
        return lkg_value_size(map) > 0 || keeps_zero(node, item) ? map : lkg_value_unref(map);
}

static struct lkg_value *decode_value(struct decode *d, const struct lkg_schema_node *node,
                                      const struct lkg_value *value, const struct lkg_value *before,
                                      bool item, const struct step *step)
{
        if (lkg_value_type(value) == LKG_NULL && item && node->class != LKG_CLASS_DURATION)
                return NULL;
        switch (node->class) {
        case LKG_CLASS_BOOL:
                return decode_bool(d, node, value, step, item);
        case LKG_CLASS_STRING:
                return decode_string(d, node, value, step, item);
        case LKG_CLASS_INT:
                return decode_int(d, node, value, step, item);
        case LKG_CLASS_FLOAT:
                return decode_float(d, node, value, step, item);
        case LKG_CLASS_DURATION:
                return decode_duration(d, node, value, step, item);
        case LKG_CLASS_FLUSH:
                return decode_flush(d, node, value, step);
        case LKG_CLASS_QUANTITY:
                return decode_quantity(d, node, value, step, item);
        case LKG_CLASS_TIME:
                return decode_time(d, node, value, step);
        case LKG_CLASS_LIST:
                return decode_list(d, node, value, before, step);
        case LKG_CLASS_MAP:
                return decode_map(d, node, value, before, step);
        case LKG_CLASS_STRUCT:
                return decode_struct(d, node, value, before, item, step);
        }
        return NULL;
}

struct lkg_value *lkg_typed_decode(const struct lkg_schema_node *root, const struct lkg_value *value,
                                   unsigned flags, struct lkg_report *report, struct lkg_value *unread)
{
        struct decode d = { .flags = flags, .report = report, .unread = unread };
        struct lkg_value *object = decode_value(&d, root, value, NULL, true, NULL);

        if (!object) /* the document is null */
                return lkg_value_new_map(lkg_value_source_mut(value), 0, 0);
        if (object != value)
                return object;
        lkg_value_unref(object);
        return lkg_value_clone_shallow(value);
}

int lkg_typed_scalar(const struct lkg_schema_node *node, const struct lkg_value *value, const char *path,
                     struct lkg_report *report, struct lkg_value **ret)
{
        struct decode d = { .report = report };
        struct step step = { .name = path, .size = strlen(path) };

        *ret = decode_value(&d, node, value, NULL, false, &step);
        return d.n_misfits > 0 ? -EBADMSG : 0;
}
