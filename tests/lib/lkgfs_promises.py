# SPDX-License-Identifier: Apache-2.0
"""Lists which tests cite which section of docs/specification.md; every section has one, because what no test holds is no promise.

    lkgfs_promises.py             every section with the places that cite it
    lkgfs_promises.py --check     exit status 1 if a section has none

A test cites a section in the comment or docstring on its top, or in that of one case: "Rule: docs/specification.md 2.9.", or
"Rules: docs/specification.md 4.6, 4.7.". Files in tests/lib help tests and count for nothing.
"""
import collections
import pathlib
import re
import sys

TOP = pathlib.Path(__file__).resolve().parents[2]
SECTION = re.compile(r"^#{2,3} (\d+(?:\.\d+)?)\.? (.+)$", re.M)
CITATION = re.compile(r"specification\.md[, ]+(\d+(?:\.\d+)?(?:, \d+(?:\.\d+)?)*)")

# Sections with nothing to test, and why.
UNTESTED = {"1": "says what words mean", "2": "has no text of its own", "6": "has no text of its own"}


def sections():
    """Number -> title."""
    return dict(SECTION.findall((TOP / "docs/specification.md").read_text(encoding="utf-8")))


def citations():
    """Number -> places in tests, as "file:line"."""
    found = collections.defaultdict(list)
    for path in sorted((TOP / "tests").rglob("*.*")):
        if path.suffix in (".c", ".py") and path.parent != TOP / "tests/lib":
            for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
                for numbers in CITATION.findall(line):
                    for section in numbers.split(", "):
                        found[section].append(f"{path.relative_to(TOP)}:{number}")
    return found


def complaints(titles, cited):
    for number, title in titles.items():
        if number not in cited and number not in UNTESTED:
            yield f"docs/specification.md {number} ({title}): no test cites it: name it in the test that proves it, or write that test"
    for number in sorted(UNTESTED):
        if number in cited or number not in titles:
            yield f"docs/specification.md {number}: is tested, or gone: take it out of lkgfs_promises.py"


def main(arguments):
    titles, cited = sections(), citations()
    if arguments != ["--check"]:
        for number, title in titles.items():
            print(f"{number} {title}")
            for place in cited.get(number, [UNTESTED.get(number, "no test")]):
                print(f"    {place}")
        return 0
    words = list(complaints(titles, cited))
    print("\n".join(words) or f"{len(titles)} sections, {sum(map(len, cited.values()))} citations in tests")
    return 1 if words else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
