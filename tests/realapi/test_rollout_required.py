# SPDX-License-Identifier: Apache-2.0
"""contrib/rbac/rollout-required.yaml: a ConfigMap that is labelled keeps its limits, whatever writes it anew."""
import json
import time

import pytest

import lkgfs_testlib as lib

MANIFEST = lib.REPOSITORY / "contrib/rbac/rollout-required.yaml"
LABEL = {"lkgfs.io/rollout-limits": "required"}
LIMIT = "lkgfs.io/rollout-max-in-trial"


class Writer:
    """An administrator who writes one ConfigMap."""

    def __init__(self, real):
        self.real = real

    def kubectl(self, *words, **options):
        return lib.run("kubectl", "--kubeconfig", self.real.directory / "admin.conf", *words, **options)

    def apply(self, labels, annotations, text="maxPods: 7\n", verb="replace"):
        """Return: what was said when it was refused; "" = it was written."""
        done = self.kubectl(verb, "-f", "-", input=json.dumps({
            "apiVersion": "v1", "kind": "ConfigMap", "data": {"kubelet": text},
            "metadata": {"namespace": "kube-system", "name": "rollout-required", "labels": labels, "annotations": annotations}}).encode())
        return "" if done.returncode == 0 else done.stderr.decode()


@pytest.fixture
def writer(real):
    one = Writer(real)
    assert one.kubectl("apply", "-f", MANIFEST).returncode == 0
    try:
        assert one.apply(LABEL, {LIMIT: "2"}, verb="create") == ""
        # A policy takes effect some moments after it was made.
        end = time.monotonic() + lib.TIMEOUT_S
        while not one.apply(LABEL, {}):
            assert time.monotonic() < end, "the policy does not take effect"
        yield one
    finally:
        one.kubectl("delete", "-f", MANIFEST)
        one.kubectl("delete", "configmap", "-n", "kube-system", "rollout-required")


@pytest.mark.parametrize("value", ["1", "20", "1000"])
def test_with_its_limit_it_is_written(writer, value):
    assert writer.apply(LABEL, {LIMIT: value}, "maxPods: 8\n") == ""


@pytest.mark.parametrize("annotations", [{}, {LIMIT: ""}, {LIMIT: "0"}, {LIMIT: "1001"}, {LIMIT: "5 "}, {LIMIT: "off"}, {"other": "1"}])
def test_without_it_is_refused(writer, annotations):
    assert "annotation lkgfs.io/rollout-max-in-trial must be a number from 1 to 1000" in writer.apply(LABEL, annotations, "maxPods: 8\n")


def test_the_label_stays(writer):
    assert "the label lkgfs.io/rollout-limits=required must stay" in writer.apply({}, {LIMIT: "2"})
    assert "the label lkgfs.io/rollout-limits=required must stay" in writer.apply({"lkgfs.io/rollout-limits": "no"}, {}, "maxPods: 8\n")


def test_other_configmaps_are_not_concerned(writer):
    try:
        assert writer.kubectl("create", "configmap", "-n", "kube-system", "rollout-other", "--from-literal=kubelet=x").returncode == 0
    finally:
        writer.kubectl("delete", "configmap", "-n", "kube-system", "rollout-other")
