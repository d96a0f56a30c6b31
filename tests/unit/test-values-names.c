/* SPDX-License-Identifier: Apache-2.0 */
/* Names, image patterns, and how a text is cut. */

#include <lkg/text.h>

#include "unit.h"
#include "core/schema/values/values.h"

static char reason[LKG_REFUSAL_MAX];

/* Text that is @n times the letter @c. */
static const char *many(char c, size_t n, char buf[static 300])
{
        memset(buf, c, n);
        buf[n] = '\0';
        return buf;
}

TEST(test_subdomain)
{
        static const char *const right[] = { "a", "example.com", "a-b.0c", "1.2.3.4" };
        static const char *const wrong[] = { "",     "Example.com", "a..b", ".a",  "a.", "-a",
                                             "a-.b", "a_b",         "a/b",  "a\n", " a" };
        char buf[300];

        for (size_t i = 0; i < LKG_ARRAY_SIZE(right); i++)
                assert_int_equal(lkg_name_dns_subdomain(right[i], strlen(right[i]), reason), 0);
        for (size_t i = 0; i < LKG_ARRAY_SIZE(wrong); i++)
                assert_int_equal(lkg_name_dns_subdomain(wrong[i], strlen(wrong[i]), reason), -EINVAL);
        assert_int_equal(lkg_name_dns_subdomain(many('a', 253, buf), 253, reason), 0);
        assert_int_equal(lkg_name_dns_subdomain(many('a', 254, buf), 254, reason), -EINVAL);
        assert_int_equal(lkg_name_dns_subdomain("a\0b", 3, reason), -EINVAL);
}

TEST(test_qualified_name)
{
        static const struct {
                const char *text;
                const char *says; /* NULL: accepted */
        } cases[] = {
                { "a", NULL },
                { "A_b-C.d9", NULL },
                { "node-role.kubernetes.io/control-plane", NULL },
                { "", "empty" },
                { "/a", "before / is empty" },
                { "a/", "behind /" },
                { "a/b/c", "more than one /" },
                { "Example.com/a", "before / is not a domain" },
                { "-a", "letter or digit" },
                { "a.", "letter or digit" },
                { "a b", "letters, digits" },
                { "\303\251", "letters, digits" },
        };
        char buf[300];

        for (size_t i = 0; i < LKG_ARRAY_SIZE(cases); i++) {
                assert_int_equal(lkg_name_qualified(cases[i].text, strlen(cases[i].text), reason),
                                 cases[i].says ? -EINVAL : 0);
                if (cases[i].says)
                        assert_non_null(strstr(reason, cases[i].says));
        }
        assert_int_equal(lkg_name_qualified(many('a', 63, buf), 63, reason), 0);
        assert_int_equal(lkg_name_qualified(many('a', 64, buf), 64, reason), -EINVAL);
        assert_non_null(strstr(reason, "longer than 63"));
        assert_int_equal(lkg_name_qualified("a\0b", 3, reason), -EINVAL);
        assert_int_equal(lkg_name_label_value("", 0, reason), 0);
        assert_int_equal(lkg_name_label_value("a.b", 3, reason), 0);
        assert_int_equal(lkg_name_label_value("a/b", 3, reason), -EINVAL);
}

TEST(test_spans)
{
        struct lkg_span before, after, rest = lkg_span("a,,b,", 5), part;
        char piece[LKG_PIECE_MAX];
        size_t n = 0;

        while (lkg_span_next(&rest, ',', &part))
                n++;
        assert_int_equal(n, 4);
        assert_int_equal(part.size, 0);
        assert_false(lkg_span_cut(lkg_span("ab", 2), '=', &before, &after));
        assert_int_equal(before.size, 2);
        assert_int_equal(after.size, 0);
        assert_true(lkg_span_is(lkg_span_trim(lkg_span("\343\200\200\t a b\342\200\251\n", 12)), "a b"));
        assert_int_equal(lkg_span_trim(lkg_span("\302", 1)).size, 1);
        assert_string_equal(lkg_piece(lkg_span("a\"\\\n\0\303\251\302\205\377", 10), piece),
                            "\"a\\\"\\\\\\x0a\\x00\303\251\\xc2\\x85\\xff\"");
        assert_string_equal(lkg_piece(lkg_span("0123456789012345678901", 22), piece),
                            "\"01234567890123456789...\"");
}

TEST(test_reasons_are_cut)
{
        char small[LKG_REFUSAL_MAX + 1], text[400];

        memset(text, 'x', sizeof(text) - 1);
        text[sizeof(text) - 1] = '\0';
        small[LKG_REFUSAL_MAX] = 'z';
        assert_int_equal(lkg_refuse(small, "%s", text), -EINVAL);
        assert_int_equal(strlen(small), LKG_REFUSAL_MAX - 1);
        assert_int_equal(small[LKG_REFUSAL_MAX], 'z');
        assert_int_equal(lkg_refuse(NULL, "%s", text), -EINVAL);
}

/* Before 1.36 a name had to be in normal form. Recorded from the releases themselves. */
TEST(test_image_pattern_full)
{
        static const char *const right[] = {
                "reg.io/a", "reg.io:5000/a", "localhost/a", "Reg/a", "docker.io/library/a",
                "reg.io/*", "a/*",           "a/b/*",
        };
        static const char *const wrong[] = {
                "a",
                "a/b",
                "reg.io",
                "library/a",
                "docker.io/a",
                "index.docker.io/a",
                "index.docker.io/library/a",
                "A",
        };
        for (size_t i = 0; i < LKG_ARRAY_SIZE(right); i++)
                assert_int_equal(lkg_image_pattern_full(right[i], strlen(right[i]), reason), 0);
        for (size_t i = 0; i < LKG_ARRAY_SIZE(wrong); i++)
                assert_int_equal(lkg_image_pattern_full(wrong[i], strlen(wrong[i]), reason), -EINVAL);
}

TEST(test_image_pattern)
{
        static const char *const right[] = {
                "foo",
                "foo/bar",
                "quay.io/foo",
                "quay.io:443/foo/bar",
                "localhost:5000/a",
                "[::1]:5000/a",
                "[cafe]/a",
                "UP:80/c",
                "a__b",
                "a--b",
                "a.b",
                "A/b",
                "foo/*",
                "foo bar/*",
                "Foo:x@y/*",
        };
        static const struct {
                const char *text, *says;
        } wrong[] = {
                { "", "empty" },
                { " foo", "white space" },
                { "foo/* ", "white space" },
                { "\302\240foo/*", "white space" },
                { "*", "a * in the middle" },
                { "foo*/*", "a * in the middle" },
                { "/*", "no registry" },
                { "foo:tag", "without tag" },
                { "quay.io/foo@sha256:0123456789abcdef0123456789abcdef", "without tag" },
                { "a___b", "not an image name" },
                { "_a/b", "not an image name" },
                { "a_", "not an image name" },
                { "a..b", "not an image name" },
                { "Foo", "not an image name" },
                { "foo/Bar", "not an image name" },
                { "a//b", "not an image name" },
                { "/a", "not an image name" },
                { "a/", "not an image name" },
                { "a:/b", "not an image name" },
                { "[::1/a", "not an image name" },
                { "[]/a", "not an image name" },
        };
        char buf[300];

        for (size_t i = 0; i < LKG_ARRAY_SIZE(right); i++)
                assert_int_equal(lkg_image_pattern(right[i], strlen(right[i]), reason), 0);
        for (size_t i = 0; i < LKG_ARRAY_SIZE(wrong); i++) {
                assert_int_equal(lkg_image_pattern(wrong[i].text, strlen(wrong[i].text), reason), -EINVAL);
                assert_non_null(strstr(reason, wrong[i].says));
        }
        /* The registry does not count for the length of the path. */
        memcpy((char *)many('b', 257, buf), "a/", 2);
        assert_int_equal(lkg_image_pattern(buf, 257, reason), 0);
        memcpy((char *)many('b', 257, buf), "a_", 2);
        assert_int_equal(lkg_image_pattern(buf, 257, reason), -EINVAL);
        assert_non_null(strstr(reason, "longer than 255"));
}
