# SPDX-License-Identifier: Apache-2.0
"""clang-tidy over core/ and fs/: lkgfs_tidy.py BUILD JOBS. A file that has passed is looked at again when it, a header of it, its command or
the checks have changed; BUILD/tidy/ remembers that.

One file at a time: with several, the va_list checker of this version mixes them up.
"""
import concurrent.futures
import functools
import hashlib
import json
import pathlib
import re
import subprocess
import sys

TOP = pathlib.Path(__file__).resolve().parents[2]
# Nodes of the analyzer's graph for a function: with its own limit, 225,000, it takes eight times as long, and of 25 divisions by zero put
# at the ends of functions it finds the same 23.
OPTIONS = [f"--extra-arg={word}" for word in ("-Xclang", "-analyzer-config", "-Xclang", "max-nodes=20000")]


@functools.cache
def digest(path):
    return hashlib.sha256(path.read_bytes()).digest()


def headers(build):
    """Object -> the files that it was compiled from, of this tree and of the build."""
    text = subprocess.run(["ninja", "-C", build, "-t", "deps"], capture_output=True, text=True, check=True).stdout
    for block in text.split("\n\n"):
        name, *files = block.splitlines() or [""]
        found = ((build / line.strip()).resolve() for line in files)
        yield name.split(":")[0], [path for path in found if path.exists() and TOP in path.parents]


def main(build, jobs):
    passed = build / "tidy"
    passed.mkdir(exist_ok=True)
    checks, of = digest(TOP / ".clang-tidy"), dict(headers(build))
    version = subprocess.run(["clang-tidy", "--version"], capture_output=True, check=True).stdout

    def look(command):
        """Return what it complains about."""
        file = (build / command["file"]).resolve()
        said = version + checks + " ".join([*OPTIONS, command["command"]]).encode() + b"".join(map(digest, sorted({file, *of.get(command["output"], [])})))
        mark = passed / hashlib.sha256(said).hexdigest()
        if mark.exists():
            return ""
        done = subprocess.run(["clang-tidy", "--quiet", "-p", build, *OPTIONS, file], capture_output=True, text=True, check=False)
        if done.returncode == 0:
            mark.touch()
        return "" if done.returncode == 0 else done.stdout + done.stderr

    commands = json.loads((build / "compile_commands.json").read_text())
    commands = [one for one in commands if re.match(r"(core|fs)/", str((build / one["file"]).resolve().relative_to(TOP)))]
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        complaints = [text for text in pool.map(look, commands) if text]
    print("\n".join(complaints) or f"{len(commands)} files")
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main(pathlib.Path(sys.argv[1]).resolve(), int(sys.argv[2])))
