/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The input of a publication: everything that the engine knows at one moment. The publisher reads it and
 * changes nothing; all pointers are borrowed for the duration of one call.
 */
#pragma once

#include <lkg/component.h>
#include <lkg/manifest-rules.h>
#include <lkg/rollout.h>

#define LKG_REMOTE_CODES_MAX 16

/* One object of the API server. */
struct lkg_remote_object {
        bool followed, watching;
        bool may_be_missing; /* failing to read it is no outage */
        const char *mode;    /* "watch", "poll", ...; "off" */
        uint64_t success_ns; /* wall time of its last answer; 0 = never */
        bool failing;        /* since success_ns */
        uint64_t failing_ns; /* wall time since when; 0 = it is not, or the failure is not shown yet */
        char error[LKG_REASON_MAX];
};

struct lkg_remote_count {
        const char *code; /* the meaning of an answer */
        uint64_t n;
};

/* The API server as seen by a component that follows a reference. Strings are never NULL. */
struct lkg_remote_status {
        bool in_use; /* status/<c>/remote has lines */
        bool has_client;
        const char *server, *credential, *credential_file, *user;
        uint64_t expires_ns; /* of the credential, wall time; 0 = never, or unknown */
        const char *node_name, *node_uid;
        const char *place;                     /* place of the reference: "nodeAnnotation", ... */
        const struct lkg_reference *reference; /* NULL = none */
        struct lkg_remote_object node, configmap;
        const struct lkg_rollout *rollout; /* of the ConfigMap for this node */
        bool has_rollout;
        const char *not_reported; /* why the condition is not reported to the cluster; "" = it is */
        uint64_t restart_ns;      /* wall time of a planned restart; 0 = none */
        struct lkg_remote_count counts[LKG_REMOTE_CODES_MAX];
        size_t n_counts;
        uint64_t received_bytes, sent_bytes, n_connections;
};

struct lkg_snapshot_component {
        const struct lkg_component *component;
        const struct lkg_remote_status *remote; /* NULL = it follows no reference */
        unsigned changed; /* enum lkg_component_dirty; a publication clears what it has shown */
};

struct lkg_snapshot {
        const struct lkg_config *config;
        struct lkg_snapshot_component *components;
        size_t n_components;
        const struct lkg_manifest_rules *rules;
        const struct lkg_report *findings; /* findings that are not about a component */
        uint64_t now_ns;                   /* wall time */
};
