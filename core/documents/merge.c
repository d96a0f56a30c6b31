/* SPDX-License-Identifier: Apache-2.0 */
/*
 * JSON merge patch as gopkg.in/evanphx/json-patch.v4 applies it, which differs from RFC 7386 in what it does
 * with null inside lists: null members of objects in a list are dropped, unless the list replaces an object;
 * null items stay.
 *
 * Persistent: the result shares unchanged values with base and patch, so the cost depends on the patch
 * alone. No recursion: maps that are being merged or pruned wait on an explicit stack.
 */

#include <lkg/base.h>
#include <lkg/documents.h>
#include <lkg/tree.h>

const char *const lkg_header_fields[LKG_HEADER_FIELDS] = { "apiVersion", "kind" };

/* A map or list under construction: the rest of @patch still goes into @to. */
struct merge_job {
        const struct lkg_value *base; /* the map underneath; NULL = @patch is only pruned of nulls */
        const struct lkg_value *patch;
        /* owned; NULL while nothing differs from the base (or the patch, when pruning) */
        struct lkg_value *to;
        size_t i;
};

struct jobs {
        struct merge_job *items;
        size_t n, allocated;
};

static int jobs_push(struct jobs *jobs, const struct lkg_value *base, const struct lkg_value *patch)
{
        if (LKG_RESERVE(jobs->items, jobs->n, jobs->allocated) < 0)
                return -ENOMEM;
        jobs->items[jobs->n++] = (struct merge_job){ .base = base, .patch = patch };
        return 0;
}

static void jobs_deinit(struct jobs *jobs)
{
        while (jobs->n > 0)
                lkg_value_unref(jobs->items[--jobs->n].to);
        free(jobs->items);
}

/* Give the job its own copy of the result before changing it. */
static int job_own(struct merge_job *job)
{
        const struct lkg_value *from = job->base ? job->base : job->patch;

        if (!job->to)
                job->to = lkg_value_clone_shallow(from);
        return job->to ? 0 : -ENOMEM;
}

static const struct lkg_value *job_member(const struct merge_job *job, const char **key, size_t *size)
{
        if (lkg_value_type(job->patch) == LKG_LIST)
                return lkg_list_get(job->patch, job->i);
        return lkg_map_at(job->patch, job->i, key, size);
}

static bool is_collection(const struct lkg_value *value)
{
        return lkg_value_size(value) > 0;
}

/*
 * Put the result for the current member of the patch. Takes over @result; @shadow is the value it replaces.
 */
static int job_put(struct merge_job *job, struct lkg_value *result, const struct lkg_value *shadow)
{
        LKG_CLEANUP(lkg_value_unrefp) struct lkg_value *value = result;
        int r = job_own(job);

        if (r < 0)
                return r;
        if (shadow) {
                struct lkg_value *over = lkg_value_over(value, shadow);

                if (!over)
                        return -ENOMEM;
                lkg_value_unref(value);
                value = over;
        }
        if (lkg_value_type(job->to) == LKG_LIST) {
                lkg_list_set(job->to, job->i, LKG_STEAL(value));
                return 0;
        }
        r = lkg_map_set_like(job->to, job->patch, job->i, LKG_STEAL(value));
        return r < 0 ? r : 0;
}

/*
 * Must null members be dropped before this value is used? Lists are searched unless they replace a map.
 */
static bool must_prune(const struct lkg_value *value, const struct lkg_value *earlier)
{
        if (!is_collection(value))
                return false;
        return !(lkg_value_type(value) == LKG_LIST && earlier && lkg_value_type(earlier) == LKG_MAP);
}

/*
 * Merge one member of a patch into a map.
 * Return: 1 if another job was put on the stack first.
 */
static int merge_member(struct jobs *jobs)
{
        struct merge_job *job = &jobs->items[jobs->n - 1];
        const struct lkg_value *value, *earlier;
        const char *key = NULL;
        size_t size = 0;
        int r;

        value = job_member(job, &key, &size);
        earlier = lkg_map_get_n(job->base, key, size);
        if (lkg_value_type(value) == LKG_NULL) {
                if (!earlier)
                        return 0;
                r = job_own(job);
                if (r == 0)
                        r = lkg_map_remove(job->to, key, size);
                return r < 0 ? r : 0;
        }
        if (earlier && lkg_value_type(earlier) == LKG_MAP && lkg_value_type(value) == LKG_MAP) {
                if (lkg_value_size(value) == 0)
                        return 0; /* an empty map changes nothing */
                r = jobs_push(jobs, earlier, value);
                return r < 0 ? r : 1;
        }
        if (must_prune(value, earlier)) {
                r = jobs_push(jobs, NULL, value);
                return r < 0 ? r : 1;
        }
        return job_put(job, lkg_value_ref((struct lkg_value *)value), earlier);
}

/* Copy one member of a value, without the null members of maps. */
static int prune_member(struct jobs *jobs)
{
        struct merge_job *job = &jobs->items[jobs->n - 1];
        const struct lkg_value *value;
        const char *key = NULL;
        size_t size = 0;
        int r;

        value = job_member(job, &key, &size);
        if (lkg_value_type(value) == LKG_NULL && lkg_value_type(job->patch) == LKG_MAP) {
                r = job_own(job);
                if (r == 0)
                        r = lkg_map_remove(job->to, key, size);
                return r < 0 ? r : 0;
        }
        if (!is_collection(value))
                return 0;
        r = jobs_push(jobs, NULL, value);
        return r < 0 ? r : 1;
}

/* Put the finished result of the topmost job into the one below it, or into @ret. */
static int finish(struct jobs *jobs, struct lkg_value **ret)
{
        struct merge_job done = jobs->items[--jobs->n], *below;
        const struct lkg_value *earlier = NULL;
        const char *key = NULL;
        size_t size = 0;
        int r = 0;

        if (jobs->n == 0) {
                *ret = done.to ? done.to
                               : lkg_value_ref((struct lkg_value *)(done.base ? done.base : done.patch));
                return 0;
        }
        below = &jobs->items[jobs->n - 1];
        (void)job_member(below, &key, &size);
        if (below->base && !done.base)
                earlier = lkg_map_get_n(below->base, key, size); /* replaced, not merged into */
        if (done.to)
                r = job_put(below, done.to, earlier);
        else if (below->base && !done.base)
                r = job_put(below, lkg_value_ref((struct lkg_value *)done.patch), earlier);
        below->i++;
        return r;
}

static int run(struct jobs *jobs, struct lkg_value **ret)
{
        int r = 0;

        while (r == 0) {
                struct merge_job *job = &jobs->items[jobs->n - 1];

                if (job->i == lkg_value_size(job->patch)) {
                        bool last = jobs->n == 1;

                        r = finish(jobs, ret);
                        if (last)
                                return r;
                        continue;
                }
                r = job->base ? merge_member(jobs) : prune_member(jobs);
                if (r == 0)
                        jobs->items[jobs->n - 1].i++;
                else if (r > 0)
                        r = 0; /* the member's own job comes first, and finish() moves on */
        }
        return r;
}

int lkg_merge_json(const struct lkg_value *base, const struct lkg_value *patch, struct lkg_value **ret)
{
        bool into = base && lkg_value_type(base) == LKG_MAP && lkg_value_type(patch) == LKG_MAP;
        LKG_CLEANUP(lkg_value_unrefp) struct lkg_value *result = NULL;
        struct jobs jobs = { 0 };
        int r;

        if (!into && !must_prune(patch, base)) {
                result = lkg_value_ref((struct lkg_value *)patch);
                r = 0;
        } else {
                r = jobs_push(&jobs, into ? base : NULL, patch);
                if (r == 0)
                        r = run(&jobs, &result);
                jobs_deinit(&jobs);
        }
        if (r < 0)
                return r;
        if (!into && base) { /* replaced as a whole */
                *ret = lkg_value_over(result, base);
                return *ret ? 0 : -ENOMEM;
        }
        *ret = LKG_STEAL(result);
        return 0;
}

int lkg_merge_json_into(struct lkg_value **base, const struct lkg_value *patch)
{
        LKG_CLEANUP(lkg_value_unrefp) struct lkg_value *below = LKG_STEAL(*base);
        struct jobs jobs = { 0 };
        int r;

        if (lkg_value_type(below) != LKG_MAP || lkg_value_type(patch) != LKG_MAP)
                return lkg_merge_json(below, patch, base);
        r = jobs_push(&jobs, below, patch);
        if (r == 0 && lkg_value_is_own(below))
                jobs.items[0].to = LKG_STEAL(below); /* no member is looked at again after its own turn */
        if (r == 0)
                r = run(&jobs, base);
        jobs_deinit(&jobs);
        return r;
}

int lkg_without_header(const struct lkg_value *doc, const struct lkg_value *running, struct lkg_value **ret)
{
        LKG_CLEANUP(lkg_value_unrefp) struct lkg_value *patch = lkg_value_clone_shallow(doc);
        int r = patch ? 0 : -ENOMEM;

        for (size_t i = 0; r >= 0 && i < LKG_HEADER_FIELDS; i++)
                if (!running || lkg_map_get(running, lkg_header_fields[i]))
                        r = lkg_map_remove(patch, lkg_header_fields[i], strlen(lkg_header_fields[i]));
        if (r < 0)
                return r;
        *ret = LKG_STEAL(patch);
        return 0;
}

static int refuse(struct lkg_report *report, const struct lkg_value *value, const char *what,
                  const char *want)
{
        const struct lkg_source *source = lkg_value_source(value);
        struct lkg_where where = { source ? source->file : NULL, lkg_value_line(value),
                                   lkg_value_column(value) };

        lkg_report_add(report, LKG_ERROR, LKG_C_NOT_A_MAP, &where, "the %s is a %s, want %s", what,
                       lkg_type_name(lkg_value_type(value)), want);
        return -EBADMSG;
}

int lkg_merge_json_patch(const struct lkg_value *target, const struct lkg_value *patch,
                         struct lkg_report *report, struct lkg_value **ret)
{
        enum lkg_type type = lkg_value_type(patch);

        if (lkg_value_type(target) == LKG_NULL)
                return refuse(report, target, "target", "a document");
        if (type != LKG_MAP && type != LKG_LIST)
                return refuse(report, patch, "patch", "a map or a list");
        /*
         * If the whole patch is a list, null members are dropped whatever it replaces; inside a document
         * they are not.
         */
        return lkg_merge_json(type == LKG_LIST ? NULL : target, patch, ret);
}
