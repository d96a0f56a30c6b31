# SPDX-License-Identifier: Apache-2.0
"""Command lines of the kubelet: every type of flag, in every way to write it."""

import fieldvalues as v

TAINTS = ["a=b:NoSchedule", "a:NoExecute", "a=:PreferNoSchedule", "a=b:x", "a", "", "a=b:NoSchedule,c:NoExecute",
    "a:NoSchedule,a:NoSchedule", "a=b=c:NoSchedule"]
RESERVED = ["0:memory=1Gi", "0:memory=1Gi;1:memory=2Gi", "0:memory=1Gi,hugepages-2Mi=2Mi", "0:memory=1Gi;0:memory=1Gi",
    "x:memory=1", "0:cpu=1", "", "0:", "-1:memory=1", "0:memory=0"]
VMODULE = ["a=1", "a=1,b=2", "a", "a=x", "", "a=-1", "a=1,", "=1", "a=2147483648", "a=1,a=2"]
LABELS = ["a=b", "a=b,c=d", "", "kubernetes.io/os=linux", "foo.kubernetes.io/x=y", "a", "A b=c"]
HEADERS = ["A:b", "A:b,A:c", "", "A", "A:b,C:d", "a:b:c"]
WORDS = {
    "address": v.HOSTS, "healthz-bind-address": v.HOSTS, "v": ["0", "1", "5", "-1", "x", "2147483647", "2147483648", "1.5",
        "010", "0x1f"],
    "register-with-taints": TAINTS, "reserved-memory": RESERVED, "vmodule": VMODULE, "node-labels": LABELS,
        "manifest-url-header": HEADERS,
    "logging-format": ["text", "", "x"], "cloud-provider": ["", "external", "aws"], "hostname-override": ["a", "A_"],
        "node-ip": ["1.2.3.4", "::", "x", "1.2.3.4,::1"],
}
BOOLS = ["true", "false", "1", "0", "t", "F", "TRUE", "True", "yes", "", "tRUE", "on"]
INTS = ["0", "1", "5", "110", "-1", "2147483647", "2147483648", "9223372036854775807", "9223372036854775808", "x", "", "1.0",
    "0x10", "010", "0b1", "1_000", "+5", " 5", "0o17", "08"]
SPECIAL = [
    ["--"], ["--", "x"], ["--nope"], ["--nope=1"], ["-x"], ["-v2"], ["-v", "2"], ["-v=2"], ["-v"], ["--v"], ["-"],
        ["--max-pods"], ["--max-pods", "5"], ["--Max-Pods=5"],
    ["---max-pods=5"], ["--=5"], ["-max-pods=5"], ["--max_pods=5"], ["--max.pods=5"], ["-vv"], ["-v2", "-v3"], ["-hx"],
        ["--feature_gates=AllAlpha=true"],
]


def maps(rng, path):
    pairs = ([(rng.choice(v.KEYS.get(path, ["a"])), rng.choice(v.WORDS.get(path + "{}", ["1"]))) for _ in range(rng.choice([0,
        1, 1, 2, 3]))])
    separator = "<" if path in ("evictionHard", "evictionSoft") and rng.random() < 0.9 else "="
    text = rng.choice([",", ",", ", "]).join(key + separator + value for key, value in pairs)
    return text + rng.choice(["", "", "", "", ",", ",x", "="])


class CommandLine:
    """@flags as in the oracle's `flags`, @gates as in its `gates`."""

    def __init__(self, flags, gates):
        self.flags = [flag for flag in flags if flag["name"] not in ("config", "config-dir")]
        self.gates = [gate["name"] for gate in gates]

    def feature_gates(self, rng):
        names = [rng.choice(self.gates if rng.random() < 0.9 else v.EXTRA_GATES) for _ in range(rng.choice([0, 1, 1, 2, 3]))]
        return ",".join(name + "=" + rng.choice(["true", "false", "true", "false", "1", "x", "T", ""]) for name in names)

    def value(self, rng, flag):
        name, kind = flag["name"], flag["type"]
        if name == "feature-gates":
            return self.feature_gates(rng)
        if name in WORDS:
            return rng.choice(WORDS[name])
        if kind == "bool":
            return rng.choice(BOOLS)
        if kind.startswith("int"):
            return rng.choice(INTS)
        if kind == "duration":
            return rng.choice(v.DURATIONS)
        if kind == "quantity":
            return rng.choice(v.QUANTITIES)
        parts = name.split("-")
        path = parts[0] + "".join(part.capitalize() for part in parts[1:])
        if kind == "mapStringString":
            return maps(rng, path)
        words = v.WORDS.get(path) or v.WORDS.get(path + "[]") or v.PATHS
        if kind == "stringSlice":
            return rng.choice(["", ",", ", "]).join(str(rng.choice(words)) for _ in range(rng.choice([0, 1, 1,
                2]))) + rng.choice(["", "", "", ",", '"'])
        return str(rng.choice(words))

    def one(self, rng):
        if rng.random() < 0.12:
            return list(rng.choice(SPECIAL))
        flag = rng.choice(self.flags)
        name, value = flag["name"], self.value(rng, flag)
        if rng.random() < 0.1:
            name = name.replace("-", "_")
        if flag["type"] == "bool" and rng.random() < 0.4:
            return ["--" + name]
        return ["--" + name, value] if rng.random() < 0.15 else [f"--{name}={value}"]

    def generate(self, rng):
        words = [self.one(rng) for _ in range(rng.choice([1, 1, 2, 3, 5]))]
        if rng.random() < 0.2:
            words.append(rng.choice(words))
        return [word for group in words for word in group if "\0" not in word]
