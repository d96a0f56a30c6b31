/* SPDX-License-Identifier: Apache-2.0 */
/* Times as text: a round trip is exact to the nanosecond, and what is not RFC 3339 is refused. */

#include <lkg/base.h>

#include "unit.h"

#define S LKG_NSEC_PER_SEC

static const struct {
        const char *text;
        uint64_t ns;
} good[] = {
        { "1970-01-01T00:00:00Z", 0 },
        { "2018-01-02T15:04:05Z", 1514905445 * S },
        { "2018-01-02t15:04:05z", 1514905445 * S },
        { "2018-01-02T15:04:05.5Z", 1514905445 * S + S / 2 },
        { "2018-01-02T15:04:05.000000001Z", 1514905445 * S + 1 },
        { "2018-01-02T15:04:05.0000000019Z", 1514905445 * S + 1 },
        { "2018-01-02T15:04:05+01:30", (1514905445 - 5400) * S },
        { "2018-01-02T15:04:05-08:00", (1514905445 + 28800) * S },
        { "2016-12-31T23:59:60Z", 1483228799 * S },
        { "2024-02-29T00:00:00Z", 1709164800 * S },
        { "2553-12-31T23:59:59Z", UINT64_C(18429292799) * S },
};

static const char *const bad[] = {
        "",
        "Z",
        "2018",
        "2018-01-02",
        "2018-01-02 15:04:05Z",
        "2018-01-02T15:04:05",
        "2018-01-02T15:04:05Z08:00", /* upstream's own case */
        "2018-01-02T15:04:05Z ",
        "2018-01-02T15:04:05.Z",
        "2018-01-02T15:04:05,5Z",
        "2018-01-02T15:04Z",
        "2018-1-2T15:04:05Z",
        "18-01-02T15:04:05Z",
        "2018-13-02T15:04:05Z",
        "2018-00-02T15:04:05Z",
        "2018-01-00T15:04:05Z",
        "2018-02-29T15:04:05Z",
        "2018-04-31T15:04:05Z",
        "2018-01-02T24:00:00Z",
        "2018-01-02T15:60:05Z",
        "2018-01-02T15:04:61Z",
        "2018-01-02T15:04:05+24:00",
        "2018-01-02T15:04:05+0100",
        "1969-12-31T23:59:59Z",
        "1970-01-01T00:00:00+00:01",
        "2554-12-31T23:59:59Z",
        "9999-12-31T23:59:59Z",
        "-018-01-02T15:04:05Z",
};

TEST(test_parse)
{
        for (size_t i = 0; i < LKG_ARRAY_SIZE(good); i++) {
                uint64_t ns = 7;

                assert_int_equal(lkg_parse_rfc3339(good[i].text, &ns), 0);
                assert_int_equal(ns, good[i].ns);
        }
}

TEST(test_refuse)
{
        for (size_t i = 0; i < LKG_ARRAY_SIZE(bad); i++) {
                uint64_t ns = 7;

                if (lkg_parse_rfc3339(bad[i], &ns) != -EINVAL)
                        fail_msg("accepted: %s", bad[i]);
                assert_int_equal(ns, 7);
        }
}

TEST(test_every_prefix_is_refused)
{
        static const char text[] = "2018-01-02T15:04:05.125+01:30";

        for (size_t i = 0; i < sizeof(text) - 1; i++) {
                char part[sizeof(text)];
                uint64_t ns;

                memcpy(part, text, i);
                part[i] = '\0';
                assert_int_equal(lkg_parse_rfc3339(part, &ns), -EINVAL);
        }
}

TEST(test_format)
{
        static const struct {
                uint64_t ns;
                const char *text;
        } rows[] = {
                { 0, "1970-01-01T00:00:00Z" },
                { 1514905445 * S, "2018-01-02T15:04:05Z" },
                { 1514905445 * S + S / 2, "2018-01-02T15:04:05.5Z" },
                { 1514905445 * S + 1, "2018-01-02T15:04:05.000000001Z" },
                { 1514905445 * S + 999999999, "2018-01-02T15:04:05.999999999Z" },
                { 1514905445 * S + 120000000, "2018-01-02T15:04:05.12Z" },
        };

        for (size_t i = 0; i < LKG_ARRAY_SIZE(rows); i++) {
                char text[31];
                uint64_t ns = 7;

                lkg_format_rfc3339_ns(rows[i].ns, text);
                assert_string_equal(text, rows[i].text);
                assert_int_equal(lkg_parse_rfc3339(text, &ns), 0);
                assert_int_equal(ns, rows[i].ns);
        }
}
