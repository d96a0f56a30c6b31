# SPDX-License-Identifier: Apache-2.0
"""Slots of a rollout, against a real kube-apiserver with NodeRestriction: nodes with their own credentials, and nobody watching."""
import hashlib
import json
import os

import pytest

import lkgfs_testlib as lib
from lkgfs_apinode import source_id

RBAC = lib.REPOSITORY / "contrib/rbac"
ROLE = RBAC / "rollout.yaml"
LIMITS = {"lkgfs.io/rollout-max-in-trial": "2", "lkgfs.io/rollout-max-failures": "1"}


class Slots:
    """Nodes that follow one ConfigMap, and the namespace of its slots."""

    plural, events = "configmaps", True

    def __init__(self, fleet):
        self.fleet, self.namespace = fleet, f"rollout-{fleet.number}"
        fleet.allow("get", "watch")

    def kubectl(self, *words, **options):
        done = self.fleet.real.kubectl(*words, **options)
        assert done.returncode == 0, done.stderr
        return done.stdout.decode()

    def user(self, node):
        return f"system:node:{node.name}"

    def role(self):
        return ROLE.read_text().replace("namespace: lkgfs-rollout", f"namespace: {self.namespace}")

    def grant(self):
        self.kubectl("create", "namespace", self.namespace)
        self.kubectl("apply", "-f", "-", input=self.role().encode())

    def node(self, **remote):
        return self.fleet.node(trial={"duration": "2s", "crashLoopThreshold": 1},
                               remote={"rolloutNamespace": self.namespace, "restartJitter": "0s", **remote},
                               component={"trial": {"health": {"nodeReady": False, "stableFor": "0s"}}})

    def all(self):
        """Slot objects: data by index."""
        items = json.loads(self.kubectl("get", "configmaps", "-n", self.namespace, "-l", "lkgfs.io/rollout", "-o", "json"))["items"]
        return {int(item["data"]["slot"]): item["data"] for item in items}

    def make(self, metadata, data):
        """Any object."""
        self.fleet.real.request("POST", f"/api/v1/namespaces/{self.namespace}/configmaps", {"metadata": metadata, "data": data})

    def close(self):
        pass

    def put(self, body, **annotations):
        return self.fleet.put(body, {**LIMITS, **annotations})


class Leases(Slots):
    """The same with one ServiceAccount for all nodes, as contrib/rbac has it: Leases, and the reference is remote.static."""

    plural, events = "leases", False

    def __init__(self, fleet):
        super().__init__(fleet)
        fleet.allow()
        self.account, self.granted = f"lkgfs-reader-{fleet.number}", []
        self.apply("reader.yaml")
        self.kubeconfig = str(fleet.real.directory / f"{self.account}.conf")
        path = f"/api/v1/namespaces/kube-system/serviceaccounts/{self.account}/token"
        token = fleet.real.request("POST", path, {"spec": {"expirationSeconds": 3600}})["status"]["token"]
        lib.write_file(self.kubeconfig, json.dumps({
            "apiVersion": "v1", "kind": "Config", "current-context": "x", "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
            "clusters": [{"name": "c", "cluster": {"server": fleet.real.url, "certificate-authority": str(fleet.real.directory / "ca.crt")}}],
            "users": [{"name": "u", "user": {"token": token}}]}), 0o600)

    def apply(self, manifest):
        """With the names of this test."""
        text = (RBAC / manifest).read_text()
        for name, ours in (("node-config", self.fleet.configmap), ("lkgfs-reader", self.account), ("lkgfs:reader", f"lkgfs:{self.account}"),
                           ("namespace: lkgfs-rollout", f"namespace: {self.namespace}")):
            text = text.replace(name, ours)
        self.granted.append(text)
        self.kubectl("apply", "-f", "-", input=text.encode())

    def user(self, node):
        return f"system:serviceaccount:kube-system:{self.account}"

    def grant(self):
        self.kubectl("create", "namespace", self.namespace)
        self.apply("rollout-leases.yaml")

    def close(self):
        for text in self.granted:
            self.kubectl("delete", "-f", "-", "--wait=false", input=text.encode())

    def node(self, name=None, kubeconfig=None, **remote):
        static = {"namespace": "kube-system", "name": self.fleet.configmap}
        return self.fleet.node(name=name, kubeconfig=kubeconfig or self.kubeconfig, trial={"duration": "2s", "crashLoopThreshold": 1},
                               remote={"rolloutNamespace": self.namespace, "rolloutObjects": "leases", "restartJitter": "0s",
                                       "references": ["static"], "static": static, **remote},
                               component={"trial": {"health": {"stableFor": "0s"}}})  # the Node, which cannot be read, is no obstacle

    def make(self, metadata, data):
        annotations = {f"lkgfs.io/{name}": text for name, text in data.items()}
        self.fleet.real.request("POST", f"/apis/coordination.k8s.io/v1/namespaces/{self.namespace}/leases", {
            "metadata": {**metadata, "annotations": annotations}, "spec": {"holderIdentity": data.get("node", "evil")}})

    def objects(self):
        return json.loads(self.kubectl("get", "leases", "-n", self.namespace, "-l", "lkgfs.io/rollout", "-o", "json"))["items"]

    def all(self):
        """As if they were ConfigMaps."""
        found = {}
        for item in self.objects():
            data = {name.removeprefix("lkgfs.io/"): text for name, text in item["metadata"]["annotations"].items()}
            found[int(data["slot"])] = {"node": item["spec"].get("holderIdentity", ""), **data}
        return found


@pytest.fixture
def slots(fleet):
    one = Slots(fleet)
    one.grant()
    return one


@pytest.fixture(params=[Slots, Leases])
def either(fleet, request):
    """Slots that are ConfigMaps, with the nodes' own credentials; slots that are Leases, with a ServiceAccount."""
    one = request.param(fleet)
    try:
        one.grant()
        yield one
    finally:
        one.close()


@pytest.fixture
def leases(fleet):
    one = Leases(fleet)
    try:
        one.grant()
        yield one
    finally:
        one.close()


def rollout(node):
    return dict(line.split("=", 1) for line in node.known("rollout").splitlines())


def test_a_good_one_reaches_everybody(either):
    """One node first, then two; each gives its slot back."""
    nodes = [either.node() for _ in range(3)]
    obj = either.put("maxPods: 42\n")
    waiting = list(nodes)
    while waiting:
        either.fleet.wait(lambda: any(source_id(obj) in node.status("active") for node in waiting), "somebody has a slot")
        for node in [node for node in waiting if source_id(obj) in node.status("active")]:
            assert rollout(node)["state"] in ("in trial", "none")
            node.live()
            node.wait("last-known-good", source_id(obj))
            waiting.remove(node)
    either.fleet.wait(lambda: sum(int(slot["successes"]) for slot in either.all().values()) == 3, "three successes")
    assert {slot["state"] for slot in either.all().values()} == {"free"} and len(either.all()) <= 2


def test_a_bad_one_breaks_one_node_and_halts_itself(either):
    nodes = [either.node() for _ in range(3)]
    obj = either.put("maxPods: 13\n")
    either.fleet.wait(lambda: any(source_id(obj) in node.status("active") for node in nodes), "one node goes first")
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
        for figure in ("lkgfs_rollout_halted", "lkgfs_rollout_waiting"):
            assert f'{figure}{{component="kubelet"}} 1' in node.status("metrics.prom")
    told = lib.run(lib.LKGFS, "rollout", "--mountpoint", others[0].mount.mountpoint)
    assert told.returncode == 1 and "\nfailed     1, halts with 1\n" in told.stdout.decode(), told
    assert f"node {first.name}: current failed trial period" in told.stdout.decode()
    slot, = either.all().values()
    assert (slot["state"], slot["node"], slot["slot"]) == ("failed", first.name, "0")
    if either.events:
        either.fleet.wait(lambda: "RolloutHalted" in {event["reason"] for event in either.fleet.real.events(first.name)}, "an Event, once")
    # A new version begins anew.
    mended = either.put("maxPods: 14\n")
    either.fleet.wait(lambda: any(source_id(mended) in node.status("active") for node in nodes), "one node goes first again")


def test_a_node_that_dies_finds_its_slot_again(either):
    node = either.node()
    obj = either.put("maxPods: 42\n")
    node.follows(obj)
    node.mount.kill_child("lkgfs-engine")
    node.wait("rollout", "state=in trial")
    node.live()
    node.wait("last-known-good", source_id(obj))
    either.fleet.wait(lambda: [slot["successes"] for slot in either.all().values()] == ["1"], "given back once")


def test_a_node_that_dies_before_it_could_note_its_failure(slots):
    """The next engine notes it, although the content is not assigned any more, and neither a trial nor a limit is known."""
    node = slots.node()
    node.follows(slots.put("maxPods: 13\n"))
    slots.kubectl("apply", "-f", "-", input=slots.role().replace(", watch, update]", ", watch]").encode())
    for _ in range(3):
        node.crash()
    node.wait("condition", "False current failed trial period due to crash loop (UID: ")
    slots.fleet.real.annotate(node.name, None)
    node.wait("condition", "True current is set to the local default")
    node.mount.kill_child("lkgfs-engine")
    assert slots.all()[0]["state"] == "held"
    slots.kubectl("apply", "-f", "-", input=slots.role().encode())
    slots.fleet.wait(lambda: slots.all()[0]["state"] == "failed", "the failure is noted")
    assert "crash loop" in slots.all()[0]["reason"]
    assert not os.path.exists(node.mount.path("status/kubelet/rollout"))


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


@pytest.mark.parametrize("variant", [Slots, Leases])
def test_without_the_role_a_node_waits_and_says_which(fleet, variant):
    """rolloutSlots: require is the default; with prefer it goes ahead."""
    slots = variant(fleet)
    try:
        waits, goes = slots.node(), slots.node(rolloutSlots="prefer")
        obj = slots.put("maxPods: 42\n")
        goes.follows(obj)
        waits.wait("condition", f"waiting for a rollout slot: list {slots.plural} {slots.namespace} is forbidden (403): ")
        for word in ("cannot list", slots.user(waits), slots.namespace):
            assert word in rollout(waits)["waiting"], rollout(waits)
        assert rollout(waits)["state"] == "refused"
        slots.grant()
        waits.mount.command("sync", "now")
        waits.follows(obj)
    finally:
        slots.close()


def test_what_is_no_slot_is_ignored(either):
    """Objects that a hostile node may have made: none makes a node switch, none lets it fail."""
    obj = either.put("maxPods: 41\n")
    uid = obj["metadata"]["uid"]
    for name, data in (("a", {}), ("0123456789abcdef-0", {"version": "1", "state": "failed", "slot": "0", "uid": uid, "key": "kubelet",
                                                          "sha256": "0" * 64, "node": "evil", "successes": "9"}),
                       ("0123456789abcdef-1", {"version": "1", "state": "held", "slot": "99999999999", "uid": "../x"})):
        either.make({"name": name, "labels": {"lkgfs.io/configmap-uid": uid}}, data)
    node = either.node()
    node.follows(obj)
    assert "is not a slot of a rollout" in node.mount.log()


def test_more_slots_than_fit_into_an_answer(slots):
    """A list comes in parts: 300 slots are more than remote.maxBytes, and what the last part says counts."""
    obj = slots.put("maxPods: 41\n", **{"lkgfs.io/rollout-max-in-trial": "400"})
    uid = obj["metadata"]["uid"]
    digest = hashlib.sha256(obj["data"]["kubelet"].encode()).hexdigest()
    name = hashlib.sha256(f"{uid}/{digest}/kubelet".encode()).hexdigest()[:16]
    for index in range(300):  # in the order of their names the failed one is the last
        slots.make({"name": f"{name}-{index}", "labels": {"lkgfs.io/configmap-uid": uid, "lkgfs.io/rollout": name}},
                   {"version": "1", "uid": uid, "key": "kubelet", "sha256": digest, "slot": str(index), "successes": "2", "patience": "15m",
                    "node": "x", "state": "failed" if index == 99 else "held"})
    node = slots.node(maxBytes=65536)
    node.wait("condition", "True rollout halted: 1 failed, node x")
    assert rollout(node)["in_trial"] == "299" and rollout(node)["done"] == "600"


# ---- Leases ----

def test_a_lease_shows_who_holds_it(leases):
    """In the fields that kubectl and other tools know; a free one has no holder."""
    node = leases.node()
    obj = leases.put("maxPods: 42\n")
    node.follows(obj)
    spec = leases.objects()[0]["spec"]
    assert (spec["holderIdentity"], spec["leaseDurationSeconds"], spec["leaseTransitions"]) == (node.name, 302, 0)
    assert spec["acquireTime"] == spec["renewTime"] and node.name in leases.kubectl("get", "leases", "-n", leases.namespace)
    node.live()
    node.wait("last-known-good", source_id(obj))
    leases.fleet.wait(lambda: leases.objects()[0]["spec"] == {"leaseDurationSeconds": 302, "leaseTransitions": 1}, "a free Lease")
    assert leases.fleet.real.condition(node.name) is None and node.status("condition").startswith("True")  # mode 3 writes none


def test_a_lease_that_is_handed_to_the_garbage_collector_is_valid(leases):
    """As a node writes it a day after its rollout; the collector itself is not part of an API server."""
    node = leases.node()
    obj = leases.put("maxPods: 42\n")
    node.follows(obj)
    lease, = leases.objects()
    lease["metadata"]["labels"]["lkgfs.io/collected"] = "true"
    lease["metadata"]["ownerReferences"] = [{"apiVersion": "v1", "kind": "ConfigMap", "name": leases.fleet.configmap,
                                             "uid": "00000000-0000-4000-8000-" + lease["metadata"]["name"][:12]}]
    node.mount.stop()
    leases.kubectl("--kubeconfig", leases.kubeconfig, "replace", "-f", "-", input=json.dumps(lease).encode())


def test_a_kubelets_credential_gets_no_leases(leases):
    """Neither without a Role nor with one; the condition says so, and a reload with the other setting mends it."""
    fleet, own = leases.fleet, Slots(leases.fleet)
    name = fleet.object()
    node = leases.node(name=name, kubeconfig=fleet.real.node_credential(name))
    obj = leases.put("maxPods: 42\n")
    words = f"leases {leases.namespace} is forbidden (403): a node's own credential may use Leases in kube-node-lease only, see remote.rolloutObjects"
    node.wait("condition", f"waiting for a rollout slot: list {words}")
    leases.kubectl("create", "role", "all", "-n", leases.namespace, "--verb=*", "--resource=leases.coordination.k8s.io")
    leases.kubectl("create", "rolebinding", "all", "-n", leases.namespace, "--role=all", "--group=system:nodes")
    node.mount.command("sync", "now")
    node.wait("condition", f"waiting for a rollout slot: create {words}")
    assert source_id(obj) not in node.status("active") and rollout(node)["state"] == "refused"
    leases.kubectl("apply", "-f", "-", input=own.role().encode())
    node.configure(remote={"rolloutObjects": "configmaps"})
    node.mount.reload()
    node.follows(obj)
    assert Slots.all(leases)[0]["node"] == name and not leases.objects()


def test_a_host_without_a_name_says_so(leases):
    """No Node needs to be readable for remote.static, so a wrong name shows only here."""
    node = leases.node(nodeName="Under_Score")
    leases.put("maxPods: 42\n")
    node.wait("condition", "waiting for a rollout slot: \"Under_Score\" is not the name of a Node: ")
