/* SPDX-License-Identifier: Apache-2.0 */
/* Checks of a component's health. */
#pragma once

#include <systemd/sd-event.h>

#include <lkg/base.h>
#include <lkg/component.h>
#include <lkg/places.h>
#include <lkg/process.h>
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
 * are none. 0 = it is not, or has not answered yet, or its newest answer was none.
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

/* ---- containers ---- */

/*
 * The containers of static pods, as the container runtime says: the node's pods without a credential for the API server. The engine may
 * not talk to a socket of root; it asks lkgfsd (LKG_MSG_CONTAINERS), which runs `lkgfs-engine --containers`.
 *
 * A static pod is one that the kubelet has from a file (annotation kubernetes.io/config.source of its sandbox). Of several sandboxes of
 * a pod only the newest counts, and of the containers of one name in it the newest.
 */

/* as in the CRI */
enum lkg_container_state {
        LKG_CONTAINER_CREATED,
        LKG_CONTAINER_RUNNING,
        LKG_CONTAINER_EXITED,
        LKG_CONTAINER_UNKNOWN,
};

struct lkg_container {
        char ns[64], pod[254], uid[64];
        char ip[46];         /* of the pod; "" = it has none of its own: that of the host */
        uint64_t sandbox_ns; /* wall time at which its sandbox was created */
        char name[64];
        uint64_t state;      /* enum lkg_container_state */
        uint64_t restarts;   /* by the kubelet's count (annotation io.kubernetes.container.restartCount) */
        uint64_t created_ns; /* wall time */
};

struct lkg_containers {
        struct lkg_container *items;
        size_t n, allocated;
};

/**
 * lkg_containers_print() - ask the runtime at the socket @path, and print a line of JSON for each container; or one line why not. For a
 * process of its own: it is confined for good as soon as it is connected, as user @account (all 0: it stays who it is).
 * Return: exit code: 0; 74: the runtime does not answer, or nonsense.
 */
int lkg_containers_print(const char *path, const struct lkg_account *account);

/**
 * lkg_containers_read() - what it printed, from the private runtime directory, after lkgfsd has answered LKG_MSG_CONTAINERS with 0.
 * @ret: in no order; lkg_containers_deinit()
 * Return: 0; -ENOENT: never asked; -EBADMSG; another -errno.
 */
int lkg_containers_read(int runtime_fd, struct lkg_containers *ret, struct lkg_error *err);
void lkg_containers_deinit(struct lkg_containers *containers);

/* ---- static pods ---- */

/*
 * Does a static pod answer? Asks the probes that its manifest names, of pods that are on trial or went back, and takes their addresses and
 * restarts from the containers.
 */

struct lkg_pod_checks;

/* What the container runtime says. */
struct lkg_pod_runtime {
        struct lkg_containers containers; /* none before it has answered */
        bool silent;   /* it does not answer, or there is none; what it said before stays */
        bool answered; /* it did once */
};

struct lkg_pod_checks *lkg_pod_checks_new(struct lkg_probes *probes);
struct lkg_pod_checks *lkg_pod_checks_free(struct lkg_pod_checks *checks);
/**
 * lkg_pod_checks_update() - write into c->pods what is known now, and ask what has to be asked.
 * @kubelet: URL of its health endpoint; "" = unknown
 * @node: its name, which ends those of its pods
 */
void lkg_pod_checks_update(struct lkg_pod_checks *checks, struct lkg_component *c,
                           const struct lkg_pod_runtime *runtime, const char *kubelet, const char *node);
/** lkg_pod_checks_active() - is anything asked? */
bool lkg_pod_checks_active(const struct lkg_pod_checks *checks);
/** lkg_health_endpoint() - URL of the health endpoint of @c, by its configuration or its document; "" = none. */
const char *lkg_health_endpoint(struct lkg_component *c);
