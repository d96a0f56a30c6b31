/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `lkgfs rollout NAMESPACE/NAME`: a rollout as an operator sees it, from anywhere with a kubeconfig. Nothing here needs a view.
 *
 *     ConfigMap, slots, Nodes ── fleet-look.c ──> struct lkg_fleet ──> table, JSON
 *                   ^                                  │
 *               fleet-api.c <─ verb-rollout-fleet.c <──┘  --halt, --resume, --forgive
 *
 * The ConfigMap says what is wanted and how many may try it, the slots who tries it, has it or failed. The Nodes say who refers to
 * it and waits; they are optional: whoever may not list Nodes sees the rest.
 */
#pragma once

#include <lkg/client.h>
#include <lkg/objects.h>
#include <lkg/slots.h>

#include "tool.h"

/* ---- asking: fleet-api.c ---- */

struct lkg_fleet_api {
        sd_event *event;
        struct lkg_credential_options options;
        struct lkg_credential *credential;
        struct lkg_client *client;
        char *kubeconfig; /* absolute */
        int root_fd;
        bool wants_plugin; /* the exec plugin of the kubeconfig has to run */
        struct lkg_call *call;
        /* The last answer. */
        bool answered;
        enum lkg_api_status status;
        char words[LKG_API_WORDS_MAX]; /* not OK: a sentence */
        struct lkg_value *object;      /* OK */
};

/** lkg_fleet_open() - --kubeconfig, else $KUBECONFIG, else ~/.kube/config. It ends the verb that gets no credential. */
void lkg_fleet_open(const struct lkg_tool *tool, struct lkg_fleet_api *ret);
void lkg_fleet_close(struct lkg_fleet_api *api);

/* Each waits for the answer, 20 s at most. Return: was it OK? */
bool lkg_fleet_get(struct lkg_fleet_api *api, const struct lkg_resource *resource);
bool lkg_fleet_ask(struct lkg_fleet_api *api, struct lkg_request request);
/** lkg_fleet_send() - @verb: "update", "patch" (a JSON merge patch). Frees @json's content, which is the body. */
bool lkg_fleet_send(struct lkg_fleet_api *api, const struct lkg_resource *resource, const char *verb,
                    struct lkg_json *json);

/** lkg_fleet_fetch() - the ConfigMap of an operator's NAMESPACE/NAME[/KEY], as JSON. It ends the verb that gets none. */
void lkg_fleet_fetch(const struct lkg_tool *tool, const struct lkg_reference *reference,
                     struct lkg_buf *ret);

/* ---- what is known: fleet-look.c ---- */

enum lkg_fleet_state {
        LKG_FLEET_NO_SLOTS, /* no annotation asks for slots */
        LKG_FLEET_UNCLEAR,  /* an annotation is wrong: no node switches */
        LKG_FLEET_NOT_HERE, /* no slots are found, and the nodes speak of some; shown as "unclear", too */
        LKG_FLEET_TOO_MANY, /* more slots than anybody looks at: no node switches; "unclear", too */
        LKG_FLEET_STOPPED,  /* lkgfs.io/halt */
        LKG_FLEET_HALTED,   /* it has halted itself */
        LKG_FLEET_RUNNING,
        LKG_FLEET_NOT_BEGUN, /* no slot has been taken yet */
        LKG_FLEET_QUIET,     /* nothing is on trial, and no node says that it waits */
};

/* A Node that refers to the ConfigMap. */
struct lkg_fleet_node {
        char name[LKG_IDENTIFIER_MAX + 1];
        bool waits;                      /* its condition ConfigOK says so */
        char words[LKG_SLOT_REASON_MAX]; /* the reason of that condition; "" = none */
};

/* What a look at one kind of slots has found. */
struct lkg_fleet_slots {
        enum lkg_slot_kind kind;
        struct lkg_ledger ledger; /* of all contents of the ConfigMap; LKG_SLOT_FREE etc. */
        unsigned n_no_slots;      /* objects there that are no slots */
};

struct lkg_fleet {
        struct lkg_reference reference; /* what the operator asked for */
        const char *slot_namespace;     /* borrowed */
        struct lkg_rollout_id id;
        struct lkg_rollout rollout; /* what the annotations say; the bucket is nobody's */
        struct lkg_fleet_slots slots;
        struct lkg_slot_counts counts;
        bool lacks_slot_namespace; /* there is no such namespace; false also if nobody may tell */
        uint64_t looked_ns;        /* wall time of the last look that was complete; 0 = none yet */
        struct lkg_fleet_node *nodes;
        size_t n_nodes, n_allocated;
        bool knows_nodes;
        char nodes_trouble[LKG_API_WORDS_MAX]; /* why they are not known */
        size_t n_waiting;
};
void lkg_fleet_deinit(struct lkg_fleet *fleet);
/** lkg_fleet_configmap() - the ConfigMap as an object of the API. Borrows from @reference. */
struct lkg_resource lkg_fleet_configmap(const struct lkg_reference *reference);

/**
 * lkg_fleet_take_configmap(), _take_slots(), _take_nodes() - objects that the API server has answered. Pure. Then _settle().
 * @list: a part of a list; _begin_nodes() comes before the first one
 * Return: 0; -EINVAL, ...: @err.
 */
int lkg_fleet_take_configmap(struct lkg_fleet *fleet, const struct lkg_value *object, struct lkg_error *err);
void lkg_fleet_take_slots(struct lkg_fleet *fleet, const struct lkg_value *list);
void lkg_fleet_begin_nodes(struct lkg_fleet *fleet);
void lkg_fleet_take_nodes(struct lkg_fleet *fleet, const struct lkg_value *list);
/** lkg_fleet_settle() - slots or Nodes have changed: who waits? */
void lkg_fleet_settle(struct lkg_fleet *fleet);

enum lkg_fleet_state lkg_fleet_state(const struct lkg_fleet *fleet);
/** lkg_fleet_halting() - with so many failures it halts itself. */
unsigned lkg_fleet_halting(const struct lkg_fleet *fleet);
/** lkg_fleet_is_halted() - does no node switch, until an operator does something? */
bool lkg_fleet_is_halted(const struct lkg_fleet *fleet);
/** lkg_fleet_has_slots() - is anything there that nodes have written, of any content? */
bool lkg_fleet_has_slots(const struct lkg_fleet *fleet);
/** lkg_fleet_find() - this node's slot of the rollout in that state; NULL = none. */
const struct lkg_rollout_slot *lkg_fleet_find(const struct lkg_fleet *fleet, const char *node,
                                              enum lkg_rollout_slot_state state);

/**
 * lkg_fleet_take_answer() - the ConfigMap of the last answer.
 * Return: true; false: the words of @api say why not.
 */
bool lkg_fleet_take_answer(struct lkg_fleet_api *api, struct lkg_fleet *fleet);
/**
 * lkg_fleet_look() - ask for ConfigMap and slots, and for the Nodes if @nodes.
 * Return: true; false: the words of @api say why not. Nodes that may not be listed are no failure.
 */
bool lkg_fleet_look(struct lkg_fleet_api *api, struct lkg_fleet *fleet, bool nodes);
/** lkg_fleet_look_at_slots() - for the slots alone, of a ConfigMap that has been taken. Return: as _look(). */
bool lkg_fleet_look_at_slots(struct lkg_fleet_api *api, struct lkg_fleet *fleet);

/** lkg_fleet_show() - as a table. @now_ns: wall time; @trouble: why it is not up to date, "" = it is */
void lkg_fleet_show(const struct lkg_fleet *fleet, uint64_t now_ns, const char *trouble,
                    struct lkg_buf *buf);
/** lkg_fleet_map() - the same as a value. */
struct lkg_value *lkg_fleet_map(const struct lkg_fleet *fleet);

/** lkg_verb_rollout_of_fleet() - NAMESPACE/NAME[/KEY] was named. */
int lkg_verb_rollout_of_fleet(const struct lkg_tool *tool);
