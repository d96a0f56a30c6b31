/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The places on a Node that may have a reference. An absent or null field is not a reference; an invalid one has no effect
 * either, but is reported.
 */
#include <lkg/objects.h>
#include <lkg/lifecycle.h>

static const struct lkg_value *member(const struct lkg_value *map, const char *name)
{
        const struct lkg_value *value =
                map && lkg_value_type(map) == LKG_MAP ? lkg_map_get(map, name) : NULL;

        return value && lkg_value_type(value) != LKG_NULL ? value : NULL;
}

static bool is_map(const struct lkg_value *value)
{
        return lkg_value_type(value) == LKG_MAP;
}

/* Text of @metadata that may become part of a record; "" = missing. Return: 0 or -EINVAL. */
static int take_identifier(const struct lkg_value *metadata, const char *field, char *ret,
                           struct lkg_error *err)
{
        const struct lkg_value *value = member(metadata, field);
        struct lkg_span text = { "", 0 };

        *ret = '\0';
        if (!value)
                return 0;
        if (lkg_value_type(value) == LKG_STRING)
                text.data = lkg_value_text(value, &text.size);
        if (!lkg_identifier_in(text) || lkg_span_is(text, LKG_UID_LOCAL))
                return lkg_refuse_because(err, -EINVAL, NULL,
                                          "metadata.%s of the Node is not 1 to %u of the characters A-Z, "
                                          "a-z, 0-9, ., _ and -",
                                          field, LKG_IDENTIFIER_MAX);
        lkg_copy_span(text, ret);
        return 0;
}

static int check_name(const struct lkg_value *metadata, const char *name, struct lkg_error *err)
{
        const char *is = lkg_map_get_string(metadata, "name");
        char quoted[5 * LKG_QUOTE_MAX + 8];

        if (!is)
                return lkg_refuse_because(err, -EINVAL, NULL, "metadata.name of the Node is missing");
        if (strcmp(is, name) == 0)
                return 0;
        return lkg_refuse_because(err, -EINVAL, NULL, "the Node is %s, and not %s",
                                  lkg_quote(is, strlen(is), quoted), name);
}

/* @code: result of reading the field. */
static void say_why(int code, const struct lkg_error *why, struct lkg_saying *ret)
{
        if (code < 0) {
                ret->says = LKG_SAYS_INVALID;
                (void)snprintf(ret->fault, sizeof(ret->fault), "%.*s", (int)sizeof(ret->fault) - 1,
                               why->message);
                return;
        }
        ret->says = ret->reference.type == LKG_REFERENCE_LOCAL ? LKG_SAYS_LOCAL : LKG_SAYS_REFERENCE;
}

/* A value that is not text is reported like a text that is not a reference. */
static void read_annotation(const struct lkg_value *metadata, struct lkg_saying *ret)
{
        const struct lkg_value *annotations = member(metadata, "annotations");
        const struct lkg_value *value = member(annotations, LKG_ANNOTATION_CONFIG_SOURCE);
        struct lkg_error why = { 0 };
        const char *text;
        size_t size;
        int r;

        if (!annotations || (is_map(annotations) && !value))
                return;
        if (!value || lkg_value_type(value) != LKG_STRING) {
                const struct lkg_value *wrong = value ? value : annotations;

                r = lkg_refuse_because(&why, -EINVAL, NULL, "invalid NodeConfigSource, %s is a %s; want %s",
                                       value ? "annotation " LKG_ANNOTATION_CONFIG_SOURCE
                                             : "metadata.annotations",
                                       lkg_type_name(lkg_value_type(wrong)), value ? "text" : "a map");
                say_why(r, &why, ret);
                return;
        }
        text = lkg_value_text(value, &size);
        say_why(lkg_reference_from_text(text, size, &ret->reference, &why), &why, ret);
}

static void read_spec(const struct lkg_value *object, struct lkg_saying *ret)
{
        const struct lkg_value *source = member(member(object, "spec"), "configSource");
        struct lkg_error why = { 0 };

        if (source)
                say_why(lkg_reference_from_node_source(source, &ret->reference, &why), &why, ret);
}

/* The reason becomes a part of conditions and Events, so it must be what the API asks for: one word. */
static void take_ready_reason(const struct lkg_value *condition, struct lkg_node_object *ret)
{
        const char *reason = lkg_map_get_string(condition, "reason");

        if (reason && strlen(reason) < sizeof(ret->ready_reason) &&
            strspn(reason, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_,:") ==
                    strlen(reason))
                (void)strcpy(ret->ready_reason, reason);
}

static void read_ready(const struct lkg_value *object, struct lkg_node_object *ret)
{
        const struct lkg_value *list = member(member(object, "status"), "conditions");
        size_t n = list && lkg_value_type(list) == LKG_LIST ? lkg_value_size(list) : 0;

        for (size_t i = 0; i < n; i++) {
                const struct lkg_value *condition = lkg_list_get(list, i);
                const char *type = is_map(condition) ? lkg_map_get_string(condition, "type") : NULL;
                const char *status = type ? lkg_map_get_string(condition, "status") : NULL;

                if (!status || strcmp(type, "Ready") != 0)
                        continue;
                ret->ready = strcmp(status, "True") == 0 ? LKG_NODE_READY : LKG_NODE_NOT_READY;
                take_ready_reason(condition, ret);
                return;
        }
}

int lkg_node_read(const struct lkg_value *object, const char *name, struct lkg_node_object *ret,
                  struct lkg_error *err)
{
        const struct lkg_value *metadata = member(object, "metadata");
        struct lkg_node_object node = { .annotation.says = LKG_SAYS_NOTHING, .spec.says = LKG_SAYS_NOTHING };
        int r;

        if (!metadata || !is_map(metadata))
                return lkg_refuse_because(err, -EINVAL, NULL, "metadata of the Node is missing");
        r = check_name(metadata, name, err);
        if (r == 0)
                r = take_identifier(metadata, "uid", node.uid, err);
        if (r == 0 && !*node.uid)
                r = lkg_refuse_because(err, -EINVAL, NULL, "metadata.uid of the Node is missing");
        if (r == 0)
                r = take_identifier(metadata, "resourceVersion", node.version, err);
        if (r < 0)
                return r;
        read_ready(object, &node);
        read_annotation(metadata, &node.annotation);
        read_spec(object, &node.spec);
        *ret = node;
        return 0;
}
