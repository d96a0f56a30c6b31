#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes what an oracle says of each manifest of tests/unit/rows/pod.rows into the second part of its row: record.py ORACLE RELEASE

`accepted`, or the stage at which the kubelet refuses it, and the fields that validation names, as we call them. Only the sections of
RELEASE (136) are asked about. To add a row, write `MANIFEST =>`, record, then LKG_ROWS_WRITE=1 build/tests/unit/test-pod.
"""
import json
import pathlib
import re
import subprocess
import sys

TOP = pathlib.Path(__file__).resolve().parents[3]
sys.path.insert(0, str(TOP / "tests/fuzz/differential"))
import pod  # noqa: E402  pylint: disable=wrong-import-position,import-error

ROWS = TOP / "tests/unit/rows/pod.rows"
HEAD = "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\n"
# As in tests/unit/test-pod.c.
TEMPLATES = {
    "whole": "@",
    "meta": "apiVersion: v1\nkind: Pod\nmetadata: {name: a, @}\nspec: {containers: [{name: c, image: i}]}\n",
    "spec": HEAD + "spec: {containers: [{name: c, image: i}], @}\n",
    "container": HEAD + "spec: {volumes: [{name: v}], containers: [{name: c, image: i, @}]}\n",
    "init": HEAD + "spec: {volumes: [{name: v}], containers: [{name: c, image: i}], initContainers: [{name: d, image: i, @}]}\n",
    "volume": HEAD + "spec: {containers: [{name: c, image: i}], volumes: [{name: v, @}]}\n",
}


def manifest(template, text):
    text = re.sub(r"\\\{(\d+):([^}]*)\}", lambda m: m[2] * int(m[1]), text)
    text = re.sub(r"\\(x..|.)", lambda m: {"n": "\n", "t": "\t", "s": " "}.get(m[1], chr(int(m[1][1:], 16)) if len(m[1]) > 1 else m[1]), text)
    return TEMPLATES[template].replace("@", text)


def verdict(reply, findings):
    """@findings: ours, if they are there; a field that we call otherwise is left out."""
    if reply["ok"]:
        return "accepted"
    theirs = pod.upstream_fields(reply["error"]) if reply["stage"] == "validate" else set()
    ours = pod.our_fields(findings.replace("\\n", "\n"))
    return " ".join([reply["stage"], *sorted(name for name in theirs if pod.near(name, ours, ()) or not pod.near(name, ours))])


def main():
    oracle, release = sys.argv[1:]
    lines, asked, section = ROWS.read_text(encoding="utf-8").splitlines(), [], []
    for i, line in enumerate(lines):
        if line.startswith("== "):
            section = line.split()[1:]
        elif line and not line.startswith("#") and section[2:] == [release]:
            asked.append((i, section[1], re.split(r" \+\+ | =>", line)[0]))
    requests = "".join(json.dumps({"op": "pod", "text": manifest(template, text)}) + "\n" for _, template, text in asked)
    replies = subprocess.run([oracle], input=requests, text=True, check=True, capture_output=True).stdout.splitlines()
    for (i, _, text), reply in zip(asked, map(json.loads, replies), strict=True):
        findings = lines[i].partition(" =>")[2]
        lines[i] = f"{text} ++ {verdict(reply, findings)} =>{findings}"
    ROWS.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
