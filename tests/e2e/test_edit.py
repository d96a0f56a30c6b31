# SPDX-License-Identifier: Apache-2.0
"""lkgfs edit: the editor is a program that a test controls, the answers come from standard input.

Rule: docs/specification.md 2.17, 4.18.
"""
import os
import stat

import pytest

import lkgfs_testlib as lib
import test_static_pods as static
import test_static_pods_trial as trial

GOOD, DIFFERENT, FAILED, USAGE = 0, 1, 2, 64

EDITOR = """#!/bin/sh
printf '%s\\n' "$1" >> "$0.seen"
n=$(($(cat "$0.count" 2> /dev/null || echo 0) + 1))
echo $n > "$0.count"
[ -e "$0.$n" ] && cat "$0.$n" > "$1"
[ -e "$0.run" ] && . "$0.run"
[ ! -e "$0.fail" ]
"""


def editing(mount, tmp_path, header, default):
    """edit(answers, *contents, words=...): each run of the editor writes the next content."""
    editor = tmp_path / "editor"
    editor.write_text(EDITOR)
    editor.chmod(0o755)
    private = tmp_path / "tmp"
    private.mkdir()

    def run(answers, *contents, words=default, user=None):
        for left in tmp_path.glob("editor.[0-9]*"):
            left.unlink()
        (tmp_path / "editor.count").unlink(missing_ok=True)
        for i, content in enumerate(contents):
            (tmp_path / f"editor.{i + 1}").write_text(header + content)
        result = lib.run(lib.LKGFS, "edit", *words, "--node-config", mount.config_path, "-m", mount.mountpoint,
                         input=answers.encode(), user=user, env={**os.environ, "EDITOR": str(editor), "VISUAL": "", "SUDO_EDITOR": "",
                                                                 "TMPDIR": str(private)})
        assert list(private.iterdir()) == [], "nothing is left behind"
        return result.returncode, result.stdout.decode(), result.stderr.decode()

    run.directory = tmp_path
    return run


@pytest.fixture
def edit(mount, tmp_path):
    return editing(mount, tmp_path, lib.HEADER, ("50-local.conf",))


def dropin(mount, name="50-local.conf"):
    return mount.path("kubelet.conf.d", name)


def test_what_is_saved_is_served(mount, edit):
    number = mount.generation()
    code, out, err = edit("s\n", "maxPods: 91\n")
    assert code == GOOD, err
    assert "\n+maxPods: 91\n" in out and "Takes effect " in out
    assert f"generation {mount.generation()} is served" in err and mount.generation() == number + 1
    assert "\nmaxPods: 91\n" in mount.document()
    assert stat.S_IMODE(os.stat(dropin(mount)).st_mode) == 0o644


def test_a_new_one_begins_with_its_header(mount, edit):
    (edit.directory / "editor.run").write_text('cp "$1" "$0.copy"; echo "maxPods: 5" >> "$1"')
    assert edit("s\n", words=())[0] == GOOD
    assert (edit.directory / "editor.copy").read_text() == lib.HEADER
    assert "\nmaxPods: 5\n" in mount.document(), "50-local.conf is the default"


def test_nothing_is_written_before_the_answer(mount, edit):
    served = mount.document()
    for answers in ("q\n", "", "x\n\nq\n"):
        code, out, err = edit(answers, "maxPods: 92\n")
        assert code == DIFFERENT and "nothing was changed" in err
    assert mount.document() == served and not os.path.exists(dropin(mount))


def test_a_mistake_is_shown_with_its_place(mount, edit):
    code, out, err = edit("q\n", "maxPods: many\n")
    assert code == DIFFERENT and f"{mount.source}/kubelet.conf.d/50-local.conf:3:10: error: maxPods" in out, err
    assert "It would be refused" in out and not os.path.exists(dropin(mount))


def test_edit_again_then_save(mount, edit):
    code, out, err = edit("e\ns\n", "maxPods: many\n", "maxPods: 93\n")
    assert code == GOOD and "\nmaxPods: 93\n" in mount.document(), err
    assert len((edit.directory / "editor.seen").read_text().splitlines()) == 2


def test_saved_anyway_is_refused_by_the_engine_and_said(mount, edit):
    code, _, err = edit("s\n", "maxPods: many\n")
    assert code == DIFFERENT and "is still served" in err
    assert b"many" in lib.read_file(dropin(mount)) and mount.status("condition").startswith("False ")


def test_the_other_drop_ins_count(mount, edit):
    mount.drop("40-other.conf", "imageGCHighThresholdPercent: 60\nimageGCLowThresholdPercent: 50\n")
    code, out, _ = edit("q\n", "imageGCLowThresholdPercent: 70\n")
    assert code == DIFFERENT and "It would be refused" in out


def test_a_new_dropin_is_like_the_others(mount, edit):
    """No more than all others permit, of their owner and group if these are the same."""
    for path, mode in zip(sorted(os.listdir(mount.path("kubelet.conf.d"))), (0o644, 0o640, 0o660)):
        os.chmod(dropin(mount, path), mode)
        os.chown(dropin(mount, path), 4711 if mode == 0o644 else 4712, 4713)
    assert edit("s\n", "maxPods: 91\n")[0] == GOOD
    st = os.stat(dropin(mount))
    assert (stat.S_IMODE(st.st_mode), st.st_uid, st.st_gid) == (0o640, 0, 4713)


def test_what_is_no_file_is_refused_at_once(mount, edit):
    os.mkfifo(mount.behind("kubelet.conf.d", "50-local.conf"))
    code, _, err = edit("s\n")
    assert code == FAILED and "is not a regular file" in err


def test_mode_and_owner_stay(mount, edit):
    mount.drop("50-local.conf", "maxPods: 1\n")
    os.chmod(dropin(mount), 0o640)
    os.chown(dropin(mount), 4711, 4712)
    assert edit("s\n", "maxPods: 94\n")[0] == GOOD
    st = os.stat(dropin(mount))
    assert (stat.S_IMODE(st.st_mode), st.st_uid, st.st_gid) == (0o640, 4711, 4712)


def test_unchanged(mount, edit):
    mount.drop("50-local.conf", "maxPods: 1\n")
    number = mount.generation()
    code, out, err = edit("", "maxPods: 1\n")
    assert (code, out) == (GOOD, "") and "was not changed" in err and mount.generation() == number


def test_changed_by_somebody_else_meanwhile(mount, edit):
    (edit.directory / "editor.run").write_text(f"printf '{lib.HEADER}maxPods: 7\\n' > {dropin(mount)}".replace("\n", "\\n"))
    code, out, err = edit("s\nq\n", "maxPods: 95\n")
    assert code == DIFFERENT and "Somebody else" in out, err
    assert b"maxPods: 7" in lib.read_file(dropin(mount))


def test_try(mount, edit):
    code, _, err = edit("t\n", "maxPods: 96\n")
    assert code == GOOD and "lkgfs commit" in err
    assert "try" in mount.status("hold") and "\nmaxPods: 96\n" in mount.document()
    assert mount.tool("commit").returncode == GOOD


def test_wrong_use(mount, edit):
    for name in ("x.yaml", "../x.conf", ".x.conf", "a/b.conf", ".conf"):
        code, _, err = edit("", words=(name,))
        assert code == USAGE and "is not a drop-in" in err, name
    (edit.directory / "editor.fail").write_text("")
    code, _, err = edit("s\n", "maxPods: 97\n")
    assert code == FAILED and "failed; nothing was changed" in err and not os.path.exists(dropin(mount))


# Manifests of static pods.

ENDPOINT_DOWN = "etcd: livenessProbe: the health endpoint answers with status 500"


@pytest.fixture
def endpoint():
    with trial.Endpoint() as endpoint:
        yield endpoint


@pytest.fixture
def pods(endpoint):
    with trial.mounted(endpoint) as mount:
        yield mount


@pytest.fixture
def edit_pod(pods, tmp_path):
    return editing(pods, tmp_path, "", ("etcd",))


def probed(endpoint, image):
    return trial.with_probe("etcd", image, endpoint.port)


def test_a_manifest_is_saved_and_its_verdict_waited_for(pods, edit_pod, endpoint):
    code, out, err = edit_pod("s\n", probed(endpoint, "etcd:2"))
    assert code == GOOD, err
    assert "--- etcd.yaml\n+++ with this file\n" in out and "\n-    image: etcd:1\n+    image: etcd:2\n" in out
    said = [line for line in err.splitlines() if line.startswith("lkgfs edit: etcd.yaml: ")]
    assert said[0].startswith("lkgfs edit: etcd.yaml: on trial") and said[-1] == "lkgfs edit: etcd.yaml: good", err
    assert static.served(pods)["etcd.yaml"] == probed(endpoint, "etcd:2") == pods.read("manifests/etcd.yaml").decode()
    assert stat.S_IMODE(os.stat(pods.path("manifests/etcd.yaml")).st_mode) == 0o600
    assert sorted(os.listdir(pods.path("manifests"))) == ["etcd.yaml", "kube-apiserver.yaml"], "nothing is left beside it"


def test_a_comment_restarts_nothing(pods, edit_pod):
    code, out, _ = edit_pod("s\n", "# why\n" + pods.read("manifests/etcd.yaml").decode(), words=("etcd",))
    assert code == 0 and "The pod does not change" in out and "starts the pod anew" not in out


def test_manifests_are_where_the_kubelet_looks_for_them(pods, edit_pod):
    os.mkdir(pods.path("pods.d"))
    for name in ("etcd", "kube-apiserver", "other"):
        pods.write(f"pods.d/{name}.yaml", static.pod(name), 0o600)
    pods.drop("50-pods.conf", f"staticPodPath: {pods.mountpoint}/pods.d\n")
    pods.wait_for(lambda: "other.yaml" in static.served(pods), "the other directory", component="static-pods")
    os.unlink(pods.path("pods.d/etcd.yaml"))
    code, _, err = edit_pod("s\n", static.pod("etcd", "etcd:2"), words=("etcd",))
    assert code == USAGE and "a manifest of a static pod" in err
    code, _, err = edit_pod("s\n", static.pod("other", "etcd:2"), words=("other",))
    assert code == 0, err
    assert static.served(pods)["other.yaml"] == static.pod("other", "etcd:2")
    checked = pods.tool("check", "--node-config", pods.config_path, "-c", "static-pods")
    assert checked.returncode == 0 and b"2 manifest" in checked.stdout + checked.stderr


def test_a_link_is_not_replaced(pods, edit_pod):
    os.rename(pods.path("manifests/etcd.yaml"), pods.path("manifests/.etcd"))
    os.symlink(".etcd", pods.path("manifests/etcd.yaml"))
    code, _, err = edit_pod("s\n", static.pod("etcd", "etcd:2"), words=("etcd",))
    assert code == FAILED and "is a symbolic link" in err and os.path.islink(pods.path("manifests/etcd.yaml"))


def test_a_manifest_that_goes_back_says_why(pods, edit_pod, endpoint):
    before = static.served(pods)
    endpoint.status = 500
    code, _, err = edit_pod("s\n", probed(endpoint, "etcd:2"), words=("etcd.yaml",))
    assert code == DIFFERENT and f"etcd.yaml: on trial: {ENDPOINT_DOWN}\n" in err, err
    assert f"etcd.yaml: bad: failed trial period, not healthy: {ENDPOINT_DOWN} (etcd.yaml@" in err
    pods.wait_for(lambda: static.served(pods) == before, "the last good manifest", component="static-pods")
    status = pods.tool("status", "-c", "static-pods").stdout.decode()
    assert "\n  pod       etcd.yaml: back since " in status, status


def test_nobody_has_to_wait(pods, edit_pod, endpoint):
    endpoint.status = 500
    code, _, err = edit_pod("s\n", probed(endpoint, "etcd:2"), words=("etcd", "--no-wait"))
    assert code == GOOD and "is served" in err and "verdict" not in err
    status = pods.tool("status", "-c", "static-pods").stdout.decode()
    assert "\n  pod       etcd.yaml: on trial since " in status, status


@pytest.mark.parametrize("text, said", [
    ("apiVersion: v1\nkind: Pod\nmetadata: {name: etcd\n", "manifests/etcd.yaml:3:11: error: "),
    (static.pod("kube-apiserver"), "manifests/etcd.yaml:2:1: pod kube-apiserver of namespace kube-system is served from there"),
], ids=["broken", "the pod of another file"])
def test_a_manifest_that_loses_a_pod_is_shown(pods, edit_pod, text, said):
    before = static.served(pods)
    code, out, _ = edit_pod("q\n", text)
    assert code == DIFFERENT and said in out and "It would be refused" in out, out
    assert static.served(pods) == before == {name: pods.read("manifests", name).decode() for name in before}


def test_a_broken_manifest_saved_anyway_is_not_waited_for(pods, edit_pod):
    before = static.served(pods)
    code, _, err = edit_pod("s\n", "broken: [")
    assert code == DIFFERENT and "etcd.yaml is saved, and not served: False " in err
    assert static.served(pods) == before


def test_a_new_manifest_is_asked_for(pods, edit_pod):
    code, _, err = edit_pod("s\n", static.pod("new"), words=("new",))
    assert code == USAGE and "--component static-pods" in err
    code, _, err = edit_pod("s\n", static.pod("new"), words=("new", "-c", "static-pods"))
    assert code == GOOD and err.splitlines()[-1].startswith("lkgfs edit: new.yaml: good"), err
    assert static.served(pods)["new.yaml"] == static.pod("new")
    assert stat.S_IMODE(os.stat(pods.path("manifests/new.yaml")).st_mode) == 0o600, "as the others"


def test_what_is_held_is_not_waited_for(pods, edit_pod, endpoint):
    pods.command("hold", "on", "static-pods")
    code, _, err = edit_pod("s\n", probed(endpoint, "etcd:2"))
    assert code == DIFFERENT and "etcd.yaml is saved, and not served: True " in err and "held" in err


def test_a_dropin_beside_static_pods_needs_no_component(pods, tmp_path):
    edit_dropin = editing(pods, tmp_path, lib.HEADER, ("50-local.conf",))
    assert edit_dropin("s\n", "maxPods: 91\n")[0] == GOOD
    assert "\nmaxPods: 91\n" in pods.document()


def test_a_view_beside_its_source(endpoint, tmp_path):
    with trial.mounted(endpoint, over=False) as mount:
        code, _, err = editing(mount, tmp_path, "", ("etcd",))("s\n", probed(endpoint, "etcd:2"))
        assert code == GOOD and err.endswith("lkgfs edit: etcd.yaml: good\n"), err
