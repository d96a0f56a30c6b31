/* SPDX-License-Identifier: Apache-2.0 */
#include "values.h"

#define PATH_MAX_SIZE 255

static bool is_lower(char c)
{
        return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
}

static bool is_alphanumeric(char c)
{
        return is_lower(c) || (c >= 'A' && c <= 'Z');
}

/*
 * Return the size of the separator at @p: one point, one or two underscores, any number of hyphens; 0: none.
 */
static size_t separator(const char *p, const char *end)
{
        size_t n = 0;

        if (*p == '.')
                return 1;
        if (*p == '_')
                return p + 1 < end && p[1] == '_' ? 2 : 1;
        while (p + n < end && p[n] == '-')
                n++;
        return n;
}

static bool path_component(struct lkg_span s)
{
        const char *p = s.data, *end = s.data + s.size;

        while (p < end && is_lower(*p)) {
                size_t n;

                while (p < end && is_lower(*p))
                        p++;
                if (p == end)
                        return true;
                n = separator(p, end);
                if (n == 0)
                        return false;
                p += n;
        }
        return false;
}

static bool domain_label(struct lkg_span s)
{
        if (s.size == 0 || s.data[0] == '-' || s.data[s.size - 1] == '-')
                return false;
        for (size_t i = 0; i < s.size; i++) {
                if (!is_alphanumeric(s.data[i]) && s.data[i] != '-')
                        return false;
        }
        return true;
}

/* `[hex digits and colons]`. The grammar does not check whether it is an address. */
static bool bracketed(struct lkg_span s)
{
        if (s.size < 3 || s.data[0] != '[' || s.data[s.size - 1] != ']')
                return false;
        for (size_t i = 1; i < s.size - 1; i++) {
                char c = s.data[i];

                if (!(c >= '0' && c <= ':') && !(c >= 'a' && c <= 'f') && !(c >= 'A' && c <= 'F'))
                        return false;
        }
        return true;
}

/* A registry with an optional port. */
static bool registry(struct lkg_span s)
{
        const char *colon = s.size > 0 ? memrchr(s.data, ':', s.size) : NULL;
        struct lkg_span label, rest;

        if (bracketed(s))
                return true;
        if (colon) {
                const char *end = s.data + s.size;

                if (colon + 1 == end)
                        return false;
                for (const char *p = colon + 1; p < end; p++) {
                        if (*p < '0' || *p > '9')
                                return false;
                }
                s.size = (size_t)(colon - s.data);
                if (bracketed(s))
                        return true;
        }
        rest = s;
        while (lkg_span_next(&rest, '.', &label)) {
                if (!domain_label(label))
                        return false;
        }
        return true;
}

static bool path(struct lkg_span s)
{
        struct lkg_span component;

        while (lkg_span_next(&s, '/', &component)) {
                if (!path_component(component))
                        return false;
        }
        return true;
}

/* A name with or without registry, without tag and digest. */
static int image_name(const char *text, size_t size, char *reason)
{
        struct lkg_span all = { text, size }, first, rest;

        if (size == 0)
                return lkg_refuse(reason,
                                  "empty; want an image name, such as registry.example.com/team/app");
        /* If the first part can be a registry, it is one, even if it could be part of the path. */
        if (!lkg_span_cut(all, '/', &first, &rest) || !registry(first))
                rest = all;
        if (!path(rest))
                return lkg_refuse(reason,
                                  "not an image name without tag and digest; want lower case, such as "
                                  "registry.example.com/team/app");
        if (rest.size > PATH_MAX_SIZE)
                return lkg_refuse(reason, "an image name longer than %d bytes", PATH_MAX_SIZE);
        return 0;
}

static int pattern(const char *text, size_t size, int (*name)(const char *, size_t, char *), char *reason)
{
        struct lkg_span all = { text, size };
        bool wildcard = size >= 2 && memcmp(text + size - 2, "/*", 2) == 0;

        if (lkg_span_trim(all).size != size)
                return lkg_refuse(reason, "white space at one end");
        if (size == 0)
                return lkg_refuse(reason,
                                  "empty; want an image name or a prefix such as registry.example.com/*");
        if (memchr(text, '*', size - wildcard))
                return lkg_refuse(reason, "a * in the middle; it may only be the end, behind a /");
        if (!wildcard)
                return name(text, size, reason);
        return size == 2 ? lkg_refuse(reason, "no registry; want at least registry.example.com/*") : 0;
}

int lkg_image_pattern(const char *text, size_t size, char *reason)
{
        return pattern(text, size, image_name, reason);
}

/* Is the first part of a name its registry, and not part of the path on docker.io? */
static bool is_registry(struct lkg_span first)
{
        for (size_t i = 0; i < first.size; i++)
                if (first.data[i] == '.' || first.data[i] == ':' ||
                    (first.data[i] >= 'A' && first.data[i] <= 'Z'))
                        return true;
        return lkg_span_is(first, "localhost");
}

/* A name that normalisation leaves unchanged (splitDockerDomain, ParseNormalizedNamed). */
static int full_name(const char *text, size_t size, char *reason)
{
        struct lkg_span all = { text, size }, first, rest;
        int r = image_name(text, size, reason);

        if (r < 0)
                return r;
        if (!lkg_span_cut(all, '/', &first, &rest) || !is_registry(first) ||
            lkg_span_is(first, "index.docker.io") ||
            (lkg_span_is(first, "docker.io") && !memchr(rest.data, '/', rest.size)))
                return lkg_refuse(reason,
                                  "not a full name, as this release wants it; want the registry, such as "
                                  "registry.example.com/team/app or docker.io/library/app");
        return 0;
}

int lkg_image_pattern_full(const char *text, size_t size, char *reason)
{
        return pattern(text, size, full_name, reason);
}
