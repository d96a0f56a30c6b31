/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A node without a disk and without a component: the product's own lifecycle (lkg_step()), what is durable of it, and a component
 * that lives or crash-loops. Its caller has the clock and the API server: fleet-seeds invents both, fleet-nodes has real ones.
 *
 * Functions that return bool return false when the node has died right before a durable step, as its ops->dies() said: then
 * virtual_node_reborn() comes next. Times are CLOCK_BOOTTIME or what the caller takes for it.
 */
#pragma once

#include <lkg/lifecycle.h>

#define VIRTUAL_MARKS_MAX 4u
#define VIRTUAL_START_NS  (10 * LKG_NSEC_PER_SEC)

struct virtual_node_ops {
        /** dies() - asked right before each durable step: does the process die now? NULL = never. */
        bool (*dies)(void *userdata);
        /** saves() - @next becomes durable. May be NULL. */
        void (*saves)(const struct lkg_pointers *next, void *userdata);
        void *userdata;
};

struct virtual_node {
        struct virtual_node_ops ops;
        /* durable */
        struct lkg_pointers pointers;
        struct lkg_trial trial;
        struct lkg_config_source trial_of; /* a trial of something else does not count */
        struct lkg_bad marks[VIRTUAL_MARKS_MAX];
        unsigned n_marks;
        /* in memory */
        struct lkg_lifecycle l;
        uint64_t generation, saved_ns;
        uint64_t start_ns;       /* next start of a component that crash-loops */
        uint64_t start_every_ns; /* VIRTUAL_START_NS; the caller may change it */
        unsigned n_starts;
};

void virtual_node_init(struct virtual_node *node, const struct virtual_node_ops *ops);
/** virtual_node_reborn() - a new process: what is durable is read, the rest is gone. */
void virtual_node_reborn(struct virtual_node *node, uint64_t now_ns);

bool virtual_node_step(struct virtual_node *node, struct lkg_event event, uint64_t now_ns);
/** virtual_node_assign() - the API server says @source; nothing happens if that is assigned already. */
bool virtual_node_assign(struct virtual_node *node, const struct lkg_config_source *source, uint64_t now_ns);
/** virtual_node_wants() - is something assigned that is neither followed nor bad? */
bool virtual_node_wants(const struct virtual_node *node);
bool virtual_node_is_bad(const struct virtual_node *node, const struct lkg_config_source *source);
/** virtual_node_switch() - it has a slot: follow what is assigned. Its component starts a second later. */
bool virtual_node_switch(struct virtual_node *node, uint64_t now_ns);

/** virtual_node_serve() - the component gets what is followed. Its trial begins, if it is new. */
bool virtual_node_serve(struct virtual_node *node, const struct lkg_trial_rules *rules, uint64_t now_ns);
/** virtual_node_live() - the component lives with what is followed. */
bool virtual_node_live(struct virtual_node *node, uint64_t now_ns);
/** virtual_node_crash() - the component crash-loops with what is followed: it starts once more, if it is time. */
bool virtual_node_crash(struct virtual_node *node, uint64_t now_ns);
/** virtual_node_tick() - time has passed: is the trial over? */
bool virtual_node_tick(struct virtual_node *node, uint64_t now_ns);
/** virtual_node_due() - when to tick next; UINT64_MAX = nothing is on trial. */
uint64_t virtual_node_due(const struct virtual_node *node);

/** virtual_node_outcome() - of a content, for its slot. */
enum lkg_slot_outcome virtual_node_outcome(const struct virtual_node *node, const char *uid,
                                           const char *sha256, char reason[static LKG_SLOT_REASON_MAX]);
