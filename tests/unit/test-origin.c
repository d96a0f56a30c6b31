/* SPDX-License-Identifier: Apache-2.0 */
/* The origin table: one line per leaf, five columns whatever names and values contain. */
#include "config-helpers.h"

static struct lkg_value *layer(const char *name, const char *file, const char *text)
{
        struct lkg_source *source = lkg_source_new(name, file);
        struct lkg_value *value = NULL;

        assert_int_equal(lkg_decode_yaml(text, strlen(text), 0, source, NULL, &value), 0);
        lkg_source_unref(source);
        return value;
}

static void test_table(void **state)
{
        struct lkg_value *base =
                layer("base kubelet.conf", "/k/kubelet.conf", "a: 1\nb: {c: x, d: [1, 2]}\ne: {}\n");
        struct lkg_value *drop = layer("drop-in 1.conf", "/k/1.conf", "a: 2\nb:\n  d: []\nf/g: 'tab\t'\n");
        struct lkg_value *merged = NULL;
        struct lkg_buf buf = LKG_BUF_INIT;

        (void)state;
        assert_int_equal(lkg_merge_json(base, drop, &merged), 0);
        lkg_render_origin(merged, &buf);
        assert_string_equal(buf.data, "/a\t2\tdrop-in 1.conf\t/k/1.conf:1:4\tbase kubelet.conf=1\n"
                                      "/b/c\t\"x\"\tbase kubelet.conf\t/k/kubelet.conf:2:8\t\n"
                                      "/b/d\t[]\tdrop-in 1.conf\t/k/1.conf:3:6\tbase kubelet.conf=[1,2]\n"
                                      "/e\t{}\tbase kubelet.conf\t/k/kubelet.conf:3:4\t\n"
                                      "/f~1g\t\"tab\\t\"\tdrop-in 1.conf\t/k/1.conf:4:6\t\n");
        lkg_buf_deinit(&buf);
        lkg_value_unref(base);
        lkg_value_unref(drop);
        lkg_value_unref(merged);
}

/* A name with tabs and line breaks cannot forge a column or a line. */
static void test_hostile_names(void **state)
{
        struct lkg_value *value = layer("drop-in a\tb\n/x\t1", "/k/a\tb\n", "\"k\\n\\t\": 1\n");
        struct lkg_buf buf = LKG_BUF_INIT;

        (void)state;
        lkg_render_origin(value, &buf);
        assert_string_equal(buf.data,
                            "/k\\x0a\\x09\t1\tdrop-in a\\x09b\\x0a/x\\x091\t/k/a\\x09b\\x0a:1:10\t\n");
        lkg_buf_deinit(&buf);
        lkg_value_unref(value);
}

static void test_without_source(void **state)
{
        struct lkg_value *value = lkg_value_new_map(NULL, 0, 0);
        struct lkg_buf buf = LKG_BUF_INIT;

        (void)state;
        lkg_render_origin(value, &buf);
        assert_string_equal(buf.data, "\t{}\t\t\t\n");
        lkg_buf_deinit(&buf);
        lkg_value_unref(value);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_table),
                cmocka_unit_test(test_hostile_names),
                cmocka_unit_test(test_without_source),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
