/* SPDX-License-Identifier: Apache-2.0 */
/* Documents decoded into the types of a kind and encoded again, as Go's JSON decoders and encoder do it. */
#include "schema-helpers.h"

#include "core/schema/typed.h"

static const struct lkg_schema_node *root_of(const char *kind)
{
        const struct lkg_schema *schema = NULL;

        assert_int_equal(lkg_schema_get(kind, NULL, 0, &schema), 0);
        return lkg_schema_root(schema);
}

/* The typed document as JSON, or the findings. */
static const char *typed_as(const char *kind, const char *text, unsigned flags)
{
        static char *kept;
        struct lkg_report report = LKG_REPORT_INIT;
        struct lkg_value *value = flow(text, flags & LKG_TYPED_FOLD ? LKG_DECODE_UNTYPED : 0);
        struct lkg_value *object = lkg_typed_decode(root_of(kind), value, flags, &report, NULL);
        const char *ret;

        free(kept);
        kept = lkg_report_format(&report, NULL);
        assert_non_null(kept);
        ret = report.n_severity[LKG_ERROR] == 0 ? json(object) : kept;
        lkg_value_unref(object);
        lkg_value_unref(value);
        lkg_report_deinit(&report);
        return ret;
}

static const char *typed(const char *text)
{
        return typed_as("KubeletConfiguration", text, 0);
}

/* Decoded like the merge of drop-ins. */
static const char *folded(const char *text)
{
        return typed_as("KubeletConfiguration", text, LKG_TYPED_FOLD);
}

TEST(test_only_known_fields_in_canonical_form)
{
        assert_string_equal(typed("{syncFrequency: 90s, maxPods: 5, x: 1, authentication: {y: 2}}"),
                            "{\"maxPods\":5,\"syncFrequency\":\"1m30s\"}");
        assert_string_equal(typed("~"), "{}");
}

TEST(test_case_counts_in_a_base_only)
{
        assert_string_equal(typed("{maxpods: 5, AUTHENTICATION: {anonymous: {enabled: true}}}"), "{}");
        assert_string_equal(folded("{maxpods: 5, AUTHENTICATION: {ANONYMOUS: {Enabled: true}}}"),
                            "{\"authentication\":{\"anonymous\":{\"enabled\":true}},\"maxPods\":5}");
        /* Go also folds these two letters to s and k */
        assert_string_equal(
                folded("{\"maxPod\xc5\xbf\": 6, \"\xe2\x84\xaaubeAPIBurst\": 7, \"max\xc3\x9fPods\": 5}"),
                "{\"kubeAPIBurst\":7,\"maxPods\":6}");
}

TEST(test_last_spelling_in_byte_order_counts)
{
        assert_string_equal(folded("{maxpods: 5, maxPods: 6, MAXPODS: 7}"), "{\"maxPods\":5}");
        assert_string_equal(folded("{maxPods: 6, MAXPODS: 7}"), "{\"maxPods\":6}");
        assert_string_equal(folded("{maxPods: 6, maxpods: null}"), "{\"maxPods\":6}");
        assert_string_equal(folded("{podPidsLimit: 6, podpidslimit: null}"), "{}"); /* a pointer */
}

TEST(test_spellings_of_a_map_add_up)
{
        assert_string_equal(folded("{evictionHard: {a: b}, EVICTIONHARD: {a: c, d: e}}"),
                            "{\"evictionHard\":{\"a\":\"b\",\"d\":\"e\"}}");
        assert_string_equal(folded("{evictionHard: {a: b}, evictionhard: null}"), "{}");
        assert_string_equal(folded("{memorySwap: {swapBehavior: x}, memoryswap: {}}"),
                            "{\"memorySwap\":{\"swapBehavior\":\"x\"}}");
}

/* Go decodes into existing items. */
TEST(test_spellings_of_a_list_share_items)
{
        assert_string_equal(folded("{REGISTERWITHTAINTS: [{key: a, value: v}, {key: b}], "
                                   "registerWithTaints: [{key: c}]}"),
                            "{\"registerWithTaints\":[{\"key\":\"c\",\"value\":\"v\"}]}");
        assert_string_equal(folded("{CLUSTERDNS: [a, b], clusterDNS: [null, c, null]}"),
                            "{\"clusterDNS\":[\"a\",\"c\",\"\"]}");
}

TEST(test_null_is_no_value)
{
        assert_string_equal(
                typed("{maxPods: ~, clusterDNS: ~, evictionHard: ~, authentication: ~, podPidsLimit: ~}"),
                "{}");
        assert_string_equal(
                typed("{clusterDNS: [~], evictionHard: {a: ~}, featureGates: {b: ~}}"),
                "{\"clusterDNS\":[\"\"],\"evictionHard\":{\"a\":\"\"},\"featureGates\":{\"b\":false}}");
        assert_string_equal(typed("{cpuCFSQuotaPeriod: ~}"), "{}");
        assert_non_null(
                strstr(typed("{syncFrequency: ~}"), "syncFrequency: null is a null where a duration"));
}

TEST(test_zero_is_kept_where_it_differs_from_nothing)
{
        assert_string_equal(typed("{maxPods: 0, syncFrequency: 0s, clusterDomain: '', runOnce: false}"),
                            "{}");
        assert_string_equal(
                typed("{podPidsLimit: 0, enableServer: false, resolvConf: '', cpuCFSQuotaPeriod: 0s}"),
                "{\"cpuCFSQuotaPeriod\":\"0s\",\"enableServer\":false,\"podPidsLimit\":0,\"resolvConf\":"
                "\"\"}");
}

TEST(test_integers_overflow)
{
        assert_string_equal(typed("{maxPods: 2147483647}"), "{\"maxPods\":2147483647}");
        assert_string_equal(
                typed("{maxPods: 2147483648}"),
                "file:1:11: error: maxPods: 2147483648 does not fit int32; it must be from -2147483648 to "
                "2147483647 [LKG5002]\n");
        assert_string_equal(typed("{maxOpenFiles: 9223372036854775807}"),
                            "{\"maxOpenFiles\":9223372036854775807}");
        assert_non_null(strstr(typed("{maxOpenFiles: 9223372036854775808}"), "does not fit int64"));
        assert_non_null(
                strstr(typed("{logging: {verbosity: -1}}"), "logging.verbosity: -1 does not fit uint32"));
}

/* A JSON base keeps its numbers as written; those of a drop-in went through an untyped document. */
TEST(test_fractions_are_no_integers_in_a_json_base)
{
        assert_non_null(strstr(typed("{\"maxPods\": 50.0}"), "maxPods: 50.0 is not an integer"));
        assert_non_null(strstr(typed("{\"maxPods\": 5e1}"), "maxPods: 5e1 is not an integer"));
        assert_string_equal(folded("{\"maxPods\": 5e1}"), "{\"maxPods\":50}");
        assert_string_equal(typed("{maxPods: 50.0}"), "{\"maxPods\":50}");
}

TEST(test_reservations_are_rounded_in_a_base_only)
{
        static const char text[] =
                "{reservedMemory: [{limits: {a: 1n, memory: 1001u, z: 1.99999999999Ki}}]}";

        assert_string_equal(
                typed_as("KubeletConfiguration", text, LKG_TYPED_ROUND),
                "{\"reservedMemory\":[{\"limits\":{\"a\":\"1m\",\"memory\":\"2m\",\"z\":\"2Ki\"}}]}");
        assert_string_equal(folded(text), "{\"reservedMemory\":[{\"limits\":{\"a\":\"1n\",\"memory\":"
                                          "\"1001u\",\"z\":\"2047999999990n\"}}]}");
}

/* The result for a drop-in's list is cached with the list, and is not used for a base. */
TEST(test_list_that_was_not_rounded_is_rounded_later)
{
        static const unsigned flags[] = { LKG_TYPED_FOLD, LKG_TYPED_ROUND, LKG_TYPED_FOLD };
        static const char *const want[] = { "1n", "1m", "1n" };
        struct lkg_value *value = flow("{reservedMemory: [{limits: {memory: 1n}}]}", LKG_DECODE_UNTYPED);

        for (size_t i = 0; i < LKG_ARRAY_SIZE(flags); i++) {
                struct lkg_report report = LKG_REPORT_INIT;
                struct lkg_value *object =
                        lkg_typed_decode(root_of("KubeletConfiguration"), value, flags[i], &report, NULL);
                char text[64];

                (void)snprintf(text, sizeof(text), "{\"reservedMemory\":[{\"limits\":{\"memory\":\"%s\"}}]}",
                               want[i]);
                assert_string_equal(json(object), text);
                lkg_value_unref(object);
                lkg_report_deinit(&report);
        }
        lkg_value_unref(value);
}

TEST(test_float32_is_rounded)
{
        static const char proxy[] = "KubeProxyConfiguration";

        assert_string_equal(typed_as(proxy, "{clientConnection: {qps: 16777217}}", 0),
                            "{\"clientConnection\":{\"qps\":16777216}}");
        assert_string_equal(typed_as(proxy, "{clientConnection: {qps: 0.1}}", 0),
                            "{\"clientConnection\":{\"qps\":0.1}}");
        assert_string_equal(typed_as(proxy, "{clientConnection: {qps: 1e-60}}", 0), "{}");
        assert_non_null(
                strstr(typed_as(proxy, "{clientConnection: {qps: 1e39}}", 0), "does not fit float32"));
}

TEST(test_every_misfit_is_reported)
{
        assert_string_equal(
                typed("maxPods: many\nclusterDNS: 1.1.1.1\nsyncFrequency: "
                      "5\nregisterWithTaints: [{key: 1}]\n"),
                "file:2:13: error: clusterDNS: \"1.1.1.1\" is a string where a list is wanted; "
                "write it as a "
                "list, e.g. [a, b] [LKG5001]\n"
                "file:1:10: error: maxPods: \"many\" is a string where an integer is wanted [LKG5001]\n"
                "file:4:28: error: registerWithTaints[0].key: 1 is a number where a string is "
                "wanted; put it in "
                "quotes [LKG5001]\n"
                "file:3:16: error: syncFrequency: 5 is a number where a duration such as "
                "\"1m30s\" is wanted; "
                "write the unit and quotes, e.g. \"30s\" [LKG5001]\n");
}

TEST(test_secrets_are_not_quoted)
{
        assert_null(strstr(typed("{staticPodURLHeader: {A: s3cret}}"), "s3cret"));
        assert_null(strstr(typed("{staticPodURLHeader: {A: [{s3cret: 1}]}}"), "s3cret"));
        assert_null(strstr(typed("{staticPodURLHeader: s3cret}"), "s3cret"));
        assert_null(strstr(typed("{syncFrequency: 'http://u:s3cret@h/'}"), "s3cret"));
}

/* Encoded: fields that are never omitted, and no empty ones. Decoding gives the same document. */
TEST(test_encoded_as_go_prints_it)
{
        const struct lkg_schema_node *root = root_of("KubeletConfiguration");
        struct lkg_report report = LKG_REPORT_INIT;
        struct lkg_value *value =
                flow("{clusterDNS: [], evictionHard: {}, enforceNodeAllocatable: [], maxPods: 5}", 0);
        struct lkg_value *object = NULL, *printed = NULL, *back = NULL;

        object = lkg_typed_decode(root, value, 0, &report, NULL);
        printed = lkg_typed_encode(root, object, NULL, NULL);
        assert_null(lkg_map_get(printed, "clusterDNS"));
        assert_null(lkg_map_get(printed, "evictionHard"));
        assert_non_null(lkg_map_get(printed, "containerRuntimeEndpoint"));
        assert_string_equal(lkg_map_get_string(printed, "syncFrequency"), "0s");
        assert_string_equal(json(lkg_map_get(printed, "memorySwap")), "{}");
        back = lkg_typed_decode(root, printed, 0, &report, NULL);
        assert_int_equal(report.n_severity[LKG_ERROR], 0);
        assert_string_equal(json(back),
                            "{\"logging\":{\"options\":{\"json\":{\"infoBufferSize\":\"0\"},\"text\":"
                            "{\"infoBufferSize\":\"0\"}}},\"maxPods\":5}");
        lkg_value_unref(back);
        lkg_value_unref(printed);
        lkg_value_unref(object);
        lkg_value_unref(value);
        lkg_report_deinit(&report);
}

/* A change of one document does not affect another one that shares its parts. */
TEST(test_setting_a_field_leaves_copies_alone)
{
        struct lkg_value *was = flow("{authentication: {webhook: {cacheTTL: 1m0s, enabled: true}}}", 0);
        struct lkg_value *copy = lkg_value_clone_shallow(was);

        assert_non_null(copy);
        lkg_object_set(copy, "authentication.webhook.cacheTTL", NULL);
        lkg_object_set(copy, "authentication.x509.clientCAFile", lkg_value_new_string("/c", 2, NULL, 0, 0));
        assert_string_equal(json(was),
                            "{\"authentication\":{\"webhook\":{\"cacheTTL\":\"1m0s\",\"enabled\":true}}}");
        assert_string_equal(json(copy),
                            "{\"authentication\":{\"webhook\":{\"enabled\":true},\"x509\":{\"clientCAFile\":"
                            "\"/c\"}}}");
        lkg_value_unref(copy);
        lkg_value_unref(was);
}

static struct lkg_value *decode_taints(struct lkg_value *value, unsigned flags, size_t n_errors)
{
        struct lkg_report report = LKG_REPORT_INIT;
        struct lkg_value *object =
                lkg_typed_decode(root_of("KubeletConfiguration"), value, flags, &report, NULL);

        assert_int_equal(report.n_severity[LKG_ERROR], n_errors);
        lkg_report_deinit(&report);
        return object;
}

/*
 * Decoding and encoding a document in normal form gives the same value, in either order; only the top is
 * copied.
 */
TEST(test_normal_form_is_shared)
{
        struct lkg_value *value = flow("{registerWithTaints: [{effect: NoSchedule, key: a}]}", 0),
                         *encoded = NULL;
        const struct lkg_value *list = lkg_map_get(value, "registerWithTaints");

        for (unsigned round = 0; round < 3; round++) {
                struct lkg_value *object = decode_taints(value, round == 1 ? LKG_TYPED_FOLD : 0, 0);

                assert_ptr_not_equal(object, value);
                assert_ptr_equal(lkg_map_get(object, "registerWithTaints"), list);
                encoded = lkg_typed_encode(root_of("KubeletConfiguration"), object, NULL, NULL);
                assert_ptr_not_equal(encoded, object);
                assert_ptr_equal(lkg_map_get(encoded, "registerWithTaints"), list);
                lkg_value_unref(encoded);
                lkg_value_unref(object);
        }
        lkg_value_unref(value);
}

/* A mistake in a list is reported each time, and different results are not shared. */
TEST(test_mistakes_are_found_again)
{
        struct lkg_value *value =
                flow("{registerWithTaints: [{effect: NoSchedule, key: 1}, {key: b, x: 1}]}", 0);

        for (unsigned round = 0; round < 3; round++) {
                struct lkg_value *object = decode_taints(value, 0, 1);

                assert_string_equal(
                        json(object),
                        "{\"registerWithTaints\":[{\"effect\":\"NoSchedule\"},{\"key\":\"b\"}]}");
                lkg_value_unref(object);
        }
        lkg_value_unref(value);
}

/* A list may have different results in different fields. */
TEST(test_lists_are_known_by_their_field)
{
        struct lkg_value *list = flow("[{key: a}]", 0), *value = lkg_value_new_map(NULL, 0, 0), *object;

        assert_int_equal(lkg_map_set(value, "registerWithTaints", 18, lkg_value_ref(list)), 0);
        object = decode_taints(value, 0, 0);
        lkg_value_unref(object);
        assert_int_equal(lkg_map_set(value, "reservedMemory", 14, list), 0);
        object = decode_taints(value, 0, 0);
        assert_string_equal(json(object),
                            "{\"registerWithTaints\":[{\"key\":\"a\"}],\"reservedMemory\":[{}]}");
        lkg_value_unref(object);
        lkg_value_unref(value);
}
