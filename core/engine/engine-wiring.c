/* SPDX-License-Identifier: Apache-2.0 */
/* Gives the parts the loop and the cycle. The only file that knows both sides. */
#include "engine-internal.h"

const struct lkg_engine_hooks lkg_engine_hooks = {
        .cycle = lkg_engine_cycle,
        .commit = lkg_engine_commit,
        .answer_looked_at = lkg_engine_answer_looked_at,
        .arm = lkg_engine_arm,
        .persist_soon = lkg_engine_persist_soon,
        .resolve_starts = lkg_engine_resolve_starts,
};
