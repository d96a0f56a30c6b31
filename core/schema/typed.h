/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Documents <-> typed documents in normal form (see lkg/schema.h), as Go's JSON decoders and encoder do it.
 */
#pragma once

#include <lkg/tree.h>
#include "tree.h"

enum lkg_typed_flags {
        LKG_TYPED_FOLD = 1 << 0, /* names without regard to case: encoding/json; else sigs.k8s.io/json */
        /*
         * Quantities in a map (v1.ResourceList) become whole thousandths. Upstream does that when it
         * completes a document that it has read (SetObjectDefaults_KubeletConfiguration), but not when it
         * completes the merge of drop-ins (SetDefaults_KubeletConfiguration).
         */
        LKG_TYPED_ROUND = 1 << 1,
        /*
         * The shadowed value comes first in the same document, a JSON text with a duplicate key: it is
         * decoded first, and the other value over it. So a mistake in it is an error although its value does
         * not count.
         */
        LKG_TYPED_TWICE = 1 << 2,
};

/**
 * lkg_typed_decode() - decode @value as Go would into a new object of @root's type.
 * @report: every value that does not fit, at its position, and is left out. Unknown fields are dropped silently (lint.c
 * reports them).
 * @unread: a map, gets every such value under its path (see lkg_object_unread()); NULL = nobody asks
 *
 * Return: one reference, an unshared map.
 */
struct lkg_value *lkg_typed_decode(const struct lkg_schema_node *root, const struct lkg_value *value,
                                   unsigned flags, struct lkg_report *report, struct lkg_value *unread);

/**
 * lkg_typed_encode() - encode @object as Go's encoder prints it: omitempty, zero values of fields that are
 * always printed; those have no source, unless something has set them.
 * @zeros: values that the command line set to zero: path -> value; NULL = nobody asks for the sources of zeros
 * @doc:   the merged document, with its zeros
 * Return: one reference, an unshared map.
 */
struct lkg_value *lkg_typed_encode(const struct lkg_schema_node *root, const struct lkg_value *object,
                                   const struct lkg_value *zeros, const struct lkg_value *doc);

/**
 * lkg_typed_scalar() - is @value, alone, of @node's type? For values that do not come from a document.
 * @ret: as in a typed document, one reference; NULL = the zero value
 * Return: 0; -EBADMSG (@report).
 */
int lkg_typed_scalar(const struct lkg_schema_node *node, const struct lkg_value *value, const char *path,
                     struct lkg_report *report, struct lkg_value **ret);

/* ---- shared by what makes a typed document of another one ---- */

/** lkg_typed_canonical() - @value with this text: itself if it already has this text. Return: one reference. */
struct lkg_value *lkg_typed_canonical(const struct lkg_value *value, enum lkg_type type, const char *text);
/** lkg_typed_zero() - the zero value as an item of a list or map, with the position of @at, if it is not NULL. */
struct lkg_value *lkg_typed_zero(const struct lkg_schema_node *node, const struct lkg_value *at);
/** lkg_typed_is_stamped() - has decoding (and what @also says) left @list unchanged before? */
bool lkg_typed_is_stamped(const struct lkg_schema_node *node, const struct lkg_value *list, uint16_t also);
/**
 * lkg_typed_rebuild() - make a struct of what becomes of each of its fields.
 * @value:  typed; NULL = no field is there
 * @member: @was: the field's value, or NULL; its new value, one reference; NULL = none
 * Return: @value itself if nothing differs.
 */
struct lkg_value *lkg_typed_rebuild(const struct lkg_schema_node *node, const struct lkg_value *value,
                                    struct lkg_value *(*member)(const struct lkg_schema_node *node,
                                                                const struct lkg_value *was,
                                                                const void *userdata),
                                    const void *userdata);

/* ---- typed-object.c: reading and changing a typed document ---- */

double lkg_object_float(const struct lkg_value *object, const char *path);
int64_t lkg_value_duration(const struct lkg_value *value); /* ns; of a flush value too */
#define LKG_SHOWN_MAX (5 * 64 + 8)
/** lkg_value_shown() - a scalar for a message. Return: @buf or a constant; NULL: it is a list or map. */
const char *lkg_value_shown(const struct lkg_value *value, char buf[static LKG_SHOWN_MAX]);

enum lkg_unread_extent {
        LKG_UNREAD_ITSELF, /* it, or something around it */
        LKG_UNREAD_PARTS,  /* or something in it */
};

/**
 * lkg_object_unread() - does what stands at @path in @object, or its absence, come from a value that could not
 * be read? Not if a later layer or the command line has put another one there.
 * @unread: of lkg_typed_decode(); NULL = everything could be read
 * @path:   as in findings, with list indexes
 */
bool lkg_object_unread(const struct lkg_value *object, const struct lkg_value *unread, const char *path,
                       enum lkg_unread_extent extent);

/**
 * lkg_object_set() - put @item at @path, creating maps as needed; takes over @item.
 * @object: only one reference to the top; shared parts below are copied
 * @item:   NULL = remove
 */
void lkg_object_set(struct lkg_value *object, const char *path, struct lkg_value *item);
