/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads what json-out.c wrote: one map without nested maps or lists. At most LKG_JSON_FLAT_MAX bytes and one
 * level, so that the memory of json-c is bounded for any text (docs/decisions/028-who-reads-json.md).
 */

#include <json-c/json.h>

#include <lkg/text.h>

static void tokener_freep(struct json_tokener **tokener)
{
        if (*tokener)
                json_tokener_free(*tokener);
}

static void object_putp(struct json_object **object)
{
        json_object_put(*object);
}

static bool ends_at(const char *text, size_t size, struct json_tokener *tokener)
{
        size_t end = json_tokener_get_parse_end(tokener);

        while (end < size && strchr(" \t\r\n", text[end]))
                end++;
        return end == size;
}

static int parse(const char *text, size_t size, struct json_object **ret)
{
        LKG_CLEANUP(tokener_freep) struct json_tokener *tokener = NULL;
        LKG_CLEANUP(object_putp) struct json_object *object = NULL;

        if (size == 0 || *text != '{' || size > LKG_JSON_FLAT_MAX || memchr(text, '\0', size))
                return -EBADMSG;
        tokener = json_tokener_new_ex(/* the map and its members */ 2);
        if (!tokener)
                return -ENOMEM;
        /* Not strict: json-c 0.18 then refuses every character beyond ASCII (its issue 892). */
        json_tokener_set_flags(tokener, JSON_TOKENER_VALIDATE_UTF8);
        object = json_tokener_parse_ex(tokener, text, (int)size);
        if (json_tokener_get_error(tokener) != json_tokener_success || !ends_at(text, size, tokener) ||
            !json_object_is_type(object, json_type_object))
                return -EBADMSG;
        *ret = LKG_STEAL(object);
        return 0;
}

static bool is_flat(struct json_object *object)
{
        json_object_object_foreach(object, key, value)
        {
                if (!lkg_json_is_name(key) || json_object_is_type(value, json_type_object) ||
                    json_object_is_type(value, json_type_array) ||
                    json_object_is_type(value, json_type_double))
                        return false;
        }
        return true;
}

static void copy(struct lkg_json *json, const char *name, struct json_object *value)
{
        switch (json_object_get_type(value)) {
        case json_type_null:
                lkg_json_null(json, name);
                break;
        case json_type_boolean:
                lkg_json_bool(json, name, json_object_get_boolean(value));
                break;
        case json_type_int:
                if (json_object_get_int64(value) < 0)
                        lkg_json_i64(json, name, json_object_get_int64(value));
                else
                        lkg_json_u64(json, name, json_object_get_uint64(value));
                break;
        case json_type_string:
                lkg_json_text_n(json, name, json_object_get_string(value),
                                (size_t)json_object_get_string_len(value));
                break;
        case json_type_double: /* never written by us */
        case json_type_object:
        case json_type_array:
                break;
        }
}

int lkg_json_read_flat(struct lkg_json *json, const char *text, size_t size)
{
        LKG_CLEANUP(object_putp) struct json_object *object = NULL;
        int r = parse(text, size, &object);

        if (r == 0 && !is_flat(object))
                r = -EBADMSG;
        if (r < 0)
                return r;
        json_object_object_foreach(object, name, value)
        {
                copy(json, name, value);
        }
        return json->error;
}

const char *lkg_json_get(const struct lkg_json *json, const char *name)
{
        struct json_object *value = NULL;

        if (json->error < 0 || json->n_open == 0 ||
            !json_object_object_get_ex(json->open[json->n_open - 1], name, &value) ||
            !json_object_is_type(value, json_type_string))
                return NULL;
        return strlen(json_object_get_string(value)) == (size_t)json_object_get_string_len(value)
                       ? json_object_get_string(value)
                       : NULL;
}
