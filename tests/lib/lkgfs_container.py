# SPDX-License-Identifier: Apache-2.0
"""A container as runc and containerd make one: its own namespaces and root directory, volumes, dropped capabilities.

Nothing is executed in it: the forked process serves calls from the test, so the root directory needs no files except the volumes.
A volume is bound as container runtimes do it: recursively; `ro` by a remount of that one mount (mounts below it stay as they
are); its propagation is set last.
"""
import contextlib
import ctypes
import os
import pickle
import resource
import signal
import socket
import struct

import lkgfs_testlib as lib

CLONE_NEWNS, CLONE_NEWUTS, CLONE_NEWIPC, CLONE_NEWUSER, CLONE_NEWPID = 0x20000, 0x4000000, 0x8000000, 0x10000000, 0x20000000
MS_RDONLY, MS_REMOUNT, MS_BIND, MS_REC, MS_PRIVATE, MS_SLAVE, MS_SHARED = 1, 32, 4096, 16384, 1 << 18, 1 << 19, 1 << 20
MNT_DETACH = 2
SYS_PIVOT_ROOT = {"x86_64": 155, "aarch64": 41}[os.uname().machine]
PR_SET_NO_NEW_PRIVS = 38
PROPAGATION = {"private": MS_PRIVATE, "rslave": MS_SLAVE | MS_REC, "rshared": MS_SHARED | MS_REC}
HEADER = struct.Struct("!I")

libc = ctypes.CDLL(None, use_errno=True)


def check(result, what):
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")


def unshare(flags):
    check(libc.unshare(flags), "unshare")


def mount(source, target, fstype=None, flags=0, data=None):
    def text(value):
        return os.fsencode(value) if value is not None else None

    check(libc.mount(text(source), text(target), text(fstype), ctypes.c_ulong(flags), text(data)), f"mount {target}")


def umount(target, flags=MNT_DETACH):
    check(libc.umount2(os.fsencode(target), flags), f"umount {target}")


def drop_capabilities():
    """Drop them from all sets, for good."""
    for capability in range(64):
        libc.prctl(24, capability, 0, 0, 0)  # PR_CAPBSET_DROP
    header = struct.pack("Ii", 0x20080522, 0)
    check(libc.capset(header, struct.pack("6I", 0, 0, 0, 0, 0, 0)), "capset")
    check(libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "prctl")


class Volume:
    """`host` mounted at `inside`; propagation as in Kubernetes: None (private), HostToContainer (rslave), Bidirectional
    (rshared).
    """

    def __init__(self, host, inside="/etc/kubernetes", read_only=False, propagation="private"):
        self.host, self.inside, self.read_only, self.propagation = host, inside, read_only, propagation

    def attach(self, root):
        target = root + self.inside
        os.makedirs(target)
        mount(self.host, target, flags=MS_BIND | MS_REC)
        if self.read_only:
            mount(None, target, flags=MS_REMOUNT | MS_BIND | MS_RDONLY)
        mount(None, target, flags=PROPAGATION[self.propagation])


class Container:
    """A context manager. @user: its own user namespace, (inside, outside, count) of uids and gids, or None.
    @capabilities: False drops all, like an unprivileged container, which has none that concern mounts.
    """

    def __init__(self, *volumes, user=None, capabilities=False, uid=0, pid=True):
        self.capabilities = capabilities
        self.ours, theirs = socket.socketpair()
        self.pid = os.fork()
        if self.pid == 0:
            try:
                self.ours.close()
                self._become(theirs, volumes, user, capabilities, uid, pid)
            finally:
                os._exit(1)
        theirs.close()
        try:
            if user:
                self._receive()
                for name in ("uid_map", "gid_map"):
                    with open(f"/proc/{self.pid}/{name}", "w", encoding="ascii") as file:
                        file.write(" ".join(map(str, user)))
                self._send(self.ours, None)
            self._receive()
        except BaseException:
            self.close()
            raise

    # inside

    def _become(self, theirs, volumes, user, capabilities, uid, pid):
        if user:  # the mounts belong to the namespaces of the process that makes them, as with a rootless runtime
            unshare(CLONE_NEWUSER)
            self._send(theirs, None)
            self._receive_from(theirs)
            os.setresgid(0, 0, 0)
            os.setresuid(0, 0, 0)
        unshare(CLONE_NEWNS | CLONE_NEWUTS | CLONE_NEWIPC | (CLONE_NEWPID if pid else 0))
        child = os.fork()  # the first process of the new pid namespace
        if child:
            theirs.close()
            _, status = os.waitpid(child, 0)
            os._exit(os.waitstatus_to_exitcode(status) & 0xff)
        mount(None, "/", flags=MS_REC | MS_SLAVE)
        root = "/tmp"
        mount("container", root, "tmpfs", data="mode=755")
        for volume in volumes:
            volume.attach(root)
        os.mkdir(root + "/proc")
        with contextlib.suppress(OSError):  # not allowed in a user namespace that does not see all of the host's mounts
            mount("proc", root + "/proc", "proc")
        os.mkdir(root + "/old")
        os.chdir(root)
        check(libc.syscall(SYS_PIVOT_ROOT, b".", b"old"), "pivot_root")
        os.chdir("/")
        umount("/old")
        os.setgroups([])
        if uid:
            os.setresgid(uid, uid, uid)
            os.setresuid(uid, uid, uid)
        if not capabilities:
            drop_capabilities()
        self._send(theirs, None)
        self._serve(theirs)

    def _serve(self, theirs):
        while True:
            try:
                function, arguments = self._receive_from(theirs)
            except EOFError:
                os._exit(0)
            try:
                answer = (True, function(*arguments))
            except OSError as e:
                answer = (False, e.errno)
            self._send(theirs, answer)

    # the channel between the two

    @staticmethod
    def _send(line, value):
        data = pickle.dumps(value)
        line.sendall(HEADER.pack(len(data)) + data)

    @staticmethod
    def _receive_from(line):
        def exactly(n):
            data = b""
            while len(data) < n:
                more = line.recv(n - len(data))
                if not more:
                    raise EOFError
                data += more
            return data

        return pickle.loads(exactly(HEADER.unpack(exactly(HEADER.size))[0]))

    def _receive(self):
        self.ours.settimeout(lib.TIMEOUT_S)
        try:
            return self._receive_from(self.ours)
        except EOFError:
            raise lib.Failure("the container ended; its message is above") from None

    # outside

    def call(self, function, *arguments):
        """Run function(*arguments) as a process of the container. pickle must find the function by name."""
        self._send(self.ours, (function, arguments))
        good, value = self._receive()
        if not good:
            raise OSError(value, os.strerror(value))
        return value

    def error(self, function, *arguments):
        """Return the errno of such a call, 0 if it succeeded."""
        return lib.error_of(self.call, function, *arguments)

    def close(self):
        self.ours.close()
        with contextlib.suppress(OSError):
            if self.pid:
                os.kill(self.pid, signal.SIGKILL)  # its child is the init of a pid namespace, or sees that the channel is closed
                os.waitpid(self.pid, 0)
        self.pid = 0

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


class User(Container):
    """A process on the host that runs as another user, with as many descriptors as it may have; close() releases all."""

    def __init__(self, uid):  # pylint: disable=super-init-not-called
        self.ours, theirs = socket.socketpair()
        self.pid = os.fork()
        if self.pid == 0:
            try:
                self.ours.close()
                most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
                resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
                os.setgroups([])
                os.setresgid(uid, uid, uid)
                os.setresuid(uid, uid, uid)
                self._send(theirs, None)
                self._serve(theirs)
            finally:
                os._exit(1)
        theirs.close()
        try:
            self._receive()
        except BaseException:
            self.close()
            raise


# what a process of a container does; functions with a name, so that pickle can send them

def write_file(path, data=b"x", flags=os.O_WRONLY | os.O_CREAT | os.O_TRUNC):
    fd = os.open(path, flags, 0o644)
    try:
        return os.write(fd, data)
    finally:
        os.close(fd)


def open_only(path, flags):
    os.close(os.open(path, flags, 0o644))


held = []


def hold_open(path, flags, most):
    """Open the file up to @most times and keep it open; return how often that worked and the errno that ended it."""
    for n in range(most):
        try:
            held.append(os.open(path, flags))
        except OSError as e:
            return n, e.errno
    return most, 0


def let_go():
    while held:
        os.close(held.pop())


def read_file(path):
    with open(path, "rb") as file:
        return file.read()


def setxattr(path, name, value):
    os.setxattr(path, name, value)


def mountinfo():
    with open("/proc/self/mountinfo", encoding="ascii") as file:
        return file.read()
