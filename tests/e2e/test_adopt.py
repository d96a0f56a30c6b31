# SPDX-License-Identifier: Apache-2.0
"""lkgfs adopt and abandon on trees of nodes as installers make them (tests/e2e/adopt/NAME/tree)."""
import os
import pathlib
import re
import shutil
import stat

import pytest

import lkgfs_testlib as lib

GOOD, DIFFERENT, FAILED = 0, 1, 2
TREES = pathlib.Path(__file__).resolve().parent / "adopt"
NAMES = sorted(path.name for path in TREES.iterdir())
REFUSED = {"k3s": "a node of k3s", "rke2": "a node of RKE2", "unknown": "this node is not known"}
ADOPTED = [name for name in NAMES if name not in REFUSED]
DROPIN = "etc/systemd/system/kubelet.service.d/20-lkgfs.conf"


def tool(root, *words):
    result = lib.run(lib.LKGFS, *words, "--root", root)
    return result.returncode, result.stdout.decode(), result.stderr.decode()


def everything(root):
    """Contents, modes and owners."""
    found = {}
    for path in sorted(pathlib.Path(root).rglob("*")):
        st = path.lstat()
        found[str(path.relative_to(root))] = (st.st_mode, st.st_uid, st.st_gid,
                                              path.read_bytes() if stat.S_ISREG(st.st_mode) else None)
    return found


@pytest.fixture
def node(tmp_path):
    def make(name):
        root = tmp_path / "node"
        shutil.copytree(TREES / name / "tree", root)
        return root
    return make


def bindir(text):
    """The path of the tool is the only thing that depends on where it is installed."""
    return re.sub(r"\S*/lkgfs(?= (gate|\|\|))", "BINDIR/lkgfs", text)


@pytest.mark.parametrize("name", ADOPTED)
def test_dry_run(node, name):
    root = node(name)
    before = everything(root)
    code, out, err = tool(root, "adopt", "--dry-run")
    assert (code, err) == (GOOD, "")
    assert bindir(out) == (TREES / name / "want").read_text()
    assert everything(root) == before


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_adopted_is_said(node, name):
    root = node(name)
    before = everything(root)
    code, out, err = tool(root, "adopt")
    assert (code, out) == (DIFFERENT, "") and REFUSED[name] in err
    assert everything(root) == before


@pytest.mark.parametrize("name", ADOPTED)
def test_there_and_back(node, name):
    root = node(name)
    before = everything(root)
    code, _, err = tool(root, "adopt")
    assert code == GOOD, err
    assert (root / DROPIN).exists() and (root / "etc/lkgfs/adopted.json").exists()
    adopted = everything(root)
    assert {path: adopted[path] for path in before} == before, "the files of the installer stay"
    assert tool(root, "adopt")[0] == DIFFERENT
    assert tool(root, "adopt", "--over")[0] == GOOD
    again = everything(root)
    assert {path for path in adopted if adopted[path] != again[path]} <= {"etc/lkgfs/adopted.json"}, "the record's order may differ"
    assert again.keys() == adopted.keys()
    code, _, err = tool(root, "abandon")
    assert code == GOOD, err
    assert everything(root) == before
    assert tool(root, "abandon")[0] == DIFFERENT


def test_a_replaced_file_comes_back(node):
    root = node("kubeadm")
    for path in ("etc/lkgfs/config.yaml", DROPIN):
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(f"# mine: {path}\n")
        (root / path).chmod(0o640)
        os.chown(root / path, 1, 2)
    before = everything(root)
    assert tool(root, "adopt")[0] == GOOD
    assert (root / (DROPIN + ".before-lkgfs")).read_text() == f"# mine: {DROPIN}\n"
    assert tool(root, "adopt", "--over")[0] == GOOD
    assert tool(root, "abandon")[0] == GOOD
    assert everything(root) == before


def test_another_configuration_is_refused(node):
    root = node("kubeadm")
    directory = root / "etc/kubernetes/kubelet.conf.d"
    directory.mkdir()
    (directory / "50-x.conf").write_text(lib.HEADER + "maxPods: 7\n")
    before = everything(root)
    code, out, err = tool(root, "adopt")
    assert code == DIFFERENT and "\n+maxPods: 7\n" in out and "--force" in err
    assert everything(root) == before
    assert tool(root, "adopt", "--force")[0] == GOOD


def test_what_was_served_is_baked(node):
    root = node("kubeadm")
    assert tool(root, "adopt")[0] == GOOD
    base = root / "var/lib/kubelet/config.yaml"
    old = base.read_bytes()
    (root / "etc/kubernetes/kubelet.conf.d/50-x.conf").write_text(lib.HEADER + "maxPods: 7\n")
    code, _, err = tool(root, "abandon")
    assert code == GOOD and "kubelet.conf.d is not empty" in err
    assert "\nmaxPods: 7\n" in base.read_text()
    assert (root / "var/lib/kubelet/config.yaml.before-abandon").read_bytes() == old
    assert not (root / DROPIN).exists() and not (root / "etc/lkgfs").exists()


# A file where a directory is needed, and a directory where a file is needed: each stops adopt at another step.
@pytest.mark.parametrize("path, is_directory", [
    ("etc/lkgfs", False),
    ("etc/lkgfs/adopted.json", True),
    ("etc/lkgfs/config.yaml", True),
    ("etc/systemd/system/lkgfs.service.d", False),
    ("etc/systemd/system/lkgfs.service.d/10-adopted.conf", True),
    ("etc/systemd/system/kubelet.service.d", False),
    (DROPIN, True),
])
def test_a_failure_undoes_everything(node, path, is_directory):
    root = node("kubespray")
    (root / path).parent.mkdir(parents=True, exist_ok=True)
    if is_directory:
        (root / path / "x").mkdir(parents=True)
    else:
        (root / path).write_text("")
    before = everything(root)
    code, _, err = tool(root, "adopt")
    assert code in (DIFFERENT, FAILED) and err
    assert everything(root) == before


def test_an_edited_file_is_kept(node):
    root = node("kubeadm")
    assert tool(root, "adopt")[0] == GOOD
    config = root / "etc/lkgfs/config.yaml"
    config.write_text(config.read_text() + "historyLimit: 4\n")
    assert tool(root, "abandon")[0] == GOOD
    assert "historyLimit" in (root / "etc/lkgfs/config.yaml.after-lkgfs").read_text() and not config.exists()
