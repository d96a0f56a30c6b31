/* SPDX-License-Identifier: Apache-2.0 */
/* The effective document as text: marks after the leaves, and still the same document. */

#include <lkg/documents.h>
#include <lkg/schema.h>

#include "unit.h"

static struct lkg_value *decode(const char *layer, const char *text, size_t size)
{
        struct lkg_source *source = layer ? lkg_source_new(layer, "file") : NULL;
        struct lkg_report report = LKG_REPORT_INIT;
        struct lkg_value *value = NULL;
        int r = lkg_decode(text, size, LKG_FORMAT_YAML, 0, source, &report, &value);

        lkg_source_unref(source);
        if (r < 0)
                fail_msg("does not read back: %s\n%s", report.n_findings ? report.findings[0].text : "",
                         text);
        lkg_report_deinit(&report);
        return value;
}

/* Renders, reads back, compares. Caller frees. */
static char *round_trip(const struct lkg_value *value)
{
        LKG_CLEANUP(lkg_value_unrefp) struct lkg_value *again = NULL;
        struct lkg_buf buf = LKG_BUF_INIT;

        lkg_effective_render(value, &buf);
        assert_false(lkg_buf_failed(&buf));
        again = decode(NULL, buf.data, buf.size);
        if (!lkg_value_equal(value, again))
                fail_msg("reads back as something else:\n%s", buf.data);
        return lkg_buf_steal(&buf, NULL);
}

static void check(const char *layer, const char *text, const char *want)
{
        LKG_CLEANUP(lkg_value_unrefp) struct lkg_value *value = decode(layer, text, strlen(text));
        LKG_CLEANUP(lkg_freep) char *got = round_trip(value);

        assert_string_equal(got, want);
}

TEST(test_marks)
{
        check("drop-in 10-x.conf",
              "maxPods: 50\nlist: [a, {b: 1, c: 2}]\nempty: {}\nnone: []\n\"null\": ~\n",
              "empty: {} # drop-in 10-x.conf\n"
              "list: # drop-in 10-x.conf\n- a\n- b: 1\n  c: 2\n"
              "maxPods: 50 # drop-in 10-x.conf\n"
              "none: [] # drop-in 10-x.conf\n"
              "\"null\": null # drop-in 10-x.conf\n");
        check("base a", "a: {b: {c: 1, d: [1]}, e: x}\n",
              "a:\n  b:\n    c: 1 # base a\n    d: # base a\n    - 1\n  e: x # base a\n");
        check(NULL, "port: 10250\n", "port: 10250 # default\n");
}

TEST(test_texts_stay_what_they_are)
{
        check("base a", "a: 'x # y'\nb: \"# z\"\n", "a: 'x # y' # base a\nb: '# z' # base a\n");
        check("base a", "m: {a: \"one\\n\\n  two # x\\n\"}\n",
              "m:\n  a: | # base a\n    one\n\n      two # x\n");
        check("base a", "a: \"one\\ntwo\"\n", "a: |- # base a\n  one\n  two\n");
        check("base a", "a: \"one\\n\\n\"\nb: 1\n", "a: |+ # base a\n  one\n\nb: 1 # base a\n");
        check("base a", "a: \"\\u2028\\x07\\t\"\n", "a: \"\\u2028\\x07\\t\" # base a\n");
        check("base a", "'a # b': {'c: d': 1, '': 2, 'x\\y': 3}\n",
              "'a # b':\n  \"\": 2 # base a\n  'c: d': 1 # base a\n  x\\y: 3 # base a\n");
}

TEST(test_keys_that_are_no_simple_keys)
{
        LKG_CLEANUP(lkg_value_unrefp) struct lkg_value *value = NULL;
        LKG_CLEANUP(lkg_freep) char *got = NULL;
        struct lkg_buf buf = LKG_BUF_INIT;

        for (int depth = 0; depth < 2; depth++) {
                lkg_buf_puts(&buf, "? ");
                for (int i = 0; i < 1100; i++)
                        lkg_buf_putc(&buf, (char)('a' + depth));
                lkg_buf_puts(&buf, depth == 0 ? "\n: 1\n" : "\n: {a: 1, b: {c: 2}}\n");
        }
        value = decode("base a", buf.data, buf.size);
        got = round_trip(value);
        assert_non_null(strstr(got, " # base a\n: 1\n"));
        lkg_buf_deinit(&buf);
}

/* File names may contain anything, but a comment must remain one line. */
TEST(test_layers_with_strange_names)
{
        check("drop-in a\nmaxPods: 1\x7f.conf", "a: 1\n", "a: 1 # drop-in a?maxPods: 1?.conf\n");
        check("drop-in \xc2\x85\xe2\x80\xa8\xef\xbb\xbf\xff.conf", "a: 1\n", "a: 1 # drop-in ????.conf\n");
        check("drop-in \xc3\xa4.conf", "a: 1\n", "a: 1 # drop-in \xc3\xa4.conf\n");
}

/* ---- documents without layers ---- */

TEST(test_a_document_that_was_served_is_judged_again)
{
        static const char text[] = "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n"
                                   "failCgroupV1: false\nmaxPods: 50\n";
        static const char *const flags[] = { "--max-pods=70", "--fail-swap-on=false" };
        const struct lkg_judge_config config = { .host = { .cgroup = 2 }, .flags = flags, .n_flags = 2 };
        LKG_CLEANUP(lkg_value_unrefp) struct lkg_value *doc = decode("generation 7", text, strlen(text));
        LKG_CLEANUP(lkg_value_unrefp) struct lkg_value *effective = NULL;
        LKG_CLEANUP(lkg_judge_freep) struct lkg_judge *judge = NULL;
        LKG_CLEANUP(lkg_freep) char *got = NULL;

        judge = lkg_judge_new(&config);
        effective = lkg_judge_document(judge, doc);
        assert_non_null(effective);
        got = round_trip(effective);
        assert_non_null(strstr(got, "failCgroupV1: false # generation 7\n"));
        assert_non_null(strstr(got, "maxPods: 70 # flag --max-pods\n"));
        assert_non_null(strstr(got, "failSwapOn: false # flag --fail-swap-on\n"));
        assert_non_null(strstr(got, "port: 10250 # default\n"));
        assert_non_null(strstr(got, "kind: KubeletConfiguration # generation 7\n"));
}

TEST(test_no_effective_document_without_a_table)
{
        static const char *const texts[] = {
                "apiVersion: example.org/v1\nkind: Other\n",
                "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\nmaxPods: many\n",
        };
        const struct lkg_judge_config config = { .host = { .cgroup = 2 } };
        LKG_CLEANUP(lkg_judge_freep) struct lkg_judge *judge = NULL;

        judge = lkg_judge_new(&config);
        for (size_t i = 0; i < LKG_ARRAY_SIZE(texts); i++) {
                LKG_CLEANUP(lkg_value_unrefp)
                struct lkg_value *doc = decode("generation 7", texts[i], strlen(texts[i]));
                struct lkg_value *effective = NULL;

                effective = lkg_judge_document(judge, doc);
                assert_null(effective);
        }
}
