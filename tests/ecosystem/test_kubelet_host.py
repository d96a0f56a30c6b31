# SPDX-License-Identifier: Apache-2.0
"""What this host does not bear: the kubelet ends where `lkgfs check --host this` finds an error, and starts where it finds none.

The kubelet runs alone, with a containerd of its own (Debian's package), and ends as soon as it has started. It may be of any release that we
have tables of: `LKGFS_ECOSYSTEM=DIR` names a folder with bin/kubelet.
"""
import os
import pathlib
import re
import shutil
import signal
import subprocess
import time

import pytest

import lkgfs_testlib as lib

pytestmark = pytest.mark.limit(300)

# {field: value} of a drop-in; {memory}: of this host in MiB, {cpus}: their number.
CASES = {
    "nothing": "maxPods: 50\n",
    "memory of the system": "systemReserved: {{memory: 900Gi}}\n",
    "memory of both": "systemReserved: {{memory: {half}Mi}}\nkubeReserved: {{memory: {most}Mi}}\n",
    "memory that fits": "systemReserved: {{memory: 256Mi}}\nkubeReserved: {{memory: 256Mi}}\n",
    "memory of the eviction": "evictionHard: {{memory.available: 900Gi}}\n",
    "a share of memory for the eviction": "evictionHard: {{memory.available: 10%}}\n",
    "CPUs": "systemReserved: {{cpu: '{more}'}}\n",
    "CPUs that fit": "systemReserved: {{cpu: 200m}}\n",
    "CPUs that are not there": "reservedSystemCPUs: 0-{more}\n",
    "a CPU that is there": "reservedSystemCPUs: '0'\n",
    "ephemeral storage": "kubeReserved: {{ephemeral-storage: 900000Gi}}\n",
    "process ids": "systemReserved: {{pid: '99999999'}}\n",
    "process ids that fit": "systemReserved: {{pid: '1000'}}\n",
    "the static policy without CPUs": "cpuManagerPolicy: static\n",
    "the static policy": "cpuManagerPolicy: static\nkubeReserved: {{cpu: 500m}}\n",
    "NUMA memory that is not the sum": "memoryManagerPolicy: Static\nreservedMemory: [{{numaNode: 0, limits: {{memory: 5Gi}}}}]\nkubeReserved: {{memory: 1Gi}}\n",
    "NUMA memory": "memoryManagerPolicy: Static\nreservedMemory: [{{numaNode: 0, limits: {{memory: 1124Mi}}}}]\nkubeReserved: {{memory: 1Gi}}\n"
                   "evictionHard: {{memory.available: 100Mi}}\n",
    "a NUMA node that is not there": "memoryManagerPolicy: Static\nreservedMemory: [{{numaNode: 7, limits: {{memory: 1124Mi}}}}]\nkubeReserved: {{memory: 1Gi}}\n"
                                     "evictionHard: {{memory.available: 100Mi}}\n",
}
BASE = lib.HEADER + """authentication: {webhook: {enabled: false}, anonymous: {enabled: false}}
authorization: {mode: AlwaysAllow}
cgroupDriver: cgroupfs
failSwapOn: false
failCgroupV1: false
port: 20250
healthzPort: 0
"""
STARTED = b"Starting Kubelet Plugin Manager"  # its container manager, which looks at the host, has started


@pytest.fixture(name="endpoint", scope="module")
def fixture_endpoint(tmp_path_factory):
    """containerd with a configuration, state and socket of its own."""
    folder = tmp_path_factory.mktemp("containerd")
    fresh = not list(pathlib.Path("/sys/fs/cgroup").glob("*/kubepods*"))
    if not shutil.which("containerd"):
        pytest.fail("apt-get install containerd")
    (folder / "config.toml").write_text(f'version = 2\nroot = "{folder}/root"\nstate = "{folder}/state"\n[grpc]\n  address = "{folder}/socket"\n')
    with open(folder / "log", "wb") as log, subprocess.Popen(["containerd", "-c", folder / "config.toml"], stdout=log, stderr=log) as process:
        try:
            end = lib.deadline()
            while b"containerd successfully booted" not in (folder / "log").read_bytes():
                assert time.monotonic() < end and process.poll() is None, (folder / "log").read_text()
                time.sleep(0.1)
            yield f"unix://{folder}/socket"
        finally:
            process.terminate()
            if fresh:  # the kubelet made them
                lib.shell("find /sys/fs/cgroup -depth -path '*/kubepods*' -type d -exec rmdir {} +")


def starts(program, config, folder):
    """(Does it start?, its last words)"""
    argv = ["unshare", "--mount", "--propagation", "private", "sh", "-c", 'mount -t tmpfs none /var/lib && exec "$@"', "sh", program,
            f"--config={config}", f"--root-dir={folder}/root", f"--cert-dir={folder}/pki"]  # its device plugins are always below /var/lib/kubelet
    with subprocess.Popen(argv, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, start_new_session=True) as process:
        lines = []
        for line in process.stderr:
            lines.append(line.decode())
            if STARTED in line:
                os.killpg(process.pid, signal.SIGKILL)
                return True, ""
        return False, "".join(lines[-3:])


@pytest.mark.parametrize("name", CASES)
def test_the_kubelet_ends_where_we_find_an_error(program, endpoint, tmp_path, name):
    cpus = os.cpu_count()
    memory = int(pathlib.Path("/proc/meminfo").read_text().split()[1]) // 1024
    body = CASES[name].format(half=memory // 2, most=memory * 3 // 4, more=cpus + 1)
    config = tmp_path / "kubelet.yaml"
    lines = BASE + f"containerRuntimeEndpoint: {endpoint}\n" + body
    config.write_text(lines)
    release = re.search(r"v(1\.\d+)", lib.run(program("kubelet"), "--version", check=True).stdout.decode())[1]
    found = lib.run(lib.LKGFS, "check", "--host", "this", "--config", config, "--release", release, timeout=60)
    said = found.stdout.decode() + found.stderr.decode()
    started, words = starts(program("kubelet"), config, tmp_path)
    assert started == (": error: " not in said), f"{words}\n{said}"
