# SPDX-License-Identifier: Apache-2.0
"""Manifests of static pods: real ones, changed at random places of their types."""

import json
import pathlib
import re

import jsontree
import ops
from errorfields import ERROR

TOP = pathlib.Path(__file__).resolve().parents[3]
ROW = re.compile(r'^        \{ "(\w+)", ("[^{}]*") \},\n', re.M)


def types(text):
    """{type: {field: Go type}} of core/schema/tables/pod.c, of all releases."""
    found = {}
    for name, fields in ROW.findall(text):
        groups = re.sub(r'"\s*"', " ", fields).strip('"')
        found[name] = {re.sub("[@~].*", "", field): go for go, names in (group.split(": ") for group in re.sub(" +", " ", groups).split("; "))
                       for field in names.split()}
    return found


TYPES = types((TOP / "core/schema/tables/pod.c").read_text(encoding="utf-8"))
# Words, names and numbers that the rules ask for.
RULES = "".join((TOP / f"core/schema/{name}.c").read_text(encoding="utf-8")
                for name in ("rules-pod", "rules-pod-containers", "rules-pod-placing"))
WORDS = sorted({word for text in re.findall(r'"((?:[\w.+-]+, )+[\w.+-]+)"', re.sub(r'"\s*"', "", RULES)) for word in text.split(", ")})
TEXTS = ["", "a", "c", "v", "A", "a.b", "a-", "-a", "a_b", "a" * 64, "x" * 254, "1", "80", "80a", "http", "/", "/a", "a/b", "../a", "..", "..a", "a/../b", "/a/..",
         "example.com/a", "example.com/A", "kubernetes.io/a", "10.0.0.1", "10.0.0.01", "::1", "::ffff:1.2.3.4", "1.2.3.4/8", "net.core.somaxconn", "kernel.sem",
         "kernel/shmmax", "localhost/a", "runtime/default", "metadata.name", "metadata.labels['a']", "metadata.annotations['A/b']", "spec.nodeName", "limits.cpu",
         " a", "a ", "v1", "Pod", "node-1", "_a.b", ".", "a.", "1Gi", "1m", "true", "null", "=", "a=b", "\u00e9", "SIGTERM", "kubernetes", "orphan", "foregroundDeletion"] + WORDS
QUANTITIES = ["1", "100m", "1Gi", "0", "-1", "1.5", "0.0001", "2Mi", "3Mi", "1e3", 1, 0.5, "", "x", "1E", "10Ei", "1n"]
NUMBERS = [0, 1, -1, 2, 20, 80, 255, 256, 443, 511, 512, 1023, 65535, 65536, 2147483647, 2147483648, -2147483649, 1.5, 10**19]
KEYS = ["a", "A", "example.com/a", "a/b/c", "", "cpu", "memory", "ephemeral-storage", "hugepages-2Mi", "hugepages-1Gi", "hugepages-x", "storage", "nvidia.com/gpu",
        "requests.a/b", "kubernetes.io/x", "limits.cpu", "a" * 64, "container.apparmor.security.beta.kubernetes.io/c", "controller.kubernetes.io/pod-deletion-cost",
        "seccomp.security.alpha.kubernetes.io/pod", "container.seccomp.security.alpha.kubernetes.io/c"]
# Not judged: lkg/pod.h says what.
YAML = "#\n"  # before JSON it makes the kubelet read YAML
IGNORED = re.compile(r"volumes\[\d+\]\.(iscsi|fc|flexVolume|flocker|quobyte|azureDisk|cinder|storageos)|windowsOptions|hostProcess|windows pod|bindMountOptions|"
                     r"annotation and field must match|metadata\.annotations(\[|\.\w+\.)|disallowed from being an owner|Only one reference can have Controller|managedFields\[\d+\]\.manager|spec\.resources: Forbidden: HugePages")


def value(rng, go, depth=0):
    """A value of a Go type, or now and then of another one."""
    if rng.random() < 0.02:
        return rng.choice([None, {}, [], "", 0, True, "x", {"a": 1}, [1]])
    go = go.lstrip("*")
    if go.startswith("[]"):
        return [value(rng, go[2:], depth) for _ in range(rng.choice((0, 1, 1, 1, 2, 3)))]
    if go.startswith("map[string]"):
        return {rng.choice(KEYS): value(rng, go[11:], depth) for _ in range(rng.choice((0, 1, 1, 2)))}
    if go in TYPES:
        fields = TYPES[go]
        few = rng.sample(sorted(fields), min(len(fields), rng.choice((0, 1, 1, 2, 3)) if depth < 4 else 1))
        if depth < 4 and rng.random() < 0.7:
            few += [name for name in ("name", "image", "key", "path", "operator", "type", "topologyKey", "port", "exec", "mountPath", "containerPort")
                    if name in fields and name not in few]
        return {name: value(rng, fields[name], depth + 1) for name in few}
    if go in ("int32", "int64"):
        return rng.choice(NUMBERS)
    if go == "intstr":
        return rng.choice(NUMBERS[:10] + ["http", "80", "", "-a", "A"])
    return {"bool": rng.choice([True, False]), "quantity": rng.choice(QUANTITIES), "time": rng.choice(["2026-01-31T12:00:00Z", "x"]), "any": {"f:a": {}}}.get(
        go, rng.choice(TEXTS))


def places(tree, go, path=()):
    """(path, Go type) of everything in a typed tree."""
    yield path, go
    go = go.lstrip("*")
    if isinstance(tree, list) and go.startswith("[]"):
        for i, item in enumerate(tree):
            yield from places(item, go[2:], path + (i,))
    elif isinstance(tree, dict):
        for key, member in tree.items():
            if go.startswith("map[string]"):
                yield from places(member, go[11:], path + (key,))
            elif key in TYPES.get(go, {}):
                yield from places(member, TYPES[go][key], path + (key,))


def change(rng, tree):
    path, go = rng.choice([((), "")] + [place for place in places(tree, "Pod") if place[0] and place[0][0] not in ("kind", "apiVersion", "status")])
    if not path:
        return
    holder = tree
    for step in path[:-1]:
        holder = holder[step]
    what, there = rng.random(), holder[path[-1]]
    fields = TYPES.get(go.lstrip("*"), {})
    if fields and isinstance(there, dict) and what < 0.7:
        name = rng.choice(sorted(fields))
        there[name] = value(rng, fields[name], 2)
    elif isinstance(there, list) and what < 0.6:
        there.insert(rng.randint(0, len(there)), value(rng, go.lstrip("*")[2:], 2) if rng.random() < 0.5 or not there else json.loads(json.dumps(rng.choice(there))))
    elif what < 0.8:
        holder[path[-1]] = value(rng, go, 2)
    else:
        del holder[path[-1]]


def upstream_fields(text):
    """Paths in an error of field.ErrorList, without indexes and keys."""
    text = TOO_MANY.sub(": Forbidden", re.sub(r'"(?:\\.|[^"\\])*"', '""', text))
    found = re.findall(r"(?:^|[\[ ])((?:metadata|spec)(?:\[[^\] ]*\]|\.\w+|\.\{[^}]*\})*): (?:Invalid|Required|Forbidden|Unsupported|Duplicate|Not found|Too)", text)
    return {re.sub(r"\[[^\]]*\]|\.\{.*", "", name).lower() for name in found}


def our_fields(text):
    return {re.sub(r'\[\d+\]|"', "", match.group(1).split(": ")[0]).lower() for match in ERROR.finditer(text)}


# Where upstream names another field than we do.
OTHER_NAMES = (("spec.securitycontext.shareprocess", "spec.shareprocess"), ("persistentdisk", "gcepersistentdisk"), ("resources.limits", "resources.requests"), ("resources.requests", "resources.limits"),
               ("downwardapi.", "downwardapi.items."), ("tolerations.operator", "tolerations.value"), ("spec.nodename", "spec.schedulinggates"),
               (".namespace", ".namespaces"), ("fieldpath", "apiversion"), ("overhead.limits", "overhead"), ("serviceaccountname", "serviceaccount"),
               ("spec.resources.containers", "spec.resources.limits"),
               ("tolerations.effect", "tolerations.tolerationseconds"), ("volumemounts.", "volumedevices."), ("ports.hostport", "ports.containerport"),
               ("downwardapi.items.fieldref.fieldpath", "downwardapi.items.fieldref.apiversion"), ("projected.path", "projected.sources"))
# Of two sources of a volume, or two handlers, we may keep the other one.
TOO_MANY = re.compile(r"\.\w+: Forbidden: may not specify more than 1")
# A volume that is wrong is none for those who mount it.
OF_VOLUMES = re.compile(r"(volumemounts|volumedevices)\.name|filekeyref\.volumename")


def near(name, names, others=OTHER_NAMES):
    if others and OF_VOLUMES.search(name) and any(other.startswith("spec.volumes") for other in names):
        return True
    if others and name.startswith("spec.resources") and any("resources." in other for other in names):
        return True  # what upstream has made of the containers' own
    variants = {name}
    for one, other in others:
        variants |= {variant.replace(one, other) for variant in variants}
    return any(name == other or name.startswith(other + ".") or other.startswith(name + ".") for name in variants for other in names)


class Pod(ops.TextOp):
    name = "pod"
    compared = ("ok",)
    asked_again = 3
    release = 0

    def __init__(self, seeds):
        lines = pathlib.Path(__file__).with_name("pods.jsonl").read_text(encoding="utf-8").splitlines()
        super().__init__([{"text": line} for line in lines])

    def request(self, text):
        return {"op": self.name, "text": text, "release": self.release}

    def generate(self, rng):
        tree = json.loads(rng.choice(self.seeds)["text"])
        for _ in range(rng.choice((1, 1, 1, 2, 2, 3, 5))):
            change(rng, tree)
        return self.request(rng.choice(("", YAML)) + json.dumps(tree))

    def smaller(self, request):
        text = request["text"].removeprefix(YAML)
        for tree in jsontree.smaller(jsontree.parse(text)):
            yield self.request(request["text"][: -len(text)] + jsontree.dump(tree))

    def alike(self, request, want, got):
        error = want.get("error") or ""
        if got is None or want.get("stage") == "panic" or IGNORED.search(error):
            return got is not None
        if want.get("ok") != got.get("ok"):
            return False
        if want.get("stage") != "validate":
            return True
        theirs, ours = upstream_fields(error), our_fields(got.get("error") or "")
        return all(near(name, ours) for name in theirs)


OPS = {"pod": Pod}
