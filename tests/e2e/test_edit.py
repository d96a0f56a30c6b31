# SPDX-License-Identifier: Apache-2.0
"""lkgfs edit: the editor is a program that a test controls, the answers come from standard input."""
import os
import stat

import pytest

import lkgfs_testlib as lib

GOOD, DIFFERENT, FAILED, USAGE = 0, 1, 2, 64

EDITOR = """#!/bin/sh
printf '%s\\n' "$1" >> "$0.seen"
n=$(($(cat "$0.count" 2> /dev/null || echo 0) + 1))
echo $n > "$0.count"
[ -e "$0.$n" ] && cat "$0.$n" > "$1"
[ -e "$0.run" ] && . "$0.run"
[ ! -e "$0.fail" ]
"""


@pytest.fixture
def edit(mount, tmp_path):
    """edit(answers, *contents, name=...): each run of the editor writes the next content."""
    editor = tmp_path / "editor"
    editor.write_text(EDITOR)
    editor.chmod(0o755)
    private = tmp_path / "tmp"
    private.mkdir()

    def run(answers, *contents, words=("50-local.conf",), user=None):
        for left in tmp_path.glob("editor.[0-9]*"):
            left.unlink()
        (tmp_path / "editor.count").unlink(missing_ok=True)
        for i, content in enumerate(contents):
            (tmp_path / f"editor.{i + 1}").write_text(lib.HEADER + content)
        result = lib.run(lib.LKGFS, "edit", *words, "--node-config", mount.config_path, "-m", mount.mountpoint,
                         input=answers.encode(), user=user, env={**os.environ, "EDITOR": str(editor), "VISUAL": "", "SUDO_EDITOR": "",
                                                                 "TMPDIR": str(private)})
        assert list(private.iterdir()) == [], "nothing is left behind"
        return result.returncode, result.stdout.decode(), result.stderr.decode()

    run.directory = tmp_path
    return run


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
