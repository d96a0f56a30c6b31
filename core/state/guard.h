/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a remote configuration may not do on this node (spec section 4, decisions S1): fields it may not set
 * at all, and fields it may set to the base's value only. Rows of data for the profile; pure.
 *
 * A field is set when it is there, whatever its value: a rule about presence can be checked by eye. Names
 * match in any case, as the component's decoder matches them, so a remote cannot pass by writing
 * STATICPODPATH.
 */
#pragma once

#include <lkg/doc.h>
#include <lkg/error.h>

#define LKG_GUARD_DEPTH_MAX 64u /* nested collections of a guarded remote; no field of a kind is below 8 */

struct lkg_guard {
        bool hardened; /* the profile's fields are denied, too */
        const char *const *deny,
                *const *pinned; /* dotted paths; a prefix covers what is below it; `staticPod*` */
        size_t n_deny, n_pinned;
};

/* A field of the profile hardened, and why whoever can change a ConfigMap must not be able to set it. */
struct lkg_guard_field {
        const char *field, *why;
};

/* For documentation and tests; field NULL at the end. Fields that name files are added by the schema. */
extern const struct lkg_guard_field lkg_guard_hardened[];

/**
 * lkg_guard_check() - every field of @remote that a rule forbids, one error finding each (LKG6002 denied,
 * LKG6003 pinned) naming field and rule, with its place; never a value.
 * @base:       the local base, NULL = none (a pinned field may not be set then)
 * @is_path:    does this dotted field name a file? Asked for the profile, in the spelling of @remote, an
 *              item of a list as `field[]`; NULL = none does
 *
 * A denied field is reported once and what is below it is not looked at. Below a pinned one every leaf that
 * is there must be in @base with an equal value (numbers by value, lists as a whole, so pin a list and
 * nothing inside); what is absent is fine. Deeper than LKG_GUARD_DEPTH_MAX nothing can be judged, so it is
 * refused.
 *
 * Return: number of findings, or -ENOMEM.
 */
int lkg_guard_check(const struct lkg_guard *guard, const struct lkg_value *remote,
                    const struct lkg_value *base, bool (*is_path)(const char *field, void *userdata),
                    void *userdata, struct lkg_report *report);
