# SPDX-License-Identifier: Apache-2.0
"""Slots of a rollout, against a real kube-apiserver with NodeRestriction: nodes with their own credentials, and nobody watching."""
import json

import pytest

import lkgfs_testlib as lib
from lkgfs_apinode import source_id

ROLE = lib.REPOSITORY / "contrib/rbac/rollout.yaml"
LIMITS = {"lkgfs.io/rollout-max-in-trial": "2", "lkgfs.io/rollout-max-failures": "1"}


class Slots:
    """Nodes that follow one ConfigMap, and the namespace of its slots."""

    def __init__(self, fleet):
        self.fleet, self.namespace = fleet, f"rollout-{fleet.number}"
        fleet.allow("get", "watch")

    def kubectl(self, *words, **options):
        done = lib.run("kubectl", "--kubeconfig", self.fleet.real.directory / "admin.conf", *words, **options)
        assert done.returncode == 0, done.stderr
        return done.stdout.decode()

    def grant(self):
        self.kubectl("create", "namespace", self.namespace)
        self.kubectl("apply", "-f", "-", input=ROLE.read_text().replace("namespace: lkgfs-rollout", f"namespace: {self.namespace}").encode())

    def node(self, **remote):
        return self.fleet.node(trial={"duration": "2s", "crashLoopThreshold": 1},
                               remote={"rolloutNamespace": self.namespace, "restartJitter": "0s", **remote},
                               component={"trial": {"health": {"nodeReady": False, "stableFor": "0s"}}})

    def all(self):
        """Slot objects: data by index."""
        items = json.loads(self.kubectl("get", "configmaps", "-n", self.namespace, "-l", "lkgfs.io/rollout", "-o", "json"))["items"]
        return {int(item["data"]["slot"]): item["data"] for item in items}

    def put(self, body, **annotations):
        return self.fleet.put(body, {**LIMITS, **annotations})


@pytest.fixture
def slots(fleet):
    one = Slots(fleet)
    one.grant()
    return one


def rollout(node):
    return dict(line.split("=", 1) for line in node.status("rollout").splitlines())


def test_a_good_one_reaches_everybody(slots):
    """One node first, then two; each gives its slot back."""
    nodes = [slots.node() for _ in range(3)]
    obj = slots.put("maxPods: 42\n")
    waiting = list(nodes)
    while waiting:
        slots.fleet.wait(lambda: any(source_id(obj) in node.status("active") for node in waiting), "somebody has a slot")
        for node in [node for node in waiting if source_id(obj) in node.status("active")]:
            assert rollout(node)["state"] in ("in trial", "none")
            node.live()
            node.wait("last-known-good", source_id(obj))
            waiting.remove(node)
    slots.fleet.wait(lambda: sum(int(slot["successes"]) for slot in slots.all().values()) == 3, "three successes")
    assert {slot["state"] for slot in slots.all().values()} == {"free"} and len(slots.all()) <= 2


def test_a_bad_one_breaks_one_node_and_halts_itself(slots):
    nodes = [slots.node() for _ in range(3)]
    obj = slots.put("maxPods: 13\n")
    slots.fleet.wait(lambda: any(source_id(obj) in node.status("active") for node in nodes), "one node goes first")
    first, = [node for node in nodes if source_id(obj) in node.status("active")]
    others = [node for node in nodes if node is not first]
    for node in others:
        node.wait("condition", "True waiting for a rollout slot (1 of 2 in trial, 0 done, 0 failed)")
    for _ in range(3):
        first.crash()
    first.wait("condition", "False current failed trial period due to crash loop (UID: ")
    for node in others:
        node.wait("condition", f"True rollout halted: 1 failed, node {first.name}: current failed trial period due to crash loop")
        assert source_id(obj) not in node.status("active") and rollout(node)["state"] == "halted"
        assert 'lkgfs_rollout_halted{component="kubelet"} 1' in node.status("metrics.prom")
    told = lib.run(lib.LKGFS, "rollout", "--mountpoint", others[0].mount.mountpoint)
    assert told.returncode == 1 and "\nfailed     1, halts with 1\n" in told.stdout.decode(), told
    assert f"node {first.name}: current failed trial period" in told.stdout.decode()
    slot, = slots.all().values()
    assert (slot["state"], slot["node"], slot["slot"]) == ("failed", first.name, "0")
    slots.fleet.wait(lambda: "RolloutHalted" in {event["reason"] for event in slots.fleet.real.events(first.name)}, "an Event, once")
    # A new version begins anew.
    mended = slots.put("maxPods: 14\n")
    slots.fleet.wait(lambda: any(source_id(mended) in node.status("active") for node in nodes), "one node goes first again")


def test_an_annotation_forgets_nothing(slots):
    """Another resourceVersion of the same content is the same rollout."""
    nodes = [slots.node() for _ in range(2)]
    obj = slots.put("maxPods: 13\n")
    slots.fleet.wait(lambda: any(source_id(obj) in node.status("active") for node in nodes), "one node goes first")
    first, = [node for node in nodes if source_id(obj) in node.status("active")]
    other, = [node for node in nodes if node is not first]
    for _ in range(3):
        first.crash()
    other.wait("condition", "True rollout halted: 1 failed")
    again = slots.put("maxPods: 13\n", note="x")
    other.wait("assigned", source_id(again))
    other.wait("condition", "True rollout halted: 1 failed")
    assert len(slots.all()) == 1


def test_a_node_that_dies_finds_its_slot_again(slots):
    node = slots.node()
    obj = slots.put("maxPods: 42\n")
    node.follows(obj)
    node.mount.kill_child("lkgfs-engine")
    node.wait("rollout", "state=in trial")
    node.live()
    node.wait("last-known-good", source_id(obj))
    slots.fleet.wait(lambda: [slot["successes"] for slot in slots.all().values()] == ["1"], "given back once")


def test_a_held_node_takes_no_slot(slots):
    """It would try nothing, and the others would wait for it."""
    held, other = slots.node(), slots.node()
    held.mount.command("hold", "on", component="kubelet")
    obj = slots.put("maxPods: 42\n")
    other.follows(obj)
    held.wait("assigned", source_id(obj))
    assert slots.all()[0]["node"] == other.name
    other.live()
    other.wait("last-known-good", source_id(obj))
    assert source_id(obj) not in held.status("active")
    held.mount.command("hold", "off", component="kubelet")
    held.follows(obj)


def test_without_the_role_a_node_waits_and_says_which(fleet):
    """rolloutSlots: require is the default; with prefer it goes ahead."""
    slots = Slots(fleet)
    waits, goes = slots.node(), slots.node(rolloutSlots="prefer")
    obj = slots.put("maxPods: 42\n")
    goes.follows(obj)
    waits.wait("condition", f"waiting for a rollout slot: list configmaps {slots.namespace}")
    for word in ("cannot list", f"system:node:{waits.name}", slots.namespace):
        assert word in rollout(waits)["waiting"], rollout(waits)
    waits.wait("rollout", "state=refused")
    slots.grant()
    waits.mount.command("sync", "now")
    waits.follows(obj)


def test_what_is_no_slot_is_ignored(slots):
    """Objects that a hostile node may have made: none makes a node switch, none lets it fail."""
    obj = slots.put("maxPods: 41\n")
    uid = obj["metadata"]["uid"]
    for name, data in (("a", {}), ("0123456789abcdef-0", {"version": "1", "state": "failed", "slot": "0", "uid": uid, "key": "kubelet",
                                                          "sha256": "0" * 64, "node": "evil", "successes": "9"}),
                       ("0123456789abcdef-1", {"version": "1", "state": "held", "slot": "99999999999", "uid": "../x"})):
        slots.fleet.real.request("POST", f"/api/v1/namespaces/{slots.namespace}/configmaps", {
            "metadata": {"name": name, "labels": {"lkgfs.io/configmap-uid": uid}}, "data": data})
    node = slots.node()
    node.follows(obj)
    assert "is no slot of a rollout" in node.mount.log()


@pytest.mark.parametrize("annotations,words", [
    ({"lkgfs.io/rollout-max-in-trial": "0"}, "annotation lkgfs.io/rollout-max-in-trial is \"0\"; want a whole number from 1 to 1000"),
    ({"lkgfs.io/rollout-max-in-trial": "many"}, "want a whole number from 1 to 1000"),
    ({"lkgfs.io/rollout-max-failures": "-1"}, "annotation lkgfs.io/rollout-max-failures is \"-1\""),
    ({"lkgfs.io/rollout-max-in-trial": None}, "because there is lkgfs.io/rollout-max-failures"),
])
def test_a_wrong_number_stops_everybody(slots, annotations, words):
    slots.put("{}\n")
    slots.put("maxPods: 42\n", **annotations)  # None removes one
    node = slots.node()
    node.wait("findings", words)
    assert "LKG7007" in node.status("findings")
