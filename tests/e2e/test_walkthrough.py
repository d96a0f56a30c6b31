# SPDX-License-Identifier: Apache-2.0
"""docs/walkthrough.md is correct: its commands run in one shell on a real mount, and their output is compared.

tests/lib/lkgfs_page.py says how a page is read. Directory, times, checksums and generation numbers differ on each machine.
"""
import os
import re
import shutil
import tempfile

import pytest

import lkgfs_testlib as lib
from lkgfs_page import Shell, check_same, play, steps

PAGE = lib.REPOSITORY / "docs/walkthrough.md"
DIRECTORY = "/run/lkgfs-walkthrough"
PLACEHOLDERS = (
    (r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z", "<time>"),
    (r"\b[0-9a-f]{64}\b", "<sha256>"),
    (r"\bgeneration \d+", "generation <n>"),
    (r"\(pid \d+, ", "(pid <pid>, "),
    (r"^bash: line \d+: ", "bash: "),
)


@pytest.fixture
def directory():
    """A private directory in place of the page's, removed afterwards whatever the page did."""
    path = tempfile.mkdtemp(prefix=lib.PREFIX, dir=lib.PARENT)
    os.chmod(path, 0o755)
    yield path
    view = os.path.join(path, "view")
    if lib.mounts_below(view):
        lib.run("umount", "--recursive", "--lazy", view)
        lib.run("flock", os.path.join(path, "state/lock"), "true")  # wait until the daemon has ended
    if os.path.isdir(path):
        shutil.rmtree(path)


def test_the_page_shows_what_happens(directory):
    page = steps(PAGE.read_text().replace(DIRECTORY, directory))
    with Shell(environment={"PATH": f"{lib.LKGFSD.parent}:{os.environ['PATH']}"}) as shell:
        shown, real = play(page, {"# ": shell}, lib.TIMEOUT_S)
    check_same(shown, real, PLACEHOLDERS)
    assert not os.path.exists(directory) and not lib.mounts_below(directory), "the page leaves nothing behind"


def test_the_page_plays_the_whole_story():
    """Everything that an administrator can do with dynamic configuration is run, not only described."""
    text = "".join(step.command + "\n" for step in steps(PAGE.read_text()))
    wanted = [f"control/kubelet/{name}" for name in ("sync", "promote", "hold", "rollback", "forget", "try", "commit")]
    wanted += ["rm bad/kubelet/", "> bad/kubelet/", "cat bad/kubelet/", "lkg/kubelet.conf", "status/kubelet/trial",
               "status/kubelet/condition", "status/kubelet/findings", "status/kubelet/config.json", "umount"]
    assert [word for word in wanted if word not in text] == []


def test_the_page_needs_nothing_but_a_shell():
    text = "".join(step.command + "\n" for step in steps(PAGE.read_text()))
    assert not re.search(r"^(jq|python3?|curl|kubectl|systemctl|lkgfs)\s", text, re.MULTILINE)
