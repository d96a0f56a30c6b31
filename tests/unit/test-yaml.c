/* SPDX-License-Identifier: Apache-2.0 */
/*
 * YAML as go.yaml.in/yaml/v2 reads it where libyaml, or the YAML specification, would do something else
 * (docs/decisions/008), and what a line of vectors/ cannot express: other encodings, bytes that are no text,
 * positions. Rule: docs/specification.md 3.3.
 */
#include "config-helpers.h"

#include <yaml.h>

static const char *yaml_of(const char *text, size_t size, unsigned flags)
{
        return answer(text, size, LKG_FORMAT_YAML, flags);
}

static const char refused[] = "f:";

/* @want is @refused: there is a finding. */
static void check(const char *text, size_t size, const char *want)
{
        const char *got = yaml_of(text, size, 0);

        if (want == refused)
                assert_int_equal(strncmp(got, refused, 2), 0);
        else
                assert_string_equal(got, want);
}

TEST(test_syntax)
{
        static const struct {
                const char *text, *want;
        } rows[] = {
                { "{a:,b:}", "{\"a:\":null,\"b:\":null}" },
                { "[a:]", "[\"a:\"]" },
                { "[x?y]", refused },
                { "[b\n#c\n]", "[\"b\"]" },
                { "[b#c]", "[\"b#c\"]" },
                { "a: \"\\/\"", refused },
                { "[? ]", refused },
                { "{}: b", "{}" }, /* the rest is not part of the document any more */
                { "a:\t1", "{\"a\":1}" },
                { "a: 1\n\t\nb: 2", refused },
                { "a: >2\n   x", "{\"a\":\" x\"}" },
                { "a: |+\n x\n\n\nb: 1", "{\"a\":\"x\\n\\n\\n\",\"b\":1}" },
                { "a: \"x\\\n\n  y\"", "{\"a\":\"x\\ny\"}" },
                { "a: 1\n--- [", "{\"a\":1}" },
                { "a: 1\n... junk", "{\"a\":1}" },
                { "...\n", refused },
                { "%YAML 1.2\n---\na", refused },
                { "%TAG ! tag:x,2000:\n---\n!a b", "\"b\"" },
                { "a: &x\nb: *x", "{\"a\":null,\"b\":null}" },
                { "&a a: *a", "{\"a\":\"a\"}" },
                { "! <<: {a: 1}", "{\"a\":1}" },
                { "a: ! 12", "{\"a\":\"12\"}" },
                { "a: b\n- c", refused },
        };

        for (size_t i = 0; i < LKG_ARRAY_SIZE(rows); i++)
                check(rows[i].text, strlen(rows[i].text), rows[i].want);
}

TEST(test_encodings)
{
        static const struct {
                const char *text;
                size_t size;
                const char *want;
        } rows[] = {
                { "\xff\xfe"
                  "a\0:\0 \0\xe9\0",
                  10, "{\"a\":\"\xc3\xa9\"}" },
                { "\xfe\xff"
                  "\0a\0:\0 \xd8\x3d\xde\0",
                  12, "{\"a\":\"\xf0\x9f\x98\x80\"}" },
                { "\xff\xfe"
                  "a\0:",
                  5, refused }, /* half a character */
                { "\xff\xfe"
                  "\x3d\xd8"
                  "a\0",
                  6, refused }, /* half a pair */
                { "\xff\xfe"
                  "\0\xde",
                  4, refused },
                { "\xef\xbb\xbf"
                  "a: 1",
                  7, "{\"a\":1}" },
                { "a: \xef\xbb\xbf"
                  "1",
                  7,
                  "{\"a\":\"\\ufeff"
                  "1\"}" },
                { "a: \xc3", 4, refused },
                { "a: \xc0\x80", 5, refused },
                { "a: \xed\xa0\x80", 6, refused },
                { "a: \xf4\x90\x80\x80", 7, refused },
                { "a: \xff", 4, refused },
                { "a: \x7f", 4, refused },
                { "a: \0", 4, refused },
                { "a: \xc2\x85 b", 7, "{\"a\":\"b\"}" },
                { "", 0, "null" },
        };

        for (size_t i = 0; i < LKG_ARRAY_SIZE(rows); i++)
                check(rows[i].text, rows[i].size, rows[i].want);
}

/* Upstream reads 512 bytes at a time and does not see errors after the document. */
TEST(test_bytes_behind_the_document_are_not_read)
{
        char text[2048];
        size_t n = (size_t)snprintf(text, sizeof(text), "a: 1\n...\n");

        memset(text + n, '#', sizeof(text) - n);
        text[600] = '\x01';
        check(text, sizeof(text), "{\"a\":1}");
        text[500] = '\x01';
        check(text, sizeof(text), refused);
}

/* A value without a JSON form is an error only if it remains in the end. */
TEST(test_replaced_values_are_not_judged)
{
        static const struct {
                const char *text, *want;
        } rows[] = {
                { "a: .inf\na: 1", "{\"a\":1}" },
                { "a: {~: 1}\na: 2", "{\"a\":2}" },
                { "a: {18446744073709551615: 1}\na: 2", "{\"a\":2}" },
                { "a: .inf", "f:1:4: error: infinity and not-a-number have no JSON form; write a number, or "
                             "quote a word [LKG1008]\n" },
                { "b: 1\n~: 1", "f:2:1: error: null cannot be a key; quote it, or name a key [LKG1007]\n" },
                { "x: 18446744073709551616: y", refused },
                { "1: {~: 1}\n\"1\": 2", refused },
        };

        for (size_t i = 0; i < LKG_ARRAY_SIZE(rows); i++)
                check(rows[i].text, strlen(rows[i].text), rows[i].want);
}

TEST(test_keys_keep_their_type_until_the_end)
{
        static const struct {
                const char *text;
                bool strict_ok;
        } rows[] = {
                { "1: a\n0x1: b", false },
                { "1: a\n\"1\": b", true },
                { "1: a\n1.0: b", true },
                { "yes: a\ntrue: b", false },
                { "1.5: a\n1.50: b", false },
                { ".nan: a\n.nan: b", true },
                { "<<: {1: a}\n1: b", false },
                { "<<: {1: a}\n\"1\": b", true },
                { "x: &x {1: a}\n<<: [*x]\n1: b", false },
                { "<<: &l [{1: a}]\n1: b", false },
        };

        for (size_t i = 0; i < LKG_ARRAY_SIZE(rows); i++) {
                const char *got = yaml_of(rows[i].text, strlen(rows[i].text), LKG_DECODE_STRICT);

                assert_int_equal(got[0] == '{', rows[i].strict_ok);
        }
}

TEST(test_simple_keys_are_short)
{
        char text[1100];

        memset(text, 'k', sizeof(text));
        memcpy(text + 1024, ": v", 4);
        assert_int_equal(yaml_of(text, 1027, 0)[0], '{');
        memset(text, 'k', sizeof(text));
        memcpy(text + 1025, ": v", 4);
        check(text, 1028, refused);
}

/* ---- libyaml's result ---- */

static void put_event(const yaml_event_t *event, struct lkg_buf *buf)
{
        switch (event->type) {
        case YAML_SCALAR_EVENT:
                if (event->data.scalar.tag)
                        lkg_buf_printf(buf, "<%s>", (const char *)event->data.scalar.tag);
                lkg_buf_printf(buf, "%s ", (const char *)event->data.scalar.value);
                break;
        case YAML_ALIAS_EVENT:
                lkg_buf_printf(buf, "*%s ", (const char *)event->data.alias.anchor);
                break;
        case YAML_MAPPING_START_EVENT:
        case YAML_SEQUENCE_START_EVENT:
                lkg_buf_putc(buf, event->type == YAML_MAPPING_START_EVENT ? '{' : '[');
                break;
        case YAML_MAPPING_END_EVENT:
        case YAML_SEQUENCE_END_EVENT:
                lkg_buf_putc(buf, event->type == YAML_MAPPING_END_EVENT ? '}' : ']');
                break;
        default:
                break;
        }
}

/* Its events, or @refused. */
static void libyaml_of(const char *text, struct lkg_buf *ret)
{
        yaml_parser_t parser;
        yaml_event_type_t type = YAML_NO_EVENT;

        lkg_buf_append(ret, "", 0);
        assert_int_equal(yaml_parser_initialize(&parser), 1);
        yaml_parser_set_input_string(&parser, (const unsigned char *)text, strlen(text));
        while (type != YAML_STREAM_END_EVENT) {
                yaml_event_t event;

                if (!yaml_parser_parse(&parser, &event)) {
                        lkg_buf_reset(ret);
                        lkg_buf_puts(ret, refused);
                        break;
                }
                type = event.type;
                put_event(&event, ret);
                yaml_event_delete(&event);
        }
        yaml_parser_delete(&parser);
}

/*
 * The table of docs/decisions/008-a-scanner-of-our-own.md, and two cases without a difference: `&a-b.c` and
 * `*a:` are the same to both. When a libyaml fails here, its column has changed.
 */
TEST(test_where_libyaml_differs)
{
        static const struct {
                const char *text, *ours, *libyaml;
        } rows[] = {
                { "{a:,b:}", "{\"a:\":null,\"b:\":null}", refused },
                { "[a:]", "[\"a:\"]", refused },
                { "\"\\/\"", refused, "/ " },
                { "[x?y]", refused, "[x?y ]" },
                { "{x?y: 1}", refused, "{x?y 1 }" },
                { "[!x, a]", "[\"a\"]", "[<!x> a ]" },
                { "{}: b", "{}", "{{}b }" },
                { "\xef\xbb\xbf\xef\xbb\xbf"
                  "ab: 1\ncd: 2\n",
                  "{\"ab\":1,\"d\":2}", refused },
                { "ab: 1\xef\xbb\xbf\n", "{\"ab\":\"1\\ufeff\"}", "{ab 1\xef\xbb\xbf }" }, /* both agree */
                { "a: 1\n\xef\xbb\xbf"
                  "b: 2\n",
                  "{\"a\":1,\"\\ufeffb\":2}", refused },
                { "a: 1\n...\n\x01\n", refused, refused }, /* in the first chunk of both */
                { "%YAML 1.2\n---\na: 1\n", refused, "{a 1 }" },
                { "%YAML 1.1\n---\na: 1\n", "{\"a\":1}", "{a 1 }" },
                { "a: \"\\'\"", "{\"a\":\"'\"}", refused },
                { "a: &a-b.c x\nb: *a-b.c\n", refused, refused },
                { "- &a x\n- *a:\n", "[\"x\",{\"x\":null}]", "[x {*a  }]" },
                { "[&a x, *a:]", "[\"x\",{\"x\":null}]", "[x {*a  }]" },
        };

        for (size_t i = 0; i < LKG_ARRAY_SIZE(rows); i++) {
                LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf events = LKG_BUF_INIT;

                check(rows[i].text, strlen(rows[i].text), rows[i].ours);
                libyaml_of(rows[i].text, &events);
                assert_string_equal(events.data, rows[i].libyaml);
        }
}
