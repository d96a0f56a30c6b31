# SPDX-License-Identifier: Apache-2.0
"""Root runs the tool in a directory that somebody else may write, who exchanges each name between each two system calls.

tests/lib/exchange.c stops the tool there. Whatever is exchanged, a file of root elsewhere keeps its owner, its mode and its content,
nobody gets a readable copy of it, and the tool ends.
"""
import os
import shutil

import pytest

import lkgfs_testlib as lib

from test_adopt import TREES

SECRET = "serverTLSBootstrap: true  # only for root\n"
USER = 4711
EVERY = "LKGFS_EVERY_STOP" in os.environ


@pytest.fixture
def place(tmp_path):
    """A node's configuration with a drop-in directory of USER, and a file of root."""
    tmp_path.chmod(0o755)
    victim = tmp_path / "victim"
    victim.write_text(lib.HEADER + SECRET)
    victim.chmod(0o600)
    source = tmp_path / "kubernetes"
    lib.make_tree(source)
    (tmp_path / "config.yaml").write_text(f"apiVersion: config.lkgfs.io/v1alpha1\nkind: LkgfsConfiguration\nsourceDir: {source}\n")
    (tmp_path / "editor").write_text("#!/bin/sh\nprintf 'maxPods: 77\\n' >> \"$1\"\n")
    (tmp_path / "editor").chmod(0o755)
    return tmp_path


def fresh(place, name):
    """The directory that is USER's."""
    shutil.rmtree(place / name, ignore_errors=True)
    (place / name).mkdir()
    (place / name / "50-a.conf").write_text(lib.HEADER + "podsPerCore: 3\n")
    (place / name / "kubelet.conf").write_text(lib.HEADER)
    for path in (place / name, *(place / name).iterdir()):
        os.chown(path, USER, USER)


def edit(place):
    fresh(place, "kubernetes/kubelet.conf.d")
    return place / "kubernetes/kubelet.conf.d", [lib.LKGFS, "edit", "50-a.conf", "--node-config", place / "config.yaml"]


def edit_new(place):
    fresh(place, "kubernetes/kubelet.conf.d")
    return place / "kubernetes/kubelet.conf.d", [lib.LKGFS, "edit", "60-new.conf", "--node-config", place / "config.yaml"]


def bake(place):
    fresh(place, "out")
    return place / "out", [lib.LKGFS, "bake", "--force", "--config", place / "kubernetes/kubelet.conf", "--directory", place / "out"]


def report(place):
    fresh(place, "out")
    return place / "out", [lib.LKGFS, "report", "--node-config", place / "config.yaml", "--file", place / "out/report.html"]


def adopt(place):
    shutil.rmtree(place / "node", ignore_errors=True)
    shutil.copytree(TREES / "kubeadm/tree", place / "node")
    return place / "node", [lib.LKGFS, "adopt", "--root", place / "node"]


def abandon(place):
    directory, words = adopt(place)
    lib.run(*words, check=True)
    return directory, [lib.LKGFS, "abandon", "--root", directory]


def check(place, what):
    st = os.stat(place / "victim")
    assert (st.st_uid, st.st_gid, st.st_mode & 0o7777) == (0, 0, 0o600), what
    assert (place / "victim").read_text() == lib.HEADER + SECRET, what
    for path in (path for path in place.rglob("*") if path.is_file() and not path.is_symlink()):
        st = path.stat()
        assert SECRET not in path.read_text(errors="replace") or (st.st_uid, st.st_mode & 0o077) == (0, 0), f"{what}: {path} has the secret"


@pytest.mark.limit(600)
@pytest.mark.parametrize("kind", ["symlink", "hardlink", "fifo"])
@pytest.mark.parametrize("verb", [edit, edit_new, bake, report, adopt, abandon], ids=lambda verb: verb.__name__)
def test_exchanged_names_give_nothing_away(place, verb, kind):
    step = 11 if verb in (adopt, abandon) and not EVERY else 1  # these look at a whole node: hundreds of calls
    number = 1 - step
    while True:
        number += step
        directory, words = verb(place)
        result = lib.run(lib.BUILD / "tests/lib/exchange", directory, place / "victim", kind, str(number), *words, input=b"s\n",
                         env={**os.environ, "EDITOR": str(place / "editor"), "TMPDIR": str(place)})
        what = f"stop {number}: {result.stdout.decode()}{result.stderr.decode()}"
        assert result.returncode in (0, 3), what
        check(place, what)
        if result.returncode == 3:
            break
    assert number > 10, what
