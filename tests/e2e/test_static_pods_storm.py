# SPDX-License-Identifier: Apache-2.0
"""Static pods while everything happens to their manifests, in a random order: what works is served, what does not goes back, nothing is lost.
Rule: docs/specification.md 2.17, 4.18.
"""
import contextlib
import os
import random
import signal

import pytest

import lkgfs_testlib as lib
from test_static_pods import save_as_vi_does, served
from test_static_pods_trial import Endpoint, mounted, states, with_probe

TRIAL = {"name": "static-pods", "kind": "StaticPods", "trial": {"duration": "4s", "settle": "500ms", "health": {"stableFor": "1500ms"}}}
PODS = ("etcd", "kube-apiserver", "web")
BROKEN = "kind: Pod\n  broken: [\n"
STEPS = 40


class Node(Endpoint):
    """Each pod answers well if what is served of it is not `wrong`."""

    def __init__(self):
        super().__init__()
        self.mount = None
        self.server.RequestHandlerClass.do_GET = lambda handler: self.answer(handler)

    def answer(self, handler):
        with contextlib.suppress(OSError):
            text = self.mount.read("static-pods", handler.path.strip("/") + ".yaml").decode()
            handler.send_response(500 if ":wrong" in text else 200)
            handler.send_header("Content-Length", "0")
            handler.end_headers()


def text(node, name, image):
    return with_probe(name, f"{name}:{image}", node.port, f"{{httpGet: {{host: 127.0.0.1, port: {node.port}, path: /{name}}}, periodSeconds: 1}}")


class Storm:
    def __init__(self, node, mount, seed):
        self.node, self.mount, self.random = node, mount, random.Random(seed)
        self.log, self.n = [], 0

    def path(self, name):
        return self.mount.path("manifests", name + ".yaml")

    def new_text(self, name):
        self.n += 1
        kind = self.random.choice(("right", "right", "wrong", "wrong", None))
        return BROKEN + f"# {self.n}\n" if kind is None else text(self.node, name, f"{kind}{self.n}")

    def write(self, name):
        lib.write_file(self.path(name), self.new_text(name), 0o600)

    def save(self, name):
        with contextlib.suppress(FileNotFoundError):  # it was removed
            save_as_vi_does(self.path(name), self.new_text(name))

    def replace(self, name):
        lib.write_file(self.path(".new"), self.new_text(name), 0o600)
        os.rename(self.path(".new"), self.path(name))

    def remove_and_write(self, name):
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self.path(name))
        self.write(name)

    def copy(self, name):
        with contextlib.suppress(FileNotFoundError):
            lib.write_file(self.path(name) + ".bak", lib.read_file(self.path(name)), 0o600)

    def wait(self, _):
        lib.time.sleep(self.random.choice((0.1, 0.5, 5)))

    def kill(self, _):
        self.mount.kill_child(self.random.choice(("lkgfs-engine", "lkgfs-fs", "lkgfs-notify")))

    def reload(self, _):
        self.mount.process.send_signal(signal.SIGHUP)

    def forget(self, _):
        with contextlib.suppress(OSError):  # there is none
            self.mount.command("forget", "all", "static-pods")

    def step(self):
        name = self.random.choice(PODS)
        action = self.random.choice((self.write, self.write, self.save, self.replace, self.remove_and_write, self.copy, self.wait, self.wait, self.wait, self.kill,
                                     self.reload, self.forget))
        self.log.append(f"{action.__name__} {name}")
        action(name)


def is_settled(mount):
    return not {"on trial", "works", "failed"} & set(states(mount).values())


def check(mount, log):
    pods, good = served(mount), os.listdir(mount.path("lkg/static-pods"))
    assert sorted(pods) == [name + ".yaml" for name in PODS], log
    assert BROKEN not in "".join(pods.values()), log
    assert not [name for name in good if b":wrong" in mount.read("lkg/static-pods", name)], log


@pytest.mark.parametrize("seed", range(4))
def test_whatever_happens(seed):
    with Node() as node, mounted(node, TRIAL, manifests={name + ".yaml": text(node, name, "right") for name in PODS}) as mount:
        node.mount = mount
        storm = Storm(node, mount, seed)
        for _ in range(STEPS):
            storm.step()
            check(mount, storm.log)
        mount.wait_for(lambda: is_settled(mount), f"verdicts after {storm.log}", component="static-pods")
        check(mount, storm.log)
        assert not [name for name, text in served(mount).items() if ":wrong" in text], storm.log
        mount.wait_for(lambda: set(states(mount).values()) == {"good"}, f"all work after {storm.log}", component="static-pods")
