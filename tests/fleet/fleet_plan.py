#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prints the tables of docs/planning-a-rollout.md: how long a rollout takes and what the API server has to do, from what fleet.py has
measured for one node and one slot.
"""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

from fleet import rounds  # noqa: E402

# Measured with 1,000 nodes against kube-apiserver 1.36 (docs/planning-a-rollout.md names the command).
EVENT_BYTES = 1200  # of one slot event of a watch
EVENT_CPU_S = 9e-5  # of the API server
SLOT_BYTES = 1100   # of one slot in a list
HANDOVER_S = 15     # from a slot that is given back to the next node that has it, on average of a round
CONFLICTS = 4.5     # per slot that is taken

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


def main():
    print("| nodes | slots | hours, trials of 10 min | of 1 h | requests/s | events/s | processors | bytes/s | bytes in all |")
    print("| ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |")
    for nodes, choices in FLEETS:
        for slots in choices:
            print(row(f"{nodes:,}", nodes, slots))
    for pools in POOLS:
        print(row(f"{pools} pools of {100000 // pools:,}", 100000 // pools, 500, pools))


if __name__ == "__main__":
    main()
