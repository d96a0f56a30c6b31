/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A second view of a component's layers, over a base other than the active one: what would be served with
 * the last known good, a new assignment, or the local configuration. It has its own stack and judge; none of
 * it is published as the component's document.
 */
#pragma once

#include <lkg/remote-base.h>

#include "component.h"

/**
 * lkg_track_open() - open the layers of @c over @base.
 * @base: taken over, even on failure; NULL = the base file
 */
int lkg_track_open(struct lkg_track *track, const struct lkg_component *c,
                   const struct lkg_component_env *env, struct lkg_remote_base *base, struct lkg_error *err);
void lkg_track_close(struct lkg_track *track);

/** lkg_track_refresh() - Return: 1: it has a new candidate; 0; -errno. */
int lkg_track_refresh(struct lkg_track *track, const struct lkg_touched *touched, struct lkg_error *err);

/**
 * lkg_component_follow() - from now on @c uses the layers of @track, as they were read, merged and judged.
 * @track must have a base and a candidate; it is closed.
 * Return: 0; -ENOMEM: the next refresh reads them again.
 */
int lkg_component_follow(struct lkg_component *c, struct lkg_track *track);

/**
 * lkg_track_rejudge() - judge by @config from the next refresh on. Does nothing if the track is not open.
 */
void lkg_track_rejudge(struct lkg_track *track, const struct lkg_judge_config *config);

/** lkg_track_valid() - is there something that could be served? */
bool lkg_track_valid(const struct lkg_track *track);
