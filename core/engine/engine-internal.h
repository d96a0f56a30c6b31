/* SPDX-License-Identifier: Apache-2.0 */
/* The engine's own state and functions, shared by the files of core/engine. */
#pragma once

#include <lkg/messages.h>
#include <lkg/base.h>
#include <lkg/places.h>
#include <lkg/probes.h>
#include <lkg/publish.h>
#include <lkg/component.h>
#include "engine.h"
#include <lkg/process.h>

#define LKG_NEVER           UINT64_MAX
#define LKG_PERSIST_NS      (200 * LKG_NSEC_PER_MSEC) /* quiet time before the state directory is written */
#define LKG_PERSIST_MAX_NS  (2 * LKG_NSEC_PER_SEC)    /* ... but at most this long after its first change */
#define LKG_RETRY_MIN_NS    (100 * LKG_NSEC_PER_MSEC)
#define LKG_RETRY_MAX_NS    (5 * LKG_NSEC_PER_SEC)
#define LKG_CONTAINERS_NS   (5 * LKG_NSEC_PER_SEC)  /* between two questions to the container runtime */
#define LKG_ORPHAN_NS       (30 * LKG_NSEC_PER_SEC) /* lifetime without a supervisor and a file server */
#define LKG_FORGETTING_NAME "forgetting" /* runtime directory: ticket of the last removal of bad marks */
#define LKG_STARTING_NAME   "starting"   /* runtime directory: an engine has started and not published yet */

struct lkg_pending {
        struct lkg_peer *peer;
        uint64_t ticket;
};

/* A start for which the service manager is asked; its open() waits. */
struct lkg_starting {
        struct lkg_peer *peer; /* NULL = the file server is gone */
        uint64_t ticket;
        unsigned component;
        int pid;
        uint64_t start_time;
        uint64_t generation; /* of the file that it opens */
        uint64_t deadline_ns;
};
#define LKG_STARTING_MAX 16u

/* Callbacks into the cycle, which knows all parts; the parts do not know it (lifetime.c). */
struct lkg_engine_hooks {
        void (*cycle)(struct lkg_engine *e, bool look);
        int (*commit)(struct lkg_engine *e);
};
extern const struct lkg_engine_hooks lkg_engine_hooks;

struct lkg_engine_paths {
        char *config, *vendor, *source;
        char *mount_point; /* NULL = no view */
};

struct lkg_engine_sources {
        sd_event_source *inotify, *timer;
        sd_event_source *facts[LKG_COMPONENTS_MAX]; /* inotify of facts/<component>, by index */
};

struct lkg_engine_reports {
        struct lkg_report setup; /* about the configuration, the state, the source directory */
        struct lkg_report reload;
        struct lkg_report shown; /* both of these, as publications show them */
        bool over_limit_noted, ways_noted;
};

/* CLOCK_BOOTTIME, LKG_NEVER = not armed */
struct lkg_engine_clock {
        uint64_t persist_at_ns, persist_last_ns, retry_at_ns, poll_at_ns, orphan_at_ns;
        uint64_t retry_delay_ns;
        uint64_t containers_at_ns; /* not asked for before; 0 = it never was */
};

/* CHANGED messages; one look for all. */
struct lkg_engine_batch {
        struct lkg_pending items[LKG_BATCH_MAX];
        size_t n;
        bool is_looked_at; /* the current cycle looks at these changes, so its publication answers them */
};

struct lkg_engine_starts {
        struct lkg_starting items[LKG_STARTING_MAX];
        size_t n;
};

struct lkg_engine {
        const struct lkg_engine_hooks *hooks;
        struct lkg_engine_options options;
        struct lkg_engine_paths paths;
        sd_event *event;
        struct lkg_engine_sources sources;
        struct lkg_component *components;
        size_t n_components;
        struct lkg_state state;
        struct lkg_publisher *publisher;
        struct lkg_watch watch;
        struct lkg_peers server;
        struct lkg_claims *claims; /* the commands that may still be carried out; NULL = none */
        struct lkg_manifest_rules rules;
        struct lkg_store store; /* lock_fd < 0: no store */
        struct lkg_poison poison;
        struct lkg_admission admission; /* for remote objects */
        struct lkg_places *places;      /* of the reference */
        struct lkg_probes *probes;      /* health endpoints */
        struct lkg_pod_checks *pod_checks;
        struct lkg_pod_runtime runtime;
        struct lkg_engine_reports reports;
        bool started, orphan;
        struct lkg_engine_clock clock;
        uint64_t n_cycles; /* what is shown may have changed with each */
        struct lkg_engine_batch batch;
        struct lkg_component_env env; /* what its components borrow; it owns the configuration */
        struct lkg_settled settled;   /* which changed files already count */
        struct lkg_engine_starts starts;
};

/**
 * lkg_engine_cycle() - something has happened: run one cycle, and when it is quiet save what has to be saved, and look at
 * everything. @look: also look at the layers now, not only at commands and timers.
 */
void lkg_engine_cycle(struct lkg_engine *e, bool look);
/** lkg_engine_turn() - run one cycle because it is time. */
void lkg_engine_turn(struct lkg_engine *e, bool look);

/** lkg_engine_look() - refresh what was touched (lkg_watch_touch()) in every component, and update the watches. */
void lkg_engine_look(struct lkg_engine *e);

/** lkg_engine_commit() - judge, and publish what differs from what readers see. Return: 0 or -errno. */
int lkg_engine_commit(struct lkg_engine *e);

/** lkg_engine_answer_looked_at() - answer the CHANGED messages that caused the current cycle. */
void lkg_engine_answer_looked_at(struct lkg_engine *e);

/** lkg_engine_persist_soon() - call lkg_engine_persist() when it is quiet. */
void lkg_engine_persist_soon(struct lkg_engine *e);

/** lkg_engine_persist() - write history, state files and number reservation, and request fallback copies. */
void lkg_engine_persist(struct lkg_engine *e);

/* snapshot.c: used by all parts; what is known now */
/** lkg_engine_kubelet() - the component that has the document of a kubelet; NULL = none has been judged yet. */
struct lkg_component *lkg_engine_kubelet(const struct lkg_engine *e);
/** lkg_engine_save_record() - save @record durably as that of @c. Return: 0 or -errno, already logged. */
int lkg_engine_save_record(struct lkg_engine *e, struct lkg_component *c,
                           const struct lkg_component_state *record);
void lkg_engine_mark_findings(struct lkg_engine *e);
/** lkg_engine_retry_by() - look again then at the latest (CLOCK_BOOTTIME). */
void lkg_engine_retry_by(struct lkg_engine *e, uint64_t at_ns);

struct lkg_engine_snapshot {
        struct lkg_snapshot snapshot;
        struct lkg_snapshot_component components[LKG_COMPONENTS_MAX];
        struct lkg_remote_status remote[LKG_COMPONENTS_MAX];
};
/** lkg_engine_take_snapshot() - everything that is known now. @ret borrows all of it. */
void lkg_engine_take_snapshot(struct lkg_engine *e, struct lkg_engine_snapshot *ret);

/* loop.c */
/**
 * lkg_engine_ask_first_fallback() - on the very first start, request the copies before the publication is announced, so that they
 * exist before anyone sees the view: a backup that starts as soon as the unit is ready finds a directory that no longer changes.
 */
void lkg_engine_ask_first_fallback(const struct lkg_engine *e);
void lkg_engine_fallback_answered(struct lkg_engine *e, const struct lkg_message *m);

/** lkg_engine_add_sources() - add inotify, the timer and deferred work to the event loop. */
int lkg_engine_add_sources(struct lkg_engine *e);

/* lifetime.c: steps of a start that a reload repeats. */
int lkg_engine_load_config(const struct lkg_engine *e, struct lkg_config **ret, struct lkg_report *report);
int lkg_engine_new_components(struct lkg_engine *e, struct lkg_error *err);
void lkg_engine_build_rules(struct lkg_engine *e);

/* starting.c: release and command line of the components. */
/** lkg_engine_open_facts() - open the facts of every component that has none yet. Return: 0 or -errno. */
int lkg_engine_open_facts(struct lkg_engine *e, struct lkg_error *err);
/** lkg_engine_watch_facts() - watch the facts for changes from now on. Return: 0 or -errno. */
int lkg_engine_watch_facts(struct lkg_engine *e);
void lkg_engine_unwatch_facts(struct lkg_engine *e);

/* starting.c: what follows from a start. */
/** lkg_engine_start_seen() - handle STARTED: answer at once, or when the service manager has given the reason. */
void lkg_engine_start_seen(struct lkg_engine *e, struct lkg_peer *peer, const struct lkg_message *m);
/** lkg_engine_resolve_starts() - answer the starts whose reason is known now, or whose time limit has expired. */
void lkg_engine_resolve_starts(struct lkg_engine *e);
void lkg_engine_forget_peer_starts(struct lkg_engine *e, const struct lkg_peer *peer);
uint64_t lkg_engine_starts_deadline(const struct lkg_engine *e);
/** lkg_engine_look_before_start() - a component reads what its layers say now, whether or not an event has told of it. */
void lkg_engine_look_before_start(struct lkg_engine *e);
/**
 * lkg_engine_start_reported() - control/<c>/startup. @pid: 0 = unknown; then @ticket tells one start from another.
 * Return: 0; -EINVAL: no such process, or no store; -errno: it could not be recorded, and nothing has changed.
 */
int lkg_engine_start_reported(struct lkg_engine *e, struct lkg_component *c, int pid, uint64_t ticket);
/* effects.c: the lifecycle of a component. */
/**
 * lkg_engine_step() - @event has happened: find out what follows (lkg_step()), and carry it out.
 * @event: wall_ns 0 = now; `before` is set here
 * @err: may be NULL
 * Return: 0; -EINVAL, -EBUSY: refused, @err says why; another -errno: a durable effect failed, which has been handled.
 */
int lkg_engine_step(struct lkg_engine *e, struct lkg_component *c, const struct lkg_event *event,
                    struct lkg_error *err);
/** lkg_engine_happened() - lkg_engine_step() for an event without members, whose failure has been handled. */
void lkg_engine_happened(struct lkg_engine *e, struct lkg_component *c, enum lkg_event_kind kind);

/** lkg_engine_update_alive() - the trial's clock runs while a process is alive that has read the configuration on trial. */
void lkg_engine_update_alive(struct lkg_engine *e, struct lkg_component *c);
void lkg_engine_tick_trial(struct lkg_engine *e, struct lkg_component *c);
/** lkg_engine_tick_pods() - the same for static pods, also right after another set is published. */
void lkg_engine_tick_pods(struct lkg_engine *e, struct lkg_component *c, bool publishing);
/** lkg_engine_containers_answered() - the container runtime has said which containers there are, or does not answer. */
void lkg_engine_containers_answered(struct lkg_engine *e, const struct lkg_message *m);
/** lkg_engine_containers_due() - when it is to be asked again; LKG_NEVER = nobody wants to know. */
uint64_t lkg_engine_containers_due(const struct lkg_engine *e);
/** lkg_engine_on_health() - a health endpoint says something else. */
void lkg_engine_on_health(void *userdata);

/* admission.c: content that made an engine die. */
/**
 * lkg_engine_open_poison() - read the records of the previous engine. Call it before any foreign content is read.
 * Return: 0 or -errno.
 */
int lkg_engine_open_poison(struct lkg_engine *e, struct lkg_error *err);
void lkg_engine_close_poison(struct lkg_engine *e);
/**
 * lkg_engine_lift_old_poison() - after an upgrade: content that an older lkgfs refused may be tried again; its bad marks are
 * removed.
 */
void lkg_engine_lift_old_poison(struct lkg_engine *e);
/** lkg_engine_lift_poison() - an operator wants refused content of @c to be tried again. */
void lkg_engine_lift_poison(struct lkg_engine *e, struct lkg_component *c);
/* commands.c */
/**
 * lkg_engine_run_command() - carry out and publish one write to a control file or in bad/. Return: 0 or
 * -errno.
 */
int lkg_engine_run_command(struct lkg_engine *e, const struct lkg_message *m);
/**
 * lkg_engine_finish_command() - carry out the rest of a command that was interrupted by the engine's death or a full disk.
 * Return: 0 or -errno.
 */
int lkg_engine_finish_command(struct lkg_engine *e, struct lkg_component *c);

/* starting.c */
/** lkg_engine_consume() - c->active is new: request a restart of the component, if configured and if it changes anything. */
void lkg_engine_consume(struct lkg_engine *e, struct lkg_component *c);
/* remote.c: which configuration each component follows. */
/** lkg_engine_open_store() - open the durable store of dynamic configuration. Return: 0; -EBUSY, which is fatal. */
int lkg_engine_open_store(struct lkg_engine *e, struct lkg_error *err);
/** lkg_engine_open_dynamic() - read the store for every component that has no state yet. */
void lkg_engine_open_dynamic(struct lkg_engine *e);
/** lkg_engine_restore_dynamic() - set the bases that the store names, once it is known what was served: a rollback replaces that. */
void lkg_engine_restore_dynamic(struct lkg_engine *e);
/** lkg_engine_look_remote() - look at the reference, as far as @touched concerns them. */
void lkg_engine_look_remote(struct lkg_engine *e, struct lkg_component *c,
                            const struct lkg_touched *touched);
/** lkg_engine_new_places() - create e->places, which are not used yet. */
void lkg_engine_new_places(struct lkg_engine *e);
/**
 * lkg_engine_open_places() - open them as configured, and determine which component follows them. @fresh: the daemon has just
 * started
 */
void lkg_engine_open_places(struct lkg_engine *e, bool fresh);
/** lkg_engine_settle_remote() - before a commit: activate the source that should be active. */
void lkg_engine_settle_remote(struct lkg_engine *e, struct lkg_component *c);
/** lkg_engine_prepare_remote() - begin or end the trial of c->active, durably before the publication. */
void lkg_engine_prepare_remote(struct lkg_engine *e, struct lkg_component *c);
/* snapshot.c: what the cluster is told. */
/** lkg_engine_event() - send an Event about @source if @c follows the reference. @words: never content */
void lkg_engine_event(struct lkg_engine *e, const struct lkg_component *c, bool warning, const char *reason,
                      const struct lkg_config_source *source, const char *words);
/** lkg_engine_report() - report the published state of @c; does nothing for a component that follows no reference. */
void lkg_engine_report(struct lkg_engine *e, const struct lkg_component *c);
/** lkg_engine_reload_dynamic() - apply a changed lkgfs configuration: references, scope, allowed sources. */
void lkg_engine_reload_dynamic(struct lkg_engine *e);

extern const struct lkg_server_ops lkg_engine_server_ops;
