/* SPDX-License-Identifier: Apache-2.0 */
/* UTF-8 as in RFC 3629: no surrogates, nothing above U+10FFFF, no overlong sequences. */
#pragma once

#include <lkg/base.h>

#define LKG_UTF8_MAX 4 /* bytes of a character */

/** lkg_utf8_decode() - the first character of the @n bytes at @p. Return: its length in bytes; 0: not UTF-8. */
static inline size_t lkg_utf8_decode(const unsigned char *p, size_t n, uint32_t *ret)
{
        if (n == 0)
                return 0;
        if (p[0] < 0x80) {
                *ret = p[0];
                return 1;
        }
        if (p[0] >= 0xc2 && p[0] < 0xe0 && n >= 2 && (p[1] & 0xc0) == 0x80) {
                *ret = (uint32_t)(p[0] & 0x1f) << 6 | (p[1] & 0x3f);
                return 2;
        }
        if ((p[0] & 0xf0) == 0xe0 && n >= 3 && (p[1] & 0xc0) == 0x80 && (p[2] & 0xc0) == 0x80) {
                *ret = (uint32_t)(p[0] & 0x0f) << 12 | (uint32_t)(p[1] & 0x3f) << 6 | (p[2] & 0x3f);
                return *ret >= 0x800 && (*ret < 0xd800 || *ret > 0xdfff) ? 3 : 0;
        }
        if (p[0] >= 0xf0 && p[0] < 0xf5 && n >= 4 && (p[1] & 0xc0) == 0x80 && (p[2] & 0xc0) == 0x80 &&
            (p[3] & 0xc0) == 0x80) {
                *ret = (uint32_t)(p[0] & 0x07) << 18 | (uint32_t)(p[1] & 0x3f) << 12 |
                       (uint32_t)(p[2] & 0x3f) << 6 | (p[3] & 0x3f);
                return *ret >= 0x10000 && *ret <= 0x10ffff ? 4 : 0;
        }
        return 0;
}

/** lkg_utf8_encode() - @c must be a character. Return: its length in bytes. */
static inline size_t lkg_utf8_encode(uint32_t c, char ret[static LKG_UTF8_MAX])
{
        size_t n = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
        static const unsigned char first[] = { 0, 0, 0xc0, 0xe0, 0xf0 };

        for (size_t i = n - 1; i > 0; i--, c >>= 6)
                ret[i] = (char)(0x80 | (c & 0x3f));
        ret[0] = (char)(first[n] | c);
        return n;
}

/** lkg_utf8_length() - size of the character at @text (at least one of @n bytes); 0: not valid UTF-8. */
static inline size_t lkg_utf8_length(const void *text, size_t n)
{
        uint32_t c;

        return lkg_utf8_decode(text, n, &c);
}

#define LKG_CHARACTER_NAME_MAX 64
/**
 * lkg_lookalike() - is @c a space, a quote, a dash or a letter that is easily taken for one of ASCII, or a letter of a script other
 * than Latin? Then its name, or that of its script.
 */
bool lkg_lookalike(uint32_t c, char ret[static LKG_CHARACTER_NAME_MAX]);
/** lkg_lookalike_is() - is it one of those, with a name that ends in @end: "SPACE", "QUOTATION MARK"? */
bool lkg_lookalike_is(uint32_t c, const char *end);

/** lkg_utf8_mend() - remove invalid UTF-8 from @text: half a character where it was truncated. */
void lkg_utf8_mend(char *text);
