#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prints the tables of docs/planning-a-rollout.md: how long a rollout takes and what the API server has to do, from what fleet.py has
measured for one node and one slot; or, with what `fleet.py --json` has written, the tables of what was measured.

    tests/fleet/fleet_plan.py [FILE...]
"""
import json
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

from fleet import rounds  # noqa: E402

# Measured with 1,000 nodes against kube-apiserver 1.36 (docs/planning-a-rollout.md names the command).
EVENT_BYTES = 1200  # of one slot event of a watch
EVENT_CPU_S = 5e-5  # of the API server
SLOT_BYTES = 1100   # of one slot in a list
HANDOVER_S = 15     # from a slot that is given back to the next node that has it, for each round: 3 with 1,000 nodes, 20 with 10,000
CONFLICTS = 0.3     # per slot that is taken: fleet-seeds, with 1,500 nodes and 50 slots
TAKES = 2.5         # slots that are taken in a second, when many are free at a time: half of those that watch wait, 200 ms for each

FLEETS = ((10, (2, 5)), (100, (5, 20)), (1000, (20, 100)), (10000, (100, 500)), (15000, (500,)), (100000, (500, 1000)))
TRIALS = (10, 60)
POOLS = (10, 50)


def hours(nodes, slots, minutes):
    return rounds(nodes, slots) * (minutes * 60 + HANDOVER_S) / 3600


def looks(nodes, slots, minutes):
    """Lists of a node that does not watch, on average: lkg_slots_look_ns()."""
    seconds, trial, total = hours(nodes, slots, minutes) * 3600, minutes * 60, 0
    for turn in range(0, nodes, max(1, nodes // 200)):
        at, near = 0, 2 * slots
        while turn >= near:
            at += 7 / 8 * min(trial / 2 + trial * (turn - near) / slots, 7200)
            near = nodes * at / seconds + 2 * slots
            total += 1
        total += max(0, seconds * (1 - turn / nodes) - trial) / (7 / 8 * max(trial, nodes))  # from when it has it
    return total / len(range(0, nodes, max(1, nodes // 200)))


def load(nodes, slots, minutes):
    """Averages over the rollout: requests, watch events and listed slots a second, bytes a second, bytes in all; and the most events in a second."""
    seconds = hours(nodes, slots, minutes) * 3600
    watchers = min(nodes, 2 * slots)
    writes = 2 + 2 * minutes // (minutes + 3)  # take and give back; renewed after half of trial and three minutes
    lists = nodes * (2 + looks(nodes, slots, minutes))  # the first one; that after a take; looks
    requests = nodes * (writes + CONFLICTS) + lists
    events = nodes * writes * watchers
    volume = events * EVENT_BYTES + lists * slots * SLOT_BYTES
    busy = 2 * min(TAKES, slots / 2) + slots / (minutes * 60 + 180) / 0.2  # writes a second when slots change hands, renewals among them
    most = min(busy + 3 * busy ** 0.5, 2 * slots) * watchers
    return requests / seconds, events / seconds, most, lists * slots / seconds, events / seconds * EVENT_CPU_S, volume / seconds, volume


def human(size):
    for unit in ("B", "kB", "MB", "GB", "TB"):
        if size < 1000:
            break
        size /= 1000
    return f"{size:.0f} {unit}" if size >= 10 else f"{size:.1f} {unit}"


def number(value):
    return f"{value:,.0f}" if value >= 10 else f"{value:.1f}" if value >= 0.1 else f"{value:.2f}"


def row(name, nodes, slots, pools=1):
    """`pools` rollouts one after the other."""
    times = [f"{pools * hours(nodes, slots, minutes):.1f}" for minutes in TRIALS]
    requests, events, most, listed, processors, rate, volume = load(nodes, slots, TRIALS[0])
    return (f"| {name} | {slots:,} | {times[0]} | {times[1]} | {number(requests)} | {number(events)} | {number(most)} | {number(listed)} | "
            f"{number(processors)} | {human(rate)} | {human(pools * volume)} |")


def measured(result):
    rollout, = [phase for phase in result["phases"] if phase["name"] == "rollout"]
    failed, held_back = result["bad"] + result["vanished"], result["halted"]
    return (f"| {result['scenario']} | {result['nodes']:,}, {result['slots']} | {result['seconds']:.0f} ({result['theory']:.0f}) | "
            f"{result['good']:,}, {failed}, {held_back:,} | {result['broken_at_once']}, {result['broken_ever']} | "
            f"{rollout['requests']:,.0f}: {rollout['writes']:,.0f}, {rollout['conflicts']:,.0f}, {rollout['lists']:,.0f}, {rollout['patches']:,.0f} | "
            f"{rollout['watch_events']:,.0f} | {human(rollout['watch_bytes'])}, {human(rollout['bytes'])} |")


def phases(result):
    for phase in result["phases"]:
        seconds = phase["seconds"]
        yield (f"| {result['scenario']}, {phase['name']} | {number(phase['requests'] / seconds)} | {number(phase['watch_events'] / seconds)} | "
               f"{human((phase['watch_bytes'] + phase['bytes']) / seconds)} | {phase['cpu'] / seconds:.2f}, {phase.get('etcd_cpu', 0) / seconds:.2f} |")


def print_measured(paths):
    results = [result for path in paths for result in json.loads(pathlib.Path(path).read_text(encoding="utf-8"))]
    print("| scenario | nodes, slots | seconds (trials alone) | have it, failed, held back | broken at a time, in all | "
          "requests: slots written, of these 409, lists, conditions | events | bytes of events, of answers |")
    print("| --- | --- | ---: | --- | --- | --- | ---: | --- |")
    for result in results:
        print(measured(result))
    print("\n| phase | requests/s | events/s | bytes/s | processors of the API server, of etcd |\n| --- | ---: | ---: | ---: | --- |")
    for result in results:
        print("\n".join(phases(result)))


def main():
    if sys.argv[1:]:
        print_measured(sys.argv[1:])
        return
    print("| nodes | slots | hours, trials of 10 min | of 1 h | requests/s | events/s | in the worst second | slots listed/s | processors | bytes/s | "
          "bytes in all |")
    print("| ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |")
    for nodes, choices in FLEETS:
        for slots in choices:
            print(row(f"{nodes:,}", nodes, slots))
    for pools in POOLS:
        print(row(f"{pools} pools of {100000 // pools:,}", 100000 // pools, 500, pools))


if __name__ == "__main__":
    main()
