/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The API server as the engine sees it: follows the node's own object and the ConfigMap that the reference names, knows their
 * current state, and reports back (condition, Events).
 *
 * Owned by the engine, made while remote configuration is on. Nothing here waits: answers come from the loop, are noted, and
 * are evaluated in a deferred step of the same loop (lkg_api_kick()), because the consequence may be to free the informer that
 * reported it. An answer changes nothing by itself; engine-reference.c decides.
 */
#pragma once

#include <lkg/control.h>
#include <lkg/informer.h>
#include <lkg/node.h>
#include <lkg/reporter.h>
#include <lkg/rollout.h>

#include <lkg/component.h>

struct lkg_engine;

/* How long the last answer remains valid while there are only failures. */
#define LKG_OUTAGE_NS (300 * LKG_NSEC_PER_SEC)
/* How often files of the credential are checked, and changed figures published. */
#define LKG_API_TICK_NS  (60 * LKG_NSEC_PER_SEC)
#define LKG_API_PAUSE_NS (1 * LKG_NSEC_PER_SEC) /* at least, between two periodic checks of the credential */

/* The places of a reference, as in remote.references. */
enum lkg_object_place {
        LKG_PLACE_NONE, /* nowhere: none of them is configured */
        LKG_PLACE_NODE_ANNOTATION,
        LKG_PLACE_NODE_SPEC,
        LKG_PLACE_STATIC,
        LKG_PLACE_FILE,
        _LKG_PLACE_MAX
};
const char *lkg_place_name(enum lkg_object_place place); /* "nodeAnnotation", ...; "none" */

enum lkg_object_answer {
        LKG_ANSWER_NONE, /* none yet */
        LKG_ANSWER_OBJECT,
        LKG_ANSWER_MISSING, /* the object does not exist */
        LKG_ANSWER_WRONG,   /* not valid: fault says why */
};

/* Why an object is not known. */
enum lkg_trouble {
        LKG_TROUBLE_NONE,
        LKG_TROUBLE_NOT_YET,     /* no answer, and no failure either */
        LKG_TROUBLE_FORBIDDEN,   /* 403 */
        LKG_TROUBLE_UNREACHABLE, /* nothing but failures, for LKG_OUTAGE_NS or since the start */
        LKG_TROUBLE_OBJECT,      /* missing, too large, wrong */
};

/* One object of the API server. */
struct lkg_followed {
        struct lkg_informer *informer; /* NULL = not followed */
        enum lkg_object_answer answer;
        char fault[LKG_REASON_MAX];
        uint64_t failing_ns,
                failing_wall_ns; /* the same moment by both clocks, so that words stay as they are */
};

struct lkg_api {
        struct lkg_engine *engine;
        char *settings; /* its options as text, for comparison at a reload */
        char node_name[LKG_IDENTIFIER_MAX + 1], host[LKG_IDENTIFIER_MAX + 1];
        char name_fault[LKG_REASON_MAX]; /* why there is no node_name */
        struct lkg_credential *credential;
        struct lkg_client *client; /* NULL = no credential was found */
        struct lkg_reporter *reporter;
        struct lkg_followed node, object;
        struct lkg_node_object node_says; /* of node.answer OBJECT */
        struct lkg_configmap configmap;   /* of object.answer OBJECT */
        struct lkg_reference reference;   /* that object is followed for */
        bool has_reference, has_rollout;  /* reference, rollout mean something */
        struct lkg_rollout rollout;
        struct lkg_report findings;
        bool running;           /* the loop runs: informers may be made */
        bool look;              /* the files of the credential must be checked */
        bool anew;              /* another identity: following begins again */
        uint64_t serial;        /* of the identity that was met last; 0 = none */
        bool news;              /* there may be something to assign */
        struct lkg_bucket pace; /* of assignments */
        sd_event_source *work, *timer;
        char served[LKG_SOURCE_ID_MAX + 1]; /* source served by the last publication */
        bool served_known;
        struct lkg_client_counters shown; /* in the last publication */
        uint64_t shown_success_ns[2];
};

/* ---- its life ---- */

/** lkg_api_open() - create it, or adapt it to the engine's configuration; freed when it is not used. */
int lkg_api_open(struct lkg_engine *e, struct lkg_error *err);
/** lkg_api_run() - the first publication is out: begin. */
void lkg_api_run(struct lkg_engine *e);
struct lkg_api *lkg_api_free(struct lkg_api *api);

/** lkg_api_kick() - look at everything once more, from the loop. NULL is fine. */
void lkg_api_kick(struct lkg_api *api);
/** lkg_api_reconsider() - the same, and ask the places of the reference again. */
void lkg_api_reconsider(struct lkg_api *api);
/** lkg_api_fetch() - control/sync: ask the server now. NULL is fine. */
void lkg_api_fetch(struct lkg_api *api);
/**
 * lkg_api_exec_done() - the supervisor has run the exec plugin: its output is in the runtime directory, or @m says why not.
 */
void lkg_api_exec_done(struct lkg_engine *e, const struct lkg_message *m);

/** lkg_api_note_shown() - a publication shows the figures as they are now. */
void lkg_api_note_shown(struct lkg_api *api);

/* ---- what is followed: engine-api-objects.c ---- */

/** lkg_api_follow_node() - the node itself; nothing while its name is unknown. Return: 0; -errno. */
int lkg_api_follow_node(struct lkg_api *api, struct lkg_error *err);
/** lkg_api_forget() - @followed is not followed any more. */
void lkg_api_forget(struct lkg_followed *followed);
/** lkg_api_follow() - the ConfigMap of @reference, from now on; NULL = none. Return: 0; -errno. */
int lkg_api_follow(struct lkg_api *api, const struct lkg_reference *reference, struct lkg_error *err);

/* ---- what is known: engine-api-facts.c ---- */

/**
 * lkg_api_may_do_without_node() - the Node may not be read, and nothing needs it: no reference is on it, and with another
 * credential than its own nothing is written to it. A rollout then uses its name instead of its UID.
 */
bool lkg_api_may_do_without_node(const struct lkg_api *api);
/** lkg_api_trouble() - of @followed, which is the node or the object of @api, in words. */
enum lkg_trouble lkg_api_trouble(struct lkg_api *api, struct lkg_followed *followed, uint64_t now_ns,
                                 char ret[static LKG_REASON_MAX]);

/** lkg_api_in_use() - does place @place count: is it configured, and is there a credential where it needs one? */
bool lkg_api_in_use(const struct lkg_engine *e, enum lkg_object_place place);
bool lkg_api_has_credential(const struct lkg_engine *e);
/** lkg_api_node_says() - annotation or spec of the node. @now_ns: CLOCK_BOOTTIME */
void lkg_api_node_says(struct lkg_api *api, enum lkg_object_place place, uint64_t now_ns,
                       struct lkg_saying *ret);
/** lkg_api_configmap() - the ConfigMap that is followed. Return: NULL and why not in @fault. */
const struct lkg_configmap *lkg_api_configmap(struct lkg_api *api, uint64_t now_ns,
                                              char fault[static LKG_REASON_MAX]);
/**
 * lkg_api_rollout() - the effect of the ConfigMap's annotations on this node.
 * Return: NULL: the uid that decides the bucket is not known yet.
 */
const struct lkg_rollout *lkg_api_rollout(struct lkg_api *api, const struct lkg_configmap *configmap);
/** lkg_api_update_findings() - LKG7005 to LKG7010 as they are now, and those of the credential. */
void lkg_api_update_findings(struct lkg_api *api, struct lkg_component *c);

/* ---- the way back: engine-api-facts.c ---- */

/** lkg_api_published() - a publication shows the condition of @c: tell the cluster. */
void lkg_api_published(struct lkg_api *api, const struct lkg_component *c);
/** lkg_engine_event() - about @source, of the component that follows the reference; else nothing happens. @words: never content */
void lkg_engine_event(struct lkg_engine *e, const struct lkg_component *c, bool warning, const char *reason,
                      const struct lkg_config_source *source, const char *words);
