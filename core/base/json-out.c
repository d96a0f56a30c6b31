/* SPDX-License-Identifier: Apache-2.0 */
/* Writes JSON member by member; and reads a map of such members back: see <lkg/text.h>. */
#include <assert.h>
#include <inttypes.h>

#include <json-c/json.h>

#include <lkg/text.h>

struct style {
        const char *comma, *colon;
        bool lines; /* each member on a line of its own */
};

static const struct style styles[_LKG_JSON_LAYOUT_MAX] = {
        [LKG_JSON_TIGHT] = { ",", "\":", false },
        [LKG_JSON_ROW] = { ", ", "\": ", false },
        [LKG_JSON_LINES] = { ",", "\":", true },
        [LKG_JSON_PRETTY] = { ",", "\": ", true },
};

void lkg_json_deinit(struct lkg_json *json)
{
        lkg_buf_deinit(&json->text);
        *json = (struct lkg_json)LKG_JSON_INIT;
}

void lkg_json_fail(struct lkg_json *json, int error)
{
        if (json->error == 0)
                json->error = error;
}

/* ---- what is around a value ---- */

static bool is_name(const char *name)
{
        for (; *name; name++)
                if (*name < ' ' || *name > '~' || *name == '"' || *name == '\\')
                        return false;
        return true;
}

static void put_line_break(struct lkg_json *json, enum lkg_json_layout layout, size_t depth)
{
        if (styles[layout].lines)
                lkg_buf_putc(&json->text, '\n');
        for (size_t i = 0; layout == LKG_JSON_PRETTY && i < depth; i++)
                lkg_buf_puts(&json->text, "  ");
}

/* What comes before a value of @size bytes. Return: false: there is an error, and nothing is to be written. */
static bool put_before(struct lkg_json *json, const char *name, size_t size)
{
        struct lkg_json_open *in = json->n_open > 0 ? &json->open[json->n_open - 1] : NULL;

        if (name && !is_name(name))
                lkg_json_fail(json, -EINVAL);
        if (size > LKG_JSON_BYTES_MAX || json->text.size > LKG_JSON_BYTES_MAX - size)
                lkg_json_fail(json, -EFBIG);
        if (json->error < 0)
                return false;
        assert(in ? (name != NULL) == in->is_map : !name && json->text.size == 0);
        if (!in)
                return true;
        if (in->any)
                lkg_buf_puts(&json->text, styles[in->layout].comma);
        put_line_break(json, in->layout, json->n_open);
        if (name) {
                lkg_buf_putc(&json->text, '"');
                lkg_buf_puts(&json->text, name);
                lkg_buf_puts(&json->text, styles[in->layout].colon);
        }
        in->any = true;
        return true;
}

static void begin(struct lkg_json *json, const char *name, enum lkg_json_layout layout, bool is_map)
{
        if (json->n_open == LKG_JSON_DEPTH_MAX)
                lkg_json_fail(json, -E2BIG);
        if (!put_before(json, name, 0))
                return;
        if (layout == LKG_JSON_AROUND && json->n_open > 0)
                layout = json->open[json->n_open - 1].layout;
        if (layout == LKG_JSON_AROUND || (layout == LKG_JSON_LINES && json->n_open > 0 &&
                                          json->open[json->n_open - 1].layout == LKG_JSON_LINES))
                layout = LKG_JSON_TIGHT; /* what is on a line has none of its own */
        json->open[json->n_open++] = (struct lkg_json_open){ layout, is_map, false };
        lkg_buf_putc(&json->text, is_map ? '{' : '[');
}

void lkg_json_map(struct lkg_json *json, const char *name, enum lkg_json_layout layout)
{
        begin(json, name, layout, /* is_map= */ true);
}

void lkg_json_list(struct lkg_json *json, const char *name, enum lkg_json_layout layout)
{
        begin(json, name, layout, /* is_map= */ false);
}

void lkg_json_end(struct lkg_json *json)
{
        const struct lkg_json_open *in;

        if (json->error < 0)
                return;
        assert(json->n_open > 0);
        in = &json->open[--json->n_open];
        if (in->any && in->layout == LKG_JSON_PRETTY)
                put_line_break(json, in->layout, json->n_open);
        lkg_buf_putc(&json->text, in->is_map ? '}' : ']');
}

/* ---- values ---- */

static bool put_before_text(struct lkg_json *json, const char *name, const char *text, size_t size)
{
        if (size <= LKG_JSON_BYTES_MAX && !lkg_utf8_ok(text, size))
                lkg_json_fail(json, -EILSEQ);
        return put_before(json, name, size);
}

void lkg_json_text_n(struct lkg_json *json, const char *name, const char *text, size_t size)
{
        if (put_before_text(json, name, text, size))
                lkg_buf_json_string(&json->text, text, size);
}

void lkg_json_text(struct lkg_json *json, const char *name, const char *text)
{
        lkg_json_text_n(json, name, text, strlen(text));
}

void lkg_json_foreign(struct lkg_json *json, const char *name, const char *text)
{
        LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf buf = LKG_BUF_INIT;
        size_t size = strlen(text);

        if (lkg_utf8_ok(text, size)) {
                lkg_json_text_n(json, name, text, size);
                return;
        }
        lkg_buf_utf8(&buf, text, size);
        if (lkg_buf_failed(&buf))
                lkg_json_fail(json, -ENOMEM);
        else
                lkg_json_text_n(json, name, buf.data, buf.size);
}

void lkg_json_time(struct lkg_json *json, const char *name, uint64_t wall_ns)
{
        char text[21];

        lkg_format_rfc3339(wall_ns, text);
        lkg_json_text(json, name, text);
}

void lkg_json_time_ns(struct lkg_json *json, const char *name, uint64_t wall_ns)
{
        char text[31];

        lkg_format_rfc3339_ns(wall_ns, text);
        lkg_json_text(json, name, text);
}

void lkg_json_u64(struct lkg_json *json, const char *name, uint64_t n)
{
        if (put_before(json, name, 0))
                lkg_buf_u64(&json->text, n);
}

void lkg_json_i64(struct lkg_json *json, const char *name, int64_t n)
{
        if (put_before(json, name, 0))
                lkg_buf_printf(&json->text, "%" PRId64, n);
}

void lkg_json_bool(struct lkg_json *json, const char *name, bool value)
{
        if (put_before(json, name, 0))
                lkg_buf_puts(&json->text, value ? "true" : "false");
}

void lkg_json_null(struct lkg_json *json, const char *name)
{
        if (put_before(json, name, 0))
                lkg_buf_puts(&json->text, "null");
}

void lkg_json_rendered(struct lkg_json *json, const char *name, const char *text, size_t size)
{
        if (put_before_text(json, name, text, size))
                lkg_buf_append(&json->text, text, size);
}

/* ---- the text ---- */

int lkg_json_write(struct lkg_json *json, struct lkg_buf *buf)
{
        assert(json->error < 0 || (json->text.size > 0 && json->n_open == 0) || json->text.failed);
        if (json->text.failed)
                lkg_json_fail(json, -ENOMEM);
        if (json->error == 0)
                lkg_buf_append(buf, json->text.data, json->text.size);
        else
                buf->failed = true;
        return json->error < 0 ? json->error : lkg_buf_failed(buf) ? -ENOMEM : 0;
}

int lkg_json_write_line(struct lkg_json *json, struct lkg_buf *buf)
{
        int r = lkg_json_write(json, buf);

        lkg_buf_putc(buf, '\n');
        return r == 0 && lkg_buf_failed(buf) ? -ENOMEM : r;
}

/* ---- reading a map back ---- */

static void tokener_freep(struct json_tokener **tokener)
{
        if (*tokener)
                json_tokener_free(*tokener);
}

static bool ends_at(const char *text, size_t size, struct json_tokener *tokener)
{
        size_t end = json_tokener_get_parse_end(tokener);

        while (end < size && strchr(" \t\r\n", text[end]))
                end++;
        return end == size;
}

static bool is_flat(struct json_object *object)
{
        json_object_object_foreach(object, key, value)
        {
                if (!is_name(key) || json_object_is_type(value, json_type_object) ||
                    json_object_is_type(value, json_type_array) ||
                    json_object_is_type(value, json_type_double))
                        return false;
        }
        return true;
}

int lkg_json_read_flat(const char *text, size_t size, struct json_object **ret)
{
        LKG_CLEANUP(tokener_freep) struct json_tokener *tokener = NULL;
        LKG_CLEANUP(lkg_json_flat_freep) struct json_object *object = NULL;

        if (size == 0 || *text != '{' || size > LKG_JSON_FLAT_MAX || memchr(text, '\0', size))
                return -EBADMSG;
        tokener = json_tokener_new_ex(/* the map and its members */ 2);
        if (!tokener)
                return -ENOMEM;
        /* Not strict: json-c 0.18 then refuses every character beyond ASCII (its issue 892). */
        json_tokener_set_flags(tokener, JSON_TOKENER_VALIDATE_UTF8);
        object = json_tokener_parse_ex(tokener, text, (int)size);
        if (json_tokener_get_error(tokener) != json_tokener_success || !ends_at(text, size, tokener) ||
            !json_object_is_type(object, json_type_object) || !is_flat(object))
                return -EBADMSG;
        *ret = LKG_STEAL(object);
        return 0;
}

void lkg_json_flat_freep(struct json_object **object)
{
        json_object_put(*object);
}

static void copy(struct lkg_json *json, const char *name, struct json_object *value)
{
        if (json_object_is_type(value, json_type_null))
                lkg_json_null(json, name);
        else if (json_object_is_type(value, json_type_boolean))
                lkg_json_bool(json, name, json_object_get_boolean(value));
        else if (json_object_is_type(value, json_type_string))
                lkg_json_text_n(json, name, json_object_get_string(value),
                                (size_t)json_object_get_string_len(value));
        else if (json_object_get_int64(value) < 0)
                lkg_json_i64(json, name, json_object_get_int64(value));
        else
                lkg_json_u64(json, name, json_object_get_uint64(value));
}

static const char *changed_text(const struct lkg_json_change *changes, const char *name)
{
        while (changes->name && strcmp(changes->name, name) != 0)
                changes++;
        return changes->text;
}

static void copy_members(struct lkg_json *json, struct json_object *object,
                         const struct lkg_json_change *changes)
{
        json_object_object_foreach(object, name, value)
        {
                const char *text = changed_text(changes, name);

                if (text)
                        lkg_json_text(json, name, text);
                else
                        copy(json, name, value);
        }
}

void lkg_json_copy_flat(struct lkg_json *json, struct json_object *object,
                        const struct lkg_json_change *changes)
{
        if (object)
                copy_members(json, object, changes);
        for (; changes->name; changes++)
                if (changes->text && !json_object_object_get_ex(object, changes->name, NULL))
                        lkg_json_text(json, changes->name, changes->text);
}

const char *lkg_json_get(struct json_object *object, const char *name)
{
        struct json_object *value = NULL;

        if (!json_object_object_get_ex(object, name, &value) ||
            !json_object_is_type(value, json_type_string))
                return NULL;
        return strlen(json_object_get_string(value)) == (size_t)json_object_get_string_len(value)
                       ? json_object_get_string(value)
                       : NULL;
}
