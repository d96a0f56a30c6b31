/* SPDX-License-Identifier: Apache-2.0 */
/* "Did you mean": what is near, and what is not. */

#include <lkg/text.h>

#include "unit.h"

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

TEST(test_two_letters_may_be_wrong)
{
        assert_string_equal(nearest("maxPod"), "maxPods");
        assert_string_equal(nearest("maxxPods"), "maxPods");
        assert_string_equal(nearest("mxaPods"), "maxPods"); /* swapped */
        assert_string_equal(nearest("maxOpnFils"), "maxOpenFiles");
        assert_null(nearest("maxOpnFil"));
}

TEST(test_case_does_not_count)
{
        assert_string_equal(nearest("MAXPODS"), "maxPods");
        assert_string_equal(nearest("READONLYPOrt"), "readOnlyPort");
}

TEST(test_short_names_are_near_to_little)
{
        assert_string_equal(nearest("prt"), "port");
        assert_null(nearest("prot1"));
        assert_null(nearest("x y"));
}

TEST(test_the_nearest_wins_not_the_first)
{
        struct lkg_nearest n;

        lkg_nearest_init(&n, "failSwapOn");
        lkg_nearest_offer(&n, "failSwapIn2");
        assert_string_equal(lkg_nearest_best(&n), "failSwapIn2");
        lkg_nearest_offer(&n, "failSwapOm");
        lkg_nearest_offer(&n, "failSwapOf");
        assert_string_equal(lkg_nearest_best(&n), "failSwapOm");
}

TEST(test_long_names_are_near_to_nothing)
{
        char text[80] = "";

        memset(text, 'a', sizeof(text) - 1);
        assert_null(nearest(text));
}
