# SPDX-License-Identifier: Apache-2.0
"""Dynamic configuration with real processes: assigned, on trial, last known good, rolled back, with local files as the only source."""
import datetime
import json
import os
import signal
import time

import pytest

import lkgfs_testlib as lib

# ---- assigned, active, last known good ----

def test_a_good_one_is_followed(node):
    n = node()
    source = n.assign("maxPods: 42\n")
    n.wait("condition", "True all checks passed: using current (UID: 8f1c)")
    assert n.sources() == (source, source, "init")
    assert "\nmaxPods: 42\n" in n.mount.document()
    status = n.config_json()
    assert status["assigned"]["configMap"] == {"namespace": "kube-system", "name": "node-config", "uid": "8f1c",
                                               "resourceVersion": "1", "kubeletConfigKey": "kubelet"}
    assert status["active"]["source"] == source and "local" in status["lastKnownGood"] and status["error"] == ""
    assert 'role="lkg",source_id="local"' in n.status("metrics.prom"), "which document that would be was not served"
    assert n.trial()["state"] == "running"
    layers = os.listdir(n.mount.vpath("layers", "kubelet"))
    assert "0000-remote-node-config.yaml" in layers
    assert "remote node-config\tkube-system/node-config:kubelet:3:10" in n.status("origin")


# ---- trial ----

def test_promotion_after_the_trial(node):
    n = node(trial={"duration": "300ms"})
    source = n.assign("maxPods: 42\n")
    n.wait("active", source)
    life = n.live()
    assert "\nmaxPods: 42\n" in life.document
    n.wait("last-known-good", source)
    assert n.trial()["state"] == "passed"
    life.kill()


def test_the_start_that_is_one_too_many_reads_the_last_known_good(node):
    threshold, condemned = 1, 3  # three starts
    n = node(trial={"crashLoopThreshold": threshold})
    local = n.mount.document()
    source = n.assign("maxPods: 42\n")
    n.wait("active", source)
    for _ in range(condemned - 1):
        assert "\nmaxPods: 42\n" in n.crash()
    promised = n.good_document()
    assert n.crash() == local == promised, "the starting process itself is served the last known good"
    assert n.mount.document() == promised
    assert n.status("condition").startswith(
        "False current failed trial period due to crash loop (UID: 8f1c): using last-known-good (init)")
    assert n.sources() == (source, "init", "init")
    assert n.bad()[source]["reason"] == "current failed trial period due to crash loop (UID: 8f1c)"
    assert n.trial()["state"] == "failed" and n.trial()["threshold"] == str(threshold)
    assert len(json.loads(n.status("startups"))) == min(condemned, 11)


def test_rollback_to_a_remote_one(node):
    """Rule: docs/specification.md 4.11."""
    n = node(trial={"duration": "0s"})
    good = n.assign("maxPods: 1\n")
    n.wait("last-known-good", good)
    n.configure(trial={"duration": "10m"})
    n.mount.reload()
    n.mount.drop("50-x.conf", "registryBurst: 7\n")
    bad = n.assign("maxPods: 2\n", annotations={"lkgfs.io/crash-loop-threshold": "0"})
    n.wait("active", bad)
    promised = n.good_document()
    assert "\nmaxPods: 1\n" in promised and "\nregistryBurst: 7\n" in promised
    n.crash()
    assert n.crash() == promised
    assert n.sources() == (bad, good, good)
    n.wait("condition", "using last-known-good (UID: 8f1c)")


def seconds_left(n):
    """Of the trial, while the component runs with the candidate."""
    life = n.live()
    n.mount.wait_for(lambda: n.trial()["deadline"] not in ("", "-"), "the clock runs")
    left = datetime.datetime.fromisoformat(n.trial()["deadline"].replace("Z", "+00:00")).timestamp() - time.time()
    life.end()
    return left


def test_a_candidate_cannot_switch_its_trial_off(node):
    n = node()
    n.assign("configTrialDuration: 0s\nmaxPods: 42\n")
    n.mount.wait_for(lambda: "\nmaxPods: 42\n" in n.mount.document(), "the candidate")
    assert n.trial()["state"] == "running"
    assert 200 < seconds_left(n) < 302
    n.configure(trial={"duration": "1m"})  # the administrator of the node may do so
    n.mount.reload()
    n.assign("configTrialDuration: 0s\nmaxPods: 43\n")
    n.mount.wait_for(lambda: "\nmaxPods: 43\n" in n.mount.document(), "the next candidate")
    assert 0 < seconds_left(n) < 62


def test_an_engine_that_begins_while_the_file_is_written(node):
    n = node(trial={"duration": "0s"})
    source = n.assign("maxPods: 42\n")
    n.wait("last-known-good", source)
    obj = json.dumps(n.configmap("maxPods: 43\n"))
    with open(n.file, "w", encoding="utf-8") as f:
        n.mount.kill_child("lkgfs-engine")
        n.mount.wait_for(lambda: "lkgfs-engine" in n.mount.children(), "the engine")
        n.mount.command("sync", "now")
        assert n.sources() == (source, source, source)
        f.write(obj)
    n.wait("active", "8f1c@2")


# ---- guards, scope, versions, the store ----

@pytest.mark.parametrize("guard,body,ok", [
    ({"deny": ["maxPods"]}, "maxPods: 1\n", False), ({"pinned": ["clusterDomain"]}, "clusterDomain: cluster.local\n", True),
    ({"profile": "hardened"}, "staticPodPath: /tmp\n", False), ({"profile": "hardened"}, "maxPods: 5\nconfigTrialDuration: 10m\n", True),
])
def test_guard(node, guard, body, ok):
    n = node(component={"guard": guard})
    source = n.assign(body)
    n.wait("condition", "True all checks passed" if ok else "False failed to validate current (UID: 8f1c)")
    assert (source in n.bad()) == (not ok)
    assert ok or "LKG600" in n.status("findings")


def test_scope_all_tries_dropins_too(node):
    n = node(trial={"scope": "all", "crashLoopThreshold": 0}, remote={"enabled": False})
    first = n.mount.document()
    n.mount.drop("50-x.conf", "maxPods: 9\n")
    assert n.trial()["state"] == "running"
    status, metrics = n.config_json(), n.status("metrics.prom")
    assert status["lastKnownGood"]["generation"] < status["active"]["generation"] == n.mount.generation()
    for role, name in (("active", "active"), ("lkg", "lastKnownGood")):
        assert f'role="{role}",source_id="{status[name]["source"]}"' in metrics
    assert "\nmaxPods: 9\n" in n.crash()
    assert n.good_document() == first
    assert n.crash() == first
    assert n.mount.document() == first
    n.wait("condition", "False current failed trial period due to crash loop (local@")
    assert len(n.bad()) == 1 and next(iter(n.bad())).startswith("local@")
    n.mount.drop("50-x.conf", "maxPods: 8\n")
    assert "\nmaxPods: 8\n" in n.mount.document(), "another document is judged afresh"
    n.wait("condition", "True ")
    n.crash()
    assert n.crash() == first and len(n.bad()) == 2
    n.mount.command("forget", "all")
    assert "\nmaxPods: 8\n" in n.mount.document() and n.trial()["state"] == "running", "forgiven, with a trial of its own"
    n.crash()
    assert n.crash() == first


def test_scope_all_going_back_by_hand(node):
    n = node(trial={"scope": "all", "crashLoopThreshold": 0}, remote={"enabled": False})
    first = n.mount.document()
    n.mount.drop("50-x.conf", "maxPods: 9\n")
    n.crash()
    os.unlink(n.mount.path("kubelet.conf.d", "50-x.conf"))
    for _ in range(4):
        assert n.crash() == first, "the last known good is on no trial"
    assert n.bad() == {}


def test_a_read_only_state_directory(node):
    n = node(trial={"duration": "0s"})
    source = n.assign("maxPods: 42\n")
    n.wait("last-known-good", source)
    served = n.mount.document()
    n.mount.stop()
    state = n.mount.state
    lib.shell(f"mount --bind {state} {state} && mount -o remount,bind,ro {state} {state}", check=True)
    try:
        lib.shell(f"rm -rf {n.mount.runtime}", check=True)
        n.mount.start()
        assert n.mount.document() == served and n.sources() == (source, source, source)
        assert "LKG6013" in n.status("findings")
        n.put(n.configmap("maxPods: 43\n"))
        n.wait("condition", "Unknown failed to sync, desired config unclear, cause: failed to save config checkpoint")
        assert n.mount.document() == served
        n.mount.stop()
    finally:
        lib.shell(f"umount -l {state}", check=True)
    n.mount.start()
    n.wait("active", "8f1c@2")


@pytest.mark.parametrize("name", ["lkgfs-engine", "lkgfs-fs", "lkgfs-notify"])
def test_kills_change_no_outcome(node, name):
    n = node(trial={"crashLoopThreshold": 1})
    local = n.mount.document()
    source = n.assign("maxPods: 42\n", wait=False)
    for _ in range(3):
        n.mount.kill_child(name)
        n.mount.wait_for(lambda: name in n.mount.children(), name)
    n.wait("active", source)
    for _ in range(2):
        n.mount.kill_child(name, signal.SIGKILL)
        assert "\nmaxPods: 42\n" in n.crash()
    n.mount.kill_child(name)
    assert n.crash() == local
    n.wait("condition", "False current failed trial period due to crash loop (UID: 8f1c)")
    assert set(n.bad()) == {source}
