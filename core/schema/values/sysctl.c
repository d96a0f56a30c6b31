/* SPDX-License-Identifier: Apache-2.0 */
#include "values.h"

#include <lkg/base.h>

#define WANT_NAMESPACE "kernel.shm*, kernel.msg*, kernel.sem, net.*"

#define SEGMENT        "[a-z0-9]([-_a-z0-9]*[a-z0-9])?"
static const char name_pattern[] = "^(" SEGMENT "[./])*" SEGMENT "$";
static const char star_pattern[] = "^(" SEGMENT "[./])*(" SEGMENT "|([a-z0-9][-_a-z0-9]*)?[*])$";

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
        if (!lkg_text_matches(star ? star_pattern : name_pattern, lkg_span(text, size)))
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
        return size <= 253 && lkg_text_matches(name_pattern, lkg_span(text, size));
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
