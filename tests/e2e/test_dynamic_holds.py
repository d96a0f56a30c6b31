# SPDX-License-Identifier: Apache-2.0
"""Holds, tries and rollbacks by an operator while a remote configuration arrives, is withdrawn or is on trial.

Rule: docs/specification.md 4.7.
"""
import os
import re

import pytest

import lkgfs_testlib as lib


def again_kill(node):
    node.mount.kill_child("lkgfs-engine")
    node.mount.command("sync", "now")


def again_restart(node):
    node.mount.stop()
    node.mount.start()


def again_reload(node):
    node.mount.reload()


AGAIN = pytest.mark.parametrize("again", [again_kill, again_restart, again_reload], ids=["engine killed", "restarted", "reloaded"])


@AGAIN
def test_assigned_while_held(node, again):
    """A hold keeps the shown document, and `active` says what is shown; the trial of the newer one does not start meanwhile."""
    n = node(trial={"crashLoopThreshold": 0, "duration": "300ms"})
    local = n.mount.document()
    n.mount.command("hold", "on")
    source = n.assign("maxPods: 42\n")
    again(n)
    n.wait("condition", "True held at generation ")
    assert "a newer one waits for hold off" in n.status("condition")
    assert n.mount.document() == local
    assert n.sources() == (source, "init", "init"), "active is what the view shows"
    assert n.config_json()["active"].get("local") == "init"
    life = n.live()
    assert life.document == local
    for _ in range(3):
        assert n.crash() == local, "a start on what is held condemns nothing"
    assert n.bad() == {} and n.trial()["state"] == "idle"
    life.kill()
    n.mount.command("hold", "off")
    assert "\nmaxPods: 42\n" in n.mount.document()
    assert n.sources() == (source, source, "init") and n.trial()["state"] == "running"
    assert n.trial()["prior_starts"] == "0"


@AGAIN
def test_the_clock_does_not_run_on_what_is_held(node, again):
    """A process that runs the held generation proves nothing about the one that waits."""
    n = node(trial={"duration": "400ms"})
    source = n.assign("maxPods: 42\n")
    n.wait("active", source)
    first = n.mount.generation()
    n.mount.command("promote", "now")
    second = n.assign("maxPods: 43\n")
    n.wait("active", second)
    n.mount.command("hold", "on")
    n.mount.command("hold", "off")
    assert n.trial()["state"] == "running"
    n.mount.command("rollback", str(first))
    assert n.sources() == (second, source, source) and second in n.bad()
    assert n.trial()["state"] == "failed"
    again(n)
    life = n.live()
    assert "\nmaxPods: 42\n" in life.document
    n.mount.command("forget", second)
    again(n)
    assert "\nmaxPods: 42\n" in n.mount.document(), "still pinned"
    assert n.sources()[1:] == (source, source)
    assert n.trial()["deadline"] == "" or n.trial()["state"] != "running"
    life.kill()
    n.mount.command("hold", "off")
    assert n.sources() == (second, second, source)
    assert n.trial()["state"] == "running"


def next_step(n):
    out = n.mount.tool("status").stdout.decode()
    return [line for line in out.splitlines() if line.startswith("  next ")][0]


def test_a_hold_is_told_and_ended_first(node):
    """True, False and Unknown say who holds it and since when, and name what ends the hold before any other step."""
    n = node(trial={"duration": "0s"})
    ends = "`lkgfs hold off --component kubelet`"
    one = n.assign("maxPods: 1\n", uid="aaaa")
    n.wait("last-known-good", one)
    n.mount.command("hold", "on")
    who = rf"held since \S+Z by uid 0 \(pid {os.getpid()}, python\S*\)"
    assert re.search(rf"^True held at generation \d+ \(hold\): .*; {who}: `echo off > control/kubelet/hold`$",
                     n.status("condition"))
    assert "mode=hold\n" in n.status("hold") and f"\npid={os.getpid()}\n" in n.status("hold")
    assert re.search(rf"note: {who} at generation .*\[LKG4019\]", n.status("findings"))
    # Unknown: the reference cannot be read, so what is wanted is unknown
    n.put("no object\n")
    n.wait("condition", "Unknown failed to sync")
    assert re.search(rf"; {who} at generation ", n.status("condition")) and ends in next_step(n)
    # False: the ConfigMap is bad
    two = n.assign("maxPods: -2\n", uid="bbbb")
    n.wait("condition", "False failed to validate current (UID: bbbb)")
    assert re.search(rf"; {who} at generation ", n.status("condition"))
    step = next_step(n)
    assert ends in step and 0 < step.index(ends) < step.index("assign a corrected ConfigMap"), step
    assert two in n.bad()
    # a local mistake on top
    n.mount.drop("50-bad.conf", "maxPods: [\n")
    step = next_step(n)
    assert ends in step and 0 < step.index(ends) < step.index("; then "), step
    os.unlink(n.mount.path("kubelet.conf.d/50-bad.conf"))
    # a newer configuration waits for the end of the hold
    n.assign("maxPods: 3\n", uid="cccc")
    n.wait("condition", "True held at generation ")
    assert "\nnewer=waits\n" in n.status("hold")
    assert re.search(rf"warning: {who} at .*, and a newer one waits; .*\[LKG4018\]", n.status("findings"))
    result = n.mount.tool("doctor")
    assert result.returncode == 1 and ", and a newer one waits\n    " + ends in result.stdout.decode()
    n.mount.command("hold", "off")
    assert "mode=free\n" in n.status("hold") and "LKG401" not in n.status("findings") and ends not in next_step(n)


# ---- every generation on trial ----

@AGAIN
def test_scope_all_with_a_remote_and_dropins(node, again):
    n = node(trial={"scope": "all", "crashLoopThreshold": 0})
    first = n.mount.document()
    assert n.good_document() == first
    source = n.assign("maxPods: 42\n")
    n.wait("active", source)
    assert n.trial()["state"] == "running"
    again(n)
    n.mount.command("promote", "now")
    good = n.mount.document()
    assert n.sources() == (source, source, source) and n.good_document() == good
    n.mount.drop("50-x.conf", "registryBurst: 9\n")
    both = n.mount.document()
    assert "\nregistryBurst: 9\n" in both and n.trial()["state"] == "running"
    assert n.good_document() == good, "the stored document, not a merge of today"
    again(n)
    assert n.crash() == both
    again(n)
    assert n.crash() == good == n.mount.document()
    assert [name for name in n.bad() if not name.startswith("local@")] == [], "the drop-in was on trial, not the remote"
    assert len(n.bad()) == 1 and n.sources() == (source, source, source)
    again(n)
    assert n.crash() == good and len(n.bad()) == 1
    n.mount.drop("50-x.conf", "registryBurst: 8\n")
    assert "\nregistryBurst: 8\n" in n.mount.document() and n.trial()["state"] == "running"


@AGAIN
def test_scope_all_rolls_a_remote_back_to_the_stored_document(node, again):
    """Rule: docs/specification.md 4.11."""
    n = node(trial={"scope": "all", "crashLoopThreshold": 0})
    n.mount.command("promote", "now")
    first = n.mount.document()
    source = n.assign("maxPods: 42\n")
    n.wait("active", source)
    assert n.crash() != first
    again(n)
    assert n.crash() == first == n.mount.document()
    assert source in n.bad() and n.sources() == (source, "init", "init")
    again(n)
    for _ in range(3):
        assert n.crash() == first
    assert set(n.bad()) == {source}
