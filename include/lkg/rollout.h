/* SPDX-License-Identifier: Apache-2.0 */
/*
 * May this node switch to new content of a ConfigMap yet? Annotations of the ConfigMap decide:
 *
 *     lkgfs.io/halt: "true"             nodes that have not switched yet wait
 *     lkgfs.io/rollout-percent: "10"    only nodes whose bucket is below; 0 to 100, up to three decimals
 *     lkgfs.io/rollout-salt: "2"        selects other nodes as the first ones (optional)
 *     lkgfs.io/rollout-max-in-trial: "5"  so many nodes have it on trial at a time; see <lkg/slots.h>
 *     lkgfs.io/rollout-max-failures: "1"  after so many failures nobody else switches (default 1)
 *     lkgfs.io/rollout-fleet: "1000"      number of nodes, a hint: how long to wait for a free slot at first
 *
 * A node's bucket is a number from 0.000 to 99.999 that only depends on its UID (and the salt): the first 8 bytes of
 * SHA-256("<salt>/<uid>"), most significant first, modulo 100000, in thousandths. Pure. Rules: docs/specification.md 4.14; the
 * idea is kubernetes/kubernetes#20200.
 *
 * A node keeps what it already follows, whatever the annotations say later; reset and rollback are never
 * held back.
 */
#pragma once

#include <lkg/configmap.h>

#define LKG_ANNOTATION_HALT    "lkgfs.io/halt"
#define LKG_ANNOTATION_PERCENT "lkgfs.io/rollout-percent"
#define LKG_ANNOTATION_SALT    "lkgfs.io/rollout-salt"
/* Slots: <lkg/slots.h> */
#define LKG_ANNOTATION_IN_TRIAL "lkgfs.io/rollout-max-in-trial"
#define LKG_ANNOTATION_FAILURES "lkgfs.io/rollout-max-failures"
#define LKG_ANNOTATION_FLEET    "lkgfs.io/rollout-fleet"

/* How many nodes may have it on trial. */
struct lkg_rollout_limits {
        unsigned max_in_trial; /* 0 = no limit, so no slots */
        unsigned max_failures;
        unsigned fleet; /* number of nodes, a hint; 0 = unknown */
};

enum lkg_rollout_state {
        LKG_ROLLOUT_GO,      /* no annotation prevents it */
        LKG_ROLLOUT_WAITING, /* the bucket is not below the percentage */
        LKG_ROLLOUT_HALTED,
        LKG_ROLLOUT_UNCLEAR, /* an annotation has an invalid value: no node switches */
};
const char *lkg_rollout_state_name(enum lkg_rollout_state state); /* "go", "waiting", "halted", "unclear" */

struct lkg_rollout {
        enum lkg_rollout_state state;
        bool halt, has_percent;
        unsigned percent_milli; /* 0 to 100000; 100000 without annotation */
        unsigned bucket_milli;  /* 0 to 99999 */
        struct lkg_rollout_limits limits;
        char words[256]; /* if not GO: "waiting for the rollout: bucket 43.210, rollout-percent 10" */
};

/** lkg_rollout_bucket() - of the node with this @uid. Return: 0 to 99999. */
unsigned lkg_rollout_bucket(const char *salt, const char *uid);

/**
 * lkg_rollout_decide() - the effect of the annotations of @configmap on this node.
 * @uid: of the Node object; its name if the Node cannot be read
 */
void lkg_rollout_decide(const struct lkg_configmap *configmap, const char *uid, struct lkg_rollout *ret);
/** lkg_rollout_limits_of() - only its limits; whether a node's turn has come is another question. */
struct lkg_rollout_limits lkg_rollout_limits_of(const struct lkg_configmap *configmap);
