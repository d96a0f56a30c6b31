/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the layers come to over a base: the base file, or a document in memory that replaces it (a ConfigMap).
 *
 * A few of these merges are remembered, because a component has several possible bases at the same time (the local one, the
 * followed one, the last known good, the one that is tried): to ask for one again costs a look-up, and after a change of a
 * file each is merged and judged again only when it is asked for. A merge that comes to the same returns the candidate of before.
 */
#include "layers.h"

#include <lkg/base.h>
#include <lkg/documents.h>

#define NAMED_MAX 16u /* layers in one message */

/* A merge that is being made. */
struct making {
        struct lkg_stack *stack;
        struct lkg_merge *merge;
        struct lkg_layer **items; /* its layers, in merge order; borrowed */
        size_t n;
        bool has_base;
};

/* ---- candidates ---- */

struct lkg_candidate *lkg_candidate_ref(struct lkg_candidate *candidate)
{
        if (candidate)
                candidate->refs++;
        return candidate;
}

struct lkg_candidate *lkg_candidate_unref(struct lkg_candidate *candidate)
{
        if (!candidate || --candidate->refs > 0)
                return NULL;
        for (size_t i = 0; i < candidate->n_layers; i++)
                lkg_layer_unref(candidate->layers[i].layer);
        free(candidate->layers);
        free(candidate->without);
        free(candidate->text);
        lkg_value_unref(candidate->again.merged);
        lkg_value_unref(candidate->base);
        lkg_value_unref(candidate->merged);
        lkg_value_unref(candidate->doc);
        lkg_value_unref(candidate->effective);
        lkg_value_unref(candidate->texts);
        lkg_report_deinit(&candidate->report);
        free(candidate);
        return NULL;
}

/* The merge of all layers; NULL: there are none, one is broken, or they are all empty. */
static struct lkg_value *merged_of(const struct lkg_fold *fold)
{
        const struct lkg_fold_step *last = fold->n_steps ? &fold->steps[fold->n_steps - 1] : NULL;

        return last && last->info.whole ? fold->result : NULL;
}

static bool is_name_taken(const struct making *m)
{
        for (size_t i = 0; i < m->n; i++)
                if (m->items[i]->role == LKG_LAYER_BASE && m->items[i]->kubeconfig)
                        return m->stack->config.base_is_view_name;
        return false;
}

/* What the walk said about @role; nothing about a base file that is replaced. */
static const struct lkg_report *report_of(const struct making *m, enum lkg_layer_role role)
{
        static const struct lkg_report nothing = LKG_REPORT_INIT;

        return role == LKG_LAYER_BASE && m->merge->remote ? &nothing : &m->stack->found.reports[role];
}

/* Patches and a header-less instance file without a document that they change: no component could load the result. */
static void report_headless(struct lkg_candidate *candidate, const struct making *m)
{
        const struct lkg_value *merged = merged_of(&m->merge->fold);

        for (size_t i = 0; merged && i < LKG_HEADER_FIELDS; i++)
                if (!lkg_map_get(merged, lkg_header_fields[i]))
                        lkg_report_add(
                                &candidate->report, LKG_ERROR, LKG_C_NO_HEADER, NULL,
                                "%s is said by no layer of %s: patches alone are no document; add a base",
                                lkg_header_fields[i], m->stack->config.component);
}

static void append_steps(struct lkg_candidate *candidate, const struct lkg_fold *fold,
                         enum lkg_layer_role role)
{
        for (size_t i = 0; i < fold->n_steps; i++)
                if (fold->steps[i].info.role == role)
                        lkg_report_append(&candidate->report, &fold->steps[i].report);
}

static void fill_report(struct lkg_candidate *candidate, const struct making *m)
{
        static const enum lkg_layer_role order[] = {
                LKG_LAYER_BASE,   LKG_LAYER_REMOTE,   LKG_LAYER_PATCH,
                LKG_LAYER_DROPIN, LKG_LAYER_INSTANCE, LKG_LAYER_MANIFEST
        };
        const struct lkg_stack_config *config = &m->stack->config;

        if (m->merge->refused)
                lkg_report_add(&candidate->report, LKG_ERROR, LKG_C_POISON, NULL, "%s", m->merge->refused);
        for (size_t i = 0; i < LKG_ARRAY_SIZE(order); i++) {
                lkg_report_append(&candidate->report, report_of(m, order[i]));
                append_steps(candidate, &m->merge->fold, order[i]);
        }
        if (config->manifests)
                return;
        report_headless(candidate, m);
        if (m->n > 0 && !m->has_base && !*config->base_wanted)
                lkg_report_add(&candidate->report, *config->base ? LKG_WARNING : LKG_NOTE, LKG_C_NO_BASE,
                               NULL, "%s has no base file (%s); the other layers are merged alone",
                               config->component, *config->base ? config->base : "none is configured");
}

static void fill_layers(struct lkg_candidate *candidate, const struct lkg_fold *fold)
{
        candidate->layers = lkg_must(calloc(fold->n_steps + 1, sizeof(*candidate->layers)));
        for (; candidate->n_layers < fold->n_steps; candidate->n_layers++) {
                candidate->layers[candidate->n_layers] = fold->steps[candidate->n_layers].info;
                (void)lkg_layer_ref(candidate->layers[candidate->n_layers].layer);
        }
        candidate->merged = lkg_value_ref(fold->result);
        candidate->base = lkg_value_ref(fold->base);
        candidate->again = (struct lkg_again){ lkg_value_ref(fold->below), fold->n_below };
}

/* Layers that should be in the merge but are not. @ret_first: one of them */
static size_t count_missing(const struct making *m, const char **ret_first)
{
        const struct lkg_fold *fold = &m->merge->fold;
        size_t n = 0;

        *ret_first = NULL;
        for (unsigned role = 0; role < _LKG_LAYER_ROLE_MAX; role++) {
                const struct lkg_report *report = report_of(m, role);

                for (size_t i = 0; i < report->n_findings; i++) {
                        const struct lkg_finding *f = &report->findings[i];

                        if (f->severity == LKG_ERROR && f->file && n++ == 0)
                                *ret_first = f->file;
                }
        }
        for (size_t i = 0; i < fold->n_steps; i++)
                if (fold->steps[i].info.left_out && n++ == 0)
                        *ret_first = fold->steps[i].info.file;
        return n;
}

static void name_missing(struct lkg_candidate *candidate, const struct making *m)
{
        const char *first;
        size_t n = count_missing(m, &first);

        if (n == 1)
                candidate->without = lkg_copy(first);
        else if (n > 1)
                candidate->without = lkg_format("%s and %zu more", first, n - 1);
}

static enum lkg_candidate_state state_of(const struct lkg_candidate *candidate, const struct making *m)
{
        if (is_name_taken(m))
                return LKG_CANDIDATE_NAME_TAKEN;
        if (m->stack->config.manifests) /* what is wrong with a file is about that file only */
                return m->merge->refused ? LKG_CANDIDATE_INVALID : LKG_CANDIDATE_VALID;
        if (candidate->report.n_severity[LKG_ERROR] > 0)
                return LKG_CANDIDATE_INVALID;
        return merged_of(&m->merge->fold) ? LKG_CANDIDATE_VALID : LKG_CANDIDATE_NONE;
}

static struct lkg_candidate *candidate_new(const struct making *m)
{
        struct lkg_candidate *candidate = lkg_must(calloc(1, sizeof(*candidate)));

        candidate->refs = 1;
        candidate->has_base = m->has_base;
        candidate->has_dropin_dir = m->stack->found.has_dropin_dir;
        candidate->unread = m->stack->found.reports[LKG_LAYER_MANIFEST].n_severity[LKG_ERROR] > 0;
        candidate->format = m->has_base && m->n > 0 ? m->items[0]->format : LKG_FORMAT_YAML;
        fill_layers(candidate, &m->merge->fold);
        name_missing(candidate, m);
        fill_report(candidate, m);
        candidate->state = state_of(candidate, m);
        if (candidate->state == LKG_CANDIDATE_VALID && !m->stack->config.manifests)
                candidate->doc = lkg_value_ref(merged_of(&m->merge->fold));
        return candidate;
}

/* ---- judging ---- */

static void settle_state(struct lkg_candidate *candidate)
{
        if (candidate->state == LKG_CANDIDATE_VALID && !candidate->texts &&
            candidate->report.n_severity[LKG_ERROR] > 0) {
                candidate->state = LKG_CANDIDATE_INVALID;
                candidate->doc = lkg_value_unref(candidate->doc);
        }
}

static void note_judged(const struct making *m)
{
        const struct lkg_admission *admission = &m->stack->admission;

        for (size_t i = 0; i < m->n; i++) {
                struct lkg_layer *layer = m->items[i];

                if (!layer->judged && admission->judged)
                        admission->judged(layer->file, layer->sha256, admission->userdata);
                layer->judged = true;
        }
}

/* Judges a merge that differs, and replaces the merge's candidate. */
static void judge(const struct making *m)
{
        struct lkg_candidate *candidate = candidate_new(m);
        bool whole = candidate->state == LKG_CANDIDATE_VALID;

        if (m->stack->judge && !m->merge->refused)
                m->stack->judge(candidate, m->stack->judge_userdata);
        if (whole)
                note_judged(m);
        settle_state(candidate);
        lkg_candidate_unref(m->merge->candidate);
        m->merge->candidate = candidate;
        m->merge->rejudge = false;
}

/* ---- admission ---- */

/* The digest of all layers together, names and contents in merge order; and the bytes of all of them. */
static void digest_together(const struct making *m, char ret[static LKG_SHA256_HEX], size_t *ret_size)
{
        LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf buf = LKG_BUF_INIT;

        *ret_size = 0;
        for (size_t i = 0; i < m->n; i++) {
                const struct lkg_layer *layer = m->items[i];

                *ret_size += layer->size;
                lkg_buf_append(&buf, layer->file, strlen(layer->file) + 1);
                lkg_buf_append(&buf, layer->sha256, strlen(layer->sha256) + 1);
        }
        (void)lkg_need(lkg_sha256_hex(lkg_buf_text(&buf), buf.size, ret));
}

/*
 * Checks layers that were read but not admitted yet, because of another layer's mistake or because they are
 * new.
 */
static int ask_again(const struct making *m, char **ret_why)
{
        int r = 0;

        for (size_t i = 0; r == 0 && i < m->n; i++)
                if (!m->items[i]->judged && m->items[i]->n_docs > 0)
                        r = lkg_layer_admit(m->stack, m->items[i], ret_why);
        return r;
}

/* "kubelet.conf, kubelet.conf.d/20-pods.conf: why"; takes over @why. */
static char *name_all(const struct making *m, char *why)
{
        LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf buf = LKG_BUF_INIT;
        LKG_CLEANUP(lkg_freep) char *text = why;

        for (size_t i = 0; i < m->n && i < NAMED_MAX; i++)
                lkg_buf_printf(&buf, "%s%s", i ? ", " : "", m->items[i]->file);
        if (m->n > NAMED_MAX)
                lkg_buf_printf(&buf, " and %zu more", m->n - NAMED_MAX);
        lkg_buf_printf(&buf, ": %s", text);
        return lkg_must(lkg_buf_steal(&buf, NULL));
}

/* May they be merged and judged? Each may be harmless alone, but not all together. If not, merge->refused says why. */
static void ask_together(const struct making *m)
{
        char sha256[LKG_SHA256_HEX];
        struct lkg_content all = { LKG_ADMIT_TOGETHER, "", sha256, 0 };
        char *why = NULL;
        int r = 0;

        if (m->stack->admission.admit && m->n > 0) {
                r = ask_again(m, &why);
                if (r == 0) {
                        digest_together(m, sha256, &all.size);
                        r = lkg_admit(&m->stack->admission, &all, &why);
                }
                if (r < 0 && why)
                        why = name_all(m, why);
        }
        free(m->merge->refused);
        m->merge->refused = why;
}

/* ---- merging ---- */

/* Makes a candidate from the layers; the last one again if nothing differs. */
static void make(const struct making *m)
{
        struct lkg_merge *merge = m->merge;
        struct lkg_candidate *candidate;

        ask_together(m);
        if (merge->refused)
                lkg_fold_deinit(&merge->fold);
        else
                lkg_fold_update(&merge->fold, &m->stack->config, m->items, m->n, &m->stack->stats);
        candidate = candidate_new(m);
        if (lkg_candidate_same(merge->merged, candidate) && merge->candidate && !merge->rejudge) {
                lkg_candidate_unref(candidate);
                return;
        }
        lkg_candidate_unref(merge->merged);
        merge->merged = candidate;
        judge(m);
}

/* The layers of @merge: those of the files, with the document in memory in the place of the base. */
static void update(struct lkg_stack *stack, struct lkg_merge *merge)
{
        LKG_CLEANUP(lkg_freep)
        struct lkg_layer **items = lkg_must(calloc(stack->found.layers.n + 1, sizeof(struct lkg_layer *)));
        struct making m = { stack, merge, items, 0, merge->remote || stack->found.has_base };

        if (merge->remote)
                items[m.n++] = merge->remote;
        for (size_t i = 0; i < stack->found.layers.n; i++)
                if (!merge->remote || stack->found.layers.items[i]->role != LKG_LAYER_BASE)
                        items[m.n++] = stack->found.layers.items[i];
        make(&m);
        merge->current = true;
}

static void merge_deinit(struct lkg_merge *merge)
{
        lkg_layer_unref(merge->remote);
        lkg_fold_deinit(&merge->fold);
        lkg_candidate_unref(merge->merged);
        lkg_candidate_unref(merge->candidate);
        free(merge->refused);
        *merge = (struct lkg_merge){ 0 };
}

/*
 * The merge over @remote; if it is not known, in the place of the one that was not used for the longest time. The
 * first is always that over the base file.
 */
static struct lkg_merge *find_merge(struct lkg_stack *stack, const struct lkg_stack_remote *remote,
                                    const char *sha256)
{
        struct lkg_merge *oldest = &stack->merges[1];

        for (size_t i = 1; i < LKG_ARRAY_SIZE(stack->merges); i++) {
                struct lkg_merge *merge = &stack->merges[i];

                if (merge->remote && strcmp(merge->remote->sha256, sha256) == 0 &&
                    strcmp(merge->remote->file, remote->file) == 0)
                        return merge;
                if (merge->used < oldest->used)
                        oldest = merge;
        }
        merge_deinit(oldest);
        return oldest;
}

static struct lkg_merge *over_remote(struct lkg_stack *stack, const struct lkg_stack_remote *remote)
{
        const char *text = remote->fault ? remote->fault : remote->text;
        char sha256[LKG_SHA256_HEX];
        struct lkg_layer *before;
        struct lkg_merge *merge;

        (void)lkg_need(lkg_sha256_hex(text, remote->fault ? strlen(text) : remote->size, sha256));
        merge = find_merge(stack, remote, sha256);
        merge->used = ++stack->n_used;
        if (!merge->current) { /* one that was refused is asked about again, as a file is */
                before = merge->remote;
                merge->remote = lkg_layer_from_memory(stack, remote, before);
                lkg_layer_unref(before);
        }
        return merge;
}

int lkg_stack_over(struct lkg_stack *stack, const struct lkg_stack_remote *remote,
                   struct lkg_candidate **ret, struct lkg_error *err)
{
        struct lkg_merge *merge = &stack->merges[0];

        if (!stack->sorted)
                return lkg_error_set(err, -EAGAIN, NULL, "layers of %s", stack->config.component);
        if (remote && (remote->text || remote->fault))
                merge = over_remote(stack, remote);
        if (!merge->current)
                update(stack, merge);
        *ret = lkg_candidate_ref(merge->candidate);
        return 0;
}

void lkg_merges_outdated(struct lkg_stack *stack)
{
        for (size_t i = 0; i < LKG_ARRAY_SIZE(stack->merges); i++)
                stack->merges[i].current = false;
}

void lkg_merges_forget(struct lkg_stack *stack)
{
        for (size_t i = 0; i < LKG_ARRAY_SIZE(stack->merges); i++)
                merge_deinit(&stack->merges[i]);
}

void lkg_stack_rejudge(struct lkg_stack *stack)
{
        lkg_merges_outdated(stack);
        for (size_t i = 0; i < LKG_ARRAY_SIZE(stack->merges); i++)
                stack->merges[i].rejudge = true;
}
