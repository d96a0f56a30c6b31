/* SPDX-License-Identifier: Apache-2.0 */
/*
 * All output of the tool. Colour is never the only carrier of meaning, and is not written to a file or a
 * pipe by default.
 */
#include "tool.h"

#include <stdarg.h>

#include <lkg/documents.h>
#include <lkg/file.h>
#include <lkg/limits.h>

bool lkg_tool_colour_for(const struct lkg_tool *tool, int fd)
{
        const char *no_color = getenv("NO_COLOR"), *term = getenv("TERM");

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

int lkg_tool_render_masked(const struct lkg_value *doc, enum lkg_format format, struct lkg_buf *buf)
{
        LKG_CLEANUP(lkg_value_unrefp) struct lkg_value *masked = lkg_mask_secrets(doc);

        if (!masked)
                return -ENOMEM;
        lkg_render(masked, format, buf);
        return lkg_buf_failed(buf) ? -ENOMEM : 0;
}

int lkg_tool_print(const struct lkg_buf *buf, int status)
{
        int r = lkg_buf_failed(buf) ? -ENOMEM
                : buf->size         ? lkg_write_all(STDOUT_FILENO, buf->data, buf->size)
                                    : 0;

        if (r == 0)
                return status;
        (void)dprintf(STDERR_FILENO, "lkgfs: write to standard output: %s\n", strerror(-r));
        return LKG_TOOL_FAILED;
}

int lkg_tool_print_value(const struct lkg_value *value, enum lkg_tool_format format, int status)
{
        LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf buf = LKG_BUF_INIT;
        struct lkg_error err = { 0 };
        int r = 0;

        lkg_render(value, format == LKG_TOOL_JSON ? LKG_FORMAT_JSON : LKG_FORMAT_YAML, &buf);
        if (format == LKG_TOOL_JSON && !lkg_buf_failed(&buf))
                r = lkg_readback(value, LKG_FORMAT_JSON, buf.data, buf.size, &err);
        if (r == LKG_READBACK_LEFT_OUT)
                (void)dprintf(STDERR_FILENO, "lkgfs: warning: %s [LKG2034]\n", err.message);
        if (r >= 0)
                return lkg_tool_print(&buf, status);
        (void)dprintf(STDERR_FILENO, "lkgfs: another reader would read this output differently: %s\n",
                      err.message);
        return LKG_TOOL_FAILED;
}

static void say(const struct lkg_tool *tool, const char *fmt, va_list ap) LKG_PRINTF(2, 0);

/* One write, so that lines of two processes do not mix. */
static void say(const struct lkg_tool *tool, const char *fmt, va_list ap)
{
        LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf buf = LKG_BUF_INIT;
        LKG_CLEANUP(lkg_freep) char *text = NULL;

        if (vasprintf(&text, fmt, ap) < 0) {
                text = NULL;
                return;
        }
        if (tool->said) {
                (void)snprintf(*tool->said, sizeof(*tool->said), "%s", text);
                return;
        }
        lkg_buf_printf(&buf, "lkgfs%s%s: ", tool->verb ? " " : "", tool->verb ? tool->verb->name : "");
        lkg_buf_shown_lines(&buf, text); /* file names, words of the command line */
        lkg_buf_putc(&buf, '\n');
        if (!lkg_buf_failed(&buf))
                (void)lkg_write_all(STDERR_FILENO, buf.data, buf.size);
}

int lkg_tool_fail(const struct lkg_tool *tool, int status, const char *fmt, ...)
{
        va_list ap;

        va_start(ap, fmt);
        say(tool, fmt, ap);
        va_end(ap);
        return status;
}

void lkg_tool_note(const struct lkg_tool *tool, const char *fmt, ...)
{
        va_list ap;

        va_start(ap, fmt);
        say(tool, fmt, ap);
        va_end(ap);
}

void lkg_tool_put_clean(struct lkg_buf *buf, const char *text)
{
        lkg_buf_shown(buf, text, strlen(text));
}

/*
 * The position of `error:` in a line `file:line:col: error: text [LKGnnnn]`. A file name may also contain
 * the word, so the first one after a colon and a blank (or at the start) is used: at worst the wrong word is
 * coloured.
 */
static const char *find_severity(const char *line, size_t size, enum lkg_severity *ret)
{
        for (size_t at = 0; at < size; at++) {
                if (at > 0 && (at < 2 || line[at - 1] != ' ' || line[at - 2] != ':'))
                        continue;
                for (unsigned s = 0; s < _LKG_SEVERITY_MAX; s++) {
                        const char *name = lkg_severity_name((enum lkg_severity)s);
                        size_t n = strlen(name);

                        if (size - at > n && strncmp(line + at, name, n) == 0 && line[at + n] == ':') {
                                *ret = (enum lkg_severity)s;
                                return line + at;
                        }
                }
        }
        return NULL;
}

void lkg_tool_paint_findings(bool colour, const char *text, const char *indent, struct lkg_buf *buf)
{
        while (*text) {
                size_t size = strcspn(text, "\n");
                enum lkg_severity severity = LKG_NOTE;
                const char *word = colour ? find_severity(text, size, &severity) : NULL;

                lkg_buf_puts(buf, indent);
                if (word) {
                        size_t n = strlen(lkg_severity_name(severity));

                        lkg_buf_append(buf, text, (size_t)(word - text));
                        lkg_buf_puts(buf, lkg_tool_paint(true, severity));
                        lkg_buf_append(buf, word, n);
                        lkg_buf_puts(buf, lkg_tool_paint_end(true));
                        lkg_buf_append(buf, word + n, size - (size_t)(word - text) - n);
                } else {
                        lkg_buf_append(buf, text, size);
                }
                lkg_buf_putc(buf, '\n');
                text += size + (text[size] == '\n');
        }
}

void lkg_tool_paint_diff(const char *text, size_t size, struct lkg_buf *buf)
{
        static const char *const starts[] = { ['+'] = "\033[32m", ['-'] = "\033[31m", ['@'] = "\033[36m" };

        for (size_t at = 0; at < size;) {
                size_t n = strcspn(text + at, "\n");
                unsigned char c = (unsigned char)text[at];
                const char *start = c < LKG_ARRAY_SIZE(starts) ? starts[c] : NULL;

                lkg_buf_puts(buf, start ? start : "");
                lkg_buf_append(buf, text + at, n);
                lkg_buf_puts(buf, start ? "\033[0m\n" : "\n");
                at += n + 1;
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
        LKG_CLEANUP(lkg_freep) char *text = NULL;

        lkg_tool_arrange(tool, report, &arranged);
        text = lkg_report_format(&arranged, NULL);
        if (!text) {
                lkg_tool_note(tool, "findings cannot be shown: %s", strerror(ENOMEM));
                return;
        }
        lkg_tool_paint_findings(lkg_tool_colour_for(tool, fd), text, "", &buf);
        if (!lkg_buf_failed(&buf) && buf.size)
                (void)lkg_write_all(fd, buf.data, buf.size);
}

int lkg_tool_render(const struct lkg_tool *tool, const struct lkg_value *doc, enum lkg_format format,
                    struct lkg_buf *buf)
{
        LKG_CLEANUP(lkg_report_deinit) struct lkg_report ignored = LKG_REPORT_INIT;
        LKG_CLEANUP(lkg_value_unrefp) struct lkg_value *back = NULL;
        LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf json = LKG_BUF_INIT;
        int r = 0;

        if (format == LKG_FORMAT_YAML) {
                lkg_render_json_compact(doc, &json);
                /* Larger than a document may be: aliases expanded it, and only YAML has them. */
                if (!lkg_buf_failed(&json) && json.size <= LKG_DOC_BYTES_MAX)
                        r = lkg_decode(json.data, json.size, LKG_FORMAT_JSON, LKG_DECODE_UNTYPED, NULL,
                                       &ignored, &back);
        }
        if (r == -EBADMSG)
                return lkg_tool_fail(
                        tool, LKG_TOOL_FAILED,
                        "the document has a number beyond 1.8e308, which no YAML can say; use -o json");
        lkg_render(doc, format, buf);
        return LKG_TOOL_OK;
}
