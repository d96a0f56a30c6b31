/* SPDX-License-Identifier: Apache-2.0 */
/*
 * JSON that others read: records, status files, requests. It is built as objects of json-c and written by it; nobody types
 * brackets.
 *
 * json-c answers a failed allocation with a NULL, which in a document means null, writes a text that is cut when its buffer cannot
 * grow, and lets any byte through. Here each of these is an error: the first one stays, whatever is put afterwards does nothing,
 * and lkg_json_write() returns it instead of a text.
 *
 * Documents of components are not written by this but by lkg/render.h: numbers keep the text that they had, and keys may be
 * anything. Owned by one thread.
 */
#pragma once

#include <lkg/buf.h>

#define LKG_JSON_DEPTH_MAX 16u         /* maps and lists inside one another */
#define LKG_JSON_BYTES_MAX (64u << 20) /* of one text */
#define LKG_JSON_FLAT_MAX  (64u << 10) /* of what lkg_json_read_flat() reads */

enum lkg_json_layout {
        LKG_JSON_AROUND, /* as what it stands in */
        LKG_JSON_TIGHT,  /* `{"a":1,"b":2}` */
        LKG_JSON_ROW,    /* `{"a": 1, "b": 2}` */
        LKG_JSON_LINES,  /* the members of a list on a line each, at its beginning */
        LKG_JSON_PRETTY, /* two spaces for each level; of the whole only */
        _LKG_JSON_LAYOUT_MAX,
};

struct json_object;

struct lkg_json {
        struct json_object *root;
        struct json_object *open[LKG_JSON_DEPTH_MAX]; /* borrowed, parts of @root */
        size_t n_open;
        size_t room; /* bytes that the text has at most */
        bool pretty;
        int error; /* the first one */
};

#define LKG_JSON_INIT \
        {             \
                0     \
        }

void lkg_json_deinit(struct lkg_json *json);

/*
 * @name: of a member of a map, printable ASCII without `"` and `\`; NULL for the whole, and in a list. A name that is there already
 * gets the new value.
 */

/** lkg_json_is_name() - may a member have this name? */
bool lkg_json_is_name(const char *name);
/** lkg_json_map() - begin a map, until lkg_json_end(). @layout: of the whole LKG_JSON_TIGHT or LKG_JSON_PRETTY. */
void lkg_json_map(struct lkg_json *json, const char *name, enum lkg_json_layout layout);
/** lkg_json_list() - the same for a list. */
void lkg_json_list(struct lkg_json *json, const char *name, enum lkg_json_layout layout);
/** lkg_json_end() - the map or list that was begun last is complete. */
void lkg_json_end(struct lkg_json *json);

/** lkg_json_text() - words of ours, and what was checked. Invalid UTF-8 is an error: -EILSEQ. Hidden characters are \uNNNN. */
void lkg_json_text(struct lkg_json *json, const char *name, const char *text);
/** lkg_json_text_n() - the same of @size bytes, a NUL among them, too. */
void lkg_json_text_n(struct lkg_json *json, const char *name, const char *text, size_t size);
/**
 * lkg_json_foreign() - what may hold words of others (names of files, errors): a byte that is no UTF-8 is `\xNN`, as in
 * lkg_buf_shown().
 */
void lkg_json_foreign(struct lkg_json *json, const char *name, const char *text);
/** lkg_json_time() - wall time, to the second. */
void lkg_json_time(struct lkg_json *json, const char *name, uint64_t wall_ns);
/** lkg_json_time_ns() - wall time with as many digits of a fraction as it has. */
void lkg_json_time_ns(struct lkg_json *json, const char *name, uint64_t wall_ns);
void lkg_json_u64(struct lkg_json *json, const char *name, uint64_t n);
void lkg_json_i64(struct lkg_json *json, const char *name, int64_t n);
void lkg_json_bool(struct lkg_json *json, const char *name, bool value);
void lkg_json_null(struct lkg_json *json, const char *name);
/** lkg_json_rendered() - a value that lkg_render_json_compact() wrote, as it is. */
void lkg_json_rendered(struct lkg_json *json, const char *name, const char *text, size_t size);

/** lkg_json_fail() - what was to be put could not be made: @error, negative, unless there was one before. */
void lkg_json_fail(struct lkg_json *json, int error);

/**
 * lkg_json_write() - append the text to @buf, without a line break behind it.
 *
 * Return: 0; the first error (-ENOMEM, -EILSEQ, -EINVAL for a name, -E2BIG too deep, -EFBIG): @buf is failed, and has nothing
 * of it.
 */
int lkg_json_write(struct lkg_json *json, struct lkg_buf *buf);
/** lkg_json_write_line() - with a line break. */
int lkg_json_write_line(struct lkg_json *json, struct lkg_buf *buf);

/**
 * lkg_json_read_flat() - the members of a map that lkg_json_write() wrote, none of them a map or a list, as members of the map
 * that was begun last. For who changes some of them; what anybody may have written is for lkg/decode.h.
 *
 * Return: 0; -EBADMSG: it is none, or larger than LKG_JSON_FLAT_MAX, and nothing was added; -ENOMEM.
 */
int lkg_json_read_flat(struct lkg_json *json, const char *text, size_t size);
/**
 * lkg_json_get() - the text of a member of the map that was begun last; NULL: there is none, or it has a NUL. Until it is
 * replaced.
 */
const char *lkg_json_get(const struct lkg_json *json, const char *name);
