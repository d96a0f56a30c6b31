/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names of Kubernetes objects. Rule: apimachinery, pkg/api/validate/content (RFC 1123). No state; reasons as
 * in span.h.
 */
#pragma once

#include <lkg/span.h>

#define LKG_DNS_LABEL_MAX     63u
#define LKG_DNS_SUBDOMAIN_MAX 253u

/** lkg_name_dns_label() - the name of a namespace (`kube-system`), at most 63 bytes. Return: 0; -EINVAL. */
int lkg_name_dns_label(const char *text, size_t size, char *reason);
/** lkg_name_dns_subdomain() - `example.com`: lower case labels, at most 253 bytes. Return: 0; -EINVAL. */
int lkg_name_dns_subdomain(const char *text, size_t size, char *reason);
