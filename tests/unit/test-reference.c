/* SPDX-License-Identifier: Apache-2.0 */
/*
 * References: both forms of NodeConfigSource, the annotation, and what may be referred to.
 * Rule: docs/specification.md 4.2.
 */

#include <lkg/limits.h>
#include <lkg/objects.h>

#include "unit.h"

#define NONE_SET "invalid NodeConfigSource, exactly one subfield must be non-nil, but all were nil"

static int read_text(const char *text, struct lkg_reference *ret, struct lkg_error *err)
{
        return lkg_reference_from_text(text, strlen(text), ret, err);
}

TEST(test_accepted)
{
        static const struct {
                const char *text, *ns, *name, *key, *uid;
        } rows[] = {
                { "kube-system/kubelet-config", "kube-system", "kubelet-config", "kubelet", "" },
                { " \t kube-system/node.gpu/gpu-1.yaml\n", "kube-system", "node.gpu", "gpu-1.yaml", "" },
                { "{\"configMap\":{\"namespace\":\"a\",\"name\":\"b\"}}", "a", "b", "kubelet", "" },
                { "\n{\"configMap\":{\"namespace\":\"a\",\"name\":\"b\",\"kubeletConfigKey\":\"k\"}}\n", "a",
                  "b", "k", "" },
                { "{\"configMap\":{\"namespace\":\"a\",\"name\":\"b\",\"kubeletConfigKey\":\"\",\"uid\":\"U-"
                  "1\"}}",
                  "a", "b", "kubelet", "U-1" },
                { "{\"configMap\":{\"namespace\":\"a\",\"name\":\"b\",\"uid\":null,\"resourceVersion\":"
                  "\"12\"}}",
                  "a", "b", "kubelet", "" },
                { "{\"configMap\":{\"namespace\":\"a\",\"name\":\"b\"},\"configMapRef\":null}", "a", "b",
                  "kubelet", "" },
                { "{\"kind\":\"NodeConfigSource\",\"apiVersion\":\"v1\",\"configMapRef\":{\"namespace\":"
                  "\"a\","
                  "\"name\":\"b\",\"uid\":\"u\"}}",
                  "a", "b", "kubelet", "u" },
                { "{\"configMapRef\":{\"kind\":\"ConfigMap\",\"apiVersion\":\"v1\",\"namespace\":\"a\","
                  "\"name\":\"b\","
                  "\"uid\":\"u\",\"resourceVersion\":\"9\",\"fieldPath\":\"\"}}",
                  "a", "b", "kubelet", "u" },
        };

        for (size_t i = 0; i < LKG_ARRAY_SIZE(rows); i++) {
                struct lkg_error err = { 0 };
                struct lkg_reference reference;

                if (read_text(rows[i].text, &reference, &err) < 0)
                        fail_msg("%s: %s", rows[i].text, err.message);
                assert_int_equal(reference.type, LKG_REFERENCE_CONFIGMAP);
                assert_string_equal(reference.ns, rows[i].ns);
                assert_string_equal(reference.name, rows[i].name);
                assert_string_equal(reference.key, rows[i].key);
                assert_string_equal(reference.uid, rows[i].uid);
        }
}

TEST(test_local)
{
        struct lkg_reference reference = { .type = LKG_REFERENCE_CONFIGMAP };
        struct lkg_value *null = lkg_value_new_null(NULL, 0, 0);

        assert_int_equal(read_text("  local \n", &reference, NULL), 0);
        assert_int_equal(reference.type, LKG_REFERENCE_LOCAL);
        reference.type = LKG_REFERENCE_CONFIGMAP;
        assert_int_equal(lkg_reference_from_node_source(NULL, &reference, NULL), 0);
        assert_int_equal(reference.type, LKG_REFERENCE_LOCAL);
        reference.type = LKG_REFERENCE_CONFIGMAP;
        assert_int_equal(lkg_reference_from_node_source(null, &reference, NULL), 0);
        assert_int_equal(reference.type, LKG_REFERENCE_LOCAL);
        lkg_value_unref(null);
}

/* The whole message: monitoring compares the reasons of the proposal literally. */
TEST(test_refused)
{
        static const struct {
                const char *text, *want;
        } rows[] = {
                { "{}", NONE_SET },
                { "{\"configMap\":null}", NONE_SET },
                { "{\"configMap\":null,\"configMapRef\":null}", NONE_SET },
                { "{\"kind\":\"NodeConfigSource\"}", NONE_SET },
                { "{\"other\":null}", NONE_SET },
                { "{\"configmap\":{}}", NONE_SET ": unknown field \"configmap\", did you mean configMap?" },
                { "{\"secret\":{}}", NONE_SET ": unknown field \"secret\"" },
                { "{\"configMap\":{},\"configMapRef\":{}}",
                  "invalid NodeConfigSource, exactly one subfield must be non-nil, but both were set" },
                { "{\"configMap\":{\"namespace\":\"a\",\"name\":\"b\"},\"x\":1}",
                  "invalid NodeConfigSource, unknown field \"x\"" },
                { "{\"kind\":\"ConfigMap\"}",
                  "invalid NodeConfigSource, kind: Invalid value: \"ConfigMap\": want NodeConfigSource" },
                { "{\"configMap\":\"a/b\"}", "invalid NodeConfigSource, configMap is a string; want a map" },
                { "{\"configMapRef\":[]}", "invalid NodeConfigSource, configMapRef is a list; want a map" },
                { "{\"configMap\":{}}",
                  "invalid NodeConfigSource, configMap.namespace: Required value: namespace must be set" },
                { "{\"configMap\":{\"namespace\":\"a\",\"name\":\"\"}}",
                  "invalid NodeConfigSource, configMap.name: Required value: name must be set" },
                { "{\"configMap\":{\"namespace\":\"a\",\"name\":5}}",
                  "invalid NodeConfigSource, configMap.name is a number; want text" },
                { "{\"configMap\":{\"namespace\":\"a\",\"name\":\"b\",\"resourceVersion\":5}}",
                  "invalid NodeConfigSource, configMap.resourceVersion is a number; want text" },
                { "{\"configMap\":{\"namespace\":\"a\",\"name\":\"b\",\"kubletConfigKey\":\"k\"}}",
                  "invalid NodeConfigSource, configMap: unknown field \"kubletConfigKey\", did you mean "
                  "kubeletConfigKey?" },
                { "{\"configMap\":{\"namespace\":\"../baz\",\"name\":\"b\"}}",
                  "invalid NodeConfigSource, configMap.namespace: Invalid value: \"../baz\": not a name of "
                  "a-z, 0-9 and "
                  "-, such as kube-system" },
                { "{\"configMap\":{\"namespace\":\"a\",\"name\":\"../bar\"}}",
                  "invalid NodeConfigSource, configMap.name: Invalid value: \"../bar\": not a domain of "
                  "a-z, 0-9, - and "
                  "points, such as example.com" },
                { "{\"configMap\":{\"namespace\":\"a\",\"name\":\"b\",\"kubeletConfigKey\":\"../qux\"}}",
                  "invalid NodeConfigSource, configMap.kubeletConfigKey: Invalid value: \"../qux\": want 1 "
                  "to 253 of the "
                  "characters A-Z, a-z, 0-9, ., _ and -, not . and not .. in front" },
                { "{\"configMap\":{\"namespace\":\"a\",\"name\":\"b\",\"kubeletConfigKey\":\"..x\"}}",
                  "invalid NodeConfigSource, configMap.kubeletConfigKey: Invalid value: \"..x\": want 1 to "
                  "253 of the "
                  "characters A-Z, a-z, 0-9, ., _ and -, not . and not .. in front" },
                { "{\"configMap\":{\"namespace\":\"a\",\"name\":\"b\",\"uid\":\"..\"}}",
                  "invalid NodeConfigSource, configMap.uid: Invalid value: \"..\": want 1 to 253 of the "
                  "characters A-Z, "
                  "a-z, 0-9, ., _ and -, not . or .. alone" },
                { "{\"configMapRef\":{\"namespace\":\"a\",\"name\":\"b\"}}",
                  "invalid ObjectReference, all of UID, Name, and Namespace must be specified" },
                { "{\"configMapRef\":{\"namespace\":\"a\",\"uid\":\"b\",\"name\":null}}",
                  "invalid ObjectReference, all of UID, Name, and Namespace must be specified" },
                { "{\"configMapRef\":{}}",
                  "invalid ObjectReference, all of UID, Name, and Namespace must be specified" },
                { "{\"configMapRef\":{\"kind\":\"Secret\",\"namespace\":\"a\",\"name\":\"b\",\"uid\":\"u\"}"
                  "}",
                  "invalid NodeConfigSource, configMapRef.kind: Invalid value: \"Secret\": want ConfigMap" },
                { "{\"configMapRef\":{\"fieldPath\":\"data\",\"namespace\":\"a\",\"name\":\"b\",\"uid\":"
                  "\"u\"}}",
                  "invalid NodeConfigSource, configMapRef.fieldPath: Invalid value: \"data\": must not be "
                  "set" },
                { "{\"configMapRef\":{\"kubeletConfigKey\":\"k\"}}",
                  "invalid NodeConfigSource, configMapRef: unknown field \"kubeletConfigKey\"" },
                { "", "invalid NodeConfigSource, the text is empty; want namespace/name, or local" },
                { " \n", "invalid NodeConfigSource, the text is empty; want namespace/name, or local" },
                { "null", "invalid NodeConfigSource, \"null\" is not a reference; want namespace/name, "
                          "namespace/name/key, a NodeConfigSource as JSON, or local" },
                { "Local", "invalid NodeConfigSource, \"Local\" is not a reference; want namespace/name, "
                           "namespace/name/key, a NodeConfigSource as JSON, or local" },
                { "a/b/c/d",
                  "invalid NodeConfigSource, \"a/b/c/d\" is not a reference; want namespace/name, "
                  "namespace/name/key, a NodeConfigSource as JSON, or local" },
                { "a/", "invalid NodeConfigSource, name: Required value: name must be set" },
                { "/b", "invalid NodeConfigSource, namespace: Required value: namespace must be set" },
                { "a/b/", "invalid NodeConfigSource, kubeletConfigKey: Required value: want a key behind "
                          "the second /, or "
                          "no /" },
                { "a/b/..",
                  "invalid NodeConfigSource, kubeletConfigKey: Invalid value: \"..\": want 1 to 253 of the "
                  "characters A-Z, a-z, 0-9, ., _ and -, not . and not .. in front" },
                { "a b/c", "invalid NodeConfigSource, namespace: Invalid value: \"a b\": not a name of a-z, "
                           "0-9 and -, "
                           "such as kube-system" },
        };

        for (size_t i = 0; i < LKG_ARRAY_SIZE(rows); i++) {
                struct lkg_error err = { 0 };
                struct lkg_reference reference;

                assert_int_equal(read_text(rows[i].text, &reference, &err), -EINVAL);
                assert_int_equal(err.code, -EINVAL);
                assert_string_equal(err.message, rows[i].want);
        }
}

TEST(test_broken_json_has_a_place)
{
        static const char *const rows[] = { "{", "{\"configMap\":", "{} x",
                                            "{\"configMap\":{},\"configMap\":{}}" };

        for (size_t i = 0; i < LKG_ARRAY_SIZE(rows); i++) {
                struct lkg_error err = { 0 };
                struct lkg_reference reference;

                assert_int_equal(read_text(rows[i], &reference, &err), -EINVAL);
                assert_non_null(strstr(err.message, "invalid NodeConfigSource, line 1, column "));
        }
}

TEST(test_values_are_quoted_in_part)
{
        struct lkg_reference reference;
        struct lkg_error err = { 0 };
        char text[2000];

        memset(text, 'A', sizeof(text));
        assert_int_equal(lkg_reference_from_text(text, sizeof(text), &reference, &err), -EINVAL);
        assert_null(memmem(err.message, strlen(err.message), text, LKG_QUOTE_MAX + 1));
        memcpy(text, "a/", 2);
        assert_int_equal(lkg_reference_from_text(text, sizeof(text), &reference, &err), -EINVAL);
        assert_null(memmem(err.message, strlen(err.message), text + 2, LKG_QUOTE_MAX + 1));
        assert_int_equal(lkg_reference_from_text("a/b\0c", 5, &reference, &err), -EINVAL);
}

TEST(test_longest_names)
{
        struct lkg_reference reference;
        char text[600], name[254];

        memset(name, 'n', sizeof(name) - 1);
        name[253] = '\0';
        (void)snprintf(text, sizeof(text), "%.63s/%s/%s", name, name, name);
        assert_int_equal(read_text(text, &reference, NULL), 0);
        assert_string_equal(reference.name, name);
        assert_string_equal(reference.key, name);
        (void)snprintf(text, sizeof(text), "%.64s/%s", name, name);
        assert_int_equal(read_text(text, &reference, NULL), -EINVAL);
        (void)snprintf(text, sizeof(text), "a/%sn", name);
        assert_int_equal(read_text(text, &reference, NULL), -EINVAL);
        (void)snprintf(text, sizeof(text), "a/b/%sn", name);
        assert_int_equal(read_text(text, &reference, NULL), -EINVAL);
}

TEST(test_parts)
{
        struct lkg_reference a, b;
        struct lkg_error err = { 0 };

        memset(&b, 0xff, sizeof(b));
        assert_int_equal(lkg_reference_from_parts("a", "b", "", "", &a, &err), 0);
        assert_string_equal(a.key, "kubelet");
        assert_int_equal(read_text("a/b/kubelet", &b, &err), 0);
        assert_memory_equal(&a, &b, sizeof(a));
        assert_int_equal(lkg_reference_from_parts("a", "b", "k", "u", &a, &err), 0);
        assert_string_equal(a.key, "k");
        assert_string_equal(a.uid, "u");
        assert_int_equal(lkg_reference_from_parts("", "b", "", "", &a, &err), -EINVAL);
        assert_string_equal(err.message,
                            "invalid NodeConfigSource, namespace: Required value: namespace must be set");
}

TEST(test_result_is_written_only_on_success)
{
        struct lkg_reference reference = { .ns = "before" };

        assert_int_equal(read_text("a/b/..", &reference, NULL), -EINVAL);
        assert_string_equal(reference.ns, "before");
}

TEST(test_allowed_sources)
{
        static const struct {
                const char *pattern, *ns, *name;
                bool allowed;
        } rows[] = {
                { "kube-system/*", "kube-system", "kubelet-config", true },
                { "kube-system/*", "kube-systemx", "kubelet-config", false },
                { "kube-system/*", "default", "kubelet-config", false },
                { "*/*", "a", "b", true },
                { "*/kubelet-*", "a", "kubelet-config-1.30", true },
                { "*/kubelet-*", "a", "config", false },
                { "a/b", "a", "b", true },
                { "a/b", "a", "bc", false },
                { "a/b", "a", "", false },
                { "team-*/b", "team-1", "b", true },
                { "team-*/b", "tea", "b", false },
                { "a*c/b", "abc", "b", false },
                { "*", "a", "b", false },
                { "", "a", "b", false },
        };
        const char *const both[] = { "x/y", "a/*" };

        for (size_t i = 0; i < LKG_ARRAY_SIZE(rows); i++)
                if (lkg_reference_allowed(&rows[i].pattern, 1, rows[i].ns, rows[i].name) != rows[i].allowed)
                        fail_msg("%s, %s/%s", rows[i].pattern, rows[i].ns, rows[i].name);
        assert_true(lkg_reference_allowed(both, 2, "a", "b"));
        assert_false(lkg_reference_allowed(NULL, 0, "a", "b"));
}
