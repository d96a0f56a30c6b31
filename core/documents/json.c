/* SPDX-License-Identifier: Apache-2.0 */
/*
 * JSON -> value tree, as Go's encoding/json reads it: invalid UTF-8 and lone surrogates become U+FFFD,
 * nothing may follow the value, of duplicate members the last one wins (in strict mode they
 * are an error). Positions are kept, so findings and origins can name line and column.
 *
 * Own decoder: json-c keeps neither positions nor the exact text of numbers. Messages quote keys,
 * never values.
 */

#include <lkg/base.h>
#include <lkg/documents.h>
#include <lkg/tree.h>

struct parse {
        const char *p, *end;
        unsigned line;
        unsigned before_line, before_column; /* the end of what stands before the last white space */
        const char *seen;                    /* up to here columns are counted; moves forward only */
        unsigned seen_column;                /* of @seen, from 1 */
        unsigned flags;
        struct lkg_source *source;
        struct lkg_report *report;
        const struct lkg_value *open; /* the innermost list or map that is being read; NULL = none */
        unsigned depth;               /* how many are */
        uint64_t n_values;
        struct lkg_buf text; /* of the string being read */
        bool failed;
};

/* Return the column of @at, which is on the current line and not before the previous query. */
static unsigned column_at(struct parse *p, const char *at)
{
        for (; p->seen < at; p->seen++)
                p->seen_column += ((unsigned char)*p->seen & 0xc0) != 0x80;
        return p->seen_column;
}

static int fail(struct parse *p, unsigned code, const char *at, const char *text)
{
        struct lkg_where where = { p->source ? p->source->file : NULL, p->line, column_at(p, at) };

        lkg_report_add(p->report, LKG_ERROR, code, &where, "%s", text);
        p->failed = true;
        return -EBADMSG;
}

/*
 * What is missing at the end of a line, or is too much there, is noticed on the next one; a bracket that is not closed, at the end of
 * the file.
 */
static struct lkg_where place_of_mistake(struct parse *p, const char *want)
{
        struct lkg_where where = { p->source ? p->source->file : NULL, p->line, column_at(p, p->p) };
        const struct lkg_value *open = p->open;
        bool wants_mark = *want == '\''; /* a comma, a colon */
        bool missing = p->p < p->end && *p->p && wants_mark && strchr("\"{[", *p->p);
        bool too_much = p->p < p->end && *p->p && open && !wants_mark && strchr("}]", *p->p);

        if (p->p >= p->end && open && lkg_value_line(open) < p->line) {
                where.line = lkg_value_line(open);
                where.column = lkg_value_column(open);
        } else if (p->before_line < p->line && (missing || too_much)) {
                where.line = p->before_line;
                where.column = p->before_column > 1 ? p->before_column - 1 : 1;
        }
        return where;
}

static int syntax(struct parse *p, const char *want)
{
        struct lkg_where where = place_of_mistake(p, want);
        char found[LKG_CHARACTER_NAME_MAX + 16], name[LKG_CHARACTER_NAME_MAX], noticed[32] = "";
        uint32_t c = 0;

        if (p->p >= p->end)
                strcpy(found, "the end of the file");
        else if (lkg_utf8_decode((const unsigned char *)p->p, (size_t)(p->end - p->p), &c) > 0 &&
                 lkg_lookalike(c, name))
                (void)snprintf(found, sizeof(found), "U+%04X %s", c, name);
        else if ((unsigned char)*p->p < 0x20 || (unsigned char)*p->p >= 0x7f)
                (void)snprintf(found, sizeof(found), "byte 0x%02x", (unsigned char)*p->p);
        else
                (void)snprintf(found, sizeof(found), "'%c'", *p->p);
        if (where.line != p->line)
                (void)snprintf(noticed, sizeof(noticed), " (noticed on line %u)", p->line);
        lkg_report_add(p->report, LKG_ERROR, LKG_C_SYNTAX, &where, "found %s where JSON wants %s%s", found,
                       want, noticed);
        p->failed = true;
        return -EBADMSG;
}

static void skip_space(struct parse *p)
{
        p->before_line = p->line;
        p->before_column = column_at(p, p->p);
        for (; p->p < p->end; p->p++) {
                if (*p->p == '\n') {
                        p->line++;
                        p->seen = p->p + 1;
                        p->seen_column = 1;
                } else if (*p->p != ' ' && *p->p != '\t' && *p->p != '\r') {
                        return;
                }
        }
}

/* ---- strings ---- */

static int hex4(const char *p, const char *end, uint32_t *ret)
{
        uint32_t n = 0;

        if (end - p < 4)
                return -1;
        for (int i = 0; i < 4; i++) {
                int digit = lkg_hex_digit(p[i]);

                if (digit < 0)
                        return -1;
                n = n << 4 | (uint32_t)digit;
        }
        *ret = n;
        return 0;
}

/* Half of a surrogate pair is not a character. */
static void put_utf8(struct lkg_buf *buf, uint32_t c)
{
        char bytes[LKG_UTF8_MAX];

        lkg_buf_append(buf, bytes, lkg_utf8_encode(c >= 0xd800 && c <= 0xdfff ? 0xfffd : c, bytes));
}

/* At the byte after a backslash. */
static int read_escape(struct parse *p)
{
        static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
        const char *at = p->p < p->end && *p->p ? strchr(from, *p->p) : NULL;
        uint32_t c, low;

        if (at) {
                lkg_buf_putc(&p->text, to[at - from]);
                p->p++;
                return 0;
        }
        if (p->p >= p->end || *p->p != 'u')
                return syntax(p, "an escape: one of \" \\ / b f n r t u");
        p->p++;
        if (hex4(p->p, p->end, &c) < 0)
                return syntax(p, "four hexadecimal digits");
        p->p += 4;
        if (c >= 0xd800 && c < 0xdc00 && p->end - p->p >= 6 && p->p[0] == '\\' && p->p[1] == 'u' &&
            hex4(p->p + 2, p->end, &low) == 0 && low >= 0xdc00 && low <= 0xdfff) {
                c = 0x10000 + ((c - 0xd800) << 10 | (low - 0xdc00));
                p->p += 6;
        }
        put_utf8(&p->text, c);
        return 0;
}

/* At the opening quote; the text is in p->text afterwards. */
static int read_string(struct parse *p)
{
        uint32_t c;
        int r;

        lkg_buf_reset(&p->text);
        lkg_buf_append(&p->text, "", 0);
        p->p++;
        while (p->p < p->end && *p->p != '"') {
                size_t n;

                if (*p->p == '\\') {
                        p->p++;
                        r = read_escape(p);
                        if (r < 0)
                                return r;
                        continue;
                }
                if ((unsigned char)*p->p < 0x20)
                        return syntax(p,
                                      "an escape (\\n, \\t, \\u0000) for a control character in a string");
                n = lkg_utf8_decode((const unsigned char *)p->p, (size_t)(p->end - p->p), &c);
                if (n == 0)
                        lkg_buf_puts(&p->text, "\xef\xbf\xbd");
                else
                        lkg_buf_append(&p->text, p->p, n);
                p->p += n ? n : 1;
        }
        if (p->p >= p->end)
                return syntax(p, "the closing quote of a string");
        p->p++;
        return 0;
}

/* ---- numbers ---- */

static bool skip_digits(struct parse *p)
{
        const char *start = p->p;

        while (p->p < p->end && *p->p >= '0' && *p->p <= '9')
                p->p++;
        return p->p > start;
}

static int read_number(struct parse *p, unsigned column, struct lkg_value **ret)
{
        const char *start = p->p;
        char untyped[LKG_NUMBER_TEXT_MAX];
        LKG_CLEANUP(lkg_freep) char *text = NULL;

        if (*p->p == '-')
                p->p++;
        if (p->p < p->end && *p->p == '0')
                p->p++;
        else if (!skip_digits(p))
                return syntax(p, "a digit");
        if (p->p < p->end && *p->p == '.') {
                p->p++;
                if (!skip_digits(p))
                        return syntax(p, "a digit after the decimal point");
        }
        if (p->p < p->end && (*p->p == 'e' || *p->p == 'E')) {
                p->p++;
                if (p->p < p->end && (*p->p == '+' || *p->p == '-'))
                        p->p++;
                if (!skip_digits(p))
                        return syntax(p, "a digit in the exponent");
        }
        text = lkg_must(strndup(start, (size_t)(p->p - start)));
        if (p->flags & LKG_DECODE_UNTYPED) {
                if (lkg_number_untyped(text, untyped) < 0)
                        return fail(p, LKG_C_SCALAR, start,
                                    "the number is out of range (want one below 1.8e308)");
                *ret = lkg_value_new_number(untyped, p->source, p->line, column);
        } else {
                *ret = lkg_value_new_number(text, p->source, p->line, column);
        }
        return 0;
}

/* ---- the tree ---- */

static bool are_maps(const struct lkg_value *a, const struct lkg_value *b)
{
        return lkg_value_type(a) == LKG_MAP && lkg_value_type(b) == LKG_MAP;
}

/* A key, and where it is. */
struct json_name {
        char *text;
        size_t size;
        unsigned line, column;
};

static void name_deinit(struct json_name *name)
{
        free(name->text);
}

/* For duplicate keys: as in yaml.c, but not for two maps of one name, which Go merges (LKG_DECODE_TWICE). */
static void report_again(struct parse *p, const struct json_name *name, const struct lkg_value *earlier,
                         const struct lkg_value *value)
{
        struct lkg_where where = { p->source ? p->source->file : NULL, name->line, name->column };
        bool strict = p->flags & LKG_DECODE_STRICT;
        bool merged = p->flags & LKG_DECODE_TWICE && are_maps(earlier, value);

        lkg_report_add(p->report, strict ? LKG_ERROR : LKG_WARNING,
                       strict ? LKG_C_DUPLICATE_HARD : LKG_C_DUPLICATE, &where,
                       strict   ? "key %s is already set on line %u; keep one of the two"
                       : merged ? "key %s is already set on line %u; the two are merged, and of what both "
                                  "have the last one counts"
                                : "key %s is already set on line %u; the last one counts",
                       LKG_QUOTE(lkg_span(name->text, name->size)), lkg_value_line(earlier));
        if (strict)
                p->failed = true;
}

/*
 * The component decodes one value over the other: maps are merged member by member (unlike in a merge patch, a null does not remove
 * what an earlier member set); otherwise the later value records the earlier one.
 */
static struct lkg_value *join(const struct lkg_value *earlier, const struct lkg_value *value)
{
        struct lkg_value *both;

        if (!are_maps(earlier, value))
                return lkg_value_over(value, earlier);
        both = lkg_value_clone_shallow(earlier);
        for (struct lkg_member m = { 0 }; lkg_value_next(value, &m);) {
                const struct lkg_value *before = lkg_map_find(earlier, m.key);

                (void)lkg_map_set(both, m.key.data, m.key.size,
                                  before ? join(before, m.value) : lkg_value_ref(m.value));
        }
        return both;
}

static int read_value(struct parse *p, struct lkg_value **ret);

static int read_key(struct parse *p, struct json_name *ret)
{
        int r;

        ret->line = p->line;
        ret->column = column_at(p, p->p);
        if (p->p >= p->end || *p->p != '"')
                return syntax(p, "a key in double quotes");
        r = read_string(p);
        if (r < 0)
                return r;
        ret->text = lkg_must(lkg_buf_steal(&p->text, &ret->size));
        skip_space(p);
        if (p->p >= p->end || *p->p != ':')
                return syntax(p, "':' after a key");
        p->p++;
        skip_space(p);
        return 0;
}

static int read_member(struct parse *p, struct lkg_value *map)
{
        LKG_CLEANUP(name_deinit) struct json_name name = { 0 };
        const struct lkg_value *earlier;
        struct lkg_value *value, *both;
        int r = read_key(p, &name);

        if (r == 0)
                r = read_value(p, &value);
        if (r < 0)
                return r;
        earlier = lkg_map_find(map, lkg_span(name.text, name.size));
        if (earlier)
                report_again(p, &name, earlier, value);
        if (earlier && p->flags & LKG_DECODE_TWICE) {
                both = join(earlier, value);
                lkg_value_unref(value);
                value = both;
        }
        (void)lkg_map_set(map, name.text, name.size, value);
        return 0;
}

static int read_item(struct parse *p, struct lkg_value *list)
{
        struct lkg_value *value;
        int r = read_value(p, &value);

        if (r == 0)
                lkg_list_append(list, value);
        return r;
}

/* Behind the opening bracket of @value. A mistake is the end of reading. */
static int read_members(struct parse *p, struct lkg_value *value)
{
        const struct lkg_value *around = p->open;
        bool map = lkg_value_type(value) == LKG_MAP;

        p->open = value;
        p->depth++;
        for (skip_space(p); p->p >= p->end || *p->p != (map ? '}' : ']'); skip_space(p)) {
                int r;

                if (lkg_value_size(value) > 0) {
                        if (p->p >= p->end || *p->p != ',')
                                return syntax(p, map ? "',' or '}'" : "',' or ']'");
                        p->p++;
                        skip_space(p);
                }
                r = map ? read_member(p, value) : read_item(p, value);
                if (r < 0)
                        return r;
        }
        p->p++;
        p->depth--;
        p->open = around;
        return 0;
}

static bool take_word(struct parse *p, const char *word)
{
        size_t n = strlen(word);

        if ((size_t)(p->end - p->p) < n || memcmp(p->p, word, n) != 0)
                return false;
        p->p += n;
        return true;
}

/* Called at the first byte of a value. */
static int read_value(struct parse *p, struct lkg_value **ret)
{
        LKG_CLEANUP(lkg_value_unrefp) struct lkg_value *value = NULL;
        unsigned column = column_at(p, p->p);
        int r = 0;

        if (++p->n_values > LKG_DOC_NODES_MAX)
                return fail(p, LKG_C_LIMIT, p->p, "the document has more than 1000000 values");
        if (p->p >= p->end)
                return syntax(p, "a value");
        switch (*p->p) {
        case '{':
        case '[':
                if (p->depth >= LKG_DOC_DEPTH_MAX)
                        return fail(p, LKG_C_LIMIT, p->p, "nested deeper than 1000 levels");
                value = *p->p++ == '{' ? lkg_value_new_map(p->source, p->line, column)
                                       : lkg_value_new_list(p->source, p->line, column);
                r = read_members(p, value);
                break;
        case '"':
                r = read_string(p);
                value = lkg_value_new_string(lkg_buf_text(&p->text), p->text.size, p->source, p->line,
                                             column);
                break;
        case '-':
        case '0' ... '9':
                r = read_number(p, column, &value);
                break;
        default:
                if (take_word(p, "true"))
                        value = lkg_value_new_bool(true, p->source, p->line, column);
                else if (take_word(p, "false"))
                        value = lkg_value_new_bool(false, p->source, p->line, column);
                else if (take_word(p, "null"))
                        value = lkg_value_new_null(p->source, p->line, column);
                else
                        return syntax(p, "a value (strings stand in double quotes)");
        }
        if (r == 0)
                *ret = LKG_STEAL(value);
        return r;
}

int lkg_decode_json(const char *data, size_t size, unsigned flags, struct lkg_source *source,
                    struct lkg_report *report, struct lkg_value **ret)
{
        struct parse p = { .p = data, .end = data + size, .line = 1, .seen = data, .seen_column = 1 };
        LKG_CLEANUP(lkg_value_unrefp) struct lkg_value *root = NULL;
        int r;

        p.flags = flags;
        p.source = source;
        p.report = report;
        if (size > (flags & LKG_DECODE_OWN ? LKG_FALLBACK_BYTES_MAX : LKG_DOC_BYTES_MAX))
                return fail(&p, LKG_C_LIMIT, data, "the document has more than 4194304 bytes");
        skip_space(&p);
        r = read_value(&p, &root);
        if (r == 0) {
                skip_space(&p);
                r = p.p < p.end ? syntax(&p, "nothing more after the document") : p.failed ? -EBADMSG : 0;
        }
        if (r == 0)
                *ret = LKG_STEAL(root);
        lkg_buf_deinit(&p.text);
        return r;
}
