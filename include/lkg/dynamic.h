/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Dynamic configuration of one component: the pointers, the bad list, the trial. Every change is durable
 * before the function returns, and is undone in memory if it could not be made durable. This code does not
 * know layers and publishes nothing; engine-remote.c and engine-starts.c decide what to call.
 */
#pragma once

#include <lkg/config.h>
#include <lkg/guard.h>
#include <lkg/store.h>

/* The current result of the reference; the only part that is not stored. */
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
        struct lkg_trial trial; /* of pointers.active; after a rollback the failed one */
        uint64_t trial_saved_ns;
        struct lkg_config_source document; /* trialScope all: local@<12 hex>, the document on trial */
        bool watched;     /* processes of the component are recognised: they drive the trial clock */
        bool scope_all;   /* every generation is on trial, not only a remote one */
        bool good_failed; /* the last known good could not be used either */
        char boot[LKG_BOOT_ID_MAX];

        enum lkg_desired_state desired;
        char desired_fault[LKG_REASON_MAX]; /* UNKNOWN: the reason */
        char waiting[256];                  /* REMOTE: why the rollout holds it back; "" = it does not */
};

/** lkg_dynamic_open() - read everything; damage goes to @report. */
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

/** lkg_dynamic_is_bad() - the entry that marks @source bad, or NULL. */
const struct lkg_bad *lkg_dynamic_is_bad(const struct lkg_dynamic *d,
                                         const struct lkg_config_source *source);
/** lkg_dynamic_is_good_document() - is the document with this digest the stored last known good one (trialScope all)? */
bool lkg_dynamic_is_good_document(const struct lkg_dynamic *d, const char *sha256);
/** lkg_dynamic_is_bad_document() - is the document with this digest marked bad (trialScope all)? */
bool lkg_dynamic_is_bad_document(const struct lkg_dynamic *d, const char *sha256);
/** lkg_dynamic_bad_document() - the entry that marks it bad, or NULL. */
const struct lkg_bad *lkg_dynamic_bad_document(const struct lkg_dynamic *d, const char *sha256);

/**
 * lkg_dynamic_resume() - trialScope all: @sha256 has been served since before this engine started; its trial
 * continues.
 */
int lkg_dynamic_resume(struct lkg_dynamic *d, const char *sha256, struct lkg_report *report);

/**
 * lkg_dynamic_forgive() - remove marks.
 * @id:      NULL = all; a uid also stands for all its versions
 * @exactly: only the mark with exactly this name
 * Return: number of entries removed; -ENOENT: none; -errno.
 */
int lkg_dynamic_forgive(struct lkg_dynamic *d, const char *id, bool exactly, struct lkg_error *err);

/** lkg_dynamic_word() - `<id> <namespace>/<name>`, `init` or `default`, as shown in status/. */
void lkg_dynamic_word(const struct lkg_config_source *source, bool has_base,
                      char ret[static LKG_SOURCE_ID_MAX + 2 * LKG_IDENTIFIER_MAX + 4]);
