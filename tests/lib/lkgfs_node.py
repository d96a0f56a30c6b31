# SPDX-License-Identifier: Apache-2.0
"""A node for the tests of dynamic configuration: a mount, a ConfigMap in a file, and a component that runs or ends as told.

The component is a real process with its own executable (a copy of the interpreter, so that `match.exe` matches nothing else); it
opens the view file, prints what it read, and then follows its input.
"""
import json
import os
import select
import shutil
import subprocess
import sys

import lkgfs_testlib as lib

NAMESPACE, NAME = "kube-system", "node-config"

COMPONENT = """import os, sys
with open(sys.argv[1]) as f:
    data = f.read()
sys.stdout.write('%08d' % len(data) + data)
sys.stdout.flush()
word = sys.stdin.readline().strip()
if word == 'again':
    with open(sys.argv[1]) as f:
        data = f.read()
    sys.stdout.write('%08d' % len(data) + data)
    sys.stdout.flush()
    word = sys.stdin.readline().strip()
sys.exit(int(word or 0))
"""


class Component:
    """One run of the component."""

    def __init__(self, program, path, **kwargs):
        self.process = subprocess.Popen([program, "-ISB", "-c", COMPONENT, path], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd="/", bufsize=0, **kwargs)
        self.pid = self.process.pid
        self.document = self._read()

    def _bytes(self, size):
        data = b""
        while len(data) < size:
            assert select.select([self.process.stdout], [], [], lib.TIMEOUT_S)[0], "the component reads nothing"
            piece = self.process.stdout.read(size - len(data))
            assert piece, self.process.stderr.read().decode()
            data += piece
        return data.decode()

    def _read(self):
        return self._bytes(int(self._bytes(8)))

    def again(self):
        """Open and read the file once more, in the same process."""
        self.process.stdin.write(b"again\n")
        return self._read()

    def end(self, code=0):
        """Exit with this code."""
        self.process.stdin.write(f"{code}\n".encode())
        self.process.wait(lib.TIMEOUT_S)
        self._close()

    def kill(self):
        self.process.kill()
        self.process.wait(lib.TIMEOUT_S)
        self._close()

    def _close(self):
        for stream in (self.process.stdin, self.process.stdout, self.process.stderr):
            stream.close()


class Node:
    """`mounts` is the fixture of that name; `trial` and `remote` go into the configuration."""

    def __init__(self, mounts, trial=None, remote=None, component=None, start=True, config=None, **options):
        self.lives = []
        self.version = 0
        tree = {"dropins": {}, "instance": None, **options}
        self.mount = mounts(start=False, over=tree.pop("over", False), **tree)
        self.program = os.path.join(self.mount.root, "component")
        shutil.copy(os.path.realpath(sys.executable), self.program)
        self.file = os.path.join(self.mount.root, "remote.yaml")
        self.options = {
            "config": {"remote": {"enabled": True, "references": ["file"], "file": self.file, **(remote or {})},
                       "trial": {"duration": "10m", "crashLoopThreshold": 1, **(trial or {})}, **(config or {})},
            "components": [{"name": "kubelet", "match": {"unit": "", "exe": [self.program]}, **(component or {})}],
        }
        self.configure()
        if start:
            self.mount.start()

    def configure(self, **changes):
        for key, value in changes.items():
            section = self.options["config"] if key in ("remote", "trial") else None
            if section is not None:
                section[key] = {**section[key], **value}
            else:
                self.options["components"][0][key] = value
        self.mount.write_config(self.options["config"], self.options["components"])

    # the reference

    def configmap(self, body, version=None, key="kubelet", uid="8f1c", name=NAME, header=True, annotations=None, **more):
        """A ConfigMap object; `body` is the payload under `key`."""
        metadata = {"namespace": NAMESPACE, "name": name, "uid": uid,
                    "resourceVersion": str(version or self._next()), "annotations": annotations or {}}
        return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata,
                "data": {key: (lib.HEADER if header else "") + body}, **more}

    def _next(self):
        self.version += 1
        return self.version

    def put(self, obj):
        """Write the object or text atomically, as a delivery tool would."""
        text = obj if isinstance(obj, str) else json.dumps(obj, indent=1)
        lib.write_file(self.file + ".new", text, 0o600)
        os.rename(self.file + ".new", self.file)

    def assign(self, body, wait=True, **options):
        """Put a ConfigMap; return its source id, by default once it is assigned."""
        obj = self.configmap(body, **options)
        meta = obj["metadata"]
        key = options.get("key", "kubelet")
        source = f"{meta['uid']}@{meta['resourceVersion']}" + ("" if key == "kubelet" else f":{key}")
        if key != "kubelet":
            meta["annotations"] = {**meta["annotations"], "lkgfs.io/config-key": key}
        self.put(obj)
        if wait:
            self.wait("assigned", f"{source} {meta['namespace']}/{meta['name']}")
        return source

    # status

    def status(self, name):
        return self.mount.status(name)

    def known(self, name):
        """The same, or "" if there is no such file: some exist only while there is something to say."""
        try:
            return self.status(name)
        except FileNotFoundError:
            return ""

    def wait(self, name, text):
        """Wait until status/<name> contains this text."""
        self.mount.wait_for(lambda: text in self.known(name), f"{text!r} in status/{name}")

    def config_json(self):
        return json.loads(self.status("config.json"))

    def trial(self):
        return dict(line.split("=", 1) for line in self.status("trial").splitlines())

    def bad(self):
        """Source id -> entry."""
        directory = self.mount.vpath("bad", "kubelet")
        return {name: json.loads(lib.read_file(os.path.join(directory, name))) for name in os.listdir(directory)}

    def good_document(self):
        return lib.read_file(self.mount.vpath("lkg", "kubelet.conf")).decode()

    def sources(self):
        """assigned, active, last-known-good: the first word of each."""
        return tuple((self.status(name).split() or [""])[0] for name in ("assigned", "active", "last-known-good"))

    # the component

    def live(self, **kwargs):
        life = Component(self.program, self.mount.path("kubelet.conf"), **kwargs)
        self.lives.append(life)
        return life

    def crash(self, code=1):
        """One start that ends at once; return what it read."""
        life = self.live()
        life.end(code)
        return life.document

    def close(self):
        for life in self.lives:
            if life.process.poll() is None:
                life.kill()
