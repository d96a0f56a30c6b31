# SPDX-License-Identifier: Apache-2.0
"""A real kube-apiserver with etcd for a fleet: nodes with their own credentials, what it has counted, and what may happen to it."""
import datetime
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


def issue(directory, names, urls, authority="ca"):
    """A certificate and a kubeconfig per node; one key for all, because a key per node takes time and tests nothing."""
    directory = pathlib.Path(directory)
    run = lambda *words: subprocess.run(["openssl", *map(str, words)], check=True, cwd=directory, stdin=subprocess.DEVNULL,
                                        capture_output=True, timeout=60)
    run("ecparam", "-name", "prime256v1", "-genkey", "-noout", "-out", "node.key")
    run("pkey", "-in", "node.key", "-pubout", "-out", "node.pub")
    os.chmod(directory / "node.key", 0o600)
    sign = quick_signer(directory, authority) or (lambda name, serial: run(
        "x509", "-new", "-force_pubkey", "node.pub", "-subj", f"/O=system:nodes/CN=system:node:{name}", "-CA", f"{authority}.crt",
        "-CAkey", f"{authority}.key", "-set_serial", serial, "-days", "30", "-out", f"{name}.crt"))
    for i, name in enumerate(names):
        sign(name, 1000 + i)
        path = directory / f"{name}.conf"
        path.write_text(CONF.format(url=urls[i % len(urls)], directory=directory, name=name))
        path.chmod(0o600)


def quick_signer(directory, authority):
    """Thousands of certificates in seconds, if Python's `cryptography` is there; None: openssl takes minutes for them."""
    try:
        from cryptography import x509  # pylint: disable=import-outside-toplevel
        from cryptography.hazmat.primitives import hashes, serialization  # pylint: disable=import-outside-toplevel
    except ImportError:
        return None
    issuer = x509.load_pem_x509_certificate((directory / f"{authority}.crt").read_bytes())
    key = serialization.load_pem_private_key((directory / f"{authority}.key").read_bytes(), None)
    public = serialization.load_pem_public_key((directory / "node.pub").read_bytes())
    oid, now = x509.NameOID, datetime.datetime.now(datetime.timezone.utc)

    def sign(name, serial):
        subject = x509.Name([x509.NameAttribute(oid.ORGANIZATION_NAME, "system:nodes"),
                             x509.NameAttribute(oid.COMMON_NAME, f"system:node:{name}")])
        builder = x509.CertificateBuilder(issuer.subject, subject, public, serial, now - datetime.timedelta(minutes=1),
                                          now + datetime.timedelta(days=30))
        (directory / f"{name}.crt").write_bytes(builder.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM))
    return sign


class RealCluster:
    """What fleet.py needs of an API server."""

    kind = "kube-apiserver"

    def __init__(self, directory, names):
        self.directory, self.names = pathlib.Path(directory), names
        self.lost = {}  # counters of the processes before a restart
        self.api = RealApi(directory)
        self.url = self.api.url
        issue(directory, names, [self.url])
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
