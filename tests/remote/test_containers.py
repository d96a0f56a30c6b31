# SPDX-License-Identifier: Apache-2.0
"""`lkgfs-engine --containers`: what a container runtime says about static pods, from one that may say anything."""
import json
import os
import socket
import subprocess

import pytest

import lkgfs_grpc as grpc
import lkgfs_remotetool as remotetool
import lkgfs_testlib as lib

ENGINE = lib.BUILD / "core/engine/lkgfs-engine"
LIST, STATUS, CONTAINERS = (grpc.CRI + name for name in ("ListPodSandbox", "PodSandboxStatus", "ListContainers"))
CREATED, RUNNING, EXITED = range(3)
BORN = 1_790_000_000_000_000_000
NOBODY = ["--user", "65534:65534"] if os.geteuid() == 0 else []


@pytest.fixture
def runtime(tmp_path):
    with grpc.Runtime(tmp_path / "runtime.sock") as one:
        one.path = tmp_path / "runtime.sock"
        one.sandbox("s1", "etcd-n1", BORN, ip="10.0.0.5", uid="8f1c")
        one.container("c1", "s1", "etcd", RUNNING, BORN + 7, restarts="4")
        yield one


def start(path):
    return subprocess.Popen([ENGINE, "--containers", path, *NOBODY], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                            env={"LKGFS_SYSCALLS": "kill", **remotetool.KEPT})


def finish(process):
    output, errors = process.communicate(timeout=lib.TIMEOUT_S)
    assert not errors
    return process.returncode, output.decode()


def ask(runtime):
    code, output = finish(start(runtime.path))
    assert code == 0, output
    return [json.loads(line) for line in output.splitlines()]


def complaint(runtime):
    code, output = finish(start(runtime.path))
    assert code == 74 and output.count("\n") == 1
    return output


def test_one_container(runtime):
    assert ask(runtime) == [{"namespace": "kube-system", "pod": "etcd-n1", "uid": "8f1c", "ip": "10.0.0.5", "sandboxCreated": BORN,
                             "container": "etcd", "restarts": 4, "created": BORN + 7, "state": RUNNING}]
    assert [call.path for call in runtime.calls] == [LIST, STATUS, CONTAINERS] and len(runtime.connections) == 1


def test_pods_of_the_api_server_are_not_looked_at(runtime):
    runtime.sandbox("s2", "web", BORN, source="api")
    runtime.container("c2", "s2", "web", RUNNING, BORN)
    assert [line["pod"] for line in ask(runtime)] == ["etcd-n1"]
    assert len(runtime.calls) == 3


@pytest.mark.parametrize("order", [1, -1])
def test_the_newest_sandbox_of_a_pod_counts(runtime, order):
    """Whatever the uid: that of a static pod changes with its manifest. A pod of this name elsewhere is another one."""
    runtime.sandbox("s0", "etcd-n1", BORN - 5, uid="0")
    runtime.container("c0", "s0", "old", EXITED, BORN - 4)
    runtime.sandbox("s9", "etcd-n1", BORN - 5, ns="default")
    runtime.container("c9", "s9", "other", CREATED, BORN)
    runtime.sandboxes = runtime.sandboxes[::order]
    assert {(line["namespace"], line["container"], line["state"]) for line in ask(runtime)} == {
        ("kube-system", "etcd", RUNNING), ("default", "other", CREATED)}


@pytest.mark.parametrize("order", [1, -1])
def test_the_newest_container_of_a_name_counts(runtime, order):
    runtime.container("c0", "s1", "etcd", EXITED, BORN + 1, restarts="3")
    runtime.container("c2", "s1", "sidecar", 77, BORN + 2, restarts="many")
    runtime.containers = runtime.containers[::order]
    assert {(line["container"], line["state"], line["restarts"]) for line in ask(runtime)} == {("etcd", RUNNING, 4), ("sidecar", 77, 0)}


def test_no_pod_at_all(runtime):
    runtime.sandboxes = []
    assert ask(runtime) == []


def test_many(runtime):
    for i in range(100):
        runtime.sandbox(f"m{i}", f"pod-{i}", BORN + i)
        runtime.container(f"n{i}", f"m{i}", "c", RUNNING, BORN)
    assert len(ask(runtime)) == 101


@pytest.mark.parametrize("size", [70_000, 300_000, 1_000_000, 1_234_567, 4_000_000])
def test_long_answers(runtime, size):
    """Also the last ones of a connection: nothing comes after them that would wake a reader who has left something."""
    for name in ("a", "b", "c"):
        runtime.container(name, "s1", name, RUNNING, BORN)
        runtime.containers[-1]["annotations"]["x"] = "y" * (size // 3)
    assert len(ask(runtime)) == 4


def test_names_that_are_none(runtime):
    """What is too long is cut, what is not UTF-8 is escaped; no line has more than one container."""
    name = b'a\n"\xff\x00' + b"x" * 1000
    runtime.say(LIST, grpc.answer(grpc.message((1, grpc.message((1, "s1"), (2, grpc.message((1, name), (3, "\u202e"))),
                                                                (6, {"kubernetes.io/config.source": "file"}))))))
    line, = ask(runtime)
    assert line["pod"].startswith('a\n"') and len(line["pod"]) < 300


TROUBLE = {
    "status": (grpc.status(13), "status 13 of gRPC"),
    "status at once": (grpc.status(12, at_once=True), "status 12 of gRPC"),
    "http": (grpc.http(503), "status 503"),
    "no gRPC": (grpc.raw(b"hello"), "not gRPC"),
    "no frame": (grpc.raw(b"\0\0\0\0\x09hello"), "not one message"),
    "no message": (grpc.answer(b"\x0a\xff\xff"), "not of the CRI"),
    "no map": (grpc.answer(grpc.message((1, grpc.message((6, b"\x0a\xff"), (9, b"\x0a\xff"))))), "not of the CRI"),
    "no metadata": (grpc.answer(grpc.message((1, grpc.message((2, b"\x0a\xff"), (3, b"\x0a\xff"))))), "not of the CRI"),
    "no message within": (grpc.answer(grpc.message((1, b"\x0a\xff"))), "not of the CRI"),
    "100 MB": (grpc.flood(), "File too large"),
    "garbage": (grpc.garbage(), "no answer"),
    "a cut": (grpc.cut(b"\x0a\x00"), "no answer"),
    "no answer": (grpc.die(), "no answer"),
}


@pytest.mark.parametrize("method", [LIST, CONTAINERS], ids=["first", "last"])
@pytest.mark.parametrize("name", TROUBLE)
def test_a_runtime_in_trouble(runtime, name, method):
    act, words = TROUBLE[name]
    runtime.say(method, act)
    assert words in complaint(runtime)


@pytest.mark.slow
def test_a_runtime_that_hangs(runtime):
    runtime.say(LIST, grpc.hang())
    assert "Connection timed out" in complaint(runtime)


def test_a_connection_that_is_lost_is_not_made_again(runtime):
    """It cannot: who has left root's rights may not connect."""
    status = runtime.answers[STATUS]
    runtime.say(STATUS, lambda stream: (status(stream), stream.connection.close()))
    said = complaint(runtime)
    assert "no answer" in said or "not gRPC" in said  # the end may come before the trailers are read
    assert len(runtime.connections) == 1


@pytest.mark.parametrize("make", [lambda path: None, lambda path: path.write_text(""), lambda path: socket.socket(socket.AF_UNIX).bind(str(path))],
                         ids=["none", "a file", "nobody listens"])
def test_no_runtime(tmp_path, make):
    make(tmp_path / "socket")
    code, output = finish(start(tmp_path / "socket"))
    assert code == 74 and str(tmp_path / "socket") in output and "no answer: " in output


def status_of(pid):
    return dict(line.split(":\t", 1) for line in lib.read_file(f"/proc/{pid}/status").decode().splitlines() if ":\t" in line)


@pytest.mark.slow  # also because sanitizer builds have no filter
@pytest.mark.parametrize("method", [LIST, CONTAINERS], ids=["first", "last"])
def test_who_reads_an_answer_has_given_up_everything(runtime, method):
    runtime.say(method, grpc.hang())
    process = start(runtime.path)
    runtime.wait_asked(method)
    status = status_of(process.pid)
    assert {status[name] for name in ("CapPrm", "CapEff", "CapInh", "CapAmb")} == {"0" * 16}
    assert status["NoNewPrivs"] == "1" and status["Seccomp"] == "2"
    if NOBODY:
        assert status["Uid"].split() == ["65534"] * 4 and status["Gid"].split() == ["65534"] * 4 and status["Groups"].split() == []
        assert int(status["CapBnd"], 16) == 0
    sockets = [os.readlink(f"/proc/{process.pid}/fd/{fd}") for fd in os.listdir(f"/proc/{process.pid}/fd")]
    process.kill()
    process.communicate()
    assert not [name for name in sockets if name.startswith("/") and not name.startswith("/dev/")], sockets
