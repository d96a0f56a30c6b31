/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A second look at the layers of a component, over another base than the one that is active: what would be served if the
 * last known good, a new assignment, or the local configuration were. A stack and a judge of its own; nothing of it is
 * published as the component's document.
 */
#pragma once

#include <lkg/remote-base.h>

#include "component.h"

/**
 * lkg_track_open() - look at the layers of @c over @base.
 * @base: taken over, also on failure; NULL = the base file
 */
int lkg_track_open(struct lkg_track *track, const struct lkg_component *c,
                   const struct lkg_component_env *env, struct lkg_remote_base *base, struct lkg_error *err);
void lkg_track_close(struct lkg_track *track);

/** lkg_track_refresh() - Return: 1 when it has another candidate than before, 0, -errno. */
int lkg_track_refresh(struct lkg_track *track, const struct lkg_touched *touched, struct lkg_error *err);

/**
 * lkg_component_follow() - the layers of @c are those of @track from now on, as they were read, merged and judged. @track has a base and a
 * candidate; it is closed.
 * Return: 0; -ENOMEM: the next refresh looks at them again.
 */
int lkg_component_follow(struct lkg_component *c, struct lkg_track *track);

/** lkg_track_rejudge() - judge by @config from the next refresh on. A track that is not open stays so. */
void lkg_track_rejudge(struct lkg_track *track, const struct lkg_judge_config *config);

/** lkg_track_valid() - there is something that could be served. */
bool lkg_track_valid(const struct lkg_track *track);
