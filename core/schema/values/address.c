/* SPDX-License-Identifier: Apache-2.0 */
#include <arpa/inet.h>
#include <ctype.h>

#include "values.h"

#define WANT_IP "; want an IP address, such as 10.0.0.1 or fd00::1"

/*
 * @sloppy: numbers may have leading zeros, which inet_pton() does not take and which are left out for it. A text that is longer
 * than any address without them is none.
 */
static bool parse_as(int family, struct lkg_span text, bool sloppy, void *ret)
{
        char plain[INET6_ADDRSTRLEN];
        size_t n = 0;

        for (size_t i = 0; i < text.size; i++) {
                bool first = i == 0 || !isxdigit((unsigned char)text.data[i - 1]);
                size_t zeros = i;

                while (sloppy && first && zeros + 1 < text.size && text.data[zeros] == '0' &&
                       isxdigit((unsigned char)text.data[zeros + 1]))
                        zeros++;
                i = zeros;
                if (n + 1 == sizeof(plain) || text.data[i] == '\0')
                        return false;
                plain[n++] = text.data[i];
        }
        plain[n] = '\0';
        return inet_pton(family, plain, ret) == 1;
}

static bool parse_v4(struct lkg_span text, struct lkg_ip *ret)
{
        struct lkg_ip ip = { { 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff } };

        if (!parse_as(AF_INET, text, true, ip.bytes + 12))
                return false;
        *ret = ip;
        return true;
}

int lkg_ip_parse(const char *text, size_t size, struct lkg_ip *ret, char *reason)
{
        struct lkg_span span = { text, size };

        /* The first point or colon decides the family. */
        for (size_t i = 0; i < size; i++) {
                if (text[i] != '.' && text[i] != ':')
                        continue;
                if (text[i] == '.' ? parse_v4(span, ret) : parse_as(AF_INET6, span, true, ret->bytes))
                        return 0;
                break;
        }
        return lkg_refuse(reason, "%s is not an IP address" WANT_IP, LKG_PIECE(span));
}

int lkg_ip_check(const char *text, size_t size, char *reason)
{
        struct lkg_ip ip;

        return lkg_ip_parse(text, size, &ip, reason);
}

bool lkg_ip_is_v4(const struct lkg_ip *ip)
{
        static const uint8_t prefix[12] = { 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff };

        return memcmp(ip->bytes, prefix, sizeof(prefix)) == 0;
}

bool lkg_ip_is_strict(const char *text, size_t size)
{
        struct lkg_ip ip;

        return parse_as(memchr(text, ':', size) ? AF_INET6 : AF_INET, lkg_span(text, size), false, ip.bytes);
}

/* ---- networks ---- */

int lkg_cidr_parse(const char *text, size_t size, struct lkg_cidr *ret, char *reason)
{
        struct lkg_span all = { text, size }, address, prefix;
        struct lkg_cidr cidr;
        uint64_t bits;

        if (lkg_span_cut(all, '/', &address, &prefix)) {
                cidr.v4 = parse_v4(address, &cidr.ip);
                if ((cidr.v4 || parse_as(AF_INET6, address, true, cidr.ip.bytes)) &&
                    lkg_uint_parse(prefix.data, prefix.size, 10, 8, &bits, NULL) == 0 &&
                    bits <= (cidr.v4 ? 32 : 128)) {
                        cidr.prefix = (unsigned)bits;
                        *ret = cidr;
                        return 0;
                }
        }
        return lkg_refuse(reason, "%s is not a network; want one such as 10.0.0.0/16 or fd00::/48",
                          LKG_PIECE(all));
}

/* The family of the masked network: `::ffff:10.0.0.0/104` is IPv4, with /64 it is not. */
static bool is_v4_network(const struct lkg_cidr *cidr)
{
        struct lkg_ip masked = cidr->ip;

        if (cidr->v4)
                return true;
        for (unsigned bit = cidr->prefix; bit < 128; bit++)
                masked.bytes[bit / 8] &= (uint8_t) ~(0x80u >> bit % 8);
        return lkg_ip_is_v4(&masked);
}

bool lkg_cidr_dual_stack(const struct lkg_cidr *a, const struct lkg_cidr *b)
{
        return is_v4_network(a) != is_v4_network(b);
}

/* ---- host and port ---- */

/*
 * Take the host in brackets; @ret_rest: the text after them.
 * Return: NULL, or the mistake.
 */
static const char *split_brackets(struct lkg_span all, struct lkg_span *ret_host, struct lkg_span *ret_rest)
{
        struct lkg_span rest;

        if (!lkg_span_cut(lkg_span(all.data + 1, all.size - 1), ']', ret_host, &rest))
                return "a [ without ]";
        if (rest.size == 0 || *rest.data != ':')
                return "no port behind ]";
        *ret_rest = lkg_span(rest.data + 1, rest.size - 1);
        if (memchr(ret_rest->data, ':', ret_rest->size))
                return "too many colons";
        return NULL;
}

static const char *split_host_port(struct lkg_span all, struct lkg_span *ret_host, struct lkg_span *ret_port)
{
        const char *wrong;

        if (lkg_span_count(all, ':') == 0)
                return "no port";
        if (*all.data == '[') {
                wrong = split_brackets(all, ret_host, ret_port);
                if (wrong)
                        return wrong;
        } else {
                if (lkg_span_count(all, ':') > 1)
                        return "too many colons: an IPv6 address goes in brackets";
                (void)lkg_span_cut(all, ':', ret_host, ret_port);
                if (memchr(ret_host->data, ']', ret_host->size))
                        return "misplaced ]";
        }
        if (memchr(ret_host->data, '[', ret_host->size) || memchr(ret_port->data, '[', ret_port->size))
                return "misplaced [";
        return memchr(ret_port->data, ']', ret_port->size) ? "misplaced ]" : NULL;
}

int lkg_host_port_split(const char *text, size_t size, struct lkg_span *ret_host, struct lkg_span *ret_port,
                        char *reason)
{
        struct lkg_span host = { "", 0 }, port = { "", 0 };
        const char *wrong = size > 0 ? split_host_port(lkg_span(text, size), &host, &port) : "empty";

        if (wrong)
                return lkg_refuse(reason, "%s; want IP:port, such as 10.0.0.1:10256 or [::]:10256", wrong);
        *ret_host = host;
        *ret_port = port;
        return 0;
}

int lkg_host_port_check(const char *text, size_t size, char *reason)
{
        struct lkg_span host, port;
        struct lkg_ip ip;
        int64_t n;
        int r;

        r = lkg_host_port_split(text, size, &host, &port, reason);
        if (r == 0)
                r = lkg_ip_parse(host.data, host.size, &ip, reason);
        if (r < 0)
                return r;
        if (lkg_int_parse(port.data, port.size, 10, 64, &n, NULL) < 0 || n < 1 || n > 65535)
                return lkg_refuse(reason, "%s is not a port; want 1 to 65535", LKG_PIECE(port));
        return 0;
}

int lkg_host_port_complete(const char *text, size_t size)
{
        struct lkg_span host, port;
        struct lkg_ip ip;

        if (lkg_host_port_split(text, size, &host, &port, NULL) == 0 ||
            lkg_ip_parse(text, size, &ip, NULL) < 0)
                return 0;
        return memchr(text, ':', size) ? 2 : 1;
}

static int check_port(struct lkg_span port, char *reason)
{
        uint64_t n;

        if (lkg_uint_parse(port.data, port.size, 10, 16, &n, NULL) == 0)
                return 0;
        return lkg_refuse(reason, "%s is not a port; want 0 to 65535", LKG_PIECE(port));
}

/* ---- flags ---- */

int lkg_ip_flag(const char *text, size_t size, char *reason)
{
        struct lkg_ip ip;
        int r;

        if (size == 0)
                return 0;
        r = lkg_ip_parse(text, size, &ip, reason);
        return r < 0 ? r : 1;
}

int lkg_ip_port_flag(const char *text, size_t size, char *reason)
{
        struct lkg_span host, port;
        struct lkg_ip ip;
        int r;

        if (size == 0)
                return 0;
        if (lkg_ip_parse(text, size, &ip, NULL) == 0)
                return 1;
        r = lkg_host_port_split(text, size, &host, &port, reason);
        if (r == 0)
                r = lkg_ip_parse(host.data, host.size, &ip, reason);
        if (r == 0)
                r = check_port(port, reason);
        return r < 0 ? r : 1;
}
