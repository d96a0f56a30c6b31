/* SPDX-License-Identifier: Apache-2.0 */
/* Text: buffers, spans, UTF-8, lists of strings, names, durations, and the writer of JSON. */
#pragma once

#include <stdarg.h>

#include <lkg/base.h>

/*
 * A growing byte buffer. Allocation failure is sticky: every later append does nothing and lkg_buf_failed()
 * is true, so a renderer checks once at its end. Owned by one thread.
 */

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
/** lkg_buf_text() - what @buf has as a string, "" for nothing; without memory see lkg_no_memory(). Valid until it changes. */
const char *lkg_buf_text(struct lkg_buf *buf);

/** lkg_format(), lkg_vformat(), lkg_copy() - as asprintf(), vasprintf() and strdup(); without memory see lkg_no_memory(). NULL stays NULL. */
char *lkg_vformat(const char *fmt, va_list ap) LKG_PRINTF(1, 0);
char *lkg_format(const char *fmt, ...) LKG_PRINTF(1, 2);
char *lkg_copy(const char *text);

/** lkg_hex_digit() - what a hexadecimal digit stands for; -1: it is none. */
int lkg_hex_digit(char c);
/**
 * lkg_digits() - the number that decimal digits at the start of @text say: no blanks, no sign.
 * Return: what follows them; NULL: there are none, or too many for 64 bits.
 */
const char *lkg_digits(const char *text, uint64_t *ret);

/** lkg_escape() - append @text, with bytes up to @max_control, 0x7f and '%' as %XX. */
void lkg_escape(struct lkg_buf *buf, const char *text, unsigned char max_control);
/** lkg_unescape() - in place. Return: 0; -EBADMSG: an invalid escape, or an escaped NUL. */
int lkg_unescape(char *text);

/* ---- span ---- */

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
/** lkg_path_is_clean() - has a path, absolute or not, a name in each of its parts, and neither . nor ..? "/" has none. */
bool lkg_path_is_clean(struct lkg_span path);
/* lkg_quote() and lkg_piece() of a span, for a message: until the end of the block. */
#define LKG_QUOTE(span) lkg_quote_span(span, (char[5 * 64 + 8]){ 0 })
#define LKG_PIECE(span) lkg_piece(span, (char[LKG_PIECE_MAX]){ 0 })
static inline const char *lkg_quote_span(struct lkg_span span, char buf[static 5 * 64 + 8])
{
        return lkg_quote(span.data, span.size, buf);
}
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

/* ---- utf8 ---- */

/* UTF-8 as in RFC 3629: no surrogates, nothing above U+10FFFF, no overlong sequences. */

#define LKG_UTF8_MAX 4 /* bytes of a character */

/** lkg_utf8_decode() - the first character of the @n bytes at @p. Return: its length in bytes; 0: not UTF-8. */
static inline size_t lkg_utf8_decode(const unsigned char *p, size_t n, uint32_t *ret)
{
        if (n == 0)
                return 0;
        if (p[0] < 0x80) {
                *ret = p[0];
                return 1;
        }
        if (p[0] >= 0xc2 && p[0] < 0xe0 && n >= 2 && (p[1] & 0xc0) == 0x80) {
                *ret = (uint32_t)(p[0] & 0x1f) << 6 | (p[1] & 0x3f);
                return 2;
        }
        if ((p[0] & 0xf0) == 0xe0 && n >= 3 && (p[1] & 0xc0) == 0x80 && (p[2] & 0xc0) == 0x80) {
                *ret = (uint32_t)(p[0] & 0x0f) << 12 | (uint32_t)(p[1] & 0x3f) << 6 | (p[2] & 0x3f);
                return *ret >= 0x800 && (*ret < 0xd800 || *ret > 0xdfff) ? 3 : 0;
        }
        if (p[0] >= 0xf0 && p[0] < 0xf5 && n >= 4 && (p[1] & 0xc0) == 0x80 && (p[2] & 0xc0) == 0x80 &&
            (p[3] & 0xc0) == 0x80) {
                *ret = (uint32_t)(p[0] & 0x07) << 18 | (uint32_t)(p[1] & 0x3f) << 12 |
                       (uint32_t)(p[2] & 0x3f) << 6 | (p[3] & 0x3f);
                return *ret >= 0x10000 && *ret <= 0x10ffff ? 4 : 0;
        }
        return 0;
}

/** lkg_utf8_encode() - @c must be a character. Return: its length in bytes. */
static inline size_t lkg_utf8_encode(uint32_t c, char ret[static LKG_UTF8_MAX])
{
        size_t n = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
        static const unsigned char first[] = { 0, 0, 0xc0, 0xe0, 0xf0 };

        for (size_t i = n - 1; i > 0; i--, c >>= 6)
                ret[i] = (char)(0x80 | (c & 0x3f));
        ret[0] = (char)(first[n] | c);
        return n;
}

/** lkg_utf8_ok() - is all of it UTF-8? */
bool lkg_utf8_ok(const char *text, size_t size);
/** lkg_utf8_length() - size of the character at @text (at least one of @n bytes); 0: not valid UTF-8. */
static inline size_t lkg_utf8_length(const void *text, size_t n)
{
        uint32_t c;

        return lkg_utf8_decode(text, n, &c);
}

#define LKG_CHARACTER_NAME_MAX 64
/**
 * lkg_lookalike() - is @c a space, a quote, a dash or a letter that is easily taken for one of ASCII, or a letter of a script other
 * than Latin? Then its name, or that of its script.
 */
bool lkg_lookalike(uint32_t c, char ret[static LKG_CHARACTER_NAME_MAX]);
/** lkg_lookalike_is() - is it one of those, with a name that ends in @end: "SPACE", "QUOTATION MARK"? */
bool lkg_lookalike_is(uint32_t c, const char *end);

/** lkg_utf8_mend() - remove invalid UTF-8 from @text: half a character where it was truncated. */
void lkg_utf8_mend(char *text);

/* ---- strings ---- */

/* Lists of strings that own their strings. */

struct lkg_strings {
        char **items;
        size_t n_items;
};

/**
 * lkg_strings_take() - append @text, which the list owns from now on, to a list that is two members of another struct.
 *
 * Return: 0; -ENOMEM: nothing changed and @text is freed; also if @text is NULL, so that strdup() can be
 * used in the call.
 */
int lkg_strings_take(char ***items, size_t *n_items, char *text);

/** lkg_strings_add() - append a copy of the @size bytes at @text, up to their first NUL. Return: 0; -ENOMEM, nothing changed. */
int lkg_strings_add(struct lkg_strings *strings, const char *text, size_t size);

/** lkg_strings_parse() - strings that each end with a NUL (the last one may lack it). Return: 0 or -ENOMEM. */
int lkg_strings_parse(const char *data, size_t size, struct lkg_strings *ret);

/** lkg_strings_copy() - Return: 0 or -ENOMEM. */
int lkg_strings_copy(const struct lkg_strings *strings, struct lkg_strings *ret);

bool lkg_strings_equal(const struct lkg_strings *a, const struct lkg_strings *b);
/** lkg_strings_sort() - by their bytes. */
void lkg_strings_sort(struct lkg_strings *strings);
void lkg_strings_deinit(struct lkg_strings *strings);

/* ---- environment ---- */

/* A list of NAME=VALUE, each name only once: systemd.exec(5), systemd.service(5), "Command lines". */

/** lkg_env_set() - in place of an earlier value; a word that is not an assignment is ignored. Return: 0 or -ENOMEM. */
int lkg_env_set(struct lkg_strings *env, const char *assignment);
/** lkg_env_parse() - the text of an EnvironmentFile=. Return: 0 or -ENOMEM. */
int lkg_env_parse(struct lkg_strings *env, const char *text, size_t size);
/**
 * lkg_exec_expand() - expand the variables in one word of ExecStart=; each resulting word is ended by a NUL.
 * @ret_lacking: gets the names of those that are not set; may be NULL
 *
 * `$NAME` as a whole word: split at white space, quotes respected, so none or several words. `${NAME}`
 * anywhere: exactly its text. `$$`: one `$`. A variable that is not set is empty. Failure is sticky in @ret.
 */
void lkg_exec_expand(const struct lkg_strings *env, const char *word, struct lkg_buf *ret,
                     struct lkg_strings *ret_lacking);

/* ---- name ---- */

/*
 * Names of Kubernetes objects. Rule: apimachinery, pkg/api/validate/content (RFC 1123). No state; reasons as
 * for a span.
 */

#define LKG_DNS_LABEL_MAX     63u
#define LKG_DNS_SUBDOMAIN_MAX 253u

/** lkg_name_dns_label() - the name of a namespace (`kube-system`), at most 63 bytes. Return: 0; -EINVAL. */
int lkg_name_dns_label(const char *text, size_t size, char *reason);
/** lkg_name_dns_subdomain() - `example.com`: lower case labels, at most 253 bytes. Return: 0; -EINVAL. */
int lkg_name_dns_subdomain(const char *text, size_t size, char *reason);

/* ---- nearest ---- */

/*
 * "Did you mean ...?": finds the known name that is nearest to a misspelt one. Offer every known name, then
 * query the best.
 */

struct lkg_nearest {
        const char *wrong; /* borrowed, like every name offered */
        const char *best;
        unsigned distance;
};

/** lkg_nearest_init() - names longer than 64 bytes match nothing. */
void lkg_nearest_init(struct lkg_nearest *nearest, const char *wrong);
/** lkg_nearest_offer() - offer an existing name. */
void lkg_nearest_offer(struct lkg_nearest *nearest, const char *name);
/**
 * lkg_nearest_best() - the nearest name offered, or NULL if none is near.
 *
 * Near means: equal except for case; or at most two letters wrong, missing, extra or swapped, and fewer than
 * a third of the name (one for short names).
 */
static inline const char *lkg_nearest_best(const struct lkg_nearest *nearest)
{
        return nearest->best;
}

/* ---- duration ---- */

/*
 * Durations as Go writes them: `1h30m`, `-1.5s`, `100ms`. Rule: the standard library's time.ParseDuration
 * and Duration.String (Go 1.26), which metav1.Duration and pflag's duration flags both use.
 */

#define LKG_DURATION_MAX 32 /* bytes of a canonical duration including the NUL; the longest has 26 */

/**
 * lkg_duration_parse() - parse a duration, in nanoseconds
 * @ret_ns: any int64, even negative
 * @reason: LKG_REFUSAL_MAX bytes or NULL
 *
 * An optional sign, then numbers with a unit each (`ns us µs μs ms s m h`), fractions allowed, in any order
 * and number; `0` needs no unit. Fractions of a nanosecond are dropped. JSON null and the empty string are
 * not durations.
 *
 * Return: 0; -EINVAL.
 */
int lkg_duration_parse(const char *text, size_t size, int64_t *ret_ns, char *reason);

/**
 * lkg_duration_parse_plain() - parse a length of time in our own settings, options and commands: the same
 * without a sign.
 * Return: 0; -EINVAL.
 */
int lkg_duration_parse_plain(const char *text, uint64_t *ret_ns);

/** lkg_duration_format() - write the canonical form: `1m0s`, `1.5s`, `100ms`, `0s`. Return: its length. */
size_t lkg_duration_format(int64_t ns, char buf[static LKG_DURATION_MAX]);

/* ---- identifiers: of objects of an API server, and parts of paths ---- */

#define LKG_IDENTIFIER_MAX 253u

/** lkg_identifier_in(), lkg_identifier_ok() - `[A-Za-z0-9._-]{1,253}`, not `.` or `..`. */
bool lkg_identifier_in(struct lkg_span text);
bool lkg_identifier_ok(const char *text);
/** lkg_copy_span() - copy @text to @ret[LKG_IDENTIFIER_MAX + 1]; the caller has checked its length. */
void lkg_copy_span(struct lkg_span text, char *ret);

/* ---- resourceVersions ---- */

enum lkg_version_order { LKG_VERSION_OLDER, LKG_VERSION_SAME, LKG_VERSION_NEWER, LKG_VERSION_OTHER };

/**
 * lkg_version_compare() - is @a older than, the same as or newer than @b, or just different?
 *
 * Decimal versions of any length are compared as numbers (they count the changes of the whole store, so they
 * are comparable between objects, too); other versions only for equality.
 */
enum lkg_version_order lkg_version_compare(const char *a, const char *b);

/* ---- json-out ---- */

/*
 * JSON output: records, status files, requests. Written member by member, so nothing is unbalanced, unescaped or without its comma. The
 * first error is kept, later calls do nothing, and lkg_json_write() returns it instead of a text.
 *
 * Documents of components are written by the renderer of lkg/documents.h instead: numbers keep their text, and keys may be
 * anything. Owned by one thread.
 */

#define LKG_JSON_DEPTH_MAX 16u         /* nested maps and lists */
#define LKG_JSON_BYTES_MAX (64u << 20) /* of one text */
#define LKG_JSON_FLAT_MAX  (64u << 10) /* of what lkg_json_read_flat() reads */

enum lkg_json_layout {
        LKG_JSON_AROUND, /* the layout of the parent */
        LKG_JSON_TIGHT,  /* `{"a":1,"b":2}` */
        LKG_JSON_ROW,    /* `{"a": 1, "b": 2}` */
        LKG_JSON_LINES,  /* each member of a list on its own line, without indentation */
        LKG_JSON_PRETTY, /* two spaces per level; only for the whole document */
        _LKG_JSON_LAYOUT_MAX,
};

struct json_object;

/* A map or list that was begun and has not ended. */
struct lkg_json_open {
        enum lkg_json_layout layout;
        bool is_map, any; /* any: it has members */
};

struct lkg_json {
        struct lkg_buf text;
        struct lkg_json_open open[LKG_JSON_DEPTH_MAX];
        size_t n_open;
        int error; /* the first one */
};

#define LKG_JSON_INIT                \
        {                            \
                .text = LKG_BUF_INIT \
        }

void lkg_json_deinit(struct lkg_json *json);

/*
 * @name: name of a member of a map, printable ASCII without `"` and `\`; NULL for the whole document, and in
 * a list. The caller gives no name twice.
 */

/**
 * lkg_json_map() - begin a map, until lkg_json_end(). @layout: for the whole document LKG_JSON_TIGHT or
 * LKG_JSON_PRETTY.
 */
void lkg_json_map(struct lkg_json *json, const char *name, enum lkg_json_layout layout);
/** lkg_json_list() - the same for a list. */
void lkg_json_list(struct lkg_json *json, const char *name, enum lkg_json_layout layout);
/** lkg_json_end() - end the map or list that was begun last. */
void lkg_json_end(struct lkg_json *json);

/**
 * lkg_json_text() - our own text, or text that was checked. Invalid UTF-8 is an error: -EILSEQ. Hidden
 * characters become \uNNNN.
 */
void lkg_json_text(struct lkg_json *json, const char *name, const char *text);
/** lkg_json_text_n() - the same for @size bytes, which may include NUL bytes. */
void lkg_json_text_n(struct lkg_json *json, const char *name, const char *text, size_t size);
/**
 * lkg_json_foreign() - text that may contain foreign words (file names, errors): a byte that is not UTF-8
 * becomes `\xNN`, as in lkg_buf_shown().
 */
void lkg_json_foreign(struct lkg_json *json, const char *name, const char *text);
/** lkg_json_time() - wall time in seconds. */
void lkg_json_time(struct lkg_json *json, const char *name, uint64_t wall_ns);
/** lkg_json_time_ns() - wall time with as many digits of the fraction as needed. */
void lkg_json_time_ns(struct lkg_json *json, const char *name, uint64_t wall_ns);
void lkg_json_u64(struct lkg_json *json, const char *name, uint64_t n);
void lkg_json_i64(struct lkg_json *json, const char *name, int64_t n);
void lkg_json_bool(struct lkg_json *json, const char *name, bool value);
void lkg_json_null(struct lkg_json *json, const char *name);
/** lkg_json_rendered() - a value that lkg_render_json_compact() wrote, unchanged. */
void lkg_json_rendered(struct lkg_json *json, const char *name, const char *text, size_t size);

/** lkg_json_fail() - a value could not be made: record @error, negative, unless there is an earlier one. */
void lkg_json_fail(struct lkg_json *json, int error);

/**
 * lkg_json_write() - append the text to @buf, without a line break.
 *
 * Return: 0; the first error (-ENOMEM, -EILSEQ, -EINVAL for a name, -E2BIG too deep, -EFBIG): @buf is
 * failed, and nothing was appended.
 */
int lkg_json_write(struct lkg_json *json, struct lkg_buf *buf);
/** lkg_json_write_line() - with a line break. */
int lkg_json_write_line(struct lkg_json *json, struct lkg_buf *buf);

/**
 * lkg_json_read_flat() - read a map that lkg_json_write() wrote, none of its members a map or a list, with json-c. At most LKG_JSON_FLAT_MAX
 * bytes and one level, so that its memory is bounded for any text (docs/decisions/028-who-reads-json.md).
 * @ret: lkg_json_flat_freep()
 *
 * Return: 0; -EBADMSG: it is not such a map; -ENOMEM.
 */
int lkg_json_read_flat(const char *text, size_t size, struct json_object **ret);
void lkg_json_flat_freep(struct json_object **object);
/* A text for a member; NULL = it stays as it is. */
struct lkg_json_change {
        const char *name, *text;
};
/**
 * lkg_json_copy_flat() - add the members of @object (NULL = none) to the map that was begun last. @changes: of some of them, and new ones;
 * the last has no name
 */
void lkg_json_copy_flat(struct lkg_json *json, struct json_object *object,
                        const struct lkg_json_change *changes);
/** lkg_json_get() - the text of a member; NULL: there is none, or it contains a NUL. Valid as long as @object. */
const char *lkg_json_get(struct json_object *object, const char *name);
