/* SPDX-License-Identifier: Apache-2.0 */
/* What decoding (typed.c) and encoding (typed-encode.c) of typed documents share: how little of a document is copied. */
#pragma once

#include "typed.h"

/** lkg_typed_canonical() - @value with this text: itself when its text is that already. Return: 0 or -ENOMEM. */
int lkg_typed_canonical(const struct lkg_value *value, enum lkg_type type, const char *text,
                        struct lkg_value **ret);

/** lkg_typed_zero() - the zero value of @node, as coming from where @at does; NULL = from nowhere. */
int lkg_typed_zero(const struct lkg_schema_node *node, const struct lkg_value *at, struct lkg_value **ret);

/** lkg_typed_start_map() - a map for what becomes of @value, with its first @n members. NULL = no memory. */
struct lkg_value *lkg_typed_start_map(const struct lkg_value *before, const struct lkg_value *value,
                                      size_t n);

/** lkg_typed_may_share() - can @value itself be the result, if its members can? */
bool lkg_typed_may_share(const struct lkg_value *before, const struct lkg_value *value);

/** lkg_typed_put_item() - @item (taken over) in place of item @i of @value; *@list stays NULL while nothing differs. */
int lkg_typed_put_item(const struct lkg_value *value, size_t i, struct lkg_value *item,
                       struct lkg_value **list);

/** lkg_typed_is_stamped() - was this list found to be of @node's type, and @also what that bit says? */
bool lkg_typed_is_stamped(const struct lkg_schema_node *node, const struct lkg_value *list, uint16_t also);
