/* SPDX-License-Identifier: Apache-2.0 */
/* Somebody else's words in a place of ours. */
#pragma once

#include <lkg/base.h>

/** lkg_text_copy() - as much of @text into @ret[@size] as fits, never half a character of UTF-8; always with its NUL. */
static inline void lkg_text_copy(char *ret, size_t size, const char *text)
{
        size_t n = strnlen(text, size);

        if (n == size)
                for (n = size - 1; n > 0 && ((unsigned char)text[n] & 0xc0) == 0x80;)
                        n--;
        memmove(ret, text, n);
        ret[n] = '\0';
}
