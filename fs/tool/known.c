/* SPDX-License-Identifier: Apache-2.0 */
#include "known.h"

#include <limits.h>
#include <time.h>

#define AGAIN_NS  (300 * LKG_NSEC_PER_MSEC)
#define ENGINE    "lkgfs-engine"
#define ENDS_MANY 3u  /* more ends within a minute are no accident */
#define SHOWN_MAX 48u /* bytes of a value in a sentence */

/* ---- processes of lkgfs ---- */

/* The effect of a missing process. Not for the file server: without it there is no answer at all. */
static const struct loss {
        const char *name, *loss, *advice;
} losses[] = {
        { "lkgfsd", "nothing that ends is started again, and no component is restarted",
          "`systemctl start lkgfs`, or start it as it was started: it takes the view over; journalctl -u "
          "lkgfs "
          "says why it ended" },
        { "lkgfs-notify", "nobody who watches a file of the view hears of a change",
          "lkgfsd restarts it; journalctl -u lkgfs shows why it ends" },
};

const char *lkg_process_loss(const char *name, const char **ret_advice)
{
        for (size_t i = 0; i < LKG_ARRAY_SIZE(losses); i++)
                if (strcmp(losses[i].name, name) == 0) {
                        *ret_advice = losses[i].advice;
                        return losses[i].loss;
                }
        *ret_advice = "journalctl -u lkgfs";
        return "it is needed";
}

static void take_ends(struct lkg_processes *processes, const char *name, const char *reason, unsigned n)
{
        for (size_t i = 0; i < processes->n; i++) { /* it has been named before */
                struct lkg_process_told *p = &processes->items[i];

                if (strcmp(p->name, name) != 0)
                        continue;
                p->n_ends = n;
                (void)snprintf(p->reason, sizeof(p->reason), "%s", reason);
        }
}

void lkg_processes_parse(const char *metrics, struct lkg_processes *ret)
{
        const char *line;
        size_t size;

        *ret = (struct lkg_processes){ .n = 0 };
        while (lkg_tool_next_line(&metrics, &line, &size)) {
                struct lkg_process_told told = { 0 };
                unsigned n;

                if (sscanf(line, "lkgfs_engine_up{%*[^}\n]} %u", &n) == 1)
                        ret->engine_silent = n == 0;
                else if (sscanf(line, "lkgfs_engine_user_missing{%*[^}\n]} %u", &n) == 1)
                        ret->no_user = n > 0;
                else if (sscanf(line,
                                "lkgfs_process_restarts_recent{%*[^,\n],process=\"%31[^\"\n]\",reason=\"%63["
                                "^\"\n]\"} %u",
                                told.name, told.reason, &n) == 3)
                        take_ends(ret, told.name, told.reason, n);
                else if (sscanf(line, "lkgfs_process_up{%*[^,\n],process=\"%31[^\"\n]\"} %u", told.name,
                                &n) == 2 &&
                         ret->n < LKG_PROCESSES_MAX) {
                        told.up = n > 0;
                        ret->items[ret->n++] = told;
                }
        }
}

const char *lkg_process_ends(const struct lkg_process_told *process)
{
        return process->n_ends <= ENDS_MANY
                       ? NULL
                       : lkg_tool_format("%s ended %u times within a minute, the last time: %s",
                                         process->name, process->n_ends, lkg_tool_clean(process->reason));
}

bool lkg_process_missing(const struct lkg_process_told *process)
{
        return !process->up && strcmp(process->name, ENGINE) != 0;
}

const char *lkg_processes_missing(const struct lkg_processes *processes)
{
        const char *names = NULL;

        for (size_t i = 0; i < processes->n; i++)
                if (lkg_process_missing(&processes->items[i]))
                        names = lkg_tool_format("%s%s%s", names ? names : "", names ? ", " : "",
                                                processes->items[i].name);
        return names;
}

const char *lkg_processes_trouble(const struct lkg_processes *processes)
{
        const char *names = lkg_processes_missing(processes);

        return names ? lkg_tool_format("%s do%s not run", names, strchr(names, ',') ? "" : "es") : NULL;
}

void lkg_processes_read(const struct lkg_view *view, struct lkg_processes *ret)
{
        const struct timespec pause = { .tv_nsec = AGAIN_NS };

        for (int i = 0; i < 2; i++) {
                lkg_processes_parse(lkg_view_text(view, "metrics.prom"), ret);
                if (!lkg_processes_missing(ret))
                        return;
                if (i == 0)
                        (void)nanosleep(&pause, NULL);
        }
}

const char *lkg_tool_program(const char *pid)
{
        LKG_CLEANUP(lkg_closep)
        int fd = open(lkg_tool_format("/proc/%.20s/comm", pid), O_RDONLY | O_CLOEXEC);
        char name[LKG_PROC_NAMES + 2];
        ssize_t n = fd < 0 ? 0 : read(fd, name, LKG_PROC_NAMES + 1);

        name[n < 0 ? 0 : n] = '\0';
        return lkg_tool_cut(name, strcspn(name, "\n"));
}

/* ---- reading ---- */

/* Lines `pointer, value of the process, served value` with tabs between them; `-` is a missing field, and no JSON. */
static struct lkg_value *read_drift(const char *text)
{
        static const char *const keys[] = { "field", "running", "served" };
        struct lkg_value *list = lkg_tool_rows(text, keys, LKG_ARRAY_SIZE(keys), LKG_ARRAY_SIZE(keys));

        for (size_t i = 0; i < lkg_value_size(list); i++)
                for (size_t k = 1; k < LKG_ARRAY_SIZE(keys); k++)
                        if (strcmp(lkg_tool_word(lkg_list_get(list, i), keys[k]), "-") == 0)
                                (void)lkg_map_remove(lkg_list_get(list, i), keys[k], strlen(keys[k]));
        return list;
}

struct lkg_value *lkg_known_pods(const char *text)
{
        static const char *const keys[] = { "file", "sha256", "state", "since", "why" };

        return lkg_tool_rows(text, keys, LKG_ARRAY_SIZE(keys), LKG_ARRAY_SIZE(keys) - 1);
}

/* ---- findings: those of status/<component>/findings.json ---- */

static unsigned number_of(const struct lkg_value *item, const char *key)
{
        uint64_t n = lkg_record_number(item, key, 0);

        return n > UINT_MAX ? 0 : (unsigned)n;
}

static void take_finding(const struct lkg_value *item, struct lkg_report *ret)
{
        const struct lkg_where where = { lkg_map_get_string(item, "file"), number_of(item, "line"),
                                         number_of(item, "column") };
        const char *name = lkg_tool_word(item, "severity"), *text = lkg_map_get_string(item, "text");
        enum lkg_severity severity = lkg_tool_severity(name);
        unsigned code = 0;

        (void)sscanf(lkg_tool_word(item, "code"), "LKG%4u", &code);
        if (text && strcmp(name, lkg_severity_name(severity)) == 0)
                lkg_report_add(ret, severity, code, &where, "%s", text);
}

/* Return: 0; -errno, -EACCES for who is not root. */
static int read_findings(const struct lkg_view *view, struct lkg_report *ret)
{
        const char *path = lkg_tool_format("status/%s/findings.json", view->component);
        const struct lkg_value *item, *map = lkg_view_read_json(view, "%s", path);

        if (!map)
                return faccessat(view->fd, path, R_OK, AT_EACCESS) < 0 ? -errno : 0;
        for (size_t i = 0; (item = lkg_tool_item(map, "findings", i)); i++)
                take_finding(item, ret);
        ret->n_dropped += lkg_record_number(map, "notListed", 0);
        return 0;
}

/* A mark with the id of the assigned configuration, or with its uid, which covers all versions. */
static bool marks(const char *name, const char *assigned)
{
        size_t id = strcspn(assigned, " "), uid = strcspn(assigned, "@"), n = strlen(name);

        return (n == id || n == uid) && strncmp(name, assigned, n) == 0;
}

struct lkg_known *lkg_known_read(const struct lkg_view *view)
{
        static const char *const files[] = { "condition", "sha256",     "error",  "last-error",
                                             "assigned",  "generation", "active", "last-known-good" };
        struct lkg_known *ret = lkg_tool_keep(malloc(sizeof(*ret)));
        char *drift, *generation;
        struct stat st;

        *ret = (struct lkg_known){ .texts = lkg_tool_map(),
                                   .condition = lkg_view_read_json(view, "status/%s/condition.json",
                                                                   view->component),
                                   .hold = lkg_tool_pairs(lkg_view_text(view, "hold")),
                                   .trial = lkg_tool_pairs(lkg_view_text(view, "trial")),
                                   .process = lkg_tool_pairs(lkg_view_text(view, "process")) };
        for (size_t i = 0; i < LKG_ARRAY_SIZE(files); i++)
                lkg_tool_map_string(ret->texts, files[i], lkg_view_status(view, files[i]));
        if (lkg_view_read(view, &generation, &st, "status/%s/generation", view->component) == 0)
                lkg_format_rfc3339((uint64_t)st.st_mtim.tv_sec * LKG_NSEC_PER_SEC, ret->served_since);
        ret->findings_hidden = read_findings(view, &ret->findings) == -EACCES;
        ret->drift_error = lkg_view_read(view, &drift, NULL, "status/%s/drift", view->component);
        ret->drift = read_drift(ret->drift_error < 0 ? "" : drift);
        ret->pods = lkg_known_pods(lkg_view_text(view, "pods"));
        ret->has_marks = lkg_view_bad_names(view, &ret->marks) == 0;
        for (size_t i = 0; i < ret->marks.n_items; i++)
                if (lkg_known_remote(lkg_known_text(ret, "assigned")) &&
                    marks(ret->marks.items[i], lkg_known_text(ret, "assigned")))
                        ret->assigned_mark = ret->marks.items[i];
        lkg_processes_read(view, &ret->processes);
        return ret;
}

const char *lkg_known_text(const struct lkg_known *known, const char *file)
{
        return lkg_tool_word(known->texts, file);
}

/* ---- the running component ---- */

unsigned long lkg_known_unseen(const struct lkg_known *known)
{
        return strtoull(lkg_tool_word(known->process, "generation"), NULL, 10)
                       ? 0
                       : strtoul(lkg_tool_word(known->process, "pid"), NULL, 10);
}

static const char *shortened(const char *text)
{
        char *cut = text && strlen(text) > SHOWN_MAX ? lkg_tool_cut(text, SHOWN_MAX) : NULL;

        if (!cut)
                return text ? lkg_tool_clean(text) : "nothing";
        lkg_utf8_mend(cut);
        return lkg_tool_format("%s...", lkg_tool_clean(cut));
}

const char *lkg_known_drift(const struct lkg_known *known, size_t i)
{
        const struct lkg_value *item = lkg_list_get(known->drift, i);

        return lkg_tool_format("%s runs with %s, served is %s", lkg_tool_clean(lkg_tool_word(item, "field")),
                               shortened(lkg_map_get_string(item, "running")),
                               shortened(lkg_map_get_string(item, "served")));
}

/* ---- dynamic configuration ---- */

bool lkg_known_remote(const char *text)
{
        return strchr(text, '@') && strncmp(text, "local@", 6) != 0;
}

bool lkg_known_on_trial(const struct lkg_known *known)
{
        return strcmp(lkg_tool_word(known->trial, "state"), "running") == 0;
}

bool lkg_known_dynamic(const struct lkg_known *known)
{
        return lkg_known_remote(lkg_known_text(known, "assigned")) ||
               lkg_known_remote(lkg_known_text(known, "active")) ||
               lkg_known_remote(lkg_known_text(known, "last-known-good")) || lkg_known_on_trial(known) ||
               known->marks.n_items > 0;
}

const char *lkg_known_trial_next(const struct lkg_known *known, const char *component)
{
        if (known->assigned_mark)
                return lkg_tool_format(
                        "assign a corrected ConfigMap, or let this one be tried again: `lkgfs forget "
                        "%s --component %s`",
                        lkg_tool_clean(known->assigned_mark), component);
        return lkg_known_on_trial(known)
                       ? lkg_tool_format("wait for the end of the trial, or end it now: `lkgfs promote "
                                         "--component %s`",
                                         component)
                       : NULL;
}

/* ---- holds ---- */

const char *lkg_known_mode(const struct lkg_known *known)
{
        const char *mode = lkg_tool_word(known->hold, "mode");

        return *mode && strcmp(mode, "free") != 0 ? mode : NULL;
}

const char *lkg_known_try(const struct lkg_known *known)
{
        const char *try = lkg_tool_word(known->hold, "try");

        return strcmp(try, "running") == 0 || strcmp(try, "armed") == 0 ?
        try:
                "none";
}

bool lkg_known_newer_waits(const struct lkg_known *known)
{
        return strcmp(lkg_tool_word(known->hold, "newer"), "waits") == 0;
}

static bool try_expired(const struct lkg_known *known)
{
        return strcmp(lkg_tool_word(known->hold, "mode"), "try-expired") == 0;
}

const char *lkg_known_who(const struct lkg_known *known)
{
        const char *since = lkg_tool_word(known->hold, "since"), *uid = lkg_tool_word(known->hold, "uid"),
                   *pid = lkg_tool_word(known->hold, "pid"),
                   *program = lkg_tool_word(known->hold, "program");
        const char *when = *since ? lkg_tool_format(" since %s", lkg_tool_clean(since)) : "";

        return !*uid ? when
                     : lkg_tool_format("%s%sby uid %s (pid %s, %s)", when,
                                       try_expired(known) ? ", after a try " : " ", lkg_tool_clean(uid),
                                       lkg_tool_clean(*pid ? pid : "?"),
                                       lkg_tool_clean(*program ? program : "unknown program"));
}

const char *lkg_known_hold_next(const struct lkg_known *known, const char *component)
{
        if (lkg_known_mode(known))
                return lkg_tool_format(
                        "`lkgfs hold off --component %s` follows the files again%s", component,
                        try_expired(known) && lkg_known_newer_waits(known)
                                ? ", with the change that was tried: repair it before, if it was "
                                  "wrong"
                                : "");
        return strcmp(lkg_known_try(known), "running") == 0
                       ? lkg_tool_format(
                                 "`lkgfs commit --component %s` keeps the tried change; without it the "
                                 "previous one is served again",
                                 component)
                       : NULL;
}
