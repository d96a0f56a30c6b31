# SPDX-License-Identifier: Apache-2.0
"""`kubeadm upgrade node` on a node that is adopted, against a real API server: what it writes reaches the view, and what it reads is there.

In a machine of namespaces with the package, so that kubeadm has its own paths; its API server is a real kube-apiserver on loopback.
"""
import base64
import tempfile

import pytest
import yaml

import lkgfs_testlib as lib
from lkgfs_realapi import RealApi

pytestmark = pytest.mark.limit(600)

NODE = "n1"
SOCKET = "unix:///run/containerd/containerd.sock"
CLUSTER = """apiVersion: kubeadm.k8s.io/v1beta4
kind: ClusterConfiguration
kubernetesVersion: v1.36.3
certificatesDir: /etc/kubernetes/pki
networking: {serviceSubnet: 10.96.0.0/12}
"""
VIEW = "/etc/kubernetes/kubelet-config.yaml"
BASE = "/var/lib/kubelet/config.yaml"


@pytest.fixture(name="api")
def api_server():
    with tempfile.TemporaryDirectory(prefix=lib.PREFIX, dir=lib.PARENT) as directory, RealApi(directory) as api:
        yield api


def complete(path):
    """A kubeconfig with its certificates inside, as kubeadm writes it."""
    document = yaml.safe_load(lib.read_file(path))
    for holder in (document["clusters"][0]["cluster"], document["users"][0]["user"]):
        for name in ("certificate-authority", "client-certificate", "client-key"):
            if name in holder:
                holder[name + "-data"] = base64.b64encode(lib.read_file(holder.pop(name))).decode()
    return yaml.safe_dump(document)


@pytest.fixture(name="machine_of_a_cluster")
def adopted_node(machine, deb, api):
    machine.install(deb)
    machine.put_tree(lib.REPOSITORY / "tests/e2e/adopt/kubeadm/tree")
    machine.write("/etc/kubernetes/kubelet.conf", complete(api.node_credential(NODE)))
    machine.shell("mkdir -p /etc/kubernetes/pki", check=True)
    machine.write("/etc/kubernetes/pki/ca.crt", lib.read_file(api.directory / "ca.crt").decode())
    api.request("POST", "/api/v1/nodes", {"metadata": {"name": NODE, "labels": {"kubernetes.io/hostname": NODE},
                                                      "annotations": {"kubeadm.alpha.kubernetes.io/cri-socket": SOCKET}}})
    api.grant("kubeadm:nodes-kubeadm-config", "system:nodes", ["get"], ["kubeadm-config", "kubelet-config", "kube-proxy"])
    api.put_configmap("kubeadm-config", {"ClusterConfiguration": CLUSTER})
    base = machine.read(BASE)
    api.put_configmap("kubelet-config", {"kubelet": base + "maxPods: 90\n"})
    machine.run("lkgfs", "adopt", check=True)
    machine.write("/etc/kubernetes/kubelet.conf.d/50-here.conf", lib.HEADER + "podPidsLimit: 77\n")
    return machine


def served(machine):
    return yaml.safe_load(machine.read(VIEW))


def upgrade(machine, program, *flags):
    """A node that is no control plane: the phase that remains is kubelet-config. kubeadm asks a running system in its preflight checks."""
    result = machine.run(program("kubeadm"), "upgrade", "node", "--skip-phases=preflight", *flags, timeout=60)
    assert result.returncode == 0, result.stdout.decode() + result.stderr.decode()


def test_upgrade_node_writes_the_base_and_the_view_follows(machine_of_a_cluster, program):
    machine = machine_of_a_cluster
    before = machine.read(BASE)
    assert served(machine) == {**yaml.safe_load(before), "podPidsLimit": 77}
    machine.write("/etc/kubernetes/patches/kubeletconfiguration0+merge.yaml", "maxOpenFiles: 500000\n")
    upgrade(machine, program, "--patches=/etc/kubernetes/patches")
    written = yaml.safe_load(machine.read(BASE))
    assert (written["maxPods"], written["maxOpenFiles"]) == (90, 500000)
    machine.wait_for(lambda: served(machine) == {**written, "podPidsLimit": 77}, "the new base in the view")
    assert machine.shell("cat /etc/kubernetes/tmp/*/config.yaml").stdout.decode() == before, "kubeadm keeps the old file in the view"
    assert machine.run("lkgfs", "doctor").returncode == 0


def test_a_base_that_the_kubelet_would_refuse_is_not_served(machine_of_a_cluster, program, api):
    machine = machine_of_a_cluster
    before = machine.read(VIEW)
    api.put_configmap("kubelet-config", {"kubelet": machine.read(BASE) + "maxPods: -90\n"})
    upgrade(machine, program)
    assert yaml.safe_load(machine.read(BASE))["maxPods"] == -90
    machine.wait_for(lambda: machine.run("lkgfs", "status").returncode != 0, "the refusal")
    told = machine.run("lkgfs", "check")
    assert told.returncode == 1 and b"maxPods" in told.stdout + told.stderr and machine.read(VIEW) == before
