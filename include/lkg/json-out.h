/* SPDX-License-Identifier: Apache-2.0 */
/*
 * JSON output: records, status files, requests. It is built as json-c objects and written by json-c, never
 * assembled as text.
 *
 * For a failed allocation json-c returns NULL, which means null in a document; it writes truncated text if
 * its buffer cannot grow, and passes any byte through. Here each of these is an error: the first one is
 * kept, later calls do nothing, and lkg_json_write() returns it instead of a text.
 *
 * Documents of components are written by lkg/render.h instead: numbers keep their text, and keys may be
 * anything. Owned by one thread.
 */
#pragma once

#include <lkg/buf.h>

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

struct lkg_json {
        struct json_object *root;
        struct json_object *open[LKG_JSON_DEPTH_MAX]; /* borrowed, parts of @root */
        size_t n_open;
        size_t room; /* maximum number of bytes of the text */
        bool pretty;
        int error; /* the first one */
};

#define LKG_JSON_INIT \
        {             \
                0     \
        }

void lkg_json_deinit(struct lkg_json *json);

/*
 * @name: name of a member of a map, printable ASCII without `"` and `\`; NULL for the whole document, and in
 * a list. An existing name gets the new value.
 */

/** lkg_json_is_name() - may a member have this name? */
bool lkg_json_is_name(const char *name);
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
 * lkg_json_read_flat() - add the members of a map that lkg_json_write() wrote, none of them a map or a list,
 * to the map that was begun last. For callers that change some of them; untrusted text must be read with
 * lkg/decode.h.
 *
 * Return: 0; -EBADMSG: it is not such a map, or larger than LKG_JSON_FLAT_MAX, and nothing was added;
 * -ENOMEM.
 */
int lkg_json_read_flat(struct lkg_json *json, const char *text, size_t size);
/**
 * lkg_json_get() - the text of a member of the map that was begun last; NULL: there is none, or it contains
 * a NUL. Valid until it is replaced.
 */
const char *lkg_json_get(const struct lkg_json *json, const char *name);
