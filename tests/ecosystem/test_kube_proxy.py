# SPDX-License-Identifier: Apache-2.0
"""kube-proxy reads the view, ends itself when a drop-in changes what is served, and starts with the new document.

With a real kube-apiserver, both in a network namespace with nothing but a loopback device: kube-proxy writes rules.
"""
import contextlib
import json
import os
import re
import shutil
import subprocess
import tempfile

import pytest

import lkgfs_testlib as lib
from lkgfs_realapi import SCRIPT

pytestmark = pytest.mark.limit(300)

HEADER = "apiVersion: kubeproxy.config.k8s.io/v1alpha1\nkind: KubeProxyConfiguration\n"
BASE = HEADER + """mode: nftables
hostnameOverride: n1
healthzBindAddress: 127.0.0.1:10256
clusterCIDR: 10.244.0.0/16
conntrack: {{maxPerCore: 0, tcpEstablishedTimeout: 0s, tcpCloseWaitTimeout: 0s}}
clientConnection: {{kubeconfig: {kubeconfig}}}
"""
NODE = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1"}, "status": {"addresses": [{"type": "InternalIP", "address": "127.0.0.1"}]}}


@pytest.fixture(name="network")
def network_of_its_own():
    """A prefix of commands that run there."""
    holder = subprocess.Popen(["unshare", "--net", "sh", "-c", "ip link set lo up && echo ready && read -r end"], stdin=subprocess.PIPE,
                              stdout=subprocess.PIPE, text=True)
    try:
        assert holder.stdout.readline() == "ready\n"
        yield "nsenter", f"--net=/proc/{holder.pid}/ns/net", "--"
    finally:
        holder.communicate()


@pytest.fixture(name="kubeconfig")
def api_server(network):
    directory = tempfile.mkdtemp(prefix=lib.PREFIX, dir=lib.PARENT)
    try:
        result = lib.run(*network, SCRIPT, "up", directory, timeout=90)
        assert result.returncode == 0, result.stdout.decode() + result.stderr.decode()
        url = lib.read_file(f"{directory}/url").decode().strip()
        for method, path, body in (("POST", "nodes", NODE), ("PUT", "nodes/n1/status", NODE)):
            lib.run(*network, "curl", "--silent", "--show-error", "--fail", "--cacert", "ca.crt", "--cert", "admin.crt", "--key", "admin.key", "-X", method,
                    "-H", "Content-Type: application/json", "--data", json.dumps(body), f"{url}/api/v1/{path}", cwd=directory, check=True)
        yield f"{directory}/admin.conf"
    finally:
        lib.run(*network, SCRIPT, "down", directory, timeout=90)
        shutil.rmtree(directory)


class Proxy:
    def __init__(self, argv, log):
        self.log = log
        with open(log, "wb") as file:
            self.process = subprocess.Popen(argv, stdout=file, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL)

    def said(self):
        return lib.read_file(self.log).decode(errors="replace")

    def wait_for(self, words):
        end = lib.deadline()
        while words not in self.said():
            assert self.process.poll() is None and lib.time.monotonic() < end, f"no {words!r} in {self.said()[-3000:]}"
            lib.time.sleep(0.02)

    def close(self):
        with contextlib.suppress(ProcessLookupError):
            self.process.kill()
        self.process.wait()


def plain(document):
    """Without the words that say which document it is, without what kube-proxy sets from its Node, and lists that are empty or none alike."""
    return {key: value or None for key, value in document.items() if key not in ("kind", "apiVersion", "nodePortAddresses")}


def test_kube_proxy_follows_the_view(mounts, network, kubeconfig, program, tmp_path):
    mount = mounts(components=[{"name": "kube-proxy", "base": "proxy.conf", "file": "kube-proxy.conf", "kind": "KubeProxyConfiguration"}], start=False)
    lib.write_file(f"{mount.source}/proxy.conf", BASE.format(kubeconfig=kubeconfig))
    os.mkdir(f"{mount.source}/kube-proxy.conf.d")
    mount.start()
    with contextlib.ExitStack() as stack:
        def start(name):
            proxy = Proxy([*network, program("kube-proxy"), f"--config={mount.path('kube-proxy.conf')}", "--v=2"], tmp_path / name)
            stack.callback(proxy.close)
            proxy.wait_for("Caches are synced")
            return proxy

        one = start("one")
        mount.write("kube-proxy.conf.d/50-wrong.conf", HEADER + "mode: magic\n")
        assert mount.condition("kube-proxy")[0] == "False" and one.process.poll() is None, "what is not served disturbs nobody"
        mount.write("kube-proxy.conf.d/50-wrong.conf", HEADER + "metricsBindAddress: 127.0.0.1:10999\n")
        assert one.process.wait(lib.TIMEOUT_S) != 0
        assert "content of the proxy server's configuration file was updated" in one.said()

        two = start("two")
        answer = lib.run(*network, "curl", "--silent", "--fail", "--retry", "20", "--retry-connrefused", "--retry-delay", "1",
                         "http://127.0.0.1:10999/proxyMode")
        assert answer.stdout == b"nftables", two.said()
        answer = lib.run(*network, "curl", "--silent", "--fail", "http://127.0.0.1:10999/configz", check=True)
        release = re.search(r"v(1\.\d+)", lib.run(program("kube-proxy"), "--version", check=True).stdout.decode())[1]
        told = lib.run(lib.LKGFS, "render", "--effective", "-o", "json", "--release", release, "--config", mount.path("kube-proxy.conf"), "--", "--v=2", check=True)
        assert plain(json.loads(answer.stdout)["kubeproxy.config.k8s.io"]) == plain(json.loads(told.stdout)), "what it has is what we say that it has"
        assert two.process.poll() is None
