/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The effect of one use of a flag on the document: a setter for each type of flag. values/flags.h explains
 * what a use adds or replaces.
 */
#include "flag-value.h"

#include <stdarg.h>

#include <lkg/text.h>
#include <lkg/tree.h>

#include "findings-codes.h"
#include "gates.h"
#include "values/address.h"
#include "values/flags.h"
#include "values/names.h"
#include "values/number.h"

enum use_state {
        USE_AGAIN = 1 << 0, /* lists and maps are cleared by the first use only */
        USE_GONE =
                1 << 1, /* was given as nothing, and the component has let go of where it keeps the value */
        USE_INTEGER = 1 << 2, /* the document has a duration as an integer, and so has every later value */
};

/* One use of a flag. */
struct use {
        struct lkg_flag_apply *apply;
        const struct lkg_flag *flag;
        const struct lkg_schema_node *node; /* of the field; NULL = it sets none */
        struct lkg_source *source;
        const char *text;
        size_t size;
        struct lkg_value *collection; /* a list or map under construction */
};

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

static bool is_secret(const struct use *use)
{
        return use->flag->secret || (use->node && (use->node->field->flags & LKG_FIELD_SECRET));
}

static int refuse_value(const struct use *use, const char *why)
{
        char quoted[5 * 64 + 8];

        if (is_secret(use))
                return lkg_flag_refuse(use->apply, "--%s: the value (not shown) is wrong", use->flag->name);
        return lkg_flag_refuse(use->apply, "--%s: %s: %s", use->flag->name,
                               lkg_quote(use->text, use->size, quoted),
                               lkg_reason(lkg_span(use->text, use->size), why));
}

/* ---- values ---- */

static struct lkg_value *new_string(const struct use *use, const char *text, size_t size)
{
        return lkg_value_new_string(text, size, use->source, 0, 0);
}

static struct lkg_value *new_number(const struct use *use, int64_t n)
{
        char text[24];

        (void)snprintf(text, sizeof(text), "%lld", (long long)n);
        return lkg_value_new_number(text, use->source, 0, 0);
}

/*
 * A typed document has no zero values, so their sources are kept separately. @zero: NULL = it is not zero.
 */
static int note_zero(const struct use *use, struct lkg_value *zero)
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
static bool stays_integer(const struct use *use)
{
        unsigned char *used = &use->apply->used[use->flag - use->apply->flags];
        const struct lkg_value *before;

        if (!use->node || use->node->class != LKG_CLASS_FLUSH)
                return false;
        before = lkg_object_get(use->apply->object, use->node->field->path);
        if (before && lkg_value_type(before) == LKG_NUMBER)
                *used |= USE_INTEGER;
        return *used & USE_INTEGER;
}

/* And where that was as text, or nothing was there but the default, a zero is text as well: it cannot be left out. */
static bool is_flush_text(const struct use *use, const struct lkg_value *given)
{
        return use->node->class == LKG_CLASS_FLUSH && lkg_value_type(given) == LKG_STRING;
}

/* Takes over @value: the field's new value, in the form that it would have in a document. */
static int set_field(const struct use *use, struct lkg_value *value)
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
                canonical = new_string(use, "0s", 2);
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

static int set_bool(const struct use *use)
{
        char why[LKG_REFUSAL_MAX];
        bool b;

        if (lkg_bool_parse(use->text, use->size, &b, why) < 0)
                return refuse_value(use, why);
        return set_field(use, lkg_value_new_bool(b, use->source, 0, 0));
}

static int set_string(const struct use *use)
{
        return set_field(use, new_string(use, use->text, use->size));
}

static int set_int(const struct use *use, unsigned bits)
{
        char why[LKG_REFUSAL_MAX];
        int64_t n;

        if (lkg_int_parse(use->text, use->size, 0, bits, &n, why) < 0)
                return refuse_value(use, why);
        return set_field(use, new_number(use, n));
}

static int set_int32(const struct use *use)
{
        return set_int(use, 32);
}

static int set_int64(const struct use *use)
{
        return set_int(use, 64);
}

/* -v: component-base's VerbosityLevel is decimal and never negative. */
static int set_verbosity(const struct use *use)
{
        char why[LKG_REFUSAL_MAX];
        uint64_t n;

        if (lkg_uint_parse(use->text, use->size, 10, 31, &n, why) < 0)
                return refuse_value(use, why);
        return set_field(use, new_number(use, (int64_t)n));
}

static int set_float(const struct use *use)
{
        char why[LKG_REFUSAL_MAX], text[LKG_NUMBER_TEXT_MAX];
        double d;
        int r = lkg_float_parse(use->text, use->size, 32, &d, why);

        if (r == -ENOMEM)
                return r;
        if (r < 0)
                return refuse_value(use, why);
        lkg_float_json(d, text);
        return set_field(use, lkg_value_new_number(text, use->source, 0, 0));
}

static int set_duration(const struct use *use)
{
        char why[LKG_REFUSAL_MAX];
        int64_t ns;

        if (lkg_duration_parse(use->text, use->size, &ns, why) < 0)
                return refuse_value(use, why);
        return stays_integer(use) ? set_field(use, new_number(use, ns)) : set_string(use);
}

/* An empty value leaves the address unchanged, but the component crashes if another use follows. */
static int set_address(const struct use *use, int (*parse)(const char *text, size_t size, char *reason))
{
        unsigned char *used = &use->apply->used[use->flag - use->apply->flags];
        char why[LKG_REFUSAL_MAX];
        int r = parse(use->text, use->size, why);

        if (r < 0)
                return refuse_value(use, why);
        if (r == 0) {
                *used |= USE_GONE;
                return 0;
        }
        return *used & USE_GONE
                       ? refuse_value(use, "the component crashes on it after an empty one; leave that out")
                       : set_string(use);
}

static int set_ip(const struct use *use)
{
        return set_address(use, lkg_ip_flag);
}

static int set_ip_port(const struct use *use)
{
        return set_address(use, lkg_ip_port_flag);
}

static int set_quantity(const struct use *use)
{
        LKG_CLEANUP(lkg_quantity_deinit) struct lkg_quantity quantity = { 0 };
        char why[LKG_REFUSAL_MAX];
        int r = lkg_quantity_parse(use->text, use->size, &quantity, why);

        if (r == -ENOMEM)
                return r;
        return r < 0 ? refuse_value(use, why) : set_string(use);
}

/* ---- lists and maps ---- */

/* Start a collection that the first use clears and later uses add to. */
static struct lkg_value *begin(const struct use *use, bool keep, enum lkg_type type)
{
        const struct lkg_value *before =
                use->node ? lkg_object_get(use->apply->object, use->node->field->path) : NULL;

        LKG_CLEANUP(lkg_value_unrefp) struct lkg_value *list = NULL;

        if (!keep || !before || lkg_value_type(before) != type)
                return type == LKG_LIST ? lkg_value_new_list(use->source, 0, 0)
                                        : lkg_value_new_map(use->source, 0, 0);
        if (type == LKG_MAP) /* each member has a source of its own */
                return lkg_value_clone_shallow(before);
        list = lkg_value_new_list(use->source, 0, 0);
        for (size_t i = 0; list && i < lkg_value_size(before); i++)
                if (lkg_list_append(list, lkg_value_ref(lkg_list_get(before, i))) < 0)
                        return NULL;
        return LKG_STEAL(list);
}

/* Take the collected items, or report why not. */
static int finish(struct use *use, int r, const char *why)
{
        struct lkg_value *collection = LKG_STEAL(use->collection);

        if (r == 0 && use->node)
                return lkg_object_set(use->apply->object, use->node->field->path, collection);
        lkg_value_unref(collection);
        return r == -EINVAL ? refuse_value(use, why) : r;
}

static bool is_again(const struct use *use)
{
        return use->apply->used[use->flag - use->apply->flags] & USE_AGAIN;
}

static int put(struct use *use, struct lkg_span key, struct lkg_value *value)
{
        int r = value ? lkg_map_set(use->collection, key.data, key.size, value) : -ENOMEM;

        return r < 0 ? r : 0;
}

static int each_item(void *userdata, struct lkg_span item)
{
        struct use *use = userdata;
        struct lkg_value *value = new_string(use, item.data, item.size);

        return value ? lkg_list_append(use->collection, value) : -ENOMEM;
}

static int set_slice(struct use *use)
{
        char why[LKG_REFUSAL_MAX];

        use->collection = begin(use, is_again(use), LKG_LIST);
        if (!use->collection)
                return -ENOMEM;
        return finish(use, lkg_flag_slice(use->text, use->size, each_item, use, why), why);
}

/* On a discovered command line a gate of another release, or of a wrapper program, is left out as well. */
static bool leaves_gate_out(const struct use *use, struct lkg_span key, bool b)
{
        unsigned release = lkg_schema_release(use->apply->schema);
        char name[LKG_QUOTE_MAX + 1], quoted[5 * 64 + 8], text[LKG_RELEASE_TEXT_MAX];
        bool lost;

        if (!use->apply->observed)
                return false;
        (void)snprintf(name, sizeof(name), "%.*s", (int)(key.size < sizeof(name) ? key.size : 0), key.data);
        if (lkg_gate_settable(name, b, release))
                return false;
        lost = use->apply->runs && lkg_gate_settable(name, b, use->apply->runs);
        (void)(lost ? lkg_flag_refuse_lost : lkg_flag_refuse)(
                use->apply, "--%s: %s cannot be set to %s in %s%s", use->flag->name,
                lkg_quote(key.data, key.size, quoted), b ? "true" : "false", lkg_release_text(release, text),
                lost ? ", and the component does not start with it" : "");
        return true;
}

/* Of a command line that a node will have in another release; lkg_gate_advise() does it for documents. */
static void report_going(const struct use *use, struct lkg_span key)
{
        char name[LKG_QUOTE_MAX + 1], text[LKG_RELEASE_TEXT_MAX];
        unsigned release = lkg_schema_release(use->apply->schema);
        const struct lkg_gate_state *row;

        (void)snprintf(name, sizeof(name), "%.*s", (int)(key.size < sizeof(name) ? key.size : 0), key.data);
        row = lkg_gate_at(name, release);
        if (use->apply->runs && row && (row->stage == LKG_GATE_GA || row->stage == LKG_GATE_DEPRECATED))
                lkg_report_add(
                        use->apply->report, LKG_NOTE, LKG_F_FLAG_GOING, NULL,
                        "--%s: %s is %s in %s and will be dropped; remove it, the component does not start "
                        "with it then",
                        use->flag->name, name,
                        row->stage == LKG_GATE_GA ? "generally available" : "deprecated",
                        lkg_release_text(release, text));
}

static int each_bool(void *userdata, struct lkg_span key, bool b)
{
        struct use *use = userdata;

        if (leaves_gate_out(use, key, b))
                return 0;
        report_going(use, key);
        return put(use, key, lkg_value_new_bool(b, use->source, 0, 0));
}

/* --feature-gates, the only map that keeps the document's members. */
static int set_bools(struct use *use)
{
        char why[LKG_REFUSAL_MAX];

        use->collection = begin(use, true, LKG_MAP);
        if (!use->collection)
                return -ENOMEM;
        return finish(use, lkg_flag_bools(use->text, use->size, each_bool, use, why), why);
}

static int each_pair(void *userdata, struct lkg_span key, struct lkg_span value)
{
        struct use *use = userdata;

        return put(use, key, new_string(use, value.data, value.size));
}

static int set_map(struct use *use, char separator)
{
        char why[LKG_REFUSAL_MAX];

        use->collection = begin(use, is_again(use), LKG_MAP);
        if (!use->collection)
                return -ENOMEM;
        return finish(use, lkg_flag_pairs(use->text, use->size, separator, each_pair, use, why), why);
}

static int set_pairs(struct use *use)
{
        return set_map(use, '=');
}

/*
 * One label of --node-labels; a name alone has an empty value. Checked when all labels are known: the last
 * one counts.
 */
static int add_label(struct use *use, struct lkg_span label)
{
        struct lkg_span key, value;

        (void)lkg_span_cut(label, '=', &key, &value);
        key = lkg_span_trim(key);
        value = lkg_span_trim(value);
        return put(use, key, new_string(use, value.data, value.size));
}

static int check_labels(const struct use *use, char *why)
{
        int r = 0;

        for (size_t i = 0; r == 0 && i < lkg_value_size(use->collection); i++) {
                struct lkg_span key, value;
                const struct lkg_value *label = lkg_map_at(use->collection, i, &key.data, &key.size);

                value.data = lkg_value_text(label, &value.size);
                r = lkg_node_label_check(key, value, why);
        }
        return r;
}

static int set_labels(struct use *use)
{
        struct lkg_span rest = { use->text, use->size }, label;
        char why[LKG_REFUSAL_MAX];
        int r = 0;

        use->collection = begin(use, false, LKG_MAP);
        if (!use->collection)
                return -ENOMEM;
        while (r == 0 && lkg_span_next(&rest, ',', &label))
                if (label.size > 0)
                        r = add_label(use, label);
        return finish(use, r == 0 ? check_labels(use, why) : r, why);
}

static int set_thresholds(struct use *use)
{
        return set_map(use, '<');
}

static int set_one_pair(struct use *use)
{
        char why[LKG_REFUSAL_MAX];

        use->collection = begin(use, is_again(use), LKG_MAP);
        if (!use->collection)
                return -ENOMEM;
        return finish(use, lkg_flag_pair(use->text, use->size, each_pair, use, why), why);
}

/* --manifest-url-header: one key may have several values. */
static int each_header(void *userdata, struct lkg_span key, struct lkg_span value)
{
        struct use *use = userdata;
        const struct lkg_value *before = lkg_map_get_n(use->collection, key.data, key.size);
        LKG_CLEANUP(lkg_value_unrefp)
        struct lkg_value *list = before && lkg_value_type(before) == LKG_LIST
                                         ? lkg_value_clone_shallow(before)
                                         : lkg_value_new_list(use->source, 0, 0);
        struct lkg_value *item = list ? new_string(use, value.data, value.size) : NULL;
        int r = item ? lkg_list_append(list, item) : -ENOMEM;

        return r < 0 ? r : put(use, key, LKG_STEAL(list));
}

static int set_headers(struct use *use)
{
        char why[LKG_REFUSAL_MAX];

        use->collection = begin(use, is_again(use), LKG_MAP);
        if (!use->collection)
                return -ENOMEM;
        return finish(use, lkg_flag_pairs(use->text, use->size, ':', each_header, use, why), why);
}

static int put_string(const struct use *use, struct lkg_value *map, const char *key, struct lkg_span text)
{
        struct lkg_value *value = text.size ? new_string(use, text.data, text.size) : NULL;
        int r = value ? lkg_map_set(map, key, strlen(key), value) : 0;

        return text.size && !value ? -ENOMEM : r < 0 ? r : 0;
}

static int each_taint(void *userdata, const struct lkg_taint *taint)
{
        struct use *use = userdata;
        LKG_CLEANUP(lkg_value_unrefp) struct lkg_value *map = lkg_value_new_map(use->source, 0, 0);
        int r = map ? put_string(use, map, "key", taint->key) : -ENOMEM;

        if (r == 0)
                r = put_string(use, map, "value", taint->value);
        if (r == 0)
                r = put_string(use, map, "effect", taint->effect);
        return r < 0 ? r : lkg_list_append(use->collection, LKG_STEAL(map));
}

static int set_taints(struct use *use)
{
        char why[LKG_REFUSAL_MAX];

        use->collection = begin(use, false, LKG_LIST);
        if (!use->collection)
                return -ENOMEM;
        return finish(use, lkg_taints_parse(use->text, use->size, each_taint, use, why), why);
}

static int add_reservation(struct use *use, int32_t node)
{
        LKG_CLEANUP(lkg_value_unrefp) struct lkg_value *map = lkg_value_new_map(use->source, 0, 0);
        struct lkg_value *limits = lkg_value_new_map(use->source, 0, 0);
        struct lkg_value *number = node ? new_number(use, node) : NULL;
        int r;

        if (!map || !limits || (node && !number)) {
                lkg_value_unref(limits);
                lkg_value_unref(number);
                return -ENOMEM;
        }
        r = lkg_map_set(map, "limits", strlen("limits"), limits);
        if (number)
                r = r < 0 ? (lkg_value_unref(number), r)
                          : lkg_map_set(map, "numaNode", strlen("numaNode"), number);
        return r < 0 ? r : lkg_list_append(use->collection, LKG_STEAL(map));
}

static int each_limit(void *userdata, int32_t node, bool first, struct lkg_span type, struct lkg_span source,
                      const struct lkg_quantity *quantity)
{
        struct use *use = userdata;
        LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf text = LKG_BUF_INIT;
        struct lkg_value *last, *limits, *value;
        size_t n;
        int r = first ? add_reservation(use, node) : 0;

        if (r < 0)
                return r;
        n = lkg_value_size(use->collection);
        last = lkg_list_get(use->collection, n - 1);
        limits = lkg_map_get(last, "limits");
        lkg_quantity_text(quantity, source, &text);
        value = lkg_buf_failed(&text) ? NULL : new_string(use, text.data, text.size);
        r = value ? lkg_map_set(limits, type.data, type.size, value) : -ENOMEM;
        return r < 0 ? r : 0;
}

static int set_reserved_memory(struct use *use)
{
        unsigned char *used = &use->apply->used[use->flag - use->apply->flags];
        char why[LKG_REFUSAL_MAX];

        if (*used & USE_GONE)
                return refuse_value(use, "the component takes none after an empty one; leave that out");
        if (use->size == 0) {
                *used |= USE_GONE;
                return 0;
        }
        use->collection = begin(use, is_again(use), LKG_LIST);
        if (!use->collection)
                return -ENOMEM;
        return finish(use, lkg_flag_reserved_memory(use->text, use->size, each_limit, use, why), why);
}

static int each_pattern(void *userdata, struct lkg_span pattern, uint32_t verbosity)
{
        struct use *use = userdata;
        LKG_CLEANUP(lkg_value_unrefp) struct lkg_value *map = lkg_value_new_map(use->source, 0, 0);
        struct lkg_value *number = verbosity ? new_number(use, verbosity) : NULL;
        int r = map && (number || !verbosity) ? put_string(use, map, "filePattern", pattern) : -ENOMEM;

        if (r == 0 && number)
                r = lkg_map_set(map, "verbosity", strlen("verbosity"), LKG_STEAL(number));
        lkg_value_unref(number);
        return r < 0 ? r : lkg_list_append(use->collection, LKG_STEAL(map));
}

static int set_vmodule(struct use *use)
{
        char why[LKG_REFUSAL_MAX];

        use->collection = begin(use, true, LKG_LIST);
        if (!use->collection)
                return -ENOMEM;
        return finish(use, lkg_flag_vmodule(use->text, use->size, each_pattern, use, why), why);
}

/* ---- types ---- */

static const struct {
        const char *type;
        int (*scalar)(const struct use *use);
        int (*collection)(struct use *use);
} types[] = {
        { "bool", set_bool, NULL },
        { "string", set_string, NULL },
        { "int", set_int64, NULL },
        { "int32", set_int32, NULL },
        { "int64", set_int64, NULL },
        { "uint32", set_verbosity, NULL },
        { "float32", set_float, NULL },
        { "duration", set_duration, NULL },
        { "ip", set_ip, NULL },
        { "ipPort", set_ip_port, NULL },
        { "quantity", set_quantity, NULL },
        { "stringSlice", NULL, set_slice },
        { "mapStringBool", NULL, set_bools },
        { "mapStringString", NULL, set_pairs },
        { "mapStringStringNoSplit", NULL, set_one_pair },
        { "nodeLabels", NULL, set_labels },
        { "langleMap", NULL, set_thresholds },
        { "colonMultimap", NULL, set_headers },
        { "taints", NULL, set_taints },
        { "reservedMemory", NULL, set_reserved_memory },
        { "vmodule", NULL, set_vmodule },
};

int lkg_flag_use(struct lkg_flag_apply *apply, const struct lkg_flag *flag, const char *text)
{
        LKG_CLEANUP(lkg_freep) char *layer = NULL;
        struct use use = { .apply = apply, .flag = flag, .text = text, .size = strlen(text) };
        int r = 0;

        if (asprintf(&layer, "flag --%s", flag->name) < 0) {
                layer = NULL;
                return -ENOMEM;
        }
        if (flag->field)
                use.node = lkg_node_find(lkg_schema_root(apply->schema), flag->field);
        use.source = lkg_source_new(layer, "");
        if (!use.source)
                return -ENOMEM;
        for (size_t i = 0; i < LKG_ARRAY_SIZE(types); i++)
                if (strcmp(types[i].type, flag->type) == 0)
                        r = types[i].scalar ? types[i].scalar(&use) : types[i].collection(&use);
        apply->used[flag - apply->flags] |= USE_AGAIN;
        lkg_source_unref(use.source);
        return r;
}
