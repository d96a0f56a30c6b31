# SPDX-License-Identifier: Apache-2.0
"""`lkgfs schema` with a real validator: what the tool and upstream accept validates, typical mistakes do not. No mount is needed."""
import json
import pathlib

import jsonschema
import pytest

import lkgfs_testlib as lib

GOLDEN = pathlib.Path(__file__).resolve().parents[1] / "golden"
KINDS = {
    "KubeletConfiguration": "kubelet.config.k8s.io/v1beta1",
    "KubeProxyConfiguration": "kubeproxy.config.k8s.io/v1alpha1",
}
RELEASES = ["1.33", "1.34", "1.35", "1.36", "1.37"]
CONFIGURATION = {"apiVersion": "config.lkgfs.io/v1alpha1", "kind": "LkgfsConfiguration"}
N_FILES = 2000  # of one command line

# Tried in every field. What the tool accepts must validate.
VALUES = [
    *[None, True, False, 0, 1, -1, 2, -2, 1001, -1001, 65535, 65536, 2**31 - 1, 2**31, 2**32, -(2**31) - 1, 2**63, 1.5],
    *["", "x", "10s", "-1s", "1m", "5", "1Mi", " 1Mi ", "-0", "1e3", "0", ".5s", "1.s", "1\u00b5s", "+1h", "100%"],
    *[[], {}, [None], [0], ["x"], [{}], {"x": None}, {"x": "1"}, {"x": True}, {"x": 1}, {"$patch": "replace"}],
]


def schema(kind, *words):
    text = lib.run(lib.LKGFS, "schema", kind, *words, check=True).stdout
    made = json.loads(text)
    jsonschema.Draft7Validator.check_schema(made)
    return made


def validator(kind, *words):
    return jsonschema.Draft7Validator(schema(kind, *words))


def header(kind):
    return {"apiVersion": KINDS[kind], "kind": kind}


def walk(node, path=()):
    """Every field of a schema: its path, in which 0 is an item of a list, and its part of the schema."""
    yield path, node
    for name, member in node.get("properties", {}).items():
        yield from walk(member, (*path, name))
    if "items" in node:
        yield from walk(node["items"], (*path, 0))
    if isinstance(node.get("additionalProperties"), dict):
        yield from walk(node["additionalProperties"], (*path, "another"))


def nested(path, value):
    for part in reversed(path):
        value = [value] if part == 0 else {part: value}
    return value


def mutations(kind, of):
    for path, node in walk(of):
        if not path or path[0] in ("apiVersion", "kind"):
            continue
        values = list(VALUES)
        for limit in ("minimum", "maximum"):
            if limit in node:
                values += [node[limit] - 1, node[limit], node[limit] + 1]
        for word in node.get("enum", []):
            values += [word, str(word).upper()]
        if path[0] == "featureGates" and len(path) > 1:
            values = [True, False, None, "x"]
        for value in values:
            yield {**header(kind), **nested(path, value)}


def judged(directory, release, documents):
    """Which of them `lkgfs check` accepts."""
    for start in range(0, len(documents), N_FILES):
        names = []
        for i, document in enumerate(documents[start : start + N_FILES]):
            names.append(f"{i}.json")
            (directory / names[-1]).write_text(json.dumps(document))
        done = lib.run(lib.LKGFS, "check", "--release", release, "-o", "json", *names, cwd=directory)
        for file in json.loads(done.stdout)["files"]:
            yield file["state"] == "valid"


@pytest.mark.parametrize("release", [RELEASES[0], RELEASES[-1]])
@pytest.mark.parametrize("kind", KINDS)
def test_what_check_accepts_validates(tmp_path, kind, release):
    """Each field with wrong and odd values: never stricter than the component, and most of what it refuses is found."""
    made = schema(kind, "--release", release)
    valid = jsonschema.Draft7Validator(made).is_valid
    documents = list(mutations(kind, made))
    accepted = refused = found = 0
    for document, good in zip(documents, judged(tmp_path, release, documents), strict=True):
        if good:
            assert valid(document), document
            accepted += 1
        else:
            refused += 1
            found += not valid(document)
    assert accepted > 1000 and refused > 3000
    assert found > refused * 0.8, f"{found} of {refused}"


def as_json(directory, text):
    """The document as the component reads it, or None."""
    (directory / "one").write_bytes(text)
    done = lib.run(lib.LKGFS, "convert", "-o", "json", "one", cwd=directory)
    return json.loads(done.stdout) if done.returncode == 0 else None


def layers_of_vectors():
    """(kind, text) of every layer in a case that upstream accepts."""
    for path in sorted((GOLDEN / "vectors").glob("*.jsonl")):
        for line in filter(None, path.read_text().split("\n")):
            case = json.loads(line)
            kind = {"kubelet": "KubeletConfiguration", "kubeproxy": "KubeProxyConfiguration"}.get(case["op"])
            if not kind or not case["want"]["ok"]:
                continue
            for text in (case.get("base"), *(dropin["text"] for dropin in case.get("dropins", []))):
                if text is not None:
                    yield case["id"], kind, text.encode()


def layers_of_trees():
    """The same of the golden trees that have a document, and these documents."""
    for case in sorted(path for path in GOLDEN.iterdir() if path.is_dir()):
        merged = [path for path in (case / "want.yaml", case / "want.json") if path.is_file()]
        layers = (case / "source").rglob("*.conf") if merged and (case / "source").is_dir() else []
        for path in (*merged, *layers):
            if path.is_file() and not path.is_symlink():
                yield f"{case.name}/{path.name}", None, path.read_bytes()


# Accepted, and rightly refused by an editor.
EXCEPTIONS = {
    "found-header-right-in-another-case-last": "`kind` is wrong and `Kind` after it is right",
}


def test_golden_documents_validate(tmp_path):
    """Every document and layer that is accepted by itself; one that only counts because another one overrides it need not be."""
    validators = {kind: validator(kind) for kind in KINDS}
    known = []
    for name, kind, text in (*layers_of_vectors(), *layers_of_trees()):
        document = as_json(tmp_path, text)
        kind = kind or (document or {}).get("kind")
        if not isinstance(document, dict) or kind not in KINDS:
            continue
        if document.get("kind") == kind and document.get("apiVersion") not in (None, KINDS[kind]):
            continue  # a drop-in for another version, which is left out
        known.append((name, kind, document))
    accepted = judged(tmp_path, RELEASES[-1], [document for _, _, document in known])
    n = dict.fromkeys(KINDS, 0)
    failed = []
    for (name, kind, document), good in zip(known, accepted, strict=True):
        errors = [f"{error.json_path}: {error.message[:100]}" for error in validators[kind].iter_errors(document)] if good else []
        if errors and name not in EXCEPTIONS:
            failed.append((name, errors))
        n[kind] += good
    assert not failed
    assert n["KubeletConfiguration"] > 600 and n["KubeProxyConfiguration"] > 30, n


WRONG = [
    ("KubeletConfiguration", {"maxPods": "110"}, "maxPods"),
    ("KubeletConfiguration", {"maxPods": -5}, "maxPods"),
    ("KubeletConfiguration", {"oomScoreAdj": 1001}, "oomScoreAdj"),
    ("KubeletConfiguration", {"readOnlyPort": 65536}, "readOnlyPort"),
    ("KubeletConfiguration", {"syncFrequency": "1 minute"}, "syncFrequency"),
    ("KubeletConfiguration", {"syncFrequency": 60}, "syncFrequency"),
    ("KubeletConfiguration", {"topologyManagerPolicy": "strict"}, "topologyManagerPolicy"),
    ("KubeletConfiguration", {"memorySwap": {"swapBehavior": "Unlimited"}}, "memorySwap/swapBehavior"),
    ("KubeletConfiguration", {"clusterDNS": "10.0.0.10"}, "clusterDNS"),
    ("KubeletConfiguration", {"featureGates": {"NodeLogQerry": True}}, "featureGates/NodeLogQerry"),
    ("KubeletConfiguration", {"evictionHard": {"memory.available": 100}}, "evictionHard/memory.available"),
    ("KubeletConfiguration", {"registerWithTaints": [{"key": 1}]}, "registerWithTaints/0/key"),
    ("KubeletConfiguration", {"kind": "KubeProxyConfiguration"}, "kind"),
    ("KubeProxyConfiguration", {"mode": "userspace"}, "mode"),
    ("KubeProxyConfiguration", {"conntrack": {"min": -1}}, "conntrack/min"),
    ("KubeProxyConfiguration", {"iptables": {"masqueradeBit": 32}}, "iptables/masqueradeBit"),
    ("LkgfsConfiguration", {"historyLimit": 0}, "historyLimit"),
    ("LkgfsConfiguration", {"historyLimits": 3}, ""),
    ("LkgfsConfiguration", {"layerLinks": "anywhere"}, "layerLinks"),
    ("LkgfsConfiguration", {"engineTimeout": "-1s"}, "engineTimeout"),
    ("LkgfsConfiguration", {"statusMode": "rw"}, "statusMode"),
    ("LkgfsConfiguration", {"components": [{"file": "x"}]}, "components/0"),
    ("LkgfsConfiguration", {"components": [{"name": "kubelet", "schemaRelease": 1.2}]}, "components/0/schemaRelease"),
]


@pytest.mark.parametrize("kind, wrong, place", WRONG)
def test_mistakes_do_not_validate(tmp_path, kind, wrong, place):
    document = {**(CONFIGURATION if kind == "LkgfsConfiguration" else header(kind)), **wrong}
    errors = list(validator(kind).iter_errors(document))
    assert ["/".join(map(str, error.absolute_path)) for error in errors] == [place]
    (tmp_path / "d.json").write_text(json.dumps(document))
    assert lib.run(lib.LKGFS, "check", "d.json", cwd=tmp_path).returncode == 1, "the tool accepts it"


def test_configuration(tmp_path):
    """Every setting with values of every type: what `lkgfs check` accepts without a warning validates."""
    made = schema("lkgfs")
    valid = jsonschema.Draft7Validator(made).is_valid
    documents = [{**CONFIGURATION, **nested(path, value)} for path, node in walk(made)
                 if path and path[0] not in CONFIGURATION and path != ("components", 0)
                 for value in (*VALUES, *node.get("enum", []), *node.get("examples", []))]
    for document in documents:
        components = document.get("components")
        for component in components if isinstance(components, list) else []:
            if isinstance(component, dict):
                component.setdefault("name", "kubelet")
    done = []
    for start in range(0, len(documents), N_FILES):
        names = []
        for i, document in enumerate(documents[start : start + N_FILES]):
            names.append(f"{i}.json")
            (tmp_path / names[-1]).write_text(json.dumps(document))
        out = lib.run(lib.LKGFS, "check", "-o", "json", *names, cwd=tmp_path).stdout
        done += [file["errors"] == file["warnings"] == 0 for file in json.loads(out)["files"]]
    for document, good in zip(documents, done, strict=True):
        assert valid(document) or not good, document
    assert sum(done) > 500


def test_releases_differ():
    old, new = (schema("KubeletConfiguration", "--release", release) for release in (RELEASES[0], RELEASES[-1]))
    assert "1.33" in old["title"] and RELEASES[-1] in new["title"]
    assert set(new["properties"]) - set(old["properties"]), "a later release has more fields"
    assert schema("kubelet") == new, "the latest is the default"
    gates = new["properties"]["featureGates"]["properties"]
    assert gates["NodeLogQuery"]["enum"] == [True, None] and "locked" in gates["NodeLogQuery"]["description"]


def test_fields_are_described():
    for kind in (*KINDS, "LkgfsConfiguration"):
        for path, node in walk(schema(kind)):
            if path and path[-1] not in (0, "another"):
                assert node.get("description"), path
    made = schema("KubeletConfiguration")["properties"]
    assert made["maxPods"]["default"] == 110 and "--max-pods" in made["maxPods"]["description"]
    deprecated = [name for name, field in made.items() if field.get("deprecated")]
    assert deprecated and all(made[name]["deprecationMessage"] for name in deprecated)
    made = schema("LkgfsConfiguration")["properties"]
    assert made["remote"]["properties"]["allowedSources"]["default"] == ["kube-system/*"]


def test_the_list_and_mistakes():
    lines = lib.run(lib.LKGFS, "schema", check=True).stdout.decode().splitlines()
    assert [line.split()[0] for line in lines] == [*KINDS, "LkgfsConfiguration"]
    for words, says in (
        (["Pod"], b'there is no schema for kind "Pod"'),
        (["kubelet", "--release", "1.20"], b"1.33 to 1.37 only"),
        (["lkgfs", "--release", "1.36"], b"does not depend on a release"),
    ):
        done = lib.run(lib.LKGFS, "schema", *words)
        assert (done.returncode, done.stdout) == (64, b"") and says in done.stderr
