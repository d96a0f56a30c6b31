/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Flags whose text is a list or a map. Rule: k8s.io/component-base v0.36 cli/flag and logs/api/v1, pkg/util/flag and
 * pkg/util/taints of Kubernetes 1.36, pflag v1.0 with Go's encoding/csv.
 *
 * Items are collected in the order of the text. If a later one turns out to be wrong, the component does not start, and what
 * was collected is dropped.
 */
#include "command-line.h"

#include <lkg/text.h>
#include <lkg/tree.h>

#include "findings-codes.h"
#include "gates.h"
#include "rules.h"
#include "values/values.h"

/* ---- collecting ---- */

/* Takes over @value. */
static void put(struct lkg_flag_use *use, struct lkg_span key, struct lkg_value *value)
{
        (void)lkg_map_set(use->made, key.data, key.size, value);
}

/* An item that is a map has this member, unless it is empty. */
static void put_member(const struct lkg_flag_use *use, struct lkg_value *map, const char *key,
                       struct lkg_span text)
{
        if (text.size)
                (void)lkg_map_set(map, key, strlen(key), lkg_flag_string(use, text));
}

/* ---- lists of texts: one record of CSV ---- */

/* pflag reads the first record alone: comma, double quotes, no comments. */
struct csv {
        struct lkg_span rest; /* lines not read yet */
        struct lkg_span line; /* the rest of the current one, without its end */
        bool newline;         /* the current line ends in one */
};

/*
 * Take the next line without its end: \n, \r\n, or a \r before the end of the text.
 * Return: false at the end.
 */
static bool next_line(struct csv *csv)
{
        struct lkg_span rest;

        if (csv->rest.size == 0)
                return false;
        csv->newline = lkg_span_cut(csv->rest, '\n', &csv->line, &rest);
        csv->rest = rest;
        if (csv->line.size > 0 && csv->line.data[csv->line.size - 1] == '\r')
                csv->line.size--;
        return true;
}

static void skip(struct csv *csv, size_t n)
{
        csv->line = lkg_span(csv->line.data + n, csv->line.size - n);
}

static int stray_quote(char *why)
{
        return lkg_refuse(why, "a stray double quote; quote a whole item, and double quotes inside it");
}

/* Take an item in quotes, which may span several lines. The line then starts after the closing quote. */
static int quoted_item(struct csv *csv, struct lkg_buf *buf, char *why)
{
        skip(csv, 1);
        for (;;) {
                struct lkg_span before, after;

                if (!lkg_span_cut(csv->line, '"', &before, &after)) {
                        lkg_buf_append(buf, before.data, before.size);
                        if (csv->newline)
                                lkg_buf_putc(buf, '\n');
                        if (!next_line(csv))
                                return stray_quote(why);
                        continue;
                }
                lkg_buf_append(buf, before.data, before.size);
                csv->line = after;
                if (after.size == 0 || *after.data != '"')
                        return 0;
                lkg_buf_putc(buf, '"');
                skip(csv, 1);
        }
}

/*
 * Take the next item into @buf.
 * Return: 1: more items follow; 0: it was the last; a negative error.
 */
static int next_item(struct csv *csv, struct lkg_buf *buf, char *why)
{
        struct lkg_span item, after;
        int r;

        if (csv->line.size > 0 && *csv->line.data == '"') {
                r = quoted_item(csv, buf, why);
                if (r < 0)
                        return r;
                if (csv->line.size == 0)
                        return 0;
                if (*csv->line.data != ',')
                        return stray_quote(why);
                skip(csv, 1);
                return 1;
        }
        r = lkg_span_cut(csv->line, ',', &item, &after);
        if (lkg_span_count(item, '"') > 0)
                return stray_quote(why);
        lkg_buf_append(buf, item.data, item.size);
        csv->line = after;
        return r;
}

/* Items are not trimmed. Of several lines only the first that is not empty counts. */
static int parse_slice(struct lkg_flag_use *use, char *why)
{
        LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf buf = LKG_BUF_INIT;
        struct csv csv = { .rest = use->text };
        int r;

        if (use->text.size == 0)
                return 0;
        do {
                if (!next_line(&csv))
                        return lkg_refuse(why, "nothing but line ends");
        } while (csv.line.size == 0);
        do {
                lkg_buf_reset(&buf);
                r = next_item(&csv, &buf, why);
                if (r < 0)
                        return r;
                lkg_list_append(use->made, lkg_flag_string(use, lkg_span(lkg_buf_text(&buf), buf.size)));
        } while (r > 0);
        return 0;
}

/* ---- pairs between commas ---- */

typedef int put_pair(struct lkg_flag_use *use, struct lkg_span key, struct lkg_span value, char *why);

/* The first separator counts; keys and values are trimmed, and may be empty. */
static int one_pair(struct lkg_flag_use *use, struct lkg_span item, char separator, put_pair *fn, char *why)
{
        struct lkg_span key, value;

        if (!lkg_span_cut(item, separator, &key, &value))
                return lkg_refuse(why, "%s is not a pair; want name%cvalue", LKG_PIECE(item), separator);
        return fn(use, lkg_span_trim(key), lkg_span_trim(value), why);
}

static int put_text(struct lkg_flag_use *use, struct lkg_span key, struct lkg_span value, char *why)
{
        (void)why;
        put(use, key, lkg_flag_string(use, value));
        return 0;
}

/* --cpu-manager-policy-options: commas belong to the value. */
static int parse_unsplit(struct lkg_flag_use *use, char *why)
{
        return one_pair(use, use->text, '=', put_text, why);
}

/* --manifest-url-header: one key may have several values. */
static int put_header(struct lkg_flag_use *use, struct lkg_span key, struct lkg_span value, char *why)
{
        const struct lkg_value *before = lkg_map_find(use->made, key);
        struct lkg_value *list = before && lkg_value_type(before) == LKG_LIST
                                         ? lkg_value_clone_shallow(before)
                                         : lkg_value_new_list(use->source, 0, 0);

        (void)why;
        lkg_list_append(list, lkg_flag_string(use, value));
        put(use, key, list);
        return 0;
}

/* ---- feature gates ---- */

/* On a discovered command line a gate of another release, or of a wrapper program, is left out as well. */
static bool leaves_gate_out(const struct lkg_flag_use *use, const char *name, struct lkg_span key, bool b)
{
        unsigned release = lkg_schema_release(use->apply->schema);
        bool lost;

        if (!use->apply->config->flags_observed || lkg_gate_settable(name, b, release))
                return false;
        lost = use->apply->config->runs && lkg_gate_settable(name, b, use->apply->config->runs);
        lkg_flag_refuse(use->apply, lost, "--%s: %s cannot be set to %s in %s%s", use->flag->name,
                        LKG_QUOTE(key), b ? "true" : "false", LKG_RELEASE_TEXT(release),
                        lost ? ", and the component does not start with it" : "");
        return true;
}

/* Of a command line that a node will have in another release; lkg_gate_advise() does it for documents. */
static void report_going(const struct lkg_flag_use *use, const char *name)
{
        unsigned release = lkg_schema_release(use->apply->schema);
        const struct lkg_gate_state *gate = lkg_gate_at(name, release);

        if (use->apply->config->runs && gate &&
            (gate->stage == LKG_GATE_GA || gate->stage == LKG_GATE_DEPRECATED))
                lkg_report_add(
                        use->apply->report, LKG_NOTE, LKG_F_FLAG_GOING, NULL,
                        "--%s: %s is %s in %s and will be dropped; remove it, the component does not start "
                        "with it then",
                        use->flag->name, name,
                        gate->stage == LKG_GATE_GA ? "generally available" : "deprecated",
                        LKG_RELEASE_TEXT(release));
}

static int put_gate(struct lkg_flag_use *use, struct lkg_span key, struct lkg_span value, char *why)
{
        char name[LKG_QUOTE_MAX + 1];
        bool b;

        /* the whole name: the finding cuts the list */
        if (lkg_bool_parse(value.data, value.size, &b, NULL) < 0)
                return lkg_refuse(why, "the value of %s is not a boolean; want true or false",
                                  LKG_QUOTE(key));
        (void)snprintf(name, sizeof(name), "%.*s", (int)(key.size < sizeof(name) ? key.size : 0), key.data);
        if (leaves_gate_out(use, name, key, b))
                return 0;
        report_going(use, name);
        put(use, key, lkg_value_new_bool(b, use->source, 0, 0));
        return 0;
}

/* ---- labels and taints of the node ---- */

/*
 * A label of --node-labels; a name alone has an empty value. Checked when all labels are known: the last one counts.
 */
static int parse_labels(struct lkg_flag_use *use, char *why)
{
        struct lkg_span rest = use->text, label, key, value;
        int r = 0;

        while (r == 0 && lkg_span_next(&rest, ',', &label)) {
                (void)lkg_span_cut(label, '=', &key, &value);
                if (label.size > 0)
                        r = put_text(use, lkg_span_trim(key), lkg_span_trim(value), why);
        }
        for (struct lkg_member m = { 0 }; r == 0 && lkg_value_next(use->made, &m);)
                r = lkg_node_label_check(m.key, lkg_text_of(m.value), why);
        return r;
}

struct taint {
        struct lkg_span key, value, effect;
};

static int check_effect(struct lkg_span effect, char *why)
{
        if (lkg_rule_word("NoSchedule, PreferNoSchedule, NoExecute", effect))
                return 0;
        return lkg_refuse(why, "unknown effect %s; want NoSchedule, PreferNoSchedule or NoExecute",
                          LKG_PIECE(effect));
}

/* `key=value:Effect`, `key:Effect` or `key`. */
static int parse_taint(struct lkg_span text, struct taint *ret, char *why)
{
        struct lkg_span left, empty = { "", 0 };
        char wrong[LKG_REFUSAL_MAX];
        int r = 0;

        *ret = (struct taint){ text, empty, empty };
        if (lkg_span_cut(text, ':', &left, &ret->effect)) {
                if (lkg_span_count(ret->effect, ':') > 0 || lkg_span_count(left, '=') > 1)
                        return lkg_refuse(why, "%s is not a taint; want key=value:NoSchedule",
                                          LKG_PIECE(text));
                (void)lkg_span_cut(left, '=', &ret->key, &ret->value);
                r = check_effect(ret->effect, why);
        }
        if (r < 0)
                return r;
        if (lkg_name_qualified(ret->key.data, ret->key.size, wrong) < 0)
                return lkg_refuse(why, "wrong key: %.140s", wrong);
        if (lkg_name_label_value(ret->value.data, ret->value.size, wrong) < 0)
                return lkg_refuse(why, "wrong value: %.140s", wrong);
        return 0;
}

static bool has_taint(const struct lkg_value *list, const struct taint *taint)
{
        for (struct lkg_member m = { 0 }; lkg_value_next(list, &m);)
                if (lkg_span_equal(lkg_text_of(lkg_map_get(m.value, "key")), taint->key) &&
                    lkg_span_equal(lkg_text_of(lkg_map_get(m.value, "effect")), taint->effect))
                        return true;
        return false;
}

static void add_taint(struct lkg_flag_use *use, const struct taint *taint)
{
        struct lkg_value *map = lkg_value_new_map(use->source, 0, 0);

        put_member(use, map, "key", taint->key);
        put_member(use, map, "value", taint->value);
        put_member(use, map, "effect", taint->effect);
        lkg_list_append(use->made, map);
}

/* A `-` at the end would remove a taint: it must be one, and has no effect. */
static int parse_taints(struct lkg_flag_use *use, char *why)
{
        struct lkg_span rest = use->text, item;
        int r = 0;

        while (r == 0 && use->text.size > 0 && lkg_span_next(&rest, ',', &item)) {
                bool removal = item.size > 0 && item.data[item.size - 1] == '-';
                struct taint taint;

                r = parse_taint(lkg_span(item.data, item.size - removal), &taint, why);
                if (r < 0 || removal)
                        continue;
                if (taint.effect.size == 0)
                        r = lkg_refuse(why, "%s has no effect; want key=value:NoSchedule", LKG_PIECE(item));
                else if (has_taint(use->made, &taint))
                        r = lkg_refuse(why, "%s repeats a key and effect", LKG_PIECE(item));
                else
                        add_taint(use, &taint);
        }
        return r;
}

/* ---- reserved memory: `0:memory=1Gi,hugepages-2Mi=64Mi;1:memory=2Gi` ---- */

static int no_reservation(struct lkg_span text, char *why)
{
        return lkg_refuse(why, "%s is not a reservation; want node:type=quantity, such as 0:memory=1Gi",
                          LKG_PIECE(text));
}

/* `type=quantity`; of two of one type the later one counts. */
static int add_limit(const struct lkg_flag_use *use, struct lkg_span item, struct lkg_value *limits,
                     char *why)
{
        LKG_CLEANUP(lkg_quantity_deinit) struct lkg_quantity quantity = LKG_QUANTITY_INIT;
        LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf text = LKG_BUF_INIT;
        struct lkg_span type, amount;
        int r;

        if (!lkg_span_cut(item, '=', &type, &amount) || lkg_span_count(amount, '=') > 0)
                return no_reservation(item, why);
        if (!lkg_name_is_memory(type))
                return lkg_refuse(why, "unknown type of memory %s; want memory or hugepages-SIZE",
                                  LKG_PIECE(type));
        r = lkg_quantity_parse(amount.data, amount.size, &quantity, why);
        if (r < 0)
                return r;
        lkg_quantity_text(&quantity, amount, &text);
        (void)lkg_map_set(limits, type.data, type.size,
                          lkg_flag_string(use, lkg_span(lkg_buf_text(&text), text.size)));
        return 0;
}

static int add_reservation(struct lkg_flag_use *use, int32_t node, struct lkg_span text, char *why)
{
        struct lkg_value *map = lkg_value_new_map(use->source, 0, 0);
        struct lkg_value *limits = lkg_value_new_map(use->source, 0, 0);
        struct lkg_span item;
        int r = 0;

        while (r == 0 && lkg_span_next(&text, ',', &item))
                r = add_limit(use, item, limits, why);
        (void)lkg_map_set(map, "limits", strlen("limits"), limits);
        if (node)
                (void)lkg_map_set(map, "numaNode", strlen("numaNode"), lkg_flag_number(use, node));
        lkg_list_append(use->made, map);
        return r;
}

/* The number of the node is cut to 32 bits, as the component does. An empty text changes nothing. */
static int parse_reserved_memory(struct lkg_flag_use *use, char *why)
{
        struct lkg_span rest = use->text, part, number, limits;
        int r = 0;

        if (*use->used & LKG_FLAG_GONE)
                return lkg_refuse(why, "the component takes none after an empty one; leave that out");
        if (use->text.size == 0) {
                *use->used |= LKG_FLAG_GONE;
                return 1;
        }
        while (r == 0 && lkg_span_next(&rest, ';', &part)) {
                int64_t node;

                if (!lkg_span_cut(part, ':', &number, &limits) || lkg_span_count(limits, ':') > 0 ||
                    lkg_int_parse(number.data, number.size, 10, 64, &node, NULL) < 0)
                        return no_reservation(part, why);
                r = add_reservation(use, (int32_t)(uint32_t)node, limits, why);
        }
        return r;
}

/* ---- verbosity by source file: `pattern=N,pattern=N` ---- */

static void add_pattern(struct lkg_flag_use *use, struct lkg_span pattern, uint64_t verbosity)
{
        static const char name[] = "verbosity";
        struct lkg_value *map = lkg_value_new_map(use->source, 0, 0);

        put_member(use, map, "filePattern", pattern);
        if (verbosity)
                (void)lkg_map_set(map, name, strlen(name), lkg_flag_number(use, (int64_t)verbosity));
        lkg_list_append(use->made, map);
}

/* Empty items are skipped, nothing is trimmed. */
static int parse_vmodule(struct lkg_flag_use *use, char *why)
{
        struct lkg_span rest = use->text, item, pattern, level;

        while (lkg_span_next(&rest, ',', &item)) {
                uint64_t n;

                if (item.size == 0)
                        continue;
                (void)lkg_span_cut(item, '=', &pattern, &level);
                if (pattern.size == 0 || level.size == 0 || lkg_span_count(level, '=') > 0)
                        return lkg_refuse(why, "%s is not pattern=N", LKG_PIECE(item));
                if (lkg_uint_parse(level.data, level.size, 10, 31, &n, NULL) < 0)
                        return lkg_refuse(why, "%s is not a verbosity; want a number up to 2147483647",
                                          LKG_PIECE(level));
                add_pattern(use, pattern, n);
        }
        return 0;
}

/* ---- types ---- */

/* What a use keeps of the field's value. */
enum keeping {
        KEEP_NOTHING,
        KEEP_EARLIER, /* of uses before it: the first one clears the document's value, also with an empty text */
        KEEP_ALL,
};

static int parse_pairs(struct lkg_flag_use *use, char *why);

static const struct list_type {
        const char *type;
        enum lkg_type made;
        enum keeping keep;
        lkg_flag_parse_fn *parse;
        char separator; /* parse_pairs(): between name and value */
        put_pair *pair;
} types[] = {
        { "stringSlice", LKG_LIST, KEEP_EARLIER, parse_slice },
        { "mapStringBool", LKG_MAP, KEEP_ALL, parse_pairs, '=', put_gate },
        { "mapStringString", LKG_MAP, KEEP_EARLIER, parse_pairs, '=', put_text },
        { "mapStringStringNoSplit", LKG_MAP, KEEP_EARLIER, parse_unsplit },
        { "nodeLabels", LKG_MAP, KEEP_NOTHING, parse_labels },
        { "langleMap", LKG_MAP, KEEP_EARLIER, parse_pairs, '<', put_text },
        { "colonMultimap", LKG_MAP, KEEP_EARLIER, parse_pairs, ':', put_header },
        { "taints", LKG_LIST, KEEP_NOTHING, parse_taints },
        { "reservedMemory", LKG_LIST, KEEP_EARLIER, parse_reserved_memory },
        { "vmodule", LKG_LIST, KEEP_ALL, parse_vmodule },
};

static const struct list_type *type_of(const struct lkg_flag_use *use)
{
        for (size_t i = 0; i < LKG_ARRAY_SIZE(types); i++)
                if (strcmp(types[i].type, use->flag->type) == 0)
                        return &types[i];
        return NULL;
}

/* Empty items are skipped. */
static int parse_pairs(struct lkg_flag_use *use, char *why)
{
        const struct list_type *type = type_of(use);
        struct lkg_span rest = use->text, item;
        int r = 0;

        while (r == 0 && lkg_span_next(&rest, ',', &item))
                r = item.size > 0 ? one_pair(use, item, type->separator, type->pair, why) : 0;
        return r;
}

/* The collection that a use adds to. */
static struct lkg_value *begin(const struct lkg_flag_use *use, bool keep, enum lkg_type type)
{
        const struct lkg_value *before =
                use->node && keep ? lkg_object_get(use->apply->object, use->node->field->path) : NULL;
        struct lkg_value *list;

        if (before && lkg_value_type(before) != type)
                before = NULL;
        if (type == LKG_MAP) /* each member has a source of its own */
                return before ? lkg_value_clone_shallow(before) : lkg_value_new_map(use->source, 0, 0);
        list = lkg_value_new_list(use->source, 0, 0);
        for (struct lkg_member m = { 0 }; lkg_value_next(before, &m);)
                lkg_list_append(list, lkg_value_ref(m.value));
        return list;
}

lkg_flag_parse_fn *lkg_flag_begin_list(struct lkg_flag_use *use)
{
        const struct list_type *type = type_of(use);
        bool again = *use->used & LKG_FLAG_AGAIN;

        if (!type)
                return NULL;
        use->made = begin(use, type->keep == KEEP_ALL || (type->keep == KEEP_EARLIER && again), type->made);
        return type->parse;
}
