/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any document, rendered: the second reader accepts it. Then with one byte changed: if the second reader
 * accepts it, our own decoder reads the same document.
 *
 * The first byte is 'j' for JSON; the next two select the byte to change, and the fourth is its new value.
 */
#include <lkg/limits.h>
#include <lkg/documents.h>

#include "fuzz-check.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define HEAD 4u

static void tell(const struct lkg_error *err, const struct lkg_buf *text)
{
        (void)fprintf(stderr, "%s\n%.*s\n", err->message, (int)text->size, text->data);
        abort();
}

static void check_changed(const struct lkg_value *value, enum lkg_format format, struct lkg_buf *text,
                          const uint8_t *head)
{
        struct lkg_report report = LKG_REPORT_INIT;
        struct lkg_value *back = NULL;
        struct lkg_error err = { 0 };

        text->data[(head[1] + 256u * head[2]) % text->size] = (char)head[3];
        if (lkg_readback(value, format, text->data, text->size, &err) == 0 &&
            text->size <= LKG_DOC_BYTES_MAX) {
                int r = lkg_decode(text->data, text->size, format, 0, NULL, &report, &back);

                FUZZ_CHECK(r == 0 || format == LKG_FORMAT_JSON); /* json-c accepts 00 as 0 */
                FUZZ_CHECK(r < 0 || lkg_value_equal(value, back) ||
                           (format == LKG_FORMAT_JSON &&
                            memmem(text->data, text->size, "-0", 2))); /* ... and -0 */
        }
        lkg_value_unref(back);
        lkg_report_deinit(&report);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        struct lkg_report report = LKG_REPORT_INIT;
        struct lkg_buf text = LKG_BUF_INIT;
        struct lkg_value *value = NULL;
        struct lkg_error err = { 0 };
        enum lkg_format format;

        if (size < HEAD)
                return 0;
        format = data[0] == 'j' ? LKG_FORMAT_JSON : LKG_FORMAT_YAML;
        if (lkg_decode((const char *)data + HEAD, size - HEAD, format, LKG_DECODE_UNTYPED, NULL, &report,
                       &value) == 0) {
                for (int i = 0; i < 2; i++) {
                        format = i == 0 ? LKG_FORMAT_YAML : LKG_FORMAT_JSON;
                        lkg_render(value, format, &text);
                        FUZZ_CHECK(!lkg_buf_failed(&text));
                        if (lkg_readback(value, format, text.data, text.size, &err) < 0)
                                tell(&err, &text);
                        check_changed(value, format, &text, data);
                        lkg_buf_deinit(&text);
                        text = (struct lkg_buf)LKG_BUF_INIT;
                }
        }
        lkg_value_unref(value);
        lkg_report_deinit(&report);
        return 0;
}
