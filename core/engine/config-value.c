/* SPDX-License-Identifier: Apache-2.0 */
/* Words of the configuration -> numbers: durations as Go writes them, sizes, modes, owners. No state. */
#include <grp.h>
#include <limits.h>
#include <pwd.h>

#include "config-fields.h"

bool lkg_bare_name_ok(const char *name)
{
        return *name && strlen(name) <= NAME_MAX && !strchr(name, '/') && strcmp(name, ".") != 0 &&
               strcmp(name, "..") != 0;
}

static int parse_duration_unit(const char **p, uint64_t *ret)
{
        static const struct {
                const char *name;
                uint64_t ns;
        } units[] = {
                { "ns", 1 },
                { "us", 1000 },
                { "\xc2\xb5s", 1000 },
                { "\xce\xbcs", 1000 },
                { "ms", LKG_NSEC_PER_MSEC },
                { "s", LKG_NSEC_PER_SEC },
                { "m", 60 * LKG_NSEC_PER_SEC },
                { "h", 3600 * LKG_NSEC_PER_SEC },
        };
        size_t n = strcspn(*p, ".0123456789");

        for (size_t i = 0; i < LKG_ARRAY_SIZE(units); i++) {
                if (n != strlen(units[i].name) || strncmp(*p, units[i].name, n) != 0)
                        continue;
                *ret = units[i].ns;
                *p += n;
                return 0;
        }
        return -EINVAL;
}

/* One `12.5h`: whole part, fraction, unit. */
static int parse_duration_part(const char **p, uint64_t *ret)
{
        uint64_t whole = 0, fraction = 0, scale = 1, unit;
        bool digits = false;

        for (; **p >= '0' && **p <= '9'; (*p)++, digits = true)
                if (__builtin_mul_overflow(whole, (uint64_t)10, &whole) ||
                    __builtin_add_overflow(whole, (uint64_t)(**p - '0'), &whole))
                        return -EINVAL;
        if (**p == '.')
                for ((*p)++; **p >= '0' && **p <= '9'; (*p)++, digits = true)
                        if (scale < UINT64_C(1000000)) { /* finer than any unit could show */
                                fraction = 10 * fraction + (uint64_t)(**p - '0');
                                scale *= 10;
                        }
        if (!digits || parse_duration_unit(p, &unit) < 0 || __builtin_mul_overflow(whole, unit, &whole) ||
            __builtin_add_overflow(whole, fraction * (unit / scale) + fraction * (unit % scale) / scale,
                                   ret))
                return -EINVAL;
        return 0;
}

int lkg_parse_duration(const char *text, uint64_t *ret_ns)
{
        uint64_t total = 0;

        if (strcmp(text, "0") == 0) {
                *ret_ns = 0;
                return 0;
        }
        if (!*text)
                return -EINVAL;
        while (*text) {
                uint64_t part;

                if (parse_duration_part(&text, &part) < 0 || __builtin_add_overflow(total, part, &total) ||
                    total > INT64_MAX)
                        return -EINVAL;
        }
        *ret_ns = total;
        return 0;
}

int lkg_config_parse_number(const char *text, uint64_t *ret)
{
        char *end;

        if (*text < '0' || *text > '9')
                return -EINVAL;
        errno = 0;
        *ret = strtoull(text, &end, 10);
        return errno || *end ? -EINVAL : 0;
}

int lkg_config_parse_bytes(const char *text, uint64_t *ret)
{
        static const struct {
                const char *suffix;
                uint64_t factor;
        } suffixes[] = {
                { "", 1 },          { "k", 1000 },      { "M", 1000000 },   { "G", 1000000000 },
                { "Ki", 1u << 10 }, { "Mi", 1u << 20 }, { "Gi", 1u << 30 },
        };
        char *end;

        if (*text < '0' || *text > '9')
                return -EINVAL;
        errno = 0;
        *ret = strtoull(text, &end, 10);
        for (size_t i = 0; !errno && i < LKG_ARRAY_SIZE(suffixes); i++)
                if (strcmp(end, suffixes[i].suffix) == 0)
                        return __builtin_mul_overflow(*ret, suffixes[i].factor, ret) ? -EINVAL : 0;
        return -EINVAL;
}

int lkg_config_parse_release(const char *text, uint64_t *ret)
{
        uint64_t minor;

        *ret = 0;
        if (strcmp(text, "auto") == 0)
                return 0;
        if (strncmp(text, "1.", 2) != 0 || lkg_config_parse_number(text + 2, &minor) < 0 || minor > 99)
                return -EINVAL;
        *ret = 100 + minor;
        return 0;
}

int lkg_config_parse_mode(const char *text, uint32_t *ret)
{
        if (!*text || strlen(text) > 5 || strspn(text, "01234567") != strlen(text))
                return -EINVAL;
        *ret = (uint32_t)strtoul(text, NULL, 8);
        return *ret > 0777 ? -EINVAL : 0;
}

int lkg_config_parse_owner(const char *text, bool group, uint32_t *ret)
{
        uint64_t id;

        if (lkg_config_parse_number(text, &id) == 0) {
                *ret = (uint32_t)id;
                return id < UINT32_MAX ? 0 : -EINVAL;
        }
        if (strcmp(text, "root") == 0) { /* needs no database */
                *ret = 0;
                return 0;
        }
        if (group) {
                const struct group *gr = getgrnam(text);

                *ret = gr ? gr->gr_gid : 0;
                return gr ? 0 : -ENOENT;
        }
        const struct passwd *pw = getpwnam(text);

        *ret = pw ? pw->pw_uid : 0;
        return pw ? 0 : -ENOENT;
}
