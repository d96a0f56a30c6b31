/* SPDX-License-Identifier: Apache-2.0 */
/* The durable steps of dynamic configuration: see dynamic.h. */
#include <lkg/dynamic.h>

/* ---- begin and end ---- */

static bool is_watched(const struct lkg_config_component *k)
{
        return *k->match.unit || k->match.exe.n_items > 0 || k->match.cgroup.n_items > 0;
}

/* Whose trial is on disk: that of the active source, or of the abandoned one. */
static const struct lkg_config_source *tried(const struct lkg_dynamic *d)
{
        if (d->scope_all)
                return &d->document;
        return *d->pointers.rollback.reason ? &d->pointers.rollback.from : &d->pointers.active;
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
        bool watched = is_watched(k);

        if (watched != d->watched && d->trial.state == LKG_TRIAL_RUNNING) {
                d->trial = lkg_trial_alive(d->trial, false, lkg_boottime_ns());
                d->trial = lkg_trial_resume(d->trial, watched, lkg_boottime_ns());
        }
        d->watched = watched;
        d->scope_all = config->trial.scope == LKG_TRIAL_ALL;
}

struct lkg_config_source lkg_dynamic_document_source(const char *sha256)
{
        struct lkg_config_source source = { .uid = "local", .key = LKG_KEY_DEFAULT };

        (void)snprintf(source.version, sizeof(source.version), "%.12s", sha256);
        return source;
}

bool lkg_dynamic_is_good_document(const struct lkg_dynamic *d, const char *sha256)
{
        return *sha256 && strcmp(d->pointers.good.sha256, sha256) == 0;
}

/*
 * The pointers are stored before the end of the trial: a configuration that they call good or abandoned is not on trial any
 * more.
 */
static void believe_pointers(struct lkg_dynamic *d, const char *sha256)
{
        bool good = d->scope_all
                            ? lkg_dynamic_is_good_document(d, sha256)
                            : !lkg_config_source_is_local(&d->pointers.active) &&
                                      lkg_config_source_equal(&d->pointers.active, &d->pointers.good.source);

        if (d->trial.state != LKG_TRIAL_RUNNING)
                return;
        if (!d->scope_all && *d->pointers.rollback.reason)
                d->trial.state = LKG_TRIAL_FAILED;
        else if (good)
                d->trial.state = LKG_TRIAL_PASSED;
}

int lkg_dynamic_open(const struct lkg_store *store, const struct lkg_config *config,
                     const struct lkg_config_component *k, struct lkg_dynamic **ret,
                     struct lkg_report *report, struct lkg_error *err)
{
        struct lkg_dynamic *d = calloc(1, sizeof(*d));
        int r;

        if (!d)
                return lkg_error_set(err, -ENOMEM, NULL, "dynamic configuration of %s", k->name);
        d->store.fd = -EBADF;
        lkg_dynamic_configure(d, config, k);
        lkg_boot_id(d->boot);
        r = lkg_store_component_open(store, k->name, &d->store, report, err);
        if (r >= 0)
                r = lkg_store_load_pointers(&d->store, &d->pointers, report);
        if (r >= 0)
                r = load_release(d, report);
        if (r >= 0 && !d->scope_all)
                r = lkg_store_load_trial(&d->store, tried(d), &d->trial, report);
        if (r < 0) {
                lkg_dynamic_free(d);
                return r;
        }
        if (!d->scope_all)
                believe_pointers(d, "");
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
 * Marks and starts from before the version was known. If a mark cannot be carried over, its configuration is tried once more;
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

int lkg_dynamic_set_release(struct lkg_dynamic *d, const char *version, const char *guess,
                            struct lkg_report *report, struct lkg_error *err)
{
        bool guessed = !*d->store.release || strcmp(d->store.release, guess) == 0;
        const struct lkg_startups startups = d->startups;
        struct lkg_bad_list bad;
        int r = lkg_store_set_release(&d->store, version, err), k;

        if (r <= 0)
                return r;
        bad = d->bad;
        d->bad = (struct lkg_bad_list){ 0 };
        k = load_release(d, report);
        if (k >= 0 && guessed)
                carry_over(d, &bad, &startups);
        else if (d->trial.state == LKG_TRIAL_RUNNING)
                d->trial.prior = 0; /* starts of another version prove nothing about this one */
        lkg_bad_list_deinit(&bad);
        return k < 0 ? k : 1;
}

/* ---- pointers ---- */

static int save(struct lkg_dynamic *d, const struct lkg_pointers *next, struct lkg_error *err)
{
        int r = lkg_store_save_pointers(&d->store, next, err);

        if (r >= 0)
                d->pointers = *next;
        return r;
}

/* The same bytes under another version: a pointer to the old one becomes one to the new one. */
static void rename_source(struct lkg_config_source *pointer, const struct lkg_config_source *old,
                          const struct lkg_config_source *new)
{
        if (lkg_config_source_equal(pointer, old))
                *pointer = *new;
}

static int mark_like(struct lkg_dynamic *d, const struct lkg_config_source *source, uint64_t wall_ns,
                     struct lkg_error *err)
{
        const struct lkg_bad *twin = lkg_bad_same_content(&d->bad, source);
        char reason[LKG_REASON_MAX];

        if (!twin || lkg_dynamic_is_bad(d, source))
                return 0;
        if (snprintf(reason, sizeof(reason), "%s (same content as %s)", twin->reason, twin->id) < 0)
                return -EINVAL;
        return lkg_dynamic_condemn(d, source, NULL, twin->cause, reason, wall_ns, err);
}

static void set_node(struct lkg_pointers *pointers, const char *node_uid)
{
        if (node_uid)
                (void)snprintf(pointers->node_uid, sizeof(pointers->node_uid), "%s", node_uid);
}

int lkg_dynamic_note_node(struct lkg_dynamic *d, const char *node_uid, struct lkg_error *err)
{
        struct lkg_pointers next = d->pointers;

        if (strcmp(next.node_uid, node_uid) == 0)
                return 0;
        set_node(&next, node_uid);
        return save(d, &next, err);
}

/*
 * A configuration that is known to be good under an older version needs no trial under this one. If it was rolled back to, the
 * rollback is over, and the failed trial is forgotten.
 */
static int assign_good(struct lkg_dynamic *d, struct lkg_pointers *next,
                       const struct lkg_config_source *source, struct lkg_error *err)
{
        bool serves = lkg_config_source_equal(&next->active, &next->good.source);
        int r;

        next->good.source = *source;
        if (serves) {
                next->active = *source;
                memset(&next->rollback, 0, sizeof(next->rollback));
        }
        r = save(d, next, err);
        if (r >= 0 && serves)
                d->trial = (struct lkg_trial){ .state = LKG_TRIAL_IDLE };
        return r;
}

int lkg_dynamic_assign(struct lkg_dynamic *d, const struct lkg_config_source *source, const char *node_uid,
                       uint64_t wall_ns, struct lkg_error *err)
{
        struct lkg_pointers next = d->pointers;
        const struct lkg_config_source old = d->pointers.assigned;
        int r = mark_like(d, source, wall_ns, err);

        if (r < 0)
                return r;
        set_node(&next, node_uid);
        if (lkg_config_source_same_content(&old, source)) {
                struct lkg_trial trial = d->trial;

                rename_source(&next.active, &old, source);
                rename_source(&next.good.source, &old, source);
                rename_source(&next.rollback.from, &old, source);
                next.assigned = *source;
                /* Its trial goes on: stored under the new name before the pointers. */
                r = lkg_config_source_equal(tried(d), &old)
                            ? lkg_store_save_trial(&d->store, source, &trial, lkg_boottime_ns(), err)
                            : 0;
                return r < 0 ? r : save(d, &next, err);
        }
        next.assigned = *source;
        next.assigned_ns = wall_ns;
        if (lkg_config_source_same_content(&next.good.source, source))
                return assign_good(d, &next, source, err);
        return save(d, &next, err);
}

int lkg_dynamic_follow(struct lkg_dynamic *d, struct lkg_error *err)
{
        const struct lkg_trial none = { .state = LKG_TRIAL_IDLE };
        struct lkg_pointers next = d->pointers;
        int r = 0;

        next.active = next.assigned;
        memset(&next.rollback, 0, sizeof(next.rollback));
        /* Its trial is a new one, even if the record of an earlier one is left: removed before the pointers are written. */
        if (!d->scope_all)
                r = lkg_store_save_trial(&d->store, &next.active, &none, lkg_boottime_ns(), err);
        if (r >= 0)
                r = save(d, &next, err);
        if (r >= 0) {
                d->trial = none;
                d->good_failed = false;
        }
        return r;
}

int lkg_dynamic_fall_back(struct lkg_dynamic *d, const char *reason, uint64_t generation, uint64_t wall_ns,
                          struct lkg_error *err)
{
        struct lkg_pointers next = d->pointers;
        int r;

        next.rollback.from = d->pointers.active;
        (void)snprintf(next.rollback.reason, sizeof(next.rollback.reason), "%s", reason);
        next.rollback.time_ns = wall_ns;
        next.rollback.starts_since = 0;
        next.rollback.abandoned_generation = generation;
        (void)snprintf(next.rollback.passed_over, sizeof(next.rollback.passed_over), "%s",
                       d->scope_all ? LKG_PASSED_OVER_UNKNOWN : "");
        next.active = next.good.source;
        r = save(d, &next, err);
        if (r < 0 || (d->trial.state != LKG_TRIAL_RUNNING && d->trial.state != LKG_TRIAL_FAILED))
                return r;
        d->trial = lkg_trial_alive(d->trial, false, lkg_boottime_ns());
        d->trial.state = LKG_TRIAL_FAILED;
        (void)lkg_dynamic_save_trial(d, lkg_boottime_ns(), NULL); /* the pointers say so, too */
        return r;
}

int lkg_dynamic_pass_over(struct lkg_dynamic *d, const char *sha256, struct lkg_error *err)
{
        struct lkg_pointers next = d->pointers;

        if (strcmp(next.rollback.passed_over, sha256) == 0)
                return 0;
        (void)snprintf(next.rollback.passed_over, sizeof(next.rollback.passed_over), "%s", sha256);
        return save(d, &next, err);
}

int lkg_dynamic_drop_good(struct lkg_dynamic *d, struct lkg_error *err)
{
        struct lkg_pointers next = d->pointers;

        memset(&next.good, 0, sizeof(next.good));
        return save(d, &next, err);
}

int lkg_dynamic_promote(struct lkg_dynamic *d, uint64_t generation, const void *document, size_t size,
                        uint64_t wall_ns, struct lkg_error *err)
{
        struct lkg_pointers next = d->pointers;
        char sha256[LKG_SHA256_HEX];
        int r = lkg_store_save_document(&d->store, document, size,
                                        *d->pointers.good.sha256 ? d->pointers.good.sha256 : NULL, sha256,
                                        err);

        if (r < 0)
                return r;
        next.good = (struct lkg_good){ .source = next.active, .generation = generation, .time_ns = wall_ns };
        memcpy(next.good.sha256, sha256, sizeof(sha256));
        r = save(d, &next, err);
        if (r < 0 || d->trial.state != LKG_TRIAL_RUNNING)
                return r;
        d->trial = lkg_trial_alive(d->trial, false, lkg_boottime_ns());
        d->trial.state = LKG_TRIAL_PASSED;
        (void)lkg_dynamic_save_trial(d, lkg_boottime_ns(), NULL);
        return r;
}

int lkg_dynamic_reset(struct lkg_dynamic *d, uint64_t wall_ns, struct lkg_error *err)
{
        struct lkg_pointers next = { .assigned_ns = wall_ns };
        int r = save(d, &next, err);

        if (r >= 0) {
                d->trial = (struct lkg_trial){ .state = LKG_TRIAL_IDLE };
                d->good_failed = false;
        }
        return r;
}

/* ---- the trial ---- */

int lkg_dynamic_save_trial(struct lkg_dynamic *d, uint64_t now_ns, struct lkg_error *err)
{
        int r = lkg_store_save_trial(&d->store, tried(d), &d->trial, now_ns, err);

        if (r >= 0)
                d->trial_saved_ns = now_ns;
        return r;
}

bool lkg_dynamic_is_other_trial(const struct lkg_dynamic *d, const char *sha256)
{
        return d->scope_all && strncmp(d->document.version, sha256, 12) != 0;
}

void lkg_dynamic_end_trial(struct lkg_dynamic *d)
{
        d->trial = (struct lkg_trial){ .state = LKG_TRIAL_IDLE };
        (void)lkg_dynamic_save_trial(d, lkg_boottime_ns(), NULL);
}

int lkg_dynamic_resume(struct lkg_dynamic *d, const char *sha256, struct lkg_report *report)
{
        int r;

        if (!d->scope_all)
                return 0;
        d->document = lkg_dynamic_document_source(sha256);
        r = lkg_store_load_trial(&d->store, &d->document, &d->trial, report);
        if (r < 0)
                return r;
        believe_pointers(d, sha256);
        d->trial = lkg_trial_resume(d->trial, d->watched, lkg_boottime_ns());
        /* The last one was that of the abandoned document, and failed; the last known good has none. */
        if (d->trial.state == LKG_TRIAL_IDLE && *d->pointers.rollback.reason &&
            lkg_dynamic_is_good_document(d, sha256)) {
                r = lkg_store_load_trial(&d->store, NULL, &d->trial, report);
                d->trial.state = LKG_TRIAL_FAILED;
        }
        return r;
}

int lkg_dynamic_begin_trial(struct lkg_dynamic *d, const char *sha256, struct lkg_trial_rules rules,
                            uint64_t now_ns, uint64_t wall_ns, struct lkg_error *err)
{
        const struct lkg_trial before = d->trial;
        LKG_CLEANUP(lkg_report_deinit) struct lkg_report ignored = LKG_REPORT_INIT;
        int r;

        d->document = lkg_dynamic_document_source(sha256);
        /* After a power cut only the trial is known, not the served document: the trial of the same document goes on. */
        if (d->scope_all && lkg_store_load_trial(&d->store, &d->document, &d->trial, &ignored) >= 0 &&
            d->trial.state == LKG_TRIAL_RUNNING) {
                d->trial = lkg_trial_resume(d->trial, d->watched, now_ns);
                return 0;
        }
        d->trial = lkg_trial_begin(rules, d->watched, now_ns, wall_ns);
        r = lkg_dynamic_save_trial(d, now_ns, err);
        if (r < 0)
                d->trial = before;
        return r;
}

int lkg_dynamic_note_start(struct lkg_dynamic *d, const struct lkg_startup *startup, struct lkg_error *err)
{
        lkg_startups_add(&d->startups, d->boot, startup);
        return lkg_store_save_startups(&d->store, &d->startups, err);
}

/* ---- bad list ---- */

const struct lkg_bad *lkg_dynamic_is_bad(const struct lkg_dynamic *d, const struct lkg_config_source *source)
{
        return lkg_config_source_is_local(source) ? NULL : lkg_bad_find(&d->bad, source);
}

bool lkg_dynamic_has_mark(const struct lkg_dynamic *d, const char *id)
{
        for (size_t i = 0; i < d->bad.n_items; i++)
                if (strcmp(d->bad.items[i].id, id) == 0)
                        return true;
        return false;
}

const struct lkg_bad *lkg_dynamic_bad_document(const struct lkg_dynamic *d, const char *sha256)
{
        const struct lkg_config_source source = lkg_dynamic_document_source(sha256);

        return lkg_bad_find(&d->bad, &source);
}

bool lkg_dynamic_is_bad_document(const struct lkg_dynamic *d, const char *sha256)
{
        return lkg_dynamic_bad_document(d, sha256) != NULL;
}

int lkg_dynamic_condemn(struct lkg_dynamic *d, const struct lkg_config_source *source, const char *id,
                        enum lkg_bad_cause cause, const char *reason, uint64_t wall_ns,
                        struct lkg_error *err)
{
        struct lkg_bad bad = { .time_ns = wall_ns, .cause = cause, .source = *source };

        if (id)
                (void)snprintf(bad.id, sizeof(bad.id), "%s", id);
        else
                lkg_config_source_id(source, bad.id);
        (void)snprintf(bad.reason, sizeof(bad.reason), "%s", reason);
        return lkg_store_mark_bad(&d->store, &d->bad, &bad, err);
}

int lkg_dynamic_forgive(struct lkg_dynamic *d, const char *id, bool exactly, struct lkg_error *err)
{
        int r = exactly ? lkg_store_forgive_one(&d->store, &d->bad, id, err)
                        : lkg_store_forgive(&d->store, &d->bad, id, err);

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
