# SPDX-License-Identifier: Apache-2.0
"""Configuration layers of the kubelet and kube-proxy; what is served; the values of fields."""

import copy
import json
import pathlib
import sys

import errorfields
import fieldvalues
import jsontree
import yamltext
from commandline import CommandLine
from jsontree import Members
from ops import Op
from peer import Peer, alike
from realistic import DOCUMENTS

VECTORS = pathlib.Path(__file__).resolve().parents[2] / "golden" / "vectors"
sys.path.insert(0, str(VECTORS.parent))
from vectors import difference, number  # noqa: E402  pylint: disable=wrong-import-position
HEADERS = {
    "KubeletConfiguration": "kubelet.config.k8s.io/v1beta1",
    "KubeProxyConfiguration": "kubeproxy.config.k8s.io/v1alpha1",
}
NAMES = [
    "00-x.conf", "10-a.conf", "9.conf", "100.conf", "a.yaml", "A.CONF", ".hidden.conf", "sub/a.conf", "sub.conf/b.conf",
        "10-a/x.conf", "\u00e9.conf",
    "x.conf~", ".conf", "a.conf.bak", "sub/deep/er/z.conf", "Z.conf", "a b.conf", "noext", "10-a.conf.d/1.conf",
        "10-a-b.conf", "50-x.conf", "90.conf",
]


# Known differences; docs/decisions/ has the reasons. Text in the oracle's error ...
WANTED = (
    ('logging.format: Invalid value: "json"', "the recording program has no JSON format"),
    ("show-hidden-metrics-for-version must be omitted", "the recording program has no version of its own"),
    ("showHiddenMetricsForVersion", "the recording program has no version of its own"),
)
# ... or in ours: (text, how the base begins, the reason).
ALLOWED = (
    ("takes no other words", "", "a stray word: the kubelet refuses it after parsing, the recording program stops before"),
    ('key "infoBufferSize" is already set', "{",
     "null after a number: upstream's Quantity is 0 then and remembers the old text, which the recording program prints"),
    ("needs the feature gate KubeProxyIPVS", "", "kube-proxy judges by the gates of its document, the recording program's validation by the defaults"),
    ("[LKG2003]", "", "a header whose names have another case: refused, because every tool that looks for kind overlooks it"),
)


def allowed(request, got):
    base, error = request.get("base", "").lstrip(), got.get("error") or ""
    return any(words in error and base.startswith(start) for words, start, _ in ALLOWED)


class Component(Op):
    """A request is {base, dropins, args, cgroup}, as in the recorded cases."""

    kind = ""
    focus = ()
    release = 0  # 134 is 1.34; 0 = the latest
    args_share = 0
    dropins = True
    asked_again = 3

    def prepare(self, oracle):
        """Ask @oracle, a program, for the tables."""
        peer = Peer(oracle)
        rows, gates, flags = peer.ask([{"op": "fields", "kind": self.kind}, {"op": "gates"}, {"op": "flags"}])
        self.values = fieldvalues.Values(rows["out"], gates["out"])
        self.fields = errorfields.Fields(row["path"] for row in rows["out"])
        self.command_line = CommandLine(flags["out"], gates["out"])
        peer.stop()

    # ---- documents ----

    def header(self, rng):
        if rng.random() < 0.985:
            return Members([("kind", self.kind), ("apiVersion", HEADERS[self.kind])])
        return Members(rng.choice([
            [("kind", self.kind)], [("apiVersion", HEADERS[self.kind])], [], [("kind", "Pod"), ("apiVersion", "v1")],
            [("Kind", self.kind), ("apiversion", HEADERS[self.kind])], [("kind", self.kind), ("apiVersion",
                "kubelet.config.k8s.io/v1")],
            [("kind", None), ("apiVersion", HEADERS[self.kind])], [("kind", 1), ("apiVersion", HEADERS[self.kind])],
        ]))

    def set(self, rng, members, path, value):
        """Put @value at a dotted path, sometimes with a name in the wrong case."""
        name, _, rest = path.partition(".")
        if rng.random() < 0.02:
            name = rng.choice([name.lower(), name.upper(), name.capitalize(), name[:-1] + name[-1].swapcase()])
        if not rest:
            members.append((name, value))
            return
        below = next((member for key, member in members if key == name and isinstance(member, Members)), None)
        if below is None:
            below = Members()
            members.append((name, below))
        self.set(rng, below, rest, value)

    def members(self, rng, wild):
        members = self.header(rng)
        paths = rng.sample(self.values.leaves, rng.choice([0, 1, 1, 2, 3, 5, 8]))
        paths += [path for path in self.focus if path not in paths and rng.random() < 0.7]
        rng.shuffle(paths)
        for path in paths:
            if rng.random() < 0.06:  # a value that is not a leaf
                path = rng.choice(list(self.values.rows))
                if "[" in path:
                    path = path.partition("[")[0]
            if rng.random() < 0.06:  # the parent instead of the field
                path = path.rpartition(".")[0] or path
            value = None if rng.random() < 0.05 else self.values.value(rng, path, wild)
            if path in self.focus and rng.random() < 0.15:
                value = rng.choice(fieldvalues.SHAPES)
            self.set(rng, members, path, value)
        if paths and rng.random() < 0.05:
            self.again(rng, members, rng.choice(paths), wild)
        if rng.random() < 0.04:
            members.append((rng.choice(["unknown", "maxpod", "x.y", "", "$patch"]), rng.choice(fieldvalues.WRONG)))
        if rng.random() < 0.02:
            members.append(rng.choice(members) if members else ("a", 1))
        return members

    def again(self, rng, members, path, wild):
        """Add the same field again, with one name in the wrong case, before or after the others."""
        parts = path.split(".")
        i = rng.randrange(len(parts))
        parts[i] = rng.choice([parts[i].lower(), parts[i].upper(), parts[i].capitalize(), parts[i]])
        below = self.values.value(rng, path, wild)
        for part in reversed(parts[1:]):
            below = Members([(part, below)])
        members.insert(rng.choice([0, len(members)]), (parts[0], below))

    def text(self, rng, members):
        choice = rng.random()
        if choice < 0.5:
            return jsontree.dump(members)
        if choice < 0.6:
            members = self.spelled(rng, members)
        return jsontree.block(members)

    def spelled(self, rng, members):
        """One scalar in another YAML 1.1 spelling."""
        places = [path for path in jsontree.places(members) if not isinstance(jsontree.at(members, path), list)]
        return jsontree.put(members, rng.choice(places), rng.choice(fieldvalues.YAML_WORDS)) if places else members

    def document(self, rng):
        choice = rng.random()
        if choice < 0.82 or not self.texts:
            return self.text(rng, self.members(rng, rng.choice([0, 0, 0.02, 0.1])))
        text = rng.choice(self.texts if choice < 0.93 else DOCUMENTS[self.kind])
        for _ in range(rng.choice([0, 1, 1, 2])):
            text = self.mutate(rng, text)
        return text

    def mutate(self, rng, text):
        try:
            tree = jsontree.parse(text)
        except ValueError:
            return yamltext.mutate(rng, text, rng.choice(self.texts))
        if not isinstance(tree, Members) or rng.random() < 0.1:
            return yamltext.mutate(rng, text, rng.choice(self.texts))
        path = rng.choice(list(jsontree.places(tree)))
        if path and rng.random() < 0.3:
            return jsontree.dump(jsontree.drop(tree, path))
        if path and rng.random() < 0.5:
            new = rng.choice(rng.choice([fieldvalues.WRONG, fieldvalues.EDGES, fieldvalues.DURATIONS]))
            return jsontree.dump(jsontree.put(tree, path, new))
        self.set(rng, tree, *self.member(rng))
        return self.text(rng, tree)

    def member(self, rng):
        path = rng.choice(self.values.leaves)
        return path, self.values.value(rng, path, 0.02)

    # ---- requests ----

    def __init__(self, seeds):
        super().__init__(seeds)
        self.texts = [seed["base"] for seed in seeds if "base" in seed]
        self.texts += [dropin["text"] for seed in seeds for dropin in seed.get("dropins") or []]

    def choose_focus(self, rng):
        """Choose the topic of one request: values of two layers are then often at the same path."""
        self.focus = rng.sample(self.values.leaves, rng.choice([0, 1, 1, 1, 2, 3])) if rng.random() < 0.7 else []

    def generate(self, rng):
        self.choose_focus(rng)
        request = {"op": self.asks or self.name, "base": self.document(rng)}
        if rng.random() < 0.6 and self.dropins:
            count = rng.choice([0, 1, 1, 1, 2, 2, 3, 5])
            names = rng.sample(NAMES, count)
            request["dropins"] = [{"path": name, "text": self.document(rng)} for name in names]
            if rng.random() < 0.08:
                del request["base"]
        if "base" in request and rng.random() < 0.1:  # a ConfigMap takes its place, with any content
            request["remote"] = request["base"]
            request["base"] = self.document(rng)
        if self.release:
            request["release"] = self.release
        if rng.random() < self.args_share:
            request["args"] = self.command_line.generate(rng)
        elif rng.random() < 0.1 and self.dropins:  # the oracle's process for a command line has no cgroup
            request["cgroup"] = 1
        return request

    @staticmethod
    def shorter(text):
        try:
            tree = jsontree.parse(text)
        except ValueError:
            lines = text.splitlines(keepends=True)
            for i in range(len(lines)):
                yield "".join(lines[:i] + lines[i + 1 :])
            if len(text) < 200:
                yield from yamltext.shorter(text)
            return
        for value in jsontree.smaller(tree):
            yield jsontree.dump(value)

    def smaller(self, request):
        for key in ("args", "dropins", "cgroup", "remote", "patches", "instance"):
            if key in request:
                yield {name: value for name, value in request.items() if name != key}
        for key in ("args", "dropins", "patches"):
            for i in range(len(request.get(key, []))):
                yield {**request, key: request[key][:i] + request[key][i + 1 :]}
        for key in ("base", "remote", "instance"):
            for text in self.shorter(request[key]) if request.get(key) else ():
                yield {**request, key: text}
        for key in ("dropins", "patches"):
            for i, item in enumerate(request.get(key, [])):
                for text in self.shorter(item["text"]):
                    changed = copy.deepcopy(request)
                    changed[key][i]["text"] = text
                    yield changed

    # ---- answers ----

    def recorded(self, want):
        if not want["ok"]:
            return {key: want[key] for key in ("ok", "stage", "error") if key in want}
        if self.release:
            return {"ok": True, "out": json.loads(json.dumps(want["out"], default=number))}
        default = json.loads((VECTORS / f"{self.kind}.default.json").read_text(encoding="utf-8"))
        return {"ok": True, "change": difference(default, json.loads(json.dumps(want["out"], default=number)))}

    def for_oracle(self, request):
        question = {key: value for key, value in request.items() if key not in ("remote", "release")}
        if "remote" in request:
            question["base"] = request["remote"]
        return {**question, "op": "kubelet"}

    def of_oracle(self, reply):
        """Drop replies with a known, wanted difference, and failures of the recording program."""
        error = reply.get("error") or ""
        if reply.get("stage") == "oracle" or any(word in error for word, _ in WANTED):
            return None
        return reply

    def alike(self, request, want, got):
        if got is None or got.get("none"):
            return got is not None  # without a document there is nothing to answer
        if allowed(request, got):
            return True
        if want.get("ok") != got.get("ok"):
            return False
        if not want["ok"]:
            return not errorfields.unnamed(self.fields, want, got)
        return alike(want["out"], got["out"])


class Kubelet(Component):
    name = "kubelet"
    kind = "KubeletConfiguration"
    args_share = 0.06


class Flags(Component):
    """Mostly command lines; slow, because the oracle starts a process for each."""

    name = "flags"
    asks = "kubelet"
    kind = "KubeletConfiguration"
    args_share = 1


class KubeProxy(Component):
    name = "kubeproxy"
    kind = "KubeProxyConfiguration"
    dropins = False

    def for_oracle(self, request):
        return {**super().for_oracle(request), "op": "kubeproxy"}


def relative_resolved(a, b):
    """A relative path of a drop-in, which a reader of the single file resolves differently."""
    return isinstance(a, str) and isinstance(b, str) and not a.startswith("/") and b.startswith(("@", "/"))


def differences(a, b, path=""):
    """Dotted paths of the leaves that differ."""
    if isinstance(a, dict) and isinstance(b, dict):
        for key in sorted(a.keys() | b.keys()):
            yield from differences(a.get(key), b.get(key), f"{path}.{key}" if path else key)
    elif not alike(a, b) and not relative_resolved(a, b):
        yield path


class Served(Kubelet):
    """The served bytes, read back by the oracle as its only document, must give the same result as the layers."""

    name = "served"
    asks = "kubelet"
    args_share = 0.02

    def prepare(self, oracle):
        super().prepare(oracle)
        self.peer = Peer(oracle)

    def wanted(self, want, got):
        """The expected result of the served document."""
        return want["out"]

    def alike(self, request, want, got):
        if got is None or not want.get("ok") or not got.get("ok") or allowed(request, got):
            return got is not None
        question = {"op": "kubelet", "base": got["served"], **self.context(request)}
        reply = self.peer.ask([question])[0]
        if reply is None or Component.of_oracle(self, reply) is None or not reply.get("ok"):
            return reply is None or Component.of_oracle(self, reply) is None
        out = self.wanted(want, got)
        text = json.dumps(reply["out"], default=number).replace("/@DIR@", "@DIR@")
        wanted = json.dumps(out, default=number)
        different = list(differences(json.loads(wanted), json.loads(text)))
        different = [path for path in different if path != "mergeDefaultEvictionSettings"]  # only its effect matters
        if "[LKG5028]" in (got.get("error") or ""):  # no file can express it (docs/decisions/009)
            different = [path for path in different if path != "reservedMemory"]
        return not different

    @staticmethod
    def context(request):
        return {key: request[key] for key in ("args", "cgroup") if key in request}


class Layers(Served):
    """Layers that the oracle does not know, kubeadm's patches and the instance file: what is served must give the result that we
    report for the layers.
    """

    name = "layers"

    def patches(self, rng):
        found = []
        for i in range(rng.choice([0, 0, 1, 1, 2])):
            kind = rng.choice(["", "+strategic", "+merge"])
            text = rng.choice(["", "# nothing\n", "---\n", "null\n"]) if rng.random() < 0.05 else self.document(rng)
            found.append({"path": f"kubeletconfiguration{i}{kind}.yaml", "text": text})
        return found

    def generate(self, rng):
        request = super().generate(rng)
        patches = self.patches(rng)
        if patches:
            request["patches"] = patches
        if rng.random() < 0.6:
            request["instance"] = self.document(rng)
        return request

    def for_oracle(self, request):
        return {"op": "duration", "text": "1s"}

    def of_oracle(self, reply):
        return reply

    def wanted(self, want, got):
        return got["out"] if "out" in got else {}


class Scalar(Op):
    """One text as a value."""

    pieces = ""

    def generate(self, rng):
        words = self.words
        text = rng.choice(words) if rng.random() < 0.5 else ""
        for _ in range(rng.choice([0, 1, 2, 4])):
            i = rng.randint(0, len(text))
            j = min(len(text), i + rng.choice([0, 0, 1]))
            text = text[:i] + rng.choice(self.pieces) + text[j:]
        return {"op": self.name, "text": text}

    def smaller(self, request):
        for text in yamltext.shorter(request["text"]):
            yield {**request, "text": text}

    def of_oracle(self, reply):
        if reply.get("ok"):
            reply["out"].pop("decimal", None)
        return reply


class Duration(Scalar):
    name = "duration"
    words = fieldvalues.DURATIONS
    pieces = list("0123456789.+-") + ["ns", "us", "µs", "μs", "ms", "s", "m", "h", "e", " ", "9223372036854775807", "\x00",
        "99999999999999999999", "0000", "é"]


class Quantity(Scalar):
    name = "quantity"
    words = fieldvalues.QUANTITIES
    pieces = list("0123456789.+-eE") + ["n", "u", "m", "k", "K", "M", "G", "T", "P", "E", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei",
        "e3", "E-6", "e18", "e-9", " ", "0000", "9223372036854775807", "é", "999999999999999999"]

    def generate(self, rng):
        while True:
            request = super().generate(rng)
            exponent = request["text"].lower().partition("e")[2].lstrip("+-")
            if not exponent[:4].isdigit():  # absurd exponents: upstream computes for hours, we refuse them
                return request


OPS = {op.name: op for op in (Kubelet, Flags, Served, Layers, KubeProxy, Duration, Quantity)}
