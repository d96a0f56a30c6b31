/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The checks of URLs for which a configuration is refused. Rule: Go 1.26, net/url Parse; component-base,
 * tracing/api/v1, ValidateTracingConfiguration. The kubelet does not validate staticPodURL; lkg_url_parse()
 * tells whether it will be able to fetch it.
 */
#pragma once

#include <lkg/text.h>

/**
 * lkg_url_parse() - does net/url.Parse accept a URL?
 * @ret_scheme: as written, not in lower case; empty for a relative URL. May be NULL
 * @reason:     LKG_REFUSAL_MAX bytes or NULL; never quotes userinfo
 *
 * Return: 0; -EINVAL.
 */
int lkg_url_parse(const char *text, size_t size, struct lkg_span *ret_scheme, char *reason);

/**
 * lkg_url_trace_endpoint() - tracing.endpoint: a gRPC target, `host:4317`, `unix:///run/otel.sock`
 *
 * Without `//` it means `dns://` followed by the text. The scheme must be dns, unix or unix-abstract. The
 * empty text is accepted.
 *
 * Return: 0; -EINVAL; -ENOMEM.
 */
int lkg_url_trace_endpoint(const char *text, size_t size, char *reason);
