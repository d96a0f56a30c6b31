/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Identities of remote configurations: what is safe in a path, ids, equality.
 * Rule: docs/specification.md 4.1.
 */

#include <lkg/lifecycle.h>

#include "unit.h"

static const char *many(char c, size_t n, char *buf)
{
        memset(buf, c, n);
        buf[n] = '\0';
        return buf;
}

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

TEST(test_identifiers)
{
        static const char *const right[] = { "a", "A-Z_0.9", "...", "..a", "-", "7", ".hidden" };
        static const char *const wrong[] = { "",    ".",    "..",   "a/b", "../a",     "a b", "a:b",
                                             "a@b", "a\nb", "a%2f", "\\",  "\303\244", "~" };
        char buf[300];

        for (size_t i = 0; i < LKG_ARRAY_SIZE(right); i++)
                if (!lkg_identifier_ok(right[i]))
                        fail_msg("\"%s\" is refused", right[i]);
        for (size_t i = 0; i < LKG_ARRAY_SIZE(wrong); i++)
                if (lkg_identifier_ok(wrong[i]))
                        fail_msg("\"%s\" is accepted", wrong[i]);
        assert_true(lkg_identifier_ok(many('a', 253, buf)));
        assert_false(lkg_identifier_ok(many('a', 254, buf)));
}

TEST(test_ids)
{
        static const struct {
                const char *uid, *version, *key, *id;
        } rows[] = {
                { "", "", "", "" },          { "u-1", "7", "kubelet", "u-1@7" },
                { "u-1", "7", "", "u-1@7" }, { "u-1", "7", "gpu", "u-1@7:gpu" },
                { "u-1", "", "", "u-1" },    { "local", "0123456789ab", "kubelet", "local@0123456789ab" },
        };
        char id[LKG_SOURCE_ID_MAX + 1];

        for (size_t i = 0; i < LKG_ARRAY_SIZE(rows); i++) {
                struct lkg_config_source source = source_of(rows[i].uid, rows[i].version, rows[i].key, "");

                lkg_config_source_id(&source, id);
                assert_string_equal(id, rows[i].id);
        }
}

TEST(test_parsed_ids)
{
        static const struct {
                const char *text, *uid, *version, *key;
        } rows[] = {
                { "u-1@7", "u-1", "7", "kubelet" },
                { "u-1@7:gpu", "u-1", "7", "gpu" },
                { "u-1@7:kubelet", "u-1", "7", "kubelet" },
                { "u-1", "u-1", "", "" },
                { "local@0123456789ab", "local", "0123456789ab", "kubelet" },
        };

        for (size_t i = 0; i < LKG_ARRAY_SIZE(rows); i++) {
                struct lkg_config_source source;

                assert_int_equal(lkg_config_source_parse_id(rows[i].text, &source), 0);
                assert_string_equal(source.uid, rows[i].uid);
                assert_string_equal(source.version, rows[i].version);
                assert_string_equal(source.key, rows[i].key);
                assert_string_equal(source.ns, "");
                assert_string_equal(source.sha256, "");
        }
}

TEST(test_what_is_no_id)
{
        static const char *const wrong[] = {
                "",
                "@",
                "u@",
                "@7",
                "u@7:",
                "u:k",
                "u@7@8",
                "u@7:a:b",
                "u/v@7",
                "..",
                "..@7",
                "u@..",
                "u@7:..",
                "u@7\n",
                "local",
                "local@abc",
                "local@",
                "local@0123456789AB",
                "local@0123456789ab:k",
                "local@0123456789abc",
        };
        struct lkg_config_source source;
        char buf[300];

        for (size_t i = 0; i < LKG_ARRAY_SIZE(wrong); i++)
                if (lkg_config_source_parse_id(wrong[i], &source) != -EINVAL)
                        fail_msg("\"%s\" is an id", wrong[i]);
        many('a', 256, buf);
        buf[100] = '@';
        assert_int_equal(lkg_config_source_parse_id(buf, &source), -EINVAL);
        buf[255] = '\0';
        assert_int_equal(lkg_config_source_parse_id(buf, &source), 0);
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

TEST(test_check)
{
        static const struct {
                const char *uid, *version, *key, *want; /* in the message; NULL = accepted */
        } rows[] = {
                { "", "", "", NULL },
                { "u", "1", "kubelet", NULL },
                { "local", "0123456789ab", "kubelet", NULL },
                { "../../etc", "1", "kubelet", "uid \"../../etc\"" },
                { "u", "..", "kubelet", "resourceVersion \"..\"" },
                { "u", "", "kubelet", "resourceVersion \"\"" },
                { "u", "1", "", "kubeletConfigKey \"\"" },
                { "u", "1", "a/b", "kubeletConfigKey \"a/b\"" },
        };

        for (size_t i = 0; i < LKG_ARRAY_SIZE(rows); i++) {
                struct lkg_config_source source = source_of(rows[i].uid, rows[i].version, rows[i].key, "");
                struct lkg_error err = { 0 };
                int r = lkg_config_source_check(&source, &err);

                assert_int_equal(r, rows[i].want ? -EINVAL : 0);
                if (rows[i].want && strncmp(err.message, rows[i].want, strlen(rows[i].want)) != 0)
                        fail_msg("%zu: %s", i, err.message);
        }
}

TEST(test_an_id_must_be_a_file_name)
{
        char uid[260], version[260], id[LKG_SOURCE_ID_MAX + 1];
        struct lkg_config_source source =
                source_of(many('u', 200, uid), many('1', 54, version), "kubelet", "");

        assert_int_equal(lkg_config_source_check(&source, NULL), 0);
        lkg_config_source_id(&source, id);
        assert_int_equal(strlen(id), 255);
        source = source_of(uid, many('1', 55, version), "kubelet", "");
        assert_int_equal(lkg_config_source_check(&source, NULL), -EINVAL);
        lkg_config_source_id(&source, id); /* truncated, not written beyond its end */
        assert_int_equal(strlen(id), 255);
        source = source_of(uid, many('1', 52, version), "a", "");
        assert_int_equal(lkg_config_source_check(&source, NULL), 0);
        source = source_of(uid, version, "ab", "");
        assert_int_equal(lkg_config_source_check(&source, NULL), -EINVAL);
}
