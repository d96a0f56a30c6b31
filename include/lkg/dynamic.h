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
/** lkg_dynamic_has_mark() - is there a mark with exactly this name? */
bool lkg_dynamic_has_mark(const struct lkg_dynamic *d, const char *id);
/** lkg_dynamic_is_good_document() - is the document with this digest the stored last known good one (trialScope all)? */
bool lkg_dynamic_is_good_document(const struct lkg_dynamic *d, const char *sha256);
/**
 * lkg_dynamic_document_source() - the source under which the document with this digest is marked and tried
 * (trialScope all).
 */
struct lkg_config_source lkg_dynamic_document_source(const char *sha256);
/** lkg_dynamic_is_bad_document() - is the document with this digest marked bad (trialScope all)? */
bool lkg_dynamic_is_bad_document(const struct lkg_dynamic *d, const char *sha256);
/** lkg_dynamic_bad_document() - the entry that marks it bad, or NULL. */
const struct lkg_bad *lkg_dynamic_bad_document(const struct lkg_dynamic *d, const char *sha256);

/**
 * lkg_dynamic_assign() - @source, whose checkpoint is durable, becomes assigned. The same bytes under
 * another version replace the old one in every pointer, and no new trial begins. A version with the bytes of
 * a bad one is bad, too.
 * @node_uid: the Node that has this reference, stored in the same step; NULL = not on a Node: the previous
 * one is kept
 */
int lkg_dynamic_assign(struct lkg_dynamic *d, const struct lkg_config_source *source, const char *node_uid,
                       uint64_t wall_ns, struct lkg_error *err);
/** lkg_dynamic_note_node() - the assigned reference is now on the Node with this uid. */
int lkg_dynamic_note_node(struct lkg_dynamic *d, const char *node_uid, struct lkg_error *err);

/** lkg_dynamic_follow() - assigned becomes active; its trial begins when it is first served. */
int lkg_dynamic_follow(struct lkg_dynamic *d, struct lkg_error *err);

/**
 * lkg_dynamic_begin_trial() - the active configuration is served for the first time.
 * @sha256: of the document, which is itself on trial if every generation is
 */
int lkg_dynamic_begin_trial(struct lkg_dynamic *d, const char *sha256, struct lkg_trial_rules rules,
                            uint64_t now_ns, uint64_t wall_ns, struct lkg_error *err);
/** lkg_dynamic_end_trial() - the configuration on trial is no longer served. */
void lkg_dynamic_end_trial(struct lkg_dynamic *d);
/** lkg_dynamic_is_other_trial() - trialScope all: another document than @sha256 was on trial. */
bool lkg_dynamic_is_other_trial(const struct lkg_dynamic *d, const char *sha256);
/**
 * lkg_dynamic_resume() - trialScope all: @sha256 has been served since before this engine started; its trial
 * continues.
 */
int lkg_dynamic_resume(struct lkg_dynamic *d, const char *sha256, struct lkg_report *report);

/** lkg_dynamic_condemn() - mark @source bad. @id: NULL = that of @source; else a uid or an id. */
int lkg_dynamic_condemn(struct lkg_dynamic *d, const struct lkg_config_source *source, const char *id,
                        enum lkg_bad_cause cause, const char *reason, uint64_t wall_ns,
                        struct lkg_error *err);

/**
 * lkg_dynamic_forgive() - remove marks.
 * @id:      NULL = all; a uid also stands for all its versions
 * @exactly: only the mark with exactly this name
 * Return: number of entries removed; -ENOENT: none; -errno.
 */
int lkg_dynamic_forgive(struct lkg_dynamic *d, const char *id, bool exactly, struct lkg_error *err);

/** lkg_dynamic_fall_back() - the last known good becomes active because of @reason. @generation: the one that is abandoned. */
int lkg_dynamic_fall_back(struct lkg_dynamic *d, const char *reason, uint64_t generation, uint64_t wall_ns,
                          struct lkg_error *err);

/**
 * lkg_dynamic_pass_over() - trialScope all: the layers merged to this document when the stored one was
 * taken, so it is not served before they merge to another one. @sha256: "" = none
 */
int lkg_dynamic_pass_over(struct lkg_dynamic *d, const char *sha256, struct lkg_error *err);

/**
 * lkg_dynamic_drop_good() - the last known good is itself marked bad: from now on the local configuration is
 * the last known good.
 */
int lkg_dynamic_drop_good(struct lkg_dynamic *d, struct lkg_error *err);

/** lkg_dynamic_promote() - the active configuration, served as @generation with this document, becomes the last known good. */
int lkg_dynamic_promote(struct lkg_dynamic *d, uint64_t generation, const void *document, size_t size,
                        uint64_t wall_ns, struct lkg_error *err);

/** lkg_dynamic_reset() - back to the local configuration: last known good and assigned are cleared in one step. */
int lkg_dynamic_reset(struct lkg_dynamic *d, uint64_t wall_ns, struct lkg_error *err);

/** lkg_dynamic_save_trial() - durable when it has returned 0. */
int lkg_dynamic_save_trial(struct lkg_dynamic *d, uint64_t now_ns, struct lkg_error *err);

/** lkg_dynamic_note_start() - record a start, durably. */
int lkg_dynamic_note_start(struct lkg_dynamic *d, const struct lkg_startup *startup, struct lkg_error *err);

/** lkg_dynamic_word() - `<id> <namespace>/<name>`, `init` or `default`, as shown in status/. */
void lkg_dynamic_word(const struct lkg_config_source *source, bool has_base,
                      char ret[static LKG_SOURCE_ID_MAX + 2 * LKG_IDENTIFIER_MAX + 4]);
