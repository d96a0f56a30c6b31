/* SPDX-License-Identifier: Apache-2.0 */
#include "escape.h"

void lkg_escape(struct lkg_buf *buf, const char *text, unsigned char max_control)
{
        const unsigned char *p = (const unsigned char *)text, *start = p; /* start: of the unchanged part */

        for (; *p; p++) {
                if (*p > max_control && *p != 0x7f && *p != '%')
                        continue;
                lkg_buf_append(buf, start, (size_t)(p - start));
                lkg_buf_printf(buf, "%%%02X", *p);
                start = p + 1;
        }
        lkg_buf_append(buf, start, (size_t)(p - start));
}

static int hex_digit(char c)
{
        if (c >= '0' && c <= '9')
                return c - '0';
        if (c >= 'A' && c <= 'F')
                return c - 'A' + 10;
        if (c >= 'a' && c <= 'f')
                return c - 'a' + 10;
        return -1;
}

int lkg_unescape(char *text)
{
        char *to = strchrnul(text, '%');

        for (const char *from = to; *from; from++) {
                if (*from != '%') {
                        *to++ = *from;
                        continue;
                }
                int high = hex_digit(from[1]);
                int low = high < 0 ? -1 : hex_digit(from[2]);

                if (low < 0 || (high == 0 && low == 0))
                        return -EBADMSG;
                *to++ = (char)(high << 4 | low);
                from += 2;
        }
        *to = '\0';
        return 0;
}
