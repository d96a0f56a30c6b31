/* SPDX-License-Identifier: Apache-2.0 */
/* All that is known about one component, and what it is judged with. */
#pragma once

#include <lkg/base.h>
#include <lkg/config.h>
#include <lkg/facts.h>
#include <lkg/lifecycle.h>
#include <lkg/objects.h>
#include <lkg/pod.h>
#include <lkg/pods.h>
#include <lkg/schema.h>
#include <lkg/stack.h>
#include <lkg/store.h>
#include <lkg/text.h>
#include <lkg/trial.h>

/*
 * Everything the engine knows about one component: its layers, their candidate, the served generation and
 * earlier ones, and the operator's commands.
 *
 * Owned by the engine. The flow: refresh (stack -> candidate), decide (lifecycle.h), commit (a new generation
 * becomes active) or undo (it could not be published).
 */

/* Why there was a rollback to the last known good, for metrics. */
enum lkg_rollback {
        LKG_ROLLBACK_CRASH_LOOP,
        LKG_ROLLBACK_UNHEALTHY, /* alive, and not healthy */
        LKG_ROLLBACK_OPERATOR,  /* a command */
        LKG_ROLLBACK_INVALID,   /* it cannot be loaded, or is now forbidden */
        LKG_ROLLBACK_CONDEMNED, /* a name in bad/ */
        _LKG_ROLLBACK_MAX
};

#define LKG_HEALTH_URL_MAX 128
#define LKG_EVENT_TEXT_MAX 1024

struct lkg_component_names {
        char *pods_dir;    /* where a kubelet reads static pods; NULL = nobody serves them */
        char *pods_source; /* what its layers name then */
        char *hint;        /* first line of a YAML document */
        char *top;         /* `lkgfs/` for a virtualDir, otherwise "" */
        char *status_path; /* `status/kubelet`, below it */
};

/* The command line that the judge uses, which borrows the words, and its release; 0 = the latest. */
struct lkg_component_line {
        struct lkg_strings words;
        unsigned release;
};

/* An attempt to follow the assigned source. */
struct lkg_attempt {
        struct lkg_remote_base *base; /* while it is judged; else NULL */
        /*
         * The local candidate with which it was tried, and which it waits for or was bad with; NULL = it is tried, or judged
         * again for the findings of a bad one.
         */
        struct lkg_candidate *tried_with;
        char untried[LKG_REASON_MAX];     /* the local fault (memory, disk) that prevents trying it */
        uint64_t try_at_ns, try_pause_ns; /* CLOCK_BOOTTIME: no new try before this; the pause before it */
        struct lkg_report findings;
};

/* Slots of the rollout: of the assigned source, or of the one that was tried last. */
struct lkg_slot_need {
        struct lkg_config_source of;
        struct lkg_rollout_limits limits;
        uint64_t duration_ns; /* of its trial */
        bool needed;          /* it was tried and is good, and waits for a slot */
        char words[256];      /* why; "" */
};

/* What is known of the document that is served. */
struct lkg_component_served {
        /* of generation @number, its values know their layers; NULL = it came from disk */
        struct lkg_value *doc;
        uint64_t number;
        struct lkg_config_source source; /* the one that it was last attributed to */
        bool from_disk;                  /* because no candidate was valid yet */
        uint64_t rejected_ns; /* wall time since when the candidate has been invalid, 0 = it is valid */
};

struct lkg_component_findings {
        const struct lkg_report *api; /* borrowed: about the API server; NULL = it is not asked */
        struct lkg_report engine;     /* about holds */
        struct lkg_report fallback;   /* about the copies */
        struct lkg_report facts;      /* about release and command line */
        size_t n[_LKG_SEVERITY_MAX];  /* that status/<c>/findings shows or counts, of all reports */
};

struct lkg_component_faults {
        char *text;          /* the layers could not be read, or publishing failed; NULL = neither */
        bool of_publication; /* the latter: cleared when a publication succeeds */
        char *last_error;    /* status/<c>/last-error; NULL = empty */
        bool lost_now;       /* lost in this round, so a new generation of this round does not clear it */
};

/* What is still to be done. */
struct lkg_component_due {
        bool record; /* the state file is older than the state (not for hold and try: those are written first) */
        bool fallback; /* the copies are out of date */
        bool facts;    /* findings.facts are about older facts */
        bool guard;    /* base was followed before this lkgfs configuration was read */
        /* CLOCK_BOOTTIME: a due step could not be stored; the next look tries again */
        uint64_t trial_failed_ns;
};

/* Since the engine started, for metrics. */
struct lkg_component_counts {
        uint64_t published, refused, starts;
        uint64_t rollbacks[_LKG_ROLLBACK_MAX];
};

/* What the checks of the trial say. */
struct lkg_component_health {
        struct lkg_probe
                *probe; /* of its endpoint, see probes.h; freed by the engine; NULL = not asked yet */
        enum lkg_health_state state[_LKG_CHECK_MAX];
        char words[_LKG_CHECK_MAX][LKG_HEALTH_WORDS_MAX]; /* why they are not good; "" */
        /* the same when it was bad; "" = not since the start */
        char last_bad[_LKG_CHECK_MAX][LKG_HEALTH_WORDS_MAX];
        char url[LKG_HEALTH_URL_MAX]; /* of this generation, for trial.health.http.url: auto */
        uint64_t generation;          /* 0 = not looked up yet */
        bool remote;                  /* allowRemote at that time */
        const char *off;              /* why that document's endpoint is not asked; "" or NULL = it is */
};

/* Its last process, and our changes. */
struct lkg_component_process {
        bool own_event;     /* it exited because of our change event ... */
        int ended_fd;       /* ... unless this pidfd says that it was killed; -EBADF = there is none */
        bool answers_start; /* one that is just starting will read the next generation */
        uint64_t served_ns; /* CLOCK_BOOTTIME of the last new generation */
};

/* What is followed could not be loaded, and what follows from that is not done yet. */
struct lkg_component_loss {
        bool unloaded;
        bool unread; /* because the disk has an error: its checkpoint may be there */
};

/* A static pod that is served. */
struct lkg_pod {
        char *file;                  /* its name */
        char sha256[LKG_SHA256_HEX]; /* of its text */
        struct lkg_value *text, *doc;
        struct lkg_pod_trial trial;
        struct lkg_pod_facts facts;
        char words[LKG_HEALTH_WORDS_MAX]; /* why it does not answer well, or is not tried; "" */
};

/* What a component of kind StaticPods has beside the set of texts, which is its document. */
struct lkg_pods {
        struct lkg_pod *items; /* of generation @of, in byte order of their names */
        size_t n_items;
        uint64_t of, since_ns;   /* since_ns: when that was seen first */
        struct lkg_value *texts; /* of the same; NULL = nothing is served */
        struct lkg_value *good;  /* the texts of the last good set; NULL = none */
        char good_sha256[LKG_SHA256_HEX];
        uint64_t judged_by; /* a hash of what the set was made with, besides the files */
        unsigned release;   /* of the kubelet that reads them; 0 = not known */
        bool is_placed;     /* the kubelet's layers have said where they are */
        char *elsewhere;    /* the file that is missing where they say now; NULL = none */
};

/* What all components of an engine share. */
struct lkg_component_env {
        struct lkg_config
                *config; /* the engine changes the directory of static pods, if it is not configured */
        struct lkg_state *state;
        struct lkg_poison *poison;
        int source_fd;
        const char *source_path;
        const char *mount_point; /* of the view, which the engine cannot see; NULL = none (tests) */
        struct lkg_settled *settled;
        struct lkg_store *store;
};

struct lkg_component {
        const struct lkg_component_env *env;       /* borrowed from the engine */
        const struct lkg_config_component *config; /* borrowed from the engine's configuration */
        unsigned index;
        struct lkg_component_names names;

        struct lkg_facts *facts; /* NULL in tests and --check: no facts are known */
        struct lkg_component_line line;
        /* over the base file, over a remote base: each remembers the last one */
        struct lkg_judge *judges[2];
        struct lkg_stack *stack;
        bool base_is_fallback;        /* the base file is our own fallback copy, so the stack has none */
        struct lkg_remote_base *base; /* what is followed instead of the base file; NULL = the base file */
        struct lkg_remote_base *good; /* the last known good, while it is another remote one; else NULL */
        struct lkg_candidate *candidate; /* last looked at; NULL = none yet */
        struct lkg_attempt assigned;
        struct lkg_slot_need slots;
        struct lkg_component_loss loss;

        struct lkg_pods *pods; /* of kind StaticPods; else NULL */

        struct lkg_component_state state;
        struct lkg_dynamic *dynamic; /* NULL = no store: see the findings */
        struct lkg_history history;
        struct lkg_component_due due;

        struct lkg_generation *active, *previous; /* previous: what `diff` compares with */
        struct lkg_generation *published;         /* what readers have had since the last publication */
        struct lkg_component_served served;
        struct lkg_condition condition;
        struct lkg_component_findings findings;
        struct lkg_component_faults faults;
        struct lkg_component_counts counts;
        struct lkg_component_health health;
        struct lkg_component_process process;
};

/** lkg_component_stack_config() - where the layers of @k are. Borrows the strings of @k and @source_path. */
struct lkg_stack_config lkg_component_stack_config(const struct lkg_config *config,
                                                   const struct lkg_config_component *k, int source_fd,
                                                   const char *source_path);

/** lkg_component_admission() - for the stacks of @c. Borrows @c. */
struct lkg_admission lkg_component_admission(const struct lkg_component *c);

/**
 * lkg_component_reader() - the component that reads the layers of @k, judging by its name; NULL = unknown,
 * or the layers are configured to be of another kind.
 */
const char *lkg_component_reader(const struct lkg_config_component *k);

#define LKG_BASE_MISSING 2031u /* the finding */
#define LKG_NO_BASE      2018u

/**
 * lkg_component_wanted_base() - the base that must exist: configured, or part of an earlier served document. "" = it may be
 * missing.
 */
const char *lkg_component_wanted_base(const struct lkg_component *c);
/** lkg_component_note_base() - the served document contains the base, so the base must exist from now on. */
void lkg_component_note_base(struct lkg_component *c);
/**
 * lkg_component_served_has_base() - is the served local document `init`? True even if its base is gone by
 * now.
 */
bool lkg_component_served_has_base(const struct lkg_component *c);
/**
 * lkg_component_local_has_base() - is the local configuration `init`, even while a remote one hides it? True
 * also if its base must exist but is missing.
 */
bool lkg_component_local_has_base(const struct lkg_component *c);
/** lkg_component_local_errors() - number of errors in the local layers; a base that a remote one replaces may be missing. */
size_t lkg_component_local_errors(const struct lkg_component *c);

/** lkg_component_errors_in() - number of errors in @file that are certain. @ret_syntax: is one of them a syntax error? */
size_t lkg_component_errors_in(const struct lkg_report *report, const char *file, bool *ret_syntax);

/**
 * lkg_component_follow() - from now on the layers are over @base, which is taken over; NULL = the base file. Failure
 * is recorded as a fault, and the next refresh tries again.
 */
void lkg_component_follow(struct lkg_component *c, struct lkg_remote_base *base);
/**
 * lkg_component_over() - the layers, as they were last read, over @base; NULL = the base file.
 * @ret: one reference
 * Return: 0; -EAGAIN: they were not read yet; -errno.
 */
int lkg_component_over(const struct lkg_component *c, const struct lkg_remote_base *base,
                       struct lkg_candidate **ret, struct lkg_error *err);
/**
 * lkg_component_local() - the candidate of the local layers, whatever base is followed; NULL = not looked at yet. Borrowed
 * until the next refresh.
 */
struct lkg_candidate *lkg_component_local(const struct lkg_component *c);

/** lkg_component_source() - the source of its base: local, or that of the remote base. */
const struct lkg_config_source *lkg_component_source(const struct lkg_component *c);

/**
 * lkg_component_shown() - the configuration that the view shows, which may be a held generation of another source.
 * @ret: written; with the version under which that content is known today
 *
 * Return: @ret.
 */
const struct lkg_config_source *lkg_component_shown(const struct lkg_component *c,
                                                    struct lkg_config_source *ret);

/** lkg_component_init() - stack, history and state of @config. @report: lost state. */
int lkg_component_init(struct lkg_component *c, const struct lkg_component_env *env, unsigned index,
                       struct lkg_report *report, struct lkg_error *err);
/**
 * lkg_component_keep() - @c was created for a new lkgfs configuration; it takes over @known, except for what
 * the configuration decides. Layers are read again. @known gets the rest of @c, for lkg_component_deinit().
 */
void lkg_component_keep(struct lkg_component *c, struct lkg_component *known);
void lkg_component_deinit(struct lkg_component *c);

/**
 * lkg_component_refresh() - read the layers and judge the candidate; nothing changes for readers yet.
 * @touched: what may have changed since the last refresh
 *
 * Return: 1: the verdict may have changed; 0: nothing has; -errno (also recorded as fault).
 */
int lkg_component_refresh(struct lkg_component *c, const struct lkg_touched *touched, struct lkg_error *err);

/**
 * lkg_component_learn() - judge with the current c->facts from the next refresh on.
 * Return: have they changed?
 */
bool lkg_component_learn(struct lkg_component *c);

/** lkg_component_release() - the release whose tables judge @c: 136 is 1.36. */
unsigned lkg_component_release(const struct lkg_component *c);

/**
 * lkg_component_effective() - the component's effective configuration with the active generation.
 *
 * Taken from the candidate if that is served; otherwise the served document is judged again, and if it was
 * read back from the history, every value of it comes from `generation N`.
 * Return: one reference; NULL: nothing is active, or its kind has no table.
 */
struct lkg_value *lkg_component_effective(const struct lkg_component *c);
/** lkg_component_served_has_table() - has the kind of the served document a table? true also if it came from disk. */
bool lkg_component_served_has_table(const struct lkg_component *c);

/** lkg_component_serves_candidate() - has the candidate the bytes of what is served? */
static inline bool lkg_component_serves_candidate(const struct lkg_component *c)
{
        return c->active && c->candidate && c->candidate->state == LKG_CANDIDATE_VALID &&
               strcmp(c->candidate->sha256, c->active->sha256) == 0;
}
/** lkg_component_refuses() - are its layers, or some of its manifests, not served as they are? */
bool lkg_component_refuses(const struct lkg_component *c);
/** lkg_component_verdict() - what becomes of the candidate: lkg_decide(). */
enum lkg_verdict lkg_component_verdict(const struct lkg_component *c);
/** lkg_component_note_served() - remember what the values of the served document come from, if the candidate says so. */
void lkg_component_note_served(struct lkg_component *c);

/**
 * lkg_component_set_active() - with the next publication, readers get another generation (or none). Takes
 * its own reference. The consequences (restart, fallback copy) follow when that has succeeded.
 */
void lkg_component_set_active(struct lkg_component *c, struct lkg_generation *generation);

/** lkg_component_serve_again() - the same for a generation that was served before. */
void lkg_component_serve_again(struct lkg_component *c, struct lkg_generation *generation);
/**
 * lkg_component_note_published() - readers get c->active now.
 * Return: did they get another generation before?
 */
bool lkg_component_note_published(struct lkg_component *c);

/**
 * lkg_component_update_condition() - update the condition from the facts. @node: findings that are not about
 * a component.
 */
void lkg_component_update_condition(struct lkg_component *c, const struct lkg_report *node, bool not_ready);

/** lkg_component_set_fault() - remember why the layers or the publication failed; NULL = no longer. */
void lkg_component_set_fault(struct lkg_component *c, const char *fmt, ...) LKG_PRINTF(2, 3);
void lkg_component_clear_fault(struct lkg_component *c);

/** lkg_component_set_last_error() - text of status/<c>/last-error; NULL = empty. */
void lkg_component_set_last_error(struct lkg_component *c, const char *text);

/**
 * lkg_component_set_lost() - what could not be saved; shown until an operator acts. NULL = nothing any more.
 */
void lkg_component_set_lost(struct lkg_component *c, const char *text);

/** lkg_component_note() - findings: held, tried, waiting for the rollout, or missing. */
void lkg_component_note(struct lkg_component *c);

/** lkg_component_waiting() - why the rollout holds back the desired configuration; NULL = it does not. */
const char *lkg_component_waiting(const struct lkg_component *c);

/** lkg_component_try_deadline() - wall time, in whole seconds, at which a running try ends. */
uint64_t lkg_component_try_deadline(const struct lkg_component *c);

/**
 * lkg_component_watch() - add the directories whose changes may concern the layers of @c, including layers
 * that a remote base hides.
 */
void lkg_component_watch(const struct lkg_component *c, struct lkg_watch *watch);

/* ---- which generation is served: served.c ---- */

/* The state before a publication that may fail. */
struct lkg_served {
        struct lkg_generation *active, *previous;
        struct lkg_hold hold;
        bool last_good, changed;
        uint64_t number; /* of a new generation; 0 = none */
};
void lkg_component_remember(const struct lkg_component *c, struct lkg_served *ret);
void lkg_served_deinit(struct lkg_served *served);
/**
 * lkg_component_serve_before() - the publication failed: serve @before again. Takes its generations. Only if
 * @before->changed.
 */
void lkg_component_serve_before(struct lkg_component *c, struct lkg_served *before);

/** lkg_component_prune_history() - keep as many generations as are configured, not counting those that are still needed. */
void lkg_component_prune_history(struct lkg_component *c);
/** lkg_component_recover_last_good() - restore what @c served last from its history, if it can be read. */
void lkg_component_recover_last_good(struct lkg_component *c);
/** lkg_component_recover_previous() - restore the newest generation before the active one, for `diff`. */
void lkg_component_recover_previous(struct lkg_component *c);

/* ---- layers that are not served: component-findings.c ---- */

/**
 * lkg_component_check_first() - may @c be served at all? Only called when none of it is mounted yet. Logs
 * all errors.
 *
 * Return: 0, or a sysexits code; @err says why.
 */
int lkg_component_check_first(const struct lkg_component *c, struct lkg_error *err);

/* ---- values that several files of the view show: component-condition.c ---- */

/** lkg_component_find() - the component named @name; NULL = none. */
struct lkg_component *lkg_component_find(struct lkg_component *components, size_t n, const char *name);
/** lkg_component_log_fields() - the fields for log messages about @c. */
struct lkg_log_fields lkg_component_log_fields(const struct lkg_component *c);
/** lkg_component_error() - the field `error` of NodeConfigStatus; "" = no error. @ret_findings: do findings say why? May be NULL. */
const char *lkg_component_error(const struct lkg_component *c, bool *ret_findings);
/**
 * lkg_component_pointers() - the assigned, active and last known good source; all local while remote
 * configuration is off.
 */
const struct lkg_pointers *lkg_component_pointers(const struct lkg_component *c);
/**
 * lkg_component_good_document() - the document of the last known good, if it is known.
 * Return: its generation, 0 = none.
 */
uint64_t lkg_component_good_document(const struct lkg_component *c, const char **ret_sha256);
/** lkg_trial_wall_deadline() - wall time of the deadline; 0 = none now. */
uint64_t lkg_trial_wall_deadline(const struct lkg_trial *trial);

/* ---- the lifecycle's view of it: component-lifecycle.c ---- */

/** lkg_component_is_remote() - may @c follow a remote configuration? */
bool lkg_component_is_remote(const struct lkg_component *c);
/** lkg_component_take_lifecycle() - the state of @c, and the facts that a step needs. */
void lkg_component_take_lifecycle(const struct lkg_component *c, struct lkg_lifecycle *ret,
                                  struct lkg_lifecycle_facts *ret_facts);
/** lkg_component_needs_slot() - does the assigned source, which was tried and is good, need a slot? */
bool lkg_component_needs_slot(const struct lkg_component *c);
/** lkg_component_waits_for_slot() - is what is assigned limited by slots, and not followed yet? */
bool lkg_component_waits_for_slot(const struct lkg_component *c);
/**
 * lkg_component_slot_wish() - the slot that is wanted, or kept, or given back. @newest: what the ConfigMap has now, @wall_ns: now
 * @ret: id.uid "" = none
 */
void lkg_component_slot_wish(const struct lkg_component *c, const struct lkg_config_source *newest,
                             uint64_t wall_ns, struct lkg_slot_wish *ret);
/** lkg_component_say_slot() - why it waits; "" = it does not. */
void lkg_component_say_slot(struct lkg_component *c, const char *words);
/** lkg_component_unhealthy() - what is bad of what the trial judges; NULL = nothing at the moment. */
const char *lkg_component_unhealthy(const struct lkg_component *c);

/**
 * lkg_component_event_text() - the message of an Event: @c, @source, then @words, which must not be content.
 */
void lkg_component_event_text(const struct lkg_component *c, const struct lkg_config_source *source,
                              const char *words, char ret[static LKG_EVENT_TEXT_MAX]);
/* What the cluster is told: an Event. */
struct lkg_component_news {
        bool warning;
        const char *reason; /* NULL = nothing */
        const struct lkg_config_source *source;
        char words[LKG_REASON_MAX]; /* never content */
};
/** lkg_component_tell() - log @kind, which @step of @event brings, and count it. @ret: borrows @step */
void lkg_component_tell(struct lkg_component *c, enum lkg_news kind, const struct lkg_event *event,
                        const struct lkg_step *step, struct lkg_component_news *ret);
/**
 * lkg_component_adopt() - replace @now by @next. @saved_record: that of @next is on disk
 * already
 */
void lkg_component_adopt(struct lkg_component *c, const struct lkg_lifecycle *now,
                         const struct lkg_lifecycle *next, bool saved_record);
/** lkg_component_runs_tried() - is @t alive, with the configuration on trial? */
bool lkg_component_runs_tried(const struct lkg_component *c, const struct lkg_tracked *t);
/**
 * lkg_component_trial_deadline() - when the trial passes, or its running time must be saved. UINT64_MAX =
 * never.
 */
uint64_t lkg_component_trial_deadline(const struct lkg_component *c);

/* ---- static pods: pods.c, pods-step.c ---- */

struct lkg_pods *lkg_pods_free(struct lkg_pods *pods);
/* What a set is made with, besides the files; each may be NULL. */
struct lkg_pods_by {
        const struct lkg_value *served, *good; /* texts */
        const struct lkg_bad_list *bad;
        unsigned release;
        struct lkg_pod_host host;
        const char *hint;
};
/** lkg_pods_severity() - of what this host says, by `startupRules`. */
enum lkg_severity lkg_pods_severity(const struct lkg_config_component *k);
/** lkg_pods_make() - judge the manifests of @candidate, and make the set that is to be served. */
void lkg_pods_make(struct lkg_candidate *candidate, const struct lkg_pods_by *by);
/** lkg_pods_first_bad() - the mark of the first file that is marked bad; NULL = none is. @ret_n: how many are */
const struct lkg_bad *lkg_pods_first_bad(const struct lkg_component *c, size_t *ret_n);
size_t lkg_pods_in(const struct lkg_component *c, enum lkg_pod_state state); /* how many are in it */
size_t lkg_pods_on_trial(const struct lkg_component *c);                     /* how many */
/** lkg_component_covers() - is the view mounted over its source directory? */
bool lkg_component_covers(const struct lkg_component_env *env);
/** lkg_component_move_pods() - the directory of static pods has changed: a kubelet's layers are judged again. */
void lkg_component_move_pods(struct lkg_component *c);
/** lkg_component_read_pods_from() - the manifests are in @dir from now on. Return: were they elsewhere? */
bool lkg_component_read_pods_from(struct lkg_component *c, const char *dir);
/** lkg_pods_judge() - lkg_judge_fn for manifests; @userdata: the component. The set of those that are to be served. */
void lkg_pods_judge(struct lkg_candidate *candidate, void *userdata);
/** lkg_pods_refresh() - the set is made again if something besides the files has changed. */
void lkg_pods_refresh(struct lkg_component *c);
/** lkg_pods_follow() - c->pods becomes that of c->active; what is known of a pod whose text is the same stays. */
void lkg_pods_follow(struct lkg_component *c);
/** lkg_pods_learn() - what follows from marks and the last good set, for c->pods. */
void lkg_pods_learn(struct lkg_component *c);
/** lkg_pod_is_asked() - does anything depend on how it answers? */
bool lkg_pod_is_asked(const struct lkg_pod *pod);
/* An Event about a pod; @words: never content. */
typedef void lkg_pods_tell_fn(void *userdata, const struct lkg_component *c, bool warning,
                              const char *reason, const char *words);
/**
 * lkg_pods_step() - the trials of its pods: time has passed, or facts are new. Marks and the last good set are durable.
 * @publishing: another set is about to be published: the last good one is stored by the next step
 */
void lkg_pods_step(struct lkg_component *c, uint64_t now_ns, bool publishing, lkg_pods_tell_fn *tell,
                   void *userdata);
/** lkg_pods_deadline() - when lkg_pods_step() is due; UINT64_MAX = never. */
uint64_t lkg_pods_deadline(const struct lkg_component *c);
/** lkg_pods_rules() - of the trials of @c. */
struct lkg_pod_rules lkg_pods_rules(const struct lkg_component *c);
/** lkg_pods_text() - the text of @file in a set, or NULL. */
const struct lkg_value *lkg_pods_text(const struct lkg_value *texts, const char *file);
/** lkg_pods_set_of() - the document of a set: @texts, which it takes over. Return: one reference. */
struct lkg_value *lkg_pods_set_of(struct lkg_value *texts);
/** lkg_pods_source() - what a mark of this text is about. */
struct lkg_config_source lkg_pods_source(const char *file, const char *sha256);
/** lkg_pods_mark() - the mark of this text of @file, or of all its texts; NULL = it is not marked. */
const struct lkg_bad *lkg_pods_mark(const struct lkg_component *c, const char *file, const char *sha256);
/**
 * lkg_pods_directory() - where the layers of a kubelet say that its static pods are, if that exists; relative to the source directory,
 * if it is in it or below @mount_point (NULL = none). Borrowed from @kubelet; NULL = nowhere.
 */
const char *lkg_pods_directory(const struct lkg_candidate *kubelet, const char *mount_point,
                               const char *source, int source_fd);
/**
 * lkg_pods_stay() - do pods that are served have no file in @dir, which the kubelet's layers name now (NULL = none)? The first answer of an
 * engine is no, unless the kubelet is not told to read the view's directory.
 */
bool lkg_pods_stay(struct lkg_component *c, const struct lkg_component *kubelet, const char *dir);
/** lkg_pods_is_unsettled() - lkg_unsettled_fn of the manifests; @userdata is the component. */
bool lkg_pods_is_unsettled(const char *path, const char *sha256, void *userdata);
/** lkg_pods_served() - the texts of c->active, borrowed; NULL = nothing is served. */
const struct lkg_value *lkg_pods_served(struct lkg_component *c);
/** lkg_pods_good() - the texts of the last good set, borrowed; NULL = there is none. */
const struct lkg_value *lkg_pods_good(const struct lkg_component *c);
/** lkg_component_look_again() - the candidate is made again: something besides the files has changed. */
void lkg_component_look_again(struct lkg_component *c);
/** lkg_pods_layer() - the manifest in @file; NULL: there is no such file, or no candidate. */
const struct lkg_layer_info *lkg_pods_layer(const struct lkg_candidate *candidate, const char *file);

/* ---- marks: suspected.c ---- */

/**
 * lkg_component_mark_bad() - lkg_store_mark_bad() with the suspects of @bad: the record has both or is not written. Marked again,
 * it keeps what was known.
 */
int lkg_component_mark_bad(struct lkg_component *c, const struct lkg_bad *bad, struct lkg_error *err);
/**
 * lkg_component_suspected_generations() - the generations that the newest mark compares, for `lkgfs diff --bad`.
 * Return: how many are in @ret, at most 2.
 */
size_t lkg_component_suspected_generations(const struct lkg_component *c, uint64_t *ret, size_t n_max);

/* ---- starts and ends of its processes: starts.c ---- */

/** lkg_component_start_facts() - what is known about this start. @pid: 0 = not known */
struct lkg_start_facts lkg_component_start_facts(struct lkg_component *c, int pid, uint64_t start_time);
/**
 * lkg_component_manager_says() - what the service manager says about this process. Return: true: it has said
 * something.
 */
bool lkg_component_manager_says(const struct lkg_component *c, int pid, uint64_t start_time,
                                bool *ret_automatic);
/**
 * lkg_component_main_process() - the main process of the unit, by the service manager, whether or not it was seen
 * to read the file.
 * Return: its pid; 0: none runs, or the manager has not said.
 */
int lkg_component_main_process(const struct lkg_component *c);
/**
 * lkg_component_note_ends() - note which processes of @c have ended, and whether the last publication was
 * the reason.
 *
 * Call it before anything new is served and before a start is judged: the end of a process may be handled
 * long after that, and a process that crashed earlier would then look as if our change had ended it.
 */
void lkg_component_note_ends(struct lkg_component *c);

/**
 * lkg_component_planned_restart() - wall time of this node's planned restart; 0 = none. A remote change
 * restarts each node at a different time (remote.restartJitter).
 */
uint64_t lkg_component_planned_restart(const struct lkg_component *c);
/**
 * lkg_component_learn_version() - use the bad list and startups of the component's version. @report: what of
 * them is lost
 */
void lkg_component_learn_version(struct lkg_component *c, struct lkg_report *report);

/* ---- the running process and the served document: served.c ---- */

/**
 * lkg_component_runs_older() - does a process have a document with another meaning than c->active? Unknown
 * counts as yes.
 */
bool lkg_component_runs_older(const struct lkg_component *c);
/**
 * lkg_component_drift() - the fields in which the running process differs from the served document, one JSON pointer per
 * line. Failure is sticky in @buf.
 */
void lkg_component_drift(const struct lkg_component *c, struct lkg_buf *buf);

/* ---- its command line: component-flags.c ---- */

/** lkg_component_check_facts() - update c->facts_findings, which are about release and command line. */
void lkg_component_check_facts(struct lkg_component *c);
/**
 * lkg_flag_on_line() - the value of flag @name on the command line, using @flags of its kind; NULL = it is
 * not there.
 */
const char *lkg_flag_on_line(const struct lkg_flag *flags, size_t n_flags, const struct lkg_strings *words,
                             const char *name);

/* ---- the last known good: bases.c ---- */

/**
 * lkg_component_good_generation() - the generation that a rollback would serve now.
 * Return: one reference; NULL: the same bytes as c->active, or nothing.
 */
struct lkg_generation *lkg_component_good_generation(const struct lkg_component *c);
/** lkg_component_stored_good() - its stored document. Return: 0; -ENOENT; -EBADMSG; -errno. */
int lkg_component_stored_good(const struct lkg_component *c, struct lkg_generation **ret,
                              struct lkg_error *err);

/* ---- all findings: component-findings.c ---- */

/* In order; the first is about the followed layers, the last are not about a component. */
#define LKG_COMPONENT_REPORTS_MAX 8
struct lkg_component_reports {
        const struct lkg_report *items[LKG_COMPONENT_REPORTS_MAX];
        size_t n_items;
        struct lkg_report layers, local; /* those findings of the candidates that apply to this component */
};
/**
 * lkg_component_reports() - @node: findings that are not about a component; may be NULL. The caller calls
 * lkg_component_reports_deinit().
 */
void lkg_component_reports(const struct lkg_component *c, const struct lkg_report *node,
                           struct lkg_component_reports *ret);
void lkg_component_reports_deinit(struct lkg_component_reports *reports);
/** lkg_component_count_findings() - count them by severity. */
void lkg_component_count_findings(const struct lkg_component *c, const struct lkg_report *node,
                                  size_t ret[static _LKG_SEVERITY_MAX]);

/* ---- command ---- */

/*
 * The control files: one row per command. Parsing only; lifecycle.h decides the effect of a command, and the engine carries it out.
 */

enum lkg_command_action {
        LKG_DO_HOLD,
        LKG_DO_SYNC,
        LKG_DO_ROLLBACK_GOOD, /* `rollback lkg` */
        LKG_DO_PROMOTE,
        LKG_DO_FORGET,  /* id, with all versions of a uid; "" = all */
        LKG_DO_FORGIVE, /* id: the entry with exactly this name */
        LKG_DO_CONDEMN, /* id, text: the reason */
        LKG_DO_STARTUP, /* argument: pid, 0 = unknown */
};

#define LKG_COMMAND_TEXT_MAX 255u

struct lkg_command_call {
        enum lkg_command_action action;
        enum lkg_hold_command hold; /* LKG_DO_HOLD */
        uint64_t argument;
        char id[LKG_SOURCE_ID_MAX + 1]; /* a uid, a source id */
        char text[LKG_COMMAND_TEXT_MAX + 1];
};

struct lkg_command {
        const char *name; /* of the control file */
        enum lkg_command_action action;
        enum lkg_hold_command hold; /* LKG_DO_HOLD */
        int (*parse)(const char *text, struct lkg_command_call *ret);
        const char *usage; /* what may be written, for messages */
};

/*
 * Two more commands come from bad/ instead of a control file: `bad`, whose text is a file name, a NUL and the reason;
 * `forgive`, whose text is a file name.
 */
#define LKG_COMMAND_BAD     "bad"
#define LKG_COMMAND_FORGIVE "forgive"

extern const struct lkg_command lkg_commands[];
extern const size_t lkg_n_commands;

/**
 * lkg_command_parse() - parse one write to control/<component>/@name.
 * @text: @size bytes as written; a final newline is ignored
 * @why:  filled if the result is negative
 *
 * Return: 1; 0 for an empty write (nothing to do); -EINVAL.
 */
int lkg_command_parse(const char *name, const char *text, size_t size, struct lkg_command_call *ret,
                      char why[static 256]);

/* ---- bases ---- */

/*
 * The bases that a component's layers can use: one from a checkpoint of the store, the last known good, and
 * the local one. A rollback serves the last known good merged with today's local layers or, if that is
 * impossible or not wanted, its stored document.
 */

/* ---- from checkpoints: bases.c ---- */

/** lkg_trial_settings_of() - what a ConfigMap's own trial rules are checked against. */
struct lkg_trial_settings lkg_trial_settings_of(const struct lkg_config *config);
/** lkg_component_trial_rules() - the rules for a trial of what @c follows. Return: 0 or -errno. */
int lkg_component_trial_rules(const struct lkg_component *c, struct lkg_trial_rules *ret);
/** lkg_components_collect() - remove checkpoints that no component needs. */
void lkg_components_collect(const struct lkg_component *components, size_t n_components,
                            struct lkg_store *store);
/**
 * lkg_component_restore_base() - put the layers over the configuration of @source again. Return: 0; -errno, see
 * lkg_checkpoint_is_lost().
 */
int lkg_component_restore_base(struct lkg_component *c, const struct lkg_config_source *source,
                               struct lkg_error *err);
/** lkg_checkpoint_is_lost() - is @code of loading a base a loss? Otherwise it may be there, and can be read later. */
bool lkg_checkpoint_is_lost(int code);
/**
 * lkg_component_keep_without_base() - what is followed cannot be loaded because of @why: what is served stays, and no local
 * layer replaces it, until c->unloaded is dealt with. Without anything to keep, follow the local configuration.
 */
void lkg_component_keep_without_base(struct lkg_component *c, const char *why);
/** lkg_component_follow_tried() - from now on, the layers of @c are over c->tried. */
void lkg_component_follow_tried(struct lkg_component *c);

/* ---- the last known good: bases.c ---- */

/** lkg_component_load_good() - c->good: for the merge of a rollback. Return: 0; -errno. */
int lkg_component_load_good(struct lkg_component *c, struct lkg_error *err);
/**
 * lkg_component_follow_missing() - the checkpoint of the last known good is lost because of @why: serve its
 * stored document, else follow the local configuration.
 */
void lkg_component_follow_missing(struct lkg_component *c, const char *why);
/** lkg_component_can_serve_good() - would `rollback lkg` find something to serve? True also if only trying can tell. */
bool lkg_component_can_serve_good(struct lkg_component *c);
/**
 * lkg_component_merge_good() - from now on, @c has its layers over the last known good.
 * @same_base: it has already
 * @ret_sha256: of the merge, if it is valid and the local layers have not changed since the failed configuration; else ""
 * @ret_fault: why it is impossible
 */
enum lkg_merge_result lkg_component_merge_good(struct lkg_component *c, bool same_base,
                                               char ret_sha256[static LKG_SHA256_HEX],
                                               char ret_fault[static LKG_REASON_MAX]);
/**
 * lkg_component_serve_stored() - serve the stored document of the last known good instead of a merge, byte
 * for byte.
 */
int lkg_component_serve_stored(struct lkg_component *c, struct lkg_error *err);
/**
 * lkg_component_serve_stored_or_local() - serve the stored document of the last known good, else follow the
 * local configuration.
 */
void lkg_component_serve_stored_or_local(struct lkg_component *c);

/* ---- tried ---- */

/*
 * Judges the assigned configuration before it is followed: over today's local layers. The lifecycle decides what
 * follows from the verdict.
 */

enum lkg_tried { LKG_TRIED_GOOD, LKG_TRIED_BAD, LKG_TRIED_WAIT };

/**
 * lkg_component_check_guard() - may the remote base of @candidate set these fields? @report: those that it
 * may not set.
 */
void lkg_component_check_guard(const struct lkg_component *c, const struct lkg_candidate *candidate,
                               struct lkg_report *report);

/**
 * lkg_component_load_assigned() - c->tried: the assigned configuration, merged and judged with today's local layers.
 * @ret: one reference, if the result is 0
 *
 * c->remote_findings are replaced by those of this attempt. lkg_component_note_tried() ends it.
 * Return: 0; 1: not usable as a configuration (code -EKEYREJECTED in @err: an engine died of it, the message is the reason);
 * negative: a fault.
 */
int lkg_component_load_assigned(struct lkg_component *c, struct lkg_candidate **ret, struct lkg_error *err);

/**
 * lkg_component_blame() - is the assigned configuration at fault?
 * @tried: what lkg_component_load_assigned() returned
 * @ret_syntax: set if it is a syntax error
 *
 * Errors in the remote document itself, or that occur only together with it, are its fault. If the local
 * layers are also invalid without it, such errors prove nothing.
 */
enum lkg_tried lkg_component_blame(const struct lkg_component *c, const struct lkg_candidate *tried,
                                   bool *ret_syntax);
/** lkg_component_note_tried() - the attempt is over. @done: until the local layers change, another one comes to the same. */
void lkg_component_note_tried(struct lkg_component *c, bool done);
/** lkg_component_was_tried() - would another attempt come to the same? */
bool lkg_component_was_tried(const struct lkg_component *c);

/** lkg_component_keep_findings() - the findings of a tried configuration that will not be served. */
void lkg_component_keep_findings(struct lkg_component *c, const struct lkg_candidate *candidate);
/** lkg_component_say_not_used() - add a finding: @id is assigned but not used, because of @reason. */
void lkg_component_say_not_used(struct lkg_component *c, const char *id, const char *reason);
/** lkg_component_say_switched_off() - a note if a remote configuration is assigned: it is not used. */
void lkg_component_say_switched_off(struct lkg_component *c);

/**
 * lkg_component_explain_assigned() - the assigned configuration is @bad: find its findings again. They are
 * only in memory, so a later engine needs this, and one that knows only from its content that it is bad. The
 * verdict stays.
 */
void lkg_component_explain_assigned(struct lkg_component *c, const struct lkg_bad *bad);

/** lkg_component_try_anew() - another source was assigned, or a sync was requested: try it now. */
void lkg_component_try_anew(struct lkg_component *c);
/**
 * lkg_component_set_desired() - record what the reference means now. @waiting: why the rollout holds it
 * back; "" = it does not
 */
void lkg_component_set_desired(struct lkg_component *c, enum lkg_desired_state state, const char *fault,
                               const char *waiting);
/**
 * lkg_component_forgive() - content of @source may be used again: remove the bad mark that was made because
 * of it. "" = none, nothing to do
 */
void lkg_component_forgive(struct lkg_component *c, const char *source);
