/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Strategic merge patch (apimachinery's strategicpatch, server side mode) for kinds whose lists are all
 * atomic: maps merge, lists are replaced, and four directives are supported: `$patch`, `$retainKeys`,
 * `$deleteFromPrimitiveList/f`, `$setElementOrder/f` (strategic-list.c has the last two). Neither
 * KubeletConfiguration nor KubeProxyConfiguration declares a merge key, so the cases that need one cannot
 * arise.
 *
 * Upstream derives from the Go type of a field how to merge it, and refuses to merge a member without a
 * field; with a struct lkg_merge_type this code does the same. Where upstream panics (lists of lists or of
 * maps under a list directive, null in an ordered list) the patch is refused.
 */
#include "strategic.h"

#include <lkg/base.h>

int lkg_strategic_refuse(struct lkg_strategic *ctx, const struct lkg_value *at, const char *text)
{
        const struct lkg_source *source = lkg_value_source(at);
        struct lkg_where where = { source ? source->file : NULL, lkg_value_line(at), lkg_value_column(at) };

        lkg_report_add(ctx->report, LKG_ERROR, LKG_C_STRATEGIC, &where, "%s", text);
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

static bool has_prefix(const char *key, const char *prefix)
{
        return strncmp(key, prefix, strlen(prefix)) == 0;
}

/* ---- types ---- */

/* Go's encoding/json ignores the case of ASCII letters, and two characters of Unicode fold to K and S. */
bool lkg_merge_key_folds(const char *name, const char *key, size_t size)
{
        const char *end = key + size;

        for (; *name && key < end; name++) {
                char lower = (char)(*name >= 'A' && *name <= 'Z' ? *name | 0x20 : *name);
                char c = *key;
                size_t n = 1;

                if (!(c & 0x80)) {
                        c = (char)(c >= 'A' && c <= 'Z' ? c | 0x20 : c);
                } else if (end - key >= 3 && memcmp(key, "\xe2\x84\xaa", 3) == 0) { /* KELVIN SIGN */
                        c = 'k';
                        n = 3;
                } else if (end - key >= 2 && memcmp(key, "\xc5\xbf", 2) == 0) { /* LONG S */
                        c = 's';
                        n = 2;
                }
                if (c != lower)
                        return false;
                key += n;
        }
        return *name == '\0' && key == end;
}

int lkg_strategic_member(struct lkg_strategic *ctx, const struct lkg_merge_type *type, const char *key,
                         size_t size, const struct lkg_value *at, struct lkg_merge_type *ret)
{
        *ret = (struct lkg_merge_type){ 0 };
        if (type->class == LKG_MERGE_ANY)
                return 0;
        if (type->class != LKG_MERGE_STRUCT)
                return lkg_strategic_refuse(
                        ctx, at,
                        "a strategic merge patch cannot merge into this value, only replace "
                        "it as a whole: write $patch: replace beside the new keys of the "
                        "map around it");
        if (!type->member(type, key, size, ret))
                return lkg_strategic_refuse(ctx, at,
                                            "the kind has no such field, and a strategic merge patch merges "
                                            "known fields only");
        return 0;
}

/* ---- values that are copied: null members of maps and maps with `$patch` are dropped ---- */

/* `$patch: null` is dropped with the other nulls, before `$patch` is looked up. */
static bool is_dropped(const struct lkg_value *value)
{
        const struct lkg_value *directive = is_map(value) ? lkg_map_get(value, LKG_DIRECTIVE_PATCH) : NULL;

        return directive && !is_null(directive);
}

static bool is_idle_directive(const char *key, const struct lkg_value *map, const struct lkg_value *value)
{
        if (strcmp(key, LKG_DIRECTIVE_PATCH) == 0)
                return lkg_value_size(map) > 1 && !is_null(value);
        return strcmp(key, LKG_DIRECTIVE_RETAIN) == 0 || has_prefix(key, LKG_DIRECTIVE_DELETE) ||
               has_prefix(key, LKG_DIRECTIVE_ORDER);
}

/*
 * If the patch's map is copied whole, upstream drops a map with `$patch` and treats other directives as
 * keys. With a type, the same patch is merged once more into the document with defaults, where it may have
 * an effect.
 */
static void note_idle(struct lkg_strategic *ctx, const struct lkg_value *map)
{
        for (size_t i = 0; !ctx->typed && is_map(map) && i < lkg_value_size(map); i++) {
                const char *key;
                size_t size;
                const struct lkg_value *value = lkg_map_at(map, i, &key, &size);
                struct lkg_where where = lkg_where_of(value);
                bool drops = strcmp(key, LKG_DIRECTIVE_PATCH) == 0;
                char quoted[5 * 64 + 8];

                if (*key != '$' || !is_idle_directive(key, map, value))
                        continue;
                lkg_report_add(ctx->report, LKG_WARNING, LKG_C_IDLE_DIRECTIVE, &where,
                               "no layer before this one sets this map, so %s has nothing to act on and %s; "
                               "leave it out",
                               lkg_quote(key, size, quoted),
                               drops ? "may take away what stands beside it" : "is taken for a field");
        }
}

/* @member without what is dropped. Return: one reference; NULL: nothing is left. */
static struct lkg_value *prune(const struct lkg_value *value, const char *key, size_t size,
                               const struct lkg_value *member, void *userdata)
{
        (void)key;
        (void)size;
        note_idle(userdata, member);
        if (is_dropped(member) || (is_map(value) && is_null(member)))
                return NULL;
        return lkg_value_rewrite(member, prune, userdata);
}

/* ---- directives of a map ---- */

static bool text_is(const struct lkg_value *value, const char *want)
{
        size_t size;

        return lkg_value_type(value) == LKG_STRING && strcmp(lkg_value_text(value, &size), want) == 0 &&
               size == strlen(want);
}

/*
 * Apply `$patch` of a map.
 * Return: 1 if it decided the result, which has replaced @base; 0 if there is none; -EBADMSG.
 */
static int patch_directive(struct lkg_strategic *ctx, const struct lkg_value *base,
                           const struct lkg_value *patch, struct lkg_value **ret)
{
        LKG_CLEANUP(lkg_value_unrefp) struct lkg_value *empty = NULL;
        const struct lkg_value *directive = lkg_map_get(patch, LKG_DIRECTIVE_PATCH);

        if (!directive)
                return 0;
        if (text_is(directive, "replace")) {
                *ret = lkg_value_over(patch, base);
                (void)lkg_map_remove(*ret, LKG_DIRECTIVE_PATCH, strlen(LKG_DIRECTIVE_PATCH));
                return 1;
        }
        if (text_is(directive, "delete")) {
                empty = lkg_value_new_map(lkg_value_source_mut(patch), lkg_value_line(patch),
                                          lkg_value_column(patch));
                *ret = lkg_value_over(empty, base);
                return 1;
        }
        return lkg_strategic_refuse(ctx, directive,
                                    "the value of $patch in a map must be replace or delete");
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

/* Members that the patch itself sets must be listed. */
static int check_retained(struct lkg_strategic *ctx, const struct lkg_value *patch,
                          const struct lkg_value *list)
{
        for (size_t i = 0; i < lkg_value_size(list); i++)
                if (is_map(lkg_list_get(list, i)) || is_list(lkg_list_get(list, i)))
                        return lkg_strategic_refuse(ctx, list,
                                                    "the value of $retainKeys must be a list of keys");
        for (size_t i = 0; i < lkg_value_size(patch); i++) {
                const char *key;
                size_t size;
                const struct lkg_value *value = lkg_map_at(patch, i, &key, &size);

                if (is_null(value) || strcmp(key, LKG_DIRECTIVE_RETAIN) == 0 ||
                    has_prefix(key, LKG_DIRECTIVE_DELETE) || has_prefix(key, LKG_DIRECTIVE_ORDER))
                        continue;
                if (!retains(list, key, size))
                        return lkg_strategic_refuse(
                                ctx, value, "the patch sets a key that its $retainKeys does not list");
        }
        return 0;
}

/* Apply `$retainKeys`: before merging, remove all keys that are not listed. */
static int retain_keys(struct lkg_strategic *ctx, const struct lkg_value *patch, struct lkg_value *to)
{
        const struct lkg_value *list = lkg_map_get(patch, LKG_DIRECTIVE_RETAIN);
        int r;

        if (!list)
                return 0;
        if (!is_list(list))
                return lkg_strategic_refuse(ctx, list, "the value of $retainKeys must be a list of keys");
        r = check_retained(ctx, patch, list);
        for (size_t i = lkg_value_size(to); r == 0 && i-- > 0;) {
                const char *key;
                size_t size;

                (void)lkg_map_at(to, i, &key, &size);
                if (!retains(list, key, size))
                        (void)lkg_map_remove(to, key, size);
        }
        return r;
}

/* ---- merging ---- */

/* A map that is being merged into. */
struct merging {
        struct lkg_strategic *ctx;
        const struct lkg_value *patch;
        struct lkg_value *to; /* owned */
        struct lkg_merge_type type;
        bool ordered; /* @patch has `$setElementOrder` */
};

/* Put @value (taken over) in place of @earlier, which may be NULL. */
static void put(struct merging *m, const char *key, size_t size, struct lkg_value *value,
                const struct lkg_value *earlier)
{
        LKG_CLEANUP(lkg_value_unrefp) struct lkg_value *taken = value;

        (void)lkg_map_set(m->to, key, size, earlier ? lkg_value_over(value, earlier) : LKG_STEAL(taken));
}

/* What concerns the map as a whole comes before its members. */
static int begin(struct merging *m)
{
        int r = retain_keys(m->ctx, m->patch, m->to);

        for (size_t i = 0; r == 0 && !m->ordered && i < lkg_value_size(m->patch); i++) {
                const char *key;

                (void)lkg_map_at(m->patch, i, &key, NULL);
                m->ordered = has_prefix(key, LKG_DIRECTIVE_ORDER);
        }
        return r == 0 && m->ordered ? lkg_strategic_orders(m->ctx, m->patch, &m->type, m->to) : r;
}

/* Has begin() already handled this member? */
static bool is_handled(const struct merging *m, const char *key, size_t size)
{
        return strcmp(key, LKG_DIRECTIVE_RETAIN) == 0 || has_prefix(key, LKG_DIRECTIVE_ORDER) ||
               (m->ordered && lkg_strategic_is_ordered(m->patch, key, size));
}

/*
 * @delete: the list belongs to `$deleteFromPrimitiveList`; else the list is atomic and copied verbatim, with
 * its nulls.
 */
static int merge_lists(struct merging *m, const char *key, size_t size, const struct lkg_value *value,
                       const struct lkg_value *earlier, bool delete)
{
        struct lkg_value *left = NULL;
        int r = lkg_strategic_list_type(m->ctx, &m->type, key, size, value);

        if (r == 0 && !delete)
                left = lkg_value_ref((struct lkg_value *)value);
        else if (r == 0)
                r = lkg_strategic_delete(m->ctx, earlier, value, &left);
        if (r == 0)
                put(m, key, size, left, earlier);
        return r;
}

static int merge(struct lkg_strategic *ctx, const struct lkg_value *base, const struct lkg_value *patch,
                 struct lkg_merge_type type, struct lkg_value **ret);

static int merge_maps(struct merging *m, const char *key, size_t size, const struct lkg_value *value,
                      const struct lkg_value *earlier)
{
        struct lkg_merge_type type;
        struct lkg_value *merged;
        int r = lkg_strategic_member(m->ctx, &m->type, key, size, value, &type);

        if (r == 0)
                r = merge(m->ctx, earlier, value, type, &merged);
        if (r == 0)
                (void)lkg_map_set(m->to, key, size, merged);
        return r;
}

/*
 * The keys of a map are sorted, so `$deleteFromPrimitiveList/f` comes before f (upstream takes either
 * first). On a value that is not a list, the directive acts like a member if the types are the same, else it does nothing.
 */
static int merge_member(struct merging *m, const char *key, size_t size, const struct lkg_value *value)
{
        bool delete = has_prefix(key, LKG_DIRECTIVE_DELETE);
        struct lkg_value *earlier, *pruned;

        if (delete) {
                const char *field = lkg_strategic_field(key, LKG_DIRECTIVE_DELETE);

                if (!field)
                        return lkg_strategic_refuse(m->ctx, value, "write $deleteFromPrimitiveList/FIELD");
                size -= (size_t)(field - key);
                key = field;
        }
        earlier = lkg_map_get_n(m->to, key, size);
        if (is_null(value)) {
                (void)lkg_map_remove(m->to, key, size);
                return 0;
        }
        if (delete &&(!earlier || !lkg_strategic_same_type(value, earlier)))
                return 0;
        if (is_map(value) && is_map(earlier))
                return merge_maps(m, key, size, value, earlier);
        if (is_list(value) && is_list(earlier))
                return merge_lists(m, key, size, value, earlier, delete);
        pruned = prune(m->patch, key, size, value, m->ctx);
        if (pruned)
                put(m, key, size, pruned, earlier);
        else
                (void)lkg_map_remove(m->to, key, size);
        return 0;
}

static int merge(struct lkg_strategic *ctx, const struct lkg_value *base, const struct lkg_value *patch,
                 struct lkg_merge_type type, struct lkg_value **ret)
{
        struct merging m = { .ctx = ctx, .patch = patch, .type = type };
        int r = patch_directive(ctx, base, patch, ret);

        if (r != 0)
                return r < 0 ? r : 0;
        if (lkg_value_size(patch) == 0) {
                *ret = lkg_value_ref((struct lkg_value *)base);
                return 0;
        }
        m.to = lkg_value_clone_shallow(base);
        r = begin(&m);
        for (size_t i = 0; r == 0 && i < lkg_value_size(patch); i++) {
                const char *key;
                size_t size;
                const struct lkg_value *value = lkg_map_at(patch, i, &key, &size);

                if (!is_handled(&m, key, size))
                        r = merge_member(&m, key, size, value);
        }
        if (r < 0)
                lkg_value_unref(m.to);
        else
                *ret = m.to;
        return r;
}

int lkg_merge_strategic_typed(const struct lkg_value *base, const struct lkg_value *patch,
                              const struct lkg_merge_type *type, struct lkg_report *report,
                              struct lkg_value **ret)
{
        static const struct lkg_merge_type any = { .class = LKG_MERGE_ANY };
        LKG_CLEANUP(lkg_value_unrefp) struct lkg_value *empty = lkg_value_new_map(NULL, 0, 0);
        struct lkg_strategic ctx = { .report = report, .typed = type != NULL };

        if (!is_map(patch) && !is_null(patch))
                return lkg_strategic_refuse(&ctx, patch, "a strategic merge patch must be a map");
        if (!is_map(base) && !is_null(base))
                return lkg_strategic_refuse(&ctx, base, "a strategic merge patch applies to a map only");
        return merge(&ctx, is_map(base) ? base : empty, is_map(patch) ? patch : empty, type ? *type : any,
                     ret);
}

int lkg_merge_strategic(const struct lkg_value *base, const struct lkg_value *patch,
                        struct lkg_report *report, struct lkg_value **ret)
{
        return lkg_merge_strategic_typed(base, patch, NULL, report, ret);
}
