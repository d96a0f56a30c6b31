# SPDX-License-Identifier: Apache-2.0
"""A state directory that is full or read-only: a command that cannot be stored is refused, and nothing changes.

Rule: docs/specification.md 4.
"""
import errno
import os

import pytest

import lkgfs_testlib as lib
from lkgfs_node import Node

COMMANDS = [("hold", "on"), ("rollback", "2"), ("rollback", "lkg"), ("try", "1h"), ("promote", "now"), ("startup", "now")]


class Disk:
    """A small tmpfs as the state directory of a stopped node."""

    def __init__(self, state):
        self.state, self.filler = state, os.path.join(state, "filler")
        os.makedirs(state, 0o700, exist_ok=True)
        lib.shell(f"mount -t tmpfs -o size=512k,mode=0700 lkgfs-test {state}", check=True)

    def fill(self, _node):
        with open(self.filler, "wb", buffering=0) as f:
            for size in (65536, 4096, 1):
                try:
                    while True:
                        f.write(b"x" * size)
                except OSError as e:
                    assert e.errno == errno.ENOSPC
        return errno.ENOSPC

    def lock(self, node):
        """Files in it are open for writing, so lkgfs has to be stopped to remount it."""
        node.mount.stop()
        lib.shell(f"mount -o remount,ro {self.state}", check=True)
        node.mount.start()
        node.wait("condition", "True all checks passed")
        return errno.EROFS

    def free(self, node):
        if os.path.exists(self.filler):
            os.unlink(self.filler)
            return
        node.mount.stop()
        lib.shell(f"mount -o remount,rw {self.state}", check=True)
        node.mount.start()
        node.wait("condition", "True all checks passed")

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


@pytest.mark.parametrize("how", ["fill", "lock"])
def test_every_command_is_refused(full, how):
    node, disk = full
    code = getattr(disk, how)(node)
    before = what_is_said(node)
    for name, text in COMMANDS:
        assert lib.error_of(node.mount.command, name, text) == code, name
        assert what_is_said(node) == before, name
    path = node.mount.vpath("bad", "kubelet", node.source)
    assert lib.error_of(lib.write_file, path, "it is wrong\n") == code
    assert what_is_said(node) == before
    disk.free(node)
    node.mount.command("rollback", "2")
    assert "at generation 2 (rollback)" in node.status("condition") and node.source in node.bad()


def test_a_command_that_was_refused_is_not_there_after_a_restart(full):
    node, disk = full
    before = what_is_said(node)
    disk.fill(node)
    for name, text in COMMANDS:
        assert lib.error_of(node.mount.command, name, text) == errno.ENOSPC
    node.mount.kill_child("lkgfs-engine")
    node.mount.sync()
    assert what_is_said(node) == before


def test_a_change_on_try_waits_for_the_disk(full):
    node, disk = full
    node.mount.command("try", "1h")
    disk.fill(node)
    node.mount.drop("20-b.conf", "registryBurst: 9\n")
    assert "\nregistryBurst: 3\n" in node.mount.document()
    assert node.status("condition").startswith("Unknown failed to publish: No space left on device")
    disk.free(node)
    node.wait("condition", "True on try until ")
    assert "\nregistryBurst: 9\n" in node.mount.document()


def test_what_was_held_before_stays_held(full):
    node, disk = full
    node.mount.command("hold", "on")
    held = node.mount.document()
    disk.fill(node)
    assert lib.error_of(node.mount.command, "hold", "off") == errno.ENOSPC
    node.mount.drop("20-b.conf", "registryBurst: 9\n")
    node.mount.kill_child("lkgfs-engine")
    node.mount.sync()
    assert node.mount.document() == held and "held at generation" in node.status("condition")
    disk.free(node)
    node.mount.command("hold", "off")
    assert "\nregistryBurst: 9\n" in node.mount.document()
