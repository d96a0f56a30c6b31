/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ConfigMap objects: which are valid, their identity, and the payload under a key.
 * Rule: docs/specification.md 4.3.
 */

#include <lkg/objects.h>
#include <lkg/documents.h>
#include <lkg/limits.h>

#include "unit.h"

#define META                                                                                        \
        "\"kind\":\"ConfigMap\",\"apiVersion\":\"v1\",\"metadata\":{\"namespace\":\"kube-system\"," \
        "\"name\":\"cfg\","
#define FULL META "\"uid\":\"u-1\",\"resourceVersion\":\"7\"}"

static const struct lkg_configmap_options api = { .max_bytes = 3u << 20, .file = "api" };
static const struct lkg_configmap_options file = { .max_bytes = 3u << 20,
                                                   .from_file = true,
                                                   .file = "cm.yaml" };

static int parse(const char *text, const struct lkg_configmap_options *options, struct lkg_configmap *ret,
                 struct lkg_error *err)
{
        return lkg_configmap_parse(text, strlen(text), options, ret, err);
}

static struct lkg_configmap parsed(const char *text, const struct lkg_configmap_options *options)
{
        struct lkg_configmap configmap;
        struct lkg_error err = { 0 };

        if (parse(text, options, &configmap, &err) < 0)
                fail_msg("%s: %s", text, err.message);
        return configmap;
}

static void assert_refused(const char *text, const struct lkg_configmap_options *options, int code,
                           const char *message)
{
        struct lkg_configmap configmap = { 0 };
        struct lkg_error err = { 0 };

        assert_int_equal(parse(text, options, &configmap, &err), code);
        assert_null(configmap.object);
        if (strcmp(err.message, message) != 0)
                fail_msg("%s: %s", text, err.message);
}

TEST(test_api_object)
{
        struct lkg_configmap configmap = parsed("{" FULL ",\"data\":{\"kubelet\":\"a: 1\\n\"}}", &api),
                             moved;
        const char *text;
        size_t size;

        moved = configmap;
        memset(&configmap, 0, sizeof(configmap));
        assert_string_equal(moved.ns, "kube-system");
        assert_string_equal(moved.name, "cfg");
        assert_string_equal(moved.uid, "u-1");
        assert_string_equal(moved.version, "7");
        assert_int_equal(lkg_configmap_payload(&moved, "kubelet", &text, &size, NULL), 0);
        assert_int_equal(size, 5);
        assert_string_equal(text, "a: 1\n");
        lkg_configmap_deinit(&moved);
        lkg_configmap_deinit(&moved);
}

TEST(test_file_gets_uid_and_version)
{
        static const char text[] =
                "kind: ConfigMap\napiVersion: v1\nmetadata: {namespace: kube-system, name: cfg}\n";
        struct lkg_configmap configmap = parsed(text, &file);
        char hash[LKG_SHA256_HEX];

        assert_int_equal(lkg_sha256_hex("kube-system/cfg", 15, hash), 0);
        hash[12] = '\0';
        assert_string_equal(configmap.uid, hash);
        assert_int_equal(lkg_sha256_hex(text, strlen(text), hash), 0);
        hash[12] = '\0';
        assert_string_equal(configmap.version, hash);
        lkg_configmap_deinit(&configmap);
        configmap = parsed("{" FULL "}", &file);
        assert_string_equal(configmap.uid, "u-1");
        assert_string_equal(configmap.version, "7");
        lkg_configmap_deinit(&configmap);
}

TEST(test_checkpoint_reads_back_as_the_same)
{
        static const char text[] = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  namespace: a\n  name: b\n"
                                   "  annotations: {x/y: \"1\"}\n  generation: 12345678901234567890\n"
                                   "data:\n  kubelet: |\n    text: \"\\x01\"\n  other: \"\\0\\u2028\"\n"
                                   "binaryData:\n  b: AAEC\n";
        struct lkg_configmap first = parsed(text, &file), second;
        LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf buf = LKG_BUF_INIT, again = LKG_BUF_INIT;
        struct lkg_error err = { 0 };

        lkg_configmap_format(&first, &buf);
        assert_false(lkg_buf_failed(&buf));
        assert_int_equal(lkg_configmap_parse(buf.data, buf.size, &api, &second, &err), 0);
        assert_true(lkg_value_equal(first.object, second.object));
        assert_string_equal(first.uid, second.uid);
        assert_string_equal(first.version, second.version);
        lkg_configmap_format(&second, &again);
        assert_string_equal(buf.data, again.data);
        lkg_buf_deinit(&again);
        lkg_configmap_deinit(&first);
        lkg_configmap_deinit(&second);
}

TEST(test_wrong_kinds_are_named)
{
        assert_refused("{\"kind\":\"List\",\"apiVersion\":\"v1\",\"items\":[]}", &api, -EINVAL,
                       "api:1:1: kind \"List\" of apiVersion \"v1\"; want the ConfigMap itself and no list");
        assert_refused(
                "{\"kind\":\"Secret\",\"apiVersion\":\"v1\",\"data\":{\"kubelet\":\"c2VjcmV0\"}}", &api,
                -EINVAL,
                "api:1:1: kind \"Secret\" of apiVersion \"v1\"; want kind ConfigMap of apiVersion v1");
        assert_refused(
                "{\"kind\":\"ConfigMap\",\"apiVersion\":\"v2\"}", &api, -EINVAL,
                "api:1:1: kind \"ConfigMap\" of apiVersion \"v2\"; want kind ConfigMap of apiVersion v1");
        assert_refused("kind: KubeletConfiguration\napiVersion: kubelet.config.k8s.io/v1beta1\n", &file,
                       -EINVAL,
                       "cm.yaml:1:1: kind \"KubeletConfiguration\" of apiVersion "
                       "\"kubelet.config.k8s.io/v1beta1\"; want kind ConfigMap of apiVersion v1");
        assert_refused("{}", &api, -EINVAL,
                       "api:1:1: no kind or no apiVersion; want kind: ConfigMap and apiVersion: v1");
        assert_refused("[]", &api, -EINVAL, "api:1:1: a list; want a ConfigMap");
        assert_refused("null", &api, -EINVAL, "api:1:1: a null; want a ConfigMap");
}

TEST(test_identity_is_checked_before_it_becomes_a_path)
{
        assert_refused("{\"kind\":\"ConfigMap\",\"apiVersion\":\"v1\"}", &api, -EINVAL,
                       "api:1:1: metadata is missing; want namespace and name");
        assert_refused("{\"kind\":\"ConfigMap\",\"apiVersion\":\"v1\",\"metadata\":[]}", &api, -EINVAL,
                       "api:1:50: metadata is a list; want a map");
        assert_refused("{\"kind\":\"ConfigMap\",\"apiVersion\":\"v1\",\"metadata\":{\"name\":\"a\"}}", &file,
                       -EINVAL, "cm.yaml:1:50: metadata.namespace is missing");
        assert_refused("{" META "\"uid\":\"u\"}}", &api, -EINVAL,
                       "api:1:50: metadata.resourceVersion is missing");
        assert_refused("{" META "\"resourceVersion\":\"\",\"uid\":\"\"}}", &api, -EINVAL,
                       "api:1:117: metadata.uid is missing");
        assert_refused("kind: ConfigMap\napiVersion: v1\nmetadata:\n  namespace: ../etc\n  name: a\n", &file,
                       -EINVAL,
                       "cm.yaml:4:14: metadata.namespace \"../etc\": not a name of a-z, 0-9 and -, such as "
                       "kube-system");
        assert_refused("kind: ConfigMap\napiVersion: v1\nmetadata:\n  namespace: a\n  name: a/b\n", &file,
                       -EINVAL,
                       "cm.yaml:5:9: metadata.name \"a/b\": not a domain of a-z, 0-9, - and points, such as "
                       "example.com");
        assert_refused(
                "{" META "\"uid\":\"..\",\"resourceVersion\":\"7\"}}", &api, -EINVAL,
                "api:1:96: metadata.uid \"..\": not 1 to 253 of the characters A-Z, a-z, 0-9, ., _ and -");
        assert_refused("{" META "\"uid\":\"u\",\"resourceVersion\":\"7/8\"}}", &api, -EINVAL,
                       "api:1:118: metadata.resourceVersion \"7/8\": not 1 to 253 of the characters A-Z, "
                       "a-z, 0-9, ., _ "
                       "and -");
        assert_refused("{" META "\"uid\":\"u\",\"resourceVersion\":7}}", &file, -EINVAL,
                       "cm.yaml:1:118: metadata.resourceVersion is a number; want text, in quotes");
        assert_refused(
                "{" META "\"uid\":\"local\",\"resourceVersion\":\"7\"}}", &api, -EINVAL,
                "api:1:96: metadata.uid \"local\": the name of local configurations; want the uid of an "
                "object");
        assert_refused("{" META "\"uid\":\"a\\u0000b\",\"resourceVersion\":\"7\"}}", &api, -EINVAL,
                       "api:1:96: metadata.uid \"a\\x00b\": not 1 to 253 of the characters A-Z, a-z, 0-9, "
                       "., _ and -");
}

TEST(test_data_is_text)
{
        assert_refused("kind: ConfigMap\napiVersion: v1\nmetadata: {namespace: a, name: b}\n"
                       "data:\n  kubelet:\n    maxPods: 5\n",
                       &file, -EINVAL,
                       "cm.yaml:5:3: data: \"kubelet\" is a map; want text (a number in quotes, a document "
                       "behind |)");
        assert_refused(
                "{" FULL ",\"data\":{\"a\":1}}", &api, -EINVAL,
                "api:1:137: data: \"a\" is a number; want text (a number in quotes, a document behind |)");
        assert_refused("{" FULL ",\"data\":\"x\"}", &api, -EINVAL,
                       "api:1:132: data is a string; want a map");
        assert_refused("{" FULL ",\"data\":{\"../a\":\"secret\"}}", &api, -EINVAL,
                       "api:1:140: data: the key \"../a\" cannot be in a ConfigMap: want 1 to 253 of the "
                       "characters A-Z, "
                       "a-z, 0-9, ., _ and -, not . and not .. in front");
        assert_refused("{" FULL ",\"data\":{\"a\":\"secret\"},\"binaryData\":{\"a\":\"\"}}", &api, -EINVAL,
                       "api:1:137: data: the key \"a\" is also in binaryData");
        assert_refused("{" FULL ",\"data\":{\"a\":\"1\",\"a\":\"2\"}}", &api, -EBADMSG,
                       "api:1:141: key \"a\" is already set on line 1; keep one of the two");
}

TEST(test_annotations)
{
        struct lkg_configmap configmap = parsed(
                "{" META "\"uid\":\"u\",\"resourceVersion\":\"7\",\"annotations\":{\"a/b\":\"1\"}}}", &api);

        assert_string_equal(lkg_configmap_annotation(&configmap, "a/b"), "1");
        assert_null(lkg_configmap_annotation(&configmap, "a/c"));
        lkg_configmap_deinit(&configmap);
        configmap = parsed("{" FULL "}", &api);
        assert_null(lkg_configmap_annotation(&configmap, "a/b"));
        lkg_configmap_deinit(&configmap);
        assert_refused("kind: ConfigMap\napiVersion: v1\nmetadata:\n  namespace: a\n  name: b\n"
                       "  annotations: {lkgfs.io/crash-loop-threshold: 3}\n",
                       &file, -EINVAL,
                       "cm.yaml:6:48: metadata.annotations: \"lkgfs.io/crash-loop-threshold\" is a number; "
                       "want text (a "
                       "number in quotes, a document behind |)");
}

TEST(test_file_that_means_local)
{
        static const char *const rows[] = { "", "\n\n", "# nothing\n", "local", " local\n", "---\nlocal\n" };
        struct lkg_configmap configmap;

        for (size_t i = 0; i < LKG_ARRAY_SIZE(rows); i++) {
                assert_int_equal(parse(rows[i], &file, &configmap, NULL), -ENODATA);
                assert_int_not_equal(parse(rows[i], &api, &configmap, NULL), -ENODATA);
        }
        assert_int_equal(parse("Local", &file, &configmap, NULL), -EINVAL);
}

TEST(test_replies_are_json)
{
        struct lkg_configmap configmap;

        assert_int_equal(parse("kind: ConfigMap\napiVersion: v1\n", &api, &configmap, NULL), -EBADMSG);
        assert_int_equal(parse("{" FULL, &api, &configmap, NULL), -EBADMSG);
}

TEST(test_second_document_is_refused)
{
        assert_refused(
                "kind: ConfigMap\napiVersion: v1\nmetadata: {namespace: a, name: b}\n---\nkind: Secret\n",
                &file, -EINVAL, "cm.yaml:4:1: more than one document; want one ConfigMap alone");
}

TEST(test_size_limit)
{
        struct lkg_configmap_options options = api;
        struct lkg_configmap configmap;
        struct lkg_error err = { 0 };
        const char text[] = "{" FULL "}";

        options.max_bytes = strlen(text);
        configmap = parsed(text, &options);
        lkg_configmap_deinit(&configmap);
        options.max_bytes--;
        assert_int_equal(parse(text, &options, &configmap, &err), -EFBIG);
        options.max_bytes = SIZE_MAX;
        assert_int_equal(lkg_configmap_parse(text, LKG_DOC_BYTES_MAX + 1u, &options, &configmap, &err),
                         -EFBIG);
}

TEST(test_object_that_no_checkpoint_could_hold)
{
        LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf bomb = LKG_BUF_INIT, deep = LKG_BUF_INIT;
        struct lkg_configmap configmap;
        struct lkg_configmap_options options = file;

        lkg_buf_puts(
                &bomb,
                "kind: ConfigMap\napiVersion: v1\nmetadata: {namespace: a, name: b}\ndata:\n  k: &t \"");
        for (size_t i = 0; i < 1u << 16; i++)
                lkg_buf_putc(&bomb, 'x');
        lkg_buf_puts(&bomb, "\"\n");
        for (size_t i = 0; i < 80; i++)
                lkg_buf_printf(&bomb, "  k%zu: *t\n", i);
        assert_int_equal(lkg_configmap_parse(bomb.data, bomb.size, &options, &configmap, NULL), -EFBIG);
        lkg_buf_puts(&deep, "{" FULL ",\"x\":");
        for (size_t i = 0; i < 100; i++)
                lkg_buf_putc(&deep, '[');
        for (size_t i = 0; i < 100; i++)
                lkg_buf_putc(&deep, ']');
        lkg_buf_putc(&deep, '}');
        assert_int_equal(lkg_configmap_parse(deep.data, deep.size, &api, &configmap, NULL), -EFBIG);
}

static struct lkg_reference reference_of(const char *text)
{
        struct lkg_reference reference;

        assert_int_equal(lkg_reference_from_text(text, strlen(text), &reference, NULL), 0);
        return reference;
}

TEST(test_resolve)
{
        struct lkg_configmap configmap = parsed(
                "{" FULL ",\"data\":{\"kubelet\":\"x\",\"empty\":\"\"},\"binaryData\":{\"bin\":\"/w==\"}}",
                &api);
        struct lkg_reference reference = reference_of("kube-system/cfg");
        struct lkg_config_source source;
        struct lkg_error err = { 0 };

        assert_int_equal(lkg_configmap_resolve(&configmap, &reference, &source, &err), 0);
        assert_string_equal(source.ns, "kube-system");
        assert_string_equal(source.name, "cfg");
        assert_string_equal(source.uid, "u-1");
        assert_string_equal(source.version, "7");
        assert_string_equal(source.key, "kubelet");
        assert_string_equal(source.sha256,
                            "2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881");
        for (size_t i = 0; i < 3; i++) {
                static const char *const texts[] = { "kube-system/cfg/empty", "kube-system/cfg/bin",
                                                     "kube-system/cfg/none" };

                reference = reference_of(texts[i]);
                assert_int_equal(lkg_configmap_resolve(&configmap, &reference, &source, &err), 0);
                assert_string_equal(source.sha256, "");
        }
        lkg_configmap_deinit(&configmap);
}

TEST(test_another_object_than_was_meant)
{
        static const struct {
                const char *text, *want;
        } rows[] = {
                { "{\"configMap\":{\"namespace\":\"kube-system\",\"name\":\"cfg\",\"uid\":\"u-2\"}}",
                  "invalid ObjectReference, UID \"u-2\" does not match UID of downloaded ConfigMap "
                  "\"u-1\"" },
                { "kube-system/other", "invalid ObjectReference, kube-system/other does not match the "
                                       "ConfigMap kube-system/cfg" },
                { "default/cfg",
                  "invalid ObjectReference, default/cfg does not match the ConfigMap kube-system/cfg" },
        };
        struct lkg_configmap configmap = parsed("{" FULL "}", &api);

        for (size_t i = 0; i < LKG_ARRAY_SIZE(rows); i++) {
                struct lkg_reference reference = reference_of(rows[i].text);
                struct lkg_config_source source = { .uid = "before" };
                struct lkg_error err = { 0 };

                assert_int_equal(lkg_configmap_resolve(&configmap, &reference, &source, &err), -EINVAL);
                assert_string_equal(err.message, rows[i].want);
                assert_string_equal(source.uid, "before");
        }
        lkg_configmap_deinit(&configmap);
}

TEST(test_payload_errors_name_the_keys)
{
        struct lkg_configmap configmap = parsed("{" FULL ",\"data\":{\"a\":\"secret\",\"b\":\"\"},"
                                                "\"binaryData\":{\"c\":\"/w==\"}}",
                                                &api);
        struct lkg_error err = { 0 };
        const char *text;
        size_t size;

        assert_int_equal(lkg_configmap_payload(&configmap, "kubelet", &text, &size, &err), -ENOENT);
        assert_string_equal(err.message,
                            "no key \"kubelet\" in data of ConfigMap kube-system/cfg; it has \"a\", \"b\"");
        assert_int_equal(lkg_configmap_payload(&configmap, "b", &text, &size, &err), -ENODATA);
        assert_string_equal(err.message, "key \"b\" of ConfigMap kube-system/cfg is empty");
        assert_int_equal(lkg_configmap_payload(&configmap, "c", &text, &size, &err), -EINVAL);
        assert_string_equal(err.message,
                            "key \"c\" of ConfigMap kube-system/cfg is in binaryData; want it in data");
        lkg_configmap_deinit(&configmap);
        configmap = parsed("{" FULL ",\"data\":null}", &api);
        assert_int_equal(lkg_configmap_payload(&configmap, "kubelet", &text, &size, &err), -ENOENT);
        assert_string_equal(err.message,
                            "no key \"kubelet\" in data of ConfigMap kube-system/cfg; it has none");
        lkg_configmap_deinit(&configmap);
        configmap = parsed("{" FULL
                           ",\"data\":{\"1\":\"\",\"2\":\"\",\"3\":\"\",\"4\":\"\",\"5\":\"\",\"6\":\"\","
                           "\"7\":\"\",\"8\":\"\",\"9\":\"\"}}",
                           &api);
        assert_int_equal(lkg_configmap_payload(&configmap, "kubelet", &text, &size, &err), -ENOENT);
        assert_non_null(strstr(err.message, "\"8\", ..."));
        lkg_configmap_deinit(&configmap);
}

TEST(test_id_that_is_too_long_for_a_file_name)
{
        char text[1024], uid[251];
        struct lkg_reference reference = reference_of("kube-system/cfg");
        struct lkg_configmap configmap;
        struct lkg_config_source source;

        memset(uid, 'u', sizeof(uid) - 1);
        uid[250] = '\0';
        (void)snprintf(text, sizeof(text), "{" META "\"uid\":\"%s\",\"resourceVersion\":\"12345\"}}", uid);
        configmap = parsed(text, &api);
        assert_int_equal(lkg_configmap_resolve(&configmap, &reference, &source, NULL), -EINVAL);
        lkg_configmap_deinit(&configmap);
}

static struct lkg_value *decoded(const char *text)
{
        LKG_CLEANUP(lkg_report_deinit) struct lkg_report report = LKG_REPORT_INIT;
        struct lkg_value *value = NULL;

        if (lkg_decode_json(text, strlen(text), 0, NULL, &report, &value) < 0)
                fail_msg("no JSON: %s", text);
        return value;
}

TEST(test_a_decoded_object_passes_the_same_checks)
{
        static const struct {
                const char *text;
                int code;
                const char *words;
        } wrong[] = {
                { "[]", -EINVAL, "a list; want a ConfigMap" },
                { "{\"kind\":\"Secret\",\"apiVersion\":\"v1\"}", -EINVAL,
                  "kind \"Secret\" of apiVersion \"v1\"; want kind ConfigMap of apiVersion v1" },
                { "{" META "\"uid\":\"u-1\"}}", -EINVAL, "metadata.resourceVersion is missing" },
                { "{" META "\"resourceVersion\":\"7\"}}", -EINVAL, "metadata.uid is missing" },
                { "{" META "\"uid\":\"..\",\"resourceVersion\":\"7\"}}", -EINVAL,
                  "metadata.uid \"..\": not 1 to 253 of the characters A-Z, a-z, 0-9, ., _ and -" },
                { "{" FULL ",\"data\":{\"k\":1}}", -EINVAL,
                  "data: \"k\" is a number; want text (a number in quotes, a document behind |)" },
        };
        LKG_CLEANUP(lkg_value_unrefp)
        struct lkg_value *value = decoded("{" FULL ",\"data\":{\"kubelet\":\"a: 1\\n\"}}");
        struct lkg_configmap configmap,
                other = parsed("{" FULL ",\"data\":{\"kubelet\":\"a: 1\\n\"}}", &api);

        assert_int_equal(lkg_configmap_from_value(value, &configmap, NULL), 0);
        value = lkg_value_unref(value); /* it has its own reference */
        assert_string_equal(configmap.name, "cfg");
        assert_string_equal(configmap.uid, "u-1");
        assert_string_equal(configmap.version, "7");
        assert_true(lkg_value_equal(configmap.object, other.object));
        lkg_configmap_deinit(&configmap);
        lkg_configmap_deinit(&other);
        for (size_t i = 0; i < LKG_ARRAY_SIZE(wrong); i++) {
                LKG_CLEANUP(lkg_value_unrefp) struct lkg_value *object = decoded(wrong[i].text);
                struct lkg_error err = { 0 };

                assert_int_equal(lkg_configmap_from_value(object, &configmap, &err), wrong[i].code);
                if (!strstr(err.message, wrong[i].words))
                        fail_msg("%s: %s", wrong[i].text, err.message);
                assert_null(configmap.object);
        }
}
