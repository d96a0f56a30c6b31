/* SPDX-License-Identifier: Apache-2.0 */
/* The second reader: it accepts correct text, and says where incorrect text is wrong. */
#include <lkg/limits.h>
#include <lkg/documents.h>

#include "config-helpers.h"

static struct lkg_value *decode(const char *json)
{
        struct lkg_value *value;

        assert_int_equal(lkg_decode_json(json, strlen(json), LKG_DECODE_UNTYPED, NULL, NULL, &value), 0);
        return value;
}

static int read_text(const struct lkg_value *value, enum lkg_format format, const char *text,
                     struct lkg_error *err)
{
        *err = (struct lkg_error){ 0 };
        return lkg_readback(value, format, text, strlen(text), err);
}

static void expect_same(const struct lkg_value *value)
{
        for (int i = 0; i < 2; i++) {
                enum lkg_format format = i ? LKG_FORMAT_JSON : LKG_FORMAT_YAML;
                struct lkg_buf buf = LKG_BUF_INIT;
                struct lkg_error err = { 0 };

                lkg_render(value, format, &buf);
                assert_false(lkg_buf_failed(&buf));
                if (lkg_readback(value, format, buf.data, buf.size, &err) != 0)
                        fail_msg("%s\n%.*s", err.message, (int)buf.size, buf.data);
                lkg_buf_deinit(&buf);
        }
}

TEST(test_what_is_right)
{
        static const char *const documents[] = {
                "null",
                "\"x\"",
                "{}",
                "[]",
                "{\"a\":{},\"b\":[],\"c\":null,\"d\":[[],[[]],{}]}",
                "{\"b\":1,\"a\":{\"d\":true,\"c\":1.5,\"e\":1e21,\"f\":-5,\"g\":9223372036854775807,\"h\":"
                "1e-7}}",
                "[\"yes\",\"1\",\"1e3\",\"\",\"~\",\"null\",\"2001-01-01\",\"0o7\",\"1:30\",\".5\",\"=\",\"<"
                "<\",\"0x1p3\",\"1.\"]",
                "[\"10.96.0.10\",\"100m\",\"5%\",\"a:b\",\"it's\",\"-x\",\"?x\",\"1.2.3\",\"a: b\",\"a "
                "#b\",\" a\",\"a \",\"- a\"]",
                "[\"a\\nb\\n\",\"a\\nb\",\"a\\n\\n\",\"\\na\",\" a\\nb\",\"a "
                "\\nb\",\"a\\tb\",\"a\\rb\",\"\\u0000\",\"\\n\"]",
                "{\"a\\nb\":1,\"yes\":2,\"a: b\":3,\"\":4,\"1\":5,\"~\":6,\"k\":\"a\\n\\n  b\\n\"}",
                "[\"\\u0085\",\"\\u2028\",\"\\u2029\",\"\\ufeff\",\"\\u200b\",\"\\u202e\","
                "\"\\ud83d\\ude00\",\"\\ufffd\",\"\\uffff\",\"\\u007f\"]",
        };

        for (size_t i = 0; i < LKG_ARRAY_SIZE(documents); i++) {
                struct lkg_value *value = decode(documents[i]);

                expect_same(value);
                lkg_value_unref(value);
        }
}

/* Return: its length; 0: not a character. */
static size_t put_character(uint32_t c, char ret[5])
{
        size_t n = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;

        if (c == 0 || (c >= 0xd800 && c <= 0xdfff))
                return 0;
        for (size_t i = n, rest = c; n > 1 && i-- > 0; rest >>= 6)
                ret[i] = (char)(i > 0 ? 0x80 | (rest & 0x3f) : (0xf00u >> n & 0xff) | rest);
        if (n == 1)
                ret[0] = (char)c;
        ret[n] = '\0';
        return n;
}

/* valgrind makes this fifty times as slow, and sees nothing new in the tenth character: it gets every @nth. */
static uint32_t step_of(uint32_t nth)
{
        return getenv("LKGFS_VALGRIND") ? nth : 1;
}

/* All there are, 4,096 in a document, as names and as values; in JSON those of four digits also as escapes (others are not written as such:
   json-c 0.16 reads a part of them wrongly). */
TEST(test_the_whole_of_unicode)
{
        for (uint32_t first = 0; first <= 0x10ffff; first += 4096 * step_of(31)) {
                struct lkg_value *map = lkg_value_new_map(NULL, 0, 0);
                struct lkg_buf escaped = LKG_BUF_INIT;
                const char *separator = "{";
                struct lkg_error err = { 0 };

                for (uint32_t c = first; c < first + 4096; c++) {
                        struct lkg_value *value;
                        char text[5];
                        size_t n = put_character(c, text);

                        if (n == 0)
                                continue;
                        value = lkg_value_new_string(text, n, NULL, 0, 0);
                        assert_true(lkg_map_set(map, text, n, value) >= 0);
                        lkg_buf_printf(&escaped, "%s\"\\u%04x\":\"\\u%04x\"", separator, c, c);
                        separator = ",";
                }
                expect_same(map);
                lkg_buf_puts(&escaped, "}\n");
                if (first < 0x10000 && lkg_value_size(map) > 0 &&
                    lkg_readback(map, LKG_FORMAT_JSON, escaped.data, escaped.size, &err) != 0)
                        fail_msg("U+%04X: %s", first, err.message);
                lkg_buf_deinit(&escaped);
                lkg_value_unref(map);
        }
}

/* Alone, at the beginning, in the middle and at the end of a line, after a break, and in a name. */
TEST(test_every_character)
{
        static const struct {
                const char *before, *after;
        } forms[] = { { "", "" },    { "", "a" },  { "a", "b" },  { "a", "" }, { "a\n", "" },
                      { "", "\na" }, { "a ", "" }, { "", ": b" }, { "- ", "" } };
        char character[8], text[64];

        for (uint32_t c = 1; c <= 0x10ffff;
             c += c < 0x3100 || (c >= 0xd7f0 && c < 0x10100) ? step_of(31) : 0x111) {
                struct lkg_value *list;

                if (put_character(c, character) == 0)
                        continue;
                list = lkg_value_new_list(NULL, 0, 0);
                for (size_t i = 0; i < LKG_ARRAY_SIZE(forms); i++) {
                        struct lkg_value *map = lkg_value_new_map(NULL, 0, 0);

                        (void)snprintf(text, sizeof(text), "%s%s%s", forms[i].before, character,
                                       forms[i].after);
                        assert_true(lkg_map_set(map, text, strlen(text),
                                                lkg_value_new_string(text, strlen(text), NULL, 0, 0)) >= 0);
                        lkg_list_append(list, map);
                }
                expect_same(list);
                lkg_value_unref(list);
        }
}

/* A strict json-c refuses it in words of its own, another one leaves it to us. */
TEST(test_more_than_a_document)
{
        static const char *const texts[] = { "{\"a\":1}\n{}\n", "{\"a\":1}\nx", "{\"a\":1}}\n" };
        struct lkg_value *value = decode("{\"a\":1}");
        struct lkg_error err;

        for (size_t i = 0; i < LKG_ARRAY_SIZE(texts); i++)
                assert_int_equal(read_text(value, LKG_FORMAT_JSON, texts[i], &err), -EBADMSG);
        lkg_value_unref(value);
}

/* The libraries of this machine are asked at all. */
TEST(test_both_readers_pass)
{
        struct lkg_error why = { 0 };

        for (enum lkg_format format = 0; format <= LKG_FORMAT_JSON; format++)
                if (lkg_readback_test(format, &why) != 0)
                        fail_msg("%s", why.message);
}

/* No message contains a value: it may be a secret. */
TEST(test_no_value_is_said)
{
        struct lkg_value *value = decode("{\"a\":\"s3cret\"}");
        struct lkg_error err;

        assert_int_equal(read_text(value, LKG_FORMAT_YAML, "a: other-s3cret\n", &err), -EBADMSG);
        assert_null(strstr(err.message, "s3cret"));
        assert_int_equal(lkg_readback(value, LKG_FORMAT_YAML, "a: s3cret\n\0b", 12, &err), -EBADMSG);
        assert_string_equal(err.message, "field '': the text has a NUL byte.");
        lkg_value_unref(value);
}

/* What json-c cannot distinguish is not compared, and the result says so. */
TEST(test_what_json_c_cannot_tell)
{
        static const char *const documents[] = { "{\"a\\u0000b\":1}", "[99999999999999999999]" };
        struct lkg_value *many = lkg_value_new_list(NULL, 0, 0);
        struct lkg_error err;

        for (size_t i = 0; i < LKG_ARRAY_SIZE(documents); i++) {
                struct lkg_value *value;

                assert_int_equal(lkg_decode_json(documents[i], strlen(documents[i]), 0, NULL, NULL, &value),
                                 0);
                assert_int_equal(read_text(value, LKG_FORMAT_JSON, documents[i], &err), 1);
                lkg_value_unref(value);
        }
        for (size_t i = 0; i < LKG_READBACK_JSON_VALUES_MAX; i++)
                lkg_list_append(many, lkg_value_new_map(NULL, 0, 0));
        assert_int_equal(read_text(many, LKG_FORMAT_JSON, "[]", &err), 1);
        lkg_value_unref(many);
}

TEST(test_depth)
{
        struct lkg_value *value = lkg_value_new_list(NULL, 0, 0);

        for (unsigned i = 1; i < LKG_DOC_DEPTH_MAX; i++) {
                struct lkg_value *outer =
                        i % 2 ? lkg_value_new_map(NULL, 0, 0) : lkg_value_new_list(NULL, 0, 0);

                if (i % 2)
                        assert_true(lkg_map_set(outer, "a", 1, value) >= 0);
                else
                        lkg_list_append(outer, value);
                value = outer;
        }
        expect_same(value);
        lkg_value_unref(value);
}
