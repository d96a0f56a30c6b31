/* SPDX-License-Identifier: Apache-2.0 */
/* The types of a Pod, and the rules of each. */
#pragma once

#include <lkg/pod.h>

#include "rules.h"

/* A Go type: `*bool: a b@134~135; string: c` are its fields by their types; b is in 1.34 and 1.35 alone. */
struct lkg_pod_type {
        const char *name, *fields;
};
extern const struct lkg_pod_type lkg_pod_types[]; /* tables/pod.c, by name */
extern const size_t lkg_n_pod_types;

/*
 * Rules. The path of each is its fields, a space between two: `Type.field`, or `name.field` of what stands under this name; the field
 * may be dotted. `Type` alone: the rule has no path of its own.
 */
#define LKG_POD_ROW(kind, fields, ...)               \
        {                                            \
                fields, LKG_RULE_##kind, __VA_ARGS__ \
        }
extern const struct lkg_value_rule lkg_pod_rules[], lkg_pod_container_rules[], lkg_pod_placing_rules[];
extern const size_t lkg_n_pod_rules, lkg_n_pod_container_rules, lkg_n_pod_placing_rules;

/** lkg_pod_lower() - @text in lower case (ASCII); heap. */
char *lkg_pod_lower(struct lkg_span text);
