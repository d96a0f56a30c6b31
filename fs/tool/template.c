/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A text with places that are filled in from a tree of values: what a verb shows of the document that -o json prints, and the page
 * of a report.
 *
 *     {{name}}          the text of a member, or of a member of a member: {{hold/mode}}; {{.}} is the item itself
 *     {{#name}} {{/}}   once for each item of a list, or once if there is something else: a text, a map with members, true. Names are
 *                       looked for in the item first, and then around it
 *     {{?name}} {{/}}   once if there is something, which may be a list with items
 *     {{!name}} {{/}}   once if there is nothing
 *     {{,}}             ", ", except in the first item
 *     {{name:s}}        "s", unless it is 1
 *     {{name:prose}}    in a page: what stands between two ` becomes code; likewise {{name:time}}, {{name:diff}}
 *
 * Values come from files that anybody may have written. So nothing gets out of here unescaped: a page shows markup as text, and what
 * cannot be seen is \xNN everywhere. The templates are ours, and checked by the tests that fill them in.
 */
#include <assert.h>

#include "tool.h"

#define NAME_MAX_U 64

struct scope {
        const struct lkg_value *value; /* NULL = nothing */
        const struct scope *outer;     /* NULL = this is the whole */
        bool first;                    /* of its list */
};

struct filling {
        const char *at; /* what follows in the template */
        bool html;
        struct lkg_buf *buf;
};

/* ---- how a text is put ---- */

static void put_plain(const char *text, struct lkg_buf *buf)
{
        static const char *const entities[] = {
                ['&'] = "&amp;", ['<'] = "&lt;", ['>'] = "&gt;", ['"'] = "&quot;", ['\''] = "&#39;"
        };
        LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf shown = LKG_BUF_INIT;

        lkg_buf_shown_lines(&shown, text);
        for (const char *p = lkg_buf_text(&shown); *p; p++) {
                unsigned char c = (unsigned char)*p;

                if (c < LKG_ARRAY_SIZE(entities) && entities[c])
                        lkg_buf_puts(buf, entities[c]);
                else
                        lkg_buf_putc(buf, *p);
        }
}

static void put_piece(const char *text, size_t size, struct lkg_buf *buf)
{
        LKG_CLEANUP(lkg_freep) char *piece = lkg_must(strndup(text, size));

        put_plain(piece, buf);
}

static void put_prose(const char *text, struct lkg_buf *buf)
{
        const char *start, *end;

        while ((start = strchr(text, '`')) && (end = strchr(start + 1, '`'))) {
                put_piece(text, (size_t)(start - text), buf);
                lkg_buf_puts(buf, "<code>");
                put_piece(start + 1, (size_t)(end - start) - 1, buf);
                lkg_buf_puts(buf, "</code>");
                text = end + 1;
        }
        put_plain(text, buf);
}

/* RFC 3339; the date and the zone are there for those who need them. */
static void put_time(const char *text, struct lkg_buf *buf)
{
        lkg_buf_puts(buf, "<time datetime=\"");
        put_plain(text, buf);
        lkg_buf_puts(buf, "\">");
        if (strlen(text) == 20 && text[10] == 'T' && text[19] == 'Z') {
                lkg_buf_puts(buf, "<span class=\"date\">");
                put_piece(text, 10, buf);
                lkg_buf_puts(buf, "</span> ");
                put_piece(text + 11, 8, buf);
        } else {
                put_plain(text, buf);
        }
        lkg_buf_puts(buf, "</time>");
}

static void put_diff(const char *text, struct lkg_buf *buf)
{
        const char *line;
        size_t size;

        lkg_buf_puts(buf, "<pre class=\"diff\" tabindex=\"0\">");
        while (lkg_tool_next_line(&text, &line, &size)) {
                bool header = strncmp(line, "--- ", 4) == 0 || strncmp(line, "+++ ", 4) == 0 || *line == '@';
                const char *tag = header ? "b" : *line == '+' ? "ins" : *line == '-' ? "del" : NULL;

                if (tag)
                        lkg_buf_printf(buf, "<%s>", tag);
                put_piece(line, size, buf);
                if (tag)
                        lkg_buf_printf(buf, "</%s>", tag);
                lkg_buf_putc(buf, '\n');
        }
        lkg_buf_puts(buf, "</pre>\n");
}

static const struct {
        const char *name;
        void (*put)(const char *text, struct lkg_buf *buf);
} ways[] = { { "prose", put_prose }, { "time", put_time }, { "diff", put_diff } };

static void put_value(const struct filling *f, const struct lkg_value *value, const char *way)
{
        const char *text = value ? lkg_value_text(value, NULL) : "";

        if (way && strcmp(way, "s") == 0)
                text = strcmp(text, "1") == 0 ? "" : "s";
        if (!f->html) {
                lkg_tool_put_clean(f->buf, text);
                return;
        }
        for (size_t i = 0; way && i < LKG_ARRAY_SIZE(ways); i++)
                if (strcmp(ways[i].name, way) == 0) {
                        ways[i].put(text, f->buf);
                        return;
                }
        put_plain(text, f->buf);
}

/* ---- names ---- */

static const struct lkg_value *find_value(const struct scope *scope, const char *name)
{
        size_t n = strcspn(name, "/");
        const struct lkg_value *value = NULL;
        char first[NAME_MAX_U];

        if (strcmp(name, ".") == 0)
                return scope->value;
        (void)snprintf(first, sizeof(first), "%.*s", (int)n, name);
        for (; scope && !value; scope = scope->outer)
                if (scope->value && lkg_value_type(scope->value) == LKG_MAP)
                        value = lkg_map_get(scope->value, first);
        return value && name[n] ? lkg_value_get_pointer(value, name + n) : value;
}

static bool is_something(const struct lkg_value *value)
{
        enum lkg_type type = value ? lkg_value_type(value) : LKG_NULL;
        const char *text = value ? lkg_value_text(value, NULL) : "";

        return type == LKG_BOOL     ? lkg_value_bool(value)
               : type == LKG_NUMBER ? strcmp(text, "0") != 0
               : type == LKG_STRING ? *text != '\0'
                                    : type != LKG_NULL && lkg_value_size(value) > 0;
}

/* ---- filling in ---- */

static void fill(struct filling *f, const struct scope *scope, bool shown);

/* NOLINTNEXTLINE(misc-no-recursion): as deep as sections stand in sections of a template */
static void fill_section(struct filling *f, const struct scope *scope, char sign, const char *name,
                         bool shown)
{
        const struct lkg_value *value = find_value(scope, name);
        bool something = is_something(value), is_list = value && lkg_value_type(value) == LKG_LIST;
        size_t n = sign == '!' ? !something : something;
        const char *start = f->at;

        if (sign == '#' && is_list)
                n = lkg_value_size(value);
        n = shown ? n : 0;
        for (size_t i = 0; i < n; i++) {
                const struct scope item = { is_list ? lkg_list_get(value, i) : value, scope, i == 0 };

                f->at = start;
                fill(f, sign == '#' ? &item : scope, true);
        }
        if (n == 0)
                fill(f, scope, false);
}

/* Up to the end of the section, or of the template. NOLINTNEXTLINE(misc-no-recursion) */
static void fill(struct filling *f, const struct scope *scope, bool shown)
{
        const char *open;

        while ((open = strstr(f->at, "{{"))) {
                const char *close = strstr(open, "}}");
                char name[NAME_MAX_U], *way;

                assert(close);
                if (shown)
                        lkg_buf_append(f->buf, f->at, (size_t)(open - f->at));
                f->at = close + 2;
                (void)snprintf(name, sizeof(name), "%.*s", (int)(close - open) - 2, open + 2);
                if (*name == '/')
                        return;
                way = strchr(name, ':');
                if (way)
                        *way++ = '\0';
                if (strchr("#?!", *name))
                        fill_section(f, scope, *name, name + 1, shown);
                else if (*name == ',' && shown)
                        lkg_buf_puts(f->buf, scope->first ? "" : ", ");
                else if (shown)
                        put_value(f, find_value(scope, name), way);
        }
        if (shown)
                lkg_buf_puts(f->buf, f->at);
}

void lkg_tool_fill(const char *template, const struct lkg_value *value, bool html, struct lkg_buf *buf)
{
        const struct scope whole = { value, NULL, true };
        struct filling f = { template, html, buf };

        fill(&f, &whole, true);
}
