/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Restrictions of a remote configuration on this node (docs/specification.md 4.13): fields it may not set
 * at all, and fields it may set to the base's value only. The profile hardened is a column of the field
 * tables (lkg/schema.h); pure.
 *
 * A field counts as set if it is present, whatever its value: a rule about presence can be checked by eye.
 * Names match in any case, as the component's decoder matches them, so a remote configuration cannot evade a
 * rule by writing STATICPODPATH.
 */
#pragma once

#include <lkg/doc.h>
#include <lkg/error.h>

#define LKG_GUARD_DEPTH_MAX 64u /* nested collections of a guarded remote; no field of a kind is below 8 */

struct lkg_guard {
        bool hardened; /* also deny fields that the tables have a reason against */
        const char *const *deny,
                *const *pinned; /* dotted paths; a prefix covers what is below it; `staticPod*` */
        size_t n_deny, n_pinned;
};

/**
 * lkg_guard_check() - report every field of @remote that a rule forbids, with one error finding each
 * (LKG6002 denied, LKG6003 pinned) that names field, rule and position, but never a value.
 * @base:       the local base, NULL = none (a pinned field may not be set then)
 *
 * A denied field is reported once, and fields below it are not checked. Below a pinned one every leaf must
 * be in @base with an equal value (numbers by value, lists as a whole, so pin a list and not its members);
 * absent leaves are allowed. A document deeper than LKG_GUARD_DEPTH_MAX is refused. With the profile, a
 * field that is in no table is denied, too, unless the kind has no tables.
 *
 * Return: number of findings, or -ENOMEM.
 */
int lkg_guard_check(const struct lkg_guard *guard, const struct lkg_value *remote,
                    const struct lkg_value *base, struct lkg_report *report);
