/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names of sysctls that have a namespace of the kernel. Rules: component-helpers, node/util/sysctl; apis/policy validation;
 * pkg/kubelet/apis/config/validation, isValidSysctlName().
 */
#pragma once

#include <lkg/text.h>

/**
 * lkg_sysctl_name() - a name such as net.core.somaxconn or net/core/somaxconn, without a star
 * lkg_sysctl_pattern() - such a name, or a prefix of names that ends in a star
 * lkg_sysctl_pattern_136() - the same up to 1.36, which do not know kernel.domainname and user.*
 *
 * Return: 0; -EINVAL.
 */
int lkg_sysctl_name(const char *text, size_t size, char *reason);
int lkg_sysctl_pattern(const char *text, size_t size, char *reason);
int lkg_sysctl_pattern_136(const char *text, size_t size, char *reason);

/** lkg_sysctl_normalise() - dots as separators: the first separator of a name decides whether `.` or `/` separates. */
void lkg_sysctl_normalise(char *name);
