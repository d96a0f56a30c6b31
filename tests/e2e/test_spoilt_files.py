# SPDX-License-Identifier: Apache-2.0
"""Whatever a file that lkgfs left for its next process has become, that process starts, and the next change is served.

The files are not listed here: they are all that a node of its own has, in the state directory and in the private runtime directory.
"""
import errno
import os
import shutil
import signal

import pytest

import lkgfs_testlib as lib
from lkgfs_node import Node

LIKE_OTHERS = ("blobs/", "pinned/", "history/")  # files whose names are numbers or digests
OUTSIDE = "/etc/passwd"


def cut(path):
    shutil.copyfile(path + ".away", path)
    os.truncate(path, os.path.getsize(path) // 2)


def other_owner(path):
    shutil.copyfile(path + ".away", path)
    os.chown(path, 65533, 65533)


def full(path):
    os.makedirs(path + "/full/of/directories")


def huge(path):
    with open(path, "wb") as file:
        file.truncate(1 << 30)


def link_to_fifo(path):
    os.mkfifo(path + ".fifo")
    os.symlink(path + ".fifo", path)


SPOILT = {"fifo": os.mkfifo, "link to a fifo": link_to_fifo, "link to nothing": lambda path: os.symlink("/nothing", path),
          "link to a file": lambda path: os.symlink(OUTSIDE, path), "directory": full,
          "empty": lambda path: open(path, "wb").close(), "cut": cut, "other owner": other_owner, "1 GiB": huge}


def kind_of(name):
    for prefix in LIKE_OTHERS:
        if prefix in name:
            return prefix + (os.path.basename(name) if prefix == "history/" else "")
    return name


def files_of(node):
    """Those that the killed processes left, by what they are for; several of one kind together."""
    found = {}
    for top in (node.mount.state, os.path.join(node.mount.runtime, "private")):
        for folder, _, names in os.walk(top):
            for name in names:
                path = os.path.join(folder, name)
                if os.path.isfile(path) and not os.path.islink(path) and not name.endswith((".away", "~tmp")):
                    found.setdefault(kind_of(os.path.relpath(path, node.mount.root)), []).append(path)
    return found


def busy_node(mounts):
    """It has history, checkpoints, a trial, a bad mark, a process that runs."""
    n = Node(mounts, config={"engineTimeout": "2s"})
    lib.write_file(n.mount.behind("passes"), "through\n")
    bad = n.assign("maxPods: 42\n")
    for _ in range(3):
        n.crash()
    n.mount.wait_for(lambda: bad in n.bad(), "it is bad")
    n.assign("maxPods: 43\n")
    n.live()
    return n


def served(mount):
    try:
        return mount.document()
    except OSError as error:
        assert error.errno in (errno.EIO, errno.ENOENT)
        return ""


def check_next_change(n, value):
    assert lib.read_file(n.mount.path("passes")) == b"through\n"
    lib.write_file(n.mount.behind("kubelet.conf.d/90-next.conf"), lib.HEADER + f"podsPerCore: {value}\n")
    n.mount.wait_for(lambda: f"\npodsPerCore: {value}\n" in served(n.mount), "the next change is served")
    n.mount.wait_for(lambda: lib.error_of(n.mount.command, "sync", "now") == 0, "a look at everything")


def kill_all(n):
    os.kill(n.mount.process.pid, signal.SIGSTOP)
    for name in ("lkgfs-engine", "lkgfs-fs"):
        n.mount.kill_child(name)
    n.mount.kill_supervisor()


def remove_traces(path):
    for name in (path + ".away", path + ".fifo"):
        if os.path.lexists(name):
            os.unlink(name)


@pytest.mark.limit(120)
@pytest.mark.parametrize("how", SPOILT)
def test_all_that_the_next_processes_find(mounts, how):
    """Every process is killed, and lkgfsd started, once for each file."""
    n, before = busy_node(mounts), lib.read_file(OUTSIDE)
    try:
        done = set()
        while True:
            kill_all(n)
            todo = sorted((name, paths) for name, paths in files_of(n).items() if name not in done)
            if not todo:
                break
            name, paths = todo[0]
            done.add(name)
            print("spoilt:", name)
            for path in paths:
                os.rename(path, path + ".away")
                SPOILT[how](path)
            n.mount.start()
            check_next_change(n, len(done))
            for path in paths:
                remove_traces(path)
        n.mount.start()
        assert lib.read_file(OUTSIDE) == before
        assert len(done) > 20
    finally:
        n.close()
