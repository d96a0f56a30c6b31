/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Staged rollout: the bucket of a node, and what the annotations of a ConfigMap mean for it.
 * Rule: docs/specification.md 4.14.
 */

#include <lkg/objects.h>

#include "unit.h"

#define UID "6f1c2a34-9d1e-4b7f-8a55-0c1d2e3f4a5b" /* bucket 4.455; with the salt 2: 0.260 */

/* A contract: computed by another implementation of SHA-256. */
TEST(test_buckets)
{
        assert_int_equal(lkg_rollout_bucket("", ""), 26115);
        assert_int_equal(lkg_rollout_bucket("", "u-1"), 71378);
        assert_int_equal(lkg_rollout_bucket("2", "u-1"), 89549);
        assert_int_equal(lkg_rollout_bucket("", UID), 4455);
        assert_int_equal(lkg_rollout_bucket("2", UID), 260);
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

static void decide(const char *annotations, const char *uid, struct lkg_rollout *ret)
{
        const struct lkg_configmap_options options = { .max_bytes = 1u << 20 };
        struct lkg_configmap configmap;
        struct lkg_error err = { 0 };
        char text[1024];

        (void)snprintf(text, sizeof(text),
                       "{\"kind\":\"ConfigMap\",\"apiVersion\":\"v1\",\"metadata\":{\"namespace\":\"a\","
                       "\"name\":\"b\",\"uid\":\"u\",\"resourceVersion\":\"1\",\"annotations\":{%s}}}",
                       annotations);
        if (lkg_configmap_parse(text, strlen(text), &options, &configmap, &err) < 0)
                fail_msg("%s: %s", text, err.message);
        lkg_rollout_decide(&configmap, uid, ret);
        lkg_configmap_deinit(&configmap);
}

#define HALT(value)    "\"lkgfs.io/halt\":\"" value "\""
#define PERCENT(value) "\"lkgfs.io/rollout-percent\":\"" value "\""
#define SALT(value)    "\"lkgfs.io/rollout-salt\":\"" value "\""

TEST(test_decisions)
{
        static const struct {
                const char *annotations;
                enum lkg_rollout_state state;
                const char *words;
        } rows[] = {
                { "", LKG_ROLLOUT_GO, "" },
                { SALT("2"), LKG_ROLLOUT_GO, "" },
                { HALT("false"), LKG_ROLLOUT_GO, "" },
                { HALT("true"), LKG_ROLLOUT_HALTED, "rollout halted" },
                { HALT("true") "," PERCENT("100"), LKG_ROLLOUT_HALTED, "rollout halted" },
                { HALT("true") "," PERCENT("many"), LKG_ROLLOUT_HALTED, "rollout halted" },
                { HALT("yes"), LKG_ROLLOUT_UNCLEAR,
                  "rollout unclear: annotation lkgfs.io/halt is \"yes\"; want \"true\" or \"false\"" },
                { HALT("") "," PERCENT("100"), LKG_ROLLOUT_UNCLEAR,
                  "rollout unclear: annotation lkgfs.io/halt is \"\"; want \"true\" or \"false\"" },
                { PERCENT("100"), LKG_ROLLOUT_GO, "" },
                { PERCENT("4.456"), LKG_ROLLOUT_GO, "" },
                { PERCENT("4.455"), LKG_ROLLOUT_WAITING,
                  "waiting for the rollout: bucket 4.455 is not below rollout-percent 4.455" },
                { PERCENT("0.5"), LKG_ROLLOUT_WAITING,
                  "waiting for the rollout: bucket 4.455 is not below rollout-percent 0.5" },
                { PERCENT("0.5") "," SALT("2"), LKG_ROLLOUT_GO, "" },
                { PERCENT("0"), LKG_ROLLOUT_WAITING,
                  "waiting for the rollout: bucket 4.455 is not below rollout-percent 0" },
                { PERCENT("0.2500") "," SALT("2"), LKG_ROLLOUT_UNCLEAR,
                  "rollout unclear: annotation lkgfs.io/rollout-percent is \"0.2500\"; want 0 to 100, with "
                  "at most three decimals" },
        };

        for (size_t i = 0; i < LKG_ARRAY_SIZE(rows); i++) {
                struct lkg_rollout rollout;

                decide(rows[i].annotations, UID, &rollout);
                if (rollout.state != rows[i].state || strcmp(rollout.words, rows[i].words) != 0)
                        fail_msg("%s: %s, %s", rows[i].annotations, lkg_rollout_state_name(rollout.state),
                                 rollout.words);
        }
}

TEST(test_what_is_no_percentage_holds_back)
{
        static const char *const wrong[] = { "",    "-1",  "+1",    "101", "100.001", "1000",
                                             " 5",  "5 ",  "5%",    ".5",  "5.",      "5,5",
                                             "1e1", "0x5", "5.5.5", "ten", "4.4567" };
        char annotation[64];

        for (size_t i = 0; i < LKG_ARRAY_SIZE(wrong); i++) {
                struct lkg_rollout rollout;

                (void)snprintf(annotation, sizeof(annotation), PERCENT("%s"), wrong[i]);
                decide(annotation, UID, &rollout);
                if (rollout.state != LKG_ROLLOUT_UNCLEAR)
                        fail_msg("\"%s\" is taken for a percentage", wrong[i]);
        }
}

TEST(test_what_status_shows)
{
        struct lkg_rollout rollout;

        decide(PERCENT("12.5"), UID, &rollout);
        assert_true(rollout.has_percent);
        assert_false(rollout.halt);
        assert_int_equal(rollout.percent_milli, 12500);
        assert_int_equal(rollout.bucket_milli, 4455);
        decide(HALT("true"), UID, &rollout);
        assert_true(rollout.halt);
        assert_false(rollout.has_percent);
        assert_int_equal(rollout.percent_milli, 100000);
        decide(PERCENT("x"), UID, &rollout);
        assert_int_equal(rollout.percent_milli, 0);
}
