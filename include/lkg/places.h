/* SPDX-License-Identifier: Apache-2.0 */
/* Where the reference to a ConfigMap may stand, and what is known of it. */
#pragma once

#include <systemd/sd-event.h>

#include <lkg/client.h>
#include <lkg/config.h>
#include <lkg/file.h>
#include <lkg/messages.h>
#include <lkg/objects.h>
#include <lkg/slots.h>
#include <lkg/stack.h>
#include <lkg/trial.h>

/*
 * What status/<c>/remote and the metrics show about the API server: filled in by lkg_places_status(), rendered by the publisher.
 * All pointers are borrowed for the duration of one publication.
 */

#define LKG_REMOTE_CODES_MAX 16

/* One object of the API server. */
struct lkg_remote_object {
        bool followed, watching;
        bool may_be_missing; /* failing to read it is not an outage */
        const char *mode;    /* "watch", "poll", ...; "off" */
        uint64_t success_ns; /* wall time of its last answer; 0 = never */
        bool failing;        /* no answer since success_ns, only failures */
        uint64_t failing_ns; /* wall time when it began to fail; 0 = not failing, or not noted yet */
        char error[LKG_REASON_MAX];
};

struct lkg_remote_count {
        const char *code; /* kind of answer */
        uint64_t n;
};

/* The rollout as this node sees it, for status/<c>/rollout. */
struct lkg_rollout_status {
        bool any; /* there are slots */
        enum lkg_slot_verdict verdict;
        unsigned max_in_trial, max_failures;
        struct lkg_slot_counts counts;
        char failed_node[LKG_SLOT_TEXT_MAX], failed_reason[LKG_SLOT_REASON_MAX];
        int own; /* index of our slot; -1 = none */
        char words[256];
        uint64_t n_conflicts;
};
/* The API server, as shown to a component that follows a reference. Strings are never NULL. */
struct lkg_remote_status {
        bool in_use; /* status/<c>/remote has lines */
        bool has_client;
        const char *server, *credential, *credential_file, *user;
        uint64_t expires_ns; /* of the credential, wall time; 0 = never, or not known */
        const char *node_name, *node_uid;
        const char *place;                     /* of the reference: "nodeAnnotation", ... */
        const struct lkg_reference *reference; /* NULL = none */
        struct lkg_remote_object node, configmap;
        const struct lkg_rollout *rollout; /* of the ConfigMap for this node */
        bool has_rollout;
        struct lkg_rollout_status slots;
        const char *not_reported; /* why the condition is not reported to the cluster; "" = it is */
        uint64_t restart_ns;      /* wall time of a planned restart; 0 = none */
        struct lkg_remote_count counts[LKG_REMOTE_CODES_MAX];
        size_t n_counts;
        uint64_t received_bytes, sent_bytes, n_connections;
};

/* ---- places ---- */

/*
 * The places that a reference may come from (remote.references): annotation and spec of the Node, remote.static, remote.file.
 * They are asked in the configured order. The first that says anything counts, even if what it says is unknown or invalid: later
 * places only count if the earlier ones say nothing. Rules: docs/specification.md 4.2, 4.4.
 *
 * lkg_places_desired() answers "which configuration is desired now?". The caller acts on it (checkpoint, assignment, reset):
 * nothing here is durable, except the note that a file was understood once, and nothing here knows layers. Some places need the
 * API server; the client exists while remote configuration is on, and also reports condition and Events.
 *
 * Single-threaded, and nothing blocks: answers of the API server arrive in the event loop, are recorded, and cause a deferred
 * turn() in the same loop, because the reaction may be to free the informer that reported them.
 */

/* Named as in remote.references. */
enum lkg_reference_place {
        LKG_PLACE_NONE, /* no place is configured, or none says anything */
        LKG_PLACE_NODE_ANNOTATION,
        LKG_PLACE_NODE_SPEC,
        LKG_PLACE_STATIC,
        LKG_PLACE_FILE,
        _LKG_PLACE_MAX
};
const char *lkg_reference_place_name(enum lkg_reference_place place); /* "nodeAnnotation", ...; "none" */

/* Everything is borrowed and must outlive the places. */
struct lkg_places_options {
        sd_event *event;
        const struct lkg_admission *admission; /* of remote objects, before they are decoded */
        const char *source_path;               /* path of the source directory, as configured */
        const char *mount_point;               /* of the view; NULL = none */
        int source_fd, runtime_fd;

        /** run_exec() - request a run of the exec plugin; lkg_places_exec_done() follows. Return: see lkg_credential_options. */
        int (*run_exec)(void *userdata);
        /** turn() - something may have changed: call lkg_places_desired(). Return: does any component follow a reference? */
        bool (*turn)(void *userdata);
        lkg_unsettled_fn *unsettled; /* of remote.file */
        /** slot_outcome() - what has become of the content @sha256 of ConfigMap @uid? BAD: @reason. May be NULL. */
        enum lkg_slot_outcome (*slot_outcome)(const char *uid, const char *sha256,
                                              char reason[static LKG_SLOT_REASON_MAX], void *userdata);
        /** rollout_halted() - this node has noted the failure that halts the rollout of @source. May be NULL. */
        void (*rollout_halted)(const struct lkg_config_source *source, const char *words, void *userdata);
        void *userdata;
};

/** lkg_host_name() - the host name as a kubelet has it for its Node: trimmed, in lower case (nodeutil.GetHostname() of Kubernetes). */
void lkg_host_name(char ret[static HOST_NAME_MAX + 1]);

struct lkg_places;

/** lkg_places_new() - no place is in use before lkg_places_open(). @config: as in lkg_places_set_config() */
struct lkg_places *lkg_places_new(const struct lkg_places_options *options, const struct lkg_config *config);
struct lkg_places *lkg_places_free(struct lkg_places *places);

/** lkg_places_set_config() - replace the configuration (borrowed). Call lkg_places_open() next. */
void lkg_places_set_config(struct lkg_places *places, const struct lkg_config *config);
/**
 * lkg_places_open() - create what the configuration asks for, and free everything else.
 * @wanted: an assignment can be stored; if not, the API server is not contacted
 * @fresh:  lkgfsd has started: see lkg_remote_file_open()
 */
void lkg_places_open(struct lkg_places *places, bool wanted, bool fresh);
/** lkg_places_run() - talk to the API server from now on: the first publication is done. */
void lkg_places_run(struct lkg_places *places);

/* ---- the question ---- */

/* The result of earlier answers. Borrowed for the duration of a call. */
struct lkg_places_known {
        const struct lkg_config_source *assigned;
        const char *node_uid; /* of the Node whose reference was followed last; "" = none */
        bool carried_out;     /* the desired configuration is assigned, and no rollout holds it back */
        bool waits_for_slot;  /* it is assigned with limits (<lkg/slots.h>), and not followed yet */
};

enum lkg_places_says {
        LKG_PLACES_UNCHANGED, /* nothing that matters has changed, or it is too early to tell */
        LKG_PLACES_UNKNOWN,   /* it cannot be determined; words has the reason */
        LKG_PLACES_LOCAL,
        LKG_PLACES_CONFIGMAP, /* configmap, source */
        LKG_PLACES_WAITING,   /* there is one, but the rollout holds it back; words has the reason */
};

struct lkg_places_answer {
        enum lkg_places_says says;
        enum lkg_reference_place place; /* the one that counts */
        char words[LKG_REASON_MAX];     /* UNKNOWN, WAITING */
        /* CONFIGMAP: valid until lkg_places_answer_deinit() or the next question */
        const struct lkg_configmap *configmap;
        struct lkg_config_source source;
        /* The Node that refers to source, for any value of says; NULL = no Node does. Valid as long as configmap. */
        const char *node_uid;
        /* CLOCK_BOOTTIME: ask again then at the latest; UINT64_MAX = only on an event */
        uint64_t again_at_ns;
        struct lkg_configmap own; /* storage for configmap, if it comes from a file */
};

/**
 * lkg_places_desired() - which configuration is desired now?
 * @touched: files that may have changed; NULL: do not check files now
 *
 * Asks the places only if one of them may have something new. If LKG_PLACES_CONFIGMAP could not be carried out, call
 * lkg_places_again() to get it again.
 */
void lkg_places_desired(struct lkg_places *places, const struct lkg_places_known *known,
                        const struct lkg_touched *touched, struct lkg_places_answer *ret);
void lkg_places_answer_deinit(struct lkg_places_answer *answer);

/** lkg_places_again() - the last answer could not be carried out: repeat it at the next question. */
void lkg_places_again(struct lkg_places *places);
/** lkg_places_ask() - the next question asks the places, even if nothing has changed. */
void lkg_places_ask(struct lkg_places *places);
/** lkg_places_looks_at_file() - will the next question with @touched check the file, even if it is not among @touched? */
bool lkg_places_looks_at_file(const struct lkg_places *places);
/** lkg_places_way() - the directories on the path of remote.file; borrowed until the next question. */
const struct lkg_way *lkg_places_way(const struct lkg_places *places);

/** lkg_places_kick() - check everything again, from the event loop. */
void lkg_places_kick(struct lkg_places *places);
/** lkg_places_fetch() - control/sync: ask the API server and check the file now. */
void lkg_places_fetch(struct lkg_places *places);
/** lkg_places_exec_done() - lkgfsd has run the exec plugin: its output is in the runtime directory, or @m has the error. */
void lkg_places_exec_done(struct lkg_places *places, const struct lkg_message *m);

/* ---- status of the API server, and reports to it ---- */

/** lkg_places_findings() - LKG7001 to LKG7010; borrowed until the next lkg_places_open(). NULL: there is no API client. */
const struct lkg_report *lkg_places_findings(const struct lkg_places *places);
/** lkg_places_update_findings() - recompute them. */
void lkg_places_update_findings(struct lkg_places *places);
/** lkg_places_status() - fill in @ret, except restart_ns. Only while there is an API client. */
void lkg_places_status(struct lkg_places *places, struct lkg_remote_status *ret);
/** lkg_places_newest() - what the ConfigMap that the reference names has now, rolled out here or not; uid "" = not known. */
const struct lkg_config_source *lkg_places_newest(const struct lkg_places *places);
/**
 * lkg_places_slot() - say what slot is wanted (wish->any: one is needed to go on), and ask for the verdict; turn() is called when it may
 * have changed. Without an API server it is REFUSED.
 * @ret_words: why not
 */
enum lkg_slot_verdict lkg_places_slot(struct lkg_places *places, const struct lkg_slot_wish *wish,
                                      char ret_words[static 256]);
/**
 * lkg_places_may_switch() - may this node switch to @source, which is assigned and needs a slot, as far as the newest annotations of its
 * ConfigMap say? They may have changed since it was assigned: a halt must stop those who wait for a slot, too.
 * @ret_words: why not
 */
bool lkg_places_may_switch(struct lkg_places *places, const struct lkg_config_source *source,
                           char ret_words[static 256]);
/** lkg_places_rollout_status() - counts.failed is NULL; see failed_node. */
void lkg_places_rollout_status(const struct lkg_places *places, struct lkg_rollout_status *ret);
/**
 * lkg_places_node_health() - is the Node Ready? OFF: nobody follows it.
 * @ret_words: why it is not known to be good; ""
 */
enum lkg_health_state lkg_places_node_health(struct lkg_places *places,
                                             char ret_words[static LKG_HEALTH_WORDS_MAX]);
/** lkg_places_published() - a publication shows @condition: report it to the cluster. */
void lkg_places_published(struct lkg_places *places, const struct lkg_node_condition *condition);
/** lkg_places_note_served() - the publication serves the source @id. Return: is it known to differ from the one before? */
bool lkg_places_note_served(struct lkg_places *places, const char *id);
/** lkg_places_event() - send an Event about the Node; ignored without a reporter. @message: never content of a document */
void lkg_places_event(struct lkg_places *places, bool warning, const char *reason, const char *message);
