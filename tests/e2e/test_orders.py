# SPDX-License-Identifier: Apache-2.0
"""Start, end, change, sync, reload, API update, engine death: every two of them, one after the other and at once.

What the mount shows is compared with a reference implementation (lkgfs_orders). "At once" means: while the engine is stopped, so
that it finds both, or while it waits for the service manager's answer about a start. LKGFS_ORDERS=SEED:STEPS takes a random walk
of that many steps, each with one to three events; in CI it is a short one.
"""
import contextlib
import json
import os
import platform
import random
import re
import signal
import threading
import time

import pytest

import lkgfs_orders as orders
import lkgfs_testlib as lib
from lkgfs_node import Node

SEED, STEPS = (int(word) for word in os.environ.get("LKGFS_ORDERS", "616:40").split(":"))
KILLS_ARE_TOLD = tuple(int(n) for n in re.findall(r"\d+", platform.release())[:2]) >= (6, 15)  # how a process ended, from its pidfd


class Orders:
    """A mount, and the states that it may be in."""

    def __init__(self, mounts, everything, asks=False):
        self.node = Node(mounts, trial={"scope": "all" if everything else "remote", "duration": "1h", "crashLoopThreshold": 0},
                         dropins={"50-x.conf": lib.HEADER + "maxPods: 100\n"}, start=False)
        if asks:
            self.node.options["components"][0]["match"]["unit"] = "lkgfs-e2e-of-nobody.service"
            self.node.configure()
        self.node.put("local\n")
        self.node.mount.start()
        self.states = {orders.State(everything, kills_are_told=KILLS_ARE_TOLD)}
        self.count = 0
        self.threads, self.lives, self.failures = [], [], []

    # ---- events ----

    def argument(self, event):
        """What distinguishes this event from the previous one."""
        self.count += 1
        by_itself = self.count % 2 == 0
        return {"change": self.count, "update": f"u{self.count}@{self.count}", "end": by_itself}.get(event)

    def act(self, event, argument):
        """Trigger the event; return when its caller has an answer."""
        mount = self.node.mount
        if event == "start":
            self.lives.append(self.node.live())
        elif event == "end":
            for life in self.node.lives:
                if life.process.poll() is None and argument:
                    life.end(1)
                elif life.process.poll() is None:
                    life.kill()
        elif event == "change":
            mount.drop("50-x.conf", f"maxPods: {100 + argument}\n")
        elif event == "update":
            self.node.put(self.node.configmap(f"registryBurst: {argument.partition('@')[2]}\n", uid=argument.partition("@")[0],
                                              version=argument.partition("@")[2]))
        elif event == "sync":
            with contextlib.suppress(OSError):  # ETIMEDOUT, if the engine died
                mount.command("sync", "now")
        elif event == "reload":
            mount.reload()
        elif event == "death":
            mount.kill_child("lkgfs-engine")

    def in_background(self, event, argument):
        def run():
            try:
                self.act(event, argument)
            except Exception as failure:  # pylint: disable=broad-exception-caught
                self.failures.append(f"{event}: {failure!r}")

        self.threads.append(threading.Thread(target=run))
        self.threads[-1].start()

    def join(self):
        for thread in self.threads:
            thread.join(30)
            assert not thread.is_alive(), "somebody still waits"
        self.threads.clear()
        assert not self.failures, self.failures

    # ---- comparing ----

    def shown(self):
        """The visible state, without the parts that the model leaves open."""
        node = self.node
        status = node.trial()
        return {"document": self.document(node.mount.document()), "sources": node.sources(),
                "bad": sorted(name if not name.startswith("local@") else "local" for name in node.bad()),
                "trial": (status["state"], status["prior_starts"] if status["state"] == "running" else ""),
                "condition": node.status("condition").split()[0], "read": sorted(self.document(life.document) for life in self.lives)}

    @staticmethod
    def document(text):
        burst = re.search(r"^registryBurst: (\d+)$", text, re.M)
        return (f"u{burst[1]}@{burst[1]}" if burst else "init", int(re.search(r"^maxPods: (\d+)$", text, re.M)[1]) - 100)

    @staticmethod
    def expected(state):
        return {"document": state.served, "sources": (state.assigned, state.active, state.good),
                "bad": sorted(name if isinstance(name, str) else "local" for name in state.bad),
                "trial": (state.trial, str(state.prior) if state.trial == "running" else ""),
                "condition": "True" if state.healthy else "False", "read": sorted(state.read)}

    def settle(self, what):
        """Wait until the mount shows one of the states; reading everything must then not change anything."""
        def matching():
            shown = self.shown()
            return {state for state in self.states if self.expected(state) == shown}

        try:
            found = self.node.mount.wait_for(matching, timeout=10)
        except lib.Failure as failure:
            wanted = [self.expected(state) for state in self.states]
            raise AssertionError(f"{what}: {json.dumps(self.shown())}\n is none of\n" +
                                 "\n".join(json.dumps(want) for want in wanted)) from failure
        shown, generation = self.shown(), self.node.mount.generation()
        self.node.mount.sync()
        assert (self.shown(), self.node.mount.generation()) == (shown, generation), f"{what}: another one after a sync"
        self.lives.clear()
        self.states = {state.but(read=()) for state in found}

    # ---- orders ----

    def one(self, event):
        argument = self.argument(event)
        self.states = orders.together(self.states, [(event, argument)])
        self.act(event, argument)
        self.settle(event)

    def at_once(self, *events, judged=False):
        """All of them while the engine is stopped; @judged: one after the other, without waiting for an answer."""
        arguments = [(event, self.argument(event)) for event in events]
        self.states = orders.together(self.states, arguments)
        engine = self.node.mount.child("lkgfs-engine")
        if not judged:
            lib.stop_process(engine)
        for event, argument in arguments:
            if event != "death" or judged:
                self.in_background(event, argument)
                time.sleep(0.05)  # only makes this order likely: both orders give right results
        if not judged:
            os.kill(engine, signal.SIGKILL if "death" in events else signal.SIGCONT)
        self.join()
        self.settle(" and ".join(events) + (" while it is judged" if judged else " at once"))

    def prepare(self):
        """Something new on trial, one counted start of it, and its process alive: the next start exceeds the threshold."""
        self.one("end")
        self.one("update")
        self.one("start")


SCOPES = pytest.mark.parametrize("everything", [False, True], ids=["remote", "all"])


@pytest.mark.limit(300)
@SCOPES
@pytest.mark.parametrize("first", orders.EVENTS)
def test_one_after_the_other(mounts, everything, first):
    o = Orders(mounts, everything)
    for second in orders.EVENTS:
        o.prepare()
        o.one(first)
        o.one(second)


@pytest.mark.limit(300)
@SCOPES
@pytest.mark.parametrize("first", orders.EVENTS)
def test_at_once(mounts, everything, first):
    o = Orders(mounts, everything)
    for second in orders.EVENTS[orders.EVENTS.index(first):]:
        if (first, second) != ("death", "death"):
            o.prepare()
            o.at_once(first, second)


@pytest.mark.limit(300)
@SCOPES
def test_while_a_start_is_judged(mounts, everything):
    """The service manager is asked why it started, and does not answer: the engine waits a second and does other work meanwhile."""
    o = Orders(mounts, everything, asks=True)
    for second in orders.EVENTS:
        o.prepare()
        o.at_once("start", second, judged=True)


@pytest.mark.limit(3600)
@SCOPES
def test_a_walk(mounts, everything):
    rng = random.Random(f"{SEED}-{everything}")
    o = Orders(mounts, everything)
    for step in range(STEPS):
        events = rng.choices(orders.EVENTS, k=rng.choice([1, 1, 2, 3]))
        try:
            if len(events) == 1:
                o.one(events[0])
            else:
                o.at_once(*events)
        except AssertionError as failure:
            raise AssertionError(f"LKGFS_ORDERS={SEED}:{STEPS}, step {step} {events}: {failure}") from failure
