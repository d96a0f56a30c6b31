/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a remote configuration may not do on this node (spec section 4, decisions S1): fields it may not set at all, and
 * fields it may set to the base's value only. Rows of data for the profile; pure.
 */
#pragma once

#include <lkg/doc.h>
#include <lkg/error.h>

struct lkg_guard {
        bool hardened; /* the profile's fields are denied, too */
        const char *const *deny,
                *const *pinned; /* dotted paths; a prefix covers what is below it; `staticPod*` */
        size_t n_deny, n_pinned;
};

/* Fields of the profile hardened, for documentation and tests; NULL at the end. Path fields are added by the schema. */
extern const char *const lkg_guard_hardened[];

/**
 * lkg_guard_check() - every field of @remote that a rule forbids, one error finding each (LKG6002 denied, LKG6003 pinned)
 * naming field and rule, with its place.
 * @base:       the local base, NULL = none (a pinned field may not be set then)
 * @is_path:    does this dotted field name a file? Asked for the profile; NULL = none does
 *
 * Field names match in any case, as the component's decoder matches them. Return: number of findings, or -ENOMEM.
 */
int lkg_guard_check(const struct lkg_guard *guard, const struct lkg_value *remote,
                    const struct lkg_value *base, bool (*is_path)(const char *field, void *userdata),
                    void *userdata, struct lkg_report *report);
