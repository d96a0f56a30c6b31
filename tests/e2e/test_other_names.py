# SPDX-License-Identifier: Apache-2.0
"""A layer that is changed in place through a name that inotify does not report: another hard link, a file mounted over it.

Rule: docs/specification.md 2.5.
"""
import os

import pytest

import lkgfs_testlib as lib
from lkgfs_node import Node

ROUNDS = 8
LAYERS = {"drop-in": "kubelet.conf.d/60-y.conf", "base": "kubelet.conf"}


def text(value):
    return lib.HEADER + f"maxPods: {value}\n"


def hard_link(layer, other):
    os.link(layer, other)


def mounted_file(layer, other):
    """As a container or a kind node gets a single file."""
    lib.write_file(other, lib.read_file(layer).decode())
    lib.shell(f"mount --bind {other} {layer}")


def mounted_link_target(layer, other):
    os.rename(layer, layer + "-target")
    os.symlink(os.path.basename(layer) + "-target", layer)
    mounted_file(layer + "-target", other)


@pytest.fixture(params=LAYERS)
def place(request, mounts):
    """(node, layer, other name), not started yet."""
    n = Node(mounts, start=False)
    layer, other = os.path.join(n.mount.source, LAYERS[request.param]), os.path.join(n.mount.root, "other")
    lib.write_file(layer, text(1))
    yield n, layer, other
    n.close()
    for name in (layer, layer + "-target"):
        if os.path.ismount(name):
            lib.shell(f"umount {name}")


@pytest.mark.parametrize("name", [hard_link, mounted_file, mounted_link_target], ids=lambda f: f.__name__)
def test_other_name(place, name):
    n, layer, other = place
    name(layer, other)
    n.mount.start()
    assert "[LKG2035]" in n.status("findings"), n.status("findings")
    for value in range(100, 100 + ROUNDS):  # whoever starts reads what was written before
        lib.write_file(other, text(value))
        assert f"\nmaxPods: {value}\n" in n.crash(0), n.status("findings")
    for value in range(200, 200 + ROUNDS):  # the same for who says that it starts
        lib.write_file(other, text(value))
        n.mount.command("startup", "now")
        assert f"\nmaxPods: {value}\n" in n.mount.document()
    lib.write_file(other, text(300))  # and without any start
    n.mount.wait_for(lambda: "\nmaxPods: 300\n" in n.mount.document(), "a poll")
    assert n.mount.condition()[0] != "False"


def test_a_second_link_that_comes_and_goes(place):
    n, layer, other = place
    n.mount.start()
    assert "[LKG2035]" not in n.status("findings")
    os.link(layer, other)
    n.mount.wait_for(lambda: "[LKG2035]" in n.status("findings"), "the second link is said")
    lib.write_file(other, text(70))
    n.mount.wait_for(lambda: "\nmaxPods: 70\n" in n.mount.document(), "a poll")
    os.unlink(other)
    n.mount.wait_for(lambda: "[LKG2035]" not in n.status("findings"), "it is an ordinary file again")


def test_written_behind_the_mount_just_before_a_start(place):
    n, layer, _ = place
    n.mount.start()
    for value in range(100, 100 + ROUNDS):
        lib.write_file(layer, text(value))
        assert f"\nmaxPods: {value}\n" in n.crash(0), n.status("findings")
