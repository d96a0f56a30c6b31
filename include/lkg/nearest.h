/* SPDX-License-Identifier: Apache-2.0 */
/*
 * "Did you mean ...?": the known name that is nearest to a misspelt one. Offer every known name, then ask.
 */
#pragma once

#include <lkg/base.h>

struct lkg_nearest {
        const char *wrong; /* borrowed, like every name offered */
        const char *best;
        unsigned distance;
};

/** lkg_nearest_init() - names longer than 64 bytes are near to nothing. */
void lkg_nearest_init(struct lkg_nearest *nearest, const char *wrong);
/** lkg_nearest_offer() - a name that exists. */
void lkg_nearest_offer(struct lkg_nearest *nearest, const char *name);
/**
 * lkg_nearest_best() - the nearest name offered, or NULL when none is near.
 *
 * Near means: the same but for case; or at most two letters wrong, missing, extra or swapped, and fewer than a
 * third of the name (one for short names).
 */
static inline const char *lkg_nearest_best(const struct lkg_nearest *nearest)
{
        return nearest->best;
}
