/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Masks what is not masked where it lies: lkg/ and our own configuration are documents in full, and command lines are those of
 * others. Everything else in a report was masked by who wrote it (docs/specification.md 2.13).
 */
#include "report-parts.h"

#include <lkg/documents.h>

#define MASK "<masked>"

int lkg_report_mask_document(const char *text, size_t size, struct lkg_buf *ret)
{
        LKG_CLEANUP(lkg_report_deinit) struct lkg_report ignored = LKG_REPORT_INIT;
        LKG_CLEANUP(lkg_value_unrefp) struct lkg_value *doc = NULL;
        enum lkg_format format = lkg_detect_format(text, size);

        if (lkg_decode(text, size, format, LKG_DECODE_UNTYPED, NULL, &ignored, &doc) < 0)
                return -EBADMSG;
        return lkg_tool_render_masked(doc, format, ret);
}

/* A word that names a credential hides itself, and the next one if it has no value: `--token=x`, `--token x`. */
static void mask_word(const char *word, size_t size, bool *hide_next, struct lkg_buf *ret)
{
        const char *equals = memchr(word, '=', size);
        size_t name_size = equals ? (size_t)(equals - word) : size;
        size_t dashes = 0;

        while (dashes < name_size && word[dashes] == '-')
                dashes++;
        if (*hide_next && dashes == 0) {
                lkg_buf_puts(ret, MASK);
                *hide_next = false;
                return;
        }
        *hide_next = false;
        if (!dashes || lkg_name_secrecy(word + dashes, name_size - dashes) == LKG_PUBLIC) {
                (void)lkg_mask_text(word, size, ret);
                return;
        }
        lkg_buf_append(ret, word, name_size);
        if (equals)
                lkg_buf_puts(ret, "=" MASK);
        *hide_next = !equals;
}

static void mask_line(const char *line, size_t size, struct lkg_buf *ret)
{
        bool hide_next = false;

        if (lkg_has_private_key(line, size)) {
                lkg_buf_puts(ret, MASK);
                return;
        }
        for (size_t at = 0; at < size;) {
                size_t n = 0;

                while (at + n < size && line[at + n] != ' ')
                        n++;
                if (n)
                        mask_word(line + at, n, &hide_next, ret);
                at += n;
                for (; at < size && line[at] == ' '; at++)
                        lkg_buf_putc(ret, ' ');
        }
}

void lkg_report_mask_lines(const char *text, size_t size, struct lkg_buf *ret)
{
        for (size_t at = 0; at < size;) {
                const char *end = memchr(text + at, '\n', size - at);
                size_t n = end ? (size_t)(end - text) - at : size - at;

                mask_line(text + at, n, ret);
                if (end)
                        lkg_buf_putc(ret, '\n');
                at += n + 1;
        }
}
