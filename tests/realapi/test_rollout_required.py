# SPDX-License-Identifier: Apache-2.0
"""contrib/rbac/rollout-required.yaml: a ConfigMap that is labelled keeps its limits, whatever writes it anew."""
import json
import time

import pytest

import lkgfs_testlib as lib

MANIFEST = lib.REPOSITORY / "contrib/rbac/rollout-required.yaml"
LABEL = {"lkgfs.io/rollout-limits": "required"}
LIMIT = "lkgfs.io/rollout-max-in-trial"


def write(real, labels, annotations, text="maxPods: 7\n", verb="replace"):
    """The ConfigMap. Return: what was said when it was refused; "" = it was written."""
    done = real.kubectl(verb, "-f", "-", input=json.dumps({
        "apiVersion": "v1", "kind": "ConfigMap", "data": {"kubelet": text},
        "metadata": {"namespace": "kube-system", "name": "rollout-required", "labels": labels, "annotations": annotations}}).encode())
    return "" if done.returncode == 0 else done.stderr.decode()


@pytest.fixture
def policy(real):
    """The API server, with the policy in effect and a ConfigMap that it concerns."""
    assert real.kubectl("apply", "-f", MANIFEST).returncode == 0
    try:
        assert write(real, LABEL, {LIMIT: "2"}, verb="create") == ""
        # A policy takes effect some moments after it was made.
        end = time.monotonic() + lib.TIMEOUT_S
        while not write(real, LABEL, {}):
            assert time.monotonic() < end, "the policy does not take effect"
        yield real
    finally:
        real.kubectl("delete", "-f", MANIFEST)
        real.kubectl("delete", "configmap", "-n", "kube-system", "rollout-required")


@pytest.mark.parametrize("value", ["1", "20", "1000"])
def test_with_its_limit_it_is_written(policy, value):
    assert write(policy, LABEL, {LIMIT: value}, "maxPods: 8\n") == ""


@pytest.mark.parametrize("annotations", [{}, {LIMIT: ""}, {LIMIT: "0"}, {LIMIT: "1001"}, {LIMIT: "5 "}, {LIMIT: "off"}, {"other": "1"}])
def test_without_it_is_refused(policy, annotations):
    assert "annotation lkgfs.io/rollout-max-in-trial must be a number from 1 to 1000" in write(policy, LABEL, annotations, "maxPods: 8\n")


def test_the_label_stays(policy):
    assert "the label lkgfs.io/rollout-limits=required must stay" in write(policy, {}, {LIMIT: "2"})
    assert "the label lkgfs.io/rollout-limits=required must stay" in write(policy, {"lkgfs.io/rollout-limits": "no"}, {}, "maxPods: 8\n")


def test_other_configmaps_are_not_concerned(policy):
    try:
        assert policy.kubectl("create", "configmap", "-n", "kube-system", "rollout-other", "--from-literal=kubelet=x").returncode == 0
    finally:
        policy.kubectl("delete", "configmap", "-n", "kube-system", "rollout-other")
