/* SPDX-License-Identifier: Apache-2.0 */
#include <stdarg.h>

#include <lkg/text.h>

#define PIECE_BYTES 20u /* quoted from a value in a reason: the finding shows the whole value anyway */

bool lkg_span_is(struct lkg_span span, const char *text)
{
        return span.size == strlen(text) && memcmp(span.data, text, span.size) == 0;
}

bool lkg_span_equal(struct lkg_span a, struct lkg_span b)
{
        return a.size == b.size && (a.size == 0 || memcmp(a.data, b.data, a.size) == 0);
}

size_t lkg_span_space(struct lkg_span span)
{
        const unsigned char *p = (const unsigned char *)span.data;

        if (span.size > 0 && (p[0] == ' ' || (p[0] >= '\t' && p[0] <= '\r')))
                return 1;
        if (span.size > 1 && p[0] == 0xc2 && (p[1] == 0x85 || p[1] == 0xa0)) /* U+0085, U+00A0 */
                return 2;
        if (span.size < 3)
                return 0;
        if (p[0] == 0xe1 && p[1] == 0x9a && p[2] == 0x80) /* U+1680 */
                return 3;
        if (p[0] == 0xe2 && p[1] == 0x80 && /* U+2000 to U+200A, U+2028, U+2029, U+202F */
            ((p[2] >= 0x80 && p[2] <= 0x8a) || p[2] == 0xa8 || p[2] == 0xa9 || p[2] == 0xaf))
                return 3;
        if (p[0] == 0xe2 && p[1] == 0x81 && p[2] == 0x9f) /* U+205F */
                return 3;
        return p[0] == 0xe3 && p[1] == 0x80 && p[2] == 0x80 ? 3 : 0; /* U+3000 */
}

/* Size of the white space character at the end of @span; 0: none. */
static size_t space_at_end(struct lkg_span span)
{
        for (size_t n = 1; n <= 3 && n <= span.size; n++) {
                if (lkg_span_space(lkg_span(span.data + span.size - n, n)) == n)
                        return n;
        }
        return 0;
}

struct lkg_span lkg_span_trim(struct lkg_span span)
{
        size_t n;

        while ((n = lkg_span_space(span)) > 0)
                span = lkg_span(span.data + n, span.size - n);
        while ((n = space_at_end(span)) > 0)
                span.size -= n;
        return span;
}

bool lkg_span_cut(struct lkg_span span, char separator, struct lkg_span *ret_before,
                  struct lkg_span *ret_after)
{
        const char *at = span.size > 0 ? memchr(span.data, separator, span.size) : NULL;
        size_t n = at ? (size_t)(at - span.data) : span.size;

        *ret_before = lkg_span(span.data, n);
        *ret_after = at ? lkg_span(at + 1, span.size - n - 1) : lkg_span(span.data + span.size, 0);
        return at;
}

bool lkg_span_next(struct lkg_span *rest, char separator, struct lkg_span *ret_part)
{
        struct lkg_span all = *rest;

        if (!all.data)
                return false;
        if (!lkg_span_cut(all, separator, ret_part, rest))
                *rest = lkg_span(NULL, 0);
        return true;
}

size_t lkg_span_count(struct lkg_span span, char c)
{
        size_t n = 0;

        for (size_t i = 0; i < span.size; i++)
                n += span.data[i] == c;
        return n;
}

char *lkg_span_dup(struct lkg_span span)
{
        char *copy = malloc(span.size + 1);

        if (!copy)
                return NULL;
        if (span.size > 0)
                memcpy(copy, span.data, span.size);
        copy[span.size] = '\0';
        return copy;
}

int lkg_refuse(char *reason, const char *fmt, ...)
{
        va_list ap;
        int n;

        if (!reason)
                return -EINVAL;
        va_start(ap, fmt);
        n = vsnprintf(reason, LKG_REFUSAL_MAX, fmt, ap);
        va_end(ap);
        if (n < 0)
                *reason = '\0';
        return -EINVAL;
}

/* One byte of a piece: printable ASCII and valid UTF-8 sequences unchanged, anything else as \xNN. */
static size_t piece_step(struct lkg_span span, size_t i, char *to)
{
        unsigned char c = (unsigned char)span.data[i];
        size_t n = c >= 0x80 ? lkg_shown_length(span.data + i, span.size - i, NULL) : 1;

        if (n > 1) {
                memcpy(to, span.data + i, n);
                to[n] = '\0';
                return n;
        }
        if (c < ' ' || c >= 0x7f)
                (void)snprintf(to, 5, "\\x%02x", c);
        else
                (void)snprintf(to, 3, c == '"' || c == '\\' ? "\\%c" : "%c", c);
        return 1;
}

const char *lkg_piece(struct lkg_span span, char buf[static LKG_PIECE_MAX])
{
        size_t used = 0, i = 0;

        buf[used++] = '"';
        while (i < span.size && i < PIECE_BYTES) {
                i += piece_step(span, i, buf + used);
                used += strlen(buf + used);
        }
        (void)snprintf(buf + used, LKG_PIECE_MAX - used, i < span.size ? "...\"" : "\"");
        return buf;
}

/*
 * A private key; or `://` and `@` or `?` anywhere after it: more than lkg_mask_text() finds, because a piece
 * may be cut anywhere.
 */
static bool has_credentials(struct lkg_span span)
{
        const char *scheme = span.size > 0 ? memmem(span.data, span.size, "://", 3) : NULL;
        size_t rest = scheme ? span.size - (size_t)(scheme - span.data) : 0;

        return lkg_has_private_key(span.data, span.size) ||
               (scheme && (memchr(scheme, '@', rest) || memchr(scheme, '?', rest)));
}

const char *lkg_reason(struct lkg_span value, const char *reason)
{
        return has_credentials(value) && strchr(reason, '"') ? "not what is wanted here" : reason;
}
