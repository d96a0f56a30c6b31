/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by strategic.c (maps) and strategic-list.c (the directives for lists). */
#pragma once

#include <lkg/documents.h>
#include <lkg/tree.h>

struct lkg_strategic {
        struct lkg_report *report;
        bool typed;
};

/** lkg_strategic_refuse() - report a mistake of the patch at @at. Return: -EBADMSG. */
int lkg_strategic_refuse(struct lkg_strategic *ctx, const struct lkg_value *at, const char *text);
/** lkg_strategic_member() - the type of a member for merging. Return: 0 or -EBADMSG (reported). */
int lkg_strategic_member(struct lkg_strategic *ctx, const struct lkg_merge_type *type, const char *key,
                         size_t size, const struct lkg_value *at, struct lkg_merge_type *ret);
/** lkg_strategic_list_type() - may two lists be merged under this key? Return: 0 or -EBADMSG (reported). */
int lkg_strategic_list_type(struct lkg_strategic *ctx, const struct lkg_merge_type *type, const char *key,
                            size_t size, const struct lkg_value *at);
/** lkg_strategic_same_type() - are two values of one Go type? An integer and a float are not. */
bool lkg_strategic_same_type(const struct lkg_value *a, const struct lkg_value *b);
/** lkg_strategic_field() - `PREFIX/field` -> field; without a field the key itself; NULL = not this form. */
const char *lkg_strategic_field(const char *key, const char *prefix);

/** lkg_strategic_delete() - put the items of @list that are not in @remove into @ret. */
int lkg_strategic_delete(struct lkg_strategic *ctx, const struct lkg_value *list,
                         const struct lkg_value *remove, struct lkg_value **ret);
/** lkg_strategic_orders() - apply every `$setElementOrder/f` of @patch to the lists of @to. */
int lkg_strategic_orders(struct lkg_strategic *ctx, const struct lkg_value *patch,
                         const struct lkg_merge_type *type, struct lkg_value *to);
/** lkg_strategic_is_ordered() - has the list under @key been merged by lkg_strategic_orders()? */
bool lkg_strategic_is_ordered(const struct lkg_value *patch, const char *key, size_t size);
