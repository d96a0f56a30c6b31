/* SPDX-License-Identifier: Apache-2.0 */
/* What identifies a state of an object, and how versions compare. */

#include <lkg/documents.h>

#include "unit.h"
#include "core/remote/api.h"

TEST(test_versions_are_compared_as_numbers_of_any_length)
{
        static const struct {
                const char *a, *b;
                enum lkg_version_order order;
        } rows[] = {
                { "9", "10", LKG_VERSION_OLDER },
                { "10", "9", LKG_VERSION_NEWER },
                { "10", "10", LKG_VERSION_SAME },
                { "0010", "10", LKG_VERSION_SAME },
                { "0", "00", LKG_VERSION_SAME },
                { "0", "1", LKG_VERSION_OLDER },
                { "18446744073709551616", "18446744073709551615", LKG_VERSION_NEWER }, /* no overflow */
                { "99999999999999999999999999999998", "99999999999999999999999999999999",
                  LKG_VERSION_OLDER },
                { "a", "b", LKG_VERSION_OTHER },
                { "a", "a", LKG_VERSION_SAME },
                { "10", "1a", LKG_VERSION_OTHER },
                { "-1", "1", LKG_VERSION_OTHER },
                { "", "1", LKG_VERSION_OTHER },
                { "01", "1x", LKG_VERSION_OTHER },
        };

        for (size_t i = 0; i < LKG_ARRAY_SIZE(rows); i++)
                if (lkg_version_compare(rows[i].a, rows[i].b) != rows[i].order)
                        fail_msg("%s and %s", rows[i].a, rows[i].b);
}

static struct lkg_value *decode(const char *text)
{
        struct lkg_report report = LKG_REPORT_INIT;
        struct lkg_value *value = NULL;

        assert_int_equal(lkg_decode_json(text, strlen(text), 0, NULL, &report, &value), 0);
        lkg_report_deinit(&report);
        return value;
}

static const struct lkg_resource configmap = {
        .group_version = "v1",
        .plural = "configmaps",
        .kind = "ConfigMap",
        .ns = "kube-system",
        .name = "c",
};

static int read_object(const char *text, struct lkg_object_id *ret, struct lkg_error *err)
{
        LKG_CLEANUP(lkg_value_unrefp) struct lkg_value *value = decode(text);

        return lkg_object_read(value, &configmap, "the watch sent", ret, err);
}

TEST(test_reads_uid_and_version)
{
        struct lkg_object_id id;

        assert_int_equal(
                read_object("{\"kind\":\"ConfigMap\",\"apiVersion\":\"v1\",\"metadata\":{\"name\":\"c\","
                            "\"namespace\":\"kube-system\",\"uid\":\"a-1\",\"resourceVersion\":\"7\"}}",
                            &id, NULL),
                0);
        assert_string_equal(id.uid, "a-1");
        assert_string_equal(id.version, "7");
        assert_int_equal(
                read_object("{\"metadata\":{\"name\":\"c\",\"uid\":\"a\",\"resourceVersion\":\"7\"}}", &id,
                            NULL),
                0);
}

#define OK_META "\"name\":\"c\",\"uid\":\"a\",\"resourceVersion\":\"7\""

TEST(test_refuses_what_is_another_object_or_hostile)
{
        static const struct {
                const char *text, *words;
        } rows[] = {
                { "{}", "the watch sent an object without metadata" },
                { "{\"metadata\":[]}", "the watch sent an object without metadata" },
                { "{\"kind\":\"Secret\",\"metadata\":{" OK_META "}}",
                  "the watch sent kind \"Secret\"; want ConfigMap" },
                { "{\"kind\":3,\"metadata\":{" OK_META "}}",
                  "the watch sent an object without kind; want ConfigMap" },
                { "{\"apiVersion\":\"v2\",\"metadata\":{" OK_META "}}",
                  "the watch sent apiVersion \"v2\"; want v1" },
                { "{\"metadata\":{\"namespace\":\"x\"," OK_META "}}",
                  "the watch sent metadata.namespace \"x\"; want kube-system" },
                { "{\"metadata\":{\"name\":\"d\",\"uid\":\"a\",\"resourceVersion\":\"7\"}}",
                  "the watch sent metadata.name \"d\"; want c" },
                { "{\"metadata\":{\"uid\":\"a\",\"resourceVersion\":\"7\"}}",
                  "the watch sent an object without metadata.name; want c" },
                { "{\"metadata\":{\"name\":\"c\",\"resourceVersion\":\"7\"}}",
                  "the watch sent an object without metadata.uid" },
                { "{\"metadata\":{\"name\":\"c\",\"uid\":\"../x\",\"resourceVersion\":\"7\"}}",
                  "the watch sent metadata.uid \"../x\"; want 1 to 253 of A-Z a-z 0-9 . _ -" },
                { "{\"metadata\":{\"name\":\"c\",\"uid\":\"..\",\"resourceVersion\":\"7\"}}",
                  "the watch sent metadata.uid \"..\"; want 1 to 253 of A-Z a-z 0-9 . _ -" },
                { "{\"metadata\":{\"name\":\"c\",\"uid\":\"a\",\"resourceVersion\":\"\"}}",
                  "the watch sent metadata.resourceVersion \"\"; want 1 to 253 of A-Z a-z 0-9 . _ -" },
                { "{\"metadata\":{\"name\":\"c\",\"uid\":\"a\",\"resourceVersion\":7}}",
                  "the watch sent an object without metadata.resourceVersion" },
                { "{\"metadata\":{\"name\":\"c\\u0000\",\"uid\":\"a\",\"resourceVersion\":\"7\"}}",
                  "the watch sent metadata.name \"c\\x00\"; want c" },
        };

        for (size_t i = 0; i < LKG_ARRAY_SIZE(rows); i++) {
                struct lkg_error err = { 0 };
                struct lkg_object_id id;

                assert_int_equal(read_object(rows[i].text, &id, &err), -EINVAL);
                assert_string_equal(err.message, rows[i].words);
        }
}

TEST(test_longest_identifier)
{
        char long_uid[LKG_IDENTIFIER_MAX + 2], text[1024];
        struct lkg_object_id id;

        memset(long_uid, 'u', sizeof(long_uid));
        long_uid[sizeof(long_uid) - 1] = '\0'; /* 254 */
        (void)snprintf(text, sizeof(text),
                       "{\"metadata\":{\"name\":\"c\",\"uid\":\"%s\",\"resourceVersion\":\"7\"}}", long_uid);
        assert_int_equal(read_object(text, &id, NULL), -EINVAL);
        (void)snprintf(text, sizeof(text),
                       "{\"metadata\":{\"name\":\"c\",\"uid\":\"%s\",\"resourceVersion\":\"7\"}}",
                       long_uid + 1);
        assert_int_equal(read_object(text, &id, NULL), 0);
        assert_string_equal(id.uid, long_uid + 1);
}

TEST(test_a_bookmark_has_a_version_alone)
{
        LKG_CLEANUP(lkg_value_unrefp)
        struct lkg_value *good = decode(
                                 "{\"kind\":\"ConfigMap\",\"metadata\":{\"resourceVersion\":\"12\"}}"),
                         *bad = decode("{\"metadata\":{\"resourceVersion\":\"1/2\"}}"), *none = decode("{}");
        char version[LKG_IDENTIFIER_MAX + 1];

        assert_int_equal(lkg_object_read_version(good, "the watch sent", version, NULL), 0);
        assert_string_equal(version, "12");
        assert_int_equal(lkg_object_read_version(bad, "the watch sent", version, NULL), -EINVAL);
        assert_int_equal(lkg_object_read_version(none, "the watch sent", version, NULL), -EINVAL);
}

TEST(test_a_status_says_gone)
{
        static const struct {
                const char *text;
                bool gone;
        } rows[] = {
                { "{\"code\":410}", true },
                { "{\"reason\":\"Expired\"}", true },
                { "{\"reason\":\"Gone\",\"code\":400}", true },
                { "{\"reason\":\"InternalError\",\"code\":500}", false },
                { "{\"code\":\"410\"}", false },
                { "{}", false },
        };

        for (size_t i = 0; i < LKG_ARRAY_SIZE(rows); i++) {
                LKG_CLEANUP(lkg_value_unrefp) struct lkg_value *value = decode(rows[i].text);

                assert_int_equal(lkg_object_says_gone(value), rows[i].gone);
        }
}
