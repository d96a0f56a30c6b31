#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Rollouts of whole fleets with real clocks: virtual nodes (fleet-nodes) against a real kube-apiserver.

    tests/fleet/fleet.py [--nodes 40] [--slots 8] [--duration 2] [SCENARIO...]

Each scenario puts a version that every node takes, then the one that matters, and measures from there until every node has it or
waits for ever. In every run: nodes with a broken configuration, at a time and in all, and nodes on trial at a time, are at most
as many as there are slots. Prints a table; --json FILE has everything, --plot FILE draws the last rollout.
"""
import argparse
import contextlib
import json
import os
import pathlib
import queue
import shutil
import subprocess
import sys
import tempfile
import threading
import time

sys.path[:0] = [str(pathlib.Path(__file__).resolve().parent), str(pathlib.Path(__file__).resolve().parents[1] / "lib")]
sys.dont_write_bytecode = True

import lkgfs_testlib as lib  # noqa: E402
from fleet_real import RealCluster  # noqa: E402

PROGRAM = lib.BUILD / "tests/fleet/fleet-nodes"
HEADER = "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n"
ENDS = {"good", "bad", "halted", "vanished"}


def clock():
    return time.clock_gettime(time.CLOCK_BOOTTIME)


class Broken(AssertionError):
    """The promise does not hold."""


class Nodes:
    """The processes with the nodes, and everything that they have said."""

    def __init__(self, cluster, configmap, options, lapse=1, wrong_clocks=False):
        self.lines, self.said, self.figures = queue.Queue(), [], []
        self.processes, self.threads = [], []
        n, k = options.nodes, options.processes or (options.nodes + 99) // 100
        for i in range(k):
            first, last = n * i // k, n * (i + 1) // k
            words = [PROGRAM, "--directory", cluster.directory, "--source", f"kube-system/{configmap}", "--first", first, "--nodes",
                     last - first, "--duration", options.duration, "--spread", options.spread, "--lapse", lapse]
            words += ["--wrong-clocks"] if wrong_clocks else []
            process = subprocess.Popen(list(map(str, words)), stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                       stderr=open(cluster.directory / f"nodes-{i}.log", "wb"))  # pylint: disable=consider-using-with
            thread = threading.Thread(target=self._read, args=(process,), daemon=True)
            thread.start()
            self.processes.append(process)
            self.threads.append(thread)

    def _read(self, process):
        for line in process.stdout:
            self.lines.put(json.loads(line))
        self.lines.put({"what": "ended", "t": clock()})

    def wait(self, predicate, what, seconds):
        """Read until predicate() is true."""
        end = time.monotonic() + seconds
        while not predicate():
            try:
                line = self.lines.get(timeout=max(0, end - time.monotonic()))
            except queue.Empty:
                raise Broken(f"did not happen in {seconds:.0f} s: {what}; {self.summary()}") from None
            if line["what"] == "ended":
                raise Broken(f"a process with nodes has ended: {what}")
            (self.figures if line["what"] == "figures" else self.said).append(line)

    def ask(self):
        """Figures of all processes, added up."""
        self.figures = []
        for process in self.processes:
            process.stdin.write(b"\n")
            process.stdin.flush()
        self.wait(lambda: len(self.figures) == len(self.processes), "figures", 60)
        total = {key: sum(one[key] for one in self.figures) for key in ("memory", "cpu", "received", "sent", "connections", "conflicts")}
        total["answers"] = {key: sum(one["answers"].get(key, 0) for one in self.figures) for key in self.figures[0]["answers"]}
        return total

    def with_word(self, what, version):
        return {line["node"] for line in self.said if line["what"] == what and line["version"] == version}

    def summary(self):
        counts = {}
        for line in self.said:
            counts[line["what"], line["version"]] = counts.get((line["what"], line["version"]), 0) + 1
        return ", ".join(f"{n} {what} {version}" for (what, version), n in counts.items())

    def close(self):
        for process in self.processes:
            process.stdin.close()
        for process in self.processes:
            try:
                process.wait(60)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        for thread in self.threads:
            thread.join(10)
        for process in self.processes:
            process.stdout.close()


# ---- the promise ----

def rounds(nodes, slots):
    """Trials one after the other, with slow start."""
    done = n = 0
    while done < nodes:
        done += min(slots, done + 1, nodes - done)
        n += 1
    return n


def most(lines, more, less):
    """How many at a time were in a state, and how many ever."""
    now, ever, most_at_once = set(), set(), 0
    for line in sorted(lines, key=lambda line: line["t"]):
        if line["what"] in more:
            now.add(line["node"])
            ever.add(line["node"])
        elif line["what"] in less:
            now.discard(line["node"])
        most_at_once = max(most_at_once, len(now))
    return most_at_once, len(ever)


def judge(lines, versions, slots):
    """Raise if more nodes are broken, or try a version, than there are slots. Lines of one millisecond are in no order: ends first."""
    lines = sorted(lines, key=lambda line: (line["t"], line["what"] in ("switched", "broken")))
    broken = most([line for line in lines if line["version"] in versions or line["what"] == "mended"], {"broken", "vanished"}, {"mended"})
    for version in versions:
        of_version = [line for line in lines if line["version"] == version]
        at_once, ever = most(of_version, {"broken", "vanished"}, set())
        if ever > slots:
            raise Broken(f"{ever} nodes were broken by version {version}, there are {slots} slots")
        at_once, _ = most(of_version, {"switched"}, {"good", "bad"})
        if at_once > slots:
            raise Broken(f"{at_once} nodes tried version {version} at a time, there are {slots} slots")
    if broken[0] > slots:
        raise Broken(f"{broken[0]} nodes were broken at a time, there are {slots} slots")
    return {"broken_at_once": broken[0], "broken_ever": broken[1]}


# ---- scenarios ----

class Run:
    """One rollout."""

    def __init__(self, cluster, name, options):
        self.cluster, self.name, self.options = cluster, name, options
        self.scenario = SCENARIOS[name]
        self.configmap = f"config-{name}"
        self.versions, self.phases, self.begun = [], [], None
        self.result = None  # also if it is not what it should be

    def put(self, behaves, slots=True):
        """A new version; return its resourceVersion."""
        limits = {"lkgfs.io/rollout-max-in-trial": str(self.options.slots), "lkgfs.io/rollout-max-failures": str(self.options.failures),
                  "lkgfs.io/rollout-fleet": str(self.options.nodes)}
        text = f"{HEADER}# behaves: {behaves}\n# version {len(self.versions)}\n"
        obj = self.cluster.put(self.configmap, text, limits if slots else {})
        self.versions.append(obj["metadata"]["resourceVersion"])
        self.uid = obj["metadata"]["uid"]
        return self.versions[-1]

    def phase(self, name):
        """Ends the last phase and begins one."""
        now, counters, nodes = clock(), self.cluster.counters(), self.nodes.ask()
        if self.begun:
            label, since, before, nodes_before = self.begun
            seconds = now - since
            new = {key: counters[key] - before.get(key, 0) for key in counters if key != "memory"}
            new.update(seconds=seconds, memory=counters["memory"], memory_before=before["memory"], name=label,
                       nodes_received=nodes["received"] - nodes_before["received"], nodes_sent=nodes["sent"] - nodes_before["sent"],
                       nodes_cpu=nodes["cpu"] - nodes_before["cpu"], nodes_memory=nodes["memory"],
                       nodes_conflicts=nodes["conflicts"] - nodes_before["conflicts"])
            self.phases.append(new)
        self.begun = name, now, counters, nodes
        if self.options.verbose and name:
            print(f"{self.name}: {name}, {self.nodes.summary()}", file=sys.stderr, flush=True)

    def over(self, version):
        """Have all nodes come to an end with this version?"""
        def check():
            ended = {line["node"] for line in self.nodes.said if line["version"] == version and line["what"] in ENDS}
            return len(ended) >= self.options.nodes
        return check

    def play(self):
        o = self.options
        self.cluster.prepare(self.configmap)
        with contextlib.ExitStack() as stack:
            memory = self.cluster.counters()["memory"]
            self.put("good", slots=False)
            self.nodes = Nodes(self.cluster, self.configmap, o, self.scenario.get("lapse", 1), self.scenario.get("wrong_clocks", False))
            stack.callback(self.nodes.close)
            self.phase("connect")
            self.nodes.wait(lambda: len(self.nodes.with_word("good", self.versions[0])) == o.nodes, "every node follows the first version",
                            120 + o.nodes / 10)
            self.phase("idle")
            connected = self.begun[2]["memory"]
            time.sleep(o.quiet)
            self.phase("rollout")
            start = clock()
            self.scenario["play"](self)
            end = max(line["t"] for line in self.nodes.said)
            self.phase("after")
            time.sleep(o.quiet)
            self.phase("")
            slots = self.cluster.slots(self.uid)
        lines = [line for line in self.nodes.said if line["version"] != self.versions[0] or line["what"] in ("mended", "back")]
        result = {"scenario": self.name, "nodes": o.nodes, "slots": o.slots, "duration": o.duration,
                  "seconds": end - start, "theory": rounds(o.nodes, o.slots) * o.duration,
                  **judge(lines, self.versions[1:], o.slots), "phases": self.phases, "lines": lines, "start": start,
                  "slot_objects": len(slots), "memory_per_node": (connected - memory) / o.nodes, "version": self.versions[-1]}
        result["taken"] = sum(line["what"] == "switched" for line in lines)
        for word in ("good", "bad", "halted", "vanished"):
            result[word] = len(self.nodes.with_word(word, self.versions[-1]))
        result["states"] = {state: sum(slot["state"] == state for slot in slots) for state in ("free", "held", "failed")}
        self.result = result
        self.scenario.get("check", lambda result: None)(result)
        return result

    def finish(self, version):
        theory = rounds(self.options.nodes, self.options.slots) * self.options.duration
        self.nodes.wait(self.over(version), f"version {version} is over", 120 + 6 * theory)


def plain(behaves):
    def play(run):
        run.finish(run.put(behaves))
    return play


def disturbed(disturb, behaves="good"):
    """When a third of the nodes have it, something happens to the API server."""
    def play(run):
        version = run.put(behaves)
        run.nodes.wait(lambda: len(run.nodes.with_word("good", version)) >= run.options.nodes / 3, "a third has it", 600)
        disturb(run.cluster)
        run.finish(version)
    return play


def pauses(cluster):
    for _ in range(3):
        cluster.pause(4)
        time.sleep(2)


def two_versions(run):
    """A bad one, and the mended one as soon as the first node tries it."""
    first = run.put("bad")
    run.nodes.wait(lambda: run.nodes.with_word("switched", first), "the first node tries it", 120)
    run.finish(run.put("good"))


def all_good(result):
    assert result["good"] == result["nodes"], f"{result['good']} of {result['nodes']} have it"


def halted(result):
    assert result["good"] + result["halted"] + result["bad"] + result["vanished"] >= result["nodes"] and result["states"]["failed"], result["states"]


SCENARIOS = {
    "good": {"play": plain("good"), "check": all_good},
    "bad": {"play": plain("bad"), "check": halted},
    "hardware": {"play": plain("hardware")},
    "vanish": {"play": plain("vanishes"), "check": halted, "lapse": 10},
    "restart": {"play": disturbed(lambda cluster: cluster.restart(10)), "check": all_good},
    "slow": {"play": disturbed(pauses), "check": all_good},
    "compact": {"play": disturbed(lambda cluster: cluster.compact()), "check": all_good},
    "two": {"play": two_versions, "check": all_good},
    "clocks": {"play": plain("good"), "check": all_good, "wrong_clocks": True},
}


# ---- what is printed ----

def table(result):
    """Lines for people."""
    n, s = result["nodes"], result["seconds"]
    yield (f"{result['scenario']:9} {n} nodes, {result['slots']} slots: {s:.0f} s ({result['theory']:.0f} s of trials); "
           f"good {result['good']}, bad {result['bad']}, halted {result['halted']}, vanished {result['vanished']}; "
           f"broken at a time {result['broken_at_once']}, in all {result['broken_ever']}; "
           f"{result['taken']} slots taken, memory of the server for each node {result['memory_per_node'] / 1024:.0f} KiB")
    for p in result["phases"]:
        t = p["seconds"]
        yield (f"          {p['name']:8} {t:6.0f} s  {p['requests'] / t:7.1f} requests/s (PATCH {p['patches']:.0f}, LIST {p['lists']:.0f}, "
               f"slots {p['writes']:.0f}, 409 {p['conflicts']:.0f})  {p['bytes'] / t / 1024:8.1f} KiB/s answered  "
               f"{p['watch_events'] / t:8.1f} events/s {p['watch_bytes'] / t / 1024:8.1f} KiB/s  "
               f"cpu {p['cpu'] / t:.2f} + {p.get('etcd_cpu', 0) / t:.2f}, nodes {p['nodes_cpu'] / t:.2f}; "
               f"nodes got {p['nodes_received'] / t / 1024:.1f} KiB/s; {p['memory'] / 2**20:.0f} MiB, nodes {p['nodes_memory'] / 2**20:.0f} MiB")


def arguments(words=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("scenarios", nargs="*", choices=[[], *SCENARIOS], metavar="SCENARIO", help=", ".join(SCENARIOS))
    parser.add_argument("--nodes", type=int, default=40)
    parser.add_argument("--slots", type=int, default=8)
    parser.add_argument("--failures", type=int, default=1)
    parser.add_argument("--duration", type=float, default=2, help="of a trial, in seconds")
    parser.add_argument("--quiet", type=float, default=5, help="seconds of the phases in which nothing happens")
    parser.add_argument("--spread", type=float, default=0, help="seconds in which the nodes start")
    parser.add_argument("--processes", type=int, help="one for a hundred nodes by default: a loop with thousands of sockets is slow")
    parser.add_argument("--verbose", "-v", action="store_true", help="name each phase when it begins")
    parser.add_argument("--json", help="write everything to this file")
    parser.add_argument("--plot", help="draw the last rollout as SVG")
    return parser.parse_args(words)


def main():
    options = arguments()
    directory = tempfile.mkdtemp(prefix=lib.PREFIX, dir=lib.PARENT)
    results, wrong = [], 0
    try:
        cluster = RealCluster(directory, [f"node-{i}" for i in range(options.nodes)])
        try:
            for name in options.scenarios or SCENARIOS:
                run = Run(cluster, name, options)
                try:
                    run.play()
                except AssertionError as error:
                    print(f"{name}: {error}", flush=True)
                    wrong += 1
                if not run.result:
                    continue
                results.append(run.result)
                print("\n".join(table(run.result)), flush=True)
                if options.json:
                    pathlib.Path(options.json).write_text(json.dumps(results))
        finally:
            cluster.close()
    finally:
        shutil.rmtree(directory, ignore_errors=True)
    if options.plot and results:
        import fleet_plot  # pylint: disable=import-outside-toplevel
        pathlib.Path(options.plot).write_text(fleet_plot.draw(results[-1]))
    return 1 if wrong else 0


if __name__ == "__main__":
    os.nice(5)
    sys.exit(main())
