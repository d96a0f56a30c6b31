# SPDX-License-Identifier: Apache-2.0
"""The kubelet reads from the view what it would read from the layers itself, and what lkgfs says that it reads.

At --v=5 the kubelet logs its whole configuration before it does anything with it; from 1.37 on always, as the v1beta1 document. Here it ends a moment later, because the client CA does
not exist; what it then says proves that it has accepted the configuration.
"""
import json
import re

import pytest
import yaml

import lkgfs_testlib as lib

pytestmark = pytest.mark.limit(300)

# Alone on a machine; no listener is open before it ends.
ALONE = """authentication: {webhook: {enabled: false}, x509: {clientCAFile: /nonexistent/ca.crt}}
authorization: {mode: AlwaysAllow}
cgroupDriver: cgroupfs
staticPodPath: ''
"""
ENDS = "open /nonexistent/ca.crt: no such file or directory"
# What --v=5 sets, the certificate that it makes for itself, and a field that has another name in its log.
OWN = {"logging/verbosity", "tlscertfile", "tlsprivatekeyfile"}
RENAMED = {"resolverconfig": "resolvconf"}
LAYERS = {
    "defaults": {},
    "eviction": {"50.conf": "evictionHard: {memory.available: 5%}\n", "60.conf": "evictionSoft: {nodefs.available: 20%}\n"
                                                                              "evictionSoftGracePeriod: {nodefs.available: 1m}\n"},
    "eviction taken away": {"50.conf": "evictionHard: null\n"},
    "eviction with the defaults": {"50.conf": "evictionHard: {memory.available: 5%}\nmergeDefaultEvictionSettings: true\n"},
    "lists replace": {"50.conf": "clusterDNS: [10.0.0.10, 10.0.0.11]\n", "60.conf": "clusterDNS: [10.0.0.12]\nallowedUnsafeSysctls: [net.core.somaxconn]\n"},
    "zero values": {"50.conf": "maxPods: 0\nreadOnlyPort: 0\nregistryPullQPS: 0\nnodeStatusMaxImages: -1\nmakeIPTablesUtilChains: false\n"},
    "durations": {"50.conf": "syncFrequency: 90s\nnodeStatusUpdateFrequency: 1m30s\nshutdownGracePeriod: 2m\nshutdownGracePeriodCriticalPods: 30s\n"},
    "maps and objects": {"50.conf": "kubeReserved: {cpu: 200m, memory: 1Gi}\nmemorySwap: {swapBehavior: NoSwap}\n",
                         "60.conf": "kubeReserved: {memory: 2Gi, pid: '1000'}\nsystemReserved: {cpu: null}\n"},
    "taints and reserved memory": {
        "50.conf": "registerWithTaints: [{key: a, value: b, effect: NoSchedule}]\nmemoryManagerPolicy: Static\nkubeReserved: {memory: 1Gi}\n"
                   "reservedMemory: [{numaNode: 0, limits: {memory: 1124Mi}}]\nevictionHard: {memory.available: 100Mi}\n"},
    "feature gates": {"50.conf": "featureGates: {AllBeta: true}\n", "60.conf": "featureGates: {NodeSwap: true}\n"},
    "crash loops": {"50.conf": "crashLoopBackOff: {maxContainerRestartPeriod: 20s}\nfeatureGates: {KubeletCrashLoopBackOffMax: true}\n"},
    "YAML": {"50.conf": "maxPods: 0x40\npodCIDR: \"10.1.0.0/24\"\nclusterDomain: !!str cluster.example\nseccompDefault: yes\n"},
}
# docs/decisions/009-where-we-differ.md: no effect in a drop-in, so the same thresholds, and the word is not served.
DECIDED = {"eviction with the defaults": {"mergedefaultevictionsettings": (None, True)}}


@pytest.fixture(name="kubelet")
def kubelet_that_ends(program, tmp_path):
    """Starts the kubelet with these flags. Return (its configuration, None if it read none; its last words)."""
    def start(*flags):
        result = lib.run(program("kubelet"), *flags, f"--root-dir={tmp_path}/root", f"--cert-dir={tmp_path}/pki", "--v=5", timeout=60)
        lines = [json.loads(line) for line in result.stderr.decode().splitlines() if line.startswith("{")]
        read = [line["configuration"] for line in lines if line["msg"] == "KubeletConfiguration"]
        read += [yaml.safe_load(line["config"]) for line in lines if line["msg"] == "Effective KubeletConfiguration"]
        assert result.returncode != 0 and len(read) <= 1
        return read[0] if read else None, result.stderr.decode()[-2000:]
    return start


def leaves(value, path=""):
    """{path in lower case: value}; what is empty is left out, as an absent field is empty, too."""
    if isinstance(value, dict):
        found = {}
        for key, below in value.items():
            found.update(leaves(below, f"{path}/{key.lower()}" if path else key.lower()))
        return found
    return {} if value in (None, "", [], 0, False, "0", "0s") else {path: plain(value)}


def plain(value):
    """Items of lists by the same rule; a quantity or number in its one form."""
    if isinstance(value, list):
        return [leaves(item) if isinstance(item, dict) else plain(item) for item in value]
    if isinstance(value, str) and (found := re.fullmatch(r"(\d+h)?(\d+m)?(\d+(?:\.\d+)?s)?", value)) and value:
        hours, minutes, seconds = (float(word[:-1]) if word else 0 for word in found.groups())
        return hours * 3600 + minutes * 60 + seconds
    return value


def differences(one, other):
    one, other = ({RENAMED.get(path, path): found for path, found in leaves(value).items()} for value in (one, other))
    return {path: (one.get(path), other.get(path)) for path in {*one, *other} - OWN - {"kind", "apiversion"} if one.get(path) != other.get(path)}


@pytest.mark.parametrize("name", LAYERS)
def test_the_kubelet_reads_what_it_would_read_from_the_layers(mounts, kubelet, program, name):
    dropins = {"10-alone.conf": lib.HEADER + ALONE, "20-json.conf": lib.HEADER + "logging: {format: json}\n",
               **{file: lib.HEADER + body for file, body in LAYERS[name].items()}}
    mount = mounts(over=False, dropins=dropins, instance=None)
    assert mount.condition()[0] == "True", mount.status("findings")
    by_itself, words = kubelet(f"--config={mount.source}/kubelet.conf", f"--config-dir={mount.source}/kubelet.conf.d")
    assert by_itself and ENDS in words, words
    served, words = kubelet(f"--config={mount.path('kubelet.conf')}")
    assert served and ENDS in words, words
    assert differences(served, by_itself) == DECIDED.get(name, {})
    release = re.search(r"v(1\.\d+)", lib.run(program("kubelet"), "--version", check=True).stdout.decode())[1]
    told = yaml.safe_load(lib.run(lib.LKGFS, "render", "--effective", "--release", release, "--config", mount.path("kubelet.conf"), check=True).stdout)
    assert differences(served, told) == {}


def test_the_kubelet_starts_while_a_drop_in_is_refused(mounts, kubelet):
    good = {"10-alone.conf": lib.HEADER + ALONE, "20-json.conf": lib.HEADER + "logging: {format: json}\nmaxPods: 61\n"}
    mount = mounts(over=False, dropins=good, instance=None)
    mount.drop("50-wrong.conf", "maxPods: -1\n")
    assert mount.condition()[0] == "False"
    read, words = kubelet(f"--config={mount.source}/kubelet.conf", f"--config-dir={mount.source}/kubelet.conf.d")
    assert read is None or ENDS not in words, "the kubelet takes what lkgfs refuses"
    read, words = kubelet(f"--config={mount.path('kubelet.conf')}")
    assert leaves(read)["maxpods"] == 61 and ENDS in words
