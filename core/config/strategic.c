/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Strategic merge patch (apimachinery's strategicpatch, server side mode) for kinds whose lists are all
 * atomic: maps merge, lists are replaced, and four directives are honoured: `$patch`, `$retainKeys`,
 * `$deleteFromPrimitiveList/f`, `$setElementOrder/f`. Neither KubeletConfiguration nor
 * KubeProxyConfiguration declares a merge key, so the cases that need one cannot arise.
 *
 * Recursion follows the maps that base and patch have in common or that are pruned; a level needs some 200
 * bytes of stack, so LKG_DOC_DEPTH_MAX levels fit a thread's usual 8 MiB.
 */
#include "internal.h"

#include <lkg/merge.h>

struct context {
        struct lkg_report *report;
        bool failed;
};

static int refuse(struct context *ctx, const struct lkg_value *at, const char *text)
{
        const struct lkg_source *source = lkg_value_source(at);
        struct lkg_where where = { source ? source->file : NULL, lkg_value_line(at), lkg_value_column(at) };

        lkg_report_add(ctx->report, LKG_ERROR, LKG_C_STRATEGIC, &where, "%s", text);
        ctx->failed = true;
        return -EBADMSG;
}

static bool is_map(const struct lkg_value *value)
{
        return value && lkg_value_type(value) == LKG_MAP;
}

static bool is_list(const struct lkg_value *value)
{
        return value && lkg_value_type(value) == LKG_LIST;
}

static bool is_null(const struct lkg_value *value)
{
        return lkg_value_type(value) == LKG_NULL;
}

/* `PREFIX/field`: the field, or NULL. */
static const char *directive_field(const char *key, const char *prefix)
{
        size_t n = strlen(prefix);

        return strncmp(key, prefix, n) == 0 && key[n] == '/' ? key + n + 1 : NULL;
}

static bool is_directive(const char *key)
{
        return strcmp(key, LKG_DIRECTIVE_PATCH) == 0 || strcmp(key, LKG_DIRECTIVE_RETAIN) == 0 ||
               strncmp(key, LKG_DIRECTIVE_DELETE, strlen(LKG_DIRECTIVE_DELETE)) == 0 ||
               strncmp(key, LKG_DIRECTIVE_ORDER, strlen(LKG_DIRECTIVE_ORDER)) == 0;
}

/* ---- values that are taken over ---- */

static int prune(const struct lkg_value *value, struct lkg_value **ret);

static int prune_map(const struct lkg_value *value, struct lkg_value **ret)
{
        LKG_CLEANUP(lkg_value_unrefp) struct lkg_value *to = lkg_value_clone_shallow(value);
        int r = to ? 0 : -ENOMEM;

        for (size_t i = 0; r >= 0 && i < lkg_value_size(value); i++) {
                const char *key;
                size_t size;
                const struct lkg_value *member = lkg_map_at(value, i, &key, &size);
                struct lkg_value *pruned = NULL;

                if (is_null(member)) {
                        r = lkg_map_remove(to, key, size);
                        continue;
                }
                r = prune(member, &pruned);
                if (r == 0 && !pruned)
                        r = lkg_map_remove(to, key, size);
                else if (r == 0 && pruned != member)
                        r = lkg_map_set(to, key, size, lkg_value_ref(pruned));
                lkg_value_unref(pruned);
        }
        if (r < 0)
                return r;
        *ret = LKG_STEAL(to);
        return 0;
}

static int prune_list(const struct lkg_value *value, struct lkg_value **ret)
{
        LKG_CLEANUP(lkg_value_unrefp) struct lkg_value *to = lkg_value_clone_shallow(value);
        size_t at = 0;

        if (!to)
                return -ENOMEM;
        for (size_t i = 0; i < lkg_value_size(value); i++) {
                struct lkg_value *pruned = NULL;
                int r = prune(lkg_list_get(value, i), &pruned);

                if (r < 0)
                        return r;
                if (pruned)
                        lkg_list_set(to, at++, pruned);
                else
                        lkg_list_remove(to, at);
        }
        *ret = LKG_STEAL(to);
        return 0;
}

/*
 * Upstream's discardNullValuesFromPatch: null members go, maps that carry `$patch` go. *@ret NULL = nothing
 * left.
 */
static int prune(const struct lkg_value *value, struct lkg_value **ret)
{
        if (is_map(value) && lkg_map_get(value, LKG_DIRECTIVE_PATCH)) {
                *ret = NULL;
                return 0;
        }
        if (lkg_value_size(value) == 0) {
                *ret = lkg_value_ref((struct lkg_value *)value);
                return 0;
        }
        return is_map(value) ? prune_map(value, ret) : prune_list(value, ret);
}

/* ---- directives ---- */

static const char *text_of(const struct lkg_value *value)
{
        return lkg_value_type(value) == LKG_STRING ? lkg_value_text(value, NULL) : "";
}

/* `$patch` of a map: 1 when it decided the result, 0 when there is none. */
static int patch_directive(struct context *ctx, const struct lkg_value *patch, struct lkg_value **ret)
{
        const struct lkg_value *directive = lkg_map_get(patch, LKG_DIRECTIVE_PATCH);

        if (!directive)
                return 0;
        if (strcmp(text_of(directive), "replace") == 0) {
                *ret = lkg_value_clone_shallow(patch);
                if (!*ret)
                        return -ENOMEM;
                (void)lkg_map_remove(*ret, LKG_DIRECTIVE_PATCH, strlen(LKG_DIRECTIVE_PATCH));
                return 1;
        }
        if (strcmp(text_of(directive), "delete") == 0) {
                *ret = lkg_value_new_map(lkg_value_source_mut(patch), lkg_value_line(patch),
                                         lkg_value_column(patch));
                return *ret ? 1 : -ENOMEM;
        }
        return refuse(ctx, directive, "the value of $patch in a map must be replace or delete");
}

static bool list_has(const struct lkg_value *list, const struct lkg_value *item)
{
        for (size_t i = 0; i < lkg_value_size(list); i++)
                if (lkg_value_equal(lkg_list_get(list, i), item))
                        return true;
        return false;
}

static bool retains(const struct lkg_value *list, const char *key, size_t size)
{
        for (size_t i = 0; i < lkg_value_size(list); i++) {
                const struct lkg_value *item = lkg_list_get(list, i);
                const char *text;
                size_t n;

                if (lkg_value_type(item) != LKG_STRING)
                        continue;
                text = lkg_value_text(item, &n);
                if (n == size && memcmp(text, key, size) == 0)
                        return true;
        }
        return false;
}

/* `$retainKeys`: afterwards only the listed keys are left; what the patch itself sets must be listed. */
static int retain_keys(struct context *ctx, const struct lkg_value *patch, struct lkg_value *to)
{
        const struct lkg_value *list = lkg_map_get(patch, LKG_DIRECTIVE_RETAIN);
        const char *key;
        size_t size;

        if (!list)
                return 0;
        if (!is_list(list))
                return refuse(ctx, list, "the value of $retainKeys must be a list of keys");
        for (size_t i = 0; i < lkg_value_size(patch); i++) {
                const struct lkg_value *value = lkg_map_at(patch, i, &key, &size);

                if (!is_null(value) && !is_directive(key) && !retains(list, key, size))
                        return refuse(ctx, value, "the patch sets a key that its $retainKeys does not list");
        }
        for (size_t i = lkg_value_size(to); i-- > 0;) {
                (void)lkg_map_at(to, i, &key, &size);
                if (!retains(list, key, size)) {
                        int r = lkg_map_remove(to, key, size);

                        if (r < 0)
                                return r;
                }
        }
        return 0;
}

/* Replaces the list under @field by what @keep keeps of it, in order. */
static int delete_from(struct context *ctx, const struct lkg_value *remove, const char *field,
                       struct lkg_value *to)
{
        const struct lkg_value *list = lkg_map_get(to, field);
        LKG_CLEANUP(lkg_value_unrefp) struct lkg_value *left = NULL;
        int r;

        if (!is_list(remove))
                return refuse(ctx, remove, "the value of $deleteFromPrimitiveList must be a list");
        if (!list)
                return 0;
        if (!is_list(list))
                return refuse(ctx, remove, "$deleteFromPrimitiveList names a field that is not a list");
        left = lkg_value_new_list(lkg_value_source_mut(remove), lkg_value_line(remove),
                                  lkg_value_column(remove));
        if (!left)
                return -ENOMEM;
        for (size_t i = 0; i < lkg_value_size(list); i++) {
                struct lkg_value *item = lkg_list_get(list, i);

                if (list_has(remove, item))
                        continue;
                r = lkg_list_append(left, lkg_value_ref(item));
                if (r < 0)
                        return r;
        }
        r = lkg_map_set(to, field, strlen(field), lkg_value_over(left, list));
        return r < 0 ? r : 0;
}

static size_t index_in(const struct lkg_value *list, const struct lkg_value *item)
{
        for (size_t i = 0; i < lkg_value_size(list); i++)
                if (lkg_value_equal(lkg_list_get(list, i), item))
                        return i;
        return SIZE_MAX;
}

/* Upstream's validation: the patch's own items must stand in the order list, in the same relative order. */
static int check_order(struct context *ctx, const struct lkg_value *order, const struct lkg_value *items)
{
        size_t last = 0;

        for (size_t i = 0; i < lkg_value_size(items); i++) {
                size_t at = index_in(order, lkg_list_get(items, i));

                if (at == SIZE_MAX || at < last)
                        return refuse(ctx, order,
                                      "$setElementOrder does not list the patch's own items in their order");
                last = at;
        }
        return 0;
}

/*
 * `$setElementOrder/f`: items that are named take the named order; others keep their place relative to their
 * neighbours: at each step the unnamed item goes first unless the named one stood before it.
 */
static int set_order(struct context *ctx, const struct lkg_value *patch, const struct lkg_value *order,
                     const char *field, struct lkg_value *to)
{
        const struct lkg_value *list = lkg_map_get(to, field), *own = lkg_map_get(patch, field);
        LKG_CLEANUP(lkg_value_unrefp) struct lkg_value *sorted = NULL;
        size_t o = 0, u = 0, n;
        int r;

        if (!is_list(order))
                return refuse(ctx, order, "the value of $setElementOrder must be a list");
        if (is_list(own)) {
                r = check_order(ctx, order, own);
                return r; /* the patch's list replaces the other one and has its own order */
        }
        if (!is_list(list))
                return 0;
        n = lkg_value_size(list);
        sorted = lkg_value_new_list(lkg_value_source_mut(order), lkg_value_line(order),
                                    lkg_value_column(order));
        if (!sorted)
                return -ENOMEM;
        while (true) {
                struct lkg_value *next;

                while (o < lkg_value_size(order) && index_in(list, lkg_list_get(order, o)) == SIZE_MAX)
                        o++;
                while (u < n && list_has(order, lkg_list_get(list, u)))
                        u++;
                if (o == lkg_value_size(order) && u == n)
                        break;
                if (u < n && (o == lkg_value_size(order) || u < index_in(list, lkg_list_get(order, o))))
                        next = lkg_list_get(list, u++);
                else
                        next = lkg_list_get(list, index_in(list, lkg_list_get(order, o++)));
                r = lkg_list_append(sorted, lkg_value_ref(next));
                if (r < 0)
                        return r;
        }
        r = lkg_map_set(to, field, strlen(field), lkg_value_over(sorted, list));
        return r < 0 ? r : 0;
}

/* ---- merging ---- */

static int merge_maps(struct context *ctx, const struct lkg_value *base, const struct lkg_value *patch,
                      struct lkg_value **ret);

static int put_over(struct lkg_value *to, const char *key, size_t size, const struct lkg_value *value,
                    const struct lkg_value *earlier)
{
        struct lkg_value *over =
                earlier ? lkg_value_over(value, earlier) : lkg_value_ref((struct lkg_value *)value);
        int r = lkg_map_set(to, key, size, over);

        return r < 0 ? r : 0;
}

static int merge_member(struct context *ctx, const char *key, size_t size, const struct lkg_value *value,
                        struct lkg_value *to)
{
        const struct lkg_value *earlier = lkg_map_get_n(to, key, size);
        LKG_CLEANUP(lkg_value_unrefp) struct lkg_value *result = NULL;
        int r;

        if (is_null(value)) {
                r = lkg_map_remove(to, key, size);
                return r < 0 ? r : 0;
        }
        if (is_map(value) && is_map(earlier)) {
                r = merge_maps(ctx, earlier, value, &result);
                if (r < 0)
                        return r;
                if (result == earlier)
                        return 0;
                r = lkg_map_set(to, key, size, LKG_STEAL(result));
                return r < 0 ? r : 0;
        }
        if (is_list(value) && is_list(earlier))
                return put_over(to, key, size, value, earlier); /* atomic: verbatim, nulls included */
        r = prune(value, &result);
        if (r < 0)
                return r;
        return result ? put_over(to, key, size, result, earlier) : 0;
}

/* The directives that change what is there before the ordinary members are merged. */
static int apply_lists(struct context *ctx, const struct lkg_value *patch, struct lkg_value *to)
{
        int r = 0;

        for (size_t i = 0; r == 0 && i < lkg_value_size(patch); i++) {
                const char *key, *field;
                const struct lkg_value *value = lkg_map_at(patch, i, &key, NULL);

                field = directive_field(key, LKG_DIRECTIVE_DELETE);
                if (field)
                        r = delete_from(ctx, value, field, to);
                else if (strncmp(key, LKG_DIRECTIVE_DELETE, strlen(LKG_DIRECTIVE_DELETE)) == 0)
                        r = refuse(ctx, value, "write $deleteFromPrimitiveList/FIELD");
        }
        return r;
}

static int apply_orders(struct context *ctx, const struct lkg_value *patch, struct lkg_value *to)
{
        int r = 0;

        for (size_t i = 0; r == 0 && i < lkg_value_size(patch); i++) {
                const char *key, *field;
                const struct lkg_value *value = lkg_map_at(patch, i, &key, NULL);

                field = directive_field(key, LKG_DIRECTIVE_ORDER);
                if (field)
                        r = set_order(ctx, patch, value, field, to);
                else if (strncmp(key, LKG_DIRECTIVE_ORDER, strlen(LKG_DIRECTIVE_ORDER)) == 0)
                        r = refuse(ctx, value, "write $setElementOrder/FIELD");
        }
        return r;
}

static int merge_maps(struct context *ctx, const struct lkg_value *base, const struct lkg_value *patch,
                      struct lkg_value **ret)
{
        LKG_CLEANUP(lkg_value_unrefp) struct lkg_value *to = NULL;
        int r = patch_directive(ctx, patch, &to);

        if (r > 0) {
                *ret = LKG_STEAL(to);
                return 0;
        }
        if (r < 0)
                return r;
        if (lkg_value_size(patch) == 0) {
                *ret = lkg_value_ref((struct lkg_value *)base);
                return 0;
        }
        to = lkg_value_clone_shallow(base);
        if (!to)
                return -ENOMEM;
        r = apply_lists(ctx, patch, to);
        for (size_t i = 0; r == 0 && i < lkg_value_size(patch); i++) {
                const char *key;
                size_t size;
                const struct lkg_value *value = lkg_map_at(patch, i, &key, &size);

                if (!is_directive(key))
                        r = merge_member(ctx, key, size, value, to);
        }
        if (r == 0)
                r = apply_orders(ctx, patch, to);
        if (r == 0)
                r = retain_keys(ctx, patch, to);
        if (r < 0)
                return r;
        *ret = LKG_STEAL(to);
        return 0;
}

int lkg_merge_strategic(const struct lkg_value *base, const struct lkg_value *patch,
                        struct lkg_report *report, struct lkg_value **ret)
{
        struct context ctx = { .report = report };

        if (!is_map(patch))
                return refuse(&ctx, patch, "a strategic merge patch must be a map");
        if (!is_map(base))
                return refuse(&ctx, base, "a strategic merge patch applies to a map only");
        return merge_maps(&ctx, base, patch, ret);
}
