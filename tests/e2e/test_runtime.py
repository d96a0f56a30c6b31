# SPDX-License-Identifier: Apache-2.0
"""The engine asks for the containers of static pods: lkgfsd asks the runtime that its own settings name, in a process of no rights.

Rule: docs/specification.md 6.2.
"""
import errno
import json
import os
import time

import pytest

import lkgfs_grpc as grpc
import lkgfs_testlib as lib
from lkgfs_engine import StandIn

LIST = grpc.CRI + "ListPodSandbox"


class Asked(StandIn):
    """An engine, and the runtime of its node."""

    def begin(self, endpoint=None):
        self.socket = os.path.join(self.mount.root, "runtime.sock")
        self.runs = grpc.Runtime(self.socket)
        self.runs.sandbox("s1", "etcd-n1", 5)
        self.runs.container("c1", "s1", "etcd", 1, 7, "4")
        endpoint = f"unix://{self.socket}" if endpoint is None else endpoint
        self.mount.write_config(components=[{"name": "kubelet"}, {"name": "static-pods", "kind": "StaticPods", "runtimeEndpoint": endpoint}])
        return self.start()

    def close(self):
        super().close()
        if hasattr(self, "runs"):
            self.runs.close()

    def ask(self, component=b"static-pods"):
        self.send(self.supervisor, "CONTAINERS", component)

    def answer(self):
        """(result, reason)"""
        message = self.next("CONTAINERS")
        return message.result, message.text.decode()

    def ask_again(self, component=b"static-pods"):
        """As soon as it may ask again."""
        while True:
            self.ask(component)
            result, why = self.answer()
            if result != -errno.EAGAIN:
                return result, why
            assert why == "it ran only a few seconds ago"
            time.sleep(0.02)

    def containers(self):
        text = lib.read_file(f"/proc/self/fd/{self.runtime}/containers").decode()
        return [json.loads(line) for line in text.splitlines()]

    def has_file(self):
        return os.path.exists(f"/proc/self/fd/{self.runtime}/containers")


@pytest.fixture
def engine(mounts):
    one = Asked(mounts)
    yield one
    one.close()


def test_the_answer_is_a_file(engine):
    engine.begin().ask()
    assert engine.answer() == (0, "")
    line, = engine.containers()
    assert (line["pod"], line["container"], line["restarts"], line["state"]) == ("etcd-n1", "etcd", 4, 1)
    assert os.stat(f"/proc/self/fd/{engine.runtime}/containers").st_mode & 0o7777 == 0o600


def test_an_engine_does_not_choose_whom_it_asks(engine):
    """Its message names a component of the settings, and nothing else."""
    engine.begin()
    for name in (b"", b"nobody", b"kubelet ", f"unix://{engine.socket}".encode()):
        engine.ask(name)
        assert engine.answer()[0] == -errno.ENOENT, name
    assert not engine.runs.connections


def test_nobody_is_asked_without_an_endpoint(engine):
    engine.begin("").ask()
    assert engine.answer() == (-errno.ENOENT, "there is no socket of a container runtime, see runtimeEndpoint")
    assert not engine.has_file()


def test_the_usual_sockets(engine):
    usual = ("/run/containerd/containerd.sock", "/run/crio/crio.sock", "/var/run/cri-dockerd.sock")
    engine.begin("auto").ask()
    result, why = engine.answer()
    there = [path for path in usual if os.path.exists(path)]
    assert result in (0, -errno.EIO) if there else (result == -errno.ENOENT and "runtimeEndpoint" in why)


def test_a_runtime_that_fails_is_told_and_what_it_said_before_stays(engine):
    engine.begin().ask()
    assert engine.answer() == (0, "")
    engine.runs.say(LIST, grpc.status(14))
    assert engine.ask_again() == (-errno.EIO, f"the container runtime at {engine.socket}: status 14 of gRPC")
    assert len(engine.containers()) == 1


def test_one_at_a_time_within_its_limit(engine):
    engine.begin()
    engine.runs.say(LIST, grpc.hang())
    engine.ask()
    engine.runs.wait_asked(LIST)
    engine.ask()
    began = time.monotonic()
    result, why = engine.answer()
    assert result == -errno.EIO and "Connection timed out" in why and time.monotonic() - began < 6
    engine.quiet()
    assert len(engine.runs.calls) == 1


def test_who_asks_is_nobody_and_has_no_view(engine):
    engine.begin()
    engine.runs.say(LIST, grpc.hang())
    engine.ask()
    engine.runs.wait_asked(LIST)
    pid, = [pid for pid in lib.processes_naming(engine.socket) if lib.names(pid, "--containers")]
    status = dict(line.split(":\t", 1) for line in lib.read_file(f"/proc/{pid}/status").decode().splitlines() if ":\t" in line)
    assert status["Uid"].split() == ["65534"] * 4 and int(status["CapEff"], 16) == 0 and status["Seccomp"] == "2"
    mounts = [line for line in lib.read_file(f"/proc/{pid}/mountinfo").decode().splitlines() if engine.mount.root in line]
    assert mounts and not any(" - fuse" in line for line in mounts)
    engine.mount.kill_supervisor()
    engine.mount.wait_for(lambda: not os.path.exists(f"/proc/{pid}"), "its end with lkgfsd")
