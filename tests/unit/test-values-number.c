/* SPDX-License-Identifier: Apache-2.0 */
/* Booleans, numbers and lists of CPUs. */
#include <math.h>

#include "unit.h"
#include "core/schema/values/values.h"

TEST(test_bool)
{
        static const char *const yes[] = { "1", "t", "T", "TRUE", "true", "True" };
        static const char *const no[] = { "0", "f", "F", "FALSE", "false", "False" };
        static const char *const wrong[] = { "", "yes", "tRUE", " true", "01", "true\n" };
        char reason[LKG_REFUSAL_MAX];
        bool b;

        for (size_t i = 0; i < 6; i++) {
                b = false;
                assert_int_equal(lkg_bool_parse(yes[i], strlen(yes[i]), &b, reason), 0);
                assert_true(b);
                assert_int_equal(lkg_bool_parse(no[i], strlen(no[i]), &b, reason), 0);
                assert_false(b);
                assert_int_equal(lkg_bool_parse(wrong[i], strlen(wrong[i]), &b, reason), -EINVAL);
        }
        assert_string_equal(reason, "not a boolean; want true or false");
}

TEST(test_int)
{
        static const struct {
                const char *text;
                unsigned base, bits;
                int r;
                int64_t n;
        } cases[] = {
                { "42", 0, 32, 0, 42 },
                { "-2147483648", 0, 32, 0, INT32_MIN },
                { "2147483648", 0, 32, -EINVAL, 0 },
                { "-2147483649", 0, 32, -EINVAL, 0 },
                { "-9223372036854775808", 10, 64, 0, INT64_MIN },
                { "9223372036854775808", 10, 64, -EINVAL, 0 },
                { "99999999999999999999", 10, 64, -EINVAL, 0 },
                { "0x1f", 0, 32, 0, 31 },
                { "-0X1F", 0, 32, 0, -31 },
                { "0b101", 0, 32, 0, 5 },
                { "0o17", 0, 32, 0, 15 },
                { "017", 0, 32, 0, 15 },
                { "017", 10, 32, 0, 17 },
                { "08", 0, 32, -EINVAL, 0 },
                { "0", 0, 32, 0, 0 },
                { "0x", 0, 32, -EINVAL, 0 },
                { "1_000", 0, 32, 0, 1000 },
                { "1_000", 10, 32, -EINVAL, 0 },
                { "0x_1f", 0, 32, 0, 31 },
                { "0_7", 0, 32, 0, 7 },
                { "1__0", 0, 32, -EINVAL, 0 },
                { "_1", 0, 32, -EINVAL, 0 },
                { "1_", 0, 32, -EINVAL, 0 },
                { "+7", 10, 64, 0, 7 },
                { "+-7", 10, 64, -EINVAL, 0 },
                { "-", 10, 64, -EINVAL, 0 },
                { "", 0, 32, -EINVAL, 0 },
                { " 1", 0, 32, -EINVAL, 0 },
                { "1.0", 0, 32, -EINVAL, 0 },
        };
        char reason[LKG_REFUSAL_MAX];

        for (size_t i = 0; i < LKG_ARRAY_SIZE(cases); i++) {
                int64_t n = 0;

                assert_int_equal(lkg_int_parse(cases[i].text, strlen(cases[i].text), cases[i].base,
                                               cases[i].bits, &n, reason),
                                 cases[i].r);
                assert_int_equal(n, cases[i].n);
        }
}

TEST(test_uint_has_no_sign)
{
        char reason[LKG_REFUSAL_MAX];
        uint64_t n = 0;

        assert_int_equal(lkg_uint_parse("4294967295", 10, 0, 32, &n, reason), 0);
        assert_int_equal(n, UINT32_MAX);
        assert_int_equal(lkg_uint_parse("18446744073709551615", 20, 10, 64, &n, reason), 0);
        assert_true(n == UINT64_MAX);
        assert_int_equal(lkg_uint_parse("4294967296", 10, 0, 32, &n, reason), -EINVAL);
        assert_string_equal(reason, "out of range; does not fit into 32 bits");
        assert_int_equal(lkg_uint_parse("+1", 2, 0, 32, &n, reason), -EINVAL);
        assert_int_equal(lkg_uint_parse("-0", 2, 0, 32, &n, reason), -EINVAL);
}

TEST(test_float)
{
        static const struct {
                const char *text;
                unsigned bits;
                double n;
        } cases[] = {
                { "0.25", 64, 0.25 },      { ".5", 64, 0.5 },
                { "5.", 64, 5 },           { "-1e3", 64, -1000 },
                { "1_0.5", 64, 10.5 },     { "0x1p-2", 64, 0.25 },
                { "0.1", 32, 0.1f },       { "16777217", 32, 16777216 },
                { "1e-400", 64, 0 },       { "+Infinity", 64, INFINITY },
                { "-inf", 32, -INFINITY },
        };
        static const char *const wrong[] = { "",     ".",     "1e",      "0x1", "1._5",
                                             "+nan", "1e400", "infinit", " 1",  "1f" };
        char reason[LKG_REFUSAL_MAX];
        double n;

        for (size_t i = 0; i < LKG_ARRAY_SIZE(cases); i++) {
                assert_int_equal(
                        lkg_float_parse(cases[i].text, strlen(cases[i].text), cases[i].bits, &n, reason), 0);
                assert_true(n == cases[i].n);
        }
        assert_int_equal(lkg_float_parse("NaN", 3, 64, &n, reason), 0);
        assert_true(isnan(n));
        for (size_t i = 0; i < LKG_ARRAY_SIZE(wrong); i++)
                assert_int_equal(lkg_float_parse(wrong[i], strlen(wrong[i]), 64, &n, reason), -EINVAL);
        assert_int_equal(lkg_float_parse("1e39", 4, 32, &n, reason), -EINVAL);
        assert_string_equal(reason, "out of range; too large for a number of 32 bits");
}

TEST(test_cpuset)
{
        static const struct {
                const char *text;
                int64_t highest;  /* -2: refused */
                const char *says; /* NULL: accepted */
        } cases[] = {
                { "", -1, NULL },
                { "0", 0, NULL },
                { "0-3,8", 8, NULL },
                { "8,0-3", 8, NULL },
                { "1-1", 1, NULL },
                { "007", 7, NULL },
                { "+1", 1, NULL },
                { "0--0", 0, NULL },
                { "3-1", -2, "ends before it begins" },
                { "0,", -2, "a number is missing" },
                { "-1", -2, "a number is missing" },
                { "1-", -2, "a number is missing" },
                { "1-2-3", -2, "\"2-3\" is not a CPU number" },
                { "0, 1", -2, "\" 1\" is not a CPU number" },
                { "a", -2, "\"a\" is not a CPU number" },
                { "0-9223372036854775807", -2, "memory" },
                { "0-67108863,5", -2, "memory" },
        };
        char reason[LKG_REFUSAL_MAX];

        for (size_t i = 0; i < LKG_ARRAY_SIZE(cases); i++) {
                int64_t highest = -2;
                int r = lkg_cpuset_parse(cases[i].text, strlen(cases[i].text), &highest, reason);

                assert_int_equal(r, cases[i].says ? -EINVAL : 0);
                assert_int_equal(highest, cases[i].highest);
                if (cases[i].says)
                        assert_non_null(strstr(reason, cases[i].says));
        }
}
