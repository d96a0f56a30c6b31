/* SPDX-License-Identifier: Apache-2.0 */
/* Checks of a component's health. */
#pragma once

#include <systemd/sd-event.h>

#include <lkg/base.h>
#include <lkg/component.h>
#include <lkg/places.h>
#include <lkg/trial.h>

/*
 * Asks health endpoints, as a kubelet does for its pods: one question per interval; some consecutive failures are bad. On the event
 * loop, after all local work. Nothing blocks. One thread. The schemes of a URL are those of a probe of a container:
 *
 *     http://, https://          any status from 200 to 399 is good. A certificate is not verified (kubernetes.io, "Configure Liveness,
 *                                Readiness and Startup Probes"), a redirect is not followed, nothing of the answer is used but its status
 *     tcp://HOST:PORT            a connection can be made
 *     grpc://HOST:PORT/SERVICE   grpc.health.v1.Health/Check answers SERVING; without TLS; SERVICE may be empty
 */

struct lkg_probes; /* what probes share */
struct lkg_probe;

struct lkg_probe_config {
        const char *url; /* "" = do not ask; copied */
        /* of http(s), "NAME: VALUE": httpHeaders; one of Host sets the host; NULL = none; copied */
        const struct lkg_strings *headers;
        uint64_t interval_ns, timeout_ns;
        unsigned failure_threshold;
};

/** lkg_probes_new() - @changed: the health of a probe has changed, or its words; called from the loop. */
struct lkg_probes *lkg_probes_new(sd_event *event, void (*changed)(void *userdata), void *userdata);
/** lkg_probes_free() - after the last of its probes. */
struct lkg_probes *lkg_probes_free(struct lkg_probes *probes);

/** lkg_probe_new() - one that asks nothing yet. */
struct lkg_probe *lkg_probe_new(struct lkg_probes *probes);
struct lkg_probe *lkg_probe_free(struct lkg_probe *probe);

/**
 * lkg_probe_ask() - ask this endpoint from now on, or none. Cheap if nothing has changed. Another URL, or other headers, are asked at
 * once; until they have answered, what was said before is kept (a change of the port comes with the document on trial).
 */
void lkg_probe_ask(struct lkg_probe *probe, const struct lkg_probe_config *config);

/** lkg_probe_health() - what it says. @ret_words: why it is not known to be good; "" */
enum lkg_health_state lkg_probe_health(const struct lkg_probe *probe,
                                       char ret_words[static LKG_HEALTH_WORDS_MAX]);
/**
 * lkg_probe_good_ns() - since when (CLOCK_BOOTTIME) what is asked now has been good without a break: fewer failures than the threshold
 * are none. 0 = it is not, or has not answered yet.
 */
uint64_t lkg_probe_good_ns(const struct lkg_probe *probe);

/* ---- health-checks ---- */

/* Is a component that is alive also healthy? Asks what its trial.health names: its Node, and its health endpoint. */

/* between two questions to that endpoint while nothing is on trial; interval if longer */
#define LKG_HEALTH_IDLE_NS (60 * LKG_NSEC_PER_SEC)

/**
 * lkg_health_update() - note in @c what its checks say now, and ask what has to be asked. Also while nothing is on trial: what was
 * good before a change is known when a trial begins.
 *
 * Return: true: an answer has changed (LKG_EVENT_HEALTH).
 */
bool lkg_health_update(struct lkg_probes *probes, struct lkg_places *places, struct lkg_component *c);
