/* SPDX-License-Identifier: Apache-2.0 */
/* Converts values of the configuration to numbers: sizes, modes, owners. No state. */
#include <grp.h>
#include <limits.h>
#include <pwd.h>

#include "config-fields.h"

int lkg_config_parse_number(const char *text, uint64_t *ret)
{
        const char *rest = lkg_digits(text, ret);

        return rest && !*rest ? 0 : -EINVAL;
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
        const char *rest = lkg_digits(text, ret);

        for (size_t i = 0; rest && i < LKG_ARRAY_SIZE(suffixes); i++)
                if (strcmp(rest, suffixes[i].suffix) == 0)
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
