/* SPDX-License-Identifier: Apache-2.0 */
/* The engine's own state, shared by engine.c (cycle), engine-start.c (begin, reload, end), engine-messages.c. */
#pragma once

#include <lkg/file.h>
#include <lkg/log.h>

#include "component.h"
#include "engine.h"
#include "publish.h"
#include "rules.h"
#include "server.h"
#include "watch.h"

#define LKG_NEVER UINT64_MAX
#define LKG_PERSIST_NS \
        (200 * LKG_NSEC_PER_MSEC) /* of quiet; a burst of changes goes to the state directory once */
#define LKG_PERSIST_MAX_NS (2 * LKG_NSEC_PER_SEC) /* ... but not later than this after its first */
#define LKG_RETRY_MIN_NS   (100 * LKG_NSEC_PER_MSEC)
#define LKG_RETRY_MAX_NS   (5 * LKG_NSEC_PER_SEC)
#define LKG_ORPHAN_NS      (30 * LKG_NSEC_PER_SEC) /* without a supervisor and without a file server */
#define LKG_LAYERS_BUDGET  16u /* files of layers/ rendered in one go while nobody waits: below 1 ms */
#define LKG_LAYERS_MANY    64u /* layers of a component that make its rest wait longer */
#define LKG_LAYERS_NS \
        (20 *         \
         LKG_NSEC_PER_MSEC) /* of quiet, before the rest of layers/ is rendered; for many: LKG_PERSIST_NS */
#define LKG_STARTING_NAME "starting" /* runtime directory: an engine began and has not published yet */

/* How old the last change of a file must be to be believed without the writer's word: well above a clock tick. */
#define LKG_RECENT_NS (20 * LKG_NSEC_PER_MSEC)

struct lkg_pending {
        struct lkg_peer *peer;
        uint64_t ticket;
};

/* A changed file, and since when it looks like that. */
struct lkg_sighting {
        char *path;
        struct lkg_file_id id;
        uint64_t since_ns; /* CLOCK_BOOTTIME */
};

struct lkg_engine {
        struct lkg_engine_options options;
        char *config_path, *vendor_dir, *source_path;
        char *mount_point; /* NULL = there is no view */
        sd_event *event;
        sd_event_source *inotify, *timer, *layers;
        sd_event_source *facts[LKG_COMPONENTS_MAX]; /* inotify of facts/<component>, by index */
        struct lkg_config *config;
        struct lkg_component *components;
        size_t n_components;
        struct lkg_state state;
        struct lkg_publisher publisher;
        struct lkg_watch watch;
        struct lkg_server server;
        struct lkg_rules rules;
        struct lkg_report report; /* about the configuration, the state, the source directory */
        struct lkg_report reload_report;
        struct lkg_report shown; /* both: what publications show */
        bool started, orphan, over_limit_noted;
        bool look_again; /* something happened to the sources while they were read */
        bool new_stacks; /* they have no earlier content to fall back on, so every file counts as it is */

        /* CLOCK_BOOTTIME, LKG_NEVER = not armed */
        uint64_t persist_at_ns, persist_last_ns, retry_at_ns, poll_at_ns, orphan_at_ns;
        uint64_t layers_at_ns, layers_last_ns;
        uint64_t retry_delay_ns;

        struct lkg_pending
                pending[LKG_BATCH_MAX]; /* CHANGED messages of one batch: one look answers them all */
        size_t n_pending;
        char *vouched[LKG_BATCH_MAX]; /* their paths: whoever wrote them has said that they are complete */
        size_t n_vouched;
        bool vouched_all; /* an operator asked for a look now */
        uint64_t lost_ns; /* when a file server went away; 0 = never */
        struct lkg_sighting sightings[64];
        size_t n_sightings;
        bool recent; /* a file was left alone because it had just been written */
};

/** lkg_engine_cycle() - one round. @look: look at the layers, not only at what an operator or a clock changed. */
void lkg_engine_cycle(struct lkg_engine *e, bool look);

/** lkg_engine_look() - refresh what was touched (lkg_watch_touch()) of every component, and the watches. */
void lkg_engine_look(struct lkg_engine *e);

/** lkg_engine_commit() - judge and publish. @force: also when nothing is dirty. Return: 0 or -errno. */
int lkg_engine_commit(struct lkg_engine *e, bool force);

/** lkg_engine_arm() - set the one timer to the next thing due. */
void lkg_engine_arm(struct lkg_engine *e);

/** lkg_engine_persist_soon() - something is to be written when it is quiet. */
void lkg_engine_persist_soon(struct lkg_engine *e);

/** lkg_engine_layers_soon() - files of layers/ are behind: they follow after the burst, the first time at once. */
void lkg_engine_layers_soon(struct lkg_engine *e);

/** lkg_engine_persist() - history, state files, fallback copies, number reservation. */
void lkg_engine_persist(struct lkg_engine *e);

/** lkg_engine_save_state() - durable, before a publication shows it. Return: 0 or -errno. */
int lkg_engine_save_state(struct lkg_engine *e, struct lkg_component *c);

/** lkg_engine_add_sources() - inotify, timer and deferred work on the loop. */
int lkg_engine_add_sources(struct lkg_engine *e);

struct lkg_component_env lkg_engine_env(struct lkg_engine *e);
struct lkg_publication_input lkg_engine_input(const struct lkg_engine *e);
struct lkg_log_fields lkg_engine_fields(const struct lkg_component *c);
void lkg_engine_mark_findings(struct lkg_engine *e);

/* Steps of a start that a reload repeats (engine-start.c). */
int lkg_engine_load_config(const struct lkg_engine *e, struct lkg_config **ret, struct lkg_report *report);
int lkg_engine_new_components(struct lkg_engine *e, struct lkg_error *err);
int lkg_engine_build_rules(struct lkg_engine *e, struct lkg_error *err);
/** lkg_engine_recover_last_good() - what @c served last, from its history, if it can be read. */
void lkg_engine_recover_last_good(struct lkg_component *c);

/* engine-facts.c: release and command line of the components. */
/** lkg_engine_open_facts() - the facts of every component that has none yet. Return: 0 or -errno. */
int lkg_engine_open_facts(struct lkg_engine *e, struct lkg_error *err);
/** lkg_engine_watch_facts() - hear of every change, from now on. Return: 0 or -errno. */
int lkg_engine_watch_facts(struct lkg_engine *e);
void lkg_engine_unwatch_facts(struct lkg_engine *e);
/** lkg_engine_started() - a recognised process opened its file; it has its answer already. */
void lkg_engine_started(struct lkg_engine *e, const struct lkg_message *m);

/* engine-flags.c */
/** lkg_engine_check_facts() - findings about release and command line of @c. */
void lkg_engine_check_facts(struct lkg_engine *e, struct lkg_component *c);
/** lkg_engine_flag_value() - what flag @name has on the command line, by @flags of its kind; NULL = not there. */
const char *lkg_engine_flag_value(const struct lkg_flag *flags, size_t n_flags,
                                  const struct lkg_strings *words, const char *name);

extern const struct lkg_server_ops lkg_engine_server_ops;
