# SPDX-License-Identifier: Apache-2.0
"""The documents quote conditions, errors, and names of files and commands exactly as the code has them.

Reads sources and documents; mounts nothing.
"""
import re
import subprocess
import sys

import pytest

import lkgfs_testlib as lib

SOURCES = lib.REPOSITORY / "core"
PAGE = (lib.REPOSITORY / "docs/dynamic-configuration.md").read_text()
MANUAL = lib.REPOSITORY / "docs/man"
LITERAL = re.compile(r'"((?:[^"\\\n]|\\.)*)"(?:\s*(PRIu64)\s*)?')
NOT_WORDS = {"ConfigOK", "", "%s", "%.255s"}


def source(name):
    return (SOURCES / name).read_text()


def joined(text):
    """Join adjacent literals, as the compiler does; treat the conversion of a number like any other."""
    text = re.sub(r'%"\s*PRIu64\s*"', "%u", text)
    text = re.sub(r'%"\s*PRIu64\b', '%u"', text)
    return re.sub(r'"\s*\n\s*"', "", text)


def literals(text):
    return [m[1].replace('\\"', '"') for m in LITERAL.finditer(joined(text))]


def pattern(literal):
    """A regular expression for what a format prints; for a conversion, the page may have a placeholder in angle brackets."""
    parts = re.split(r"%[.\d]*z?[sdu]", literal)
    return ".*".join(re.escape(part) for part in parts)


def cells(heading):
    """Everything in backticks in the tables of this section."""
    section = PAGE.split(f"\n## {heading}\n")[1].split("\n## ")[0]
    rows = [line for line in section.splitlines() if line.startswith("|")]
    return [cell for row in rows for cell in re.findall(r"`([^`]+)`", row)]


CONDITION = [text for text in literals(source("lifecycle/condition.c").split("*/", 2)[2])
             if " " in text.strip() and not text.endswith(".h") and text not in NOT_WORDS]
REMOTE = "".join(source(f"engine/{name}.c") for name in ("remote", "assignment", "commands"))
REMOTE += "".join(source(f"lifecycle/step-{name}.c") for name in ("source", "trial", "hold"))
PLACES = source("reference/places.c")
API = PLACES + source("reference/apiserver.c") + source("reference/apiserver-words.c").split("/* ---- findings")[0] + source("objects/rollout.c")


def remote_words():
    """Reasons and causes that other source files pass to the condition."""
    rest = r'((?:[^;"]|"(?:[^"\\]|\\.)*")*);'  # to the end of the statement; a literal may hold a semicolon
    calls = re.findall(rf"(?:say_uid|condemn_assigned|set_desired|say|again|set_fault)\({rest}|snprintf\(\s*(?:words|reason),{rest}"
                       rf"|desired_fault\),{rest}",
                       joined(REMOTE + PLACES + source("component/bases.c") + source("component/served.c") + source("engine/engine.c")))
    calls += re.findall(rf"snprintf\(\s*(?:ret(?:->words)?|api->name_fault|fault),{rest}", joined(API))
    return sorted({text for call in calls for part in ([call] if isinstance(call, str) else call) for text in literals(part)
                   if " " in text and not text.startswith("%")})


@pytest.mark.parametrize("text", CONDITION)
def test_every_word_of_the_condition_is_documented(text):
    shown = "\n".join(cells("Conditions"))
    fragments = pattern(text.lstrip("; ,").replace("error%s", "errors").replace("`", ""))
    assert re.search(fragments, shown), f"{text!r} is not in the page"


@pytest.mark.parametrize("text", remote_words())
def test_every_reason_and_cause_is_documented(text):
    assert re.search(pattern(text), "\n".join(cells("Conditions"))), f"{text!r} is not in the page"


def test_words_are_found_in_the_sources_at_all():
    assert len(CONDITION) > 20 and len(remote_words()) > 8


@pytest.mark.parametrize("text", sorted(set(cells("Conditions"))))
def test_every_documented_word_is_in_the_code(text):
    files = [source(name) for name in ("publish/status.c", "component/facts.c", "reference/remote-file.c")]
    sources = CONDITION + remote_words() + literals("".join(files))
    reference = source("objects/reference.c") + source("objects/configmap.c") + source("state/dynamic.c")
    reference = re.sub(r'INVALID\s+"', '"invalid NodeConfigSource, ', reference)
    slots = source("rollout/seeker.c") + source("reference/apiserver-slots.c")
    known = sources + literals(reference) + literals(API) + literals(slots)
    if text.startswith(("hold", "rollback", "trial.scope", "commit", "configMapRef", "cause:", "status/", "ConfigOK")):
        return
    stem = re.split(r"<", text)[0].strip(" ;(")
    words = re.sub(r"\b(init|default|UID: )\b.*", "", stem).strip(" (")
    assert words == "" or any(re.sub(r"%[.\d]*z?[sdu]", "", k).startswith(words.split("(")[0].strip()[:24]) or
                              re.match(pattern(k), text) for k in known if " " in k), text


def test_why_a_start_does_not_count():
    table = source("lifecycle/trial.c").split("excuses[] = {")[1].split("};")[0]
    shown = cells("The trial")
    assert [text for text in literals(table) if text not in shown] == []


@pytest.mark.parametrize("table,name,page", [
    ("publish/status.c", r'^\s*\{ "([\w.-]+)", (?:true|false),', "lkgfs-view.7"),
    ("component/command.c", r'^\s*\{ "(\w+)", LKG_DO_\w+,', "lkgfs-view.7"),
    ("settings/config-fields.c", r'^\s*\{ "(\w+)", F_', "lkgfs.conf.5"),
])
def test_every_name_has_its_place_in_the_manual(table, name, page):
    names = set(re.findall(name, source(table), re.MULTILINE))
    text = (MANUAL / page).read_text()
    assert len(names) > 7
    assert [n for n in sorted(names) if not re.search(rf"\b{re.escape(n)}\b", text)] == []


@pytest.mark.parametrize("path", ["pointers.json", "trial.json", "startups.json", "configmap.json"])
def test_names_of_the_state_directory(path):
    assert f'"{path}"' in "".join(p.read_text() for p in (SOURCES / "state").glob("*.c"))
    assert path in PAGE


def test_fields_of_the_records():
    text = source("state/store-records.c")
    section = PAGE.split("\n## The state directory\n")[1].split("\n## ")[0]
    fields = set(re.findall(r'\{ "(\w+)", LKG_RECORD_', text))
    assert len(fields) > 12
    assert [f for f in sorted(fields) if f"`{f}`" not in section] == []


PAGES = [lib.REPOSITORY / name for name in ("README.md", "SECURITY.md", "CHANGELOG.md")] + sorted(
    path for path in lib.REPOSITORY.glob("**/*.md") if path.relative_to(lib.REPOSITORY).parts[0] in ("docs", "contrib"))


def anchors(page):
    """Anchors as GitHub derives them from headings."""
    headings = re.findall(r"^#+ (.*)$", re.sub(r"^```.*?^```$", "", page.read_text(), flags=re.M | re.S), re.M)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(lib.REPOSITORY)))
def test_links_lead_somewhere(page):
    wrong = []
    for link, anchor in re.findall(r"\]\(([^)#:]*)(?:#([^)]+))?\)", page.read_text()):
        target = page.parent / link if link else page
        if not target.exists() or (anchor and anchor not in anchors(target)):
            wrong.append(f"{link}#{anchor}")
    assert not wrong


@pytest.mark.parametrize("name", ["README.md", "docs/dynamic-configuration.md", "docs/faq.md", "SECURITY.md", "docs/operations.md", "docs/performance.md", "docs/remote.md", "docs/walkthrough.md"])
def test_a_long_page_lists_its_contents(name):
    """Every section of the page, in its order."""
    page = lib.REPOSITORY / name
    text = re.sub(r"^```.*?^```$", "", page.read_text(), flags=re.M | re.S)
    contents = re.search(r"^\*\*Contents:\*\*.*?\n\n", text, re.M | re.S)
    assert contents and re.findall(r"\[([^\]]+)\]\(#", contents[0]) == re.findall(r"^## (.*)$", text, re.M)


def test_every_finding_of_the_api_client_is_in_the_table():
    """And the table has none that does not exist."""
    page = (lib.REPOSITORY / "docs/remote.md").read_text()
    codes = set(re.findall(r"^\s*\{ (7\d{3}),", source("base/findings.c"), re.MULTILINE))
    assert len(codes) > 8 and set(re.findall(r"^\| LKG(7\d{3})", page, re.MULTILINE)) == codes


FOLDERS = ["core/base", "core/documents", "core/layers", "core/schema", "core/settings", "core/lifecycle", "core/objects",
           "core/state", "core/component", "core/publish", "core/remote", "core/reference", "core/engine",
           "fs/supervisor", "fs/server", "fs/notifier", "fs/tool"]


@pytest.mark.parametrize("folder", FOLDERS)
def test_every_file_has_its_place_in_the_architecture(folder):
    """In the section of its folder; and the section names no file that does not exist."""
    page = (lib.REPOSITORY / "docs/architecture.md").read_text()
    section = page.split(f"\n## {folder}\n")[1].split("\n## ")[0]
    named = set(re.findall(r"[\w-]+\.c\b", section))
    missing = sorted(path.name for path in (lib.REPOSITORY / folder).rglob("*.c") if path.name not in named)
    assert not missing, f"docs/architecture.md does not name {', '.join(missing)}"
    everywhere = {path.name for top in ("core", "fs", "tests") for path in (lib.REPOSITORY / top).rglob("*.c")}
    assert sorted(named - everywhere) == []


@pytest.mark.parametrize("page", ["lkgfsd.8", "mount.lkgfs.8"])
def test_lines_for_fstab_name_what_is_mounted(page):
    """df and findmnt would show `none` if it were in the first field."""
    lines = [line.split() for line in (MANUAL / page).read_text().splitlines() if "x-systemd.before=" in line]
    assert lines and all(len(fields) == 6 and fields[0] == "lkgfs" and fields[2] == "lkgfs" for fields in lines)


def test_the_manual_lists_what_hardened_denies():
    """Field by field and word by word; what is below a listed field is not listed again."""
    out = subprocess.run([lib.BUILD / "docs/lkgfs-generate-docs", "hardened"], capture_output=True, text=True, check=True).stdout
    rows = dict(line.replace("[]", "").split() for line in out.splitlines())
    want = {(field, word) for field, word in rows.items()
            if not any(field.startswith(other + ".") for other in rows)}
    page = (MANUAL / "lkgfs.conf.5").read_text().split(".Pq LKG6002 :\n")[1].split("\n.El\n")[0]
    have, word = set(), None
    for line in page.splitlines():
        if line.startswith(".It Li "):
            word = line.split()[2]
        elif line.startswith(".Ic "):
            have |= {(field, word) for field in line.split()[1:] if field != ","}
    assert have == want


# ---- SECURITY.md ----

SECURITY = (lib.REPOSITORY / "SECURITY.md").read_text()
CLAIMS = [line for line in SECURITY.split("\n## What holds\n")[1].split("\n## ")[0].splitlines()
          if line.startswith("| ") and not line.startswith(("| ---", "| asset |"))]
NAMED = sorted(set(re.findall(r"`([\w./-]+\.(?:py|c)::\w+)`", SECURITY)))


@pytest.mark.parametrize("claim", CLAIMS, ids=lambda line: line.split("|")[2].strip()[:40])
def test_every_claim_names_a_test(claim):
    cells = [cell.strip() for cell in claim.strip("|").split(" | ")]
    assert len(cells) == 3 and cells[0].strip("| ") in ("configuration", "secrets", "files", "answers", "node")
    assert re.fullmatch(r"`[\w./-]+::\w+`(?:, `[\w./-]+::\w+`)*", cells[2].strip("| ")), claim


@pytest.mark.parametrize("name", NAMED)
def test_every_test_that_is_named_exists(name):
    path, function = name.split("::")
    text = (lib.REPOSITORY / "tests" / path).read_text()
    if path.endswith(".py"):
        assert re.search(rf"^def {function}\(", text, re.M), name
    else:
        listed = f"static void {function}(void **" in text and len(re.findall(rf"\b{function}\b", text)) > 1  # it exists and is called
        rows = re.search(rf"^ROWS(?:_WITH)?\({function.removeprefix('test_rows_of_')}, ", text, re.M)  # of tests/unit/rows/
        assert listed or rows or re.search(rf"^TEST(?:_WITH)?\({function}\b", text, re.M), name


def test_nothing_is_claimed_outside_of_the_tables():
    """Between "What holds" and the end there are only headings and rows, nothing that could lack a test."""
    body = SECURITY.split("\n## What holds\n")[1]
    assert len(CLAIMS) > 40 and all(line == "" or line[0] in "#|" for line in body.splitlines())
    for word in ("Reporting", "Supported versions", "What holds", "What does not hold"):
        assert f"\n## {word}\n" in SECURITY


# ---- what comments and documents cite ----

ROOT = lib.REPOSITORY
SPECIFICATION = (ROOT / "docs/specification.md").read_text()
CODE = [path for folder in ("core", "fs", "include", "tests") for path in sorted((ROOT / folder).rglob("*"))
        if path.suffix in (".c", ".h", ".py") or path.name == "run"]


def test_every_section_that_a_comment_cites_exists():
    sections = set(re.findall(r"^#{2,3} (\d+(?:\.\d+)?)\.? ", SPECIFICATION, re.M))
    cited = {(section, path.name) for path in CODE
             for numbers in re.findall(r"specification\.md[, ]+(\d+(?:\.\d+)?(?:, \d+\.\d+)*)", path.read_text(errors="replace"))
             for section in numbers.split(", ")}
    assert len(sections) > 40 and len(cited) > 20
    assert sorted((section, name) for section, name in cited if section not in sections) == []


def test_every_decision_is_in_the_index():
    folder = ROOT / "docs/decisions"
    index = re.findall(r"^\| \[(\d{3})\]\(([\w-]+\.md)\)", (folder / "README.md").read_text(), re.M)
    assert [name for _, name in index] == sorted(path.name for path in folder.glob("[0-9]*.md"))
    assert all(name.startswith(number + "-") for number, name in index)


def test_what_the_index_of_words_names_is_found():
    """With grep: exactly these words in one line of this file; and the function exists."""
    section = (ROOT / "docs/hacking.md").read_text().split("\n## Where do I find it?\n")[1].split("\n## ")[0]
    rows = re.findall(r"^\| ([\w ?]+) \| `([\w/.-]+)` \| `(\w+)\(\)`", section, re.M)
    assert len(rows) > 13
    for words, path, function in rows:
        text = (ROOT / path).read_text()
        assert any(words.lower() in line.lower() for line in text.splitlines()), (words, path)
        assert re.search(rf"^(?:\w.*[ *])?{function}\(.*$", text, re.M), (function, path)


def test_the_plan_of_rollouts_is_what_the_program_prints():
    printed = lib.run(sys.executable, lib.REPOSITORY / "tests/fleet/fleet_plan.py", check=True).stdout.decode()
    assert printed.count("\n") > 10 and printed in (lib.REPOSITORY / "docs/planning-a-rollout.md").read_text(encoding="utf-8")
