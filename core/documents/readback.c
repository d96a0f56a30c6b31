/* SPDX-License-Identifier: Apache-2.0 */
/* See <lkg/documents.h>. Both comparisons walk the tree in its own order, in which it was rendered. */

#include <json-c/json.h>
#include <yaml.h>

#include <lkg/base.h>
#include <lkg/limits.h>
#include <lkg/documents.h>
#include <lkg/tree.h>

/* A list or map that is being compared, for messages. */
struct read_place {
        const struct read_place *up;
        struct lkg_member m; /* the one at work */
};

struct comparison {
        struct lkg_error *err;
        yaml_parser_t parser;
        yaml_event_t event;
};

/* Put the current position as a dotted field. */
static void put_field(const struct read_place *at, struct lkg_buf *buf)
{
        if (!at)
                return;
        put_field(at->up, buf);
        if (at->m.key.data) {
                lkg_buf_puts(buf, buf->size ? "." : "");
                lkg_buf_shown(buf, at->m.key.data,
                              at->m.key.size < LKG_QUOTE_MAX ? at->m.key.size : LKG_QUOTE_MAX);
        } else if (at->m.n > 0) {
                lkg_buf_printf(buf, "[%zu]", at->m.i);
        }
}

static int differs(const struct comparison *c, const struct read_place *at, size_t line, const char *how)
{
        LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf field = LKG_BUF_INIT;
        const char *name;

        put_field(at, &field);
        name = lkg_buf_text(&field);
        if (line > 0)
                return lkg_error_set(c->err, -EBADMSG, NULL, "line %zu, field '%s': %s.", line, name, how);
        return lkg_error_set(c->err, -EBADMSG, NULL, "field '%s': %s.", name, how);
}

static bool is_collection(const struct lkg_value *value)
{
        return lkg_value_type(value) == LKG_LIST || lkg_value_type(value) == LKG_MAP;
}

/* ---- YAML ---- */

static int next_event(struct comparison *c, const struct read_place *at)
{
        char how[160];

        yaml_event_delete(&c->event);
        if (yaml_parser_parse(&c->parser, &c->event))
                return 0;
        if (c->parser.error == YAML_MEMORY_ERROR)
                lkg_no_memory();
        (void)snprintf(how, sizeof(how), "libyaml says: %s", c->parser.problem ? c->parser.problem : "?");
        return differs(c, at, c->parser.problem_mark.line + 1, how);
}

static int event_differs(const struct comparison *c, const struct read_place *at, const char *how)
{
        return differs(c, at, c->event.start_mark.line + 1, how);
}

static int want_event(struct comparison *c, const struct read_place *at, yaml_event_type_t type,
                      const char *how)
{
        int r = next_event(c, at);

        if (r == 0 && c->event.type != type)
                r = event_differs(c, at, how);
        return r;
}

static bool is_bare(const yaml_char_t *anchor, const yaml_char_t *tag)
{
        return !anchor && !tag;
}

/* 1.0 in a JSON document is the number 1; the sign of zero is written, so it must be read back. */
static bool same_number(const char *a, const char *b)
{
        char of_a[LKG_NUMBER_TEXT_MAX], of_b[LKG_NUMBER_TEXT_MAX];

        if (strcmp(a, b) == 0 || strcmp(a, "-0") == 0 || strcmp(b, "-0") == 0)
                return strcmp(a, b) == 0;
        return lkg_number_untyped(a, of_a) == 0 && lkg_number_untyped(b, of_b) == 0 &&
               strcmp(of_a, of_b) == 0;
}

/* The value of a plain scalar as the component's reader resolves it. */
static bool plain_says(const struct lkg_value *value, const char *text, size_t size)
{
        struct lkg_scalar scalar;

        lkg_scalar_resolve(text, size, &scalar);
        switch (lkg_value_type(value)) {
        case LKG_NULL:
                return scalar.type == LKG_S_NULL;
        case LKG_BOOL:
                return scalar.type == LKG_S_BOOL && scalar.b == lkg_value_bool(value);
        case LKG_NUMBER:
                return (scalar.type == LKG_S_INT || scalar.type == LKG_S_FLOAT) &&
                       same_number(scalar.text, lkg_value_text(value, NULL));
        case LKG_STRING:
                return scalar.type == LKG_S_STRING;
        case LKG_LIST:
        case LKG_MAP:
        case _LKG_TYPE_MAX:
                break;
        }
        return false;
}

static bool is_text(const yaml_event_t *event, struct lkg_span text)
{
        return lkg_span_equal(lkg_span((const char *)event->data.scalar.value, event->data.scalar.length),
                              text);
}

static bool yaml_scalar_says(const yaml_event_t *event, const struct lkg_value *value)
{
        struct lkg_span text;

        if (event->type != YAML_SCALAR_EVENT || !is_bare(event->data.scalar.anchor, event->data.scalar.tag))
                return false;
        text.data = lkg_value_text(value, &text.size);
        if (lkg_value_type(value) == LKG_STRING && !is_text(event, text))
                return false;
        if (event->data.scalar.style != YAML_PLAIN_SCALAR_STYLE)
                return lkg_value_type(value) == LKG_STRING;
        return plain_says(value, (const char *)event->data.scalar.value, event->data.scalar.length);
}

/* A key is always a string, however it is written. */
static int yaml_key(struct comparison *c, const struct read_place *at)
{
        int r = want_event(c, at, YAML_SCALAR_EVENT, "no key is read here");
        struct lkg_scalar scalar;

        if (r < 0)
                return r;
        if (!is_bare(c->event.data.scalar.anchor, c->event.data.scalar.tag) ||
            !is_text(&c->event, at->m.key))
                return event_differs(c, at, "another key is read");
        if (c->event.data.scalar.style != YAML_PLAIN_SCALAR_STYLE)
                return 0;
        lkg_scalar_resolve(at->m.key.data, at->m.key.size, &scalar);
        return scalar.type == LKG_S_STRING ? 0 : event_differs(c, at, "the key is read as no string");
}

static bool is_start(const yaml_event_t *event, bool map)
{
        return map ? event->type == YAML_MAPPING_START_EVENT &&
                               is_bare(event->data.mapping_start.anchor, event->data.mapping_start.tag)
                   : event->type == YAML_SEQUENCE_START_EVENT &&
                               is_bare(event->data.sequence_start.anchor, event->data.sequence_start.tag);
}

/* The event has been read: it must match @value. */
static int yaml_value(struct comparison *c, const struct read_place *up, const struct lkg_value *value)
{
        bool map = lkg_value_type(value) == LKG_MAP;
        struct read_place at = { .up = up };
        int r = 0;

        if (!is_collection(value))
                return yaml_scalar_says(&c->event, value) ? 0
                                                          : event_differs(c, up, "another value is read");
        if (!is_start(&c->event, map))
                return event_differs(c, up, map ? "no map is read here" : "no list is read here");
        while (r == 0 && lkg_value_next(value, &at.m)) {
                if (map)
                        r = yaml_key(c, &at);
                if (r == 0)
                        r = next_event(c, &at);
                if (r == 0)
                        r = yaml_value(c, &at, at.m.value);
        }
        return r < 0 ? r
                     : want_event(c, &at, map ? YAML_MAPPING_END_EVENT : YAML_SEQUENCE_END_EVENT,
                                  "more is read than there is");
}

static int compare_yaml(struct comparison *c, const struct lkg_value *value, const char *text, size_t size)
{
        int r;

        yaml_parser_set_encoding(&c->parser, YAML_UTF8_ENCODING);
        yaml_parser_set_input_string(&c->parser, (const unsigned char *)text, size);
        r = want_event(c, NULL, YAML_STREAM_START_EVENT, "no stream is read");
        if (r == 0)
                r = want_event(c, NULL, YAML_DOCUMENT_START_EVENT, "no document is read");
        if (r == 0)
                r = next_event(c, NULL);
        if (r == 0)
                r = yaml_value(c, NULL, value);
        if (r == 0)
                r = want_event(c, NULL, YAML_DOCUMENT_END_EVENT, "more is read than there is");
        if (r == 0)
                r = want_event(c, NULL, YAML_STREAM_END_EVENT, "another document is read");
        return r;
}

static int readback_yaml(struct comparison *c, int flags, const struct lkg_value *value, const char *text,
                         size_t size)
{
        int r;

        (void)flags;
        if (!yaml_parser_initialize(&c->parser))
                lkg_no_memory();
        r = compare_yaml(c, value, text, size);
        yaml_event_delete(&c->event);
        yaml_parser_delete(&c->parser);
        return r;
}

/* ---- JSON ---- */

static void tokener_freep(struct json_tokener **tokener)
{
        if (*tokener)
                json_tokener_free(*tokener);
}

static void json_putp(struct json_object **json)
{
        json_object_put(*json);
}

static bool json_number_says(struct json_object *json, const char *text)
{
        enum json_type type = json_object_get_type(json);

        /* A double keeps its source text. */
        return (type == json_type_int || type == json_type_double) &&
               strcmp(json_object_to_json_string_ext(json, JSON_C_TO_STRING_PLAIN), text) == 0;
}

static bool json_scalar_says(struct json_object *json, const struct lkg_value *value)
{
        const char *text;
        size_t size;

        text = lkg_value_text(value, &size);
        switch (lkg_value_type(value)) {
        case LKG_NULL:
                return !json;
        case LKG_BOOL:
                return json_object_get_type(json) == json_type_boolean &&
                       (bool)json_object_get_boolean(json) == lkg_value_bool(value);
        case LKG_NUMBER:
                return json_number_says(json, text);
        case LKG_STRING:
                return json_object_get_type(json) == json_type_string &&
                       (size_t)json_object_get_string_len(json) == size &&
                       memcmp(json_object_get_string(json), text, size) == 0;
        case LKG_LIST:
        case LKG_MAP:
        case _LKG_TYPE_MAX:
                break;
        }
        return false;
}

static int json_value(const struct comparison *c, const struct read_place *up, struct json_object *json,
                      const struct lkg_value *value);

static int json_map(const struct comparison *c, struct read_place *at, struct json_object *json,
                    const struct lkg_value *value)
{
        struct json_object_iterator read = json_object_iter_begin(json), end = json_object_iter_end(json);
        int r = 0;

        while (r == 0 && lkg_value_next(value, &at->m)) {
                if (json_object_iter_equal(&read, &end))
                        return differs(c, at, 0, "fewer members are read");
                if (!lkg_span_is(at->m.key, json_object_iter_peek_name(&read)))
                        return differs(c, at, 0, "another key is read");
                r = json_value(c, at, json_object_iter_peek_value(&read), at->m.value);
                json_object_iter_next(&read);
        }
        return r;
}

static int json_value(const struct comparison *c, const struct read_place *up, struct json_object *json,
                      const struct lkg_value *value)
{
        bool is_map = lkg_value_type(value) == LKG_MAP;
        struct read_place at = { .up = up };
        size_t n_read;
        int r = 0;

        if (!is_collection(value))
                return json_scalar_says(json, value) ? 0 : differs(c, up, 0, "another value is read");
        if (json_object_get_type(json) != (is_map ? json_type_object : json_type_array))
                return differs(c, up, 0, is_map ? "no map is read here" : "no list is read here");
        n_read = is_map ? (size_t)json_object_object_length(json) : json_object_array_length(json);
        if (n_read != lkg_value_size(value))
                return differs(c, up, 0, "another number of members is read");
        if (is_map)
                return json_map(c, &at, json, value);
        while (r == 0 && lkg_value_next(value, &at.m))
                r = json_value(c, &at, json_object_array_get_idx(json, at.m.i), at.m.value);
        return r;
}

/* A whole number out of json-c's range becomes the nearest one in range, and -0 becomes 0. */
static bool is_whole_to_json_c(const struct lkg_value *value)
{
        const char *text = lkg_value_text(value, NULL);

        if (lkg_value_type(value) != LKG_NUMBER || text[strspn(text, "-0123456789")] != '\0')
                return true;
        errno = 0;
        if (*text == '-')
                (void)strtoll(text, NULL, 10);
        else
                (void)strtoull(text, NULL, 10);
        return errno != ERANGE && strcmp(text, "-0") != 0;
}

/*
 * Can json-c represent the value: not too many values, no name with a NUL (json-c ends it there), no number
 * that it cannot distinguish?
 */
static bool is_for_json_c(const struct lkg_value *value, size_t *n)
{
        bool fit = ++*n <= LKG_READBACK_JSON_VALUES_MAX && is_whole_to_json_c(value);

        for (struct lkg_member m = { 0 }; fit && lkg_value_next(value, &m);)
                fit = lkg_span_count(m.key, '\0') == 0 && is_for_json_c(m.value, n);
        return fit;
}

static int readback_json(struct comparison *c, int flags, const struct lkg_value *value, const char *text,
                         size_t size)
{
        LKG_CLEANUP(tokener_freep) struct json_tokener *tokener = NULL;
        LKG_CLEANUP(json_putp) struct json_object *json = NULL;
        size_t end, n = 0;

        if (size > INT32_MAX || !is_for_json_c(value, &n))
                return 1;
        tokener = lkg_must(json_tokener_new_ex(LKG_DOC_DEPTH_MAX + 2));
        json_tokener_set_flags(tokener, flags);
        json = json_tokener_parse_ex(tokener, text, (int)size);
        if (json_tokener_get_error(tokener) != json_tokener_success) {
                char how[160];

                (void)snprintf(how, sizeof(how), "json-c says: %s",
                               json_tokener_error_desc(json_tokener_get_error(tokener)));
                return differs(c, NULL, 0, how);
        }
        end = json_tokener_get_parse_end(tokener); /* only the strict reader looks behind it */
        if (end + strspn(text + end, " \t\r\n") < size)
                return differs(c, NULL, 0, "more is read than there is");
        return json_value(c, NULL, json, value);
}

/* ---- the libraries that are there ---- */

static const struct reader {
        const char *library;
        const char *(*version)(void);
        int (*read)(struct comparison *c, int flags, const struct lkg_value *value, const char *text,
                    size_t size);
        int ways[2]; /* flags, the strictest first: the first that pass the test are used */
        /* For the test: a document, and another text in the place of what it is rendered to. */
        const char *other[5];
} readers[] = {
        [LKG_FORMAT_YAML] = { "libyaml",
                              yaml_get_version_string,
                              readback_yaml,
                              { 0, 0 },
                              { "a: 1\n", "b: x\n", "a: x\nb: x\n", "a: [x]\n", "a: x\n---\na: x\n" } },
        /* json-c 0.18 refuses, if it is strict, every character beyond ASCII (its issue 892). */
        [LKG_FORMAT_JSON] = { "json-c",
                              json_c_version,
                              readback_json,
                              { JSON_TOKENER_STRICT | JSON_TOKENER_VALIDATE_UTF8,
                                JSON_TOKENER_VALIDATE_UTF8 },
                              { "{\"a\":1}\n", "{\"b\":\"x\"}\n", "{\"a\":\"x\",\"b\":\"x\"}\n",
                                "{\"a\":[\"x\"]}\n", "{\"a\":\"x\"}\n{}\n" } },
};

/* What is decided once for each library: a process has the same one until it ends. */
static struct verdict {
        bool tested, left_out;
        int flags;
        struct lkg_error why;
} verdicts[LKG_ARRAY_SIZE(readers)];

/* Each length of UTF-8 from its first to its last character, each control character, each kind of number and nesting. */
static const char sample[] =
        "{\"k\\u00fc\\u0080\\u07ff\\u0800\\ud7ff\\ue000\\ufffd\\uffff\\ud800\\udc00\\udbff\\udfff\":"
        "[\"Z\\u00fcrich\","
        "\"\\u0080\\u0085\\u00a0\\u07ff\\u0800\\u2028\\ud7ff\\ue000\\ufeff\\ufffd\\uffff\","
        "\"\\ud800\\udc00\\udbff\\udfff\",\"\\u0001\\u0007\\b\\t\\n\\u000b\\f\\r\\u001b\\u001f\\u007f\","
        "\"\\\"\\\\/'\",\"\",\" a\\n\\n b \",\"1\",\"true\",\"null\",\"a: b #c\"],"
        "\"n\":[0,1,-1,9223372036854775807,-9223372036854775808,1.5,-0.25,1e21,1e-7],"
        "\"w\":[true,false,null],\"c\":[{},[],[[]],[{\"a\":{\"b\":[{}]}}]],\"\":{}}";

static int read_as(const struct reader *reader, int flags, const struct lkg_value *value, const char *text,
                   size_t size, struct lkg_error *err)
{
        struct comparison c = { .err = err };

        return reader->read(&c, flags, value, text, size);
}

static int reads_what_is_right(const struct reader *reader, enum lkg_format format, int flags,
                               struct lkg_error *err)
{
        LKG_CLEANUP(lkg_value_unrefp) struct lkg_value *value = NULL;
        LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf buf = LKG_BUF_INIT;

        (void)lkg_decode_json(sample, sizeof(sample) - 1, LKG_DECODE_UNTYPED, NULL, NULL, &value);
        lkg_render(value, format, &buf);
        return read_as(reader, flags, value, lkg_buf_text(&buf), buf.size, err);
}

static int refuses_what_is_wrong(const struct reader *reader, int flags, struct lkg_error *err)
{
        static const char document[] = "{\"a\":\"x\"}";
        LKG_CLEANUP(lkg_value_unrefp) struct lkg_value *value = NULL;

        (void)lkg_decode_json(document, sizeof(document) - 1, LKG_DECODE_UNTYPED, NULL, NULL, &value);
        for (size_t i = 0; i < LKG_ARRAY_SIZE(reader->other); i++) {
                struct lkg_error ignored = { 0 };

                if (read_as(reader, flags, value, reader->other[i], strlen(reader->other[i]), &ignored) !=
                    -EBADMSG)
                        return lkg_error_set(err, -EBADMSG, NULL, "it takes one document for another.");
        }
        return 0;
}

static void test_reader(enum lkg_format format, struct verdict *verdict)
{
        const struct reader *reader = &readers[format];
        int r = -EBADMSG;

        for (size_t i = 0; i < LKG_ARRAY_SIZE(reader->ways) && r == -EBADMSG; i++) {
                verdict->why = (struct lkg_error){ 0 };
                verdict->flags = reader->ways[i];
                r = reads_what_is_right(reader, format, verdict->flags, &verdict->why);
                if (r == 0)
                        r = refuses_what_is_wrong(reader, verdict->flags, &verdict->why);
        }
        verdict->left_out = r != 0;
        verdict->tested = true;
}

int lkg_readback_test(enum lkg_format format, struct lkg_error *why)
{
        struct verdict *verdict = &verdicts[format];

        if (!verdict->tested)
                test_reader(format, verdict);
        if (!verdict->left_out)
                return 0;
        return lkg_error_set(why, LKG_READBACK_LEFT_OUT, NULL, "%s %s fails its test: %s",
                             readers[format].library, readers[format].version(), verdict->why.message);
}

int lkg_readback(const struct lkg_value *value, enum lkg_format format, const char *text, size_t size,
                 struct lkg_error *err)
{
        const struct comparison c = { .err = err };
        int r;

        if (memchr(text, '\0', size)) /* where both libraries think that the text ends */
                return differs(&c, NULL, 0, "the text has a NUL byte");
        r = lkg_readback_test(format, err);
        return r != 0 ? r : read_as(&readers[format], verdicts[format].flags, value, text, size, err);
}
