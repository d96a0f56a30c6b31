/* SPDX-License-Identifier: Apache-2.0 */
/* Strategic merge patch for kinds whose lists are all atomic. */
#include "config-helpers.h"

static const struct {
        const char *base, *patch, *want; /* a want that starts with "f:" is the finding's text */
} rows[] = {
        /* like a JSON merge patch */
        { "{\"a\":1,\"b\":2}", "{\"a\":3}", "{\"a\":3,\"b\":2}" },
        { "{\"a\":{\"b\":1,\"c\":2}}", "{\"a\":{\"b\":null,\"d\":3}}", "{\"a\":{\"c\":2,\"d\":3}}" },
        { "{\"a\":1}", "{\"b\":null}", "{\"a\":1}" },
        { "{}", "{\"a\":{\"b\":null,\"c\":[{\"d\":null}]}}", "{\"a\":{\"c\":[{}]}}" },
        { "{\"a\":{\"b\":1}}", "{\"a\":2}", "{\"a\":2}" },
        { "{\"a\":2}", "{\"a\":{\"b\":1,\"c\":null}}", "{\"a\":{\"b\":1}}" },
        { "{\"a\":{\"b\":1}}", "{\"a\":{}}", "{\"a\":{\"b\":1}}" },
        /* lists are replaced verbatim, nulls and stray directives included */
        { "{\"a\":[1,2]}", "{\"a\":[3]}", "{\"a\":[3]}" },
        { "{\"a\":[{\"k\":1}]}", "{\"a\":[{\"k\":null},null]}", "{\"a\":[{\"k\":null},null]}" },
        { "{\"a\":[1]}", "{\"a\":[]}", "{\"a\":[]}" },
        /* $patch */
        { "{\"a\":{\"b\":1}}", "{\"a\":{\"$patch\":\"replace\",\"c\":null,\"d\":2}}",
          "{\"a\":{\"c\":null,\"d\":2}}" },
        { "{\"a\":{\"b\":1},\"c\":2}", "{\"a\":{\"$patch\":\"delete\"}}", "{\"a\":{},\"c\":2}" },
        { "{\"a\":1}", "{\"$patch\":\"delete\"}", "{}" },
        { "{\"a\":1}", "{\"$patch\":\"replace\",\"b\":2}", "{\"b\":2}" },
        { "{\"a\":1}", "{\"b\":{\"$patch\":\"replace\",\"c\":3}}", "{\"a\":1}" },
        { "{\"a\":1}", "{\"a\":{\"$patch\":\"replace\",\"c\":3}}", "{\"a\":1}" },
        { "{\"a\":{\"b\":1}}", "{\"a\":{\"$patch\":\"merge\"}}",
          "f:the value of $patch in a map must be replace or delete" },
        { "{\"a\":{\"b\":1}}", "{\"a\":{\"$patch\":null}}",
          "f:the value of $patch in a map must be replace or delete" },
        /* $deleteFromPrimitiveList */
        { "{\"l\":[\"a\",\"b\",\"a\"]}", "{\"$deleteFromPrimitiveList/l\":[\"a\"]}", "{\"l\":[\"b\"]}" },
        { "{\"m\":{\"l\":[1,2]}}", "{\"m\":{\"$deleteFromPrimitiveList/l\":[2,3]}}", "{\"m\":{\"l\":[1]}}" },
        { "{\"a\":1}", "{\"$deleteFromPrimitiveList/l\":[1]}", "{\"a\":1}" },
        { "{\"l\":[1]}", "{\"$deleteFromPrimitiveList\":[1]}", "f:write $deleteFromPrimitiveList/FIELD" },
        { "{\"l\":[1]}", "{\"$deleteFromPrimitiveList/l\":1}",
          "f:the value of $deleteFromPrimitiveList must be a list" },
        /* $setElementOrder */
        { "{\"l\":[1,2,3,4]}", "{\"$setElementOrder/l\":[3,1]}", "{\"l\":[2,3,1,4]}" },
        { "{\"l\":[1,2]}", "{\"$setElementOrder/l\":[2,9,1]}", "{\"l\":[2,1]}" },
        { "{\"l\":[1,2]}", "{\"l\":[5,6],\"$setElementOrder/l\":[5,6]}", "{\"l\":[5,6]}" },
        { "{\"l\":[1,2]}", "{\"l\":[6,5],\"$setElementOrder/l\":[5,6]}",
          "f:$setElementOrder does not list the patch's own items in their order" },
        { "{\"l\":[1]}", "{\"$setElementOrder/l\":\"x\"}",
          "f:the value of $setElementOrder must be a list" },
        { "{\"l\":[1]}", "{\"$setElementOrder\":[1]}", "f:write $setElementOrder/FIELD" },
        /* $retainKeys */
        { "{\"m\":{\"a\":1,\"b\":2}}", "{\"m\":{\"$retainKeys\":[\"b\",\"c\"],\"c\":3}}",
          "{\"m\":{\"b\":2,\"c\":3}}" },
        { "{\"m\":{\"a\":1}}", "{\"m\":{\"$retainKeys\":[\"a\"],\"c\":3}}",
          "f:the patch sets a key that its $retainKeys does not list" },
        { "{\"m\":{\"a\":1}}", "{\"m\":{\"$retainKeys\":\"a\"}}",
          "f:the value of $retainKeys must be a list of keys" },
        /* not maps */
        { "{\"a\":1}", "[1]", "f:a strategic merge patch must be a map" },
        { "[1]", "{\"a\":1}", "f:a strategic merge patch applies to a map only" },
};

static void test_table(void **state)
{
        (void)state;
        for (size_t i = 0; i < LKG_ARRAY_SIZE(rows); i++) {
                struct lkg_value *base = doc(rows[i].base), *patch = doc(rows[i].patch), *merged = NULL;
                struct lkg_report report = LKG_REPORT_INIT;
                const char *before = json(base);
                int r = lkg_merge_strategic(base, patch, &report, &merged);

                if (strncmp(rows[i].want, "f:", 2) == 0) {
                        assert_int_equal(r, -EBADMSG);
                        assert_int_equal(report.n_findings, 1);
                        assert_string_equal(report.findings[0].text, rows[i].want + 2);
                        assert_null(merged);
                } else {
                        assert_int_equal(r, 0);
                        assert_string_equal(json(merged), rows[i].want);
                }
                assert_string_equal(json(base), before);
                lkg_report_deinit(&report);
                lkg_value_unref(base);
                lkg_value_unref(patch);
                lkg_value_unref(merged);
        }
}

static void test_shadows(void **state)
{
        struct lkg_value *base = doc("a: 1\nl: [1]\nm: {x: 1}\n"), *patch = doc("a: 2\nl: [2]\nm: {x: 3}\n"),
                         *merged = NULL;
        struct lkg_report report = LKG_REPORT_INIT;

        (void)state;
        assert_int_equal(lkg_merge_strategic(base, patch, &report, &merged), 0);
        assert_string_equal(json(lkg_value_shadowed(lkg_map_get(merged, "a"))), "1");
        assert_string_equal(json(lkg_value_shadowed(lkg_map_get(merged, "l"))), "[1]");
        assert_string_equal(json(lkg_value_shadowed(lkg_value_get_pointer(merged, "m.x"))), "1");
        lkg_value_unref(base);
        lkg_value_unref(patch);
        lkg_value_unref(merged);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_table),
                cmocka_unit_test(test_shadows),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
