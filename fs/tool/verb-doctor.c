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
#include "known.h"

#include <limits.h>

#define DEVICE       "/dev/fuse"

#define LKG_NO_USER  3022
#define FINDINGS_MAX 8 /* errors in documents that are printed */

/* The problems so far. */
struct diagnosis {
        const struct lkg_tool *tool;
        struct lkg_view view;          /* its component: the one being checked; NULL = the node */
        const struct lkg_known *known; /* of that */
        struct lkg_value *list;
        bool looked_at_processes; /* they are the same for all components */
};

static void add(struct diagnosis *d, enum lkg_severity severity, const char *advice, const char *fmt, ...)
        LKG_PRINTF(4, 5);

static void add(struct diagnosis *d, enum lkg_severity severity, const char *advice, const char *fmt, ...)
{
        const char *text;
        va_list ap;

        va_start(ap, fmt);
        text = lkg_tool_clean(lkg_tool_vformat(fmt, ap));
        va_end(ap);
        lkg_tool_append(d->list,
                        lkg_tool_texts(lkg_tool_map(), "severity", lkg_severity_name(severity), "component",
                                       d->view.component, "text", text, "advice", advice, NULL));
}

/* ---- the node ---- */

static void look_at_node(struct diagnosis *d)
{
        if (access(LKG_TOOL_DISABLED, F_OK) == 0)
                add(d, LKG_WARNING, "remove the file, so that components wait for lkgfs again",
                    LKG_TOOL_DISABLED " exists: `lkgfs gate` lets components start without lkgfs");
        if (access(DEVICE, F_OK) < 0)
                add(d, LKG_ERROR, "load the kernel module fuse; in a container, pass the device to it",
                    DEVICE ": %s", strerror(errno));
}

/* ---- one component ---- */

static void check_condition(struct diagnosis *d)
{
        const char *condition = lkg_known_text(d->known, "condition");
        const char *advice = d->known->findings.n_severity[LKG_ERROR] ? "correct what the errors below name"
                                                                      : "see `lkgfs status`";
        const char *silent = "see journalctl -u lkgfs; changes take effect when the engine is back, "
                             "commands fail until then";

        if (!*condition)
                add(d, LKG_WARNING, "check that lkgfsd has the same version as this tool",
                    "no condition can be read");
        else if (d->known->processes.engine_silent)
                add(d, LKG_ERROR, silent, "%s", condition);
        else if (strncmp(condition, "False ", 6) == 0)
                add(d, LKG_ERROR, advice, "%s", condition);
        else if (strncmp(condition, "True ", 5) != 0)
                add(d, LKG_WARNING, advice, "%s", condition);
}

static void check_hold(struct diagnosis *d)
{
        const char *advice = lkg_known_hold_next(d->known, d->view.component),
                   *who = lkg_known_who(d->known), *generation = lkg_tool_word(d->known->hold, "generation"),
                   *until = lkg_tool_word(d->known->hold, "until"), *mode = lkg_known_mode(d->known);
        bool waits = lkg_known_newer_waits(d->known);

        if (!advice)
                return;
        if (mode)
                add(d, waits ? LKG_WARNING : LKG_NOTE, advice, "held at generation %s (%s)%s%s",
                    *generation ? generation : "?", mode, who,
                    waits ? ", and a newer one waits" : "; nothing newer waits");
        else
                add(d, LKG_NOTE, advice, "on try until %s", *until ? until : "?");
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
        LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf line = LKG_BUF_INIT;
        const struct lkg_finding_kind *kind = lkg_finding_kind(f->code);

        lkg_finding_format(f, &line);
        add(d, row->worth == LKG_NOTE ? LKG_WARNING : f->severity,
            kind ? lkg_tool_format("%s (`lkgfs explain LKG%04u`)", kind->advice, f->code)
                 : "see lkgfs-findings(7)",
            "%s%s", row->words, lkg_buf_text(&line));
}

static void check_findings(struct diagnosis *d)
{
        size_t n = 0;

        for (size_t i = 0; i < d->known->findings.n_findings; i++) {
                const struct lkg_finding *f = &d->known->findings.findings[i];
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

static void check_assigned(struct diagnosis *d)
{
        const char *assigned = lkg_known_text(d->known, "assigned"),
                   *active = lkg_known_text(d->known, "active");
        const char *advice =
                "remote.enabled may be false, or invalid local layers are in the way: see the condition";
        bool bad = d->known->assigned_mark, held = lkg_known_mode(d->known);

        if (!lkg_known_remote(assigned) || !*active || strcmp(assigned, active) == 0)
                return;
        if (bad)
                advice = lkg_known_trial_next(d->known, d->view.component);
        if (held) /* nothing else is served before that */
                advice = lkg_tool_format("`lkgfs hold off --component %s`%s%s", d->view.component,
                                         bad ? ", then " : " lets it be served", bad ? advice : "");
        add(d, LKG_WARNING, advice,
            bad ? "%s is assigned and known to be bad; %s is served" : "%s is assigned, and %s is served",
            assigned, active);
}

/* Where the reason of its end is logged: the journal of its unit, or of programs with its name. */
static const char *where_logged(const struct diagnosis *d, const char *until)
{
        const char *unit = lkg_tool_word(d->known->process, "unit"), *limit = "";
        const char *which = *unit ? lkg_tool_format("-u %s", unit)
                                  : lkg_tool_format("_COMM=%.*s", (int)LKG_PROC_NAMES, d->view.component);
        size_t date = strcspn(until, "T");

        if (lkg_value_size(d->known->pods) > 0)
                return "`crictl ps -a` lists its containers, `crictl logs` shows their last messages";
        if (until[date] && strlen(until) > date + 9)
                limit = lkg_tool_format(" --until '%.*s %.8s UTC'", (int)date, until, until + date + 1);
        return lkg_tool_format("`journalctl %s%s -n 50` shows its last messages", which, limit);
}

/* Only the last one; earlier ones are in `lkgfs bad`. */
static void check_crash_loop(struct diagnosis *d)
{
        const struct lkg_strings *marks = &d->known->marks;
        const char *id = NULL;
        char time[32] = "";

        for (size_t i = 0; i < marks->n_items; i++) {
                struct lkg_value *mark =
                        lkg_view_read_json(&d->view, "bad/%s/%s", d->view.component, marks->items[i]);

                if (strcmp(lkg_tool_word(mark, "cause"), "crash_loop") != 0 ||
                    strcmp(lkg_tool_word(mark, "time"), time) <= 0)
                        continue;
                (void)snprintf(time, sizeof(time), "%s", lkg_tool_word(mark, "time"));
                id = marks->items[i];
        }
        if (id)
                add(d, LKG_WARNING, where_logged(d, time), "crash-looped with %s, which is bad since %s", id,
                    time);
}

/* While it is unknown which generation the component has read, the clock of a trial does not run. */
static void check_unseen(struct diagnosis *d)
{
        const struct lkg_value *starts = lkg_tool_decode(lkg_view_text(&d->view, "startups"));
        bool trial = lkg_known_on_trial(d->known),
             none = starts && lkg_value_type(starts) == LKG_LIST && lkg_value_size(starts) == 0;
        unsigned long unseen = lkg_known_unseen(d->known);

        if (!unseen)
                return;
        if (lkg_known_dynamic(d->known) && none)
                add(d, trial ? LKG_ERROR : LKG_WARNING,
                    "it reads another path (see its --config), or has run since before lkgfs: then restart "
                    "it",
                    "runs as process %lu, but no start of it was ever seen%s", unseen,
                    trial ? ": the trial cannot notice a crash loop" : "");
        else
                add(d, trial ? LKG_WARNING : LKG_NOTE,
                    "restart it when it suits: lkgfs then knows what it reads", LKG_UNSEEN "%s", unseen,
                    trial ? ", and the trial waits for a process that reads what is on trial" : "");
}

static void check_drift(struct diagnosis *d)
{
        size_t n = lkg_value_size(d->known->drift);

        if (d->known->drift_error < 0)
                return;
        check_unseen(d);
        if (n == 0)
                return;
        add(d, LKG_WARNING, "`lkgfs drift` shows all; restart it when it suits, or let restart.policy do so",
            "differs from what is served in %zu field%s: %s%s", n, n == 1 ? "" : "s",
            lkg_known_drift(d->known, 0), n == 1 ? "" : ", ...");
}

/* Once, for the node and not for the component. */
static void look_at_processes(struct diagnosis *d)
{
        const struct lkg_processes *processes = &d->known->processes;
        const char *component = d->view.component;
        bool warned = false; /* about a user that was configured */

        if (d->looked_at_processes)
                return;
        d->looked_at_processes = true;
        for (size_t i = 0; i < d->known->findings.n_findings; i++)
                warned |= d->known->findings.findings[i].code == LKG_NO_USER;
        d->view.component = NULL;
        for (size_t i = 0; i < processes->n; i++) {
                const struct lkg_process_told *told = &processes->items[i];
                const char *advice, *loss = lkg_process_loss(told->name, &advice),
                                    *ends = lkg_process_ends(told);

                if (lkg_process_missing(told))
                        add(d, LKG_ERROR, advice, "%s does not run: %s", told->name, loss);
                if (ends)
                        add(d, LKG_WARNING, LKG_ENDS_ADVICE, "%s", ends);
        }
        if (processes->no_user && !warned)
                add(d, LKG_NOTE,
                    "run `systemd-sysusers`, which creates the user lkgfs, and `systemctl reload lkgfs`; or "
                    "set "
                    "`engineUser: root` if this is intended",
                    "the engine runs as root, without capabilities: the user that it is to run as does not "
                    "exist");
        d->view.component = component;
}

/* ---- ports: /proc/net/tcp has the sockets (proc(5)), /proc/PID/fd their owners; it needs root ---- */

#define LISTEN 0x0a /* TCP_LISTEN in include/net/tcp_states.h of the kernel */

/* Return: the inode of a socket in @file that listens on @port; 0 = none. */
static unsigned long find_socket(const char *file, unsigned port)
{
        FILE *f = fopen(file, "re");
        unsigned long found = 0, inode;
        unsigned local, state;
        char line[512];

        while (f && !found && fgets(line, sizeof(line), f))
                if (sscanf(line, " %*[^:]: %*[0-9A-Fa-f]:%x %*s %x %*s %*s %*s %*s %*s %lu", &local, &state,
                           &inode) == 3 &&
                    local == port && state == LISTEN)
                        found = inode;
        if (f)
                (void)fclose(f);
        return found;
}

static bool holds(const char *pid, const char *wanted)
{
        struct lkg_strings names = { 0 };
        const char *directory = lkg_tool_format("/proc/%.20s/fd", pid);
        char target[64];

        (void)lkg_tool_names(AT_FDCWD, directory, DT_UNKNOWN, &names);
        for (size_t i = 0; i < names.n_items; i++) {
                ssize_t n = readlink(lkg_tool_format("%s/%s", directory, names.items[i]), target,
                                     sizeof(target) - 1);

                target[n < 0 ? 0 : n] = '\0';
                if (strcmp(target, wanted) == 0)
                        return true;
        }
        return false;
}

/* Return: the process that listens there, the first one if several do, and its name; 0 = none, or it is not known. */
static unsigned long find_holder(unsigned port, const char **ret_name)
{
        struct lkg_strings names = { 0 };
        unsigned long inode = find_socket("/proc/net/tcp", port);
        const char *wanted;

        if (!inode)
                inode = find_socket("/proc/net/tcp6", port);
        if (inode)
                (void)lkg_tool_names(AT_FDCWD, "/proc", DT_DIR, &names);
        wanted = lkg_tool_format("socket:[%lu]", inode);
        for (size_t i = names.n_items; i > 0; i--) {
                const char *pid = names.items[i - 1];

                if (*pid >= '1' && *pid <= '9' && holds(pid, wanted)) {
                        *ret_name = lkg_tool_program(pid);
                        return strtoul(pid, NULL, 10);
                }
        }
        return 0;
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
        const char *text = lkg_view_text(&d->view, "effective.yaml"), *name = "";
        unsigned long own = strtoul(lkg_tool_word(d->known->process, "pid"), NULL, 10);

        if (!strstr(text, "kind: KubeletConfiguration"))
                return;
        for (size_t i = 0; i < LKG_ARRAY_SIZE(fields); i++) {
                unsigned port = number_at_top(text, fields[i]);
                unsigned long pid = port ? find_holder(port, &name) : 0;

                if (pid && pid != own && strncmp(name, d->view.component, LKG_PROC_NAMES) != 0)
                        add(d, LKG_WARNING,
                            "end that process, or change the field: the component cannot start without the "
                            "port",
                            "%s %u is in use by process %lu (%s)", fields[i], port, pid, name);
        }
}

static void look_at_component(struct diagnosis *d)
{
        const char *generation;

        d->known = lkg_known_read(&d->view);
        generation = lkg_known_text(d->known, "generation");
        look_at_processes(d);
        check_condition(d);
        check_hold(d);
        if (*generation && strtoull(generation, NULL, 10) == 0)
                add(d, LKG_ERROR, "create a base or a drop-in; `lkgfs status` names the problem",
                    "no document is served");
        check_findings(d);
        check_assigned(d);
        check_crash_loop(d);
        check_drift(d);
        check_ports(d);
}

/* ---- the whole node ---- */

/* Check the view, or report why there is none. */
static void look_at_view(struct diagnosis *d)
{
        struct lkg_strings names = { 0 };
        const char *only = d->tool->options.component;
        struct lkg_error err = { 0 };
        bool found = false;
        int r;

        if (lkg_view_find(d->tool, &d->view, &err) < 0) {
                add(d, LKG_ERROR,
                    "start it with `systemctl start lkgfs`, or name another mount with --mountpoint; "
                    "journalctl -u lkgfs shows why it ended",
                    "%s", err.message);
                return;
        }
        r = lkg_view_components(&d->view, &names);
        if (r < 0)
                add(d, LKG_ERROR, "journalctl -u lkgfs", "%s/status: %s", d->view.root, strerror(-r));
        for (size_t i = 0; i < names.n_items; i++) {
                if (only && strcmp(only, names.items[i]) != 0)
                        continue;
                found = true;
                d->view.component = names.items[i];
                look_at_component(d);
        }
        d->view.component = NULL;
        if (r == 0 && !found)
                add(d, LKG_ERROR, "components[].name in the configuration lists the components",
                    "no component \"%.60s\" in %s", only ? only : "", d->view.root);
}

static int print_text(const struct lkg_tool *tool, const struct lkg_value *list, int status)
{
        LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf buf = LKG_BUF_INIT;
        bool colour = lkg_tool_colour_for(tool, STDOUT_FILENO);

        for (size_t i = 0; i < lkg_value_size(list); i++) {
                const struct lkg_value *item = lkg_list_get(list, i);
                const char *severity = lkg_tool_word(item, "severity"),
                           *component = lkg_tool_word(item, "component");

                lkg_buf_printf(&buf, "%s%s%s: %s%s%s\n    %s\n",
                               lkg_tool_paint(colour, lkg_tool_severity(severity)), severity,
                               lkg_tool_paint_end(colour), component, *component ? ": " : "",
                               lkg_tool_word(item, "text"), lkg_tool_word(item, "advice"));
        }
        if (!buf.size)
                lkg_buf_puts(&buf, "no problem found\n");
        return lkg_tool_print(&buf, status);
}

int lkg_verb_doctor(const struct lkg_tool *tool)
{
        struct diagnosis d = { .tool = tool, .list = lkg_tool_list() };
        int status = LKG_TOOL_OK;

        look_at_node(&d);
        look_at_view(&d);
        for (size_t i = 0; i < lkg_value_size(d.list); i++)
                if (lkg_tool_severity(lkg_tool_word(lkg_list_get(d.list, i), "severity")) != LKG_NOTE)
                        status = LKG_TOOL_DIFFERENT;
        return lkg_tool_structured(tool) ? lkg_tool_print_listed(tool, NULL, "problems", d.list, status)
                                         : print_text(tool, d.list, status);
}
