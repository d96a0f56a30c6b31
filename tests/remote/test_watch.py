# SPDX-License-Identifier: Apache-2.0
"""One object is followed: what is reported, in which order, and that no fault in between is mistaken for a change.

Rule: docs/specification.md 5.
"""
import copy
import json
import random
import signal
import time

import pytest

import lkgfs_apifaults as faults
from conftest import NAME, NAMESPACE
from lkgfs_remotetool import MEMORY_MAX


def version(obj):
    return int(obj["metadata"]["resourceVersion"])


def aged(obj, by, **data):
    """A copy with another resourceVersion."""
    obj = copy.deepcopy(obj)
    obj["metadata"]["resourceVersion"] = str(version(obj) + by)
    obj["data"].update(data)
    return obj


def proves(client, tool):
    """Check that a change still arrives, once."""
    at = tool.mark()
    obj = client.put(f"podPidsLimit: {random.randrange(1 << 30)}\n")
    assert tool.wait_version(obj, at) == obj


# ---- the object's life ----

def test_changes_arrive_in_order(server, client):
    tool = client.watching()
    for i in range(20):
        client.put(f"maxPods: {i}\n")
    tool.wait_version(client.current())
    seen = [state["data"]["kubelet"] for state in tool.states()]
    assert seen[-20:] == [f"maxPods: {i}\n" for i in range(20)]
    assert len(server.seen(verb="watch")) == 1, "one watch for all of them"


def test_deleted_and_made_again(server, client):
    tool = client.watching()
    first = client.current()
    server.store.delete("configmaps", NAMESPACE, NAME)
    tool.wait_absent()
    at = tool.mark()
    again = client.put("maxPods: 2\n")
    assert again["metadata"]["uid"] != first["metadata"]["uid"]
    assert tool.wait_version(again, at) == again


# ---- the end of a watch, as announced ----

def test_what_happens_between_two_watches_is_not_lost(server, client):
    tool = client.watching()
    with server.fault(faults.hang(), verb="watch") as rule:
        server.store.end_watches()
        server.wait(lambda: rule.hits, "the second watch")
        client.put("maxPods: 1\n")
        client.put("maxPods: 2\n")
    tool.wait_version(client.current())
    proves(client, tool)


# ---- 410 ----

@pytest.mark.parametrize("how", ["event", "status", "compacted"])
def test_gone_is_read_again(server, client, how):
    tool = client.watching()
    n_get = len(server.seen(verb="get"))
    if how == "compacted":
        server.store.pass_by(100)
        server.store.compact()
        server.store.end_watches()
    else:
        server.fault(faults.gone_event() if how == "event" else faults.status(410), count=1, verb="watch")
        server.store.end_watches()
    server.wait_request(verb="get", count=n_get + 1)
    server.wait_watch()
    proves(client, tool)


# ---- events that should not be ----

def test_a_restored_etcd_is_believed_when_it_is_read(server, client):
    """Versions that go back for good are accepted once a GET confirms them."""
    tool = client.watching()
    client.put("maxPods: 5\n")
    tool.wait_version(client.current())
    server.store.restore(50)
    at = tool.mark()
    server.store.end_watches("reset")
    server.store.inject("MODIFIED", client.current())
    old = client.put("maxPods: 6\n")
    assert version(old) == 51
    server.store.inject("MODIFIED", old)
    server.store.end_watches("reset")
    tool.wait_version(old, at)


WRONG_EVENTS = {
    "another name": lambda o: {"type": "MODIFIED", "object": {**o, "metadata": {**o["metadata"], "name": "else"}}},
    "another kind": lambda o: {"type": "MODIFIED", "object": {**o, "kind": "Secret"}},
    "another place": lambda o: {"type": "MODIFIED", "object": {**o, "metadata": {**o["metadata"], "namespace": "d"}}},
    "no object": lambda o: {"type": "MODIFIED"},
    "null": lambda o: {"type": "MODIFIED", "object": None},
    "a path": lambda o: {"type": "MODIFIED", "object": {**o, "metadata": {**o["metadata"], "uid": "../../etc"}}},
    "no version": lambda o: {"type": "MODIFIED", "object": {**o, "metadata": {"name": NAME, "namespace": NAMESPACE}}},
    "a text": lambda o: "MODIFIED",
}


@pytest.mark.parametrize("name", WRONG_EVENTS)
def test_wrong_events_are_not_told(server, client, name):
    tool = client.watching()
    at = tool.mark()
    event = WRONG_EVENTS[name](aged(client.current(), 1, kubelet="maxPods: 666\n"))
    server.store.inject_bytes(json.dumps(event).encode() + b"\n")
    proves(client, tool)
    assert all(state and "maxPods: 666" not in state["data"]["kubelet"] for state in tool.states(at))


# ---- silence ----

@pytest.mark.slow
def test_a_silent_watch_is_doubted_when_a_read_hangs(server, client):
    tool = client.watching(limits={"idle": 60_000})
    since = server.n_requests
    with server.fault(faults.hang(), verb="get") as rule:
        tool.process.send_signal(signal.SIGHUP)
        server.wait(lambda: rule.hits >= 1, "the read")
        tool.wait_mode("down")
    server.wait_request(verb="watch", since=since)
    tool.wait_mode("watch")
    proves(client, tool)


@pytest.mark.slow
@pytest.mark.parametrize("action", [faults.hang(), faults.silence(10)], ids=["hang", "header"])
def test_a_watch_that_does_not_open(server, client, action):
    with server.fault(action, verb="watch") as rule:
        tool = client.watch()
        tool.wait_state(lambda state: state)
        server.wait(lambda: rule.hits >= 2, "a second attempt")
    tool.wait_mode("watch")
    proves(client, tool)


def test_one_byte_at_a_time_is_slow_and_right(server, client):
    server.fault(faults.drip(0.001, 7), count=1, verb="watch")
    tool = client.watch(limits={"half": 20_000})
    tool.wait_state(lambda state: state)
    server.wait_watch()
    proves(client, tool)
    assert len(server.seen(verb="watch")) == 1


# ---- connections that break ----

@pytest.mark.slow
@pytest.mark.parametrize("how", ["reset", "cut"])
def test_streams_that_break_off_anywhere(server, client, how):
    """A truncated event is not reported; the next watch delivers it."""
    size = len(json.dumps({"type": "MODIFIED", "object": client.current()}))
    header = 90
    dice = random.Random(how)
    tool = client.watching()
    for at in sorted({header + 1, header + size, *(dice.randrange(header + size) for _ in range(10))}):
        before = len(server.seen(verb="watch"))
        rule = server.fault(getattr(faults, how)(at), count=1, verb="watch")
        server.store.end_watches("reset")
        server.wait(lambda: rule.hits or not server.store.watches, "the watch that will break")
        proves(client, tool)
        server.wait(lambda: len(server.seen(verb="watch")) > before)
        rule.end()
    texts = [state["data"]["kubelet"] for state in tool.states()]
    assert all(text.endswith("\n") for text in texts)


def test_a_server_that_goes_and_comes_back(server, client):
    tool = client.watching()
    at = tool.mark()
    server.refuse()
    line = tool.wait_mode("down", at, "unreachable")
    assert f"127.0.0.1:{server.port}" in line["words"]
    assert None not in tool.states(at), "a server that is gone deletes nothing"
    client.put("maxPods: 9\n")
    server.listen()
    tool.wait_version(client.current())
    tool.wait_mode("watch", at)
    assert tool.wait(lambda line: line.get("mode") == "watch" and not line["words"], since=at)
    proves(client, tool)


def test_a_server_that_is_not_there_at_first(server, client):
    server.refuse()
    tool = client.watch()
    tool.wait_mode("down")
    assert tool.states() == []
    server.listen()
    tool.wait_version(client.current())
    proves(client, tool)


def test_a_server_that_hangs_as_a_whole(server, client):
    tool = client.watching()
    at = tool.mark()
    with server.fault(faults.hang()):
        server.store.end_watches("reset")
        tool.wait_mode("down", at)
    proves(client, tool)


# ---- busy, refused ----

def test_retry_after_is_kept(server, client):
    tool = client.watching()
    rule = server.fault(faults.status(429, headers={"Retry-After": "1"}), count=1, verb="watch")
    server.store.end_watches()
    server.wait(lambda: rule.hits, "the busy server")
    server.wait_request(verb="watch", count=3)
    times = [request.time for request in server.seen(verb="watch")]
    assert times[2] - times[1] >= 1.0
    proves(client, tool)


@pytest.mark.parametrize("code", [429, 500, 502, 503, 504])
def test_a_busy_server(server, client, code):
    tool = client.watching()
    at = tool.mark()
    with server.fault(faults.status(code, "too much to do")) as rule:
        server.store.end_watches()
        server.wait(lambda: rule.hits >= 3, "several attempts")
        tool.wait_mode("down", at, "busy")
    proves(client, tool)


@pytest.mark.parametrize("action", [faults.html(), faults.body(b"{"), faults.status(400), faults.garbage(),
                                    faults.redirect("https://127.0.0.1:1/"), faults.endless_line()],
                         ids=["html", "half", "400", "garbage", "redirect", "endless"])
def test_watches_that_answer_nonsense(server, client, action):
    tool = client.watching()
    with server.fault(action, verb="watch") as rule:
        server.store.end_watches()
        server.wait(lambda: rule.hits >= 2, "a second attempt")
    proves(client, tool)
    assert tool.memory() < MEMORY_MAX


def test_get_only_is_polled(server, client):
    server.rbac.roles.clear()
    server.rbac.allow("system:nodes", ["get"], "configmaps", NAMESPACE, [NAME])
    tool = client.watch()
    tool.wait_state(lambda state: state)
    tool.wait_mode("poll")
    proves(client, tool)
    server.store.delete("configmaps", NAMESPACE, NAME)
    tool.wait_absent()


def test_polling_becomes_watching_when_it_may(server, client):
    server.rbac.roles.clear()
    role = server.rbac.allow("system:nodes", ["get"], "configmaps", NAMESPACE, [NAME])
    tool = client.watch()
    tool.wait_mode("poll")
    at = tool.mark()
    server.rbac.forbid(role)
    server.rbac.allow("system:nodes", ["get", "watch"], "configmaps", NAMESPACE, [NAME])
    tool.wait_mode("watch", at)
    proves(client, tool)


def test_forbidden_then_allowed(server, client):
    server.rbac.roles.clear()
    tool = client.watch()
    line = tool.wait_mode("down", status="forbidden")
    for word in ("get", "configmaps", 'node-config', "kube-system"):
        assert word in line["words"]
    assert tool.states() == [], "a refusal says nothing about the object"
    server.rbac.allow("system:nodes", ["get", "watch"], "configmaps", NAMESPACE)
    proves(client, tool)


# ---- memory ----

def test_an_object_that_grows_too_large(server, client):
    tool = client.watching(max_bytes=1 << 20)
    at = tool.mark()
    client.put("x" * (3 << 20))
    tool.wait(lambda line: line.get("status") == "too_large", "too large", at)
    assert all(len(state["data"]["kubelet"]) < 1 << 20 for state in tool.states(at) if state)
    assert tool.memory() < MEMORY_MAX
    proves(client, tool)


@pytest.mark.parametrize("action", [faults.endless(), faults.endless_line(), faults.bomb()],
                         ids=["endless", "line", "bomb"])
def test_floods_stay_bounded(server, client, action):
    tool = client.watching(max_bytes=3 << 20, limits={"request": 10_000})
    with server.fault(action) as rule:
        server.store.end_watches("reset")
        server.wait(lambda: rule.hits >= 3, "several floods")
    proves(client, tool)
    assert tool.memory() < MEMORY_MAX


def test_memory_does_not_grow_with_time(server, client):
    tool = client.watching()
    for i in range(30):
        client.put("x" * 100_000 + f"{i}\n")
    tool.wait_version(client.current())
    before = tool.memory()
    for i in range(300):
        client.put("x" * 100_000 + f"{i}\n")
        if i % 50 == 0:
            server.store.end_watches("reset")
    tool.wait_version(client.current())
    assert tool.memory() - before < MEMORY_MAX // 12
