/* SPDX-License-Identifier: Apache-2.0 */
#include "endpoint.h"

#include <arpa/inet.h>
#include <ctype.h>

#define HOST_MAX 253u

/* A URL split into parts; missing parts have data NULL. */
struct url {
        struct lkg_span scheme, userinfo, host, port, path;
        bool bracketed; /* host: an IPv6 address */
};

static bool in_set(char c, const char *set)
{
        return c && strchr(set, c);
}

static bool is_alnum(char c)
{
        return isalnum((unsigned char)c);
}

static int judge_ipv6(struct lkg_span text, char *reason)
{
        char buf[INET6_ADDRSTRLEN];
        struct in6_addr address;

        if (text.size < sizeof(buf)) {
                memcpy(buf, text.data, text.size);
                buf[text.size] = '\0';
                if (strlen(buf) == text.size && inet_pton(AF_INET6, buf, &address) == 1)
                        return 0;
        }
        return lkg_refuse(reason, "what stands in brackets is not an IPv6 address");
}

static int judge_name(struct lkg_span text, char *reason)
{
        if (text.size == 0)
                return lkg_refuse(reason, "the host is missing");
        if (text.size > HOST_MAX)
                return lkg_refuse(reason, "a host name has at most %u characters", HOST_MAX);
        for (size_t i = 0; i < text.size; i++)
                if (!is_alnum(text.data[i]) && !in_set(text.data[i], "-._"))
                        return lkg_refuse(reason, "a host name consists of letters, digits, '-' and '.'; an "
                                                  "IPv6 address stands in brackets");
        return 0;
}

int lkg_endpoint_host(struct lkg_span text, char *reason)
{
        if (judge_ipv6(text, NULL) == 0 || judge_name(text, NULL) == 0)
                return 0;
        return lkg_refuse(reason,
                          "want a host name (letters, digits, '-' and '.') or an address without brackets");
}

int lkg_endpoint_port(struct lkg_span text, char *reason)
{
        unsigned port = 0;

        for (size_t i = 0; i < text.size && port <= 65535; i++)
                port = in_set(text.data[i], "0123456789") ? 10 * port + (unsigned)(text.data[i] - '0')
                                                          : UINT16_MAX + 1u;
        return port > 0 && port <= 65535 ? 0 : lkg_refuse(reason, "a port is a number from 1 to 65535");
}

/* Segments as in RFC 3986; `.` and `..` are refused, because libraries resolve them differently. */
static int judge_path(struct lkg_span path, char *reason)
{
        struct lkg_span rest = path, part;

        for (size_t i = 0; i < path.size; i++) {
                char c = path.data[i];
                bool escape = c == '%' && i + 2 < path.size && isxdigit((unsigned char)path.data[i + 1]) &&
                              isxdigit((unsigned char)path.data[i + 2]);

                if (!escape && !is_alnum(c) && !in_set(c, "/-._~!$&'()*+,;=:@"))
                        return lkg_refuse(reason, "the path has a character that belongs escaped as %%XX");
        }
        while (lkg_span_next(&rest, '/', &part))
                if (lkg_span_is(part, ".") || lkg_span_is(part, ".."))
                        return lkg_refuse(reason, "the path must not have . or .. in it");
        return 0;
}

/* HOST[:PORT] */
static int split_host(struct lkg_span text, struct url *url, char *reason)
{
        struct lkg_span port = { 0 };

        if (text.size > 0 && text.data[0] == '[') {
                struct lkg_span inside = lkg_span(text.data + 1, text.size - 1), after;

                if (!lkg_span_cut(inside, ']', &url->host, &after) || (after.size && after.data[0] != ':'))
                        return lkg_refuse(reason, "want [IPV6-ADDRESS] or [IPV6-ADDRESS]:PORT");
                url->bracketed = true;
                if (after.size > 0)
                        port = lkg_span(after.data + 1, after.size - 1);
        } else if (!lkg_span_cut(text, ':', &url->host, &port)) {
                port = (struct lkg_span){ 0 };
        }
        url->port = port.size > 0 ? port : (struct lkg_span){ 0 }; /* `host:` is `host`, RFC 3986 */
        if (url->port.size > 0 && lkg_endpoint_port(url->port, reason) < 0)
                return -EINVAL;
        return url->bracketed ? judge_ipv6(url->host, reason) : judge_name(url->host, reason);
}

static int split(struct lkg_span text, struct url *ret, char *reason)
{
        const char *colon = memmem(text.data, text.size, "://", 3);
        struct url url = { 0 };
        struct lkg_span rest;
        size_t n = 0, at = SIZE_MAX;

        for (size_t i = 0; i < text.size; i++)
                if ((unsigned char)text.data[i] <= ' ' || (unsigned char)text.data[i] >= 0x7f ||
                    text.data[i] == '\\')
                        return lkg_refuse(
                                reason,
                                "it has a blank, a backslash, a control character or one that is not ASCII");
        if (!colon)
                return lkg_refuse(reason, "it does not begin with a scheme");
        url.scheme = lkg_span(text.data, (size_t)(colon - text.data));
        rest = lkg_span(colon + 3, text.size - url.scheme.size - 3);
        if (memchr(rest.data, '?', rest.size) || memchr(rest.data, '#', rest.size))
                return lkg_refuse(reason, "it must not have a query (?) or a fragment (#)");
        while (n < rest.size && rest.data[n] != '/') {
                if (rest.data[n] == '@')
                        at = n;
                n++;
        }
        url.path = lkg_span(rest.data + n, rest.size - n);
        rest.size = n;
        if (at != SIZE_MAX) {
                url.userinfo = lkg_span(rest.data, at);
                rest = lkg_span(rest.data + at + 1, rest.size - at - 1);
        }
        if (judge_path(url.path, reason) < 0 || split_host(rest, &url, reason) < 0)
                return -EINVAL;
        while (url.path.size > 0 && url.path.data[url.path.size - 1] == '/')
                url.path.size--;
        *ret = url;
        return 0;
}

static bool scheme_is(struct lkg_span scheme, const char *want)
{
        return scheme.size == strlen(want) && strncasecmp(scheme.data, want, scheme.size) == 0;
}

static char *join(const struct url *url, const char *scheme)
{
        return lkg_format("%s://%.*s%s%s%.*s%s%s%.*s%.*s", scheme, (int)url->userinfo.size,
                          url->userinfo.data ? url->userinfo.data : "", url->userinfo.data ? "@" : "",
                          url->bracketed ? "[" : "", (int)url->host.size, url->host.data,
                          url->bracketed ? "]" : "", url->port.size ? ":" : "", (int)url->port.size,
                          url->port.size ? url->port.data : "", (int)url->path.size, url->path.data);
}

int lkg_endpoint_server(struct lkg_span text, char **ret, char *reason)
{
        struct url url;

        if (split(text, &url, reason) < 0)
                return -EINVAL;
        if (!scheme_is(url.scheme, "https"))
                return lkg_refuse(reason, "nothing but https is spoken");
        if (url.userinfo.data)
                return lkg_refuse(reason, "user and password belong into the fields of the user");
        *ret = join(&url, "https");
        return 0;
}

int lkg_endpoint_proxy(struct lkg_span text, char **ret, char *reason)
{
        static const struct {
                const char *scheme, *curl;
        } schemes[] = { { "http", "http" }, { "https", "https" }, { "socks5", "socks5h" } };
        struct url url;

        if (split(text, &url, reason) < 0)
                return -EINVAL;
        if (url.path.size > 0)
                return lkg_refuse(reason, "the URL of a proxy has no path");
        for (size_t i = 0; i < LKG_ARRAY_SIZE(schemes); i++)
                if (scheme_is(url.scheme, schemes[i].scheme)) {
                        *ret = join(&url, schemes[i].curl);
                        return 0;
                }
        return lkg_refuse(reason, "a proxy is http, https or socks5");
}
