/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What every unit program begins with: cmocka with the headers that it wants, and tests that need no list.
 *
 *     TEST(test_what_holds)
 *     {
 *             assert_int_equal(f(), 0);
 *     }
 *
 *     TEST_WITH(test_of_a_directory, make_dir, remove_dir)        `*state` is what make_dir() has left there
 *
 * They run in the order in which they stand. A program that has to do more says UNIT_OWN_MAIN before it, and calls run_all().
 */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#define CMOCKA_DISABLE_DEPRECATION_WARNINGS /* cmocka 2 has other names, Debian 12 has not */
#include <cmocka.h>

#define TESTS_MAX 128

static struct CMUnitTest unit_tests[TESTS_MAX];
static size_t n_unit_tests;

/* The compiler may call constructors in any order: __COUNTER__ is the number of the test. */
#define TEST_WITH(function, setup, teardown)                                               \
        static void function(void **state);                                                \
        __attribute__((constructor)) static void add_##function(void)                      \
        {                                                                                  \
                unit_tests[__COUNTER__] =                                                  \
                        (struct CMUnitTest){ #function, function, setup, teardown, NULL }; \
                n_unit_tests++;                                                            \
        }                                                                                  \
        static void function(void **state __attribute__((unused)))

#define TEST(function) TEST_WITH(function, NULL, NULL)

static inline int run_all(CMFixtureFunction setup, CMFixtureFunction teardown)
{
        return _cmocka_run_group_tests("tests", unit_tests, n_unit_tests, setup, teardown);
}

#ifndef UNIT_OWN_MAIN
int main(void)
{
        return run_all(NULL, NULL);
}
#endif
