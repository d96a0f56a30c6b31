# SPDX-License-Identifier: Apache-2.0
"""Content that kills an engine is refused by its successor and never read again: docs/decisions/012-poison.md.

The defect is injected: tests/lib/poison-preload.c, preloaded into the real engine, ends it while it parses, or merges and judges,
content with a line `#POISON HOW WHERE`. Rule: docs/specification.md 6.4.
"""
import contextlib
import ctypes
import os
import select
import signal
import struct
import threading

import pytest

import lkgfs_testlib as lib
from lkgfs_apinode import ANNOTATION, CONFIGMAP, REFERENCE, payload, source_id
from lkgfs_node import NAMESPACE, Node

PRELOAD = os.path.join(lib.BUILD, "tests/lib/poison-preload.so")
HOW = {"abort": "ended by signal 6 (SIGABRT)", "segv": "ended by signal 11 (SIGSEGV)", "memory": "reached its memory limit",
       "loop": "used too much processor time"}


def poison(how="abort", where="read"):
    return f"#POISON {how} {where}\n"


@pytest.fixture(autouse=True)
def fixture_engines_may_crash(monkeypatch):
    monkeypatch.setattr(lib, "MAY_CRASH", ("lkgfs-engine",))


@pytest.fixture(name="poisoned")
def fixture_poisoned(monkeypatch, tmp_path):
    """Engines of every mount that is started from here on have the defect; .off() and .on() switch it."""

    class Switch:
        path = str(tmp_path / "off")

        def off(self):
            lib.write_file(self.path, "")

        def on(self):
            os.unlink(self.path)

    switch = Switch()
    monkeypatch.setenv("LD_PRELOAD", PRELOAD)
    monkeypatch.setenv("LKGFS_POISON_OFF", switch.path)
    return switch


class Item(ctypes.Structure):
    """struct lkg_judging_item"""
    _fields_ = [("key", ctypes.c_ubyte * 16), ("what", ctypes.c_uint32), ("judged", ctypes.c_uint32),
                ("component", ctypes.c_char * 64), ("sha256", ctypes.c_char * 65), ("file", ctypes.c_char * 192)]


class Note(ctypes.Structure):
    """The head of struct lkg_judging (include/lkg/admission.h)."""
    _fields_ = [("magic", ctypes.c_uint64), ("since_ns", ctypes.c_uint64), ("n_items", ctypes.c_uint32),
                ("others", ctypes.c_uint32), ("end", ctypes.c_uint32), ("end_status", ctypes.c_int32),
                ("n_killed", ctypes.c_uint32), ("killed_with", ctypes.c_ubyte * 16), ("n_known", ctypes.c_uint64),
                ("n_saved", ctypes.c_uint64), ("items", Item * 512)]


def note_of(mount):
    with open(os.path.join(mount.runtime, "private", "judging"), "rb") as file:
        return Note.from_buffer_copy(file.read(ctypes.sizeof(Note)))


def wait_idle(mount):
    """The engine has finished its work: what it judged is known to be harmless."""
    mount.wait_for(lambda: note_of(mount).since_ns == 0, "an engine without work")


def refusals(mount, component="kubelet"):
    return [line for line in mount.status("findings", component).splitlines() if "LKG2030" in line]


def wait_refused(mount, name, how="abort", component="kubelet"):
    def look():
        return any(name in line and HOW[how] in line for line in refusals(mount, component))
    mount.wait_for(look, f"a finding about {name}", timeout=lib.TIMEOUT_S)
    status, rest = mount.condition(component)
    assert status == "False", rest


LAYERS = {
    "base": ("kubelet.conf", lib.BASE),
    "drop-in": ("kubelet.conf.d/50-poison.conf", lib.HEADER + "podsPerCore: 9\n"),
    "instance": ("kubelet-instance.conf", lib.HEADER + "podsPerCore: 9\n"),
    "patch": ("patches/kubeletconfiguration0.yaml", "podsPerCore: 9\n"),
}


def with_patches(mounts, **options):
    def tree(source, **more):
        lib.make_tree(source, **more)
        os.mkdir(os.path.join(source, "patches"))
        lib.write_file(os.path.join(source, "patches", "kubeletconfiguration0.yaml"), "registryBurst: 11\n")
    return mounts(tree=tree, components=[{"name": "kubelet", "base": "kubelet.conf", "patchesDir": "patches"}], **options)


@pytest.mark.parametrize("where", ["read", "judge"])
@pytest.mark.parametrize("kind", LAYERS)
def test_of_each_kind_while_running(mounts, poisoned, kind, where):
    mount = with_patches(mounts)
    document, engine = mount.document(), mount.child("lkgfs-engine")
    name, text = LAYERS[kind]
    lib.write_file(mount.behind(name), poison("abort", where) + text)
    wait_refused(mount, os.path.basename(name))
    assert mount.document() == document and mount.child("lkgfs-engine") != engine
    # Everything else goes on: other layers are read and judged, commands are carried out, a repaired file is served.
    engine = mount.child("lkgfs-engine")
    mount.drop("70-wrong.conf", "maxPods: [1\n")
    assert "70-wrong.conf" in mount.status("findings")
    mount.drop("70-wrong.conf", "maxPods: 71\n")
    assert "70-wrong.conf" not in mount.status("findings") and refusals(mount)
    mount.command("hold", "on")
    mount.command("hold", "off")
    lib.write_file(mount.behind(name), text + "# repaired\n")
    mount.wait_for(lambda: mount.condition()[0] == "True", "the repaired layer")
    assert "\nmaxPods: 71\n" in mount.document() and not refusals(mount)
    assert mount.child("lkgfs-engine") == engine, "nobody else ended"
    assert poisoned


@pytest.mark.parametrize("how", ["segv", "memory", "loop"])
@pytest.mark.parametrize("where", ["read", "judge"])
def test_of_each_death(mounts, poisoned, how, where):
    mount = mounts()
    document = mount.document()
    lib.write_file(mount.behind("kubelet.conf.d/50-poison.conf"), poison(how, where) + lib.HEADER + "podsPerCore: 9\n")
    wait_refused(mount, "50-poison.conf", how)
    assert mount.document() == document
    assert len(refusals(mount)) == 1, "only what is new"
    os.unlink(mount.path("kubelet.conf.d/50-poison.conf"))
    mount.wait_for(lambda: mount.condition()[0] == "True", "the layer is gone")
    assert poisoned


def test_layers_that_were_harmless_before(mounts, poisoned):
    """Nothing has changed, and the engine still crashes: the layers are refused together."""
    poisoned.off()
    mount = mounts(dropins={"50-poison.conf": poison("abort", "judge") + lib.HEADER + "podsPerCore: 9\n",
                            "60-other.conf": lib.HEADER + "registryBurst: 12\n"})
    document = mount.document()
    wait_idle(mount)
    poisoned.on()
    mount.kill_child("lkgfs-engine")
    mount.wait_for(lambda: refusals(mount), "layers that are refused together")
    assert "these layers together" in refusals(mount)[0] and mount.condition()[0] == "False"
    assert mount.document() == document
    poisoned.off()
    mount.command("hold", "on")
    mount.command("hold", "off")
    assert refusals(mount), "they are as they were"
    mount.sync()
    assert mount.condition()[0] == "True" and not refusals(mount)
    wait_idle(mount)
    poisoned.on()
    mount.kill_child("lkgfs-engine")
    mount.wait_for(lambda: refusals(mount), "refused together once more")
    os.unlink(mount.path("kubelet.conf.d/50-poison.conf"))
    assert mount.condition()[0] == "True" and not refusals(mount), "other layers are not those layers"


def test_sync_tries_again(mounts, poisoned):
    mount = mounts()
    lib.write_file(mount.behind("kubelet.conf.d/50-poison.conf"), poison() + lib.HEADER + "podsPerCore: 9\n")
    wait_refused(mount, "50-poison.conf")
    engine, first = mount.child("lkgfs-engine"), refusals(mount)[0]
    with contextlib.suppress(OSError):
        mount.command("sync", "now")  # it makes the engine crash again
    mount.wait_for(lambda: mount.child("lkgfs-engine") != engine and refusals(mount), "refused once more")
    poisoned.off()
    mount.sync()
    assert mount.condition()[0] == "True" and "\npodsPerCore: 9\n" in mount.document() and first


def test_at_the_very_first_start(mounts, poisoned):
    mount = mounts(start=False, dropins={"50-poison.conf": poison() + lib.HEADER})
    process = mount.start(wait_ready=False)
    assert process.wait(lib.TIMEOUT_S) == 78, mount.log()
    last = [line for line in mount.log().splitlines() if line.startswith("lkgfsd:")][-1]
    assert "50-poison.conf" in last and HOW["abort"] in last, "lkgfsd itself says why"
    # The next start does not read it either, even after a reboot that has emptied the runtime directory.
    lib.run("rm", "-rf", mount.runtime)
    process = mount.start(wait_ready=False)
    assert process.wait(lib.TIMEOUT_S) == 78 and mount.log().count("was killed by signal 6") == 1
    lib.write_file(os.path.join(mount.source, "kubelet.conf.d/50-poison.conf"), lib.HEADER + "podsPerCore: 9\n")
    mount.start()
    assert mount.condition()[0] == "True" and "\npodsPerCore: 9\n" in mount.document()
    assert poisoned


@pytest.mark.parametrize("where", ["read", "judge"])
def test_at_a_start_with_a_stored_document(mounts, poisoned, where):
    mount = mounts()
    document = mount.document()
    assert mount.stop() == 0
    lib.write_file(os.path.join(mount.source, "kubelet.conf.d/50-poison.conf"), poison("segv", where) + lib.HEADER)
    lib.run("rm", "-rf", mount.runtime)
    mount.start()
    wait_refused(mount, "50-poison.conf", "segv")
    assert mount.document() == document and len(refusals(mount)) == 1, "what was judged before the reboot is known"
    assert poisoned


def test_reload_brings_it(mounts, poisoned):
    mount = mounts(dropins={})
    document = mount.document()
    os.mkdir(mount.behind("poison.d"))
    lib.write_file(mount.behind("poison.d/50-poison.conf"), poison() + lib.HEADER + "podsPerCore: 9\n")
    mount.write_config(components=[{"name": "kubelet", "dropInDir": "poison.d"}])
    mount.process.send_signal(signal.SIGHUP)
    wait_refused(mount, "50-poison.conf")
    assert mount.document() == document
    poisoned.off()
    mount.sync()
    assert mount.condition()[0] == "True" and "\npodsPerCore: 9\n" in mount.document()


class Guard:
    """Ends every engine that opens `path`, as a scanner of files may, and the kernel without memory: fanotify(7), FAN_OPEN_PERM."""
    INIT, MARK = 300, 301  # syscall(2)
    CLASS_CONTENT, OPEN_PERM, ALLOW = 4, 0x10000, 1
    EVENT = struct.Struct("=IBBHQii")

    def __init__(self, path):
        self.libc = ctypes.CDLL(None, use_errno=True)
        self.killed, self.stopping = 0, os.eventfd(0)
        self.fd = self.libc.syscall(self.INIT, self.CLASS_CONTENT, os.O_RDONLY | os.O_CLOEXEC)
        assert self.fd >= 0, os.strerror(ctypes.get_errno())
        r = self.libc.syscall(self.MARK, self.fd, 1, ctypes.c_uint64(self.OPEN_PERM), -100, os.fsencode(path))
        assert r == 0, os.strerror(ctypes.get_errno())
        self.thread = threading.Thread(target=self.run)

    def __enter__(self):
        self.thread.start()
        return self

    def run(self):
        while self.stopping not in select.select([self.fd, self.stopping], [], [])[0]:
            data = os.read(self.fd, 4096)
            for at in range(0, len(data), self.EVENT.size):
                _, _, _, _, _, fd, pid = self.EVENT.unpack_from(data, at)
                with contextlib.suppress(OSError):
                    if lib.read_file(f"/proc/{pid}/comm") == b"lkgfs-engine\n":
                        os.kill(pid, signal.SIGKILL)
                        self.killed += 1
                os.write(self.fd, struct.pack("=iI", fd, self.ALLOW))
                os.close(fd)

    def __exit__(self, *_):
        os.eventfd_write(self.stopping, 1)
        self.thread.join()
        os.close(self.fd)
        os.close(self.stopping)


def test_the_file_is_to_blame_that_is_opened_not_the_one_read_before(mounts):
    """Whoever opens 30-poison.conf is killed. The base, read just before, stays in use; and the mark ends with the file."""
    mount = mounts()
    path = mount.behind("kubelet.conf.d/30-poison.conf")
    lib.write_file(mount.behind("poison"), lib.HEADER + "podsPerCore: 9\n")
    with Guard(mount.behind("poison")) as guard:
        os.rename(mount.behind("poison"), path)
        mount.wait_for(lambda: refusals(mount), "a refusal")
        assert guard.killed >= 3
        only, = refusals(mount)
        assert "30-poison.conf" in only and "3 engines in a row were killed at " in only and "was opened and read" in only
        mount.drop("40-other.conf", "maxPods: 77\n")  # another layer changes, so it is tried again, and refused again
        mount.wait_for(lambda: guard.killed >= 6 and refusals(mount), "another refusal")
        assert all("30-poison.conf" in line for line in refusals(mount))
        os.unlink(path)
        mount.wait_for(lambda: "\nmaxPods: 77\n" in mount.document() and mount.condition()[0] == "True", "all is well")
    assert refusals(mount) == []


# ---- remote configuration ----

REASON = f"failed to judge current, the engine was {HOW['abort']} (UID: "


def shows(node, text):
    node.mount.wait_for(lambda: text in node.mount.document(), f"{text!r} in kubelet.conf")


def follow_file(mounts):
    node = Node(mounts)
    node.assign("maxPods: 42\n")
    node.wait("condition", "True")
    return node, lambda body: node.assign(body, wait=False)


@pytest.fixture(name="remote_node", params=["file", "API server"])
def fixture_remote_node(request, mounts):
    """(node, put): a node that follows a ConfigMap; put(body) changes it and returns its source id."""
    if request.param == "file":
        node, put = follow_file(mounts)
    else:
        api, make = request.getfixturevalue("api"), request.getfixturevalue("api_node")
        api.rbac.allow("system:nodes", ["get", "watch"], "configmaps", NAMESPACE, None)
        api.store.node("n1", {ANNOTATION: REFERENCE})

        def put(body):
            return source_id(api.store.configmap(NAMESPACE, CONFIGMAP, payload(body)))
        first = put("maxPods: 42\n")
        node = make()
        node.wait("active", first)
    shows(node, "\nmaxPods: 42\n")
    yield node, put
    node.close()


@pytest.mark.parametrize("where", ["read", "judge"])
def test_a_remote_configuration_becomes_bad(poisoned, remote_node, where):
    node, put = remote_node
    document = node.mount.document()
    source = put(poison("abort", where) + "maxPods: 43\n")
    node.wait("condition", "False " + REASON)
    assert node.mount.document() == document and node.bad()[source]["reason"].startswith(REASON)
    assert [line for line in refusals(node.mount) if "kube-system/node-config:kubelet" in line]
    engine = node.mount.child("lkgfs-engine")
    put("maxPods: 44\n")
    shows(node, "\nmaxPods: 44\n")
    assert node.mount.child("lkgfs-engine") == engine and poisoned


def test_a_remote_configuration_is_tried_again(poisoned, remote_node):
    node, put = remote_node
    source = put(poison() + "maxPods: 43\n")
    node.wait("condition", "False " + REASON)
    poisoned.off()
    os.unlink(node.mount.vpath("bad", "kubelet", source))  # an operator may decide otherwise
    shows(node, "\nmaxPods: 43\n")
    poisoned.on()
    source = put(poison() + "maxPods: 44\n")
    node.wait("condition", "False " + REASON)
    poisoned.off()
    node.mount.sync()
    shows(node, "\nmaxPods: 44\n")
    assert not node.bad() and not refusals(node.mount)


def test_an_object_that_cannot_even_be_parsed(poisoned, remote_node):
    node, put = remote_node
    document = node.mount.document()
    put(poison("abort", "object") + "maxPods: 43\n")
    node.mount.wait_for(lambda: node.mount.condition()[0] == "Unknown" and HOW["abort"] in node.mount.condition()[1],
                        "the reference is unclear")
    assert node.mount.document() == document
    engine = node.mount.child("lkgfs-engine")
    node.mount.drop("70-other.conf", "podsPerCore: 7\n")
    shows(node, "\npodsPerCore: 7\n")
    put("maxPods: 44\n")
    shows(node, "\nmaxPods: 44\n")
    assert node.mount.child("lkgfs-engine") == engine and poisoned


def test_what_was_followed_ends_the_engine_after_a_reboot(mounts, poisoned):
    """The last known good (here: the local configuration) is served, and the object is marked bad."""
    poisoned.off()
    node = Node(mounts)
    try:
        source = node.assign(poison() + "maxPods: 43\n")
        shows(node, "\nmaxPods: 43\n")
        assert node.mount.stop() == 0
        poisoned.on()
        lib.run("rm", "-rf", node.mount.runtime)
        node.mount.start()
        node.wait("condition", REASON)
        assert source in node.bad() and "\nmaxPods: 43\n" not in node.mount.document()
    finally:
        node.close()
