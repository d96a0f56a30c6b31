/* SPDX-License-Identifier: Apache-2.0 */
/*
 * State of dynamic configuration that survives restarts, reboots and power cuts, in the private state directory (0700).
 * All of it is readable text:
 *
 *     format                                       "lkgfs-state 1"
 *     store.lock                                   flock(2): one engine at a time (`lock` is lkgfsd's)
 *     checkpoints/<uid>/<version>/configmap.json   the whole object, immutable (0600)
 *     dynamic/<component>/pointers.json            assigned, active, last known good, rollback, UID of the Node
 *     dynamic/<component>/trial.json               trial of the active source; saved often
 *     dynamic/<component>/documents/<sha256>       full document of the last known good (0600)
 *     dynamic/<component>/release                  name of the directory in use, without a line break
 *     dynamic/<component>/releases/<name>/bad/<source id or uid>   one file per configuration known to be bad
 *     dynamic/<component>/releases/<name>/startups.json            the last LKG_STARTUPS_MAX starts
 *
 * Every change is one atomic step: a file is written under another name, flushed and renamed, and its directory is flushed. If
 * a file refers to another, the other is durable first (checkpoint, document and bad mark before pointers), so a crash at any
 * system call leaves the old or the new state. An operation that fails leaves the old state, unless only the last flush failed:
 * then the new state is in place, but may not survive a power cut.
 * Rules: docs/specification.md 4.16.
 *
 * A file that cannot be read or parsed (torn, empty, foreign, of a newer format) is reported, kept as `<name>.damaged`
 * (because it will be overwritten) and treated as absent; the rest is still used. In a record that can be read, each field is
 * checked alone.
 *
 * The configuration checks the names of components; callers check sources with lkg_config_source_check() first.
 */
#pragma once

#include <lkg/admission.h>
#include <lkg/buf.h>
#include <lkg/configmap.h>
#include <lkg/error.h>
#include <lkg/lifecycle.h>
#include <lkg/source.h>

#define LKG_BAD_MAX        256u /* entries kept; the oldest is dropped first */
#define LKG_RELEASE_NAME   64u  /* with its final NUL */
#define LKG_RELEASES_MAX   5u   /* directories kept; the least recently used is dropped first */
#define LKG_COMPONENT_PATH 160u

/* ---- the whole directory ---- */

struct lkg_store_lock {
        int fd;
        bool read_only;
};

struct lkg_store {
        int fd;         /* state directory; borrowed */
        int lock_fd;    /* held */
        bool read_only; /* on a read-only file system: the stored state is used, every save fails with -EROFS */
        const struct lkg_admission
                *admission; /* asked before a checkpoint is parsed; borrowed; NULL = no check */
};

/**
 * lkg_store_lock() - the part of lkg_store_open() that needs flock(2), which the engine may no longer call once it reads
 * foreign content.
 * @n_tries: how often, 100 ms apart, while another process has it
 *
 * Return: 0 (then call lkg_store_open_locked() or lkg_close()); -EBUSY: another process holds the lock (@err has its pid, if
 * known); -EPROTO: a newer format, nothing was changed; -errno.
 */
int lkg_store_lock(int state_fd, unsigned n_tries, struct lkg_store_lock *ret, struct lkg_error *err);
/**
 * lkg_store_open_locked() - check the format, create what is missing, remove temporary files that a crash left. Takes over
 * @lock, also on failure.
 * Return: 0; -EPROTO as above; -EROFS, -ENOSPC, ...: something is missing and cannot be created (the caller may continue
 * without a store); -errno. A complete store on a read-only file system is opened, with a finding.
 */
int lkg_store_open_locked(int state_fd, const struct lkg_store_lock *lock, struct lkg_store *ret,
                          struct lkg_report *report, struct lkg_error *err);
/** lkg_store_open() - lkg_store_lock() and lkg_store_open_locked(). */
int lkg_store_open(int state_fd, struct lkg_store *ret, struct lkg_report *report, struct lkg_error *err);
void lkg_store_close(struct lkg_store *store);

/* ---- checkpoints: shared by all components ---- */

/** lkg_store_has_checkpoint() - is there a complete checkpoint of exactly this object? */
bool lkg_store_has_checkpoint(const struct lkg_store *store, const struct lkg_config_source *source);
/** lkg_store_save_checkpoint() - durable on return; an equal checkpoint is left alone, a damaged one is replaced. */
int lkg_store_save_checkpoint(const struct lkg_store *store, const struct lkg_configmap *configmap,
                              struct lkg_error *err);
/**
 * lkg_store_load_checkpoint() - the object of @source.
 * Return: 0; -ENOENT; -EBADMSG: damaged, or another object; -EKEYREJECTED: refused by the admission check; -errno. The caller
 * calls lkg_configmap_deinit().
 */
int lkg_store_load_checkpoint(const struct lkg_store *store, const struct lkg_config_source *source,
                              struct lkg_configmap *ret, struct lkg_error *err);
/** lkg_store_collect() - remove every checkpoint except those of @keep. Return: number removed, or -errno. */
int lkg_store_collect(const struct lkg_store *store, const struct lkg_config_source *keep, size_t n_keep,
                      struct lkg_error *err);

/* ---- one component ---- */

/* Its directories, and the release whose bad list and startups are used. */
struct lkg_store_component {
        const struct lkg_store *store;  /* borrowed */
        int fd;                         /* dynamic/<component> */
        char path[LKG_COMPONENT_PATH];  /* the same below the state directory, for findings */
        char release[LKG_RELEASE_NAME]; /* "v1.36.3"; "" = not known yet: the directory "unknown" is used */
};

/**
 * lkg_store_component_open() - create and open the directories; release is the one used last.
 * If it fails, the caller continues without remote configuration.
 */
int lkg_store_component_open(const struct lkg_store *store, const char *component,
                             struct lkg_store_component *ret, struct lkg_report *report,
                             struct lkg_error *err);
void lkg_store_component_close(struct lkg_store_component *c);

/** lkg_store_is_release() - are the bad list and the starts of @release used? Return: 1, 0 or -errno. */
int lkg_store_is_release(const struct lkg_store_component *c, const char *release, struct lkg_error *err);
/**
 * lkg_store_set_release() - switch to the bad list and startups of another release; durable. Keeps those of the LKG_RELEASES_MAX
 * used last. @release: any text; converted to a file name.
 * Return: 1: it has changed; 0; -errno.
 */
int lkg_store_set_release(struct lkg_store_component *c, const char *release, struct lkg_error *err);

/** lkg_store_load_pointers() - Return: 0, all empty if there are none, damage is reported in @report; -ENOMEM. */
int lkg_store_load_pointers(const struct lkg_store_component *c, struct lkg_pointers *ret,
                            struct lkg_report *report);
/** lkg_store_save_pointers() - durable on return. The checkpoints and the document that they name must exist. */
int lkg_store_save_pointers(const struct lkg_store_component *c, const struct lkg_pointers *pointers,
                            struct lkg_error *err);

/** lkg_store_save_document() - durable; named by its content. All others except @keep (may be NULL) are removed afterwards. */
int lkg_store_save_document(const struct lkg_store_component *c, const void *data, size_t size,
                            const char *keep, char ret_sha256[static LKG_SHA256_HEX], struct lkg_error *err);
/** lkg_store_load_document() - Return: 0, caller frees; -ENOENT; -EBADMSG: the content does not match its name; -errno. */
int lkg_store_load_document(const struct lkg_store_component *c, const char *sha256, char **ret,
                            size_t *ret_size, struct lkg_error *err);

/**
 * lkg_store_load_trial() - the trial of @source (NULL: of any); IDLE if there is no record, or one of another source.
 * Times are for this boot: running_since_ns is 0.
 */
int lkg_store_load_trial(const struct lkg_store_component *c, const struct lkg_config_source *source,
                         struct lkg_trial *ret, struct lkg_report *report);
int lkg_store_save_trial(const struct lkg_store_component *c, const struct lkg_config_source *source,
                         const struct lkg_trial *trial, uint64_t now_ns, struct lkg_error *err);

/* ---- bad list ---- */

/** lkg_store_load_bad() - the bad list of the current release. Damaged entries still count; their reason says so. */
int lkg_store_load_bad(const struct lkg_store_component *c, struct lkg_bad_list *ret,
                       struct lkg_report *report);
void lkg_bad_list_deinit(struct lkg_bad_list *list);
/** lkg_store_mark_bad() - durable, then added to @list. An existing entry is replaced. */
int lkg_store_mark_bad(const struct lkg_store_component *c, struct lkg_bad_list *list,
                       const struct lkg_bad *bad, struct lkg_error *err);
/**
 * lkg_store_forgive() - remove marks durably, then from @list. @id: NULL = all; a uid means all its versions, too.
 * Return: number removed; -errno.
 */
int lkg_store_forgive(const struct lkg_store_component *c, struct lkg_bad_list *list, const char *id,
                      struct lkg_error *err);
/** lkg_store_forgive_one() - remove the mark with exactly this name, as rm(1) does. Return: 1; 0: none; -errno. */
int lkg_store_forgive_one(const struct lkg_store_component *c, struct lkg_bad_list *list, const char *id,
                          struct lkg_error *err);
/** lkg_bad_format() - the JSON of docs/specification.md 2.12 in one line, as stored and as shown. */
void lkg_bad_format(const struct lkg_bad *bad, struct lkg_buf *buf);

/* ---- starts ---- */

int lkg_store_load_startups(const struct lkg_store_component *c, struct lkg_startups *ret,
                            struct lkg_report *report);
int lkg_store_save_startups(const struct lkg_store_component *c, const struct lkg_startups *startups,
                            struct lkg_error *err);
/**
 * lkg_startups_add() - append @startup; drops the oldest if there are too many.
 * @boot: id of this boot; if it has changed, the entries no longer identify processes
 */
void lkg_startups_add(struct lkg_startups *startups, const char *boot, const struct lkg_startup *startup);
/** lkg_startups_knows() - is this process of @boot already recorded? */
bool lkg_startups_knows(const struct lkg_startups *startups, const char *boot, int pid, uint64_t start_time);
