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
CONFLICTS = 2.5     # per slot that is taken

FLEETS = ((10, (2, 5)), (100, (5, 20)), (1000, (20, 100)), (10000, (100, 500)), (100000, (500, 1000)))
TRIALS = (10, 60)
POOLS = (10, 50)


def hours(nodes, slots, minutes):
    return rounds(nodes, slots) * (minutes * 60 + HANDOVER_S) / 3600


def load(nodes, slots, minutes):
    """Averages over the rollout: requests and watch events a second, processors of the API server, bytes a second; and bytes in all."""
    seconds = hours(nodes, slots, minutes) * 3600
    writes = 2 + 2 * minutes // (minutes + 3)  # take and give back; renewed after half of trial and three minutes
    requests = nodes * (1 + writes + 2 * CONFLICTS + 1)  # the first list; conflicts and their lists; the list after a take
    events = nodes * writes * nodes
    volume = events * EVENT_BYTES + nodes * (1 + CONFLICTS) * slots * SLOT_BYTES
    return requests / seconds, events / seconds, events / seconds * EVENT_CPU_S, volume / seconds, volume


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
    requests, events, processors, rate, volume = load(nodes, slots, TRIALS[0])
    return (f"| {name} | {slots:,} | {times[0]} | {times[1]} | {number(requests)} | {number(events)} | {number(processors)} | "
            f"{human(rate)} | {human(pools * volume)} |")


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
    print("| nodes | slots | hours, trials of 10 min | of 1 h | requests/s | events/s | processors | bytes/s | bytes in all |")
    print("| ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |")
    for nodes, choices in FLEETS:
        for slots in choices:
            print(row(f"{nodes:,}", nodes, slots))
    for pools in POOLS:
        print(row(f"{pools} pools of {100000 // pools:,}", 100000 // pools, 500, pools))


if __name__ == "__main__":
    main()
