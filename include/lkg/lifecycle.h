/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The life of a component's configuration: assigned, tried, followed, on trial, last known good or marked bad; held, tried by
 * an operator, rolled back. This is the pure part: a state, facts, an event and a time in; the next state and ordered effects
 * out. No clock, no file, no allocation. docs/specification.md 4.4 to 4.11 has the rules.
 *
 * Effects are carried out in order, and the first one that fails ends the list. ADOPT is where the next state takes over: what
 * must be durable first comes before it, so a failure there leaves everything as it was. A failure comes back as
 * LKG_EVENT_FAILED, whose effects say what to do about it.
 */
#pragma once

#include <limits.h>

#include <lkg/condition.h>
#include <lkg/decide.h>
#include <lkg/limits.h>
#include <lkg/source.h>
#include <lkg/trial.h>

/* ---- what is remembered ---- */

/* The last known good. source local: any local configuration was. */
struct lkg_good {
        struct lkg_config_source source;
        uint64_t generation;         /* 0 = none yet */
        uint64_t time_ns;            /* wall time when it became the last known good */
        char sha256[LKG_SHA256_HEX]; /* of the stored document; "" = none */
};

#define LKG_PASSED_OVER_UNKNOWN "unknown" /* the engine ended first: the next result of the layers */

struct lkg_pointers {
        struct lkg_config_source assigned; /* local = nothing is assigned */
        uint64_t assigned_ns;              /* wall time of its last change */
        char node_uid[LKG_IDENTIFIER_MAX +
                      1]; /* the Node whose reference was followed last; "" = none was */
        struct lkg_config_source
                active; /* the configuration that the view follows; differs from assigned when that is bad or held */
        struct lkg_good good;
        /* Why active is not assigned; reason "" = no rollback. */
        struct {
                struct lkg_config_source from;
                char reason[LKG_REASON_MAX];
                uint64_t time_ns;
                unsigned starts_since; /* counted starts on the last known good since: exoneration */
                uint64_t abandoned_generation;
                /*
                 * trial.scope all: digest of the merge of the layers at the time when the stored document was taken instead;
                 * "" = none; or LKG_PASSED_OVER_UNKNOWN.
                 */
                char passed_over[LKG_SHA256_HEX];
        } rollback;
};

/* A command of several durable steps that has begun: noted before the first, gone after the last; else done at the next start. */
enum lkg_unfinished_kind {
        LKG_UNFINISHED_NONE,
        LKG_UNFINISHED_ABANDON, /* `rollback N`, pinned already: @source is to be marked bad and left */
        LKG_UNFINISHED_GOOD,    /* `rollback lkg`: the same, then what is served is to be pinned */
        _LKG_UNFINISHED_MAX
};

struct lkg_unfinished {
        enum lkg_unfinished_kind kind;
        char source[LKG_SOURCE_ID_MAX + 1]; /* "" = nothing is to be left */
        uint64_t held;                      /* GOOD: generation of the hold that it ends; 0 = none */
        struct lkg_held_by by;              /* GOOD: whose command it is */
};

#define LKG_LOST_MAX 160

struct lkg_component_state {
        struct lkg_hold hold;
        struct lkg_held_by held_by;
        struct lkg_held_by tried_by; /* who began the try that is armed or runs */
        char pinned_for[LKG_SOURCE_ID_MAX +
                        1]; /* what was assigned at a rollback: its pin ends with that; "" = not known */
        struct lkg_unfinished unfinished;
        char lost
                [LKG_LOST_MAX]; /* what of the above could not be kept, for people; until somebody does something */
        uint64_t last_good; /* generation served last; 0 = none yet */
        char base
                [PATH_MAX]; /* the local base that was part of what was served last, as configured; "" = none ever */
        enum lkg_condition_status status;
        uint64_t transition_ns; /* of the condition; 0 = never set */
        uint64_t
                ticket; /* of the last command carried out in this boot: asked again, it is not done twice */
};

/* The cause of a mark, for programs. The reason is for people and may contain foreign text. */
enum lkg_bad_cause {
        LKG_BAD_MARKED,   /* by hand, in bad/ */
        LKG_BAD_LOAD,     /* it cannot be loaded, or an engine died of it */
        LKG_BAD_PARSE,    /* its payload cannot be decoded */
        LKG_BAD_INVALID,  /* a rule or the guard refuses it */
        LKG_BAD_CRASHED,  /* a crash loop during its trial */
        LKG_BAD_OPERATOR, /* an operator rolled back to something earlier */
        _LKG_BAD_CAUSE_MAX
};

struct lkg_bad {
        char id[LKG_SOURCE_ID_MAX + 1]; /* file name: a source id, or a uid = all its versions */
        uint64_t time_ns;
        enum lkg_bad_cause cause;
        char reason[LKG_REASON_MAX];
        struct lkg_config_source source; /* as far as known */
};

struct lkg_bad_list {
        struct lkg_bad *items; /* sorted by id */
        size_t n_items;
};

/** lkg_bad_named() - the mark of this very name, or NULL. */
const struct lkg_bad *lkg_bad_named(const struct lkg_bad_list *list, const char *id);
/** lkg_bad_find() - the entry that condemns @source: its id, or its uid. NULL = it is not bad. */
const struct lkg_bad *lkg_bad_find(const struct lkg_bad_list *list, const struct lkg_config_source *source);
/** lkg_bad_same_content() - an entry about the same bytes of the same object under another version. */
const struct lkg_bad *lkg_bad_same_content(const struct lkg_bad_list *list,
                                           const struct lkg_config_source *source);

#define LKG_STARTUPS_MAX 11u /* the highest threshold and one more: dynamic-configuration proposal */

struct lkg_startup {
        uint64_t time_ns; /* wall time */
        int pid;          /* 0 = reported by hand */
        uint64_t
                start_time; /* field 22 of /proc/PID/stat: identifies a process of this boot, together with pid; 0 = none */
        bool counted;
        bool local; /* on the local configuration or the last known good */
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

/* What a step needs to know, and does not change. */
struct lkg_lifecycle_facts {
        const struct lkg_bad_list *bad;
        bool remote;        /* the component may follow a remote configuration */
        bool scope_all;     /* trial.scope all: every generation is on trial, not only a remote one */
        bool watched;       /* the component is recognised by process: its life drives the trial clock */
        bool serves_active; /* readers get what pointers.active names, and not a held generation */
        uint64_t active;    /* number of the generation that readers get; 0 = none */
        const char *sha256; /* of its document; "" = none */
        uint64_t trial_saved_ns; /* CLOCK_BOOTTIME of the last SAVE_TRIAL */
};

/** lkg_document_source() - the name under which the document with this digest is marked and tried (trial.scope all). */
struct lkg_config_source lkg_document_source(const char *sha256);
/** lkg_tried_source() - the source that the trial is about: the active one, or after a rollback the one that failed. */
const struct lkg_config_source *lkg_tried_source(const struct lkg_pointers *p);
/**
 * lkg_trial_is_of() - does a trial that is stored for @of count for @source? For the same bytes under another version, too: a
 * new version goes on with it, and if only the trial was renamed in time, the old one does.
 */
bool lkg_trial_is_of(const struct lkg_config_source *of, const struct lkg_config_source *source);
/** lkg_lifecycle_tried() - whose trial is on disk: that of such a source, or (@scope_all) of a document. */
const struct lkg_config_source *lkg_lifecycle_tried(const struct lkg_lifecycle *l, bool scope_all);
/** lkg_lifecycle_on_trial() - does the trial run, and is it about what readers get? A held generation is not judged. */
bool lkg_lifecycle_on_trial(const struct lkg_lifecycle *l, const struct lkg_lifecycle_facts *facts);
/** lkg_lifecycle_serves_tried() - do readers get the configuration that the trial is about? */
bool lkg_lifecycle_serves_tried(const struct lkg_lifecycle *l, const struct lkg_lifecycle_facts *facts);
/** lkg_lifecycle_may_abandon() - would a rollback abandon a remote configuration? */
bool lkg_lifecycle_may_abandon(const struct lkg_lifecycle *l, const struct lkg_lifecycle_facts *facts);
/** lkg_lifecycle_say_assigned() - the id of what is assigned, or "local": what the pin of a rollback was made for. */
void lkg_lifecycle_say_assigned(const struct lkg_pointers *p, char ret[static LKG_SOURCE_ID_MAX + 1]);

/* ---- events ---- */

enum lkg_event_kind {
        /* from the reference */
        LKG_EVENT_ASSIGNED, /* source, whose checkpoint is durable; node_uid: of the Node that refers to it, NULL = none */
        LKG_EVENT_NODE,  /* node_uid: that Node refers to what is assigned now */
        LKG_EVENT_RESET, /* nothing is assigned: back to the local configuration */
        /* from judging */
        LKG_EVENT_TRIED_GOOD, /* what is assigned can be followed */
        LKG_EVENT_TRIED_BAD,  /* what is assigned cannot: cause, reason */
        LKG_EVENT_FORBIDDEN,  /* the guard forbids what is followed: reason */
        LKG_EVENT_LOST, /* the checkpoint of what is followed cannot be used: reason, fault; known: an engine died of it */
        /* from the cycle */
        LKG_EVENT_SETTLE, /* before a publication: what follows from the bad list? */
        LKG_EVENT_RESUMED, /* scope_all, an engine begins: the one before may have ended in the middle of a rollback */
        LKG_EVENT_LAYERS, /* scope_all: what the layers come to: sha256, "" = what is served; mark: that condemns it */
        LKG_EVENT_SERVED, /* facts.active is what readers get with the next publication: rules */
        LKG_EVENT_BEGIN,  /* of BEGIN_TRIAL: rules; stored */
        LKG_EVENT_PASSED, /* the trial of what is served is over */
        LKG_EVENT_MERGED, /* of MERGE_GOOD: usable, valid, sha256 */
        LKG_EVENT_FINISH, /* the rest of an unfinished command */
        LKG_EVENT_PINNED, /* of SERVE_GOOD: facts.active is the last known good: mode */
        LKG_EVENT_FINISHED,
        LKG_EVENT_PUBLISHING,  /* a new generation is about to be published: an armed try begins to run */
        LKG_EVENT_UNPUBLISHED, /* ... and could not be: hold, as it was */
        LKG_EVENT_HOLD_LOST,   /* the held generation cannot be read any more: reason */
        LKG_EVENT_PIN,         /* an engine begins: was something assigned since the pin of a rollback? */
        /* from processes and the clock */
        LKG_EVENT_START,     /* the component starts: startup, whose `local` is found by the step */
        LKG_EVENT_ALIVE,     /* alive: a process lives that has read the configuration on trial */
        LKG_EVENT_TRY_DUE,   /* time has passed */
        LKG_EVENT_TRIAL_DUE, /* time has passed */
        /* from an operator */
        LKG_EVENT_HOLD,          /* command, argument, known, other, by, ticket */
        LKG_EVENT_ROLLBACK_GOOD, /* by, ticket */
        LKG_EVENT_PROMOTE,
        LKG_EVENT_MARK,     /* mark; known: there is one of this name already */
        LKG_EVENT_FORGIVEN, /* marks were removed */
        /* an effect of another event failed: of, failed, code, marked_id, before */
        LKG_EVENT_FAILED,
        _LKG_EVENT_MAX
};
/** lkg_event_name() - "assigned", "tried good", ...; for the log and the tests. */
const char *lkg_event_name(enum lkg_event_kind kind);

enum lkg_effect_kind {
        LKG_EFFECT_ADOPT, /* the next state is the state from here on */
        /* durable */
        LKG_EFFECT_KEEP_RECORD, /* keep the record on disk under another name, so that RESTORE_RECORD needs no space */
        LKG_EFFECT_RESTORE_RECORD,  /* put it back */
        LKG_EFFECT_FORGET_RECORD,   /* remove the kept one */
        LKG_EFFECT_KEEP_GENERATION, /* @generation must be in the history before a record names it */
        LKG_EFFECT_SAVE_RECORD,     /* next.record */
        LKG_EFFECT_SAVE_DOCUMENT,   /* the served one, as that of the last known good */
        LKG_EFFECT_SAVE_TRIAL,      /* next.trial, of lkg_lifecycle_tried() of next */
        LKG_EFFECT_SAVE_POINTERS,   /* next.pointers */
        LKG_EFFECT_MARK_BAD,        /* mark of the step */
        LKG_EFFECT_FORGIVE,         /* the mark that the failed event has made */
        LKG_EFFECT_NOTE_START,      /* startup of the step */
        /* in memory of the engine */
        LKG_EFFECT_FOLLOW,         /* the layers over what was tried */
        LKG_EFFECT_FOLLOW_MISSING, /* the last known good, whose checkpoint is lost */
        LKG_EFFECT_REFRESH,        /* look at the layers over the new base */
        LKG_EFFECT_MERGE_GOOD, /* the layers over the last known good; comes back as MERGED. same: over the same base */
        LKG_EFFECT_SERVE_STORED, /* the stored document of the last known good, else the local configuration */
        LKG_EFFECT_SERVE_GOOD, /* publish the last known good; comes back as PINNED. same: the stored document, always */
        LKG_EFFECT_BEGIN_TRIAL, /* comes back as BEGIN, with the trial that is stored for this document */
        LKG_EFFECT_TELL,        /* the log and the cluster: news */
        LKG_EFFECT_RETRY,       /* look again after a while */
        LKG_EFFECT_NEXT,        /* the event @next, with what this event had */
        _LKG_EFFECT_MAX
};
/** lkg_effect_name() - "adopt", "save pointers", ... */
const char *lkg_effect_name(enum lkg_effect_kind kind);

enum lkg_news {
        LKG_NEWS_REJECTED,    /* mark of the step */
        LKG_NEWS_ROLLED_BACK, /* next.pointers.rollback; cause */
        LKG_NEWS_PROMOTED,
        LKG_NEWS_TRY_EXPIRED, /* next.record.hold */
        _LKG_NEWS_MAX
};

struct lkg_effect {
        enum lkg_effect_kind kind;
        bool optional; /* another durable effect says the same, or a later one will: go on without it */
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
        bool usable, valid;             /* MERGED: the base can be used; its merge can be served */
        const char *
                sha256; /* MERGED: of the merge that failed with the same local layers; "" = there is none */
        enum lkg_hold_mode mode;
        const struct lkg_hold *hold;
        const struct lkg_startup *startup;
        bool alive;
        enum lkg_hold_command command;
        uint64_t argument, ticket;
        const struct lkg_held_by *by; /* NULL = nobody's: the clock or a rule */
        bool by_command;  /* START, FINISH: somebody waits for the answer, and a refusal changes nothing */
        uint64_t wall_ns; /* of now; now_ns is CLOCK_BOOTTIME */

        /* FAILED */
        enum lkg_event_kind of;
        enum lkg_effect_kind failed;
        int code;              /* -errno */
        const char *marked_id; /* the mark that MARK_BAD has made; NULL = none, or there was one */
        const struct lkg_component_state *before; /* the record before the command */
};

#define LKG_EFFECTS_MAX 12u

struct lkg_step {
        struct lkg_lifecycle next;
        int result; /* 0; or why the event is refused: then next is unchanged and there are no effects */
        const char *why; /* in words, when result is not 0 */
        bool accepted;   /* FAILED: the event counts as done; what is left of it comes later */
        enum lkg_bad_cause cause;
        struct lkg_bad mark;
        struct lkg_startup startup;
        size_t n_effects;
        struct lkg_effect effects[LKG_EFFECTS_MAX];
};

/** lkg_step() - what follows from @event. @ret: written; large */
void lkg_step(const struct lkg_lifecycle *l, const struct lkg_lifecycle_facts *facts,
              const struct lkg_event *event, uint64_t now_ns, struct lkg_step *ret);
