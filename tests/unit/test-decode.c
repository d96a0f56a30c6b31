/* SPDX-License-Identifier: Apache-2.0 */
/*
 * YAML and JSON: what is accepted, what it means, error messages, limits. Findings are compared in
 * full. Rule: docs/specification.md 3.3.
 */
#include "config-helpers.h"

#include <lkg/limits.h>

struct row {
        const char *text, *want; /* compact JSON; or, when it starts with "f:", the findings */
        unsigned flags;
};

static void run(const struct row *rows, size_t n, enum lkg_format format)
{
        for (size_t i = 0; i < n; i++) {
                const char *got = answer(rows[i].text, strlen(rows[i].text), format, rows[i].flags);

                if (strcmp(got, rows[i].want) != 0)
                        print_error("input: %s\n", rows[i].text);
                assert_string_equal(got, rows[i].want);
        }
}

/* Each plain scalar as a value; a table of go-yaml v2's results. */
TEST(test_plain_scalars)
{
        static const struct {
                const char *words, *want; /* words separated by spaces */
        } rows[] = {
                { "y Y yes Yes YES on On ON true True TRUE", "true" },
                { "n N no No NO off Off OFF false False FALSE", "false" },
                { "~ null Null NULL", "null" },
                { "0 00 +0 -0 0x0 0b0 0o0", "0" },
                { "010 0o10 0O10 0_10 0b1000 +010", "8" },
                { "-010 -8 -0x8 -0b1000 -0o10", "-8" },
                { "08 8. 8.0 8e0 +8", "8" },
                { "0x1F 0X1f 0x_1f 3_1 31", "31" },
                { "1_000 1e3 1E3 1.e3 10.0e2 1_0_0_0_", "1000" },
                { ".5 +.5 0.5 5e-1 00.5", "0.5" },
                { "-.5 -0.5", "-0.5" },
                { "1.10 1.1", "1.1" },
                { "685_230.15", "685230.15" },
                { "9223372036854775807", "9223372036854775807" },
                { "9223372036854775808", "9223372036854775808" },
                { "18446744073709551615", "18446744073709551615" },
                { "18446744073709551616", "18446744073709552000" },
                { "-9223372036854775808", "-9223372036854775808" },
                { "-9223372036854775809", "-9223372036854776000" },
                { "123456789012345678901234567890", "1.2345678901234568e+29" },
                { "1e20", "100000000000000000000" },
                { "1e21", "1e+21" },
                { "1e-6", "0.000001" },
                { "1e-7", "1e-7" },
                { "-1.5e-9", "-1.5e-9" },
                { "5e-324", "5e-324" },
                { "1.7976931348623157e308", "1.7976931348623157e+308" },
        };
        static const char *const strings[] = {
                "tRuE", "yEs",  "oN",         "nULL", "0x",    "0b2",   "0o",  "1e",        "1e+",   ".",
                "..",   "1:30", "1e400",      "_1",   "=",     "1Gi",   "10%", "100m",      "1.2.3", "0x1G",
                "+",    "--1",  "0b",         "<<",   "+-1",   "1__x",  ".e1", "Infinity",  "inf",   "nan",
                "-",    "1_e",  "2001-01-01", "+.",   "0.0.0", "1e1.5", "._5", "190:20:30",
        };
        char text[600];

        for (size_t i = 0; i < LKG_ARRAY_SIZE(rows); i++) {
                char words[200], *save = NULL;

                (void)snprintf(words, sizeof(words), "%s", rows[i].words);
                for (char *w = strtok_r(words, " ", &save); w; w = strtok_r(NULL, " ", &save)) {
                        (void)snprintf(text, sizeof(text), "[%s]", w);
                        if (strcmp(rows[i].want, "null") == 0)
                                (void)snprintf(text, sizeof(text), "- %s", w);
                        (void)snprintf(words + 150, 50, "[%s]", rows[i].want);
                        assert_string_equal(answer(text, strlen(text), LKG_FORMAT_YAML, 0), words + 150);
                }
        }
        for (size_t i = 0; i < LKG_ARRAY_SIZE(strings); i++) {
                char want[60];

                (void)snprintf(text, sizeof(text), "k: %s\n", strings[i]);
                (void)snprintf(want, sizeof(want), "{\"k\":\"%s\"}", strings[i]);
                if (strcmp(strings[i], "-") == 0)
                        continue; /* a list item, not a scalar */
                assert_string_equal(answer(text, strlen(text), LKG_FORMAT_YAML, 0), want);
        }
}

TEST(test_yaml)
{
        static const struct row rows[] = {
                /* documents */
                { "", "null" },
                { "# nothing\n", "null" },
                { "---\n---\na: 1\n", "null" },
                { "a: 1\n---\nb: [\n", "{\"a\":1}" },
                { "a: 1\n... junk\n", "{\"a\":1}" },
                { "\xef\xbb\xbf"
                  "a: 1\n",
                  "{\"a\":1}" },
                { "%YAML 1.1\n---\na: 1\n", "{\"a\":1}" },
                { "%YAML 1.2\n---\na: 1\n",
                  "f:1:1: error: found incompatible YAML document; remove the %YAML line, or "
                  "write %YAML 1.1 [LKG1001]\n" },
                { "a: 1\r\nb: 2\r\n", "{\"a\":1,\"b\":2}" },
                /* keys */
                { "1: a\n1.5: b\n010: c\ntrue: d\n1e3: e\n2001-01-01: f\n",
                  "{\"1\":\"a\",\"1.5\":\"b\",\"1000\":\"e\",\"2001-01-01\":\"f\",\"8\":\"c\",\"true\":"
                  "\"d\"}" },
                { "1.23456789012: x\n1e6: v\n.inf: z\n",
                  "{\".inf\":\"z\",\"1.2345679\":\"x\",\"1e+06\":\"v\"}" },
                { "on: 1\ny: 2\n", "{\"true\":2}" },
                { "~: 1\n", "f:1:1: error: null cannot be a key; quote it, or name a key [LKG1007]\n" },
                { "[a]: 1\n",
                  "f:1:1: error: a list cannot be a key; is a value in { } or [ ] not quoted? [LKG1007]\n" },
                { "{{a}}: 1\n", "f:1:1: error: a map cannot be a key; is a value in { } or [ ] not quoted?; "
                                "this looks like a template "
                                "(Go, Helm, Jinja) that nobody rendered: put the result here, of `helm "
                                "template` or of Ansible's template "
                                "module [LKG1007]\n" },
                { "18446744073709551615: 1\n",
                  "f:1:1: error: a number above 9223372036854775807 cannot be a key; quote it [LKG1007]\n" },
                { "? a\n: b\n", "{\"a\":\"b\"}" },
                { "1: a\n\"1\": b\n", "{\"1\":\"b\"}", LKG_DECODE_STRICT },
                { "{a, b: 1}\n", "{\"a\":null,\"b\":1}" },
                /* strings */
                { "a: 'yes'\nb: \"010\"\n", "{\"a\":\"yes\",\"b\":\"010\"}" },
                { "a: |\n  x\n  y\nb: >-\n  x\n  y\n", "{\"a\":\"x\\ny\\n\",\"b\":\"x y\"}" },
                { "a: \"\\x41\\u00e9\\0\"\n", "{\"a\":\"A\xc3\xa9\\u0000\"}" },
                { "a: \"\\/\"\n",
                  "f:1:5: error: the escape \\/ is not known in YAML 1.1; write / alone [LKG1001]\n" },
                { "a: !!str \"x\\/\"\n",
                  "f:1:12: error: the escape \\/ is not known in YAML 1.1; write / alone [LKG1001]\n" },
                { "a: \"x\\\\/y\"\nb: '\\/'\nc: \\/\n",
                  "{\"a\":\"x\\\\/y\",\"b\":\"\\\\/\",\"c\":\"\\\\/\"}" },
                /* tags */
                { "a: !!str 12\nb: !!int \"3\"\nc: !!float 3\nd: !!bool \"yes\"\ne: !foo bar\nf: "
                  "!!timestamp 2001-01-01\n",
                  "{\"a\":\"12\",\"b\":3,\"c\":3,\"d\":true,\"e\":\"bar\",\"f\":\"2001-01-01\"}" },
                { "a: !!binary aGk=\n", "{\"a\":\"hi\"}" },
                { "a: !!binary /w==\n", "{\"a\":\"\xef\xbf\xbd\"}" },
                { "a: !!binary x\n", "f:1:4: error: a !!binary value must be base64 [LKG1008]\n" },
                { "a: !!int abc\n",
                  "f:1:4: error: the value does not fit its tag !!int (want a whole number) [LKG1008]\n" },
                { "a: .inf\n",
                  "f:1:4: error: infinity and not-a-number have no JSON form; write a number, or quote a "
                  "word [LKG1008]\n" },
                /* anchors and merge keys */
                { "a: &x [1]\nb: *x\n", "{\"a\":[1],\"b\":[1]}" },
                { "a: &x 1\nb: &x 2\nc: *x\n", "{\"a\":1,\"b\":2,\"c\":2}" },
                { "&k a: 1\nb: {*k : 2}\n", "{\"a\":1,\"b\":{\"a\":2}}" },
                { "[&a [&a x, *a], *a]\n", "[[\"x\",\"x\"],\"x\"]" },
                { "a: *x\n", "f:1:4: error: alias of an unknown anchor; an anchor stands before its "
                             "aliases, as &name, and a "
                             "text that begins with '*' needs quotes [LKG1009]\n" },
                { "a: &x [*x]\n", "f:1:8: error: anchor \"x\" contains itself [LKG1009]\n" },
                { "a: &b {p: 1, q: 2}\nc:\n  <<: *b\n  q: 3\n",
                  "{\"a\":{\"p\":1,\"q\":2},\"c\":{\"p\":1,\"q\":3}}" },
                { "a: &b {q: 2}\nc:\n  q: 3\n  <<: *b\n", "{\"a\":{\"q\":2},\"c\":{\"q\":2}}" },
                { "a: [&x {p: 1}, &y {p: 2, r: 3}]\nb: {<<: [*x, *y]}\n",
                  "{\"a\":[{\"p\":1},{\"p\":2,\"r\":3}],\"b\":{\"p\":1,\"r\":3}}" },
                { "a: {<<: 1}\n",
                  "f:1:9: error: the value of '<<' must be a map, an alias of a map, or a list of those "
                  "[LKG1009]\n" },
                { "a: &l [{x: 1}]\nb: {<<: *l}\n",
                  "f:2:9: error: the value of '<<' must be a map, an alias of a map, or "
                  "a list of those [LKG1009]\n" },
                { "a: {\"<<\": 1}\n", "{\"a\":{\"<<\":1}}" },
                /* duplicates */
                { "a: 1\na: 2\n", "{\"a\":2}" },
                { "a: 1\nb: 2\na: 3\nb: 4\n",
                  "f:3:1: error: key \"a\" is already set on line 1; keep one of the two [LKG1006]\n"
                  "f:4:1: error: key \"b\" is already set on line 2; keep one of the two [LKG1006]\n",
                  LKG_DECODE_STRICT },
                { "a: &b {p: 1}\nc: {<<: *b, p: 2}\n",
                  "f:2:13: error: key \"p\" is already set on line 1; keep one of the two [LKG1006]\n",
                  LKG_DECODE_STRICT },
                /* syntax */
                { "a: b: c\n",
                  "f:1:5: error: mapping values are not allowed in this context; a value that contains ': ' "
                  "must be quoted, and a nested key belongs on its own, deeper indented line [LKG1001]\n" },
                { "a:\n\tb: 1\n",
                  "f:2:1: error: found character that cannot start any token; indent with spaces, not "
                  "tabs, and quote a value that starts with @, ` or % [LKG1001]\n" },
                { "a: [1, 2\n", "f:1:4: error: did not find expected ',' or ']' (noticed on line 2); close "
                                "the list with ] "
                                "[LKG1001]\n" },
                { "a: 'x\n", "f:1:4: error: found unexpected end of stream (noticed on line 2); a quote or "
                             "bracket is not "
                             "closed [LKG1001]\n" },
                { "a: \x01\n",
                  "f:1:4: error: control characters are not allowed; save the file as plain UTF-8 text "
                  "[LKG1002]\n" },
                /* an untyped round trip */
                { "a: 18446744073709551615\nb: 1.50\n", "{\"a\":18446744073709552000,\"b\":1.5}",
                  LKG_DECODE_UNTYPED },
        };

        run(rows, LKG_ARRAY_SIZE(rows), LKG_FORMAT_YAML);
}

TEST(test_json)
{
        static const struct row rows[] = {
                { "{\"a\": 1, \"b\": [true, false, null], \"c\": {\"d\": \"e\"}}",
                  "{\"a\":1,\"b\":[true,false,null],\"c\":{\"d\":\"e\"}}" },
                { " [] \n", "[]" },
                { "{\"a\": 50.0, \"b\": 5e1, \"c\": -0, \"d\": 18446744073709551616}",
                  "{\"a\":50.0,\"b\":5e1,\"c\":-0,\"d\":18446744073709551616}" },
                { "{\"a\": 50.0, \"b\": 5e1, \"c\": -0, \"d\": 18446744073709551616, \"e\": "
                  "9223372036854775807}",
                  "{\"a\":50,\"b\":50,\"c\":0,\"d\":18446744073709552000,\"e\":9223372036854775807}",
                  LKG_DECODE_UNTYPED },
                { "{\"a\": 1e400}",
                  "f:1:7: error: the number is out of range (want one below 1.8e308) [LKG1008]\n",
                  LKG_DECODE_UNTYPED },
                { "\"\\u00e9\\ud83d\\ude00\\ud800x\\/\\n\"",
                  "\"\xc3\xa9\xf0\x9f\x98\x80\xef\xbf\xbdx/\\n\"" },
                { "\"a\xff"
                  "b\xc3\"",
                  "\"a\xef\xbf\xbd"
                  "b\xef\xbf\xbd\"" },
                { "{\"a\": 1,\n \"a\": 2}", "{\"a\":2}" },
                { "{\"a\": 1,\n \"a\": 2}",
                  "f:2:2: error: key \"a\" is already set on line 1; keep one of the two [LKG1006]\n",
                  LKG_DECODE_STRICT },
                { "", "f:1:1: error: found the end of the file where JSON wants a value [LKG1001]\n" },
                { "{a: 1}", "f:1:2: error: found 'a' where JSON wants a key in double quotes [LKG1001]\n" },
                { "{\"a\": 1,}", "f:1:9: error: found '}' where JSON wants a key in double quotes; this "
                                 "looks like JSON with a comma behind the "
                                 "last member: take the comma out [LKG1001]\n" },
                { "[1,\n 2", "f:1:1: error: found the end of the file where JSON wants ',' or ']' (noticed "
                             "on line 2) [LKG1001]\n" },
                { "{\"a\" 1}", "f:1:6: error: found '1' where JSON wants ':' after a key [LKG1001]\n" },
                { "[01]", "f:1:3: error: found '1' where JSON wants ',' or ']' [LKG1001]\n" },
                { "[1.]",
                  "f:1:4: error: found ']' where JSON wants a digit after the decimal point [LKG1001]\n" },
                { "[-]", "f:1:3: error: found ']' where JSON wants a digit [LKG1001]\n" },
                { "[+1]", "f:1:2: error: found '+' where JSON wants a value (strings stand in double "
                          "quotes) [LKG1001]\n" },
                { "[tru]", "f:1:2: error: found 't' where JSON wants a value (strings stand in double "
                           "quotes) [LKG1001]\n" },
                { "{} {}",
                  "f:1:4: error: found '{' where JSON wants nothing more after the document [LKG1001]\n" },
                { "\"a\tb\"",
                  "f:1:3: error: found byte 0x09 where JSON wants an escape (\\n, \\t, \\u0000) for a "
                  "control character in a string [LKG1001]\n" },
                { "\"\\x\"", "f:1:3: error: found 'x' where JSON wants an escape: one of \" \\ / b f n r t "
                             "u [LKG1001]\n" },
                { "\"\\u12g4\"",
                  "f:1:4: error: found '1' where JSON wants four hexadecimal digits [LKG1001]\n" },
        };

        run(rows, LKG_ARRAY_SIZE(rows), LKG_FORMAT_JSON);
}

TEST(test_nul_bytes)
{
        assert_string_equal(answer("a: 1\n\0b", 7, LKG_FORMAT_YAML, 0),
                            "f:2:1: error: a NUL byte; this is not a text file, save it as plain UTF-8 text "
                            "[LKG1002]\n");
        assert_string_equal(
                answer("{\"a\":\0}", 7, LKG_FORMAT_JSON, 0),
                "f:1:6: error: found byte 0x00 where JSON wants a value (strings stand in double quotes) "
                "[LKG1001]\n");
}

/* json-c would accept these: docs/decisions/028-who-reads-json.md. */
TEST(test_what_json_c_would_take)
{
        static const struct {
                const char *text;
                size_t size;
        } refused[] = {
                { "[NaN]", 5 }, { "[Infinity]", 10 },    { "{'a':1}", 7 }, { "[\"\t\"]", 5 },
                { "[1.]", 4 },  { "{}\0{\"b\":1}", 10 }, { "[00]", 4 },
        };
        static const struct row kept[] = {
                { "[18446744073709551616,-0]", "[18446744073709551616,-0]" },
                { "{\"a\\u0000b\":1,\"a\":2}", "{\"a\":2,\"a\\u0000b\":1}" },
        };

        for (size_t i = 0; i < LKG_ARRAY_SIZE(refused); i++)
                assert_non_null(
                        strstr(answer(refused[i].text, refused[i].size, LKG_FORMAT_JSON, 0), " error: "));
        run(kept, LKG_ARRAY_SIZE(kept), LKG_FORMAT_JSON);
}

/* Three bytes each, and 800 in json-c. */
TEST(test_many_empty_maps)
{
        size_t n = LKG_DOC_BYTES_MAX / 3;
        LKG_CLEANUP(lkg_freep) char *text = malloc(3 * n + 1);

        assert_non_null(text);
        for (size_t i = 0; i < n; i++)
                memcpy(text + 3 * i, i ? ",{}" : "[{}", 3);
        text[3 * n] = ']';
        assert_string_equal(answer(text, 3 * n + 1, LKG_FORMAT_JSON, 0),
                            "f:1:2999999: error: the document has more than 1000000 values [LKG1003]\n");
}

TEST(test_format)
{
        assert_int_equal(lkg_detect_format("{}", 2), LKG_FORMAT_JSON);
        assert_int_equal(lkg_detect_format(" \n\t{", 4), LKG_FORMAT_JSON);
        assert_int_equal(lkg_detect_format("\xc2\xa0{", 3), LKG_FORMAT_JSON);
        assert_int_equal(lkg_detect_format("a: {", 4), LKG_FORMAT_YAML);
        assert_int_equal(lkg_detect_format("# {", 3), LKG_FORMAT_YAML);
        assert_int_equal(lkg_detect_format("\xef\xbb\xbf{}", 5), LKG_FORMAT_YAML);
        assert_int_equal(lkg_detect_format("", 0), LKG_FORMAT_YAML);
}

/*
 * Positions: a scalar at its first character, a block collection at its key, a flow collection at its
 * bracket.
 */
TEST(test_positions)
{
        static const struct {
                const char *pointer;
                unsigned line, column;
        } rows[] = {
                { "a", 1, 1 },     { "a.b", 2, 6 }, { "l", 3, 1 },   { "l.0", 4, 3 },
                { "l.1.x", 5, 6 }, { "f", 6, 4 },   { "f.0", 6, 5 }, { "\xc3\xa9", 7, 4 },
        };
        struct lkg_value *value = doc("a:\n  b: 1\nl:\n- 1\n- x: 2\nf: [3]\n\xc3\xa9: 4\n");

        for (size_t i = 0; i < LKG_ARRAY_SIZE(rows); i++) {
                const struct lkg_value *v = lkg_value_get_pointer(value, rows[i].pointer);

                assert_non_null(v);
                assert_int_equal(lkg_value_line(v), rows[i].line);
                assert_int_equal(lkg_value_column(v), rows[i].column);
        }
        lkg_value_unref(value);
        value = doc("{\"\xc3\xa9\": 1,\n  \"b\": {\"c\": [\"x\"]}}");
        assert_int_equal(lkg_value_column(lkg_value_get_pointer(value, "\xc3\xa9")), 7);
        assert_int_equal(lkg_value_line(lkg_value_get_pointer(value, "b.c.0")), 2);
        assert_int_equal(lkg_value_column(lkg_value_get_pointer(value, "b.c.0")), 15);
        lkg_value_unref(value);
}

static char *repeat(const char *head, const char *piece, size_t n, const char *tail)
{
        struct lkg_buf buf = LKG_BUF_INIT;

        lkg_buf_puts(&buf, head);
        for (size_t i = 0; i < n; i++)
                lkg_buf_puts(&buf, piece);
        lkg_buf_puts(&buf, tail);
        return lkg_buf_steal(&buf, NULL);
}

static void check_limit(const char *head, const char *piece, size_t n, const char *tail,
                        enum lkg_format format, const char *want)
{
        char *text = repeat(head, piece, n, tail);
        const char *got = answer(text, strlen(text), format, 0);

        if (want)
                assert_string_equal(got, want);
        else
                assert_true(got[0] == '[' || got[0] == '{');
        free(text);
}

/* A stream without any document has no ignored second document. */
TEST(test_second_document_is_reported_once)
{
        static const struct {
                const char *text;
                size_t n_warnings;
        } rows[] = {
                { "", 0 },
                { "# x\n", 0 },
                { "a: 1\n", 0 },
                { "a: 1\n...\n", 0 },
                { "---\n", 0 },
                { "a: 1\n---\nb: 1\n---\nc: 1\n", 1 },
                { "---\n---\na: 1\n", 1 },
                { "a: 1\n--- [\n", 1 },
        };

        for (size_t i = 0; i < LKG_ARRAY_SIZE(rows); i++) {
                struct lkg_report report = LKG_REPORT_INIT;
                struct lkg_value *value = NULL;

                assert_int_equal(
                        lkg_decode_yaml(rows[i].text, strlen(rows[i].text), 0, NULL, &report, &value), 0);
                assert_int_equal(report.n_findings, rows[i].n_warnings);
                if (rows[i].n_warnings)
                        assert_int_equal(report.findings[0].code, 1010);
                lkg_report_deinit(&report);
                lkg_value_unref(value);
        }
}

/* Rule: docs/specification.md 3.8. */
TEST(test_limits)
{
        char *deep = repeat("", "[", 900, "");

        check_limit(deep, "1,", 100000, "", LKG_FORMAT_YAML,
                    "f:1:900: error: did not find expected node content (noticed on line 2); a value is "
                    "missing "
                    "between two commas [LKG1001]\n"); /* in time proportional to the text */
        free(deep);
        check_limit("", "[", 1000, "", LKG_FORMAT_JSON,
                    "f:1:1001: error: found the end of the file where JSON wants a value [LKG1001]\n");
        check_limit("", "[", 1001, "", LKG_FORMAT_JSON,
                    "f:1:1001: error: nested deeper than 1000 levels [LKG1003]\n");
        check_limit("", "[", 20000, "", LKG_FORMAT_YAML,
                    "f:1:1001: error: nested deeper than 1000 levels [LKG1003]\n");
        check_limit("", "- ", 20000, "", LKG_FORMAT_YAML,
                    "f:1:2001: error: nested deeper than 1000 levels [LKG1003]\n");
        check_limit("[1", ",1", 1000001, "]", LKG_FORMAT_JSON,
                    "f:1:2000000: error: the document has more than 1000000 values [LKG1003]\n");
        check_limit("[1", ",1", 1000001, "]", LKG_FORMAT_YAML,
                    "f:1:1999998: error: the document has more than 1000000 values [LKG1003]\n");
        check_limit("", "#", LKG_DOC_BYTES_MAX + 1, "", LKG_FORMAT_YAML,
                    "f: error: the document has 4194305 bytes; the limit is 4194304 [LKG1003]\n");
}

/* Every level doubles the size: 2^60 values when expanded. Rule: docs/specification.md 3.8. */
TEST(test_alias_bomb)
{
        struct lkg_buf buf = LKG_BUF_INIT;
        const char *got;

        lkg_buf_puts(&buf, "a0: &a0 [x, x]\n");
        for (unsigned i = 1; i <= 60; i++)
                lkg_buf_printf(&buf, "a%u: &a%u [*a%u, *a%u]\n", i, i, i - 1, i - 1);
        got = answer(buf.data, buf.size, LKG_FORMAT_YAML, 0);
        assert_non_null(strstr(got, "mostly of aliases"));
        assert_non_null(strstr(got, "[LKG1004]"));
        lkg_buf_deinit(&buf);
        /* Many aliases of a small value are fine. */
        lkg_buf_puts(&buf, "a: &a [x]\nl:\n");
        for (unsigned i = 0; i < 2000; i++)
                lkg_buf_puts(&buf, "- *a\n");
        assert_true(answer(buf.data, buf.size, LKG_FORMAT_YAML, 0)[0] == '{');
        lkg_buf_deinit(&buf);
}

/* Upstream, a patch is YAML, or JSON where the library is given JSON: neither is refused. */
TEST(test_patches_are_json_or_yaml)
{
        static const struct {
                const char *text, *want;
                unsigned flags;
                enum lkg_format format;
        } rows[] = {
                { "{\"a\": 5.0, \"b\": \"\\/\\ud83d\\ude00\"}", "{\"a\":5,\"b\":\"/\xf0\x9f\x98\x80\"}",
                  LKG_DECODE_UNTYPED, LKG_FORMAT_JSON },
                { "[\"\\ud83d\\ude00\", 1e3]", "[\"\xf0\x9f\x98\x80\",1e3]", 0, LKG_FORMAT_JSON },
                { "null", "null", 0, LKG_FORMAT_JSON },
                { "{a: 5e0, b: [c,],}", "{\"a\":5,\"b\":[\"c\"]}", 0, LKG_FORMAT_YAML },
                { "{\"a\": 1,}", "{\"a\":1}", 0, LKG_FORMAT_YAML },
                { "{\"a\": 1e400}", "{\"a\":\"1e400\"}", LKG_DECODE_UNTYPED, LKG_FORMAT_YAML },
                { "a: 1\n", "{\"a\":1}", 0, LKG_FORMAT_YAML },
                { "", "null", 0, LKG_FORMAT_YAML },
        };

        for (size_t i = 0; i < LKG_ARRAY_SIZE(rows); i++) {
                LKG_CLEANUP(lkg_report_deinit) struct lkg_report report = LKG_REPORT_INIT;
                LKG_CLEANUP(lkg_value_unrefp) struct lkg_value *value = NULL;
                enum lkg_format format;

                assert_int_equal(lkg_decode_patch(rows[i].text, strlen(rows[i].text), rows[i].flags, NULL,
                                                  &report, &format, &value),
                                 0);
                assert_string_equal(json(value), rows[i].want);
                assert_int_equal(format, rows[i].format);
                assert_int_equal(report.n_severity[LKG_ERROR], 0);
        }
}

/* A text that is neither is reported once, by the YAML reader; findings about good JSON are kept. */
TEST(test_findings_of_patches)
{
        LKG_CLEANUP(lkg_report_deinit) struct lkg_report broken = LKG_REPORT_INIT;
        LKG_CLEANUP(lkg_report_deinit) struct lkg_report twice = LKG_REPORT_INIT;
        LKG_CLEANUP(lkg_value_unrefp) struct lkg_value *none = NULL;
        LKG_CLEANUP(lkg_value_unrefp) struct lkg_value *value = NULL;
        enum lkg_format format;

        assert_int_equal(lkg_decode_patch("{\"a\": [", 7, 0, NULL, &broken, &format, &none), -EBADMSG);
        assert_int_equal(broken.n_severity[LKG_ERROR], 1);
        assert_null(none);
        assert_int_equal(lkg_decode_patch("{\"a\":1,\"a\":2}", 13, 0, NULL, &twice, &format, &value), 0);
        assert_int_equal(twice.n_severity[LKG_WARNING], 1);
        assert_string_equal(json(value), "{\"a\":2}");
}

/*
 * A component decodes duplicate keys of a JSON text one after the other into the same value: nothing of the
 * first is lost.
 */
TEST(test_json_base_with_a_key_twice)
{
        static const char text[] =
                "{\"a\": \"x\", \"m\": {\"k\": 1, \"n\": {\"z\": 1}}, \"a\": 5, \"m\": {\"k\": 2, \"n\": "
                "null, \"o\": 3}}";
        struct lkg_source *source = lkg_source_new("base", "f");
        struct lkg_report report = LKG_REPORT_INIT;
        struct lkg_value *value = NULL, *map;
        char *said;

        assert_int_equal(
                lkg_decode(text, strlen(text), LKG_FORMAT_JSON, LKG_DECODE_TWICE, source, &report, &value),
                0);
        said = lkg_report_format(&report, NULL);
        assert_string_equal(
                said, "f:1:42: warning: key \"a\" is already set on line 1; the last one counts [LKG1005]\n"
                      "f:1:50: warning: key \"m\" is already set on line 1; the two are merged, and of what "
                      "both have "
                      "the last one counts [LKG1005]\n");
        assert_string_equal(json(value), "{\"a\":5,\"m\":{\"k\":2,\"n\":null,\"o\":3}}");
        assert_string_equal(json(lkg_value_shadowed(lkg_map_get(value, "a"))), "\"x\"");
        map = lkg_map_get(value, "m");
        assert_string_equal(json(lkg_value_shadowed(lkg_map_get(map, "n"))), "{\"z\":1}");
        free(said);
        lkg_value_unref(value);
        lkg_report_deinit(&report);
        lkg_source_unref(source);
}
