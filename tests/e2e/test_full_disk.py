# SPDX-License-Identifier: Apache-2.0
"""A state directory that is full: a command that cannot be stored is refused, and nothing changes. tests/crash/crash-engine.c has every call of
every command, and a disk that is read-only.

Rule: docs/specification.md 4.
"""
import errno
import os

import pytest

import lkgfs_testlib as lib
import test_static_pods_trial as trial
from lkgfs_node import Node

COMMANDS = [("hold", "on"), ("rollback", "2"), ("rollback", "lkg"), ("try", "1h"), ("promote", "now"), ("startup", "now")]


class Disk:
    """A small tmpfs as the state directory of a stopped node."""

    def __init__(self, state):
        self.state, self.filler = state, os.path.join(state, "filler")
        os.makedirs(state, 0o700, exist_ok=True)
        lib.shell(f"mount -t tmpfs -o size=512k,mode=0700 lkgfs-test {state}", check=True)

    def fill(self):
        with open(self.filler, "wb", buffering=0) as f:
            for size in (65536, 4096, 1):
                try:
                    while True:
                        f.write(b"x" * size)
                except OSError as e:
                    assert e.errno == errno.ENOSPC

    def free(self):
        os.unlink(self.filler)

    def close(self):
        lib.shell(f"umount -l {self.state}", check=True)


@pytest.fixture(name="full")
def full_node(mounts):
    """A node with ConfigMap 1 active on trial behind two local generations, and its disk."""
    node = Node(mounts, start=False, trial={"duration": "1h"})
    disk = Disk(node.mount.state)
    try:
        node.mount.start()
        node.mount.drop("10-a.conf", "registryBurst: 3\n")
        node.source = node.assign("maxPods: 42\n")
        node.wait("active", node.source)
        node.wait("condition", "True all checks passed")
        yield node, disk
    finally:
        node.mount.stop()
        disk.close()


def what_is_said(node):
    names = ("condition", "hold", "active", "assigned", "last-known-good")
    return [node.status(name) for name in names] + [node.mount.document(), sorted(node.bad())]


def test_every_command_is_refused(full):
    node, disk = full
    disk.fill()
    before = what_is_said(node)
    for name, text in COMMANDS:
        assert lib.error_of(node.mount.command, name, text) == errno.ENOSPC, name
        assert what_is_said(node) == before, name
    path = node.mount.vpath("bad", "kubelet", node.source)
    assert lib.error_of(lib.write_file, path, "it is wrong\n") == errno.ENOSPC
    assert what_is_said(node) == before
    disk.free()
    node.mount.command("rollback", "2")
    assert "at generation 2 (rollback)" in node.status("condition") and node.source in node.bad()


def test_a_change_on_try_waits_for_the_disk(full):
    node, disk = full
    node.mount.command("try", "1h")
    disk.fill()
    node.mount.drop("20-b.conf", "registryBurst: 9\n")
    assert "\nregistryBurst: 3\n" in node.mount.document()
    assert node.status("condition").startswith("Unknown failed to publish: No space left on device")
    disk.free()
    node.wait("condition", "True on try until ")
    assert "\nregistryBurst: 9\n" in node.mount.document()


def test_a_static_pod_that_fails_goes_back_all_the_same():
    with trial.Endpoint() as endpoint, trial.mounted(endpoint, start=False) as mount:
        disk = Disk(mount.state)
        try:
            mount.start()
            endpoint.status = 500
            trial.write(mount, "etcd.yaml", trial.with_probe("etcd", "etcd:2", endpoint.port))
            disk.fill()
            trial.wait(mount, "etcd.yaml", "back")
            assert "etcd:1" in mount.read("static-pods/etcd.yaml").decode() and "No space left" in mount.log()
            assert mount.condition("static-pods")[0] == "False"
        finally:
            mount.stop()
            disk.close()
