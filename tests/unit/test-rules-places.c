/* SPDX-License-Identifier: Apache-2.0 */
/* The position of a finding, and how it names values, flags and defaults. */
#include "rules-helpers.h"

TEST(test_value_of_the_later_layer)
{
        struct trial t = { .base = KUBELET "imageGCLowThresholdPercent: 60\n",
                           .dropin = KUBELET "imageGCHighThresholdPercent: 50\n" };

        assert_string_equal(said(&t),
                            "d/10-x.conf:3:30: error: imageGCHighThresholdPercent: 50 must be greater than "
                            "imageGCLowThresholdPercent 60 (base.yaml:3:29) [LKG5032]\n");
        t = (struct trial){ .base = KUBELET "imageGCHighThresholdPercent: 50\n",
                            .dropin = KUBELET "imageGCLowThresholdPercent: 60\n" };
        assert_string_equal(said(&t),
                            "d/10-x.conf:3:29: error: imageGCLowThresholdPercent: 60 must be less than "
                            "imageGCHighThresholdPercent 50 (base.yaml:3:30) [LKG5032]\n");
}

TEST(test_value_of_the_later_line)
{
        struct trial t = { .base = KUBELET
                           "imageGCLowThresholdPercent: 60\nimageGCHighThresholdPercent: 50\n" };

        assert_string_equal(said(&t),
                            "base.yaml:4:30: error: imageGCHighThresholdPercent: 50 must be greater than "
                            "imageGCLowThresholdPercent 60 (base.yaml:3:29) [LKG5032]\n");
}

TEST(test_default_is_named_and_never_the_place)
{
        struct trial t = { .base = KUBELET "imageGCHighThresholdPercent: 50\n" };

        assert_string_equal(said(&t),
                            "base.yaml:3:30: error: imageGCHighThresholdPercent: 50 must be greater than "
                            "imageGCLowThresholdPercent 80 (default) [LKG5032]\n");
        t = (struct trial){ .base = KUBELET "cgroupsPerQOS: false\n" };
        assert_string_equal(said(&t),
                            "base.yaml:3:16: error: cgroupsPerQOS: false must be true for "
                            "enforceNodeAllocatable[0] \"pods\" (default); set cgroupsPerQOS to true, or "
                            "enforceNodeAllocatable to [none] [LKG5032]\n");
        t = (struct trial){ .base = KUBELET, .cgroup = 1 };
        assert_string_equal(
                said(&t), "error: failCgroupV1: true (default) does not fit this host, which has cgroup v1; "
                          "move it to cgroup v2, or set false [LKG5037]\n");
}

/*
 * The machine that judges need not be the node: a violation that depends on its facts only is no reason to
 * refuse.
 */
TEST(test_facts_that_nobody_stated_only_warn)
{
        struct trial t = { .base = KUBELET "failCgroupV1: true\n", .cgroup = 1 };

        assert_int_equal(judged(&t)->n_severity[LKG_ERROR], 1);
        t.guessed_host = true;
        assert_int_equal(judged(&t)->n_severity[LKG_ERROR], 0);
        assert_int_equal(judged(&t)->n_severity[LKG_WARNING], 1);
}

TEST(test_unset_field_is_named)
{
        struct trial t = { .base = KUBELET "systemCgroups: /s\n" };

        assert_string_equal(said(&t),
                            "base.yaml:3:16: error: systemCgroups: \"/s\" needs cgroupRoot (unset); set "
                            "cgroupRoot, / for example [LKG5032]\n");
}

TEST(test_flag_is_named)
{
        struct trial t = {
                .base = KUBELET, .flag = "flag --max-pods", .flag_path = "maxPods", .flag_value = -5
        };

        assert_string_equal(said(&t),
                            "error: maxPods (--max-pods): -5 is out of range; it must not be negative "
                            "[LKG5030]\n");
        t = (struct trial){ .base = KUBELET "imageGCHighThresholdPercent: 90\n",
                            .flag = "flag --image-gc-low-threshold",
                            .flag_path = "imageGCLowThresholdPercent",
                            .flag_value = 95 };
        assert_string_equal(
                said(&t),
                "error: imageGCLowThresholdPercent (--image-gc-low-threshold): 95 must be less than "
                "imageGCHighThresholdPercent 90 (base.yaml:3:30) [LKG5032]\n");
}

TEST(test_drop_in_value_has_the_drop_ins_place)
{
        struct trial t = { .base = KUBELET "maxPods: 5\n", .dropin = KUBELET "maxPods: -5\n" };

        assert_string_equal(said(&t), "d/10-x.conf:3:10: error: maxPods: -5 is out of range; it must not be "
                                      "negative [LKG5030]\n");
}

TEST(test_item_of_a_list)
{
        struct trial t = { .base = KUBELET "enforceNodeAllocatable:\n- pods\n- all\n" };

        assert_string_equal(
                said(&t),
                "base.yaml:5:3: error: enforceNodeAllocatable[1]: \"all\" is not known; want pods, "
                "system-reserved, system-reserved-compressible, kube-reserved, "
                "kube-reserved-compressible or none [LKG5031]\n");
}

TEST(test_long_and_odd_values_are_cut_and_escaped)
{
        char text[8192] = KUBELET "hairpinMode: \"\\u0007";
        struct trial t = { .base = text };
        size_t n = strlen(text);

        memset(text + n, 'x', 6000);
        strcpy(text + n + 6000, "\"\n");
        assert_true(strlen(said(&t)) < 500);
        assert_null(strchr(said(&t), '\a'));
}

TEST(test_userinfo_of_a_url_is_masked)
{
        struct trial t = { .base = KUBELET "tracing: {endpoint: \"http://user:s3cret@host/\"}\n" };

        assert_int_equal(judged(&t)->n_findings, 1);
        assert_null(strstr(said(&t), "s3cret"));
        t = (struct trial){ .base = KUBELET "staticPodURL: \"http://user:s3cret@h:x/?t=s3cret\"\n",
                            .later = true };
        assert_int_equal(judged(&t)->n_findings, 1);
        assert_null(strstr(said(&t), "s3cret"));
}

/* Messages about the form of a value quote nothing of it; parts that would are left out. */
TEST(test_reason_for_a_value_with_credentials)
{
        struct trial t = { .base = KUBELET "tracing: {endpoint: \"http://u:secret@h:1\"}\n" };

        assert_non_null(strstr(said(&t), "\"http://<masked>@h:1\" is not right: unsupported scheme; want"));
        t = (struct trial){ .base = KUBELET "reservedSystemCPUs: \"http://u:secret@h:1\"\n" };
        assert_non_null(strstr(said(&t), "is not right: not what is wanted here"));
        assert_null(strstr(said(&t), "secret"));
}

/* A rule between a field and a gate, and one between two items of a list: both places. */
TEST(test_places_of_both_sides)
{
        struct trial t = { .base = KUBELET "featureGates: {MemoryQoS: false}\n",
                           .dropin = KUBELET "memoryReservationPolicy: TieredReservation\n" };

        assert_string_equal(said(&t),
                            "d/10-x.conf:3:26: error: memoryReservationPolicy: \"TieredReservation\" "
                            "needs the feature gate MemoryQoS, which is off (base.yaml:3:27); turn the "
                            "gate on, or remove the line [LKG5033]\n");
        t = (struct trial){ .base = KUBELET "memoryReservationPolicy: TieredReservation\n", .release = 136 };
        assert_non_null(strstr(said(&t), "which is off; turn"));
        t = (struct trial){ .base = KUBELET
                            "kubeReservedCgroup: /k\n"
                            "enforceNodeAllocatable: [kube-reserved, kube-reserved-compressible]\n" };
        assert_string_equal(
                said(&t),
                "base.yaml:4:41: error: enforceNodeAllocatable: \"kube-reserved-compressible\" cannot "
                "go with enforceNodeAllocatable \"kube-reserved\" (base.yaml:4:26); keep one of them "
                "[LKG5032]\n");
        t = (struct trial){ .base = KUBELET "cpuManagerPolicyOptions: {full-pcpus-only: \"true\"}\n",
                            .dropin = KUBELET "cpuManagerPolicy: none\n",
                            .later = true };
        assert_string_equal(
                said(&t),
                "d/10-x.conf:3:19: warning: cpuManagerPolicy: \"none\" cannot go with "
                "cpuManagerPolicyOptions (1 members) (base.yaml:3:26); remove the options, or want the "
                "policy static [LKG5021]\n");
}
