# SPDX-License-Identifier: Apache-2.0
"""A component that is restarted by a hook: once for each change that matters, and never because of what it reads at its start.

Rule: docs/specification.md 4.15.
"""
import json
import os

import pytest

import lkgfs_testlib as lib
from lkgfs_node import Node

HOOK = """#!/usr/bin/python3 -ISB
import json, os, sys
with open({log!r}, "a") as log:
    log.write(json.dumps({{"environment": dict(os.environ), "argv": sys.argv[1:], "cwd": os.getcwd(),
                          "stdin": os.readlink("/proc/self/fd/0"), "fds": sorted(map(int, os.listdir("/proc/self/fd")))}}) + "\\n")
sys.exit({code})
"""


class Hooked:
    """A node whose component is restarted by a script that records its calls."""

    def __init__(self, mounts, code=0, restart=None, **options):
        self.node = Node(mounts, start=False, remote={"restartJitter": "0s", **options.pop("remote", {})}, **options)
        self.log = os.path.join(self.node.mount.root, "hook.log")
        hook = os.path.join(self.node.mount.root, "hook")
        lib.write_file(hook, HOOK.format(log=self.log, code=code), 0o755)
        self.node.configure(restart={"policy": "hook", "hook": [hook, "--word", "a b"], "minInterval": "1ms",
                                     "maxPerHour": 100, **(restart or {})})
        self.node.mount.start()

    def calls(self):
        try:
            return [json.loads(line) for line in lib.read_file(self.log).decode().splitlines()]
        except FileNotFoundError:
            return []

    def restarts(self):
        return self.node.status("restarts").splitlines()

    def wait_calls(self, n):
        self.node.mount.wait_for(lambda: len(self.calls()) >= n, f"{n} restarts")
        assert len(self.calls()) == n

    def wait_restarts(self, n, word="done"):
        self.node.mount.wait_for(lambda: len(self.restarts()) >= n and self.restarts()[-1].endswith(word), f"{n} in status/restarts")
        assert len(self.restarts()) == n


@pytest.fixture
def hooked(mounts):
    made = []

    def make(**options):
        made.append(Hooked(mounts, **options))
        return made[-1]
    yield make
    for one in made:
        one.node.close()


def test_asked_once_for_a_change(hooked):
    h = hooked()
    n = h.node
    life = n.live()
    source = n.assign("maxPods: 42\n")
    n.wait("active", source)
    h.wait_calls(1)
    h.wait_restarts(1)
    call = h.calls()[0]
    assert call["argv"] == ["--word", "a b"] and call["cwd"] == "/" and call["stdin"] == "/dev/null"
    assert not [name for name in call["environment"] if name in ("NOTIFY_SOCKET", "HOME", "LKGFS_BUILD", "LISTEN_FDS")]
    assert h.restarts()[0].split()[1:] == ["hook", str(n.mount.generation()), "done"]
    assert max(call["fds"]) <= 4, "nothing of ours is inherited"
    life.kill()


def test_drift_shows_and_clears(hooked):
    h = hooked()
    n = h.node
    life = n.live()
    assert n.status("drift") == ""
    n.mount.drop("50-x.conf", "maxPods: 9\nregistryBurst: 7\n")
    n.mount.wait_for(lambda: n.status("drift") == "/maxPods\t110\t9\n/registryBurst\t-\t7\n", "drift")
    n.mount.drop("50-x.conf", "maxPods: 110\n")
    n.mount.wait_for(lambda: n.status("drift") == "", "the same again")
    n.mount.drop("50-x.conf", "maxPods: 9\n")
    n.mount.wait_for(lambda: n.status("drift") == "/maxPods\t110\t9\n", "drift")
    life.kill()
    n.mount.wait_for(lambda: n.status("drift") == "", "nothing runs")
    life = n.live()
    n.mount.wait_for(lambda: n.status("drift") == "", "it reads what is served")
    life.kill()


def test_drift_masks_secrets(hooked):
    h = hooked()
    n = h.node
    n.mount.drop("50-x.conf", "staticPodURLHeader: {Authorization: [s3cret]}\n")
    life = n.live()
    n.mount.drop("50-x.conf", "staticPodURLHeader: {Authorization: [hidden]}\n")
    want = '/staticPodURLHeader/Authorization\t["<masked>"]\t["<masked>"]\n'
    n.mount.wait_for(lambda: n.status("drift") == want, "drift")
    result = n.mount.tool("drift")
    out = result.stdout.decode()
    assert result.returncode == 1 and "<masked>" in out and "s3cret" not in out and "hidden" not in out
    life.kill()


def test_what_a_process_runs_with_stays_known(node):
    """Even after more generations than the history keeps, and in the next engine."""
    n = node(remote={"enabled": False}, config={"historyLimit": 2})

    def change(pods):
        """Wait until it is on disk, so that nothing older must be kept for a power failure."""
        n.mount.drop("50-x.conf", f"maxPods: {pods}\n")
        record = os.path.join(n.mount.state, "history/kubelet", str(n.mount.generation()), "meta.json")
        n.mount.wait_for(lambda: os.path.exists(record), "a record on disk")
    life = n.live()
    first = n.mount.generation()
    for pods in range(1, 6):
        change(pods)
    assert n.status("drift") == "/maxPods\t110\t5\n"
    assert f"\ngeneration={first}\n" in n.status("process") and f"\npid={life.pid}\n" in n.status("process")
    n.mount.kill_child("lkgfs-engine")
    n.mount.sync()
    assert n.status("drift") == "/maxPods\t110\t5\n"
    assert "\n  drift     /maxPods runs with 110, served is 5\n" in n.mount.tool("status").stdout.decode()
    life.kill()
    n.mount.wait_for(lambda: n.status("drift") == "" and "\npid=\n" in n.status("process"), "its end")
    for pods in range(6, 9):
        change(pods)
    assert str(first) not in os.listdir(n.mount.vpath("history", "kubelet"))


def test_what_a_process_runs_with_stays_known_when_lkgfs_was_stopped(node):
    n = node(remote={"enabled": False}, component={"schemaRelease": "1.36"})
    life, other = n.live(), n.live()
    first = n.mount.generation()
    assert n.mount.stop() == 0 and not os.path.exists(os.path.join(n.mount.runtime, "facts"))
    n.mount.start()
    assert f"\npid={other.pid}\ngeneration={first}\n" in n.status("process") and n.status("drift") == ""
    n.mount.drop("50-x.conf", "maxPods: 9\n")
    assert n.status("drift") == "/maxPods\t110\t9\n"
    result = n.mount.tool("drift")
    assert result.returncode == 1 and "/maxPods" in result.stdout.decode()
    assert "flags of the running process" in n.status("effective.yaml")
    other.kill()
    n.mount.wait_for(lambda: "\npid=\n" in n.status("process"), "its end")
    assert n.status("drift") == ""
    n.mount.stop()
    n.mount.start()
    assert "\npid=\n" in n.status("process")
    life.kill()


@pytest.mark.parametrize("scope", ["remote", "all"])
def test_no_restart_for_the_start_that_reads_the_rollback(hooked, scope):
    """The start that exceeds the threshold reads the last known good itself: no restart is needed."""
    h = hooked(trial={"crashLoopThreshold": 0, "scope": scope})
    n = h.node
    source = n.assign("maxPods: 42\n")
    n.wait("active", source)
    n.crash()
    life = n.live()
    assert "\nmaxPods: 42\n" not in life.document
    n.mount.command("sync", "now")
    n.mount.wait_for(lambda: n.status("drift") == "", "it reads what is served")
    assert h.calls() == []
    life.kill()
