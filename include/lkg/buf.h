/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A growing byte buffer. Allocation failure is sticky: every later append does nothing and lkg_buf_failed()
 * is true, so a renderer checks once at its end. Owned by one thread.
 */
#pragma once

#include <stdarg.h>

#include <lkg/base.h>

struct lkg_buf {
        char *data; /* NUL-terminated whenever not NULL */
        size_t size, allocated;
        bool failed;
};

#define LKG_BUF_INIT \
        {            \
                0    \
        }

void lkg_buf_deinit(struct lkg_buf *buf);
/** lkg_buf_expect() - reserve room for @extra more bytes. */
void lkg_buf_expect(struct lkg_buf *buf, size_t extra);
void lkg_buf_append(struct lkg_buf *buf, const void *data, size_t size);
void lkg_buf_puts(struct lkg_buf *buf, const char *text);
void lkg_buf_putc(struct lkg_buf *buf, char c);
void lkg_buf_u64(struct lkg_buf *buf, uint64_t n); /* in decimal */
void lkg_buf_printf(struct lkg_buf *buf, const char *fmt, ...) LKG_PRINTF(2, 3);
void lkg_buf_reset(struct lkg_buf *buf); /* size 0, memory kept */
/** lkg_buf_steal() - hand the bytes to the caller (free() them); the buffer is empty afterwards. NULL if failed. */
char *lkg_buf_steal(struct lkg_buf *buf, size_t *ret_size);
/**
 * lkg_mask_text() - append @text with userinfo and query of every URL masked.
 * Return: whether anything was masked.
 */
bool lkg_mask_text(const char *text, size_t size, struct lkg_buf *buf);
/**
 * lkg_mask_url() - the same for a @text that is meant to be one URL, even a malformed one: everything before its last
 * `@` and after its first `?` or `#` is masked.
 * Return: whether anything was masked.
 */
bool lkg_mask_url(const char *text, size_t size, struct lkg_buf *buf);
/**
 * lkg_holds_secret_name() - is one of its words the name of a field that holds a credential, in any case? A
 * space or a colon may be missing or superfluous (`token:s3cret: x`, `user.token`): its value is a
 * credential, too.
 */
bool lkg_holds_secret_name(const char *name, size_t size);
/** lkg_find_scheme() - the first "://", where the rest of a URL begins, or NULL. */
const char *lkg_find_scheme(const char *text, size_t size);
/** lkg_has_private_key() - is there a private key in PEM, or the beginning of one? */
bool lkg_has_private_key(const char *text, size_t size);
/**
 * lkg_mask_name() - append a name as it may be shown: in `token:s3cret`, a key because a space is missing,
 * the part after the name of a credential is masked; in URLs what lkg_mask_text() masks; a private key
 * completely.
 * @secret: it is below the name of a credential (a header), so this applies to any first word.
 * Return: whether anything was masked.
 */
bool lkg_mask_name(const char *name, size_t size, bool secret, struct lkg_buf *buf);
/**
 * lkg_text_copy() - copy as much of @text to @ret[@size] as fits, never half a character of UTF-8; always
 * NUL-terminated.
 */
void lkg_text_copy(char *ret, size_t size, const char *text);
/**
 * lkg_is_hidden() - is the character invisible, or does it change the appearance of others? Control
 * characters (C0, DEL, C1), format characters (bidi marks and overrides, zero widths, tags; Unicode category
 * Cf), separators of lines and paragraphs.
 */
bool lkg_is_hidden(uint32_t c);
/**
 * lkg_shown_length() - size of the character at @text if it may be shown as it is; 0: hidden (@ret_hidden:
 * which one), or not UTF-8.
 */
size_t lkg_shown_length(const char *text, size_t size, uint32_t *ret_hidden);
/** lkg_buf_shown() - append @text; hidden characters and bytes that are not UTF-8 as \xNN, byte by byte. */
void lkg_buf_shown(struct lkg_buf *buf, const char *text, size_t size);
/** lkg_buf_utf8() - the same, but only for bytes that are not UTF-8: for JSON, which escapes hidden characters itself. */
void lkg_buf_utf8(struct lkg_buf *buf, const char *text, size_t size);
/** lkg_buf_shown_lines() - like lkg_buf_shown(), but keeps line breaks. */
void lkg_buf_shown_lines(struct lkg_buf *buf, const char *text);
/**
 * lkg_shown_error() - printf() to standard error, for text that may contain foreign words, including
 * arguments and paths.
 */
void lkg_shown_error(const char *fmt, ...) LKG_PRINTF(1, 2);
/** lkg_blank_hidden() - replace each hidden or invalid byte by @with, in place. */
void lkg_blank_hidden(char *text, size_t size, char with);
/**
 * lkg_buf_json_string() - append @text as a quoted JSON string; hidden characters as \uNNNN, invalid UTF-8
 * as U+FFFD.
 */
void lkg_buf_json_string(struct lkg_buf *buf, const char *text, size_t size);

static inline bool lkg_buf_failed(const struct lkg_buf *buf)
{
        return buf->failed;
}
