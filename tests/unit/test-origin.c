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
