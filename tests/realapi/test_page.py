# SPDX-License-Identifier: Apache-2.0
"""docs/remote.md and docs/tasks/configmap.md are true: their commands are run, against a real API server and on three machines with real
paths.

tests/lib/lkgfs_page.py describes how a page is read. The prompt `$ ` is a workstation with kubectl, whose `ssh` leads to the
machines; `worker-N# ` is a machine: a kubeadm node's files, and a kubelet that reads its file and exits, or keeps running with
-f.
"""
import base64
import contextlib
import hashlib
import os
import shutil
import tempfile

import pytest

import lkgfs_testlib as lib
from lkgfs_page import check_same, play, steps, Shell
from lkgfs_realapi import SCRIPT
from lkgfs_worker import Worker

REMOTE, TASK = (lib.REPOSITORY / "docs" / name for name in ("remote.md", "tasks/configmap.md"))
NAMES = ("worker-1", "worker-2", "worker-3")
SHARES = ((0, 1), (1, 10), (10, 100))  # of the rollout, in percent: determines which nodes come first
ROLES = lib.REPOSITORY / "contrib/rbac"
PROMPTS = ("$ ", *(f"{name}# " for name in NAMES))
PLACEHOLDERS = (
    (r"\b[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b", "<uid>"),
    (r"<uid>@\d+", "<uid>@<version>"),
    (r"\b[0-9a-f]{64}\b", "<sha256>"),
    (r"https://127\.0\.0\.1:\d+", "https://<server>"),
    (r"bucket[= ]\d+\.\d+", "bucket <n>"),
    (r"resourceVersion \d+", "resourceVersion <n>"),
    (r"  +", "  "),
    (r" +$", ""),
)

SSH = """#!/bin/bash
# ssh root@NAME COMMAND, without a network
name=${1#root@}
shift
exec nsenter --target "$(cat "${0%/*}/$name.pid")" --mount --uts --pid -- bash -c "$*"
"""
# Events in a cluster: an outage, and a kubelet that renews its certificate.
# On a node that was adopted: what `lkgfs adopt` writes for kubeadm, and as much of systemctl as the page needs.
ADOPTED = """apiVersion: config.lkgfs.io/v1alpha1
kind: LkgfsConfiguration
components:
- name: kubelet
  file: kubelet-config.yaml
  base: /var/lib/kubelet/config.yaml
  dropInDir: kubelet.conf.d
"""
SYSTEMCTL = """#!/bin/bash
[[ $* != 'reload lkgfs' ]] || kill -HUP "$(pgrep -xo lkgfsd)"
"""
API_SERVER = """#!/bin/bash
exec APISERVER "$1" DIRECTORY > /dev/null
"""
ROTATE = """#!/bin/bash -e
APISERVER issue DIRECTORY "node-$1" "/O=system:nodes/CN=system:node:$1"
cat DIRECTORY/node-$1.{crt,key} | ssh "root@$1" 'cd /var/lib/kubelet/pki; cat > new; mv new kubelet-client-current.pem'
"""


def bucket(uid, salt=""):
    """The bucket of a node in a rollout, in percent."""
    return int.from_bytes(hashlib.sha256(f"{salt}/{uid}".encode()).digest()[:8], "big") % 100000 / 1000


class Cluster:
    """What kubeadm creates: Nodes, its ConfigMap and Role, and files on the machines."""

    def __init__(self, real, directory, stack):
        self.real, self.directory = real, directory
        self.bin = os.path.join(directory, "bin")
        os.mkdir(self.bin)
        lib.write_file(os.path.join(self.bin, "ssh"), SSH, 0o755)
        os.symlink(lib.LKGFS, os.path.join(self.bin, "kubectl-lkgfs"))
        for name, text in (("api-server", API_SERVER), ("rotate", ROTATE)):
            text = text.replace("APISERVER", str(SCRIPT)).replace("DIRECTORY", str(real.directory))
            lib.write_file(os.path.join(self.bin, name), text, 0o755)
        self.path = f"{lib.LKGFSD.parent}:{lib.LKGFS.parent}:{self.bin}:{os.environ['PATH']}"
        stack.callback(self.remove_objects)
        real.put_configmap("kubelet-config", {"kubelet": lib.BASE})
        self.kubectl("apply", "-f", str(ROLES / "kubeadm-get.yaml"))
        self.workers = {}
        for name, share in zip(NAMES, SHARES):
            self.make_node(name, share)
            self.workers[name] = stack.enter_context(Worker(name, os.path.join(directory, name)))
            self.furnish(name)

    def kubectl(self, *words):
        done = self.real.kubectl(*words)
        assert done.returncode == 0, done.stderr

    def make_node(self, name, share):
        """Create it with a UID in this part of the rollout; a UID cannot be chosen."""
        for _ in range(20000):
            self.real.delete_node(name, missing_ok=True)
            if share[0] <= bucket(self.real.create_node(name)["metadata"]["uid"]) < share[1]:
                self.kubectl("label", "node", name, "pool=blue")
                return
        raise lib.Failure(f"no UID for {name}")

    def furnish(self, name):
        worker = self.workers[name]
        files = self.real.directory
        self.real.node_credential(name)
        authority = base64.b64encode(lib.read_file(files / "ca.crt")).decode()
        worker.write("/var/lib/kubelet/config.yaml", lib.BASE, 0o644)
        worker.write("/etc/kubernetes/kubelet.conf", f"""apiVersion: v1
kind: Config
clusters: [{{name: kubernetes, cluster: {{server: "{self.real.url}", certificate-authority-data: {authority}}}}}]
users: [{{name: default-auth, user: {{client-certificate: /var/lib/kubelet/pki/kubelet-client-current.pem,
  client-key: /var/lib/kubelet/pki/kubelet-client-current.pem}}}}]
contexts: [{{name: default-context, context: {{cluster: kubernetes, user: default-auth}}}}]
current-context: default-context
""")
        both = "".join(lib.read_file(files / f"node-{name}{end}").decode() for end in (".crt", ".key"))
        worker.write("/var/lib/kubelet/pki/kubelet-client-current.pem", both)
        worker.write("/etc/kubernetes/pki/ca.crt", lib.read_file(files / "ca.crt").decode(), 0o644)
        worker.write("/etc/kubernetes/manifests/none.yaml", "")
        shutil.copy("/usr/bin/tail", worker.path("/usr/bin/kubelet"))
        lib.write_file(os.path.join(self.bin, f"{name}.pid"), f"{worker.pid}\n")

    def adopt(self):
        for worker in self.workers.values():
            worker.write("/etc/lkgfs/config.yaml", ADOPTED)
            os.makedirs(worker.path("/etc/kubernetes/kubelet.conf.d"))
            worker.write("/usr/bin/systemctl.new", SYSTEMCTL, 0o755)
            os.rename(worker.path("/usr/bin/systemctl.new"), worker.path("/usr/bin/systemctl"))
            with worker.shell({"PATH": self.path}) as shell:
                assert shell.run("lkgfsd --background /etc/kubernetes", lib.TIMEOUT_S) == ""

    def shells(self, stack):
        home = os.path.join(self.directory, "home")
        os.mkdir(home)
        os.symlink(ROLES, os.path.join(home, "rbac"))
        workstation = {"PATH": self.path, "KUBECONFIG": str(self.real.directory / "admin.conf"), "KUBECACHEDIR": home}
        shells = {"$ ": stack.enter_context(Shell(environment=workstation, directory=home))}
        for name, worker in self.workers.items():
            shells[f"{name}# "] = stack.enter_context(worker.shell({"PATH": self.path}))
        return shells

    def remove_objects(self):
        if not (self.real.directory / "apiserver.pid").exists():
            self.real.up()  # the page ended in the middle of its outage
        if self.real.connection:
            self.real.connection.close()  # to a server that has been replaced
            self.real.connection = None
        for name in NAMES:
            self.real.delete_node(name, missing_ok=True)
        for name in ("kubelet-config", "node-config"):
            self.real.delete_configmap(name, missing_ok=True)
        for path in sorted(ROLES.glob("*.yaml")):
            if path.name != "rollout-namespace.yaml":  # without a controller manager no namespace ever goes away
                self.kubectl("delete", "--ignore-not-found", "-f", str(path))


@pytest.fixture
def directory():
    with tempfile.TemporaryDirectory(prefix=lib.PREFIX, dir=lib.PARENT) as path:
        os.chmod(path, 0o755)
        yield path


@pytest.mark.limit(300)
@pytest.mark.parametrize("page", [REMOTE, TASK], ids=lambda page: page.stem)
def test_the_page_shows_what_happens(real, directory, page):
    with contextlib.ExitStack() as stack:
        cluster = Cluster(real, directory, stack)
        if page == TASK:
            cluster.adopt()
        shown, came = play(steps(page.read_text(), PROMPTS), cluster.shells(stack), 2 * lib.TIMEOUT_S)
    check_same(shown, came, PLACEHOLDERS)
