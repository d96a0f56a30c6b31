# SPDX-License-Identifier: Apache-2.0
"""The pages by task and by platform are true: their commands run in a machine with the package, on the files that such a node has, and
their output is compared. tests/lib/lkgfs_page.py says how a page is read."""
import re

import pytest

import lkgfs_testlib as lib
from lkgfs_page import Shell, check_same, play, steps

pytestmark = pytest.mark.limit(600)

DOCS = lib.REPOSITORY / "docs"
TREES = lib.REPOSITORY / "tests/e2e/adopt"
ELSEWHERE = {"README.md", "images.md", "configmap.md"}  # images.md has no commands, configmap.md needs an API server: tests/realapi/test_page.py
PAGES = sorted(path for folder in ("platforms", "tasks") for path in (DOCS / folder).glob("*.md") if path.name not in ELSEWHERE)
PLACEHOLDERS = (
    (r"\b[0-9a-f]{12,64}\b", "<sha256>"),
    (r"\(\d+ s ago\)", "(<n> s ago)"),
    # what is said of a trial meanwhile
    (r"^(?:lkgfs edit: \S+: on trial.*\n)+", "<on trial>\n"),
)

# What the unit of the kubelet does at a start, as far as lkgfs has a part in it: what runs before it, and the file that it reads.
START_KUBELET = r"""
set -e
unit=/etc/systemd/system/kubelet.service.d/20-lkgfs.conf
[ -e $unit ] || exit 0
grep '^ExecStartPre=' $unit | cut -d= -f2- | sh -e
file=$(sed -n 's/^LKGFS_ARGS=--config=\([^ ]*\).*/\1/p' /run/lkgfs-kubelet.env)
grep -q '^kind: KubeletConfiguration$' "$file"
"""


def node_of(page):
    """The golden tree of a page: the one of its name, or the one that it names."""
    named = re.search(r"^<!-- node: (\w+) -->$", page.read_text(encoding="utf-8"), re.M)
    return TREES / (named[1] if named else page.stem) / "tree"


def played(machine, page):
    argv = ("nsenter", "--target", str(machine.init), "--mount", "--pid", "--uts", "--ipc")
    with Shell(argv, {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/root", "DEBIAN_FRONTEND": "noninteractive"}) as shell:
        return play(steps(page.read_text(encoding="utf-8")), {"# ": shell}, 60)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: f"{page.parent.name}/{page.stem}")
def test_the_page_shows_what_happens(machine, deb, page):
    machine.install(deb)
    machine.put_tree(node_of(page))
    machine.write("/run/stand-in/start-kubelet", START_KUBELET)
    shown, real = played(machine, page)
    check_same(shown, real, PLACEHOLDERS)


def test_every_node_that_is_known_has_a_page():
    have = {path.stem for path in (DOCS / "platforms").glob("*.md")}
    assert {path.name for path in TREES.iterdir()} - have == {"rke2", "unknown"}
