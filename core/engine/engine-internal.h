/* SPDX-License-Identifier: Apache-2.0 */
/* The engine's own state, shared by engine.c (cycle), engine-start.c (begin, reload, end), engine-messages.c. */
#pragma once

#include <lkg/claims.h>
#include <lkg/log.h>
#include <lkg/places.h>
#include <lkg/publish.h>
#include <lkg/tried.h>
#include "engine.h"
#include <lkg/manifest-rules.h>
#include <lkg/peers.h>

#define LKG_NEVER UINT64_MAX
#define LKG_PERSIST_NS \
        (200 * LKG_NSEC_PER_MSEC) /* of quiet; a burst of changes goes to the state directory once */
#define LKG_PERSIST_MAX_NS (2 * LKG_NSEC_PER_SEC) /* ... but not later than this after its first */
#define LKG_RETRY_MIN_NS   (100 * LKG_NSEC_PER_MSEC)
#define LKG_RETRY_MAX_NS   (5 * LKG_NSEC_PER_SEC)
#define LKG_ORPHAN_NS      (30 * LKG_NSEC_PER_SEC) /* without a supervisor and without a file server */
#define LKG_LAYERS_BUDGET  16u /* files of layers/ rendered at once while no caller waits: below 1 ms */
#define LKG_LAYERS_MANY    64u /* layers of a component that make its rest wait longer */
#define LKG_LAYERS_NS \
        (20 *         \
         LKG_NSEC_PER_MSEC) /* of quiet, before the rest of layers/ is rendered; for many: LKG_PERSIST_NS */
#define LKG_FORGETTING_NAME \
        "forgetting" /* runtime directory: ticket of the last command that removed bad marks */
#define LKG_STARTING_NAME "starting" /* runtime directory: an engine began and has not published yet */

struct lkg_pending {
        struct lkg_peer *peer;
        uint64_t ticket;
};

/* A start for which the service manager is asked; the opener waits. */
struct lkg_starting {
        struct lkg_peer *peer; /* NULL = it has gone */
        uint64_t ticket;
        unsigned component;
        int pid;
        uint64_t start_time;
        uint64_t generation; /* of what it opens */
        uint64_t deadline_ns;
};
#define LKG_STARTING_MAX 16u

/* What the parts ask of the loop and of the cycle, which know all of them; the parts do not know these (engine-wiring.c). */
struct lkg_engine_hooks {
        void (*cycle)(struct lkg_engine *e, bool look);
        int (*commit)(struct lkg_engine *e, bool force);
        void (*answer_looked_at)(struct lkg_engine *e);
        void (*arm)(struct lkg_engine *e);
        void (*persist_soon)(struct lkg_engine *e);
        void (*layers_soon)(struct lkg_engine *e);
        void (*resolve_starts)(struct lkg_engine *e);
};
extern const struct lkg_engine_hooks lkg_engine_hooks;

struct lkg_engine {
        const struct lkg_engine_hooks *hooks;
        struct lkg_engine_options options;
        char *config_path, *vendor_dir, *source_path;
        char *mount_point; /* NULL = no view */
        sd_event *event;
        sd_event_source *inotify, *timer, *layers;
        sd_event_source *facts[LKG_COMPONENTS_MAX]; /* inotify of facts/<component>, by index */
        struct lkg_config *config;
        struct lkg_component *components;
        size_t n_components;
        struct lkg_state state;
        struct lkg_publisher *publisher;
        struct lkg_watch watch;
        struct lkg_peers server;
        struct lkg_claims *claims; /* which commands may still be carried out; NULL = none */
        struct lkg_manifest_rules rules;
        struct lkg_store store; /* lock_fd < 0: none */
        struct lkg_poison poison;
        struct lkg_admission admission; /* of remote objects */
        struct lkg_places *places;      /* of the reference */
        struct lkg_report report;       /* about the configuration, the state, the source directory */
        struct lkg_report reload_report;
        struct lkg_report shown; /* both: what publications show */
        bool started, orphan, over_limit_noted;

        /* CLOCK_BOOTTIME, LKG_NEVER = not armed */
        uint64_t persist_at_ns, persist_last_ns, retry_at_ns, poll_at_ns, orphan_at_ns;
        uint64_t layers_at_ns, layers_last_ns;
        uint64_t retry_delay_ns;

        struct lkg_pending
                pending[LKG_BATCH_MAX]; /* CHANGED messages of one batch: one look answers them all */
        size_t n_pending;
        bool looking_for_pending; /* the current cycle looks at what these say, so its publication answers them */
        struct lkg_component_env env; /* lkg_engine_env() */
        struct lkg_settled settled;   /* which changed files count yet */
        struct lkg_starting starting[LKG_STARTING_MAX];
        size_t n_starting;
        const struct lkg_message *command; /* that is being carried out; NULL = none */
};

/** lkg_engine_cycle() - one cycle. @look: look at the layers, too, not only at commands and timers. */
void lkg_engine_cycle(struct lkg_engine *e, bool look);

/** lkg_engine_look() - refresh what was touched (lkg_watch_touch()) of every component, and the watches. */
void lkg_engine_look(struct lkg_engine *e);

/** lkg_engine_commit() - judge and publish. @force: also when nothing is dirty. Return: 0 or -errno. */
int lkg_engine_commit(struct lkg_engine *e, bool force);

/** lkg_engine_answer_looked_at() - answer the CHANGED messages that the current cycle was begun for. */
void lkg_engine_answer_looked_at(struct lkg_engine *e);

/** lkg_engine_arm() - set the one timer to the next thing due. */
void lkg_engine_arm(struct lkg_engine *e);

/** lkg_engine_persist_soon() - something is to be written when it is quiet. */
void lkg_engine_persist_soon(struct lkg_engine *e);

/** lkg_engine_layers_soon() - files of layers/ are behind: they follow after the burst, the first time at once. */
void lkg_engine_layers_soon(struct lkg_engine *e);

/** lkg_engine_persist() - history, state files, fallback copies, number reservation. */
void lkg_engine_persist(struct lkg_engine *e);

/* engine-parts.c: asked by all of them */
/** lkg_engine_save_record() - @record as that of @c, durable. Return: 0 or -errno, which the log has. */
int lkg_engine_save_record(struct lkg_engine *e, struct lkg_component *c,
                           const struct lkg_component_state *record);
void lkg_engine_mark_findings(struct lkg_engine *e);
/** lkg_engine_env() - what the components go by now. Borrowed until the next call. */
const struct lkg_component_env *lkg_engine_env(struct lkg_engine *e);

/* engine-snapshot.c */
struct lkg_engine_snapshot {
        struct lkg_snapshot snapshot;
        struct lkg_snapshot_component components[LKG_COMPONENTS_MAX];
        struct lkg_remote_status remote[LKG_COMPONENTS_MAX];
};
/** lkg_engine_take_snapshot() - everything that is known now. @ret borrows all of it. */
void lkg_engine_take_snapshot(struct lkg_engine *e, struct lkg_engine_snapshot *ret);
/** lkg_engine_note_published() - what the publisher has not shown yet stays dirty. */
void lkg_engine_note_published(struct lkg_engine *e, const struct lkg_engine_snapshot *snapshot);

/* engine-fallback.c */
/** lkg_engine_ask_fallback() - ask lkgfsd to update the fallback copies of @c, or to remove the one under the view's name. */
void lkg_engine_ask_fallback(const struct lkg_engine *e, const struct lkg_component *c);
/**
 * lkg_engine_ask_first_fallback() - on the very first start the copies are requested before the publication is announced, so
 * that they exist before anybody sees the view: a backup that starts when the unit is ready finds a directory that does not
 * change any more.
 */
void lkg_engine_ask_first_fallback(const struct lkg_engine *e);
void lkg_engine_fallback_answered(struct lkg_engine *e, const struct lkg_message *m);

/** lkg_engine_add_sources() - inotify, timer and deferred work on the loop. */
int lkg_engine_add_sources(struct lkg_engine *e);

/* engine-config.c: steps of a start that a reload repeats. */
int lkg_engine_load_config(const struct lkg_engine *e, struct lkg_config **ret, struct lkg_report *report);
int lkg_engine_new_components(struct lkg_engine *e, struct lkg_error *err);
int lkg_engine_build_rules(struct lkg_engine *e, struct lkg_error *err);

/* engine-facts.c: release and command line of the components. */
/** lkg_engine_open_facts() - the facts of every component that has none yet. Return: 0 or -errno. */
int lkg_engine_open_facts(struct lkg_engine *e, struct lkg_error *err);
/** lkg_engine_watch_facts() - hear of every change, from now on. Return: 0 or -errno. */
int lkg_engine_watch_facts(struct lkg_engine *e);
void lkg_engine_unwatch_facts(struct lkg_engine *e);
/** lkg_engine_started() - a recognised process opened its file. Return: true when it was not known before. */
bool lkg_engine_started(struct lkg_engine *e, const struct lkg_message *m);
/** lkg_engine_learn() - judge with the current facts about @c, and publish the result. */
void lkg_engine_learn(struct lkg_engine *e, struct lkg_component *c);

/* engine-starts.c: conclusions from a start. */
/** lkg_engine_start_seen() - STARTED: answered at once, or when the service manager has given the reason. */
void lkg_engine_start_seen(struct lkg_engine *e, struct lkg_peer *peer, const struct lkg_message *m);
/** lkg_engine_resolve_starts() - answer those whose reason is known now, or whose time is over. */
void lkg_engine_resolve_starts(struct lkg_engine *e);
void lkg_engine_forget_peer_starts(struct lkg_engine *e, const struct lkg_peer *peer);
uint64_t lkg_engine_starts_deadline(const struct lkg_engine *e);
/**
 * lkg_engine_start_reported() - control/<c>/startup. @pid: 0 = not known, then @ticket tells one start from another.
 * Return: 0; -EINVAL no such process; -errno: it cannot be noted, so nothing was.
 */
int lkg_engine_start_reported(struct lkg_engine *e, struct lkg_component *c, int pid, uint64_t ticket);
/* engine-effects.c: the lifecycle of a component. */
/**
 * lkg_engine_step() - @event has happened: find out what follows (lkg_step()), and do it.
 * @event: wall_ns 0 = now; `before` is set here
 * Return: 0; -EINVAL, -EBUSY: refused, @err says why; another -errno: a durable effect failed, and what that means is seen to.
 */
int lkg_engine_step(struct lkg_engine *e, struct lkg_component *c, const struct lkg_event *event,
                    struct lkg_error *err);

/* engine-trial.c */
/** lkg_engine_update_alive() - the trial clock runs while a process lives that has read the configuration on trial. */
void lkg_engine_update_alive(struct lkg_engine *e, struct lkg_component *c);
void lkg_engine_tick_trial(struct lkg_engine *e, struct lkg_component *c);

/* engine-poison.c: content that ended an engine. */
/**
 * lkg_engine_open_poison() - read the records of the previous engine. To be called before any foreign content is read. Return:
 * 0 or -errno.
 */
int lkg_engine_open_poison(struct lkg_engine *e, struct lkg_error *err);
/** lkg_engine_watch_poison() - from now on, work is finished whenever the loop waits. Return: 0 or -errno. */
int lkg_engine_watch_poison(struct lkg_engine *e);
/**
 * lkg_engine_lift_old_poison() - after an upgrade: content that an older lkgfs refused is tried again, and its bad marks are
 * removed.
 */
void lkg_engine_lift_old_poison(struct lkg_engine *e);
/** lkg_engine_lift_poison() - an operator asks to try refused content of @c again. */
void lkg_engine_lift_poison(struct lkg_engine *e, struct lkg_component *c);
/** lkg_engine_out_of_memory() - ends the process when it was in the middle of work that it noted. */
void lkg_engine_out_of_memory(struct lkg_engine *e);
/* engine-commands.c */
/** lkg_engine_run_command() - one write to a control file or in bad/, carried out and published. Return: 0 or -errno. */
int lkg_engine_run_command(struct lkg_engine *e, const struct lkg_message *m);
/**
 * lkg_engine_finish_command() - carry out the rest of a command that a dead engine or a full disk interrupted. Return: 0 or
 * -errno.
 */
int lkg_engine_finish_command(struct lkg_engine *e, struct lkg_component *c);

/* engine-consume.c */
/** lkg_engine_consume() - c->active is new: ask for a restart of the component, if configured and if it changes anything. */
void lkg_engine_consume(struct lkg_engine *e, struct lkg_component *c);
/** lkg_engine_consumed() - a starting process reads the served document: a planned restart is not needed. */
void lkg_engine_consumed(struct lkg_engine *e, const struct lkg_component *c);
/* engine-remote.c: which configuration each component follows. */
/** lkg_engine_open_store() - the durable memory of dynamic configuration. Return: 0; -EBUSY and others that are fatal. */
int lkg_engine_open_store(struct lkg_engine *e, struct lkg_error *err);
/** lkg_engine_open_dynamic() - read the store for every component that has no state yet, and set the bases that it names. */
int lkg_engine_open_dynamic(struct lkg_engine *e, struct lkg_error *err);
/** lkg_engine_look_remote() - look at the reference and the tracks, as far as @touched says. */
void lkg_engine_look_remote(struct lkg_engine *e, struct lkg_component *c,
                            const struct lkg_touched *touched);
/** lkg_engine_new_places() - e->places, which are not in use yet. Return: 0 or -ENOMEM. */
int lkg_engine_new_places(struct lkg_engine *e, struct lkg_error *err);
/** lkg_engine_open_places() - as the configuration has them; who follows them is known then. @fresh: a daemon begins */
int lkg_engine_open_places(struct lkg_engine *e, bool fresh, struct lkg_error *err);
/** lkg_engine_check_pin() - at the start of an engine: is the pin of a rollback still valid, or was something new assigned? */
void lkg_engine_check_pin(struct lkg_engine *e, struct lkg_component *c);
/** lkg_engine_settle_remote() - make what should be active active; before a commit. */
void lkg_engine_settle_remote(struct lkg_engine *e, struct lkg_component *c);
/** lkg_engine_prepare_remote() - begin or end the trial of c->active. Durable before the publication. */
void lkg_engine_prepare_remote(struct lkg_engine *e, struct lkg_component *c);
/** lkg_engine_finish_avoiding() - trial.scope all, at the start: finish a rollback that the engine before had begun with a mark. */
void lkg_engine_finish_avoiding(struct lkg_engine *e, struct lkg_component *c);
/* engine-report.c: what the cluster hears. */
/** lkg_engine_event() - about @source, of the component that follows the reference; else nothing happens. @words: never content */
void lkg_engine_event(struct lkg_engine *e, const struct lkg_component *c, bool warning, const char *reason,
                      const struct lkg_config_source *source, const char *words);
/** lkg_engine_report() - a publication shows @c as it is; nothing for a component that follows no reference. */
void lkg_engine_report(struct lkg_engine *e, const struct lkg_component *c);
/** lkg_engine_reload_dynamic() - our own configuration has changed: references, scope, allowed sources. */
int lkg_engine_reload_dynamic(struct lkg_engine *e, struct lkg_error *err);

extern const struct lkg_server_ops lkg_engine_server_ops;
