# SPDX-License-Identifier: Apache-2.0
"""A file system that dies: a FUSE server of the tests that acts as a small disk until it is told to stop answering.

When dead, its process keeps reading requests, so the kernel considers them in progress and releases no caller. This is the worst
case, like a hard NFS mount without its server. Any operation on any file can hang.
"""
import contextlib
import ctypes
import errno
import os
import select
import signal
import socket
import stat
import struct
import subprocess

import lkgfs_testlib as lib

libc = ctypes.CDLL(None, use_errno=True)
IN = struct.Struct("<IIQQIIIHH")
OUT = struct.Struct("<IiQ")
ATTR = struct.Struct("<QQQQQQIIIIIIIIII")  # fuse_attr
LOOKUP, FORGET, GETATTR, SETATTR, OPEN, READ, WRITE, STATFS, RELEASE, FSYNC, FLUSH, INIT, OPENDIR, READDIR, RELEASEDIR = (
    1, 2, 3, 4, 14, 15, 16, 17, 18, 20, 25, 26, 27, 28, 29)
SETXATTR, GETXATTR, LISTXATTR, REMOVEXATTR = 21, 22, 23, 24
CREATE, INTERRUPT, BATCH_FORGET, ACCESS, RENAME2, MKDIR, UNLINK = 35, 36, 42, 34, 45, 9, 10
NO_REPLY = (FORGET, BATCH_FORGET, INTERRUPT)
ROOT = 1


class Served:
    """The tree: node -> [mode, content or {name: node}]. @files: names in a directory where everyone may do everything, or a tree
    {name: content or {...}} that is root's.
    """

    def __init__(self, files, xattrs=errno.ENOSYS):
        self.changes = {}  # node -> how often it was written
        self.xattrs = xattrs
        if isinstance(files, dict):
            self.nodes = {ROOT: [stat.S_IFDIR | 0o755, {}]}
            self.plant(ROOT, files)
            return
        self.nodes = {ROOT: [stat.S_IFDIR | 0o777, {}]}
        for name in files:
            self.make(ROOT, name, stat.S_IFREG | 0o666, b"content\n")
        self.make(ROOT, "dir", stat.S_IFDIR | 0o777, {})

    def plant(self, parent, tree):
        for name, content in tree.items():
            if isinstance(content, dict):
                self.plant(self.make(parent, name, stat.S_IFDIR | 0o755, {}), content)
            else:
                self.make(parent, name, stat.S_IFREG | 0o644, content.encode())

    def make(self, parent, name, mode, content):
        number = len(self.nodes) + 1
        self.nodes[number] = [mode, content]
        self.nodes[parent][1][name] = number
        return number

    def change(self, node, content):
        self.nodes[node][1] = content
        self.changes[node] = self.changes.get(node, 0) + 1

    def write(self, node, body):
        offset, size = struct.unpack_from("<QI", body, 8)
        old, new = self.nodes[node][1], body[40:40 + size]
        self.change(node, old[:offset].ljust(offset, b"\0") + new + old[offset + size:])
        return struct.pack("<II", size, 0)

    def set(self, node, body):
        valid, _, _, size = struct.unpack_from("<IIQQ", body)
        if valid & 8:  # FATTR_SIZE
            self.change(node, self.nodes[node][1][:size].ljust(size, b"\0"))
        return struct.pack("<QII", 0, 0, 0) + self.attributes(node)

    def attributes(self, node):
        mode, content = self.nodes[node]
        size = 0 if stat.S_ISDIR(mode) else len(content)
        changes = self.changes.get(node, 0)
        return ATTR.pack(node, size, 1, 0, changes, changes, 0, 0, 0, mode, 1, 0, 0, 0, 4096, 0)

    def entry(self, node):
        return struct.pack("<QQQQII", node, 0, 0, 0, 0, 0) + self.attributes(node)

    def listing(self, node, offset):
        data = b""
        for i, (name, number) in enumerate(sorted(self.nodes[node][1].items())):
            if i < offset:
                continue
            encoded = name.encode()
            data += struct.pack("<QQII", number, i + 1, len(encoded), 0) + encoded + b"\0" * (-len(encoded) % 8)
        return data

    def answer(self, opcode, node, body):
        if opcode == INIT:
            return struct.pack("<IIIIHHIIHHI", 7, 31, 1 << 16, 0, 64, 48, 1 << 16, 1, 32, 0, 0) + b"\0" * 24
        if opcode == LOOKUP:
            number = self.nodes[node][1].get(body.rstrip(b"\0").decode())
            return -errno.ENOENT if number is None else self.entry(number)
        if opcode == SETATTR:
            return self.set(node, body)
        if opcode == GETATTR:
            return struct.pack("<QII", 0, 0, 0) + self.attributes(node)
        if opcode in (OPEN, OPENDIR):
            return struct.pack("<QII", node, 1, 0)  # FOPEN_DIRECT_IO: the content is not cached
        if opcode == CREATE:
            number = self.make(node, body[16:].rstrip(b"\0").decode(), stat.S_IFREG | 0o666, b"")
            return self.entry(number) + struct.pack("<QII", number, 1, 0)
        if opcode == MKDIR:
            return self.entry(self.make(node, body[8:].rstrip(b"\0").decode(), stat.S_IFDIR | 0o777, {}))
        if opcode == READ:
            offset, size = struct.unpack_from("<QI", body, 8)
            return self.nodes[node][1][offset:offset + size]
        if opcode == WRITE:
            return self.write(node, body)
        if opcode == READDIR:
            return self.listing(node, struct.unpack_from("<Q", body, 8)[0])
        if opcode == STATFS:
            return b"\0" * 80
        if opcode in (FSYNC, FLUSH, RELEASE, RELEASEDIR, ACCESS):
            return b""
        if opcode in (SETXATTR, GETXATTR, LISTXATTR, REMOVEXATTR):
            return -self.xattrs
        return -errno.ENOSYS


def serve(device, line, tree):
    dead, only = False, b""
    waiting = []
    poll = select.poll()
    for fd in (device, line.fileno()):
        poll.register(fd, 1)
    while True:
        ready = [fd for fd, _ in poll.poll()]
        if line.fileno() in ready:
            word = line.recv(64)
            if not word:
                return
            if word == b"?":
                line.send(struct.pack("<I", len(waiting)))
                continue
            dead, only = word[:1] == b"d", word[1:]
            if not dead:
                for request in waiting:
                    reply(device, tree, request)
                waiting.clear()
            line.send(b"k")
        if device not in ready:
            continue
        try:
            request = os.read(device, 1 << 18)
        except OSError as e:
            if e.errno == errno.ENODEV:
                return
            continue
        opcode = IN.unpack_from(request)[1]
        if dead and opcode not in NO_REPLY and (not only or opcode in only):
            waiting.append(request)
        else:
            reply(device, tree, request)


def reply(device, tree, request):
    _, opcode, unique, node, *_ = IN.unpack_from(request)
    if opcode in NO_REPLY:
        return
    try:
        answer = tree.answer(opcode, node, request[IN.size:])
    except (KeyError, TypeError, AttributeError):
        answer = -errno.EIO
    code, data = (answer, b"") if isinstance(answer, int) else (0, answer)
    with contextlib.suppress(OSError):
        os.write(device, OUT.pack(OUT.size + len(data), code, unique) + data)


class DeadFs:
    """Mounted at a path that reaches the source directory behind the view; a context manager. @xattrs: the errno of every call on
    extended attributes; after one ENOSYS the kernel does not ask again.
    """

    def __init__(self, point, files=("file", "other"), options=",allow_other", xattrs=errno.ENOSYS):
        self.point = point
        self.device = os.open("/dev/fuse", os.O_RDWR | os.O_CLOEXEC)
        options = f"fd={self.device},rootmode=40777,user_id=0,group_id=0{options}"
        if libc.mount(b"deadfs", os.fsencode(point), b"fuse", ctypes.c_ulong(0), options.encode()) != 0:
            raise OSError(ctypes.get_errno(), "mount")
        self.line, theirs = socket.socketpair()
        self.pid = os.fork()
        if self.pid == 0:
            try:
                signal.signal(signal.SIGTERM, signal.SIG_DFL)
                self.line.close()
                serve(self.device, theirs, Served(files, xattrs))
            finally:
                os._exit(0)
        theirs.close()
        os.close(self.device)  # or a process that is forked later would keep the connection open

    def _say(self, word):
        self.line.send(word)
        if self.line.recv(1) != b"k":
            raise lib.Failure("the file system is gone")

    def die(self, *opcodes):
        """Stop answering all requests, or those of these kinds."""
        self._say(b"d" + bytes(opcodes))

    def waiting(self):
        """Return how many requests are unanswered."""
        self.line.send(b"?")
        return struct.unpack("<I", self.line.recv(4))[0]

    def live(self):
        """Answer all pending requests."""
        self._say(b"l")

    def close(self):
        """All waiting callers get an error: the connection is aborted when the last descriptor of the device is closed."""
        if self.pid:
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
            self.pid = 0
            self.line.close()
            subprocess.run(["umount", "-l", self.point], check=False, stderr=subprocess.DEVNULL)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()
