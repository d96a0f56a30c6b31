/* SPDX-License-Identifier: Apache-2.0 */
/* Clocks, and times as text. */
#include <fcntl.h>
#include <time.h>

#include <lkg/base.h>

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
