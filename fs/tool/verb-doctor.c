/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lkgfs doctor: why does it not do what I expect? Checks the node and status/ of each component for problems
 * that are not errors of a document: lkgfs is not running, a switch or a hold was left on, starts that lkgfs
 * does not see, a component that is in a crash loop or runs with another document, stored state that was
 * lost, an API server that cannot be reached, an assigned configuration that is not served. One line each,
 * with what to do about it; it changes nothing.
 *
 * Exit status 1 if there is an error or a warning. A view that cannot be opened is one: this verb is for
 * broken nodes.
 */
#include "verb-drift.h"
#include "view-dynamic.h"
#include "view-held.h"
#include "processes.h"

#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>

#include <lkg/file.h>

#define DISABLED     "/etc/lkgfs/disabled"
#define DEVICE       "/dev/fuse"

#define LKG_NO_USER  3022
#define FINDINGS_MAX 8 /* errors in documents that are printed */

/* The problems so far, in printed form. */
struct diagnosis {
        const struct lkg_tool *tool;
        struct lkg_view view;
        const char *component;      /* the one being checked; NULL = the node */
        struct lkg_report findings; /* of that */
        struct lkg_value *list;     /* structured output; NULL = text */
        struct lkg_buf text;
        size_t n_severity[_LKG_SEVERITY_MAX];
        bool looked_at_processes; /* they are the same for all components */
        bool engine_silent;
        bool failed;
};

static void add(struct diagnosis *d, enum lkg_severity severity, const char *advice, const char *fmt, ...)
        LKG_PRINTF(4, 5);

static void add(struct diagnosis *d, enum lkg_severity severity, const char *advice, const char *fmt, ...)
{
        LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf clean = LKG_BUF_INIT;
        bool colour = !d->list && lkg_tool_colour_for(d->tool, STDOUT_FILENO);
        LKG_CLEANUP(lkg_freep) char *text = NULL;
        struct lkg_tool_map item;
        va_list ap;
        int r;

        va_start(ap, fmt);
        r = vasprintf(&text, fmt, ap);
        va_end(ap);
        if (r < 0) {
                text = NULL;
                d->failed = true;
                return;
        }
        d->n_severity[severity]++;
        lkg_tool_put_clean(&clean, text);
        if (!d->list) {
                lkg_buf_printf(&d->text, "%s%s%s: %s%s%s\n    %s\n", lkg_tool_paint(colour, severity),
                               lkg_severity_name(severity), lkg_tool_paint_end(colour),
                               d->component ? d->component : "", d->component ? ": " : "",
                               clean.data ? clean.data : "", advice);
                return;
        }
        lkg_tool_map_init(&item, false);
        lkg_tool_map_string(&item, "severity", lkg_severity_name(severity));
        lkg_tool_map_string(&item, "component", d->component);
        lkg_tool_map_string(&item, "text", clean.data);
        lkg_tool_map_string(&item, "advice", advice);
        lkg_tool_list_take(d->list, &item, &d->failed);
}

/* ---- the node ---- */

static void look_at_node(struct diagnosis *d)
{
        if (access(DISABLED, F_OK) == 0)
                add(d, LKG_WARNING, "remove the file, so that components wait for lkgfs again",
                    DISABLED " exists: `lkgfs gate` lets components start without lkgfs");
        if (access(DEVICE, F_OK) < 0)
                add(d, LKG_ERROR, "load the kernel module fuse; in a container, pass the device to it",
                    DEVICE ": %s", strerror(errno));
}

/* ---- one component ---- */

/* Return: the text, NULL if it is missing or unreadable. Caller frees. */
static char *fact(const struct diagnosis *d, const char *file)
{
        char *text = NULL;

        return lkg_view_read(&d->view, &text, NULL, "status/%s/%s", d->component, file) < 0 ? NULL : text;
}

static void check_condition(struct diagnosis *d)
{
        LKG_CLEANUP(lkg_freep) char *condition = fact(d, "condition");
        const char *advice = d->findings.n_severity[LKG_ERROR] ? "correct what the errors below name"
                                                               : "see `lkgfs status`";
        const char *silent = "see journalctl -u lkgfs; changes take effect when the engine is back, "
                             "commands fail until then";

        if (!condition)
                add(d, LKG_WARNING, "check that lkgfsd has the same version as this tool",
                    "no condition can be read");
        else if (d->engine_silent)
                add(d, LKG_ERROR, silent, "%s", condition);
        else if (strncmp(condition, "False ", 6) == 0)
                add(d, LKG_ERROR, advice, "%s", condition);
        else if (strncmp(condition, "True ", 5) != 0)
                add(d, LKG_WARNING, advice, "%s", condition);
}

static void check_hold(struct diagnosis *d, const struct lkg_held *held)
{
        LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf who = LKG_BUF_INIT, advice = LKG_BUF_INIT;
        bool waits = held->newer_waits;

        if (!lkg_held_next(held, d->component, &advice))
                return;
        lkg_held_who(held, &who);
        lkg_buf_putc(&who, '\0');
        lkg_buf_putc(&advice, '\0');
        if (lkg_buf_failed(&who) || lkg_buf_failed(&advice))
                d->failed = true;
        else if (held->mode)
                add(d, waits ? LKG_WARNING : LKG_NOTE, advice.data, "held at generation %s (%s)%s%s",
                    held->generation ? held->generation : "?", held->mode, who.data,
                    waits ? ", and a newer one waits" : "; nothing newer waits");
        else
                add(d, LKG_NOTE, advice.data, "on try until %s", held->until ? held->until : "?");
}

static void check_generation(struct diagnosis *d)
{
        LKG_CLEANUP(lkg_freep) char *generation = fact(d, "generation");

        if (generation && strtoull(generation, NULL, 10) == 0)
                add(d, LKG_ERROR, "create a base or a drop-in; `lkgfs status` names the problem",
                    "no document is served");
}

/*
 * What findings are about, by their codes (core/base/findings.c), and from which severity on they are a problem; the last row is
 * of all others.
 */
static const struct about {
        unsigned first, last;
        const char *words;
        enum lkg_severity worth;
} about[] = {
        { 4005, 4005, "stored state: ", LKG_NOTE },
        { 4022, 4022, "stored state: ", LKG_NOTE },
        { 6010, 6019, "stored state: ", LKG_NOTE },
        { 3000, 3999, "configuration of lkgfs: ", LKG_WARNING },
        { 4011, 4011, "configuration of lkgfs: ", LKG_WARNING },
        { 4017, 4017, "release of the component: ", LKG_WARNING },
        { 7000, 7999, "API server: ", LKG_WARNING },
        { 0, UINT_MAX, "", LKG_ERROR },
};

/* The finding, and the cure that the table of codes has for it. */
static void add_finding(struct diagnosis *d, const struct lkg_finding *f, const struct about *row)
{
        LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf line = LKG_BUF_INIT, cure = LKG_BUF_INIT;
        enum lkg_severity severity = row->worth == LKG_NOTE ? LKG_WARNING : f->severity;

        lkg_finding_format(f, &line);
        for (size_t i = 0; i < lkg_n_finding_kinds; i++)
                if (lkg_finding_kinds[i].code == f->code)
                        lkg_buf_printf(&cure, "%s (`lkgfs explain LKG%04u`)", lkg_finding_kinds[i].advice,
                                       f->code);
        if (lkg_buf_failed(&line) || lkg_buf_failed(&cure))
                d->failed = true;
        else
                add(d, severity, cure.data ? cure.data : "see lkgfs-findings(7)", "%s%s", row->words,
                    line.data ? line.data : "");
}

static void check_findings(struct diagnosis *d)
{
        size_t n = 0;

        for (size_t i = 0; i < d->findings.n_findings; i++) {
                const struct lkg_finding *f = &d->findings.findings[i];
                const struct about *row = about;

                while (f->code < row->first || f->code > row->last)
                        row++;
                if (f->severity <= row->worth && (*row->words || n++ < FINDINGS_MAX))
                        add_finding(d, f, row);
        }
        if (n > FINDINGS_MAX)
                add(d, LKG_ERROR, "`cat status/<component>/findings` has all",
                    "%zu more findings like these", n - FINDINGS_MAX);
}

static void check_assigned(struct diagnosis *d, const struct lkg_view_dynamic *dynamic,
                           const struct lkg_held *held)
{
        LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf advice = LKG_BUF_INIT;
        bool bad = dynamic->assigned_mark;

        if (!lkg_dynamic_is_remote(dynamic->assigned) || !dynamic->active ||
            strcmp(dynamic->assigned, dynamic->active) == 0)
                return;
        if (held->mode) /* nothing else is served before that */
                lkg_buf_printf(&advice, "`lkgfs hold off --component %s`%s", d->component,
                               bad ? ", then " : " lets it be served");
        if (bad)
                (void)lkg_dynamic_next(dynamic, d->component, &advice);
        else if (!held->mode)
                lkg_buf_puts(&advice,
                             "remote.enabled may be false, or invalid local layers are in the way: see "
                             "the condition");
        lkg_buf_putc(&advice, '\0');
        if (lkg_buf_failed(&advice))
                d->failed = true;
        else if (bad)
                add(d, LKG_WARNING, advice.data, "%s is assigned and known to be bad; %s is served",
                    dynamic->assigned, dynamic->active);
        else
                add(d, LKG_WARNING, advice.data, "%s is assigned, and %s is served", dynamic->assigned,
                    dynamic->active);
}

/* Where the reason of its end is logged: the journal of its unit, or of programs with its name. */
static void put_log(const struct diagnosis *d, const char *until, struct lkg_buf *buf)
{
        LKG_CLEANUP(lkg_freep) char *process = fact(d, "process");
        const char *unit = process ? process : "";
        size_t date = strcspn(until, "T"), n;

        while (*unit && strncmp(unit, "unit=", 5) != 0)
                unit += strcspn(unit, "\n") + (unit[strcspn(unit, "\n")] != '\0');
        unit += *unit ? 5 : 0;
        n = strcspn(unit, "\n");
        if (n)
                lkg_buf_printf(buf, "`journalctl -u %.*s", (int)n, unit);
        else
                lkg_buf_printf(buf, "`journalctl _COMM=%.*s", (int)LKG_PROC_NAMES, d->component);
        if (until[date] && strlen(until) > date + 9)
                lkg_buf_printf(buf, " --until '%.*s %.8s UTC'", (int)date, until, until + date + 1);
        lkg_buf_puts(buf, " -n 50` shows its last messages");
}

/* Only the last one; earlier ones are in `lkgfs bad`. */
static void check_crash_loop(struct diagnosis *d)
{
        LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf advice = LKG_BUF_INIT;
        LKG_CLEANUP(lkg_freep) char *id = NULL;
        char **names = NULL, time[32] = "";
        size_t n = 0;

        if (lkg_view_bad_names(&d->view, d->component, &names, &n) < 0)
                return;
        for (size_t i = 0; i < n; i++) {
                LKG_CLEANUP(lkg_value_unrefp)
                struct lkg_value *mark = lkg_view_read_json(&d->view, "bad/%s/%s", d->component, names[i]);
                const char *cause = mark ? lkg_map_get_string(mark, "cause") : NULL;
                const char *at = mark ? lkg_map_get_string(mark, "time") : NULL;

                if (!cause || !at || strcmp(cause, "crash_loop") != 0 || strcmp(at, time) <= 0)
                        continue;
                (void)snprintf(time, sizeof(time), "%s", at);
                free(id);
                id = strdup(names[i]);
        }
        lkg_view_free_mounts(names, n);
        if (!id)
                return;
        put_log(d, time, &advice);
        lkg_buf_putc(&advice, '\0');
        if (lkg_buf_failed(&advice))
                d->failed = true;
        else
                add(d, LKG_WARNING, advice.data, "crash-looped with %s, which is bad since %s", id, time);
}

/* Return: true: status/<component>/startups is an empty list. */
static bool never_started(const struct diagnosis *d)
{
        LKG_CLEANUP(lkg_report_deinit) struct lkg_report report = LKG_REPORT_INIT;
        LKG_CLEANUP(lkg_value_unrefp) struct lkg_value *list = NULL;
        LKG_CLEANUP(lkg_freep) char *text = fact(d, "startups");

        if (!text || lkg_decode_json(text, strlen(text), 0, NULL, &report, &list) < 0)
                return false;
        return lkg_value_type(list) == LKG_LIST && lkg_value_size(list) == 0;
}

/* While it is unknown which generation the component has read, the clock of a trial does not run. */
static void check_unseen(struct diagnosis *d, const struct lkg_view_dynamic *dynamic,
                         const struct lkg_drift *drift)
{
        bool trial = lkg_dynamic_is_on_trial(dynamic);

        if (!drift->unseen)
                return;
        if ((trial || lkg_dynamic_matters(dynamic)) && never_started(d))
                add(d, trial ? LKG_ERROR : LKG_WARNING,
                    "it reads another path (see its --config), or has run since before lkgfs: then restart "
                    "it",
                    "runs as process %lu, but no start of it was ever seen%s", drift->unseen,
                    trial ? ": the trial cannot notice a crash loop" : "");
        else
                add(d, trial ? LKG_WARNING : LKG_NOTE,
                    "restart it when it suits: lkgfs then knows what it reads", LKG_DRIFT_UNSEEN "%s",
                    drift->unseen,
                    trial ? ", and the trial waits for a process that reads what is on trial" : "");
}

static void check_drift(struct diagnosis *d, const struct lkg_view_dynamic *dynamic)
{
        LKG_CLEANUP(lkg_drift_deinit) struct lkg_drift drift = { 0 };
        LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf first = LKG_BUF_INIT;

        if (lkg_drift_read(&d->view, d->component, &drift) < 0)
                return;
        check_unseen(d, dynamic, &drift);
        if (drift.n_fields == 0)
                return;
        lkg_drift_text(&drift.fields[0], &first);
        lkg_buf_putc(&first, '\0');
        if (lkg_buf_failed(&first)) {
                d->failed = true;
                return;
        }
        add(d, LKG_WARNING, "`lkgfs drift` shows all; restart it when it suits, or let restart.policy do so",
            "differs from what is served in %zu field%s: %s%s", drift.n_fields,
            drift.n_fields == 1 ? "" : "s", first.data, drift.n_fields == 1 ? "" : ", ...");
}

static void add_ends(struct diagnosis *d, const struct lkg_process_told *process)
{
        LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf text = LKG_BUF_INIT;

        if (!lkg_process_ends(process, &text))
                return;
        lkg_buf_putc(&text, '\0');
        if (lkg_buf_failed(&text))
                d->failed = true;
        else
                add(d, LKG_WARNING, LKG_ENDS_ADVICE, "%s", text.data);
}

/* Once, for the node and not for the component. */
static void look_at_processes(struct diagnosis *d)
{
        const char *component = d->component;
        struct lkg_processes processes;
        bool warned = false; /* about a user that was configured */

        if (d->looked_at_processes)
                return;
        d->looked_at_processes = true;
        lkg_processes_read(&d->view, component, &processes);
        d->engine_silent = processes.engine_silent;
        for (size_t i = 0; i < d->findings.n_findings; i++)
                warned |= d->findings.findings[i].code == LKG_NO_USER;
        d->component = NULL;
        for (size_t i = 0; i < processes.n; i++) {
                const char *advice, *loss = lkg_process_loss(processes.items[i].name, &advice);

                if (lkg_process_missing(&processes.items[i]))
                        add(d, LKG_ERROR, advice, "%s does not run: %s", processes.items[i].name, loss);
                add_ends(d, &processes.items[i]);
        }
        if (processes.no_user && !warned)
                add(d, LKG_NOTE,
                    "run `systemd-sysusers`, which creates the user lkgfs, and `systemctl reload lkgfs`; or "
                    "set "
                    "`engineUser: root` if this is intended",
                    "the engine runs as root, without capabilities: the user that it is to run as does not "
                    "exist");
        d->component = component;
}

/* The value of a number at the top of effective.yaml; 0 = none. */
static unsigned number_at_top(const char *text, const char *field)
{
        size_t n = strlen(field);

        for (const char *line = text; *line; line += strcspn(line, "\n"), line += *line == '\n')
                if (strncmp(line, field, n) == 0 && line[n] == ':')
                        return (unsigned)strtoul(line + n + 1, NULL, 10);
        return 0;
}

/* A kubelet ends if it cannot listen there. (Source: pkg/kubelet/server/server.go, ListenAndServe*.) */
static void check_ports(struct diagnosis *d)
{
        static const char *const fields[] = { "port", "readOnlyPort" };
        LKG_CLEANUP(lkg_freep) char *text = fact(d, "effective.yaml");
        struct lkg_component_process own;

        (void)lkg_component_process_read(&d->view, d->component, &own);
        if (!text || !strstr(text, "kind: KubeletConfiguration"))
                return;
        for (size_t i = 0; i < LKG_ARRAY_SIZE(fields); i++) {
                unsigned port = number_at_top(text, fields[i]);
                char name[LKG_PROC_NAMES + 1] = "";
                unsigned long pid = port ? lkg_port_holder(port, name) : 0;

                if (pid && pid != own.pid && strncmp(name, d->component, LKG_PROC_NAMES) != 0)
                        add(d, LKG_WARNING,
                            "end that process, or change the field: the component cannot start without the "
                            "port",
                            "%s %u is in use by process %lu (%s)", fields[i], port, pid, name);
        }
}

static void look_at_component(struct diagnosis *d)
{
        LKG_CLEANUP(lkg_dynamic_deinit) struct lkg_view_dynamic dynamic = { 0 };
        LKG_CLEANUP(lkg_held_deinit) struct lkg_held held = { 0 };

        (void)lkg_view_findings(&d->view, d->component, &d->findings); /* only root may */
        look_at_processes(d);
        lkg_dynamic_read(&d->view, d->component, &dynamic);
        lkg_held_read(&d->view, d->component, &held);
        check_condition(d);
        check_hold(d, &held);
        check_generation(d);
        check_findings(d);
        check_assigned(d, &dynamic, &held);
        check_crash_loop(d);
        check_drift(d, &dynamic);
        check_ports(d);
        lkg_report_deinit(&d->findings);
}

/* ---- the whole node ---- */

/* Check the view, or report why there is none. */
static void look_at_view(struct diagnosis *d)
{
        const char *only = d->tool->options.component;
        struct lkg_tool quiet = *d->tool;
        char said[512] = "", **names = NULL;
        bool found = false;
        size_t n = 0;
        int r;

        quiet.said = &said;
        if (lkg_view_open(&quiet, &d->view) != LKG_TOOL_OK) {
                add(d, LKG_ERROR,
                    "start it with `systemctl start lkgfs`, or name another mount with --mountpoint; "
                    "journalctl -u lkgfs shows why it ended",
                    "%s", said);
                return;
        }
        r = lkg_view_components(&d->view, &names, &n);
        if (r < 0)
                add(d, LKG_ERROR, "journalctl -u lkgfs", "%s/status: %s", d->view.root, strerror(-r));
        for (size_t i = 0; i < n; i++) {
                if (only && strcmp(only, names[i]) != 0)
                        continue;
                found = true;
                d->component = names[i];
                look_at_component(d);
        }
        d->component = NULL;
        if (r == 0 && !found)
                add(d, LKG_ERROR, "components[].name in the configuration lists the components",
                    "no component \"%.60s\" in %s", only ? only : "", d->view.root);
        lkg_view_free_mounts(names, n);
}

int lkg_verb_doctor(const struct lkg_tool *tool)
{
        bool structured = tool->options.format == LKG_TOOL_JSON || tool->options.format == LKG_TOOL_YAML;
        struct diagnosis d = { .tool = tool, .view.fd = -EBADF, .text = LKG_BUF_INIT };
        struct lkg_tool_map map;
        int status;

        if (structured)
                d.list = lkg_value_new_list(NULL, 0, 0);
        if (structured && !d.list)
                return lkg_tool_fail(tool, LKG_TOOL_FAILED, "%s", strerror(ENOMEM));
        look_at_node(&d);
        look_at_view(&d);
        lkg_view_close(&d.view);
        status = d.n_severity[LKG_ERROR] || d.n_severity[LKG_WARNING] ? LKG_TOOL_DIFFERENT : LKG_TOOL_OK;
        if (structured) {
                lkg_tool_map_init(&map, true);
                map.failed |= d.failed;
                lkg_tool_map_value(&map, "problems", d.list);
                return lkg_tool_print_map(tool, &map, status);
        }
        if (d.text.size == 0)
                lkg_buf_puts(&d.text, "no problem found\n");
        status = d.failed ? lkg_tool_fail(tool, LKG_TOOL_FAILED, "%s", strerror(ENOMEM))
                          : lkg_tool_print(&d.text, status);
        lkg_buf_deinit(&d.text);
        return status;
}
