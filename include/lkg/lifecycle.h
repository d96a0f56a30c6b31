/* SPDX-License-Identifier: Apache-2.0 */
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
#pragma once

#include <limits.h>

#include <lkg/condition.h>
#include <lkg/decide.h>
#include <lkg/limits.h>
#include <lkg/slots.h>
#include <lkg/source.h>
#include <lkg/trial.h>

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
        char node_uid[LKG_IDENTIFIER_MAX +
                      1]; /* UID of the Node whose reference was followed last; "" = none */
        struct lkg_config_source
                active; /* the configuration that the view follows; not the assigned one while that is bad or held */
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
        char pinned_for[LKG_SOURCE_ID_MAX +
                        1]; /* assigned at the rollback: the pin ends when that changes; "" = not known */
        struct lkg_unfinished unfinished;
        char lost
                [LKG_LOST_MAX]; /* what of the above was lost, as text for people; kept until an operator acts on it */
        uint64_t last_good; /* generation served last; 0 = none yet */
        char base
                [PATH_MAX]; /* path of the local base in what was served last, as configured; "" = never any */
        enum lkg_condition_status status;
        uint64_t transition_ns; /* of the condition; 0 = never set */
        uint64_t
                ticket; /* of the last command carried out in this boot: a repeated one is not carried out again */
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
        struct lkg_value *suspects;      /* <lkg/suspects.h>; a list owns it; NULL = the record has none */
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
        uint64_t
                start_time; /* field 22 of /proc/PID/stat: with pid, identifies a process of this boot; 0 = none */
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
        bool remote;    /* the component may follow a remote configuration */
        bool scope_all; /* trial.scope all: every generation is on trial, not only a remote one */
        bool watched;   /* processes of the component are recognised: the trial clock runs while one lives */
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

/** lkg_rollout_id_of() - the rollout of this content. Return: 0; -ENOMEM. */
int lkg_rollout_id_of(const struct lkg_config_source *source, struct lkg_rollout_id *ret);

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
        LKG_EFFECT_REFRESH,        /* evaluate the layers over the new base */
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
        bool usable, valid;             /* MERGED: the base can be used; the merge result can be served */
        const char *
                sha256; /* MERGED: of the failed merge with the same local layers, "" = none; LAYERS: see there */
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
