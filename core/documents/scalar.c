/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Plain scalars: how go.yaml.in/yaml/v2 resolves an unquoted word (YAML 1.1 with its own exceptions), and
 * numbers as Go's encoding/json prints them. The first byte decides which forms are tried (hint_of), words
 * come from one table; numbers are tried as integer, float, then signed binary.
 */
#include <float.h>
#include <math.h>

#include <lkg/tree.h>

static const struct word {
        const char *text;
        enum lkg_scalar_type type;
        signed char value; /* bool: 0 or 1; float: -1, 1 = infinity with that sign, 0 = not a number */
} words[] = {
        { "y", LKG_S_BOOL, 1 },       { "Y", LKG_S_BOOL, 1 },       { "yes", LKG_S_BOOL, 1 },
        { "Yes", LKG_S_BOOL, 1 },     { "YES", LKG_S_BOOL, 1 },     { "true", LKG_S_BOOL, 1 },
        { "True", LKG_S_BOOL, 1 },    { "TRUE", LKG_S_BOOL, 1 },    { "on", LKG_S_BOOL, 1 },
        { "On", LKG_S_BOOL, 1 },      { "ON", LKG_S_BOOL, 1 },      { "n", LKG_S_BOOL, 0 },
        { "N", LKG_S_BOOL, 0 },       { "no", LKG_S_BOOL, 0 },      { "No", LKG_S_BOOL, 0 },
        { "NO", LKG_S_BOOL, 0 },      { "false", LKG_S_BOOL, 0 },   { "False", LKG_S_BOOL, 0 },
        { "FALSE", LKG_S_BOOL, 0 },   { "off", LKG_S_BOOL, 0 },     { "Off", LKG_S_BOOL, 0 },
        { "OFF", LKG_S_BOOL, 0 },     { "", LKG_S_NULL, 0 },        { "~", LKG_S_NULL, 0 },
        { "null", LKG_S_NULL, 0 },    { "Null", LKG_S_NULL, 0 },    { "NULL", LKG_S_NULL, 0 },
        { ".nan", LKG_S_FLOAT, 0 },   { ".NaN", LKG_S_FLOAT, 0 },   { ".NAN", LKG_S_FLOAT, 0 },
        { ".inf", LKG_S_FLOAT, 1 },   { ".Inf", LKG_S_FLOAT, 1 },   { ".INF", LKG_S_FLOAT, 1 },
        { "+.inf", LKG_S_FLOAT, 1 },  { "+.Inf", LKG_S_FLOAT, 1 },  { "+.INF", LKG_S_FLOAT, 1 },
        { "-.inf", LKG_S_FLOAT, -1 }, { "-.Inf", LKG_S_FLOAT, -1 }, { "-.INF", LKG_S_FLOAT, -1 },
};

#define WORD_SIZE_MAX 5u /* of the longest of them */

enum hint { HINT_NONE, HINT_WORD, HINT_DOT, HINT_NUMBER };

static enum hint hint_of(const char *text, size_t size)
{
        if (size == 0)
                return HINT_WORD;
        if ((text[0] >= '0' && text[0] <= '9') || text[0] == '+' || text[0] == '-')
                return HINT_NUMBER;
        if (text[0] == '.')
                return HINT_DOT;
        return memchr("yYnNtTfFoO~", text[0], 11) ? HINT_WORD : HINT_NONE;
}

/* In decimal; there is no -0. */
static void put_integer(char buf[static LKG_NUMBER_TEXT_MAX], bool negative, uint64_t magnitude)
{
        char digits[20];
        size_t at = sizeof(digits), n;

        if (negative && magnitude)
                *buf++ = '-';
        do
                digits[--at] = (char)('0' + magnitude % 10);
        while ((magnitude /= 10) > 0);
        n = sizeof(digits) - at;
        memcpy(buf, digits + at, n);
        buf[n] = '\0';
}

static void set_int(struct lkg_scalar *ret, bool negative, uint64_t magnitude)
{
        ret->type = LKG_S_INT;
        ret->big = !negative && magnitude > INT64_MAX;
        ret->d = negative ? -(double)magnitude : (double)magnitude;
        put_integer(ret->text, negative, magnitude);
}

static void set_float(struct lkg_scalar *ret, double d)
{
        ret->type = LKG_S_FLOAT;
        ret->d = d;
        ret->finite = isfinite(d);
        if (ret->finite)
                lkg_float_json(d, ret->text);
}

static bool from_words(const char *text, size_t size, struct lkg_scalar *ret)
{
        if (size > WORD_SIZE_MAX)
                return false;
        for (size_t i = 0; i < LKG_ARRAY_SIZE(words); i++) {
                const char *word = words[i].text;

                if (size > 0 && *word != *text) /* nearly all of them */
                        continue;
                if (strncmp(word, text, size) != 0 || word[size] != '\0')
                        continue;
                ret->type = words[i].type;
                ret->b = words[i].value == 1;
                if (ret->type == LKG_S_FLOAT)
                        set_float(ret, words[i].value ? (double)words[i].value * INFINITY : (double)NAN);
                return true;
        }
        return false;
}

static bool digits_to_u64(const char *p, unsigned base, uint64_t *ret)
{
        uint64_t n = 0;

        if (*p == '\0')
                return false;
        for (; *p; p++) {
                unsigned d = (unsigned)lkg_hex_digit(*p); /* what is none is larger than any base */

                if (d >= base || __builtin_mul_overflow(n, (uint64_t)base, &n) ||
                    __builtin_add_overflow(n, (uint64_t)d, &n))
                        return false;
        }
        *ret = n;
        return true;
}

/*
 * Go's strconv.ParseInt and, for positive numbers without a sign, ParseUint with base 0. @p has no
 * underscores.
 */
static bool from_integer(const char *p, struct lkg_scalar *ret)
{
        bool sign = *p == '+' || *p == '-', negative = *p == '-';
        unsigned base = 10;
        uint64_t n;

        p += sign;
        if (p[0] == '0' && p[1] != '\0') {
                char c = (char)(p[1] | 0x20);

                base = c == 'x' ? 16 : c == 'b' ? 2 : 8;
                p += c == 'x' || c == 'b' || c == 'o' ? 2 : 1;
        }
        if (!digits_to_u64(p, base, &n))
                return false;
        if (n > (uint64_t)INT64_MAX + (negative ? 1 : 0) && sign)
                return false; /* unsigned numbers take no sign */
        set_int(ret, negative, n);
        return true;
}

/* ^[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?$ */
static bool looks_like_float(const char *p)
{
        size_t whole, fraction = 0;

        p += *p == '+' || *p == '-';
        whole = strspn(p, "0123456789");
        p += whole;
        if (*p == '.') {
                fraction = strspn(++p, "0123456789");
                p += fraction;
        }
        if (whole + fraction == 0)
                return false;
        if (*p == 'e' || *p == 'E') {
                p++;
                p += *p == '+' || *p == '-';
                whole = strspn(p, "0123456789");
                if (whole == 0)
                        return false;
                p += whole;
        }
        return *p == '\0';
}

static bool from_float(const char *p, struct lkg_scalar *ret)
{
        double d;

        if (!looks_like_float(p))
                return false;
        d = strtod(p, NULL);
        if (!isfinite(d))
                return false; /* out of range: Go refuses, so it is a string */
        set_float(ret, d);
        return true;
}

/*
 * If ParseInt with base 0 fails, the text is tried as binary once more, after `0b` with a sign of its own:
 * `0b-101` is -5. (`-0b101` has been read before.)
 */
static bool from_binary(const char *p, struct lkg_scalar *ret)
{
        bool negative = p[0] == '0' && p[1] == 'b' && p[2] == '-';
        uint64_t n;

        if (p[0] != '0' || p[1] != 'b')
                return false;
        p += 2;
        p += *p == '-' || *p == '+';
        if (!digits_to_u64(p, 2, &n) || n > (uint64_t)INT64_MAX + (negative ? 1 : 0))
                return false; /* the unsigned numbers above take no sign and have been read before */
        set_int(ret, negative, n);
        return true;
}

/*
 * Go's strconv.ParseFloat takes underscores between digits. @p begins with '.', so only a decimal number is
 * possible. Remove them; return false if one is elsewhere.
 */
static bool drop_underscores(char *p)
{
        char *to = p, before = '.';

        for (; *p; before = *p++) {
                bool digit = *p >= '0' && *p <= '9';

                if ((*p == '_' && !(before >= '0' && before <= '9')) || (before == '_' && !digit))
                        return false;
                if (*p != '_')
                        *to++ = *p;
        }
        *to = '\0';
        return before != '_';
}

void lkg_scalar_resolve(const char *text, size_t size, struct lkg_scalar *ret)
{
        enum hint hint = hint_of(text, size);
        char small[512], *plain = small;
        size_t n = 0;

        *ret = (struct lkg_scalar){ .type = LKG_S_STRING, .finite = true };
        if (size == 2 && memcmp(text, "<<", 2) == 0) {
                ret->type = LKG_S_MERGE;
                return;
        }
        if (hint == HINT_NUMBER && size > 1 && text[1] == '.' && from_words(text, size, ret))
                return; /* -.inf and its like */
        if (hint == HINT_NONE || (hint != HINT_NUMBER && from_words(text, size, ret)) || hint == HINT_WORD)
                return;
        if (memchr(text, '\0', size))
                return;
        if (size >= sizeof(small)) {
                plain = malloc(size + 1);
                if (!plain)
                        return; /* a number of 512 digits read as a string, on a machine without memory */
        }
        for (size_t i = 0; i < size; i++)
                if (hint == HINT_DOT || text[i] != '_')
                        plain[n++] = text[i];
        plain[n] = '\0';
        if (hint == HINT_DOT)
                (void)(drop_underscores(plain) && from_float(plain, ret));
        else
                (void)(from_integer(plain, ret) || from_float(plain, ret) || from_binary(plain, ret));
        if (plain != small)
                free(plain);
}

/* ---- timestamps (only to judge an explicit !!timestamp tag; untagged they stay strings) ---- */

struct cursor {
        const char *p, *end;
        bool bad;
};

/* One or two digits (@fixed: two), at most @max. */
static unsigned take_number(struct cursor *c, bool fixed, unsigned max)
{
        unsigned n = 0, n_digits = 0;

        while (n_digits < 2 && c->p < c->end && *c->p >= '0' && *c->p <= '9') {
                n = 10 * n + (unsigned)(*c->p++ - '0');
                n_digits++;
        }
        if (n_digits < (fixed ? 2 : 1) || n > max)
                c->bad = true;
        return n;
}

static bool take_char(struct cursor *c, char want)
{
        if (c->p >= c->end || *c->p != want)
                return false;
        c->p++;
        return true;
}

static void expect(struct cursor *c, char want)
{
        if (!take_char(c, want))
                c->bad = true;
}

static unsigned days_in(unsigned year, unsigned month)
{
        bool leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);

        if (month == 2)
                return leap ? 29 : 28;
        return month == 4 || month == 6 || month == 9 || month == 11 ? 30 : 31;
}

/* A year of four digits, month and day of one or two; the day must exist. */
static void take_date(struct cursor *c)
{
        unsigned year = 100 * take_number(c, true, 99), month, day;

        year += take_number(c, true, 99);
        expect(c, '-');
        month = take_number(c, false, 12);
        expect(c, '-');
        day = take_number(c, false, 31);
        if (month < 1 || day < 1 || day > days_in(year, month))
                c->bad = true;
}

/* Hour, minute, second, and a fraction of any length (after a comma as well). */
static void take_time(struct cursor *c)
{
        (void)take_number(c, false, 23);
        expect(c, ':');
        (void)take_number(c, false, 59);
        expect(c, ':');
        (void)take_number(c, false, 59);
        if (c->end - c->p < 2 || (*c->p != '.' && *c->p != ',') || c->p[1] < '0' || c->p[1] > '9')
                return;
        c->p++;
        while (c->p < c->end && *c->p >= '0' && *c->p <= '9')
                c->p++;
}

static void take_zone(struct cursor *c)
{
        if (take_char(c, 'Z'))
                return;
        if (!take_char(c, '+') && !take_char(c, '-'))
                c->bad = true;
        (void)take_number(c, true, 24);
        expect(c, ':');
        (void)take_number(c, true, 60);
}

/* The four layouts of upstream's parseTimestamp, as Go's time.Parse reads them. */
bool lkg_scalar_is_timestamp(const char *text, size_t size)
{
        struct cursor c = { text, text + size, false };

        take_date(&c);
        if (c.bad || c.p == c.end)
                return !c.bad;
        if (take_char(&c, 'T') || take_char(&c, 't')) {
                take_time(&c);
                take_zone(&c);
        } else {
                expect(&c, ' ');
                while (take_char(&c, ' '))
                        ;
                take_time(&c);
        }
        return !c.bad && c.p == c.end;
}

/* ---- numbers as Go prints them ---- */

struct digits {
        char text[24]; /* no leading or trailing zeros, at least one digit */
        int n;
        int exponent; /* of the first digit: 1.23e4 has 4 */
        bool negative;
};

/*
 * Find the shortest decimal digits that read back as the same number (float64, or float32 if @single). With
 * as many digits as every number of that type can hold the shortest form is printed with trailing zeros, so
 * fewer need not be tried; subnormal numbers hold less.
 */
static void shortest(double d, bool single, struct digits *ret)
{
        char buf[64], *e;
        int max = single ? FLT_DECIMAL_DIG : DBL_DECIMAL_DIG;
        bool subnormal = fabs(d) < (single ? (double)FLT_MIN : DBL_MIN);

        for (int precision = subnormal ? 1 : single ? FLT_DIG : DBL_DIG; precision <= max; precision++) {
                (void)snprintf(buf, sizeof(buf), "%.*e", precision - 1, d);
                if (single ? strtof(buf, NULL) == (float)d : strtod(buf, NULL) == d)
                        break;
        }
        *ret = (struct digits){ .negative = buf[0] == '-' };
        e = strchr(buf, 'e');
        ret->exponent = (int)strtol(e + 1, NULL, 10);
        for (const char *p = buf; p < e; p++)
                if (*p >= '0' && *p <= '9')
                        ret->text[ret->n++] = *p;
        while (ret->n > 1 && ret->text[ret->n - 1] == '0')
                ret->n--;
        ret->text[ret->n] = '\0';
}

static void print_plain(const struct digits *d, char *buf, size_t size)
{
        static const char zeros[] = "0000000000000000000000000";
        const char *sign = d->negative ? "-" : "";

        if (d->exponent < 0)
                (void)snprintf(buf, size, "%s0.%.*s%s", sign, -d->exponent - 1, zeros, d->text);
        else if (d->exponent + 1 >= d->n)
                (void)snprintf(buf, size, "%s%s%.*s", sign, d->text, d->exponent + 1 - d->n, zeros);
        else
                (void)snprintf(buf, size, "%s%.*s.%s", sign, d->exponent + 1, d->text,
                               d->text + d->exponent + 1);
}

static void print_exponent(const struct digits *d, int min_exponent_digits, char *buf, size_t size)
{
        (void)snprintf(buf, size, "%s%c%s%se%c%0*d", d->negative ? "-" : "", d->text[0], d->n > 1 ? "." : "",
                       d->text + 1, d->exponent < 0 ? '-' : '+', min_exponent_digits, abs(d->exponent));
}

void lkg_float_json(double d, char buf[static LKG_NUMBER_TEXT_MAX])
{
        struct digits digits;

        if (d == 0) {
                strcpy(buf, signbit(d) ? "-0" : "0");
                return;
        }
        shortest(d, false, &digits);
        if (fabs(d) < 1e-6 || fabs(d) >= 1e21)
                print_exponent(&digits, 1, buf, LKG_NUMBER_TEXT_MAX);
        else
                print_plain(&digits, buf, LKG_NUMBER_TEXT_MAX);
}

void lkg_float_key(double d, char buf[static LKG_NUMBER_TEXT_MAX])
{
        struct digits digits;
        float f = (float)d;

        if (!isfinite(f)) {
                strcpy(buf, isnan(f) ? ".nan" : f > 0 ? ".inf" : "-.inf");
                return;
        }
        if (f == 0) {
                strcpy(buf, signbit(f) ? "-0" : "0");
                return;
        }
        shortest((double)f, true, &digits);
        if (digits.exponent < -4 || digits.exponent >= 6)
                print_exponent(&digits, 2, buf, LKG_NUMBER_TEXT_MAX);
        else
                print_plain(&digits, buf, LKG_NUMBER_TEXT_MAX);
}

int lkg_number_untyped(const char *text, char buf[static LKG_NUMBER_TEXT_MAX])
{
        bool negative = *text == '-';
        uint64_t n;
        double d;

        if (digits_to_u64(text + negative, 10, &n) && n <= (uint64_t)INT64_MAX + (negative ? 1 : 0)) {
                put_integer(buf, negative, n);
                return 0;
        }
        d = strtod(text, NULL);
        if (!isfinite(d))
                return -ERANGE;
        lkg_float_json(d, buf);
        return 0;
}
