/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is masked and what is not; and that no secret is left anywhere in the masked tree.
 * Rule: docs/specification.md 2.13.
 */
#include "config-helpers.h"

TEST(test_text)
{
        static const struct {
                const char *text, *want;
        } rows[] = {
                { "https://u:p@h/x", "https://<masked>@h/x" },
                { "https://u@h", "https://<masked>@h" },
                { "a http://u:p@h b ftp://x:y@z/", "a http://<masked>@h b ftp://<masked>@z/" },
                { "https://u:p@ss@h/", "https://<masked>@h/" },
                { "https://h/x@y", "https://h/x@y" },
                { "https://h?u=a@b", "https://h?<masked>" },
                { "https://h/x?token=t&a=b x", "https://h/x?<masked> x" },
                { "https://u:p@h/x?token=t", "https://<masked>@h/x?<masked>" },
                { "a http://h?b c http://u@h?", "a http://h?<masked> c http://<masked>@h?" },
                { "http://h/a?u=http://v:w@x/", "http://h/a?<masked>" },
                { "what? a://b", "what? a://b" },
                { "user@host", "user@host" },
                { "unix:///run/x.sock", "unix:///run/x.sock" },
                { "://@", "://<masked>@" },
                { "x://a b@c", "x://a b@c" },
                { "", "" },
        };

        for (size_t i = 0; i < LKG_ARRAY_SIZE(rows); i++) {
                struct lkg_buf buf = LKG_BUF_INIT;
                bool masked = lkg_mask_text(rows[i].text, strlen(rows[i].text), &buf);

                assert_string_equal(buf.data, rows[i].want);
                assert_int_equal(masked, strcmp(rows[i].text, rows[i].want) != 0);
                lkg_buf_deinit(&buf);
        }
}

/* A missing space makes a credential part of a name. */
TEST(test_names)
{
        static const struct {
                const char *name;
                bool secret; /* it is below a credential */
                const char *want;
        } rows[] = {
                { "token", false, "token" },
                { "token:s3cret", false, "token:<masked>" },
                { "Token=s3cret", false, "Token=<masked>" },
                { "password s3cret", false, "password <masked>" },
                { "client-key-data:s3cret==", false, "client-key-data:<masked>" },
                { "x,token:s3cret", false, "x,token:<masked>" },
                { "user.token:s3cret", false, "user.token:<masked>" },
                { "staticPodURLHeader.Authorization:s3cret", false,
                  "staticPodURLHeader.Authorization:<masked>" },
                { "tokens:x", false, "tokens:x" },
                { "memory.available", false, "memory.available" },
                { "a:b", false, "a:b" },
                { "Authorization", true, "Authorization" },
                { "Authorization:s3cret", true, "Authorization:<masked>" },
                { "Authorization: Bearer s3cret", true, "Authorization:<masked>" },
                { "token:", false, "token:" },
                { "-----BEGIN EC PRIVATE KEY-----\nMHc", false, "<masked>" },
                { "", false, "" },
        };

        for (size_t i = 0; i < LKG_ARRAY_SIZE(rows); i++) {
                struct lkg_buf buf = LKG_BUF_INIT;
                bool masked = lkg_mask_name(rows[i].name, strlen(rows[i].name), rows[i].secret, &buf);

                lkg_buf_putc(&buf, '\0');
                assert_string_equal(buf.data, rows[i].want);
                assert_int_equal(masked, strcmp(rows[i].name, rows[i].want) != 0);
                lkg_buf_deinit(&buf);
        }
}

/* In a tree, in the table of origins, in a finding. */
TEST(test_names_wherever_they_are_shown)
{
        struct lkg_value *value =
                doc("a: 1\nstaticPodURLHeader: {Authorization:s3cret}\nuser: {token:s3cret}\n");
        struct lkg_value *masked = lkg_mask_secrets(value);
        struct lkg_buf origin = LKG_BUF_INIT;
        char quoted[5 * 64 + 8];

        assert_string_equal(json(masked),
                            "{\"a\":1,\"staticPodURLHeader\":{\"Authorization:<masked>\":null},"
                            "\"user\":{\"token:<masked>\":null}}");
        lkg_render_origin(value, &origin);
        lkg_buf_putc(&origin, '\0');
        assert_null(strstr(origin.data, "s3cret"));
        assert_non_null(strstr(origin.data, "/staticPodURLHeader/Authorization:<masked>\t"));
        assert_non_null(strstr(origin.data, "/user/token:<masked>\t"));
        assert_string_equal(lkg_quote("token:s3cret", 12, quoted), "\"token:<masked>\"");
        assert_string_equal(lkg_quote("x -----BEGIN PRIVATE KEY-----", 29, quoted), "\"<masked>\"");
        assert_string_equal(lkg_quote("a://b@c -----BEGIN PRIVATE KEY-----", 35, quoted), "\"<masked>\"");
        lkg_buf_deinit(&origin);
        lkg_value_unref(masked);
        lkg_value_unref(value);
}

/* A space too few or too many: values below such a name are credentials, too. */
TEST(test_values_below_names_that_hold_one)
{
        static const char *const rows[] = { "staticPodURLHeader:Authorization: s3cret\n",
                                            "staticPodURLHeader Authorization: s3cret\n",
                                            "staticPodURLHeader.Authorization: [s3cret]\n",
                                            "x/token: {a: {b: s3cret}}\n" };

        for (size_t i = 0; i < LKG_ARRAY_SIZE(rows); i++) {
                struct lkg_value *value = doc(rows[i]), *masked = lkg_mask_secrets(value);

                assert_null(strstr(json(masked), "s3cret"));
                lkg_value_unref(masked);
                lkg_value_unref(value);
        }
}

/* A field that is one URL: nothing that may be a credential is shown, however malformed it is. */
TEST(test_url)
{
        static const struct {
                const char *text, *want;
        } rows[] = {
                { "https://h/x", "https://h/x" },
                { "https://u:p@h/x?token=t", "https://<masked>@h/x?<masked>" },
                { "https://h/x#t", "https://h/x#<masked>" },
                { "https://h/x?", "https://h/x?" },
                { "https://u:p/q@h/x", "https://<masked>@h/x" },
                { "https://u:p?q@h/x", "https://<masked>" },
                { "https://h/x?mail=a@b&token=t", "https://<masked>" },
                { "u:p@h/x?token=t u", "<masked>@h/x?<masked>" },
                { "?t", "<masked>" },
                { "https://?t", "https://<masked>" },
                { "h", "h" },
                { "", "" },
        };

        for (size_t i = 0; i < LKG_ARRAY_SIZE(rows); i++) {
                struct lkg_buf buf = LKG_BUF_INIT;
                bool masked = lkg_mask_url(rows[i].text, strlen(rows[i].text), &buf);

                assert_string_equal(buf.data, rows[i].want);
                assert_int_equal(masked, strcmp(rows[i].text, rows[i].want) != 0);
                lkg_buf_deinit(&buf);
        }
}

TEST(test_tree)
{
        static const struct {
                const char *text, *want;
        } rows[] = {
                { "staticPodURLHeader: {Authorization: [Bearer x, 5, true, null]}\n",
                  "{\"staticPodURLHeader\":{\"Authorization\":[\"<masked>\",\"<masked>\",\"<masked>\",null]}"
                  "}" },
                { "staticpodurlheader: x\n", "{\"staticpodurlheader\":\"<masked>\"}" },
                { "a: {b: [{STATICPODURLHEADER: {c: d}}]}\n",
                  "{\"a\":{\"b\":[{\"STATICPODURLHEADER\":{\"c\":\"<masked>\"}}]}}" },
                { "staticPodURLHeaders: x\n", "{\"staticPodURLHeaders\":\"x\"}" },
                { "staticPodURL: https://u:p@h/\nl: [x, http://a:b@c]\n",
                  "{\"l\":[\"x\",\"http://<masked>@c\"],\"staticPodURL\":\"https://<masked>@h/\"}" },
                { "staticPodURL: h/x?token=t\nx: h/x?y\n",
                  "{\"staticPodURL\":\"h/x?<masked>\",\"x\":\"h/x?y\"}" },
                { "STATICPODURL: {a: [u:p@h, 5]}\n", "{\"STATICPODURL\":{\"a\":[\"<masked>@h\",5]}}" },
                { "[{op: add, path: /staticPodURLHeader/A, value: [t]}, {op: add, path: /a, value: x}]\n",
                  "[{\"op\":\"add\",\"path\":\"/staticPodURLHeader/"
                  "A\",\"value\":[\"<masked>\"]},{\"op\":\"add\","
                  "\"path\":\"/a\",\"value\":\"x\"}]" },
                { "[{op: replace, path: /staticPodURL, value: u@h}]\n",
                  "[{\"op\":\"replace\",\"path\":\"/staticPodURL\",\"value\":\"<masked>@h\"}]" },
                { "'http://u:p@h/': 1\nz: 2\n", "{\"http://<masked>@h/\":1,\"z\":2}" },
                { "staticPodURLHeader: {}\n", "{\"staticPodURLHeader\":{}}" },
                { "https://u:p@h/\n", "\"https://<masked>@h/\"" },
        };

        for (size_t i = 0; i < LKG_ARRAY_SIZE(rows); i++) {
                struct lkg_value *value = doc(rows[i].text), *masked = lkg_mask_secrets(value);

                assert_string_equal(json(masked), rows[i].want);
                lkg_value_unref(value);
                lkg_value_unref(masked);
        }
}

TEST(test_innocent_is_shared)
{
        struct lkg_value *value = doc("a: {b: [1, x]}\n"), *masked = lkg_mask_secrets(value);

        assert_ptr_equal(value, masked);
        lkg_value_unref(value);
        lkg_value_unref(masked);
}

static int no_secret(const struct lkg_leaf *leaf, void *userdata)
{
        (void)userdata;
        for (const struct lkg_value *v = leaf->value; v; v = lkg_value_shadowed(v))
                assert_null(strstr(json(v), "secret"));
        return 0;
}

/* The value that a secret replaced is a secret, too. */
TEST(test_shadows)
{
        struct lkg_value *base = doc("staticPodURLHeader: {A: [secret1]}\nu: https://secret@h\n");
        struct lkg_value *patch = doc("staticPodURLHeader: {A: [secret2]}\nu: https://secret2@h\n"),
                         *merged = NULL, *masked;
        struct lkg_buf buf = LKG_BUF_INIT;

        merged = lkg_merge_json(base, patch);
        masked = lkg_mask_secrets(merged);
        assert_int_equal(lkg_value_walk(masked, no_secret, NULL), 0);
        lkg_render_origin(merged, &buf);
        assert_null(strstr(buf.data, "secret"));
        assert_non_null(strstr(buf.data, "layer=[\"<masked>\"]"));
        lkg_buf_deinit(&buf);
        lkg_value_unref(base);
        lkg_value_unref(patch);
        lkg_value_unref(merged);
        lkg_value_unref(masked);
}

TEST(test_pointer)
{
        assert_int_equal(lkg_pointer_secrecy("/staticPodURLHeader/Authorization"), LKG_SECRET);
        assert_int_equal(lkg_pointer_secrecy("/a/StaticPodUrlHeader"), LKG_SECRET);
        assert_int_equal(lkg_pointer_secrecy("/staticPodURL"), LKG_SECRET_URL);
        assert_int_equal(lkg_pointer_secrecy("/staticPodURL/token"), LKG_SECRET);
        assert_int_equal(lkg_pointer_secrecy("/staticPodURLs"), LKG_PUBLIC);
        assert_int_equal(lkg_pointer_secrecy(""), LKG_PUBLIC);
}
