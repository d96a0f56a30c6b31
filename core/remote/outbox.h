/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Events to send and events already sent, with the rules of client-go's event correlator
 * (tools/record/events_cache.go). An Event with the same type, reason and message raises the count of the
 * old object; after a burst only one event every five minutes is sent. Pure, bounded, no allocation: about
 * 70 KB.
 */
#pragma once

#include <lkg/base.h>

#define LKG_OUTBOX_WAITING     16u /* the oldest go */
#define LKG_OUTBOX_KNOWN       32u /* objects whose count can be raised; the one unused longest goes */
#define LKG_OUTBOX_BURST       25u
#define LKG_OUTBOX_INTERVAL_NS (300 * LKG_NSEC_PER_SEC)
#define LKG_EVENT_REASON_MAX   128u
#define LKG_EVENT_MESSAGE_MAX  1024u
#define LKG_EVENT_NAME_MAX     253u

struct lkg_node_event {
        bool warning;
        char reason[LKG_EVENT_REASON_MAX + 1], message[LKG_EVENT_MESSAGE_MAX + 1];
        char name[LKG_EVENT_NAME_MAX + 1]; /* of its object at the API server; "" = none was tried */
        uint64_t count;
        uint64_t first_wall_ns, last_wall_ns;
        uint64_t used; /* KNOWN: the higher the later */
};

/* Zero-initialised means empty. */
struct lkg_outbox {
        struct lkg_node_event waiting[LKG_OUTBOX_WAITING]; /* oldest first */
        size_t n_waiting;
        bool sending; /* waiting[0] */
        struct lkg_node_event known[LKG_OUTBOX_KNOWN];
        size_t n_known;
        uint64_t n_used;
        uint64_t full_ns; /* when the bucket of tokens would be full again */
};

/**
 * lkg_outbox_add() - add an event.
 * @message: cut at LKG_EVENT_MESSAGE_MAX bytes, never inside a character; @reason likewise
 *
 * If an equal event is still waiting, its count is raised. Without a token the event is only counted, if an
 * equal one was sent before.
 */
void lkg_outbox_add(struct lkg_outbox *outbox, bool warning, const char *reason, const char *message,
                    uint64_t now_ns, uint64_t wall_ns);

/* An event to send. */
struct lkg_outbox_letter {
        /* count and times as they are to be; borrowed until the next call */
        const struct lkg_node_event *event;
        bool patch; /* raise the count of event->name; else create event->name */
};

/**
 * lkg_outbox_next() - return the oldest event; it counts as in flight until lkg_outbox_end().
 * @node, @random: the name of a new object is `<node>.<16 hex digits>`
 *
 * Return: false if no event is waiting or one is in flight.
 */
bool lkg_outbox_next(struct lkg_outbox *outbox, const char *node, uint64_t random,
                     struct lkg_outbox_letter *ret);

enum lkg_outbox_result {
        LKG_OUTBOX_SENT,
        LKG_OUTBOX_FORGOTTEN, /* the object does not exist (any more): the next try creates one and goes on counting */
        LKG_OUTBOX_REFUSED, /* it will never be taken */
        LKG_OUTBOX_FAILED,  /* it stays, with its name: if it did arrive, the next try is a conflict */
};
void lkg_outbox_end(struct lkg_outbox *outbox, enum lkg_outbox_result result);

/** lkg_outbox_renew() - the objects belong to a deleted node: all later events are new. */
void lkg_outbox_renew(struct lkg_outbox *outbox);
