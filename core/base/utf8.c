/* SPDX-License-Identifier: Apache-2.0 */
#include <lkg/text.h>

void lkg_utf8_mend(char *text)
{
        size_t left = strlen(text), n;
        const char *from = text;

        for (; left > 0; left -= n ? n : 1, from += n ? n : 1) {
                n = lkg_utf8_length(from, left);
                memmove(text, from, n);
                text += n;
        }
        *text = '\0';
}
