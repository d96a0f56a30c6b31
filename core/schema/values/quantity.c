/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Upstream has two representations: an int64 with a power of ten, and a decimal of any length. The choice decides the printed
 * form, so it is made here by the same rule (takes_short_path).
 */
#include <inttypes.h>

#include "values.h"

#define NANO         (-9)                  /* scale of the finest value */
#define SHORT_DIGITS 18                    /* most decimal digits that are an int64 for sure */
#define SHIFT_MAX    1000000               /* powers of ten a decimal may be shifted by */
#define CAP_TEXT     "9223372036854775807" /* 2^63-1: cap of values with a binary suffix */
#define CAP_DIGITS   19
#define SHIFTED_MAX  20 /* digits that multiplying by 2^60 adds at most */

/* The parts of the text. */
struct parts {
        bool negative;
        struct lkg_span whole;    /* without leading zeros, at least one digit ("0") */
        struct lkg_span fraction; /* may be empty */
        struct lkg_span suffix;
        bool zeros;  /* nothing but a sign and zeros: never looked at further */
        bool digits; /* there is one, be it zero */
};

/* The meaning of a suffix: x base^exponent. */
struct suffix {
        const char *name;
        enum lkg_quantity_format format;
        int32_t exponent;
};

static const struct suffix suffixes[] = {
        { "", LKG_QUANTITY_DECIMAL, 0 },   { "n", LKG_QUANTITY_DECIMAL, -9 },
        { "u", LKG_QUANTITY_DECIMAL, -6 }, { "m", LKG_QUANTITY_DECIMAL, -3 },
        { "k", LKG_QUANTITY_DECIMAL, 3 },  { "M", LKG_QUANTITY_DECIMAL, 6 },
        { "G", LKG_QUANTITY_DECIMAL, 9 },  { "T", LKG_QUANTITY_DECIMAL, 12 },
        { "P", LKG_QUANTITY_DECIMAL, 15 }, { "E", LKG_QUANTITY_DECIMAL, 18 },
        { "Ki", LKG_QUANTITY_BINARY, 10 }, { "Mi", LKG_QUANTITY_BINARY, 20 },
        { "Gi", LKG_QUANTITY_BINARY, 30 }, { "Ti", LKG_QUANTITY_BINARY, 40 },
        { "Pi", LKG_QUANTITY_BINARY, 50 }, { "Ei", LKG_QUANTITY_BINARY, 60 },
};

void lkg_quantity_deinit(struct lkg_quantity *quantity)
{
        if (!quantity)
                return;
        free(quantity->digits);
        *quantity = (struct lkg_quantity)LKG_QUANTITY_INIT;
}

/* ---- grammar ---- */

static struct lkg_span take_digits(const char **p, const char *end)
{
        const char *start = *p;

        while (*p < end && **p >= '0' && **p <= '9')
                (*p)++;
        return lkg_span(start, (size_t)(*p - start));
}

/* Only letters of suffixes, a sign and digits may follow the number. */
static bool suffix_shape(const char *p, const char *end)
{
        while (p < end && *p && strchr("eEinumkKMGTP", *p))
                p++;
        if (p < end && (*p == '-' || *p == '+'))
                p++;
        (void)take_digits(&p, end);
        return p == end;
}

static bool split(struct lkg_span text, struct parts *ret)
{
        const char *p = text.data, *end = text.data + text.size;

        *ret = (struct parts){ 0 };
        if (p < end && (*p == '-' || *p == '+'))
                ret->negative = *p++ == '-';
        while (p < end && *p == '0') {
                ret->digits = true;
                p++;
        }
        if (p == end) { /* also a sign alone */
                ret->zeros = true;
                ret->whole = lkg_span("0", 1);
                return true;
        }
        ret->whole = take_digits(&p, end);
        ret->digits |= ret->whole.size > 0;
        if (ret->whole.size == 0)
                ret->whole = lkg_span("0", 1);
        if (p < end && *p == '.') {
                p++;
                ret->fraction = take_digits(&p, end);
                ret->digits |= ret->fraction.size > 0;
        }
        ret->suffix = lkg_span(p, (size_t)(end - p));
        return suffix_shape(p, end);
}

/* Parse the digits after e or E as an int64, of which upstream keeps 32 bits. */
static bool exponent_of(struct lkg_span text, int32_t *ret)
{
        int64_t n;

        if (lkg_int_parse(text.data, text.size, 10, 64, &n, NULL) < 0)
                return false;
        *ret = (int32_t)(uint32_t)n;
        return true;
}

static bool interpret(struct lkg_span text, struct suffix *ret)
{
        for (size_t i = 0; i < LKG_ARRAY_SIZE(suffixes); i++) {
                if (lkg_span_is(text, suffixes[i].name)) {
                        *ret = suffixes[i];
                        return true;
                }
        }
        if (text.size < 2 || (*text.data != 'e' && *text.data != 'E'))
                return false;
        *ret = (struct suffix){ .format = LKG_QUANTITY_EXPONENT };
        return exponent_of(lkg_span(text.data + 1, text.size - 1), &ret->exponent);
}

/* ---- short path ---- */

/* Scales wrap around at 32 bits, as upstream; absurd exponents print the same as there. */
static int32_t scale_minus(int32_t scale, size_t n)
{
        return (int32_t)((uint32_t)scale - (uint32_t)n);
}

static bool takes_short_path(const struct parts *parts, const struct suffix *suffix, int32_t *ret_scale)
{
        size_t n = parts->whole.size + parts->fraction.size;

        if (suffix->format == LKG_QUANTITY_BINARY) {
                /* 2^10 are about 3 decimal digits */
                *ret_scale = 0;
                return parts->fraction.size == 0 && n + (size_t)suffix->exponent * 3 / 10 + 1 <= 15;
        }
        *ret_scale = scale_minus(suffix->exponent, parts->fraction.size);
        return n <= SHORT_DIGITS && *ret_scale >= NANO;
}

static uint64_t number(struct lkg_span whole, struct lkg_span fraction)
{
        uint64_t n = 0;

        for (size_t i = 0; i < whole.size; i++)
                n = n * 10 + (uint64_t)(whole.data[i] - '0');
        for (size_t i = 0; i < fraction.size; i++)
                n = n * 10 + (uint64_t)(fraction.data[i] - '0');
        return n;
}

/* Upstream keeps the text of a value that looks canonical, without computing whether it is. */
static bool looks_canonical(const struct parts *parts, const struct suffix *suffix, uint64_t n,
                            int32_t scale)
{
        if (suffix->format == LKG_QUANTITY_BINARY)
                return (n & 7) != 0;
        return scale % 3 == 0 && *parts->whole.data != '0' && !(n % 1000 == 0 && n >= 1000);
}

static void short_path(const struct parts *parts, const struct suffix *suffix, int32_t scale,
                       struct lkg_quantity *ret)
{
        uint64_t n = number(parts->whole, parts->fraction);

        *ret = (struct lkg_quantity){
                .format = suffix->format,
                .negative = parts->negative && n > 0,
                .as_written = looks_canonical(parts, suffix, n, scale),
                .value = suffix->format == LKG_QUANTITY_BINARY ? n << suffix->exponent : n,
                .scale = scale,
        };
}

/* ---- long path: digits in a buffer, the number at [start, start + n) ---- */

struct decimal {
        char *buffer; /* owned; some room before @start for carries */
        size_t start, n;
        int64_t scale;
};

static void decimal_trim(struct decimal *d)
{
        while (d->n > 0 && d->buffer[d->start] == '0') {
                d->start++;
                d->n--;
        }
        while (d->n > 0 && d->buffer[d->start + d->n - 1] == '0') {
                d->n--;
                d->scale++;
        }
}

static void decimal_init(struct decimal *d, const struct parts *parts)
{
        *d = (struct decimal){ .start = SHIFTED_MAX + 1, .n = parts->whole.size + parts->fraction.size };
        d->buffer = lkg_must(malloc(d->start + d->n));
        memset(d->buffer, '0', d->start);
        memcpy(d->buffer + d->start, parts->whole.data, parts->whole.size);
        if (parts->fraction.size > 0)
                memcpy(d->buffer + d->start + parts->whole.size, parts->fraction.data, parts->fraction.size);
        d->scale = -(int64_t)parts->fraction.size;
}

/* x 2^@bits, at most 60: a digit times 2^60 and the carry fit into 64 bits. */
static void decimal_shift(struct decimal *d, int32_t bits)
{
        uint64_t carry = 0;

        for (size_t i = d->start + d->n; i-- > d->start;) {
                carry += (uint64_t)(d->buffer[i] - '0') << bits;
                d->buffer[i] = (char)('0' + carry % 10);
                carry /= 10;
        }
        for (; carry > 0; carry /= 10) {
                d->buffer[--d->start] = (char)('0' + carry % 10);
                d->n++;
        }
}

/*
 * Round to whole multiples of 10^unit, away from zero. @d is trimmed and not zero, so the dropped digits are
 * never all zero.
 */
static void decimal_round(struct decimal *d, int32_t unit)
{
        size_t last;

        if (d->scale >= unit)
                return;
        if ((uint64_t)(unit - d->scale) >= d->n) { /* less than one unit */
                d->buffer[d->start] = '1';
                d->n = 1;
                d->scale = unit;
                return;
        }
        d->n -= (size_t)(unit - d->scale);
        d->scale = unit;
        last = d->start + d->n - 1;
        while (last >= d->start && d->buffer[last] == '9')
                d->buffer[last--] = '0';
        if (last < d->start) {
                d->start--;
                d->n++;
        }
        d->buffer[last]++; /* room before the number holds '0' */
        decimal_trim(d);
}

/* Values with a binary suffix are capped at 2^63-1. */
static void decimal_cap(struct decimal *d)
{
        int64_t whole = (int64_t)d->n + d->scale; /* digits before the point */
        size_t n = d->n < CAP_DIGITS ? d->n : CAP_DIGITS;
        int order;

        if (whole < CAP_DIGITS)
                return;
        order = memcmp(d->buffer + d->start, CAP_TEXT, n);
        if (whole == CAP_DIGITS && (order < 0 || (order == 0 && d->n <= CAP_DIGITS)))
                return;
        memcpy(d->buffer + d->start, CAP_TEXT, CAP_DIGITS);
        d->n = CAP_DIGITS;
        d->scale = 0;
}

/* Move the digits into @ret: as a number if they fit. */
static void decimal_finish(struct decimal *d, struct lkg_quantity *ret)
{
        ret->scale = (int32_t)d->scale;
        if (d->n <= CAP_DIGITS) {
                ret->value = number(lkg_span(d->buffer + d->start, d->n), lkg_span(NULL, 0));
                return;
        }
        ret->digits = lkg_must(malloc(d->n));
        memcpy(ret->digits, d->buffer + d->start, d->n);
        ret->n_digits = d->n;
        ret->value = 1; /* not zero */
}

static int long_path(const struct parts *parts, const struct suffix *suffix, struct lkg_quantity *ret,
                     char *reason)
{
        LKG_CLEANUP(lkg_freep) char *buffer = NULL;
        struct lkg_quantity quantity = { .format = suffix->format,
                                         .negative = parts->negative,
                                         .wide = true };
        struct decimal d;

        /* The short path parses `Ki` as zero; this one refuses `Ei`. */
        if (!parts->digits)
                return lkg_refuse(reason, "no digits; want a number and a suffix, such as 100m, 2 or 1.5Gi");
        decimal_init(&d, parts);
        buffer = d.buffer;
        if (suffix->format == LKG_QUANTITY_BINARY)
                decimal_shift(&d, suffix->exponent);
        else
                d.scale += suffix->exponent;
        decimal_trim(&d);
        if (d.n == 0) {
                quantity.negative = false;
                *ret = quantity;
                return 0;
        }
        if (d.scale > SHIFT_MAX || d.scale < -SHIFT_MAX)
                return lkg_refuse(reason, "an exponent this large cannot be computed by the component");
        decimal_round(&d, NANO);
        if (suffix->format == LKG_QUANTITY_BINARY) {
                decimal_cap(&d);
                decimal_trim(&d);
        }
        decimal_finish(&d, &quantity);
        *ret = quantity;
        return 0;
}

/* ---- parse ---- */

static int no_suffix(struct lkg_span suffix, char *reason)
{
        return lkg_refuse(reason, "unknown suffix %s; want Ki Mi Gi Ti Pi Ei, n u m k M G T P E, or e3",
                          LKG_PIECE(suffix));
}

int lkg_quantity_parse(const char *text, size_t size, struct lkg_quantity *ret, char *reason)
{
        struct suffix suffix = suffixes[0];
        struct parts parts;
        int32_t scale = 0;

        if (size == 0)
                return lkg_refuse(reason, "empty; want a quantity, such as 100m, 2 or 1.5Gi");
        if (!split(lkg_span(text, size), &parts))
                return lkg_refuse(reason,
                                  "not a quantity; want a number and a suffix, such as 100m, 2 or 1.5Gi");
        if (parts.zeros) {
                *ret = (struct lkg_quantity){ .as_written = size == 1 && *text == '0' };
                return 0;
        }
        if (!interpret(parts.suffix, &suffix))
                return no_suffix(parts.suffix, reason);
        if (!takes_short_path(&parts, &suffix, &scale))
                return long_path(&parts, &suffix, ret, reason);
        short_path(&parts, &suffix, scale, ret);
        return 0;
}

/* Return the size of white space that a JSON encoder does not escape. */
static size_t raw_space(struct lkg_span span)
{
        size_t n = lkg_span_space(span);

        if (n == 1)
                return *span.data == ' ';
        return n == 3 && (memcmp(span.data, "\342\200\250", 3) == 0 ||
                          memcmp(span.data, "\342\200\251", 3) == 0)
                       ? 0
                       : n;
}

struct lkg_span lkg_quantity_trim(const char *text, size_t size)
{
        struct lkg_span span = { text, size };
        size_t n;

        while ((n = raw_space(span)) > 0)
                span = lkg_span(span.data + n, span.size - n);
        for (n = 1; n <= 3 && n <= span.size; n++) {
                if (raw_space(lkg_span(span.data + span.size - n, n)) == n) {
                        span.size -= n;
                        n = 0;
                }
        }
        return span;
}

/* ---- print ---- */

/* Return the digits of the magnitude without trailing zeros; the scale is increased accordingly. */
static struct lkg_span mantissa(const struct lkg_quantity *q, char buf[static 24], int32_t *ret_scale)
{
        int n;

        *ret_scale = q->scale;
        if (q->digits)
                return lkg_span(q->digits, q->n_digits);
        n = snprintf(buf, 24, "%llu", (unsigned long long)q->value);
        while (n > 1 && buf[n - 1] == '0') {
                n--;
                *ret_scale = (int32_t)((uint32_t)*ret_scale + 1);
        }
        return lkg_span(buf, (size_t)n);
}

static void put_suffix(struct lkg_buf *buf, enum lkg_quantity_format format, int32_t exponent)
{
        if (format == LKG_QUANTITY_EXPONENT) {
                if (exponent != 0)
                        lkg_buf_printf(buf, "e%d", exponent);
                return;
        }
        for (size_t i = 0; i < LKG_ARRAY_SIZE(suffixes); i++) {
                if (suffixes[i].format == format && suffixes[i].exponent == exponent)
                        lkg_buf_puts(buf, suffixes[i].name);
        }
}

/* Put as many zeros as make the exponent a multiple of three. */
static void put_decimal(const struct lkg_quantity *q, enum lkg_quantity_format format, struct lkg_buf *buf)
{
        char small[24];
        int32_t scale, rest;
        struct lkg_span digits = mantissa(q, small, &scale);

        lkg_buf_append(buf, digits.data, digits.size);
        rest = scale % 3 < 0 ? scale % 3 + 3 : scale % 3;
        for (int32_t i = 0; i < rest; i++)
                lkg_buf_putc(buf, '0');
        put_suffix(buf, format, scale_minus(scale, (size_t)rest));
}

/* Put whole numbers of 1024 and more with a binary suffix; all of them fit, because they are capped. */
static bool put_binary(const struct lkg_quantity *q, struct lkg_buf *buf)
{
        uint64_t n = q->value;
        int32_t exponent = 0;

        if (q->digits || q->scale < 0)
                return false; /* trimmed: so there is a fraction */
        for (int32_t i = 0; i < q->scale; i++)
                n *= 10;
        if (n < 1024)
                return false;
        for (; n % 1024 == 0; n /= 1024)
                exponent += 10;
        lkg_buf_u64(buf, n);
        if (exponent > 0)
                put_suffix(buf, LKG_QUANTITY_BINARY, exponent);
        return true;
}

void lkg_quantity_canonical(const struct lkg_quantity *q, struct lkg_buf *buf)
{
        if (lkg_quantity_is_zero(q)) {
                lkg_buf_putc(buf, '0');
                return;
        }
        if (q->negative)
                lkg_buf_putc(buf, '-');
        if (q->format != LKG_QUANTITY_BINARY)
                put_decimal(q, q->format, buf);
        else if (!put_binary(q, buf))
                put_decimal(q, LKG_QUANTITY_DECIMAL, buf);
}

void lkg_quantity_text(const struct lkg_quantity *quantity, struct lkg_span source, struct lkg_buf *buf)
{
        if (quantity->as_written)
                lkg_buf_append(buf, source.data, source.size);
        else
                lkg_quantity_canonical(quantity, buf);
}

/* ---- round ---- */

void lkg_quantity_round(struct lkg_quantity *quantity, int32_t unit)
{
        LKG_CLEANUP(lkg_freep) char *buffer = NULL;
        struct lkg_quantity rounded = { .format = quantity->format,
                                        .negative = quantity->negative,
                                        .wide = quantity->wide };
        struct decimal d = { .start = 1 };
        struct lkg_span digits;
        char small[24];
        int32_t scale;

        if (quantity->scale < unit || quantity->wide)
                quantity->as_written = false;
        digits = mantissa(quantity, small, &scale);
        if (lkg_quantity_is_zero(quantity) || scale >= unit)
                return;
        buffer = lkg_must(malloc(digits.size + 1));
        buffer[0] = '0';
        memcpy(buffer + 1, digits.data, digits.size);
        d.buffer = buffer;
        d.n = digits.size;
        d.scale = scale;
        decimal_round(&d, unit);
        decimal_finish(&d, &rounded);
        lkg_quantity_deinit(quantity);
        *quantity = rounded;
}

/* ---- compare ---- */

bool lkg_quantity_is_zero(const struct lkg_quantity *quantity)
{
        return quantity->value == 0;
}

int lkg_quantity_sign(const struct lkg_quantity *quantity)
{
        if (lkg_quantity_is_zero(quantity))
                return 0;
        return quantity->negative ? -1 : 1;
}

/* Neither is zero. Without trailing zeros, equal numbers have equal digits. */
static int compare_magnitude(const struct lkg_quantity *a, const struct lkg_quantity *b)
{
        char small_a[24], small_b[24];
        int32_t scale_a, scale_b;
        struct lkg_span digits_a = mantissa(a, small_a, &scale_a), digits_b = mantissa(b, small_b, &scale_b);
        int64_t whole_a = (int64_t)digits_a.size + scale_a, whole_b = (int64_t)digits_b.size + scale_b;
        size_t n = digits_a.size < digits_b.size ? digits_a.size : digits_b.size;
        int order;

        if (whole_a != whole_b)
                return whole_a < whole_b ? -1 : 1;
        order = memcmp(digits_a.data, digits_b.data, n);
        if (order != 0)
                return order < 0 ? -1 : 1;
        if (digits_a.size == digits_b.size)
                return 0;
        return digits_a.size < digits_b.size ? -1 : 1;
}

int lkg_quantity_compare(const struct lkg_quantity *a, const struct lkg_quantity *b)
{
        int sign_a = lkg_quantity_sign(a), sign_b = lkg_quantity_sign(b);

        if (sign_a != sign_b)
                return sign_a < sign_b ? -1 : 1;
        return sign_a == 0 ? 0 : sign_a * compare_magnitude(a, b);
}

bool lkg_quantity_int64(const struct lkg_quantity *quantity, int64_t *ret)
{
        int64_t n;

        if (quantity->wide || quantity->scale < 0)
                return false;
        if (lkg_quantity_is_zero(quantity)) {
                *ret = 0;
                return true;
        }
        n = quantity->negative ? -(int64_t)quantity->value : (int64_t)quantity->value;
        for (int32_t i = 0; i < quantity->scale; i++) {
                if (__builtin_mul_overflow(n, 10, &n))
                        return false;
        }
        *ret = n;
        return true;
}

/* ---- conversion to 64 bits ---- */

static int64_t wrap(uint64_t n)
{
        int64_t signed_n;

        memcpy(&signed_n, &n, sizeof(signed_n));
        return signed_n;
}

static uint64_t power_of_ten(int32_t exponent)
{
        uint64_t n = 1;

        for (int32_t i = 0; n != 0 && i < exponent; i++)
                n *= 10; /* modulo 2^64: nothing is left of 10^64 */
        return n;
}

/*
 * AsScaledInt64: a value that does not fit is 0 or, for the powers with a function of their own, its low
 * bits.
 */
static int64_t short_value(const struct lkg_quantity *q)
{
        int64_t n = q->negative ? -(int64_t)q->value : (int64_t)q->value;
        bool fraction = false;

        for (int32_t i = q->scale; i < 0 && n != 0; i++) {
                fraction |= n % 10 != 0;
                n /= 10;
        }
        if (fraction)
                return q->negative ? n - 1 : n + 1;
        if (q->scale <= 3 || q->scale == 6 || q->scale == 9)
                return wrap((uint64_t)n * power_of_ten(q->scale));
        for (int32_t i = 0; i < q->scale; i++)
                if (__builtin_mul_overflow(n, 10, &n))
                        return 0;
        return n;
}

/*
 * scaledValue: the decimal is one of billionths. A positive one is divided exactly and then cut to 64 bits; a
 * negative one is cut before, and rounded up instead of away from zero.
 */
static int64_t wide_value(const struct lkg_quantity *q)
{
        static const int64_t billion = 1000000000;
        char small[24];
        int32_t scale;
        struct lkg_span digits = mantissa(q, small, &scale), none = lkg_span(NULL, 0);
        size_t fraction = scale < 0 ? (size_t)-scale : 0;
        int64_t n;

        if (q->format == LKG_QUANTITY_BINARY && q->value == INT64_MAX) /* capped: whole */
                return q->negative ? -INT64_MAX : INT64_MAX;
        if (q->negative) {
                n = wrap(-(number(digits, none) * power_of_ten(scale - NANO)));
                return n / billion + (n % billion != 0);
        }
        digits.size -= fraction < digits.size ? fraction : digits.size;
        return wrap(number(digits, none) * power_of_ten(scale) + (fraction > 0));
}

int64_t lkg_quantity_value(const struct lkg_quantity *quantity)
{
        if (lkg_quantity_is_zero(quantity))
                return 0;
        return quantity->wide ? wide_value(quantity) : short_value(quantity);
}

double lkg_quantity_double(const struct lkg_quantity *quantity)
{
        int digits = quantity->n_digits < 40 ? (int)quantity->n_digits : 40;
        int64_t scale = quantity->scale;
        char text[96];

        if (quantity->digits)
                (void)snprintf(text, sizeof(text), "%.*se%" PRId64, digits, quantity->digits,
                               scale + (int64_t)quantity->n_digits - digits);
        else
                (void)snprintf(text, sizeof(text), "%" PRIu64 "e%" PRId64, quantity->value, scale);
        return quantity->negative ? -strtod(text, NULL) : strtod(text, NULL);
}
