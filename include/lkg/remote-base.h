/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A remote configuration ready to replace the base in a stack: its payload, its display name, and the rules
 * of its trial, which it may define itself (`configTrialDuration`, `crashLoopThreshold`; else the
 * annotations lkgfs.io/trial-duration and lkgfs.io/crash-loop-threshold). The two fields are removed from
 * the document, because a component that does not know them would refuse it.
 */
#pragma once

#include <lkg/configmap.h>
#include <lkg/guard.h>
#include <lkg/rollout.h>
#include <lkg/stack.h>
#include <lkg/trial.h>

struct lkg_remote_base {
        struct lkg_configmap configmap;
        struct lkg_config_source source;
        char *name, *file; /* "kubelet-config", "kube-system/kubelet-config:kubelet" */
        const char *text;  /* the payload; NULL: none, see the finding */
        size_t size;
        struct lkg_trial_rules rules;
        struct lkg_rollout_limits limits; /* of its annotations */
        char *fault; /* why it cannot be loaded: a merge over it is an invalid candidate; NULL = it can */
};

/**
 * lkg_remote_base_new() - get the payload of @source from @configmap.
 * @configmap: taken over
 * @report:    why it cannot be used, errors LKG6004 (no payload) and LKG6005 (trial fields); it is bad then
 *
 * Return: 0, even if it cannot be used (text is NULL, or @report has an error); -ENOMEM.
 */
int lkg_remote_base_new(struct lkg_configmap *configmap, const struct lkg_config_source *source,
                        const struct lkg_trial_settings *settings, struct lkg_remote_base **ret,
                        struct lkg_report *report);
/**
 * lkg_remote_base_missing() - a base that should be followed but cannot be loaded, because of @fault. NULL =
 * no memory.
 */
struct lkg_remote_base *lkg_remote_base_missing(const struct lkg_config_source *source, const char *fault);
struct lkg_remote_base *lkg_remote_base_free(struct lkg_remote_base *base);

/** lkg_remote_base_file() - `namespace/name:key`, as in findings. Heap; NULL = no memory. */
char *lkg_remote_base_file(const struct lkg_config_source *source);

/** lkg_remote_base_stack() - for lkg_stack_set_remote(); borrows from @base. */
struct lkg_stack_remote lkg_remote_base_stack(const struct lkg_remote_base *base);
