/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Canonical text: exact forms, and the property that reading it back gives the same document and the same
 * text.
 */
#include "config-helpers.h"

TEST(test_forms)
{
        static const struct {
                const char *json, *yaml;
        } rows[] = {
                { "null", "null\n" },
                { "\"x\"", "x\n" },
                { "{}", "{}\n" },
                { "[]", "[]\n" },
                { "{\"a\":{},\"b\":[],\"c\":null}", "a: {}\nb: []\nc: null\n" },
                { "{\"b\":1,\"a\":{\"d\":true,\"c\":1.5}}", "a:\n  c: 1.5\n  d: true\nb: 1\n" },
                { "{\"l\":[1,{\"a\":1,\"b\":[2]},[3,[4]],[]]}",
                  "l:\n- 1\n- a: 1\n  b:\n  - 2\n- - 3\n  - - 4\n- []\n" },
                { "[{\"a\":{\"b\":1}}]", "- a:\n    b: 1\n" },
                { "[\"yes\",\"1\",\"1e3\",\"\",\"~\",\"null\",\"2001-01-01\",\"0o7\",\"1:30\",\".5\",\"=\"]",
                  "- \"yes\"\n- \"1\"\n- \"1e3\"\n- \"\"\n- \"~\"\n- \"null\"\n- \"2001-01-01\"\n- "
                  "\"0o7\"\n- \"1:30\"\n- "
                  "\".5\"\n- \"=\"\n" },
                { "[\"10.96.0.10\",\"100m\",\"5%\",\"a:b\",\"/etc/x\",\"unix:///run/x\",\"a "
                  "b\",\"it's\",\"-x\",\"?x\",\"1.2.3\"]",
                  "- 10.96.0.10\n- 100m\n- 5%\n- a:b\n- /etc/x\n- unix:///run/x\n- a b\n- it's\n- -x\n- "
                  "?x\n- 1.2.3\n" },
                { "[\"a: b\",\"a #b\",\" a\",\"a \",\"- "
                  "a\",\"-\",\"[a\",\"{a\",\"#a\",\"&a\",\"*a\",\"!a\",\"|\",\">\",\"%a\",\"@a\",\"`a\",\"'"
                  "a\",\"a:\",\"---\",\"...x\",\"? a\",\",a\"]",
                  "- 'a: b'\n- 'a #b'\n- ' a'\n- 'a '\n- '- a'\n- '-'\n- '[a'\n- '{a'\n- '#a'\n- '&a'\n- "
                  "'*a'\n- '!a'\n- "
                  "'|'\n- '>'\n- '%a'\n- '@a'\n- '`a'\n- '''a'\n- 'a:'\n- '---'\n- '...x'\n- '? a'\n- "
                  "',a'\n" },
                { "[\"a\\nb\\n\",\"a\\nb\",\"a\\n\\n\",\"\\na\",\" a\\nb\",\"a "
                  "\\nb\",\"a\\tb\",\"a\\rb\",\"\\u0000\",\"\\n\"]",
                  "- |\n  a\n  b\n- |-\n  a\n  b\n- |+\n  a\n\n- \"\\na\"\n- \" a\\nb\"\n- \"a \\nb\"\n- "
                  "\"a\\tb\"\n- "
                  "\"a\\rb\"\n- \"\\x00\"\n- \"\\n\"\n" },
                { "{\"k\":\"a\\n\\n  b\\n\"}", "k: |\n  a\n\n    b\n" },
                { "{\"a\\nb\":1,\"yes\":2,\"a: b\":3,\"\":4}",
                  "\"\": 4\n\"a\\nb\": 1\n'a: b': 3\n\"yes\": 2\n" },
        };

        for (size_t i = 0; i < LKG_ARRAY_SIZE(rows); i++) {
                struct lkg_value *value, *back;

                assert_int_equal(lkg_decode_json(rows[i].json, strlen(rows[i].json), 0, NULL, NULL, &value),
                                 0);
                assert_string_equal(yaml(value), rows[i].yaml);
                assert_int_equal(lkg_decode_yaml(rows[i].yaml, strlen(rows[i].yaml), LKG_DECODE_STRICT, NULL,
                                                 NULL, &back),
                                 0);
                assert_true(lkg_value_equal(value, back));
                lkg_value_unref(value);
                lkg_value_unref(back);
        }
}

TEST(test_json_form)
{
        struct lkg_value *value = doc("{\"b\":[1,{}],\"a\":{\"c\":\"x\\\"\\u007f\"},\"e\":[]}");

        assert_string_equal(show(value, LKG_FORMAT_JSON),
                            "{\n  \"a\": {\n    \"c\": \"x\\\"\\u007f\"\n  },\n  \"b\": [\n    1,\n    {}\n "
                            " ],\n  \"e\": []\n}\n");
        lkg_value_unref(value);
}

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

TEST(test_invalid_utf8_is_replaced)
{
        struct lkg_value *value = lkg_value_new_string("a\xff", 2, NULL, 0, 0);

        assert_string_equal(yaml(value), "\"a\xef\xbf\xbd\"\n");
        assert_string_equal(json(value), "\"a\xef\xbf\xbd\"");
        lkg_value_unref(value);
}

static void comment(const struct lkg_value *value, struct lkg_buf *buf)
{
        lkg_buf_printf(buf, " # %s", lkg_type_name(lkg_value_type(value)));
}

/*
 * On the first line of any member; not in lists. Without comments it is the text of lkg_render().
 */
TEST(test_comments)
{
        static const char document[] =
                "{\"a\":{\"b\":1,\"c\":{\"d\":\"x\\n\\ny\\n\",\"e\":[{\"f\":true,\"g\":{\"h\":2}}]}},"
                "\"i\":[],\"j\":{},\"k\":\"l\\nm\",\"n\\no\":[1]}";
        struct lkg_buf buf = LKG_BUF_INIT;
        struct lkg_value *value;

        assert_int_equal(lkg_decode_json(document, strlen(document), 0, NULL, NULL, &value), 0);
        lkg_render_commented(value, comment, &buf);
        assert_string_equal(buf.data, "a:\n"
                                      "  b: 1 # number\n"
                                      "  c:\n"
                                      "    d: | # string\n"
                                      "      x\n"
                                      "\n"
                                      "      y\n"
                                      "    e: # list\n"
                                      "    - f: true\n"
                                      "      g:\n"
                                      "        h: 2\n"
                                      "i: [] # list\n"
                                      "j: {} # map\n"
                                      "k: |- # string\n"
                                      "  l\n"
                                      "  m\n"
                                      "\"n\\no\": # list\n"
                                      "- 1\n");
        lkg_buf_deinit(&buf);
        lkg_value_unref(value);
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
