/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Identities of remote configurations: when two are the same, and how nodes are spread over a rollout. Ids and names: rows/read.rows.
 * Rule: docs/specification.md 4.1.
 */

#include <lkg/lifecycle.h>
#include <lkg/objects.h>

#include "unit.h"

static struct lkg_config_source source_of(const char *uid, const char *version, const char *key,
                                          const char *sha256)
{
        struct lkg_config_source source = { .ns = "" };

        (void)snprintf(source.uid, sizeof(source.uid), "%s", uid);
        (void)snprintf(source.version, sizeof(source.version), "%s", version);
        (void)snprintf(source.key, sizeof(source.key), "%s", key);
        (void)snprintf(source.sha256, sizeof(source.sha256), "%s", sha256);
        return source;
}

TEST(test_equality)
{
        struct lkg_config_source local = source_of("", "", "", ""), a = source_of("u", "1", "k", "s");
        struct lkg_config_source b = a;

        assert_true(lkg_config_source_is_local(&local));
        assert_false(lkg_config_source_is_local(&a));
        assert_true(lkg_config_source_equal(&local, &local));
        assert_false(lkg_config_source_equal(&local, &a));
        assert_false(lkg_config_source_equal(&a, &local));
        assert_true(lkg_config_source_equal(&a, &b));
        b = source_of("u", "2", "k", "s");
        assert_false(lkg_config_source_equal(&a, &b));
        assert_true(lkg_config_source_same_content(&a, &b));
        b = source_of("u", "1", "l", "s");
        assert_false(lkg_config_source_equal(&a, &b));
        assert_false(lkg_config_source_same_content(&a, &b));
        b = source_of("v", "1", "k", "s");
        assert_false(lkg_config_source_equal(&a, &b));
        assert_false(lkg_config_source_same_content(&a, &b));
        b = source_of("u", "2", "k", "t");
        assert_false(lkg_config_source_same_content(&a, &b));
}

TEST(test_missing_payloads_are_not_the_same)
{
        struct lkg_config_source a = source_of("u", "1", "k", ""), b = source_of("u", "2", "k", "");
        struct lkg_config_source local = source_of("", "", "", "");

        assert_false(lkg_config_source_same_content(&a, &b));
        assert_false(lkg_config_source_same_content(&local, &local));
}

/* What a generation was made of is still what is followed when only the resourceVersion has changed. */
TEST(test_a_record_of_an_older_version_matches)
{
        struct lkg_config_source a = source_of("u", "2", LKG_KEY_DEFAULT, "s"), local = { 0 }, made_of;

        lkg_config_source_recorded("u@1", "s", &made_of);
        assert_true(lkg_config_source_matches(&made_of, &a));
        assert_false(lkg_config_source_equal(&made_of, &a));
        lkg_config_source_recorded("u@1", "t", &made_of);
        assert_false(lkg_config_source_matches(&made_of, &a));
        lkg_config_source_recorded("u@1", "", &made_of); /* of an earlier build: the id alone counts */
        assert_false(lkg_config_source_matches(&made_of, &a));
        lkg_config_source_recorded("u@2", "", &made_of);
        assert_true(lkg_config_source_matches(&made_of, &a));
        lkg_config_source_recorded("u@2:other", "s", &made_of);
        assert_false(lkg_config_source_matches(&made_of, &a));
        lkg_config_source_recorded("", "", &made_of);
        assert_true(lkg_config_source_matches(&made_of, &local));
        assert_false(lkg_config_source_matches(&made_of, &a));
}

/* The share of many nodes below a percentage is close to it. */
TEST(test_buckets_are_spread)
{
        unsigned below = 0;
        char uid[16];

        for (unsigned i = 0; i < 10000; i++) {
                (void)snprintf(uid, sizeof(uid), "node-%u", i);
                below += lkg_rollout_bucket("", uid) < 10000;
        }
        assert_in_range(below, 850, 1150);
}
