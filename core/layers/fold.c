/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The fold: documents in merge order, merged one after the other.
 *
 * Kept are the result, that of the base alone (the judge's start), and that of the layers below the one that
 * changed last: an administrator edits one file again and again, which costs the merges from there on. Any other
 * change costs one merge for each layer; no result per layer is kept, because a thousand of them would be a
 * thousand times the document.
 *
 * A broken layer is left out and the others are still merged: the result is not served, but shows all
 * mistakes at once.
 *
 * kind and apiVersion must equal the configured ones, else those of the base, else those of the first document that has
 * both.
 */
#include "layers.h"

#include <lkg/documents.h>

struct header {
        const char *kind, *api_version;
        const char *file;            /* the file in which the field was found, if it is not configured */
        const char *resembles;       /* what that looks like, if it is the document of no component */
        const struct lkg_value *doc; /* of that file */
};

/* Unique among all results of the process, across stacks. */
static unsigned last_cookie;

struct update {
        const struct lkg_stack_config *config;
        struct lkg_stack_stats *stats;
        struct header want;
        struct lkg_value *running; /* one reference; NULL before the first document */
        bool broken;               /* an earlier step failed */
        const char *lacks;         /* the file of the first layer that was left out; NULL = none */
};

static void step_deinit(struct lkg_fold_step *step)
{
        lkg_layer_unref(step->info.layer);
        lkg_report_deinit(&step->report);
}

void lkg_fold_deinit(struct lkg_fold *fold)
{
        for (size_t i = 0; i < fold->n_steps; i++)
                step_deinit(&fold->steps[i]);
        free(fold->steps);
        lkg_value_unref(fold->base);
        lkg_value_unref(fold->below);
        lkg_value_unref(fold->result);
        *fold = (struct lkg_fold){ 0 };
}

/* ---- header ---- */

static struct lkg_where where_of(const struct lkg_layer *layer, const struct lkg_value *value)
{
        return (struct lkg_where){ layer->file, value ? lkg_value_line(value) : 0,
                                   value ? lkg_value_column(value) : 0 };
}

static bool needs_header(const struct update *u, const struct lkg_layer *layer)
{
        switch (layer->role) {
        case LKG_LAYER_PATCH:
                return false; /* kubeadm's patches have no header */
        case LKG_LAYER_MANIFEST:
        case LKG_LAYER_INSTANCE:
                return !u->config->headerless_instance;
        case LKG_LAYER_BASE:
        case LKG_LAYER_REMOTE:
        case LKG_LAYER_DROPIN:
        case _LKG_LAYER_ROLE_MAX:
                break;
        }
        return true;
}

/* The file that determined a header field; NULL = it is configured, or not known yet. */
static const char *learned_from(const struct update *u, const char *field)
{
        bool kind = strcmp(field, "kind") == 0;

        return *(kind ? u->config->kind : u->config->api_version) ? NULL : u->want.file;
}

static void report_missing(const struct update *u, struct lkg_fold_step *step, const char *field,
                           const char *want)
{
        struct lkg_where where = where_of(step->info.layer, step->info.doc);
        const char *file = learned_from(u, field);

        if (want && *want)
                lkg_report_add(&step->report, LKG_ERROR, LKG_C_NO_HEADER, &where,
                               "%s is missing; add \"%s: %s\"%s%s", field, field, want,
                               file ? " as in " : "", file ? file : "");
        else
                lkg_report_add(&step->report, LKG_ERROR, LKG_C_NO_HEADER, &where,
                               "%s is missing; every layer states apiVersion and kind", field);
}

/* An empty one counts as missing (apimachinery: "Object 'kind' is missing"). */
static bool is_missing(const struct lkg_value *value)
{
        size_t size = 1;

        if (!value || lkg_value_type(value) == LKG_NULL)
                return true;
        if (lkg_value_type(value) == LKG_STRING)
                (void)lkg_value_text(value, &size);
        return size == 0;
}

enum header_state { HEADER_FINE, HEADER_MISSING, HEADER_WRONG }; /* from good to bad */

/* One of the two header fields. */
static enum header_state check_field(const struct update *u, struct lkg_fold_step *step, const char *field,
                                     const char *want)
{
        const struct lkg_value *value = lkg_map_get(step->info.doc, field);
        const char *file = learned_from(u, field);
        char quoted[2][5 * 64 + 8];
        struct lkg_where where;
        const char *text;
        size_t size;

        if (is_missing(value) && needs_header(u, step->info.layer)) {
                report_missing(u, step, field, want);
                return HEADER_MISSING;
        }
        if (!value || lkg_value_type(value) == LKG_NULL)
                return HEADER_FINE;
        where = where_of(step->info.layer, value);
        if (lkg_value_type(value) != LKG_STRING) {
                lkg_report_add(&step->report, LKG_ERROR, LKG_C_NO_HEADER, &where,
                               "%s is a %s; a string is wanted", field,
                               lkg_type_name(lkg_value_type(value)));
                return HEADER_WRONG;
        }
        text = lkg_value_text(value, &size);
        if (memchr(text, '\0', size)) { /* no such name exists, and it would be truncated */
                lkg_report_add(&step->report, LKG_ERROR, LKG_C_NO_HEADER, &where,
                               "%s is %s; a name without a NUL byte is wanted", field,
                               lkg_quote(text, size, quoted[0]));
                return HEADER_WRONG;
        }
        if (!want || !*want || strcmp(want, text) == 0)
                return HEADER_FINE;
        if (file && strncmp(want, text, strlen(want)) == 0) { /* that file is cut off, this one is sound */
                where = lkg_where_of(lkg_map_get(u->want.doc, field));
                lkg_report_add(&step->report, LKG_ERROR, LKG_C_OTHER_HEADER, &where,
                               "%s is %s here and %s in %s; this file seems to be cut off, so restore it",
                               field, lkg_quote(want, strlen(want), quoted[1]),
                               lkg_quote(text, size, quoted[0]), step->info.file);
                return HEADER_WRONG;
        }
        lkg_report_add(&step->report, LKG_ERROR, LKG_C_OTHER_HEADER, &where,
                       "%s is %s here and %s %s%s; all layers of a component need the same", field,
                       lkg_quote(text, size, quoted[0]), lkg_quote(want, strlen(want), quoted[1]),
                       file ? "in " : "by configuration", file ? file : "");
        return HEADER_WRONG;
}

/* The first layer may be the wrong one of the two. */
static void say_what_it_is(const struct update *u, struct lkg_fold_step *step, size_t finding)
{
        LKG_CLEANUP(lkg_freep) char *words = NULL;

        if (u->want.resembles && !step->info.layer->resembles)
                words = lkg_format("%s: %s", u->want.file, u->want.resembles);
        else if (!step->info.layer->resembles)
                words = lkg_resembles(NULL, 0, 0, step->info.doc);
        lkg_report_add_words(&step->report, finding, words ? words : step->info.layer->resembles);
}

static enum header_state check_header(const struct update *u, struct lkg_fold_step *step)
{
        size_t n = step->report.n_findings;
        enum header_state kind, version;

        if (step->info.type == LKG_PATCH_JSON || step->info.type == LKG_PATCH_BESIDE)
                return HEADER_FINE; /* a list of operations; judged alone */
        version = check_field(u, step, "apiVersion", u->want.api_version);
        kind = check_field(u, step, "kind", u->want.kind);
        if (step->report.n_findings > n && step->report.findings[n].file &&
            strcmp(step->report.findings[n].file, step->info.file) == 0) /* not about one that is cut off */
                say_what_it_is(u, step, n);
        return kind > version ? kind : version;
}

static void learn_header(struct update *u, const struct lkg_fold_step *step)
{
        const struct lkg_value *doc = step->info.doc;

        if (!doc || lkg_value_type(doc) != LKG_MAP || (*u->config->kind && *u->config->api_version))
                return;
        if (u->want.kind && *u->want.kind && u->want.api_version && *u->want.api_version)
                return;
        if (!lkg_map_get_string(doc, "kind") || !lkg_map_get_string(doc, "apiVersion"))
                return;
        if (!*u->config->kind)
                u->want.kind = lkg_map_get_string(doc, "kind");
        if (!*u->config->api_version)
                u->want.api_version = lkg_map_get_string(doc, "apiVersion");
        u->want.file = step->info.file;
        u->want.resembles = step->info.layer->resembles;
        u->want.doc = doc;
}

/* ---- merging ---- */

/*
 * A directive or an operation can remove or change the header. Then the result does not belong to this
 * component.
 */
static int keep_header(const struct lkg_layer_info *info, const struct lkg_value *running,
                       struct lkg_report *report, struct lkg_value **merged)
{
        LKG_CLEANUP(lkg_value_unrefp) struct lkg_value *copy = NULL;
        struct lkg_where where = { info->file, lkg_value_line(info->doc), lkg_value_column(info->doc) };

        if (lkg_value_type(*merged) != LKG_MAP) {
                lkg_report_add(report, LKG_ERROR, LKG_C_NOT_A_MAP, &where,
                               "after this patch the document is a %s; a map of fields is wanted",
                               lkg_type_name(lkg_value_type(*merged)));
                return -EBADMSG;
        }
        copy = lkg_value_clone_shallow(*merged);
        for (size_t i = 0; i < LKG_HEADER_FIELDS; i++) {
                struct lkg_value *before = lkg_map_get(running, lkg_header_fields[i]);
                struct lkg_value *after = lkg_map_get(copy, lkg_header_fields[i]);

                if (!before || before == after)
                        continue;
                if (!after || !lkg_value_equal(before, after)) {
                        lkg_report_add(report, LKG_ERROR, LKG_C_HEADER_LOST, &where,
                                       "the patch %s %s; a layer keeps both apiVersion and kind",
                                       after ? "changes" : "removes", lkg_header_fields[i]);
                        return -EBADMSG;
                }
                (void)lkg_map_set(copy, lkg_header_fields[i], strlen(lkg_header_fields[i]),
                                  lkg_value_ref(before));
        }
        lkg_value_unref(*merged);
        *merged = LKG_STEAL(copy);
        return 0;
}

/* The very first document: its null members have no meaning, and directives have nothing to act on. */
static int merge_first(const struct lkg_layer_info *info, struct lkg_report *report, struct lkg_value **ret)
{
        LKG_CLEANUP(lkg_value_unrefp) struct lkg_value *empty = NULL;

        if (info->type == LKG_PATCH_BASE) {
                *ret = lkg_value_ref((struct lkg_value *)info->doc);
                return 0;
        }
        empty = lkg_value_new_map(NULL, 0, 0);
        if (info->type == LKG_PATCH_JSON)
                return lkg_patch_json(empty, info->doc, report, ret);
        if (info->type == LKG_PATCH_STRATEGIC)
                return lkg_merge_strategic(empty, info->doc, report, ret);
        *ret = lkg_merge_json(empty, info->doc);
        return 0;
}

static int put_beside(const struct lkg_layer_info *info, struct lkg_value **running)
{
        struct lkg_value *all = *running;

        if (!all || !lkg_value_is_own(all)) {
                all = all ? lkg_value_clone_shallow(all) : lkg_value_new_map(NULL, 0, 0);
                lkg_value_unref(*running);
        }
        (void)lkg_map_set(all, info->name, strlen(info->name), lkg_value_ref((struct lkg_value *)info->doc));
        *running = all;
        return 0;
}

/*
 * One layer over *@running (NULL: it is the first), whose reference is taken over.
 * Return: 0; -EBADMSG: @report says why, and *@running is as it was.
 */
static int merge(const struct lkg_layer_info *info, struct lkg_report *report, struct lkg_value **running)
{
        LKG_CLEANUP(lkg_value_unrefp) struct lkg_value *patch = NULL;
        LKG_CLEANUP(lkg_value_unrefp) struct lkg_value *merged = NULL;
        int r;

        if (info->type == LKG_PATCH_BESIDE)
                return put_beside(info, running);
        if (!*running)
                return merge_first(info, report, running);
        if (info->type == LKG_PATCH_MERGE) {
                patch = lkg_without_header(info->doc, *running);
                *running = lkg_merge_json_into(*running, patch);
                return 0;
        }
        r = info->type == LKG_PATCH_JSON ? lkg_patch_json(*running, info->doc, report, &merged)
                                         : lkg_merge_strategic(*running, info->doc, report, &merged);
        if (r == 0)
                r = keep_header(info, *running, report, &merged);
        if (r < 0)
                return r;
        lkg_value_unref(*running);
        *running = LKG_STEAL(merged);
        return 0;
}

/* The same for a layer that was merged before: what there is to say has been said. */
static void merge_again(const struct lkg_layer_info *info, struct lkg_value **running)
{
        LKG_CLEANUP(lkg_report_deinit) struct lkg_report report = LKG_REPORT_INIT;

        if (!info->left_out && !info->idle)
                (void)merge(info, &report, running);
}

static void report_kubeconfig(const struct update *u, struct lkg_fold_step *step)
{
        struct lkg_where where = { step->info.file, 0, 0 };

        if (step->info.role == LKG_LAYER_BASE && u->config->base_is_view_name) {
                lkg_report_add(
                        &step->report, LKG_ERROR, LKG_C_NAME_TAKEN, &where,
                        "this is a kubeconfig (kubeadm writes one here), so the name is taken; let the "
                        "merged file have another one: set 'file: kubelet-config.yaml' for component %s",
                        u->config->component);
                return;
        }
        lkg_report_add(
                &step->report, LKG_ERROR, LKG_C_KUBECONFIG, &where,
                "a kubeconfig is not a configuration layer and is not read; put a document of the "
                "component's kind here (the component's --kubeconfig names the file of a kubeconfig)");
}

/* Can it be merged, at least for findings? */
static bool can_merge(const struct update *u, const struct lkg_fold_step *step, enum header_state header)
{
        if (!step->info.doc || header == HEADER_WRONG)
                return false;
        /* The missing layer may contain the field that a patch changes. */
        return u->running || step->info.role != LKG_LAYER_PATCH || !u->lacks;
}

/*
 * A finding about a patch may disappear with the layer that was left out, so it mentions that one is
 * missing.
 */
static int merge_what_is_there(struct update *u, struct lkg_fold_step *step)
{
        struct lkg_report kept = step->report;
        int r;

        u->stats->n_merges++;
        if (!u->lacks)
                return merge(&step->info, &step->report, &u->running);
        step->report = (struct lkg_report)LKG_REPORT_INIT;
        r = merge(&step->info, &step->report, &u->running);
        for (size_t i = 0; i < step->report.n_findings; i++)
                lkg_report_add_incomplete(&kept, &step->report.findings[i], u->lacks);
        lkg_report_deinit(&step->report);
        step->report = kept;
        return r;
}

static void run_step(struct update *u, struct lkg_fold_step *step)
{
        enum header_state header = HEADER_FINE;
        int r = -EBADMSG;

        step->info.cookie = ++last_cookie;
        if (step->info.layer->kubeconfig)
                report_kubeconfig(u, step);
        if (step->doc == 0 || step->doc == SIZE_MAX)
                lkg_report_append(&step->report, &step->info.layer->report);
        if (step->info.idle) {
                step->info.whole = !u->broken;
                return;
        }
        if (step->info.doc)
                header = check_header(u, step);
        if (can_merge(u, step, header))
                r = merge_what_is_there(u, step);
        step->info.left_out = r < 0;
        step->info.whole = r == 0 && !u->broken && header == HEADER_FINE &&
                           step->info.layer->report.n_severity[LKG_ERROR] == 0;
}

/* ---- the sequence ---- */

static size_t count_steps(struct lkg_layer **layers, size_t n_layers)
{
        size_t n = 0;

        for (size_t i = 0; i < n_layers; i++)
                n += layers[i]->n_docs ? layers[i]->n_docs : 1;
        return n;
}

/* @doc: SIZE_MAX if it has none */
static struct lkg_fold_step step_of(struct lkg_layer *layer, size_t doc)
{
        return (struct lkg_fold_step){
                .doc = doc,
                .info = { .layer = lkg_layer_ref(layer),
                          .role = layer->role,
                          .type = layer->type,
                          .name = layer->name,
                          .file = layer->file,
                          .beside = layer->role == LKG_LAYER_REMOTE ? layer->beside : layer->file,
                          .doc = doc < layer->n_docs ? layer->docs[doc] : NULL,
                          /* a kubeadm patch file without a patch: kubeadm reads and ignores it */
                          .idle = layer->role == LKG_LAYER_PATCH && layer->n_docs == 0 &&
                                  !layer->kubeconfig && layer->report.n_severity[LKG_ERROR] == 0 },
        };
}

static struct lkg_fold_step *lay_out(struct lkg_layer **layers, size_t n_layers, size_t n_steps)
{
        struct lkg_fold_step *steps = lkg_must(calloc(n_steps + 1, sizeof(*steps)));
        size_t n = 0;

        for (size_t i = 0; i < n_layers; i++) {
                if (layers[i]->n_docs == 0)
                        steps[n++] = step_of(layers[i], SIZE_MAX);
                for (size_t d = 0; d < layers[i]->n_docs; d++)
                        steps[n++] = step_of(layers[i], d);
        }
        return steps;
}

/* How many steps are as they were? */
static size_t count_same(const struct lkg_fold_step *steps, size_t n, const struct lkg_fold *old)
{
        size_t i = 0;

        while (i < n && i < old->n_steps && steps[i].info.layer == old->steps[i].info.layer &&
               steps[i].doc == old->steps[i].doc)
                i++;
        return i;
}

/* What is known of a step is kept with it; its layer is the same. */
static void move_step(struct lkg_fold_step *to, struct lkg_fold_step *from)
{
        struct lkg_layer *layer = to->info.layer;

        *to = *from;
        from->info.layer = layer;
        from->report = (struct lkg_report)LKG_REPORT_INIT;
}

/*
 * The nearest result that is kept below step @n; nothing if the base has changed, because its result is needed,
 * too. Return: the number of its steps.
 */
static size_t start(const struct lkg_fold *old, size_t n, struct lkg_value **ret)
{
        bool base = old->n_base <= n, below = base && old->n_below <= n && old->n_below > old->n_base;

        *ret = lkg_value_ref(below ? old->below : base ? old->base : NULL);
        return below ? old->n_below : base ? old->n_base : 0;
}

/* Merge one more step; the first @same ones are known. */
static void add_step(struct update *u, struct lkg_fold *fold, size_t i, size_t same, size_t merged)
{
        struct lkg_fold_step *step = &fold->steps[i];

        if (i == same) {
                fold->below = lkg_value_ref(u->running);
                fold->n_below = i;
        }
        learn_header(u, step);
        if (i >= same)
                run_step(u, step);
        else if (i >= merged)
                merge_again(&step->info, &u->running);
        if (step->info.left_out && !u->lacks)
                u->lacks = step->info.file;
        u->broken |= !step->info.whole;
        if (i >= merged && lkg_layer_is_base(step->info.role)) {
                lkg_value_unref(fold->base);
                fold->base = lkg_value_ref(u->running);
                fold->n_base = i + 1;
        }
}

void lkg_fold_update(struct lkg_fold *fold, const struct lkg_stack_config *config, struct lkg_layer **layers,
                     size_t n_layers, struct lkg_stack_stats *stats)
{
        struct lkg_fold fresh = { 0 };
        struct update u = { .config = config, .stats = stats };
        size_t same, merged;

        u.want = (struct header){ config->kind, config->api_version, NULL };
        fresh.n_steps = count_steps(layers, n_layers);
        fresh.steps = lay_out(layers, n_layers, fresh.n_steps);
        same = count_same(fresh.steps, fresh.n_steps, fold);
        if (fold->steps && same == fresh.n_steps && same == fold->n_steps) {
                lkg_fold_deinit(&fresh);
                return;
        }
        merged = start(fold, same, &u.running);
        if (fold->n_base <= same) {
                fresh.base = lkg_value_ref(fold->base);
                fresh.n_base = fold->n_base;
        }
        for (size_t i = 0; i < same; i++)
                move_step(&fresh.steps[i], &fold->steps[i]);
        lkg_fold_deinit(fold); /* before new results are made */
        for (size_t i = 0; i < fresh.n_steps; i++)
                add_step(&u, &fresh, i, same, merged);
        fresh.result = u.running;
        if (same == fresh.n_steps) { /* the last ones were removed */
                fresh.below = lkg_value_ref(fresh.result);
                fresh.n_below = same;
        }
        *fold = fresh;
}

/* ---- results of a candidate that are not kept ---- */

struct lkg_value *lkg_candidate_partial(const struct lkg_candidate *candidate, size_t i)
{
        struct lkg_again *again = &((struct lkg_candidate *)candidate)->again; /* one thread */

        if (again->n > i + 1) {
                again->merged = lkg_value_unref(again->merged);
                again->n = 0;
        }
        while (again->n <= i)
                merge_again(&candidate->layers[again->n++], &again->merged);
        return lkg_value_ref(again->merged);
}

struct lkg_value *lkg_candidate_merged(const struct lkg_candidate *candidate, size_t i)
{
        return candidate->layers[i].whole ? lkg_candidate_partial(candidate, i) : NULL;
}

bool lkg_candidate_same(const struct lkg_candidate *a, const struct lkg_candidate *b)
{
        if (!a || a->state != b->state || a->n_layers != b->n_layers || a->has_base != b->has_base ||
            a->has_dropin_dir != b->has_dropin_dir || a->format != b->format)
                return false;
        for (size_t i = 0; i < a->n_layers; i++)
                if (a->layers[i].cookie != b->layers[i].cookie)
                        return false;
        return lkg_report_equal(&a->report, &b->report);
}
