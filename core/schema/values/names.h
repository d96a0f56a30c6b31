/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names of labels, and of what can be reserved. Rule: apimachinery, pkg/api/validate/content.
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

/** lkg_name_is_memory() - can memory of this type be reserved: `memory`, or `hugepages-` and any suffix? */
bool lkg_name_is_memory(struct lkg_span type);
