/* SPDX-License-Identifier: Apache-2.0 */
/* A Node object: its annotation, its spec, and its identity. */

#include <lkg/documents.h>
#include <lkg/objects.h>

#include "unit.h"

#define ID       "\"name\":\"n1\",\"uid\":\"u-1\",\"resourceVersion\":\"9\""
#define NONE_SET "invalid NodeConfigSource, exactly one subfield must be non-nil, but all were nil"

static struct lkg_value *decoded(const char *text)
{
        LKG_CLEANUP(lkg_report_deinit) struct lkg_report report = LKG_REPORT_INIT;
        struct lkg_value *value = NULL;

        if (lkg_decode_json(text, strlen(text), 0, NULL, &report, &value) < 0)
                fail_msg("no JSON: %s", text);
        return value;
}

static int read_node(const char *text, struct lkg_node_object *ret, struct lkg_error *err)
{
        LKG_CLEANUP(lkg_value_unrefp) struct lkg_value *value = decoded(text);

        return lkg_node_read(value, "n1", ret, err);
}

TEST(test_identity)
{
        static const struct {
                const char *text, *words;
        } wrong[] = {
                { "{}", "metadata of the Node is missing" },
                { "{\"metadata\":[]}", "metadata of the Node is missing" },
                { "{\"metadata\":{\"uid\":\"u\"}}", "metadata.name of the Node is missing" },
                { "{\"metadata\":{\"name\":1,\"uid\":\"u\"}}", "metadata.name of the Node is missing" },
                { "{\"metadata\":{\"name\":\"n2\",\"uid\":\"u\"}}", "the Node is \"n2\", and not n1" },
                { "{\"metadata\":{\"name\":\"n1\"}}", "metadata.uid of the Node is missing" },
                { "{\"metadata\":{\"name\":\"n1\",\"uid\":null}}", "metadata.uid of the Node is missing" },
                { "{\"metadata\":{\"name\":\"n1\",\"uid\":\"../x\"}}",
                  "metadata.uid of the Node is not 1 to 253 of the characters A-Z, a-z, 0-9, ., _ and -" },
                { "{\"metadata\":{\"name\":\"n1\",\"uid\":7}}",
                  "metadata.uid of the Node is not 1 to 253 of the characters A-Z, a-z, 0-9, ., _ and -" },
                { "{\"metadata\":{\"name\":\"n1\",\"uid\":\"u\",\"resourceVersion\":\"a b\"}}",
                  "metadata.resourceVersion of the Node is not 1 to 253 of the characters A-Z, a-z, 0-9, ., "
                  "_ and -" },
        };
        struct lkg_node_object node = { .uid = "before" };

        for (size_t i = 0; i < LKG_ARRAY_SIZE(wrong); i++) {
                struct lkg_error err = { 0 };

                assert_int_equal(read_node(wrong[i].text, &node, &err), -EINVAL);
                assert_string_equal(err.message, wrong[i].words);
                assert_string_equal(node.uid, "before");
        }
        assert_int_equal(read_node("{\"metadata\":{" ID "}}", &node, NULL), 0);
        assert_string_equal(node.uid, "u-1");
        assert_string_equal(node.version, "9");
}

struct row {
        const char *text; /* of the annotations, or of configSource */
        enum lkg_says says;
        const char *what; /* namespace/name/key, or the reason */
};

static void assert_says(const struct row *row, const struct lkg_saying *saying)
{
        char what[1024];

        if (saying->says != row->says)
                fail_msg("%s: says %d, %s", row->text, saying->says, saying->fault);
        (void)snprintf(what, sizeof(what), "%s/%s/%s", saying->reference.ns, saying->reference.name,
                       saying->reference.key);
        if (row->says == LKG_SAYS_REFERENCE)
                assert_string_equal(what, row->what);
        else if (row->says == LKG_SAYS_INVALID)
                assert_string_equal(saying->fault, row->what);
        else
                assert_string_equal(saying->fault, "");
}

TEST(test_annotation)
{
#define SOURCE "\"lkgfs.io/config-source\":"
        static const struct row rows[] = {
                { "null", LKG_SAYS_NOTHING, NULL },
                { "{}", LKG_SAYS_NOTHING, NULL },
                { "{\"lkgfs.io/other\":\"a/b\"}", LKG_SAYS_NOTHING, NULL },
                { "{" SOURCE "null}", LKG_SAYS_NOTHING, NULL },
                { "{" SOURCE "\"local\"}", LKG_SAYS_LOCAL, NULL },
                { "{" SOURCE "\" kube-system/cfg\\n\"}", LKG_SAYS_REFERENCE, "kube-system/cfg/kubelet" },
                { "{" SOURCE "\"kube-system/cfg/gpu\"}", LKG_SAYS_REFERENCE, "kube-system/cfg/gpu" },
                { "{" SOURCE "\"{\\\"configMap\\\":{\\\"namespace\\\":\\\"a\\\",\\\"name\\\":\\\"b\\\"}}\"}",
                  LKG_SAYS_REFERENCE, "a/b/kubelet" },
                { "{" SOURCE "\"\"}", LKG_SAYS_INVALID,
                  "invalid NodeConfigSource, the text is empty; want namespace/name, or local" },
                { "{" SOURCE "\"{}\"}", LKG_SAYS_INVALID, NONE_SET },
                { "{" SOURCE "\"a/../b\"}", LKG_SAYS_INVALID,
                  "invalid NodeConfigSource, name: Invalid value: \"..\": " },
                { "{" SOURCE "7}", LKG_SAYS_INVALID,
                  "invalid NodeConfigSource, annotation lkgfs.io/config-source is a number; want text" },
                { "[]", LKG_SAYS_INVALID,
                  "invalid NodeConfigSource, metadata.annotations is a list; want a map" },
        };
        char text[1024];

        for (size_t i = 0; i < LKG_ARRAY_SIZE(rows); i++) {
                struct lkg_node_object node;
                size_t n = rows[i].what ? strlen(rows[i].what) : 0;

                (void)snprintf(text, sizeof(text), "{\"metadata\":{" ID ",\"annotations\":%s}}",
                               rows[i].text);
                assert_int_equal(read_node(text, &node, NULL), 0);
                if (n > 0 && rows[i].what[n - 1] == ' ') /* the rest is the name rule's */
                        node.annotation.fault[n] = '\0';
                assert_says(&rows[i], &node.annotation);
                assert_int_equal(node.spec.says, LKG_SAYS_NOTHING);
        }
}

TEST(test_spec)
{
        static const struct row rows[] = {
                { "null", LKG_SAYS_NOTHING, NULL },
                { "{\"configMap\":{\"namespace\":\"a\",\"name\":\"b\",\"kubeletConfigKey\":\"k\"}}",
                  LKG_SAYS_REFERENCE, "a/b/k" },
                { "{\"configMapRef\":{\"namespace\":\"a\",\"name\":\"b\",\"uid\":\"u\"}}",
                  LKG_SAYS_REFERENCE, "a/b/kubelet" },
                { "{}", LKG_SAYS_INVALID, NONE_SET },
                { "{\"configMapRef\":{\"namespace\":\"a\",\"name\":\"b\"}}", LKG_SAYS_INVALID,
                  "invalid ObjectReference, all of UID, Name, and Namespace must be specified" },
                { "\"a/b\"", LKG_SAYS_INVALID,
                  "invalid NodeConfigSource, it is a string; want a map with configMap" },
        };
        char text[1024];

        for (size_t i = 0; i < LKG_ARRAY_SIZE(rows); i++) {
                struct lkg_node_object node;

                (void)snprintf(text, sizeof(text), "{\"metadata\":{" ID "},\"spec\":{\"configSource\":%s}}",
                               rows[i].text);
                assert_int_equal(read_node(text, &node, NULL), 0);
                assert_says(&rows[i], &node.spec);
                assert_int_equal(node.annotation.says, LKG_SAYS_NOTHING);
        }
}
