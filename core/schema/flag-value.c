/* SPDX-License-Identifier: Apache-2.0 */
/* The effect of one use of a flag on the document: a setter for each type of flag with a single value. */
#include "command-line.h"

#include <stdarg.h>

#include <lkg/text.h>
#include <lkg/tree.h>

#include "findings-codes.h"
#include "values/values.h"

LKG_PRINTF(3, 0)
static void refuse(struct lkg_flag_apply *apply, bool warning, const char *fmt, va_list ap)
{
        char *text = NULL;

        if (vasprintf(&text, fmt, ap) < 0)
                lkg_no_memory();
        apply->refused = apply->refused || !warning;
        lkg_report_add(apply->report, warning ? LKG_WARNING : LKG_ERROR, LKG_F_BAD_FLAG, NULL, "%s%s", text,
                       warning ? " (left out: it is on the line that the component was found with)" : "");
        free(text);
}

void lkg_flag_refuse(struct lkg_flag_apply *apply, const char *fmt, ...)
{
        va_list ap;

        va_start(ap, fmt);
        refuse(apply, apply->observed, fmt, ap);
        va_end(ap);
}

void lkg_flag_refuse_lost(struct lkg_flag_apply *apply, const char *fmt, ...)
{
        va_list ap;

        va_start(ap, fmt);
        refuse(apply, /* warning= */ false, fmt, ap);
        va_end(ap);
}

static bool is_secret(const struct lkg_flag_use *use)
{
        return use->flag->secret || (use->node && (use->node->field->flags & LKG_FIELD_SECRET));
}

void lkg_flag_refuse_value(const struct lkg_flag_use *use, const char *why)
{
        char quoted[5 * 64 + 8];

        if (is_secret(use))
                lkg_flag_refuse(use->apply, "--%s: the value (not shown) is wrong", use->flag->name);
        else
                lkg_flag_refuse(use->apply, "--%s: %s: %s", use->flag->name,
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
static void set_field(const struct lkg_flag_use *use, struct lkg_value *value)
{
        LKG_CLEANUP(lkg_value_unrefp) struct lkg_value *given = value, *canonical = NULL;
        LKG_CLEANUP(lkg_report_deinit) struct lkg_report why = LKG_REPORT_INIT;
        struct lkg_value *zeros = use->apply->zeros;
        const char *path;

        if (!use->node)
                return;
        path = use->node->field->path;
        if (lkg_typed_scalar(use->node, given, path, &why, &canonical) < 0) {
                lkg_flag_refuse(use->apply, "--%s: %s", use->flag->name,
                                why.n_findings > 0 ? why.findings[0].text : "not what the field takes");
                return;
        }
        if (!canonical && is_flush_text(use, given))
                canonical = lkg_flag_string(use, lkg_span("0s", 2));
        /* A typed document has no zero values, so their sources are kept separately. */
        if (zeros && !canonical)
                (void)lkg_map_set(zeros, path, strlen(path), lkg_value_ref(given));
        else if (zeros)
                (void)lkg_map_remove(zeros, path, strlen(path));
        lkg_object_set(use->apply->object, path,
                       canonical ? lkg_value_over(canonical, lkg_object_get(use->apply->object, path))
                                 : NULL);
}

static void set_bool(const struct lkg_flag_use *use)
{
        char why[LKG_REFUSAL_MAX];
        bool b;

        if (lkg_bool_parse(use->text.data, use->text.size, &b, why) < 0)
                lkg_flag_refuse_value(use, why);
        else
                set_field(use, lkg_value_new_bool(b, use->source, 0, 0));
}

static void set_string(const struct lkg_flag_use *use)
{
        set_field(use, lkg_flag_string(use, use->text));
}

static void set_int(const struct lkg_flag_use *use)
{
        unsigned bits = strcmp(use->flag->type, "int32") == 0 ? 32 : 64;
        char why[LKG_REFUSAL_MAX];
        int64_t n;

        if (lkg_int_parse(use->text.data, use->text.size, 0, bits, &n, why) < 0)
                lkg_flag_refuse_value(use, why);
        else
                set_field(use, lkg_flag_number(use, n));
}

/* -v: component-base's VerbosityLevel is decimal and never negative. */
static void set_verbosity(const struct lkg_flag_use *use)
{
        char why[LKG_REFUSAL_MAX];
        uint64_t n;

        if (lkg_uint_parse(use->text.data, use->text.size, 10, 31, &n, why) < 0)
                lkg_flag_refuse_value(use, why);
        else
                set_field(use, lkg_flag_number(use, (int64_t)n));
}

static void set_float(const struct lkg_flag_use *use)
{
        char why[LKG_REFUSAL_MAX], text[LKG_NUMBER_TEXT_MAX];
        double d;

        if (lkg_float_parse(use->text.data, use->text.size, 32, &d, why) < 0) {
                lkg_flag_refuse_value(use, why);
                return;
        }
        lkg_float_json(d, text);
        set_field(use, lkg_value_new_number(text, use->source, 0, 0));
}

static void set_duration(const struct lkg_flag_use *use)
{
        char why[LKG_REFUSAL_MAX];
        int64_t ns;

        if (lkg_duration_parse(use->text.data, use->text.size, &ns, why) < 0)
                lkg_flag_refuse_value(use, why);
        else if (stays_integer(use))
                set_field(use, lkg_flag_number(use, ns));
        else
                set_string(use);
}

/* An empty value leaves the address unchanged, but the component crashes if another use follows. */
static void set_ip(const struct lkg_flag_use *use)
{
        bool port = strcmp(use->flag->type, "ipPort") == 0;
        char why[LKG_REFUSAL_MAX];
        int r = (port ? lkg_ip_port_flag : lkg_ip_flag)(use->text.data, use->text.size, why);

        if (r < 0)
                lkg_flag_refuse_value(use, why);
        else if (r == 0)
                *use->used |= LKG_FLAG_GONE;
        else if (*use->used & LKG_FLAG_GONE)
                lkg_flag_refuse_value(use, "the component crashes on it after an empty one; leave that out");
        else
                set_string(use);
}

static void set_quantity(const struct lkg_flag_use *use)
{
        LKG_CLEANUP(lkg_quantity_deinit) struct lkg_quantity quantity = { 0 };
        char why[LKG_REFUSAL_MAX];

        if (lkg_quantity_parse(use->text.data, use->text.size, &quantity, why) < 0)
                lkg_flag_refuse_value(use, why);
        else
                set_string(use);
}

/* ---- types ---- */

static const struct {
        const char *type;
        void (*set)(const struct lkg_flag_use *use);
} types[] = {
        { "bool", set_bool },     { "string", set_string },     { "int", set_int },
        { "int32", set_int },     { "int64", set_int },         { "uint32", set_verbosity },
        { "float32", set_float }, { "duration", set_duration }, { "ip", set_ip },
        { "ipPort", set_ip },     { "quantity", set_quantity },
};

void lkg_flag_use(struct lkg_flag_apply *apply, const struct lkg_flag *flag, const char *text)
{
        struct lkg_flag_use use = { .apply = apply,
                                    .flag = flag,
                                    .text = lkg_span(text, strlen(text)),
                                    .used = &apply->used[flag - apply->flags] };
        char layer[128];
        size_t i = 0;

        (void)snprintf(layer, sizeof(layer), "flag --%s", flag->name);
        if (flag->field)
                use.node = lkg_node_find(lkg_schema_root(apply->schema), flag->field);
        use.source = lkg_source_new(layer, "");
        while (i < LKG_ARRAY_SIZE(types) && strcmp(types[i].type, flag->type) != 0)
                i++;
        if (i < LKG_ARRAY_SIZE(types))
                types[i].set(&use);
        else
                lkg_flag_use_list(&use);
        *use.used |= LKG_FLAG_AGAIN;
        lkg_source_unref(use.source);
}
