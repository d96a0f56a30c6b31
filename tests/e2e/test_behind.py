# SPDX-License-Identifier: Apache-2.0
"""A read or stat through the view that begins after a change behind the mount has ended sees that change, whole.

tests/lib/behind-pairs.c makes the pairs; by hand LKGFS_PAIRS=100000 (docs/hacking.md).
"""
import contextlib
import os
import subprocess

import pytest

import lkgfs_testlib as lib

BY_HAND = "LKGFS_PAIRS" in os.environ
PAIRS = int(os.environ.get("LKGFS_PAIRS", "600"))  # of each kind of change, on each file system
PROGRAM = lib.BUILD / "tests/lib/behind-pairs"


def on_disk(_):
    pass


def on_tmpfs(source):
    lib.run("mount", "-t", "tmpfs", "none", source, check=True)


def on_overlay(source):
    parts = {name: f"{source}.{name}" for name in ("lower", "upper", "work")}
    lib.run("mount", "-t", "tmpfs", "none", source, check=True)  # overlayfs wants an upper directory with its own features
    for name in parts:
        parts[name] = os.path.join(source, name)
        os.mkdir(parts[name])
    lib.run("mount", "-t", "overlay", "-o", "lowerdir={lower},upperdir={upper},workdir={work}".format(**parts), "none", source, check=True)


def on_image(kind):
    def make(source):
        image = f"{source}.img"
        lib.run("truncate", "-s", "400M", image, check=True)
        lib.run(f"mkfs.{kind}", "-q", image, check=True)
        lib.run("mount", "-o", "loop", image, source, check=True)
    return make


FILE_SYSTEMS = {"disk": on_disk, "tmpfs": on_tmpfs, "overlayfs": on_overlay}
if BY_HAND:
    FILE_SYSTEMS |= {"ext4": on_image("ext4"), "xfs": on_image("xfs")}


@contextlib.contextmanager
def other_namespace():
    """A process with a mount namespace from before the mount."""
    with subprocess.Popen(["unshare", "--mount", "--propagation", "private", "sh", "-c", "echo; exec sleep infinity"],
                          stdout=subprocess.PIPE) as process:
        try:
            process.stdout.readline()
            yield process.pid
        finally:
            process.kill()


@pytest.mark.limit(3600 if BY_HAND else 100)
@pytest.mark.parametrize("over", [True, False], ids=["over", "aside"])
@pytest.mark.parametrize("system", FILE_SYSTEMS)
def test_what_was_written_is_read(over, system):
    with contextlib.ExitStack() as stack:
        ways = {}

        def tree(source, **options):
            os.mkdir(source, 0o755)
            FILE_SYSTEMS[system](source)
            lib.make_tree(source, **options)
            os.mkdir(f"{source}.bind")
            lib.run("mount", "--bind", source, f"{source}.bind", check=True)
            ways["bind mount"] = f"{source}.bind"
            ways["other namespace"] = f"/proc/{stack.enter_context(other_namespace())}/root{source}"

        mount = stack.enter_context(lib.Mount(over=over, tree=tree))
        ways["descriptor"] = mount.behind()
        cases = [(way, folder) for way in ways for folder in ("manifests", ".")]
        for way, folder in cases:
            result = lib.run(str(PROGRAM), os.path.join(ways[way], folder), mount.path(folder), str(-(-PAIRS // len(cases))), timeout=None)
            assert result.returncode == 0, f"{way}, {folder}: {result.stdout.decode()}{result.stderr.decode()}"
