/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Canonical text: exact forms, and the property that reading it back gives the same document and the same
 * text.
 */
#include "config-helpers.h"

/* ---- random documents ---- */

static uint32_t random_state;

static uint32_t rnd(uint32_t below)
{
        random_state = random_state * 1664525u + 1013904223u;
        return (random_state >> 8) % below;
}

/* Pieces that readers often get wrong, combined at random. */
static size_t random_text(char *text, size_t max)
{
        static const char *const pieces[] = {
                "a",
                "yes",
                "0",
                "1",
                ".",
                ":",
                ": ",
                " ",
                " #",
                "#",
                "-",
                "- ",
                "?",
                "\n",
                "\n\n",
                "\t",
                "\r",
                "'",
                "\"",
                "\\",
                "{",
                "}",
                "[",
                "]",
                ",",
                "&",
                "*",
                "!",
                "|",
                ">",
                "%",
                "@",
                "`",
                "~",
                "null",
                "<<",
                "=",
                "_",
                "e3",
                "0x",
                "---",
                "...",
                "\x7f",
                "\xc2\x85",
                "\xe2\x80\xa8",
                "\xef\xbb\xbf",
                "\xc3\xa9",
                "\xf0\x9f\x98\x80",
                "inf",
                "2001-01-01",
                "1:30",
                "\x1b",
                "  ",
                "x: y",
                "//",
        };
        size_t size = 0;

        text[0] = '\0';
        for (uint32_t n = rnd(6); n > 0; n--) {
                const char *piece = pieces[rnd(LKG_ARRAY_SIZE(pieces))];

                if (size + strlen(piece) >= max)
                        break;
                strcpy(text + size, piece);
                size += strlen(piece);
        }
        return size;
}

static struct lkg_value *random_value(unsigned depth)
{
        static const char *const numbers[] = { "0",   "-0", "-1", "1.5", "1e+21", "18446744073709551615",
                                               "1e-7" };
        struct lkg_value *value;
        char text[64];
        size_t size;

        switch (rnd(depth > 0 ? 8 : 5)) {
        case 0:
                return lkg_value_new_null(NULL, 0, 0);
        case 1:
                return lkg_value_new_bool(rnd(2), NULL, 0, 0);
        case 2:
                return lkg_value_new_number(numbers[rnd(LKG_ARRAY_SIZE(numbers))], NULL, 0, 0);
        case 3:
        case 4:
                size = random_text(text, sizeof(text));
                return lkg_value_new_string(text, size, NULL, 0, 0);
        case 5:
                value = lkg_value_new_list(NULL, 0, 0);
                for (uint32_t n = rnd(4); n > 0; n--)
                        lkg_list_append(value, random_value(depth - 1));
                return value;
        default:
                value = lkg_value_new_map(NULL, 0, 0);
                for (uint32_t n = rnd(4); n > 0; n--) {
                        size = random_text(text, sizeof(text));
                        assert_true(lkg_map_set(value, text, size, random_value(depth - 1)) >= 0);
                }
                return value;
        }
}

TEST(test_round_trip)
{
        for (uint32_t seed = 1; seed <= 30000; seed++) {
                struct lkg_report report = LKG_REPORT_INIT;
                struct lkg_value *value, *back = NULL;
                char *text;

                random_state = seed;
                value = random_value(4);
                for (int format = LKG_FORMAT_YAML; format <= LKG_FORMAT_JSON; format++) {
                        text = strdup(show(value, format));
                        if (lkg_decode(text, strlen(text), (enum lkg_format)format, LKG_DECODE_STRICT, NULL,
                                       &report, &back) < 0 ||
                            !lkg_value_equal(value, back) || strcmp(text, show(back, format)) != 0) {
                                print_error("seed %u: not read back:\n%s%s\n", seed, text,
                                            lkg_report_format(&report, NULL));
                                fail();
                        }
                        back = lkg_value_unref(back);
                        free(text);
                }
                lkg_report_deinit(&report);
                lkg_value_unref(value);
        }
}

/* Readers give up on `key:` after 1024 characters. */
TEST(test_long_keys)
{
        static const size_t sizes[] = { 998, 999, 1000, 1001, 1024, 5000 };

        for (size_t i = 0; i < LKG_ARRAY_SIZE(sizes); i++) {
                struct lkg_value *map = lkg_value_new_map(NULL, 0, 0),
                                 *inner = doc("{\"x\":[{\"y\":1}],\"z\":\"a\\nb\"}");
                struct lkg_value *list = lkg_value_new_list(NULL, 0, 0), *back = NULL;
                char *key = malloc(sizes[i]), *text;

                memset(key, 'k', sizes[i]);
                assert_int_equal(lkg_map_set(map, key, sizes[i], lkg_value_ref(inner)), 0);
                key[0] = '#';
                assert_int_equal(
                        lkg_map_set(map, key, sizes[i], lkg_value_new_string("a\nb", 3, NULL, 0, 0)), 0);
                lkg_list_append(list, map);
                text = strdup(yaml(list));
                assert_int_equal(lkg_decode_yaml(text, strlen(text), 0, NULL, NULL, &back), 0);
                assert_true(lkg_value_equal(list, back));
                assert_string_equal(yaml(back), text);
                free(key);
                free(text);
                lkg_value_unref(back);
                lkg_value_unref(inner);
                lkg_value_unref(list);
        }
}

static void comment(const struct lkg_value *value, struct lkg_buf *buf)
{
        lkg_buf_printf(buf, " # %s", lkg_type_name(lkg_value_type(value)));
}

/*
 * A key that is not a simple key takes two lines; the comment is on the first. A subtree that is too deep
 * has one comment.
 */
TEST(test_comments_of_odd_members)
{
        const size_t deep = LKG_COMMENT_DEPTH_MAX + 4, size = 1100;
        struct lkg_value *value = lkg_value_new_bool(true, NULL, 0, 0), *map;
        LKG_CLEANUP(lkg_freep) char *key = malloc(size + 1);
        struct lkg_buf buf = LKG_BUF_INIT;
        size_t n = 0;

        memset(key, 'k', size);
        key[size] = '\0';
        for (size_t i = 0; i < deep; i++) {
                map = lkg_value_new_map(NULL, 0, 0);
                assert_int_equal(
                        lkg_map_set(map, i + 1 == deep ? key : "m", i + 1 == deep ? size : 1, value), 0);
                value = map;
        }
        lkg_render_commented(value, comment, &buf);
        assert_int_equal(strncmp(buf.data, "? ", 2), 0);
        assert_int_equal(strncmp(buf.data + 2 + size, "\n:\n  m:\n", strlen("\n:\n  m:\n")), 0);
        for (const char *p = buf.data; (p = strstr(p, " # ")); p++, n++)
                assert_int_equal(strncmp(p, " # map\n", strlen(" # map\n")), 0);
        assert_int_equal(n, 1);
        lkg_buf_deinit(&buf);
        lkg_value_unref(value);
}
