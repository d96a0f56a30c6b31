# SPDX-License-Identifier: Apache-2.0
"""Slots of a rollout while the reference moves, on a real mount. What a real API server does with slots is in tests/realapi."""
import threading

import lkgfs_testlib as lib
from lkgfs_apinode import ANNOTATION, CONFIGMAP, REFERENCE, payload, source_id
from lkgfs_node import NAMESPACE

SLOTS = "lkgfs-rollout"
LIMITS = {"lkgfs.io/rollout-max-in-trial": "1"}
EMPTY = {"kind": "ConfigMapList", "apiVersion": "v1", "metadata": {"resourceVersion": "1"}, "items": []}


def test_the_reference_moves_while_slots_are_listed(api, api_node):
    """The answer is about the ConfigMap of before: it must not stand for that of now, and the node must not wait for ever."""
    answer = threading.Event()

    def late(exchange):
        answer.wait(lib.TIMEOUT_S)
        exchange.reply(200, EMPTY)
        return True
    api.rbac.allow("system:nodes", ["get", "watch"], "configmaps", NAMESPACE)
    api.rbac.allow("system:nodes", ["create", "list", "watch", "update"], "configmaps", SLOTS)
    api.store.node("n1", {ANNOTATION: REFERENCE})
    api.store.configmap(NAMESPACE, CONFIGMAP, payload("maxPods: 42\n"), annotations=LIMITS)
    api.fault(late, count=1, verb="list", plural="configmaps", ns=SLOTS)
    try:
        node = api_node(trial={"duration": "2s"})
        api.wait_request(verb="list", plural="configmaps", ns=SLOTS)
        api.store.delete("configmaps", NAMESPACE, CONFIGMAP)
        obj = api.store.configmap(NAMESPACE, CONFIGMAP, payload("maxPods: 42\n"), annotations=LIMITS)
        node.wait("assigned", source_id(obj))
    finally:
        answer.set()
    node.follows(obj)
    slot, = [one for one in api.store.list("configmaps") if one["metadata"]["namespace"] == SLOTS]
    assert slot["data"]["uid"] == obj["metadata"]["uid"] and slot["data"]["node"] == "n1"
