/* SPDX-License-Identifier: Apache-2.0 */
#include "html-page.h"

#include <openssl/evp.h>

void lkg_html_bytes(struct lkg_buf *buf, const char *text, size_t size)
{
        LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf shown = LKG_BUF_INIT;

        for (size_t at = 0; at < size;) {
                size_t n = 0;

                while (at + n < size && text[at + n] != '\n')
                        n++;
                lkg_buf_shown(&shown, text + at, n);
                if (at + n < size)
                        lkg_buf_putc(&shown, '\n');
                at += n + 1;
        }
        for (size_t i = 0; i < shown.size && !lkg_buf_failed(&shown); i++) {
                const char *entity = shown.data[i] == '&'    ? "&amp;"
                                     : shown.data[i] == '<'  ? "&lt;"
                                     : shown.data[i] == '>'  ? "&gt;"
                                     : shown.data[i] == '"'  ? "&quot;"
                                     : shown.data[i] == '\'' ? "&#39;"
                                                             : NULL;

                if (entity)
                        lkg_buf_puts(buf, entity);
                else
                        lkg_buf_putc(buf, shown.data[i]);
        }
        buf->failed |= shown.failed;
}

void lkg_html_text(struct lkg_buf *buf, const char *text)
{
        lkg_html_bytes(buf, text, strlen(text));
}

void lkg_html_prose(struct lkg_buf *buf, const char *text)
{
        while (*text) {
                size_t n = strcspn(text, "`");
                const char *end = text[n] ? strchr(text + n + 1, '`') : NULL;

                if (!end) {
                        lkg_html_text(buf, text);
                        return;
                }
                lkg_html_bytes(buf, text, n);
                lkg_buf_puts(buf, "<code>");
                lkg_html_bytes(buf, text + n + 1, (size_t)(end - text) - n - 1);
                lkg_buf_puts(buf, "</code>");
                text = end + 1;
        }
}

void lkg_html_element(struct lkg_buf *buf, const char *tag, const char *class, const char *text)
{
        lkg_buf_printf(buf, class ? "<%s class=\"%s\">" : "<%s>", tag, class);
        lkg_html_text(buf, text);
        lkg_buf_printf(buf, "</%s>", tag);
}

/*
 * The policy allows the one style that the page has, by its digest, and nothing else: even if text got into the page unescaped,
 * it could load, run and send nothing.
 */
static void put_policy(struct lkg_buf *buf)
{
        unsigned char digest[LKG_SHA256_BYTES], text[4 * LKG_SHA256_BYTES / 3 + 4];

        if (lkg_sha256(lkg_html_style, strlen(lkg_html_style), digest) < 0) {
                buf->failed = true;
                return;
        }
        (void)EVP_EncodeBlock(text, digest, sizeof(digest));
        lkg_buf_printf(
                buf,
                "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src "
                "'sha256-%s'; base-uri 'none'; form-action 'none'\">\n",
                (const char *)text);
}

void lkg_html_begin(struct lkg_buf *buf, const char *title)
{
        lkg_buf_puts(buf, "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n");
        put_policy(buf);
        lkg_buf_puts(buf, "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
                          "<meta name=\"color-scheme\" content=\"light dark\">\n"
                          "<meta name=\"referrer\" content=\"no-referrer\">\n"
                          "<meta name=\"robots\" content=\"noindex\">\n");
        lkg_html_element(buf, "title", NULL, title);
        lkg_buf_puts(buf, "\n<style>");
        lkg_buf_puts(buf, lkg_html_style);
        lkg_buf_puts(buf, "</style>\n</head>\n<body>\n");
}

void lkg_html_end(struct lkg_buf *buf)
{
        lkg_buf_puts(buf, "</body>\n</html>\n");
}

void lkg_html_section(struct lkg_buf *buf, const char *id, const char *title, const char *note)
{
        lkg_buf_printf(buf, "<section id=\"%s\" aria-labelledby=\"h-%s\">\n<h2 id=\"h-%s\">", id, id, id);
        lkg_html_text(buf, title);
        if (note) {
                lkg_buf_putc(buf, ' ');
                lkg_html_element(buf, "span", "count", note);
        }
        lkg_buf_puts(buf, "</h2>\n");
}

void lkg_html_time(struct lkg_buf *buf, const char *rfc3339)
{
        lkg_buf_puts(buf, "<time datetime=\"");
        lkg_html_text(buf, rfc3339);
        lkg_buf_puts(buf, "\">");
        if (strlen(rfc3339) == 20 && rfc3339[10] == 'T' && rfc3339[19] == 'Z') {
                lkg_buf_puts(buf, "<span class=\"date\">");
                lkg_html_bytes(buf, rfc3339, 10);
                lkg_buf_puts(buf, "</span> ");
                lkg_html_bytes(buf, rfc3339 + 11, 8);
        } else {
                lkg_html_text(buf, rfc3339);
        }
        lkg_buf_puts(buf, "</time>");
}

void lkg_html_severity(struct lkg_buf *buf, const char *severity)
{
        static const struct {
                const char *name, *sign;
        } signs[] = {
                { "error", "✕" }, { "warning", "!" }, { "note", "i" }, { "good", "✓" }, { "unknown", "?" },
        };

        for (size_t i = 0; i < LKG_ARRAY_SIZE(signs); i++)
                if (strcmp(signs[i].name, severity) == 0)
                        lkg_buf_printf(
                                buf,
                                "<span class=\"badge %s\"><span aria-hidden=\"true\">%s</span> %s</span>",
                                severity, signs[i].sign, severity);
}

void lkg_html_diff(struct lkg_buf *buf, const char *text)
{
        lkg_buf_puts(buf, "<pre class=\"diff\" tabindex=\"0\">");
        while (*text) {
                size_t n = strcspn(text, "\n");
                bool header = strncmp(text, "--- ", 4) == 0 || strncmp(text, "+++ ", 4) == 0 || *text == '@';
                const char *tag = header ? "b" : *text == '+' ? "ins" : *text == '-' ? "del" : NULL;

                if (tag)
                        lkg_buf_printf(buf, "<%s>", tag);
                lkg_html_bytes(buf, text, n);
                if (tag)
                        lkg_buf_printf(buf, "</%s>", tag);
                lkg_buf_putc(buf, '\n');
                text += n + (text[n] != '\0');
        }
        lkg_buf_puts(buf, "</pre>\n");
}
