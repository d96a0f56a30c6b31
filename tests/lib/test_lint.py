# SPDX-License-Identifier: Apache-2.0
"""The programs of lint that count, each in a tree of its own: a right answer for a few files, and status 1 for what is wrong."""
import pathlib
import shutil
import subprocess
import sys

import pytest

LIB = pathlib.Path(__file__).resolve().parent
FIRST = """\
/* Two lines of
 * comment, and "a string" is none. */
#include "lkg/first.h"

struct pair {
        int left, right; /* two members */
        union {
                void (*call)(int a, int b);
                char text[4];
        };
};

int at_home(int a,
            int b)
{
        if (a) {
                return b; /* } */
        }
        return b;
}
"""
SECOND = '#include "lkg/first.h"\n\nint called(int a)\n{\n        return at_home(a, a);\n}\n'
OTHER = '#include "lkg/first.h"\n\nint elsewhere(int a)\n{\n        return called(a);\n}\n'
HEADER = "int at_home(int a, int b);\nint called(int a);\n"
NINJA = """\
rule cc
  command = gcc -MD -MF $out.d -I../include -c $in -o $out
  depfile = $out.d
  deps = gcc
build first.o: cc ../core/one/first.c
build second.o: cc ../core/one/second.c
build other.o: cc ../fs/two/other.c
"""
FILES = {"core/one/first.c": FIRST, "core/one/second.c": SECOND, "core/one/rows.c": "int rows[] = { 1 };\n", "fs/two/other.c": OTHER,
         "include/lkg/first.h": HEADER, "build/build.ninja": NINJA,
         "docs/specification.md": "# S\n\n## Contents\n\n## 1. T\n\n## 2. V\n\n### 2.1 Names\n\n### 2.2 File\n\n## 6. P\n"}


@pytest.fixture
def tree(tmp_path):
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    (tmp_path / "tests/lib").mkdir(parents=True)
    for name in ("lkgfs_graph.py", "lkgfs_size.py", "lkgfs_promises.py"):
        shutil.copy(LIB / name, tmp_path / "tests/lib")
    return tmp_path


def run(tree, program, *words):
    """(status, lines)"""
    done = subprocess.run([sys.executable, tree / "tests/lib" / program, *words], capture_output=True, text=True, check=False)
    assert done.stderr == ""
    return done.returncode, done.stdout.splitlines()


def budgets(tree, **other):
    """Those of the tree, and some others."""
    tests = sum(path.read_text().count("\n") for path in (tree / "tests").rglob("*.py"))
    rows = {"core/one": 27, "fs/two": 6, "include/lkg": 2, "tests": tests, "largest struct members": 4, "files below 60 lines": 4}
    lines = [f"{name:30} {number}" for name, number in (rows | other).items() if number is not None]
    (tree / "tests/lib/size-budgets").write_text("# a comment\n\n" + "\n".join(lines) + "\n")


def test_the_table(tree):
    subprocess.run(["ninja", "-C", tree / "build"], capture_output=True, check=True)
    for words, at_home in (((), "-"), ((tree / "build",), "1")):
        status, lines = run(tree, "lkgfs_size.py", *words)
        assert status == 0
        #                              files  lines  code  braces  blank  short  at home
        assert lines[1].split() == ["core/one", "3", "27", "15", "7", "5", "2", at_home, "8", "at_home", "4", "pair"]
        assert lines[4].split()[:4] == ["the", "product", "5", "35"]


def test_a_kept_budget(tree):
    budgets(tree, **{"core/one": 327})
    assert run(tree, "lkgfs_size.py", "--check") == (0, ["each folder keeps its budget"])


@pytest.mark.parametrize("name,number,words", [
    ("core/one", 26, "core/one: 27 lines, its budget is 26: shrink it"),
    ("core/one", 328, "core/one: 27 lines, its budget is 328: lower it"),
    ("core/one", None, "core/one: no budget for its 27"),
    ("core/gone", 1, "core/gone: a budget of nothing"),
    ("largest struct members", 3, "largest struct members: 4, its budget is 3: shrink it"),
    ("files below 60 lines", 8, "files below 60 lines: 4, its budget is 8: lower it")])
def test_a_wrong_budget(tree, name, number, words):
    budgets(tree, **{name: number})
    status, lines = run(tree, "lkgfs_size.py", "--check")
    assert status == 1 and len(lines) == 1 and f"size-budgets: {words}" in lines[0]


def test_sections_and_those_who_cite_them(tree):
    (tree / "tests/test_a.py").write_text('"""Rules: docs/specification.md 2.1, 2.2."""\n')
    assert run(tree, "lkgfs_promises.py", "--check") == (0, ["5 sections, 2 citations in tests"])
    assert run(tree, "lkgfs_promises.py")[1][4:8] == ["2.1 Names", "    tests/test_a.py:1", "2.2 File", "    tests/test_a.py:1"]


def test_a_section_that_nobody_cites(tree):
    (tree / "tests/test-a.c").write_text("/* Rule: docs/specification.md 2.1. */\n")
    (tree / "tests/lib/helper.py").write_text("# docs/specification.md 2.2\n")
    status, lines = run(tree, "lkgfs_promises.py", "--check")
    assert status == 1 and len(lines) == 1 and lines[0].startswith("docs/specification.md 2.2 (File): no test cites it")
