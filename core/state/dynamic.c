/* SPDX-License-Identifier: Apache-2.0 */
/* Loading the state of dynamic configuration, and its bad list: see lkg/store.h. */
#include <lkg/store.h>

/* ---- open and close ---- */

static bool is_watched(const struct lkg_config_match *match)
{
        return *match->unit || match->exe.n_items > 0 || match->cgroup.n_items > 0;
}

static int load_release(struct lkg_dynamic *d, struct lkg_report *report)
{
        int r;

        lkg_bad_list_deinit(&d->bad);
        r = lkg_store_load_bad(&d->store, &d->bad, report);
        if (r >= 0)
                r = lkg_store_load_startups(&d->store, &d->startups, report);
        return r;
}

void lkg_dynamic_configure(struct lkg_dynamic *d, const struct lkg_config *config,
                           const struct lkg_config_component *k)
{
        bool watched = is_watched(&k->match);

        if (watched != d->watched && d->trial.state == LKG_TRIAL_RUNNING) {
                d->trial = lkg_trial_alive(d->trial, false, lkg_boottime_ns());
                d->trial = lkg_trial_resume(d->trial, watched, lkg_boottime_ns());
        }
        d->watched = watched;
        d->scope_all = config->trial.scope == LKG_TRIAL_ALL && !k->is_pods; /* their trial is another one */
        d->stores_good = d->scope_all || k->is_pods;
}

int lkg_dynamic_open(const struct lkg_store *store, const struct lkg_config *config,
                     const struct lkg_config_component *k, struct lkg_dynamic **ret,
                     struct lkg_report *report, struct lkg_error *err)
{
        struct lkg_dynamic *d = lkg_must(calloc(1, sizeof(*d)));
        int r;

        d->store.fd = -EBADF;
        lkg_dynamic_configure(d, config, k);
        lkg_boot_id(d->boot);
        r = lkg_store_component_open(store, k->name, &d->store, report, err);
        if (r >= 0)
                r = lkg_store_load_pointers(&d->store, &d->pointers, report);
        if (r >= 0)
                r = load_release(d, report);
        if (r >= 0 && !d->scope_all)
                r = lkg_store_load_trial(&d->store, lkg_tried_source(&d->pointers), &d->trial, report);
        if (r < 0) {
                lkg_dynamic_free(d);
                return r;
        }
        if (!d->scope_all)
                d->trial = lkg_trial_believed(d->trial, &d->pointers, /* scope_all= */ false, "");
        d->trial = lkg_trial_resume(d->trial, d->watched, lkg_boottime_ns());
        *ret = d;
        return 0;
}

struct lkg_dynamic *lkg_dynamic_free(struct lkg_dynamic *d)
{
        if (!d)
                return NULL;
        if (d->store.fd >= 0)
                lkg_store_component_close(&d->store);
        lkg_bad_list_deinit(&d->bad);
        free(d);
        return NULL;
}

/*
 * Copies marks and starts from before the version was known. If a mark cannot be copied, its configuration is tried once more;
 * nothing else is lost.
 */
static void carry_over(struct lkg_dynamic *d, const struct lkg_bad_list *bad,
                       const struct lkg_startups *startups)
{
        bool none = d->bad.n_items == 0;

        for (size_t i = 0; none && i < bad->n_items; i++)
                if (lkg_store_mark_bad(&d->store, &d->bad, &bad->items[i], NULL) < 0)
                        return;
        if (d->startups.n_items == 0 && startups->n_items > 0) {
                d->startups = *startups;
                (void)lkg_store_save_startups(&d->store, &d->startups, NULL);
        }
}

/* Starts of another version prove nothing about this one. Durable before the other version counts. */
static int forget_prior_starts(struct lkg_dynamic *d, struct lkg_error *err)
{
        const struct lkg_config_source *tried = d->scope_all ? &d->document : lkg_tried_source(&d->pointers);
        struct lkg_trial trial = d->trial;
        int r;

        if (trial.state != LKG_TRIAL_RUNNING || trial.prior == 0)
                return 0;
        trial.prior = 0;
        trial.away_ns = trial.away_since_ns = 0;
        r = lkg_store_save_trial(&d->store, tried, &trial, lkg_boottime_ns(), err);
        if (r >= 0)
                d->trial = trial;
        return r;
}

int lkg_dynamic_set_release(struct lkg_dynamic *d, const char *version, const char *guess,
                            struct lkg_report *report, struct lkg_error *err)
{
        bool guessed = !*d->store.release || strcmp(d->store.release, guess) == 0;
        const struct lkg_startups startups = d->startups;
        struct lkg_bad_list bad;
        int r, k;

        if (lkg_store_is_release(&d->store, version))
                return 0;
        if (!guessed && (r = forget_prior_starts(d, err)) < 0)
                return r;
        r = lkg_store_set_release(&d->store, version, err);
        if (r <= 0)
                return r;
        bad = d->bad;
        d->bad = (struct lkg_bad_list){ 0 };
        k = load_release(d, report);
        if (k >= 0 && guessed)
                carry_over(d, &bad, &startups);
        lkg_bad_list_deinit(&bad);
        return k < 0 ? k : 1;
}

/* ---- the trial ---- */

int lkg_dynamic_resume(struct lkg_dynamic *d, const char *sha256, struct lkg_report *report)
{
        int r;

        if (!d->scope_all)
                return 0;
        d->document = lkg_document_source(sha256);
        r = lkg_store_load_trial(&d->store, &d->document, &d->trial, report);
        if (r < 0)
                return r;
        d->trial = lkg_trial_believed(d->trial, &d->pointers, /* scope_all= */ true, sha256);
        d->trial = lkg_trial_resume(d->trial, d->watched, lkg_boottime_ns());
        /* The last known good has no trial: show the stored one, of the abandoned document, as failed. */
        if (d->trial.state == LKG_TRIAL_IDLE && *d->pointers.rollback.reason &&
            lkg_is_good_document(&d->pointers, sha256)) {
                r = lkg_store_load_trial(&d->store, NULL, &d->trial, report);
                d->trial.state = LKG_TRIAL_FAILED;
        }
        return r;
}

/* ---- bad list ---- */

const struct lkg_bad *lkg_dynamic_bad_document(const struct lkg_dynamic *d, const char *sha256)
{
        const struct lkg_config_source source = lkg_document_source(sha256);

        return lkg_bad_find(&d->bad, &source);
}

int lkg_dynamic_forgive(struct lkg_dynamic *d, const char *id, bool exactly, struct lkg_error *err)
{
        int r = lkg_store_forgive(&d->store, &d->bad, id, exactly, err);

        return r == 0 && id ? lkg_error_set(err, -ENOENT, NULL, "%s is not in the bad list", id) : r;
}

/* ---- words ---- */

void lkg_dynamic_word(const struct lkg_config_source *source, bool has_base,
                      char ret[static LKG_SOURCE_ID_MAX + 2 * LKG_IDENTIFIER_MAX + 4])
{
        char id[LKG_SOURCE_ID_MAX + 1];

        if (lkg_config_source_is_local(source)) {
                (void)strcpy(ret, has_base ? "init" : "default");
                return;
        }
        lkg_config_source_id(source, id);
        (void)snprintf(ret, LKG_SOURCE_ID_MAX + 2 * LKG_IDENTIFIER_MAX + 4, "%s %s/%s", id, source->ns,
                       source->name);
}
