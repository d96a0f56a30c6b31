/* SPDX-License-Identifier: Apache-2.0 */
/* Checks of a component's health. */
#pragma once

#include <systemd/sd-event.h>

#include <lkg/base.h>
#include <lkg/component.h>
#include <lkg/places.h>
#include <lkg/trial.h>

/*
 * Asks the health endpoints of the components, as a kubelet asks those of its pods: one GET per interval; any status from 200 to
 * 399 is good; some consecutive failures are bad. A certificate is not verified (kubernetes.io, "Configure Liveness, Readiness
 * and Startup Probes"), a redirect is not followed, nothing of the answer is used but its status.
 *
 * On the event loop, after all local work. Nothing blocks. One thread.
 */

/* between two requests while nothing is on trial; interval if longer */
#define LKG_PROBES_IDLE_NS (60 * LKG_NSEC_PER_SEC)

struct lkg_probes;

struct lkg_probe_config {
        const char *url; /* "" = do not ask; copied */
        uint64_t interval_ns, timeout_ns;
        unsigned failure_threshold;
};

/** lkg_probes_new() - @changed: the health of a component has changed; called from the loop. */
struct lkg_probes *lkg_probes_new(sd_event *event, void (*changed)(void *userdata), void *userdata);
struct lkg_probes *lkg_probes_free(struct lkg_probes *probes);

/**
 * lkg_probes_ask() - ask the endpoint of component @index from now on, or no longer. Cheap if nothing has changed. Another URL is
 * asked at once; until it has answered, what the previous one said is kept (a change of the port comes with the document on trial).
 * @often: something is on trial
 */
void lkg_probes_ask(struct lkg_probes *probes, unsigned index, const struct lkg_probe_config *config,
                    bool often);

/** lkg_probes_health() - what it says. @ret_words: why it is not known to be good; "" */
enum lkg_health_state lkg_probes_health(const struct lkg_probes *probes, unsigned index,
                                        char ret_words[static LKG_HEALTH_WORDS_MAX]);

/* ---- health-checks ---- */

/* Is a component that is alive also healthy? Asks what its trial.health names: its Node, and its health endpoint. */

/**
 * lkg_health_update() - note in @c what its checks say now, and ask what has to be asked. Also while nothing is on trial: what was
 * good before a change is known when a trial begins.
 *
 * Return: true: an answer has changed (LKG_EVENT_HEALTH).
 */
bool lkg_health_update(struct lkg_probes *probes, struct lkg_places *places, struct lkg_component *c);
