/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A piece of text, and the reason why it is refused.
 *
 * All code that judges a single value as the component does (a duration, a name, a quantity, an address, a
 * flag) uses these. Text is passed as pointer and size, may contain NUL bytes and need not be UTF-8; nothing
 * is kept after the call. A refusal is -EINVAL and a reason: a clause that says what is wrong and what would
 * be right, printed after the field and its value. Reasons may quote parts of the value, so a caller that
 * judges a secret drops the reason.
 *
 * No state: any thread may call everything here.
 */
#pragma once

#include <lkg/base.h>

#define LKG_REFUSAL_MAX 160 /* bytes of a reason, including the NUL */
#define LKG_PIECE_MAX   104 /* bytes of a quoted piece, including the NUL */

struct lkg_span {
        const char *data; /* borrowed; not NUL-terminated */
        size_t size;
};

static inline struct lkg_span lkg_span(const char *data, size_t size)
{
        return (struct lkg_span){ data, size };
}

/** lkg_span_is() - are the bytes exactly those of the string @text? */
bool lkg_span_is(struct lkg_span span, const char *text);
bool lkg_span_equal(struct lkg_span a, struct lkg_span b);
/** lkg_span_trim() - remove white space at both ends: Unicode's White_Space, like Go's strings.TrimSpace. */
struct lkg_span lkg_span_trim(struct lkg_span span);
/** lkg_span_space() - size of the white space character at the start of @span; 0: none. */
size_t lkg_span_space(struct lkg_span span);
/**
 * lkg_span_cut() - split at the first @separator.
 *
 * Return: whether there is one; if not, @ret_before is all of @span and @ret_after is empty.
 */
bool lkg_span_cut(struct lkg_span span, char separator, struct lkg_span *ret_before,
                  struct lkg_span *ret_after);
/**
 * lkg_span_next() - iterate over the parts between separators: n separators make n + 1 parts, like
 * strings.Split.
 * @rest: initially the whole text; data is NULL after the last part
 *
 * Return: false: no part is left.
 */
bool lkg_span_next(struct lkg_span *rest, char separator, struct lkg_span *ret_part);
/** lkg_span_count() - how often @c occurs. */
size_t lkg_span_count(struct lkg_span span, char c);
/** lkg_span_dup() - a NUL-terminated copy; heap, caller frees; NULL = no memory. */
char *lkg_span_dup(struct lkg_span span);

/**
 * lkg_refuse() - write a reason.
 * @reason: LKG_REFUSAL_MAX bytes, or NULL; truncated if it is too long
 *
 * Return: -EINVAL, so that `return lkg_refuse(...)` reads well.
 */
int lkg_refuse(char *reason, const char *fmt, ...) LKG_PRINTF(2, 3);
/** lkg_piece() - the first bytes of @span in quotes, for a reason; long ones end in `...`. Return: @buf. */
const char *lkg_piece(struct lkg_span span, char buf[static LKG_PIECE_MAX]);
/**
 * lkg_reason() - @reason as it may be shown: it quotes parts of @value (lkg_piece()), which must not be
 * shown if @value contains a URL with userinfo or a query.
 * Return: @reason or a constant.
 */
const char *lkg_reason(struct lkg_span value, const char *reason);
