# SPDX-License-Identifier: Apache-2.0
"""lkgfs adopt and abandon on trees of nodes as installers make them (tests/e2e/adopt/NAME/tree)."""
import os
import pathlib
import re
import shutil
import stat

import pytest

import lkgfs_testlib as lib
from test_static_pods import pod

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


def test_a_system_extension_needs_a_unit_outside_of_it(node):
    """The kubelet's drop-in lets it start with a view only, and systemd finds no unit of an extension at a boot."""
    root = node("plain")
    extension, setup = (pathlib.Path(root, path) for path in ("usr/lib/extension-release.d/extension-release.lkgfs", "etc/systemd/system/lkgfs-setup.service"))
    for path in (extension, setup):
        path.parent.mkdir(parents=True, exist_ok=True)
    extension.write_text("ID=_any\n")
    before = everything(root)
    code, out, err = tool(root, "adopt")
    assert (code, out) == (DIFFERENT, "") and f"nothing would start it at the next boot; make '{setup}'" in err
    assert everything(root) == before
    setup.touch()
    assert tool(root, "adopt")[0] == GOOD


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


def test_what_an_earlier_abandon_has_kept_stays(node):
    root = node("kubeadm")
    base, config = root / "var/lib/kubelet/config.yaml", root / "etc/lkgfs/config.yaml"
    drop_in = root / "etc/kubernetes/kubelet.conf.d/50-x.conf"
    kept = {}
    for number, ending in ((7, ""), (8, ".1"), (9, ".2")):
        assert tool(root, "adopt", "--force")[0] == GOOD
        kept[f"{base}.before-abandon{ending}"] = base.read_bytes()
        config.write_text(f"{config.read_text()}# {number}\n")
        kept[f"{config}.after-lkgfs{ending}"] = config.read_bytes()
        drop_in.parent.mkdir(exist_ok=True)
        drop_in.write_text(f"{lib.HEADER}maxPods: {number}\n")
        code, _, err = tool(root, "abandon")
        assert code == GOOD and f"config.yaml.before-abandon{ending}\n" in err and f"is kept as config.yaml.after-lkgfs{ending}" in err, err
        assert f"\nmaxPods: {number}\n" in base.read_text() and not config.exists()
        assert {path: pathlib.Path(path).read_bytes() for path in kept} == kept


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


# Static pods. Rule: docs/specification.md 2.17.

PODS = "etc/lkgfs/config.d/50-static-pods.conf"


@pytest.fixture
def control_plane(node):
    root = node("kubeadm")
    for name in ("etcd", "kube-apiserver"):
        (root / f"etc/kubernetes/manifests/{name}.yaml").write_text(pod(name))
    return root


def test_static_pods_are_adopted_with_the_node(control_plane):
    before = everything(control_plane)
    code, out, err = tool(control_plane, "adopt", "--static-pods", "--dry-run")
    assert code == GOOD and "when the kubelet is restarted:\n    etcd.yaml\n    kube-apiserver.yaml\n" in out, err
    assert "no difference but in staticPodPath" in out and everything(control_plane) == before
    code, _, err = tool(control_plane, "adopt", "--static-pods")
    assert code == GOOD and "restarts each static pod once (etcd.yaml, kube-apiserver.yaml)" in err
    assert err.index("enable --now lkgfs.service") < err.index("systemctl restart kubelet"), "the view is there first; the kubelet waits for people"
    assert "not run, systemd does not run here: systemctl restart kubelet" not in err
    merged = lib.run(lib.LKGFS, "check", "--node-config", control_plane / "etc/lkgfs/config.yaml", "-c", "static-pods", "-m", control_plane / "etc/kubernetes")
    assert merged.stdout.startswith(b"static-pods: valid, 2 manifests, "), (merged.stdout, merged.stderr)
    assert tool(control_plane, "adopt", "--over")[0] == GOOD and (control_plane / PODS).exists(), "they stay adopted"
    code, _, err = tool(control_plane, "abandon")
    assert code == GOOD and err.index("try-restart kubelet") < err.index("disable --now lkgfs"), "before the copies are the only ones, and go"
    assert everything(control_plane) == before


def test_static_pods_are_adopted_later(control_plane):
    assert tool(control_plane, "adopt")[0] == GOOD
    config = control_plane / "etc/lkgfs/config.yaml"
    config.write_text(config.read_text() + "historyLimit: 4\n")
    own = control_plane / "etc/kubernetes/kubelet.conf.d/50-x.conf"
    own.write_text(lib.HEADER + "maxPods: 7\n")
    before = everything(control_plane)
    code, out, _ = tool(control_plane, "adopt", "--static-pods", "--dry-run")
    assert code == GOOD and f"File: /{PODS}\n" in out and "File: /etc/lkgfs/config.yaml" not in out
    code, _, err = tool(control_plane, "adopt", "--static-pods")
    assert code == GOOD and "reload lkgfs.service" in err and "restart lkgfs.service" not in err, err
    now = everything(control_plane)
    assert now.keys() - before.keys() == {PODS, os.path.dirname(PODS)}
    assert {name for name in before if before[name] != now[name]} == {"etc/lkgfs/adopted.json"}, "what was configured since stays"
    code, _, err = tool(control_plane, "adopt", "--static-pods")
    assert code == DIFFERENT and "adopted before" in err
    own.unlink()
    assert tool(control_plane, "abandon")[0] == GOOD


@pytest.mark.parametrize("name, text, said", [
    ("etcd.yaml", "kind: Pod\nmetadata: {name: x", "etcd.yaml:2:"),
    ("a.yaml", pod("etcd"), "[LKG2042]"),
    ("etcd.yaml.bak", pod("etcd"), "[LKG2043]"),
    ("x y.yaml", pod("x"), "[LKG2041]"),
], ids=["broken", "twice", "copy", "name"])
def test_no_pod_is_lost_by_adopting(control_plane, name, text, said):
    (control_plane / "etc/kubernetes/manifests" / name).write_text(text)
    before = everything(control_plane)
    code, _, err = tool(control_plane, "adopt", "--static-pods")
    assert code == DIFFERENT and said in err and "not served would be: " in err, err
    assert everything(control_plane) == before


def test_a_directory_of_its_own_is_configured(control_plane):
    base = control_plane / "var/lib/kubelet/config.yaml"
    base.write_text(base.read_text().replace("/etc/kubernetes/manifests", "/etc/kubernetes/pods.d/"))
    (control_plane / "etc/kubernetes/manifests").rename(control_plane / "etc/kubernetes/pods.d")
    code, _, err = tool(control_plane, "adopt", "--static-pods")
    assert code == GOOD and "(etcd.yaml, kube-apiserver.yaml)" in err, err
    assert (control_plane / PODS).read_text().endswith("  source: pods.d\n")


def test_a_view_beside_its_source_has_no_static_pods(node):
    """When lkgfs is stopped there are no copies where the kubelet would look."""
    root = node("kubespray")
    before = everything(root)
    code, _, err = tool(root, "adopt", "--static-pods")
    assert code == DIFFERENT and "mounted beside" in err
    assert everything(root) == before


def test_a_directory_in_the_way_is_refused(control_plane):
    """Copies of the manifests would have no place in it, for the day without lkgfs."""
    (control_plane / "etc/kubernetes/static-pods").mkdir()
    before = everything(control_plane)
    code, _, err = tool(control_plane, "adopt", "--static-pods")
    assert code == DIFFERENT and "is in the way" in err
    assert everything(control_plane) == before


def test_without_extended_attributes_there_would_be_no_copies(control_plane):
    source = control_plane / "etc/kubernetes"
    shutil.copytree(source, control_plane / "saved")
    lib.run("mount", "-t", "ramfs", "none", source, check=True)
    try:
        shutil.copytree(control_plane / "saved", source, dirs_exist_ok=True)
        code, _, err = tool(control_plane, "adopt", "--static-pods")
        assert code == DIFFERENT and "extended attributes" in err, err
    finally:
        lib.run("umount", source, check=True)


def test_an_edited_dropin_that_was_kept_is_not_in_the_way(control_plane):
    assert tool(control_plane, "adopt", "--static-pods")[0] == GOOD
    dropin = control_plane / PODS
    dropin.write_text(dropin.read_text() + "  trial: {duration: 6m}\n")
    assert tool(control_plane, "abandon")[0] == GOOD
    kept = dropin.with_name(f"{dropin.name}.after-lkgfs")
    assert "6m" in kept.read_text() and not dropin.exists()
    assert tool(control_plane, "adopt", "--static-pods")[0] == GOOD and "6m" in kept.read_text()


def test_a_failure_to_add_static_pods_undoes_it(control_plane):
    assert tool(control_plane, "adopt")[0] == GOOD
    (control_plane / PODS).parent.symlink_to("nowhere")  # the record is written before this is noticed
    before = everything(control_plane)
    code, _, err = tool(control_plane, "adopt", "--static-pods")
    assert code == FAILED and "nothing has changed" in err, err
    assert everything(control_plane) == before
    (control_plane / PODS).parent.unlink()
    assert tool(control_plane, "adopt", "--static-pods")[0] == GOOD
