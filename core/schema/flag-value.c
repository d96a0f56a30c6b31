/* SPDX-License-Identifier: Apache-2.0 */
/* The effect of one use of a flag on the document: a setter for each type of flag with a single value. */
#include "command-line.h"

#include <stdarg.h>

#include <lkg/text.h>
#include <lkg/tree.h>

#include "findings-codes.h"
#include "values/values.h"

LKG_PRINTF(3, 0)
static int refuse(struct lkg_flag_apply *apply, bool warning, const char *fmt, va_list ap)
{
        LKG_CLEANUP(lkg_freep) char *text = NULL;

        if (vasprintf(&text, fmt, ap) < 0)
                text = NULL;
        apply->refused = apply->refused || !warning;
        lkg_report_add(apply->report, warning ? LKG_WARNING : LKG_ERROR, LKG_F_BAD_FLAG, NULL, "%s%s",
                       text ? text : "a flag is wrong",
                       warning ? " (left out: it is on the line that the component was found with)" : "");
        return 0;
}

int lkg_flag_refuse(struct lkg_flag_apply *apply, const char *fmt, ...)
{
        va_list ap;
        int r;

        va_start(ap, fmt);
        r = refuse(apply, apply->observed, fmt, ap);
        va_end(ap);
        return r;
}

int lkg_flag_refuse_lost(struct lkg_flag_apply *apply, const char *fmt, ...)
{
        va_list ap;
        int r;

        va_start(ap, fmt);
        r = refuse(apply, /* warning= */ false, fmt, ap);
        va_end(ap);
        return r;
}

static bool is_secret(const struct lkg_flag_use *use)
{
        return use->flag->secret || (use->node && (use->node->field->flags & LKG_FIELD_SECRET));
}

int lkg_flag_refuse_value(const struct lkg_flag_use *use, const char *why)
{
        char quoted[5 * 64 + 8];

        if (is_secret(use))
                return lkg_flag_refuse(use->apply, "--%s: the value (not shown) is wrong", use->flag->name);
        return lkg_flag_refuse(use->apply, "--%s: %s: %s", use->flag->name,
                               lkg_quote(use->text.data, use->text.size, quoted),
                               lkg_reason(use->text, why));
}

/* ---- values ---- */

struct lkg_value *lkg_flag_string(const struct lkg_flag_use *use, struct lkg_span text)
{
        return lkg_value_new_string(text.data, text.size, use->source, 0, 0);
}

struct lkg_value *lkg_flag_number(const struct lkg_flag_use *use, int64_t n)
{
        char text[24];

        (void)snprintf(text, sizeof(text), "%lld", (long long)n);
        return lkg_value_new_number(text, use->source, 0, 0);
}

/*
 * A typed document has no zero values, so their sources are kept separately. @zero: NULL = it is not zero.
 */
static int note_zero(const struct lkg_flag_use *use, struct lkg_value *zero)
{
        const char *path = use->node->field->path;
        int r;

        if (!use->apply->zeros)
                return 0;
        r = zero ? lkg_map_set(use->apply->zeros, path, strlen(path), lkg_value_ref(zero))
                 : lkg_map_remove(use->apply->zeros, path, strlen(path));
        return r < 0 ? r : 0;
}

/*
 * A flush value remembers how the document wrote it (component-base, TimeOrMetaDuration's SerializeAsString): a flag changes
 * the time alone. After a zero in between the document does not show it any more, so the first use checks and passes the
 * result on.
 */
static bool stays_integer(const struct lkg_flag_use *use)
{
        const struct lkg_value *before;

        if (!use->node || use->node->class != LKG_CLASS_FLUSH)
                return false;
        before = lkg_object_get(use->apply->object, use->node->field->path);
        if (before && lkg_value_type(before) == LKG_NUMBER)
                *use->used |= LKG_FLAG_INTEGER;
        return *use->used & LKG_FLAG_INTEGER;
}

/* And where that was as text, or nothing was there but the default, a zero is text as well: it cannot be left out. */
static bool is_flush_text(const struct lkg_flag_use *use, const struct lkg_value *given)
{
        return use->node->class == LKG_CLASS_FLUSH && lkg_value_type(given) == LKG_STRING;
}

/* Takes over @value: the field's new value, in the form that it would have in a document. */
static int set_field(const struct lkg_flag_use *use, struct lkg_value *value)
{
        LKG_CLEANUP(lkg_value_unrefp) struct lkg_value *given = value, *canonical = NULL, *over = NULL;
        const struct lkg_value *before;
        LKG_CLEANUP(lkg_report_deinit) struct lkg_report why = LKG_REPORT_INIT;
        int r;

        if (!given)
                return -ENOMEM;
        if (!use->node)
                return 0;
        r = lkg_typed_scalar(use->node, given, use->node->field->path, &why, &canonical);
        if (r == -EBADMSG)
                return lkg_flag_refuse(use->apply, "--%s: %s", use->flag->name,
                                       why.n_findings > 0 ? why.findings[0].text
                                                          : "not what the field takes");
        if (r < 0)
                return r;
        if (!canonical && is_flush_text(use, given)) {
                canonical = lkg_flag_string(use, lkg_span("0s", 2));
                if (!canonical)
                        return -ENOMEM;
        }
        r = note_zero(use, canonical ? NULL : given);
        if (r < 0)
                return r;
        before = lkg_object_get(use->apply->object, use->node->field->path);
        if (canonical && before) {
                over = lkg_value_over(canonical, before);
                if (!over)
                        return -ENOMEM;
                return lkg_object_set(use->apply->object, use->node->field->path, LKG_STEAL(over));
        }
        return lkg_object_set(use->apply->object, use->node->field->path, LKG_STEAL(canonical));
}

static int set_bool(const struct lkg_flag_use *use)
{
        char why[LKG_REFUSAL_MAX];
        bool b;

        if (lkg_bool_parse(use->text.data, use->text.size, &b, why) < 0)
                return lkg_flag_refuse_value(use, why);
        return set_field(use, lkg_value_new_bool(b, use->source, 0, 0));
}

static int set_string(const struct lkg_flag_use *use)
{
        return set_field(use, lkg_flag_string(use, use->text));
}

static int set_int(const struct lkg_flag_use *use, unsigned bits)
{
        char why[LKG_REFUSAL_MAX];
        int64_t n;

        if (lkg_int_parse(use->text.data, use->text.size, 0, bits, &n, why) < 0)
                return lkg_flag_refuse_value(use, why);
        return set_field(use, lkg_flag_number(use, n));
}

static int set_int32(const struct lkg_flag_use *use)
{
        return set_int(use, 32);
}

static int set_int64(const struct lkg_flag_use *use)
{
        return set_int(use, 64);
}

/* -v: component-base's VerbosityLevel is decimal and never negative. */
static int set_verbosity(const struct lkg_flag_use *use)
{
        char why[LKG_REFUSAL_MAX];
        uint64_t n;

        if (lkg_uint_parse(use->text.data, use->text.size, 10, 31, &n, why) < 0)
                return lkg_flag_refuse_value(use, why);
        return set_field(use, lkg_flag_number(use, (int64_t)n));
}

static int set_float(const struct lkg_flag_use *use)
{
        char why[LKG_REFUSAL_MAX], text[LKG_NUMBER_TEXT_MAX];
        double d;
        int r = lkg_float_parse(use->text.data, use->text.size, 32, &d, why);

        if (r == -ENOMEM)
                return r;
        if (r < 0)
                return lkg_flag_refuse_value(use, why);
        lkg_float_json(d, text);
        return set_field(use, lkg_value_new_number(text, use->source, 0, 0));
}

static int set_duration(const struct lkg_flag_use *use)
{
        char why[LKG_REFUSAL_MAX];
        int64_t ns;

        if (lkg_duration_parse(use->text.data, use->text.size, &ns, why) < 0)
                return lkg_flag_refuse_value(use, why);
        return stays_integer(use) ? set_field(use, lkg_flag_number(use, ns)) : set_string(use);
}

/* An empty value leaves the address unchanged, but the component crashes if another use follows. */
static int set_address(const struct lkg_flag_use *use,
                       int (*parse)(const char *text, size_t size, char *reason))
{
        char why[LKG_REFUSAL_MAX];
        int r = parse(use->text.data, use->text.size, why);

        if (r < 0)
                return lkg_flag_refuse_value(use, why);
        if (r == 0) {
                *use->used |= LKG_FLAG_GONE;
                return 0;
        }
        return *use->used & LKG_FLAG_GONE
                       ? lkg_flag_refuse_value(
                                 use, "the component crashes on it after an empty one; leave that out")
                       : set_string(use);
}

static int set_ip(const struct lkg_flag_use *use)
{
        return set_address(use, lkg_ip_flag);
}

static int set_ip_port(const struct lkg_flag_use *use)
{
        return set_address(use, lkg_ip_port_flag);
}

static int set_quantity(const struct lkg_flag_use *use)
{
        LKG_CLEANUP(lkg_quantity_deinit) struct lkg_quantity quantity = { 0 };
        char why[LKG_REFUSAL_MAX];
        int r = lkg_quantity_parse(use->text.data, use->text.size, &quantity, why);

        if (r == -ENOMEM)
                return r;
        return r < 0 ? lkg_flag_refuse_value(use, why) : set_string(use);
}

/* ---- types ---- */

static const struct {
        const char *type;
        int (*set)(const struct lkg_flag_use *use);
} types[] = {
        { "bool", set_bool },      { "string", set_string },     { "int", set_int64 },
        { "int32", set_int32 },    { "int64", set_int64 },       { "uint32", set_verbosity },
        { "float32", set_float },  { "duration", set_duration }, { "ip", set_ip },
        { "ipPort", set_ip_port }, { "quantity", set_quantity },
};

int lkg_flag_use(struct lkg_flag_apply *apply, const struct lkg_flag *flag, const char *text)
{
        LKG_CLEANUP(lkg_freep) char *layer = NULL;
        struct lkg_flag_use use = { .apply = apply,
                                    .flag = flag,
                                    .text = lkg_span(text, strlen(text)),
                                    .used = &apply->used[flag - apply->flags] };
        size_t i = 0;
        int r;

        if (asprintf(&layer, "flag --%s", flag->name) < 0) {
                layer = NULL;
                return -ENOMEM;
        }
        if (flag->field)
                use.node = lkg_node_find(lkg_schema_root(apply->schema), flag->field);
        use.source = lkg_source_new(layer, "");
        if (!use.source)
                return -ENOMEM;
        while (i < LKG_ARRAY_SIZE(types) && strcmp(types[i].type, flag->type) != 0)
                i++;
        r = i < LKG_ARRAY_SIZE(types) ? types[i].set(&use) : lkg_flag_use_list(&use);
        *use.used |= LKG_FLAG_AGAIN;
        lkg_source_unref(use.source);
        return r;
}
