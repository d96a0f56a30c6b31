/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The directives of a strategic merge patch for lists: `$deleteFromPrimitiveList/f` and `$setElementOrder/f`
 * (reference: mergePatchIntoOriginal, mergeSlice, normalizeElementOrder of apimachinery's strategicpatch).
 */
#include "strategic.h"

static bool is_collection(const struct lkg_value *value)
{
        return lkg_value_type(value) == LKG_MAP || lkg_value_type(value) == LKG_LIST;
}

static bool is_integer(const struct lkg_value *number)
{
        const char *text = lkg_value_text(number, NULL);

        errno = 0;
        (void)strtoll(text, NULL, 10);
        return errno == 0 && text[strspn(text, "-0123456789")] == '\0';
}

bool lkg_strategic_same_type(const struct lkg_value *a, const struct lkg_value *b)
{
        if (lkg_value_type(a) != lkg_value_type(b))
                return false;
        return lkg_value_type(a) != LKG_NUMBER || is_integer(a) == is_integer(b);
}

int lkg_strategic_list_type(struct lkg_strategic *ctx, const struct lkg_merge_type *type, const char *key,
                            size_t size, const struct lkg_value *at)
{
        struct lkg_merge_type member;
        int r = lkg_strategic_member(ctx, type, key, size, at, &member);

        if (r < 0 || member.class == LKG_MERGE_ANY || member.pointer)
                return r;
        if (member.class == LKG_MERGE_LIST)
                return 0;
        return lkg_strategic_refuse(ctx, at,
                                    "this field is not a plain list, so two lists cannot be merged");
}

const char *lkg_strategic_field(const char *key, const char *prefix)
{
        size_t n = strlen(prefix);

        if (strncmp(key, prefix, n) != 0 || key[n] != '/')
                return NULL;
        return key[n + 1] ? key + n + 1 : key;
}

static size_t index_in(const struct lkg_value *list, const struct lkg_value *item)
{
        for (size_t i = 0; list && i < lkg_value_size(list); i++)
                if (lkg_value_equal(lkg_list_get(list, i), item))
                        return i;
        return SIZE_MAX;
}

/* Check that all items of both lists are scalars of one type; there is at least one. @b may be NULL. */
static int check_items(struct lkg_strategic *ctx, const struct lkg_value *at, const struct lkg_value *a,
                       const struct lkg_value *b)
{
        const struct lkg_value *lists[] = { a, b }, *first = NULL;

        for (size_t l = 0; l < LKG_ARRAY_SIZE(lists); l++) {
                for (size_t i = 0; lists[l] && i < lkg_value_size(lists[l]); i++) {
                        const struct lkg_value *item = lkg_list_get(lists[l], i);

                        first = first ? first : item;
                        if (is_collection(item) || lkg_value_type(item) == LKG_NULL ||
                            !lkg_strategic_same_type(first, item))
                                return lkg_strategic_refuse(ctx, at,
                                                            "a directive for lists needs lists of texts, of "
                                                            "numbers or of booleans");
                }
        }
        return first ? 0
                     : lkg_strategic_refuse(ctx, at,
                                            "$setElementOrder names a list that has no items to order");
}

static struct lkg_value *new_list(const struct lkg_value *at)
{
        return lkg_value_new_list(lkg_value_source_mut(at), lkg_value_line(at), lkg_value_column(at));
}

/* ---- $deleteFromPrimitiveList ---- */

int lkg_strategic_delete(struct lkg_strategic *ctx, const struct lkg_value *list,
                         const struct lkg_value *remove, struct lkg_value **ret)
{
        LKG_CLEANUP(lkg_value_unrefp) struct lkg_value *left = new_list(remove);
        int r = 0;

        if (lkg_value_size(list) + lkg_value_size(remove) > 0)
                r = check_items(ctx, remove, list, remove);
        for (size_t i = 0; r == 0 && i < lkg_value_size(list); i++) {
                struct lkg_value *item = lkg_list_get(list, i);

                if (index_in(remove, item) == SIZE_MAX)
                        lkg_list_append(left, lkg_value_ref(item));
        }
        if (r == 0)
                *ret = LKG_STEAL(left);
        return r;
}

/* ---- $setElementOrder ---- */

struct ordering {
        const struct lkg_value *order; /* the directive's list */
        const struct lkg_value *list;  /* of the base; NULL = none */
        const struct lkg_value *own;   /* of the patch; NULL = none */
};

static bool has_directive(const struct lkg_value *item)
{
        return lkg_value_type(item) == LKG_MAP && lkg_map_get(item, LKG_DIRECTIVE_PATCH);
}

/* The patch's own items must be in the order list, in the same relative order. */
static int check_order(struct lkg_strategic *ctx, const struct ordering *o)
{
        size_t i = 0, at = 0;

        if (!o->own || lkg_value_size(o->order) == 0)
                return 0;
        while (i < lkg_value_size(o->own) && at < lkg_value_size(o->order)) {
                const struct lkg_value *item = lkg_list_get(o->own, i);

                if (has_directive(item)) {
                        i++;
                        continue;
                }
                if (lkg_value_equal(item, lkg_list_get(o->order, at++)))
                        i++;
        }
        return i < lkg_value_size(o->own)
                       ? lkg_strategic_refuse(
                                 ctx, o->order,
                                 "$setElementOrder does not list the patch's own items in their order")
                       : 0;
}

/*
 * Insert an item that the directive does not name, in the order of the base. An item that the base does not
 * have goes before all items in front of it: upstream's comparison treats it as the smallest, in an
 * insertion sort.
 */
static void insert_unnamed(struct lkg_value *to, const struct lkg_value *list, struct lkg_value *item)
{
        size_t at = lkg_value_size(to), rank = index_in(list, item);

        while (at > 0) {
                size_t before = index_in(list, lkg_list_get(to, at - 1));

                if (rank != SIZE_MAX && before != SIZE_MAX && rank >= before)
                        break;
                at--;
        }
        lkg_list_insert(to, at, lkg_value_ref(item));
}

/* Insert a named item in the order of the directive; equal ones keep their order. */
static void insert_named(struct lkg_value *to, const struct lkg_value *order, struct lkg_value *item)
{
        size_t at = lkg_value_size(to), rank = index_in(order, item);

        while (at > 0 && rank < index_in(order, lkg_list_get(to, at - 1)))
                at--;
        lkg_list_insert(to, at, lkg_value_ref(item));
}

/*
 * At each step the unnamed item goes first only if the base has both heads and the unnamed one comes first
 * there.
 */
static void interleave(const struct lkg_value *unnamed, const struct lkg_value *named,
                       const struct lkg_value *list, struct lkg_value *to)
{
        size_t u = 0, n = 0, n_unnamed = lkg_value_size(unnamed), n_named = lkg_value_size(named);

        while (u < n_unnamed || n < n_named) {
                bool first = n == n_named;

                if (u < n_unnamed && n < n_named) {
                        size_t a = index_in(list, lkg_list_get(unnamed, u));
                        size_t b = index_in(list, lkg_list_get(named, n));

                        first = a != SIZE_MAX && b != SIZE_MAX && a < b;
                }
                lkg_list_append(
                        to, lkg_value_ref(first ? lkg_list_get(unnamed, u++) : lkg_list_get(named, n++)));
        }
}

/* The patch's list replaces the base's; without one the base's list is only reordered. */
static int sort_list(struct lkg_strategic *ctx, const struct ordering *o, struct lkg_value **ret)
{
        LKG_CLEANUP(lkg_value_unrefp) struct lkg_value *named = new_list(o->order);
        LKG_CLEANUP(lkg_value_unrefp) struct lkg_value *unnamed = new_list(o->order);
        LKG_CLEANUP(lkg_value_unrefp) struct lkg_value *sorted = new_list(o->order);
        const struct lkg_value *items = o->own ? o->own : o->list;
        int r;

        for (size_t i = 0; i < lkg_value_size(o->order); i++)
                if (is_collection(lkg_list_get(o->order, i)))
                        return lkg_strategic_refuse(ctx, o->order,
                                                    "the value of $setElementOrder must be a list of texts, "
                                                    "numbers or booleans");
        r = check_items(ctx, o->order, o->list, o->own);
        if (r < 0)
                return r;
        for (size_t i = 0; i < lkg_value_size(items); i++) {
                struct lkg_value *item = lkg_list_get(items, i);

                if (index_in(o->order, item) != SIZE_MAX)
                        insert_named(named, o->order, item);
                else
                        insert_unnamed(unnamed, o->list, item);
        }
        interleave(unnamed, named, o->list, sorted);
        *ret = LKG_STEAL(sorted);
        return 0;
}

static int must_be_list(struct lkg_strategic *ctx, const struct lkg_value *value, const struct lkg_value *at)
{
        if (!value || lkg_value_type(value) == LKG_LIST)
                return 0;
        return lkg_strategic_refuse(ctx, at,
                                    value == at ? "the value of $setElementOrder must be a list"
                                                : "$setElementOrder names a field that is not a list");
}

static int set_order(struct lkg_strategic *ctx, const struct lkg_value *patch,
                     const struct lkg_merge_type *type, const char *field, const struct lkg_value *order,
                     struct lkg_value *to)
{
        struct ordering o = { order, lkg_map_get(to, field), lkg_map_get(patch, field) };
        struct lkg_value *sorted = NULL;
        int r = must_be_list(ctx, order, order);

        if (r == 0)
                r = must_be_list(ctx, o.list, order);
        if (r == 0)
                r = must_be_list(ctx, o.own, order);
        if (r == 0)
                r = lkg_strategic_list_type(ctx, type, field, strlen(field), order);
        if (r == 0)
                r = check_order(ctx, &o);
        if (r < 0 || (!o.list && !o.own))
                return r;
        r = sort_list(ctx, &o, &sorted);
        if (r < 0)
                return r;
        (void)lkg_map_set(to, field, strlen(field), lkg_value_over(sorted, o.list));
        lkg_value_unref(sorted);
        return 0;
}

int lkg_strategic_orders(struct lkg_strategic *ctx, const struct lkg_value *patch,
                         const struct lkg_merge_type *type, struct lkg_value *to)
{
        int r = 0;

        for (size_t i = 0; r == 0 && i < lkg_value_size(patch); i++) {
                const char *key, *field;
                const struct lkg_value *value = lkg_map_at(patch, i, &key, NULL);

                if (strncmp(key, LKG_DIRECTIVE_ORDER, strlen(LKG_DIRECTIVE_ORDER)) != 0)
                        continue;
                field = lkg_strategic_field(key, LKG_DIRECTIVE_ORDER);
                if (lkg_value_type(value) != LKG_LIST)
                        r = must_be_list(ctx, value, value);
                else if (!field)
                        r = lkg_strategic_refuse(ctx, value, "write $setElementOrder/FIELD");
                else
                        r = set_order(ctx, patch, type, field == key ? "" : field, value, to);
        }
        return r;
}

bool lkg_strategic_is_ordered(const struct lkg_value *patch, const char *key, size_t size)
{
        for (size_t i = 0; i < lkg_value_size(patch); i++) {
                const char *other, *field;
                size_t n;

                (void)lkg_map_at(patch, i, &other, &n);
                field = lkg_strategic_field(other, LKG_DIRECTIVE_ORDER);
                if (field && field != other && n - (size_t)(field - other) == size &&
                    memcmp(field, key, size) == 0)
                        return true;
        }
        return false;
}
