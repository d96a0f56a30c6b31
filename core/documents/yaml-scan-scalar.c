/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Scalars: block, quoted and plain (reference: scannerc.go of go.yaml.in/yaml/v2).
 *
 * A scalar that needs no conversion is a piece of the text. Only one with folded lines or escapes is built
 * in s->built.
 */
#include "yaml-scan.h"

/* ---- line folding, the same in quoted and plain scalars ---- */

/* White space between two words: blanks on one line, or line breaks. */
struct gap {
        struct lkg_span blanks; /* before the first break */
        bool broken;            /* there was a break (or an escaped one) */
        struct lkg_span first;  /* the first break; empty when it was escaped */
        const char *others;     /* from here ... */
        const char *end;        /* ... to here stand the other breaks, among blanks */
        size_t n_others;
};

static void put_span(struct lkg_buf *buf, struct lkg_span span)
{
        if (span.size)
                lkg_buf_append(buf, span.data, span.size);
}

static void put_breaks(struct lkg_buf *buf, const char *from, const char *end)
{
        while (from < end) {
                size_t size = lkg_yaml_break_size(from);

                if (size == 3)
                        lkg_buf_append(buf, from, 3);
                else if (size > 0)
                        lkg_buf_putc(buf, '\n');
                from += size ? size : 1;
        }
}

/* One line break becomes a space, n become n - 1 line breaks; LS and PS are not folded. */
static void put_gap(struct lkg_buf *buf, const struct gap *gap)
{
        if (!gap->broken) {
                put_span(buf, gap->blanks);
                return;
        }
        if (gap->first.size != 1)
                put_span(buf, gap->first);
        else if (gap->n_others == 0)
                lkg_buf_putc(buf, ' ');
        put_breaks(buf, gap->others, gap->end);
}

/* Skips one character of the gap. Return: false at its end. */
static bool gap_step(struct lkg_yaml_scan *s, struct gap *gap)
{
        const char *at = s->p;

        if (lkg_yaml_is(at, LKG_YC_BLANK)) {
                lkg_yaml_skip_ascii(s, 1);
                if (!gap->broken)
                        gap->blanks.size++;
                return true;
        }
        if (!gap->broken) {
                if (!lkg_yaml_skip_break(s, &gap->first))
                        return false;
                gap->broken = true;
                gap->others = gap->end = s->p;
                return true;
        }
        if (!lkg_yaml_skip_break(s, NULL))
                return false;
        gap->n_others++;
        gap->end = s->p;
        return true;
}

/* A document mark at the start of a line ends every scalar. */
static bool at_document_mark(const struct lkg_yaml_scan *s)
{
        const char *p = s->p;

        return s->at.column == 0 && (*p == '-' || *p == '.') && p[1] == *p && p[2] == *p &&
               lkg_yaml_is_blankz(p + 3);
}

/* ---- plain ---- */

/* Skip the characters of one word: up to white space or the end of a plain scalar. */
static void skip_word(struct lkg_yaml_scan *s)
{
        bool flow = lkg_yaml_flow_level(s) > 0;

        while (lkg_yaml_skip_until(s, LKG_YC_BLANK | LKG_YC_INDICATOR), !lkg_yaml_is_blankz(s->p)) {
                if (*s->p == ':' && lkg_yaml_is_blankz(s->p + 1))
                        return;
                if (flow && lkg_yaml_is(s->p, LKG_YC_FLOW))
                        return;
                lkg_yaml_skip(s);
        }
}

/*
 * Skip the gap after a word.
 * Return: 1 if the scalar may continue, 0 if it has ended, -EBADMSG.
 */
static int plain_gap(struct lkg_yaml_scan *s, struct lkg_yaml_mark start, struct gap *gap)
{
        unsigned indent = (unsigned)(s->indent + 1);

        *gap = (struct gap){ .blanks = { s->p, 0 } };
        do {
                if (gap->broken && s->at.column < indent && *s->p == '\t')
                        return lkg_yaml_fail(s, "while scanning a plain scalar", start,
                                             "found a tab character that violates indentation");
        } while (gap_step(s, gap));
        if (gap->blanks.size == 0 && !gap->broken)
                return 0;
        return lkg_yaml_flow_level(s) > 0 || s->at.column >= indent;
}

/*
 * The word after a gap belongs to the scalar if it has at least one character. A comment, a
 * document mark or an indicator ends the scalar, and the gap before it is not part of it.
 */
int lkg_yaml_scan_plain(struct lkg_yaml_scan *s, struct lkg_yaml_token *token)
{
        const char *start = s->p, *end, *word;
        struct gap gap = { 0 };
        bool one_piece = true;
        int r;

        token->plain = true;
        skip_word(s);
        end = s->p;
        while ((r = plain_gap(s, token->at, &gap)) > 0) {
                if (at_document_mark(s) || *s->p == '#')
                        break;
                word = s->p;
                skip_word(s);
                if (s->p == word)
                        break;
                if (gap.broken && one_piece) {
                        one_piece = false;
                        lkg_buf_reset(&s->built);
                        lkg_buf_append(&s->built, start, (size_t)(end - start));
                }
                if (!one_piece) {
                        put_gap(&s->built, &gap);
                        lkg_buf_append(&s->built, word, (size_t)(s->p - word));
                }
                end = s->p;
                gap.broken = false;
        }
        if (r < 0)
                return r;
        if (gap.broken) /* on a new line a key may begin again */
                s->key_allowed = true;
        token->value = (struct lkg_span){ start, (size_t)(end - start) };
        if (!one_piece)
                token->value = lkg_yaml_keep(s);
        return 0;
}

/* ---- quoted ---- */

static void put_character(struct lkg_buf *buf, uint32_t c)
{
        char bytes[LKG_UTF8_MAX];

        lkg_buf_append(buf, bytes, lkg_utf8_encode(c, bytes));
}

/* After `\x`, `\u` or `\U`. */
static int code_escape(struct lkg_yaml_scan *s, struct lkg_yaml_mark start, unsigned n_digits)
{
        static const char context[] = "while parsing a quoted scalar";
        uint64_t c = 0;

        for (unsigned i = 0; i < n_digits; i++) {
                if (!lkg_yaml_is(s->p + i, LKG_YC_HEX))
                        return lkg_yaml_fail(s, context, start, "did not find expected hexdecimal number");
                c = c << 4 | (uint32_t)lkg_hex_digit(s->p[i]);
        }
        if ((c >= 0xd800 && c <= 0xdfff) || c > 0x10ffff)
                return lkg_yaml_fail(s, context, start, "found invalid Unicode character escape code");
        put_character(&s->built, (uint32_t)c);
        lkg_yaml_skip_ascii(s, n_digits);
        return 0;
}

/* At a backslash that is not at the end of its line. The escapes of YAML 1.1; `\/` came with 1.2. */
static int escape(struct lkg_yaml_scan *s, struct lkg_yaml_mark start)
{
        static const struct {
                char name;
                uint32_t c;
        } escapes[] = {
                { '0', 0 },    { 'a', 0x07 },   { 'b', 0x08 },   { 't', 0x09 },  { '\t', 0x09 },
                { 'n', 0x0a }, { 'v', 0x0b },   { 'f', 0x0c },   { 'r', 0x0d },  { 'e', 0x1b },
                { ' ', 0x20 }, { '"', '"' },    { '\'', '\'' },  { '\\', '\\' }, { 'N', 0x85 },
                { '_', 0xa0 }, { 'L', 0x2028 }, { 'P', 0x2029 },
        };
        char name = s->p[1];

        for (size_t i = 0; i < LKG_ARRAY_SIZE(escapes); i++) {
                if (escapes[i].name != name)
                        continue;
                put_character(&s->built, escapes[i].c);
                lkg_yaml_skip_ascii(s, 2);
                return 0;
        }
        if (name != 'x' && name != 'u' && name != 'U')
                return lkg_yaml_fail(s, "while parsing a quoted scalar", start,
                                     name == '/' ? "the escape \\/ is not known in YAML 1.1; write / alone"
                                                 : "found unknown escape character");
        lkg_yaml_skip_ascii(s, 2);
        return code_escape(s, start, name == 'x' ? 2 : name == 'u' ? 4 : 8);
}

/*
 * Read characters up to white space or the closing quote.
 * Return: 0; 1 if the line ended with a backslash, which joins it with the next one without a space;
 * -EBADMSG.
 */
static int quoted_word(struct lkg_yaml_scan *s, bool single, struct lkg_yaml_mark start)
{
        while (!lkg_yaml_is_blankz(s->p)) {
                const char *from = s->p;

                if (single && *s->p == '\'') {
                        if (s->p[1] != '\'')
                                return 0;
                        lkg_yaml_skip_ascii(s, 2);
                        lkg_buf_putc(&s->built, '\'');
                        continue;
                }
                if (!single && *s->p == '"')
                        return 0;
                if (!single && *s->p == '\\') {
                        int r;

                        if (lkg_yaml_break_size(s->p + 1) > 0) {
                                lkg_yaml_skip_ascii(s, 1);
                                (void)lkg_yaml_skip_break(s, NULL);
                                return 1;
                        }
                        r = escape(s, start);
                        if (r < 0)
                                return r;
                        continue;
                }
                do
                        lkg_yaml_skip(s);
                while (!lkg_yaml_is(s->p, LKG_YC_BLANK | LKG_YC_BREAK | LKG_YC_END) && *s->p != '\'' &&
                       *s->p != '"' && *s->p != '\\');
                lkg_buf_append(&s->built, from, (size_t)(s->p - from));
        }
        return 0;
}

/* The usual case: no escape and no line break before the closing quote. */
static bool quoted_in_one_piece(struct lkg_yaml_scan *s, char quote, struct lkg_yaml_token *token)
{
        const char *p = s->p;

        while ((unsigned char)*p < 0x80 && *p != quote && *p != '\\' &&
               !lkg_yaml_is(p, LKG_YC_BREAK | LKG_YC_END))
                p++;
        if (*p != quote || (quote == '\'' && p[1] == '\''))
                return false;
        token->value = (struct lkg_span){ s->p, (size_t)(p - s->p) };
        lkg_yaml_skip_ascii(s, (size_t)(p - s->p) + 1);
        return true;
}

int lkg_yaml_scan_quoted(struct lkg_yaml_scan *s, bool single, struct lkg_yaml_token *token)
{
        static const char context[] = "while scanning a quoted scalar";
        char quote = single ? '\'' : '"';
        int r;

        lkg_yaml_skip_ascii(s, 1);
        if (quoted_in_one_piece(s, quote, token))
                return 0;
        lkg_buf_reset(&s->built);
        while (true) {
                struct gap gap = { 0 };

                if (at_document_mark(s))
                        return lkg_yaml_fail(s, context, token->at, "found unexpected document indicator");
                if (*s->p == '\0')
                        return lkg_yaml_fail(s, context, token->at, "found unexpected end of stream");
                r = quoted_word(s, single, token->at);
                if (r < 0)
                        return r;
                if (*s->p == quote)
                        break;
                gap.broken = r > 0;
                gap.blanks.data = gap.others = gap.end = s->p;
                while (gap_step(s, &gap))
                        ;
                put_gap(&s->built, &gap);
        }
        lkg_yaml_skip_ascii(s, 1);
        token->value = lkg_yaml_keep(s);
        return 0;
}

/* ---- block ---- */

struct block {
        bool literal;
        int chomp;       /* -1 strip, 0 clip, 1 keep */
        unsigned indent; /* 0 = not known yet */
        struct lkg_yaml_mark start;
        const char *breaks, *breaks_end; /* empty lines after the last line, among indentation */
};

static const char block_context[] = "while scanning a block scalar";

static bool chomping(struct lkg_yaml_scan *s, struct block *b)
{
        if (*s->p != '+' && *s->p != '-')
                return false;
        b->chomp = *s->p == '+' ? 1 : -1;
        lkg_yaml_skip_ascii(s, 1);
        return true;
}

static int indentation(struct lkg_yaml_scan *s, struct block *b)
{
        unsigned n;

        if (!lkg_yaml_is(s->p, LKG_YC_DIGIT))
                return 0;
        if (*s->p == '0')
                return lkg_yaml_fail(s, block_context, b->start,
                                     "found an indentation indicator equal to 0");
        n = (unsigned)(*s->p - '0');
        b->indent = s->indent >= 0 ? (unsigned)s->indent + n : n;
        lkg_yaml_skip_ascii(s, 1);
        return 0;
}

/*
 * Read `|` or `>`, then chomping and indentation indicators in either order, to the end of the line.
 */
static int block_header(struct lkg_yaml_scan *s, struct block *b)
{
        bool chomped;
        int r;

        lkg_yaml_skip_ascii(s, 1);
        chomped = chomping(s, b);
        r = indentation(s, b);
        if (r < 0)
                return r;
        if (!chomped)
                (void)chomping(s, b);
        lkg_yaml_skip_blanks(s);
        lkg_yaml_skip_comment(s);
        if (!lkg_yaml_is_breakz(s->p))
                return lkg_yaml_fail(s, block_context, b->start,
                                     "did not find expected comment or line break");
        (void)lkg_yaml_skip_break(s, NULL);
        return 0;
}

/* Skip indentation and empty lines. The first line that is not empty sets the indentation of the scalar. */
static int block_breaks(struct lkg_yaml_scan *s, struct block *b)
{
        unsigned deepest = 0;

        b->breaks = b->breaks_end = s->p;
        do {
                while ((b->indent == 0 || s->at.column < b->indent) && *s->p == ' ')
                        lkg_yaml_skip_ascii(s, 1);
                if (s->at.column > deepest)
                        deepest = s->at.column;
                if ((b->indent == 0 || s->at.column < b->indent) && *s->p == '\t')
                        return lkg_yaml_fail(s, block_context, b->start,
                                             "found a tab character where an indentation space is expected");
                if (!lkg_yaml_skip_break(s, NULL))
                        break;
                b->breaks_end = s->p;
        } while (true);
        if (b->indent == 0) {
                b->indent = deepest;
                if ((int)b->indent < s->indent + 1)
                        b->indent = (unsigned)(s->indent + 1);
                if (b->indent < 1)
                        b->indent = 1;
        }
        return 0;
}

static bool has_breaks(const struct block *b)
{
        for (const char *p = b->breaks; p < b->breaks_end; p++)
                if (lkg_yaml_break_size(p) > 0)
                        return true;
        return false;
}

int lkg_yaml_scan_block_scalar(struct lkg_yaml_scan *s, bool literal, struct lkg_yaml_token *token)
{
        struct block b = { .literal = literal, .start = token->at };
        struct lkg_span ended = { NULL, 0 }; /* the break that ended the line before */
        bool was_blank = false;
        int r = block_header(s, &b);

        if (r == 0)
                r = block_breaks(s, &b);
        if (r < 0)
                return r;
        lkg_buf_reset(&s->built);
        while (s->at.column == b.indent && *s->p != '\0') {
                bool blank = lkg_yaml_is(s->p, LKG_YC_BLANK); /* more indented lines are not folded */
                const char *line = s->p;

                if (!b.literal && !was_blank && !blank && ended.size == 1) {
                        if (!has_breaks(&b))
                                lkg_buf_putc(&s->built, ' ');
                } else {
                        put_span(&s->built, ended);
                }
                put_breaks(&s->built, b.breaks, b.breaks_end);
                was_blank = blank;
                while (lkg_yaml_skip_until(s, 0), !lkg_yaml_is_breakz(s->p))
                        lkg_yaml_skip(s);
                lkg_buf_append(&s->built, line, (size_t)(s->p - line));
                ended = (struct lkg_span){ NULL, 0 };
                (void)lkg_yaml_skip_break(s, &ended);
                r = block_breaks(s, &b);
                if (r < 0)
                        return r;
        }
        if (b.chomp >= 0)
                put_span(&s->built, ended);
        if (b.chomp > 0)
                put_breaks(&s->built, b.breaks, b.breaks_end);
        token->value = lkg_yaml_keep(s);
        return 0;
}
