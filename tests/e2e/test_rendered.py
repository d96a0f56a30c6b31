# SPDX-License-Identifier: Apache-2.0
"""Texts that the engine renders when a name is looked up. Rule: docs/specification.md 2.10, 2.14, 6.1."""
import concurrent.futures
import errno
import hashlib
import json
import os
import pathlib
import signal
import subprocess

import pytest

import lkgfs_testlib as lib
from lkgfs_engine import NS, StandIn

TREES = ("status", "layers", "history", "bad", "lkg")


def tree(mount):
    """Every file of the virtual directories, with what stat() and a read say."""
    found = {}
    for top in TREES:
        for directory, _, files in os.walk(mount.vpath(top)):
            for name in files:
                path = os.path.join(directory, name)
                st = os.stat(path)
                found[os.path.relpath(path, mount.vpath())] = (st.st_ino, st.st_mtime_ns, st.st_size, lib.read_file(path))
    return found


def test_names_sizes_and_times(mounts):
    mount = mounts()
    mount.drop("50-a.conf", "maxPods: 41\n")
    first = tree(mount)
    assert {"status/kubelet/origin", "status/kubelet/hold", "layers/kubelet/0000-base-kubelet.conf.yaml", "history/kubelet/1/meta.json",
            "history/kubelet/2/kubelet.conf"} <= set(first)
    assert all(len(text) == size for _, _, size, text in first.values())
    quiet = {name for name in first if name.startswith(("layers/", "history/"))}
    again = tree(mount)
    assert {name: again[name] for name in quiet} == {name: first[name] for name in quiet}, "the same text is the same file"
    mount.drop("50-a.conf", "maxPods: 42\n")
    last = tree(mount)
    assert b"maxPods: 42" in last["layers/kubelet/0003-drop-in-50-a.conf.yaml" if "layers/kubelet/0003-drop-in-50-a.conf.yaml" in last else
                                  next(name for name in last if name.endswith("50-a.conf.yaml"))][3]
    assert last["history/kubelet/1/meta.json"] == first["history/kubelet/1/meta.json"], "the past stays"


def test_readers_see_whole_texts_while_it_changes(mounts):
    mount = mounts()

    def read(turn):
        json.loads(mount.status("config.json"))
        metrics = mount.status("metrics.prom")
        assert metrics.endswith("\n") and "lkgfs_engine_up" in metrics
        origin = mount.status("origin")
        assert origin.startswith("/") and origin.endswith("\n")
        return turn

    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        calls = [pool.submit(read, turn) for turn in range(200)]
        for value in range(100, 130):
            mount.drop("50-a.conf", f"maxPods: {value}\n")
            assert f"/maxPods\t{value}\t" in mount.status("origin"), "never older than what the caller has seen"
        assert [call.result() for call in calls] == list(range(200))


def test_while_the_engine_is_silent(mounts):
    mount = mounts(config={"engineTimeout": "1s"})
    origin, engine = mount.status("origin"), mount.child("lkgfs-engine")
    os.kill(mount.process.pid, signal.SIGSTOP)
    os.kill(engine, signal.SIGSTOP)
    try:
        mount.wait_for(lambda: mount.status("condition").startswith("Unknown engine not answering since "), "silence")
        assert mount.status("origin") == origin, "what was read last"
        assert mount.status("assigned").startswith("# engine not answering since ")
        assert json.loads(mount.status("config.json"))["error"].startswith("engine not answering since ")
        assert mount.status("generation") == "1\n" and mount.status("hold").startswith("mode=free\n")
        with pytest.raises(TimeoutError):
            os.listdir(mount.vpath("layers", "kubelet"))
        with pytest.raises(TimeoutError):  # nobody else knows whether it exists
            os.stat(mount.vpath("history", "kubelet", "5"))
        assert "maxPods: 64" in mount.document()
    finally:
        os.kill(engine, signal.SIGCONT)
        os.kill(mount.process.pid, signal.SIGCONT)
    mount.wait_for(lambda: mount.status("assigned") == "init\n", "it is back")
    assert os.listdir(mount.vpath("layers", "kubelet"))


def test_who_made_a_generation_is_known_after_a_kill(mounts):
    """Killed before the history is written: the next engine describes what it finds served, and so does the one after it."""
    mount = mounts(base=None, dropins={"10-a.conf": lib.HEADER + "maxPods: 64\n"}, instance=None)
    assert mount.status("active") == "default\n"
    mount.drop("50-a.conf", "maxPods: 65\n")
    number = mount.status("generation").strip()
    mount.kill_child("lkgfs-engine")
    for _ in range(2):
        mount.wait_for(lambda: json.loads(lib.read_file(mount.vpath("history", "kubelet", number, "meta.json")))["local"] == "default", "it is")
        mount.wait_for(lambda: os.path.isdir(os.path.join(mount.state, "history", "kubelet", number)), "it is written")
        mount.kill_child("lkgfs-engine")
    assert mount.status("active") == "default\n" and mount.status("generation").strip() == number


def test_users_do_not_take_what_root_needs(mounts):
    """Users share a quarter of the helpers for texts; the look-ups of root are answered whatever they do."""
    mount = mounts()
    script = f"while :; do stat {mount.vpath('status', 'kubelet')}/* > /dev/null 2>&1; done"
    users = [subprocess.Popen(["setpriv", f"--reuid={uid}", f"--regid={uid}", "--clear-groups", "sh", "-c", script])
             for uid in range(61000, 61004) for _ in range(4)]
    try:
        for value in range(100, 120):
            mount.drop("50-a.conf", f"maxPods: {value}\n")
            assert f"/maxPods\t{value}\t" in mount.status("origin")
    finally:
        for user in users:
            user.kill()
            user.wait()


def test_an_engine_that_dies_while_somebody_waits(mounts):
    mount = mounts(config={"engineTimeout": "20s"})
    engine = mount.child("lkgfs-engine")
    os.kill(engine, signal.SIGSTOP)
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        call = pool.submit(mount.status, "assigned")
        lib.kill_and_wait(engine)
        assert call.result(timeout=lib.TIMEOUT_S) == "init\n", "its successor was asked again"


# an engine that says what the test wants

@pytest.fixture
def engine(mounts):
    engine = StandIn(mounts)
    for path in ("status", "layers"):
        engine.lines[path] = f"dir\t{path}\t0755\t0\t0\t{NS}"
    engine.lines["status/kubelet"] = f"dir\tstatus/kubelet\t0755\t0\t0\t{NS}"
    engine.lines["status/kubelet/origin"] = "rendered\tstatus/kubelet/origin\t0640\t0\t7\t0"
    engine.lines["layers/kubelet"] = f"asked\tlayers/kubelet\t0600\t0\t0\t{NS}\t0"
    yield engine.start()
    engine.close()


def asking(engine, call, *arguments):
    """Begin a call that looks something up. Return its future and the message."""
    pool = concurrent.futures.ThreadPoolExecutor(1)
    future = pool.submit(call, *arguments)
    pool.shutdown(wait=False)
    return future, engine.next("RENDER")


def file_answer(engine, data, mtime=NS):
    return f"f {mtime} {len(data)} {engine.blob(data)}".encode()


def test_a_text_and_a_directory(engine):
    origin = engine.mount.path("status/kubelet/origin")
    call, message = asking(engine, os.stat, origin)
    assert message.text == b"status/kubelet/origin"
    engine.done(message, text=file_answer(engine, b"one\n", NS + 5))
    st = call.result(timeout=lib.TIMEOUT_S)
    assert (st.st_size, st.st_mtime_ns, st.st_mode & 0o7777, st.st_gid) == (4, NS + 5, 0o640, 7)
    call, message = asking(engine, os.listdir, engine.mount.path("layers/kubelet"))
    assert message.text == b"layers/kubelet/"
    engine.done(message, text=file_answer(engine, b"fa b\0dd\0"))
    assert sorted(call.result(timeout=lib.TIMEOUT_S)) == ["a b", "d"]
    call, message = asking(engine, os.stat, engine.mount.path("layers/kubelet/d"))
    engine.done(message, text=f"d {NS} 0 -".encode())
    st = call.result(timeout=lib.TIMEOUT_S)
    assert (st.st_mode, st.st_uid) == (0o40700, 0)
    call, message = asking(engine, os.stat, engine.mount.path("layers/kubelet/no"))
    engine.done(message, -errno.ENOENT)
    assert call.exception(timeout=lib.TIMEOUT_S).errno == errno.ENOENT


@pytest.mark.parametrize("text", [b"", b"nonsense", b"f 1 2", b"f 1 4 ../../../etc/shadow", b"f 1 99999999999 " + b"0" * 64, b"x 1 4 " + b"0" * 64])
def test_an_answer_that_is_none(engine, text):
    call, message = asking(engine, os.stat, engine.mount.path("status/kubelet/origin"))
    engine.done(message, text=text)
    assert call.exception(timeout=lib.TIMEOUT_S).errno in (errno.EBADMSG, errno.EIO)
    assert engine.mount.document() == "one\n"


@pytest.mark.parametrize("names", [b"f..\0", b"fa/b\0", b"f\0", b"f.\0"])
def test_names_that_are_none(engine, names):
    call, message = asking(engine, os.listdir, engine.mount.path("layers/kubelet"))
    engine.done(message, text=file_answer(engine, names))
    assert call.exception(timeout=lib.TIMEOUT_S).errno == errno.EBADMSG


def test_a_blob_that_is_gone_is_asked_for_again(engine):
    call, message = asking(engine, lib.read_file, engine.mount.path("status/kubelet/origin"))
    engine.done(message, text=f"f {NS} 4 {hashlib.sha256(b'gone').hexdigest()}".encode())
    engine.done(engine.next("RENDER"), text=file_answer(engine, b"here"))
    assert call.result(timeout=lib.TIMEOUT_S) == b"here"


def test_a_file_server_that_dies_while_somebody_waits(engine):
    call, _ = asking(engine, lib.read_file, engine.mount.path("status/kubelet/origin"))
    lib.kill_and_wait(engine.mount.child("lkgfs-fs"))
    engine.done(engine.next("RENDER"), text=file_answer(engine, b"late\n"))
    assert call.result(timeout=lib.TIMEOUT_S) == b"late\n"


def test_others_do_not_wait(engine):
    """As many look-ups as there are helpers for the engine wait, and nobody else notices."""
    with concurrent.futures.ThreadPoolExecutor(32) as pool:
        calls = [pool.submit(os.stat, engine.mount.path(f"layers/kubelet/{n}")) for n in range(32)]
        first = engine.next("RENDER")
        assert engine.mount.document() == "one\n" and lib.read_file(engine.mount.path("lkg/kubelet.conf")) == b"good\n"
        pathlib.Path(engine.mount.path("new")).write_text("passed through\n", encoding="utf-8")
        engine.done(first, -errno.ENOENT)
        for _ in range(31):
            engine.done(engine.next("RENDER"), -errno.ENOENT)
        assert {call.exception(timeout=lib.TIMEOUT_S).errno for call in calls} == {errno.ENOENT}
