# SPDX-License-Identifier: Apache-2.0
"""The story of a fleet, against a real kube-apiserver with the Node authorizer, RBAC and NodeRestriction."""
import hashlib
import json

import lkgfs_testlib as lib
from lkgfs_apinode import source_id
from lkgfs_realapi import MERGE


def reasons(real, name):
    return {event["reason"] for event in real.events(name)}


# ---- what a node may do ----

def test_without_a_role_the_refusal_is_told(fleet):
    """With the message of the API server itself."""
    obj = fleet.put("maxPods: 42\n")
    node = fleet.node()
    node.wait("findings", "LKG7005")
    finding = next(line for line in node.status("findings").splitlines() if "LKG7005" in line)
    for word in ("get", "configmaps", fleet.configmap, "kube-system", f"system:node:{node.name}"):
        assert word in finding
    node.wait("condition", "Unknown failed to sync")
    fleet.allow("get", "watch")
    node.mount.command("sync", "now")
    node.follows(obj)
    node.mount.wait_for(lambda: "LKG7005" not in node.status("findings"), "the finding goes")


def test_the_role_of_kubeadm_means_polling(fleet):
    fleet.allow("get")
    obj = fleet.put("maxPods: 42\n")
    node = fleet.node(remote={"pollInterval": "1s"})
    node.follows(obj)
    node.follows(fleet.put("maxPods: 43\n"))
    assert node.bad() == {}


def test_a_role_with_watch_means_watching(fleet):
    """The poll interval is an hour, so what arrives comes from the watch."""
    fleet.allow("get", "watch")
    obj = fleet.put("maxPods: 42\n")
    node = fleet.node(remote={"pollInterval": "1h"})
    node.follows(obj)
    for i in range(43, 48):
        node.follows(fleet.put(f"maxPods: {i}\n"))
        assert f"\nmaxPods: {i}\n" in node.mount.document()


# ---- reference ----

def test_a_node_that_is_made_again(fleet):
    fleet.allow("get", "watch")
    obj = fleet.put("maxPods: 42\n")
    node = fleet.node()
    source = node.follows(obj)
    fleet.real.delete_node(node.name)
    node.wait("condition", "Unknown failed to sync")
    fleet.real.create_node(node.name)
    fleet.real.node(node.name)
    node.follows(obj)
    assert node.sources()[:2] == (source, source), "another Node takes nothing back"
    fleet.real.annotate(node.name, fleet.reference)
    node.wait("condition", "True all checks passed")


# ---- back to the cluster ----

def test_condition_and_events_are_written_by_the_node_itself(fleet):
    fleet.allow("get", "watch")
    node = fleet.node()
    node.follows(fleet.put("maxPods: 42\n"))
    fleet.wait(lambda: (fleet.real.condition(node.name) or {}).get("status") == "True", "the condition True")
    told, shown = fleet.real.condition(node.name), node.condition_json()
    for field in ("status", "reason", "message", "lastTransitionTime"):
        assert told[field] == shown[field]
    fleet.put("{0xdeadbeef}")
    fleet.wait(lambda: fleet.real.condition(node.name)["status"] == "False", "the condition False")
    wanted = {"ConfigAssigned", "ConfigActivated", "ConfigRejected"}
    fleet.wait(lambda: wanted <= reasons(fleet.real, node.name), "the events")
    assert "deadbeef" not in json.dumps(fleet.real.events(node.name))
    assert len([one for one in fleet.real.node(node.name)["status"]["conditions"] if one["type"] == "ConfigOK"]) == 1


def test_another_credential_reads_and_writes_nothing(fleet):
    obj = fleet.put("maxPods: 42\n")
    node = fleet.node(kubeconfig=str(fleet.real.directory / "admin.conf"))
    node.follows(obj)
    node.wait("findings", "LKG7008")
    node.follows(fleet.put("maxPods: 43\n"))
    assert fleet.real.condition(node.name) is None and fleet.real.events(node.name) == []


def test_the_token_of_a_service_account(fleet):
    """Bearer tokens, as in a DaemonSet's pod."""
    account = f"/api/v1/namespaces/kube-system/serviceaccounts/{fleet.role}"
    fleet.real.request("POST", account.rpartition("/")[0], {"metadata": {"name": fleet.role}})
    fleet.real.grant(fleet.role, "system:serviceaccounts:kube-system", ["get", "watch"], [fleet.configmap])
    token = fleet.real.request("POST", account + "/token", {"spec": {}})["status"]["token"]
    obj = fleet.put("maxPods: 42\n")
    static = {"namespace": "kube-system", "name": fleet.configmap}
    node = fleet.node(start=False, remote={"references": ["static"], "static": static})
    path = node.mount.root + "/kubeconfig"
    text = lib.read_file(fleet.real.directory / "admin.conf").decode().splitlines()
    lines = [f"users: [{{name: u, user: {{token: {token}}}}}]" if line.startswith("users:") else line for line in text]
    lib.write_file(path, "\n".join(lines) + "\n", 0o600)
    node.configure(remote={"kubeconfig": path})
    node.mount.start()
    node.follows(obj)
    fleet.real.delete(account)


# ---- trial, fleet, rollback ----

def bucket(uid):
    digest = hashlib.sha256(f"/{uid}".encode()).digest()
    return int.from_bytes(digest[:8], "big") % 100000 / 1000


def test_a_staged_rollout_is_halted_and_taken_back(fleet):
    fleet.allow("get", "watch")
    good = fleet.put("maxPods: 42\n")
    nodes = [fleet.node() for _ in range(3)]
    for node in nodes:
        node.follows(good)
    nodes.sort(key=lambda node: bucket(fleet.real.node(node.name)["metadata"]["uid"]))
    first, second, third = (bucket(fleet.real.node(node.name)["metadata"]["uid"]) for node in nodes)
    # the first one only
    staged = fleet.put("maxPods: 43\n", {"lkgfs.io/rollout-percent": f"{(first + second) / 2:.3f}"})
    nodes[0].follows(staged)
    for node in nodes[1:]:
        node.wait("condition", "rollout")
        assert "\nmaxPods: 42\n" in node.mount.document()
    # one more
    wider = fleet.put("maxPods: 43\n", {"lkgfs.io/rollout-percent": f"{(second + third) / 2:.3f}"})
    nodes[1].follows(wider)
    # something is wrong: stop
    fleet.put("maxPods: 43\n", {"lkgfs.io/rollout-percent": None, "lkgfs.io/halt": "true"})
    nodes[2].wait("condition", "halt")
    assert "\nmaxPods: 42\n" in nodes[2].mount.document()
    for node in nodes[:2]:
        assert "\nmaxPods: 43\n" in node.mount.document(), "who has switched stays where he is"
    # and back
    back = fleet.put("maxPods: 42\n", {"lkgfs.io/halt": None})
    for node in nodes:
        node.follows(back)
        assert "\nmaxPods: 42\n" in node.mount.document()
        node.wait("condition", "True all checks passed")


# ---- health ----

def ready(real, name, status, reason):
    """What the kubelet, or the controller manager in its place, writes."""
    real.request("PATCH", f"/api/v1/nodes/{name}/status", {"status": {"conditions": [
        {"type": "Ready", "status": status, "reason": reason, "message": "as told",
         "lastHeartbeatTime": "2026-01-01T00:00:00Z", "lastTransitionTime": "2026-01-01T00:00:00Z"}]}}, MERGE)


def test_alive_and_useless_is_rolled_back(fleet):
    """A kubelet that lives and whose Node is not Ready any more: the configuration does not become the last known good."""
    fleet.allow("get", "watch")
    first = fleet.put("maxPods: 42\n")
    node = fleet.node(trial={"duration": "2s"}, component={"trial": {"health": {"stableFor": "1s"}}})
    ready(fleet.real, node.name, "True", "KubeletReady")
    node.follows(first)
    node.wait("trial", "health_node=good")
    node.live()
    node.wait("last-known-good", source_id(first))
    useless = node.follows(fleet.put("maxPods: 43\n"))
    ready(fleet.real, node.name, "False", "KubeletNotReady")
    node.wait("trial", "health_node=bad")
    node.live()
    node.wait("condition", "False current failed trial period, not healthy: the Node is not Ready (KubeletNotReady) (UID: ")
    node.wait("active", source_id(first))
    assert list(node.bad()) == [useless] and "\nmaxPods: 42\n" in node.mount.document()
    fleet.wait(lambda: {"ConfigTrialExtended", "ConfigRolledBack"} <= reasons(fleet.real, node.name), "both Events")
    ready(fleet.real, node.name, "True", "KubeletReady")
    healed = fleet.put("maxPods: 44\n")
    node.follows(healed)
    node.live()
    node.wait("last-known-good", source_id(healed))
