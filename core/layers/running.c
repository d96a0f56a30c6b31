/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Intermediate results that are not kept. The results after each layer share equal parts, so those of ten
 * thousand small layers are small. A thousand layers with a thousand fields each, with interleaved names,
 * would copy almost the whole document each time: 1.2 GB. So expensive results are kept up to a limit;
 * beyond it only the last one is kept, and others are merged again on demand.
 *
 * Only drop-ins are numerous, so only their results are dropped: merging one again needs no report and no other rule.
 */
#include "layers.h"

#include <lkg/merge.h>

/* Bytes of a result that are not shared: a few changes in a document of typical size. */
#define CHEAP 2048u
/* Bytes of expensive results that are kept anyway. */
#define KEPT_MAX (2u << 20)

const char *const lkg_header_fields[LKG_HEADER_FIELDS] = { "apiVersion", "kind" };

int lkg_without_header(const struct lkg_value *doc, const struct lkg_value *running, struct lkg_value **ret)
{
        LKG_CLEANUP(lkg_value_unrefp) struct lkg_value *patch = lkg_value_clone_shallow(doc);

        if (!patch)
                return -ENOMEM;
        for (size_t i = 0; i < LKG_HEADER_FIELDS; i++) {
                int r;

                if (!lkg_map_get(running, lkg_header_fields[i]))
                        continue;
                r = lkg_map_remove(patch, lkg_header_fields[i], strlen(lkg_header_fields[i]));
                if (r < 0)
                        return r;
        }
        *ret = LKG_STEAL(patch);
        return 0;
}

/* The very first document: its null members have no meaning. */
static int add_first(struct lkg_value **running, const struct lkg_value *doc)
{
        LKG_CLEANUP(lkg_value_unrefp) struct lkg_value *empty = lkg_value_new_map(NULL, 0, 0);

        return empty ? lkg_merge_json(empty, doc, running) : -ENOMEM;
}

int lkg_running_add(struct lkg_value **running, const struct lkg_value *doc)
{
        LKG_CLEANUP(lkg_value_unrefp) struct lkg_value *patch = NULL;
        int r;

        if (!*running)
                return add_first(running, doc);
        r = lkg_without_header(doc, *running, &patch);
        return r < 0 ? r : lkg_merge_json_into(running, patch);
}

/* ---- of the fold ---- */

static bool may_be_dropped(const struct lkg_fold_step *step)
{
        return step->layer->role == LKG_LAYER_DROPIN && step->layer->type == LKG_PATCH_MERGE && step->merged;
}

void lkg_fold_step_settle(struct lkg_fold_step *step, size_t next_cost, size_t *kept)
{
        size_t cost = step->cost > next_cost ? step->cost : next_cost;

        if (!may_be_dropped(step) || cost <= CHEAP)
                return;
        if (*kept + cost <= KEPT_MAX) {
                *kept += cost;
                return;
        }
        step->merged = lkg_value_unref(step->merged);
        step->dropped = true;
}

int lkg_steps_running(const struct lkg_fold_step *steps, size_t n, struct lkg_value **ret)
{
        LKG_CLEANUP(lkg_value_unrefp) struct lkg_value *running = NULL;
        size_t i = n;

        while (i > 0 && steps[i - 1].dropped)
                i--;
        if (i > 0)
                running = lkg_value_ref(steps[i - 1].merged);
        for (; i < n; i++) {
                int r = steps[i].left_out ? 0
                                          : lkg_running_add(&running, steps[i].layer->docs[steps[i].doc]);

                if (r < 0)
                        return r;
        }
        *ret = LKG_STEAL(running);
        return 0;
}

/* ---- of a candidate ---- */

int lkg_candidate_partial(const struct lkg_candidate *candidate, size_t i, struct lkg_value **ret)
{
        struct lkg_again *again = &((struct lkg_candidate *)candidate)->again; /* one thread */
        const struct lkg_layer_info *layers = candidate->layers;
        size_t from = i + 1; /* number of layers in the result to start from */
        int r = 0;

        if (!layers[i].dropped) {
                *ret = lkg_value_ref((struct lkg_value *)layers[i].partial);
                return 0;
        }
        while (from > 0 && layers[from - 1].dropped && from != again->n)
                from--;
        if (from == 0 || from != again->n) {
                lkg_value_unref(again->merged);
                again->merged =
                        from > 0 ? lkg_value_ref((struct lkg_value *)layers[from - 1].partial) : NULL;
        }
        for (; r == 0 && from <= i; from++)
                if (!layers[from].left_out)
                        r = lkg_running_add(&again->merged, layers[from].doc);
        again->n = r == 0 ? i + 1 : 0;
        if (r < 0)
                again->merged = lkg_value_unref(again->merged);
        *ret = lkg_value_ref(again->merged);
        return r;
}

int lkg_candidate_merged(const struct lkg_candidate *candidate, size_t i, struct lkg_value **ret)
{
        *ret = NULL;
        return candidate->layers[i].whole ? lkg_candidate_partial(candidate, i, ret) : 0;
}

/* A result that was not kept is a new object when it is merged again; then the cookie decides. */
static bool same_layer(const struct lkg_layer_info *a, const struct lkg_layer_info *b)
{
        return a->doc == b->doc && a->partial == b->partial && a->whole == b->whole && a->file == b->file &&
               a->dropped == b->dropped && (!a->dropped || a->cookie == b->cookie);
}

bool lkg_candidate_same(const struct lkg_candidate *a, const struct lkg_candidate *b)
{
        if (!a || a->state != b->state || a->n_layers != b->n_layers || a->has_base != b->has_base ||
            a->has_dropin_dir != b->has_dropin_dir || a->format != b->format || a->doc != b->doc)
                return false;
        for (size_t i = 0; i < a->n_layers; i++)
                if (!same_layer(&a->layers[i], &b->layers[i]))
                        return false;
        return lkg_report_equal(&a->report, &b->report);
}
