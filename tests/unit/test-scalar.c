/* SPDX-License-Identifier: Apache-2.0 */
/* Words and numbers at their limits: forms that only Go's number parsers accept, digits, timestamps. */
#include <lkg/tree.h>

#include "config-helpers.h"

TEST(test_numbers)
{
        static const struct {
                const char *text, *want; /* NULL = a string */
        } rows[] = {
                { "0b-101", "-5" },
                { "0b+1", "1" },
                { "-0b11", "-3" },
                { "-0b-1", NULL },
                { "0b", NULL },
                { ".5_0", "0.5" },
                { "._5", NULL },
                { ".5_", NULL },
                { ".5__0", NULL },
                { ".5e1_0", "5000000000" },
                { "1_000", "1000" },
                { "-0", "0" },
                { "-0.0", "-0" },
                { "+.5", "0.5" },
                { "1e400", NULL },
                { "08", "8" },
                { "010", "8" },
                { "18446744073709551616", "18446744073709552000" },
                { "5e-324", "5e-324" },
                { "2.2250738585072014e-308", "2.2250738585072014e-308" },
                { "0.1", "0.1" },
                { "1.7976931348623157e308", "1.7976931348623157e+308" },
                { "123456789012345680000", "123456789012345680000" },
        };

        for (size_t i = 0; i < LKG_ARRAY_SIZE(rows); i++) {
                struct lkg_scalar scalar;

                lkg_scalar_resolve(rows[i].text, strlen(rows[i].text), &scalar);
                if (!rows[i].want) {
                        assert_int_equal(scalar.type, LKG_S_STRING);
                        continue;
                }
                assert_true(scalar.type == LKG_S_INT || scalar.type == LKG_S_FLOAT);
                assert_string_equal(scalar.text, rows[i].want);
        }
}

TEST(test_words)
{
        static const struct {
                const char *text;
                enum lkg_scalar_type type;
        } rows[] = {
                { "", LKG_S_NULL },        { "~", LKG_S_NULL },      { "NULL", LKG_S_NULL },
                { "nULL", LKG_S_STRING },  { "y", LKG_S_BOOL },      { "OFF", LKG_S_BOOL },
                { "yess", LKG_S_STRING },  { "-.inf", LKG_S_FLOAT }, { ".NaN", LKG_S_FLOAT },
                { "-.nan", LKG_S_STRING }, { "-", LKG_S_STRING },    { ".", LKG_S_STRING },
        };

        for (size_t i = 0; i < LKG_ARRAY_SIZE(rows); i++) {
                struct lkg_scalar scalar;

                lkg_scalar_resolve(rows[i].text, strlen(rows[i].text), &scalar);
                assert_int_equal(scalar.type, rows[i].type);
        }
}

TEST(test_timestamps)
{
        static const char *const good[] = { "2001-01-02",
                                            "2001-1-2",
                                            "2004-02-29",
                                            "2001-01-02T3:4:5Z",
                                            "2001-01-02t03:04:05,5+24:60",
                                            "2001-01-02   3:4:5.1234567890123",
                                            "2001-01-02 3:4:5" };
        static const char *const bad[] = { "2001-02-29",
                                           "2001-13-01",
                                           "2001-00-01",
                                           "2001-01-32",
                                           "01-01-01",
                                           "2001-01-02T3:4:5",
                                           "2001-01-02 3:4:5Z",
                                           "2001-01-02T24:00:00Z",
                                           "2001-01-02T3:4:60Z",
                                           "2001-01-02T3:4:5+1:00",
                                           "2001-01-02 3:4:5.",
                                           "2001-01-02x",
                                           "" };

        for (size_t i = 0; i < LKG_ARRAY_SIZE(good); i++)
                assert_true(lkg_scalar_is_timestamp(good[i], strlen(good[i])));
        for (size_t i = 0; i < LKG_ARRAY_SIZE(bad); i++)
                assert_false(lkg_scalar_is_timestamp(bad[i], strlen(bad[i])));
}

TEST(test_keys)
{
        char buf[LKG_NUMBER_TEXT_MAX];

        lkg_float_key(1.23456789012, buf);
        assert_string_equal(buf, "1.2345679");
        lkg_float_key(1e6, buf);
        assert_string_equal(buf, "1e+06");
        lkg_float_key(1e-45, buf);
        assert_string_equal(buf, "1e-45");
}
