# SPDX-License-Identifier: Apache-2.0
"""Every file of this tree that a comment or a page names is there. Exit status 1 if one is not.

Decisions and the change log tell of what was: they may name what has gone. The tests of the checks invent some.
"""
import pathlib
import re
import sys

TOP = pathlib.Path(__file__).resolve().parents[2]
NAME = re.compile(r"(?<![\w/.$*{}~-])((?:core|fs|include|tests|contrib|docs)/[\w/.-]+\.(?:c|h|py|md|in|txt|yaml|svg))\b(?!\.?[\w*/{])")
READ = {".c", ".h", ".py", ".md", ".build", ".1", ".5", ".7", ".8", ""}
HISTORY = ("docs/decisions/", "CHANGELOG.md", "tests/lib/test_lint.py")
KERNEL = ("fs/fuse/", "fs/super.c", "fs/dcache.c", "include/net/")  # of Linux


def missing():
    """(place, name) of each."""
    for path in sorted(TOP.rglob("*")):
        name = str(path.relative_to(TOP))
        if path.suffix in READ and path.is_file() and not re.match(r"\.git\b|build|subprojects", name) and not name.startswith(HISTORY):
            for number, line in enumerate(path.read_text(encoding="utf-8", errors="replace").splitlines(), 1):
                for named in NAME.findall("" if line.startswith("#include") else line):  # the compiler says so
                    if not (TOP / named).exists() and not (path.parent / named).exists() and not named.startswith(KERNEL):
                        yield f"{name}:{number}", named


if __name__ == "__main__":
    found = [f"{place}: there is no {named}" for place, named in missing()]
    print("\n".join(found) or "what is named is there")
    sys.exit(bool(found))
