# SPDX-License-Identifier: Apache-2.0
"""`kubeadm upgrade apply` and `kubeadm upgrade node` on a control-plane node whose static pods lkgfs serves: kubeadm writes manifests one after the other, waits until the mirror pod of
each has another hash, and puts the old ones back if it waits in vain; lkgfs tries them as well, and takes back what does not work.

In a network of its own, so that kubeadm has its own ports, with a machine of namespaces, a real kube-apiserver and a real etcd. The kubelet is a
stand-in: upstream's file source (`file-source`), whose pods it posts as mirror pods; in place of their containers this process answers the probes. While
the pod of the API server does not work, the API server is down. The phases preflight (it asks a running system), addon (CoreDNS, kube-proxy) and
bootstrap-token are skipped.
"""
import copy
import ctypes
import http.server
import json
import ssl
import subprocess
import threading

import pytest
import yaml

import lkgfs_testlib as lib
from lkgfs_realapi import ApiError
from test_kubeadm_upgrade import BASE, NODE, SOCKET, api_server, complete  # noqa: F401  pylint: disable=unused-import

pytestmark = pytest.mark.limit(600)

ADDRESS = "192.0.2.1"
CONFIG = f"""apiVersion: kubeadm.k8s.io/v1beta4
kind: InitConfiguration
localAPIEndpoint: {{advertiseAddress: {ADDRESS}}}
nodeRegistration: {{name: {NODE}, criSocket: {SOCKET}}}
---
"""
CLUSTER = """apiVersion: kubeadm.k8s.io/v1beta4
kind: ClusterConfiguration
kubernetesVersion: %s
networking: {serviceSubnet: 10.96.0.0/12}
etcd: {local: {dataDir: /var/lib/etcd, imageTag: %s}}
"""
OLD, NEW = CLUSTER % ("v1.36.3", "3.6.5-0"), CLUSTER % ("v1.37.2", "3.6.6-0")
WRONG_API_SERVER = NEW + "apiServer: {extraArgs: [{name: wrong, value: flag}]}\n"
WRONG_SCHEDULER = NEW + "scheduler: {extraArgs: [{name: wrong, value: flag}]}\n"
UPGRADE = "apiVersion: kubeadm.k8s.io/v1beta4\nkind: UpgradeConfiguration\ntimeouts: {upgradeManifests: %s}\n"
PORTS = {"etcd": ("127.0.0.1", 2381), "kube-apiserver": (ADDRESS, 6443), "kube-controller-manager": ("127.0.0.1", 10257),
         "kube-scheduler": ("127.0.0.1", 10259)}
PODS = sorted(PORTS)
ONCE = [(word, name) for name in PODS for word in ("remove", "add")]
MANIFESTS, VIEW = "/etc/kubernetes/manifests", "/etc/kubernetes/static-pods"
ETCD = """
args=$(sed -n 's/^    - \\(--.*\\)/\\1/p' /etc/kubernetes/manifests/etcd.yaml | grep -v -e feature-gates -e watch-progress -e metrics)
setsid etcd $args --unsafe-no-fsync < /dev/null > /run/etcd.log 2>&1 &
"""


@pytest.fixture(name="network", autouse=True)
def network_of_its_own():
    """For this thread and what it starts from now on."""
    libc = ctypes.CDLL(None, use_errno=True)
    with open("/proc/thread-self/ns/net", "rb") as before:
        assert libc.unshare(0x40000000) == 0  # CLONE_NEWNET
        try:
            lib.run("ip", "link", "set", "lo", "up", check=True)
            lib.run("ip", "address", "add", f"{ADDRESS}/32", "dev", "lo", check=True)
            yield
        finally:
            assert libc.setns(before.fileno(), 0) == 0


class Kubelet:
    """Starts what its file source says, and posts it."""

    def __init__(self, program, machine, api):
        self.api, self.client = api, copy.copy(api)  # a connection of its own
        self.client.connection = None
        self.operations, self.well, self.servers = [], {}, []
        for name, (host, port) in PORTS.items():
            self._answer(name, host, port)
        self.process = subprocess.Popen(["nsenter", "--target", str(machine.init), "--mount", program, VIEW], stdin=subprocess.DEVNULL,
                                        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        self.thread = threading.Thread(target=self._run)
        self.thread.start()

    def _answer(self, name, host, port):
        kubelet = self

        class Probed(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                self.send_response(200 if kubelet.well.get(name) else 500)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_):
                pass

        server = http.server.ThreadingHTTPServer((host, port), Probed)
        if name != "etcd":
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(self.api.directory / "apiserver.crt", self.api.directory / "apiserver.key")
            server.socket = context.wrap_socket(server.socket, server_side=True)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        self.servers.append(server)

    def _run(self):
        for line in self.process.stdout:
            update = json.loads(line)
            for pod in update["pods"].values():
                name = pod["metadata"]["labels"]["component"]
                self.operations.append((update["op"], name))
                self.well[name] = update["op"] == "add" and "--wrong=flag" not in pod["spec"]["containers"][0]["command"]
                if name == "kube-apiserver" and self.well[name] != self.api.is_up():
                    (self.api.up if self.well[name] else self.api.down)()
                    self.client.connection = None
                self._post(pod, update["op"], self.well[name])

    def _post(self, pod, operation, is_well):
        """The mirror pod. What a kubelet tries again, here it need not: of what is removed while the API server is down, another is posted."""
        pods = "/api/v1/namespaces/kube-system/pods"
        path = f"{pods}/{pod['metadata']['name']}"
        if not self.api.is_up():
            return
        try:
            self.client.request("DELETE", f"{path}?gracePeriodSeconds=0")
        except ApiError as error:
            assert error.code == 404
        if operation == "remove":
            return
        meta = pod["metadata"]
        meta["annotations"]["kubernetes.io/config.mirror"] = meta.pop("uid")
        self.client.request("POST", pods, {"metadata": meta, "spec": pod["spec"]})
        phase = {"phase": "Running" if is_well else "Pending", "conditions": [{"type": "Ready", "status": str(is_well)}]}
        self.client.request("PATCH", f"{path}/status", {"status": phase}, "application/merge-patch+json")

    def take(self):
        taken, self.operations = self.operations, []
        return sorted(taken, key=lambda one: one[1])

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        self.thread.join()
        for server in self.servers:
            server.shutdown()
            server.server_close()


def kubeadm(machine, program, *words, timeout=60):
    result = machine.run(program("kubeadm"), *words, timeout=timeout)
    return result.returncode, result.stdout.decode() + result.stderr.decode()


@pytest.fixture(name="node")
def control_plane_node(machine, deb, api, program):
    machine.install(deb)
    machine.put_tree(lib.REPOSITORY / "tests/e2e/adopt/kubeadm/tree")
    machine.write("/root/old.yaml", CONFIG + OLD)
    for name in ("crt", "key"):
        machine.write(f"/etc/kubernetes/pki/ca.{name}", (api.directory / f"ca.{name}").read_text())
    for words in (("certs", "all"), ("control-plane", "all"), ("etcd", "local"), ("kubeconfig", "controller-manager"), ("kubeconfig", "scheduler")):
        code, said = kubeadm(machine, program, "init", "phase", *words, "--config=/root/old.yaml")
        assert code == 0, said
    machine.shell(f"{program('kubeadm')} kubeconfig user --client-name=admin --org=system:masters --config=/root/old.yaml | "
                  f"sed 's,server: .*,server: {api.url},' > /etc/kubernetes/admin.conf", check=True)
    machine.write("/etc/kubernetes/kubelet.conf", complete(api.node_credential(NODE)))
    machine.shell(ETCD, check=True)
    api.request("POST", "/api/v1/nodes", {"metadata": {"name": NODE, "labels": {"kubernetes.io/hostname": NODE},
                                                      "annotations": {"kubeadm.alpha.kubernetes.io/cri-socket": SOCKET}}})
    api.put_configmap("kubelet-config", {"kubelet": machine.read(BASE)})
    machine.run("lkgfs", "adopt", "--static-pods", check=True)
    with Kubelet(program("file-source"), machine, api) as kubelet:
        machine.wait_for(lambda: len(kubelet.operations) == len(PODS), "all pods")
        assert kubelet.take() == [("add", name) for name in PODS]
        yield machine, kubelet


def settings(machine, duration, settle):
    """A stable time in which three failures of a probe can be counted."""
    machine.write("/etc/lkgfs/config.d/60-trial.conf", "components:\n- name: static-pods\n  trial:\n"
                  f"    duration: {duration}\n    settle: {settle}\n    health: {{stableFor: 8s}}\n")
    machine.run("systemctl", "reload", "lkgfs.service", check=True)


NODE_WORDS = ("node", "--skip-phases=preflight,addon")
APPLY_WORDS = ("apply", "v1.37.2", "--yes", "--skip-phases=preflight,addon,bootstrap-token")


def upgrade(machine, api, program, cluster, timeout, words=NODE_WORDS):
    api.put_configmap("kubeadm-config", {"ClusterConfiguration": cluster})
    machine.write("/root/upgrade.yaml", UPGRADE % timeout)
    return kubeadm(machine, program, "upgrade", *words, "--config=/root/upgrade.yaml", timeout=300)


def texts(machine, directory):
    return {name: machine.read(f"{directory}/{name}.yaml") for name in PODS}


def states(machine):
    rows = [line.split("\t") for line in machine.read("/etc/kubernetes/status/static-pods/pods").splitlines()]
    return {row[0].removesuffix(".yaml"): row[2] for row in rows}


def wait_until_good(machine):
    machine.wait_for(lambda: set(states(machine).values()) == {"good"}, "a good set", 90)


def condition(machine):
    return machine.read("/etc/kubernetes/status/static-pods/condition")


def marks(machine):
    return [name.partition("@")[0] for name in machine.shell("ls /etc/kubernetes/bad/static-pods").stdout.decode().split()]


@pytest.mark.parametrize("words", [NODE_WORDS, APPLY_WORDS], ids=["node", "apply"])
def test_an_upgrade_that_works(node, api, program, words):
    machine, kubelet = node
    settings(machine, "2m", "30s")
    old = texts(machine, MANIFESTS)
    code, said = upgrade(machine, api, program, NEW, "30s", words)
    assert code == 0, said
    new = texts(machine, MANIFESTS)
    assert all(new[name] != old[name] for name in PODS)
    assert texts(machine, VIEW) == new
    assert kubelet.take() == ONCE
    assert set(states(machine).values()) == {"on trial"}, "kubeadm has not waited for the verdict"
    wait_until_good(machine)
    assert texts(machine, VIEW) == new == texts(machine, "/etc/kubernetes/lkg/static-pods") and kubelet.take() == []
    kept = machine.shell("cd /etc/kubernetes/tmp/kubeadm-backup-manifests-*; grep -H '' *.yaml").stdout.decode()
    assert kept == "".join(f"{name}.yaml:{line}\n" for name in PODS for line in old[name].splitlines()), "what kubeadm keeps is in the view"
    assert machine.run("lkgfs", "doctor").returncode == 0 and condition(machine).startswith("True") and marks(machine) == []


@pytest.mark.parametrize("duration, timeout, marked", [("2m", "10s", []), ("30s", "50s", ["kube-apiserver.yaml"])], ids=["kubeadm is first", "lkgfs is first"])
def test_an_api_server_that_never_works(node, api, program, duration, timeout, marked):
    """Without it kubeadm sees no other hash, whoever takes it back, and moves the old manifest to its place. It leaves etcd as it is."""
    machine, kubelet = node
    settings(machine, duration, "4s")
    old = texts(machine, MANIFESTS)
    code, said = upgrade(machine, api, program, WRONG_API_SERVER, timeout)
    assert code != 0 and "kubeadm has tried to recover everything into the earlier state" in said, said
    after = texts(machine, MANIFESTS)
    assert after.pop("etcd") != old.pop("etcd") and after == old
    wait_until_good(machine)
    assert texts(machine, VIEW) == texts(machine, MANIFESTS) == texts(machine, "/etc/kubernetes/lkg/static-pods")
    machine.wait_for(lambda: len(kubelet.operations) == 6, "the old pod")
    assert kubelet.take() == [(word, name) for name in ("etcd", "kube-apiserver", "kube-apiserver") for word in ("remove", "add")]
    assert marks(machine) == marked and condition(machine).startswith("True")
    assert "hold" not in machine.run("lkgfs", "status", "-c", "static-pods").stdout.decode()


def test_a_pod_that_never_starts(node, api, program):
    """Its mirror pod has another hash, so kubeadm waits until it runs; then it moves back all but etcd."""
    machine, kubelet = node
    settings(machine, "2m", "4s")
    old = texts(machine, MANIFESTS)
    code, said = upgrade(machine, api, program, WRONG_SCHEDULER, "20s")
    assert code != 0 and "kubeadm has tried to recover everything into the earlier state" in said, said
    after = texts(machine, MANIFESTS)
    assert after.pop("etcd") != old.pop("etcd") and after == old
    wait_until_good(machine)
    assert texts(machine, VIEW) == texts(machine, MANIFESTS)
    machine.wait_for(lambda: len(kubelet.operations) == 14, "the old pods")
    assert kubelet.take() == ONCE[:2] + [one for i in (2, 4, 6) for one in 2 * ONCE[i:i + 2]]
    assert marks(machine) == [] and condition(machine).startswith("True")


def test_a_trial_that_is_shorter_than_kubeadm_waits(node, api, program):
    """The old pod runs again, and kubeadm believes that it is the new one. So a trial takes longer than that, unless somebody changes it: here the condition
    says what has become of the upgrade."""
    machine, kubelet = node
    settings(machine, "30s", "4s")
    old = texts(machine, MANIFESTS)
    code, said = upgrade(machine, api, program, WRONG_SCHEDULER, "50s")
    assert code == 0 and 'Component "kube-scheduler" upgraded successfully' in said, said
    wait_until_good(machine)
    assert texts(machine, VIEW) == {**texts(machine, MANIFESTS), "kube-scheduler": old["kube-scheduler"]}
    assert kubelet.take() == ONCE + ONCE[6:]
    assert marks(machine) == ["kube-scheduler.yaml"]
    assert condition(machine).startswith("False") and "not healthy: kube-scheduler" in condition(machine)
