# SPDX-License-Identifier: Apache-2.0
"""What operators and accidents do in the middle of a rollout with slots: none of it makes more nodes switch, or forgets a failure."""
import pytest

import lkgfs_testlib as lib
from lkgfs_apinode import source_id
from test_slots import rollout, slots  # noqa: F401  pylint: disable=unused-import

ONE = {"lkgfs.io/rollout-max-in-trial": "1"}
BODY = "maxPods: 13\n"


def first_of(slots, nodes, obj):
    """Wait until one node tries the content and the others wait for a slot; return it and them."""
    slots.fleet.wait(lambda: any(source_id(obj) in node.status("active") for node in nodes), "one node goes first")
    first, = [node for node in nodes if source_id(obj) in node.status("active")]
    others = [node for node in nodes if node is not first]
    for node in others:
        node.wait("condition", "waiting for a rollout slot (1 of ")
    return first, others


def shows(node, text="maxPods: 13"):
    return text in node.mount.document()


def tool(slots, *words):
    return lib.run(lib.LKGFS, "rollout", "--kubeconfig", slots.fleet.real.directory / "admin.conf", "--rollout-namespace", slots.namespace,
                   slots.fleet.reference, *words)


def succeed(slots, node):
    """Its trial passes, and its slot is given back."""
    before = sum(int(slot["successes"]) for slot in slots.all().values())
    node.live()
    slots.fleet.wait(lambda: sum(int(slot["successes"]) for slot in slots.all().values()) == before + 1, "one more success")


def test_a_halt_stops_who_waits_for_a_slot(slots):
    nodes = [slots.node() for _ in range(2)]
    first, (other,) = first_of(slots, nodes, slots.put(BODY, **ONE))
    assert tool(slots, "--halt").returncode == 0
    other.wait("condition", "True rollout halted")
    succeed(slots, first)
    other.wait("rollout", "in_trial=0")
    assert not shows(other) and "True rollout halted" in other.status("condition")
    assert tool(slots, "--resume").returncode == 0
    other.shows("maxPods: 13")


@pytest.mark.parametrize("value,words,halted", [
    ("1 ", "rollout unclear: annotation lkgfs.io/rollout-max-in-trial is \"1 \"", True),
    (None, "annotation lkgfs.io/rollout-max-in-trial is gone, its last value counts for this content", False),
])
def test_lost_limits_release_nobody(slots, value, words, halted):
    """A slip of the pen, also after the rollout has halted itself, and also when the engine is started anew."""
    nodes = [slots.node() for _ in range(2)]
    first, (other,) = first_of(slots, nodes, slots.put(BODY, **ONE))
    if halted:
        for _ in range(3):
            first.crash()
        other.wait("condition", "True rollout halted: 1 failed")
    slots.fleet.put(BODY, {"lkgfs.io/rollout-max-in-trial": value, **({} if value else {"lkgfs.io/rollout-max-failures": None})})
    other.wait("condition", words)
    other.mount.kill_child("lkgfs-engine")
    other.wait("condition", words)
    if not halted:
        succeed(slots, first)
    else:
        slots.fleet.wait(lambda: rollout(other).get("failed") == "1", "the new engine knows the failure")
    if value or halted:
        assert not shows(other)
    else:  # the last value counts: it goes with a slot
        other.shows("maxPods: 13")
        assert [slot["node"] for slot in slots.all().values() if slot["state"] == "held"] == [other.name]


def test_a_configmap_that_is_made_anew(slots):
    """Who tries the one before takes a slot of the new one only when that trial has ended."""
    nodes = [slots.node() for _ in range(2)]
    first, (other,) = first_of(slots, nodes, slots.put(BODY, **ONE))
    slots.fleet.real.delete_configmap(slots.fleet.configmap)
    anew = slots.put("maxPods: 14\n", **ONE)
    other.follows(anew)
    first.wait("condition", f"waiting for a rollout slot: the trial of ConfigMap {slots.fleet.reference} ends first")
    assert not shows(first, "maxPods: 14")
    first.live()
    first.wait("condition", "waiting for a rollout slot (1 of 1 in trial")
    assert not shows(first, "maxPods: 14")


def test_a_drop_in_that_does_not_go_with_it_says_nothing_about_it(slots):
    """A node waits, and its own layers change: it cannot use its slot, and that is no failure of the content."""
    nodes = [slots.node() for _ in range(2)]
    old = slots.fleet.put("serializeImagePulls: false\n", {})
    for node in nodes:
        node.follows(old)
        node.live()
        node.wait("last-known-good", source_id(old))
    new = slots.put("serializeImagePulls: true\n", **ONE)
    first, (other,) = first_of(slots, nodes, new)
    other.mount.drop("50-pulls.conf", "maxParallelImagePulls: 5\n")
    assert shows(other, "maxParallelImagePulls: 5")
    succeed(slots, first)
    slots.fleet.wait(lambda: [slot["node"] for slot in slots.all().values()] == [other.name], "its turn")
    assert shows(other, "serializeImagePulls: false"), other.status("condition")
    other.mount.drop("50-pulls.conf", "maxPods: 5\n")
    slots.fleet.wait(lambda: shows(other, "serializeImagePulls: true"), "it goes with it again")
    assert "failed" not in {slot["state"] for slot in slots.all().values()}


def test_an_operator_who_goes_back_on_one_node_does_not_halt_it(slots):
    nodes = [slots.node() for _ in range(2)]
    first, (other,) = first_of(slots, nodes, slots.put(BODY, **ONE))
    first.mount.command("rollback", "lkg")
    slots.fleet.wait(lambda: shows(other), "the other has the slot")
    assert "failed" not in {slot["state"] for slot in slots.all().values()} and not shows(first)


def test_limits_that_come_while_it_is_tried(slots):
    """Who tries it takes a slot at once, so that the others wait for what comes of it."""
    nodes = [slots.node() for _ in range(1)]
    nodes[0].follows(slots.fleet.put(BODY, {}))
    slots.put(BODY, **ONE)
    slots.fleet.wait(lambda: [slot["node"] for slot in slots.all().values()] == [nodes[0].name], "it takes a slot")
    nodes.append(slots.node())
    nodes[1].wait("condition", "waiting for a rollout slot (1 of ")
    succeed(slots, nodes[0])
    slots.fleet.wait(lambda: shows(nodes[1]), "its turn")
