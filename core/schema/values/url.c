/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Checks only the parts that can fail: control characters, the scheme, userinfo, the host, percent escapes of
 * the path and of the fragment. A query is never refused.
 */
#include <ctype.h>

#include "values.h"

/* The parts of a URL in which percent escapes have a different meaning. */
enum url_part { PART_ANY, PART_HOST, PART_ZONE };

/*
 * Characters that need no escape in a host or zone: reserved, unreserved, and a few more.
 */
static bool host_byte(unsigned char c)
{
        return c >= 0x80 || isalnum(c) || (c && strchr("-_.~!$&'()*+,;=:[]<>\"", c));
}

/* Return the byte of `%XX` at @p if it is allowed there; -1: invalid. */
static int escaped(const char *p, const char *end, enum url_part part)
{
        int high, low, c;

        if (end - p < 3)
                return -1;
        high = lkg_hex_digit(p[1]);
        low = lkg_hex_digit(p[2]);
        if (high < 0 || low < 0)
                return -1;
        c = high << 4 | low;
        if (part == PART_ANY || c == '%')
                return c;
        if (part == PART_HOST) /* in a host, only bytes above ASCII may be escaped */
                return c < 0x80 ? -1 : c;
        return c == ' ' || (c < 0x80 ? host_byte((unsigned char)c) : false) ? c : -1;
}

static const char *check_escapes(struct lkg_span s, enum url_part part)
{
        const char *end = s.data + s.size;

        for (const char *p = s.data; p < end; p++) {
                if (*p == '%') {
                        if (escaped(p, end, part) < 0)
                                return "a percent sign that begins no valid escape";
                        p += 2;
                } else if (part != PART_ANY && !host_byte((unsigned char)*p)) {
                        return "a character that does not belong into a host";
                }
        }
        return NULL;
}

/* Empty, or a colon and digits. */
static bool optional_port(struct lkg_span s)
{
        if (s.size == 0)
                return true;
        if (*s.data != ':')
                return false;
        for (size_t i = 1; i < s.size; i++) {
                if (!isdigit((unsigned char)s.data[i]))
                        return false;
        }
        return true;
}

/*
 * `[fd00::1%25eth0]:80`. The zone after %25 may have escapes, the address may not.
 */
static const char *check_literal(struct lkg_span host)
{
        const char *close = memrchr(host.data, ']', host.size), *zone, *wrong;
        struct lkg_span name;
        size_t n;

        if (!close)
                return "a [ without ]";
        if (!optional_port(lkg_span(close + 1, (size_t)(host.data + host.size - close - 1))))
                return "no port number behind ]";
        name = lkg_span(host.data + 1, (size_t)(close - host.data - 1));
        zone = memmem(name.data, name.size, "%25", 3);
        n = zone ? (size_t)(zone - name.data) : name.size;
        wrong = zone ? check_escapes(lkg_span(zone, name.size - n), PART_ZONE) : NULL;
        if (wrong)
                return wrong;
        if (!memchr(name.data, ':', n) || !lkg_ip_is_strict(name.data, n) || (zone && name.size - n == 3))
                return "no IPv6 address in the brackets";
        return NULL;
}

static const char *check_host(struct lkg_span host, bool http)
{
        const char *colon;

        if (memrchr(host.data, '[', host.size))
                return *host.data == '[' && memrchr(host.data, '[', host.size) == host.data
                               ? check_literal(host)
                               : "a misplaced [";
        /* Only http and https are strict about a second colon. */
        colon = http ? memchr(host.data, ':', host.size) : memrchr(host.data, ':', host.size);
        if (colon && !optional_port(lkg_span(colon, (size_t)(host.data + host.size - colon))))
                return "no port number behind the host";
        return check_escapes(host, PART_HOST);
}

static const char *check_userinfo(struct lkg_span user)
{
        for (size_t i = 0; i < user.size; i++) {
                unsigned char c = (unsigned char)user.data[i];

                if (!isalnum(c) && (!c || !strchr("-._:~!$&'()*+,;=%@", c)))
                        return "a character that does not belong into userinfo";
        }
        return check_escapes(user, PART_ANY);
}

static const char *check_authority(struct lkg_span authority, bool http)
{
        const char *sign = memrchr(authority.data, '@', authority.size), *wrong;
        struct lkg_span host = authority;

        if (sign)
                host = lkg_span(sign + 1, (size_t)(authority.data + authority.size - sign - 1));
        wrong = check_host(host, http);
        if (wrong || !sign)
                return wrong;
        return check_userinfo(lkg_span(authority.data, (size_t)(sign - authority.data)));
}

/*
 * Take `scheme:` off @rest.
 * Return: NULL, or the mistake.
 */
static const char *take_scheme(struct lkg_span *rest, struct lkg_span *ret)
{
        *ret = lkg_span(rest->data, 0);
        for (size_t i = 0; i < rest->size; i++) {
                unsigned char c = (unsigned char)rest->data[i];

                if (c == ':') {
                        *ret = lkg_span(rest->data, i);
                        *rest = lkg_span(rest->data + i + 1, rest->size - i - 1);
                        return i == 0 ? "no scheme before the colon" : NULL;
                }
                if (!isalpha(c) && (i == 0 || (!isdigit(c) && c != '+' && c != '-' && c != '.')))
                        return NULL;
        }
        return NULL;
}

static bool is_http(struct lkg_span scheme)
{
        return (scheme.size == 4 && strncasecmp(scheme.data, "http", 4) == 0) ||
               (scheme.size == 5 && strncasecmp(scheme.data, "https", 5) == 0);
}

/* Check everything except the fragment. */
static const char *check_url(struct lkg_span rest, struct lkg_span *ret_scheme)
{
        struct lkg_span query, authority, path;
        const char *wrong;

        for (size_t i = 0; i < rest.size; i++) {
                if ((unsigned char)rest.data[i] < ' ' || rest.data[i] == 0x7f)
                        return "a control character";
        }
        wrong = take_scheme(&rest, ret_scheme);
        if (wrong)
                return wrong;
        (void)lkg_span_cut(rest, '?', &rest, &query);
        if (rest.size == 0 || *rest.data != '/') {
                if (ret_scheme->size > 0)
                        return NULL; /* `mailto:x`: opaque */
                (void)lkg_span_cut(rest, '/', &authority, &path);
                if (memchr(authority.data, ':', authority.size))
                        return "a colon in the first part of a relative path";
                return check_escapes(rest, PART_ANY);
        }
        if (rest.size >= 2 && rest.data[1] == '/' &&
            (ret_scheme->size > 0 || rest.size < 3 || rest.data[2] != '/')) {
                const char *slash;

                rest = lkg_span(rest.data + 2, rest.size - 2);
                slash = memchr(rest.data, '/', rest.size);
                authority = lkg_span(rest.data, slash ? (size_t)(slash - rest.data) : rest.size);
                wrong = check_authority(authority, is_http(*ret_scheme));
                if (wrong)
                        return wrong;
                rest = lkg_span(rest.data + authority.size, rest.size - authority.size);
        }
        return check_escapes(rest, PART_ANY);
}

int lkg_url_parse(const char *text, size_t size, struct lkg_span *ret_scheme, char *reason)
{
        struct lkg_span url, fragment, scheme = { text, 0 };
        const char *wrong;

        (void)lkg_span_cut(lkg_span(text, size), '#', &url, &fragment);
        wrong = check_url(url, &scheme);
        if (!wrong)
                wrong = check_escapes(fragment, PART_ANY);
        if (wrong)
                return lkg_refuse(reason, "not a URL: it has %s", wrong);
        if (ret_scheme)
                *ret_scheme = scheme;
        return 0;
}

int lkg_url_trace_endpoint(const char *text, size_t size, char *reason)
{
        static const char *const schemes[] = { "dns", "unix", "unix-abstract" };
        LKG_CLEANUP(lkg_freep) char *dns = NULL;
        struct lkg_span scheme;
        int r;

        if (!memmem(text, size, "//", 2)) {
                dns = lkg_must(malloc(size + 6));
                memcpy(dns, "dns://", 6);
                memcpy(dns + 6, text, size);
                text = dns;
                size += 6;
        }
        r = lkg_url_parse(text, size, &scheme, reason);
        if (r < 0)
                return r;
        for (size_t i = 0; i < LKG_ARRAY_SIZE(schemes); i++) {
                if (scheme.size == strlen(schemes[i]) &&
                    strncasecmp(scheme.data, schemes[i], scheme.size) == 0)
                        return 0;
        }
        return lkg_refuse(reason, "unsupported scheme; want host:port, dns, unix or unix-abstract, such as "
                                  "localhost:4317 or unix:///run/otel.sock");
}
