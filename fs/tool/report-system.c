/* SPDX-License-Identifier: Apache-2.0 */
/* The node around the view for a report: system, mounts, processes, our own configuration, the log. Runs in child processes. */
#include "report-parts.h"

#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/utsname.h>

#include <lkg/file.h>

#include "lkg-config.h"

#define FILE_BYTES_MAX (1u << 20)
#define LOG_BYTES_MAX  (256u << 10)
#define LOG_LINES      "1000"
#define DISABLED       "/etc/lkgfs/disabled"

/* Return: its text; NULL with *ret_error. Caller frees. */
static char *read_text(const char *path, size_t *ret_size, int *ret_error)
{
        LKG_CLEANUP(lkg_closep) int fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
        char *text = NULL;
        size_t size = 0;
        int r = fd < 0 ? -errno : lkg_read_file(fd, FILE_BYTES_MAX, &text, &size, NULL);

        if (ret_error)
                *ret_error = r;
        if (ret_size)
                *ret_size = size;
        return r < 0 ? NULL : text;
}

static void put_first_line(struct lkg_buf *buf, const char *key, const char *path)
{
        LKG_CLEANUP(lkg_freep) char *text = read_text(path, NULL, NULL);

        if (text && *text)
                lkg_buf_printf(buf, "%s=%.*s\n", key, (int)strcspn(text, "\n"), text);
}

/* PRETTY_NAME="Debian GNU/Linux 12 (bookworm)" */
static void put_distribution(struct lkg_buf *buf)
{
        LKG_CLEANUP(lkg_freep) char *text = read_text("/etc/os-release", NULL, NULL);
        const char *name = text ? strstr(text, "PRETTY_NAME=") : NULL;

        if (!name)
                return;
        name += strlen("PRETTY_NAME=");
        name += *name == '"';
        lkg_buf_printf(buf, "distribution=%.*s\n", (int)strcspn(name, "\"\n"), name);
}

static void send_system(void)
{
        LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf buf = LKG_BUF_INIT;
        struct timespec up = { 0 };
        struct utsname uts;
        char now[21], boot[21];

        lkg_format_rfc3339(lkg_realtime_ns(), now);
        (void)clock_gettime(CLOCK_BOOTTIME, &up);
        lkg_format_rfc3339(lkg_realtime_ns() - (uint64_t)up.tv_sec * LKG_NSEC_PER_SEC, boot);
        lkg_buf_printf(&buf, "time=%s\ntool=lkgfs %s\n", now, LKG_VERSION);
        if (uname(&uts) == 0)
                lkg_buf_printf(&buf, "host=%s\nkernel=%s %s %s %s\n", uts.nodename, uts.sysname, uts.release,
                               uts.version, uts.machine);
        put_distribution(&buf);
        lkg_buf_printf(&buf, "booted=%s\n", boot);
        put_first_line(&buf, "load", "/proc/loadavg");
        put_first_line(&buf, "memory", "/proc/meminfo");
        put_first_line(&buf, "pressure_memory", "/proc/pressure/memory");
        put_first_line(&buf, "pressure_io", "/proc/pressure/io");
        lkg_buf_printf(&buf, "cgroup=%s\n",
                       access("/sys/fs/cgroup/cgroup.controllers", F_OK) == 0 ? "2" : "1");
        lkg_buf_printf(&buf, "service_manager=%s\n",
                       access("/run/systemd/system", F_OK) == 0 ? "systemd" : "not systemd");
        put_first_line(&buf, "apparmor", "/sys/module/apparmor/parameters/enabled");
        put_first_line(&buf, "selinux_enforcing", "/sys/fs/selinux/enforce");
        lkg_buf_printf(&buf, "fuse_device=%s\n",
                       access("/dev/fuse", F_OK) == 0 ? "present" : strerror(errno));
        lkg_buf_printf(&buf, DISABLED "=%s\n", access(DISABLED, F_OK) == 0 ? "exists" : "absent");
        lkg_buf_printf(&buf, "run_by=uid %u\n", (unsigned)geteuid());
        if (!lkg_buf_failed(&buf))
                lkg_parts_send("environment/system", buf.data, buf.size, 0, 0);
}

/* Those of lkgfs, and those below them: the options of others may hold credentials. */
static void send_mounts(void)
{
        LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf buf = LKG_BUF_INIT;
        LKG_CLEANUP(lkg_freep) char *mountinfo = NULL;
        char **mounts = NULL;
        size_t n = 0;
        int r = lkg_view_read_mountinfo(&mountinfo);

        if (r == 0)
                r = lkg_view_find_mounts(mountinfo, &mounts, &n);
        for (const char *line = mountinfo; r == 0 && line && *line;
             line += strcspn(line, "\n") + (line[strcspn(line, "\n")] != '\0')) {
                int size = (int)strcspn(line, "\n");
                LKG_CLEANUP(lkg_freep) char *copy = strndup(line, (size_t)size);
                bool ours = copy && strstr(copy, " - fuse.lkgfs ");

                for (size_t i = 0; copy && !ours && i < n; i++) {
                        const char *at = strstr(copy, mounts[i]);

                        ours = at && at[strlen(mounts[i])] == '/';
                }
                if (ours)
                        lkg_buf_printf(&buf, "%.*s\n", size, line);
        }
        lkg_view_free_mounts(mounts, n);
        if (!lkg_buf_failed(&buf))
                lkg_parts_send("environment/mounts", buf.data, buf.size, r, 0);
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
        const char *at = status ? strstr(status, key) : NULL;

        if (at) {
                at += strlen(key);
                at += strspn(at, "\t ");
                lkg_buf_append(buf, at, strcspn(at, "\n\t"));
        }
        lkg_buf_putc(buf, '\t');
}

static void put_started(struct lkg_buf *buf, int pid)
{
        uint64_t ticks = lkg_process_start_time(pid), hz = (uint64_t)sysconf(_SC_CLK_TCK);
        struct timespec up = { 0 };
        char text[21];

        (void)clock_gettime(CLOCK_BOOTTIME, &up);
        lkg_format_rfc3339(lkg_realtime_ns() - (uint64_t)up.tv_sec * LKG_NSEC_PER_SEC +
                                   (hz ? ticks * (LKG_NSEC_PER_SEC / hz) : 0),
                           text);
        lkg_buf_printf(buf, "%s\t", text);
}

/* NAME, pid, parent, uid, state, resident memory, start, program, command line; tabs between them. */
static void put_process(struct lkg_buf *buf, const char *comm, const char *pid)
{
        char path[64], exe[512];
        LKG_CLEANUP(lkg_freep) char *status = NULL;
        LKG_CLEANUP(lkg_freep) char *words = NULL;
        size_t size = 0;
        ssize_t n;

        (void)snprintf(path, sizeof(path), "/proc/%.20s/status", pid);
        status = read_text(path, NULL, NULL);
        lkg_buf_printf(buf, "%s\t%s\t", comm, pid);
        put_status(buf, status, "\nPPid:");
        put_status(buf, status, "\nUid:");
        put_status(buf, status, "\nState:");
        put_status(buf, status, "\nVmRSS:");
        put_started(buf, atoi(pid));
        (void)snprintf(path, sizeof(path), "/proc/%.20s/exe", pid);
        n = readlink(path, exe, sizeof(exe) - 1);
        exe[n < 0 ? 0 : n] = '\0';
        lkg_tool_put_clean(buf, n < 0 ? strerror(errno) : exe);
        lkg_buf_putc(buf, '\t');
        (void)snprintf(path, sizeof(path), "/proc/%.20s/cmdline", pid);
        words = read_text(path, &size, NULL);
        for (size_t i = 0; words && i + 1 < size; i++)
                if (words[i] == '\0' || words[i] == '\n' || words[i] == '\t')
                        words[i] = ' ';
        if (words)
                lkg_report_mask_lines(words, strlen(words), buf);
        lkg_buf_putc(buf, '\n');
}

static void send_processes(void)
{
        LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf buf = LKG_BUF_INIT;
        DIR *proc = opendir("/proc");
        int r = proc ? 0 : -errno;

        for (const struct dirent *e = proc ? readdir(proc) : NULL; e; e = readdir(proc)) {
                LKG_CLEANUP(lkg_freep) char *comm = NULL;
                char path[64];

                if (!isdigit((unsigned char)e->d_name[0]))
                        continue;
                (void)snprintf(path, sizeof(path), "/proc/%.20s/comm", e->d_name);
                comm = read_text(path, NULL, NULL);
                if (!comm)
                        continue;
                comm[strcspn(comm, "\n")] = '\0';
                if (is_interesting(comm))
                        put_process(&buf, comm, e->d_name);
        }
        if (proc)
                (void)closedir(proc);
        if (!lkg_buf_failed(&buf))
                lkg_parts_send("environment/processes", buf.data, buf.size, r, 0);
}

/* ---- our own configuration ---- */

static void send_configuration(const char *path)
{
        LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf masked = LKG_BUF_INIT;
        LKG_CLEANUP(lkg_freep) char *name = NULL;
        LKG_CLEANUP(lkg_freep) char *text = NULL;
        size_t size = 0;
        int r;

        if (asprintf(&name, "config%s", path) < 0) {
                name = NULL;
                return;
        }
        text = read_text(path, &size, &r);
        if (r == 0)
                r = lkg_report_mask_document(text, size, &masked);
        if (r != -ENOENT)
                lkg_parts_send(name, masked.data, masked.size, r, 0);
}

static int is_conf(const struct dirent *entry)
{
        size_t n = strlen(entry->d_name);

        return n > 5 && strcmp(entry->d_name + n - 5, ".conf") == 0;
}

static void send_drop_ins(const char *directory)
{
        struct dirent **entries = NULL;
        int n = scandir(directory, &entries, is_conf, alphasort);

        for (int i = 0; i < n; i++) {
                LKG_CLEANUP(lkg_freep) char *path = NULL;

                if (asprintf(&path, "%s/%s", directory, entries[i]->d_name) < 0)
                        path = NULL;
                else
                        send_configuration(path);
                free(entries[i]);
        }
        free(entries);
}

static void send_configurations(const struct lkg_tool *tool)
{
        const char *path = lkg_tool_node_path(tool), *slash = strrchr(path, '/');
        LKG_CLEANUP(lkg_freep) char *directory = NULL;

        send_configuration(path);
        if (slash && asprintf(&directory, "%.*s/config.d", (int)(slash - path), path) < 0)
                directory = NULL;
        if (directory)
                send_drop_ins(directory);
        send_drop_ins(LKG_CONFIG_VENDOR_DIR);
}

int lkg_report_read_system(const struct lkg_tool *tool)
{
        send_system();
        send_processes();
        send_mounts();
        send_configurations(tool);
        return LKG_TOOL_OK;
}

/* ---- the log ---- */

/* The end of --log, from the start of a line. */
static int read_tail(const char *path)
{
        LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf masked = LKG_BUF_INIT;
        LKG_CLEANUP(lkg_closep) int fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
        LKG_CLEANUP(lkg_freep) char *text = malloc(LOG_BYTES_MAX + 1);
        struct stat st;
        ssize_t n;
        char *from;

        if (fd < 0 || !text || fstat(fd, &st) < 0)
                return -errno;
        n = pread(fd, text, LOG_BYTES_MAX, st.st_size > LOG_BYTES_MAX ? st.st_size - LOG_BYTES_MAX : 0);
        if (n < 0)
                return -errno;
        text[n] = '\0';
        from = st.st_size > LOG_BYTES_MAX ? strchr(text, '\n') : NULL;
        from = from ? from + 1 : text;
        lkg_report_mask_lines(from, strlen(from), &masked);
        lkg_parts_send("log", masked.data, masked.size, 0, 0);
        return 0;
}

int lkg_report_read_log(const struct lkg_tool *tool)
{
        int r;

        if (!tool->options.log) {
                (void)execlp("journalctl", "journalctl", "--unit=lkgfs.service", "--lines=" LOG_LINES,
                             "--utc", "--no-pager", "--quiet", "--output=short-iso", NULL);
                return LKG_TOOL_FAILED;
        }
        r = read_tail(tool->options.log);
        if (r < 0)
                lkg_parts_send("log", NULL, 0, r, 0);
        return LKG_TOOL_OK;
}
