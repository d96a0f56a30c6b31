/* SPDX-License-Identifier: Apache-2.0 */
#include "values.h"

#define PATH_MAX_SIZE 255
#define NAME_MAX_SIZE 4096 /* of a registry and a path; no registry is as long */

/* The grammar of a path, and of a registry with an optional port; brackets are not checked to have an address. */
static const char path_pattern[] =
        "^[a-z0-9]+(([.]|_|__|-+)[a-z0-9]+)*(/[a-z0-9]+(([.]|_|__|-+)[a-z0-9]+)*)*$";
#define LABEL "([a-zA-Z0-9]|[a-zA-Z0-9][-a-zA-Z0-9]*[a-zA-Z0-9])"
static const char registry_pattern[] = "^(" LABEL "([.]" LABEL ")*|\\[[a-fA-F0-9:]+\\])(:[0-9]+)?$";

/* A name with or without registry, without tag and digest. */
static int image_name(const char *text, size_t size, char *reason)
{
        struct lkg_span all = { text, size }, first, rest;

        if (size == 0)
                return lkg_refuse(reason,
                                  "empty; want an image name, such as registry.example.com/team/app");
        /* If the first part can be a registry, it is one, even if it could be part of the path. */
        if (!lkg_span_cut(all, '/', &first, &rest) || first.size > NAME_MAX_SIZE ||
            !lkg_text_matches(registry_pattern, first))
                rest = all;
        if (rest.size > NAME_MAX_SIZE || !lkg_text_matches(path_pattern, rest))
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
