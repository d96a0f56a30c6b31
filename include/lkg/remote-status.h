/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What status/<c>/remote and the metrics show of the API server: filled in where it is known (places.h), rendered by the publisher.
 * All pointers are borrowed for the length of one publication.
 */
#pragma once

#include <lkg/rollout.h>

#define LKG_REMOTE_CODES_MAX 16

/* One object of the API server. */
struct lkg_remote_object {
        bool followed, watching;
        bool may_be_missing; /* that it cannot be read is no outage */
        const char *mode;    /* "watch", "poll", ...; "off" */
        uint64_t success_ns; /* wall time of its last answer; 0 = never */
        bool failing;        /* since then */
        uint64_t failing_ns; /* wall time since when; 0 = it is not, or the failure is not to be shown yet */
        char error[LKG_REASON_MAX];
};

struct lkg_remote_count {
        const char *code; /* what an answer meant */
        uint64_t n;
};

/* The API server as a component that follows a reference sees it. Strings are never NULL. */
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
        const char *not_reported; /* why the cluster does not hear of the condition; "" = it does */
        uint64_t restart_ns;      /* wall time of a restart that is planned; 0 = none */
        struct lkg_remote_count counts[LKG_REMOTE_CODES_MAX];
        size_t n_counts;
        uint64_t received_bytes, sent_bytes, n_connections;
};
