/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Directives, anchors, aliases and tags (reference: scannerc.go of go.yaml.in/yaml/v2).
 */
#include "yaml-scan.h"

static struct lkg_span take_word(struct lkg_yaml_scan *s)
{
        const char *start = s->p;

        while (lkg_yaml_is(s->p, LKG_YC_WORD))
                lkg_yaml_skip_ascii(s, 1);
        return (struct lkg_span){ start, (size_t)(s->p - start) };
}

/* ---- anchors and aliases ---- */

int lkg_yaml_scan_anchor(struct lkg_yaml_scan *s, struct lkg_yaml_token *token)
{
        bool alias = *s->p == '*';

        lkg_yaml_skip_ascii(s, 1);
        token->type = alias ? LKG_YT_ALIAS : LKG_YT_ANCHOR;
        token->value = take_word(s);
        if (token->value.size == 0 || !(lkg_yaml_is_blankz(s->p) || strchr("?:,]}%@`", *s->p)))
                return lkg_yaml_fail(s, alias ? "while scanning an alias" : "while scanning an anchor",
                                     token->at, "did not find expected alphabetic or numeric character");
        return 0;
}

/* ---- tags ---- */

static const char *tag_context(bool directive)
{
        return directive ? "while parsing a %TAG directive" : "while parsing a tag";
}

/* `!`, `!word` or `!word!`. */
static int tag_handle(struct lkg_yaml_scan *s, bool directive, struct lkg_yaml_mark start,
                      struct lkg_span *ret)
{
        const char *from = s->p;

        if (*s->p != '!')
                return lkg_yaml_fail(s, tag_context(directive), start, "did not find expected '!'");
        lkg_yaml_skip_ascii(s, 1);
        (void)take_word(s);
        if (*s->p == '!')
                lkg_yaml_skip_ascii(s, 1);
        else if (directive && s->p - from > 1)
                return lkg_yaml_fail(s, tag_context(directive), start, "did not find expected '!'");
        *ret = (struct lkg_span){ from, (size_t)(s->p - from) };
        return 0;
}

static unsigned octet_of(const char *p)
{
        unsigned n = 0;

        for (int i = 1; i <= 2; i++)
                n = n << 4 | (unsigned)lkg_hex_digit(p[i]);
        return n;
}

/* `%C3%A9`: all bytes of one UTF-8 character. */
static int uri_escapes(struct lkg_yaml_scan *s, bool directive, struct lkg_yaml_mark start)
{
        const char *context = tag_context(directive);
        unsigned left = 0;
        bool first = true;

        do {
                unsigned octet;

                if (*s->p != '%' || !lkg_yaml_is(s->p + 1, LKG_YC_HEX) || !lkg_yaml_is(s->p + 2, LKG_YC_HEX))
                        return lkg_yaml_fail(s, context, start, "did not find URI escaped octet");
                octet = octet_of(s->p);
                if (first) {
                        if ((octet & 0xc0) == 0x80 || octet >= 0xf8)
                                return lkg_yaml_fail(s, context, start,
                                                     "found an incorrect leading UTF-8 octet");
                        left = (unsigned)lkg_yaml_char_size((char)octet);
                } else if ((octet & 0xc0) != 0x80) {
                        return lkg_yaml_fail(s, context, start, "found an incorrect trailing UTF-8 octet");
                }
                first = false;
                lkg_buf_putc(&s->built, (char)octet);
                lkg_yaml_skip_ascii(s, 3);
        } while (--left > 0);
        return 0;
}

/*
 * Read the part after a handle, or a whole tag. @head: its beginning, which was read as a handle at first.
 */
static int tag_uri(struct lkg_yaml_scan *s, bool directive, struct lkg_span head, struct lkg_yaml_mark start,
                   struct lkg_span *ret)
{
        const char *from = s->p;

        lkg_buf_reset(&s->built);
        if (head.size > 1)
                lkg_buf_append(&s->built, head.data + 1, head.size - 1);
        while (lkg_yaml_is(s->p, LKG_YC_URI)) {
                if (*s->p == '%') {
                        int r = uri_escapes(s, directive, start);

                        if (r < 0)
                                return r;
                        continue;
                }
                lkg_buf_putc(&s->built, *s->p);
                lkg_yaml_skip_ascii(s, 1);
        }
        if (s->p == from && head.size == 0)
                return lkg_yaml_fail(s, tag_context(directive), start, "did not find expected tag URI");
        *ret = lkg_yaml_keep(s);
        return 0;
}

/* `!<uri>` */
static int verbatim_tag(struct lkg_yaml_scan *s, struct lkg_yaml_token *token)
{
        static const struct lkg_span none = { NULL, 0 };
        int r;

        lkg_yaml_skip_ascii(s, 2);
        r = tag_uri(s, false, none, token->at, &token->suffix);
        if (r < 0)
                return r;
        if (*s->p != '>')
                return lkg_yaml_fail(s, "while scanning a tag", token->at, "did not find the expected '>'");
        lkg_yaml_skip_ascii(s, 1);
        return 0;
}

/* `!handle!suffix`, `!suffix`, or `!` alone, which has no handle and the suffix `!`. */
static int short_tag(struct lkg_yaml_scan *s, struct lkg_yaml_token *token)
{
        struct lkg_span head = { NULL, 0 }, handle;
        int r = tag_handle(s, false, token->at, &handle);

        if (r < 0)
                return r;
        if (handle.size < 2 || handle.data[handle.size - 1] != '!') {
                head = handle;
                handle = (struct lkg_span){ "!", 1 };
        }
        r = tag_uri(s, false, head, token->at, &token->suffix);
        if (r < 0)
                return r;
        if (token->suffix.size == 0)
                token->suffix = handle;
        else
                token->value = handle;
        return 0;
}

int lkg_yaml_scan_tag(struct lkg_yaml_scan *s, struct lkg_yaml_token *token)
{
        int r;

        token->type = LKG_YT_TAG;
        r = s->p[1] == '<' ? verbatim_tag(s, token) : short_tag(s, token);
        if (r < 0)
                return r;
        if (!lkg_yaml_is_blankz(s->p))
                return lkg_yaml_fail(s, "while scanning a tag", token->at,
                                     "did not find expected whitespace or line break");
        return 0;
}

/* ---- directives ---- */

static int version_number(struct lkg_yaml_scan *s, struct lkg_yaml_mark start, int *ret)
{
        static const char context[] = "while scanning a %YAML directive";
        int n = 0, n_digits = 0;

        while (lkg_yaml_is(s->p, LKG_YC_DIGIT)) {
                if (++n_digits > 2)
                        return lkg_yaml_fail(s, context, start, "found extremely long version number");
                n = n * 10 + (*s->p - '0');
                lkg_yaml_skip_ascii(s, 1);
        }
        if (n_digits == 0)
                return lkg_yaml_fail(s, context, start, "did not find expected version number");
        *ret = n;
        return 0;
}

static int yaml_directive(struct lkg_yaml_scan *s, struct lkg_yaml_token *token)
{
        int r;

        token->type = LKG_YT_VERSION;
        lkg_yaml_skip_blanks(s);
        r = version_number(s, token->at, &token->major);
        if (r < 0)
                return r;
        if (*s->p != '.')
                return lkg_yaml_fail(s, "while scanning a %YAML directive", token->at,
                                     "did not find expected digit or '.' character");
        lkg_yaml_skip_ascii(s, 1);
        return version_number(s, token->at, &token->minor);
}

static int tag_directive(struct lkg_yaml_scan *s, struct lkg_yaml_token *token)
{
        static const struct lkg_span none = { NULL, 0 };
        static const char context[] = "while scanning a %TAG directive";
        int r;

        token->type = LKG_YT_TAG_DIRECTIVE;
        lkg_yaml_skip_blanks(s);
        r = tag_handle(s, true, token->at, &token->value);
        if (r < 0)
                return r;
        if (!lkg_yaml_is(s->p, LKG_YC_BLANK))
                return lkg_yaml_fail(s, context, token->at, "did not find expected whitespace");
        lkg_yaml_skip_blanks(s);
        r = tag_uri(s, true, none, token->at, &token->suffix);
        if (r < 0)
                return r;
        if (!lkg_yaml_is_blankz(s->p))
                return lkg_yaml_fail(s, context, token->at,
                                     "did not find expected whitespace or line break");
        return 0;
}

int lkg_yaml_scan_directive(struct lkg_yaml_scan *s, struct lkg_yaml_token *token)
{
        static const char context[] = "while scanning a directive";
        struct lkg_span name;
        int r;

        token->at = s->at;
        lkg_yaml_skip_ascii(s, 1);
        name = take_word(s);
        if (name.size == 0)
                return lkg_yaml_fail(s, context, token->at, "could not find expected directive name");
        if (!lkg_yaml_is_blankz(s->p))
                return lkg_yaml_fail(s, context, token->at, "found unexpected non-alphabetical character");
        if (lkg_span_is(name, "YAML"))
                r = yaml_directive(s, token);
        else if (lkg_span_is(name, "TAG"))
                r = tag_directive(s, token);
        else
                r = lkg_yaml_fail(s, context, token->at, "found unknown directive name");
        if (r < 0)
                return r;
        lkg_yaml_skip_blanks(s);
        lkg_yaml_skip_comment(s);
        if (!lkg_yaml_is_breakz(s->p))
                return lkg_yaml_fail(s, context, token->at, "did not find expected comment or line break");
        (void)lkg_yaml_skip_break(s, NULL);
        return 0;
}
