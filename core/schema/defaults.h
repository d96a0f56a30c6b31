/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Values that the component's defaulter sets where a document has none. Most defaults are a column of the
 * field tables; defaults that depend on other fields or on feature gates are in defaults.c.
 */
#pragma once

#include "gates.h"
#include "typed.h"

/**
 * lkg_defaults_kubelet() - SetDefaults_KubeletConfiguration (pkg/kubelet/apis/config/v1beta1/defaults.go).
 * @object: typed, one reference; replaced by the completed document
 * @gates:  gates set before the document (flags)
 * @unread: values that could not be read, or NULL
 * @report: the document's gates that make upstream panic here; defaulting continues without them
 *
 * Return: 0; -ENOMEM.
 */
int lkg_defaults_kubelet(const struct lkg_schema *schema, struct lkg_value **object,
                         const struct lkg_gates *gates, const struct lkg_value *unread,
                         struct lkg_report *report);

/** lkg_defaults_flag_base() - set the four defaults that differ without --config (applyLegacyDefaults). */
int lkg_defaults_flag_base(struct lkg_value *object);

/**
 * lkg_defaults_eviction() - complete evictionHard as the kubelet does when it loads the --config file
 * (cmd/kubelet/app, loadConfigFile): the operating system's defaults if it is missing; missing keys are
 * added if mergeDefaultEvictionSettings is true
 */
int lkg_defaults_eviction(struct lkg_value *object);

#define LKG_EVICTION_MERGE "mergeDefaultEvictionSettings"
/**
 * lkg_defaults_eviction_done() - the component has completed evictionHard before it merged drop-ins. A
 * component that reads the result as its only file would do it again and add thresholds. Then
 * mergeDefaultEvictionSettings, which has no other effect, must be false in that file.
 */
int lkg_defaults_eviction_done(struct lkg_value *object);

/** lkg_defaults_kubeproxy() - SetDefaults_KubeProxyConfiguration, then the additions for Linux. */
int lkg_defaults_kubeproxy(const struct lkg_schema *schema, struct lkg_value **object);
