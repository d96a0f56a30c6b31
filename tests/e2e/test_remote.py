# SPDX-License-Identifier: Apache-2.0
"""The API server as a source, on a real mount: changes there arrive, and faults there do no harm.

Rule: docs/specification.md 5.
"""
import errno
import os
import re

import pytest

import lkgfs_apifaults as faults
import lkgfs_testlib as lib
from lkgfs_apinode import ANNOTATION, CONFIGMAP, REFERENCE, payload, source_id
from lkgfs_node import NAMESPACE, Node

ALLOWED = ["get", "watch"]


def allow(api, verbs=None, names=None):
    return api.rbac.allow("system:nodes", verbs or ALLOWED, "configmaps", NAMESPACE, names)


def put(api, body, **options):
    return api.store.configmap(NAMESPACE, CONFIGMAP, payload(body), **options)


@pytest.fixture
def followed(api, api_node):
    """(api, node): a node that follows its annotation to a ConfigMap."""
    allow(api)
    api.store.node("n1", {ANNOTATION: REFERENCE})
    obj = put(api, "maxPods: 42\n")
    node = api_node()
    node.follows(obj)
    return api, node


# ---- the story ----

def test_an_annotation_leads_to_a_configmap(followed):
    api, node = followed
    source = source_id(api.store.get("configmaps", NAMESPACE, CONFIGMAP))
    assert "\nmaxPods: 42\n" in node.mount.document() and "clusterDomain" not in node.mount.document()
    assert node.status("assigned") == f"{source} {REFERENCE}\n"
    node.wait("condition", "True all checks passed: using current (UID: ")


def test_an_edit_arrives_by_the_watch(followed):
    api, node = followed
    api.wait_watch("configmaps")
    n_get = len(api.seen(verb="get", plural="configmaps"))
    for i in range(43, 48):
        node.follows(put(api, f"maxPods: {i}\n"))
        assert f"\nmaxPods: {i}\n" in node.mount.document()
    assert len(api.seen(verb="get", plural="configmaps")) == n_get, "nothing was polled"


def test_a_crash_loop_is_rolled_back(followed):
    api, node = followed
    node.live()
    node.mount.command("promote", "now")
    node.wait("last-known-good", "@")
    bad = put(api, "maxPods: 43\n")
    node.follows(bad)
    documents = [node.crash() for _ in range(3)]
    assert "\nmaxPods: 43\n" in documents[0] and "\nmaxPods: 42\n" in documents[2]
    node.wait("condition", "False current failed trial period due to crash loop")
    assert source_id(bad) in node.bad()
    node.follows(put(api, "maxPods: 45\n"))


# ---- limits ----

def test_a_document_that_takes_more_memory_than_there_is(followed):
    """The engine gives up, its successor refuses the document, and everything else goes on."""
    api, node = followed
    engine = node.mount.child("lkgfs-engine")
    in_use = int(re.search(r"^VmData:\s+(\d+) kB$", lib.read_file(f"/proc/{engine}/status").decode(), re.M).group(1))
    user = lib.ENGINE_USER_ID  # a process of another user would need a capability that this machine may not grant
    lib.run("setpriv", f"--reuid={user}", f"--regid={user}", "--clear-groups", "prlimit", f"--pid={engine}",
            f"--data={(in_use + (2 << 10)) << 10}:", check=True)
    obj = put(api, "maxPods: 43\nregisterWithTaints: [" + "{}," * 20000 + "{}]\n")
    node.wait("condition", "False failed to judge current, the engine reached its memory limit and ended itself (UID: "
              f"{obj['metadata']['uid']})")
    assert "\nmaxPods: 42\n" in node.mount.document() and list(node.bad()) == [source_id(obj)]
    assert "LKG2030" in node.status("findings")
    node.mount.drop("50-x.conf", "registryBurst: 7\n")
    assert "\nregistryBurst: 7\n" in node.mount.document()
    second = node.mount.child("lkgfs-engine")
    assert second != engine
    node.mount.command("sync", "now")  # this engine has enough memory: it finds what else is wrong with it
    node.wait("condition", "False failed to validate current")
    assert node.mount.child("lkgfs-engine") == second and "LKG2030" not in node.status("findings")


def test_an_object_over_the_limit_names_it(mounts, api, api_node):
    allow(api)
    api.store.node("n1", {ANNOTATION: REFERENCE})
    put(api, "maxPods: 42\n# " + "x" * 70000 + "\n")
    node = api_node(remote={"maxBytes": 65536})
    node.wait("condition", "remote.maxBytes is 65536")
    other = Node(mounts, remote={"maxBytes": 65536})
    try:
        other.put(other.configmap("maxPods: 42\n# " + "x" * 70000 + "\n"))
        other.wait("condition", "has more bytes than remote.maxBytes, which is 65536")
    finally:
        other.close()


def test_a_full_disk_is_said_once(api, api_node):
    allow(api)
    api.store.node("n1", {ANNOTATION: REFERENCE})
    obj = put(api, "maxPods: 42\n")
    node = api_node(start=False)
    os.makedirs(node.mount.state, mode=0o700, exist_ok=True)
    lib.run("mount", "-t", "tmpfs", "-o", "size=2m,mode=700", "tmpfs", node.mount.state, check=True)
    node.mount.start()
    node.follows(obj)
    filling = os.path.join(node.mount.state, "filling")
    with open(filling, "wb", buffering=0) as file:
        assert lib.error_of(lambda: [file.write(b"x" * 4096) for _ in range(1000)]) == errno.ENOSPC
    changed = put(api, "maxPods: 43\n# " + "y" * 100000 + "\n")
    node.wait("condition", "failed to save config checkpoint for object with UID ")
    for i in range(5):
        node.mount.drop("50-x.conf", f"registryBurst: {i + 7}\n")
        assert f"\nregistryBurst: {i + 7}\n" in node.mount.document()
    assert node.mount.log().count("failed to save config checkpoint") == 1
    os.unlink(filling)
    node.follows(changed)


# ---- credentials that change ----

def test_a_401_and_a_new_token(api, api_node, tmp_path):
    allow(api)
    api.store.node("n1", {ANNOTATION: REFERENCE})
    obj = put(api, "maxPods: 42\n")
    api.tokens["first-secret"] = ("system:node:n1", ["system:nodes"])
    node = api_node(start=False)
    token = os.path.join(node.mount.root, "token")
    lib.write_file(token, "first-secret\n", 0o600)
    api.kubeconfig(node.kubeconfig, token_file=token)
    node.mount.start()
    node.follows(obj)
    api.tokens.clear()
    api.disconnect()
    api.wait(lambda: any(request.headers.get("authorization") == "Bearer first-secret" for request in
                         list(api.requests)[-3:]), "an attempt with the old one")
    changed = put(api, "maxPods: 43\n")
    api.tokens["second-secret"] = ("system:node:n1", ["system:nodes"])
    lib.write_file(token + ".new", "second-secret\n", 0o600)
    os.rename(token + ".new", token)
    node.follows(changed)
    shown = node.mount.log() + "".join(node.status(name) for name in os.listdir(node.mount.vpath("status", "kubelet")))
    assert "-secret" not in shown


# ---- no server ----

def test_a_server_that_goes_and_comes_back(followed):
    api, node = followed
    api.refuse()
    node.wait("findings", "LKG7006")
    assert "\nmaxPods: 42\n" in node.mount.document()
    changed = put(api, "maxPods: 43\n")
    api.listen()
    node.mount.command("sync", "now")
    node.follows(changed)
    node.mount.wait_for(lambda: "LKG7006" not in node.status("findings"), "the finding goes")


def test_a_reboot_without_a_server(followed):
    api, node = followed
    document, sources = node.mount.document(), node.sources()
    api.refuse()
    node.reboot()
    assert node.mount.document() == document and node.sources() == sources
    changed = put(api, "maxPods: 43\n")
    api.listen()
    node.mount.command("sync", "now")
    node.follows(changed)


def test_the_engine_is_killed(followed):
    api, node = followed
    document = node.mount.document()
    n_watch = len(api.seen(verb="watch", plural="configmaps"))
    node.mount.kill_child("lkgfs-engine")
    assert node.mount.document() == document
    api.wait_request(verb="watch", plural="configmaps", count=n_watch + 1)
    node.follows(put(api, "maxPods: 43\n"))


@pytest.mark.parametrize("action", [faults.hang(), faults.silence(30), faults.drip(1.0)], ids=["hang", "half", "drip"])
def test_readers_do_not_notice_a_server_that_hangs(followed, action):
    """All of it is done while the server answers nothing."""
    api, node = followed
    with api.fault(action) as rule:
        api.disconnect()
        api.wait(lambda: rule.hits, "a request that hangs")
        hits = rule.hits
        for i in range(300):
            assert "\nmaxPods: 42\n" in node.mount.document()
            if i % 50 == 0:
                node.mount.drop("50-x.conf", f"registryBurst: {i + 7}\n")
                assert f"\nregistryBurst: {i + 7}\n" in node.mount.document()
        node.live()
        node.mount.command("sync", "now")
        assert node.condition_json()["type"] == "ConfigOK"
        assert rule.hits - hits < 20, "nothing that hangs is asked over and over"
    changed = put(api, "maxPods: 43\n")
    api.disconnect()  # responses that have begun stay slow
    node.mount.command("sync", "now")
    node.follows(changed)


# ---- back to the cluster ----

def conditions(api):
    return {one["type"]: one for one in api.store.get("nodes", None, "n1")["status"]["conditions"]}


def test_the_condition_is_written(followed):
    api, node = followed
    api.wait(lambda: conditions(api).get("ConfigOK", {}).get("status") == "True", "the condition True")
    told, shown = conditions(api)["ConfigOK"], node.condition_json()
    for field in ("status", "reason", "message", "lastTransitionTime"):
        assert told[field] == shown[field]
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", told["lastHeartbeatTime"])
    api.store.configmap(NAMESPACE, CONFIGMAP, {"kubelet": "{0xdeadbeef}"})
    api.wait(lambda: conditions(api)["ConfigOK"]["status"] == "False", "the condition False")
    for request in api.seen(verb="patch", plural="nodes"):
        assert request.subresource == "status"
        assert request.headers["content-type"] == "application/strategic-merge-patch+json"
        assert list(request.json()) == ["status"] and len(request.json()["status"]["conditions"]) == 1


def test_a_node_that_is_made_again_gets_the_condition(followed):
    """Deleted and created again at once, as by `kubectl replace --force`: the view does not change."""
    api, _ = followed
    api.wait(lambda: conditions(api).get("ConfigOK", {}).get("status") == "True", "the condition True")
    with api.store.lock:
        api.store.delete("nodes", None, "n1")
        api.store.node("n1", {ANNOTATION: REFERENCE})
    api.wait(lambda: conditions(api).get("ConfigOK", {}).get("status") == "True", "the condition on the new Node")


def test_a_reader_without_the_node_is_no_outage(api, api_node, certificates):
    # contrib/rbac, mode 3: a credential that reads one ConfigMap, named by remote.static, and nothing else.
    api.rbac.allow("readers", ["get", "watch"], "configmaps", NAMESPACE)
    obj = put(api, "maxPods: 42\n")
    node = api_node(start=False, remote={"references": ["static"], "static": {"namespace": NAMESPACE, "name": CONFIGMAP}})
    api.kubeconfig(node.kubeconfig, node=certificates.user("reader", "readers"))
    node.mount.start()
    node.follows(obj)
    node.wait("findings", "note: failed to read Node n1: get nodes n1 is forbidden")
    node.wait("metrics.prom", '\nlkgfs_remote_up{component="kubelet",object="configmap"} 1\n')
    assert 'lkgfs_remote_up{component="kubelet",object="node"}' not in node.status("metrics.prom")
    assert "warning: failed to read" not in node.status("findings")


# ---- credentials of a node ----

def test_the_kubeconfig_of_the_node_itself(api, api_node, certificates):
    """As kubeadm leaves it: kubelet.conf of the source directory is a kubeconfig, and nothing is configured."""
    allow(api)
    api.store.node("n1", {ANNOTATION: REFERENCE})
    obj = put(api, "maxPods: 42\n")
    node = api_node(start=False, base_name="kubelet-config.yaml", remote={"kubeconfig": ""},
                    component={"file": "kubelet-config.yaml", "dropInDir": ""})
    api.kubeconfig(os.path.join(node.mount.source, "kubelet.conf"), node="n1")
    node.mount.start()
    node.mount.wait_for(lambda: "\nmaxPods: 42\n" in node.mount.document("kubelet-config.yaml"), "the ConfigMap")
    assert node.sources()[0] == source_id(obj)
    api.wait(lambda: "ConfigOK" in conditions(api), "the condition")


@pytest.mark.parametrize("over", [True, False], ids=["over", "aside"])
def test_a_kubeconfig_named_by_its_path_in_the_view(api, api_node, over):
    """The engine reads the file that other processes see under that path, although it does not see the view."""
    allow(api)
    api.store.node("n1", {ANNOTATION: REFERENCE})
    obj = put(api, "maxPods: 42\n")
    node = api_node(start=False, over=over)
    api.kubeconfig(os.path.join(node.mount.source, "own.conf"), node="n1")
    node.configure(remote={"kubeconfig": node.mount.path("own.conf")})
    node.mount.start()
    node.follows(obj)


def test_remote_is_off_by_default(api, api_node):
    allow(api)
    api.store.node("n1", {ANNOTATION: REFERENCE})
    put(api, "maxPods: 42\n")
    node = api_node(remote={"enabled": False})
    assert "clusterDomain" in node.mount.document() and api.n_connections == 0
