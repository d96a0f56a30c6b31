/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A component's startup, step by step, up to its validation: docs/specification.md 3.5 lists the steps and
 * the upstream functions that they follow.
 */
#pragma once

#include "rules.h"

/**
 * lkg_kubelet_load() - loadConfigFile: decode, default, resolve paths, eviction defaults.
 * @base:  the document; NULL = no --config: the defaults of the flags
 * @dir:   absolute directory of the base file; NULL = leave relative paths alone
 * @flags: LKG_TYPED_TWICE, or 0
 * @gates: gates of the command line
 * @report: values that the component would refuse; the others are still loaded, so that all mistakes are
 * found in one run
 * @unread: gets those values, see lkg_typed_decode(); may be NULL
 *
 * Return: typed, complete; one reference.
 */
struct lkg_value *lkg_kubelet_load(const struct lkg_schema *schema, const struct lkg_value *base,
                                   const char *dir, unsigned flags, const struct lkg_gates *gates,
                                   struct lkg_report *report, struct lkg_value *unread);

/** lkg_kubelet_reload() - the step after the last drop-in: decode (names in any case), default. */
struct lkg_value *lkg_kubelet_reload(const struct lkg_schema *schema, const struct lkg_value *merged,
                                     const struct lkg_gates *gates, struct lkg_report *report,
                                     struct lkg_value *unread);

/** lkg_kubeproxy_load() - decode, default. @flags: LKG_TYPED_TWICE, or 0 */
struct lkg_value *lkg_kubeproxy_load(const struct lkg_schema *schema, const struct lkg_value *doc,
                                     unsigned flags, struct lkg_report *report, struct lkg_value *unread);

/**
 * lkg_kubeproxy_normalise() - convert the document to the internal type and back: sections of inactive modes
 * lose the values that the internal type has only once (pkg/proxy/apis/config/v1alpha1/conversion.go).
 */
void lkg_kubeproxy_normalise(struct lkg_value *object);

/**
 * lkg_path_resolve() - Go's filepath.Join.
 * @dir:      absolute
 * @path:     relative; may contain NUL bytes, like everything from a document
 * @ret_size: of the result, which is also NUL-terminated; may be NULL
 *
 * Return: heap.
 */
char *lkg_path_resolve(const char *dir, struct lkg_span path, size_t *ret_size);

/* ---- defaults.c ---- */

/*
 * Values that the component's defaulter sets where a document has none. Most defaults are a column of the
 * field tables; defaults that depend on other fields or on feature gates are in defaults.c.
 */

/**
 * lkg_defaults_kubelet() - SetDefaults_KubeletConfiguration (pkg/kubelet/apis/config/v1beta1/defaults.go).
 * @object: typed, one reference; replaced by the completed document
 * @gates:  gates set before the document (flags)
 * @unread: values that could not be read, or NULL
 * @report: the document's gates that make upstream panic here; defaulting continues without them
 */
void lkg_defaults_kubelet(const struct lkg_schema *schema, struct lkg_value **object,
                          const struct lkg_gates *gates, const struct lkg_value *unread,
                          struct lkg_report *report);

/** lkg_defaults_flag_base() - set the four defaults that differ without --config (applyLegacyDefaults). */
void lkg_defaults_flag_base(struct lkg_value *object);

/**
 * lkg_defaults_eviction() - complete evictionHard as the kubelet does when it loads the --config file
 * (cmd/kubelet/app, loadConfigFile): the operating system's defaults if it is missing; missing keys are
 * added if mergeDefaultEvictionSettings is true
 */
void lkg_defaults_eviction(struct lkg_value *object);

#define LKG_EVICTION_MERGE "mergeDefaultEvictionSettings"
/**
 * lkg_defaults_eviction_done() - the component has completed evictionHard before it merged drop-ins. A
 * component that reads the result as its only file would do it again and add thresholds. Then
 * mergeDefaultEvictionSettings, which has no other effect, must be false in that file.
 */
void lkg_defaults_eviction_done(struct lkg_value *object);

/** lkg_defaults_kubeproxy() - SetDefaults_KubeProxyConfiguration, then the additions for Linux. */
void lkg_defaults_kubeproxy(const struct lkg_schema *schema, struct lkg_value **object);
