/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Userinfo in URLs (`https://user:password@host`): no status file, no finding and no log line shows it (spec section 2).
 * Here, below everything that quotes what a user wrote.
 */
#include <lkg/buf.h>

#define MASK "<masked>"

/* End of the authority that starts at @i. */
static size_t authority_end(const char *text, size_t size, size_t i)
{
        while (i < size && text[i] != '\0' && !strchr("/?# \t\r\n\"'<>`\\", text[i]))
                i++;
        return i;
}

bool lkg_mask_text(const char *text, size_t size, struct lkg_buf *buf)
{
        bool found = false;
        size_t start = 0;

        for (size_t i = 0; i + 3 <= size;) {
                size_t from, end, at = SIZE_MAX;

                if (memcmp(text + i, "://", 3) != 0) {
                        i++;
                        continue;
                }
                from = i + 3;
                end = authority_end(text, size, from);
                for (size_t k = from; k < end; k++)
                        if (text[k] == '@')
                                at = k;
                i = end > from ? end : from;
                if (at == SIZE_MAX)
                        continue;
                lkg_buf_append(buf, text + start, from - start);
                lkg_buf_puts(buf, MASK);
                start = at;
                found = true;
        }
        lkg_buf_append(buf, text + start, size - start);
        return found;
}
