/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A typed document as Go's encoder prints it: without empty omitempty fields, with zero values of fields that are always
 * printed.
 */
#include <lkg/text.h>
#include <lkg/tree.h>

#include "typed.h"
#include "values/values.h"

/* A list that is printed unchanged. */
#define STAMP_PRINTED 0x8000u

/* What may have set a zero value, which a typed document does not contain. */
struct said {
        const struct lkg_value *zeros, *doc;
};

static struct lkg_value *encode_quantity(const struct lkg_value *value)
{
        LKG_CLEANUP(lkg_quantity_deinit) struct lkg_quantity quantity = { 0 };
        LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf text = LKG_BUF_INIT;
        struct lkg_span given;

        given.data = lkg_value_text(value, &given.size);
        (void)lkg_quantity_parse(given.data, given.size, &quantity, NULL);
        lkg_quantity_text(&quantity, given, &text);
        return lkg_typed_canonical(value, LKG_STRING, lkg_buf_text(&text));
}

struct lkg_value *lkg_typed_rebuild(const struct lkg_schema_node *node, const struct lkg_value *value,
                                    struct lkg_value *(*member)(const struct lkg_schema_node *node,
                                                                const struct lkg_value *was,
                                                                const void *userdata),
                                    const void *userdata)
{
        struct lkg_value *map = NULL;
        size_t i = 0;

        for (size_t m = 0; m < node->n_members; m++) {
                const struct lkg_schema_node *field = node->members[m];
                const struct lkg_value *was = lkg_node_value(field, value, &i);
                struct lkg_value *item = member(field, was, userdata);

                if (item == was) {
                        lkg_value_unref(item);
                        continue;
                }
                if (!map)
                        map = value ? lkg_value_clone_shallow(value) : lkg_value_new_map(NULL, 0, 0);
                if (item)
                        (void)lkg_map_set(map, field->name, field->name_size, item);
                else
                        (void)lkg_map_remove(map, field->name, field->name_size);
        }
        return map ? map : lkg_value_ref((struct lkg_value *)value);
}

/* What sets this zero value explicitly; NULL = nothing. */
static const struct lkg_value *who_said(const struct said *said, const char *path)
{
        const struct lkg_value *value = said->zeros ? lkg_map_get(said->zeros, path) : NULL;

        if (!value && said->doc)
                value = lkg_object_get(said->doc, path);
        return value && lkg_value_type(value) != LKG_NULL ? value : NULL;
}

static struct lkg_value *encode_value(const struct lkg_schema_node *node, const struct lkg_value *value,
                                      const void *said);

/* What Go prints for a field with its zero value; NULL: nothing. */
static struct lkg_value *encode_zero(const struct lkg_schema_node *node, const struct said *said)
{
        bool always = node->field->flags & LKG_FIELD_ALWAYS;

        if (node->pointer)
                return always ? lkg_value_new_null(NULL, 0, 0) : NULL;
        if (node->class == LKG_CLASS_STRUCT)
                return encode_value(node, NULL, said);
        /* omitempty never leaves out a Go struct, and these are structs */
        if (!always && node->class != LKG_CLASS_DURATION && node->class != LKG_CLASS_QUANTITY &&
            node->class != LKG_CLASS_FLUSH)
                return NULL;
        return lkg_typed_zero(node, node->class < LKG_CLASS_TIME ? who_said(said, node->field->path) : NULL);
}

static struct lkg_value *encode_member(const struct lkg_schema_node *member, const struct lkg_value *was,
                                       const void *said)
{
        return was ? encode_value(member, was, said) : encode_zero(member, said);
}

/* @value: NULL = all zero. */
static struct lkg_value *encode_struct(const struct lkg_schema_node *node, const struct lkg_value *value,
                                       const void *said)
{
        struct lkg_value *made = lkg_typed_rebuild(node, value, encode_member, said);

        return made ? made : lkg_value_new_map(NULL, 0, 0);
}

static struct lkg_value *encode_item(const struct lkg_value *list, const struct lkg_member *m,
                                     void *userdata)
{
        static const struct said nothing = { 0 };

        (void)list;
        return encode_struct(userdata, m->value, &nothing);
}

static struct lkg_value *encode_list(const struct lkg_schema_node *node, const struct lkg_value *value)
{
        struct lkg_value *list;

        if (node->item->class != LKG_CLASS_STRUCT || lkg_typed_is_stamped(node, value, STAMP_PRINTED))
                return lkg_value_ref((struct lkg_value *)value);
        list = lkg_value_rewrite(value, encode_item, node->item);
        if (list == value && lkg_typed_is_stamped(node, value, 0))
                lkg_list_stamp(value, (uint16_t)(node->number | STAMP_PRINTED));
        return list;
}

static struct lkg_value *encode_value(const struct lkg_schema_node *node, const struct lkg_value *value,
                                      const void *said)
{
        bool collection = node->class == LKG_CLASS_LIST || node->class == LKG_CLASS_MAP;

        if (collection && lkg_value_size(value) == 0 && !(node->field->flags & LKG_FIELD_ALWAYS))
                return NULL;
        if (node->class == LKG_CLASS_STRUCT)
                return encode_struct(node, value, said);
        if (node->class == LKG_CLASS_LIST)
                return encode_list(node, value);
        if (node->class == LKG_CLASS_QUANTITY)
                return encode_quantity(value);
        return lkg_value_ref((struct lkg_value *)value);
}

struct lkg_value *lkg_typed_encode(const struct lkg_schema_node *root, const struct lkg_value *object,
                                   const struct lkg_value *zeros, const struct lkg_value *doc)
{
        const struct said said = { zeros, doc };
        LKG_CLEANUP(lkg_value_unrefp) struct lkg_value *encoded = encode_struct(root, object, &said);

        return encoded == object ? lkg_value_clone_shallow(object) : LKG_STEAL(encoded);
}
