/* SPDX-License-Identifier: Apache-2.0 */
/* What the rules of a component name: a unit or a control group, and a program (start.c asks). */
#include <fnmatch.h>
#include <limits.h>
#include <sys/prctl.h>

#include "file-server.h"

/* ---- units and control groups ---- */

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

bool lkg_unit_holds(const char *cgroups, const char *unit)
{
        const char *path, *end;

        while (*unit && next_path(&cgroups, &path, &end))
                if (path_in_unit(path, end, unit))
                        return true;
        return false;
}

bool lkg_cgroup_matches(const char *cgroups, const char *pattern)
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

/* ---- programs ---- */

/*
 * Which file has the path of a `match exe` rule? The path may be on a file system that does not answer, or
 * lead into the view itself, so workers never look it up: a thread does, at most one per path and only on
 * demand. The caller waits briefly; after that the last result is used, initially none.
 */

#define PROGRAMS 64u /* paths of all rules; further ones match no process */
#define LOOK_NS  (50 * LKG_NSEC_PER_MSEC)
/* Until a path was looked at, the component is not known: its start would not count because this machine is busy. */
#define FIRST_LOOK_NS (1 * LKG_NSEC_PER_SEC)

static struct program {
        char *path; /* never freed: a thread may be using it */
        struct lkg_program_file file;
        uint64_t asked, answered; /* looks */
        uint64_t busy_ns;         /* CLOCK_MONOTONIC: start of the current look; 0 = no thread */
} programs[PROGRAMS];
static size_t n_programs;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* protects: all of them. A leaf. */
static pthread_cond_t answered = PTHREAD_COND_INITIALIZER;

/* Runs as long as there is a question that is newer than the start of the last look. */
static void *look(void *userdata)
{
        struct program *p = userdata;
        struct stat st;

        (void)prctl(PR_SET_NAME, "program");

        (void)pthread_mutex_lock(&lock);
        while (p->answered < p->asked) {
                uint64_t question = p->asked;
                bool found;

                p->busy_ns = lkg_monotonic_ns();
                (void)pthread_mutex_unlock(&lock);
                found = stat(p->path, &st) == 0;
                (void)pthread_mutex_lock(&lock);
                p->file = found ? (struct lkg_program_file){ st.st_dev, st.st_ino }
                                : (struct lkg_program_file){ 0, 0 };
                p->answered = question;
                (void)pthread_cond_broadcast(&answered);
        }
        p->busy_ns = 0;
        (void)pthread_mutex_unlock(&lock);
        return NULL;
}

/* Lock held. Return: NULL: out of memory, or too many. */
static struct program *find(const char *path)
{
        for (size_t i = 0; i < n_programs; i++)
                if (strcmp(programs[i].path, path) == 0)
                        return &programs[i];
        if (n_programs == PROGRAMS || !(programs[n_programs].path = strdup(path)))
                return NULL;
        return &programs[n_programs++];
}

/* Lock held. Return: false: no thread looks. */
static bool somebody_looks(struct program *p, uint64_t now_ns)
{
        if (p->busy_ns != 0)
                return true;
        if (lkg_thread_start(look, p) < 0)
                return false;
        p->busy_ns = now_ns;
        return true;
}

void lkg_program_file_expect(const char *path)
{
        struct program *p;

        (void)pthread_mutex_lock(&lock);
        p = find(path);
        if (p && p->asked == 0) {
                p->asked = 1;
                (void)somebody_looks(p, lkg_monotonic_ns());
        }
        (void)pthread_mutex_unlock(&lock);
}

struct lkg_program_file lkg_program_file(const char *path)
{
        struct lkg_program_file file = { 0, 0 };
        uint64_t now = lkg_monotonic_ns(), question;
        struct program *p;

        (void)pthread_mutex_lock(&lock);
        p = find(path);
        if (p) {
                question = ++p->asked;
                if (somebody_looks(p, now)) {
                        uint64_t end = p->busy_ns + (p->answered ? LOOK_NS : FIRST_LOOK_NS);

                        /* wait only once for a look that hangs */
                        while (p->answered < question && lkg_cond_wait(&answered, &lock, end))
                                ;
                }
                file = p->file;
        }
        (void)pthread_mutex_unlock(&lock);
        return file;
}
