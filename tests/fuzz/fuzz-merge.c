/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two documents, the second is applied to the first as both kinds of patches. A JSON merge patch is
 * idempotent after the second application (not after the first: as in upstream, a list that replaces a map
 * keeps nulls, but one that replaces a list drops them), an empty one changes nothing, inputs are never
 * changed.
 */
#include <lkg/schema.h>

#include "fuzz-document.h"
#include "fuzz-layers.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct lkg_value *decode(const char *text, size_t size, const char *layer)
{
        struct lkg_source *source = lkg_source_new(layer, layer);
        struct lkg_report report = LKG_REPORT_INIT;
        struct lkg_value *value = NULL;

        FUZZ_CHECK(source);
        (void)lkg_decode(text, size, lkg_detect_format(text, size), LKG_DECODE_UNTYPED, source, &report,
                         &value);
        lkg_report_deinit(&report);
        lkg_source_unref(source);
        return value;
}

/* Every value of the result knows from which of the two it came. */
static int has_origin(const struct lkg_leaf *leaf, void *userdata)
{
        (void)userdata;
        FUZZ_CHECK(lkg_value_source(leaf->value));
        return 0;
}

static void check_json(const struct lkg_value *target, const struct lkg_value *patch)
{
        struct lkg_value *merged = NULL, *twice = NULL, *thrice = NULL, *unchanged = NULL;
        struct lkg_value *empty = lkg_value_new_map(NULL, 0, 0);

        FUZZ_CHECK(empty);
        merged = lkg_merge_json(target, patch);
        twice = lkg_merge_json(merged, patch);
        thrice = lkg_merge_json(twice, patch);
        FUZZ_CHECK(lkg_value_equal(twice, thrice));
        unchanged = lkg_merge_json(merged, empty);
        FUZZ_CHECK(lkg_value_equal(merged, unchanged));
        (void)lkg_value_walk(merged, has_origin, NULL);
        lkg_value_unref(empty);
        lkg_value_unref(unchanged);
        lkg_value_unref(thrice);
        lkg_value_unref(twice);
        lkg_value_unref(merged);
}

static void check_strategic(const struct lkg_value *target, const struct lkg_value *patch,
                            const struct lkg_merge_type *type)
{
        struct lkg_report report = LKG_REPORT_INIT;
        struct lkg_value *merged = NULL;
        int r = lkg_merge_strategic_typed(target, patch, type, &report, &merged);

        FUZZ_CHECK(r == 0 || r == -EBADMSG);
        FUZZ_CHECK((r == 0) == (merged != NULL));
        FUZZ_CHECK((r == 0) == (report.n_severity[LKG_ERROR] == 0));
        lkg_value_unref(merged);
        lkg_report_deinit(&report);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        const char *rest = (const char *)data, *text[2] = { "", "" };
        struct lkg_value *target, *patch, *copy;
        const struct lkg_schema *schema = NULL;
        struct lkg_merge_type type;
        size_t sizes[2] = { 0, 0 };

        for (size_t i = 0; i < 2; i++)
                (void)fuzz_next_document(&rest, &size, &text[i], &sizes[i]);
        FUZZ_CHECK(lkg_schema_get("KubeletConfiguration", NULL, 0, &schema) == 0);
        type = lkg_schema_merge_type(schema);
        target = decode(text[0], sizes[0], "target");
        copy = decode(text[0], sizes[0], "copy");
        patch = decode(text[1], sizes[1], "patch");
        if (target && copy && patch && lkg_value_type(target) == LKG_MAP &&
            lkg_value_type(patch) == LKG_MAP) {
                check_json(target, patch);
                check_strategic(target, patch, NULL);
                check_strategic(target, patch, &type);
                FUZZ_CHECK(lkg_value_equal(target, copy));
        }
        lkg_value_unref(target);
        lkg_value_unref(copy);
        lkg_value_unref(patch);
        return 0;
}
