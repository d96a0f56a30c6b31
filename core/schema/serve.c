/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A kubelet with --config and --config-dir decodes and defaults the base first and merges drop-ins into the
 * result (docs/specification.md 3.5). A kubelet that reads one merged file does it in the reverse order. Its
 * result differs if a default depends on another field, if the base is encoded without empty values, or if a
 * drop-in's name has another case. So the difference is computed, not guessed: load the merged document like
 * that kubelet, compare it with the required result, and set every different value explicitly.
 */
#include "judge.h"

#include <lkg/text.h>
#include <lkg/documents.h>
#include <lkg/tree.h>

#include "values/values.h"

#define ROUNDS_MAX 3

struct compare {
        const struct lkg_judge *judge;
        struct lkg_report *report; /* NULL = say nothing */
        struct lkg_value *served;  /* being changed; NULL = only count */
        const struct lkg_value *wanted;
        size_t n_differences;
};

/*
 * A component that reads one file rounds reservations up to thousandths, but not those of a drop-in
 * (typed.h, LKG_TYPED_ROUND): no single file can result in `1n`. This has no effect, because all code that
 * uses them rounds them up to whole numbers.
 * Return: 1 if that is the only difference, 0, -ENOMEM.
 */
static int is_rounded(const struct compare *c, const struct lkg_schema_node *node,
                      const struct lkg_value *wanted, const struct lkg_value *got)
{
        LKG_CLEANUP(lkg_report_deinit) struct lkg_report scratch = LKG_REPORT_INIT;
        LKG_CLEANUP(lkg_value_unrefp) struct lkg_value *object = lkg_value_new_map(NULL, 0, 0);
        LKG_CLEANUP(lkg_value_unrefp) struct lkg_value *rounded = NULL;
        struct lkg_where where = lkg_where_of(wanted);
        int r;

        if (!wanted || !got || strcmp(node->field->path, "reservedMemory") != 0)
                return 0;
        r = object ? lkg_object_set(object, node->field->path, lkg_value_ref((struct lkg_value *)wanted))
                   : -ENOMEM;
        if (r == 0)
                r = lkg_typed_decode(lkg_schema_root(c->judge->schema), object, LKG_TYPED_ROUND, &scratch,
                                     NULL, &rounded);
        if (r < 0)
                return r == -EBADMSG ? 0 : r;
        if (!lkg_value_equal(lkg_object_get(rounded, node->field->path), got))
                return 0;
        if (c->report)
                lkg_report_add(
                        c->report, LKG_NOTE, LKG_F_ROUNDED, &where,
                        "%s: what is finer than 1m is rounded up to 1m, because it is served in one file; "
                        "write a whole number",
                        node->field->path);
        return 1;
}

/* Secrets masked; empty for a missing value. */
static void show(const struct lkg_schema_node *node, const struct lkg_value *value, struct lkg_buf *buf)
{
        LKG_CLEANUP(lkg_value_unrefp) struct lkg_value *masked = NULL;

        if (!value)
                return;
        masked = lkg_mask_value(value, lkg_name_secrecy(node->name, strlen(node->name)));
        if (masked)
                lkg_render_json_compact(masked, buf);
}

static void say(const struct compare *c, const struct lkg_schema_node *node, const struct lkg_value *wanted,
                const struct lkg_value *got)
{
        LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf a = LKG_BUF_INIT, b = LKG_BUF_INIT;
        struct lkg_where where = lkg_where_of(wanted);

        /* A path that was made absolute is expected. */
        if (!c->report || node->field->flags & (LKG_FIELD_RESOLVED | LKG_FIELD_SECRET))
                return;
        if (strcmp(node->field->path, LKG_EVICTION_MERGE) == 0 && !(wanted && lkg_value_bool(wanted))) {
                lkg_report_add(
                        c->report, LKG_NOTE, LKG_F_VALUE_ADDED, &where,
                        "%s: false is served: the component completes evictionHard in the base, before "
                        "it merges drop-ins, and with this file alone it would do so behind them",
                        node->field->path);
                return;
        }
        show(node, wanted, &a);
        show(node, got, &b);
        lkg_report_add(
                c->report, LKG_NOTE, LKG_F_VALUE_ADDED, &where,
                "%s: %.200s is served explicitly: the component comes to it because it completes the base "
                "before it merges drop-ins, and with this file alone it would come to %.200s",
                node->field->path, a.data ? a.data : "nothing", b.data ? b.data : "nothing");
}

/*
 * Make an empty value for a component that would default a missing one: an empty list or map is not
 * defaulted.
 */
static int nothing(const struct lkg_schema_node *node, struct lkg_value **ret)
{
        if (node->class == LKG_CLASS_LIST)
                *ret = lkg_value_new_list(NULL, 0, 0);
        else if (node->class == LKG_CLASS_MAP)
                *ret = lkg_value_new_map(NULL, 0, 0);
        else
                return 0;
        return *ret ? 0 : -ENOMEM;
}

static int differs(struct compare *c, const struct lkg_schema_node *node, const struct lkg_value *wanted,
                   const struct lkg_value *got)
{
        struct lkg_value *value = NULL;
        int r;

        r = is_rounded(c, node, wanted, got);
        if (r != 0)
                return r < 0 ? r : 0;
        c->n_differences++;
        if (!c->served)
                return 0;
        say(c, node, wanted, got);
        if (wanted)
                value = lkg_value_ref((struct lkg_value *)wanted);
        else
                r = nothing(node, &value);
        return r < 0 ? r : lkg_object_set(c->served, node->field->path, value);
}

/* An empty list or map is printed like a missing one, unless the field is always printed. */
static const struct lkg_value *printed(const struct lkg_schema_node *node, const struct lkg_value *value)
{
        bool collection = node->class == LKG_CLASS_LIST || node->class == LKG_CLASS_MAP;

        if (value && collection && lkg_value_size(value) == 0 && !(node->field->flags & LKG_FIELD_ALWAYS))
                return NULL;
        return value;
}

/*
 * Do two texts mean the same quantity to the component? (`1e20` and `100E` do not.)
 * Return: 1, 0, -ENOMEM.
 */
static int same_quantity(const struct lkg_value *a, const struct lkg_value *b)
{
        LKG_CLEANUP(lkg_quantity_deinit)
        struct lkg_quantity left = LKG_QUANTITY_INIT, right = LKG_QUANTITY_INIT;
        size_t size_a, size_b;
        const char *text_a = lkg_value_text(a, &size_a), *text_b = lkg_value_text(b, &size_b);
        int r = lkg_quantity_parse(text_a, size_a, &left, NULL);

        if (r == 0)
                r = lkg_quantity_parse(text_b, size_b, &right, NULL);
        if (r < 0)
                return r == -ENOMEM ? r : 0;
        return lkg_quantity_compare(&left, &right) == 0 &&
               lkg_quantity_value(&left) == lkg_quantity_value(&right);
}

/* Return: 1, 0, -ENOMEM. */
static int same(const struct lkg_schema_node *node, const struct lkg_value *a, const struct lkg_value *b)
{
        if (a == b || !a || !b)
                return a == b;
        if (lkg_value_equal(a, b))
                return 1;
        return node->class == LKG_CLASS_QUANTITY ? same_quantity(a, b) : 0;
}

static bool is_header(const struct lkg_schema_node *node)
{
        return strcmp(node->field->path, "kind") == 0 || strcmp(node->field->path, "apiVersion") == 0;
}

/* Typed documents have only fields of the table, in the order of their names. NULL = an empty struct. */
static int compare_members(struct compare *c, const struct lkg_schema_node *node,
                           const struct lkg_value *wanted, const struct lkg_value *got)
{
        struct lkg_beside beside_wanted = { .map = wanted }, beside_got = { .map = got };
        int r = 0;

        for (size_t m = 0; r == 0 && m < node->n_members && wanted != got; m++) {
                const struct lkg_schema_node *member = node->members[m];
                const struct lkg_value *a = lkg_node_value(member, &beside_wanted);
                const struct lkg_value *b = lkg_node_value(member, &beside_got);

                if (member->class == LKG_CLASS_STRUCT && (!member->pointer || (a && b))) {
                        r = compare_members(c, member, a, b);
                        continue;
                }
                r = is_header(member) ? 1 : same(member, printed(member, a), printed(member, b));
                if (r == 0)
                        r = differs(c, member, printed(member, a), printed(member, b));
                else if (r > 0)
                        r = 0;
        }
        return r;
}

/*
 * Compare once; changes *served if @change.
 * Return: 0 and the number of differences.
 */
static int compare_once(const struct lkg_judge *judge, const struct lkg_value *wanted, bool change,
                        struct lkg_report *report, struct lkg_value **served, size_t *ret_n)
{
        LKG_CLEANUP(lkg_report_deinit) struct lkg_report scratch = LKG_REPORT_INIT;
        LKG_CLEANUP(lkg_value_unrefp) struct lkg_value *got = NULL, *changed = NULL;
        struct compare c = { .judge = judge, .report = report, .wanted = wanted };
        int r = lkg_kubelet_load(judge->schema, *served, NULL, 0, &judge->flag_gates, &scratch, NULL, &got);

        if (r == 0 && change) {
                changed = lkg_value_clone_shallow(*served);
                if (!changed)
                        return -ENOMEM;
                c.served = changed;
        }
        if (r == 0)
                r = compare_members(&c, lkg_schema_root(judge->schema), wanted, got);
        if (r < 0)
                return r;
        *ret_n = c.n_differences;
        if (change && c.n_differences > 0) {
                lkg_value_unref(*served);
                *served = LKG_STEAL(changed);
        }
        return 0;
}

static bool is_other_spelling(const char *key, size_t size)
{
        for (size_t i = 0; i < LKG_HEADER_FIELDS; i++)
                if (lkg_merge_key_folds(lkg_header_fields[i], key, size) &&
                    (size != strlen(lkg_header_fields[i]) || memcmp(key, lkg_header_fields[i], size) != 0))
                        return true;
        return false;
}

/*
 * A drop-in's `apiversion` is an unknown field; in the one file that the kubelet reads it would be the
 * header, because names match in any case there. If there are such names, replace *doc by a copy without
 * them.
 */
static int drop_other_spellings(struct lkg_value **doc)
{
        const struct lkg_value *merged = *doc;
        LKG_CLEANUP(lkg_value_unrefp) struct lkg_value *copy = NULL;

        for (size_t i = 0; i < lkg_value_size(merged); i++) {
                const char *key;
                size_t size;

                (void)lkg_map_at(merged, i, &key, &size);
                if (!is_other_spelling(key, size))
                        continue;
                if (!copy && !(copy = lkg_value_clone_shallow(merged)))
                        return -ENOMEM;
                if (lkg_map_remove(copy, key, size) < 0)
                        return -ENOMEM;
        }
        if (copy) {
                lkg_value_unref(*doc);
                *doc = LKG_STEAL(copy);
        }
        return 0;
}

int lkg_serve(const struct lkg_judge *judge, const struct lkg_value *merged, const struct lkg_value *object,
              struct lkg_report *report, struct lkg_value **ret)
{
        LKG_CLEANUP(lkg_value_unrefp) struct lkg_value *served = lkg_value_ref((struct lkg_value *)merged);
        LKG_CLEANUP(lkg_value_unrefp) struct lkg_value *wanted = lkg_value_clone_shallow(object);
        size_t n = 0;
        unsigned round = 0;
        int r = wanted ? drop_other_spellings(&served) : -ENOMEM;

        if (r == 0)
                r = lkg_defaults_eviction_done(wanted);
        if (r < 0)
                return r;

        do { /* an added value may change the default of another field */
                r = compare_once(judge, wanted, round < ROUNDS_MAX, report, &served, &n);
        } while (r == 0 && n > 0 && round++ < ROUNDS_MAX);
        if (r < 0)
                return r;
        if (n > 0) {
                lkg_report_add(
                        report, LKG_ERROR, LKG_F_NOT_IN_ONE_FILE, NULL,
                        "%zu fields of the merged result cannot be said in one file; write the values of "
                        "the drop-ins into the base",
                        n);
                return -EBADMSG;
        }
        *ret = LKG_STEAL(served);
        return 0;
}
