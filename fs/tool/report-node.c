/* SPDX-License-Identifier: Apache-2.0 */
/* The node in a report: processes, system, mounts, our own configuration, the log, and what could not be read. */
#include "report-page.h"
#include "processes.h"

#define N_COLUMNS 9

bool lkg_report_fact(const char *text, const char *key, char ret[static 256])
{
        size_t n = strlen(key);

        ret[0] = '\0';
        for (; *text; text += strcspn(text, "\n") + (text[strcspn(text, "\n")] != '\0')) {
                if (strncmp(text, key, n) != 0 || text[n] != '=')
                        continue;
                (void)snprintf(ret, 256, "%.*s", (int)strcspn(text + n + 1, "\n"), text + n + 1);
                return *ret;
        }
        return false;
}

/* ---- processes ---- */

/* The columns of environment/processes; the last two, program and command line, share a cell. */
static void put_process(char *line, struct lkg_buf *buf)
{
        static const char *const labels[N_COLUMNS - 2] = { "",      "pid",    "parent", "uid",
                                                           "state", "memory", "started" };

        lkg_buf_puts(buf, "<tr>");
        for (size_t i = 0; i < N_COLUMNS; i++) {
                const char *text = line ? strsep(&line, "\t") : "";

                if (i < N_COLUMNS - 2) {
                        lkg_buf_printf(buf, "<td class=\"num\" data-label=\"%s\">", labels[i]);
                        lkg_html_text(buf, text);
                        lkg_buf_puts(buf, "</td>");
                } else if (i == N_COLUMNS - 2) {
                        lkg_buf_puts(buf, "<td class=\"mono long\">");
                        lkg_html_text(buf, text);
                } else {
                        lkg_buf_puts(buf, "<br>");
                        lkg_html_element(buf, "span", "soft", text);
                        lkg_buf_puts(buf, "</td>");
                }
        }
        lkg_buf_puts(buf, "</tr>\n");
}

static void put_processes(const char *text, struct lkg_buf *buf)
{
        lkg_buf_puts(
                buf,
                "<table><thead><tr><th>Process</th><th>Pid</th><th>Parent</th><th>Uid</th><th>State</th>"
                "<th>Memory</th><th>Started</th><th>Program, command line</th></tr></thead>\n<tbody>\n");
        while (*text) {
                LKG_CLEANUP(lkg_freep) char *line = strndup(text, strcspn(text, "\n"));

                if (line)
                        put_process(line, buf);
                buf->failed |= !line;
                text += strcspn(text, "\n");
                text += *text != '\0';
        }
        lkg_buf_puts(buf, "</tbody></table>\n");
}

/* As the file server knows it, which is told of each death. */
static void put_told(const struct lkg_parts *parts, struct lkg_buf *buf)
{
        struct lkg_processes processes;
        char component[256];

        if (!lkg_parts_under(parts, "status/", 0, component))
                return;
        lkg_processes_parse(lkg_parts_text(parts, "status/%s/metrics.prom", component), &processes);
        if (processes.n == 0)
                return;
        lkg_buf_puts(buf, "<p>The file server says: ");
        for (size_t i = 0; i < processes.n; i++) {
                const char *advice = NULL;
                bool up = processes.items[i].up;

                lkg_buf_puts(buf, i ? ", " : "");
                lkg_html_text(buf, processes.items[i].name);
                lkg_buf_puts(buf, up ? " runs" : " does not run");
                if (!up) {
                        lkg_buf_puts(buf, " (");
                        lkg_html_text(buf, lkg_process_loss(processes.items[i].name, &advice));
                        lkg_buf_puts(buf, ")");
                }
        }
        lkg_buf_puts(buf, processes.engine_silent ? "; the engine does not answer.</p>\n" : ".</p>\n");
}

void lkg_report_processes(const struct lkg_parts *parts, struct lkg_buf *buf)
{
        const char *text = lkg_parts_text(parts, "environment/processes");

        lkg_html_section(buf, "processes", "Processes", NULL);
        put_told(parts, buf);
        if (*text)
                put_processes(text, buf);
        else
                lkg_buf_puts(buf, "<p>No process of lkgfs, kubelet or kube-proxy was found.</p>\n");
        lkg_buf_puts(buf, "</section>\n");
}

/* ---- environment ---- */

static void put_pairs(const char *text, struct lkg_buf *buf)
{
        lkg_buf_puts(buf, "<dl>\n");
        for (; *text; text += strcspn(text, "\n") + (text[strcspn(text, "\n")] != '\0')) {
                size_t line = strcspn(text, "\n"), key = strcspn(text, "=\n");

                if (key + 1 >= line)
                        continue;
                lkg_buf_puts(buf, "<dt>");
                for (size_t i = 0; i < key; i++)
                        lkg_html_bytes(buf, text[i] == '_' ? " " : text + i, 1);
                lkg_buf_puts(buf, "</dt><dd>");
                lkg_html_bytes(buf, text + key + 1, line - key - 1);
                lkg_buf_puts(buf, "</dd>\n");
        }
        lkg_buf_puts(buf, "</dl>\n");
}

static void put_part(const struct lkg_part *part, const char *title, struct lkg_buf *buf)
{
        if (!part)
                return;
        lkg_buf_puts(buf, "<details><summary>");
        lkg_html_text(buf, title);
        lkg_buf_puts(buf, "</summary>\n");
        if (part->error < 0) {
                lkg_buf_puts(buf, "<p>It could not be read: ");
                lkg_html_text(buf, strerror(-part->error));
                lkg_buf_puts(buf, ".</p>\n");
        } else {
                lkg_html_element(buf, "pre", "wrap", *part->data ? part->data : "(empty)");
                lkg_buf_putc(buf, '\n');
        }
        lkg_buf_puts(buf, "</details>\n");
}

void lkg_report_environment(const struct lkg_parts *parts, struct lkg_buf *buf)
{
        lkg_html_section(buf, "environment", "Environment", NULL);
        put_pairs(lkg_parts_text(parts, "environment/system"), buf);
        put_part(lkg_parts_find(parts, "environment/mounts"), "Mounts of lkgfs", buf);
        put_part(lkg_parts_find(parts, "environment/lkgfs.service"), "systemd: lkgfs.service", buf);
        put_part(lkg_parts_find(parts, "environment/systemd"), "systemd: version", buf);
        for (const struct lkg_part *part = NULL; (part = lkg_parts_next(parts, part, "config/"));)
                put_part(part, part->name + strlen("config"), buf);
        if (!lkg_parts_next(parts, NULL, "config/"))
                lkg_buf_puts(buf, "<p>There is no configuration of lkgfs: the defaults count.</p>\n");
        lkg_buf_puts(buf, "</section>\n");
}

void lkg_report_log(const struct lkg_parts *parts, struct lkg_buf *buf)
{
        const struct lkg_part *log = lkg_parts_find(parts, "log");

        lkg_html_section(buf, "log", "Log of lkgfs", NULL);
        if (log)
                put_part(log, "The last messages", buf);
        else
                lkg_buf_puts(buf, "<p>The journal has none. If lkgfsd logs to a file, name it: <code>lkgfs "
                                  "report --log FILE</code>.</p>\n");
        lkg_buf_puts(buf, "</section>\n");
}

/* ---- what is missing ---- */

static const char *reason_of(int error)
{
        return error == -EINPROGRESS || error == -ETIMEDOUT ? "it gave no answer in time"
               : error == -EBADMSG  ? "it cannot be decoded, so its secrets could not be masked"
               : error == -EFBIG    ? "it is too large"
               : error == -ENOTCONN ? "there is no view"
                                    : strerror(-error);
}

void lkg_report_unread(const struct lkg_parts *parts, struct lkg_buf *buf)
{
        bool any = false;

        lkg_html_section(buf, "unread", "What could not be read", NULL);
        for (const struct lkg_part *part = NULL; (part = lkg_parts_next(parts, part, ""));) {
                if (part->error == 0)
                        continue;
                lkg_buf_puts(buf, any ? "" : "<dl>\n");
                any = true;
                lkg_html_element(buf, "dt", "mono", part->name);
                lkg_html_element(buf, "dd", NULL, *part->data ? part->data : reason_of(part->error));
                lkg_buf_putc(buf, '\n');
        }
        lkg_buf_puts(buf, any ? "</dl>\n" : "<p>Everything was read.</p>\n");
        for (const struct lkg_part *part = NULL; (part = lkg_parts_next(parts, part, ""));)
                if (strstr(part->name, ".messages"))
                        put_part(part, part->name, buf);
        lkg_buf_puts(buf, "</section>\n");
}
