/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Merging and patching in place, with shared parts, at every depth; the results are in rows/documents.rows.
 * Rule: docs/specification.md 3.4.
 */
#include "config-helpers.h"

#include "core/layers/layers.h"

/* A running result that is changed in place is the same, and what others hold of it does not change. */
TEST(test_into)
{
        struct lkg_value *running = doc("a: 0\nm: {a: 0}\n"), *plain = doc("a: 0\nm: {a: 0}\n");
        char text[128], kept_text[4096] = "";
        struct lkg_value *kept = NULL;

        for (unsigned i = 0; i < 300; i++) {
                struct lkg_value *patch, *next = NULL;

                (void)snprintf(text, sizeof(text),
                               "a: %u\nk%u: %u\nk%u: null\nm: {a: %u, x%u: 1, x%u: null}\n", i, i * 7 % 101,
                               i, i * 5 % 101, i, i % 9, (i + 4) % 9);
                patch = doc(text);
                next = lkg_merge_json(plain, patch);
                lkg_value_unref(plain);
                plain = next;
                running = lkg_merge_json_into(running, patch);
                assert_true(lkg_value_equal(running, plain));
                if (kept)
                        assert_string_equal(json(kept), kept_text);
                if (i % 10 == 3) {
                        lkg_value_unref(kept);
                        kept = lkg_value_ref(running);
                        (void)snprintf(kept_text, sizeof(kept_text), "%s", json(kept));
                }
                lkg_value_unref(patch);
        }
        lkg_value_unref(kept);
        lkg_value_unref(running);
        lkg_value_unref(plain);
}

TEST(test_unchanged_is_shared)
{
        struct lkg_value *base = doc("a: {b: 1}\nc: {d: 2}\n"), *patch = doc("a: {b: 3}\n"),
                         *none = doc("{\"x\":null}");
        struct lkg_value *merged = NULL, *same = NULL;

        merged = lkg_merge_json(base, patch);
        assert_ptr_equal(lkg_map_get(merged, "c"), lkg_map_get(base, "c"));
        same = lkg_merge_json(base, none);
        assert_ptr_equal(same, base);
        lkg_value_unref(base);
        lkg_value_unref(patch);
        lkg_value_unref(none);
        lkg_value_unref(merged);
        lkg_value_unref(same);
}

/* Both documents are nearly 1,000 levels deep and differ only at the last level. */
TEST(test_deep_merge)
{
        enum { DEPTH = 990 };
        struct lkg_value *tree[2], *merged = NULL;
        const struct lkg_value *value;

        for (int k = 0; k < 2; k++) {
                tree[k] = doc(k ? "{\"x\":2,\"gone\":null}" : "{\"x\":1,\"gone\":1}");
                for (unsigned i = 0; i < DEPTH; i++) {
                        struct lkg_value *outer = lkg_value_new_map(NULL, 0, 0);

                        assert_int_equal(lkg_map_set(outer, "k", 1, tree[k]), 0);
                        tree[k] = outer;
                }
        }
        merged = lkg_merge_json(tree[0], tree[1]);
        value = merged;
        for (unsigned i = 0; i < DEPTH; i++)
                value = lkg_map_get(value, "k");
        assert_string_equal(json(value), "{\"x\":2}");
        lkg_value_unref(tree[0]);
        lkg_value_unref(tree[1]);
        lkg_value_unref(merged);
}

static char *nested(size_t depth)
{
        struct lkg_buf buf = LKG_BUF_INIT;

        for (size_t i = 0; i < depth; i++)
                lkg_buf_puts(&buf, "{\"a\":");
        lkg_buf_puts(&buf, "[{\"b\":null}]");
        for (size_t i = 0; i < depth; i++)
                lkg_buf_putc(&buf, '}');
        return lkg_buf_steal(&buf, NULL);
}

/* Merging and pruning use no stack that grows with the document. */
TEST(test_deep_strategic_merge)
{
        LKG_CLEANUP(lkg_freep) char *text = nested(900);
        struct lkg_value *deep = doc(text), *none = doc("{\"a\":1}"), *merged = NULL;
        struct lkg_report report = LKG_REPORT_INIT;

        assert_int_equal(lkg_merge_strategic(deep, deep, &report, &merged), 0);
        assert_true(lkg_value_equal(deep, merged));
        lkg_value_unref(merged);
        assert_int_equal(lkg_merge_strategic(none, deep, &report, &merged), 0);
        assert_false(lkg_value_equal(deep, merged));
        lkg_value_unref(merged);
        lkg_value_unref(deep);
        lkg_value_unref(none);
}

/* Each copy of /a below itself doubles the tree: forty of them would make 10^12 values. */
TEST(test_copies_are_bounded)
{
        struct lkg_buf text = LKG_BUF_INIT;
        struct lkg_value *base = doc("{\"a\":{\"x\":1}}"), *patch, *result = NULL;
        struct lkg_report report = LKG_REPORT_INIT;

        for (unsigned i = 0; i < 40; i++)
                lkg_buf_printf(&text, "%s{\"op\":\"copy\",\"from\":\"/a\",\"path\":\"/a/c%u\"}",
                               i ? "," : "[", i);
        lkg_buf_puts(&text, "]");
        patch = doc_from(text.data, 0);
        assert_int_equal(lkg_patch_json(base, patch, &report, &result), -EBADMSG);
        assert_null(result);
        assert_non_null(strstr(report.findings[0].text, "1000000"));
        lkg_report_deinit(&report);
        lkg_value_unref(base);
        lkg_value_unref(patch);
        lkg_buf_deinit(&text);
}
