# SPDX-License-Identifier: Apache-2.0
"""docs/faq.md is true: its commands run on a node of kubeadm with real paths (tests/lib/lkgfs_page.py says how a page is read)."""
import os
import re
import shutil

import lkgfs_testlib as lib
from lkgfs_page import check_same
from lkgfs_worker import Worker

PAGE = (lib.REPOSITORY / "docs/faq.md").read_text(encoding="utf-8")
TREE = lib.REPOSITORY / "tests/e2e/adopt/kubeadm/tree"
# As much of it as is used. The kubelet is a program that opens its file and stays.
SYSTEMCTL = """#!/bin/bash
case $* in
'enable --now lkgfs.service') pgrep -x lkgfsd > /dev/null || lkgfsd --background /etc/kubernetes ;;
'disable --now lkgfs.service') pkill -x lkgfsd; flock /var/lib/lkgfs/lock true ;;
'reload lkgfs.service') pkill -HUP -x lkgfsd ;;
'restart kubelet') kubelet -f /etc/kubernetes/kubelet-config.yaml > /dev/null & ;;
esac
"""


def test_the_page_shows_what_happens(tmp_path):
    with Worker("node", tmp_path / "machine") as machine:
        for source, target in (("etc", "/etc"), ("var/lib", "/var/lib"), ("usr/lib", "/etc")):
            shutil.copytree(TREE / source, machine.path(target), dirs_exist_ok=True)
        machine.write("/usr/bin/kubelet", lib.read_file("/usr/bin/tail"), 0o755)
        machine.write("/run/systemctl", SYSTEMCTL, 0o755)
        os.makedirs(machine.path("/run/systemd/system"))
        check_same(*machine.play(PAGE))


def test_twenty_questions_have_short_answers_and_commands():
    found = re.findall(r"^### .*\n\n((?:.+\n){1,5})\n```console\n# ", PAGE, re.M)
    assert len(found) == 20 == PAGE.count("\n### ") and max(map(len, "".join(found).splitlines())) <= 160
