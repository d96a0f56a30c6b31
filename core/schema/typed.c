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

/* A value that is being decoded. */
struct decoding {
        struct decode *d;
        const struct lkg_schema_node *node;
        const struct lkg_value *value;
        /* what an earlier spelling of the field set there, which Go decodes into; NULL = nothing */
        const struct lkg_value *before;
        bool item; /* of a list or map */
        const struct step *step;
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

static const char *shown(const struct decoding *at, char buf[static LKG_SHOWN_MAX])
{
        const char *text = lkg_value_shown(at->value, buf);

        if (at->node->field->flags & LKG_FIELD_SECRET)
                return "<masked>";
        return text ? text : lkg_value_type(at->value) == LKG_LIST ? "a list" : "a map";
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
LKG_PRINTF(3, 4)
static struct lkg_value *misfit(const struct decoding *at, unsigned code, const char *fmt, ...)
{
        LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf path = LKG_BUF_INIT;
        char buf[LKG_SHOWN_MAX], why[256];
        va_list ap;

        va_start(ap, fmt);
        (void)vsnprintf(why, sizeof(why), fmt, ap);
        va_end(ap);
        format_path(at->step, &path);
        lkg_report_add(at->d->report, LKG_ERROR, code, LKG_AT(at->value), "%s: %s %s",
                       path.size ? lkg_buf_text(&path) : "the document", shown(at, buf), why);
        at->d->n_misfits++;
        note_unread(at->d, lkg_buf_text(&path), at->value);
        return NULL;
}

static const char *wanted(const struct decoding *at)
{
        return lkg_classes[at->node->class].wanted;
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

static struct lkg_value *wrong_type(const struct decoding *at)
{
        enum lkg_type type = lkg_value_type(at->value);

        if (type == LKG_LIST || type == LKG_MAP) /* which is shown as just that */
                return misfit(at, LKG_F_WRONG_TYPE, "where %s is wanted%s", wanted(at),
                              hint(at->node, at->value));
        return misfit(at, LKG_F_WRONG_TYPE, "is a %s where %s is wanted%s", lkg_type_name(type), wanted(at),
                      hint(at->node, at->value));
}

static struct lkg_value *wrong_value(const struct decoding *at, const char *why)
{
        struct lkg_span text;

        text.data = lkg_value_text(at->value, &text.size);
        return misfit(at, LKG_F_NOT_FITTING, "is not %s: %s", wanted(at), lkg_reason(text, why));
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

static bool keeps_zero(const struct decoding *at)
{
        return at->node->pointer || at->item;
}

static struct lkg_value *unchanged(const struct decoding *at)
{
        return lkg_value_ref((struct lkg_value *)at->value);
}

static struct lkg_value *decode_bool(const struct decoding *at)
{
        return lkg_value_bool(at->value) || keeps_zero(at) ? unchanged(at) : NULL;
}

static struct lkg_value *decode_string(const struct decoding *at)
{
        return lkg_text_of(at->value).size > 0 || keeps_zero(at) ? unchanged(at) : NULL;
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

static struct lkg_value *decoded_integer(const struct decoding *at, intmax_t n)
{
        char text[24];

        if (n == 0 && !keeps_zero(at))
                return NULL;
        if (is_plain_int(lkg_value_text(at->value, NULL)))
                return unchanged(at);
        (void)snprintf(text, sizeof(text), "%jd", n);
        return lkg_typed_canonical(at->value, LKG_NUMBER, text);
}

static struct lkg_value *decode_int(const struct decoding *at)
{
        const struct lkg_schema_node *node = at->node;
        const char *number = lkg_value_text(at->value, NULL);
        intmax_t n;
        int r = integer(number, &n);

        if (r == -EINVAL)
                return misfit(at, LKG_F_NOT_FITTING,
                              "is not an integer; write it without fraction and exponent");
        if (r < 0 || n < node->min || n > node->max || (node->min == 0 && *number == '-'))
                return misfit(at, LKG_F_NOT_FITTING,
                              "does not fit %s; it must be from %" PRId64 " to %" PRId64, node->go,
                              node->min, node->max);
        return decoded_integer(at, n);
}

/* The shortest digits that give this float32 back. */
static double shortest_single(double n)
{
        char digits[64];

        for (int precision = 1; precision < 10; precision++) {
                (void)snprintf(digits, sizeof(digits), "%.*e", precision - 1, n);
                if ((double)strtof(digits, NULL) == n)
                        break;
        }
        return strtod(digits, NULL);
}

static struct lkg_value *decode_float(const struct decoding *at)
{
        char text[LKG_NUMBER_TEXT_MAX];
        const char *number = lkg_value_text(at->value, NULL);
        bool single = at->node->single;
        double n = single ? (double)strtof(number, NULL) : strtod(number, NULL),
               max = single ? (double)__FLT_MAX__ : __DBL_MAX__;

        if (n > max || n < -max)
                return misfit(at, LKG_F_NOT_FITTING, "does not fit %s", at->node->go);
        if (n == 0 && !keeps_zero(at))
                return NULL;
        lkg_float_json(single ? shortest_single(n) : n, text);
        return lkg_typed_canonical(at->value, LKG_NUMBER, text);
}

static struct lkg_value *decode_duration(const struct decoding *at)
{
        char text[LKG_DURATION_MAX], why[LKG_REFUSAL_MAX];
        struct lkg_span given = lkg_text_of(at->value);
        int64_t ns;

        if (lkg_duration_parse(given.data, given.size, &ns, why) < 0)
                return wrong_value(at, why);
        if (ns == 0 && !keeps_zero(at))
                return NULL;
        (void)lkg_duration_format(ns, text);
        return lkg_typed_canonical(at->value, LKG_STRING, text);
}

static struct lkg_value *decode_flush(const struct decoding *at)
{
        intmax_t n;

        if (lkg_value_type(at->value) != LKG_NUMBER)
                return decode_duration(at);
        if (integer(lkg_value_text(at->value, NULL), &n) < 0)
                return wrong_value(at, "an integer of nanoseconds must fit 64 bits");
        return decoded_integer(at, n);
}

/*
 * A quantity in a map is kept in printed form. A quantity in a field keeps its text until it is printed,
 * because printing changes some values (`1000E` prints as `1`), and rules apply to the value that was read.
 */
static struct lkg_value *decode_quantity(const struct decoding *at)
{
        LKG_CLEANUP(lkg_quantity_deinit) struct lkg_quantity quantity = { 0 };
        LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf text = LKG_BUF_INIT;
        char why[LKG_REFUSAL_MAX];
        struct lkg_span given;

        given.data = lkg_value_text(at->value, &given.size);
        given = lkg_quantity_trim(given.data, given.size);
        if (lkg_quantity_parse(given.data, given.size, &quantity, why) < 0)
                return wrong_value(at, why);
        if (at->item && at->d->flags & LKG_TYPED_ROUND)
                lkg_quantity_round(&quantity, -3);
        if (at->item)
                lkg_quantity_text(&quantity, given, &text);
        else
                lkg_buf_append(&text, given.data, given.size);
        return lkg_typed_canonical(at->value, LKG_STRING, lkg_buf_text(&text));
}

/* metav1.Time: RFC 3339; the kubelet refuses any taint that has one, so only its form matters. */
static struct lkg_value *decode_time(const struct decoding *at)
{
        struct tm tm = { 0 };
        const char *rest = strptime(lkg_value_text(at->value, NULL), "%Y-%m-%dT%H:%M:%S", &tm);

        return rest && *rest && strchr("Z+-.", *rest)
                       ? unchanged(at)
                       : wrong_value(at, "RFC 3339 wants date, T, time and zone");
}

static struct lkg_value *decode_intstr(const struct decoding *at)
{
        return lkg_value_type(at->value) == LKG_NUMBER ? decode_int(at) : unchanged(at);
}

/* ---- collections ---- */

static struct lkg_value *decode_value(const struct decoding *at);

struct lkg_value *lkg_typed_zero(const struct lkg_schema_node *node, const struct lkg_value *at)
{
        struct lkg_source *source = at ? lkg_value_source_mut(at) : NULL;
        unsigned line = at ? lkg_value_line(at) : 0, column = at ? lkg_value_column(at) : 0;
        const char *text = lkg_classes[node->class].zero;

        switch (node->class) {
        case LKG_CLASS_BOOL:
                return lkg_value_new_bool(false, source, line, column);
        case LKG_CLASS_INT:
        case LKG_CLASS_FLOAT:
        case LKG_CLASS_FLUSH:
        case LKG_CLASS_INTSTR:
                return lkg_value_new_number(text, source, line, column);
        case LKG_CLASS_STRUCT:
                return lkg_value_new_map(source, line, column);
        case LKG_CLASS_STRING:
        case LKG_CLASS_DURATION:
        case LKG_CLASS_QUANTITY:
        case LKG_CLASS_TIME:
        case LKG_CLASS_ANY:
        case LKG_CLASS_LIST:
        case LKG_CLASS_MAP:
                break;
        }
        return text ? lkg_value_new_string(text, strlen(text), source, line, column)
                    : lkg_value_new_null(source, line, column);
}

static bool is_nilable(const struct lkg_schema_node *node)
{
        return node->class == LKG_CLASS_LIST || node->class == LKG_CLASS_MAP;
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

/* The member of a list, map or struct as a step below it. */
static struct step step_to(const struct decoding *at, const struct lkg_member *m)
{
        return (struct step){ at->step, m->key.data, m->key.size, m->i };
}

static struct lkg_value *decode_item(const struct lkg_value *value, const struct lkg_member *m,
                                     void *userdata)
{
        const struct decoding *around = userdata;
        const struct step step = step_to(around, m);
        struct lkg_value *before = around->before && lkg_value_type(value) == LKG_LIST
                                           ? lkg_list_get(around->before, m->i)
                                           : NULL;
        const struct decoding at = { around->d, around->node->item, m->value, before, true, &step };
        struct lkg_value *made = decode_value(&at);

        if (made)
                return made;
        return before && !is_nilable(at.node) ? lkg_value_ref(before) /* null leaves it unchanged */
                                              : lkg_typed_zero(at.node, m->value);
}

static struct lkg_value *decode_list(const struct decoding *at)
{
        size_t n_before = at->d->n_misfits;
        struct lkg_value *list;

        if (!at->before && lkg_typed_is_stamped(at->node, at->value, 0))
                return unchanged(at);
        list = lkg_value_rewrite(at->value, decode_item, (void *)at);
        /* A value that is normal with rounding is normal without it, but not the reverse. */
        if (!at->before && list == at->value && at->d->n_misfits == n_before &&
            (at->d->flags & LKG_TYPED_ROUND || !can_round(at->node)))
                lkg_list_stamp(at->value, at->node->number);
        return list;
}

static struct lkg_value *decode_map(const struct decoding *at)
{
        LKG_CLEANUP(lkg_value_unrefp)
        struct lkg_value *map = lkg_value_rewrite(at->value, decode_item, (void *)at);
        struct lkg_value *both;

        if (!at->before || lkg_value_type(at->before) != LKG_MAP)
                return LKG_STEAL(map);
        both = lkg_value_clone_shallow(at->before);
        for (struct lkg_member m = { 0 }; lkg_value_next(map, &m);)
                (void)lkg_map_set(both, m.key.data, m.key.size, lkg_value_ref(m.value));
        return both;
}

/* A field of the document. NULL for its zero value. */
static struct lkg_value *decode_member(const struct decoding *at)
{
        const struct lkg_schema_node *node = at->node;
        bool nilable = node->pointer || is_nilable(node);

        /* null sets nil where that is possible; Duration's own decoder refuses it; elsewhere it has no effect */
        if (lkg_value_type(at->value) != LKG_NULL || (node->class == LKG_CLASS_DURATION && !nilable))
                return decode_value(at);
        /* these two have their own decoder, which treats it as no value */
        if (!at->before || nilable || node->class == LKG_CLASS_QUANTITY || node->class == LKG_CLASS_TIME)
                return NULL;
        return lkg_value_ref((struct lkg_value *)at->before);
}

/* Decode the field's value, after the earlier values with the same key. */
static struct lkg_value *decode_twice(const struct decoding *at)
{
        struct decoding first = *at, last = *at;
        LKG_CLEANUP(lkg_value_unrefp) struct lkg_value *before = NULL;

        first.value = at->d->flags & LKG_TYPED_TWICE ? lkg_value_shadowed(at->value) : NULL;
        if (!first.value || lkg_value_source(first.value) != lkg_value_source(at->value))
                return decode_member(at);
        last.before = before = decode_twice(&first);
        return decode_member(&last);
}

static struct lkg_value *decode_exact(const struct lkg_value *value, const struct lkg_member *m,
                                      void *userdata)
{
        const struct decoding *around = userdata;
        const struct step step = step_to(around, m);
        const struct decoding at = { .d = around->d,
                                     .node = lkg_node_member(around->node, m->key.data, m->key.size),
                                     .value = m->value,
                                     .step = &step };

        (void)value;
        return at.node ? decode_twice(&at) : NULL;
}

/* Is one of the names that of a field in another case? */
static bool has_folded(const struct decoding *at)
{
        for (struct lkg_member m = { 0 }; lkg_value_next(at->value, &m);) {
                const struct lkg_schema_node *field =
                        lkg_node_member_folded(at->node, m.key.data, m.key.size);

                if (field && !lkg_node_is(field, m.key))
                        return true;
        }
        return false;
}

/* A field may have a value already, of @before or under a name of another case: that is extended or replaced. */
static struct lkg_value *decode_folded(const struct decoding *at)
{
        struct lkg_value *map =
                at->before ? lkg_value_clone_shallow(at->before)
                           : lkg_value_new_map(lkg_value_source_mut(at->value), lkg_value_line(at->value),
                                               lkg_value_column(at->value));

        for (struct lkg_member m = { 0 }; lkg_value_next(at->value, &m);) {
                const struct step step = step_to(at, &m);
                const struct lkg_schema_node *field =
                        at->d->flags & LKG_TYPED_FOLD
                                ? lkg_node_member_folded(at->node, m.key.data, m.key.size)
                                : lkg_node_member(at->node, m.key.data, m.key.size);
                struct lkg_value *made;

                if (!field)
                        continue;
                made = decode_twice(&(struct decoding){ at->d, field, m.value, lkg_map_get(map, field->name),
                                                        false, &step });
                if (made)
                        (void)lkg_map_set(map, field->name, field->name_size, made);
                else
                        (void)lkg_map_remove(map, field->name, field->name_size);
        }
        return map;
}

static struct lkg_value *decode_struct(const struct decoding *at)
{
        struct lkg_value *map = at->before || (at->d->flags & LKG_TYPED_FOLD && has_folded(at))
                                        ? decode_folded(at)
                                        : lkg_value_rewrite(at->value, decode_exact, (void *)at);

        return lkg_value_size(map) > 0 || keeps_zero(at) ? map : lkg_value_unref(map);
}

static struct lkg_value *decode_value(const struct decoding *at)
{
        static struct lkg_value *(*const decoders[])(const struct decoding *at) = {
                [LKG_CLASS_BOOL] = decode_bool,         [LKG_CLASS_STRING] = decode_string,
                [LKG_CLASS_INT] = decode_int,           [LKG_CLASS_FLOAT] = decode_float,
                [LKG_CLASS_DURATION] = decode_duration, [LKG_CLASS_FLUSH] = decode_flush,
                [LKG_CLASS_QUANTITY] = decode_quantity, [LKG_CLASS_TIME] = decode_time,
                [LKG_CLASS_INTSTR] = decode_intstr,     [LKG_CLASS_ANY] = unchanged,
                [LKG_CLASS_STRUCT] = decode_struct,     [LKG_CLASS_LIST] = decode_list,
                [LKG_CLASS_MAP] = decode_map,
        };
        enum lkg_class class = at->node->class;

        if (lkg_value_type(at->value) == LKG_NULL && at->item && class != LKG_CLASS_DURATION)
                return NULL;
        return lkg_classes[class].takes & 1u << lkg_value_type(at->value) ? decoders[class](at)
                                                                          : wrong_type(at);
}

struct lkg_value *lkg_typed_decode(const struct lkg_schema_node *root, const struct lkg_value *value,
                                   unsigned flags, struct lkg_report *report, struct lkg_value *unread)
{
        struct decode d = { .flags = flags, .report = report, .unread = unread };
        LKG_CLEANUP(lkg_value_unrefp)
        struct lkg_value *object =
                decode_value(&(struct decoding){ .d = &d, .node = root, .value = value, .item = true });

        if (!object) /* the document is null */
                return lkg_value_new_map(lkg_value_source_mut(value), 0, 0);
        return object == value ? lkg_value_clone_shallow(value) : LKG_STEAL(object);
}

int lkg_typed_scalar(const struct lkg_schema_node *node, const struct lkg_value *value, const char *path,
                     struct lkg_report *report, struct lkg_value **ret)
{
        struct decode d = { .report = report };
        const struct step step = { .name = path, .size = strlen(path) };

        *ret = decode_value(&(struct decoding){ .d = &d, .node = node, .value = value, .step = &step });
        return d.n_misfits > 0 ? -EBADMSG : 0;
}
