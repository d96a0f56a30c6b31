/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reports to the cluster: the condition ConfigOK in the node's status, and Events about the node. Only with
 * a credential that is certainly the node's own (system:node:<name>), so an identity that could write other
 * nodes is never used. A failed request is repeated with back-off and affects nothing else.
 *
 * Condition: strategic merge patch of nodes/<name>/status with exactly one condition of our type; on change,
 * and every 5 min +-20 %; if only the figures of a rollout have changed, then with the next of these. Events: core/v1 in namespace default, as client-go's correlator would send them: a
 * repeated Event is a PATCH of its count; at most 25, then one every 5 min. Reasons: docs/specification.md
 * 5.
 */
#pragma once

#include <lkg/client.h>

/* As in status/<c>/condition.json. */
struct lkg_node_condition {
        const char *status; /* "True", "False", "Unknown" */
        const char *reason, *message;
        uint64_t transition_ns; /* wall time */
        /*
         * The reason has figures that other nodes change. A change of these alone waits for the next regular write: each slot of a
         * rollout that is taken would otherwise be a write by every node that waits for one.
         */
        bool figures;
};

struct lkg_reporter_options {
        sd_event *event;
        struct lkg_client *client;
        const struct lkg_credential *credential;
        const char *node_name, *host;
        bool condition, events;          /* remote.condition, remote.events */
        void (*changed)(void *userdata); /* lkg_reporter_words() has changed; may not free the reporter */
        void *userdata;
};

struct lkg_reporter;

/** lkg_reporter_new() - nothing is sent before the loop runs; the functions below only queue. Texts are copied. */
int lkg_reporter_new(const struct lkg_reporter_options *options, struct lkg_reporter **ret,
                     struct lkg_error *err);
struct lkg_reporter *lkg_reporter_free(struct lkg_reporter *reporter);

/**
 * lkg_reporter_set_node() - uid of the Node, for events; "" = unknown: events wait (at most 16, the oldest
 * are dropped). A Node with another uid has neither condition nor events: both are written again. At most
 * 253 bytes.
 */
void lkg_reporter_set_node(struct lkg_reporter *reporter, const char *uid);
/**
 * lkg_reporter_set_condition() - the condition of the node's status; nothing is sent if it has not changed.
 */
void lkg_reporter_set_condition(struct lkg_reporter *reporter, const struct lkg_node_condition *condition);
/** lkg_reporter_event() - @reason is CamelCase; @message is cut at 1024 bytes, never within a character. */
void lkg_reporter_event(struct lkg_reporter *reporter, bool warning, const char *reason,
                        const char *message);
/**
 * lkg_reporter_kick() - the identity has changed: try at once. Call it from on_identity of the client:
 * requests that the new identity may not send are withdrawn before they are sent.
 */
void lkg_reporter_kick(struct lkg_reporter *reporter);
/**
 * lkg_reporter_words() - why nothing can be written ("" = it can, or has not been tried). For status and
 * findings.
 */
const char *lkg_reporter_words(const struct lkg_reporter *reporter);
