/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Is a process in the control group of a systemd unit, or in one with a given path? Decided from the text of
 * /proc/<tid>/cgroup alone, so that it can be tested without one. Sources: cgroups(7), systemd's
 * cg_path_get_unit() and cg_escape().
 *
 * Lines are `hierarchy:controllers:path`. systemd keeps its units in the unified hierarchy (`0::`) and, on
 * cgroup v1, in the one named `name=systemd`; others may belong to any program. In a path, slices come first
 * and the first name with the suffix of another unit type is *the* unit: the unit of a user's own manager,
 * or of a manager in a container, is below `user@1000.service` or a scope and does not count, whatever its
 * name. Other names before the unit, and `..` if the process is outside our cgroup namespace, lead to the
 * start of systemd's own tree.
 *
 * Below the unit one name without a unit's suffix belongs to it (DelegateSubgroup=, or `init` as k3s makes
 * it, because a delegated cgroup v2 may hold no processes itself); `.control` has the processes that systemd
 * runs beside the main process. Everything deeper, and every slice, scope or service, is something that the
 * unit runs: containers, not the component.
 */
#include <fnmatch.h>
#include <limits.h>

#include "file-server.h"

struct name {
        const char *text;
        size_t size;
};

/* The next name of the path that ends at @end; empty = no more. */
static struct name next_name(const char **at, const char *end)
{
        struct name name;

        while (*at < end && **at == '/')
                (*at)++;
        name.text = *at;
        while (*at < end && **at != '/')
                (*at)++;
        name.size = (size_t)(*at - name.text);
        return name;
}

static bool is(struct name name, const char *text)
{
        return name.size == strlen(text) && memcmp(name.text, text, name.size) == 0;
}

static bool ends(struct name name, const char *suffix)
{
        size_t size = strlen(suffix);

        return name.size > size && memcmp(name.text + name.size - size, suffix, size) == 0;
}

/* A name that would clash with a file of the cgroup file system has a `_` in front. */
static struct name unescape(struct name name)
{
        return name.size > 1 && name.text[0] == '_' ? (struct name){ name.text + 1, name.size - 1 } : name;
}

static bool is_unit(struct name name)
{
        static const char *const suffixes[] = { ".service", ".scope", ".mount", ".socket", ".swap" };

        for (size_t i = 0; i < LKG_ARRAY_SIZE(suffixes); i++)
                if (ends(name, suffixes[i]))
                        return true;
        return false;
}

/* Nothing, or one name that belongs to the unit itself. */
static bool own_rest(const char *at, const char *end)
{
        struct name name = next_name(&at, end);

        if (name.size == 0)
                return true;
        return name.text[0] != '.' && !is_unit(name) && !ends(name, ".slice") &&
               next_name(&at, end).size == 0;
}

static bool path_in_unit(const char *path, const char *end, const char *unit)
{
        for (;;) {
                struct name name = unescape(next_name(&path, end));

                if (name.size == 0)
                        return false;
                if (is(name, unit))
                        return own_rest(path, end);
                if (is_unit(name))
                        return false;
        }
}

/* The path of the next line of the unified hierarchy or of systemd's own. false = no more lines. */
static bool next_path(const char **line, const char **ret_path, const char **ret_end)
{
        static const char *const kinds[] = { "", "name=systemd" };

        for (const char *end; (end = strchr(*line, '\n'));) {
                const char *first = memchr(*line, ':', (size_t)(end - *line));
                const char *second = first ? memchr(first + 1, ':', (size_t)(end - first - 1)) : NULL;
                struct name kind = { first ? first + 1 : "", second ? (size_t)(second - first - 1) : 0 };

                *line = end + 1;
                for (size_t i = 0; second && i < LKG_ARRAY_SIZE(kinds); i++)
                        if (is(kind, kinds[i])) {
                                *ret_path = second + 1;
                                *ret_end = end;
                                return true;
                        }
        }
        return false;
}

bool unit_holds(const char *cgroups, const char *unit)
{
        const char *path, *end;

        while (*unit && next_path(&cgroups, &path, &end))
                if (path_in_unit(path, end, unit))
                        return true;
        return false;
}

bool cgroup_matches(const char *cgroups, const char *pattern)
{
        const char *path, *end;
        char copy[PATH_MAX];

        while (next_path(&cgroups, &path, &end)) {
                if (snprintf(copy, sizeof(copy), "%.*s", (int)(end - path), path) >= (int)sizeof(copy))
                        continue;
                if (fnmatch(pattern, copy, FNM_PATHNAME | FNM_PERIOD | FNM_NOESCAPE) == 0)
                        return true;
        }
        return false;
}
