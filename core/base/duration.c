/* SPDX-License-Identifier: Apache-2.0 */
#include <lkg/text.h>

#define LIMIT (UINT64_C(1) << 63) /* magnitude of the most negative duration */
#define WANT  "; want numbers with units, such as 30s, 5m or 1h30m"

struct unit {
        const char *name;
        uint64_t ns;
};

static const struct unit units[] = {
        { "ns", 1 },
        { "us", 1000 },
        { "\302\265s", 1000 }, /* U+00B5, micro sign */
        { "\316\274s", 1000 }, /* U+03BC, Greek letter mu */
        { "ms", 1000000 },
        { "s", UINT64_C(1000000000) },
        { "m", 60 * UINT64_C(1000000000) },
        { "h", 3600 * UINT64_C(1000000000) },
};

static bool is_digit(const char *p, const char *end)
{
        return p < end && *p >= '0' && *p <= '9';
}

/* The digits before the point. Return: false: above LIMIT. */
static bool whole(const char **p, const char *end, uint64_t *ret)
{
        uint64_t n = 0;

        for (; is_digit(*p, end); (*p)++) {
                if (n > LIMIT / 10)
                        return false;
                n = n * 10 + (uint64_t)(**p - '0');
                if (n > LIMIT)
                        return false;
        }
        *ret = n;
        return true;
}

/*
 * The digits after the point: value = digits / scale. Digits that do not fit are dropped; they are below 1
 * ns.
 */
static void fraction(const char **p, const char *end, uint64_t *ret_digits, double *ret_scale)
{
        uint64_t n = 0;
        double scale = 1;
        bool full = false;

        for (; is_digit(*p, end); (*p)++) {
                uint64_t next;

                if (full || n > (LIMIT - 1) / 10) {
                        full = true;
                        continue;
                }
                next = n * 10 + (uint64_t)(**p - '0');
                if (next > LIMIT) {
                        full = true;
                        continue;
                }
                n = next;
                scale *= 10;
        }
        *ret_digits = n;
        *ret_scale = scale;
}

static const struct unit *find_unit(struct lkg_span name)
{
        for (size_t i = 0; i < LKG_ARRAY_SIZE(units); i++) {
                if (lkg_span_is(name, units[i].name))
                        return &units[i];
        }
        return NULL;
}

/* The name of a unit is everything before the next number. */
static struct lkg_span unit_name(const char *p, const char *end)
{
        const char *start = p;

        while (p < end && *p != '.' && !is_digit(p, end))
                p++;
        return lkg_span(start, (size_t)(p - start));
}

static int too_long(char *reason)
{
        return lkg_refuse(reason, "too long for a duration; at most 2562047h47m16.854775807s");
}

/* Parses one number with its unit and adds it to @sum. */
static int part(const char **p, const char *end, uint64_t *sum, char *reason)
{
        char piece[LKG_PIECE_MAX];
        const char *start = *p;
        const struct unit *unit;
        struct lkg_span name;
        uint64_t n, digits = 0;
        double scale = 1;
        bool any;

        if (!is_digit(*p, end) && **p != '.')
                return lkg_refuse(reason, "no number before %s" WANT,
                                  lkg_piece(lkg_span(*p, (size_t)(end - *p)), piece));
        if (!whole(p, end, &n))
                return too_long(reason);
        any = *p > start;
        if (*p < end && **p == '.') {
                const char *point = ++*p;

                fraction(p, end, &digits, &scale);
                any |= *p > point;
        }
        if (!any)
                return lkg_refuse(reason, "a point without digits" WANT);
        name = unit_name(*p, end);
        if (name.size == 0)
                return lkg_refuse(reason, "a number without a unit" WANT);
        *p += name.size;
        unit = find_unit(name);
        if (!unit)
                return lkg_refuse(reason, "unknown unit %s; units are ns, us, ms, s, m and h (1h30m)",
                                  lkg_piece(name, piece));
        if (n > LIMIT / unit->ns)
                return too_long(reason);
        n *= unit->ns;
        /*
         * The component computes fractions in this order with double precision; so the result is the same
         * nanosecond.
         */
        if (digits > 0)
                n += (uint64_t)((double)digits * ((double)unit->ns / scale));
        if (n > LIMIT)
                return too_long(reason);
        *sum += n;
        return *sum > LIMIT ? too_long(reason) : 0;
}

int lkg_duration_parse(const char *text, size_t size, int64_t *ret_ns, char *reason)
{
        const char *p = text, *end = text + size;
        bool negative = false;
        uint64_t sum = 0;

        if (p < end && (*p == '-' || *p == '+'))
                negative = *p++ == '-';
        if (p == end)
                return lkg_refuse(reason, "empty" WANT);
        if (end - p == 1 && *p == '0')
                p++;
        while (p < end) {
                int r = part(&p, end, &sum, reason);

                if (r < 0)
                        return r;
        }
        if (!negative && sum == LIMIT)
                return too_long(reason);
        *ret_ns = (int64_t)(negative ? -sum : sum);
        return 0;
}

int lkg_duration_parse_plain(const char *text, uint64_t *ret_ns)
{
        int64_t ns;

        if (*text == '-' || *text == '+' || lkg_duration_parse(text, strlen(text), &ns, NULL) < 0)
                return -EINVAL;
        *ret_ns = (uint64_t)ns;
        return 0;
}

/* Writes `.digits` of @n / 10^@places without trailing zeros, backwards from @w. Return: the new start. */
static char *put_fraction(char *w, uint64_t *n, unsigned places)
{
        bool shown = false;

        for (unsigned i = 0; i < places; i++) {
                unsigned digit = (unsigned)(*n % 10);

                shown |= digit != 0;
                if (shown)
                        *--w = (char)('0' + digit);
                *n /= 10;
        }
        if (shown)
                *--w = '.';
        return w;
}

static char *put_number(char *w, uint64_t n)
{
        do
                *--w = (char)('0' + n % 10);
        while ((n /= 10) > 0);
        return w;
}

/* Less than a second: one smaller unit. */
static char *put_small(char *w, uint64_t n)
{
        if (n == 0) {
                *--w = '0';
                return w;
        }
        if (n < 1000) {
                *--w = 'n';
        } else if (n < 1000000) {
                *--w = '\265';
                *--w = '\302';
                w = put_fraction(w, &n, 3);
        } else {
                *--w = 'm';
                w = put_fraction(w, &n, 6);
        }
        return put_number(w, n);
}

size_t lkg_duration_format(int64_t ns, char buf[static LKG_DURATION_MAX])
{
        uint64_t n = ns < 0 ? -(uint64_t)ns : (uint64_t)ns;
        char *end = buf + LKG_DURATION_MAX - 1, *w = end;
        size_t length;

        *--w = 's';
        if (n < 1000000000) {
                w = put_small(w, n);
        } else {
                w = put_fraction(w, &n, 9);
                w = put_number(w, n % 60);
                n /= 60;
                if (n > 0) {
                        *--w = 'm';
                        w = put_number(w, n % 60);
                        n /= 60;
                }
                if (n > 0) {
                        *--w = 'h';
                        w = put_number(w, n);
                }
        }
        if (ns < 0)
                *--w = '-';
        length = (size_t)(end - w);
        memmove(buf, w, length);
        buf[length] = '\0';
        return length;
}
