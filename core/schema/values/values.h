/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Single values exactly as Go and the components read them; nothing here knows a document.
 *
 * A parser returns 0, or -EINVAL and a reason in LKG_REFUSAL_MAX bytes (NULL = not wanted). White space is not trimmed unless it is
 * said.
 */
#pragma once

#include <lkg/text.h>

/* ---- number.c ---- */

/*
 * Booleans and numbers in flags. Rule: Go 1.26, strconv.ParseBool, ParseInt, ParseUint, Atoi and
 * ParseFloat; pflag's Int32, Int64, Uint32, ... call them with base 0, most other code with base 10. White
 * space is never trimmed.
 */

/** lkg_bool_parse() - 1 t T TRUE true True, 0 f F FALSE false False. Return: 0; -EINVAL. */
int lkg_bool_parse(const char *text, size_t size, bool *ret, char *reason);

/**
 * lkg_int_parse() - a whole number with an optional sign
 * @base: 10; or 0: `0x`, `0o`, `0b` and a leading 0 (octal) set the base, and single underscores are allowed
 *        between digits and after the prefix
 * @bits: 1 to 64; the value must fit into a signed integer of that size. Atoi is base 10, 64 bits
 *
 * Return: 0; -EINVAL.
 */
int lkg_int_parse(const char *text, size_t size, unsigned base, unsigned bits, int64_t *ret, char *reason);

/** lkg_uint_parse() - the same for an unsigned number: no sign allowed, not even `+`. Return: 0; -EINVAL. */
int lkg_uint_parse(const char *text, size_t size, unsigned base, unsigned bits, uint64_t *ret, char *reason);

/**
 * lkg_float_parse() - a decimal or hexadecimal (`0x1p-2`) number, `inf`, `infinity` or `nan` in any case
 * @bits: 32 (rounded once, to float precision) or 64
 *
 * Return: 0; -EINVAL, also when the value is too large for the type.
 */
int lkg_float_parse(const char *text, size_t size, unsigned bits, double *ret, char *reason);

/* ---- quantity.c ---- */

/*
 * Resource quantities: `100m`, `1.5Gi`, `12e6`. Rule: apimachinery, pkg/api/resource, ParseQuantity, String
 * and CanonicalizeBytes (v0.36).
 *
 * The arithmetic is exact: a decimal number of any length times a power of ten. The intended losses of
 * upstream are the same here: digits below 1n are rounded away from zero, values with a binary suffix stop
 * at 2^63-1, and a value of 1000E or more prints without its power of ten, because the family has no larger
 * suffix.
 *
 * A small value needs no memory; a long one owns its digits (lkg_quantity_deinit).
 */

enum lkg_quantity_format {
        LKG_QUANTITY_DECIMAL,  /* n u m - k M G T P E */
        LKG_QUANTITY_BINARY,   /* Ki Mi Gi Ti Pi Ei */
        LKG_QUANTITY_EXPONENT, /* e3, E-6 */
};

/*
 * (negative ? -1 : 1) x digits x 10^scale; the digits are @value, or @digits when there are too many for
 * it.
 */
struct lkg_quantity {
        enum lkg_quantity_format format;
        bool negative;
        bool as_written; /* prints as the text it came from: that was in canonical form, or nearly (`+1Gi`) */
        bool wide;       /* went through upstream's slow path: never an int64 for the component */
        uint64_t value;  /* 0 = zero, whatever the rest says */
        int32_t scale;
        char *digits; /* heap or NULL; characters '0' to '9', the first and the last not '0' */
        size_t n_digits;
};

#define LKG_QUANTITY_INIT \
        {                 \
                0         \
        }

void lkg_quantity_deinit(struct lkg_quantity *quantity);

/**
 * lkg_quantity_parse() - parse a quantity of a flag, a map of reservations or an eviction threshold
 * @ret:    written on success; deinit() it
 * @reason: LKG_REFUSAL_MAX bytes or NULL
 *
 * White space is not trimmed. An exponent above a million together with more than 18 digits is refused: the
 * component would compute for hours.
 *
 * Return: 0; -EINVAL.
 */
int lkg_quantity_parse(const char *text, size_t size, struct lkg_quantity *ret, char *reason);

/**
 * lkg_quantity_trim() - the part of a JSON string or number that the decoder of type Quantity parses
 *
 * It trims white space from the raw JSON text. White space that JSON writes as an escape (tab, line feed,
 * ..., U+2028, U+2029) is therefore not trimmed, and makes the value wrong.
 */
struct lkg_span lkg_quantity_trim(const char *text, size_t size);

/**
 * lkg_quantity_text() - put the text that the component prints and marshals to JSON for @quantity
 * @source: its source text (trimmed), used when the value prints as written
 */
void lkg_quantity_text(const struct lkg_quantity *quantity, struct lkg_span source, struct lkg_buf *buf);

/** lkg_quantity_canonical() - put the canonical form, whatever the source text was: `01` becomes `1`. */
void lkg_quantity_canonical(const struct lkg_quantity *quantity, struct lkg_buf *buf);

/**
 * lkg_quantity_round() - round to whole multiples of 10^@unit, away from zero, like Quantity.RoundUp; -3 =
 * 1m.
 */
void lkg_quantity_round(struct lkg_quantity *quantity, int32_t unit);

bool lkg_quantity_is_zero(const struct lkg_quantity *quantity);
/** lkg_quantity_sign() - -1, 0 or 1. */
int lkg_quantity_sign(const struct lkg_quantity *quantity);
/** lkg_quantity_compare() - -1, 0 or 1 as @a is less than, equal to or greater than @b. */
int lkg_quantity_compare(const struct lkg_quantity *a, const struct lkg_quantity *b);
/**
 * lkg_quantity_int64() - the value in units, like Quantity.AsInt64
 *
 * Return: false if it is not a whole number, not an int64, or stored by the component as a decimal (19
 * digits and more, fractions with a binary suffix, and the like), which it does not convert either.
 */
bool lkg_quantity_int64(const struct lkg_quantity *quantity, int64_t *ret);
/** lkg_quantity_double() - about the value in units; infinite if it is too large for a double. */
double lkg_quantity_double(const struct lkg_quantity *quantity);
/**
 * lkg_quantity_value() - the value in units, rounded up, like Quantity.Value
 *
 * Like that function it never fails: for a value that does not fit into 64 bits it returns the same
 * remainder as upstream's arithmetic, often 0 (`1e400`, `-1.00000000000000000001`), so that rules about 0
 * agree.
 */
int64_t lkg_quantity_value(const struct lkg_quantity *quantity);

/* ---- address.c ---- */

/*
 * Addresses, networks and ports. Rule: k8s.io/utils/net (ParseIPSloppy, ParseCIDRSloppy, ParsePort,
 * IsDualStackCIDRStrings), apimachinery's util/net (ParsePortRange), Go 1.26 net.SplitHostPort, net/netip.
 *
 * The components use the "sloppy" functions everywhere: IPv4 numbers may have leading zeros and are still
 * decimal.
 */

/* An address in 16 bytes; IPv4 in the last four, after ::ffff. */
struct lkg_ip {
        uint8_t bytes[16];
};

/** lkg_ip_parse() - an IPv4 or IPv6 address without zone, prefix or brackets. Return: 0; -EINVAL. */
int lkg_ip_parse(const char *text, size_t size, struct lkg_ip *ret, char *reason);
int lkg_ip_check(const char *text, size_t size, char *reason); /* the same */
/** lkg_ip_is_v4() - also true for an IPv4 address written as `::ffff:10.0.0.1`, like net.IP.To4. */
bool lkg_ip_is_v4(const struct lkg_ip *ip);
/** lkg_ip_is_strict() - does net/netip.ParseAddr parse @text, without zone? Leading zeros are not allowed. */
bool lkg_ip_is_strict(const char *text, size_t size);

struct lkg_cidr {
        struct lkg_ip ip; /* as written: bits after the prefix are kept */
        unsigned prefix;  /* bits */
        bool v4;          /* the family by how it is written */
};

/** lkg_cidr_parse() - `10.0.0.0/8`, `fd00::/48`. Return: 0; -EINVAL. */
int lkg_cidr_parse(const char *text, size_t size, struct lkg_cidr *ret, char *reason);
/**
 * lkg_cidr_dual_stack() - is there one network of each family, as a pair of cluster CIDRs must have?
 */
bool lkg_cidr_dual_stack(const struct lkg_cidr *a, const struct lkg_cidr *b);

/**
 * lkg_host_port_split() - `host:port`, `[v6]:port`
 * @ret_host: without brackets; may be empty
 * @ret_port: may be empty or not a number: not checked
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

/**
 * lkg_ip_flag() - the flags --address and --healthz-bind-address
 *
 * Return: 1: set the field to @text; 0: empty, the field keeps its value; -EINVAL.
 */
int lkg_ip_flag(const char *text, size_t size, char *reason);
/** lkg_ip_port_flag() - kube-proxy's IP or IP:port flags; port 0 is allowed. Return: as lkg_ip_flag(). */
int lkg_ip_port_flag(const char *text, size_t size, char *reason);

/* ---- names.c ---- */

/*
 * Names of labels, and of what can be reserved. Rule: apimachinery, pkg/api/validate/content.
 */

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

/*
 * Paths of volumes. Rule: pkg/apis/core/validation, validatePathNoBacksteps(), validateLocalDescendingPath(),
 * ValidateLocalNonReservedPath().
 */

/** lkg_path_forward() - no part is `..`. Return: 0; -EINVAL. */
int lkg_path_forward(const char *text, size_t size, char *reason);
/** lkg_path_descending() - and it is relative. */
int lkg_path_descending(const char *text, size_t size, char *reason);
/** lkg_path_local() - and its first name does not begin with `..`. */
int lkg_path_local(const char *text, size_t size, char *reason);

/** lkg_name_is_memory() - can memory of this type be reserved: `memory`, or `hugepages-` and any suffix? */
bool lkg_name_is_memory(struct lkg_span type);

/* ---- image.c ---- */

/*
 * Patterns of preloadedImagesVerificationAllowlist. Rule: pkg/kubelet/images/pullmanager,
 * ValidateAllowlistImagesPatterns; the names are those of github.com/distribution/reference v0.6.
 */

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

/* ---- cpuset.c ---- */

/* Lists of CPUs: `0-3,8`. Rule: k8s.io/utils/cpuset, Parse. */

#define LKG_CPUSET_MAX (INT64_C(1) << 26) /* CPUs named in one list; the component keeps each in memory */

/**
 * lkg_cpuset_parse() - numbers and ranges between commas; the empty text is the empty set
 * @ret_highest: the highest CPU named, -1 for none
 * @reason:      LKG_REFUSAL_MAX bytes or NULL
 *
 * White space is not allowed. A list of more than LKG_CPUSET_MAX CPUs is refused: the component would run
 * out of memory, and no kernel has as many.
 *
 * Return: 0; -EINVAL.
 */
int lkg_cpuset_parse(const char *text, size_t size, int64_t *ret_highest, char *reason);

/* ---- sysctl.c ---- */

/*
 * Names of sysctls that have a namespace of the kernel. Rules: component-helpers, node/util/sysctl; apis/policy validation;
 * pkg/kubelet/apis/config/validation, isValidSysctlName().
 */

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

/** lkg_text_matches() - a POSIX extended regular expression, a constant; so that it finds all of the text, it has ^ and $. */
bool lkg_text_matches(const char *pattern, struct lkg_span text);

/** lkg_sysctl_shape() - can it be the name of a sysctl, of any namespace? @text: NUL-terminated */
bool lkg_sysctl_shape(const char *text, size_t size);

/** lkg_sysctl_normalise() - dots as separators: the first separator of a name decides whether `.` or `/` separates. */
void lkg_sysctl_normalise(char *name);

/* ---- url.c ---- */

/*
 * The checks of URLs for which a configuration is refused. Rule: Go 1.26, net/url Parse; component-base,
 * tracing/api/v1, ValidateTracingConfiguration. The kubelet does not validate staticPodURL; lkg_url_parse()
 * tells whether it will be able to fetch it.
 */

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
 * Return: 0; -EINVAL.
 */
int lkg_url_trace_endpoint(const char *text, size_t size, char *reason);
