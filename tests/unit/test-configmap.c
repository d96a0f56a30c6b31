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
