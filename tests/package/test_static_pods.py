# SPDX-License-Identifier: Apache-2.0
"""A kubelet finds every static pod that it had, whatever becomes of lkgfs: adopted, stopped, killed, abandoned. It is a stand-in that looks
all the time for two files in the directory that its configuration names. Rule: docs/specification.md 2.16, 2.17."""
import pytest

import lkgfs_testlib as lib
from test_pages import TREES

pytestmark = pytest.mark.limit(600)

POD = "apiVersion: v1\nkind: Pod\nmetadata: {name: NAME, namespace: kube-system}\nspec: {hostNetwork: true, containers: [{name: c, image: i}]}\n"
MANIFESTS = ("etcd.yaml", "kube-apiserver.yaml")
LOOK = r"""
while :; do
        for name in etcd.yaml kube-apiserver.yaml; do
                grep -q '^kind: Pod$' $1/$name || echo $1/$name >> /run/stand-in/lost
        done
        echo > /run/stand-in/looked
done
"""
# What it reads when it is started: what the drop-in of its unit says, if there is one.
START_KUBELET = r"""
set -e
unit=/etc/systemd/system/kubelet.service.d/20-lkgfs.conf
file=/var/lib/kubelet/config.yaml
if [ -e $unit ]; then
        grep '^ExecStartPre=' $unit | cut -d= -f2- | sh -e
        file=$(sed -n 's/^LKGFS_ARGS=--config=\([^ ]*\).*/\1/p' /run/lkgfs-kubelet.env)
fi
[ ! -e /run/stand-in/kubelet ] || kill $(cat /run/stand-in/kubelet)
sed -n 's/^staticPodPath: //p' $file > /run/stand-in/path
rm -f /run/stand-in/looked
setsid bash /run/stand-in/look $(cat /run/stand-in/path) < /dev/null > /dev/null 2>&1 &
echo $! > /run/stand-in/kubelet
"""


@pytest.fixture(name="node")
def fixture_node(machine, deb):
    machine.install(deb)
    machine.put_tree(TREES / "kubeadm/tree")
    for name in MANIFESTS:
        machine.write(f"/etc/kubernetes/manifests/{name}", POD.replace("NAME", name[:-5]))
    machine.write("/run/stand-in/look", LOOK)
    machine.write("/run/stand-in/start-kubelet", START_KUBELET)
    machine.shell("touch /run/stand-in/lost; systemctl restart kubelet", check=True)
    return machine


def reads(node):
    """The directory that the kubelet reads, after it has looked at least once more."""
    node.shell("rm -f /run/stand-in/looked")
    node.wait_for(lambda: node.exists("/run/stand-in/looked"), "a look of the kubelet")
    assert node.read("/run/stand-in/lost") == ""
    return node.read("/run/stand-in/path").strip()


def lkgfs(node, *words):
    result = node.run("lkgfs", *words)
    assert result.returncode == 0, result.stderr.decode()
    return result.stderr.decode()


def restart(node):
    node.run("systemctl", "restart", "kubelet", check=True)
    return reads(node)


def test_a_kubelet_finds_its_static_pods(node):
    view, own = "/etc/kubernetes/static-pods", "/etc/kubernetes/manifests"
    assert reads(node) == own
    lkgfs(node, "adopt", "--static-pods")
    assert reads(node) == own and restart(node) == view
    for name, pids in node.processes().items():
        if name != "lkgfsd":
            node.run("kill", "-9", *map(str, pids), check=True)
            assert reads(node) == view
    node.run("systemctl", "stop", "lkgfs.service", check=True)
    assert reads(node) == view and node.mounts() == []
    node.shell("touch /etc/lkgfs/disabled")
    assert restart(node) == view, "the copy of its document names the copies of the manifests"
    node.shell("rm /etc/lkgfs/disabled")
    node.run("systemctl", "start", "lkgfs.service", check=True)
    assert reads(node) == view
    node.shell("mv /etc/lkgfs/config.d/50-static-pods.conf /root/; systemctl reload lkgfs.service && lkgfs sync -c kubelet")
    assert reads(node) == view, "a kubelet that was not restarted finds its copies"
    assert restart(node) == own
    node.shell("mv /root/50-static-pods.conf /etc/lkgfs/config.d/; systemctl reload lkgfs.service && lkgfs sync -c kubelet")
    assert reads(node) == own and restart(node) == view
    lkgfs(node, "abandon")
    assert reads(node) == own and not node.exists(view) and node.mounts() == []
    assert sorted(node.shell("ls -A /etc/kubernetes").stdout.decode().split()) == ["kubelet.conf", "manifests"]


def test_removing_the_package_keeps_them(node):
    lkgfs(node, "adopt")
    lkgfs(node, "adopt", "--static-pods")
    restart(node)
    node.dpkg("--remove", "lkgfs")
    assert reads(node) == "/etc/kubernetes/manifests" and not node.exists("/etc/kubernetes/static-pods")


@pytest.mark.parametrize("stopped", [False, True], ids=["running", "stopped"])
def test_what_a_kubelet_would_refuse_is_not_left_to_it(node, stopped):
    lkgfs(node, "adopt", "--static-pods")
    restart(node)
    node.shell("cd /etc/kubernetes/manifests; echo '{' > etcd.yaml; cp kube-apiserver.yaml kube-apiserver.yaml.bak")
    assert reads(node) == "/etc/kubernetes/static-pods"
    if stopped:
        node.run("systemctl", "stop", "lkgfs.service", check=True)
    assert "etcd.yaml is not what was served, and is kept as .etcd.yaml.before-abandon" in lkgfs(node, "abandon")
    assert reads(node) == "/etc/kubernetes/manifests" and not node.exists("/etc/kubernetes/static-pods")
    assert node.read("/etc/kubernetes/manifests/.etcd.yaml.before-abandon") == "{\n"
    assert node.exists("/etc/kubernetes/manifests/.kube-apiserver.yaml.bak.before-abandon") and not node.exists("/etc/kubernetes/manifests/kube-apiserver.yaml.bak")
