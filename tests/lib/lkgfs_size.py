# SPDX-License-Identifier: Apache-2.0
"""Shows how large each folder is, and checks that none outgrows its budget: docs/hacking.md, "Size".

    lkgfs_size.py [BUILD]     a table; with BUILD also how many public functions are called only within their own folder
    lkgfs_size.py --check     compares with tests/lib/size-budgets; exit status 1 if a budget is exceeded, or can fall

Relies on the layout that clang-format makes: a function or a struct ends with the next `}` in the first column. A docstring
counts as code.
"""
import ast
import collections
import pathlib
import re
import sys

import lkgfs_graph as graph

TOP = graph.TOP
BUDGETS = TOP / "tests/lib/size-budgets"
SHORT = 60  # lines; a shorter file is a paragraph, not a chapter
LINES_ROOM, COUNT_ROOM = 300, 3  # how far a budget of lines, or of anything else, may be above what there is

COMMENT = re.compile(r'/\*.*?\*/|//[^\n]*|("(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\')', re.S)
FUNCTION = re.compile(r"^(?:TEST\w*\(|\w[^\n]*?(?=\w+\())(\w+)[^\n]*\n(?:[ \t][^\n]*\n)*\{\n.*?^\}", re.M | re.S)
STRUCT = re.compile(r"^(?:static |const |typedef )*struct (?:\w+\([^\n]*\) )?(\w*) ?\{\n(.*?)^\}", re.M | re.S)

# `function` and `struct` are the largest one: (lines or members, name).
Size = collections.namedtuple("Size", "files lines code braces blank short function struct")
NOTHING = Size(0, 0, 0, 0, 0, 0, (0, ""), (0, ""))


def without_comments(text):
    return COMMENT.sub(lambda match: match[1] or "\n" * match[0].count("\n"), text)


def members(body):
    """How many a struct has; those of a struct or union inside it count, itself does not."""
    body = re.sub(r"^#.*$|\[[^\]]*\]", "", re.sub(r"\benum \w* ?\{[^}]*\}", "enum", body), flags=re.M)
    while (shorter := re.sub(r"\([^()]*\)", "", body)) != body:
        body = shorter
    return sum(1 + member.count(",") for member in body.split(";")[:-1] if "}" not in member)


def measure(path):
    raw = path.read_text()
    if path.suffix == ".py":
        text, structs = re.sub(r"^[ \t]*#.*", "", raw, flags=re.M), []
        functions = [(node.end_lineno - node.lineno + 1, node.name) for node in ast.walk(ast.parse(raw))
                     if isinstance(node, ast.FunctionDef)]
    else:
        text = without_comments(raw)
        functions = [(match[0].count("\n") + 1, match[1]) for match in FUNCTION.finditer(text)]
        structs = [(members(match[2]), match[1] or "(no name)") for match in STRUCT.finditer(text)]
    lines = text.splitlines()
    blank = sum(not line.strip() for line in lines)
    braces = sum(bool(re.fullmatch(r"\s*[{}]+[;,)]*", line)) for line in lines)
    is_table = path.suffix == ".c" and not functions  # rows only; size-budgets says so, too
    return Size(1, len(lines), len(lines) - blank - braces, braces, blank, int(len(lines) < SHORT and not is_table),
                max(functions, default=NOTHING.function), max(structs, default=NOTHING.struct))


def add(sizes):
    return Size(*(max(column) if isinstance(column[0], tuple) else sum(column) for column in zip(NOTHING, *sizes)))


def folder_sizes():
    """Folder -> Size of the product's folders."""
    folders = sorted(path for top in (*graph.FOLDERS, "include") for path in (TOP / top).iterdir() if path.is_dir())
    sizes = {str(folder.relative_to(TOP)): add(map(measure, folder.rglob("*.[ch]"))) for folder in folders}
    return {folder: size for folder, size in sizes.items() if size.files}


def test_sizes():
    """Language -> Size of everything below tests/."""
    files = {"C": (TOP / "tests").rglob("*.[ch]"), "Python": (TOP / "tests").rglob("*.py")}
    return {f"tests, {language}": add(map(measure, paths)) for language, paths in files.items()}


def called_at_home(build):
    """Folder -> how many of its functions in include/ no other folder calls."""
    defined, wanted = graph.symbols(build)
    public = set(re.findall(r"\b(\w+)\(", "".join(without_comments(path.read_text()) for path in (TOP / "include").rglob("*.h"))))
    callers = collections.defaultdict(set)
    for file, names in wanted.items():
        for name in names:
            callers[name].add(graph.folder_of(file))
    return collections.Counter(graph.folder_of(file) for name, (file, kind) in defined.items()
                               if kind == "T" and name in public and callers[name] <= {graph.folder_of(file)})


def table(build):
    folders, tests = folder_sizes(), test_sizes()
    home = called_at_home(build) if build else None
    print(f"{'folder':17}  files   lines    code  braces   blank   <{SHORT}  at home  {'longest function':36} largest struct")
    for name, size in (*folders.items(), ("the product", add(folders.values())), *tests.items(), ("tests", add(tests.values()))):
        at_home = "-" if home is None or name.startswith("tests") else home.total() if name == "the product" else home[name]
        print(f"{name:17} {size.files:6} {size.lines:7} {size.code:7} {size.braces:7} {size.blank:7} {size.short:5} {at_home:>8}  "
              f"{size.function[0]:3} {size.function[1]:32} {size.struct[0]:3} {size.struct[1]}".rstrip())


def read_budgets():
    rows = (line.rsplit(maxsplit=1) for line in BUDGETS.read_text().splitlines() if line and not line.startswith("#"))
    return {name: int(number) for name, number in rows}


def complaints():
    folders = folder_sizes()
    product = add(folders.values())
    lines = {folder: size.lines for folder, size in folders.items()} | {"tests": add(test_sizes().values()).lines}
    counts = {"largest struct members": product.struct[0], "files below 60 lines": product.short}
    found, budgets = lines | counts, read_budgets()
    for name in sorted(found.keys() - budgets.keys()):
        yield f"{name}: no budget for its {found[name]}: add a row, and lower another folder's by as much"
    for name in sorted(budgets.keys() - found.keys()):
        yield f"{name}: a budget of nothing: take the row out"
    for name in sorted(found.keys() & budgets.keys()):
        there, budget, what = found[name], budgets[name], " lines" if name in lines else ""
        if there > budget:
            yield (f"{name}: {there}{what}, its budget is {budget}: shrink it; or, if lines moved here, lower another folder's "
                   "budget by as much as this one is raised. Otherwise a budget only grows with a decision in docs/decisions")
        elif budget - there > (LINES_ROOM if name in lines else COUNT_ROOM):
            yield f"{name}: {there}{what}, its budget is {budget}: lower it to what is there now, budgets only fall"


def main(arguments):
    if arguments != ["--check"]:
        table(arguments[0] if arguments else None)
        return 0
    words = [f"tests/lib/size-budgets: {complaint}" for complaint in complaints()]
    print("\n".join(words) or "each folder keeps its budget")
    return 1 if words else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
