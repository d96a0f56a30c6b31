/* SPDX-License-Identifier: Apache-2.0 */
/* The trial of static pods: the pure part. State, facts and a time in, the next state and verdicts out. Times are CLOCK_BOOTTIME in ns. */
#pragma once

#include <lkg/base.h>

/*
 * A pod is on trial while it is served with another document than its last good one. It works when the probes that its manifest names
 * have answered well for a while, and fails when they have not in time, or when a container restarts too often. Pods that changed
 * shortly after one another are a set: they are judged together, when each of them works or has failed (docs/specification.md 4.18).
 */

enum lkg_pod_state {
        LKG_POD_GOOD,
        LKG_POD_UNTRIED, /* there is no trial, or nothing that could be asked */
        LKG_POD_TRYING,
        LKG_POD_WORKS,    /* on trial, and the others of its set are not judged yet */
        LKG_POD_FAILED,   /* the same */
        LKG_POD_BACK,     /* its last good document is served again */
        LKG_POD_DEAD_END, /* that does not work either, or there is none */
        _LKG_POD_STATE_MAX
};
extern const char *const lkg_pod_state_names[_LKG_POD_STATE_MAX]; /* "good", "untried", ... */

/* All zero: good. */
struct lkg_pod_trial {
        enum lkg_pod_state state;
        uint64_t since_ns; /* begin of the trial, or when it went back; moved by what was not to be known */
        uint64_t changed_ns;   /* the same, not moved */
        uint64_t suspended_ns; /* since when nothing is to be known; 0 = it is */
};

struct lkg_pod_facts {
        bool is_good;        /* it is served with its last good document */
        bool is_bad;         /* its file is marked bad */
        bool can_ask;        /* it names probes that can be asked */
        uint64_t answers_ns; /* since when all of them have answered well; 0 = they do not */
        unsigned restarts;   /* of its container that restarted most often, since the change */
        bool suspended; /* who starts it, or says where it is, answered before and does not: nothing can be known */
        bool unknown; /* nobody has ever said where it is, so nothing is asked */
};

struct lkg_pod_rules {
        uint64_t duration_ns; /* 0 = no trial */
        uint64_t stable_for_ns, settle_ns;
        unsigned threshold; /* of restarts */
};

enum lkg_pod_verdict { LKG_POD_GO_ON, LKG_POD_PASSED, LKG_POD_CRASHED, LKG_POD_UNHEALTHY };

/** lkg_pod_follow() - the next state of one pod. */
struct lkg_pod_trial lkg_pod_follow(struct lkg_pod_trial trial, const struct lkg_pod_facts *facts,
                                    const struct lkg_pod_rules *rules, uint64_t now_ns);
/** lkg_pod_due() - when lkg_pod_follow() would come to something else if nothing happens; UINT64_MAX = never. */
uint64_t lkg_pod_due(const struct lkg_pod_trial *trial, const struct lkg_pod_facts *facts,
                     const struct lkg_pod_rules *rules);
/**
 * lkg_pods_decide() - the sets: may each pod be judged now? @ret_decided: by pod
 * Return: when the answer would be another one; UINT64_MAX = never.
 */
uint64_t lkg_pods_decide(const struct lkg_pod_trial *pods, size_t n, const struct lkg_pod_rules *rules,
                         uint64_t now_ns, bool *ret_decided);
