/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Addresses, networks and ports. Rule: k8s.io/utils/net (ParseIPSloppy, ParseCIDRSloppy, ParsePort,
 * IsDualStackCIDRStrings), apimachinery's util/net (ParsePortRange), Go 1.26 net.SplitHostPort, net/netip.
 *
 * The components use the "sloppy" functions everywhere: IPv4 numbers may have leading zeros and are still
 * decimal.
 */
#pragma once

#include <lkg/text.h>

/* An address in 16 bytes; IPv4 in the last four, after ::ffff. */
struct lkg_ip {
        uint8_t bytes[16];
};

/** lkg_ip_parse() - an IPv4 or IPv6 address without zone, prefix or brackets. Return: 0; -EINVAL. */
int lkg_ip_parse(const char *text, size_t size, struct lkg_ip *ret, char *reason);
/** lkg_ip_is_v4() - also true for an IPv4 address written as `::ffff:10.0.0.1`, like net.IP.To4. */
bool lkg_ip_is_v4(const struct lkg_ip *ip);
/** lkg_ip_is_v6_strict() - does net/netip.ParseAddr parse @text as IPv6: strict, without zone? */
bool lkg_ip_is_v6_strict(const char *text, size_t size);

struct lkg_cidr {
        struct lkg_ip ip; /* as written: bits after the prefix are kept */
        unsigned prefix;  /* bits */
        bool v4;          /* the family by how it is written */
};

/** lkg_cidr_parse() - `10.0.0.0/8`, `fd00::/48`. Return: 0; -EINVAL. */
int lkg_cidr_parse(const char *text, size_t size, struct lkg_cidr *ret, char *reason);
/**
 * lkg_cidr_is_v4() - the family of the masked network: `::ffff:10.0.0.0/104` is IPv4, with /64 it is not.
 */
bool lkg_cidr_is_v4(const struct lkg_cidr *cidr);
/**
 * lkg_cidr_dual_stack() - is there one network of each family, as a pair of cluster CIDRs must have?
 */
bool lkg_cidr_dual_stack(const struct lkg_cidr *a, const struct lkg_cidr *b);

/**
 * lkg_host_port_split() - `host:port`, `[v6]:port`
 * @ret_host: without brackets; may be empty
 * @ret_port: may be empty or not a number: lkg_port_parse() checks it
 *
 * Return: 0; -EINVAL.
 */
int lkg_host_port_split(const char *text, size_t size, struct lkg_span *ret_host, struct lkg_span *ret_port,
                        char *reason);
/**
 * lkg_host_port_check() - an address that kube-proxy listens on: IP:port, the port 1 to 65535
 *
 * The port may have a sign or leading zeros, as the validation of healthzBindAddress reads it.
 *
 * Return: 0; -EINVAL.
 */
int lkg_host_port_check(const char *text, size_t size, char *reason);
/**
 * lkg_host_port_complete() - the port that kube-proxy's defaults append to an address that has none
 *
 * Return: 1: @text is an IPv4 address, append `:port`; 2: IPv6, put it in brackets and append; 0: leave it,
 * because it has a port, or is wrong and validation will refuse it.
 */
int lkg_host_port_complete(const char *text, size_t size);

/** lkg_port_parse() - 0 (if @zero) or 1 to 65535, digits only. Return: 0; -EINVAL. */
int lkg_port_parse(const char *text, size_t size, bool zero, uint16_t *ret, char *reason);
/**
 * lkg_port_range_parse() - `N`, `N-M` (both inclusive) or `N+M` (M ports more); the empty text means no port
 * @ret_low, @ret_n: first port and number of ports; port 0 is valid, as upstream
 *
 * Return: 0; -EINVAL.
 */
int lkg_port_range_parse(const char *text, size_t size, int64_t *ret_low, int64_t *ret_n, char *reason);

/**
 * lkg_ip_flag() - the flags --address and --healthz-bind-address
 *
 * Return: 1: set the field to @text; 0: empty, the field keeps its value; -EINVAL.
 */
int lkg_ip_flag(const char *text, size_t size, char *reason);
/** lkg_ip_port_flag() - kube-proxy's IP or IP:port flags; port 0 is allowed. Return: as lkg_ip_flag(). */
int lkg_ip_port_flag(const char *text, size_t size, char *reason);
