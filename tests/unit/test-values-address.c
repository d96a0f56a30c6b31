/* SPDX-License-Identifier: Apache-2.0 */
/* Addresses, networks, ports, URLs. */

#include <arpa/inet.h>

#include "unit.h"
#include "core/schema/values/values.h"

static char reason[LKG_REFUSAL_MAX];

TEST(test_ip)
{
        static const struct {
                const char *text;
                const char *same; /* as inet_pton reads it; NULL: refused */
                bool v4;
        } cases[] = {
                { "10.0.0.1", "::ffff:10.0.0.1", true },
                { "010.000.0.01", "::ffff:10.0.0.1", true }, /* decimal, not octal */
                { "::ffff:10.0.0.1", "::ffff:10.0.0.1", true },
                { "::", "::", false },
                { "::1", "::1", false },
                { "1::", "1::", false },
                { "1:2:3:4:5:6:7:8", "1:2:3:4:5:6:7:8", false },
                { "1:2:3:4:5:6:7::", "1:2:3:4:5:6:7:0", false },
                { "1:2:3:4:5:6:1.2.3.4", "1:2:3:4:5:6:1.2.3.4", false },
                { "00001::", "1::", false },
                { "FE80::a", "fe80::a", false },
                { "1:2:3:4:5:6:7:8::", NULL, false },
                { "1::2::3", NULL, false },
                { "1:2:3:4:5:6:7", NULL, false },
                { "1:2:3:4:5:6:7:8:9", NULL, false },
                { "1:2:3:4:5:6:7:1.2.3.4", NULL, false },
                { "10000::", NULL, false },
                { "1:", NULL, false },
                { ":", NULL, false },
                { "fe80::1%eth0", NULL, false },
                { "[::1]", NULL, false },
                { "256.0.0.1", NULL, false },
                { "1.2.3", NULL, false },
                { "1.2.3.4.5", NULL, false },
                { "1.2.3.4 ", NULL, false },
                { "localhost", NULL, false },
                { "", NULL, false },
        };

        for (size_t i = 0; i < LKG_ARRAY_SIZE(cases); i++) {
                struct lkg_ip ip, want;

                assert_int_equal(lkg_ip_parse(cases[i].text, strlen(cases[i].text), &ip, reason),
                                 cases[i].same ? 0 : -EINVAL);
                if (!cases[i].same)
                        continue;
                assert_int_equal(inet_pton(AF_INET6, cases[i].same, want.bytes), 1);
                assert_memory_equal(ip.bytes, want.bytes, 16);
                assert_int_equal(lkg_ip_is_v4(&ip), cases[i].v4);
        }
        assert_int_equal(lkg_ip_parse("1.2.3", 5, &(struct lkg_ip){ 0 }, reason), -EINVAL);
        assert_string_equal(
                reason, "\"1.2.3\" is not an IP address; want an IP address, such as 10.0.0.1 or fd00::1");
}

TEST(test_cidr)
{
        static const char *const wrong[] = { "10.0.0.0", "10.0.0.0/33", "fd00::/129",   "10.0.0.0/",
                                             "/8",       "10.0.0.0/-1", "10.0.0.0/8/8", "10.0.0.0/ 8" };
        struct lkg_cidr v4, v6, mapped;

        assert_int_equal(lkg_cidr_parse("10.1.0.0/08", 11, &v4, reason), 0);
        assert_int_equal(v4.prefix, 8);
        assert_true(v4.v4);
        assert_int_equal(lkg_cidr_parse("fd00::/48", 9, &v6, reason), 0);
        assert_false(v6.v4);
        assert_true(lkg_cidr_dual_stack(&v4, &v6));
        assert_false(lkg_cidr_dual_stack(&v4, &v4));
        assert_int_equal(lkg_cidr_parse("::ffff:10.0.0.0/104", 19, &mapped, reason), 0);
        assert_true(lkg_cidr_dual_stack(&mapped, &v6));
        assert_int_equal(lkg_cidr_parse("::ffff:10.0.0.0/64", 18, &mapped, reason), 0);
        assert_false(lkg_cidr_dual_stack(&mapped, &v6)); /* masked, nothing is left of it */
        for (size_t i = 0; i < LKG_ARRAY_SIZE(wrong); i++)
                assert_int_equal(lkg_cidr_parse(wrong[i], strlen(wrong[i]), &v4, reason), -EINVAL);
}

TEST(test_host_port)
{
        static const struct {
                const char *text, *host, *port; /* host NULL: refused */
                int check;
        } cases[] = {
                { "10.0.0.1:80", "10.0.0.1", "80", 0 },
                { "[::1]:80", "::1", "80", 0 },
                { "10.0.0.1:+080", "10.0.0.1", "+080", 0 },
                { "10.0.0.1:0", "10.0.0.1", "0", -EINVAL },
                { "10.0.0.1:65536", "10.0.0.1", "65536", -EINVAL },
                { "10.0.0.1:http", "10.0.0.1", "http", -EINVAL },
                { "10.0.0.1:", "10.0.0.1", "", -EINVAL },
                { "host:80", "host", "80", -EINVAL },
                { ":80", "", "80", -EINVAL },
                { "[]:80", "", "80", -EINVAL },
                { "10.0.0.1", NULL, NULL, -EINVAL },
                { "::1:80", NULL, NULL, -EINVAL },
                { "[::1]", NULL, NULL, -EINVAL },
                { "[::1]80", NULL, NULL, -EINVAL },
                { "[::1]:80:90", NULL, NULL, -EINVAL },
                { "[::1", NULL, NULL, -EINVAL },
                { "a]:80", NULL, NULL, -EINVAL },
                { "a[:80", NULL, NULL, -EINVAL },
                { "[[a]]:80", NULL, NULL, -EINVAL },
                { "[a]:8]0", NULL, NULL, -EINVAL },
                { "", NULL, NULL, -EINVAL },
        };

        for (size_t i = 0; i < LKG_ARRAY_SIZE(cases); i++) {
                size_t size = strlen(cases[i].text);
                struct lkg_span host, port;

                assert_int_equal(lkg_host_port_split(cases[i].text, size, &host, &port, reason),
                                 cases[i].host ? 0 : -EINVAL);
                if (cases[i].host) {
                        assert_true(lkg_span_is(host, cases[i].host));
                        assert_true(lkg_span_is(port, cases[i].port));
                }
                assert_int_equal(lkg_host_port_check(cases[i].text, size, reason), cases[i].check);
        }
}

TEST(test_host_port_complete)
{
        assert_int_equal(lkg_host_port_complete("10.0.0.1", 8), 1);
        assert_int_equal(lkg_host_port_complete("::", 2), 2);
        assert_int_equal(lkg_host_port_complete("::ffff:1.2.3.4", 14), 2);
        assert_int_equal(lkg_host_port_complete("10.0.0.1:1", 10), 0);
        assert_int_equal(lkg_host_port_complete("10.0.0.1:", 9), 0);
        assert_int_equal(lkg_host_port_complete("[::]", 4), 0);
        assert_int_equal(lkg_host_port_complete("host", 4), 0);
}

TEST(test_address_flags)
{
        assert_int_equal(lkg_ip_flag("", 0, reason), 0);
        assert_int_equal(lkg_ip_flag("::", 2, reason), 1);
        assert_int_equal(lkg_ip_flag("::1:80x", 7, reason), -EINVAL);
        assert_int_equal(lkg_ip_port_flag("", 0, reason), 0);
        assert_int_equal(lkg_ip_port_flag("::1", 3, reason), 1);
        assert_int_equal(lkg_ip_port_flag("[::1]:0", 7, reason), 1);
        assert_int_equal(lkg_ip_port_flag("[::1]:65535", 11, reason), 1);
        assert_int_equal(lkg_ip_port_flag("[::1]:65536", 11, reason), -EINVAL);
        assert_int_equal(lkg_ip_port_flag("[::1]:+1", 8, reason), -EINVAL);
}

TEST(test_url)
{
        static const char *const right[] = {
                "",
                "*",
                "a?b:c/d",
                "mailto:%zz",
                "///x:y",
                "http://[fe80::1%25eth0]:80/",
                "foo://a:1:2",
                "x://u:p@ss@h",
                "x://<h>\"",
                "http://a/b#c",
                "x://h%c3%a9",
                "x:?%zz",
                "http://u\303\251/",
        };
        static const struct {
                const char *text, *says;
        } wrong[] = {
                { ":a", "scheme" },
                { "1:2", "colon" },
                { "a b:c", "colon" },
                { "http://a\tb", "control character" },
                { "http://a/%zz", "percent" },
                { "#%z", "percent" },
                { "x://h%41", "percent" },
                { "x://a b", "host" },
                { "http://h:p", "port" },
                { "http://a:1:2", "port" },
                { "x://[::1", "[ without ]" },
                { "x://a[::1]", "misplaced [" },
                { "x://[1.2.3.4]", "IPv6" },
                { "x://[::1%25]", "IPv6" },
                { "x://[::01.2.3.4]", "IPv6" },
                { "x://[00001::]", "IPv6" },
                { "x://u v@h", "userinfo" },
                { "x://u%4:0@h", "percent" },
        };
        struct lkg_span scheme;

        for (size_t i = 0; i < LKG_ARRAY_SIZE(right); i++)
                assert_int_equal(lkg_url_parse(right[i], strlen(right[i]), NULL, reason), 0);
        for (size_t i = 0; i < LKG_ARRAY_SIZE(wrong); i++) {
                assert_int_equal(lkg_url_parse(wrong[i].text, strlen(wrong[i].text), &scheme, reason),
                                 -EINVAL);
                assert_non_null(strstr(reason, wrong[i].says));
        }
        assert_int_equal(lkg_url_parse("HTTPS://h", 9, &scheme, reason), 0);
        assert_true(lkg_span_is(scheme, "HTTPS"));
}

TEST(test_url_reason_has_no_userinfo)
{
        const char *url = "http://root:hunter2@host:port/";

        assert_int_equal(lkg_url_parse(url, strlen(url), NULL, reason), -EINVAL);
        assert_null(strstr(reason, "hunter2"));
}

TEST(test_trace_endpoint)
{
        static const char *const right[] = { "",
                                             "localhost:4317",
                                             "dns://8.8.8.8/otel:4317",
                                             "unix:///run/o.sock",
                                             "UNIX:///run/o.sock",
                                             "unix-abstract://x" };
        static const char *const wrong[] = { "unix:x", "http://localhost:4317", "localhost:port", "//host",
                                             "a b" };

        for (size_t i = 0; i < LKG_ARRAY_SIZE(right); i++)
                assert_int_equal(lkg_url_trace_endpoint(right[i], strlen(right[i]), reason), 0);
        for (size_t i = 0; i < LKG_ARRAY_SIZE(wrong); i++)
                assert_int_equal(lkg_url_trace_endpoint(wrong[i], strlen(wrong[i]), reason), -EINVAL);
}
