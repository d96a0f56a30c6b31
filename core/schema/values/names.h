/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names of labels and taints. Rule: apimachinery, pkg/api/validate/content, and pkg/util/taints (CheckTaintValidation,
 * ParseTaints).
 */
#pragma once

#include <lkg/text.h>

/**
 * lkg_name_qualified() - a label key: `name` or `dns.subdomain/name`, the name at most 63 bytes. Return: 0;
 * -EINVAL.
 */
int lkg_name_qualified(const char *text, size_t size, char *reason);
/** lkg_name_label_value() - empty, or as the name of a label key. Return: 0; -EINVAL. */
int lkg_name_label_value(const char *text, size_t size, char *reason);

/**
 * lkg_node_label_check() - one label of the flag --node-labels
 *
 * The key is a qualified name, the value a label value. Of the labels below kubernetes.io and k8s.io a kubelet
 * may only set some of its own node: a few well-known ones, and all below kubelet.kubernetes.io and
 * node.kubernetes.io (cmd/kubelet/app/options, ValidateKubeletFlags).
 *
 * Return: 0; -EINVAL.
 */
int lkg_node_label_check(struct lkg_span key, struct lkg_span value, char *reason);

struct lkg_taint {
        struct lkg_span key, value, effect; /* borrowed */
};

/**
 * lkg_taint_check() - the kubelet's validation of an item of registerWithTaints
 *
 * The key is a qualified name, the value a label value, the effect NoSchedule, PreferNoSchedule, NoExecute
 * or empty.
 *
 * Return: 0; -EINVAL.
 */
int lkg_taint_check(const struct lkg_taint *taint, char *reason);

/**
 * lkg_taints_parse() - the flag --register-with-taints: `key=value:Effect,key:Effect`
 * @each: called for each taint in order, its pieces borrowed from @text; a negative result ends the walk
 *
 * Every use of the flag replaces the list; the empty text makes it nil. A taint without effect is refused,
 * as are two with one key and effect. A taint that ends in `-` (remove) is checked and then left out, as in
 * the component.
 *
 * @each may have been called before a later taint turns out to be wrong: then the collected taints must be
 * discarded.
 *
 * Return: 0; -EINVAL; what @each returned.
 */
int lkg_taints_parse(const char *text, size_t size,
                     int (*each)(void *userdata, const struct lkg_taint *taint), void *userdata,
                     char *reason);
