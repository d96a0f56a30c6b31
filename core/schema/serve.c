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
        struct lkg_report *report;
        struct lkg_value *served; /* being changed; NULL = only count */
        size_t n_differences;
};

/*
 * A component that reads one file rounds reservations up to thousandths, but not those of a drop-in
 * (typed.h, LKG_TYPED_ROUND): no single file can result in `1n`. This has no effect, because all code that
 * uses them rounds them up to whole numbers. Is that the only difference?
 */
static bool is_rounded(const struct compare *c, const struct lkg_schema_node *node,
                       const struct lkg_value *wanted, const struct lkg_value *got)
{
        LKG_CLEANUP(lkg_report_deinit) struct lkg_report scratch = LKG_REPORT_INIT;
        LKG_CLEANUP(lkg_value_unrefp) struct lkg_value *object = NULL, *rounded = NULL;

        if (!wanted || !got || strcmp(node->field->path, "reservedMemory") != 0)
                return false;
        object = lkg_value_new_map(NULL, 0, 0);
        lkg_object_set(object, node->field->path, lkg_value_ref((struct lkg_value *)wanted));
        rounded =
                lkg_typed_decode(lkg_schema_root(c->judge->schema), object, LKG_TYPED_ROUND, &scratch, NULL);
        if (!lkg_value_equal(lkg_object_get(rounded, node->field->path), got))
                return false;
        lkg_report_add(c->report, LKG_NOTE, LKG_F_ROUNDED, LKG_AT(wanted),
                       "%s: what is finer than 1m is rounded up to 1m, because it is served in one file; "
                       "write a whole number",
                       node->field->path);
        return true;
}

/* Secrets masked. */
static const char *show(const struct lkg_schema_node *node, const struct lkg_value *value,
                        struct lkg_buf *buf)
{
        LKG_CLEANUP(lkg_value_unrefp) struct lkg_value *masked = NULL;

        if (!value)
                return "nothing";
        masked = lkg_mask_value(value, lkg_name_secrecy(node->name, strlen(node->name)));
        lkg_render_json_compact(masked, buf);
        return lkg_buf_text(buf);
}

static void say_difference(const struct compare *c, const struct lkg_schema_node *node,
                           const struct lkg_value *wanted, const struct lkg_value *got)
{
        LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf a = LKG_BUF_INIT, b = LKG_BUF_INIT;

        /* A path that was made absolute is expected. */
        if (node->field->flags & (LKG_FIELD_RESOLVED | LKG_FIELD_SECRET))
                return;
        if (strcmp(node->field->path, LKG_EVICTION_MERGE) == 0 && !(wanted && lkg_value_bool(wanted))) {
                lkg_report_add(
                        c->report, LKG_NOTE, LKG_F_VALUE_ADDED, LKG_AT(wanted),
                        "%s: false is served: the component completes evictionHard in the base, before "
                        "it merges drop-ins, and with this file alone it would do so behind them",
                        node->field->path);
                return;
        }
        lkg_report_add(
                c->report, LKG_NOTE, LKG_F_VALUE_ADDED, LKG_AT(wanted),
                "%s: %.200s is served explicitly: the component comes to it because it completes the base "
                "before it merges drop-ins, and with this file alone it would come to %.200s",
                node->field->path, show(node, wanted, &a), show(node, got, &b));
}

/*
 * Make an empty value for a component that would default a missing one: an empty list or map is not
 * defaulted.
 */
static struct lkg_value *nothing(const struct lkg_schema_node *node)
{
        return node->class == LKG_CLASS_LIST  ? lkg_value_new_list(NULL, 0, 0)
               : node->class == LKG_CLASS_MAP ? lkg_value_new_map(NULL, 0, 0)
                                              : NULL;
}

static void differs(struct compare *c, const struct lkg_schema_node *node, const struct lkg_value *wanted,
                    const struct lkg_value *got)
{
        if (is_rounded(c, node, wanted, got))
                return;
        c->n_differences++;
        if (!c->served)
                return;
        say_difference(c, node, wanted, got);
        lkg_object_set(c->served, node->field->path,
                       wanted ? lkg_value_ref((struct lkg_value *)wanted) : nothing(node));
}

/* An empty list or map is printed like a missing one, unless the field is always printed. */
static const struct lkg_value *printed(const struct lkg_schema_node *node, const struct lkg_value *value)
{
        bool collection = node->class == LKG_CLASS_LIST || node->class == LKG_CLASS_MAP;

        if (value && collection && lkg_value_size(value) == 0 && !(node->field->flags & LKG_FIELD_ALWAYS))
                return NULL;
        return value;
}

/* Do two texts mean the same quantity to the component? (`1e20` and `100E` do not.) */
static bool same_quantity(const struct lkg_value *a, const struct lkg_value *b)
{
        LKG_CLEANUP(lkg_quantity_deinit)
        struct lkg_quantity left = LKG_QUANTITY_INIT, right = LKG_QUANTITY_INIT;
        struct lkg_span x = lkg_text_of(a), y = lkg_text_of(b);

        return lkg_quantity_parse(x.data, x.size, &left, NULL) == 0 &&
               lkg_quantity_parse(y.data, y.size, &right, NULL) == 0 &&
               lkg_quantity_compare(&left, &right) == 0 &&
               lkg_quantity_value(&left) == lkg_quantity_value(&right);
}

static bool same(const struct lkg_schema_node *node, const struct lkg_value *a, const struct lkg_value *b)
{
        return lkg_value_equal(a, b) || (a && b && node->class == LKG_CLASS_QUANTITY && same_quantity(a, b));
}

static bool is_header(const struct lkg_schema_node *node)
{
        return strcmp(node->field->path, "kind") == 0 || strcmp(node->field->path, "apiVersion") == 0;
}

/* Typed documents have only fields of the table. NULL = an empty struct. */
static void compare_members(struct compare *c, const struct lkg_schema_node *node,
                            const struct lkg_value *wanted, const struct lkg_value *got)
{
        size_t i = 0, k = 0;

        for (size_t m = 0; m < node->n_members && wanted != got; m++) {
                const struct lkg_schema_node *member = node->members[m];
                const struct lkg_value *a = lkg_node_value(member, wanted, &i);
                const struct lkg_value *b = lkg_node_value(member, got, &k);

                if (member->class == LKG_CLASS_STRUCT && (!member->pointer || (a && b)))
                        compare_members(c, member, a, b);
                else if (!is_header(member) && !same(member, printed(member, a), printed(member, b)))
                        differs(c, member, printed(member, a), printed(member, b));
        }
}

/* Compare once; changes *served if @change. Return: the number of differences. */
static size_t compare_once(const struct lkg_judge *judge, const struct lkg_value *wanted, bool change,
                           struct lkg_report *report, struct lkg_value **served)
{
        LKG_CLEANUP(lkg_report_deinit) struct lkg_report scratch = LKG_REPORT_INIT;
        LKG_CLEANUP(lkg_value_unrefp) struct lkg_value *got = NULL, *changed = NULL;
        struct compare c = { .judge = judge, .report = report };

        got = lkg_kubelet_load(judge->schema, *served, NULL, 0, &judge->flag_gates, &scratch, NULL);
        if (change)
                c.served = changed = lkg_value_clone_shallow(*served);
        compare_members(&c, lkg_schema_root(judge->schema), wanted, got);
        if (change && c.n_differences > 0) {
                lkg_value_unref(*served);
                *served = LKG_STEAL(changed);
        }
        return c.n_differences;
}

/*
 * A drop-in's `apiversion` is an unknown field; in the one file that the kubelet reads it would be the
 * header, because names match in any case there.
 */
static struct lkg_value *without_spelling(const struct lkg_value *doc, const struct lkg_member *m,
                                          void *userdata)
{
        (void)doc;
        (void)userdata;
        for (size_t i = 0; i < LKG_HEADER_FIELDS; i++)
                if (lkg_merge_key_folds(lkg_header_fields[i], m->key.data, m->key.size) &&
                    !lkg_span_is(m->key, lkg_header_fields[i]))
                        return NULL;
        return lkg_value_ref(m->value);
}

int lkg_serve(const struct lkg_judge *judge, const struct lkg_value *merged, const struct lkg_value *object,
              struct lkg_report *report, struct lkg_value **ret)
{
        LKG_CLEANUP(lkg_value_unrefp)
        struct lkg_value *served = lkg_value_rewrite(merged, without_spelling, NULL);
        LKG_CLEANUP(lkg_value_unrefp) struct lkg_value *wanted = lkg_value_clone_shallow(object);
        unsigned round = 0;
        size_t n;

        lkg_defaults_eviction_done(wanted);
        do /* an added value may change the default of another field */
                n = compare_once(judge, wanted, round < ROUNDS_MAX, report, &served);
        while (n > 0 && round++ < ROUNDS_MAX);
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

/* ---- the effective document: checking one that has no layers any more, and where each value comes from ---- */

struct lkg_value *lkg_judge_document(const struct lkg_judge *judge, struct lkg_value *doc)
{
        LKG_CLEANUP(lkg_judge_freep) struct lkg_judge *again = NULL;
        struct lkg_judge_config config = judge->config;
        struct lkg_value *ret;
        struct lkg_layer_info layer = { .role = LKG_LAYER_BASE, .name = "", .doc = doc, .whole = true };
        struct lkg_candidate candidate = { .state = LKG_CANDIDATE_VALID,
                                           .doc = lkg_value_ref(doc),
                                           .merged = doc,
                                           .base = doc,
                                           .report = LKG_REPORT_INIT,
                                           .layers = &layer,
                                           .n_layers = 1,
                                           .has_base = true };

        config.lint = false;            /* the report is not used */
        again = lkg_judge_new(&config); /* another judge: the first keeps its results for the layers */
        lkg_judge_candidate(&candidate, again);
        ret = lkg_has_misfit(&candidate.report) ? NULL : LKG_STEAL(candidate.effective);
        lkg_value_unref(candidate.effective);
        lkg_value_unref(candidate.doc);
        lkg_report_deinit(&candidate.report);
        return ret;
}

static void put_comment(const struct lkg_value *value, struct lkg_buf *buf)
{
        const struct lkg_source *source = lkg_value_source(value);
        const char *text = source && source->layer ? source->layer : "default";
        size_t size = strlen(text);

        lkg_buf_puts(buf, " # ");
        for (size_t i = 0; i < size;) {
                uint32_t c;
                size_t n = lkg_utf8_decode((const unsigned char *)text + i, size - i, &c);

                if (n > 0 && !lkg_is_hidden(c))
                        lkg_buf_append(buf, text + i, n);
                else
                        lkg_buf_putc(buf, '?');
                i += n ? n : 1;
        }
}

void lkg_effective_render(const struct lkg_value *effective, struct lkg_buf *buf)
{
        lkg_render_commented(effective, put_comment, buf);
}
