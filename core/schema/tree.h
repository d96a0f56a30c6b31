/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rows of a kind as a tree of types, for one release. Built on first use and kept, because the rows are
 * constant.
 */
#pragma once

#include <lkg/documents.h>
#include <lkg/schema.h>
#include <lkg/text.h>

enum lkg_class {
        LKG_CLASS_BOOL,
        LKG_CLASS_STRING,
        LKG_CLASS_INT,   /* int32, int64, uint32: see min and max */
        LKG_CLASS_FLOAT, /* float32, float64 */
        LKG_CLASS_DURATION,
        LKG_CLASS_FLUSH, /* a duration, or an integer of nanoseconds (component-base TimeOrMetaDuration) */
        LKG_CLASS_QUANTITY,
        LKG_CLASS_TIME,
        LKG_CLASS_INTSTR, /* an int32 or a string (apimachinery IntOrString) */
        LKG_CLASS_ANY,    /* whatever stands there */
        LKG_CLASS_STRUCT,
        LKG_CLASS_LIST,
        LKG_CLASS_MAP,
};

/* What is known of all types of a class. */
struct lkg_class_row {
        const char *wanted;  /* in messages */
        unsigned takes;      /* a bit for each enum lkg_type that a document may have there */
        const char *zero;    /* the text of its zero value; NULL = it has none */
        const char *json[2]; /* types of JSON Schema, beside null */
};
extern const struct lkg_class_row lkg_classes[];

#define LKG_NODE_NUMBER_MAX 0x7fffu

struct lkg_schema_node {
        /* its row; of the container for items and map values of scalar type */
        const struct lkg_field *field;
        const char *name; /* last part of the path; "" for items, map values and the root */
        size_t name_size;
        enum lkg_class class;
        bool pointer;     /* unset and zero are different things */
        uint16_t number;  /* of a list: no other node has it; 0 = there are too many */
        const char *go;   /* Go's name of a scalar type, "int32", or of a struct that others have, too */
        int64_t min, max; /* of LKG_CLASS_INT */
        bool single;      /* float32 */
        struct lkg_value *def; /* the row's default; NULL = none */

        struct lkg_schema_node **members; /* of a struct, in byte order of their names */
        size_t n_members;
        struct lkg_schema_node *item; /* of a list or map */
};

/** lkg_node_is() - is it the field with exactly this name? */
static inline bool lkg_node_is(const struct lkg_schema_node *node, struct lkg_span name)
{
        return node->name_size == name.size && memcmp(node->name, name.data, name.size) == 0;
}
/**
 * lkg_node_new() - a field without members.
 * @type: as in struct lkg_field; the name of an unknown type is that of a struct. Borrowed, like @name
 */
struct lkg_schema_node *lkg_node_new(const struct lkg_field *field, const char *name, const char *type);
void lkg_node_add(struct lkg_schema_node *node, struct lkg_schema_node *member);
void lkg_node_free(struct lkg_schema_node *node);
/** lkg_schema_root() - the tree of @schema; never NULL. */
const struct lkg_schema_node *lkg_schema_root(const struct lkg_schema *schema);
/**
 * lkg_schema_default() - a value that is in no document: the JSON text @json, layer "default".
 * @json: a constant string; its value is made only once
 * Return: one reference, shared.
 */
struct lkg_value *lkg_schema_default(const char *json);
/** lkg_node_member() - field @name of a struct, exactly as written. NULL = none. */
const struct lkg_schema_node *lkg_node_member(const struct lkg_schema_node *node, const char *name,
                                              size_t size);
/**
 * lkg_node_member_folded() - the same with the lookup of Go's encoding/json: exactly, else without regard to
 * case (its fold: ASCII letters, U+017F as s, U+212A as k).
 */
const struct lkg_schema_node *lkg_node_member_folded(const struct lkg_schema_node *node, const char *name,
                                                     size_t size);
/** lkg_node_nearest() - the name of the field that a misspelt one may mean; NULL = none is near. */
const char *lkg_node_nearest(const struct lkg_schema_node *node, const char *name);
/**
 * lkg_node_value() - the value of @member in a typed map, or NULL.
 * @i: 0 at first, when one member after the other is looked for: both are in byte order
 */
const struct lkg_value *lkg_node_value(const struct lkg_schema_node *member, const struct lkg_value *map,
                                       size_t *i);
/** lkg_node_find() - the node of a dotted path below @node, or NULL. */
const struct lkg_schema_node *lkg_node_find(const struct lkg_schema_node *node, const char *path);

/* ---- changes.c ---- */

/**
 * lkg_schema_dangers() - like lkg_schema_changes(), for those who look for the one to blame: every difference, the most dangerous
 * first. Without knowledge of a base: what sets a default that depends on it differs.
 */
void lkg_schema_dangers(const struct lkg_schema *schema, const struct lkg_value *before,
                        const struct lkg_value *after, struct lkg_field_changes *ret);
