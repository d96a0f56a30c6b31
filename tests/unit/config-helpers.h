/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Short helpers to write documents in the tests of core/documents and core/layers. Include it once per test
 * program.
 */
#pragma once

#include <lkg/text.h>
#include <lkg/documents.h>

#include "unit.h"

/* Decodes or fails the test. The caller owns the reference. */
static inline struct lkg_value *doc_from(const char *text, unsigned flags)
{
        struct lkg_source *source = lkg_source_new("layer", "file");
        struct lkg_report report = LKG_REPORT_INIT;
        struct lkg_value *value = NULL;
        int r = lkg_decode(text, strlen(text), lkg_detect_format(text, strlen(text)), flags, source, &report,
                           &value);

        if (r < 0) {
                char *findings = lkg_report_format(&report, NULL);

                print_error("%s", findings);
                free(findings);
        }
        assert_int_equal(r, 0);
        lkg_report_deinit(&report);
        lkg_source_unref(source);
        return value;
}

static inline struct lkg_value *doc(const char *text)
{
        return doc_from(text, 0);
}

/* Renders into one of a few static buffers, so that two results can be compared in one line. */
static inline const char *show(const struct lkg_value *value, int format)
{
        static char *kept[8];
        static unsigned next;
        struct lkg_buf buf = LKG_BUF_INIT;

        if (format < 0)
                lkg_render_json_compact(value, &buf);
        else
                lkg_render(value, (enum lkg_format)format, &buf);
        assert_false(lkg_buf_failed(&buf));
        next = (next + 1) % 8;
        free(kept[next]);
        kept[next] = lkg_buf_steal(&buf, NULL);
        return kept[next];
}

static inline const char *json(const struct lkg_value *value)
{
        return show(value, -1);
}

static inline const char *yaml(const struct lkg_value *value)
{
        return show(value, LKG_FORMAT_YAML);
}

/* Decodes @text; returns its compact JSON, or the findings. */
static inline const char *answer(const char *text, size_t size, enum lkg_format format, unsigned flags)
{
        static char *kept;
        struct lkg_source *source = lkg_source_new("layer", "f");
        struct lkg_report report = LKG_REPORT_INIT;
        struct lkg_value *value = NULL;
        const char *ret;
        int r = lkg_decode(text, size, format, flags, source, &report, &value);

        assert_true(r == 0 || r == -EBADMSG);
        assert_int_equal(r == 0, value != NULL);
        if (r < 0)
                assert_true(report.n_severity[LKG_ERROR] > 0);
        free(kept);
        kept = lkg_report_format(&report, NULL);
        ret = value ? json(value) : kept;
        lkg_value_unref(value);
        lkg_report_deinit(&report);
        lkg_source_unref(source);
        return ret;
}
