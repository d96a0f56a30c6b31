# SPDX-License-Identifier: Apache-2.0
"""docs/walkthrough.md is correct: its commands run in one shell on a real mount, and their output is compared.

tests/lib/lkgfs_page.py says how a page is read. Times, checksums and generation numbers differ on each machine.
"""
import os
import re

import lkgfs_testlib as lib
from lkgfs_page import check_same, steps
from lkgfs_worker import Worker

PAGE = (lib.REPOSITORY / "docs/walkthrough.md").read_text()
PLACEHOLDERS = ((r"\b[0-9a-f]{64}\b", "<sha256>"), (r"\(pid \d+, ", "(pid <pid>, "))


def test_the_page_shows_what_happens(tmp_path):
    with Worker("node", tmp_path / "machine") as machine:
        shown, real = machine.play(PAGE)
        assert not os.path.exists(machine.path("/run/lkgfs-walkthrough")), "the page leaves nothing behind"
    check_same(shown, real, PLACEHOLDERS)


def test_the_page_plays_the_whole_story():
    """Everything that an administrator can do with dynamic configuration is run, not only described."""
    text = "".join(step.command + "\n" for step in steps(PAGE))
    wanted = [f"control/kubelet/{name}" for name in ("sync", "promote", "hold", "rollback", "forget", "try", "commit")]
    wanted += ["rm bad/kubelet/", "> bad/kubelet/", "cat bad/kubelet/", "lkg/kubelet.conf", "status/kubelet/trial",
               "status/kubelet/condition", "status/kubelet/findings", "status/kubelet/config.json", "umount"]
    assert [word for word in wanted if word not in text] == []


def test_the_page_needs_nothing_but_a_shell():
    text = "".join(step.command + "\n" for step in steps(PAGE))
    assert not re.search(r"^(jq|python3?|curl|kubectl|systemctl|lkgfs)\s", text, re.MULTILINE)
