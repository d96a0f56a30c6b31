/* SPDX-License-Identifier: Apache-2.0 */
/* Documents in the types of a kind: what is shared, what is remembered with a list, how Go encodes them. Results: rows/schema.rows. */
#include "config-helpers.h"

#include "core/schema/command-line.h"
#include "core/schema/typed.h"

/* YAML in flow form, which starts like JSON: `{a: 1}`. JSON if its first key is in double quotes. */
static struct lkg_value *flow(const char *text, unsigned flags)
{
        struct lkg_source *source = lkg_source_new("layer", "file");
        struct lkg_report report = LKG_REPORT_INIT;
        struct lkg_value *value = NULL;
        enum lkg_format format = strncmp(text, "{\"", 2) == 0 ? LKG_FORMAT_JSON : LKG_FORMAT_YAML;

        assert_non_null(source);
        if (lkg_decode(text, strlen(text), format, flags, source, &report, &value) < 0)
                fail_msg("%s", text);
        lkg_report_deinit(&report);
        lkg_source_unref(source);
        return value;
}

static const struct lkg_schema_node *root_of(const char *kind)
{
        const struct lkg_schema *schema = NULL;

        assert_int_equal(lkg_schema_get(kind, NULL, 0, &schema), 0);
        return lkg_schema_root(schema);
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

TEST(test_values_say_which_flag)
{
        static const char *const words[] = { "--max-pods=5" };
        const struct lkg_judge_config config = { .flags = words, .n_flags = 1 };
        struct lkg_report report = LKG_REPORT_INIT;
        const struct lkg_schema *schema = NULL;
        struct lkg_value *object = flow("{maxPods: 7}", 0);
        const struct lkg_value *value;

        assert_int_equal(lkg_schema_get("KubeletConfiguration", NULL, 0, &schema), 0);
        assert_int_equal(lkg_flags_apply(schema, &config, object, NULL, &report), 0);
        value = lkg_map_get(object, "maxPods");
        assert_string_equal(lkg_value_source(value)->layer, "flag --max-pods");
        assert_string_equal(json(lkg_value_shadowed(value)), "7");
        lkg_value_unref(object);
        lkg_report_deinit(&report);
}
