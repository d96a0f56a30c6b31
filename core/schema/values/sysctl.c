/* SPDX-License-Identifier: Apache-2.0 */
#include "values.h"

#include <lkg/base.h>

#define WANT_NAMESPACE "kernel.shm*, kernel.msg*, kernel.sem, net.*"

static bool is_segment_byte(char c)
{
        return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
}

/* Part of a name. @star: it may end in, or be, a star. */
static bool is_segment(const char *part, size_t size, bool star)
{
        if (size == 0 || (star && size == 1 && *part == '*'))
                return size > 0;
        if (!is_segment_byte(part[0]))
                return false;
        for (size_t i = 1; i + 1 < size; i++)
                if (!is_segment_byte(part[i]) && part[i] != '-' && part[i] != '_')
                        return false;
        return is_segment_byte(part[size - 1]) || (star && part[size - 1] == '*');
}

static bool is_name(const char *name, bool star)
{
        for (const char *part = name; part;) {
                size_t n = strcspn(part, "./");

                if (!is_segment(part, n, star && part[n] == '\0'))
                        return false;
                part = part[n] ? part + n + 1 : NULL;
        }
        return true;
}

void lkg_sysctl_normalise(char *name)
{
        const char *first = strpbrk(name, "./");

        if (!first || *first == '.')
                return;
        for (char *c = name; *c; c++)
                *c = *c == '.' ? '/' : *c == '/' ? '.' : *c;
}

static bool has_namespace(const char *name, bool newer)
{
        static const struct {
                const char *name;
                bool prefix, newer;
        } known[] = {
                { "kernel.sem" },
                { "kernel.shmall" },
                { "kernel.shmmax" },
                { "kernel.shmmni" },
                { "kernel.shm_rmid_forced" },
                { "kernel.shm" },
                { "kernel.msgmax" },
                { "kernel.msgmnb" },
                { "kernel.msgmni" },
                { "kernel.msg" },
                { "net.", true },
                { "fs.mqueue.", true },
                { "user.", true, true },
                { "kernel.domainname", false, true },
        };

        for (size_t i = 0; i < LKG_ARRAY_SIZE(known); i++)
                if ((newer || !known[i].newer) &&
                    (known[i].prefix ? strncmp(name, known[i].name, strlen(known[i].name))
                                     : strcmp(name, known[i].name)) == 0)
                        return true;
        return false;
}

static int parse(const char *text, size_t size, bool star, bool newer, char *reason)
{
        char name[254];

        if (size == 0 || size >= sizeof(name) || memchr(text, '\0', size))
                return lkg_refuse(reason, "not the name of a sysctl; want 1 to 253 bytes");
        memcpy(name, text, size);
        name[size] = '\0';
        if (!is_name(name, star))
                return lkg_refuse(
                        reason,
                        star ? "not the name of a sysctl; want one such as net.core.somaxconn or net.ipv4.*"
                             : "not the name of a sysctl; want one such as net.core.somaxconn");
        lkg_sysctl_normalise(name);
        name[strcspn(name, "*")] = '\0';
        if (has_namespace(name, newer))
                return 0;
        return lkg_refuse(reason, newer ? "not a sysctl of a namespace; want " WANT_NAMESPACE
                                          ", fs.mqueue.*, kernel.domainname or user.*"
                                        : "not a sysctl of a namespace; want " WANT_NAMESPACE
                                          " or fs.mqueue.*");
}

bool lkg_sysctl_shape(const char *text, size_t size)
{
        return size > 0 && size <= 253 && !memchr(text, '\0', size) && is_name(text, false);
}

int lkg_sysctl_name(const char *text, size_t size, char *reason)
{
        return parse(text, size, false, true, reason);
}

int lkg_sysctl_pattern(const char *text, size_t size, char *reason)
{
        return parse(text, size, true, true, reason);
}

int lkg_sysctl_pattern_136(const char *text, size_t size, char *reason)
{
        return parse(text, size, true, false, reason);
}
