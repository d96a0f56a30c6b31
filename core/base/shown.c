/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Foreign text in messages for people (names of files and fields, messages of a server): terminals interpret
 * control characters, including those above U+0080, and format characters can make a line look like another
 * one.
 */
#include <stdarg.h>

#include <lkg/text.h>

/*
 * Unicode 15: general category Cf, Default_Ignorable_Code_Point (invisible characters), the separators of
 * lines and paragraphs, and code points that are not characters.
 */
static const struct {
        uint32_t first, last;
} hidden[] = {
        { 0x0000, 0x001f },   { 0x007f, 0x009f },   { 0x00ad, 0x00ad },   { 0x034f, 0x034f },
        { 0x0600, 0x0605 },   { 0x061c, 0x061c },   { 0x06dd, 0x06dd },   { 0x070f, 0x070f },
        { 0x0890, 0x0891 },   { 0x08e2, 0x08e2 },   { 0x115f, 0x1160 },   { 0x17b4, 0x17b5 },
        { 0x180b, 0x180f },   { 0x200b, 0x200f },   { 0x2028, 0x202e },   { 0x2060, 0x206f },
        { 0x3164, 0x3164 },   { 0xd800, 0xdfff },   { 0xfe00, 0xfe0f },   { 0xfeff, 0xfeff },
        { 0xffa0, 0xffa0 },   { 0xfff0, 0xfffb },   { 0xfffe, 0xffff },   { 0x110bd, 0x110bd },
        { 0x110cd, 0x110cd }, { 0x13430, 0x1343f }, { 0x1bca0, 0x1bca3 }, { 0x1d173, 0x1d17a },
        { 0xe0000, 0xe0fff },
};

bool lkg_is_hidden(uint32_t c)
{
        size_t low = 0, high = LKG_ARRAY_SIZE(hidden);

        if (c < 0x80) /* almost always */
                return c < 0x20 || c == 0x7f;
        while (low < high) {
                size_t middle = low + (high - low) / 2;

                if (c < hidden[middle].first)
                        high = middle;
                else if (c > hidden[middle].last)
                        low = middle + 1;
                else
                        return true;
        }
        return false;
}

size_t lkg_shown_length(const char *text, size_t size, uint32_t *ret_hidden)
{
        uint32_t c = UINT32_MAX;
        size_t n = lkg_utf8_decode((const unsigned char *)text, size, &c);

        if (n > 0 && !lkg_is_hidden(c))
                return n;
        if (ret_hidden)
                *ret_hidden = n > 0 ? c : UINT32_MAX;
        return 0;
}

void lkg_buf_shown(struct lkg_buf *buf, const char *text, size_t size)
{
        for (size_t i = 0, n; i < size; i += n) {
                n = lkg_shown_length(text + i, size - i, NULL);
                if (n > 0) {
                        lkg_buf_append(buf, text + i, n);
                } else {
                        lkg_buf_printf(buf, "\\x%02x", (unsigned char)text[i]);
                        n = 1;
                }
        }
}

void lkg_buf_utf8(struct lkg_buf *buf, const char *text, size_t size)
{
        for (size_t i = 0, n; i < size; i += n) {
                n = lkg_utf8_length(text + i, size - i);
                if (n > 0) {
                        lkg_buf_append(buf, text + i, n);
                } else {
                        lkg_buf_printf(buf, "\\x%02x", (unsigned char)text[i]);
                        n = 1;
                }
        }
}

void lkg_buf_shown_lines(struct lkg_buf *buf, const char *text)
{
        for (size_t n; *text; text += n) {
                n = strcspn(text, "\n");
                lkg_buf_shown(buf, text, n);
                if (text[n] == '\n') {
                        lkg_buf_putc(buf, '\n');
                        n++;
                }
        }
}

void lkg_shown_error(const char *fmt, ...)
{
        LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf buf = LKG_BUF_INIT;
        LKG_CLEANUP(lkg_freep) char *text = NULL;
        va_list ap;
        int n;

        va_start(ap, fmt);
        n = vasprintf(&text, fmt, ap);
        va_end(ap);
        if (n < 0) {
                text = NULL;
                return;
        }
        lkg_buf_shown_lines(&buf, text);
        if (!lkg_buf_failed(&buf) && buf.size)
                (void)fwrite(buf.data, 1, buf.size, stderr);
}

void lkg_blank_hidden(char *text, size_t size, char with)
{
        for (size_t i = 0, n; i < size; i += n) {
                n = lkg_shown_length(text + i, size - i, NULL);
                if (n > 0)
                        continue;
                n = lkg_utf8_length(text + i, size - i);
                n = n ? n : 1;
                memset(text + i, with, n);
        }
}
