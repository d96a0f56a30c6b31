#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every test of layers as a step of one sequence: sequence.py [--tap] ANSWER [--rounds N] [--seed N]

The layers of all golden cases and all recorded cases become requests to ANSWER (BUILD/tests/fuzz/answer), one after the other, in
various orders: it has one stack and one judge, sees each change of each layer, and after each compares the result with that of a
new stack and judge. A judgement must never affect a later one.

Prints a line for each case that differs and `N passed, N failed`.
"""

import argparse
import json
import pathlib
import random
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
PLACES = {"base": "kubelet.conf", "dropin_dir": "kubelet.conf.d", "instance": "kubelet-instance.conf", "patches_dir": ""}
KUBELET = "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n"
# Stands for an absent layer when the next one is judged: before a change, and after it.
BROKEN = [
    {"base": "maxPods: ["}, {}, {"base": ""}, {"base": KUBELET}, {"base": KUBELET + "maxPods: x\n"}, {"base": "[]"},
    {"base": KUBELET + "featureGates:\n"}, {"base": KUBELET + "featureGates: 5\n"}, {"base": "kind: Config\nusers: []\n"},
    {"base": "kind: Other\napiVersion: v1\n"}, {"base": KUBELET.replace("v1beta1", "v9")},
    {"dropins": [{"path": "a.conf", "text": KUBELET + "maxPods: -5\n"}]},
    {"dropins": [{"path": "a.conf", "text": KUBELET + "featureGates: {NoSuchGate: true}\n"}]},
    {"base": KUBELET, "dropins": [{"path": "a.conf", "text": KUBELET + "featureGates: {NodeSwap: true}\n"}]},
    {"base": KUBELET, "patches": [{"path": "kubeletconfiguration.yaml", "text": "# nothing\n"}]},
    {"base": KUBELET, "patches": [{"path": "kubeletconfiguration.yaml", "text": "maxPods: -5\n"}]},
    {"base": "maxPods: [", "patches": [{"path": "kubeletconfiguration.yaml", "text": "# nothing\n"}]},
    {"patches": [{"path": "kubeletconfiguration.yaml", "text": ""}], "instance": KUBELET + "maxPods: -5\n"},
    {"base": KUBELET, "instance": KUBELET + "maxPods: -5\n"}, {"base": KUBELET, "remote": KUBELET + "maxPods: -5\n"},
    {"base": KUBELET, "remote": "maxPods: ["}, {"base": KUBELET, "args": ["--feature-gates=NoSuchGate=true"]},
    {"base": "maxPods: [", "args": ["--feature-gates=NoSuchGate=true"]}, {"args": ["--max-pods=x"]},
]


def read(path):
    """Text of a regular file, else None; text that is not UTF-8 cannot be put into a request."""
    try:
        return path.read_bytes().decode() if path.is_file() and not path.is_symlink() else None
    except UnicodeDecodeError:
        return None


def tree(directory):
    found = []
    for path in sorted(directory.rglob("*")) if directory.is_dir() and not directory.is_symlink() else []:
        text = read(path)
        if text is not None and len(text) < 100_000:
            found.append({"path": str(path.relative_to(directory)), "text": text})
    return found


def golden(case, scratch):
    source = scratch / case.name
    shutil.copytree(case / "source", source, symlinks=True)
    if (case / "setup").is_file():
        subprocess.run(["sh", "-eu", str(case / "setup")], cwd=source, check=True)
    places = dict(PLACES)
    if (case / "args").is_file():
        places.update(line.split("=", 1) for line in (case / "args").read_text().splitlines() if "=" in line)
    request = {}
    for key, name in (("base", places["base"]), ("instance", places["instance"])):
        text = read(source / name) if name else None
        if text is not None and len(text) < 100_000:
            request[key] = text
    if places["dropin_dir"] and (source / places["dropin_dir"]).is_dir():
        request["dropins"] = tree(source / places["dropin_dir"])
    if places["patches_dir"]:
        request["patches"] = tree(source / places["patches_dir"])
    return request


def recorded():
    for path in sorted((HERE / "vectors").glob("*.jsonl")):
        for line in path.read_bytes().splitlines():
            case = json.loads(line)
            if case.get("op") not in ("kubelet", "kubeproxy", "flags", "served"):
                continue
            request = {key: case[key] for key in ("base", "dropins", "args", "cgroup") if key in case}
            request["op"] = "kubeproxy" if case["op"] == "kubeproxy" else "kubelet"
            yield case["id"], request


def cases(scratch):
    for case in sorted(HERE.iterdir()):
        if (case / "source").is_dir() and not any((case / name).is_file() for name in ("command", "session")):
            yield case.name, {"op": "kubelet", **golden(case, scratch)}
    yield from recorded()
    for i, request in enumerate(BROKEN):
        yield f"broken-{i}", {"op": "kubelet", **request}


def mixed(rng, requests):
    """The layers of one case together with those of another: combinations that no case has."""
    one, other = rng.choice(requests), rng.choice(requests)
    request = {key: value for key, value in one[1].items() if rng.random() < 0.7 or key == "op"}
    for key in ("base", "dropins", "patches", "instance", "remote", "args"):
        if key in other[1] and rng.random() < 0.4:
            request[key] = other[1][key]
    if "base" in other[1] and rng.random() < 0.1:
        request[rng.choice(["remote", "instance"])] = other[1]["base"]
    return f"{one[0]} with {other[0]}", request


def order(rng, requests):
    """All requests, with broken and mixed ones in between."""
    broken = [request for request in requests if request[0].startswith("broken-")]
    for request in rng.sample(requests, len(requests)):
        yield request
        if rng.random() < 0.3:
            yield from (rng.choice(broken) for _ in range(rng.choice([1, 2, 3])))
        if rng.random() < 0.3:
            yield mixed(rng, requests)


def parse():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("answer")
    parser.add_argument("--tap", action="store_true", help="a line for each case")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--seed", type=int, default=1)
    return parser.parse_args()


def main():
    args, bad, passed = parse(), [], 0
    rng = random.Random(args.seed)
    with tempfile.TemporaryDirectory() as scratch:
        requests = list(cases(pathlib.Path(scratch)))
    asked = [request for _ in range(args.rounds) for request in order(rng, requests)]
    text = "".join(json.dumps(request) + "\n" for _, request in asked)
    done = subprocess.run([args.answer], input=text.encode(), capture_output=True, check=False)
    replies = done.stdout.splitlines()
    if done.returncode != 0 or len(replies) != len(asked):
        print(f"not ok answer ended with {done.returncode} at {asked[len(replies)][0] if len(replies) < len(asked) else 'its end'}")
        print(done.stderr.decode(errors="replace")[-4000:])
        print(f"{len(replies)} passed, 1 failed")
        return 1
    for i, ((name, _), reply) in enumerate(zip(asked, replies)):
        stale = json.loads(reply).get("stale")
        if stale:
            bad.append(name)
            print(f"not ok {name} after {asked[i - 1][0] if i else 'nothing'}: {stale[:2000]}")
        else:
            passed += 1
    if args.tap:
        for name in sorted({name for name, _ in asked} - set(bad)):
            print(f"ok {name}")
    print(f"{passed} passed, {len(bad)} failed")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
