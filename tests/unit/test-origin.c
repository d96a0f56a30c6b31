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

TEST(test_table)
{
        struct lkg_value *base =
                layer("base kubelet.conf", "/k/kubelet.conf", "a: 1\nb: {c: x, d: [1, 2]}\ne: {}\n");
        struct lkg_value *drop = layer("drop-in 1.conf", "/k/1.conf", "a: 2\nb:\n  d: []\nf/g: 'tab\t'\n");
        struct lkg_value *merged = NULL;
        struct lkg_buf buf = LKG_BUF_INIT;

        merged = lkg_merge_json(base, drop);
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

/* Each leaf of a map lists what the map replaced, including leaves of a later layer. */
TEST(test_leaf_of_a_map_that_replaced_something)
{
        struct lkg_value *base = layer("base", "b", "a: 1\nl: [x]\ntoken: {t: hidden}\n");
        struct lkg_value *one = layer("one", "1", "a: {b: {c: 2}, d: 3}\nl: {m: {}}\ntoken: 5\n");
        struct lkg_value *two = layer("two", "2", "a: {b: {c: 4, e: 5}}\ntoken: {t: hidden}\n");
        struct lkg_value *first = NULL, *merged = NULL;
        struct lkg_buf buf = LKG_BUF_INIT;

        first = lkg_merge_json(base, one);
        merged = lkg_merge_json(first, two);
        lkg_render_origin(merged, &buf);
        assert_string_equal(
                buf.data,
                "/a/b/c\t4\ttwo\t2:1:12\tone=2;base=1\n"
                "/a/b/e\t5\ttwo\t2:1:18\tbase=1\n"
                "/a/d\t3\tone\t1:1:19\tbase=1\n"
                "/l/m\t{}\tone\t1:2:8\tbase=[\"x\"]\n"
                "/token/t\t\"<masked>\"\ttwo\t2:2:12\tone=\"<masked>\";base={\"t\":\"<masked>\"}\n");
        lkg_buf_deinit(&buf);
        lkg_value_unref(base);
        lkg_value_unref(one);
        lkg_value_unref(two);
        lkg_value_unref(first);
        lkg_value_unref(merged);
}

/* If a map was replaced as a whole, a leaf shadows the value at its own path. */
TEST(test_leaf_of_a_map_that_replaced_a_map)
{
        struct lkg_value *base = layer("base", "b", "a: {b: 1, c: {d: 2}}\nf: {g: 5}\n");
        struct lkg_value *drop =
                layer("drop", "d", "a: {$patch: replace, b: 3, e: 4}\nf: {$patch: delete}\n");
        struct lkg_value *merged = NULL;
        struct lkg_buf buf = LKG_BUF_INIT;

        assert_int_equal(lkg_merge_strategic(base, drop, NULL, &merged), 0);
        lkg_render_origin(merged, &buf);
        assert_string_equal(buf.data, "/a/b\t3\tdrop\td:1:25\tbase=1\n"
                                      "/a/e\t4\tdrop\td:1:31\t\n"
                                      "/f\t{}\tdrop\td:2:4\tbase={\"g\":5}\n");
        lkg_buf_deinit(&buf);
        lkg_value_unref(base);
        lkg_value_unref(drop);
        lkg_value_unref(merged);
}

/* A name with tabs and line breaks cannot forge a column or a line. */
TEST(test_hostile_names)
{
        struct lkg_value *value = layer("drop-in a\tb\n/x\t1", "/k/a\tb\n", "\"k\\n\\t\": 1\n");
        struct lkg_buf buf = LKG_BUF_INIT;

        lkg_render_origin(value, &buf);
        assert_string_equal(buf.data,
                            "/k\\x0a\\x09\t1\tdrop-in a\\x09b\\x0a/x\\x091\t/k/a\\x09b\\x0a:1:10\t\n");
        lkg_buf_deinit(&buf);
        lkg_value_unref(value);
}

/* In a JSON pointer the slashes of a URL are escaped. */
TEST(test_url_in_a_name)
{
        struct lkg_value *value = layer("b", "f", "a: {\"http://u:secret@h/~\": {\"x?://y?secret\": 1}}\n");
        struct lkg_buf buf = LKG_BUF_INIT;

        lkg_render_origin(value, &buf);
        assert_null(strstr(buf.data, "secret"));
        assert_non_null(strstr(buf.data, "/a/http:~1~1<masked>@h~1~0/"));
        lkg_buf_deinit(&buf);
        lkg_value_unref(value);
}

/*
 * Whole lines up to a size, from the first on; the others are counted, even a short one after one that is
 * too long.
 */
TEST(test_up_to_a_size)
{
        struct lkg_value *value = layer("b", "f", "a: 1\nb: \"0123456789012345678901234567890\"\nc: 3\n");
        struct lkg_buf whole = LKG_BUF_INIT;
        const char *lines[4] = { 0 };

        lkg_render_origin(value, &whole);
        lines[0] = whole.data;
        for (size_t i = 1; i < LKG_ARRAY_SIZE(lines); i++)
                lines[i] = strchr(lines[i - 1], '\n') + 1;
        for (size_t size_max = 0; size_max <= whole.size; size_max++) {
                struct lkg_buf buf = LKG_BUF_INIT;
                size_t n = lkg_render_origin_upto(value, size_max, &buf), fit = 0;

                while (fit < 3 && (size_t)(lines[fit + 1] - whole.data) <= size_max)
                        fit++;
                assert_int_equal(n, 3 - fit);
                assert_int_equal(buf.size, lines[fit] - whole.data);
                assert_memory_equal(buf.data, whole.data, buf.size);
                lkg_buf_deinit(&buf);
        }
        lkg_buf_deinit(&whole);
        lkg_value_unref(value);
}

TEST(test_without_source)
{
        struct lkg_value *value = lkg_value_new_map(NULL, 0, 0);
        struct lkg_buf buf = LKG_BUF_INIT;

        lkg_render_origin(value, &buf);
        assert_string_equal(buf.data, "\t{}\t\t\t\n");
        lkg_buf_deinit(&buf);
        lkg_value_unref(value);
}
