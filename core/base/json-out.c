/* SPDX-License-Identifier: Apache-2.0 */
/* Writes JSON: see json-out.h. */
#include <assert.h>
#include <inttypes.h>

#include <json-c/json.h>
#include <json-c/printbuf.h>

#include <lkg/text.h>

#define SLACK 64u /* json-c asks for a little more than a text has */

void lkg_json_deinit(struct lkg_json *json)
{
        json_object_put(json->root);
        *json = (struct lkg_json)LKG_JSON_INIT;
}

static void object_putp(struct json_object **object)
{
        json_object_put(*object);
}

void lkg_json_fail(struct lkg_json *json, int error)
{
        if (json->error == 0)
                json->error = error;
}

/* ---- values that json-c would write differently ---- */

/* A string as it appears in the document, with quotes. */
struct written {
        size_t size;
        char data[];
};

static int append(struct printbuf *pb, const char *data, size_t size)
{
        return printbuf_memappend(pb, data, (int)size) < 0 ? -1 : 0;
}

static int write_written(struct json_object *object, struct printbuf *pb, int level, int flags)
{
        const struct written *written = json_object_get_userdata(object);

        (void)level;
        (void)flags;
        return append(pb, written->data, written->size);
}

struct layout {
        const char *colon, *comma, *before; /* before: written before each member */
};

static const struct layout layouts[_LKG_JSON_LAYOUT_MAX] = {
        [LKG_JSON_TIGHT] = { "\":", ",", "" },
        [LKG_JSON_ROW] = { "\": ", ", ", "" },
        [LKG_JSON_LINES] = { "\":", ",", "\n" },
};

static int write_number(struct json_object *object, struct printbuf *pb)
{
        char digits[24];
        int64_t n = json_object_get_int64(object);
        int size = n < 0 ? snprintf(digits, sizeof(digits), "%" PRId64, n)
                         : snprintf(digits, sizeof(digits), "%" PRIu64, json_object_get_uint64(object));

        return append(pb, digits, (size_t)size);
}

/* Strings that need escapes are `written` instead. */
static int write_string(struct json_object *object, struct printbuf *pb)
{
        if (append(pb, "\"", 1) < 0 ||
            append(pb, json_object_get_string(object), (size_t)json_object_get_string_len(object)) < 0)
                return -1;
        return append(pb, "\"", 1);
}

/* json-c's own buffer, one for each value that is serialised, costs more than the text. */
static int write_scalar(struct json_object *object, struct printbuf *pb)
{
        const struct written *written = json_object_get_userdata(object);
        const char *word = json_object_get_boolean(object) ? "true" : "false";

        if (written)
                return append(pb, written->data, written->size);
        switch (json_object_get_type(object)) {
        case json_type_string:
                return write_string(object, pb);
        case json_type_int:
                return write_number(object, pb);
        case json_type_boolean:
                return append(pb, word, strlen(word));
        case json_type_null:
                return append(pb, "null", 4);
        case json_type_double: /* we never add one */
        case json_type_object:
        case json_type_array:
                break;
        }
        return -1;
}

static int write_members(struct json_object *object, struct printbuf *pb, const struct layout *layout);

static int write_member(struct json_object *object, struct printbuf *pb, const struct layout *layout)
{
        const struct layout *own;

        if (!json_object_is_type(object, json_type_object) && !json_object_is_type(object, json_type_array))
                return write_scalar(object, pb);
        own = json_object_get_userdata(object);
        return write_members(object, pb, own ? own : layout->before[0] ? &layouts[LKG_JSON_TIGHT] : layout);
}

static int write_between(struct printbuf *pb, const struct layout *layout, bool first)
{
        if (!first && append(pb, layout->comma, strlen(layout->comma)) < 0)
                return -1;
        return append(pb, layout->before, strlen(layout->before));
}

static int write_list(struct json_object *list, struct printbuf *pb, const struct layout *layout)
{
        for (size_t i = 0; i < json_object_array_length(list); i++)
                if (write_between(pb, layout, i == 0) < 0 ||
                    write_member(json_object_array_get_idx(list, i), pb, layout) < 0)
                        return -1;
        return 0;
}

static int write_map(struct json_object *map, struct printbuf *pb, const struct layout *layout)
{
        bool first = true;

        json_object_object_foreach(map, key, value)
        {
                if (write_between(pb, layout, first) < 0 || append(pb, "\"", 1) < 0 ||
                    append(pb, key, strlen(key)) < 0 ||
                    append(pb, layout->colon, strlen(layout->colon)) < 0 ||
                    write_member(value, pb, layout) < 0)
                        return -1;
                first = false;
        }
        return 0;
}

/* Recurses at most LKG_JSON_DEPTH_MAX levels deep. */
static int write_members(struct json_object *object, struct printbuf *pb, const struct layout *layout)
{
        bool is_map = json_object_is_type(object, json_type_object);

        if (append(pb, is_map ? "{" : "[", 1) < 0 ||
            (is_map ? write_map(object, pb, layout) : write_list(object, pb, layout)) < 0)
                return -1;
        return append(pb, is_map ? "}" : "]", 1);
}

static int write_laid_out(struct json_object *object, struct printbuf *pb, int level, int flags)
{
        (void)level;
        (void)flags;
        return write_members(object, pb, json_object_get_userdata(object));
}

/* ---- adding a value ---- */

bool lkg_json_is_name(const char *name)
{
        for (; *name; name++)
                if (*name < ' ' || *name > '~' || *name == '"' || *name == '\\')
                        return false;
        return true;
}

/* Takes over @value. @size: of its text. */
static void put(struct lkg_json *json, const char *name, struct json_object *value, bool is_null,
                size_t size)
{
        LKG_CLEANUP(object_putp) struct json_object *held = value;
        struct json_object *in = json->n_open > 0 ? json->open[json->n_open - 1] : NULL;
        int r;

        if (!value && !is_null)
                lkg_json_fail(json, -ENOMEM);
        if (name && !lkg_json_is_name(name))
                lkg_json_fail(json, -EINVAL);
        /* The most that can surround it: `,`, a line break, two spaces per level, `"name": `. */
        json->room += size + 8 + 2 * json->n_open + (name ? strlen(name) : 0);
        if (json->room > LKG_JSON_BYTES_MAX)
                lkg_json_fail(json, -EFBIG);
        if (json->error < 0)
                return;
        assert(in && (name == NULL) == json_object_is_type(in, json_type_array));
        r = name ? json_object_object_add(in, name, value) : json_object_array_add(in, value);
        if (r < 0)
                lkg_json_fail(json, -ENOMEM);
        else
                held = NULL;
}

static void begin(struct lkg_json *json, const char *name, struct json_object *value,
                  enum lkg_json_layout layout)
{
        const struct layout *own = layouts[layout].colon ? &layouts[layout] : NULL;

        if (json->n_open == LKG_JSON_DEPTH_MAX)
                lkg_json_fail(json, -E2BIG);
        if (json->n_open == 0) {
                assert(!json->root && !name);
                json->root = value;
                json->pretty = layout == LKG_JSON_PRETTY;
                json->room = SLACK;
                if (!value)
                        lkg_json_fail(json, -ENOMEM);
        } else {
                assert(layout != LKG_JSON_PRETTY);
                put(json, name, value, /* is_null= */ false, 2 + 2 * LKG_JSON_DEPTH_MAX);
                if (json->error == 0 && own)
                        json_object_set_serializer(value, write_laid_out, (void *)(uintptr_t)own, NULL);
        }
        if (json->error == 0)
                json->open[json->n_open++] = value;
}

void lkg_json_map(struct lkg_json *json, const char *name, enum lkg_json_layout layout)
{
        if (json->error == 0)
                begin(json, name, json_object_new_object(), layout);
}

void lkg_json_list(struct lkg_json *json, const char *name, enum lkg_json_layout layout)
{
        if (json->error == 0)
                begin(json, name, json_object_new_array(), layout);
}

void lkg_json_end(struct lkg_json *json)
{
        if (json->error < 0)
                return;
        assert(json->n_open > 0);
        json->n_open--;
}

/* ---- values ---- */

/* Takes over @value, which is written as @text. */
static void put_as(struct lkg_json *json, const char *name, struct json_object *value, const char *text,
                   size_t size)
{
        LKG_CLEANUP(object_putp) struct json_object *held = value;
        struct written *written = value ? malloc(sizeof(*written) + size) : NULL;

        if (!written) {
                lkg_json_fail(json, -ENOMEM);
                return;
        }
        written->size = size;
        if (size > 0)
                memcpy(written->data, text, size);
        json_object_set_serializer(value, write_written, written, json_object_free_userdata);
        put(json, name, LKG_STEAL(held), /* is_null= */ false, size);
}

struct looked {
        bool valid; /* UTF-8 */
        /*
         * it needs no escapes. Text with escapes is written by our renderer, which hides what json-c would
         * show
         */
        bool plain;
};

static size_t look_at_character(struct looked *looked, const char *text, size_t size)
{
        uint32_t c = 0;
        size_t n = lkg_utf8_decode((const unsigned char *)text, size, &c);

        looked->valid = n > 0;
        looked->plain = looked->plain && !lkg_is_hidden(c);
        return n;
}

static struct looked look_at_text(const char *text, size_t size)
{
        struct looked looked = { .valid = true, .plain = true };

        for (size_t i = 0; i < size && looked.valid; i++) {
                if (text[i] < ' ' || text[i] > '~')
                        i += look_at_character(&looked, text + i, size - i) - 1;
                else if (text[i] == '"' || text[i] == '\\')
                        looked.plain = false;
        }
        return looked;
}

static void put_looked(struct lkg_json *json, const char *name, const char *text, size_t size,
                       const struct looked *looked)
{
        LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf buf = LKG_BUF_INIT;
        struct json_object *value;

        if (size > LKG_JSON_BYTES_MAX || !looked->valid)
                lkg_json_fail(json, looked->valid ? -EFBIG : -EILSEQ);
        if (json->error < 0)
                return;
        value = json_object_new_string_len(text, (int)size);
        if (looked->plain) {
                put(json, name, value, /* is_null= */ false, size + 2);
                return;
        }
        lkg_buf_json_string(&buf, text, size);
        if (lkg_buf_failed(&buf)) {
                json_object_put(value);
                lkg_json_fail(json, -ENOMEM);
                return;
        }
        put_as(json, name, value, buf.data, buf.size);
}

void lkg_json_text_n(struct lkg_json *json, const char *name, const char *text, size_t size)
{
        struct looked looked = { .valid = true };

        if (size <= LKG_JSON_BYTES_MAX)
                looked = look_at_text(text, size);
        put_looked(json, name, text, size, &looked);
}

void lkg_json_text(struct lkg_json *json, const char *name, const char *text)
{
        lkg_json_text_n(json, name, text, strlen(text));
}

void lkg_json_foreign(struct lkg_json *json, const char *name, const char *text)
{
        LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf buf = LKG_BUF_INIT;
        size_t size = strlen(text);
        struct looked looked = look_at_text(text, size);

        if (looked.valid) {
                put_looked(json, name, text, size, &looked);
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
        if (json->error == 0)
                put(json, name, json_object_new_uint64(n), /* is_null= */ false, 20);
}

void lkg_json_i64(struct lkg_json *json, const char *name, int64_t n)
{
        if (json->error == 0)
                put(json, name, json_object_new_int64(n), /* is_null= */ false, 20);
}

void lkg_json_bool(struct lkg_json *json, const char *name, bool value)
{
        if (json->error == 0)
                put(json, name, json_object_new_boolean(value), /* is_null= */ false, 5);
}

void lkg_json_null(struct lkg_json *json, const char *name)
{
        if (json->error == 0)
                put(json, name, NULL, /* is_null= */ true, 4);
}

void lkg_json_rendered(struct lkg_json *json, const char *name, const char *text, size_t size)
{
        if (size > LKG_JSON_BYTES_MAX)
                lkg_json_fail(json, -EFBIG);
        else if (!look_at_text(text, size).valid)
                lkg_json_fail(json, -EILSEQ);
        if (json->error == 0)
                put_as(json, name, json_object_new_boolean(true), text, size);
}

/* ---- the text ---- */

/* Serialises to reserve memory: the buffer of the object gets all the room that the text can need. */
static int take_room(struct json_object *object, struct printbuf *pb, int level, int flags)
{
        const size_t *room = json_object_get_userdata(object);

        (void)level;
        (void)flags;
        return printbuf_memset(pb, /* offset, its end */ -1, ' ', (int)*room);
}

/* json-c drops parts of a text when it runs out of memory, so the memory is reserved first. */
int lkg_json_write(struct lkg_json *json, struct lkg_buf *buf)
{
        int flags = JSON_C_TO_STRING_NOSLASHESCAPE |
                    (json->pretty ? JSON_C_TO_STRING_PRETTY | JSON_C_TO_STRING_SPACED : 0);
        const char *text = NULL;
        size_t size = 0;

        assert(json->error < 0 || (json->root && json->n_open == 0));
        if (json->error == 0) {
                json_object_set_serializer(json->root, take_room, &json->room, NULL);
                text = json_object_to_json_string_length(json->root, 0, &size);
                json_object_set_serializer(json->root, NULL, NULL, NULL);
        }
        if (text)
                text = json_object_to_json_string_length(json->root, flags, &size);
        if (!text || size > json->room - SLACK / 2)
                lkg_json_fail(json, text ? -EFBIG : -ENOMEM);
        if (json->error == 0)
                lkg_buf_append(buf, text, size);
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
