/* SPDX-License-Identifier: Apache-2.0 */
/* Decodes base64 like Go's encoding/base64. */
#include <lkg/base.h>

static int base64_value(char c)
{
        static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
        const char *at = c ? strchr(digits, c) : NULL;

        return at ? (int)(at - digits) : -1;
}

ssize_t lkg_base64_decode(const char *from, size_t size, char *to)
{
        size_t n = 0, n_digits = 0, n_pad = 0;
        uint32_t bits = 0;

        for (size_t i = 0; i < size; i++) {
                int v;

                if (from[i] == '\n' || from[i] == '\r')
                        continue;
                if (from[i] == '=') {
                        n_pad++;
                        continue;
                }
                v = base64_value(from[i]);
                if (v < 0 || n_pad > 0)
                        return -1;
                bits = bits << 6 | (uint32_t)v;
                if (++n_digits % 4 == 0) {
                        to[n++] = (char)(bits >> 16);
                        to[n++] = (char)(bits >> 8);
                        to[n++] = (char)bits;
                }
        }
        if ((n_digits + n_pad) % 4 != 0 || n_pad > 2)
                return -1;
        if (n_digits % 4 == 2)
                to[n++] = (char)(bits >> 4);
        if (n_digits % 4 == 3) {
                to[n++] = (char)(bits >> 10);
                to[n++] = (char)(bits >> 2);
        }
        return (ssize_t)n;
}
