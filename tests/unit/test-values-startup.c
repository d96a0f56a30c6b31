/* SPDX-License-Identifier: Apache-2.0 */
/* Values that a kubelet accepts but does not start with; values of a release. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "core/schema/values/release.h"
#include "core/schema/values/startup.h"

static char reason[LKG_REFUSAL_MAX];

static int check(const char *field, const char *key, const char *value)
{
        return lkg_startup_check(field, lkg_span(key, strlen(key)), lkg_span(value, strlen(value)), reason);
}

static void test_fields(void **state)
{
        static const struct {
                const char *field, *key, *value;
                const char *says; /* NULL: the kubelet starts */
        } cases[] = {
                { "evictionHard", "memory.available", "100Mi", NULL },
                { "evictionHard", "nodefs.inodesFree", "5%", NULL },
                { "evictionHard", "allocatableMemory.available", "1", NULL },
                { "evictionHard", "pid.available", "0%", NULL },
                { "evictionHard", "memory.available", "100%", NULL },
                { "evictionHard", "memory.available", "10.5%%", NULL },
                { "evictionHard", "memory.available", "NaN%", NULL },
                { "evictionHard", "memory", "1", "unknown eviction signal" },
                { "evictionHard", "memory.available", "0", "greater than zero" },
                { "evictionHard", "memory.available", "-1", "greater than zero" },
                { "evictionHard", "memory.available", "101%", "between 0% and 100%" },
                { "evictionHard", "memory.available", "-1%", "between 0% and 100%" },
                { "evictionHard", "memory.available", "x%", "percentage" },
                { "evictionHard", "memory.available", "10 %", "percentage" },
                { "evictionSoft", "memory.available", "1K", "suffix" },
                { "evictionSoftGracePeriod", "memory.available", "1m30s", NULL },
                { "evictionSoftGracePeriod", "memory.available", "0", NULL },
                { "evictionSoftGracePeriod", "memory.available", "-1s", "negative" },
                { "evictionSoftGracePeriod", "memory.available", "90", "unit" },
                { "evictionSoftGracePeriod", "x", "90s", "unknown eviction signal" },
                { "evictionMinimumReclaim", "imagefs.available", "0", NULL },
                { "evictionMinimumReclaim", "imagefs.available", "150%", NULL },
                { "evictionMinimumReclaim", "imagefs.available", "-1", "negative" },
                { "evictionMinimumReclaim", "imagefs.available", "0%", "greater than 0%" },
                { "systemReserved", "cpu", "200m", NULL },
                { "systemReserved", "pid", "0", NULL },
                { "kubeReserved", "ephemeral-storage", "1Gi", NULL },
                { "kubeReserved", "hugepages-2Mi", "1Gi", "cannot be reserved" },
                { "kubeReserved", "memory", "-1", "negative" },
                { "kubeReserved", "memory", "1KiB", "not a quantity" },
                { "qosReserved", "memory", "50%", NULL },
                { "qosReserved", "memory", "50", "percentage" },
                { "qosReserved", "memory", "50.5%", "percentage" },
                { "qosReserved", "memory", "101%", "percentage" },
                { "qosReserved", "cpu", "50%", "cannot be reserved" },
                { "containerLogMaxSize", "", "10Mi", NULL },
                { "containerLogMaxSize", "", "-1", NULL }, /* no rotation */
                { "containerLogMaxSize", "", "1.5Gi", "whole number" },
                { "containerLogMaxSize", "", "10MB", "not a quantity" },
                { "tlsCipherSuites", "", "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256", NULL },
                { "tlsCipherSuites", "", "TLS_RSA_WITH_RC4_128_SHA", NULL },
                { "tlsCipherSuites", "", "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305", NULL },
                { "tlsCipherSuites", "", "ECDHE-RSA-AES128-GCM-SHA256", "unknown cipher suite" },
                { "tlsMinVersion", "", "", NULL },
                { "tlsMinVersion", "", "VersionTLS13", NULL },
                { "tlsMinVersion", "", "1.2", "unknown version" },
                { "authorization.mode", "", "Webhook", NULL },
                { "authorization.mode", "", "RBAC", "unknown mode" },
                { "cpuManagerPolicy", "", "static", NULL },
                { "cpuManagerPolicy", "", "Static", "unknown policy" },
                { "memoryManagerPolicy", "", "Static", NULL },
                { "memoryManagerPolicy", "", "static", "unknown policy" },
                { "clusterDomain", "", "anything", NULL },
        };

        (void)state;
        for (size_t i = 0; i < LKG_ARRAY_SIZE(cases); i++) {
                assert_int_equal(check(cases[i].field, cases[i].key, cases[i].value),
                                 cases[i].says ? -EINVAL : 0);
                if (cases[i].says)
                        assert_non_null(strstr(reason, cases[i].says));
        }
}

static void test_threshold_off(void **state)
{
        (void)state;
        assert_true(lkg_startup_threshold_off(lkg_span("0%", 2)));
        assert_true(lkg_startup_threshold_off(lkg_span("100%", 4)));
        assert_false(lkg_startup_threshold_off(lkg_span("00%", 3)));
        assert_false(lkg_startup_threshold_off(lkg_span("0", 1)));
}

static void test_tls_curve(void **state)
{
        (void)state;
        assert_true(lkg_startup_tls_curve(29));
        assert_true(lkg_startup_tls_curve(4588));
        assert_false(lkg_startup_tls_curve(0));
        assert_false(lkg_startup_tls_curve(-29));
        assert_false(lkg_startup_tls_curve(30));
}

static void test_hidden_metrics(void **state)
{
        (void)state;
        assert_int_equal(lkg_release_hidden_metrics("", 0, 136, reason), 0);
        assert_int_equal(lkg_release_hidden_metrics("1.35", 4, 136, reason), 0);
        assert_int_equal(lkg_release_hidden_metrics("1.34", 4, 135, reason), 0);
        assert_int_equal(lkg_release_hidden_metrics("1.36", 4, 136, reason), -EINVAL);
        assert_non_null(strstr(reason, "want 1.35"));
        assert_int_equal(lkg_release_hidden_metrics("1.35 ", 5, 136, reason), -EINVAL);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_fields),
                cmocka_unit_test(test_threshold_off),
                cmocka_unit_test(test_tls_curve),
                cmocka_unit_test(test_hidden_metrics),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
