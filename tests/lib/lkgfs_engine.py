# SPDX-License-Identifier: Apache-2.0
"""A stand-in for the engine: a test decides what the file server is told and which publication it serves.

lkgfsd finds its helpers in its own build folder, so a StandIn makes such a folder: copies of the real programs, and as engine a
script that hands its descriptors to the test and waits. The test then speaks include/lkg/messages.h itself.
"""
import array
import ctypes
import hashlib
import os
import pathlib
import re
import select
import shutil
import socket
import time

import lkgfs_testlib as lib

HEADERS = lib.REPOSITORY / "include/lkg"
NS = 1_700_000_000_000_000_000


def header(name):
    return (HEADERS / name).read_text(encoding="utf-8")


def constant(text, name):
    return int(re.search(rf"#define {name}\s+(\d+)", text).group(1))


VERSION = constant(header("messages.h"), "LKG_MESSAGE_VERSION")
TYPES = re.search(r"LKG_MSG_CHANGED = 1,(.*?)_LKG_MSG_MAX", header("messages.h"), re.S).group(1)
TYPES = ["NONE", "CHANGED"] + re.findall(r"LKG_MSG_(\w+),", TYPES)
TEXT_MAX = 256 + constant(header("limits.h"), "LKG_CONTROL_TEXT_MAX") + 1

SCRIPT = """#!/usr/bin/python3 -ISB
import array, os, socket, sys
if "--listen-fd" not in sys.argv:
    os.execv({real!r}, [{real!r}] + sys.argv[1:])
fds = [int(sys.argv[sys.argv.index(name) + 1]) for name in ("--listen-fd", "--supervisor-fd", "--runtime-fd")]
test = socket.socket(socket.AF_UNIX)
test.connect({path!r})
test.sendmsg([b"x"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))])
test.recv(1)
"""


class Message(ctypes.Structure):
    """struct lkg_message; the unused end of the text is not sent."""
    _fields_ = [("version", ctypes.c_uint32), ("type", ctypes.c_uint32), ("ticket", ctypes.c_uint64),
                ("number", ctypes.c_uint64), ("result", ctypes.c_int32), ("component", ctypes.c_uint32),
                ("uid", ctypes.c_uint32), ("gid", ctypes.c_uint32), ("pid", ctypes.c_int32),
                ("login_uid", ctypes.c_uint32), ("start_time", ctypes.c_uint64), ("text_size", ctypes.c_uint32),
                ("command_", ctypes.c_char * 32), ("exe_", ctypes.c_char * 256),
                ("text_", ctypes.c_ubyte * (TEXT_MAX + 3))]

    HEAD = 0  # bytes before the text, set below

    @property
    def name(self):
        return TYPES[self.type]

    @property
    def command(self):
        return self.command_.decode()

    @property
    def exe(self):
        return self.exe_.decode()

    @property
    def text(self):
        return bytes(self.text_)[:self.text_size]


Message.HEAD = Message.text_.offset


class StandIn:
    """The engine's side of one mount. Call publish() first, then answer what next() returns."""

    def __init__(self, mounts, timeout_ms=20000, match=()):
        self.number, self.match, self.timeout_ms = 0, list(match), timeout_ms
        self.heard, self.waiting, self.answers = [], [], {}
        self.files, self.generation, self.bad, self.status = {}, 1, {}, {}
        self.lines = {}  # further lines of the manifest, by their path
        self.mount = mounts(start=False)
        os.chmod(self.mount.root, 0o755)
        root = pathlib.Path(self.mount.root)
        self.path = str(root / "standin")
        self.folder = root / "folder"
        for program in ("fs/supervisor/lkgfsd", "fs/server/lkgfs-fs", "fs/notifier/lkgfs-notify"):
            (self.folder / program).parent.mkdir(parents=True)
            shutil.copy(lib.BUILD / program, self.folder / program)
        engine = self.folder / "core/engine/lkgfs-engine"
        engine.parent.mkdir(parents=True)
        engine.write_text(SCRIPT.format(real=str(lib.BUILD / "core/engine/lkgfs-engine"), path=self.path),
                          encoding="utf-8")
        engine.chmod(0o700)
        self.listen_test = socket.socket(socket.AF_UNIX)
        self.listen_test.bind(self.path)
        self.listen_test.listen(1)
        self.listen_test.settimeout(lib.TIMEOUT_S)
        self.component = str(root / "component")  # a program that is recognised by its executable
        shutil.copy("/usr/bin/python3", self.component)
        self.match.append(f"exe\t{self.component}")

    @property
    def peers(self):
        return [peer for peer in self.heard if peer is not self.supervisor]

    def start(self):
        self.mount.lkgfsd = self.folder / "fs/supervisor/lkgfsd"
        self.mount.start(wait_ready=False)
        self.relay, _ = self.listen_test.accept()
        _, ancillary, _, _ = self.relay.recvmsg(1, socket.CMSG_LEN(64))
        fds = array.array("i")
        fds.frombytes(ancillary[0][2])
        listen, supervisor, self.runtime = fds
        self.listen = socket.socket(fileno=listen)
        self.listen.setblocking(False)
        self.supervisor = socket.socket(fileno=supervisor)
        self.heard.append(self.supervisor)  # who gets no answer from its engine for three seconds replaces it
        for name in ("blobs", "pinned"):
            os.makedirs(f"/proc/self/fd/{self.runtime}/{name}", 0o700, exist_ok=True)
        self.publish("one\n", 1)
        self.mount.wait_ready()
        return self

    def close(self):
        for peer in self.heard:
            peer.close()
        for name in ("relay", "listen", "listen_test"):
            if hasattr(self, name):
                getattr(self, name).close()
        if hasattr(self, "runtime"):
            os.close(self.runtime)
            del self.runtime

    # publications

    def blob(self, data):
        digest = hashlib.sha256(data).hexdigest()
        lib.write_file(f"/proc/self/fd/{self.runtime}/blobs/{digest}", data, 0o600)
        return digest

    def file(self, path, data, flags="-", component="-", generation=0, mode="0644"):
        data = data.encode() if isinstance(data, str) else data
        fields = ["file", path, mode, 0, 0, NS + generation, len(data), self.blob(data), flags, component, generation]
        return "\t".join(map(str, fields))

    def publish(self, document=None, generation=None, good=None):
        """Make a publication current; arguments that are left out keep their value."""
        self.number += 1
        if document is not None:
            self.files["kubelet.conf"], self.generation = document, generation
        entries = {"bad": f"dir\tbad\t0755\t0\t0\t{NS}", "bad/kubelet": f"bad\tbad/kubelet\t0755\t0\t0\t{NS}\t0",
                   "lkg": f"dir\tlkg\t0755\t0\t0\t{NS}",
                   "lkg/kubelet.conf": self.file("lkg/kubelet.conf", good or "good\n", component="0"),
                   "kubelet.conf": self.file("kubelet.conf", self.files["kubelet.conf"], "v", "0", self.generation)}
        for name, text in self.bad.items():
            entries[f"bad/kubelet/{name}"] = self.file(f"bad/kubelet/{name}", text, component="0")
        if self.status:
            for path in ("control", "control/kubelet", "status", "status/kubelet"):
                entries[path] = f"dir\t{path}\t0755\t0\t0\t{NS}"
        for name, text in self.status.items():
            entries[f"status/kubelet/{name}"] = self.file(f"status/kubelet/{name}", text, component="0")
        entries.update(self.lines)
        lines = ["lkgfs-publication 1", f"number\t{self.number}", f"timeout-ms\t{self.timeout_ms}",
                 f"component\t0\tkubelet\t{self.generation}", *(f"match\t0\t{rule}" for rule in self.match),
                 "hide\tstatus", "hide\tbad", "hide\tlkg", "watch\t0\ttree\tkubelet.conf.d",
                 *(entries[path] for path in sorted(entries)), "end", ""]
        runtime = f"/proc/self/fd/{self.runtime}"
        lib.write_file(f"{runtime}/next", "\n".join(lines), 0o600)
        os.rename(f"{runtime}/next", f"{runtime}/current")
        for peer in self.heard:
            self.send(peer, "PUBLISHED", number=self.number)

    # messages

    @staticmethod
    def send(peer, kind, text=b"", **fields):
        message = Message(version=VERSION, type=TYPES.index(kind), text_size=len(text), **fields)
        try:
            peer.send(bytes(message)[:Message.HEAD] + text)
        except (BrokenPipeError, ConnectionResetError):
            pass  # next() sees the end of the connection

    def _receive(self, peer):
        try:
            data = peer.recv(8192)
        except ConnectionResetError:  # killed with unread answers; what it had sent before can still be read
            return
        if not data:
            self.heard.remove(peer)
            peer.close()
            return
        message = Message.from_buffer_copy(data.ljust(ctypes.sizeof(Message), b"\0"))
        message.peer = peer
        assert message.version == VERSION and message.name != "NONE"
        if message.name == "ALIVE":
            self.send(peer, "ALIVE", ticket=message.ticket)
        elif peer is self.supervisor:
            if message.name == "CONTAINERS":
                self.waiting.append(message)  # this engine is not reloaded, and ends with its test
        elif message.ticket in self.answers:  # the server was killed before it knew that it had the answer
            self.send(peer, "DONE", **self.answers[message.ticket])
        elif message.name != "LOADED":
            self.waiting.append(message)

    def look(self, timeout):
        """Read the messages that have arrived; wait up to a timeout for the first."""
        ready = select.select([self.listen, *self.heard], [], [], timeout)[0]
        for one in ready:
            if one is not self.listen:
                self._receive(one)
                continue
            peer, _ = self.listen.accept()
            self.heard.append(peer)
        return bool(ready)

    def next(self, kind):
        """Return the next message, which must be of this kind."""
        end = lib.deadline()
        while not self.waiting:
            if time.monotonic() > end:
                raise lib.Failure(f"no message {kind} came\n{self.mount.log()}")
            self.look(0.1)
        message = self.waiting.pop(0)
        assert message.name == kind, f"{message.name} instead of {kind}"
        return message

    def quiet(self):
        """Nothing has been sent until now: the answer to a question comes after everything before it."""
        while self.look(0):
            pass
        assert not self.waiting, [m.name for m in self.waiting]

    def done(self, message, result=0, text=b""):
        peer = message.peer if message.peer in self.peers else self.peers[-1]
        self.answers[message.ticket] = {"ticket": message.ticket, "result": result, "number": self.number, "text": text}
        self.send(peer, "DONE", **self.answers[message.ticket])
