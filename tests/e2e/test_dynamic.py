# SPDX-License-Identifier: Apache-2.0
"""Dynamic configuration with real processes: assigned, on trial, last known good, rolled back, with local files as the only source."""
import datetime
import errno
import json
import os
import signal
import time

import pytest

import lkgfs_testlib as lib

INIT_REASON = "current is set to the local default, and an init config was provided"
UNPARSABLE, INVALID = "{0xdeadbeef}", "kubeAPIQPS: -1\n"


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


def test_it_replaces_the_base_and_nothing_else(node):
    n = node()
    n.mount.drop("50-x.conf", "registryBurst: 7\n")
    n.assign("maxPods: 42\nregistryBurst: 3\n")
    document = n.mount.document()
    assert "\nmaxPods: 42\n" in document and "\nregistryBurst: 7\n" in document
    assert "clusterDomain" not in document, "the base is gone as a whole"


@pytest.mark.parametrize("body,words,error", [
    (UNPARSABLE, "failed to parse current (UID: 8f1c)", "failed to load config"),
    ("maxPods: [\n", "failed to parse current (UID: 8f1c)", "failed to load config"),
    (INVALID, "failed to validate current (UID: 8f1c)", "failed to validate config"),
    ("maxPods: many\n", "failed to validate current (UID: 8f1c)", "failed to validate config"),
])
def test_a_bad_one_is_assigned_and_never_active(node, body, words, error):
    """Rule: docs/specification.md 4.5."""
    n = node()
    before, generation = n.mount.document(), n.mount.generation()
    source = n.assign(body, header=body is not UNPARSABLE)
    n.wait("condition", f"False {words}: using last-known-good (init)")
    assert n.sources() == (source, "init", "init")
    assert n.mount.document() == before and n.mount.generation() == generation
    assert n.bad()[source]["reason"] == words
    assert n.bad()[source]["source"]["name"] == "node-config"
    status = n.config_json()
    assert status["error"].startswith(error)
    assert status["rejected"]["source"] == source and status["rejected"]["reason"] == words
    assert "kube-system/node-config:kubelet:" in n.status("findings")
    assert n.trial()["state"] == "idle"


def test_reset_to_a_local_configuration_of_the_same_bytes(node):
    n = node(trial={"duration": "0s"})
    source = n.assign("".join(lib.read_file(n.mount.path("kubelet.conf.base")).decode().split("\n", 2)[2:]))
    n.wait("last-known-good", source)
    generation = n.mount.generation()
    n.put("local\n")
    n.wait("assigned", "init")
    n.wait("condition", f"True {INIT_REASON}: using current (init)")
    assert n.status("active") == "init\n" and n.mount.generation() == generation


def test_a_wrong_base_under_a_remote_one_is_reported(node):
    n = node()
    source = n.assign("maxPods: 42\n")
    n.wait("active", source)
    lib.write_file(n.mount.path("kubelet.conf.base"), lib.HEADER + "maxPods: many\n")
    n.wait("condition", "False failed to validate local (init), 1 error, see status/kubelet/findings: using current (UID: 8f1c)")
    assert n.sources()[1] == source and n.bad() == {}


def test_what_an_older_version_made_is_of_the_same_source(node):
    """A process that read an older generation keeps the clock running, also while a drop-in is invalid; nothing is abandoned."""
    n = node()
    n.wait("active", n.assign("maxPods: 42\n", version=1))
    older = n.mount.generation()
    life = n.live()
    n.mount.drop("50-x.conf", "registryBurst: 7\n")
    assert n.mount.generation() > older
    n.mount.drop("60-y.conf", "maxPods: -3\n")
    source = n.assign("maxPods: 42\n", version=2, annotations={"touched": "yes"})
    n.wait("active", source)
    assert n.trial()["state"] == "running" and n.trial()["deadline"] not in ("", "-")
    n.mount.command("rollback", str(older))
    assert n.mount.generation() == older and n.bad() == {}
    life.kill()


def test_same_content_as_a_bad_one_is_as_bad(node):
    n = node()
    n.assign(INVALID, version=1)
    n.wait("condition", "False failed to validate current")
    n.assign(INVALID, version=2, annotations={"touched": "yes"})
    n.wait("condition", "False failed to validate current")
    assert set(n.bad()) == {"8f1c@1", "8f1c@2"}


def test_a_mistake_that_a_broken_local_layer_would_mend_is_nobodys(node):
    """The ConfigMap is validated without the unreadable layer: what is then missing does not make it bad."""
    n = node()
    n.mount.drop("50-x.conf", "imageGCLowThresholdPercent: 60\nmaxPods: [\n")
    source = n.assign("imageGCHighThresholdPercent: 75\n")
    n.wait("condition", "False ")
    assert n.bad() == {}, "nothing is proved against it"
    n.mount.drop("50-x.conf", "imageGCLowThresholdPercent: 60\n")
    n.wait("active", source)
    n.wait("condition", "True all checks passed")


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


def test_scope_all_a_reload_keeps_what_was_avoided(node):
    """After a rollback the layers still merge to the avoided document: SIGHUP must not serve it again."""
    n = node(trial={"scope": "all", "crashLoopThreshold": 0}, remote={"enabled": False})
    n.crash()
    good = n.mount.document()
    n.mount.drop("50-x.conf", "maxPods: 50\n")
    n.crash()
    assert n.crash() == good and n.mount.document() == good
    n.mount.reload()
    n.mount.command("sync", "now")
    assert n.mount.document() == good


@pytest.mark.parametrize("how", ["kill", "stop"])
def test_the_last_known_good_is_on_no_trial_after_a_restart(node, how):
    n = node(trial={"crashLoopThreshold": 0})
    local = n.mount.document()
    source = n.assign("maxPods: 42\n")
    n.wait("active", source)
    n.crash()
    assert n.crash() == local
    if how == "kill":
        n.mount.kill_child("lkgfs-engine")
    else:
        n.mount.stop()
        n.mount.start()
    for _ in range(3):
        assert n.crash() == local
    assert set(n.bad()) == {source} and n.trial()["state"] == "failed"


def test_the_content_of_the_last_known_good_again(node):
    n = node(trial={"duration": "0s"})
    good = n.assign("maxPods: 1\n")
    n.wait("last-known-good", good)
    generation = n.mount.generation()
    n.configure(trial={"duration": "10m"})
    n.mount.reload()
    n.assign(INVALID)
    n.wait("condition", "False failed to validate")
    again = n.assign("maxPods: 1\n")
    n.wait("condition", "True all checks passed")
    assert n.sources() == (again, again, again) and n.mount.generation() == generation


def test_a_guard_that_comes_later(node):
    n = node()
    local = n.mount.document()
    source = n.assign("maxPods: 42\n")
    n.wait("active", source)
    n.configure(guard={"deny": ["maxPods"]})
    n.mount.reload()
    n.mount.wait_for(lambda: n.mount.document() == local, "the guard")
    assert source in n.bad() and "LKG6002" in n.status("findings")


def test_pinned_to_a_broken_base(node):
    n = node(component={"guard": {"pinned": ["maxPods"]}})
    lib.write_file(n.mount.behind("kubelet.conf"), "maxPods: [\n")
    n.wait("condition", "False ")
    source = n.assign("maxPods: 110\n")
    assert n.bad() == {}
    lib.write_file(n.mount.behind("kubelet.conf"), lib.HEADER + "failCgroupV1: false\nmaxPods: 110\n")
    n.wait("active", source)


def test_switched_off_there_is_no_remote_last_known_good(node):
    n = node(trial={"duration": "0s"})
    local = n.mount.document()
    source = n.assign("maxPods: 42\n")
    n.wait("last-known-good", source)
    n.configure(remote={"enabled": False})
    n.mount.reload()
    n.mount.wait_for(lambda: n.mount.document() == local, "the local configuration")
    assert n.good_document() == local
    n.mount.command("rollback", "lkg")
    assert n.mount.document() == local and n.bad() == {}


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


def test_exoneration(node):
    """Rule: docs/specification.md 4.10."""
    n = node(trial={"crashLoopThreshold": 0})
    source = n.assign("maxPods: 42\n")
    n.wait("active", source)
    n.crash()
    n.crash()
    assert "probably" not in n.status("condition")
    n.crash()
    n.wait("condition", "False crash loop goes on with last-known-good, so the configuration was probably not the cause")
    assert lib.error_of(n.mount.command, "forget", "nobody@1") == errno.EINVAL
    assert n.mount.command("forget", source)
    n.wait("active", source)


def test_starts_by_hand(node):
    n = node(component={"match": {"unit": "", "exe": []}}, trial={"crashLoopThreshold": 1})
    source = n.assign("maxPods: 42\n")
    n.wait("active", source)
    for _ in range(2):
        n.mount.command("startup", "now")
    assert n.sources()[1] == source
    n.mount.command("startup", str(os.getpid()))
    assert n.sources()[1] == "init" and source in n.bad()
    assert lib.error_of(n.mount.command, "startup", "x") == errno.EINVAL


# ---- operators ----

def test_rollback_lkg_pins_until_hold_off(node):
    n = node()
    local = n.mount.document()
    source = n.assign("maxPods: 42\n")
    n.wait("active", source)
    promised = n.good_document()
    n.mount.command("rollback", "lkg")
    assert n.mount.document() == promised == local
    assert n.bad()[source]["reason"] == "operator request (UID: 8f1c)"
    n.wait("condition", "False operator request (UID: 8f1c)")
    n.mount.drop("50-x.conf", "registryBurst: 7\n")
    assert n.mount.document() == promised, "pinned"
    n.mount.command("hold", "off")
    assert "\nregistryBurst: 7\n" in n.mount.document()


def test_rm_forgives_and_echo_condemns(node):
    n = node()
    source = n.assign("maxPods: 42\n")
    n.wait("active", source)
    bad = n.mount.vpath("bad", "kubelet")
    lib.shell(f"echo not on my watch > {bad}/8f1c", check=True)
    assert n.sources()[1] == "init" and n.bad()["8f1c"]["reason"] == "not on my watch"
    n.wait("condition", "False marked bad (UID: 8f1c): not on my watch: using last-known-good (init)")
    again = n.assign("maxPods: 43\n")
    n.wait("assigned", again)
    assert n.sources()[1] == "init", "all its versions"
    lib.shell(f": > {bad}/nothing; touch {bad}/nothing", check=False)
    assert set(n.bad()) == {"8f1c"}
    n.mount.stop()
    n.mount.start()
    assert set(n.bad()) == {"8f1c"} and n.sources()[1] == "init"
    lib.shell(f"rm {bad}/8f1c", check=True)
    n.wait("active", again)
    assert n.bad() == {}
    for name in ("..x/y", "a b", "x" * 300):
        assert lib.error_of(lib.write_file, os.path.join(bad, name), "r") in (errno.EINVAL, errno.ENOENT,
                                                                               errno.ENAMETOOLONG)


def test_findings_of_a_bad_one_after_a_restart(node):
    n = node()
    n.assign("maxPods: many\n")
    n.wait("condition", "False failed to validate")
    n.mount.kill_child("lkgfs-engine")
    n.wait("findings", "[LKG6008]")
    assert "kube-system/node-config:kubelet:3:10: error: maxPods" in n.status("findings")


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


def test_a_file_that_is_no_reference_is_not_looked_at(node):
    n = node(remote={"references": ["static"]})
    n.put(n.configmap("maxPods: 42\n"))
    n.mount.command("sync", "now")
    assert n.sources() == ("init", "init", "init") and "no reference yet" in n.status("condition")
    n.configure(remote={"references": ["static", "file"]})
    n.mount.reload()
    n.wait("active", "8f1c@1")


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


def test_state_of_a_newer_lkgfs(node):
    n = node()
    local = n.mount.document()
    n.assign("maxPods: 42\n")
    n.mount.stop()
    lib.write_file(os.path.join(n.mount.state, "format"), "lkgfs-state 2\n", 0o600)
    before = sorted(os.listdir(os.path.join(n.mount.state, "dynamic", "kubelet")))
    n.mount.start()
    assert n.mount.document() == local and "LKG6010" in n.status("findings")
    assert sorted(os.listdir(os.path.join(n.mount.state, "dynamic", "kubelet"))) == before
    assert lib.error_of(n.mount.command, "promote", "now") == errno.EBUSY


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
