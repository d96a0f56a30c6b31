/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shared by decoding (typed.c) and encoding (typed-encode.c) of typed documents: copying as little of a
 * document as possible.
 */
#pragma once

#include "typed.h"

/**
 * lkg_typed_canonical() - return @value with this text: itself if it already has this text.
 * Return: 0 or -ENOMEM.
 */
int lkg_typed_canonical(const struct lkg_value *value, enum lkg_type type, const char *text,
                        struct lkg_value **ret);

/** lkg_typed_zero() - return the zero value of @node, with the source of @at; NULL = no source. */
int lkg_typed_zero(const struct lkg_schema_node *node, const struct lkg_value *at, struct lkg_value **ret);

/**
 * lkg_typed_start_map() - start the result of @value, a map, with its first @n members. NULL = no memory.
 */
struct lkg_value *lkg_typed_start_map(const struct lkg_value *before, const struct lkg_value *value,
                                      size_t n);

/** lkg_typed_may_share() - can @value itself be the result, if its members can? */
bool lkg_typed_may_share(const struct lkg_value *before, const struct lkg_value *value);

/**
 * lkg_typed_put_item() - put @item (taken over) in place of item @i of @value; *@list stays NULL while
 * nothing differs.
 */
int lkg_typed_put_item(const struct lkg_value *value, size_t i, struct lkg_value *item,
                       struct lkg_value **list);

/** lkg_typed_is_stamped() - is this list stamped as being of @node's type, and with the bits of @also? */
bool lkg_typed_is_stamped(const struct lkg_schema_node *node, const struct lkg_value *list, uint16_t also);

/**
 * lkg_typed_rebuild() - make a struct of what becomes of each of its fields.
 * @value:  typed; NULL = no field is there
 * @member: @was: the field's value, or NULL; *@ret: its new value, one reference; stays NULL for none
 * @ret:    @value itself if nothing differs; NULL if there is no field
 */
int lkg_typed_rebuild(const struct lkg_schema_node *node, const struct lkg_value *value,
                      int (*member)(const struct lkg_schema_node *node, const struct lkg_value *was,
                                    const void *userdata, struct lkg_value **ret),
                      const void *userdata, struct lkg_value **ret);
