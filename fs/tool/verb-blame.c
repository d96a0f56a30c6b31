/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lkgfs blame: shows every leaf, the layer and position it comes from, and what it shadows. For documents
 * named on the command line, of their merge; otherwise from the `origin` file of the mounted view, which has
 * the same form: tab-separated JSON pointer, JSON value, layer, file:line:col, shadowed values.
 */
#include "tool.h"

#include <ctype.h>

/* The dotted form of a JSON pointer: "/evictionHard/memory.available" -> "evictionHard.memory.available". */
static void append_dotted(const char *pointer, struct lkg_buf *buf)
{
        for (const char *p = *pointer == '/' ? pointer + 1 : pointer; *p; p++) {
                if (*p == '/') {
                        lkg_buf_putc(buf, '.');
                } else if (p[0] == '~' && (p[1] == '0' || p[1] == '1')) {
                        lkg_buf_putc(buf, p[1] == '0' ? '~' : '/');
                        p++;
                } else {
                        lkg_buf_putc(buf, *p);
                }
        }
}

static bool at_or_below(const char *path, const char *field, char separator)
{
        size_t n = strlen(field);

        while (n > 0 && field[n - 1] == separator)
                n--;
        return strncmp(path, field, n) == 0 && (path[n] == '\0' || path[n] == separator);
}

/* Is @pointer (a JSON pointer) at or below @field (dotted, or a JSON pointer)? */
static bool matches(const char *pointer, const char *field)
{
        LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf dotted = LKG_BUF_INIT;

        if (*field == '/')
                return at_or_below(pointer, field, '/');
        append_dotted(pointer, &dotted);
        return !lkg_buf_failed(&dotted) && dotted.data && at_or_below(dotted.data, field, '.');
}

static void put_row(const struct lkg_value *row, bool colour, struct lkg_buf *buf)
{
        const char *shadows = lkg_map_get_string(row, "shadows");

        lkg_buf_printf(buf, "%s%s%s = ", lkg_tool_paint(colour, LKG_NOTE), lkg_tool_word(row, "field"),
                       lkg_tool_paint_end(colour));
        lkg_render_json_compact(lkg_map_get(row, "value"), buf);
        lkg_buf_printf(buf, "\n        %s, %s\n", lkg_tool_word(row, "layer"), lkg_tool_word(row, "where"));
        if (shadows)
                lkg_buf_printf(buf, "        shadows %s\n", shadows);
}

/* Prints the lines of @origin that are at or below the requested field. */
static int print_rows(const struct lkg_tool *tool, const char *origin)
{
        LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf buf = LKG_BUF_INIT;
        struct lkg_value *rows = lkg_tool_origins(origin);
        struct lkg_value *list = lkg_tool_list();
        const char *field = tool->n_words > 0 ? tool->words[0] : NULL;
        bool colour = lkg_tool_colour_for(tool, STDOUT_FILENO);

        for (size_t i = 0; i < lkg_value_size(rows); i++) {
                struct lkg_value *row = lkg_list_get(rows, i);

                if (field && !matches(lkg_tool_word(row, "field"), field))
                        continue;
                lkg_tool_append(list, row);
                put_row(row, colour, &buf);
        }
        if (field && !lkg_value_size(list))
                return lkg_tool_fail(tool, LKG_TOOL_DIFFERENT, "no layer sets \"%.120s\"", field);
        return lkg_tool_structured(tool) ? lkg_tool_print_listed(tool, NULL, "fields", list, LKG_TOOL_OK)
                                         : lkg_tool_print(&buf, LKG_TOOL_OK);
}

static int blame_view(const struct lkg_tool *tool)
{
        struct lkg_view view = lkg_view_open(tool, true);
        char *tsv;
        int r = lkg_view_read(&view, &tsv, NULL, "status/%s/origin", view.component);

        if (r < 0)
                return lkg_tool_fail(tool, LKG_TOOL_FAILED, "read %s/status/%s/origin: %s", view.root,
                                     view.component, strerror(-r));
        return print_rows(tool, tsv);
}

/* Is the place in @text, and not only the beginning of another one? */
static bool names(const char *text, const char *place)
{
        const char *at = strstr(text, place);

        return at && !isdigit((unsigned char)at[strlen(place)]);
}

/* Does a line of @origin that is about @field name the place of @finding, or does its text begin with the field? */
static bool is_about(const struct lkg_finding *finding, const char *field, const struct lkg_value *origin)
{
        const char *word = *finding->text == '"' ? finding->text + 1 : finding->text;
        char *path = lkg_tool_cut(word, strcspn(word, ":\" "));
        const char *place;

        if (*field != '/' && at_or_below(path, field, '.'))
                return true;
        if (!finding->file || !finding->line)
                return false;
        place = lkg_tool_format("%s:%u:%u", finding->file, finding->line, finding->column);
        for (size_t i = 0; i < lkg_value_size(origin); i++) {
                const struct lkg_value *row = lkg_list_get(origin, i);

                if (matches(lkg_tool_word(row, "field"), field) &&
                    (names(lkg_tool_word(row, "where"), place) ||
                     names(lkg_tool_word(row, "shadows"), place)))
                        return true;
        }
        return false;
}

/* Of one field: what is wrong with the whole, which may be why there is nothing to show, and what is about the field. */
static void print_findings(const struct lkg_tool *tool, const struct lkg_report *report, const char *text)
{
        struct lkg_value *origin = lkg_tool_origins(text);
        LKG_CLEANUP(lkg_report_deinit) struct lkg_report about = LKG_REPORT_INIT;
        const char *field = tool->n_words > 0 ? tool->words[0] : NULL;

        for (size_t i = 0; i < report->n_findings; i++) {
                const struct lkg_finding *f = &report->findings[i];

                if (!field || f->severity == LKG_ERROR || is_about(f, field, origin))
                        lkg_report_add_copy(&about, f);
        }
        lkg_tool_print_findings(tool, STDERR_FILENO, &about);
}

int lkg_verb_blame(const struct lkg_tool *tool)
{
        struct lkg_tool_sources *sources;
        LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf buf = LKG_BUF_INIT;
        int r;

        if (!lkg_tool_has_sources(tool) && !tool->options.node_config &&
            (lkg_view_is_there(tool) || !lkg_tool_has_node(tool)))
                return blame_view(tool);
        r = lkg_tool_sources_load(tool, &sources);
        if (r != LKG_TOOL_OK)
                return r;
        if (sources->candidate->doc)
                lkg_render_origin(sources->candidate->doc, &buf);
        print_findings(tool, &sources->candidate->report, lkg_buf_text(&buf));
        return sources->candidate->doc ? print_rows(tool, buf.data) : LKG_TOOL_DIFFERENT;
}
