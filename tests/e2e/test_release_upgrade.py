# SPDX-License-Identifier: Apache-2.0
"""lkgfs check --release: what stops the component after an upgrade of Kubernetes, changes without a word, or is deprecated."""
import json
import os

import lkgfs_testlib as lib
from test_effective import component, flags  # pylint: disable=unused-import

BASE = lib.HEADER + "featureGates: {SidecarContainers: true, NodeSwap: true}\neventRecordQPS: 0\n"
HEADINGS = {"stops": "stops the component:", "changes": "changes without a word:", "deprecated": "deprecated:", "other": "also:"}


def check(*words, code=None, **options):
    result = lib.run(lib.LKGFS, "check", *words, env={**os.environ, "LKGFS_CONFIG": "/nonexistent", **options.pop("env", {})}, **options)
    if code is not None:
        assert result.returncode == code, result.stdout.decode() + result.stderr.decode()
    return result


def classes(*words, **options):
    """{class: [(code, file, line, text)]}, and the whole answer."""
    answer = json.loads(check("-o", "json", *words, **options).stdout)
    one = answer["judged"][1] if "judged" in answer else answer
    found = {name: [] for name in HEADINGS}
    for finding in one["findings"]:
        found[finding["class"]].append((finding["code"], finding["file"] if "file" in finding else "", finding.get("line", 0), finding["text"]))
    return found, one


def test_a_configmap_in_the_cluster(api, tmp_path):
    """What `kubectl lkgfs check` does."""
    api.rbac.allow("operators", ["get"], "configmaps", "kube-system")
    api.tokens["mine"] = ("me", ["operators"])
    api.store.configmap("kube-system", "node-config", {"kubelet": BASE, "other": lib.HEADER})
    config = api.kubeconfig(tmp_path / "config", token="mine")
    found, answer = classes("--configmap", "kube-system/node-config", "--kubeconfig", config, "--release", "1.36..1.37", code=1)
    assert answer["to"] == "1.37" and [row[0] for row in found["stops"]] == ["LKG5014"] and "kube-system/node-config" in found["stops"][0][1]
    result = check("--configmap", "kube-system/node-config/other", "--release", "1.37", env={"KUBECONFIG": config}, code=0)
    assert b"SidecarContainers" not in result.stdout
    for words, said, code in ((["--configmap", "kube-system/none"], b"not found", 2), (["--configmap", "x"], b"want NAMESPACE/NAME", 64),
                              (["--configmap", "a/b", "--remote", "-"], b"not both", 64)):
        result = check(*words, "--kubeconfig", config, code=code)
        assert said in result.stderr and not result.stdout


# ---- this node ----

def on_node(mount, *words, **options):
    return classes("--node-config", mount.config_path, "--mountpoint", mount.mountpoint, *words, **options)


def wait_known(mount, release="1.36"):
    """Both the process and the version of its program."""
    mount.wait_for(lambda: f"release {release}," in (said := mount.status("effective.yaml")) and "of the running process" in said, "facts")


def test_this_node(component):  # pylint: disable=redefined-outer-name
    """Document, gates and the command line of the process that runs."""
    kubelet = component(base=lib.HEADER + "failCgroupV1: false\neventRecordQPS: 0\n")
    mount = kubelet.mount
    kubelet.start(*flags(mount, "--containerd=/run/x.sock", "--feature-gates=SidecarContainers=true,NodeSwap=true", "--maximum-dead-containers=3"))
    wait_known(mount)
    found, answer = on_node(mount, "--release", "1.37", code=1)
    assert (answer["from"], answer["to"], answer["component"], answer["state"]) == ("1.36", "1.37", "kubelet", "invalid")
    stops = " ".join(row[3] for row in found["stops"])
    assert 'no flag "containerd" in 1.37 any more' in stops and "SidecarContainers cannot be set to true in 1.37" in stops.replace('"', "")
    assert "memoryThrottlingFactor" in " ".join(row[3] for row in found["changes"])
    assert "--maximum-dead-containers" in " ".join(row[3] for row in found["deprecated"])
    assert mount.condition()[0] == "True", "nothing of it concerns the node of today"
    result = check("-o", "json", "--node-config", mount.config_path, "--mountpoint", mount.mountpoint, "--release", "1.36")
    assert b'"from"' not in result.stdout and b"containerd" not in result.stdout, "the release that runs: as without --release"
    found, _ = on_node(mount, "--release", "1.36..1.37", code=1)
    assert not found["deprecated"] and len(found["stops"]) == 2


def test_without_a_release_it_is_the_one_that_runs(component):  # pylint: disable=redefined-outer-name
    """And the command line is that of the process, whose own mistakes are nobody's fault."""
    kubelet = component("v1.34.2", base=lib.HEADER + "failCgroupV1: false\nmemoryReservationPolicy: None\n")
    mount = kubelet.mount
    kubelet.start(*flags(mount, "--max-pods=70", "--flag-of-a-wrapper=1"))
    wait_known(mount, "1.34")
    said = check("--node-config", mount.config_path, "--mountpoint", mount.mountpoint).stdout.decode()
    assert "memoryReservationPolicy comes with 1.36 and this is 1.34" in said or "in 1.34" in said
    assert "warning: no flag \"flag-of-a-wrapper\" in 1.34 (left out" in said
    lib.write_file(mount.behind("kubelet.conf"), lib.HEADER + "failCgroupV1: false\n")
    mount.wait_for(lambda: "memoryReservationPolicy" not in mount.document(), "a base without a mistake")
    check("--node-config", mount.config_path, "--mountpoint", mount.mountpoint, code=0)  # no document is to blame


def test_a_node_that_is_ready(component):  # pylint: disable=redefined-outer-name
    kubelet = component(base=lib.HEADER + "failCgroupV1: false\nmemoryThrottlingFactor: 0.9\n")
    mount = kubelet.mount
    kubelet.start(*flags(mount, "--node-ip=10.0.0.1"))
    wait_known(mount)
    result = check("--node-config", mount.config_path, "--mountpoint", mount.mountpoint, "--release", "1.37", code=0)
    assert "kubelet, 1.36 to 1.37: valid" in result.stdout.decode()


def test_a_node_without_facts(component):  # pylint: disable=redefined-outer-name
    mount = component(version=None).mount
    result = check("--node-config", mount.config_path, "--mountpoint", mount.mountpoint, "--release", "1.37")
    assert b"say --release A..B" in result.stderr
