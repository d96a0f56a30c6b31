/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The input of a publication: everything that the engine knows at one moment. The publisher reads it and
 * changes nothing; all pointers are borrowed for the duration of one call.
 */
#pragma once

#include <lkg/component.h>
#include <lkg/manifest-rules.h>
#include <lkg/remote-status.h>

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
