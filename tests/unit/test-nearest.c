/* SPDX-License-Identifier: Apache-2.0 */
/* "Did you mean": what is near, and what is not. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <lkg/text.h>

static const char *nearest(const char *wrong)
{
        static const char *const names[] = { "maxPods", "maxOpenFiles", "podsPerCore",
                                             "port",    "readOnlyPort", "v" };
        struct lkg_nearest nearest;

        lkg_nearest_init(&nearest, wrong);
        for (size_t i = 0; i < LKG_ARRAY_SIZE(names); i++)
                lkg_nearest_offer(&nearest, names[i]);
        return lkg_nearest_best(&nearest);
}

static void test_two_letters_may_be_wrong(void **state)
{
        (void)state;
        assert_string_equal(nearest("maxPod"), "maxPods");
        assert_string_equal(nearest("maxxPods"), "maxPods");
        assert_string_equal(nearest("mxaPods"), "maxPods"); /* swapped */
        assert_string_equal(nearest("maxOpnFils"), "maxOpenFiles");
        assert_null(nearest("maxOpnFil"));
}

static void test_case_does_not_count(void **state)
{
        (void)state;
        assert_string_equal(nearest("MAXPODS"), "maxPods");
        assert_string_equal(nearest("READONLYPOrt"), "readOnlyPort");
}

static void test_short_names_are_near_to_little(void **state)
{
        (void)state;
        assert_string_equal(nearest("prt"), "port");
        assert_null(nearest("prot1"));
        assert_null(nearest("x y"));
}

static void test_the_nearest_wins_not_the_first(void **state)
{
        struct lkg_nearest n;

        (void)state;
        lkg_nearest_init(&n, "failSwapOn");
        lkg_nearest_offer(&n, "failSwapIn2");
        assert_string_equal(lkg_nearest_best(&n), "failSwapIn2");
        lkg_nearest_offer(&n, "failSwapOm");
        lkg_nearest_offer(&n, "failSwapOf");
        assert_string_equal(lkg_nearest_best(&n), "failSwapOm");
}

static void test_long_names_are_near_to_nothing(void **state)
{
        char text[80] = "";

        (void)state;
        memset(text, 'a', sizeof(text) - 1);
        assert_null(nearest(text));
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_two_letters_may_be_wrong),
                cmocka_unit_test(test_case_does_not_count),
                cmocka_unit_test(test_short_names_are_near_to_little),
                cmocka_unit_test(test_the_nearest_wins_not_the_first),
                cmocka_unit_test(test_long_names_are_near_to_nothing),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
