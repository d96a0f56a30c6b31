/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Value tree -> canonical text.
 *
 * YAML: block style, two spaces, list items at the indent of their key, as sigs.k8s.io/yaml prints it; long
 * lines are not folded. A string is plain when both YAML 1.1 and 1.2 readers take it for the same string; in
 * double quotes when a reader would take it for something else or when it needs escapes; in single quotes
 * when only its punctuation prevents a plain one; a literal block when it has several lines that a block can hold
 * exactly.
 */

#include <lkg/base.h>
#include <lkg/documents.h>
#include <lkg/tree.h>

/* readers give up on `key:` after 1024 characters; longer keys are written `? key` */
#define SIMPLE_KEY_MAX 1000

/* ---- strings ---- */

/*
 * Characters that need an escape in every style: those that YAML calls not printable, its extra line breaks,
 * and those that would make the text look like different text.
 */
static bool is_special(uint32_t c)
{
        return c != '\n' && lkg_is_hidden(c);
}

/* Properties of a string, found in one pass. */
struct yaml_shape {
        bool special;      /* needs double quotes */
        bool lines;        /* a line feed */
        bool block_unsafe; /* a literal block would not give the same text back */
        bool punctuation;  /* not plain because of indicators */
};

static bool starts_like_indicator(const char *text, size_t size)
{
        if (size == 0)
                return true;
        if (strchr(",[]{}#&*!|>'\"%@`", text[0]))
                return true;
        if (strchr("-?:", text[0]))
                return size == 1 || text[1] == ' ' || strchr(",[]{}", text[1]);
        return false;
}

static void look_at(const char *text, size_t size, struct yaml_shape *ret)
{
        uint32_t c;

        *ret = (struct yaml_shape){ .punctuation = starts_like_indicator(text, size) };
        if (size == 0)
                return;
        if (text[0] == ' ' || text[size - 1] == ' ' || text[size - 1] == ':')
                ret->punctuation = true;
        if (size >= 3 && (memcmp(text, "---", 3) == 0 || memcmp(text, "...", 3) == 0))
                ret->punctuation = true;
        ret->block_unsafe = text[0] == ' ' || text[0] == '\n';
        for (size_t i = 0; i < size;) {
                size_t n;

                /* nearly always; means nothing in here */
                if (text[i] > ' ' && text[i] < 0x7f && text[i] != ':') {
                        i++;
                        continue;
                }
                n = lkg_utf8_decode((const unsigned char *)text + i, size - i, &c);
                if (n == 0 || is_special(c))
                        ret->special = true;
                if (text[i] == '\n')
                        ret->lines = true;
                if (text[i] == ' ' && (i + 1 == size || text[i + 1] == '\n'))
                        ret->block_unsafe = true;
                if (text[i] == ' ' && i + 1 < size && text[i + 1] == '#')
                        ret->punctuation = true;
                if (text[i] == ':' && i + 1 < size && (text[i + 1] == ' ' || text[i + 1] == '\n'))
                        ret->punctuation = true;
                i += n ? n : 1;
        }
}

/* `1:30`, `-2:30:15.5`: a number in base 60 to other YAML 1.1 readers, though not to go-yaml. */
static bool is_base60(const char *p, size_t size)
{
        const char *end = p + size;
        size_t n_groups = 0;

        p += size > 0 && (*p == '+' || *p == '-');
        if (p == end || *p < '0' || *p > '9')
                return false;
        while (p < end && ((*p >= '0' && *p <= '9') || *p == '_'))
                p++;
        while (end - p >= 2 && p[0] == ':' && p[1] >= '0' && p[1] <= '9') {
                p += 2;
                p += p < end && *p >= '0' && *p <= '9';
                n_groups++;
        }
        if (p < end && *p == '.')
                while (++p < end && ((*p >= '0' && *p <= '9') || *p == '_')) {
                }
        return n_groups > 0 && p == end;
}

/* Would a reader take the plain text for something that is not this string? */
static bool means_something_else(const char *text, size_t size)
{
        struct lkg_scalar scalar;

        lkg_scalar_resolve(text, size, &scalar);
        return scalar.type != LKG_S_STRING || lkg_scalar_is_timestamp(text, size) || is_base60(text, size) ||
               (size == 1 && text[0] == '=');
}

static void double_quoted(struct lkg_buf *buf, const char *text, size_t size)
{
        uint32_t c;

        lkg_buf_putc(buf, '"');
        for (size_t i = 0; i < size;) {
                size_t n = lkg_utf8_decode((const unsigned char *)text + i, size - i, &c);

                if (n == 0)
                        lkg_buf_puts(buf, "\xef\xbf\xbd");
                else if (c == '"' || c == '\\')
                        lkg_buf_printf(buf, "\\%c", (char)c);
                else if (c == '\n')
                        lkg_buf_puts(buf, "\\n");
                else if (c == '\t')
                        lkg_buf_puts(buf, "\\t");
                else if (c == '\r')
                        lkg_buf_puts(buf, "\\r");
                else if (is_special(c))
                        lkg_buf_printf(buf, c <= 0xff ? "\\x%02x" : c <= 0xffff ? "\\u%04x" : "\\U%08x", c);
                else
                        lkg_buf_append(buf, text + i, n);
                i += n ? n : 1;
        }
        lkg_buf_putc(buf, '"');
}

static void single_quoted(struct lkg_buf *buf, const char *text, size_t size)
{
        lkg_buf_putc(buf, '\'');
        for (size_t i = 0; i < size; i++) {
                if (text[i] == '\'')
                        lkg_buf_putc(buf, '\'');
                lkg_buf_putc(buf, text[i]);
        }
        lkg_buf_putc(buf, '\'');
}

static void spaces(struct lkg_buf *buf, size_t n)
{
        static const char blank[] = "                                ";

        for (; n > 0; n -= n < 32 ? n : 32)
                lkg_buf_append(buf, blank, n < 32 ? n : 32);
}

/* Without the final line break: the caller ends every value with a line break. */
static void literal_block(struct lkg_buf *buf, const char *text, size_t size, size_t indent)
{
        bool ends = text[size - 1] == '\n';
        bool keep = ends && size >= 2 && text[size - 2] == '\n';
        size_t start = 0;

        lkg_buf_puts(buf, keep ? "|+" : ends ? "|" : "|-");
        if (ends)
                size--;
        while (start <= size) {
                const char *end = memchr(text + start, '\n', size - start);
                size_t n = end ? (size_t)(end - (text + start)) : size - start;

                lkg_buf_putc(buf, '\n');
                if (n > 0) {
                        spaces(buf, indent);
                        lkg_buf_append(buf, text + start, n);
                }
                start += n + 1;
        }
}

static void yaml_string(struct lkg_buf *buf, const char *text, size_t size, size_t indent, bool is_key)
{
        struct yaml_shape shape;

        look_at(text, size, &shape);
        if (!shape.special && shape.lines && !shape.block_unsafe && !is_key)
                literal_block(buf, text, size, indent);
        else if (shape.special || shape.lines || means_something_else(text, size))
                double_quoted(buf, text, size);
        else if (shape.punctuation)
                single_quoted(buf, text, size);
        else
                lkg_buf_append(buf, text, size);
}

/* ---- the tree ---- */

static bool is_open(const struct lkg_value *value)
{
        return lkg_value_size(value) > 0;
}

static void scalar_json(const struct lkg_value *value, struct lkg_buf *buf)
{
        const char *text;
        size_t size;

        switch (lkg_value_type(value)) {
        case LKG_BOOL:
                lkg_buf_puts(buf, lkg_value_bool(value) ? "true" : "false");
                break;
        case LKG_NUMBER:
                text = lkg_value_text(value, &size);
                lkg_buf_append(buf, text, size);
                break;
        case LKG_STRING:
                text = lkg_value_text(value, &size);
                lkg_buf_json_string(buf, text, size);
                break;
        case LKG_LIST:
                lkg_buf_puts(buf, "[]");
                break;
        case LKG_MAP:
                lkg_buf_puts(buf, "{}");
                break;
        case LKG_NULL:
        case _LKG_TYPE_MAX:
                lkg_buf_puts(buf, "null");
                break;
        }
}

static void scalar_yaml(const struct lkg_value *value, struct lkg_buf *buf, size_t indent)
{
        const char *text;
        size_t size;

        if (lkg_value_type(value) == LKG_NUMBER && strcmp(lkg_value_text(value, NULL), "-0") == 0) {
                lkg_buf_puts(buf, "-0.0"); /* -0 would be read as the integer 0 */
                return;
        }
        if (lkg_value_type(value) != LKG_STRING) {
                scalar_json(value, buf);
                return;
        }
        text = lkg_value_text(value, &size);
        yaml_string(buf, text, size, indent, false);
}

/* `key:` or, if readers would not accept it as a simple key, `? key` and `:` on the next line. */
static void yaml_key(struct lkg_buf *buf, const char *key, size_t size, size_t indent)
{
        size_t start = buf->size;

        yaml_string(buf, key, size, 0, true);
        if (buf->size - start > SIMPLE_KEY_MAX) {
                buf->size = start;
                lkg_buf_puts(buf, "? ");
                yaml_string(buf, key, size, 0, true);
                lkg_buf_putc(buf, '\n');
                spaces(buf, indent);
        }
        lkg_buf_putc(buf, ':');
}

/* Put the comment at the end of the first line after @start; the last line has no line feed yet. */
static void put_comment(lkg_comment_fn *comment, const struct lkg_value *value, size_t start,
                        struct lkg_buf *buf)
{
        LKG_CLEANUP(lkg_freep) char *rest = NULL;
        const char *end = memchr(lkg_buf_text(buf) + start, '\n', buf->size - start);

        if (!end) {
                comment(value, buf);
                return;
        }
        rest = lkg_must(strdup(end));
        buf->size = (size_t)(end - buf->data);
        comment(value, buf);
        lkg_buf_puts(buf, rest);
}

/* @comment: after the members of a map; NULL = none. @on_line: the first member is on the line of its "- " */
static void yaml_members(const struct lkg_value *value, size_t indent, bool on_line, lkg_comment_fn *comment,
                         unsigned depth, struct lkg_buf *buf)
{
        bool is_map = lkg_value_type(value) == LKG_MAP;

        if (!is_map)
                comment = NULL;
        for (struct lkg_member m = { 0 }; lkg_value_next(value, &m);) {
                const struct lkg_value *child = m.value;
                size_t start = buf->size;
                bool child_is_map, inner;

                if (m.i > 0 || !on_line)
                        spaces(buf, indent);
                if (is_map)
                        yaml_key(buf, m.key.data, m.key.size, indent);
                else
                        lkg_buf_putc(buf, '-');
                if (!is_open(child)) {
                        lkg_buf_putc(buf, ' ');
                        scalar_yaml(child, buf, indent + 2);
                        if (comment)
                                put_comment(comment, child, start, buf);
                        lkg_buf_putc(buf, '\n');
                        continue;
                }
                child_is_map = lkg_value_type(child) == LKG_MAP;
                inner = child_is_map && depth <= LKG_COMMENT_DEPTH_MAX;
                if (comment && !inner)
                        put_comment(comment, child, start, buf);
                lkg_buf_putc(buf, is_map ? '\n' : ' ');
                yaml_members(child, is_map && !child_is_map ? indent : indent + 2, !is_map,
                             inner ? comment : NULL, depth + 1, buf);
        }
}

static void render_yaml(const struct lkg_value *value, lkg_comment_fn *comment, struct lkg_buf *buf)
{
        if (is_open(value)) {
                yaml_members(value, 0, /* on_line= */ false, comment, /* depth= */ 1, buf);
                return;
        }
        scalar_yaml(value, buf, 2);
        lkg_buf_putc(buf, '\n');
}

static void json_break(struct lkg_buf *buf, bool compact, size_t indent)
{
        if (compact)
                return;
        lkg_buf_putc(buf, '\n');
        spaces(buf, indent);
}

static void render_json(const struct lkg_value *value, size_t indent, bool compact, struct lkg_buf *buf)
{
        bool is_map = lkg_value_type(value) == LKG_MAP;

        if (!is_open(value)) {
                scalar_json(value, buf);
                return;
        }
        for (struct lkg_member m = { 0 }; lkg_value_next(value, &m);) {
                lkg_buf_putc(buf, m.i > 0 ? ',' : is_map ? '{' : '[');
                json_break(buf, compact, indent + 2);
                if (is_map) {
                        lkg_buf_json_string(buf, m.key.data, m.key.size);
                        lkg_buf_puts(buf, compact ? ":" : ": ");
                }
                render_json(m.value, indent + 2, compact, buf);
        }
        json_break(buf, compact, indent);
        lkg_buf_putc(buf, is_map ? '}' : ']');
}

void lkg_render_json_compact(const struct lkg_value *value, struct lkg_buf *buf)
{
        render_json(value, 0, /* compact= */ true, buf);
}

void lkg_render(const struct lkg_value *value, enum lkg_format format, struct lkg_buf *buf)
{
        if (format == LKG_FORMAT_YAML) {
                render_yaml(value, NULL, buf);
                return;
        }
        render_json(value, 0, /* compact= */ false, buf);
        lkg_buf_putc(buf, '\n');
}

void lkg_render_commented(const struct lkg_value *map, lkg_comment_fn *comment, struct lkg_buf *buf)
{
        render_yaml(map, comment, buf);
}
