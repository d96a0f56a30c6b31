/* SPDX-License-Identifier: Apache-2.0 */
/* Clocks, and times as text. */
#include <fcntl.h>
#include <time.h>

#include <lkg/base.h>
#include <lkg/text.h>

static uint64_t clock_ns(clockid_t id)
{
        struct timespec ts;

        if (clock_gettime(id, &ts) < 0)
                return 0; /* cannot happen for these two clocks */
        return (uint64_t)ts.tv_sec * LKG_NSEC_PER_SEC + (uint64_t)ts.tv_nsec;
}

uint64_t lkg_boottime_ns(void)
{
        return clock_ns(CLOCK_BOOTTIME);
}

uint64_t lkg_realtime_ns(void)
{
        return clock_ns(CLOCK_REALTIME);
}

uint64_t lkg_realtime_of(uint64_t boottime_ns)
{
        uint64_t now_ns = lkg_boottime_ns();

        return lkg_realtime_ns() - (now_ns - lkg_earlier(boottime_ns, now_ns));
}

void lkg_format_rfc3339(uint64_t ns, char buf[static 21])
{
        time_t seconds = (time_t)(ns / LKG_NSEC_PER_SEC);
        struct tm tm = { 0 };

        if (!gmtime_r(&seconds, &tm) || tm.tm_year > 8099 ||
            strftime(buf, 21, "%Y-%m-%dT%H:%M:%SZ", &tm) == 0)
                memcpy(buf, "9999-12-31T23:59:59Z", 21);
}

void lkg_format_rfc3339_ns(uint64_t ns, char buf[static 31])
{
        unsigned fraction = (unsigned)(ns % LKG_NSEC_PER_SEC);
        size_t n;

        lkg_format_rfc3339(ns, buf);
        n = strlen(buf) - 1; /* before the Z */
        if (fraction > 0) {
                n += (size_t)snprintf(buf + n, 31 - n, ".%09u", fraction);
                while (buf[n - 1] == '0')
                        n--;
        }
        memcpy(buf + n, "Z", 2);
}

/* Reads @digits decimal digits. Return: the text after them, NULL if there are fewer. */
static const char *take_digits(const char *text, unsigned digits, int *ret)
{
        int n = 0;

        for (unsigned i = 0; i < digits; i++) {
                if (!text || text[i] < '0' || text[i] > '9')
                        return NULL;
                n = 10 * n + (text[i] - '0');
        }
        *ret = n;
        return text + digits;
}

/* Offset from UTC in seconds. */
static const char *take_zone(const char *text, int *ret)
{
        int hours, minutes, sign;

        *ret = 0;
        if (text && (*text == 'Z' || *text == 'z'))
                return text + 1;
        if (!text || (*text != '+' && *text != '-'))
                return NULL;
        sign = *text == '-' ? -1 : 1;
        text = take_digits(text + 1, 2, &hours);
        text = text && *text == ':' ? take_digits(text + 1, 2, &minutes) : NULL;
        if (!text || hours > 23 || minutes > 59)
                return NULL;
        *ret = sign * (3600 * hours + 60 * minutes);
        return text;
}

/* An optional fraction. */
static const char *take_fraction(const char *text, uint64_t *ret)
{
        uint64_t unit = LKG_NSEC_PER_SEC / 10;

        *ret = 0;
        if (!text || *text != '.')
                return text;
        text++;
        if (*text < '0' || *text > '9')
                return NULL;
        for (; *text >= '0' && *text <= '9'; text++, unit /= 10)
                *ret += unit * (uint64_t)(*text - '0');
        return text;
}

int lkg_parse_rfc3339(const char *text, uint64_t *ret_ns)
{
        char date[20], back[20] = "";
        struct tm tm = { 0 };
        uint64_t fraction = 0;
        int zone = 0;
        time_t seconds;

        if (strnlen(text, sizeof(date)) < sizeof(date))
                return -EINVAL;
        *(char *)mempcpy(date, text, sizeof(date) - 1) = '\0';
        date[10] = date[10] == 't' ? 'T' : date[10];
        if (strcmp(date + 17, "60") == 0) /* a leap second counts as the second before it */
                memcpy(date + 17, "59", 2);
        /* strptime(3) takes "1" for "01" and 30 February for 2 March: what is read must be what was written. */
        if (!strptime(date, "%Y-%m-%dT%H:%M:%S", &tm))
                return -EINVAL;
        seconds = timegm(&tm);
        if (strftime(back, sizeof(back), "%Y-%m-%dT%H:%M:%S", &tm) == 0 || strcmp(date, back) != 0)
                return -EINVAL;
        text = take_zone(take_fraction(text + sizeof(date) - 1, &fraction), &zone);
        if (!text || *text)
                return -EINVAL;
        seconds -= zone;
        if (seconds < 0 || (uint64_t)seconds > UINT64_MAX / LKG_NSEC_PER_SEC - 1)
                return -EINVAL;
        *ret_ns = (uint64_t)seconds * LKG_NSEC_PER_SEC + fraction;
        return 0;
}

void lkg_boot_id(char ret[static LKG_BOOT_ID_MAX])
{
        LKG_CLEANUP(lkg_closep) int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
        ssize_t n = fd < 0 ? -1 : read(fd, ret, LKG_BOOT_ID_MAX - 1);

        ret[n > 0 ? n : 0] = '\0';
        ret[strcspn(ret, "\n")] = '\0';
}

/* ---- durations as Go writes them ---- */

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
