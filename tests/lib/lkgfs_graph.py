# SPDX-License-Identifier: Apache-2.0
"""Draws the graph of the sources and checks it against the rules in docs/hacking.md, "The graph". Also checks which files write
JSON as text, and which use json-c and libyaml.

    lkgfs_graph.py BUILD            rule violations; exit status 1 if there are any
    lkgfs_graph.py BUILD --dot      the graph of core/ and fs/ for dot(1)

One file calls another if its object file needs a symbol that the other one defines. Pointers count as well: a table of operations
is a call.
"""
import collections
import pathlib
import re
import subprocess
import sys

TOP = pathlib.Path(__file__).resolve().parents[2]
FOLDERS = ("core", "fs")

# Which folder may use which: those listed here, and itself. meson checks what is linked; includes are checked here, too.
USES = {
    "core/base": (),
    "core/documents": ("core/base",),
    "core/layers": ("core/base", "core/documents"),
    "core/schema": ("core/base", "core/documents", "core/layers"),
    "core/settings": ("core/base", "core/documents", "core/schema"),
    "core/lifecycle": ("core/base", "core/documents", "core/layers", "core/rollout"),
    "core/rollout": ("core/base", "core/documents"),
    "core/objects": ("core/base", "core/documents", "core/layers", "core/schema", "core/lifecycle"),
    "core/state": ("core/base", "core/documents", "core/layers", "core/schema", "core/settings", "core/lifecycle", "core/rollout", "core/objects"),
    "core/component": ("core/base", "core/documents", "core/layers", "core/schema", "core/settings", "core/lifecycle", "core/rollout",
                       "core/objects", "core/state"),
    "core/publish": ("core/base", "core/documents", "core/layers", "core/schema", "core/settings", "core/lifecycle", "core/rollout", "core/objects",
                     "core/state", "core/component"),
    "core/remote": ("core/base", "core/documents", "core/layers", "core/objects"),
    "core/reference": ("core/base", "core/documents", "core/layers", "core/settings", "core/lifecycle", "core/rollout", "core/objects", "core/remote"),
    "core/health": ("core/base", "core/documents", "core/layers", "core/schema", "core/settings", "core/lifecycle", "core/rollout", "core/objects",
                    "core/state", "core/component", "core/remote", "core/reference"),
    "core/engine": ("core/base", "core/documents", "core/layers", "core/schema", "core/settings", "core/lifecycle", "core/rollout", "core/objects",
                    "core/state", "core/component", "core/publish", "core/remote", "core/health", "core/reference"),
    "fs/server": ("core/base",),
    "fs/notifier": ("core/base",),
    "fs/supervisor": ("core/base", "core/documents", "core/schema", "core/settings"),
    "fs/tool": ("core/base", "core/documents", "core/layers", "core/schema", "core/settings", "core/lifecycle", "core/rollout", "core/objects",
                "core/state", "core/component", "core/publish", "core/remote", "core/reference", "core/engine"),
}

# Files that may contain JSON as text: the two writers, the documents on which a reader is tested, and a message that shows the
# expected JSON. All others use <lkg/text.h>.
TYPED_JSON = ("core/base/buf.c", "core/base/json-out.c", "core/documents/readback.c", "core/documents/render.c",
              "core/remote/watch-stream.c")
# Files that may use json-c and libyaml.
JSON_C = ("core/base/json-out.c", "core/documents/readback.c")
LIBYAML = ("core/documents/readback.c",)


def sources():
    return sorted(path.relative_to(TOP) for folder in FOLDERS for path in (TOP / folder).rglob("*.[ch]"))


def folder_of(path):
    return "/".join(pathlib.PurePath(path).parts[:2])


# ---- cycles ----

def objects(build):
    """Source file -> object file of the product, as ninja lists them."""
    text = subprocess.run(["ninja", "-C", build, "-t", "deps"], capture_output=True, text=True, check=True).stdout
    found, target = {}, None
    for line in text.splitlines():
        if line and not line.startswith(" "):
            target = line.split(":")[0]
        elif target and line.endswith(".c"):
            path = (pathlib.Path(build) / line.strip()).resolve()
            if path.is_relative_to(TOP) and path.relative_to(TOP).parts[0] in FOLDERS:
                found.setdefault(str(path.relative_to(TOP)), pathlib.Path(build) / target)
            target = None
    return found


def symbols(build):
    """Name -> (file that defines it, its type in nm), and file -> names that it needs."""
    defined, wanted = {}, collections.defaultdict(set)
    for source, target in objects(build).items():
        for line in subprocess.run(["nm", target], capture_output=True, text=True, check=True).stdout.splitlines():
            words = line.split()
            if len(words) == 3 and words[1] in "TDBRVC":
                defined.setdefault(words[2], (source, words[1]))
            elif len(words) == 2 and words[0] == "U":
                wanted[source].add(words[1])
    defined.pop("main", None)
    return defined, wanted


def calls(build):
    """File -> files that it calls."""
    defined, wanted = symbols(build)
    return {source: {defined[name][0] for name in names if name in defined} - {source} for source, names in wanted.items()}


def circles(graph):
    """Strongly connected components of more than one file (Tarjan), the largest first."""
    number, low, stack, found = {}, {}, [], []

    def visit(file):
        number[file] = low[file] = len(number)
        stack.append(file)
        for other in sorted(graph.get(file, ())):
            if other not in number:
                visit(other)
            if other in stack:
                low[file] = min(low[file], low[other])
        if low[file] == number[file]:
            part = {stack.pop()}
            while file not in part:
                part.add(stack.pop())
            if len(part) > 1:
                found.append(frozenset(part))

    for file in sorted(graph):
        if file not in number:
            visit(file)
    return sorted(found, key=lambda part: (-len(part), sorted(part)))


def is_pair(part):
    """Two files of one folder that share a private header."""
    return len(part) == 2 and len({folder_of(file) for file in part}) == 1


# ---- names ----

INCLUDE = re.compile(r'^#include "([^"]+)"', re.M)
TAG = re.compile(r"^(?:struct|enum|union) (\w+) \{", re.M)


def private_headers():
    """Private headers of a folder that another folder includes, as "file: header"."""
    found = set()
    for path in sources():
        for name in INCLUDE.findall((TOP / path).read_text()):
            place = (TOP / path.parent / name).resolve()
            header = place if place.exists() else TOP / name
            if header.exists() and folder_of(header.relative_to(TOP)) != folder_of(path):
                found.add(f"{path}: {header.relative_to(TOP)}")
    return found


def in_several_folders(pairs):
    places = collections.defaultdict(set)
    for name, folder in pairs:
        places[name].add(folder)
    return {name for name, folders in places.items() if len(folders) > 1}


def same_tags():
    public = sorted(path.relative_to(TOP) for path in (TOP / "include").rglob("*.h"))
    return in_several_folders((tag, path if path in public else folder_of(path)) for path in [*sources(), *public]
                              for tag in TAG.findall((TOP / path).read_text()))


def same_names():
    return in_several_folders((path.name, folder_of(path)) for path in sources() if path.name != "main.c")


def upward(graph):
    return {f"{file} calls {other}" for file, others in graph.items() for other in others
            if folder_of(other) not in (folder_of(file), *USES[folder_of(file)])}


# ---- libraries ----

def files_with(pattern):
    return {str(path) for path in sources() if path.suffix == ".c" and re.search(pattern, (TOP / path).read_text())}


# ---- the rules ----

def compare(what, found, allowed=()):
    """Describe violations of a rule, and exceptions that are no longer needed."""
    return ([f"{what}: {item}" for item in sorted(set(found) - set(allowed))]
            + [f"{what}: {item} is no longer so: take it out of lkgfs_graph.py" for item in sorted(set(allowed) - set(found))])


def judge_circles(found):
    return [f"circle of {len(part)} files: {' '.join(sorted(part))}" for part in found if not is_pair(part)]


def dot(graph):
    lines = ["digraph lkgfs {", "  rankdir=LR; node [shape=box];"]
    for folder in USES:
        lines.append(f'  subgraph "cluster_{folder}" {{ label="{folder}";')
        lines += [f'    "{file}" [label="{pathlib.PurePath(file).name}"];' for file in sorted(graph) if folder_of(file) == folder]
        lines.append("  }")
    lines += [f'  "{file}" -> "{other}";' for file in sorted(graph) for other in sorted(graph[file])]
    return "\n".join([*lines, "}"])


def main():
    graph = calls(sys.argv[1])
    if sys.argv[2:] == ["--dot"]:
        print(dot(graph))
        return 0
    words = (judge_circles(circles(graph))
             + compare("call upward", upward(graph))
             + compare("private header of another folder", private_headers())
             + compare("tag in several folders", same_tags())
             + compare("file name in several folders", same_names())
             + compare("JSON typed as text", files_with(r'\\"[\w-]+\\" ?:|\blkg_buf_json_string\('), TYPED_JSON)
             + compare("json-c", files_with(r"#include <json-c/"), JSON_C)
             + compare("libyaml", files_with(r"#include <yaml\.h>"), LIBYAML))
    print("\n".join(words) or f"{len(graph)} files, {sum(map(len, graph.values()))} calls between them")
    return 1 if words else 0


if __name__ == "__main__":
    sys.exit(main())
