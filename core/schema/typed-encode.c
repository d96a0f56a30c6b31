/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A typed document as Go's encoder prints it: without empty omitempty fields, with zero values of fields that are always
 * printed. Like decoding, it shares unchanged parts.
 */
#include <lkg/text.h>
#include <lkg/tree.h>

#include "typed.h"
#include "values/values.h"

/* A list that is printed unchanged. */
#define STAMP_PRINTED 0x8000u

static int encode_quantity(const struct lkg_value *value, struct lkg_value **ret)
{
        LKG_CLEANUP(lkg_quantity_deinit) struct lkg_quantity quantity = { 0 };
        LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf text = LKG_BUF_INIT;
        struct lkg_span given;
        int r;

        given.data = lkg_value_text(value, &given.size);
        r = lkg_quantity_parse(given.data, given.size, &quantity, NULL);
        if (r < 0)
                return r;
        lkg_quantity_text(&quantity, given, &text);
        if (lkg_buf_failed(&text))
                return -ENOMEM;
        return lkg_typed_canonical(value, LKG_STRING, text.data, ret);
}

int lkg_typed_rebuild(const struct lkg_schema_node *node, const struct lkg_value *value,
                      int (*member)(const struct lkg_schema_node *node, const struct lkg_value *was,
                                    const void *userdata, struct lkg_value **ret),
                      const void *userdata, struct lkg_value **ret)
{
        LKG_CLEANUP(lkg_value_unrefp) struct lkg_value *map = NULL;
        struct lkg_beside beside = { .map = value };

        for (size_t m = 0; m < node->n_members; m++) {
                const struct lkg_value *was = lkg_node_value(node->members[m], &beside);
                LKG_CLEANUP(lkg_value_unrefp) struct lkg_value *item = NULL;
                int r = member(node->members[m], was, userdata, &item);

                if (r < 0)
                        return r;
                if (!map && item == was && (!value || lkg_typed_may_share(NULL, value)))
                        continue;
                if (!map)
                        map = value ? lkg_typed_start_map(NULL, value, beside.i)
                                    : lkg_value_new_map(NULL, 0, 0);
                if (!map)
                        return -ENOMEM;
                if (item)
                        r = lkg_map_set_like(map, node->names, m, LKG_STEAL(item));
                if (r < 0)
                        return r;
        }
        *ret = map ? LKG_STEAL(map) : lkg_value_ref((struct lkg_value *)value);
        return 0;
}

static int encode_value(const struct lkg_schema_node *node, const struct lkg_value *value,
                        struct lkg_value **ret);

/* Return what Go prints for a field with its zero value. *ret stays NULL if it prints nothing. */
static int encode_zero(const struct lkg_schema_node *node, struct lkg_value **ret)
{
        bool always = node->field->flags & LKG_FIELD_ALWAYS;

        if (node->pointer) {
                if (always)
                        *ret = lkg_value_new_null(NULL, 0, 0);
                return !always || *ret ? 0 : -ENOMEM;
        }
        if (node->class == LKG_CLASS_STRUCT)
                return encode_value(node, NULL, ret);
        /* omitempty never leaves out a Go struct, and these are structs */
        if (!always && node->class != LKG_CLASS_DURATION && node->class != LKG_CLASS_QUANTITY &&
            node->class != LKG_CLASS_FLUSH)
                return 0;
        return lkg_typed_zero(node, NULL, ret);
}

static int encode_member(const struct lkg_schema_node *member, const struct lkg_value *was,
                         const void *userdata, struct lkg_value **ret)
{
        (void)userdata;
        return was ? encode_value(member, was, ret) : encode_zero(member, ret);
}

/* @value: NULL = all zero. */
static int encode_struct(const struct lkg_schema_node *node, const struct lkg_value *value,
                         struct lkg_value **ret)
{
        int r = lkg_typed_rebuild(node, value, encode_member, NULL, ret);

        if (r < 0 || *ret)
                return r;
        *ret = lkg_value_new_map(NULL, 0, 0);
        return *ret ? 0 : -ENOMEM;
}

static int encode_list(const struct lkg_schema_node *node, const struct lkg_value *value,
                       struct lkg_value **ret)
{
        LKG_CLEANUP(lkg_value_unrefp) struct lkg_value *list = NULL;

        if (node->item->class != LKG_CLASS_STRUCT || lkg_typed_is_stamped(node, value, STAMP_PRINTED)) {
                *ret = lkg_value_ref((struct lkg_value *)value);
                return 0;
        }
        for (size_t i = 0; i < lkg_value_size(value); i++) {
                struct lkg_value *item = NULL;
                int r = encode_struct(node->item, lkg_list_get(value, i), &item);

                if (r == 0)
                        r = lkg_typed_put_item(value, i, item, &list);
                if (r < 0)
                        return r;
        }
        if (!list && lkg_typed_is_stamped(node, value, 0))
                lkg_list_stamp(value, (uint16_t)(node->number | STAMP_PRINTED));
        *ret = list ? LKG_STEAL(list) : lkg_value_ref((struct lkg_value *)value);
        return 0;
}

static int encode_value(const struct lkg_schema_node *node, const struct lkg_value *value,
                        struct lkg_value **ret)
{
        switch (node->class) {
        case LKG_CLASS_STRUCT:
                return encode_struct(node, value, ret);
        case LKG_CLASS_LIST:
                if (lkg_value_size(value) == 0 && !(node->field->flags & LKG_FIELD_ALWAYS))
                        return 0;
                return encode_list(node, value, ret);
        case LKG_CLASS_MAP:
                if (lkg_value_size(value) == 0 && !(node->field->flags & LKG_FIELD_ALWAYS))
                        return 0;
                break;
        case LKG_CLASS_BOOL:
        case LKG_CLASS_STRING:
        case LKG_CLASS_INT:
        case LKG_CLASS_FLOAT:
        case LKG_CLASS_DURATION:
        case LKG_CLASS_FLUSH:
        case LKG_CLASS_TIME:
                break;
        case LKG_CLASS_QUANTITY:
                return encode_quantity(value, ret);
        }
        *ret = lkg_value_ref((struct lkg_value *)value);
        return 0;
}

int lkg_typed_encode(const struct lkg_schema_node *root, const struct lkg_value *object,
                     struct lkg_value **ret)
{
        LKG_CLEANUP(lkg_value_unrefp) struct lkg_value *encoded = NULL;
        int r = encode_struct(root, object, &encoded);

        if (r < 0)
                return r;
        *ret = encoded == object ? lkg_value_clone_shallow(object) : LKG_STEAL(encoded);
        return *ret ? 0 : -ENOMEM;
}
