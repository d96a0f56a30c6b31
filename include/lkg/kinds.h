/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The kinds with tables, each with all of its rows: for code that walks the tables themselves
 * (`lkgfs explain`, the generated documentation, tests). Code that handles a document uses lkg_schema_get().
 */
#pragma once

#include <lkg/schema.h>

struct lkg_kind {
        const char *kind, *api_version;
        const char *component; /* "kubelet": the program that reads it */
        const struct lkg_field *fields;
        const size_t *n_fields;
        const struct lkg_flag *flags;
        const size_t *n_flags;
};

extern const struct lkg_kind lkg_kinds[];
extern const size_t lkg_n_kinds;

/* A known key of a map field. */
struct lkg_map_key {
        const char *const *fields; /* paths of the maps that have it, NULL at the end */
        const char *key;
        const char *doc; /* one line */
};

extern const struct lkg_map_key lkg_map_keys[];
extern const size_t lkg_n_map_keys;

/** lkg_map_key_find() - the row of @key in the map @field; NULL = unknown. */
const struct lkg_map_key *lkg_map_key_find(const char *field, const char *key);

/** lkg_field_in() - does @field exist in @release? */
bool lkg_field_in(const struct lkg_field *field, unsigned release);
/** lkg_gate_stage_name() - "alpha", "beta", "GA", "deprecated", "dropped". */
const char *lkg_gate_stage_name(enum lkg_gate_stage stage);
#define LKG_GATE_DROPPED_MAX (LKG_RELEASE_TEXT_MAX + 8)
/** lkg_gate_dropped() - when a REMOVED gate was dropped, as text: "in 1.35", "before 1.24". Return: @buf. */
const char *lkg_gate_dropped(const struct lkg_gate *gate, char buf[static LKG_GATE_DROPPED_MAX]);
