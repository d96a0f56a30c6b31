/* SPDX-License-Identifier: Apache-2.0 */
/* Resource quantities: which text is valid, how it is printed, how it compares. */
#include "unit.h"
#include "core/schema/values/values.h"

static struct lkg_quantity parse(const char *text)
{
        struct lkg_quantity quantity = LKG_QUANTITY_INIT;
        char reason[LKG_REFUSAL_MAX];

        assert_int_equal(lkg_quantity_parse(text, strlen(text), &quantity, reason), 0);
        return quantity;
}

/* @text: as the component prints it; @canonical: NULL = the same */
static void expect(const char *source, const char *text, const char *canonical)
{
        LKG_CLEANUP(lkg_quantity_deinit) struct lkg_quantity quantity = parse(source);
        LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf buf = LKG_BUF_INIT;

        lkg_quantity_text(&quantity, lkg_span(source, strlen(source)), &buf);
        assert_string_equal(buf.data, text);
        lkg_buf_reset(&buf);
        lkg_quantity_canonical(&quantity, &buf);
        assert_string_equal(buf.data, canonical ? canonical : text);
}

TEST(test_printed_form)
{
        expect("1", "1", NULL);
        expect("01", "01", "1"); /* printed as written, it looks canonical */
        expect("+1Gi", "+1Gi", "1Gi");
        expect("1.5", "1500m", NULL);
        expect("1.5Gi", "1536Mi", NULL);
        expect("0.1", "100m", NULL);
        expect("1.0", "1", NULL);
        expect("1.", "1.", "1");
        expect(".5", "500m", NULL);
        expect("1000m", "1", NULL);
        expect("1500000", "1500k", NULL);
        expect("1024Mi", "1Gi", NULL);
        expect("1023", "1023", NULL);
        expect("512e6", "512e6", NULL);
        expect("1E3", "1E3", "1e3");
        expect("1E", "1E", NULL);
        expect("10e3", "10e3", NULL);
        expect("100e2", "10e3", NULL);
        expect("-1Ki", "-1Ki", NULL);
        expect("1Ei", "1Ei", NULL);
        expect("0.1Gi", "107374182400m", NULL);
        expect("1e400", "10e399", NULL);
        expect("0.0000000000000000000000001", "1n", NULL);
}

TEST(test_zero)
{
        static const char *const zeros[] = { "0",  "-0", "+",  "-",   ".",   "0.0",    "0Gi",
                                             "Ki", "0E", "00", "-.m", "0Ei", "0e99999" };

        for (size_t i = 0; i < LKG_ARRAY_SIZE(zeros); i++) {
                LKG_CLEANUP(lkg_quantity_deinit) struct lkg_quantity quantity = parse(zeros[i]);

                expect(zeros[i], "0", NULL);
                assert_true(lkg_quantity_is_zero(&quantity));
                assert_int_equal(lkg_quantity_sign(&quantity), 0);
        }
}

TEST(test_exact_with_many_digits)
{
        expect("1.2345678901Gi", "1325607178167805543n", NULL);
        expect("123456789012345678901234567890", "123456789012345678901234567890", NULL);
        expect("123456789012345678901234567890e-3", "123456789012345678901234567890e-3", NULL);
        expect("0.12345678901234567890", "123456790n", NULL); /* rounded up, away from zero */
        expect("-0.12345678901234567890", "-123456790n", NULL);
        expect("0.99999999999999999999", "1", NULL);
        expect("999999999999999999.99999999995", "1E", NULL);
}

TEST(test_cap_of_binary_values)
{
        expect("8Ei", "9223372036854775807", NULL);
        expect("-8Ei", "-9223372036854775807", NULL);
        expect("9223372036854775807Ki", "9223372036854775807", NULL);
        expect("9007199254740991.5Ki", "9223372036854775296", NULL);
        expect("9007199254740991.9999Ki", "9223372036854775807", NULL); /* only the fraction is above */
        /* decimal ones have no limit */
        expect("9223372036854775808", "9223372036854775808", NULL);
}

TEST(test_no_suffix_above_exa)
{
        expect("1000E", "1", NULL); /* upstream loses the power of ten */
        expect("1000000000000000000000", "1", NULL);
}

TEST(test_exponent_keeps_32_bits)
{
        expect("1e4294967296", "1e4294967296", "1");
        expect("15e4294967297", "150", NULL);
}

TEST(test_refusals)
{
        static const struct {
                const char *text;
                const char *says;
        } cases[] = {
                { "", "empty" },
                { "1K", "suffix \"K\"" },
                { "1mi", "suffix \"mi\"" },
                { "1kk", "suffix \"kk\"" },
                { "1Ei5", "suffix \"Ei5\"" },
                { "1e", "suffix \"e\"" },
                { "1e-", "suffix \"e-\"" },
                { "1-5", "suffix \"-5\"" },
                { "1e9223372036854775808", "suffix" },
                { "1Zi", "not a quantity" },
                { "1KiB", "not a quantity" },
                { "0x10", "not a quantity" },
                { " 1", "not a quantity" },
                { "1 ", "not a quantity" },
                { "1_000", "not a quantity" },
                { "1.2.3", "not a quantity" },
                { "--1", "suffix \"-1\"" },
                { "\377", "not a quantity" },
                { "Ei", "no digits" },
                { "e-20", "no digits" },
                { "1234567890123456789e2000000", "exponent" },
                { "1e-2000000000", "exponent" },
        };
        char reason[LKG_REFUSAL_MAX];

        for (size_t i = 0; i < LKG_ARRAY_SIZE(cases); i++) {
                struct lkg_quantity quantity;

                *reason = '\0';
                assert_int_equal(lkg_quantity_parse(cases[i].text, strlen(cases[i].text), &quantity, reason),
                                 -EINVAL);
                assert_non_null(strstr(reason, cases[i].says));
        }
}

TEST(test_compare)
{
        /* ascending */
        static const char *const order[] = { "-1e30",
                                             "-8Ei",
                                             "-1",
                                             "-1n",
                                             "0",
                                             "1n",
                                             "999m",
                                             "1",
                                             "1Ki",
                                             "1Mi",
                                             "8Ei",
                                             "1e19",
                                             "123456789012345678901234",
                                             "1e30" };
        static const char *const equal[][2] = {
                { "1", "1000m" },
                { "1Ki", "1024" },
                { "1e30", "1000000000000000000000000000000" },
                { "0", "-0" },
        };

        for (size_t i = 0; i < LKG_ARRAY_SIZE(order); i++) {
                for (size_t j = 0; j < LKG_ARRAY_SIZE(order); j++) {
                        LKG_CLEANUP(lkg_quantity_deinit) struct lkg_quantity a = parse(order[i]);
                        LKG_CLEANUP(lkg_quantity_deinit) struct lkg_quantity b = parse(order[j]);

                        assert_int_equal(lkg_quantity_compare(&a, &b), i < j ? -1 : i > j);
                }
        }
        for (size_t i = 0; i < LKG_ARRAY_SIZE(equal); i++) {
                LKG_CLEANUP(lkg_quantity_deinit) struct lkg_quantity a = parse(equal[i][0]);
                LKG_CLEANUP(lkg_quantity_deinit) struct lkg_quantity b = parse(equal[i][1]);

                assert_int_equal(lkg_quantity_compare(&a, &b), 0);
        }
}

TEST(test_int64)
{
        static const struct {
                const char *text;
                bool fits;
                int64_t n;
        } cases[] = {
                { "10Mi", true, 10485760 }, { "-5", true, -5 },
                { "1k", true, 1000 },       { "9E", true, 9000000000000000000 },
                { "10E", false, 0 },        { "1500m", false, 0 },
                { "1.5Gi", false, 0 }, /* an integer, but stored as a decimal */
        };

        for (size_t i = 0; i < LKG_ARRAY_SIZE(cases); i++) {
                LKG_CLEANUP(lkg_quantity_deinit) struct lkg_quantity quantity = parse(cases[i].text);
                int64_t n = 0;

                assert_int_equal(lkg_quantity_int64(&quantity, &n), cases[i].fits);
                assert_int_equal(n, cases[i].n);
        }
}

/* The results of Quantity.Value in apimachinery v0.36.3. */
TEST(test_value_wraps_as_upstream_does)
{
        static const struct {
                const char *text;
                int64_t value;
        } cases[] = {
                { "0", 0 },
                { "1", 1 },
                { "1500m", 2 },
                { "1n", 1 },
                { "-1n", -1 },
                { "-1500m", -2 },
                { "1Ki", 1024 },
                { "-1Ki", -1024 },
                { "1E", 1000000000000000000 },
                { "10E", 0 },
                { "999999999999999999k", 3875820019684211736 },
                { "999999999999999999M", 2003764205205896640 },
                { "999999999999999999e4", 0 },
                { "9223372036854775807", INT64_MAX },
                { "9223372036854775808", INT64_MIN },
                { "-9223372036854775808", 0 },
                { "-9223372036854775809", -1 },
                { "18446744073709551616", 0 },
                { "18446744073709551617", 1 },
                { "18446744073709551615.5", 0 },
                { "-1.0000000000000000001", 0 },
                { "-2.0000000000000000001", -1 },
                { "1.0000000000000000001", 2 },
                { "-18446744073709551617.5", 0 },
                { "16Ei", INT64_MAX },
                { "-16Ei", -INT64_MAX },
                { "0.1Ki", 103 },
                { "-0.1Ki", -101 },
                { "1234567890123456789012e20", -7360141842769248256 },
                { "1e400", 0 },
                { "100000000000000000000", 7766279631452241920 },
                { "-100000000000000000000", -7886392055 },
        };

        for (size_t i = 0; i < LKG_ARRAY_SIZE(cases); i++) {
                LKG_CLEANUP(lkg_quantity_deinit) struct lkg_quantity quantity = parse(cases[i].text);

                if (lkg_quantity_value(&quantity) != cases[i].value)
                        fail_msg("%s: %lld", cases[i].text, (long long)lkg_quantity_value(&quantity));
        }
}

TEST(test_json_strings_are_trimmed)
{
        struct lkg_span span;

        span = lkg_quantity_trim("  1Gi\302\240 ", 8);
        assert_true(lkg_span_is(span, "1Gi"));
        span = lkg_quantity_trim("\t1", 2); /* an escape in JSON, where the component trims */
        assert_int_equal(span.size, 2);
        span = lkg_quantity_trim("1\342\200\250", 4);
        assert_int_equal(span.size, 4);
        assert_int_equal(lkg_quantity_trim("   ", 3).size, 0);
}
