# SPDX-License-Identifier: Apache-2.0
"""docs/walkthrough.md is true: its commands are run, in one shell and against a real mount, and what they print is compared.

A fenced block `sh` is pasted as it is and must print nothing. In a block `console` a line behind `# ` is a command and what
follows is its output. Directory, times, checksums and numbers of generations are another matter on each machine.
"""
import contextlib
import os
import re
import shutil
import signal
import subprocess
import tempfile

import pytest

import lkgfs_testlib as lib

PAGE = lib.REPOSITORY / "docs/walkthrough.md"
DIRECTORY = "/run/lkgfs-walkthrough"
MARK = "\x1e"
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
PROMPT = re.compile(r"^# ", re.MULTILINE)
PLACEHOLDERS = (
    (re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z"), "<time>"),
    (re.compile(r"\b[0-9a-f]{64}\b"), "<sha256>"),
    (re.compile(r"\bgeneration \d+"), "generation <n>"),
    (re.compile(r"^bash: line \d+: ", re.MULTILINE), "bash: "),
)


def steps(text):
    """(command, what it prints) in the order of the page."""
    found = []
    for kind, body in FENCE.findall(text):
        assert kind in ("sh", "console"), f"a block of kind {kind!r} is not run"
        if kind == "sh":
            found.append((body, ""))
            continue
        before, *pieces = PROMPT.split(body)
        assert not before, f"output before the first command: {before!r}"
        for piece in pieces:
            command, _, output = piece.partition("\n")
            found.append((command, output))
    return found


def play(commands, directory, path):
    """What each command prints, standard error too, all in one shell; their directory is moved."""
    script = "".join(f"printf '{MARK}'\n{command.replace(DIRECTORY, directory)}\n" for command in commands)
    environment = {**os.environ, "PATH": f"{path}:{os.environ['PATH']}", "LC_ALL": "C.UTF-8"}
    with tempfile.TemporaryFile() as out:
        shell = subprocess.Popen(["bash", "-c", script], stdin=subprocess.DEVNULL, stdout=out, stderr=out,
                                 env=environment, cwd="/", start_new_session=True)
        try:
            shell.wait(2 * lib.TIMEOUT_S)
        except subprocess.TimeoutExpired:
            pass  # what it printed until then says where it waits
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(shell.pid, signal.SIGKILL)
            shell.wait()
        out.seek(0)
        text = out.read().decode().replace(directory, DIRECTORY)
    return text.split(MARK)[1:]


def comparable(text):
    for pattern, placeholder in PLACEHOLDERS:
        text = pattern.sub(placeholder, text)
    return text


@pytest.fixture
def directory():
    """A private one in the place of the page's, gone afterwards whatever the page did."""
    path = tempfile.mkdtemp(prefix=lib.PREFIX, dir=lib.PARENT)
    os.chmod(path, 0o755)
    yield path
    view = os.path.join(path, "view")
    if lib.mounts_below(view):
        lib.run("umount", "--recursive", "--lazy", view)
        lib.run("flock", os.path.join(path, "state/lock"), "true")  # until the daemon has ended
    if os.path.isdir(path):
        shutil.rmtree(path)


def test_the_page_shows_what_happens(directory):
    expected = steps(PAGE.read_text())
    printed = play([command for command, _ in expected], directory, lib.LKGFSD.parent)
    shown = "".join(f"# {command}\n{output}" for command, output in expected)
    real = "".join(f"# {command}\n{output}" for (command, _), output in zip(expected, printed))
    assert comparable(real) == comparable(shown)
    assert not os.path.exists(directory) and not lib.mounts_below(directory), "the page leaves nothing behind"


def test_the_page_plays_the_whole_story():
    """What an administrator can do about dynamic configuration is run, not only told."""
    text = "".join(command + "\n" for command, _ in steps(PAGE.read_text()))
    wanted = [f"control/kubelet/{name}" for name in ("sync", "promote", "hold", "rollback", "forget", "try", "commit")]
    wanted += ["rm bad/kubelet/", "> bad/kubelet/", "cat bad/kubelet/", "lkg/kubelet.conf", "status/kubelet/trial",
               "status/kubelet/condition", "status/kubelet/findings", "status/kubelet/config.json", "umount"]
    assert [word for word in wanted if word not in text] == []


def test_the_page_needs_nothing_but_a_shell():
    text = "".join(command + "\n" for command, _ in steps(PAGE.read_text()))
    assert not re.search(r"^(jq|python3?|curl|kubectl|systemctl|lkgfs)\s", text, re.MULTILINE)
