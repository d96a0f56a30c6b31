# SPDX-License-Identifier: Apache-2.0
"""Failures of the environment: a full or read-only state directory, a second lkgfsd, damaged records, broken local layers."""
import os
import shutil

import pytest

import lkgfs_testlib as lib


@pytest.fixture
def small(node):
    """A node whose state directory is a file system of 2 MiB."""
    made = []

    def make(**options):
        n = node(start=False, **options)
        os.mkdir(n.mount.state, 0o700)
        lib.run("mount", "-t", "tmpfs", "-o", "size=2m,mode=0700", "none", n.mount.state, check=True)
        made.append(n)
        n.mount.start()
        return n
    yield make
    for n in made:
        n.close()
        n.mount.stop()
        lib.run("umount", n.mount.state, check=True)


def fill(path):
    fd = os.open(path, os.O_WRONLY | os.O_CREAT, 0o600)
    try:
        for size in (65536, 4096, 512, 1):
            while lib.error_of(os.write, fd, b"x" * size) == 0:
                pass
    finally:
        os.close(fd)


def test_a_full_state_directory(small):
    n = small(trial={"duration": "0s"})
    one = n.assign("maxPods: 1\n")
    n.wait("last-known-good", one)
    ballast = os.path.join(n.mount.state, "ballast")
    fill(ballast)
    two = n.assign("maxPods: 2\n", wait=False)
    n.wait("condition", "Unknown failed to sync, desired config unclear, cause: failed to save config checkpoint")
    assert n.sources() == (one, one, one) and "\nmaxPods: 1\n" in n.mount.document()
    assert n.status("error") != ""
    n.mount.drop("50-x.conf", "registryBurst: 7\n")
    n.mount.wait_for(lambda: "\nregistryBurst: 7\n" in n.mount.document(), "the view goes on")
    os.unlink(ballast)
    n.mount.command("sync", "now")
    n.wait("last-known-good", two)
    n.wait("condition", "True all checks passed")


DAMAGES = {"empty": b"", "torn": None, "foreign": b"\x7fELF\0\0", "newer": b'{"schemaVersion": 99}\n'}


@pytest.mark.limit(200)
@pytest.mark.parametrize("damage", DAMAGES)
def test_every_record_damaged_in_turn(node, damage):
    """lkgfsd starts and serves; the damage is reported."""
    n = node(trial={"duration": "0s"})
    n.wait("last-known-good", n.assign("maxPods: 1\n"))
    n.crash()
    n.wait("condition", "True all checks passed")
    n.assign("kubeAPIQPS: -1\n")
    n.wait("condition", "False failed to validate current")
    n.mount.stop()
    saved = os.path.join(n.mount.root, "saved")
    lib.run("cp", "-a", n.mount.state, saved, check=True)
    # documents/ is read when a rollback needs it, and not before
    records = [os.path.join(top, name)[len(saved) + 1:] for part in ("dynamic", "checkpoints")
               for top, _, names in os.walk(os.path.join(saved, part)) for name in names
               if os.path.basename(top) != "documents"]
    assert len(records) >= 5
    for record in records:
        lib.run("rm", "-rf", n.mount.state, check=True)
        lib.run("cp", "-a", saved, n.mount.state, check=True)
        path = os.path.join(n.mount.state, record)
        data = lib.read_file(path)
        lib.write_file(path, data[:len(data) // 2] if DAMAGES[damage] is None else DAMAGES[damage], 0o600)
        n.mount.start()
        assert n.mount.document(), record
        n.mount.command("sync", "now")
        findings = n.status("findings") + n.mount.log()
        if not record.endswith("release"):
            assert os.path.basename(record) in findings or os.path.basename(os.path.dirname(record)) in findings, record
        assert n.mount.stop() == 0, record


# ---- local layers that are wrong at a start ----

@pytest.mark.parametrize("where", ["base", "dropin"])
@pytest.mark.parametrize("policy", ["lkg", "strict"])
def test_local_layers_broken_at_a_start(node, where, policy):
    n = node(trial={"duration": "0s"}, component={"localPolicy": policy})
    source = n.assign("maxPods: 1\n")
    n.wait("last-known-good", source)
    document = n.mount.document()
    n.mount.stop()
    path = os.path.join(n.mount.source, "kubelet.conf" if where == "base" else "kubelet.conf.d/50-x.conf")
    lib.write_file(path, lib.HEADER + "maxPods: many\n", 0o600)
    if policy == "strict":
        n.mount.start(wait_ready=False)
        assert n.mount.process.wait(lib.TIMEOUT_S) == 78
        assert "maxPods" in n.mount.log() and os.path.basename(path) in n.mount.log()
        assert n.mount.tool("gate", "kubelet").returncode == 1
        return
    n.mount.start()
    assert n.mount.document() == document
    n.wait("condition", "False ")
    assert n.bad() == {} and n.sources() == (source, source, source)
    assert n.mount.tool("gate", "kubelet").returncode == 0
    if where == "base":
        lib.write_file(path, lib.BASE, 0o600)
    else:
        os.unlink(path)
    n.wait("condition", "True all checks passed")


def test_a_kubeconfig_under_the_name_is_never_hidden(node):
    """Rule: docs/specification.md 2.15."""
    n = node(trial={"duration": "0s"})
    source = n.assign("maxPods: 1\n")
    n.wait("last-known-good", source)
    lib.write_file(n.mount.behind("kubelet.conf"), lib.KUBECONFIG, 0o600)
    n.wait("condition", "False name taken: ")
    assert n.mount.document() == lib.KUBECONFIG
    assert "client-certificate" not in n.status("findings") + n.status("diff")
    n.mount.kill_child("lkgfs-engine")
    n.mount.command("sync", "now")
    assert n.mount.document() == lib.KUBECONFIG
    lib.write_file(n.mount.behind("kubelet.conf"), lib.BASE, 0o600)
    n.wait("condition", "True all checks passed")
    assert "\nmaxPods: 1\n" in n.mount.document() and n.sources() == (source, source, source)


# ---- which source is at fault, and what is served ----

BROKEN = ["maxPods: [\n", "maxPods: -3\n"]


@pytest.mark.parametrize("broken", BROKEN, ids=["syntax", "value"])
def test_a_drop_in_s_mistake_is_never_the_configmap_s(node, broken):
    n = node(trial={"duration": "0s"})
    one = n.assign("registryBurst: 1\n", uid="aaaa")
    n.wait("last-known-good", one)
    n.mount.drop("50-x.conf", broken)
    words = "False failed to validate local (init), 1 error, see status/kubelet/findings"
    assert n.status("condition") == words + ": using current (UID: aaaa)\n"
    assert n.status("findings").count("50-x.conf:") == 1, "once, not once for each base"
    two = n.assign("registryBurst: 2\n", uid="bbbb")
    n.mount.command("sync", "now")
    waits = words + "; what is assigned waits for it: using last-known-good (UID: aaaa)\n"
    assert n.status("condition") == waits and n.sources() == (two, one, one) and n.bad() == {}
    n.mount.stop()
    n.mount.start()
    n.wait("condition", waits)
    assert "\nregistryBurst: 1\n" in n.mount.document()
    os.unlink(n.mount.path("kubelet.conf.d/50-x.conf"))
    n.wait("condition", "True all checks passed: using current (UID: bbbb)")


def test_a_drop_in_that_does_not_fit_the_configmap(node):
    """Each is valid alone; the drop-in is what changed. Rule: docs/specification.md 4.5."""
    n = node(trial={"duration": "0s"})
    n.mount.drop("50-x.conf", "imageGCHighThresholdPercent: 95\n")
    source = n.assign("imageGCLowThresholdPercent: 90\n")
    n.wait("last-known-good", source)
    n.mount.drop("50-x.conf", "imageGCHighThresholdPercent: 86\n")
    assert n.status("condition") == ("False failed to validate local (init) with current (UID: 8f1c), 1 error, see "
                                     "status/kubelet/findings: using current (UID: 8f1c)\n")
    assert n.bad() == {} and "\nimageGCHighThresholdPercent: 95\n" in n.mount.document()


def test_the_condition_counts_as_findings_does(node):
    """The base is wrong as well, but is not in use now: two errors, and the condition is about one of them."""
    n = node(trial={"duration": "0s"})
    n.wait("last-known-good", n.assign("imageGCLowThresholdPercent: 90\nimageGCHighThresholdPercent: 95\n"))
    lib.write_file(n.mount.behind("kubelet.conf"), lib.HEADER + "maxPods: -1\n", 0o600)
    n.wait("condition", "False failed to validate local (init), 1 error, see status/kubelet/findings: using current ")
    n.mount.drop("50-x.conf", "imageGCHighThresholdPercent: 86\n")
    found = n.status("findings")
    assert found.count(": error: ") == 2, found
    n.wait("condition", "False failed to validate local (init), 1 of the 2 errors in status/kubelet/findings: using current ")
    assert 'lkgfs_findings{component="kubelet",severity="error"} 2\n' in n.status("metrics.prom")


def test_a_local_mistake_that_is_mended_is_not_told_on(node):
    """The local mistake is gone from the findings of a ConfigMap that was meanwhile refused for a mistake of its own."""
    n = node(trial={"duration": "0s"})
    n.wait("last-known-good", n.assign("registryBurst: 1\n", uid="aaaa"))
    n.mount.drop("50-x.conf", "maxPods: -3\n")
    n.assign("registryBurst: -2\n", uid="bbbb")
    n.wait("condition", "False failed to validate current (UID: bbbb): using last-known-good (UID: aaaa)")
    assert n.status("findings").count("maxPods: -3") == 1
    assert "; failed to validate local (init), 1 of the 2 errors in status/kubelet/findings" in n.status("condition")
    os.unlink(n.mount.path("kubelet.conf.d/50-x.conf"))
    n.mount.command("sync", "now")
    assert "maxPods: -3" not in n.status("findings") and "registryBurst: -2" in n.status("findings")


def test_what_was_held_is_what_is_used_also_after_the_hold(node):
    """Another ConfigMap was followed meanwhile, and a drop-in is wrong when the hold ends: the held document stays."""
    n = node(trial={"duration": "0s"})
    one = n.assign("registryBurst: 1\n", uid="aaaa")
    n.wait("last-known-good", one)
    n.mount.command("hold", "on")
    two = n.assign("registryBurst: 2\n", uid="bbbb")
    n.mount.drop("50-x.conf", "maxPods: -3\n")
    n.mount.command("hold", "off")
    assert "\nregistryBurst: 1\n" in n.mount.document()
    assert n.status("condition").endswith(": using last-known-good (UID: aaaa)\n")
    assert n.sources() == (two, one, one)
    os.unlink(n.mount.path("kubelet.conf.d/50-x.conf"))
    n.wait("condition", "True all checks passed: using current (UID: bbbb)")
    assert "\nregistryBurst: 2\n" in n.mount.document() and n.sources()[:2] == (two, two)


@pytest.mark.parametrize("remote", [True, False])
def test_scope_all_a_mistake_after_a_rollback(node, remote):
    """What is served is still the target of the rollback, and no status file calls it the current merge of the layers."""
    n = node(trial={"scope": "all", "crashLoopThreshold": 0}, remote={"enabled": remote})
    if remote:
        n.wait("active", n.assign("registryBurst: 1\n", uid="aaaa"))
        n.mount.command("promote", "now")
    using = "using last-known-good " + ("(UID: aaaa)" if remote else "(init)")
    good = n.mount.document()
    n.mount.drop("40-x.conf", "maxPods: 44\n")
    n.crash()
    assert n.crash() == good
    assert using in n.status("condition")
    n.mount.drop("50-x.conf", "maxPods: [\n")
    assert using in n.status("condition") and n.mount.document() == good
    n.mount.stop()
    n.mount.start()
    assert using in n.status("condition") and n.mount.document() == good


def test_a_lost_checkpoint_is_the_disk_s_fault(node):
    n = node(trial={"duration": "0s"})
    source = n.assign("registryBurst: 1\n", uid="aaaa")
    n.wait("last-known-good", source)
    n.mount.drop("50-x.conf", "maxPods: 7\n")
    document = n.mount.document()
    n.mount.stop()
    shutil.rmtree(os.path.join(n.mount.state, "checkpoints/aaaa"))
    os.rename(n.file, n.file + ".away")
    n.mount.start()
    n.wait("condition", "False checkpoint of current (UID: aaaa) lost, see status/kubelet/findings: using current (UID: aaaa)")
    assert n.mount.document() == document and n.bad() == {}
    assert "the checkpoint is lost; what was served last" in n.status("findings")
    n.mount.drop("60-y.conf", "maxPods: -3\n")
    assert n.status("condition").startswith("False failed to validate local (init), 1 of the ")
    os.unlink(n.mount.path("kubelet.conf.d/60-y.conf"))
    os.rename(n.file + ".away", n.file)
    n.wait("condition", "True all checks passed: using current (UID: aaaa)")


def test_a_rollback_to_what_lkg_shows_where_the_layers_do_not_come_to_it_any_more(node):
    """The base is missing: what lkg/ shows is served byte for byte, not the current merge."""
    n = node(trial={"duration": "0s", "minDuration": "0s"})
    source = n.assign("maxPods: 41\n", uid="aaaa")
    n.wait("last-known-good", source)
    os.unlink(n.mount.path("kubelet.conf.base"))
    n.put("local\n")
    n.mount.wait_for(lambda: "aaaa" not in n.status("assigned"))
    shown = n.good_document()
    assert shown != n.mount.document()
    n.mount.command("rollback", "lkg")
    assert n.mount.document() == shown
    assert f" at generation {n.mount.generation()} (rollback)" in n.status("condition")


def test_a_configmap_waits_for_a_dropin_that_did_not_fit_before(node):
    """If a drop-in does not fit the ConfigMap that is followed, it also blocks the next one.

    Rule: docs/specification.md 4.5.
    """
    n = node(trial={"duration": "0s", "minDuration": "0s"})
    body = "imageGCLowThresholdPercent: 85\nimageGCHighThresholdPercent: 90\n"
    n.wait("last-known-good", n.assign(body, uid="aaaa"))
    n.mount.drop("50-x.conf", "imageGCHighThresholdPercent: 83\n")
    n.wait("condition", "False failed to validate local (init) with current (UID: aaaa)")
    source = n.assign(body + "maxPods: 50\n", uid="aaaa")
    n.wait("condition", "; what is assigned waits for it")
    assert n.bad() == {}
    os.unlink(n.mount.path("kubelet.conf.d", "50-x.conf"))
    n.wait("active", source)
    n.wait("condition", "True all checks passed")
    assert "\nmaxPods: 50\n" in n.mount.document()


def test_a_base_that_is_gone_under_a_remote_one(node):
    """A warning, because the base is not needed now; and drop-ins are not invalid because it is missing."""
    n = node(dropins={"50-x.conf": lib.HEADER + "imageGCHighThresholdPercent: 75\n"}, base=lib.HEADER + "imageGCLowThresholdPercent: 70\n",
             trial={"duration": "0s"})
    n.wait("last-known-good", n.assign("imageGCLowThresholdPercent: 60\n"))
    os.unlink(n.mount.path("kubelet.conf.base"))
    n.mount.wait_for(lambda: "LKG2031" in n.status("findings"))
    assert "error" not in n.status("findings") and "a reset to local would be refused" in n.status("findings")
    assert n.status("condition").startswith("True all checks passed")
    assert "LKG2031" in n.mount.tool("status").stdout.decode()


def test_an_exoneration_is_of_what_failed_its_trial(node):
    n = node(trial={"crashLoopThreshold": 0})
    n.wait("active", n.assign("maxPods: 41\n", uid="xxxx"))
    for _ in range(4):
        n.crash()
    n.wait("condition", "False crash loop goes on with last-known-good")
    n.assign("maxPods: -41\n", uid="yyyy")
    n.wait("condition", "False failed to validate current (UID: yyyy)")


def test_what_comes_while_the_local_layers_are_wrong_waits(node):
    """Even if the node does not follow a configuration yet."""
    n = node(trial={"duration": "0s", "minDuration": "0s"})
    n.mount.drop("10-a.conf", "podPidsLimit: x\n")
    n.wait("condition", "False failed to validate ")
    source = n.assign("maxPods: 5\n", uid="aaaa")
    n.wait("condition", "False failed to validate local (init), 1 error, see status/kubelet/findings; what is assigned waits for it: ")
    n.mount.kill_child("lkgfs-engine")
    n.mount.sync()
    n.wait("condition", "; what is assigned waits for it: ")
    os.unlink(n.mount.path("kubelet.conf.d", "10-a.conf"))
    n.wait("active", source)
