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
 *
 * No recursion: maps that are being merged or pruned wait on an explicit stack.
 */
#include "strategic.h"

#include <lkg/base.h>

/* A map that is being merged into, or a value that is being pruned (@base NULL). */
struct strategic_job {
        const struct lkg_value *base, *patch;
        struct lkg_value *to;       /* owned: what @base has become, or @patch */
        struct lkg_merge_type type; /* of @base */
        size_t i;                   /* next member of @patch */
        size_t at;                  /* pruned list: index in @to */
        bool ordered;               /* @patch has `$setElementOrder` */
        const char *key;            /* under which the result goes into the job below */
        size_t key_size;
};

struct jobs {
        struct strategic_job *items;
        size_t n, allocated;
};

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

/* ---- jobs ---- */

/* Give the job its own copy of the result before changing it. */
static int own(struct strategic_job *job)
{
        if (!job->to)
                job->to = lkg_value_clone_shallow(job->base ? job->base : job->patch);
        return job->to ? 0 : -ENOMEM;
}

static struct strategic_job *push(struct jobs *jobs, const struct lkg_value *base,
                                  const struct lkg_value *patch)
{
        if (LKG_RESERVE(jobs->items, jobs->n, jobs->allocated) < 0)
                return NULL;
        jobs->items[jobs->n++] = (struct strategic_job){ .base = base, .patch = patch };
        return &jobs->items[jobs->n - 1];
}

/* Put @value (taken over) in place of @earlier, which may be NULL. */
static int put(struct lkg_value *to, const char *key, size_t size, struct lkg_value *value,
               const struct lkg_value *earlier)
{
        LKG_CLEANUP(lkg_value_unrefp) struct lkg_value *taken = value;
        struct lkg_value *over = earlier ? lkg_value_over(value, earlier) : LKG_STEAL(taken);
        int r = over ? lkg_map_set(to, key, size, over) : -ENOMEM;

        return r < 0 ? r : 0;
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

static int prune_member(struct lkg_strategic *ctx, struct strategic_job *job,
                        const struct lkg_value **ret_inner)
{
        bool list = is_list(job->patch);
        const struct lkg_value *member = list ? lkg_list_get(job->patch, job->i)
                                              : lkg_map_at(job->patch, job->i, &job->key, &job->key_size);
        int r = 0;

        *ret_inner = NULL;
        note_idle(ctx, member);
        if (is_dropped(member) || (!list && is_null(member))) {
                r = own(job);
                if (r == 0 && list)
                        lkg_list_remove(job->to, job->at);
                else if (r == 0)
                        r = lkg_map_remove(job->to, job->key, job->key_size);
        } else if (lkg_value_size(member) > 0) {
                *ret_inner = member;
        } else {
                job->at++;
        }
        job->i++;
        return r < 0 ? r : 0;
}

/* Put the pruned member @done into its parent. */
static int prune_put(struct strategic_job *parent, struct lkg_value *done)
{
        int r;

        if (!done) { /* nothing was dropped from it */
                parent->at++;
                return 0;
        }
        r = own(parent);
        if (r < 0) {
                lkg_value_unref(done);
                return r;
        }
        if (is_list(parent->patch)) {
                lkg_list_set(parent->to, parent->at++, done);
                return 0;
        }
        r = lkg_map_set(parent->to, parent->key, parent->key_size, done);
        return r < 0 ? r : 0;
}

/* If nothing is left, *@ret is NULL. */
static int prune(struct lkg_strategic *ctx, const struct lkg_value *value, struct lkg_value **ret)
{
        struct jobs jobs = { 0 };
        int r = 0;

        *ret = NULL;
        note_idle(ctx, value);
        if (is_dropped(value))
                return 0;
        if (lkg_value_size(value) == 0) {
                *ret = lkg_value_ref((struct lkg_value *)value);
                return 0;
        }
        if (!push(&jobs, NULL, value))
                return -ENOMEM;
        while (r == 0 && jobs.n > 0) {
                struct strategic_job *job = &jobs.items[jobs.n - 1];
                const struct lkg_value *inner;

                if (job->i == lkg_value_size(job->patch)) {
                        struct lkg_value *done = LKG_STEAL(job->to);

                        if (--jobs.n > 0)
                                r = prune_put(&jobs.items[jobs.n - 1], done);
                        else
                                *ret = done ? done : lkg_value_ref((struct lkg_value *)value);
                        continue;
                }
                r = prune_member(ctx, job, &inner);
                if (r == 0 && inner && !push(&jobs, NULL, inner))
                        r = -ENOMEM;
        }
        while (jobs.n > 0)
                lkg_value_unref(jobs.items[--jobs.n].to);
        free(jobs.items);
        return r;
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
 * Return: 1 if it decided the result, which has replaced @base; 0 if there is none.
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
                if (!*ret)
                        return -ENOMEM;
                (void)lkg_map_remove(*ret, LKG_DIRECTIVE_PATCH, strlen(LKG_DIRECTIVE_PATCH));
                return 1;
        }
        if (text_is(directive, "delete")) {
                empty = lkg_value_new_map(lkg_value_source_mut(patch), lkg_value_line(patch),
                                          lkg_value_column(patch));
                *ret = empty ? lkg_value_over(empty, base) : NULL;
                return *ret ? 1 : -ENOMEM;
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
        for (size_t i = lkg_value_size(to); r >= 0 && i-- > 0;) {
                const char *key;
                size_t size;

                (void)lkg_map_at(to, i, &key, &size);
                if (!retains(list, key, size))
                        r = lkg_map_remove(to, key, size);
        }
        return r < 0 ? r : 0;
}

/* ---- merging ---- */

/* Put the result of a job under its key into the job below, or into @ret. */
static int finish(struct jobs *jobs, struct lkg_value **ret)
{
        struct strategic_job *job = &jobs->items[--jobs->n];
        struct lkg_value *result =
                job->to ? LKG_STEAL(job->to) : lkg_value_ref((struct lkg_value *)job->base);
        struct strategic_job *below;
        int r;

        if (jobs->n == 0) {
                *ret = result;
                return 0;
        }
        if (result == job->base) {
                lkg_value_unref(result);
                return 0;
        }
        below = &jobs->items[jobs->n - 1];
        r = lkg_map_set(below->to, job->key, job->key_size, result);
        return r < 0 ? r : 0;
}

/*
 * Begin to merge @patch into the map @base: directives first.
 * Return: 0; 1 if they decided the result, or if there is nothing to do.
 */
static int begin(struct lkg_strategic *ctx, struct strategic_job *job)
{
        int r = patch_directive(ctx, job->base, job->patch, &job->to);

        if (r != 0)
                return r;
        if (lkg_value_size(job->patch) == 0)
                return 1;
        r = own(job);
        if (r == 0)
                r = retain_keys(ctx, job->patch, job->to);
        for (size_t i = 0; r == 0 && !job->ordered && i < lkg_value_size(job->patch); i++) {
                const char *key;

                (void)lkg_map_at(job->patch, i, &key, NULL);
                job->ordered = has_prefix(key, LKG_DIRECTIVE_ORDER);
        }
        if (r == 0 && job->ordered)
                r = lkg_strategic_orders(ctx, job->patch, &job->type, job->to);
        return r;
}

static int begin_below(struct lkg_strategic *ctx, struct jobs *jobs, const struct lkg_value *base,
                       const struct lkg_value *patch, struct lkg_merge_type type, const char *key,
                       size_t size)
{
        struct strategic_job *job = push(jobs, base, patch);
        int r;

        if (!job)
                return -ENOMEM;
        job->type = type;
        job->key = key;
        job->key_size = size;
        r = begin(ctx, job);
        if (r > 0) {
                job->i = lkg_value_size(patch);
                r = 0;
        }
        return r;
}

/* Has begin() already handled this member? */
static bool is_handled(const struct strategic_job *job, const char *key, size_t size)
{
        return strcmp(key, LKG_DIRECTIVE_RETAIN) == 0 || has_prefix(key, LKG_DIRECTIVE_ORDER) ||
               (job->ordered && lkg_strategic_is_ordered(job->patch, key, size));
}

/*
 * @delete: the list belongs to `$deleteFromPrimitiveList`; else the list is atomic and copied verbatim, with
 * its nulls.
 */
static int merge_lists(struct lkg_strategic *ctx, struct strategic_job *job, const char *key, size_t size,
                       const struct lkg_value *value, const struct lkg_value *earlier, bool delete)
{
        struct lkg_value *left = NULL;
        int r = lkg_strategic_list_type(ctx, &job->type, key, size, value);

        if (r == 0 && !delete)
                left = lkg_value_ref((struct lkg_value *)value);
        else if (r == 0)
                r = lkg_strategic_delete(ctx, earlier, value, &left);
        return r < 0 ? r : put(job->to, key, size, left, earlier);
}

static int replace(struct lkg_strategic *ctx, struct strategic_job *job, const char *key, size_t size,
                   const struct lkg_value *value, const struct lkg_value *earlier)
{
        struct lkg_value *pruned = NULL;
        int r = prune(ctx, value, &pruned);

        if (r == 0 && pruned)
                return put(job->to, key, size, pruned, earlier);
        if (r == 0 && earlier)
                r = lkg_map_remove(job->to, key, size);
        return r < 0 ? r : 0;
}

/*
 * The keys of a map are sorted, so `$deleteFromPrimitiveList/f` comes before f (upstream takes either
 * first). On a value that is not a list, the directive acts like a member if the types are the same, else it does nothing.
 */
static int merge_member(struct lkg_strategic *ctx, struct jobs *jobs)
{
        struct strategic_job *job = &jobs->items[jobs->n - 1];
        const struct lkg_value *value, *earlier;
        struct lkg_merge_type type;
        const char *key;
        size_t size;
        bool delete;
        int r;

        value = lkg_map_at(job->patch, job->i++, &key, &size);
        if (is_handled(job, key, size))
                return 0;
        delete = has_prefix(key, LKG_DIRECTIVE_DELETE);
        if (delete) {
                const char *field = lkg_strategic_field(key, LKG_DIRECTIVE_DELETE);

                if (!field)
                        return lkg_strategic_refuse(ctx, value, "write $deleteFromPrimitiveList/FIELD");
                size -= (size_t)(field - key);
                key = field;
        }
        earlier = lkg_map_get_n(job->to, key, size);
        if (is_null(value)) {
                r = lkg_map_remove(job->to, key, size);
                return r < 0 ? r : 0;
        }
        if (delete &&(!earlier || !lkg_strategic_same_type(value, earlier)))
                return 0;
        if (is_map(value) && is_map(earlier)) {
                r = lkg_strategic_member(ctx, &job->type, key, size, value, &type);
                return r < 0 ? r : begin_below(ctx, jobs, earlier, value, type, key, size);
        }
        if (is_list(value) && is_list(earlier))
                return merge_lists(ctx, job, key, size, value, earlier, delete);
        return replace(ctx, job, key, size, value, earlier);
}

int lkg_merge_strategic_typed(const struct lkg_value *base, const struct lkg_value *patch,
                              const struct lkg_merge_type *type, struct lkg_report *report,
                              struct lkg_value **ret)
{
        static const struct lkg_merge_type any = { .class = LKG_MERGE_ANY };
        LKG_CLEANUP(lkg_value_unrefp) struct lkg_value *empty = lkg_value_new_map(NULL, 0, 0);
        struct lkg_strategic ctx = { .report = report, .typed = type != NULL };
        struct jobs jobs = { 0 };
        int r;

        if (!empty)
                return -ENOMEM;
        if (!is_map(patch) && !is_null(patch))
                return lkg_strategic_refuse(&ctx, patch, "a strategic merge patch must be a map");
        if (!is_map(base) && !is_null(base))
                return lkg_strategic_refuse(&ctx, base, "a strategic merge patch applies to a map only");
        r = begin_below(&ctx, &jobs, is_map(base) ? base : empty, is_map(patch) ? patch : empty,
                        type ? *type : any, NULL, 0);
        while (r == 0 && jobs.n > 0) {
                struct strategic_job *job = &jobs.items[jobs.n - 1];

                r = job->i == lkg_value_size(job->patch) ? finish(&jobs, ret) : merge_member(&ctx, &jobs);
        }
        while (jobs.n > 0)
                lkg_value_unref(jobs.items[--jobs.n].to);
        free(jobs.items);
        return r;
}

int lkg_merge_strategic(const struct lkg_value *base, const struct lkg_value *patch,
                        struct lkg_report *report, struct lkg_value **ret)
{
        return lkg_merge_strategic_typed(base, patch, NULL, report, ret);
}
