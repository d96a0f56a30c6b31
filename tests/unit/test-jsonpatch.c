/* SPDX-License-Identifier: Apache-2.0 */
/*
 * RFC 6902 operations: results, refusals in words, all or nothing, sharing.
 * Rule: docs/specification.md 3.4.
 */
#include "config-helpers.h"

#include "core/layers/layers.h"

static const struct {
        const char *base, *patch,
                *want; /* a want that starts with "f:" is the finding, without place and code */
} rows[] = {
        /* RFC 6902, appendix A */
        { "{\"foo\":\"bar\"}", "[{\"op\":\"add\",\"path\":\"/baz\",\"value\":\"qux\"}]",
          "{\"baz\":\"qux\",\"foo\":\"bar\"}" },
        { "{\"foo\":[\"bar\",\"baz\"]}", "[{\"op\":\"add\",\"path\":\"/foo/1\",\"value\":\"qux\"}]",
          "{\"foo\":[\"bar\",\"qux\",\"baz\"]}" },
        { "{\"baz\":\"qux\",\"foo\":\"bar\"}", "[{\"op\":\"remove\",\"path\":\"/baz\"}]",
          "{\"foo\":\"bar\"}" },
        { "{\"foo\":[\"bar\",\"qux\",\"baz\"]}", "[{\"op\":\"remove\",\"path\":\"/foo/1\"}]",
          "{\"foo\":[\"bar\",\"baz\"]}" },
        { "{\"baz\":\"qux\",\"foo\":\"bar\"}", "[{\"op\":\"replace\",\"path\":\"/baz\",\"value\":\"boo\"}]",
          "{\"baz\":\"boo\",\"foo\":\"bar\"}" },
        { "{\"foo\":{\"bar\":\"baz\",\"waldo\":\"fred\"},\"qux\":{\"corge\":\"grault\"}}",
          "[{\"op\":\"move\",\"from\":\"/foo/waldo\",\"path\":\"/qux/thud\"}]",
          "{\"foo\":{\"bar\":\"baz\"},\"qux\":{\"corge\":\"grault\",\"thud\":\"fred\"}}" },
        { "{\"foo\":[\"all\",\"grass\",\"cows\",\"eat\"]}",
          "[{\"op\":\"move\",\"from\":\"/foo/1\",\"path\":\"/foo/3\"}]",
          "{\"foo\":[\"all\",\"cows\",\"eat\",\"grass\"]}" },
        { "{\"baz\":\"qux\",\"foo\":[\"a\",2,\"c\"]}",
          "[{\"op\":\"test\",\"path\":\"/baz\",\"value\":\"qux\"},{\"op\":\"test\",\"path\":\"/foo/"
          "1\",\"value\":2}]",
          "{\"baz\":\"qux\",\"foo\":[\"a\",2,\"c\"]}" },
        { "{\"foo\":\"bar\"}", "[{\"op\":\"add\",\"path\":\"/child\",\"value\":{\"grandchild\":{}}}]",
          "{\"child\":{\"grandchild\":{}},\"foo\":\"bar\"}" },
        { "{\"foo\":[\"bar\"]}", "[{\"op\":\"add\",\"path\":\"/foo/-\",\"value\":[\"abc\",\"def\"]}]",
          "{\"foo\":[\"bar\",[\"abc\",\"def\"]]}" },
        { "{\"/\":9,\"~1\":10}", "[{\"op\":\"test\",\"path\":\"/~01\",\"value\":10}]",
          "{\"/\":9,\"~1\":10}" },
        { "{\"a\":[1,2,3]}", "[{\"op\":\"replace\",\"path\":\"/a/-1\",\"value\":9}]", "{\"a\":[1,2,9]}" },
        { "{\"a\":{\"b\":1}}",
          "[{\"op\":\"copy\",\"from\":\"/a\",\"path\":\"/c\"},{\"op\":\"add\",\"path\":\"/c/"
          "b\",\"value\":2}]",
          "{\"a\":{\"b\":1},\"c\":{\"b\":2}}" },
        { "{\"a\":1}", "[{\"op\":\"replace\",\"path\":\"\",\"value\":{\"b\":2}}]", "{\"b\":2}" },
        { "{\"a\":1}", "[{\"op\":\"test\",\"path\":\"/b\",\"value\":null}]", "{\"a\":1}" },
        { "{\"a\":1}", "[]", "{\"a\":1}" },
        /* more tolerant than the RFC */
        { "{\"a\":1}", "[{\"op\":\"replace\",\"path\":\"/b\",\"value\":2}]", "{\"a\":1,\"b\":2}" },
        { "{\"a\":1}", "[{\"op\":\"add\",\"path\":\"/b\"}]", "{\"a\":1,\"b\":null}" },
        { "{\"a\":1}", "[{\"op\":\"replace\",\"path\":\"/a\"}]", "{\"a\":null}" },
        { "{\"a\":1}", "[{\"op\":\"copy\",\"from\":\"/b\",\"path\":\"/a\"}]", "{\"a\":null}" },
        { "{\"a\":[1,2]}", "[{\"op\":\"test\",\"path\":\"/a/-1\",\"value\":2}]", "{\"a\":[1,2]}" },
        { "{\"a\":null}", "[{\"op\":\"test\",\"path\":\"/a\"}]", "{\"a\":null}" },
        /* refusals */
        { "{\"a\":1}", "{}", "f:a JSON patch is a list of operations" },
        { "{\"a\":1}", "[1]", "f:an operation is a map with op, path and value" },
        { "{\"a\":1}", "[{\"op\":\"add\"}]", "f:an operation needs 'op' and 'path'" },
        { "{\"a\":1}", "[{\"op\":\"mix\",\"path\":\"/b\"}]",
          "f:'op' must be add, remove, replace, move, copy or test" },
        { "{\"a\":1}", "[{\"op\":\"add\",\"path\":\"b\",\"value\":1}]", "f:a path starts with '/'" },
        { "{\"a\":1}", "[{\"op\":\"remove\",\"path\":\"/b\"}]",
          "f:the path names a field that does not exist" },
        { "{\"a\":1}", "[{\"op\":\"remove\",\"path\":\"\"}]",
          "f:of what changes a document only 'replace' can name the whole of it" },
        { "{\"a\":1}", "[{\"op\":\"add\",\"path\":\"\",\"value\":{}}]",
          "f:of what changes a document only 'replace' can name the whole of it" },
        { "{\"a\":1}", "[{\"op\":\"replace\",\"path\":\"\",\"value\":1}]", "f:a document is a map or list" },
        { "{\"a\":1}", "[{\"op\":\"copy\",\"from\":\"\",\"path\":\"/b\"}]", "f:'from' starts with '/'" },
        { "{\"a\":1}", "[{\"op\":\"test\",\"path\":\"/a/b\"}]",
          "f:the path leads through a field that does not exist or is not a map or list" },
        { "{\"a\":[1]}", "[{\"op\":\"test\",\"path\":\"/a/1\"}]",
          "f:the path names a list item that does not exist" },
        { "{\"a\":1}", "[{\"op\":\"add\",\"path\":\"/a/b\",\"value\":1}]",
          "f:the path leads through a field that does not exist or is not a map or list" },
        { "{\"a\":[1]}", "[{\"op\":\"add\",\"path\":\"/a/2\",\"value\":1}]",
          "f:the path names a list item that does not exist" },
        { "{\"a\":[1]}", "[{\"op\":\"remove\",\"path\":\"/a/x\"}]",
          "f:a list is addressed by a number (or - to append)" },
        { "{\"a\":1}", "[{\"op\":\"move\",\"from\":\"/x\",\"path\":\"/b\"}]",
          "f:'from' names a field that does not exist" },
        { "{\"a\":1}", "[{\"op\":\"copy\",\"path\":\"/b\"}]", "f:'from' is missing" },
        { "{\"a\":1}", "[{\"op\":\"test\",\"path\":\"/a\",\"value\":\"1\"}]",
          "f:the test failed: the field has another value" },
        /* all or nothing */
        { "{\"a\":1}", "[{\"op\":\"add\",\"path\":\"/b\",\"value\":1},{\"op\":\"remove\",\"path\":\"/c\"}]",
          "f:the path names a field that does not exist" },
};

TEST(test_table)
{
        for (size_t i = 0; i < LKG_ARRAY_SIZE(rows); i++) {
                struct lkg_value *base = doc(rows[i].base), *patch = doc_from(rows[i].patch, 0),
                                 *result = NULL;
                struct lkg_report report = LKG_REPORT_INIT;
                const char *before = json(base);
                int r = lkg_patch_json(base, patch, &report, &result);

                if (strncmp(rows[i].want, "f:", 2) == 0) {
                        assert_int_equal(r, -EBADMSG);
                        assert_int_equal(report.n_findings, 1);
                        assert_string_equal(report.findings[0].text, rows[i].want + 2);
                        assert_int_equal(report.findings[0].code, 2023);
                } else {
                        assert_int_equal(r, 0);
                        assert_string_equal(json(result), rows[i].want);
                }
                assert_string_equal(json(base), before);
                lkg_report_deinit(&report);
                lkg_value_unref(base);
                lkg_value_unref(patch);
                lkg_value_unref(result);
        }
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

TEST(test_names)
{
        static const struct {
                const char *name;
                int r;
                enum lkg_patch_type type;
        } names[] = {
                { "kubeletconfiguration.yaml", 1, LKG_PATCH_STRATEGIC },
                { "kubeletconfiguration.json", 1, LKG_PATCH_STRATEGIC },
                { "kubeletconfiguration0+merge.yaml", 1, LKG_PATCH_MERGE },
                { "kubeletconfiguration-x+json.json", 1, LKG_PATCH_JSON },
                { "kubeletconfiguration+strategic.yaml", 1, LKG_PATCH_STRATEGIC },
                { "kubeletconfiguration+.yaml", -EINVAL, LKG_PATCH_STRATEGIC },
                { "kubeletconfiguration+Merge.yaml", -EINVAL, LKG_PATCH_STRATEGIC },
                { "kubeletconfiguration.yml", 0, LKG_PATCH_STRATEGIC },
                { "kubeletconfiguration", 0, LKG_PATCH_STRATEGIC },
                { "etcd.yaml", 0, LKG_PATCH_STRATEGIC },
                { "xkubeletconfiguration.yaml", 0, LKG_PATCH_STRATEGIC },
        };

        for (size_t i = 0; i < LKG_ARRAY_SIZE(names); i++) {
                enum lkg_patch_type type = LKG_PATCH_STRATEGIC;

                assert_int_equal(lkg_patch_name(names[i].name, "kubeletconfiguration", &type), names[i].r);
                if (names[i].r > 0)
                        assert_int_equal(type, names[i].type);
        }
}
