#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs recorded answers against the tool: vectors.py [--tap] BUILD [ID-OR-FILE...]

Each line of vectors/*.jsonl is a case: {"id", "op", inputs..., "want": what upstream answered}. Compared are whether it is
accepted, and the document if it is, as a JSON value. The words of an error are our own.

BUILD (or LKGFS_BUILD) is the build folder. Prints a line for each case that fails, with --tap one for each case, and at the end
`N passed, N failed`. An operation is a row in OPS. Rule: docs/specification.md 3.
"""

import argparse
import concurrent.futures
import decimal
import functools
import hashlib
import json
import os
import pathlib
import subprocess
import sys
import tempfile

VECTORS = pathlib.Path(__file__).resolve().parent / "vectors"
BY_RELEASE = VECTORS / "by-release"
RECORDED = 136  # the release that answered, unless the case names one
TIMEOUT = 60
N_THREADS = 2


def parse(text):
    return json.loads(text, parse_int=decimal.Decimal, parse_float=decimal.Decimal)


def alike(a, b):
    """Equal as JSON values; numbers by value."""
    if isinstance(a, bool) or isinstance(b, bool) or a is None or b is None:
        return a is b
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(alike(a[key], b[key]) for key in a)
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(alike(x, y) for x, y in zip(a, b))
    return type(a) is type(b) and a == b


class Tool:
    """Runs lkgfs on files in a private directory."""

    def __init__(self, program, directory):
        self.program, self.directory = program, directory

    def write(self, name, text):
        path = self.directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode())
        return str(path)

    def run(self, *words):
        """(exit status, standard output, standard error)"""
        done = subprocess.run([self.program, *words], capture_output=True, timeout=TIMEOUT, check=False)
        return done.returncode, done.stdout.decode(), done.stderr.decode(errors="replace")


def judge(what, done, accepted, *document):
    """What is wrong with a run that should have been accepted or refused: a list of at most one text."""
    status, out, err = done
    if status not in (0, 1):
        return [f"{what}: exit {status}: {err.strip()}"]
    if (status == 0) != accepted:
        return [f"{what}: accepted" if status == 0 else f"{what}: refused: {err.strip()}"]
    if accepted and document and not alike(parse(out), document[0]):
        return [f"{what}: got {json.dumps(json.loads(out))}, want {json.dumps(document[0], default=str)}"]
    return []


def run_yaml(tool, case):
    want, path = case["want"], tool.write("document.yaml", case.get("text", ""))
    lax = judge("lax", tool.run("convert", "-o", "json", path), want["ok"], want.get("out"))
    return lax + judge("strict", tool.run("convert", "--strict", "-o", "json", path), want["strictOK"])


def run_patch(kind_of_patch):
    def run(tool, case):
        want = case["want"]
        target = tool.write("target.json", json.dumps(case.get("target"), default=number))
        patch = tool.write("patch.json", json.dumps(case.get("patch"), default=number))
        kind = ["--kind", case["kind"]] if "kind" in case else []
        words = ["patch", "--type", kind_of_patch, *kind, "-o", "json", target, patch]
        return judge("patch", tool.run(*words), want["ok"], want.get("out"))

    return run


def merge(value, change):
    """A JSON merge patch (RFC 7386)."""
    merged = dict(value)
    for key, member in change.items():
        if member is None:
            merged.pop(key, None)
        elif isinstance(member, dict) and isinstance(merged.get(key), dict):
            merged[key] = merge(merged[key], member)
        else:
            merged[key] = member
    return merged


def difference(value, other):
    """The JSON merge patch that makes @other of @value."""
    patch = {key: None for key in value.keys() - other.keys()}
    for key, member in other.items():
        before = value.get(key)
        if isinstance(member, dict) and isinstance(before, dict):
            inner = difference(before, member)
            if inner:
                patch[key] = inner
        elif key not in value or not alike(before, member):
            patch[key] = member
    return patch


@functools.lru_cache
def default(kind):
    """What a document with only a header comes to in RECORDED."""
    return parse((VECTORS / f"{kind}.default.json").read_text(encoding="utf-8"))


def change_of(want, empty):
    """A recorded answer in one form: ok, and what differs from @empty."""
    if not want["ok"]:
        return {"ok": False}
    return {"ok": True, "change": want["change"] if "change" in want else difference(empty, want["out"])}


def effective(kind):
    """`want.change` is the difference between upstream's document and that of a document with only a header."""

    def run(tool, case):
        want, words = case["want"], ["render", "--effective", "-o", "json", "--kind", kind]
        words += ["--host", f"cgroup={int(case.get('cgroup', 2))}"]
        words += ["--release", f"1.{case.get('release', RECORDED) - 100}"]
        if "base" in case:
            words += ["--config", tool.write("kubelet.yaml", case["base"])]
        if "dropins" in case:
            directory = tool.directory / "kubelet.conf.d"
            directory.mkdir()
            words += ["--config-dir", str(directory)]
        for dropin in case.get("dropins", []):
            tool.write(f"kubelet.conf.d/{dropin['path']}", dropin["text"])
        if case.get("args"):
            words += ["--", *(word.replace("@DIR@", str(tool.directory)) for word in case["args"])]
        status, out, err = tool.run(*words)
        out = out.replace(str(tool.directory), "@DIR@").replace(f'"{tool.directory.parent}/', '"@PARENT@/')
        document = None
        if want["ok"]:
            document = want["out"] if "out" in want else merge(default(kind), want["change"])
        return judge("effective", (status, out, err), want["ok"], document)

    return run


def scalar(field, gate=None):
    """A text as the value of one field of a JSON base; a zero cannot be distinguished from the default."""
    def run(tool, case):
        want, base = case["want"], {"apiVersion": "kubelet.config.k8s.io/v1beta1", "kind": "KubeletConfiguration"}
        if gate:
            base["featureGates"] = {gate: True}
        parent = base
        for part in field.split(".")[:-1]:
            parent = parent.setdefault(part, {})
        parent[field.split(".")[-1]] = case.get("text", "")
        path = tool.write("kubelet.json", json.dumps(base))
        status, out, err = tool.run("render", "--effective", "-o", "json", "--host", "cgroup=2", "--config", path)
        wrong = judge(field, (status, out, err), want["ok"])
        if wrong or not want["ok"] or want["out"]["canonical"] in ("0", "0s"):
            return wrong
        value = parse(out)
        for part in field.split("."):
            value = value[part]
        if value != want["out"]["canonical"]:
            return [f"{field}: got {value}, want {want['out']['canonical']}"]
        return []

    return run


def number(value):
    """A number for json.dumps: integers keep all their digits."""
    return int(value) if value == value.to_integral_value() else float(value)


OPS = {
    "yaml": run_yaml,
    "jmp": run_patch("merge"),
    "smp": run_patch("strategic"),
    "duration": scalar("syncFrequency"),
    "quantity": scalar("logging.options.json.infoBufferSize", "LoggingAlphaOptions"),
    "kubelet": effective("KubeletConfiguration"),
    "kubeproxy": effective("KubeProxyConfiguration"),
}


# Intentional differences: docs/decisions/009-where-we-differ.md.
DIFFERENT = {
    "kubelet-case-0211": "the recording program has no JSON log format, the component has",
    "quantity-0077": "white space around a quantity is trimmed when it stands in a document",
}


def read_cases(names):
    """Every case of every file, or only those whose id or file is named."""
    for path in sorted(VECTORS.glob("*.jsonl")):
        for line in path.read_bytes().splitlines():
            case = parse(line)
            if case["id"] in DIFFERENT and case["id"] not in names:
                continue
            if not names or case["id"] in names or path.name in names or path.stem in names:
                yield case


KINDS = {"kubelet": "KubeletConfiguration", "kubeproxy": "KubeProxyConfiguration"}


def cases_of_components():
    """Those that a release can change."""
    return [case for case in read_cases(set()) if case["op"] in KINDS]


def digest(cases):
    """Of all that is asked; not of the answers."""
    asked = [{key: value for key, value in case.items() if key not in ("want", "release")} for case in cases]
    return hashlib.sha256(json.dumps(asked, default=number, sort_keys=True).encode()).hexdigest()


def check(program, case):
    """What is wrong with one case; empty = nothing."""
    run = OPS.get(case["op"])
    if run is None:
        return [f"no operation '{case['op']}'"]
    with tempfile.TemporaryDirectory(prefix="lkg-vector-") as directory:
        try:
            return run(Tool(program, pathlib.Path(directory)), case)
        except (subprocess.SubprocessError, ValueError, OSError) as error:
            return [f"{type(error).__name__}: {error}"]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tap", action="store_true", help="one line for each case")
    parser.add_argument("build", nargs="?", default=os.environ.get("LKGFS_BUILD"))
    parser.add_argument("names", nargs="*")
    args = parser.parse_args()
    if not args.build:
        parser.error("which build folder? name it, or set LKGFS_BUILD")
    program = str(pathlib.Path(args.build).resolve() / "fs" / "tool" / "lkgfs")
    cases, failed = list(read_cases(set(args.names))), 0
    with concurrent.futures.ThreadPoolExecutor(N_THREADS) as pool:
        for case, wrong in zip(cases, pool.map(lambda case: check(program, case), cases)):
            failed += bool(wrong)
            if wrong:
                print(f"not ok {case['id']}: {'; '.join(wrong)}")
            elif args.tap:
                print(f"ok {case['id']}")
    print(f"{len(cases) - failed} passed, {failed} failed")
    return 1 if failed or not cases else 0


if __name__ == "__main__":
    sys.exit(main())
