/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The places that a reference may come from (remote.references): annotation and spec of the Node, remote.static, remote.file. They
 * are asked in the configured order, and the first that says anything counts, even if that is unknown or cannot be understood: later
 * places are meant for the case that the earlier ones say nothing. Rules: docs/specification.md 4.2, 4.4.
 *
 * lkg_places_desired() is the one answer to "which configuration is desired now?". What follows from it (a checkpoint, an
 * assignment, a reset) is the caller's: nothing here is durable, except that a file was understood once, and nobody's layers are
 * known. The API server is one of several sources of places; it is there while remote configuration is on, and reports back, too
 * (condition, Events).
 *
 * One thread. Nothing waits: answers of the API server come from the loop, are noted, and lead to turn() in a deferred step of the same
 * loop, because the consequence may be to free the informer that reported them.
 */
#pragma once

#include <systemd/sd-event.h>

#include <lkg/config.h>
#include <lkg/configmap.h>
#include <lkg/control.h>
#include <lkg/inotify.h>
#include <lkg/remote-status.h>
#include <lkg/reporter.h>

/* In the words of remote.references. */
enum lkg_reference_place {
        LKG_PLACE_NONE, /* nowhere: none of them is configured, or none says anything */
        LKG_PLACE_NODE_ANNOTATION,
        LKG_PLACE_NODE_SPEC,
        LKG_PLACE_STATIC,
        LKG_PLACE_FILE,
        _LKG_PLACE_MAX
};
const char *lkg_reference_place_name(enum lkg_reference_place place); /* "nodeAnnotation", ...; "none" */

/* After a lack of memory. */
#define LKG_PLACES_RETRY_NS (5 * LKG_NSEC_PER_SEC)

/* Everything is borrowed and outlives the places. */
struct lkg_places_options {
        sd_event *event;
        const struct lkg_admission *admission; /* of remote objects, before they are decoded */
        const char *source_path;               /* source directory as people know it */
        const char *mount_point;               /* of the view; NULL = none */
        int source_fd, runtime_fd;

        /** run_exec() - ask for a run of the exec plugin; lkg_places_exec_done() follows. Return: as lkg_credential_options has it. */
        int (*run_exec)(void *userdata);
        /** turn() - something may have changed: ask lkg_places_desired(). Return: does anybody follow a reference? */
        bool (*turn)(void *userdata);
        lkg_unsettled_fn *unsettled; /* of remote.file */
        void *userdata;
};

struct lkg_places;

/** lkg_places_new() - nothing is in use before lkg_places_open(). @config: as lkg_places_set_config(). Return: 0 or -ENOMEM. */
int lkg_places_new(const struct lkg_places_options *options, const struct lkg_config *config,
                   struct lkg_places **ret);
struct lkg_places *lkg_places_free(struct lkg_places *places);

/** lkg_places_set_config() - another configuration (borrowed) instead of the one before, from lkg_places_open() on. */
void lkg_places_set_config(struct lkg_places *places, const struct lkg_config *config);
/**
 * lkg_places_open() - what the configuration asks for is there afterwards, and nothing else.
 * @wanted: an assignment could be stored; without that the API server is not asked
 * @fresh:  a daemon begins: see lkg_remote_file_open()
 * Return: 0; -ENOMEM and others: there is no API server.
 */
int lkg_places_open(struct lkg_places *places, bool wanted, bool fresh, struct lkg_error *err);
/** lkg_places_run() - the first publication is out: talk to the API server, from now on. */
void lkg_places_run(struct lkg_places *places);

/* ---- the question ---- */

/* What became of the answers before. Borrowed for the length of a call. */
struct lkg_places_known {
        const struct lkg_config_source *assigned;
        const char *node_uid; /* of the Node whose reference was followed last; "" = none was */
        bool carried_out; /* the desired configuration is assigned, and the rollout does not hold it back */
};

enum lkg_places_says {
        LKG_PLACES_UNCHANGED, /* nothing that matters has changed, or it is too early to tell */
        LKG_PLACES_UNKNOWN,   /* it cannot be determined; words: why */
        LKG_PLACES_LOCAL,
        LKG_PLACES_CONFIGMAP, /* configmap, source */
        LKG_PLACES_WAITING,   /* there is one, and the rollout holds it back; words: why */
};

struct lkg_places_answer {
        enum lkg_places_says says;
        enum lkg_reference_place place; /* that counts */
        char words[LKG_REASON_MAX];     /* UNKNOWN, WAITING */
        const struct lkg_configmap
                *configmap; /* CONFIGMAP: until lkg_places_answer_deinit() or the next question */
        struct lkg_config_source source;
        /* The Node that refers to source, whatever is said of source; NULL = no Node does. As long as configmap. */
        const char *node_uid;
        uint64_t
                again_at_ns; /* CLOCK_BOOTTIME: ask again then, if not before; UINT64_MAX = when something happens */
        struct lkg_configmap own; /* of a file */
};

/**
 * lkg_places_desired() - which configuration is desired now?
 * @touched: files that may have changed; NULL: files are not looked at now
 *
 * The places are only asked when one of them may say something new; after LKG_PLACES_CONFIGMAP could not be carried out,
 * lkg_places_again() makes them say it again.
 */
void lkg_places_desired(struct lkg_places *places, const struct lkg_places_known *known,
                        const struct lkg_touched *touched, struct lkg_places_answer *ret);
void lkg_places_answer_deinit(struct lkg_places_answer *answer);

/** lkg_places_again() - the last answer could not be carried out: the next question gets it again. */
void lkg_places_again(struct lkg_places *places);
/** lkg_places_ask() - the next question asks the places, also when nothing has changed. */
void lkg_places_ask(struct lkg_places *places);
/** lkg_places_looks_at_file() - the next question with @touched looks at the file, whatever was touched. */
bool lkg_places_looks_at_file(const struct lkg_places *places);
/** lkg_places_way() - directories that lead to remote.file; borrowed until the next question. */
const struct lkg_way *lkg_places_way(const struct lkg_places *places);

/** lkg_places_kick() - look at everything once more, from the loop. */
void lkg_places_kick(struct lkg_places *places);
/** lkg_places_fetch() - control/sync: ask the server and look at the file now. */
void lkg_places_fetch(struct lkg_places *places);
/** lkg_places_exec_done() - the supervisor has run the exec plugin: its output is in the runtime directory, or @m says why not. */
void lkg_places_exec_done(struct lkg_places *places, const struct lkg_message *m);

/* ---- what is known of the API server, and what it is told ---- */

/** lkg_places_findings() - LKG7001 to LKG7010; borrowed until the next lkg_places_open(). NULL: there is no API server. */
const struct lkg_report *lkg_places_findings(const struct lkg_places *places);
/** lkg_places_update_findings() - as they are now. Return: whether they have changed. */
bool lkg_places_update_findings(struct lkg_places *places);
/** lkg_places_status() - all of it except restart_ns. Only while there is an API server. */
void lkg_places_status(struct lkg_places *places, struct lkg_remote_status *ret);
/** lkg_places_published() - a publication shows the figures as they are now, and this condition: tell the cluster. */
void lkg_places_published(struct lkg_places *places, const struct lkg_node_condition *condition);
/** lkg_places_note_served() - the publication serves the source with this id. Return: it is not the one before, which was known. */
bool lkg_places_note_served(struct lkg_places *places, const char *id);
/** lkg_places_event() - an Event about the Node; nothing while there is no reporter. @message: never content of a document */
void lkg_places_event(struct lkg_places *places, bool warning, const char *reason, const char *message);
