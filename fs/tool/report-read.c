/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads the parts of a report. Everything that may hang (the mount, the service manager, a log on a network file system) is a
 * job with a limit of its own; what a job has sent before the limit counts.
 *
 * Status and problems are the product of the verbs status and doctor: one place knows what is wrong and what to do about it. If
 * there is no view to read, the verbs check and blame judge the layers of this node instead.
 */
#include <ctype.h>
#include <fnmatch.h>
#include <sys/utsname.h>
#include <time.h>

#include "known.h"
#include "report.h"

#include <lkg/process.h>

#include "lkg-config.h"

#define MASK           "<masked>"

#define VIEW_LIMIT_S   8
#define JOB_LIMIT_S    5
#define JUDGE_LIMIT_S  20
#define BYTES_MAX      (64u << 20)
#define DEPTH_MAX      4 /* of the view */
#define FILES_MAX      4096u
#define FILE_BYTES_MAX (4u << 20)
#define VIEW_BYTES_MAX (24u << 20)
#define LOG_BYTES_MAX  (256u << 10)

/* ---- masks ---- */

/*
 * Masks what is not masked where it lies: lkg/ and our own configuration are documents in full, and command lines are those of
 * others. Everything else in a report was masked by who wrote it (docs/specification.md 2.13).
 */
static const char *mask_document(const char *text, size_t size)
{
        LKG_CLEANUP(lkg_report_deinit) struct lkg_report ignored = LKG_REPORT_INIT;
        LKG_CLEANUP(lkg_value_unrefp) struct lkg_value *doc = NULL;
        enum lkg_format format = lkg_detect_format(text, size);

        return lkg_decode(text, size, format, LKG_DECODE_UNTYPED, NULL, &ignored, &doc) < 0
                       ? NULL
                       : lkg_tool_masked(doc, format);
}

/* A word that names a credential hides itself, and the next one if it has no value: `--token=x`, `--token x`. */
static void mask_word(const char *word, size_t size, bool *hide_next, struct lkg_buf *ret)
{
        const char *equals = memchr(word, '=', size);
        size_t name_size = equals ? (size_t)(equals - word) : size;
        size_t dashes = 0;

        while (dashes < name_size && word[dashes] == '-')
                dashes++;
        if (*hide_next && dashes == 0) {
                lkg_buf_puts(ret, MASK);
                *hide_next = false;
                return;
        }
        *hide_next = false;
        if (!dashes || lkg_name_secrecy(word + dashes, name_size - dashes) == LKG_PUBLIC) {
                (void)lkg_mask_text(word, size, ret);
                return;
        }
        lkg_buf_append(ret, word, name_size);
        if (equals)
                lkg_buf_puts(ret, "=" MASK);
        *hide_next = !equals;
}

static void mask_line(const char *line, size_t size, struct lkg_buf *ret)
{
        bool hide_next = false;

        if (lkg_has_private_key(line, size)) {
                lkg_buf_puts(ret, MASK);
                return;
        }
        for (size_t at = 0; at < size;) {
                size_t n = 0;

                while (at + n < size && line[at + n] != ' ')
                        n++;
                if (n)
                        mask_word(line + at, n, &hide_next, ret);
                at += n;
                for (; at < size && line[at] == ' '; at++)
                        lkg_buf_putc(ret, ' ');
        }
}

static void mask_lines(const char *text, size_t size, struct lkg_buf *ret)
{
        for (size_t at = 0; at < size;) {
                const char *end = memchr(text + at, '\n', size - at);
                size_t n = end ? (size_t)(end - text) - at : size - at;

                mask_line(text + at, n, ret);
                if (end)
                        lkg_buf_putc(ret, '\n');
                at += n + 1;
        }
}

/* ---- the view ---- */

struct reading {
        const struct lkg_view *view;
        const char *component; /* NULL = all */
        bool masks;            /* these are documents in full */
        size_t n, bytes;
};

static void send_file(struct reading *reading, const char *path)
{
        LKG_CLEANUP(lkg_closep) int fd = -EBADF;
        const char *shown = NULL;
        char *text = NULL;
        struct stat st = { 0 };
        size_t size = 0;
        int r;

        lkg_parts_send(path, NULL, 0, -EINPROGRESS, 0);
        fd = openat(reading->view->fd, path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_NOFOLLOW | O_CLOEXEC);
        r = fd < 0 || fstat(fd, &st) < 0 ? -errno
            : S_ISREG(st.st_mode)        ? lkg_tool_read(fd, FILE_BYTES_MAX, &text, &size)
                                         : -EINVAL;
        if (r == 0 && lkg_view_is_no_answer(text))
                r = -ETIMEDOUT;
        if (r == 0) {
                shown = reading->masks ? mask_document(text, size) : text;
                r = shown ? 0 : -EBADMSG;
        }
        if (r == 0 && reading->bytes + size > VIEW_BYTES_MAX)
                r = -EFBIG;
        if (r < 0) {
                lkg_parts_send(path, NULL, 0, r, 0);
                return;
        }
        reading->bytes += size;
        lkg_parts_send(path, shown, reading->masks ? strlen(shown) : size, 0,
                       st.st_mtim.tv_sec > 0 ? (uint64_t)st.st_mtim.tv_sec : 0);
}

/* NOLINTNEXTLINE(misc-no-recursion): at most DEPTH_MAX deep */
static void send_tree(struct reading *reading, const char *path, unsigned depth)
{
        struct lkg_strings names = { 0 };
        int r = depth < DEPTH_MAX ? lkg_tool_names(reading->view->fd, path, DT_UNKNOWN, &names) : 0;

        if (r < 0 && r != -ENOENT) /* nothing has been served yet: no history */
                lkg_parts_send(path, NULL, 0, r, 0);
        for (size_t i = 0; i < names.n_items; i++) {
                char *child = lkg_tool_format("%s/%s", path, names.items[i]);
                struct stat st;

                if ((depth == 0 && reading->component && !reading->masks &&
                     strcmp(names.items[i], reading->component) != 0) ||
                    reading->n++ >= FILES_MAX)
                        continue;
                if (fstatat(reading->view->fd, child, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(st.st_mode))
                        send_tree(reading, child, depth + 1);
                else
                        send_file(reading, child);
        }
}

static int read_view(const struct lkg_tool *tool)
{
        static const char *const directories[] = { "status", "bad", "lkg", "history", "layers" };
        struct lkg_view view = { 0 };
        struct reading reading = { .view = &view, .component = tool->options.component };
        struct lkg_error err = { 0 };

        lkg_parts_send("view", NULL, 0, -EINPROGRESS, 0);
        if (lkg_view_find(tool, &view, &err) < 0) {
                lkg_parts_send("view", err.message, strlen(err.message), -ENOTCONN, 0);
                return LKG_TOOL_FAILED;
        }
        lkg_parts_send("view", view.root, strlen(view.root), 0, 0);
        for (size_t i = 0; i < LKG_ARRAY_SIZE(directories); i++) {
                reading.masks = strcmp(directories[i], "lkg") == 0;
                send_tree(&reading, directories[i], 0);
        }
        if (reading.n > FILES_MAX)
                lkg_parts_send("view-files-left-out", NULL, 0, -E2BIG, 0);
        return LKG_TOOL_OK;
}

/* ---- the system ---- */

static int read_text(const char *path, char **ret, size_t *ret_size)
{
        LKG_CLEANUP(lkg_closep) int fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);

        return fd < 0 ? -errno : lkg_tool_read(fd, 16u << 20, ret, ret_size);
}

/* "" = it cannot be read */
static char *text_of(const char *path)
{
        char *text;
        size_t size;

        return read_text(path, &text, &size) < 0 ? lkg_tool_cut("", 0) : text;
}

/* `KEY=...` with what stands behind @after in a file, up to the end of the line or the next quote. */
static void put_line_of(struct lkg_buf *buf, const char *key, const char *path, const char *after)
{
        const char *at = strstr(text_of(path), after);

        at = at ? at + strlen(after) : "";
        at += *at == '"';
        if (*at)
                lkg_buf_printf(buf, "%s=%.*s\n", key, (int)strcspn(at, "\"\n"), at);
}

static void put_boot_time(struct lkg_buf *buf, uint64_t since_boot_ns)
{
        struct timespec up = { 0 };
        char text[21];

        (void)clock_gettime(CLOCK_BOOTTIME, &up);
        lkg_format_rfc3339(lkg_realtime_ns() - (uint64_t)up.tv_sec * LKG_NSEC_PER_SEC + since_boot_ns, text);
        lkg_buf_puts(buf, text);
}

static void send_system(void)
{
        LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf buf = LKG_BUF_INIT;
        struct utsname uts;
        char now[21];

        lkg_format_rfc3339(lkg_realtime_ns(), now);
        lkg_buf_printf(&buf, "time=%s\ntool=lkgfs %s\n", now, LKG_VERSION);
        if (uname(&uts) == 0)
                lkg_buf_printf(&buf, "host=%s\nkernel=%s %s %s %s\n", uts.nodename, uts.sysname, uts.release,
                               uts.version, uts.machine);
        put_line_of(&buf, "distribution", "/etc/os-release", "PRETTY_NAME=");
        lkg_buf_puts(&buf, "booted=");
        put_boot_time(&buf, 0);
        lkg_buf_putc(&buf, '\n');
        put_line_of(&buf, "load", "/proc/loadavg", "");
        put_line_of(&buf, "memory", "/proc/meminfo", "");
        put_line_of(&buf, "pressure_memory", "/proc/pressure/memory", "");
        put_line_of(&buf, "pressure_io", "/proc/pressure/io", "");
        lkg_buf_printf(&buf, "cgroup=%s\n",
                       access("/sys/fs/cgroup/cgroup.controllers", F_OK) == 0 ? "2" : "1");
        lkg_buf_printf(&buf, "service_manager=%s\n",
                       access("/run/systemd/system", F_OK) == 0 ? "systemd" : "not systemd");
        put_line_of(&buf, "apparmor", "/sys/module/apparmor/parameters/enabled", "");
        put_line_of(&buf, "selinux_enforcing", "/sys/fs/selinux/enforce", "");
        lkg_buf_printf(&buf, "fuse_device=%s\n",
                       access("/dev/fuse", F_OK) == 0 ? "present" : strerror(errno));
        lkg_buf_printf(&buf, LKG_TOOL_DISABLED "=%s\n",
                       access(LKG_TOOL_DISABLED, F_OK) == 0 ? "exists" : "absent");
        lkg_buf_printf(&buf, "run_by=uid %u\n", (unsigned)geteuid());
        lkg_parts_send("environment/system", lkg_buf_text(&buf), buf.size, 0, 0);
}

/* Those of lkgfs, and those below them: the options of others may hold credentials. */
static void send_mounts(void)
{
        LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf buf = LKG_BUF_INIT;
        struct lkg_strings mounts = { 0 };
        char *mountinfo;
        size_t size;
        int r = read_text("/proc/self/mountinfo", &mountinfo, &size);
        const char *at = r < 0 ? "" : mountinfo, *line;

        (void)lkg_view_mounts(&mounts);
        while (lkg_tool_next_line(&at, &line, &size)) {
                char *copy = lkg_tool_cut(line, size);
                bool ours = strstr(copy, " - fuse.lkgfs ");

                for (size_t i = 0; !ours && i < mounts.n_items; i++) {
                        const char *below = strstr(copy, mounts.items[i]);

                        ours = below && below[strlen(mounts.items[i])] == '/';
                }
                if (ours)
                        lkg_buf_printf(&buf, "%s\n", copy);
        }
        lkg_parts_send("environment/mounts", lkg_buf_text(&buf), buf.size, r, 0);
}

/* ---- processes ---- */

static bool is_interesting(const char *comm)
{
        static const char *const names[] = { "lkgfsd",       "lkgfs-engine", "lkgfs-fs",
                                             "lkgfs-notify", "kubelet",      "kube-proxy" };

        for (size_t i = 0; i < LKG_ARRAY_SIZE(names); i++)
                if (strcmp(comm, names[i]) == 0)
                        return true;
        return false;
}

/* The value of "Key:" in /proc/PID/status, without blanks around it. */
static void put_status(struct lkg_buf *buf, const char *status, const char *key)
{
        const char *at = strstr(status, key);

        if (at) {
                at += strlen(key);
                at += strspn(at, "\t ");
                lkg_buf_append(buf, at, strcspn(at, "\n\t"));
        }
        lkg_buf_putc(buf, '\t');
}

/* NAME, pid, parent, uid, state, resident memory, start, program, command line; tabs between them. */
static void put_process(struct lkg_buf *buf, const char *comm, const char *pid)
{
        static const char *const keys[] = { "\nPPid:", "\nUid:", "\nState:", "\nVmRSS:" };
        uint64_t ticks = lkg_process_start_time(atoi(pid)), hz = (uint64_t)sysconf(_SC_CLK_TCK);
        char exe[512];
        const char *status = text_of(lkg_tool_format("/proc/%.20s/status", pid));
        char *words;
        size_t size;
        ssize_t n;

        lkg_buf_printf(buf, "%s\t%s\t", comm, pid);
        for (size_t i = 0; i < LKG_ARRAY_SIZE(keys); i++)
                put_status(buf, status, keys[i]);
        put_boot_time(buf, hz ? ticks * (LKG_NSEC_PER_SEC / hz) : 0);
        lkg_buf_putc(buf, '\t');
        n = readlink(lkg_tool_format("/proc/%.20s/exe", pid), exe, sizeof(exe) - 1);
        exe[n < 0 ? 0 : n] = '\0';
        lkg_tool_put_clean(buf, n < 0 ? strerror(errno) : exe);
        lkg_buf_putc(buf, '\t');
        if (read_text(lkg_tool_format("/proc/%.20s/cmdline", pid), &words, &size) == 0) {
                for (size_t i = 0; i + 1 < size; i++)
                        if (words[i] == '\0' || words[i] == '\n' || words[i] == '\t')
                                words[i] = ' ';
                mask_lines(words, strlen(words), buf);
        }
        lkg_buf_putc(buf, '\n');
}

/* Those that began first come first. */
static void send_processes(void)
{
        LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf buf = LKG_BUF_INIT;
        struct lkg_strings names = { 0 };
        int r = lkg_tool_names(AT_FDCWD, "/proc", DT_DIR, &names);

        for (size_t i = names.n_items; i > 0; i--) {
                const char *pid = names.items[i - 1],
                           *comm = isdigit((unsigned char)*pid) ? lkg_tool_program(pid) : "";

                if (is_interesting(comm))
                        put_process(&buf, comm, pid);
        }
        lkg_parts_send("environment/processes", lkg_buf_text(&buf), buf.size, r, 0);
}

/* ---- our own configuration ---- */

static void send_configuration(const char *path)
{
        const char *shown = NULL;
        char *text;
        size_t size;
        int r = read_text(path, &text, &size);

        if (r == 0)
                shown = mask_document(text, size);
        if (r == 0 && !shown)
                r = -EBADMSG;
        if (r != -ENOENT)
                lkg_parts_send(lkg_tool_format("config%s", path), shown, shown ? strlen(shown) : 0, r, 0);
}

static void send_drop_ins(const char *directory)
{
        struct lkg_strings names = { 0 };

        (void)lkg_tool_names(AT_FDCWD, lkg_tool_format("%s/.", directory), DT_UNKNOWN, &names);
        for (size_t i = 0; i < names.n_items; i++)
                if (fnmatch("?*.conf", names.items[i], 0) == 0)
                        send_configuration(lkg_tool_format("%s/%s", directory, names.items[i]));
}

static int read_system(const struct lkg_tool *tool)
{
        const char *path = lkg_tool_node_path(tool), *slash = strrchr(path, '/');

        send_system();
        send_processes();
        send_mounts();
        send_configuration(path);
        if (slash)
                send_drop_ins(lkg_tool_format("%.*s/config.d", (int)(slash - path), path));
        send_drop_ins(LKG_CONFIG_VENDOR_DIR);
        return LKG_TOOL_OK;
}

/* ---- the log ---- */

/* The end of --log, from the start of a line. */
static int read_log(const struct lkg_tool *tool)
{
        LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf masked = LKG_BUF_INIT;
        LKG_CLEANUP(lkg_closep)
        int fd = open(tool->options.report.log, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
        char *text = lkg_tool_keep(calloc(LOG_BYTES_MAX + 1, 1));
        struct stat st = { 0 };
        int r = fd < 0 || fstat(fd, &st) < 0 ? -errno : 0;
        bool whole = st.st_size <= LOG_BYTES_MAX;
        const char *from;

        if (r == 0 && pread(fd, text, LOG_BYTES_MAX, whole ? 0 : st.st_size - LOG_BYTES_MAX) < 0)
                r = -errno;
        from = whole ? NULL : strchr(text, '\n');
        from = from ? from + 1 : text;
        mask_lines(from, strlen(from), &masked);
        lkg_parts_send("log", masked.data, masked.size, r, 0);
        return LKG_TOOL_OK;
}

/* ---- jobs ---- */

struct work {
        const struct lkg_tool *tool;
        int (*run)(const struct lkg_tool *tool);
        const char *const *program; /* instead */
};

static int run_work(void *userdata)
{
        const struct work *work = userdata;

        if (work->run)
                return work->run(work->tool);
        (void)execvp(work->program[0], (char *const *)(uintptr_t)work->program);
        return LKG_TOOL_FAILED;
}

/*
 * @name: of the part that its whole output becomes, without secrets, which are masked in a log; NULL: it sends parts.
 * Return: true: it has ended.
 */
static bool collect_work(struct work work, unsigned limit_s, const char *name, struct lkg_parts *parts)
{
        const struct lkg_job_spec spec = { .run = run_work, .userdata = &work };
        LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf masked = LKG_BUF_INIT;
        LKG_CLEANUP(lkg_freep) char *product = lkg_must(malloc(BYTES_MAX));
        struct lkg_job_output out = { .data = product, .max = BYTES_MAX };
        bool log = name && strcmp(name, "log") == 0;
        char said[4096];
        struct lkg_job_output err = { .data = said, .max = sizeof(said) };
        int status = 0, r = lkg_job_run(&spec, limit_s * LKG_NSEC_PER_SEC, &out, &err, &status);

        if (name && (r < 0 || out.size)) {
                mask_lines(out.data, log && r == 0 ? out.size : 0, &masked);
                lkg_parts_add(parts, name, log ? masked.data : out.data,
                              r < 0 ? 0
                              : log ? masked.size
                                    : out.size,
                              r, 0);
        }
        if (!name)
                lkg_parts_receive(parts, out.data, out.size);
        else if (err.size && !out.size && !log) /* beside a product they say nothing new */
                lkg_parts_add(parts, lkg_tool_format("%.50s.messages", name), said, err.size, 0, 0);
        return r == 0;
}

static bool collect(const struct lkg_tool *tool, int (*run)(const struct lkg_tool *tool), unsigned limit_s,
                    const char *name, struct lkg_parts *parts)
{
        return collect_work((struct work){ .tool = tool, .run = run }, limit_s, name, parts);
}

static void collect_program(const char *const *words, const char *name, struct lkg_parts *parts)
{
        (void)collect_work((struct work){ .program = words }, JOB_LIMIT_S, name, parts);
}

/* Without a view the layers of this node are judged. */
static void judge_layers(const struct lkg_tool *tool, struct lkg_parts *parts)
{
        struct lkg_value *check;
        struct lkg_tool judging = *tool;
        const struct lkg_part *part;
        const struct lkg_value *item;

        (void)collect(tool, lkg_verb_check, JUDGE_LIMIT_S, "judged/check.json", parts);
        part = lkg_parts_find(parts, "judged/check.json");
        check = part ? lkg_tool_decode(part->data) : NULL;
        for (size_t i = 0; (item = lkg_tool_item(check, "judged", i)); i++) {
                judging.options.component = lkg_map_get_string(item, "component");
                if (judging.options.component)
                        (void)collect(
                                &judging, lkg_verb_blame, JUDGE_LIMIT_S,
                                lkg_tool_format("judged/%.100s/origin.json", judging.options.component),
                                parts);
        }
}

/* Where the fields come from is not known, because there is no view or the engine is silent. */
static bool lacks_origins(const struct lkg_parts *parts)
{
        bool any = false;

        for (size_t i = 0; i < parts->n; i++) {
                if (fnmatch("status/*/origin", parts->items[i].name, FNM_PATHNAME) != 0)
                        continue;
                if (parts->items[i].error < 0 || !parts->items[i].size)
                        return true;
                any = true;
        }
        return !any;
}

/* A job's working directory is the root. The mount is not touched. */
static const char *absolute(const char *path)
{
        LKG_CLEANUP(lkg_freep) char *cwd = NULL;

        if (!path || *path == '/')
                return path;
        cwd = getcwd(NULL, 0);
        return lkg_tool_format("%s/%s", cwd ? cwd : ".", path);
}

void lkg_report_collect(const struct lkg_tool *tool, struct lkg_parts *ret)
{
        static const char *const manager[] = { "systemctl", "--version", NULL };
        static const char properties[] =
                "--property=LoadState,ActiveState,SubState,Result,NRestarts,MainPID,ExecMainStartTimestamp,"
                "ExecMainStatus,FragmentPath,DropInPaths,UnitFileState,NeedDaemonReload,Version";
        static const char *const unit[] = { "systemctl",  "show",     "lkgfs.service",
                                            "--no-pager", properties, NULL };
        static const char *const journal[] = { "journalctl",         "--unit=lkgfs.service",
                                               "--lines=1000",       "--utc",
                                               "--no-pager",         "--quiet",
                                               "--output=short-iso", NULL };
        struct lkg_tool at = *tool;

        at.options.format = LKG_TOOL_JSON; /* of the verbs that are asked */
        at.options.mountpoint = absolute(lkg_view_named(tool));
        at.options.node_config = absolute(lkg_tool_node_path(tool));
        at.options.report.log = absolute(at.options.report.log);
        (void)collect(&at, read_system, JOB_LIMIT_S, NULL, ret);
        if (collect(&at, read_view, VIEW_LIMIT_S, NULL, ret)) {
                (void)collect(&at, lkg_verb_doctor, JOB_LIMIT_S, "doctor.json", ret);
                (void)collect(&at, lkg_verb_status, JOB_LIMIT_S, "status.json", ret);
        }
        if (lacks_origins(ret))
                judge_layers(&at, ret);
        if (access("/run/systemd/system", F_OK) == 0) {
                collect_program(manager, "environment/systemd", ret);
                collect_program(unit, "environment/lkgfs.service", ret);
        }
        if (at.options.report.log)
                (void)collect(&at, read_log, JOB_LIMIT_S, NULL, ret);
        else
                collect_program(journal, "log", ret);
}
