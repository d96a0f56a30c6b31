# SPDX-License-Identifier: Apache-2.0
"""The API server as a source, on a real mount: changes there arrive, and faults there do no harm.

Rule: docs/specification.md 5.
"""
import errno
import json
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


def test_another_reference(followed):
    api, node = followed
    other = api.store.configmap(NAMESPACE, "other", payload("maxPods: 77\n"))
    api.store.node("n1", {ANNOTATION: f"{NAMESPACE}/other"})
    node.follows(other)
    assert "\nmaxPods: 77\n" in node.mount.document()
    put(api, "maxPods: 1\n")
    node.follows(api.store.configmap(NAMESPACE, "other", payload("maxPods: 78\n")))
    assert "\nmaxPods: 78\n" in node.mount.document(), "what it followed before does not count any more"


def test_a_reference_as_json_with_a_key(api, api_node):
    allow(api)
    reference = {"configMap": {"namespace": NAMESPACE, "name": CONFIGMAP, "kubeletConfigKey": "special"}}
    api.store.node("n1", {ANNOTATION: json.dumps(reference)})
    obj = api.store.configmap(NAMESPACE, CONFIGMAP, {"special": payload("maxPods: 9\n")["kubelet"], "kubelet": "x"})
    api_node().follows(obj, "special")


@pytest.mark.parametrize("body,words", [("{0xdeadbeef}", "failed to parse current"), ("kubeAPIQPS: -1\n",
                                                                                    "failed to validate current")])
def test_a_bad_one_changes_nothing(followed, body, words):
    api, node = followed
    before = node.mount.document()
    bad = put(api, body) if body[0] != "{" else api.store.configmap(NAMESPACE, CONFIGMAP, {"kubelet": body})
    node.wait("condition", f"False {words}")
    assert node.mount.document() == before and source_id(bad) in node.bad()
    node.follows(put(api, "maxPods: 44\n"))
    node.wait("condition", "True all checks passed")


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


def test_removing_the_annotation_resets(followed):
    api, node = followed
    api.store.node("n1")
    node.wait("assigned", "init")
    node.shows("clusterDomain")
    assert node.sources() == ("init", "init", "init")


def test_the_word_local_resets(followed):
    api, node = followed
    api.store.node("n1", {ANNOTATION: "local"})
    node.wait("assigned", "init")
    node.shows("clusterDomain")


# ---- an unclear reference changes nothing ----

@pytest.mark.parametrize("value", ["", "{}", "null", "a/b/c/d", '{"configMap":{"name":"x"}}', "kube-system/../x", "?"])
def test_annotations_that_say_nothing(followed, value):
    api, node = followed
    before = node.sources()
    api.store.node("n1", {ANNOTATION: value})
    node.wait("condition", "Unknown failed to sync")
    assert node.sources() == before and "\nmaxPods: 42\n" in node.mount.document()
    api.store.node("n1", {ANNOTATION: REFERENCE})
    node.wait("condition", "True all checks passed")


def test_a_node_that_is_deleted(followed):
    api, node = followed
    api.store.delete("nodes", None, "n1")
    node.wait("condition", "Unknown failed to sync")
    assert "\nmaxPods: 42\n" in node.mount.document()
    api.store.node("n1", {ANNOTATION: REFERENCE})
    node.wait("condition", "True all checks passed")


def test_a_node_that_is_made_again_without_an_annotation(followed):
    """It is another Node object: it does not revoke what the first one said."""
    api, node = followed
    before = node.sources()
    api.store.delete("nodes", None, "n1")
    api.store.node("n1")
    node.wait("condition", "Unknown failed to sync")
    assert node.sources() == before and "\nmaxPods: 42\n" in node.mount.document()
    api.store.node("n1", {ANNOTATION: REFERENCE})
    node.wait("condition", "True all checks passed")
    api.store.node("n1")
    node.wait("assigned", "init")


def test_a_node_that_is_not_there_yet(api, api_node):
    allow(api)
    obj = put(api, "maxPods: 42\n")
    node = api_node()
    node.wait("condition", "failed to read Node n1: not found")
    assert node.condition_json()["status"] == "Unknown" and node.sources()[0] == "init"
    api.store.node("n1", {ANNOTATION: REFERENCE})
    node.follows(obj)


def test_a_configmap_that_is_deleted(followed):
    api, node = followed
    before = node.sources()
    api.store.delete("configmaps", NAMESPACE, CONFIGMAP)
    node.wait("condition", "Unknown failed to sync")
    assert CONFIGMAP in node.status("condition")
    assert node.sources() == before and "\nmaxPods: 42\n" in node.mount.document() and node.bad() == {}
    again = put(api, "maxPods: 43\n")
    node.follows(again)


def test_a_configmap_that_is_not_there_yet(api, api_node):
    allow(api)
    api.store.node("n1", {ANNOTATION: REFERENCE})
    node = api_node()
    what = "failed to download ConfigMap with name node-config from namespace kube-system: not found"
    node.wait("condition", what)
    node.follows(put(api, "maxPods: 42\n"))


def test_a_uid_that_does_not_match(api, api_node):
    allow(api)
    obj = put(api, "maxPods: 42\n")
    wanted = {"configMap": {"namespace": NAMESPACE, "name": CONFIGMAP, "uid": "another"}}
    api.store.node("n1", {ANNOTATION: json.dumps(wanted)})
    node = api_node()
    node.wait("condition", "does not match UID")
    assert node.status("condition").startswith("Unknown failed to sync") and node.bad() == {}
    wanted["configMap"]["uid"] = obj["metadata"]["uid"]
    api.store.node("n1", {ANNOTATION: json.dumps(wanted)})
    node.follows(obj)


def test_only_allowed_sources(followed):
    api, node = followed
    api.rbac.allow("system:nodes", ALLOWED, "configmaps", "default")
    api.store.configmap("default", CONFIGMAP, payload("maxPods: 1\n"))
    api.store.node("n1", {ANNOTATION: f"default/{CONFIGMAP}"})
    node.wait("condition", "Unknown failed to sync")
    assert "allowedSources" in node.status("condition") + node.status("findings")
    assert "\nmaxPods: 42\n" in node.mount.document()
    assert not api.seen(plural="configmaps", ns="default"), "it is not even asked for"
    node.configure(remote={"allowedSources": ["kube-system/*", "default/node-*"]})
    node.mount.reload()
    node.shows("\nmaxPods: 1\n")


WRONG = {
    "another kind": faults.edit(lambda o: {**o, "kind": "Secret"}),
    "another name": faults.edit(lambda o: {**o, "metadata": {**o["metadata"], "name": "else"}}),
    "html": faults.html(),
    "no JSON": faults.body(b"{"),
    "a path": faults.edit(lambda o: {**o, "metadata": {**o["metadata"], "uid": "../../../etc/passwd"}}),
    "endless": faults.endless(),
    "bomb": faults.bomb(),
}


@pytest.mark.parametrize("name", WRONG)
def test_answers_that_are_wrong_are_never_bad_marks(api, api_node, name):
    allow(api)
    api.store.node("n1", {ANNOTATION: REFERENCE})
    put(api, "maxPods: 42\n")
    rules = [api.fault(WRONG[name], plural="configmaps", verb="get"),
             api.fault(faults.status(500), plural="configmaps", verb="watch")]
    node = api_node()
    api.wait(lambda: rules[0].hits, "the wrong answer")
    node.mount.wait_for(lambda: "failed to download ConfigMap" in node.status("condition")
                        and "no answer yet" not in node.status("condition"), "what is wrong with it")
    assert node.bad() == {} and node.sources() == ("init", "init", "init")
    for rule in rules:
        rule.end()
    node.follows(api.store.get("configmaps", NAMESPACE, CONFIGMAP))


def test_an_object_over_the_limit(followed):
    api, node = followed
    put(api, "maxPods: 43\n" + "# " + "x" * (3 << 20) + "\n")
    node.wait("condition", "Unknown failed to sync")
    assert "\nmaxPods: 42\n" in node.mount.document() and node.bad() == {}
    node.follows(put(api, "maxPods: 44\n"))


def test_a_document_that_takes_more_memory_than_there_is(followed):
    """The engine gives up, its successor refuses the document, and everything else goes on."""
    api, node = followed
    engine = node.mount.child("lkgfs-engine")
    in_use = int(re.search(r"^VmData:\s+(\d+) kB$", lib.read_file(f"/proc/{engine}/status").decode(), re.M).group(1))
    user = lib.ENGINE_USER_ID  # a process of another user would need a capability that this machine may not grant
    lib.run("setpriv", f"--reuid={user}", f"--regid={user}", "--clear-groups", "prlimit", f"--pid={engine}",
            f"--data={(in_use + (6 << 10)) << 10}:", check=True)
    obj = put(api, "maxPods: 43\nregisterWithTaints: [" + "{}," * 100000 + "{}]\n")
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


# ---- refusals ----

def test_forbidden_says_what_is_missing(api, api_node):
    api.store.node("n1", {ANNOTATION: REFERENCE})
    obj = put(api, "maxPods: 42\n")
    node = api_node()
    node.wait("findings", "LKG7005")
    finding = next(line for line in node.status("findings").splitlines() if "LKG7005" in line)
    for word in ("get", "configmaps", CONFIGMAP, NAMESPACE):
        assert word in finding
    node.wait("condition", "Unknown failed to sync")
    allow(api)
    node.follows(obj)
    node.mount.wait_for(lambda: "LKG7005" not in node.status("findings"), "the finding goes")


@pytest.mark.parametrize("before", range(4))
def test_a_refusal_in_any_language_stays_text(api, api_node, before):
    # Characters of 2, 3 and 4 bytes: wherever the text is cut to fit, the cut is inside one of them for some `before`.
    api.store.node("n1", {ANNOTATION: REFERENCE})
    put(api, "maxPods: 1\n")
    with api.fault(faults.status(403, "x" * before + "\u00e9\u20ac\U0001f600" * 100), plural="configmaps"):
        node = api_node()
        node.wait("condition", "Unknown failed to sync")
        node.wait("findings", "LKG7005")
        for name in os.listdir(node.mount.path("status/kubelet")):
            node.status(name)  # fails if it is not UTF-8


def test_get_only_is_polled(api, api_node):
    api.rbac.kubeadm()
    api.store.node("n1", {ANNOTATION: f"{NAMESPACE}/kubelet-config"})
    first = api.store.configmap(NAMESPACE, "kubelet-config", payload("maxPods: 42\n"))
    node = api_node(remote={"pollInterval": "1s"})
    node.follows(first)
    node.follows(api.store.configmap(NAMESPACE, "kubelet-config", payload("maxPods: 43\n")))


def test_sync_asks_at_once(api, api_node):
    api.rbac.kubeadm()
    api.store.node("n1", {ANNOTATION: f"{NAMESPACE}/kubelet-config"})
    first = api.store.configmap(NAMESPACE, "kubelet-config", payload("maxPods: 42\n"))
    node = api_node(remote={"pollInterval": "1h"})
    node.follows(first)
    changed = api.store.configmap(NAMESPACE, "kubelet-config", payload("maxPods: 43\n"))
    node.mount.command("sync", "now")
    node.follows(changed)


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


def test_a_restart_without_a_server(followed):
    api, node = followed
    source = source_id(api.store.get("configmaps", NAMESPACE, CONFIGMAP))
    document = node.mount.document()
    api.refuse()
    node.mount.stop()
    node.mount.start()
    assert node.mount.document() == document and node.sources()[:2] == (source, source)


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


def test_an_annotation_removed_while_the_daemon_was_down(followed):
    """The same Node uid: it is a reset, no matter when it is noticed."""
    api, node = followed
    node.mount.stop()
    api.store.node("n1")
    node.mount.start()
    node.wait("assigned", "init")


def test_a_node_made_again_while_the_daemon_was_down(followed):
    api, node = followed
    before = node.sources()
    node.mount.stop()
    api.store.delete("nodes", None, "n1")
    api.store.node("n1")
    node.mount.start()
    node.wait("condition", "Unknown failed to sync")
    assert node.sources() == before


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


# ---- other places of a reference ----

def test_static(api, api_node):
    allow(api)
    obj = put(api, "maxPods: 42\n")
    node = api_node(remote={"references": ["static"], "static": {"namespace": NAMESPACE, "name": CONFIGMAP}})
    node.follows(obj)
    node.follows(put(api, "maxPods: 43\n"))


def test_static_with_a_uid(api, api_node):
    allow(api)
    put(api, "maxPods: 42\n")
    static = {"namespace": NAMESPACE, "name": CONFIGMAP, "uid": "another"}
    node = api_node(remote={"references": ["static"], "static": static})
    node.wait("condition", "does not match UID")
    assert node.sources()[0] == "init"


SHAPES = {
    "1.11": lambda uid: {"configMap": {"namespace": NAMESPACE, "name": CONFIGMAP, "kubeletConfigKey": "kubelet"}},
    "1.8": lambda uid: {"configMapRef": {"namespace": NAMESPACE, "name": CONFIGMAP, "uid": uid}},
}


@pytest.mark.parametrize("shape", SHAPES)
def test_spec_config_source(api, api_node, shape):
    allow(api)
    obj = put(api, "maxPods: 42\n")
    api.store.node("n1", spec={"configSource": SHAPES[shape](obj["metadata"]["uid"])})
    node = api_node()
    node.follows(obj)
    api.store.node("n1", spec={})
    node.wait("assigned", "init")


def test_the_first_place_that_is_set_counts(api, api_node):
    allow(api)
    obj = put(api, "maxPods: 42\n")
    other = api.store.configmap(NAMESPACE, "other", payload("maxPods: 77\n"))
    spec = {"configSource": {"configMap": {"namespace": NAMESPACE, "name": "other", "kubeletConfigKey": "kubelet"}}}
    api.store.node("n1", {ANNOTATION: REFERENCE}, spec)
    node = api_node()
    node.follows(obj)
    api.store.node("n1", {}, spec)
    node.follows(other)


# ---- a fleet ----

def test_halt_keeps_what_is_followed(followed):
    api, node = followed
    before = node.sources()
    held = put(api, "maxPods: 43\n", annotations={"lkgfs.io/halt": "true"})
    node.wait("condition", "halt")
    assert node.sources()[1] == before[1] and "\nmaxPods: 42\n" in node.mount.document()
    assert source_id(held) not in node.bad()
    node.follows(put(api, "maxPods: 43\n"))


def test_halt_stops_no_reset(followed):
    api, node = followed
    put(api, "maxPods: 43\n", annotations={"lkgfs.io/halt": "true"})
    node.wait("condition", "halt")
    api.store.node("n1")
    node.wait("assigned", "init")


def bucket(uid, salt=""):
    """A second implementation of the rule."""
    import hashlib  # pylint: disable=import-outside-toplevel
    digest = hashlib.sha256(f"{salt}/{uid}".encode()).digest()
    return int.from_bytes(digest[:8], "big") % 100000 / 1000


def test_a_share_of_the_nodes_follows(followed):
    api, node = followed
    mine = bucket(api.store.get("nodes", None, "n1")["metadata"]["uid"])
    percent = {"lkgfs.io/rollout-percent": f"{mine:.3f}"}
    put(api, "maxPods: 43\n", annotations=percent)
    node.wait("condition", "rollout")
    assert "\nmaxPods: 42\n" in node.mount.document()
    obj = put(api, "maxPods: 43\n", annotations={"lkgfs.io/rollout-percent": f"{min(mine + 0.001, 100):.3f}"})
    node.follows(obj)
    # it continues to follow the same object, also under a new version
    recorded = put(api, "maxPods: 43\n", annotations={"lkgfs.io/rollout-percent": "0"})
    node.wait("assigned", source_id(recorded))
    node.wait("condition", "True all checks passed")
    put(api, "maxPods: 44\n", annotations={"lkgfs.io/rollout-percent": "0"})
    node.wait("condition", "rollout")
    assert "\nmaxPods: 43\n" in node.mount.document()
    uid = api.store.get("nodes", None, "n1")["metadata"]["uid"]
    salt = next(str(i) for i in range(1000) if bucket(uid, i) < 50)
    another_draw = {"lkgfs.io/rollout-percent": "50", "lkgfs.io/rollout-salt": salt}
    node.follows(put(api, "maxPods: 44\n", annotations=another_draw))


@pytest.mark.parametrize("annotations", [{"lkgfs.io/rollout-percent": "101"}, {"lkgfs.io/rollout-percent": "half"},
                                         {"lkgfs.io/halt": "maybe"}])
def test_unclear_rollouts_stop_everybody(followed, annotations):
    api, node = followed
    put(api, "maxPods: 43\n", annotations=annotations)
    node.wait("findings", "LKG7007")
    assert "\nmaxPods: 42\n" in node.mount.document()
    node.follows(put(api, "maxPods: 43\n"))


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


def test_other_conditions_stay(api, api_node):
    allow(api)
    api.store.put("nodes", {"metadata": {"name": "n1", "annotations": {ANNOTATION: REFERENCE}}, "spec": {},
                            "status": {"conditions": [{"type": "Ready", "status": "True", "reason": "KubeletReady"}]}})
    put(api, "maxPods: 42\n")
    api_node()
    api.wait(lambda: "ConfigOK" in conditions(api), "the condition")
    assert conditions(api)["Ready"] == {"type": "Ready", "status": "True", "reason": "KubeletReady"}


def test_a_node_that_is_made_again_gets_the_condition(followed):
    """Deleted and created again at once, as by `kubectl replace --force`: the view does not change."""
    api, _ = followed
    api.wait(lambda: conditions(api).get("ConfigOK", {}).get("status") == "True", "the condition True")
    with api.store.lock:
        api.store.delete("nodes", None, "n1")
        api.store.node("n1", {ANNOTATION: REFERENCE})
    api.wait(lambda: conditions(api).get("ConfigOK", {}).get("status") == "True", "the condition on the new Node")


def test_events_tell_the_story(followed):
    api, node = followed
    uid = api.store.get("nodes", None, "n1")["metadata"]["uid"]
    api.store.configmap(NAMESPACE, CONFIGMAP, {"kubelet": "{0xdeadbeef}"})

    def reasons():
        return {event["reason"]: event for event in api.store.list("events")}

    api.wait(lambda: {"ConfigAssigned", "ConfigActivated", "ConfigRejected"} <= set(reasons()), "the events")
    for reason, event in reasons().items():
        assert event["type"] == ("Warning" if reason in ("ConfigRejected", "ConfigRolledBack") else "Normal")
        assert event["metadata"]["namespace"] == "default"
        assert event["involvedObject"] == {"kind": "Node", "apiVersion": "v1", "name": "n1", "uid": uid}
        assert event["source"]["component"] == "lkgfs" and "deadbeef" not in json.dumps(event)


def test_nothing_is_written_with_the_credential_of_somebody_else(api, api_node, certificates):
    """A credential with all rights is not used to write to nodes."""
    api.rbac.allow("system:masters", ["get", "watch", "patch"], "nodes")
    api.rbac.allow("system:masters", ["patch"], "nodes/status")
    api.rbac.allow("system:masters", ["get", "watch"], "configmaps")
    api.rbac.allow("system:masters", ["create"], "events")
    api.store.node("n1", {ANNOTATION: REFERENCE})
    obj = put(api, "maxPods: 42\n")
    node = api_node(start=False)
    api.kubeconfig(node.kubeconfig, node=certificates.user("admin", "system:masters"))
    node.mount.start()
    node.follows(obj)
    node.wait("findings", "LKG7008")
    assert not api.seen(verb="patch") and not api.seen(plural="events")


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


def test_it_can_be_turned_off(api, api_node):
    allow(api)
    api.store.node("n1", {ANNOTATION: REFERENCE})
    node = api_node(remote={"condition": False, "events": False})
    node.follows(put(api, "maxPods: 42\n"))
    node.follows(put(api, "maxPods: 43\n"))
    assert not api.seen(verb="patch") and not api.seen(plural="events")


def test_a_refused_report_hurts_nobody(followed):
    api, node = followed
    with api.fault(faults.status(403, "no"), verb="patch"), api.fault(faults.hang(), plural="events"):
        node.follows(put(api, "maxPods: 43\n"))
        node.follows(put(api, "maxPods: 44\n"))


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


def test_an_exec_plugin_is_waited_for(api, api_node):
    """While it runs, the reason names it."""
    allow(api)
    api.store.node("n1", {ANNOTATION: REFERENCE})
    obj = put(api, "maxPods: 42\n")
    api.tokens["of-the-plugin"] = ("system:node:n1", ["system:nodes"])
    node = api_node(start=False, remote={"allowExec": True})
    plugin, go = os.path.join(node.mount.root, "plugin"), os.path.join(node.mount.root, "go")
    answer = {"kind": "ExecCredential", "apiVersion": "client.authentication.k8s.io/v1",
              "status": {"token": "of-the-plugin"}}
    lib.write_file(plugin, f"#!/bin/sh\nuntil [ -e {go} ]; do sleep 0.05; done\necho '{json.dumps(answer)}'\n", 0o755)
    config = json.loads(lib.read_file(node.kubeconfig))
    config["users"][0]["user"] = {"exec": {"apiVersion": answer["apiVersion"], "interactiveMode": "Never",
                                           "command": plugin}}
    lib.write_file(node.kubeconfig, json.dumps(config), 0o600)
    node.mount.start()
    node.wait("condition", f"there is no credential yet: exec plugin {plugin}: its answer is waited for")
    lib.write_file(go, "")
    node.follows(obj)


def test_no_credential(api_node):
    node = api_node(start=False, remote={"kubeconfig": ""})
    node.mount.start()
    node.wait("findings", "LKG7009")
    node.wait("condition", "Unknown failed to sync")
    assert "clusterDomain" in node.mount.document()


def test_a_broken_kubeconfig_names_the_field(api, api_node):
    node = api_node(start=False)
    lib.write_file(node.kubeconfig, lib.read_file(node.kubeconfig).decode().replace("client-key", "client-kex"), 0o600)
    node.mount.start()
    node.wait("findings", "LKG7001")
    assert "client-key" in node.status("findings")
    allow(api)
    api.store.node("n1", {ANNOTATION: REFERENCE})
    obj = put(api, "maxPods: 42\n")
    api.kubeconfig(node.kubeconfig, node="n1")
    node.mount.command("sync", "now")
    node.follows(obj)


def test_remote_is_off_by_default(api, api_node):
    allow(api)
    api.store.node("n1", {ANNOTATION: REFERENCE})
    put(api, "maxPods: 42\n")
    node = api_node(remote={"enabled": False})
    assert "clusterDomain" in node.mount.document() and api.n_connections == 0


def test_metrics_count_answers(followed):
    api, node = followed
    text = node.status("metrics.prom")
    assert re.search(r'^lkgfs_config_info\{component="kubelet",role="active",source_id="[^"]+"\} 1$', text, re.M)
    assert re.search(r'^lkgfs_remote_up\{[^}]*\} 1$', text, re.M)
    assert re.search(r'^lkgfs_remote_requests_total\{[^}]*code="ok"[^}]*\} [1-9]\d*$', text, re.M)
    for line in text.splitlines():
        if line.startswith("lkgfs_remote_"):
            assert f"# TYPE {re.match('[a-z_]+', line).group()} " in text
