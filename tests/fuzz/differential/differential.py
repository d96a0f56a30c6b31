#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Searches for documents that we and upstream read differently; see README.md.

    differential.py ORACLE ANSWER [--op OP]... [--seconds N] [--seed N] [--found FILE]

ORACLE is the program that answers with upstream's own code, ANSWER is ours (BUILD/tests/fuzz/answer). Each
difference is shrunk and printed as one line of a vectors file.
"""

import argparse
import json
import os
import pathlib
import random
import sys
import time

import component
import ops as documents
import pod
from peer import Peer, alike

VECTORS = pathlib.Path(__file__).resolve().parents[2] / "golden" / "vectors"
OPS = {**documents.OPS, **component.OPS, **pod.OPS}
BATCH = 64


class Fuzzer:
    def __init__(self, oracle, ours, ops, rng):
        self.oracle, self.ours, self.ops, self.rng = oracle, ours, ops, rng
        self.asked = self.broken = 0
        self.seen = set()
        self.recent = []
        self.directory = pathlib.Path()

    def ask_oracle(self, op, requests):
        replies = self.oracle.ask([op.for_oracle(request) for request in requests])
        return [None if reply is None else op.of_oracle(reply) for reply in replies]

    def differs(self, op, request):
        """Return the oracle's reply if ours differs, else None."""
        want, got = self.ask_oracle(op, [request])[0], self.ours.ask([request])[0]
        if want is None or op.alike(request, want, got):
            return None
        for _ in range(op.asked_again):
            again = self.ask_oracle(op, [request])[0]
            if again is None or op.alike(request, again, got) or again.get("ok") != want.get("ok"):
                return None
        return want

    def shrink(self, op, request):
        """Return the smallest similar request that still differs; repeats until no smaller one is found."""
        deadline = time.monotonic() + 20
        smaller = True
        while smaller and time.monotonic() < deadline:
            smaller = False
            for candidate in op.smaller(request):
                if time.monotonic() > deadline:
                    break
                if self.differs(op, candidate) is not None:
                    request, smaller = candidate, True
                    break
        return request

    def batch(self):
        """Ask BATCH questions at once. Yields (op, request, oracle's reply, our reply) for each difference."""
        op = self.rng.choice(self.ops)
        requests = [op.generate(self.rng) for _ in range(BATCH)]
        for i, (request, want, got) in enumerate(zip(requests, self.ask_oracle(op, requests), self.ours.ask(requests))):
            self.asked += 1
            if got is None or got.get("stale"):
                self.keep_sequence(self.recent + requests[: i + 1], got)
            if want is not None and not op.alike(request, want, got) and self.differs(op, request) is not None:
                yield op, request, want, got
        self.recent = (self.recent + requests)[-4 * BATCH :]

    def keep_sequence(self, requests, got):
        """Our program ended, or answered differently from one without history: keep the requests that led there, to ask them
        again.
        """
        self.broken += 1
        name = f"sequence-{os.getpid()}-{self.broken}.jsonl"
        (self.directory / name).write_text("".join(json.dumps(request) + "\n" for request in requests))
        print(f"{'it ended' if got is None else got['stale'][:400]}: see {name}", flush=True)

    def report(self, op, request):
        """Return the vectors line of a difference, or None if an equal one has already been printed."""
        request = self.shrink(op, request)
        key = json.dumps(request, sort_keys=True)
        if key in self.seen:
            return None
        self.seen.add(key)
        want = self.differs(op, request)
        if want is None:
            return None
        case = {"id": f"found-{op.name}-{len(self.seen):04}", **request, "want": op.recorded(want)}
        return json.dumps(case, sort_keys=True, default=component.number)


def read_seeds(op):
    for path in sorted(VECTORS.glob("*.jsonl")):
        for line in path.read_bytes().splitlines():
            case = json.loads(line)
            if case.get("op") == (op.asks or op.name):
                yield {key: value for key, value in case.items() if key not in ("id", "want", "name")}


def parse():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("oracle")
    parser.add_argument("answer")
    parser.add_argument("--op", action="append", choices=sorted(OPS), help="default: all")
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=None, help="default: the time")
    parser.add_argument("--release", default="", help="of the oracle, when it is not the latest: 1.34")
    parser.add_argument("--found", type=pathlib.Path, help="append what is found to this file")
    return parser.parse_args()


def main():
    args = parse()
    sys.setrecursionlimit(100000)
    seed = args.seed if args.seed is not None else time.time_ns()
    os.environ["TMPDIR"] = "/dev/shm"  # the oracle's files; ours are there too, so that `..` is the same directory
    ops = [OPS[name](list(read_seeds(OPS[name]))) for name in args.op or sorted(OPS)]
    for op in ops:
        op.release = 100 + int(args.release.partition(".")[2]) if args.release else 0
        op.prepare(args.oracle)
    fuzzer = Fuzzer(Peer(args.oracle), Peer(args.answer), ops, random.Random(seed))
    if args.found:
        fuzzer.directory = args.found.parent
    start, told, found = time.monotonic(), 0, 0
    print(f"seed {seed}", flush=True)
    while time.monotonic() - start < args.seconds:
        for op, request, want, got in fuzzer.batch():
            line = fuzzer.report(op, request)
            if line is None:
                continue
            found += 1
            print(line, flush=True)
            for what, reply in (("wanted", want), ("got", got)):
                print(f"  {what} {json.dumps(reply, default=str)[:300]}", flush=True)
            if args.found:
                with args.found.open("a", encoding="utf-8") as file:
                    file.write(line + "\n")
        if time.monotonic() - told > 60:
            told = time.monotonic()
            print(f"{told - start:.0f} s: {fuzzer.asked} asked, {found} found, {fuzzer.broken} stale", flush=True)
    print(f"{fuzzer.asked} asked, {found} found, {fuzzer.broken} stale in {time.monotonic() - start:.0f} s")
    return 1 if found or fuzzer.broken else 0


if __name__ == "__main__":
    sys.exit(main())
