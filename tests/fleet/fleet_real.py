# SPDX-License-Identifier: Apache-2.0
"""A real kube-apiserver with etcd for a fleet: nodes with their own credentials, what it has counted, and what may happen to it."""
import os
import pathlib
import re
import signal
import subprocess
import time

import lkgfs_testlib as lib
from lkgfs_realapi import RealApi

NAMESPACE = "lkgfs-rollout"
ROLE = lib.REPOSITORY / "contrib/rbac/rollout.yaml"
CONF = """apiVersion: v1
kind: Config
clusters: [{{name: c, cluster: {{server: "{url}", certificate-authority: {directory}/ca.crt}}}}]
users: [{{name: u, user: {{client-certificate: {directory}/{name}.crt, client-key: {directory}/node.key}}}}]
contexts: [{{name: x, context: {{cluster: c, user: u}}}}]
current-context: x
"""
LINE = re.compile(r"^(?P<name>[a-z_]+)(?:\{(?P<labels>[^}]*)\})? (?P<value>\S+)$")
LABEL = re.compile(r'(\w+)="([^"]*)"')
CONNECT_S = 30


def memory(pid):
    """Resident set of a process, in bytes."""
    fields = dict(line.split(":", 1) for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines())
    return int(fields["VmRSS"].split()[0]) << 10


def processor(pid):
    """Processor time of a process, in seconds."""
    words = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")


def issue(directory, names, url):
    """A certificate and a kubeconfig per node; one key for all, because a key per node takes time and tests nothing."""
    def run(*words):
        subprocess.run(["openssl", *map(str, words)], check=True, cwd=directory, stdin=subprocess.DEVNULL, capture_output=True, timeout=60)
    run("ecparam", "-name", "prime256v1", "-genkey", "-noout", "-out", "node.key")
    run("pkey", "-in", "node.key", "-pubout", "-out", "node.pub")
    os.chmod(directory / "node.key", 0o600)
    for i, name in enumerate(names):
        run("x509", "-new", "-force_pubkey", "node.pub", "-subj", f"/O=system:nodes/CN=system:node:{name}", "-CA", "ca.crt", "-CAkey", "ca.key",
            "-set_serial", 1000 + i, "-days", "30", "-out", f"{name}.crt")
        lib.write_file(directory / f"{name}.conf", CONF.format(url=url, directory=directory, name=name), 0o600)


class RealCluster:
    """What fleet.py needs of an API server."""

    def __init__(self, directory, names):
        self.directory, self.names = pathlib.Path(directory), names
        self.lost = {}  # counters of the processes before a restart
        self.api = RealApi(directory)
        issue(self.directory, names, self.api.url)
        for name in names:
            self.api.create_node(name)
        self._kubectl("create", "namespace", NAMESPACE)
        self._kubectl("apply", "-f", ROLE)

    def _kubectl(self, *words):
        done = lib.run("kubectl", "--kubeconfig", self.directory / "admin.conf", *words)
        assert done.returncode == 0, done.stderr

    def prepare(self, configmap):
        """Nodes may follow this ConfigMap."""
        self.api.grant(f"lkgfs-{configmap}", "system:nodes", ["get", "watch"], [configmap])

    def put(self, configmap, text, annotations):
        return self._patiently(lambda: self.api.put_configmap(configmap, {"kubelet": text}, annotations))

    def slots(self, uid):
        """Data of the slots of a ConfigMap."""
        path = f"/api/v1/namespaces/{NAMESPACE}/configmaps?labelSelector=lkgfs.io/configmap-uid={uid}"
        return [item["data"] for item in self._patiently(lambda: self.api.request("GET", path))["items"]]

    @staticmethod
    def _patiently(function):
        end = time.monotonic() + CONNECT_S
        while True:
            try:
                return function()
            except OSError:
                if time.monotonic() > end:
                    raise

    # what it has counted

    def _metrics(self):
        connection = self.api._connect()  # pylint: disable=protected-access
        connection.request("GET", "/metrics")
        text = connection.getresponse().read().decode()
        connection.close()
        for line in text.splitlines():
            match = LINE.match(line)
            if match:
                yield match["name"], dict(LABEL.findall(match["labels"] or "")), float(match["value"])

    def counters(self):
        """requests, written, bytes (of answers), watch_events, watch_bytes; for each resource that nodes ask for."""
        found = dict.fromkeys(("requests", "conflicts", "patches", "lists", "writes", "bytes", "watch_events", "watch_bytes"), 0)
        for name, labels, value in self._metrics():
            of_nodes = labels.get("resource") in ("configmaps", "nodes", "events")
            if name == "apiserver_request_total" and of_nodes:
                found["requests"] += value
                found["conflicts"] += value if labels["code"] == "409" else 0
                found["patches"] += value if labels["verb"] == "PATCH" else 0
                found["lists"] += value if labels["verb"] == "LIST" else 0
                found["writes"] += value if labels["verb"] in ("POST", "PUT") and labels["resource"] == "configmaps" else 0
            elif name == "apiserver_response_sizes_sum" and of_nodes:
                found["bytes"] += value
            elif name == "apiserver_watch_events_total" and labels.get("resource") in ("configmaps", "nodes"):
                found["watch_events"] += value
            elif name == "apiserver_watch_events_sizes_sum" and labels.get("resource") in ("configmaps", "nodes"):
                found["watch_bytes"] += value
        pid = self.api.process
        found.update(cpu=processor(pid), etcd_cpu=processor(int((self.directory / "etcd.pid").read_text())))
        return {**{key: value + self.lost.get(key, 0) for key, value in found.items()}, "memory": memory(pid)}

    # what happens to it

    def restart(self, seconds):
        """Away for some time."""
        before = self.counters()
        del before["memory"]
        self.lost = before
        self.api.down()
        time.sleep(seconds)
        self.api.up()

    def pause(self, seconds):
        """It answers nothing for some time, and then all at once."""
        os.kill(self.api.process, signal.SIGSTOP)
        try:
            time.sleep(seconds)
        finally:
            os.kill(self.api.process, signal.SIGCONT)

    def compact(self):
        """The history of etcd is dropped, and with a new process that of the API server."""
        client = (self.directory / "ports").read_text().split()[1]
        words = ["etcdctl", f"--endpoints=http://127.0.0.1:{client}"]
        text = subprocess.run([*words, "endpoint", "status", "-w", "json"], check=True, capture_output=True, timeout=30,
                              env={**os.environ, "ETCDCTL_API": "3"}).stdout.decode()
        revision = re.search(r'"revision":(\d+)', text)[1]
        subprocess.run([*words, "compact", revision], check=True, capture_output=True, timeout=30, env={**os.environ, "ETCDCTL_API": "3"})
        self.restart(1)

    def close(self):
        self.api.down()
