#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What a release changes in our tables: patch.py [--apply] FACTS [FACTS-OF-THE-RELEASE-BEFORE]

FACTS is what `read` printed. Prints a patch of core/schema/tables/ and of the recorded tables in tests/unit/known-tables.txt, to be reviewed;
--apply writes it. What a person has to judge follows on standard error: fields without words, and the functions that judge a
configuration and differ from the release before. See docs/hacking.md, "A release of Kubernetes".
"""
import argparse
import difflib
import json
import pathlib
import re
import sys
import textwrap

TOP = pathlib.Path(__file__).resolve().parents[2]
TABLES = "core/schema/tables/"
STAGES = {"ALPHA": "A", "BETA": "B", "GA": "G", "DEPRECATED": "D"}
# In the released binary, and not where we read the flags of the modules.
ONLY_IN_BINARIES = re.compile(r"log-json-|version$")
FLAG_TYPES = {"Level": "uint32", "pattern=N,...": "vmodule", "colonSeparatedMultimapStringString": "colonMultimap",
              "[]v1.Taint": "taints", "reserved-memory": "reservedMemory", "ipport": "ipPort", "LocalMode": "string", "ProxyMode": "string"}
FIELD_TYPES = {"v1.Duration": "duration", "v1.Time": "time", "resource.QuantityValue": "quantity"}
PLAIN = {"bool", "string", "int32", "int64", "uint32", "float32", "float64"}


def c_bool(value):
    return "true" if value else "false"


# ---- gates: a state for each release in which something changed ----

GATE = re.compile(r'^        \{ "(\w+)",\s+\{ (\{ .*?\}) \} \},\n', re.M | re.S)
STATE = re.compile(r'\{ (\d+), (\w+)(?:, (true|false))?(?:, (true|false))?(?:, \.before = true)? \}')
NEED = re.compile(r'^        \{ "(\w+)", "(\w+)",\s+(\d+) \},\n', re.M)


def rows_between(text, opening):
    """The table that begins with this line: (before, rows, after)."""
    start = text.index(opening)
    start = text.index("{\n", start) + 2
    end = text.index("};\n", start)
    return text[:start], text[start:end], text[end:]


def gates(text, facts, release):
    known = {row["name"]: row["now"] for row in facts["gates"]}
    before, body, after = rows_between(text, "const struct lkg_gate lkg_gates[]")
    comment = body[:GATE.search(body).start()]
    rows = {m[1]: [(int(s[1]), s[0], (s[2], s[3] or "false", s[4] or "false")) for s in STATE.finditer(m[2]) if int(s[1]) != release]
            for m in GATE.finditer(body)}
    for name in known.keys() | rows.keys():
        now = known.get(name)
        state = (now["stage"], c_bool(now["default"]), c_bool(now.get("lock"))) if now else ("REMOVED", "false", "false")
        states = rows.setdefault(name, [])
        last = states[-1][2] if states else ("REMOVED",)
        if last[0] == state[0] == "REMOVED" or last == state:
            continue
        shown = re.sub("(, false)+$", "", ", ".join(state))
        states.append((release, f"{{ {release}, {shown} }}", state))
    shown = (f'        {{ "{name}", {{ {", ".join(state[1] for state in rows[name])} }} }},\n' for name in sorted(rows) if rows[name])
    text = before + comment + "".join(shown) + after

    before, body, after = rows_between(text, "const struct lkg_gate_needs lkg_gate_needs[]")
    rows = {(m[1], m[2]): m[0] for m in NEED.finditer(body) if int(m[3]) != release}
    wanted = {(row["name"], other) for row in facts["gates"] for other in row.get("needs", [])}
    for pair in wanted - rows.keys():
        rows[pair] = f'        {{ "{pair[0]}", "{pair[1]}", {release} }},\n'
    for pair in sorted(rows.keys() - wanted):
        if pair[0] in known and pair[1] in known:
            print(f"judge: gate {pair[0]} does not need {pair[1]} any more: the table has no end for that", file=sys.stderr)
    return before + "".join(rows[pair] for pair in sorted(rows)) + after


# ---- flags and fields: `since` and `until` ----

def row_of(text, name):
    return re.search(r'^        \{ "' + re.escape(name) + r'", "(?:[^{}]|"[^"]*")*? \},\n', text, re.M)


def with_end(text, name, release):
    row = row_of(text, name)
    if ".until" in row[0]:
        return text
    return text[:row.end() - 4].rstrip() + f", .until = {release - 1} }},\n" + text[row.end():]


def flags(text, rows, release):
    known = {row["name"]: row for row in rows}
    ours = re.findall(r'^        \{ "([a-z0-9-]+)", ', text, re.M)
    for name in ours:
        if name not in known and not ONLY_IN_BINARIES.match(name):
            text = with_end(text, name, release)
    for name, row in sorted(known.items()):
        ours_too = row_of(text, name)
        if ours_too and not row.get("config") and bool(row.get("deprecated")) != (".deprecated" in ours_too[0]) and ".until" not in ours_too[0]:
            print(f"judge: flag --{name}: deprecated is {row.get('deprecated', '')!r}", file=sys.stderr)
    for name in sorted(known.keys() - set(ours)):
        row = known[name]
        if ONLY_IN_BINARIES.match(name):
            continue
        shown = f'        {{ "{name}", "{FLAG_TYPES.get(row["type"], row["type"])}"' + (", .field = NULL" if row.get("config") else "") + \
            (", .no_value = true" if row.get("noValue") else "") + f", .since = {release} }},\n"
        place = row_of(text, min((n for n in ours if n > name), default=ours[-1])).start()
        text = text[:place] + shown + text[place:]
    return text


def type_of(go):
    prefix = re.match(r"\*|\[\]|", go)[0]
    name = go[len(prefix):]
    if name in FIELD_TYPES or name in PLAIN or name.startswith("map"):
        return prefix + FIELD_TYPES.get(name, name)
    return prefix + "struct"


def as_c(value):
    return json.dumps(json.dumps(value, separators=(",", ":")))


def fields(text, rows, release, ours):
    """@ours: the rows of the release before, from a build: what changed since is what the facts say."""
    old, new = {row["path"]: row for row in ours}, {row["path"]: row for row in rows}
    for path in old.keys() - new.keys():
        text = with_end(text, path, release)
    last = None
    for row in rows:
        path = row["path"]
        if path not in old and not row_of(text, path):
            default = f', .def = {as_c(row["default"])}' if row.get("default") is not None else ""
            place = row_of(text, last).end()
            text = text[:place] + f'        {{ "{path}", "{type_of(row["type"])}"{default}, .since = {release} }},\n' + text[place:]
            print(f"judge: field {path} is new: rule, doc, danger, guard, change", file=sys.stderr)
        elif path in old and old[path] != row:
            print(f"judge: field {path} was {old[path]}, is {row}: a row that ends and one that begins", file=sys.stderr)
        last = path
    return text


# ---- the fields of a Pod: by Go type, in a line the Go types of its fields and their names ----

POD_WIDTH = 118
POD_ROW = re.compile(r'^        \{ "(\w+)",\s+("(?:[^{}]*)") \},\n', re.M)


def pod_fields(text):
    """{(name, Go type): [since, until]} of a line `*bool: a b@134; string: c~135`."""
    fields = {}
    for group in text.split("; ") if text else []:
        go, names = group.split(": ")
        for name, since, until in re.findall(r"(\w+)(?:@(\d+))?(?:~(\d+))?", names):
            fields[name, go] = [int(since or 0), int(until or 0)]
    return fields


def pod_text(fields):
    groups = {}
    for (name, go), (since, until) in sorted(fields.items()):
        groups.setdefault(go, []).append(name + (f"@{since}" if since else "") + (f"~{until}" if until else ""))
    return "; ".join(f"{go}: {' '.join(names)}" for go, names in sorted(groups.items()))


def pod_row(name, text):
    lines = textwrap.wrap(f'"{name}", "{text}', POD_WIDTH, subsequent_indent='   "', break_long_words=False, break_on_hyphens=False)
    return "        { " + ' "\n        '.join(lines) + '" },\n'


def pods(text, types, release, first):
    before, body, after = rows_between(text, "const struct lkg_pod_type lkg_pod_types[]")
    rows = {m[1]: pod_fields(re.sub(r'"\s*"', "", m[2]).strip('"')) for m in POD_ROW.finditer(body)}
    for name in rows.keys() | types.keys():
        known = {(field["name"], field["type"]) for field in types.get(name, [])}
        later = name in rows and release > first  # a new type is as new as what has it
        row = rows.setdefault(name, {})
        for field in known - row.keys():
            row[field] = [release if later else 0, 0]
        for field, span in row.items():
            if field not in known and not span[1]:
                span[1] = release - 1
    return before + "".join(pod_row(name, pod_text(rows[name])) for name in sorted(rows)) + after


# ---- what tests compare our tables with ----

def recorded(text, facts, release, first):
    lines = text.splitlines()
    states = {line.split()[1]: line.split()[2:] for line in lines if line.startswith("gate ")}
    known = {row["name"]: row["now"] for row in facts["gates"]}
    at = release - first
    for name in states.keys() | known.keys():
        now = known.get(name)
        column = STAGES[now["stage"]] + str(int(now["default"])) + ("L" if now.get("lock") else "") if now else "-"
        states[name] = (states.get(name, []) + ["-"] * at)[:at] + [column]
    shown = [line for line in lines if line.startswith("#")]
    for kind, rows in (("kubelet", facts["kubelet"]), ("kube-proxy", facts["kubeproxy"])):
        header = [{"path": "kind", "type": "string", "omitempty": True}, {"path": "apiVersion", "type": "string", "omitempty": True}]
        shown += ["", *(f"field {kind} {row['path']} {row['type']}{' omitempty' if row.get('omitempty') else ''}"
                        for row in (header if rows[0]["path"] != "kind" else []) + rows)]
    shown += ["", *(f"flag {row['name']} {row['type']}{' field' if row.get('config') else ''}" for row in facts["kubeletFlags"])]
    shown += ["", *(f"gate {name} {' '.join(states[name])}" for name in sorted(states))]
    return "\n".join(shown) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--apply", action="store_true")
    parser.add_argument("facts", type=argparse.FileType())
    parser.add_argument("before", nargs="?", type=argparse.FileType())
    args = parser.parse_args()
    facts = json.load(args.facts)
    before = json.load(args.before) if args.before else {"kubelet": facts["kubelet"], "kubeproxy": facts["kubeproxy"], "functions": {}}
    release = 100 + int(facts["release"].split(".")[1])
    first = int(re.search(r"LKG_RELEASE_MIN\s+(\d+)", (TOP / "include/lkg/schema.h").read_text(encoding="utf-8"))[1])
    changes = {
        "gates.c": lambda text: gates(text, facts, release),
        "kubelet.c": lambda text: fields(text, facts["kubelet"], release, before["kubelet"]),
        "kubeproxy.c": lambda text: fields(text, facts["kubeproxy"], release, before["kubeproxy"]),
        "flags-kubelet.c": lambda text: flags(text, facts["kubeletFlags"], release),
        "flags-kubeproxy.c": lambda text: flags(text, facts["kubeproxyFlags"], release),
        "pod.c": lambda text: pods(text, facts["pod"], release, first),
        "known-tables.txt": lambda text: recorded(text, facts, release, first),
    }
    for name, change in changes.items():
        path = ("tests/unit/" if name.endswith(".txt") else TABLES) + name
        old = (TOP / path).read_text(encoding="utf-8")
        new = change(old)
        sys.stdout.writelines(difflib.unified_diff(old.splitlines(True), new.splitlines(True), "a/" + path, "b/" + path))
        if args.apply:
            (TOP / path).write_text(new, encoding="utf-8")
    for name, digest in sorted(facts["functions"].items()):
        if before["functions"] and before["functions"].get(name) != digest:
            print(f"judge: function {name} {'changed' if name in before['functions'] else 'is new'}", file=sys.stderr)
    for name in sorted(before["functions"].keys() - facts["functions"].keys()):
        print(f"judge: function {name} is gone", file=sys.stderr)


if __name__ == "__main__":
    main()
