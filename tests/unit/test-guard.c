/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a remote configuration may not set, and what it may only set to the base's value.
 * Rule: docs/specification.md 4.13.
 */

#include <lkg/text.h>
#include <lkg/documents.h>
#include <lkg/objects.h>
#include <lkg/schema.h>

#include "unit.h"

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
static char *findings(const struct lkg_guard *guard, const char *remote, const char *base)
{
        LKG_CLEANUP(lkg_report_deinit) struct lkg_report report = LKG_REPORT_INIT;
        LKG_CLEANUP(lkg_value_unrefp) struct lkg_value *r = value_of(remote);
        LKG_CLEANUP(lkg_value_unrefp) struct lkg_value *b = base ? value_of(base) : NULL;
        int n = lkg_guard_check(guard, r, b, &report);

        assert_int_equal(n, report.n_findings);
        assert_int_equal(n, report.n_severity[LKG_ERROR]);
        return lkg_report_format(&report, NULL);
}

static void assert_findings(const struct lkg_guard *guard, const char *remote, const char *base,
                            const char *want)
{
        char *text = findings(guard, remote, base);

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

TEST(test_denied_fields)
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

        for (size_t i = 0; i < LKG_ARRAY_SIZE(rows); i++)
                assert_findings(&guard, rows[i].remote, NULL, rows[i].want);
}

TEST(test_names_match_in_any_case)
{
        static const char *const deny[] = { "staticPod*", "tlsMinVersion", "kind" };
        const struct lkg_guard guard = { .deny = deny, .n_deny = LKG_ARRAY_SIZE(deny) };
        /* The component's decoder accepts U+017F as s and U+212A as k. */
        static const char *const remotes[] = {
                "STATICPODPATH: x\n",
                "StaticPodPath: x\n",
                "\"\xc5\xbftaticPodPath\": x\n",
                "TLSMINVERSION: x\n",
                "\"tl\xc5\xbfMinVer\xc5\xbfion\": x\n",
                "\"\xe2\x84\xaaind\": x\n",
        };

        for (size_t i = 0; i < LKG_ARRAY_SIZE(remotes); i++) {
                char *text = findings(&guard, remotes[i], NULL);

                if (!strstr(text, "[LKG6002]"))
                        fail_msg("%s passes", remotes[i]);
                free(text);
        }
}

TEST(test_prefix_of_a_field_does_not_cover_its_siblings)
{
        static const char *const deny[] = { "tls" };
        const struct lkg_guard guard = { .deny = deny, .n_deny = 1 };

        assert_findings(&guard, "tlsCertFile: x\n", NULL, "");
        assert_findings(&guard, "tls: x\n", NULL, DENIED("1:6", "tls", "guard.deny: tls"));
}

TEST(test_pinned_fields)
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

        for (size_t i = 0; i < LKG_ARRAY_SIZE(rows); i++)
                assert_findings(&guard, rows[i].remote, base, rows[i].want);
        assert_findings(&guard, "maxPods: 110\n", NULL, UNSET("1:10", "maxPods", "maxPods"));
}

TEST(test_large_numbers_are_not_rounded)
{
        static const char *const pinned[] = { "n" };
        const struct lkg_guard guard = { .pinned = pinned, .n_pinned = 1 };

        assert_findings(&guard, "{\"n\":9007199254740993}", "{\"n\":9007199254740992}",
                        PINNED("1:6", "n", "n"));
        assert_findings(&guard, "{\"n\":[1.0,{\"a\":2}]}", "{\"n\":[1,{\"a\":2.0}]}", "");
}

TEST(test_values_are_never_shown)
{
        static const char *const rules[] = { "staticPodURLHeader" };
        const struct lkg_guard deny = { .deny = rules, .n_deny = 1 },
                               pin = { .pinned = rules, .n_pinned = 1 };
        static const char remote[] = "staticPodURLHeader: {X: [hunter2]}\n";
        const struct lkg_guard *const guards[] = { &deny, &pin };

        for (size_t i = 0; i < LKG_ARRAY_SIZE(guards); i++) {
                char *text = findings(guards[i], remote, "staticPodURLHeader: {X: [swordfish]}\n");

                assert_true(*text);
                assert_null(strstr(text, "hunter2"));
                assert_null(strstr(text, "swordfish"));
                free(text);
        }
}

/* `a.b[].c` as a document that has it, and nothing else: {"a":{"b":[{"c":null}]}} */
static void document_with(const char *path, char ret[static 256])
{
        LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf head = LKG_BUF_INIT;
        char tail[32] = "", before[32];
        struct lkg_span rest = lkg_span(path, strlen(path)), part;

        while (lkg_span_next(&rest, '.', &part)) {
                bool list = part.size > 2 && part.data[part.size - 1] == ']';

                lkg_buf_printf(&head, "{\"%.*s\":%s", (int)(part.size - (list ? 2 : 0)), part.data,
                               list ? "[" : "");
                memcpy(before, tail, sizeof(before));
                (void)snprintf(tail, sizeof(tail), "%s}%.20s", list ? "]" : "", before);
        }
        (void)snprintf(ret, 256, "%snull%s", head.data, tail);
}

static void assert_denied(const char *path, const char *guard)
{
        const struct lkg_guard hardened = { .hardened = true }, none = { .hardened = false };
        char remote[256], want[200];
        char *text;

        document_with(path, remote);
        text = findings(&hardened, remote, NULL);
        (void)snprintf(want, sizeof(want), "(guard.profile hardened: %s)", guard);
        if (!strstr(text, want) && !strstr(text, "(guard.profile hardened: authentication: "))
                fail_msg("%s: %s", remote, text);
        free(text);
        assert_findings(&none, remote, NULL, "");
}

TEST(test_hardened_is_the_column_of_the_tables)
{
        const struct lkg_guard hardened = { .hardened = true };
        char remote[256];

        for (size_t k = 0; k < lkg_n_kinds; k++)
                for (size_t i = 0; i < *lkg_kinds[k].n_fields; i++) {
                        const struct lkg_field *field = &lkg_kinds[k].fields[i];

                        if (strcmp(field->guard, LKG_GUARD_NOTHING) != 0) {
                                assert_denied(field->path, field->guard);
                                continue;
                        }
                        document_with(field->path, remote);
                        assert_findings(&hardened, remote, NULL, "");
                }
        for (size_t i = 0; i < lkg_n_guarded_keys; i++)
                assert_denied(lkg_guarded_keys[i].path, lkg_guarded_keys[i].guard);
}

/* The minimum contents of the column, so that a slip in the tables is noticed. */
TEST(test_hardened_profile)
{
        static const char *const denied[] = {
                "staticPodPath",
                "staticPodURL",
                "staticPodURLHeader",
                "authentication",
                "authentication.anonymous.enabled",
                "authentication.webhook.cacheTTL",
                "authorization",
                "authorization.mode",
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
                "resolvConf",
                "containerRuntimeEndpoint",
                "imageServiceEndpoint",
                "allowedUnsafeSysctls",
                "enableDebuggingHandlers",
                "enableSystemLogQuery",
                "enableProfilingHandler",
                "seccompDefault",
                "registerWithTaints",
                "registerWithTaints[].key",
                "imagePullCredentialsVerificationPolicy",
                "preloadedImagesVerificationAllowlist",
                "protectKernelDefaults",
                "tracing.endpoint",
                "bindAddress",
                "metricsBindAddress",
                "nodePortAddresses",
                "clientConnection.kubeconfig",
                "ReadOnlyPort",
                "\xc5\xbf"
                "eccompDefault",
                "featureGates.AllAlpha",
                "featureGates.UserNamespacesSupport",
        };
        static const char *const allowed[] = {
                "kind",
                "apiVersion",
                "maxPods",
                "evictionHard",
                "evictionHard.anything",
                "featureGates",
                "featureGates.MemoryQoS",
                "clusterDNS",
                "providerID",
                "logging",
                "logging.vmodule[].filePattern",
                "tracing",
                "crashLoopBackOff",
                "conntrack.min",
        };
        const struct lkg_guard hardened = { .hardened = true };
        char remote[256];

        for (size_t i = 0; i < LKG_ARRAY_SIZE(denied); i++) {
                char *text;

                document_with(denied[i], remote);
                text = findings(&hardened, remote, NULL);
                if (!strstr(text, "guard.profile hardened: ") || strstr(text, "nobody has judged it"))
                        fail_msg("%s: %s", denied[i], text);
                free(text);
        }
        for (size_t i = 0; i < LKG_ARRAY_SIZE(allowed); i++) {
                document_with(allowed[i], remote);
                assert_findings(&hardened, remote, NULL, "");
        }
}

/* A later release than that of the tables may have a field that grants too much. */
TEST(test_what_nobody_has_judged_is_denied)
{
        static const char why[] = "guard.profile hardened: not in the tables of this lkgfs, so nobody has "
                                  "judged it";
        const struct lkg_guard hardened = { .hardened = true }, none = { .hardened = false };
        static const char remote[] = "apiVersion: v\nkind: KubeletConfiguration\nrunOnStart: x\n"
                                     "logging: {file: y}\nmaxPods: 5\n";
        static const char other[] = "kind: Other\nrunOnStart: x\nstaticPodPath: y\n";
        char *text;

        text = findings(&hardened, remote, NULL);
        assert_non_null(strstr(text, "runOnStart: "));
        assert_non_null(strstr(text, "logging.file: "));
        assert_non_null(strstr(text, why));
        assert_null(strstr(text, "maxPods"));
        free(text);
        text = findings(&hardened, other, NULL);
        assert_null(strstr(text, "runOnStart"));
        assert_non_null(strstr(text, "staticPodPath: "));
        free(text);
        assert_findings(&none, remote, NULL, "");
}

TEST(test_a_denial_comes_before_a_pin)
{
        static const char *const rules[] = { "a" };
        const struct lkg_guard guard = { .deny = rules, .n_deny = 1, .pinned = rules, .n_pinned = 1 };

        assert_findings(&guard, "a: 1\n", "a: 1\n", DENIED("1:4", "a", "guard.deny: a"));
}

TEST(test_what_is_too_deep_is_refused)
{
        static const char *const rules[] = { "a" };
        const struct lkg_guard guard = { .deny = rules, .n_deny = 1 },
                               pin = { .pinned = rules, .n_pinned = 1 };
        LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf lists = LKG_BUF_INIT, maps = LKG_BUF_INIT;
        char *text;

        lkg_buf_puts(&lists, "{\"x\":");
        for (size_t i = 0; i < 900; i++)
                lkg_buf_putc(&lists, '[');
        for (size_t i = 0; i < 900; i++)
                lkg_buf_putc(&lists, ']');
        lkg_buf_puts(&lists, "}");
        text = findings(&guard, lists.data, NULL);
        assert_non_null(strstr(text, "nested too deep to be judged"));
        free(text);
        for (size_t i = 0; i < 900; i++)
                lkg_buf_puts(&maps, "{\"a\":");
        lkg_buf_puts(&maps, "1");
        for (size_t i = 0; i < 900; i++)
                lkg_buf_puts(&maps, "}");
        text = findings(&pin, maps.data, maps.data);
        assert_string_equal(text, "");
        free(text);
        text = findings(&pin, maps.data, "{\"a\":{\"a\":{}}}");
        assert_true(*text);
        free(text);
}

TEST(test_strange_names_are_quoted)
{
        static const char *const rules[] = { "a*" };
        const struct lkg_guard guard = { .deny = rules, .n_deny = 1 };

        assert_findings(&guard, "{\"a\\u001b[2Jx\":1}", NULL,
                        DENIED("1:16", "\"a\\x1b[2Jx\"", "guard.deny: a*"));
}
