/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What status/<c>/remote and the metrics show about the API server: filled in by lkg_places_status(), rendered by the publisher.
 * All pointers are borrowed for the duration of one publication.
 */
#pragma once

#include <lkg/rollout.h>
#include <lkg/slots.h>

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
