# SPDX-License-Identifier: Apache-2.0
"""The exec plugin of a kubeconfig: the engine asks for a run, and lkgfsd runs it only if nobody but root can have installed it."""
import json
import os
import re

import pytest

import lkgfs_testlib as lib
from lkgfs_apinode import ANNOTATION, CONFIGMAP, REFERENCE, payload
from lkgfs_node import NAMESPACE

VERSION = "client.authentication.k8s.io/v1"
SCRIPT = """#!/bin/sh
cd {dir}
{{ grep -E '^(CapEff|Seccomp|Uid):' /proc/self/status; grep ' {mount} ' /proc/self/mountinfo; ls {mount}; env; echo "$*"; }} >> said
echo told-to-the-log >&2
echo run >> runs
exec cat answer
"""


class Plugin:
    """A program next to the kubeconfig; records its input, and its output can be set."""

    def __init__(self, node, token):
        self.node, self.dir = node, os.path.dirname(node.kubeconfig)
        self.path = os.path.join(self.dir, "plugin")
        self.script(SCRIPT.format(dir=self.dir, mount=node.mount.mountpoint))
        self.answer(token)

    def script(self, text):
        lib.write_file(self.path, text, 0o755)
        os.chmod(self.path, 0o755)

    def answer(self, token, **status):
        lib.write_file(os.path.join(self.dir, "answer.new"), json.dumps(
            {"kind": "ExecCredential", "apiVersion": VERSION, "status": {"token": token, **status}}), 0o600)
        os.rename(os.path.join(self.dir, "answer.new"), os.path.join(self.dir, "answer"))

    def runs(self):
        path = os.path.join(self.dir, "runs")
        return len(lib.read_file(path).splitlines()) if os.path.exists(path) else 0

    def saw(self):
        return lib.read_file(os.path.join(self.dir, "said")).decode()


def write_kubeconfig(api, node, **plugin):
    api.kubeconfig(node.kubeconfig)
    document = json.loads(lib.read_file(node.kubeconfig))
    document["users"][0]["user"] = {"exec": {"apiVersion": VERSION, "command": "./plugin", "args": ["a", "b c"],
                                             "interactiveMode": "Never", **plugin}}
    lib.write_file(node.kubeconfig, json.dumps(document), 0o600)


@pytest.fixture
def story(api, api_node):
    """(api, node, plugin, the ConfigMap); not started."""
    api.rbac.allow("system:nodes", ["get", "watch"], "configmaps", NAMESPACE)
    api.store.node("n1", {ANNOTATION: REFERENCE})
    obj = api.store.configmap(NAMESPACE, CONFIGMAP, payload("maxPods: 42\n"))
    api.tokens["first-secret"] = ("system:node:n1", ["system:nodes"])
    node = api_node(start=False, remote={"allowExec": True})
    write_kubeconfig(api, node, env=[{"name": "GREETING", "value": "hello"}], provideClusterInfo=True)
    return api, node, Plugin(node, "first-secret"), obj


def test_its_token_is_used(story):
    api, node, plugin, obj = story
    node.mount.start()
    node.follows(obj)
    assert any(request.headers.get("authorization") == "Bearer first-secret" for request in list(api.requests))
    assert plugin.runs() == 1
    assert not os.path.exists(os.path.join(node.mount.runtime, "credential"))
    assert "told-to-the-log" in node.mount.log()
    shown = node.mount.log() + "".join(node.status(name) for name in os.listdir(node.mount.vpath("status", "kubelet")))
    assert "-secret" not in shown


def test_it_runs_outside_of_the_sandbox_and_of_the_view(story):
    api, node, plugin, obj = story
    node.mount.start()
    node.follows(obj)
    saw = plugin.saw()
    assert "Uid:\t0\t0\t0\t0" in saw and "Seccomp:\t0" in saw and "CapEff:\t0000000000000000" not in saw
    assert "fuse" not in saw, "the view"
    assert "\na b c\n" in saw and "\nHOME=/\n" in saw and "\nGREETING=hello\n" in saw
    assert "\nPATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin\n" in saw
    info = json.loads(next(line for line in saw.splitlines() if line.startswith("KUBERNETES_EXEC_INFO=")).split("=", 1)[1])
    assert info["apiVersion"] == VERSION and info["spec"]["interactive"] is False
    assert info["spec"]["cluster"]["server"] == api.url and info["spec"]["cluster"]["certificate-authority-data"]
    names = set(re.findall(r"^([A-Za-z_]+)=", saw, re.MULTILINE))
    assert names <= {"HOME", "GREETING", "PATH", "PWD", "OLDPWD", "SHLVL", "_", "KUBERNETES_EXEC_INFO"}, "our own environment"


def test_it_is_run_again_when_its_token_is_refused(story):
    api, node, plugin, obj = story
    node.mount.start()
    node.follows(obj)
    plugin.answer("second-secret")
    api.tokens.clear()
    api.tokens["second-secret"] = ("system:node:n1", ["system:nodes"])
    api.disconnect()
    node.follows(api.store.configmap(NAMESPACE, CONFIGMAP, payload("maxPods: 43\n")))
    # The old watch may have delivered it just before it was reset.
    node.mount.wait_for(lambda: plugin.runs() >= 2, "a second run")
    api.wait(lambda: any(request.headers.get("authorization") == "Bearer second-secret" for request in api.requests),
             "its new token")


@pytest.mark.parametrize("allowed, mode, code, words", [
    (False, 0o755, "LKG7001", "remote.allowExec"), (True, 0o775, "LKG7003", "not owned by root or is writable by others")])
def test_it_is_not_run(story, allowed, mode, code, words):
    _, node, plugin, _ = story
    os.chmod(plugin.path, mode)
    node.configure(remote={"allowExec": allowed})
    node.mount.start()
    node.wait("findings", words)
    assert code in node.status("findings") and plugin.runs() == 0


def test_one_that_fails_is_told_and_tried_again(story):
    _, node, plugin, obj = story
    script = lib.read_file(plugin.path).decode()
    plugin.script("#!/bin/sh\necho secret-in-the-output\nexit 3\n")
    node.mount.start()
    node.wait("findings", "it ended with exit status 3")
    assert "LKG7003" in node.status("findings")
    assert "secret-in-the-output" not in node.status("findings") + node.mount.log()
    plugin.script(script)
    node.follows(obj)


def test_readers_do_not_notice_one_that_hangs(story):
    _, node, plugin, _ = story
    pipe = os.path.join(node.mount.root, "began")
    os.mkfifo(pipe)
    plugin.script(f"#!/bin/sh\nexec 3> {pipe}\necho began >&3\nexec sleep 1000\n")
    node.mount.start()
    with open(pipe, encoding="utf-8") as began:
        assert began.readline() == "began\n"
        assert "clusterDomain" in node.mount.document()
        node.mount.stop()
        assert began.read() == ""  # end of file: the process that held the pipe is gone
