/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Patterns of preloadedImagesVerificationAllowlist. Rule: pkg/kubelet/images/pullmanager,
 * ValidateAllowlistImagesPatterns; the names are those of github.com/distribution/reference v0.6.
 */
#pragma once

#include <lkg/text.h>

/**
 * lkg_image_name() - a name with or without registry, without tag and digest: `quay.io:443/team/app`
 *
 * Components are lower case letters and digits with `.`, `_`, `__` or hyphens between them; the path after the registry has at
 * most 255 bytes.
 *
 * Return: 0; -EINVAL.
 */
int lkg_image_name(const char *text, size_t size, char *reason);

/**
 * lkg_image_pattern() - such a name, or a prefix that ends in the wildcard `/` and `*`
 *
 * A prefix must only be non-empty, without another `*`, and without white space at its ends.
 *
 * Return: 0; -EINVAL.
 */
int lkg_image_pattern(const char *text, size_t size, char *reason);

/**
 * lkg_image_pattern_full() - the rule of releases before 1.36: a name has its registry, on docker.io also
 * the library.
 */
int lkg_image_pattern_full(const char *text, size_t size, char *reason);
