#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Judges every recorded case for every release: releases.py [--tap] BUILD

The answers are those of vectors/by-release/ (record.py). A release without them, and cases that came after they were recorded, fail.
"""
import argparse
import concurrent.futures
import pathlib
import re
import subprocess
import sys

import vectors


def releases_of(program):
    """As the tool names them: `lkgfs schema` lists none, a wrong one makes it say which there are."""
    done = subprocess.run([program, "explain", "--release", "1.1", "maxPods"], capture_output=True, text=True, check=False)
    first, last = re.search(r"1\.(\d+) to 1\.(\d+)", done.stderr).groups()
    return [f"1.{minor}" for minor in range(int(first), int(last) + 1)]


def judge(program, cases, release):
    """A line for each case, beginning with `ok` or `not ok`."""
    path = vectors.BY_RELEASE / f"{release}.json"
    if not path.exists():
        return [f"not ok {release}: no recorded answers; record.py ORACLE {release} makes them"]
    recorded = vectors.parse(path.read_text(encoding="utf-8"))
    if recorded["inputs"] != vectors.digest(cases):
        return [f"not ok {release}: recorded for {recorded['cases']} other cases; record.py ORACLE {recorded['release']} does it anew"]

    def one(case):
        kind = vectors.KINDS[case["op"]]
        want = recorded["differ"].get(case["id"]) or vectors.change_of(case["want"], vectors.default(kind))
        want = {"ok": want["ok"], **({"out": vectors.merge(recorded["empty"][kind], want["change"])} if want["ok"] else {})}
        wrong = vectors.check(program, {**case, "want": want, "release": 100 + int(release[2:])})
        return f"not ok {release} {case['id']}: {'; '.join(wrong)}" if wrong else f"ok {release} {case['id']}"

    with concurrent.futures.ThreadPoolExecutor(vectors.N_THREADS) as pool:
        return list(pool.map(one, cases))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tap", action="store_true", help="one line for each case")
    parser.add_argument("build")
    args = parser.parse_args()
    program = str(pathlib.Path(args.build).resolve() / "fs" / "tool" / "lkgfs")
    cases = vectors.cases_of_components()
    lines = [line for release in releases_of(program) for line in judge(program, cases, release)]
    failed = sum(line.startswith("not ok") for line in lines)
    for line in lines:
        if args.tap or line.startswith("not ok"):
            print(line)
    print(f"{len(lines) - failed} passed, {failed} failed")
    return 1 if failed or not cases else 0


if __name__ == "__main__":
    sys.exit(main())
