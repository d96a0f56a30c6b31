# SPDX-License-Identifier: Apache-2.0
"""Status is exact even when two things coincide: an engine that dies, text written by others, layers that disappear."""
import errno
import os
import pathlib
import re

import pytest

import lkgfs_testlib as lib

KEY = "  -----BEGIN PRIVATE KEY-----\n  MIIs3cretKEYMATERIALabcdefghijk\n  -----END PRIVATE KEY-----\n"


def shown(mount):
    """Everything about the component that people and programs read, except the served document."""
    found = [mount.tool("blame").stdout]
    for folder in ("status", "layers", "history"):
        for path in sorted(pathlib.Path(mount.vpath(folder)).rglob("*")):
            if path.is_file():
                found.append(path.read_bytes())
    return b"\n".join(found)


@pytest.mark.parametrize("body", [
    "staticPodURLHeader:Authorization: s3cret\n", "staticPodURLHeader Authorization: s3cret\n",
    "staticPodURLHeader.Authorization: [s3cret]\n", "user:\n  bearerToken=: {x: s3cret}\n",
    f"tlsPrivateKeyFile: |\n{KEY}", f"maxPods: |\n{KEY}", f"syncFrequency: |\n{KEY}", f"evictionHard:\n memory.available: |\n{KEY}",
    f"clusterDNS:\n- |\n{KEY}", f"reservedSystemCPUs: |\n{KEY}", f"containerLogMaxSize: |\n{KEY}", f"featureGates:\n Nope: |\n{KEY}",
    f"registerWithTaints:\n- key: |\n{KEY}", f"logging:\n format: |\n{KEY}", f"kubeReserved:\n cpu: |\n{KEY}", f"unknown: |\n{KEY}", f"featureGates: |\n{KEY}", f"? |\n{KEY}: 1\n", f"tlsPrivateKeyFile: {{? |\n{KEY}: 1}}\n",
])
def test_a_credential_in_the_wrong_place(shared, body):
    """A space too few or too many: neither the name nor the value is shown."""
    shared.drop("50-x.conf", body)
    shared.sync()
    assert b"s3cret" not in shown(shared)


def where(mount):
    """Return the file that sets maxPods, according to origin and to the comments of effective.yaml."""
    line = next(line for line in mount.status("origin").splitlines() if line.startswith("/maxPods\t"))
    effective = next(line for line in mount.status("effective.yaml").splitlines() if line.startswith("maxPods:"))
    return line.split("\t")[2], effective.split(" # ")[1]


@pytest.mark.parametrize("body", ["podsPerCore: 5\n", "podsPerCore: -5\n", "featureGates: {Nope: true}\n", "podsPerCore: [\n"])
def test_origin_and_effective_agree_while_the_layers_are_not_served(mount, body):
    """Both show the layers as they were when they last merged to what is served."""
    mount.drop("30-a.conf", "maxPods: 64\n")
    mount.drop("60-x.conf", "maxPods: 64\n")
    mount.command("hold", "on")
    mount.drop("70-z.conf", body)
    for step in (lambda: None, lambda: os.unlink(mount.path("kubelet.conf.d/60-x.conf")),
                 lambda: mount.drop("30-a.conf", "# one\nmaxPods: 64\n")):
        step()
        mount.sync()
        assert where(mount) == ("drop-in 60-x.conf", "drop-in 60-x.conf")
    os.unlink(mount.path("kubelet.conf.d/70-z.conf"))
    mount.command("hold", "off")
    mount.sync()
    assert where(mount) == ("drop-in 30-a.conf", "drop-in 30-a.conf")


def scope_all(node):
    n = node(trial={"scope": "all", "duration": "10m", "crashLoopThreshold": 1}, remote={"enabled": False},
             dropins={"10.conf": lib.HEADER + "maxPods: 50\n"})
    n.mount.drop("10.conf", "maxPods: 51\n")
    return n


def test_a_failed_trial_is_told_alike_by_the_next_engine(node):
    """One counted start of the last known good does not clear what failed, in whichever engine reports it."""
    n = scope_all(node)
    for _ in range(4):
        n.crash()
    n.wait("condition", "False current failed trial period due to crash loop")
    before = n.mount.condition(), n.status("trial")
    assert "threshold=1" in before[1]
    n.mount.kill_child("lkgfs-engine")
    n.mount.sync()
    assert (n.mount.condition(), n.status("trial")) == before
    n.mount.stop()
    n.mount.start()
    assert (n.mount.condition(), n.status("trial")) == before


def test_what_is_served_is_not_called_last_known_good_for_its_source(node):
    """trial.scope all: 50 is good, 51 has failed and is written again while 52 is on trial."""
    n = scope_all(node)
    for _ in range(4):
        n.crash()
    n.wait("condition", "using last-known-good (init)")
    n.mount.drop("10.conf", "maxPods: 52\n")
    n.mount.drop("10.conf", "maxPods: 51\n")
    assert "\nmaxPods: 52\n" in n.mount.document() and "\nmaxPods: 50\n" in n.good_document()
    assert n.mount.condition()[1].endswith(": using previous (init)")


def test_the_words_of_a_mark_are_nothing_but_words(node):
    n = node()
    n.assign("maxPods: 42\n")
    source = n.sources()[1]
    for words in ("superseded by the one of team B (UID: 77aa)", "current failed trial period due to crash loop (UID: 8f1c)"):
        assert n.mount.tool("bad", source, words).returncode == 0
        assert n.mount.condition()[1].startswith(f"marked bad (UID: 8f1c): {words}"), n.mount.condition()
        n.mount.command("forget", "all")
    counts = dict(re.findall(r'lkgfs_rollbacks_total\{.*reason="(\w+)".*\} (\d+)', n.status("metrics.prom")))
    assert counts.pop("condemned") == "2" and set(counts.values()) == {"0"}, counts


def test_a_pin_says_what_ends_it(node):
    n = node()
    n.assign("maxPods: 42\n")
    n.assign("maxPods: 43\n")
    n.mount.command("rollback", "2")
    held = [line for line in n.status("findings").splitlines() if "[LKG4018]" in line or "[LKG4019]" in line]
    assert len(held) == 1 and "control/kubelet/hold, or another configuration is assigned [" in held[0]


def test_no_error_names_a_file_that_is_gone(node):
    """A ConfigMap that was refused together with a drop-in is judged again when the drop-in is removed."""
    n = node()
    n.assign("maxPods: 42\n")
    n.mount.drop("51-x.conf", "serializeImagePulls: true\n")
    n.assign("maxParallelImagePulls: 5\nserializeImagePulls: false\n", wait=False)
    n.wait("findings", "51-x.conf")
    os.unlink(n.mount.path("kubelet.conf.d/51-x.conf"))
    n.mount.sync()
    findings = n.status("findings")
    assert "51-x.conf" not in findings and "is assigned and not used: failed to validate current" in findings


def test_the_last_known_good_has_its_base_also_after_a_restart(node):
    """The base is removed while a remote configuration replaces it."""
    n = node(dropins={})
    n.assign("maxPods: 42\n")
    os.unlink(n.mount.behind("kubelet.conf"))
    n.mount.sync()
    assert n.status("last-known-good") == "init\n"
    n.mount.stop()
    n.mount.start()
    assert n.status("last-known-good") == "init\n" and "clusterDomain" in n.good_document()


def test_since_when_a_generation_is_served(mount):
    """A restart of the engine does not count."""
    served = os.stat(mount.path("kubelet.conf")).st_mtime_ns
    since = os.stat(mount.vpath("status/kubelet/generation")).st_mtime_ns
    assert since == served
    mount.kill_child("lkgfs-engine")
    mount.sync()
    assert os.stat(mount.vpath("status/kubelet/generation")).st_mtime_ns == served


def refused(node):
    n = node()
    n.mount.drop("50-a.conf", "maxPods: [\n")
    return n


def held_by_hand(node):
    n = node()
    n.mount.command("hold", "on")
    n.mount.drop("50-a.conf", "maxPods: 77\n")
    return n


def tried(node):
    n = node()
    n.mount.command("try", "10m")
    n.mount.drop("50-a.conf", "maxPods: 77\n")
    return n


def rolled_back(node):
    n = node()
    n.assign("maxPods: 42\n")
    n.assign("maxPods: 43\n")
    n.mount.command("rollback", "lkg")
    return n


def on_trial(node):
    n = node(trial={"duration": "10m"})
    n.assign("maxPods: 42\n")
    n.crash()
    return n


def crashed(node):
    n = node(trial={"duration": "10m", "crashLoopThreshold": 1})
    n.assign("maxPods: 42\n")
    for _ in range(3):
        n.crash()
    return n


def refused_remote(node):
    n = node()
    n.assign("maxPods: 42\n")
    n.assign("maxPods: -1\n", wait=False)
    n.wait("condition", "failed to validate")
    return n


def crashed_document(node):
    n = scope_all(node)
    for _ in range(4):
        n.crash()
    n.wait("condition", "using last-known-good (init)")
    return n


def wrong_command(node):
    n = node()
    assert lib.error_of(n.mount.command, "rollback", "999") == errno.EINVAL
    return n


STATES = [refused, held_by_hand, tried, rolled_back, on_trial, crashed, refused_remote, crashed_document, wrong_command]


# Counters and times. A refused candidate is validated again, and counted again.
TICKS = re.compile(rb'(?m)^lkgfs_(publication|heartbeat_timestamp_seconds|refusals_total)\{.*|"lastHeartbeatTime":"[^"]*"')


def all_that_is_shown(mount):
    files = {}
    for top in ("status", "bad", "lkg", "layers", "history"):
        for folder, _, names in os.walk(mount.vpath(top)):
            files.update({os.path.join(folder, name): lib.read_file(os.path.join(folder, name)) for name in names})
    return {path: TICKS.sub(b"", text) for path, text in files.items()}


@pytest.mark.parametrize("state", STATES)
def test_a_reload_changes_nothing_that_is_shown(node, state):
    """A reload keeps the whole state by design, not only a list of fields."""
    n = state(node)
    n.wait("process", "version=Python")  # found out in the background
    if all(life.process.poll() is not None for life in n.lives):
        n.wait("process", "pid=\n")  # the engine hears of an end when it reads its events, as of everything
    n.mount.sync()
    before, document = all_that_is_shown(n.mount), n.mount.document()
    for _ in range(2):
        n.mount.reload()
        n.mount.sync()
        assert n.mount.document() == document
        now = all_that_is_shown(n.mount)
        assert now.keys() == before.keys()
        assert {path: (text, now[path]) for path, text in before.items() if text != now[path]} == {}
