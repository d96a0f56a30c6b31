# SPDX-License-Identifier: Apache-2.0
"""What a kubelet does with its static pods, by its own file source, while lkgfs serves them: which of them it would start and kill."""
import json
import os
import subprocess
import threading

import pytest

import lkgfs_testlib as lib

KUBELET = [{"name": "kubelet"}]
PODS = [*KUBELET, {"name": "static-pods", "kind": "StaticPods"}]


def pod(name, image="i:1"):
    return f"apiVersion: v1\nkind: Pod\nmetadata: {{name: {name}}}\nspec:\n  containers:\n  - {{name: {name}, image: '{image}'}}\n"


def tree(directory):
    lib.make_tree(directory)
    for name in ("etcd", "kube-apiserver"):
        lib.write_file(os.path.join(directory, "manifests", name + ".yaml"), pod(name), 0o600)


class Kubelet:
    """Its file source: the operations that it has got so far, without those about nothing."""

    def __init__(self, program, directory):
        self.operations, self.lists = [], 0
        self.process = subprocess.Popen([program, directory], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self):
        for line in self.process.stdout:
            update = json.loads(line)
            self.operations += [(update["op"], name.removesuffix("-n1")) for name in sorted(update["pods"])]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()

    def take(self):
        taken, self.operations = self.operations, []
        return taken


@pytest.fixture(name="node")
def a_node(program):
    with lib.Mount(tree=tree, components=PODS) as mount, Kubelet(program("file-source"), mount.path("static-pods")) as kubelet:
        mount.wait_for(lambda: len(kubelet.operations) == 2, "both pods", component="static-pods")
        assert sorted(kubelet.take()) == [("add", "etcd"), ("add", "kube-apiserver")]
        yield mount, kubelet


def quiet(kubelet, seconds=3):
    """It lists every second."""
    threading.Event().wait(seconds)
    assert kubelet.operations == []


def test_a_change_restarts_one_pod(node):
    mount, kubelet = node
    mount.write("manifests/etcd.yaml", pod("etcd", "i:2"), 0o600)
    mount.wait_for(lambda: len(kubelet.operations) >= 2, "another pod", component="static-pods")
    assert sorted(kubelet.take()) == [("add", "etcd"), ("remove", "etcd")]
    quiet(kubelet)
    os.unlink(mount.path("manifests/etcd.yaml"))
    mount.wait_for(lambda: kubelet.operations, "a pod less", component="static-pods")
    assert kubelet.take() == [("remove", "etcd")]


@pytest.mark.parametrize("change", ["typo", "copy", "second file", "empty", "comment"])
def test_the_accidents_of_every_day_restart_nothing(node, change):
    mount, kubelet = node
    {"typo": lambda: mount.write("manifests/etcd.yaml", "kind: Pod\n  x: [", 0o600),
     "copy": lambda: mount.write("manifests/etcd.yaml.bak", pod("etcd", "i:2"), 0o600),
     "second file": lambda: mount.write("manifests/x.yaml", pod("etcd", "i:2"), 0o600),
     "empty": lambda: mount.write("manifests/etcd.yaml", "", 0o600),
     "comment": lambda: mount.write("manifests/etcd.yaml", "# x\n" + pod("etcd"), 0o600)}[change]()
    quiet(kubelet)


@pytest.mark.parametrize("child", ["lkgfs-engine", "lkgfs-fs", "lkgfs-notify", "lkgfsd"])
def test_a_killed_process_restarts_nothing(node, child):
    mount, kubelet = node
    if child == "lkgfsd":
        mount.kill_supervisor()
        mount.start()
    else:
        mount.kill_child(child)
        mount.child(child)
    quiet(kubelet)


def test_stopped_and_started_again_restarts_nothing(node):
    mount, kubelet = node
    mount.write("manifests/etcd.yaml", "broken: [", 0o600)
    mount.stop()
    quiet(kubelet)
    mount.start()
    quiet(kubelet)


def test_as_it_is_without_lkgfs(program, tmp_path):
    """The accidents that the tests above show nothing of."""
    tree(tmp_path / "node")
    with Kubelet(program("file-source"), tmp_path / "node/manifests") as kubelet:
        end = lib.deadline()
        while len(kubelet.operations) < 2:
            assert lib.time.monotonic() < end
        kubelet.take()
        lib.write_file(tmp_path / "node/manifests/etcd.yaml", "kind: Pod\n  x: [")
        while not kubelet.operations:
            assert lib.time.monotonic() < end
        assert kubelet.take() == [("remove", "etcd")], "a typo kills the pod"
