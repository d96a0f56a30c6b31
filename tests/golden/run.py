#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs golden cases: run.py PROGRAM TOOL [CASE...]

A case is a directory:
    source/        the source directory (kubelet.conf, kubelet.conf.d/, ...), copied before use
    setup          optional shell script, run in the copy: makes what a repository cannot contain (FIFOs, links)
    args           optional lines key=value for golden-stack
    want.yaml      the merged document (want.json when the base is JSON); absent when there must be none
    want.findings  all findings, exactly; absent when there must be none
    want.layers    optional: the layers in merge order
    want.origin    optional: the origin table

A case with a file `command` runs the tool instead, with the words of that file (one line, quoted as in a shell), in the copy:
    want.out       its standard output; absent when there must be none
    want.error     its standard error; absent when there must be none
    want.status    its exit status

A case with a file `session` is a talk with the tool: after each line `$ COMMAND` stands what a shell prints for it in the copy, both
outputs as they come, and `[STATUS]` unless that is 0. $STACK names the usual layers.

Rule: docs/specification.md 3.2 (walk-order, drop-ins-in-order, number-sort-trap, kubeadm-patches).

GOLDEN_UPDATE=1 writes the results instead of comparing them; read the difference before you commit it.
"""

import difflib
import os
import pathlib
import shlex
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent


def run_tool(tool, case, source):
    words = shlex.split((case / "command").read_text())
    environment = {key: value for key, value in os.environ.items() if not key.startswith("LKGFS")}
    done = subprocess.run([tool, *words], cwd=source, env=environment, capture_output=True, timeout=60, check=False,
                          stdin=subprocess.DEVNULL)
    return {
        "want.out": done.stdout.decode(errors="surrogateescape"),
        "want.error": done.stderr.decode(errors="surrogateescape"),
        "want.status": f"{done.returncode}\n",
    }


def run_session(tool, case, source):
    told = ""
    environment = {key: value for key, value in os.environ.items() if not key.startswith("LKGFS")}
    environment.update(PATH=f"{os.path.dirname(tool)}:{os.environ['PATH']}", LKGFS_CONFIG="/nonexistent",
                       STACK="--config kubelet.conf --config-dir kubelet.conf.d --instance-config kubelet-instance.conf")
    for line in (case / "session").read_text().splitlines():
        if line.startswith("$ "):
            done = subprocess.run(["sh", "-c", line[2:]], cwd=source, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                  timeout=300, check=False, stdin=subprocess.DEVNULL)
            told += f"{line}\n{done.stdout.decode(errors='backslashreplace')}" + (f"[{done.returncode}]\n" if done.returncode else "")
    return {"session": told}


def run_case(program, tool, case, scratch):
    source = scratch / case.name
    if (case / "source").is_dir():
        shutil.copytree(case / "source", source, symlinks=True)
    else:
        source.mkdir()
    if (case / "setup").is_file():
        subprocess.run(["sh", "-eu", str(case / "setup")], cwd=source, check=True)
    if (case / "command").is_file():
        return run_tool(tool, case, source)
    if (case / "session").is_file():
        return run_session(tool, case, source)
    args = []
    if (case / "args").is_file():
        args = [line for line in (case / "args").read_text().splitlines() if line]
    done = subprocess.run([program, str(source), *args], capture_output=True, timeout=60, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"exit {done.returncode}: {done.stderr.decode(errors='replace')}")
    parts, name = {}, None
    for line in done.stdout.decode(errors="surrogateescape").splitlines(keepends=True):
        if line.startswith("== "):
            name = line[3:].strip()
            parts[name] = ""
        else:
            parts[name] += line
    return parts


def expected(case, got):
    """File name, wanted text, actual text."""
    if "document" not in got:
        for name, text in got.items():
            path = case / name
            yield name, path.read_text(errors="surrogateescape") if path.is_file() else "", text
        return
    document = "want.json" if got["document"].startswith("{\n") else "want.yaml"
    files = {
        document: got["document"],
        "want.findings": got["findings"],
        "want.layers": got["layers"],
        "want.origin": got["origin"],
    }
    for name, text in files.items():
        path = case / name
        optional = name in ("want.layers", "want.origin")
        if path.is_file():
            yield name, path.read_text(errors="surrogateescape"), text
        elif not optional:
            yield name, "", text
    other = case / ("want.yaml" if document == "want.json" else "want.json")
    if other.is_file():
        yield other.name, other.read_text(), ""


def check(case, got, update):
    good = True
    for name, want, text in expected(case, got):
        if want == text:
            continue
        if update:
            if text:
                (case / name).write_text(text, errors="surrogateescape")
            else:
                (case / name).unlink(missing_ok=True)
            continue
        good = False
        wanted = f"{case.name}/{name}"
        diff = difflib.unified_diff(want.splitlines(True), text.splitlines(True), wanted, "got")
        sys.stdout.writelines(line.encode(errors="backslashreplace").decode() for line in diff)
    return good


def main():
    program, tool, names = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2]), sys.argv[3:]
    cases = [HERE / name for name in names]
    if not names:
        cases = sorted(p for p in HERE.iterdir() if p.is_dir() and not p.name.startswith((".", "__")))
    failed = 0
    with tempfile.TemporaryDirectory(prefix="lkg-golden-") as scratch:
        for case in cases:
            try:
                got = run_case(program, tool, case, pathlib.Path(scratch))
                good = check(case, got, "GOLDEN_UPDATE" in os.environ)
            except (RuntimeError, subprocess.SubprocessError) as e:
                print(f"{case.name}: {e}")
                good = False
            failed += not good
            print(("ok" if good else "FAILED"), case.name)
        subprocess.run(["chmod", "-R", "u+rwx", scratch], check=False)
    print(f"{len(cases) - failed} passed, {failed} failed")
    return 1 if failed or not cases else 0


sys.exit(main())
