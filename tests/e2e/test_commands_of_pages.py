# SPDX-License-Identifier: Apache-2.0
"""Every command that a page shows runs in a test, or its last line says when it was last run by hand.

Some pages are played whole, with their output (tests/lib/lkgfs_page.py). Of the others, the commands of the tool run here, on a node.
"""
import datetime
import os
import re

import pytest

import lkgfs_testlib as lib
from lkgfs_node import Node

TOP = lib.REPOSITORY
PLAYED = {"docs/faq.md": "tests/e2e/test_faq.py", "docs/walkthrough.md": "tests/e2e/test_walkthrough.py", "docs/remote.md": "tests/realapi/test_page.py",
          "docs/tasks/configmap.md": "tests/realapi/test_page.py",
          **{str(path.relative_to(TOP)): "tests/package/test_pages.py" for folder in ("docs/platforms", "docs/tasks")
             for path in (TOP / folder).glob("*.md") if path.name not in ("README.md", "images.md", "configmap.md")}}
WORDS = ("apt-get", "build", "cat", "contrib", "cp", "curl", "echo", "install", "kubectl", "lkgfs", "lkgfsd", "meson", "mkdir", "mmdebstrap",
         "node-problem-detector", "pkill", "pre-commit", "sed", "semodule", "skopeo", "sudo", "systemctl", "tee", "tests", "umount", "valgrind")
COMMAND = re.compile(r"^(?:    )?(?:[#$] )?((?:%s)\b[^:\n]*.*)$" % "|".join(re.escape(word) for word in WORDS))
SAID = re.compile(r"^<!-- commands: (.*) -->$", re.M)
DIAGRAMS = {"docs/architecture.md"}
# Not on this node: adopt and abandon change the machine, and the pages by task play them; a synopsis is no command.
NOT_HERE = re.compile(r"lkgfs (adopt|abandon)\b|\[--")


def pages():
    found = (path for path in TOP.rglob("*.md") if not any(part.startswith(("build", ".")) for part in path.relative_to(TOP).parts))
    return sorted(str(path.relative_to(TOP)) for path in found if path.name != "CHANGELOG.md")


def commands_of(page):
    """Those in indented and fenced blocks."""
    fenced, lines = False, []
    for line in (TOP / page).read_text(encoding="utf-8").splitlines():
        if line.lstrip().startswith("```"):
            fenced = not fenced
        elif fenced or line.startswith("    "):
            if match := COMMAND.match(line):
                lines.append(re.sub(r"\s+#\s.*$", "", match[1]))
    return lines


def of_the_tool(page):
    return [line for line in commands_of(page) if line.startswith("lkgfs ") and not NOT_HERE.search(line)]


def test_every_page_says_who_runs_its_commands():
    silent, vain = [], []
    for page in pages():
        others = [line for line in commands_of(page) if page not in PLAYED and page not in DIAGRAMS and line not in of_the_tool(page)]
        said = SAID.findall((TOP / page).read_text(encoding="utf-8"))
        for text in said:
            tests, days = re.findall(r"\btests/[\w/.]+", text), re.findall(r"by hand (\S+?)\b(?=[;,]|$)", text)
            assert tests or days, f"{page}: {text}"
            assert [test for test in tests if not (TOP / test).exists()] == [], page
            assert all(datetime.date.fromisoformat(day) for day in days), page
        if others and not said:
            silent.append((page, others[0]))
        if said and not others:
            vain.append(page)
    assert not silent and not vain, (silent, vain)


def test_played_pages_are_played():
    for page, test in PLAYED.items():
        assert os.path.basename(page) in (TOP / test).read_text() or "glob(\"*.md\")" in (TOP / test).read_text(), page


PAGES = [page for page in pages() if page not in PLAYED and of_the_tool(page)]


@pytest.fixture(name="node")
def fixture_node(mounts, tmp_path):
    """It has what the pages talk of: generations, a bad mark of 8f1c@2, files in the current directory."""
    n = Node(mounts, trial={"crashLoopThreshold": 0})
    n.assign("maxPods: 50\n")
    n.mount.command("promote", "now")
    n.assign("maxPods: 60\n", annotations={"lkgfs.io/crash-loop-threshold": "0"})
    n.mount.wait_for(lambda: n.crash(1) and "8f1c@2" in n.bad(), "a bad mark")
    n.live()
    for name in ("50-pods.conf", "new.conf", "old.conf"):
        (tmp_path / name).write_text(lib.HEADER + "maxPods: 60\n")
    yield n
    n.close()


@pytest.mark.parametrize("page", PAGES)
def test_the_commands_of_the_tool(node, tmp_path, page):
    numbers = sorted(int(name) for name in os.listdir(node.mount.vpath("history", "kubelet")))[-2:]
    stand_ins = {r"\b41\b": str(numbers[0]), r"\b42\b": str(numbers[1]), r"ssh \S+ 'cat > (\S+)'": r"cat > \1", "/usr/local/share": str(tmp_path),
                 "/var/lib/kubelet/config.yaml": os.path.join(node.mount.source, "kubelet.conf"), "--mountpoint /run/lkgfs/kube-proxy": "",
                 r"kubelet\.conf\.d": os.path.join(node.mount.source, "kubelet.conf.d"), "^lkgfs ": f"{lib.LKGFS} "}
    for shown in of_the_tool(page):
        line = shown
        for pattern, word in stand_ins.items():
            line = re.sub(pattern, word, line)
        watches = "--watch" in line
        result = lib.run("bash", "-o", "pipefail", "-c", f"timeout 1 {line}" if watches else line, cwd=tmp_path,
                         env={**os.environ, "LKGFS_MOUNTPOINT": node.mount.mountpoint, "LKGFS_CONFIG": node.mount.config_path})
        said = (result.stdout + result.stderr).decode()
        assert result.returncode in ((124,) if watches else (0, 1)), f"{shown}: {said}"
        assert said or result.returncode == 0, shown
