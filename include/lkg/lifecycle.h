/* SPDX-License-Identifier: Apache-2.0 */
/* What is followed, on trial, good, bad and held: sources, conditions, the step, what to serve. */
#pragma once

#include <limits.h>

#include <lkg/base.h>
#include <lkg/limits.h>
#include <lkg/slots.h>
#include <lkg/stack.h>
#include <lkg/text.h>
#include <lkg/trial.h>

/*
 * A resolved remote configuration: which object, which version of it, which key. Pure values, no allocation.
 *
 * The source id is `<uid>@<resourceVersion>`, followed by `:key` when the key is not `kubelet`. Every part
 * is used in a path or as a file name, so each is checked first, and so is the whole id, which is the name
 * of a file in bad/ (docs/specification.md 4.1).
 *
 * Not to be confused with struct lkg_source of documents.h, the file from which a value was read.
 */

#define LKG_SOURCE_ID_MAX 255u /* NAME_MAX */
#define LKG_KEY_DEFAULT   "kubelet"
#define LKG_UID_LOCAL     "local" /* in ids of local configurations; no object may have this uid */
#define LKG_REASON_MAX    512u    /* why something is bad or unclear, for messages */
#define LKG_SHORT_HASH    12u     /* hex digits of a SHA-256 that represent it in ids */

/* All empty = the local configuration. */
struct lkg_config_source {
        char ns[LKG_IDENTIFIER_MAX + 1], name[LKG_IDENTIFIER_MAX + 1]; /* of the ConfigMap */
        char uid[LKG_IDENTIFIER_MAX + 1], version[LKG_IDENTIFIER_MAX + 1], key[LKG_IDENTIFIER_MAX + 1];
        char sha256[LKG_SHA256_HEX]; /* of the bytes under the key; "" = none */
};

static inline bool lkg_config_source_is_local(const struct lkg_config_source *source)
{
        return source->uid[0] == '\0';
}

/** lkg_config_source_equal() - the same object, version and key; two local ones are equal. */
bool lkg_config_source_equal(const struct lkg_config_source *a, const struct lkg_config_source *b);

/**
 * lkg_config_source_same_content() - the same bytes of the same key of the same object, whatever its
 * version.
 */
bool lkg_config_source_same_content(const struct lkg_config_source *a, const struct lkg_config_source *b);

/**
 * lkg_config_source_matches() - is it the same configuration? The content decides: equal, or the same bytes
 * under another version, as when only an annotation of the object has changed.
 */
bool lkg_config_source_matches(const struct lkg_config_source *a, const struct lkg_config_source *b);

/**
 * lkg_config_source_recorded() - the source that a record names, for lkg_config_source_matches(); ns and name
 * stay empty.
 * @id:     lkg_config_source_id() of it; "" = the local one
 * @sha256: of its bytes; "" = not known
 */
void lkg_config_source_recorded(const char *id, const char *sha256, struct lkg_config_source *ret);

/** lkg_config_records_match() - lkg_config_source_matches() for two records. */
bool lkg_config_records_match(const char *id_a, const char *sha256_a, const char *id_b,
                              const char *sha256_b);

/**
 * lkg_config_source_id() - `<uid>@<version>[:key]`; only the uid if there is no version, "" for the local
 * one.
 * @source: has passed lkg_config_source_check(); an id that is too long is truncated
 */
void lkg_config_source_id(const struct lkg_config_source *source, char ret[static LKG_SOURCE_ID_MAX + 1]);

/**
 * lkg_config_source_check() - may every part be used in a path, and the id as a file name?
 *
 * Namespace and name may be missing: an id does not contain them. The local one is valid.
 * Return: 0; -EINVAL: @err names the wrong part.
 */
int lkg_config_source_check(const struct lkg_config_source *source, struct lkg_error *err);

/**
 * lkg_config_source_parse_id() - parse an id or a uid; ns, name and sha256 stay empty, for a uid alone also
 * version and key. The key is LKG_KEY_DEFAULT if it is missing (`uid@7:kubelet` equals `uid@7`). `local@<12
 * hex>` is an id whose uid is `local`; `local` alone is not an id.
 * Return: 0 or -EINVAL.
 */
int lkg_config_source_parse_id(const char *text, struct lkg_config_source *ret);

/**
 * lkg_configmap_key_ok() - may a ConfigMap have this key? `[-._a-zA-Z0-9]+`, at most 253, not `.`, `..`, nor
 * `..` first.
 */
bool lkg_configmap_key_ok(struct lkg_span text);

/* ---- decide ---- */

/*
 * Which document a component may show: the pure part. State and facts in, the next state and a verdict out; no clock, no file,
 * no allocation. The engine makes the state durable before the publication that shows it.
 *
 * Hold, rollback and an expired try are one state machine: each freezes one generation, `hold off` ends it
 * (docs/specification.md 4.6, 4.7). While frozen, candidates are still loaded, judged and reported.
 */

enum lkg_hold_mode {
        LKG_HOLD_FREE,        /* the view follows the layers */
        LKG_HOLD_ON,          /* `hold on` */
        LKG_HOLD_ROLLBACK,    /* `rollback N` */
        LKG_HOLD_TRY_EXPIRED, /* not committed in time: the generation before the try is served again */
        _LKG_HOLD_MODE_MAX
};
const char *lkg_hold_mode_name(enum lkg_hold_mode mode); /* "", "hold", "rollback", "try expired" */

enum lkg_try_phase {
        LKG_TRY_NONE,
        LKG_TRY_ARMED,   /* the next generation will be on try */
        LKG_TRY_RUNNING, /* it is active; deadline_ns applies */
        _LKG_TRY_PHASE_MAX
};
extern const char *const
        lkg_try_phase_names[_LKG_TRY_PHASE_MAX + 1]; /* "none", "armed", "running"; the last is NULL */

struct lkg_hold {
        enum lkg_hold_mode mode;
        uint64_t generation; /* frozen; 0 while free (or frozen while nothing was served) */
        enum lkg_try_phase try_phase;
        uint64_t try_duration_ns;
        uint64_t try_previous;    /* RUNNING: generation to go back to */
        uint64_t try_deadline_ns; /* RUNNING: CLOCK_BOOTTIME */
};

/* ---- a candidate ---- */

enum lkg_verdict {
        LKG_KEEP,     /* nothing to do: the same bytes, or nothing at all */
        LKG_PUBLISH,  /* the candidate becomes a generation */
        LKG_REFUSE,   /* invalid: the served one stays */
        LKG_AVOID,    /* valid, but known bad: the served one stays */
        LKG_WAIT,     /* valid and different, but frozen */
        LKG_WITHDRAW, /* the view name is no longer ours */
        _LKG_VERDICT_MAX
};

/**
 * lkg_decide() - judge a candidate.
 * @state:  of the candidate
 * @same:   its rendered bytes are those of the active generation
 * @bad:    this document is in the bad list
 * @active: number of the active generation, 0 = none
 */
enum lkg_verdict lkg_decide(const struct lkg_hold *hold, enum lkg_candidate_state state, bool same, bool bad,
                            uint64_t active);

/** lkg_hold_published() - a new generation became active while @previous was: an armed try begins to run. */
struct lkg_hold lkg_hold_published(struct lkg_hold hold, uint64_t previous, uint64_t now_ns);

/** lkg_hold_deadline() - when lkg_hold_tick() must be called, CLOCK_BOOTTIME; UINT64_MAX = never. */
uint64_t lkg_hold_deadline(const struct lkg_hold *hold);

/** lkg_hold_tick() - time passed: a try that is due freezes the generation before it. */
struct lkg_hold lkg_hold_tick(struct lkg_hold hold, uint64_t now_ns);

/* ---- commands of an operator ---- */

enum lkg_hold_command { LKG_CMD_HOLD_ON, LKG_CMD_HOLD_OFF, LKG_CMD_ROLLBACK, LKG_CMD_TRY, LKG_CMD_COMMIT };

/* The author of the hold, or of the try that expired. */
struct lkg_held_by {
        uint64_t time_ns; /* wall time; 0 = unknown: held by an earlier version */
        uint32_t uid;
        int32_t pid;
        char program[64]; /* without its directory; "try" = a try expired, and its author is unknown */
};

struct lkg_hold_step {
        struct lkg_hold next;
        int result;      /* 0, -EINVAL or -EBUSY; if not 0, next is unchanged */
        const char *why; /* a message, if result is not 0 */
};

/**
 * lkg_hold_command() - carry out one command.
 * @argument: ROLLBACK: generation number; TRY: duration in ns; otherwise unused
 * @known:    ROLLBACK: the generation is in history
 * @active:   number of the active generation, 0 = none
 */
struct lkg_hold_step lkg_hold_command(struct lkg_hold hold, enum lkg_hold_command command, uint64_t argument,
                                      bool known, uint64_t active);

/* ---- condition ---- */

/*
 * The condition ConfigOK in words: a pure function of the engine's state.
 *
 * The texts for the local configuration are those of the proposal; those of lkgfs follow its style. A
 * condition is world-readable: it contains no value, no path and no finding of a document, only counts and
 * where to look.
 */

enum lkg_condition_status { LKG_CONDITION_UNKNOWN, LKG_CONDITION_FALSE, LKG_CONDITION_TRUE };
const char *lkg_condition_status_name(enum lkg_condition_status status); /* "Unknown", "False", "True" */

struct lkg_condition {
        enum lkg_condition_status status;
        char reason[256], message[512];
        /* a try is running or a rollout waits: @reason remains true if the engine falls silent */
        bool pending;
        uint64_t transition_ns; /* wall time at which status last changed */
};

/* Additions of dynamic configuration; all zero = none. */
struct lkg_condition_remote {
        const char *assigned, *active; /* uid; "" = local */
        const char *followed;          /* uid of the base of the layers; during a hold not the active one */
        bool followed_lost;            /* its checkpoint is lost: the disk is to blame, not the author */
        bool followed_unread;          /* ... or cannot be read at the moment */
        /* NULL = unknown: included if the uids alone would be the same. */
        const char *assigned_version, *active_version;
        bool any; /* something is assigned, or the reference is unclear */
        bool active_is_assigned, active_is_good;
        bool went_back; /* trial.scope all: the last known good document of the same configuration is served */
        const char *desired_fault; /* why the reference cannot be determined; NULL = it can */
        const char *waiting;   /* why the rollout holds back the desired configuration; NULL = it does not */
        const char *bad;       /* why assigned is not used; NULL = it is */
        bool marked;           /* marked by hand: @bad is the user's text */
        bool good_failed;      /* the last known good could not be used either */
        bool restart_needed;   /* it runs with what was not healthy, and nobody restarts it */
        bool exonerated;       /* the component crash-loops on the last known good, too */
        bool local_has_base;   /* of the local layers, while a remote configuration hides them */
        size_t n_local_errors; /* of the local layers, while a remote configuration hides them */
        bool waits;            /* assigned cannot be tried while the local layers are invalid */
        const char *untried;   /* why assigned could not be tried; NULL = nothing prevents that */
};

/* Of static pods. */
struct lkg_condition_pods {
        bool is;
        size_t n, n_bad, n_tried; /* served, marked bad, on trial */
        const char *bad;          /* why the first of those is bad; NULL = none is */
        const char *
                dead_end; /* the file of a pod that does not work with its last good document either; NULL = none */
};

struct lkg_condition_facts {
        struct lkg_condition_pods pods;
        struct lkg_condition_remote remote;
        const char *component, *file;
        const char *top, *status_path; /* as in struct lkg_component */
        const struct lkg_hold *hold;
        const struct lkg_held_by *held_by; /* NULL = unknown */
        enum lkg_candidate_state state;
        enum lkg_verdict verdict;
        size_t n_errors;
        size_t n_all_errors;     /* errors in findings; if fewer than the relevant ones: unknown */
        size_t n_remote_errors;  /* of them, those in the remote document itself */
        bool candidate_has_base; /* of the candidate */
        uint64_t active;         /* 0 = nothing served */
        bool active_has_base;
        bool last_good;    /* active was loaded from disk because there was no valid candidate */
        const char *lost;  /* what could not be saved; NULL = nothing */
        const char *fault; /* the layers could not be read, or publishing failed; NULL = none */
        bool not_ready;    /* no candidate has been judged yet */
        uint64_t try_deadline_wall_ns;
};

#define LKG_HOLDER_MAX 160

/**
 * lkg_condition_holder() - ` since T by uid U (pid P, PROGRAM)`, ` since T`, or "" if unknown.
 * @mode: for an expired try, @by is its author: ` since T, after a try by uid ...`
 */
void lkg_condition_holder(const struct lkg_held_by *by, enum lkg_hold_mode mode,
                          char ret[static LKG_HOLDER_MAX]);

/**
 * lkg_condition_update() - bring @condition up to date.
 * @now_ns: wall time; becomes transition_ns if the status changes (or was never set)
 *
 * Return: true: the visible text has changed.
 */
bool lkg_condition_update(struct lkg_condition *condition, const struct lkg_condition_facts *facts,
                          uint64_t now_ns);

/* ---- lifecycle ---- */

/*
 * The life cycle of a component's configuration: assigned, tried, followed, on trial, last known good or marked bad; held, tried
 * by an operator, rolled back. This part is pure: state, facts, event and time in; next state and ordered effects out. It reads
 * no clock and no file, and allocates nothing. Rules: docs/specification.md 4.4 to 4.11.
 *
 * Effects are carried out in order, and the first that fails ends the list (unless it is optional). At ADOPT the next state
 * becomes the state: what must be durable first comes before it, so a failure there leaves the state unchanged. (What has
 * happened anyway, such as a start or a try that is due, is adopted first.) A failure that is not optional comes back as
 * LKG_EVENT_FAILED of the event in which it happened; its effects handle it.
 */

struct lkg_value;

/* ---- what is remembered ---- */

/* The last known good. If source is local, any local configuration is. */
struct lkg_good {
        struct lkg_config_source source;
        uint64_t generation;         /* 0 = none yet */
        uint64_t time_ns;            /* wall time when it became the last known good */
        char sha256[LKG_SHA256_HEX]; /* of the stored document; "" = none */
};

#define LKG_PASSED_OVER_UNKNOWN "unknown" /* the engine died before storing it: the next merge result */

struct lkg_pointers {
        struct lkg_config_source assigned; /* local = nothing is assigned */
        uint64_t assigned_ns;              /* wall time of its last change */
        /* UID of the Node whose reference was followed last; "" = none */
        char node_uid[LKG_IDENTIFIER_MAX + 1];
        /* the configuration that the view follows; not the assigned one while that is bad or held */
        struct lkg_config_source active;
        struct lkg_good good;
        /* Why active is not assigned; reason "" = no rollback. */
        struct {
                struct lkg_config_source from;
                char reason[LKG_REASON_MAX];
                uint64_t time_ns;
                unsigned starts_since; /* counted starts on the last known good since then: exoneration */
                uint64_t abandoned_generation;
                /*
                 * trial.scope all: digest of the merge result that the stored document replaces; "" = none; or
                 * LKG_PASSED_OVER_UNKNOWN.
                 */
                char passed_over[LKG_SHA256_HEX];
        } rollback;
};

/* An unfinished command of several durable steps: stored before the first step, removed after the last; resumed at the next start. */
enum lkg_unfinished_kind {
        LKG_UNFINISHED_NONE,
        LKG_UNFINISHED_ABANDON, /* `rollback N`, already pinned: mark @source bad and abandon it */
        LKG_UNFINISHED_GOOD,    /* `rollback lkg`: the same, then pin what is served */
        _LKG_UNFINISHED_MAX
};

struct lkg_unfinished {
        enum lkg_unfinished_kind kind;
        char source[LKG_SOURCE_ID_MAX + 1]; /* "" = nothing to abandon */
        char source_sha256[LKG_SHA256_HEX]; /* of its content */
        uint64_t held;         /* GOOD: generation of the hold that the command ends; 0 = none */
        struct lkg_held_by by; /* GOOD: caller of the command */
};

#define LKG_LOST_MAX 160

struct lkg_component_state {
        struct lkg_hold hold;
        struct lkg_held_by held_by;
        struct lkg_held_by tried_by; /* who started the armed or running try */
        /* assigned at the rollback: the pin ends when that changes; "" = not known */
        char pinned_for[LKG_SOURCE_ID_MAX + 1];
        struct lkg_unfinished unfinished;
        /* what of the above was lost, as text for people; kept until an operator acts on it */
        char lost[LKG_LOST_MAX];
        uint64_t last_good; /* generation served last; 0 = none yet */
        /* path of the local base in what was served last, as configured; "" = never any */
        char base[PATH_MAX];
        enum lkg_condition_status status;
        uint64_t transition_ns; /* of the condition; 0 = never set */
        /* of the last command carried out in this boot: a repeated one is not carried out again */
        uint64_t ticket;
};

/* Why something is marked bad, for programs. The reason is for people and may contain foreign text. */
enum lkg_bad_cause {
        LKG_BAD_MARKED,    /* by hand, in bad/ */
        LKG_BAD_LOAD,      /* it cannot be loaded, or it made an engine crash */
        LKG_BAD_PARSE,     /* its payload cannot be decoded */
        LKG_BAD_INVALID,   /* a validation rule or the guard rejects it */
        LKG_BAD_CRASHED,   /* crash loop during its trial */
        LKG_BAD_OPERATOR,  /* an operator rolled back to something earlier */
        LKG_BAD_UNHEALTHY, /* alive during its trial, and not healthy */
        _LKG_BAD_CAUSE_MAX
};

struct lkg_bad {
        char id[LKG_SOURCE_ID_MAX + 1]; /* file name: a source id, or a uid = all its versions */
        uint64_t time_ns;
        enum lkg_bad_cause cause;
        char reason[LKG_REASON_MAX];
        struct lkg_config_source source; /* as far as known */
        struct lkg_value *suspects;      /* <lkg/schema.h>; a list owns it; NULL = the record has none */
};

struct lkg_bad_list {
        struct lkg_bad *items; /* sorted by id */
        size_t n_items;
};

/** lkg_bad_named() - the mark with exactly this name, or NULL. */
const struct lkg_bad *lkg_bad_named(const struct lkg_bad_list *list, const char *id);
/** lkg_bad_find() - the mark of @source, by id or uid. NULL = it is not bad. */
const struct lkg_bad *lkg_bad_find(const struct lkg_bad_list *list, const struct lkg_config_source *source);
/** lkg_bad_failed_trial() - is that the cause of a mark that a failed trial made? */
bool lkg_bad_failed_trial(enum lkg_bad_cause cause);
/** lkg_bad_same_content() - a mark of the same bytes of the same object, in any version; or NULL. */
const struct lkg_bad *lkg_bad_same_content(const struct lkg_bad_list *list,
                                           const struct lkg_config_source *source);

#define LKG_STARTUPS_MAX 11u /* highest threshold plus one: dynamic-configuration proposal */

struct lkg_startup {
        uint64_t time_ns; /* wall time */
        int pid;          /* 0 = reported by hand */
        /* field 22 of /proc/PID/stat: with pid, identifies a process of this boot; 0 = none */
        uint64_t start_time;
        bool counted;
        bool local; /* with the local configuration or the last known good */
};

struct lkg_startups {
        struct lkg_startup items[LKG_STARTUPS_MAX]; /* oldest first */
        size_t n_items;
        char boot[40]; /* boot id of the last one; "" = none yet */
};

/* ---- the state ---- */

struct lkg_lifecycle {
        struct lkg_component_state record; /* hold, try, an unfinished command */
        struct lkg_pointers pointers;
        struct lkg_trial trial;            /* of pointers.active; after a rollback the one that failed */
        struct lkg_config_source document; /* scope_all: local@<12 hex>, the document on trial */
};

/* What a step reads and never changes. */
struct lkg_lifecycle_facts {
        const struct lkg_bad_list *bad;
        bool remote;      /* the component may follow a remote configuration */
        bool scope_all;   /* trial.scope all: every generation is on trial, not only a remote one */
        bool stores_good; /* the last known good is a stored document (scope_all, static pods) */
        bool watched; /* processes of the component are recognised: the trial clock runs while one lives */
        bool serves_active;      /* readers get what pointers.active names, not a held generation */
        uint64_t active;         /* number of the generation that readers get; 0 = none */
        const char *sha256;      /* of its document; "" = none */
        uint64_t trial_saved_ns; /* CLOCK_BOOTTIME of the last SAVE_TRIAL */
        enum lkg_health_state health[_LKG_CHECK_MAX]; /* what the checks of the component say */
};

/** lkg_document_source() - the source that stands for the document with this digest in marks and trials (trial.scope all). */
struct lkg_config_source lkg_document_source(const char *sha256);
/** lkg_tried_source() - the source that the trial is about: the active one, or after a rollback the one that failed. */
const struct lkg_config_source *lkg_tried_source(const struct lkg_pointers *p);
/** lkg_is_good_document() - is the document with this digest the last known good one (trial.scope all)? */
bool lkg_is_good_document(const struct lkg_pointers *p, const char *sha256);
/**
 * lkg_trial_believed() - a trial as stored, corrected by the pointers. These are stored before the end of the trial, so a
 * configuration that they name as good or abandoned is no longer on trial, and one that they do not name as abandoned has not
 * failed.
 * @sha256: of the served document (trial.scope all)
 */
struct lkg_trial lkg_trial_believed(struct lkg_trial stored, const struct lkg_pointers *p, bool scope_all,
                                    const char *sha256);
/** lkg_lifecycle_tried() - whose trial is stored: that of lkg_tried_source(), or (@scope_all) of the document. */
const struct lkg_config_source *lkg_lifecycle_tried(const struct lkg_lifecycle *l, bool scope_all);
/** lkg_lifecycle_on_trial() - is the trial running, and of what readers get? A held generation is not judged. */
bool lkg_lifecycle_on_trial(const struct lkg_lifecycle *l, const struct lkg_lifecycle_facts *facts);
/** lkg_lifecycle_serves_tried() - do readers get the configuration on trial? */
bool lkg_lifecycle_serves_tried(const struct lkg_lifecycle *l, const struct lkg_lifecycle_facts *facts);
/** lkg_lifecycle_say_assigned() - the id of what is assigned, or "local"; a rollback's pin ends when it changes. */
void lkg_lifecycle_say_assigned(const struct lkg_pointers *p, char ret[static LKG_SOURCE_ID_MAX + 1]);

/** lkg_rollout_id_of() - the rollout of this content. */
void lkg_rollout_id_of(const struct lkg_config_source *source, struct lkg_rollout_id *ret);

/**
 * lkg_lifecycle_slot_outcome() - what has become of the content @sha256 of ConfigMap @uid on this node, for its slot.
 * @reason: why it is bad
 */
enum lkg_slot_outcome lkg_lifecycle_slot_outcome(const struct lkg_pointers *p,
                                                 const struct lkg_bad_list *bad, const char *uid,
                                                 const char *sha256,
                                                 char reason[static LKG_SLOT_REASON_MAX]);

/* ---- events ---- */

enum lkg_event_kind {
        /* from the reference */
        LKG_EVENT_ASSIGNED, /* source, whose checkpoint is durable; node_uid: the Node that refers to it, NULL = none */
        LKG_EVENT_NODE,  /* node_uid: this Node refers to what is already assigned */
        LKG_EVENT_RESET, /* nothing is assigned: back to the local configuration */
        /* from validation */
        LKG_EVENT_TRIED_GOOD, /* what is assigned can be followed */
        LKG_EVENT_TRIED_BAD,  /* what is assigned cannot: cause, reason */
        LKG_EVENT_FORBIDDEN,  /* the guard forbids what is followed: reason */
        LKG_EVENT_LOST, /* the checkpoint of what is followed cannot be used: reason, fault; known: it made an engine crash */
        /* from the engine's cycle */
        LKG_EVENT_SETTLE, /* before a publication: what follows from the bad list? */
        LKG_EVENT_RESUMED, /* scope_all, an engine starts: its predecessor may have died in the middle of a rollback */
        LKG_EVENT_LAYERS, /* scope_all: digest of the merged layers: sha256, "" = what is served; mark: its bad mark */
        LKG_EVENT_SERVED, /* readers get facts.active with the next publication: rules */
        LKG_EVENT_BEGIN,  /* of BEGIN_TRIAL: rules; stored */
        LKG_EVENT_PASSED, /* the trial of what is served is over */
        LKG_EVENT_MERGED, /* of MERGE_GOOD: usable, valid, sha256 */
        LKG_EVENT_FINISH, /* finish an unfinished command: servable */
        LKG_EVENT_PINNED, /* of SERVE_GOOD: facts.active is the last known good: mode */
        LKG_EVENT_FINISHED,
        LKG_EVENT_PUBLISHING,  /* a new generation is about to be published: an armed try starts to run */
        LKG_EVENT_UNPUBLISHED, /* ... but publishing failed: hold, as it was before */
        LKG_EVENT_HOLD_LOST,   /* the held generation can no longer be read: reason */
        LKG_EVENT_PIN,         /* an engine starts: has the assignment changed since a rollback pinned? */
        /* from processes and the clock */
        LKG_EVENT_START,     /* the component starts: startup; the step sets its `local` */
        LKG_EVENT_ALIVE,     /* alive: a process that has read the configuration on trial is running; away */
        LKG_EVENT_HEALTH,    /* facts.health is new */
        LKG_EVENT_TRY_DUE,   /* time has passed */
        LKG_EVENT_TRIAL_DUE, /* time has passed; reason: what is not healthy, NULL = nothing at the moment */
        /* from an operator */
        LKG_EVENT_HOLD,          /* command, argument, known, other, by, ticket */
        LKG_EVENT_ROLLBACK_GOOD, /* servable, by, ticket */
        LKG_EVENT_PROMOTE,
        LKG_EVENT_MARK,     /* mark; known: a mark with this name exists */
        LKG_EVENT_FORGIVEN, /* marks were removed */
        /* an effect of another event failed: of, failed, code, marked_id, before */
        LKG_EVENT_FAILED,
        _LKG_EVENT_MAX
};

enum lkg_effect_kind {
        LKG_EFFECT_ADOPT, /* the next state becomes the state */
        /* durable */
        LKG_EFFECT_KEEP_RECORD, /* keep a copy of the record on disk, so that RESTORE_RECORD needs no space */
        LKG_EFFECT_RESTORE_RECORD,  /* put the copy back */
        LKG_EFFECT_FORGET_RECORD,   /* remove the copy */
        LKG_EFFECT_KEEP_GENERATION, /* write @generation to the history before a record names it */
        LKG_EFFECT_SAVE_RECORD,     /* next.record */
        LKG_EFFECT_SAVE_DOCUMENT,   /* the served document, as the last known good */
        LKG_EFFECT_SAVE_TRIAL,      /* next.trial, for lkg_lifecycle_tried() of next */
        LKG_EFFECT_SAVE_POINTERS,   /* next.pointers */
        LKG_EFFECT_MARK_BAD,        /* mark of the step */
        LKG_EFFECT_FORGIVE,         /* remove the mark that the failed event made */
        LKG_EFFECT_NOTE_START,      /* startup of the step */
        /* in the engine's memory */
        LKG_EFFECT_FOLLOW,         /* follow what was tried: the layers over its base */
        LKG_EFFECT_FOLLOW_MISSING, /* follow the last known good although its checkpoint is lost */
        LKG_EFFECT_MERGE_GOOD, /* merge the layers over the last known good; then MERGED follows. same: the base is unchanged */
        LKG_EFFECT_SERVE_STORED, /* serve the stored document of the last known good, else the local configuration */
        LKG_EFFECT_SERVE_GOOD, /* publish the last known good; then PINNED follows. same: always use the stored document */
        LKG_EFFECT_BEGIN_TRIAL, /* then BEGIN follows, with the trial stored for this document */
        LKG_EFFECT_TELL,        /* tell the log and the cluster: news */
        LKG_EFFECT_RETRY,       /* try again later */
        LKG_EFFECT_NEXT,        /* handle the event @next, with the members of this event */
        _LKG_EFFECT_MAX
};

enum lkg_news {
        LKG_NEWS_REJECTED,    /* mark of the step */
        LKG_NEWS_ROLLED_BACK, /* next.pointers.rollback; cause */
        LKG_NEWS_PROMOTED,
        LKG_NEWS_EXTENDED,    /* next.trial; event.reason as for TRIAL_DUE */
        LKG_NEWS_TRY_EXPIRED, /* next.record.hold */
        _LKG_NEWS_MAX
};

struct lkg_effect {
        enum lkg_effect_kind kind;
        bool optional; /* a failure does not end the list: another durable effect implies the same, or a later one will */
        bool same;
        uint64_t generation;
        enum lkg_news news;
        enum lkg_hold_mode mode; /* SERVE_GOOD: for PINNED */
        enum lkg_event_kind next;
};

/* Of the last known good with today's local layers. */
enum lkg_merge_result {
        LKG_MERGE_IMPOSSIBLE, /* its checkpoint cannot be loaded */
        LKG_MERGE_INVALID,    /* it cannot be served */
        LKG_MERGE_VALID,
};

struct lkg_event {
        enum lkg_event_kind kind;
        const struct lkg_config_source *source;
        const char *node_uid;
        enum lkg_bad_cause cause;
        const char *reason;
        const char *fault;          /* LOST, MERGED: why the checkpoint cannot be used */
        const struct lkg_bad *mark; /* NULL = none */
        bool known, other;
        struct lkg_trial_rules rules;
        const struct lkg_trial *stored; /* NULL = none */
        bool servable;                  /* ROLLBACK_GOOD, FINISH: a last known good could be served */
        enum lkg_merge_result merge;    /* MERGED */
        /* MERGED: of the failed merge with the same local layers, "" = none; LAYERS: see there */
        const char *sha256;
        enum lkg_hold_mode mode;
        const struct lkg_hold *hold;
        const struct lkg_startup *startup;
        bool alive;
        bool away; /* ALIVE: no process of the component is running, whatever it has read */
        enum lkg_hold_command command;
        uint64_t argument, ticket;
        const struct lkg_held_by *by; /* NULL = not a command: the clock or a rule */
        bool by_command; /* START, FINISH: a caller waits for the result, and a refusal must change nothing */
        uint64_t wall_ns; /* current wall time; now_ns is CLOCK_BOOTTIME */

        /* FAILED */
        enum lkg_event_kind of;
        enum lkg_effect_kind failed;
        int code;              /* -errno */
        const char *marked_id; /* the mark that MARK_BAD made; NULL = none, or it existed before */
        const struct lkg_component_state *before; /* the record before the command */
};

#define LKG_EFFECTS_MAX 12u

struct lkg_step {
        struct lkg_lifecycle next;
        int result;      /* 0; or -errno: the event is refused, next is unchanged, there are no effects */
        const char *why; /* the reason as text, if result is not 0 */
        bool accepted;   /* FAILED: the event counts as carried out; the rest follows later */
        enum lkg_bad_cause cause;
        struct lkg_bad mark;
        struct lkg_startup startup;
        size_t n_effects;
        struct lkg_effect effects[LKG_EFFECTS_MAX];
};

/** lkg_step() - what follows from @event. @ret: large, so not for small stacks */
void lkg_step(const struct lkg_lifecycle *l, const struct lkg_lifecycle_facts *facts,
              const struct lkg_event *event, uint64_t now_ns, struct lkg_step *ret);
