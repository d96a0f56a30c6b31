/* SPDX-License-Identifier: Apache-2.0 */
/* Short helpers to write documents in the tests of core/schema. Include it once per test program. */
#pragma once

#include "config-helpers.h"

/* YAML in flow form, which starts like JSON: `{a: 1}`. JSON if its first key is in double quotes. */
static inline struct lkg_value *flow(const char *text, unsigned flags)
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
