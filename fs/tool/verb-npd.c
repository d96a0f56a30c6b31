/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lkgfs npd: the program that a custom plugin monitor of node-problem-detector calls periodically.
 *
 * What the detector expects (its custom_plugin_monitor.md): one line on standard output, cut at
 * max_output_length bytes, 80 by default; exit status 0 = OK, 1 = NonOK, anything else = Unknown. Its
 * conditions are problems: NonOK makes the condition True. Ours, ConfigOK, has the opposite sense, so False
 * becomes 1. For a rule of type `temporary`, 1 is an event, and Unknown has no effect.
 *
 * If lkgfs is not running, the check `condition` is Unknown: it cannot be determined whether the
 * configuration is good, and a node that does not use lkgfs yet has no problem. Whether it runs is a
 * separate check, `served`.
 *
 * Whether it can still do anything is the check `processes`: a view whose engine or supervisor is gone is
 * still served, but nothing changes any more.
 *
 * A mount that does not answer must not cost the detector its timeout: the verb runs guarded (hang.c), and the line is
 * then printed by the parent.
 */
#include "processes.h"

#define LINE_BYTES_MAX 80

enum { NPD_OK = 0, NPD_PROBLEM = 1, NPD_UNKNOWN = 2 };

struct npd_check {
        const char *name;
        int silent; /* the result if the mount does not answer */
        int (*run)(const struct lkg_tool *tool, struct lkg_buf *line);
};

/*
 * ASCII only: the detector counts bytes, and splitting a character would make invalid text in the node's
 * status.
 */
static int say(const char *text, int status)
{
        LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf buf = LKG_BUF_INIT;
        size_t n = strnlen(text, LINE_BYTES_MAX);

        for (size_t i = 0; i < n; i++)
                lkg_buf_putc(&buf, text[i] < ' ' || text[i] > '~' ? '?' : text[i]);
        lkg_buf_putc(&buf, '\n');
        return lkg_tool_print(&buf, status);
}

/* Opens the view and determines the component; error messages of the helper functions become the line. */
static int open_component(const struct lkg_tool *tool, struct lkg_view *ret_view, char **ret,
                          struct lkg_buf *line)
{
        struct lkg_tool quiet = *tool;
        char said[512] = "";
        int r;

        quiet.said = &said;
        r = lkg_view_open(&quiet, ret_view);
        if (r == LKG_TOOL_OK)
                r = lkg_view_component(&quiet, ret_view, ret);
        if (r != LKG_TOOL_OK)
                lkg_buf_puts(line, said);
        return r == LKG_TOOL_OK ? 0 : -ENOENT;
}

static int check_condition(const struct lkg_tool *tool, struct lkg_buf *line)
{
        static const struct {
                const char *status;
                int result;
        } results[] = { { "True", NPD_OK }, { "False", NPD_PROBLEM }, { "Unknown", NPD_UNKNOWN } };
        LKG_CLEANUP(lkg_view_close) struct lkg_view view = { .fd = -EBADF };
        LKG_CLEANUP(lkg_value_unrefp) struct lkg_value *json = NULL;
        LKG_CLEANUP(lkg_freep) char *component = NULL;
        const char *status, *reason, *message;

        if (open_component(tool, &view, &component, line) < 0)
                return NPD_UNKNOWN;
        json = lkg_view_read_json(&view, "status/%s/condition.json", component);
        status = json ? lkg_map_get_string(json, "status") : NULL;
        reason = json ? lkg_map_get_string(json, "reason") : NULL;
        message = json ? lkg_map_get_string(json, "message") : NULL;
        for (size_t i = 0; status && i < LKG_ARRAY_SIZE(results); i++)
                if (strcmp(status, results[i].status) == 0) {
                        lkg_buf_printf(line, "%s: %s", reason ? reason : "no reason",
                                       message ? message : "");
                        return results[i].result;
                }
        lkg_buf_printf(line, "no condition of %s can be read in %s", component, view.root);
        return NPD_UNKNOWN;
}

static int check_served(const struct lkg_tool *tool, struct lkg_buf *line)
{
        LKG_CLEANUP(lkg_view_close) struct lkg_view view = { .fd = -EBADF };
        LKG_CLEANUP(lkg_freep) char *component = NULL;
        LKG_CLEANUP(lkg_freep) char *text = NULL;
        uint64_t generation;

        if (open_component(tool, &view, &component, line) < 0)
                return NPD_PROBLEM;
        if (lkg_view_read(&view, &text, NULL, "status/%s/generation", component) < 0) {
                lkg_buf_printf(line, "no generation of %s can be read in %s", component, view.root);
                return NPD_PROBLEM;
        }
        generation = strtoull(text, NULL, 10);
        if (generation == 0) {
                lkg_buf_printf(line, "no configuration of %s is served in %s", component, view.root);
                return NPD_PROBLEM;
        }
        lkg_buf_printf(line, "generation %llu of %s is served", (unsigned long long)generation, component);
        return NPD_OK;
}

static int check_bad(const struct lkg_tool *tool, struct lkg_buf *line)
{
        LKG_CLEANUP(lkg_view_close) struct lkg_view view = { .fd = -EBADF };
        LKG_CLEANUP(lkg_freep) char *component = NULL;
        char **names = NULL;
        size_t n = 0;
        int r;

        if (open_component(tool, &view, &component, line) < 0)
                return NPD_UNKNOWN;
        r = lkg_view_bad_names(&view, component, &names, &n);
        if (r < 0) {
                lkg_buf_printf(line, "%s/bad/%s: %s", view.root, component, strerror(-r));
                return NPD_UNKNOWN;
        }
        if (n == 0)
                lkg_buf_printf(line, "no configuration of %s is bad", component);
        else
                lkg_buf_printf(line, "%zu bad configuration%s of %s: %s%s", n, n == 1 ? "" : "s", component,
                               names[0], n > 1 ? ", ..." : "");
        lkg_view_free_mounts(names, n);
        return n ? NPD_PROBLEM : NPD_OK;
}

/* The condition tells since when the engine has been silent. */
static int check_processes(const struct lkg_tool *tool, struct lkg_buf *line)
{
        LKG_CLEANUP(lkg_view_close) struct lkg_view view = { .fd = -EBADF };
        LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf missing = LKG_BUF_INIT;
        LKG_CLEANUP(lkg_value_unrefp) struct lkg_value *json = NULL;
        LKG_CLEANUP(lkg_freep) char *component = NULL;
        struct lkg_processes processes;
        const char *reason = NULL;
        size_t n;

        if (open_component(tool, &view, &component, line) < 0)
                return NPD_UNKNOWN;
        lkg_processes_read(&view, component, &processes);
        n = lkg_processes_missing(&processes, &missing);
        if (n > 0 && missing.data) {
                lkg_buf_printf(line, "%s do%s not run", missing.data, n == 1 ? "es" : "");
                return NPD_PROBLEM;
        }
        if (processes.engine_silent) {
                json = lkg_view_read_json(&view, "status/%s/condition.json", component);
                reason = json ? lkg_map_get_string(json, "reason") : NULL;
                lkg_buf_puts(line, reason ? reason : "the engine does not answer");
                return NPD_PROBLEM;
        }
        for (size_t i = 0; i < processes.n; i++)
                if (lkg_process_ends(&processes.items[i], line))
                        return NPD_PROBLEM;
        if (processes.n == 0) {
                lkg_buf_printf(line, "no processes in %s/status/%s/metrics.prom", view.root, component);
                return NPD_UNKNOWN;
        }
        lkg_buf_puts(line, "all processes of lkgfs run");
        return NPD_OK;
}

static const struct npd_check checks[] = {
        { "condition", NPD_UNKNOWN, check_condition },
        { "served", NPD_PROBLEM, check_served },
        { "bad", NPD_UNKNOWN, check_bad },
        { "processes", NPD_PROBLEM, check_processes },
};

static const struct npd_check *find_check(const struct lkg_tool *tool)
{
        const char *name = tool->options.check ? tool->options.check : checks[0].name;

        for (size_t i = 0; i < LKG_ARRAY_SIZE(checks); i++)
                if (strcmp(checks[i].name, name) == 0)
                        return &checks[i];
        return NULL;
}

int lkg_npd_silent(const struct lkg_tool *tool)
{
        const struct npd_check *check = find_check(tool);

        return say("lkgfs does not answer: the mount hangs", check ? check->silent : NPD_UNKNOWN);
}

int lkg_verb_npd(const struct lkg_tool *tool)
{
        LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf line = LKG_BUF_INIT;
        const struct npd_check *check = find_check(tool);
        int status;

        if (!check)
                return lkg_tool_fail(
                        tool, LKG_TOOL_USAGE,
                        "--check: \"%.60s\" is not right, want condition, served, bad or processes",
                        tool->options.check);
        status = check->run(tool, &line);
        if (lkg_buf_failed(&line) || !line.data)
                return say(strerror(ENOMEM), NPD_UNKNOWN);
        return say(line.data, status);
}
