/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The URLs of an API server and of a proxy, checked against a grammar so narrow that libcurl's parser cannot
 * read them differently. Pure; reasons as in <lkg/text.h>; they never quote a URL.
 */
#pragma once

#include <lkg/text.h>

/**
 * lkg_endpoint_server() - `https://HOST[:PORT][/PATH]`, HOST a name, an IPv4 address or an IPv6 address in brackets.
 * @ret: the same without a trailing `/`, the scheme in lower case; heap, caller frees
 * Return: 0; -EINVAL.
 */
int lkg_endpoint_server(struct lkg_span text, char **ret, char *reason);

/**
 * lkg_endpoint_proxy() - the same with http, https or socks5, user and password allowed, without a path.
 *
 * @ret has socks5h for socks5: in a kubeconfig the proxy resolves names (Go's golang.org/x/net/proxy), which
 * libcurl calls socks5h.
 */
int lkg_endpoint_proxy(struct lkg_span text, char **ret, char *reason);

/** lkg_endpoint_host() - a host name or an address without brackets: tls-server-name. Return: 0; -EINVAL. */
int lkg_endpoint_host(struct lkg_span text, char *reason);

/** lkg_endpoint_port() - 1 to 65535. Return: 0; -EINVAL. */
int lkg_endpoint_port(struct lkg_span text, char *reason);
