# SPDX-License-Identifier: Apache-2.0
"""The image: what is in it, and what its program does on a node."""
import gzip
import hashlib
import io
import json
import tarfile

import pytest
import yaml

import lkgfs_testlib as lib
from test_install import OWN, PROCESSES, VIEW, VIEWED, kubeadm_node, start, started_with, version_of

pytestmark = pytest.mark.limit(600)

FOLDER = lib.REPOSITORY / "contrib/package/image"


def build(out, *packages):
    lib.run(FOLDER / "build", out, *packages, check=True, timeout=100)
    return out


@pytest.fixture(scope="module", name="image")
def built_image(place, deb):
    return build(place / "image.tar", deb)


class Layout:
    """An image layout in a tar, as the OCI image specification has it. Every blob has the name of its checksum."""
    def __init__(self, path):
        with tarfile.open(path) as tar:
            self.files = {member.name.removeprefix("./"): tar.extractfile(member).read() for member in tar if member.isfile()}
        for name, content in self.files.items():
            if name.startswith("blobs/sha256/"):
                assert hashlib.sha256(content).hexdigest() == name.rpartition("/")[2]
        assert json.loads(self.files["oci-layout"]) == {"imageLayoutVersion": "1.0.0"}
        index, = json.loads(self.files["index.json"])["manifests"]
        self.manifests = json.loads(self.blob(index))["manifests"]
        self.manifest = json.loads(self.blob(self.manifests[-1]))
        self.config = json.loads(self.blob(self.manifest["config"]))
        layer = gzip.decompress(self.blob(self.manifest["layers"][0]))
        assert self.config["rootfs"]["diff_ids"] == ["sha256:" + hashlib.sha256(layer).hexdigest()]
        self.layer = layer

    def blob(self, descriptor):
        content = self.files["blobs/" + descriptor["digest"].replace(":", "/")]
        assert len(content) == descriptor["size"]
        return content

    def names(self):
        with tarfile.open(fileobj=io.BytesIO(self.layer)) as tar:
            return {member.name.removeprefix("./"): member for member in tar}


def test_the_image_is_an_oci_image(image, deb):
    layout = Layout(image)
    assert layout.manifest["mediaType"] == "application/vnd.oci.image.manifest.v1+json"
    assert layout.config["os"] == "linux" and layout.config["config"]["Entrypoint"] == ["/lkgfs-node"]
    assert layout.config["architecture"] == lib.run("dpkg", "--print-architecture", check=True).stdout.decode().strip()
    names = layout.names()
    assert {"lkgfs.deb", "lkgfs-node", "version", "bin/busybox", "bin/sh"} <= set(names)
    assert all(member.uid == member.gid == 0 and not member.mode & 0o7000 for member in names.values())
    assert names["lkgfs.deb"].size == deb.stat().st_size


def test_the_same_package_gives_the_same_image(place, image, deb):
    assert build(place / "again.tar", deb).read_bytes() == image.read_bytes()


def test_what_cannot_be_in_one_image_is_refused(place, deb, newer):
    for packages, words in (((deb, newer), b"has version"), ((deb, deb), b"two packages"), ((place / "x.txt",), b"neither")):
        result = lib.run(FOLDER / "build", place / "no.tar", *packages)
        assert result.returncode != 0 and words in result.stderr and not (place / "no.tar").exists()


class Pod:
    """The image as the kubelet starts it: a root of its own, the processes of the node, and privileges."""
    def __init__(self, machine, image):
        self.machine = machine
        machine.shell("rm -rf /opt/pod && mkdir -p /opt/pod && tar -xf - -C /opt/pod", input=Layout(image).layer, check=True)

    def run(self, *words, namespaces="--mount", environment="", **options):
        return self.machine.shell(f"unshare {namespaces} sh -c 'mount --bind /proc /opt/pod/proc && exec env -i PATH=/bin {environment} "
                                  f"/usr/sbin/chroot /opt/pod /lkgfs-node {' '.join(words)}'", **options)


@pytest.fixture(name="pods")
def pods_of_a_machine(machine):
    return lambda image: Pod(machine, image)


def test_the_package_comes_to_the_node_once(machine, pods, image, deb):
    pod = pods(image)
    assert pod.run("ready").returncode != 0
    first = pod.run("once", check=True).stdout.decode()
    assert "installing lkgfs" in first and version_of(machine).split()[1] == "installed"
    assert "is installed" in pod.run("once", check=True).stdout.decode().splitlines()[-1]
    assert pod.run("ready").returncode == 0, "nothing runs, and that is right"
    assert machine.processes() == {} and not machine.exists("/var/cache/lkgfs")
    pod.run("remove", check=True)
    assert version_of(machine).split()[-1] == "config-files"
    pod.run("remove", check=True)


def test_another_image_updates_the_node_in_use(machine, pods, place, image, deb, newer):
    pods(image).run("once", check=True)
    start(machine)
    before = machine.processes()
    pod = pods(build(place / "newer.tar", newer))
    assert pod.run("ready").returncode != 0, "the version of the other image is installed"
    with machine.readers():
        pod.run("once", check=True)
        machine.wait_for(lambda: set(machine.processes()) == PROCESSES, "no process of the old version is left")
    assert not set(sum(before.values(), [])) & set(sum(machine.processes().values(), []))
    machine.wait_for(lambda: pod.run("ready").returncode == 0, "the pod is ready")
    machine.shell(f"printf 'x: [' > {VIEW}/kubelet.conf.d/99-bad.conf", check=True)
    assert pod.run("ready").returncode == 0, "the last good document is served"


def test_a_node_is_adopted_and_abandoned(machine, pods, image):
    kubeadm_node(machine)
    pod = pods(image)
    pod.run("once", environment="LKGFS_ADOPT=yes", check=True)
    assert started_with(machine) == [VIEWED, "maxPods:", "50"]
    assert "adopted" not in pod.run("once", environment="LKGFS_ADOPT=yes", check=True).stdout.decode()
    pod.run("remove", check=True)
    assert started_with(machine) == [OWN, "maxPods:", "50"] and machine.mounts() == []


def test_a_node_that_is_not_known_stays_as_it_is(machine, pods, image):
    machine.shell("rm -rf /etc/kubernetes /etc/systemd/system/kubelet.service* /usr/lib/systemd/system/kubelet.service*", check=True)
    result = pods(image).run("once", environment="LKGFS_ADOPT=yes")
    assert result.returncode == 1 and b"this node is not known" in result.stderr
    assert machine.mounts() == [] and not machine.exists("/etc/lkgfs/adopted.json")


def test_a_pod_without_the_processes_of_the_node_says_so(machine, pods, image):
    result = pods(image).run("once", namespaces="--mount --pid --fork --mount-proc")
    assert result.returncode == 1 and b"hostPID" in result.stderr
    assert version_of(machine).strip() in ("", "unknown", "not-installed")


def test_a_second_lkgfs_serves_kube_proxy_beside_the_first(machine, deb):
    """README.md: its configuration, its directories beside those of the first one."""
    machine.install(deb)
    start(machine)
    machine.write("/etc/lkgfs/kube-proxy.yaml", (FOLDER / "kube-proxy-config.yaml").read_text(encoding="utf-8"))
    machine.write("/etc/lkgfs/kube-proxy/config.conf", "apiVersion: kubeproxy.config.k8s.io/v1alpha1\nkind: KubeProxyConfiguration\nclusterCIDR: 10.244.0.0/16\n")
    machine.write("/etc/lkgfs/kube-proxy/kubeconfig.conf", "apiVersion: v1\nkind: Config\n")
    unit = (FOLDER / "kube-proxy-unit.conf").read_text(encoding="utf-8")
    lines = [line.partition("=")[2] for line in unit.splitlines() if line.startswith("ExecStart") and line != "ExecStart="]
    machine.shell(f"mkdir -p /etc/lkgfs/kube-proxy/config.conf.d; {lines[0]} && {lines[1].replace('/lkgfsd ', '/lkgfsd --background ')}", check=True)
    view = "/run/lkgfs/kube-proxy"
    assert set(machine.mounts()) == {VIEW, view}
    assert "clusterCIDR: 10.244.0.0/16" in machine.read(f"{view}/config.conf") and machine.exists(f"{view}/kubeconfig.conf")
    machine.write(f"{view}/config.conf.d/50-x.conf", "apiVersion: kubeproxy.config.k8s.io/v1alpha1\nkind: KubeProxyConfiguration\nclusterCIDR: 10.9.0.0/16\n")
    assert "clusterCIDR: 10.9.0.0/16" in machine.read(f"{view}/config.conf")
    machine.run("systemctl", "restart", "lkgfs.service", check=True)
    assert "clusterCIDR: 10.9.0.0/16" in machine.read(f"{view}/config.conf")
    machine.dpkg("--remove", "lkgfs")
    assert machine.mounts() == [] and machine.processes() == {}


def test_the_daemonset_starts_what_the_image_has(image):
    documents = list(yaml.safe_load_all((FOLDER / "daemonset.yaml").read_text(encoding="utf-8")))
    pod = documents[1]["spec"]["template"]["spec"]
    container = pod["containers"][0]
    assert pod["hostPID"] and container["securityContext"]["privileged"] and "volumes" not in pod and not pod["automountServiceAccountToken"]
    assert container["readinessProbe"]["exec"]["command"][0].strip("/") in Layout(image).names()
    assert documents[1]["spec"]["selector"]["matchLabels"].items() <= documents[1]["spec"]["template"]["metadata"]["labels"].items()
