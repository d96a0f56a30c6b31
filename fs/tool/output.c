/* SPDX-License-Identifier: Apache-2.0 */
/*
 * All output of the tool. Colour is never the only carrier of meaning, and is not written to a file or a
 * pipe by default.
 */
#include "tool.h"

bool lkg_tool_colour_for(const struct lkg_tool *tool, int fd)
{
        const char *no_color = getenv("NO_COLOR"), *term = getenv("TERM");

        if (tool->captured)
                return tool->coloured[fd];
        if (tool->options.colour != LKG_COLOUR_AUTO)
                return tool->options.colour == LKG_COLOUR_ALWAYS;
        if (no_color && *no_color)
                return false;
        return term && strcmp(term, "dumb") != 0 && isatty(fd);
}

const char *lkg_tool_paint(bool colour, enum lkg_severity severity)
{
        static const char *const starts[_LKG_SEVERITY_MAX] = {
                [LKG_ERROR] = "\033[1;31m",
                [LKG_WARNING] = "\033[1;33m",
                [LKG_NOTE] = "\033[36m",
        };

        return colour ? starts[severity] : "";
}

const char *lkg_tool_paint_end(bool colour)
{
        return colour ? "\033[0m" : "";
}

const char *lkg_tool_masked(const struct lkg_value *doc, enum lkg_format format)
{
        LKG_CLEANUP(lkg_value_unrefp) struct lkg_value *masked = doc ? lkg_mask_secrets(doc) : NULL;
        struct lkg_buf buf = LKG_BUF_INIT;

        if (masked)
                lkg_render(masked, format, &buf);
        return lkg_tool_take(&buf);
}

const char *lkg_tool_diff(const char *a_name, const char *a, const char *b_name, const char *b)
{
        struct lkg_buf buf = LKG_BUF_INIT;

        (void)lkg_need(lkg_render_diff(a_name, a, strlen(a), b_name, b, strlen(b), &buf));
        return lkg_tool_take(&buf);
}

static int print(const char *data, size_t size, int status)
{
        int r = lkg_write_all(STDOUT_FILENO, data, size);

        if (r >= 0)
                return status;
        (void)dprintf(STDERR_FILENO, "lkgfs: write to standard output: %s\n", strerror(-r));
        return LKG_TOOL_FAILED;
}

int lkg_tool_print(struct lkg_buf *buf, int status)
{
        const char *text = lkg_buf_text(buf);

        return print(text, buf->size, status);
}

int lkg_tool_print_text(const char *text, int status)
{
        return print(text, strlen(text), status);
}

int lkg_tool_print_map(const struct lkg_tool *tool, const struct lkg_value *map, int status)
{
        return lkg_tool_print_value(map, tool->options.format, status);
}

int lkg_tool_print_value(const struct lkg_value *value, enum lkg_tool_format format, int status)
{
        LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf buf = LKG_BUF_INIT;
        struct lkg_error err = { 0 };
        int r = 0;

        lkg_render(value, format == LKG_TOOL_JSON ? LKG_FORMAT_JSON : LKG_FORMAT_YAML, &buf);
        if (format == LKG_TOOL_JSON)
                r = lkg_readback(value, LKG_FORMAT_JSON, lkg_buf_text(&buf), buf.size, &err);
        if (r == LKG_READBACK_LEFT_OUT)
                (void)dprintf(STDERR_FILENO, "lkgfs: warning: %s [LKG2034]\n", err.message);
        if (r >= 0)
                return lkg_tool_print(&buf, status);
        (void)dprintf(STDERR_FILENO, "lkgfs: another reader would read this output differently: %s\n",
                      err.message);
        return LKG_TOOL_FAILED;
}

static void say_line(const struct lkg_tool *tool, const char *fmt, va_list ap) LKG_PRINTF(2, 0);

/* One write, so that lines of two processes do not mix. */
static void say_line(const struct lkg_tool *tool, const char *fmt, va_list ap)
{
        LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf buf = LKG_BUF_INIT;
        char *text = lkg_tool_vformat(fmt, ap);
        if (tool->said) {
                (void)snprintf(*tool->said, sizeof(*tool->said), "%s", text);
                return;
        }
        lkg_buf_printf(&buf, "lkgfs%s%s: ", tool->verb ? " " : "", tool->verb ? tool->verb->name : "");
        lkg_buf_shown_lines(&buf, text); /* file names, words of the command line */
        lkg_buf_putc(&buf, '\n');
        (void)lkg_write_all(STDERR_FILENO, lkg_buf_text(&buf), buf.size);
}

int lkg_tool_fail(const struct lkg_tool *tool, int status, const char *fmt, ...)
{
        va_list ap;

        va_start(ap, fmt);
        say_line(tool, fmt, ap);
        va_end(ap);
        return status;
}

void lkg_tool_end(const struct lkg_tool *tool, int status, const char *fmt, ...)
{
        va_list ap;

        va_start(ap, fmt);
        say_line(tool, fmt, ap);
        va_end(ap);
        exit(status);
}

void lkg_tool_note(const struct lkg_tool *tool, const char *fmt, ...)
{
        va_list ap;

        va_start(ap, fmt);
        say_line(tool, fmt, ap);
        va_end(ap);
}

void lkg_tool_put_clean(struct lkg_buf *buf, const char *text)
{
        lkg_buf_shown(buf, text, strlen(text));
}

const char *lkg_tool_clean(const char *text)
{
        struct lkg_buf buf = LKG_BUF_INIT;

        lkg_tool_put_clean(&buf, text);
        return lkg_tool_take(&buf);
}

static const char *cell(const struct lkg_value *rows, size_t i, const struct lkg_column *column)
{
        const char *text = i ? lkg_map_get_string(lkg_list_get(rows, i - 1), column->key) : column->title;

        return text ? text : "-";
}

void lkg_tool_put_table(const struct lkg_value *rows, const struct lkg_column *columns, size_t n,
                        struct lkg_buf *buf)
{
        size_t width[LKG_COLUMNS_MAX];

        for (size_t k = 0; k < n; k++) {
                width[k] = columns[k].min;
                for (size_t i = 0; i <= lkg_value_size(rows); i++) { /* the titles come first */
                        size_t size = strlen(cell(rows, i, &columns[k]));

                        width[k] = size > width[k] ? size : width[k];
                }
                if (columns[k].max && width[k] > columns[k].max)
                        width[k] = columns[k].max;
        }
        for (size_t i = 0; i <= lkg_value_size(rows); i++) {
                for (size_t k = 0; k < n; k++) {
                        const char *text = cell(rows, i, &columns[k]);
                        size_t size = strlen(text);

                        lkg_tool_put_clean(buf, text);
                        if (k + 1 < n)
                                lkg_buf_printf(buf, "%*s", (int)(size < width[k] ? width[k] - size : 0) + 2,
                                               "");
                }
                while (!lkg_buf_failed(buf) && buf->size > 0 && buf->data[buf->size - 1] == ' ')
                        buf->size--;
                lkg_buf_putc(buf, '\n');
        }
}

const char *lkg_tool_age(uint64_t age_s, char ret[static LKG_AGE_MAX])
{
        static const struct {
                uint64_t below_s, unit_s;
                const char *unit;
        } rows[] = { { 120, 1, "s" },
                     { 2 * 3600, 60, "min" },
                     { 2 * 86400, 3600, "h" },
                     { UINT64_MAX, 86400, "days" } };
        size_t i = 0;

        while (age_s >= rows[i].below_s && i + 1 < LKG_ARRAY_SIZE(rows))
                i++;
        (void)snprintf(ret, LKG_AGE_MAX, "%llu %s", (unsigned long long)(age_s / rows[i].unit_s),
                       rows[i].unit);
        return ret;
}

void lkg_tool_put_finding(bool colour, const struct lkg_finding *finding, struct lkg_buf *buf)
{
        LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf line = LKG_BUF_INIT, bare = LKG_BUF_INIT;
        const char *severity = lkg_severity_name(finding->severity);
        struct lkg_finding placeless = *finding;

        placeless.file = NULL;
        lkg_finding_format(finding, &line);
        lkg_finding_format(&placeless, &bare); /* it begins with the severity */
        lkg_buf_printf(buf, "%.*s", (int)(strlen(lkg_buf_text(&line)) - strlen(lkg_buf_text(&bare))),
                       line.data);
        lkg_buf_printf(buf, "%s%s%s%s\n", lkg_tool_paint(colour, finding->severity), severity,
                       lkg_tool_paint_end(colour), lkg_buf_text(&bare) + strlen(severity));
}

void lkg_tool_put_diff(const struct lkg_tool *tool, const char *text, struct lkg_buf *buf)
{
        static const char *const starts[] = { ['+'] = "\033[32m", ['-'] = "\033[31m", ['@'] = "\033[36m" };
        bool colour = lkg_tool_colour_for(tool, STDOUT_FILENO);
        const char *line;
        size_t size;

        if (!colour)
                lkg_buf_puts(buf, text);
        while (colour && lkg_tool_next_line(&text, &line, &size)) {
                unsigned char c = (unsigned char)*line;
                const char *start = c < LKG_ARRAY_SIZE(starts) ? starts[c] : NULL;

                lkg_buf_puts(buf, start ? start : "");
                lkg_buf_append(buf, line, size);
                lkg_buf_puts(buf, start ? "\033[0m\n" : "\n");
        }
}

void lkg_tool_arrange(const struct lkg_tool *tool, const struct lkg_report *report, struct lkg_report *ret)
{
        lkg_report_append(ret, report);
        lkg_report_arrange(ret, tool->options.all);
}

void lkg_tool_print_findings(const struct lkg_tool *tool, int fd, const struct lkg_report *report)
{
        LKG_CLEANUP(lkg_report_deinit) struct lkg_report arranged = LKG_REPORT_INIT;
        LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf buf = LKG_BUF_INIT;
        struct lkg_report rest = LKG_REPORT_INIT;
        LKG_CLEANUP(lkg_freep) char *text = NULL;

        lkg_tool_arrange(tool, report, &arranged);
        for (size_t i = 0; i < arranged.n_findings; i++)
                lkg_tool_put_finding(lkg_tool_colour_for(tool, fd), &arranged.findings[i], &buf);
        rest.n_dropped = arranged.n_dropped;
        text = lkg_must(lkg_report_format(&rest, NULL));
        lkg_buf_puts(&buf, text);
        (void)lkg_write_all(fd, lkg_buf_text(&buf), buf.size);
}
