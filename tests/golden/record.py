#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Records how another release answers the recorded cases: record.py ORACLE RELEASE (1.34.4)

ORACLE answers JSON requests with what upstream's own code of that release makes of them (tests/fuzz/differential/README.md). Writes
vectors/by-release/1.34.json: what an empty document comes to, and the cases whose answer differs from the one that is recorded with
the case (releases.py compares).
"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile

import vectors

HEADERS = {"KubeletConfiguration": "kubelet.config.k8s.io/v1beta1", "KubeProxyConfiguration": "kubeproxy.config.k8s.io/v1alpha1"}
# Upstream prints a Quantity that became null as what it was before; its value is zero.
PRINTED_OTHERWISE = {"found-json-twice-quantity"}


class Oracle:
    def __init__(self, program, parent):
        self.parent = parent
        self.process = subprocess.Popen([program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                                        env={**os.environ, "TMPDIR": parent})

    def ask(self, request):
        self.process.stdin.write(json.dumps(request, default=vectors.number).encode() + b"\n")
        self.process.stdin.flush()
        reply = self.process.stdout.readline().decode().replace(f'"{self.parent}/', '"@PARENT@/')
        return vectors.parse(reply)


def main():
    program, release = sys.argv[1:]
    short = ".".join(release.split(".")[:2])
    with tempfile.TemporaryDirectory(prefix="recording") as parent:
        oracle = Oracle(program, parent)
        empty = {}
        for op, kind in vectors.KINDS.items():
            reply = oracle.ask({"op": op, "base": f"apiVersion: {HEADERS[kind]}\nkind: {kind}\n"})
            empty[kind] = reply["out"]
        differ, cases = {}, vectors.cases_of_components()
        for case in cases:
            kind = vectors.KINDS[case["op"]]
            home = vectors.change_of(case["want"], vectors.default(kind))
            reply = oracle.ask({key: value for key, value in case.items() if key not in ("want", "id", "release")})
            now = {"ok": False}
            if reply["ok"]:
                now = {"ok": True, "change": vectors.difference(empty[kind], reply["out"])}
                assert vectors.alike(vectors.merge(empty[kind], now["change"]), reply["out"]), case["id"]
            if case["id"] not in PRINTED_OTHERWISE and not vectors.alike(home, now):
                differ[case["id"]] = now
    out = {"release": release, "cases": len(cases), "inputs": vectors.digest(cases), "empty": empty, "differ": differ}
    path = vectors.BY_RELEASE / f"{short}.json"
    path.parent.mkdir(exist_ok=True)
    head = {key: out[key] for key in ("release", "cases", "inputs")}
    with open(path, "w", encoding="utf-8") as file:
        def text(value):
            return json.dumps(value, default=vectors.number, ensure_ascii=False, separators=(",", ":"))
        file.write("{" + text(head)[1:-1] + ',\n"empty":' + text(empty) + ',\n"differ":{\n')
        file.write(",\n".join(f"{text(name)}:{text(answer)}" for name, answer in sorted(differ.items())) + "\n}}\n")
    print(f"{path}: {len(differ)} of {len(cases)} cases differ")


if __name__ == "__main__":
    main()
