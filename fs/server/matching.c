/* SPDX-License-Identifier: Apache-2.0 */
/* What the rules of a component name: a unit or a control group, and a program (start.c asks). */
#include <fnmatch.h>
#include <sys/prctl.h>

#include <lkg/text.h>

#include "file-server.h"

#define CGROUP_MAX 8192 /* as long as the whole text */

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

static bool ends(const char *name, const char *suffix)
{
        size_t size = strlen(name), n = strlen(suffix);

        return size > n && strcmp(name + size - n, suffix) == 0;
}

static bool is_unit(const char *name)
{
        static const char *const suffixes[] = { ".service", ".scope", ".mount", ".socket", ".swap" };

        for (size_t i = 0; i < LKG_ARRAY_SIZE(suffixes); i++)
                if (ends(name, suffixes[i]))
                        return true;
        return false;
}

/* The next name of a path, which it changes; NULL: no more. */
static char *next_name(char **path)
{
        char *name;

        do
                name = strsep(path, "/");
        while (name && !*name);
        return name;
}

/* Nothing, or one name that belongs to the unit itself. */
static bool own_rest(char *path)
{
        const char *name = next_name(&path);

        return !name || (name[0] != '.' && !is_unit(name) && !ends(name, ".slice") && !next_name(&path));
}

/* A name that would clash with a file of the cgroup file system has a `_` in front. */
static bool path_in_unit(char *path, const char *unit)
{
        const char *name;

        while ((name = next_name(&path))) {
                name += name[0] == '_' && name[1];
                if (strcmp(name, unit) == 0)
                        return own_rest(path);
                if (is_unit(name))
                        return false;
        }
        return false;
}

/* The path of the next complete line of the unified hierarchy or of systemd's own. Return: false: no more lines. */
static bool next_path(const char **line, char ret[static CGROUP_MAX])
{
        for (const char *end; (end = strchr(*line, '\n'));) {
                const char *kind = memchr(*line, ':', (size_t)(end - *line));
                const char *path = kind ? memchr(kind + 1, ':', (size_t)(end - kind - 1)) : NULL;

                *line = end + 1;
                if (path &&
                    (lkg_span_is(lkg_span(kind + 1, (size_t)(path - kind - 1)), "") ||
                     lkg_span_is(lkg_span(kind + 1, (size_t)(path - kind - 1)), "name=systemd")) &&
                    snprintf(ret, CGROUP_MAX, "%.*s", (int)(end - path - 1), path + 1) < CGROUP_MAX)
                        return true;
        }
        return false;
}

bool lkg_unit_holds(const char *cgroups, const char *unit)
{
        char path[CGROUP_MAX];

        while (*unit && next_path(&cgroups, path))
                if (path_in_unit(path, unit))
                        return true;
        return false;
}

bool lkg_cgroup_matches(const char *cgroups, const char *pattern)
{
        char path[CGROUP_MAX];

        while (next_path(&cgroups, path))
                if (fnmatch(pattern, path, FNM_PATHNAME | FNM_PERIOD | FNM_NOESCAPE) == 0)
                        return true;
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
static struct program *find_program(const char *path)
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
        LKG_LOCKED(&lock);
        struct program *p = find_program(path);

        if (p && p->asked == 0) {
                p->asked = 1;
                (void)somebody_looks(p, lkg_monotonic_ns());
        }
}

struct lkg_program_file lkg_program_file(const char *path)
{
        struct lkg_program_file file = { 0, 0 };
        uint64_t now = lkg_monotonic_ns(), question;
        LKG_LOCKED(&lock);
        struct program *p = find_program(path);

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
        return file;
}
