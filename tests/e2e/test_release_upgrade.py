# SPDX-License-Identifier: Apache-2.0
"""lkgfs check --release: what stops the component after an upgrade of Kubernetes, changes without a word, or is deprecated."""
import json
import os

import pytest

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


@pytest.fixture(name="layers")
def fixture_layers(tmp_path):
    (tmp_path / "base.yaml").write_text(BASE)
    (tmp_path / "d").mkdir()
    (tmp_path / "d/10.conf").write_text(lib.HEADER + "maxPods: 20\nfieldOfNobody: 1\n")
    return tmp_path


def test_only_what_changes(layers):
    found, answer = classes("--config", "base.yaml", "--config-dir", "d", "--release", "1.36..1.37", cwd=layers, code=1)
    assert (answer["from"], answer["to"], answer["errors"]) == ("1.36", "1.37", 1)
    assert [row[:3] for row in found["stops"]] == [("LKG5014", "base.yaml", 3)]
    assert sorted(row[0] for row in found["changes"]) == ["LKG5070", "LKG5071", "LKG5072", "LKG5072"]
    texts = " ".join(row[3] for row in found["changes"])
    assert "memoryThrottlingFactor: no layer sets it; in 1.36 it is 0.9, in 1.37 it is unset" in texts
    assert "no layer sets MemoryQoS, which is off in 1.36 and on in 1.37" in texts and "HugepageAwareEviction on" in texts
    assert "eventRecordQPS: 0 means something else from 1.37 on; 1.37: 0 or more; 0 = no limit" in texts
    assert {"field": "memoryThrottlingFactor", "now": 0.9, "then": None} in answer["changes"]
    assert {"gate": "MemoryQoS", "now": False, "then": True} in answer["changes"]
    assert not found["deprecated"] and not found["other"], "NodeSwap was deprecated before, and nobody ever knew fieldOfNobody"


def test_what_is_set_does_not_change_silently(layers):
    (layers / "d/20.conf").write_text(lib.HEADER + "memoryThrottlingFactor: 0.9\nfeatureGates: {SidecarContainers: null, MemoryQoS: false}\n")
    found, _ = classes("--config", "base.yaml", "--config-dir", "d", "--release", "1.36..1.37", cwd=layers)
    texts = " ".join(row[3] for row in found["changes"])
    assert "memoryThrottlingFactor" not in texts and "MemoryQoS" not in texts


def test_gates_by_their_stage(layers):
    """AllAlpha and AllBeta set gates that no line names, and a gate that changes its stage leaves one of them."""
    (layers / "base.yaml").write_text(lib.HEADER + "featureGates: {AllBeta: false}\n")
    found, answer = classes("--config", "base.yaml", "--release", "1.36..1.37", cwd=layers)
    assert {"gate": "MemoryQoS", "now": False, "then": True} not in answer["changes"] and not found["stops"]
    (layers / "base.yaml").write_text(lib.HEADER + "featureGates: {AllAlpha: true, WorkloadAwarePreemption: false, AllBeta: true}\n")
    changes = classes("--config", "base.yaml", "--release", "1.36..1.37", cwd=layers)[1]["changes"]
    assert not [one for one in changes if one.get("gate") == "HPAScaleToZero"], "it was on"


def test_a_field_that_begins_to_count(layers):
    (layers / "base.yaml").write_text(lib.HEADER + "featureGates: {MemoryQoS: true}\nmemoryReservationPolicy: TieredReservation\n")
    found, _ = classes("--config", "base.yaml", "--release", "1.35..1.36", cwd=layers)
    assert "memoryReservationPolicy: without effect in 1.35, which does not have it, and counts in 1.36" in str(found["changes"])
    found, _ = classes("--config", "base.yaml", "--release", "1.36..1.35", cwd=layers)
    assert any("memoryReservationPolicy" in row[3] for row in found["changes"]) and not found["other"]


def test_the_same_twice_is_not_new_and_in_another_file_is(layers):
    for name in ("20.conf", "30.conf"):
        (layers / "d" / name).write_text(lib.HEADER + "featureGates: {AnyVolumeDataSource: true}\n")
    found, _ = classes("--config", "base.yaml", "--config-dir", "d", "--release", "1.36..1.37", cwd=layers)
    assert {row[1] for row in found["stops"]} == {"base.yaml", "d/30.conf"} or {"d/30.conf"} <= {row[1] for row in found["stops"]}


def test_what_becomes_deprecated_on_the_command_line(layers):
    words = ("--feature-gates=PodCertificateRequest=true,NodeSwap=true", "--maximum-dead-containers=3")
    found, _ = classes("--config", "base.yaml", "--release", "1.36..1.37", "--", *words, cwd=layers)
    assert [row[0] for row in found["deprecated"]] == ["LKG5073"] and "PodCertificateRequest" in found["deprecated"][0][3], "the others were before"


def test_a_value_of_a_flag_that_is_gone_is_never_shown(layers):
    for words in (("--storage-driver-password", "--hunter2"), ("--storage-driver-password=hunter2",), ("--storage-driver-password", "hunter2")):
        result = check("--config", "base.yaml", "--release", "1.36..1.37", "--", *words, cwd=layers)
        assert b"hunter2" not in result.stdout + result.stderr and b"storage-driver-password" in result.stdout


def test_a_mode_that_is_deprecated(tmp_path):
    header = "apiVersion: kubeproxy.config.k8s.io/v1alpha1\nkind: KubeProxyConfiguration\n"
    (tmp_path / "proxy.yaml").write_text(header + "mode: ipvs\n")
    found, answer = classes("--config", "proxy.yaml", "--release", "1.36..1.37", cwd=tmp_path)
    assert answer["state"] == "valid" and [row[:3] for row in found["deprecated"]] == [("LKG5006", "proxy.yaml", 3)]
    (tmp_path / "proxy.yaml").write_text(header + "mode: ipvs\nfeatureGates: {KubeProxyIPVS: false}\n")
    assert check("--config", "proxy.yaml", "--release", "1.36", cwd=tmp_path, code=1), "a gate of a later release"
    assert "needs the feature gate KubeProxyIPVS" in check("--config", "proxy.yaml", "--release", "1.37", cwd=tmp_path, code=1).stdout.decode()


def test_every_change_is_listed(layers):
    """Other notes of one kind are folded."""
    (layers / "base.yaml").write_text(lib.HEADER)
    found, answer = classes("--config", "base.yaml", "--release", "1.33..1.37", cwd=layers)
    fields = {row[3].split(":")[0] for row in found["changes"]}
    assert fields == {"failCgroupV1", "memoryThrottlingFactor", "crashLoopBackOff.maxContainerRestartPeriod",
                      "imagePullCredentialsVerificationPolicy", "memoryReservationPolicy", "featureGates"} and answer["notListed"] == 0
    text = check("--config", "base.yaml", "--release", "1.33..1.37", cwd=layers).stdout.decode()
    assert all(f"note: {field}: " in text for field in fields) and HEADINGS["other"] not in text


def test_nothing_changes(tmp_path):
    (tmp_path / "proxy.yaml").write_text("apiVersion: kubeproxy.config.k8s.io/v1alpha1\nkind: KubeProxyConfiguration\n")
    found, answer = classes("--config", "proxy.yaml", "--release", "1.34..1.35", cwd=tmp_path)
    assert answer["state"] == "valid" and not found["stops"] and not found["other"]


@pytest.mark.parametrize("words,said", [
    (["--release", "1.20..1.37"], "there are tables for"), (["--release", "1.36.."], "is not right"), (["--release", "..1.37"], "is not right"),
    (["--release", "1.36..x"], "is not right"), (["--release", "1.37..1.99"], "there are tables for")])
def test_mistakes(layers, words, said):
    result = check("--config", "base.yaml", *words, cwd=layers, code=64)
    assert said in result.stderr.decode() and not result.stdout


def test_only_check_compares(layers):
    result = lib.run(lib.LKGFS, "render", "--config", "base.yaml", "--release", "1.36..1.37", cwd=layers)
    assert result.returncode == 64 and b"only `check` compares two releases" in result.stderr


def test_standard_input_and_text(layers):
    """Read once, judged twice."""
    result = check("--config", "-", "--release", "1.36..1.37", cwd=layers, input=BASE.encode(), code=1)
    lines = result.stdout.decode().splitlines()
    assert lines[0] == HEADINGS["stops"] and lines[1].startswith("-:3:35: error: featureGates: SidecarContainers")
    assert lines[2] == HEADINGS["changes"] and any(line.startswith("-:4:17: note: eventRecordQPS") for line in lines)
    # a ConfigMap: what `kubectl get -o yaml` prints
    configmap = json.dumps({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": "b", "uid": "1", "resourceVersion": "2"},
                            "data": {"kubelet": BASE}})
    result = check("--remote", "-", "--release", "1.36..1.37", cwd=layers, input=configmap.encode(), code=1)
    assert b"SidecarContainers was dropped in 1.37" in result.stdout and b"memoryThrottlingFactor: no layer" in result.stdout and not result.stderr


def test_layers_that_are_wrong_today(layers):
    (layers / "d/10.conf").write_text(lib.HEADER + "maxPods: -1\n")
    result = check("--config", "base.yaml", "--config-dir", "d", "--release", "1.36..1.37", cwd=layers, code=1)
    assert b"not valid for 1.36, so" in result.stderr and b"maxPods" in result.stdout and b"SidecarContainers was dropped" in result.stdout


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
