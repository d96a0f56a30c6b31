/* SPDX-License-Identifier: Apache-2.0 */
/*
 * "Did you mean ...?": finds the known name that is nearest to a misspelt one. Offer every known name, then
 * query the best.
 */
#pragma once

#include <lkg/base.h>

struct lkg_nearest {
        const char *wrong; /* borrowed, like every name offered */
        const char *best;
        unsigned distance;
};

/** lkg_nearest_init() - names longer than 64 bytes match nothing. */
void lkg_nearest_init(struct lkg_nearest *nearest, const char *wrong);
/** lkg_nearest_offer() - offer an existing name. */
void lkg_nearest_offer(struct lkg_nearest *nearest, const char *name);
/**
 * lkg_nearest_best() - the nearest name offered, or NULL if none is near.
 *
 * Near means: equal except for case; or at most two letters wrong, missing, extra or swapped, and fewer than
 * a third of the name (one for short names).
 */
static inline const char *lkg_nearest_best(const struct lkg_nearest *nearest)
{
        return nearest->best;
}
