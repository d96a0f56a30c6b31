/* SPDX-License-Identifier: Apache-2.0 */
/* What a remote configuration may not set, and what it may set to the base's value only. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <strings.h>

#include <cmocka.h>

#include <lkg/buf.h>
#include <lkg/decode.h>

#include "core/state/guard.h"

static struct lkg_value *value_of(const char *text)
{
        struct lkg_report report = LKG_REPORT_INIT;
        struct lkg_source *source = lkg_source_new("remote", "cm");
        struct lkg_value *value = NULL;

        if (lkg_decode(text, strlen(text), lkg_detect_format(text, strlen(text)), 0, source, &report,
                       &value) < 0)
                fail_msg("%s", text);
        lkg_source_unref(source);
        lkg_report_deinit(&report);
        return value;
}

/* Findings of @guard as one text; the caller frees it. */
static char *findings(const struct lkg_guard *guard, const char *remote, const char *base,
                      bool (*is_path)(const char *field, void *userdata))
{
        LKG_CLEANUP(lkg_report_deinit) struct lkg_report report = LKG_REPORT_INIT;
        LKG_CLEANUP(lkg_value_unrefp) struct lkg_value *r = value_of(remote);
        LKG_CLEANUP(lkg_value_unrefp) struct lkg_value *b = base ? value_of(base) : NULL;
        int n = lkg_guard_check(guard, r, b, is_path, NULL, &report);

        assert_int_equal(n, report.n_findings);
        assert_int_equal(n, report.n_severity[LKG_ERROR]);
        return lkg_report_format(&report, NULL);
}

static void assert_findings(const struct lkg_guard *guard, const char *remote, const char *base,
                            const char *want)
{
        char *text = findings(guard, remote, base, NULL);

        assert_string_equal(text, want);
        free(text);
}

#define DENIED(place, field, rule)                                                                       \
        "cm:" place ": error: " field ": a remote configuration may not set this field here (" rule ") " \
        "[LKG6002]\n"
#define PINNED(place, field, rule)                                             \
        "cm:" place ": error: " field                                          \
        ": pinned to the value of the base, and the remote configuration has " \
        "another one (guard.pinned: " rule ") [LKG6003]\n"
#define UNSET(place, field, rule)                                                                 \
        "cm:" place ": error: " field ": pinned to the value of the base, which does not set it " \
        "(guard.pinned: " rule ") [LKG6003]\n"

static void test_denied_fields(void **state)
{
        static const char *const deny[] = { "authentication.anonymous.enabled", "staticPod*", "a.b",
                                            "list.x" };
        const struct lkg_guard guard = { .deny = deny, .n_deny = LKG_ARRAY_SIZE(deny) };
        static const struct {
                const char *remote, *want;
        } rows[] = {
                { "{}", "" },
                { "maxPods: 5\n", "" },
                { "authentication:\n  anonymous:\n    enabled: true\n",
                  DENIED("3:14", "authentication.anonymous.enabled",
                         "guard.deny: authentication.anonymous.enabled") },
                { "authentication:\n  anonymous: {}\n  x509: {enabled: 1}\n", "" },
                { "staticPodPath: /etc\nstaticPodURL: ''\nstaticPo: 1\nxstaticPod: 1\n",
                  DENIED("1:16", "staticPodPath", "guard.deny: staticPod*")
                          DENIED("2:15", "staticPodURL", "guard.deny: staticPod*") },
                { "staticPod: 1\n", DENIED("1:12", "staticPod", "guard.deny: staticPod*") },
                { "a: {b: {c: 1, d: 2}}\n", DENIED("1:8", "a.b", "guard.deny: a.b") },
                { "a: {b: null}\n", DENIED("1:8", "a.b", "guard.deny: a.b") },
                { "a.b: 1\n", "" }, /* one name */
                { "x: {a: {b: 1}}\n", "" },
                { "list: [{x: 1}, {y: 1}, {x: 2}]\n",
                  DENIED("1:12", "list[].x", "guard.deny: list.x")
                          DENIED("1:28", "list[].x", "guard.deny: list.x") },
        };

        (void)state;
        for (size_t i = 0; i < LKG_ARRAY_SIZE(rows); i++)
                assert_findings(&guard, rows[i].remote, NULL, rows[i].want);
}

static void test_names_match_in_any_case(void **state)
{
        static const char *const deny[] = { "staticPod*", "tlsMinVersion", "kind" };
        const struct lkg_guard guard = { .deny = deny, .n_deny = LKG_ARRAY_SIZE(deny) };
        /* The component's decoder takes U+017F for s and U+212A for k. */
        static const char *const remotes[] = {
                "STATICPODPATH: x\n",
                "StaticPodPath: x\n",
                "\"\xc5\xbftaticPodPath\": x\n",
                "TLSMINVERSION: x\n",
                "\"tl\xc5\xbfMinVer\xc5\xbfion\": x\n",
                "\"\xe2\x84\xaaind\": x\n",
        };

        (void)state;
        for (size_t i = 0; i < LKG_ARRAY_SIZE(remotes); i++) {
                char *text = findings(&guard, remotes[i], NULL, NULL);

                if (!strstr(text, "[LKG6002]"))
                        fail_msg("%s passes", remotes[i]);
                free(text);
        }
}

static void test_prefix_of_a_field_does_not_cover_its_siblings(void **state)
{
        static const char *const deny[] = { "tls" };
        const struct lkg_guard guard = { .deny = deny, .n_deny = 1 };

        (void)state;
        assert_findings(&guard, "tlsCertFile: x\n", NULL, "");
        assert_findings(&guard, "tls: x\n", NULL, DENIED("1:6", "tls", "guard.deny: tls"));
}

static void test_pinned_fields(void **state)
{
        static const char *const pinned[] = { "maxPods", "authentication", "clusterDNS", "featureGates",
                                              "f" };
        const struct lkg_guard guard = { .pinned = pinned, .n_pinned = LKG_ARRAY_SIZE(pinned) };
        static const char base[] =
                "maxPods: 110\nauthentication:\n  anonymous: {enabled: false}\n  webhook: {}\n"
                "clusterDNS: [10.0.0.1, 10.0.0.2]\nf: 1.5\n";
        static const struct {
                const char *remote, *want;
        } rows[] = {
                { "{}", "" },
                { "maxPods: 110\n", "" },
                { "MAXPODS: 110\n", "" },
                { "{\"maxPods\":110.0,\"f\":15e-1}", "" },
                { "maxPods: 111\n", PINNED("1:10", "maxPods", "maxPods") },
                { "maxPods: '110'\n", PINNED("1:10", "maxPods", "maxPods") },
                { "maxPods: null\n", PINNED("1:10", "maxPods", "maxPods") },
                { "maxPods: 110\nMaxPods: 5\n", PINNED("2:10", "MaxPods", "maxPods") },
                { "authentication: {anonymous: {enabled: false}}\n", "" },
                { "authentication: {Anonymous: {Enabled: false}}\n", "" },
                { "authentication: {}\n", "" },
                { "authentication: {anonymous: {enabled: true}, webhook: {cacheTTL: 1s}}\n",
                  PINNED("1:39", "authentication.anonymous.enabled", "authentication")
                          UNSET("1:66", "authentication.webhook.cacheTTL", "authentication") },
                { "authentication: null\n", PINNED("1:17", "authentication", "authentication") },
                { "authentication: {anonymous: {enabled: false}, anonymouS: {enabled: true}}\n",
                  PINNED("1:68", "authentication.anonymouS.enabled", "authentication") },
                { "clusterDNS: [10.0.0.1, 10.0.0.2]\n", "" },
                { "clusterDNS: [10.0.0.2, 10.0.0.1]\n", PINNED("1:13", "clusterDNS", "clusterDNS") },
                { "clusterDNS: [10.0.0.1]\n", PINNED("1:13", "clusterDNS", "clusterDNS") },
                { "featureGates: {A: true}\n", UNSET("1:15", "featureGates", "featureGates") },
        };

        (void)state;
        for (size_t i = 0; i < LKG_ARRAY_SIZE(rows); i++)
                assert_findings(&guard, rows[i].remote, base, rows[i].want);
        assert_findings(&guard, "maxPods: 110\n", NULL, UNSET("1:10", "maxPods", "maxPods"));
}

static void test_large_numbers_are_not_rounded(void **state)
{
        static const char *const pinned[] = { "n" };
        const struct lkg_guard guard = { .pinned = pinned, .n_pinned = 1 };

        (void)state;
        assert_findings(&guard, "{\"n\":9007199254740993}", "{\"n\":9007199254740992}",
                        PINNED("1:6", "n", "n"));
        assert_findings(&guard, "{\"n\":[1.0,{\"a\":2}]}", "{\"n\":[1,{\"a\":2.0}]}", "");
}

static void test_values_are_never_shown(void **state)
{
        static const char *const rules[] = { "staticPodURLHeader" };
        const struct lkg_guard deny = { .deny = rules, .n_deny = 1 },
                               pin = { .pinned = rules, .n_pinned = 1 };
        static const char remote[] = "staticPodURLHeader: {X: [hunter2]}\n";
        const struct lkg_guard *const guards[] = { &deny, &pin };

        (void)state;
        for (size_t i = 0; i < LKG_ARRAY_SIZE(guards); i++) {
                char *text = findings(guards[i], remote, "staticPodURLHeader: {X: [swordfish]}\n", NULL);

                assert_true(*text);
                assert_null(strstr(text, "hunter2"));
                assert_null(strstr(text, "swordfish"));
                free(text);
        }
}

static void test_hardened_profile(void **state)
{
        static const char *const denied[] = {
                "staticPodPath",
                "staticPodURL",
                "staticPodURLHeader",
                "authentication",
                "authorization",
                "tlsCertFile",
                "tlsPrivateKeyFile",
                "tlsMinVersion",
                "tlsCipherSuites",
                "tlsCurvePreferences",
                "address",
                "port",
                "readOnlyPort",
                "healthzBindAddress",
                "healthzPort",
                "enableServer",
                "rotateCertificates",
                "serverTLSBootstrap",
                "volumePluginDir",
                "podLogsDir",
                "containerRuntimeEndpoint",
                "imageServiceEndpoint",
                "allowedUnsafeSysctls",
                "enableDebuggingHandlers",
                "bindAddress",
                "metricsBindAddress",
                "ReadOnlyPort",
        };
        static const char *const allowed[] = {
                "kind",         "apiVersion",       "maxPods",    "evictionHard",
                "featureGates", "clusterDNS",       "providerID", "registerWithTaints",
                "logging",      "crashLoopBackOff", "addressX",   "transport",
        };
        const struct lkg_guard hardened = { .hardened = true }, none = { .hardened = false };
        char remote[64];

        (void)state;
        for (size_t i = 0; i < LKG_ARRAY_SIZE(denied); i++) {
                char *text;

                (void)snprintf(remote, sizeof(remote), "{\"%s\":null}", denied[i]);
                text = findings(&hardened, remote, NULL, NULL);
                if (!strstr(text, denied[i]) || !strstr(text, "guard.profile hardened: "))
                        fail_msg("%s: %s", denied[i], text);
                free(text);
                assert_findings(&none, remote, NULL, "");
        }
        for (size_t i = 0; i < LKG_ARRAY_SIZE(allowed); i++) {
                (void)snprintf(remote, sizeof(remote), "{\"%s\":null}", allowed[i]);
                assert_findings(&hardened, remote, NULL, "");
        }
        for (const struct lkg_guard_field *f = lkg_guard_hardened; f->field; f++)
                assert_true(f->why && strlen(f->field) + strlen(f->why) < 150);
}

static bool is_path(const char *field, void *userdata)
{
        (void)userdata;
        return strcasecmp(field, "resolvConf") == 0 || strcmp(field, "x.file") == 0 ||
               strcmp(field, "items[].file") == 0;
}

static void test_fields_that_name_files(void **state)
{
        const struct lkg_guard hardened = { .hardened = true }, none = { .hardened = false };
        static const char remote[] = "ResolvConf: /x\nx: {file: a, y: b}\nitems: [{file: c}, {other: d}]\n";
        char *text = findings(&hardened, remote, NULL, is_path);

        (void)state;
        assert_string_equal(
                text,
                DENIED("1:13", "ResolvConf", "guard.profile hardened: it names a file of the node") DENIED(
                        "3:16", "items[].file", "guard.profile hardened: it names a file of the node")
                        DENIED("2:11", "x.file", "guard.profile hardened: it names a file of the node"));
        free(text);
        text = findings(&none, remote, NULL, is_path);
        assert_string_equal(text, "");
        free(text);
}

static void test_a_denial_comes_before_a_pin(void **state)
{
        static const char *const rules[] = { "a" };
        const struct lkg_guard guard = { .deny = rules, .n_deny = 1, .pinned = rules, .n_pinned = 1 };

        (void)state;
        assert_findings(&guard, "a: 1\n", "a: 1\n", DENIED("1:4", "a", "guard.deny: a"));
}

static void test_what_is_too_deep_is_refused(void **state)
{
        static const char *const rules[] = { "a" };
        const struct lkg_guard guard = { .deny = rules, .n_deny = 1 },
                               pin = { .pinned = rules, .n_pinned = 1 };
        LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf lists = LKG_BUF_INIT, maps = LKG_BUF_INIT;
        char *text;

        (void)state;
        lkg_buf_puts(&lists, "{\"x\":");
        for (size_t i = 0; i < 5000; i++)
                lkg_buf_putc(&lists, '[');
        for (size_t i = 0; i < 5000; i++)
                lkg_buf_putc(&lists, ']');
        lkg_buf_puts(&lists, "}");
        text = findings(&guard, lists.data, NULL, NULL);
        assert_non_null(strstr(text, "nested too deep to be judged"));
        free(text);
        for (size_t i = 0; i < 5000; i++)
                lkg_buf_puts(&maps, "{\"a\":");
        lkg_buf_puts(&maps, "1");
        for (size_t i = 0; i < 5000; i++)
                lkg_buf_puts(&maps, "}");
        text = findings(&pin, maps.data, maps.data, NULL);
        assert_string_equal(text, "");
        free(text);
        text = findings(&pin, maps.data, "{\"a\":{\"a\":{}}}", NULL);
        assert_true(*text);
        free(text);
}

static void test_strange_names_are_quoted(void **state)
{
        static const char *const rules[] = { "a*" };
        const struct lkg_guard guard = { .deny = rules, .n_deny = 1 };

        (void)state;
        assert_findings(&guard, "{\"a\\u001b[2Jx\":1}", NULL,
                        DENIED("1:16", "\"a\\x1b[2Jx\"", "guard.deny: a*"));
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_denied_fields),
                cmocka_unit_test(test_names_match_in_any_case),
                cmocka_unit_test(test_prefix_of_a_field_does_not_cover_its_siblings),
                cmocka_unit_test(test_pinned_fields),
                cmocka_unit_test(test_large_numbers_are_not_rounded),
                cmocka_unit_test(test_values_are_never_shown),
                cmocka_unit_test(test_hardened_profile),
                cmocka_unit_test(test_fields_that_name_files),
                cmocka_unit_test(test_a_denial_comes_before_a_pin),
                cmocka_unit_test(test_what_is_too_deep_is_refused),
                cmocka_unit_test(test_strange_names_are_quoted),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
