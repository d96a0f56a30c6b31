/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The API server as the places see it: follows the node's own object and the ConfigMap that the reference names, knows their
 * current state, and reports back (condition, Events).
 *
 * Owned by the places, made while remote configuration is on. Nothing here waits: answers come from the loop, are noted, and
 * are evaluated in a deferred step of the same loop (lkg_apiserver_kick()), because the consequence may be to free the informer
 * that reported it. An answer changes nothing by itself; places.c says what it means.
 */
#pragma once

#include <lkg/informer.h>
#include <lkg/node.h>
#include <lkg/places.h>
#include <lkg/remote-file.h>

/* How long the last answer remains valid while there are only failures. */
#define LKG_OUTAGE_NS (300 * LKG_NSEC_PER_SEC)
/* How often files of the credential are checked, and changed figures published. */
#define LKG_API_TICK_NS  (60 * LKG_NSEC_PER_SEC)
#define LKG_API_PAUSE_NS (1 * LKG_NSEC_PER_SEC) /* at least, between two periodic checks of the credential */

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

struct lkg_apiserver;

struct lkg_places {
        struct lkg_places_options options;
        const struct lkg_config *config;
        struct lkg_remote_file file;     /* path NULL = not configured */
        struct lkg_apiserver *apiserver; /* NULL = remote configuration is off */
        enum lkg_reference_place place;  /* that counts */
        bool pending;                    /* they must be asked again */
};

struct lkg_apiserver {
        struct lkg_places *places;
        char *settings; /* its settings as text, for comparison at a reload */
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

/* ---- its life: apiserver.c ---- */

/** lkg_apiserver_open() - create it, or adapt it to the configuration; freed when it is not @wanted. */
int lkg_apiserver_open(struct lkg_places *places, bool wanted, struct lkg_error *err);
/** lkg_apiserver_run() - informers may be made. NULL is fine. */
void lkg_apiserver_run(struct lkg_apiserver *api);
struct lkg_apiserver *lkg_apiserver_free(struct lkg_apiserver *api);
/** lkg_apiserver_fetch() - ask the server now. NULL is fine. */
void lkg_apiserver_fetch(struct lkg_apiserver *api);
/** lkg_apiserver_exec_done() - as lkg_places_exec_done(). @api: NULL is fine: what the plugin wrote is removed */
void lkg_apiserver_exec_done(struct lkg_apiserver *api, int runtime_fd, const struct lkg_message *m);

/* ---- shared: apiserver-parts.c ---- */

/** lkg_apiserver_kick() - look at everything once more, from the loop. NULL is fine. */
void lkg_apiserver_kick(struct lkg_apiserver *api);
/** lkg_apiserver_reconsider() - the same, and ask the places again. */
void lkg_apiserver_reconsider(struct lkg_apiserver *api);
/** lkg_apiserver_has_credential() - or is one configured? NULL: no. */
bool lkg_apiserver_has_credential(const struct lkg_apiserver *api);
/** lkg_places_in_use() - does @place count: is it configured, and is there a credential where it needs one? */
bool lkg_places_in_use(const struct lkg_places *places, enum lkg_reference_place place);

/* ---- what is followed: apiserver-objects.c ---- */

/** lkg_apiserver_follow_node() - the node itself; nothing while its name is unknown. Return: 0; -errno. */
int lkg_apiserver_follow_node(struct lkg_apiserver *api, struct lkg_error *err);
/** lkg_apiserver_forget() - @followed is not followed any more. */
void lkg_apiserver_forget(struct lkg_followed *followed);
/** lkg_apiserver_follow() - the ConfigMap of @reference, from now on; NULL = none. Return: 0; -errno. */
int lkg_apiserver_follow(struct lkg_apiserver *api, const struct lkg_reference *reference,
                         struct lkg_error *err);

/* ---- what is known: apiserver-words.c ---- */

/**
 * lkg_apiserver_may_do_without_node() - the Node may not be read, and nothing needs it: no reference is on it, and with another
 * credential than its own nothing is written to it. A rollout then uses its name instead of its UID.
 */
bool lkg_apiserver_may_do_without_node(const struct lkg_apiserver *api);
/** lkg_apiserver_trouble() - of @followed, which is the node or the object of @api, in words. */
enum lkg_trouble lkg_apiserver_trouble(struct lkg_apiserver *api, struct lkg_followed *followed,
                                       uint64_t now_ns, char ret[static LKG_REASON_MAX]);
/** lkg_apiserver_node_says() - annotation or spec of the node. @now_ns: CLOCK_BOOTTIME */
void lkg_apiserver_node_says(struct lkg_apiserver *api, enum lkg_reference_place place, uint64_t now_ns,
                             struct lkg_saying *ret);
/** lkg_apiserver_configmap() - the ConfigMap that is followed. Return: NULL and why not in @fault. */
const struct lkg_configmap *lkg_apiserver_configmap(struct lkg_apiserver *api, uint64_t now_ns,
                                                    char fault[static LKG_REASON_MAX]);
/**
 * lkg_apiserver_rollout() - the effect of the ConfigMap's annotations on this node.
 * Return: NULL: the uid that decides the bucket is not known yet.
 */
const struct lkg_rollout *lkg_apiserver_rollout(struct lkg_apiserver *api,
                                                const struct lkg_configmap *configmap);
