/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bytes -> characters: UTF-8, or UTF-16 in either order when a byte order mark says so; only the characters
 * that YAML 1.1 allows (reference: readerc.go of go.yaml.in/yaml/v2). And the basics of the scanner: classes of
 * characters, moving over them, building text, and errors.
 */
#include "yaml-scan.h"

struct reader {
        const unsigned char *data;
        size_t size;
        size_t at;      /* next byte */
        bool wide, big; /* UTF-16; its byte order */
        unsigned char *to;
        size_t n;
        const char *fault;
        size_t fault_offset;
        bool wide_text; /* a character of more than one byte was put */
        bool cut;       /* the fault is a character that the end of the input cuts off */
};

/* The first byte alone gives the length of a character; the other bytes are checked afterwards. */
static size_t utf8_size(unsigned char c)
{
        if (c < 0x80)
                return 1;
        if ((c & 0xe0) == 0xc0)
                return 2;
        if ((c & 0xf0) == 0xe0)
                return 3;
        return (c & 0xf8) == 0xf0 ? 4 : 0;
}

static int fault(struct reader *r, size_t offset, const char *text)
{
        r->fault = text;
        r->fault_offset = offset;
        return -1;
}

/* The character does not end before @end: its rest is in the next chunk, or missing. */
static int cut(struct reader *r, size_t end, const char *text)
{
        if (end < r->size)
                return 0;
        r->cut = true;
        return fault(r, r->at, text);
}

static bool is_allowed(uint32_t c)
{
        if (c < 0x20)
                return c == '\t' || c == '\n' || c == '\r';
        if (c < 0xa0)
                return c < 0x7f || c == 0x85;
        return (c < 0xd800) || (c >= 0xe000 && c <= 0xfffd) || (c >= 0x10000 && c <= 0x10ffff);
}

/* Return the size of the character at @at: 0 if it does not end before @end, negative if it is invalid. */
static int narrow(struct reader *r, size_t end, uint32_t *ret)
{
        static const uint32_t first[] = { 0, 0, 0x80, 0x800, 0x10000 };
        const unsigned char *p = r->data + r->at;
        size_t size = utf8_size(*p);
        uint32_t c;

        if (size == 0)
                return fault(r, r->at, "invalid leading UTF-8 octet");
        if (size > end - r->at)
                return cut(r, end, "incomplete UTF-8 octet sequence");
        c = size == 1 ? *p : *p & (0xffu >> (size + 1));
        for (size_t i = 1; i < size; i++) {
                if ((p[i] & 0xc0) != 0x80)
                        return fault(r, r->at + i, "invalid trailing UTF-8 octet");
                c = c << 6 | (p[i] & 0x3f);
        }
        if (c < first[size])
                return fault(r, r->at, "invalid length of a UTF-8 sequence");
        if ((c >= 0xd800 && c <= 0xdfff) || c > 0x10ffff)
                return fault(r, r->at, "invalid Unicode character");
        *ret = c;
        return (int)size;
}

static uint32_t unit(const struct reader *r, size_t at)
{
        const unsigned char *p = r->data + at;

        return r->big ? (uint32_t)p[0] << 8 | p[1] : (uint32_t)p[1] << 8 | p[0];
}

static int wide(struct reader *r, size_t end, uint32_t *ret)
{
        uint32_t c, low;

        if (end - r->at < 2)
                return cut(r, end, "incomplete UTF-16 character");
        c = unit(r, r->at);
        if ((c & 0xfc00) == 0xdc00)
                return fault(r, r->at, "unexpected low surrogate area");
        if ((c & 0xfc00) != 0xd800) {
                *ret = c;
                return 2;
        }
        if (end - r->at < 4)
                return cut(r, end, "incomplete UTF-16 surrogate pair");
        low = unit(r, r->at + 2);
        if ((low & 0xfc00) != 0xdc00)
                return fault(r, r->at + 2, "expected low surrogate area");
        *ret = 0x10000 + ((c & 0x3ff) << 10) + (low & 0x3ff);
        return 4;
}

static void put(struct reader *r, uint32_t c)
{
        unsigned char *to = r->to + r->n;

        if (c < 0x80) {
                to[0] = (unsigned char)c;
                r->n += 1;
                return;
        }
        r->wide_text = true;
        r->n += lkg_utf8_encode(c, (char *)to);
}

/* The usual case at once: a run of printable ASCII, tabs and line feeds. */
static void copy_plain(struct reader *r, size_t end)
{
        size_t i = r->at;

        while (i < end && ((r->data[i] >= 0x20 && r->data[i] < 0x7f) || r->data[i] == '\n'))
                i++;
        memcpy(r->to + r->n, r->data + r->at, i - r->at);
        r->n += i - r->at;
        r->at = i;
}

/*
 * Read everything up to @end that is complete.
 * Return: 0, or negative on invalid input.
 */
static int read_chunk(struct reader *r, size_t end)
{
        while (r->at < end) {
                uint32_t c;
                int size;

                if (!r->wide)
                        copy_plain(r, end);
                if (r->at == end)
                        break;
                size = r->wide ? wide(r, end, &c) : narrow(r, end, &c);
                if (size <= 0)
                        return size;
                if (!is_allowed(c))
                        return fault(r, r->at, "control characters are not allowed");
                put(r, c);
                r->at += (size_t)size;
        }
        return 0;
}

/*
 * Skip the byte order mark.
 * Return: whether there was one.
 */
static size_t detect(struct reader *r)
{
        if (r->size >= 2 &&
            ((r->data[0] == 0xff && r->data[1] == 0xfe) || (r->data[0] == 0xfe && r->data[1] == 0xff))) {
                r->wide = true;
                r->big = r->data[0] == 0xfe;
                return 2;
        }
        return r->size >= 3 && memcmp(r->data, "\xef\xbb\xbf", 3) == 0 ? 3 : 0;
}

void lkg_yaml_read(const char *data, size_t size, struct lkg_yaml_text *ret)
{
        struct reader r = { .data = (const unsigned char *)data, .size = size };
        size_t start = 0, allocated;
        bool first = true;

        r.at = detect(&r);
        allocated = (r.wide ? size / 2 * 3 : size) + LKG_YAML_PAD;
        r.to = lkg_must(malloc(allocated));
        while (start < size && !r.fault) {
                size_t n_before = r.n, end = size - start > LKG_YAML_CHUNK ? start + LKG_YAML_CHUNK : size;

                if (read_chunk(&r, end) < 0 && !r.cut)
                        r.n = n_before;
                if (first)
                        ret->first_chunk = r.n;
                first = false;
                start = r.at;
        }
        memset(r.to + r.n, 0, allocated - r.n);
        ret->data = (char *)r.to;
        ret->size = r.n;
        ret->wide = r.wide_text;
        ret->fault = r.fault;
        ret->fault_offset = r.fault_offset;
}

/* ---- the basics of the scanner ---- */

/* Memory that keeps its address; a list of blocks. */
struct lkg_yaml_kept {
        struct lkg_yaml_kept *next;
        size_t size, allocated;
        char data[];
};

#define B LKG_YC_BLANK
#define N LKG_YC_BREAK
#define W (LKG_YC_WORD | LKG_YC_URI)
#define D (W | LKG_YC_DIGIT | LKG_YC_HEX)
#define H (W | LKG_YC_HEX)
#define U LKG_YC_URI
#define I LKG_YC_INDICATOR
#define F (LKG_YC_INDICATOR | LKG_YC_FLOW)
#define M LKG_YC_WIDE

const uint16_t lkg_yaml_classes[256] = {
        ['\0'] = LKG_YC_END, [' '] = B,         ['\t'] = B,          ['\n'] = N,        ['\r'] = N,
        [0x80 ... 0xc1] = M, [0xc2] = N | M,    [0xc3 ... 0xe1] = M, [0xe2] = N | M,    [0xe3 ... 0xff] = M,
        ['0' ... '9'] = D,   ['a' ... 'f'] = H, ['A' ... 'F'] = H,   ['g' ... 'z'] = W, ['G' ... 'Z'] = W,
        ['_'] = W,           ['-'] = W | I,     ['?'] = F | U,       [','] = F | U,     ['['] = F | U,
        [']'] = F | U,       ['{'] = F,         ['}'] = F,           [':'] = I | U,     ['#'] = I,
        ['&'] = I | U,       ['*'] = I | U,     ['!'] = I | U,       ['|'] = I,         ['>'] = I,
        ['\''] = I | U,      ['"'] = I,         ['%'] = I | U,       ['@'] = I | U,     ['`'] = I,
        [';'] = U,           ['/'] = U,         ['='] = U,           ['+'] = U,         ['$'] = U,
        ['.'] = U,           ['~'] = U,         ['('] = U,           [')'] = U,
};

#undef B
#undef N
#undef W
#undef D
#undef H
#undef U
#undef I
#undef F
#undef M

int lkg_yaml_fail(struct lkg_yaml_scan *s, const char *context, struct lkg_yaml_mark context_at,
                  const char *problem)
{
        s->problem = problem;
        s->problem_at = s->at;
        s->context = context;
        s->context_at = context_at;
        return -EBADMSG;
}

struct lkg_span lkg_yaml_keep(struct lkg_yaml_scan *s)
{
        const char *text = lkg_buf_text(&s->built);
        struct lkg_yaml_kept *kept = s->kept;
        struct lkg_span ret = { NULL, s->built.size };
        size_t size = ret.size + 1;

        if (!kept || kept->allocated - kept->size < size) {
                size_t allocated = size > 4000 ? size : 4000;

                kept = lkg_must(malloc(sizeof(*kept) + allocated));
                kept->next = s->kept;
                kept->size = 0;
                kept->allocated = allocated;
                s->kept = kept;
        }
        ret.data = memcpy(kept->data + kept->size, text, size);
        kept->size += size;
        return ret;
}

void lkg_yaml_kept_free(struct lkg_yaml_kept *kept)
{
        while (kept) {
                struct lkg_yaml_kept *next = kept->next;

                free(kept);
                kept = next;
        }
}

/* ---- moving on ---- */

void lkg_yaml_skip_comment(struct lkg_yaml_scan *s)
{
        if (*s->p != '#')
                return;
        while (lkg_yaml_skip_until(s, 0), !lkg_yaml_is_breakz(s->p))
                lkg_yaml_skip(s);
}

bool lkg_yaml_skip_break(struct lkg_yaml_scan *s, struct lkg_span *ret)
{
        size_t size = lkg_yaml_break_size(s->p);
        bool crlf = size == 2 && *s->p == '\r';

        if (size == 0)
                return false;
        if (ret) /* LS and PS are kept, everything else becomes a line feed */
                *ret = size == 3 ? (struct lkg_span){ s->p, 3 } : (struct lkg_span){ "\n", 1 };
        s->p += size;
        s->at.index += crlf ? 2 : 1;
        s->at.column = 0;
        s->at.line++;
        return true;
}
