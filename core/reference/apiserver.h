/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The API client of the places: follows the Node and the ConfigMap that the reference names, knows their current state, and
 * reports to the cluster (condition, Events).
 *
 * Owned by the places; exists while remote configuration is on. Nothing here blocks: answers arrive in the event loop, are
 * recorded, and are evaluated in a deferred step of the same loop (lkg_apiserver_kick()), because the reaction may be to free
 * the informer that reported them. An answer changes nothing by itself; places.c decides.
 */
#pragma once

#include <lkg/client.h>
#include <lkg/objects.h>
#include <lkg/places.h>

/* How long the last answer remains valid if all requests fail. */
#define LKG_OUTAGE_NS (300 * LKG_NSEC_PER_SEC)
/* How often the credential files are checked. */
#define LKG_API_TICK_NS  (60 * LKG_NSEC_PER_SEC)
#define LKG_API_PAUSE_NS (1 * LKG_NSEC_PER_SEC) /* minimum between two periodic checks of the credential */

enum lkg_object_answer {
        LKG_ANSWER_NONE, /* none yet */
        LKG_ANSWER_OBJECT,
        LKG_ANSWER_MISSING, /* the object does not exist */
        LKG_ANSWER_WRONG,   /* not valid: fault says why */
};

/* Why an object is not known. */
enum lkg_trouble {
        LKG_TROUBLE_NONE,
        LKG_TROUBLE_NOT_YET,     /* neither an answer nor a failure yet */
        LKG_TROUBLE_FORBIDDEN,   /* 403 */
        LKG_TROUBLE_UNREACHABLE, /* only failures, for LKG_OUTAGE_NS or since the start */
        LKG_TROUBLE_OBJECT,      /* missing, too large, invalid */
};

/* One object of the API server. */
struct lkg_followed {
        struct lkg_informer *informer; /* NULL = not followed */
        enum lkg_object_answer answer;
        char fault[LKG_REASON_MAX];
        uint64_t failing_ns,
                failing_wall_ns; /* the same moment on both clocks, so that the text does not change */
};

/* ---- remote.file ---- */

/*
 * A ConfigMap in a local file as the reference (air-gapped nodes, image builds, tests). The file has one of three meanings: this
 * object, back to the local configuration (empty, removed, or the text `local`), or unclear. Rules: docs/specification.md 4.3.
 */

#define LKG_KEY_ANNOTATION "lkgfs.io/config-key" /* of an object in a file: the key to use */

/*
 * The file may be in the middle of a write when an engine starts, without an event: an empty or missing file
 * counts only after this time, unless the same engine has seen the object itself.
 */
#define LKG_BLANK_NS (2 * LKG_NSEC_PER_SEC)

struct lkg_remote_file {
        const char *path; /* absolute; borrowed */
        struct lkg_way way;
        bool known; /* id is from the last check; a missing file has none */
        struct lkg_file_id id;
        bool here; /* this engine has read it successfully */
        /* CLOCK_BOOTTIME since when it has been empty or missing, while that does not count; 0 = it is not */
        uint64_t blank_ns;
        bool had_one; /* it was valid before, an object or `local`: emptying or removing it has a meaning */
        int runtime_fd; /* borrowed; stores had_one, so that it survives a killed engine */
};

struct lkg_places;
struct lkg_places_known;

/** lkg_remote_file_look() - read it again if it may have changed, and fill in the answer: UNCHANGED also while it is being written. */
void lkg_remote_file_look(struct lkg_places *places, const struct lkg_places_known *known,
                          struct lkg_places_answer *ret);
/**
 * lkg_remote_file_open() - (re)configure it. @path: absolute, borrowed; NULL = none. @fresh: a daemon starts, so a file that is missing
 * now never was a reference; otherwise what a predecessor or an earlier configuration has seen at this path counts
 */
void lkg_remote_file_open(struct lkg_remote_file *file, const char *path, int runtime_fd, bool fresh);
void lkg_remote_file_deinit(struct lkg_remote_file *file);

/* ---- the places, and the API server ---- */

struct lkg_apiserver;
struct lkg_slot_keeper;

struct lkg_places {
        struct lkg_places_options options;
        const struct lkg_config *config;
        struct lkg_remote_file file;     /* path NULL = not configured */
        struct lkg_apiserver *apiserver; /* NULL = remote configuration is off */
        enum lkg_reference_place place;  /* the one that counts */
        bool pending;                    /* the places must be asked again */
};

struct lkg_apiserver {
        struct lkg_places *places;
        char *settings; /* settings as text, to compare at a reload */
        char node_name[LKG_IDENTIFIER_MAX + 1], host[LKG_IDENTIFIER_MAX + 1];
        char name_fault[LKG_REASON_MAX]; /* why there is no node_name */
        struct lkg_credential *credential;
        struct lkg_client *client; /* NULL = no credential was found */
        struct lkg_reporter *reporter;
        struct lkg_slot_keeper *slots; /* NULL = no client, or no name of a Node */
        struct lkg_followed node, object;
        struct lkg_node_object node_says; /* of node.answer OBJECT */
        struct lkg_configmap configmap;   /* of object.answer OBJECT */
        struct lkg_reference reference;   /* the one that object is followed for; name "" = none */
        struct lkg_config_source newest;  /* what it names now, rolled out here or not; uid "" = not known */
        bool has_rollout;
        struct lkg_rollout rollout;
        struct lkg_report findings;
        bool running;           /* informers may be created */
        bool look;              /* the files of the credential must be checked */
        bool anew;              /* the identity has changed: follow anew */
        uint64_t serial;        /* of the current identity; 0 = none */
        bool news;              /* there may be something to assign */
        struct lkg_bucket pace; /* of assignments */
        sd_event_source *work, *timer;
        char served[LKG_SOURCE_ID_MAX + 1]; /* source served by the last publication */
        bool served_known;
};

/* ---- lifetime: apiserver.c ---- */

/** lkg_apiserver_open() - create it, or adapt it to the configuration; free it unless @wanted. */
void lkg_apiserver_open(struct lkg_places *places, bool wanted);
struct lkg_apiserver *lkg_apiserver_free(struct lkg_apiserver *api);

/* ---- shared: apiserver-objects.c ---- */

/** lkg_apiserver_kick() - check everything again, from the event loop. */
void lkg_apiserver_kick(struct lkg_apiserver *api);
/** lkg_apiserver_reconsider() - the same, and ask the places again. */
void lkg_apiserver_reconsider(struct lkg_apiserver *api);
/** lkg_apiserver_has_credential() - is there a credential, or a configured kubeconfig? NULL: no. */
bool lkg_apiserver_has_credential(const struct lkg_apiserver *api);
/** lkg_places_allow() - may this ConfigMap be used (remote.allowedSources)? */
bool lkg_places_allow(const struct lkg_places *places, const char *ns, const char *name);
/** lkg_places_in_use() - does @place count: is it configured, and is there a credential where it needs one? */
bool lkg_places_in_use(const struct lkg_places *places, enum lkg_reference_place place);

/* ---- followed objects: apiserver-objects.c ---- */

/** lkg_apiserver_follow_node() - follow the Node; does nothing while its name is unknown. */
void lkg_apiserver_follow_node(struct lkg_apiserver *api);
/** lkg_apiserver_forget() - stop following @followed. */
void lkg_apiserver_forget(struct lkg_followed *followed);
/** lkg_apiserver_follow(), _unfollow() - follow the ConfigMap of @reference, and no other; follow none. */
void lkg_apiserver_follow(struct lkg_apiserver *api, const struct lkg_reference *reference);
void lkg_apiserver_unfollow(struct lkg_apiserver *api);

/* ---- slots of a rollout: apiserver-slots.c ---- */

/** lkg_slot_keeper_new() - sends what the seeker of this node asks for; nothing before there is a wish. */
struct lkg_slot_keeper *lkg_slot_keeper_new(struct lkg_apiserver *api);
struct lkg_slot_keeper *lkg_slot_keeper_free(struct lkg_slot_keeper *keeper);
/** lkg_slot_keeper_fetch() - ask now, also after a refusal. NULL is fine. */
void lkg_slot_keeper_fetch(struct lkg_slot_keeper *keeper);

/* ---- meaning of the answers: apiserver-words.c ---- */

/**
 * lkg_apiserver_may_do_without_node() - is reading the Node forbidden, but not needed? No place is on the Node, and nothing is
 * written to it, because the credential is not the node's own. A rollout then uses its name instead of its UID.
 */
bool lkg_apiserver_may_do_without_node(const struct lkg_apiserver *api);
/** lkg_apiserver_trouble() - why @followed (node or object of @api) is not known. @ret: the same as text */
enum lkg_trouble lkg_apiserver_trouble(struct lkg_apiserver *api, struct lkg_followed *followed,
                                       char ret[static LKG_REASON_MAX]);
/** lkg_apiserver_node_says() - what annotation or spec of the Node says. */
void lkg_apiserver_node_says(struct lkg_apiserver *api, enum lkg_reference_place place,
                             struct lkg_saying *ret);
/** lkg_apiserver_configmap() - the followed ConfigMap. Return: NULL: @fault has the reason. */
const struct lkg_configmap *lkg_apiserver_configmap(struct lkg_apiserver *api,
                                                    char fault[static LKG_REASON_MAX]);
/**
 * lkg_apiserver_rollout() - the effect of the ConfigMap's annotations on this node.
 * Return: NULL: the id that determines the bucket is not known yet.
 */
const struct lkg_rollout *lkg_apiserver_rollout(struct lkg_apiserver *api,
                                                const struct lkg_configmap *configmap);
