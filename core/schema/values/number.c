/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The grammar of floats is Go's and is checked here; their value comes from the C library, which rounds
 * correctly. No program of lkgfs sets a locale, so strtod() expects a point.
 */
#include <math.h>

#include "values.h"

int lkg_bool_parse(const char *text, size_t size, bool *ret, char *reason)
{
        static const char *const words[2][6] = {
                { "false", "0", "f", "F", "FALSE", "False" },
                { "true", "1", "t", "T", "TRUE", "True" },
        };

        for (size_t i = 0; i < 12; i++) {
                if (lkg_span_is(lkg_span(text, size), words[i / 6][i % 6])) {
                        *ret = i / 6;
                        return 0;
                }
        }
        return lkg_refuse(reason, "not a boolean; want true or false");
}

static char lower(char c)
{
        return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

/* Return the value of a digit in any base up to 36; 255: none. */
static unsigned digit_value(char c)
{
        if (c >= '0' && c <= '9')
                return (unsigned)(c - '0');
        c = lower(c);
        return c >= 'a' && c <= 'z' ? (unsigned)(c - 'a') + 10 : 255;
}

/* Underscores are single, after a digit or a base prefix and before a digit. */
static bool underscores_fit(struct lkg_span s)
{
        char last = '^'; /* '0' = digit or prefix, '_', anything else */
        bool hex = false;
        size_t i = 0;

        if (s.size > 0 && (*s.data == '-' || *s.data == '+'))
                s = lkg_span(s.data + 1, s.size - 1);
        if (s.size >= 2 && *s.data == '0' && memchr("box", lower(s.data[1]), 3)) {
                hex = lower(s.data[1]) == 'x';
                last = '0';
                i = 2;
        }
        for (; i < s.size; i++) {
                if (digit_value(s.data[i]) < (hex ? 16 : 10)) {
                        last = '0';
                } else if (s.data[i] == '_') {
                        if (last != '0')
                                return false;
                        last = '_';
                } else {
                        if (last == '_')
                                return false;
                        last = '!';
                }
        }
        return last != '_';
}

/*
 * Take the prefix off @s.
 * Return: the base that it stands for.
 */
static unsigned take_base(struct lkg_span *s)
{
        unsigned base = 8, skip = 2;

        if (s->size == 0 || *s->data != '0')
                return 10;
        switch (s->size >= 3 ? lower(s->data[1]) : 0) {
        case 'b':
                base = 2;
                break;
        case 'o':
                break;
        case 'x':
                base = 16;
                break;
        default:
                skip = 1; /* 0 alone is left with no digits at all: zero */
        }
        *s = lkg_span(s->data + skip, s->size - skip);
        return base;
}

static int not_whole(unsigned base, char *reason)
{
        return lkg_refuse(reason, base == 0 ? "not a whole number; want digits, such as 42 or 0x2a"
                                            : "not a whole number; want decimal digits, such as 42");
}

static int too_large(unsigned bits, char *reason)
{
        return lkg_refuse(reason, "out of range; does not fit into %u bits", bits);
}

int lkg_uint_parse(const char *text, size_t size, unsigned base, unsigned bits, uint64_t *ret, char *reason)
{
        struct lkg_span all = { text, size }, s = all;
        uint64_t n = 0, max = bits >= 64 ? UINT64_MAX : (UINT64_C(1) << bits) - 1;
        unsigned radix = base ? base : take_base(&s);
        bool underscores = false;

        if (size == 0)
                return not_whole(base, reason);
        for (size_t i = 0; i < s.size; i++) {
                unsigned digit = digit_value(s.data[i]);

                if (s.data[i] == '_' && base == 0) {
                        underscores = true;
                        continue;
                }
                if (digit >= radix)
                        return not_whole(base, reason);
                if (__builtin_mul_overflow(n, radix, &n) || __builtin_add_overflow(n, digit, &n) || n > max)
                        return too_large(bits, reason);
        }
        if (underscores && !underscores_fit(all))
                return lkg_refuse(reason, "misplaced underscore; they stand between two digits");
        *ret = n;
        return 0;
}

int lkg_int_parse(const char *text, size_t size, unsigned base, unsigned bits, int64_t *ret, char *reason)
{
        bool sign = size > 0 && (*text == '-' || *text == '+'), negative = sign && *text == '-';
        uint64_t n, limit = UINT64_C(1) << (bits - 1);
        int r;

        /* The size is checked below, so that the reason refers to the signed type. */
        r = lkg_uint_parse(text + sign, size - sign, base, 64, &n, reason);
        if (r < 0)
                return r;
        if (n > limit || (n == limit && !negative))
                return too_large(bits, reason);
        *ret = (int64_t)(negative ? -n : n);
        return 0;
}

/* ---- floats ---- */

static bool is_word(struct lkg_span s, const char *word)
{
        if (s.size != strlen(word))
                return false;
        for (size_t i = 0; i < s.size; i++) {
                if (lower(s.data[i]) != word[i])
                        return false;
        }
        return true;
}

/* inf and infinity with or without a sign, nan without. */
static bool special(struct lkg_span s, double *ret)
{
        bool sign = s.size > 0 && (*s.data == '-' || *s.data == '+');
        struct lkg_span rest = { s.data + sign, s.size - sign };

        if (is_word(rest, "inf") || is_word(rest, "infinity")) {
                *ret = sign && *s.data == '-' ? -INFINITY : INFINITY;
                return true;
        }
        if (!is_word(s, "nan"))
                return false;
        *ret = NAN;
        return true;
}

/* Digits, underscores and at most one point. Return: whether there is a digit. */
static bool take_mantissa(const char **p, const char *end, unsigned radix)
{
        bool digits = false, point = false;

        for (; *p < end; (*p)++) {
                if (**p == '.' && !point)
                        point = true;
                else if (digit_value(**p) < radix)
                        digits = true;
                else if (**p != '_')
                        break;
        }
        return digits;
}

static bool take_exponent(const char **p, const char *end)
{
        (*p)++;
        if (*p < end && (**p == '-' || **p == '+'))
                (*p)++;
        if (*p == end || **p < '0' || **p > '9')
                return false;
        while (*p < end && ((**p >= '0' && **p <= '9') || **p == '_'))
                (*p)++;
        return true;
}

static bool float_shape(struct lkg_span s)
{
        const char *p = s.data, *end = s.data + s.size;
        bool hex, exponent;

        if (p < end && (*p == '-' || *p == '+'))
                p++;
        hex = end - p > 2 && *p == '0' && lower(p[1]) == 'x';
        if (hex)
                p += 2;
        if (!take_mantissa(&p, end, hex ? 16 : 10))
                return false;
        exponent = p < end && lower(*p) == (hex ? 'p' : 'e');
        if (hex && !exponent)
                return false;
        if (exponent && !take_exponent(&p, end))
                return false;
        return p == end && (!memchr(s.data, '_', s.size) || underscores_fit(s));
}

int lkg_float_parse(const char *text, size_t size, unsigned bits, double *ret, char *reason)
{
        LKG_CLEANUP(lkg_freep) char *plain = NULL;
        struct lkg_span s = { text, size };
        size_t n = 0;
        double value;

        if (special(s, ret))
                return 0;
        if (!float_shape(s))
                return lkg_refuse(reason, "not a number; want digits, such as 0.25");
        plain = lkg_must(lkg_span_dup(s));
        for (size_t i = 0; i < size; i++) {
                if (plain[i] != '_')
                        plain[n++] = plain[i];
        }
        plain[n] = '\0';
        value = bits == 32 ? (double)strtof(plain, NULL) : strtod(plain, NULL);
        if (isinf(value))
                return lkg_refuse(reason, "out of range; too large for a number of %u bits", bits);
        *ret = value;
        return 0;
}
