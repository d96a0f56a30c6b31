/* SPDX-License-Identifier: Apache-2.0 */
/* Verbs that units, monitors and mount(8) call: gate, npd, wait, mount. */
#include <linux/magic.h>
#include <poll.h>
#include <sys/vfs.h>
#include <time.h>

#include "known.h"

/* ---- gate ---- */

/*
 * lkgfs gate COMPONENT, for the component's ExecStartPre=: while lkgfs is down, a node must not accidentally
 * start it on the unmerged base below the mount point. 0 if the view is served or an administrator has
 * created /etc/lkgfs/disabled, else 1, also if the mount does not answer.
 *
 * While the engine does not answer, starts are not counted: a crash loop would go unnoticed and not be
 * rolled back. A hung engine is replaced within seconds, so the gate waits briefly and then stays closed
 * (docs/decisions/017-gate-and-silence.md). Other missing processes are only reported.
 */

#define WAIT_NS  (6 * LKG_NSEC_PER_SEC) /* engineTimeout, a second, a start; the verb has a limit of 10 s */
#define PAUSE_NS (100 * LKG_NSEC_PER_MSEC)

static bool engine_answers(const struct lkg_tool *tool, const struct lkg_view *view)
{
        const struct timespec pause = { .tv_nsec = PAUSE_NS };
        uint64_t end_ns = lkg_boottime_ns() + WAIT_NS;
        struct lkg_processes processes;

        for (;;) {
                lkg_processes_read(view, &processes);
                if (!processes.engine_silent) {
                        if (lkg_processes_missing(&processes))
                                lkg_tool_note(tool, "missing: %s", lkg_processes_missing(&processes));
                        return true;
                }
                if (lkg_boottime_ns() >= end_ns)
                        break;
                (void)nanosleep(&pause, NULL);
        }
        lkg_tool_note(tool,
                      "the engine does not answer, so a crash loop could not be noticed: see "
                      "%s/status/%s/condition",
                      view->root, view->component);
        return false;
}

static bool is_served(const struct lkg_tool *tool, const char *component)
{
        struct lkg_view view = { 0 };
        char *generation = NULL;
        struct lkg_error err = { 0 };
        struct statfs fs;
        int r;

        if (lkg_view_find(tool, &view, &err) < 0) {
                lkg_tool_note(tool, "%s", err.message);
                return false;
        }
        if (fstatfs(view.fd, &fs) < 0 || fs.f_type != FUSE_SUPER_MAGIC) {
                lkg_tool_note(tool, "%s is not mounted", view.root); /* perhaps a backup of a view */
                return false;
        }
        view.component = component;
        r = lkg_view_read(&view, &generation, NULL, "status/%s/generation", component);
        if (r < 0) {
                lkg_tool_note(tool, "%s/status/%s/generation: %s", view.root, component, strerror(-r));
                return false;
        }
        if (strtoull(generation, NULL, 10) == 0) {
                lkg_tool_note(tool, "no document of \"%s\" is served: see %s/status/%s/condition", component,
                              view.root, component);
                return false;
        }
        return engine_answers(tool, &view);
}

int lkg_verb_gate(const struct lkg_tool *tool)
{
        if (access(LKG_TOOL_DISABLED, F_OK) == 0)
                return LKG_TOOL_OK;
        if (is_served(tool, tool->words[0]))
                return LKG_TOOL_OK;
        lkg_tool_note(tool,
                      "%s is blocked until lkgfs serves its file: `systemctl start lkgfs`; in an emergency "
                      "`touch " LKG_TOOL_DISABLED "`",
                      tool->words[0]);
        return LKG_TOOL_DIFFERENT;
}

/* ---- npd ---- */

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
 * A mount that does not answer must not cost the detector its timeout: the verb runs guarded (run.c), and the line is
 * then printed by the parent.
 */
#define LINE_BYTES_MAX 80

enum { NPD_OK = 0, NPD_PROBLEM = 1, NPD_UNKNOWN = 2 };

struct npd_check {
        const char *name;
        int silent; /* the result if the mount does not answer */
        int absent; /* if there is none */
        int (*run)(const struct lkg_view *view, const char **ret_line);
};

/*
 * ASCII only: the detector counts bytes, and splitting a character would make invalid text in the node's
 * status.
 */
static int say_text(const char *text, int status)
{
        LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf buf = LKG_BUF_INIT;
        size_t n = strnlen(text, LINE_BYTES_MAX);

        for (size_t i = 0; i < n; i++)
                lkg_buf_putc(&buf, text[i] < ' ' || text[i] > '~' ? '?' : text[i]);
        lkg_buf_putc(&buf, '\n');
        return lkg_tool_print(&buf, status);
}

static int check_condition(const struct lkg_view *view, const char **ret_line)
{
        static const struct {
                const char *status;
                int result;
        } results[] = { { "True", NPD_OK }, { "False", NPD_PROBLEM }, { "Unknown", NPD_UNKNOWN } };
        struct lkg_value *json = lkg_view_read_json(view, "status/%s/condition.json", view->component);
        const char *reason = lkg_tool_word(json, "reason");

        for (size_t i = 0; i < LKG_ARRAY_SIZE(results); i++)
                if (strcmp(lkg_tool_word(json, "status"), results[i].status) == 0) {
                        *ret_line = lkg_tool_format("%s: %s", *reason ? reason : "no reason",
                                                    lkg_tool_word(json, "message"));
                        return results[i].result;
                }
        *ret_line = lkg_tool_format("no condition of %s can be read in %s", view->component, view->root);
        return NPD_UNKNOWN;
}

static int check_served(const struct lkg_view *view, const char **ret_line)
{
        char *text = lkg_view_status(view, "generation");
        uint64_t generation = text ? strtoull(text, NULL, 10) : 0;

        if (!text)
                *ret_line = lkg_tool_format("no generation of %s can be read in %s", view->component,
                                            view->root);
        else if (generation == 0)
                *ret_line = lkg_tool_format("no configuration of %s is served in %s", view->component,
                                            view->root);
        else
                *ret_line = lkg_tool_format("generation %llu of %s is served",
                                            (unsigned long long)generation, view->component);
        return generation ? NPD_OK : NPD_PROBLEM;
}

static int check_bad(const struct lkg_view *view, const char **ret_line)
{
        struct lkg_strings names = { 0 };
        int r = lkg_view_bad_names(view, &names);
        size_t n = names.n_items;

        if (r < 0)
                *ret_line = lkg_tool_format("%s/bad/%s: %s", view->root, view->component, strerror(-r));
        else if (n == 0)
                *ret_line = lkg_tool_format("no configuration of %s is bad", view->component);
        else
                *ret_line = lkg_tool_format("%zu bad configuration%s of %s: %s%s", n, n == 1 ? "" : "s",
                                            view->component, names.items[0], n > 1 ? ", ..." : "");
        return r < 0 ? NPD_UNKNOWN : n ? NPD_PROBLEM : NPD_OK;
}

/* The condition tells since when the engine has been silent. */
static int check_processes(const struct lkg_view *view, const char **ret_line)
{
        struct lkg_value *json;
        struct lkg_processes processes;
        const char *trouble, *reason;

        lkg_processes_read(view, &processes);
        trouble = lkg_processes_trouble(&processes);
        if (!trouble && processes.engine_silent) {
                json = lkg_view_read_json(view, "status/%s/condition.json", view->component);
                reason = lkg_tool_word(json, "reason");
                trouble = *reason ? lkg_tool_cut(reason, strlen(reason)) : "the engine does not answer";
        }
        for (size_t i = 0; i < processes.n && !trouble; i++)
                trouble = lkg_process_ends(&processes.items[i]);
        *ret_line = trouble       ? trouble
                    : processes.n ? "all processes of lkgfs run"
                                  : lkg_tool_format("no processes in %s/status/%s/metrics.prom", view->root,
                                                    view->component);
        return trouble ? NPD_PROBLEM : processes.n ? NPD_OK : NPD_UNKNOWN;
}

static const struct npd_check checks[] = {
        { "condition", NPD_UNKNOWN, NPD_UNKNOWN, check_condition },
        { "served", NPD_PROBLEM, NPD_PROBLEM, check_served },
        { "bad", NPD_UNKNOWN, NPD_UNKNOWN, check_bad },
        { "processes", NPD_PROBLEM, NPD_UNKNOWN, check_processes },
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

        return say_text("lkgfs does not answer: the mount hangs", check ? check->silent : NPD_UNKNOWN);
}

int lkg_verb_npd(const struct lkg_tool *tool)
{
        struct lkg_view view = { 0 };
        const struct npd_check *check = find_check(tool);
        struct lkg_error err = { 0 };
        const char *line;
        int status;

        if (!check)
                return lkg_tool_fail(
                        tool, LKG_TOOL_USAGE,
                        "--check: \"%.60s\" is not right, want condition, served, bad or processes",
                        tool->options.check);
        if (lkg_view_find(tool, &view, &err) < 0 || lkg_view_find_component(tool, &view, &err) < 0)
                return say_text(err.message, check->absent);
        status = check->run(&view, &line);
        return say_text(line, status);
}

/* ---- wait ---- */

/*
 * lkgfs wait: uses poll(2) on status/<component>/generation. A file of the view shows one publication from
 * open to close, and poll reports POLLPRI as soon as other content has replaced it: so no change between the
 * read and the poll is lost, and the file is reopened to read the new number.
 */
#define NUMBER_BYTES_MAX 64

struct wait {
        const struct lkg_tool *tool;
        const struct lkg_view *view;
        const char *path;     /* status/<component>/generation */
        uint64_t deadline_ns; /* UINT64_MAX = none */
};

/* Return: the descriptor; -errno. */
static int open_generation(const struct wait *wait, uint64_t *ret)
{
        LKG_CLEANUP(lkg_closep) int fd = openat(wait->view->fd, wait->path, O_RDONLY | O_CLOEXEC);
        char *text;
        size_t size;
        int r;

        if (fd < 0)
                return -errno;
        r = lkg_tool_read(fd, NUMBER_BYTES_MAX, &text, &size);
        if (r < 0)
                return r;
        *ret = strtoull(text, NULL, 10);
        return LKG_STEAL_FD(fd);
}

/* Return: 1 changed; 0 timeout; -errno. */
static int poll_change(const struct wait *wait, int fd)
{
        struct pollfd poll_fd = { .fd = fd, .events = POLLPRI };

        for (;;) {
                uint64_t now_ns = lkg_boottime_ns(), left_ms;
                int timeout_ms = -1, r;

                if (wait->deadline_ns != UINT64_MAX) {
                        if (now_ns >= wait->deadline_ns)
                                return 0;
                        left_ms = (wait->deadline_ns - now_ns) / LKG_NSEC_PER_MSEC + 1;
                        timeout_ms = left_ms > INT32_MAX ? INT32_MAX : (int)left_ms;
                }
                r = poll(&poll_fd, 1, timeout_ms);
                if (r < 0 && errno != EINTR)
                        return -errno;
                if (r > 0)
                        return poll_fd.revents & (POLLNVAL | POLLERR) && !(poll_fd.revents & POLLPRI) ? -EIO
                                                                                                      : 1;
        }
}

/* @wanted 0: any generation other than the first one seen. */
static int wait_for(const struct wait *wait, uint64_t wanted)
{
        uint64_t first = 0;

        for (bool began = false;; began = true) {
                LKG_CLEANUP(lkg_closep) int fd = -EBADF;
                uint64_t now = 0;
                int r;

                fd = open_generation(wait, &now);
                if (fd < 0)
                        return lkg_tool_fail(wait->tool, LKG_TOOL_FAILED, "%s/%s: %s", wait->view->root,
                                             wait->path, strerror(-fd));
                if (!began)
                        first = now;
                if (wanted ? now >= wanted : now != first) {
                        LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf buf = LKG_BUF_INIT;

                        lkg_buf_printf(&buf, "%llu\n", (unsigned long long)now);
                        return lkg_tool_print(&buf, LKG_TOOL_OK);
                }
                r = poll_change(wait, fd);
                if (r == 0)
                        return lkg_tool_fail(wait->tool, LKG_TOOL_DIFFERENT,
                                             "timeout: generation %llu is served", (unsigned long long)now);
                if (r < 0)
                        return lkg_tool_fail(wait->tool, LKG_TOOL_FAILED, "poll %s/%s: %s", wait->view->root,
                                             wait->path, strerror(-r));
        }
}

static int parse_words(const struct lkg_tool *tool, uint64_t *ret)
{
        const char *rest;

        *ret = 0;
        if (tool->n_words == 0)
                return 0;
        if (tool->n_words != 2 || strcmp(tool->words[0], "generation") != 0)
                return -EINVAL;
        rest = lkg_digits(tool->words[1], ret);
        return rest && !*rest && *ret > 0 ? 0 : -EINVAL;
}

int lkg_verb_wait(const struct lkg_tool *tool)
{
        struct lkg_view view = { 0 };
        struct wait wait = { .tool = tool, .view = &view, .deadline_ns = UINT64_MAX };
        uint64_t wanted, now_ns = lkg_boottime_ns();

        if (parse_words(tool, &wanted) < 0)
                return lkg_tool_fail(tool, LKG_TOOL_USAGE, "want nothing, or `generation N` with N from 1");
        if (tool->options.wait.limited && tool->options.wait.timeout_ns < UINT64_MAX - now_ns)
                wait.deadline_ns = now_ns + tool->options.wait.timeout_ns;
        view = lkg_view_open(tool, true);
        wait.path = lkg_tool_format("status/%s/generation", view.component);
        return wait_for(&wait, wanted);
}

/* ---- mount ---- */

/* lkgfs mount: starts lkgfsd in the background, found next to this program or where it was installed. */
#define DAEMON "lkgfsd"

/* Relative to the directory of this program: an installed tree of any prefix, then a build folder. */
static const char *const places[] = { "../sbin/" DAEMON, DAEMON, "../supervisor/" DAEMON };

static const char *find_daemon(void)
{
        char path[4096], *slash;
        ssize_t n = readlink("/proc/self/exe", path, sizeof(path) - 1);

        path[n < 0 ? 0 : n] = '\0';
        slash = strrchr(path, '/');
        for (size_t i = 0; slash && i < LKG_ARRAY_SIZE(places); i++) {
                const char *daemon = lkg_tool_format("%.*s/%s", (int)(slash - path), path, places[i]);

                if (access(daemon, X_OK) == 0)
                        return daemon;
        }
        return LKG_SBINDIR "/" DAEMON;
}

int lkg_verb_mount(const struct lkg_tool *tool)
{
        const char *path = find_daemon();
        const char *argv[6] = { DAEMON, "--background" };
        size_t n = 2;

        if (tool->options.config) {
                argv[n++] = "--config";
                argv[n++] = tool->options.config;
        }
        argv[n] = tool->words[0];
        (void)execv(path, (char *const *)(uintptr_t)argv);
        return lkg_tool_fail(tool, LKG_TOOL_FAILED, "run '%s': %s", path, strerror(errno));
}
