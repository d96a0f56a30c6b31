/* SPDX-License-Identifier: Apache-2.0 */
/*
 * JSON merge patch, as the component's library applies it; origins and shadows; cost.
 * Rule: docs/specification.md 3.4.
 */
#include "config-helpers.h"

static const struct {
        const char *base, *patch, *want;
        bool unstable; /* the library's exception: applied again, a list replaces a list */
} cases[] = {
        /* RFC 7386, appendix A, where the library agrees with it */
        { "{\"a\":\"b\"}", "{\"a\":\"c\"}", "{\"a\":\"c\"}" },
        { "{\"a\":\"b\"}", "{\"b\":\"c\"}", "{\"a\":\"b\",\"b\":\"c\"}" },
        { "{\"a\":\"b\"}", "{\"a\":null}", "{}" },
        { "{\"a\":\"b\",\"b\":\"c\"}", "{\"a\":null}", "{\"b\":\"c\"}" },
        { "{\"a\":[\"b\"]}", "{\"a\":\"c\"}", "{\"a\":\"c\"}" },
        { "{\"a\":\"c\"}", "{\"a\":[\"b\"]}", "{\"a\":[\"b\"]}" },
        { "{\"a\":{\"b\":\"c\"}}", "{\"a\":{\"b\":\"d\",\"c\":null}}", "{\"a\":{\"b\":\"d\"}}" },
        { "{\"a\":[{\"b\":\"c\"}]}", "{\"a\":[1]}", "{\"a\":[1]}" },
        { "{\"e\":null}", "{\"a\":1}", "{\"a\":1,\"e\":null}" },
        { "{}", "{\"a\":{\"bb\":{\"ccc\":null}}}", "{\"a\":{\"bb\":{}}}" },
        /* null with nothing to remove */
        { "{}", "{\"a\":null}", "{}" },
        { "{\"a\":{\"b\":{\"c\":1,\"d\":2}}}", "{\"a\":{\"b\":{\"c\":null}}}", "{\"a\":{\"b\":{\"d\":2}}}" },
        { "{\"a\":1}", "{\"a\":{\"b\":null,\"c\":{\"d\":null}}}", "{\"a\":{\"c\":{}}}" },
        /* lists: null members of maps are removed, null items stay, unless the list replaces a map */
        { "{\"a\":[{\"b\":1}]}", "{\"a\":[{\"b\":null}]}", "{\"a\":[{}]}" },
        { "{}", "{\"a\":[null,{\"b\":null,\"c\":[null,{\"d\":null}]}]}",
          "{\"a\":[null,{\"c\":[null,{}]}]}" },
        { "{\"a\":{\"x\":1}}", "{\"a\":[{\"b\":null}]}", "{\"a\":[{\"b\":null}]}", true },
        /* empty collections */
        { "{\"a\":{\"b\":1}}", "{\"a\":{}}", "{\"a\":{\"b\":1}}" },
        { "{\"a\":[1]}", "{\"a\":[]}", "{\"a\":[]}" },
        { "{\"a\":[1]}", "{\"a\":{}}", "{\"a\":{}}" },
        { "{\"a\":null}", "{\"a\":{}}", "{\"a\":{}}" },
        { "{\"a\":1}", "{}", "{\"a\":1}" },
        /* keys are bytes; directives are plain keys */
        { "{\"\":1}", "{\"\":null}", "{}" },
        { "{\"maxPods\":1}", "{\"maxpods\":2}", "{\"maxPods\":1,\"maxpods\":2}" },
        { "{\"a\":{\"b\":1}}", "{\"a\":{\"$patch\":\"replace\"}}",
          "{\"a\":{\"$patch\":\"replace\",\"b\":1}}" },
        /* documents that are not maps */
        { "{\"a\":\"b\"}", "[\"c\"]", "[\"c\"]" },
        { "[1,2]", "{\"a\":\"b\",\"c\":null}", "{\"a\":\"b\"}" },
        { "\"x\"", "{\"a\":null}", "{}" },
};

TEST(test_table)
{
        for (size_t i = 0; i < LKG_ARRAY_SIZE(cases); i++) {
                struct lkg_value *base = doc(cases[i].base), *patch = doc(cases[i].patch), *merged = NULL,
                                 *twice = NULL;
                const char *before = json(base);

                merged = lkg_merge_json(base, patch);
                assert_string_equal(json(merged), cases[i].want);
                assert_string_equal(json(base), before); /* inputs are never changed */
                twice = lkg_merge_json(merged, patch);
                assert_int_equal(lkg_value_equal(merged, twice), !cases[i].unstable); /* idempotent */
                lkg_value_unref(base);
                lkg_value_unref(patch);
                lkg_value_unref(merged);
                lkg_value_unref(twice);
        }
}

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

TEST(test_shadows)
{
        struct lkg_value *base = doc("a: 1\nb: {c: 2}\nd: {x: 1}\n");
        struct lkg_value *one = doc("a: 10\nb: {c: 20}\nd: 5\n"), *two = doc("a: 100\nd: null\n");
        struct lkg_value *m1 = NULL, *m2 = NULL;
        const struct lkg_value *a;

        m1 = lkg_merge_json(base, one);
        m2 = lkg_merge_json(m1, two);
        a = lkg_map_get(m2, "a");
        assert_string_equal(json(a), "100");
        assert_string_equal(json(lkg_value_shadowed(a)), "10");
        assert_string_equal(json(lkg_value_shadowed(lkg_value_shadowed(a))), "1");
        assert_null(lkg_value_shadowed(lkg_value_shadowed(lkg_value_shadowed(a))));
        assert_string_equal(json(lkg_value_shadowed(lkg_value_get_pointer(m2, "b.c"))), "2");
        assert_string_equal(json(lkg_value_shadowed(lkg_map_get(m1, "d"))), "{\"x\":1}");
        assert_null(lkg_map_get(m2, "d"));
        assert_null(lkg_value_shadowed(lkg_map_get(one, "a"))); /* the patch itself is not affected */
        lkg_value_unref(base);
        lkg_value_unref(one);
        lkg_value_unref(two);
        assert_string_equal(json(lkg_value_shadowed(a)), "10"); /* kept alive by the result */
        lkg_value_unref(m1);
        lkg_value_unref(m2);
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
