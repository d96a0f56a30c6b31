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

static int note_unread(struct decode *d, const char *path, const struct lkg_value *value)
{
        size_t size = d->n_misfits < UNREAD_MAX ? strlen(path) : strcspn(path, ".[");
        int r = d->unread ? lkg_map_set(d->unread, path, size, lkg_value_ref((struct lkg_value *)value)) : 0;

        return r < 0 ? r : 0;
}

static int misfit(struct decode *d, const struct lkg_schema_node *node, const struct lkg_value *value,
                  const struct step *step, unsigned code, const char *fmt, ...) LKG_PRINTF(6, 7);

static int misfit(struct decode *d, const struct lkg_schema_node *node, const struct lkg_value *value,
                  const struct step *step, unsigned code, const char *fmt, ...)
{
        LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf path = LKG_BUF_INIT;
        struct lkg_where where = lkg_where_of(value);
        char quoted[5 * 64 + 8], why[256];
        va_list ap;

        va_start(ap, fmt);
        (void)vsnprintf(why, sizeof(why), fmt, ap);
        va_end(ap);
        format_path(step, &path);
        if (lkg_buf_failed(&path))
                return -ENOMEM;
        lkg_report_add(d->report, LKG_ERROR, code, &where, "%s: %s %s",
                       path.data ? path.data : "the document", shown(node, value, quoted), why);
        d->n_misfits++;
        return note_unread(d, path.data ? path.data : "", value);
}

static const char *wanted(const struct lkg_schema_node *node)
{
        switch (node->class) {
        case LKG_CLASS_BOOL:
                return "true or false";
        case LKG_CLASS_STRING:
                return "a string";
        case LKG_CLASS_INT:
                return "an integer";
        case LKG_CLASS_FLOAT:
                return "a number";
        case LKG_CLASS_DURATION:
                return "a duration such as \"1m30s\"";
        case LKG_CLASS_FLUSH:
                return "a duration such as \"5s\" (or an integer of nanoseconds)";
        case LKG_CLASS_QUANTITY:
                return "a quantity such as \"512Mi\"";
        case LKG_CLASS_TIME:
                return "a time such as \"2026-01-31T12:00:00Z\"";
        case LKG_CLASS_STRUCT:
                return "a map of fields";
        case LKG_CLASS_LIST:
                return "a list";
        case LKG_CLASS_MAP:
                return "a map";
        }
        return "something else";
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

static int wrong_type(struct decode *d, const struct lkg_schema_node *node, const struct lkg_value *value,
                      const struct step *step)
{
        enum lkg_type type = lkg_value_type(value);

        if (type == LKG_LIST || type == LKG_MAP) /* which is shown as just that */
                return misfit(d, node, value, step, LKG_F_WRONG_TYPE, "where %s is wanted%s", wanted(node),
                              hint(node, value));
        return misfit(d, node, value, step, LKG_F_WRONG_TYPE, "is a %s where %s is wanted%s",
                      lkg_type_name(type), wanted(node), hint(node, value));
}

static int wrong_value(struct decode *d, const struct lkg_schema_node *node, const struct lkg_value *value,
                       const struct step *step, const char *why)
{
        enum lkg_type type = lkg_value_type(value);
        struct lkg_span text = { "", 0 };

        if (type == LKG_STRING || type == LKG_NUMBER)
                text.data = lkg_value_text(value, &text.size);
        return misfit(d, node, value, step, LKG_F_NOT_FITTING, "is not %s: %s", wanted(node),
                      lkg_reason(text, why));
}

/* Make a value with the same position and history, and another text. */
static int rewritten(const struct lkg_value *value, enum lkg_type type, const char *text, size_t size,
                     struct lkg_value **ret)
{
        const struct lkg_value *shadowed = lkg_value_shadowed(value);
        struct lkg_source *source = lkg_value_source_mut(value);
        LKG_CLEANUP(lkg_value_unrefp)
        struct lkg_value *made =
                type == LKG_STRING
                        ? lkg_value_new_string(text, size, source, lkg_value_line(value),
                                               lkg_value_column(value))
                        : lkg_value_new_number(text, source, lkg_value_line(value), lkg_value_column(value));

        if (!made)
                return -ENOMEM;
        *ret = shadowed ? lkg_value_over(made, shadowed) : LKG_STEAL(made);
        return *ret ? 0 : -ENOMEM;
}

/* Return @value itself if its text is already canonical. */
int lkg_typed_canonical(const struct lkg_value *value, enum lkg_type type, const char *text,
                        struct lkg_value **ret)
{
        size_t size, n = strlen(text);
        const char *was;

        if (lkg_value_type(value) == type) {
                was = lkg_value_text(value, &size);
                if (size == n && memcmp(was, text, n) == 0) {
                        *ret = lkg_value_ref((struct lkg_value *)value);
                        return 0;
                }
        }
        return rewritten(value, type, text, n, ret);
}

/* ---- scalars ---- */

static bool keeps_zero(const struct lkg_schema_node *node, bool item)
{
        return node->pointer || item;
}

static int decode_bool(struct decode *d, const struct lkg_schema_node *node, const struct lkg_value *value,
                       const struct step *step, bool item, struct lkg_value **ret)
{
        if (lkg_value_type(value) != LKG_BOOL)
                return wrong_type(d, node, value, step);
        if (lkg_value_bool(value) || keeps_zero(node, item))
                *ret = lkg_value_ref((struct lkg_value *)value);
        return 0;
}

static int decode_string(struct decode *d, const struct lkg_schema_node *node, const struct lkg_value *value,
                         const struct step *step, bool item, struct lkg_value **ret)
{
        size_t size;

        if (lkg_value_type(value) != LKG_STRING)
                return wrong_type(d, node, value, step);
        (void)lkg_value_text(value, &size);
        if (size > 0 || keeps_zero(node, item))
                *ret = lkg_value_ref((struct lkg_value *)value);
        return 0;
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

static int decoded_integer(const struct lkg_value *value, intmax_t n, struct lkg_value **ret)
{
        char text[24];

        if (is_plain_int(lkg_value_text(value, NULL))) {
                *ret = lkg_value_ref((struct lkg_value *)value);
                return 0;
        }
        (void)snprintf(text, sizeof(text), "%jd", n);
        return lkg_typed_canonical(value, LKG_NUMBER, text, ret);
}

static int decode_int(struct decode *d, const struct lkg_schema_node *node, const struct lkg_value *value,
                      const struct step *step, bool item, struct lkg_value **ret)
{
        const char *number;
        size_t size;
        intmax_t n;
        int r;

        if (lkg_value_type(value) != LKG_NUMBER)
                return wrong_type(d, node, value, step);
        number = lkg_value_text(value, &size);
        r = integer(number, &n);
        if (r == -EINVAL)
                return misfit(d, node, value, step, LKG_F_NOT_FITTING,
                              "is not an integer; write it without fraction and "
                              "exponent");
        if (r < 0 || n < node->min || n > node->max || (node->min == 0 && *number == '-'))
                return misfit(d, node, value, step, LKG_F_NOT_FITTING,
                              "does not fit %s; it must be from %" PRId64 " to %" PRId64, node->go,
                              node->min, node->max);
        if (n == 0 && !keeps_zero(node, item))
                return 0;
        return decoded_integer(value, n, ret);
}

static int decode_float(struct decode *d, const struct lkg_schema_node *node, const struct lkg_value *value,
                        const struct step *step, bool item, struct lkg_value **ret)
{
        char text[LKG_NUMBER_TEXT_MAX];
        const char *number;
        size_t size;
        double n;

        if (lkg_value_type(value) != LKG_NUMBER)
                return wrong_type(d, node, value, step);
        number = lkg_value_text(value, &size);
        errno = 0;
        n = node->single ? (double)strtof(number, NULL) : strtod(number, NULL);
        if (n > __DBL_MAX__ || n < -__DBL_MAX__ || (node->single && (n > __FLT_MAX__ || n < -__FLT_MAX__)))
                return misfit(d, node, value, step, LKG_F_NOT_FITTING, "does not fit %s", node->go);
        if (n == 0 && !keeps_zero(node, item))
                return 0;
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
        return lkg_typed_canonical(value, LKG_NUMBER, text, ret);
}

static int decode_duration(struct decode *d, const struct lkg_schema_node *node,
                           const struct lkg_value *value, const struct step *step, bool item,
                           struct lkg_value **ret)
{
        char text[LKG_DURATION_MAX], why[LKG_REFUSAL_MAX];
        const char *given;
        size_t size;
        int64_t ns;

        if (lkg_value_type(value) != LKG_STRING)
                return wrong_type(d, node, value, step);
        given = lkg_value_text(value, &size);
        if (lkg_duration_parse(given, size, &ns, why) < 0)
                return wrong_value(d, node, value, step, why);
        if (ns == 0 && !keeps_zero(node, item))
                return 0;
        (void)lkg_duration_format(ns, text);
        return lkg_typed_canonical(value, LKG_STRING, text, ret);
}

static int decode_flush(struct decode *d, const struct lkg_schema_node *node, const struct lkg_value *value,
                        const struct step *step, struct lkg_value **ret)
{
        size_t size;
        intmax_t n;

        if (lkg_value_type(value) != LKG_NUMBER)
                return decode_duration(d, node, value, step, false, ret);
        if (integer(lkg_value_text(value, &size), &n) < 0)
                return wrong_value(d, node, value, step, "an integer of nanoseconds must fit 64 bits");
        return n == 0 ? 0 : decoded_integer(value, n, ret);
}

/*
 * A quantity in a map is kept in printed form. A quantity in a field keeps its text until it is printed,
 * because printing changes some values (`1000E` prints as `1`), and rules apply to the value that was read.
 */
static int decode_quantity(struct decode *d, const struct lkg_schema_node *node,
                           const struct lkg_value *value, const struct step *step, bool item,
                           struct lkg_value **ret)
{
        LKG_CLEANUP(lkg_quantity_deinit) struct lkg_quantity quantity = { 0 };
        LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf text = LKG_BUF_INIT;
        char why[LKG_REFUSAL_MAX];
        struct lkg_span given;
        int r;

        if (lkg_value_type(value) != LKG_STRING && lkg_value_type(value) != LKG_NUMBER)
                return wrong_type(d, node, value, step);
        given.data = lkg_value_text(value, &given.size);
        given = lkg_quantity_trim(given.data, given.size);
        r = lkg_quantity_parse(given.data, given.size, &quantity, why);
        if (r == -ENOMEM)
                return r;
        if (r < 0)
                return wrong_value(d, node, value, step, why);
        if (item && d->flags & LKG_TYPED_ROUND && lkg_quantity_round(&quantity, -3) < 0)
                return -ENOMEM;
        if (item)
                lkg_quantity_text(&quantity, given, &text);
        else
                lkg_buf_append(&text, given.data, given.size);
        if (lkg_buf_failed(&text))
                return -ENOMEM;
        return lkg_typed_canonical(value, LKG_STRING, text.data, ret);
}

/* metav1.Time: RFC 3339; the kubelet refuses any taint that has one, so only its form matters. */
static int decode_time(struct decode *d, const struct lkg_schema_node *node, const struct lkg_value *value,
                       const struct step *step, struct lkg_value **ret)
{
        struct tm tm = { 0 };
        const char *text, *rest;
        size_t size;

        if (lkg_value_type(value) != LKG_STRING)
                return wrong_type(d, node, value, step);
        text = lkg_value_text(value, &size);
        rest = strptime(text, "%Y-%m-%dT%H:%M:%S", &tm);
        if (!rest || (*rest != 'Z' && *rest != '+' && *rest != '-' && *rest != '.'))
                return wrong_value(d, node, value, step, "RFC 3339 wants date, T, time and zone");
        *ret = lkg_value_ref((struct lkg_value *)value);
        return 0;
}

/* ---- collections ---- */

static int decode_value(struct decode *d, const struct lkg_schema_node *node, const struct lkg_value *value,
                        const struct lkg_value *before, bool item, const struct step *step,
                        struct lkg_value **ret);

/*
 * The zero value as an item of a list or map: it is present, so it must be printed. @at: NULL = no source.
 */
int lkg_typed_zero(const struct lkg_schema_node *node, const struct lkg_value *at, struct lkg_value **ret)
{
        struct lkg_source *source = at ? lkg_value_source_mut(at) : NULL;
        unsigned line = at ? lkg_value_line(at) : 0, column = at ? lkg_value_column(at) : 0;

        switch (node->class) {
        case LKG_CLASS_BOOL:
                *ret = lkg_value_new_bool(false, source, line, column);
                break;
        case LKG_CLASS_STRING:
                *ret = lkg_value_new_string("", 0, source, line, column);
                break;
        case LKG_CLASS_INT:
        case LKG_CLASS_FLOAT:
        case LKG_CLASS_FLUSH:
                *ret = lkg_value_new_number("0", source, line, column);
                break;
        case LKG_CLASS_DURATION:
                *ret = lkg_value_new_string("0s", 2, source, line, column);
                break;
        case LKG_CLASS_QUANTITY:
                *ret = lkg_value_new_string("0", 1, source, line, column);
                break;
        case LKG_CLASS_STRUCT:
                *ret = lkg_value_new_map(source, line, column);
                break;
        case LKG_CLASS_TIME:
        case LKG_CLASS_LIST:
        case LKG_CLASS_MAP:
                *ret = lkg_value_new_null(source, line, column);
                break;
        }
        return *ret ? 0 : -ENOMEM;
}

/* Return item @i of a list that an earlier spelling of the field set: Go decodes into it. */
static struct lkg_value *earlier_item(const struct lkg_value *before, size_t i)
{
        if (!before || lkg_value_type(before) != LKG_LIST || i >= lkg_value_size(before))
                return NULL;
        return lkg_list_get(before, i);
}

static int decode_item(struct decode *d, const struct lkg_schema_node *node, const struct lkg_value *value,
                       struct lkg_value *before, const struct step *step, struct lkg_value **ret)
{
        bool nilable = node->class == LKG_CLASS_LIST || node->class == LKG_CLASS_MAP;
        int r = decode_value(d, node, value, before, true, step, ret);

        if (r < 0 || *ret)
                return r;
        if (before && !nilable) { /* null leaves it unchanged */
                *ret = lkg_value_ref(before);
                return 0;
        }
        return lkg_typed_zero(node, value, ret);
}

/*
 * Values in normal form (nearly all) are shared and not copied: the list gets @item, which is taken over, in place of @value's own.
 * *list stays NULL while nothing differs.
 */
int lkg_typed_put_item(const struct lkg_value *value, size_t i, struct lkg_value *item,
                       struct lkg_value **list)
{
        if (!*list && item == lkg_list_get(value, i)) {
                lkg_value_unref(item);
                return 0;
        }
        if (!*list)
                *list = lkg_value_clone_shallow(value);
        if (!*list) {
                lkg_value_unref(item);
                return -ENOMEM;
        }
        lkg_list_set(*list, i, item);
        return 0;
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

static int decode_list(struct decode *d, const struct lkg_schema_node *node, const struct lkg_value *value,
                       const struct lkg_value *before, const struct step *step, struct lkg_value **ret)
{
        LKG_CLEANUP(lkg_value_unrefp) struct lkg_value *list = NULL;
        size_t n_before = d->n_misfits;

        if (lkg_value_type(value) != LKG_LIST)
                return wrong_type(d, node, value, step);
        if (!before && lkg_typed_is_stamped(node, value, 0)) {
                *ret = lkg_value_ref((struct lkg_value *)value);
                return 0;
        }
        for (size_t i = 0; i < lkg_value_size(value); i++) {
                struct step at = { .up = step, .index = i };
                struct lkg_value *item = NULL;
                int r = decode_item(d, node->item, lkg_list_get(value, i), earlier_item(before, i), &at,
                                    &item);

                if (r == 0)
                        r = lkg_typed_put_item(value, i, item, &list);
                if (r < 0)
                        return r;
        }
        /* A value that is normal with rounding is normal without it, but not the reverse. */
        if (!before && !list && d->n_misfits == n_before && (d->flags & LKG_TYPED_ROUND || !can_round(node)))
                lkg_list_stamp(value, node->number);
        *ret = list ? LKG_STEAL(list) : lkg_value_ref((struct lkg_value *)value);
        return 0;
}

/* Start the result of @value, a map, with its first @n members, which are already final. */
struct lkg_value *lkg_typed_start_map(const struct lkg_value *before, const struct lkg_value *value,
                                      size_t n)
{
        LKG_CLEANUP(lkg_value_unrefp) struct lkg_value *map = NULL;

        if (before && lkg_value_type(before) == LKG_MAP)
                return lkg_value_clone_shallow(before);
        map = lkg_value_new_map(lkg_value_source_mut(value), lkg_value_line(value), lkg_value_column(value));
        if (!map)
                return NULL;
        for (size_t i = 0; i < n; i++)
                if (lkg_map_set_like(map, value, i, lkg_value_ref(lkg_map_at(value, i, NULL, NULL))) < 0)
                        return NULL;
        return LKG_STEAL(map);
}

/* Can @value itself be the result, if its members can? A typed map has no history of its own. */
bool lkg_typed_may_share(const struct lkg_value *before, const struct lkg_value *value)
{
        return !before && !lkg_value_shadowed(value);
}

static int decode_map(struct decode *d, const struct lkg_schema_node *node, const struct lkg_value *value,
                      const struct lkg_value *before, const struct step *step, struct lkg_value **ret)
{
        LKG_CLEANUP(lkg_value_unrefp) struct lkg_value *map = NULL;

        if (lkg_value_type(value) != LKG_MAP)
                return wrong_type(d, node, value, step);
        for (size_t i = 0; i < lkg_value_size(value); i++) {
                struct step at = { .up = step };
                LKG_CLEANUP(lkg_value_unrefp) struct lkg_value *item = NULL;
                const struct lkg_value *member = lkg_map_at(value, i, &at.name, &at.size);
                int r = decode_item(d, node->item, member, NULL, &at, &item);

                if (r < 0)
                        return r;
                if (!map && item == member && lkg_typed_may_share(before, value))
                        continue;
                if (!map)
                        map = lkg_typed_start_map(before, value, i);
                r = map ? lkg_map_set(map, at.name, at.size, LKG_STEAL(item)) : -ENOMEM;
                if (r < 0)
                        return r;
        }
        if (!map && !lkg_typed_may_share(before, value)) { /* an empty map */
                map = lkg_typed_start_map(before, value, 0);
                if (!map)
                        return -ENOMEM;
        }
        *ret = map ? LKG_STEAL(map) : lkg_value_ref((struct lkg_value *)value);
        return 0;
}

/* A field of the document. *ret stays NULL for its zero value; @before: the value set by an earlier spelling. */
static int decode_member(struct decode *d, const struct lkg_schema_node *node, const struct lkg_value *value,
                         const struct lkg_value *before, const struct step *step, struct lkg_value **ret)
{
        bool nilable = node->pointer || node->class == LKG_CLASS_LIST || node->class == LKG_CLASS_MAP;

        if (lkg_value_type(value) != LKG_NULL)
                return decode_value(d, node, value, before, false, step, ret);
        /* null sets nil where that is possible; Duration's own decoder refuses it; elsewhere it has no effect */
        if (node->class == LKG_CLASS_DURATION && !nilable)
                return decode_value(d, node, value, before, false, step, ret);
        /* these two have their own decoder, which treats it as no value */
        if (node->class == LKG_CLASS_QUANTITY || node->class == LKG_CLASS_TIME)
                return 0;
        if (before && !nilable)
                *ret = lkg_value_ref((struct lkg_value *)before);
        return 0;
}

/* Decode the field's value, after the earlier values with the same key. */
static int decode_twice(struct decode *d, const struct lkg_schema_node *node, const struct lkg_value *value,
                        const struct lkg_value *before, const struct step *step, struct lkg_value **ret)
{
        const struct lkg_value *earlier = d->flags & LKG_TYPED_TWICE ? lkg_value_shadowed(value) : NULL;
        LKG_CLEANUP(lkg_value_unrefp) struct lkg_value *first = NULL;
        int r = 0;

        if (!earlier || lkg_value_source(earlier) != lkg_value_source(value))
                return decode_member(d, node, value, before, step, ret);
        r = decode_twice(d, node, earlier, before, step, &first);
        return r < 0 ? r : decode_member(d, node, value, first, step, ret);
}

/*
 * Decode a field under a name of another case, or after one: the existing value may be extended or replaced.
 */
static int decode_again(struct decode *d, const struct lkg_schema_node *node, const struct lkg_value *value,
                        const struct step *step, struct lkg_value *map)
{
        const struct lkg_value *before = lkg_map_get(map, node->name);
        struct lkg_value *item = NULL;
        int r = decode_twice(d, node, value, before, step, &item);

        if (r < 0)
                return r;
        if (item)
                r = lkg_map_set(map, node->name, strlen(node->name), item);
        else if (before)
                r = lkg_map_remove(map, node->name, strlen(node->name));
        return r < 0 ? r : 0;
}

/*
 * Keys and fields are both in byte order, so they are walked in parallel; that ends at the first name that
 * matches only without regard to case.
 */
static int decode_struct(struct decode *d, const struct lkg_schema_node *node, const struct lkg_value *value,
                         const struct lkg_value *before, bool item, const struct step *step,
                         struct lkg_value **ret)
{
        LKG_CLEANUP(lkg_value_unrefp) struct lkg_value *map = NULL;
        bool in_order = !before;
        size_t m = 0, size;

        if (lkg_value_type(value) != LKG_MAP)
                return wrong_type(d, node, value, step);
        for (size_t i = 0; i < lkg_value_size(value); i++) {
                struct step at = { .up = step };
                const struct lkg_value *member = lkg_map_at(value, i, &at.name, &at.size);
                const struct lkg_schema_node *field = lkg_node_next(node, at.name, at.size, &m);
                LKG_CLEANUP(lkg_value_unrefp) struct lkg_value *made = NULL;
                int r = 0;

                if (!field && d->flags & LKG_TYPED_FOLD) {
                        field = lkg_node_member_folded(node, at.name, at.size);
                        in_order &= !field;
                }
                if (field && in_order)
                        r = decode_twice(d, field, member, NULL, &at, &made);
                if (r < 0)
                        return r;
                if (!map && made == member && lkg_typed_may_share(before, value))
                        continue;
                if (!map)
                        map = lkg_typed_start_map(before, value, i);
                if (!map)
                        return -ENOMEM;
                if (field && !in_order)
                        r = decode_again(d, field, member, &at, map);
                else if (made)
                        r = lkg_map_set_like(map, node->names, m, LKG_STEAL(made));
                if (r < 0)
                        return r;
        }
        if (!map && !lkg_typed_may_share(before, value)) { /* an empty struct */
                map = lkg_typed_start_map(before, value, 0);
                if (!map)
                        return -ENOMEM;
        }
        size = lkg_value_size(map ? map : value);
        if (size > 0 || keeps_zero(node, item))
                *ret = map ? LKG_STEAL(map) : lkg_value_ref((struct lkg_value *)value);
        return 0;
}

static int decode_value(struct decode *d, const struct lkg_schema_node *node, const struct lkg_value *value,
                        const struct lkg_value *before, bool item, const struct step *step,
                        struct lkg_value **ret)
{
        if (lkg_value_type(value) == LKG_NULL && item && node->class != LKG_CLASS_DURATION)
                return 0;
        switch (node->class) {
        case LKG_CLASS_BOOL:
                return decode_bool(d, node, value, step, item, ret);
        case LKG_CLASS_STRING:
                return decode_string(d, node, value, step, item, ret);
        case LKG_CLASS_INT:
                return decode_int(d, node, value, step, item, ret);
        case LKG_CLASS_FLOAT:
                return decode_float(d, node, value, step, item, ret);
        case LKG_CLASS_DURATION:
                return decode_duration(d, node, value, step, item, ret);
        case LKG_CLASS_FLUSH:
                return decode_flush(d, node, value, step, ret);
        case LKG_CLASS_QUANTITY:
                return decode_quantity(d, node, value, step, item, ret);
        case LKG_CLASS_TIME:
                return decode_time(d, node, value, step, ret);
        case LKG_CLASS_LIST:
                return decode_list(d, node, value, before, step, ret);
        case LKG_CLASS_MAP:
                return decode_map(d, node, value, before, step, ret);
        case LKG_CLASS_STRUCT:
                return decode_struct(d, node, value, before, item, step, ret);
        }
        return -EINVAL;
}

int lkg_typed_decode(const struct lkg_schema_node *root, const struct lkg_value *value, unsigned flags,
                     struct lkg_report *report, struct lkg_value *unread, struct lkg_value **ret)
{
        struct decode d = { .flags = flags, .report = report, .unread = unread };
        LKG_CLEANUP(lkg_value_unrefp) struct lkg_value *object = NULL;
        int r = decode_value(&d, root, value, NULL, true, NULL, &object);

        if (r < 0)
                return r;
        if (!object) /* the document is null */
                object = lkg_value_new_map(lkg_value_source_mut(value), 0, 0);
        else if (object == value) {
                lkg_value_unref(object);
                object = lkg_value_clone_shallow(value);
        }
        if (!object)
                return -ENOMEM;
        *ret = LKG_STEAL(object);
        return d.n_misfits > 0 ? -EBADMSG : 0;
}

int lkg_typed_scalar(const struct lkg_schema_node *node, const struct lkg_value *value, const char *path,
                     struct lkg_report *report, struct lkg_value **ret)
{
        struct decode d = { .report = report };
        struct step step = { .name = path, .size = strlen(path) };
        int r = decode_value(&d, node, value, NULL, false, &step, ret);

        return r < 0 ? r : d.n_misfits > 0 ? -EBADMSG : 0;
}
