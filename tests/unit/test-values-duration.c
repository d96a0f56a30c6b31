/* SPDX-License-Identifier: Apache-2.0 */
/* Durations: valid ones, in nanoseconds and in canonical form. */

#include <lkg/text.h>

#include "unit.h"

TEST(test_values)
{
        static const struct {
                const char *text;
                int64_t ns;
                const char *canonical;
        } cases[] = {
                { "0", 0, "0s" },
                { "-0", 0, "0s" },
                { "0s", 0, "0s" },
                { "1m", 60000000000, "1m0s" },
                { "1.5h", 5400000000000, "1h30m0s" },
                { "1h1h", 7200000000000, "2h0m0s" },
                { "00h00m01s", 1000000000, "1s" },
                { ".5s", 500000000, "500ms" },
                { "5.s", 5000000000, "5s" },
                { "-5s", -5000000000, "-5s" },
                { "+5s", 5000000000, "5s" },
                { "100ms", 100000000, "100ms" },
                { "1us", 1000, "1\302\265s" },
                { "1\302\265s", 1000, "1\302\265s" },
                { "1\316\274s", 1000, "1\302\265s" },
                { "1.1us", 1100, "1.1\302\265s" },
                { "3ns", 3, "3ns" },
                { "0.0000000001s", 0, "0s" },
                { "1.000000001s", 1000000001, "1.000000001s" },
                { "0.3333333333333333333h", 1200000000000, "20m0s" },
                { "9223372036854775807ns", INT64_MAX, "2562047h47m16.854775807s" },
                { "-9223372036854775808ns", INT64_MIN, "-2562047h47m16.854775808s" },
        };
        char buf[LKG_DURATION_MAX], reason[LKG_REFUSAL_MAX];

        for (size_t i = 0; i < LKG_ARRAY_SIZE(cases); i++) {
                int64_t ns = -1;

                assert_int_equal(lkg_duration_parse(cases[i].text, strlen(cases[i].text), &ns, reason), 0);
                assert_int_equal(ns, cases[i].ns);
                assert_int_equal(lkg_duration_format(ns, buf), strlen(cases[i].canonical));
                assert_string_equal(buf, cases[i].canonical);
        }
}

TEST(test_refusals)
{
        static const struct {
                const char *text;
                const char *says; /* part of the reason */
        } cases[] = {
                { "", "empty" },
                { "-", "empty" },
                { "5", "without a unit" },
                { "1s1", "without a unit" },
                { "1d", "unknown unit \"d\"" },
                { "1S", "unknown unit \"S\"" },
                { "1s ", "unknown unit \"s \"" },
                { "1 s", "unknown unit \" s\"" },
                { "1e3s", "unknown unit \"e\"" },
                { "1_0s", "unknown unit \"_\"" },
                { " 1s", "no number before \" 1s\"" },
                { "--1s", "no number before \"-1s\"" },
                { ".s", "without digits" },
                { "1.2.3s", "without a unit" },
                { "9223372036854775808ns", "too long" },
                { "2562047h47m16.854775808s", "too long" },
                { "2562048h", "too long" },
                { "99999999999999999999s", "too long" },
                { "-9223372036854775809ns", "too long" },
        };
        char reason[LKG_REFUSAL_MAX];

        for (size_t i = 0; i < LKG_ARRAY_SIZE(cases); i++) {
                int64_t ns = 42;

                *reason = '\0';
                assert_int_equal(lkg_duration_parse(cases[i].text, strlen(cases[i].text), &ns, reason),
                                 -EINVAL);
                assert_non_null(strstr(reason, cases[i].says));
                assert_int_equal(ns, 42);
                assert_int_equal(lkg_duration_parse(cases[i].text, strlen(cases[i].text), &ns, NULL),
                                 -EINVAL);
        }
}

TEST(test_nul_byte_belongs_to_the_unit)
{
        char reason[LKG_REFUSAL_MAX];
        int64_t ns;

        assert_int_equal(lkg_duration_parse("1s\0", 3, &ns, reason), -EINVAL);
        assert_non_null(strstr(reason, "\"s\\x00\""));
}

/* Our own settings, options and commands: lengths of time, so no sign is allowed. */
TEST(test_without_a_sign)
{
        static const struct {
                const char *text;
                uint64_t ns;
        } good[] = {
                { "0", 0 },
                { "0s", 0 },
                { "1ns", 1 },
                { "1us", 1000 },
                { "1.5us", 1500 },
                { "250ms", 250 * LKG_NSEC_PER_MSEC },
                { ".5s", 500 * LKG_NSEC_PER_MSEC },
                { "1.s", LKG_NSEC_PER_SEC },
                { "1.5h", 5400 * LKG_NSEC_PER_SEC },
                { "2h30m", 9000 * LKG_NSEC_PER_SEC },
                { "2562047h47m16.854775807s", INT64_MAX },
        };
        static const char *const bad[] = {
                "",
                "5",
                "s",
                ".s",
                "-1s",
                "+1s",
                "-0",
                "1 s",
                "1s ",
                "1x",
                "1d",
                "1s2",
                "inf",
                "0x10s",
                "nan",
                "99999999999h",
                "18446744073709551616ns",
        };

        for (size_t i = 0; i < LKG_ARRAY_SIZE(good); i++) {
                uint64_t ns = 1;

                assert_int_equal(lkg_duration_parse_plain(good[i].text, &ns), 0);
                assert_int_equal(ns, good[i].ns);
        }
        for (size_t i = 0; i < LKG_ARRAY_SIZE(bad); i++) {
                uint64_t ns = 1;

                if (lkg_duration_parse_plain(bad[i], &ns) != -EINVAL)
                        fail_msg("\"%s\" is a duration", bad[i]);
                assert_int_equal(ns, 1);
        }
}
