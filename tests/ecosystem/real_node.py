# SPDX-License-Identifier: Apache-2.0
"""A control-plane node in a virtual machine, or in a container with systemd: containerd, and kubeadm's static pods of etcd and kube-apiserver, run by a
real kubelet."""
import glob
import hashlib
import io
import json
import os
import pathlib
import re
import subprocess
import tarfile

import lkgfs_testlib as lib
from inside import wait_for
from laboratory import VirtualMachine

ADDRESS = "10.1.0.1"
MANIFESTS = "/etc/kubernetes/manifests"
FILE = f"{MANIFESTS}/kube-apiserver.yaml"
PODS = ("etcd", "kube-apiserver")
LOOK_S = 20  # how often a kubelet looks at its directory
START_S = 600  # of the API server, with QEMU's translator
WATCHED = "/run/watched"  # of this boot
KUBEADM = f"""apiVersion: kubeadm.k8s.io/v1beta4
kind: InitConfiguration
localAPIEndpoint: {{advertiseAddress: {ADDRESS}}}
timeouts: {{controlPlaneComponentHealthCheck: {4 * START_S}s}}
nodeRegistration: {{name: node, criSocket: "unix:///run/containerd/containerd.sock", kubeletExtraArgs: [{{name: node-ip, value: {ADDRESS}}}, {{name: v, value: "2"}}]}}
---
apiVersion: kubeadm.k8s.io/v1beta4
kind: ClusterConfiguration
kubernetesVersion: VERSION
encryptionAlgorithm: ECDSA-P256
---
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
"""
CONTAINERD = """version = 2
[plugins."io.containerd.grpc.v1.cri"]
sandbox_image = "IMAGE"
restrict_oom_score_adj = true
[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
runtime_type = "io.containerd.runc.v2"
options = {SystemdCgroup = DRIVER}
"""
PAUSE = "#include <signal.h>\n#include <unistd.h>\nint main(void)\n{\n        signal(SIGTERM, _exit);\n        for (;;)\n                pause();\n}\n"
# Asks the API server all the time; a line for each change: seconds since the boot, `up` or `down`.
WATCH = f"""
import ssl, time, urllib.request
nobody = ssl._create_unverified_context()
before = None
while True:
    try:
        with urllib.request.urlopen("https://{ADDRESS}:6443/livez", timeout=30, context=nobody):
            now = "up"
    except OSError:
        now = "down"
    if now != before:
        print(f"{{time.clock_gettime(time.CLOCK_BOOTTIME):.1f}} {{now}}", flush=True)
    before = now
    time.sleep(0.25)
"""

HANDSHAKE = """
import socket, ssl
context = ssl._create_unverified_context()
context.load_cert_chain("/etc/kubernetes/pki/apiserver-etcd-client.crt", "/etc/kubernetes/pki/apiserver-etcd-client.key")
with socket.create_connection(("127.0.0.1", 2379), timeout=30) as plain, context.wrap_socket(plain):
    pass
"""


def image_of(name, program, place):
    """An OCI archive of one layer: the program, as /usr/local/bin/..., and the libraries that it has."""
    def add(tar, path, data, mode=0o644):
        member = tarfile.TarInfo(path)
        member.size, member.mode = len(data), mode
        tar.addfile(member, io.BytesIO(data))

    def blob(data):
        digest = hashlib.sha256(data).hexdigest()
        add(archive, f"blobs/sha256/{digest}", data)
        return {"digest": f"sha256:{digest}", "size": len(data)}
    layer = io.BytesIO()
    with tarfile.open(fileobj=layer, mode="w") as tar:
        add(tar, f"usr/local/bin/{program.name}", program.read_bytes(), 0o755)
        for library in re.findall(r"(/\S+) \(0x", lib.run("ldd", program).stdout.decode()):
            add(tar, library[1:], pathlib.Path(library).read_bytes(), 0o755)
    with tarfile.open(place, "w") as archive:
        kind = "application/vnd.oci.image."
        made = blob(layer.getvalue())
        config = blob(json.dumps({"architecture": "amd64", "os": "linux", "rootfs": {"type": "layers", "diff_ids": [made["digest"]]},
                                  "config": {"Entrypoint": [f"/usr/local/bin/{program.name}"], "Env": ["PATH=/usr/local/bin"]}}).encode())
        manifest = blob(json.dumps({"schemaVersion": 2, "mediaType": f"{kind}manifest.v1+json", "config": {"mediaType": f"{kind}config.v1+json", **config},
                                    "layers": [{"mediaType": f"{kind}layer.v1.tar", **made}]}).encode())
        add(archive, "index.json", json.dumps({"schemaVersion": 2, "manifests": [
            {"mediaType": f"{kind}manifest.v1+json", "annotations": {"io.containerd.image.name": name}, **manifest}]}).encode())
        add(archive, "oci-layout", b'{"imageLayoutVersion":"1.0.0"}')


def files_for(program, folder):
    """@folder gets bin/, images/ and debs/; returns kubeadm's names of the images."""
    for name in ("bin", "images", "debs"):
        (folder / name).mkdir(parents=True)
    for name in ("kubelet", "kubeadm"):
        lib.run("cp", program(name), folder / "bin", check=True)
    release = re.search(r"v1\.\d+\.\d+", lib.run(program("kubelet"), "--version", check=True).stdout.decode())[0]
    listed = lib.run(program("kubeadm"), "config", "images", "list", "--kubernetes-version", release, check=True).stdout.decode().split()
    names = {re.search(r"/([^/]*):", name)[1]: name for name in listed}
    subprocess.run(["gcc", "-static", "-o", folder / "pause", "-xc", "-"], input=PAUSE.encode(), check=True)
    for name, path in {"pause": folder / "pause", **{name: program(name) for name in PODS}}.items():
        image_of(names[name], path, folder / f"images/{name}.tar")
    subprocess.run(["apt-get", "--quiet", "--quiet", "download", "containerd", "runc", "libseccomp2"], cwd=folder / "debs", check=True)
    return release, names["pause"]


class Node(VirtualMachine):
    systemd_cgroup, kubelet, give_files = "true", "", "mount -o ro /dev/vdb /mnt"

    def __init__(self, image, folder, files, release, pause):
        super().__init__(image, folder, memory="3G", files=files)
        self.release, self.pause = release, pause

    def set_up(self):
        """What kubeadm does on the first node of a cluster, as far as this node needs it."""
        self.boot()
        units = lib.REPOSITORY / "tests/e2e/adopt/kubeadm/tree/usr/lib/systemd/system"
        for name in ("kubelet.service", "kubelet.service.d/10-kubeadm.conf"):
            self.write(f"/usr/lib/systemd/system/{name}", (units / name).read_text())
        self.write("/etc/systemd/network/lo.network", f"[Match]\nName=lo\n[Network]\nAddress={ADDRESS}/32\n")
        self.write("/etc/containerd/config.toml", CONTAINERD.replace("IMAGE", self.pause).replace("DRIVER", self.systemd_cgroup))
        self.write("/root/kubeadm.yaml", KUBEADM.replace("VERSION", self.release) + self.kubelet)
        self.write("/root/watch", WATCH)
        self.write("/etc/systemd/system/watch.service", f"[Service]\nExecStart=/usr/bin/python3 /root/watch\nStandardOutput=append:{WATCHED}\n"
                                                        "Restart=always\n[Install]\nWantedBy=multi-user.target\n")
        self.output(f"{self.give_files} && cp /mnt/bin/* /usr/bin && dpkg --force-confold --install /mnt/debs/*.deb && systemctl daemon-reload &&"
                    " systemctl mask systemd-networkd-wait-online.service && systemctl enable --now systemd-networkd kubelet watch", timeout=600)
        self.output("for image in /mnt/images/*; do ctr --namespace k8s.io images import $image; done; umount /mnt", timeout=600)
        for phase in ("certs all", "kubeconfig all", "etcd local", "control-plane apiserver", "kubelet-start"):
            self.output(f"kubeadm init phase {phase} --config /root/kubeadm.yaml", timeout=600)
        self.wait_for_api()

    def wait_for_api(self, seconds=START_S):
        self.wait_until(f"tail -n 1 {WATCHED} | grep -q up", seconds)

    def now(self):
        """Seconds since the boot, by the machine's clock."""
        return float(self.output("cut -d' ' -f1 /proc/uptime"))

    def containers(self):
        """{pod: {id of a container that runs: its process}}"""
        found = {name: {} for name in PODS}
        script = "ctr --namespace k8s.io containers ls; ctr --namespace k8s.io tasks ls"
        images = {}
        for line in self.output(script).splitlines():
            words = line.split()
            name = re.search(r"/([^/:]*):", line)
            if name:
                images[words[0]] = name[1]
            elif words[-1] == "RUNNING" and images.get(words[0]) in found:
                found[images[words[0]]][words[0]] = int(words[1])
        return found

    def flags(self):
        """Of the API servers that run: one, if all is well."""
        return [self.output(f"tr '\\0' '\\n' < /proc/{pid}/cmdline").split()[1:] for pid in self.containers()["kube-apiserver"].values()]

    def good_flags(self):
        """Of the manifest that is kept as the good one."""
        return self.output("sed -n 's/^    - --/--/p' /root/good").split()

    def changes(self, since):
        """[(seconds after @since, `up` or `down`)] of the API server."""
        lines = [line.split() for line in self.output(f"cat {WATCHED}").splitlines()]
        return [(round(float(when) - since, 1), what) for when, what in lines if float(when) >= since]

    def started_since_the_boot(self):
        """{pod: number of sandboxes}"""
        boot = self.output("date --utc --date=@$(sed -n 's/^btime //p' /proc/stat) +%FT%T").strip()
        infos = self.output("for id in $(ctr --namespace k8s.io containers ls --quiet); do ctr --namespace k8s.io containers info $id | tr -d '\\n'; echo; done")
        made = [json.loads(line) for line in infos.splitlines()]
        names = [one["Labels"]["io.kubernetes.pod.name"] for one in made
                 if one["CreatedAt"] > boot and one["Labels"]["io.cri-containerd.kind"] == "sandbox"]
        return {pod: names.count(f"{pod}-node") for pod in PODS}

    def tls_of_etcd(self):
        """etcd reads its certificate for each connection."""
        done = self.run("python3", "-c", HANDSHAKE)
        return "accepted" if done.returncode == 0 else done.stderr.splitlines()[-1]


class Container(Node):
    """The same image under systemd-nspawn: a node as quick as this machine, whose disk does not outlive it. Also where control groups are of version 1."""
    systemd_cgroup, kubelet, give_files = "false", "cgroupDriver: cgroupfs\nfailCgroupV1: false\n", "true"

    def __init__(self, image, folder, files, release, pause):  # pylint: disable=super-init-not-called
        self.image, self.folder, self.files, self.release, self.pause = image, folder, files, release, pause
        self.process = self.leader = None
        self.kernel = lib.run("sysctl", "kernel.panic", "kernel.panic_on_oops", "vm.overcommit_memory", "kernel.keys.root_maxkeys", "kernel.keys.root_maxbytes").stdout

    def boot(self):
        disk, log = self.folder / "disk", self.folder / "nspawn.log"
        disk.mkdir()
        lib.run("mount", "-o", "loop,ro,noload", self.image / "disk.raw", disk, check=True)
        self.process = subprocess.Popen([
            "setpriv", "--pdeathsig", "KILL", "systemd-nspawn", f"--directory={disk}", "--volatile=overlay", "--machine=node", "--register=no", "--keep-unit",
            "--private-network", "--capability=all", "--bind=/dev/fuse", "--bind=/dev/kmsg", "--tmpfs=/var/lib/containerd",
            f"--bind-ro={self.files}:/mnt", "--boot"], stdin=subprocess.DEVNULL, stdout=log.open("wb"), stderr=subprocess.STDOUT, env={**os.environ, "SYSTEMD_SECCOMP": "0"})
        wait_for(self.find_leader, "its first process")
        self.wait_until("systemctl is-active multi-user.target")
        self.output("mount -o remount,rw /proc/sys; for group in /sys/fs/cgroup/*/; do mount -o remount,bind,rw $group; done; true")

    def find_leader(self):
        pids = lib.run("pgrep", "--parent", str(self.process.pid)).stdout.decode().split()
        self.leader = next((pid for pid in pids if re.search(r"^NSpid:.*\t1$", lib.shell(f"cat /proc/{pid}/status").stdout.decode(), re.M)), None)
        return self.leader

    def carry_out(self, argv, input, timeout):  # pylint: disable=redefined-builtin
        return subprocess.run(["nsenter", f"--target={self.leader}", "--all", "env", "-i", "PATH=/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/root", *argv],
                              input=input.decode(errors="surrogateescape"), capture_output=True, timeout=timeout, check=False, errors="surrogateescape")

    def cut(self):
        """The kubelet leaves control groups of this machine, and settings of its kernel."""
        if self.process is not None:
            lib.run("pkill", "-KILL", "--parent", str(self.process.pid))  # and with it all that is in the container; it would outlive systemd-nspawn
            self.process.wait(60)  # until all of that has ended
            self.process = None
        lib.run("umount", "--lazy", self.folder / "disk")
        for folder in glob.glob("/sys/fs/cgroup/*/kubepods"):
            lib.run("find", folder, "-depth", "-type", "d", "-exec", "rmdir", "{}", ";")
        lib.run("sysctl", "--quiet", "--load=-", input=self.kernel)
