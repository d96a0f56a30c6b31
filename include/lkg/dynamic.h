/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Dynamic configuration of one component in memory: pointers, bad list, starts, trial, as loaded from the
 * store. lkg_step() (<lkg/lifecycle.h>) decides what changes and the engine's effects store it; the functions
 * here that change something store it themselves. Knows no layers and publishes nothing.
 */
#pragma once

#include <lkg/config.h>
#include <lkg/guard.h>
#include <lkg/store.h>

/* What the reference says now; not stored. */
enum lkg_desired_state {
        LKG_DESIRED_NONE,    /* no reference is configured, or remote configuration is off */
        LKG_DESIRED_UNKNOWN, /* it cannot be determined; desired_fault has the reason */
        LKG_DESIRED_LOCAL,
        LKG_DESIRED_REMOTE,
};

struct lkg_dynamic {
        struct lkg_store_component store;
        struct lkg_pointers pointers;
        struct lkg_bad_list bad;
        struct lkg_startups startups;
        struct lkg_trial trial; /* of pointers.active; after a rollback, the failed one */
        uint64_t trial_saved_ns;
        struct lkg_config_source document; /* trial.scope all: local@<12 hex>, the document on trial */
        bool watched;     /* processes of the component are recognised: they drive the trial clock */
        bool scope_all;   /* every generation is on trial, not only a remote one */
        bool good_failed; /* the last known good cannot be used either */
        char boot[LKG_BOOT_ID_MAX];

        enum lkg_desired_state desired;
        char desired_fault[LKG_REASON_MAX]; /* UNKNOWN: the reason */
        char waiting[256];                  /* REMOTE: why the rollout holds it back; "" = it does not */
};

/** lkg_dynamic_open() - read everything from the store; damage is reported in @report. */
int lkg_dynamic_open(const struct lkg_store *store, const struct lkg_config *config,
                     const struct lkg_config_component *k, struct lkg_dynamic **ret,
                     struct lkg_report *report, struct lkg_error *err);
/** lkg_dynamic_configure() - our own configuration has changed. */
void lkg_dynamic_configure(struct lkg_dynamic *d, const struct lkg_config *config,
                           const struct lkg_config_component *k);
struct lkg_dynamic *lkg_dynamic_free(struct lkg_dynamic *d);

/**
 * lkg_dynamic_set_release() - select the version whose bad list and starts are used.
 * @guess: the name used while the version was unknown: its records move to @version
 * Return: 1: it has changed; 0; -errno.
 */
int lkg_dynamic_set_release(struct lkg_dynamic *d, const char *version, const char *guess,
                            struct lkg_report *report, struct lkg_error *err);

/** lkg_dynamic_is_bad() - the mark of @source, or NULL. */
const struct lkg_bad *lkg_dynamic_is_bad(const struct lkg_dynamic *d,
                                         const struct lkg_config_source *source);
/** lkg_dynamic_is_bad_document() - is the document with this digest marked bad (trial.scope all)? */
bool lkg_dynamic_is_bad_document(const struct lkg_dynamic *d, const char *sha256);
/** lkg_dynamic_bad_document() - the mark of the document with this digest, or NULL. */
const struct lkg_bad *lkg_dynamic_bad_document(const struct lkg_dynamic *d, const char *sha256);

/**
 * lkg_dynamic_resume() - trial.scope all: continue the trial of the document @sha256, which was served before
 * this engine started.
 */
int lkg_dynamic_resume(struct lkg_dynamic *d, const char *sha256, struct lkg_report *report);

/**
 * lkg_dynamic_forgive() - remove marks.
 * @id:      NULL = all; a uid also means all its versions
 * @exactly: only the mark with exactly this name
 * Return: number of entries removed; -ENOENT: none; -errno.
 */
int lkg_dynamic_forgive(struct lkg_dynamic *d, const char *id, bool exactly, struct lkg_error *err);

/** lkg_dynamic_word() - `<id> <namespace>/<name>`, `init` or `default`, as shown in status/. */
void lkg_dynamic_word(const struct lkg_config_source *source, bool has_base,
                      char ret[static LKG_SOURCE_ID_MAX + 2 * LKG_IDENTIFIER_MAX + 4]);
