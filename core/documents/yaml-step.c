/* SPDX-License-Identifier: Apache-2.0 */
/* Basics of the scanner: classes of characters, moving over them, building text, and errors. */
#include "yaml-scan.h"

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
