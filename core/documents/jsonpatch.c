/* SPDX-License-Identifier: Apache-2.0 */
/*
 * RFC 6902 operations (kubeadm's `+json` patches), as gopkg.in/evanphx/json-patch.v4 applies them: all or
 * nothing, negative list indexes count from the end, `-` is the position after the last item, `test`
 * compares values. It is more tolerant than the RFC, and so is this code: `replace` sets a field that is
 * missing, `copy` treats a missing field as null, and `add` and `replace` treat a missing value as null.
 * Only `replace` and `test` accept the whole document as target.
 *
 * Persistent: the containers on the path of a change are copied, everything else is shared.
 */
#include <lkg/documents.h>
#include <lkg/tree.h>

struct context {
        struct lkg_report *report;
        const struct lkg_value *op; /* the operation at work: for the place of a finding */
        size_t *n_copied;           /* leaves that copy operations have made so far */
};

enum change { CHANGE_ADD, CHANGE_REPLACE, CHANGE_REMOVE };

static int refuse_patch(const struct context *ctx, const char *text)
{
        lkg_report_add(ctx->report, LKG_ERROR, LKG_C_JSON_PATCH, LKG_AT(ctx->op), "%s", text);
        return -EBADMSG;
}

/* Parse a list index. Valid indexes are below @n. `-` is @n - 1 if @end is set (add). */
static int list_index(const struct context *ctx, const char *token, size_t n, bool end, size_t *ret)
{
        char *rest;
        long i;

        if (end && strcmp(token, "-") == 0) {
                *ret = n - 1;
                return 0;
        }
        errno = 0;
        i = strtol(token, &rest, 10);
        if (*token == '\0' || *rest != '\0' || errno || token[0] == ' ' || token[0] == '+')
                return refuse_patch(ctx, "a list is addressed by a number (or - to append)");
        if (i < 0)
                i += (long)n;
        if (i < 0 || (size_t)i >= n)
                return refuse_patch(ctx, "the path names a list item that does not exist");
        *ret = (size_t)i;
        return 0;
}

static int change_map(const struct context *ctx, struct lkg_value *map, const char *key, size_t size,
                      enum change change, const struct lkg_value *value)
{
        const struct lkg_value *earlier = lkg_map_find(map, lkg_span(key, size));

        if (!earlier && change == CHANGE_REMOVE)
                return refuse_patch(ctx, "the path names a field that does not exist");
        if (change == CHANGE_REMOVE)
                (void)lkg_map_remove(map, key, size);
        else
                (void)lkg_map_set(map, key, size, lkg_value_over(value, earlier));
        return 0;
}

static int change_list(const struct context *ctx, struct lkg_value *list, const char *token,
                       enum change change, const struct lkg_value *value)
{
        size_t n = lkg_value_size(list), i;
        int r = list_index(ctx, token, change == CHANGE_ADD ? n + 1 : n, change == CHANGE_ADD, &i);

        if (r < 0)
                return r;
        if (change == CHANGE_REMOVE)
                lkg_list_remove(list, i);
        else if (change == CHANGE_ADD)
                lkg_list_insert(list, i, lkg_value_over(value, NULL));
        else
                lkg_list_set(list, i, lkg_value_over(value, lkg_list_get(list, i)));
        return 0;
}

/* A member of a map or a list. *@ret: NULL for a missing field of a map; *@ret_i: of a list */
static int member(const struct context *ctx, const struct lkg_value *value, const char *token, size_t size,
                  size_t *ret_i, struct lkg_value **ret)
{
        int r;

        if (value && lkg_value_type(value) == LKG_MAP) {
                *ret = lkg_map_find(value, lkg_span(token, size));
                return 0;
        }
        if (!value || lkg_value_type(value) != LKG_LIST)
                return refuse_patch(ctx, "the path leads through a field that does not exist or is not a "
                                         "map or list");
        r = list_index(ctx, token, lkg_value_size(value), false, ret_i);
        if (r == 0)
                *ret = lkg_list_get(value, *ret_i);
        return r;
}

/* Change the value at @pointer below @container (owned, one reference). Descends by copying, in a loop. */
static int change_at(const struct context *ctx, struct lkg_value *container, const char *pointer,
                     enum change change, const struct lkg_value *value)
{
        while (true) {
                LKG_CLEANUP(lkg_freep) char *token = NULL;
                bool map = lkg_value_type(container) == LKG_MAP;
                struct lkg_value *child;
                size_t size, i;
                int r;

                pointer = lkg_pointer_next(pointer, &token, &size);
                if (*pointer == '\0')
                        return map ? change_map(ctx, container, token, size, change, value)
                                   : change_list(ctx, container, token, change, value);
                r = member(ctx, container, token, size, &i, &child);
                if (r < 0)
                        return r;
                if (!child || (lkg_value_type(child) != LKG_MAP && lkg_value_type(child) != LKG_LIST))
                        return refuse_patch(ctx,
                                            "the path leads through a field that does not exist or is not a "
                                            "map or list");
                child = lkg_value_clone_shallow(child);
                if (map)
                        (void)lkg_map_set(container, token, size, child);
                else
                        lkg_list_set(container, i, child);
                container = child;
        }
}

/* Are there more levels of lists and maps in @value than @room? */
static bool is_too_deep(const struct lkg_value *value, size_t room)
{
        if (room == 0)
                return lkg_value_type(value) == LKG_MAP || lkg_value_type(value) == LKG_LIST;
        for (struct lkg_member m = { 0 }; lkg_value_next(value, &m);)
                if (is_too_deep(m.value, room - 1))
                        return true;
        return false;
}

static int change(const struct context *ctx, struct lkg_value **doc, const char *pointer, enum change how,
                  const struct lkg_value *value)
{
        LKG_CLEANUP(lkg_value_unrefp) struct lkg_value *copy = NULL;
        size_t depth = lkg_span_count(lkg_span(pointer, strlen(pointer)), '/');
        int r;

        if (how != CHANGE_REMOVE &&
            is_too_deep(value, depth < LKG_DOC_DEPTH_MAX ? LKG_DOC_DEPTH_MAX - depth : 0))
                return refuse_patch(ctx, "the document gets more than 1000 levels; nest less");
        if (*pointer == '\0') { /* the whole document */
                if (how != CHANGE_REPLACE)
                        return refuse_patch(
                                ctx, "of what changes a document only 'replace' can name the whole of it");
                if (lkg_value_type(value) != LKG_MAP && lkg_value_type(value) != LKG_LIST)
                        return refuse_patch(ctx, "a document is a map or list");
                copy = lkg_value_over(value, *doc);
        } else {
                if (lkg_value_type(*doc) != LKG_MAP && lkg_value_type(*doc) != LKG_LIST)
                        return refuse_patch(ctx, "the document is not a map or list");
                copy = lkg_value_clone_shallow(*doc);
                r = change_at(ctx, copy, pointer, how, value);
                if (r < 0)
                        return r;
        }
        lkg_value_unref(*doc);
        *doc = LKG_STEAL(copy);
        return 0;
}

static int count_leaf(const struct lkg_leaf *leaf, void *userdata)
{
        size_t *n = userdata;

        (void)leaf;
        return ++*n > LKG_DOC_NODES_MAX;
}

/* Find the value at @pointer; NULL for a missing field of an existing map. */
static int find_target(const struct context *ctx, struct lkg_value *doc, const char *pointer,
                       struct lkg_value **ret)
{
        int r = 0;

        *ret = doc;
        while (r == 0 && *pointer) {
                LKG_CLEANUP(lkg_freep) char *token = NULL;
                size_t size, i;

                pointer = lkg_pointer_next(pointer, &token, &size);
                r = member(ctx, *ret, token, size, &i, ret);
        }
        return r;
}

/* Return @value, or null if it is missing; one reference. */
static struct lkg_value *or_null(const struct context *ctx, struct lkg_value *value)
{
        return value ? lkg_value_ref(value)
                     : lkg_value_new_null((struct lkg_source *)lkg_value_source(ctx->op),
                                          lkg_value_line(ctx->op), lkg_value_column(ctx->op));
}

static int copy_or_move(const struct context *ctx, struct lkg_value **doc, const char *from,
                        const char *path, bool move)
{
        LKG_CLEANUP(lkg_value_unrefp) struct lkg_value *value = NULL;
        struct lkg_value *found = NULL;
        int r;

        if (!from)
                return refuse_patch(ctx, "'from' is missing");
        if (*from != '/')
                return refuse_patch(ctx, "'from' starts with '/'");
        r = find_target(ctx, *doc, from, &found);
        if (r < 0)
                return r;
        if (!found && move)
                return refuse_patch(ctx, "'from' names a field that does not exist");
        value = or_null(ctx, found);
        /* Copies share their tree, so a few of them in a row could make more values than fit into memory. */
        if (!move && lkg_value_walk(value, count_leaf, ctx->n_copied) != 0)
                return refuse_patch(ctx, "the copies make more than 1000000 values; copy less");
        r = move ? change(ctx, doc, from, CHANGE_REMOVE, NULL) : 0;
        return r < 0 ? r : change(ctx, doc, path, CHANGE_ADD, value);
}

static int test(const struct context *ctx, struct lkg_value *doc, const char *path,
                const struct lkg_value *value)
{
        struct lkg_value *found = NULL;
        int r = find_target(ctx, doc, path, &found);

        if (r < 0)
                return r;
        /* A missing field or value equals null, as upstream. */
        if ((!found || lkg_value_type(found) == LKG_NULL) && (!value || lkg_value_type(value) == LKG_NULL))
                return 0;
        if (!found || !value || !lkg_value_equal(found, value))
                return refuse_patch(ctx, "the test failed: the field has another value");
        return 0;
}

static int apply(const struct context *ctx, struct lkg_value **doc)
{
        LKG_CLEANUP(lkg_value_unrefp) struct lkg_value *value = NULL;
        const char *op, *path;

        if (lkg_value_type(ctx->op) != LKG_MAP)
                return refuse_patch(ctx, "an operation is a map with op, path and value");
        op = lkg_map_get_string(ctx->op, "op");
        path = lkg_map_get_string(ctx->op, "path");
        if (!op || !path)
                return refuse_patch(ctx, "an operation needs 'op' and 'path'");
        if (*path && *path != '/')
                return refuse_patch(ctx, "a path starts with '/'");
        if (strcmp(op, "remove") == 0)
                return change(ctx, doc, path, CHANGE_REMOVE, NULL);
        if (strcmp(op, "move") == 0 || strcmp(op, "copy") == 0)
                return copy_or_move(ctx, doc, lkg_map_get_string(ctx->op, "from"), path, *op == 'm');
        if (strcmp(op, "test") == 0)
                return test(ctx, *doc, path, lkg_map_get(ctx->op, "value"));
        if (strcmp(op, "add") != 0 && strcmp(op, "replace") != 0)
                return refuse_patch(ctx, "'op' must be add, remove, replace, move, copy or test");
        value = or_null(ctx, lkg_map_get(ctx->op, "value"));
        return change(ctx, doc, path, *op == 'a' ? CHANGE_ADD : CHANGE_REPLACE, value);
}

int lkg_patch_json(const struct lkg_value *base, const struct lkg_value *patch, struct lkg_report *report,
                   struct lkg_value **ret)
{
        LKG_CLEANUP(lkg_value_unrefp) struct lkg_value *doc = lkg_value_ref((struct lkg_value *)base);
        size_t n_copied = 0;
        struct context ctx = { .report = report, .op = patch, .n_copied = &n_copied };

        if (lkg_value_type(patch) != LKG_LIST)
                return refuse_patch(&ctx, "a JSON patch is a list of operations");
        for (struct lkg_member m = { 0 }; lkg_value_next(patch, &m);) {
                int r;

                ctx.op = m.value;
                r = apply(&ctx, &doc);
                if (r < 0)
                        return r;
        }
        *ret = LKG_STEAL(doc);
        return 0;
}
