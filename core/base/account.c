/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include <lkg/process.h>
#include <lkg/file.h>

#define NO_ID_16_BITS 65535u /* -1 in old system calls with 16-bit ids */

static void close_file(FILE **file)
{
        if (*file)
                (void)fclose(*file);
}

static bool is_number(const char *text)
{
        return *text && strspn(text, "0123456789") == strlen(text);
}

static int parse_id(const char *text, uint32_t *ret)
{
        unsigned long long id;
        char *end;

        errno = 0;
        id = strtoull(text, &end, 10);
        if (!is_number(text) || errno || *end || id >= UINT32_MAX || id == NO_ID_16_BITS)
                return -ENOENT;
        *ret = (uint32_t)id;
        return 0;
}

/* Parses `name:password:uid:gid:...`. Return: 0; -ENOENT: not a valid line, or not that of @name. */
static int parse_line(char *line, const char *name, struct lkg_account *ret)
{
        const char *fields[4] = { NULL };
        uint32_t uid, gid;

        for (size_t i = 0; i < LKG_ARRAY_SIZE(fields); i++) {
                fields[i] = strsep(&line, ":\n");
                if (!fields[i])
                        return -ENOENT;
        }
        if (strcmp(fields[0], name) != 0 || parse_id(fields[2], &uid) < 0 || parse_id(fields[3], &gid) < 0)
                return -ENOENT;
        *ret = (struct lkg_account){ .uid = uid, .gid = gid };
        return 0;
}

int lkg_account_find(const char *database, const char *name, struct lkg_account *ret)
{
        LKG_CLEANUP(close_file) FILE *file = NULL;
        LKG_CLEANUP(lkg_freep) char *line = NULL;
        size_t size = 0;
        uint32_t id;

        *ret = (struct lkg_account){ 0 };
        if (!*name || strcmp(name, "root") == 0)
                return 0;
        if (is_number(name)) {
                if (parse_id(name, &id) < 0)
                        return -ENOENT;
                *ret = (struct lkg_account){ .uid = id, .gid = id };
                return 0;
        }
        file = fopen(database, "re");
        if (!file)
                return -errno;
        while (getline(&line, &size, file) >= 0)
                if (parse_line(line, name, ret) == 0)
                        return 0;
        return -ENOENT;
}

int lkg_account_parse(char *text, struct lkg_account *ret)
{
        char *group = strchr(text, ':');
        struct lkg_account user, other;

        if (!group || strspn(text, "0123456789:") != strlen(text))
                return -EINVAL;
        *group++ = '\0';
        if (lkg_account_find(LKG_PASSWD_FILE, text, &user) < 0 ||
            lkg_account_find(LKG_PASSWD_FILE, group, &other) < 0)
                return -EINVAL;
        *ret = (struct lkg_account){ .uid = user.uid, .gid = other.gid };
        return 0;
}
