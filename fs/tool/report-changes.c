/* SPDX-License-Identifier: Apache-2.0 */
/* What changed from one generation to the next, what differs from what runs, and what is known to be bad. */
#include "report-page.h"

#include <lkg/documents.h>

#define OPEN_MAX 1 /* differences that are shown without a click */

/* The document of a generation: the file of its directory that is not one of the history's own. */
static const struct lkg_part *document_of(const struct lkg_parts *parts, const char *component,
                                          const char *number)
{
        char prefix[600];

        (void)snprintf(prefix, sizeof(prefix), "history/%s/%s/", component, number);
        for (const struct lkg_part *part = NULL; (part = lkg_parts_next(parts, part, prefix));) {
                const char *name = part->name + strlen(prefix);

                if (strcmp(name, "origin") != 0 && strcmp(name, "meta.json") != 0 && part->error == 0)
                        return part;
        }
        return NULL;
}

static void put_difference(const struct lkg_parts *parts, const char *component, const char *from,
                           const char *to, bool open, struct lkg_buf *buf)
{
        const struct lkg_part *a = document_of(parts, component, from),
                              *b = document_of(parts, component, to);
        LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf diff = LKG_BUF_INIT;
        char a_name[280], b_name[280];
        int r = 0;

        (void)snprintf(a_name, sizeof(a_name), "generation %s", from);
        (void)snprintf(b_name, sizeof(b_name), "generation %s", to);
        if (a && b)
                r = lkg_render_diff(a_name, a->data, a->size, b_name, b->data, b->size, &diff);
        lkg_buf_putc(&diff, '\0');
        buf->failed |= r < 0 || lkg_buf_failed(&diff);
        lkg_buf_printf(buf, "<details%s><summary>", open ? " open" : "");
        lkg_html_text(buf, a_name);
        lkg_buf_puts(buf, " → ");
        lkg_html_text(buf, b_name);
        lkg_buf_puts(buf, "</summary>\n");
        if (!a || !b)
                lkg_buf_puts(buf, "<p>A document of the two could not be read.</p>\n");
        else if (r == 0)
                lkg_buf_puts(buf, "<p>They are equal, secrets and layers aside.</p>\n");
        else if (!lkg_buf_failed(&diff))
                lkg_html_diff(buf, diff.data);
        lkg_buf_puts(buf, "</details>\n");
}

/* Return: how many. */
static size_t put_generations(const struct lkg_parts *parts, const char *component, struct lkg_buf *buf)
{
        char prefix[300], newer[256], older[256];
        size_t n = 0;

        (void)snprintf(prefix, sizeof(prefix), "history/%s/", component);
        if (!lkg_parts_under(parts, prefix, 0, newer))
                return 0;
        for (; lkg_parts_under(parts, prefix, n + 1, older); n++) {
                put_difference(parts, component, older, newer, n < OPEN_MAX, buf);
                memcpy(newer, older, sizeof(newer));
        }
        return n;
}

static void put_text(const struct lkg_parts *parts, const char *component, const char *file,
                     const char *title, bool is_diff, struct lkg_buf *buf)
{
        const char *text = lkg_parts_text(parts, "status/%s/%s", component, file);

        if (!*text)
                return;
        lkg_buf_puts(buf, "<details><summary>");
        lkg_html_text(buf, title);
        lkg_buf_puts(buf, "</summary>\n");
        if (is_diff) {
                lkg_html_diff(buf, text);
        } else {
                lkg_html_element(buf, "pre", "wrap", text);
                lkg_buf_putc(buf, '\n');
        }
        lkg_buf_puts(buf, "</details>\n");
}

void lkg_report_changes(const struct lkg_parts *parts, struct lkg_buf *buf)
{
        char component[256];

        lkg_html_section(buf, "changes", "Differences between generations", NULL);
        for (size_t i = 0; lkg_parts_under(parts, "status/", i, component); i++) {
                lkg_html_element(buf, "h3", NULL, component);
                if (put_generations(parts, component, buf) == 0)
                        lkg_buf_puts(buf, "<p>There are no two generations to compare.</p>\n");
                put_text(parts, component, "diff", "From the last known good document to the served one",
                         true, buf);
                put_text(parts, component, "drift",
                         "What the running component does not have yet: field, its value, the served one",
                         false, buf);
        }
        if (!lkg_parts_next(parts, NULL, "status/"))
                lkg_buf_puts(buf, "<p>There is no view to read.</p>\n");
        lkg_buf_puts(buf, "</section>\n");
}

static void put_cell(struct lkg_buf *buf, const char *label, const struct lkg_value *mark, const char *key)
{
        const char *text = mark ? lkg_map_get_string(mark, key) : NULL;

        lkg_buf_printf(buf, "<td data-label=\"%s\">", label);
        if (text)
                lkg_html_text(buf, text);
        lkg_buf_puts(buf, "</td>");
}

void lkg_report_bad(const struct lkg_parts *parts, struct lkg_buf *buf)
{
        bool any = false;

        lkg_html_section(buf, "bad", "Configurations marked bad", NULL);
        for (const struct lkg_part *part = NULL; (part = lkg_parts_next(parts, part, "bad/"));) {
                LKG_CLEANUP(lkg_value_unrefp)
                struct lkg_value *mark = lkg_parts_json(parts, "%s", part->name);

                if (!any)
                        lkg_buf_puts(buf,
                                     "<table><thead><tr><th>Configuration</th><th>Since</th><th>Cause</th>"
                                     "<th>Reason</th></tr></thead>\n<tbody>\n");
                any = true;
                lkg_buf_puts(buf, "<tr><td class=\"mono\">");
                lkg_html_text(buf, part->name + strlen("bad/"));
                lkg_buf_puts(buf, "</td>");
                put_cell(buf, "since", mark, "time");
                put_cell(buf, "cause", mark, "cause");
                put_cell(buf, "reason", mark, "reason");
                lkg_buf_puts(buf, "</tr>\n");
        }
        lkg_buf_puts(buf, any ? "</tbody></table>\n" : "<p>None is known.</p>\n");
        lkg_buf_puts(buf, "</section>\n");
}
