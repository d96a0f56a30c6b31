/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Feature gates: settings accumulate, and every reason to refuse one is named.
 * Rule: docs/specification.md 3.5.
 */
#define UNIT_OWN_MAIN

#include "schema-helpers.h"

#include "core/schema/gates.h"
#include "core/schema/typed.h"

/* The result of setting @maps one after the other, and the state of @gate. */
struct outcome {
        bool on;
        int r; /* of the last map */
};

static char *said;

static struct outcome apply(unsigned release, const char *gate, const char *const *maps, size_t n_maps)
{
        struct lkg_report report = LKG_REPORT_INIT;
        struct lkg_gates gates = { 0 };
        struct outcome outcome = { 0 };

        lkg_gates_init(&gates, release);
        for (size_t i = 0; i < n_maps; i++) {
                struct lkg_value *object = lkg_value_new_map(NULL, 0, 0);

                lkg_object_set(object, "featureGates", flow(maps[i], 0));
                outcome.r = lkg_gates_apply(&gates, object, NULL, &report);
                lkg_value_unref(object);
        }
        outcome.on = gate && lkg_gates_enabled(&gates, gate);
        free(said);
        said = lkg_report_format(&report, NULL);
        lkg_report_deinit(&report);
        lkg_gates_deinit(&gates);
        return outcome;
}

#define APPLY(release, gate, ...)                                      \
        apply((release), (gate), (const char *const[]){ __VA_ARGS__ }, \
              sizeof((const char *const[]){ __VA_ARGS__ }) / sizeof(const char *))

static int free_said(void **state)
{
        (void)state;
        free(said);
        said = NULL;
        return 0;
}

TEST(test_defaults_of_the_release)
{
        assert_true(APPLY(136, "APIServerIdentity", "{}").on);
        assert_false(APPLY(136, "CBORServingAndStorage", "{}").on);
        assert_false(APPLY(133, "AtomicFIFO", "{}").on); /* comes with 1.36 */
        assert_false(APPLY(136, "NoSuchGate", "{}").on);
        assert_true(
                APPLY(137, "StructuredAuthenticationConfiguration", "{}").on); /* dropped, and on for good */
        assert_false(APPLY(137, "WorkloadAwarePreemption", "{}").on); /* dropped, and was never on */
        assert_int_equal(APPLY(137, NULL, "{StructuredAuthenticationConfigurationJWKSMetrics: true}").r, 0);
}

TEST(test_later_maps_add_up)
{
        assert_true(APPLY(136, "CBORServingAndStorage", "{CBORServingAndStorage: true}",
                          "{APIServerIdentity: true}")
                            .on);
        assert_false(APPLY(136, "CBORServingAndStorage", "{CBORServingAndStorage: true}",
                           "{CBORServingAndStorage: false}")
                             .on);
}

/* AllAlpha and AllBeta affect only gates that are not set, in any order. */
TEST(test_all_alpha_leaves_alone_what_was_set)
{
        assert_true(APPLY(133, "CBORServingAndStorage", "{AllAlpha: true}").on);
        assert_false(
                APPLY(133, "CBORServingAndStorage", "{CBORServingAndStorage: false}", "{AllAlpha: true}")
                        .on);
        assert_false(
                APPLY(133, "CBORServingAndStorage", "{AllAlpha: true}", "{CBORServingAndStorage: false}")
                        .on);
        assert_false(APPLY(133, "APIServerIdentity", "{AllBeta: false}").on);
        assert_false(APPLY(133, "CBORServingAndStorage", "{AllBeta: true}").on);
}

/* A gate set by AllAlpha counts as set: a second AllAlpha does not change it. */
TEST(test_all_alpha_is_cumulative)
{
        assert_true(APPLY(133, "CBORServingAndStorage", "{AllAlpha: true}", "{AllAlpha: false}").on);
}

TEST(test_locked_gates_keep_their_default)
{
        assert_int_equal(APPLY(136, NULL, "{AnyVolumeDataSource: true}").r, 0);
        assert_int_equal(APPLY(136, NULL, "{AnyVolumeDataSource: false}").r, -EBADMSG);
        assert_string_equal(
                said,
                "file:1:23: error: featureGates: AnyVolumeDataSource is locked to true; remove the line "
                "[LKG5016]\n");
        /* the lock came with a later release */
        assert_int_equal(APPLY(133, NULL, "{APIServerTracing: false}").r, 0);
        assert_int_equal(APPLY(134, NULL, "{APIServerTracing: false}").r, -EBADMSG);
}

TEST(test_dropped_gate_names_the_release)
{
        assert_int_equal(APPLY(134, NULL, "{AllowServiceLBStatusOnNonLB: false}").r, 0);
        assert_int_equal(APPLY(135, NULL, "{AllowServiceLBStatusOnNonLB: false}").r, -EBADMSG);
        assert_non_null(strstr(said, "AllowServiceLBStatusOnNonLB was dropped in 1.35"));
        assert_non_null(strstr(said, "[LKG5014]"));
}

/* If only a bound is known, the message says so. */
TEST(test_gate_that_was_dropped_long_ago)
{
        static const char *const names[] = { "ServiceNodeExclusion", "CronJobTimeZone",
                                             "JobTrackingWithFinalizers", "Accelerators" };

        for (size_t i = 0; i < LKG_ARRAY_SIZE(names); i++) {
                char map[64];

                (void)snprintf(map, sizeof(map), "{%s: true}", names[i]);
                for (unsigned release = LKG_RELEASE_MIN; release <= LKG_RELEASE_MAX; release++) {
                        assert_int_equal(APPLY(release, NULL, map).r, -EBADMSG);
                        assert_non_null(strstr(said, "was dropped before 1."));
                        assert_non_null(strstr(said, "remove the line [LKG5014]"));
                }
        }
        assert_int_equal(APPLY(136, NULL, "{ServiceNodeExclusion: true}").r, -EBADMSG);
        assert_non_null(strstr(said, "ServiceNodeExclusion was dropped before 1.24,"));
}

TEST(test_gate_of_a_later_release)
{
        assert_int_equal(APPLY(135, NULL, "{AtomicFIFO: true}").r, -EBADMSG);
        assert_non_null(strstr(said, "AtomicFIFO comes with 1.36 and this is 1.35"));
        assert_non_null(strstr(said, "[LKG5015]"));
}

TEST(test_unknown_gate_names_the_nearest)
{
        assert_int_equal(APPLY(136, NULL, "{AtomicFIF0: true}").r, -EBADMSG);
        assert_string_equal(
                said,
                "file:1:14: error: featureGates: no feature gate \"AtomicFIF0\" in 1.36, and the component "
                "does not start with it; did you mean AtomicFIFO? [LKG5013]\n");
        assert_int_equal(APPLY(136, NULL, "{Zzzz: true}").r, -EBADMSG);
        assert_non_null(strstr(said, "remove the line"));
}

TEST(test_every_wrong_gate_is_named)
{
        assert_int_equal(APPLY(136, NULL, "{Aaaa: true, AnyVolumeDataSource: false, AppArmor: true}").r,
                         -EBADMSG);
        assert_non_null(strstr(said, "Aaaa"));
        assert_non_null(strstr(said, "AnyVolumeDataSource"));
        assert_non_null(strstr(said, "AppArmor"));
}

TEST(test_gate_that_needs_another)
{
        assert_int_equal(APPLY(136, NULL,
                               "{WindowsGracefulNodeShutdown: true, GracefulNodeShutdown: false, "
                               "GracefulNodeShutdownBasedOnPodPriority: false}")
                                 .r,
                         -EBADMSG);
        assert_non_null(strstr(said, "WindowsGracefulNodeShutdown is on (file:1:31) and needs "
                                     "GracefulNodeShutdown, which is off"));
        assert_non_null(strstr(said, "[LKG5017]"));
        /* releases before 1.35 did not check this */
        assert_int_equal(APPLY(135, NULL,
                               "{WindowsGracefulNodeShutdown: true, GracefulNodeShutdown: false, "
                               "GracefulNodeShutdownBasedOnPodPriority: false}")
                                 .r,
                         -EBADMSG);
        assert_int_equal(APPLY(134, NULL,
                               "{WindowsGracefulNodeShutdown: true, GracefulNodeShutdown: false, "
                               "GracefulNodeShutdownBasedOnPodPriority: false}")
                                 .r,
                         0);
        assert_int_equal(APPLY(136, NULL, "{DRADeviceTaintRules: true, DRADeviceTaints: false}").r,
                         -EBADMSG);
        /* a dependency that came with 1.36 */
        assert_int_equal(
                APPLY(136, NULL, "{UserNamespacesHostNetworkSupport: true, NodeDeclaredFeatures: false}").r,
                -EBADMSG);
        assert_int_equal(
                APPLY(135, NULL, "{UserNamespacesHostNetworkSupport: true, NodeDeclaredFeatures: false}").r,
                0);
}

TEST(test_advice_before_a_gate_goes)
{
        struct lkg_report report = LKG_REPORT_INIT;
        struct lkg_value *map = flow(
                "{AllowServiceExternalIPs: true, APIServerIdentity: true, CBORServingAndStorage: true}", 0);
        char *text;

        lkg_gate_advise(map, NULL, 136, true, &report);
        text = lkg_report_format(&report, NULL);
        assert_non_null(
                strstr(text, "warning: featureGates: AllowServiceExternalIPs is generally available"));
        assert_non_null(strstr(text, "note: featureGates: APIServerIdentity is true by default"));
        assert_null(strstr(text, "CBORServingAndStorage"));
        free(text);
        lkg_value_unref(map);
        lkg_report_deinit(&report);
}

int main(void)
{
        return run_all(NULL, free_said);
}
