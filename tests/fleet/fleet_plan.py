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
EVENT_BYTES = 1100     # of one slot event of a watch
SLOT_BYTES = 1100      # of one slot in a list
HANDOVER_S = 2         # from a slot that is given back to the next node that has it
CONFLICTS = 0.5        # per slot that is taken
NODE_KIB = 180         # memory of the API server for a connected node: one connection, three watches

FLEETS = ((10, (2, 5)), (100, (5, 20)), (1000, (20, 100)), (10000, (100, 500)), (100000, (500, 1000)))
TRIALS = (10, 60)


def hours(nodes, slots, minutes):
    return rounds(nodes, slots) * (minutes * 60 + HANDOVER_S) / 3600


def load(nodes, slots, minutes):
    """Averages over the rollout: requests a second, watch events a second, bytes a second; and bytes in all."""
    seconds = hours(nodes, slots, minutes) * 3600
    writes = 2 + 4 * minutes / (minutes + 5)  # take and give back; renewed every quarter of trial and five minutes
    requests = nodes * (1 + writes + 2 * CONFLICTS + 1)  # the first list; conflicts and their lists; the list after a take
    events = nodes * writes * nodes
    volume = events * EVENT_BYTES + nodes * (2 + CONFLICTS) * slots * SLOT_BYTES
    return requests / seconds, events / seconds, volume / seconds, volume


def human(size):
    for unit in ("B", "kB", "MB", "GB", "TB"):
        if size < 1000:
            break
        size /= 1000
    return f"{size:.0f} {unit}" if size >= 10 else f"{size:.1f} {unit}"


def number(value):
    return f"{value:,.0f}" if value >= 10 else f"{value:.1f}" if value >= 0.1 else f"{value:.2f}"


def main():
    print("| nodes | slots | hours, trials of 10 min | of 1 h | requests/s | events/s | bytes/s | bytes in all |")
    print("| ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |")
    for nodes, choices in FLEETS:
        for slots in choices:
            times = [f"{hours(nodes, slots, minutes):.1f}" for minutes in TRIALS]
            requests, events, rate, volume = load(nodes, slots, TRIALS[0])
            print(f"| {nodes:,} | {slots:,} | {times[0]} | {times[1]} | {number(requests)} | {number(events)} | {human(rate)} | {human(volume)} |")


if __name__ == "__main__":
    main()
