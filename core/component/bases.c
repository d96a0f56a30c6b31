/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The bases that the layers of a component can be over: from checkpoints of the store; the assigned one, which is judged
 * before it is followed; the last known good, which a rollback merges with today's local layers, or serves as it was stored.
 */
#include <lkg/base.h>
#include <lkg/component.h>
#include <lkg/objects.h>

void lkg_component_follow_tried(struct lkg_component *c)
{
        const struct lkg_log_fields fields = lkg_component_log_fields(c);
        const struct lkg_config_source *source;

        lkg_component_follow(c, LKG_STEAL(c->assigned.base));
        source = lkg_component_source(c);
        lkg_log(LOG_NOTICE, &fields, "following ConfigMap %s/%s, UID %s, resourceVersion %s", source->ns,
                source->name, source->uid, source->version);
}

/* ---- bases from checkpoints ---- */

/*
 * The default minimum limits only what the ConfigMap sets; it does not override the administrator's setting.
 */
struct lkg_trial_settings lkg_trial_settings_of(const struct lkg_config *config)
{
        struct lkg_trial_settings settings = {
                .duration_ns = config->trial.duration_ns,
                .threshold = (unsigned)config->trial.crash_loop_threshold,
                .min_duration_ns = config->trial.min_duration_ns,
                .max_duration_ns = config->trial.max_duration_ns,
        };

        if (config->trial.min_duration_set)
                return settings;
        if (settings.min_duration_ns > settings.duration_ns)
                settings.min_duration_ns = settings.duration_ns;
        if (settings.max_duration_ns && settings.min_duration_ns > settings.max_duration_ns)
                settings.min_duration_ns = settings.max_duration_ns;
        return settings;
}

int lkg_component_trial_rules(const struct lkg_component *c, struct lkg_trial_rules *ret)
{
        struct lkg_trial_settings settings = lkg_trial_settings_of(c->env->config);
        char ignored[256];
        int r = 0;

        if (c->base)
                *ret = c->base->rules;
        else
                r = lkg_trial_rules_make(&settings, NULL, NULL, NULL, NULL, ret, ignored);
        ret->stable_for_ns = lkg_trial_stable_for(c->config->health.stable_for_ns, ret->duration_ns);
        return r;
}

static int refuse_file(struct lkg_report *report, const char *file, const char *why)
{
        const struct lkg_where where = { .file = file };

        lkg_report_add(report, LKG_ERROR, 2030, &where, "%s", why);
        return -EINVAL;
}

/*
 * Content of @source was refused, so @source will be marked bad. @err: set to the reason, code
 * -EKEYREJECTED.
 */
static void refused_source(struct lkg_poison *poison, const struct lkg_config_source *source,
                           struct lkg_error *err)
{
        char id[LKG_SOURCE_ID_MAX + 1], how[128] = "an engine died of it";
        struct lkg_refused *refused = lkg_poison_last(poison);
        struct lkg_error unsaved = { 0 };

        if (refused) {
                lkg_config_source_id(source, id);
                lkg_poison_set_source(poison, refused, id);
                /* before the bad mark is made: lifting the refusal must find the mark */
                if (lkg_poison_save(poison, &unsaved) < 0)
                        lkg_log_warning("%s", unsaved.message);
                lkg_poison_how(refused, how, sizeof(how));
        }
        err->code = -EKEYREJECTED;
        (void)snprintf(err->message, sizeof(err->message), "failed to judge current, %s", how);
}

/*
 * Asks for admission before the payload is decoded for the first time, under the name that its layer will
 * have.
 * Return: 0; -EINVAL: refused.
 */
static int admit_payload(const struct lkg_component *c, const struct lkg_config_source *source,
                         const struct lkg_configmap *configmap, struct lkg_report *report,
                         struct lkg_error *err)
{
        const struct lkg_admission admission = lkg_component_admission(c);
        LKG_CLEANUP(lkg_freep) char *file = lkg_remote_base_file(source);
        LKG_CLEANUP(lkg_freep) char *why = NULL;
        const char *text = NULL;
        size_t size = 0;
        int r;

        if (lkg_configmap_payload(configmap, source->key, &text, &size, NULL) < 0)
                return 0; /* lkg_remote_base_new() reports this mistake */
        r = lkg_admit_text(&admission, LKG_ADMIT_LAYER, file, text, size, &why);
        if (r != -EKEYREJECTED)
                return r;
        refused_source(c->env->poison, source, err);
        return refuse_file(report, file, why);
}

/*
 * Loads @source from its checkpoint.
 * Return: 0: @ret can be tried; -EINVAL: it is bad, @report says why; if an engine died of it, the code of
 * @err is -EKEYREJECTED and its message is the reason; another -errno.
 */
static int load_base(const struct lkg_component *c, const struct lkg_config_source *source,
                     struct lkg_remote_base **ret, struct lkg_report *report, struct lkg_error *err)
{
        struct lkg_trial_settings settings = lkg_trial_settings_of(c->env->config);
        struct lkg_remote_base *base = NULL;
        struct lkg_configmap configmap = { 0 };
        int r = lkg_store_load_checkpoint(c->env->store, source, &configmap, err);

        if (r == -EKEYREJECTED) {
                (void)refuse_file(report, NULL, err->message);
                refused_source(c->env->poison, source, err);
                return -EINVAL;
        }
        if (r < 0)
                return r;
        r = admit_payload(c, source, &configmap, report, err);
        if (r < 0) {
                lkg_configmap_deinit(&configmap);
                return r == -EINVAL ? r : lkg_error_set(err, r, NULL, "checkpoint");
        }
        base = lkg_remote_base_new(&configmap, source, &settings, report);
        if (!base->text || report->n_severity[LKG_ERROR] > 0) {
                lkg_remote_base_free(base);
                return lkg_error_set(err, -EINVAL, NULL, "checkpoint");
        }
        *ret = base;
        return 0;
}

int lkg_component_restore_base(struct lkg_component *c, const struct lkg_config_source *source,
                               struct lkg_error *err)
{
        LKG_CLEANUP(lkg_report_deinit) struct lkg_report ignored = LKG_REPORT_INIT;
        const struct lkg_config_source wanted = *source; /* it may be that of the base that is replaced */
        struct lkg_remote_base *base = NULL;
        int r = load_base(c, &wanted, &base, &ignored, err);

        if (r < 0)
                return r;
        lkg_component_follow(c, base);
        c->due.guard = true;
        c->loss.unloaded = c->loss.unread = false;
        return 0;
}

bool lkg_checkpoint_is_lost(int code)
{
        return code == -ENOENT || code == -EBADMSG || code == -EINVAL;
}

void lkg_component_keep_without_base(struct lkg_component *c, const char *why)
{
        struct lkg_remote_base *base = NULL;
        char fault[LKG_REASON_MAX];

        (void)snprintf(fault, sizeof(fault),
                       "the checkpoint %s, trying again; what was served last serves meanwhile: %.300s",
                       c->loss.unread ? "cannot be read" : "is lost and the rollback cannot be recorded",
                       why);
        if (c->active)
                base = lkg_remote_base_missing(&c->dynamic->pointers.active, fault);
        if (base || c->base)
                lkg_component_follow(c, base);
}

void lkg_components_collect(const struct lkg_component *components, size_t n_components,
                            struct lkg_store *store)
{
        struct lkg_config_source *keep = calloc(n_components * (4 + LKG_HISTORY_MAX) + 1, sizeof(*keep));
        struct lkg_error err = { 0 };
        size_t n = 0;

        if (!keep || store->lock_fd < 0) {
                free(keep);
                return;
        }
        for (size_t i = 0; i < n_components; i++) {
                const struct lkg_component *c = &components[i];

                if (!c->dynamic) { /* what it needs is unknown */
                        free(keep);
                        return;
                }
                keep[n++] = c->dynamic->pointers.assigned;
                keep[n++] = c->dynamic->pointers.active;
                keep[n++] = c->dynamic->pointers.good.source;
                for (size_t k = 0; k < c->history.n_entries && k < LKG_HISTORY_MAX; k++)
                        if (lkg_config_source_parse_id(c->history.entries[k].source, &keep[n]) >= 0)
                                n++;
        }
        if (lkg_store_collect(store, keep, n, &err) < 0)
                lkg_log_warning("cannot remove old checkpoints: %s", err.message);
        free(keep);
}

/* ---- the assigned configuration is tried ---- */

/* The document of the base file, for pinned fields. */
static const struct lkg_value *local_base(const struct lkg_component *c)
{
        const struct lkg_candidate *local = lkg_component_local(c);

        return local && local->n_layers > 0 && local->layers[0].role == LKG_LAYER_BASE ? local->layers[0].doc
                                                                                       : NULL;
}

void lkg_component_check_guard(const struct lkg_component *c, const struct lkg_candidate *tried,
                               struct lkg_report *report)
{
        const struct lkg_config_component *k = c->config;
        const struct lkg_guard guard = {
                .hardened = k->guard.profile == LKG_GUARD_HARDENED,
                .deny = (const char *const *)k->guard.deny.items,
                .n_deny = k->guard.deny.n_items,
                .pinned = (const char *const *)k->guard.pinned.items,
                .n_pinned = k->guard.pinned.n_items,
        };
        const struct lkg_value *remote =
                tried && tried->n_layers > 0 && tried->layers[0].role == LKG_LAYER_REMOTE
                        ? tried->layers[0].doc
                        : NULL;

        if (remote)
                (void)lkg_guard_check(&guard, remote, local_base(c), report);
}

static bool is_base_broken(const struct lkg_candidate *local)
{
        return local && local->n_layers > 0 && local->layers[0].role == LKG_LAYER_BASE &&
               !local->layers[0].doc;
}

enum lkg_tried lkg_component_blame(const struct lkg_component *c, const struct lkg_candidate *tried,
                                   bool *ret_syntax)
{
        const struct lkg_candidate *local = lkg_component_local(c);

        if (c->config->guard.pinned.n_items && is_base_broken(local))
                return LKG_TRIED_WAIT; /* the value to compare with is unknown */
        if (c->assigned.findings.n_severity[LKG_ERROR] > 0)
                return LKG_TRIED_BAD;
        if (tried->state == LKG_CANDIDATE_VALID)
                return LKG_TRIED_GOOD;
        if (lkg_component_errors_in(&tried->report, c->assigned.base->file, ret_syntax) > 0)
                return LKG_TRIED_BAD;
        if (local && local->state == LKG_CANDIDATE_INVALID && lkg_component_local_errors(c) > 0)
                return LKG_TRIED_WAIT;
        /*
         * A local layer that has become invalid with the current configuration will not become valid with
         * the next one.
         */
        return c->base && c->candidate && c->candidate->state == LKG_CANDIDATE_INVALID ? LKG_TRIED_WAIT
                                                                                       : LKG_TRIED_BAD;
}

int lkg_component_load_assigned(struct lkg_component *c, struct lkg_candidate **ret, struct lkg_error *err)
{
        int r;

        lkg_report_deinit(&c->assigned.findings);
        r = load_base(c, &c->dynamic->pointers.assigned, &c->assigned.base, &c->assigned.findings, err);
        if (r == -EINVAL)
                return 1;
        if (r < 0)
                return r;
        c->slots.of = c->assigned.base->source;
        c->slots.limits = c->assigned.base->limits;
        c->slots.duration_ns = c->assigned.base->rules.duration_ns;
        r = lkg_component_over(c, c->assigned.base, ret, err);
        if (r >= 0)
                lkg_component_check_guard(c, *ret, &c->assigned.findings);
        return r;
}

void lkg_component_note_tried(struct lkg_component *c, bool done)
{
        lkg_candidate_unref(c->assigned.tried_with);
        c->assigned.tried_with = done ? lkg_candidate_ref(lkg_component_local(c)) : NULL;
        lkg_remote_base_free(c->assigned.base);
        c->assigned.base = NULL;
}

bool lkg_component_was_tried(const struct lkg_component *c)
{
        return c->assigned.tried_with && c->assigned.tried_with == lkg_component_local(c);
}

/* ---- findings ---- */

void lkg_component_say_not_used(struct lkg_component *c, const char *id, const char *reason)
{
        const struct lkg_where where = { .file = id };

        lkg_report_add(&c->assigned.findings, LKG_WARNING, 6008, &where,
                       "is assigned and not used: %s; remove %sbad/%s/%s to try it again", reason,
                       c->names.top, c->config->name, id);
}

void lkg_component_say_switched_off(struct lkg_component *c)
{
        const struct lkg_config_source *assigned = &c->dynamic->pointers.assigned;

        if (!lkg_config_source_is_local(assigned))
                lkg_report_add(&c->assigned.findings, LKG_NOTE, 6007, NULL,
                               "a remote configuration is assigned (ConfigMap %s/%s) and not used, because "
                               "remote configuration is off",
                               assigned->ns, assigned->name);
}

/*
 * Keeps the findings of a tried configuration that will not be served. Findings about the local layers
 * themselves, or found without one of them, are shown with those layers for as long as they are true.
 */
void lkg_component_keep_findings(struct lkg_component *c, const struct lkg_candidate *candidate)
{
        const struct lkg_candidate *local = lkg_component_local(c);

        for (size_t i = 0; candidate && i < candidate->report.n_findings; i++) {
                const struct lkg_finding *f = &candidate->report.findings[i];

                if (!f->incomplete && !(local && lkg_report_has(&local->report, f)))
                        lkg_report_add_copy(&c->assigned.findings, f);
        }
        if (candidate)
                lkg_report_count_unlisted(&c->assigned.findings, &candidate->report);
}

void lkg_component_explain_assigned(struct lkg_component *c, const struct lkg_bad *bad)
{
        const struct lkg_log_fields fields = lkg_component_log_fields(c);
        LKG_CLEANUP(lkg_candidate_unrefp) struct lkg_candidate *candidate = NULL;
        struct lkg_error err = { 0 };
        bool syntax = false;
        int r;

        lkg_component_try_anew(c);
        if (lkg_component_was_tried(c))
                return;
        r = lkg_component_load_assigned(c, &candidate, &err);
        if (r == 0 && lkg_component_blame(c, candidate, &syntax) == LKG_TRIED_BAD)
                lkg_component_keep_findings(c, candidate);
        if (r < 0)
                lkg_log(LOG_WARNING, &fields, "cannot find again what is wrong with what is assigned: %s",
                        err.message);
        lkg_component_say_not_used(c, bad->id, bad->reason);
        lkg_component_note_tried(c, true);
}

void lkg_component_try_anew(struct lkg_component *c)
{
        *c->assigned.untried = '\0';
        c->assigned.try_at_ns = c->assigned.try_pause_ns = 0;
}

/* ---- the desired configuration ---- */

void lkg_component_set_desired(struct lkg_component *c, enum lkg_desired_state state, const char *fault,
                               const char *waiting)
{
        struct lkg_dynamic *d = c->dynamic;

        if (d->desired == state && strcmp(d->desired_fault, fault) == 0 && strcmp(d->waiting, waiting) == 0)
                return;
        d->desired = state;
        (void)snprintf(d->desired_fault, sizeof(d->desired_fault), "%.500s", fault);
        (void)snprintf(d->waiting, sizeof(d->waiting), "%.255s", waiting);
}

void lkg_component_forgive(struct lkg_component *c, const char *source)
{
        struct lkg_error err = { 0 };

        if (!c->dynamic || !*source ||
            lkg_dynamic_forgive(c->dynamic, source, /* exactly= */ true, &err) < 0)
                return;
        if (!lkg_bad_find(&c->dynamic->bad, &c->dynamic->pointers.assigned))
                lkg_report_deinit(&c->assigned.findings);
        lkg_component_note_tried(c, false);
}

/* ---- what a rollback would serve now ---- */

int lkg_component_stored_good(const struct lkg_component *c, struct lkg_generation **ret,
                              struct lkg_error *err)
{
        const struct lkg_good *good = &c->dynamic->pointers.good;
        LKG_CLEANUP(lkg_generation_unrefp) struct lkg_generation *g = NULL;
        struct lkg_text text = { 0 };
        int r;

        /*
         * Any local configuration counts as good, so the last one that was served replaces a stored
         * document.
         */
        for (size_t i = c->history.n_entries; !*good->sha256 && i-- > 0;) {
                r = lkg_history_get(&c->history, c->history.entries[i].number, &g, err);
                if (r >= 0 && !*g->source) {
                        *ret = LKG_STEAL(g);
                        return 0;
                }
                g = lkg_generation_unref(g);
        }
        if (!*good->sha256)
                return lkg_error_set(err, -ENOENT, NULL, "no document was stored");
        if (lkg_history_get(&c->history, good->generation, &g, NULL) >= 0 &&
            strcmp(g->sha256, good->sha256) == 0) {
                *ret = LKG_STEAL(g);
                return 0;
        }
        g = lkg_generation_unref(g);
        r = lkg_store_load_document(&c->dynamic->store, good->sha256, &text.data, &text.size, err);
        if (r >= 0)
                r = lkg_generation_stored(&good->source, good->generation, good->time_ns, text, ret);
        return r;
}

/* The last known good merged with today's layers; NULL = it is not known, or not loaded. Borrowed until the next look. */
static struct lkg_candidate *merged_good(const struct lkg_component *c)
{
        const struct lkg_config_source *source = &c->dynamic->pointers.good.source;
        struct lkg_candidate *good = NULL;

        if (lkg_config_source_equal(lkg_component_source(c), source))
                return c->candidate;
        if (lkg_config_source_is_local(source))
                return lkg_component_local(c);
        if (c->good)
                (void)lkg_component_over(c, c->good, &good, NULL);
        lkg_candidate_unref(good); /* the stack keeps it */
        return good;
}

/* The candidate of a merge that a rollback would serve now; NULL = it cannot be merged. */
static struct lkg_candidate *good_candidate(const struct lkg_component *c)
{
        struct lkg_candidate *candidate = merged_good(c);

        return candidate && candidate->state == LKG_CANDIDATE_VALID ? candidate : NULL;
}

static bool can_serve_stored(const struct lkg_component *c)
{
        LKG_CLEANUP(lkg_generation_unrefp) struct lkg_generation *g = NULL;
        int r = lkg_component_stored_good(c, &g, NULL);

        return r != -ENOENT && r != -EBADMSG; /* another error may pass */
}

bool lkg_component_can_serve_good(struct lkg_component *c)
{
        const struct lkg_candidate *merged;
        struct lkg_error err = { 0 };

        if (!c->dynamic)
                return false;
        if (c->dynamic->stores_good)
                return can_serve_stored(c);
        (void)lkg_component_load_good(c, &err); /* another base may be followed only since this round */
        merged = merged_good(c);
        if (!merged)
                return true; /* not known: trying shows it */
        switch (merged->state) {
        case LKG_CANDIDATE_VALID:
                return true;
        case LKG_CANDIDATE_INVALID:
                return (merged == c->candidate && c->active) || can_serve_stored(c);
        case LKG_CANDIDATE_NONE:
        case LKG_CANDIDATE_NAME_TAKEN:
                break;
        }
        return false;
}

/* Without remote configuration, the local configuration is good, whatever was good before. */
static bool has_good(const struct lkg_component *c)
{
        return c->dynamic->stores_good || c->dynamic->desired != LKG_DESIRED_NONE;
}

struct lkg_generation *lkg_component_good_generation(const struct lkg_component *c)
{
        struct lkg_candidate *candidate = NULL;
        struct lkg_generation *g = NULL;

        if (!c->dynamic || !c->active || !has_good(c))
                return NULL;
        if (!c->dynamic->stores_good) {
                candidate = good_candidate(c);
                if (candidate && strcmp(candidate->sha256, c->active->sha256) == 0)
                        return NULL;
        }
        if (candidate)
                g = lkg_generation_new(candidate, &c->dynamic->pointers.good.source, 0, 0,
                                       lkg_candidate_take_text(candidate, c->names.hint));
        else
                (void)lkg_component_stored_good(c, &g, NULL);
        return g && strcmp(g->sha256, c->active->sha256) == 0 ? lkg_generation_unref(g) : g;
}

/* ---- back to the last known good ---- */

int lkg_component_serve_stored(struct lkg_component *c, struct lkg_error *err)
{
        LKG_CLEANUP(lkg_generation_unrefp) struct lkg_generation *g = NULL;
        int r = lkg_component_stored_good(c, &g, err);

        if (r >= 0)
                lkg_history_add(&c->history, g);
        if (r >= 0)
                lkg_component_serve_again(c, g);
        return r;
}

/*
 * Puts the layers over the last known good. Return: 0; negative: its checkpoint cannot be used, nothing has
 * changed.
 */
static int set_good_base(struct lkg_component *c, struct lkg_error *err)
{
        LKG_CLEANUP(lkg_report_deinit) struct lkg_report ignored = LKG_REPORT_INIT;
        const struct lkg_config_source *source = &c->dynamic->pointers.good.source;
        struct lkg_remote_base *base = NULL;
        int r = lkg_config_source_is_local(source) ? 0 : load_base(c, source, &base, &ignored, err);

        if (r >= 0)
                lkg_component_follow(c, base);
        return r;
}

/* Nothing of the last known good can be used, so follows the local configuration. */
static void go_local(struct lkg_component *c, const char *why)
{
        const struct lkg_log_fields fields = lkg_component_log_fields(c);

        lkg_log(LOG_ERR, &fields,
                "the last known good cannot be used, going on with the local configuration: %s", why);
        c->dynamic->good_failed = true;
        if (c->base)
                lkg_component_follow(c, NULL);
}

/* Then what is served has the local layers of its time, which the stored document may not have. */
static bool serves_good_source(const struct lkg_component *c)
{
        struct lkg_config_source made_of;

        if (!c->active)
                return false;
        lkg_config_source_recorded(c->active->source, c->active->source_sha256, &made_of);
        return lkg_config_source_matches(&made_of, &c->dynamic->pointers.good.source);
}

/*
 * The last known good cannot be merged any more because its checkpoint is lost: serves its stored document;
 * its layers are invalid until the object is read again. Without a stored document, follows the local
 * configuration.
 */
void lkg_component_follow_missing(struct lkg_component *c, const char *why)
{
        struct lkg_remote_base *base = NULL;
        struct lkg_error err = { 0 };
        char fault[LKG_REASON_MAX];

        (void)snprintf(fault, sizeof(fault),
                       "the checkpoint is lost; what was served last, or its stored document, serves until "
                       "the object is read again: %.250s",
                       why);
        if (serves_good_source(c) || lkg_component_serve_stored(c, &err) >= 0)
                base = lkg_remote_base_missing(&c->dynamic->pointers.good.source, fault);
        if (base)
                lkg_component_follow(c, base);
        else
                go_local(c, err.message);
}

void lkg_component_serve_stored_or_local(struct lkg_component *c)
{
        struct lkg_error err = { 0 };

        if (lkg_component_serve_stored(c, &err) < 0)
                go_local(c, err.message);
}

/* The next layer above the base, starting at @at; NULL = none. */
static const struct lkg_layer_info *next_local(const struct lkg_candidate *candidate, size_t *at)
{
        while (*at < candidate->n_layers) {
                const struct lkg_layer_info *layer = &candidate->layers[(*at)++];

                if (layer->role != LKG_LAYER_BASE && layer->role != LKG_LAYER_REMOTE)
                        return layer;
        }
        return NULL;
}

static bool has_same_local_layers(const struct lkg_candidate *a, const struct lkg_candidate *b)
{
        const struct lkg_layer_info *x, *y;
        size_t i = 0, k = 0;

        if (!a || !b)
                return a == b;
        do {
                x = next_local(a, &i);
                y = next_local(b, &k);
                if (!x != !y || (x && (strcmp(x->file, y->file) != 0 || !x->doc != !y->doc ||
                                       (x->doc && !lkg_value_equal(x->doc, y->doc)))))
                        return false;
        } while (x);
        return true;
}

enum lkg_merge_result lkg_component_merge_good(struct lkg_component *c, bool same_base,
                                               char ret_sha256[static LKG_SHA256_HEX],
                                               char ret_fault[static LKG_REASON_MAX])
{
        LKG_CLEANUP(lkg_candidate_unrefp) struct lkg_candidate *failed = lkg_candidate_ref(c->candidate);
        struct lkg_error err = { 0 };

        *ret_sha256 = *ret_fault = '\0';
        c->dynamic->good_failed = false;
        c->assigned.tried_with = lkg_candidate_unref(c->assigned.tried_with);
        if (!same_base && set_good_base(c, &err) < 0) {
                (void)snprintf(ret_fault, LKG_REASON_MAX, "%.500s", err.message);
                return LKG_MERGE_IMPOSSIBLE;
        }
        if (!c->candidate || c->candidate->state != LKG_CANDIDATE_VALID)
                return LKG_MERGE_INVALID;
        /*
         * Local layers that have changed since then did not take part in the failure, so they are tried
         * again.
         */
        if (has_same_local_layers(failed, c->candidate))
                memcpy(ret_sha256, c->candidate->sha256, LKG_SHA256_HEX);
        return LKG_MERGE_VALID;
}

/* Another remote source than the followed one; otherwise the layers are merged over it already. */
int lkg_component_load_good(struct lkg_component *c, struct lkg_error *err)
{
        LKG_CLEANUP(lkg_report_deinit) struct lkg_report ignored = LKG_REPORT_INIT;
        const struct lkg_config_source *source = &c->dynamic->pointers.good.source;

        if (c->good && lkg_config_source_equal(&c->good->source, source))
                return 0;
        lkg_remote_base_free(c->good);
        c->good = NULL;
        if (lkg_config_source_equal(lkg_component_source(c), source) || lkg_config_source_is_local(source))
                return 0;
        return load_base(c, source, &c->good, &ignored, err);
}
