/* SPDX-License-Identifier: Apache-2.0 */
/* What survives a restart: pointers, checkpoints, generations, history, marks, poison. */
#pragma once

#include <limits.h>

#include <lkg/admission.h>
#include <lkg/base.h>
#include <lkg/config.h>
#include <lkg/lifecycle.h>
#include <lkg/objects.h>
#include <lkg/stack.h>
#include <lkg/text.h>

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
        /* asked before a checkpoint is parsed; borrowed; NULL = no check */
        const struct lkg_admission *admission;
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

/** lkg_store_is_release() - are the bad list and the starts of @release used? */
bool lkg_store_is_release(const struct lkg_store_component *c, const char *release);
/**
 * lkg_store_set_release() - switch to the bad list and startups of another release; durable. Keeps those of the LKG_RELEASES_MAX
 * used last. @release: any text of at most 63 bytes; converted to a file name.
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
/** lkg_bad_keep() - add a mark in memory only, because it cannot be written. */
void lkg_bad_keep(struct lkg_bad_list *list, const struct lkg_bad *bad);
/** lkg_store_mark_bad() - durable, then added to @list. An existing entry is replaced. */
int lkg_store_mark_bad(const struct lkg_store_component *c, struct lkg_bad_list *list,
                       const struct lkg_bad *bad, struct lkg_error *err);
/**
 * lkg_store_forgive() - remove marks durably, then from @list.
 * @id:      NULL = all; a uid also means all its versions
 * @exactly: only the mark with exactly this name, as rm(1) does
 *
 * Return: number removed; -errno.
 */
int lkg_store_forgive(const struct lkg_store_component *c, struct lkg_bad_list *list, const char *id,
                      bool exactly, struct lkg_error *err);
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

/* ---- state ---- */

/*
 * State that survives a restart or a reboot, in the private state directory (0700):
 *
 *     generation-next              decimal: the first generation number that was never assigned
 *     components/<component>.json  hold, try, unfinished command, condition, last good generation
 *     history/<component>/<n>/     one generation: see below
 *
 * Every file is replaced atomically. A file that cannot be read or parsed is reported and treated as absent: an
 * engine that has lost some state is better than one that does not start.
 */

struct lkg_state {
        int fd;                  /* state directory; borrowed */
        uint64_t next, reserved; /* numbers next..reserved-1 can be assigned without a write to disk */
};

/** lkg_state_open() - create the directories, read generation-next. @report: what could not be read */
int lkg_state_open(int fd, struct lkg_state *ret, struct lkg_report *report, struct lkg_error *err);

/**
 * lkg_state_next_generation() - get a number that was never used. If none is left, reserves a block of 64 durably; a
 * crash leaves a gap.
 */
int lkg_state_next_generation(struct lkg_state *state, uint64_t *ret, struct lkg_error *err);

/** lkg_state_reserve_ahead() - if few numbers are left, reserve the next block now, when no caller waits for it. */
int lkg_state_reserve_ahead(struct lkg_state *state, struct lkg_error *err);

/** lkg_state_at_least() - numbers up to @used are in use: never assign them again. */
void lkg_state_at_least(struct lkg_state *state, uint64_t used);

/**
 * lkg_state_load_component() - read one component's state.
 * A try deadline of an earlier boot is converted through the wall clock; one of this boot is exact.
 * Return: 0, also if there is none; -ENOMEM. A damaged record is reported in @report and in `lost` of @ret.
 */
int lkg_state_load_component(const struct lkg_state *state, const char *component,
                             struct lkg_component_state *ret, struct lkg_report *report);
/**
 * lkg_state_keep_component() - link the current record under another name, so that lkg_state_restore_component() can restore
 * it without disk space. Kept until lkg_state_forget_kept() or the next start.
 */
int lkg_state_keep_component(const struct lkg_state *state, const char *component);
int lkg_state_restore_component(const struct lkg_state *state, const char *component);
void lkg_state_forget_kept(const struct lkg_state *state, const char *component);
int lkg_state_save_component(const struct lkg_state *state, const char *component,
                             const struct lkg_component_state *value, bool durable, struct lkg_error *err);

/* ---- generation ---- */

/*
 * A generation: one published document of one component, with everything that readers may see of it.
 * Immutable but for texts that are rendered when they are needed, and reference counted; used by the engine's thread only.
 */

struct lkg_text {
        char *data; /* NUL-terminated */
        size_t size;
};

struct lkg_generation {
        unsigned refs;
        uint64_t number;
        uint64_t time_ns;                        /* wall time of the publication */
        bool has_base;                           /* of a local one: `init`, else `default` */
        char source[LKG_SOURCE_ID_MAX + 1];      /* id of the remote configuration in it; "" = local */
        char source_sha256[LKG_SHA256_HEX];      /* of the bytes of that; "" = local, or not known */
        char object[2 * LKG_IDENTIFIER_MAX + 2]; /* its namespace/name */
        char sha256[LKG_SHA256_HEX];
        struct lkg_text document; /* the bytes served */
        /* what the rest is rendered from, when it is needed; NULL = it has been. lkg_generation_describe() */
        struct lkg_candidate *candidate;
        /* the document with secrets masked; data NULL = no secrets, show the document */
        struct lkg_text shown;
        struct lkg_text origin; /* TSV */
        struct lkg_text meta;   /* meta.json */
};

/**
 * lkg_document_render() - render the document of a valid candidate as it would be served.
 * @hint: text of the first comment line of a YAML document, without `# ` and newline; JSON gets none
 *
 * Failure is sticky in @buf.
 */
void lkg_document_render(const struct lkg_value *doc, enum lkg_format format, const char *hint,
                         struct lkg_buf *buf);

struct lkg_judge; /* schema.h */
/**
 * lkg_candidate_judge() - call lkg_judge_candidate(), then render a valid candidate and read it with a second
 * reader (<lkg/documents.h>): a difference is the error finding LKG2033. @hint: see lkg_document_render()
 */
void lkg_candidate_judge(struct lkg_candidate *candidate, struct lkg_judge *judge, const char *hint);
/**
 * lkg_candidate_take_text() - the text of a valid candidate; rendered again if somebody has it already. The caller frees
 * ->data.
 */
struct lkg_text lkg_candidate_take_text(struct lkg_candidate *candidate, const char *hint);

/**
 * lkg_candidate_finish() - the second half of that, for a candidate that was judged otherwise.
 */
void lkg_candidate_finish(struct lkg_candidate *candidate, const char *hint);

/*
 * The document of static pods is a set: `kind: StaticPods` and `pods`, a map of file names to the texts of the files. What people
 * are shown of it is made of the documents in these texts.
 */
/** lkg_pods_texts() - `pods` of @set, borrowed; NULL: it is no set. */
struct lkg_value *lkg_pods_texts(const struct lkg_value *set);
/** lkg_pods_document() - the document in the text of @file, as a kubelet reads it; @layer is its source. Return: one reference, or NULL. */
struct lkg_value *lkg_pods_document(const char *layer, const char *file, const struct lkg_value *text);
/** lkg_pods_documents() - those of all: a map of file names. Return: one reference. */
struct lkg_value *lkg_pods_documents(const struct lkg_value *texts);

#define LKG_ORIGIN_BYTES_MAX (4u << 20)
/**
 * lkg_origin_render() - the text of `origin`: as many lines as fit into LKG_ORIGIN_BYTES_MAX, and one line
 * with the number of omitted ones.
 */
void lkg_origin_render(const struct lkg_value *doc, struct lkg_buf *buf);

/**
 * lkg_generation_new() - make a generation of a valid candidate.
 * @source:   the remote configuration in it; local or NULL = none
 * @document: its rendered bytes; taken over
 *
 * Caller owns one reference.
 */
struct lkg_generation *lkg_generation_new(struct lkg_candidate *candidate,
                                          const struct lkg_config_source *source, uint64_t number,
                                          uint64_t time_ns, struct lkg_text document);

/** lkg_generation_describe() - render shown, origin and meta, unless they are there. Call it before they are read. */
void lkg_generation_describe(struct lkg_generation *generation);

/**
 * lkg_generation_describe_document() - the same of its document alone: its origin is `stored`, its layers are unknown.
 * @generation: with everything else
 * Return: 0; -EBADMSG: not a document.
 */
int lkg_generation_describe_document(struct lkg_generation *generation);

/**
 * lkg_generation_stored() - make a generation of which only the document is left.
 * @document: taken over, even on failure
 *
 * Its origin is `stored`; its layers are unknown.
 * Return: 0; -EBADMSG: not a document.
 */
int lkg_generation_stored(const struct lkg_config_source *source, uint64_t number, uint64_t time_ns,
                          struct lkg_text document, struct lkg_generation **ret);

struct lkg_generation *lkg_generation_alloc(void); /* empty, one reference */
struct lkg_generation *lkg_generation_ref(struct lkg_generation *generation);
struct lkg_generation *lkg_generation_unref(struct lkg_generation *generation);
static inline void lkg_generation_unrefp(struct lkg_generation **generation)
{
        *generation = lkg_generation_unref(*generation);
}

/** lkg_generation_shown() - the document without secrets, once it is described. */
static inline const struct lkg_text *lkg_generation_shown(const struct lkg_generation *generation)
{
        return generation->shown.data ? &generation->shown : &generation->document;
}

/** lkg_local_word() - `init` or `default`. */
static inline const char *lkg_local_word(bool has_base)
{
        return has_base ? "init" : "default";
}

/* ---- history ---- */

/*
 * The last generations of one component, on disk and as a list.
 *
 * On disk, history/<component>/<n>/ in the state directory:
 *
 *     document   the bytes that were served (0600)
 *     shown      the same with secrets masked; only if there are any
 *     origin     TSV, as status/<component>/origin was
 *     meta.json  schemaVersion 1, generation, sha256 (of document), time (RFC 3339), timeNs, local (init or default),
 *                source (local@<12 hex>), sourceSha256 (of the bytes of a remote one), layers (role, name, and of up to 64 the sha256 of the
 *                layer's canonical YAML)
 *
 * A record is written to a directory with another name and renamed, so it is complete or does not exist;
 * meta.json's sha256 is checked when it is read. The list is in ascending order of generations.
 */

struct lkg_history_entry {
        uint64_t number;
        uint64_t time_ns;
        char source[LKG_SOURCE_ID_MAX + 1]; /* id of the remote configuration in it; "" = local */
        char source_sha256[LKG_SHA256_HEX]; /* of its bytes; "" = local, or of an earlier build */
        char sha256[LKG_SHA256_HEX];        /* of the document */
        struct lkg_generation *generation;  /* NULL = on disk only */
        bool written;
        bool durable; /* written and flushed; for a record of an earlier engine, that is not known */
};

struct lkg_history {
        int dirfd; /* history/<component> */
        struct lkg_history_entry *entries;
        size_t n_entries;
};

/**
 * lkg_history_open() - read the directory of @component below @state_fd.
 *
 * Removes records that were torn by a power failure (not flushed, so never acknowledged). A record that
 * cannot be read for another reason is reported and skipped.
 */
int lkg_history_open(int state_fd, const char *component, struct lkg_history *ret, struct lkg_report *report,
                     struct lkg_error *err);
void lkg_history_deinit(struct lkg_history *history);

struct lkg_history_entry *lkg_history_find(const struct lkg_history *history, uint64_t number);

/** lkg_history_add() - add @generation; lkg_history_write() writes it later. */
void lkg_history_add(struct lkg_history *history, struct lkg_generation *generation);

/** lkg_history_remove() - remove an entry that was added but not written. */
void lkg_history_remove(struct lkg_history *history, uint64_t number);

/**
 * lkg_history_write() - write entries that are not on disk, and free their memory.
 * @durable: flush this generation, even if it was written before, so that it survives a power failure after a
 *           return of 0; 0 = none
 */
int lkg_history_write(struct lkg_history *history, uint64_t durable, struct lkg_error *err);

/**
 * lkg_history_prune() - remove entries until @limit are left, but none of @keep (active, held, the one that
 * a try returns to): first those with a duplicate of a newer number, then the oldest, so that a burst of
 * changes back and forth does not displace older entries. Their records are removed.
 * Return: whether any were removed.
 */
bool lkg_history_prune(struct lkg_history *history, size_t limit, const uint64_t *keep, size_t n_keep);

/**
 * lkg_history_get() - get the whole generation, from memory or disk.
 * Return: 0, caller owns one reference; -ENOENT; -EBADMSG; another -errno.
 */
int lkg_history_get(const struct lkg_history *history, uint64_t number, struct lkg_generation **ret,
                    struct lkg_error *err);

/* ---- dynamic ---- */

/*
 * Dynamic configuration of one component in memory: pointers, bad list, starts, trial, as loaded from the
 * store. lkg_step() (<lkg/lifecycle.h>) decides what changes and the engine's effects store it; the functions
 * here that change something store it themselves. Knows no layers and publishes nothing.
 */

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
        bool stores_good; /* the last known good is a stored document, not a merge: scope_all, static pods */
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

/** lkg_dynamic_bad_document() - the mark of the document with this digest (trial.scope all), or NULL. */
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

/* ---- poison ---- */

/*
 * Content that crashed an engine, and is not read again: docs/decisions/012-poison.md.
 *
 * There are two records. The note (lkg/admission.h) in the runtime directory names the content that is being
 * processed, and content that did no harm. The list of refused content is in the state directory (`refused`,
 * JSON), so that a reboot does not start with the same crash; so are the keys of what did no harm (`judged`,
 * one per line), so that also after a reboot only new content is refused.
 *
 * Owned by the engine; one thread. Without a note (full runtime directory) everything is admitted, as in
 * earlier versions.
 */

#define LKG_REFUSED_NAME "refused" /* in the state directory */
#define LKG_JUDGED_NAME  "judged"  /* in the state directory */
#define LKG_REFUSED_MAX  1024u     /* contents that are stored; the oldest is dropped first */
#define LKG_KILLS_PROOF  3u        /* engines killed from outside during the same work that count as proof */

struct lkg_refused {
        struct lkg_judging_key key;
        enum lkg_admit_what what;
        bool lifted; /* refused by another version of lkgfs: admitted now, its bad mark is to be removed */
        enum lkg_judging_end end;
        int status;
        uint64_t time_ns; /* wall time */
        unsigned n_new;   /* contents that were new when the engine ended, including this one */
        char component[LKG_JUDGING_OWNER_MAX];
        char file[LKG_JUDGING_FILE_MAX];
        char sha256[LKG_SHA256_HEX];
        /* digest of all layers of the component since then; "" = not yet known */
        char layers[LKG_SHA256_HEX];
        char source[LKG_SOURCE_ID_MAX + 1]; /* the id that was marked bad because of it; "" = none */
};

struct lkg_poison {
        struct lkg_judging *note; /* NULL = none */
        int state_fd;             /* borrowed */
        /* where control/ is, for messages: `lkgfs/` for a virtualDir, otherwise "" */
        char top[NAME_MAX + 2];
        struct lkg_refused *items;
        size_t n_items;
        size_t last;     /* index in @items: refused last */
        bool unsaved;    /* the list differs from the file */
        bool look_again; /* something is admitted again: the owner looks at everything and clears it */
        /* The note was too small for all new content: unknown content is refused until the first look is over. */
        bool refuse_unknown;
        struct lkg_refused how; /* ... and this is how the engine ended */
};

/**
 * lkg_poison_open() - read the records of the previous engine, and determine which content is refused from
 * now on.
 * @virtual_dir: "" = none
 * @report:      parts of the list that could not be read or written
 */
int lkg_poison_open(int runtime_fd, int state_fd, const char *virtual_dir, struct lkg_poison *ret,
                    struct lkg_report *report, struct lkg_error *err);
void lkg_poison_close(struct lkg_poison *poison);

/**
 * lkg_poison_admit() - see struct lkg_admission, for content of @component.
 * @by: digest of its other inputs (a command line); refused content is refused only together with them. "" =
 * none
 */
int lkg_poison_admit(struct lkg_poison *poison, const char *component, const struct lkg_content *content,
                     const char *by, char **ret_why);
/** lkg_poison_finished() - what was admitted last is not worked on any more. */
void lkg_poison_finished(struct lkg_poison *poison);
/** lkg_poison_judged() - a layer of @component was merged and judged without harm. */
void lkg_poison_judged(struct lkg_poison *poison, const char *component, const char *file,
                       const char *sha256);
/**
 * lkg_poison_done() - the admitted content did no harm, and no work is in progress. Almost free if there was
 * none.
 */
void lkg_poison_done(struct lkg_poison *poison);
/**
 * lkg_poison_give_up() - out of memory for the current work.
 * Return: true: this was recorded, and the engine must exit now.
 */
bool lkg_poison_give_up(struct lkg_poison *poison);

/** lkg_poison_how() - describe an entry: "the engine was ended by SIGSEGV". */
void lkg_poison_how(const struct lkg_refused *refused, char *ret, size_t size);
/**
 * lkg_poison_last() - the entry because of which lkg_poison_admit() just refused; call it right afterwards.
 * NULL = none.
 */
struct lkg_refused *lkg_poison_last(const struct lkg_poison *poison);
/** lkg_poison_set_source() - @source was marked bad because of @refused. */
void lkg_poison_set_source(struct lkg_poison *poison, struct lkg_refused *refused, const char *source);
/**
 * lkg_poison_lift() - admit refused content of @component again.
 * @source: only content because of which this source, or any version of this uid, or ("") any source was
 * marked bad; NULL = everything
 */
void lkg_poison_lift(struct lkg_poison *poison, const char *component, const char *source);
/** lkg_poison_remove() - forget entry @at. */
void lkg_poison_remove(struct lkg_poison *poison, size_t at);
/** lkg_poison_save() - write changes to the state directory. Return: 0; -errno: a later call tries again. */
int lkg_poison_save(struct lkg_poison *poison, struct lkg_error *err);
/** lkg_poison_persist() - the same, and the keys of what did no harm; while no caller waits. */
int lkg_poison_persist(struct lkg_poison *poison, struct lkg_error *err);
