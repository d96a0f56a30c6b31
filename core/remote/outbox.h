/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is written to the cluster, and when; without the requests, which are reporter.c. Pure, bounded, no allocation except for
 * bodies; clocks (CLOCK_BOOTTIME unless a name says wall) and random numbers are arguments. All zero is empty.
 */
#pragma once

#include <lkg/client.h>
#include <lkg/process.h>
#include <lkg/text.h>

/* ---- the condition: immediately on a change, but at most once a second; again about every LKG_HEARTBEAT_NS ---- */

#define LKG_HEARTBEAT_NS       (300 * LKG_NSEC_PER_SEC)
#define LKG_HEARTBEAT_PERCENT  20u
#define LKG_HEARTBEAT_PAUSE_NS LKG_NSEC_PER_SEC /* between two that were caused by changes */

struct lkg_heartbeat {
        bool any;     /* there is something to say */
        bool sending; /* one is under way */
        bool changed; /* since it was sent */
        bool failed;  /* the last one: the next waits for the back-off */
        uint64_t begun_ns, due_ns;
        struct lkg_backoff backoff;
};

/** lkg_heartbeat_changed() - the condition has changed. */
void lkg_heartbeat_changed(struct lkg_heartbeat *heartbeat, uint64_t now_ns);
/** lkg_heartbeat_begin() - may it be sent now? If so, it counts as in flight until lkg_heartbeat_end(). */
bool lkg_heartbeat_begin(struct lkg_heartbeat *heartbeat, uint64_t now_ns);
void lkg_heartbeat_end(struct lkg_heartbeat *heartbeat, bool success, uint64_t retry_after_ns,
                       uint32_t random, uint64_t now_ns);
/** lkg_heartbeat_kick() - the obstacle may be gone: try now. */
void lkg_heartbeat_kick(struct lkg_heartbeat *heartbeat, uint64_t now_ns);
/** lkg_heartbeat_due() - when to call lkg_heartbeat_begin() again; UINT64_MAX = no time. */
uint64_t lkg_heartbeat_due(const struct lkg_heartbeat *heartbeat);

/** lkg_condition_figures_differ() - do they differ in nothing but what follows the first digit of their reasons? */
bool lkg_condition_figures_differ(const struct lkg_node_condition *a, const struct lkg_node_condition *b);
/** lkg_condition_body() - a strategic merge patch of nodes/<name>/status: these conditions, the others stay. */
void lkg_condition_body(const struct lkg_node_condition *conditions, size_t n, uint64_t wall_ns,
                        struct lkg_buf *buf);

/*
 * ---- events, with the rules of client-go's event correlator (tools/record/events_cache.go): one with the same type, reason and
 * message raises the count of the object, and after a burst only one every five minutes is sent ----
 */

#define LKG_OUTBOX_EVENTS      48u /* that are remembered; the one unused longest goes */
#define LKG_OUTBOX_WAITING     16u /* of them; the oldest go */
#define LKG_OUTBOX_BURST       25u
#define LKG_OUTBOX_INTERVAL_NS (300 * LKG_NSEC_PER_SEC)
#define LKG_EVENT_REASON_MAX   128u
#define LKG_EVENT_MESSAGE_MAX  1024u
#define LKG_EVENT_NAME_MAX     253u

struct lkg_node_event {
        bool warning;
        char reason[LKG_EVENT_REASON_MAX + 1], message[LKG_EVENT_MESSAGE_MAX + 1];
        char name[LKG_EVENT_NAME_MAX + 1]; /* of its object at the API server; "" = none was tried */
        uint64_t told;                     /* the count that its object has; 0 = there is no object yet */
        uint64_t waits;                    /* to be sent, the lowest first; 0 = it is not */
        uint64_t used;                     /* the higher the later */
        uint64_t count;
        uint64_t first_wall_ns, last_wall_ns;
};

struct lkg_outbox {
        struct lkg_node_event events[LKG_OUTBOX_EVENTS]; /* neither told nor waiting: a free place */
        struct lkg_node_event *sending;                  /* NULL = none is in flight */
        uint64_t n_sending;                              /* the count that it was sent with */
        bool again;                                      /* it is to be sent once more after that */
        uint64_t n_used;
        struct lkg_bucket bucket;
};

/**
 * lkg_outbox_add() - something has happened. If it has already, its count is raised; without a token that is all.
 * @message: cut at LKG_EVENT_MESSAGE_MAX bytes, never inside a character; @reason likewise
 */
void lkg_outbox_add(struct lkg_outbox *outbox, bool warning, const char *reason, const char *message,
                    uint64_t now_ns, uint64_t wall_ns);
/** lkg_outbox_waiting() - how many are to be sent, or are in flight. */
size_t lkg_outbox_waiting(const struct lkg_outbox *outbox);
/**
 * lkg_outbox_next() - the oldest event; it counts as in flight until lkg_outbox_end(). If it was told, its count is to be raised,
 * else an object of its name is to be created.
 * @node, @random: the name of a new object is `<node>.<16 hex digits>`
 *
 * Return: NULL: no event is waiting, or one is in flight.
 */
const struct lkg_node_event *lkg_outbox_next(struct lkg_outbox *outbox, const char *node, uint64_t random);

enum lkg_outbox_result {
        LKG_OUTBOX_SENT,
        LKG_OUTBOX_FORGOTTEN, /* the object does not exist (any more): the next try creates one and goes on counting */
        LKG_OUTBOX_REFUSED, /* it will never be taken */
        LKG_OUTBOX_FAILED,  /* it stays, with its name: if it did arrive, the next try is a conflict */
};
void lkg_outbox_end(struct lkg_outbox *outbox, enum lkg_outbox_result result);
/** lkg_outbox_renew() - the objects belong to a deleted node: all later events are new, and none is in flight. */
void lkg_outbox_renew(struct lkg_outbox *outbox);

/* The node that an Event is about, and the reporting host. */
struct lkg_event_node {
        const char *name, *uid, *host;
};
/** lkg_event_body() - a new Event in the namespace of cluster-scoped objects; of a known one a patch that raises its count. */
void lkg_event_body(const struct lkg_node_event *event, const struct lkg_event_node *node,
                    struct lkg_buf *buf);
