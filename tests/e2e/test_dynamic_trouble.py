# SPDX-License-Identifier: Apache-2.0
"""Failures of the environment: a full or read-only state directory, a second lkgfsd, damaged records, broken local layers."""
import os

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


# ---- what is served ----

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
