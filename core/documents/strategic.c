/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Strategic merge patch (apimachinery's strategicpatch, server side mode) for kinds whose lists are all
 * atomic: maps merge, lists are replaced, and four directives are supported: `$patch`, `$retainKeys`,
 * `$deleteFromPrimitiveList/f`, `$setElementOrder/f`. Neither KubeletConfiguration nor KubeProxyConfiguration
 * declares a merge key, so the cases that need one cannot arise.
 *
 * Upstream derives from the Go type of a field how to merge it, and refuses to merge a member without a
 * field; with a struct lkg_merge_type this code does the same. Where upstream panics (lists of lists or of
 * maps under a list directive, null in an ordered list) the patch is refused.
 */
#include <lkg/base.h>
#include <lkg/documents.h>
#include <lkg/tree.h>

/* A map that is being merged into. */
struct merging {
        struct lkg_report *report;
        bool typed; /* a type is known for the whole */
        const struct lkg_value *patch;
        struct lkg_value *to; /* owned */
        struct lkg_merge_type type;
        bool ordered; /* @patch has `$setElementOrder` */
};

static int reject(const struct merging *m, const struct lkg_value *at, const char *text)
{
        lkg_report_add(m->report, LKG_ERROR, LKG_C_STRATEGIC, LKG_AT(at), "%s", text);
        return -EBADMSG;
}

static bool is(const struct lkg_value *value, enum lkg_type type)
{
        return value && lkg_value_type(value) == type;
}

static bool is_collection(const struct lkg_value *value)
{
        return is(value, LKG_MAP) || is(value, LKG_LIST);
}

static bool has_prefix(struct lkg_span key, const char *prefix)
{
        return strncmp(key.data, prefix, strlen(prefix)) == 0;
}

/* `PREFIX/field`. Return: is it of this form? */
static bool directive_field(struct lkg_span key, const char *prefix, struct lkg_span *ret)
{
        size_t n = strlen(prefix);

        if (!has_prefix(key, prefix) || key.data[n] != '/')
                return false;
        *ret = lkg_span(key.data + n + 1, key.size - n - 1);
        return true;
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

/* The type of a member for merging. Return: 0 or -EBADMSG (reported). */
static int member_type(const struct merging *m, struct lkg_span key, const struct lkg_value *at,
                       struct lkg_merge_type *ret)
{
        *ret = (struct lkg_merge_type){ 0 };
        if (m->type.class == LKG_MERGE_ANY)
                return 0;
        if (m->type.class != LKG_MERGE_STRUCT)
                return reject(m, at,
                              "a strategic merge patch cannot merge into this value, only replace it as a "
                              "whole: write $patch: replace beside the new keys of the map around it");
        if (!m->type.member(&m->type, key.data, key.size, ret))
                return reject(
                        m, at,
                        "the kind has no such field, and a strategic merge patch merges known fields only");
        return 0;
}

/* May two lists be merged under this key? Return: 0 or -EBADMSG (reported). */
static int check_list_type(const struct merging *m, struct lkg_span key, const struct lkg_value *at)
{
        struct lkg_merge_type member;
        int r = member_type(m, key, at, &member);

        if (r < 0 || member.class == LKG_MERGE_ANY || member.class == LKG_MERGE_LIST || member.pointer)
                return r;
        return reject(m, at, "this field is not a plain list, so two lists cannot be merged");
}

static bool is_integer(const struct lkg_value *number)
{
        const char *text = lkg_value_text(number, NULL);

        errno = 0;
        (void)strtoll(text, NULL, 10);
        return errno == 0 && text[strspn(text, "-0123456789")] == '\0';
}

/* Are two values of one Go type? An integer and a float are not. */
static bool same_type(const struct lkg_value *a, const struct lkg_value *b)
{
        return lkg_value_type(a) == lkg_value_type(b) &&
               (lkg_value_type(a) != LKG_NUMBER || is_integer(a) == is_integer(b));
}

/* ---- values that are copied: null members of maps and maps with `$patch` are dropped ---- */

static bool is_idle_directive(const struct lkg_value *map, const struct lkg_member *m)
{
        if (strcmp(m->key.data, LKG_DIRECTIVE_PATCH) == 0)
                return lkg_value_size(map) > 1 && !is(m->value, LKG_NULL);
        return strcmp(m->key.data, LKG_DIRECTIVE_RETAIN) == 0 || has_prefix(m->key, LKG_DIRECTIVE_DELETE) ||
               has_prefix(m->key, LKG_DIRECTIVE_ORDER);
}

/*
 * If the patch's map is copied whole, upstream drops a map with `$patch` and treats other directives as
 * keys. With a type, the same patch is merged once more into the document with defaults, where it may have
 * an effect.
 */
static void note_idle(const struct merging *around, const struct lkg_value *map)
{
        for (struct lkg_member m = { 0 }; !around->typed && is(map, LKG_MAP) && lkg_value_next(map, &m);)
                if (*m.key.data == '$' && is_idle_directive(map, &m))
                        lkg_report_add(around->report, LKG_WARNING, LKG_C_IDLE_DIRECTIVE, LKG_AT(m.value),
                                       "no layer before this one sets this map, so %s has nothing to act on "
                                       "and %s; leave it out",
                                       LKG_QUOTE(m.key),
                                       strcmp(m.key.data, LKG_DIRECTIVE_PATCH) == 0
                                               ? "may take away what stands beside it"
                                               : "is taken for a field");
}

/* A member without what is dropped. Return: one reference; NULL: nothing is left. */
static struct lkg_value *prune(const struct lkg_value *value, const struct lkg_member *m, void *userdata)
{
        const struct lkg_value *directive =
                is(m->value, LKG_MAP) ? lkg_map_get(m->value, LKG_DIRECTIVE_PATCH) : NULL;

        note_idle(userdata, m->value);
        /* null is dropped with the other nulls, before it is looked up */
        if (directive && !is(directive, LKG_NULL))
                return NULL;
        if (is(value, LKG_MAP) && is(m->value, LKG_NULL))
                return NULL;
        return lkg_value_rewrite(m->value, prune, userdata);
}

/* ---- directives of a map ---- */

static struct lkg_span text_of(const struct lkg_value *value)
{
        struct lkg_span text = { NULL, 0 };

        if (is(value, LKG_STRING))
                text.data = lkg_value_text(value, &text.size);
        return text;
}

/*
 * Apply `$patch` of a map.
 * Return: 1 if it decided the result, which has replaced @base; 0 if there is none; -EBADMSG.
 */
static int patch_directive(const struct merging *m, const struct lkg_value *base, struct lkg_value **ret)
{
        LKG_CLEANUP(lkg_value_unrefp) struct lkg_value *empty = NULL;
        const struct lkg_value *directive = lkg_map_get(m->patch, LKG_DIRECTIVE_PATCH);

        if (!directive)
                return 0;
        if (lkg_span_is(text_of(directive), "replace")) {
                *ret = lkg_value_over(m->patch, base);
                (void)lkg_map_remove(*ret, LKG_DIRECTIVE_PATCH, strlen(LKG_DIRECTIVE_PATCH));
                return 1;
        }
        if (!lkg_span_is(text_of(directive), "delete"))
                return reject(m, directive, "the value of $patch in a map must be replace or delete");
        empty = lkg_value_new_map(lkg_value_source_mut(m->patch), lkg_value_line(m->patch),
                                  lkg_value_column(m->patch));
        *ret = lkg_value_over(empty, base);
        return 1;
}

static bool retains(const struct lkg_value *list, struct lkg_span key)
{
        for (struct lkg_member m = { 0 }; lkg_value_next(list, &m);)
                if (is(m.value, LKG_STRING) && lkg_span_equal(text_of(m.value), key))
                        return true;
        return false;
}

/* Members that the patch itself sets must be listed. */
static int check_retained(const struct merging *around, const struct lkg_value *list)
{
        for (struct lkg_member m = { 0 }; lkg_value_next(list, &m);)
                if (is_collection(m.value))
                        return reject(around, list, "the value of $retainKeys must be a list of keys");
        for (struct lkg_member m = { 0 }; lkg_value_next(around->patch, &m);)
                if (!is(m.value, LKG_NULL) && strcmp(m.key.data, LKG_DIRECTIVE_RETAIN) != 0 &&
                    !has_prefix(m.key, LKG_DIRECTIVE_DELETE) && !has_prefix(m.key, LKG_DIRECTIVE_ORDER) &&
                    !retains(list, m.key))
                        return reject(around, m.value,
                                      "the patch sets a key that its $retainKeys does not list");
        return 0;
}

static struct lkg_value *retained(const struct lkg_value *map, const struct lkg_member *m, void *userdata)
{
        (void)map;
        return retains(userdata, m->key) ? lkg_value_ref(m->value) : NULL;
}

/* Apply `$retainKeys`: before merging, remove all keys that are not listed. */
static int retain_keys(struct merging *m)
{
        struct lkg_value *list = lkg_map_get(m->patch, LKG_DIRECTIVE_RETAIN), *left;
        int r;

        if (!list)
                return 0;
        if (!is(list, LKG_LIST))
                return reject(m, list, "the value of $retainKeys must be a list of keys");
        r = check_retained(m, list);
        if (r < 0)
                return r;
        left = lkg_value_rewrite(m->to, retained, list);
        lkg_value_unref(m->to); /* it may be the same */
        m->to = left;
        return 0;
}

/* ---- lists ---- */

static size_t index_in(const struct lkg_value *list, const struct lkg_value *item)
{
        for (struct lkg_member m = { 0 }; lkg_value_next(list, &m);)
                if (lkg_value_equal(m.value, item))
                        return m.i;
        return SIZE_MAX;
}

/* Check that all items of both lists are scalars of one type. @b may be NULL. */
static int check_items(const struct merging *around, const struct lkg_value *at, const struct lkg_value *a,
                       const struct lkg_value *b)
{
        const struct lkg_value *lists[] = { a, b }, *first = NULL;

        for (size_t l = 0; l < LKG_ARRAY_SIZE(lists); l++)
                for (struct lkg_member m = { 0 }; lkg_value_next(lists[l], &m);) {
                        first = first ? first : m.value;
                        if (is_collection(m.value) || is(m.value, LKG_NULL) || !same_type(first, m.value))
                                return reject(around, at,
                                              "a directive for lists needs lists of texts, of numbers or "
                                              "of booleans");
                }
        return 0;
}

static struct lkg_value *new_list(const struct lkg_value *at)
{
        return lkg_value_new_list(lkg_value_source_mut(at), lkg_value_line(at), lkg_value_column(at));
}

/* `$deleteFromPrimitiveList`: the items of @list that are not in @remove. */
static int delete_items(const struct merging *around, const struct lkg_value *list,
                        const struct lkg_value *remove, struct lkg_value **ret)
{
        int r = check_items(around, remove, list, remove);

        if (r < 0)
                return r;
        *ret = new_list(remove);
        for (struct lkg_member m = { 0 }; lkg_value_next(list, &m);)
                if (index_in(remove, m.value) == SIZE_MAX)
                        lkg_list_append(*ret, lkg_value_ref(m.value));
        return 0;
}

/* ---- $setElementOrder (reference: mergePatchIntoOriginal, mergeSlice, normalizeElementOrder) ---- */

struct ordering {
        const struct lkg_value *order; /* the directive's list */
        const struct lkg_value *list;  /* of the base; NULL = none */
        const struct lkg_value *own;   /* of the patch; NULL = none */
};

/* The patch's own items must be in the order list, in the same relative order. */
static int check_order(const struct merging *around, const struct ordering *o)
{
        struct lkg_member own = { 0 }, at = { 0 };

        while (lkg_value_size(o->order) > 0 && lkg_value_next(o->own, &own)) {
                bool found = at.n < lkg_value_size(o->order) && is(own.value, LKG_MAP) &&
                             lkg_map_get(own.value, LKG_DIRECTIVE_PATCH);

                while (!found && lkg_value_next(o->order, &at))
                        found = lkg_value_equal(own.value, at.value);
                if (!found)
                        return reject(around, o->order,
                                      "$setElementOrder does not list the patch's own items in their order");
        }
        return 0;
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
static int sort_list(const struct merging *around, const struct ordering *o, struct lkg_value **ret)
{
        LKG_CLEANUP(lkg_value_unrefp) struct lkg_value *named = new_list(o->order);
        LKG_CLEANUP(lkg_value_unrefp) struct lkg_value *unnamed = new_list(o->order);
        const struct lkg_value *items = o->own ? o->own : o->list;
        int r;

        for (struct lkg_member m = { 0 }; lkg_value_next(o->order, &m);)
                if (is_collection(m.value))
                        return reject(around, o->order,
                                      "the value of $setElementOrder must be a list of texts, numbers or "
                                      "booleans");
        r = check_items(around, o->order, o->list, o->own);
        if (r < 0)
                return r;
        if (lkg_value_size(items) == 0 && (!o->list || lkg_value_size(o->list) == 0))
                return reject(around, o->order, "$setElementOrder names a list that has no items to order");
        for (struct lkg_member m = { 0 }; lkg_value_next(items, &m);)
                if (index_in(o->order, m.value) != SIZE_MAX)
                        insert_named(named, o->order, m.value);
                else
                        insert_unnamed(unnamed, o->list, m.value);
        *ret = new_list(o->order);
        interleave(unnamed, named, o->list, *ret);
        return 0;
}

static int must_be_list(const struct merging *m, const struct lkg_value *value, const struct lkg_value *at)
{
        if (!value || is(value, LKG_LIST))
                return 0;
        return reject(m, at,
                      value == at ? "the value of $setElementOrder must be a list"
                                  : "$setElementOrder names a field that is not a list");
}

static int set_order(struct merging *m, struct lkg_span field, const struct lkg_value *order)
{
        LKG_CLEANUP(lkg_value_unrefp) struct lkg_value *sorted = NULL;
        struct ordering o = { order, lkg_map_find(m->to, field), lkg_map_find(m->patch, field) };
        int r = must_be_list(m, o.list, order);

        if (r == 0)
                r = must_be_list(m, o.own, order);
        if (r == 0)
                r = check_list_type(m, field, order);
        if (r == 0)
                r = check_order(m, &o);
        if (r < 0 || (!o.list && !o.own))
                return r;
        r = sort_list(m, &o, &sorted);
        if (r == 0)
                (void)lkg_map_set(m->to, field.data, field.size, lkg_value_over(sorted, o.list));
        return r;
}

/* Apply every `$setElementOrder/f` of the patch to the lists. */
static int set_orders(struct merging *around)
{
        int r = 0;

        for (struct lkg_member m = { 0 }; r == 0 && lkg_value_next(around->patch, &m);) {
                struct lkg_span field;

                if (!has_prefix(m.key, LKG_DIRECTIVE_ORDER))
                        continue;
                around->ordered = true;
                r = must_be_list(around, m.value, m.value);
                if (r == 0)
                        r = directive_field(m.key, LKG_DIRECTIVE_ORDER, &field)
                                    ? set_order(around, field, m.value)
                                    : reject(around, m.value, "write $setElementOrder/FIELD");
        }
        return r;
}

/* Has set_orders() merged the list under @key? */
static bool is_ordered(const struct merging *around, struct lkg_span key)
{
        struct lkg_span field;

        for (struct lkg_member m = { 0 }; around->ordered && lkg_value_next(around->patch, &m);)
                if (directive_field(m.key, LKG_DIRECTIVE_ORDER, &field) && field.size > 0 &&
                    lkg_span_equal(field, key))
                        return true;
        return false;
}

/* ---- merging ---- */

/* Put @value (taken over) in place of @earlier, which may be NULL. */
static void put(struct merging *m, struct lkg_span key, struct lkg_value *value,
                const struct lkg_value *earlier)
{
        LKG_CLEANUP(lkg_value_unrefp) struct lkg_value *taken = value;

        (void)lkg_map_set(m->to, key.data, key.size,
                          earlier ? lkg_value_over(value, earlier) : LKG_STEAL(taken));
}

/*
 * @drops: the list belongs to `$deleteFromPrimitiveList`; else the list is atomic and copied verbatim, with
 * its nulls.
 */
static int merge_lists(struct merging *m, struct lkg_span key, struct lkg_value *value,
                       const struct lkg_value *earlier, bool drops)
{
        struct lkg_value *left = NULL;
        int r = check_list_type(m, key, value);

        if (r == 0 && !drops)
                left = lkg_value_ref(value);
        else if (r == 0)
                r = delete_items(m, earlier, value, &left);
        if (r == 0)
                put(m, key, left, earlier);
        return r;
}

static int merge(const struct merging *around, const struct lkg_value *base, const struct lkg_value *patch,
                 struct lkg_merge_type type, struct lkg_value **ret);

static int merge_maps(struct merging *m, struct lkg_span key, const struct lkg_value *value,
                      const struct lkg_value *earlier)
{
        struct lkg_merge_type type;
        struct lkg_value *merged;
        int r = member_type(m, key, value, &type);

        if (r == 0)
                r = merge(m, earlier, value, type, &merged);
        if (r == 0)
                (void)lkg_map_set(m->to, key.data, key.size, merged);
        return r;
}

/*
 * The keys of a map are sorted, so `$deleteFromPrimitiveList/f` comes before f (upstream takes either
 * first). On a value that is not a list, the directive acts like a member if the types are the same, else it does nothing.
 */
static int merge_member(struct merging *m, const struct lkg_member *member)
{
        bool drops = has_prefix(member->key, LKG_DIRECTIVE_DELETE);
        struct lkg_value *earlier, *pruned = NULL;
        struct lkg_member at = *member;
        struct lkg_span field;

        if (drops && !directive_field(at.key, LKG_DIRECTIVE_DELETE, &field))
                return reject(m, at.value, "write $deleteFromPrimitiveList/FIELD");
        if (drops && field.size > 0)
                at.key = field;
        earlier = lkg_map_find(m->to, at.key);
        if (!is(at.value, LKG_NULL)) {
                if (drops && (!earlier || !same_type(at.value, earlier)))
                        return 0;
                if (is(at.value, LKG_MAP) && is(earlier, LKG_MAP))
                        return merge_maps(m, at.key, at.value, earlier);
                if (is(at.value, LKG_LIST) && is(earlier, LKG_LIST))
                        return merge_lists(m, at.key, at.value, earlier, drops);
                pruned = prune(m->patch, &at, m);
        }
        if (pruned)
                put(m, at.key, pruned, earlier);
        else
                (void)lkg_map_remove(m->to, at.key.data, at.key.size);
        return 0;
}

static int merge(const struct merging *around, const struct lkg_value *base, const struct lkg_value *patch,
                 struct lkg_merge_type type, struct lkg_value **ret)
{
        struct merging m = { around->report, around->typed, patch, .type = type };
        int r = patch_directive(&m, base, ret);

        if (r != 0)
                return r < 0 ? r : 0;
        if (lkg_value_size(patch) == 0) {
                *ret = lkg_value_ref((struct lkg_value *)base);
                return 0;
        }
        m.to = lkg_value_clone_shallow(base);
        r = retain_keys(&m); /* what concerns the map as a whole comes before its members */
        if (r == 0)
                r = set_orders(&m);
        for (struct lkg_member at = { 0 }; r == 0 && lkg_value_next(patch, &at);)
                if (strcmp(at.key.data, LKG_DIRECTIVE_RETAIN) != 0 &&
                    !has_prefix(at.key, LKG_DIRECTIVE_ORDER) && !is_ordered(&m, at.key))
                        r = merge_member(&m, &at);
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
        const struct merging whole = { .report = report, .typed = type != NULL };

        if (!is(patch, LKG_MAP) && !is(patch, LKG_NULL))
                return reject(&whole, patch, "a strategic merge patch must be a map");
        if (!is(base, LKG_MAP) && !is(base, LKG_NULL))
                return reject(&whole, base, "a strategic merge patch applies to a map only");
        return merge(&whole, is(base, LKG_MAP) ? base : empty, is(patch, LKG_MAP) ? patch : empty,
                     type ? *type : any, ret);
}

int lkg_merge_strategic(const struct lkg_value *base, const struct lkg_value *patch,
                        struct lkg_report *report, struct lkg_value **ret)
{
        return lkg_merge_strategic_typed(base, patch, NULL, report, ret);
}
