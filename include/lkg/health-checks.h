/* SPDX-License-Identifier: Apache-2.0 */
/* Is a component that is alive also healthy? Asks what its trial.health names: its Node, and its health endpoint. */
#pragma once

#include <lkg/component.h>
#include <lkg/places.h>
#include <lkg/probes.h>

/**
 * lkg_health_update() - note in @c what its checks say now, and ask what has to be asked. Also while nothing is on trial: what was
 * good before a change is known when a trial begins.
 *
 * Return: true: an answer has changed (LKG_EVENT_HEALTH).
 */
bool lkg_health_update(struct lkg_probes *probes, struct lkg_places *places, const struct lkg_config *config,
                       struct lkg_component *c);
