# SPDX-License-Identifier: Apache-2.0
"""Every ordered pair of states of a reference, in one walk over all of them; each step is compared with a model.

The model is the proposal's table of end-to-end cases: a bad source is assigned but never active, an unclear reference changes
nothing, `local` ends remote configuration; a generation changes only with the document. Rule: docs/specification.md 4.3.
"""
import json
import os
import re

import pytest

import lkgfs_testlib as lib
from lkgfs_node import Node

STATES = ("local", "nothing", "good", "other", "unparsable", "invalid", "missing key", "unclear")
REASONS = {"unparsable": "failed to parse current", "invalid": "failed to validate current",
           "missing key": "failed to load current"}
ERRORS = {"unparsable": "failed to load config, see status findings for details",
          "missing key": "failed to load config, see status findings for details",
          "invalid": "failed to validate config, see status findings for details"}
UNCLEAR = "failed to sync: the reference is unclear, see the condition"
INIT = "current is set to the local default, and an init config was provided"


def walk(n):
    """A closed walk over the complete directed graph of n nodes (no loops) that takes each edge once (Hierholzer)."""
    ways = {a: [b for b in range(n) if b != a] for a in range(n)}
    stack, found = [0], []
    while stack:
        if ways[stack[-1]]:
            stack.append(ways[stack[-1]].pop())
        else:
            found.append(stack.pop())
    return found[::-1]


A_FINDING = "the first error of findings"


def told(n):
    """What status/<c>/error tells."""
    error = n.status("error")
    first = next((line for line in n.status("findings").splitlines() if re.search(r"(^|: )error: ", line)), None)
    return A_FINDING if first and error == first + "\n" else error.rstrip("\n")


class Model:
    """What must be seen after each step; `soaked`: what is followed is promoted at once."""

    def __init__(self, node, soaked):
        self.node, self.soaked = node, soaked
        self.local = node.mount.document()
        self.assigned = self.active = self.good = "init"
        self.document, self.good_document = self.local, self.local
        self.bad, self.error, self.status, self.reason = {}, UNCLEAR, "Unknown", "no reference yet"

    def reset(self):
        self.assigned = self.active = self.good = "init"
        self.document = self.good_document = self.local
        self.error, self.status, self.reason = "", "True", INIT

    def follow(self, source, document):
        self.assigned = self.active = source
        self.document = document
        if self.soaked:
            self.good, self.good_document = source, document
        self.error, self.status, self.reason = "", "True", "all checks passed"

    def refuse(self, source, state):
        self.assigned = source
        self.bad[source] = f"{REASONS[state]} (UID: {source.partition('@')[0]})"
        self.error, self.status, self.reason = ERRORS[state], "False", self.bad[source]

    def unclear(self):
        if self.assigned in self.bad:
            return  # a source that is known to be bad is reported, even if the desired configuration is unclear
        self.error, self.status, self.reason = UNCLEAR, "Unknown", "failed to sync, desired config unclear, cause: "

    def differences(self):
        n = self.node
        status = n.config_json()
        word, rest = n.mount.condition()
        seen = {"sources": n.sources(), "error": (status["error"], told(n)), "document": n.mount.document(),
                "bad": {source: entry["reason"] for source, entry in n.bad().items()}, "good": n.good_document(),
                "status": word, "reason": rest[:len(self.reason)], "rejected": status.get("rejected", {}).get("source")}
        want = {"sources": (self.assigned, self.active, self.good),
                "error": (self.error, A_FINDING if "see status findings" in self.error else self.error), "document": self.document,
                "bad": self.bad, "good": self.good_document, "status": self.status, "reason": self.reason,
                "rejected": self.assigned if self.assigned in self.bad else None}
        return {key: (seen[key], want[key]) for key in want if seen[key] != want[key]}


class Objects:
    """The object of each state; `how`: the same name and uid updated in place, recreated each time, or one object per state."""

    def __init__(self, node, how):
        self.node, self.how, self.count, self.made = node, how, 0, {}

    def get(self, state):
        """(object, body)"""
        if self.how == "toggled" and state in self.made:
            return self.made[state]
        self.count += 1
        body = {"good": f"maxPods: {self.count}\n", "other": f"maxPods: {self.count}\nregistryBurst: 3\n",
                "unparsable": f"maxPods: [{self.count}\n", "invalid": f"kubeAPIQPS: -{self.count}\n",
                "missing key": f"maxPods: {self.count}\n", "unclear": f"maxPods: {self.count}\n"}[state]
        uid = "8f1c" if self.how == "in place" else f"u{self.count}"
        obj = self.node.configmap(body, uid=uid, version=self.count)
        if state == "missing key":
            obj["data"]["wrong"] = obj["data"].pop("kubelet")
        if state == "unclear":
            obj["metadata"]["namespace"] = "elsewhere"
        self.made[state] = (obj, body)
        return self.made[state]


def take(node, model, objects, state):
    """Bring the reference into a state, and the model with it."""
    if state == "nothing":
        os.unlink(node.file)
        model.reset()
    elif state == "local":
        node.put("local\n")
        model.reset()
    elif state == "unclear":
        node.put(objects.get(state)[0])
        model.unclear()
    else:
        obj, body = objects.get(state)
        source = f"{obj['metadata']['uid']}@{obj['metadata']['resourceVersion']}"
        node.put(obj)
        if state in REASONS:
            model.refuse(source, state)
        else:
            hint = model.local.splitlines(keepends=True)[0]
            fields = sorted(["apiVersion: kubelet.config.k8s.io/v1beta1\n", "kind: KubeletConfiguration\n",
                             *body.splitlines(keepends=True)])
            model.follow(source, hint + "".join(fields))


@pytest.mark.limit(200)
@pytest.mark.parametrize("soaked", [False, True], ids=["on trial", "soaked"])
@pytest.mark.parametrize("how", ["in place", "made anew", "toggled"])
def test_every_pair(mounts, how, soaked):
    node = Node(mounts, trial={"duration": "0s" if soaked else "10m"})
    model, objects = Model(node, soaked), Objects(node, how)
    node.put("local\n")
    model.reset()
    edges = [STATES[i] for i in walk(len(STATES))]
    for before, state in zip(edges, edges[1:]):
        generation, document = node.mount.generation(), node.mount.document()
        take(node, model, objects, state)
        try:
            node.mount.wait_for(lambda: not model.differences(), timeout=10)
        except lib.Failure as failure:
            raise AssertionError(f"{before} -> {state}: {json.dumps(model.differences(), indent=1)}") from failure
        assert (node.mount.generation() == generation) == (model.document == document), f"{before} -> {state}"
        generation = node.mount.generation()
        node.mount.command("sync", "now")
        assert not model.differences() and node.mount.generation() == generation, f"{before} -> {state}, looked at again"


def test_an_update_that_changes_nothing(mounts):
    """The same object written again keeps its version, its generation and its trial."""
    node = Node(mounts)
    obj = node.configmap("maxPods: 42\n")
    node.put(obj)
    node.wait("condition", "True all checks passed")
    generation, trial = node.mount.generation(), node.trial()["started"]
    for text in (json.dumps(obj), json.dumps(obj, indent=4), json.dumps(obj, sort_keys=True)):
        node.put(text)
        node.mount.command("sync", "now")
        assert node.mount.generation() == generation and node.trial()["started"] == trial
        assert node.status("condition").startswith("True all checks passed") and node.status("error") == ""


def again_kill(node):
    node.mount.kill_child("lkgfs-engine")
    node.mount.child("lkgfs-engine")


@pytest.mark.parametrize("again", [again_kill, lambda node: node.mount.reload()], ids=["engine killed", "reloaded"])
@pytest.mark.parametrize("end", ["local\n", None])
def test_a_reset_stays_one(mounts, again, end):
    """A reset is remembered by every successor, even when there is nothing left to read."""
    node = Node(mounts)
    node.assign("maxPods: 42\n")
    node.wait("condition", "True all checks passed")
    if end:
        node.put(end)
        node.wait("assigned", "init")
    os.unlink(node.file)
    node.wait("assigned", "init")
    for _ in range(2):
        again(node)
        node.mount.command("sync", "now")
        assert node.status("condition").startswith(f"True {INIT}: ") and node.status("error") == ""


@pytest.mark.parametrize("again", [again_kill, lambda node: node.mount.reload()], ids=["engine killed", "reloaded"])
def test_what_was_missing_at_the_start_is_no_reset_later(mounts, again):
    node = Node(mounts, trial={"duration": "0s"})
    source = node.assign("maxPods: 42\n")
    node.wait("last-known-good", source)
    node.mount.stop()
    os.unlink(node.file)
    node.mount.start()
    for _ in range(2):
        again(node)
        node.mount.command("sync", "now")
        assert node.sources() == (source,) * 3
        node.wait("condition", "Unknown failed to sync, desired config unclear, cause: no reference yet: ")
    node.put(node.configmap("maxPods: 43\n"))
    node.wait("last-known-good", "8f1c@2")
    os.unlink(node.file)
    node.wait("condition", f"True {INIT}: ")
