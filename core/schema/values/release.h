/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Values that depend on the component's release. Rule: component-base, metrics/api/v1,
 * ValidateShowHiddenMetricsVersionForKubeletBackwardCompatOnly; kube-proxy uses the same one.
 */
#pragma once

#include <lkg/text.h>

/**
 * lkg_release_hidden_metrics() - showHiddenMetricsForVersion
 * @release: of the component; 1.36 is 136
 *
 * Return: 0 for the empty text and for the minor version before @release, such as `1.35`; -EINVAL.
 */
int lkg_release_hidden_metrics(const char *text, size_t size, unsigned release, char *reason);
