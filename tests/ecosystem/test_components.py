# SPDX-License-Identifier: Apache-2.0
"""kubelet, kube-proxy and kubeadm as they are released, on a real mount."""
import contextlib
import json
import os
import pathlib
import re
import select
import shutil
import signal
import socket
import subprocess
import urllib.request

import pytest
import yaml

import lkgfs_testlib as lib

pytestmark = pytest.mark.limit(300)


@contextlib.contextmanager
def output_of(*argv, **options):
    """A process whose lines (standard error, too) can be waited for; it is ended and waited for in any case."""
    process = subprocess.Popen([os.fspath(word) for word in argv], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True,
                               **options)
    seen = bytearray()

    def wait_for(pattern, timeout=60):
        end = lib.deadline(timeout)
        while not (found := re.search(pattern.encode(), bytes(seen))):
            left = end - lib.time.monotonic()
            if left <= 0 or not select.select([process.stdout], [], [], left)[0]:
                raise lib.Failure(f"no {pattern!r} in\n{seen.decode(errors='replace')[-4000:]}")
            piece = os.read(process.stdout.fileno(), 65536)
            if not piece:
                raise lib.Failure(f"ended without {pattern!r}:\n{seen.decode(errors='replace')[-4000:]}")
            seen.extend(piece)
        return found
    try:
        yield process, wait_for
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        process.stdout.close()


# A kubelet alone on a machine without certificates.
ALONE = """authentication: {anonymous: {enabled: true}, webhook: {enabled: false}, x509: {clientCAFile: ''}}
authorization: {mode: AlwaysAllow}
logging: {format: text}
staticPodPath: ''
healthzPort: 0
port: 0
failCgroupV1: false
"""


def test_the_kubelet_accepts_what_is_served(mount, program, tmp_path):
    """It logs the feature gates that it has read, validates, and ends later, where there is no container runtime."""
    mount.write("kubelet.conf.d/60-here.conf", lib.HEADER + ALONE + "featureGates: {CPUManagerPolicyAlphaOptions: true}\n")
    with output_of(program("kubelet"), f"--config={mount.mountpoint}/kubelet.conf", f"--root-dir={tmp_path}", f"--cert-dir={tmp_path}/pki", "--v=2") as (_, wait_for):
        wait_for(r"CPUManagerPolicyAlphaOptions\W+true")
        wait_for(r"container runtime|containerd|CRI")


def test_the_kubelet_refuses_what_lkgfs_refuses(mount, program, tmp_path):
    """The served document with the one line that lkgfs did not take."""
    mount.write("kubelet.conf.d/60-here.conf", lib.HEADER + ALONE)
    wrong = tmp_path / "wrong.conf"
    wrong.write_bytes(mount.read("kubelet.conf").replace(b"maxPods: ", b"maxPods: -"))
    assert b"-" in wrong.read_bytes()
    result = lib.run(program("kubelet"), f"--config={wrong}", f"--root-dir={tmp_path}", timeout=60)
    assert result.returncode != 0 and b"maxPods" in result.stderr + result.stdout
    assert lib.run(lib.LKGFS, "check", wrong).returncode == 1


def at_etc_kubernetes(mount, tmp_path, *words, **options):
    """Runs a program in a mount namespace whose /etc/kubernetes is the view."""
    tmp_path.joinpath("etc").mkdir(exist_ok=True)
    script = (f"mount -t tmpfs none {tmp_path}/etc && mkdir {tmp_path}/etc/upper {tmp_path}/etc/work && "
              f"mount -t overlay -o lowerdir=/etc,upperdir={tmp_path}/etc/upper,workdir={tmp_path}/etc/work overlay /etc && "
              f"mkdir -p /etc/kubernetes && mount --bind {mount.mountpoint} /etc/kubernetes && exec \"$@\"")
    return lib.run("unshare", "--mount", "--propagation", "private", "sh", "-c", script, "sh", *words, timeout=120, **options)


def test_kubeadm_writes_its_files_through_the_mount(mounts, program, tmp_path):
    """The phases that write files: certificates, static pods; and the renewal of a certificate. In a mount namespace whose /etc/kubernetes is
    the view, so that kubeadm uses its own paths; without `foreignWrites` a process there could only read."""
    mount = mounts(config={"foreignWrites": "passthrough"})
    for path in pathlib.Path(mount.mountpoint, "pki").rglob("*"):
        if path.is_file():
            path.unlink()
    conf = tmp_path / "kubeadm.yaml"
    conf.write_text(yaml.safe_dump_all([
        {"apiVersion": "kubeadm.k8s.io/v1beta4", "kind": "InitConfiguration", "localAPIEndpoint": {"advertiseAddress": "10.0.0.1", "bindPort": 6443},
         "nodeRegistration": {"name": "n1", "criSocket": "unix:///run/containerd/containerd.sock"}},
        {"apiVersion": "kubeadm.k8s.io/v1beta4", "kind": "ClusterConfiguration", "kubernetesVersion": "v1.36.3", "controlPlaneEndpoint": "10.0.0.1:6443"}]))

    def kubeadm(*words):
        result = at_etc_kubernetes(mount, tmp_path, program("kubeadm"), *words, "--config", conf)
        assert result.returncode == 0, result.stderr.decode()
    kubeadm("init", "phase", "certs", "all")
    kubeadm("init", "phase", "control-plane", "all")
    for name in ("pki/ca.crt", "pki/apiserver.crt", "pki/apiserver.key", "pki/sa.key", "pki/etcd/ca.crt", "manifests/kube-apiserver.yaml"):
        assert os.path.getsize(f"{mount.mountpoint}/{name}") > 0
    before = lib.read_file(f"{mount.mountpoint}/pki/apiserver.crt")
    kubeadm("certs", "renew", "apiserver")
    assert lib.read_file(f"{mount.mountpoint}/pki/apiserver.crt") != before
    lib.run("openssl", "verify", "-CAfile", f"{mount.mountpoint}/pki/ca.crt", f"{mount.mountpoint}/pki/apiserver.crt", check=True)


def test_viper_sees_each_change(mount, program):
    with output_of(program("viper-watch"), f"{mount.mountpoint}/kubelet.conf", "maxPods", stdin=subprocess.PIPE) as (process, wait_for):
        wait_for(r"\A\d+\n")
        for n in (61, 62, 63):
            mount.write("kubelet.conf.d/90-viper.conf", lib.HEADER + f"maxPods: {n}\n")
            wait_for(rf"\n{n}\n")
        process.stdin.close()


def test_promtool_takes_rules_and_metrics(mount, program):
    for name in sorted((lib.REPOSITORY / "contrib/prometheus").glob("*.rules.yaml")):
        result = lib.run(program("promtool"), "check", "rules", name)
        assert result.returncode == 0, result.stderr
    result = lib.run(program("promtool"), "check", "metrics", input=mount.read("status/kubelet/metrics.prom"))
    assert (result.returncode, result.stderr) == (0, b""), result.stderr


def test_restic_brings_back_what_was_there(mount, program, tmp_path):
    environment = {**os.environ, "RESTIC_REPOSITORY": str(tmp_path / "repository"), "RESTIC_PASSWORD": "x", "RESTIC_CACHE_DIR": str(tmp_path / "cache")}
    restic = program("restic")
    lib.run(restic, "init", env=environment, check=True, timeout=60)
    before = mount.read("kubelet.conf")
    lib.run(restic, "backup", mount.mountpoint, env=environment, check=True, timeout=60)
    mount.write("kubelet.conf.d/90-x.conf", lib.HEADER + "maxPods: 7\n")
    lib.run(restic, "backup", mount.mountpoint, env=environment, check=True, timeout=60)
    lib.run(restic, "check", "--read-data", env=environment, check=True, timeout=60)
    snapshots = [item["short_id"] for item in json.loads(lib.run(restic, "snapshots", "--json", env=environment, check=True).stdout)]
    lib.run(restic, "restore", snapshots[0], "--target", tmp_path / "back", env=environment, check=True, timeout=60)
    back = pathlib.Path(f"{tmp_path}/back{mount.mountpoint}")
    assert (back / "kubelet.conf").read_bytes() == before and not (back / "kubelet.conf.d/90-x.conf").exists()


def test_node_problem_detector_reports_a_refused_configuration(mount, program, tmp_path):
    monitor = json.loads((lib.BUILD / "contrib/lkgfs-monitor.json").read_text(encoding="utf-8"))
    monitor["pluginConfig"]["invoke_interval"] = "1s"
    for rule in monitor["rules"]:
        rule["path"] = str(lib.LKGFS)
        rule["args"] += ["--mountpoint", mount.mountpoint]
        rule.pop("invoke_interval", None)
    (tmp_path / "monitor.json").write_text(json.dumps(monitor))
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with output_of(program("node-problem-detector"), f"--config.custom-plugin-monitor={tmp_path}/monitor.json", "--enable-k8s-exporter=false", "--logtostderr",
                   "--prometheus-address=127.0.0.1", f"--prometheus-port={port}", "--port=0", "--hostname-override=n1"):
        def problem():
            try:
                with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=5) as answer:
                    text = answer.read().decode()
            except OSError:
                return None
            found = re.search(r'^problem_gauge\{reason="KubeletConfigRefused",type="KubeletConfigProblem"\} (\d)', text, re.M)
            return found and int(found[1])

        def wait(value):
            end = lib.deadline(60)
            while (now := problem()) != value:
                assert lib.time.monotonic() < end, f"{now}, want {value}"
                lib.time.sleep(0.2)
        wait(0)
        mount.write("kubelet.conf.d/90-x.conf", lib.HEADER + "maxPods: many\n")
        wait(1)
        mount.write("kubelet.conf.d/90-x.conf", lib.HEADER + "maxPods: 9\n")
        wait(0)


def test_kube_bench_judges_what_is_served(mounts, program, tmp_path):
    """It looks for a running kubelet, and reads /etc/kubernetes/kubelet-config.yaml."""
    mount = mounts(components=[{"name": "kubelet", "file": "kubelet-config.yaml", "base": "kubelet.conf"}])
    stand_in = tmp_path / "kubelet"
    shutil.copy(os.path.realpath("/usr/bin/python3"), stand_in)
    module = lib.run("go", "list", "-m", "-f", "{{.Dir}}", "github.com/aquasecurity/kube-bench", check=True,
                     cwd=program("kube-bench").parents[1] / "modules/kube-bench", env={**os.environ, "GOFLAGS": "-mod=mod"}).stdout.decode().strip()

    def passes():
        result = at_etc_kubernetes(mount, tmp_path, program("kube-bench"), "run", "--targets", "node", "--benchmark", "cis-1.11", "--check", "4.2.1", "--json",
                                   "--config-dir", f"{module}/cfg", "--config", f"{module}/cfg/config.yaml", cwd=module)
        return json.loads(result.stdout)["Totals"]["total_pass"] == 1
    process = subprocess.Popen([stand_in, "-c", "import sys; sys.stdin.read()", "--config=/etc/kubernetes/kubelet-config.yaml"], stdin=subprocess.PIPE)
    try:
        mount.write("kubelet.conf.d/90-x.conf", lib.HEADER + "authentication: {anonymous: {enabled: false}}\n")
        assert passes()
        mount.write("kubelet.conf.d/90-x.conf", lib.HEADER + "authentication: {anonymous: {enabled: true}}\n")
        assert not passes()
    finally:
        process.stdin.close()
        process.wait()
