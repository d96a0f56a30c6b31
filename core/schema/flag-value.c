/* SPDX-License-Identifier: Apache-2.0 */
/* The effect of one use of a flag on the document, and the types of flags with a single value. */
#include "command-line.h"

#include <stdarg.h>

#include <lkg/text.h>
#include <lkg/tree.h>

#include "findings-codes.h"
#include "values/values.h"

void lkg_flag_refuse(struct lkg_flag_apply *apply, bool lost, const char *fmt, ...)
{
        LKG_CLEANUP(lkg_freep) char *text = NULL;
        bool warning = apply->config->flags_observed && !lost;
        va_list ap;

        va_start(ap, fmt);
        text = lkg_vformat(fmt, ap);
        va_end(ap);
        apply->refused = apply->refused || !warning;
        lkg_report_add(apply->report, warning ? LKG_WARNING : LKG_ERROR, LKG_F_BAD_FLAG, NULL, "%s%s", text,
                       warning ? " (left out: it is on the line that the component was found with)" : "");
}

static bool is_secret(const struct lkg_flag_use *use)
{
        return use->flag->secret || (use->node && (use->node->field->flags & LKG_FIELD_SECRET));
}

static void refuse_value(const struct lkg_flag_use *use, const char *why)
{
        if (is_secret(use))
                lkg_flag_refuse(use->apply, false, "--%s: the value (not shown) is wrong", use->flag->name);
        else
                lkg_flag_refuse(use->apply, false, "--%s: %s: %s", use->flag->name, LKG_QUOTE(use->text),
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

/* A single value gets the form that it would have in a document. */
static void set_field(const struct lkg_flag_use *use)
{
        LKG_CLEANUP(lkg_value_unrefp) struct lkg_value *canonical = NULL;
        LKG_CLEANUP(lkg_report_deinit) struct lkg_report why = LKG_REPORT_INIT;
        struct lkg_value *zeros = use->apply->zeros, *given = use->made;
        const char *path = use->node->field->path;

        if (lkg_value_type(given) == LKG_LIST || lkg_value_type(given) == LKG_MAP) {
                lkg_object_set(use->apply->object, path, lkg_value_ref(given));
                return;
        }
        if (lkg_typed_scalar(use->node, given, path, &why, &canonical) < 0) {
                lkg_flag_refuse(use->apply, false, "--%s: %s", use->flag->name,
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

static int parse_bool(struct lkg_flag_use *use, char *why)
{
        bool b = false;
        int r = lkg_bool_parse(use->text.data, use->text.size, &b, why);

        use->made = lkg_value_new_bool(b, use->source, 0, 0);
        return r;
}

static int parse_string(struct lkg_flag_use *use, char *why)
{
        (void)why;
        use->made = lkg_flag_string(use, use->text);
        return 0;
}

static int parse_int(struct lkg_flag_use *use, char *why)
{
        unsigned bits = strcmp(use->flag->type, "int32") == 0 ? 32 : 64;
        int64_t n = 0;
        int r = lkg_int_parse(use->text.data, use->text.size, 0, bits, &n, why);

        use->made = lkg_flag_number(use, n);
        return r;
}

/* -v: component-base's VerbosityLevel is decimal and never negative. */
static int parse_verbosity(struct lkg_flag_use *use, char *why)
{
        uint64_t n = 0;
        int r = lkg_uint_parse(use->text.data, use->text.size, 10, 31, &n, why);

        use->made = lkg_flag_number(use, (int64_t)n);
        return r;
}

static int parse_float(struct lkg_flag_use *use, char *why)
{
        char text[LKG_NUMBER_TEXT_MAX];
        double d = 0;
        int r = lkg_float_parse(use->text.data, use->text.size, 32, &d, why);

        lkg_float_json(r < 0 ? 0 : d, text);
        use->made = lkg_value_new_number(text, use->source, 0, 0);
        return r;
}

static int parse_duration(struct lkg_flag_use *use, char *why)
{
        int64_t ns = 0;
        int r = lkg_duration_parse(use->text.data, use->text.size, &ns, why);

        if (r < 0 || !stays_integer(use))
                return r < 0 ? r : parse_string(use, why);
        use->made = lkg_flag_number(use, ns);
        return 0;
}

/* An empty value leaves the address unchanged, but the component crashes if another use follows. */
static int parse_ip(struct lkg_flag_use *use, char *why)
{
        bool port = strcmp(use->flag->type, "ipPort") == 0;
        int r = (port ? lkg_ip_port_flag : lkg_ip_flag)(use->text.data, use->text.size, why);

        if (r == 0)
                *use->used |= LKG_FLAG_GONE;
        else if (r > 0 && *use->used & LKG_FLAG_GONE)
                return lkg_refuse(why, "the component crashes on it after an empty one; leave that out");
        return r > 0 ? parse_string(use, why) : r == 0 ? 1 : r;
}

static int parse_quantity(struct lkg_flag_use *use, char *why)
{
        LKG_CLEANUP(lkg_quantity_deinit) struct lkg_quantity quantity = { 0 };
        int r = lkg_quantity_parse(use->text.data, use->text.size, &quantity, why);

        return r < 0 ? r : parse_string(use, why);
}

/* ---- one use ---- */

static lkg_flag_parse_fn *parser_of(struct lkg_flag_use *use)
{
        static const struct {
                const char *type;
                lkg_flag_parse_fn *parse;
        } types[] = {
                { "bool", parse_bool },     { "string", parse_string },     { "int", parse_int },
                { "int32", parse_int },     { "int64", parse_int },         { "uint32", parse_verbosity },
                { "float32", parse_float }, { "duration", parse_duration }, { "ip", parse_ip },
                { "ipPort", parse_ip },     { "quantity", parse_quantity },
        };

        for (size_t i = 0; i < LKG_ARRAY_SIZE(types); i++)
                if (strcmp(types[i].type, use->flag->type) == 0)
                        return types[i].parse;
        return lkg_flag_begin_list(use);
}

void lkg_flag_use(struct lkg_flag_apply *apply, const struct lkg_flag *flag, const char *text)
{
        struct lkg_flag_use use = { .apply = apply,
                                    .flag = flag,
                                    .text = lkg_span(text, strlen(text)),
                                    .used = &apply->used[flag - apply->flags] };
        char layer[128], why[LKG_REFUSAL_MAX];
        lkg_flag_parse_fn *parse;
        int r;

        (void)snprintf(layer, sizeof(layer), "flag --%s", flag->name);
        if (flag->field)
                use.node = lkg_node_find(lkg_schema_root(apply->schema), flag->field);
        use.source = lkg_source_new(layer, "");
        parse = parser_of(&use);
        r = parse ? parse(&use, why) : 1;
        if (r < 0)
                refuse_value(&use, why);
        else if (r == 0 && use.node)
                set_field(&use);
        *use.used |= LKG_FLAG_AGAIN;
        lkg_value_unref(use.made);
        lkg_source_unref(use.source);
}
