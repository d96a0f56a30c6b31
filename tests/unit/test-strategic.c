/* SPDX-License-Identifier: Apache-2.0 */
/* Strategic merge patch for kinds whose lists are all atomic. Rule: docs/specification.md 3.4. */
#include <lkg/tree.h>

#include "config-helpers.h"

static const struct {
        const char *base, *patch, *want; /* a want that starts with "f:" is the finding */
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
        { "{\"a\":1}", "{\"a\":{\"$patch\":\"replace\",\"c\":3}}", "{}" },  /* the old value goes, too */
        { "{}", "{\"a\":{\"$patch\":null,\"b\":1}}", "{\"a\":{\"b\":1}}" }, /* null is removed first */
        { "{\"a\":{\"b\":1}}", "{\"a\":{\"$patch\":\"merge\"}}",
          "f:the value of $patch in a map must be replace or delete" },
        { "{\"a\":{\"b\":1}}", "{\"a\":{\"$patch\":null}}",
          "f:the value of $patch in a map must be replace or delete" },
        /* $deleteFromPrimitiveList */
        { "{\"l\":[\"a\",\"b\",\"a\"]}", "{\"$deleteFromPrimitiveList/l\":[\"a\"]}", "{\"l\":[\"b\"]}" },
        { "{\"m\":{\"l\":[1,2]}}", "{\"m\":{\"$deleteFromPrimitiveList/l\":[2,3]}}", "{\"m\":{\"l\":[1]}}" },
        { "{\"a\":1}", "{\"$deleteFromPrimitiveList/l\":[1]}", "{\"a\":1}" },
        { "{\"l\":[1]}", "{\"$deleteFromPrimitiveList\":[1]}", "f:write $deleteFromPrimitiveList/FIELD" },
        { "{\"l\":[1]}", "{\"$deleteFromPrimitiveList/l\":1}", "{\"l\":[1]}" },
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
        /*
         * on a non-list, $deleteFromPrimitiveList is an ordinary member, if the types match
         */
        { "{\"a\":1}", "{\"$deleteFromPrimitiveList/a\":2}", "{\"a\":2}" },
        { "{\"a\":\"x\"}", "{\"$deleteFromPrimitiveList/a\":2}", "{\"a\":\"x\"}" },
        { "{\"a\":1}", "{\"$deleteFromPrimitiveList/a\":null}", "{}" },
        { "{\"l\":[]}", "{\"$setElementOrder/l\":[1]}",
          "f:$setElementOrder names a list that has no items to order" },
        { "null", "{\"a\":1}", "{\"a\":1}" },
        { "{\"a\":1}", "null", "{\"a\":1}" },
        /* not maps */
        { "{\"a\":1}", "[1]", "f:a strategic merge patch must be a map" },
        { "[1]", "{\"a\":1}", "f:a strategic merge patch applies to a map only" },
};

TEST(test_table)
{
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

/* Upstream keeps a map that has no target, directives included; that is never intended. */
TEST(test_directives_without_anything_to_act_on_are_noted)
{
        static const struct {
                const char *base, *patch, *key; /* NULL = nothing to note */
        } cases[] = {
                { "{}", "{\"a\":{\"$retainKeys\":[\"b\"],\"b\":1}}", "\"$retainKeys\"" },
                { "{\"a\":1}", "{\"a\":{\"$retainKeys\":[\"b\"],\"b\":1}}", "\"$retainKeys\"" },
                { "{}", "{\"a\":{\"c\":{\"$setElementOrder/l\":[1]}}}", "\"$setElementOrder/l\"" },
                { "{}", "{\"a\":[{\"$deleteFromPrimitiveList/l\":[1]}]}", "\"$deleteFromPrimitiveList/l\"" },
                { "{}", "{\"a\":{\"$patch\":\"replace\",\"b\":1}}", "\"$patch\"" },
                { "{}", "{\"a\":{\"$patch\":\"delete\"}}", NULL },
                { "{}", "{\"$retainKeys\":[\"b\"],\"b\":1}", NULL },
                { "{\"a\":{}}", "{\"a\":{\"$retainKeys\":[\"b\"],\"b\":1}}", NULL },
        };

        for (size_t i = 0; i < LKG_ARRAY_SIZE(cases); i++) {
                struct lkg_value *base = doc(cases[i].base), *patch = doc(cases[i].patch), *merged = NULL;
                struct lkg_report report = LKG_REPORT_INIT;

                assert_int_equal(lkg_merge_strategic(base, patch, &report, &merged), 0);
                assert_int_equal(report.n_findings, cases[i].key ? 1 : 0);
                if (cases[i].key) {
                        assert_int_equal(report.findings[0].code, LKG_C_IDLE_DIRECTIVE);
                        assert_non_null(strstr(report.findings[0].text, cases[i].key));
                }
                lkg_report_deinit(&report);
                lkg_value_unref(base);
                lkg_value_unref(patch);
                lkg_value_unref(merged);
        }
}

TEST(test_shadows)
{
        struct lkg_value *base = doc("a: 1\nl: [1]\nm: {x: 1}\n"), *patch = doc("a: 2\nl: [2]\nm: {x: 3}\n"),
                         *merged = NULL;
        struct lkg_report report = LKG_REPORT_INIT;

        assert_int_equal(lkg_merge_strategic(base, patch, &report, &merged), 0);
        assert_string_equal(json(lkg_value_shadowed(lkg_map_get(merged, "a"))), "1");
        assert_string_equal(json(lkg_value_shadowed(lkg_map_get(merged, "l"))), "[1]");
        assert_string_equal(json(lkg_value_shadowed(lkg_value_get_pointer(merged, "m.x"))), "1");
        lkg_value_unref(base);
        lkg_value_unref(patch);
        lkg_value_unref(merged);
}

/* ---- with types: a small kind ---- */

struct field {
        const char *name;
        enum lkg_merge_class class;
        bool pointer;
        const struct field *fields; /* of a struct, up to one without a name */
};

static const struct field webhook[] = { { "cacheTTL", LKG_MERGE_OTHER, false, NULL }, { 0 } };
static const struct field authentication[] = { { "webhook", LKG_MERGE_STRUCT, false, webhook }, { 0 } };
static const struct field kind[] = {
        { "authentication", LKG_MERGE_STRUCT, false, authentication },
        { "clusterDNS", LKG_MERGE_LIST, false, NULL },
        { "evictionHard", LKG_MERGE_OTHER, false, NULL },
        { "enableServer", LKG_MERGE_OTHER, true, NULL },
        { 0 },
};

static bool find_field(const struct lkg_merge_type *type, const char *key, size_t size,
                       struct lkg_merge_type *ret)
{
        const struct field *folded = NULL;

        for (const struct field *f = type->data; f->name; f++) {
                if (strlen(f->name) == size && memcmp(f->name, key, size) == 0) {
                        folded = f;
                        break;
                }
                if (!folded && lkg_merge_key_folds(f->name, key, size))
                        folded = f;
        }
        if (folded)
                *ret = (struct lkg_merge_type){ folded->class, folded->pointer, find_field, folded->fields };
        return folded != NULL;
}

static const struct {
        const char *base, *patch, *want; /* NULL = refused */
} typed_rows[] = {
        /* a field that the kind does not have: only a merge is refused */
        { "{\"foo\":{\"a\":1}}", "{\"foo\":{\"b\":1}}", NULL },
        { "{\"foo\":[1]}", "{\"foo\":[2]}", NULL },
        { "{\"foo\":1}", "{\"foo\":2}", "{\"foo\":2}" },
        { "{\"foo\":1}", "{\"foo\":{\"b\":1}}", "{\"foo\":{\"b\":1}}" },
        { "{}", "{\"foo\":{\"b\":[1]}}", "{\"foo\":{\"b\":[1]}}" },
        { "{\"authentication\":{\"webhook\":{\"foo\":{}}}}",
          "{\"authentication\":{\"webhook\":{\"foo\":{}}}}", NULL },
        /* the case of a name does not matter for finding its field, but both keys remain */
        { "{\"AUTHENTICATION\":{\"a\":1}}", "{\"AUTHENTICATION\":{\"b\":2}}",
          "{\"AUTHENTICATION\":{\"a\":1,\"b\":2}}" },
        { "{\"cluster\xc5\xbf\":[1],\"clusterDN\xc5\xbf\":[1]}", "{\"clusterDN\xc5\xbf\":[2]}",
          "{\"clusterDN\xc5\xbf\":[2],\"cluster\xc5\xbf\":[1]}" },
        /* a map of scalars merges; what is below it has no field */
        { "{\"evictionHard\":{\"a\":\"1\"}}", "{\"evictionHard\":{\"b\":\"2\"}}",
          "{\"evictionHard\":{\"a\":\"1\",\"b\":\"2\"}}" },
        { "{\"evictionHard\":{\"a\":[1]}}", "{\"evictionHard\":{\"a\":[2]}}", NULL },
        { "{\"evictionHard\":{\"a\":{}}}", "{\"evictionHard\":{\"a\":{}}}", NULL },
        /* two lists under a non-list field */
        { "{\"evictionHard\":[1]}", "{\"evictionHard\":[2]}", NULL },
        { "{\"enableServer\":[1]}", "{\"enableServer\":[2]}", "{\"enableServer\":[2]}" }, /* a pointer */
        { "{\"clusterDNS\":[\"a\"]}", "{\"$setElementOrder/clusterDNS\":[\"a\"]}",
          "{\"clusterDNS\":[\"a\"]}" },
        { "{}", "{\"$setElementOrder/foo\":[\"a\"]}", NULL },
        { "{\"clusterDNS\":[[1]]}", "{\"$deleteFromPrimitiveList/clusterDNS\":[[1]]}", NULL },
        { "{\"clusterDNS\":[1]}", "{\"$deleteFromPrimitiveList/clusterDNS\":[\"a\"]}", NULL },
};

TEST(test_types)
{
        static const struct lkg_merge_type root = { LKG_MERGE_STRUCT, false, find_field, kind };

        for (size_t i = 0; i < LKG_ARRAY_SIZE(typed_rows); i++) {
                struct lkg_value *base = doc(typed_rows[i].base), *patch = doc(typed_rows[i].patch);
                struct lkg_value *merged = NULL;
                struct lkg_report report = LKG_REPORT_INIT;
                int r = lkg_merge_strategic_typed(base, patch, &root, &report, &merged);

                assert_int_equal(r, typed_rows[i].want ? 0 : -EBADMSG);
                if (typed_rows[i].want)
                        assert_string_equal(json(merged), typed_rows[i].want);
                lkg_report_deinit(&report);
                lkg_value_unref(base);
                lkg_value_unref(patch);
                lkg_value_unref(merged);
        }
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
TEST(test_depth)
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
