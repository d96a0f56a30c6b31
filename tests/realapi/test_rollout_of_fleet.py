# SPDX-License-Identifier: Apache-2.0
"""`lkgfs rollout NAMESPACE/NAME` of an operator, against a real kube-apiserver: the whole rollout, and what may be changed of it."""
import base64
import json
import os
import subprocess

import lkgfs_testlib as lib
from lkgfs_apinode import source_id
from test_slots import Slots, leases, slots  # noqa: F401  pylint: disable=unused-import

OPERATORS = "/O=lkgfs:operators/CN=fleet-operator"


def rollout(slots, *words, kubeconfig=None, **options):
    """Run the tool; the result has text and errors as str."""
    done = lib.run(lib.LKGFS, "rollout", "--kubeconfig", kubeconfig or slots.fleet.real.directory / "admin.conf",
                   "--rollout-namespace", slots.namespace, slots.fleet.reference, *words, **options)
    done.text, done.errors = done.stdout.decode(), done.stderr.decode()
    return done


def trying(slots, nodes, obj):
    """Wait until one node has the content on trial; return it and the others."""
    slots.fleet.wait(lambda: any(source_id(obj) in node.status("active") for node in nodes), "one node goes first")
    first, = [node for node in nodes if source_id(obj) in node.status("active")]
    return first, [node for node in nodes if node is not first]


def fail(slots, nodes, body="maxPods: 13\n"):
    """A rollout that halts itself; return the node that failed and the others, whose conditions say it in the cluster, too."""
    obj = slots.put(body)
    first, others = trying(slots, nodes, obj)
    for _ in range(3):
        first.crash()
    for node in others:
        slots.fleet.wait(lambda: (slots.fleet.real.condition(node.name) or {}).get("reason", "").startswith("rollout halted"),
                         "ConfigOK says that it is halted")
    return first, others


def row(text, node):
    """The columns of a node."""
    line, = [line for line in text.splitlines() if line.startswith(f"{node.name} ")]
    return line.split(None, 4)


def test_the_whole_rollout(slots):
    nodes = [slots.node() for _ in range(3)]
    obj = slots.put("maxPods: 13\n")
    first, others = trying(slots, nodes, obj)
    for node in others:
        slots.fleet.wait(lambda: (slots.fleet.real.condition(node.name) or {}).get("reason", "").startswith("waiting for a rollout"),
                         "ConfigOK says that it waits")
    done = rollout(slots)
    assert done.returncode == 0 and "\nstate      running\nin trial   1 of 2 at a time\ndone       0\n" in done.text, done
    assert "\nwaiting    2 of 3 nodes that refer to it\n" in done.text
    assert row(done.text, first)[1:3] == ["0", "in"] and row(done.text, others[0])[1:3] == ["-", "waiting"]
    for _ in range(3):
        first.crash()
    slots.fleet.wait(lambda: rollout(slots).returncode == 1, "it has halted")
    done = rollout(slots)
    assert "\nstate      halted: until another content, or --forgive NODE\n" in done.text
    assert row(done.text, first)[1:3] == ["0", "failed"] and "crash loop" in row(done.text, first)[4]
    value = json.loads(rollout(slots, "-o", "json").text)
    assert (value["state"], value["halted"], value["failed"], value["inTrial"], value["nodes"]) == ("halted", True, 1, 0, 3)
    assert value["slotNamespace"] == slots.namespace
    assert value["slots"][0]["node"] == first.name and value["resourceVersion"] == obj["metadata"]["resourceVersion"]


def test_forgive(slots):
    """A failure that had another cause: the next node tries it."""
    nodes = [slots.node() for _ in range(2)]
    first, (other,) = fail(slots, nodes)
    done = rollout(slots, "--forgive", "somebody")
    assert done.returncode == 2 and f"no failure of node somebody is on record in namespace {slots.namespace}; failed: {first.name}" in done.errors
    done = rollout(slots, "--forgive", first.name)
    assert done.returncode == 0 and f"forgiven: the failure of {first.name} does not count any more, 0 of 1 are left" in done.text, done
    slots.fleet.wait(lambda: "maxPods: 13" in other.mount.document(), "the other one goes")
    assert slots.all()[0]["node"] == other.name
    assert "maxPods: 13" not in first.mount.document()


def test_halt_and_resume(slots):
    node = slots.node()
    node.follows(slots.put("maxPods: 40\n"))
    node.live()
    slots.fleet.wait(lambda: [slot["successes"] for slot in slots.all().values()] == ["1"], "given back")
    done = rollout(slots, "--halt")
    assert done.returncode == 0 and done.text == "halted: no other node switches; 0 on trial go on with it, 1 have it already\n", done
    slots.fleet.put("maxPods: 41\n")
    node.wait("condition", "True rollout halted")
    done = rollout(slots)
    assert done.returncode == 1 and "\nstate      stopped: lkgfs.io/halt is \"true\", until --resume\n" in done.text
    done = rollout(slots, "--resume")
    assert (done.returncode, done.text) == (0, "resumed\n")
    node.shows("maxPods: 41")


def test_resume_does_not_forgive(slots):
    fail(slots, [slots.node() for _ in range(2)])
    done = rollout(slots, "--resume")
    assert done.returncode == 1 and "the rollout has halted itself: 1 failed" in done.text, done


def test_an_operator_needs_no_more_than_the_roles(slots):
    """contrib/rbac/operator.yaml and rollout-operator.yaml; without the former the Nodes are not known, and the rest is."""
    conf = slots.fleet.real.credential(f"operator-{slots.fleet.number}", OPERATORS)
    node = slots.node()
    node.follows(slots.put("maxPods: 40\n"))
    done = rollout(slots, kubeconfig=conf)
    assert done.returncode == 2 and f"get configmaps {slots.fleet.reference} is forbidden (403)" in done.errors, done
    slots.fleet.real.grant(f"{slots.fleet.role}-operator", "lkgfs:operators", ["get", "patch"], [slots.fleet.configmap])
    text = (lib.REPOSITORY / "contrib/rbac/rollout-operator.yaml").read_text().replace("namespace: lkgfs-rollout", f"namespace: {slots.namespace}")
    slots.kubectl("apply", "-f", "-", input=text.encode())
    slots.fleet.wait(lambda: rollout(slots, kubeconfig=conf).returncode == 0, "the roles count")
    done = rollout(slots, kubeconfig=conf)
    assert "\nwaiting    not known: list nodes is forbidden (403)" in done.text and row(done.text, node)[1:3] == ["0", "in"]
    assert rollout(slots, "--halt", kubeconfig=conf).returncode == 0
    assert rollout(slots, "--resume", kubeconfig=conf).returncode == 0


def test_halting_needs_no_more_than_patch(slots):
    """The emergency brake: whoever may not see the slots halts all the same, and is told that they are not counted."""
    group = f"lkgfs:brakemen-{slots.fleet.number}"
    conf = slots.fleet.real.credential(f"brakeman-{slots.fleet.number}", f"/O={group}/CN=brakeman")
    slots.fleet.real.grant(f"{slots.fleet.role}-brakeman", group, ["patch"], [slots.fleet.configmap])
    node = slots.node()
    node.follows(slots.put("maxPods: 40\n"))
    slots.fleet.wait(lambda: rollout(slots, "--halt", kubeconfig=conf).returncode == 0, "the role counts")
    assert rollout(slots).text.splitlines()[2] == 'state      stopped: lkgfs.io/halt is "true", until --resume'
    done = rollout(slots, "--halt", kubeconfig=conf)
    assert done.returncode == 0 and "halted: no other node switches; how many have it or try it is not known: list " in done.text, done
    assert "is forbidden (403)" in done.text and len(done.text.splitlines()) == 1
    done = rollout(slots, "--halt", "--forgive", node.name, kubeconfig=conf)
    assert done.returncode == 2 and done.text.startswith("halted: ") and "is forbidden (403)" in done.errors, done
    done = rollout(slots, "--resume", kubeconfig=conf)
    assert done.returncode == 0 and done.text.startswith("resumed; whether the rollout has halted itself is not known: list "), done
    assert "stopped" not in rollout(slots).text
    done = rollout(slots, "--forgive", node.name, kubeconfig=conf)
    assert done.returncode == 2 and "is forbidden (403)" in done.errors, done


def test_a_wrong_namespace(slots):
    """It is not said that a rollout has not begun that the nodes know to be halted."""
    fail(slots, [slots.node() for _ in range(2)])
    done = rollout(slots, "--rollout-namespace", "default")
    assert done.returncode == 1, done
    assert done.text.splitlines()[1:3] == [
        "slots      in namespace default",
        "state      unclear: no slot is in namespace default; the nodes say otherwise: are the slots in another namespace (--rollout-namespace)?"]
    done = rollout(slots, "--rollout-namespace", "nowhere")
    assert done.returncode == 1 and "no slot is in namespace nowhere; there is no such namespace; are the" in done.text, done
    value = json.loads(rollout(slots, "--rollout-namespace", "nowhere", "-o", "json").text)
    assert (value["state"], value["slotNamespace"], value["halted"]) == ("unclear", "nowhere", False) and "no such namespace" in value["slotsTrouble"]
    done = rollout(slots, "--halt", "--rollout-namespace", "default")
    assert done.returncode == 0 and done.text.endswith(" have it already (no slot is in namespace default)\n"), done


def test_leases_behind_slots_that_were_configmaps(leases):
    """A fleet has changed its remote.rolloutObjects, or somebody has made an object: what is there beside the slots hides none."""
    old = leases.put("maxPods: 41\n")
    Slots.make(leases, {"name": "no-slot", "labels": {"lkgfs.io/configmap-uid": old["metadata"]["uid"]}}, {})
    node = leases.node()
    obj = leases.put("maxPods: 13\n")
    node.follows(obj)
    done = rollout(leases)
    assert done.returncode == 0 and row(done.text, node)[2:4] == ["in", "trial"], done
    for _ in range(3):
        node.crash()
    leases.fleet.wait(lambda: rollout(leases).returncode == 1, "it has halted itself")
    assert "state      halted" in rollout(leases).text


def test_it_follows_the_rollout(slots, tmp_path):
    """Into a pipe: a table whenever something has changed. An API server that is away is said, and waited for."""
    node = slots.node()
    obj = slots.put("maxPods: 40\n")
    node.follows(obj)
    shown = tmp_path / "shown"
    with open(shown, "wb") as file:
        tool = subprocess.Popen([lib.LKGFS, "rollout", "-w", "--kubeconfig", slots.fleet.real.directory / "admin.conf", "--rollout-namespace",
                                 slots.namespace, slots.fleet.reference], stdin=subprocess.DEVNULL, stdout=file)

    def until(words):
        slots.fleet.wait(lambda: words in shown.read_text(), f"{words!r} is shown")

    try:
        until("in trial   1 of 2")
        slots.fleet.real.down()
        until("this is old, of 20")
        slots.fleet.real.up()
        node.live()
        until("done       1")
    finally:
        tool.kill()
        tool.wait()
        if not slots.fleet.real.is_up():
            slots.fleet.real.up()


def test_kubectl_plugin(slots, tmp_path):
    """`kubectl lkgfs`, with the kubeconfig that kubectl would use, and another context of it."""
    admin = slots.fleet.real.directory / "admin.conf"
    (tmp_path / "kubectl-lkgfs").symlink_to(lib.LKGFS)
    slots.put("maxPods: 40\n")
    conf = tmp_path / "config"
    lib.write_file(conf, admin.read_text().replace("current-context: x", "current-context: gone"), 0o600)
    env = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}", "KUBECONFIG": f"{tmp_path}/missing:{conf}"}
    words = ["rollout", slots.fleet.reference, "--rollout-namespace", slots.namespace]
    done = lib.run("kubectl", "lkgfs", *words, env=env)
    assert done.returncode == 2 and b'current-context is "gone", which is not in contexts; there is: x' in done.stderr, done
    done = lib.run("kubectl", "lkgfs", *words, "--context", "x", env=env)
    assert done.returncode == 0 and f"ConfigMap  {slots.fleet.reference}, key kubelet" in done.stdout.decode(), done
    slots.put("featureGates: {SidecarContainers: true}\n")
    done = lib.run("kubectl", "lkgfs", "check", "--configmap", slots.fleet.reference, "--context", "x", "--release", "1.36..1.37", env=env)
    assert done.returncode == 1 and b"SidecarContainers was dropped in 1.37" in done.stdout, done


def test_a_plugin_gives_the_credential(slots, tmp_path):
    """users[].exec, as the kubeconfigs of cloud providers have it; with the operator's own environment."""
    real = slots.fleet.real
    slots.put("maxPods: 40\n")
    status = {"clientCertificateData": (real.directory / "admin.crt").read_text(), "clientKeyData": (real.directory / "admin.key").read_text()}
    credential = {"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential", "status": status}
    lib.write_file(tmp_path / "credential", json.dumps(credential), 0o600)
    lib.write_file(tmp_path / "plugin", f"#!/bin/sh\n[ \"$MARK\" = yes ] && exec cat {tmp_path}/credential\necho no mark >&2; exit 1\n", 0o755)
    conf = tmp_path / "config"
    ca = base64.b64encode((real.directory / "ca.crt").read_bytes()).decode()
    lib.write_file(conf, json.dumps({
        "apiVersion": "v1", "kind": "Config", "current-context": "x",
        "clusters": [{"name": "c", "cluster": {"server": real.url, "certificate-authority-data": ca}}],
        "users": [{"name": "u", "user": {"exec": {"apiVersion": "client.authentication.k8s.io/v1", "command": f"{tmp_path}/plugin",
                                                  "interactiveMode": "Never"}}}],
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}]}), 0o600)
    done = rollout(slots, kubeconfig=conf, env={**os.environ, "MARK": "yes"})
    assert done.returncode == 0 and "state      not begun" in done.text, done
    done = rollout(slots, kubeconfig=conf, env={**os.environ, "MARK": "no"})
    assert done.returncode == 2 and "no mark" in done.errors and "exit status 1" in done.errors, done
