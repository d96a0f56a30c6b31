/* SPDX-License-Identifier: Apache-2.0 */
/* Properties of every accepted document, in any format. */
#pragma once

#include <lkg/documents.h>

#include "fuzz-check.h"

/* Rendered and read back, it is the same document, and renders to the same bytes. */
static inline void fuzz_round_trip(const struct lkg_value *value, enum lkg_format format)
{
        struct lkg_buf first = LKG_BUF_INIT, second = LKG_BUF_INIT;
        struct lkg_report report = LKG_REPORT_INIT;
        struct lkg_value *back = NULL;

        lkg_render(value, format, &first);
        FUZZ_CHECK(!lkg_buf_failed(&first));
        if (first.size <=
            (4u << 20)) { /* aliases and indentation may make it larger than the limit for input */
                int r = lkg_decode(first.data, first.size, format, LKG_DECODE_STRICT, NULL, &report, &back);

                FUZZ_CHECK(r == 0);
                FUZZ_CHECK(lkg_value_equal(value, back));
                lkg_render(back, format, &second);
                FUZZ_CHECK(first.size == second.size && memcmp(first.data, second.data, first.size) == 0);
        }
        lkg_value_unref(back);
        lkg_report_deinit(&report);
        lkg_buf_deinit(&first);
        lkg_buf_deinit(&second);
}

/*
 * @canonical: numbers are in the form in which YAML returns them; those of a JSON document are not (1.0).
 */
static inline void fuzz_document(struct lkg_value *value, bool canonical)
{
        struct lkg_value *merged = NULL, *twice = NULL, *masked;
        struct lkg_report report = LKG_REPORT_INIT;
        struct lkg_buf buf = LKG_BUF_INIT;

        if (canonical)
                fuzz_round_trip(value, LKG_FORMAT_YAML);
        fuzz_round_trip(value, LKG_FORMAT_JSON);
        merged = lkg_merge_json(value, value);
        twice = lkg_merge_json(merged, value);
        twice = lkg_value_unref(twice);
        if (lkg_merge_strategic(value, value, &report, &twice) < 0)
                FUZZ_CHECK(report.n_severity[LKG_ERROR] > 0);
        masked = lkg_mask_secrets(value);
        FUZZ_CHECK(masked);
        lkg_render_origin(merged, &buf);
        FUZZ_CHECK(!lkg_buf_failed(&buf));
        lkg_buf_deinit(&buf);
        lkg_report_deinit(&report);
        lkg_value_unref(masked);
        lkg_value_unref(merged);
        lkg_value_unref(twice);
}

/* Accepted: the properties above hold. Refused: at least one error says why. */
static inline void fuzz_decode(const uint8_t *data, size_t size, enum lkg_format format, unsigned flags)
{
        struct lkg_source *source = lkg_source_new("fuzz", "fuzz");
        struct lkg_report report = LKG_REPORT_INIT;
        struct lkg_value *value = NULL;
        int r = lkg_decode((const char *)data, size, format, flags, source, &report, &value);
        char *text = lkg_report_format(&report, NULL);

        FUZZ_CHECK(text);
        FUZZ_CHECK(r == 0 || r == -EBADMSG);
        FUZZ_CHECK((r == 0) == (value != NULL));
        FUZZ_CHECK((r == 0) == (report.n_severity[LKG_ERROR] == 0));
        if (value)
                fuzz_document(value, format == LKG_FORMAT_YAML || (flags & LKG_DECODE_UNTYPED));
        free(text);
        lkg_value_unref(value);
        lkg_report_deinit(&report);
        lkg_source_unref(source);
}
